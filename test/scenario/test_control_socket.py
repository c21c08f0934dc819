# SPDX-License-Identifier: Apache-2.0
"""The control socket and those who misuse it: whatever comes, the runtime is served as before, and so is the next client."""
import contextlib
import json
import os
import pathlib
import random
import socket
import stat

import pytest

from operator_tools import (CTL, FAILED, NOBODY, OK, REQUEST, RESPONSE, SERVICE, Caller, call_frame, control_request, ctl, ctl_json, field,
                            frame, run_as_nobody)
from simnode import STATIC, ctr, eventually

CLIENTS_MAX, REQUEST_MAX, ARGS_MAX, ARG_MAX, PIECE_MAX = 32, 64 << 10, 16, 4096, 1 << 20
INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED = 3, 5, 12
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='takes root')


@pytest.fixture
def served(node):
    """The node, and in the end a look at whether both the runtime and a client are still served."""
    pid = node.status()['pid']
    yield node
    node.create('last', ctr('one', '2', '64Mi'))
    node.expect('count(cpus(last/one)) == 2')
    assert ctl_json(node, 'explain', 'last/one')['exclusive'] == node.container('last/one')['cpus']
    assert node.status()['pid'] == pid


# ---- bytes ----

GARBAGE = {
    'text': b'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    'zeros': bytes(4096),
    'ones': b'\xff' * 4096,
    'too long': frame(1, REQUEST, b'', length=(4 << 20) + 1),
    'longer than a request': frame(1, REQUEST, b'', length=REQUEST_MAX + 4096),
    'endless': frame(1, REQUEST, b'', length=0xffffffff),
    'an answer nobody asked for': frame(1, RESPONSE, b''),
    'an even stream': frame(2, REQUEST, field(1, SERVICE) + field(2, 'Status')),
    'stream 0': frame(0, REQUEST, field(1, SERVICE) + field(2, 'Status')),
    'an unknown type': frame(1, 9, b'hello'),
    'no request': frame(1, REQUEST, b'\xff\xff\xff\xff'),
    'nothing in it': frame(1, REQUEST, b''),
    'data of no stream': frame(7, 3, b'data'),
    'a length that lies': frame(1, REQUEST, b'\x0a\x7fshort'),
}


@pytest.mark.parametrize('data', GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage(served, data):
    """An answer with an error, or the end of the connection; of this one alone."""
    with Caller(served) as good, Caller(served) as bad:
        bad.send(data)
        bad.socket.shutdown(socket.SHUT_WR)
        assert bad.closed()
        assert good.call('Version').code == 0


def test_random_bytes(served):
    chance = random.Random(20261122)
    for _ in range(60):
        with Caller(served) as c:
            data = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))
            if chance.random() < 0.6:
                data = frame(chance.choice((1, 3, 2 ** 31)), chance.choice((1, 1, 2, 3)), data)
            c.send(data)
            c.socket.shutdown(socket.SHUT_WR)
            c.closed()


def test_requests_that_were_changed(served):
    """One byte of a good request is another."""
    good = call_frame(1, 'Explain', control_request('default/a/b', after=3, wait_ms=1, flags=2, rest=1))
    for at in range(len(good)):
        with Caller(served) as c:
            c.send(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1:])
            c.socket.shutdown(socket.SHUT_WR)
            c.closed()


@pytest.mark.parametrize('cut', [1, 4, 9, 10, 11, 25, -1])
def test_half_a_frame(served, cut):
    """It is waited for, and nobody else is kept waiting; the other half makes it whole."""
    whole = call_frame(1, 'Version')
    with Caller(served) as slow, Caller(served) as other:
        slow.send(whole[:cut])
        assert other.call('Version').code == 0
        served.create('p', ctr('c', '1', '64Mi'))
        slow.send(whole[cut:])
        assert slow.answer().code == 0


def test_byte_by_byte(served):
    with Caller(served) as c:
        for byte in call_frame(1, 'Pods', control_request('x')):
            c.send(bytes([byte]))
        assert json.loads(c.answer().json) == []


def test_many_requests_at_once(served):
    """Each is answered, on its own stream."""
    with Caller(served) as c:
        streams = [c.ask(method) for method in ('Status', 'Pods', 'Zones', 'Version', 'Modules') * 10]
        answers = [c.answer() for _ in streams]
    assert sorted(a.stream for a in answers) == streams
    assert all(a.code == 0 and json.loads(a.json) is not None for a in answers)


def test_gone_before_the_answer(served):
    for method in ('Status', 'Events', 'Reload', 'Containers', 'Doctor'):
        for _ in range(10):
            with Caller(served) as c, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                c.ask(method)  # in vain while those who have gone still take up the places
    eventually(lambda: 'control.sock, 1 of %d clients' % CLIENTS_MAX in ctl(served, 'doctor').out)


# ---- requests ----

