# SPDX-License-Identifier: Apache-2.0
"""nri-rpctl try: where a pod would go. What it says has to be what becomes of the pod, and nothing may come of the question.

n4c16 has four NUMA nodes of four CPUs, 4n to 4n+3, two a package; CPU 0 is reserved.
"""
import json

import pytest
import yaml

from operator_tools import FAILED, OK, USAGE, ctl, ctl_json
from simnode import STATIC, cpuset, ctr
from test_controllers import add_resctrl, put

TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'packing': 'balanced', 'reservedResources': {'cpu': 'cpuset:0'}}}
BALLOONS = {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'},
                                               'balloonTypes': [{'name': 'own', 'preferNewBalloons': True, 'namespaces': ['default']}]}}


def container(name, cpu=None, memory=None, **more):
    both = {k: v for k, v in (('cpu', cpu), ('memory', memory)) if v}
    return {'name': name, 'resources': {'requests': both, 'limits': both} if both else {}, **more}


@pytest.fixture
def manifest(tmp_path):
    def write(*containers, name='web', namespace='default', init=(), annotations=None):
        path = tmp_path / 'pod.yaml'
        path.write_text(yaml.safe_dump({
            'apiVersion': 'v1', 'kind': 'Pod',
            'metadata': {'name': name, 'namespace': namespace, 'annotations': annotations or {}},
            'spec': {'initContainers': list(init), 'containers': list(containers)}}))
        return str(path)
    return write


def tried(node, path):
    doc = ctl_json(node, 'try', path)
    assert doc['outcome'] == 'accepted' and doc['error'] is None
    return {m['container']: m for m in doc['moves']}


@pytest.mark.parametrize('config', [TOPOLOGY_AWARE, STATIC, BALLOONS], ids=lambda c: c['policy'])
def test_as_it_will_be(make_node, manifest, config):
    node = make_node(config)
    node.create('busy', ctr('one', '2', '64Mi'), ctr('two', '100m/1', '64Mi'))
    path = manifest(container('app', '3', '64Mi'), container('side', '500m', '64Mi'))
    said = tried(node, path)
    assert set(said) >= {'default/web/app', 'default/web/side'}
    before = ctl_json(node, 'containers')
    node.create('web', ctr('app', '3', '64Mi'), ctr('side', '500m', '64Mi'))
    after = {c['full_name']: (c['cpus'] or '', c['mems'] or '') for c in ctl_json(node, 'containers')}
    assert {n: (m['to_cpus'] or '', m['to_mems'] or '') for n, m in said.items()} == {n: after[n] for n in said}
    # who is not named has not moved
    assert all(after[c['full_name']] == (c['cpus'] or '', c['mems'] or '') for c in before if c['full_name'] not in said)


def test_nothing_comes_of_it(make_node, manifest):
    node = make_node(TOPOLOGY_AWARE)
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('e', ctr('e0'))
    node.updates()
    before, places = ctl_json(node, 'containers'), node.places()
    path = manifest(container('app', '4', '64Mi'))
    for _ in range(3):
        assert tried(node, path)['default/web/app']['to_cpus'] == '12-15'  # e0 is in node 2, a0 in node 1
    node.settle()
    assert ctl_json(node, 'containers') == before and node.places() == places and node.updates() == []
    assert 'web' not in ctl(node, 'events').out
    node.restart()
    assert node.places() == places
    node.create('b', ctr('b0', '4', '64Mi'))
    assert node.cpus('b/b0') == {12, 13, 14, 15}


def test_why(make_node, manifest):
    node = make_node(TOPOLOGY_AWARE)
    path = manifest(container('app', '2', '64Mi'), container('side', '200m', '64Mi'))
    said = tried(node, path)
    assert said['default/web/app']['to_cpus'] == '4-5' and said['default/web/app']['to_mems'] == '1'
    assert said['default/web/app']['from_cpus'] is None
    assert any('2 exclusive CPUs' in line for line in said['default/web/app']['why'])
    assert any('less than one CPU: shared CPUs' in line for line in said['default/web/side']['why'])
    done = ctl(node, 'try', path)
    assert done.code == OK and done.out.startswith('Would be placed:')
    assert 'default/web/app' in done.out and '4-5' in done.out and 'exclusive CPUs 4-5' in done.out


