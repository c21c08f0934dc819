# SPDX-License-Identifier: Apache-2.0
"""Pods of the kubelet's own list (gRPC v1alpha1.Pods): exact requests without an API server, and what an agent does where there is no list."""
import contextlib

import grpc
import pytest

from kubelet import Agent, PodsKubelet
from operator_tools import ctl
from simnode import ctr, eventually
from test_cluster import Cluster
from test_cluster_pods import ODD, QOS, container, put_pod, shown

NONE = 'the kubelet does not serve its pods'


class Alone:
    """A node without a cluster: the daemon, the agent, the kubelet."""

    def __init__(self, node, kubelet, config):
        self.node, self.kubelet = node, kubelet
        sock = node.paths['work'] + '/agent.sock'
        node.run('write-config', {**config, 'agent': {'podSource': 'kubelet', 'socket': sock}})
        node.start()
        self.agent = Agent(sock, node.paths['work'] + '/none.sock', options=['--kubelet-pods-socket', kubelet.socket])

    def feed(self):
        return self.node.ctl('status', check=False)['pod_feed']

    def knows(self, n):
        eventually(lambda: self.feed()['current'] and self.feed()['pods'] == n)


@pytest.fixture
def alone(make_node):
    with contextlib.ExitStack() as stack:
        def new(config=QOS, node=None, **more):
            one = Alone(make_node(None, start=False, **(node or {})), stack.enter_context(PodsKubelet(**more)), config)
            stack.enter_context(one.agent)
            return one
        yield new


@pytest.fixture
def huge(alone):
    """A node with 4 huge pages of 1 GiB on each NUMA node, and whose containers' memory is pinned."""
    section = {'reservedResources': {'cpu': 'cpuset:0'}, 'pinMemory': True, 'topologyManagerPolicy': 'restricted'}
    machine = {'base': 'n4c16', 'memory': '16Gi', 'hugepages': {'1Gi': 4}}
    return alone({'policy': 'static', 'static': section}, node={'machine': machine})


def test_exact_requests_without_an_api_server(alone):
    c = alone()
    c.knows(0)
    c.kubelet.put('web', ('app', {'cpu': '1500m', 'memory': str(ODD)}, {'memory': '470Mi'}), ('log', {'cpu': '250m'}, {}),
                  init=[('setup', {'cpu': '3'}, {}), ('mesh', {'cpu': '100m'}, {}, 'Always')])
    c.knows(1)
    assert c.feed()['origin'] == 'kubelet' and not c.feed()['problem']
    c.node.create('web', ctr('app', '1500m/2', '120Mi/470Mi'), uid='uid-web')
    app = shown(c, 'default/web/app')
    assert app['wanted']['memory_request'] == ODD and 'exact-needs' in app['flags'] and 'memory-estimated' not in app['flags']
    mask = c.kubelet.masks[0].split(',')
    assert 'spec.containers.resources' in mask and 'metadata.uid' in mask and not any(m.startswith('spec.containers.env') for m in mask)
    c.kubelet.delete('web')
    c.knows(0)


def test_resources_of_a_pod_itself(alone):
    """A pod of 4 CPUs with one pinned container: 2 CPUs for that one, the others share the rest."""
    c = alone({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}, 'topologyManagerPolicy': 'best-effort',
                                              'topologyManagerScope': 'pod'}})
    own, both = {'cpu': '4', 'memory': '1Gi'}, {'cpu': '2', 'memory': '512Mi'}
    c.kubelet.put('app', ('log', {}, {}), ('main', both, both), own=(own, own))
    c.knows(1)
    c.node.create('app', ctr('log'), ctr('main', '2', '512Mi'), uid='uid-app', resources=own)
    assert c.node.cpus('app/main') == {4, 5} and c.node.cpus('app/log') == {6, 7}
    pod = c.node.ctl('explain', 'app')
    assert (pod['document'], pod['own']['cpu_request_milli'], pod['own']['memory_request']) == ('pod', 4000, 1 << 30)
    why = {x['name']: '\n'.join(x['why']) for x in pod['containers']}
    assert set(why) == {'main', 'log'} and 'shares CPUs 6-7 of its pod' in why['log']
    text = ctl(c.node, 'explain', 'app').out
    assert 'request 4, limit 4' in text and 'default/app/log' in text and 'shares CPUs 6-7 of its pod' in text


