# SPDX-License-Identifier: Apache-2.0
"""nri-rpd beside a real containerd: what is decided is what the kernel does."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import grpc
import pytest

import containerd
from containerd import cpus, wait_for
from criproxy import Bridge

BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', pathlib.Path(__file__).resolve().parents[2] / 'build'))
SCRATCH = os.environ.get('NRI_RP_TEST_DIR', '/tmp')  # short, as socket paths are
BRIDGED = 'NRI_RP_TEST_BRIDGE' in os.environ  # the runtimes have no NRI, and nri-rp-bridge stands before them
ONLINE = sorted(os.sched_getaffinity(0))

needs_two_cpus = pytest.mark.skipif(len(ONLINE) < 2, reason='needs two CPUs')


class Daemon:
    def __init__(self, runtime, folder):
        self.runtime, self.dir = runtime, folder
        self.conf, self.log = folder / 'rp.conf', folder / 'nri-rpd.log'
        self.process = None

    def configure(self, policy, section='{}', more=''):
        self.conf.write_text('policy: %s\n%s: %s\n%s' % (policy, policy, section, more))

    def start(self):
        mark = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(
                [str(BUILD / 'bin/nri-rpd'), '--config', str(self.conf), '--nri-socket', str(self.runtime.nri_socket), '--state-dir',
                 str(self.dir / 'state'), '--control-socket', str(self.dir / 'ctl.sock'), '--module-dir', str(BUILD / 'modules')],
                stdout=log, stderr=log)
        self.wait_log(r'synchronized with', mark)
        return self

    def tail(self, mark):
        return self.log.read_text(errors='replace')[mark:]

    def mark(self):
        return self.log.stat().st_size

    def wait_log(self, pattern, mark, seconds=60):
        def seen():
            assert self.process.poll() is None, 'nri-rpd ended:\n' + self.tail(mark)
            return re.search(pattern, self.tail(mark))
        return wait_for('%s in the log' % pattern, seen, seconds)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.tail(0)

    def reload(self):
        mark = self.mark()
        self.process.send_signal(signal.SIGHUP)
        return self.wait_log(r'configuration (reloaded|refused)', mark).group(1)


@pytest.fixture(params=list(containerd.SUITES), scope='module')
def runtime(request):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-it-', dir=SCRATCH))
    try:
        rt = containerd.Containerd(request.param, folder, nri=not BRIDGED)
        rt.start()
        rt.load_images()
    except containerd.Unavailable as why:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(str(why))
    with bridge_before(rt) if BRIDGED else contextlib.nullcontext():
        yield rt
    rt.down()
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def bridge_before(rt):
    """All calls go through it, and nri-rpd connects to it."""
    with Bridge(rt) as bridge:
        rt.nri_socket = bridge.nri_socket
        rt.connect(bridge.socket)
        yield
        rt.connect(rt.socket)


@pytest.fixture
def unstarted(runtime):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-d-', dir=SCRATCH))
    d = Daemon(runtime, folder)
    yield d
    if d.process and d.process.poll() is None:
        d.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def daemon(unstarted):
    unstarted.configure('static', '{reservedResources: {cpu: "cpuset:%d"}}' % ONLINE[0])
    return unstarted.start()


@pytest.fixture
def pods(runtime):
    made = []

    def run(*args, **kwargs):
        made.append(runtime.run_pod(*args, **kwargs))
        return made[-1]
    yield run
    for pod in made:
        pod.remove()


@needs_two_cpus
def test_pinned_at_creation_freed_at_deletion(daemon, pods):
    shared = pods('shared', 'besteffort').run('c')
    assert cpus(shared.allowed()) == set(ONLINE)
    pinned = pods('pinned').run('c', 1000)
    assert len(cpus(pinned.allowed())) == 1
    assert not cpus(pinned.allowed()) & {ONLINE[0]}
    assert cpus(shared.allowed()) == set(ONLINE) - cpus(pinned.allowed())
    pinned.remove()
    wait_for('the shared container has all CPUs again', lambda: cpus(shared.allowed()) == set(ONLINE))


@needs_two_cpus
@pytest.mark.parametrize('scope', ['container', 'pod'])
def test_a_pod_gets_no_more_than_its_own_cpus(unstarted, pods, scope):
    """The kubelet hands the pod's values down to containers without resources."""
    if scope == 'pod' and len(ONLINE) < 8:
        pytest.skip('needs eight CPUs')
    n, own = (4, 2) if len(ONLINE) >= 8 else (2, 1)
    unstarted.configure('static', '{reservedResources: {cpu: "cpuset:%d"}, topologyManagerPolicy: best-effort, topologyManagerScope: %s}'
                        % (ONLINE[0], scope))
    unstarted.start()
    pod = pods('app', mcpu=n * 1000)
    main = pod.run('main', own * 1000)
    log, proxy = pod.run('log', n * 1000), pod.run('proxy', n * 1000)
    other = pods('other', 'besteffort').run('c')
    has = {c: cpus(c.cgroup_file('cpuset.cpus')) for c in (main, log, proxy, other)}
    assert all(cpus(c.allowed()) == has[c] for c in has)
    assert len(has[main]) == own and has[log] == has[proxy] and not has[main] & (has[log] | has[other])
    if scope == 'pod':
        assert len(has[main] | has[log]) == n and not has[log] & has[other]
    else:
        assert has[log] == has[other]


