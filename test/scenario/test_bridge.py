# SPDX-License-Identifier: Apache-2.0
"""nri-rp-bridge between a real gRPC client and a real gRPC server: what passes is what would have come without it."""
import os
import queue
import re
import socket
import subprocess
import time

import grpc
import pytest

from criproxy import BUILD, IMAGES, MANY, SERVICE, Bridge, Runtime

ANSWER_S = 60
CALLS_MAX = 1000


@pytest.fixture
def runtime():
    with Runtime() as r:
        yield r


@pytest.fixture
def bridge(runtime):
    with Bridge(runtime) as b:
        yield b


def failed(call):
    with pytest.raises(grpc.RpcError) as e:
        call()
    return e.value


def direct(runtime):
    return grpc.insecure_channel('unix:%s' % runtime.socket)


def test_messages_metadata_and_trailers_pass_as_they_are(runtime, bridge):
    for data in (b'', b'\0', bytes(range(256)) * 40, os.urandom(3 << 20)):
        assert bridge.unary('Echo')(data, timeout=ANSWER_S) == data
    metadata = (('x-a', '1'), ('x-a', '2'), ('x-bytes-bin', b'\0\xff'))
    answers = []
    for channel in (direct(runtime), bridge.channel):
        _, call = channel.unary_unary(SERVICE + 'Echo').with_call(b'x', metadata=metadata, timeout=ANSWER_S)
        answers.append((call.initial_metadata(), call.trailing_metadata(), call.code()))
    assert answers[0] == answers[1] and answers[0][0] == metadata


def test_both_versions_and_unknown_methods(runtime, bridge):
    assert bridge.unary('Echo', '/runtime.v1alpha2.RuntimeService/')(b'x', timeout=ANSWER_S) == b'x'
    assert runtime.calls == ['/runtime.v1alpha2.RuntimeService/Echo']
    e = [failed(lambda c=c: c.unary_unary(SERVICE + 'Nothing')(b'', timeout=ANSWER_S)) for c in (direct(runtime), bridge.channel)]
    assert e[0].code() == e[1].code() == grpc.StatusCode.UNIMPLEMENTED and e[0].details() == e[1].details()


def test_a_client_whose_authority_is_a_path(runtime, bridge):
    """As the kubelets of some years ago have it."""
    with grpc.insecure_channel('unix:%s' % bridge.socket, options=[('grpc.default_authority', str(bridge.socket))]) as channel:
        assert channel.unary_unary(SERVICE + 'Echo')(b'x', timeout=ANSWER_S) == b'x'


def test_errors_pass_with_text_and_trailers(runtime, bridge):
    e = [failed(lambda c=c: c.unary_unary(SERVICE + 'Fail')(b'pod', timeout=ANSWER_S)) for c in (direct(runtime), bridge.channel)]
    assert e[1].code() == grpc.StatusCode.NOT_FOUND and e[1].details() == 'no "pod", nö 100%'
    assert [(x.code(), x.details(), x.trailing_metadata()) for x in e][0] == (e[1].code(), e[1].details(), e[1].trailing_metadata())


def test_streams_in_both_directions(bridge):
    said = queue.Queue()
    answers = bridge.chat(iter(said.get, None))
    for word in (b'ab', b'cd', b''):
        said.put(word)
        assert next(answers) == word[::-1]
    said.put(None)
    assert list(answers) == []


def test_a_slow_reader_slows_the_runtime_and_nobody_else(runtime, bridge):
    piece = b'x' * 100000
    flood = bridge.stream('Flood')(piece)
    assert next(flood) == piece
    # Until nothing more is taken from the runtime; what has gone meanwhile fits into windows and sockets.
    before = -1
    while before != runtime.sent:
        before = runtime.sent
        time.sleep(0.3)
        assert bridge.unary('Echo')(b'x', timeout=ANSWER_S) == b'x'
    assert runtime.sent < MANY
    assert sum(1 for _ in flood) == MANY - 1


def test_cancelling_and_deadlines_reach_the_runtime(runtime, bridge):
    call = bridge.unary('Hold').future(b'x')
    assert runtime.waiting.acquire(timeout=ANSWER_S)
    call.cancel()
    assert runtime.cancelled.acquire(timeout=ANSWER_S)
    e = failed(lambda: bridge.unary('Hold')(b'x', timeout=0.2))
    assert e.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert runtime.cancelled.acquire(timeout=ANSWER_S)


def test_many_calls_that_hang_harm_nobody(bridge):
    held = [bridge.unary('Hold').future(b'x') for _ in range(CALLS_MAX - 1)]
    other = bridge.connect()
    e = failed(lambda: other.unary_unary(SERVICE + 'Nothing')(b'', timeout=ANSWER_S))
    assert e.code() == grpc.StatusCode.UNIMPLEMENTED
    for call in held:
        call.cancel()
    assert bridge.unary('Fail').future(b'x').code() == grpc.StatusCode.NOT_FOUND


def test_one_connection_does_not_take_all_calls(bridge):
    held = [bridge.unary('Hold').future(b'x') for _ in range(CALLS_MAX)]
    other = bridge.connect()
    for _ in range(3):
        e = failed(lambda: other.unary_unary(SERVICE + 'Nothing')(b'', timeout=ANSWER_S))
        assert e.code() == grpc.StatusCode.UNIMPLEMENTED
    for call in held:
        call.cancel()


