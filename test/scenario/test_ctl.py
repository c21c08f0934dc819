# SPDX-License-Identifier: Apache-2.0
"""nri-rpctl against a daemon with containers: what each command says of them, as text and as a document."""
import json
import pathlib
import re
import subprocess

import pytest

from operator_tools import CONFIG, DEGRADED, FAILED, OK, USAGE, Following, ctl, ctl_json, run_ctl
from simnode import BUILD, STATIC, cpuset, ctr, eventually

NONE = {'policy': 'none'}
TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}
# Takes from "own", below, what that had by the static policy: 4-5 are its own then, and 6-15 are shared.
TEMPLATE = {'policy': 'template', 'template': {'reservedResources': {'cpu': 'cpuset:0-3'}}}
BALLOONS = {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'},
                                               'balloonTypes': [{'name': 'db', 'minCPUs': 2, 'maxCPUs': 4, 'namespaces': ['data']}]}}
POLICIES = [NONE, STATIC, TOPOLOGY_AWARE, BALLOONS]
TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z')
MI = 1 << 20


def of_every_class(node):
    """One of each class of service; by the static policy "own" has 2-3, the first whole core that is not reserved."""
    node.create('g', ctr('own', '2', '200Mi'))
    node.create('b', ctr('part', '500m/1', '64Mi/128Mi'))
    node.create('e', ctr('best'))


@pytest.fixture
def busy(make_node):
    def make(config=STATIC, **kwargs):
        node = make_node(config, **kwargs)
        of_every_class(node)
        return node
    return make


def by_name(documents, key='full_name'):
    return {d[key]: d for d in documents}


def table(text):
    """Rows of a table by the places of its titles: {title: cell}."""
    lines = text.splitlines()
    starts = [(m.start(), m.end(), m[0]) for m in re.finditer(r'\S+(?: \S+)*', lines[0])]
    rows = []
    for line in lines[1:]:
        if not line.strip():
            break
        cells = [(m.start(), m.end(), m[0]) for m in re.finditer(r'\S+(?: \S+)*', line)]
        row = {}
        for start, end, cell in cells:
            for first, last, title in starts:  # below its title, from the left or up to the right edge
                if start == first or end == last or (start < last and end > first):
                    row[title] = cell
                    break
        rows.append(row)
    return rows


# ---- status ----

def test_status_when_all_is_well(busy):
    node = busy()
    done = ctl(node, 'status')
    assert done.code == OK and done.err == ''
    first, *rest = done.out.splitlines()
    assert re.fullmatch(r'nri-rpd \S+  healthy, up \S+, pid %d' % node.status()['pid'], first)
    lines = {line.split('  ')[0].strip(): line for line in rest if line.strip()}
    assert re.search(r'static \d', lines['Policy'])
    assert node.paths['config'] + ', generation 1' in '\n'.join(rest)
    assert 'containerd' in lines['Runtime'] and 'connected for' in lines['Runtime']
    assert '2 packages, 4 memory nodes, 8 cores, 16 CPUs, 8 GiB' in lines['Machine']
    assert '3 containers in 3 pods' in lines['Containers']
    assert lines['Controllers'].split() == ['Controllers', 'none']
    requests = {row['Request']: row for row in table(done.out[done.out.index('Request '):])}
    assert (requests['CreateContainer']['Count'], requests['CreateContainer']['Failed']) == ('3', '0')
    assert requests['RunPodSandbox']['Count'] == '3' and requests['Synchronize']['Count'] == '1'


def test_status_document(busy):
    node = busy()
    doc = ctl_json(node, 'status')
    assert doc['pid'] == node.status()['pid']
    assert (doc['degraded'], doc['reasons']) == (False, [])
    assert (doc['policy']['name'], doc['policy']['configured'], doc['policy']['safe_mode']) == ('static', 'static', False)
    assert (doc['config']['path'], doc['config']['generation'], doc['config']['ok']) == (node.paths['config'], 1, True)
    assert doc['config']['error'] is None, 'members without a value are null'
    assert doc['runtime']['connected'] and doc['runtime']['synchronized'] and doc['runtime']['name'] == 'containerd'
    assert doc['machine'] == {'packages': 2, 'nodes': 4, 'cores': 8, 'cpus': 16, 'memory': 8 << 30}
    assert (doc['pods'], doc['containers'], doc['degraded_containers']) == (3, 3, 0)
    assert TIME.fullmatch(doc['started']) and TIME.fullmatch(doc['now']) and doc['started'] <= doc['now']
    assert 'memory' not in doc


def test_status_with_memory(busy):
    node = busy()
    memory = ctl_json(node, 'status', '--memory')['memory']
    assert memory['containers'] == 3 and memory['sets'] >= 2
    assert memory['resident_peak'] >= memory['resident'] > 0 and memory['machine'] > 0
    assert 'for 3 containers' in ctl(node, 'status', '--memory').out


def test_status_counts_what_was_refused_and_moved(busy):
    node = busy()
    node.reject('big', ctr('c', '64', '64Mi'))
    node.create('h', ctr('more', '2', '64Mi'))  # the two that share lose CPUs 4-5
    doc = ctl_json(node, 'status')
    requests = by_name(doc['requests'], 'name')
    assert (requests['CreateContainer']['count'], requests['CreateContainer']['failed']) == (5, 1)
    assert doc['updates']['in_replies'] == 2, 'of the two who share; who owns came first the other time'
    assert doc['counts']['policy_errors'] == 1
    assert doc['counts']['moved'] == 0, 'that shared CPUs become less is no move'
    assert doc['degraded'] is False, 'a refusal is an answer'


def test_status_degraded_by_a_bad_file(busy):
    node = busy()
    node.badconfig({'policy': 'static', 'static': {'reservedResources': {'cpu': 'many'}}})
    done = ctl(node, 'status')
    assert done.code == DEGRADED
    assert 'degraded' in done.out.splitlines()[0]
    reasons = [line for line in done.out.splitlines() if line.startswith('  ! ')]
    assert len(reasons) == 1 and 'the last reload was refused' in reasons[0] and 'rp.conf' in reasons[0]
    assert 'changed and refused since' in done.out
    doc = ctl_json(node, 'status', code=DEGRADED)
    assert doc['config']['ok'] is False and 'many' in doc['config']['error']
    assert doc['config']['generation'] == 1
    node.config(STATIC)
    assert ctl(node, 'status').code == OK


