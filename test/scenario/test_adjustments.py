# SPDX-License-Identifier: Apache-2.0
"""Adjustments: containers that are placed by other requests than their pods have."""
import json
import pathlib
import re
import subprocess

import pytest

from simnode import BUILD, INSTRUMENTED, SimError, ctr, eventually
from test_controllers import CLASS_KEY, RDT, add_cgroup, add_resctrl, cgroup_of, get
from apiserver import FORMER, FORMER_ADJUSTMENTS
from test_cluster import MAPS, NODE, NS, Cluster, memory_of

TA = {'policy': 'topology-aware', 'topology-aware': {'packing': 'balanced', 'reservedResources': {'cpu': 'cpuset:0'}}}


def more(name, pod, cpu, **else_):
    return {'name': name, 'scope': [{'containers': [{'key': 'pod/name', 'operator': 'Equals', 'values': [pod]}]}],
            'resources': {'requests': {'cpu': cpu}, 'limits': {'cpu': cpu}}, **else_}


def adjusted(*adjustments):
    return {**TA, 'adjustments': list(adjustments)}


def size(node, pod):
    return len(node.cpus('default/%s/c0' % pod))


def becomes(node, pod, n):
    """The runtime is told after the configuration is in force."""
    eventually(lambda: size(node, pod) == n)


def explained(node, pod):
    """Who says so, and the notes of the decision."""
    said = node.ctl('explain', 'default/%s/c0' % pod)
    return said['adjustment'], '\n'.join(map(str, said['trail']))


@pytest.fixture
def node(make_node):
    node = make_node(TA)
    node.create('web', ctr('c0', '2', '64Mi'))
    node.create('other', ctr('c0', '1', '64Mi'))
    return node


def test_it_comes_and_goes(node):
    other = node.cpus('default/other/c0')
    assert (size(node, 'web'), size(node, 'other')) == (2, 1)
    node.config(adjusted(more('larger', 'web', '3')))
    becomes(node, 'web', 3)
    assert explained(node, 'web')[0] == 'larger' and explained(node, 'other')[0] is None
    node.restart()
    assert (size(node, 'web'), node.cpus('default/other/c0')) == (3, other)
    # one that comes is as large from the first
    node.delete('web')
    node.create('web', ctr('c0', '2', '64Mi'))
    assert size(node, 'web') == 3 and 'adjusted by larger: CPU request 2000m → 3000m' in explained(node, 'web')[1]
    node.config(TA)
    becomes(node, 'web', 2)
    assert node.cpus('default/other/c0') == other


def test_a_resize_below_it(node):
    node.config(adjusted(more('larger', 'web', '4')))
    becomes(node, 'web', 4)
    node.update('default/web/c0', cpu='3')
    assert size(node, 'web') == 4
    node.config(TA)
    becomes(node, 'web', 3)


def refused(node, *adjustments):
    with pytest.raises(SimError) as said:
        node.config(adjusted(*adjustments))
    return str(said.value)


def test_contradictions_are_refused(node):
    said = refused(node, more('a', 'web', '3'), more('b', 'web', '4'))
    assert 'both a and b apply to container default/web/c0' in said and size(node, 'web') == 2
    node.create('idle', ctr('c0'))
    assert 'has no requests' in refused(node, more('a', 'idle', '3'))
    # what comes later is no reason to stop the node: the first one counts
    node.config(adjusted(more('a', 'late', '3'), more('b', 'late', '4')))
    node.create('late', ctr('c0', '2', '64Mi'))
    assert size(node, 'late') == 3


@pytest.mark.parametrize('broken, said', [
    ({'scope': []}, 'a scope is a list'),
    ({'scope': [{'containers': [{'key': 'nothing', 'operator': 'Exists'}]}]}, 'bad key'),
    ({'resources': {}}, 'needs requests or limits'),
    ({'resources': {'requests': {'cpu': 'many'}}}, 'expected an amount of CPU'),
    ({'resources': {'requests': {'cpu': '2'}, 'limits': {'cpu': '1'}}}, 'less than what is requested'),
    ({'resources': {'requests': {'gpu': '2'}}}, 'unknown key'),
    ({'classes': {'cpu': 'gold'}}, 'unknown key'),
    ({'classes': {'rdt': ''}}, 'expected the name of a class'),
    ({'classes': {}}, 'with names of classes'),
    ({'toptierLimit': 'much'}, 'expected an amount of memory above 0'),
    ({'toptierLimit': '0'}, 'expected an amount of memory above 0'),
])
def test_what_makes_no_sense_is_refused_with_its_place(node, broken, said):
    text = refused(node, {**more('a', 'web', '3'), **broken})
    assert said in text and 'adjustments[0]' in text
    assert size(node, 'web') == 2