@pytest.mark.parametrize('service, method', [
    (SERVICE, 'Shutdown'), (SERVICE, ''), (SERVICE, 'status'), (SERVICE, 'Status\0'), ('nri-rp.v2.Control', 'Status'), ('', 'Status'),
    ('nri.pkg.api.v1alpha1.Plugin', 'CreateContainer'), (SERVICE, 'x' * 100),
])
def test_other_versions_and_services(served, service, method):
    with Caller(served) as c:
        answer = c.call(method, service=service)
        assert answer.code != 0 and answer.json == b''
        if len(method) < 100 and '\0' not in method and method and service:
            assert answer.code == UNIMPLEMENTED and service in answer.message and method in answer.message
        assert c.call('Version').code == 0, 'the connection is as good as before'


@pytest.mark.parametrize('method, args, said', [
    ('Status', ['x'], 'takes 0 to 0 arguments, not 1'),
    ('Explain', [], 'takes 1 to 1 arguments, not 0'),
    ('Pods', ['a', 'b'], 'takes 0 to 1 arguments, not 2'),
    ('LogDebug', ['x'] * (ARGS_MAX + 1), 'arguments'),
    ('Explain', ['x' * (ARG_MAX + 1)], 'has 4097 bytes, at most 4096'),
    ('Explain', [b'\xff\xfe'], 'not UTF-8'),
    ('Explain', [b'\xed\xa0\x80'], 'not UTF-8'),
])
def test_wrong_arguments(served, method, args, said):
    with Caller(served) as c:
        answer = c.call(method, *args)
        assert answer.code == INVALID_ARGUMENT and said in answer.message
        assert c.call('Version').code == 0


def test_the_longest_argument(served):
    with Caller(served) as c:
        answer = c.call('Explain', 'x' * ARG_MAX)
        assert answer.code == 0 and answer.exit == FAILED and 'unknown container' in json.loads(answer.json)['error']


def test_files_by_relative_paths(served):
    with Caller(served) as c:
        for method in ('Plan', 'ConfigCheck'):
            for path in ('rp.conf', '../rp.conf', ''):
                answer = c.call(method, path)
                assert answer.exit == 2 and 'absolute' in json.loads(answer.json)['error']


@pytest.mark.parametrize('path', ['/', '/dev/null', '/proc/self/mem', '/no/such/file', '/dev/zero', '/' + 'x' * 4000])
def test_files_that_are_no_configurations(served, path):
    """Refused or accepted, but nothing of the daemon's is moved, read without end or waited for."""
    before = served.places()
    with Caller(served) as c:
        answer = c.call('Plan', path)
    document = json.loads(answer.json)
    if path == '/dev/null':
        assert document.get('outcome') in ('accepted', 'refused', None)
    else:
        assert answer.exit != OK
    assert served.places() == before


def test_a_pipe_as_configuration(served, tmp_path):
    """Nobody writes to it, and nobody may wait for that."""
    path = tmp_path / 'pipe'
    os.mkfifo(path)
    with Caller(served) as c:
        c.ask('Plan', str(path))
        served.create('meanwhile', ctr('c', '1', '64Mi'))
        answer = c.answer()
    assert answer.exit != OK


def test_pieces_that_are_not_there(served):
    with Caller(served) as c:
        for rest in (0, 1, 2 ** 64 - 1):
            assert c.call('More', rest=rest).code == NOT_FOUND


def test_numbers_of_all_sizes(served):
    """Events after the last one that there can be begin anew; a wait ends with the next event."""
    with Caller(served) as c:
        assert json.loads(c.call('Events', after=2 ** 64 - 1).json)['events']
        last = json.loads(c.call('Events').json)['last']
        c.ask('Events', after=last, wait_ms=2 ** 32 - 1)
        served.create('p', ctr('c', '1', '64Mi'))
        document = json.loads(c.answer().json)
    assert [e['kind'] for e in document['events']] == ['created'] and document['missed'] == 0
    assert document['last'] == last + 1


def test_unknown_flags_and_fields(served):
    """What a newer nri-rpctl may say is left alone."""
    with Caller(served) as c:
        c.send(call_frame(1, 'Version', control_request(flags=0xffffffff) + field(99, 'new') + field(77, 5)))
        assert c.answer().code == 0


# ---- many and slow ----

def big(make_node, **kwargs):
    """4,000 containers: a document of several MiB."""
    existing = [{'pod': 'p%d' % i, 'containers': [ctr('c%d' % k, '1m/-') for k in range(40)]} for i in range(100)]
    return make_node(STATIC, existing=existing, **kwargs)


def test_a_reader_that_does_not_read(make_node):
    """Big answers wait for it in bounds, and the runtime is answered meanwhile; then it gets all of them whole."""
    node = big(make_node)
    with Caller(node, buffer=4096) as slow:
        for _ in range(5):
            slow.ask('Containers')
        node.create('g', ctr('own', '2', '64Mi'))
        assert ctl_json(node, 'explain', 'g/own')['exclusive']
        for _ in range(5):
            answer = slow.answer()
            assert answer.code == 0 and len(answer.json) == PIECE_MAX and answer.rest
        text, rest = answer.json, answer.rest
        while rest:
            piece = slow.call('More', rest=rest)
            text, rest = text + piece.json, piece.rest
        # the last question may have been looked at after the container came
        assert len(json.loads(text)) in (4000, 4001)


