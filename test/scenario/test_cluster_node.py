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
        yield lambda **more: stack.enter_context(Cluster(make_node, tmp_path, **{'speed': 4, **more}))


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


STATIC = {'policy': 'static-pools', 'static-pools': {'pools': {'shared': {'cpuLists': [{'cpuset': '2-3'}]}}, 'labelNode': True, 'taintNode': True}}
LABEL, TAINT = 'cmk.intel.com/cmk-node', {'key': 'cmk', 'value': 'true', 'effect': 'NoSchedule'}


def at_server(c):
    node = c.api.find('nodes', None, NODE)
    return node['metadata'].get('labels') or {}, (node.get('spec') or {}).get('taints') or [], node['metadata'].get('annotations') or {}


def has(c, labels, taints):
    return at_server(c)[:2] == (labels, taints)


def test_a_policy_marks_the_node(cluster):
    c = cluster(labels={'zone': 'a'}, config=STATIC)
    eventually(lambda: has(c, {'zone': 'a', LABEL: 'true'}, [TAINT]))
    eventually(lambda: all(w['there'] for w in c.node.ctl('node')['wishes']))
    assert [(w['module'], w['kind'], w['key']) for w in c.node.ctl('node')['wishes']] == [('static-pools', 'label', LABEL), ('static-pools', 'taint', 'cmk')]
    # who takes it away finds it back; what others have stays
    put_node(c, {'zone': 'b'}, [NO_EXECUTE], at_server(c)[2])
    eventually(lambda: has(c, {'zone': 'b', LABEL: 'true'}, [NO_EXECUTE, TAINT]))
    # a daemon and an agent that go and come leave it
    c.agent.kill()
    c.node.restart()
    assert has(c, {'zone': 'b', LABEL: 'true'}, [NO_EXECUTE, TAINT])
    # another policy meanwhile: what the former one wanted is found by the Node's own record
    c.node.config({'policy': 'none', 'agent': {'cluster': True, 'socket': c.node.paths['work'] + '/agent.sock'}})
    c.node.reload()
    c.agent.start()
    eventually(lambda: has(c, {'zone': 'b'}, [NO_EXECUTE]))
    assert at_server(c)[2] == {}


def test_a_policy_says_how_much_it_has(cluster):
    """Lists of exclusive pools are what schedulers count."""
    lists = [{'cpuset': '4-5'}, {'cpuset': '6-7'}]
    c = cluster(config={'policy': 'static-pools', 'static-pools': {'pools': {'shared': {'cpuLists': [{'cpuset': '2-3'}]}, 'exclusive': {'exclusive': True, 'cpuLists': lists}}}})
    eventually(lambda: (c.api.find('nodes', None, NODE).get('status') or {}).get('capacity', {}).get('cmk.intel.com/exclusive-cores') == '2')


def test_what_is_somebody_elses_stays(cluster):
    c = cluster(labels={LABEL: 'false'}, config=STATIC)
    eventually(lambda: has(c, {LABEL: 'false'}, [TAINT]))
    eventually(lambda: any('set by another component' in p for p in c.status()['problems']))
    put_node(c, {}, [], at_server(c)[2])
    eventually(lambda: has(c, {LABEL: 'true'}, [TAINT]) and not c.status()['problems'])


def test_two_write_at_once(cluster):
    """The version that was read is not the latest any more: what is there now decides."""
    c = cluster(config={'policy': 'none'})

    def late(handler):
        put_node(c, {'other': 'x'}, [NO_EXECUTE])
        handler.fail(409, 'the object has been modified')
    c.api.fault(late, when=lambda method, path, query: method == 'PATCH' and path.endswith('/' + NODE))
    c.node.config({**STATIC, 'agent': {'cluster': True, 'socket': c.node.paths['work'] + '/agent.sock'}})
    c.node.reload()
    eventually(lambda: has(c, {'other': 'x', LABEL: 'true'}, [NO_EXECUTE, TAINT]))
    assert not c.status()['problems']
