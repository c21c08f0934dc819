# SPDX-License-Identifier: Apache-2.0
"""A call of the C library fails in the running daemon: it answers or refuses, loses nothing that it has answered, and goes on afterwards.

The checker knows what was answered to the runtime and who asked for CPUs of their own, and nothing else.
"""
import errno
import mmap
import os
import re
import struct

import pytest

from simnode import BUILD, SimError, ctr

PLAN = struct.Struct('=IiiiI')
WRITE, SHORT_WRITE, OPEN, MALLOC = range(1, 5)
POLICIES = {policy: {'policy': policy, policy: {'reservedResources': {'cpu': 'cpuset:0'}}} for policy in ('static', 'topology-aware')}
FAULTS = {'write-ENOSPC': (WRITE, errno.ENOSPC), 'write-EIO': (WRITE, errno.EIO), 'write-EROFS': (WRITE, errno.EROFS),
          'write-short': (SHORT_WRITE, 0), 'open-EMFILE': (OPEN, errno.EMFILE),
          'malloc-ENOMEM': (MALLOC, errno.ENOMEM)}
DEPTH = int(os.environ.get('FAULT_DEPTH', 4))  # the first call fails, then the second, and so on
KEPT = 3
LOGGED = 10  # of a kind in a minute; the log tells how many it leaves out


class Plan:
    def __init__(self, path):
        path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open('r+b') as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def arm(self, call, error, skip, fail=1):
        PLAN.pack_into(self.memory, 0, 0, error, skip, fail, 0)
        struct.pack_into('=I', self.memory, 0, call)

    def disarm(self):
        """How many calls have failed."""
        struct.pack_into('=I', self.memory, 0, 0)
        return PLAN.unpack_from(self.memory)[4]


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


@pytest.mark.parametrize('fault', FAULTS)
@pytest.mark.parametrize('policy', POLICIES)
def test_goes_on(make_node, tmp_path, policy, fault):
    call, error = FAULTS[fault]
    plan = Plan(tmp_path / 'plan')
    daemon = ' '.join(['/usr/bin/env', 'LD_PRELOAD=%s' % (BUILD / 'test' / 'fault.so'), 'FAULT_PLAN=%s' % (tmp_path / 'plan'),
                       'ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0', str(BUILD / 'bin' / 'nri-rpd'),
                       '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state} --control-socket {control}'])
    node = make_node(POLICIES[policy], daemon=daemon, module_dirs=[BUILD / 'modules'])
    node.create('e', ctr('c', '100m/200m', '16Mi'))
    owners, failed, refused, pid = {}, 0, 0, node.status()['pid']
    for skip in range(DEPTH):
        name = 'x%d' % skip
        plan.arm(call, error, skip)
        said = len(node.read_log())
        made = tried(lambda: node.create(name, ctr('c', '2', '64Mi')))
        tried(node.reload)
        failed += plan.disarm()
        assert node.status()['pid'] == pid
        refused += not made
        assert made or refused > LOGGED or re.search('refused|error|memory', node.read_log()[said:]), 'refused without a word'
        if made:
            owners[name + '/c'] = 2
        node.settle()
        check(node, owners)
        if made and skip >= KEPT:
            node.delete(name)
            del owners[name + '/c']
    assert failed, 'no call has failed'
    node.create('after', ctr('c', '1', '64Mi'))
    owners['after/c'] = 1
    check(node, owners)
    before = node.places()
    node.kill()
    node.start()
    node.settle()
    assert node.places() == before
    check(node, owners)
    node.allow('died')
