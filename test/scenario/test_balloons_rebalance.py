# SPDX-License-Identifier: Apache-2.0
"""The balloons policy over the wire: containers that would be placed better now are moved when somebody asks for it, and nobody else."""
import pathlib

import pytest

from simnode import SimError, ctr, eventually

from test_controllers import add_cgroup, cgroup_of

BALLOON = 'balloon.balloons.resource-policy.nri.io'


def options(*types, **values):
    section = {'reservedResources': {'cpu': '1'}, 'balloonTypes': list(types)}
    return {'policy': 'balloons', 'balloons': section, **values}


def add(node, name, cpu, balloon='a'):
    node.create(name, ctr(name + 'c', cpu, '64Mi'), annotations={BALLOON: balloon})


def explained(node, name):
    return str(node.ctl('explain', f'default/{name}/{name}c'))


def rebalance(node, *moves):
    """How many the daemon says it has moved, and who has."""
    before = node.places()
    node.updates()
    n = node.ctl('rebalance', *moves)['moved']
    node.settle()
    after = node.places()
    moved = {name for name in after if after[name] != before[name]}
    told = {u['container'] for u in node.updates()}
    assert len(told) == len(moved)
    return n, moved


def scattered(make_node, **values):
    """15 CPUs for two large ones and one that has what both of them have left, 7 and 15; then a large one goes."""
    node = make_node(options({'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True}, **values))
    for name, cpu in (('one', '6'), ('two', '7'), ('three', '2')):
        add(node, name, cpu)
    assert len({cpu // 8 for cpu in node.cpus('threec')}) == 2
    return node


def test_nothing_to_do(make_node):
    node = scattered(make_node)
    assert rebalance(node) == (0, set())
    assert rebalance(node, '0') == (0, set())


def test_nearer_together(make_node):
    node = scattered(make_node)
    node.delete('two')
    n, moved = rebalance(node)
    assert (n, moved) == (1, {'three/threec'})
    cpus = node.cpus('threec')
    assert len(cpus) == 2 and len({cpu // 2 for cpu in cpus}) == 1
    assert 'rebalanced within a[2]: fewer packages' in explained(node, 'three')
    assert rebalance(node) == (0, set())
    before = node.places()
    node.restart()
    assert node.places() == before


def test_a_container_that_must_not_be_moved(make_node):
    node = make_node(options({'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True}))
    for name, cpu in (('one', '6'), ('two', '7')):
        add(node, name, cpu)
    node.create('three', ctr('threec', '2', '64Mi'), annotations={BALLOON: 'a', 'movable.resource-policy.nri.io': 'false'})
    node.delete('two')
    assert rebalance(node) == (0, set())
    assert len({cpu // 8 for cpu in node.cpus('threec')}) == 2


def test_by_the_clock(make_node):
    node = scattered(make_node, rebalanceInterval='50ms')
    node.delete('two')
    node.expect('count(packages(threec)) == 1', 'count(cpus(threec)) == 2')


def test_no_more_than_it_may(make_node):
    """Those that were put together for lack of CPUs get balloons of their own, one after the other; the last one has one then."""
    node = make_node(options({'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True, 'minCPUs': 2}, {'name': 'b'},
                             rebalanceMoves=2))
    add(node, 'wall', '13', 'b')
    for i in range(4):
        add(node, f'a{i}', '500m/1')
    assert len({cpus for name, (cpus, _) in node.places().items() if name.startswith('a')}) == 1
    node.delete('wall')
    assert rebalance(node, '1') == (1, {'a0/a0c'})
    assert 'rebalanced from a[0] to a[1]: a new one' in explained(node, 'a0')
    n, moved = rebalance(node)
    assert (n, moved) == (2, {'a1/a1c', 'a2/a2c'})
    assert rebalance(node) == (0, set())
    assert len({cpus for cpus, _ in node.places().values()}) == 4
    node.expect('disjoint(a0c, a1c, a2c, a3c)')


def waiting(make_node, **values):
    """The second of a pod had no room with the first, and has the only other balloon that there may be; two that need that whole wait."""
    node = make_node(options({'name': 'a', 'maxCPUs': 4, 'maxBalloons': 2}, onPolicyError='unmanaged', **values))
    node.create('pod', ctr('first', '2', '64Mi'), annotations={BALLOON: 'a'}, resources={'cpu': '3', 'memory': '128Mi'})
    add(node, 'wall', '2')
    node.create('pod', ctr('second', '1', '64Mi'), annotations={BALLOON: 'a'})
    add(node, 'waits', '4')
    add(node, 'late', '4')
    node.expect('cpus(first) == cpus(wallc)', 'count(cpus(second)) == 1', 'count(cpus(waitsc)) == 10', 'cpus(latec) == cpus(waitsc)')
    node.delete('wall')
    return node


def test_room_for_one_that_waits(make_node):
    """Where the moves leave room it is used at once, which is no move itself."""
    node = waiting(make_node, rebalanceMoves=1)
    node.expect('count(cpus(first)) == 2', 'count(cpus(waitsc)) == 12')
    n, moved = rebalance(node)
    assert (n, moved) == (1, {'pod/first', 'pod/second', 'waits/waitsc', 'late/latec'})
    node.expect('cpus(first) == cpus(second)', 'count(cpus(waitsc)) == 4', 'count(cpus(latec)) == 8', 'disjoint(first, waitsc, latec)')
    assert rebalance(node) == (0, set())
    # nobody waits for a place that has one
    node.delete('pod')
    node.expect('count(cpus(latec)) == 4', 'disjoint(waitsc, latec)')


def test_room_for_one_that_waits_by_the_clock(make_node):
    node = waiting(make_node, rebalanceInterval='50ms')
    node.expect('count(cpus(waitsc)) == 4', 'count(cpus(latec)) == 8', 'disjoint(first, waitsc, latec)')


def test_lack_of_cpus(make_node):
    """One that waits for CPUs in three readings gets the balloon of its own that there is room for now; its neighbour stays."""
    node = make_node(options({'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True, 'minCPUs': 2}, {'name': 'b'},
                             metrics={'collectInterval': '1s', 'pressure': {'cpu': 20}}))
    add(node, 'wall', '13', 'b')
    for name in ('first', 'second'):
        add(node, name, '500m/1')
    assert node.cpus('firstc') == node.cpus('secondc')
    node.delete('wall')
    before = node.places()
    add_cgroup(node, 'secondc', {'cpu.stat': 'usage_usec 1\n', 'memory.current': '4096\n'})
    folder = pathlib.Path(node.paths['root']) / cgroup_of(node, 'secondc')
    waited = 0

    def moves():
        nonlocal waited
        waited += 1000000
        (folder / 'new').write_text('some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n' % waited)
        (folder / 'new').rename(folder / 'cpu.pressure')
        return node.cpus('firstc') != node.cpus('secondc')

    eventually(moves, 60)
    assert 'rebalanced from a[0] to a[1]: a new one' in explained(node, 'second')
    assert [name for name, place in node.places().items() if place != before[name]] == ['second/secondc']


def test_policies_that_do_not(make_node):
    node = make_node({'policy': 'none'})
    with pytest.raises(SimError, match='does not rebalance'):
        node.ctl('rebalance')
