# SPDX-License-Identifier: Apache-2.0
"""Metrics and health over HTTP: the text is read as strictly as a scraper may, values follow what happens, and clients of all kinds are
put up with."""
import collections
import re
import socket
import stat
import os
import statistics
import threading
import time

import pytest

from operator_tools import DEGRADED, OK, Bare, ctl, ctl_json, free_port, http_connect, http_get, http_parse, http_raw, http_read
from simnode import STATIC, cpuset, ctr, eventually

from test_controllers import BLKIO, BLKIO_KEY, add_cgroup, add_disks

TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}
BALLOONS = {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'},
                                               'balloonTypes': [{'name': 'db', 'minCPUs': 2, 'maxCPUs': 4, 'namespaces': ['data']}]}}
CONNECTIONS_MAX, HEADER_MAX = 32, 8192
# As little as possible beyond the limit: with bytes that were not read the kernel resets the connection, and the answer may be lost.
LONG_HEADERS = b'GET / HTTP/1.1\r\n' + (b'A: ' + b'b' * 57 + b'\r\n') * 137

# ---- the text format 0.0.4, read strictly ----

Family = collections.namedtuple('Family', 'type help samples')
NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(r'(%s)(?:\{(%s(?:,%s)*)\})? (\S+)' % (NAME, LABEL, LABEL))
SUFFIXES = {'histogram': ('_bucket', '_sum', '_count'), 'gauge': ('',), 'counter': ('',)}


def unescape(text):
    return re.sub(r'\\(.)', lambda m: {'n': '\n'}.get(m[1], m[1]), text)


def number(text):
    assert re.fullmatch(r'[-+]?(\d+(\.\d+)?([eE][-+]?\d+)?)|NaN|[-+]Inf', text), text
    return float(text)


def parse(text):
    """{family: Family}; everything of a family is together, its type comes first, no sample is there twice."""
    assert text.endswith('\n')
    families, current, helps = {}, None, {}
    for line in text[:-1].split('\n'):
        assert line, 'an empty line'
        if line.startswith('# HELP '):
            _, _, name, words = line.split(' ', 3)
            assert re.fullmatch(NAME, name) and words and name not in helps and name not in families
            assert not re.search(r'\\(?![\\n])', words)
            helps[name] = unescape(words)
            continue
        if line.startswith('# TYPE '):
            _, _, name, kind = line.split(' ')
            assert name not in families and kind in SUFFIXES, line
            families[name] = Family(kind, helps.get(name), {})
            current = name
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        family = families[current]
        assert name in [current + s for s in SUFFIXES[family.type]], line
        pairs = [(k, unescape(v)) for k, v in re.findall(r'(%s)="((?:[^"\\]|\\.)*)"' % '[a-zA-Z_][a-zA-Z0-9_]*', labels or '')]
        assert len(dict(pairs)) == len(pairs), line
        key = (name, frozenset(pairs))
        assert key not in family.samples, line
        family.samples[key] = number(value)
    assert set(helps) <= set(families)
    for name, family in families.items():
        assert family.samples, name
        if family.type == 'counter':
            assert all(v >= 0 for v in family.samples.values())
        if family.type == 'histogram':
            check_histogram(name, family)
    return families


def check_histogram(name, family):
    series = collections.defaultdict(dict)
    for (full, labels), value in family.samples.items():
        rest = dict(labels)
        le = rest.pop('le', None)
        series[frozenset(rest.items())][full[len(name):], le] = value
    for values in series.values():
        buckets = sorted((float(le.replace('+Inf', 'inf')), v) for (suffix, le), v in values.items() if suffix == '_bucket')
        assert [v for _, v in buckets] == sorted(v for _, v in buckets), 'buckets add up'
        assert buckets[-1] == (float('inf'), values['_count', None]) and values['_sum', None] >= 0


class Scrape:
    def __init__(self, address):
        answer = http_get(address)
        assert answer.status == 200
        assert re.match(r'text/plain; *version=0\.0\.4', answer.headers['content-type'])
        self.text = answer.body.decode()
        self.families = parse(self.text)

    def series(self, name, **labels):
        """[(labels, value)] of those that have these labels."""
        base = re.sub('_(bucket|sum|count)$', '', name) if name not in self.families else name
        found = []
        for (full, pairs), value in self.families[base].samples.items() if base in self.families else ():
            if full == name and set(labels.items()) <= pairs:
                found.append((dict(pairs), value))
        return found

    def get(self, name, **labels):
        found = self.series(name, **labels)
        assert len(found) == 1, (name, labels, found)
        return found[0][1]


