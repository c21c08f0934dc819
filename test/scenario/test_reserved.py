# SPDX-License-Identifier: Apache-2.0
"""Reserved CPUs of every policy while CPUs go offline and come back, over reloads and restarts."""
import pathlib

import pytest
import yaml

from simnode import ctr

DEDICATED = {'balloon.balloons.resource-policy.nri.io': 'own', 'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding": "true"}'}
BY_CPU = ('static', 'static-plus', 'topology-aware', 'balloons', 'cpuset', 'template')
POOLS = ('podpools', 'dynamic-pools')


def section(policy, reserved):
    if policy == 'qos':
        return {'reservedCPUs': reserved[7:]} if reserved.startswith('cpuset:') else {'reservedCPUCount': int(reserved)}
    types = [{'name': 'own', 'preferNewBalloons': True}] if policy == 'balloons' else []
    return {'reservedResources': {'cpu': reserved}, **({'balloonTypes': types} if types else {})}


def config(policy, reserved, **more):
    return {'policy': policy, policy: {**section(policy, reserved), **more}, 'metrics': {'listen': ''}}


def is_active(node, policy):
    status = node.control('Status')
    return status['policy']['name'] == policy and not status['policy']['safe_mode']


@pytest.mark.parametrize('reload_first', [False, True], ids=['restart', 'reload and restart'])
@pytest.mark.parametrize('listed', ['cpuset:0', 'cpuset:0-1'], ids=['the only one', 'one of two'])
@pytest.mark.parametrize('policy', [*BY_CPU, *POOLS, 'qos'])
def test_a_listed_cpu_is_offline_at_a_start(make_node, policy, listed, reload_first):
    """The policy goes on with what is left of the list and says so."""
    node = make_node(config(policy, listed))
    node.create('a', ctr('a0', '2', '64Mi'), annotations=DEDICATED)
    node.create('s', ctr('s0', '100m/-'))
    node.create('k', ctr('k0', '100m/-'), namespace='kube-system')
    before = node.cpus('a0')
    node.offline('0')
    if reload_first:
        assert node.ctl('reload')['outcome'] == 'in force'
    node.restart()
    assert is_active(node, policy)
    node.log('reserved CPUs 0 are off ?line')
    node.expect('not 0 in cpus(s0)', 'not 0 in cpus(k0)', 'pinned(k0)')
    if policy not in POOLS:
        assert node.cpus('a0') == before
        node.create('b', ctr('b0', '1', '64Mi'), annotations=DEDICATED)
        node.expect('disjoint(a0, b0)')
    assert node.ctl('reload')['outcome'] == 'in force'
    node.online('0')
    node.restart()
    assert is_active(node, policy)


@pytest.mark.parametrize('policy', [*BY_CPU, *POOLS, 'qos'])
def test_a_listed_cpu_that_never_was_is_refused(make_node, policy):
    node = make_node(config(policy, 'cpuset:0'))
    node.offline('5')
    node.restart()
    pathlib.Path(node.paths['config']).write_text(yaml.safe_dump(config(policy, 'cpuset:5')))
    refused = node.ctl('reload', check=False)
    assert refused is None or refused['outcome'] != 'in force'


@pytest.mark.parametrize('policy', [*BY_CPU, 'qos'])
@pytest.mark.parametrize('n', [1, 2])
def test_a_quantity_stays_off_exclusive_cpus(make_node, policy, n):
    """One that no container owns takes the place of a reserved CPU that goes offline; no container moves for that, over a restart either."""
    node = make_node(config(policy, str(n)))
    pods = ['abcdef'[i] for i in range(5 if policy == 'qos' else 6)]
    for pod in pods:
        node.create(pod, ctr(pod + '0', '2', '64Mi'), annotations=DEDICATED)
    before = {pod: node.cpus(pod + '0') for pod in pods}
    assert not any(0 in cpus for cpus in before.values())
    node.offline('0')
    node.signal('HUP')
    node.log('the topology of the machine has changed')
    node.settle()
    assert {pod: node.cpus(pod + '0') for pod in pods} == before
    node.restart()
    node.settle()
    assert {pod: node.cpus(pod + '0') for pod in pods} == before
    node.online('0')
    node.signal('HUP')
    node.restart()
    node.settle()
    assert {pod: node.cpus(pod + '0') for pod in pods} == before


@pytest.mark.parametrize('policy', [*BY_CPU, *POOLS, 'qos'])
def test_a_quantity_that_is_too_large_by_now(make_node, policy):
    """It was accepted when all CPUs were online: the next start accepts it with those that are left."""
    node = make_node(config(policy, '8'))
    node.create('k', ctr('k0', '100m/-'), namespace='kube-system')
    node.create('s', ctr('s0', '100m/-'))
    node.offline('4-15')
    node.restart()
    assert is_active(node, policy)
    node.expect('pinned(k0)', 'pinned(s0)')
    assert node.ctl('reload')['outcome'] == 'in force'
    node.online('4-15')
    node.restart()
    assert is_active(node, policy)


def test_pools_for_which_there_are_too_few_cpus(make_node):
    node = make_node(config('podpools', '1', pools=[{'name': 'p', 'cpu': 4, 'instances': '3'}]))
    node.create('a', ctr('a0', '1', '64Mi'), annotations={'pool.podpools.resource-policy.nri.io': 'p'})
    node.offline('6-15')
    node.restart()
    assert is_active(node, 'podpools')
    node.log('this configuration was active before')
    node.expect('pinned(a0)')


def test_shared_containers_of_cpuset_stay_off_exclusive_cpus_over_a_restart(make_node):
    """The listed reserved CPU is offline, and no more CPUs are online than integer containers ask for: one that runs short shares what it has left."""
    node = make_node(config('cpuset', 'cpuset:0', numaAware=False))
    for pod, n in (('a', '3'), ('b', '3'), ('d', '3')):
        node.create(pod, ctr(pod + '0', n, '64Mi'))
    node.create('s', ctr('s0', '100m/-'))
    node.offline('0,8-15')
    for _ in range(2):
        node.signal('HUP')
        node.settle(5)
        node.restart()
        node.expect('cpus(a0) == 1-3', 'cpus(b0) == 4-6', 'disjoint(a0, s0)', 'disjoint(b0, s0)', 'disjoint(a0, d0)', 'disjoint(b0, d0)')
