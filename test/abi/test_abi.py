# SPDX-License-Identifier: Apache-2.0
"""The module ABI as authors meet it: the headers alone, the layout that was released, old and new modules, a build out of the tree."""
import glob
import os
import re
import shutil
import subprocess

import pytest

import layout

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('NRI_RP_BUILD', os.path.join(TOP, 'build'))
HEADERS = sorted(os.path.basename(h) for h in glob.glob(os.path.join(TOP, 'include/nri-rp/*.h')))
COMPILERS = [('gcc', '-std=c11', 'c'), ('clang', '-std=c11', 'c'), ('g++', '-std=c++17', 'c++'), ('clang++', '-std=c++17', 'c++')]
INCLUDE = '-I' + os.path.join(TOP, 'include')


def run(cmd, **kw):
    return subprocess.run(cmd, capture_output=True, text=True, errors='replace', **kw)


def must(cmd, **kw):
    done = run(cmd, **kw)
    assert done.returncode == 0, '%s\n%s%s' % (' '.join(cmd), done.stdout, done.stderr)
    return done.stdout


def need(program):
    if not shutil.which(program):
        pytest.skip(program + ' is not installed')


def exported(path):
    return [line.split()[-1] for line in must(['nm', '-D', '--defined-only', path]).split('\n') if line]


def is_instrumented():
    with open(os.path.join(BUILD, 'flags'), encoding='utf-8') as f:
        flags = f.read()
    return '-fsanitize' in flags or '--coverage' in flags


def check_config(policy, folders, tmp_path, section=''):
    """nri-rpd's word on a configuration with that policy, on this machine."""
    daemon = os.path.join(BUILD, 'bin/nri-rpd')
    if not os.path.exists(daemon):
        pytest.skip('nri-rpd is not built')
    conf = tmp_path / 'rp.conf'
    conf.write_text('policy: %s\n%s' % (policy, section))
    cmd = [daemon, '--check-config', '--config', str(conf), '--state-dir', str(tmp_path / 'state')]
    for folder in folders:
        cmd += ['--module-dir', str(folder)]
    return run(cmd)


@pytest.mark.parametrize('header', HEADERS)
@pytest.mark.parametrize('compiler,standard,language', COMPILERS, ids=[c[0] for c in COMPILERS])
def test_header_alone(header, compiler, standard, language):
    need(compiler)
    source = '#include <nri-rp/%s>\n#include <nri-rp/%s>\nint main(void) { return 0; }\n' % (header, header)
    must([compiler, standard, '-x', language, '-Wall', '-Wextra', '-Wpedantic', '-Werror', INCLUDE, '-fsyntax-only', '-'], input=source)


@pytest.mark.parametrize('compiler', ['gcc', 'clang'])
def test_layout(compiler):
    need(compiler)
    must([compiler, '-std=c11', '-Wall', '-Wextra', '-Werror', INCLUDE, '-fsyntax-only', layout.LAYOUT])


def test_layout_is_complete():
    """The file has every struct and constant of the headers, and the headers break no row of an earlier minor."""
    with open(layout.LAYOUT, encoding='utf-8') as f:
        assert f.read() == layout.text(), 'run test/abi/layout.py'


@pytest.mark.parametrize('module', sorted(glob.glob(os.path.join(BUILD, 'modules/*.so'))) or [''],
                         ids=lambda p: os.path.basename(p) or 'none')
def test_one_symbol(module):
    if not module:
        pytest.skip('no modules are built')
    if is_instrumented():
        pytest.skip('instrumented modules export what their compiler adds')
    assert exported(module) == ['rp_module_1']


