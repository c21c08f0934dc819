# SPDX-License-Identifier: Apache-2.0
"""Controllers behind a real daemon: what reaches the files of the machine, and what status says of it."""
import os
import pathlib
import select
import socket
import time

import pytest

from simnode import BUILD, STATIC, TEST_MODULES, SimError, ctr, eventually

RDT = {'rdt': {'partitions': {'p': {'l3Allocation': '100%', 'classes': {'gold': {'l3Allocation': '80%'}, 'bronze': {'l3Allocation': '20%'}}}}}}
CLASS_KEY = 'rdtclass.resource-policy.nri.io'


def put(node, path, text):
    file = pathlib.Path(node.paths['root']) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def get(node, path):
    return (pathlib.Path(node.paths['root']) / path).read_text()


def add_resctrl(node, groups=('gold', 'bronze')):
    """Two L3 of 20 ways. A folder of files makes no groups of its own: they are there before."""
    root = 'sys/fs/resctrl/'
    put(node, 'proc/mounts', 'resctrl /sys/fs/resctrl resctrl rw 0 0\n')
    for name, text in {'cbm_mask': 'fffff', 'min_cbm_bits': '1', 'num_closids': '16'}.items():
        put(node, root + 'info/L3/' + name, text + '\n')
    for group in ('', *('nri-rp.%s/' % g for g in groups)):
        put(node, root + group + 'schemata', 'L3:0=fffff;1=fffff\n')
        put(node, root + group + 'tasks', '')


def cgroup_of(node, name):
    """Where systemd has a container's cgroup."""
    unit, prefix, ident = node.container(name)['cgroupsPath'].split(':')
    parts = unit.removesuffix('.slice').split('-')
    slices = ['-'.join(parts[:i + 1]) + '.slice' for i in range(len(parts))]
    return 'sys/fs/cgroup/%s/%s-%s.scope' % ('/'.join(slices), prefix, ident)


def add_cgroup(node, name, files):
    put(node, 'sys/fs/cgroup/cgroup.controllers', 'cpu io memory\n')
    for file, text in files.items():
        put(node, '%s/%s' % (cgroup_of(node, name), file), text)


def status_of(node, controller):
    return next(c for c in node.control('Status')['controllers'] if c['name'] == controller)


@pytest.fixture
def make(make_node):
    def make(config, prepare=lambda node: None, **kwargs):
        node = make_node({**STATIC, **config}, start=False, **kwargs)
        prepare(node)
        node.start()
        return node
    return make


# ---- rdt ----

def test_rdt_missing_is_said(make):
    node = make({'controllers': ['rdt'], **RDT})
    assert 'no resctrl file system is mounted' in status_of(node, 'rdt')['error']
    node.create('p', ctr('c', '1', '64Mi'), annotations={CLASS_KEY: 'gold'})


def test_rdt_missing_and_required(make_node):
    node = make_node({**STATIC, 'controllers': {'rdt': 'required'}, **RDT}, start=False)
    node.start(wait=False)
    assert node.exited()['exit'] != 0
    assert 'no resctrl file system is mounted' in node.read_log()


def test_rdt_groups_and_tasks(make):
    node = make({'controllers': ['rdt'], **RDT}, add_resctrl)
    eventually(lambda: 'ffff;1=ffff' in get(node, 'sys/fs/resctrl/nri-rp.gold/schemata'))
    node.create('p', ctr('c', '1', '64Mi'), annotations={CLASS_KEY: 'gold'})
    eventually(lambda: status_of(node, 'rdt')['failed'] == 1)  # this runtime makes no cgroups
    told = node.ctl('explain', 'p/c')['controllers']
    assert [(c['name'], c['result']) for c in told] == [('rdt', 'failed')] and 'cgroup was not found' in told[0]['text']
    add_cgroup(node, 'p/c', {'cgroup.threads': '4711\n'})
    node.config({**STATIC, 'controllers': ['rdt'], **RDT})
    eventually(lambda: status_of(node, 'rdt')['done'] == 1)
    assert status_of(node, 'rdt')['failed'] == 0
    assert get(node, 'sys/fs/resctrl/nri-rp.gold/tasks') == '4711\n'
    # the groups are set up by now, so that the runtime begins a container in its group
    node.create('q', ctr('c', '1', '64Mi'), annotations={CLASS_KEY: 'gold'})
    assert node.container('q/c')['given']['rdt'] == 'nri-rp.gold'


