# SPDX-License-Identifier: Apache-2.0
"""What the node has to lend, from the machine's files to `nri-rpctl node`."""
import json
import pathlib
import subprocess

import pytest

from operator_tools import free_port, http_get
from simnode import BUILD, LEAST, SimError, ctr, eventually, fast_daemon, put_machine
from test_controllers import add_cgroup

GIB = 1 << 30


def config(**strategy):
    return {'policy': 'none', 'calculators': ['batch', 'mid'],
            'nodeResources': {'least': LEAST, 'strategy': {'enable': True, 'metricReportIntervalSeconds': 1, 'cpuReclaimThresholdPercent': 100,
                                           'memoryReclaimThresholdPercent': 100, **strategy},
                              'node': {'reserved': {'cpu': 2}}}}


@pytest.fixture
def lend(make_node):
    def make(conf):
        node = make_node(conf, start=False)
        put_machine(node)
        node.start()
        return node
    return make


def values(node):
    return {r['name']: r.get('value') for r in node.ctl('node').get('resources', [])}


def test_what_is_not_used_is_lent(lend):
    address = '127.0.0.1:%d' % free_port()
    node = lend({**config(), 'metrics': {'listen': address}})
    node.create('p', ctr('c', '3', '1Gi'))
    # 16 CPUs less 2 that are reserved and 3 that are asked for and were not measured; 8 GiB less 2 that are used and 1 that is asked for
    eventually(lambda: values(node).get('kubernetes.io/batch-cpu') == 11000)
    doc = node.ctl('node')
    memory = next(r for r in doc['resources'] if r['name'] == 'kubernetes.io/batch-memory')
    assert memory['value'] == memory['written'] == 5 * GIB
    assert 'system %d' % (2 * GIB) in memory['why'] and 'high-priority usage %d' % GIB in memory['why']
    assert 'nri_rp_node_resource{resource="kubernetes.io/batch-cpu",unit="milli-CPU"} 11000' in http_get(address, '/metrics').body.decode()
    assert {c['name']: c['running'] for c in doc['calculators']} == {'batch': True, 'mid': True}


def test_batch_pods_are_not_counted(lend):
    node = lend(config())
    node.create('p', ctr('c', '3', '1Gi'), labels={'koordinator.sh/priority-class': 'koord-batch'})
    eventually(lambda: values(node).get('kubernetes.io/batch-cpu') == 14000)


def test_reclaimed_cpu_and_memory(lend):
    """Both are lent, so that a pod of Katalyst that requests both can be scheduled."""
    node = lend({**config(), 'calculators': ['reclaimed'], 'reclaimed': {'reserveMemory': '2Gi'}})
    eventually(lambda: len([v for v in values(node).values() if v]) == 2)
    memory = next(r for r in node.ctl('node')['resources'] if r['name'] == 'resource.katalyst.kubewharf.io/reclaimed_memory')
    assert memory['written'] == memory['value'] == 8 * GIB - 2 * GIB - 2 * GIB and 'reserve %d - usage %d' % (2 * GIB, 2 * GIB) in memory['why']


def test_switched_off(lend):
    node = lend(config(enable=False))
    eventually(lambda: values(node) == {'kubernetes.io/batch-cpu': None, 'kubernetes.io/batch-memory': None,
                                        'kubernetes.io/mid-cpu': None, 'kubernetes.io/mid-memory': None})
    assert 'overcommitment is off' in node.ctl('node')['resources'][0]['why']


def test_a_machine_that_cannot_be_read(lend):
    node = lend(config())
    eventually(lambda: values(node).get('kubernetes.io/batch-memory'))
    (pathlib.Path(node.paths['root']) / 'proc/stat').write_text('cpu none\n')
    eventually(lambda: '/proc/stat' in node.ctl('node')['error'])
    assert values(node)['kubernetes.io/batch-memory'], 'what was measured is good for degradeTimeMinutes'


