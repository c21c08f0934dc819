# SPDX-License-Identifier: Apache-2.0
"""nri-rpd as a service: the shipped unit, with systemd as process 1 and a containerd that makes its cgroups through it.

The unit gets a name, programs, state and sockets of its own, so that it may run beside an installed one.
"""
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile
import time

import grpc
import pytest

import containerd
from containerd import cpus
from operator_tools import free_port, http_connect, http_get
from units import Unit, run, under_systemd

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build'))
UNIT_IN = TOP / 'packaging/systemd/nri-rpd.service.in'
NAME = 'nri-rp-it-%d' % os.getpid()
STATE, RUN = pathlib.Path('/var/lib/' + NAME), pathlib.Path('/run/' + NAME)
METRICS_UNIT, METRICS = 'nri-rpd-metrics.socket', NAME + '-metrics.socket'
NOT_PRIVATE = os.environ.get('NRI_RP_TEST_DIR', '/run')  # a folder that services see
ONLINE = sorted(os.sched_getaffinity(0))
STATIC = '{reservedResources: {cpu: "cpuset:%d"}, pinMemory: true}' % ONLINE[0]
MAX_EXPOSURE = {'nri-rp-bridge-cgroups': 18}  # of 100; others: 12

needs_two_cpus = pytest.mark.skipif(len(ONLINE) < 2, reason='needs two CPUs')
needs_analyze = pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='systemd-analyze is not installed')


def nodes():
    """CPUs by NUMA node."""
    found = glob.glob('/sys/devices/system/node/node[0-9]*')
    return {int(re.search(r'\d+$', f).group()): cpus(pathlib.Path(f, 'cpulist').read_text()) for f in found}


def unit_text(folder, state):
    text = UNIT_IN.read_text()
    for parent in ('/var/lib/', '/run/'):
        assert parent + 'nri-rp' in text
        text = text.replace(parent + 'nri-rp', parent + state)
    return text.replace('@bindir@', str(folder / 'bin')).replace('/etc/default/nri-rp', str(folder / 'env')).replace(METRICS_UNIT, METRICS)


# ---- the text of the unit --------------------------------------------------------------------------------------------------

@pytest.fixture(params=sorted(UNIT_IN.parent.glob('*.service.in')), ids=lambda path: path.name.partition('.')[0])
def unit_file(request, tmp_path):
    """Beside the others, as one may require another."""
    for unit in [*UNIT_IN.parent.glob('*.service.in'), *UNIT_IN.parent.glob('*.socket.in')]:
        text = re.sub(r'@bindir@/\S+ ', '/bin/true ', unit.read_text())
        # The agent's user comes with the package.
        (tmp_path / unit.stem).write_text(re.sub(r'^(Documentation|User|Group)=.*\n', '', text, flags=re.M))
    return tmp_path / request.param.stem


@needs_analyze
def test_unit_is_well_formed(unit_file):
    done = run('systemd-analyze', 'verify', unit_file)
    assert (done.returncode, [line for line in done.stderr.splitlines() if 'nri-rp' in line]) == (0, [])


@needs_analyze
def test_unit_is_narrow(unit_file):
    exposure = MAX_EXPOSURE.get(unit_file.stem, 12)
    done = run('systemd-analyze', 'security', '--offline=1', '--threshold=%d' % exposure, '--no-pager', unit_file)
    if 'nrecognized option' in done.stderr:
        pytest.skip('systemd-analyze is too old')
    assert done.returncode == 0, done.stdout + done.stderr


@needs_analyze
@pytest.mark.parametrize('dropin', sorted(UNIT_IN.parent.glob('*.conf.in')), ids=lambda path: path.name.partition('.')[0])
def test_dropin_is_well_formed(dropin, tmp_path):
    """With one of the parts for operators the unit is a unit still, and lets more be done, but not everything."""
    unit = tmp_path / UNIT_IN.stem
    text = re.sub(r'@bindir@/\S+ ', '/bin/true ', UNIT_IN.read_text())
    unit.write_text(re.sub(r'^Documentation=.*\n', '', text, flags=re.M))
    part = tmp_path / (unit.name + '.d') / dropin.stem
    part.parent.mkdir()
    part.write_text(dropin.read_text())
    done = run('systemd-analyze', 'verify', unit)
    assert (done.returncode, [line for line in done.stderr.splitlines() if 'nri-rp' in line]) == (0, [])


