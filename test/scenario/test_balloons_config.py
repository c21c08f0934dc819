# SPDX-License-Identifier: Apache-2.0
"""The balloons policy over the wire: configurations that are refused, with the place and the reason, and changes of types under load."""
import pathlib
import time

import pytest

from balloonnode import BALLOON, change, full, options
from simnode import cpuset, ctr

INTERRUPTS = '''            CPU0       CPU1
  24:          1          0  PCI-MSI 524288-edge  eth0-rx-0
  25:          0          1  PCI-MSI 524289-edge  nvme0q1
'''


def expression(key, operator, *values):
    return {'key': key, 'operator': operator, **({'values': list(values)} if values else {})}


def matching(*args):
    return options({'name': 'a', 'matchExpressions': [expression(*args)]})


def with_type(**values):
    return options({'name': 'a', **values})


def composite(**values):
    return options({'name': 'b'}, {'name': 'a', 'components': [{'balloonType': 'b'}], **values})


def classes(*list_of):
    return options({'name': 'a'}, cpuClasses=list(list_of))


TYPE = 'balloonTypes[0]'
EXPRESSION = TYPE + '.matchExpressions[0]'

# Where it is said to be, and what is wrong.
REFUSED = [
    # expressions
    (matching('name', 'Like', 'x'), EXPRESSION, 'unknown operator "Like"'),
    (matching('name', 'Equals'), EXPRESSION, 'takes 1 values, found 0'),
    (matching('name', 'Equals', 'x', 'y'), EXPRESSION, 'takes 1 values, found 2'),
    (matching('name', 'NotEqual', 'x', 'y'), EXPRESSION, 'takes 1 values, found 2'),
    (matching('name', 'Matches'), EXPRESSION, 'takes 1 values, found 0'),
    (matching('name', 'MatchesNot', 'x', 'y'), EXPRESSION, 'takes 1 values, found 2'),
    (matching('name', 'Exists', 'x'), EXPRESSION, 'takes 0 values, found 1'),
    (matching('name', 'NotExist', 'x'), EXPRESSION, 'takes 0 values, found 1'),
    (matching('name', 'AlwaysTrue', 'x'), EXPRESSION, 'takes 0 values, found 1'),
    (matching('nam', 'Exists'), EXPRESSION, 'unknown word'),
    (matching('pod/nam', 'Exists'), EXPRESSION, 'unknown word'),
    (matching(':name:nam', 'Exists'), EXPRESSION, 'unknown word'),
    *((matching(f'{key}/x', 'Exists'), EXPRESSION, 'nothing may follow its last word') for key in (
        'id', 'uid', 'name', 'namespace', 'qosclass', 'pod/id', 'pod/uid', 'pod/name', 'pod/namespace', 'pod/qosclass')),
    *((matching(key, 'Exists'), EXPRESSION, 'nothing follows') for key in ('pod', 'labels', 'tags', 'pod/labels', 'labels/')),
    (options(preserve={'matchExpressions': [expression('name', 'In', 'x'), expression('nam', 'Exists')]}),
     'preserve.matchExpressions[1]', 'unknown word'),
    # interrupts
    (options({'name': 'a', 'irqClaim': ['*eth0*']}, controllableInterrupts=['*nvme*']), TYPE, 'denied interrupt 24'),
    (options(controllableInterrupts=['*', '[']), 'controllableInterrupts[1]', 'not a valid pattern'),
    # types
    (options({'minCPUs': 1}), TYPE + '.name', 'required'),
    (options({'name': ''}), TYPE, 'needs a name'),
    (options({'name': 'a'}, {'name': 'b'}, {'name': 'a'}), 'balloonTypes[2]', 'two balloon types are named "a"'),
    (with_type(minCPUs=3, maxCPUs=2), TYPE + '.minCPUs', 'minCPUs 3 is more than maxCPUs 2'),
    (with_type(minCPUs=-1), TYPE + '.minCPUs', 'negative'),
    (with_type(minCPUs=2**32 + 1), TYPE + '.minCPUs', 'expected'),
    (with_type(maxCPUs=2**63 - 1), TYPE + '.maxCPUs', 'expected'),
    (with_type(minCPUs=1, maxCPUs=-1), TYPE + '.minCPUs', 'allows none'),
    (with_type(minBalloons=3, maxBalloons=2), TYPE + '.minBalloons', 'minBalloons 3 is more than maxBalloons 2'),
    (with_type(minBalloons=-1), TYPE + '.minBalloons', 'expected'),
    (with_type(maxBalloons=-1), TYPE + '.maxBalloons', 'expected'),
    (with_type(memoryTypes=['DRAM', 'SRAM']), TYPE + '.memoryTypes[1]', 'unknown memory type "SRAM"'),
    (with_type(allocatorPriority='urgent'), TYPE + '.allocatorPriority', 'expected high, normal, low or none'),
    (with_type(preferCoreType='big'), TYPE + '.preferCoreType', 'expected'),
    (with_type(shareIdleCPUsInSame='socket'), TYPE + '.shareIdleCPUsInSame', 'expected'),
    (with_type(irqMode='both'), TYPE + '.irqMode', 'expected'),
    (with_type(groupBy='${name'), TYPE + '.groupBy', 'bad groupBy'),
    (with_type(groupBy='}'), TYPE + '.groupBy', 'bad groupBy'),
    (with_type(pinMemory='perhaps'), TYPE + '.pinMemory', 'expected true or false'),
    (with_type(minCPU=1), TYPE + '.minCPU', 'did you mean minCPUs'),
    # amounts
    (options(availableResources={'cpu': 4}), 'availableResources.cpu', 'quantity'),
    (options(availableResources={'cpu': 'cpuset:x'}), 'availableResources.cpu', 'expected an amount of CPU'),
    (options(availableResources={'cpu': 'cpuset:100'}), 'availableResources.cpu', 'none of the available CPUs'),
    (options(reservedResources={'cpu': 'many'}), 'reservedResources.cpu', 'expected'),
    (options(availableResources={'cpu': 'cpuset:1-3'}, reservedResources={'cpu': 'cpuset:0-1'}), 'reservedResources.cpu',
     'reserved CPUs 0 are not available'),
    (options({'name': 'reserved', 'minCPUs': 1}, reservedResources={'cpu': 2}), 'reservedResources.cpu',
     'minCPUs of balloon type reserved is 1'),
    (options({'name': 'reserved', 'maxCPUs': 1}, reservedResources={'cpu': 2}), 'reservedResources.cpu',
     'maxCPUs of balloon type reserved is 1'),
    # composite ones
    (composite(cpuClass='x'), 'balloonTypes[1].cpuClass', 'has components'),
    (composite(preferSpreadOnPhysicalCores=True), 'balloonTypes[1].preferSpreadOnPhysicalCores', 'has components'),
    (composite(allocatorTopologyBalancing=False), 'balloonTypes[1].allocatorTopologyBalancing', 'has components'),
    (composite(preferCloseToDevices=['/x']), 'balloonTypes[1].preferCloseToDevices', 'has components'),
    (composite(preferIsolCpus=True), 'balloonTypes[1].preferIsolCpus', 'has components'),
    (composite(preferCoreType='efficient'), 'balloonTypes[1].preferCoreType', 'has components'),
    (composite(componentCreation='some'), 'balloonTypes[1].componentCreation', 'expected'),
    (with_type(componentCreation='all'), TYPE + '.componentCreation', 'without components'),
    (with_type(components=[{}]), TYPE + '.components[0].balloonType', 'required'),
    (with_type(components=[{'balloonType': 'x'}]), TYPE, 'unknown balloon type "x"'),
    (with_type(components=[{'balloonType': 'a'}]), TYPE, 'component of itself'),
    (options({'name': 'a', 'components': [{'balloonType': 'b'}]}, {'name': 'b', 'components': [{'balloonType': 'a'}]}), TYPE,
     'component of itself'),
    # classes
    (with_type(loads=['x']), TYPE + '.loads[0]', 'unknown load class "x"'),
    (options(loadClasses=[{'level': 'core'}]), 'loadClasses[0].name', 'required'),
    (options(loadClasses=[{'name': 'x'}]), 'loadClasses[0].level', 'required'),
    (options(loadClasses=[{'name': 'x', 'level': 'numa'}]), 'loadClasses[0].level', 'expected'),
    (options(loadClasses=[{'name': 'x', 'level': 'core'}] * 2), 'loadClasses[1]', 'two load classes'),
    (with_type(schedulingClass='x'), TYPE + '.schedulingClass', 'unknown scheduling class "x"'),
    (options(schedulingClasses=[{'name': 'x'}] * 2), 'schedulingClasses[1]', 'two scheduling classes'),
    (options(schedulingClasses=[{'name': 'x', 'policy': 'fast'}]), 'schedulingClasses[0].policy', 'expected'),
    (options(schedulingClasses=[{'name': 'x', 'nice': 20}]), 'schedulingClasses[0].nice', 'expected'),
    (options(schedulingClasses=[{'name': 'x', 'flags': ['fast']}]), 'schedulingClasses[0].flags[0]', 'expected'),
    (classes({'maxFreq': '1GHz'}), 'cpuClasses[0].name', 'required'),
    (classes({'name': ''}), 'cpuClasses[0]', 'needs a name'),
    (classes({'name': 'x'}, {'name': 'x'}), 'cpuClasses[1]', 'two CPU classes are named "x"'),
    (classes({'name': 'x', 'minFreq': '2 gallons'}), 'cpuClasses[0].minFreq', 'expected'),
    (classes({'name': 'x', 'minFreq': '2GHz', 'maxFreq': '1GHz'}), 'cpuClasses[0]', 'higher than maxFreq'),
    (classes({'name': 'x', 'pctPriority': 'middle'}), 'cpuClasses[0].pctPriority', 'expected'),
    (classes({'name': 'x', 'sstClosID': -1}), 'cpuClasses[0].sstClosID', 'expected'),
    (classes({'name': 'x', 'pctPriority': 'high', 'sstClosID': 1}), 'cpuClasses[0]', 'exclude each other'),
    (classes({'name': 'x', 'pctMinFreq': '1GHz'}), 'cpuClasses[0]', 'need a pctPriority'),
    (classes({'name': 'x', 'pctMaxFreq': '1GHz'}), 'cpuClasses[0]', 'need a pctPriority'),
    (classes({'name': 'x', 'publishExtendedResource': True}), 'cpuClasses[0]', 'publishExtendedResource needs'),
    (classes({'name': 'x', 'pctPriority': 'low'}, {'name': 'y', 'sstClosID': 1}), 'cpuClasses[1]', 'mix'),
    (classes({'name': 'x', 'pctPriority': 'low'}, {'name': 'y', 'pctPriority': 'low'}), 'cpuClasses[1]', 'same pctPriority'),
    (classes({'name': 'x', 'pctPriority': 'high'}, {'name': 'y', 'pctPriority': 'high'}), 'cpuClasses[1]', 'same pctPriority'),
    (classes({'name': 'x', 'uncoreMinFreq': '1GHz'}), 'cpuClasses[0]', 'no uncore frequency driver'),
    (classes({'name': 'x', 'uncoreMaxFreq': '1GHz'}), 'cpuClasses[0]', 'no uncore frequency driver'),
    (options(control={'cpu': {'classes': {'x': {'minFreq': '2GHz', 'maxFreq': '1GHz'}}}}), 'control.cpu.classes.x',
     'higher than maxFreq'),
    (options(turboDomain='die'), 'turboDomain', 'expected'),
    # the first balloons
    (with_type(minBalloons=9, minCPUs=2), TYPE, 'not enough free CPUs'),
    (options({'name': 'b', 'minCPUs': 9}, {'name': 'a', 'minBalloons': 2, 'components': [{'balloonType': 'b'}]}), 'balloonTypes[1]',
     'not enough free CPUs'),
]


