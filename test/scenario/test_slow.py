# SPDX-License-Identifier: Apache-2.0
"""A kernel that takes its time: each write of a controller lasts 200 ms, and nobody who asks for a container waits for it."""
import statistics
import time

import pytest

from simnode import BUILD, STATIC, TEST_MODULES, ctr, eventually

from test_controllers import (BLKIO, BLKIO_KEY, CLASS_KEY, MEMORY, MEMORY_KEY, RDT, add_cgroup, add_disks, add_resctrl, cgroup_of, get,
                              put, status_of)

SLOW_MS = 200
N = 8


class Slow:
    """A daemon whose writes below a folder are slow, and do not end before the gate is open."""

    def __init__(self, tmp, folder):
        self.log, self.gate = tmp / 'log', tmp / 'gate'
        env = {'LD_PRELOAD': BUILD / 'test' / 'slow.so', 'SLOW_BELOW': '{root}/' + folder, 'SLOW_MS': SLOW_MS, 'SLOW_LOG': self.log,
               'SLOW_GATE': self.gate, 'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0'}
        self.daemon = ' '.join(['/usr/bin/env', *('%s=%s' % pair for pair in env.items()), str(BUILD / 'bin' / 'nri-rpd'),
                                '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state} --control-socket {control}'])

    def lines(self, what):
        text = self.log.read_text() if self.log.exists() else ''
        return [line.split(' ', 2)[1:] for line in text.splitlines() if line.startswith(what + ' ')]


def add_frequencies(node):
    for cpu in range(16):
        for file, khz in {'cpuinfo_min_freq': 800000, 'cpuinfo_max_freq': 3800000, 'scaling_min_freq': 800000, 'scaling_max_freq': 3800000}.items():
            put(node, 'sys/devices/system/cpu/cpu%d/cpufreq/%s' % (cpu, file), '%d\n' % khz)


CASES = {
    'rdt': ('sys/fs/resctrl/', RDT, add_resctrl, {CLASS_KEY: 'gold'}, {'cgroup.threads': '7\n'}),
    'blkio': ('sys/fs/cgroup/', BLKIO, add_disks, {BLKIO_KEY: 'slow'}, {'io.max': '', 'io.weight': 'default 100\n'}),
    'memory': ('sys/fs/cgroup/', MEMORY, add_disks, {MEMORY_KEY: 'bronze'}, {'memory.high': 'max\n', 'memory.swap.max': '0\n'}),
    'cpu': ('sys/devices/system/cpu/', {'cpu': {'classes': {'fast': {'minFreq': 3000000}}}}, add_frequencies,
            {'cpuclass.resource-policy.nri.io': 'fast'}, {}),
}


def create_some(node, prefix, **more):
    """How long each has taken, in ms."""
    took = []
    for i in range(N):
        began = time.monotonic()
        node.create('%s%d' % (prefix, i), ctr('c', '100m/200m', '16Mi'), **more)
        took.append(1000 * (time.monotonic() - began))
    return took


@pytest.mark.parametrize('controller', CASES)
def test_nobody_waits(make_node, tmp_path, controller):
    """All creations are answered before the first slow write has ended, no slow write is the main thread's, and in the end all are done."""
    folder, config, prepare, annotations, files = CASES[controller]
    slow = Slow(tmp_path, folder)
    node = make_node({**STATIC, 'controllers': [controller], **config}, start=False, daemon=slow.daemon, module_dirs=[BUILD / 'modules'])
    prepare(node)
    node.existing('old', ctr('c', '100m/200m', '16Mi'), annotations=annotations)
    add_cgroup(node, 'old/c', files)
    node.start()
    eventually(lambda: slow.lines('begin'))
    first = create_some(node, 'p', annotations=annotations)
    assert slow.lines('begin') and not slow.lines('end')
    if controller != 'cpu':  # which says of a container only what has failed on its CPUs
        assert status_of(node, controller)['pending'] == N + 1
    for i in range(N):
        add_cgroup(node, 'p%d/c' % i, files)
    slow.gate.touch()
    second = create_some(node, 'q')
    eventually(lambda: status_of(node, controller)['done'] >= N + 1 and status_of(node, controller)['pending'] == 0, 60)
    assert status_of(node, controller)['failed'] == 0
    eventually(lambda: len(slow.lines('end')) >= N + 1, 60)
    eventually(lambda: len(slow.lines('end')) == len(slow.lines('begin')), 60)
    ended = slow.lines('end')
    assert len(ended) >= N + 1
    assert str(node.status()['pid']) not in [tid for tid, _ in ended]
    print('%s: %d writes of %d ms; creations p50 and max %.2f %.2f ms before the first has ended, %.2f %.2f ms while they go on'
          % (controller, len(ended), SLOW_MS, statistics.median(first), max(first), statistics.median(second), max(second)))


def test_killed_while_it_takes_back(make_node, tmp_path):
    """The daemon dies while it takes back what it gave a container that has lost its class: the next one knows, and does it."""
    slow = Slow(tmp_path, 'sys/fs/cgroup/')
    slow.gate.touch()
    node = make_node({'policy': 'puppet', 'controllers': ['blkio'], **BLKIO}, start=False, daemon=slow.daemon,
                     module_dirs=[TEST_MODULES, BUILD / 'modules'])
    add_disks(node)
    node.start()
    node.create('p', ctr('c', '1', '64Mi'), annotations={'t/do': 'cpus 1; text 101 slow', 't/update': 'text 101 ', 't/sync': 'cpus 1'})
    add_cgroup(node, 'p/c', {'io.max': '', 'io.weight': 'default 100\n'})
    weight = cgroup_of(node, 'p/c') + '/io.weight'  # the last that is written; io.max, a plain file here, is empty after the kill
    eventually(lambda: get(node, weight) == 'default 405')
    eventually(lambda: status_of(node, 'blkio')['done'] == 1)
    slow.gate.unlink()
    before = len(slow.lines('begin'))
    node.update('p/c', cpu='2')
    eventually(lambda: len(slow.lines('begin')) > before)
    node.kill()
    assert get(node, weight) == 'default 405'
    slow.gate.touch()
    node.start()
    eventually(lambda: get(node, weight) == 'default 100')
    eventually(lambda: status_of(node, 'blkio')['pending'] == 0)
    assert status_of(node, 'blkio')['failed'] == 0
    node.allow('died')