# ---- the service ----------------------------------------------------------------------------------------------------------

class Service(Unit):
    def __init__(self, runtime):
        super().__init__(NAME)
        self.runtime = runtime
        self.dir = pathlib.Path('/var/lib/%s-programs' % NAME)  # not below what the unit hides
        self.conf, self.socket = self.dir / 'rp.conf', '/run/%s/control.sock' % NAME

    def install(self):
        for sub in ('bin', 'modules'):
            (self.dir / sub).mkdir(parents=True, exist_ok=True)
        for program in ('nri-rpd', 'nri-rpctl'):
            shutil.copy(BUILD / 'bin' / program, self.dir / 'bin')
        for module in [*(BUILD / 'modules').glob('*.so'), BUILD / 'test/modules/hang.so']:
            shutil.copy(module, self.dir / 'modules')
        options = ['--config', self.conf, '--nri-socket', self.runtime.nri_socket, '--control-socket', self.socket, '--state-dir',
                   '/var/lib/' + NAME, '--module-dir', self.dir / 'modules']
        (self.dir / 'env').write_text('NRI_RPD_OPTIONS=%s\nNRI_RP_SOCKET=%s\n' % (' '.join(map(str, options)), self.socket))
        self.put(unit_text(self.dir, NAME))

    def remove(self):
        super().remove()
        for folder in (self.dir, STATE, RUN):
            shutil.rmtree(folder, ignore_errors=True)

    def configure(self, policy, section='{}', more=''):
        self.conf.write_text('policy: %s\nmetrics: {listen: ""}\n%s: %s\n%s' % (policy, policy, section, more))

    def synchronized(self, pid):
        """The journal's entry for the synchronization of that process."""
        def seen():
            return next((e for e in self.journal() if e.get('_PID') == str(pid) and 'synchronized with' in str(e['MESSAGE'])), None)
        return self.wait('%d is synchronized' % pid, seen)

    def restarted(self, before, seconds=120.0):
        """Waits for another main process that is synchronized; the entry that says so."""
        return self.synchronized(self.wait('another main process', lambda: self.pid() not in (0, before) and self.pid(), seconds))

    def figures(self, what, entry):
        at = int(entry['__MONOTONIC_TIMESTAMP'])
        print('%s: synchronized %.0f ms after the start of the process, %.0f ms after the end of the last one' % (
            what, (at - int(self.show('ExecMainStartTimestampMonotonic'))) / 1000,
            (at - int(self.show('ActiveExitTimestampMonotonic'))) / 1000))