def test_a_reader_that_never_reads(make_node):
    """Who asks for more than 64 MiB without taking any is let go, and said to be."""
    node = big(make_node)
    with Caller(node, buffer=4096) as deaf:
        try:
            for _ in range(100):
                deaf.ask('Containers')
        except (BrokenPipeError, ConnectionResetError):
            pass
        node.log('disconnected a client', within='60s')  # 64 MiB are many documents for a build that checks each byte
        node.create('g', ctr('own', '2', '64Mi'))
        assert ctl(node, 'version').code == OK
    assert ctl_json(node, 'status')['pid'] == node.status()['pid']


def test_pieces_belong_to_the_connection(make_node):
    node = big(make_node)
    with Caller(node) as one, Caller(node) as other:
        rest = one.call('Containers').rest
        assert other.call('More', rest=rest).code == NOT_FOUND
        assert one.call('More', rest=rest).code == 0
        one.call('Containers')
        assert one.call('More', rest=rest).code == NOT_FOUND, 'another document has taken its place'
    with Caller(node) as c:
        assert len(c.document('Containers')) == 4000


def test_no_more_clients_than_places(served):
    """Who is too many is turned away at once, with a line in the log; who goes makes room."""
    sitting = [Caller(served) for _ in range(CLIENTS_MAX)]
    for c in sitting:
        assert c.call('Version').code == 0
    extra = [Caller(served) for _ in range(64 - CLIENTS_MAX)]
    assert all(c.closed() for c in extra)
    served.log('refused a client: %d are connected' % CLIENTS_MAX)
    served.create('p', ctr('c', '1', '64Mi'))
    done = ctl(served, 'status')
    assert done.code == FAILED and done.err
    sitting[0].close()
    eventually(lambda: ctl(served, 'status').code == OK)
    assert sitting[1].call('Version').code == 0, 'those who were there are served as before'
    for c in sitting + extra:
        c.close()


def test_many_who_wait_for_events(served):
    waiting = [Caller(served) for _ in range(10)]
    last = json.loads(waiting[0].call('Events').json)['last']
    for c in waiting:
        c.ask('Events', after=last, wait_ms=300000)
    waiting[0].close()
    served.create('p', ctr('c', '1', '64Mi'))
    for c in waiting[1:]:
        assert [e['seq'] for e in json.loads(c.answer().json)['events']] == [last + 1]
        c.close()


def test_too_many_jobs_on_one_connection(served):
    """Beyond the bound the answer is an error, not a queue without end; the end of the connection ends all of them."""
    with Caller(served) as c:
        last = json.loads(c.call('Events').json)['last']
        for _ in range(100):
            c.ask('Events', after=last, wait_ms=300000)
        first = c.answer()
        assert first.exit == FAILED and 'too many' in json.loads(first.json)['error']
    eventually(lambda: ctl(served, 'reload').code == OK)


def test_reloads_from_all_sides(served):
    callers = [Caller(served) for _ in range(8)]
    for c in callers:
        c.ask('Reload')
        c.ask('Plan', served.paths['config'])
    served.signal('HUP')
    served.create('p', ctr('c', '2', '64Mi'))
    for c in callers:
        answers = {c.answer().stream for _ in range(2)}
        assert answers == {1, 3}
        c.close()
    served.expect('count(cpus(p/c)) == 2')


def test_the_daemon_stops_with_clients_at_it(make_node):
    """They are answered or closed, and it is not kept from stopping."""
    node = make_node(STATIC)
    waiting = [Caller(node) for _ in range(5)]
    for c in waiting:
        c.ask('Events', after=1000, wait_ms=300000)
        c.answer()
        c.ask('Events', after=1, wait_ms=300000)
    half = Caller(node)
    half.send(b'\0\0')
    node.stop()
    for c in waiting:
        try:
            answer = c.answer()
            assert answer.code != 0 and 'stopping' in answer.message
        except ConnectionResetError:
            pass
        assert c.closed()
        c.close()
    assert half.closed()
    half.close()
    assert not os.path.exists(node.paths['control'])
    node.start()
    assert ctl(node, 'status').code == OK


# ---- who it is ----

@ROOT
def test_other_users_are_turned_away(served):
    """Even where the socket's mode lets them in."""
    path = pathlib.Path(served.paths['control'])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    os.chmod(path, 0o666)
    os.chmod(path.parent, 0o755)
    done = run_as_nobody(CTL, '--socket', path, 'pods')
    assert done.returncode == FAILED and done.stdout == ''
    served.log('refused a client: process [0-9]+ of user %d' % NOBODY)
    done = run_as_nobody(CTL, '--socket', path, 'reload')
    assert done.returncode == FAILED
    assert ctl_json(served, 'status')['config']['generation'] == 1
    os.chmod(path, 0o600)
    assert ctl(served, 'pods').code == OK


def test_after_a_kill_the_left_socket_is_replaced(make_node):
    node = make_node(STATIC)
    node.kill()
    assert os.path.exists(node.paths['control'])
    node.start()
    assert ctl(node, 'status').code == OK
    assert stat.S_IMODE(os.stat(node.paths['control']).st_mode) == 0o600
