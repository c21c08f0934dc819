# SPDX-License-Identifier: Apache-2.0
"""Resource plugins: a plugin in Python at a real agent's folder, a real daemon, a cluster that tells what pods ask for."""
import contextlib
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import threading
import time

import grpc
import pytest

from resourceplugin import API, Plugin
from simnode import STATIC, SimError, ctr, eventually
from test_cluster import Cluster
from test_cluster_pods import container, knows, put_pod

TOP = pathlib.Path(__file__).resolve().parents[2]
GPU = 'example.com/gpu'
NONE = {'policy': 'none'}
QOS = {'policy': 'qos', 'qos': {'reservedCPUs': '0', 'rampUpSeconds': 0}}
OFFERS = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding": "true"}'}


SOON = ['--plugin-grace', '2']  # plugins are looked at each second


class PluginCluster(Cluster):
    def __init__(self, make_node, folder, options=(), **more):
        self.folder = folder / 'plugins'
        super().__init__(make_node, folder, agent=['--plugin-dir', str(self.folder), *options], **more)
        knows(self, 0)

    def plugins(self):
        return {x['resource']: x for x in self.node.ctl('status', check=False)['resource_plugins']['plugins']}

    def connected(self, *resources):
        eventually(lambda: all(self.plugins().get(r, {}).get('connected') for r in resources))

    def pod(self, name, *parts, wait=True, uid=None, **meta):
        """Tells the cluster of a pod: parts are (container, cpu, {resource: amount})."""
        put_pod(self, name, *[{**container(c, cpu), 'resources': {'requests': {'cpu': cpu, 'memory': '64Mi', **{r: str(n) for r, n in more.items()}},
                                                                  'limits': {r: str(n) for r, n in more.items()}}} for c, cpu, more in parts],
                uid=uid, **meta)


