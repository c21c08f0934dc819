# SPDX-License-Identifier: Apache-2.0
"""
kill -9 at any moment while pods of all levels are admitted, refused, placed, resized and removed, KILL_ROUNDS times: what was granted and answered is
there again, nobody's CPUs are anybody else's, and pods that are gone hold nothing.
"""
import json
import os
import random
import threading

from resourceplugin import Process
from simnode import SimError, cpuset, ctr, eventually

from test_cluster import Cluster
from test_cluster_pods import container, feed, knows, put_pod
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
    REFUSALS = ('no available CPU hints',)

    def __init__(self, node, seed):
        self.node, self.rng, self.n = node, random.Random(seed), 0
        self.pods, self.system, self.own = set(), set(), {}  # own: the CPUs of containers that have theirs for themselves
        self.answers = self.refusals = 0

    def coming(self, name, parts):
        """What others know of a pod that is about to come."""

    def came(self, name, made):
        """It was answered, or nobody was there to ask."""

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
            assert any(text in str(e) for text in self.REFUSALS), e
            self.gone(name)
            self.refusals += 1
            return
        self.pods.add(name)
        self.answers += 1
        self.came(name, made)
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

    def all_known(self):
        """Whoever is to know of pods that come does."""

    def all_come(self, names, part, annotations, look=lambda: None):
        for name in names:
            self.coming(name, [part])
        self.all_known()
        for name in names:
            self.node.create(name, part, annotations=annotations, uid='uid-' + name)
        look()
        self.node.delete(*names)
        for name in names:
            self.gone(name)

    def nothing_is_held(self):
        """All gone: there is room for as much as at first."""
        while self.pods:
            self.remove()
        self.all_come(['all%d' % i for i in range(NODES)], ctr('c', '3', '64Mi'), OWN)
        assert self.node.ctl('pods') == []


def rounds(node, churn, kill_others=lambda: None, n=KILL_ROUNDS):
    for i in range(1, n + 1):
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
    assert churn.answers > n // 2
    print('%d kills, %d pods answered, %d refused' % (n, churn.answers, churn.refusals))


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


PLUGIN_ROUNDS = int(os.environ.get('KILL_ROUNDS', 8))  # with processes to start in each, and all of them to find one another
GPU, UNITS = 'example.com/gpu', 6


class GivenChurn(ToldChurn):
    """Half of the pods want of a resource plugin, too. What a pod was answered that it has been given counts."""
    REFUSALS = (*Churn.REFUSALS, 'is not connected', 'are left', 'the agent disconnected', 'admission timed out', 'connection', 'plugin')

    def __init__(self, cluster, gpu, seed):
        super().__init__(cluster, seed)
        self.gpu, self.given, self.n_given = gpu, {}, 0

    def coming(self, name, parts):
        self.told.add(name)
        n = 1 if name.startswith('unit') else self.rng.choice([0, 1, 2]) if name.startswith('p') else 0
        more = {'c': {GPU: str(n)}} if n else {}
        put_pod(self.cluster, name, *[{'name': p['name'], 'resources': {'requests': {'cpu': p['cpu'], 'memory': p['memory'], **more.get(p['name'], {})}}}
                                      for p in parts])

    def came(self, name, made):
        env = self.node.container(name + '/c')['given'].get('env', {})
        if 'GPUS' in env:
            self.given[name] = env['GPUS'].split(',')
            self.n_given += 1

    def gone(self, name):
        super().gone(name)
        self.given.pop(name, None)

    def connected(self):
        plugins = self.node.ctl('status', check=False)['resource_plugins']
        return plugins and any(p['connected'] for p in plugins['plugins'])

    def all_known(self):
        eventually(self.connected, 60)
        eventually(lambda: feed(self.cluster)['current'] and feed(self.cluster)['pods'] == len(self.told), 60)

    def verify(self):
        super().verify()
        units = [unit for units in self.given.values() for unit in units]
        assert len(units) == len(set(units)), self.given
        for name, units in self.given.items():  # the plugin still knows, and so does the daemon
            assert self.gpu.held().get('uid-' + name, {}).get('c') == units, (name, units, self.gpu.held())
        if self.rng.random() < .7:  # else the next pods come while they are still looking for one another
            self.all_known()
        if not self.given or self.rng.random() < .5:
            return
        name = self.rng.choice(sorted(self.given))
        self.node.replace(name + '/c')
        assert self.node.container(name + '/c')['given'].get('env', {}).get('GPUS') == ','.join(self.given[name]), name
        self.own.pop(name + '/c', None)  # the new one has what was free
        self.own.update({c['full_name'].removeprefix('default/'): c['exclusive'] for c in self.node.ctl('containers') if c['exclusive']})

    def nothing_is_held(self):
        """Also of the plugin's: as many pods as there are units come, each at its first attempt."""
        while self.pods:
            self.remove()
        self.all_known()
        eventually(lambda: not self.gpu.held(), 60)
        super().nothing_is_held()
        self.all_come(['unit%d' % i for i in range(UNITS)], ctr('c', '100m', '16Mi'), level('shared_cores'), lambda: self.has(UNITS))
        eventually(lambda: not self.gpu.held(), 60)

    def has(self, n):
        assert sorted(len(held['c']) for held in self.gpu.held().values()) == [1] * n


def test_kill_daemon_agent_and_plugin_under_churn(make_node, tmp_path):
    """Any of the three ends at any moment, often several at a time."""
    folder = tmp_path / 'plugins'
    config = {**CONFIG, 'admit': {'timeout': '500ms'}}
    with Cluster(make_node, tmp_path, config=config, agent=['--plugin-dir', folder]) as c:
        eventually(folder.exists)
        with Process(folder, GPU, UNITS, tmp_path / 'gpu.json') as gpu:
            churn = GivenChurn(c, gpu, 29)
            churn.all_known()

            def kill_others():
                if churn.rng.random() < .3:
                    c.agent.kill()
                    c.agent.start()
                if churn.rng.random() < .3:
                    gpu.kill()
                    gpu.start()
            rounds(c.node, churn, kill_others, PLUGIN_ROUNDS)
            churn.nothing_is_held()
            print('%d of them were given what they want of the plugin' % churn.n_given)
            assert churn.n_given
