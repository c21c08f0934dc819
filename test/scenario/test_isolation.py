# SPDX-License-Identifier: Apache-2.0
"""The section isolation of policies: each key on and off, and that nothing is left after a release, a switch, a stop and a kill."""
import contextlib
import pathlib

import pytest

from simnode import SimError, cpuset, ctr, eventually

TYPES = [{'name': 'own', 'namespaces': ['default'], 'preferNewBalloons': True}]
RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
POLICIES = {
    'static': RESERVED,
    'cpuset': RESERVED,
    'topology-aware': RESERVED,
    'balloons': {**RESERVED, 'balloonTypes': TYPES},
}
CGROUP, WORKQUEUE, IRQ = 'sys/fs/cgroup/', 'sys/devices/virtual/workqueue/cpumask', 'proc/irq/24/smp_affinity_list'
SLICES = [CGROUP + s + '/cpuset.cpus' for s in ('system.slice', 'user.slice')]
PODS = CGROUP + 'kubepods.slice/'
MACHINE = {
    CGROUP + 'cgroup.controllers': 'cpuset cpu memory\n', CGROUP + 'cpuset.cpus.isolated': '\n',
    SLICES[0]: '\n', SLICES[1]: '1-15\n', CGROUP + 'system.slice/cgroup.procs': '1\n', CGROUP + 'user.slice/cgroup.procs': '2\n',
    CGROUP + 'other.slice/cpuset.cpus': '\n', CGROUP + 'other.slice/cgroup.procs': '3\n',
    PODS + 'cpuset.cpus.exclusive': '\n', PODS + 'kubepods-podu1.slice/cpuset.cpus.exclusive': '\n',
    PODS + 'kubepods-podu2.slice/cpuset.cpus.exclusive': '\n',
    PODS + 'kubepods-besteffort.slice/kubepods-besteffort-podb1.slice/cpu.idle': '0\n',
    PODS + 'kubepods-besteffort.slice/kubepods-besteffort-podb1.slice/cpu.weight': '1\n',
    PODS + 'kubepods-podu1.slice/cpu.idle': '0\n',
    WORKQUEUE: 'ffff\n', IRQ: '0-15\n', 'proc/interrupts': '     ' + '    '.join('CPU%d' % i for i in range(16)) + '\n 24: ' + '0 ' * 16 + ' PCI-MSI eth0\n',
}
OF_CONTAINER = {'cpuset.cpus.exclusive': '\n', 'cpuset.cpus.partition': 'member\n', 'cgroup.procs': '{pid}\n'}


class Isolated:
    def __init__(self, make_node, policy, keys=None, **head):
        self.policy = policy
        self.files = MACHINE
        self.node = make_node(self.config(keys), machine='n4c16', files=self.files, cgroupFiles=OF_CONTAINER, **head)

    def config(self, keys):
        section = {**POLICIES[self.policy], **({'isolation': keys} if keys else {})}
        return {'policy': self.policy, self.policy: section}

    def reload(self, keys):
        self.node.config(self.config(keys))

    def read(self, path):
        return (pathlib.Path(self.node.paths['root']) / path).read_text().strip()

    def changed(self):
        """Files of the machine that are not as they were."""
        return {path: self.read(path) for path, text in self.files.items() if self.read(path) != text.strip()}

    def becomes(self, files):
        try:
            eventually(lambda: self.changed() == files, 5)
        except AssertionError:
            assert self.changed() == files

    def container(self, name):
        """Its folder below the root."""
        return next(str(p.relative_to(self.node.paths['root'])) for p in (pathlib.Path(self.node.paths['root']) / PODS).rglob('*')
                    if p.is_dir() and self.node.container(name)['id'] in p.name)

    def own(self):
        self.node.create('p', ctr('c', '2', '64Mi'), uid='u1')
        cpus = sorted(self.node.cpus('p/c'))
        assert len(cpus) == 2 and 0 not in cpus
        return cpus


