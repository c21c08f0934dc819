# SPDX-License-Identifier: Apache-2.0
"""Pods that a module wants to be on another node: asked of the API server, refused, asked again, granted."""
import contextlib

import pytest

from simnode import BUILD, TEST_MODULES, ctr, eventually, put_machine
from test_cluster import NODE, Cluster

HAND = {'policy': 'none', 'controllers': {'hand': 'required'}, 'hand': {'evict': 'the node is too hot'}}


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(Cluster(make_node, tmp_path, config=HAND, module_dirs=[TEST_MODULES, BUILD / 'modules'], speed=4))


def starts(c, pod):
    """A pod of the cluster that runs here."""
    uid = c.api.put('pods', 'default', pod, {})['metadata']['uid']
    c.node.create(pod, ctr('c0', '1'), uid=uid)


def evictions(c):
    return {e['pod']: e for e in c.node.ctl('status', check=False)['evictions']}


def asked(c, pod):
    return [body for method, path, body in c.api.writes if method == 'POST' and '/%s/' % pod in path]


def test_granted(cluster):
    c = cluster()
    starts(c, 'victim')
    starts(c, 'other')
    eventually(lambda: evictions(c)['victim']['state'] == 'granted')
    assert not c.api.find('pods', 'default', 'victim') and c.api.find('pods', 'default', 'other')
    assert evictions(c)['victim']['reason'] == 'the node is too hot' and evictions(c)['victim']['module'] == 'hand' and len(evictions(c)) == 1
    body, = asked(c, 'victim')
    assert (body['apiVersion'], body['kind'], body['deleteOptions']['gracePeriodSeconds']) == ('policy/v1', 'Eviction', 5)
    c.node.delete('victim')
    eventually(lambda: not evictions(c))


def test_a_disruption_budget_is_obeyed(cluster):
    c = cluster()
    c.api.budget = 0
    starts(c, 'victim')
    eventually(lambda: evictions(c)['victim']['state'] == 'refused')
    assert 'disruption budget' in evictions(c)['victim']['answer'] and c.api.find('pods', 'default', 'victim')
    # what the budget says of one pod holds nothing else up
    starts(c, 'victim-of-nobody')
    c.api.delete('pods', 'default', 'victim-of-nobody')
    eventually(lambda: evictions(c)['victim-of-nobody']['state'] in ('failed', 'refused'))
    c.api.budget = 1
    eventually(lambda: evictions(c)['victim']['state'] == 'granted', 30)
    assert evictions(c)['victim']['asked'] == 2 == len(asked(c, 'victim'))


def test_another_pod_of_that_name(cluster):
    c = cluster()
    c.api.put('pods', 'default', 'victim', {})
    c.node.create('victim', ctr('c0', '1'), uid='another-one')
    eventually(lambda: evictions(c)['victim']['state'] == 'failed')
    assert c.api.find('pods', 'default', 'victim') and len(asked(c, 'victim')) == 1


def test_without_an_agent(cluster):
    c = cluster()
    c.agent.kill()
    starts(c, 'victim')
    assert evictions(c)['victim']['state'] == 'asked' and c.api.find('pods', 'default', 'victim')
    c.agent.start()
    eventually(lambda: evictions(c)['victim']['state'] == 'granted')


def test_without_the_right(cluster):
    c = cluster()
    c.api.fault(lambda handler: handler.fail(403, 'cannot create resource "pods/eviction"'), when=lambda method, path, query: method == 'POST')
    starts(c, 'victim')
    eventually(lambda: evictions(c)['victim']['state'] == 'failed')
    eventually(lambda: any('pods/eviction' in p for p in c.status()['problems']))
    eventually(lambda: evictions(c)['victim']['state'] == 'granted', 30)
    eventually(lambda: not c.status()['problems'])


def test_who_goes_when_the_node_runs_short(make_node, tmp_path):
    """More batch CPU was asked for than the node lends: the pod of the lowest priority goes; when a budget keeps it, the next one does."""
    config = {'policy': 'none', 'controllers': {'evict': 'required'}, 'metrics': {'collectInterval': '1s'},
              'evict': {'interval': '200ms', 'cpuAllocatableEvictThresholdPercent': 100, 'allocatableEvictPriorityThreshold': 5999, 'cpuCoolTime': '500ms'}}
    with Cluster(make_node, tmp_path, config=config, module_dirs=[BUILD / 'modules']) as c:
        put_machine(c.node)
        lends = {'cpu': '16', 'kubernetes.io/batch-cpu': '3k'}
        c.api.put('nodes', None, NODE, {'status': {'allocatable': lends, 'capacity': lends}})
        amounts = {'kubernetes.io/batch-cpu': '1500'}
        for name, priority in (('high', 5900), ('low', 5100), ('prod', 9000)):
            spec = {'nodeName': NODE, 'priority': priority, 'containers': [{'name': 'c0', 'resources': {'requests': amounts, 'limits': amounts}}]}
            uid = c.api.put('pods', 'default', name, {'spec': spec})['metadata']['uid']
            c.node.create(name, ctr('c0'), uid=uid)
        # without the pod the node lends enough, and its eviction is no longer listed
        seen = eventually(lambda: (all_ := evictions(c)).get('low', {}).get('state') == 'granted' and all_)
        assert 'batch pods request 3000 of cpu, and the node overcommits 3000' in seen['low']['reason']
        assert list(seen) == ['low']