def classed(name, pod, rdt):
    return {**{k: v for k, v in more(name, pod, '1').items() if k != 'resources'}, 'classes': {'rdt': rdt}}


TASKS = 'sys/fs/resctrl/nri-rp.%s/tasks'


def moves(node, group, thread, pod):
    """A folder of files keeps what was written before: the file is emptied for the next move."""
    eventually(lambda: get(node, TASKS % group) == thread + '\n')
    node.check()
    assert node.ctl('explain', 'default/%s/c0' % pod)['rdt_class'] == group
    (pathlib.Path(node.paths['root']) / (TASKS % group)).write_text('')


def test_a_class_moves_its_tasks_live(make_node):
    conf = {**TA, 'controllers': ['rdt'], **RDT}
    node = make_node(conf, start=False)
    add_resctrl(node)
    node.start()
    node.create('web', ctr('c0', '1', '64Mi'), annotations={CLASS_KEY: 'bronze'})
    node.create('idle', ctr('c0'))
    add_cgroup(node, 'web/c0', {'cgroup.threads': '4711\n'})
    add_cgroup(node, 'idle/c0', {'cgroup.threads': '4712\n'})
    cpus = node.cpus('default/web/c0')
    # also for a container that requests nothing, as nothing of it is resized
    for pod, thread in ('web', '4711'), ('idle', '4712'):
        node.config({**conf, 'adjustments': [classed('a', pod, 'gold')]})
        moves(node, 'gold', thread, pod)
        assert 'classes by a: RDT gold' in explained(node, pod)[1]
    assert node.cpus('default/web/c0') == cpus and explained(node, 'web')[0] is None
    # a restart keeps it, and with the adjustment its class goes
    eventually(lambda: '4711' in get(node, TASKS % 'bronze'))
    (pathlib.Path(node.paths['root']) / (TASKS % 'bronze')).write_text('')
    node.config({**conf, 'adjustments': [classed('a', 'web', 'gold')]})
    moves(node, 'gold', '4711', 'web')
    node.kill()
    node.start()
    moves(node, 'gold', '4711', 'web')
    node.config(conf)
    eventually(lambda: get(node, TASKS % 'bronze') == '4711\n')
    assert node.ctl('explain', 'default/web/c0').get('rdt_class') in ('', None)


def tiered(name, pod, limit):
    return {'name': name, 'scope': more(name, pod, '1')['scope'], 'toptierLimit': limit}


def test_the_top_tier(make_node):
    """The story a-limit-of-the-top-tier has the file; here is what people are told, with it and without."""
    node = make_node(TA)
    node.create('web', ctr('c0', '1', '64Mi'))
    node.create('other', ctr('c0', '1', '64Mi'))
    tier = 'memory.toptier_soft_limit_in_bytes'
    add_cgroup(node, 'web/c0', {tier: '-1\n'})
    add_cgroup(node, 'other/c0', {})
    add_cgroup(node, 'other/c0', {'memory.current': '0\n'})
    cpus = node.cpus('default/web/c0')
    both = {**TA, 'adjustments': [tiered('a', 'web', '1Gi'), tiered('b', 'other', '1Gi')]}
    node.config(both)
    assert node.ctl('explain', 'default/web/c0')['toptier_written'] is False
    text = subprocess.run([str(BUILD / 'bin' / 'nri-rpctl'), '--socket', node.paths['control'], 'explain', 'default/web/c0'], capture_output=True, text=True, check=True).stdout
    assert re.search(r'Top tier +at most 1(\.0)? GiB, not applied: the controller memory is not running', text)
    node.config({**both, 'controllers': ['memory']})

    def told(pod):
        said = node.ctl('explain', 'default/%s/c0' % pod)
        return said['toptier_limit'], said['toptier_written'], [(c['result'], c.get('text') or '') for c in said['controllers']]
    eventually(lambda: told('web') == (1 << 30, True, [('done', '')]))
    eventually(lambda: told('other') == (1 << 30, True, [('failed', 'this kernel has no ' + tier)]))
    assert get(node, '%s/%s' % (cgroup_of(node, 'web/c0'), tier)) == str(1 << 30)
    name, trail = explained(node, 'web')
    assert name == 'a' and 'at most 1073741824 bytes of the top tier by a' in trail
    assert node.cpus('default/web/c0') == cpus


