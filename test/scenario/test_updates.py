# SPDX-License-Identifier: Apache-2.0
"""Resizes, and updates that nobody asked for: how many, in which order, and what happens when they fail."""
import random
import time

import pytest

from simnode import STATIC, cpuset, ctr, eventually

NONE = {'policy': 'none'}


def pods(node):
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '4', '64Mi'))
    node.create('s', ctr('s0', '500m/1'), ctr('s1', '500m/1'))


def replay(before, updates, exclusive):
    """What goes wrong on the way: an exclusive container's CPU that is somebody else's for a moment."""
    now = {name: cpuset(cpus) for name, (cpus, _) in before.items()}
    for u in updates:
        name, gets = u['container'], cpuset(u.get('cpus', ''))
        for other, cpus in now.items():
            taken = (gets - now[name]) & cpus
            if taken and other != name and exclusive & {name, other}:
                return '%s gets %s while %s has them' % (name, sorted(taken), other)
        if gets:
            now[name] = gets
    return ''


# ---- resizes ------------------------------------------------------------------------------------------------------------


def test_shared_containers_stay_shared(node):
    pods(node)
    before = node.places()
    node.update('s0', cpu='2/3', memory='64Mi/64Mi')
    c = node.container('s0')
    assert (c['shares'], c['quota'], c['memoryLimit']) == (2048, 300000, 64 << 20)
    assert node.places() == before


def test_exclusive_grows_and_shrinks(node):
    pods(node)
    had = node.cpus('b0')
    node.update('b0', cpu='6')
    assert node.cpus('b0') > had
    node.expect('count(cpus(b0)) == 6', 'disjoint(a0, b0, s0)', 'cpus(s0) == cpus(s1) == online - union(a0, b0)')
    node.update('b0', cpu='3')
    node.expect('count(cpus(b0)) == 3', 'cpus(s0) == online - union(a0, b0)')
    node.restart()
    node.expect('count(cpus(b0)) == 3')
    assert node.status()['needless'] == 0


def test_refused_resize_changes_nothing(node):
    pods(node)
    before = node.places()
    node.updates()
    assert 'b0' in node.reject_update('b0', cpu='15', error='not enough')
    assert node.container('b0')['shares'] == 4096
    node.settle()
    assert node.places() == before
    assert node.updates() == []
    node.update('b0', cpu='5')


def test_resize_that_says_nothing_new(node):
    pods(node)
    node.updates()
    node.update('b0', cpu='4')
    node.settle()
    assert node.updates() == []


def test_resize_of_a_container_that_is_gone(node):
    pods(node)
    node.exit('b0')
    node.update('b0', cpu='8')
    node.expect('cpus(s0) == online - cpus(a0)')


def test_resize_of_a_container_that_nobody_told_of(make_node):
    """It is taken over with its environment, by which its pool is chosen."""
    pools = {'shared': {'cpuLists': [{'cpuset': '4-5'}]}, 'infra': {'cpuLists': [{'cpuset': '10-15'}]}}
    node = make_node({'policy': 'static-pools', 'static-pools': {'pools': pools}})
    node.existing('i', ctr('i0', '100m/200m', env={'STP_POOL': 'infra'}))
    node.update('i0', cpu='200m/300m')
    node.expect('cpus(i0) == 10-15')


# ---- updates that nobody asked for ----------------------------------------------------------------------------------------


def test_losers_go_first(make_node):
    node = make_node(NONE)
    pods(node)
    before = node.places()
    node.updates()
    node.config(STATIC)
    node.expect('disjoint(a0, b0, s0)')
    updates = node.updates()
    assert len(updates) == 4
    assert [u['container'] for u in updates if u.get('needless')] == []
    # everybody has all CPUs to begin with: those who only lose come before, or as, those who are alone afterwards
    now = {name: cpuset(cpus) for name, (cpus, _) in before.items()}
    for u in updates:
        now[u['container']] &= cpuset(u['cpus'])
        assert now[u['container']] == cpuset(u['cpus'])


