# SPDX-License-Identifier: Apache-2.0
"""What controllers set, measured by what containers of a real containerd can then do."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import pytest

from containerd import ANY, cpus, wait_for
from test_containerd import BUILD, ONLINE, SCRATCH, pods, runtime, unstarted  # noqa: F401, fixtures
from test_placement import needs_four_nodes, nodes  # noqa: F401, fixture

MI = 1 << 20
V2 = pathlib.Path('/sys/fs/cgroup/cgroup.controllers').exists()
HELD = 28 * MI
# One byte more and tail would go on moving them about, and the kernel balance them meanwhile.
HOLD = '/bin/sh', '-c', '(head -c %d /dev/zero; sleep 100000) | tail -c %d' % (HELD, HELD)


@pytest.fixture
def disk():
    """A disk of 128 MiB that nobody else uses."""
    with tempfile.NamedTemporaryFile(dir=SCRATCH) as backing:
        backing.truncate(128 * MI)
        made = subprocess.run(['losetup', '-f', '--show', backing.name], capture_output=True, text=True)
        if made.returncode:
            pytest.skip('needs a loop device')
        yield made.stdout.strip()
        subprocess.run(['losetup', '-d', made.stdout.strip()], check=False)


def explained(daemon, what, controller):
    """What nri-rpctl says of a controller and a container: result and text."""
    done = subprocess.run([str(BUILD / 'bin/nri-rpctl'), '--socket', str(daemon.dir / 'ctl.sock'), '--json', 'explain', what],
                          capture_output=True, text=True, check=True)
    return next(((c['result'], c['text']) for c in json.loads(done.stdout)['controllers'] if c['name'] == controller), ('', ''))


def of_processes(container, name):
    """{pid: that file of /proc}, without those that have ended meanwhile."""
    out = {}
    for pid in container.cgroup_file('cgroup.procs').split():
        try:
            out[pid] = pathlib.Path('/proc', pid, name).read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return out


def pages_by_node(container):
    """Bytes of all its processes, by memory node."""
    out = {}
    for text in of_processes(container, 'numa_maps').values():
        for node, n in re.findall(r' N(\d+)=(\d+)', text):
            out[int(node)] = out.get(int(node), 0) + int(n) * os.sysconf('SC_PAGE_SIZE')
    return out


def idle(container):
    """Whether its processes have not run for a second."""
    def ran():
        return {pid: text.split()[0] for pid, text in of_processes(container, 'schedstat').items()}
    before = ran()
    time.sleep(1)
    return ran() == before


@needs_four_nodes
def test_pages_follow_a_container_to_other_nodes(unstarted, pods, nodes):
    before, after = nodes[3], nodes[1]
    more = 'controllers: [memory]\nmemory: {pageMigration: {enable: true, rate: 64Mi}}\n'

    def within(node):
        unstarted.configure('topology-aware', '{availableResources: {cpu: "cpuset:%s"}, reservedResources: {cpu: "cpuset:%d"}}' % (
            ','.join(map(str, sorted(node.all))), min(node.all)), more)

    within(before)
    unstarted.start()
    holder = pods('holder').run('c', 1000, command=HOLD, mem=128 * MI)
    assert cpus(holder.allowed('Mems')) == {before.n}
    wait_for('it holds its memory', lambda: pages_by_node(holder).get(before.n, 0) >= HELD, 180)
    wait_for('it sleeps: the kernel balances what is in use by itself', lambda: idle(holder), 180)
    at_first = pages_by_node(holder)

    within(after)
    assert unstarted.reload() == 'reloaded'
    wait_for('the kernel knows of its new node', lambda: cpus(holder.allowed('Mems')) == {after.n})
    assert cpus(holder.allowed()) < after.all
    wait_for('its memory is there', lambda: pages_by_node(holder).get(after.n, 0) >= HELD, 180)
    assert pages_by_node(holder).get(before.n, 0) < 4 * MI
    told = 'pages to memory nodes %d: ' % after.n
    result, text = wait_for('it is told how it went', lambda: [s for s in [explained(unstarted, 'holder/c', 'memory')] if
                                                               s[0] != 'pending' and (s[1] or '').startswith(told)], 180)[0]
    print('%s -> %s: %s, %s' % (at_first, pages_by_node(holder), result, text))
    assert result in ('done', 'partial')  # what was busy at that moment may stay
    if not V2:  # version 2 moves them itself
        assert int(re.search(r'(\d+) MiB moved', text).group(1)) >= HELD // MI - 4


def reads(container, disk, n_mib, *flags):
    began = time.monotonic()
    container.exec('dd', 'if=' + disk, 'of=/dev/null', 'bs=1M', 'count=%d' % n_mib, *flags)
    return time.monotonic() - began


def writes(container, disk, n_mib):
    began = time.monotonic()
    container.exec('dd', 'if=/dev/zero', 'of=' + disk, 'bs=1M', 'count=%d' % n_mib, 'oflag=direct')
    return time.monotonic() - began


@pytest.mark.parametrize('runtime', ANY, indirect=True)  # noqa: F811
def test_disks_are_throttled(unstarted, pods, disk):
    unstarted.configure('none', more='controllers: [blkio]\nblkio: {classes: {slow: [{devices: [%s], throttleReadBps: 4Mi, '
                        'throttleWriteBps: 2Mi}]}}\n' % disk)
    unstarted.start()
    slow = pods('slow', 'burstable', {'blockioclass.resource-policy.nri.io': 'slow'}).run('c', 100, devices=[disk])
    free = pods('free', 'burstable').run('c', 100, devices=[disk])
    number = os.stat(disk).st_rdev
    device = '%d:%d' % (os.major(number), os.minor(number))
    wait_for('it is applied', lambda: explained(unstarted, 'slow/c', 'blkio')[0] == 'done')
    if V2:
        assert slow.cgroup_file('io.max') == '%s rbps=%d wbps=%d riops=max wiops=max' % (device, 4 * MI, 2 * MI)
        assert free.cgroup_file('io.max') == ''
    else:
        assert slow.cgroup_file('blkio.throttle.read_bps_device', 'blkio') == '%s %d' % (device, 4 * MI)
        assert slow.cgroup_file('blkio.throttle.write_bps_device', 'blkio') == '%s %d' % (device, 2 * MI)
        assert free.cgroup_file('blkio.throttle.read_bps_device', 'blkio') == ''
    took = [reads(slow, disk, 16, 'iflag=direct'), writes(slow, disk, 8), reads(free, disk, 16, 'iflag=direct'), writes(free, disk, 8)]
    print('read 16 MiB: %.1f s, write 8 MiB: %.1f s; without a class: %.1f s, %.1f s' % tuple(took))
    assert min(took[:2]) > 3  # of four; the first slice of time may pass more

    unstarted.configure('none', more='controllers: [blkio]\nblkio: {classes: {slow: [{devices: [%s]}]}}\n' % disk)
    assert unstarted.reload() == 'reloaded'
    wait_for('the throttles are gone', lambda: device not in slow.cgroup_file(
        'io.max' if V2 else 'blkio.throttle.read_bps_device', 'blkio'))


@pytest.mark.skipif(not V2, reason='needs cgroup v2')
def test_memory_is_reclaimed_from_where_the_class_says(unstarted, pods, disk):
    unstarted.configure('none', more='controllers: [memory]\nmemory: {classes: [{name: bronze, swapLimitRatio: 0.5}]}\n')
    unstarted.start()
    bronze = pods('bronze', annotations={'class.memory-qos.nri.io': 'bronze'}).run('c', 1000, mem=64 * MI, devices=[disk])
    plain = pods('plain').run('c', 1000, mem=64 * MI, devices=[disk])
    assert (bronze.cgroup_file('memory.high'), plain.cgroup_file('memory.high')) == (str(32 * MI), 'max')
    for c in (bronze, plain):
        reads(c, disk, 120)
    peaks = [int(c.cgroup_file('memory.peak')) for c in (bronze, plain)]
    print('memory.high 32 MiB: peak %.1f MiB, %.1f MiB without' % tuple(p / MI for p in peaks))
    assert peaks[0] < 40 * MI
    assert int(re.search(r'^high (\d+)', bronze.cgroup_file('memory.events'), re.M).group(1)) > 0