def test_the_cluster_pushes_them(make_node, tmp_path):
    """As a key of a ConfigMap, beside the files' own policy."""
    with Cluster(make_node, tmp_path, config=TA) as c:
        c.node.create('web', ctr('c0', '2', '64Mi'))
        c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'adjustments': json.dumps([more('larger', 'web', '3')])}})
        becomes(c.node, 'web', 3)
        assert c.policy() == 'topology-aware'
        c.agent.kill()
        c.node.restart()
        becomes(c.node, 'web', 3)
        assert explained(c.node, 'web')[0] == 'larger'
        c.agent.start()
        c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'adjustments': json.dumps([more('a', 'web', '3'), more('b', 'web', '4')])}})
        eventually(lambda: 'both a and b' in (c.api.find('nodes', None, NODE)['metadata'].get('annotations') or {}).get('nri-rp/config-status', ''))
        assert size(c.node, 'web') == 3
        c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'adjustments': '[]'}})
        becomes(c.node, 'web', 2)


ADJUSTMENTS = 'adjustments'


def resource(pod, cpu, *nodes, **else_):
    item = more('', pod, cpu, **else_)
    return {'spec': {'scope': [{'nodes': list(nodes), **item['scope'][0]}], **{k: v for k, v in item.items() if k not in ('name', 'scope')}}}


def verdict(c, name):
    return ((c.api.find(ADJUSTMENTS, NS, name).get('status') or {}).get('nodes') or {}).get(NODE)


def accepted(c, name, generation=1):
    eventually(lambda: verdict(c, name) == {'status': 'Success', 'generation': generation})


def test_custom_resources(make_node, tmp_path):
    with Cluster(make_node, tmp_path, config=TA) as c:
        c.node.create('web', ctr('c0', '2', '64Mi'))
        c.api.put(ADJUSTMENTS, NS, 'larger', resource('web', '3', 'm1', 'n*'))
        c.api.put(ADJUSTMENTS, NS, 'elsewhere', resource('web', '4', 'm*'))
        becomes(c.node, 'web', 3)
        accepted(c, 'larger')
        assert c.node.ctl('status', check=False)['adjustments'] == 1
        assert verdict(c, 'elsewhere') is None and explained(c.node, 'web')[0] == 'larger'
        # a configuration comes and goes beside them
        c.api.put(MAPS, NS, 'nri-rp-config.default', {'data': {'topology-aware': json.dumps({**TA['topology-aware'], 'pinMemory': False})}})
        eventually(lambda: 'nri-rp-config.default' in (c.status()['configuration'] or ''))
        assert size(c.node, 'web') == 3
        # two that cannot both be meant: both say so, and what was in force stays
        c.api.put(ADJUSTMENTS, NS, 'zz', resource('web', '4'))
        eventually(lambda: all((verdict(c, n) or {}).get('status') == 'Failure' for n in ('larger', 'zz')))
        for name in 'larger', 'zz':
            said = verdict(c, name)
            assert 'both larger and zz' in said['errors'] and list(said['containers']) == ['default/web/c0']
            assert 'both larger and zz' in said['containers']['default/web/c0']
        assert size(c.node, 'web') == 3
        c.api.delete(ADJUSTMENTS, NS, 'larger')
        becomes(c.node, 'web', 4)
        accepted(c, 'zz')
        # not for this node any more
        c.api.put(ADJUSTMENTS, NS, 'zz', resource('web', '4', 'm1'))
        becomes(c.node, 'web', 2)
        eventually(lambda: verdict(c, 'zz') is None)
        assert c.status()['problems'] == [] and 'nri-rp-config.default' in c.status()['configuration']


def test_custom_resources_outlive_restarts(make_node, tmp_path):
    with Cluster(make_node, tmp_path, config=TA) as c:
        c.node.create('web', ctr('c0', '2', '64Mi'))
        c.api.put(ADJUSTMENTS, NS, 'larger', resource('web', '3'))
        becomes(c.node, 'web', 3)
        accepted(c, 'larger')
        writes = len(c.writes(ADJUSTMENTS))
        c.agent.kill()
        c.node.restart()
        assert size(c.node, 'web') == 3 and explained(c.node, 'web')[0] == 'larger'
        c.api.delete(ADJUSTMENTS, NS, 'larger')
        c.agent.start()
        becomes(c.node, 'web', 2)
        assert len(c.writes(ADJUSTMENTS)) == writes


