# SPDX-License-Identifier: Apache-2.0
"""nri-rp-agent between a kubelet and a daemon that both do what the test says: the kubelet is a real gRPC server, the daemon a few lines of
ttrpc."""
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import grpc
import pytest

from kubelet import AGENT, DISABLED, Agent, Kubelet, Odd, messages
from simnode import eventually

TTRPC, LINK = messages('proto', 'ttrpc'), messages('proto', 'agent')
REQUEST, RESPONSE = 1, 2
ANSWER_S = 60
NOT_FOUND, EXHAUSTED, DEADLINE, UNAVAILABLE, DATA_LOSS, UNIMPLEMENTED, INVALID = 5, 8, 4, 14, 15, 12, 3


class Failed(Exception):
    pass


class Daemon:
    """The socket that an agent connects to, and the calls that come over it the other way."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-link-'))
        self.socket = self.dir / 'agent.sock'
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(ANSWER_S)
        self.listener.bind(str(self.socket))
        self.listener.listen()
        self.connection, self.stream, self.waiting = None, 1, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hang_up()
        self.listener.close()
        shutil.rmtree(self.dir)

    def hang_up(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def accept(self):
        """The next agent, which has to register; what it says."""
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(ANSWER_S)
        kind, stream, body = self._receive()
        assert kind == REQUEST
        request = TTRPC.Request.FromString(body)
        assert (request.service, request.method) == ('nri-rp.v1.AgentHost', 'Register')
        self._send(RESPONSE, stream, TTRPC.Response(payload=LINK.RegisterResponse(version='test').SerializeToString()))
        return LINK.RegisterRequest.FromString(request.payload)

    def _send(self, kind, stream, message):
        body = message.SerializeToString()
        self.connection.sendall(struct.pack('>IIBB', len(body), stream, kind, 0) + body)

    def _read(self, n):
        data = b''
        while len(data) < n:
            piece = self.connection.recv(n - len(data))
            assert piece, 'the agent has closed the connection'
            data += piece
        return data

    def _receive(self):
        length, stream, kind, _ = struct.unpack('>IIBB', self._read(10))
        return kind, stream, self._read(length)

    def ask(self, method, message, service='nri-rp.v1.Agent'):
        """Begins a call."""
        stream, self.stream = self.stream, self.stream + 2
        payload = message if isinstance(message, bytes) else message.SerializeToString()
        self._send(REQUEST, stream, TTRPC.Request(service=service, method=method, payload=payload))
        return stream

    def answer(self, stream):
        """Its answer, as bytes; Failed(code, text)."""
        while stream not in self.waiting:
            kind, answered, body = self._receive()
            if kind == REQUEST:  # what it tells besides
                self._send(RESPONSE, answered, TTRPC.Response())
                continue
            assert kind == RESPONSE
            self.waiting[answered] = TTRPC.Response.FromString(body)
        response = self.waiting.pop(stream)
        if response.status.code:
            raise Failed(response.status.code, response.status.message)
        return response.payload

    def get(self, pod):
        return shape(LINK.PodDevices.FromString(self.answer(self.ask('GetPod', pod_request(pod)))))

    def list(self):
        return {p.namespace + '/' + p.name: shape(p)
                for p in LINK.ListResponse.FromString(self.answer(self.ask('ListPods', b''))).pods}

    def forget(self, pod):
        assert self.answer(self.ask('ForgetPod', pod_request(pod))) == b''


def pod_request(pod):
    namespace, _, name = pod.partition('/')
    return LINK.PodRequest(namespace=namespace, name=name)


def shape(pod):
    return {c.name: {d.resource: list(d.nodes) for d in c.devices} for c in pod.containers}


@pytest.fixture
def daemon():
    with Daemon() as d:
        yield d


@pytest.fixture
def kubelet():
    with Kubelet() as k:
        yield k


@pytest.fixture
def agent(daemon, kubelet):
    with Agent(daemon.socket, kubelet.socket) as a:
        daemon.accept()
        yield a


def failure(call, *args):
    with pytest.raises(Failed) as e:
        call(*args)
    return e.value.args


def in_time(call, *args):
    """Repeats a call that fails for the time limit of the kubelet's answer: a large answer takes long on a loaded machine."""
    end = time.monotonic() + ANSWER_S
    while True:
        try:
            return call(*args)
        except Failed as e:
            if e.args[0] != DEADLINE or time.monotonic() > end:
                raise