@pytest.mark.parametrize('name', ['good', 'shorter', 'longer'])
def test_other_versions(name, tmp_path):
    """Modules built with structs that end sooner or later than the host's."""
    if not os.path.exists(os.path.join(BUILD, 'test/modules', name + '.so')):
        pytest.skip('test modules are not built')
    done = check_config(name, [os.path.join(BUILD, 'test/modules')], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_whose_kind(tmp_path):
    """All modules that are installed are looked at for the kind of a custom resource, and there may be more than can be loaded at a time."""
    folder = os.path.join(BUILD, 'test/modules')
    if is_instrumented():
        pytest.skip('one of them has a constructor, which is looked for in plain builds alone')
    assert len(glob.glob(folder + '/*.so')) > 64
    done = check_config('good', [folder], tmp_path, '---\napiVersion: config.nri/v1alpha1\nkind: NobodysPolicy\nspec: {}\n')
    assert done.returncode == 78
    assert 'no installed module has custom resources of kind "NobodysPolicy"' in done.stdout
    assert 'are already' not in done.stderr, done.stderr


@pytest.mark.parametrize('name,word', [('wrong-major', 'ABI'), ('newer', 'host'), ('no-symbol', 'rp_module_1')])
def test_refused_versions(name, word, tmp_path):
    if not os.path.exists(os.path.join(BUILD, 'test/modules', name + '.so')):
        pytest.skip('test modules are not built')
    done = check_config(name, [os.path.join(BUILD, 'test/modules')], tmp_path)
    assert done.returncode == 78
    assert word in done.stdout + done.stderr


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """What `make install-dev` gives a module's author."""
    if not os.path.exists(os.path.join(BUILD, 'libnri-rp-module.a')):
        pytest.skip('nothing is built')
    dest = tmp_path_factory.mktemp('installed')
    env = {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL')}
    # what is built is taken as it is, whatever flags it was built with
    must(['make', '-C', TOP, '--no-print-directory', 'O=' + os.path.abspath(BUILD), 'DESTDIR=%s' % dest, 'KEEP_FLAGS=1',
          '-o', os.path.join(os.path.abspath(BUILD), 'libnri-rp-module.a'), '-o', 'all', 'install-dev'], env=env)
    return dest


def author_env(installed):
    return dict(os.environ, PKG_CONFIG_PATH=str(installed / 'usr/lib/pkgconfig'), PKG_CONFIG='pkg-config --define-prefix')


@pytest.mark.parametrize('name, policy, section', [
    ('template', 'template', 'template: {reservedResources: {cpu: 1}}\n'),
    ('template-calculator', 'none', 'calculators: {template-calculator: required}\ntemplate-calculator: {percent: 60}\n')])
def test_out_of_tree(name, policy, section, installed, tmp_path):
    """A template, copied to another place and built against the installed tree alone."""
    if is_instrumented():
        pytest.skip('libnri-rp-module.a is instrumented')
    folder = tmp_path / 'mine'
    shutil.copytree(installed / 'usr/share/nri-rp' / name, folder)
    env = author_env(installed)
    env.pop('MAKEFLAGS', None)
    must(['make', '-C', str(folder), 'CFLAGS=-O2 -Werror', 'all'], env=env)
    built = list(folder.glob('*.so'))
    assert [p.name for p in built] == [name + '.so']
    assert exported(str(built[0])) == ['rp_module_1']
    os.chmod(built[0], 0o644)
    shutil.copy(os.path.join(BUILD, 'modules/none.so'), folder)
    done = check_config(policy, [folder], tmp_path, section)
    assert done.returncode == 0, done.stdout + done.stderr
    # and installed
    must(['make', '-C', str(folder), 'DESTDIR=%s' % (tmp_path / 'dest'), 'install'], env=env)
    assert list((tmp_path / 'dest').rglob(name + '.so'))


def test_recipe_of_the_manual(installed, tmp_path):
    """The commands of nri-rp-module(7), run as printed by an author who has installed the headers."""
    if is_instrumented():
        pytest.skip('libnri-rp-module.a is instrumented')
    with open(os.path.join(TOP, 'man/nri-rp-module.7'), encoding='utf-8') as f:
        block = re.search(r'^\.Sh STARTING\n.*?^\.Bd [^\n]*\n(.*?)^\.Ed', f.read(), re.M | re.S)[1]
    commands = re.findall(r'^\$ (.*)', block, re.M)
    assert len(commands) == len(block.splitlines())
    (tmp_path / 'pkg-config').write_text('#!/bin/sh\nexec %s --define-prefix "$@"\n' % shutil.which('pkg-config'))
    os.chmod(tmp_path / 'pkg-config', 0o755)
    env = dict(os.environ, PKG_CONFIG_PATH=str(installed / 'usr/lib/pkgconfig'), PATH='%s:%s' % (tmp_path, os.environ['PATH']))
    env.pop('MAKEFLAGS', None)
    out = must(['sh', '-e', '-c', '\n'.join(commands)], cwd=tmp_path, env=env)
    assert re.search(r'\b0 failed', out), out
    assert exported(str(tmp_path / 'mine/mine.so')) == ['rp_module_1']


def test_policy_of_the_readme(installed, tmp_path):
    """The policy that the library's README prints, which is all that an author has to write."""
    if is_instrumented():
        pytest.skip('libnri-rp-module.a is instrumented')
    text = (installed / 'usr/include/nri-rp/lib/README').read_text()
    code = re.search(r'^\t#include <string.h>\n.*?LIFE_MODULE[^\n]*', text, re.M | re.S)[0]
    (tmp_path / 'fast.c').write_text(re.sub(r'^\t', '', code, flags=re.M) + '\n')
    (tmp_path / 'Makefile').write_text('MODULE := fast\nSOURCES := fast.c\ninclude $(shell $(PKG_CONFIG) --variable=makefile nri-rp-module)\n')
    out = must(['make', '-C', str(tmp_path), 'CFLAGS=-O2 -Werror', 'check'], env=author_env(installed))
    assert re.search(r'\b0 failed', out), out


def test_minimal_module(installed, tmp_path):
    """A module of the least that works, with no help but the headers, by both compilers."""
    source = tmp_path / 'least.c'
    source.write_text(r'''
#include <nri-rp/policy.h>
#include <string.h>
struct rp_instance { int unused; };
struct rp_plan { int unused; };
static struct rp_instance instance;
static struct rp_plan plan;
static int32_t create(const struct rp_host *host, struct rp_instance **ret) { (void)host; *ret = &instance; return 0; }
static void destroy(struct rp_instance *i) { (void)i; }
static int32_t prepare(struct rp_instance *i, rp_cfg c, struct rp_plan **ret) { (void)i; (void)c; *ret = &plan; return 0; }
static void end(struct rp_instance *i, struct rp_plan *p) { (void)i; (void)p; }
static int32_t sync(struct rp_instance *i, rp_txn t) { (void)i; (void)t; return 0; }
static int32_t one(struct rp_instance *i, rp_txn t, rp_ctr c) { (void)i; (void)t; (void)c; return 0; }
static const struct rp_policy policy = {.size = sizeof policy, .prepare = prepare, .commit = end, .abort = end, .sync = sync,
	.allocate = one, .update = one, .release = one};
static const void *service(struct rp_instance *i, const char *id) { return i && !strcmp(id, RP_POLICY_1) ? &policy : NULL; }
RP_MODULE_DEFINE("least", "0.1", RP_KIND_POLICY, .create = create, .destroy = destroy, .service = service);
''')
    for compiler in ('gcc', 'clang'):
        need(compiler)
        must([compiler, '-std=gnu11', '-fPIC', '-shared', '-fvisibility=hidden', '-Wall', '-Wextra', '-Werror', '-Wl,-z,defs',
              '-Wl,-z,noexecstack', '-I%s' % (installed / 'usr/include'), '-o', str(tmp_path / 'least.so'), str(source)])
        assert exported(str(tmp_path / 'least.so')) == ['rp_module_1']
        done = check_config('least', [tmp_path], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
