# SPDX-License-Identifier: Apache-2.0
"""How a cluster configures a node: a small API server, a real nri-rp-agent, a real nri-rpd."""
import contextlib
import json
import os
import subprocess
import time

import pytest

from apiserver import ApiServer
from kubelet import Agent
from simnode import BUILD, INSTRUMENTED, ctr, eventually, fast_env

KINDS = {'balloonspolicies': 'BalloonsPolicy', 'topologyawarepolicies': 'TopologyAwarePolicy'}
NS, NODE = 'nri', 'n1'
RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
CRS, MAPS = 'balloonspolicies', 'configmaps'


def balloons(*sizes, **more):
    types = [{'name': 'b%d' % n, 'minCPUs': n, 'maxCPUs': n, 'matchExpressions': [{'key': 'name', 'operator': 'Equals', 'values': ['b%d' % n]}]} for n in sizes]
    return {'spec': {**RESERVED, 'balloonTypes': types, **more}}


class Cluster:
    """A node of a cluster: its API server, its agent, its daemon."""

    def __init__(self, make_node, folder, kinds=None, labels=None, config=None, token=None, topology=True, module_dirs=(), head=None, agent=(), env=None,
                 speed=1, before=None, **user):
        self.api = ApiServer(KINDS if kinds is None else kinds, token)
        self.api.put('nodes', None, NODE, {'metadata': {'labels': dict(labels or {})}})
        self.node = make_node(None, start=False, module_dirs=module_dirs, **(head or {}))
        socket = self.node.paths['work'] + '/agent.sock'
        self.base = {'policy': 'none', **(config or {})}
        self.base['agent'] = {'cluster': True, 'nodeResourceTopology': topology, 'socket': socket, **self.base.get('agent', {})}
        self.node.run('write-config', self.base)
        if before:
            before(self.node)  # changes the machine before the daemon starts
        self.node.start()
        self.options = ['--kubeconfig', self.api.kubeconfig(folder, **user), '--node', NODE, '--namespace', NS, *agent]
        if speed > 1:  # for intervals and delays of the agent
            env = {**(env or os.environ), **fast_env(speed)}
        self.agent = Agent(socket, self.node.paths['work'] + '/no-kubelet.sock', options=self.options, env=env)

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        with contextlib.ExitStack() as stack:
            stack.push(self.api.__exit__)
            stack.push(self.agent.__exit__)
            return stack.__exit__(kind, *rest)

    def reconfigure(self, **agent):
        """Reloads the file with other keys of its part agent."""
        self.base['agent'].update(agent)
        self.node.config(self.base)
        self.node.reload()

    def policy(self):
        return self.node.ctl('status', check=False)['policy']['name']

    def status(self):
        return self.node.ctl('status', check=False)['cluster']

    def findings(self):
        return [f['text'] for f in self.node.ctl('doctor', check=False) if f['check'] == 'cluster']

    def runs(self, policy):
        eventually(lambda: self.policy() == policy)

    def verdict(self, plural=CRS, name='default'):
        return (((self.api.find(plural, NS, name) or {}).get('status') or {}).get('nodes') or {}).get(NODE)

    def has_verdict(self, status, generation, plural=CRS, name='default'):
        def is_there():
            v = self.verdict(plural, name)
            return v and (v['status'], v['generation']) == (status, generation)
        eventually(is_there)
        return self.verdict(plural, name)

    def writes(self, part):
        return [w for w in self.api.writes if part in w[1]]


def memory_of(agent, what='VmRSS'):
    """Bytes that are resident; VmHWM: have been at most."""
    fields = dict(line.split(':', 1) for line in open('/proc/%d/status' % agent.process.pid, encoding='utf-8'))
    return int(fields[what].split()[0]) << 10


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Cluster(make_node, tmp_path, **{'speed': 4, **more}))


