# SPDX-License-Identifier: Apache-2.0
"""Configurations, live: switches of the policy, and refusals that change nothing."""
import os
import pathlib
import re
import time

import pytest

from operator_tools import CONFIG, OK, ctl
from simnode import STATIC, SimError, ctr

NONE = {'policy': 'none'}
TEMPLATE = {'policy': 'template', 'template': {'reservedResources': {'cpu': 'cpuset:0-1'}}}
ONLINE = set(range(16))


def three_pods(node):
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '4', '64Mi'))
    node.create('s', ctr('s0', '500m/1'))


def test_what_would_undo_placements_is_asked_for(make_node, tmp_path):
    """A file that was emptied, or whose section is nobody's, does not leave the containers to themselves."""
    node = make_node({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.create('g', ctr('own', '2', '64Mi'))
    path = pathlib.Path(node.paths['config'])
    for text, error in [('', 'configuration is empty.*policy: none'), ('# all gone\n---\n', 'configuration is empty'),
                        ('policy: static\nstatik: {reservedResources: {cpu: 1}}\n', 'module statik is not installed; did you mean static'),
                        ('policy: none\nmetric: {listen: ""}\n', 'module metric is not installed; did you mean metrics')]:
        path.write_text(text)
        done = ctl(node, 'reload')
        assert done.code == CONFIG and re.search(error, done.out + done.err), done
        assert node.cpus('g/own') == {2, 3}
    path.write_text('strict: false\npolicy: static\nstatic: {reservedResources: {cpu: cpuset:0}}\nmetric: {listen: ""}\n')
    for command in (['reload'], ['config', 'check']):
        done = ctl(node, *command)
        assert done.code == OK and 'module metric is not installed, not checked; did you mean metrics' in done.out, done


def test_who_loses_what_is_said(make_node, tmp_path):
    """By the plan, by the reply to the reload, and as an event."""
    static = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}
    node = make_node(static)
    node.create('g', ctr('own', '2', '64Mi'))
    node.create('s', ctr('best'))
    path = pathlib.Path(node.paths['config'])
    path.write_text('policy: static\nstatic: {reservedResources: {cpu: cpuset:0}, availableResources: {cpu: cpuset:0-7}}\n')
    fewer = '1 running container get fewer CPUs: default/s/best'
    for command in (['plan', str(path)], ['reload']):
        assert fewer in ctl(node, *command).out
    assert fewer in ctl(node, 'events').out
    path.write_text('policy: template\ntemplate: {reservedResources: {cpu: cpuset:0}, pinCPU: false}\n')
    assert '1 running container lose exclusive CPUs: default/g/own' in ctl(node, 'reload').out
    path.write_text('policy: none\n')
    assert 'running container' not in ctl(node, 'reload').out


def test_moves_before_a_new_index(make_node):
    """The runtime is told what it has to be before the connection is made anew, so that nothing is left to be found out by comparing."""
    node = make_node({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.create('g', ctr('own', '2', '64Mi'))
    node.create('s', ctr('best'))
    node.updates()
    node.config({'policy': 'static', 'runtime': {'index': 50},
                 'static': {'reservedResources': {'cpu': 'cpuset:0'}, 'availableResources': {'cpu': 'cpuset:0-7'}}})
    node.log('name or index, has changed')
    node.log(r'synchronized with .*: 2 pods, 2 containers, 0 updates')
    assert node.cpus('s/best') == {0, 1, 4, 5, 6, 7}
    assert len(node.updates()) == 1


def test_none_leaves_containers_alone(make_node):
    node = make_node(NONE)
    three_pods(node)
    assert all(not c['pinned'] and not c['pinnedMemory'] for c in node.containers().values())
    node.update('s0', cpu='1/2')
    node.delete('a')
    node.restart()
    assert node.updates() == []


def test_template_splits_by_namespace_and_class(make_node):
    node = make_node(TEMPLATE)
    node.create('dns', ctr('d', '100m/-'), namespace='kube-system')
    node.create('web', ctr('w', '2/-'))
    node.create('db', ctr('own', '2', '64Mi'))
    assert node.cpus('kube-system/dns/d') == {0, 1}
    assert node.cpus('own') == {2, 3}
    assert node.cpus('w') == ONLINE - {0, 1, 2, 3}


def test_switch_back_and_forth(make_node):
    node = make_node(NONE)
    three_pods(node)
    node.config(STATIC)
    node.expect('cpus(a0) == 2-3', 'cpus(b0) == 4-7', 'cpus(s0) == online - union(a0, b0)')
    node.config(TEMPLATE)
    node.expect('cpus(a0) == 2-3', 'cpus(b0) == 4-7', 'cpus(s0) == 8-15')
    node.config(STATIC)
    node.expect('count(cpus(a0)) == 2', 'count(cpus(b0)) == 4', 'disjoint(a0, b0, s0)')
    node.settle()
    before = node.places()
    node.config(NONE)
    node.settle()
    assert node.places() == before, 'none does not take back what others gave'
    assert node.status()['synchronizations'] == 1, 'without a new connection'
    assert node.status()['needless'] == 0


@pytest.mark.parametrize('other', ['topology-aware', 'balloons'])
def test_switch_to_another_real_policy(make_node, other):
    node = make_node(STATIC)
    three_pods(node)
    before = node.places()
    node.config({'policy': other, other: {'reservedResources': {'cpu': '750m'}}})
    node.create('d', ctr('d0', '1', '64Mi'))
    node.settle()
    there = node.places()
    node.restart()
    assert node.places() == there, 'and a restart moves nobody'
    node.delete('d')
    node.config(STATIC)
    node.expect('count(cpus(a0)) == 2', 'count(cpus(b0)) == 4', 'disjoint(a0, b0, s0)')
    assert set(before) == set(node.places())


def test_switch_and_create_at_once(make_node):
    """Requests that come right behind a reload find the new policy."""
    node = make_node(NONE)
    node.create('a', ctr('a0', '2', '64Mi'))
    node.config(STATIC)
    node.create('b', ctr('b0', '2', '64Mi'))
    node.expect('disjoint(a0, b0)', 'count(cpus(a0)) == 2')


def test_reload_that_changes_nothing_moves_nobody(node):
    three_pods(node)
    node.updates()
    for how in ('signal', 'control'):
        assert node.reload(how)['accepted']
    node.settle()
    assert node.updates() == []


def test_unrelated_changes_move_nobody(node):
    three_pods(node)
    before = node.places()
    node.config({**STATIC, 'log': {'level': 'debug'}})
    node.settle()
    assert node.places() == before
    node.create('more', ctr('m', '100m/-'))
    node.log(' debug: ')


@pytest.mark.parametrize('bad, why', [
    ('policy: [', 'rp.conf:'),
    ({'policy': 'no-such-policy'}, 'no-such-policy'),
    ({'policy': 'static', 'static': {}}, 'reserved'),
    ({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:99'}}}, ''),
    ({'policy': 'static', 'static': {'reservedResources': {'cpu': '1'}, 'topologyManagerPolicy': 'maybe'}}, 'expected'),
    ({'policy': 'static', 'static': {'reservedResources': {'cpu': '1'}, 'relaxedIsolatoin': True}}, 'relaxedIsolation'),
    ({'policy': 'template', 'template': {'reservedResources': {'cpu': '16'}}}, ''),
    ({'policy': 'none', 'controllers': {'no-such-controller': 'required'}}, 'no-such-controller'),
], ids=str)
@pytest.mark.parametrize('how', ['control', 'signal'])
def test_refused_reload_leaves_all_untouched(node, bad, why, how):
    three_pods(node)
    before, pid = node.places(), node.status()['pid']
    node.updates()
    node.run('write-config', bad)
    answer = node.reload(how)
    assert not answer['accepted']
    assert why in answer['error']
    node.create('c', ctr('c0', '2', '64Mi'))  # by the rules of before
    node.expect('count(cpus(c0)) == 2', 'disjoint(a0, b0, c0, s0)')
    node.delete('c')
    node.settle()
    assert node.places() == before
    assert node.status()['pid'] == pid
    node.run('write-config', STATIC)
    assert node.reload(how)['accepted']


def test_reload_that_cannot_place_everybody_is_refused(node):
    """The trial places every container before anything is put in force."""
    node.create('a', ctr('a0', '12', '64Mi'))
    before = node.places()
    node.badconfig({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0-15'}}})
    assert node.places() == before


def test_missing_and_unreadable_file(node):
    os.rename(node.paths['config'], node.paths['config'] + '.away')
    assert not node.reload()['accepted']
    os.rename(node.paths['config'] + '.away', node.paths['config'])
    assert node.reload()['accepted']


def test_drop_ins(make_node):
    node = make_node(STATIC, start=False)
    folder = pathlib.Path(node.paths['config'] + '.d')
    folder.mkdir()
    (folder / '50-more.conf').write_text('static: {reservedResources: {cpu: cpuset:0-3}}\n')
    node.start()
    node.create('a', ctr('a0', '4', '64Mi'))
    node.expect('disjoint(a0, 0-3)')
    (folder / '50-more.conf').unlink()
    assert node.reload()['accepted']
    node.delete('a')
    node.create('b', ctr('b0', '15', '64Mi'))


def test_custom_resource_document(make_node):
    """The specification of the policy's custom resource can be pasted as it is."""
    node = make_node({'policy': 'static', 'static': {'ReservedResources': {'CPU': 'cpuset:0'}}})
    node.create('a', ctr('a0', '2', '64Mi'))
    node.expect('count(cpus(a0)) == 2')


def test_wrong_configuration_at_start(make_node):
    with pytest.raises(SimError, match='exit status 78'):
        make_node({'policy': 'static', 'static': {'reservedResources': {'cpu': 'many'}}})


def test_many_reloads_at_once(node):
    three_pods(node)
    before = node.places()
    for _ in range(10):
        node.signal('HUP')
    node.create('c', ctr('c0', '100m/-'))
    deadline = time.monotonic() + 10
    while not node.reload()['accepted'] and time.monotonic() < deadline:
        pass
    node.settle()
    assert {name: place for name, place in node.places().items() if name != 'c/c0'} == before


def test_unmanaged_instead_of_refused(make_node):
    node = make_node({**STATIC, 'onPolicyError': 'unmanaged'})
    node.create('a', ctr('a0', '12', '64Mi'))
    node.create('b', ctr('b0', '8', '64Mi'))
    node.expect('cpus(b0) == online - cpus(a0)')
    node.log('runs unmanaged')
    node.delete('a')
    node.create('c', ctr('c0', '2', '64Mi'))
    node.expect('disjoint(b0, c0)')
