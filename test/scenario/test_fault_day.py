# SPDX-License-Identifier: Apache-2.0
"""
A day of a node is lived again and again, the same each time: pods that come and go, resizes, reloads, other policies, restarts. Its system calls are
counted; then of one kind every FAULT_EVERY-th fails, from the first on, then from the second, and so on, until each call of the day has failed with
each error that it may give. What is looked at knows what was answered to the runtime, and nothing else. `make check` has some of these days.
"""
import os
import random

import grpc
import pytest

from criproxy import Bridge
from kubelet import Agent
from simnode import BUILD, SimError, ctr, eventually
from syscalls import Plan, pairs, possible

from test_bridge_police import PLACED, Client, Cri, Daemon
from test_cluster import CRS, NS, Cluster, balloons
from test_fault_programs import passes
from test_kill_switches import POLICIES, RESERVED, Churn

EVERY = int(os.environ.get('FAULT_EVERY', 0))  # 0: a sample
APART = EVERY or 16  # so few fail that a program finds its feet between two of them
REQUESTS = int(os.environ.get('FAULT_DAY', 240 if EVERY else 40))
SHARE = int(os.environ.get('FAULT_SHARE', 1))  # one of so many days
ALL = 1 << 30
FORGETS = 'a restart will lose placements'  # as the folder of the state cannot be opened
pytestmark = pytest.mark.skipif(not possible(), reason='no seccomp notifiers here')


class Report:
    def __init__(self):
        self.days, self.requests, self.failed, self.refused, self.ends = 0, 0, 0, 0, 0

    def tell(self, program, made):
        print('%s: a day has %d calls of %d kinds' % (program, sum(made.values()), sum(map(bool, made.values()))))
        self.so_far()

    def so_far(self):
        print('%d days, %d requests, %d calls failed, %d requests refused, %d ends' % (self.days, self.requests, self.failed, self.refused, self.ends),
              flush=True)


def phases(made, rng, n):
    """(call, error, which is the first to fail): together each call of a day with each of its errors."""
    if EVERY:
        return [(call, error, first) for call, error in pairs() for first in range(min(made[call], APART))][rng.randrange(SHARE)::SHARE]
    return [(call, error, rng.randrange(APART)) for call, error in rng.sample([p for p in pairs() if made[p[0]] >= APART], n)]


def live(plan, made, rng, n, day, report):
    for call, error, first in phases(made, rng, n):
        plan.arm(call, error, first, ALL, APART)
        try:
            day(call)
        except Exception as e:
            raise AssertionError('%s %s from the call %d on' % (call, error, first)) from e
        report.failed += plan.disarm()[0]
        report.days += 1
        if report.days % 50 == 0:
            report.so_far()


# ---- nri-rpd ---------------------------------------------------------------------------------------------------------------

class Day(Churn):
    """Of a daemon that may refuse and end; who was refused has nothing."""

    def __init__(self, node, plan, report):
        super().__init__(node, 22, 'static')
        self.plan, self.report, self.call = plan, report, None
        self.unstored = False  # what is answered now the next start does not know

    def tried(self, step):
        self.report.requests += 1
        try:
            step()
        except SimError:
            self.report.refused += 1
            return False
        return True

    dying = True  # at any moment

    def back(self):
        """Brought back by whoever watches it; if it cannot start so, it can when calls pass again."""
        if self.node.status()['pid']:
            return
        if self.dying:
            self.report.ends += 1
        self.dying, said = True, len(self.node.read_log())
        if not self.tried(self.node.start):
            self.plan.disarm()
            if not self.node.status()['pid']:
                self.node.start()
            if self.call:
                self.plan.go_on(self.call)
        self.in_force()
        told = FORGETS in self.node.read_log()[said:]
        if told or self.unstored:
            self.forget()
        self.unstored = told

    def forget(self):
        """How many CPUs each has alone is all that counts from now on."""
        self.owned = {name: (size, None) for name, (size, _) in self.owned.items()}

    def in_force(self):
        """Another policy than before, or none as its module cannot be read: nobody has been told yet which CPUs it gives."""
        eventually(lambda: self.node.status()['connected'])
        said = self.node.ctl('status', check=False).get('policy')
        if not said:  # its control socket could not be made, as its log says
            self.restart_quietly()
            return
        now = said['name']
        if now != self.policy:
            self.forget()
        self.policy = now

    def restart_quietly(self):
        """While no call fails."""
        call, self.call = self.call, None
        self.plan.disarm()
        self.restart()
        self.call = call
        if call:
            self.plan.go_on(call)

    def configure(self, policy):
        super().configure(policy if policy in POLICIES else 'static')
        self.back()
        self.in_force()

    def give(self):
        if self.owned or self.shared:
            name = self.rng.choice(sorted([*self.owned, *self.shared]))
            self.owned.pop(name, None)  # gone, whatever is answered
            self.shared.discard(name)
            self.node.delete(name)

    def resize(self):
        """Of who has nothing for itself."""
        if self.shared:
            name = self.rng.choice(sorted(self.shared))
            self.node.update(name + '/c', cpu='%dm/-' % self.rng.randint(10, 90))

    def restart(self):
        if self.node.status()['pid']:
            self.node.kill()
            self.dying = False
        self.back()

    def step(self):
        self.n += 1
        at = self.n % 40
        if at == 13:
            self.configure(self.policy)
        elif at == 26:
            self.configure(self.rng.choice(sorted(POLICIES)))
        elif at == 39:
            self.restart()
        else:
            self.tried(self.rng.choice([self.take, self.take, self.share, self.give, self.give, self.resize, lambda: self.node.control('Containers')]))
        self.back()

    def live(self, call=None):
        """The same day each time: from an empty node with the first policy to one."""
        self.call, self.n = call, 0
        self.rng.seed(22)
        for _ in range(REQUESTS):
            self.step()
        self.call = None
        self.plan.disarm()
        self.back()
        self.in_force()
        if self.policy == 'none':
            self.restart_quietly()
        self.node.settle(20)
        self.verify()
        for name in [*self.owned, *self.shared]:
            self.node.delete(name)
        self.owned, self.shared = {}, set()
        self.configure('static')
        assert self.policy == 'static' and not self.node.places()


