# SPDX-License-Identifier: Apache-2.0
"""Devices that claims allocate (DRA), all the way: a kubelet, an API server with ResourceSlices, a real nri-rp-agent, a real nri-rpd.

n4c16 has four NUMA nodes of four CPUs: node 0 has CPUs 0-3, node 1 4-7, node 2 8-11, node 3 12-15.
"""
import contextlib
import pathlib

import pytest

from apiserver import ApiServer
from kubelet import Agent, Kubelet
from simnode import ctr, eventually

NODE = [{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}]
DRIVER, POOL, SLICES = 'gpu.example.com', 'n1', 'resourceslices'
RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
NEAR_GPU = {'name': 'gpu', 'minCPUs': 2, 'maxCPUs': 2, 'preferNewBalloons': True, 'preferSpreadingPods': True,
            'preferCloseToDevices': ['claim:%s/gpu-*' % DRIVER], 'namespaces': ['default']}
POLICIES = {
    'topology-aware': {'policy': 'topology-aware', 'topology-aware': RESERVED},
    'balloons': {'policy': 'balloons', 'balloons': {**RESERVED, 'balloonTypes': [NEAR_GPU]}},
    'static': {'policy': 'static', 'static': {**RESERVED, 'topologyManagerPolicy': 'best-effort'}},
    'qos': {'policy': 'qos', 'qos': {'reservedCPUCount': 1, 'topologyPolicy': 'best-effort'}},
}
DEDICATED = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding": "true"}'}


def slice_of(*devices, generation=1, driver=DRIVER):
    return {'spec': {'driver': driver, 'nodeName': 'n1', 'pool': {'name': POOL, 'generation': generation, 'resourceSliceCount': 1}, 'devices': list(devices)}}


def device(name, **attributes):
    """A device with the standard attributes."""
    return {'name': name, 'attributes': {'resource.kubernetes.io/' + key: value for key, value in attributes.items()}}


class Cluster:
    """A node whose agent reads claims of the kubelet and slices of the API server."""

    def __init__(self, make_node, folder, config=None, claims=True, cluster=True, **head):
        self.stack = contextlib.ExitStack()
        self.api = self.stack.enter_context(ApiServer())
        self.api.put('nodes', None, 'n1', {'metadata': {'labels': {}}})
        self.kubelet = self.stack.enter_context(Kubelet())
        self.node = make_node(None, start=False, **head)
        self.socket = self.node.paths['work'] + '/agent.sock'
        self.config = {**(config or POLICIES['topology-aware']), 'agent': {'podResourceAPI': True, 'resourceSlices': claims, 'socket': self.socket}}
        self.options = ['--kubeconfig', self.api.kubeconfig(folder), '--node', 'n1'] if cluster else []
        self.lists = claims and cluster

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return self.stack.__exit__(*args)

    def start(self, *devices):
        if devices:
            self.api.put(SLICES, None, 'n1-gpus', slice_of(*devices))
        self.node.run('write-config', self.config)
        self.node.start()
        self.stack.enter_context(Agent(self.socket, self.kubelet.socket, options=self.options))
        eventually(lambda: ((self.node.ctl('status', check=False) or {}).get('agent') or {}).get('connected'))
        if self.lists and SLICES not in self.api.denied and 'resource.k8s.io/v1' in self.api.groups:
            self.await_list()  # on a busy machine the first container would not wait for it
        return self

    def create(self, pod, name='gpu-0', **more):
        self.kubelet.pod('default/' + pod, app={})
        self.kubelet.claims['default/' + pod, 'app'] = [('my-gpu', DRIVER, POOL, name)]
        self.node.create(pod, ctr('app', '2', '64Mi', **more.pop('container', {})), **more)
        return self.node.cpus(pod + '/app')

    def explain(self, pod):
        return '\n'.join(self.node.ctl('explain', pod + '/app')['trail'])

    def status(self):
        return self.node.ctl('status', check=False)

    def claims(self):
        return self.status()['agent']['claims']

    def slice_requests(self):
        return [r for r in self.api.requests if SLICES in r['path']]

    def await_list(self):
        """Waits until the agent has read a list of slices that the server still knows: the watch of its version follows."""
        eventually(lambda: self.slice_requests() and int(self.slice_requests()[-1]['query'].get('resourceVersion', -1)) >= self.api.oldest)


@pytest.fixture
def cluster(make_node, tmp_path):
    with Cluster(make_node, tmp_path) as c:
        yield c


