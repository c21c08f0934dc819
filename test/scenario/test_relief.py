# SPDX-License-Identifier: Apache-2.0
"""Containers that are moved so that another one fits into one NUMA node: what people see of it, and what outlasts the daemon.

n4c16 has three CPUs to give in node 0 and four in each other node. When c and e have left, w needs one move: b from node 1 to node 2.
"""
import json
import os
import pathlib
import re
import subprocess

import pytest
import yaml

from operator_tools import ctl, ctl_json, free_port, http_get
from simnode import SimError, cpuset, ctr, eventually

RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
POLICIES = {
    'topology-aware': RESERVED,
    'balloons': {**RESERVED, 'balloonTypes': [{'name': 'x', 'minCPUs': 1, 'preferNewBalloons': True, 'namespaces': ['default']}]},
    'static': RESERVED, 'static-plus': RESERVED,
    'cpuset': {**RESERVED, 'minSharedCPUs': 0, 'sharedOverlap': True},
    'qos': {'reservedCPUs': '0', 'rampUpSeconds': 0},
}
EVERY = pytest.mark.parametrize('policy', POLICIES)
DEDICATED = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding":"true"}'}
STAYS = {'movable.resource-policy.nri.io': 'false'}


def settings(policy, **relief):
    return {'policy': policy, policy: {**POLICIES[policy], 'relief': {'at': 'admission', 'exclusive': 'all', **relief}}}


def create(node, pod, cpu, **more):
    node.create(pod, ctr(pod + '0', str(cpu), '64Mi'), annotations={**DEDICATED, **more})


@pytest.fixture
def full(make_node):
    def start(policy, **relief):
        node = make_node(settings(policy, **relief))
        for pod, cpu in (('a', 3), ('b', 2), ('c', 2), ('d', 2), ('e', 2), ('f', 3)):
            create(node, pod, cpu)
        node.delete('c')
        node.delete('e')
        assert nodes(node, 'b') == {1} and nodes(node, 'd') == {2}
        return node
    return start


def nodes(node, pod):
    return {cpu // 4 for cpu in cpuset(node.places()['%s/%s0' % (pod, pod)][0])}


def pod_file(tmp_path, name, cpu):
    amounts = {'cpu': str(cpu), 'memory': '64Mi'}
    path = tmp_path / 'pod.yaml'
    path.write_text(yaml.safe_dump({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'namespace': 'default', 'annotations': DEDICATED},
                                    'spec': {'containers': [{'name': name + '0', 'resources': {'requests': amounts, 'limits': amounts}}]}}))
    return str(path)


@EVERY
def test_try_lists_the_moves(full, tmp_path, policy):
    node = full(policy)
    before = node.places()
    moves = {m['container']: (m['to_cpus'], m['to_mems']) for m in ctl_json(node, 'try', pod_file(tmp_path, 'w', 4))['moves']}
    assert set(moves) == {'default/w/w0', 'default/b/b0'}
    assert node.places() == before
    create(node, 'w', 4)
    assert nodes(node, 'w') == {1} and nodes(node, 'b') == {2}
    known = {c['full_name']: (c['cpus'], c['mems']) for c in ctl_json(node, 'containers')}
    assert moves == {name: known[name] for name in moves}


@EVERY
def test_shown_on_both_sides(full, policy):
    node = full(policy)
    create(node, 'w', 4)
    made_room = 'moved from node 1 to node 2 to make room for default/w/'
    assert made_room in ctl(node, 'explain', 'b/b0').out
    if policy != 'qos':  # moves containers before the pod is created
        assert 'placed in node 1 after 1 move' in ctl(node, 'explain', 'w/w0').out
    moved = [line for line in ctl(node, 'events').out.splitlines() if ' moved ' in line]
    assert [made_room in line for line in moved] == [True], moved
    port = free_port()
    node.config({**settings(policy), 'metrics': {'listen': '127.0.0.1:%d' % port}})
    counted = re.findall(r'^nri_policy_relief_moves_total\{outcome="(\w+)"\} (\d+)', http_get('127.0.0.1:%d' % port).body.decode(), re.M)
    assert dict(counted) == {'moved': '1', 'placed': '1', 'not_found': '0'}