def node_of(make_node, plan, **more):
    daemon = ' '.join(plan.command(BUILD / 'bin' / 'nri-rpd', '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state}'
                                   ' --control-socket {control}'))
    return make_node({'policy': 'static', 'static': RESERVED, 'metrics': {'listen': ''}}, daemon=daemon, module_dirs=[BUILD / 'modules'], **more)


def test_a_state_that_can_be_opened_later(make_node, tmp_path):
    """What is placed meanwhile is kept from then on."""
    plan = Plan(tmp_path / 'plan')
    node = node_of(make_node, plan, start=False)
    plan.arm('flock', 'ENOLCK', 0, 3)  # as often as it is tried before the start goes on without
    node.start()
    own = node.create('own', ctr('c', '2', '64Mi'))[0]['cpus']
    assert FORGETS in node.read_log() and any('the state directory cannot be used' in reason for reason in node.ctl('status', check=False)['reasons'])
    eventually(lambda: not node.ctl('status', check=False)['reasons'])
    node.create('more', ctr('m', '1', '64Mi'))
    node.settle()  # events of the last moments are not saved
    node.kill()
    node.start()
    assert 'restored 2 pods and 2 containers' in node.read_log() and node.places()['own/c'][0] == own
    assert [e['kind'] for e in node.ctl('explain', '--history', 'more')['history']] == ['created'], 'events are saved from then on, too'


def test_the_daemon(make_node, tmp_path):
    plan, rng, report = Plan(tmp_path / 'plan'), random.Random(22), Report()
    node = node_of(make_node, plan)
    node.allow('.')  # who cannot read its state, or has no connection, cannot tell the runtime what is right
    day = Day(node, plan, report)
    plan.made()
    day.live()
    made = plan.made()
    live(plan, made, rng, 4, day.live, report)
    report.tell('nri-rpd', made)
    assert report.failed > report.days


# ---- nri-rp-bridge ---------------------------------------------------------------------------------------------------------

def test_the_bridge(tmp_path):
    plan, rng, report = Plan(tmp_path / 'plan'), random.Random(23), Report()
    with Cri() as runtime, Bridge(runtime, under=plan.command()) as bridge:
        daemon, client = Daemon(tmp_path, bridge.nri_socket).start(), Client(bridge)
        bridge.wait_log(PLACED)

        owned = {}

        def tried(step):
            report.requests += 1
            try:
                return step()
            except grpc.RpcError:
                report.refused += 1
                return None

        def clean(most):
            """Those that were refused half-way, too, as a kubelet does it."""
            for pod in list(runtime.pods):
                if pod not in owned or len(owned) > most:
                    owned.pop(pod, None)
                    tried(lambda: client.remove(pod))

        def day(_=None):
            for i in range(REQUESTS // 8):
                made = tried(lambda: client.run('p%d' % i, 2000))
                if made:
                    owned[made[0]] = made[1]
                if i % 10 == 9:
                    daemon.kill()
                    daemon.start()
                clean(3)
            assert bridge.process.poll() is None
            plan.disarm()
            eventually(lambda: passes(client))
            clean(3)
            assert all(ctr in runtime.ctrs for ctr in owned.values()), 'answered, and not there'
            eventually(lambda: all(len(runtime.cpus(ctr)) == 2 for ctr in owned.values()))
            eventually(lambda: len(set().union(*map(runtime.cpus, owned.values()))) == 2 * len(owned))
            clean(0)
        plan.made()
        day()
        made = plan.made()
        live(plan, made, rng, 2, day, report)
        report.tell('nri-rp-bridge', made)
        assert report.failed > report.days
        daemon.kill()


# ---- nri-rp-agent ----------------------------------------------------------------------------------------------------------

@pytest.mark.skipif(not EVERY, reason='its days are long: make faults')
def test_the_agent(make_node, tmp_path):
    plan, rng, report, generation = Plan(tmp_path / 'plan'), random.Random(24), Report(), 0
    with Cluster(make_node, tmp_path) as c:
        sockets = c.agent.sockets
        c.agent.stop()
        c.agent = Agent(*sockets, under=plan.command(), options=c.options)

        def day(_=None):
            """Configurations come as fast as they are answered, or a while later."""
            nonlocal generation
            for i in range(REQUESTS // 20):
                report.requests += 1
                generation += 1
                c.api.put(CRS, NS, 'default', balloons(2 + generation % 3))
                c.has_verdict('Success', generation)
                if i % 4 == 3:
                    c.node.restart()
            plan.disarm()
            assert c.agent.process.poll() is None
            assert c.policy() == 'balloons'
        day()
        plan.made()
        day()
        made = plan.made()
        live(plan, made, rng, 2, day, report)
        report.tell('nri-rp-agent', made)
        assert report.failed