def test_created_changed_invalid_deleted(cluster):
    c = cluster()
    assert c.policy() == 'none'
    c.api.put(CRS, NS, 'default', balloons(2))
    c.runs('balloons')
    assert 'errors' not in c.has_verdict('Success', 1)
    c.node.create('web', ctr('c0', '1'))
    shown = c.node.ctl('config', 'show', '--origin')['yaml']
    assert 'BalloonsPolicy nri/default (generation 1)' in shown
    c.api.put(CRS, NS, 'default', {'spec': {**RESERVED, 'balloonTypes': [{'name': 'x', 'minCPUs': 'many'}]}})
    errors = c.has_verdict('Failure', 2)['errors']
    assert errors.startswith('BalloonsPolicy nri/default (generation 2): spec.balloonTypes[0].minCPUs: ') and 'many' in errors
    assert c.policy() == 'balloons' and "refused" in json.dumps(c.node.ctl('status', check=False))
    c.api.put(CRS, NS, 'default', balloons(3))
    assert 'errors' not in c.has_verdict('Success', 3)
    c.api.delete(CRS, NS, 'default')
    eventually(lambda: 'has no configuration' in c.agent.read_log())
    c.runs('none')  # its file again
    c.api.put(CRS, NS, 'default', balloons(2))
    c.runs('balloons')


def test_without_the_right_to_read_nothing_is_taken_for_deleted(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    with c.api.lock:
        c.api.denied |= {CRS}
    c.agent.stop()
    c.agent.start()
    eventually(lambda: 'not all kinds can be read' in c.agent.read_log())
    assert c.policy() == 'balloons'


def test_warnings_are_in_the_status(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2, idleCPUClass='no-such-class'))
    warned = c.has_verdict('Success', 1)
    assert 'no-such-class' in warned['warnings'] and 'errors' not in warned, warned
    c.api.put(CRS, NS, 'default', balloons(2))
    assert 'warnings' not in c.has_verdict('Success', 2)
    c.api.put(CRS, NS, 'default', balloons(2, control={'rdt': {'enable': True}}))
    assert 'rdt is not in controllers' in c.has_verdict('Success', 3)['warnings']


def test_keys_of_the_core_in_a_config_map(cluster):
    """Those that a cluster may set are applied; others, and paths and ports, are left out, and said in the annotation."""
    c = cluster()

    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {
        'policy': 'none', 'calculators': '[batch]', 'metrics': '{collectInterval: 7s, listen: "127.0.0.1:1"}', 'rebalanceInterval': '5m',
        'nodeResources': '{strategy: {enable: true, cpuReclaimThresholdPercent: 50}, file: /etc/passwd}', 'cache': '{dir: /tmp/x}'}})
    eventually(lambda: 'collectInterval: 7s' in c.node.ctl('config', 'show')['yaml'])
    shown = c.node.ctl('config', 'show')['yaml']
    assert 'rebalanceInterval: 5m' in shown and 'cpuReclaimThresholdPercent: 50' in shown and 'batch' in shown
    assert '127.0.0.1:1"' not in shown and '/etc/passwd' not in shown and '/tmp/x' not in shown
    c.runs('none')
    eventually(lambda: any('only rp.conf can set this' in a and 'cache' in a for a in (c.api.find('nodes', None, NODE)['metadata'].get('annotations') or {}).values()))


def test_overcommitment_of_the_cluster_a_group_and_a_node(cluster):
    c = cluster(kinds={})

    def put(name, percent):
        c.api.put(MAPS, NS, 'nri-rp-config.' + name, {'data': {
            'policy': 'none', 'calculators': '[batch]', 'nodeResources': 'strategy: {enable: true, cpuReclaimThresholdPercent: %d}' % percent}})

    def threshold(percent):
        eventually(lambda: 'cpuReclaimThresholdPercent: %d' % percent in c.node.ctl('config', 'show')['yaml'])
    put('default', 50)
    threshold(50)
    put('group.g', 40)
    threshold(50)
    c.api.put('nodes', None, NODE, {'metadata': {'labels': {'config.nri/group': 'g'}}})
    threshold(40)
    put('node.' + NODE, 30)
    threshold(30)
    c.api.delete(MAPS, NS, 'nri-rp-config.node.' + NODE)
    threshold(40)