def test_status_degraded_by_the_runtime(busy):
    node = busy()
    node.runtime_stop()
    eventually(lambda: ctl(node, 'status').code == DEGRADED)
    doc = ctl_json(node, 'status', code=DEGRADED)
    assert doc['runtime']['connected'] is False and doc['runtime']['error']
    assert 'not connected' in doc['reasons'][0]
    assert 'not connected' in ctl(node, 'status').out
    assert doc['containers'] == 3, 'what was known is known still'
    node.runtime_start()
    node.connected()
    eventually(lambda: ctl(node, 'status').code == OK)


def test_status_of_a_controller_that_does_not_run(make_node):
    """On a machine without resctrl rdt is left out, and that is said with its reason."""
    node = make_node({**STATIC, 'controllers': ['rdt', 'blkio']})
    doc = ctl_json(node, 'status', code=DEGRADED)
    controllers = by_name(doc['controllers'], 'name')
    assert controllers['rdt']['running'] is False and 'resctrl' in controllers['rdt']['error']
    assert controllers['blkio']['running'] is True and controllers['blkio']['error'] is None
    assert [c['mode'] for c in doc['controllers']] == ['relaxed', 'relaxed'], 'names in a list are relaxed'
    text = ctl(node, 'status').out
    assert 'rdt (not running), blkio' in text and '  ! controller rdt is not running: ' in text


# ---- pods and containers ----

@pytest.mark.parametrize('config', POLICIES, ids=lambda c: c['policy'])
def test_pods(busy, config):
    node = busy(config)
    pods = by_name(ctl_json(node, 'pods'), 'name')
    assert {name: p['qos'] for name, p in pods.items()} == {'g': 'Guaranteed', 'b': 'Burstable', 'e': 'BestEffort'}
    assert (pods['g']['cpu_request_milli'], pods['b']['cpu_request_milli']) == (2000, 500)
    assert pods['g']['memory_request'] == 200 * MI
    assert all((p['namespace'], p['containers'], p['live'], p['degraded'], p['stopped']) == ('default', 1, 1, 0, False) for p in pods.values())
    rows = {row['Pod']: row for row in table(ctl(node, 'pods').out)}
    assert (rows['g']['CPU'], rows['g']['Memory'], rows['g']['State'], rows['g']['Namespace']) == ('2', '200 MiB', 'running', 'default')
    assert rows['b']['CPU'] == '500m' and rows['e']['CPU'] == '-' == rows['e']['Memory']
    assert all(pods[name]['id'].startswith(row['ID']) for name, row in rows.items())


@pytest.mark.parametrize('config', POLICIES, ids=lambda c: c['policy'])
def test_containers_are_where_the_runtime_has_them(busy, config):
    node = busy(config)
    documents = by_name(ctl_json(node, 'containers'))
    rows = {row['Container']: row for row in table(ctl(node, 'containers').out)}
    assert set(documents) == set(rows) == {'default/g/own', 'default/b/part', 'default/e/best'}
    for name, doc in documents.items():
        real = node.container(name)
        assert doc['id'] == real['id'] and doc['full_name'] == '/'.join((doc['namespace'], doc['pod'], doc['name']))
        if config is NONE:
            assert doc['cpus'] is None is doc['mems'] and rows[name]['CPUs'] == rows[name]['Mems'] == 'any'
            continue
        assert doc['cpus'] == real['cpus'] == rows[name]['CPUs']
        assert doc['policy'] == config['policy']
        assert (doc['mems'] or '') == (real['mems'] if real['pinnedMemory'] else '')
    assert documents['default/g/own']['wanted'] == {'cpu_request_milli': 2000, 'cpu_limit_milli': 2000,
                                                    'memory_request': 200 * MI, 'memory_limit': 200 * MI}
    assert documents['default/b/part']['wanted']['memory_limit'] == 128 * MI


def test_containers_own_and_shared(busy):
    node = busy()
    documents = by_name(ctl_json(node, 'containers'))
    assert documents['default/g/own']['exclusive'] == documents['default/g/own']['cpus'] == '2-3'
    assert documents['default/b/part']['exclusive'] is None
    rows = {row['Container']: row for row in table(ctl(node, 'containers').out)}
    assert rows['default/g/own']['Use'] == 'exclusive' and rows['default/e/best']['Use'] == 'shared'


def test_exited_stopped_and_removed(busy):
    node = busy()
    node.exit('g/own')
    doc = by_name(ctl_json(node, 'containers'))['default/g/own']
    assert doc['state'] == 'exited'
    assert by_name(ctl_json(node, 'pods'), 'name')['g']['live'] == 0
    row = next(r for r in table(ctl(node, 'pods').out) if r['Pod'] == 'g')
    assert row['Containers'] == '0/1', 'none of one lives'
    assert 'default/g/own' not in ctl_json(node, 'topology')['groups'][0]['containers']
    node.delete('g')
    assert [p['name'] for p in ctl_json(node, 'pods')] == ['b', 'e']
    assert len(ctl_json(node, 'containers')) == 2


@pytest.mark.parametrize('pattern, found', [
    ('default/g', {'g'}), ('g', {'g', 'gg'}), ('gg', {'gg'}), ('*/g', {'g'}), ('*/gg', {'gg'}), ('other/*', {'gg'}), ('*', {'g', 'gg', 'b', 'e'}),
    ('default/[be]', {'b', 'e'}), ('default/?', {'g', 'b', 'e'}), ('?', {'g', 'b', 'e'}), ('nobody', set()), ('', {'g', 'gg', 'b', 'e'}),
])
def test_patterns(busy, pattern, found):
    """A part of namespace/pod; with wildcards a pattern for the whole of it, or of the name alone."""
    node = busy()
    node.create('gg', ctr('x'), namespace='other')
    assert {p['name'] for p in ctl_json(node, 'pods', pattern, code=OK if found else FAILED)} == found
    text = ctl(node, 'pods', pattern).out
    assert {row['Pod'] for row in table(text)} == found if found else text == 'No pods.\n'