@pytest.fixture(scope='module')
def busy():
    """One node for all of the table: nothing ever changes there."""
    from simnode import Node
    with Node(options({'name': 'a', 'preferNewBalloons': True})) as node:
        pathlib.Path(node.paths['root'], 'proc', 'interrupts').write_text(INTERRUPTS)
        node.create('p', ctr('p0', '3', '64Mi'), ctr('p1', '500m/1'), annotations={BALLOON: 'a'})
        node.create('q', ctr('q0'))
        yield node


@pytest.mark.parametrize('bad, place, why', REFUSED, ids=range(len(REFUSED)))
def test_refused(busy, bad, place, why):
    before = busy.places()
    busy.updates()
    error = busy.badconfig(bad)
    assert ': balloons.%s:' % place in error and why in error
    assert 'rp.conf:' in error
    assert busy.places() == before
    assert busy.updates() == []


def test_defaults_that_an_api_server_fills_in_say_nothing(make_node):
    node = make_node(composite(preferIsolCpus=False, preferCoreType='', preferCloseToDevices=[]))
    node.create('x', ctr('x0', '2', '64Mi'), annotations={BALLOON: 'a'})
    assert len(node.cpus('x0')) >= 2


def test_the_old_one_stays_in_force(busy):
    before = busy.places()
    for bad, _, _ in REFUSED[::7]:
        busy.badconfig(bad)
        busy.create('x', ctr('x0', '2', '64Mi'), annotations={BALLOON: 'a'})
        assert len(busy.cpus('x0')) == 2
        busy.delete('x')
        assert busy.places() == before


