# SPDX-License-Identifier: Apache-2.0
"""nri-rp-bridge and a real nri-rpd between a CRI client and a runtime that is a few lines of Python behind a real gRPC server: what a policy
decides is in the request that the runtime gets, and nothing of a call that fails stays allocated.
"""
import json
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import threading
import time

import grpc
import pytest

from criproxy import SERVICE, Bridge, Churn, Judge, Runtime
from kubelet import messages
from simnode import BUILD, TOP, cpuset, eventually

ANSWER_S = 60
MACHINE = 'n4c16'
ALL = set(range(16))
UNKNOWN = b'\xfa\xff\x03\x05later'  # field 8191, a text: what a later release of CRI adds
API = messages('test/integration', 'cri')
CREATED, RUNNING, EXITED = range(3)
KILL_ROUNDS = int(os.environ.get('KILL_ROUNDS', 5))
MANY = 2000  # of 3 KB: more than a message of NRI holds


class Cri(Runtime):
    """A runtime's memory. `calls` has (method, request) in the order in which they came; `faults` what a method does instead of its work."""

    def __init__(self):
        self.pods, self.ctrs, self.faults, self.lock, self.n = {}, {}, {}, threading.Lock(), 0
        self.versions = ''  # in the names of the services that it has
        self.old = False  # resources are in no field of a status
        self.events = None  # a queue: each goes to one reader only, as containerd 1.7 has it
        super().__init__()

    def service(self, handler_call_details):
        service, name = handler_call_details.method.rsplit('/', 1)
        if self.versions not in service:
            return None
        if name == 'GetContainerEvents' and self.events:
            return grpc.unary_stream_rpc_method_handler(self.tell_events)
        work = getattr(self, 'do_' + name, None)
        if name == 'GetContainerEvents':
            return None
        if not work:
            return super().service(handler_call_details)

        def handle(data, context):
            with self.lock:
                self.calls.append((name, data))
            if name in self.faults:
                self.faults[name](context)
            with self.lock:
                return work(data).SerializeToString()
        return grpc.unary_unary_rpc_method_handler(handle)

    def tell_events(self, data, context):
        with self.lock:
            self.calls.append(('GetContainerEvents', data))
        while context.is_active():
            try:
                event = self.events.get(timeout=0.1)
            except queue.Empty:
                continue
            if event is None:
                context.abort(grpc.StatusCode.INTERNAL, 'the events are no more')
            yield event

    def tell(self, ctr, kind, more=b''):
        self.events.put(API.ContainerEvent(container_id=ctr, type=kind).SerializeToString() + more)

    def new_id(self, kind):
        self.n += 1
        return '%s%d' % (kind, self.n)

    def do_RunPodSandbox(self, data):
        pod = self.new_id('pod')
        self.pods[pod] = API.RunPodSandboxRequest.FromString(data).config
        return API.RunPodSandboxResponse(pod_sandbox_id=pod)

    def do_UpdatePodSandboxResources(self, data):
        return API.Empty()

    def do_StopPodSandbox(self, data):
        for ctr in self.ctrs.values():
            if ctr.pod == API.PodRequest.FromString(data).pod_sandbox_id:
                ctr.state = EXITED
        return API.Empty()

    def do_RemovePodSandbox(self, data):
        pod = API.PodRequest.FromString(data).pod_sandbox_id
        self.pods.pop(pod, None)
        self.ctrs = {k: c for k, c in self.ctrs.items() if c.pod != pod}
        return API.Empty()

    def do_CreateContainer(self, data):
        request = API.CreateContainerRequest.FromString(data)
        ctr = self.new_id('ctr')
        self.ctrs[ctr] = Ctr(request.pod_sandbox_id, request.config)
        return API.CreateContainerResponse(container_id=ctr)

    def do_StartContainer(self, data):
        self.ctrs[API.ContainerRequest.FromString(data).container_id].state = RUNNING
        return API.Empty()

    def do_StopContainer(self, data):
        self.ctrs[API.ContainerRequest.FromString(data).container_id].state = EXITED
        return API.Empty()

    def do_RemoveContainer(self, data):
        self.ctrs.pop(API.ContainerRequest.FromString(data).container_id, None)
        return API.Empty()

    def do_UpdateContainerResources(self, data):
        request = API.UpdateRequest.FromString(data)
        self.ctrs[request.container_id].config.linux.resources.MergeFrom(request.linux)
        return API.Empty()

    def do_ListPodSandbox(self, _):
        return API.PodList(items=[API.ListedPod(id=k, metadata=p.metadata, labels=p.labels, annotations=p.annotations) for k, p in self.pods.items()])

    def do_ListContainers(self, _):
        return API.ContainerList(containers=[
            API.ListedContainer(id=k, pod_sandbox_id=c.pod, metadata=c.config.metadata, state=c.state, labels=c.config.labels,
                                annotations=c.config.annotations) for k, c in self.ctrs.items()])

    def do_PodSandboxStatus(self, data):
        pod = self.pods[API.PodRequest.FromString(data).pod_sandbox_id]
        return API.StatusResponse(info={'info': json.dumps({'config': {'linux': {'cgroup_parent': pod.linux.cgroup_parent}}})})

    def do_ContainerStatus(self, data):
        request = API.StatusRequest.FromString(data)
        ctr, r = request.container_id, self.ctrs[request.container_id].config.linux.resources
        if self.old and request.verbose:
            cpu = {'shares': r.cpu_shares, 'quota': r.cpu_quota, 'period': r.cpu_period, 'cpus': r.cpuset_cpus}
            spec = {'process': {'oomScoreAdj': r.oom_score_adj}, 'linux': {'resources': {'cpu': cpu, 'memory': {'limit': r.memory_limit_in_bytes}}}}
            return API.StatusResponse(status=API.ContainerStatus(id=ctr), info={'info': json.dumps({'runtimeSpec': spec})})
        if self.old:
            return API.StatusResponse(status=API.ContainerStatus(id=ctr))
        info = {'pid': 7, 'runtimeSpec': {'linux': {'cgroupsPath': '/kubepods/' + ctr}}}
        return API.StatusResponse(status=API.ContainerStatus(id=ctr, resources=API.StatusResources(linux=r)),
                                  info={'info': json.dumps(info)} if request.verbose else {})

    def cpus(self, ctr):
        text = self.ctrs[ctr].config.linux.resources.cpuset_cpus
        return cpuset(text) if text else ALL

    def called(self, name):
        with self.lock:
            return [data for method, data in self.calls if method == name]