@pytest.fixture(scope='module')
def runtime(request):
    """Of release 2, if a test does not ask for others."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-sd-', dir=NOT_PRIVATE))
    try:
        rt = containerd.Containerd(getattr(request, 'param', '2'), folder, systemd=True)
        rt.start()
        rt.load_images()
    except containerd.Unavailable as why:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(str(why))
    yield rt
    rt.down()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def idle(runtime):
    """Installed, not started."""
    s = Service(runtime)
    s.dir.mkdir(parents=True, exist_ok=True)
    s.configure('static', STATIC)
    s.install()
    yield s
    s.remove()


@pytest.fixture
def service(idle):
    idle.start()
    return idle


@pytest.fixture
def pods(runtime):
    made = []

    def run_pod(*args, **kwargs):
        made.append(runtime.run_pod(*args, **kwargs))
        return made[-1]
    yield run_pod
    for pod in made:
        pod.remove()


def in_force(container):
    return container.allowed(), container.allowed('Mems'), container.cgroup_file('cpuset.cpus'), container.cgroup_file('cpuset.mems')


def skip_if_systemd_was_misled(unit, *containers):
    """What systemd knows is what it puts in force when it reloads, as each installed package makes it do."""
    for c in containers:
        known = unit.systemctl('show', '-P', 'AllowedCPUs', 'cri-containerd-%s.scope' % c.id)
        if cpus(known.replace(' ', ',')) != cpus(c.allowed()):
            pytest.skip('this runc tells systemd of other CPUs than it pins to (before 1.1.6, with more than 8 CPUs)')


@under_systemd
def test_ready_after_the_first_synchronization(idle, runtime):
    runtime.stop()
    try:
        idle.systemctl('start', '--no-block', NAME)
        idle.wait('it waits', lambda: 'connecting' in idle.show('StatusText'))
        assert idle.show('ActiveState') == 'activating'
    finally:
        runtime.start()
    idle.wait('ready', lambda: idle.show('ActiveState') == 'active')
    assert idle.show('StatusText').startswith('connected to containerd')
    idle.synchronized(idle.pid())


@under_systemd
@needs_two_cpus
def test_pins_on_every_node(service, pods):
    by_node = nodes()
    sizes = [len(c - {ONLINE[0]}) for c in by_node.values()]
    made = [pods('p%d' % i).run('c', 1000 * n) for i, n in enumerate(sorted(sizes, reverse=True)) if n]
    if len(by_node) == 1:  # one pool is all there is, and somebody has to stay on it
        assert cpus(made[0].allowed()) == set(ONLINE[1:])
    for c in made:
        own = cpus(c.allowed())
        assert cpus(c.cgroup_file('cpuset.cpus')) == own
        assert cpus(c.allowed('Mems')) == {n for n, of in by_node.items() if of & own}
        assert cpus(c.cgroup_file('cpuset.mems')) == cpus(c.allowed('Mems'))
    taken = [cpus(c.allowed()) for c in made]
    assert sum(map(len, taken)) == len(set().union(*taken)) == len(ONLINE) - 1
    for node, of in by_node.items():
        assert any(own <= of for own in taken), 'nobody has node %d to itself' % node


@under_systemd
@needs_two_cpus
def test_systemd_reloading_keeps_pins(service, pods):
    shared, pinned = pods('shared', 'burstable').run('c', 100), pods('pinned').run('c', 1000)
    before = in_force(shared), in_force(pinned)
    skip_if_systemd_was_misled(service, shared, pinned)
    for verb in ('daemon-reload', 'daemon-reexec'):
        service.systemctl(verb)
        assert (in_force(shared), in_force(pinned)) == before, verb
    if len(ONLINE) > 2:
        more = pods('more').run('c', 1000)
        assert cpus(shared.allowed()) == set(ONLINE) - cpus(pinned.allowed()) - cpus(more.allowed())
    assert in_force(pinned) == before[1]


@under_systemd
@needs_two_cpus
def test_reload_tells_its_outcome(service, pods):
    pinned, pid = pods('pinned').run('c', 1000), service.pid()
    before = in_force(pinned)
    service.systemctl('reload', NAME)
    service.configure('static', '{reservedResources: {cpu: "cpuset:%d"}, pinMemory: perhaps}' % ONLINE[0])
    done = run('systemctl', 'reload', NAME)
    assert done.returncode != 0
    assert NAME in done.stderr
    service.wait_journal(r'rp\.conf:3.*pinMemory.*perhaps')
    assert (service.pid(), service.show('ActiveState')) == (pid, 'active')
    service.configure('static', STATIC)
    service.systemctl('reload', NAME)
    assert (service.pid(), in_force(pinned)) == (pid, before)


@under_systemd
@needs_two_cpus
def test_restart_moves_nothing(service, pods):
    made = [pods('shared', 'burstable').run('c', 100), pods('pinned').run('c', 1000), pods('best', 'besteffort').run('c')]
    before, pid = list(map(in_force, made)), service.pid()
    service.systemctl('restart', NAME)
    entry = service.synchronized(service.pid())
    assert service.pid() != pid
    assert '3 containers, 0 updates' in entry['MESSAGE']
    assert list(map(in_force, made)) == before
    service.figures('restart', entry)


@under_systemd
@needs_two_cpus
@pytest.mark.parametrize('sig', [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_comes_back_whatever_ended_it(service, pods, sig):
    made = [pods('shared', 'burstable').run('c', 100), pods('pinned').run('c', 1000)]
    before, pid = list(map(in_force, made)), service.pid()
    os.kill(pid, sig)
    entry = service.restarted(pid)
    assert '2 containers, 0 updates' in entry['MESSAGE']
    assert list(map(in_force, made)) == before
    assert service.show('NRestarts') == '1'
    service.figures(sig.name, entry)


@under_systemd
def test_is_never_given_up_on(service):
    for n in range(8):
        pid = service.pid()
        os.kill(pid, signal.SIGKILL)
        service.restarted(pid)
    assert service.show('NRestarts') == '8'


@under_systemd
@needs_two_cpus
def test_a_daemon_that_stands_still_is_replaced(idle, pods):
    idle.override('WatchdogSec=15s\n')
    idle.start()
    pinned, pid = pods('pinned').run('c', 1000), idle.pid()
    before = in_force(pinned)
    os.kill(pid, signal.SIGSTOP)
    entry = idle.restarted(pid)
    assert '1 containers, 0 updates' in entry['MESSAGE']
    assert in_force(pinned) == before
    assert idle.wait_journal('Watchdog timeout')


@under_systemd
def test_a_module_that_hangs_ends_in_safe_mode(idle, pods):
    idle.configure('hang')
    idle.start()
    made = []
    for n in range(3):
        pid = idle.pid()
        made.append(pods('unlucky%d' % n, 'besteffort').run('c'))
        idle.restarted(pid)
        assert len(re.findall('status=70', idle.journal_text())) == n + 1
    idle.wait_journal('safe mode')
    made.append(pods('lucky', 'besteffort').run('c'))
    assert [cpus(c.allowed()) for c in made] == [set(ONLINE)] * 4
    assert idle.show('ActiveState') == 'active'
    idle.configure('static', STATIC)
    idle.systemctl('reload', NAME)
    assert cpus(pods('pinned').run('c', 1000).allowed()) < set(ONLINE)


@under_systemd
def test_a_bad_configuration_is_not_tried_again(idle):
    idle.configure('static', '{reservedResources: {cpu: "cpuset:9000"}}')
    assert run('systemctl', 'start', NAME).returncode != 0
    assert (idle.show('ActiveState'), idle.show('ExecMainStatus')) == ('failed', '78')
    time.sleep(0.5)
    assert (idle.show('ActiveState'), idle.show('NRestarts')) == ('failed', '0')
    idle.wait_journal('9000')
    idle.configure('static', STATIC)
    idle.start()
    assert idle.show('ActiveState') == 'active'


def refuses(address):
    try:
        http_connect(address).close()
    except OSError:
        return True
    return False


@under_systemd
def test_metrics_without_network(idle):
    """Systemd listens: whoever scrapes is served by the daemon and by the one after it, and starts none that was stopped or has failed."""
    port, file = free_port(), pathlib.Path('/run/systemd/system', METRICS)
    address, text = '127.0.0.1:%d' % port, (UNIT_IN.parent / (METRICS_UNIT + '.in')).read_text()
    assert '8891' in text and 'nri-rpd.service' in text
    file.write_text(text.replace('nri-rpd.service', NAME + '.service').replace('ListenStream=127.0.0.1:8891', 'ListenStream=' + address))
    try:
        idle.conf.write_text(idle.conf.read_text().replace('listen: ""', 'listen: "%s"' % address))
        idle.systemctl('daemon-reload')
        idle.start()
        assert os.stat('/proc/%d/ns/net' % idle.pid()).st_ino != os.stat('/proc/self/ns/net').st_ino
        assert http_get(address, '/livez').status == 200
        os.kill(idle.pid(), signal.SIGKILL)
        idle.restarted(0)
        assert http_get(address, '/livez').status == 200
        idle.systemctl('stop', NAME)
        assert refuses(address) and idle.show('ActiveState') == 'inactive'
        for kept in STATE, RUN:  # the configuration in force is in both, and a start with a refused one would be one with that
            shutil.rmtree(kept)
        idle.conf.write_text(idle.conf.read_text().replace('cpuset:%d' % ONLINE[0], 'cpuset:9000'))
        assert run('systemctl', 'start', NAME).returncode != 0
        idle.wait('the socket is gone', lambda: refuses(address))
        failed = idle.show('InvocationID')
        assert all(refuses(address) for n in range(10))
        assert [idle.show(what) for what in ('ActiveState', 'ExecMainStatus', 'InvocationID')] == ['failed', '78', failed]
    finally:
        run('systemctl', 'stop', METRICS)
        file.unlink()


def held(pid):
    """Its sets of capabilities. No process of a unit may get more, or call what its filter does not list."""
    said = dict(line.split(':\t', 1) for line in pathlib.Path('/proc/%d/status' % pid).read_text().splitlines())
    assert (said['NoNewPrivs'], said['Seccomp']) == ('1', '2')
    return [int(said[caps], 16) for caps in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')]


@under_systemd
def test_has_no_capability(service):
    assert held(service.pid()) == [0] * 5


def of_controller(service, container, name):
    """What nri-rpctl tells of a controller and a container: result and text."""
    done = run(service.dir / 'bin/nri-rpctl', '--socket', service.socket, '--json', 'explain', container)
    return next(((c['result'], c['text'] or '') for c in json.loads(done.stdout)['controllers'] if c['name'] == name), ('', ''))


@pytest.fixture
def disk():
    """The other name of a disk that nobody uses, and its number."""
    name = pathlib.Path('/dev/disk/by-id', NAME)
    with tempfile.NamedTemporaryFile(dir='/run') as backing:
        backing.truncate(16 << 20)
        made = run('losetup', '-f', '--show', backing.name)
        if made.returncode:
            pytest.skip('needs a loop device')
        loop = made.stdout.strip()
        name.parent.mkdir(parents=True, exist_ok=True)
        name.symlink_to(os.path.relpath(loop, name.parent))
        number = os.stat(loop).st_rdev
        yield name, '%d:%d' % (os.major(number), os.minor(number))
        name.unlink()
        run('losetup', '-d', loop)


@under_systemd
@pytest.mark.skipif(not os.path.exists('/sys/fs/cgroup/cgroup.controllers'), reason='needs cgroup v2')
def test_controllers_write_without_a_capability(idle, pods, disk):
    """Files of a running container's cgroup, after a reload: by the daemon, not by the runtime."""
    name, number = disk

    def configure(mib, ratio):
        idle.configure('static', STATIC, 'controllers: [blkio, memory]\nblkio: {classes: {slow: [{devices: [%s], throttleReadBps: %dMi}]}}\n'
                       'memory: {classes: [{name: bronze, swapLimitRatio: %s}]}\n' % (name, mib, ratio))
    configure(4, 0.5)
    idle.start()
    c = pods('p', annotations={'blockioclass.resource-policy.nri.io': 'slow', 'class.memory-qos.nri.io': 'bronze'}).run('c', 1000, mem=64 << 20)
    for mib, ratio in ((4, 0.5), (2, 0.25)):
        configure(mib, ratio)
        idle.systemctl('reload', NAME)
        idle.wait('the disk is throttled', lambda: c.cgroup_file('io.max') == '%s rbps=%d wbps=max riops=max wiops=max' % (number, mib << 20))
        idle.wait('memory is reclaimed earlier', lambda: int(c.cgroup_file('memory.high')) == (1 - ratio) * (64 << 20))
    assert {of_controller(idle, 'p/c', which)[0] for which in ('blkio', 'memory')} == {'done'}