def test_huge_pages_that_the_runtime_does_not_report(huge):
    """containerd drops the limits of huge pages by default (disable_hugetlb_controller)."""
    needs = {'cpu': '1', 'memory': '64Mi', 'hugepages-1Gi': '3Gi'}
    for i in range(5):
        huge.kubelet.put('p%d' % i, ('c', needs, needs))
    huge.knows(5)
    for i in range(3):
        huge.node.create('p%d' % i, ctr('c', '1', '64Mi'), uid='uid-p%d' % i)
    assert len(set().union(*(huge.node.mems('p%d/c' % i) for i in range(3)))) == 3
    huge.node.restart()
    huge.knows(5)
    huge.node.create('p3', ctr('c', '1', '64Mi'), uid='uid-p3')
    assert len(set().union(*(huge.node.mems('p%d/c' % i) for i in range(4)))) == 4
    huge.node.reject('p4', ctr('c', '1', '64Mi'), error='huge pages', uid='uid-p4')


def test_huge_pages_of_a_pod_itself(huge):
    """They count once, although the runtime reports them for each container."""
    own = {'cpu': '3', 'memory': '1Gi', 'hugepages-1Gi': '3Gi'}
    for name in 'pq':
        huge.kubelet.put(name, *(('c%d' % i, {'cpu': '1', 'memory': '64Mi'}, {'cpu': '1', 'memory': '64Mi'}) for i in range(2)), own=(own, own))
    huge.knows(2)
    for name in 'pq':
        huge.node.create(name, *(ctr('c%d' % i, '1', '64Mi', hugepages={'1GB': 3 << 30}) for i in range(2)), uid='uid-' + name,
                         resources={'cpu': '3', 'memory': '1Gi'})
    assert len({min(huge.node.mems(name + '/c0')) for name in 'pq'}) == 2
    needs = {'cpu': '1', 'memory': '64Mi', 'hugepages-1Gi': '4Gi'}
    for name in 'rst':
        huge.kubelet.put(name, ('c', needs, needs))
    huge.knows(5)
    for name in 'rs':
        huge.node.create(name, ctr('c', '1', '64Mi'), uid='uid-' + name)
    huge.node.reject('t', ctr('c', '1', '64Mi'), error='2 pages left, 4 are requested', uid='uid-t')


@pytest.mark.parametrize('cpus, expected', [((3, 1, 1), ({1, 2, 3}, {4}, {5})), ((3, None, None), ({1, 2, 3}, {4, 5}, {4, 5})),
                                            ((None, None, None), ({1, 2, 3, 4, 5},) * 3), ((3, 2, None), None)])
def test_the_table_of_kep_5526(alone, cpus, expected):
    """Pods of 5 CPUs on a node of 7 free ones; the last one's pinned containers leave nothing for the third."""
    machine = {'packages': 2, 'nodes': 1, 'cores': 8, 'threads': 1, 'memory': '8Gi'}
    section = {'reservedResources': {'cpu': 'cpuset:0'}, 'topologyManagerPolicy': 'single-numa-node', 'topologyManagerScope': 'pod'}
    own = {'cpu': '5', 'memory': '1Gi'}
    c = alone({'policy': 'static', 'static': section}, node={'machine': machine})
    needs = [{'cpu': str(n), 'memory': '64Mi'} if n else {} for n in cpus]
    c.kubelet.put('p', *(('c%d' % i, n, n) for i, n in enumerate(needs)), own=(own, own))
    c.knows(1)
    ctrs = [ctr('c%d' % i, *((str(n), '64Mi') if n else ())) for i, n in enumerate(cpus)]
    if expected is None:
        c.node.reject('p', *ctrs, error='CPU', uid='uid-p', resources=own)
        return
    c.node.create('p', *ctrs, uid='uid-p', resources=own)
    assert tuple(c.node.cpus('p/c%d' % i) for i in range(3)) == expected


