# SPDX-License-Identifier: Apache-2.0
"""Devices of pods, all the way: a kubelet (a real gRPC server), a real nri-rp-agent, a real nri-rpd, and what the policies make of it.

n4c16 has four NUMA nodes of four CPUs: node 0 has CPUs 0-3, node 1 4-7, node 2 8-11, node 3 12-15; packages are nodes 0-1 and 2-3.
"""
import contextlib
import os
import pathlib
import stat
import subprocess
import sys
import threading

import pytest
import yaml

from kubelet import STOP_S, Agent, Kubelet, Odd
from simnode import STATIC, ctr, eventually

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'conf' / 'samples'
NIC, GPU = 'example.com/nic', 'example.com/gpu'
TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}, 'packing': 'balanced'}}
HINTS = 'topologyhints.resource-policy.nri.io'
NODE = [{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}]
WAITED = 'the agent did not reply in time'
# A kubelet gives the sandbox the amounts of all containers of the pod, including those created later.
FOR_TWO, FOR_THREE = {'cpu': '2', 'memory': '128Mi'}, {'cpu': '3', 'memory': '128Mi'}


def with_agent(config, socket):
    return {**config, 'agent': {'podResourceAPI': True, 'socket': str(socket)}}


class Cluster:
    """A node whose configuration asks for devices, and whose agent asks a kubelet."""

    def __init__(self, make_node, config, kubelet, start=True, **more):
        self.kubelet = kubelet
        self.node = make_node(None, start=False, **more)
        self.socket = self.node.paths['work'] + '/agent.sock'
        self.config = with_agent(config, self.socket)
        self.node.run('write-config', self.config)
        self.agent = None
        self.stack = contextlib.ExitStack()
        if start:
            self.node.start()
            self.start_agent()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return self.stack.__exit__(*args)

    def start_agent(self):
        self.agent = self.stack.enter_context(Agent(self.socket, self.kubelet.socket))
        self.connected()

    def state(self):
        return (self.node.ctl('status', check=False) or {}).get('agent') or {'connected': None}

    def connected(self, yes=True):
        eventually(lambda: self.state()['connected'] == yes)

    def explain(self, name):
        return '\n'.join(self.node.ctl('explain', name)['trail'])


@pytest.fixture
def kubelet():
    with Kubelet() as k:
        yield k


@pytest.fixture
def cluster(make_node, kubelet):
    with Cluster(make_node, TOPOLOGY_AWARE, kubelet) as c:
        yield c


# ---- where containers go ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('at', range(4))
def test_a_container_goes_to_its_device(cluster, kubelet, at):
    kubelet.pod('default/web', app={NIC: [at]}, side={})
    cluster.node.create('web', ctr('app', '2', '64Mi'), ctr('side', '1', '64Mi'))
    assert cluster.node.cpus('web/app') < NODE[at]
    assert cluster.node.mems('web/app') == {at}
    assert 'the kubelet assigned %s at NUMA nodes %d' % (NIC, at) in cluster.explain('web/app')
    assert kubelet.calls.count(('Get', 'default/web')) == 1


def test_get_that_is_disabled(make_node):
    with Kubelet(get='disabled') as kubelet, Cluster(make_node, TOPOLOGY_AWARE, kubelet) as cluster:
        for at in (3, 1):
            kubelet.pod('default/p%d' % at, app={NIC: [at]})
            cluster.node.create('p%d' % at, ctr('app', '1', '64Mi'))
            assert cluster.node.cpus('p%d/app' % at) < NODE[at]
        assert kubelet.count('List') >= 2


def test_entries_of_a_resource_are_united(cluster, kubelet):
    """Devices at both nodes of a package: it is as near to them as can be."""
    kubelet.pod('default/web', app={NIC: [[2], [3]]})
    cluster.node.create('web', ctr('app', '6', '64Mi'))
    assert cluster.node.cpus('web/app') < NODE[2] | NODE[3]
    assert 'at NUMA nodes 2-3' in cluster.explain('web/app')


