# SPDX-License-Identifier: Apache-2.0
"""What the node is measured by makes no sense, goes while it is read, or was learned by a daemon that was killed."""
import os
import pathlib
import shutil
import threading

from simnode import LEAST, ctr, eventually, fast_daemon, put_machine
from test_controllers import add_cgroup, cgroup_of

CPU, MID = 'kubernetes.io/batch-cpu', 'kubernetes.io/mid-cpu'
GARBAGE = [b'', b'\0\xff' * 4096, b'usage_usec -1\n', b'usage_usec 99999999999999999999999\n', b'usage_usec\n', b'x' * (1 << 20), b'usage_usec 1e9\n']


def value(node, name):
    return {r['name']: r.get('value') for r in node.ctl('node').get('resources', [])}.get(name)


def test_cgroups_that_make_no_sense_or_vanish(make_node):
    """Pods count by what they ask for as soon as they cannot be measured, and others as before."""
    strategy = {'enable': True, 'metricReportIntervalSeconds': 1, 'metricAggregateDurationSeconds': 2, 'cpuReclaimThresholdPercent': 100}
    node = make_node({'policy': 'none', 'calculators': ['batch'], 'metrics': {'collectInterval': '1s', 'listen': ''}, 'nodeResources': {'least': LEAST, 'strategy': strategy}}, start=False)
    put_machine(node)
    node.start()
    good = {'cpu.stat': 'usage_usec 5\n', 'memory.current': '4096\n', 'memory.stat': 'anon 4096\n'}
    names = ['healthy', 'odd', 'going']
    for name in names:
        node.create(name, ctr('c-' + name, '1', '1Mi'))
        add_cgroup(node, 'c-' + name, good)
    eventually(lambda: value(node, CPU) == 16000, 40)
    root, over = pathlib.Path(node.paths['root']), threading.Event()
    odd, going = (root / cgroup_of(node, 'c-' + name) for name in ('odd', 'going'))

    def come_and_go():
        while not over.is_set():
            shutil.rmtree(going)
            add_cgroup(node, 'c-going', {'cpu.stat': 'usage_usec 1\n'})
    thread = threading.Thread(target=come_and_go)
    thread.start()
    for text in GARBAGE:
        rounds = node.ctl('node')['passes']
        for file in good:
            (odd / (file + '.new')).write_bytes(text)
            os.replace(odd / (file + '.new'), odd / file)
        eventually(lambda: node.ctl('node')['passes'] > rounds, 40)
    (odd / 'cpu.stat').unlink()
    (odd / 'cpu.stat').mkdir()
    eventually(lambda: value(node, CPU) in (14000, 15000), 40)  # the one that comes and goes may be measured at times
    over.set()
    thread.join()
    shutil.rmtree(going)
    eventually(lambda: value(node, CPU) == 14000, 40)
    shutil.rmtree(odd)
    for name in names:
        add_cgroup(node, 'c-' + name, good)
    eventually(lambda: value(node, CPU) == 16000, 40)
    assert not [line for line in node.read_log().splitlines() if ' error: ' in line]


def test_a_kill_keeps_what_was_learned(make_node):
    """Half an hour in seconds. What is not needed can be lent once a pod was watched for long; after a kill that is not waited for again."""
    def config(cold):
        strategy = {'enable': True, 'metricReportIntervalSeconds': 60}
        return {'policy': 'none', 'calculators': ['mid'], 'metrics': {'collectInterval': '15s', 'listen': ''},
                'nodeResources': {'strategy': strategy, 'prediction': {'coldStart': cold}}}
    node = make_node(config('30m'), start=False, daemon=fast_daemon(300))
    put_machine(node)
    node.start()
    node.create('p', ctr('c', '2', '1Mi'))
    add_cgroup(node, 'c', {'cpu.stat': 'usage_usec 5\n', 'memory.current': '4096\n', 'memory.stat': 'anon 4096\n'})
    eventually(lambda: value(node, MID), 60)
    lent, file = value(node, MID), pathlib.Path(node.paths['state']) / 'predictions'
    assert 1500 < lent < 2000
    for _ in range(3):
        before = file.stat().st_mtime_ns
        eventually(lambda: file.stat().st_mtime_ns != before, 60)  # at any moment of writing it
        node.kill()
        # nobody could learn this anew in so few passes, a minute each
        node.run('write-config', config('25m'))
        node.start()
        eventually(lambda: value(node, MID), 60)
        assert value(node, MID) == lent and node.ctl('node')['passes'] < 20
    assert 'learned again' not in node.read_log()