def failure_or(call):
    """What it gives; None where it fails."""
    try:
        return call()
    except Failed:
        return None


def test_what_it_says_of_itself(daemon, kubelet):
    with Agent(daemon.socket, kubelet.socket):
        hello = daemon.accept()
        version = subprocess.run([str(AGENT), '--version'], capture_output=True, text=True, check=True).stdout
        assert version == 'nri-rp-agent %s\n' % hello.version
        assert list(hello.features) == ['pod-resources']


def test_devices_of_a_pod(daemon, kubelet, agent):
    kubelet.pod('default/web', app={'example.com/nic': [[1], [3]], 'example.com/gpu': [2], 'example.com/none': []}, side={})
    assert daemon.get('default/web') == {'app': {'example.com/gpu': [2], 'example.com/nic': [1, 3]}}
    kubelet.pod('default/bare', app={})
    assert daemon.get('default/bare') == {}
    assert kubelet.calls == [('Get', 'default/web'), ('Get', 'default/bare')]


def test_all_pods(daemon, kubelet, agent):
    kubelet.pod('a/x', c={'example.com/nic': [0]})
    kubelet.pod('b/x', c={'example.com/nic': [1]}, d={'example.com/gpu': [3]})
    kubelet.pod('b/bare', c={})
    assert daemon.list() == {'a/x': {'c': {'example.com/nic': [0]}}, 'b/x': {'c': {'example.com/nic': [1]}, 'd': {'example.com/gpu': [3]}}}


def test_a_pod_that_the_kubelet_does_not_know(daemon, kubelet, agent):
    code, text = failure(daemon.get, 'default/web')
    assert code == NOT_FOUND
    assert 'pod web in namespace default not found' in text


@pytest.mark.parametrize('get', ['disabled', 'unimplemented'])
def test_kubelets_without_get_are_asked_for_lists(daemon, get):
    with Kubelet(get=get) as kubelet, Agent(daemon.socket, kubelet.socket):
        daemon.accept()
        kubelet.pod('default/a', app={'example.com/nic': [1]})
        kubelet.pod('default/b', app={'example.com/nic': [2]})
        assert daemon.get('default/a') == {'app': {'example.com/nic': [1]}}
        # The list answers for who comes with it, and Get is not tried again.
        assert daemon.get('default/b') == {'app': {'example.com/nic': [2]}}
        assert [c[0] for c in kubelet.calls if c[0] == 'List'] == ['List']
        assert kubelet.count('Get') <= 1
        # What is not in it is asked for anew.
        kubelet.pod('default/c', app={'example.com/nic': [3]})
        assert daemon.get('default/c') == {'app': {'example.com/nic': [3]}}
        assert kubelet.count('List') == 2
        code, text = failure(daemon.get, 'default/d')
        assert (code, 'does not list pod default/d' in text) == (NOT_FOUND, True)


def test_another_kubelet_may_have_get(daemon):
    with Kubelet(get='disabled') as kubelet, Agent(daemon.socket, kubelet.socket):
        daemon.accept()
        kubelet.pod('default/a', app={'example.com/nic': [1]})
        kubelet.pod('default/b', app={'example.com/nic': [1]})
        assert daemon.get('default/a') == {'app': {'example.com/nic': [1]}}
        kubelet.stop()
        kubelet.get = True
        kubelet.start()
        eventually(lambda: failure_or(daemon.list))  # the old connection has ended by now
        kubelet.calls.clear()
        kubelet.pod('default/b', app={'example.com/nic': [2]})
        assert daemon.get('default/b') == {'app': {'example.com/nic': [2]}}
        assert kubelet.calls == [('Get', 'default/b')]


