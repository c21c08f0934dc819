# SPDX-License-Identifier: Apache-2.0
"""What the node has to lend, as it gets to the Node of an API server."""
import contextlib
import json
import pathlib

import pytest

from simnode import ctr, eventually, fast_daemon, put_machine
from test_cluster import NODE, Cluster
from test_controllers import add_cgroup
from test_node_resources import GIB, config

CPU, MEMORY = 'kubernetes.io/batch-cpu', 'kubernetes.io/batch-memory'
OTHERS = 'node.koordinator.sh/thirdPartyAllocations'
SPEED = 5  # for intervals of the daemon and the agent
HAS = {'cpu': '16', 'memory': '8Gi'}


class Lending(Cluster):
    """The Node has 16 CPUs, two of which are not to be had, and 8 GiB, two of which are in use."""

    def __init__(self, make_node, folder, conf=None, topology=False):
        self.topology = topology
        super().__init__(make_node, folder, topology=topology, config={'policy': 'none'}, head={'daemon': fast_daemon(SPEED)}, speed=SPEED)
        self.put(status={'capacity': HAS, 'allocatable': {**HAS, 'cpu': '14'}})
        put_machine(self.node)
        self.set({**config(), 'calculators': ['batch']} if conf is None else conf)

    def put(self, labels=None, annotations=None, status=None):
        self.api.put('nodes', None, NODE, {'metadata': {'labels': labels or {}, 'annotations': annotations or {}}, 'status': status or {}})

    def set(self, conf):
        self.node.config({**conf, 'agent': {'cluster': True, 'nodeResourceTopology': self.topology, 'socket': self.node.paths['work'] + '/agent.sock'}})
        self.node.reload()

    def at(self):
        return self.api.find('nodes', None, NODE)

    def lent(self, part='capacity'):
        of = self.at()['status'].get(part) or {}
        return {name: int(of[name]) for name in (CPU, MEMORY) if name in of}

    def capacity_writes(self):
        return len(self.writes('/status'))


@pytest.fixture
def lending(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Lending(make_node, tmp_path, **more))


def allocations(cpu):
    return json.dumps({'allocations': [{'name': 'yarn', 'priority': 'koord-batch', 'resources': {CPU: cpu, MEMORY: '1Gi'}}]})


def test_on_the_node_and_away(lending):
    c = lending()
    whole = {CPU: 14000, MEMORY: 6 * GIB}
    eventually(lambda: c.lent() == c.lent('allocatable') == whole)
    eventually(lambda: all(w['there'] for w in c.node.ctl('node')['wishes']))
    # what a pod asks for and nobody has measured is not lent
    c.node.create('p', ctr('c', '3', '1Gi'))
    eventually(lambda: c.lent() == {CPU: 11000, MEMORY: 5 * GIB})
    # a kubelet that starts sets what it does not know to nothing
    c.put(annotations=c.at()['metadata']['annotations'], status={'capacity': {**HAS, CPU: '0', MEMORY: '0'}, 'allocatable': HAS})
    eventually(lambda: c.lent() == c.lent('allocatable') == {CPU: 11000, MEMORY: 5 * GIB})
    # lending ends
    c.set({**config(enable=False), 'calculators': ['batch']})
    eventually(lambda: c.lent() == c.lent('allocatable') == {})
    eventually(lambda: 'nri-rp/owned' not in c.at()['metadata']['annotations'])
    assert c.at()['status']['capacity'] == HAS


def test_starts_take_nothing_away(lending):
    c = lending()
    eventually(lambda: c.lent() == {CPU: 14000, MEMORY: 6 * GIB})
    before = c.capacity_writes()
    passes = c.node.ctl('node')['passes']
    c.node.restart()
    eventually(lambda: c.node.ctl('node')['passes'] > 2 and c.node.ctl('node')['wishes'])
    c.agent.kill()
    c.agent.start()
    c.node.reload()
    eventually(lambda: c.node.ctl('node')['passes'] > passes)
    assert c.capacity_writes() == before and c.lent() == {CPU: 14000, MEMORY: 6 * GIB}


