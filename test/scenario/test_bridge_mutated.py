# SPDX-License-Identifier: Apache-2.0
"""Random damage to what a kubelet says to nri-rp-bridge, and to what a runtime answers: to frames of HTTP/2 as real ones sent them, and to messages of CRI.
The bridge has to go on, calls of others with it, and nothing may stay allocated for what was never there. `MUTATIONS=100000 MUTATED_BATCHES=20000` does
many; with NRI_RP_BUILD=build/sanitized errors of memory count, too.
"""
import contextlib
import itertools
import os
import queue
import random
import socket
import subprocess
import threading
import time
import types

import grpc
import pytest
from google.protobuf.message import DecodeError

from criproxy import SERVICE, Bridge, Judge
from simnode import BUILD, eventually
from test_bridge_police import ANSWER_S, API, PLACED, UNKNOWN, Client, Cri, Daemon, all_is_free

MUTATIONS = int(os.environ.get('MUTATIONS', 100))
ANSWERS = int(os.environ.get('MUTATIONS', 500))  # of a runtime that lies: messages
BATCHES = int(os.environ.get('MUTATED_BATCHES', 60))  # and frames; most end a connection
TALKERS = 12
AGE_S = 0.2  # of a connection, before its answers are damaged
PATIENCE_S = 0.03  # with what is lost in damage
SEED = int(os.environ.get('MUTATION_SEED', 1))
CHECK_EVERY = 20
PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
ODD = 0, 1, 0x7f, 0x80, 0xff, 0x3fff, 0x4000, 0x4001, 0xffff, 0x7fffffff, 0xffffff


class Relay:
    """A socket before another one that keeps what went either way."""

    def __init__(self, path, to):
        self.path, self.to = path, str(to)
        self.said, self.answered = bytearray(), bytearray()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self.to)
            except OSError:
                return
            threading.Thread(target=self.pump, args=(near, far, self.said), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, self.answered), daemon=True).start()

    @staticmethod
    def pump(a, b, kept):
        Relay.pass_on(a, b, lambda data: kept.extend(data) or data)

    @staticmethod
    def pass_on(a, b, change):
        try:
            while data := a.recv(65536):
                b.sendall(change(data))
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Liar(Relay):
    """One whose answers are damaged, each fourth batch of frames, when a connection is as old as a plugin needs, or before."""

    def __init__(self, path, to):
        self.lies, self.count, self.rng, self.open = True, 0, random.Random(SEED), []
        super().__init__(path, to)

    def pump(self, a, b, kept):
        begin = time.monotonic() + self.rng.random() * AGE_S
        self.open.append(a)
        Relay.pass_on(a, b, bytes if kept is self.said else lambda data: self.damage(data) if time.monotonic() >= begin else data)
        self.open.remove(a)

    def damage(self, data):
        list_ = frames(data)
        if not self.lies or not list_ or self.rng.randrange(4):
            return data
        self.count += 1
        return mutate_frames(self.rng, list_)

    def cut(self):
        """Connections, as those that are there may wait for what was lost."""
        for s in list(self.open):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def frames(data):
    """[[length, type, flags, stream, payload]]"""
    out = []
    while len(data) >= 9:
        n = int.from_bytes(data[:3], 'big')
        out.append([n, data[3], data[4], int.from_bytes(data[5:9], 'big'), bytes(data[9:9 + n])])
        data = data[9 + n:]
    return out


def joined(list_):
    return b''.join((n & 0xffffff).to_bytes(3, 'big') + bytes([t & 255, f & 255]) + (s & 0xffffffff).to_bytes(4, 'big') + p for n, t, f, s, p in list_)


def mutate_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not data:
            return bytes(data)
        at, n = rng.randrange(len(data)), rng.randint(1, 16)
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            data[at:at + n] = rng.choice(ODD).to_bytes(8, 'little')[:n]
        elif kind == 3:
            del data[at:at + n]
        elif kind == 4:
            data[at:at] = data[at:at + n]
        elif rng.randrange(4) == 0:
            del data[at:]
        else:
            data[at] = data[at] + 1 & 255
    return bytes(data)