@pytest.fixture
def served(make_node, tmp_path):
    """A node with metrics, and where they are."""
    def make(config=STATIC, start=True, metrics=None, **kwargs):
        address = str(tmp_path / 'metrics.sock')
        config = {**config, 'metrics': {'listen': 'unix:' + address, **(metrics or {})}}
        node = make_node(config, start=start, **kwargs)
        node.metrics, node.metrics_config = address, config
        return node
    return make


def of_every_class(node):
    node.create('g', ctr('own', '2', '200Mi'))
    node.create('b', ctr('part', '500m/1', '64Mi/128Mi'))
    node.create('e', ctr('best'))


# ---- the text ----

@pytest.mark.parametrize('config', [{'policy': 'none'}, STATIC, TOPOLOGY_AWARE, BALLOONS], ids=lambda c: c['policy'])
def test_every_policy_is_well_formed(served, config):
    node = served({**config, 'controllers': ['blkio', 'cpu', 'memory']})
    of_every_class(node)
    scrape = Scrape(node.metrics)
    assert scrape.get('nri_rp_policy_info', policy=config['policy'], configured=config['policy']) == 1
    assert scrape.get('nri_rp_module_samples_rejected') == 0 == scrape.get('nri_rp_module_collectors_failed')
    for name, family in scrape.families.items():
        assert family.help and re.match('[A-Z0-9]', family.help) and family.help.endswith('.'), name
        assert name.endswith('_total') == (family.type == 'counter'), name
        assert not re.search('_(count|sum|bucket|info_total)$|milli|_ms$|_kib$', name), 'a suffix of histograms, or no base unit: ' + name
        assert not [labels for _, labels in family.samples if 'container_id' in dict(labels)], name
    assert {'process_cpu_seconds_total', 'process_open_fds', 'process_resident_memory_bytes', 'nri_rp_build_info'} <= set(scrape.families)


def test_two_scrapes_tell_the_same(served):
    """What does not depend on time is the same in the same order, and scraping is not counted as anything."""
    node = served()
    of_every_class(node)
    first, second = Scrape(node.metrics), Scrape(node.metrics)
    assert list(first.families) == list(second.families)
    changing = {name for name, f in first.families.items() if f.samples != second.families[name].samples}
    assert all(name.startswith(('process_', 'nri_rp_store_')) for name in changing), changing
    assert list(first.families['nri_policy_cpu_containers'].samples) == list(second.families['nri_policy_cpu_containers'].samples)


def test_index_head_and_other_paths(served):
    node = served()
    index = http_get(node.metrics, '/')
    assert index.status == 200 and {'/metrics', '/healthz', '/livez'} <= set(index.body.decode().split())
    assert http_get(node.metrics, '/metrics?name[]=x').status == 200, 'a query is no other path'
    head = http_get(node.metrics, '/healthz', 'HEAD')
    assert head.status == 200 and head.headers['content-length'] == '3'
    for path in ('/metric', '/metrics/', '//metrics', '/../metrics', '/metrics%20', '/METRICS'):
        assert http_get(node.metrics, path).status == 404, path
    for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'get'):
        answer = http_get(node.metrics, '/metrics', method)
        assert answer.status == 405 and answer.headers['allow'] == 'GET, HEAD', method
    assert all(http_get(node.metrics, path).headers['connection'] == 'close' for path in ('/', '/metrics', '/none'))


# ---- values ----

def test_what_is_there(served):
    node = served()
    scrape = Scrape(node.metrics)
    assert (scrape.get('nri_rp_pods'), scrape.get('nri_rp_containers')) == (0, 0)
    of_every_class(node)
    scrape = Scrape(node.metrics)
    assert (scrape.get('nri_rp_pods'), scrape.get('nri_rp_containers'), scrape.get('nri_rp_containers_degraded')) == (3, 3, 0)
    assert (scrape.get('nri_rp_degraded'), scrape.get('nri_rp_safe_mode'), scrape.get('nri_rp_config_ok')) == (0, 0, 1)
    assert [labels['name'] for labels, _ in scrape.series('nri_rp_runtime_info')] == ['containerd']
    assert scrape.get('nri_rp_runtime_connected') == 1 == scrape.get('nri_rp_runtime_synchronized')
    node.delete('g', 'b')
    scrape = Scrape(node.metrics)
    assert (scrape.get('nri_rp_pods'), scrape.get('nri_rp_containers')) == (1, 1)