def test_others_that_would_move(make_node, manifest):
    """Three of the four CPUs of node 1 go; who shares there is left the last one."""
    node = make_node(TOPOLOGY_AWARE)
    for i in range(4):
        node.create('s%d' % i, ctr('s'))
    assert [node.cpus('s%d/s' % i) for i in range(4)] == [{4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}, {1, 2, 3}]
    said = tried(node, manifest(container('app', '3', '64Mi')))
    assert {n: (m['from_cpus'] or '', m['to_cpus']) for n, m in said.items()} == {
        'default/web/app': ('', '4-6'), 'default/s0/s': ('4-7', '7')}
    assert said['default/s0/s'].get('why') is None
    assert node.cpus('s0/s') == {4, 5, 6, 7}


def test_huge_pages_that_are_no_pages(make_node):
    """The message names the container, or the pod."""
    node = make_node(TOPOLOGY_AWARE)
    limits = {'limits': {'hugepages-2Mi': '3Mi'}}
    for whose, spec in (('the pod', {'containers': [{'name': 'app'}], 'resources': limits}), ('container app', {'containers': [{'name': 'app', 'resources': limits}]})):
        done = ctl(node, 'try', '-', input=yaml.safe_dump({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'web'}, 'spec': spec}))
        assert done.code == FAILED and whose + ': hugepages-2Mi: expected a multiple of the page size' in done.out + done.err, done


def test_init_containers_make_room(make_node, manifest):
    """15 CPUs, twice: one after the other they fit, a sidecar and the rest do not."""
    node = make_node(TOPOLOGY_AWARE)
    first = container('prepare', '15', '64Mi')
    said = tried(node, manifest(container('app', '15', '64Mi'), init=[first]))
    assert said['default/web/prepare']['to_cpus'] == said['default/web/app']['to_cpus'] == '1-15'
    done = ctl(node, 'try', manifest(container('app', '15', '64Mi'), init=[{**first, 'restartPolicy': 'Always'}]))
    assert done.code == FAILED and 'default/web/app' in done.out + done.err


def test_a_pod_that_would_be_refused(make_node, manifest):
    node = make_node(TOPOLOGY_AWARE)
    node.create('a', ctr('a0', '8', '64Mi'))
    path = manifest(container('app', '8', '64Mi'))
    done = ctl(node, 'try', path)
    assert done.code == FAILED and done.out.startswith('Refused: ')
    doc = ctl_json(node, 'try', path, code=FAILED)
    assert doc['outcome'] == 'refused' and 'default/web/app' in doc['error'] and '7000m of its shared CPUs are available' in doc['error']
    assert 'default/web/app' in node.reject('web', ctr('app', '8', '64Mi'))


def test_annotations_and_namespaces_count(make_node, manifest):
    node = make_node(TOPOLOGY_AWARE)
    said = tried(node, manifest(container('app', '1', '64Mi'), namespace='kube-system', name='proxy'))
    assert said['kube-system/proxy/app']['to_cpus'] == '0'
    said = tried(node, manifest(container('app', '1', '64Mi'), annotations={'prefer-shared-cpus.resource-policy.nri.io/pod': 'true'}))
    assert said['default/web/app']['to_cpus'] == '4-7'
    said = tried(node, manifest(container('app', '1', '64Mi'), annotations={'prefer-reserved-cpus.resource-policy.nri.io/container.app': 'true'}))
    assert said['default/web/app']['to_cpus'] == '0'


def test_a_deployment(make_node, tmp_path):
    node = make_node(TOPOLOGY_AWARE)
    path = tmp_path / 'deployment.yaml'
    path.write_text('kind: Deployment\nmetadata: {name: shop, namespace: prod}\nspec:\n  template:\n    spec:\n      containers:\n'
                    '      - name: c\n        resources: {limits: {cpu: 2, memory: 64Mi}}\n')
    assert tried(node, str(path))['prod/shop/c']['to_cpus'] == '4-5'


def deployment(name, replicas, cpu, kind='Deployment'):
    pod = {'spec': {'containers': [container('c', cpu, '64Mi')]}}
    return {'kind': kind, 'metadata': {'name': name}, 'spec': {'replicas': replicas, 'template': pod}}


def test_replicas_one_after_the_other(make_node):
    node = make_node(TOPOLOGY_AWARE)
    done = ctl(node, 'try', '-', '--json', input=yaml.safe_dump(deployment('shop', 3, '4')))
    said = {m['container']: m['to_cpus'] for m in json.loads(done.out)['moves']}
    assert done.code == OK and said == {'default/shop-0/c': '4-7', 'default/shop-1/c': '8-11', 'default/shop-2/c': '12-15'}
    # the fourth finds three CPUs: where the others are is told all the same
    done = ctl(node, 'try', '-', input=yaml.safe_dump(deployment('shop', 5, '4', 'StatefulSet')))
    assert done.code == FAILED and 'StatefulSet default/shop: 3 of 5 replicas fit; the next is refused: ' in ' '.join(done.out.split())
    assert 'Would be placed before it' in done.out and 'default/shop-2/c' in done.out and 'default/shop-3/c  ' not in done.out


