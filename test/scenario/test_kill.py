# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any moment, KILL_ROUNDS times: what has been answered is as it was when nri-rpd is back."""
import os
import random
import threading

import pytest

from balloonnode import BALLOON, options
from simnode import STATIC, SimError, cpuset, ctr, eventually

from test_restart import busy

KILL_ROUNDS = int(os.environ.get('KILL_ROUNDS', 30))
SHARERS = 12  # there all the time
MOST = 11  # CPUs in exclusive use

TOPOLOGY_AWARE = {'policy': 'topology-aware',
                  'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}, 'preferIsolatedCPUs': False}}
# Whoever is in a balloon of type s also runs on all that nobody has.
BALLOONS = options({'name': 's', 'shareIdleCPUsInSame': 'system', 'preferNewBalloons': False},
                   {'name': 'x', 'preferNewBalloons': True, 'preferSpreadingPods': True})

CONFIGS = pytest.mark.parametrize('config', [STATIC, TOPOLOGY_AWARE, BALLOONS], ids=lambda c: c['policy'])


class Churn:
    """Pods come and go; remembers which CPUs were answered to those who have theirs for themselves."""

    def __init__(self, node, seed, policy):
        self.node, self.rng, self.policy, self.n = node, random.Random(seed), policy, 0
        self.exclusive, self.shared = {}, set()

    def create(self, kind, name, cpu, memory=None):
        more = {'annotations': {BALLOON: kind}} if self.policy == 'balloons' else {}
        return self.node.create(name, ctr('c', cpu, memory), **more)[0]

    def share(self):
        self.n += 1
        self.create('s', 's%d' % self.n, '50m/-')
        self.shared.add('s%d' % self.n)

    def crowd(self):
        for _ in range(SHARERS):
            self.share()

    def take(self, most=3):
        """Somebody who takes CPUs from all the others; False: there are no more to be had."""
        used = sum(size for size, _ in self.exclusive.values())
        if used >= MOST:
            return False
        self.n += 1
        name, size = 'x%d' % self.n, self.rng.randint(1, min(most, MOST - used))
        made = self.create('x', name, str(size), '64Mi')
        self.exclusive[name] = (size, made['cpus'] if made['pinned'] else None)
        return True

    def give(self):
        name = self.rng.choice(sorted(self.exclusive))
        self.node.delete(name)
        del self.exclusive[name]

    def take_or_give(self):
        if (self.exclusive and self.rng.random() < 0.4) or not self.take():
            self.give()

    def step(self):
        kind = self.rng.choice(['exclusive', 'shared', 'delete', 'delete', 'resize'])
        if kind == 'exclusive' and self.take():
            return
        if kind == 'shared' and len(self.shared) < 3 * SHARERS:
            self.share()
        elif kind == 'resize' and self.shared:
            self.node.update(self.rng.choice(sorted(self.shared)) + '/c', cpu='%dm/-' % self.rng.randint(10, 90))
        elif self.exclusive and self.rng.random() < 0.5:
            self.give()
        elif self.shared:
            name = self.rng.choice(sorted(self.shared))
            self.node.delete(name)
            self.shared.discard(name)

    def verify(self):
        """Who owns CPUs has as many as it was given and the ones it was given, and nobody else is on them."""
        assert self.node.control('Status')['policy']['name'] == self.policy, self.node.tail()
        places, taken = self.node.places(), set()
        for name, (size, answered) in self.exclusive.items():
            text = places[name + '/c'][0]
            cpus = cpuset(text)
            assert answered in (None, text), '%s had %s and has %s' % (name, answered, text)
            assert len(cpus) == size, name
            assert not cpus & taken, '%s has CPUs of others: %s' % (name, text)
            taken |= cpus
            self.exclusive[name] = (size, text)
        for name in self.shared:
            cpus = cpuset(places[name + '/c'][0])
            assert cpus and not cpus & taken, name
            if self.policy == 'static':
                assert cpus == set(range(16)) - taken
            elif self.policy == 'balloons':
                assert cpus == set(range(1, 16)) - taken


def kill_now(node):
    os.kill(node.status()['pid'], 9)
    assert node.exited().get('signal') == 9


def start_alone(node):
    """Without a runtime that could tell: what nri-rpd knows by itself of everybody's CPUs. Who has gone may be among them."""
    node.runtime_stop()
    node.start(wait=False)
    known = []

    def answers():
        try:
            known[:] = node.control('Containers')
        except SimError:  # the socket is a dead one's, or there is none yet
            return False
        return True

    eventually(answers)
    node.runtime_start()
    return {c['full_name'].removeprefix('default/'): c['cpus'] for c in known}


@CONFIGS
def test_kill_churn(make_node, config):
    """In the middle of anything. Those created while nobody answered are placed at the synchronisation; the others are as they were."""
    node = make_node(config)
    churn = Churn(node, 7, config['policy'])
    for _ in range(KILL_ROUNDS):
        for _ in range(churn.rng.randint(0, 3)):
            churn.step()
        pid = node.status()['pid']
        killer = threading.Timer(churn.rng.uniform(0, 0.004), os.kill, (pid, 9))
        killer.start()
        for _ in range(churn.rng.randint(1, 3)):
            churn.step()
        killer.join()
        assert node.exited().get('signal') == 9
        node.start()
        node.settle(20)
        churn.verify()
    assert KILL_ROUNDS < 20 or churn.exclusive or churn.shared


@CONFIGS
def test_kill_churn_right_after_the_answer(make_node, config):
    """
    One answer changed the CPUs of all who share, and the store has got that in a few words for all of them.
    """
    node = make_node(config)
    churn, rounds_with_moves = Churn(node, 11, config['policy']), 0
    churn.crowd()
    for i in range(KILL_ROUNDS):
        before = node.places()
        for _ in range(churn.rng.randint(1, 3)):
            churn.take_or_give()
        if i % 4 == 0:
            churn.step()
        kill_now(node)
        answered = node.places()
        rounds_with_moves += sum(before.get(name, place) != place for name, place in answered.items()) > 2
        node.updates()
        if i % 3:
            node.start()
        else:
            known = start_alone(node)
            assert {name: known[name] for name in answered} == {name: cpus for name, (cpus, _) in answered.items()}
        node.settle(20)
        assert node.places() == answered, node.tail()
        assert node.updates() == [], 'told again what they have'
        churn.verify()
    assert rounds_with_moves > KILL_ROUNDS // 2


def test_kill_during_reload(make_node):
    rng = random.Random(3)
    node = make_node(STATIC)
    busy(node)
    before = node.places()
    for _ in range(5):
        killer = threading.Timer(rng.uniform(0, 0.02), os.kill, (node.status()['pid'], 9))
        killer.start()
        try:
            node.reload('control')
        except SimError:
            pass
        killer.join()
        node.exited()
        node.start()
        assert node.places() == before
