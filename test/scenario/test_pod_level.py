# SPDX-License-Identifier: Apache-2.0
"""Pods with resources of their own, at random: none gets more exclusive CPUs than it requests, in whatever order its containers are created and
restarted and the pod is resized, and a daemon that is killed moves nobody."""
import random

import pytest

from operator_tools import ctl_json
from simnode import SimError, cpuset, ctr

RESERVED = {'reservedResources': {'cpu': 'cpuset:0'}}
CONFIGS = {
    'static': {'policy': 'static', 'static': RESERVED},
    'pod-scope': {'policy': 'static', 'static': {**RESERVED, 'topologyManagerPolicy': 'best-effort', 'topologyManagerScope': 'pod'}},
    'topology-aware': {'policy': 'topology-aware', 'topology-aware': RESERVED},
    'static-plus': {'policy': 'static-plus', 'static-plus': RESERVED},
    'cpuset': {'policy': 'cpuset'},
}


def containers(rand, own):
    """Containers of a pod of that many CPUs, and the sum of their own requests, which is at most the pod's."""
    left, made = own, []
    for i in range(rand.randint(1, 4)):
        kind, name = rand.choice(['none', 'none', 'whole', 'part']), 'c%d' % i
        cpus = rand.randint(1, left) if left and kind != 'none' else 0
        left -= cpus
        if not cpus:
            made.append(ctr(name))
        else:
            made.append(ctr(name, str(cpus) if kind == 'whole' else '%d/-' % cpus, '16Mi'))
    rand.shuffle(made)
    return made, own - left


def check(node, own):
    alone, places = {}, {}
    for c in ctl_json(node, 'containers'):
        if c['state'] == 'running':
            alone.setdefault(c['pod'], set()).update(cpuset(c.get('exclusive') or ''))
            places.setdefault(c['pod'], set()).update(cpuset(c['cpus'] or ''))
    for pod, cpus in alone.items():
        assert len(cpus) <= own[pod], (pod, cpus, own[pod])
        assert not any(other != pod and cpus & theirs for other, theirs in places.items()), (pod, cpus)


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('config', CONFIGS)
def test_random(make_node, config, seed):
    rand = random.Random(seed)
    node = make_node(CONFIGS[config], machine='server-2s' if seed == 2 else 'n4c16')
    own, needed = {}, {}
    for i in range(40):
        chance, pod = rand.random(), 'p%d' % i
        if chance < .55:
            n = rand.randint(1, 5)
            made, needed[pod] = containers(rand, n)
            try:
                node.create(pod, *made, resources={'cpu': str(n), 'memory': '256Mi'})
                own[pod] = n
            except SimError:
                node.run('delete', pod)
        elif chance < .75 and own:
            gone = rand.choice(sorted(own))
            node.run('delete', gone)
            del own[gone]
        elif chance < .85 and own:
            resized = rand.choice(sorted(own))
            n = max(own[resized] + rand.randint(-2, 3), needed[resized], 1)
            try:
                node.run('update-pod', {'pod': resized, 'cpu': str(n), 'memory': '256Mi'})
                own[resized] = n
            except SimError:
                pass
        elif chance < .93 and own:
            names = [n for n in node.places() if n.split('/')[0] in own]
            node.run('replace', rand.choice(sorted(names)))
        else:
            before = node.places()
            node.kill()
            node.start()
            assert node.places() == before
        check(node, own)