def test_node_wins_over_group_over_default(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    c.api.put(CRS, NS, 'group.g', balloons(3))
    c.api.put('nodes', None, NODE, {'metadata': {'labels': {'config.nri/group': 'g'}}})
    c.has_verdict('Success', 1, name='group.g')
    eventually(lambda: c.verdict() is None)
    c.api.put(CRS, NS, 'node.' + NODE, balloons(4))
    c.has_verdict('Success', 1, name='node.' + NODE)
    eventually(lambda: c.verdict(name='group.g') is None)
    c.api.delete(CRS, NS, 'node.' + NODE)
    c.has_verdict('Success', 1, name='group.g')
    # a group without an object does not make the node one of the default
    c.api.put('nodes', None, NODE, {'metadata': {'labels': {'resource-policy.nri.io/group': 'nosuch'}}})
    eventually(lambda: 'has no configuration' in c.agent.read_log())
    assert 'obsolete' in c.agent.read_log() and c.verdict() is None


def test_nodes_follow_an_object_by_their_labels(cluster):
    """nodeSelector: before the group's object, behind the node's; of two that match, the one whose name sorts first."""
    c = cluster()

    def labels(**more):
        c.api.put('nodes', None, NODE, {'metadata': {'labels': more}})

    def balloons_for(size, **selector):
        return balloons(size, nodeSelector=selector)
    c.api.put(CRS, NS, 'default', balloons(2))
    c.api.put(CRS, NS, 'group.g', balloons(3))
    c.api.put(CRS, NS, 'canary', balloons_for(4, pool='new', zone='a'))
    c.has_verdict('Success', 1)
    labels(pool='new')
    time.sleep(0.5)
    assert c.verdict(name='canary') is None and c.verdict()
    labels(pool='new', zone='a', **{'config.nri/group': 'g'})
    assert 'warnings' not in c.has_verdict('Success', 1, name='canary')
    eventually(lambda: c.verdict() is None)
    assert 'minCPUs: 4' in c.node.ctl('config', 'show')['yaml'] and c.verdict(name='group.g') is None
    # another one that matches, by name in front of the first
    c.api.put(CRS, NS, 'beta', balloons_for(5, zone='a'))
    c.has_verdict('Success', 1, name='beta')
    assert c.has_verdict('Failure', 1, name='canary')['errors'] == 'not used: BalloonsPolicy nri/beta, whose name sorts first, configures this node'
    c.api.put('topologyawarepolicies', NS, 'alpha', {'spec': {**RESERVED, 'nodeSelector': {'zone': 'a'}}})
    c.runs('topology-aware')
    assert 'TopologyAwarePolicy nri/alpha, whose name' in c.has_verdict('Failure', 1, name='beta')['errors']
    # roll-back, each way: the object is deleted, is for other nodes, loses its selector; the node loses its label
    c.api.delete('topologyawarepolicies', NS, 'alpha')
    c.has_verdict('Success', 1, name='beta')
    c.api.put(CRS, NS, 'beta', balloons_for(5, zone='b'))
    c.has_verdict('Success', 1, name='canary')
    eventually(lambda: c.verdict(name='beta') is None)
    c.api.put(CRS, NS, 'canary', balloons(4))
    c.has_verdict('Success', 1, name='group.g')
    c.api.put(CRS, NS, 'canary', balloons_for(4, pool='new'))
    c.has_verdict('Success', 3, name='canary')
    # the agent finds the same after a restart
    c.agent.stop()
    eventually(lambda: c.verdict(name='canary') is None)
    c.agent.start()
    c.has_verdict('Success', 3, name='canary')
    c.api.put(CRS, NS, 'node.' + NODE, balloons(6))
    c.has_verdict('Success', 1, name='node.' + NODE)
    eventually(lambda: c.verdict(name='canary') is None)
    # an object of the node, of a group or for all can leave nodes out, too
    c.api.put(CRS, NS, 'node.' + NODE, balloons_for(6, zone='c'))
    c.has_verdict('Success', 3, name='canary')
    labels()
    c.has_verdict('Success', 1)


def test_objects_for_other_nodes_cost_no_memory(cluster):
    """40 MB of them; those with the label config.nri/selected=false are not even sent."""
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    before, large = memory_of(c.agent), 'x' * 100000
    for i in range(400):
        c.api.put(CRS, NS, 'other-%d' % i, balloons(3, nodeSelector={'pool': 'p%d' % i}, **({} if i == 7 else {'comment': large})))
    c.api.put(CRS, NS, 'zone', balloons(4, nodeSelector={'zone': 'a'}))
    for labels in ({'zone': 'a'}, {'zone': 'a', 'pool': 'p7'}, {}):
        c.api.put('nodes', None, NODE, {'metadata': {'labels': labels}})
        name = 'other-7' if 'pool' in labels else 'zone' if labels else 'default'
        eventually(lambda n=name: (c.verdict(name=n) or {}).get('status') == 'Success', 60)
    eventually(lambda: INSTRUMENTED or memory_of(c.agent) - before < 8 << 20)
    sent = c.api.sent
    for i in range(100):
        c.api.put(CRS, NS, 'node.other-%d' % i, {**balloons(3, comment=large), 'metadata': {'labels': {'config.nri/selected': 'false'}}})
    c.api.put(CRS, NS, 'default', balloons(3))
    c.has_verdict('Success', 2)
    assert c.api.sent - sent < 1 << 20


def test_too_many_objects_that_select_the_node(cluster):
    c = cluster(labels={'pool': 'new'})
    for i in range(70):
        c.api.put(CRS, NS, 'canary-%02d' % i, balloons(2, nodeSelector={'pool': 'new'}))
    c.has_verdict('Success', 1, name='canary-00')
    eventually(lambda: ['more than 64 objects select node n1 by their nodeSelector' in p for p in c.status()['problems']] == [True])
    for i in range(65):
        c.api.delete(CRS, NS, 'canary-%02d' % i)
    eventually(lambda: (c.verdict(name='canary-65') or {}).get('status') == 'Success', 60)
    eventually(lambda: c.status()['problems'] == [])


def test_objects_with_a_selector_that_cannot_be_listed(cluster):
    """The others configure the node after some failures, and those with a selector once they can be listed."""
    c = cluster(labels={'pool': 'new'})
    c.agent.stop()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.api.put(CRS, NS, 'canary', balloons(3, nodeSelector={'pool': 'new'}))
    c.api.fault(lambda h: h.fail(500, 'no'), times=1 << 30, when=lambda m, p, q: p.endswith(CRS) and '!=' in q.get('fieldSelector', ''))
    c.agent.start()
    c.has_verdict('Success', 1)
    assert CRS + ': objects with a nodeSelector are ignored until they can be listed' in c.agent.read_log()
    with c.api.lock:
        c.api.faults.clear()
    c.has_verdict('Success', 1, name='canary')


def test_a_selector_that_is_no_map_of_labels(cluster):
    """A server without the definition's schema keeps it; no node follows it, and the check of a file says why."""
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    c.api.put(CRS, NS, 'canary', balloons(3, nodeSelector=[1]))
    c.api.put(CRS, NS, 'other', balloons(3, nodeSelector={'pool': 1}))
    c.api.put('nodes', None, NODE, {'metadata': {'labels': {'pool': '1'}}})
    time.sleep(0.5)
    assert c.verdict()['status'] == 'Success' and c.verdict(name='canary') is None and c.verdict(name='other') is None
    file = c.node.paths['work'] + '/canary.yaml'
    for selector, said in (({'pool': 'new'}, ''), ([1], 'spec.nodeSelector: expected a map of labels, found a list')):
        with open(file, 'w', encoding='utf-8') as f:
            json.dump({'apiVersion': 'config.nri/v1alpha1', 'kind': 'BalloonsPolicy', 'metadata': {'name': 'canary'}, **balloons(3, nodeSelector=selector)}, f)
        done = subprocess.run([BUILD / 'bin/nri-rpd', '--check-config', '--config', file, '--module-dir', BUILD / 'modules'], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (not said) and said.replace('spec.', '') in done.stdout + done.stderr, done


def test_kind_is_the_policy(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.runs('balloons')
    c.node.create('web', ctr('c0', '1'))
    c.api.put('topologyawarepolicies', NS, 'default', {'spec': RESERVED})
    c.runs('topology-aware')
    c.has_verdict('Success', 1, plural='topologyawarepolicies')
    # the object that is not used says so, on a change, too
    said = 'not used: TopologyAwarePolicy nri/default, which was created later, configures this node'
    assert c.has_verdict('Failure', 1)['errors'] == said
    assert c.node.cpus('web/c0')
    c.api.put(CRS, NS, 'default', balloons(3))
    assert c.has_verdict('Failure', 2)['errors'] == said
    c.api.delete('topologyawarepolicies', NS, 'default')
    c.runs('balloons')
    c.has_verdict('Success', 2)
    c.api.put('topologyawarepolicies', NS, 'default', {'spec': RESERVED})
    c.has_verdict('Failure', 2)
    c.api.put(CRS, NS, 'node.' + NODE, balloons(4))
    c.has_verdict('Success', 1, name='node.' + NODE)
    eventually(lambda: c.verdict() is None)


def test_objects_in_other_namespaces(cluster):
    """agent.namespaces is read by the agent; those of its own namespace precede."""
    c = cluster(config={'agent': {'cluster': True, 'namespaces': [NS, 'kube-system']}})
    other = 'kube-system'

    def verdict():
        return (((c.api.find(CRS, other, 'default') or {}).get('status') or {}).get('nodes') or {}).get(NODE)
    c.api.put(CRS, other, 'default', balloons(2))
    c.runs('balloons')
    eventually(lambda: (verdict() or {}).get('status') == 'Success')
    c.api.put('topologyawarepolicies', NS, 'default', {'spec': RESERVED})
    c.runs('topology-aware')
    eventually(lambda: 'whose namespace comes first' in (verdict() or {}).get('errors', ''))
    c.api.delete('topologyawarepolicies', NS, 'default')
    c.runs('balloons')
    # without the key the namespace is not read any more
    c.reconfigure(namespaces=[])
    c.runs('none')
    eventually(lambda: verdict() is None)
    c.reconfigure(namespaces=[other])
    c.runs('balloons')


def test_config_map(cluster):
    c = cluster(kinds={})
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'policy': 'balloons', 'balloons': 'reservedResources:\n  cpu: cpuset:0\n'}})
    c.runs('balloons')

    def annotation():
        return ((c.api.find('nodes', None, NODE)['metadata'].get('annotations')) or {}).get('nri-rp/config-status', '')
    eventually(lambda: annotation().startswith('Success nri/nri-rp-config.default'))
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'rp.conf': 'policy: balloons\nballoons: {pinCPU: 7}\n'}})
    eventually(lambda: annotation().startswith('Failure') and 'balloons.pinCPU' in annotation())
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'policy': 'balloons', 'balloons': 'reservedResources:\n  cpu: "1"\npinCPU: 8\n'}})
    eventually(lambda: ':3:1: balloons.pinCPU' in annotation() and '"8"' in annotation())


