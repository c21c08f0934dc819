# SPDX-License-Identifier: Apache-2.0
"""A node of a real API server: nri-rp-agent with the rights of packaging/kubernetes and no others, nri-rpd below a simulated runtime.

NRI_RP_KUBE_ADMIN names a kubeconfig that may do everything, NRI_RP_KUBE_AGENT one of the service account nri-rp/nri-rp-agent, whose rights
are those of `kubectl apply -k build/kubernetes/base` alone, NRI_RP_KUBE_NODE a Node without a kubelet, NRI_RP_KUBE_AUDIT, if there is one, the
server's audit log in JSON; kubectl is $KUBECTL or that of PATH, helm, which may be missing, $HELM or that of PATH.
"""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import pytest
import yaml

import helmchart
from kubelet import Agent
from simnode import BUILD, LEAST, TEST_MODULES, Node, ctr, eventually, fast_daemon, put_machine

ADMIN, AGENT, NODE, AUDIT = (os.environ.get('NRI_RP_KUBE_' + name) for name in ('ADMIN', 'AGENT', 'NODE', 'AUDIT'))
KUBECTL, HELM = (os.environ.get(name.upper()) or shutil.which(name) for name in ('kubectl', 'helm'))
NS = 'nri-rp'
LABEL, TAINT = 'cmk.intel.com/cmk-node', {'key': 'cmk', 'value': 'true', 'effect': 'NoSchedule'}
POOLS = {'policy': 'static-pools', 'static-pools': {'pools': {'shared': {'cpuLists': [{'cpuset': '2-3'}]}}, 'labelNode': True, 'taintNode': True}}

pytestmark = pytest.mark.skipif(not (ADMIN and AGENT and NODE and KUBECTL), reason='needs a cluster: NRI_RP_KUBE_ADMIN, _AGENT, _NODE')


def kubectl(*args, text=None, check=True):
    done = subprocess.run([KUBECTL, '--kubeconfig', ADMIN, *args], input=text, capture_output=True, text=True, timeout=60)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout if check else done


def get(*args):
    return json.loads(kubectl('get', '-o', 'json', *args))


@contextlib.contextmanager
def managed(config, module_dirs=(), topology=False, fast=None):
    daemon = fast and fast_daemon(fast)
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(Node(None, start=False, module_dirs=module_dirs, daemon=daemon))
        socket = node.paths['work'] + '/agent.sock'
        node.run('write-config', {'agent': {'cluster': True, 'nodeResourceTopology': topology, 'socket': socket}, **config})
        node.start()
        stack.enter_context(Agent(socket, node.paths['work'] + '/none.sock', options=['--kubeconfig', AGENT, '--node', NODE, '--namespace', NS]))
        yield node


def problems(node):
    return node.ctl('status', check=False)['cluster']['problems']


def set_config(node, config):
    node.config({'agent': {'cluster': True, 'nodeResourceTopology': False, 'socket': node.paths['work'] + '/agent.sock'}, **config})
    node.reload()


def test_the_node_is_known_and_marked():
    kubectl('label', '--overwrite', 'node', NODE, 'test.example/zone=a')
    kubectl('taint', '--overwrite', 'node', NODE, 'test.example/t=x:PreferNoSchedule')

    def object_():
        return node.ctl('node')['object'] or {}

    def marked():
        at = get('node', NODE)
        taints = [{k: t[k] for k in TAINT if k in t} for t in at['spec'].get('taints', [])]
        return at['metadata']['labels'].get(LABEL) == 'true' and TAINT in taints and any(t['key'] == 'test.example/t' for t in taints)
    with managed(POOLS) as node:
        eventually(marked)
        eventually(lambda: object_().get('labels', {}).get('test.example/zone') == 'a')
        at = get('node', NODE)
        assert object_()['uid'] == at['metadata']['uid'] and set(object_()['capacity']) == set(at['status']['capacity'])
        # somebody takes it away, and adds something
        kubectl('taint', 'node', NODE, 'cmk:NoSchedule-')
        kubectl('label', '--overwrite', 'node', NODE, LABEL + '-', 'test.example/zone=b')
        eventually(marked)
        eventually(lambda: object_()['labels']['test.example/zone'] == 'b')
        set_config(node, {'policy': 'none'})
        eventually(lambda: LABEL not in get('node', NODE)['metadata']['labels'])
        at = get('node', NODE)
        assert [t['key'] for t in at['spec']['taints'] if t['key'] in ('cmk', 'test.example/t')] == ['test.example/t']
        assert 'nri-rp/owned' not in at['metadata'].get('annotations', {})
        assert problems(node) == []
    kubectl('taint', 'node', NODE, 'test.example/t:PreferNoSchedule-')


