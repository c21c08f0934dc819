# SPDX-License-Identifier: Apache-2.0
"""nri-rpd itself: what it does on signals, and how it ends when it cannot begin."""
import os
import pathlib
import socket
import subprocess

import pytest

from simnode import BUILD, ctr, eventually

DAEMON = BUILD / 'bin' / 'nri-rpd'
EXIT_USAGE, EXIT_CONFIG = 2, 78


def test_full_debugging_by_signal(node):
    node.signal('USR1')
    node.log('full debugging is on')
    node.create('p', ctr('c', '1', '64Mi'))
    node.log('debug: nri: CreateContainer')
    node.signal('USR1')
    node.log('full debugging is off')
    node.delete('p')
    assert 'debug: nri: RemovePodSandbox' not in node.read_log()


def test_state_by_signal(node):
    node.create('web', ctr('app', '2', '64Mi'), ctr('side'))
    node.signal('USR2')
    node.log('state: policy static, 1 pods, 2 containers, 0 updates waiting$')
    node.log('state: default/web/app [0-9a-f]+: CPUs 0-15, memory nodes -')


DAC_OVERRIDE, SYS_PTRACE, SYS_ADMIN = 1 << 1, 1 << 19, 1 << 21
PRIVILEGES = {
    'nri-rpd': ('--config {0}/rp.conf --state-dir {0}/state --control-socket {0}/ctl.sock --nri-socket {0}/nri.sock',
                DAC_OVERRIDE | SYS_PTRACE | (SYS_ADMIN if os.path.exists('/dev/isst_interface') else 0)),
    'nri-rp-agent': ('--daemon-socket {0}/agent.sock --kubelet-socket {0}/kubelet.sock', DAC_OVERRIDE),
    'nri-rp-bridge': ('--listen {0}/cri.sock --runtime {0}/runtime.sock --nri-socket {0}/nri.sock', DAC_OVERRIDE),
}


def status(pid='self'):
    return dict(line.split(':\t', 1) for line in pathlib.Path('/proc/%s/status' % pid).read_text().splitlines())


@pytest.mark.parametrize('program', PRIVILEGES)
def test_privileges(tmp_path, program):
    """Of root's rights each keeps those that it has a reason for, for itself and all that it starts, and gets none back: started by hand."""
    options, keeps = PRIVILEGES[program]
    (tmp_path / 'rp.conf').write_text('policy: none\nmetrics: {listen: ""}\n')
    own = status()
    with subprocess.Popen([BUILD / 'bin' / program, *options.format(tmp_path).split()], stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: int(status(process.pid)['CapPrm'], 16) & ~keeps == 0 and status(process.pid)['NoNewPrivs'] == '1')
            said = status(process.pid)
        finally:
            process.kill()
    for held in ('CapPrm', 'CapEff') + (('CapBnd',) if os.geteuid() == 0 else ()):
        assert int(said[held], 16) == int(own[held], 16) & keeps, held
    assert int(said['CapInh'], 16) == int(said['CapAmb'], 16) == 0


def run(tmp_path, conf, *options, env=(), **how):
    """A daemon without a node around it, which is expected to end by itself."""
    path = tmp_path / 'rp.conf'
    if conf is not None:
        path.write_text(conf)
    command = [DAEMON, '--config', path, '--state-dir', tmp_path / 'state', '--control-socket', tmp_path / 'run' / 'control.sock',
               '--module-dir', BUILD / 'modules', *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ, **dict(env)), **how)


def test_wrong_option(tmp_path):
    done = run(tmp_path, 'policy: none\n', '--no-such-option')
    assert done.returncode == EXIT_USAGE
    assert '--no-such-option' in done.stderr


def test_no_configuration(tmp_path):
    done = run(tmp_path, None)
    assert done.returncode == EXIT_CONFIG
    assert str(tmp_path / 'rp.conf') in done.stderr


def test_no_configuration_says_where_the_state_is(tmp_path):
    """Without --state-dir it is read twice, and the first time has to say what is wrong as well."""
    path = tmp_path / 'rp.conf'
    path.write_text('cache: [\n')
    done = subprocess.run([DAEMON, '--config', path, '--control-socket', tmp_path / 'run' / 'control.sock'], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == EXIT_CONFIG
    assert '%s:2:1: not valid YAML' % path in done.stderr


def test_inherited_socket_is_none(tmp_path):
    for text in ('x', '-1', '2', '99999999'):
        done = run(tmp_path, 'policy: none\n', env={'NRI_PLUGIN_SOCKET': text})
        assert done.returncode not in (0, EXIT_USAGE)
        assert 'NRI_PLUGIN_SOCKET=%s is not a descriptor' % text in done.stderr
    done = run(tmp_path, 'policy: none\n', env={'NRI_PLUGIN_SOCKET': '1000'})
    assert done.returncode != 0
    assert 'the inherited file descriptor 1000 is not a connection' in done.stderr


def test_the_runtime_that_started_it_goes(tmp_path):
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        done = run(tmp_path, 'policy: none\n', env={'NRI_PLUGIN_SOCKET': str(theirs.fileno())}, pass_fds=[theirs.fileno()])
    assert done.returncode != 0
    assert 'the runtime that started this plugin has closed its connection' in done.stderr
