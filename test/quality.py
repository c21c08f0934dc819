#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
How many containers that fit into one NUMA node are spread over several, by policy and machine. Random containers with exclusive CPUs come
and go on a nearly full machine.

    test/quality.py [--policy NAME] [--machine NAME] [--seeds N] [--arrivals N]

  crossing    spread over nodes, of all containers placed
  avoidable   spread although a single node had room at that moment
  3 moves     spread although at most three moves would have made room, as an exact solver finds
  possible    spread although all containers of the moment could have been placed in one node each, as another one finds
  refused     not placed at all; refusals are counted by the solvers, too
Each row is without relief, and with relief at admission and at rebalance, exclusive containers included.
"""
import argparse
import collections
import contextlib
import functools
import pathlib
import random
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / 'test'))

# Two nodes of two performance cores with two threads each and four efficient cores.
HYBRID = {'packages': 2, 'dies': 1, 'nodes': 1, 'kinds': [{'name': 'P', 'type': 'performance', 'cores': 2, 'threads': 2},
                                                         {'name': 'E', 'type': 'efficient', 'cores': 4, 'threads': 1}]}
MACHINES = {
    'n4c16': 'n4c16',
    'snc-2x2': {'packages': 2, 'dies': 1, 'nodes': 2, 'cores': 6, 'threads': 1},
    'nodes-8': {'packages': 2, 'dies': 1, 'nodes': 4, 'cores': 4, 'threads': 1},
    'smt-2x2': {'packages': 2, 'dies': 1, 'nodes': 2, 'cores': 4, 'threads': 2},
    'hbm-cxl': 'hbm-cxl',
    'hybrid': HYBRID,
}
RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
POLICIES = {
    'topology-aware': RESERVED,
    'static': RESERVED,
    'static-plus': RESERVED,
    'cpuset': {**RESERVED, 'minSharedCPUs': 0, 'sharedOverlap': True},
    'qos': {'reservedCPUs': '0', 'rampUpSeconds': 0},
    'balloons': {**RESERVED, 'balloonTypes': [{'name': 'x', 'minCPUs': 1, 'preferNewBalloons': True, 'namespaces': ['default']}]},
}
DEDICATED = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding":"true"}'}
MOVES = 3
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


def fits_after_moves(rooms, items, size, left=MOVES):
    """Has a node room for the size after at most so many moves of items (node, size)? Exact. All moves are made at once."""
    short = [i for i, room in enumerate(rooms) if room < 0]
    if not short and any(room >= size for room in rooms):
        return True
    if not left or len(short) > left:
        return False
    for at, (unit, n) in enumerate(items):
        for to in range(len(rooms)) if not short or unit in short else ():
            after = list(rooms)
            after[unit] += n
            after[to] -= n
            if to != unit and fits_after_moves(after, items[:at] + items[at + 1:], size, left - 1):
                return True
    return False


def nodes_of(node):
    """CPUs of each NUMA node that has some, without CPU 0, which is reserved."""
    from simnode import cpuset  # pylint: disable=import-outside-toplevel
    root = pathlib.Path(node.paths['root']) / 'sys/devices/system/node'
    sets = [cpuset((f / 'cpulist').read_text().strip()) - {0} for f in sorted(root.glob('node[0-9]*'))]
    return [s for s in sets if s]


def places_of(node):
    from simnode import cpuset  # pylint: disable=import-outside-toplevel
    return {name.rsplit('/', 1)[1][:-1]: cpuset(place[0]) for name, place in node.places().items()}


def judge(res, nodes, before, size, sizes):
    """Counts a container of that size that crosses or was refused. `before`: CPU sets of the others; `sizes`: of all of them and of it."""
    used = set().union(*before)
    rooms = [len(n - used) for n in nodes]
    items = [(i, len(cpus)) for cpus in before for i, n in enumerate(nodes) if cpus <= n]
    res['avoidable'] += max(rooms) >= size
    res['moves'] += fits_after_moves(rooms, items, size)
    res['possible'] += bool(fits(sizes, [len(n) for n in nodes]))


def play(policy, machine, relief, seed, arrivals):
    from simnode import Node, SimError  # pylint: disable=import-outside-toplevel
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
            before = places_of(node)
            made = {'pod': pod, 'annotations': DEDICATED, 'containers': [{'name': pod + 'c', 'cpu': str(size), 'memory': '16Mi'}]}
            try:
                node.run('create', made)
            except SimError:
                res['refused'] += 1
                judge(res, nodes, list(before.values()), size, [*live.values(), size])
                with contextlib.suppress(SimError):  # the pod itself was refused
                    node.run('delete', [pod])
                continue
            live[pod] = size
            node.settle(100 if relief == 'rebalance' else 20)
            res['placed'] += 1
            if sum(bool(places_of(node)[pod] & n) for n in nodes) > 1:
                res['crossing'] += 1
                judge(res, nodes, list(before.values()), size, list(live.values()))
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
    print('%-15s %-9s %-10s %9s %6s %9s %9s %9s %8s' % ('policy', 'machine', 'relief', 'crossing', 'of', 'avoidable', '3 moves', 'possible', 'refused'))
    for policy in args.policy or POLICIES:
        for machine in args.machine or MACHINES:
            for relief in RELIEF:
                r = measure(policy, machine, relief, args.seeds, args.arrivals)
                print('%-15s %-9s %-10s %8.1f%% %6d %9d %9d %9d %8d' % (policy, machine, relief, 100 * r['crossing'] / max(1, r['placed']), r['placed'],
                                                                      r['avoidable'], r['moves'], r['possible'], r['refused']), flush=True)


if __name__ == '__main__':
    main()
