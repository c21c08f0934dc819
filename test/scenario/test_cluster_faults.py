# SPDX-License-Identifier: Apache-2.0
"""A cluster that does not behave: what its API server may do, the daemon does not notice, and the agent survives in bounded memory."""
import contextlib
import json
import os
import random
import socket
import struct
import time

import pytest

from simnode import BUILD, INSTRUMENTED, ctr, eventually
from test_adjustments import ADJUSTMENTS, TA, accepted, becomes, resource
from test_cluster import CRS, MAPS, NODE, NS, RESERVED, Cluster, balloons, memory_of

MEMORY_MAX = 64 << 20
STORM_S = float(os.environ.get('STORM_SECONDS', '5'))
JUNK = [None, 7, 'x', [], {}, {'metadata': None}, {'metadata': {'name': 7}}, {'metadata': {'name': '../x'}, 'spec': []}, {'metadata': {'name': 'a\nb'}, 'spec': 'x'},
        {'metadata': {'name': 'ok', 'uid': 'u', 'generation': 'many', 'labels': [], 'annotations': 9}, 'spec': {'scope': [None, 7], 'containers': {}}, 'status': {'nodes': 3}}]


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Cluster(make_node, tmp_path, **more))


def half_closed(h):
    """Half an event, and no more from this side; the other side may go on."""
    h.send_response(200)
    h.send_header('Transfer-Encoding', 'chunked')
    h.end_headers()
    h.chunk(b'{"type": "MODIFIED", "object": {"metadata":')
    h.connection.shutdown(socket.SHUT_WR)
    h.close_connection = True


def reset(h):
    h.connection.shutdown(socket.SHUT_RDWR)
    h.close_connection = True


def slow(h):
    time.sleep(1)
    h.fail(503, 'slow')


def dripping(first, piece, n, pause_s=0):
    """So many pieces after the first bytes, and never an end; the connection is closed when they are over or nobody listens."""
    def do(h):
        h.close_connection = True
        with contextlib.suppress(OSError):
            h.wfile.write(first)
            for _ in range(n):
                h.wfile.write(piece)
                h.wfile.flush()
                time.sleep(pause_s)
    return do


HEAD = b'HTTP/1.1 200 OK\r\n'
CHUNKED = HEAD + b'Transfer-Encoding: chunked\r\n\r\n'
DRIPS = {
    'byte by byte': (CHUNKED, b'1\r\n{\r\n', 100, 0.05),
    'headers for ever': (HEAD, b'X-More: ' + b'x' * 4000 + b'\r\n', 25000),
    'interim answers for ever': (b'', b'HTTP/1.1 103 Early Hints\r\nLink: ' + b'x' * 4000 + b'\r\n\r\n', 25000),
    'an extension of a chunk': (CHUNKED + b'1;', b'x' * 4000, 25000),
    'trailers for ever': (CHUNKED + b'0\r\n', b'X-More: ' + b'x' * 4000 + b'\r\n', 25000),
    'one event': (CHUNKED, b'fa0\r\n' + b'x' * 4000 + b'\r\n', 25000),
}


def junk(h):
    if 'watch=true' in h.path:
        h.answer(200, b''.join(json.dumps({'type': random.choice(['ADDED', 'DELETED', 'BOOKMARK', 'ERROR', 'x']), 'object': o}).encode() + b'\n' for o in JUNK))
    else:
        h.answer(200, {'kind': 'List', 'metadata': {'resourceVersion': '1'}, 'items': JUNK})