@pytest.mark.parametrize('written', ['/' + NODE, '/status'])
def test_others_lend_of_it_too(lending, written):
    c = lending()
    eventually(lambda: c.lent() == {CPU: 14000, MEMORY: 6 * GIB})
    # somebody writes first, be it before annotations or before resources: the write is refused, and all is put on the Node that is there now
    clashes = []

    def late(handler):
        clashes.append(1)
        c.put(annotations={**c.at()['metadata']['annotations'], OTHERS: allocations('4000')}, status=c.at()['status'])
        handler.fail(409, 'the object has been modified')
    c.api.fault(late, when=lambda method, path, query: method == 'PATCH' and path.endswith(written))
    c.put(annotations={**c.at()['metadata']['annotations'], OTHERS: allocations('1')}, status=c.at()['status'])
    eventually(lambda: c.lent()[MEMORY] == 5 * GIB and clashes)
    eventually(lambda: c.lent() == {CPU: 10000, MEMORY: 5 * GIB})
    origin = 'node.koordinator.sh/originExtendedAllocatable'
    eventually(lambda: origin in c.at()['metadata']['annotations'])
    assert json.loads(c.at()['metadata']['annotations'][origin])['resources'][CPU] == '14000'
    # and no more: the annotation that says so goes
    left = {k: v for k, v in c.at()['metadata']['annotations'].items() if k != OTHERS}
    c.put(annotations=left, status=c.at()['status'])
    eventually(lambda: c.lent() == {CPU: 14000, MEMORY: 6 * GIB} and origin not in c.at()['metadata']['annotations'])


def test_the_node_says_how(lending):
    """Its own annotation and labels are the last word on the strategy, and what it reserves is not lent."""
    c = lending()
    eventually(lambda: c.lent() == {CPU: 14000, MEMORY: 6 * GIB})
    c.put(labels={'node.koordinator.sh/cpu-reclaim-ratio': '0.5'}, annotations=c.at()['metadata']['annotations'], status=c.at()['status'])
    eventually(lambda: c.lent().get(CPU) == 6000)
    assert any(f['origin'] == 'node label' for f in c.node.ctl('node')['strategy'])
    c.put(annotations={**c.at()['metadata']['annotations'], 'node.koordinator.sh/reservation': '{"resources": {"cpu": "5"}}'}, status=c.at()['status'])
    eventually(lambda: c.lent().get(CPU) == 11000)
    c.put(annotations={**c.at()['metadata']['annotations'], 'node.koordinator.sh/colocation-strategy': '{"enable": false}'}, status=c.at()['status'])
    eventually(lambda: c.lent() == {})


def test_little_changes_are_not_written(lending):
    c = lending(conf={**config(resourceDiffThreshold=0.2), 'calculators': ['batch']})
    eventually(lambda: c.lent() == {CPU: 14000, MEMORY: 6 * GIB})
    before = c.capacity_writes()
    c.node.create('small', ctr('c', '1', '1Mi'))
    eventually(lambda: next(r['value'] for r in c.node.ctl('node')['resources'] if r['name'] == CPU) == 13000)
    assert c.lent()[CPU] == 14000 and c.capacity_writes() == before
    c.node.create('large', ctr('c', '4', '1Mi'))
    eventually(lambda: c.lent()[CPU] == 9000)
    assert c.capacity_writes() == before + 1


