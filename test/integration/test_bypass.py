# SPDX-License-Identifier: Apache-2.0
"""nri-rp-bridge with the source cgroups beside a real containerd that has NRI off, with a real nri-rpd behind it: the kubelet and the
containerd know nothing of it, and what is decided is what the kernel does."""
import contextlib
import os
import pathlib
import random
import shutil
import tempfile
import threading
import time

import pytest

import containerd
from bypass import BRIDGE, PLACED, Process
from containerd import cgroups, cpus, wait_for
from test_containerd import ONLINE, SCRATCH, Daemon, needs_two_cpus

KILLS = int(os.environ.get('BYPASS_KILLS', '6'))
IN_TIME_S = 5.0  # from a cgroup's appearance until it is pinned; less than a second unless the machine is loaded


def new_runtime(release, nri, systemd=False, where=SCRATCH):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-it-', dir=where))
    try:
        rt = containerd.Containerd(release, folder, systemd, nri)
        rt.start()
        rt.load_images()
    except containerd.Unavailable as why:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(str(why))
    return rt


def drop_runtime(rt):
    rt.down()
    shutil.rmtree(rt.dir, ignore_errors=True)


# Each cgroup driver that this machine has.
DRIVERS = ['cgroupfs', 'systemd'] if os.path.isdir('/run/systemd/system') else ['cgroupfs']


@pytest.fixture(params=[(r, d) for r in containerd.SUITES for d in DRIVERS], ids='-'.join, scope='module')
def runtime(request):
    release, driver = request.param
    rt = new_runtime(release, nri=False, systemd=driver == 'systemd')
    assert not rt.nri_socket.exists()
    yield rt
    drop_runtime(rt)


def new_bridge(rt, *options):
    socket = rt.dir / 'bridge.sock'
    root = [] if rt.systemd else ['--cgroup-root', rt.cgroup]
    return Process(rt.dir / 'bridge.log', [BRIDGE, '--source', 'cgroups', '--nri-socket', socket, *root, '--runtime-state',
                                           rt.dir / 'state/io.containerd.runtime.v2.task/k8s.io', '--pods', 'cgroupfs', '--agent-socket',
                                           rt.dir / 'agent.sock', '--reconcile', '500ms', *options])


def start_bridge(p):
    before = p.count('waiting for nri-rpd')
    p.start().wait_log('waiting for nri-rpd', before + 1)


@pytest.fixture
def bridge(runtime):
    with new_bridge(runtime) as p:
        start_bridge(p)
        runtime.nri_socket = runtime.dir / 'bridge.sock'
        yield p


def new_daemon(rt, more=''):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-d-', dir=SCRATCH))
    d = Daemon(rt, folder)
    d.configure('static', '{reservedResources: {cpu: "cpuset:%d"}}' % ONLINE[0], more)
    return d


def end_daemon(d):
    if d.process and d.process.poll() is None:
        d.stop()
    shutil.rmtree(d.dir, ignore_errors=True)


@pytest.fixture
def daemon(runtime, bridge):
    d = new_daemon(runtime)
    again = bridge.count(PLACED) + 1
    d.start()
    bridge.wait_log(PLACED, again)
    yield d
    end_daemon(d)


@pytest.fixture
def pods(runtime):
    made = []

    def run(*args, **kwargs):
        made.append(runtime.run_pod(*args, **kwargs))
        return made[-1]
    yield run
    for pod in made:
        pod.remove()


def wait_pinned(ctr):
    wait_for('it is pinned', lambda: len(cpus(ctr.allowed())) == 1)


def folder_of(pod):
    """Its cgroup's."""
    uid = pod.config.metadata.uid
    found = cgroups(lambda name: 'pod' + uid in name.replace('_', '-'))
    return next(p for p in found if (p / 'cpuset.cpus').exists())


def run_timed(pod):
    """A container with a CPU of its own, and how long its cgroup had been there then: the runtime may take longer to start it."""
    folder, took = folder_of(pod), []

    def look():
        one = wait_for('one is pinned', lambda: [p for p in folder.glob('*/cpuset.cpus') if len(cpus(p.read_text())) == 1])
        took.append(time.time() - one[0].parent.stat().st_ctime)
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    ctr = pod.run('c', 1000)
    thread.join()
    wait_pinned(ctr)
    return ctr, took[0]


