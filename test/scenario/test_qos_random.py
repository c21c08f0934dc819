# SPDX-License-Identifier: Apache-2.0
"""Pods of all levels come, go and change at random: nobody loses what is dedicated, and a kill moves nobody."""
import itertools
import json
import random

import pytest

from simnode import SimError, cpuset, ctr

DOMAIN = 'katalyst.kubewharf.io/'
LEVELS = ['dedicated_cores'] * 3 + ['shared_cores'] * 3 + ['reclaimed_cores', 'system_cores', None]


def configuration(rand):
    section = {'rampUpSeconds': rand.choice([0, 0, 3600]), 'enableReclaim': rand.random() < .5, 'reservedCPUCount': 2,
               'allowSharedOverlapReclaimed': rand.random() < .3, 'numaHintPolicy': rand.choice(['spreading', 'packing', 'dynamic_packing']),
               'topologyPolicy': rand.choice(['best-effort', 'best-effort', 'none', 'restricted', 'single-numa-node', 'numeric'])}
    return {'policy': 'qos', 'qos': section}


def annotations(rand, level):
    memory = {key: 'true' for key, share in (('numa_binding', .9 if level == 'dedicated_cores' else .4), ('numa_exclusive', .3)) if rand.random() < share}
    cpu = {key: 'true' for key in ('align_by_socket', 'distribute_evenly_across_numa', 'full_pcpus_pairing') if rand.random() < .15}
    for key, share, values in (('numa_share', .1, ['false']), ('cpuset_pool', .2, ['batch', 're', 'share']), (DOMAIN + 'numa_number', .15, '0123'),
                               (DOMAIN + 'numa_ids', .1, ['0', '0-1', '9'])):
        if rand.random() < share:
            cpu[key] = rand.choice(values)
    found = {DOMAIN + 'memory_enhancement': json.dumps(memory), DOMAIN + 'cpu_enhancement': json.dumps(cpu)}
    return {**found, DOMAIN + 'qos_level': level} if level else found


def maybe(step, *args, **more):
    """A step that may be refused; what is refused changes nothing, which the simulator looks at."""
    try:
        step(*args, **more)
        return True
    except SimError as e:
        assert e.result and e.result.get('failed'), e
        return False


def check(node, levels):
    own = {}
    for name, (cpus, _) in node.places().items():
        if levels[name.split('/')[0]] == 'dedicated_cores':
            own.setdefault(name.split('/')[0], set()).update(cpuset(cpus))
    for a, b in itertools.combinations(own, 2):
        assert not own[a] & own[b], (a, b)


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('machine', ['n4c16', 'server-2s'])
def test_random(make_node, machine, seed):
    rand = random.Random(seed)
    node = make_node(configuration(rand), machine=machine)
    alive, levels = {}, {}
    for i in range(60):
        chance, pod = rand.random(), 'p%d' % i
        if chance < .6:
            levels[pod] = rand.choice(LEVELS)
            names = ['%sc%d' % (pod, k) for k in range(rand.choice([1, 1, 2, 3]))]
            ctrs = [ctr(name, rand.choice([None, '100m', '1', '1500m', '2', '5']), rand.choice([None, '64Mi', '1Gi'])) for name in names]
            if maybe(node.create, pod, *ctrs, annotations=annotations(rand, levels[pod])):
                alive[pod] = names
        elif chance < .75 and alive:
            pod = rand.choice(list(alive))
            node.delete(pod)
            del alive[pod]
        elif chance < .82 and alive:
            maybe(node.exit, rand.choice(rand.choice(list(alive.values()))))
        elif chance < .9 and alive:
            maybe(node.update, rand.choice(rand.choice(list(alive.values()))), cpu=rand.choice(['500m', '1', '2', '4']))
        elif chance < .94:
            node.config(configuration(rand))
        else:
            node.settle()
            before = node.places()
            node.kill()
            node.start()
            node.settle()
            assert node.places() == before
        check(node, levels)
