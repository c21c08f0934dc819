#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
How many containers that fit into one NUMA node are spread over several, by policy and machine. Random containers with exclusive CPUs come
and go on a nearly full machine.

    test/quality.py [--policy NAME] [--machine NAME] [--seeds N] [--arrivals N]

  crossing    spread over nodes, of all containers placed
  avoidable   spread although a single node had room at that moment
  possible    spread although all containers of the moment could have been placed in one node each: what an exact solver finds
Each row is without relief, and with relief at admission and at rebalance, exclusive containers included.
"""
import argparse
import collections
import functools
import pathlib
import random
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / 'test'))

MACHINES = {
    'n4c16': 'n4c16',
    'snc-2x2': {'packages': 2, 'dies': 1, 'nodes': 2, 'cores': 6, 'threads': 1},
    'nodes-8': {'packages': 2, 'dies': 1, 'nodes': 4, 'cores': 4, 'threads': 1},
    'smt-2x2': {'packages': 2, 'dies': 1, 'nodes': 2, 'cores': 4, 'threads': 2},
    'hbm-cxl': 'hbm-cxl',
}
RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
POLICIES = {
    'topology-aware': RESERVED,
    'static': RESERVED,
    'static-plus': RESERVED,
    'cpuset': {**RESERVED, 'minSharedCPUs': 0, 'sharedOverlap': True},
    'balloons': {**RESERVED, 'balloonTypes': [{'name': 'x', 'minCPUs': 1, 'preferNewBalloons': True, 'namespaces': ['default']}]},
}
RELIEF = {
    'off': {'moves': 0},
    'admission': {'at': 'admission', 'exclusive': 'all', 'cooldown': '1ms'},
    'rebalance': {'at': 'rebalance', 'exclusive': 'all', 'cooldown': '1ms'},
}
SOLVER_STEPS = 200000


def fits(sizes, rooms):
    """Can containers of these sizes lie in one node each? Exact; None: it would take too long."""
    steps = 0

    @functools.lru_cache(maxsize=None)
    def put(at, left):
        nonlocal steps
        steps += 1
        if at == len(sizes):
            return True
        if steps > SOLVER_STEPS:
            raise OverflowError
        return any(put(at + 1, tuple(sorted(left[:i] + (room - sizes[at],) + left[i + 1:])))
                   for i, room in enumerate(left) if room >= sizes[at] and room not in left[:i])
    sizes = sorted(sizes, reverse=True)
    try:
        return put(0, tuple(sorted(rooms)))
    except OverflowError:
        return None


def nodes_of(node):
    """CPUs of each NUMA node that has some, without CPU 0, which is reserved."""
    from simnode import cpuset  # pylint: disable=import-outside-toplevel
    root = pathlib.Path(node.paths['root']) / 'sys/devices/system/node'
    sets = [cpuset((f / 'cpulist').read_text().strip()) - {0} for f in sorted(root.glob('node[0-9]*'))]
    return [s for s in sets if s]


def play(policy, machine, relief, seed, arrivals):
    from simnode import Node, SimError, cpuset  # pylint: disable=import-outside-toplevel
    rand, live, res = random.Random('quality %s %d' % (machine, seed)), {}, collections.Counter()
    section = {**POLICIES[policy], 'relief': RELIEF[relief]}
    with Node({'policy': policy, policy: section}, machine=MACHINES[machine]) as node:
        nodes = nodes_of(node)
        largest = max(len(n) for n in nodes)
        full = sum(len(n) for n in nodes) - max(1, len(nodes) // 4)
        for i in range(arrivals):
            size = rand.choice([s for s in (1, 1, 2, 2, 2, 3, 4, 5, 6) if s <= largest])
            while sum(live.values()) + size > full:
                gone = rand.choice(sorted(live))
                del live[gone]
                node.run('delete', [gone])
            pod = 'p%d' % i
            before = {n.rsplit('/', 1)[1][:-1]: cpuset(p[0]) for n, p in node.places().items()}
            try:
                node.run('create', {'pod': pod, 'containers': [{'name': pod + 'c', 'cpu': str(size), 'memory': '16Mi'}]})
            except SimError:
                res['refused'] += 1
                node.run('delete', [pod])
                continue
            live[pod] = size
            node.settle(100 if relief == 'rebalance' else 20)
            now = {n.rsplit('/', 1)[1][:-1]: cpuset(p[0]) for n, p in node.places().items()}
            res['placed'] += 1
            if sum(bool(now[pod] & n) for n in nodes) < 2:
                continue
            res['crossing'] += 1
            used = set().union(*(c for p, c in before.items() if p != pod), set())
            res['avoidable'] += any(len(n - used) >= size for n in nodes)
            res['possible'] += bool(fits(list(live.values()), [len(n) for n in nodes]))
    return res


def measure(policy, machine, relief, seeds, arrivals):
    return sum((play(policy, machine, relief, seed, arrivals) for seed in range(seeds)), collections.Counter())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--policy', action='append', choices=POLICIES)
    parser.add_argument('--machine', action='append', choices=MACHINES)
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--arrivals', type=int, default=40)
    args = parser.parse_args()
    print('%-15s %-9s %-10s %9s %6s %9s %9s %8s' % ('policy', 'machine', 'relief', 'crossing', 'of', 'avoidable', 'possible', 'refused'))
    for policy in args.policy or POLICIES:
        for machine in args.machine or MACHINES:
            for relief in RELIEF:
                r = measure(policy, machine, relief, args.seeds, args.arrivals)
                print('%-15s %-9s %-10s %8.1f%% %6d %9d %9d %8d' % (policy, machine, relief, 100 * r['crossing'] / max(1, r['placed']), r['placed'],
                                                                  r['avoidable'], r['possible'], r['refused']), flush=True)


if __name__ == '__main__':
    main()
