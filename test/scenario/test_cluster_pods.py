# SPDX-License-Identifier: Apache-2.0
"""The pod feed: what the API server has of this node's pods, through a real agent to a real daemon."""
import contextlib
import os
import pathlib
import re
import signal
import threading

import pytest
import yaml

from simnode import SimError, ctr, eventually
from test_cluster import NODE, Cluster

QOS = {'policy': 'qos', 'qos': {'reservedCPUs': '0', 'rampUpSeconds': 0}}
MIB = 1 << 20
ODD = 123456789  # bytes that nothing but an exact word of them gives


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(Cluster(make_node, tmp_path, **more))


def container(name, cpu, memory=ODD, **more):
    return {'name': name, 'resources': {'requests': {'cpu': cpu, 'memory': str(memory)}, 'limits': {'memory': str(4 * memory)}}, **more}


def put_pod(c, name, *containers, uid=None, node=NODE, init=(), phase='Pending', **meta):
    c.api.put('pods', 'default', name, {'metadata': {'uid': uid or 'uid-' + name, **meta}, 'status': {'phase': phase},
                                        'spec': {'nodeName': node, 'containers': list(containers), 'initContainers': list(init)}})


def feed(c):
    return c.node.ctl('status', check=False)['pod_feed']


def knows(c, n):
    eventually(lambda: feed(c)['current'] and feed(c)['pods'] == n)


def shown(c, name):
    return next(x for x in c.node.ctl('containers') if x['full_name'] == name)


def test_exact_requests(cluster):
    c = cluster(config=QOS)
    knows(c, 0)
    put_pod(c, 'web', container('app', '1500m'), container('log', '250m'), init=[container('setup', '3')])
    put_pod(c, 'elsewhere', container('app', '1'), node='n2')
    knows(c, 1)
    c.node.create('web', ctr('app', '1500m/2', '120Mi/470Mi'), uid='uid-web')
    app = shown(c, 'default/web/app')
    assert app['wanted']['memory_request'] == ODD and 'exact-needs' in app['flags'] and 'memory-estimated' not in app['flags']
    # nobody has told of this one
    c.node.create('other', ctr('app', '1/2', '120Mi/470Mi'), uid='uid-other')
    assert 'memory-estimated' in shown(c, 'default/other/app')['flags']
    assert (feed(c)['by_feed'], feed(c)['by_runtime'], feed(c)['request_source']) == (1, 1, 'feed')
    # what the cluster says later of a pod that runs changes nothing of it
    put_pod(c, 'web', container('app', '2', 7 * MIB))
    c.node.restart()
    knows(c, 1)
    assert shown(c, 'default/web/app')['wanted'] == app['wanted']


def test_resources_of_a_pod_itself(cluster):
    """A container without resources has none, whatever quota the runtime reports for it, and whichever container is created first."""
    scope = {'reservedResources': {'cpu': 'cpuset:0'}, 'topologyManagerPolicy': 'best-effort', 'topologyManagerScope': 'pod'}
    c = cluster(config={'policy': 'static', 'static': scope})
    both = {'cpu': '2', 'memory': '512Mi'}
    c.api.put('pods', 'default', 'app', {'metadata': {'uid': 'uid-app'}, 'status': {'phase': 'Pending'}, 'spec': {
        'nodeName': NODE, 'resources': {'requests': {'cpu': '4', 'memory': '1Gi'}, 'limits': {'cpu': '4', 'memory': '1Gi'}},
        'containers': [{'name': 'log'}, {'name': 'main', 'resources': {'requests': both, 'limits': both}},
                       {'name': 'part', 'resources': {'requests': {'cpu': '1'}}}]}})
    knows(c, 1)
    c.node.create('app', ctr('log'), ctr('main', '2', '512Mi'), ctr('part', '1/-'), uid='uid-app', resources={'cpu': '4', 'memory': '1Gi'})
    assert c.node.cpus('app/main') == {4, 5} and c.node.cpus('app/log') == c.node.cpus('app/part') == {6, 7}
    assert [shown(c, 'default/app/' + n)['wanted'].get('cpu_request_milli', 0) for n in ('log', 'main', 'part')] == [0, 2000, 1000]
    c.node.restart()
    assert c.node.cpus('app/main') == {4, 5} and c.node.cpus('app/log') == c.node.cpus('app/part') == {6, 7}