def test_a_resource_that_makes_no_sense(make_node, tmp_path):
    with Cluster(make_node, tmp_path, config=TA) as c:
        c.api.put(ADJUSTMENTS, NS, 'odd', resource('web', '3', classes={'cpu': 'gold'}))
        eventually(lambda: (verdict(c, 'odd') or {}).get('status') == 'Failure')
        assert verdict(c, 'odd')['errors'].startswith('adjustment odd: ')
        assert 'adjustments[0].classes.cpu: unknown key' in verdict(c, 'odd')['errors']
        c.api.put(ADJUSTMENTS, NS, 'odd', {'spec': {'scope': 'all'}})
        eventually(lambda: verdict(c, 'odd') is None)
        c.api.put(ADJUSTMENTS, NS, 'odd', resource('web', '3'))
        accepted(c, 'odd', 3)


def test_each_hears_of_its_own_containers(make_node, tmp_path):
    with Cluster(make_node, tmp_path, config=TA) as c:
        c.node.create('web', ctr('c0', '2', '64Mi'))
        c.node.create('db', ctr('c0', '1', '64Mi'))
        c.node.create('idle', ctr('c0'))
        for name, pod in ('a', 'web'), ('b', 'web'), ('c', 'db'), ('d', 'idle'):
            c.api.put(ADJUSTMENTS, NS, name, resource(pod, '3'))
        eventually(lambda: all((verdict(c, n) or {}).get('status') == 'Failure' for n in 'abcd'))
        said = {n: verdict(c, n).get('containers', {}) for n in 'abcd'}
        assert {n: list(s) for n, s in said.items()} == {'a': ['default/web/c0'], 'b': ['default/web/c0'], 'c': [], 'd': ['default/idle/c0']}
        assert 'has no requests' in said['d']['default/idle/c0'] and (size(c.node, 'web'), size(c.node, 'db')) == (2, 1)
        # what is mended is not said any more
        c.api.delete(ADJUSTMENTS, NS, 'd')
        c.api.put(ADJUSTMENTS, NS, 'b', resource('other', '3'))
        for name, generation in ('a', 1), ('b', 2), ('c', 1):
            accepted(c, name, generation)
        becomes(c.node, 'web', 3)
        becomes(c.node, 'db', 3)


def test_those_of_a_former_program(make_node, tmp_path):
    def errors(name):
        return ((c.api.find(FORMER_ADJUSTMENTS, NS, name).get('status') or {}).get('nodes') or {}).get(NODE, {}).get('errors')
    with Cluster(make_node, tmp_path, config=TA) as c:
        c.node.create('web', ctr('c0', '2', '64Mi'))
        eventually(lambda: c.status()['connected'])
        assert c.status()['problems'] == []  # nobody misses that kind
        with c.api.lock:
            c.api.groups.add(FORMER)
        c.agent.stop()
        c.agent.start()
        c.api.put(FORMER_ADJUSTMENTS, NS, 'old', resource('web', '3'))
        becomes(c.node, 'web', 3)
        eventually(lambda: errors('old') == {})
        assert explained(c.node, 'web')[0] == 'criresmgr.intel.com/old'
        c.api.put(ADJUSTMENTS, NS, 'old', resource('web', '4'))
        eventually(lambda: list(errors('old')) == ['default/web/c0'] and (verdict(c, 'old') or {}).get('status') == 'Failure')
        c.api.delete(FORMER_ADJUSTMENTS, NS, 'old')
        becomes(c.node, 'web', 4)
        accepted(c, 'old')


def test_one_that_is_too_long(make_node, tmp_path):
    with Cluster(make_node, tmp_path, config=TA) as c:
        c.node.create('web', ctr('c0', '2', '64Mi'))
        for i in range(12):  # more than an answer may have, page by page
            c.api.put(ADJUSTMENTS, NS, 'long%d' % i, resource('web', '4', note='x' * (1 << 20)))
        c.api.put(ADJUSTMENTS, NS, 'larger', resource('web', '3'))
        eventually(lambda: size(c.node, 'web') == 3, 90)  # 12 MiB of JSON, read again for each page that is too long
        accepted(c, 'larger')
        eventually(lambda: 'longer than' in (verdict(c, 'long0') or {}).get('errors', ''))
        assert INSTRUMENTED or memory_of(c.agent) < 64 << 20
