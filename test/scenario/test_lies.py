# SPDX-License-Identifier: Apache-2.0
"""
A runtime that lies when it synchronizes, that ends in the middle of a message, and that asks in an order that makes no sense. The daemon answers,
stays, and when the runtime says the truth again everybody has what is theirs.
"""
import itertools
import os
import re

import pytest

from simnode import SimError, ctr, eventually

from test_faults import POLICIES, check

CUT_STEP = int(os.environ.get('CUT_STEP', 211))  # every so many bytes of a session the line ends
UNKNOWN = int(os.environ.get('UNKNOWN', 4000))
EVERY = pytest.mark.parametrize('policy', POLICIES)
LIES = {
    'missing': {'missing': ['a0', 's0']},
    'twice': {'twice': ['a0', 'b0', 's0']},
    'unknown': {'unknown': 50},
    'elsewhere': {'cpus': {'a0': '0-15', 'b0': '2', 's0': '3', 's1': '99'}},
    'no list': {'cpus': {'a0': 'many', 'b0': '0-', 's0': ','}},
    'orphans': {'orphans': True},
    'annotations': {'annotations': 1 << 20},
    'labels': {'labels': 10000},
    'all of it': {'missing': ['b0'], 'twice': ['a0'], 'unknown': 5, 'cpus': {'a0': '1'}, 'labels': 10},
}
# What the runtime of the model takes for a mistake, as it has not told of it itself.
ALLOWED = 'which it does not have|there is no container|twice|not known|unknown|does not exist|no such container'


def crowd(node):
    for pod, name, cpu in (('a', 'a0', '2'), ('b', 'b0', '1'), ('s', 's0', '100m/-'), ('t', 's1', '100m/-')):
        node.create(pod, ctr(name, cpu, '64Mi' if cpu.isdigit() else None), namespace='own' if cpu.isdigit() else 'default', annotations={'x': 'y'})
    return {'own/a/a0': 2, 'own/b/b0': 1}


def lost(node):
    return node.read_log().count('connection to the runtime lost')


def truth(node, owners):
    node.run('lie', {})
    node.runtime_restart()
    node.settle()
    check(node, owners)


@EVERY
def test_synchronize(make_node, policy):
    node = make_node(POLICIES[policy])
    owners = crowd(node)
    pid = node.status()['pid']
    node.allow(ALLOWED)
    for i, (name, lie) in enumerate(LIES.items()):
        node.run('lie', lie)
        node.runtime_restart()
        node.settle(50)
        try:
            node.create('n%d' % i, ctr('n', '1', '64Mi'), namespace='own', annotations={'x': 'y'})
            owners['own/n%d/n' % i] = 1
        except SimError as e:
            assert e.result.get('failed'), (name, e)
        truth(node, owners)
        if owners.pop('own/n%d/n' % i, 0):
            node.delete('n%d' % i)
    assert node.status()['pid'] == pid
    before = node.places()
    node.kill()
    node.start()
    node.settle()
    assert node.places() == before


@pytest.mark.parametrize('policy', ['topology-aware', 'balloons'])
def test_thousands_that_nobody_has_made(make_node, policy):
    """In one Synchronize; they are gone with the truth. On a busy machine more of them take longer than a runtime waits."""
    node = make_node(POLICIES[policy], requestTimeout='60s')
    owners = crowd(node)
    node.allow('.')
    node.run('lie', {'unknown': UNKNOWN})
    node.runtime_restart()
    check(node, owners)
    truth(node, owners)
    assert len(node.control('Containers')) == 4


