# SPDX-License-Identifier: Apache-2.0
"""The script that switches NRI on in a host's runtime: it changes nothing else, and takes it back."""
import os
import pathlib
import subprocess
import tomllib

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'packaging' / 'kubernetes' / 'enable-nri' / 'enable-nri'
NRI = 'io.containerd.nri.v1.nri'
TEXTS = {
    'an old default': 'version = 2\n[plugins]\n  [plugins."io.containerd.grpc.v1.cri"]\n    sandbox_image = "x"\n  [plugins."%s"]\n'
                      '    disable = true # for now\n    socket_path = "/s"\n\n[timeouts]\n  disable = "no"\n' % NRI,
    'a new default': "version = 3\n[plugins]\n  [plugins.'%s']\n    socket_path = '/s'\n  [plugins.'other']\n    disable = true\n" % NRI,
    'at its end': "version = 3\n[plugins.'%s']\n" % NRI,
    'without the table': 'version = 2\nroot = "/r"\n[plugins."other"]\n  disable = true\n',
    'without a last newline': 'version = 2\nroot = "/r"',
    'empty': '',
    'comments only': '# version = 2\n# [plugins]\n\n',
    'version 4': "version = 4\n[plugins]\n  [plugins.'%s']\n    disable = true\n    disable_connections = false\n" % NRI,
    'quoted tables': '"version" = 2\n["plugins" . "%s"]\n  "disable" = true\n  plugin_path = "/p"\n' % NRI,
    'DOS lines': ('version = 2\n[plugins]\n  [plugins."%s"]\n    disable = true\n[timeouts]\n  a = "1s"\n' % NRI).replace('\n', '\r\n'),
    'without connections': "version = 3\n[plugins.'%s']\n  disable = false\n  disable_connections = true # nobody\n" % NRI,
    'other plugins disabled in lines': 'version = 2\ndisabled_plugins = [\n  "a", # ] and %s\n  "b",\n]\n[plugins.x]\n  y = { z = [1, 2] }\n' % NRI,
    'text that looks like a table': 'version = 2\n[plugins.x]\n  text = """\n[plugins."%s"]\ndisable = true # \\\n"""\n  other = \'\'\'\n[[[\n\'\'\'\n' % NRI,
    'tables below': "version = 2\n[plugins.'%s'.more]\n  disable = true\n[[list]]\n  disable = true\n" % NRI,
    'a disable that is no one of ours': 'version = 2\n[plugins.x]\n  disable = true\n  disable_connections = true\n',
}


def run(root, *args, fails=None):
    done = subprocess.run([SCRIPT, '--root', root, *args], capture_output=True, text=True)
    assert (fails in done.stderr and done.returncode == 1) if fails else done.returncode == 0, done.stderr
    return done.stdout


def files(root):
    return {p.relative_to(root).as_posix(): p.read_bytes().decode() for p in root.rglob('*') if p.is_file()}


@pytest.fixture
def config(tmp_path):
    (tmp_path / 'etc/containerd').mkdir(parents=True)
    return tmp_path / 'etc/containerd/config.toml'


@pytest.mark.parametrize('text', TEXTS.values(), ids=TEXTS)
def test_on_and_back(config, tmp_path, text):
    config.write_text(text, newline='')
    before, said = tomllib.loads(text), run(tmp_path)
    now = tomllib.loads(config.read_text())
    assert 'switched on' in said and 'has to be restarted' in said
    wanted = {**before, 'version': before.get('version', 2)}
    nri = {**before.get('plugins', {}).get(NRI, {}), 'disable': False}
    if 'disable_connections' in nri:
        nri['disable_connections'] = False
    wanted['plugins'] = {**before.get('plugins', {}), NRI: nri}
    assert now == wanted
    once = config.read_text()
    assert 'already' in run(tmp_path) and config.read_text() == once
    run(tmp_path, '--undo')
    assert files(tmp_path) == {'etc/containerd/config.toml': text}


def test_there_is_no_file(config, tmp_path):
    run(tmp_path)
    assert tomllib.loads(config.read_text()) == {'version': 2, 'plugins': {NRI: {'disable': False}}}
    run(tmp_path, '--undo')
    assert files(tmp_path) == {}


