# SPDX-License-Identifier: Apache-2.0
"""What happened, for whoever asks later: refusals with their reasons, sizes, degradations; over restarts, too.

n4c16 has four NUMA nodes of four CPUs, 4n to 4n+3; CPU 0 is reserved.
"""
import json
import pathlib
import re

import pytest

from operator_tools import FAILED, OK, USAGE, ctl, ctl_json, run_ctl
from simnode import STATIC, TOP, ctr

TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}


def events(node, *options):
    return [json.loads(line) for line in ctl(node, '--json', 'events', *options).out.splitlines()]


@pytest.mark.parametrize('kill', [False, True], ids=['stopped', 'killed'])
def test_a_refusal_is_explained(make_node, kill):
    node = make_node(TOPOLOGY_AWARE)
    node.create('busy', ctr('one', '8', '64Mi'))
    node.reject('web', ctr('app', '12', '64Mi'))
    node.create('later', ctr('two', '1', '64Mi'))

    def look():
        for name in ('default/web/app', 'web/app', 'default/web', 'web'):
            said = ctl_json(node, 'explain', name)['refused']
            assert said['kind'] == 'refused' and said['container'] == 'default/web/app'
            assert '12 exclusive CPUs' in said['text'] and any('none of 7 pools is sufficient' in line for line in said['why'])
            assert 'exclusive CPUs belong to default/busy/one 8-15' in said['why'], said
        done = ctl(node, 'explain', 'web')
        assert done.code == OK and done.out.startswith('Refused ') and 'Attempts' in done.out
        told = ctl_json(node, 'explain', '--history', 'busy')['history']
        assert [e['kind'] for e in told] == ['created']
    look()
    if kill:
        node.settle()  # what happened in the last moments is not kept then
        node.kill()
        node.start()
    else:
        node.restart()
    look()
    numbers = [e['seq'] for e in events(node)]
    assert numbers == list(range(1, len(numbers) + 1)), 'they go on where they were'
    assert events(node, '--since', str(numbers[-1])) == []
    assert ctl(node, 'explain', '--history', 'nobody').code == FAILED
    # once it is there, that it was refused is history
    node.delete('busy')
    node.create('web', ctr('app', '12', '64Mi'))
    assert ctl_json(node, 'explain', 'web')['full_name'] == 'default/web/app'
    assert [e['kind'] for e in ctl_json(node, 'explain', '--history', 'web')['history']] == ['refused', 'created']


def test_changes_for_others_are_told(make_node):
    """Who shares CPUs has fewer when another takes some for itself, and has them back when that goes; of many a few are told."""
    node = make_node(STATIC)
    for i in range(10):
        node.create('s%d' % i, ctr('c', '100m/200m', '64Mi/128Mi'))

    def told(change):
        last = events(node)[-1]['seq']
        change()
        return [e for e in events(node, '--since', str(last)) if e['kind'] == 'moved']
    for change in (lambda: node.create('own', ctr('app', '2', '64Mi')), lambda: node.delete('own')):
        moved = told(change)
        names = [e['container'] for e in moved[:-1]]
        assert len(set(names)) == 8 and all(re.fullmatch('default/s./c', name) for name in names)
        assert all(re.search(': CPUs \\S+ → \\S+$', e['text']) for e in moved[:-1])
        assert moved[-1]['text'] == 'the CPUs of 2 more containers changed with them'
    assert [e['kind'] for e in ctl_json(node, 'explain', '--history', names[0])['history']] == ['created', 'moved', 'moved']
    # nobody moves for one that shares
    assert told(lambda: node.create('s', ctr('c', '100m/200m', '64Mi/128Mi'))) == []


def test_sizes_and_degradations(make_node):
    node = make_node(TOPOLOGY_AWARE)
    node.create('web', ctr('app', '2', '64Mi'))
    node.update('web/app', cpu='3', memory='64Mi')
    node.create('all', ctr('app', '12', '64Mi'))
    node.create('rest', ctr('app'))
    said = {(e['kind'], e['container']): e['text'] for e in events(node)}
    assert 'CPU request 2000m → 3000m' in said['resized', 'default/web/app']
    assert 'reserved' in said['degraded', 'default/rest/app']


def test_failures_are_json(make_node, tmp_path):
    node = make_node(STATIC)
    for words, code in ((['explain', 'x'], FAILED), (['try', tmp_path / 'none'], FAILED), (['plan', tmp_path / 'none'], FAILED), (['nosuch'], USAGE),
                        (['explain'], USAGE), (['events', '--since', 'x'], USAGE), (['log', 'debug', 'nosuch'], USAGE), (['--nosuch'], USAGE), ([], USAGE)):
        assert json.loads(run_ctl('--json', '--socket', node.paths['control'], *words).out)['error'], words
        assert ctl_json(node, *words, code=code)['error'], words
    assert 'not running' in json.loads(run_ctl('--socket', tmp_path / 'none', '--json', 'status').out)['error']


def test_sources_of_the_log(make_node):
    node = make_node(STATIC)
    done = ctl(node, 'log', 'debug', 'storr')
    assert done.code == USAGE and 'did you mean store?' in done.err
    listed = set(re.search("sources are (.*), modules' names", done.err)[1].split(', '))
    used = set()
    for path in (TOP / 'core').rglob('*.c'):
        if path.parts[-2] not in ('nri-rp-agent', 'nri-rp-sim', 'nri-rp-modcheck', 'nri-rpctl', 'grpc', 'nri-rp-bridge'):
            used |= set(re.findall(r'^#define LOG_SOURCE "([^"]*)"', pathlib.Path(path).read_text(), re.M))
    assert listed == used
    for name in sorted(used) + ['balloons', '*', 'off']:
        assert ctl(node, 'log', 'debug', name).code == OK, name


def test_alone_for_now(make_node):
    node = make_node({'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.create('a', ctr('a0'))
    assert ctl_json(node, 'containers')[0]['alone'] is True and ' shared ' in ctl(node, 'containers').out
    node.create('b', ctr('b0', '3', '64Mi'))
    for i in range(4):
        node.create('c%d' % i, ctr('c'))
    crowd = [c for c in ctl_json(node, 'containers') if not c['exclusive']]
    assert any(not c['alone'] for c in crowd)


def test_changes_say_what_in_a_list(make_node):
    node = make_node({'policy': 'balloons', 'balloons': {'balloonTypes': [{'name': 'a', 'namespaces': ['x']}]}})
    node.run('write-config', {'policy': 'balloons', 'balloons': {'balloonTypes': [{'name': 'b', 'maxCPUs': 4}, {'name': 'a', 'namespaces': ['x', 'y']}]}})
    assert ctl_json(node, 'reload')['changes'] == [
        'balloons.balloonTypes[a].namespaces: ["x"] → ["x", "y"]', 'balloons.balloonTypes[b]: (not set) → {name: "b", maxCPUs: 4}']


def test_the_only_memory_node_is_no_move(make_node):
    node = make_node({'policy': 'none'}, machine='laptop')
    node.create('a', ctr('a0'))
    node.run('write-config', {'policy': 'balloons', 'balloons': {'pinMemory': True}})
    moves = ctl_json(node, 'reload')['moves']
    assert all(m['from_cpus'] != m['to_cpus'] for m in moves)
    assert not [e for e in events(node) if e['kind'] == 'moved' and 'memory' in e['text']]