def test_nothing_there(make_node):
    node = make_node(STATIC)
    assert ctl(node, 'pods').out == 'No pods.\n' and ctl(node, 'containers').out == 'No containers.\n'
    assert ctl_json(node, 'pods') == [] == ctl_json(node, 'containers')


# ---- topology ----

MACHINES = ['n4c16', 'server-2s', 'laptop', 'l3-domains', 'no-numa', 'hbm-cxl', 'isolated']


def drawn(text):
    """{CPU: letter} of the map."""
    marks = {}
    for line in text.split('\n\n')[1].splitlines():
        if not line.startswith('    '):
            continue
        for cpu, mark in re.findall(r'(\d+) ([A-Za-z]|·)(?= |$)', re.sub(r'^ +cache \d+', '', line)):
            assert int(cpu) not in marks, 'CPU %s is drawn twice' % cpu
            marks[int(cpu)] = mark
    return marks


def legend(text):
    """{letter: (use, CPUs)}."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:2] == ['Use', 'CPUs'])
    found = {}
    for line in lines[at + 1:]:
        if not line:
            break
        letter, use, cpus, *_ = line.split()
        found[letter] = (use, cpuset(cpus))
    return found


@pytest.mark.parametrize('config', [STATIC, TOPOLOGY_AWARE, BALLOONS], ids=lambda c: c['policy'])
@pytest.mark.parametrize('machine', MACHINES)
def test_map_says_who_runs_where(busy, machine, config):
    """Each CPU has the letter of the smallest set that has it: capitals are owned by one, small letters shared, a dot is nobody's."""
    node = busy(config, machine=machine)
    places = {name: cpus for name, (cpus, _) in node.places().items()}
    text = ctl(node, 'topology').out
    marks, letters = drawn(text), legend(text)
    assert set(marks) == set(range({'server-2s': 128, 'l3-domains': 128, 'no-numa': 8, 'hbm-cxl': 8}.get(machine, 16)))
    given = [cpuset(cpus) for cpus in places.values()]
    for cpu, mark in marks.items():
        holders = [s for s in given if cpu in s]
        if not holders:
            assert mark == '·', cpu
            continue
        use, cpus = letters[mark]
        assert cpu in cpus and mark.isupper() == (use == 'exclusive')
        smallest = min((s for _, s in letters.values() if cpu in s), key=len)
        assert len(cpus) == len(smallest)
        if mark.isupper():
            assert sum(cpus <= s for s in given) == 1, 'one alone has it'
    assert set(marks.values()) - {'·'} <= set(letters)


def test_map_of_the_static_policy(busy):
    """By hand: 2-3 are the first whole core, the others share what is left."""
    node = busy()
    text = ctl(node, 'topology').out
    assert drawn(text) == {cpu: 'A' if cpu in (2, 3) else 'a' for cpu in range(16)}
    assert legend(text) == {'A': ('exclusive', {2, 3}), 'a': ('shared', set(range(16)) - {2, 3})}
    assert 'node 0  DRAM 2 GiB, 4 CPUs: 2 exclusive, 2 shared' in text
    doc = ctl_json(node, 'topology')
    assert doc['groups'] == [{'exclusive': True, 'cpus': '2-3', 'containers': ['default/g/own']},
                             {'exclusive': False, 'cpus': '0-1,4-15', 'containers': ['default/b/part', 'default/e/best']}]
    assert [c['cpu'] for c in doc['cpus']] == list(range(16)) and {c['node'] for c in doc['cpus']} == {0, 1, 2, 3}
    assert [(n['node'], n['cpus'], n['memory']) for n in doc['nodes']] == [(i, '%d-%d' % (4 * i, 4 * i + 3), 2 << 30) for i in range(4)]


def test_map_without_pinning(busy):
    node = busy(NONE)
    text = ctl(node, 'topology').out
    assert set(drawn(text).values()) == {'·'}
    assert '3 containers may run on any CPU.' in text
    assert ctl_json(node, 'topology')['unconfined'] == 3
    node.exit('e/best')
    assert ctl_json(node, 'topology')['unconfined'] == 2, 'who has ended runs nowhere'
    node.delete('g')
    assert '1 container may run on any CPU.' in ctl(node, 'topology').out