def test_a_list_and_documents(make_node, tmp_path):
    node = make_node(TOPOLOGY_AWARE)
    job = {'kind': 'CronJob', 'metadata': {'name': 'nightly'},
           'spec': {'jobTemplate': {'spec': {'template': {'spec': {'containers': [container('c', '1', '64Mi')]}}}}}}
    documents = [{'kind': 'List', 'items': [{'kind': 'ConfigMap', 'metadata': {'name': 'web'}}, deployment('a', 1, '2', 'DaemonSet')]}, None, job]
    path = tmp_path / 'all.yaml'
    path.write_text(yaml.safe_dump_all(documents))
    doc = ctl_json(node, 'try', path)
    assert {m['container']: m['to_cpus'] for m in doc['moves']} == {'default/a/c': '4-5', 'default/nightly/c': '8'}
    assert doc['problems'] == ['warning: ConfigMap web has no pods']


def test_templates_that_are_no_pods(make_node, tmp_path):
    """What has a template of something else is left out with a warning; what has one of a pod is placed, whatever its kind."""
    node = make_node(TOPOLOGY_AWARE)
    documents = [{'kind': 'VirtualMachine', 'metadata': {'name': 'vm'}, 'spec': {'template': {'spec': {'domain': {'cpu': {'cores': 2}}}}}},
                 {'kind': 'Workflow', 'metadata': {'name': 'w'}, 'spec': {'template': {'spec': {'containers': ['a']}}}},
                 {'kind': 'Reporter', 'metadata': {'name': 'r'}, 'spec': {'containers': 3}},
                 deployment('a', 1, '2'), deployment('own', 1, '1', 'Rollout')]
    path = tmp_path / 'all.yaml'
    path.write_text(yaml.safe_dump_all(documents))
    doc = ctl_json(node, 'try', path)
    assert {m['container'] for m in doc['moves']} == {'default/a/c', 'default/own/c'}
    assert doc['problems'] == ['warning: VirtualMachine vm has no pods', 'warning: Workflow w has no pods', 'warning: Reporter r has no pods']


def test_pods_that_have_ended(make_node, tmp_path):
    """They take no CPUs: the pod that runs finds room that they would have taken."""
    node = make_node(TOPOLOGY_AWARE)

    def pod(name, cpu, phase):
        return {'kind': 'Pod', 'metadata': {'name': name}, 'spec': {'containers': [container('c', cpu, '64Mi')]}, 'status': {'phase': phase}}
    job = {'kind': 'Job', 'metadata': {'name': 'job'}, 'spec': {'template': {'spec': {'containers': [container('c', '12', '64Mi')]}}},
           'status': {'conditions': [{'type': 'Complete', 'status': 'True'}]}}
    path = tmp_path / 'all.json'
    path.write_text(json.dumps({'kind': 'List', 'items': [pod('done', '12', 'Succeeded'), pod('failed', '12', 'Failed'), job, pod('run', '8', 'Running')]}))
    doc = ctl_json(node, 'try', path)
    assert [m['container'] for m in doc['moves']] == ['default/run/c'] and doc['outcome'] == 'accepted'
    assert doc['problems'] == ['warning: Pod done has ended', 'warning: Pod failed has ended', 'warning: Job job has ended']


def test_resources_of_the_pod(make_node, tmp_path):
    """They make it Guaranteed, and are the limit of the container that has none; so the kubelet has it."""
    node = make_node(TOPOLOGY_AWARE)
    path = tmp_path / 'pod.yaml'
    path.write_text(yaml.safe_dump({'kind': 'Pod', 'metadata': {'name': 'web'}, 'spec': {
        'resources': {'limits': {'cpu': '2', 'memory': '64Mi'}}, 'containers': [container('c')]}}))
    assert tried(node, path)['default/web/c']['to_cpus'] == '4-5'


POD_OF_FOUR = {'kind': 'Pod', 'metadata': {'name': 'app'}, 'spec': {
    'resources': {'requests': {'cpu': '4', 'memory': '1Gi'}, 'limits': {'cpu': '4', 'memory': '1Gi'}},
    'containers': [container('main', '2', '512Mi'), container('log'), container('proxy'), {'name': 'part', 'resources': {'requests': {'cpu': '1'}}}]}}
PLUS = {'policy': 'static-plus', 'static-plus': {'reservedResources': {'cpu': 'cpuset:0'}}}
CPUSET = {'policy': 'cpuset'}


