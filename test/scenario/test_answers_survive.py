# SPDX-License-Identifier: Apache-2.0
"""
Two properties of every policy, with random containers of all kinds (exclusive, mixed, shared, best effort, reserved, isolated).

What was answered survives kill -9 at any instant: the daemon ends 0 to 500 ms after an answer, and afterwards every container has the CPUs, memory
nodes, shares, quota and exclusive CPUs that it was answered.

No container runs on an exclusive CPU of another one, whenever it was created: late, adopted, degraded, unmanaged, with the policy or without.

ANSWER_ROUNDS kills of each policy, and a quarter as many full nodes (one at least).
"""
import os
import random
import re
import time

import pytest

from balloonnode import BALLOON
from simnode import SimError, cpuset, ctr

from test_qos_kill import DEDICATED, level
from test_switches import SMALL

ROUNDS = int(os.environ.get('ANSWER_ROUNDS', 2))
RESERVED = {'reservedResources': {'cpu': 'cpuset:0,4'}}
SECTIONS = {**{name: section for name, section in SMALL.items() if name != 'none'},
            'topology-aware': RESERVED, 'static': RESERVED, 'static-plus': RESERVED, 'cpuset': {**RESERVED, 'minSharedCPUs': 2},
            'balloons': {**RESERVED, 'balloonTypes': [{'name': 's', 'preferNewBalloons': False}, {'name': 'x', 'preferNewBalloons': True, 'preferSpreadingPods': True}]},
            'qos': {'reservedCPUs': '0,4', 'rampUpSeconds': 0, 'podDebugAnnotations': ['example.com/debug']}}
MACHINES = {'topology-aware': ['n4c16', 'isolated'], 'static': ['n4c16', 'isolated']}
EVERY = pytest.mark.parametrize('policy, machine', [(policy, m) for policy in SECTIONS for m in MACHINES.get(policy, ['n4c16'])])
# Of a container: amounts, namespace. OWN ask for CPUs alone, as far as the policy knows that.
OWN = {'exclusive': (('1', '64Mi'), {}), 'two': (('2', '64Mi'), {}), 'mixed': (('1500m', '64Mi'), {}),
       'isolated': (('1', '64Mi'), {'annotations': {'prefer-isolated-cpus.noderesource.dev/pod': 'true'}})}
OTHERS = {'shared': (('50m/-', None), {}), 'limited': (('250m/2', '64Mi/128Mi'), {}), 'best effort': ((None, None), {}),
          'left alone': (('50m/-', None), {'annotations': {'example.com/debug': 'yes'}}),  # by qos
          'system': (('100m/-', None), {'namespace': 'kube-system'}), 'system guaranteed': (('1', '64Mi'), {'namespace': 'kube-system'})}
LISTED = {'STP_POOL': 'exclusive', 'CMK_NUM_CORES': '1'}  # of static-pools
VALUES = ('cpus', 'mems', 'shares', 'quota', 'period', 'memoryLimit')
PLACED = re.compile(r'request: (\S+): CPUs (\S+)(?: \(exclusive ?(\S*)\))?, memory nodes')
MOST = 24  # containers


class Churn:
    def __init__(self, node, policy, seed):
        self.node, self.policy, self.rng, self.n, self.at = node, policy, random.Random(seed), 0, 0
        self.alive, self.own, self.refused, self.answers = {}, {}, 0, 0  # own: exclusive CPUs as answered

    def create(self, kind=None, prefix='p'):
        self.n += 1
        kind = kind or self.rng.choice([*OWN, *OWN, *OTHERS])
        (cpu, memory), more = {**OWN, **OTHERS}[kind]
        annotations = {**more.get('annotations', {}), BALLOON: 'x' if kind in OWN else 's', **(DEDICATED if kind in OWN else level('shared_cores'))}
        name = '%s%d' % (prefix, self.n)
        namespace = more.get('namespace', 'default')
        if namespace != 'default':
            annotations.pop(BALLOON)
        try:
            made = self.node.create(name, ctr('c', cpu, memory, env=LISTED if kind in OWN and self.policy == 'static-pools' else {}),
                                    namespace=namespace, annotations=annotations)[0]
        except SimError as e:
            assert e.result.get('failed'), e
            self.refused += 1
            return None
        self.answers += made['pinned']
        self.alive[made['name']] = (name, namespace)
        return made['name']

    def remove(self, name=None):
        name = name or self.rng.choice(sorted(self.alive))
        pod, namespace = self.alive.pop(name)
        self.node.delete(pod if namespace == 'default' else '%s/%s' % (namespace, pod))

    def resize(self):
        small = [name for name, c in self.node.containers().items() if c['qos'] == 'burstable']
        if small:
            try:
                self.node.update(self.rng.choice(small), cpu='%dm/-' % self.rng.randint(10, 90))
            except SimError as e:
                assert e.result.get('failed'), e

    def step(self):
        if self.alive and (len(self.alive) > MOST or self.rng.random() < .35):
            self.remove()
        else:
            self.create()

    def read_answers(self):
        """The daemon logs what it answers; nothing of its own memory is asked for."""
        log = self.node.read_log()
        for name, cpus, own in PLACED.findall(log[self.at:]):
            whole = '(exclusive)' in log and '%s: CPUs %s (exclusive)' % (name, cpus) in log[self.at:]
            name = name.removeprefix('default/')
            if name in self.alive:
                self.own[name] = own or (cpus if whole else '')
        self.at = len(log)

    def effective(self):
        return {name: tuple(c.get(v) for v in VALUES) for name, c in self.node.containers().items() if c['state'] != 'exited'}

    def known(self):
        return {c['full_name'].removeprefix('default/'): c for c in self.node.ctl('containers')}

    def nobody_on_exclusive(self, where):
        known = self.known()
        places = {name: cpuset(values[0] or '') for name, values in self.effective().items()}
        owned = {name: cpuset(c['exclusive']) for name, c in known.items() if c['exclusive']}
        everywhere = cpuset('0-15')
        for name, own in owned.items():
            for other, cpus in places.items():
                if other != name:
                    assert not own & (cpus or everywhere), '%s: %s runs on %s, of which %s owns %s (%s)' % (where, other, cpus or 'all CPUs', name, own, known[other])
        return known


