# SPDX-License-Identifier: Apache-2.0
"""The static policy over the wire: who gets what, who gives it back."""
import pytest

from simnode import STATIC, SimError, ctr

ONLINE = set(range(16))


def options(**values):
    return {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}, **values}}


def test_exclusive_and_shared(node):
    node.create('s', ctr('s0', '500m/-'))
    node.create('g', ctr('g0', '2', '200Mi'))
    assert node.cpus('g0') == {2, 3}
    assert node.cpus('s0') == ONLINE - {2, 3}
    node.create('h', ctr('h0', '1', '64Mi'), ctr('h1', '3', '64Mi'))
    node.expect('disjoint(g0, h0, h1, s0)', 'count(cpus(h0)) == 1', 'count(cpus(h1)) == 3', 'cpus(s0) == online - union(g0, h0, h1)')
    node.delete('g')
    node.expect('cpus(s0) == online - union(h0, h1)')
    node.delete('h')
    assert node.cpus('s0') == ONLINE


@pytest.mark.parametrize('cpu, memory', [('1500m', '64Mi'), ('2/3', '64Mi'), ('2', '64Mi/128Mi'), ('2', None), (None, None)])
def test_who_shares(node, cpu, memory):
    node.create('p', ctr('c', cpu, memory))
    assert node.cpus('c') == ONLINE


def test_reserved_is_never_exclusive(node):
    node.create('g', ctr('all', '14', '64Mi'))
    assert 0 not in node.cpus('all')
    assert node.reject('h', ctr('more', '2', '64Mi'), error='not enough cpus available').count('\n') == 0
    node.delete('g')
    node.create('h', ctr('more', '2', '64Mi'))


def test_refused_pod_leaves_no_trace(node):
    node.create('s', ctr('s0', '1/2'))
    node.create('g', ctr('g0', '4', '64Mi'))
    before = node.places()
    node.reject('big', ctr('fits', '2', '64Mi'), ctr('does-not', '12', '64Mi'))
    assert node.places() == before


def test_refusals_change_nothing(node):
    node.create('s', ctr('s0', '1/2'))
    node.create('g', ctr('g0', '4', '64Mi'))
    before = node.places()
    node.updates()
    for _ in range(3):
        node.reject('big', ctr('c', '13', '64Mi'))
    node.settle()
    assert node.places() == before
    assert node.updates() == []
    node.create('fits', ctr('c', '10', '64Mi'))


def test_init_containers_give_way(node):
    node.create('p', ctr('i', '4', '64Mi', init=True), ctr('c', '4', '64Mi'))
    assert node.cpus('c') == node.cpus('i')
    assert node.container('i')['state'] == 'exited'


def test_exit_gives_back(node):
    node.create('s', ctr('s0', '1/2'))
    node.create('g', ctr('g0', '4', '64Mi'))
    node.exit('g0')
    assert node.cpus('s0') == ONLINE
    node.remove('g0')
    node.delete('g')
    assert node.cpus('s0') == ONLINE


def test_full_pcpus_only(make_node):
    node = make_node(options(cpuManagerPolicyOptions={'full-pcpus-only': 'true'}))
    node.reject('odd', ctr('c', '3', '64Mi'), error='SMT Alignment Error')
    node.create('even', ctr('c', '4', '64Mi'))
    assert node.evaluate('count(cores(c)) == 2')['holds']


def test_strict_reservation(make_node):
    node = make_node(options(cpuManagerPolicyOptions={'strict-cpu-reservation': 'true'}))
    node.create('s', ctr('s0', '1/2'))
    assert node.cpus('s0') == ONLINE - {0}


def test_distribute_across_numa(make_node):
    node = make_node(options(cpuManagerPolicyOptions={'distribute-cpus-across-numa': 'true'}))
    node.create('g', ctr('c', '6', '64Mi'))
    node.expect('count(nodes(c)) == 2', 'count(cpus(c) & node(1)) <= 4')


def test_topology_manager(make_node):
    node = make_node(options(topologyManagerPolicy='single-numa-node'))
    node.create('a', ctr('c', '4', '64Mi'))
    node.expect('count(nodes(a/c)) == 1')
    node.reject('b', ctr('c', '5', '64Mi'), error='Topology locality')


def test_pin_memory(make_node):
    node = make_node(options(pinMemory=True))
    node.create('a', ctr('c', '4', '64Mi'))
    node.expect('nodes(c) == mems(c)', 'count(mems(c)) == 1')


def test_quota(make_node):
    node = make_node(options(disableCPUQuota=True))
    node.create('a', ctr('c', '2', '64Mi'))
    assert node.container('c')['quota'] == -1
    node.create('b', ctr('s', '1/2'))
    assert node.container('s')['quota'] == 200000


def test_isolated_cpus(make_node):
    node = make_node(options(), machine='isolated')
    node.create('a', ctr('c', '1', '64Mi'))
    node.expect('cpus(c) in isolated')
    node.create('b', ctr('s', '100m/-'))
    node.expect('disjoint(s, isolated)', 'disjoint(s, c)')


def test_wrong_options_are_refused(make_node):
    with pytest.raises(SimError, match='distribute-cpus-across-cores'):
        make_node(options(cpuManagerPolicyOptions={'full-pcpus-only': 'true', 'distribute-cpus-across-cores': 'true'}))


@pytest.mark.parametrize('machine', ['laptop', 'l3-domains', 'no-numa', 'hbm-cxl', 'n4c128', 'server-2s'])
def test_machines(make_node, machine):
    node = make_node(STATIC, machine=machine)
    node.create('s', ctr('s0', '1/2'))
    node.create('g', ctr('g0', '4', '64Mi'), ctr('g1', '1', '64Mi'))
    node.expect('count(cpus(g0)) == 4', 'count(cpus(g1)) == 1', 'disjoint(s0, g0, g1)', 'union(s0, g0, g1) == online')
    node.restart()
    node.expect('moves(g0) == 0', 'moves(g1) == 0')
