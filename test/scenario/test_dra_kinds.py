# SPDX-License-Identifier: Apache-2.0
"""Claims of devices of controllers, and of several devices."""
import json

import pytest

from dra import allocated
from simnode import BUILD, ctr, eventually
from test_controllers import CLASS_KEY, add_resctrl, status_of
from test_cluster import NODE
from test_dra import BALLOONS, CLAIMS, OTHER, POD, STATIC, TOPOLOGY_AWARE, cdi, claims, ids, of_nodes, policies  # pylint: disable=unused-import
from test_history import events

GOLD = {'l3Allocation': '50%', 'allowClaims': True, 'maxClaims': 2}


def rdt(config=STATIC, **classes):
    return {**config, 'controllers': ['rdt'], 'rdt': {'partitions': {'all': {'l3Allocation': '100%', 'classes': classes or {'gold': GOLD, 'bronze': {}}}}}}


def of_class(name='gold', **more):
    return {'device': 'rdt-' + name, 'request': 'cache', 'consumedCapacity': {'instances': '1'}, **more}


def has_class(c, name, group='nri-rp.gold'):
    """The runtime starts the container in the group of the class."""
    return c.node.container(name)['given'].get('rdt') == group


def ready(c):
    """The groups have been set up, so that containers can begin in them: after that, a container without a cgroup fails."""
    c.node.create('early', ctr('c0'), annotations={CLASS_KEY: 'gold'})
    eventually(lambda: status_of(c.node, 'rdt')['failed'] == 1)
    c.node.delete('early')


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
    add_resctrl(c.node)  # the new process sets the groups up again
    c.node.start()
    assert c.node.ctl('claims') == listed
    ready(c)
    c.node.create('web', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=POD)
    assert has_class(c, 'web/c0')
    disabled = {**rdt(), 'rdt': {**rdt()['rdt'], 'enable': False}}
    for other in rdt(gold={'l3Allocation': '50%'}), rdt(bronze={}), STATIC, disabled:
        c.node.run('write-config', {**c.base, **other, 'controllers': other.get('controllers', [])})
        assert 'claim default/cache would lose its' in json.dumps(c.node.ctl('reload', check=False))
        assert c.node.ctl('claims') == [{**listed[0], 'containers': ['default/web/c0']}]
    eventually(lambda: c.answers(claim))
    # released while its container runs
    assert c.unprepare(claim) == '' and c.node.ctl('claims') == []
    assert ('released', 'claim default/cache') in {(e['kind'], e['text']) for e in events(c.node)}
    c.reconfigure()


def test_parts_of_a_claim(claims):
    """One RDT class for a claim, and the same parts in the same order."""
    c = claims(config=rdt(gold=GOLD, silver={**GOLD, 'l3Allocation': '20%'}), before=lambda node: add_resctrl(node, ('gold', 'silver')))
    both = c.put('both', **of_class(), pods=[POD], more=[of_class('silver', request='more')])
    assert 'claim default/both: has the RDT classes gold and silver: request one' in c.prepare(both).error
    assert c.node.ctl('claims') == [] and not c.files()
    part = {'device': 'cpu-node-0', 'request': 'more', 'consumedCapacity': {'cpu': '2'}}
    twice = c.put('twice', **of_class(), pods=[POD], more=[part, part])
    assert not c.prepare(twice).error
    c.node.create('web', ctr('c0', '1', '64Mi', cdi=[cdi(twice)]), uid=POD)
    assert 'claim default/twice, device cpu-node-0' in json.dumps(c.node.ctl('explain', 'web/c0'))
    c.api.put(CLAIMS, 'default', 'twice', allocated(NODE, **{'cpu': None, **of_class()}, pods=[POD], more=[part, {**part, 'device': 'cpu-node-1'}]))
    assert 'is allocated already, from device rdt-gold with 0 CPUs: delete its pods' in c.prepare(twice).error


@policies
def test_several_devices(claims, config):
    """All of them in one transaction, and the containers get all of them. The machine has memory nodes of devices."""
    c = claims(config=rdt(config), before=add_resctrl, machine='device-memory')
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
    assert ids(c.node.ctl('explain', 'web/c0')['mems'] or '') == set.union(*(ids(x['mems'] or '') for x in c.node.ctl('claims')[:2]))
    assert not c.node.ctl('claims')[2]['mems']
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


def levels(*devices):
    return {**TOPOLOGY_AWARE, 'topology-aware': {**TOPOLOGY_AWARE['topology-aware'], 'claimDevices': list(devices)}}


def attributes(**more):
    return {name.replace('numaNode', 'resource.kubernetes.io/numaNode'): {'string' if isinstance(value, str) else 'int': value} for name, value in more.items()}


