# SPDX-License-Identifier: Apache-2.0
"""The script that switches NRI on in a host's runtime: it changes nothing else, and takes it back."""
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
}


def run(root, *args, fails=None):
    done = subprocess.run([SCRIPT, '--root', root, *args], capture_output=True, text=True)
    assert (fails in done.stderr and done.returncode == 1) if fails else done.returncode == 0, done.stderr
    return done.stdout


def files(root):
    return {p.relative_to(root).as_posix(): p.read_text() for p in root.rglob('*') if p.is_file()}


@pytest.fixture
def config(tmp_path):
    (tmp_path / 'etc/containerd').mkdir(parents=True)
    return tmp_path / 'etc/containerd/config.toml'


@pytest.mark.parametrize('text', TEXTS.values(), ids=TEXTS)
def test_on_and_back(config, tmp_path, text):
    config.write_text(text)
    before, said = tomllib.loads(text), run(tmp_path)
    now = tomllib.loads(config.read_text())
    assert 'switched on' in said and 'has to be restarted' in said
    wanted = {**before, 'version': before.get('version', 2)}
    wanted['plugins'] = {**before.get('plugins', {}), NRI: {**before.get('plugins', {}).get(NRI, {}), 'disable': False}}
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
    ('version = 2\nplugins."%s".disable = true\n' % NRI, 'does not know'),
])
def test_what_it_does_not_touch(config, tmp_path, text, why):
    config.write_text(text)
    run(tmp_path, fails=why)
    assert files(tmp_path) == {'etc/containerd/config.toml': text}


def test_crio(tmp_path):
    (tmp_path / 'etc/crio').mkdir(parents=True)
    run(tmp_path)
    (path, text), = files(tmp_path).items()
    assert path.startswith('etc/crio/crio.conf.d/') and tomllib.loads(text) == {'crio': {'nri': {'enable_nri': True}}}
    assert 'already' in run(tmp_path)
    run(tmp_path, '--undo')
    assert files(tmp_path) == {}


def test_which_runtime_is_not_clear(tmp_path):
    run(tmp_path, fails='neither')
    (tmp_path / 'etc/crio').mkdir(parents=True)
    (tmp_path / 'etc/containerd').mkdir()
    run(tmp_path, fails='both')
    assert files(tmp_path) == {}