def test_the_node_is_made_anew(cluster):
    """Its kubelet knows nothing of annotations."""
    c = cluster()

    def said():
        return (c.api.find('nodes', None, NODE) or {'metadata': {}})['metadata'].get('annotations', {}).get('nri-rp/config-status', '')
    c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'policy': 'balloons', 'balloons': json.dumps(RESERVED)}})
    eventually(lambda: said().startswith('Success'))
    c.api.delete('nodes', None, NODE)
    c.api.put('nodes', None, NODE, {'metadata': {}})
    eventually(lambda: said().startswith('Success'))
    assert c.policy() == 'balloons'


def test_file_decides_what_is_taken(cluster):
    c = cluster()
    path = c.node.paths['config']
    with open(path, encoding='utf-8') as f:
        text = f.read()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.runs('balloons')
    closed = text.replace('cluster: true', 'cluster: false').replace('"cluster": true', '"cluster": false')
    assert closed != text
    with open(path, 'w', encoding='utf-8') as f:
        f.write(closed)
    c.node.ctl('reload')
    assert c.policy() == 'none'
    eventually(lambda: 'cannot connect to nri-rpd' in c.agent.read_log())


def test_kept_over_restarts(cluster):
    c = cluster()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.runs('balloons')
    c.has_verdict('Success', 1)
    c.agent.kill()
    assert c.policy() == 'balloons'
    c.node.stop()
    c.node.start()
    assert c.policy() == 'balloons'
    reloads = c.node.ctl('status')['config']['generation']
    c.agent.start()
    eventually(lambda: c.agent.read_log().count('is active') == 2)
    assert c.node.ctl('status')['config']['generation'] == reloads
    # an agent that stops takes away what it said
    c.agent.stop()
    eventually(lambda: c.verdict() is None)
    c.agent.start()
    c.has_verdict('Success', 1)