def names(node):
    return {c['name'] for c in node.run('containers')['containers'] if c['state'] != 'exited'}


@EVERY
def test_answers_survive_a_kill(make_node, policy, machine):
    node = make_node({'policy': policy, policy: SECTIONS[policy], 'metrics': {'listen': ''}}, machine=machine)
    churn = Churn(node, policy, 41)
    for i in range(ROUNDS):
        for _ in range(churn.rng.randint(0, 3)):
            churn.step()
        node.settle(20)
        churn.own = {name: c['exclusive'] or '' for name, c in churn.known().items()}
        churn.at = len(node.read_log())
        churn.rng.choice([churn.create, churn.create, churn.resize])()
        time.sleep(churn.rng.choice([0, churn.rng.uniform(0, .01), churn.rng.uniform(0, .15), churn.rng.uniform(0, .5)]))
        node.kill()
        answered = churn.effective()
        churn.read_answers()
        node.updates()
        node.start()
        node.settle(20)
        assert churn.effective() == answered, i
        assert node.updates() == [], 'sent again although nothing has changed'
        known = churn.nobody_on_exclusive('round %d' % i)
        for name, own in churn.own.items():
            has = known[name]['exclusive'] or ''
            joined = any(cpuset(own) & cpuset(values[0]) for other, values in answered.items() if other != name)  # into its balloon
            assert has == own or joined, '%s was answered exclusive CPUs %s and has %s' % (name, own or '-', has or '-')
    assert churn.answers > ROUNDS / 2


def end_of_daemon(node, rng):
    node.kill() if rng.random() < .5 else node.stop()