class Ctr:
    def __init__(self, pod, config):
        self.pod, self.config, self.state = pod, config, CREATED


class Daemon:
    def __init__(self, folder, socket):
        self.dir, self.log, self.control = folder, folder / 'nri-rpd.log', folder / 'control.sock'
        made = subprocess.run([str(BUILD / 'bin/nri-rp-sim'), 'machine', MACHINE, str(folder / 'machine')], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        (folder / 'rp.conf').write_text('policy: static\nstatic: {reservedResources: {cpu: "cpuset:0"}}\nmetrics: {listen: ""}\n')
        self.words = [str(BUILD / 'bin/nri-rpd'), '--config', folder / 'rp.conf', '--nri-socket', socket, '--host-root', folder / 'machine',
                      '--state-dir', folder / 'state', '--control-socket', self.control, '--module-dir', BUILD / 'modules']
        self.process = None

    def start(self):
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen([str(w) for w in self.words], stdout=log, stderr=log)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def containers(self):
        done = subprocess.run([str(BUILD / 'bin/nri-rpctl'), '--socket', str(self.control), '--json', 'containers'], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None


class Client:
    """What a kubelet would ask."""

    def __init__(self, bridge):
        self.bridge, self.uid = bridge, 0

    def call(self, method, request, answer=API.Empty, service=SERVICE, timeout=ANSWER_S):
        data = request if isinstance(request, bytes) else request.SerializeToString()
        return answer.FromString(self.bridge.unary(method, service)(data, timeout=timeout))

    def pod(self, name, qos='guaranteed'):
        self.uid += 1
        config = API.PodConfig(metadata=dict(name=name, uid='uid-%d' % self.uid, namespace='default'))
        config.linux.cgroup_parent = '/kubepods%s/pod%d' % ('' if qos == 'guaranteed' else '/' + qos, self.uid)
        return self.call('RunPodSandbox', API.RunPodSandboxRequest(config=config), API.RunPodSandboxResponse).pod_sandbox_id

    @staticmethod
    def request(pod, mcpu, name='c'):
        config = API.ContainerConfig(metadata=dict(name=name))
        config.labels['io.kubernetes.container.name'] = name
        r = config.linux.resources
        r.cpu_shares, r.oom_score_adj = max(2, mcpu * 1024 // 1000), -997 if mcpu else 1000
        if mcpu:
            r.cpu_period, r.cpu_quota, r.memory_limit_in_bytes = 100000, mcpu * 100, 64 << 20
        return API.CreateContainerRequest(pod_sandbox_id=pod, config=config)

    def create(self, pod, mcpu=0, name='c', **how):
        return self.call('CreateContainer', self.request(pod, mcpu, name), API.CreateContainerResponse, **how).container_id

    def start(self, ctr):
        self.call('StartContainer', API.ContainerRequest(container_id=ctr))
        return ctr

    def run(self, name, mcpu=0):
        pod = self.pod(name, 'guaranteed' if mcpu else 'besteffort')
        return pod, self.start(self.create(pod, mcpu))

    def remove(self, pod):
        self.call('StopPodSandbox', API.PodRequest(pod_sandbox_id=pod))
        self.call('RemovePodSandbox', API.PodRequest(pod_sandbox_id=pod))


@pytest.fixture
def runtime():
    with Cri() as r:
        yield r


@pytest.fixture
def bridge(runtime):
    with Bridge(runtime, '--trace', '*') as b:
        yield b


@pytest.fixture
def client(bridge):
    return Client(bridge)


PLACED = 'containers are placed'


@pytest.fixture
def daemon(bridge, tmp_path):
    d = Daemon(tmp_path, bridge.nri_socket).start()
    bridge.wait_log(PLACED)
    yield d
    d.kill()


def test_a_runtime_of_before_v1(runtime, bridge, client, tmp_path):
    runtime.versions = 'v1alpha2'
    d = Daemon(tmp_path, bridge.nri_socket).start()
    bridge.wait_log(PLACED)
    old = '/runtime.v1alpha2.RuntimeService/'
    pod = client.call('RunPodSandbox', API.RunPodSandboxRequest(config=dict(metadata=dict(name='p', uid='u'))), API.RunPodSandboxResponse, old)
    assert len(runtime.cpus(client.create(pod.pod_sandbox_id, 1000, service=old))) == 1
    d.kill()


def test_what_is_created_while_the_daemon_comes_is_placed_all_the_same(runtime, bridge, client, tmp_path):
    """A pod and a container that the runtime is at when the plugin is synchronised: in no list yet, and nobody was asked."""
    pod, hold = client.pod('a'), threading.Event()
    runtime.faults['RunPodSandbox'] = runtime.faults['CreateContainer'] = lambda context: hold.wait(ANSWER_S)
    late_ctr = bridge.unary('CreateContainer').future(client.request(pod, 2000).SerializeToString())
    request = API.RunPodSandboxRequest(config=dict(metadata=dict(name='b', uid='late')))
    late_pod = bridge.unary('RunPodSandbox').future(request.SerializeToString())
    eventually(lambda: runtime.called('CreateContainer') and len(runtime.called('RunPodSandbox')) == 2)
    d = Daemon(tmp_path, bridge.nri_socket).start()
    bridge.wait_log(PLACED)
    hold.set()
    ctr = API.CreateContainerResponse.FromString(late_ctr.result()).container_id
    eventually(lambda: len(runtime.cpus(ctr)) == 2)
    other = client.create(API.RunPodSandboxResponse.FromString(late_pod.result()).pod_sandbox_id, 3000)
    assert len(runtime.cpus(other)) == 3 and not runtime.cpus(other) & runtime.cpus(ctr)
    d.kill()


@pytest.mark.parametrize('old', [False, True])
def test_what_was_there_before_the_bridge_is_known_for_what_it_is(runtime, bridge, client, tmp_path, old):
    """Created without a plugin, so without annotations: a burstable pod is none of those that get CPUs of their own."""
    runtime.old = old
    burstable = client.create(client.pod('b', 'burstable'), 2000)
    _, guaranteed = client.run('g', 2000)
    d = Daemon(tmp_path, bridge.nri_socket).start()
    bridge.wait_log(PLACED)
    eventually(lambda: len(runtime.cpus(guaranteed)) == 2 and runtime.cpus(burstable) == ALL - runtime.cpus(guaranteed))
    assert {c['qos'] for c in d.containers()} == {'Burstable', 'Guaranteed'}
    d.kill()


def test_many_containers_are_synchronised_in_parts(runtime, bridge, tmp_path):
    for i in range(MANY):
        pod = API.PodConfig(metadata=dict(name='p%d' % i, uid='u%d' % i, namespace='default'))
        pod.annotations['x'] = 'x' * 1000
        ctr = API.ContainerConfig(metadata=dict(name='c'))
        ctr.annotations['x'] = 'x' * 2000
        runtime.pods['pod%d' % i], runtime.ctrs['ctr%d' % i] = pod, Ctr('pod%d' % i, ctr)
    d = Daemon(tmp_path, bridge.nri_socket).start()
    bridge.wait_log(PLACED)
    assert 'synchronised: %d pods, %d containers' % (MANY, MANY) in bridge.log.read_text()
    assert len(d.containers()) == MANY
    d.kill()


def test_a_daemon_that_hangs_is_dropped_and_taken_back(runtime, bridge, client, daemon):
    pod, again = client.pod('p'), bridge.log.read_text().count(PLACED) + 1
    daemon.process.send_signal(signal.SIGSTOP)
    ctr = client.create(pod, 2000)
    assert runtime.cpus(ctr) == ALL
    bridge.wait_log('calls pass unchanged')
    daemon.process.send_signal(signal.SIGCONT)
    bridge.wait_log(PLACED, again)
    eventually(lambda: len(runtime.cpus(ctr)) == 2)


def status_of(call):
    with pytest.raises(grpc.RpcError) as e:
        call()
    return e.value


def test_what_the_policy_decides_is_in_the_request(runtime, client, daemon):
    _, shared = client.run('shared')
    pod = client.pod('pinned')
    request = client.request(pod, 2000)
    asked = request.config.SerializeToString() + UNKNOWN
    data = b'\x0a' + bytes([len(pod)]) + pod.encode() + b'\x12' + bytes([len(asked)]) + asked + UNKNOWN
    ctr = client.call('CreateContainer', data, API.CreateContainerResponse).container_id
    cpus = runtime.cpus(ctr)
    assert len(cpus) == 2 and 0 not in cpus
    # The others have made room before the runtime heard of it.
    order = [name for name, _ in runtime.calls if name in ('UpdateContainerResources', 'CreateContainer')]
    assert order == ['CreateContainer', 'UpdateContainerResources', 'CreateContainer']
    assert runtime.cpus(shared) == ALL - cpus
    # What the bridge does not know is still there, in both messages.
    got = runtime.called('CreateContainer')[1]
    assert got.count(UNKNOWN) == 2
    config = API.CreateContainerRequest.FromString(got).config
    assert re.fullmatch('[0-9a-f]{64}', config.annotations['bridge.nri-rp.io/id'])
    assert config.linux.resources.cpu_quota == 200000 and config.metadata.name == 'c'
    client.start(ctr)
    client.remove(pod)
    eventually(lambda: runtime.cpus(shared) == ALL)


def test_both_versions_are_placed(runtime, client, daemon):
    pod = client.pod('old')
    ctr = client.create(pod, 1000, service='/runtime.v1alpha2.RuntimeService/')
    assert len(runtime.cpus(ctr)) == 1


def test_a_container_has_a_cgroup_and_a_process_for_those_who_look(client, daemon):
    """Which the bridge asks the runtime for: a kubelet's calls name neither."""
    _, ctr = client.run('p', 1000)
    eventually(lambda: [c for c in daemon.containers() if c['state'] == 'running'])
    done = subprocess.run([str(BUILD / 'bin/nri-rpctl'), '--socket', str(daemon.control), '--json', 'explain', 'p/c'], capture_output=True, text=True)
    assert json.loads(done.stdout)['cgroup'] == '/kubepods/' + ctr


def test_a_refusal_is_the_callers_error_and_the_runtime_hears_nothing(runtime, client, daemon):
    pod = client.pod('large')
    e = status_of(lambda: client.create(pod, 99000))
    assert e.code() == grpc.StatusCode.FAILED_PRECONDITION and 'not enough cpus' in e.details()
    assert not runtime.called('CreateContainer')
    assert len(runtime.cpus(client.create(pod, 15000))) == 15


def abort(context):
    context.abort(grpc.StatusCode.INTERNAL, 'the disk is full')


def test_what_the_runtime_does_not_create_is_free_again(runtime, client, daemon):
    pod = client.pod('p')
    runtime.faults['CreateContainer'] = abort
    for _ in range(20):
        assert status_of(lambda: client.create(pod, 15000)).details() == 'the disk is full'
    runtime.faults.clear()
    assert len(runtime.cpus(client.create(pod, 15000))) == 15
    eventually(lambda: len(daemon.containers()) == 1)
    runtime.faults['RunPodSandbox'] = abort
    assert status_of(lambda: client.pod('q')).details() == 'the disk is full'


def test_a_caller_that_gives_up_leaves_nothing(runtime, client, daemon):
    pod, hold = client.pod('p'), threading.Event()
    runtime.faults['CreateContainer'] = lambda context: hold.wait(ANSWER_S) and context.abort(grpc.StatusCode.CANCELLED, 'too late')
    e = status_of(lambda: client.create(pod, 15000, timeout=1))
    assert e.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    eventually(lambda: daemon.containers() == [])
    hold.set()
    runtime.faults.clear()
    assert len(runtime.cpus(client.create(pod, 15000))) == 15


def test_an_update_of_a_container_that_is_being_created_comes_after_it(runtime, client, daemon):
    shared, pinned, hold = client.pod('shared', 'besteffort'), client.pod('pinned'), threading.Event()
    runtime.faults['CreateContainer'] = lambda context: hold.wait(ANSWER_S)
    made = client.bridge.unary('CreateContainer').future(client.request(shared, 0).SerializeToString())
    eventually(lambda: runtime.called('CreateContainer'))
    runtime.faults.clear()
    cpus = runtime.cpus(client.create(pinned, 2000))
    hold.set()
    ctr = API.CreateContainerResponse.FromString(made.result()).container_id
    eventually(lambda: runtime.cpus(ctr) == ALL - cpus)


def test_a_resize_is_decided_by_the_policy(runtime, client, daemon):
    _, ctr = client.run('a', 1000)
    request = API.UpdateRequest(container_id=ctr)
    request.linux.CopyFrom(client.request('', 500).config.linux.resources)
    client.call('UpdateContainerResources', request)
    assert runtime.ctrs[ctr].config.linux.resources.cpu_shares == 512
    assert runtime.cpus(ctr) == ALL and daemon.containers()[0]['wanted']['cpu_request_milli'] == 500
    request.linux.CopyFrom(client.request('', 3000).config.linux.resources)
    client.call('UpdateContainerResources', request)
    assert len(runtime.cpus(ctr)) == 3


def test_without_a_plugin_calls_pass_or_fail_as_asked(runtime, client):
    pod = client.pod('p')
    ctr = client.create(pod, 1000)
    assert runtime.cpus(ctr) == ALL and not runtime.ctrs[ctr].config.annotations
    client.bridge.stop()
    client.bridge.options = ['--require-plugin']
    client.bridge.start()
    e = status_of(lambda: client.create(pod, 1000))
    assert e.code() == grpc.StatusCode.UNAVAILABLE and '--require-plugin' in e.details()
    client.remove(pod)


# ---- what every plugin is promised -------------------------------------------------------------------------------------------------

def test_the_promises_of_nri_are_kept(runtime, bridge, client):
    """A life with a resize, a creation and a start that fail, a container that is never started, pods removed with what is in them."""
    kept, there = client.run('there')
    with Judge(bridge.nri_socket, '-p', '3') as judge:
        pod, ctr = client.run('p', 1000)
        assert runtime.cpus(ctr) == {3} and runtime.cpus(there) == ALL
        request = API.UpdateRequest(container_id=ctr)
        request.linux.cpu_shares = 512
        client.call('UpdateContainerResources', request)
        client.create(pod, 1000, name='never')
        for method in ('CreateContainer', 'StartContainer'):
            runtime.faults = {method: abort}
            status_of(lambda: client.start(client.create(pod, 1000, name='x')))
        runtime.faults.clear()
        client.call('StopContainer', API.ContainerRequest(container_id=ctr))
        client.call('RemoveContainer', API.ContainerRequest(container_id=ctr))
        client.call('UpdatePodSandboxResources', API.PodRequest(pod_sandbox_id=pod))
        client.remove(pod)
        client.remove(kept)
        judge.wait('RemovePodSandbox', 2)
        names = [line[0] for line in judge.lines() if line[2] == 'c']
        assert names[:7] == ['CreateContainer', 'PostCreateContainer', 'StartContainer', 'PostStartContainer', 'UpdateContainer', 'PostUpdateContainer',
                             'StopContainer']
        assert len(judge.lines('RemoveContainer')) == 4 + 1 and judge.lines('UpdatePodSandbox') and judge.lines('PostUpdatePodSandbox')
        judge.verdict()


@pytest.mark.parametrize('refused', [False, True])
def test_pods_that_are_told_after_they_are_there(runtime, bridge, client, refused):
    """By the runtime's own id; one that is refused is removed again, and its caller hears why."""
    bridge.stop()
    bridge.options.extend(['--pod-event', 'after'])
    bridge.start()
    with Judge(bridge.nri_socket, '-r', 'bad') as judge:
        if refused:
            e = status_of(lambda: client.pod('bad'))
            assert e.code() == grpc.StatusCode.FAILED_PRECONDITION and 'the judge refuses it' in e.details()
            assert runtime.pods == {} and [name for name, _ in runtime.calls[-2:]] == ['StopPodSandbox', 'RemovePodSandbox']
            runtime.faults['RunPodSandbox'] = abort
            assert status_of(lambda: client.pod('bad')).details() == 'the disk is full'
            assert len(judge.lines('RunPodSandbox')) == 1
        else:
            pod, _ = client.run('good', 1000)
            assert judge.lines('RunPodSandbox') == [('RunPodSandbox', pod, 'good')] and pod in runtime.pods
            assert 'bridge.nri-rp.io/id' not in runtime.pods[pod].annotations
            client.remove(pod)
            judge.wait('RemovePodSandbox')
        judge.verdict()


def test_an_answer_that_cannot_be_held_is_an_error(runtime, bridge, client):
    """The bridge keeps the answer of RunPodSandbox until the plugin has heard of the pod: all of it or none."""
    bridge.stop()
    bridge.options.extend(['--pod-event', 'after'])
    bridge.start()
    small = runtime.do_RunPodSandbox
    runtime.do_RunPodSandbox = lambda data: API.RunPodSandboxResponse.FromString(small(data).SerializeToString() + UNKNOWN[:3] + b'\x80\x80\x80\x09' + bytes(9 << 21))
    with Judge(bridge.nri_socket) as judge:
        e = status_of(lambda: client.pod('large'))
        assert e.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "could not store the runtime's reply" in e.details()
        runtime.do_RunPodSandbox = small
        client.run('small', 1000)
        judge.verdict()


def rss_mib(process):
    return int(re.search(r'VmHWM:\s+(\d+)', pathlib.Path('/proc/%d/status' % process.pid).read_text())[1]) >> 10


def test_requests_that_do_not_end_are_bounded(runtime, bridge, client, daemon):
    """By what they hold together, and in time. A whole request beside them is served."""
    bridge.stop()  # AddressSanitizer would keep 256 MiB of freed memory
    bridge.under = ['env', 'ASAN_OPTIONS=%s:quarantine_size_mb=8' % os.environ.get('ASAN_OPTIONS', '')]
    bridge.start()
    bridge.wait_log(PLACED, 2)
    release, channels, calls = threading.Event(), [], []

    def begin(data):
        yield data
        release.wait(ANSWER_S)
    for _ in range(10):
        channels.append(bridge.connect())
        calls.append(channels[-1].stream_unary(SERVICE + 'CreateContainer').future(begin(bytes(12 << 20)), timeout=ANSWER_S))
        time.sleep(0.1)
    _, ctr = client.run('web', 2000)
    assert len(runtime.cpus(ctr)) == 2
    codes = [call.code() for call in calls]
    assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED} and 5 <= codes.count(grpc.StatusCode.DEADLINE_EXCEEDED)
    assert rss_mib(bridge.process) < 200
    more = channels[0].stream_unary(SERVICE + 'CreateContainer').future(iter([b'', b'']), timeout=ANSWER_S)
    assert more.code() == grpc.StatusCode.INTERNAL and more.details() == 'the request is not one message'
    release.set()


def churn(client, **how):
    rng = random.Random(2)
    return Churn(lambda i: client.run('p%d' % i, rng.choice([0, 1000, 2000]))[0], client.remove, **how)


def all_is_free(runtime, client, daemon):
    """What calls that were broken off have left is removed, as a kubelet would; then nothing may be kept."""
    for pod in list(runtime.pods):
        client.remove(pod)
    eventually(lambda: daemon.containers() == [])
    assert len(runtime.cpus(client.create(client.pod('last'), 15000))) == 15


def test_a_daemon_that_is_killed_while_pods_come_and_go_loses_none(runtime, client, daemon):
    rng, (_, kept) = random.Random(3), client.run('kept', 3000)
    cpus = runtime.cpus(kept)
    with churn(client) as others:
        for i in range(KILL_ROUNDS):
            again = client.bridge.log.read_text().count(PLACED) + 1
            daemon.kill()
            daemon.start()
            if i % 3:
                client.bridge.wait_log(PLACED, again)
            time.sleep(rng.random() / 20)
            assert runtime.cpus(kept) == cpus
    client.bridge.wait_log(PLACED)
    assert others.errors == [] and others.broken == 0 and others.made > KILL_ROUNDS / 2
    all_is_free(runtime, client, daemon)


def test_a_bridge_that_is_killed_while_pods_come_and_go_moves_nobody(runtime, client, daemon):
    rng, (kept_pod, kept) = random.Random(3), client.run('kept', 3000)
    cpus = runtime.cpus(kept)

    def clean(live):
        for pod in list(runtime.pods):
            if pod not in live and pod != kept_pod:
                client.remove(pod)

    with churn(client, clean=clean) as others:
        for _ in range(KILL_ROUNDS):
            time.sleep(rng.random() / 20)
            client.bridge.process.kill()
            client.bridge.process.wait()
            client.bridge.log.unlink()
            client.bridge.start()
            client.bridge.wait_log(PLACED)
            assert runtime.cpus(kept) == cpus
    assert others.errors == [] and others.made > KILL_ROUNDS / 2
    all_is_free(runtime, client, daemon)


def test_a_runtime_that_comes_back_is_synchronised_anew(runtime, client, daemon):
    pod, ctr = client.run('p', 2000)
    _, lost = client.run('q', 2000)
    cpus, again = runtime.cpus(ctr), client.bridge.log.read_text().count(PLACED) + 1
    runtime.stop()
    del runtime.ctrs[lost]
    assert status_of(lambda: client.create(pod, 1000)).code() == grpc.StatusCode.UNAVAILABLE
    runtime.start()
    client.bridge.wait_log('the runtime is back')
    client.bridge.wait_log(PLACED, again)
    assert not runtime.cpus(client.create(pod, 1000)) & cpus
    assert len(daemon.containers()) == 2


def test_what_ends_or_is_taken_away_unasked_is_noticed(runtime, bridge, client):
    """The runtime's list is looked at soon where a call's end is not known, else every 10 s."""
    _, ends = client.run('a')
    _, goes = client.run('b')
    pod = client.pod('c')
    ctr = client.create(pod)
    with Judge(bridge.nri_socket) as judge:
        runtime.ctrs[ends].state = EXITED
        del runtime.ctrs[goes]
        runtime.faults['StartContainer'] = lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, 'who knows')
        status_of(lambda: client.start(ctr))
        runtime.ctrs[ctr].state = RUNNING
        eventually(lambda: {line[1] for line in judge.lines('StopContainer')} == {ends, goes})
        assert judge.wait('RemoveContainer')[1] == goes and judge.wait('PostStartContainer')[1] == ctr
        judge.verdict()


STOPPED, DELETED = 2, 3


@pytest.fixture
def told(runtime, bridge, client):
    """Two containers that run, and a plugin, while the runtime tells events and its list is of no use any more."""
    runtime.events = queue.Queue()
    ctrs = [client.run(name)[1] for name in 'ab']
    with Judge(bridge.nri_socket) as judge:
        listed(runtime, 2)
        runtime.tell('x', STOPPED)
        yield judge, ctrs, listed(runtime, 3)
        judge.verdict()


def listen(channel):
    """A stream of events that the bridge has seen begin."""
    stream = channel.unary_stream(SERVICE + 'GetContainerEvents')(b'')
    channel.unary_unary(SERVICE + 'ListPodSandbox')(b'', timeout=ANSWER_S)
    return stream


def listed(runtime, count):
    """A list follows the beginning of the events, and the first of them; from then on there is none for five minutes."""
    eventually(lambda: len(runtime.called('ListContainers')) == count)
    return len(runtime.called('ListContainers'))


def test_ends_are_heard_of_beside_the_kubelet(runtime, bridge, told):
    judge, (ends, goes), lists = told
    kubelets = [listen(bridge.connect()) for _ in range(2)]
    runtime.tell(ends, STOPPED)
    runtime.tell(goes, DELETED)
    assert judge.wait('StopContainer', 2) and judge.lines('StopContainer')[0][1] == ends and judge.wait('RemoveContainer')[1] == goes
    for stream in kubelets:
        assert [API.ContainerEvent.FromString(next(stream)).container_id for _ in range(2)] == [ends, goes]
        stream.cancel()
    runtime.tell('another', STOPPED)
    runtime.tell(ends, STOPPED)  # nobody is told twice
    assert len(runtime.called('GetContainerEvents')) == 1 and len(runtime.called('ListContainers')) == lists


def test_what_ends_while_there_are_no_events_is_in_the_list(runtime, bridge, told):
    judge, (ends, later), lists = told
    kubelet = listen(bridge.channel)
    runtime.events.put(None)
    assert status_of(lambda: next(kubelet)).details() == 'the events are no more'
    runtime.ctrs[ends].state = EXITED
    assert judge.wait('StopContainer')[1] == ends
    assert len(runtime.called('GetContainerEvents')) == 2 and listed(runtime, lists + 1)
    runtime.tell(later, STOPPED)
    assert judge.wait('StopContainer', 2)[1] == later


def test_events_that_one_reader_does_not_take_reach_the_others(runtime, bridge, told):
    judge, (ends, _), _ = told
    slow, quick = (listen(bridge.connect()) for _ in range(2))
    for _ in range(60):
        runtime.tell('x', 1, b'\xfa\xff\x03\xff\xff\x07' + b'x' * 0x1ffff)
    for _ in range(60):
        next(quick)
    runtime.tell(ends, STOPPED)
    assert judge.wait('StopContainer')[1] == ends and API.ContainerEvent.FromString(next(quick)).container_id == ends
    e = status_of(lambda: list(slow))
    assert e.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and 'does not read its container events' in e.details()
    assert len(runtime.called('GetContainerEvents')) == 1
    # What a later release asks for is no matter of the bridge.
    asks = bridge.stream('GetContainerEvents')(UNKNOWN)
    eventually(lambda: runtime.called('GetContainerEvents') == [b'', UNKNOWN])
    asks.cancel()
    quick.cancel()


def test_a_pod_whose_stop_was_broken_off_is_stopped_before_it_is_removed(runtime, bridge, client):
    pod, _ = client.run('a')
    with Judge(bridge.nri_socket) as judge:
        runtime.faults['StopPodSandbox'] = lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, 'who knows')
        status_of(lambda: client.call('StopPodSandbox', API.PodRequest(pod_sandbox_id=pod)))
        client.call('RemovePodSandbox', API.PodRequest(pod_sandbox_id=pod))
        judge.wait('RemovePodSandbox')
        assert len(judge.lines('StopPodSandbox')) == 1
        judge.verdict()