def test_calculators_come_and_go(lend):
    node = lend(config())
    eventually(lambda: 'kubernetes.io/mid-cpu' in values(node))
    node.config({**config(), 'calculators': ['batch']})
    eventually(lambda: list(values(node)) == ['kubernetes.io/batch-cpu', 'kubernetes.io/batch-memory'])
    node.config({'policy': 'none'})
    assert node.ctl('node')['calculators'] == [] and not values(node)


@pytest.mark.parametrize('listed, running', [
    (['*'], 'cpu-normalization resource-amplification mid batch gpu rdma'), (['reclaimed', '-gpu', '*', '-mid'], 'cpu-normalization resource-amplification batch rdma reclaimed'),
    (['mid', '-mid', '-batch'], 'mid'), (['-batch', 'batch', 'rdma', 'mid'], 'mid rdma'), (['-mid'], ''),
])
def test_which_of_them(lend, listed, running):
    """* is all that come with the daemon; what is said of one first decides."""
    node = lend({**config(), 'calculators': listed})
    eventually(lambda: ' '.join(c['name'] for c in node.ctl('node')['calculators'] if c['running']) == running)


def test_intervals_are_not_shorter_than_the_least(lend):
    """Whoever has set them; 30 and 60 seconds where rp.conf does not say."""
    conf = config(metricAggregateDurationSeconds=2)
    conf['nodeResources']['node']['annotations'] = {'node.koordinator.sh/colocation-strategy': '{"metricReportIntervalSeconds": 3}'}

    def intervals(node):
        return [(f['value'], f['origin']) for f in node.ctl('node')['strategy'] if f['field'] in ('metricReportIntervalSeconds', 'metricAggregateDurationSeconds')]
    node = lend(conf)
    assert intervals(node) == [(2, 'strategy'), (3, 'node annotation')]
    del conf['nodeResources']['least']
    node.config(conf)
    assert intervals(node) == [(60, 'strategy'), (30, 'node annotation')]


@pytest.mark.parametrize('wrong, why', [
    ({'nodeResources': {'strategy': {'midCPUThresholdPercent': 101}}}, 'midCPUThresholdPercent: 101 is out of range'),
    ({'nodeResources': {'nodeConfigs': [{'name': 'x', 'strategy': {'enable': True}}]}}, 'an entry needs matchLabels'),
    ({'nodeResources': {'strategy': {'metricAggregatePolicy': {'durations': ['5m', '31m']}}}}, '"31m": expected durations from 1s to 30m'),
    ({'calculators': ['static']}, 'module static is not a calculator'),
    ({'calculators': ['batch', 'batch']}, 'batch is listed twice'), ({'controllers': ['*']}, "expected a module's name"),
    ({'calculators': {'batch': 'maybe'}}, 'expected required, optional, relaxed or disabled'),
])
def test_wrong_configurations(lend, wrong, why):
    node = lend(config())
    with pytest.raises(SimError, match=why):
        node.config({**config(), **wrong})
    eventually(lambda: values(node).get('kubernetes.io/batch-memory'))


def test_what_pods_are_not_expected_to_need_is_lent(lend):
    """3 CPUs less what an idle pod, and an idle system, have used at most: a bucket of 25 milli-CPU each. What was learned outlives the daemon."""
    conf = config()
    node = lend({**conf, 'calculators': ['mid'], 'metrics': {'collectInterval': '1s'},
                 'nodeResources': {**conf['nodeResources'], 'prediction': {'coldStart': '0s', 'safetyMargin': 0}}})
    node.create('p', ctr('c', '3', '1Gi'))
    add_cgroup(node, 'c', {'cpu.stat': 'usage_usec 1000\n', 'memory.current': '4096\n', 'memory.stat': 'anon 4096\n'})
    eventually(lambda: values(node).get('kubernetes.io/mid-cpu') == 3000 - 2 * 25)
    # by classes: what the pod and the system may need
    assert node.ctl('node')['measured']['prod_peak']['cpu'] == 50
    node.stop()
    learned = pathlib.Path(node.paths['state']) / 'predictions'
    models = [line.split()[1:] for line in learned.read_text().splitlines() if line.startswith('model')]
    assert sum(not name.startswith('__node') for name, _ in models) == 1
    node.start()
    eventually(lambda: values(node).get('kubernetes.io/mid-cpu') == 3000 - 2 * 25)
    node.stop()
    assert [line.split()[1:] for line in learned.read_text().splitlines() if line.startswith('model')] == models
    node.start()
    node.config({**conf, 'calculators': ['mid'], 'metrics': {'collectInterval': '1s'}})
    eventually(lambda: values(node).get('kubernetes.io/mid-cpu') == 0)  # a day is the default, which nobody has watched the pod for
    assert node.ctl('node')['measured']['prod_peak']['cpu'] == 3000


