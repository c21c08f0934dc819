# SPDX-License-Identifier: Apache-2.0
"""The topology-aware policy over the wire: where containers go, and that they stay there."""
import pytest

from simnode import ctr

PLAIN = {'policy': 'topology-aware',
         'topology-aware': {'reservedResources': {'cpu': '750m'}, 'preferIsolatedCPUs': False}}


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
    node.reject('c', ctr('c0', '1', '64Mi'), error="can't")
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
