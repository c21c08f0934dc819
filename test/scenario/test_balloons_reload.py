# SPDX-License-Identifier: Apache-2.0
"""
One key of the balloons policy changes on a machine without a free CPU: `nri-rpctl plan` tells who will move, that is who moves, and
nobody else hears anything. Afterwards the books are right: when all have gone a container gets what is not set aside.
"""
import json
import pathlib

import pytest

from balloonnode import BALLOON, change, full, options
from simnode import ctr

A = {'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True}
B = {'name': 'b'}
INTERRUPTS = '            CPU0\n  24:          1  PCI-MSI 524288-edge  eth0\n'
CPUS = 15  # all but that of reserved[0]
WHERE = {'kube-system/k/k0': '0', 'a0/a0c': '2-3', 'a1/a1c': '4-5', 'a2/a2c': '6-7', 'a3/a3c': '8-9', 'b/b0': '10-13', 'b/b1': '10-13',
         'd/d0': '1,14-15'}


def a(**values):
    return options({**A, **values}, B)


def b(**values):
    return options(A, {**B, **values})


def both(**values):
    return options(A, B, **values)


# Name; configuration; who moves, with the CPUs then; what is left for one container when all are gone.
TABLE = [
    # keys of the policy
    # who was confined gets all there is
    ('pinCPU', both(pinCPU=False), dict.fromkeys(WHERE, '0-15'), None),
    ('pinMemory', both(pinMemory=False), WHERE, CPUS),
    ('reservedPoolNamespaces', both(reservedPoolNamespaces=['kube-*', 'ops']), {}, CPUS),
    ('no reservedPoolNamespaces', both(reservedPoolNamespaces=[]), {}, CPUS),
    ('reserved: less than a CPU', both(reservedResources={'cpu': '250m'}), {}, CPUS),
    ('reserved: the CPU that it has', both(reservedResources={'cpu': 'cpuset:0'}), {}, CPUS + 1),
    ('reserved: a CPU of somebody else', both(reservedResources={'cpu': 'cpuset:1'}), {}, CPUS + 1),
    ('available: all there are', both(availableResources={'cpu': 'cpuset:0-31'}), {}, CPUS),
    ('idleCPUClass', both(idleCPUClass='x', cpuClasses=[{'name': 'x', 'maxFreq': '2GHz'}]), {}, CPUS),
    ('allocatorTopologyBalancing', both(allocatorTopologyBalancing=True), {}, CPUS),
    ('preferSpreadOnPhysicalCores', both(preferSpreadOnPhysicalCores=True), {}, CPUS),
    ('turboDomain', both(turboDomain='system'), {}, CPUS),
    ('showContainersInNrt', both(showContainersInNrt=True), {}, CPUS),
    ('controllableInterrupts', both(controllableInterrupts=[]), {}, CPUS),
    ('schedulingClasses', both(schedulingClasses=[{'name': 'x', 'policy': 'fifo', 'priority': 3}]), {}, CPUS),
    ('preserve', both(preserve={'matchExpressions': [{'key': 'name', 'operator': 'Equals', 'values': ['a0c']}]}), {}, CPUS),
    # keys of a type that say which containers and which instance
    ('namespaces', b(namespaces=['other']), {}, CPUS),
    ('matchExpressions', b(matchExpressions=[{'key': 'name', 'operator': 'In', 'values': ['b0', 'x']}]), {}, CPUS),
    # with its three CPUs, as there are no others
    ('matchExpressions that d0 fits', b(matchExpressions=[{'key': 'name', 'operator': 'Equals', 'values': ['d0']}]),
     {'b/b0': '1,10-15', 'b/b1': '1,10-15', 'd/d0': '1,10-15'}, CPUS),
    ('groupBy', b(groupBy='${pod/namespace}'), {}, CPUS),
    ('preferNewBalloons', b(preferNewBalloons=True), {}, CPUS),
    ('no preferNewBalloons', a(preferNewBalloons=False), {}, CPUS),
    ('no preferSpreadingPods', a(preferSpreadingPods=False), {}, CPUS),
    ('preferPerNamespaceBalloon', a(preferPerNamespaceBalloon=True), {}, CPUS),
    # limits: those that hold, and those that do not
    ('minCPUs below', b(minCPUs=3), {}, CPUS),
    ('maxCPUs above', b(maxCPUs=5), {}, CPUS),
    ('both sizes', b(minCPUs=4, maxCPUs=4), {}, CPUS),
    ('minBalloons below', a(minBalloons=4), {}, CPUS),
    ('minBalloons above, of no size', a(minBalloons=7), {}, CPUS),
    ('minBalloons and minCPUs', b(minBalloons=1, minCPUs=4), {}, CPUS - 4),
    ('maxBalloons above', a(maxBalloons=5), {}, CPUS),
    ('maxBalloons just so', a(maxBalloons=4), {}, CPUS),
    # the last of four has to give way: of balloons alike the first takes its container in, with the two CPUs that it leaves
    ('maxBalloons below', a(maxBalloons=3), {'a0/a0c': '2-3,8-9', 'a3/a3c': '2-3,8-9'}, CPUS),
    # two of four CPUs: the last of the node that comes last; the other container finds them, in a balloon of its own
    ('maxCPUs below', b(maxCPUs=3), {'b/b0': '10-11', 'b/b1': '12-13'}, CPUS),
    # where CPUs are looked for: nobody is looked for anew
    ('allocatorPriority', a(allocatorPriority='low'), {}, CPUS),
    ('balancing of a type', a(allocatorTopologyBalancing=True), {}, CPUS),
    ('spreading of a type', b(preferSpreadOnPhysicalCores=True), {}, CPUS),
    ('preferCloseToDevices', b(preferCloseToDevices=['/sys/devices/system/node/node0']), {}, CPUS),
    ('preferIsolCpus', a(preferIsolCpus=True), {}, CPUS),
    ('preferCoreType', a(preferCoreType='performance'), {}, CPUS),
    ('loads', options(A, {**B, 'loads': ['avx']}, loadClasses=[{'name': 'avx', 'level': 'core'}]), {}, CPUS),
    ('shareIdleCPUsInSame', b(shareIdleCPUsInSame='system'), {}, CPUS),
    # what containers see of their balloon
    ('hideHyperthreads', a(hideHyperthreads=True), {'a0/a0c': '2', 'a1/a1c': '4', 'a2/a2c': '6', 'a3/a3c': '8'}, CPUS),
    ('memoryTypes', b(memoryTypes=['dram']), {}, CPUS),
    ('memoryTypes that are not there', b(memoryTypes=['HBM', 'PMEM']), {}, CPUS),
    ('pinMemory of a type', b(pinMemory=False), {name: WHERE[name] for name in ('b/b0', 'b/b1')}, CPUS),
    # what is outside of containers
    ('cpuClass', options({**A, 'cpuClass': 'x'}, B, cpuClasses=[{'name': 'x', 'maxFreq': '2GHz'}]), {}, CPUS),
    ('schedulingClass', options({**A, 'schedulingClass': 'x'}, B, schedulingClasses=[{'name': 'x', 'nice': 3}]), {}, CPUS),
    ('irqMode', b(irqMode='isolate'), {}, CPUS),
    ('irqClaim', b(irqClaim=['24']), {}, CPUS),
    ('showContainersInNrt of a type', b(showContainersInNrt=True), {}, CPUS),
    # types
    ('a type before', options({'name': 'c', 'maxBalloons': 1}, A, B), {}, CPUS),
    ('a type behind', options(A, B, {'name': 'c', 'minBalloons': 2}), {}, CPUS),
    ('a type that has become one of parts', options(A, {**B, 'components': [{'balloonType': 'c'}] * 2}, {'name': 'c'}), {}, CPUS),
]


@pytest.mark.parametrize('config, movers, left', [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_key(make_node, tmp_path, config, movers, left):
    node = full(make_node)
    pathlib.Path(node.paths['root'], 'proc', 'interrupts').write_text(INTERRUPTS)
    node.updates()
    moved = change(node, tmp_path, config)
    assert {name: cpus for name, (cpus, _) in moved.items()} == movers
    assert {u['container'] for u in node.updates()} == set(movers)
    node.delete('kube-system/k', 'a0', 'a1', 'a2', 'a3', 'b', 'd')
    if left:
        node.reject('z', ctr('z0', str(left + 1), '64Mi'), error='no balloon of type')
        node.create('z', ctr('z0', str(left), '64Mi'))
        assert len(node.cpus('z0')) == left


def test_fewer_parts(make_node, tmp_path):
    """The last of three balloons of two parts gives way to a limit of the parts; the second one to a lower limit, and its container waits."""
    def parts(**values):
        pair = {'name': 'pair', 'maxCPUs': 4, 'preferNewBalloons': True, 'preferSpreadingPods': True, 'components': [{'balloonType': 'part'}] * 2}
        return options({'name': 'part', **values}, pair)

    node = make_node(parts())
    for name in ('one', 'two', 'three'):
        node.create(name, ctr(name + 'c', '2', '64Mi'), annotations={BALLOON: 'pair'})
    assert change(node, tmp_path, parts(maxBalloons=6)) == {}
    assert change(node, tmp_path, parts(maxBalloons=5)).keys() == {'one/onec', 'three/threec'}
    node.expect('cpus(onec) == cpus(threec)', 'count(cpus(onec)) == 4', 'disjoint(onec, twoc)')
    assert change(node, tmp_path, parts(maxBalloons=3)) == {}
    assert [zone['name'] for zone in node.ctl('zones') if zone['name'].startswith('pair')] == ['pair[0]']
    assert node.ctl('status', check=False)['degraded_containers'] == 1


REFUSED = [
    ('two types of one name', options(A, A), 'balloonTypes[1]'),
    ('minCPUs above maxCPUs', b(minCPUs=3, maxCPUs=2), 'balloonTypes[1]'),
    ('a quantity available', both(availableResources={'cpu': '4'}), 'availableResources.cpu'),
    ('a part that is not there', b(components=[{'balloonType': 'c'}]), 'balloonTypes[1]'),
    ('parts in a circle', b(components=[{'balloonType': 'b'}]), 'balloonTypes[1]'),
    ('more than there is', b(minBalloons=4, minCPUs=5), 'balloonTypes[1]'),
]


@pytest.mark.parametrize('config, place', [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_plan_that_cannot_be(make_node, tmp_path, config, place):
    """The plan is refused for the same reason as the reload, and neither changes anything."""
    node = full(make_node)
    before = node.places()
    node.updates()
    new = tmp_path / 'new.conf'
    new.write_text(json.dumps(config))
    plan = node.ctl('plan', str(new), check=False)
    assert plan['outcome'] == 'refused' and plan['moves'] == []
    error = node.badconfig(config)
    assert ': balloons.%s' % place in error
    said = plan['problems'][0] if plan.get('problems') else plan
    assert place in json.dumps(said)
    assert node.places() == before and node.updates() == []
    node.delete('a3')
    node.create('e', ctr('e0', '2', '64Mi'), annotations={BALLOON: 'a'})
    assert node.cpus('e0') == {8, 9}