def test_rdt_class_survives_restart(make):
    node = make({'controllers': ['rdt'], **RDT}, add_resctrl)
    node.create('p', ctr('c', '1', '64Mi'), annotations={CLASS_KEY: 'bronze'})
    add_cgroup(node, 'p/c', {'cgroup.threads': '4711\n'})
    node.kill()
    node.start()
    eventually(lambda: get(node, 'sys/fs/resctrl/nri-rp.bronze/tasks') == '4711\n')
    # a class that is gone when the daemon comes back: its group, known to be ours, is tried to be removed
    put(node, 'sys/fs/resctrl/nri-rp.stranger/tasks', '')
    node.check()


def test_rdt_unknown_class_is_refused_when_wanted(make):
    node = make({'controllers': {'rdt': 'optional'}, **RDT}, add_resctrl)
    assert 'unknown RDT class "silver"' in node.reject('p', ctr('c', '1', '64Mi'), annotations={CLASS_KEY: 'silver'})


def waits_for_a_reader(pid):
    """Has a thread of the process begun to open a FIFO that nobody reads? Where the kernel does not say what threads wait for, a second has to do."""
    places = {path.read_text() for path in pathlib.Path('/proc/%d/task' % pid).glob('*/wchan')}
    if places <= {'', '0'}:
        time.sleep(1)
        return True
    return any('wait_for_partner' in place or 'fifo_open' in place for place in places)


def test_stop_does_not_wait_for_resctrl(make):
    """A write that never returns: the daemon ends all the same, nothing of its state is lost, and no module is to blame."""
    def slow(node):
        add_resctrl(node)
        tasks = pathlib.Path(node.paths['root']) / 'sys/fs/resctrl/nri-rp.gold/tasks'
        tasks.unlink()
        os.mkfifo(tasks)

    node = make({'controllers': ['rdt'], **RDT}, slow)
    node.create('p', ctr('c', '2', '64Mi'), annotations={CLASS_KEY: 'gold'})
    add_cgroup(node, 'p/c', {'cgroup.threads': '1\n'})
    node.config({**STATIC, 'controllers': ['rdt'], **RDT})
    eventually(lambda: status_of(node, 'rdt')['pending'] == 1)
    eventually(lambda: waits_for_a_reader(node.status()['pid']))
    before = node.cpus('p/c')
    node.stop()
    assert 'has not ended within' in node.read_log()
    (pathlib.Path(node.paths['root']) / 'sys/fs/resctrl/nri-rp.gold/tasks').unlink()
    put(node, 'sys/fs/resctrl/nri-rp.gold/tasks', '')
    node.start()
    eventually(lambda: status_of(node, 'rdt')['done'] == 1)
    assert node.cpus('p/c') == before and 'died' not in str(node.control('Doctor'))