def test_a_killed_daemon_is_seen_at_the_node():
    away = {'key': 'nri-rp.io/not-ready', 'effect': 'NoSchedule'}

    def seen():
        at = get('node', NODE)
        ready = {c['type']: c['status'] for c in at['status'].get('conditions', [])}.get('NRIResourcePolicyReady')
        return ready, away in [{k: t[k] for k in away if k in t} for t in at['spec'].get('taints', [])]

    def within(seconds, state):
        begin = time.monotonic()
        eventually(lambda: seen() == state, seconds)
        return '%.1f s' % (time.monotonic() - begin)
    with managed({'policy': 'none'}) as node:
        set_config(node, {'policy': 'none', 'agent': {'cluster': True, 'taintWhenAway': True, 'nodeResourceTopology': False,
                                                      'socket': node.paths['work'] + '/agent.sock'}})
        within(20, ('True', False))
        for _ in range(3):
            node.kill()
            killed = within(10, ('False', True))
            node.start()
            print('\ncondition false and taint %s after the kill, condition true without taint %s after the start' % (killed, within(10, ('True', False))))
        assert problems(node) == []


def has_group(group):
    """API servers made for tests have not all of them."""
    return group + '/' in kubectl('api-versions')


def run_pod(name, *containers):
    """A pod that is bound to the node and says that it runs; no kubelet is there to do so."""
    containers = [{'image': 'x', **c} for c in containers] or [{'name': 'c0', 'image': 'x'}]
    pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'namespace': 'default', 'labels': {'app': name}},
           'spec': {'nodeName': NODE, 'tolerations': [{'operator': 'Exists'}], 'containers': containers}}
    kubectl('create', '-f', '-', text=json.dumps(pod))
    pod = get('-n', 'default', 'pod', name)
    pod['status'] = {'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': 'True'}]}
    kubectl('replace', '--raw', '/api/v1/namespaces/default/pods/%s/status' % name, '-f', '-', text=json.dumps(pod))
    return pod['metadata']['uid']


def test_a_refusal_is_seen_at_the_pod():
    pod = 'refused'
    uid = run_pod(pod, *({'name': n, 'resources': {'requests': r, 'limits': r}} for n, r in
                         (('small', {'cpu': '1', 'memory': '64Mi'}), ('c0', {'cpu': '64', 'memory': '64Mi'}))))

    def events():
        return [e for e in get('-n', 'default', 'events')['items'] if e['involvedObject'].get('uid') == uid and e['reason'] == 'PlacementRefused']
    try:
        with managed({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}) as node:
            eventually(lambda: node.ctl('status', check=False)['cluster']['connected'])
            # the pod is known once a container of it runs
            node.create(pod, ctr('small', '1', '64Mi'), uid=uid)
            node.reject(pod, ctr('c0', '64', '64Mi'), uid=uid)
            eventually(events)
            assert problems(node) == []
            if has_group('apps'):  # others cannot select events by their object
                assert 'PlacementRefused' in kubectl('-n', 'default', 'describe', 'pod', pod)
    finally:
        kubectl('-n', 'default', 'delete', '--force', '--grace-period=0', 'pod', pod)