def test_devices_of_caches(claims):
    """One NUMA node, eight L3 caches of 16 CPUs; CPU 0 is reserved."""
    c = claims(config=levels('node', 'l3', 'socket'), machine='l3-domains')
    found = c.devices()
    assert sorted(found) == sorted(['cpu-node-0', 'cpu-socket-0', *('cpu-l3-%d' % i for i in range(8))])
    same = {'numaNode': 0, 'package': 0, 'die': 0, 'memoryType': 'DRAM', 'isolatedCPUs': 0, 'coreType': 'performance'}
    assert found['cpu-node-0']['attributes'] == attributes(level='node', **same)
    assert found['cpu-socket-0']['attributes'] == attributes(level='socket', **same)
    assert found['cpu-l3-3']['attributes'] == attributes(level='l3', l3=3, **same)
    assert [int(found[name]['capacity']['cpu']['value']) for name in ('cpu-node-0', 'cpu-l3-0', 'cpu-l3-3')] == [127, 15, 16]
    claim = c.put('cache', device='cpu-l3-3', cpu='6', pods=[POD])
    assert not c.prepare(claim).error
    first = ids(c.node.ctl('claims')[0]['cpus'])
    rest = c.put('rest', device='cpu-l3-3', cpu='10', pods=[OTHER])
    assert not c.prepare(rest).error
    both = first | ids(c.node.ctl('claims')[1]['cpus'])
    assert len(first) == 6 and len(both) == 16 and both == set(range(24, 32)) | set(range(88, 96))
    assert 'but only 0m' in c.prepare(c.put('more', device='cpu-l3-3', cpu='1', pods=[OTHER])).error
    c.node.create('web', ctr('c0', '4', '64Mi'))
    assert not ids(c.cpus('web', 'c0')) & both
    listed = c.node.ctl('claims')
    c.node.kill()
    c.node.start()
    c.node.ctl('rebalance')
    assert c.node.ctl('claims') == listed
    # without their key there are no such devices, and the claims keep their CPUs
    c.node.run('write-config', {**c.base, **TOPOLOGY_AWARE})
    c.node.ctl('reload')
    eventually(lambda: sorted(c.devices()) == ['cpu-node-0'])
    assert c.node.ctl('claims') == listed


def test_devices_of_sockets(claims):
    """Two sockets of two NUMA nodes each."""
    c = claims(config=levels('socket'))
    found = c.devices()
    assert [name for name in found if 'socket' in name] == ['cpu-socket-0', 'cpu-socket-1']
    of_nodes = [int(found['cpu-node-%d' % i]['capacity']['cpu']['value']) for i in range(4)]
    many = of_nodes[2] + 4
    assert int(found['cpu-socket-1']['capacity']['cpu']['value']) == of_nodes[2] + of_nodes[3]
    assert 'resource.kubernetes.io/numaNode' not in found['cpu-socket-1']['attributes']
    claim = c.put('many', device='cpu-socket-1', cpu=str(many), memory='1Gi', pods=[POD])
    assert not c.prepare(claim).error
    listed = c.node.ctl('claims')
    assert len(ids(listed[0]['cpus'])) == many and ids(listed[0]['mems']) <= {2, 3}
    c.node.kill()
    c.node.start()
    assert c.node.ctl('claims') == listed
    eventually(lambda: c.answers(claim))
    assert c.unprepare(claim) == '' and c.node.ctl('claims') == []


def pages_of(c):
    """Pages of 2 MiB of the devices."""
    return {name: int(d['capacity']['hugepages2Mi']['value'].removesuffix('Mi')) // 2 if 'hugepages2Mi' in d['capacity'] else 0
            for name, d in c.devices().items()}


def huge(node, pages, cpu='1'):
    return {'device': 'cpu-node-%d' % node, 'consumedCapacity': {'cpu': cpu, 'memory': '64Mi', 'hugepages2Mi': '%dMi' % (2 * pages), 'hugepages1Gi': '0'}}


