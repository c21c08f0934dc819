# SPDX-License-Identifier: Apache-2.0
"""Claims of devices of controllers, and of several devices."""
import json

from dra import allocated
from simnode import ctr, eventually
from test_controllers import add_resctrl, get
from test_cluster import NODE
from test_dra import BALLOONS, CLAIMS, OTHER, POD, STATIC, cdi, claims, ids, policies  # pylint: disable=unused-import

GOLD = {'l3Allocation': '50%', 'allowClaims': True, 'maxClaims': 2}


def rdt(config=STATIC, **classes):
    return {**config, 'controllers': ['rdt'], 'rdt': {'partitions': {'all': {'l3Allocation': '100%', 'classes': classes or {'gold': GOLD, 'bronze': {}}}}}}


def of_class(name='gold', **more):
    return {'device': 'rdt-' + name, 'request': 'cache', 'consumedCapacity': {'instances': '1'}, **more}


def has_class(c, name, group='nri-rp.gold'):
    """The runtime starts the container in the group of the class."""
    return c.node.container(name)['given'].get('rdt') == group


def ready(c):
    """The groups have been set up, so that containers can begin in them."""
    eventually(lambda: 'L3:0=3ff;1=3ff' in get(c.node, 'sys/fs/resctrl/nri-rp.gold/schemata'))


def test_class_that_can_be_claimed(claims):
    c = claims(config=rdt(), before=add_resctrl)
    found = c.devices()
    assert 'rdt-bronze' not in found and 'cpu-node-0' in found
    assert found['rdt-gold'] == {'name': 'rdt-gold', 'allowMultipleAllocations': True,
                                 'attributes': {'class': {'string': 'gold'}, 'ways': {'int': 10}},
                                 'capacity': {'instances': {'value': '2', 'requestPolicy': {'default': '1', 'validRange': {'min': '1', 'step': '1', 'max': '1'}}}}}
    claim = c.put('cache', **of_class(), pods=[POD])
    reply = c.prepare(claim)
    assert not reply.error and reply.devices[0].device_name == 'rdt-gold'
    # the container is placed by its own requests, and has the class
    ready(c)
    c.node.create('web', ctr('c0', '2', '64Mi', cdi=[cdi(claim)]), ctr('c1', '1', '64Mi'), uid=POD)
    assert len(ids(c.cpus('web', 'c0'))) == 2
    assert has_class(c, 'web/c0')
    assert not has_class(c, 'web/c1')
    # a pod that is not in the claim gets nothing
    c.node.create('thief', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=OTHER)
    assert 'is not reserved for this pod' in json.dumps(c.node.ctl('explain', 'thief/c0')) and not has_class(c, 'thief/c0')


def test_number_of_claims_of_a_class(claims):
    c = claims(config=rdt(), before=add_resctrl)
    mine = [c.put('c%d' % i, **of_class(), pods=[POD]) for i in range(3)]
    assert not c.prepare(mine[0]).error and not c.prepare(mine[1]).error
    assert 'RDT class gold has 2 claims' in c.prepare(mine[2]).error
    assert c.unprepare(mine[0]) == '' and not c.prepare(mine[2]).error
    assert 'this node has no device rdt-bronze' in c.prepare(c.put('bad', **of_class('bronze'), pods=[POD])).error
    assert 'no controller has a device cpu-node-0' in c.prepare(c.put('none', device='cpu-node-0', consumedCapacity={'memory': '1Gi'}, pods=[POD])).error
    assert len(c.node.ctl('claims')) == 2


def test_class_of_a_claim_survives_restarts(claims):
    c = claims(config=rdt(), before=add_resctrl)
    claim = c.put('cache', **of_class(), pods=[POD])
    assert not c.prepare(claim).error
    listed = c.node.ctl('claims')
    c.node.kill()
    c.node.start()
    assert c.node.ctl('claims') == listed
    ready(c)
    c.node.create('web', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=POD)
    assert has_class(c, 'web/c0')
    for other in rdt(gold={'l3Allocation': '50%'}), rdt(bronze={}), STATIC:
        c.node.run('write-config', {**c.base, **other, 'controllers': other.get('controllers', [])})
        assert 'claim default/cache would lose its' in json.dumps(c.node.ctl('reload', check=False))
        assert c.node.ctl('claims') == [{**listed[0], 'containers': ['default/web/c0']}]
    eventually(lambda: c.answers(claim))
    # released while its container runs
    assert c.unprepare(claim) == '' and c.node.ctl('claims') == []
    assert 'its claim was released while it runs' in json.dumps(c.node.ctl('explain', 'web/c0'))
    c.reconfigure()


@policies
def test_several_devices(claims, config):
    """All of them in one transaction, and the containers get all of them."""
    c = claims(config=rdt(config), before=add_resctrl)
    second = {'device': c.device if config == BALLOONS else 'cpu-node-1', 'request': 'more', 'consumedCapacity': {'cpu': '2', 'memory': '64Mi'}}
    claim = c.put('all', cpu='4', memory='64Mi', pods=[POD], more=[second, of_class()])
    # nothing is left of a claim that fails in part
    broken = c.put('broken', cpu='4', pods=[POD], more=[second, of_class('bronze')])
    assert 'rdt-bronze' in c.prepare(broken).error and c.node.ctl('claims') == [] and not c.files()
    reply = c.prepare(claim)
    assert not reply.error
    assert [(d.request_names[0], d.device_name, list(d.cdi_device_ids)) for d in reply.devices] == [
        ('cpus', c.device, [cdi(claim)]), ('more', second['device'], [cdi(claim)]), ('cache', 'rdt-gold', [cdi(claim)])]
    assert c.prepare(claim) == reply
    parts = [(x['device'], ids(x['cpus'] or '')) for x in c.node.ctl('claims')]
    assert [(name, len(cpus)) for name, cpus in parts] == [(c.device, 4), (second['device'], 2), ('rdt-gold', 0)]
    mine = set.union(*(cpus for _, cpus in parts))
    assert len(mine) == 6
    env = json.loads((c.cdi / c.files()[0]).read_text())['devices'][0]['containerEdits']['env']
    assert ids(next(e for e in env if 'CPUS' in e).partition('=')[2]) == mine
    ready(c)
    c.node.create('web', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=POD)
    assert ids(c.cpus('web', 'c0')) == mine
    assert has_class(c, 'web/c0')
    listed = c.node.ctl('claims')
    c.node.kill()
    c.node.start()
    eventually(lambda: c.node.ctl('claims') == listed)
    assert ids(c.cpus('web', 'c0')) == mine
    c.node.create('db', ctr('c0', '2', '64Mi'))
    assert not ids(c.cpus('db', 'c0')) & mine
    # another number of devices is another claim
    eventually(lambda: c.answers(claim))
    c.api.put(CLAIMS, 'default', 'all', allocated(NODE, device=c.device, cpu='4', memory='64Mi', pods=[POD]))
    assert 'is allocated already' in c.prepare(claim).error
    # released while its container runs, all devices at once
    assert c.unprepare(claim) == '' and c.node.ctl('claims') == [] and not c.files()
    assert 'its claim was released while it runs' in json.dumps(c.node.ctl('explain', 'web/c0'))
    c.node.delete('web')
    again = c.put('again', cpu='4', memory='64Mi', pods=[OTHER], more=[second])
    assert not c.prepare(again).error and c.unprepare(again) == '' and c.node.ctl('claims') == []
