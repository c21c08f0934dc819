# SPDX-License-Identifier: Apache-2.0
"""The topology-aware policy over the wire: where containers go, and that they stay there."""
import pathlib

import pytest

from simnode import ctr, eventually

from test_controllers import add_cgroup, cgroup_of

PLAIN = {'policy': 'topology-aware',
         'topology-aware': {'packing': 'balanced', 'reservedResources': {'cpu': '750m'}, 'preferIsolatedCPUs': False}}


def options(**values):
    section = {**PLAIN['topology-aware'], **values}
    return {'policy': 'topology-aware', 'topology-aware': section}


@pytest.fixture
def node(make_node):
    return make_node(PLAIN)


def test_exclusive(node):
    node.create('a', ctr('a0', '1', '64Mi'))
    node.create('b', ctr('b0', '2', '64Mi'))
    node.create('c', ctr('c0', '5', '64Mi'))
    assert node.cpus('a0') == {4} and node.mems('a0') == {1}
    assert node.cpus('b0') == {8, 9} and node.mems('b0') == {2}
    node.expect('disjoint(a0, b0, c0)', 'count(cpus(c0)) == 5')


def test_mixed_and_shared(node):
    node.create('s', ctr('s0', '500m', '64Mi'))
    node.create('t', ctr('t0', '500m', '64Mi'))
    node.create('m', ctr('m0', '1500m', '64Mi'))
    node.create('n', ctr('n0', '1500m', '64Mi'))
    assert node.cpus('s0') == {4, 5, 7}
    node.delete('n')
    assert node.cpus('s0') == {4, 5, 6, 7}


def test_system_pods_are_kept_apart(node):
    node.create('k', ctr('k0', '100m/-'), namespace='kube-system')
    assert node.cpus('k0') == {0}


def test_nobody_is_drained(node):
    for i in range(4):
        node.create(f'be{i}', ctr(f'be{i}c'))
    node.create('a', ctr('a0', '4', '64Mi'))
    node.create('b', ctr('b0', '7', '64Mi'))
    node.reject('c', ctr('c0', '1', '64Mi'), error='no pool has enough CPUs')
    for i in range(4):
        assert len(node.cpus(f'be{i}c')) == 1


def test_refused_resize_changes_nothing(node):
    node.create('a', ctr('a0', '8', '64Mi'))
    node.create('b', ctr('b0', '2', '64Mi'))
    before = node.places()
    node.reject_update('b0', cpu='9', memory='64Mi')
    assert node.places() == before


def test_restart_moves_nobody(node):
    for i, cpu in enumerate(['1', '1500m', '500m', '3', '2/4', None]):
        node.create(f'p{i}', ctr(f'c{i}', cpu, '64Mi' if cpu and '/' not in cpu else None))
    before = node.places()
    node.restart()
    node.settle()
    assert node.places() == before
    node.create('more', ctr('m0', '1', '64Mi'))
    node.expect('disjoint(m0, c0, c3)')


def test_reload(node):
    node.create('a', ctr('a0', '2', '64Mi'))
    before = node.places()
    node.config(options(colocatePods=True))
    assert node.places() == before
    node.badconfig(options(reservedResources={'cpu': '99'}))
    assert node.places() == before


# ---- better places ----

def crowd_out(node, **more):
    """A machine so full that w0 gets a socket where a node would do, and x0 the rest; then everybody else goes."""
    node.create('s', ctr('s0'))
    for i in range(4):
        node.create('f%d' % i, ctr('f%dc' % i, '2' if i == 3 else '3', '64Mi'))
    node.create('w', ctr('w0', '1500m/1600m', '64Mi'), **more)
    node.create('x', ctr('x0', '1500m/1600m', '64Mi'))
    assert len(node.mems('x0')) > 1
    node.delete(*('f%d' % i for i in range(4)))
    node.updates()


def test_rebalance(node):
    """One at a time, the reason is told, nobody else has to move, and then there is nothing left to do."""
    crowd_out(node)
    before = node.places()
    assert node.ctl('rebalance', '1') == {'policy': 'topology-aware', 'moved': 1}
    node.settle()
    moved = [name for name, place in node.places().items() if place != before[name]]
    assert moved == ['w/w0'] and len(node.mems('w0')) == 1
    assert 'rebalanced from socket' in str(node.ctl('explain', 'w0'))
    assert node.ctl('rebalance')['moved'] == 1
    node.settle()
    assert len(node.mems('x0')) == 1
    after = node.places()
    node.updates()
    assert node.ctl('rebalance') == {'policy': 'topology-aware', 'moved': 0}
    node.settle()
    assert node.places() == after and node.updates() == []
    node.restart()
    node.settle()
    assert node.places() == after


def test_rebalance_does_not_count_those_who_share(make_node):
    """Many share what one moves away from; that is within any budget."""
    node = make_node({**PLAIN, 'rebalanceMoves': 1})
    for i in range(6):
        node.create('s%d' % i, ctr('s%dc' % i))
    for i in range(4):
        node.create('f%d' % i, ctr('f%dc' % i, '2', '64Mi'))
    node.create('w', ctr('w0', '3', '64Mi'))
    assert len(node.mems('w0')) > 1
    node.delete(*('f%d' % i for i in range(4)))
    before = node.places()
    assert node.ctl('rebalance')['moved'] == 1
    node.settle()
    assert len(node.mems('w0')) == 1
    assert len([name for name, place in node.places().items() if place != before[name]]) > 2
    node.expect(*('disjoint(w0, s%dc)' % i for i in range(6)))


def test_rebalance_leaves_the_annotated(node):
    crowd_out(node, annotations={'memory.preserve.resource-policy.nri.io': 'true'})
    kept = node.places()['w/w0']
    assert node.ctl('rebalance', '0')['moved'] == 1
    node.settle()
    assert node.places()['w/w0'] == kept and len(node.mems('x0')) == 1


def test_rebalance_by_the_clock(make_node):
    node = make_node({**PLAIN, 'rebalanceInterval': '50ms'})
    crowd_out(node)
    eventually(lambda: len(node.mems('w0')) == 1 and len(node.mems('x0')) == 1)


def test_lack_of_cpus(make_node):
    """One that waits for CPUs in three readings goes where more is left; nobody else moves."""
    node = make_node({**PLAIN, 'metrics': {'collectInterval': '1s', 'pressure': {'cpu': 20}}})
    for i in range(4):
        node.create('p%d' % i, ctr('c%d' % i, '700m', '64Mi'))
    node.create('w', ctr('w0', '800m', '64Mi'))
    twin = next(i for i in range(4) if node.cpus('c%d' % i) == node.cpus('w0'))
    node.delete(*('p%d' % i for i in range(4) if i != twin))
    before = node.places()
    assert node.ctl('rebalance')['moved'] == 0  # that others are there is no reason by itself
    add_cgroup(node, 'w0', {'cpu.stat': 'usage_usec 1\n', 'memory.current': '4096\n'})
    folder = pathlib.Path(node.paths['root']) / cgroup_of(node, 'w0')
    waited = 0

    def moves():
        nonlocal waited
        waited += 1000000
        (folder / 'new').write_text('some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n' % waited)
        (folder / 'new').rename(folder / 'cpu.pressure')
        return node.cpus('w0') != node.cpus('c%d' % twin)

    eventually(moves, 60)
    assert 'rebalanced from' in str(node.ctl('explain', 'w0'))
    assert [name for name, place in node.places().items() if place != before[name]] == ['w/w0']