def test_faults_of_the_server(cluster, tmp_path):
    token = tmp_path / 'token'
    token.write_text('one\n')
    c = cluster(token='one', tokenFile=str(token))
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    with c.api.lock:
        c.api.token = 'two'
    token.write_text('two\n')
    c.api.fault(lambda h: h.fail(429, 'slow down', [('Retry-After', '1')]), 2)
    c.api.fault(lambda h: h.fail(500, 'oops'), 2)
    c.api.compact()
    c.api.put(CRS, NS, 'default', balloons(3))
    c.has_verdict('Success', 2)
    # not JSON, an event that makes no sense, an answer cut off
    c.api.fault(lambda h: h.answer(200, b'{"type":"ADDED","object":7}\n'), when=lambda m, p, q: CRS in p and 'watch' in q)
    c.api.fault(lambda h: h.answer(200, b'no json'), when=lambda m, p, q: CRS in p and 'watch' not in q)
    c.api.compact()
    c.api.put(CRS, NS, 'default', balloons(4))
    c.has_verdict('Success', 3)
    c.api.stop()
    eventually(lambda: 'retrying' in c.agent.read_log())
    c.api.put(CRS, NS, 'default', balloons(5))
    c.api.start()
    c.has_verdict('Success', 4)


def test_rights_that_are_missing(cluster):
    c = cluster()
    with c.api.lock:
        c.api.denied |= {'nodes'}
        c.api.read_only |= {CRS}
    c.agent.stop()
    c.agent.start()
    c.api.put(CRS, NS, 'default', balloons(2))
    c.runs('balloons')
    eventually(lambda: 'nodes is forbidden' in c.agent.read_log() and 'cannot patch' in c.agent.read_log())
    assert c.verdict() is None
    eventually(lambda: len(c.status()['problems']) == 2)
    assert c.status()['connected'] and any('needs {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}: nodes is forbidden' in p for p in c.status()['problems'])
    assert any('resources: [%s/status], verbs: [patch]}' % CRS in p for p in c.status()['problems'])