def mutate_frames(rng, recorded):
    list_ = [list(f) for f in recorded]
    for _ in range(rng.randint(1, 5)):
        i, j = rng.randrange(len(list_)), rng.randrange(len(list_))
        kind = rng.randrange(9)
        if kind == 0:
            list_[i], list_[j] = list_[j], list_[i]
        elif kind == 1 and len(list_) > 1:
            del list_[i]
        elif kind == 2:
            list_.insert(j, list(list_[i]))
        elif kind == 3:
            list_[i][1] = rng.randrange(12)
        elif kind == 4:
            list_[i][2] ^= 1 << rng.randrange(8)
        elif kind == 5:
            list_[i][3] = rng.choice((0, 1, 2, 3, 5, 7, 0x7fffffff, 0x80000001))
        elif kind == 6:
            list_[i][0] = rng.choice(ODD)
        elif kind == 7:
            list_[i][4] = mutate_bytes(rng, list_[i][4])
            list_[i][0] = len(list_[i][4])
        else:
            list_[i][4] = list_[j][4]
            list_[i][0] = len(list_[i][4])
        if not list_:
            break
    data = joined(list_)
    return mutate_bytes(rng, data) if rng.randrange(4) == 0 else data


class LyingCri(Cri):
    """One whose answers are damaged messages, each fourth, while it lies."""

    def __init__(self):
        self.lies, self.count, self.rng = False, 0, random.Random(SEED)
        super().__init__()

    def service(self, handler_call_details):
        handler = super().service(handler_call_details)
        if not handler or not handler.unary_unary:
            return handler

        def handle(data, context):
            try:
                return self.damage(handler.unary_unary(data, context))
            except KeyError as e:
                return context.abort(grpc.StatusCode.NOT_FOUND, 'no %s' % e)
        return grpc.unary_unary_rpc_method_handler(handle)

    def damage(self, answer):
        if not self.lies or self.rng.randrange(4):
            return answer
        self.count += 1
        return mutate_bytes(self.rng, answer or UNKNOWN)

    def tell(self, ctr, kind, more=b''):
        self.events.put(self.damage(API.ContainerEvent(container_id=ctr, type=kind).SerializeToString()))


@pytest.fixture
def runtime():
    with LyingCri() as r:
        yield r


@pytest.fixture
def bridge(runtime):
    with Bridge(runtime) as b:
        with Judge(b.nri_socket):
            yield b
        text = b.log.read_text()
        assert 'Sanitizer' not in text and 'runtime error' not in text, text


def life(client):
    """Each policed call."""
    pod, ctr = client.run('p', 1000)
    request = API.UpdateRequest(container_id=ctr)
    request.linux.cpu_shares = 512
    client.call('UpdateContainerResources', request)
    for method in ('StopContainer', 'RemoveContainer'):
        client.call(method, API.ContainerRequest(container_id=ctr))
    client.remove(pod)


def recorded(runtime, bridge):
    """A client's frames."""
    relay = Relay(runtime.dir / 'recorded.sock', bridge.socket)
    with grpc.insecure_channel('unix:%s' % relay.path) as channel:
        client = Client(bridge)
        client.call = lambda method, request, answer=API.Empty, **_: answer.FromString(
            channel.unary_unary(SERVICE + method)(request.SerializeToString(), timeout=ANSWER_S))
        life(client)
        for method in ('ListContainers', 'Nothing'):
            try:
                channel.unary_unary(SERVICE + method)(b'', timeout=ANSWER_S)
            except grpc.RpcError:
                pass
    assert relay.said.startswith(PREFACE)
    return frames(bytes(relay.said[len(PREFACE):]))


