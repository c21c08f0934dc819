# SPDX-License-Identifier: Apache-2.0
"""Live switches from each policy to each other one, with 100 containers: a plan says what then happens, and nobody is lost or left with nothing."""
import itertools
import pathlib

import pytest
import yaml

from simnode import SimError, cpuset, ctr
from test_cluster import Cluster
from test_cluster_pods import container, knows, put_pod
from test_qos_kill import DEDICATED

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


# ---- with a cluster ------------------------------------------------------------------------------------------------------------------------

DAEMON_SET = {'ownerReferences': [{'kind': 'DaemonSet', 'name': 'd', 'controller': True}]}
BATCH = {'kubernetes.io/batch-cpu': '500', 'kubernetes.io/batch-memory': '64Mi'}
LARGER = {'name': 'larger', 'scope': [{'containers': [{'key': 'pod/name', 'operator': 'Equals', 'values': ['adjusted']}]}],
          'resources': {'requests': {'cpu': '2'}, 'limits': {'cpu': '2'}}}
QUESTIONS = 4  # dedicated pods that there is room for, with everything else


def put_all_pods(c):
    """What the cluster tells of them: {pod: (container, more of it)}, as the runtime has them."""
    for i in range(2):
        put_pod(c, 'agent%d' % i, container('a', '50m'), **DAEMON_SET)
        put_pod(c, 'batch%d' % i, {'name': 'b', 'resources': {'requests': BATCH, 'limits': BATCH}}, labels={'koordinator.sh/qosClass': 'BE'})
    put_pod(c, 'big-agent', container('a', '1'), **DAEMON_SET)
    put_pod(c, 'adjusted', container('c', '1'))
    put_pod(c, 'web', container('w', '200m'))
    put_pod(c, 'init', container('w', '100m'), init=[container('setup', '1')])
    for i in range(QUESTIONS):
        put_pod(c, 'q%d' % i, container('c', '1'))
    knows(c, 8 + QUESTIONS)


def create_all_pods(node):
    for i in range(2):
        node.create('agent%d' % i, ctr('a', '50m/-'), uid='uid-agent%d' % i)
        node.create('batch%d' % i, ctr('b'), uid='uid-batch%d' % i, labels={'koordinator.sh/qosClass': 'BE'})
    node.create('big-agent', ctr('a', '1', '64Mi'), uid='uid-big-agent')
    node.create('adjusted', ctr('c', '1', '64Mi'), uid='uid-adjusted')
    node.create('web', ctr('w', '200m/-'), uid='uid-web')
    node.create('init', ctr('setup', '1', '64Mi'), uid='uid-init')
    node.create('dns', ctr('k', '100m/-'), namespace='kube-system')
    node.create('alone', ctr('x', '500m/1', '64Mi'))


def ask_for_dedicated(node, policy):
    """How many dedicated pods are created; then they are removed."""
    env = {'STP_POOL': 'exclusive', 'CMK_NUM_CORES': '1'} if policy == 'static-pools' else {}
    made = []
    for i in range(QUESTIONS):
        try:
            node.create('q%d' % i, ctr('c', '1', '64Mi', env=env), uid='uid-q%d' % i, annotations=DEDICATED)
            made.append('q%d' % i)
        except SimError as e:
            assert e.result.get('failed') and 'on which other containers run' not in str(e), e
    known = {c['full_name']: c for c in node.ctl('containers')}
    owned = {name: cpuset(c['exclusive']) for name, c in known.items() if c['exclusive']}
    for name, own in owned.items():
        for other, c in known.items():
            together = other.split('/')[1] == name.split('/')[1]
            assert together or not own & cpuset(c['cpus'] or ''), (policy, name, own, other, c['cpus'])
    if made:
        node.delete(*made)
    return len(made)


def test_every_pair_with_a_cluster(make_node, tmp_path):
    """Pods of DaemonSets and batch pods, of which the feed tells, and adjusted ones: nothing of a policy stays behind that another one trips over."""
    names, n = list(SMALL), {}
    with Cluster(make_node, tmp_path, config={'policy': 'none'}) as c:
        node = c.node
        agent = {'cluster': True, 'nodeResourceTopology': True, 'socket': node.paths['work'] + '/agent.sock'}
        put_all_pods(c)
        create_all_pods(node)
        for old, new in [(None, names[0]), *itertools.pairwise(circuit(names))]:
            node.config({'policy': new, new: SMALL[new], 'metrics': {'listen': ''}, 'agent': agent, 'adjustments': [LARGER]})
            node.settle(20)
            agents = {cpus for name, (cpus, _) in node.places().items() if 'agent' in name}
            assert new != 'qos' or agents == {'0-15'}, 'CPUs of %s stay behind' % old
            made = ask_for_dedicated(node, new)
            assert n.setdefault(new, made) == made, '%s to %s: %d dedicated pods were created, %d before' % (old, new, made, n[new])
            assert new != 'qos' or made == QUESTIONS, old
        assert 'violates an invariant' not in node.read_log()