def own_of(doc, name):
    """CPUs that no other container of the answer runs on."""
    sets = {m['container']: cpuset(m['to_cpus']) for m in doc['moves']}
    return sets[name] - set().union(*(s for n, s in sets.items() if n != name))


@pytest.mark.parametrize('config', [TOPOLOGY_AWARE, STATIC, PLUS, CPUSET], ids=lambda c: c['policy'])
def test_a_pod_of_four_gets_four_at_most(make_node, tmp_path, config):
    """main alone has a request that is its own limit; the others, whose limit is the pod's, share. The same comes of the pod itself."""
    node = make_node(config)
    path = tmp_path / 'pod.yaml'
    path.write_text(yaml.safe_dump(POD_OF_FOUR))
    doc = ctl_json(node, 'try', path)
    assert len(own_of(doc, 'default/app/main')) == 2
    why = {m['container']: ' '.join(m['why']) for m in doc['moves']}
    assert 'its pod has pod-level resources, 4000m CPU; the container itself requests 0m' in why['default/app/proxy']
    apart = config['policy'] == 'topology-aware'  # puts containers that share into different nodes while those have room
    assert apart or not any(own_of(doc, 'default/app/' + n) for n in ('log', 'proxy', 'part'))
    node.create('app', ctr('main', '2', '512Mi'), ctr('log'), ctr('proxy'), ctr('part', '1/-'), resources={'cpu': '4', 'memory': '1Gi'})
    after = {c['full_name']: c['cpus'] or '' for c in ctl_json(node, 'containers')}
    assert {m['container']: m['to_cpus'] for m in doc['moves']} == after


def test_init_containers_and_sidecars(make_node, manifest):
    """An init container ends before the next one is created, a sidecar stays: 4 CPUs of the sidecar and 4 of the app are apart."""
    node = make_node(STATIC)
    init = [container('init1', '8', '64Mi'), container('side', '4', '64Mi', restartPolicy='Always'), container('init3', '6', '64Mi')]
    doc = ctl_json(node, 'try', manifest(container('app', '4', '64Mi'), init=init))
    sets = {m['container']: cpuset(m['to_cpus']) for m in doc['moves']}
    assert {n.rpartition('/')[2]: len(s) for n, s in sets.items()} == {'init1': 8, 'side': 4, 'init3': 6, 'app': 4}
    assert not sets['default/web/side'] & (sets['default/web/app'] | sets['default/web/init3'])


def test_huge_pages(make_node, manifest, tmp_path):
    """Two nodes have six pages, and one container of that size leaves two nodes with four each."""
    node = make_node(STATIC, machine={'base': 'n4c16', 'hugepages': {'1Gi': 4}})
    app = {'name': 'app', 'resources': {'limits': {'cpu': '1', 'memory': '64Mi', 'hugepages-1Gi': '9Gi'}}}
    node.create('busy', ctr('a', '1', '64Mi', hugepages={'1GB': 8 << 30}))
    done = ctl(node, 'try', manifest(app))
    assert done.code == FAILED and 'hugepages-1Gi: memory nodes 0-3 have 8 pages left, 9 are requested' in done.out + done.err
    app['resources']['limits']['hugepages-1Gi'] = '8Gi'
    assert 'default/web/app' in tried(node, manifest(app))
    # those of the pod itself count once
    both = {'cpu': '2', 'memory': '128Mi', 'hugepages-1Gi': '9Gi'}
    path = tmp_path / 'own.yaml'
    for pages, code in (('9Gi', FAILED), ('8Gi', OK)):
        both['hugepages-1Gi'] = pages
        path.write_text(yaml.safe_dump({'kind': 'Pod', 'metadata': {'name': 'own'}, 'spec': {
            'resources': {'limits': both}, 'containers': [container('a', '1', '64Mi'), container('b', '1', '64Mi')]}}))
        assert ctl(node, 'try', path).code == code


@pytest.mark.parametrize('text, says', [
    ('', 'it is empty'), ('- 1\n', ':1:1: '), ('spec: {containers: [{image: x}]}\n', 'without a name'),
    ('spec: {containers: [{name: a, resources: {requests: {cpu: lots}}}]}\n', '"lots" is not an amount'), ('kind: Pod\n', 'no spec.containers'),
    ('kind: Service\nmetadata: {name: web}\n', 'it contains no pod: Service web has no pods'),
    ('spec: {containers: [{name: a, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}\n', 'container a: it requests 2 of cpu, which is above its limit of 1'),
])
def test_what_is_no_pod(make_node, tmp_path, text, says):
    node = make_node(TOPOLOGY_AWARE)
    path = tmp_path / 'pod.yaml'
    path.write_text(text)
    done = ctl(node, 'try', path)
    assert done.code == FAILED and says in done.out + done.err and 'pod.yaml' in done.out + done.err


