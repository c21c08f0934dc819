# SPDX-License-Identifier: Apache-2.0
"""The tree is the architecture: includes point down, modules see only the public headers."""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)

# Who may include whom, each its own folder besides.
BELOW = {'util': [], 'topo': ['util'], 'conf': ['util'], 'wire': ['util']}
BELOW['cache'] = ['util', 'topo', 'conf']
BELOW['host'] = BELOW['cache'] + ['cache']
BELOW['noderes'] = BELOW['host'] + ['host']
BELOW['pipeline'] = BELOW['noderes'] + ['noderes']
BELOW['runtime'] = BELOW['pipeline'] + ['pipeline', 'wire']
BELOW['metrics'] = BELOW['pipeline'] + ['pipeline', 'wire']
BELOW['ctl'] = BELOW['pipeline'] + ['pipeline', 'wire']
BELOW['map'] = BELOW['metrics'] + ['metrics', 'ctl']
BELOW['agent'] = BELOW['pipeline'] + ['pipeline', 'wire']
BELOW['daemon'] = [folder for folder in BELOW]
# For programs other than the daemon.
BELOW['grpc'] = BELOW['nri-runtime'] = ['util', 'wire']
BELOW['machines'] = BELOW['kube'] = ['util', 'conf']
BELOW['term'] = ['util']
# nri-rpctl speaks the control socket's protocol, and lists and checks modules by itself where no daemon runs.
PROGRAMS = {'nri-rpctl': ['util', 'wire', 'conf', 'ctl', 'host', 'term'],
            'nri-rp-sim': ['util', 'wire', 'conf', 'machines', 'nri-runtime', 'term'],
            # What nri-rpd asks it is agent's protocol; nothing of the daemon itself.
            'nri-rp-agent': ['util', 'wire', 'conf', 'agent', 'grpc', 'kube'],
            'nri-rp-bridge': ['util', 'wire', 'agent', 'grpc', 'kube', 'nri-runtime'],
            'nri-rp-modcheck': ['util', 'topo', 'conf', 'machines', 'cache', 'host', 'noderes']}
ALLOWED = {**BELOW, **PROGRAMS}
# There is one matcher of expressions, which works on the services that modules get; this file gives it them.
MATCHER = ('core/host/expressions.c', 'modules/lib/match.h')


def includes(path):
    return [(kind, name) for kind, name in INCLUDE.findall(path.read_text(errors='replace'))]


def sources(*folders):
    return sorted(p for f in folders for p in (TOP / f).rglob('*') if p.suffix in ('.c', '.h'))


def core_violations(paths):
    bad = []
    for path in paths:
        folder = path.relative_to(TOP / 'core').parts[0]
        for kind, name in includes(path):
            parts = name.split('/')
            if parts[0] == 'modules' and (path.relative_to(TOP).as_posix(), name) != MATCHER:
                bad.append('%s includes %s: core knows no module' % (path, name))
            if parts[0] == 'core' and parts[1] != folder and parts[1] not in ALLOWED[folder]:
                bad.append('%s includes %s: the arrow points up' % (path, name))
    return bad


def module_violations(paths):
    bad = []
    for path in paths:
        for kind, name in includes(path):
            if name.startswith('core/') or name.startswith('proto/'):
                bad.append('%s includes %s: a module sees only <nri-rp/…>, modules/lib and libc' % (path, name))
    return bad


def test_every_core_folder_has_a_place():
    folders = {p.name for p in (TOP / 'core').iterdir() if p.is_dir() and any(p.glob('*.c'))}
    assert folders <= set(ALLOWED), folders - set(ALLOWED)


def test_core_includes_point_down():
    paths = sources('core')
    assert len(paths) > 50
    assert core_violations(paths) == []


def test_modules_include_no_core():
    paths = sources('modules', 'include')
    assert len(paths) > 10
    assert module_violations(paths) == []


def test_the_checks_can_fail(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), 'TOP', tmp_path)
    (tmp_path / 'core/util').mkdir(parents=True)
    (tmp_path / 'modules/x').mkdir(parents=True)
    (tmp_path / 'core/util/a.c').write_text('#include "core/cache/cache.h"\n')
    (tmp_path / 'modules/x/b.c').write_text('#include "core/util/err.h"\n')
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