def test_growing_takes_before_it_gives(node):
    node.create('s', ctr('s0', '500m/1'), ctr('s1', '500m/1'))
    node.create('b', ctr('b0', '2', '64Mi'))
    for cpu in ('4', '7', '8', '12'):
        before = node.places()
        node.updates()
        node.update('b0', cpu=cpu)
        assert replay(before, node.updates(), {'b/b0'}) == ''
        node.expect('count(cpus(b0)) == %s' % cpu, 'disjoint(b0, s0)')


def test_replay_can_fail():
    before = {'a': ('0-1', '0'), 'b': ('2-3', '0')}
    a, b = {'container': 'a', 'cpus': '0-2'}, {'container': 'b', 'cpus': '3'}
    assert replay(before, [a, b], {'a'}) and replay(before, [a, b], {'b'})
    assert replay(before, [b, a], {'a', 'b'}) == ''


def test_one_batch_for_one_cause(make_node):
    node = make_node(NONE, existing=[{'pod': 'p%d' % i, 'containers': [ctr('c', '100m/-')]} for i in range(50)])
    node.create('a', ctr('a0', '2', '64Mi'))
    node.config(STATIC)
    node.expect('disjoint(a0, p0/c)')
    node.settle()
    status = node.status()
    assert status['unsolicited'] == 1
    assert status['updates'] == 51
    assert status['needless'] == 0


def test_coalesced(make_node):
    """Whatever happens while the runtime does not listen is one update for each container in the end."""
    node = make_node(NONE)
    pods(node)
    node.config(STATIC)
    node.config(NONE)
    node.config(STATIC)
    node.expect('disjoint(a0, b0, s0)')
    node.settle()
    assert node.status()['needless'] == 0
    assert node.status()['updates'] <= 8


@pytest.mark.parametrize('runtime', ['containerd', 'cri-o'])
def test_failing_updates_are_tried_again(make_node, runtime):
    node = make_node(NONE, runtime=runtime)
    pods(node)
    node.fail_updates('s0')
    node.config(STATIC)
    node.expect('cpus(a0) == 2-3', 'cpus(s1) == online - union(a0, b0)')  # one bad apple does not spoil the others
    assert node.container('s0')['moves'] == 0
    node.log('s/s0.*retrying')
    node.fail_updates()
    node.expect('cpus(s0) == online - union(a0, b0)')


def test_failing_update_delays_no_other_container(make_node):
    """One container whose update always fails has a back-off of its own; the other containers' updates go at once and together."""
    node = make_node(NONE, existing=[{'pod': 'p%d' % i, 'containers': [ctr('c', '100m/-')]} for i in range(40)])
    node.create('a', ctr('a0', '2', '64Mi'))
    node.fail_updates('p7/c')
    node.config(STATIC)
    node.expect('disjoint(a0, p0/c)', 'disjoint(a0, p39/c)')
    node.log('p7/c.*retrying in 8000 ms', within='40s')
    before = node.status()['unsolicited']
    began = time.monotonic()
    node.config({'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.expect('count(cpus(p0/c)) < 14', 'count(cpus(p39/c)) < 14')
    assert time.monotonic() - began < 6, 'not with the next attempt'
    node.settle(300)
    assert node.status()['unsolicited'] - before <= 4
    node.fail_updates()
    node.config(STATIC)  # a new decision is sent at once
    node.expect('disjoint(a0, p7/c)')


@pytest.mark.parametrize('seed', range(4))
def test_bad_containers_harm_only_themselves(make_node, seed):
    """Whichever containers' updates fail: the others have what was decided soon, and all have it when the fault is gone."""
    rnd = random.Random(seed)
    names = ['p%d/c' % i for i in range(30)]
    node = make_node(STATIC, existing=[{'pod': 'p%d' % i, 'containers': [ctr('c', '100m/-')]} for i in range(30)])
    policies = [STATIC, {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}},
                {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}}}]
    exclusive, lost = [], set()  # lost: updates in answers, which fail without a word; here is no cgroup to see that in

    def differing():
        decided = {c['full_name'].split('/', 1)[1]: cpuset(c['cpus']) for c in node.ctl('containers') if c['cpus']}
        has = {name.split('/', 1)[1] if name.count('/') > 1 else name: cpuset(cpus) for name, (cpus, _) in node.places().items()}
        return {name for name, cpus in decided.items() if has[name] != cpus}

    for step in range(6):
        bad = set(rnd.sample(names, rnd.randint(1, 6)))
        node.fail_updates(*bad)
        what = rnd.choice(['policy', 'create', 'delete'])
        if what == 'create':
            exclusive.append('e%d' % step)
            node.create(exclusive[-1], ctr('c', '1', '64Mi'))
        elif what == 'delete' and exclusive:
            node.delete(exclusive.pop())
        else:
            node.config(rnd.choice(policies))
            what = 'policy'
        lost |= bad if what != 'policy' else set()
        eventually(lambda: differing() <= bad | lost)
    node.fail_updates()
    eventually(lambda: differing() <= lost, 40)


