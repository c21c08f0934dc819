# SPDX-License-Identifier: Apache-2.0
"""CPUs that go offline and come back, under real containers.

Takes CPUs of this machine offline: runs only where NRI_RP_TEST_HOTPLUG is set, in a virtual machine that is.
"""
import contextlib
import os
import pathlib

import pytest

from containerd import cpus, wait_for
from test_containerd import ONLINE, daemon, pods, runtime, unstarted  # noqa: F401, fixtures

V2 = 'cpuset' in ' '.join(f.read_text() for f in [pathlib.Path('/sys/fs/cgroup/cgroup.controllers')] if f.exists())
# Version 1 takes a CPU that goes offline out of every cpuset for good, out of those of the kubelet too.
pytestmark = pytest.mark.skipif(not os.environ.get('NRI_RP_TEST_HOTPLUG') or len(ONLINE) < 4 or not V2,
                                reason='needs NRI_RP_TEST_HOTPLUG=1, cpusets of cgroup v2, and four CPUs that may go offline')


def turn(cpu, on):
    pathlib.Path('/sys/devices/system/cpu/cpu%d/online' % cpu).write_text('%d' % on)


@contextlib.contextmanager
def offline(*which):
    try:
        for cpu in which:
            turn(cpu, 0)
        yield
    finally:
        for cpu in which:
            turn(cpu, 1)


def effective(container):
    return cpus(container.allowed())


def test_a_shared_cpu_goes_and_comes(daemon, pods):
    shared, pinned = pods('shared', 'burstable').run('c', 100), pods('pinned').run('c', 1000)
    own, mark = cpus(pinned.allowed()), daemon.mark()
    gone = max(set(ONLINE) - own)
    with offline(gone):
        daemon.wait_log('offline', mark)
        wait_for('the shared container is off it', lambda: cpus(shared.allowed()) == set(ONLINE) - own - {gone})
        assert cpus(pinned.allowed()) == own
        later = pods('later', 'besteffort').run('c')
        assert cpus(later.allowed()) == set(ONLINE) - own - {gone}
    wait_for('both are on it again', lambda: {gone} <= cpus(shared.allowed()) & cpus(later.allowed()))
    assert cpus(pinned.allowed()) == own


def test_an_exclusive_cpu_goes_and_comes(daemon, pods):
    shared, pinned, other = pods('shared', 'burstable').run('c', 100), pods('pinned').run('c', 1000), pods('other').run('c', 1000)
    own, others = cpus(pinned.allowed()), cpus(other.allowed())
    with offline(*own):
        wait_for('it has another one to itself', lambda: len(effective(pinned)) == 1 and not effective(pinned) & (own | others)
                 and not effective(pinned) & effective(shared))
        assert effective(other) == others
        assert effective(shared) == set(ONLINE) - own - others - effective(pinned)
    wait_for('the shared one has what is free', lambda: effective(shared) == set(ONLINE) - others - effective(pinned))
    assert effective(other) == others


def test_offline_over_a_restart(daemon, pods):
    shared, pinned = pods('shared', 'burstable').run('c', 100), pods('pinned').run('c', 1000)
    own = cpus(pinned.allowed())
    daemon.kill()
    with offline(*own):
        daemon.start()
        wait_for('it has another one to itself',
                 lambda: len(effective(pinned)) == 1 and not effective(pinned) & (own | effective(shared)))
    wait_for('the shared one has all the rest', lambda: effective(shared) == set(ONLINE) - effective(pinned))
