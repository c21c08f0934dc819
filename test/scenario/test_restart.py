# SPDX-License-Identifier: Apache-2.0
"""Who stays where he is when nri-rpd or the runtime goes away and comes back."""
import os
import subprocess
import time

import pytest

from simnode import BUILD, STATIC, ctr, eventually


def busy(node):
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '4', '64Mi'), ctr('b1', '1', '64Mi'))
    node.create('s', ctr('s0', '500m/1'), ctr('s1'))
    node.delete('a')
    node.create('c', ctr('c0', '3', '64Mi'))


def test_churn_leaves_a_short_log(make_node):
    """What is of the past goes when the log has grown long; what is there survives that."""
    node = make_node(STATIC)
    node.create('stays', ctr('c', '2', '64Mi'))
    log = os.path.join(node.paths['state'], 'store.log')
    longest = 0
    for i in range(400):
        node.create('p%d' % i, ctr('c', '10m/20m', '1Mi'), annotations={'note': 'x' * 4000})
        node.delete('p%d' % i)
        longest = max(longest, os.path.getsize(log))
    assert longest > 1 << 20
    eventually(lambda: os.path.getsize(log) < 1 << 20)
    before = node.places()
    node.kill()
    node.start()
    node.settle()
    assert node.places() == before


@pytest.mark.parametrize('how', ['restart', 'kill', 'runtime_restart', 'runtime_crash'])
def test_nothing_moves(node, how):
    busy(node)
    before = node.places()
    node.updates()
    if how == 'kill':
        node.kill()
        node.start()
    elif how == 'runtime_crash':
        node.runtime_stop()
        time.sleep(0.3)
        node.runtime_start()
    else:
        getattr(node, how)()
    node.settle()
    assert node.places() == before
    assert node.updates() == []
    node.create('d', ctr('d0', '2', '64Mi'))
    node.expect('disjoint(b0, b1, c0, d0, s0)', 'cpus(s0) == cpus(s1)')


def test_changes_while_away(node):
    busy(node)
    kept = node.cpus('b0')
    node.stop()
    node.delete('c')
    node.existing('new', ctr('n0', '2', '64Mi'))
    node.existing('more', ctr('n1', '100m/-'))
    node.start()
    node.expect('count(cpus(n0)) == 2', 'disjoint(b0, b1, n0, s0)', 'cpus(s0) == cpus(n1) == online - union(b0, b1, n0)')
    assert node.cpus('b0') == kept


def test_changes_while_the_runtime_is_away(node):
    busy(node)
    node.runtime_stop()
    node.existing('new', ctr('n0', '2', '64Mi'))
    node.run('remove', 'b1')
    node.runtime_start()
    node.expect('count(cpus(n0)) == 2', 'disjoint(b0, c0, n0, s0)', 'cpus(s0) == online - union(b0, c0, n0)')


def test_started_before_the_runtime(make_node):
    node = make_node(STATIC, start=False)
    node.start(wait=False)
    node.log('waiting for the runtime')
    node.existing('a', ctr('a0', '2', '64Mi'))
    node.runtime_start()
    node.expect('cpus(a0) == 2-3')


def test_existing_containers_are_placed(make_node):
    existing = [{'pod': 'p%d' % i, 'containers': [ctr('c', '1', '64Mi')]} for i in range(4)]
    existing.append({'pod': 's', 'containers': [ctr('s0', '1/2')]})
    node = make_node(STATIC, existing=existing)
    node.expect('disjoint(p0/c, p1/c, p2/c, p3/c, s0)', 'count(cpus(p0/c)) == 1', 'count(cpus(s0)) == 12')


def test_existing_placement_is_kept_without_a_state(make_node):
    """A lost state directory: what the runtime tells is what was decided before."""
    node = make_node(STATIC)
    busy(node)
    node.stop()
    for name in os.listdir(node.paths['state']):
        os.unlink(os.path.join(node.paths['state'], name))
    node.start()
    node.expect('disjoint(b0, b1, c0, s0)', 'count(cpus(b0)) == 4', 'count(cpus(c0)) == 3')


def test_damaged_state_does_not_stop_the_start(node):
    busy(node)
    node.stop()
    for name in os.listdir(node.paths['state']):
        path = os.path.join(node.paths['state'], name)
        if os.path.isfile(path) and os.path.getsize(path) > 4096:
            with open(path, 'r+b') as f:
                f.write(os.urandom(4096))
    node.start()
    node.expect('disjoint(b0, b1, c0, s0)', 'count(cpus(b0)) == 4')


@pytest.mark.parametrize('parts', [1, 2, 7])
def test_synchronize_in_parts(make_node, parts):
    existing = [{'pod': 'p%d' % i, 'containers': [ctr('c', '1', '64Mi'), ctr('s', '100m/-')]} for i in range(10)]
    existing += [{'pod': 'g%d' % i, 'containers': [ctr('g', '1', '64Mi')]} for i in range(3)]
    node = make_node(STATIC, existing=existing, syncParts=parts)
    node.expect('disjoint(g0/g, g1/g, g2/g, p0/s)', 'count(cpus(p0/c)) == 13')
    before = node.places()
    node.restart()
    node.runtime_restart()
    assert node.places() == before


