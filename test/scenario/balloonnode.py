# SPDX-License-Identifier: Apache-2.0
"""What tests of the balloons policy share: configurations, a machine without a free CPU, and a change of configuration that is foretold."""
import json

from simnode import cpuset, ctr

BALLOON = 'balloon.balloons.resource-policy.nri.io'


def options(*types, **values):
    section = {'reservedResources': {'cpu': '1'}, 'balloonTypes': list(types), **values}
    return {'policy': 'balloons', 'balloons': section}


def full(make_node):
    """
    16 CPUs, all of them in balloons: the reserved one, four of 2 of type a, one of 4 of b, one of 3 by default. Packing, each takes the
    first whole core of the fuller part: reserved[0] has 0, a0 to a3 2-3, 4-5, 6-7 and 8-9, b[0] 10-13, default[0] what is left, 1,14-15.
    """
    node = make_node(options({'name': 'a', 'preferNewBalloons': True, 'preferSpreadingPods': True}, {'name': 'b'}))
    node.create('k', ctr('k0', '1', '64Mi'), namespace='kube-system')
    for i in range(4):
        node.create(f'a{i}', ctr(f'a{i}c', '2', '64Mi'), annotations={BALLOON: 'a'})
    node.create('b', ctr('b0', '2', '64Mi'), ctr('b1', '2', '64Mi'), annotations={BALLOON: 'b'})
    node.create('d', ctr('d0', '3', '64Mi'))
    assert set().union(*(cpuset(cpus) for cpus, _ in node.places().values())) == set(range(16))
    return node


def change(node, tmp_path, config):
    """Asks for the plan, does it, and compares: who has moved, and where to."""
    before = node.places()
    new = tmp_path / 'new.conf'
    new.write_text(json.dumps(config))
    plan = node.ctl('plan', str(new))
    assert plan['outcome'] == 'accepted' and node.places() == before
    promised = {m['container'].removeprefix('default/'): (m['to_cpus'], m['to_mems']) for m in plan['moves']}
    node.config(config)
    node.settle()
    after = node.places()
    moved = {name: place for name, place in after.items() if place != before[name]}
    assert {n: p for n, p in promised.items() if p != before[n]} == moved
    return moved
