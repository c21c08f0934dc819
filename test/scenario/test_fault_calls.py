# SPDX-License-Identifier: Apache-2.0
"""
Every system call fails that nri-rpd makes, its libraries' and its children's too, one at a time, at any time and while it starts: what was answered
stays, nobody's CPUs are anybody else's, and the next request is served. What is looked at knows the answers that the runtime has got, and nothing
else. In `make check` each call fails once or twice; `make faults` has all of them fail.
"""
import os
import random
import re

import pytest

from simnode import BUILD, SimError, ctr, eventually
from syscalls import HARMLESS, Plan, pairs, possible

from test_faults import LOGGED, POLICIES, check, tried

DEPTH = int(os.environ.get('FAULT_DEPTH', 0))  # 0: a sample
pytestmark = pytest.mark.skipif(not possible(), reason='no seccomp notifiers here')
# It ends by them, as it should: nothing can be done without, and it is started again.
FATAL = {('epoll_create1', 'EMFILE')}


class Supervised:
    def __init__(self, make_node, tmp_path, policy):
        self.plan, self.config = Plan(tmp_path / 'plan'), POLICIES[policy]
        daemon = ' '.join(self.plan.command(BUILD / 'bin' / 'nri-rpd', '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state}'
                                            ' --control-socket {control}'))
        self.node = make_node(self.config, daemon=daemon, module_dirs=[BUILD / 'modules'])
        self.owners, self.n, self.tries, self.failed, self.refused, self.deaths = {}, 0, 0, 0, 0, 0

    def work(self):
        """A bit of everything; what was answered with success counts."""
        self.n += 1
        name, said = 'x%d' % self.n, len(self.node.read_log())
        if tried(lambda: self.node.create(name, ctr('c', '2', '64Mi'), namespace='own')):
            self.owners['own/%s/c' % name] = 2
        else:
            self.refused += 1
            assert self.refused > LOGGED or re.search('refused|error|memory|lost|died', self.node.read_log()[said:]), 'refused without a word'
        tried(lambda: self.node.config({**self.config, 'rebalanceMoves': 1 + self.n % 7}))
        tried(lambda: self.node.control('Containers'))
        if len(self.owners) > 2:
            gone = next(iter(self.owners))
            tried(lambda: self.node.delete(gone.split('/')[1]))
            del self.owners[gone]

    def let_fail(self, call, error, skip):
        """While it works; how many such calls there were."""
        self.tries += 1
        refused = self.refused
        self.plan.arm(call, error, skip)
        self.work()
        self.node.settle(20)
        assert self.refused == refused or (call, error) not in HARMLESS, (call, error, skip)
        failed, seen = self.plan.disarm()
        self.failed += failed
        return seen

    def look(self, what):
        """It is there, or it is started and knows everything; and then it serves."""
        if not self.node.status()['pid']:
            self.deaths += 1
            self.node.start()
        eventually(lambda: self.node.status()['connected'])
        self.node.settle(20)
        mine = {name: size for name, size in self.owners.items() if name in self.node.places()}
        assert mine == self.owners, what
        check(self.node, mine)

    def killed(self):
        before = self.node.places()
        self.node.kill()
        self.node.start()
        self.node.settle()
        assert self.node.places() == before

    def starts(self, call, error, skip):
        """It fails while it starts: it starts in spite of that, or the next time."""
        self.tries += 1
        before = self.node.places()
        self.node.kill()
        self.plan.arm(call, error, skip)
        up = tried(self.node.start)
        failed, seen = self.plan.disarm()
        self.failed += failed
        if not up and self.node.status()['pid']:  # it tries again by itself, or does without
            up = tried(self.node.connected)
        if not up:
            self.deaths += 1
            if self.node.status()['pid']:
                self.node.kill()
            self.node.start()
        self.node.settle(20)
        assert self.node.places() == before, (call, error, skip)
        return seen

    def tell(self):
        print('%d tries, %d calls failed, %d requests refused, %d ends' % (self.tries, self.failed, self.refused, self.deaths))


@pytest.mark.parametrize('policy', POLICIES)
def test_while_it_works(make_node, tmp_path, policy):
    s, rng = Supervised(make_node, tmp_path, policy), random.Random(policy)
    chosen = pairs() if DEPTH else rng.sample(pairs(), 14)
    pid = s.node.status()['pid']
    for call, error in chosen:
        seen = s.let_fail(call, error, 0)
        s.look((call, error, 0))
        for skip in range(1, min(seen, DEPTH)) if DEPTH else [rng.randrange(1, seen)] if seen > 1 else []:
            s.let_fail(call, error, skip)
            s.look((call, error, skip))
        assert s.node.status()['pid'] == pid or (call, error) in FATAL, (call, error)
    s.killed()
    s.tell()
    s.node.allow('connection was lost|died')
    assert s.failed > len(chosen) // 5


@pytest.mark.parametrize('policy', POLICIES)
def test_while_it_starts(make_node, tmp_path, policy):
    s, rng = Supervised(make_node, tmp_path, policy), random.Random(policy + ' starts')
    s.work()
    s.work()
    s.node.allow('.')
    for call, error in pairs() if DEPTH else rng.sample(pairs(), 6):
        seen = s.starts(call, error, 0)
        for skip in range(1, min(seen, DEPTH)) if DEPTH else [rng.randrange(1, seen)] if seen > 1 else []:
            s.starts(call, error, skip)
    s.work()
    s.look('after all')
    s.tell()