@of_nodes
def test_huge_pages_of_claims(claims, config):
    """Four nodes of four CPUs and 100 pages of 2 MiB. They are counted by node, with those of other containers."""
    c = claims(config=config, machine={'base': 'n4c16', 'memory': '16Gi', 'hugepages': {'2Mi': 100}})
    assert c.devices()['cpu-node-2']['capacity']['hugepages2Mi'] == {
        'value': '200Mi', 'requestPolicy': {'default': '0Mi', 'validRange': {'min': '0Mi', 'step': '2Mi'}}}
    # the API server accepts C identifiers
    assert all(set(d['capacity']) == {'cpu', 'memory', 'hugepages2Mi'} for d in c.devices().values())
    # those of other containers are subtracted
    c.node.create('db', ctr('c0', '1', '64Mi', hugepages={'2MB': 90 * 2 << 20}))
    eventually(lambda: sorted(pages_of(c).values()) == [10, 100, 100, 100])
    before, n_cpus = pages_of(c), sum(int(d['capacity']['cpu']['value']) for d in c.devices().values())
    claim = c.put('tables', **huge(2, 70), pods=[POD])
    reply = c.prepare(claim)
    assert not reply.error and c.prepare(claim) == reply
    # a claim that the node cannot have is refused, and gets them on another one
    error = c.prepare(c.put('more', **huge(2, 31), pods=[OTHER])).error
    assert 'device cpu-node-2: hugepages-2Mi: memory nodes 2 have 30 pages left, 31 are requested' in error
    c.prepared('other', **huge(3, 31), pods=[OTHER])
    # the pages of a container are part of its claim's
    c.node.create('web', ctr('c0', '1', '64Mi', hugepages={'2MB': 70 * 2 << 20}, cdi=[cdi(claim)]), uid=POD)
    c.node.create('web-2', ctr('c0', '1', '64Mi'))
    eventually(lambda: sum(int(d['capacity']['cpu']['value']) for d in c.devices().values()) < n_cpus)
    assert pages_of(c) == before
    listed = c.node.ctl('claims')
    c.node.kill()
    c.node.start()
    eventually(lambda: c.node.ctl('claims') == listed and c.answers(claim))
    assert '30 pages left, 31 are requested' in c.prepare(c.put('again', **huge(2, 31), pods=[OTHER])).error
    # parts of one claim are counted together
    both = c.put('both', **huge(2, 20), pods=[OTHER], more=[{'request': 'rest', **huge(2, 11)}])
    assert '10 pages left, 11 are requested' in c.prepare(both).error
    # another number of pages is another claim
    c.api.put(CLAIMS, 'default', 'tables', allocated(NODE, **huge(2, 71), pods=[POD]))
    assert 'is allocated already' in c.prepare(claim).error
    assert c.unprepare(claim) == ''
    c.node.delete('web')
    assert not c.prepare(both).error
    c.node.delete('db')
    eventually(lambda: set(pages_of(c).values()) == {100})


def test_unknown_level(claims):
    c = claims(config=TOPOLOGY_AWARE)
    c.node.run('write-config', {**c.base, **levels('core')})
    assert 'expected node, l3 or socket' in json.dumps(c.node.ctl('reload', check=False))


def test_service_of_an_older_module(claims):
    """Its struct ends before a function that the host needs: it has no devices."""
    if not (BUILD / 'test/modules/devices-old.so').exists():
        pytest.skip('test modules are not built')
    c = claims(config={'policy': 'devices-old'}, module_dirs=[str(BUILD / 'test/modules')])
    assert c.devices() == {}
    assert 'policy devices-old has no devices for claims' in c.prepare(c.put('one', cpu='1', pods=[POD])).error
    assert c.node.ctl('claims') == [] and not c.files()


def test_class_of_a_claim_has_precedence_over_that_of_the_policy(claims):
    config = {'policy': 'qos', 'qos': {'levels': {'shared_cores': {'rdtClass': 'bronze'}}}}
    c = claims(config=rdt(config), before=add_resctrl)
    claim = c.put('cache', **of_class(), pods=[POD])
    assert not c.prepare(claim).error
    ready(c)
    c.node.create('web', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), ctr('c1', '1', '64Mi'), uid=POD)
    assert has_class(c, 'web/c0') and has_class(c, 'web/c1', 'nri-rp.bronze')
    c.node.ctl('rebalance')
    assert c.node.ctl('explain', 'web/c0')['rdt_class'] == 'gold'


def test_module_that_reports_wrong_devices(claims):
    """Wrong limits have no effect. Devices that cannot be read are left out, and the rest is published."""
    if not (BUILD / 'test/modules/devices-wrong.so').exists():
        pytest.skip('test modules are not built')
    c = claims(config={'policy': 'devices-wrong'}, module_dirs=[str(BUILD / 'test/modules')])
    assert c.devices()['cpus']['capacity'] == {'cpu': {'value': '4', 'requestPolicy': {'default': '1', 'validRange': {'min': '1', 'step': '1'}}}}
    assert c.prepare(c.put('one', device='cpus', cpu='1', pods=[POD])).error
    c.node.create('web', ctr('c0', '1', '64Mi'))
    eventually(lambda: 'no devices of claims are published' in c.node.read_log())
    eventually(lambda: c.devices() == {})
    assert 'not published' not in c.node.read_log()