@pytest.mark.parametrize('annotations, heeded', [
    ({HINTS: 'pod-resources'}, True), ({HINTS: 'true'}, True), ({HINTS: 'none'}, False), ({HINTS: 'false'}, False),
    ({HINTS: 'mounts, devices'}, False), ({HINTS + '/container.other': 'none'}, True), ({HINTS + '/container.app': 'none'}, False),
    ({'deny.' + HINTS: '{type: prefix, paths: ["podresourceapi:"]}'}, False),
    ({'deny.' + HINTS: '{type: glob, paths: ["podresourceapi:example.com/*"]}'}, False),
    ({'deny.' + HINTS: '{type: prefix, paths: ["podresourceapi:other.com"]}'}, True),
    ({'deny.' + HINTS: '{type: prefix, paths: ["podresourceapi:"]}', 'allow.' + HINTS: '{type: prefix, paths: ["podresourceapi:example.com/nic"]}'}, True),
])
def test_annotations_say_which_hints_count(cluster, kubelet, annotations, heeded):
    # Without hints an exclusive request goes to the emptiest node, the first of those that are wholly free: 1.
    kubelet.pod('default/web', app={NIC: [3]})
    cluster.node.create('web', ctr('app', '2', '64Mi'), annotations=annotations)
    assert cluster.node.cpus('web/app') < NODE[3 if heeded else 1]


def test_a_node_that_the_machine_does_not_have_is_no_hint(cluster, kubelet):
    kubelet.pod('default/web', app={NIC: [9]})
    cluster.node.create('web', ctr('app', '2', '64Mi'), annotations={'strict.' + HINTS: 'true'})
    assert cluster.node.cpus('web/app') < NODE[1]


def test_strict_hints_refuse_what_is_not_near(cluster, kubelet):
    kubelet.pod('default/full', app={NIC: [2]})
    cluster.node.create('full', ctr('app', '3', '64Mi'))
    assert cluster.node.cpus('full/app') < NODE[2]
    kubelet.pod('default/web', app={NIC: [2]})
    error = cluster.node.reject('web', ctr('app', '2', '64Mi'), annotations={'strict.' + HINTS: 'true'})
    assert 'podresourceapi:' + NIC in error
    kubelet.pod('default/lax', app={NIC: [2]})
    cluster.node.create('lax', ctr('app', '2', '64Mi'))


def test_cpus_near_each_device(cluster, kubelet):
    """pick-resources-by-hints: two CPUs near each of two devices, and the memory of both nodes."""
    kubelet.pod('default/web', app={NIC: [1], GPU: [3]})
    cluster.node.create('web', ctr('app', '4', '64Mi'), annotations={'pick-resources-by-hints.resource-policy.nri.io': 'true'})
    cpus = cluster.node.cpus('web/app')
    assert (len(cpus & NODE[1]), len(cpus & NODE[3])) == (2, 2)
    assert cluster.node.mems('web/app') == {1, 3}


# ---- when it does not work ---------------------------------------------------------------------------------------------------

def placed_without(cluster, says, name='web'):
    """It is there, and somebody says why it is not near its device; on a busy machine the reason may come after the container."""
    cluster.node.create(name, ctr('app', '2', '64Mi'))
    text = cluster.explain(name + '/app')
    assert 'devices of its pod are unknown: ' in text
    assert says in text or WAITED in text, text
    eventually(lambda: says in (cluster.state()['last_failure'] or ''))


def test_a_kubelet_that_is_not_there(cluster, kubelet):
    kubelet.stop()
    placed_without(cluster, 'kubelet.sock failed: No such file or directory')
    cluster.node.log('the devices of pod default/web are unknown: .*No such file')
    kubelet.start()
    kubelet.pod('default/next', app={NIC: [3]})
    cluster.node.create('next', ctr('app', '1', '64Mi'))
    assert cluster.node.cpus('next/app') < NODE[3]


def test_a_pod_that_the_kubelet_does_not_know(cluster):
    placed_without(cluster, 'pod web in namespace default not found')


@pytest.mark.parametrize('serve, says', [
    (lambda connection: None, 'no reply in time'),
    (lambda connection: connection.sendall(b'\xff' * 4096), 'violates HTTP/2'),
    (lambda connection: connection.close(), 'kubelet.sock'),
])
def test_what_is_no_kubelet(make_node, serve, says):
    with Odd(serve) as odd, Cluster(make_node, TOPOLOGY_AWARE, odd) as cluster:
        placed_without(cluster, says)
        assert cluster.state()['connected']


def test_an_answer_of_17_mib(make_node):
    with Kubelet(large=17 << 20) as kubelet, Cluster(make_node, TOPOLOGY_AWARE, kubelet) as cluster:
        kubelet.pod('default/web', app={NIC: [3]})
        placed_without(cluster, 'at most 16777216 are accepted')


