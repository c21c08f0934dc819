# SPDX-License-Identifier: Apache-2.0
"""A kubelet as far as its pod-resources socket goes, with a real gRPC server; and an nri-rp-agent that asks it.

    with Kubelet() as kubelet:
        kubelet.pod('default/web', app={'example.com/nic': [1]})
        with Agent(node_paths_agent_socket, kubelet.socket): …
"""
import concurrent.futures
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import grpc

TOP = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build'))
AGENT = BUILD / 'bin' / 'nri-rp-agent'
DISABLED = 'PodResources API Get method disabled'
STOP_S = 60


def messages(folder, name):
    """The messages of FOLDER/NAME.proto."""
    out = tempfile.mkdtemp(prefix='nri-rp-proto-')
    try:
        subprocess.run(['protoc', '--python_out=' + out, '-I' + str(TOP / folder), name + '.proto'], check=True)
        sys.path.insert(0, out)
        return __import__(name + '_pb2')
    finally:
        sys.path.remove(out)
        shutil.rmtree(out)


API = messages('test', 'podresources')


class Kubelet:
    """Answers as real ones do. Before a call is answered, `calls` has it, and `before(method, request, context)` runs."""

    def __init__(self, get=True, large=0, folder=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-kubelet-', dir=folder))
        self.socket = self.dir / 'kubelet.sock'
        self.get, self.large = get, large  # get: True, 'disabled', 'unimplemented'; large: bytes that each answer has more
        self.claims = {}  # (pod, container) → [(claim, driver, pool, device), …], of a kubelet since Kubernetes 1.34
        self.pods, self.calls, self.before = {}, [], lambda method, request, context: None
        self.allocatable = {}  # devices: resource → nodes
        self.instead = None  # what List answers, a message or bytes
        self.changed = threading.Condition()
        self.server = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir)

    def start(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=[('grpc.max_send_message_length', -1)])
        handlers = {'List': grpc.unary_unary_rpc_method_handler(self._list, API.ListPodResourcesRequest.FromString,
                                                                lambda m: m if isinstance(m, bytes) else m.SerializeToString()),
                    'GetAllocatableResources': grpc.unary_unary_rpc_method_handler(self._allocatable, API.AllocatableResourcesRequest.FromString,
                                                                                   API.AllocatableResourcesResponse.SerializeToString)}
        if self.get != 'unimplemented':
            handlers['Get'] = grpc.unary_unary_rpc_method_handler(self._get, API.GetPodResourcesRequest.FromString,
                                                                  API.GetPodResourcesResponse.SerializeToString)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('v1.PodResourcesLister', handlers),))
        assert self.server.add_insecure_port('unix:' + str(self.socket))
        self.server.start()

    def stop(self):
        """As one that dies: connections end, calls under way with them."""
        if self.server:
            self.server.stop(None).wait(STOP_S)
        self.server = None
        self.socket.unlink(missing_ok=True)

    def pod(self, pod, **containers):
        """kubelet.pod('default/web', app={'example.com/nic': [1]}): the nodes of a container's devices; a list of lists is an entry each."""
        self.pods[pod] = containers

    def called(self, n, method=None):
        """Waits until there have been n calls."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.count(method) >= n, STOP_S), self.calls

    def count(self, method=None):
        return sum(method in (None, c[0]) for c in self.calls)

    def _note(self, method, request, context):
        with self.changed:
            self.calls.append((method, request))
            self.changed.notify_all()
        self.before(method, request, context)

    def _resources(self, pod):
        namespace, _, name = pod.partition('/')
        out = API.PodResources(name=name, namespace=namespace, cpu_ids=[1, 2])  # the pod's own, since 1.37
        for container, resources in self.pods[pod].items():
            c = out.containers.add(name=container, cpu_ids=[1, 2, 3])
            c.memory.add(memory_type='memory', size=1 << 30).topology.nodes.add(ID=0)
            for claim, driver, pool, device in self.claims.get((pod, container), ()):
                dynamic = c.dynamic_resources.add(claim_name=claim, claim_namespace=namespace)
                dynamic.claim_resources.add(driver_name=driver, pool_name=pool, device_name=device).cdi_devices.add(name='k8s.%s/claim=%s' % (driver, claim))
            for resource, nodes in resources.items():
                for entry in nodes if nodes and isinstance(nodes[0], list) else [nodes]:
                    device = c.devices.add(resource_name=resource, device_ids=['id' + 'x' * self.large])
                    for node in entry:
                        device.topology.nodes.add(ID=node)
        return out

    def _get(self, request, context):
        pod = '%s/%s' % (request.pod_namespace, request.pod_name)
        self._note('Get', pod, context)
        if self.get == 'disabled':
            context.abort(grpc.StatusCode.UNKNOWN, DISABLED)
        if pod not in self.pods:
            context.abort(grpc.StatusCode.UNKNOWN, 'pod %s in namespace %s not found' % (request.pod_name, request.pod_namespace))
        return API.GetPodResourcesResponse(pod_resources=self._resources(pod))

    def _list(self, request, context):
        self._note('List', None, context)
        if self.instead is not None:
            return self.instead
        return API.ListPodResourcesResponse(pod_resources=[self._resources(pod) for pod in self.pods])

    def _allocatable(self, request, context):
        self._note('GetAllocatableResources', None, context)
        out = API.AllocatableResourcesResponse(cpu_ids=[1, 2, 3])
        for resource, nodes in self.allocatable.items():
            device = out.devices.add(resource_name=resource, device_ids=['id'])
            for node in nodes:
                device.topology.nodes.add(ID=node)
        return out


PODS = messages('test', 'kubeletpods')
ADDED, MODIFIED, DELETED, SYNCED = 1, 2, 3, 4


def needs(to, requests=None, limits=None):
    for name, map_ in (('requests', requests), ('limits', limits)):
        for resource, amount in (map_ or {}).items():
            getattr(to, name)[resource].string = amount


class PodsKubelet:
    """The pods API of a kubelet: v1alpha1.Pods/WatchPods. `masks` has the field mask of each stream."""

    def __init__(self, method='WatchPods'):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-kubelet-pods-'))
        self.socket = self.dir / 'pods-api.sock'
        self.pods, self.streams, self.masks, self.method = {}, [], [], method
        self.status = None  # what a stream is refused with
        self.hangs = False  # streams send nothing
        self.lock, self.server = threading.Condition(), None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir)

    def start(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        handler = grpc.unary_stream_rpc_method_handler(self._watch, PODS.WatchPodsRequest.FromString, PODS.WatchPodsEvent.SerializeToString)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('v1alpha1.Pods', {self.method: handler}),))
        assert self.server.add_insecure_port('unix:' + str(self.socket))
        self.server.start()

    def stop(self):
        with self.lock:
            for events in self.streams:
                events.append(None)
            self.lock.notify_all()
        if self.server:
            self.server.stop(None).wait(STOP_S)
        self.server = None
        self.socket.unlink(missing_ok=True)

    def _watch(self, _request, context):
        with self.lock:
            self.masks.append(dict(context.invocation_metadata()).get('x-kubernetes-fieldmask', ''))
            if self.status:
                context.abort(*self.status)
            events = [] if self.hangs else [(ADDED, p) for p in self.pods.values()] + [(SYNCED, None)]
            self.streams.append(events)
        context.add_callback(lambda: self._send(events, None))
        while True:
            with self.lock:
                self.lock.wait_for(lambda: events, STOP_S)
                event = events.pop(0) if events else None
            if not event:
                return
            if event[0] is None:
                context.abort(*event[1])
            yield PODS.WatchPodsEvent(type=event[0], pod=event[1].SerializeToString() if event[1] else b'')

    def _send(self, events, event):
        with self.lock:
            events.append(event)
            self.lock.notify_all()

    def _tell(self, kind, pod):
        with self.lock:
            for events in [] if self.hangs else self.streams:
                events.append((kind, pod))
            self.lock.notify_all()

    def put(self, name, *containers, init=(), own=None, uid=None, phase='Pending', priority=0, annotations=None):
        """Containers are (name, requests, limits) or (name, requests, limits, restartPolicy)."""
        pod = PODS.Pod()
        pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = name, 'default', uid or 'uid-' + name
        pod.metadata.resource_version, pod.metadata.labels['app'] = '7', name
        for key, value in (annotations or {}).items():
            pod.metadata.annotations[key] = value
        pod.metadata.owner_references.add(kind='ReplicaSet', name='r', uid='u', api_version='apps/v1', controller=True)
        pod.spec.node_name, pod.spec.restart_policy, pod.spec.priority, pod.status.phase = 'n1', 'Always', priority, phase
        for to, list_ in ((pod.spec.containers, containers), (pod.spec.init_containers, init)):
            for one in list_:
                c = to.add(name=one[0], image='image', restart_policy=(one[3:] or ('',))[0])
                c.env.add(name='A', value='b')
                needs(c.resources, *one[1:3])
        if own:
            needs(pod.spec.resources, *own)
        kind = MODIFIED if name in self.pods else ADDED
        self.pods[name] = pod
        self._tell(kind, pod)

    def delete(self, name, kind=DELETED):
        """The kubelet's last event of a pod has only name, namespace and UID."""
        old, pod = self.pods.pop(name).metadata, PODS.Pod()
        pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = old.name, old.namespace, old.uid
        self._tell(kind, pod)

    def drop(self):
        """Ends all streams as the kubelet ends those of a client that reads too slowly."""
        self._tell(None, (grpc.StatusCode.RESOURCE_EXHAUSTED, 'watch client channel closed'))


