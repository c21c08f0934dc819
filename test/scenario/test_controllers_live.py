# SPDX-License-Identifier: Apache-2.0
"""All controllers beside each policy, switched off and on, dropped and taken back by reloads: containers keep what they have, get what they are
to have, and what one controller does is none of the others' matters."""
import itertools

import pytest

from simnode import BUILD, TEST_MODULES, ctr, eventually

from test_controllers import (BLKIO, BLKIO_KEY, CLASS_KEY, MEMORY, MEMORY_KEY, add_cgroup, add_disks, add_resctrl, cgroup_of, get, put,
                              status_of)

CPU = {'cpu': {'cpuClasses': [{'name': 'fast', 'minFreq': '3GHz'}]}}
# A class for each pod: a file of a group's tasks keeps what was written last.
GROUPS = ['k%d' % i for i in range(10)]
RDT = {'rdt': {'partitions': {'p': {'l3Allocation': '100%', 'classes': {group: {} for group in GROUPS}}}}}
SECTIONS = {**RDT, **BLKIO, **MEMORY, **CPU}
NAMES = ['rdt', 'blkio', 'memory', 'cpu']
CLASSES = {BLKIO_KEY: 'slow', MEMORY_KEY: 'bronze', 'cpuclass.resource-policy.nri.io': 'fast'}
RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
POLICIES = {'static': {'policy': 'static', 'static': RESERVED},
            'topology-aware': {'policy': 'topology-aware', 'topology-aware': RESERVED},
            'balloons': {'policy': 'balloons', 'balloons': {**RESERVED, 'balloonTypes': [{'name': 't', 'namespaces': ['*'], 'preferNewBalloons': True}]}},
            'template': {'policy': 'template', 'template': {'reservedResources': {'cpu': 'cpuset:0-1'}}}}


def prepare(node):
    add_resctrl(node, GROUPS)
    add_disks(node)
    for cpu in range(16):
        for file, value in {'cpuinfo_min_freq': 800000, 'cpuinfo_max_freq': 3800000, 'scaling_min_freq': 800000, 'scaling_max_freq': 3800000}.items():
            put(node, 'sys/devices/system/cpu/cpu%d/cpufreq/%s' % (cpu, file), '%d\n' % value)


def config(policy, controllers=NAMES, off=()):
    """A configuration with these controllers, some of which are switched off."""
    sections = {name: {**SECTIONS[name], 'enable': name not in off} for name in NAMES}
    return {**POLICIES[policy], 'controllers': list(controllers), **sections}


def fast(node):
    """The CPUs that have the class's frequency."""
    return {cpu for cpu in range(16) if get(node, 'sys/devices/system/cpu/cpu%d/cpufreq/scaling_min_freq' % cpu).strip() == '3000000'}


def grouped(node):
    """Tasks by group, of those with any."""
    return {group: tid for group in GROUPS if (tid := get(node, 'sys/fs/resctrl/nri-rp.%s/tasks' % group).strip())}


def weight(node, name):
    return get(node, cgroup_of(node, name) + '/io.weight').strip()


def high(node, name):
    return get(node, cgroup_of(node, name) + '/memory.high').strip()


class Pods:
    """Pods with all four classes, whose cgroups come with them."""
    def __init__(self, node):
        self.node, self.numbers, self.names = node, itertools.count(), {}

    def add(self, pod):
        number = next(self.numbers)
        self.node.create(pod, ctr('c', '2', '64Mi'), annotations={**CLASSES, CLASS_KEY: GROUPS[number]})
        name, tid = pod + '/c', str(4711 + number)
        add_cgroup(self.node, name, {'cgroup.threads': tid + '\n', 'io.max': '', 'io.weight': 'default 100\n', 'memory.high': 'max\n',
                                     'memory.swap.max': '0\n'})
        self.names[name] = (GROUPS[number], tid)
        return name

    def cpus(self):
        return set().union(*(self.node.cpus(name) for name in self.names))

    def right(self, controllers=NAMES):
        """All of them have what these controllers give."""
        return (('rdt' not in controllers or set(self.names.values()) <= set(grouped(self.node).items()))
                and ('blkio' not in controllers or {weight(self.node, name) for name in self.names} == {'default 405'})
                and ('memory' not in controllers or {high(self.node, name) for name in self.names} == {'33554432'})
                and ('cpu' not in controllers or fast(self.node) == self.cpus()))