def test_pods_are_told():
    """What a pod asks for is known before a runtime has heard of it: exactly, with what the server fills in."""
    pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'told', 'namespace': 'default'},
           'spec': {'nodeName': NODE, 'tolerations': [{'operator': 'Exists'}], 'initContainers': [{'name': 'setup', 'image': 'x'}],
                    'containers': [{'name': 'app', 'image': 'x', 'resources': {'requests': {'memory': '123456789'}, 'limits': {'cpu': '1500m', 'memory': '200Mi'}}}]}}

    def feed():
        return node.ctl('status', check=False)['pod_feed']
    with managed({'policy': 'qos', 'qos': {'reservedCPUs': '0', 'rampUpSeconds': 0}}) as node:
        eventually(lambda: feed()['current'])
        others = feed()['pods']
        kubectl('create', '-f', '-', text=json.dumps(pod))
        try:
            uid = get('-n', 'default', 'pod', 'told')['metadata']['uid']
            eventually(lambda: feed()['pods'] == others + 1)
            node.create('told', ctr('app', '1500m', '120Mi/200Mi'), uid=uid)
            app = next(c for c in node.ctl('containers') if c['full_name'] == 'default/told/app')
            assert app['wanted'] == {'cpu_request_milli': 1500, 'cpu_limit_milli': 1500, 'memory_request': 123456789, 'memory_limit': 200 << 20}
            assert feed()['by_feed'] == 1 and problems(node) == []
        finally:
            kubectl('-n', 'default', 'delete', '--force', '--grace-period=0', 'pod', 'told')
        eventually(lambda: feed()['pods'] == others)


def policy_version():
    return 'policy/v1' if 'policy/v1\n' in kubectl('api-versions') else 'policy/v1beta1'


@pytest.fixture
def victim():
    if not has_group('policy'):
        pytest.skip('this API server knows of no evictions')
    uid = run_pod('victim')
    budget = {'apiVersion': policy_version(), 'kind': 'PodDisruptionBudget', 'metadata': {'name': 'victim', 'namespace': 'default'},
              'spec': {'minAvailable': 1, 'selector': {'matchLabels': {'app': 'victim'}}}}
    kubectl('create', '-f', '-', text=json.dumps(budget))
    yield uid
    kubectl('-n', 'default', 'delete', '--ignore-not-found', 'pdb', 'victim')
    kubectl('-n', 'default', 'delete', '--ignore-not-found', '--force', '--grace-period=0', 'pod', 'victim')


def test_an_eviction_obeys_the_budget(victim):
    def eviction():
        return next(iter(node.ctl('status', check=False)['evictions']), {})

    def counted():
        status = get('-n', 'default', 'pdb', 'victim').get('status', {})
        return status.get('expectedPods') == status.get('currentHealthy') == 1
    eventually(counted)
    config = {'policy': 'none', 'controllers': {'hand': 'required'}, 'hand': {'evict': 'the node is too hot'}}
    with managed(config, [TEST_MODULES, BUILD / 'modules']) as node:
        node.create('victim', ctr('c0', '1'), uid=victim)
        eventually(lambda: eviction().get('state') == 'refused')
        assert 'disruption budget' in eviction()['answer']
        assert 'deletionTimestamp' not in get('-n', 'default', 'pod', 'victim')['metadata']
        kubectl('-n', 'default', 'delete', 'pdb', 'victim')
        eventually(lambda: eviction().get('state') == 'granted', 40)
        assert 'deletionTimestamp' in get('-n', 'default', 'pod', 'victim')['metadata']
        assert problems(node) == []


BATCH_CPU, OTHERS = 'kubernetes.io/batch-cpu', 'node.koordinator.sh/thirdPartyAllocations'
STRATEGY = {'enable': True, 'metricReportIntervalSeconds': 1, 'cpuReclaimThresholdPercent': 100, 'memoryReclaimThresholdPercent': 100}
LENDING = {'policy': 'none', 'calculators': ['batch'], 'nodeResources': {'least': LEAST, 'strategy': STRATEGY}}


def lent(part='capacity'):
    return int(get('node', NODE)['status'][part].get(BATCH_CPU, '-1').replace('k', '000'))