def test_map_as_a_table(busy):
    node = busy()
    rows = table(ctl(node, 'topology', '--table').out)
    assert [int(r['CPU']) for r in rows] == list(range(16))
    assert {int(r['CPU']) for r in rows if r['Use'] == 'exclusive'} == {2, 3}
    assert [r['Node'] for r in rows] == [str(cpu // 4) for cpu in range(16)]
    assert rows[2]['Containers'] == 'default/g/own'
    assert rows[15]['Containers'] == 'default/b/part, default/e/best'


def test_map_of_a_machine_too_large_for_one(make_node):
    """More than 256 CPUs: a line of sets a memory node."""
    node = make_node(STATIC, machine={'packages': 2, 'nodes': 2, 'cores': 65, 'threads': 2, 'memory': '4Gi'})
    node.create('g', ctr('own', '2', '200Mi'))
    text = ctl(node, 'topology').out
    nodes = [line for line in text.splitlines() if line.startswith('  node ')]
    assert len(nodes) == 4 and all(' 130 CPUs:' in line for line in nodes)
    assert len(text.splitlines()) < 4 * 4 + 2 + 12
    own = node.container('g/own')['cpus']
    assert 'A %s' % own in text and legend(text)['A'] == ('exclusive', cpuset(own))


def test_map_of_cpus_that_are_off(busy):
    node = busy()
    node.offline('8-9')
    node.signal('HUP')
    eventually(lambda: 'offline: 8-9' in ctl(node, 'topology').out)
    text = ctl(node, 'topology').out
    assert set(drawn(text)) == set(range(16)) - {8, 9}
    assert ctl_json(node, 'topology')['online'] == '0-7,10-15'
    assert '14 CPUs' in text.splitlines()[0]


def test_isolated_and_efficient_are_named(make_node):
    assert 'isolated: 12-15\n' in ctl(make_node(STATIC, machine='isolated'), 'topology').out
    laptop = ctl(make_node(STATIC, machine='laptop'), 'topology').out
    assert 'efficient cores: 8-15\n' in laptop and '12 cores, 16 CPUs' in laptop


# ---- zones ----

def check_zones(zones):
    names = [z['name'] for z in zones]
    assert len(set(names)) == len(names)
    for zone in zones:
        assert set(zone) >= {'name', 'type', 'parent', 'resources', 'attributes', 'costs'}
        assert not zone['parent'] or zone['parent'] in names
        for resource in zone['resources']:
            assert set(resource) >= {'name', 'capacity', 'allocatable', 'available'}
            assert all(isinstance(resource[k], int) for k in ('capacity', 'allocatable', 'available'))
            assert resource['capacity'] >= resource['allocatable'] >= resource['available']
        assert all(isinstance(a['value'], str) for a in zone['attributes'])
        assert all(isinstance(c['value'], int) and c['name'] in names for c in zone['costs'])


def attributes(zone):
    return {a['name']: a['value'] for a in zone['attributes']}


def resource(zone, name='cpu'):
    return next(r for r in zone['resources'] if r['name'] == name)


@pytest.mark.parametrize('machine', ['n4c16', 'l3-domains', 'hbm-cxl'])
@pytest.mark.parametrize('config', [STATIC, TOPOLOGY_AWARE, BALLOONS], ids=lambda c: c['policy'])
def test_zones_are_sound(busy, config, machine):
    node = busy(config, machine=machine)
    zones = ctl_json(node, 'zones')
    assert zones
    check_zones(zones)
    text = ctl(node, 'zones').out
    lines = text.splitlines()[1:]
    assert [re.split('  +', line.strip())[0] for line in lines] == [z['name'] for z in zones]
    depth = {}
    for zone, line in zip(zones, lines):
        depth[zone['name']] = depth[zone['parent']] + 1 if zone['parent'] else 0
        assert len(line) - len(line.lstrip()) == 2 * depth[zone['name']], 'indented below its parent'


def test_zones_of_static(busy):
    """A zone a memory node: what is free of it is what nobody owns and nobody reserved."""
    zones = ctl_json(busy(), 'zones')
    assert len(zones) == 4
    cpu = [resource(z) for z in zones]
    assert [r['capacity'] for r in cpu] == [4000] * 4
    assert [r['allocatable'] for r in cpu] == [3000, 4000, 4000, 4000]
    assert [r['available'] for r in cpu] == [1000, 4000, 4000, 4000]
    assert attributes(zones[0])['reserved cpuset'] == '0' and attributes(zones[0])['shared cpuset'] == '0-1'


def test_reserved_cpus_are_not_free(make_node):
    """Without a container on them, too."""
    node = make_node({'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0,4'}}})
    assert ctl_json(node, 'topology')['reserved'] == '0,4'
    said = ctl(node, 'topology').out
    assert 'reserved: 0,4' in said and said.count('4 CPUs: 1 reserved, 3 free') == 2 and said.count('4 CPUs: 4 free') == 2