class Odd:
    """Something else at the kubelet's socket: what it does with a connection is up to `serve(connection)`."""

    def __init__(self, serve):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-odd-'))
        self.socket = self.dir / 'kubelet.sock'
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket))
        self.listener.listen()
        self.serve, self.connections = serve, []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.connections:
            connection.close()
        shutil.rmtree(self.dir)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            try:
                self.serve(connection)
            except OSError:
                pass


class Agent:
    all = []  # a test that fails shows the ends of their logs

    def __init__(self, daemon_socket, kubelet_socket, under=(), options=(), env=None):
        """under: a command line to put before that of the agent"""
        self.log = tempfile.NamedTemporaryFile(mode='r', prefix='nri-rp-agent-')  # pylint: disable=consider-using-with
        self.sockets = daemon_socket, kubelet_socket
        self.process, self.under, self.options, self.env = None, list(under), [str(o) for o in options], env
        self.start()
        self.all.append(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.stop() if self.process else 0
        if kind or code:
            print(self.read_log())
        self.log.close()
        assert kind or code == 0, 'nri-rp-agent has ended with %s' % code

    def start(self):
        with open(self.log.name, 'a', encoding='utf-8') as log:
            self.process = subprocess.Popen([*self.under, str(AGENT), '--daemon-socket', str(self.sockets[0]), '--kubelet-socket', str(self.sockets[1]),
                                             '--log-level', 'debug', *self.options], stderr=log, env=self.env)

    def _catches(self, signo):
        fields = dict(line.split(':', 1) for line in pathlib.Path('/proc/%d/status' % self.process.pid).read_text(encoding='ascii').splitlines())
        return any(int(fields[name], 16) >> (signo - 1) & 1 for name in ('SigBlk', 'SigCgt'))

    def stop(self):
        """A process that has only just begun would die of the signal."""
        end = time.monotonic() + STOP_S
        while self.process.poll() is None and not self._catches(signal.SIGTERM) and time.monotonic() < end:
            time.sleep(0.01)
        self.process.terminate()
        code = self.process.wait(STOP_S)
        self.process = None
        return code

    def kill(self):
        """Also from another thread than the test's, which may end meanwhile."""
        process, self.process = self.process, None
        process.send_signal(signal.SIGKILL)
        process.wait(STOP_S)

    def read_log(self):
        return pathlib.Path(self.log.name).read_text(encoding='utf-8', errors='replace')
