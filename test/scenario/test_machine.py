# SPDX-License-Identifier: Apache-2.0
"""Machines that change, large ones, recorded ones."""
import ctypes
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from simnode import BUILD, STATIC, Node, SimError, ctr

SIM = BUILD / 'bin' / 'nri-rp-sim'


def pods(node):
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '4', '64Mi'))
    node.create('s', ctr('s0', '500m/1'))


def test_shared_cpu_goes_offline_and_comes_back(node):
    pods(node)
    before = node.places()
    node.offline('15')
    node.signal('HUP')
    node.log('the topology of the machine has changed')
    node.settle()
    node.create('t', ctr('t0', '100m/-'))
    node.expect('cpus(t0) == online - union(a0, b0)', 'cpus(s0) == cpus(t0)', 'moves(a0) == 0', 'moves(b0) == 0')
    node.delete('t')
    node.online('15')
    node.signal('HUP')
    node.expect('cpus(s0) == online - union(a0, b0)')
    assert node.places() == before


def test_exclusive_cpu_goes_offline(node):
    pods(node)
    node.offline('5')
    node.signal('HUP')
    node.log('the topology of the machine has changed')
    node.settle()
    node.create('t', ctr('t0', '2', '64Mi'))
    node.expect('disjoint(a0, b0, t0, s0)', 'not 5 in cpus(b0)', 'moves(a0) == 0')
    node.restart()
    node.expect('disjoint(a0, b0, t0, s0)')


def test_offline_while_away(node):
    pods(node)
    node.stop()
    node.offline('4-5')
    node.start()
    node.create('t', ctr('t0', '2', '64Mi'))
    node.expect('disjoint(a0, b0, t0, s0)', 'disjoint(b0, 4-5)')


def test_memory_that_is_plugged_in_counts(node):
    """A memory request that the runtime does not tell is estimated as a part of the node's memory."""
    def requested(name):
        return next(c for c in node.ctl('containers') if c['full_name'] == name)['wanted']['memory_request']
    node.create('a', ctr('a0', '100m/-', '64Mi/-'))
    root = pathlib.Path(node.paths['root'])
    for path in [root / 'proc/meminfo', *root.glob('sys/devices/system/node/node*/meminfo')]:
        path.write_text(re.sub(r'(MemTotal: +)(\d+)', lambda m: m.group(1) + str(2 * int(m.group(2))), path.read_text()))
    node.signal('HUP')
    node.log('the topology of the machine has changed')
    node.create('b', ctr('b0', '100m/-', '64Mi/-'))
    assert requested('default/b/b0') == pytest.approx(2 * requested('default/a/a0'), rel=0.01)


@pytest.mark.parametrize('policy, section', [
    ('static', {'pinMemory': True}), ('topology-aware', {}), ('cpuset', None),
    ('balloons', {'balloonTypes': [{'name': 'q', 'minCPUs': 4, 'maxCPUs': 4, 'namespaces': ['*'], 'preferNewBalloons': True}]})])
def test_cpus_of_nodes_without_memory(make_node, policy, section):
    """Nodes 1 and 3 have no memory: that of the nearest node is used."""
    node = make_node(None, start=False, machine='n4c16')
    nodes = pathlib.Path(node.paths['root'], 'sys/devices/system/node')
    for n in (1, 3):
        (nodes / ('node%d/meminfo' % n)).write_text(''.join('Node %d %s: 0 kB\n' % (n, x) for x in ('MemTotal', 'MemFree', 'MemUsed')))
    for name in ('has_memory', 'has_normal_memory'):
        (nodes / name).write_text('0,2\n')
    node.run('write-config', {'policy': policy, policy: {} if section is None else {'reservedResources': {'cpu': 'cpuset:0'}, **section}})
    node.start()
    for i, cpus in enumerate(('3', '4', '4')):
        node.create('p%d' % i, ctr('c', cpus, '64Mi'))
    near = {cpu: 0 if cpu < 8 else 2 for cpu in range(16)}
    for i in range(3):
        assert node.mems('p%d/c' % i) == {near[cpu] for cpu in node.cpus('p%d/c' % i)}
    assert any(node.cpus('p%d/c' % i) <= {4, 5, 6, 7, 12, 13, 14, 15} for i in range(3))