def text_of(cpus):
    runs = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ','.join('%d-%d' % tuple(r) if r[0] != r[1] else str(r[0]) for r in runs)


def without(cpus, of=range(16)):
    return text_of(set(of) - set(cpus))


ENDS = ['release', 'key', 'switch', 'stop', 'kill', 'kill and switch']


NONE = {'policy': 'none'}
# none leaves what is decided for containers as it is
OTHER = {p: {'policy': o, o: POLICIES[o]} for p, o in zip(POLICIES, list(POLICIES)[1:] + list(POLICIES)[:1])}


def end(i, how, keys, other=NONE):  # pylint: disable=dangerous-default-value
    node = i.node
    if how == 'release':
        node.run('delete', ['p'])
    elif how == 'key':
        i.reload({})
    elif how == 'switch':
        node.config(other)
    elif how == 'stop':
        node.stop()
    elif how == 'kill':
        node.kill()
        node.run('write-config', i.config({}))
        node.start()
    else:
        node.kill()
        node.run('write-config', other)
        node.start()


@pytest.fixture
def isolated(make_node):
    def make(policy, keys=None, **head):
        return Isolated(make_node, policy, keys, **head)
    return make


@pytest.mark.parametrize('how', ENDS)
@pytest.mark.parametrize('policy', POLICIES)
def test_the_host_and_the_kernel_keep_off(isolated, policy, how):
    keys = {'hostTasks': 'away', 'kernelWork': 'away'}
    i = isolated(policy, keys)
    assert i.changed() == {}
    cpus = i.own()
    mask = '%08x' % (0xffff & ~sum(1 << c for c in cpus))
    i.becomes({SLICES[0]: without(cpus), SLICES[1]: without(cpus, range(1, 16)), WORKQUEUE: mask, IRQ: without(cpus)})
    end(i, how, keys)
    i.becomes({})


@pytest.mark.parametrize('how', ENDS)
@pytest.mark.parametrize('policy', POLICIES)
def test_a_partition_of_its_own(isolated, policy, how):
    keys = {'partition': 'isolated'}
    i = isolated(policy, keys)
    cpus = i.own()
    folder = i.container('p/c')
    eventually(lambda: i.read(folder + '/cpuset.cpus.partition') == 'isolated')
    assert i.read(folder + '/cpuset.cpus.exclusive') == text_of(cpus)
    i.becomes({PODS + 'cpuset.cpus.exclusive': text_of(cpus), PODS + 'kubepods-podu1.slice/cpuset.cpus.exclusive': text_of(cpus)})
    i.node.create('q', ctr('c', '1', '64Mi'), uid='u2')
    more = i.node.cpus('q/c')
    i.becomes({PODS + 'cpuset.cpus.exclusive': text_of(set(cpus) | more), PODS + 'kubepods-podu1.slice/cpuset.cpus.exclusive': text_of(cpus),
               PODS + 'kubepods-podu2.slice/cpuset.cpus.exclusive': text_of(more)})
    i.node.run('delete', ['q'])
    i.becomes({PODS + 'cpuset.cpus.exclusive': text_of(cpus), PODS + 'kubepods-podu1.slice/cpuset.cpus.exclusive': text_of(cpus)})
    end(i, how, keys)
    i.becomes({})
    if how != 'release':
        eventually(lambda: i.read(folder + '/cpuset.cpus.partition') == 'member' and i.read(folder + '/cpuset.cpus.exclusive') == '')


@pytest.mark.parametrize('how', ENDS)
@pytest.mark.parametrize('policy', POLICIES)
def test_no_quota_for_containers_that_own_their_cpus(isolated, policy, how):
    keys = {'quota': False}
    i = isolated(policy, keys)
    i.own()
    i.node.create('s', ctr('c', '500m/700m', '64Mi'))

    def quota(name):
        return i.node.container(name)['quota']
    assert quota('p/c') == -1 and quota('s/c') == 70000
    if how == 'release' or how == 'stop':
        return
    end(i, how, keys, OTHER[i.policy])
    eventually(lambda: quota('p/c') == 200000)
    assert quota('s/c') == 70000
    if how == 'key':
        i.reload(keys)
        eventually(lambda: quota('p/c') == -1)


