# SPDX-License-Identifier: Apache-2.0
"""nri-rp-bridge before a real containerd that has NRI off, with a real nri-rpd behind it: what is decided is what the kernel does."""
import os
import pathlib
import shutil
import tempfile

import grpc
import pytest

import containerd
from containerd import cpus, wait_for
from criproxy import Bridge
from test_containerd import ONLINE, SCRATCH, Daemon, needs_two_cpus

KILLS, EVENTS = int(os.environ.get('BRIDGE_KILLS', '20')), 12
PLACED = 'containers are placed'


@pytest.fixture(params=list(containerd.SUITES), scope='module')
def runtime(request):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-it-', dir=SCRATCH))
    try:
        rt = containerd.Containerd(request.param, folder, nri=False)
        rt.start()
        rt.load_images()
    except containerd.Unavailable as why:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(str(why))
    assert not rt.nri_socket.exists()
    yield rt
    rt.connect(rt.socket)
    rt.down()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def bridge(runtime):
    with Bridge(runtime) as b:
        runtime.connect(b.socket)
        runtime.nri_socket = b.nri_socket
        yield b
        runtime.connect(runtime.socket)


@pytest.fixture
def daemon(runtime, bridge):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-d-', dir=SCRATCH))
    d = Daemon(runtime, folder)
    d.configure('static', '{reservedResources: {cpu: "cpuset:%d"}}' % ONLINE[0])
    before = bridge.log.read_text().count(PLACED)
    d.start()
    bridge.wait_log(PLACED, before + 1)
    yield d
    if d.process.poll() is None:
        d.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def pods(runtime, bridge):
    made = []

    def run(*args, **kwargs):
        made.append(runtime.run_pod(*args, **kwargs))
        return made[-1]
    yield run
    for pod in made:
        pod.remove()


@needs_two_cpus
def test_an_exclusive_cpu_is_the_kernels(daemon, pods):
    shared = pods('shared', 'besteffort').run('c')
    assert cpus(shared.allowed()) == set(ONLINE)
    pinned = pods('pinned').run('c', 1000)
    assert len(cpus(pinned.allowed())) == 1 and not cpus(pinned.allowed()) & {ONLINE[0]}
    # The others have gone out of its way before it began, and come back when it is gone.
    assert cpus(shared.allowed()) == set(ONLINE) - cpus(pinned.allowed())
    pinned.remove()
    wait_for('the CPU is given back', lambda: cpus(shared.allowed()) == set(ONLINE))


@needs_two_cpus
def test_what_cannot_be_placed_fails_with_the_reason(daemon, pods):
    pod = pods('large')
    with pytest.raises(grpc.RpcError) as e:
        pod.run('c', 1000 * (len(ONLINE) + 1))
    assert e.value.code() == grpc.StatusCode.FAILED_PRECONDITION and 'cpus' in e.value.details()
    assert len(cpus(pods('next').run('c', 1000).allowed())) == 1


@needs_two_cpus
def test_nothing_moves_when_either_is_killed_under_churn(runtime, bridge, daemon, pods):
    """BRIDGE_KILLS=1000 kills each 500 times."""
    pinned, shared = pods('pinned').run('c', 1000), pods('shared', 'besteffort').run('c')
    before, rest = pinned.allowed(), set(ONLINE) - cpus(pinned.allowed())
    for i in range(KILLS):
        pod = runtime.run_pod('churn-%d' % i, 'burstable')
        if i % 2:
            again = bridge.log.read_text().count(PLACED) + 1
            daemon.kill()
            churned = pod.run('c', 100)
            daemon.start()
            bridge.wait_log(PLACED, again)
        else:
            mark = daemon.mark()
            bridge.process.kill()
            bridge.process.wait()
            bridge.log.unlink()
            bridge.start()
            runtime.connect(bridge.socket)
            daemon.wait_log('synchronized with', mark)
            bridge.wait_log(PLACED)
            churned = pod.run('c', 100)
        wait_for('it is out of the way', lambda: cpus(churned.allowed()) == rest)
        pod.remove()
        assert (pinned.allowed(), cpus(shared.allowed())) == (before, rest)
    pinned.remove()
    wait_for('the CPU is given back', lambda: cpus(shared.allowed()) == set(ONLINE))