@pytest.fixture
def cluster(make_node, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(PluginCluster(make_node, tmp_path, **{'config': NONE, **more}))


def gpu_pod(c, name, n=1, **meta):
    c.pod(name, ('app', '1', {GPU: n}), **meta)


def create(c, name, *more, **args):
    return c.node.create(name, ctr('app', '1', '64Mi'), *more, uid='uid-' + name, **args)


def env(c, name):
    return c.node.container(name)['given'].get('env', {})


def test_allocated_at_admission_and_given_at_creation(cluster):
    c = cluster()
    with Plugin(c.folder, GPU) as gpu:
        gpu.dress = lambda request, names: {'envs': {'GPUS': ','.join(names)}, 'annotations': {'example.com/granted': names[0]},
                                            'oci_property_name': 'CpusetCpus', 'allocation_result': '2-3'}
        c.connected(GPU)
        c.pod('web', ('app', '1', {GPU: 2}), ('side', '100m', {}), labels={'app': 'web'}, annotations={'a': 'b'})
        knows(c, 1)
        c.node.create('web', ctr('app', '1', '64Mi'), ctr('side', '100m', '16Mi'), uid='uid-web', labels={'app': 'web'}, annotations={'a': 'b'})
        assert gpu.held() == {'uid-web': {'app': ['gpu0', 'gpu1']}}
        app = c.node.container('web/app')
        assert app['given']['env'] == {'GPUS': 'gpu0,gpu1'} and app['given']['annotations'] == {'example.com/granted': 'gpu0'}
        assert c.node.cpus('web/app') == {2, 3} and not env(c, 'web/side')
        request, = gpu.called('Allocate')
        assert (request.pod_namespace, request.pod_name, request.container_name) == ('default', 'web', 'app')
        assert request.container_type == API.MAIN and dict(request.resource_requests) == {GPU: 2}
        assert request.labels['app'] == 'web' and request.annotations['a'] == 'b' and request.native_qos_class
        assert not gpu.called('GetTopologyHints'), 'it has none'
        c.node.delete('web')
        eventually(lambda: gpu.held() == {})


def test_hints_are_merged_with_the_policys_own(cluster):
    c = cluster(config=QOS)
    with Plugin(c.folder, GPU, aligns=True) as gpu:
        gpu.hints = [([2], True), ([3], True)]
        c.connected(GPU)
        c.pod('web', ('app', '1', {GPU: 1}))
        knows(c, 1)
        create(c, 'web', annotations=OFFERS)
        assert list(gpu.called('Allocate')[0].hint.nodes) == [2] and gpu.called('Allocate')[0].hint.preferred
        assert c.node.cpus('web/app') <= {8, 9, 10, 11} and c.node.mems('web/app') == {2}
        explained = str(c.node.ctl('explain', 'default/web/app'))
        assert 'resource plugin example.com/gpu: NUMA nodes (* preferred): 2* 3*; merged: 2*' in explained


def test_nothing_fits_or_is_left(cluster):
    c = cluster(config={'policy': 'qos', 'qos': {**QOS['qos'], 'topologyPolicy': 'restricted'}})
    with Plugin(c.folder, GPU, units=2, aligns=True) as gpu:
        c.connected(GPU)
        gpu_pod(c, 'web', 3)
        knows(c, 1)
        c.node.reject('web', ctr('app', '1', '64Mi'), uid='uid-web', error='topology policy restricted')
        assert not gpu.called('Allocate')


def test_what_a_plugin_refuses(cluster):
    c = cluster()
    with Plugin(c.folder, GPU, units=1) as gpu:
        c.connected(GPU)
        gpu_pod(c, 'one')
        gpu_pod(c, 'two')
        knows(c, 2)
        create(c, 'one')
        c.node.reject('two', ctr('app', '1', '64Mi'), uid='uid-two', error='example.com/gpu.*Allocate.*0 example.com/gpu are left')
        eventually(lambda: c.plugins()[GPU]['failures'] == 1)
        assert '0 example.com/gpu are left' in c.plugins()[GPU]['error']
        c.node.delete('one')
        eventually(lambda: not gpu.held())
        create(c, 'two')
        assert gpu.held() == {'uid-two': {'app': ['gpu0']}}


@pytest.mark.parametrize('on_timeout', ['reject', 'allow'])
def test_one_that_hangs_holds_up_nobody(cluster, on_timeout):
    c = cluster(config={**NONE, 'admit': {'timeout': '300ms', 'onTimeout': on_timeout}}, options=SOON)
    with Plugin(c.folder, GPU) as gpu:
        go = threading.Event()
        gpu.before = lambda method, request, context: go.wait(20) and None if method == 'Allocate' else None
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        begun, swept = time.monotonic(), len(gpu.called('GetResourcesAllocation'))
        if on_timeout == 'reject':
            c.node.reject('web', ctr('app', '1', '64Mi'), uid='uid-web', error='admission timed out: .*example.com/gpu')
        else:
            create(c, 'web')
            assert not env(c, 'web/app')
        assert time.monotonic() - begun < 10
        assert c.node.ctl('status', check=False)['resource_plugins']['late'] >= 1
        eventually(lambda: len(gpu.called('GetResourcesAllocation')) > swept + 1)
        go.set()
        if on_timeout == 'reject':
            # what it has done all the same is taken back
            eventually(lambda: not gpu.held(), 30)
            create(c, 'web')
        eventually(gpu.held)


def test_one_that_dies_and_comes_back(cluster):
    c = cluster()
    state = {}
    gpu_pod(c, 'web')
    knows(c, 1)
    with Plugin(c.folder, GPU, state=state):
        c.connected(GPU)
        create(c, 'web')
    eventually(lambda: not c.plugins()[GPU]['connected'])
    # what it gave counts on, new ones are refused
    c.node.replace('web/app')
    assert env(c, 'web/app') == {'GPUS': 'gpu0'}
    gpu_pod(c, 'next')
    knows(c, 2)
    c.node.reject('next', ctr('app', '1', '64Mi'), uid='uid-next', error='example.com/gpu .*not connected')
    c.node.delete('web')
    with Plugin(c.folder, GPU, state=state) as gpu:
        c.connected(GPU)
        eventually(lambda: not gpu.held(), 30)  # it was away when the pod was removed
        create(c, 'next')
        assert gpu.held() == {'uid-next': {'app': ['gpu0']}}


def test_after_the_grace_it_is_forgotten(cluster):
    c = cluster(options=['--plugin-grace', '1'])
    with Plugin(c.folder, GPU):
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        create(c, 'web')
    eventually(lambda: GPU not in c.plugins())
    c.node.replace('web/app')
    assert not env(c, 'web/app')


NONSENSE = {
    'bytes': (b'\xff\xff\xff', 'cannot be decoded'),
    'another pod': (API.ResourceAllocationResponse(pod_uid='uid-other'), 'about another pod'),
    'a property': ({'oci_property_name': 'Everything', 'allocation_result': '1'}, 'oci_property_name'),
    'CPUs': ({'oci_property_name': 'CpusetCpus', 'allocation_result': '1-'}, 'not a list of CPUs'),
    'CPUs of no machine': ({'oci_property_name': 'CpusetCpus', 'allocation_result': '99999'}, 'not a list of CPUs'),
    'a limit': ({'oci_property_name': 'MemoryLimitInBytes', 'allocation_result': 'many'}, 'MemoryLimitInBytes'),
    'a variable': ({'envs': {'A=B': 'c'}}, 'is not a name of an environment variable'),
    'a device': ({'devices': [API.DeviceSpec(container_path='/dev/x', host_path='/etc/shadow', permissions='rw')]}, 'below /dev'),
    'permissions': ({'devices': [API.DeviceSpec(container_path='/dev/x', host_path='/dev/null', permissions='r')]}, 'permissions'),
    'a mount': ({'mounts': [API.Mount(container_path='x', host_path='/')]}, 'absolute paths'),
    'a CDI name': ({'annotations': {'cdi.k8s.io/x': 'nothing'}}, 'not a CDI name'),
}


def test_nonsense_is_refused_with_what_is_wrong(cluster):
    c = cluster()
    with Plugin(c.folder, GPU) as gpu:
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        for what, (answer, error) in NONSENSE.items():
            gpu.before = lambda method, request, context, answer=answer: None if method != 'Allocate' or isinstance(answer, dict) else answer
            gpu.dress = lambda request, names, answer=answer: answer if isinstance(answer, dict) and request else {}
            c.node.reject('web', ctr('app', '1', '64Mi'), uid='uid-web', error='example.com/gpu.*' + error), what
        gpu.before, gpu.dress = lambda *_: None, lambda request, names: {}
        create(c, 'web')


def test_errors_in_text_that_is_cut_within_a_character(cluster):
    c = cluster(config=QOS)
    name = 'a/b'  # short, for the reason to be cut within its é
    with Plugin(c.folder, name, endpoint='ab.sock', aligns=True) as gpu:
        c.connected(name)
        c.pod('web', ('app', '1', {name: 1}))
        knows(c, 1)
        gpu.dress = lambda request, names: {'oci_property_name': 'x' + 'é' * 40, 'allocation_result': '1'} if request else {}
        c.node.reject('web', ctr('app', '1', '64Mi'), uid='uid-web', error='a/b.*oci_property_name')
        with Plugin(c.folder, 'example.com/nic'):
            c.connected(name, 'example.com/nic')
        gpu.dress = lambda request, names: {}

        def no_hints(method, request, context):
            if method == 'GetTopologyHints':
                context.abort(grpc.StatusCode.INTERNAL, 'é' * 100)
        gpu.before = no_hints
        create(c, 'web')
        assert 'nothing fits (resource plugin a/b (ab.sock): GetTopologyHints: ééééé)' in str(c.node.ctl('explain', 'default/web/app'))


def test_one_that_cannot_tell_what_it_has_allocated_is_not_pestered(cluster):
    c = cluster()
    with Plugin(c.folder, GPU) as gpu:
        gpu.before = lambda method, request, context: context.abort(grpc.StatusCode.INTERNAL, 'no') if method == 'GetResourcesAllocation' else None
        gpu.register()
        c.connected(GPU)
        eventually(lambda: c.plugins()[GPU]['failures'])
        time.sleep(1)
        assert len(gpu.called('GetResourcesAllocation')) <= 3


def test_a_cluster_that_tells_nothing_holds_up_no_pod(cluster):
    c = cluster(config={**NONE, 'admit': {'timeout': '1s'}})
    with Plugin(c.folder, GPU):
        c.connected(GPU)
        c.agent.kill()
        eventually(lambda: not c.plugins()[GPU]['connected'])
        create(c, 'static')


def test_hints_that_make_no_sense_are_none(cluster):
    c = cluster(config={'policy': 'qos', 'qos': {**QOS['qos'], 'topologyPolicy': 'restricted'}})
    with Plugin(c.folder, GPU, aligns=True) as gpu:
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        for hints in [[([5000], True)], [([0], True)] * 513]:
            gpu.hints = hints
            c.node.reject('web', ctr('app', '1', '64Mi'), uid='uid-web', error='topology policy')
        gpu.hints = []  # no opinion
        create(c, 'web')


def test_registration(cluster):
    c = cluster()
    with Plugin(c.folder, GPU, register=False) as gpu:
        for other, error in [({'version': 'v1'}, 'version'), ({'resource_name': ''}, 'resource_name'), ({'endpoint': '../x'}, 'endpoint'),
                             ({'endpoint': 'kubelet.sock'}, 'endpoint')]:
            with pytest.raises(grpc.RpcError) as refused:
                gpu.register(**other)
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT and error in refused.value.details()
        assert c.plugins() == {}
        gpu.options = API.ResourcePluginOptions(pre_start_required=True)
        gpu.register(options=None)  # it is asked
        c.connected(GPU)
        assert c.plugins()[GPU]['pre_start'] and not c.plugins()[GPU]['hints']
        with Plugin(c.folder, GPU, endpoint='second.sock', aligns=True):
            eventually(lambda: c.plugins()[GPU]['endpoint'] == 'second.sock' and c.plugins()[GPU]['connected'])
            assert len(c.plugins()) == 1


def test_asked_before_a_container_begins(cluster):
    c = cluster()
    with Plugin(c.folder, GPU, pre_start=True) as gpu:
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        create(c, 'web')
        request, = gpu.called('PreStartContainer')
        assert (request.pod_uid, request.container_name) == ('uid-web', 'app')

        def refuse(method, request, context):
            if method == 'PreStartContainer':
                context.abort(grpc.StatusCode.INTERNAL, 'it is on fire')
        gpu.before = refuse
        with pytest.raises(SimError, match='PreStartContainer: it is on fire'):
            c.node.replace('web/app')


def test_two_plugins_that_set_one_variable(cluster):
    c = cluster()
    with Plugin(c.folder, GPU) as gpu, contextlib.ExitStack() as stack:
        c.connected(GPU)
        nic = stack.enter_context(Plugin(c.folder, 'example.com/nic'))
        c.connected('example.com/nic')
        gpu.dress = lambda request, names: {'envs': {'DEVICE': names[0], 'GPU': '1'}}
        nic.dress = lambda request, names: {'envs': {'DEVICE': names[0], 'NIC': '1'}}
        c.pod('web', ('app', '1', {GPU: 1, 'example.com/nic': 1}))
        knows(c, 1)
        create(c, 'web')
        assert env(c, 'web/app') == {'DEVICE': 'gpu0', 'GPU': '1', 'NIC': '1'}
        assert 'both set DEVICE: using example.com/gpu' in c.node.read_log()


def test_devices_mounts_and_cdi_names(cluster):
    c = cluster()
    dev = pathlib.Path(c.node.paths['root']) / 'dev'
    dev.mkdir(exist_ok=True)
    try:
        os.mknod(dev / 'gpu0', stat.S_IFCHR | 0o600, os.makedev(195, 7))
    except PermissionError:
        pytest.skip('device files cannot be made here')
    with Plugin(c.folder, GPU) as gpu:
        gpu.dress = lambda request, names: {'devices': [API.DeviceSpec(container_path='/dev/x', host_path='/dev/gpu0', permissions='rw')],
                                            'mounts': [API.Mount(container_path='/lib/gpu', host_path='/usr/lib/gpu', read_only=True)],
                                            'annotations': {'cdi.k8s.io/gpu': 'example.com/gpu=0,example.com/gpu=1'}}
        c.connected(GPU)
        gpu_pod(c, 'web')
        gpu_pod(c, 'next')
        knows(c, 2)
        create(c, 'web')
        given = str(c.node.container('web/app')['given'])
        for part in ('/dev/x', '195', '/lib/gpu', '/usr/lib/gpu', 'example.com/gpu=0', 'example.com/gpu=1'):
            assert part in given, given
        (dev / 'gpu0').unlink()
        with pytest.raises(SimError, match='resource plugin example.com/gpu grants /dev/gpu0: No such file'):
            create(c, 'next')


def test_the_policy_comes_first(cluster):
    c = cluster(config=QOS)
    with Plugin(c.folder, GPU) as gpu:
        gpu.dress = lambda request, names: {'oci_property_name': 'CpusetCpus', 'allocation_result': '15'}
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        create(c, 'web', annotations=OFFERS)
        assert c.node.cpus('web/app') != {15}
        assert 'CPUs 15, but the policy decided another value' in str(c.node.ctl('explain', 'default/web/app'))


@pytest.mark.parametrize('amount', ['3', '"3"', '"3000m"'])
def test_the_pod_as_a_whole(cluster, amount):
    c = cluster()
    with Plugin(c.folder, GPU) as gpu:
        c.connected(GPU)
        whole = {'pod.kubernetes.io/pod-aggregated-requests': '{"%s": %s}' % (GPU, amount)}
        c.pod('web', ('app', '1', {GPU: 1}), ('more', '1', {GPU: 1}), annotations=whole)
        knows(c, 1)
        c.node.create('web', ctr('app', '1', '64Mi'), ctr('more', '1', '64Mi'), uid='uid-web', annotations=whole)
        assert gpu.held() == {'uid-web': {'': ['gpu0', 'gpu1', 'gpu2']}} and len(gpu.called('AllocateForPod')) == 1
        assert env(c, 'web/app') == {'GPUS': 'gpu0,gpu1,gpu2'} and env(c, 'web/more') == {'GPUS': 'gpu0,gpu1,gpu2'}


def test_an_amount_for_the_pod_that_makes_no_sense(cluster):
    c = cluster()
    with Plugin(c.folder, GPU):
        c.connected(GPU)
        whole = {'pod.kubernetes.io/pod-aggregated-requests': '{"%s": "many"}' % GPU}
        c.pod('web', ('app', '1', {GPU: 1}), annotations=whole)
        knows(c, 1)
        c.node.reject('web', ctr('app', '1', '64Mi'), uid='uid-web', annotations=whole, error='example.com/gpu: expected a quantity')


@pytest.mark.parametrize('whole', ['{', '[]', '{"%s": "many"}' % GPU, '{"cpu": {}}'])
def test_what_cannot_be_read_matters_to_nobody_else(cluster, whole):
    """A pod with an annotation that makes no sense, and nothing of the plugin's."""
    c = cluster()
    whole = {'pod.kubernetes.io/pod-aggregated-requests': whole}
    with Plugin(c.folder, GPU) as gpu:
        c.connected(GPU)
        c.pod('web', ('app', '1', {}), annotations=whole)
        c.pod('gpu', ('app', '1', {GPU: 1}), annotations={'pod.kubernetes.io/pod-aggregated-requests': '{'})
        knows(c, 2)
        create(c, 'web', annotations=whole)
        c.node.reject('gpu', ctr('app', '1', '64Mi'), uid='uid-gpu', annotations={'pod.kubernetes.io/pod-aggregated-requests': '{'},
                      error='pod-aggregated-requests: expected an object')
        assert not gpu.called('AllocateForPod') and not gpu.called('Allocate')


def test_unmanaged_containers(cluster):
    """One that the policy cannot place has what plugins gave it; what they refuse is refused."""
    c = cluster(config={'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}, 'onPolicyError': 'unmanaged'})
    with Plugin(c.folder, GPU, pre_start=True) as gpu:
        c.connected(GPU)
        for name in ('first', 'second'):
            c.pod(name, ('app', '12', {GPU: 1}))
        knows(c, 2)
        for name in ('first', 'second'):
            c.node.create(name, ctr('app', '12', '64Mi'), uid='uid-' + name)
        c.node.log('second/app.*runs unmanaged')
        assert env(c, 'second/app') == {'GPUS': 'gpu1'}
        gpu.before = lambda method, request, context: context.abort(grpc.StatusCode.INTERNAL, 'no') if method == 'PreStartContainer' else None
        with pytest.raises(SimError, match='PreStartContainer: no'):
            c.node.replace('first/app')


def test_a_second_agent_leaves_the_first_ones_socket(cluster):
    c = cluster()
    run = subprocess.run([*c.agent.process.args[:5], *map(str, c.options)], capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode and 'kubelet.sock' in run.stderr
    with Plugin(c.folder, GPU):
        c.connected(GPU)


def test_restarts(cluster):
    """What was answered is there after a kill of any of the three."""
    c = cluster()
    state = {}
    with contextlib.ExitStack() as stack:
        gpu = stack.enter_context(Plugin(c.folder, GPU, state=state))
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        create(c, 'web')
        c.node.kill()
        c.node.start()
        knows(c, 1)
        c.connected(GPU)
        c.node.replace('web/app')
        assert env(c, 'web/app') == {'GPUS': 'gpu0'} and len(gpu.called('Allocate')) == 1
        c.agent.kill()
        eventually(lambda: not c.plugins()[GPU]['connected'])
        c.node.replace('web/app')
        assert env(c, 'web/app') == {'GPUS': 'gpu0'}
        c.agent.start()
        knows(c, 1)
        # known before it is there again
        assert GPU in c.plugins() and not c.plugins()[GPU]['connected']
        gpu.stop()
        stack.enter_context(Plugin(c.folder, GPU, state=state))
        c.connected(GPU)
        c.node.delete('web')
        eventually(lambda: not state)


def test_what_a_plugin_changes_by_itself(cluster):
    c = cluster()
    with Plugin(c.folder, GPU, reconciles=True) as gpu:
        cpus = ['2']
        gpu.dress = lambda request, names: {'oci_property_name': 'CpusetCpus', 'allocation_result': cpus[0]}
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        create(c, 'web')
        assert c.node.cpus('web/app') == {2}
        cpus[0] = '4-5'
        eventually(lambda: c.node.cpus('web/app') == {4, 5}, 30)


def test_what_a_plugin_lists_no_more(cluster):
    c = cluster(options=SOON)
    with Plugin(c.folder, GPU, reconciles=True) as gpu:
        gpu.dress = lambda request, names: {'oci_property_name': 'CpusetCpus', 'allocation_result': '2'}
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        create(c, 'web')
        assert c.node.cpus('web/app') == {2}
        with gpu.lock:
            gpu.state.clear()
        eventually(lambda: c.node.cpus('web/app') != {2})
        assert 'example.com/gpu no longer lists it' in c.node.read_log()


def test_cpus_of_one_that_is_forgotten(cluster):
    c = cluster(options=['--plugin-grace', '1'])
    with Plugin(c.folder, GPU) as gpu:
        gpu.dress = lambda request, names: {'oci_property_name': 'CpusetCpus', 'allocation_result': '2'}
        c.connected(GPU)
        gpu_pod(c, 'web')
        knows(c, 1)
        create(c, 'web')
        assert c.node.cpus('web/app') == {2}
    eventually(lambda: c.node.cpus('web/app') != {2})


@pytest.mark.parametrize('what, says', [(('CpusetCpus', '2,40'), 'CPUs 2,40, of which 40 are not online'),
                                        (('CpusetMems', '0,7'), 'memory nodes 0,7, of which 7 have no memory'),
                                        (('CpusetCpus', '0-15'), 'CPUs 0-15, of which [0-9]+ are exclusive CPUs of container default/alone/app')])
def test_grants_that_do_not_fit_are_refused(cluster, what, says):
    """The pod that they are for is refused with the plugin's name; nothing else is affected."""
    c = cluster(config=STATIC if 'alone' in says else NONE)
    with Plugin(c.folder, GPU) as gpu:
        gpu.dress = lambda request, names: {'oci_property_name': what[0], 'allocation_result': what[1]}
        c.connected(GPU)
        c.pod('alone', ('app', '1', {}))
        c.pod('other', ('app', '100m', {}))
        gpu_pod(c, 'web')
        knows(c, 3)
        create(c, 'alone')
        c.node.reject('web', ctr('app', '1', '64Mi'), uid='uid-web', error='resource plugin example.com/gpu grants container app ' + says)
        create(c, 'other')
        counts = c.node.ctl('status', check=False)['counts']
        assert counts['policy_errors'] == counts['invariant_breaks'] == 0  # a plugin's fault is not the policy's


def test_changes_that_do_not_fit_are_not_applied(cluster):
    c = cluster(options=SOON)
    with Plugin(c.folder, GPU, reconciles=True) as gpu:
        cpus = {'uid-web': '2', 'uid-two': '3'}
        gpu.dress = lambda request, names: {'oci_property_name': 'CpusetCpus', 'allocation_result': cpus['uid-web' if names == ['gpu0'] else 'uid-two']}
        c.connected(GPU)
        gpu_pod(c, 'web')
        gpu_pod(c, 'two')
        knows(c, 2)
        create(c, 'web')
        create(c, 'two')
        cpus.update({'uid-web': '40', 'uid-two': '5'})
        eventually(lambda: c.node.cpus('two/app') == {5}, 30)
        assert c.node.cpus('web/app') == {2}
        c.node.log('pod default/web: resource plugin example.com/gpu grants container app CPUs 40, of which 40 are not online; the change is not')


def test_grants_that_do_not_fit_at_synchronize_are_dropped(cluster):
    """A CPU of a grant goes offline while the daemon is away, and the pod's second container is created meanwhile."""
    c = cluster()
    with Plugin(c.folder, GPU) as gpu:
        gpu.dress = lambda request, names: {'oci_property_name': 'CpusetCpus', 'allocation_result': '15' if names == ['gpu1'] else '2'}
        c.connected(GPU)
        c.pod('web', ('app', '1', {GPU: 1}), ('side', '1', {GPU: 1}))
        knows(c, 1)
        create(c, 'web')
        assert c.node.cpus('web/app') == {2}
        c.node.stop()
        c.node.offline('15')
        c.node.create('web', ctr('side', '1', '64Mi'), uid='uid-web')
        c.node.start()
        assert 15 not in c.node.cpus('web/side') and c.node.cpus('web/app') == {2}
        c.node.log('default/web/side: resource plugin example.com/gpu grants container side CPUs 15, of which 15 are not online; ignored for this container')
        assert 'of which 15 are not online' in str(c.node.ctl('explain', 'default/web/side'))
        assert not c.node.ctl('status', check=False).get('degraded')


def test_reconciling_changes_no_order(cluster):
    c = cluster(options=SOON)
    with Plugin(c.folder, GPU, reconciles=True) as gpu, contextlib.ExitStack() as stack:
        c.connected(GPU)
        nic = stack.enter_context(Plugin(c.folder, 'example.com/nic'))
        c.connected('example.com/nic')
        version, turn = ['1'], [0]

        def dress(request, names):
            """As Go does: the pairs in another order each time."""
            turn[0] += 1
            pairs = [('DEVICE', names[0]), ('VERSION', version[0])]
            return {'envs': dict(pairs[::-1] if turn[0] % 2 else pairs)}
        gpu.dress, nic.dress = dress, lambda request, names: {'envs': {'DEVICE': names[0]}}
        c.pod('web', ('app', '1', {GPU: 1, 'example.com/nic': 1}))
        knows(c, 1)
        create(c, 'web')
        version[0] = '2'
        reconciled = lambda: c.node.ctl('status', check=False)['resource_plugins']['reconciled']  # noqa: E731
        eventually(lambda: reconciled() == 1)
        c.node.replace('web/app')
        assert env(c, 'web/app') == {'DEVICE': 'gpu0', 'VERSION': '2'}
        asked = len(gpu.called('GetResourcesAllocation'))
        eventually(lambda: len(gpu.called('GetResourcesAllocation')) > asked + 2)
        assert reconciled() == 1


TOKEN = 'example.com/token'


@pytest.fixture(scope='session')
def sample(tmp_path_factory):
    """The one in C, built by its own Makefile of nothing but the files that are installed with it."""
    folder = tmp_path_factory.mktemp('resource-plugin')
    shutil.copytree(TOP / 'conf/resource-plugin', folder, dirs_exist_ok=True)
    (folder / 'proto').mkdir()
    shutil.copy(TOP / 'proto/resourceplugin.proto', folder / 'proto')
    subprocess.run(['make', '-s', 'CFLAGS=-O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined'], cwd=folder, check=True)
    return folder / 'tokens'


class Sample:
    def __init__(self, program, c, folder, n):
        self.args, self.c = [str(program), str(c.folder), TOKEN, str(n), str(folder / 'tokens')], c
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        running = self.process.poll() is None
        self.kill()
        assert kind or running, 'it has ended with %s' % self.process.returncode

    def start(self):
        eventually((self.c.folder / 'kubelet.sock').exists)
        self.process = subprocess.Popen(self.args)
        self.c.connected(TOKEN)

    def kill(self):
        self.process.kill()
        self.process.wait(20)


def test_the_sample_in_c(cluster, sample, tmp_path):
    c = cluster(options=SOON)
    with Sample(sample, c, tmp_path, 3) as plugin:
        c.pod('web', ('app', '1', {TOKEN: 1}), ('side', '1', {TOKEN: 1}))
        for name in ('db', 'more'):
            c.pod(name, ('app', '1', {TOKEN: 1}))
        knows(c, 3)
        c.node.create('web', ctr('app', '1', '64Mi'), ctr('side', '1', '64Mi'), uid='uid-web')
        assert env(c, 'web/app') == {'TOKENS': '0'} and env(c, 'web/side') == {'TOKENS': '1'}
        create(c, 'db')
        c.node.reject('more', ctr('app', '1', '64Mi'), uid='uid-more', error='example.com/token.*Allocate: 0 tokens are left, 1 are wanted')
        plugin.kill()
        eventually(lambda: not c.plugins()[TOKEN]['connected'])
        plugin.start()
        c.node.replace('web/side')
        assert env(c, 'web/side') == {'TOKENS': '1'}
        c.node.delete('web')
        eventually(lambda: (tmp_path / 'tokens').read_text() == '2 uid-db app\n')
        create(c, 'more')
        assert env(c, 'more/app') == {'TOKENS': '0'}
        c.agent.kill()  # it registers with the next one by itself
        c.agent.start()
        knows(c, 3)
        c.connected(TOKEN)
        for name in ('db', 'more'):
            c.node.delete(name)
        eventually(lambda: (tmp_path / 'tokens').read_text() == '')


def test_the_sample_in_c_and_odd_callers(cluster, sample, tmp_path):
    c = cluster()
    with Sample(sample, c, tmp_path, 3) as plugin:
        def call(method, data, answer=bytes):
            return channel.unary_unary('/resourceplugin.v1alpha1.ResourcePlugin/' + method, lambda m: m, answer)(data, timeout=20, wait_for_ready=True)
        for i in range(20):  # more than it serves at a time, who do not say anything
            with socket.socket(socket.AF_UNIX) as raw:
                raw.connect(str(c.folder / 'tokens.sock'))
                raw.sendall(b'\0' * 100 if i % 2 else b'')
        with grpc.insecure_channel('unix:' + str(c.folder / 'tokens.sock')) as channel:
            for method, data, code in (('Allocate', b'\xff', 'INVALID_ARGUMENT'), ('Allocate', b'', 'INVALID_ARGUMENT'), ('Nothing', b'', 'UNIMPLEMENTED'),
                                       ('Allocate', b'x' * (2 << 20), None)):
                with pytest.raises(grpc.RpcError) as e:
                    call(method, data)
                assert code in (None, e.value.code().name), e.value
            for n in (float('nan'), -1., 4., 1e300):
                with pytest.raises(grpc.RpcError):
                    call('Allocate', API.ResourceRequest(pod_uid='u', container_name='c', resource_requests={TOKEN: n}).SerializeToString())
            # 3 of 3, and once more the same; then what it lists
            for _ in range(2):
                call('Allocate', API.ResourceRequest(pod_uid='u', container_name='c', resource_requests={TOKEN: 3.}).SerializeToString())
            held = call('GetResourcesAllocation', b'', API.GetResourcesAllocationResponse.FromString).pod_resources['u'].container_resources['c']
            assert held.resource_allocation[TOKEN].envs['TOKENS'] == '0,1,2' and held.resource_allocation[TOKEN].allocated_quantity == 3
        assert plugin.process.poll() is None


def test_a_resource_that_counts_as_a_plugins(cluster):
    c = cluster(config={**NONE, 'admit': {'resourceNames': {'vendor.example/a100': GPU}}})
    with Plugin(c.folder, GPU) as gpu:
        c.connected(GPU)
        c.pod('web', ('app', '1', {'vendor.example/a100': 2}))
        c.pod('both', ('app', '1', {'vendor.example/a100': 1, GPU: 1}))
        knows(c, 2)
        create(c, 'web')
        assert env(c, 'web/app') == {'GPUS': 'gpu0,gpu1'} and dict(gpu.called('Allocate')[0].resource_requests) == {GPU: 2}
        c.node.reject('both', ctr('app', '1', '64Mi'), uid='uid-both', error='requests a resource twice, also as vendor.example/a100')