def test_explain_says_which_document_it_is(make_node):
    node = make_node({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.create('a', ctr('a0', '8', '64Mi'))
    node.reject('b', ctr('b0', '9', '64Mi'))
    assert [ctl_json(node, 'explain', *args)['document'] for args in (['a'], ['b'], ['--history', 'a'])] == ['container', 'refusal', 'history']
    doc = ctl_json(node, 'explain', 'a')
    assert doc['why'] == doc['trail'] and doc['why']
    # a refusal of any policy says what was wanted and which containers have the CPUs
    why = ctl_json(node, 'explain', 'b')['refused']['why']
    assert 'request of 9 whole CPUs' in why[0] and why[1] == 'exclusive CPUs belong to default/a/a0 ' + node.ctl('containers')[0]['exclusive']


def test_zones_of_topology_aware(busy):
    """The tree of pools: two sockets of two nodes; what a child lacks its parents lack as well."""
    zones = by_name(ctl_json(busy(TOPOLOGY_AWARE), 'zones'), 'name')
    assert {n: z['parent'] for n, z in zones.items()} == {
        'root': '', 'socket #0': 'root', 'socket #1': 'root', 'NUMA node #0': 'socket #0', 'NUMA node #1': 'socket #0',
        'NUMA node #2': 'socket #1', 'NUMA node #3': 'socket #1'}
    assert resource(zones['root'])['capacity'] == 16000
    assert [resource(zones['socket #%d' % i])['capacity'] for i in (0, 1)] == [8000, 8000]
    assert attributes(zones['socket #1'])['memory set'] == '2-3'
    assert '0' == attributes(zones['NUMA node #0'])['reserved cpuset']
    taken = 16000 - resource(zones['root'])['available']
    assert taken >= 1000 + 2000 + 500, 'reserved, own and part'
    shared = [cpuset(attributes(zones['NUMA node #%d' % i]).get('shared cpuset', '')) for i in range(4)]
    assert cpuset(attributes(zones['root'])['shared cpuset']) == set().union(*shared)


def test_zones_as_a_table(busy):
    """By number, CPUs in one unit and without the thousandth that a container without a request counts as, and no name without a value."""
    node = busy(TOPOLOGY_AWARE)
    lines = ctl(node, 'zones').out.splitlines()
    assert [re.split('  +', line.strip())[0] for line in lines[1:]] == [
        'root', 'socket #0', 'NUMA node #0', 'NUMA node #1', 'socket #1', 'NUMA node #2', 'NUMA node #3']
    free = [re.search(r'(\S+) of (\d+)', line).groups() for line in lines[1:]]
    assert all(re.fullmatch(r'\d+(\.\d{1,2})?', number) for number, _ in free), free
    assert not re.search(r'cpuset(;|$)', '\n'.join(lines), re.M)


def test_zones_of_balloons(make_node):
    node = make_node(BALLOONS)
    node.create('d', ctr('db', '2', '64Mi'), namespace='data')
    zones = by_name(ctl_json(node, 'zones'), 'name')
    assert cpuset(attributes(zones['db[0]'])['cpuset']) == node.cpus('data/d/db') and len(node.cpus('data/d/db')) == 2
    assert resource(zones['db[0]'])['allocatable'] == 4000, 'maxCPUs'
    assert attributes(zones['db[0]'])['excess cpus'] == '0m'
    node.delete('d')
    assert 'db[0]' not in by_name(ctl_json(node, 'zones'), 'name')


def test_zones_of_none(busy):
    node = busy(NONE)
    assert ctl_json(node, 'zones') == []
    assert ctl(node, 'zones').out == 'The active policy has no zones.\n'


# ---- explain ----

def line_of(where):
    """The line that "FILE:LINE:COLUMN" is about."""
    path, line, _ = where.rsplit(':', 2)
    return pathlib.Path(path).read_text().splitlines()[int(line) - 1]


@pytest.mark.parametrize('config', [STATIC, TOPOLOGY_AWARE, BALLOONS], ids=lambda c: c['policy'])
def test_explain(busy, config):
    node = busy(config)
    policy = config['policy']
    doc = ctl_json(node, 'explain', 'default/g/own')
    assert doc['full_name'] == 'default/g/own' and doc['policy'] == doc['policy_in_force'] == policy
    assert line_of(doc['configured_at']).startswith('policy')
    assert any(line.startswith((policy, '"%s"' % policy)) for line in (line_of(doc['section']),
               line_of(re.sub(r':(\d+):', lambda m: ':%d:' % (int(m[1]) - 1), doc['section'])))), doc['section']
    assert doc['trail'], 'the policy has its reasons'
    values = by_name(doc['values'], 'name')
    assert values['cpus']['decided'] == values['cpus']['in_force'] == node.container('g/own')['cpus'] and values['cpus']['asked'] is None
    assert (values['quota_us']['asked'], values['period_us']['asked']) == (200000, 100000), 'two CPUs, as the kubelet says it'
    assert values['memory_limit']['asked'] == 200 * MI
    text = ctl(node, 'explain', 'g/own').out
    assert text.splitlines()[0] == 'default/g/own'
    assert 'request 2, limit 2' in text and 'request 200 MiB, limit 200 MiB' in text
    assert re.search(r'^Decided by +%s, chosen at %s, configured at %s$' % tuple(map(re.escape, (policy, doc['configured_at'], doc['section']))),
                     text, re.M)
    for line in doc['trail']:
        assert '  ' + line in text


def test_explain_names_the_drop_in(make_node):
    node = make_node({'policy': 'none'}, start=False)
    folder = pathlib.Path(node.paths['config'] + '.d')
    folder.mkdir()
    (folder / '20-policy.conf').write_text('\npolicy: static\n')
    (folder / '30-static.conf').write_text('static:\n  reservedResources: {cpu: cpuset:0}\n')
    node.start()
    node.create('g', ctr('own', '2', '64Mi'))
    doc = ctl_json(node, 'explain', 'own')
    assert doc['configured_at'].startswith('%s/20-policy.conf:2:' % folder)
    assert doc['section'].startswith('%s/30-static.conf:' % folder)


def test_explain_by_every_name(busy):
    node = busy()
    ident = node.container('g/own')['id']
    for name in ('default/g/own', 'g/own', ident, ident[:12]):
        assert ctl_json(node, 'explain', name)['id'] == ident


def test_explain_of_a_new_policy_has_its_own_reasons(busy):
    node = busy()
    assert 'exclusive CPUs' in ' '.join(ctl_json(node, 'explain', 'g/own')['trail'])
    node.config(BALLOONS)
    doc = ctl_json(node, 'explain', 'g/own')
    assert doc['policy'] == 'balloons' and doc['section'].startswith(node.paths['config'])
    assert not any('exclusive CPUs' in line for line in doc['trail'])
    assert doc['trail'] or doc['remark'], 'and when it has none, that is said'


def test_explain_who_is_not_there(busy):
    node = busy()
    done = ctl(node, 'explain', 'default/g/owner')
    assert done.code == FAILED and done.out == ''
    assert 'default/g/owner' in done.err
    doc = ctl_json(node, 'explain', 'default/g/owner', code=FAILED)
    assert list(doc) == ['error'] and 'default/g/owner' in doc['error']


def test_explain_who_is_meant(make_node):
    """A name of several: how many, and how to say which."""
    node = make_node(STATIC)
    node.create('web', ctr('app'), namespace='red')
    node.create('web', ctr('app'), namespace='blue')
    done = ctl(node, 'explain', 'web/app')
    assert done.code == FAILED
    assert '"web/app" matches 2 containers' in done.err and 'NAMESPACE/POD/CONTAINER' in done.err
    assert ctl_json(node, 'explain', 'blue/web/app')['namespace'] == 'blue'


def test_explain_what_none_leaves(busy):
    doc = ctl_json(busy(NONE), 'explain', 'g/own')
    assert doc['cpus'] is None and doc['policy'] is None and doc['trail'] == []
    assert 'it keeps the CPUs of the runtime' in doc['remark']


def test_explain_after_restart_switch_and_exit(busy):
    """An explanation that lacks something says why."""
    node = busy()
    node.restart()
    doc = ctl_json(node, 'explain', 'g/own')
    assert doc['trail'] == ['keeps its exclusive CPUs'] and 'restored' in doc['flags']
    node.config(NONE)
    doc = ctl_json(node, 'explain', 'g/own')
    assert (doc['policy_in_force'], doc['policy'], doc['cpus'], doc['exclusive']) == ('none', 'static', '2-3', '2-3')
    assert doc['trail'] == [], 'what static thought of it is none of the policy none'
    assert doc['remark']
    node.config(TEMPLATE)
    doc = ctl_json(node, 'explain', 'g/own')
    assert doc['policy'] == 'template' and doc['cpus'] == '4-5'
    node.exit('g/own')
    assert 'exited' in ctl_json(node, 'explain', 'g/own')['remark']


def test_explain_estimated_memory_and_annotations(make_node):
    """Of a burstable container without the kubelet's word the request is worked out of its OOM score, which is said; so are our annotations."""
    node = make_node(TOPOLOGY_AWARE)
    keys = {'prefer-shared-cpus.resource-policy.nri.io/pod': 'true', 'unrelated.example.com/x': 'y'}
    node.create('p', ctr('c', '2/3', '64Mi/128Mi'), annotations=keys)
    doc = ctl_json(node, 'explain', 'p/c')
    assert doc['annotations'] == {'prefer-shared-cpus.resource-policy.nri.io/pod': 'true'}
    text = ctl(node, 'explain', 'p/c').out
    assert ('estimated from its OOM score' in text) == ('memory-estimated' in doc['flags']) is True
    assert '  prefer-shared-cpus.resource-policy.nri.io/pod: true' in text


# ---- events ----

def events(node, *options):
    return [json.loads(line) for line in ctl(node, '--json', 'events', *options).out.splitlines()]


def test_events_tell_the_story(busy):
    node = busy()
    node.reject('big', ctr('c', '64', '64Mi'))
    node.create('h', ctr('more', '2', '64Mi'))
    node.badconfig('policy: [')
    node.delete('h')
    node.config(TEMPLATE)
    told = events(node)
    assert [e['seq'] for e in told] == list(range(1, len(told) + 1))
    assert all(set(e) >= {'seq', 'time', 'kind', 'text'} and TIME.fullmatch(e['time']) for e in told)
    assert [e['time'] for e in told] == sorted(e['time'] for e in told)
    of = {}
    for e in told:
        of.setdefault(e['kind'], []).append(e['text'])
    assert [t.split(':')[0] for t in of['created']] == ['default/g/own', 'default/b/part', 'default/e/best', 'default/h/more']
    assert '2-3' in of['created'][0] and 'exclusive' in of['created'][0]
    assert len(of['refused']) == 1 and 'default/big/c' in of['refused'][0]
    assert 'refused' in of['config'][0] and 'policy template, 3 containers moved' in of['config'][1]
    assert any('default/h/more' in t for t in of['released'])
    # for h/more and back again, in replies; then by the other policy
    shared = ['0-1,4-15 → 0-1,6-15', '0-1,6-15 → 0-1,4-15', '0-1,4-15 → 6-15']
    for name in 'default/b/part', 'default/e/best':
        assert [t for t in of['moved'] if name in t] == ['%s: CPUs %s' % (name, move) for move in shared]
    assert [t for t in of['moved'] if 'default/g/own' in t] == ['default/g/own: CPUs 2-3 → 4-5'] and len(of['moved']) == 7
    text = ctl(node, 'events').out.splitlines()
    assert len(text) == len(told)
    for line, event in zip(text, told):
        assert line.split()[0] == str(event['seq']) and event['kind'] in line and line.endswith(event['text'])


def test_events_since(busy):
    node = busy()
    last = events(node)[-1]['seq']
    assert events(node, '--since', str(last)) == []
    node.create('h', ctr('more', '1m/-'))
    assert [e['seq'] for e in events(node, '--since', str(last))] == [last + 1]
    assert [e['seq'] for e in events(node, '--since=%d' % (last - 1))] == [last, last + 1]
    assert len(events(node, '--since', '10m')) == last + 1
    done = ctl(node, 'events', '--since', 'yesterday')
    assert done.code == USAGE and 'yesterday' in done.err and '10m' in done.err


def test_only_the_last_512_events(make_node):
    """An event a container that comes, one that it goes."""
    node = make_node(NONE)
    for i in range(26):
        node.create('p%d' % i, *[ctr('c%d' % k) for k in range(10)])
        node.delete('p%d' % i)
    told = events(node)
    assert len(told) == 512
    assert told[-1]['seq'] - told[0]['seq'] == 511 and told[0]['seq'] > 1


@pytest.mark.parametrize('json_', [False, True], ids=['text', 'json'])
def test_events_followed(busy, json_):
    node = busy()
    follower = Following(node, *(['--json'] if json_ else []))
    try:
        follower.until('default/e/best')
        node.create('h', ctr('more', '1m/-'))
        text = follower.until('default/h/more')
        assert text.count('default/g/own: ') == 1
        if json_:
            assert [json.loads(line)['seq'] for line in text.splitlines()] == list(range(1, len(text.splitlines()) + 1))
        node.restart()
        node.create('i', ctr('after', '1m/-'))
        follower.until('default/i/after')
    finally:
        code, err = follower.end()
    assert code == -2, 'interrupted'
    assert 'reconnecting' in err
    assert follower.text.decode().count('default/h/more: ') <= 2, 'told again by nobody but the new daemon'


# ---- configurations ----

def test_reload_and_its_outcome(busy):
    node = busy()
    same = ctl_json(node, 'reload')
    assert (same['outcome'], same['error'], same['moves'], same['restart_needed'], same['generation']) == ('in force', None, [], False, 2)
    node.run('write-config', {**TEMPLATE, 'runtime': {'index': 42}, 'cache': {'dir': '/var/lib/elsewhere'}})
    doc = ctl_json(node, 'reload')
    assert doc['outcome'] == 'in force' and doc['restart_needed'] is True
    assert any(line.startswith('policy') for line in doc['changes']) and any('runtime.index' in line for line in doc['changes'])
    moves = by_name(doc['moves'], 'container')
    assert {name: (m['from_cpus'], m['to_cpus']) for name, m in moves.items()} == {
        'default/g/own': ('2-3', '4-5'), 'default/b/part': ('0-1,4-15', '6-15'), 'default/e/best': ('0-1,4-15', '6-15')}
    node.expect('cpus(own) == 4-5', 'cpus(part) == cpus(best) == 6-15')
    node.allow('(Configure|Synchronize): the connection was lost')  # another index: the daemon reconnects, perhaps as the test ends


def test_reload_as_text(busy):
    node = busy()
    assert re.match(r'Active, generation 2; 0 containers moved \(.*\)\n$', ctl(node, 'reload').out)
    node.run('write-config', TEMPLATE)
    done = ctl(node, 'reload')
    assert done.code == OK and 'generation 3; 3 containers moved' in done.out and 'Changes' in done.out
    row = next(line for line in done.out.splitlines() if line.startswith('default/g/own'))
    assert row.split()[1:3] == ['2-3', '4-5']


@pytest.mark.parametrize('command', ['reload', 'check', 'plan', 'check-local'])
def test_wrong_configuration(busy, tmp_path, command):
    """Everybody who reads it finds the same, with place, key and remedy, and exits with 78."""
    node = busy()
    before = node.places()
    wrong = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}, 'relaxedIsolatoin': True, 'pinMemory': 'perhaps'}}
    node.run('write-config', wrong)
    path = node.paths['config']
    words = {'reload': ['reload'], 'check': ['config', 'check'], 'plan': ['plan', path],
             'check-local': ['--module-dir', str(BUILD / 'modules'), 'config', 'check', '--local', path]}[command]
    done = ctl(node, *words)
    assert done.code == CONFIG
    text = done.out + done.err
    lines = pathlib.Path(path).read_text().splitlines()
    for key, hint in (('relaxedIsolatoin', 'relaxedIsolation'), ('pinMemory', 'perhaps')):
        line = next(i for i, l in enumerate(lines, 1) if key in l)
        assert re.search(r'rp\.conf:%d:\d+: static\.%s: .*%s' % (line, key, hint), text), text
    assert node.places() == before
    if command != 'check-local':
        doc = ctl_json(node, *words, code=CONFIG)
        assert doc['outcome'] == 'refused' and len(doc['problems']) == 2 and doc['moves'] == []