def test_no_file(make_node, tmp_path):
    node = make_node(TOPOLOGY_AWARE)
    done = ctl(node, 'try', tmp_path / 'none.yaml')
    assert done.code == FAILED and 'No such file' in done.err
    assert ctl(node, 'try').code == USAGE


def test_without_a_policy_nobody_decides(make_node, manifest):
    node = make_node({'policy': 'none'})
    said = tried(node, manifest(container('app', '2', '64Mi')))
    assert said['default/web/app']['to_cpus'] is None and said['default/web/app']['to_mems'] is None


def test_one_of_that_name_is_there(make_node, manifest):
    """It would be replaced, so that its CPUs count as free."""
    node = make_node(STATIC)
    node.create('web', ctr('app', '12', '64Mi'))
    assert tried(node, manifest(container('app', '12', '64Mi')))['default/web/app']['to_cpus'] == '4-15'
    assert len(node.cpus('web/app')) == 12


def test_controllers_are_asked(make_node, manifest):
    """What they would set is said, and nothing of it is; who has to agree refuses, who need not does nothing for it."""
    rdt = {'partitions': {'p': {'l3Allocation': '100%', 'classes': {'gold': {'l3Allocation': '80%'}, 'bronze': {'l3Allocation': '20%'}}}}}
    qos = {'classes': [{'name': 'capped', 'swapLimitRatio': 0.5}]}
    key = 'rdtclass.resource-policy.nri.io'

    def node_with(mode):
        node = make_node({**TOPOLOGY_AWARE, 'controllers': {'rdt': mode, 'memory': mode}, 'rdt': rdt, 'memory': qos}, start=False)
        add_resctrl(node)
        put(node, 'sys/fs/cgroup/cgroup.controllers', 'cpu io memory\n')
        node.start()
        return node
    node = node_with('optional')
    annotations = {key: 'gold', 'class.memory-qos.nri.io': 'capped'}
    path = manifest(container('app', '2', '64Mi'), annotations=annotations)
    said = tried(node, path)['default/web/app']['why']
    assert 'RDT class gold, from annotation ' + key in said
    assert any(line.startswith('would be set: ') and 'memory.swap.max = max' in line for line in said), said
    silver = manifest(container('app', '2', '64Mi'), annotations={key: 'silver'})
    refused = ctl(node, 'try', silver)
    assert refused.code == FAILED and 'controller rdt: ' in refused.out and 'unknown RDT class "silver"' in refused.out
    assert 'unknown RDT class "silver"' in node.reject('web', ctr('app', '2', '64Mi'), annotations={key: 'silver'})
    assert not [e for e in ctl_json(node, 'containers')]
    node.create('web', ctr('app', '2', '64Mi'), annotations=annotations)
    given = node.container('web/app')['given']
    assert 'memory.swap.max' in json.dumps(given)
    node = node_with('relaxed')
    path = manifest(container('app', '2', '64Mi'), annotations={key: 'silver'})
    assert any('controller rdt does not apply its settings: ' in line for line in tried(node, path)['default/web/app']['why'])
    node.create('web', ctr('app', '2', '64Mi'), annotations={key: 'silver'})
    assert 'controller rdt does not apply its settings: ' in ctl(node, 'explain', 'web').out


def test_plan_tells_classes(make_node, tmp_path):
    """What containers would be given besides CPUs and memory nodes; who has it already is not named."""
    def config(name):
        return {'policy': 'dynamic-pools', 'dynamic-pools': {'reservedResources': {'cpu': 'cpuset:0-1'},
                                                             'dynamicPoolTypes': [{'name': 'p', 'namespaces': ['default'], 'cpuClass': name}]}}
    node = make_node(config('slow'))
    node.create('web', ctr('app', '500m/1', '64Mi/128Mi'))
    path = tmp_path / 'next.conf'
    for name, classes in (('slow', []), ('fast', ['default/web/app: CPU class slow → fast'])):
        path.write_text(yaml.safe_dump(config(name)))
        doc = ctl_json(node, 'plan', str(path))
        assert doc['classes'] == classes and doc['moves'] == []
        assert 'metrics.listen: "" → (not set)' in doc['changes'], 'an empty text is seen'
    out = ctl(node, 'plan', str(path)).out
    assert '0 containers would move' in out and 'Classes' in out and 'CPU class slow → fast' in out