@pytest.mark.parametrize('how', ENDS)
@pytest.mark.parametrize('policy', POLICIES)
def test_best_effort_pods_run_when_idle(isolated, policy, how):
    keys = {'bestEffort': 'idle'}
    i = isolated(policy, keys)
    i.own()
    i.node.create('b', ctr('c'), uid='b1')
    pod = PODS + 'kubepods-besteffort.slice/kubepods-besteffort-podb1.slice/'
    i.becomes({pod + 'cpu.idle': '1'})
    (pathlib.Path(i.node.paths['root']) / pod / 'cpu.weight').write_text('0\n')  # as the kernel does
    if how == 'release':
        i.node.run('delete', ['b'])
    end(i, how, keys)
    i.becomes({})


def cores_of(node, cpus):
    """The CPUs and the other threads of their cores."""
    path = pathlib.Path(node.paths['root']) / 'sys/devices/system/cpu'
    return {c for cpu in cpus for c in cpuset((path / ('cpu%d/topology/thread_siblings_list' % cpu)).read_text())}


@pytest.mark.parametrize('how', ENDS)
@pytest.mark.parametrize('policy', POLICIES)
def test_siblings_of_exclusive_cpus(isolated, policy, how):
    """Whole cores, from the first container to a full node, whose reserved core no container owns."""
    i = isolated(policy, {'siblings': 'own'})
    node, owners = i.node, ['p', 'q', 'r']
    node.create('s', ctr('c', '500m', '64Mi'))
    node.create('p', ctr('c', '1', '64Mi'), uid='u1')
    node.create('q', ctr('c', '3', '64Mi'), uid='u2')
    node.create('r', ctr('c', '1', '64Mi'), uid='u3')
    assert [len(node.cpus(p + '/c')) for p in owners] == [2, 4, 2]
    for p in owners:
        own = node.cpus(p + '/c')
        assert cores_of(node, own) == own
        assert all(not own & node.cpus(other + '/c') for other in [*owners, 's'] if other != p)
    assert node.container('p/c')['quota'] in (None, 100000)
    node.run('delete', ['q', 'r'])
    before = node.cpus('p/c')
    node.restart()
    assert node.cpus('p/c') == before
    end(i, how, {}, OTHER[policy])
    if how in ('key', 'switch', 'kill', 'kill and switch'):
        eventually(lambda: len(node.cpus('p/c')) == 1)


@pytest.mark.parametrize('policy', POLICIES)
def test_siblings_are_set_apart_by_a_reload(isolated, policy):
    i = isolated(policy)
    names = ['p%d' % n for n in range(4)]
    for name in names:
        i.node.create(name, ctr('c', '1', '64Mi'))
    i.reload({'siblings': 'own'})

    def apart():
        owned = [i.node.cpus(name + '/c') for name in names]
        return [len(o) for o in owned] == [2] * 4 and all(cores_of(i.node, o) == o for o in owned) and len(set().union(*owned)) == 8
    eventually(apart)


@pytest.mark.parametrize('policy', POLICIES)
def test_siblings_until_no_core_is_left(isolated, policy):
    i = isolated(policy, {'siblings': 'own'})
    i.node.create('s', ctr('c', '500m', '64Mi'), namespace='kube-system')
    for n in range(6):
        i.node.create('p%d' % n, ctr('c', '1', '64Mi'))
    with contextlib.suppress(SimError):
        i.node.create('p6', ctr('c', '1', '64Mi'))
    # A balloon of one container has capacity for a second one.
    (i.node.reject if policy != 'balloons' else i.node.create)('p7', ctr('c', '1', '64Mi'))
    owned = [i.node.cpus(c) for c in i.node.containers() if c.startswith('p')]
    assert len(owned) >= 6 and all(len(o) == 2 and cores_of(i.node, o) == o and not o & {0, 1} for o in owned)