@pytest.mark.parametrize('machine', [
    {'base': 'n4c16', 'offline': '1,3,5,7'},
    {'base': 'n4c16', 'isolated': '8-15'},
    {'base': 'laptop', 'offline': '8-15'},
    {'packages': 1, 'cores': 1, 'threads': 1, 'memory': '1Gi'},
    {'packages': 4, 'nodes': 1, 'cores': 3, 'threads': 4, 'numbering': 'far', 'caches': {'l3': 0}},
], ids=str)
def test_odd_machines(make_node, machine):
    node = make_node(STATIC, machine=machine)
    node.create('s', ctr('s0', '1/2'))
    node.expect('cpus(s0) in online')
    try:
        node.create('a', ctr('a0', '2', '64Mi'))
        node.expect('count(cpus(a0)) == 2', 'disjoint(a0, s0)')
    except SimError as e:
        assert machine.get('cores') == 1, e
    node.restart()


def test_4096_cpus(make_node):
    node = make_node(STATIC, machine='c4096')
    node.create('s', ctr('s0', '1/2'))
    node.create('a', ctr('a0', '512', '1Gi'), ctr('a1', '1000', '1Gi'), ctr('a2', '3', '1Gi'))
    node.expect('count(cpus(a0)) == 512', 'count(packages(a0)) == 1', 'count(cpus(a1)) == 1000', 'disjoint(a0, a1, a2, s0)',
                'union(a0, a1, a2, s0) == online')
    node.restart()
    node.expect('moves(a0) == 0', 'moves(a1) == 0')
    assert '4096' in node.map() or 'CPUs:' in node.map()


def test_recorded_tree(make_node, tmp_path):
    subprocess.run([SIM, 'machine', 'n4c16', tmp_path / 'tree'], check=True)
    node = make_node(STATIC, machine=str(tmp_path / 'tree'))
    node.create('a', ctr('a0', '4', '64Mi'))
    node.expect('count(cores(a0)) == 2', 'count(nodes(a0)) == 1')
    with pytest.raises(SimError, match='recorded'):
        node.offline('3')


def test_machine_cannot_be_read(make_node, tmp_path):
    subprocess.run([SIM, 'machine', 'n4c16', tmp_path / 'tree'], check=True)
    for name in ('online', 'present'):
        (tmp_path / 'tree/sys/devices/system/cpu' / name).unlink()
    with pytest.raises(SimError, match='online'):
        make_node(STATIC, machine=str(tmp_path / 'tree'))


def test_tree_vanishes_under_a_running_daemon(make_node, tmp_path):
    subprocess.run([SIM, 'machine', 'n4c16', tmp_path / 'tree'], check=True)
    node = make_node(STATIC, machine=str(tmp_path / 'tree'))
    pods(node)
    shutil.move(tmp_path / 'tree/sys', tmp_path / 'away')
    node.signal('HUP')
    node.log('cannot be read')
    node.create('t', ctr('t0', '2', '64Mi'))
    node.expect('disjoint(a0, b0, t0, s0)')
    shutil.move(tmp_path / 'away', tmp_path / 'tree/sys')
    assert pathlib.Path(node.paths['root']).exists()


IN_OPEN, IN_ISDIR = 0x20, 0x40000000


class Opened:
    """Which files of a folder are opened from now on."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_OPEN) > 0

    def names(self):
        data, ret = os.read(self.fd, 1 << 16), []
        os.close(self.fd)
        while data:
            _, mask, _, size = struct.unpack_from('iIII', data)
            if not mask & IN_ISDIR:
                ret.append(data[16:16 + size].rstrip(b'\0').decode())
            data = data[16 + size:]
        return ret


@pytest.mark.parametrize('machine', ['n4c16', 'server-2s'])
def test_frequencies_are_read_once(machine):
    with Node({'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': '750m'}}}, machine=machine, start=False) as node:
        folder = pathlib.Path(node.paths['root'], 'sys/devices/system/cpu/cpu0/cpufreq')
        folder.mkdir(exist_ok=True)
        for name, text in (('base_frequency', '2100000'), ('energy_performance_preference', 'balance_performance')):
            (folder / name).write_text(text + '\n')
        opened = Opened(folder)
        node.start()
        names = opened.names()
        assert sorted(set(names)) == sorted(names) and 'base_frequency' in names
