# SPDX-License-Identifier: Apache-2.0
"""nri-rp-agent as a service: the shipped unit, between a kubelet and the nri-rpd of test_systemd, which run under the same systemd.

As that one it has a name, a program and paths of its own; of the users every system has it gets the one that owns nothing it needs.
"""
import json
import os
import pathlib
import pwd
import re
import shutil
import signal

import pytest

from containerd import cpus
from kubelet import Kubelet
from test_systemd import BUILD, ONLINE, TOP, idle, nodes, pods, runtime, service  # noqa: F401, fixtures
from units import Unit, run, under_systemd

UNITS = TOP / 'packaging/systemd'
NAME = 'nri-rp-it-agent-%d' % os.getpid()
USER, NIC = 'daemon', 'example.com/nic'
CAP_DAC_OVERRIDE = 1
IN_MEMORY = 'tmpfs', 'devtmpfs', 'devpts', 'mqueue', 'hugetlbfs', 'proc'

pytestmark = under_systemd


def changed(path, what):
    text = path.read_text()
    for there, here in what:
        assert there in text, there
        text = text.replace(there, str(here))
    return text


class AgentService(Unit):
    def __init__(self, service, kubelet):
        super().__init__(NAME)
        self.folders = Unit(NAME + '-folders')
        self.daemon, self.dir = service, pathlib.Path('/var/lib/' + NAME)
        self.socket = pathlib.Path(service.socket).with_name('agent.sock')
        self.kubelet = kubelet

    def install(self):
        (self.dir / 'bin').mkdir(parents=True)
        shutil.copy(BUILD / 'bin/nri-rp-agent', self.dir / 'bin')
        (self.dir / 'env').write_text('NRI_RP_AGENT_OPTIONS=--daemon-socket %s --kubelet-socket %s\n' % (self.socket, self.kubelet.socket))
        seen = (('/run/nri-rp', self.socket.parent), ('/var/lib/kubelet/pod-resources', self.kubelet.dir), ('nri-rp-agent-folders', self.folders.name))
        own = (('@bindir@', self.dir / 'bin'), ('/etc/default/nri-rp-agent', self.dir / 'env'), ('User=nri-rp-agent', 'User=' + USER),
               ('Group=nri-rp-agent', 'Group=' + USER))
        self.folders.put(changed(UNITS / 'nri-rp-agent-folders.service.in', seen[:2]))
        text = changed(UNITS / 'nri-rp-agent.service.in', seen + own)
        # Programs are below /usr otherwise.
        self.put(text.replace('[Service]\n', '[Service]\nBindReadOnlyPaths=%s/bin\n' % self.dir))

    def remove(self):
        super().remove()
        self.folders.remove()
        shutil.rmtree(self.dir, ignore_errors=True)

    def ctl(self, *args):
        done = run(BUILD / 'bin/nri-rpctl', '--socket', self.daemon.socket, '--json', *args)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def connected(self, times=1):
        """Waits until it has connected so many times, and the daemon has it."""
        self.wait('%d connections' % times, lambda: self.journal_text().count('connected to nri-rpd at') == times)
        self.wait('the daemon has it', lambda: self.ctl('status')['agent']['connected'])

    def ask(self, pods, name, node):
        """Runs a pod with a device at that node, and returns its container and why that is where it is."""
        self.kubelet.pod('default/' + name, c={NIC: [node]})
        container = pods(name).run('c', 400)  # two fit onto the one CPU that a machine of two has left
        return container, '\n'.join(self.ctl('explain', name + '/c')['trail'])


@pytest.fixture
def kubelet():
    with Kubelet(folder='/var/lib') as k:
        yield k


@pytest.fixture
def agent(idle, kubelet):  # noqa: F811, a fixture
    """Installed, as is the daemon; neither is started."""
    a = AgentService(idle, kubelet)
    idle.configure('topology-aware', '{reservedResources: {cpu: "cpuset:%d"}}' % ONLINE[0],
                   'agent: {podResourceAPI: true, socket: %s, user: %s}\n' % (a.socket, USER))
    try:
        a.install()
        yield a
    finally:
        a.remove()


def test_it_asks_the_kubelet_for_the_daemon(agent, kubelet, pods):  # noqa: F811
    agent.daemon.start()
    agent.start()
    agent.connected()
    for node, of in nodes().items():
        container, why = agent.ask(pods, 'p%d' % node, node)
        assert 'the kubelet assigned %s at NUMA nodes %d' % (NIC, node) in why, agent.journal_text()
        assert cpus(container.allowed()) <= of
    assert kubelet.count('Get') == len(nodes())


def test_it_can_do_nothing_else(agent, kubelet):
    agent.daemon.start()
    agent.start()
    agent.connected()
    status = pathlib.Path('/proc/%d/status' % agent.pid()).read_text()
    assert re.search(r'^Uid:\s*(\d+)\s+(\d+)\s', status, re.M).groups() == (str(pwd.getpwnam(USER).pw_uid),) * 2
    for held in ('CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
        assert int(re.search(r'^%s:\s*(\w+)' % held, status, re.M).group(1), 16) == 1 << CAP_DAC_OVERRIDE, held
    root = pathlib.Path('/proc/%d/root' % agent.pid())
    assert (root / str(kubelet.socket)[1:]).is_socket() and (root / str(agent.socket)[1:]).is_socket()
    for hidden in ('etc/passwd', 'root', 'home', 'boot', 'var/lib/dpkg', 'run/systemd/system'):
        assert not (root / hidden).exists() or not any((root / hidden).iterdir()), hidden
    # What can be written to is its own.
    mounts = [line.split() for line in pathlib.Path('/proc/%d/mountinfo' % agent.pid()).read_text().splitlines()]
    of_the_node = {m[4]: m[m.index('-') + 1] for m in mounts if 'rw' in m[5].split(',') and m[m.index('-') + 1] not in IN_MEMORY}
    assert set(of_the_node) <= {'/tmp', '/var/tmp'}
    for folder in ('/', str(kubelet.dir), str(agent.socket.parent)):
        assert 'ro' in [m for m in mounts if m[4] == folder][-1][5].split(','), folder


@pytest.mark.parametrize('what', ['daemon', 'agent', 'kubelet'])
def test_it_comes_back_to_what_went_away(agent, kubelet, pods, what):  # noqa: F811
    # first of all, before there is a daemon
    agent.start()
    agent.wait_journal('cannot connect to nri-rpd')
    agent.daemon.start()
    agent.connected()
    node = max(nodes())
    agent.ask(pods, 'before', node)
    if what == 'daemon':
        pid = agent.daemon.pid()
        os.kill(pid, signal.SIGKILL)
        agent.daemon.restarted(pid)
    elif what == 'agent':
        os.kill(agent.pid(), signal.SIGKILL)
    else:
        kubelet.stop()
        kubelet.start()
    agent.connected(1 if what == 'kubelet' else 2)
    container, why = agent.ask(pods, 'after', node)
    assert 'the kubelet assigned %s at NUMA nodes %d' % (NIC, node) in why, agent.journal_text()
    assert cpus(container.allowed()) <= nodes()[node]