def test_synchronize_larger_than_a_message(make_node):
    """Over 4 MiB the runtime cuts it by itself."""
    existing = [{'pod': 'p%d' % i, 'annotations': {'blob': 'x' * 20000}, 'containers': [ctr('c', '10m/-')]} for i in range(300)]
    node = make_node(STATIC, existing=existing)
    node.create('g', ctr('g0', '2', '64Mi'))
    node.expect('disjoint(g0, p0/c)', 'cpus(p0/c) == cpus(p299/c)')
    node.restart()
    node.expect('moves(g0) == 0')


def test_replaced_container(node):
    """A runtime that has crashed makes a container again, under a new id, and never says what became of the old one."""
    busy(node)
    old = node.container('b0')['id']
    node.replace('b0')
    assert node.container('b0')['id'] != old
    node.expect('count(cpus(b0)) == 4', 'disjoint(b0, b1, c0, s0)', 'cpus(s0) == online - union(b0, b1, c0)')
    # of the two free nodes the one in the fuller package
    node.expect('cpus(b0) == 12-15')
    node.restart()
    node.expect('moves(b0) == 0')


@pytest.mark.parametrize('event', ['StartContainer', 'StopContainer', 'RemoveContainer'])
def test_unknown_containers(node, event):
    """Some runtimes let containers slip in beside the synchronisation."""
    busy(node)
    node.existing('ghost', ctr('boo', '2', '64Mi'))
    assert node.tell(event, 'boo')['error'] == 0
    if event == 'StartContainer':
        node.expect('count(cpus(boo)) == 2', 'disjoint(boo, b0, b1, c0, s0)')
    node.delete('ghost')
    node.expect('cpus(s0) == online - union(b0, b1, c0)')


def test_single_instance(node):
    busy(node)
    p = node.paths
    second = subprocess.run([str(BUILD / 'bin' / 'nri-rpd'), '--config', p['config'], '--nri-socket', p['socket'], '--host-root', p['root'],
                             '--state-dir', p['state'], '--control-socket', p['work'] + '/second.sock', '--module-dir',
                             str(BUILD / 'modules')], capture_output=True, text=True, timeout=30)
    assert second.returncode not in (0, 78)
    assert 'another' in second.stderr or 'already' in second.stderr
    node.create('d', ctr('d0', '2', '64Mi'))
    node.expect('disjoint(b0, c0, d0)')


def test_stops_when_asked(node):
    busy(node)
    for signo in ('TERM',):
        node.signal(signo)
        assert node.exited()['exit'] == 0
    node.start()


def test_reset_cache(make_node):
    node = make_node(STATIC)
    busy(node)
    node.stop()
    before = node.cpus('b0')
    node.start()
    assert node.cpus('b0') == before


def check_config(node, state):
    return subprocess.run([str(BUILD / 'bin' / 'nri-rpd'), '--check-config', '--config', node.paths['config'], '--host-root', node.paths['root'],
                           '--state-dir', str(state), '--module-dir', str(BUILD / 'modules')], capture_output=True, text=True, timeout=60)


def files(folder):
    return {name: (s.st_ino, s.st_mtime_ns, s.st_size) for name in os.listdir(folder) for s in [os.stat(os.path.join(folder, name))]}


@pytest.mark.parametrize('policy', ['static', 'topology-aware', 'balloons'])
def test_a_check_says_what_a_start_would_do(make_node, tmp_path, policy):
    """A reserved CPU that was there is waited for, but nobody knows of one that never was."""
    node = make_node({'policy': policy, policy: {'reservedResources': {'cpu': 'cpuset:0,5'}}})
    node.create('a', ctr('a0', '2', '64Mi'))
    node.offline('5')
    node.stop()
    state, before = node.paths['state'], files(node.paths['state'])
    done = check_config(node, state)
    assert done.returncode == 0, done.stderr
    assert 'reserved CPUs 5 are offline' in done.stderr and 'warning' not in done.stdout
    assert files(state) == before
    assert check_config(node, tmp_path / 'none').returncode == 78
    assert not (tmp_path / 'none').exists()
    node.start()
    assert check_config(node, state).returncode == 0, 'beside one that runs'
    node.log('reserved CPUs 5 are offline')


def test_a_check_of_a_state_that_is_of_no_use(make_node, tmp_path):
    node = make_node(STATIC)
    node.stop()
    (tmp_path / 'store.log').write_bytes(b'x' * 9000)
    done = check_config(node, tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith('warning: a start would not use the state in %s: ' % tmp_path) and 'is not a log' in done.stdout
    assert os.listdir(tmp_path) == ['store.log'], 'it is for the start to set it aside'
    (tmp_path / 'store.log').unlink()
    (tmp_path / 'store.log').symlink_to(node.paths['state'] + '/store.log')
    assert 'is a symbolic link' in check_config(node, tmp_path).stdout
    node.start()


def test_a_check_uses_what_a_start_would_use(make_node, tmp_path):
    """Whose the state is, and who may write to it, counts for a look, too."""
    node = make_node({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0,5'}}})
    node.offline('5')
    node.stop()
    state, link = node.paths['state'], tmp_path / 'link'
    file = os.path.join(state, 'store.log')

    def refused(folder, why):
        done = check_config(node, folder)
        assert done.returncode == 78 and why in done.stdout, done.stdout

    assert check_config(node, state).returncode == 0
    link.symlink_to(state)
    refused(link, 'is a link or a file')
    os.chmod(file, 0o660)
    refused(state, 'is writable by other users')
    os.chmod(file, 0o600)
    os.chown(file, 1234, -1)
    refused(state, 'is owned by user 1234')
    os.chown(file, os.geteuid(), -1)
    assert check_config(node, state).returncode == 0
    node.start()
