# SPDX-License-Identifier: Apache-2.0
"""The pod-resources API that the agent serves, read by a client with a gRPC library of its own."""
import contextlib
import pathlib
import socket
import stat
import threading

import grpc
import pytest

from kubelet import API, Agent, Kubelet
from simnode import ctr, eventually
from test_qos_kill import level

WAIT_S = 20
GPU, NIC = 'example.com/gpu', 'example.com/nic'
ALIGNED = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}
OWN = ('app', '2', '64Mi')  # gets two CPUs for itself


class Served:
    """A node, its agent, and a client."""

    def __init__(self, node, folder, config, kubelet=None, options=()):
        self.node, self.path = node, folder / 'pod-resources.sock'
        sock = node.paths['work'] + '/agent.sock'
        self.of_agent = {'agent': {'podResourceAPI': True, 'socket': sock}}
        node.run('write-config', {**config, **self.of_agent})
        node.start()
        provider = ['--devices-provider', 'kubelet'] if kubelet else []
        self.agent = Agent(sock, kubelet.socket if kubelet else folder / 'none.sock',
                           options=['--pod-resources-socket', self.path, *provider, *options])
        self.channel = grpc.insecure_channel('unix:' + str(self.path))

    def __enter__(self):
        eventually(lambda: self.node.ctl('status', check=False)['agent']['connected'])
        return self

    def __exit__(self, kind, *rest):
        self.channel.close()
        return self.agent.__exit__(kind, *rest)

    def call(self, method, request=None, answer=None):
        return self.channel.unary_unary('/v1.PodResourcesLister/' + method, lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
                                        (answer or API.ListPodResourcesResponse).FromString)(request or b'', timeout=WAIT_S, wait_for_ready=True)

    def list(self):
        return {'%s/%s' % (p.namespace, p.name): {c.name: c for c in p.containers} for p in self.call('List').pod_resources}

    def get(self, name, namespace='default'):
        return self.call('Get', API.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace), API.GetPodResourcesResponse).pod_resources

    def allocatable(self):
        return self.call('GetAllocatableResources', answer=API.AllocatableResourcesResponse)

    def fails(self, code, text, call=None):
        with pytest.raises(grpc.RpcError) as e:
            (call or self.list)()
        assert e.value.code() == code and text in e.value.details(), e.value


