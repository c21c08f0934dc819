# SPDX-License-Identifier: Apache-2.0
"""
kill -9 at any moment while pods of all levels are admitted, refused, placed, resized and removed, KILL_ROUNDS times: what was granted and answered is
there again, nobody's CPUs are anybody else's, and pods that are gone hold nothing.
"""
import json
import os
import random
import threading

from simnode import SimError, cpuset, ctr

from test_cluster import Cluster
from test_cluster_pods import container, knows, put_pod
from test_kill import KILL_ROUNDS

DOMAIN = 'katalyst.kubewharf.io/'
CONFIG = {'policy': 'qos', 'qos': {'reservedCPUs': '0,4', 'rampUpSeconds': 0}}
NODES = 4  # of the machine, n4c16: two of them have three CPUs for pods, two have four
LOOK_EVERY = 25  # rounds, at all there is room for


def level(name, **memory):
    return {DOMAIN + 'qos_level': name, DOMAIN + 'memory_enhancement': json.dumps({k: 'true' for k in memory})}


DEDICATED, OWN = level('dedicated_cores', numa_binding=1), level('dedicated_cores', numa_binding=1, numa_exclusive=1)
SYSTEM = level('system_cores')  # runs on all CPUs, whoever has them
KINDS = [DEDICATED, DEDICATED, OWN, level('shared_cores'), level('shared_cores', numa_binding=1), level('reclaimed_cores'), SYSTEM]


class Churn:
    def __init__(self, node, seed):
        self.node, self.rng, self.n = node, random.Random(seed), 0
        self.pods, self.system, self.own = set(), set(), {}  # own: the CPUs of containers that have theirs for themselves
        self.answers = self.refusals = 0

    def coming(self, name, parts):
        """What others know of a pod that is about to come."""

    def gone(self, name):
        pass

    def create(self):
        self.n += 1
        name, kind = 'p%d' % self.n, self.rng.choice(KINDS)
        parts = [ctr('c', self.rng.choice(['1', '2', '1500m']), '64Mi')] + [ctr('side', '100m', '16Mi')] * (self.rng.random() < .3)
        self.coming(name, parts)
        try:
            made = self.node.create(name, *parts, annotations=kind, uid='uid-' + name)
        except SimError as e:
            assert 'no available CPU hints' in str(e), e
            self.gone(name)
            self.refusals += 1
            return
        self.pods.add(name)
        self.answers += 1
        if kind is SYSTEM:
            self.system.add(name)
        if kind in (DEDICATED, OWN) and made[0]['pinned']:
            self.own[name + '/c'] = made[0]['cpus']

    def remove(self):
        name = self.rng.choice(sorted(self.pods))
        self.node.delete(name)
        self.gone(name)
        self.pods.discard(name)
        self.own.pop(name + '/c', None)

    def resize(self):
        try:
            self.node.update(self.rng.choice(sorted(self.pods)) + '/c', cpu=self.rng.choice(['500m', '1', '2']))
        except SimError as e:
            assert e.result.get('failed'), e

    def step(self):
        chance = self.rng.random()
        if not self.pods or chance < .5:
            self.create()
        elif chance < .9:
            self.remove()
        else:
            self.resize()

    def verify(self):
        """A pod that came while nobody answered has what was left for it; if these are CPUs of its own it keeps them, too."""
        places = {name: cpuset(cpus) for name, (cpus, _) in self.node.places().items()}
        assert {name.split('/')[0] for name in places} == self.pods
        self.own.update({c['full_name'].removeprefix('default/'): c['exclusive'] for c in self.node.ctl('containers') if c['exclusive']})
        for name, cpus in self.own.items():
            assert places[name] == cpuset(cpus), '%s had %s and has %s' % (name, cpus, places[name])
            for other, has in places.items():
                pod = other.split('/')[0]
                assert has and (pod == name.split('/')[0] or pod in self.system or not has & places[name]), (name, cpus, other, has)

    def nothing_is_held(self):
        """All gone: there is room for as much as at first."""
        while self.pods:
            self.remove()
        for i in range(NODES):
            self.node.create('all%d' % i, ctr('c', '3'), annotations=OWN)
        self.node.delete(*['all%d' % i for i in range(NODES)])
        assert self.node.ctl('pods') == []


def rounds(node, churn, kill_others=lambda: None):
    for i in range(1, KILL_ROUNDS + 1):
        for _ in range(churn.rng.randint(0, 2)):
            churn.step()
        killer = threading.Timer(churn.rng.uniform(0, .004), os.kill, (node.status()['pid'], 9))
        killer.start()
        for _ in range(churn.rng.randint(1, 4)):
            churn.step()
        killer.join()
        assert node.exited().get('signal') == 9
        kill_others()
        node.start()
        node.settle(20)
        churn.verify()
        if i % LOOK_EVERY == 0:
            churn.nothing_is_held()
    assert churn.answers > KILL_ROUNDS // 2
    print('%d kills, %d pods answered, %d refused' % (KILL_ROUNDS, churn.answers, churn.refusals))


def test_kill_under_churn(make_node):
    node = make_node(CONFIG)
    rounds(node, Churn(node, 17))


class ToldChurn(Churn):
    """The cluster knows of most pods before the runtime does, of the others nothing."""

    def __init__(self, cluster, seed):
        super().__init__(cluster.node, seed)
        self.cluster, self.told = cluster, set()

    def coming(self, name, parts):
        if self.rng.random() < .2:
            return
        self.told.add(name)
        put_pod(self.cluster, name, *[container(part['name'], part['cpu'], part['memory']) for part in parts])

    def gone(self, name):
        if name in self.told:
            self.told.discard(name)
            self.cluster.api.delete('pods', 'default', name)


def test_kill_daemon_and_agent_under_churn(make_node, tmp_path):
    """The agent ends now and then, too, and comes back at any time."""
    with Cluster(make_node, tmp_path, config={**CONFIG, 'admit': {'timeout': '5ms'}}) as c:
        churn = ToldChurn(c, 23)

        def kill_agent():
            if churn.rng.random() < .3:
                c.agent.kill()
                c.agent.start()
        rounds(c.node, churn, kill_agent)
        knows(c, len(churn.told))
