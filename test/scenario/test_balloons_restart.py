# SPDX-License-Identifier: Apache-2.0
"""
A day of the balloons policy, told step by step with what everybody has then, and cut at each of its steps: the daemon is killed, stopped,
reloaded, or the runtime starts anew. Nobody hears anything of it, and the day goes on as if it had not been.
"""
import pytest

from balloonnode import BALLOON, options
from simnode import ctr

TYPES = ({'name': 's', 'shareIdleCPUsInSame': 'numa'}, {'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True})


def make(pod, name, cpu, kind=None):
    annotations = {'annotations': {BALLOON: kind}} if kind else {}
    return lambda node: node.create(pod, ctr(name, cpu, '64Mi'), **annotations)


def end(pod):
    return lambda node: node.delete(pod)


def resize(name, **amounts):
    return lambda node: node.update(name, **amounts)


# Packing on n4c16; reserved[0] has CPU 0. Node i has CPUs 4i to 4i+3, cores are pairs, each with an L2 cache of its own.
DAY = [
    # beside CPU 0, as its core is the fullest place; 2-3 are idle in the node
    (make('s1', 'c1', '1', 's'), {'c1': '1-3'}),
    # package 0 has 6 free, node 0 the fewest of them that are a core
    (make('a1', 'c2', '2', 'a'), {'c1': '1', 'c2': '2-3'}),
    # three at once: node 1, of it a core and a thread
    (make('a2', 'c3', '3', 'a'), {'c1': '1', 'c2': '2-3', 'c3': '4-6'}),
    # half a CPU by default: the last one of package 0
    (make('d1', 'c4', '500m'), {'c1': '1', 'c2': '2-3', 'c3': '4-6', 'c4': '7'}),
    # 1100m are two CPUs, and package 0 has none
    (make('d2', 'c5', '600m'), {'c1': '1', 'c2': '2-3', 'c3': '4-6', 'c4': '7-8', 'c5': '7-8'}),
    (end('a1'), {'c1': '1-3', 'c3': '4-6', 'c4': '7-8', 'c5': '7-8'}),
    # the first of core (2,3)
    (make('a3', 'c6', '1', 'a'), {'c1': '1,3', 'c3': '4-6', 'c4': '7-8', 'c5': '7-8', 'c6': '2'}),
    # 6 is alone in its core; then 5, the larger of two alike
    (resize('c3', cpu='1'), {'c1': '1,3', 'c3': '4', 'c4': '7-8', 'c5': '7-8', 'c6': '2'}),
    # one of each package: package 0 has fewer free CPUs, 7 goes
    (end('d1'), {'c1': '1,3', 'c3': '4', 'c5': '8', 'c6': '2'}),
    # a second one of the type, in the balloon that is there: its node has one more
    (make('s2', 'c7', '1', 's'), {'c1': '1,3', 'c3': '4', 'c5': '8', 'c6': '2', 'c7': '1,3'}),
    (end('a3'), {'c1': '1-3', 'c3': '4', 'c5': '8', 'c7': '1-3'}),
    # core (0,1) has no free CPU, core (2,3) has one: 1 goes, and is seen as an idle one
    (end('s1'), {'c3': '4', 'c5': '8', 'c7': '1-3'}),
    # in nodes 1 and 2 one CPU is taken, in node 0 two: four at once are in node 3 only
    (make('a4', 'c8', '4', 'a'), {'c3': '4', 'c5': '8', 'c7': '1-3', 'c8': '12-15'}),
    (end('s2'), {'c3': '4', 'c5': '8', 'c8': '12-15'}),
]


def cpus(node):
    return {name.split('/')[1]: cpus for name, (cpus, _) in node.places().items()}


def play(node, first, last):
    for step, expected in DAY[first:last]:
        step(node)
        node.settle(20)
        assert cpus(node) == expected


def kill(node):
    node.kill()
    node.start()


def stop(node):
    node.stop()
    node.start()


def runtime(node):
    node.runtime_restart()


def reload(node):
    node.reload()


def forgetful(node):
    """The runtime has made everything anew while nobody listened; the state is there."""
    node.stop()
    node.runtime_restart()
    node.start()


@pytest.mark.parametrize('how', [kill, stop, runtime, reload, forgetful], ids=lambda how: how.__name__)
@pytest.mark.parametrize('at', range(1, len(DAY)))
def test_cut_at(make_node, at, how):
    node = make_node(options(*TYPES))
    play(node, 0, at)
    node.updates()
    how(node)
    node.settle()
    assert cpus(node) == DAY[at - 1][1]
    assert node.updates() == [], 'told again what they have'
    play(node, at, len(DAY))


def test_a_cut_at_every_step(make_node):
    node = make_node(options(*TYPES))
    for at in range(len(DAY)):
        play(node, at, at + 1)
        kill(node)
        assert cpus(node) == DAY[at][1]
    node.delete('a2', 'd2', 'a4')
    node.create('z', ctr('z0', '15', '64Mi'))
    assert node.cpus('z0') == set(range(1, 16)), 'nothing is left of the day'