WARNED = [
    (with_type(cpuClass='x'), 'unknown CPU class "x"'),
    (options(idleCPUClass='x'), 'unknown CPU class "x"'),
    (with_type(preferIsolCpus=True, shareIdleCPUsInSame='numa'), 'preferIsolCpus with shareIdleCPUsInSame'),
    (with_type(preferCloseToDevices=['podresourceapi:x/y']), 'podresourceapi:x/y'),
    (classes({'name': 'x', 'pctPriority': 'high'}), 'Speed Select'),
    (options(idleCPUClass='x', cpuClasses=[{'name': 'x', 'turboPriority': 1}]), 'compete for turbo'),
    (options({'name': 'a'}, control={'cpu': {'classes': {'x': {}}}}), 'is obsolete: use cpuClasses'),
]


@pytest.mark.parametrize('odd, why', WARNED, ids=range(len(WARNED)))
def test_accepted_with_a_warning(make_node, odd, why):
    node = make_node(odd)
    node.create('p', ctr('p0', '1', '64Mi'))
    node.log(why)


# ---- changes under load -------------------------------------------------------------------------------------------------------

A = {'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True}
B = {'name': 'b'}
CHANGES = [
    # Nobody has to move for these.
    ('same', options(A, B), set()),
    ('another type', options({'name': 'c', 'maxCPUs': 2}, A, B), set()),
    ('order', options(B, A), set()),
    ('limits that hold', options({**A, 'maxCPUs': 2, 'maxBalloons': 4}, {**B, 'minCPUs': 4, 'minBalloons': 1}), set()),
    ('preferences', options({'name': 'a', 'preferPerNamespaceBalloon': True, 'allocatorTopologyBalancing': True}, B), set()),
    ('classes', options({**A, 'cpuClass': 'x'}, B, cpuClasses=[{'name': 'x', 'maxFreq': '2GHz'}]), set()),
    ('sharing', options({**A, 'shareIdleCPUsInSame': 'numa'}, B), set()),
    ('hidden threads', options(A, {**B, 'hideHyperthreads': True}), {'b/b0', 'b/b1'}),
]


@pytest.mark.parametrize('config, movers', [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_change_moves_who_must_move(make_node, tmp_path, config, movers):
    node = full(make_node)
    assert set(change(node, tmp_path, config)) == movers


def test_one_type_is_gone(make_node, tmp_path):
    """Its containers have an annotation for it: they keep what they have until it is back."""
    node = full(make_node)
    assert change(node, tmp_path, options(A)) == {}
    assert change(node, tmp_path, options(A, B)) == {}


def test_others_make_no_room(make_node, tmp_path):
    """What a type would like more of is not taken from those that stay, and comes when there is room."""
    node = full(make_node)
    assert change(node, tmp_path, options(A, {**B, 'minCPUs': 5})) == {}
    node.log('fewer than minCPUs')
    node.delete('a3')
    node.create('b2', ctr('b2c', '500m/1'), annotations={BALLOON: 'b'})
    node.expect('count(cpus(b0)) == 5', 'disjoint(b0, a0c, a1c, a2c, d0, k0)')


def test_limit_that_does_not_hold_any_more(make_node, tmp_path):
    """Of a balloon that has to shrink, those that came last have no place any more and keep what they have."""
    node = full(make_node)
    change(node, tmp_path, options(A, {**B, 'maxCPUs': 2}))
    assert len(node.cpus('b0')) == 2
    node.expect('disjoint(b0, a0c, a1c, a2c, a3c, d0, k0)')


def test_shrinking_makes_room_for_growing(make_node, tmp_path):
    node = full(make_node)
    node.delete('a3')
    moved = change(node, tmp_path, options(A, {**B, 'minCPUs': 6}))
    assert set(moved) == {'b/b0', 'b/b1'}
    assert all(len(cpuset(cpus)) == 6 for cpus, _ in moved.values())


# ---- custom resources ---------------------------------------------------------------------------------------------------------

def frequencies(node, cpu):
    folder = pathlib.Path(node.paths['root'], 'sys/devices/system/cpu/cpu%d/cpufreq' % cpu)
    return {f: (folder / f).read_text().strip() for f in ('scaling_min_freq', 'scaling_max_freq')}


def reaches(node, cpu, **wanted):
    deadline = time.monotonic() + 20
    while frequencies(node, cpu) != {**frequencies(node, cpu), **wanted} and time.monotonic() < deadline:
        time.sleep(0.02)
    assert frequencies(node, cpu) == {**frequencies(node, cpu), **wanted}


def test_classes_of_a_custom_resource(make_node):
    """Its control.cpu.classes are the balloons' classes; what else is in control goes where it always goes."""
    spec = {'reservedResources': {'cpu': '1'}, 'idleCPUClass': 'slow', 'balloonTypes': [{'name': 'a', 'cpuClass': 'fast'}],
            'control': {'cpu': {'classes': {'slow': {'maxFreq': 1200000}, 'fast': {'minFreq': 3000000}}}, 'rdt': {'enable': False}}}
    node = make_node({'policy': 'balloons', 'balloons': spec}, start=False)
    limits = {'cpuinfo_min_freq': '800000', 'cpuinfo_max_freq': '3800000', 'scaling_min_freq': '800000', 'scaling_max_freq': '3800000'}
    for cpu in range(16):
        folder = pathlib.Path(node.paths['root'], 'sys/devices/system/cpu/cpu%d/cpufreq' % cpu)
        folder.mkdir(exist_ok=True)
        for name, text in limits.items():
            (folder / name).write_text(text + '\n')
    node.start()
    node.create('p', ctr('p0', '2', '64Mi'), annotations={BALLOON: 'a'})
    cpu = min(node.cpus('p0'))
    reaches(node, cpu, scaling_min_freq='3000000', scaling_max_freq='3800000')
    reaches(node, 15, scaling_max_freq='1200000')
    node.delete('p')
    reaches(node, cpu, scaling_min_freq='800000', scaling_max_freq='1200000')