def test_plan_changes_nothing(busy, tmp_path):
    node = busy()
    before = node.places()
    node.updates()
    path = tmp_path / 'next.conf'
    path.write_text('policy: template\nmetrics: {listen: ""}\ntemplate: {reservedResources: {cpu: "cpuset:0-3"}}\n')
    doc = ctl_json(node, 'plan', str(path))
    assert doc['outcome'] == 'accepted'
    assert {m['container'] for m in doc['moves']} == {'default/g/own', 'default/b/part', 'default/e/best'}
    assert 'Would be accepted; 3 containers would move' in ctl(node, 'plan', str(path)).out
    relative = run_ctl('--socket', node.paths['control'], 'plan', 'next.conf', cwd=tmp_path)
    assert relative.code == OK, 'a path is that of who asks'
    node.settle()
    assert node.places() == before and node.updates() == []
    assert ctl_json(node, 'status')['config']['generation'] == 1
    pathlib.Path(node.paths['config']).write_text(path.read_text())
    moved = ctl_json(node, 'reload')['moves']
    assert [(m['container'], m['to_cpus']) for m in moved] == [(m['container'], m['to_cpus']) for m in doc['moves']], 'as it was planned'


def test_a_dry_run_leaves_no_trace_in_the_log(busy, tmp_path):
    """What a module warns of is told to whoever asked, and looks like nothing that has happened."""
    node = busy()
    path = tmp_path / 'next.conf'
    path.write_text('policy: static\nstatic: {reservedResources: {cpu: cpuset:0-15}, cpuManagerPolicyOptions: {strict-cpu-reservation: true}}\n')
    lines = len(node.read_log().split('\n'))
    doc = ctl_json(node, 'plan', str(path), code=78)
    assert any('no container can be placed' in w for w in doc['problems']), doc
    path.write_text('policy: static\nstatic: {reservedResources: {cpu: cpuset:0}, topologyManagerPolicy: all}\n')
    ctl_json(node, 'plan', str(path), code=78)
    assert node.read_log().split('\n')[lines:] == []