def after_the_move(node):
    """One move would make room for 4 CPUs again, that of b. All others must stay."""
    node.delete('f')
    create(node, 'g', 3, **STAYS)
    node.delete('a')
    create(node, 'h', 1, **STAYS)
    create(node, 'i', 1, **STAYS)
    node.delete('d')
    assert [nodes(node, pod) for pod in 'ghib'] == [{3}, {3}, {0}, {2}]


@pytest.mark.parametrize('end', ['nothing', 'stop', 'kill'])
@EVERY
def test_the_cooldown_outlasts_the_daemon(full, policy, end):
    node = full(policy)
    create(node, 'w', 4)
    assert nodes(node, 'b') == {2}
    if end != 'nothing':
        node.kill() if end == 'kill' else node.stop()
        node.start()
    after_the_move(node)
    if policy == 'qos':  # which binds to one node
        with pytest.raises(SimError):
            create(node, 'v', 4)
    else:
        create(node, 'v', 4)
    assert nodes(node, 'b') == {2}


@EVERY
def test_moved_again_after_the_cooldown(full, policy):
    node = full(policy, cooldown='1ms')
    create(node, 'w', 4)
    after_the_move(node)
    create(node, 'v', 4)
    assert nodes(node, 'v') == {2} and nodes(node, 'b') == {0}


@EVERY
def test_a_kill_after_the_answer_loses_no_move(full, policy):
    node = full(policy)
    create(node, 'w', 4)
    node.kill()
    answered = node.places()
    node.start()
    assert node.places() == answered
    known = {c['full_name']: cpuset(c['exclusive']) for c in ctl_json(node, 'containers')}
    assert {cpu // 4 for cpu in known['default/w/w0']} == {1} and {cpu // 4 for cpu in known['default/b/b0']} == {2}


@pytest.mark.parametrize('policy', [p for p in POLICIES if p != 'qos'])
def test_waiting_containers_are_helped_after_a_restart(full, policy):
    """What waits is known again: the next release frees enough for it."""
    node = full(policy, at='rebalance', exclusive='annotated')
    create(node, 'w', 4, **{'movable.resource-policy.nri.io': 'true'})
    assert len(nodes(node, 'w')) > 1
    node.stop()
    node.start()
    node.delete('b')
    node.settle(300)
    assert nodes(node, 'w') == {1}


def test_a_plan_of_relief_moves_nobody(full, tmp_path):
    """A reload moves none of the containers that cross; the next rebalance does."""
    node = full('topology-aware', moves=0)
    create(node, 'w', 4)
    before = node.places()
    path = tmp_path / 'rp.conf'
    path.write_text(json.dumps(settings('topology-aware', at='rebalance')))
    assert '0 containers would move' in ctl(node, 'plan', str(path)).out
    node.config(settings('topology-aware', at='rebalance'))
    assert node.places() == before
    moved = ctl_json(node, 'rebalance')
    assert moved
    eventually(lambda: nodes(node, 'w') == {1} and nodes(node, 'b') == {2})


def test_the_pictures_of_the_manual_are_the_simulators():
    """nri-rp-placement(7) shows the machine before and after the move of the first story, as nri-rp-sim draws it."""
    top = pathlib.Path(__file__).resolve().parents[2]
    page = (top / 'man/nri-rp-placement.7').read_text()
    shown = re.findall(r'^\.Bd -literal\n(package 0\n.*?)^\.Ed', page.replace('\\(bu', '·').replace(' | ', ' │ '), re.M | re.S)
    sim = pathlib.Path(os.environ.get('NRI_RP_BUILD', top / 'build'), 'bin/nri-rp-sim')
    played = subprocess.run([sim, 'play', '--verbose', top / 'test/scenario/stories/topology-aware/relief.yaml'], capture_output=True, text=True)
    story = played.stdout.split('\nok ')[0]
    before, after = (re.search(r'^--- %s\n\n(package 0\n.*?)^  A ' % step, story, re.M | re.S).group(1) for step in ('delete: c; e', 'create: w'))
    assert shown == [before, after]