@pytest.mark.parametrize('at', [1, 3])
@pytest.mark.parametrize('policy', sorted(POLICIES))
def test_a_container_goes_to_the_device_of_its_claim(make_node, tmp_path, policy, at):
    with Cluster(make_node, tmp_path, POLICIES[policy]) as cluster:
        cluster.start(device('gpu-0', numaNode={'int': at}), device('gpu-1', numaNode={'int': 2}))
        annotations = DEDICATED if policy == 'qos' else {}
        got = cluster.create('web', annotations=annotations)
        assert got < NODE[at], cluster.explain('web')
        assert 'claim my-gpu allocated gpu.example.com/gpu-0 at NUMA nodes %d' % at in cluster.explain('web')
        assert cluster.claims() == {'known': 1, 'located_devices': 1, 'unlocated_devices': 0, 'unlocated': None, 'without_claim': None}
        assert {r['query'].get('fieldSelector') for r in cluster.slice_requests()} == {'spec.nodeName=n1'}


def test_without_the_key_nothing_is_read(make_node, tmp_path):
    with Cluster(make_node, tmp_path, claims=False) as cluster:
        cluster.start(device('gpu-0', numaNode={'int': 3}))
        assert not cluster.create('web') & NODE[3]
        assert cluster.claims() is None and not cluster.slice_requests()
        assert 'my-gpu' not in cluster.explain('web')
        cluster.config['agent']['resourceSlices'] = True
        cluster.node.config(cluster.config)
        cluster.node.reload()
        eventually(lambda: cluster.slice_requests() and cluster.status()['agent']['connected'])
        assert cluster.create('next') < NODE[3]