def say(path, data):
    """All of it, and whatever is answered."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.02)
        s.connect(str(path))
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:
            pass


def goes_on(bridge):
    assert bridge.process.poll() is None
    assert bridge.unary('Echo')(b'x', timeout=ANSWER_S) == b'x'


def test_a_kubelets_frames(runtime, bridge):
    rng = random.Random(SEED)
    said = recorded(runtime, bridge)
    assert len(said) > 20
    for i in range(MUTATIONS):
        # Few at a time: the first that is wrong ends a connection.
        at = rng.randrange(len(said) - 6)
        part = said[:2] + said[at:at + 6] if rng.randrange(3) else said
        say(bridge.socket, PREFACE + mutate_frames(rng, part))
        if i % CHECK_EVERY == 0:
            goes_on(bridge)
    goes_on(bridge)
    life(Client(bridge))


def test_messages(runtime, bridge):
    rng, client = random.Random(SEED), Client(bridge)
    pod, ctr = client.run('kept', 1000)
    config = client.request(pod, 1000)
    config.config.devices.add(container_path='/dev/d', host_path='/dev/d', permissions='rwm')
    run = API.RunPodSandboxRequest(config=dict(metadata=dict(name='p', uid='u'), labels={'a': 'b'}, annotations={'c': 'd'}))
    update = API.UpdateRequest(container_id=ctr, linux=config.config.linux.resources)
    messages = [(m, d.SerializeToString()) for m, d in (('RunPodSandbox', run), ('CreateContainer', config), ('UpdateContainerResources', update))]
    messages += [(m, API.ContainerRequest(container_id=ctr).SerializeToString()) for m in ('StartContainer', 'StopContainer')]
    messages += [(m, API.PodRequest(pod_sandbox_id=pod).SerializeToString()) for m in ('UpdatePodSandboxResources', 'StopPodSandbox')]
    for i in range(MUTATIONS):
        method, data = rng.choice(messages)
        try:
            bridge.unary(method)(mutate_bytes(rng, data), timeout=ANSWER_S)
        except grpc.RpcError as e:
            assert e.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED), e
        if i % CHECK_EVERY == 0:
            goes_on(bridge)
            for other in list(runtime.pods):
                if other != pod:
                    client.remove(other)
    goes_on(bridge)
    life(client)


# ---- a runtime's answers -----------------------------------------------------------------------------------------------------------

def frame(kind, flags, stream, payload=b''):
    return joined([[len(payload), kind, flags, stream, payload]])


class Plain:
    """A client that decodes no headers: what the bridge passes on of such a runtime ends gRPC's own with an illegal instruction. One call at a time."""

    def __init__(self, path):
        self.path, self.socket, self.stream, self.heard = str(path), None, 0, b''

    def connect(self):
        self.socket, self.stream, self.heard = socket.socket(socket.AF_UNIX), -1, b''
        self.socket.connect(self.path)
        self.socket.sendall(PREFACE + frame(4, 0, 0))

    def call(self, method, request, timeout=PATIENCE_S):
        """The message of the answer; None: there is none."""
        try:
            if not self.socket:
                self.connect()
            self.stream += 2
            fields = (':method', 'POST'), (':scheme', 'http'), (':path', SERVICE + method), (':authority', 'localhost'), ('content-type', 'application/grpc'), ('te', 'trailers')
            headers = b''.join(b'\x10' + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in fields)
            message = b'\0' + len(request).to_bytes(4, 'big') + request
            self.socket.sendall(frame(1, 4, self.stream, headers) + frame(0, 1, self.stream, message))
            self.socket.settimeout(timeout)
            return self.answer(bytearray())
        except OSError:
            if self.socket:
                self.socket.close()
            self.socket = None
            return None

    def answer(self, data):
        while True:
            while len(self.heard) < 9 or len(self.heard) < 9 + int.from_bytes(self.heard[:3], 'big'):
                more = self.socket.recv(65536)
                if not more:
                    raise OSError('closed')
                self.heard += more
            (n, kind, flags, stream, payload), = frames(self.heard[:9 + int.from_bytes(self.heard[:3], 'big')])
            self.heard = self.heard[9 + n:]
            if kind == 4 and not flags & 1:
                self.socket.sendall(frame(4, 1, 0))
            elif kind == 0:
                self.socket.sendall(frame(8, 0, 0, n.to_bytes(4, 'big')) if n else b'')
                data += payload if stream == self.stream else b''
            if kind == 3 and stream == self.stream:
                return None
            if kind in (0, 1) and flags & 1 and stream == self.stream:
                return bytes(data[5:]) if len(data) >= 5 else None


def read_as(answer, data):
    try:
        return answer.FromString(data or b'')
    except DecodeError:
        return answer()


