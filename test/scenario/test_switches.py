# SPDX-License-Identifier: Apache-2.0
"""Live switches from each policy to each other one, with 100 containers: a plan says what then happens, and nobody is lost or left with nothing."""
import itertools
import pathlib

import pytest
import yaml

from simnode import cpuset, ctr

RESERVED = {'reservedResources': {'cpu': 'cpuset:0-1'}}
SECTIONS = {
    'none': {},
    'topology-aware': RESERVED,
    'balloons': {**RESERVED, 'balloonTypes': [{'name': 'own', 'namespaces': ['exact'], 'preferNewBalloons': True}, {'name': 'many', 'namespaces': ['parts']}]},
    'static': RESERVED,
    'static-plus': RESERVED,
    'static-pools': {'pools': {'exclusive': {'exclusive': True, 'cpuLists': [{'cpuset': '%d-%d' % (i, i + 1)} for i in range(8, 40, 2)]},
                               'shared': {'cpuLists': [{'cpuset': '40-63'}, {'cpuset': '64-127'}]}, 'infra': {'cpuLists': [{'cpuset': '0-7'}]}}},
    'podpools': {**RESERVED, 'pools': [{'name': 'pool', 'cpu': 4, 'maxPods': 3, 'instances': 4}, {'name': 'wide', 'cpu': 16, 'fillOrder': 'Packed'}]},
    'dynamic-pools': {**RESERVED, 'dynamicPoolTypes': [{'name': 'pool', 'namespaces': ['exact']}, {'name': 'wide', 'namespaces': ['parts']}]},
    'cpuset': {**RESERVED, 'minSharedCPUs': 2},
    'qos': {'reservedCPUs': '0-1', 'rampUpSeconds': 0},
}


OWNERS = ('topology-aware', 'balloons', 'static', 'static-plus', 'cpuset')  # who asks for whole CPUs has them alone
SMALL = {**SECTIONS, 'static-pools': {'pools': {'exclusive': {'exclusive': True, 'cpuLists': [{'cpuset': str(i)} for i in range(8, 12)]},
                                                'shared': {'cpuLists': [{'cpuset': '2-7'}, {'cpuset': '12-15'}]}, 'infra': {'cpuLists': [{'cpuset': '0-1'}]}}},
         'podpools': {**RESERVED, 'pools': [{'name': 'pool', 'cpu': 2, 'maxPods': 3, 'instances': 2}, {'name': 'wide', 'cpu': 4, 'fillOrder': 'Packed'}]}}


def circuit(names):
    """A closed walk that takes each ordered pair once."""
    left = {a: [b for b in names if b != a] for a in names}
    path, walk = [names[0]], []
    while path:
        if left[path[-1]]:
            path.append(left[path[-1]].pop())
        else:
            walk.append(path.pop())
    return walk[::-1]


def populate(node):
    for i in range(14):
        node.create('exact%d' % i, ctr('e%d' % i, str(1 + i % 4), '64Mi'), namespace='exact')
        node.create('many%d' % i, ctr('m%d' % i, '1500m/3', '64Mi'), ctr('n%d' % i, '250m/1'), namespace='parts',
                    annotations={'pool.podpools.resource-policy.nri.io': 'pool', 'dynamic-pool.dynamic-pools.resource-policy.nri.io': 'wide'})
        node.create('free%d' % i, ctr('f%d' % i), ctr('g%d' % i))
        node.create('listed%d' % i, ctr('l%d' % i, '500m/1', env={'STP_POOL': 'exclusive', 'CMK_NUM_CORES': '1'}),
                    annotations={'pool.podpools.resource-policy.nri.io': 'wide'})
    for i in range(8):
        node.create('system%d' % i, ctr('k%d' % i, '100m/-'), namespace='kube-system')
    for i in range(8):
        node.create('named%d' % i, ctr('a%d' % i, '1/2'), annotations={'weka.io/cores-ids': '%d,%d' % (100 + i, 101 + i)})


def places(node):
    return {name.split('/')[-1]: cpus for name, (cpus, _) in node.places().items()}


def told(moves):
    return {m['container'].split('/')[-1]: m['to_cpus'] for m in moves}


@pytest.mark.parametrize('machine, sections', [('n4c128', SECTIONS), ('n4c16', SMALL)], ids=['room for all', 'too many'])
def test_every_pair(make_node, tmp_path, machine, sections):
    """Where there are too few CPUs for all, some are degraded, which nothing else may suffer from."""
    names = list(sections)
    walk = circuit(names)
    assert sorted(itertools.pairwise(walk)) == sorted(itertools.permutations(names, 2))
    files = {}
    for name in names:
        files[name] = tmp_path / (name + '.conf')
        files[name].write_text(yaml.safe_dump({'policy': name, name: sections[name], 'metrics': {'listen': ''}}))
    node = make_node(yaml.safe_load(files[names[0]].read_text()), machine=machine)
    populate(node)
    before = places(node)
    assert len(before) == 100
    for old, new in itertools.pairwise(walk):
        step = '%s to %s' % (old, new)
        plan = node.ctl('plan', str(files[new]))
        assert plan['outcome'] == 'accepted', (step, plan)
        pathlib.Path(node.paths['config']).write_text(files[new].read_text())
        done = node.ctl('reload')
        node.settle(20)
        after = places(node)
        assert done['outcome'] == 'in force', (step, done)
        assert told(done['moves']) == told(plan['moves']), step
        assert set(after) == set(before), step
        moves = {name: cpus for name, cpus in told(plan['moves']).items() if cpus != before[name]}
        assert {name: cpus for name, cpus in after.items() if cpus != before[name]} == moves, step
        assert all(cpuset(cpus) <= cpuset('0-%d' % (int(machine[3:]) - 1)) and (cpus or new == 'none') for cpus in after.values()), step
        assert machine == 'n4c16' or node.control('Status')['degraded_containers'] == 0, step
        if machine == 'n4c128' and new in OWNERS:
            own = [name for name in after if name.startswith('e')]
            assert not [(a, b) for a in own for b in after if a != b and cpuset(after[a]) & cpuset(after[b])], step
        before = after