@pytest.fixture
def live(make_node):
    def make(policy, **kwargs):
        node = make_node(config(policy, **kwargs), start=False, module_dirs=[BUILD / 'modules', TEST_MODULES])
        prepare(node)
        node.start()
        node.allow('cgroup')  # containers are there before their cgroups: this runtime makes none
        return node, Pods(node)
    return make


def set_config(node, *args, **kwargs):
    node.config(config(*args, **kwargs))


@pytest.mark.parametrize('policy', POLICIES)
@pytest.mark.parametrize('name', NAMES)
def test_off_and_on(live, policy, name):
    """One controller is off: the rest go on, for those that are there and for new ones. On again it catches up with all of them."""
    node, pods = live(policy)
    others = [n for n in NAMES if n != name]
    pods.add('a')
    set_config(node, policy)
    eventually(pods.right)
    places = node.places()
    set_config(node, policy, off=[name])
    assert node.places() == places
    assert all(c['running'] for c in node.control('Status')['controllers'])
    if name == 'cpu':
        eventually(lambda: not fast(node))
    pods.add('b')
    set_config(node, policy, off=[name])
    eventually(lambda: pods.right(others))
    # Nothing of the one that is off, and what was given before it was stays, but for frequencies.
    given = {'rdt': pods.names['b/c'] in grouped(node).items(), 'blkio': weight(node, 'b/c') == 'default 405',
             'memory': high(node, 'b/c') == '33554432', 'cpu': bool(fast(node))}
    assert given == {n: n != name for n in NAMES}
    assert pods.names['a/c'] in grouped(node).items() and weight(node, 'a/c') == 'default 405' and high(node, 'a/c') == '33554432'
    set_config(node, policy)
    eventually(pods.right)
    eventually(lambda: {(c['name'], c['done'], c['failed']) for c in node.control('Status')['controllers']} == {(n, 2, 0) for n in NAMES})


@pytest.mark.parametrize('policy', POLICIES)
def test_dropped_and_taken_back(live, policy):
    """All of them at once; a container that has come meanwhile gets its classes later, one that has gone leaves nothing behind."""
    node, pods = live(policy)
    pods.add('a')
    set_config(node, policy)
    eventually(pods.right)
    set_config(node, policy, controllers=[])
    assert node.control('Status')['controllers'] == []
    eventually(lambda: not fast(node))
    pods.add('b')
    node.delete('a')
    del pods.names['a/c']
    node.settle()
    assert pods.names['b/c'] not in grouped(node).items() and weight(node, 'b/c') == 'default 100' and not fast(node)
    set_config(node, policy)
    eventually(pods.right)
    eventually(lambda: [(c['name'], c['done']) for c in node.control('Status')['controllers']] == [(n, 1) for n in NAMES])


def test_switches_of_the_policy(live):
    """Classes stay with their containers over all policies; frequencies follow them to other CPUs."""
    node, pods = live('static')
    pods.add('a')
    for policy in [*POLICIES, 'static']:
        set_config(node, policy)
        eventually(pods.right)
        pods.add('in-' + policy if 'in-%s/c' % policy not in pods.names else 'last')
        set_config(node, policy)
        eventually(pods.right)
        assert status_of(node, 'rdt')['failed'] == status_of(node, 'blkio')['failed'] == status_of(node, 'memory')['failed'] == 0


@pytest.mark.parametrize('policy', POLICIES)
def test_refused_with_all_of_them(live, policy):
    """A reload that drops three and brings one that is required and does not start: the three go on as if nothing had been."""
    node, pods = live(policy)
    pods.add('a')
    set_config(node, policy)
    eventually(pods.right)
    places = node.places()
    for _ in range(2):
        bad = {**config(policy, off=['cpu']), 'controllers': {'memory': 'relaxed', 'cpu': 'relaxed', 'hand': 'required'}, 'hand': {'start': '16 in use'}}
        assert 'required controller hand does not start: in use' in node.badconfig(bad)
        assert [(c['name'], c['running']) for c in node.control('Status')['controllers']] == [(n, True) for n in NAMES]
        assert node.places() == places
        eventually(pods.right)
    # The configuration of before, given back, changes nothing; new containers have their classes.
    pods.add('b')
    set_config(node, policy)
    eventually(pods.right)
