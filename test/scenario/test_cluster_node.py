# SPDX-License-Identifier: Apache-2.0
"""This node's object: what the daemon knows of it, and what it has the agent put on it."""
import contextlib

import pytest

from simnode import eventually
from test_cluster import NODE, Cluster

NO_EXECUTE = {'key': 'gpu', 'value': 'yes', 'effect': 'NoExecute'}


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Cluster(make_node, tmp_path, **more))


def known(c):
    return c.node.ctl('node')['object'] or {}


def put_node(c, labels, taints=(), annotations=None, capacity=None):
    c.api.put('nodes', None, NODE, {'metadata': {'labels': labels, 'annotations': annotations or {}}, 'spec': {'taints': list(taints)},
                                    'status': {'capacity': capacity or {'cpu': '4'}, 'allocatable': {'cpu': '3500m', 'memory': '1Ki'}}})


def test_the_daemon_knows_the_node(cluster):
    c = cluster(labels={'zone': 'a'})
    eventually(lambda: known(c).get('labels') == {'zone': 'a'})
    put_node(c, {'zone': 'b', 'new': ''}, [NO_EXECUTE], {'note': 'x' * 1000}, {'cpu': '4', 'example.com/gpu': '2'})
    eventually(lambda: known(c).get('labels') == {'new': '', 'zone': 'b'})
    node = known(c)
    assert (node['name'], node['taints'], node['annotations']) == (NODE, [NO_EXECUTE], {'note': 'x' * 1000})
    assert node['capacity'] == {'cpu': 4000, 'example.com/gpu': 2} and node['allocatable'] == {'cpu': 3500, 'memory': 1024}
    # without an agent the last word stays; another daemon is told anew
    c.agent.kill()
    assert known(c) == node
    c.node.restart()
    assert known(c) == {}
    c.agent.start()
    eventually(lambda: known(c) == node)


def test_too_large_a_node(cluster):
    c = cluster(labels={'zone': 'a'})
    put_node(c, {'k%d' % i: '' for i in range(1025)})
    eventually(lambda: any('longer than 1024' in p for p in c.status()['problems']))
    put_node(c, {'zone': 'b'})
    eventually(lambda: known(c).get('labels') == {'zone': 'b'} and not c.status()['problems'])