def test_the_calculator_to_copy(lend):
    """A part of what is neither used nor asked for by a pod that was not measured yet."""
    node = lend({**config(), 'calculators': ['template-calculator'], 'template-calculator': {'percent': 25}})
    eventually(lambda: values(node) == {'example.com/spare-memory': 6 * GIB // 4})
    node.create('p', ctr('c', '1', '2Gi'))
    eventually(lambda: values(node) == {'example.com/spare-memory': GIB})
    assert '25%% of allocatable %d - used %d - requested %d' % (8 * GIB, 2 * GIB, 2 * GIB) in node.ctl('node')['resources'][0]['why']


def test_usage_over_longer_times(make_node):
    """Averages and percentiles by the strategy's durations, once half of one was measured; the system's as soon as pods are measured, too."""
    conf = config(metricAggregatePolicy={'durations': ['1m', '30m']})
    node = make_node({**conf, 'metrics': {'collectInterval': '15s', 'listen': ''}}, start=False, daemon=fast_daemon(100))
    put_machine(node)
    node.start()

    def first():
        found = node.ctl('node').get('aggregated', [])
        assert [a['duration_s'] for a in found] in ([], [60]), 'a quarter of an hour has not passed'
        return found[0] if found else {}
    eventually(lambda: first().get('node', {}).get('p99', {}) == {'cpu': 0, 'memory': 2 * GIB})
    eventually(lambda: first()['system']['avg'] == {'cpu': 0, 'memory': 2 * GIB})
    node.create('p', ctr('c', '1', '1Gi'))
    eventually(lambda: 'system' not in first(), 20)
    add_cgroup(node, 'c', {'cpu.stat': 'usage_usec 5\n', 'memory.current': '%d\n' % GIB, 'memory.stat': 'anon %d\n' % GIB})
    eventually(lambda: first().get('system', {}).get('p50') == {'cpu': 0, 'memory': GIB}, 20)
    text = subprocess.run([BUILD / 'bin/nri-rpctl', '--socket', node.paths['control'], 'node'], capture_output=True, text=True, check=True).stdout
    assert 'Used in 60 s:  avg 0 CPUs 2 GiB  p50' in text and 'metricAggregatePolicy.durations: 60, 1800 (strategy)' in text


def test_devices_of_a_file(lend):
    conf = config()
    node = lend({**conf, 'calculators': ['gpu', 'rdma'], 'nodeResources': {**conf['nodeResources'], 'devices': '/run/devices.json'}})
    devices = pathlib.Path(node.paths['root']) / 'run/devices.json'
    gone = {'koordinator.sh/' + name: None for name in ('gpu', 'gpu-core', 'gpu-memory', 'gpu-memory-ratio', 'gpu.shared', 'rdma')}
    eventually(lambda: values(node) == gone)
    devices.parent.mkdir(exist_ok=True)
    devices.write_text('[{"type": "gpu", "minor": 0, "vendor": "NVIDIA", "resources": {"koordinator.sh/gpu-core": 100, '
                       '"koordinator.sh/gpu-memory": "16Gi"}}, {"type": "rdma", "health": true}]')
    found = {**gone, 'koordinator.sh/gpu': 100, 'koordinator.sh/gpu-core': 100, 'koordinator.sh/gpu-memory': 16 * GIB, 'koordinator.sh/rdma': 100}
    eventually(lambda: values(node) == found)
    # what is malformed leaves what there was, and is told
    devices.write_text('[{"type": "gpu", "resources": {"koordinator.sh/gpu-core": "many"}}]')
    node.log('device 0: koordinator.sh/gpu-core: expected an amount')
    assert values(node) == found
    devices.write_text('[{"type": "gpu", "health": false, "resources": {"koordinator.sh/gpu-core": 100}}]')
    eventually(lambda: values(node) == {**gone, 'koordinator.sh/gpu': 0, 'koordinator.sh/gpu-core': 0})
    devices.unlink()
    eventually(lambda: values(node) == gone)


def annotations(node):
    return node.ctl('node').get('annotations', {})


def test_what_a_cpu_of_this_model_counts_for(lend):
    """By the machine's own files; batch-cpu is scaled by it, whatever the order of calculators in rp.conf."""
    conf = config()
    node = lend({**conf, 'calculators': ['batch', 'cpu-normalization'], 'cpu-normalization': {'enable': True, 'ratioModel': {'Some CPU': {'hyperThreadEnabledRatio': 1.5}}}})
    node.log('no ratio for CPU model')
    root = pathlib.Path(node.paths['root'])
    (root / 'proc/cpuinfo').write_text('processor\t: 0\nmodel name\t: Some CPU\n')
    (root / 'sys/devices/system/cpu/smt').mkdir(exist_ok=True)
    (root / 'sys/devices/system/cpu/smt/active').write_text('1\n')
    eventually(lambda: annotations(node).get('node.koordinator.sh/cpu-normalization-ratio') == '1.50')
    written = {r['name']: r.get('written') for r in node.ctl('node')['resources']}
    eventually(lambda: {r['name']: r.get('written') for r in node.ctl('node')['resources']}['kubernetes.io/batch-cpu'] == 14000 * 3 // 2), written
    assert [c['name'] for c in node.ctl('node')['calculators']] == ['cpu-normalization', 'batch']


def test_reserved_cpus_are_counted_by_their_list(lend):
    conf = config()
    conf['nodeResources']['node']['annotations'] = {'node.koordinator.sh/reservation': '{"resources":{"cpu":"1","memory":"3Gi"},"reservedCPUs":"0-4"}'}
    node = lend(conf)
    eventually(lambda: values(node).get('kubernetes.io/batch-cpu') == 11000)
    assert values(node)['kubernetes.io/batch-memory'] == 5 * GIB


def test_applications_outside_of_pods(lend):
    """Usage of those of prod counts as the system's; a group that is gone leaves what was measured for the time of an average."""
    conf = config()
    apps = [{'name': 'db', 'cgroup': '/system.slice/db.service', 'priorityClass': 'prod'}, {'name': 'yarn', 'cgroup': '/yarn', 'priorityClass': 'batch'}]
    node = lend({**conf, 'metrics': {'collectInterval': '1s'}, 'nodeResources': {**conf['nodeResources'], 'hostApplications': apps}})
    root = pathlib.Path(node.paths['root']) / 'sys/fs/cgroup'
    for name in ('system.slice/db.service', 'yarn'):
        folder = root / name
        folder.mkdir(parents=True)
        (root / 'cgroup.controllers').write_text('cpu memory\n')
        (folder / 'cpu.stat').write_text('usage_usec 1\n')
        (folder / 'memory.stat').write_text('anon 1\ninactive_anon 0\nactive_anon %d\nunevictable 0\n' % GIB)
    # 2 GiB are in use, of which the two have one each: what yarn has is not charged
    eventually(lambda: values(node).get('kubernetes.io/batch-memory') == 7 * GIB)


@pytest.mark.parametrize('app, why', [
    ({'cgroup': '/x', 'priorityClass': 'prod'}, 'needs a name'), ({'name': 'x', 'cgroup': 'x', 'priorityClass': 'prod'}, 'expected a cgroup'),
    ({'name': 'x', 'cgroup': '/a/../../b', 'priorityClass': 'prod'}, 'expected a cgroup'), ({'name': 'x', 'cgroup': '/x'}, 'expected a priorityClass'),
])
def test_wrong_applications(lend, app, why):
    node = lend(config())
    with pytest.raises(SimError, match='hostApplications.*' + why):
        node.config({**config(), 'nodeResources': {'hostApplications': [app]}})


def test_memory_that_holds_files(lend):
    """One policy for the node and its pods: what is free is not in use, or what could be had back is not either."""
    node = lend(config())
    proc = pathlib.Path(node.paths['root']) / 'proc/meminfo'
    proc.write_text('MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\n' % (8 << 20, 3 << 20, 6 << 20))
    eventually(lambda: values(node).get('kubernetes.io/batch-memory') == 6 * GIB)
    node.config(config(metricMemoryCollectPolicy='usageWithPageCache'))
    eventually(lambda: values(node).get('kubernetes.io/batch-memory') == 3 * GIB)


def test_pods_count_in_the_zones_that_they_are_in(make_node):
    conf = config()
    node = make_node({**conf, 'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}, start=False)
    put_machine(node, used=0)
    node.start()
    node.create('p', ctr('c', '2', '1Gi'))
    places = {n for n in range(4) if node.cpus('p/c') & {4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3}}
    assert len(places) == 1, 'two CPUs of one node'

    def zones():
        doc = {r['name']: r for r in node.ctl('node').get('resources', [])}
        return doc.get('kubernetes.io/batch-cpu', {}).get('zones')
    # 4 CPUs each, less half of one that is reserved on the node; those that the pod is bound to, less two
    eventually(lambda: zones() == [4000 - 500 - 2000 * (n in places) for n in range(4)])


@pytest.mark.parametrize('allowed, zones', [('default', [4000 - 500 - 2000 * (n == 2) for n in range(4)]), ('bank', [3000] * 4)])
def test_where_a_scheduler_means_it_counts_where_that_is_allowed(make_node, allowed, zones):
    key = 'scheduling.koordinator.sh/resource-status'
    node = make_node({**config(), 'annotations': {'allow': {key: [allowed]}}}, start=False)
    put_machine(node, used=0)
    node.start()
    node.create('p', ctr('c', '2', '1Gi'), annotations={key: '{"numaNodeResources": [{"node": 2}]}'})

    def lent():
        doc = {r['name']: r for r in node.ctl('node').get('resources', [])}
        return doc.get('kubernetes.io/batch-cpu', {}).get('zones')
    eventually(lambda: lent() == zones)


def test_the_result_is_a_file(lend, tmp_path):
    """For whoever has no cluster; it goes to nothing with the calculators."""
    file = tmp_path / 'node.json'

    def resources():
        return json.loads(file.read_text())['resources'] if file.exists() else None
    conf = {**config(), 'calculators': ['batch']}
    conf['nodeResources']['file'] = str(tmp_path / 'none' / 'node.json')
    node = lend(conf)
    node.log('nodeResources.file: .*none')
    conf['nodeResources']['file'] = str(file)
    node.config(conf)
    eventually(lambda: resources() == {'kubernetes.io/batch-cpu': 14000, 'kubernetes.io/batch-memory': 6 * GIB})
    node.create('p', ctr('c', '4', '1Gi'))
    eventually(lambda: resources() == {'kubernetes.io/batch-cpu': 10000, 'kubernetes.io/batch-memory': 5 * GIB})
    node.config({'policy': 'none', 'nodeResources': conf['nodeResources']})
    eventually(lambda: resources() == {})