def test_the_memory_policy_of_a_process(unstarted, pods):
    """Runtimes with NRI 0.12 set it; with others the container runs without it, and the log says so."""
    key = {'memory-policy.resource-policy.nri.io': 'near'}
    unstarted.configure('topology-aware', '{reservedResources: {cpu: "cpuset:%d"}, memoryPolicyClasses: [{name: near, mode: bind, nodes: cpu-nodes}]}' % ONLINE[0])
    unstarted.start()
    ctr = pods('app', 'burstable', key).run('c', 100, limit_mcpu=200)
    policies = {line.split()[1] for line in pathlib.Path('/proc/%d/numa_maps' % ctr.pid()).read_text().splitlines()}
    if 'the runtime sets no memory policies' in unstarted.tail(0):
        assert policies == {'default'}
    else:
        assert {p.split(':')[0] for p in policies} == {'bind'}


@needs_two_cpus
def test_killed_daemon_moves_nothing(daemon, pods):
    shared, pinned = pods('shared', 'burstable').run('c', 100), pods('pinned').run('c', 1000)
    before = shared.allowed(), pinned.allowed()
    daemon.kill()
    assert (shared.allowed(), pinned.allowed()) == before
    mark = daemon.mark()
    daemon.start()
    assert ' 0 updates' in daemon.tail(mark)
    assert (shared.allowed(), pinned.allowed()) == before
    pinned.remove()
    wait_for('the CPU is shared again', lambda: cpus(shared.allowed()) == set(ONLINE))


@needs_two_cpus
@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGKILL])
def test_restarted_runtime_moves_nothing(daemon, runtime, pods, sig):
    shared, pinned = pods('shared', 'besteffort').run('c'), pods('pinned').run('c', 1000)
    before, mark = (shared.allowed(), pinned.allowed()), daemon.mark()
    runtime.restart(sig)
    daemon.wait_log(r'synchronized with .* 0 updates', mark)
    assert (shared.allowed(), pinned.allowed()) == before
    assert cpus(pods('later', 'besteffort').run('c').allowed()) == cpus(shared.allowed())


@needs_two_cpus
def test_policies_are_switched_live(daemon, pods):
    daemon.configure('none')
    assert daemon.reload() == 'reloaded'
    shared, pinned = pods('shared', 'besteffort').run('c'), pods('pinned').run('c', 1000)
    assert cpus(pinned.allowed()) == cpus(shared.allowed()) == set(ONLINE)
    daemon.configure('static', '{reservedResources: {cpu: "cpuset:%d"}}' % ONLINE[0])
    assert daemon.reload() == 'reloaded'
    wait_for('the guaranteed container is pinned', lambda: len(cpus(pinned.allowed())) == 1)
    wait_for('the shared one is off it', lambda: cpus(shared.allowed()) == set(ONLINE) - cpus(pinned.allowed()))
    before = shared.allowed(), pinned.allowed()
    daemon.configure('none')
    assert daemon.reload() == 'reloaded'
    assert (shared.allowed(), pinned.allowed()) == before


