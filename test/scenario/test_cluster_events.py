# SPDX-License-Identifier: Apache-2.0
"""What people see with kubectl describe: events at pods and at the node."""
import contextlib
import json
import socket
import time

import pytest

from simnode import ctr, eventually
from test_cluster import CRS, NODE, NS, Cluster

STATIC = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Cluster(make_node, tmp_path, **{'speed': 4, **more}))


def told(c, reason, kind='Pod'):
    bodies = [body for method, path, body in c.api.writes if method == 'POST' and path.endswith('/events')]
    return [b for b in bodies if b['reason'] == reason and b['involvedObject']['kind'] == kind]


def test_a_refusal_is_told_at_the_pod(cluster):
    c = cluster(config=STATIC)
    eventually(lambda: c.status()['connected'])
    c.node.reject('big', ctr('c0', '64', '64Mi'))
    eventually(lambda: told(c, 'PlacementRefused'))
    event, = told(c, 'PlacementRefused')
    assert (event['metadata']['namespace'], event['involvedObject']['name'], event['type'], event['count']) == ('default', 'big', 'Warning', 1)
    assert event['source'] == {'component': 'nri-rp', 'host': NODE} and 'big' in event['message']
    # with the reason that explain has
    assert event['message'].split(': ', 1)[1] in str(c.node.ctl('explain', 'big/c0', check=False)), event['message']


def test_their_number_is_bounded(cluster):
    begun = time.monotonic()
    c = cluster(config=STATIC)
    eventually(lambda: c.status()['connected'])
    for n in range(30):
        c.node.reject('big%d' % (n % 3), ctr('c0', '64', '64Mi'))
    c.node.reject('last', ctr('c0', '64', '64Mi'))
    eventually(lambda: any(e['involvedObject']['name'] == 'last' for e in told(c, 'PlacementRefused')))
    assert sorted(e['involvedObject']['name'] for e in told(c, 'PlacementRefused')) == ['big0', 'big1', 'big2', 'last']
    for n in range(40):
        c.node.reject('other%d' % n, ctr('c0', '64', '64Mi'))
    c.node.settle()
    eventually(lambda: len(told(c, 'PlacementRefused')) >= 18)
    assert len(told(c, 'PlacementRefused')) <= 20 + (time.monotonic() - begun) / 6


def test_a_refused_configuration_is_told_at_the_node(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', {'spec': {'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': 'none'}})
    c.has_verdict('Failure', 1)
    eventually(lambda: told(c, 'ConfigurationRefused', 'Node'))
    event = told(c, 'ConfigurationRefused', 'Node')[0]
    assert event['metadata']['namespace'] == 'default' and event['involvedObject']['name'] == NODE and 'balloonTypes' in event['message']


def names(c):
    return [e['involvedObject']['name'] for e in told(c, 'PlacementRefused')]


def events(method, path, query):  # pylint: disable=unused-argument
    return path.endswith('/events')


def written_without_an_answer(handler):
    api = handler.server.api
    with api.lock:
        api.writes.append(('POST', handler.path, json.loads(api.requests[-1]['body'])))
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize('how', ['429', '500', 'no answer', 'down'])
def test_what_the_server_does_not_take_now_waits(cluster, how):
    def waiting():
        status = c.status()
        return status['events_waiting'], status['events_lost']
    c = cluster(config=STATIC)
    eventually(lambda: c.status()['connected'])
    if how == 'down':
        c.api.stop()
    else:
        answers = {'429': lambda handler: handler.answer(429, {}, [('Retry-After', '1')]), '500': lambda handler: handler.fail(500, 'not now'),
                   # it was written, and nobody is told: once more under the same name
                   'no answer': written_without_an_answer}
        c.api.fault(answers[how], times={'429': 7, '500': 2, 'no answer': 1}[how], when=events)
    for pod in 'one', 'two':
        c.node.reject(pod, ctr('c0', '64', '64Mi'))
    if how != 'no answer':
        eventually(lambda: waiting() == (2, 0))
    if how == 'down':
        c.api.start()
    eventually(lambda: waiting() == (0, 0) and sorted(names(c)) == ['one', 'two'], 40)
    assert sorted(names(c)) == ['one', 'two']


def test_without_the_right_events_are_lost(cluster):
    c = cluster(config=STATIC)
    c.api.fault(lambda handler: handler.fail(403, 'cannot create resource "events"'), when=lambda method, path, query: path.endswith('/events'))
    c.node.reject('big', ctr('c0', '64', '64Mi'))
    eventually(lambda: any('"events"' in p for p in c.status()['problems']))
    c.node.reject('bigger', ctr('c0', '65', '64Mi'))
    eventually(lambda: [e['involvedObject']['name'] for e in told(c, 'PlacementRefused')] == ['bigger'])
    eventually(lambda: not c.status()['problems'])
