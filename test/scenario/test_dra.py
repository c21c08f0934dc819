# SPDX-License-Identifier: Apache-2.0
"""Claims of CPUs and memory (Dynamic Resource Allocation): a kubelet, an API server, a real nri-rp-agent and a real nri-rpd."""
import contextlib
import json
import pathlib
import re
import shutil
import tempfile
import threading

import grpc
import pytest
import yaml

from dra import DRIVER, Kubelet, allocated
from simnode import ctr, eventually
from test_cluster import NODE, Cluster

MANIFESTS = pathlib.Path(__file__).resolve().parents[2] / 'packaging' / 'kubernetes' / 'dra'
SLICES, CLAIMS = 'resourceslices', 'resourceclaims'
SLICE = '%s-%s' % (NODE, DRIVER)
STATIC = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}
CPUSET = {'policy': 'cpuset', 'cpuset': {'reservedResources': {'cpu': 'cpuset:0'}}}
TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}
BALLOONS = {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': [{'name': 'fast', 'shareIdleCPUsInSame': 'numa'}]}}
policies = pytest.mark.parametrize('config', [STATIC, CPUSET, TOPOLOGY_AWARE, BALLOONS], ids=lambda c: c['policy'])
of_nodes = pytest.mark.parametrize('config', [STATIC, CPUSET, TOPOLOGY_AWARE], ids=lambda c: c['policy'])
MACHINE = 'server-2s'
POD, OTHER = 'aaaaaaaa-0000-4000-8000-000000000001', 'aaaaaaaa-0000-4000-8000-000000000002'


class Claims(Cluster):
    def __init__(self, make_node, folder, config=None, version='v1', machine=MACHINE, **more):
        self.cdi, root = folder / 'cdi', tempfile.mkdtemp(prefix='nri-rp-dra-')  # names of sockets are short
        self.folder = root
        self.kubelet = Kubelet(root, version)
        self.device = 'balloon-fast' if config and config['policy'] == 'balloons' else 'cpu-node-0'
        super().__init__(make_node, folder, config={'dra': {'enabled': True}, **(config or STATIC)}, head={'machine': machine},
                         agent=['--kubelet-root', root, '--cdi-dir', self.cdi], **{'speed': 5, **more})

    def __exit__(self, *what):
        shutil.rmtree(self.folder, ignore_errors=True)
        return super().__exit__(*what)

    def ready(self):
        eventually(lambda: self.api.find(SLICES, None, SLICE))
        eventually(self.kubelet.socket.exists)
        self.kubelet.register()
        return self

    def devices(self):
        found = self.api.find(SLICES, None, SLICE)
        return {d['name']: d for d in found['spec']['devices']} if found else {}

    def put(self, name, **more):
        """A claim that was allocated; as the kubelet names it."""
        uid = self.api.put(CLAIMS, 'default', name, allocated(NODE, **{'device': self.device, **more}))['metadata']['uid']
        return 'default', name, uid

    def files(self):
        return sorted(p.name for p in self.cdi.iterdir()) if self.cdi.exists() else []

    def prepare(self, claim):
        return self.kubelet.prepare(claim)[claim[2]]

    def prepared(self, name, **more):
        claim = self.put(name, **more)
        reply = self.prepare(claim)
        assert not reply.error, reply.error
        return claim

    def answers(self, claim):
        """Whether the driver prepares the claim by now; an agent that has just started does not listen yet."""
        with contextlib.suppress(grpc.RpcError):
            return not self.prepare(claim).error
        return False

    def unprepare(self, claim):
        return self.kubelet.unprepare(claim)[claim[2]].error

    def released(self, claim):
        """Whether the driver has released the claim by now."""
        with contextlib.suppress(grpc.RpcError):
            return self.unprepare(claim) == ''
        return False

    def cpus(self, pod, container):
        return self.node.ctl('explain', '%s/%s' % (pod, container))['cpus']


def cdi(claim):
    return '%s/claim=%s' % (DRIVER, claim[2])


def ids(text):
    """The CPUs of a list."""
    out = set()
    for part in filter(None, text.split(',')):
        low, _, high = part.partition('-')
        out |= set(range(int(low), int(high or low) + 1))
    return out


@pytest.fixture
def claims(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Claims(make_node, tmp_path, **more)).ready()


def test_driver_registers(claims):
    c = claims()
    info = c.kubelet.info
    assert (info.type, info.name) == ('DRAPlugin', DRIVER)
    assert list(info.supported_versions) == ['v1.DRAPlugin', 'v1beta1.DRAPlugin']
    eventually(lambda: 'the kubelet has registered the driver' in c.agent.read_log())
    c.kubelet.register(error='a reason')
    eventually(lambda: 'does not register the driver nri-rp.nri.io: a reason' in c.agent.read_log())


@of_nodes
def test_devices_are_published(claims, config):
    c = claims(config=config)
    found = c.api.find(SLICES, None, SLICE)
    node = c.api.find('nodes', None, NODE)
    assert found['metadata']['ownerReferences'] == [{'apiVersion': 'v1', 'kind': 'Node', 'name': NODE, 'uid': node['metadata']['uid']}]
    spec = found['spec']
    assert (spec['driver'], spec['nodeName'], spec['pool']['name'], spec['pool']['resourceSliceCount']) == (DRIVER, NODE, NODE, 1)
    device = c.devices()['cpu-node-0']
    assert device['allowMultipleAllocations'] is True
    assert device['attributes']['resource.kubernetes.io/numaNode'] == {'int': 0}
    assert 'nodeAllocatableResources' not in device  # of an API server that does not know it
    free = int(device['capacity']['cpu']['value'])
    assert free > 4 and device['capacity']['cpu']['requestPolicy'] == {'default': '1', 'validRange': {'min': '1', 'step': '1'}}
    # exclusive CPUs of other pods are no capacity; those of claims are, as the scheduler counts them itself
    claim = c.prepared('four', cpu='4', pods=[POD])
    c.node.create('web', ctr('c0', '2', '64Mi'))
    eventually(lambda: sum(int(d['capacity']['cpu']['value']) for d in c.devices().values()) ==
               sum(int(d['capacity']['cpu']['value']) for d in spec['devices']) - 2)
    assert c.api.find(SLICES, None, SLICE)['spec']['pool']['generation'] > spec['pool']['generation']


def test_shared_cpus_are_no_capacity(claims):
    """topology-aware promises CPUs to shared containers, and claims can get all others."""
    c = claims(config=TOPOLOGY_AWARE)

    def free():
        return {name: int(d['capacity']['cpu']['value']) for name, d in c.devices().items()}
    before = sum(free().values())
    c.node.create('web', ctr('c0', '1500m', '64Mi'))
    eventually(lambda: sum(free().values()) == before - 2)
    for device, cpu in free().items():
        assert not c.prepare(c.put(device, device=device, cpu=str(cpu), pods=[POD])).error
    assert len(c.node.ctl('claims')) == 4 and len(ids(c.cpus('web', 'c0'))) == 2


def test_isolated_cpus_are_no_capacity(claims):
    """A container that requests one CPU gets an isolated one; a claim gets none."""
    c = claims(config=STATIC, machine={'base': 'n4c16', 'isolated': '4-5'})
    assert c.devices()['cpu-node-1']['capacity']['cpu']['value'] == '2'
    mine = [c.put('c%d' % i, device='cpu-node-1', cpu='1', memory='64Mi', pods=[POD]) for i in range(3)]
    assert not c.prepare(mine[0]).error and not c.prepare(mine[1]).error
    assert {x['cpus'] for x in c.node.ctl('claims')} == {'6', '7'}
    assert c.prepare(mine[2]).error


def test_slice_that_was_deleted_is_published_again(claims):
    c = claims()
    c.api.delete(SLICES, None, SLICE)
    eventually(lambda: c.api.find(SLICES, None, SLICE))


@policies
def test_containers_of_a_claim_share_its_cpus(claims, config):
    c = claims(config=config)
    claim = c.put('four', cpu='4', memory='64Mi', pods=[POD])
    reply = c.prepare(claim)
    assert not reply.error
    device = reply.devices[0]
    assert (list(device.request_names), device.pool_name, device.device_name, list(device.cdi_device_ids)) == (['cpus'], NODE, c.device, [cdi(claim)])
    assert c.files() == ['nri-rp.nri.io-claim_%s.json' % claim[2]]
    spec = json.loads((c.cdi / c.files()[0]).read_text())
    assert spec['kind'] == DRIVER + '/claim' and spec['devices'][0]['name'] == claim[2]
    c.node.create('web', ctr('c0', '4', '64Mi', cdi=[cdi(claim)]), ctr('c1', '4', '64Mi', cdi=[cdi(claim)]), ctr('plain', '1', '64Mi'), uid=POD)
    first, second, plain = (ids(c.cpus('web', name)) for name in ('c0', 'c1', 'plain'))
    assert len(first) == 4 and first == second and not first & plain
    assert 'claim default/four' in json.dumps(c.node.ctl('explain', 'web/c0'))
    # a second claim gets other CPUs, and the same claim again the same ones
    other = c.put('two', cpu='2', memory='64Mi', pods=[OTHER])
    assert not c.prepare(other).error and not c.prepare(claim).error
    c.node.create('db', ctr('c0', '2', '64Mi', cdi=[cdi(other)]), uid=OTHER)
    mine = ids(c.cpus('db', 'c0'))
    assert len(mine) == 2 and not mine & first and ids(c.cpus('web', 'c0')) == first
    c.node.delete('web', 'db')
    assert c.unprepare(claim) == c.unprepare(other) == c.unprepare(other) == ''
    assert not c.files() and c.node.ctl('claims') == []


def test_older_version_of_the_protocol(claims):
    c = claims(version='v1beta1')
    claim = c.put('one', cpu='1', pods=[POD])
    assert c.prepare(claim).devices[0].device_name == 'cpu-node-0'
    assert c.unprepare(claim) == ''


REFUSED = {
    'another UID': ({}, 'has another UID'),
    'another node': ({'pool': 'elsewhere'}, 'no device of driver'),
    'parts of CPUs': ({'cpu': '1500m'}, 'expected a whole number of CPUs'),
    'no capacity': ({'cpu': None}, 'expected a whole number of CPUs'),
    'parameters': ({'config': [{'opaque': {'driver': DRIVER, 'parameters': {}}}]}, 'accepts none'),
    'an unknown device': ({'device': 'cpu-node-99'}, 'this node has no device cpu-node-99'),
    'too many CPUs': ({'cpu': '4000'}, 'not enough cpus available'),
    'too much memory': ({'memory': '100Ti'}, 'of memory left'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_claim_is_refused_with_a_reason(claims, name):
    c = claims()
    more, text = REFUSED[name]
    claim = c.put('bad', pods=[POD], **more)
    if name == 'another UID':
        claim = (*claim[:2], OTHER)
    assert text in c.prepare(claim).error
    assert not c.files() and c.node.ctl('claims') == []


@policies
def test_pod_that_names_the_claim_of_another_pod_gets_nothing(claims, config):
    c = claims(config=config)
    claim = c.prepared('four', cpu='4', pods=[POD])
    mine = ids(c.node.ctl('claims')[0]['cpus'])
    c.node.create('thief', ctr('c0', '2', '64Mi', cdi=[cdi(claim)], env={'NRI_RP_CLAIM_CPUS': '0-3'}), ctr('c1', '100m', cdi=[DRIVER + '/claim=no-such']), uid=OTHER)
    assert not ids(c.cpus('thief', 'c0')) & mine and not ids(c.cpus('thief', 'c1')) & mine
    assert 'is not reserved for this pod' in json.dumps(c.node.ctl('explain', 'thief/c0'))
    # the pod is named later, and the kubelet asks again
    c.api.put(CLAIMS, 'default', 'four', allocated(NODE, device=c.device, pods=[POD, OTHER]))
    assert not c.prepare(claim).error
    c.node.create('later', ctr('c0', '2', '64Mi', cdi=[cdi(claim)]), uid=OTHER)
    assert ids(c.cpus('later', 'c0')) == mine


@policies
def test_claims_survive_restarts(claims, config):
    c = claims(config=config)
    claim = c.prepared('four', cpu='4', pods=[POD])
    c.node.create('web', ctr('c0', '4', '64Mi', cdi=[cdi(claim)]), uid=POD)
    before, listed = c.cpus('web', 'c0'), c.node.ctl('claims')
    c.node.kill()
    c.node.start()
    eventually(lambda: c.cpus('web', 'c0') == before)
    assert c.node.ctl('claims') == listed
    c.node.create('other', ctr('c0', '2', '64Mi'))
    assert not ids(c.cpus('other', 'c0')) & ids(before)
    c.agent.kill()
    c.agent.start()
    eventually(lambda: c.answers(claim))
    assert c.cpus('web', 'c0') == before
    # what was deleted while the agent was away is released
    c.node.delete('web')
    c.agent.kill()
    c.api.delete(CLAIMS, 'default', 'four')
    c.agent.start()
    eventually(lambda: c.node.ctl('claims') == [] and not c.files())


@policies
def test_claim_released_while_its_container_runs(claims, config):
    c = claims(config=config)
    claim = c.prepared('four', cpu='4', pods=[POD])
    c.node.create('web', ctr('c0', '500m', '64Mi', cdi=[cdi(claim)]), uid=POD)
    mine = ids(c.cpus('web', 'c0'))
    assert c.unprepare(claim) == ''
    assert c.node.ctl('claims') == []
    n = len(ids(c.cpus('web', 'c0')))
    assert n == 1 if config == BALLOONS else n > 4  # a plain container of 500m
    assert 'its claim was released while it runs' in json.dumps(c.node.ctl('explain', 'web/c0'))
    other = c.prepared('two', cpu='4', pods=[OTHER])
    assert not ids(c.cpus('web', 'c0')) & ids(c.node.ctl('claims')[0]['cpus']) and mine


@policies
def test_switch_that_cannot_keep_a_claim_is_refused(claims, config):
    c = claims(config=config)
    claim = c.prepared('four', cpu='4', pods=[POD])
    before = c.node.ctl('claims')
    c.node.run('write-config', {**c.base, 'policy': 'qos', 'qos': {}})
    error = c.node.ctl('reload', check=False)
    assert 'claim default/four would lose its CPUs' in json.dumps(error)
    assert c.node.ctl('claims') == before


@of_nodes
def test_claim_stays_on_its_node(claims, config):
    c = claims(config=config)
    free = c.devices()['cpu-node-0']['capacity']['cpu']['value']
    c.node.create('shared', ctr('c0', '100m', '64Mi'))
    claim = c.prepared('all', cpu=str(int(free) - 1), pods=[POD])
    listed = c.node.ctl('claims')
    assert listed[0]['mems'] == '0'
    assert c.prepare(c.put('more', cpu='2', pods=[OTHER])).error and c.node.ctl('claims') == listed
    c.node.create('web', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=POD)
    c.node.ctl('rebalance')
    c.node.create('db', ctr('c0', '4', '64Mi'))
    assert c.node.ctl('claims')[0]['cpus'] == c.cpus('web', 'c0') == listed[0]['cpus'] and not ids(c.cpus('db', 'c0')) & ids(listed[0]['cpus'])


def test_switch_to_a_policy_that_keeps_a_claim(claims):
    c = claims()
    claim = c.prepared('four', cpu='4', pods=[POD])
    before = c.node.ctl('claims')
    for config in (TOPOLOGY_AWARE, STATIC, BALLOONS, TOPOLOGY_AWARE, BALLOONS):
        c.node.run('write-config', {**c.base, **config})
        c.node.ctl('reload')
        assert c.node.ctl('claims') == before
    c.node.create('web', ctr('c0', '2', '64Mi'))
    assert not ids(c.cpus('web', 'c0')) & ids(before[0]['cpus'])
    assert c.unprepare(claim) == '' and c.node.ctl('claims') == []


def balloon_types(*types, **more):
    return {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': list(types), **more}}


def test_balloons_that_can_be_claimed(claims):
    c = claims(config=balloon_types({'name': 'fast', 'minCPUs': 2, 'maxCPUs': 8, 'maxBalloons': 2, 'cpuClass': 'turbo'}, {'name': 'any'},
                                    {'name': 'half', 'hideHyperthreads': True}, {'name': 'Not_A_Label'}, {'name': 'both', 'components': [{'balloonType': 'any'}]},
                                    cpuClasses=[{'name': 'turbo', 'minFreq': 2000000}]))
    found = c.devices()
    assert sorted(found) == ['balloon-any', 'balloon-fast']
    fast = found['balloon-fast']
    assert fast['attributes'] == {'type': {'string': 'fast'}, 'cpuClass': {'string': 'turbo'}}
    assert fast['capacity'] == {
        'cpu': {'value': '16', 'requestPolicy': {'default': '2', 'validRange': {'min': '2', 'step': '1', 'max': '8'}}},
        'balloons': {'value': '2', 'requestPolicy': {'default': '1', 'validRange': {'min': '1', 'step': '1', 'max': '1'}}}}
    assert found['balloon-any']['capacity']['cpu']['requestPolicy'] == {'default': '1', 'validRange': {'min': '1', 'step': '1'}}
    # a balloon of another container is one less; those of claims remain in the amounts
    c.node.create('web', ctr('c0', '3', '64Mi'), annotations={'balloon.balloons.resource-policy.nri.io': 'fast'})
    eventually(lambda: c.devices()['balloon-fast']['capacity']['balloons']['value'] == '1')
    claim = c.put('four', cpu='4', pods=[POD])
    assert not c.prepare(claim).error
    eventually(lambda: c.devices()['balloon-fast']['capacity']['cpu']['value'] == '8')


def test_more_devices_than_a_slice_has_room_for(claims):
    def types(n):
        return balloon_types(*({'name': 'type-%d' % i} for i in range(n)))
    c = claims(config=types(2))
    c.base.update(types(129))
    c.reconfigure()
    eventually(lambda: 'the modules offer 129 devices, a ResourceSlice has room for 128: offer fewer' in c.node.read_log())
    eventually(lambda: not c.devices())
    assert 'it is too large' not in c.node.read_log()  # the rest is published
    c.base.update(types(128))
    c.reconfigure()
    eventually(lambda: len(c.devices()) == 128)


def test_claim_has_a_balloon_of_its_own(claims):
    c = claims(config=balloon_types({'name': 'fast', 'minCPUs': 2, 'maxBalloons': 2, 'minBalloons': 1, 'namespaces': ['default']}))
    claim = c.put('four', cpu='4', pods=[POD])
    assert not c.prepare(claim).error
    listed = c.node.ctl('claims')
    mine = ids(listed[0]['cpus'])
    # other containers of the type have another balloon, even when they would have room
    c.node.create('web', ctr('c0', '1', '64Mi'), ctr('c1', '1', '64Mi'))
    assert not ids(c.cpus('web', 'c0')) & mine and c.cpus('web', 'c0') == c.cpus('web', 'c1')
    c.node.ctl('rebalance')
    assert c.node.ctl('claims') == listed
    assert 'no balloon of type fast has room' in c.prepare(c.put('more', cpu='2', pods=[OTHER])).error
    c.node.delete('web')
    assert 'gives a claim of 1 CPUs a balloon of 2' in c.prepare(c.put('small', cpu='1', pods=[OTHER])).error
    assert c.node.ctl('claims') == listed
    other = c.put('two', cpu='2', pods=[OTHER])
    assert not c.prepare(other).error
    assert c.unprepare(claim) == c.unprepare(other) == '' and c.node.ctl('claims') == []
    c.node.create('web', ctr('c0', '1', '64Mi'))
    assert len(ids(c.cpus('web', 'c0'))) == 2


def test_balloon_type_of_a_claim_is_not_removed(claims):
    c = claims(config=BALLOONS)
    claim = c.put('four', cpu='4', pods=[POD])
    assert not c.prepare(claim).error
    before = c.node.ctl('claims')
    c.node.run('write-config', {**c.base, **balloon_types()})
    assert 'claim default/four would lose its CPUs' in json.dumps(c.node.ctl('reload', check=False))
    c.node.run('write-config', {**c.base, **balloon_types(reservedResources={'cpu': 'cpuset:0,%s' % before[0]['cpus']})})
    assert 'claim default/four would lose its CPUs' in json.dumps(c.node.ctl('reload', check=False))
    assert c.node.ctl('claims') == before
    # a start cannot be refused: the claim has its CPUs
    c.node.run('write-config', {**c.base, **balloon_types()})
    c.node.kill()
    c.node.start()
    assert c.node.ctl('claims') == before
    eventually(lambda: c.answers(claim))
    assert c.unprepare(claim) == '' and c.node.ctl('claims') == []


def test_container_does_not_join_the_balloon_of_a_claim(claims):
    """The claim gets the number of the container's balloon, as no other balloon is restored."""
    few, fast, other = {'availableResources': {'cpu': 'cpuset:0-7'}}, {'name': 'fast', 'namespaces': ['default']}, {'name': 'other', 'minCPUs': 2}
    c = claims(config=balloon_types(fast, other, **few))
    c.node.create('web', ctr('c0', '1', '64Mi'))
    c.prepared('six', cpu='6', pods=[POD])
    listed = c.node.ctl('claims')
    c.node.run('write-config', {**c.base, **balloon_types(fast, {**other, 'minBalloons': 1}, **few)})
    c.node.ctl('reload')
    c.node.log('placing all containers again')
    assert c.node.ctl('claims') == listed
    assert not ids(c.cpus('web', 'c0')) & ids(listed[0]['cpus'])


@policies
def test_whole_cores(claims, config):
    """With siblings own, amounts are whole cores, and a claim has no part of a core."""
    own = {**config, config['policy']: {**config[config['policy']], 'isolation': {'siblings': 'own'}}}
    c = claims(config=own)
    found = c.devices()
    assert all(int(d['capacity']['cpu']['value']) % 2 == 0 for d in found.values())
    assert found[c.device]['capacity']['cpu']['requestPolicy'] == {'default': '2', 'validRange': {'min': '2', 'step': '1'}}
    assert c.prepare(c.put('odd', cpu='3', pods=[POD])).error
    c.prepared('even', cpu='4', pods=[POD])
    listed = c.node.ctl('claims')
    c.node.kill()
    c.node.start()
    assert c.node.ctl('claims') == listed
    c.node.create('web', ctr('c0', '3', '64Mi'))
    mine = ids(c.cpus('web', 'c0'))
    assert not mine & ids(listed[0]['cpus'])


def test_part_of_a_core_of_a_claim(claims):
    """A reload that would leave it is refused; a start keeps the CPUs."""
    fast = {'name': 'fast'}
    c = claims(config=balloon_types(fast))
    claim = c.prepared('odd', cpu='3', pods=[POD])
    listed = c.node.ctl('claims')
    c.node.run('write-config', {**c.base, **balloon_types(fast, isolation={'siblings': 'own'})})
    assert 'they are not whole cores' in json.dumps(c.node.ctl('reload', check=False))
    c.node.kill()
    c.node.start()
    assert c.node.ctl('claims') == listed
    eventually(lambda: c.released(claim))
    c.node.create('web', ctr('c0', '3', '64Mi'), annotations={'balloon.balloons.resource-policy.nri.io': 'fast'})
    assert len(ids(c.cpus('web', 'c0'))) == 4


def test_switched_off(claims):
    c = claims()
    claim = c.prepared('four', cpu='4', pods=[POD])
    c.base['dra'] = {'enabled': False}
    c.reconfigure()
    eventually(lambda: not c.api.find(SLICES, None, SLICE))
    # the claim can still be unprepared; then the driver ends
    assert 'dra.enabled is not set' in c.prepare(c.put('two', pods=[POD])).error
    assert c.unprepare(claim) == ''
    eventually(lambda: not c.kubelet.socket.exists())


def verb(request):
    """The right that a request needs, as rules of a role name it."""
    _, _, rest = request['path'].partition('/apis/resource.k8s.io/v1/')
    plural, *name = re.sub('^namespaces/[^/]+/', '', rest).split('/')
    read = 'get' if name else 'watch' if request['query'].get('watch') else 'list'
    return plural, {'GET': read, 'PATCH': 'patch', 'DELETE': 'delete'}[request['method']]


def test_rights_of_the_manifests_are_what_the_driver_uses(claims):
    """With the claim of a sample. Server-side apply of an object that does not exist needs create, too."""
    rules = next(yaml.safe_load_all((MANIFESTS / 'driver.yaml').read_text()))['rules']
    template = next(yaml.safe_load_all((MANIFESTS / 'samples' / 'four-cpus.yaml').read_text()))
    c = claims()
    claim = c.put('four', pods=[POD], **template['spec']['spec']['devices']['requests'][0]['exactly']['capacity']['requests'])
    assert not c.prepare(claim).error and len(ids(c.node.ctl('claims')[0]['cpus'])) == 4
    assert c.unprepare(claim) == ''
    eventually(lambda: any(r['query'].get('watch') and SLICES in r['path'] for r in c.api.requests))
    c.base['dra'] = {'enabled': False}
    c.api.fault(lambda handler: handler.fail(403, 'cannot delete'), when=lambda method, path, query: method == 'DELETE')
    c.reconfigure()
    eventually(lambda: 'needs {apiGroups: ["resource.k8s.io"], resources: [resourceslices], verbs: [delete]}' in c.agent.read_log())
    eventually(lambda: not c.api.find(SLICES, None, SLICE))
    used = {verb(r) for r in c.api.requests if r['path'].startswith('/apis/resource.k8s.io')}
    assert used | {(SLICES, 'create')} == {(plural, v) for rule in rules for plural in rule['resources'] for v in rule['verbs']}


def test_nothing_without_the_feature(make_node, tmp_path):
    with Claims(make_node, tmp_path, config={**STATIC, 'dra': {'enabled': False}}) as c:
        c.runs('static')
        eventually(lambda: c.writes('noderesourcetopologies'))
        assert not any('resource.k8s.io' in r['path'] for r in c.api.requests)
        assert not list(c.kubelet.root.rglob('*.sock')) and not (c.kubelet.root / 'plugins').exists() and not c.cdi.exists()


def test_api_server_is_away(claims):
    c = claims()
    claim = c.put('four', cpu='4', pods=[POD])
    c.api.fault(lambda handler: handler.fail(500, 'in trouble'), when=lambda method, path, query: CLAIMS in path)
    assert 'in trouble' in c.prepare(claim).error
    assert not c.prepare(claim).error


@policies
def test_claim_moves_with_its_containers_when_its_cpus_go_offline(claims, config):
    c = claims(config=config)
    claim = c.prepared('two', cpu='2', pods=[POD])
    c.node.create('web', ctr('c0', '2', '64Mi', cdi=[cdi(claim)]), uid=POD)
    before = ids(c.cpus('web', 'c0'))
    c.node.offline(str(min(before)))
    c.node.signal('HUP')
    eventually(lambda: min(before) not in ids(c.cpus('web', 'c0')))
    assert ids(c.cpus('web', 'c0')) == ids(c.node.ctl('claims')[0]['cpus'])


def test_claim_released_while_the_agent_compares_it(claims):
    """An answer about the claim that comes after its release does not allocate it again."""
    c = claims()
    claim, other = c.put('four', pods=[POD]), c.put('two', pods=[POD])
    assert not c.prepare(claim).error
    asked, release = threading.Event(), threading.Event()

    def late(handler):
        asked.set()
        release.wait(10)
        with contextlib.suppress(OSError):
            handler.answer(200, c.api.find(CLAIMS, 'default', 'four'))
    c.agent.kill()
    c.api.fault(late, when=lambda method, path, query: CLAIMS in path)
    c.agent.start()
    assert asked.wait(10)
    eventually(lambda: c.released(claim))
    release.set()
    assert not c.prepare(other).error and c.unprepare(other) == ''
    assert c.node.ctl('claims') == [] and not c.files()


@policies
def test_no_claim_is_leaked(claims, config):
    """Claims that come and go while daemon and agent are killed leave nothing."""
    c = claims(config=config)
    taken = set()
    for i in range(12):
        mine = [c.put('c%d-%d' % (i, k), cpu='2', memory='16Mi', pods=[POD]) for k in range(3)]
        for claim in mine:
            eventually(lambda claim=claim: c.answers(claim))
        sets = [ids(x['cpus']) for x in c.node.ctl('claims')]
        assert len(sets) == 3 and sum(map(len, sets)) == len(set.union(*sets)) == 6
        taken |= set.union(*sets)
        if i % 4 == 1:
            c.node.kill()
            c.node.start()
        if i % 4 == 3:
            c.agent.kill()
            c.agent.start()
            eventually(lambda: c.answers(mine[0]))
        for claim in mine:
            eventually(lambda claim=claim: c.released(claim))
            c.api.delete(CLAIMS, 'default', claim[1])
    assert c.node.ctl('claims') == [] and not c.files() and len(taken) < 24
