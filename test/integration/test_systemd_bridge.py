# SPDX-License-Identifier: Apache-2.0
"""nri-rp-bridge as a service, in both ways to be one: the shipped units, with the nri-rpd of test_systemd behind it and a containerd without NRI."""
import os
import pathlib
import shutil
import signal

import pytest

from containerd import cpus, wait_for
from test_bypass import drop_runtime, new_runtime
from test_systemd import BUILD, NOT_PRIVATE, ONLINE, STATIC, Service, held, needs_two_cpus, pods  # noqa: F401, a fixture
from test_systemd_agent import UNITS, changed
from units import Unit, run, under_systemd

NAME = 'nri-rp-it-bridge-%d' % os.getpid()
SOCKET = pathlib.Path('/run/systemd/system', NAME + '.socket')

pytestmark = [under_systemd, needs_two_cpus]


class BridgeService(Unit):
    def __init__(self, runtime, source):
        super().__init__(NAME)
        self.runtime, self.source = runtime, source
        self.dir, self.run = pathlib.Path('/var/lib/' + NAME), pathlib.Path('/run/' + NAME)
        self.nri, self.cri = self.run / 'nri.sock', self.run / 'cri.sock'

    def install(self):
        (self.dir / 'bin').mkdir(parents=True)
        shutil.copy(BUILD / 'bin/nri-rp-bridge', self.dir / 'bin')
        of_source = {'cri': ('NRI_RP_BRIDGE_OPTIONS', '--runtime %s' % self.runtime.socket),
                     'cgroups': ('NRI_RP_BRIDGE_CGROUPS_OPTIONS', '--runtime-state %s --pods cgroupfs' % (
                         self.runtime.dir / 'state/io.containerd.runtime.v2.task/k8s.io'))}
        (self.dir / 'env').write_text('%s=--nri-socket %s %s\n' % (of_source[self.source][0], self.nri, of_source[self.source][1]))
        own = [('@bindir@', self.dir / 'bin'), ('/etc/default/nri-rp-bridge', self.dir / 'env'), ('nri-rp-bridge.socket', SOCKET.name)]
        if self.source == 'cri':
            SOCKET.write_text(changed(UNITS / 'nri-rp-bridge.socket.in', [('/run/nri-rp/cri.sock', self.cri)]))
            self.put(changed(UNITS / 'nri-rp-bridge.service.in', own))
            self.systemctl('start', SOCKET.name)
        else:
            self.put(changed(UNITS / 'nri-rp-bridge-cgroups.service.in', own))
            self.run.mkdir()
            self.start()

    def connect(self):
        """As the kubelet does, which stands before one of the two."""
        if self.source == 'cri':
            self.runtime.connect(self.cri)

    def remove(self):
        run('systemctl', 'stop', SOCKET.name)
        SOCKET.unlink(missing_ok=True)
        super().remove()
        for folder in self.dir, self.run:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope='module')
def runtime():
    rt = new_runtime('2', nri=False, systemd=True, where=NOT_PRIVATE)
    yield rt
    rt.connect(rt.socket)
    drop_runtime(rt)


@pytest.fixture(params=['cri', 'cgroups'])
def bridge(runtime, request):  # noqa: F811, a fixture
    b = BridgeService(runtime, request.param)
    try:
        b.install()
        runtime.nri_socket = b.nri
        b.connect()
        yield b
    finally:
        runtime.connect(runtime.socket)
        b.remove()


@pytest.fixture
def daemon(runtime, bridge):
    s = Service(runtime)
    s.dir.mkdir(parents=True, exist_ok=True)
    s.configure('static', STATIC)
    try:
        s.install()
        s.start()
        yield s
    finally:
        s.remove()


def test_pinned_without_a_capability_before_and_after_a_kill(bridge, daemon, pods):  # noqa: F811
    first = pods('first').run('c', 1000)
    own = wait_for('it has a CPU', lambda: len(cpus(first.allowed())) < len(ONLINE) and cpus(first.allowed()))
    assert ONLINE[0] not in own
    pid = bridge.wait('the bridge runs', bridge.pid)
    assert held(pid) == [0] * 5
    os.kill(pid, signal.SIGKILL)
    bridge.wait('another process', lambda: bridge.pid() not in (0, pid))
    bridge.connect()
    shared = pods('shared', 'burstable').run('c', 100)
    wait_for('the shared one keeps off it', lambda: cpus(shared.allowed()) == set(ONLINE) - own)
    assert cpus(first.allowed()) == own