@pytest.mark.parametrize('attributes, at', [
    ({'numaNode': {'ints': [3, 2]}}, 3),  # the device's own node, then others of the socket
    ({'pciBusID': {'string': '0000:17:00.0'}}, 3),
    ({'pcieRoot': {'string': 'pci0000:16'}}, 2),
    ({'numaNode': {'int': -1}, 'pciBusID': {'string': '00000000:17:00.0'}}, 3),
])
def test_where_a_device_is(cluster, attributes, at):
    root = pathlib.Path(cluster.node.paths['root']) / 'sys'
    pci, bus = root / 'devices/pci0000:16/0000:17:00.0', root / 'devices/pci0000:16/pci_bus/0000:16'
    for folder, link in ((pci, root / 'bus/pci/devices/0000:17:00.0'), (bus, root / 'class/pci_bus/0000:16')):
        folder.mkdir(parents=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(pathlib.Path('../' * (len(link.relative_to(root).parts) - 1)) / folder.relative_to(root))
    (pci / 'numa_node').write_text('3\n')
    (bus / 'cpulistaffinity').write_text('8-11\n')
    cluster.start(device('gpu-0', **attributes))
    assert cluster.create('web') < NODE[at]


def test_attributes_of_a_driver_and_generations_of_a_pool(cluster):
    cluster.api.put(SLICES, None, 'new', slice_of({'name': 'gpu-0', 'attributes': {'example.com/numaNode': {'int': 3}}}, generation=2))
    cluster.api.put(SLICES, None, 'old', slice_of(device('gpu-0', numaNode={'int': 2})))
    cluster.api.put(SLICES, None, 'other', slice_of(device('gpu-0', numaNode={'int': 1}), driver='nic.example.com'))
    assert cluster.start().create('web') < NODE[3]


@pytest.mark.parametrize('devices, says', [
    ([device('gpu-0', model={'string': 'x'})], 'its driver publishes neither numaNode nor a PCI address in the ResourceSlice'),
    ([device('gpu-0', pciBusID={'string': '../../x'})], 'sysfs names no NUMA node of its PCI address ../../x'),
    ([device('gpu-1', numaNode={'int': 1})], 'no ResourceSlice of this node lists the device'),
])
def test_a_device_without_a_place(cluster, devices, says):
    cluster.start(*devices)
    cluster.create('web')
    assert 'claim my-gpu allocated gpu.example.com/gpu-0, whose place is unknown: ' + says in cluster.explain('web')
    assert cluster.claims()['unlocated'] == 'gpu.example.com/gpu-0: ' + says
    assert any(says in f['text'] for f in cluster.node.ctl('doctor', check=False))


def test_no_right_to_list_slices(cluster):
    cluster.api.denied.add(SLICES)
    cluster.start(device('gpu-0', numaNode={'int': 3}))
    cluster.create('web')
    assert 'ResourceSlices cannot be read: ' in cluster.explain('web')
    assert 'needs {apiGroups: ["resource.k8s.io"], resources: [resourceslices], verbs: [get, list, watch]}' in cluster.explain('web')
    cluster.api.denied.clear()
    cluster.await_list()
    assert cluster.create('next') < NODE[3]


def test_a_cluster_without_the_kind(cluster):
    cluster.api.groups.discard('resource.k8s.io/v1')
    cluster.start(device('gpu-0', numaNode={'int': 3}))
    cluster.create('web')
    assert 'the cluster has no such kind' in cluster.explain('web')


def test_an_agent_without_a_cluster(make_node, tmp_path):
    with Cluster(make_node, tmp_path, cluster=False) as cluster:
        cluster.start().create('web')
        assert 'nri-rp-agent has no cluster' in cluster.explain('web')


def test_slices_change_and_expire(cluster):
    cluster.start(device('gpu-0', numaNode={'int': 3}))
    assert cluster.create('first') < NODE[3]
    cluster.api.put(SLICES, None, 'n1-gpus', slice_of(device('gpu-0', numaNode={'int': 2}), generation=2))
    cluster.api.compact()  # the agent's watch ends with 410
    cluster.await_list()
    assert cluster.create('second') < NODE[2]
    cluster.api.delete(SLICES, None, 'n1-gpus')
    names = iter('gone-%d' % n for n in range(100))

    def is_forgotten():
        name = next(names)
        cluster.create(name)
        says = cluster.explain(name)
        cluster.node.delete(name)
        return 'no ResourceSlice of this node lists the device' in says
    eventually(is_forgotten)


def test_a_kubelet_without_claims(cluster):
    """The runtime names CDI devices, the kubelet no claim: it is too old, which is said."""
    cluster.start(device('gpu-0', numaNode={'int': 3}))
    cluster.kubelet.pod('default/web', app={})
    cluster.node.create('web', ctr('app', '2', '64Mi', cdi=['k8s.gpu.example.com/claim=1']))
    assert 'the container has the CDI device k8s.gpu.example.com/claim=1, but the kubelet reports no claim of it' in cluster.explain('web')
    assert 'KubeletPodResourcesDynamicResources' in cluster.claims()['without_claim']


@pytest.mark.parametrize('node, package', [(3, 0), (20, 1)])
def test_a_node_of_device_memory_stands_for_the_closest_cpus(make_node, tmp_path, node, package):
    """A GPU whose memory is a NUMA node without CPUs."""
    with Cluster(make_node, tmp_path, machine='device-memory') as cluster:
        cluster.start(device('gpu-0', numaNode={'int': node}))
        assert cluster.create('web') < set(range(72 * package, 72 * package + 72))
        assert 'at NUMA nodes %d' % package in cluster.explain('web')


@pytest.mark.parametrize('policy, refused', [('best-effort', False), ('restricted', True), ('single-numa-node', True)])
def test_static_with_too_few_cpus_near_the_device(make_node, tmp_path, policy, refused):
    config = {'policy': 'static', 'static': {**RESERVED, 'topologyManagerPolicy': policy}}
    with Cluster(make_node, tmp_path, config) as cluster:
        cluster.start(device('gpu-0', numaNode={'int': 3}))
        cluster.create('first')
        cluster.create('second')
        assert cluster.node.cpus('first/app') | cluster.node.cpus('second/app') == NODE[3]
        cluster.kubelet.pod('default/third', app={})
        cluster.kubelet.claims['default/third', 'app'] = [('my-gpu', DRIVER, POOL, 'gpu-0')]
        if refused:
            assert '2 CPUs are requested, 0 are free near its devices' in cluster.node.reject('third', ctr('app', '2', '64Mi'))
        else:
            cluster.node.create('third', ctr('app', '2', '64Mi'))
            assert 'topology manager, best-effort: 0 of 2 CPUs near its devices' in cluster.explain('third')


def test_a_qos_pod_bound_to_a_node_shares_its_pool(make_node, tmp_path):
    with Cluster(make_node, tmp_path, POLICIES['qos']) as cluster:
        cluster.start(device('gpu-0', numaNode={'int': 2}))
        annotations = {'katalyst.kubewharf.io/qos_level': 'shared_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding": "true"}'}
        assert cluster.create('web', annotations=annotations) <= NODE[2]


def test_claims_of_several_containers_are_counted_once(cluster):
    cluster.start(device('gpu-0', numaNode={'int': 2}), device('gpu-1', numaNode={'int': 3}))
    cluster.kubelet.pod('default/web', app={}, side={})
    cluster.kubelet.claims['default/web', 'app'] = [('shared', DRIVER, POOL, 'gpu-0'), ('own', DRIVER, POOL, 'gpu-1')]
    cluster.kubelet.claims['default/web', 'side'] = [('shared', DRIVER, POOL, 'gpu-0')]
    cluster.node.create('web', ctr('app', '1', '64Mi'), ctr('side', '1', '64Mi'))
    found = cluster.claims()
    assert (found['known'], found['located_devices']) == (2, 3)
    assert cluster.node.cpus('web/side') < NODE[2]