@needs_two_cpus
def test_without_the_daemon_calls_pass(runtime, bridge, daemon, pods):
    daemon.stop()
    bridge.wait_log('calls pass unchanged')
    unplaced, other = pods('unplaced').run('c', 1000), pods('other', 'burstable').run('c', 1000)
    assert cpus(unplaced.allowed()) == set(ONLINE)
    daemon.start()
    # Found by Synchronize, and placed then.
    wait_for('it is placed', lambda: len(cpus(unplaced.allowed())) == 1)
    assert cpus(other.allowed()) == set(ONLINE) - cpus(unplaced.allowed())


@needs_two_cpus
def test_a_container_that_the_runtime_does_not_create_keeps_nothing(runtime, daemon, pods):
    pod = pods('broken')
    for _ in range(3):
        with pytest.raises(grpc.RpcError):
            pod.run('c', 1000, devices=['/dev/no-such-device'])
    shared = pods('shared', 'besteffort').run('c')
    wait_for('nothing is kept', lambda: cpus(shared.allowed()) == set(ONLINE))
    assert len(cpus(pod.run('c', 1000).allowed())) == 1


@needs_two_cpus
def test_a_container_that_ends_by_itself_gives_its_cpus_back(daemon, pods):
    shared = pods('shared', 'besteffort').run('c')
    pods('short').run('c', 1000, command=['/bin/sleep', '1'])
    assert cpus(shared.allowed()) != set(ONLINE)
    wait_for('the CPU is given back', lambda: cpus(shared.allowed()) == set(ONLINE))


def test_exec_and_lists_pass(runtime, pods):
    ctr = pods('one').run('c')
    assert runtime.images() and ctr.exec('/bin/true') == '' and ctr.allowed()


# ---- what passes is what the runtime says ------------------------------------------------------------------------------------------

METHODS = {
    'RuntimeService': '''Version RunPodSandbox StopPodSandbox RemovePodSandbox PodSandboxStatus ListPodSandbox CreateContainer StartContainer StopContainer
        RemoveContainer ListContainers ContainerStatus UpdateContainerResources ReopenContainerLog ExecSync Exec Attach PortForward ContainerStats
        ListContainerStats PodSandboxStats ListPodSandboxStats UpdateRuntimeConfig Status CheckpointContainer ListMetricDescriptors
        ListPodSandboxMetrics RuntimeConfig UpdatePodSandboxResources NoSuchMethod''',
    'ImageService': 'ListImages ImageStatus PullImage RemoveImage ImageFsInfo NoSuchMethod',
}
# Nothing; an id that there is not; what is no message; a field of another type.
ARGUMENTS = b'', b'\x0a\x03abc', b'\xff\xff\xff', b'\x0a\x00\x10\x01'
# Answers with the time in them, or in no order.
VOLATILE = 'ImageFsInfo', 'ListContainerStats', 'ListPodSandboxStats', 'ListImages', 'Status', 'ListPodSandbox', 'ListContainers'


def outcome(channel, path, data):
    """What a client sees: status, text, trailers, answer."""
    try:
        answer, call = channel.unary_unary(path).with_call(data, timeout=containerd.CALL_S)
    except grpc.RpcError as e:
        return e.code(), e.details(), tuple(e.trailing_metadata() or ())
    volatile = path.rsplit('/', 1)[-1] in VOLATILE
    return call.code(), sorted(answer) if volatile and path.endswith('ListImages') else len(answer) > 0 if volatile else answer, tuple(call.trailing_metadata())


@pytest.mark.parametrize('version', ['v1', 'v1alpha2'])
@pytest.mark.parametrize('service', METHODS)
def test_answers_are_those_without_the_bridge(runtime, bridge, daemon, service, version):
    direct = grpc.insecure_channel('unix://%s/cri.sock' % runtime.dir)
    differ = []
    for method in METHODS[service].split():
        path = '/runtime.%s.%s/%s' % (version, service, method)
        for data in ARGUMENTS:
            both = outcome(direct, path, data), outcome(bridge.channel, path, data)
            if both[0] != both[1]:
                differ.append((path, data, *both))
    runtime.connect(runtime.socket)
    runtime.load_images()  # an image without a name is any, to RemoveImage
    assert differ == []


def test_the_stream_of_events_passes(runtime, bridge, daemon, pods):
    events = bridge.channel.unary_stream('/runtime.v1.RuntimeService/GetContainerEvents')(b'', timeout=containerd.CALL_S)
    # containerd 1.7 gives one event to each reader that has gone, as all the bridges before this one.
    ctrs = [pods('p%d' % i).run('c') for i in range(EVENTS)]
    assert any(ctrs[-1].id.encode() in event for event in events)
    events.cancel()