def test_requests_by_event(served):
    node = served()
    of_every_class(node)
    node.reject('big', ctr('c', '64', '64Mi'))
    node.update('b/part', cpu='600m/1')
    stops = Scrape(node.metrics).get('nri_rp_requests_total', event='StopContainer')
    node.exit('e/best')
    scrape = Scrape(node.metrics)
    total = {labels['event']: v for labels, v in scrape.series('nri_rp_requests_total')}
    failed = {labels['event']: v for labels, v in scrape.series('nri_rp_requests_failed_total')}
    assert (total['CreateContainer'], failed['CreateContainer']) == (4, 1)
    assert (total['Synchronize'], total['Configure'], total['UpdateContainer'], total['StopContainer']) == (1, 1, 1, stops + 1)
    assert set(total) == set(failed) and sum(failed.values()) == 1
    for event, n in total.items():
        counted = scrape.series('nri_rp_request_duration_seconds_count', event=event)
        assert [v for _, v in counted] == ([n] if n else []), event
        if n:
            longest = scrape.get('nri_rp_request_duration_max_seconds', event=event)
            assert 0 < longest <= scrape.get('nri_rp_request_duration_seconds_sum', event=event) * 1.001
    assert scrape.get('nri_rp_policy_errors_total') == 1


def test_allocation_of_cpus(served):
    """By hand: own's 2000m on its two CPUs, 500m spread over the fourteen others."""
    node = served()
    of_every_class(node)
    scrape = Scrape(node.metrics)
    load = {int(labels['cpu_id']): v for labels, v in scrape.series('nri_policy_cpu_allocation_cores')}
    count = {int(labels['cpu_id']): v for labels, v in scrape.series('nri_policy_cpu_containers')}
    assert set(load) == set(count) == set(range(16))
    for cpu in range(16):
        assert load[cpu] == pytest.approx(1 if cpu in (2, 3) else .5 / 14, abs=0.0002)
        assert count[cpu] == (1 if cpu in (2, 3) else 2)
    assert sum(load.values()) == pytest.approx(2.5, abs=.002), 'a best effort container asks for next to nothing'
    node.offline('14-15')
    node.signal('HUP')
    eventually(lambda: len(Scrape(node.metrics).series('nri_policy_cpu_containers')) == 14)


def test_allocation_of_memory(served):
    """A limit counts for the nodes that the container is pinned to."""
    node = served(TOPOLOGY_AWARE)
    node.create('g', ctr('own', '2', '200Mi'))
    scrape = Scrape(node.metrics)
    (where,) = node.mems('g/own')
    for n in range(4):
        assert scrape.get('nri_policy_mem_node_capacity_bytes', node_id=str(n), node_type='DRAM') == 2 << 30
        assert scrape.get('nri_policy_mem_node_usage_bytes', node_id=str(n)) == (200 << 20 if n == where else 0)
        assert scrape.get('nri_policy_mem_node_containers', node_id=str(n)) == (1 if n == where else 0)


def test_pools_of_topology_aware(served):
    node = served(TOPOLOGY_AWARE)
    of_every_class(node)
    scrape = Scrape(node.metrics)
    zones = {z['name']: z for z in ctl_json(node, 'zones')}
    capacity = {labels['zone']: (labels, v) for labels, v in scrape.series('nri_policy_topologyaware_zone_cpu_capacity_cores')}
    assert set(capacity) == set(zones)
    assert {n: v for n, (_, v) in capacity.items()} == {
        'root': 16, 'socket #0': 8, 'socket #1': 8, **{'NUMA node #%d' % i: 4 for i in range(4)}}
    for name, (labels, _) in capacity.items():
        if name.startswith('NUMA node'):
            n = int(name[-1])
            assert cpuset(labels['cpus']) == set(range(4 * n, 4 * n + 4)) and cpuset(labels['mems']) == {n}
    for kind in ('capacity', 'assigned', 'available'):
        assert {labels['zone'] for labels, _ in scrape.series('nri_policy_topologyaware_zone_cpu_shared_%s_cores' % kind)} == set(zones)
        assert {labels['zone'] for labels, _ in scrape.series('nri_policy_topologyaware_zone_mem_%s_bytes' % kind)} == set(zones)
    count = {labels['zone']: v for labels, v in scrape.series('nri_policy_topologyaware_zone_containers')}
    assert count['NUMA node #%d' % next(iter(node.mems('g/own')))] == 1
    node.delete('g', 'b', 'e')
    scrape = Scrape(node.metrics)
    assert {v for _, v in scrape.series('nri_policy_topologyaware_zone_containers')} == {0}


def test_a_series_a_balloon(served):
    """It has the CPUs as its value, and goes with the balloon."""
    node = served(BALLOONS)
    node.create('d', ctr('db', '2', '64Mi'), namespace='data')
    found = Scrape(node.metrics).series('nri_policy_balloons_cores', balloon_type='db')
    assert len(found) == 1 and found[0][1] == 2
    labels = found[0][0]
    assert cpuset(labels['cpus']) == node.cpus('data/d/db') and labels['cpus_count'] == '2'
    assert (labels['cpus_min'], labels['cpus_max']) == ('2', '4') and 'db' in labels['containers']
    assert cpuset(labels['mems']) == node.mems('data/d/db') and labels['tot_req_millicpu'] == '2000'
    node.update('data/d/db', cpu='4')
    assert [v for _, v in Scrape(node.metrics).series('nri_policy_balloons_cores', balloon_type='db')] == [4]
    node.delete('d')
    assert Scrape(node.metrics).series('nri_policy_balloons_cores', balloon_type='db') == []


