# SPDX-License-Identifier: Apache-2.0
"""
Each CPU of a machine in turn goes off line and comes back under the balloons policy, while the daemon runs and while it does not: only the
balloon that had it is made anew elsewhere, of its size, and nobody moves when it is back.
"""
import json

import pytest

from balloonnode import BALLOON, options
from simnode import cpuset, ctr, eventually


def half_full(make_node):
    """
    reserved[0] has 0, three of type a 2-3, 4-5 and 6-7; four CPUs of type b are node 2; one by default is what is left of package 0.
    Node 3 is free.
    """
    node = make_node(options({'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True}, {'name': 'b'}))
    node.create('k', ctr('k0', '1', '64Mi'), namespace='kube-system')
    for i in range(3):
        node.create(f'a{i}', ctr(f'a{i}c', '2', '64Mi'), annotations={BALLOON: 'a'})
    node.create('b', ctr('b0', '4', '64Mi'), annotations={BALLOON: 'b'})
    node.create('d', ctr('d0', '1', '64Mi'))
    assert cpus(node) == THERE
    return node


THERE = {'k0': '0', 'a0c': '2-3', 'a1c': '4-5', 'a2c': '6-7', 'b0': '8-11', 'd0': '1'}
# Who had the CPU, and where it is placed anew: one CPU, a core, or all of node 3.
ANEW = {**{cpu: ('k0', '12') for cpu in (0,)},
        **{cpu: ('d0', '12') for cpu in (1,)},
        **{cpu: ('a%dc' % (cpu // 2 - 1), '12-13') for cpu in range(2, 8)},
        **{cpu: ('b0', '12-15') for cpu in range(8, 12)},
        **{cpu: None for cpu in range(12, 16)}}


def cpus(node):
    return {name.split('/')[-1]: cpus for name, (cpus, _) in node.places().items()}


def running(node, act):
    act()
    node.signal('HUP')
    here = '"cpus": %s' % node.evaluate('count(online)')['why'].split()[-1]
    eventually(lambda: here in json.dumps(node.control('Status')))
    node.settle()


def stopped(node, act):
    node.stop()
    act()
    node.start()
    node.settle()


def killed(node, act):
    node.kill()
    act()
    node.start()
    node.settle()


@pytest.mark.parametrize('how', [running, stopped, killed], ids=lambda how: how.__name__)
@pytest.mark.parametrize('cpu', range(16))
def test_a_cpu(make_node, cpu, how):
    node = half_full(make_node)
    node.updates()
    how(node, lambda: node.offline(str(cpu)))
    moved = ANEW[cpu]
    expected = {**THERE, **({moved[0]: moved[1]} if moved else {})}
    eventually(lambda: cpus(node) == expected)
    assert {u['container'].split('/')[-1] for u in node.updates()} == ({moved[0]} if moved else set())
    how(node, lambda: node.online(str(cpu)))
    assert cpus(node) == expected and node.updates() == []
    # four are free again, wherever they are
    taken = set().union(*(cpuset(c) for c in expected.values()))
    node.reject('y', ctr('y0', '5', '64Mi'), error='no balloon of type')
    node.create('z', ctr('z0', '4', '64Mi'), annotations={BALLOON: 'a'})
    assert node.cpus('z0') == set(range(16)) - taken


@pytest.mark.parametrize('gone', ['0-3', '4-7', '8-11', '12-15'])
def test_a_node(make_node, gone):
    """Four CPUs less, and four are free: all have room, on what is left, and who had none of them stays."""
    node = half_full(make_node)
    node.updates()
    running(node, lambda: node.offline(gone))
    off = cpuset(gone)
    eventually(lambda: [len(cpuset(c)) for c in cpus(node).values()] == [len(cpuset(c)) for c in THERE.values()])
    now = cpus(node)
    sets = [cpuset(c) for c in now.values()]
    assert not off & set().union(*sets) and sum(map(len, sets)) == len(set().union(*sets)), 'disjoint, and on line'
    assert {name: len(cpuset(c)) for name, c in now.items()} == {name: len(cpuset(c)) for name, c in THERE.items()}
    assert {name for name in now if now[name] != THERE[name]} == {name for name, c in THERE.items() if cpuset(c) & off}
    running(node, lambda: node.online(gone))
    assert cpus(node) == now


def test_more_than_there_is_room_for(make_node):
    """Six CPUs less and four free: somebody finds no place and keeps what it has of it, until there is room again."""
    node = half_full(make_node)
    running(node, lambda: node.offline('10-15'))
    now = cpus(node)
    assert {name: now[name] for name in ('k0', 'a0c', 'a1c', 'a2c', 'd0')} == {n: c for n, c in THERE.items() if n != 'b0'}
    assert now['b0'] == '8-9'
    node.log('not placed, keeps its CPUs')
    running(node, lambda: node.online('10-15'))
    node.delete('a0')
    node.settle()
    assert len(node.cpus('b0')) == 4
    node.expect('disjoint(b0, a1c, a2c, d0, k0)')
