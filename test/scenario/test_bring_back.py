# SPDX-License-Identifier: Apache-2.0
"""What had to be spread, or lost a CPU, is brought together again: by the next rebalancing, or at once.

n4c16 has four NUMA nodes of four CPUs, 4n to 4n+3; CPU 0 is reserved.
"""
import pytest

from operator_tools import ctl, ctl_json
from simnode import ctr

CONFIGS = {
    'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}},
    'balloons': {'reservedResources': {'cpu': 'cpuset:0'},
                 'balloonTypes': [{'name': 'own', 'preferNewBalloons': True, 'namespaces': ['default'], 'maxCPUs': 4}]},
}


def nodes_of(cpus):
    return {c // 4 for c in cpus}


@pytest.mark.parametrize('policy', CONFIGS)
def test_spread_for_want_of_room(make_node, policy):
    node = make_node({'policy': policy, policy: CONFIGS[policy]})
    for name in 'abcd':
        node.create(name, ctr(name + '0', '2', '64Mi'))
    node.create('e', ctr('e0', '3', '64Mi'))
    node.create('s', ctr('s0', '3', '64Mi'))
    spread = [c for c in ('e/e0', 's/s0') if len(nodes_of(node.cpus(c))) > 1]
    assert spread, 'there was no room for all on one node'
    for name in 'abcd':
        node.delete(name)
    # at most one at a time, as rebalanceMoves may say
    while 'moved 0 ' not in ctl(node, 'rebalance', '1').out:
        pass
    assert [len(nodes_of(node.cpus(c))) for c in spread] == [1] * len(spread)
    assert [e for e in ctl(node, 'events').out.splitlines() if ' moved ' in e]


@pytest.mark.parametrize('policy', CONFIGS)
def test_a_cpu_that_comes_back(make_node, policy):
    node = make_node({'policy': policy, policy: CONFIGS[policy]})
    node.create('h', ctr('h0', '4', '64Mi'))
    before = node.cpus('h/h0')
    node.run('offline', str(max(before)))
    node.settle()
    assert max(before) not in node.cpus('h/h0')
    node.run('online', str(max(before)))
    node.settle()
    if node.cpus('h/h0') != before:
        ctl(node, 'rebalance')
    assert node.cpus('h/h0') == before and ctl_json(node, 'status')['degraded'] is False