@pytest.mark.parametrize('cgroups', ['systemd', 'cgroupfs'])
def test_updates_that_were_lost_are_sent_again(make_node, cgroups):
    """Runtimes keep to themselves when an update in an answer fails: nri-rpd looks at the cgroup a while later."""
    node = make_node(STATIC, cgroups=cgroups)
    node.create('s', ctr('s0', '500m/1'), ctr('s1', '500m/1'))
    for name, cpus in (('s0', '0-15'), ('s1', '0-1,4-15')):
        node.cgroup(name).mkdir(parents=True)
        (node.cgroup(name) / 'cpuset.cpus').write_text(cpus + '\n')
    node.create('a', ctr('a0', '2', '64Mi'))
    node.updates()
    node.log('s/s0: has CPUs 0-15 instead of 0-1,4-15', within='10s')
    node.settle()
    assert [(u['container'], u['cpus'], u['via']) for u in node.updates()] == [('s/s0', '0-1,4-15', 'unsolicited')]


def test_values_that_a_starting_container_does_not_get_are_no_drift(make_node):
    """As the agent's container of a new DaemonSet, which starts while the daemon synchronizes."""
    node = make_node(STATIC, existing=[{'pod': 's', 'containers': [{**ctr('s0', '2', '64Mi'), 'state': 'created'}]}], start=False)
    node.start()
    node.cgroup('s0').mkdir(parents=True)
    (node.cgroup('s0') / 'cpuset.cpus').write_text('0-15\n')
    node.run('tell', {'event': 'StartContainer', 'container': 's0'})
    node.run('tell', {'event': 'PostStartContainer', 'container': 's0'})
    node.log('s/s0: has CPUs 0-15 instead of [-0-9,]*; sending its values to the runtime again', within='10s')
    assert 'instead of' not in str(node.ctl('events'))


def test_update_of_a_container_that_went_away(make_node):
    node = make_node(NONE)
    pods(node)
    node.fail_updates('s0')
    node.config(STATIC)
    node.log('s/s0.*retrying')
    node.delete('s')
    node.settle(700)
    assert node.status()['connected']
    assert not [u for u in node.updates() if u.get('unknown')]


def test_requests_and_updates_at_once(make_node):
    """Updates wait for NRI's lock while a request is under way, and never make it wait."""
    node = make_node(NONE, existing=[{'pod': 'p%d' % i, 'containers': [ctr('c', '100m/-')]} for i in range(200)])
    for i in range(6):
        node.run('write-config', STATIC if i % 2 == 0 else NONE)
        node.signal('HUP')
        for k in range(5):
            node.create('g%d-%d' % (i, k), ctr('c', '1', '64Mi'))
            node.delete('g%d-%d' % (i, k))
    node.settle(500)
    assert node.status()['problems'] == 0
    node.run('write-config', STATIC)
    assert node.reload()['accepted']
    node.create('last', ctr('l', '2', '64Mi'))
    node.expect('disjoint(l, p0/c)', 'cpus(p0/c) == cpus(p199/c)')