@needs_two_cpus
def test_pinned_in_time_and_freed(daemon, pods):
    shared = pods('shared', 'besteffort').run('c')
    took = []
    for i in range(5):
        pinned, after = run_timed(pods('pinned-%d' % i))
        took.append(after)
        assert not cpus(pinned.allowed()) & {ONLINE[0]}
        wait_for('the other goes out of its way', lambda: cpus(shared.allowed()) == set(ONLINE) - cpus(pinned.allowed()))
        pinned.remove()
        wait_for('the CPU is given back', lambda: cpus(shared.allowed()) == set(ONLINE))
    print('pinned after', *('%.3f s' % t for t in took))
    assert sorted(took)[len(took) // 2] < IN_TIME_S, took


@needs_two_cpus
def test_drift_is_written_back(bridge, daemon, pods):
    pinned = pods('pinned').run('c', 1000)
    wait_pinned(pinned)
    before, folder = pinned.allowed(), pinned.cgroup()
    (folder / 'cpuset.cpus').write_text(','.join(map(str, ONLINE)))
    wait_for('it is as it was', lambda: pinned.allowed() == before)


@needs_two_cpus
def test_what_cannot_be_placed_runs_and_is_placed_later(bridge, daemon, pods):
    holds = pods('holds').run('c', 1000 * (len(ONLINE) - 1))
    wait_pinned(holds)
    pod = pods('large')
    large = pod.run('c', 1000)
    bridge.wait_log('container %s is not managed' % large.id)
    assert cpus(large.allowed()) >= set(ONLINE) - cpus(holds.allowed())
    holds.remove()
    wait_for('it is placed', lambda: len(cpus(large.allowed())) == 1)
    bridge.wait_log('container %s is now managed' % large.id)


@needs_two_cpus
def test_nothing_moves_when_either_is_killed_under_churn(runtime, bridge, daemon, pods):
    pinned, shared = pods('pinned').run('c', 1000), pods('shared', 'besteffort').run('c')
    wait_pinned(pinned)
    before, dice = pinned.allowed(), random.Random(18)
    for i in range(KILLS):
        pod = runtime.run_pod('churn-%d' % i, 'burstable')
        again = bridge.count(PLACED) + 1
        if i % 2:
            daemon.kill()
            churned = pod.run('c', 100)
            daemon.start()
        else:
            bridge.kill()
            churned = pod.run('c', 100)
            time.sleep(dice.random() / 10)
            mark = daemon.mark()
            start_bridge(bridge)
            daemon.wait_log('synchronized with', mark)
        bridge.wait_log(PLACED, again)
        wait_for('it is out of the way', lambda: cpus(churned.allowed()) == set(ONLINE) - cpus(pinned.allowed()))
        pod.remove()
        assert pinned.allowed() == before
    pinned.remove()
    wait_for('nothing is kept', lambda: cpus(shared.allowed()) == set(ONLINE))


@needs_two_cpus
@pytest.mark.parametrize('release', containerd.ANY)
def test_nri_is_switched_on_and_off(release):
    """The daemon goes over to the runtime's own NRI and back; nobody moves."""
    rt = new_runtime(release, nri=False)
    try:
        with new_bridge(rt) as p:
            start_bridge(p)
            d = new_daemon(rt, 'runtime: {fallback: %s, fallbackAfter: 300ms}\n' % (rt.dir / 'bridge.sock'))
            try:
                there_and_back(rt, p, d)
            finally:
                end_daemon(d)
    finally:
        drop_runtime(rt)


@contextlib.contextmanager
def unmoved(ctr):
    """Its CPUs are the same all the while."""
    path, seen, over = ctr.cgroup() / 'cpuset.cpus', set(), threading.Event()

    def look():
        while not over.wait(0.005):
            seen.add(path.read_text())
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()
    assert len(seen) == 1, seen


def there_and_back(rt, p, d):
    d.start()
    p.wait_log(PLACED)
    pinned, shared = rt.run_pod('pinned').run('c', 1000), rt.run_pod('shared', 'besteffort').run('c')
    wait_pinned(pinned)
    rest = set(ONLINE) - cpus(pinned.allowed())
    wait_for('it goes out of the way', lambda: cpus(shared.allowed()) == rest)
    before = pinned.allowed()
    for nri, round_ in ((True, 1), (False, 2)):
        conf = rt.dir / 'config.toml'
        conf.write_text(conf.read_text().replace('disable = %s' % str(nri).lower(), 'disable = %s' % str(not nri).lower()))
        mark = d.mark()
        with unmoved(pinned):
            rt.restart()
            if nri:
                d.wait_log('leaving the fallback', mark)
            else:
                p.wait_log(PLACED, round_)
            d.wait_log('synchronized with', mark)
            time.sleep(0.5)
        assert (pinned.allowed(), cpus(shared.allowed())) == (before, rest)
        new = rt.run_pod('new-%d' % round_, 'burstable').run('c', 100)
        wait_for('who comes is placed', lambda: cpus(new.allowed()) == rest)
    pinned.remove()
    wait_for('the CPU is given back', lambda: cpus(shared.allowed()) == set(ONLINE))