def attempt_life(client, n):
    """All of it, whatever is answered."""
    config = API.PodConfig(metadata=dict(name='p%d' % n, uid='u%d' % n))
    made = client.call('RunPodSandbox', API.RunPodSandboxRequest(config=config).SerializeToString())
    pod = read_as(API.RunPodSandboxResponse, made).pod_sandbox_id
    made = client.call('CreateContainer', Client.request(pod, 1000).SerializeToString())
    ctr = API.ContainerRequest(container_id=read_as(API.CreateContainerResponse, made).container_id)
    update = API.UpdateRequest(container_id=ctr.container_id)
    update.linux.cpu_shares = 512
    for method, request in (('StartContainer', ctr), ('UpdateContainerResources', update), ('ListContainers', API.Empty()), ('StopContainer', ctr),
                            ('RemoveContainer', ctr), ('StopPodSandbox', API.PodRequest(pod_sandbox_id=pod)),
                            ('RemovePodSandbox', API.PodRequest(pod_sandbox_id=pod))):
        client.call(method, request.SerializeToString())


def talk_until(bridge, done, also=lambda: None):
    """Lives, several at once, and readers of events that come and go."""
    over = threading.Event()

    def talk(i):
        client, reader = Plain(bridge.socket), Plain(bridge.socket)
        for n in range(i, 1 << 30, TALKERS):
            if over.is_set():
                return
            attempt_life(client, n)
            if n % 10 == 0:
                reader.call('GetContainerEvents', b'', timeout=0.01)
    talkers = [threading.Thread(target=talk, args=(i,)) for i in range(TALKERS)]
    for t in talkers:
        t.start()
    try:
        while not done() and bridge.process.poll() is None:
            also()
            time.sleep(0.01)
    finally:
        over.set()
        for t in talkers:
            t.join()
    assert bridge.process.poll() is None, bridge.log.read_text()[-4000:]


def is_clean(bridge):
    text = bridge.log.read_text()
    assert 'Sanitizer' not in text and 'runtime error' not in text, text


@contextlib.contextmanager
def judges(bridge):
    """A plugin that is there again at once when the bridge has dropped it: it does so whenever the runtime was away."""
    log, over = bridge.dir / 'judges.log', threading.Event()

    def again():
        with open(log, 'w', encoding='utf-8') as to:
            while not over.is_set():
                judge = subprocess.Popen([str(BUILD / 'test/judge/judge'), '-p', '3', str(bridge.nri_socket)], stdout=to, stderr=subprocess.DEVNULL)
                while judge.poll() is None and not over.wait(0.002):
                    pass
                judge.kill()
                judge.wait()
    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield log
    finally:
        over.set()
        thread.join()


def test_a_runtimes_frames(runtime):
    liar = Liar(runtime.dir / 'liar.sock', runtime.socket)
    with Bridge(types.SimpleNamespace(dir=runtime.dir, socket=liar.path)) as bridge, judges(bridge) as log:
        rounds = itertools.count()
        # However slow the machine is: a plugin has been asked about some.
        talk_until(bridge, lambda: liar.count >= BATCHES and log.read_text().count('CreateContainer') > 3, lambda: next(rounds) % 50 or liar.cut())
        is_clean(bridge)
        again = bridge.log.read_text().count(PLACED) + 1
        liar.lies = False
        liar.cut()
        eventually(lambda: Plain(bridge.socket).call('Echo', b'x') == b'x')
        bridge.wait_log(PLACED, again)
        life(Client(bridge))
        # A runtime that lies may have refused the CPUs of a container.
        broken = [line for line in log.read_text().splitlines() if 'BROKEN' in line and 'does not show the CPUs' not in line]
        assert not broken, log.read_text()[-4000:]
    is_clean(bridge)


def test_a_runtimes_messages(runtime, tmp_path):
    runtime.events = queue.Queue()
    with Bridge(runtime) as bridge, contextlib.ExitStack() as context:
        daemon = Daemon(tmp_path, bridge.nri_socket).start()
        context.callback(daemon.kill)
        bridge.wait_log(PLACED)
        rounds, runtime.lies = itertools.count(), True

        def also():
            """Events, true and not; and all is told anew now and then."""
            runtime.tell(runtime.rng.choice(list(runtime.ctrs) or ['x']), runtime.rng.randrange(4))
            if next(rounds) % 50 == 49:
                daemon.kill()
                daemon.start()
        talk_until(bridge, lambda: runtime.count >= ANSWERS, also)
        is_clean(bridge)
        again = bridge.log.read_text().count(PLACED) + 1
        runtime.lies = False
        daemon.kill()
        daemon.start()
        bridge.wait_log(PLACED, again)
        all_is_free(runtime, Client(bridge), daemon)
    is_clean(bridge)
