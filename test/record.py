#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Records where policies put random workloads, as stories that `make check` plays again: what moves a container to another place than before
shows as a failure with both places. Each story is of one machine, one configuration and one seed, and fills the machine until pods are
refused; pods come, go, change their requests, containers are replaced, and the daemon is restarted in between.

    test/record.py [--build DIR] [--only POLICY]        writes test/scenario/stories/POLICY/recorded.yaml anew

A change that is meant is recorded anew, and the difference of the files is what is looked at.
"""
import argparse
import json
import pathlib
import random
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / 'test'))

RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
BALLOONS = {**RESERVED, 'balloonTypes': [
    {'name': 'wide', 'minCPUs': 2, 'maxCPUs': 8, 'namespaces': ['wide'], 'preferNewBalloons': True, 'shareIdleCPUsInSame': 'package'},
    {'name': 'one', 'minCPUs': 1, 'maxCPUs': 4, 'namespaces': ['one'], 'preferSpreadingPods': True, 'hideHyperthreads': True},
    {'name': 'near', 'maxCPUs': 6, 'namespaces': ['near'], 'preferCloseToDevices': [], 'allocatorPriority': 'high'}]}
# policy, machine, its section, seeds
STORIES = [
    ('topology-aware', 'n4c16', RESERVED, 3),
    ('topology-aware', 'server-2s', {**RESERVED, 'colocatePods': True}, 2),
    ('topology-aware', 'hbm-cxl', RESERVED, 2),
    ('topology-aware', 'l3-domains', {**RESERVED, 'preferSharedCPUs': True}, 1),
    ('balloons', 'n4c16', BALLOONS, 3),
    ('balloons', 'server-2s', BALLOONS, 2),
    ('balloons', 'laptop', BALLOONS, 1),
    ('static', 'n4c16', RESERVED, 2),
    ('static', 'server-2s', {'reservedResources': {'cpu': 'cpuset:0,64'}, 'cpuManagerPolicyOptions': {'distribute-cpus-across-numa': True}}, 1),
    ('static', 'l3-domains', {**RESERVED, 'cpuManagerPolicyOptions': {'prefer-align-cpus-by-uncorecache': True}}, 1),
]
STEPS = 40
NAMESPACES = ['default', 'default', 'wide', 'one', 'near']
SIZES = ['100m', '500m', '1', '1', '2', '2', '3', '4', '1500m', '6']


class Recorder:
    def __init__(self, node, rand):
        self.node, self.rand, self.steps, self.live, self.places, self.n = node, rand, [], {}, {}, 0

    def step(self, name, args):
        """A step as it went: what is refused is to be refused again."""
        from simnode import SimError  # pylint: disable=import-outside-toplevel
        try:
            self.node.run(name, args)
        except SimError as e:
            assert name in ('create', 'update') and e.result and e.result.get('failed'), e
            if name == 'create':
                self.node.run('delete', [args['pod']])  # what of it was there before one was refused
            self.steps.append(('reject' if name == 'create' else 'reject-update', args))
            return False
        self.steps.append((name, args))
        return True

    def look(self):
        """Those that are somewhere else than at the last look."""
        self.node.settle(50)
        now = {name.rsplit('/', 1)[1]: place for name, place in self.node.places().items()}
        moved = ['%s(%s) == %s' % (what, name, place[i]) for name, place in sorted(now.items()) if self.places.get(name) != place
                 for i, what in enumerate(('cpus', 'mems')) if place[i]]
        self.places = now
        if moved:
            self.steps.append(('expect', moved))

    def create(self):
        rand = self.rand
        self.n += 1
        pod, ctrs = 'p%d' % self.n, []
        for k in range(rand.choice([1, 1, 1, 2])):
            cpu, memory = rand.choice(SIZES), rand.choice(['64Mi', '256Mi', '1Gi'])
            ctrs.append(rand.choice([{'cpu': cpu, 'memory': memory}] * 4 + [{'cpu': cpu + '/8', 'memory': memory}, {}]) | {'name': 'c%d%s' % (self.n, 'ab'[k])})
        if self.step('create', {'pod': pod, 'namespace': rand.choice(NAMESPACES), 'containers': ctrs}):
            self.live[pod] = [c['name'] for c in ctrs]

    def change(self):
        chance = self.rand.random()
        if chance < .6 or len(self.live) < 3:
            self.create()
        elif chance < .85:
            pod = self.rand.choice(sorted(self.live))
            del self.live[pod]
            self.step('delete', [pod])
        elif chance < .95:
            name = self.rand.choice(self.rand.choice([self.live[p] for p in sorted(self.live)]))
            self.step('update', {'container': name, 'cpu': self.rand.choice(SIZES)})
        else:
            self.step('restart', None)


def text_of(step):
    name, args = step
    return '- %s:' % name if args is None else '- %s: %s' % (name, json.dumps(args))


def record(policy, machine, section, seed):
    from simnode import Node  # pylint: disable=import-outside-toplevel
    config = {'policy': policy, policy: section}
    with Node(config, machine=machine) as node:
        r = Recorder(node, random.Random('%s %s %d' % (policy, machine, seed)))
        for _ in range(STEPS):
            r.change()
            r.look()
    head = ['name: recorded on %s, seed %d' % (machine, seed), 'machine: %s' % machine, 'config: %s' % json.dumps(config), 'steps:']
    return '\n'.join(head + [text_of(s) for s in r.steps]) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', help='this policy alone')
    args = parser.parse_args()
    for policy in dict.fromkeys(s[0] for s in STORIES):
        if args.only not in (None, policy):
            continue
        texts = [record(policy, machine, section, seed) for p, machine, section, seeds in STORIES if p == policy for seed in range(seeds)]
        path = TOP / 'test/scenario/stories' / policy / 'recorded.yaml'
        path.write_text('# SPDX-License-Identifier: Apache-2.0\n# Made by test/record.py.\n' + '---\n'.join(texts))
        print('%s: %d stories' % (path.relative_to(TOP), len(texts)))


if __name__ == '__main__':
    main()