@pytest.fixture
def served(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        def make(config=None, machine=None, **more):
            return stack.enter_context(Served(make_node(machine, start=False), tmp_path, config or ALIGNED, **more))
        yield make


@pytest.fixture
def kubelet():
    with Kubelet() as k:
        yield k


def nodes_of(entry):
    return [n.ID for n in entry.topology.nodes]


def test_cpus_and_memory(served):
    s = served()
    assert not s.list()
    s.node.create('web', ctr(*OWN), ctr('side', '100m', '16Mi'))
    web = s.list()['default/web']
    assert set(web) == {'app', 'side'}
    assert set(web['app'].cpu_ids) == s.node.cpus('web/app') and len(web['app'].cpu_ids) == 2
    memory, = web['app'].memory
    assert (memory.memory_type, memory.size, set(nodes_of(memory))) == ('memory', 64 << 20, s.node.mems('web/app'))
    assert not web['side'].cpu_ids, 'it shares its CPUs'
    one = s.get('web')
    assert (one.namespace, one.name) == ('default', 'web') and {c.name for c in one.containers} == {'app', 'side'}
    s.fails(grpc.StatusCode.NOT_FOUND, 'pod db in namespace default not found', lambda: s.get('db'))
    s.fails(grpc.StatusCode.NOT_FOUND, '', lambda: s.get('web', 'other'))
    s.node.delete('web')
    assert not s.list(), 'what has gone is not listed, at once'


def test_resources_of_a_pod_itself(served, kubelet):
    """As a kubelet of 1.37: the pod's CPUs and memory at the pod, those of a container with its own at the container, nothing at those that share."""
    scope = {'reservedResources': {'cpu': 'cpuset:0'}, 'topologyManagerPolicy': 'best-effort', 'topologyManagerScope': 'pod', 'pinMemory': True}
    kubelet.pod('default/app', main={}, log={})
    kubelet.pod('default/plain', main={})
    s = served({'policy': 'static', 'static': scope}, kubelet=kubelet)
    s.node.create('app', ctr('main', '2', '64Mi'), ctr('log'), ctr('proxy'), resources={'cpu': '4', 'memory': '256Mi'})
    s.node.create('plain', ctr('main', '2', '64Mi'))
    app, plain = s.get('app'), s.get('plain')
    by_name = {c.name: c for c in app.containers}
    assert set(app.cpu_ids) == s.node.cpus('app/main') | s.node.cpus('app/log') and len(app.cpu_ids) == 4
    memory, = app.memory
    assert (memory.memory_type, memory.size, set(nodes_of(memory))) == ('memory', 256 << 20, s.node.mems('app/main') | s.node.mems('app/log'))
    assert set(by_name['main'].cpu_ids) == s.node.cpus('app/main')
    assert not by_name['log'].cpu_ids and not by_name['proxy'].cpu_ids and not by_name['log'].memory
    assert not plain.cpu_ids and not plain.memory and len(plain.containers[0].cpu_ids) == 2
    s.node.config({'policy': 'static', 'static': {**scope, 'topologyManagerScope': 'container'}, **s.of_agent})
    app = s.get('app')
    assert not app.cpu_ids and not app.memory and {c.name: len(c.cpu_ids) for c in app.containers} == {'main': 2, 'log': 0, 'proxy': 0}


def test_memory_by_node(served):
    """A policy that counts memory by node tells how much of which a container has: all of a node that is its pod's alone."""
    s = served({'policy': 'qos', 'qos': {'reservedCPUs': '0', 'rampUpSeconds': 0}})
    s.node.create('whole', ctr('app', '6', '64Mi'), annotations=level('dedicated_cores', numa_binding=True, numa_exclusive=True))
    s.node.create('part', ctr('app', '1', '64Mi'), annotations=level('dedicated_cores', numa_binding=True))
    sizes = {nodes_of(m)[0]: m.size for m in s.allocatable().memory}
    whole, part = ({node: m.size for m in s.list()['default/' + name]['app'].memory for node in nodes_of(m)} for name in ('whole', 'part'))
    assert len(whole) == 2 and whole == {node: sizes[node] for node in s.node.mems('whole/app')}
    assert part == {node: 64 << 20 for node in s.node.mems('part/app')} and len(part) == 1 and not part.keys() & whole.keys()


@pytest.mark.parametrize('policy, section, gone', [
    ('qos', {'reservedCPUs': '0,4'}, {0, 4}),
    ('balloons', {'reservedResources': {'cpu': 'cpuset:0,8'}}, {0, 8}),
    ('balloons', {'reservedResources': {'cpu': 1}, 'availableResources': {'cpu': 'cpuset:3-15'}}, {0, 1, 2}),
    ('static', {'reservedResources': {'cpu': 'cpuset:5'}, 'availableResources': {'cpu': 'cpuset:4-15'}}, {0, 1, 2, 3, 5}),
    ('topology-aware', {'reservedResources': {'cpu': 'cpuset:0'}, 'availableResources': {'cpu': 'cpuset:0-11'}}, {0, 12, 13, 14, 15}),
    ('podpools', {'reservedResources': {'cpu': 'cpuset:0,4'}}, {0, 4}),
    ('dynamic-pools', {'reservedResources': {'cpu': 'cpuset:0,4'}}, {0, 4}),
])
def test_what_there_is(served, policy, section, gone):
    s = served({'policy': policy, policy: section})
    s.node.create('web', ctr(*OWN))
    if policy == 'balloons':  # its reserved balloon is the system's, whichever CPUs it has
        s.node.create('sys', ctr('app', '500m'), namespace='kube-system')
        gone = gone | s.node.cpus('kube-system/sys/app')
    there = s.allocatable()
    assert set(there.cpu_ids) == set(range(16)) - gone and not there.devices
    assert [nodes_of(m) for m in there.memory] == [[0], [1], [2], [3]] and all(m.memory_type == 'memory' and m.size for m in there.memory)


def test_devices_of_the_kubelet(served, kubelet):
    """Matched by namespace, pod and container; what the kubelet says of CPUs and memory does not count."""
    kubelet.pod('default/web', app={GPU: [1]})
    kubelet.pod('other/web', app={GPU: [0]})
    kubelet.pod('default/soon', init={NIC: []}, app={})
    s = served(kubelet=kubelet)
    s.node.create('web', ctr(*OWN), ctr('side', '100m', '16Mi'))
    pods = s.list()
    assert set(pods) == {'default/web', 'other/web', 'default/soon'}
    app = pods['default/web']['app']
    assert [(d.resource_name, list(d.device_ids), nodes_of(d)) for d in app.devices] == [(GPU, ['id'], [1])]
    assert set(app.cpu_ids) == s.node.cpus('web/app') and len(app.cpu_ids) == 2
    assert not pods['default/web']['side'].devices
    assert not pods['other/web']['app'].cpu_ids and nodes_of(pods['other/web']['app'].devices[0]) == [0]
    assert [d.resource_name for d in pods['default/soon']['init'].devices] == [NIC] and not pods['default/soon']['init'].memory
    assert [c.name for c in s.get('web', 'other').containers] == ['app'] and s.get('web').containers[0].devices
    kubelet.allocatable = {GPU: [0, 1]}
    there = s.allocatable()
    assert [(d.resource_name, nodes_of(d)) for d in there.devices] == [(GPU, [0, 1])] and there.cpu_ids


def test_fields_that_are_not_known_are_passed_on(served, kubelet):
    """What newer kubelets say of a container or a device."""
    kubelet.pod('default/web', app={GPU: [1]})
    extra = b'\xaa\x06\x03abc'  # field 101
    with_extra = API.ListPodResourcesResponse(pod_resources=[kubelet._resources('default/web')])  # pylint: disable=protected-access
    app = with_extra.pod_resources[0].containers[0]
    app.devices[0].MergeFromString(extra)
    app.MergeFromString(extra)
    kubelet.instead = with_extra
    s = served(kubelet=kubelet)
    s.node.create('web', ctr(*OWN))
    got = s.list()['default/web']['app']
    assert got.SerializeToString().count(extra) == 2 and len(got.cpu_ids) == 2


def test_who_does_not_answer(served, kubelet):
    s = served(kubelet=kubelet)
    kubelet.stop()
    s.fails(grpc.StatusCode.UNAVAILABLE, 'kubelet')
    kubelet.start()
    assert not s.list()
    go = threading.Event()
    kubelet.before = lambda *_: go.wait(WAIT_S) and None
    s.fails(grpc.StatusCode.DEADLINE_EXCEEDED, 'reading devices from the kubelet')
    go.set()
    kubelet.instead = b'\x0a\x05\x0a\xff'
    s.fails(grpc.StatusCode.UNAVAILABLE, "the kubelet's list cannot be decoded")
    kubelet.instead = b'\x0a\x08\x1a\x06\x12\x04\x0a\x07ab'  # a device within a container within a pod
    s.fails(grpc.StatusCode.UNAVAILABLE, 'devices that cannot be decoded')
    kubelet.instead = None
    s.node.kill()
    eventually(lambda: 'the agent' and _refused(s))
    s.fails(grpc.StatusCode.UNAVAILABLE, 'nri-rpd')
    s.node.start()
    eventually(lambda: not _refused(s))


def _refused(s):
    try:
        s.list()
    except grpc.RpcError:
        return True
    return False


def test_odd_clients(served, kubelet):
    """None of them keeps the others from being answered."""
    s = served(kubelet=kubelet)
    assert stat.S_IMODE(pathlib.Path(s.path).stat().st_mode) == 0o660
    s.fails(grpc.StatusCode.UNIMPLEMENTED, 'does not implement the method', lambda: s.call('Watch'))
    s.fails(grpc.StatusCode.INVALID_ARGUMENT, 'pod_name', lambda: s.call('Get', b'\x0a\xff'))
    s.fails(grpc.StatusCode.INVALID_ARGUMENT, 'pod_name', lambda: s.get(''))
    s.fails(grpc.StatusCode.RESOURCE_EXHAUSTED, '', lambda: s.get('x' * 8192))
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(s.path))
        raw.sendall(b'GET / HTTP/1.1\r\n\r\n' * 1000)
        assert not s.list()
    go = threading.Event()
    kubelet.before = lambda *_: go.wait(WAIT_S) and None
    calls = [s.channel.unary_unary('/v1.PodResourcesLister/List', lambda m: m, bytes).future(b'', timeout=WAIT_S) for _ in range(40)]
    s.fails(grpc.StatusCode.RESOURCE_EXHAUSTED, 'too many simultaneous calls')
    for call in calls[:20]:
        call.cancel()
    go.set()
    eventually(lambda: not _refused(s))


def test_huge_pages(make_node, tmp_path):
    """Blocks of a container on its nodes, and of each node what no other program uses."""
    node = make_node(None, start=False, machine={'base': 'n4c16', 'hugepages': {'1Gi': 4}})
    with Served(node, tmp_path, ALIGNED) as s:
        node.create('web', ctr('app', '1', '64Mi', hugepages={'1GB': 3 << 30}))
        blocks = {m.memory_type: m for m in s.list()['default/web']['app'].memory}
        assert blocks['hugepages-1Gi'].size == 3 << 30
        assert [n.ID for n in blocks['hugepages-1Gi'].topology.nodes] == [n.ID for n in blocks['memory'].topology.nodes]
        huge = [m for m in s.allocatable().memory if m.memory_type == 'hugepages-1Gi']
        assert [(m.size, [n.ID for n in m.topology.nodes]) for m in huge] == [(4 << 30, [n]) for n in range(4)]