def test_a_pod_that_its_caller_gave_up_is_told_of_with_its_first_container(runtime, bridge, client):
    with Judge(bridge.nri_socket) as judge:
        request = client.request('unheard', 100)
        request.sandbox_config.metadata.name, request.sandbox_config.metadata.uid = 'late', 'uid'
        client.call('CreateContainer', request)
        assert judge.lines('RunPodSandbox') == [('RunPodSandbox', 'unheard', 'late')]
        runtime.faults['CreateContainer'] = abort
        request.pod_sandbox_id = 'none'
        status_of(lambda: client.call('CreateContainer', request))
        assert judge.wait('RemovePodSandbox')[1] == 'none'
        judge.verdict()


def test_what_runs_already_is_not_asked_about_again(runtime, bridge, client):
    _, ctr = client.run('a')
    with Judge(bridge.nri_socket) as judge:
        runtime.faults['StartContainer'] = abort
        status_of(lambda: client.start(ctr))
        runtime.faults['RunPodSandbox'] = abort
        status_of(lambda: client.call('RunPodSandbox', API.RunPodSandboxRequest(config=API.PodConfig())))
        assert not judge.lines('StartContainer') and not judge.lines('StopContainer') and not judge.lines('RunPodSandbox')
        judge.verdict()

def test_the_manual_has_all_options():
    text = (TOP / 'man/nri-rp-bridge.8').read_text()
    said = subprocess.run([str(BUILD / 'bin/nri-rp-bridge'), '--help'], capture_output=True, text=True).stdout
    options = re.findall(r'^  --([a-z-]+)', said, re.M)
    assert options and [o for o in options if ' -%s' % o not in text] == []
