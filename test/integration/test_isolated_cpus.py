# SPDX-License-Identifier: Apache-2.0
"""What still runs on the exclusive CPUs of a container, by the kernel's counters, with each key of the section isolation and without it.

After a release, without the keys, with another policy, after a stop and after a kill, every file is as it was.
"""
import os
import pathlib
import signal
import subprocess
import time

import pytest

from containerd import ANY, cpus, wait_for
from test_containerd import ONLINE, pods, runtime, unstarted  # noqa: F401, fixtures

V2 = pathlib.Path('/sys/fs/cgroup/cgroup.controllers')
pytestmark = [pytest.mark.skipif(not V2.exists() or 'cpuset' not in V2.read_text(), reason='needs cgroup v2 with cpuset'),
              pytest.mark.skipif(len(ONLINE) < 4, reason='needs four CPUs'),
              pytest.mark.skipif(not os.access('/sys/devices/virtual/workqueue/cpumask', os.W_OK), reason='needs /sys for writing')]
CGROUP, SLICE = pathlib.Path('/sys/fs/cgroup'), 'nri-rp-it.slice'
WORKQUEUE = pathlib.Path('/sys/devices/virtual/workqueue/cpumask')
PARTITIONS = (CGROUP / 'cpuset.cpus.isolated').exists()
ALL = '%d-%d' % (ONLINE[0], ONLINE[-1])
SECONDS = float(os.environ.get('NRI_RP_TEST_SECONDS', '10'))
BUSY = '/bin/sh', '-c', 'while :; do :; done'
FILES = 'cpuset.cpus', 'cpuset.cpus.exclusive', 'cpuset.cpus.partition', 'cpu.idle', 'cpu.weight', 'cpu.max'


class Host:
    """A busy service of the host: a task for each CPU."""

    def __init__(self):
        self.folder, self.others = CGROUP / SLICE, []
        subprocess.run(['sh', '-c', 'echo +cpu +cpuset > %s/cgroup.subtree_control' % CGROUP], check=False)
        self.folder.mkdir(exist_ok=True)
        self.tasks = [subprocess.Popen(BUSY) for _ in ONLINE]
        for t in self.tasks:
            (self.folder / 'cgroup.procs').write_text(str(t.pid))

    def busy(self, on):
        """Lets the tasks and the busy containers run, or stops them."""
        for pid in [t.pid for t in self.tasks] + [c.pid() for c in self.others]:
            os.kill(pid, signal.SIGCONT if on else signal.SIGSTOP)

    def end(self):
        self.busy(True)
        for t in self.tasks:
            t.kill()
            t.wait()
        wait_for('the cgroup is empty', lambda: not (self.folder / 'cgroup.procs').read_text())
        self.folder.rmdir()


@pytest.fixture
def host():
    h = Host()
    yield h
    h.end()


def ran_ms(of):
    """Time for which tasks ran on these CPUs."""
    lines = [line.split() for line in pathlib.Path('/proc/schedstat').read_text().splitlines()]
    return sum(int(f[7]) for f in lines if f[0][:3] == 'cpu' and int(f[0][3:]) in of) / 1e6


def rises(host, value):  # noqa: F811
    host.busy(True)
    time.sleep(1)
    before = value()
    time.sleep(SECONDS)
    risen = round(value() - before)
    host.busy(False)
    return risen


def siblings_of(cpu):
    return cpus(pathlib.Path('/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list' % cpu).read_text())


def interrupts():
    """CPUs of each interrupt whose affinity can be written."""
    found = {}
    for path in pathlib.Path('/proc/irq').glob('[0-9]*/smp_affinity_list'):
        try:
            found[path] = path.read_text().strip()
            path.write_text(found[path])
        except OSError:
            found.pop(path, None)
    return found