def test_a_balloon_of_many_containers(served):
    """Its series names all of them."""
    node = served(BALLOONS)
    names = ['a-container-with-a-rather-long-name-%03d' % i for i in range(200)]
    node.create('d', *[ctr(name, '10m') for name in names], namespace='data')
    scrape = Scrape(node.metrics)
    (labels, cpus), = scrape.series('nri_policy_balloons_cores', balloon_type='db')
    assert cpus == 2 and labels['containers'].split(',') == ['data/d/' + name for name in names]
    assert not any(v for _, v in scrape.series('nri_rp_module_samples_rejected'))


def test_components_are_balloons_too(served):
    """Each has a series and a number of its own, and says what it is a component of."""
    parts = [{'balloonType': 'half'}, {'balloonType': 'half'}]
    node = served({'policy': 'balloons', 'balloons': {
        'reservedResources': {'cpu': '1'},
        'balloonTypes': [{'name': 'half', 'namespaces': ['half']}, {'name': 'both', 'components': parts, 'namespaces': ['both']}]}})
    node.create('w', ctr('wb', '4', '64Mi'), namespace='both')
    node.create('s', ctr('sh', '1', '64Mi'), namespace='half')
    found = {labels['balloon']: (labels.get('component_of'), v) for labels, v in Scrape(node.metrics).series('nri_policy_balloons_cores')}
    assert found['both[0]'] == (None, 4)
    assert found['half[0]'] == found['half[1]'] == ('both[0]', 2)
    assert found['half[2]'] == (None, 1)
    node.delete('w')
    assert not Scrape(node.metrics).series('nri_policy_balloons_cores', component_of='both[0]')


def test_moves_reloads_and_refusals(served):
    node = served()
    of_every_class(node)
    template = {**node.metrics_config, 'policy': 'template', 'template': {'reservedResources': {'cpu': 'cpuset:0-3'}}}
    node.config(template)
    node.settle()
    scrape = Scrape(node.metrics)
    assert scrape.get('nri_rp_containers_moved_total') == 3 and scrape.get('nri_rp_config_generation') == 2
    assert scrape.get('nri_rp_reloads_total') == 1 and scrape.get('nri_rp_reloads_refused_total') == 0
    assert scrape.get('nri_rp_updates_sent_total') == 3 and scrape.get('nri_rp_updates_failed_total') == 0
    node.badconfig('policy: [')
    scrape = Scrape(node.metrics)
    assert scrape.get('nri_rp_reloads_refused_total') == 1 and scrape.get('nri_rp_config_ok') == 0 == 1 - scrape.get('nri_rp_degraded')
    assert scrape.get('nri_rp_config_generation') == 2
    assert scrape.get('nri_rp_policy_info', policy='template') == 1 and len(scrape.series('nri_rp_policy_info')) == 1


def test_updates_that_fail_and_are_tried_again(served):
    node = served()
    of_every_class(node)
    node.allow('failed')
    node.fail_updates('e/best')
    node.config({**node.metrics_config, 'policy': 'template', 'template': {'reservedResources': {'cpu': 'cpuset:0-1'}}})
    eventually(lambda: Scrape(node.metrics).get('nri_rp_updates_failed_total') >= 1)
    node.fail_updates()
    eventually(lambda: Scrape(node.metrics).get('nri_rp_updates_waiting') == 0)
    node.expect('cpus(best) == 4-15')


def test_updates_in_replies(served):
    """Two who share hear of one who owns."""
    node = served()
    node.create('b', ctr('part', '500m/1', '64Mi'))
    node.create('e', ctr('best'))
    node.create('g', ctr('own', '2', '200Mi'))
    scrape = Scrape(node.metrics)
    assert scrape.get('nri_rp_updates_in_replies_total') == 2 and scrape.get('nri_rp_updates_sent_total') == 0


def test_unmanaged(served):
    node = served({**STATIC, 'onPolicyError': 'unmanaged'})
    node.create('a', ctr('a0', '12', '64Mi'))
    node.create('b', ctr('b0', '8', '64Mi'))
    scrape = Scrape(node.metrics)
    assert scrape.get('nri_rp_containers_unmanaged_total') == 1 == scrape.get('nri_rp_policy_errors_total')
    assert scrape.get('nri_rp_requests_failed_total', event='CreateContainer') == 0


