# SPDX-License-Identifier: Apache-2.0
"""The store is a hint: without it the runtime's list is all there is, and who sits right by that stays.

n4c16 has four NUMA nodes of four CPUs, 4n to 4n+3; CPU 0 is reserved. The isolated machine is the same with 12-15 isolated by the kernel.
"""
import pathlib
import shutil

import pytest

from operator_tools import DEGRADED, OK, ctl, ctl_json
from simnode import ctr, eventually

STATIC = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}
TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}, 'packing': 'balanced'}}


def lose_store(node, config=None):
    node.kill()
    state = pathlib.Path(node.paths['state'])
    assert (state / 'store.log').exists()
    shutil.rmtree(state)
    if config:
        node.run('write-config', config)
    node.updates()
    node.start()
    node.settle()




@pytest.mark.parametrize('config', [TOPOLOGY_AWARE, STATIC], ids=lambda c: c['policy'])
def test_exclusive_cpus_stay(make_node, config):
    node = make_node(config)
    node.create('x', ctr('x0', '4', '64Mi'))
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '3', '64Mi'), ctr('b1', '1', '64Mi'))
    node.create('e', ctr('e0'))
    node.run('delete', 'x')
    before = {c: node.cpus(c) for c in ('a/a0', 'b/b0', 'b/b1')}
    lose_store(node)
    assert {c: node.cpus(c) for c in before} == before
    mine = set().union(*before.values())
    assert len(mine) == 6 and not node.cpus('e/e0') & mine


def test_nobody_is_told_what_he_has(make_node):
    """All of them are exclusive or where they would be placed now: nothing is said."""
    node = make_node(TOPOLOGY_AWARE)
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('k', ctr('k0', '100m', '64Mi'), namespace='kube-system')
    assert node.cpus('a/a0') == {4, 5} and node.cpus('k/k0') == {0}
    lose_store(node)
    assert node.updates() == []
    assert node.cpus('a/a0') == {4, 5} and node.cpus('k/k0') == {0}


def test_they_count(make_node):
    """What stayed is given to nobody else, and comes back when its owner ends."""
    node = make_node(TOPOLOGY_AWARE)
    node.create('a', ctr('a0', '8', '64Mi'))
    node.create('b', ctr('b0', '4', '64Mi'))
    assert node.cpus('a/a0') == {8, 9, 10, 11, 12, 13, 14, 15} and node.cpus('b/b0') == {4, 5, 6, 7}
    lose_store(node)
    assert "needs 4 exclusive CPUs" in node.reject('c', ctr('c0', '4', '64Mi'))
    node.create('c', ctr('c0', '3', '64Mi'))
    assert node.cpus('c/c0') == {1, 2, 3}
    node.run('delete', 'b')
    node.create('d', ctr('d0', '4', '64Mi'))
    assert node.cpus('d/d0') == {4, 5, 6, 7}


def test_a_resize_after_it(make_node):
    node = make_node(TOPOLOGY_AWARE)
    node.create('x', ctr('x0', '4', '64Mi'))
    node.create('a', ctr('a0', '2', '64Mi'))
    node.run('delete', 'x')
    assert node.cpus('a/a0') == {8, 9}
    lose_store(node)
    node.update('a/a0', cpu='4', memory='64Mi')
    assert node.cpus('a/a0') == {8, 9, 10, 11}
    node.restart()
    assert node.cpus('a/a0') == {8, 9, 10, 11}


@pytest.mark.parametrize('there, then', [(STATIC, TOPOLOGY_AWARE), (TOPOLOGY_AWARE, STATIC)], ids=['to topology-aware', 'to static'])
def test_another_policy_and_no_store(make_node, there, then):
    node = make_node(there)
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '4', '64Mi'))
    node.create('e', ctr('e0'))
    before = {c: node.cpus(c) for c in ('a/a0', 'b/b0')}
    lose_store(node, then)
    assert {c: node.cpus(c) for c in before} == before
    assert not node.cpus('e/e0') & set().union(*before.values())


