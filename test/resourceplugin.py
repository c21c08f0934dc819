# SPDX-License-Identifier: Apache-2.0
"""A resource plugin with a real gRPC server, which knows the protocol by its messages alone; it shares nothing with nri-rp-agent.

    with Plugin(folder, 'example.com/gpu', units=4, aligns=True) as gpu:
        …
        assert gpu.held() == {'uid-web': {'app': ['gpu0']}}

As a program, `resourceplugin.py FOLDER RESOURCE UNITS STATE`, it keeps what it holds in the file STATE before it answers, and can be killed: Process.

It has so many units, `per_node` of them at each NUMA node, and gives a container the lowest free ones. What it holds outlives it in `state`, a dict of
the caller's. `before(method, request, context)` runs ahead of every answer; `dress(request, names)` gives what else goes into an allocation.
"""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import grpc

from kubelet import messages

API = messages('test', 'resourceplugin')
PACKAGE = 'resourceplugin.v1alpha1.'
WAIT_S = 20


class Plugin:
    def __init__(self, folder, resource, units=4, per_node=1, state=None, endpoint=None, register=True, **options):
        self.folder, self.resource, self.units, self.per_node = pathlib.Path(folder), resource, units, per_node
        self.endpoint = endpoint or resource.replace('/', '_') + '.sock'
        self.options = API.ResourcePluginOptions(**{{'aligns': 'with_topology_alignment', 'pre_start': 'pre_start_required',
                                                     'reconciles': 'need_reconcile'}[k]: v for k, v in options.items()})
        self.state = {} if state is None else state  # uid → container → names
        self.calls, self.lock, self.server = [], threading.RLock(), None
        self.before = lambda method, request, context: None
        self.dress = lambda request, names: {'envs': {'GPUS': ','.join(names)}}
        self.hints = None  # instead of its own
        self.keep = lambda: None  # before each answer
        self.stopped = threading.Event()
        self.start(register)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, register=True):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        calls = {'GetTopologyHints': (self._hints, 'ResourceRequest'), 'GetPodTopologyHints': (self._pod_hints, 'PodResourceRequest'),
                 'Allocate': (self._allocate, 'ResourceRequest'), 'AllocateForPod': (self._allocate_pod, 'PodResourceRequest'),
                 'RemovePod': (self._remove, 'RemovePodRequest'), 'GetResourcesAllocation': (self._all, 'Empty'),
                 'GetResourcePluginOptions': (lambda request: self.options, 'Empty'), 'PreStartContainer': (lambda request: API.Empty(), 'PreStartContainerRequest')}
        handlers = {name: grpc.unary_unary_rpc_method_handler(self._noted(name, call), getattr(API, message).FromString,
                                                              lambda answer: answer if isinstance(answer, bytes) else answer.SerializeToString())
                    for name, (call, message) in calls.items()}
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(PACKAGE + 'ResourcePlugin', handlers),))
        socket = self.folder / self.endpoint
        socket.unlink(missing_ok=True)
        assert self.server.add_insecure_port('unix:' + str(socket))
        self.server.start()
        if register:
            self.register()

    def stop(self):
        """As one that dies: connections end, calls under way with them."""
        self.stopped.set()
        if self.server:
            self.server.stop(None).wait(WAIT_S)
        self.server = None

    def register(self, **other):
        request = API.RegisterRequest(**{'version': 'v1alpha1', 'endpoint': self.endpoint, 'resource_name': self.resource, 'options': self.options, **other})
        with grpc.insecure_channel('unix:' + str(self.folder / 'kubelet.sock')) as channel:
            channel.unary_unary('/' + PACKAGE + 'Registration/Register', API.RegisterRequest.SerializeToString,
                                API.Empty.FromString)(request, timeout=WAIT_S, wait_for_ready=True)

    def _noted(self, method, call):
        def answer(request, context):
            with self.lock:
                self.calls.append((method, request))
            instead = self.before(method, request, context)
            with self.lock:
                try:
                    return call(request) if instead is None else instead
                finally:
                    self.keep()
        return answer

    def called(self, method):
        with self.lock:
            return [request for name, request in self.calls if name == method]

    def held(self):
        with self.lock:
            return {uid: {c: list(names) for c, names in containers.items()} for uid, containers in self.state.items()}

    def _free(self):
        taken = {name for containers in self.state.values() for names in containers.values() for name in names}
        return [i for i in range(self.units) if self.name(i) not in taken]

    def name(self, i):
        return '%s%d' % (self.resource.rpartition('/')[2], i)

    def _lists(self, request):
        if self.hints is not None:
            return API.ListOfTopologyHints(hints=[API.TopologyHint(nodes=nodes, preferred=preferred) for nodes, preferred in self.hints])
        amount, out = int(request.resource_requests[self.resource]), API.ListOfTopologyHints()
        free = self._free()
        for node in sorted({i // self.per_node for i in free}):
            if sum(i // self.per_node == node for i in free) >= amount:
                out.hints.add(nodes=[node], preferred=True)
        if not out.hints:
            raise ValueError('no NUMA node has %d %s left' % (amount, self.resource))
        return out

    def _hints(self, request):
        return API.ResourceHintsResponse(pod_uid=request.pod_uid, container_name=request.container_name, resource_name=self.resource,
                                         resource_hints={self.resource: self._lists(request)})

    def _pod_hints(self, request):
        return API.PodResourceHintsResponse(pod_uid=request.pod_uid, resource_name=self.resource, resource_hints={self.resource: self._lists(request)})

    def _take(self, request, container):
        held = self.state.setdefault(request.pod_uid, {})
        if container not in held:
            nodes = set(request.hint.nodes)
            free = [i for i in self._free() if not nodes or i // self.per_node in nodes]
            amount = int(request.resource_requests[self.resource])
            if len(free) < amount:
                if not held:
                    del self.state[request.pod_uid]
                raise ValueError('%d %s are left, %d are wanted' % (len(free), self.resource, amount))
            held[container] = [self.name(i) for i in free[:amount]]
        return API.ResourceAllocation(resource_allocation={self.resource: API.ResourceAllocationInfo(
            is_scalar_resource=True, allocated_quantity=len(held[container]), **self.dress(request, held[container]))})

    def _allocate(self, request):
        return API.ResourceAllocationResponse(pod_uid=request.pod_uid, container_name=request.container_name, resource_name=self.resource,
                                              allocation_result=self._take(request, request.container_name))

    def _allocate_pod(self, request):
        return API.PodResourceAllocationResponse(pod_uid=request.pod_uid, resource_name=self.resource, allocation_result=self._take(request, ''))

    def _remove(self, request):
        self.state.pop(request.pod_uid, None)
        return API.Empty()

    def _all(self, _):
        out = API.GetResourcesAllocationResponse()
        for uid, containers in self.state.items():
            pod = out.pod_resources[uid]
            for name, names in containers.items():
                pod.container_resources[name].resource_allocation[self.resource].CopyFrom(
                    API.ResourceAllocationInfo(is_scalar_resource=True, allocated_quantity=len(names), **self.dress(None, names)))
        return out


class Process:
    """One in a process of its own, to be killed at any moment."""

    def __init__(self, folder, resource, units, state):
        self.state = pathlib.Path(state)
        self.args = [sys.executable, __file__, str(folder), resource, str(units), str(state)]
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.process = subprocess.Popen(self.args)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_S)

    def held(self):
        return json.loads(self.state.read_text(encoding='utf-8')) if self.state.exists() else {}


def main(folder, resource, units, state):
    state = pathlib.Path(state)
    held = json.loads(state.read_text(encoding='utf-8')) if state.exists() else {}
    plugin = Plugin(folder, resource, int(units), state=held, register=False)
    written = None

    def keep():
        nonlocal written
        if held == written:
            return
        new = state.with_suffix('.new')
        new.write_text(json.dumps(held), encoding='utf-8')
        os.rename(new, state)
        written = json.loads(json.dumps(held))

    plugin.keep = keep
    ours, known = plugin.folder / 'kubelet.sock', None
    while True:  # ours is made anew when the agent is: then there is nobody who knows of the plugin
        try:
            now = os.stat(ours).st_ino
            if now != known or not (plugin.folder / plugin.endpoint).exists():
                plugin.stop()
                plugin.start()
                known = now
        except (OSError, grpc.RpcError):
            known = None
        plugin.stopped.wait(.02)
        plugin.stopped.clear()


if __name__ == '__main__':
    main(*sys.argv[1:])