def test_controllers(served):
    node = served({**STATIC, 'controllers': ['blkio', 'rdt'], **BLKIO}, start=False)
    add_disks(node)
    node.start()
    scrape = Scrape(node.metrics)
    assert scrape.get('nri_rp_controller_running', controller='blkio', mode='relaxed') == 1
    assert scrape.get('nri_rp_controller_running', controller='rdt') == 0
    node.create('p', ctr('c', '1', '64Mi'), annotations={BLKIO_KEY: 'slow'})
    eventually(lambda: Scrape(node.metrics).get('nri_rp_controller_results_total', controller='blkio', result='failed') == 1)
    add_cgroup(node, 'p/c', {'io.max': '', 'io.weight': 'default 100\n'})
    node.config(node.metrics_config)
    eventually(lambda: Scrape(node.metrics).get('nri_rp_controller_results_total', controller='blkio', result='done') == 1)
    node.config({**node.metrics_config, 'controllers': ['rdt']})
    eventually(lambda: not Scrape(node.metrics).series('nri_rp_controller_running', controller='blkio'))


def test_figures_of_containers_go_with_them(served):
    """Figures are read where there is a cgroup, and no series is left of a container that is gone."""
    files = {'cpu.stat': 'usage_usec 2500000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1000000\n', 'memory.current': '4096\n'}
    node = served(metrics={'collectInterval': '1s'})
    node.create('p', ctr('c', '1', '64Mi'), ctr('d', '1m/-'))
    for name in ('p/c', 'p/d'):
        add_cgroup(node, name, files)
    used = 'nri_rp_container_cpu_usage_seconds_total'
    eventually(lambda: len(Scrape(node.metrics).series(used)) == 2)
    scrape = Scrape(node.metrics)
    labels = dict(namespace='default', pod='p', container='c')
    assert scrape.get(used, **labels) == 2.5 and scrape.get('nri_rp_container_memory_bytes', **labels) == 4096
    assert scrape.get('nri_rp_container_cpu_throttled_periods_total', **labels) == 4
    node.remove('p/c')
    scrape = Scrape(node.metrics)
    assert 'container="c"' not in scrape.text and len(scrape.series(used)) == 1
    node.delete('p')
    assert used not in Scrape(node.metrics).families
    assert not [n for n in Scrape(node.metrics).families if n.startswith('nri_rp_container_')]


def test_names_of_containers_are_escaped(served):
    node = served(metrics={'collectInterval': '1s'})
    name = 'a"b\\c\nd,e="f"}'
    node.create(name, ctr('c', '1m/-'))
    add_cgroup(node, name + '/c', {'cpu.stat': 'usage_usec 1\n'})
    eventually(lambda: Scrape(node.metrics).series('nri_rp_container_cpu_usage_seconds_total', pod=name))


def test_restart_begins_anew_and_keeps_the_state(served):
    node = served()
    of_every_class(node)
    node.restart()
    scrape = Scrape(node.metrics)
    assert scrape.get('nri_rp_containers') == 3 and scrape.get('nri_rp_requests_total', event='CreateContainer') == 0
    assert scrape.get('nri_rp_runtime_connects_total') == 1
    node.runtime_restart()
    scrape = Scrape(node.metrics)
    assert (scrape.get('nri_rp_runtime_connects_total'), scrape.get('nri_rp_runtime_disconnects_total')) == (2, 1)


def test_what_is_enabled(served):
    node = served({**TOPOLOGY_AWARE, 'instrumentation': {'metrics': {'enabled': ['policy/system']}}})
    families = set(Scrape(node.metrics).families)
    assert 'nri_policy_cpu_containers' in families and 'nri_rp_build_info' not in families
    assert not [n for n in families if n.startswith('nri_policy_topologyaware')]
    node.config({**node.metrics_config, 'instrumentation': {'metrics': {'enabled': ['buildinfo'], 'polled': ['policy/topology*']}}})
    families = set(Scrape(node.metrics).families)
    assert 'nri_rp_build_info' in families and 'nri_policy_cpu_containers' not in families
    assert [n for n in families if n.startswith('nri_policy_topologyaware')]
    node.config({**node.metrics_config, 'instrumentation': {'prometheusExport': False}})
    answer = http_get(node.metrics)
    assert answer.status == 404 and b'prometheusExport' in answer.body
    assert http_get(node.metrics, '/healthz').status == 200, 'health is another matter'


# ---- health ----

