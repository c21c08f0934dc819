# SPDX-License-Identifier: Apache-2.0
"""
Accepted stays accepted: whatever configuration is active, the next start with the same containers accepts it, and so does a reload, also while CPUs
are offline or after they came back. ACCEPTED_STEPS is the length of each random walk, ACCEPTED_SEEDS their number.
"""
import json
import os
import pathlib
import random

import pytest
import yaml

from simnode import SimError, ctr

STEPS, SEEDS = int(os.environ.get('ACCEPTED_STEPS', 14)), int(os.environ.get('ACCEPTED_SEEDS', 1))
FIRST = int(os.environ.get('ACCEPTED_FIRST', 0))
CPUS = 16
LISTS = ['cpuset:0', 'cpuset:0-1', 'cpuset:0,5', 'cpuset:14-15', 'cpuset:4-7']
QUANTITIES = ['1', '2', '1500m', '6', '10']
KATALYST = 'katalyst.kubewharf.io/'


def bounds(rng, listed=0.6):
    found = {'reservedResources': {'cpu': rng.choice(LISTS if rng.random() < listed else QUANTITIES)}}
    if rng.random() < 0.3:
        found['availableResources'] = {'cpu': rng.choice(['cpuset:0-11', 'cpuset:4-15', 'cpuset:0-7'])}
    return found


def truth(rng, *names):
    return {name: rng.random() < 0.5 for name in names}


def static(rng):
    options = rng.sample(['full-pcpus-only', 'strict-cpu-reservation', 'distribute-cpus-across-numa', 'align-by-socket'], rng.randint(0, 2))
    return {**bounds(rng), 'cpuManagerPolicyOptions': {name: 'true' for name in options}, **truth(rng, 'pinMemory', 'disableCPUQuota'),
            'topologyManagerPolicy': rng.choice(['none', 'best-effort', 'restricted', 'single-numa-node'])}


def topology_aware(rng):
    return {**bounds(rng), **truth(rng, 'pinCPU', 'pinMemory', 'preferIsolatedCPUs', 'preferSharedCPUs')}


def balloons(rng):
    types = [{'name': 'own', 'namespaces': ['exact'], 'preferNewBalloons': True, 'minCPUs': rng.choice([0, 1, 2]), 'maxCPUs': rng.choice([4, 8])},
             {'name': 'few', 'namespaces': ['parts'], 'minBalloons': rng.choice([0, 1, 3]), 'minCPUs': rng.choice([1, 2, 3]),
              'maxBalloons': rng.choice([3, 4])}]
    return {**bounds(rng), **truth(rng, 'pinCPU', 'pinMemory'), 'balloonTypes': types[:rng.randint(0, 2)]}


def static_pools(rng):
    size, first = rng.choice([1, 2]), rng.choice([2, 4])
    lists = [{'cpuset': str(i) if size == 1 else '%d-%d' % (i, i + 1)} for i in range(first, first + 6, size)]
    return {'pools': {'exclusive': {'exclusive': True, 'cpuLists': lists},
                      'shared': {'cpuLists': [{'cpuset': rng.choice(['10-13', '10-11'])}, {'cpuset': '14-15'}]}, 'infra': {'cpuLists': [{'cpuset': '0'}]}}}


def podpools(rng):
    return {**bounds(rng), **truth(rng, 'pinCPU'), 'pools': [
        {'name': 'pool', 'cpu': rng.choice([1, 2]), 'maxPods': rng.choice([1, 3]), 'instances': rng.choice(['1', '2', '4 CPUs', '50 %'])},
        {'name': 'wide', 'cpu': rng.choice([2, 4]), 'fillOrder': 'Packed'}][:rng.randint(0, 2)]}


def dynamic_pools(rng):
    return {**bounds(rng), **truth(rng, 'pinCPU'),
            'dynamicPoolTypes': [{'name': 'pool', 'namespaces': ['exact']}, {'name': 'wide', 'namespaces': ['parts']}][:rng.randint(0, 2)]}


def by_cpuset(rng):
    return {**bounds(rng), **truth(rng, 'numaAware', 'pinMemory'), 'minSharedCPUs': rng.choice([1, 2, 4])}


def qos(rng):
    reserved = rng.choice([{}, {'reservedCPUs': '0'}, {'reservedCPUs': '0-1,15'}, {'reservedCPUCount': 1}, {'reservedCPUCount': 3, 'reserveFromEnd': True}])
    return {**reserved, **truth(rng, 'pinCPU', 'pinMemory', 'enableReclaim', 'allowSharedOverlapReclaimed', 'nonBindingMemoryCheck'),
            'rampUpSeconds': rng.choice([0, 3600]), 'topologyPolicy': rng.choice(['none', 'best-effort', 'restricted', 'single-numa-node'])}


POLICIES = {'static': static, 'static-plus': bounds, 'static-pools': static_pools, 'topology-aware': topology_aware, 'balloons': balloons,
            'podpools': podpools, 'dynamic-pools': dynamic_pools, 'cpuset': by_cpuset, 'qos': qos,
            'template': lambda rng: {**bounds(rng), **truth(rng, 'pinCPU')}}