def test_a_kubelet_that_dies_with_the_question(cluster, kubelet):
    def die(method, request, context):
        """Not with the list that is asked for at first, which may still be under way; and not before the call has ended with it."""
        ended = threading.Event()
        if method == 'Get' and context.add_callback(ended.set):
            kubelet.server.stop(None)
            ended.wait(STOP_S)

    kubelet.before = die
    kubelet.pod('default/web', app={NIC: [3]})
    placed_without(cluster, "the kubelet's Get: ")


def test_an_answer_that_comes_too_late_is_for_the_next_container(cluster, kubelet):
    answer = threading.Event()
    kubelet.before = lambda method, request, context: answer.wait(STOP_S)
    kubelet.pod('default/web', app={NIC: [3]}, more={NIC: [3]})
    cluster.node.create('web', ctr('app', '2', '64Mi'), resources=FOR_THREE)
    assert WAITED in cluster.explain('web/app')
    assert cluster.state()['late'] == 1
    cluster.node.log('default/web/app: placed without its devices')
    answer.set()
    # The agent may have given up by then; whatever came of it, the next one is not kept waiting for the same question.
    eventually(lambda: cluster.state()['pods']['asked'] == 0)
    if cluster.state()['pods']['known']:
        cluster.node.create('web', ctr('more', '1', '64Mi'))
        assert cluster.node.cpus('web/more') < NODE[3]


def test_no_agent_is_said_once_and_costs_nothing(make_node, kubelet):
    cluster = Cluster(make_node, TOPOLOGY_AWARE, kubelet, start=False)
    node = cluster.node
    node.start()
    for i in range(3):
        node.create('p%d' % i, ctr('app', '1', '64Mi'))
        assert 'devices of its pod are unknown: no agent has connected yet' in cluster.explain('p%d/app' % i)
    assert node.read_log().count('no agent is available') == 1
    assert cluster.state()['connected'] is False
    text = str(node.ctl('doctor', check=False))
    assert 'nri-rp-agent' in text and 'no agent has connected yet' in text
    assert kubelet.calls == []


def test_without_the_key_there_is_no_socket(make_node, kubelet):
    node = make_node(TOPOLOGY_AWARE)
    node.create('web', ctr('app', '1', '64Mi'))
    assert node.ctl('status')['agent'] is None
    assert 'devices' not in '\n'.join(node.ctl('explain', 'web/app')['trail'])


def test_an_agent_that_is_killed_and_started_again(cluster, kubelet):
    kubelet.pod('default/web', app={NIC: [3]}, more={NIC: [3]})
    cluster.node.create('web', ctr('app', '1', '64Mi'), resources=FOR_TWO)
    cluster.agent.kill()
    cluster.connected(False)
    cluster.node.log('the agent disconnected')
    # What was learned before is still there …
    cluster.node.create('web', ctr('more', '1', '64Mi'))
    assert cluster.node.cpus('web/more') < NODE[3]
    # … but not what came since, which is learned when it is back.
    kubelet.pod('default/late', app={NIC: [2]}, more={NIC: [2]})
    cluster.node.create('late', ctr('app', '1', '64Mi'), resources=FOR_TWO)
    assert 'the agent disconnected' in cluster.explain('late/app')
    cluster.agent.start()
    cluster.connected()
    eventually(lambda: cluster.state()['pods']['known'] == 2)
    cluster.node.create('late', ctr('more', '1', '64Mi'))
    assert cluster.node.cpus('late/more') < NODE[2]


def test_an_agent_that_dies_while_a_container_waits(cluster, kubelet):
    kubelet.before = lambda method, request, context: cluster.agent.kill()
    kubelet.pod('default/web', app={NIC: [3]})
    placed_without(cluster, 'the agent disconnected')


def test_a_second_agent_is_turned_away(cluster, kubelet):
    with Agent(cluster.socket, kubelet.socket) as second:
        eventually(lambda: 'another agent is connected' in second.read_log())
        assert cluster.state()['connected']
        cluster.agent.kill()
        eventually(lambda: 'connected to nri-rpd' in second.read_log())
        kubelet.pod('default/web', app={NIC: [3]})
        cluster.connected()
        cluster.node.create('web', ctr('app', '1', '64Mi'))
        assert cluster.node.cpus('web/app') < NODE[3]