@pytest.mark.parametrize('own, init, containers, expected, left', [
    ((2, 2), (), (('a', 1),), {'a': 1}, 10),
    ((1, 1), (), (('n', 0),), {'n': 1}, 11),
    ((3, 3), (), (('a', 1), ('b', 1), ('n', 0)), {'a': 1, 'b': 1, 'n': 1}, 9),
    ((2, 2), (('i', 1), ('j', 1)), (('a', 1), ('b', 1)), {'i': 1, 'j': 1, 'a': 1, 'b': 1}, 10),
    ((3, 3), (('i', 0), ('s', 1, 'Always'), ('j', 0)), (('a', 1), ('n', 0)), {'i': 3, 's': 1, 'j': 2, 'a': 1, 'n': 1}, 9),
    ((3, 3), (('i', 0), ('s', 0, 'Always'), ('j', 0)), (('a', 1), ('n', 0)), {'i': 3, 's': 2, 'j': 3, 'a': 1, 'n': 2}, 9),
    ((2, 2), (), (('a', 1), ('b', 1), ('n', 0)), None, 12),
    ((2, 1), (), (('a', 1),), {'a': 12}, 12)])
def test_the_rows_of_the_kubelet(make_node, own, init, containers, expected, left):
    """TestStaticPolicyAllocatePod of the kubelet, scope pod: numbers of CPUs of each container, and of those that other containers share."""
    section = {'reservedResources': {'cpu': 'cpuset:0'}, 'topologyManagerPolicy': 'best-effort', 'topologyManagerScope': 'pod'}
    amounts = [{'cpu': str(n), 'memory': '1Gi'} for n in own]
    with PodsKubelet() as kubelet:
        machine = {'packages': 2, 'nodes': 1, 'cores': 3, 'threads': 2, 'memory': '8Gi'}
        c = Alone(make_node(None, start=False, machine=machine), kubelet, {'policy': 'static', 'static': section})
        with c.agent:
            needs = {n: {'cpu': str(cpu), 'memory': '64Mi'} if cpu else {} for n, cpu, *_ in (*init, *containers)}
            kubelet.put('p', *((n, needs[n], needs[n]) for n, _ in containers), init=[(n, needs[n], needs[n], *always) for n, _, *always in init], own=amounts)
            c.knows(1)
            c.node.create('other', ctr('o'))
            seen, sets = {}, {}
            for n, cpu, *more in (*init, *containers):
                one = ctr(n, *((str(cpu), '64Mi') if cpu else ()))
                if expected is None and n == containers[0][0]:
                    assert 'CPU' in c.node.reject('p', one, error='', uid='uid-p', resources={'cpu': str(own[0]), 'memory': '1Gi'})
                    break
                c.node.create('p', one, uid='uid-p', **({} if seen else {'resources': {'cpu': '%d/%d' % own, 'memory': '1Gi'}}))
                seen[n] = len(c.node.cpus('p/' + n))
                if n in needs and (n, cpu) in init:
                    c.node.exit('p/' + n)
                else:
                    sets[n] = None
            sets = {n: c.node.cpus('p/' + n) for n in sets}
            shared = c.node.cpus('other/o')
            assert len(shared) == left
            assert {**seen, **{n: len(s) for n, s in sets.items()}} == (expected or {})
            exclusive = [s for n, s in sets.items() if needs[n] and own[0] == own[1]]
            assert len(set().union(*exclusive)) == sum(map(len, exclusive)) and not any(s & shared for s in exclusive)


def test_static_pods_have_the_uid_of_the_runtime(alone):
    c = alone()
    c.kubelet.put('static', ('app', {'cpu': '1', 'memory': str(ODD)}, {}), uid='0123456789abcdef0123456789abcdef',
                  annotations={'kubernetes.io/config.source': 'file', 'kubernetes.io/config.hash': '0123456789abcdef0123456789abcdef'})
    c.knows(1)
    c.node.create('static', ctr('app', '1/-', '120Mi/-'), uid='0123456789abcdef0123456789abcdef')
    assert 'exact-needs' in shown(c, 'default/static/app')['flags']


def test_the_kubelet_restarts(alone):
    c = alone()
    c.kubelet.put('a', ('app', {'cpu': '1'}, {}))
    c.kubelet.put('b', ('app', {'cpu': '1'}, {}))
    c.knows(2)
    c.kubelet.stop()
    eventually(lambda: c.feed()['problem'])
    assert c.feed()['pods'] == 2 and c.feed()['current']  # a kubelet that is away creates no pods
    del c.kubelet.pods['a']  # without an event, while the agent is not connected
    c.kubelet.status = (grpc.StatusCode.FAILED_PRECONDITION, 'pod sources are not ready')
    c.kubelet.start()
    eventually(lambda: 'pod sources are not ready' in c.feed()['problem'])
    assert c.feed()['pods'] == 2
    c.kubelet.status = None
    c.knows(1)
    assert not c.feed()['problem']