def test_plan_and_check_of_the_standard_input(busy):
    """Where the root of a container is read-only no file can be put: the text is sent."""
    node = busy()
    text = 'policy: template\ntemplate: {reservedResources: {cpu: "cpuset:0-3"}}\n'
    doc = json.loads(ctl(node, '--json', 'plan', '-', input=text).out)
    assert doc['outcome'] == 'accepted' and len(doc['moves']) == 3
    assert ctl(node, 'config', 'check', '-', input=text).out.startswith('Good; 3 containers would move')
    for words in (['plan', '-'], ['config', 'check', '-'], ['config', 'check', '--local', '-', '--module-dir', BUILD / 'modules']):
        done = ctl(node, *words, input='policy: none\npolcy: 1\n')
        assert done.code == CONFIG and 'standard input:2:1: polcy' in done.out + done.err, done
        assert ctl(node, *words, input='').code == CONFIG


def test_a_line_ends_where_it_ends(busy, tmp_path):
    node = busy()
    path = tmp_path / 'next.conf'
    path.write_text(json.dumps({**STATIC, 'cache': {'dir': '/var/lib/elsewhere'}}))
    out = ctl(node, 'plan', path).out
    assert 'Some changes only take effect after a restart of nri-rpd.\n' in out and '.?' not in out


def test_what_counts_as_a_move(make_node, tmp_path):
    """Containers that stay where they are and are degraded have not moved; weights that change are told."""
    node = make_node({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}, 'pinMemory': True}})
    node.create('g', ctr('g0', '15', '64Mi'))
    node.create('b', ctr('b0', '200m/1', '64Mi'), ctr('b1', '300m/1', '64Mi'))
    path = tmp_path / 'next.conf'
    path.write_text('policy: topology-aware\ntopology-aware: {reservedResources: {cpu: "cpuset:0"}}\n')
    doc = json.loads(ctl(node, '--json', 'plan', path).out)
    assert {m['container'].split('/')[2]: m['moved'] for m in doc['moves'] if m['note']} == {'b0': False, 'b1': False}
    assert doc['classes'] == ['default/b/b0: CPU shares 204 → 2', 'default/b/b1: CPU shares 307 → 2']
    out = ctl(node, 'plan', path).out
    assert out.startswith('Would be accepted; 0 containers would move, 2 containers degraded in place (') and 'CPU shares 204 → 2' in out


