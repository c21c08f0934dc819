# SPDX-License-Identifier: Apache-2.0
"""There is no memory, the clock jumps, nobody runs for a while: the daemon answers or refuses, loses nothing that it has answered, and goes on.

The checker knows what was answered to the runtime and who asked for CPUs of their own, and nothing else.
"""
import os
import pathlib
import re
import signal
import threading

import pytest

from preload import CALLS, Preload
from simnode import BUILD, SimError, ctr

POLICIES = {policy: {'policy': policy, policy: section} for policy, section in (
    ('static', {'reservedResources': {'cpu': 'cpuset:0'}}), ('topology-aware', {'reservedResources': {'cpu': 'cpuset:0'}}),
    ('balloons', {'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': [
        {'name': 'own', 'minCPUs': 0, 'maxCPUs': 8, 'namespaces': ['own'], 'preferNewBalloons': True}]}),
    ('cpuset', {'reservedResources': {'cpu': 'cpuset:0'}}))}
DEPTH = int(os.environ.get('FAULT_DEPTH', 4))  # the first call fails, then the second, and so on
KEPT = 3
LOGGED = 10  # of a kind in a minute; the log tells how many it leaves out


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
    for i, call in enumerate(CALLS):
        for k, policy in enumerate(POLICIES):
            if DEPTH > 4 or i % len(POLICIES) == k:
                yield policy, call


@pytest.fixture
def faulty(make_node, tmp_path):
    """A node whose daemon has the plan."""
    def make(policy):
        plan = Preload(tmp_path / 'plan')
        daemon = ' '.join(plan.command(BUILD / 'bin' / 'nri-rpd', '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state}'
                                       ' --control-socket {control}'))
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


@pytest.mark.parametrize('policy, call', pairs())
def test_goes_on(faulty, policy, call):
    plan, node = faulty(policy)
    node.create('e', ctr('c', '100m/200m', '16Mi'))
    owners, failed, refused, pid = {}, 0, 0, node.status()['pid']
    for skip in range(DEPTH):
        name = 'x%d' % skip
        plan.arm(call, skip)
        said = len(node.read_log())
        made = tried(lambda: node.create(name, ctr('c', '2', '64Mi'), namespace='own'))
        tried(lambda: node.config({**POLICIES[policy], 'rebalanceMoves': skip + 1}))
        node.settle()
        failed += plan.disarm()
        assert node.status()['pid'] == pid
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