def own_pod(c, cpu):
    own, both = {'cpu': cpu, 'memory': '1Gi'}, {'cpu': '2', 'memory': '512Mi'}
    c.api.put('pods', 'default', 'app', {'metadata': {'uid': 'uid-app'}, 'status': {'phase': 'Pending'}, 'spec': {
        'nodeName': NODE, 'resources': {'requests': own, 'limits': own},
        'containers': [{'name': 'main', 'resources': {'requests': both, 'limits': both}}, {'name': 'log'}]}})


def knows_own(c, cpu):
    eventually(lambda: c.node.ctl('explain', 'app')['own']['cpu_request_milli'] == cpu)


@pytest.mark.parametrize('release', ['0.8', '0.12'])
def test_a_set_follows_the_pod_s_own_resources(cluster, release):
    """Runtimes before NRI 0.10 report only the resizes of containers."""
    scope = {'reservedResources': {'cpu': 'cpuset:0'}, 'topologyManagerPolicy': 'best-effort', 'topologyManagerScope': 'pod'}
    c = cluster(config={'policy': 'static', 'static': scope}, head={'nri': release})
    own_pod(c, '4')
    knows(c, 1)
    c.node.create('app', ctr('main', '2', '512Mi'), ctr('log'), uid='uid-app', resources={'cpu': '4', 'memory': '1Gi'})
    assert c.node.cpus('app/main') == {4, 5} and c.node.cpus('app/log') == {6, 7}
    own_pod(c, '6')
    knows_own(c, 6000)
    c.node.run('update-pod', {'pod': 'app', 'cpu': '6', 'memory': '1Gi'})
    eventually(lambda: len(c.node.cpus('app/log')) == 4)
    assert c.node.cpus('app/main') == {4, 5}
    own_pod(c, '20')
    knows_own(c, 20000)
    for _ in range(2):
        with pytest.raises(SimError, match='CPU'):
            c.node.run('update-pod', {'pod': 'app', 'cpu': '20', 'memory': '1Gi'})
    assert len(c.node.cpus('app/log')) == 4


def test_a_balloon_follows_the_pod_s_own_resources(cluster):
    types = [{'name': 'own', 'namespaces': ['default'], 'preferNewBalloons': True}]
    c = cluster(config={'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': types}})
    own_pod(c, '4')
    knows(c, 1)
    c.node.create('app', ctr('main', '2', '512Mi'), ctr('log'), uid='uid-app', resources={'cpu': '4', 'memory': '1Gi'})
    assert len(c.node.cpus('app/main')) == 4
    for cpu in ('7', '3'):
        own_pod(c, cpu)
        knows_own(c, int(cpu) * 1000)
        c.node.run('update-pod', {'pod': 'app', 'cpu': cpu, 'memory': '1Gi'})
        eventually(lambda n=int(cpu): len(c.node.cpus('app/main')) == n)
        assert c.node.cpus('app/log') == c.node.cpus('app/main')
    own_pod(c, '17')
    knows_own(c, 17000)
    with pytest.raises(SimError):
        c.node.run('update-pod', {'pod': 'app', 'cpu': '17', 'memory': '1Gi'})
    assert len(c.node.cpus('app/main')) == 3
    c.agent.kill()
    c.node.restart()
    assert len(c.node.cpus('app/main')) == 3