def milli(text):
    return int(text[:-1]) if text.endswith('m') else 1000 * int(text)


def not_asked_for():
    """What the node has, less what pods on it ask for."""
    pods = [p for p in get('-A', 'pods')['items'] if p['spec'].get('nodeName') == NODE and p['status']['phase'] in ('Pending', 'Running')]
    asked = sum(milli(c.get('resources', {}).get('requests', {}).get('cpu', '0')) for p in pods for c in p['spec']['containers'])
    return milli(get('node', NODE)['status']['allocatable']['cpu']) - asked


def zeroed(resource):
    """As a kubelet does that starts; False: somebody has written in between."""
    at = get('node', NODE)
    at['status']['capacity'][resource] = at['status']['allocatable'][resource] = '0'
    return kubectl('replace', '--raw', '/api/v1/nodes/%s/status' % NODE, '-f', '-', text=json.dumps(at), check=False).returncode == 0


def test_what_is_not_used_is_lent():
    """Batch resources come, follow, lose what others hand out, survive what a starting kubelet does, and go."""
    cpu, others, strategy, config = BATCH_CPU, OTHERS, STRATEGY, LENDING
    allocations = {'allocations': [{'name': 'yarn', 'priority': 'koord-batch', 'resources': {cpu: '500'}}]}
    whole = not_asked_for()
    with managed({'policy': 'none'}) as node:
        put_machine(node)
        set_config(node, config)
        eventually(lambda: lent() == lent('allocatable') == whole)
        node.create('p', ctr('c', '500m', '1Gi'))
        eventually(lambda: lent() == whole - 500)
        kubectl('annotate', '--overwrite', 'node', NODE, others + '=' + json.dumps(allocations))
        eventually(lambda: lent() == whole - 1000)
        kubectl('annotate', 'node', NODE, others + '-')
        eventually(lambda: lent() == whole - 500)
        eventually(lambda: zeroed(cpu))
        eventually(lambda: lent() == lent('allocatable') == whole - 500)
        set_config(node, {**config, 'nodeResources': {'least': LEAST, 'strategy': {**strategy, 'enable': False}}})
        eventually(lambda: lent() == lent('allocatable') == -1)
        assert problems(node) == []


def test_what_cannot_be_measured_is_not_lent():
    """A minute after the last reading, in the daemon's time, and again once there are readings."""
    whole = not_asked_for()
    strategy = {**STRATEGY, 'metricReportIntervalSeconds': 10, 'degradeTimeMinutes': 1}
    with managed({**LENDING, 'nodeResources': {'least': LEAST, 'strategy': strategy}}, fast=30) as node:
        put_machine(node)
        eventually(lambda: lent() == whole)
        stat = pathlib.Path(node.paths['root']) / 'proc/stat'
        good = stat.read_text()
        stat.write_text('garbage\n')
        eventually(lambda: lent() == lent('allocatable') == -1)
        assert 'too old' in node.ctl('node')['resources'][0]['why']
        stat.write_text(good)
        eventually(lambda: lent() == lent('allocatable') == whole)
        assert problems(node) == []