class Node:
    def __init__(self, daemon, runtime, pods, host):  # noqa: F811
        self.daemon, self.runtime, self.host = daemon, runtime, host
        self.configure()
        daemon.start()
        self.pod = runtime.run_pod('own')
        self.own = self.pod.run('c', 1000)
        self.cpus = cpus(self.own.allowed())
        self.idle = pods('idle', 'besteffort').run('c', command=BUSY)
        host.others = [pods('work', 'burstable').run('c', 100, command=BUSY), self.idle]
        host.busy(False)
        self.irqs = list(interrupts())
        self.before = self.state()

    def configure(self, *keys, policy='static'):
        section = '{reservedResources: {cpu: "cpuset:%d"}, isolation: {%s}}' % (ONLINE[0], ', '.join(['hostSlices: [%s]' % SLICE, *keys]))
        self.daemon.configure(policy, section if policy == 'static' else '{}')

    def reload(self, *keys, policy='static'):
        self.configure(*keys, policy=policy)
        return self.daemon.reload()

    def state(self):
        """All that the keys may change, besides what belongs to a placement."""
        folders = [CGROUP, self.host.folder, *(p for p in (CGROUP / self.runtime.cgroup.strip('/')).rglob('*') if p.is_dir())]
        paths = [f / name for f in folders for name in FILES if name != 'cpuset.cpus' or f == self.host.folder] + [WORKQUEUE, *self.irqs]
        state = {str(p): p.read_text().strip() for p in paths if p.exists()}
        # The kernel does not empty the CPUs of a cgroup with tasks (ENOSPC): all CPUs are no restriction either.
        slice_cpus = str(self.host.folder / 'cpuset.cpus')
        state[slice_cpus] = state[slice_cpus] or ALL
        return state

    def changed(self):
        now = self.state()
        return {p.rsplit('/', 1)[-1]: (t, now[p]) for p, t in self.before.items() if p in now and now[p] != t}

    def restored(self, how, but=()):
        try:
            wait_for('restored', lambda: not self.changed().keys() - set(but), 30)
        except AssertionError:
            raise AssertionError('left after %s: %s' % (how, self.changed())) from None
        return how


def foreign_ms(n):
    return rises(n.host, lambda: ran_ms(n.cpus))


# What is measured with a key and without it, and what has to be true of the two.
KEYS = {
    'hostTasks: away': (foreign_ms, lambda off, on: off > 300 and on < off / 5),
    'bestEffort: idle': (lambda n: (n.idle.cgroup().parent / 'cpu.idle').read_text().strip(), lambda off, on: (off, on) == ('0', '1')),
    'quota: off': (lambda n: n.own.cgroup_file('cpu.max'), lambda off, on: off == '100000 100000' and on.startswith('max')),
    'partition: isolated': (lambda n: n.own.cgroup_file('cpuset.cpus.partition'), lambda off, on: (off, on) == ('member', 'isolated')),
    'kernelWork: away': (lambda n: (WORKQUEUE.read_text().strip(), sorted(set(interrupts().values()))), lambda off, on: off != on),
}


@pytest.mark.parametrize('runtime', ANY, indirect=True, ids=lambda release: 'containerd-' + release)
def test_what_runs_on_exclusive_cpus(unstarted, runtime, pods, host, monkeypatch):  # noqa: F811
    monkeypatch.setenv('NRI_RPD_PARTITIONS', 'yes')
    n = Node(unstarted, runtime, pods, host)
    keys = []
    for key, (measure, holds) in KEYS.items():
        if key == 'partition: isolated' and not PARTITIONS:
            assert n.reload(key) == 'refused' and 'Linux 6.8 or later is needed' in n.daemon.tail(0)
            print('\n| %s | refused by Linux %s |' % (key, os.uname().release))
            continue
        keys.append(key)
        off = measure(n)
        assert n.reload(key) == 'reloaded'
        wait_for(key, n.changed)
        time.sleep(1)
        on, changed = measure(n), n.changed()
        n.reload()
        print('\n| %s | %s | %s | %s | restored without the key |' % (key, off, on, changed), flush=True)
        n.restored(key)
        assert holds(off, on), (key, off, on)
    if len(siblings_of(ONLINE[1])) > 1:
        n.reload('siblings: own')
        wait_for('a whole core', lambda: len(cpus(n.own.allowed())) > 1)
        core = cpus(n.own.allowed())
        assert core == siblings_of(min(core))
        wait_for('the others leave it', lambda: not any(cpus(c.allowed()) & core for c in host.others))
        print('\n| siblings: own | %s | %s |' % (n.cpus, core), flush=True)
        n.reload()
        wait_for('one CPU', lambda: len(cpus(n.own.allowed())) == 1)
        n.restored('siblings')
    ends_of_all(n, keys)


def ends_of_all(n, keys):
    def again():
        n.configure(*keys)
        n.daemon.reload() if n.daemon.process.poll() is None else n.daemon.start()
        wait_for('the keys are applied', lambda: {'cpuset.cpus', 'cpu.idle', 'cpumask'} <= n.changed().keys())
    quota = 'cpu.max', 'cpu.max.burst'  # of running containers: policy none, and a daemon that is away, leave it
    again()
    n.reload(policy='none')
    ends = [n.restored('switch', but=quota)]
    again()
    n.daemon.stop()
    ends.append(n.restored('stop', but=quota))
    again()
    n.daemon.kill()
    n.configure()
    n.daemon.start()
    ends.append(n.restored('kill'))
    again()
    n.pod.remove()
    ends.append(n.restored('release', but=('cpu.idle', 'cpu.weight')))
    n.daemon.stop()
    ends.append(n.restored('release and stop'))
    print('\nnothing is left after: ' + ', '.join(ends))