WATCH = '''#!/bin/sh
for word; do case "$word" in create|start) what=$word ;; esac; last=$word; done
[ -z "$what" ] || echo "$what $last $(sed -n 's/^Cpus_allowed_list:\t//p' /proc/{pid}/status)" \
    "$(sed 's/.*) //' /proc/{pid}/stat | cut -d ' ' -f 37)" >> {seen}
'''


@needs_two_cpus
def test_whoever_has_a_named_cpu_has_left_it_before_its_new_owner_runs(unstarted, runtime, pods, tmp_path):
    """What the kernel says of the one that makes room, when runc is asked to create the annotated container, before any process of that
    one exists, and when it is asked to let its program begin. It is busy, so that it really runs on the CPU until it is moved."""
    unstarted.configure('cpuset')
    unstarted.start()
    whole = pods('whole').run('c', 1000, command=('/bin/sh', '-c', 'while :; do :; done'))
    (had,) = cpus(whole.allowed())
    (tmp_path / 'watch').write_text(WATCH.format(pid=whole.pid(), seen=tmp_path / 'seen'))
    (tmp_path / 'watch').chmod(0o755)
    (runtime.dir / 'before-runc').symlink_to(tmp_path / 'watch')
    try:
        named = pods('named', 'burstable', {'weka.io/cores-ids': str(had)}).run('c', 100)
    finally:
        (runtime.dir / 'before-runc').unlink()
    assert cpus(named.allowed()) == {had}
    seen = [line.split()[:1] + line.split()[2:] for line in (tmp_path / 'seen').read_text().splitlines() if named.id in line]
    assert [what for what, _, _ in seen] == ['create', 'start']
    for _, allowed, running in seen:
        assert cpus(allowed) == cpus(whole.allowed()) and had not in cpus(allowed) and int(running) != had


def test_a_bad_configuration_changes_nothing(daemon, pods):
    shared = pods('shared', 'besteffort').run('c')
    before = shared.allowed()
    daemon.configure('static', '{reservedResources: {cpu: "cpuset:900"}}')
    assert daemon.reload() == 'refused'
    daemon.configure('no-such-policy')
    assert daemon.reload() == 'refused'
    assert shared.allowed() == before


def test_the_impossible_is_refused_with_a_text(daemon, pods):
    with pytest.raises(grpc.RpcError) as e:
        pods('greedy').run('c', 1000 * (len(ONLINE) + 1))
    assert 'default/greedy/c: not enough cpus available' in e.value.details()
    assert cpus(pods('modest', 'besteffort').run('c').allowed()) == set(ONLINE)


@needs_two_cpus
def test_resizing_in_place(daemon, pods):
    pod = pods('pinned')
    pinned = pod.run('c', 1000)
    before = pinned.allowed()
    with pytest.raises(grpc.RpcError) as e:
        pinned.update(1000 * (len(ONLINE) + 1))
    assert 'not enough cpus' in e.value.details()
    assert pinned.allowed() == before
    pinned.update(1500)
    assert cpus(pinned.allowed()) == set(ONLINE)


def test_a_second_daemon_is_refused(daemon):
    done = subprocess.run([str(BUILD / 'bin/nri-rpd'), '--config', str(daemon.conf), '--nri-socket', str(daemon.runtime.nri_socket),
                           '--state-dir', str(daemon.dir / 'state'), '--control-socket', str(daemon.dir / 'other.sock'),
                           '--module-dir', str(BUILD / 'modules')], capture_output=True, text=True, timeout=containerd.CALL_S)
    assert done.returncode == 1
    assert str(daemon.process.pid) in done.stderr