def test_the_kubelet_ends_the_stream_of_a_slow_client(alone):
    c = alone()
    c.kubelet.put('a', ('app', {'cpu': '1'}, {}))
    c.kubelet.put('b', ('app', {'cpu': '1'}, {}))
    c.knows(2)
    c.kubelet.delete('b', kind=9)  # a pod without a specification has been removed, whatever the event's type
    c.knows(1)
    c.kubelet.drop()
    eventually(lambda: 'watch client channel closed' in c.feed()['problem'])
    assert c.feed()['pods'] == 1 and c.feed()['current']
    eventually(lambda: not c.feed()['problem'])
    c.knows(1)


def test_no_such_method_and_no_socket(alone):
    """Without a cluster requests are those of the runtime, and status and doctor say why."""
    c = alone(method='Other')
    eventually(lambda: NONE in c.feed()['problem'])
    assert not c.feed()['current'] and c.feed()['request_source'] == 'runtime'
    c.node.create('web', ctr('app', '1500m/2', '120Mi/470Mi'), uid='uid-web')
    assert 'memory-estimated' in shown(c, 'default/web/app')['flags']
    assert any(NONE in f['text'] for f in c.node.ctl('doctor', check=False))
    c.kubelet.stop()
    eventually(lambda: 'No such file' in c.feed()['problem'])
    c.kubelet.method = 'WatchPods'
    c.kubelet.start()
    c.knows(0)


def test_a_kubelet_that_hangs(alone):
    c = alone()
    c.knows(0)
    c.agent.kill()
    c.kubelet.hangs = True
    c.agent.start()
    eventually(lambda: 'no complete list in time' in c.feed()['problem'])
    c.kubelet.hangs = False
    eventually(lambda: not c.feed()['problem'], 30)
    c.knows(0)


def test_auto_falls_back_to_the_api_server_and_returns(make_node, tmp_path):
    with PodsKubelet(method='Other') as kubelet, Cluster(make_node, tmp_path, config=QOS, agent=['--kubelet-pods-socket', kubelet.socket]) as c:
        def feed():
            return c.node.ctl('status', check=False)['pod_feed']
        put_pod(c, 'web', container('app', '1'))
        eventually(lambda: feed()['pods'] == 1 and feed()['origin'] == 'API server')
        assert NONE in feed()['problem'] and 'the API server is asked' in c.agent.read_log()
        kubelet.stop()
        kubelet.method = 'WatchPods'
        kubelet.put('web', ('app', {'cpu': '1'}, {}))
        kubelet.put('two', ('app', {'cpu': '1'}, {}))
        kubelet.start()
        eventually(lambda: feed()['pods'] == 2 and feed()['origin'] == 'kubelet', 30)
        assert not feed()['problem']
        # the API server is watched no more, and again when the kubelet fails for a while
        put_pod(c, 'three', container('app', '1'))
        put_pod(c, 'four', container('app', '1'))
        kubelet.stop()
        eventually(lambda: feed()['pods'] == 3 and feed()['origin'] == 'API server', 30)


def test_the_source_is_changed_by_a_reload(make_node, tmp_path):
    with PodsKubelet() as kubelet, Cluster(make_node, tmp_path, config=QOS, agent=['--kubelet-pods-socket', kubelet.socket]) as c:
        kubelet.put('one', ('app', {'cpu': '1'}, {}))
        put_pod(c, 'one', container('app', '1'))
        put_pod(c, 'two', container('app', '1'))

        def origin():
            feed = c.node.ctl('status', check=False)['pod_feed']
            return feed['current'] and (feed['origin'], feed['pods'])
        eventually(lambda: origin() == ('kubelet', 1))
        sock = c.node.paths['work'] + '/agent.sock'
        c.node.config({**QOS, 'agent': {'cluster': True, 'podSource': 'apiserver', 'socket': sock}})
        eventually(lambda: origin() == ('API server', 2))
        c.node.config({**QOS, 'agent': {'cluster': True, 'socket': sock}})
        eventually(lambda: origin() == ('kubelet', 1))