class Meddler(threading.Thread):
    """Somebody who changes the Node many times a second, by a connection of its own."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.over, self.n = False, 0
        self.path = str(folder / 'api')
        self.proxy = subprocess.Popen([KUBECTL, '--kubeconfig', ADMIN, 'proxy', '--unix-socket', self.path], stdout=subprocess.DEVNULL)

    def connect(self):
        eventually(lambda: os.path.exists(self.path))
        connection = http.client.HTTPConnection('localhost', timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.path)
        return connection

    def run(self):
        connection = self.connect()
        while not self.over:
            self.n += 1
            patch = {'metadata': {'annotations': {'test.example/n': str(self.n)}}}
            connection.request('PATCH', '/api/v1/nodes/' + NODE, json.dumps(patch), {'Content-Type': 'application/merge-patch+json'})
            connection.getresponse().read()
            time.sleep(0.03)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()
        self.proxy.terminate()
        self.proxy.wait()
        kubectl('annotate', 'node', NODE, 'test.example/n-', OTHERS + '-')


def refused_writes():
    """The agent's writes of the Node that another came before, by the server's log of requests."""
    lines = [json.loads(line) for line in pathlib.Path(AUDIT).read_text().splitlines()]
    return sum(e['verb'] == 'patch' and 'nri-rp-agent' in e['user']['username'] and e.get('responseStatus', {}).get('code') == 409 for e in lines)


@pytest.mark.skipif(not AUDIT, reason='needs NRI_RP_KUBE_AUDIT, the log of requests of the API server')
def test_others_write_in_between(tmp_path):
    """Writes are refused, and done again with the Node that is there then."""
    whole, before = not_asked_for(), refused_writes()
    with managed(LENDING) as node:
        put_machine(node)
        eventually(lambda: lent() == whole)
        with Meddler(tmp_path) as other:
            for k in range(1, 4):
                node.create('p%d' % k, ctr('c', '200m', '64Mi'))
                allocations = {'allocations': [{'name': 'yarn', 'priority': 'koord-batch', 'resources': {BATCH_CPU: str(200 * k)}}]}
                kubectl('annotate', '--overwrite', 'node', NODE, OTHERS + '=' + json.dumps(allocations))
                eventually(lambda: lent() == lent('allocatable') == whole - 400 * k, 60)
            assert other.n > 50
        eventually(lambda: lent() == whole - 600)
        refused = refused_writes() - before
        print('%d changes by another, %d writes refused' % (other.n, refused))
        assert refused and problems(node) == []
        set_config(node, {'policy': 'none'})
        eventually(lambda: lent() == -1)


def dry_run(documents):
    """Names of what the server would take; an API server without workloads is not asked for them."""
    items = [d for d in documents if d['kind'] != 'DaemonSet' or has_group('apps')]
    return kubectl('apply', '--dry-run=server', '-f', '-', '-o', 'name', text=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': items})).split()


def test_manifests_and_chart_are_accepted():
    """By the server, which checks all of it and keeps nothing."""
    folder = BUILD / 'kubernetes'
    if not (folder / 'chart').is_dir():
        pytest.skip('needs make kubernetes')
    made, switching = (dry_run(list(yaml.safe_load_all(kubectl('kustomize', str(folder / part))))) for part in ('base', 'enable-nri'))
    assert switching == made and len(made) > 15 and ('daemonset.apps/nri-rp' in made) == has_group('apps')
    templates = {f.name: f.read_text() for f in (folder / 'chart' / 'templates').glob('*.yaml')}
    assert templates == {name + '.yaml': helmchart.template(name) for name in helmchart.TEMPLATES}
    for patches in False, True:
        assert set(dry_run(helmchart.render({**helmchart.values(), 'nri': {'runtime': {'patchConfig': patches, 'requirePlugin': False}}}))) < set(made)


@pytest.mark.skipif(not HELM, reason='needs helm')
def test_helm_makes_the_same_of_the_chart():
    def helm(*args):
        return subprocess.run([HELM, *args], capture_output=True, text=True, check=True, timeout=60).stdout

    def sort(documents):
        return sorted(documents, key=lambda d: (d['kind'], d['metadata']['name']))
    chart = BUILD / 'kubernetes' / 'chart'
    helm('lint', '--strict', str(chart))
    version = yaml.safe_load((chart / 'Chart.yaml').read_text())['version']
    for patches in False, True:
        made = yaml.safe_load_all(helm('template', '-n', NS, 'nri-rp', str(chart), '--include-crds', '--set', 'nri.runtime.patchConfig=%s' % json.dumps(patches)))
        made = [d for document in made if document for d in document.get('items', [document])]
        assert dry_run(made)
        ours = helmchart.render({**helmchart.values(version), 'nri': {'runtime': {'patchConfig': patches, 'requirePlugin': False}}})
        assert sort(d for d in made if d['kind'] != 'CustomResourceDefinition') == sort(ours)


def adjustment(name, cpu, **scope):
    return {'apiVersion': 'nri-rp.io/v1alpha1', 'kind': 'Adjustment', 'metadata': {'name': name, 'namespace': NS},
            'spec': {'scope': [{**scope, 'containers': [{'key': 'pod/name', 'operator': 'Equals', 'values': ['web']}]}],
                     'resources': {'requests': {'cpu': cpu}, 'limits': {'cpu': cpu}}}}


def test_adjustments():
    def size():
        return len(node.cpus('default/web/c0'))

    def verdict(name):
        return get('-n', NS, 'adjustment', name).get('status', {}).get('nodes', {}).get(NODE, {})

    def apply(*documents):
        kubectl('apply', '-f', '-', text=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': list(documents)}))
    try:
        with managed({'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}) as node:
            node.create('web', ctr('c0', '2', '64Mi'))
            apply(adjustment('larger', '3', nodes=[NODE]), adjustment('elsewhere', '5', nodes=['other-*']))
            eventually(lambda: size() == 3 and verdict('larger').get('status') == 'Success')
            assert verdict('elsewhere') == {}
            apply(adjustment('another', 4))
            eventually(lambda: 'both another and larger' in verdict('another').get('errors', ''))
            assert size() == 3
            kubectl('-n', NS, 'delete', 'adjustment', 'larger')
            eventually(lambda: size() == 4 and verdict('another') == {'status': 'Success', 'generation': 1})
            assert problems(node) == []
            said = kubectl('apply', '-f', '-', text=json.dumps({**adjustment('odd', 1), 'spec': {'scope': []}}), check=False)
            assert said.returncode and 'resources' in said.stderr
    finally:
        kubectl('-n', NS, 'delete', 'adjustments', '--all')


# ---- configuration ----

GROUP_LABEL = 'config.nri/group'
KINDS = {'topologyawarepolicies': 'TopologyAwarePolicy', 'balloonspolicies': 'BalloonsPolicy'}


def policy(kind, name='default', **spec):
    return {'apiVersion': 'config.nri/v1alpha1', 'kind': kind, 'metadata': {'name': name, 'namespace': NS}, 'spec': {'reservedResources': {'cpu': 'cpuset:0'}, **spec}}


def sized(n, name='default', **spec):
    """A balloon of so many CPUs for the pod web."""
    balloon = {'name': 'web', 'minCPUs': n, 'maxCPUs': n, 'matchExpressions': [{'key': 'pod/name', 'operator': 'Equals', 'values': ['web']}]}
    return policy('BalloonsPolicy', name, balloonTypes=[balloon], **spec)


def apply(*documents, fails=None):
    done = kubectl('apply', '-f', '-', text=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': list(documents)}), check=fails is None)
    assert fails is None or (done.returncode and fails in done.stderr), done


def verdict(plural='balloonspolicies', name='default'):
    return get('-n', NS, plural, name).get('status', {}).get('nodes', {}).get(NODE)


def is_verdict(status, generation, *where):
    eventually(lambda: {k: (verdict(*where) or {}).get(k) for k in ('status', 'generation')} == {'status': status, 'generation': generation}, 40)


@pytest.fixture
def configured():
    """A node with the pod web, and no object left behind."""
    def clean():
        kubectl('-n', NS, 'delete', '--ignore-not-found', ','.join(KINDS), '--all')
        kubectl('label', 'node', NODE, GROUP_LABEL + '-')
    clean()
    with managed({'policy': 'none'}, topology=has_topologies()) as node:
        node.create('web', ctr('c0', '1', '64Mi'))
        yield node
        clean()


def has_topologies():
    return 'topology.node.k8s.io/v1alpha2\n' in kubectl('api-versions')


def runs(node, name, n=None):
    eventually(lambda: node.ctl('status', check=False)['policy']['name'] == name and (n is None or len(node.cpus('default/web/c0')) == n), 40)


def test_a_custom_resource_comes_changes_and_goes(configured):
    node = configured
    apply(sized(2))
    runs(node, 'balloons', 2)
    is_verdict('Success', 1)
    apply(sized(3))
    runs(node, 'balloons', 3)
    is_verdict('Success', 2)
    # what the definition refuses never comes here; what only this node can judge is told in the status
    apply(sized('many'), fails='minCPUs')
    apply(policy('BalloonsPolicy', reservedResources={'cpu': 'cpuset:0-4000'}))
    eventually(lambda: 'spec.reservedResources.cpu' in (verdict() or {}).get('errors', ''))
    assert len(node.cpus('default/web/c0')) == 3
    # another kind is another policy, and the former one's status says so
    apply(policy('TopologyAwarePolicy'))
    runs(node, 'topology-aware')
    is_verdict('Success', 1, 'topologyawarepolicies')
    eventually(lambda: 'not used: TopologyAwarePolicy' in (verdict() or {}).get('errors', ''))
    kubectl('-n', NS, 'delete', ','.join(KINDS), '--all')
    eventually(lambda: node.ctl('status', check=False)['cluster']['problems'] == [])
    # without any object the files of the node count
    eventually(lambda: node.ctl('status', check=False)['policy']['name'] == 'none')


def test_the_group_of_the_node(configured):
    node = configured
    apply(sized(2), sized(3, 'group.large'))
    runs(node, 'balloons', 2)
    kubectl('label', '--overwrite', 'node', NODE, GROUP_LABEL + '=large')
    runs(node, 'balloons', 3)
    is_verdict('Success', 1, 'balloonspolicies', 'group.large')
    eventually(lambda: verdict() is None)
    apply(sized(4, 'node.' + NODE))
    runs(node, 'balloons', 4)
    kubectl('-n', NS, 'delete', 'balloonspolicy', 'node.' + NODE)
    runs(node, 'balloons', 3)
    kubectl('label', 'node', NODE, GROUP_LABEL + '-')
    runs(node, 'balloons', 2)


def test_zones_as_the_scheduler_reads_them(configured):
    if not has_topologies():
        pytest.skip('the cluster has no NodeResourceTopology')
    apply(policy('TopologyAwarePolicy'))
    runs(configured, 'topology-aware')

    def topology():
        return get('noderesourcetopologies', NODE)

    def zones():
        return {z['name']: {r['name']: r['available'] for r in z.get('resources', [])} for z in topology()['zones']}
    eventually(lambda: {'name': 'TopologyPolicy', 'value': 'topology-aware'} in topology()['attributes'])
    before = zones()
    configured.create('more', ctr('c0', '1', '64Mi'))
    eventually(lambda: zones() != before and zones().keys() == before.keys())


def test_many_changes(configured):
    """Five hundred changes: the last one is in force."""
    apply(sized(2))
    is_verdict('Success', 1)
    for i in range(0, 500, 50):
        apply(*(sized(2, idleCPUClass='c%d' % (i + k)) for k in range(50)))
    is_verdict('Success', get('-n', NS, 'balloonspolicies', 'default')['metadata']['generation'])
    assert problems(configured) == []


def test_a_right_is_taken_away(configured):
    """Watches that are open go on; a write is refused at once, and the rule that it needs is shown."""
    role = get('-n', NS, 'role', 'nri-rp-configuration')
    narrow = {**{k: role[k] for k in ('apiVersion', 'kind')}, 'metadata': {k: role['metadata'][k] for k in ('name', 'namespace')},
              'rules': [r for r in role['rules'] if '*/status' not in r['resources']]}
    try:
        kubectl('replace', '-f', '-', text=json.dumps(narrow))
        apply(sized(3))
        runs(configured, 'balloons', 3)
        eventually(lambda: any('needs {apiGroups: ["config.nri"], resources: [balloonspolicies/status], verbs: [patch]}' in p for p in problems(configured)))
        assert verdict() is None
    finally:
        kubectl('replace', '-f', '-', text=json.dumps({**narrow, 'rules': role['rules']}))
