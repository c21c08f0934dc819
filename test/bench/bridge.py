#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What nri-rp-bridge costs: calls to a runtime by themselves and through it, in turn, in one run.

    bridge.py BUILD [ROUNDS]

Client and runtime are the gRPC library's, in two processes. The runtime does nothing: all that is seen is the way there and back. Of a
list the messages are made and read on both sides, as a kubelet and a runtime have to. Each figure is the median of the rounds.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
os.environ['NRI_RP_BUILD'] = str(BUILD)
sys.path[:0] = [str(TOP / 'test'), str(TOP / 'test/scenario')]

import grpc  # noqa: E402

from criproxy import SERVICE, UNLIMITED, Bridge, Runtime  # noqa: E402
from kubelet import messages  # noqa: E402

API = messages('test/integration', 'cri')
ROUNDS = int(sys.argv[2]) if sys.argv[2:] and sys.argv[2] != "runtime" else 3
SMALL, LISTS, CONTAINERS, HELD = 2000, 20, 10000, 1000
CONTAINER_BYTES = 8 * 2**20 // CONTAINERS
ANSWER_S = 60
KIB = 1024


def listed(i):
    c = API.ListedContainer(id='%064x' % i, pod_sandbox_id='%064x' % (i // 2), metadata=dict(name='c'), state=1)
    c.labels['io.kubernetes.pod.name'] = 'pod%d' % (i // 2)
    c.annotations['x'] = 'x' * (CONTAINER_BYTES - c.ByteSize() - 8)
    return c


class Idle(Runtime):
    """Says what it is asked for at once. Containers are there when it is told so."""

    def __init__(self):
        self.n = 0
        self.list = API.ContainerList(containers=[listed(i) for i in range(CONTAINERS)])
        self.shown, self.bytes = API.ContainerList(), self.list.SerializeToString()
        super().__init__()

    def service(self, handler_call_details):
        self.calls.clear()
        work = getattr(self, 'do_' + handler_call_details.method.rsplit('/', 1)[-1], None)
        if not work:
            return super().service(handler_call_details)
        return grpc.unary_unary_rpc_method_handler(lambda data, context: work(data))

    def do_Version(self, data):
        return data

    def do_Show(self, data):
        self.shown = self.list if data else API.ContainerList()
        return b''

    def do_ListContainers(self, _):
        return self.shown.SerializeToString()

    def do_Bytes(self, _):
        return self.bytes

    def do_ListPodSandbox(self, _):
        pods = {c.pod_sandbox_id for c in self.shown.containers}
        return API.PodList(items=[API.ListedPod(id=p, metadata=dict(name=p, uid=p), annotations={'bridge.nri-rp.io/cgroup-parent': '/kubepods'})
                                  for p in pods]).SerializeToString()

    def do_RunPodSandbox(self, _):
        return API.RunPodSandboxResponse(pod_sandbox_id='p').SerializeToString()

    def do_CreateContainer(self, _):
        self.n += 1
        return API.CreateContainerResponse(container_id='c%d' % self.n).SerializeToString()

    def do_RemoveContainer(self, _):
        return b''

    def do_ContainerStatus(self, _):
        return API.StatusResponse(status=API.ContainerStatus(resources=dict(linux=dict(cpu_shares=2)))).SerializeToString()


class Process:
    """The runtime, in a process of its own."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__, str(BUILD), 'runtime'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.socket = pathlib.Path(self.process.stdout.readline().strip())
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-bench-'))

    def stop(self):
        self.process.communicate()


def serve():
    with Idle() as runtime:
        print(runtime.socket, flush=True)
        sys.stdin.read()


def connect(socket):
    return grpc.insecure_channel('unix:%s' % socket, options=UNLIMITED + [('grpc.use_local_subchannel_pool', 1)])


def times_us(n, fn):
    out = []
    for _ in range(n):
        begun = time.perf_counter()
        fn()
        out.append((time.perf_counter() - begun) * 1e6)
    return out


def p50(n, fn):
    times_us(n // 10 + 1, fn)
    return statistics.median(times_us(n, fn))


def unknown(channel):
    try:
        channel.unary_unary(SERVICE + 'Nothing')(b'', timeout=ANSWER_S)
    except grpc.RpcError as e:
        assert e.code() == grpc.StatusCode.UNIMPLEMENTED, e


def create(channel, pod):
    made = channel.unary_unary(SERVICE + 'CreateContainer')
    remove = channel.unary_unary(SERVICE + 'RemoveContainer')
    config = API.ContainerConfig(metadata=dict(name='c'), image=dict(image='i'), command=['/bin/sleep'])
    config.linux.resources.cpu_shares = 512
    request = API.CreateContainerRequest(pod_sandbox_id=pod, config=config).SerializeToString()

    def all_of_it():
        """Only the creation counts; what is left is taken away, or it would be measured how that grows."""
        begun = time.perf_counter()
        answer = made(request, timeout=ANSWER_S)
        taken = (time.perf_counter() - begun) * 1e6
        remove(API.ContainerRequest(container_id=API.CreateContainerResponse.FromString(answer).container_id).SerializeToString())
        return taken
    times = [all_of_it() for _ in range(SMALL)]
    return statistics.median(times[SMALL // 10:])


def cpu_ms(pid):
    return sum(int(t) for t in pathlib.Path('/proc/%d/stat' % pid).read_text().rsplit(')', 1)[1].split()[11:13]) * 1000 / os.sysconf('SC_CLK_TCK')


def rss_kib(pid):
    text = pathlib.Path('/proc/%d/status' % pid).read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith('VmRSS'))


def measure(direct, bridge, plugin):
    """{figure: (direct, through it)} of one round."""
    through, out = bridge.channel, {}
    version = [c.unary_unary(SERVICE + 'Version') for c in (direct, through)]
    out['a call that passes, us'] = [p50(SMALL, lambda v=v: v(b'', timeout=ANSWER_S)) for v in version]
    # The library's server has a thread a call, but for one that it does not have.
    other = connect(bridge.socket)
    alone = p50(SMALL, lambda: unknown(other))
    held = [through.unary_unary(SERVICE + 'Hold').future(b'x') for _ in range(HELD - 1)]
    out['one alone, beside %d that hang, us' % (HELD - 1)] = [alone, p50(SMALL, lambda: unknown(other))]
    for call in held:
        call.cancel()
    lists = [c.unary_unary(SERVICE + 'ListContainers', response_deserializer=API.ContainerList.FromString) for c in (direct, through)]
    direct.unary_unary(SERVICE + 'Show')(b'x', timeout=ANSWER_S)
    before = cpu_ms(bridge.process.pid)
    out['%d containers listed, us' % CONTAINERS] = [p50(LISTS, lambda v=v: v(b'', timeout=ANSWER_S)) for v in lists]
    whole = [c.unary_unary(SERVICE + 'Bytes') for c in (direct, through)]
    out['the same, nobody reads the messages, us'] = [p50(LISTS, lambda v=v: v(b'', timeout=ANSWER_S)) for v in whole]
    out['CPU of the bridge a list, us'] = [0, (cpu_ms(bridge.process.pid) - before) * 1000 / (LISTS + LISTS // 10 + 1) / 2]
    direct.unary_unary(SERVICE + 'Show')(b'', timeout=ANSWER_S)
    pods = [API.RunPodSandboxResponse.FromString(c.unary_unary(SERVICE + 'RunPodSandbox')(
        API.RunPodSandboxRequest(config=dict(metadata=dict(name='p', uid='u'))).SerializeToString())).pod_sandbox_id for c in (direct, through)]
    count = bridge.log.read_text().count('containers are placed')
    noop = subprocess.Popen([str(plugin), str(bridge.nri_socket)], stderr=subprocess.DEVNULL)
    bridge.wait_log('containers are placed', count + 1)
    through.unary_unary(SERVICE + 'RunPodSandbox')(API.RunPodSandboxRequest(config=dict(metadata=dict(name='p', uid='u'))).SerializeToString())
    out['CreateContainer with a no-op plugin, us'] = [create(c, p) for c, p in zip((direct, through), pods)]
    noop.kill()
    noop.wait()
    out['resident memory, KiB'] = [0, rss_kib(bridge.process.pid)]
    return out


def known(bridge, direct, plugin):
    """Resident memory for each container that a plugin is told of."""
    before, count = rss_kib(bridge.process.pid), bridge.log.read_text().count('containers are placed')
    direct.unary_unary(SERVICE + 'Show')(b'x', timeout=ANSWER_S)
    noop = subprocess.Popen([str(plugin), str(bridge.nri_socket)], stderr=subprocess.DEVNULL)
    bridge.wait_log('containers are placed', count + 1)
    after = rss_kib(bridge.process.pid)
    noop.kill()
    noop.wait()
    return before, after


def main():
    plugin, runtime = BUILD / 'bench/noop', Process()
    rounds = []
    with Bridge(runtime, '--log-level', 'info') as bridge:
        direct = connect(runtime.socket)
        for _ in range(ROUNDS):
            rounds.append(measure(direct, bridge, plugin))
        before, after = known(bridge, direct, plugin)
    runtime.stop()
    print('%-42s %10s %10s %10s %7s' % ('median of %d' % ROUNDS, 'direct', 'through', 'more', 'times'))
    for name in rounds[0]:
        a, b = (statistics.median(r[name][i] for r in rounds) for i in (0, 1))
        print('%-42s %10.0f %10.0f %10.0f %7s' % (name, a, b, b - a, '%.2f' % (b / a) if a else ''))
    print('with %d containers of %d bytes known to a plugin: %d KiB, before %d: %.1f KiB a container' % (
        CONTAINERS, CONTAINER_BYTES, after, before, (after - before) / CONTAINERS))


if __name__ == '__main__':
    if sys.argv[2:] == ['runtime']:
        serve()
    else:
        main()