# ---- life ---------------------------------------------------------------------------------------------------------------------

def test_a_pod_that_ends_is_forgotten(make_node):
    with Kubelet(get='disabled') as kubelet, Cluster(make_node, TOPOLOGY_AWARE, kubelet) as cluster:
        kubelet.pod('default/web-0', app={NIC: [3]})
        cluster.node.create('web-0', ctr('app', '1', '64Mi'))
        assert cluster.node.cpus('web-0/app') < NODE[3]
        cluster.node.delete('web-0')
        assert cluster.state()['pods'] == {'asked': 0, 'known': 0, 'failed': 0}
        kubelet.pod('default/web-0', app={NIC: [1]})
        cluster.node.create('web-0', ctr('app', '1', '64Mi'))
        assert cluster.node.cpus('web-0/app') < NODE[1]


def test_a_restart_keeps_hints_and_places(cluster, kubelet):
    kubelet.pod('default/web', app={NIC: [3]}, more={NIC: [3]})
    cluster.node.create('web', ctr('app', '2', '64Mi'))
    cluster.node.restart()
    cluster.connected()
    cluster.node.expect('moves(app) == 0')
    assert cluster.node.cpus('web/app') < NODE[3]
    # Shrinking and growing places it anew, by hints that nobody has told this daemon.
    kubelet.stop()
    cluster.node.update('web/app', cpu='3', memory='64Mi')
    assert cluster.node.cpus('web/app') < NODE[3]


def test_pods_of_before_are_listed(make_node, kubelet):
    """At a synchronisation, with the agent there before the runtime is."""
    kubelet.pod('default/old', o={NIC: [2]})
    cluster = Cluster(make_node, TOPOLOGY_AWARE, kubelet, start=False,
                      existing=[{'pod': 'old', 'containers': [ctr('o', '2', '64Mi')]}])
    with cluster:
        cluster.node.runtime_stop()
        cluster.node.start(wait=False)
        cluster.start_agent()
        cluster.node.runtime_start()
        cluster.node.connected()
        assert cluster.node.cpus('old/o') < NODE[2]
        assert kubelet.count('List') == 1 and kubelet.count('Get') == 0


def test_a_list_that_does_not_come_delays_no_synchronisation_too_long(make_node):
    with Odd(lambda connection: None) as odd:
        cluster = Cluster(make_node, TOPOLOGY_AWARE, odd, start=False, existing=[{'pod': 'old', 'containers': [ctr('o', '2', '64Mi')]}])
        with cluster:
            cluster.node.runtime_stop()
            cluster.node.start(wait=False)
            cluster.start_agent()
            cluster.node.runtime_start()
            cluster.node.connected()
            cluster.node.log('the devices of pods did not arrive in time')
            assert len(cluster.node.cpus('old/o')) == 2


def test_a_reload_switches_it_on_and_off(make_node, kubelet):
    node = make_node(TOPOLOGY_AWARE)
    socket = node.paths['work'] + '/agent.sock'
    kubelet.pod('default/a', app={NIC: [3]})
    kubelet.pod('default/b', app={NIC: [3]}, more={NIC: [3]})
    node.create('a', ctr('app', '1', '64Mi'))
    assert node.cpus('a/app') < NODE[1]
    node.config(with_agent(TOPOLOGY_AWARE, socket))
    with Agent(socket, kubelet.socket):
        eventually(lambda: node.ctl('status')['agent']['connected'])
        node.create('b', ctr('app', '1', '64Mi'))
        assert node.cpus('b/app') < NODE[3]
        node.config(TOPOLOGY_AWARE)
        assert node.ctl('status')['agent'] is None
        kubelet.calls.clear()
        node.create('b', ctr('more', '1', '64Mi'))
        assert kubelet.calls == []


def test_policies_that_take_no_hints_are_none_the_worse(make_node, kubelet):
    with Cluster(make_node, STATIC, kubelet) as cluster:
        kubelet.pod('default/web', app={NIC: [3]})
        cluster.node.create('web', ctr('app', '2', '64Mi'))
        assert len(cluster.node.cpus('web/app')) == 2


