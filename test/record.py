#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Records where policies put random workloads. test_recorded.py plays the workloads again, and fails with both places if a container is put
elsewhere than recorded. A workload has one machine, one configuration and one seed, from which its steps follow. It fills the machine
until pods are refused; pods are created, deleted and resized, and the daemon is restarted in between.

    test/record.py                                      rewrites test/scenario/recorded.json

After an intended change, record again and review the difference of the file: a line is a step, with the containers that it moved.
"""
import json
import pathlib
import random
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / 'test'))

RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
BALLOONS = {**RESERVED, 'balloonTypes': [
    {'name': 'wide', 'minCPUs': 2, 'maxCPUs': 8, 'namespaces': ['wide'], 'preferNewBalloons': True, 'shareIdleCPUsInSame': 'package'},
    {'name': 'one', 'minCPUs': 1, 'maxCPUs': 4, 'namespaces': ['one'], 'preferSpreadingPods': True, 'hideHyperthreads': True},
    {'name': 'near', 'maxCPUs': 6, 'namespaces': ['near'], 'preferCloseToDevices': [], 'allocatorPriority': 'high'}]}
# policy, machine, section, number of seeds
WORKLOADS = [
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
RECORDED = TOP / 'test/scenario/recorded.json'
STEPS = 40
LATE_S = 8  # time in which recorded places must be reached on a busy machine
NAMESPACES = ['default', 'default', 'wide', 'one', 'near']
SIZES = ['100m', '500m', '1', '1', '2', '2', '3', '4', '1500m', '6']


class Workload:
    def __init__(self, node, rand, recorded):
        self.node, self.rand, self.recorded, self.lines, self.live, self.places, self.n = node, rand, recorded, [], {}, {}, 0

    def step(self, text, name, args):
        """Runs a step, which may be refused, and records it with the containers that it moved."""
        from simnode import SimError  # pylint: disable=import-outside-toplevel
        refused = False
        try:
            self.node.run(name, args)
        except SimError as e:
            assert name in ('create', 'update') and e.result and e.result.get('failed'), e
            refused = True
            if name == 'create':
                self.node.run('delete', [args['pod']])  # the containers created before the refused one
        if not self.recorded:
            self.node.settle(50)
        wanted, end = self.recorded[len(self.lines):][:1], time.monotonic() + LATE_S
        while True:
            places = self.node.places()
            moves = ['%s %s %s' % (name.rsplit('/', 1)[1], *place) for name, place in sorted(places.items()) if self.places.get(name) != place]
            line = text + ' refused' * refused + (': ' + ', '.join(moves) if moves else '')
            if not wanted or [line] == wanted or time.monotonic() > end:
                break
            time.sleep(0.02)
        assert not wanted or [line] == wanted, 'step %d: %s, recorded: %s' % (len(self.lines) + 1, line, wanted[0])
        self.lines.append(line)
        self.places = places
        return not refused

    def create(self):
        rand = self.rand
        self.n += 1
        pod, ctrs = 'p%d' % self.n, []
        for k in range(rand.choice([1, 1, 1, 2])):
            cpu, memory = rand.choice(SIZES), rand.choice(['64Mi', '256Mi', '1Gi'])
            ctrs.append(rand.choice([{'cpu': cpu, 'memory': memory}] * 4 + [{'cpu': cpu + '/8', 'memory': memory}, {}]) | {'name': 'c%d%s' % (self.n, 'ab'[k])})
        if self.step('create ' + pod, 'create', {'pod': pod, 'namespace': rand.choice(NAMESPACES), 'containers': ctrs}):
            self.live[pod] = [c['name'] for c in ctrs]

    def change(self):
        chance = self.rand.random()
        if chance < .6 or len(self.live) < 3:
            self.create()
        elif chance < .85:
            pod = self.rand.choice(sorted(self.live))
            del self.live[pod]
            self.step('delete ' + pod, 'delete', [pod])
        elif chance < .95:
            name = self.rand.choice(self.rand.choice([self.live[p] for p in sorted(self.live)]))
            size = self.rand.choice(SIZES)
            self.step('update %s to %s' % (name, size), 'update', {'container': name, 'cpu': size})
        else:
            self.step('restart', 'restart', None)


def workloads():
    """The policy, machine and section of each workload, by a name that begins with the policy and ends with the seed."""
    return {'%s %s %d' % (policy, machine, seed): (policy, machine, section) for policy, machine, section, n in WORKLOADS for seed in range(n)}


def play(name, recorded=()):
    """The steps of a workload with the places they led to. Places may come late if they are those recorded."""
    from simnode import Node  # pylint: disable=import-outside-toplevel
    policy, machine, section = workloads()[name]
    with Node({'policy': policy, policy: section}, machine=machine) as node:
        workload = Workload(node, random.Random(name), recorded)
        for _ in range(STEPS):
            workload.change()
        return workload.lines


if __name__ == '__main__':
    RECORDED.write_text(json.dumps({name: play(name) for name in workloads()}, indent=0) + '\n')
