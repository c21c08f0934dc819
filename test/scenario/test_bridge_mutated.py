# SPDX-License-Identifier: Apache-2.0
"""Random damage to what a kubelet says to nri-rp-bridge: to frames of HTTP/2 as a real client sent them, and to messages of CRI. The bridge has to go on, and calls of others with it. `MUTATIONS=100000` does many; with NRI_RP_BUILD=build/sanitized errors
of memory count, too.
"""
import os
import random
import socket
import threading

import grpc
import pytest

from criproxy import SERVICE, Bridge, Judge
from test_bridge_police import ANSWER_S, API, Client, Cri

MUTATIONS = int(os.environ.get('MUTATIONS', 100))
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
        try:
            while data := a.recv(65536):
                kept += data
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
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


@pytest.fixture
def runtime():
    with Cri() as r:
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