def test_required_controller_refuses_configuration(make_node):
    hand = {'policy': 'none', 'controllers': {'hand': 'required'}, 'hand': {'start': '95 nothing to control'}}
    node = make_node(hand, start=False, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    node.start(wait=False)
    assert node.exited()['exit'] == 78
    assert 'required controller hand does not start: nothing to control' in node.read_log()


def test_order_of_the_configuration(make):
    """Controllers are asked in the order of rp.conf, whether they came with a start or with a reload."""
    node = make({'controllers': ['memory']})
    for wanted in (['cpu', 'blkio', 'memory'], ['memory', 'cpu'], ['blkio', 'memory', 'cpu']):
        node.config({**STATIC, 'controllers': wanted})
        assert [c['name'] for c in node.control('Status')['controllers']] == wanted


# ---- blkio ----

BLKIO_KEY = 'blockioclass.resource-policy.nri.io'
BLKIO = {'blkio': {'classes': {'slow': [{'weight': 50}, {'devices': ['/dev/sd*'], 'throttleReadBps': '1M'}]}}}


def add_disks(node):
    put(node, 'sys/fs/cgroup/cgroup.controllers', 'cpu io memory\n')
    put(node, 'sys/block/sda/dev', '8:0\n')
    put(node, 'sys/block/sda/queue/scheduler', 'none [bfq]\n')


def test_blkio_throttles(make):
    node = make({'controllers': ['blkio'], **BLKIO}, add_disks)
    node.create('p', ctr('c', '1', '64Mi'), annotations={BLKIO_KEY: 'slow'})
    eventually(lambda: status_of(node, 'blkio')['failed'] == 1)  # this runtime makes no cgroups
    add_cgroup(node, 'p/c', {'io.max': '', 'io.weight': 'default 100\n'})
    node.config({**STATIC, 'controllers': ['blkio'], **BLKIO})
    eventually(lambda: status_of(node, 'blkio')['done'] == 1)
    assert get(node, cgroup_of(node, 'p/c') + '/io.max') == '8:0 rbps=1000000 wbps=max riops=max wiops=max'
    assert get(node, cgroup_of(node, 'p/c') + '/io.weight') == 'default 405'


def test_containers_that_went_unseen_are_forgotten(make):
    """What a controller has done for a container that was removed while the runtime was away is counted no more."""
    node = make({'controllers': ['blkio'], **BLKIO}, add_disks)
    node.create('p', ctr('c', '1', '64Mi'), annotations={BLKIO_KEY: 'slow'})
    node.create('q', ctr('c', '1', '64Mi'), annotations={BLKIO_KEY: 'slow'})
    eventually(lambda: status_of(node, 'blkio')['failed'] == 2)  # this runtime makes no cgroups
    node.runtime_stop()
    node.delete('p')
    node.runtime_start()
    eventually(lambda: status_of(node, 'blkio')['failed'] == 1)


def test_custom_resource_only_forwards(make):
    """control.blockio of a custom resource has no classes: names go to the runtime, whose file has them."""
    node = make({'controllers': ['blkio'], 'control': {'blockio': {'enable': True, 'usePodQoSAsDefaultClass': True}}}, add_disks)
    node.create('p', ctr('c', '1', '64Mi'), annotations={BLKIO_KEY: 'theirs'})
    node.create('q', ctr('c', '1', '64Mi'))
    assert node.container('p/c')['given']['blockio'] == 'theirs'
    assert node.container('q/c')['given']['blockio'] == 'Guaranteed'


# ---- memory ----

MEMORY_KEY = 'class.memory-qos.nri.io'
MEMORY = {'memory': {'classes': [{'name': 'bronze', 'swapLimitRatio': 0.5}], 'unifiedAnnotations': ['memory.low']}}


def test_memory_high_comes_with_the_creation(make):
    node = make({'controllers': ['memory'], **MEMORY}, add_disks)
    created = node.create('p', ctr('c', '1', '64Mi'), annotations={MEMORY_KEY: 'bronze', 'memory.low.memory-qos.nri.io': '4096'})
    assert created[0]['given']['unified'] == {'memory.high': '33554432', 'memory.swap.max': 'max', 'memory.low': '4096'}
    node.allow('controller memory')


def test_memory_class_without_limit_is_refused_when_wanted(make):
    node = make({'controllers': {'memory': 'optional'}, **MEMORY}, add_disks)
    assert 'but the container has no limit' in node.reject('p', ctr('c', '1'), annotations={MEMORY_KEY: 'bronze'})


# ---- cpu ----

def test_cpu_class(make):
    def add_class(node):
        for cpu in range(16):
            for file, text in {'cpuinfo_min_freq': '800000', 'cpuinfo_max_freq': '3800000', 'scaling_min_freq': '800000', 'scaling_max_freq': '3800000'}.items():
                put(node, 'sys/devices/system/cpu/cpu%d/cpufreq/%s' % (cpu, file), text + '\n')

    node = make({'controllers': ['cpu'], 'cpu': {'classes': {'fast': {'minFreq': 3000000}}}}, add_class)
    node.create('p', ctr('c', '2', '64Mi'), annotations={'cpuclass.resource-policy.nri.io': 'fast'})
    cpu = min(node.cpus('p/c'))
    eventually(lambda: get(node, 'sys/devices/system/cpu/cpu%d/cpufreq/scaling_min_freq' % cpu).strip() == '3000000')
    node.delete('p')
    eventually(lambda: get(node, 'sys/devices/system/cpu/cpu%d/cpufreq/scaling_min_freq' % cpu).strip() == '800000')


# ---- figures ----

class Scrape:
    """The node's /metrics, by name with labels."""

    def __init__(self, node):
        self.path = node.paths['root'] + '/metrics.sock'
        self.config = {'listen': 'unix:' + self.path, 'collectInterval': '1s'}

    def __call__(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path)
            s.sendall(b'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
            text = b''.join(iter(lambda: s.recv(65536), b'')).decode()
        return dict(line.rsplit(' ', 1) for line in text.partition('\r\n\r\n')[2].splitlines() if line and line[0] != '#')

    def sum(self, name, *parts):
        return sum(float(v) for k, v in self().items() if k.startswith(name + '{') and all(p in k for p in parts))


PUPPET = {'policy': 'puppet', 'controllers': ['rdt'], 'rdt': {'monitoring': 'containers', **RDT['rdt']}}


@pytest.fixture
def puppet(make_node):
    """A policy that does what annotations say, and resctrl that counts."""
    node = make_node(start=False, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    scrape = Scrape(node)
    node.run('write-config', {**PUPPET, 'metrics': scrape.config})
    add_resctrl(node)
    put(node, 'sys/fs/resctrl/info/L3_MON/num_rmids', '32\n')
    node.start()
    return node, scrape


def add_monitoring(node, name, group, occupancy):
    folder = 'sys/fs/resctrl/%s/mon_groups/nri-rp.%s/' % (group, node.container(name)['id'])
    put(node, folder + 'tasks', '')
    put(node, folder + 'mon_data/mon_L3_00/llc_occupancy', '%d\n' % occupancy)


def test_tasks_and_figures_follow_the_class(puppet):
    """Created without a class, then given one by the policy: tasks move, and so does what is counted for it."""
    node, scrape = puppet
    node.create('p', ctr('c', '1', '64Mi'), annotations={'t/do': 'cpus 1', 't/update': 'text 100 gold'})
    add_cgroup(node, 'p/c', {'cgroup.threads': '4711\n', 'memory.current': '8192\n'})
    assert 'class' not in str(node.ctl('explain', 'p/c')['controllers'])
    eventually(lambda: scrape.sum('nri_rp_container_memory_bytes', 'pod="p"') == 8192)
    assert scrape.sum('nri_rp_container_llc_occupancy_bytes') == 0
    add_monitoring(node, 'p/c', 'nri-rp.gold', 12345)
    node.update('p/c', cpu='2')
    eventually(lambda: get(node, 'sys/fs/resctrl/nri-rp.gold/tasks') == '4711\n')
    eventually(lambda: scrape.sum('nri_rp_container_llc_occupancy_bytes', 'pod="p"') == 12345)
    assert scrape.sum('nri_rdt_l3_llc_occupancy_bytes', 'rdt_class="gold"', node.container('p/c')['id']) == 12345
    assert float(scrape()['nri_rp_collect_containers']) == 1
    eventually(lambda: status_of(node, 'rdt')['done'] == 1)


def test_a_monitoring_group_of_each_pod(make):
    """Its containers share it, and it is there as long as one of them is."""
    def add(node):
        add_resctrl(node)
        put(node, 'sys/fs/resctrl/info/L3_MON/num_rmids', '32\n')
        for group in 'nri-rp.gold/', '':
            put(node, 'sys/fs/resctrl/%smon_groups/nri-rp.podu1/tasks' % group, '')

    node = make({'controllers': ['rdt'], 'rdt': {'monitoring': 'pods', **RDT['rdt']}}, add)
    folder = pathlib.Path(node.paths['root']) / 'sys/fs/resctrl/nri-rp.gold/mon_groups/nri-rp.podu1'
    node.create('p', ctr('a', '1', '64Mi'), ctr('b', '1', '64Mi'), uid='u1', annotations={'rdtclass.resource-policy.nri.io': 'gold'})
    add_cgroup(node, 'p/a', {'cgroup.threads': '4711\n'})
    add_cgroup(node, 'p/b', {'cgroup.threads': '4712\n'})
    eventually(lambda: (folder / 'tasks').read_text() in ('4711\n', '4712\n') and status_of(node, 'rdt')['done'] == 2)
    (folder / 'tasks').unlink()  # as the kernel removes a group with its files
    node.run('exit', ['p/a'])
    eventually(lambda: status_of(node, 'rdt')['pending'] == 0)
    assert folder.exists()
    node.run('exit', ['p/b'])
    eventually(lambda: not folder.exists())


def test_killed_in_the_middle_of_a_class_change(puppet):
    """The daemon dies while it moves tasks: the next one finishes what was decided."""
    node, _ = puppet
    node.create('p', ctr('c', '1', '64Mi'), annotations={'t/do': 'cpus 1', 't/update': 'text 100 gold'})
    add_cgroup(node, 'p/c', {'cgroup.threads': '1\n2\n'})
    add_monitoring(node, 'p/c', 'nri-rp.gold', 0)
    tasks = pathlib.Path(node.paths['root']) / 'sys/fs/resctrl/nri-rp.gold/tasks'
    tasks.unlink()
    os.mkfifo(tasks)
    node.update('p/c', cpu='2')
    eventually(lambda: status_of(node, 'rdt')['pending'] == 1)
    node.kill()
    tasks.unlink()
    tasks.write_text('')
    node.start()
    eventually(lambda: status_of(node, 'rdt')['done'] == 1)
    assert tasks.read_text() == '2\n'  # of a plain file the last write is left
    assert node.cpus('p/c') == {1}
    node.allow('died')


def test_pressure_moves_a_container(puppet):
    """Throttled in all of three readings: people are told, and the policy gives it more."""
    node, _ = puppet
    node.create('p', ctr('c', '1', '64Mi'), annotations={'t/do': 'cpus 1', 't/pressure': 'cpus 1-2'})
    periods = 0

    def throttled():
        nonlocal periods
        periods += 100
        add_cgroup(node, 'p/c', {'cpu.stat.new': 'usage_usec 1\nnr_periods %d\nnr_throttled %d\n' % (periods, periods)})
        folder = pathlib.Path(node.paths['root']) / cgroup_of(node, 'p/c')
        (folder / 'cpu.stat.new').rename(folder / 'cpu.stat')
        return node.cpus('p/c') == {1, 2}

    eventually(throttled, 60)
    assert 'p/c: lacks CPU time above its limit' in str(node.control('Events'))


def test_rebalance_by_hand(make_node):
    node = make_node({'policy': 'puppet', 'rebalanceMoves': 1, 'puppet': {'rebalance': 'on a; cpus 5; on b; cpus 6'}},
                     module_dirs=[TEST_MODULES, BUILD / 'modules'])
    node.create('p', ctr('a', '1', '64Mi'), ctr('b', '1', '64Mi'), annotations={'t/do': 'cpus 1'})
    with pytest.raises(SimError, match='it would move 2 containers, at most 1 are allowed'):
        node.ctl('rebalance')
    assert node.cpus('p/a') == node.cpus('p/b') == {1}
    assert node.ctl('rebalance', '2') == {'policy': 'puppet', 'moved': 2}
    eventually(lambda: node.cpus('p/a') == {5} and node.cpus('p/b') == {6})


# ---- two who ask for one thing ----

def test_what_two_ask_for(make_node):
    """Mounts, devices and names of devices reach the runtime; equal wishes are one, and different ones name both."""
    node = make_node({'policy': 'puppet', 'controllers': {'hand': 'required'}, 'hand': {'env': 'left'}},
                     module_dirs=[TEST_MODULES, BUILD / 'modules'])
    wishes = 'cpus 1; mount /srv /mnt rbind,rslave; device /dev/x c 195 0; cdi x.org/gpu=0; pair 200 HAND '
    node.create('p', ctr('c', '1', '64Mi'), annotations={'t/do': wishes + 'left'})
    given = node.container('p/c')['given']
    assert given['env'] == {'HAND': 'left'}
    assert given['cdi'] == {'x.org/gpu=0': ''} and given['devices'] == {'/dev/x': 'c 195:0'}
    assert given['mounts'] == [{'source': '/srv', 'destination': '/mnt', 'type': 'bind', 'options': 'rbind,rslave,rw'}]
    with pytest.raises(SimError, match='environment variable HAND: puppet sets it to "right" and hand to "left"'):
        node.create('q', ctr('c', '1', '64Mi'), annotations={'t/do': wishes + 'right'})
    assert not node.control('Status').get('problems')


# ---- what others write ----

def test_cpus_that_somebody_else_rewrites(make_node):
    """Noticed without looking, put back through the runtime, and the kubelet's CPU manager is named."""
    node = make_node({**STATIC})
    node.create('p', ctr('c', '2', '64Mi'))
    cpus = node.container('p/c')['cpus']
    add_cgroup(node, 'p/c', {'cpuset.cpus': cpus + '\n', 'cpuset.mems': '0-3\n'})
    node.runtime_restart()
    eventually(lambda: 'the 1 watched cgroup' in str(node.control('Doctor')))
    put(node, 'var/lib/kubelet/cpu_manager_state', '{"policyName": "static", "defaultCpuSet": "0-15"}')
    node.updates()
    file = pathlib.Path(node.paths['root']) / cgroup_of(node, 'p/c') / 'cpuset.cpus'
    file.write_text('0-15\n')
    node.log('has CPUs 0-15 instead of %s; sending its values to the runtime again; possibly changed by the kubelet' % cpus, within='30s')
    eventually(lambda: [u['cpus'] for u in node.updates()] == [cpus])
    told = [d for d in node.ctl('doctor', check=False) if d['check'] == 'drift']
    assert [d['verdict'] for d in told] == ['warning'] and 'default/p/c' in told[0]['text'] and 'cpuManagerPolicy: none' in told[0]['hint']