def test_a_stream_that_is_half_closed(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    c.api.fault(half_closed, when=lambda m, p, q: CRS in p and 'watch' in q and q['fieldSelector'] == 'metadata.name=default')
    c.api.compact()
    c.api.put(CRS, NS, 'default', balloons(3))
    c.has_verdict('Success', 2)


def test_a_list_whose_rest_is_lost(cluster):
    """The server that sent the first page has gone, and no other one can serve the next."""
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    first = {'kind': 'List', 'metadata': {'resourceVersion': '1', 'continue': 'lost'}, 'items': []}
    c.api.fault(reset, times=1 << 30, when=lambda m, p, q: q.get('continue') == 'lost')
    c.api.fault(lambda h: h.answer(200, first), when=lambda m, p, q: CRS in p and 'limit' in q)
    c.api.compact()
    c.api.put(CRS, NS, 'default', balloons(3))
    c.has_verdict('Success', 2)
    assert any(r['query'].get('continue') == 'lost' for r in c.api.requests)


def test_rights_taken_away_and_given_back(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    with c.api.lock:
        c.api.denied |= {CRS, 'pods'}
        c.api.read_only |= {'noderesourcetopologies'}
    c.api.compact()
    eventually(lambda: len([p for p in c.status()['problems'] if 'needs {apiGroups: ["config.nri"], resources: [%s], verbs: [get, list, watch]}' % CRS in p]) == 1)
    c.node.create('web', ctr('c0', '1'))
    eventually(lambda: any('resources: [noderesourcetopologies], verbs: [patch]' in p for p in c.status()['problems']))
    assert c.policy() == 'balloons' and c.status()['configuration'] and c.status()['connected']
    with c.api.lock:
        c.api.denied.clear()
        c.api.read_only.clear()
    c.api.put(CRS, NS, 'default', balloons(3))
    began = time.monotonic()
    eventually(lambda: (c.verdict() or {}).get('generation') == 2 and c.status()['problems'] == [], 40)
    assert time.monotonic() - began < 30


def test_objects_that_make_no_sense(cluster):
    c = cluster(config=TA)
    c.node.create('web', ctr('c0', '2', '64Mi'))
    seen = []
    c.api.fault(lambda h: (seen.append(h.path), junk(h)), times=8, when=lambda m, p, q: m == 'GET' and 'criresmgr' not in p and any(p.endswith(k) for k in (ADJUSTMENTS, 'pods', 'nodes', CRS, MAPS)))
    c.agent.stop()
    c.agent.start()
    c.api.put(ADJUSTMENTS, NS, 'larger', resource('web', '3'))
    eventually(lambda: len(seen) == 8)
    c.api.compact()  # what was listed wrongly is listed anew
    becomes(c.node, 'web', 3)
    accepted(c, 'larger')
    assert c.agent.process.poll() is None


def test_json_that_is_deep(cluster):
    """An answer deeper than anything is read, and a configuration deeper than the daemon takes one."""
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    seen = []
    c.api.fault(lambda h: (seen.append(h.path), h.answer(200, b'[' * 100000 if len(seen) % 2 else b'{"items":' * 100000)), times=2,
                when=lambda m, p, q: m == 'GET' and p.endswith(CRS))
    c.agent.stop()
    c.agent.start()
    eventually(lambda: len(seen) == 2)
    deep = []
    for _ in range(200):
        deep = [deep]
    c.api.put(CRS, NS, 'default', balloons(3, deep=deep))
    assert 'nested deeper than 32 levels' in c.has_verdict('Failure', 2)['errors']
    c.api.put(CRS, NS, 'default', balloons(3))
    c.has_verdict('Success', 3)
    assert c.agent.process.poll() is None and c.policy() == 'balloons'


def test_a_configuration_of_a_mebibyte(cluster):
    c = cluster()
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'policy': 'balloons', 'balloons': json.dumps({**RESERVED, 'balloonTypes': []}) + '\n' + '# ' + 'x' * (2 << 20)}})
    eventually(lambda: 'bytes' in (c.api.find('nodes', None, NODE)['metadata'].get('annotations') or {}).get('nri-rp/config-status', ''))
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'policy': 'balloons', 'balloons': json.dumps({**RESERVED, 'balloonTypes': []}) + '\n' + ('# ' + 'x' * 80 + '\n') * 12000}})
    c.runs('balloons')
    assert INSTRUMENTED or memory_of(c.agent, 'VmHWM') < MEMORY_MAX


def test_answers_without_an_end(cluster):
    """Whatever part of an answer goes on for ever, to a watch and then to a list: it is given up, in bounded memory."""
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    kinds = [CRS, MAPS, ADJUSTMENTS, 'pods', 'nodes', 'topologyawarepolicies']
    for kind, drip in zip(kinds, DRIPS.values(), strict=True):
        for streams in True, False:
            c.api.fault(dripping(*drip), when=lambda m, p, q, k=kind, s=streams: m == 'GET' and p.endswith('/' + k) and ('watch' in q) == s)
    c.api.compact()
    eventually(lambda: not any(f['left'] for f in c.api.faults), 60)
    c.api.put(CRS, NS, 'default', balloons(3))
    c.has_verdict('Success', 2)
    assert c.policy() == 'balloons' and (INSTRUMENTED or memory_of(c.agent, 'VmHWM') < MEMORY_MAX)