def test_status(cluster):
    c = cluster()
    eventually(lambda: c.status()['connected'])
    assert (c.status()['node'], c.status()['namespace'], c.status()['configuration']) == (NODE, NS, None)
    c.api.put(CRS, NS, 'default', balloons(2))
    eventually(lambda: c.status()['configuration'] == 'BalloonsPolicy nri/default (generation 1)')
    eventually(lambda: c.status()['published'] and {w['what'] for w in c.status()['written']} >= {'NodeResourceTopology', 'status of the configuration'})
    text = subprocess.run([BUILD / 'bin' / 'nri-rpctl', '--socket', c.node.paths['control'], 'status'], capture_output=True, text=True, check=False).stdout
    assert 'node %s of http://127.0.0.1:%d, configured by BalloonsPolicy nri/default' % (NODE, c.api.port) in text
    assert ', NodeResourceTopology\n' in text
    assert c.findings() == ['node %s is configured by BalloonsPolicy nri/default (generation 1)' % NODE]
    c.api.stop()
    eventually(lambda: not c.status()['connected'])
    assert 'the API server' in c.findings()[0]
    c.api.start()
    eventually(lambda: c.status()['connected'])
    c.agent.kill()
    eventually(lambda: c.status()['error'] == 'no agent of the cluster is connected')
    assert c.status()['configuration']
    c.agent.start()
    eventually(lambda: c.status()['connected'])


def test_many_changes_few_writes(cluster):
    c = cluster(speed=1)
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    before, began = len(c.api.requests), time.monotonic()
    for i in range(200):
        c.api.put(CRS, NS, 'default', balloons(2, idleCPUClass='c%d' % i))
    c.has_verdict('Success', 201)
    seconds = time.monotonic() - began
    assert len(c.api.requests) - before <= 10 + 5 * seconds + 1
    assert len(c.writes('/status')) <= 3 + seconds


def test_what_is_refused(make_node, tmp_path):
    with ApiServer(KINDS) as api:
        node = make_node(None, start=False)
        for user, word in (({'exec': {'command': 'x'}}, 'exec plug-ins'), ({'client-certificate-data': '!!'}, 'base64'),
                           ({'auth-provider': {'name': 'x'}}, 'authentication providers')):
            agent = Agent(node.paths['work'] + '/a.sock', node.paths['work'] + '/k.sock',
                          options=['--kubeconfig', api.kubeconfig(tmp_path, **user), '--node', NODE])
            assert agent.process.wait(20) == 1 and word in agent.read_log()
            agent.log.close()


def test_the_definition_of_zones_is_named_where_it_is_missing(cluster):
    c = cluster()
    with c.api.lock:
        c.api.groups = c.api.groups - {g for g in c.api.groups if 'topology' in g}
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    eventually(lambda: any('noderesourcetopology-api' in p and 'agent.nodeResourceTopology' in p for p in c.status()['problems']))
