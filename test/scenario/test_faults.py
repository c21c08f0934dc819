# SPDX-License-Identifier: Apache-2.0
"""A call of the C library fails in the running daemon: it answers or refuses, loses nothing that it has answered, and goes on afterwards.

The checker knows what was answered to the runtime and who asked for CPUs of their own, and nothing else.
"""
import errno
import mmap
import os
import pathlib
import re
import signal
import struct
import threading

import pytest

from simnode import BUILD, SimError, ctr

PLAN = struct.Struct('=IiiiI4xq')
CALLS = ('none write short-write open malloc calloc realloc read short-read send short-send recv short-recv fsync rename mmap fork '
         'epoll_wait').split()
POLICIES = {policy: {'policy': policy, policy: section} for policy, section in (
    ('static', {'reservedResources': {'cpu': 'cpuset:0'}}), ('topology-aware', {'reservedResources': {'cpu': 'cpuset:0'}}),
    ('balloons', {'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': [
        {'name': 'own', 'minCPUs': 0, 'maxCPUs': 8, 'namespaces': ['own'], 'preferNewBalloons': True}]}),
    ('cpuset', {'reservedResources': {'cpu': 'cpuset:0'}}))}
FAULTS = ['write-ENOSPC', 'write-EIO', 'write-EROFS', 'short-write', 'open-EMFILE', 'open-EACCES', 'malloc-ENOMEM', 'calloc-ENOMEM', 'realloc-ENOMEM',
          'read-EIO', 'read-EINTR', 'short-read', 'send-EINTR', 'send-EAGAIN', 'short-send', 'recv-EINTR', 'recv-EAGAIN', 'short-recv', 'fsync-EIO',
          'rename-EROFS', 'mmap-ENOMEM', 'fork-EAGAIN', 'epoll_wait-EINTR']
# What passes by itself, and nobody may notice.
HARMLESS = ['short-write', 'short-read', 'read-EINTR', 'send-EINTR', 'send-EAGAIN', 'short-send', 'recv-EINTR', 'recv-EAGAIN', 'short-recv', 'epoll_wait-EINTR']
DEPTH = int(os.environ.get('FAULT_DEPTH', 4))  # the first call fails, then the second, and so on
KEPT = 3
LOGGED = 10  # of a kind in a minute; the log tells how many it leaves out


class Plan:
    def __init__(self, path):
        path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open('r+b') as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def arm(self, call, error, skip, fail=1):
        PLAN.pack_into(self.memory, 0, 0, error, skip, fail, 0, 0)
        struct.pack_into('=I', self.memory, 0, call)

    def disarm(self):
        """How many calls have failed."""
        struct.pack_into('=I', self.memory, 0, 0)
        return PLAN.unpack_from(self.memory)[4]

    def shift(self, seconds):
        struct.pack_into('=q', self.memory, 24, seconds)


def check(node, owners):
    """Owners have as many CPUs as they asked for, which nobody else has; nobody has none."""
    cpus = {name: node.cpus(name) for name in node.places()}
    for name, mine in cpus.items():
        assert mine, name
        if name in owners:
            assert len(mine) == owners[name], (name, mine)
            assert not any(mine & others for other, others in cpus.items() if other != name), (name, cpus)


def tried(step):
    """Whether it was answered with success; while a call fails it may be refused."""
    try:
        step()
    except SimError:
        return False
    return True


def pairs():
    """Every fault with every policy; in `make check` with one of them."""
    for i, fault in enumerate(FAULTS):
        for k, policy in enumerate(POLICIES):
            if DEPTH > 4 or i % len(POLICIES) == k:
                yield policy, fault


@pytest.fixture
def faulty(make_node, tmp_path):
    """A node whose daemon has the plan."""
    def make(policy):
        plan = Plan(tmp_path / 'plan')
        daemon = ' '.join(['/usr/bin/env', 'LD_PRELOAD=%s' % (BUILD / 'test' / 'fault.so'), 'FAULT_PLAN=%s' % (tmp_path / 'plan'),
                           'ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0', str(BUILD / 'bin' / 'nri-rpd'),
                           '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state} --control-socket {control}'])
        return plan, make_node(POLICIES[policy], daemon=daemon, module_dirs=[BUILD / 'modules'])
    return make


def killed(node, owners):
    """Nothing that was answered is lost."""
    before = node.places()
    node.kill()
    node.start()
    node.settle()
    assert node.places() == before
    check(node, owners)
    node.allow('died')


@pytest.mark.parametrize('policy, fault', pairs())
def test_goes_on(faulty, policy, fault):
    call, _, error = fault.rpartition('-') if fault.rpartition('-')[2].isupper() else (fault, '', '')
    plan, node = faulty(policy)
    node.create('e', ctr('c', '100m/200m', '16Mi'))
    owners, failed, refused, pid = {}, 0, 0, node.status()['pid']
    for skip in range(DEPTH):
        name = 'x%d' % skip
        plan.arm(CALLS.index(call), getattr(errno, error, 0), skip)
        said = len(node.read_log())
        made = tried(lambda: node.create(name, ctr('c', '2', '64Mi'), namespace='own'))
        reloaded = tried(lambda: node.config({**POLICIES[policy], 'rebalanceMoves': skip + 1}))
        node.settle()
        failed += plan.disarm()
        assert node.status()['pid'] == pid
        assert (made and reloaded) or fault not in HARMLESS
        refused += not made
        assert made or refused > LOGGED or re.search('refused|error|memory', node.read_log()[said:]), 'refused without a word'
        if made:
            owners['own/%s/c' % name] = 2
        check(node, owners)
        if made and skip >= KEPT:
            node.delete(name)
            del owners['own/%s/c' % name]
    assert failed, 'no call has failed'
    node.create('after', ctr('c', '1', '64Mi'), namespace='own')
    owners['own/after/c'] = 1
    check(node, owners)
    killed(node, owners)


@pytest.mark.parametrize('policy', POLICIES)
def test_a_clock_that_jumps(faulty, policy):
    plan, node = faulty(policy)
    owners = {}
    for i, years in enumerate((10, -10, 0)):
        plan.shift(years * 365 * 86400)
        node.create('x%d' % i, ctr('c', '2', '64Mi'), namespace='own')
        owners['own/x%d/c' % i] = 2
        node.reload()
        check(node, owners)
        killed(node, owners)


@pytest.mark.parametrize('policy', POLICIES)
def test_stopped_for_a_while(faulty, policy):
    """As by a hypervisor; the runtime waits that long."""
    _, node = faulty(policy)
    pid = node.status()['pid']
    daemon = int(pathlib.Path('/proc/%d/task/%d/children' % (pid, pid)).read_text().split()[0]) if 'env' in os.readlink('/proc/%d/exe' % pid) else pid
    os.kill(daemon, signal.SIGSTOP)
    threading.Timer(1, os.kill, (daemon, signal.SIGCONT)).start()
    node.create('x', ctr('c', '2', '64Mi'), namespace='own')
    check(node, {'own/x/c': 2})
    assert node.status()['pid'] == pid