def test_a_pod_that_comes_back_under_its_name_is_not_taken_for_the_old_one(daemon):
    with Kubelet(get='disabled') as kubelet, Agent(daemon.socket, kubelet.socket):
        daemon.accept()
        kubelet.pod('default/a-0', app={'example.com/nic': [1]})
        kubelet.pod('default/b', app={})
        assert daemon.get('default/a-0') == {'app': {'example.com/nic': [1]}}
        daemon.forget('default/a-0')
        # The kubelet still lists the old one …
        kubelet.pod('default/c', app={})
        assert daemon.get('default/c') == {}
        # … when the new one comes.
        kubelet.pod('default/a-0', app={'example.com/nic': [3]})
        assert daemon.get('default/a-0') == {'app': {'example.com/nic': [3]}}
        assert kubelet.count('List') == 3


def test_who_comes_while_a_list_is_made_gets_the_next_one(daemon):
    with Kubelet(get='disabled') as kubelet, Agent(daemon.socket, kubelet.socket):
        daemon.accept()
        kubelet.pod('default/a', app={})
        kubelet.pod('default/b', app={'example.com/nic': [1]})

        def change(method, _, __):
            if method == 'List' and kubelet.count('List') == 1:
                kubelet.first = [daemon.ask('GetPod', pod_request('default/b'))]
                daemon.ask('Nothing', b'')  # what comes before its answer has been read

        assert daemon.get('default/a') == {}
        kubelet.before = change
        kubelet.calls.clear()
        all_pods = daemon.ask('ListPods', b'')
        assert LINK.ListResponse.FromString(daemon.answer(all_pods)).pods[0].name == 'b'
        assert shape(LINK.PodDevices.FromString(daemon.answer(kubelet.first[0]))) == {'app': {'example.com/nic': [1]}}


def test_a_kubelet_that_is_not_there_and_then_is(daemon, kubelet, agent):
    kubelet.stop()
    code, text = failure(daemon.get, 'default/web')
    assert code == UNAVAILABLE
    assert str(kubelet.socket) in text and 'No such file' in text
    kubelet.start()
    kubelet.pod('default/web', app={'example.com/nic': [1]})
    assert daemon.get('default/web') == {'app': {'example.com/nic': [1]}}


def test_a_kubelet_that_dies_with_a_call_under_way(daemon, kubelet, agent):
    def die(method, request, context):
        kubelet.server.stop(None)
        context.abort(1, '')

    kubelet.before = die
    code, _ = failure(daemon.get, 'default/web')
    assert code in (UNAVAILABLE, NOT_FOUND)
    kubelet.stop()
    kubelet.before = lambda *_: None
    kubelet.start()
    kubelet.pod('default/web', app={'example.com/nic': [1]})
    assert daemon.get('default/web') == {'app': {'example.com/nic': [1]}}


def test_a_kubelet_that_never_answers(daemon):
    with Odd(lambda connection: None) as odd, Agent(daemon.socket, odd.socket):
        daemon.accept()
        code, text = failure(daemon.get, 'default/web')
        assert (code, text) == (DEADLINE, "the kubelet's Get: no reply in time")
        code, text = failure(daemon.list)
        assert (code, text) == (DEADLINE, "the kubelet's List: no reply in time")


def test_what_does_not_speak_http2(daemon):
    with Odd(lambda connection: connection.sendall(b'HTTP/1.1 400 Bad Request\r\n\r\n')) as odd, Agent(daemon.socket, odd.socket):
        daemon.accept()
        code, text = failure(daemon.get, 'default/web')
        assert code == DATA_LOSS
        assert 'violates HTTP/2' in text


def test_what_closes_at_once(daemon):
    with Odd(lambda connection: connection.close()) as odd, Agent(daemon.socket, odd.socket):
        daemon.accept()
        assert failure(daemon.get, 'default/web')[0] == UNAVAILABLE
        assert failure(daemon.get, 'default/web')[0] == UNAVAILABLE