def test_the_sample(make_node, kubelet):
    config = yaml.safe_load((SAMPLES / 'balloons-devices.conf').read_text())
    with Cluster(make_node, config, kubelet) as cluster:
        kubelet.pod('default/g', g0={NIC: [3]})
        kubelet.pod('default/b', b0={NIC: [3]})
        cluster.node.create('g', ctr('g0', '2', '64Mi'))
        assert cluster.node.cpus('g/g0') < NODE[3]
        cluster.node.create('b', ctr('b0', '1/2', '64Mi'))
        assert not cluster.node.cpus('b/b0') & NODE[3]


# ---- balloons -------------------------------------------------------------------------------------------------------------------

NEAR = {'name': 'near', 'preferNewBalloons': True, 'preferSpreadingPods': True, 'preferCloseToDevices': ['podresourceapi:example.com/*'],
        'matchExpressions': [{'key': 'name', 'operator': 'Equals', 'values': ['app']}]}
BALLOONS = {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}, 'allocatorTopologyBalancing': True, 'balloonTypes': [NEAR]}}


@pytest.mark.parametrize('at', range(4))
def test_a_balloon_is_made_near_the_device(make_node, kubelet, at):
    with Cluster(make_node, BALLOONS, kubelet) as cluster:
        kubelet.pod('default/web', app={NIC: [at]})
        cluster.node.create('web', ctr('app', '2', '64Mi'))
        assert cluster.node.cpus('web/app') < NODE[at]
        assert 'near CPUs' in cluster.explain('web/app')


NEAR_STATIC = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}, 'topologyManagerPolicy': 'best-effort',
                                              'relief': {'at': 'admission', 'exclusive': 'all'}}}


def test_relief_leaves_static_containers_at_their_devices(make_node, kubelet):
    """b is near its device, so that d moves for w. v has two CPUs near its device and is not placed elsewhere, although node 1 has four."""
    with Cluster(make_node, NEAR_STATIC, kubelet) as cluster:
        node = cluster.node
        kubelet.pod('default/b', b0={NIC: [1]})
        kubelet.pod('default/v', v0={NIC: [3]})
        for pod, cpu in (('a', '3'), ('b', '2'), ('c', '2'), ('d', '2'), ('e', '2'), ('f', '2')):
            node.create(pod, ctr(pod + '0', cpu, '64Mi'))
        node.delete('c')
        node.delete('e')
        assert node.cpus('b/b0') == {4, 5} and node.cpus('d/d0') < NODE[2]
        node.create('w', ctr('w0', '4', '64Mi'))
        assert node.cpus('b/b0') == {4, 5}
        assert node.cpus('w/w0') == NODE[2]
        node.delete('w')
        node.create('v', ctr('v0', '4', '64Mi'))
        assert node.cpus('v/v0') & NODE[3] == {14, 15} and len(node.cpus('v/v0')) == 4


@pytest.mark.parametrize('annotations, asked', [
    ({HINTS: 'none'}, 0), ({HINTS: 'false'}, 0), ({HINTS: 'mounts,devices'}, 0), ({HINTS + '/pod': '[ mounts ]'}, 0),
    ({HINTS: 'none', HINTS + '/container.app': 'pod-resources'}, 1), ({HINTS: 'mounts, pod-resources'}, 1),
])
def test_who_wants_no_devices_asks_for_none(make_node, annotations, asked):
    with Odd(lambda connection: None) as odd, Cluster(make_node, TOPOLOGY_AWARE, odd) as cluster:
        cluster.node.create('web', ctr('app', '2', '64Mi'), annotations=annotations)
        assert cluster.state()['questions'] == asked
        assert ('devices of its pod are unknown' in cluster.explain('web/app')) == (asked > 0)


def test_only_those_who_want_devices_wait(make_node):
    """One container of a pod wants them: the pod is asked for, and the other one does not wait for the answer."""
    with Odd(lambda connection: None) as odd, Cluster(make_node, TOPOLOGY_AWARE, odd) as cluster:
        cluster.node.create('web', ctr('lax', '2', '64Mi'), ctr('app', '2', '64Mi'), annotations={HINTS + '/container.lax': 'none'})
        assert cluster.state()['questions'] == 1
        assert 'devices of its pod' not in cluster.explain('web/lax')
        assert 'devices of its pod are unknown' in cluster.explain('web/app')


def test_balloons_are_not_made_near_devices_that_are_not_wanted(make_node, kubelet):
    with Cluster(make_node, BALLOONS, kubelet) as cluster:
        kubelet.pod('default/web', app={NIC: [3]})
        cluster.node.create('web', ctr('app', '2', '64Mi'), annotations={HINTS: 'none'})
        assert cluster.node.cpus('web/app') == {8, 9}  # where two CPUs go that are near nothing


