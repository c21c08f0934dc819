# SPDX-License-Identifier: Apache-2.0
"""
kill -9 at any moment of a node that changes its configuration and its policy all the time, KILL_ROUNDS times. What is looked at afterwards knows
the answers that the runtime has got, and nothing else.
"""
import os
import random
import threading

import pytest

from balloonnode import BALLOON
from simnode import SimError, cpuset, ctr

from test_kill import KILL_ROUNDS
from test_qos_kill import DEDICATED, level

RESERVED = {'reservedResources': {'cpu': 'cpuset:0,4'}}
POLICIES = {
    'static': RESERVED, 'topology-aware': {**RESERVED, 'preferIsolatedCPUs': False}, 'cpuset': {**RESERVED, 'minSharedCPUs': 2},
    'balloons': {**RESERVED, 'balloonTypes': [{'name': 's', 'shareIdleCPUsInSame': 'system', 'preferNewBalloons': False},
                                              {'name': 'x', 'preferNewBalloons': True, 'preferSpreadingPods': True}]},
    'qos': {'reservedCPUs': '0,4', 'rampUpSeconds': 0}}
OWN, SHARED = {BALLOON: 'x', **DEDICATED}, {BALLOON: 's', **level('shared_cores')}
ISOLATED = {'prefer-isolated-cpus.noderesource.dev/pod': 'true'}
MOST_OWNED, MOST_SHARED = 6, 20  # CPUs, of which every policy finds so many by twos; containers
MIXED = 'mixed'  # a container of 1500m: one CPU alone and half of another one under topology-aware, two CPUs or shared ones elsewhere


class Churn:
    def __init__(self, node, seed, policy):
        self.node, self.rng, self.policy, self.n, self.reloads, self.switches, self.answers = node, random.Random(seed), policy, 0, 0, 0, 0
        self.owned, self.shared = {}, set()  # owned: how many CPUs, and which as far as that was answered by the policy of today

    def configure(self, policy):
        """By a daemon that may be killed meanwhile: it starts with what the file says then."""
        self.reloads += policy == self.policy
        if policy != self.policy:
            self.switches += 1
            self.owned = {name: (size, None) for name, (size, _) in self.owned.items()}
        self.policy = policy
        config = {'policy': policy, policy: POLICIES[policy], 'rebalanceMoves': self.rng.randint(1, 9), 'metrics': {'listen': ''}}
        try:
            self.node.config(config)
        except SimError:
            assert not self.node.status()['pid'] or self.dying, 'refused'

    def n_owned(self):
        return sum(n for n, _ in self.owned.values()) + 2 * (MIXED in self.shared)

    def mix(self):
        if MIXED not in self.shared and self.n_owned() + 2 <= MOST_OWNED:
            self.node.create(MIXED, ctr('c', '1500m', '64Mi'), annotations=OWN)
            self.shared.add(MIXED)

    def reserve(self):
        if len(self.shared) < MOST_SHARED:
            self.node.create('y%d' % self.n, ctr('c', '100m/-'), namespace='kube-system', annotations=level('shared_cores'))
            self.shared.add('kube-system/y%d' % self.n)

    def take(self):
        size, name = self.rng.randint(1, 2), 'x%d' % self.n
        if self.n_owned() + size > MOST_OWNED:
            return
        made = self.node.create(name, ctr('c', str(size), '64Mi'), annotations={**OWN, **self.rng.choice([{}, ISOLATED])})[0]
        self.owned[name] = (size, made['cpus'] if made['pinned'] else None)
        self.answers += made['pinned']

    def share(self):
        if len(self.shared) < MOST_SHARED:
            made = self.node.create('s%d' % self.n, ctr('c', '50m/-'), annotations=SHARED)[0]
            self.shared.add('s%d' % self.n)
            self.answers += made['pinned']

    def give(self):
        if self.owned or self.shared:
            name = self.rng.choice(sorted([*self.owned, *self.shared]))
            self.node.delete(name)
            self.owned.pop(name, None)
            self.shared.discard(name)

    def step(self):
        self.n += 1
        self.rng.choice([self.take, self.take, self.mix, self.share, self.reserve, self.give, self.give])()

    def verify(self):
        places, taken = {name: cpuset(cpus) for name, (cpus, _) in self.node.places().items()}, set()
        assert set(places) == {name + '/c' for name in [*self.owned, *self.shared]}
        for name, (size, answered) in self.owned.items():
            cpus = places[name + '/c']
            assert answered is None or cpus == cpuset(answered), '%s had %s and has %s' % (name, answered, cpus)
            assert len(cpus) == size and not cpus & taken, (self.policy, name, size, places)
            taken |= cpus
            self.owned[name] = (size, self.node.container(name + '/c')['cpus'])
        for name in self.shared:
            assert places[name + '/c'] and not places[name + '/c'] & taken, (self.policy, name, places)
        known = {c['full_name'].removeprefix('default/'): c for c in self.node.ctl('containers')}
        assert not [c for c in known.values() if c['degraded']], self.policy
        for name, c in known.items():
            own = cpuset(c['exclusive'] or '')
            assert not [other for other, cpus in places.items() if other != name and cpus & own], (self.policy, name, own, places)
        if MIXED in self.shared and self.policy == 'topology-aware':
            mixed = known[MIXED + '/c']
            assert len(cpuset(mixed['exclusive'] or '')) == 1, mixed
            assert self.node.container(MIXED + '/c')['shares'] == 512

    dying = False


@pytest.mark.parametrize('machine', ['n4c16', 'isolated'])
def test_kill_between_policies(make_node, machine):
    node = make_node({'policy': 'static', 'static': RESERVED, 'metrics': {'listen': ''}}, machine=machine)
    churn = Churn(node, 31, 'static')
    for i in range(KILL_ROUNDS):
        for _ in range(churn.rng.randint(0, 2)):
            churn.step()
        churn.dying = True
        killer = threading.Timer(churn.rng.uniform(0, .006), os.kill, (node.status()['pid'], 9))
        killer.start()
        if i % 3 == 0:
            churn.configure(churn.rng.choice(sorted(POLICIES)) if i % 2 else churn.policy)
        for _ in range(churn.rng.randint(1, 2)):
            churn.step()
        killer.join()
        assert node.exited().get('signal') == 9
        churn.dying = False
        node.start()
        node.settle(20)
        assert node.ctl('status')['policy']['name'] == churn.policy
        churn.verify()
        if i % 500 == 499:
            print('%d kills, %d answers, %d reloads, %d switches' % (i + 1, churn.answers, churn.reloads, churn.switches), flush=True)
    assert churn.reloads + churn.switches >= KILL_ROUNDS // 3
