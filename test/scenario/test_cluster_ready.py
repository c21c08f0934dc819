# SPDX-License-Identifier: Apache-2.0
"""Whether nri-rpd places the containers of a node: its condition and its taint."""
import contextlib
import os
import signal
import time

import pytest

from simnode import ctr, eventually
from test_cluster import NODE, Cluster

CONDITION, TAINT = 'NRIResourcePolicyReady', {'key': 'nri-rp.io/not-ready', 'effect': 'NoSchedule'}
OTHER = {'type': 'Ready', 'status': 'True', 'reason': 'KubeletReady'}


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        def make(speed=1, **keys):
            c = stack.enter_context(Cluster(make_node, tmp_path, config={'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}, speed=speed))
            with c.api.lock:
                c.api.objects['nodes', None, NODE]['status'] = {'conditions': [OTHER]}
            configure(c, **keys)
            return c
        yield make


def configure(c, **keys):
    c.node.config({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}},
                   'agent': {'cluster': True, 'socket': c.node.paths['work'] + '/agent.sock', **keys}})
    c.node.reload()


def condition(c):
    found = [k for k in c.api.find('nodes', None, NODE)['status'].get('conditions', ()) if k['type'] == CONDITION]
    assert OTHER in c.api.find('nodes', None, NODE)['status']['conditions']
    return (found[0]['status'], found[0]['reason']) if found else None


def taints(c):
    return (c.api.find('nodes', None, NODE).get('spec') or {}).get('taints') or []


def within(seconds, what):
    """The time it has taken."""
    begin = time.monotonic()
    eventually(what, seconds)
    return time.monotonic() - begin


def test_a_killed_daemon_is_reported_and_its_return(cluster):
    c = cluster(taintWhenAway=True)
    eventually(lambda: condition(c) == ('True', 'Placing'))
    assert taints(c) == []
    since = c.api.find('nodes', None, NODE)['status']['conditions'][-1]['lastTransitionTime']
    c.node.run('kill')
    within(10, lambda: condition(c) == ('False', 'DaemonAway'))
    eventually(lambda: taints(c) == [TAINT])
    # an agent that starts meanwhile leaves both
    c.agent.kill()
    c.agent.start()
    time.sleep(4)
    assert condition(c) == ('False', 'DaemonAway') and taints(c) == [TAINT]
    c.node.start()
    within(10, lambda: condition(c) == ('True', 'Placing'))
    eventually(lambda: taints(c) == [])
    assert c.api.find('nodes', None, NODE)['status']['conditions'][-1]['lastTransitionTime'] >= since


def test_no_container_starts_without_a_required_plugin(make_node):
    """As with required_plugins of containerd 2.2 and a toleration in kube-system."""
    node = make_node({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}, requirePlugin=True)
    node.create('before', ctr('c', '1', '64Mi'))
    node.kill()
    for pod in ('exclusive', 'shared'):
        assert 'missing required plugin "nri-rp"' in node.reject(pod, ctr('c', '1' if pod == 'exclusive' else '100m', '64Mi'))
    node.create('dns', ctr('c', '100m', '64Mi'), namespace='kube-system', annotations={'tolerate-missing-plugins.nri-rp.io': 'true'})
    assert set(node.containers()) == {'before/c', 'kube-system/dns/c'}
    node.start()
    for pod in ('exclusive', 'shared'):
        node.create(pod, ctr('c', '1' if pod == 'exclusive' else '100m', '64Mi'))
    owned = node.cpus('before/c') | node.cpus('exclusive/c')
    assert len(owned) == 2
    eventually(lambda: not owned & (node.cpus('shared/c') | node.cpus('dns/c')))


def test_a_restart_is_not_reported(cluster):
    c = cluster(taintWhenAway=True)
    eventually(lambda: condition(c) == ('True', 'Placing'))
    n = len(c.writes(''))
    c.node.restart()
    time.sleep(4)
    assert condition(c) == ('True', 'Placing') and taints(c) == []
    assert not [w for w in c.writes('')[n:] if CONDITION in str(w) or 'not-ready' in str(w)]


def test_a_daemon_that_hangs_is_reported(cluster):
    """The agent reports a daemon that hangs before the daemon's own watchdog ends it, after four seconds."""
    c = cluster(speed=4, taintWhenAway=True)
    eventually(lambda: condition(c) == ('True', 'Placing'))
    pid = c.node.status()['pid']
    os.kill(pid, signal.SIGSTOP)
    try:
        within(10, lambda: condition(c) == ('False', 'DaemonHangs'))
        eventually(lambda: taints(c) == [TAINT])
    finally:
        os.kill(pid, signal.SIGCONT)
    within(10, lambda: condition(c) == ('True', 'Placing'))
    eventually(lambda: taints(c) == [])


def message(c):
    return [k for k in c.api.find('nodes', None, NODE)['status']['conditions'] if k['type'] == CONDITION][0]['message']


def test_containers_that_are_degraded_or_refused_are_counted(cluster):
    c = cluster(speed=4)
    eventually(lambda: condition(c) == ('True', 'Placing'))
    assert message(c) == 'nri-rpd places the containers of this node'
    c.node.create('a', ctr('a0', '6', '64Mi'))
    c.node.create('b', ctr('b0', '6', '64Mi'))
    for pod in ('large', 'larger'):
        assert 'requested=12' in c.node.reject(pod, ctr('c0', '12', '64Mi'))
    eventually(lambda: message(c).endswith(' of this node; degraded: 0, refused: 2'))
    # further changes of the numbers alone are written every 30 seconds of the agent's clock
    n = len(c.writes('/status'))
    c.node.config({'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0-8'}}, 'agent': {'cluster': True, 'socket': c.node.paths['work'] + '/agent.sock'}})
    c.node.reload()
    within(60 / 4, lambda: 'degraded: 0' not in message(c))
    assert len(c.writes('/status')) - n == 1
    before, last = [r['at'] for r in c.api.requests if r['method'] == 'PATCH' and '/status' in r['path']][-2:]
    assert last - before > 20 / 4