def test_named_parts_of_cores_are_refused(isolated):
    i = isolated('cpuset', {'siblings': 'own'})
    why = i.node.reject('p', ctr('c', '100m', '64Mi'), annotations={'weka.io/cores-ids': '4'})
    assert 'names parts of cores' in why
    i.node.create('q', ctr('c', '100m', '64Mi'), annotations={'weka.io/cores-ids': '4,5'})
    assert i.node.cpus('q/c') == {4, 5}


@pytest.mark.parametrize('policy', POLICIES)
def test_with_all_keys_off_nothing_is_written(isolated, policy):
    i = isolated(policy)
    i.own()
    assert i.node.container('p/c')['quota'] in (None, 200000)
    i.node.run('delete', ['p'])
    assert i.changed() == {}


@pytest.mark.parametrize('keys, lacks, why', [
    ({'partition': 'isolated'}, CGROUP + 'cpuset.cpus.isolated', 'Linux 6.8 or later is needed'),
    ({'hostTasks': 'away'}, CGROUP + 'cgroup.controllers', 'isolation.hostTasks: needs cgroup v2'),
    ({'bestEffort': 'idle'}, CGROUP + 'cgroup.controllers', 'isolation.bestEffort: needs cgroup v2'),
    ({'hostTasks': 'away', 'hostSlices': ['kubepods.slice']}, None, 'is no cgroup of the host'),
    ({'hostTasks': 'away', 'hostSlices': ['a/b']}, None, 'is no cgroup of the host'),
])
def test_what_is_refused(isolated, keys, lacks, why):
    i = isolated('cpuset')
    if lacks:
        (pathlib.Path(i.node.paths['root']) / lacks).unlink()
    assert why in i.node.badconfig(i.config(keys))


def test_slices_that_are_named(isolated):
    i = isolated('static', {'hostTasks': 'away', 'hostSlices': ['other.slice', 'none.slice']})
    cpus = i.own()
    i.becomes({CGROUP + 'other.slice/cpuset.cpus': without(cpus)})


def test_what_another_program_has_changed_stays(isolated):
    i = isolated('static', {'hostTasks': 'away'})
    cpus = i.own()
    i.becomes({SLICES[0]: without(cpus), SLICES[1]: without(cpus, range(1, 16))})
    (pathlib.Path(i.node.paths['root']) / SLICES[0]).write_text('0\n')
    i.node.run('delete', ['p'])
    i.becomes({SLICES[0]: '0'})


def test_doctor_says_that_partitions_need_a_capability(isolated):
    i = isolated('static', {'partition': 'isolated'})
    found, = [f for f in i.node.ctl('doctor', check=False) if f['check'] == 'isolation']
    assert found['verdict'] == 'warning' and 'partition.conf' in found['hint'] and 'CAP_SYS_ADMIN' in found['text']


def test_doctor_says_what_the_service_may_not_write(isolated):
    """As under a unit without its part interrupts.conf: the file is read-only."""
    i = isolated('static', {'kernelWork': 'away'})
    assert any(f['check'] == 'isolation' and 'kept off' in f['text'] for f in i.node.ctl('doctor', check=False))
    (pathlib.Path(i.node.paths['root']) / WORKQUEUE).unlink()
    found, = [f for f in i.node.ctl('doctor', check=False) if f['check'] == 'isolation']
    assert found['verdict'] == 'warning' and 'interrupts.conf' in found['hint'] and WORKQUEUE in found['text']
    i.own()
    i.node.log('isolation: /%s: reading it' % WORKQUEUE)