def test_what_somebody_changed_since_stays(config, tmp_path):
    config.write_text(TEXTS['without the table'])
    run(tmp_path)
    config.write_text(config.read_text() + '# mine\n')
    before = files(tmp_path)
    run(tmp_path, '--undo', fails='somebody has changed')
    assert files(tmp_path) == before


@pytest.mark.parametrize('text, why', [
    ('root = "/r"\n', 'of version 1'),
    ('version = 2\ndisabled_plugins = ["io.containerd.nri.v1.nri"]\n', 'disabled_plugins'),
    ('version = 5\n', 'is of version 5'),
    ('[debug]\nversion = 2\n', 'of version 1'),
    ('version = 2\nplugins."%s".disable = true\n' % NRI, 'does not know'),
    ('version = 2\nplugins = { "%s" = { disable = true } }\n' % NRI, 'line 2, an inline table'),
    ('version = 2\n[plugins]\n  "%s" = { disable = true }\n' % NRI, 'line 3, an inline table'),
    ('version = 2\n[plugins]\n  "%s".disable = true\n' % NRI, 'line 3, dotted keys'),
    ('version = 2\n[plugins]\n  "io.containerd\\u002enri.v1.nri" = { disable = true }\n', 'line 3, a key'),
    ('version = 2\n[[plugins."%s"]]\n  disable = true\n' % NRI, 'line 2, a list'),
    ('version = 2\ndisabled_plugins = [ # none\n  "a",\n  \'%s\',\n]\n' % NRI, 'disabled_plugins'),
    ('version = 2\r\ndisabled_plugins = [\r\n  "%s"]\r\n' % NRI, 'disabled_plugins'),
    ('version = 2\nx = [\n', 'a value without an end'),
    ('version = 2\nx = "\n', 'line 2, a text'),
])
def test_what_it_does_not_touch(config, tmp_path, text, why):
    config.write_text(text, newline='')
    run(tmp_path, fails=why)
    assert files(tmp_path) == {'etc/containerd/config.toml': text}