@EVERY
@pytest.mark.parametrize('refusals', ['reject', 'unmanaged'])
def test_nobody_runs_on_exclusive_cpus_of_others(make_node, policy, machine, refusals):
    """The node is full, now with a reserved container and others beside it, now without: then containers come in every other way."""
    config = {'policy': policy, policy: SECTIONS[policy], 'metrics': {'listen': ''}, 'onPolicyError': refusals}
    node = make_node(config, machine=machine)
    node.allow('which it does not have|there is no container|unknown container|unknown')
    churn = Churn(node, policy, 43)
    for i in range(max(ROUNDS // 4, 1)):
        for kind in churn.rng.sample(sorted(OTHERS), churn.rng.randint(0, 3)):
            churn.create(kind)
        for _ in range(16):
            if not churn.create(churn.rng.choice(['exclusive', 'two'])) or refusals == 'unmanaged' and churn.n % 20 > 17:
                break
        churn.nobody_on_exclusive('full')
        # created while the daemon was away
        end_of_daemon(node, churn.rng)
        for kind in churn.rng.sample([*OWN, *OTHERS], 3):
            churn.create(kind, 'late')
        node.start()
        node.settle(20)
        churn.nobody_on_exclusive('late')
        # reported as stopped, and running all the same
        stuck = churn.rng.choice(sorted(churn.alive))
        node.tell('StopContainer', stuck)
        churn.create(churn.rng.choice(['exclusive', 'mixed', 'shared']))
        node.runtime_restart()
        node.settle(20)
        churn.nobody_on_exclusive('stuck')
        # not listed at a Synchronize, and reported later
        missing = [name for name in sorted(churn.alive) if churn.alive[name][1] == 'default']
        if missing:
            missing = churn.rng.choice(missing)
            node.run('lie', {'missing': [missing.split('/')[0]]})
            node.runtime_restart()
            node.settle(20)
            for _ in range(2):
                churn.create(churn.rng.choice(['exclusive', 'mixed', 'shared']))
            node.run('lie', {})
            node.tell('StartContainer', missing)
            node.settle(20)
            churn.nobody_on_exclusive('adopted')
        # without a policy
        node.config({'policy': 'none', 'metrics': {'listen': ''}})
        node.settle(20)
        churn.create('shared')
        churn.nobody_on_exclusive('no policy')
        end_of_daemon(node, churn.rng)
        churn.create('shared', 'late')
        node.start()
        node.settle(20)
        churn.nobody_on_exclusive('no policy, late')
        node.config(config)
        node.settle(20)
        churn.nobody_on_exclusive('the policy again')
        for _ in range(churn.rng.randint(3, max(3, len(churn.alive) - 2))):
            if churn.alive:
                churn.remove()
        node.settle(20)
        churn.nobody_on_exclusive('fewer')


@pytest.mark.parametrize('containers', [['main'], ['init', 'main']], ids=str)
def test_unpinned_containers_of_qos_avoid_dedicated_cpus(make_node, containers):
    """Containers that the policy leaves alone (debug pods, init containers) run on CPUs that no container owns, before and after an owner ends."""
    node = make_node({'policy': 'qos', 'qos': SECTIONS['qos'], 'metrics': {'listen': ''}})
    churn = Churn(node, 'qos', 59)
    owner = churn.create('two')
    own = node.cpus(owner)
    debug = {'example.com/debug': 'yes'} if len(containers) == 1 else {}
    node.create('left', *[ctr(name, '50m/-') for name in containers], annotations={**level('shared_cores'), **debug})
    node.settle(20)
    assert not node.cpus('left/' + containers[0]) & own
    churn.nobody_on_exclusive('created')
    late = churn.create('two')
    node.settle(20)
    assert not node.cpus('left/' + containers[0]) & (own | node.cpus(late))
    churn.nobody_on_exclusive('another owner')
    for name in [owner, late]:
        churn.remove(name)
    node.settle(20)
    assert node.cpus('left/' + containers[0]) >= own


@pytest.mark.parametrize('policy', ['topology-aware', 'balloons', 'static', 'static-plus', 'cpuset', 'qos'])
@pytest.mark.parametrize('ends', ['reconnects', 'killed', 'stopped'])
def test_a_container_that_is_listed_runs(make_node, policy, ends):
    """The runtime reports the stop of a container before it stops it, and the stop fails: then it lists the container as running."""
    node = make_node({'policy': policy, policy: SECTIONS[policy], 'metrics': {'listen': ''}})
    churn = Churn(node, policy, 47)
    stuck, shared = churn.create('two'), churn.create('shared')
    node.tell('StopContainer', stuck)
    node.tell('StopContainer', shared)
    if ends == 'reconnects':
        node.runtime_restart()
    elif ends == 'killed':
        time.sleep(.3)  # the release is stored
        node.kill()
        node.start()
    else:
        node.restart()
    node.settle(20)
    known = churn.known()
    assert known[stuck]['state'] == known[shared]['state'] == 'running'
    assert len(cpuset(known[stuck]['exclusive'] or '')) == 2 and node.cpus(stuck) == cpuset(known[stuck]['exclusive'])
    for _ in range(16):
        churn.create('exclusive')
    churn.nobody_on_exclusive(ends)


@pytest.mark.parametrize('others', [[], ['system'], ['shared'], ['system', 'shared']], ids=str)
@pytest.mark.parametrize('kind', ['exclusive', 'limited', 'best effort'])
def test_a_late_container_finds_no_balloon(make_node, kind, others):
    """It runs on CPUs of no balloon, else on those of the default one, else on the reserved ones."""
    node = make_node({'policy': 'balloons', 'metrics': {'listen': ''}, 'balloons': {
        'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': [{'name': 'x', 'preferNewBalloons': True}]}})
    churn = Churn(node, 'balloons', 53)
    for other in others:
        (cpu, memory), more = OTHERS[other]
        node.create(other, ctr('c', cpu, memory), **more)
    while churn.create('exclusive'):
        pass
    node.kill()
    node.create('late', ctr('c', *{**OWN, **OTHERS}[kind][0]))
    node.start()
    node.settle(20)
    assert node.cpus('late/c') == (node.cpus('shared/c') if 'shared' in others else {0})
    churn.nobody_on_exclusive('late')