def test_a_kubelet_that_notices_the_time_limit_first(daemon, kubelet, agent):
    kubelet.before = lambda method, request, context: context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, 'Deadline Exceeded')
    kubelet.pod('default/web', app={'example.com/nic': [1]})
    assert failure(daemon.get, 'default/web') == (DEADLINE, "the kubelet's Get: no reply in time")
    assert failure(daemon.list) == (DEADLINE, "the kubelet's List: no reply in time")


def test_an_answer_over_16_mib(daemon):
    with Kubelet(large=17 << 20) as kubelet, Agent(daemon.socket, kubelet.socket):
        daemon.accept()
        kubelet.pod('default/web', app={'example.com/nic': [1]})
        code, text = failure(in_time, daemon.get, 'default/web')
        assert code == EXHAUSTED
        assert 'at most 16777216 are accepted' in text
        # The connection is as good as before.
        kubelet.large = 0
        assert in_time(daemon.get, 'default/web') == {'app': {'example.com/nic': [1]}}


def test_an_answer_of_15_mib(daemon):
    with Kubelet(large=15 << 20) as kubelet, Agent(daemon.socket, kubelet.socket):
        daemon.accept()
        kubelet.pod('default/web', app={'example.com/nic': [1]})
        assert in_time(daemon.get, 'default/web') == {'app': {'example.com/nic': [1]}}


def test_requests_that_make_no_sense(daemon, kubelet, agent):
    kubelet.pod('default/web', app={})
    assert failure(lambda: daemon.answer(daemon.ask('GetPod', b'\xff\xff')))[0] == INVALID
    assert failure(lambda: daemon.answer(daemon.ask('Nothing', b'')))[0] == UNIMPLEMENTED
    assert failure(lambda: daemon.answer(daemon.ask('GetPod', b'', service='some.Other')))[0] == UNIMPLEMENTED
    assert failure(daemon.get, 'default/' + 'x' * 300)[0] == INVALID
    assert daemon.get('default/web') == {}
    assert kubelet.count() == 1


def test_it_comes_back_to_a_daemon_that_was_away(daemon, kubelet, agent):
    daemon.hang_up()
    daemon.accept()
    kubelet.pod('default/web', app={})
    assert daemon.get('default/web') == {}
    daemon.hang_up()
    eventually(lambda: agent.read_log().count('cannot connect to nri-rpd') == 2)
    daemon.accept()
    assert daemon.get('default/web') == {}


def test_it_stops_with_calls_under_way(daemon):
    with Odd(lambda connection: None) as odd, Agent(daemon.socket, odd.socket) as agent:
        daemon.accept()
        daemon.ask('GetPod', pod_request('default/web'))
        daemon.ask('ListPods', b'')
        assert agent.stop() == 0


def test_sockets_of_others_are_not_trusted(daemon, kubelet):
    daemon.dir.chmod(0o777)
    with Agent(daemon.socket, kubelet.socket) as agent:
        eventually(lambda: 'is writable by other users' in agent.read_log())
        kubelet.dir.chmod(0o777)
        daemon.dir.chmod(0o700)
        daemon.accept()
        code, text = failure(daemon.get, 'default/web')
        assert (code, 'is writable by other users' in text) == (UNAVAILABLE, True)


@pytest.mark.parametrize('args, says', [(['--bogus'], 'unrecognized'), (['more'], 'unexpected argument'), (['--log-level', 'loud'], 'expected error')])
def test_wrong_usage(args, says):
    done = subprocess.run([str(AGENT), *args], capture_output=True, text=True, check=False)
    assert (done.returncode, says in done.stderr) == (2, True)


def test_help_names_every_option():
    text = subprocess.run([str(AGENT), '--help'], capture_output=True, text=True, check=True).stdout
    assert all(o in text for o in ('--daemon-socket', '--kubelet-socket', '--log-level', '--version', '--help'))
    assert DISABLED not in text
