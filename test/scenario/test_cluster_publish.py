# SPDX-License-Identifier: Apache-2.0
"""What the cluster is told of a node: zones from a real nri-rpd, extended resources from one that says what the test wants."""
import contextlib
import time

import pytest

from apiserver import ApiServer
from kubelet import Agent
from simnode import ctr, eventually
from test_agent import LINK, Daemon
from test_cluster import CRS, NODE, NS, Cluster, balloons

TOPOLOGIES = 'noderesourcetopologies'
HI, OLD, FOREIGN = 'cpuclass.balloons.nri.io/hi', 'cpuclass.balloons.nri.io/old', 'example.com/gpu'


def amount(resource, value):
    if resource != 'cpu':
        return str(value)
    return str(value // 1000) if value % 1000 == 0 else '%dm' % value


def as_published(zone):
    """A zone of nri-rpctl zones --json as an object has it."""
    out = {'name': zone['name'], 'type': zone['type']}
    if zone['parent']:
        out['parent'] = zone['parent']
    out['resources'] = [{'name': r['name'], **{k: amount(r['name'], r[k]) for k in ('capacity', 'allocatable', 'available')}} for r in zone['resources']]
    out['attributes'] = [a for a in zone['attributes'] if a['value']]
    out['costs'] = zone['costs']
    return {key: value for key, value in out.items() if value}


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Cluster(make_node, tmp_path, **{'speed': 4, **more}))


def test_zones(cluster):
    c = cluster()

    def topology():
        return c.api.find(TOPOLOGIES, None, NODE) or {}

    def is_told():
        return topology().get('zones') == [as_published(z) for z in c.node.ctl('zones')]
    c.api.put(CRS, NS, 'default', balloons(2))
    c.runs('balloons')
    eventually(is_told)
    assert topology()['attributes'] == [{'name': 'TopologyPolicy', 'value': 'balloons'}]
    before = len(topology()['zones'])
    c.node.create('web', ctr('c0', '1'))
    eventually(is_told)
    assert len(topology()['zones']) >= before > 0
    applied = c.writes(TOPOLOGIES)
    assert all(kind == 'application/apply-patch+yaml' and 'fieldManager=nri-rp' in path for kind, path, _ in applied)
    # what changes nothing is not written
    c.node.delete('web')
    c.node.create('web', ctr('c0', '1'))
    eventually(is_told)
    assert len(c.writes(TOPOLOGIES)) <= len(applied) + 1
    c.agent.kill()
    c.agent.start()
    eventually(lambda: len(c.writes(TOPOLOGIES)) > len(applied))
    eventually(is_told)


def test_zones_are_not_wanted(cluster):
    c = cluster(config={'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}, topology=False)
    c.api.put(CRS, NS, 'default', balloons(2))
    c.has_verdict('Success', 1)
    assert not c.writes(TOPOLOGIES)


class Told:
    """An agent whose daemon is the test."""

    def __init__(self, folder):
        self.stack = contextlib.ExitStack()
        self.api = self.stack.enter_context(ApiServer())
        self.daemon = self.stack.enter_context(Daemon())
        self.capacity(cpu='4')
        options = ['--kubeconfig', self.api.kubeconfig(folder), '--node', NODE, '--namespace', NS]
        self.agent = self.stack.enter_context(Agent(self.daemon.socket, folder / 'none.sock', options=options))
        assert 'cluster' in self.daemon.accept().features

    def capacity(self, **values):
        self.api.put('nodes', None, NODE, {'status': {'capacity': values}})

    def publish(self, *own, **more):
        assert self.daemon.answer(self.daemon.ask('Published', LINK.PublishedRequest(policy='p', extended=[LINK.Amount(name=n, amount=a) for n, a in own], **more))) == b''

    def has(self):
        return self.api.find('nodes', None, NODE)['status']['capacity']


@pytest.fixture
def told(tmp_path):
    t = Told(tmp_path)
    with t.stack:
        yield t


def test_kubelet_starts_during_a_write(told):
    """What the answer says was so before."""
    def late(handler):
        told.capacity(cpu='4', **{HI: '5'})
        answer = told.api.find('nodes', None, NODE)
        told.capacity(cpu='4', **{HI: '0'})
        time.sleep(0.5)
        handler.answer(200, answer)
    told.api.fault(late, when=lambda method, path, query: method == 'PATCH')
    told.publish((HI, 5), owned=['cpuclass.balloons.nri.io/*'])
    eventually(lambda: told.has() == {'cpu': '4', HI: '5'} and told.api.writes)


def test_extended_resources(told):
    told.capacity(cpu='4', **{OLD: '3', FOREIGN: '1'})
    told.publish((HI, 5), (FOREIGN, 9), owned=['cpuclass.balloons.nri.io/*', '*'])
    eventually(lambda: told.has() == {'cpu': '4', HI: '5', FOREIGN: '1'})
    # a kubelet that starts anew
    told.capacity(cpu='4', **{HI: '0', FOREIGN: '0'})
    eventually(lambda: told.has() == {'cpu': '4', HI: '5', FOREIGN: '0'})
    told.capacity(cpu='4')
    eventually(lambda: told.has() == {'cpu': '4', HI: '5'})
    writes = len(told.api.writes)
    told.publish((HI, 5), owned=['cpuclass.balloons.nri.io/*'])
    told.capacity(cpu='4', **{HI: '5', FOREIGN: '2'})
    told.publish(owned=['cpuclass.balloons.nri.io/*'])
    eventually(lambda: told.has() == {'cpu': '4', FOREIGN: '2'})
    assert len(told.api.writes) == writes + 1