def test_mixed_ones_are_placed_anew(make_node):
    """All that is left of its 1500m are the shares that it was given, for 500m: it shares CPUs from now on, beside those who stay."""
    node = make_node(TOPOLOGY_AWARE)
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('m', ctr('m0', '1500m', '64Mi'))
    assert node.cpus('m/m0') == {8, 9, 10, 11}
    lose_store(node)
    assert node.cpus('a/a0') == {4, 5}
    assert node.cpus('m/m0') == {8, 9, 10, 11}


def test_isolated_ones_stay(make_node):
    node = make_node(TOPOLOGY_AWARE, machine='isolated')
    node.create('x', ctr('x0', '1', '64Mi'))
    node.create('a', ctr('a0', '1', '64Mi'))
    node.run('delete', 'x')
    assert node.cpus('a/a0') == {13}
    lose_store(node)
    assert node.cpus('a/a0') == {13}
    node.create('b', ctr('b0', '1', '64Mi'))
    assert node.cpus('b/b0') == {12}


def test_those_who_hide_threads_are_placed_anew(make_node):
    """It shows fewer CPUs than it has; which others they were nobody knows."""
    node = make_node(TOPOLOGY_AWARE)
    hide = {'hide-hyperthreads.resource-policy.nri.io/pod': 'true'}
    node.create('a', ctr('a0', '4', '64Mi'), annotations=hide)
    assert node.cpus('a/a0') == {4, 6}
    lose_store(node)
    assert node.cpus('a/a0') == {4, 6}
    node.create('b', ctr('b0', '4', '64Mi'))
    assert not node.cpus('b/b0') & {4, 5, 6, 7}


def test_lists_stay(make_node):
    """A container of static-pools keeps its lists, as its environment names them; one on all CPUs gets the lists that are left."""
    exclusive = {'STP_POOL': 'exclusive', 'CMK_NUM_CORES': '1'}
    lists = [{'cpuset': cpus} for cpus in ('0,1', '2,3', '8-9')]
    node = make_node({'policy': 'static-pools', 'static-pools': {'pools': {
        'exclusive': {'exclusive': True, 'cpuLists': lists}, 'shared': {'cpuLists': [{'cpuset': '4-7'}, {'cpuset': '12-13'}]}}}})
    node.create('a', ctr('a0', env=exclusive))
    node.create('b', ctr('b0', env=exclusive))
    node.create('s', ctr('s0'))
    node.create('t', ctr('t0'))
    node.delete('a', 's')
    assert node.cpus('b0') == {2, 3} and node.cpus('t0') == {12, 13}
    node.existing('e', ctr('e0', env=exclusive, state='running'))
    lose_store(node)
    assert [u['container'] for u in node.updates()] == ['e/e0']
    assert node.cpus('b0') == {2, 3} and node.cpus('t0') == {12, 13} and node.cpus('e0') == {0, 1}


def test_pods_stay_in_their_pools(make_node):
    """Pods of podpools are found by their CPUs; a pod that runs elsewhere is placed in the pool with the fewest pods."""
    node = make_node({'policy': 'podpools', 'podpools': {
        'reservedResources': {'cpu': 'cpuset:0'}, 'pools': [{'name': 'p', 'cpu': 2, 'instances': 3}]}})
    named = {'pool.podpools.resource-policy.nri.io': 'p'}
    for name in 'abc':
        node.create(name, ctr(name + '0'), annotations=named)
    node.delete('a')
    assert node.cpus('b0') == {4, 5} and node.cpus('c0') == {6, 7}
    node.existing('e', ctr('e0', state='running', cpus='8-9'), annotations=named)
    lose_store(node)
    assert [u['container'] for u in node.updates()] == ['e/e0']
    assert node.cpus('b0') == {4, 5} and node.cpus('c0') == {6, 7} and node.cpus('e0') == {2, 3}