def test_an_agent_that_stops_says_so(cluster):
    c = cluster(taintWhenAway=True)
    eventually(lambda: condition(c) == ('True', 'Placing'))
    c.agent.stop()
    assert condition(c) == ('Unknown', 'AgentStopped') and taints(c) == [TAINT]
    c.agent.start()
    eventually(lambda: condition(c) == ('True', 'Placing') and taints(c) == [])


def test_an_agent_that_stops_while_the_daemon_dies(cluster):
    """The daemon's end does not keep the agent from ending."""
    c = cluster()
    eventually(lambda: condition(c) == ('True', 'Placing'))
    c.api.fault(lambda handler: time.sleep(1), when=lambda method, path, query: method == 'PATCH' and path.endswith('/nodes/%s/status' % NODE))
    c.agent.process.terminate()
    time.sleep(0.3)
    c.node.run('kill')
    assert within(10, lambda: c.agent.process.poll() is not None) < 10


def test_the_taint_of_a_new_node_is_removed_when_containers_are_placed(cluster):
    """That of a kubelet with --register-with-taints; other taints stay."""
    c = cluster()
    gpu = {'key': 'gpu', 'value': 'yes', 'effect': 'NoExecute'}
    eventually(lambda: condition(c) == ('True', 'Placing'))
    c.node.run('kill')
    eventually(lambda: condition(c) == ('False', 'DaemonAway'))
    assert taints(c) == []  # not asked for
    with c.api.lock:
        node = c.api.objects['nodes', None, NODE]
    c.api.put('nodes', None, NODE, {**node, 'spec': {'taints': [TAINT, gpu]}})
    time.sleep(1)
    assert taints(c) == [TAINT, gpu]
    c.node.start()
    eventually(lambda: taints(c) == [gpu])
    c.node.create('web', ctr('c0', '1'))


def test_taints_of_others_stay(cluster):
    """The server replaces the list as a whole: it is written for the version of the Node that it was read from."""
    c = cluster()
    configure(c, taintWhenAway=True)
    eventually(lambda: condition(c) == ('True', 'Placing'))
    with c.api.lock:
        node = c.api.objects['nodes', None, NODE]
    others = [{'key': 'gpu', 'value': 'yes', 'effect': 'NoExecute'}, {'key': 'node-role.kubernetes.io/control-plane', 'effect': 'NoSchedule'}]
    c.api.put('nodes', None, NODE, {**node, 'spec': {'taints': others}})
    c.node.run('kill')
    eventually(lambda: taints(c) == [*others, TAINT])
    c.node.start()
    eventually(lambda: taints(c) == others)


def test_a_taint_is_removed_at_once_from_a_node_that_changes(cluster):
    """A write that is refused for its version is repeated with the next version, without the second between two writes."""
    c = cluster()
    eventually(lambda: condition(c) == ('True', 'Placing'))

    def overtake(handler):
        with c.api.lock:
            c.api.put('nodes', None, NODE, c.api.find('nodes', None, NODE))
        handler.fail(409, 'the object has been modified')
    c.api.fault(overtake, times=6, when=lambda method, path, query: method == 'PATCH' and path.endswith('/nodes/%s' % NODE))
    with c.api.lock:
        c.api.put('nodes', None, NODE, {**c.api.find('nodes', None, NODE), 'spec': {'taints': [TAINT]}})
    within(4, lambda: not taints(c))


def test_the_condition_can_be_switched_off(cluster):
    c = cluster()
    eventually(lambda: condition(c) == ('True', 'Placing'))
    configure(c, nodeCondition=False)
    eventually(lambda: condition(c) is None)


def late(c):
    return [(w[2]['involvedObject']['name'], w[2]['message']) for w in c.writes('/events') if w[0] == 'POST' and w[2]['reason'] == 'PlacedLate']


def test_containers_placed_late_are_reported(cluster):
    """With the time that they ran unplaced; not those that ran before, nor those of a node where nri-rpd is new."""
    c = cluster()
    c.node.create('early', ctr('c0', '1', '1Mi'))
    c.node.kill()
    c.node.run('existing', [{'pod': 'web', 'containers': [ctr('c0', '2', '1Mi')]}])
    time.sleep(1.2)
    c.node.start()
    eventually(lambda: late(c))
    (pod, text), = late(c)
    assert pod == 'web' and text.startswith('default/web/c0 ran unplaced for ') and ' s: created while nri-rpd was away' in text
    assert 1 <= float(text.split(' for ')[1].split(' s')[0]) < 30
    assert len(c.node.cpus('web/c0')) == 2
