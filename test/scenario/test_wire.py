# SPDX-License-Identifier: Apache-2.0
"""Every release of NRI that there is, as both runtimes speak it, and what may come over the wire from pods of all kinds."""
import pytest

from simnode import STATIC, SimError, ctr

RELEASES = ['0.%d' % n for n in range(3, 13)]


@pytest.mark.parametrize('cgroups', ['systemd', 'cgroupfs'])
@pytest.mark.parametrize('runtime', ['containerd', 'cri-o'])
@pytest.mark.parametrize('nri', RELEASES)
def test_releases(make_node, nri, runtime, cgroups):
    node = make_node(STATIC, nri=nri, runtime=runtime, cgroups=cgroups, existing=[{'pod': 'old', 'containers': [ctr('o', '1/2')]}])
    node.create('a', ctr('i', '1', '64Mi', init=True), ctr('a0', '2', '64Mi'))
    node.create('s', ctr('s0', '500m/1'), ctr('s1'))
    node.expect('count(cpus(a0)) == 2', 'cpus(o) == cpus(s0) == cpus(s1) == online - cpus(a0)')
    node.update('s0', cpu='1/2', memory='64Mi/128Mi')
    assert node.container('s0')['shares'] == 1024
    node.reject('b', ctr('b0', '15', '64Mi'), error='not enough cpus')
    node.restart()
    node.runtime_restart()
    node.expect('moves(a0) == 0')
    node.exit('s1')
    node.delete('a')
    node.expect('cpus(s0) == online')
    assert node.status()['needless'] == 0


@pytest.mark.parametrize('nri', ['0.6', '0.8', '0.12'])
def test_configure_before_the_registration_is_answered(make_node, nri):
    node = make_node(STATIC, nri=nri, start=False)
    node.start(wait=False)
    node.runtime_start(configureFirst=True)
    node.create('a', ctr('a0', '2', '64Mi'))
    node.expect('count(cpus(a0)) == 2')


@pytest.mark.parametrize('runtime', ['containerd', 'cri-o'])
def test_refused_containers_leave_no_trace(make_node, runtime):
    """One runtime tells that a refused container is gone, the other does not."""
    node = make_node(STATIC, runtime=runtime)
    node.create('s', ctr('s0', '1/2'))
    before = node.places()
    for round_ in range(5):
        node.reject('p%d' % round_, ctr('c0', '8', '64Mi'), ctr('c1', '8', '64Mi'))
    assert node.places() == before
    node.create('q', ctr('q0', '15', '64Mi'))
    assert len(node.control('Containers')) == 2


def test_large_requests(node):
    """Frames of any size, both ways: a pod with 3 MB of annotations, a container with 1 MB of environment."""
    node.create('s', ctr('s0', '1/2'))
    node.create('big', ctr('c', '2', '64Mi', env={'BLOB%d' % i: 'e' * 10000 for i in range(100)}),
                annotations={'blob%d' % i: 'a' * 100000 for i in range(30)})
    node.expect('count(cpus(c)) == 2', 'disjoint(c, s0)')
    node.restart()
    node.expect('moves(c) == 0')


def test_many_updates_in_one_answer(make_node):
    """Two thousand containers that share: an exclusive one moves them all, in one answer of more than one frame."""
    existing = [{'pod': 'p%d' % i, 'containers': [ctr('c%d' % k, '1m/-') for k in range(20)]} for i in range(100)]
    node = make_node(STATIC, existing=existing)
    node.settle()
    node.updates()
    node.create('g', ctr('g0', '2', '64Mi'))
    assert len(node.updates()) == 2000
    node.expect('disjoint(g0, p0/c0)', 'cpus(p99/c19) == cpus(p0/c0)')
    assert node.status()['needless'] == 0


# ---- what pods say ------------------------------------------------------------------------------------------------------

KEYS = ['cpu.preserve', 'memory.preserve', 'prefer-isolated-cpus', 'prefer-shared-cpus', 'balloon', 'rdtclass', 'blockioclass',
        'memory-type', 'topologyhints', 'pod.balloon', 'cold-start', 'affinity', 'anti-affinity', 'unified']
VALUES = ['', ' ', 'true', 'yes please', '-1', '99999999999999999999999', '[' * 5000, '{"a":' * 2000, 'null', '\x01\x7f', '../../etc',
          '%s%n%d', '0-', '0-99999999', ',', 'é' * 3000, '\U0001f4a5', 'x' * 60000, ': [unclosed', '&a [*a, *a]', '!!python/object:x', '#']


@pytest.mark.parametrize('policy', ['static', 'template', 'none'])
def test_hostile_annotations(make_node, policy):
    node = make_node({'policy': policy, policy: {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.create('s', ctr('s0', '1/2'))
    for i, value in enumerate(VALUES):
        annotations = {}
        for key in KEYS:
            for suffix in ('', '/pod', '/container.c'):
                annotations['%s.resource-policy.nri.io%s' % (key, suffix)] = value
        try:
            node.create('p%d' % i, ctr('c', '200m/-', annotations={'x' + value[:200]: value}), annotations=annotations)
        except SimError as e:  # a refusal is fine, as long as it says why
            assert e.result['failed'].strip(), e
        node.delete('p%d' % i)
    node.create('g', ctr('g0', '2', '64Mi'))
    node.restart()
    assert node.status()['connected']


def test_hostile_names(node):
    node.create('s', ctr('s0', '1/2'))
    for i, name in enumerate(['..', '../../../tmp/x', 'a b', 'a\nb', '%s', 'x' * 4000, '\U0001f4a5', '.hidden', '-rf', 'a/b/c', "'; --"]):
        try:
            node.create(name, ctr(name, '1', '64Mi'), namespace=name, uid=name, labels={name: name})
        except SimError as e:
            assert e.result.get('code') == 1, e
    node.restart()
    node.delete('s')
    node.create('g', ctr('g0', '2', '64Mi'))


def test_strange_resources(make_node):
    """Shares, quotas and sets that no kubelet writes, but crictl does."""
    existing = [{'pod': 'odd', 'containers': [ctr('o', '1/2', cpus='3', mems='1'), ctr('p', '1/2', cpus='0-15', mems='0-3')]}]
    node = make_node(STATIC, existing=existing)
    node.create('g', ctr('g0', '2', '64Mi'))
    node.expect('disjoint(g0, o)', 'disjoint(g0, p)')
    node.create('huge', ctr('h', '9999999/-'))
    node.create('tiny', ctr('t', '1m/1m', '1/1'))
    node.update('t', cpu='1m/9999999')