def test_health(served):
    node = served()
    assert (http_get(node.metrics, '/healthz').status, http_get(node.metrics, '/healthz').body) == (200, b'ok\n')
    node.badconfig('policy: [')
    answer = http_get(node.metrics, '/healthz')
    assert answer.status == 500 and re.match(rb'configuration: the last reload was refused: .*rp\.conf:', answer.body)
    node.runtime_stop()
    eventually(lambda: len(http_get(node.metrics, '/healthz').body.splitlines()) == 2)
    assert b'runtime: the runtime is not connected' in http_get(node.metrics, '/readyz').body
    assert http_get(node.metrics, '/livez').body == b'ok\n', 'nothing that a restart would mend'
    node.runtime_start()
    node.connected()
    node.config(node.metrics_config)
    assert http_get(node.metrics, '/healthz').status == 200


# ---- clients ----

@pytest.mark.parametrize('status, data', [
    (400, b'GARBAGE\r\n\r\n'), (400, b'\0\0\0\0\r\n\r\n'), (400, b'GET\r\n\r\n'), (400, b'GET /metrics\r\n\r\n'),
    (400, b'GET /metrics HTTP/1.1\r\nno colon\r\n\r\n'), (404, b'GET /a\x7fb HTTP/1.1\r\n\r\n'), (405, b'BREW /pot HTTP/1.1\r\n\r\n'),
    (400, b'GET /metrics HTTP/2.0\r\n\r\n'), (400, b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    (413, b'GET /metrics HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789'), (413, b'POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789'),
    (413, b'POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n'),
    (413, b'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\nx'),
    (404, b'GET metrics HTTP/1.1\r\n\r\n'), (404, b'GET /' + b'x' * 300 + b' HTTP/1.1\r\n\r\n'),
    (400, b'GET /' + b'x' * HEADER_MAX + b' HTTP/1.1\r\n'), (400, b'x' * (HEADER_MAX + 100)), (400, LONG_HEADERS),
    (200, b'GET /livez HTTP/1.0\n\n'), (200, b'GET /livez HTTP/1.1\r\nContent-Length: 0\r\n\r\n'),
    (200, b'GET /livez HTTP/1.1\r\n\r\nGET /livez HTTP/1.1\r\n\r\n'),
], ids=lambda v: repr(v)[:30])
def test_requests_of_all_kinds(tmp_path, status, data):
    """The status that it deserves, and one answer a connection."""
    address = str(tmp_path / 'm.sock')
    with Bare(tmp_path, conf='metrics: {listen: "unix:%s"}\n' % address) as daemon:
        daemon.wait_for('metrics: unix:')
        assert http_raw(address, data).status == status
        assert http_get(address, '/livez').status == 200
        assert daemon.stop() == 0


def test_clients_that_do_not_finish(served):
    """Those who ask by halves, or do not listen, keep nobody else waiting, the runtime least of all."""
    node = served()
    silent = [http_connect(node.metrics) for _ in range(10)]
    half = [http_connect(node.metrics) for _ in range(10)]
    deaf = [http_connect(node.metrics) for _ in range(5)]
    for s in half:
        s.sendall(b'GET /metrics HT')
    for s in deaf:
        s.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
    of_every_class(node)
    assert Scrape(node.metrics).get('nri_rp_containers') == 3
    half[0].sendall(b'TP/1.1\r\n\r\n')
    assert http_parse(http_read(half[0])).status == 200
    assert all(http_parse(http_read(s)).status == 200 for s in deaf), 'late, but they get it'
    for s in silent + half + deaf:
        s.close()
    assert Scrape(node.metrics).get('nri_rp_containers') == 3


def test_byte_by_byte(served):
    node = served()
    with http_connect(node.metrics) as s:
        for byte in b'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n':
            s.sendall(bytes([byte]))
        assert http_parse(http_read(s)).body == b'ok\n'


def test_more_connections_than_places(served):
    """A probe is answered while all places are taken, of a unix socket, too."""
    node = served()
    sitting = [http_connect(node.metrics) for _ in range(CONNECTIONS_MAX + 8)]
    for s in sitting:
        s.sendall(b'G')
    for _ in range(3):
        assert http_get(node.metrics, '/livez').body == b'ok\n'
    node.create('p', ctr('c'))  # the runtime's connection has nothing to do with it
    for s in sitting:
        s.close()
    assert Scrape(node.metrics).get('nri_rp_containers') == 1


def keep_asking_by_halves(address, n, stop):
    """Holds n connections whose request never ends, and opens a new one for each that is closed."""
    held = []
    while not stop.is_set():
        for s in list(held):
            try:
                gone = s.recv(1) == b''
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            if gone:
                s.close()
                held.remove(s)
        while len(held) < n and not stop.is_set():
            try:
                s = http_connect(address)
                s.sendall(b'GET /metrics HTTP/1.1\r\nX')
                s.setblocking(False)
                held.append(s)
            except OSError:
                break
        time.sleep(0.02)
    for s in held:
        s.close()


def test_probes_beside_slow_clients(make_node):
    """Clients that never finish their request, renewed for ever, keep neither a probe from its answer nor another address from the metrics."""
    address, stop, took = tcp(free_port()), threading.Event(), []
    make_node({**STATIC, 'metrics': {'listen': address}})
    attack = threading.Thread(target=keep_asking_by_halves, args=(address, 64, stop))
    attack.start()
    try:
        for _ in range(20):
            time.sleep(0.2)
            begun = time.monotonic()
            assert http_get(address, '/livez').body == b'ok\n'
            took.append(time.monotonic() - begun)
            host, _, port = address.rpartition(':')
            with socket.create_connection((host, int(port)), 5, source_address=('127.0.0.2', 0)) as other:
                other.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
                assert http_parse(http_read(other)).status == 200
        assert statistics.median(took) < 2, 'the time limit of a request'
    finally:
        stop.set()
        attack.join()


def test_clients_that_have_no_end(tmp_path):
    """A connection that asks nothing is closed."""
    address = str(tmp_path / 'm.sock')
    with Bare(tmp_path, conf='metrics: {listen: "unix:%s"}\n' % address) as daemon:
        daemon.wait_for('metrics: unix:')
        with http_connect(address) as s:
            s.sendall(b'GET /metrics HTTP/1.1\r\n')
            assert http_read(s) == b''


def test_clients_that_go_in_the_middle(served):
    node = served(machine='n4c128')
    for data in (b'', b'GET', b'GET /metrics HTTP/1.1\r\n\r\n'):
        for _ in range(20):
            with http_connect(node.metrics) as s:
                s.sendall(data)
    opened = Scrape(node.metrics).get('process_open_fds')
    eventually(lambda: Scrape(node.metrics).get('process_open_fds') <= opened)
    of_every_class(node)
    assert Scrape(node.metrics).get('nri_rp_containers') == 3


# ---- where it listens ----

def tcp(port, host='127.0.0.1'):
    return '%s:%d' % (host, port)


def refuses(address):
    try:
        http_connect(address).close()
    except OSError:
        return True
    return False


def test_changed_by_a_reload(make_node, tmp_path):
    first, second = tcp(free_port()), tcp(free_port())
    unix = str(tmp_path / 'm.sock')
    node = make_node({**STATIC, 'metrics': {'listen': first}})
    assert http_get(first, '/healthz').status == 200
    node.config({**STATIC, 'metrics': {'listen': second}})
    assert http_get(second, '/healthz').status == 200 and refuses(first)
    node.config({**STATIC, 'metrics': {'listen': 'unix:' + unix}})
    assert http_get(unix, '/healthz').status == 200 and refuses(second)
    assert stat.S_IMODE(os.stat(unix).st_mode) == 0o660
    node.config({**STATIC, 'metrics': {'listen': ''}})
    assert not os.path.exists(unix), 'and nothing is left of it'
    node.config({**STATIC, 'metrics': {'listen': first}})
    assert http_get(first, '/healthz').status == 200
    node.stop()
    assert refuses(first)


def test_an_address_that_is_taken(make_node):
    """At a start the daemon runs without; at a reload the old one stays. Both are said."""
    with socket.create_server(('127.0.0.1', 0)) as other:
        taken, free = tcp(other.getsockname()[1]), tcp(free_port())
        node = make_node({**STATIC, 'metrics': {'listen': taken}})
        node.log('metrics are not served as configured: .*port %s failed: Address already in use' % taken.split(':')[1])
        node.create('p', ctr('c'))
        node.config({**STATIC, 'metrics': {'listen': ''}})
        node.restart()
        node.config({**STATIC, 'metrics': {'listen': free}})
        assert http_get(free, '/healthz').status == 200
        node.config({**STATIC, 'metrics': {'listen': taken}})
        node.log('metrics are not served as configured: .*listening on 127.0.0.1 port %s failed: Address already in use' % taken.split(':')[1])
        assert http_get(free, '/healthz').status == 200
        done = ctl_json(node, 'status', code=DEGRADED)
        assert [c['id'] for c in done['conditions']] == ['metrics-unserved'] and taken.split(':')[1] in done['reasons'][0]
        assert any(f['check'] == 'metrics' and f['verdict'] == 'warning' for f in ctl_json(node, 'doctor', code=DEGRADED))


def test_taken_at_the_start_and_free_at_the_reload(make_node):
    with socket.create_server(('127.0.0.1', 0)) as other:
        address = tcp(other.getsockname()[1])
        node = make_node({**STATIC, 'metrics': {'listen': address}})
        assert 'metrics are not served' in ctl_json(node, 'status', code=DEGRADED)['reasons'][0]
    node.reload()
    eventually(lambda: not refuses(address))
    assert http_get(address, '/healthz').status == 200
    assert ctl_json(node, 'status')['reasons'] == []


def test_from_one_address_to_all(make_node):
    """The old address is what is in the way of the new one, and is given up for it."""
    port = free_port()
    node = make_node({**STATIC, 'metrics': {'listen': tcp(port)}})
    node.config({**STATIC, 'metrics': {'listen': ':%d' % port}})
    assert http_get(tcp(port, '127.0.0.2'), '/healthz').status == 200
    node.config({**STATIC, 'metrics': {'listen': 'localhost:%d' % port}})
    assert refuses(tcp(port, '127.0.0.2')) and http_get(tcp(port), '/healthz').status == 200


def test_ipv6(make_node):
    try:
        port = free_port(socket.AF_INET6, '::1')
    except OSError:
        pytest.skip('no IPv6 here')
    node = make_node({**STATIC, 'metrics': {'listen': '[::1]:%d' % port}})
    assert http_get('[::1]:%d' % port, '/healthz').status == 200
    assert refuses(tcp(port))
    node.config({**STATIC, 'metrics': {'listen': ':%d' % port}})
    assert http_get('[::1]:%d' % port, '/healthz').status == 200 == http_get(tcp(port), '/healthz').status, 'all addresses of both kinds'


@pytest.mark.parametrize('listen', ['8891', '127.0.0.1', 'node.example.com:8891', '127.0.0.1:99999', '127.0.0.1:-1', '127.0.0.1:http', '::1:8891',
                                    '[::1]', '[]:8891', 'unix:relative.sock', 'unix:', '300.0.0.1:80', ' :8891'])
def test_addresses_that_are_none(served, listen):
    """An error of the configuration, with its place; the old address stays."""
    node = served()
    why = node.badconfig({**STATIC, 'metrics': {'listen': listen}})
    assert re.search(r'rp\.conf:\d+:\d+: metrics\.listen: ', why), why
    assert '127.0.0.1:8891' in why, 'what it could look like'
    assert http_get(node.metrics, '/livez').status == 200


def test_the_older_key(make_node, tmp_path):
    """instrumentation.httpEndpoint holds when metrics.listen is not set, and an empty text switches off."""
    port = free_port()
    older = {**STATIC, 'instrumentation': {'httpEndpoint': tcp(port)}, 'metrics': {'listen': None}}
    node = make_node(older)
    assert http_get(tcp(port), '/healthz').status == 200
    node.config({**older, 'metrics': {'listen': ''}})
    assert refuses(tcp(port))


def test_an_inherited_socket(tmp_path):
    """Systemd listens for a service that has no network: who comes is served where metrics.listen says so, and is not left waiting elsewhere."""
    with socket.create_server(('127.0.0.1', 0)) as other, socket.create_server(('127.0.0.1', 0)) as listener:
        fds, addresses = (other.fileno(), listener.fileno()), [tcp(s.getsockname()[1]) for s in (other, listener)]

        def conf(listen):
            return 'policy: none\nmetrics: {listen: "%s"}\n' % listen

        def served(address):
            with http_connect(address) as s:
                try:
                    s.sendall(b'GET /livez HTTP/1.1\r\nHost: node\r\n\r\n')
                    return b' 200 ' in http_read(s)
                except ConnectionError:
                    return False
        under = ['bash', '-c', 'exec 3<&%d 4<&%d; LISTEN_FDS=2 LISTEN_PID=$$ exec "$0" "$@"' % fds]
        with Bare(tmp_path, conf=conf(addresses[1]), under=under, pass_fds=fds) as daemon:
            daemon.answers()
            assert [served(a) for a in addresses] == [False, True]
            for listen in ('', *addresses, 'unix:%s' % (tmp_path / 'm.sock')):
                daemon.conf.write_text(conf(listen))
                assert ctl(daemon.control, 'reload').code in (OK, DEGRADED)
                assert [served(a) for a in addresses] == [a == listen for a in addresses]
            daemon.wait_for('closed a connection to 127.0.0.1 port %s: systemd listens there' % addresses[0].rpartition(':')[2])


def test_a_file_in_the_way(tmp_path, make_node):
    """A socket that nobody listens on any more is replaced; a file that is none is left alone."""
    path = tmp_path / 'm.sock'
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
    node = make_node({**STATIC, 'metrics': {'listen': 'unix:%s' % path}})
    assert http_get(str(path), '/healthz').status == 200
    other = tmp_path / 'precious'
    other.write_text('data')
    node.config({**STATIC, 'metrics': {'listen': 'unix:%s' % other}})
    assert other.read_text() == 'data'
    assert http_get(str(path), '/healthz').status == 200
    node.log(r'metrics\.listen: .*precious')