def annotations(rng):
    found = {}
    if rng.random() < 0.5:
        level = rng.choice(['dedicated_cores', 'shared_cores', 'reclaimed_cores', 'system_cores'])
        found = {KATALYST + 'qos_level': level, KATALYST + 'memory_enhancement': json.dumps({'numa_binding': rng.choice(['true', 'false'])})}
    if rng.random() < 0.3:
        found['pool.podpools.resource-policy.nri.io'] = rng.choice(['pool', 'wide'])
        found['dynamic-pool.dynamic-pools.resource-policy.nri.io'] = rng.choice(['pool', 'wide'])
    if rng.random() < 0.15:
        first = rng.randrange(CPUS - 1)
        found['weka.io/cores-ids'] = '%d,%d' % (first, first + 1)
    return found


class Walk:
    def __init__(self, make_node, seed, policies):
        self.rng, self.policies, self.n, self.pods, self.trail = random.Random(seed), policies, 0, [], []
        self.away = set()
        config = self.choose()
        while True:  # until one suits the whole machine
            self.node = make_node(config, start=False)
            self.node.allow('.*')
            try:
                self.node.start()
                break
            except SimError:
                self.node.abandon()
                config = self.choose()
        self.active = config
        self.say('start', config)

    def say(self, *what):
        self.trail.append(' '.join(map(str, what)))

    def choose(self):
        policy = self.rng.choice(self.policies)
        return {'policy': policy, policy: POLICIES[policy](self.rng), 'resetOnSwitch': self.rng.random() < 0.2, 'metrics': {'listen': ''}}

    # ---- steps ----

    def create(self):
        name, rng = 'p%d' % self.n, self.rng
        amounts = rng.choice([('1', '64Mi'), ('2', '64Mi'), ('3', '64Mi'), ('500m/1', None), ('1500m/3', '64Mi'), ('250m', '64Mi'), (None, None)])
        more = {'env': {'STP_POOL': rng.choice(['exclusive', 'shared', 'nosuch']), 'CMK_NUM_CORES': '1'}} if rng.random() < 0.3 else {}
        where = rng.choice(['default', 'exact', 'parts', 'kube-system'])
        try:
            self.node.create(name, ctr('c', *amounts, **more), namespace=where, annotations=annotations(rng))
            self.pods.append(name if where == 'default' else where + '/' + name)
            self.say('create', name, where, amounts)
        except SimError as e:
            self.say('create refused', name, amounts, str(e)[:120])

    def delete(self):
        if self.pods:
            pod = self.pods.pop(self.rng.randrange(len(self.pods)))
            self.say('delete', pod)
            self.node.delete(pod)

    def hotplug(self):
        """A few go or come back; the daemon is told at once, or sees it later."""
        goal = set(self.rng.sample(range(CPUS), self.rng.choice([0, 0, 1, 1, 2, 4, 9])))
        self.say('offline', sorted(goal))
        back, gone = self.away - goal, goal - self.away
        if back:
            self.node.online(','.join(map(str, sorted(back))))
        if gone:
            self.node.offline(','.join(map(str, sorted(gone))))
        self.away = goal

    def hotplug_and_tell(self):
        self.hotplug()
        self.node.signal('HUP')
        self.node.settle(50)

    def reload(self):
        config = self.choose() if self.rng.random() < 0.8 else self.active
        self.write(config)
        done = self.node.ctl('reload', check=False)
        good = bool(done) and done.get('outcome') == 'in force'
        self.say('reload', config, done and done.get('outcome'), done and done.get('error'))
        assert good or config is not self.active, self.trail
        if good:
            self.active = config
        else:
            self.write(self.active)

    def restart(self):
        self.node.settle(50)
        if self.rng.random() < 0.5:
            self.node.kill()
        else:
            self.node.stop()
        if self.rng.random() < 0.3:
            self.hotplug()
        self.node.start()
        self.node.settle(50)
        self.say('restarted')
        self.verify()

    # ---- what has to be so ----

    def write(self, config):
        pathlib.Path(self.node.paths['config']).write_text(yaml.safe_dump(config))

    def verify(self):
        status = self.node.ctl('status', check=False)
        assert status['policy']['name'] == self.active['policy'] and not status['policy']['safe_mode'], (status['reasons'], self.trail)

    def step(self):
        self.n += 1
        self.rng.choice([self.create] * 5 + [self.delete, self.reload, self.reload, self.hotplug, self.hotplug_and_tell, self.restart])()


@pytest.mark.parametrize('seed', range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize('policies', [*([name] for name in POLICIES), list(POLICIES)], ids=[*POLICIES, 'switches'])
def test_accepted(make_node, policies, seed):
    walk = Walk(make_node, seed, policies)
    for _ in range(STEPS):
        walk.step()
    walk.restart()
    walk.reload()
    walk.restart()
