# SPDX-License-Identifier: Apache-2.0
"""The tree is the architecture: includes point down, modules see only the public headers."""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)

# Which folder may include which others, besides itself. Folders of core/lib are written lib/NAME, the daemon's by their path in
# core/nri-rpd, the programs by their name.
LIB = {'lib/util': [], 'lib/topo': ['lib/util'], 'lib/conf': ['lib/util'], 'lib/wire': ['lib/util']}
LIB['lib/grpc'] = LIB['lib/nri-runtime'] = ['lib/util', 'lib/wire']
LIB['lib/machines'] = LIB['lib/kube'] = ['lib/util', 'lib/conf']
LIB['lib/term'] = ['lib/util']
ALLOWED = dict(LIB)
ALLOWED['cache'] = ['lib/util', 'lib/topo', 'lib/conf']
ALLOWED['store'] = ALLOWED['cache'] + ['cache']
ALLOWED['host'] = ALLOWED['store'] + ['store']
ALLOWED['noderes'] = ALLOWED['host'] + ['host']
ALLOWED['pipeline'] = ALLOWED['noderes'] + ['noderes']
ALLOWED['nri'] = ALLOWED['metrics'] = ALLOWED['control'] = ALLOWED['agent'] = ALLOWED['pipeline'] + ['pipeline', 'lib/wire']
ALLOWED['metrics/map'] = ALLOWED['metrics'] + ['metrics', 'control']
ALLOWED['main'] = [folder for folder in ALLOWED]
# nri-rpctl reads the schemas of modules by itself where no daemon runs.
ALLOWED['nri-rpctl'] = ['lib/util', 'lib/wire', 'lib/conf', 'lib/term', 'host']
ALLOWED['nri-rp-sim'] = ['lib/util', 'lib/topo', 'lib/wire', 'lib/conf', 'lib/machines', 'lib/nri-runtime', 'lib/term']
ALLOWED['nri-rp-agent'] = ['lib/util', 'lib/wire', 'lib/conf', 'lib/grpc', 'lib/kube']
ALLOWED['nri-rp-bridge'] = ['lib/util', 'lib/wire', 'lib/grpc', 'lib/kube', 'lib/nri-runtime']
ALLOWED['nri-rp-modcheck'] = ['lib/util', 'lib/topo', 'lib/conf', 'lib/machines', 'cache', 'store', 'host', 'noderes', 'pipeline']
# There is one matcher of expressions, which works on the services that modules get; this file gives it them.
MATCHER = ('core/nri-rpd/host/expressions.c', 'modules/lib/private/match.h')


def includes(path):
    return [(kind, name) for kind, name in INCLUDE.findall(path.read_text(errors='replace'))]


def sources(*folders):
    return sorted(p for f in folders for p in (TOP / f).rglob('*') if p.suffix in ('.c', '.h'))


def folder_of(name):
    """Returns the row of ALLOWED that a file of core/ belongs to."""
    parts = name.split('/')[1:-1]
    if parts[0] == 'nri-rpd':
        inner = '/'.join(parts[1:])
        return 'metrics/map' if inner.startswith('metrics/map') else parts[1] if len(parts) > 1 else 'main'
    return '/'.join(parts[:2]) if parts[0] == 'lib' else parts[0]


def core_violations(paths):
    bad = []
    for path in paths:
        folder = folder_of(path.relative_to(TOP).as_posix())
        for kind, name in includes(path):
            parts = name.split('/')
            if parts[0] == 'modules' and (path.relative_to(TOP).as_posix(), name) != MATCHER:
                bad.append('%s includes %s: core knows no module' % (path, name))
            if parts[0] == 'core' and folder_of(name) != folder and folder_of(name) not in ALLOWED[folder]:
                bad.append('%s includes %s: the arrow points up' % (path, name))
    return bad


def module_violations(paths):
    bad = []
    for path in paths:
        for kind, name in includes(path):
            if name.startswith('core/') or name.startswith('proto/'):
                bad.append('%s includes %s: a module sees only <nri-rp/…>, modules/lib/private and libc' % (path, name))
    return bad


def test_every_core_folder_has_a_place():
    folders = {folder_of(p.relative_to(TOP).as_posix()) for p in sources('core')}
    assert folders == set(ALLOWED)


def test_core_includes_point_down():
    paths = sources('core')
    assert len(paths) > 50
    assert core_violations(paths) == []


def test_modules_include_no_core():
    paths = sources('modules', 'include')
    assert len(paths) > 10
    assert module_violations(paths) == []


def test_uthash_is_included_by_one_header_only():
    """They make it report that memory has ended; as it is, it ends the process."""
    users = [p.relative_to(TOP).as_posix() for p in sources('core', 'modules', 'test') if any(name == 'uthash.h' for _, name in includes(p))]
    assert users == ['core/lib/util/hash.h']
    assert all('#define HASH_NONFATAL_OOM 1\n#include <uthash.h>' in (TOP / user).read_text() for user in users)


def test_the_checks_can_fail(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), 'TOP', tmp_path)
    (tmp_path / 'core/lib/util').mkdir(parents=True)
    (tmp_path / 'modules/x').mkdir(parents=True)
    (tmp_path / 'core/lib/util/a.c').write_text('#include "core/nri-rpd/cache/cache.h"\n')
    (tmp_path / 'modules/x/b.c').write_text('#include "core/lib/util/err.h"\n')
    assert len(core_violations(sources('core'))) == 1
    assert len(module_violations(sources('modules'))) == 1


def test_sources_are_of_a_size_to_read():
    """But for the layouts of the ABI, which are made by a program and read by the compiler."""
    long = [(p, n) for p in sources('core', 'modules', 'include', 'test') if (n := len(p.read_text().splitlines())) > 900 and 'layout_' not in p.name]
    assert long == []


def test_lines_fit_on_a_screen():
    """A hundred columns, but for drawings."""
    wide = [(p.relative_to(TOP).as_posix(), n) for p in sources('core', 'modules', 'include', 'test')
            for n, line in enumerate(p.read_text().splitlines(), 1) if len(line.expandtabs(8)) > 100 and not re.search('[─│▶]', line)]
    assert wide == []


def test_sources_name_their_licence():
    assert [p for p in sources('core', 'modules', 'include', 'test') if 'SPDX-License-Identifier: Apache-2.0' not in p.read_text()[:200]] == []