def test_clients_that_say_nothing(bridge):
    """As many as there may be make room for one that asks, and are closed after ten seconds."""
    silent = []
    for i in range(100):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.connect(str(bridge.socket))
        s.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'[:i % 24])
        silent.append(s)
    other = bridge.connect()
    assert other.unary_unary(SERVICE + 'Echo')(b'x', timeout=ANSWER_S) == b'x'
    end = time.monotonic() + 30
    for s in silent:
        s.settimeout(max(0.1, end - time.monotonic()))
        while s.recv(4096):
            pass
        s.close()
    assert other.unary_unary(SERVICE + 'Echo')(b'y', timeout=ANSWER_S) == b'y'


def test_image_calls_go_to_their_own_socket(runtime):
    with Runtime() as images, Bridge(runtime, image=images) as bridge:
        assert bridge.unary('Echo', IMAGES)(b'x', timeout=ANSWER_S) == b'x'
        assert bridge.unary('Echo')(b'y', timeout=ANSWER_S) == b'y'
        assert images.calls == [IMAGES + 'Echo'] and runtime.calls == [SERVICE + 'Echo']


def test_a_runtime_that_is_away_is_told_at_once_and_found_again(runtime, bridge):
    held, stream = bridge.unary('Hold').future(b'x'), bridge.stream('Break')(b'y')
    assert next(stream) == b'y'
    assert runtime.waiting.acquire(timeout=ANSWER_S) and runtime.waiting.acquire(timeout=ANSWER_S)
    runtime.stop()
    assert held.code() == grpc.StatusCode.UNAVAILABLE
    assert failed(lambda: next(stream)).code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    e = failed(lambda: bridge.unary('Echo')(b'', timeout=ANSWER_S))
    assert e.code() == grpc.StatusCode.UNAVAILABLE and str(runtime.socket) in e.details()
    bridge.wait_log('the runtime is not reachable')
    runtime.start()
    bridge.wait_log('the runtime is back')
    assert bridge.unary('Echo')(b'x', timeout=ANSWER_S) == b'x'


def test_a_bridge_that_is_killed_is_as_before_when_it_is_back(bridge):
    assert bridge.unary('Echo')(b'x', timeout=ANSWER_S) == b'x'
    for _ in range(5):
        bridge.process.kill()
        bridge.process.wait()
        bridge.log.unlink()
        bridge.start()
        assert bridge.unary('Echo')(b'x', timeout=ANSWER_S) == b'x'


def test_an_inherited_socket_makes_connections_wait(runtime):
    """As systemd does it: the socket is there before the bridge."""
    path = runtime.dir / 'inherited.sock'
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    call = grpc.insecure_channel('unix:%s' % path).unary_unary(SERVICE + 'Echo').future(b'x', timeout=ANSWER_S, wait_for_ready=True)
    script = 'exec 3<&%d; LISTEN_FDS=1 LISTEN_PID=$$ exec %s --listen %s --runtime %s --nri-socket %s' % (
        listener.fileno(), BUILD / 'bin/nri-rp-bridge', path, runtime.socket, runtime.dir / 'nri.sock')
    with subprocess.Popen(['bash', '-c', script], pass_fds=[listener.fileno()], stderr=subprocess.PIPE) as process:
        assert call.result() == b'x'
        process.terminate()
        _, said = process.communicate(timeout=ANSWER_S)
        assert process.returncode == 0, said
    assert path.exists()


def test_traces(runtime):
    message = b'\x0a\x03abc\x12\x04\x0a\x02\x01\x02'
    with Bridge(runtime, '--trace', 'Echo=full', '--trace', 'F*=name', '--trace', 'Pull*=full', '--trace', '*') as bridge:
        bridge.unary('Echo')(message, timeout=ANSWER_S)
        failed(lambda: bridge.unary('Fail')(b'x', timeout=ANSWER_S))
        failed(lambda: bridge.unary('PullImage', IMAGES)(b'\x12\x06secret', timeout=ANSWER_S))
        failed(lambda: bridge.unary('Nothing')(b'', timeout=ANSWER_S))
        bridge.wait_log('Nothing: status 12')
        text = bridge.log.read_text()
    assert re.search(r'trace: Echo: status 0, [\d.]+ ms, 16 bytes of request, 16 of reply', text)
    assert text.count('{1: "abc", 2: {1: (2 bytes)}}') == 2
    assert re.search(r'trace: Fail: status 5, [\d.]+ ms\n', text) and 'Fail <-' not in text
    assert 'PullImage <- {2: (hidden)}' in text and 'secret' not in text


@pytest.mark.parametrize('words, said', [
    (['--listen', 'x.sock'], '--listen x.sock: expected an absolute path'), (['--trace', '=full'], 'expected a method'),
    (['--trace', 'X=loud'], 'expected a method'), (['--trace', 'X'] * 33, '32 times'), (['--log-level', 'x'], 'expected error'),
], ids=lambda v: ' '.join(v)[:20] if isinstance(v, list) else '')
def test_wrong_usage(words, said):
    done = subprocess.run([str(BUILD / 'bin/nri-rp-bridge'), *words], capture_output=True, text=True, timeout=ANSWER_S)
    assert done.returncode == 2 and said in done.stderr


def test_names_of_cri_resource_manager(runtime):
    with Bridge(runtime) as bridge:
        bridge.stop()
        words = ['--relay-socket', bridge.socket, '--runtime-socket', runtime.socket, '--image-socket', 'unix://%s' % runtime.socket,
                 '--nri-socket', bridge.nri_socket]
        with open(bridge.log, 'a', encoding='utf-8') as log:
            bridge.process = subprocess.Popen([str(BUILD / 'bin/nri-rp-bridge'), *map(str, words)], stderr=log)
        bridge.wait_log('between ', 2)
        bridge.channel = bridge.connect()
        assert bridge.unary('Echo')(b'x', timeout=ANSWER_S) == b'x'
        assert 'hint: --listen is the name of this option' in bridge.log.read_text()