FAKE = '''#!/usr/bin/python3
# nsenter into a host that has a containerd: it reads TOML as strictly as that, and dumps it with %(more)r added.
import subprocess, sys, tomllib
command = [w.replace('/etc/containerd', '%(root)s/etc/containerd') for w in sys.argv[sys.argv.index('--') + 1:]]
if command[0] != 'containerd':
    sys.exit(subprocess.run(command).returncode)
if '--version' in command:
    sys.exit()
assert command[1] == '--config' and command[3:] == ['config', 'dump'], command
text = open(command[2], newline='').read()
try:
    tomllib.loads(text)
    if '%(refuses)s' in text:
        raise ValueError('containerd: invalid plugin config')
except ValueError as e:
    sys.exit('containerd: failed to load TOML: %%s' %% e)
if '%(dropped)s':
    text = text.split('\\n[plugins."io.containerd.nri.v1.nri".%(dropped)s')[0]
print(text + %(more)r)
'''


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host whose containerd reads files."""
    def make(more='', refuses='never', dropped=''):
        (tmp_path / 'bin').mkdir()
        (tmp_path / 'bin' / 'nsenter').write_text(FAKE % {'root': tmp_path / 'host', 'more': more, 'refuses': refuses, 'dropped': dropped})
        (tmp_path / 'bin' / 'nsenter').chmod(0o755)
        monkeypatch.setenv('PATH', '%s:%s' % (tmp_path / 'bin', os.environ['PATH']))
        (tmp_path / 'host/etc/containerd').mkdir(parents=True)
        return tmp_path / 'host'
    return make


def test_containerd_reads_it_before_it_is_put_in_place(host):
    root = host()
    (root / 'etc/containerd/config.toml').write_text(TEXTS['an old default'])
    assert 'no containerd' not in run(root)
    run(root, '--undo')
    assert files(root) == {'etc/containerd/config.toml': TEXTS['an old default']}


@pytest.mark.parametrize('more, refuses, why', [
    ('', 'sandbox_image', 'does not read what would be'),
    ('[plugins."%s"]\n  disable = true\n' % NRI, 'never', 'still has disable'),
    ('[plugins."%s"]\n  disable_connections = true\n' % NRI, 'never', 'still has disable_connections'),
], ids=['refused', 'imports say otherwise', 'imports let nobody in'])
def test_containerd_makes_something_else_of_it(host, more, refuses, why):
    root = host(more, refuses)
    (root / 'etc/containerd/config.toml').write_text(TEXTS['an old default'])
    run(root, fails=why)
    assert files(root) == {'etc/containerd/config.toml': TEXTS['an old default']}


def test_crio(tmp_path):
    (tmp_path / 'etc/crio').mkdir(parents=True)
    run(tmp_path)
    (path, text), = files(tmp_path).items()
    assert path.startswith('etc/crio/crio.conf.d/') and tomllib.loads(text) == {'crio': {'nri': {'enable_nri': True}}}
    assert 'already' in run(tmp_path)
    run(tmp_path, '--undo')
    assert files(tmp_path) == {}


VALIDATOR = {'enable': True, 'required_plugins': ['nri-rp'], 'tolerate_missing_plugins_annotation': 'tolerate-missing-plugins.nri-rp.io'}


@pytest.mark.parametrize('text', [t for n, t in TEXTS.items()], ids=TEXTS)
def test_containers_are_refused_without_the_plugin(config, tmp_path, text):
    """Also where NRI was switched on before; the way back is that to the first file."""
    config.write_text(text, newline='')
    run(tmp_path)
    assert 'requires nri-rp' in run(tmp_path, '--require-plugin')
    now = tomllib.loads(config.read_text())
    assert now['plugins'][NRI]['default_validator'] == VALIDATOR and now['plugins'][NRI]['disable'] is False
    once = config.read_text()
    assert 'already' in run(tmp_path, '--require-plugin') and config.read_text() == once
    assert 'already' in run(tmp_path) and config.read_text() == once
    run(tmp_path, '--undo')
    assert files(tmp_path) == {'etc/containerd/config.toml': text}


def test_a_validator_of_the_site(config, tmp_path):
    text = "version = 3\n[plugins.'%s']\n  disable = false\n[plugins.'%s'.default_validator]\n  enable = true\n  required_plugins = ['a'%%s]\n" % (NRI, NRI)
    config.write_text(text % '')
    run(tmp_path, '--require-plugin', fails='add "nri-rp" to required_plugins')
    assert config.read_text() == text % ''
    config.write_text(text % ", 'nri-rp'")
    assert 'already' in run(tmp_path, '--require-plugin')


def test_a_containerd_without_a_validator(host):
    """That of 2.1 leaves the table out."""
    root = host(dropped='default_validator')
    (root / 'etc/containerd/config.toml').write_text(TEXTS['an old default'])
    run(root, '--require-plugin', fails='containerd 2.2 or later is needed')
    assert files(root) == {'etc/containerd/config.toml': TEXTS['an old default']}
    run(root)


def test_containerd_requires_it(host):
    root = host()
    (root / 'etc/containerd/config.toml').write_text(TEXTS['an old default'])
    assert 'no containerd' not in run(root, '--require-plugin')


def test_crio_refuses_containers_without_the_plugin(tmp_path):
    (tmp_path / 'etc/crio').mkdir(parents=True)
    run(tmp_path)
    run(tmp_path, '--require-plugin')
    (_, text), = files(tmp_path).items()
    assert tomllib.loads(text)['crio']['nri'] == {'enable_nri': True, 'default_validator': {
        'nri_enable_default_validator': True, 'nri_validator_required_plugins': ['nri-rp'],
        'nri_validator_tolerate_missing_plugins_annotation': 'tolerate-missing-plugins.nri-rp.io'}}
    assert 'already' in run(tmp_path, '--require-plugin')
    run(tmp_path, '--undo')
    assert files(tmp_path) == {}


def test_which_runtime_is_not_clear(tmp_path):
    run(tmp_path, fails='neither')
    (tmp_path / 'etc/crio').mkdir(parents=True)
    (tmp_path / 'etc/containerd').mkdir()
    run(tmp_path, fails='both')
    assert files(tmp_path) == {}