DEDICATED = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores'}
BOUND = {'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding": "true"}'}
EXCLUSIVE = {'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding": "true", "numa_exclusive": "true"}'}


def test_dedicated_pods_stay(make_node):
    """Dedicated CPUs, whole nodes and the nodes of bound pods are found by the CPUs, before pods that run anywhere are placed."""
    node = make_node({'policy': 'qos', 'qos': {'rampUpSeconds': 0, 'reservedCPUs': '0'}})
    node.create('x', ctr('x0', '4'), annotations={**DEDICATED, **EXCLUSIVE})
    node.create('y', ctr('y0', '2'), annotations={**DEDICATED, **BOUND})
    node.create('z', ctr('z0', '2'), ctr('z1'), annotations={**DEDICATED, **BOUND})
    node.create('b', ctr('b0', '1'), annotations=BOUND)
    node.delete('y')
    node.create('s', ctr('s0', '1'))
    node.existing('e', ctr('e0', '2', state='running'), annotations={**DEDICATED, **BOUND})
    before = {c: node.cpus(c) for c in ('x0', 'z0', 'z1', 'b0')}
    lose_store(node)
    print({c: node.cpus(c) for c in ('x0', 'z0', 'z1', 'b0', 'e0', 's0')})
    assert {c: node.cpus(c) for c in before} == before
    assert len(node.cpus('e0')) == 2 and not node.cpus('e0') & set().union(*before.values())


def test_pools_keep_their_cpus(make_node):
    """Dynamic pools get the CPUs of their containers; a container that was not pinned joins its pool."""
    config = {'policy': 'dynamic-pools', 'dynamic-pools': {'reservedResources': {'cpu': 'cpuset:0'},
              'dynamicPoolTypes': [{'name': name, 'namespaces': [name]} for name in ('one', 'two', 'three')]}}
    node = make_node(config)
    node.create('a', ctr('a0', '3'), namespace='one')
    node.create('b', ctr('b0', '2'), namespace='two')
    node.create('c', ctr('c0', '4'), namespace='three')
    node.create('s', ctr('s0', '1'))
    node.delete('a')
    before = {c: node.cpus(c) for c in ('b0', 'c0', 's0')}
    print(before)
    lose_store(node)
    assert node.updates() == [] and {c: node.cpus(c) for c in before} == before
    node.existing('e', ctr('e0', '1', state='running'), namespace='two')
    lose_store(node)
    print({c: node.cpus(c) for c in ('b0', 'c0', 's0', 'e0')})
    assert node.cpus('b0') == node.cpus('e0') > before['b0'] and node.cpus('c0') == before['c0']


def test_first_balloons_and_offline_cpus(make_node):
    """A configuration that does not fit the CPUs that are online is refused at a start without a state. The policy returns with the CPUs."""
    a = {'name': 'a', 'minBalloons': 3, 'minCPUs': 4, 'maxCPUs': 4, 'preferNewBalloons': True, 'namespaces': ['default']}
    node = make_node({'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 1}, 'balloonTypes': [a]}})
    node.create('p', ctr('c', '4', '64Mi'))
    before = node.cpus('p/c')
    node.kill()
    node.offline('10-15')
    shutil.rmtree(node.paths['state'])
    node.start()
    policy = ctl_json(node, 'status', code=DEGRADED)['policy']
    assert policy['safe_mode'] and 'cannot create the first 3 balloons' in policy['safe_mode_reason']
    node.log('CPUs 10-15 are offline, so there is less room for minBalloons')
    assert node.cpus('p/c') == before
    node.online('10-15')
    node.signal('HUP')
    eventually(lambda: ctl(node, 'status').code == OK)
    assert ctl_json(node, 'status')['policy']['name'] == 'balloons' and len(node.cpus('p/c')) == 4