@pytest.mark.parametrize('text', [
    'policy: balloons\nballoons: {reservedResources: {cpu: 1}, balloonTypes: [{name: a, minCPUs: 4, maxCPUs: 2}]}\n',
    'policy: none\ncontrollers: [rtd]\n', '', 'policy: static\nstatic: {reservedResources: {cpu: 5000}}\n',
    'policy: balloons\nballoons: {reservedResources: {cpu: 1}, balloonTypes: [{name: a, matchExpressions: [{key: name, operator: equals, values: [x]}]}]}\n',
    'policy: none\n',
], ids=['min-max', 'typo', 'empty', 'too-large', 'operator', 'good'])
def test_the_local_check_gives_the_verdict_of_the_daemon(make_node, tmp_path, text):
    root = make_node(start=False).paths['root']
    path = tmp_path / 'rp.conf'
    path.write_text(text)
    modules = ['--module-dir', str(BUILD / 'modules'), '--host-root', root]
    own = subprocess.run([BUILD / 'bin/nri-rpd', '--check-config', '--config', path, *modules], capture_output=True, text=True, timeout=60)
    done = run_ctl(*modules, 'config', 'check', '--local', path)
    assert done.code == own.returncode
    said = ' '.join((own.stdout + own.stderr).split())
    for problem in json.loads(run_ctl('--json', *modules, 'config', 'check', '--local', path).out)['problems']:
        assert problem.removeprefix('warning: ') in said


def test_follow_begins_with_the_last_ten(busy):
    node = busy()
    for i in range(12):
        node.create('p%d' % i, ctr('c%d' % i, '1m/-'))
    every = [json.loads(line)['seq'] for line in ctl(node, '--json', 'events').out.splitlines()]
    follow = subprocess.Popen([BUILD / 'bin/nri-rpctl', '--socket', node.paths['control'], '--json', 'events', '--follow'], stdout=subprocess.PIPE, text=True)
    try:
        assert [json.loads(follow.stdout.readline())['seq'] for _ in range(10)] == every[-10:] and len(every) > 10
        node.create('last', ctr('last', '1m/-'))
        assert json.loads(follow.stdout.readline())['seq'] > every[-1]
    finally:
        follow.kill()
        follow.wait()


def test_plan_of_no_file(busy, tmp_path):
    node = busy()
    done = ctl(node, 'plan', tmp_path / 'none.conf')
    assert done.code == FAILED and str(tmp_path / 'none.conf') in done.err and 'No such file' in done.err


def test_config_check_of_a_good_file(busy, tmp_path):
    node = busy()
    assert ctl(node, 'config', 'check').out.startswith('Good; 0 containers would move')
    path = tmp_path / 'other.conf'
    path.write_text('policy: none\n')
    assert ctl_json(node, 'config', 'check', str(path))['outcome'] == 'accepted'
    assert ctl_json(node, '--config', str(path), 'config', 'check')['outcome'] == 'accepted'
    assert ctl(node, 'config', 'check', '--local', path, '--module-dir', BUILD / 'modules').code == OK


def test_config_show(make_node):
    node = make_node({**STATIC, 'log': {'level': 'notice'}}, start=False)
    folder = pathlib.Path(node.paths['config'] + '.d')
    folder.mkdir()
    (folder / 'a.conf').write_text('# mine\nlog:\n  source: true\n')
    node.start()
    shown = ctl(node, 'config', 'show').out
    assert re.search(r'^log:\n  level: "?notice"?\n  source: true$', shown, re.M), shown
    assert '#' not in shown and 'resetOnSwitch' not in shown
    origin = ctl(node, 'config', 'show', '--origin').out
    assert '  source: true  # %s/a.conf:3' % folder in origin.splitlines()
    line = next(l for l in origin.splitlines() if l.startswith('policy:'))
    assert re.search(r'# %s:(\d+)$' % re.escape(node.paths['config']), line)
    full = ctl(node, 'config', 'show', '--defaults').out
    assert 'onPolicyError: reject  # default' in full and re.search(r'^  rdt: auto  # default$', full, re.M)
    assert not re.search(r'source: true  # default', full)
    doc = ctl_json(node, 'config', 'show')
    assert doc['yaml'] == shown and doc['path'] == node.paths['config'] and doc['generation'] == 1


def test_config_show_is_itself_a_configuration(busy, tmp_path):
    node = busy({**BALLOONS, 'controllers': ['blkio'], 'log': {'debug': ['nri']}})
    path = tmp_path / 'shown.conf'
    path.write_text(ctl(node, 'config', 'show').out)
    doc = ctl_json(node, 'plan', str(path))
    assert doc['outcome'] == 'accepted' and doc['moves'] == [] and doc['changes'] == []


def test_rebalance(busy):
    node = busy(TOPOLOGY_AWARE)
    assert ctl_json(node, 'rebalance')['moved'] == 0
    assert ctl_json(node, 'rebalance', '3')['policy'] == 'topology-aware'
    for wrong in ('x', '-1', '70000', '1.5'):
        done = ctl(node, 'rebalance', '--', wrong)
        assert done.code == USAGE and wrong in done.err
    assert ctl_json(node, 'status')['counts']['moved'] == 0


# ---- modules ----

def test_modules(busy):
    node = busy({**STATIC, 'controllers': ['blkio']})
    doc = ctl_json(node, 'modules')
    modules = by_name(doc['modules'], 'name')
    installed = {p.stem for p in (BUILD / 'modules').glob('*.so')}
    assert set(modules) == installed and doc['deaths'] == []
    assert {n for n, m in modules.items() if m['in_use']} == {'static', 'blkio'}
    assert modules['static']['kinds'] == ['policy'] and modules['rdt']['kinds'] == ['controller']
    assert modules['static']['path'] == str(BUILD / 'modules' / 'static.so')
    rows = {row['Module']: row for row in table(ctl(node, 'modules').out)}
    assert set(rows) == installed
    assert (rows['static']['State'], rows['balloons']['State']) == ('in use', 'installed')
    done = ctl(node, 'modules', 'clear', 'static')
    assert done.code == FAILED and 'static' in done.err