def test_a_balloon_without_an_answer_is_made_anyway(make_node):
    with Odd(lambda connection: None) as odd, Cluster(make_node, BALLOONS, odd) as cluster:
        placed_without(cluster, 'no reply in time')
        assert cluster.node.cpus('web/app') == {8, 9}  # where two CPUs go that are near nothing


def test_balloons_grow_near_devices_after_a_restart(make_node, kubelet):
    with Cluster(make_node, BALLOONS, kubelet) as cluster:
        kubelet.pod('default/web', app={NIC: [3]})
        cluster.node.create('web', ctr('app', '2', '64Mi'))
        kubelet.stop()
        cluster.node.restart()
        cluster.connected()
        cluster.node.expect('moves(app) == 0')
        cluster.node.update('web/app', cpu='4', memory='64Mi')
        assert cluster.node.cpus('web/app') == NODE[3]


def test_a_switch_of_policies_knows_the_devices(make_node, kubelet):
    with Cluster(make_node, BALLOONS, kubelet) as cluster:
        kubelet.pod('default/web', app={NIC: [3]})
        cluster.node.create('web', ctr('app', '2', '64Mi'))
        cluster.node.config(with_agent({'resetOnSwitch': True, **TOPOLOGY_AWARE}, cluster.socket))
        assert cluster.node.cpus('web/app') < NODE[3]


# ---- who may be the agent -------------------------------------------------------------------------------------------------------

CONNECT = '''
import os, socket, sys
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(sys.argv[1])
body = bytes.fromhex(sys.argv[3])
try:
    s.sendall(len(body).to_bytes(4, 'big') + bytes([0, 0, 0, 1, 1, 0]) + body)
    sys.exit(0 if s.recv(1) else 3)
except (ConnectionResetError, BrokenPipeError):
    sys.exit(3)
'''
# AgentHost.Register of an agent with the feature pod-resources.
REGISTER = (b'\x0a\x13nri-rp.v1.AgentHost' + b'\x12\x08Register' + b'\x1a\x12' + b'\x0a\x011' + b'\x12\x0dpod-resources').hex()


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root')
@pytest.mark.parametrize('user, admitted', [(65533, True), (65532, False), (0, True)])
def test_only_the_agents_user_may_be_the_agent(make_node, kubelet, user, admitted):
    """Even where everybody may open the socket."""
    cluster = Cluster(make_node, TOPOLOGY_AWARE, kubelet, start=False)
    cluster.config['agent']['user'] = '65533'
    cluster.node.run('write-config', cluster.config)
    cluster.node.start()
    assert stat.S_IMODE(os.stat(cluster.socket).st_mode) == 0o600
    os.chmod(cluster.socket, 0o666)
    for folder in pathlib.Path(cluster.socket).parents:
        if folder.name.startswith('nri-rp-sim'):
            folder.chmod(0o755)
    done = subprocess.run([sys.executable, '-c', CONNECT, cluster.socket, str(user), REGISTER], check=False)
    assert done.returncode == (0 if admitted else 3)
    if not admitted:
        cluster.node.log('user %d: only root and 65533' % user)


AS_USER = ['setpriv', '--reuid=65533', '--regid=65533', '--clear-groups', '--inh-caps=-all,+dac_override', '--ambient-caps=+dac_override',
           '--bounding-set=-all,+dac_override']


@pytest.mark.skipif(os.geteuid() != 0 or subprocess.run([*AS_USER, 'true'], capture_output=True, check=False).returncode != 0,
                    reason='needs root, and to become another user with one capability')
def test_the_agent_is_a_user_with_one_capability(make_node, kubelet):
    """As its unit has it: both sockets, and the folders of both, are root's alone."""
    cluster = Cluster(make_node, TOPOLOGY_AWARE, kubelet, start=False)
    cluster.config['agent']['user'] = '65533'
    cluster.node.run('write-config', cluster.config)
    cluster.node.start()
    os.chmod(kubelet.socket, 0o600)
    with Agent(cluster.socket, kubelet.socket, under=AS_USER):
        cluster.connected()
        kubelet.pod('default/web', app={NIC: [3]})
        cluster.node.create('web', ctr('app', '2', '64Mi'))
        assert cluster.node.cpus('web/app') < NODE[3]
