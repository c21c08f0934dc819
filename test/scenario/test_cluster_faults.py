# SPDX-License-Identifier: Apache-2.0
"""A cluster that does not behave: what its API server may do, the daemon does not notice, and the agent survives in bounded memory."""
import contextlib
import json
import os
import random
import socket
import time

import pytest

from simnode import INSTRUMENTED, ctr, eventually
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


def junk(h):
    if 'watch=true' in h.path:
        h.answer(200, b''.join(json.dumps({'type': random.choice(['ADDED', 'DELETED', 'BOOKMARK', 'ERROR', 'x']), 'object': o}).encode() + b'\n' for o in JUNK))
    else:
        h.answer(200, {'kind': 'List', 'metadata': {'resourceVersion': '1'}, 'items': JUNK})


def test_a_stream_that_is_half_closed(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    c.api.fault(half_closed, when=lambda m, p, q: CRS in p and 'watch' in q and 'default' in q['fieldSelector'])
    c.api.compact()
    c.api.put(CRS, NS, 'default', balloons(3))
    c.has_verdict('Success', 2)


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
    c.agent.stop()  # or it would be tried again after five minutes
    c.agent.start()
    c.has_verdict('Success', 2)
    eventually(lambda: c.status()['problems'] == [])


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


def test_a_configuration_of_a_mebibyte(cluster):
    c = cluster()
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'policy': 'balloons', 'balloons': json.dumps({**RESERVED, 'balloonTypes': []}) + '\n' + '# ' + 'x' * (2 << 20)}})
    eventually(lambda: 'bytes' in (c.api.find('nodes', None, NODE)['metadata'].get('annotations') or {}).get('nri-rp/config-status', ''))
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'policy': 'balloons', 'balloons': json.dumps({**RESERVED, 'balloonTypes': []}) + '\n' + ('# ' + 'x' * 80 + '\n') * 12000}})
    c.runs('balloons')
    assert INSTRUMENTED or memory_of(c.agent) < MEMORY_MAX


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
    assert INSTRUMENTED or memory_of(c.agent) < MEMORY_MAX
    c.node.check()
