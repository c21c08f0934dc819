# SPDX-License-Identifier: Apache-2.0
"""Completion in zsh and fish, as `make install` puts it there: what it offers is what bash's completion offers."""
import os
import pathlib
import pty
import select
import shutil
import subprocess
import time

import pytest

from simnode import Node, ctr

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build')).resolve()
PATIENCE = 60

zsh = pytest.mark.skipif(not shutil.which('zsh'), reason='needs zsh')
fish = pytest.mark.skipif(not shutil.which('fish'), reason='needs fish')
pytestmark = pytest.mark.skipif(not (BUILD / 'bin/nri-rpctl').exists(), reason='nothing is built')


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    prefix = tmp_path_factory.mktemp('completion') / 'usr'
    env = {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL')}
    subprocess.run(['make', '-C', TOP, '--no-print-directory', 'O=%s' % BUILD, 'PREFIX=%s' % prefix, 'SYSCONFDIR=%s/etc' % prefix,
                    'KEEP_FLAGS=1', '-o', 'all', 'install-node'], env=env, check=True, capture_output=True)
    return prefix


def environment(installed, home):
    return {'PATH': '%s:%s:%s' % (installed / 'bin', BUILD / 'bin', os.environ['PATH']), 'HOME': str(home), 'TERM': 'dumb', 'LC_ALL': 'C.UTF-8'}


def fish_offers(installed, home, line):
    script = 'source %s/share/fish/vendor_completions.d/%s.fish; complete -C %r' % (installed, line.split()[0], line)
    done = subprocess.run(['fish', '--no-config', '-c', script], env=environment(installed, home), cwd=home, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0 and done.stderr == ''
    return set(done.stdout.splitlines())


def bash_offers(installed, home, line):
    words = line.split(' ')
    done = subprocess.run(['bash', installed / 'share/nri-rp/complete.bash', installed / 'share/bash-completion/completions' / words[0], *words],
                          env=environment(installed, home), cwd=home, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stderr == ''
    return set(done.stdout.splitlines())


@fish
@pytest.mark.parametrize('line', ['nri-rpctl ', 'nri-rpctl co', 'nri-rpctl config check --', 'nri-rpctl log level ', 'nri-rp-agent --', 'nri-rp-bridge --log-level ',
                                  'nri-rpctl plan ', 'nri-rpd --log-level ', 'nri-rpd --', 'nri-rp-sim ', 'nri-rp-sim --runtime ', 'nri-rp-modcheck --'])
def test_fish_offers_what_bash_does(installed, tmp_path, line):
    (tmp_path / 'next.conf').write_text('')
    offered = bash_offers(installed, tmp_path, line)
    assert offered and fish_offers(installed, tmp_path, line) == offered


def test_commands_come_with_what_they_do(installed, tmp_path):
    offered = dict(line.split('\t') for line in bash_offers(installed, tmp_path, 'nri-rpctl ') if '\t' in line)
    assert 'containers and their placement' in offered['containers'] and len(offered) > 20


def test_explain_offers_pods(installed, tmp_path):
    """A pod is explained, too, and one that was refused has no container."""
    with Node({'policy': 'none'}) as node:
        node.create('web', ctr('app', '1'))
        words = ['nri-rpctl', '--socket', node.paths['control'], 'explain', '']
        done = subprocess.run(['bash', installed / 'share/nri-rp/complete.bash', installed / 'share/bash-completion/completions/nri-rpctl', *words],
                              env=environment(installed, tmp_path), capture_output=True, text=True, timeout=PATIENCE)
    assert {'default/web/app', 'web'} <= set(done.stdout.split()), done.stdout


class Zsh:
    """A zsh that somebody types at."""

    def __init__(self, installed, home):
        (home / '.zshrc').write_text('fpath+=(%s/share/zsh/site-functions)\nautoload -U compinit\ncompinit -u\nPS1="ready> "\n' % installed)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execvpe('zsh', ['zsh', '-i'], environment(installed, home))
        self.seen = ''
        self.wait('ready> ')

    def wait(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.fd], [], [], left)[0], 'no %r in %r' % (text, self.seen)
            self.seen += os.read(self.fd, 4096).decode(errors='replace')

    def type(self, text):
        self.seen = ''
        os.write(self.fd, text.encode())

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def typist(installed, tmp_path):
    (tmp_path / 'next.conf').write_text('')
    shell = Zsh(installed, tmp_path)
    yield shell
    shell.close()


@zsh
@pytest.mark.parametrize('typed,completed', [('nri-rpctl rebal', 'rebalance'), ('nri-rpctl config check --lo', '--local'), ('nri-rpctl plan ne', 'next.conf'),
                                             ('nri-rp-agent --daemon', '--daemon-socket'), ('nri-rp-bridge --log-level war', 'warning'), ('nri-rpd --check', '--check-config'),
                                             ('nri-rp-sim mach', 'machine'), ('nri-rp-modcheck --sani', '--sanitize')])
def test_zsh_completes(typist, typed, completed):
    typist.type(typed + '\t')
    typist.wait(completed[len(typed.split(' ')[-1]):])
    typist.type('\x15echo ok-$((6 * 7))\n')
    typist.wait('ok-42')