def test_zones_of_the_node(lending):
    """Beside those of the policy, for whoever places pods by memory node: an amount is told anew when it differs enough by itself."""
    conf = {**config(resourceDiffThreshold=0.2), 'calculators': ['cpu-normalization', 'batch'], 'cpu-normalization': {'enable': True, 'defaultRatio': 1.5},
            'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}
    c = lending(conf=conf, topology=True)

    def zones():
        return (c.api.find('noderesourcetopologies', None, NODE) or {'zones': []})['zones']

    def of(name):
        resources = {z['name']: {r['name']: int(r['available']) for r in z['resources']} for z in zones() if z['type'] == 'Node'}
        return [resources.get('node-%d' % n, {}).get(name) for n in range(4)]
    # 4 CPUs each, less half of one that the node keeps of its sixteen; a CPU is worth one and a half, memory is not
    eventually(lambda: of(CPU) == [5250] * 4 and of(MEMORY) == [GIB * 3 // 2] * 4)
    assert [z['name'] for z in zones()] == ['NUMA node #%d' % n for n in range(4)] + ['node-%d' % n for n in range(4)]
    c.node.create('p', ctr('c', '1', '1Mi'))
    (cpu,) = c.node.cpus('p/c')
    eventually(lambda: of(CPU) == [3750 if n == cpu // 4 else 5250 for n in range(4)])
    # less than a fifth of what a zone has
    c.node.create('q', ctr('c', '600m/1', '1Mi'))
    passes = c.node.ctl('node')['passes']
    eventually(lambda: c.node.ctl('node')['passes'] > passes + 1)
    assert sorted(of(CPU)) == [3750, 5250, 5250, 5250]
    c.set({**conf, 'nodeResources': config(enable=False)['nodeResources']})
    eventually(lambda: of(CPU) == of(MEMORY) == [None] * 4 and len(zones()) == 4)


def test_by_the_names_of_the_site(lending):
    """Pods, the Node, what others lend and what is put there go by them; they go when the site has others."""
    conf = {**config(), 'calculators': ['batch', 'cpu-normalization'], 'cpu-normalization': {'enable': True, 'defaultRatio': 1.5}}
    own = {'koordinator.sh': 'a.example', 'node.koordinator.sh': 'node.a.example', 'kubernetes.io': 'lent.example'}
    conf['nodeResources'] = {**conf['nodeResources'], 'prefixes': own, 'nodeConfigs': [
        {'name': 'x', 'matchLabels': {'a.example/kind': 'x'}, 'strategy': {'memoryReclaimThresholdPercent': 50}}]}
    c = lending(conf=conf)
    spare = 'lent.example/batch-cpu', 'lent.example/batch-memory'
    ratio, origin = 'node.a.example/cpu-normalization-ratio', 'node.a.example/originExtendedAllocatable'

    def lent(names=spare):
        of = c.at()['status'].get('capacity') or {}
        return {name.rpartition('/')[2]: int(of[name]) for name in names if name in of}

    def annotations():
        return c.at()['metadata']['annotations']
    eventually(lambda: lent() == {'batch-cpu': 21000, 'batch-memory': 6 * GIB} and annotations().get(ratio) == '1.50')
    c.node.create('p', ctr('c', '3', '1Gi'), labels={'a.example/priority-class': 'koord-batch', 'koordinator.sh/priority-class': 'koord-prod'})
    c.node.create('q', ctr('d', '2', '1Gi'), labels={'koordinator.sh/priority-class': 'koord-batch'})
    eventually(lambda: lent() == {'batch-cpu': 18000, 'batch-memory': 5 * GIB})
    others = allocations('3000').replace('kubernetes.io', 'lent.example')
    c.put(labels={'node.a.example/cpu-reclaim-ratio': '0.875', 'node.koordinator.sh/memory-reclaim-ratio': '0.1', 'a.example/kind': 'x'},
          annotations={**annotations(), 'node.a.example/thirdPartyAllocations': others}, status=c.at()['status'])
    # 16 CPUs less one eighth, cut to whole percents, two that are reserved and two that are asked for; times 1.5; less three
    eventually(lambda: lent() == {'batch-cpu': (16000 - 2080 - 2000 - 2000) * 3 // 2 - 3000, 'batch-memory': 0} and origin in annotations())
    assert list(json.loads(annotations()[origin])['resources']) == list(spare)
    assert {r['name'] for r in c.node.ctl('node')['resources']} == set(spare)
    eventually(lambda: all(w['there'] for w in c.node.ctl('node')['wishes']))
    writes, passes = len(c.api.writes), c.node.ctl('node')['passes']
    eventually(lambda: c.node.ctl('node')['passes'] > passes + 2)
    assert len(c.api.writes) == writes, 'what is there by its names is not written again'
    del conf['nodeResources']['prefixes']
    c.set(conf)
    eventually(lambda: lent((CPU, MEMORY)) and not lent() and not {ratio, origin} & set(annotations()))
    assert annotations()[ratio.replace('a.example', 'koordinator.sh')] == '1.50'


def test_cpus_of_the_system_alone(make_node, tmp_path):
    """What an annotation of the Node gives to the system is not used by BestEffort pods."""
    conf = {'policy': 'none', 'controllers': ['cpu-suppress'], 'metrics': {'collectInterval': '1s'}, 'cpu-suppress': {'interval': '200ms', 'reserved': '6400m'}}
    with Lending(make_node, tmp_path, {'policy': 'none'}) as c:
        group = pathlib.Path(c.node.paths['root']) / 'sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice'
        group.mkdir(parents=True, exist_ok=True)
        (group / 'cpu.max').write_text('max 100000\n')
        (group / 'cpuset.cpus').write_text('\n')
        c.set(conf)
        c.node.create('batch', ctr('b'), labels={'koordinator.sh/qosClass': 'BE'})
        add_cgroup(c.node, 'default/batch/b', {'cpu.stat': 'usage_usec 0\nnr_periods 0\nnr_throttled 0\n'})

        def allowed():
            return (group / 'cpuset.cpus').read_text().strip()
        eventually(lambda: allowed() == '0-1,4-5')
        c.put(annotations={'node.koordinator.sh/system-qos-resource': '{"cpuset": "0-1"}'})
        eventually(lambda: allowed() == '4-5,8-9')
        c.put(annotations={'node.koordinator.sh/system-qos-resource': '{"cpuset": "0-1", "cpusetExclusive": false}'})
        eventually(lambda: allowed() == '0-1,4-5')