def test_a_pod_of_its_own_resources_counts_once(cluster):
    """Its containers request 3 of the pod's 4 CPUs: the balloon has 4, after a restart without an agent, too."""
    types = [{'name': 'own', 'namespaces': ['default'], 'preferNewBalloons': True}]
    c = cluster(config={'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}, 'balloonTypes': types}})
    both = {'cpu': '2', 'memory': '512Mi'}
    c.api.put('pods', 'default', 'app', {'metadata': {'uid': 'uid-app'}, 'status': {'phase': 'Pending'}, 'spec': {
        'nodeName': NODE, 'resources': {'requests': {'cpu': '4', 'memory': '1Gi'}, 'limits': {'cpu': '4', 'memory': '1Gi'}},
        'containers': [{'name': 'main', 'resources': {'requests': both, 'limits': both}}, {'name': 'log'}, {'name': 'proxy'},
                       {'name': 'part', 'resources': {'requests': {'cpu': '1'}}}]}})
    knows(c, 1)
    c.node.create('app', ctr('main', '2', '512Mi'), ctr('log'), ctr('proxy'), ctr('part', '1/-'), uid='uid-app',
                  resources={'cpu': '4', 'memory': '1Gi'})
    cpus = c.node.cpus('app/main')
    assert len(cpus) == 4 and all(c.node.cpus('app/' + n) == cpus for n in ('log', 'proxy', 'part'))
    c.agent.kill()
    c.node.restart()
    assert all(c.node.cpus('app/' + n) == cpus for n in ('main', 'log', 'proxy', 'part'))


def test_pods_that_alone_have_resources_count(cluster):
    """Three pods of 3 CPUs whose containers have no requests leave 6 of 15 CPUs: a container of 3 fits, one of 4 beside it does not."""
    c = cluster(config={'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}})
    own = {'cpu': '3', 'memory': '64Mi'}
    for i in range(3):
        c.api.put('pods', 'default', 'p%d' % i, {'metadata': {'uid': 'uid-p%d' % i}, 'status': {'phase': 'Pending'}, 'spec': {
            'nodeName': NODE, 'resources': {'requests': own, 'limits': own}, 'containers': [{'name': 'a'}, {'name': 'b'}]}})
    knows(c, 3)
    for i in range(3):
        c.node.create('p%d' % i, ctr('a'), ctr('b'), uid='uid-p%d' % i, resources={'cpu': '3', 'memory': '64Mi'})
    c.node.create('big', ctr('app', '3', '64Mi'))
    c.node.reject('more', ctr('app', '4', '64Mi'), error='no pool has enough CPUs')
    cpus = c.node.cpus('big/app')
    assert len(cpus) == 3
    assert not any(cpus & c.node.cpus('p%d/%s' % (i, name)) for i in range(3) for name in 'ab')


@pytest.mark.parametrize('strict', [True, False])
def test_a_pod_is_placed_as_one(cluster, strict):
    """Node 0 has 2 free CPUs: a pod of 1 and 3 CPUs goes to another node as a whole, and by its containers alone would be on two."""
    section = {'reservedResources': {'cpu': 'cpuset:0'}, **({'colocatePods': 'strict'} if strict else {})}
    c = cluster(config={'policy': 'topology-aware', 'topology-aware': section})
    put_pod(c, 'busy', container('app', '1', 64 * MIB))
    put_pod(c, 'web', *({'name': n, 'resources': {k: {'cpu': cpu, 'memory': '64Mi'} for k in ('requests', 'limits')}} for n, cpu in (('a', '1'), ('b', '3'))))
    knows(c, 2)
    c.node.create('busy', ctr('app', '1', '64Mi'), uid='uid-busy')
    c.node.create('web', ctr('a', '1', '64Mi'), ctr('b', '3', '64Mi'), uid='uid-web')
    nodes = {n: {cpu // 4 for cpu in c.node.cpus('web/' + n)} for n in 'ab'}
    assert (nodes['a'] == nodes['b'] and len(nodes['a']) == 1) == strict, nodes


def test_pods_come_change_and_go(cluster):
    c = cluster(config=QOS)
    for i in range(250):
        put_pod(c, 'p%d' % i, container('a', '1'))
    knows(c, 250)
    put_pod(c, 'p0', container('a', '2'))
    put_pod(c, 'new', container('a', '1'))
    c.api.delete('pods', 'default', 'p1')
    c.api.delete('pods', 'default', 'p2')
    knows(c, 249)
    # an agent that is gone tells nobody; another one tells anew what is there by then
    c.agent.kill()
    eventually(lambda: not feed(c)['current'])
    assert feed(c)['pods'] == 249 and feed(c)['request_source'] == 'runtime'
    c.api.delete('pods', 'default', 'p3')
    c.agent.start()
    knows(c, 248)
    # versions that the server has forgotten: listed anew
    c.api.delete('pods', 'default', 'p4')
    c.api.compact()
    knows(c, 247)


def test_the_runtime_is_believed_where_that_is_wanted(cluster):
    c = cluster(config={**QOS, 'admit': {'requestSource': 'runtime'}})
    put_pod(c, 'web', container('app', '1500m'))
    knows(c, 1)
    c.node.create('web', ctr('app', '1500m/2', '120Mi/470Mi'), uid='uid-web')
    assert 'memory-estimated' in shown(c, 'default/web/app')['flags'] and feed(c)['request_source'] == 'runtime'


def test_a_static_pod_has_the_uid_of_its_node(cluster):
    c = cluster(config=QOS)
    of_the_node = '0123456789abcdef' * 2
    mirror = {'kubernetes.io/config.mirror': of_the_node}
    put_pod(c, 'etcd', container('app', '1'), uid='of-the-mirror', annotations=mirror)
    knows(c, 1)
    # Others that say so take nothing away: neither from it nor from a pod that is not static.
    put_pod(c, 'web', container('other', '1'), uid='uid-web')
    put_pod(c, 'thief', container('other', '1'), uid='uid-thief', annotations=mirror)
    put_pod(c, 'second', container('other', '1'), uid='uid-second', annotations={'kubernetes.io/config.mirror': 'uid-web'})
    knows(c, 3)
    c.api.delete('pods', 'default', 'thief')
    c.api.delete('pods', 'default', 'second')
    knows(c, 2)
    c.node.create('etcd', ctr('app', '1/2', '120Mi/470Mi'), uid=of_the_node)
    assert 'exact-needs' in shown(c, 'default/etcd/app')['flags']


def test_pods_that_make_no_sense_are_left_out(cluster):
    c = cluster(config=QOS)
    put_pod(c, 'many', *[container('c%d' % i, '1m') for i in range(65)])
    put_pod(c, 'huge', container('app', '1', 1 << 60))
    put_pod(c, 'twice', container('app', '1'), container('app', '1'))
    put_pod(c, 'name', container('not a name', '1'))
    put_pod(c, 'good', container('app', '1'))
    knows(c, 1)
    assert feed(c)['left_out'] == 4 and 'are ignored' in c.node.read_log()
    assert not c.status()['problems']


def test_the_rights_are_missing(cluster, make_node, tmp_path):
    c = cluster(config=QOS)
    c.api.denied.add('pods')
    c.api.compact()
    eventually(lambda: any('pods' in p for p in c.status()['problems']))


def test_the_main_container_decides(cluster):
    """n4c16: 15 CPUs for pods, one node has 4. The sum of a pod's containers is more than that, its main container is not."""
    bound = {'katalyst.kubewharf.io/qos_level': 'shared_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding":"true"}'}
    parts = [ctr('side', '3'), ctr('app', '2')]
    c = cluster(config=QOS)
    knows(c, 0)
    assert 'larger than one NUMA node' in c.node.reject('sum', *parts, annotations=bound, uid='uid-sum')
    put_pod(c, 'web', container('side', '3'), container('app', '2'))
    named = {**bound, 'kubernetes.io/main-container-name': 'app'}
    knows(c, 1)
    c.node.create('web', *parts, annotations=named, uid='uid-web')
    assert c.node.cpus('web/side') == c.node.cpus('web/app')


# ---- waiting -------------------------------------------------------------------------------------------------------------------------------


def waiting(cluster, on_timeout='reject', timeout='1500ms', source='feed', head=None, **more):
    """The runtime gives more time than anything here takes."""
    c = cluster(config={**QOS, 'admit': {'requestSource': source, 'timeout': timeout, 'onTimeout': on_timeout}, **more}, head={'requestTimeout': '600s', **(head or {})})
    knows(c, 0)
    return c


def while_it_waits(c, what, name='web', **more):
    """What became of a pod whose sandbox waits when this is done."""
    def act():
        with contextlib.suppress(AssertionError):
            eventually(lambda: feed(c)['waited'], seconds=5)
        what()
    thread = threading.Thread(target=act)
    thread.start()
    try:
        return c.node.create(name, ctr('app', '1500m/2', '120Mi/470Mi'), uid='uid-' + name, **more)
    finally:
        thread.join()


def counts(c):
    return {k: feed(c)[k] for k in ('by_feed', 'by_runtime', 'waited', 'late')}


@pytest.mark.parametrize('release', ['0.6', '0.12'])
def test_a_pod_waits_for_the_feed(cluster, release):
    """Older runtimes tell of a sandbox as of any change of state."""
    c = waiting(cluster, timeout='60s', head={'nri': release})
    while_it_waits(c, lambda: put_pod(c, 'web', container('app', '1500m')))
    assert 'exact-needs' in shown(c, 'default/web/app')['flags']
    # who is known already does not
    put_pod(c, 'known', container('app', '1'))
    knows(c, 2)
    c.node.create('known', ctr('app', '1'), uid='uid-known')
    assert counts(c) == {'by_feed': 2, 'by_runtime': 0, 'waited': 1, 'late': 0}


def test_nobody_tells(cluster):
    c = waiting(cluster, timeout='100ms')
    assert re.search('admission timed out: pod not found .*uid-web', c.node.reject('web', ctr('app', '1'), uid='uid-web'))
    c.agent.kill()
    eventually(lambda: not feed(c)['current'])
    assert 'admission timed out: no agent sends' in c.node.reject('web', ctr('app', '1'), uid='uid-web')
    assert '2 pods were created before their requests arrived from the cluster' in c.findings() and any('no agent sends the cluster' in f for f in c.findings())
    assert c.node.ctl('pods') == [] and counts(c)['late'] == 2
    # the kubelet comes again with the same UID
    put_pod(c, 'web', container('app', '1'))
    c.agent.start()
    knows(c, 1)
    c.node.create('web', ctr('app', '1'), uid='uid-web')
    assert c.node.cpus('web/app')


def test_the_runtime_is_answered_in_time(cluster):
    """Whatever the configuration says: a runtime that waits for too long goes on without us, for good."""
    c = waiting(cluster, timeout='1h', head={'requestTimeout': '4s'})
    assert 'admission timed out' in c.node.reject('web', ctr('app', '1'), uid='uid-web')
    assert c.node.status()['pid'] and c.node.ctl('status', check=False)['runtime']['disconnects'] == 0


def test_nobody_tells_and_that_is_all_right(cluster):
    c = waiting(cluster, 'allow', '100ms')
    c.node.create('web', ctr('app', '1'), uid='uid-web')
    assert counts(c) == {'by_feed': 0, 'by_runtime': 1, 'waited': 1, 'late': 1}


def test_the_cluster_is_asked_first(cluster):
    """With auto nobody is refused, and without an agent nobody waits."""
    c = waiting(cluster, timeout='100ms', source='auto')
    c.node.create('web', ctr('app', '1'), uid='uid-web')
    assert counts(c) == {'by_feed': 0, 'by_runtime': 1, 'waited': 1, 'late': 1}
    c.agent.kill()
    eventually(lambda: not feed(c)['current'])
    c.node.create('db', ctr('app', '1'), uid='uid-db')
    assert counts(c) == {'by_feed': 0, 'by_runtime': 2, 'waited': 1, 'late': 1}


def test_other_policies_do_not_wait(cluster):
    c = cluster(config={'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}}, 'admit': {'requestSource': 'feed', 'timeout': '60s'}})
    knows(c, 0)
    c.node.create('web', ctr('app', '1'), uid='uid-web')
    assert counts(c)['waited'] == 0


def test_a_reload_while_a_pod_waits(cluster):
    c = waiting(cluster, timeout='60s')

    def believe_the_runtime():
        path = pathlib.Path(c.node.paths['config'])
        path.write_text(path.read_text().replace('feed', 'runtime'))
        c.node.ctl('reload')
    while_it_waits(c, believe_the_runtime)
    assert counts(c)['by_runtime'] == 1


@pytest.mark.parametrize('signo', [signal.SIGKILL, signal.SIGTERM])
def test_the_daemon_ends_while_a_pod_waits(cluster, signo):
    """Stopped, it answers what it knows; killed, the runtime goes on without it. Nothing of the pod is left but what the runtime has."""
    c = waiting(cluster, timeout='60s')
    pid = c.node.status()['pid']
    c.node.allow('.')
    with contextlib.suppress(SimError):
        while_it_waits(c, lambda: os.kill(pid, signo))
    c.node.run('exited')
    c.node.start()
    has = [] if signo == signal.SIGTERM else ['default/web/app']
    assert len(c.node.places()) == len(has) and [x['full_name'] for x in c.node.ctl('containers')] == has
    assert len(c.node.ctl('pods')) == len(has)


# ---- pods that have ended ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('phase', ['Succeeded', 'Failed'])
def test_a_pod_that_has_ended_holds_nothing(cluster, phase):
    """Its sandbox stays until the kubelet collects it, a Job's for days."""
    own = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding":"true","numa_exclusive":"true"}'}
    c = cluster(config=QOS)
    for name in ('job', 'next'):
        put_pod(c, name, container('app', '8'))
    knows(c, 2)

    def refused():
        return 'no available CPU hints' in c.node.reject('next', ctr('app', '8'), uid='uid-next', annotations=own)
    c.node.create('job', ctr('app', '8'), uid='uid-job', annotations=own)
    assert refused()
    # an ended container may be started again: its pod still holds what it was granted
    c.node.exit('job/app')
    assert refused()
    put_pod(c, 'job', container('app', '8'), phase=phase)
    eventually(lambda: 'default/job has ended' in c.node.read_log())
    c.node.create('next', ctr('app', '8'), uid='uid-next', annotations=own)
    assert len(c.node.cpus('next/app')) >= 8
    c.node.delete('job')
    c.node.restart()
    assert len(c.node.cpus('next/app')) >= 8


def test_a_container_that_runs_keeps_what_it_has(cluster):
    """The cluster may know more than the runtime has told."""
    c = cluster(config=QOS)
    put_pod(c, 'job', container('app', '2'))
    knows(c, 1)
    c.node.create('job', ctr('app', '2'), uid='uid-job')
    had = c.node.cpus('job/app')
    put_pod(c, 'job', container('app', '2'), phase='Failed')
    put_pod(c, 'other', container('app', '1'))
    knows(c, 2)
    assert c.node.cpus('job/app') == had and 'has ended' not in c.node.read_log()
    c.node.delete('job')


# ---- DaemonSets ----------------------------------------------------------------------------------------------------------------------------


def test_pods_of_a_daemon_set_are_left_alone(cluster):
    """They are on each node, full or not; a restart without an agent does not make others of them."""
    owner = [{'kind': 'DaemonSet', 'name': 'd', 'controller': True}]
    c = cluster(config=QOS)
    put_pod(c, 'web', container('app', '15'))
    put_pod(c, 'log', container('app', '1'), ownerReferences=owner)
    put_pod(c, 'dns', container('app', '1'), ownerReferences=owner)
    put_pod(c, 'job', container('app', '1'), ownerReferences=[{'kind': 'Job', 'name': 'j', 'controller': True}])
    knows(c, 4)
    c.node.create('web', ctr('app', '15'), uid='uid-web')
    assert 'no available CPU hints' in c.node.reject('job', ctr('app', '1'), uid='uid-job')
    c.node.create('log', ctr('app', '1'), uid='uid-log')
    c.node.create('dns', ctr('app', '1'), uid='uid-dns', annotations={'katalyst.kubewharf.io/qos_level': 'system_cores'})

    def pinned():
        return {x['full_name'] for x in c.node.ctl('containers') if x['cpus']}
    assert pinned() == {'default/web/app', 'default/dns/app'}
    c.agent.kill()
    c.node.kill()
    c.node.start()
    c.node.settle()
    assert pinned() == {'default/web/app', 'default/dns/app'}


RECLAIMED = 'resource.katalyst.kubewharf.io/reclaimed_'
NAMES = {RECLAIMED + 'millicpu': 'cpu', RECLAIMED + 'memory': 'memory', 'example.com/cpus': 'cpu'}


def wants(name, **amounts):
    return {'name': name, 'resources': {kind: dict(amounts) for kind in ('requests', 'limits')}}


def test_resources_that_count_as_others(cluster):
    c = waiting(cluster)
    config = yaml.safe_load((pathlib.Path(c.node.paths['config'])).read_text())

    def names(map_):
        c.node.run('write-config', {**config, 'admit': {**config['admit'], 'resourceNames': map_}})
        c.node.ctl('reload')
    put_pod(c, 'before', wants('app', **{RECLAIMED + 'millicpu': '1500'}))
    knows(c, 1)
    names(NAMES)
    put_pod(c, 'lent', wants('app', **{RECLAIMED + 'millicpu': '2500', RECLAIMED + 'memory': '64Mi'}))
    put_pod(c, 'whole', wants('app', **{'example.com/cpus': '2'}))
    put_pod(c, 'twice', wants('app', cpu='1', **{'example.com/cpus': '2'}))
    put_pod(c, 'thrice', wants('app', **{'example.com/cpus': '2', RECLAIMED + 'millicpu': '2500'}))
    knows(c, 5)
    for name, mcpu in (('before', 1500), ('lent', 2500), ('whole', 2000)):
        c.node.create(name, ctr('app'), uid='uid-' + name)
        assert shown(c, 'default/%s/app' % name)['wanted']['cpu_request_milli'] == mcpu
    assert shown(c, 'default/lent/app')['wanted']['memory_request'] == 64 << 20
    for name in ('twice', 'thrice'):
        assert 'container app requests a resource twice, also as' in c.node.reject(name, ctr('app'), uid='uid-' + name)
    names({})
    c.node.create('twice', ctr('app', '1'), uid='uid-twice')
    assert shown(c, 'default/twice/app')['wanted']['cpu_request_milli'] == 1000
    for wrong in ({'cpu': 'memory'}, {'a/b': 'a/b'}, {'a/b': ''}, {'a b': 'cpu'}, {'a/b': ['cpu']}, ['a/b'], {'a/%d' % i: 'cpu' for i in range(33)}):
        with pytest.raises(AssertionError, match='admit.resourceNames'):
            names(wrong)


# ---- pods whose end the runtime does not report --------------------------------------------------------------------------------------------


def pods(c):
    return sorted(pod['name'] for pod in c.node.ctl('pods'))


def test_empty_pods_go_with_the_cluster_s(cluster):
    """A runtime that was killed does not report the sandboxes that it removes later."""
    c = cluster(config=QOS)
    for name in ('web', 'old', 'older'):
        put_pod(c, name, container('app', '1'))
    knows(c, 3)
    for name in ('web', 'old', 'older'):
        c.node.create(name, ctr('app', '1/2', '120Mi/470Mi'), uid='uid-' + name)
    c.node.remove('old/app', 'older/app')
    assert pods(c) == ['old', 'older', 'web']
    c.api.delete('pods', 'default', 'old')
    eventually(lambda: pods(c) == ['older', 'web'])
    # deleted while no agent is there, and one that still runs something
    c.agent.kill()
    c.api.delete('pods', 'default', 'older')
    c.api.delete('pods', 'default', 'web')
    c.agent.start()
    eventually(lambda: feed(c)['current'])
    c.node.runtime_restart()
    c.node.settle()
    assert pods(c) == ['web']


def test_an_empty_pod_is_replaced_by_its_next_sandbox(make_node):
    node = make_node(QOS)
    node.create('web', ctr('app', '1', '64Mi'), uid='uid-web')
    node.create('other', ctr('app', '1', '64Mi'), uid='uid-other')
    first = node.ctl('pods')[0]['id']
    node.remove('web/app')
    node.create('again', ctr('app', '1', '64Mi'), uid='uid-web')
    assert sorted(pod['name'] for pod in node.ctl('pods')) == ['again', 'other']
    # the runtime lists the earlier one, too
    node.runtime_restart()
    node.settle()
    assert first not in [pod['id'] for pod in node.ctl('pods')]