@under_systemd
@pytest.mark.skipif(sum(len(of) > 1 for of in nodes().values()) < 2, reason='needs two memory nodes with two CPUs each')
def test_pages_follow_with_a_part_of_the_unit(idle, pods):
    """What needs a capability fails without it and names the part that gives it; with that part it is done."""
    two = [node for node, of in nodes().items() if len(of) > 1][:2]

    def configure(node):
        of = sorted(nodes()[node])
        idle.configure('topology-aware', '{availableResources: {cpu: "cpuset:%s"}, reservedResources: {cpu: "cpuset:%d"}}' % (
            ','.join(map(str, of)), of[0]), 'controllers: [memory]\nmemory: {pageMigration: {enable: true}}\n')

    def follow_to(node):
        configure(node)
        idle.systemctl('reload', NAME)
        return idle.wait('its pages were looked at', lambda: [(result, text) for result, text in [of_controller(idle, 'p/c', 'memory')] if
                                                              text.startswith('pages to memory nodes %d' % node) and result != 'pending'])[0]
    configure(two[0])
    idle.start()
    pods('p').run('c', 1000, command=('/bin/sh', '-c', '(head -c 4194304 /dev/zero; sleep 100000) | tail -c 4194304'), mem=64 << 20)
    result, text = follow_to(two[1])
    assert result == 'failed' and 'page-migration.conf' in text
    idle.override((UNIT_IN.parent / 'page-migration.conf.in').read_text().partition('[Service]\n')[2])
    idle.systemctl('restart', NAME)
    assert follow_to(two[0])[0] in ('done', 'partial')


@under_systemd
def test_stopping_is_clean(service):
    service.systemctl('stop', NAME)
    assert (service.show('ActiveState'), service.show('Result')) == ('inactive', 'success')
    assert oct(os.stat('/var/lib/' + NAME).st_mode & 0o777) == '0o710'


@under_systemd
def test_refusals_reach_the_runtime(service, pods):
    with pytest.raises(grpc.RpcError) as e:
        pods('greedy').run('c', 1000 * (len(ONLINE) + 1))
    assert 'not enough cpus' in e.value.details()