@pytest.mark.parametrize('policy', ['static', 'topology-aware'])
def test_the_line_ends_anywhere(make_node, policy):
    """In the middle of a registration, a synchronisation, a creation: what was not answered has not happened."""
    node = make_node(POLICIES[policy])
    owners = crowd(node)
    pid, cuts = node.status()['pid'], 0
    for cut in itertools.count(1, CUT_STEP):
        node.run('lie', {'cut': cut})
        before = lost(node)
        try:
            node.runtime_restart()
            node.create('n', ctr('n', '2', '64Mi'), namespace='own', annotations={'x': 'y' * 500})
            node.delete('n')
        except SimError:
            pass
        eventually(lambda: node.status()['connected'])
        try:
            node.delete('n')
        except SimError:  # it is not there
            pass
        node.settle(50)
        check(node, owners)
        cut_off = lost(node) > before + 1  # more than by the runtime's restart
        cuts += cut_off
        if not cut_off:
            break
    node.run('lie', {})
    node.allow('the connection was lost')
    assert cuts > 3 and node.status()['pid'] == pid
    print('%d cuts' % cuts)


@EVERY
def test_orders_that_make_no_sense(make_node, policy):
    """Events twice, before their time and after the end, and creations of what is there."""
    node = make_node(POLICIES[policy])
    owners = crowd(node)
    events = ['StartContainer', 'PostStartContainer', 'StopContainer', 'RemoveContainer', 'CreateContainer']
    for event in events + events[::-1]:
        for name in ('s0', 's1'):
            node.tell(event, name)
        node.settle(50)
    node.create('late', ctr('l', '1', '64Mi'), namespace='own')
    owners['own/late/l'] = 1
    node.runtime_restart()
    node.settle()
    check(node, owners)


def test_what_did_not_arrive_is_told_again(make_node):
    """A container that the runtime has made without our answer, which was lost, runs everywhere until it is told."""
    node = make_node(POLICIES['static'])
    crowd(node)
    node.updates()
    node.run('lie', {'cpus': {'a0': '', 's0': ''}})
    node.runtime_restart()
    node.settle()
    assert {u['container'] for u in node.updates()} == {'own/a/a0', 's/s0'}


DOMAIN = '.resource-policy.nri.io'
# Annotations that are read as JSON, by whom.
JSON = {
    'topology-aware': ['test.topologyhints' + DOMAIN, 'irq-affinity' + DOMAIN, 'resource-policy.nri.io/affinity'],
    'qos': ['katalyst.kubewharf.io/memory_enhancement', 'katalyst.kubewharf.io/cpu_enhancement', 'pod.kubernetes.io/pod-aggregated-requests'],
    'none': ['noderesource.dev/resources', 'intel.com/resources', 'koordinator.sh/memoryQOS', 'koordinator.sh/cpuBurst', 'koordinator.sh/eviction-policy',
             'node.koordinator.sh/extended-resource-spec'],
}


@pytest.mark.parametrize('policy', JSON)
def test_deep_json(make_node, policy):
    """Each level costs nobody anything: it is refused at a bound, or nobody reads it."""
    section = {'reservedCPUs': '0'} if policy == 'qos' else {**POLICIES['static']['static'], 'controllableInterrupts': ['*']}
    config = {'policy': policy, **({} if policy == 'none' else {policy: section}), 'metrics': {'listen': ''}}
    node = make_node({**config, 'controllers': ['memory-qos', 'cpu-burst', 'batch-limits', 'evict']} if policy == 'none' else config)
    more = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding": "true"}'}
    pid = node.status()['pid']
    for i, key in enumerate(JSON[policy]):
        for k, text in enumerate(('[' * 4000, '{"a":' * 3000, '[' * 2000 + ']' * 2000)):
            said = len(node.read_log())
            try:
                node.create('p%d-%d' % (i, k), ctr('c', '100m', '16Mi'), annotations={**more, key: text})
                node.delete('p%d-%d' % (i, k))
            except SimError as e:
                assert 'nested deeper than' in str(e), str(e)[:300]
            assert len(node.read_log()) - said < 1500, 'a log of what was sent'
    assert re.search('nested deeper than 32 levels|maximum parsing depth', node.read_log())
    assert node.status()['pid'] == pid