def test_a_server_that_starts_again_and_again(cluster, tmp_path):
    """As real ones do, it knows nobody's rights and no kinds at first; and each time it wants another token."""
    token = tmp_path / 'token'
    token.write_text('0')
    c = cluster(token='0', tokenFile=str(token))
    answers = [(403, 'no roles are known yet'), (404, 'no kinds are known yet'), (401, 'Unauthorized')]
    for i, answer in enumerate(answers, 1):
        c.api.put(CRS, NS, 'default', balloons(i))
        c.has_verdict('Success', i)
        c.api.stop()
        c.api.fault(lambda h, a=answer: h.fail(*a), 9, when=lambda m, p, q: m != 'POST')  # an event is lost
        with c.api.lock:
            c.api.token = str(i)
        token.write_text(str(i))
        c.api.start()
    eventually(lambda: c.status()['problems'] == [] and c.status()['connected'], 60)
    c.node.create('web', ctr('c0', '1'))
    assert c.policy() == 'balloons' and (INSTRUMENTED or memory_of(c.agent, 'VmHWM') < MEMORY_MAX)


def test_the_clock_is_set(cluster, tmp_path):
    """To 1970, as where a battery is empty, a century ahead, and back, while daemon and agent run."""
    clock = tmp_path / 'clock'
    clock.write_bytes(struct.pack('q', 0))

    def set_clock(off):
        with clock.open('r+b') as f:  # it is mapped, and must not become shorter
            f.write(struct.pack('q', off))
    env = {'LD_PRELOAD': str(BUILD / 'test' / 'step.so'), 'CLOCK_OFF': str(clock), 'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0'}
    daemon = ' '.join(['/usr/bin/env', *('%s=%s' % e for e in env.items()), str(BUILD / 'bin' / 'nri-rpd'),
                       '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state} --control-socket {control}'])
    c = cluster(head={'daemon': daemon}, module_dirs=[BUILD / 'modules'], env={**os.environ, **env}, config={'controllers': [], 'calculators': []})
    n = 0
    for off, year in (0, None), (-int(time.time()), '1970'), (100 * 365 * 86400, None), (-86400, None), (0, None):
        set_clock(off)
        n += 1
        c.api.put(CRS, NS, 'default', balloons(1 + n % 3))
        said = c.has_verdict('Success', n)
        year = year or time.strftime('%Y', time.gmtime(time.time() + off))
        assert said['timestamp'].startswith(year)
        c.node.create('p%d' % n, ctr('c0', '100m'))
        status = c.node.ctl('status', check=False)
        assert status['cluster']['problems'] == [] and not status.get('conditions')
        c.node.check()
    c.agent.stop()
    c.agent.start()
    set_clock(-86400 * 365)
    c.node.restart()
    c.api.put(CRS, NS, 'default', balloons(5))
    c.has_verdict('Success', n + 1)
    assert INSTRUMENTED or memory_of(c.agent, 'VmHWM') < MEMORY_MAX


@pytest.mark.parametrize('seed', range(int(os.environ.get('STORM_ROUNDS', '1'))))
def test_a_storm(cluster, seed):
    """Whatever comes instead of answers, in any order: then all is as it should be."""
    chance = random.Random(seed)
    faults = [half_closed, reset, slow, junk, lambda h: h.fail(500, 'x' * 100000), lambda h: h.fail(429, 'later', [('Retry-After', '1')]),
              lambda h: h.fail(410, 'gone'), lambda h: h.answer(200, b'[' * 100000), lambda h: h.answer(200, b'x' * (9 << 20))]
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(1))
    c.has_verdict('Success', 1)
    c.api.fault(lambda h: chance.choice(faults)(h), times=1 << 30, when=lambda m, p, q: chance.random() < 0.4)
    end, n = time.monotonic() + STORM_S, 1
    while time.monotonic() < end:
        n += 1
        c.api.put(CRS, NS, 'default', balloons(1, idleCPUClass='c%d' % n))
        if n % 10 == 0:
            c.api.compact()
        c.node.create('p%d' % n, ctr('c0', '100m'))
        c.node.delete('p%d' % n)
        time.sleep(0.1)
    with c.api.lock:
        c.api.faults.clear()
    eventually(lambda: (c.verdict() or {}).get('generation') == n, 90)
    assert c.verdict()['status'] == 'Success' and c.agent.process.poll() is None
    assert INSTRUMENTED or memory_of(c.agent, 'VmHWM') < MEMORY_MAX
    c.node.check()
