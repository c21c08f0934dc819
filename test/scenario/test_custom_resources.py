# SPDX-License-Identifier: Apache-2.0
"""Custom resource documents as configuration: whole ones, in drop-ins, beside plain ones; and what is wrong with them."""
import pathlib
import subprocess

import pytest

from simnode import BUILD, STATIC, ctr

BALLOONS = '''apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
metadata: {name: default, namespace: kube-system, labels: {any: thing}}
spec:
  reservedResources: {cpu: "cpuset:0"}
  balloonTypes:
  - name: fast
    minCPUs: 2
    maxCPUs: 4
    namespaces: [web]
'''
TOPOLOGY_AWARE = '''apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
metadata: {name: default}
spec:
  reservedResources: {cpu: "cpuset:0"}
  reservedPoolNamespaces: [monitoring]
status: {whatever: it says}
'''
TEMPLATE = '''apiVersion: config.nri/v1alpha1
kind: TemplatePolicy
spec: {reservedResources: {cpu: "cpuset:0-1"}}
'''


def policy_of(node):
    return node.control('Status')['policy']['name']


def add_drop_in(node, name, text):
    folder = pathlib.Path(node.paths['config'] + '.d')
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def show(node, *options):
    done = subprocess.run([str(BUILD / 'bin/nri-rpctl'), '--socket', node.paths['control'], 'config', 'show', *options],
                          capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.mark.parametrize('text,policy', [(BALLOONS, 'balloons'), (TOPOLOGY_AWARE, 'topology-aware'), (TEMPLATE, 'template')],
                         ids=['balloons', 'topology-aware', 'template'])
def test_the_kind_names_the_policy(make_node, text, policy):
    node = make_node(text)
    assert policy_of(node) == policy
    node.create('p', ctr('c', '1', '64Mi'))
    assert 0 not in node.cpus('p/c')


def test_its_keys_are_in_force(make_node):
    node = make_node(BALLOONS)
    node.create('p', ctr('c', '1', '64Mi'), namespace='web')
    assert len(node.cpus('web/p/c')) == 2, 'minCPUs of the type that the namespace is of'
    node.config(TOPOLOGY_AWARE)
    node.create('m', ctr('c', '100m/200m', '64Mi'), namespace='monitoring')
    assert node.cpus('monitoring/m/c') == {0}


def test_switched_by_another_kind(make_node):
    """From kind to kind and back, with a container running."""
    node = make_node(BALLOONS)
    node.create('p', ctr('c', '2', '64Mi'))
    for text, policy in [(TOPOLOGY_AWARE, 'topology-aware'), (TEMPLATE, 'template'), (BALLOONS, 'balloons')]:
        node.config(text)
        assert policy_of(node) == policy
        node.expect('count(cpus(p/c)) >= 2')
    node.config(STATIC)
    assert policy_of(node) == 'static'


def test_a_drop_in_wins(make_node):
    node = make_node(STATIC, start=False)
    add_drop_in(node, '50-policy.conf', TEMPLATE)
    node.start()
    assert policy_of(node) == 'template'
    node.create('k', ctr('c', '100m/-'), namespace='kube-system')
    assert node.cpus('kube-system/k/c') == {0, 1}
    add_drop_in(node, '60-last-word.conf', 'policy: static\n')
    assert node.reload()['ok']
    assert policy_of(node) == 'static'


def test_documents_in_one_file(make_node):
    """The last word counts; sections of the others wait for their turn."""
    node = make_node(BALLOONS + '---\n' + TEMPLATE + '---\npolicy: static\nstatic: {reservedResources: {cpu: "cpuset:0"}}\n')
    assert policy_of(node) == 'static'
    shown = show(node)
    assert 'balloons:' in shown and 'template:' in shown
    node.config(BALLOONS + '---\n' + TEMPLATE)
    assert policy_of(node) == 'template'


def test_common_parts_go_where_they_belong(make_node):
    node = make_node(BALLOONS + '''  log: {debug: [policy]}
  instrumentation: {reportPeriod: 5s, prometheusExport: false}
  agent: {nodeResourceTopology: false}
  control: {rdt: {enable: false}}
  dra: {enabled: false, sharedCounters: false}
''')
    shown = show(node)
    top = [line.split(':')[0] for line in shown.splitlines() if line and not line.startswith((' ', '#'))]
    assert {'log', 'instrumentation', 'agent', 'dra', 'balloons'} <= set(top)
    section = shown[shown.index('balloons:'):]
    assert 'reportPeriod' not in section.split('\nlog:')[0].split('\ninstrumentation:')[0]
    assert policy_of(node) == 'balloons'


@pytest.mark.parametrize('what,by,words', [
    ('kind: BalloonsPolicy', 'kind: CloudsPolicy', ['rp.conf:2:1: kind', 'no installed module', '"CloudsPolicy"']),
    ('kind: BalloonsPolicy', 'kind: [BalloonsPolicy]', ['rp.conf:2:1: kind', 'expected the kind', 'found a list']),
    ('kind: BalloonsPolicy\n', '', ['kind: expected the kind', 'found nothing']),
    ('apiVersion: config.nri/v1alpha1', 'apiVersion: other/v1', ['rp.conf:1:1: apiVersion', 'expected config.nri/VERSION']),
    ('apiVersion: config.nri/v1alpha1\n', '', ['apiVersion: expected config.nri/VERSION', 'found nothing']),
    ('spec:\n', 'spec: text\nmore:\n', ['spec', 'expected a map']),
    ('    minCPUs: 2', '    minCPU: 2', ['rp.conf:8:5: balloons.balloonTypes[0].minCPU', 'unknown key, did you mean minCPUs?']),
    ('    minCPUs: 2', '    minCPUs: many', ['rp.conf:8:5: balloons.balloonTypes[0].minCPUs', 'expected an integer', '"many"']),
    ('    minCPUs: 2', '    minCPUs: 9', ['balloons.balloonTypes[0]']),
])
def test_what_is_wrong(make_node, what, by, words):
    node = make_node(BALLOONS)
    node.create('p', ctr('c', '2', '64Mi'))
    before = node.places()
    error = node.badconfig(BALLOONS.replace(what, by, 1))
    for word in words:
        assert word in error
    assert policy_of(node) == 'balloons'
    node.settle()
    assert node.places() == before


def test_check_config_says_the_same(make_node, tmp_path):
    """nri-rpd --check-config and a reload read alike."""
    node = make_node(BALLOONS)
    bad = BALLOONS.replace('maxCPUs', 'maxCPU')
    path = tmp_path / 'rp.conf'
    path.write_text(bad)
    done = subprocess.run([str(BUILD / 'bin/nri-rpd'), '--check-config', '--config', str(path), '--module-dir', str(BUILD / 'modules'),
                           '--host-root', node.paths['root']], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 78
    reason = 'balloons.balloonTypes[0].maxCPU: unknown key, did you mean maxCPUs?'
    assert reason in done.stdout + done.stderr
    assert reason in node.badconfig(bad)
    path.write_text(BALLOONS)
    done = subprocess.run([*done.args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- devices ----

def add_device(node, number, folder, cpus, node_id):
    """A device below a bus that says where it is."""
    bus = pathlib.Path(node.paths['root'], 'sys/devices/pci0000:00', folder)
    device = bus / 'device'
    device.mkdir(parents=True)
    (bus / 'numa_node').write_text('%d\n' % node_id)
    (bus / 'local_cpulist').write_text(cpus + '\n')
    link = pathlib.Path(node.paths['root'], 'sys/dev', number)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to('../../devices/pci0000:00/%s/device' % folder)


@pytest.fixture
def with_devices(make_node):
    node = make_node(TOPOLOGY_AWARE, start=False)
    add_device(node, 'block/8:0', '0000:00:1f.2', '12-15', 3)
    add_device(node, 'char/195:0', '0000:00:05.0', '4-7', 1)
    node.start()
    return node


@pytest.mark.parametrize('device,cpus', [
    ({'path': '/dev/sda', 'type': 'b', 'major': 8, 'minor': 0}, set(range(12, 16))),
    ({'path': '/dev/gpu0', 'type': 'c', 'major': 195, 'minor': 0}, set(range(4, 8))),
])
def test_containers_go_to_their_devices(with_devices, device, cpus):
    node = with_devices
    node.create('p', ctr('c', '2', '64Mi', devices=[device]))
    assert node.cpus('p/c') <= cpus


def test_devices_nobody_knows(with_devices):
    node = with_devices
    devices = [{'path': '/dev/x', 'type': 'c', 'major': 10, 'minor': 200}, {'path': '/dev/y', 'type': 'b', 'major': 8, 'minor': 99},
               {'path': '/dev/pipe', 'type': 'p', 'major': 0, 'minor': 0}]
    node.create('p', ctr('c', '2', '64Mi', devices=devices))
    node.create('q', ctr('c', '2', '64Mi', mounts=[{'destination': '/data', 'source': '/no/such/place', 'type': 'bind'}]))
    node.expect('disjoint(p/c, q/c)', 'count(cpus(p/c)) == 2')


def test_a_device_is_remembered(with_devices):
    """After a restart devices are no longer told; the container stays near its own."""
    node = with_devices
    node.create('p', ctr('c', '2', '64Mi', devices=[{'path': '/dev/sda', 'type': 'b', 'major': 8, 'minor': 0}]))
    before = node.places()
    node.kill()
    node.start()
    node.settle()
    assert node.places() == before
