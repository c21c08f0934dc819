# SPDX-License-Identifier: Apache-2.0
"""nri-rpctl import: the configurations of others, and that what comes out is a good rp.conf with the same meaning."""
import json

import pytest
import yaml

from operator_tools import FAILED, OK, run_ctl
from simnode import BUILD

MODULES = ['--module-dir', BUILD / 'modules']

CUSTOM = {'apiVersion': 'config.nri/v1alpha1', 'kind': 'BalloonsPolicy', 'metadata': {'name': 'node.worker-1'}, 'spec': {
    'reservedResources': {'cpu': '750m'}, 'balloonTypes': [{'name': 'fast', 'minCPUs': 2, 'namespaces': ['prod', 'a b']}], 'log': {'debug': ['policy']},
    'control': {'rdt': {'enable': True}}}}
VALUES = {'image': {'name': 'registry.example/nri-resource-policy-topology-aware'}, 'nri': {'plugin': {'index': 42}}, 'tolerations': [],
          'config': {'reservedResources': {'cpu': '1'}, 'pinMemory': False}}
MANAGER = {'policy': {'Active': 'balloons', 'ReservedResources': {'CPU': 'cpuset:0'}, 'balloons': {
    'PinCPU': True, 'IdleCPUClass': 'idle', 'BalloonTypes': [{'Name': 'own', 'MinCPUs': 1, 'AllocatorPriority': 2, 'CPUClass': ''}]}}, 'dump': {'Config': 'off:.*'}}
PODPOOLS = {'policy': {'Active': 'podpools', 'ReservedResources': {'CPU': 1}, 'podpools': {'Pools': [
    {'Name': 'pair', 'CPU': 2, 'Instances': '6 CPUs', 'MaxPods': 2}, {'Name': 'half', 'CPU': 1, 'Instances': '50 %'}]}}}
DYNAMIC = {'policy': {'Active': 'dynamic-pools', 'AvailableResources': {'CPU': 'cpuset:1-15'}, 'dynamic-pools': {
    'PinCPU': True, 'ReservedPoolNamespaces': ['logs'], 'DynamicPoolTypes': [{'Name': 'p', 'Namespaces': ['p*'], 'CPUClass': 'fast', 'AllocatorPriority': 1}]}}}
KUBELET = {'kind': 'KubeletConfiguration', 'cpuManagerPolicy': 'static', 'reservedSystemCPUs': '0,8', 'cpuManagerPolicyOptions': {'full-pcpus-only': 'true'},
           'topologyManagerPolicy': 'restricted', 'memoryManagerPolicy': 'Static',
           'reservedMemory': [{'numaNode': 0, 'limits': {'memory': '1Gi', 'hugepages-2Mi': '64Mi'}}]}
CMK = {'pools': {'exclusive': {'exclusive': True, 'cpuLists': [{'Cpuset': '2,10', 'Socket': 0}, {'Cpuset': '3,11', 'Socket': 0}]},
                 'infra': {'cpuLists': [{'Cpuset': '0-1', 'Socket': 0}]}}}
WEKA = {'image': {'repository': 'example/weka-nri-cpuset'}, 'config': {'plugin': {'index': '200'}, 'cpu': {'min_shared_cpus': 2},
                                                                       'numa': {'enable_memory_placement': False}}}
WEKA_SET = {'kind': 'DaemonSet', 'spec': {'template': {'spec': {'containers': [{'name': 'c', 'image': 'example/nri-cpuset:1'}]}}}}


def imported(tmp_path, *documents):
    path = tmp_path / 'source.yaml'
    path.write_text(yaml.safe_dump_all(documents))
    done = run_ctl(*MODULES, 'import', path)
    assert done.code == OK and done.err == '', done
    (tmp_path / 'rp.conf').write_text(done.out)
    doc = json.loads(run_ctl(*MODULES, '--json', 'import', path).out)
    assert yaml.safe_load(doc['config']) == yaml.safe_load(done.out) and all('# - %s\n' % note in done.out for note in doc['notes'])
    assert not any(note.startswith('check: ') for note in doc['notes']), doc  # by the modules' tables: the machine is another one
    return yaml.safe_load(doc['config']), ' | '.join(doc['notes'])


@pytest.mark.parametrize('source, expected, notes', [
    (CUSTOM, {'policy': 'balloons', 'controllers': ['rdt'], 'control': {'rdt': {'enable': True}}, 'log': {'debug': ['policy']},
              'balloons': {'reservedResources': {'cpu': '750m'}, 'balloonTypes': [{'name': 'fast', 'minCPUs': 2, 'namespaces': ['prod', 'a b']}]}},
     ['node.worker-1']),
    (VALUES, {'runtime': {'index': 42}, 'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 1}, 'pinMemory': False}},
     ['image: ', 'tolerations: ']),
    (MANAGER, {'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:0'}, 'pinCPU': True, 'idleCPUClass': 'idle',
                                                  'balloonTypes': [{'name': 'own', 'minCPUs': 1, 'allocatorPriority': 'low', 'cpuClass': ''}]}}, ['dump: ']),
    (PODPOOLS, {'policy': 'podpools', 'podpools': {'reservedResources': {'cpu': 1}, 'pools': [
        {'name': 'pair', 'cpu': 2, 'instances': '6 CPUs', 'maxPods': 2}, {'name': 'half', 'cpu': 1, 'instances': '50 %'}]}}, []),
    (DYNAMIC, {'policy': 'dynamic-pools', 'dynamic-pools': {
        'availableResources': {'cpu': 'cpuset:1-15'}, 'pinCPU': True, 'reservedPoolNamespaces': ['logs'],
        'dynamicPoolTypes': [{'name': 'p', 'namespaces': ['p*'], 'cpuClass': 'fast', 'allocatorPriority': 'normal'}]}}, []),
    (KUBELET, {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0,8'}, 'cpuManagerPolicyOptions': {'full-pcpus-only': True},
                                              'topologyManagerPolicy': 'restricted', 'pinMemory': True}},
     ['cpuManagerPolicy: none', 'memoryManagerPolicy: None', 'reservedMemory: ']),
    (CMK, {'policy': 'static-pools', 'static-pools': {'pools': {
        'exclusive': {'exclusive': True, 'cpuLists': [{'cpuset': '2,10', 'socket': 0}, {'cpuset': '3,11', 'socket': 0}]},
        'infra': {'cpuLists': [{'cpuset': '0-1', 'socket': 0}]}}}}, ['exclusive-cores']),
    ({'policy': {'Active': 'static-pools', 'static-pools': {'LabelNode': True, 'ConfDirPath': '/etc/cmk', 'Pools': {'Gold': {'Exclusive': False, 'CPULists': [
        {'Cpuset': '1-3,5', 'Socket': 1}]}}}}},
     {'policy': 'static-pools', 'static-pools': {'labelNode': True, 'pools': {'Gold': {'exclusive': False, 'cpuLists': [{'cpuset': '1-3,5', 'socket': 1}]}}}},
     ['ConfDirPath']),
    # as the manual has it, with nothing but comments below the policy; and as its configuration map has it, for four sockets
    ({'policy': {'Active': 'static-pools', 'static-pools': None}}, {'policy': 'static-pools', 'static-pools': {'pools': {}}}, ['no pools are listed']),
    ({'policy': {'Active': 'static-pools', 'AvailableResources': {'cpu': 'cpuset:0-31'}, 'static-pools': {'ConfDirPath': '/etc/cmk', 'ConfFilePath': '', 'TaintNode': False, 'pools': {
        'exclusive': {'cpuLists': [{'Cpuset': '8,9', 'Socket': 1}, {'Cpuset': 10, 'Socket': 1}], 'exclusive': True},
        'infra': {'cpuLists': [{'Cpuset': '0,1,2,3', 'Socket': 0}], 'exclusive': False}}}}, 'logger': {'Debug': 'cache,policy'}},
     {'policy': 'static-pools', 'static-pools': {'taintNode': False, 'pools': {
         'exclusive': {'cpuLists': [{'cpuset': '8,9', 'socket': 1}, {'cpuset': 10, 'socket': 1}], 'exclusive': True},
         'infra': {'cpuLists': [{'cpuset': '0,1,2,3', 'socket': 0}], 'exclusive': False}}}}, ['ConfDirPath', 'logger.Debug']),
    (WEKA, {'policy': 'cpuset', 'cpuset': {'integerNeeds': 'cpu-and-memory', 'minSharedCPUs': 2, 'pinMemory': False}}, ['index 200']),
    (WEKA_SET, {'policy': 'cpuset', 'cpuset': {'integerNeeds': 'cpu-and-memory'}}, ['weka.io/cores-ids']),
], ids=['custom', 'values', 'manager', 'podpools', 'dynamic', 'kubelet', 'cmk', 'pools', 'no-pools', 'pools-map', 'weka', 'weka-set'])
def test_sources(tmp_path, source, expected, notes):
    config, said = imported(tmp_path, source)
    assert config == expected
    for note in notes:
        assert note in said, said


def test_a_config_map(tmp_path):
    data = {'policy': yaml.safe_dump(MANAGER['policy']), 'rdt': yaml.safe_dump({'partitions': {'p': {'l3Allocation': '100%', 'classes': {'a': {'l3schema': '50%'}}}}})}
    config, said = imported(tmp_path, {'kind': 'ConfigMap', 'metadata': {'name': 'cri-resmgr-config.default'}, 'data': data}, KUBELET)
    assert config['policy'] == 'balloons' and config['controllers'] == ['rdt']
    assert config['rdt']['partitions']['p']['classes']['a'] == {'l3Allocation': '50%'}
    assert 'document 2 and later ones are ignored' in said


def test_what_is_nothing_of_that(tmp_path):
    done = run_ctl('import', '-', input='{kind: Service}\n')
    assert done.code == FAILED and 'unknown format; supported are' in done.err and 'KubeletConfiguration' in done.err
    assert 'unknown format' in json.loads(run_ctl('--json', 'import', '-', input='a: 1\n').out)['error']
    assert run_ctl('import', tmp_path / 'none').code == FAILED


def test_a_key_that_is_no_more_is_told(tmp_path):
    done = run_ctl(*MODULES, 'import', '-', input=yaml.safe_dump({**MANAGER, 'policy': {**MANAGER['policy'], 'balloons': {'NoSuchKey': 1}}}))
    assert done.code == OK and 'check: rp.conf:' in done.out and 'noSuchKey: unknown key' in done.out


def crd(kind, **spec):
    return {'apiVersion': 'config.nri/v1alpha1', 'kind': kind, 'metadata': {'name': 'default'}, 'spec': spec}


# More of each source, in forms that the ones above do not have.
@pytest.mark.parametrize('source, policy', [
    (crd('TopologyAwarePolicy', reservedResources={'cpu': '750m'}, pinCPU=True, pinMemory=True, preferIsolatedCPUs=True, preferSharedCPUs=False), 'topology-aware'),
    (crd('BalloonsPolicy', reservedResources={'cpu': '1000m'}, pinMemory=False, idleCPUClass='lowpower', balloonTypes=[
        {'name': 'quad', 'minCPUs': 4, 'maxCPUs': 4, 'maxBalloons': 2, 'allocatorPriority': 'high', 'namespaces': ['video-*']}]), 'balloons'),
    ({'image': {'name': 'registry.example/nri-resource-policy-balloons'}, 'config': {'reservedResources': {'cpu': '750m'}, 'balloonTypes': [
        {'name': 'one', 'maxCPUs': 8}]}, 'resources': {'cpu': '500m'}}, 'balloons'),
    ({'image': {'name': 'registry.example/nri-resource-policy-topology-aware'}, 'config': {'reservedResources': {'cpu': 'cpuset:0-1'}, 'pinCPU': True},
      'plugin-test': {'enableAPIs': False}}, 'topology-aware'),
    ({'policy': {'Active': 'topology-aware', 'ReservedResources': {'CPU': '750m'}, 'topology-aware': {'PinCPU': True, 'PreferSharedCPUs': True}}}, 'topology-aware'),
    ({'kind': 'KubeletConfiguration', 'cpuManagerPolicy': 'static', 'reservedSystemCPUs': '0-1', 'topologyManagerPolicy': 'single-numa-node'}, 'static'),
    ({'kind': 'KubeletConfiguration', 'cpuManagerPolicy': 'static', 'kubeReserved': {'cpu': '1'}, 'systemReserved': {'cpu': '500m'},
      'cpuManagerPolicyOptions': {'distribute-cpus-across-numa': 'true'}}, 'static'),
    ({'pools': {'exclusive': {'exclusive': True, 'cpuLists': [{'Cpuset': '4,12', 'Socket': 0}]},
                'shared': {'exclusive': False, 'cpuLists': [{'Cpuset': '2-3,10-11', 'Socket': 0}]}}}, 'static-pools'),
    ({'pools': {'shared': {'cpuLists': [{'Cpuset': '4-7', 'Socket': 0}]}, 'infra': {'cpuLists': [{'Cpuset': '0-3', 'Socket': 0}]}}}, 'static-pools'),
    ({'image': {'repository': 'example/weka-nri-cpuset'}, 'config': {'plugin': {'index': '99'}}}, 'cpuset'),
])
def test_examples_of_each_source(tmp_path, source, policy):
    config, notes = imported(tmp_path, source)
    assert config['policy'] == policy, notes


CONFIG = {'cpuManagerPolicy': 'static', 'reservedSystemCPUs': '0-1', 'cpuManagerPolicyOptions': {'full-pcpus-only': 'true', 'strict-cpu-reservation': 'true'},
          'topologyManagerPolicy': 'single-numa-node', 'topologyManagerPolicyOptions': {'prefer-closest-numa-nodes': 'true'}}
PLACED = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0-1'}, 'topologyManagerPolicy': 'single-numa-node',
                                         'cpuManagerPolicyOptions': {'full-pcpus-only': True, 'strict-cpu-reservation': True}}}


# The kubelet's configuration as kubeadm stores it, as the kubelet answers it, as OpenShift and lists have it.
@pytest.mark.parametrize('source', [
    {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'kubelet-config'}, 'data': {'kubelet': yaml.safe_dump({'kind': 'KubeletConfiguration', **CONFIG})}},
    {'kubeletconfig': CONFIG},
    {'apiVersion': 'machineconfiguration.openshift.io/v1', 'kind': 'KubeletConfig', 'metadata': {'name': 'a'}, 'spec': {'kubeletConfig': CONFIG}},
    {'apiVersion': 'v1', 'kind': 'List', 'items': [{'kind': 'Service'}, {'kind': 'ConfigMap', 'data': {
        'run.sh': '#!/bin/sh\n[ "$1" ] || {', 'kubelet': yaml.safe_dump({'kind': 'KubeletConfiguration', **CONFIG})}}]},
], ids=['kubeadm', 'configz', 'openshift', 'list'])
def test_where_the_configuration_of_the_kubelet_is_kept(tmp_path, source):
    config, notes = imported(tmp_path, source)
    assert config == PLACED and 'always behaves so' in notes


@pytest.mark.parametrize('values', [False, True], ids=['configuration', 'values'])
def test_the_memory_policy_plugin(tmp_path, values):
    source = {'classes': [{'name': 'interleave-all', 'policy': {'mode': 'MPOL_INTERLEAVE', 'nodes': 'allowed-mems', 'flags': ['MPOL_F_STATIC_NODES']}},
                          {'name': 'near', 'policy': {'mode': 'MPOL_PREFERRED', 'nodes': 'cpu-nodes'}}]}
    config, notes = imported(tmp_path, {'config': source} if values else source)
    assert config['topology-aware']['memoryPolicyClasses'] == [
        {'name': 'interleave-all', 'mode': 'MPOL_INTERLEAVE', 'nodes': 'allowed-mems', 'flags': ['MPOL_F_STATIC_NODES']},
        {'name': 'near', 'mode': 'MPOL_PREFERRED', 'nodes': 'cpu-nodes'}]
    assert 'work as before' in notes


def test_a_list_of_resources(tmp_path):
    first, second = crd('BalloonsPolicy', reservedResources={'cpu': 1}, balloonTypes=[{'name': 'a'}]), crd('BalloonsPolicy', reservedResources={'cpu': 2})
    config, notes = imported(tmp_path, {'apiVersion': 'v1', 'kind': 'List', 'items': [first, second]})
    assert config['balloons']['reservedResources'] == {'cpu': 1} and 'document 2 and later ones are ignored' in notes


@pytest.mark.parametrize('values, config', [
    ({'config': {'reservedResources': {'cpu': 1}, 'balloonTypes': [{'name': 'a'}]}}, {'reservedResources': {'cpu': 1}, 'balloonTypes': [{'name': 'a'}]}),
    ({'nri': {'plugin': {'index': 90}}}, {'reservedResources': {'cpu': '750m'}}),
], ids=['config', 'default'])
def test_the_resource_of_the_operator(tmp_path, values, config):
    out, notes = imported(tmp_path, {'apiVersion': 'config.nri/v1alpha1', 'kind': 'NriPluginDeployment', 'metadata': {'name': 'a'},
                                     'spec': {'pluginName': 'balloons', 'state': 'present', 'values': values}})
    assert out['policy'] == 'balloons' and out['balloons'] == config


# Values that do not say which policy they are for, values and resources of another plugin, and a DaemonSet of somebody else.
@pytest.mark.parametrize('source', [
    {'image': {'name': 'registry.example/nri-memory-policy'}, 'config': {'injectMpolset': True, 'classes': []}},
    {'image': {'name': 'registry.example/nri-memory-qos'}, 'config': {'balloonTypes': []}},
    {'config': {'reservedResources': {'cpu': 1}, 'pinCPU': True}},
    {'kind': 'NriPluginDeployment', 'spec': {'pluginName': 'memory-qos', 'values': {'config': {'classes': []}}}},
    {'kind': 'DaemonSet', 'metadata': {'name': 'a'}, 'spec': {'template': {'spec': {'containers': [{'name': 'c', 'image': 'example/cpuset-reporter:1'}]}}}},
    {'kind': 'ConfigMap', 'data': {'config': 'a: {b: {}}'}},
])
def test_nothing_is_guessed(source):
    done = run_ctl(*MODULES, 'import', '-', input=yaml.safe_dump(source))
    assert done.code == FAILED and 'unknown format; supported are' in done.err, done


@pytest.mark.parametrize('options, controllers, rdt', [
    ({'mode': 'Full', 'monitoringDisabled': False, 'l3': {'optional': True}}, ['rdt'], {'enable': True, 'options': {'l3': {'optional': True}}}),
    ({'mode': 'Disabled', 'monitoringDisabled': True, 'l3': {'optional': True}}, None, {'enable': False, 'monitoring': 'off', 'options': {'l3': {'optional': True}}}),
    ({'mode': 'Discovery'}, ['rdt'], {'enable': True}),
])
def test_modes_of_rdt(tmp_path, options, controllers, rdt):
    partitions = {'p': {'l3Allocation': '60%', 'classes': {'a': {'l3Allocation': '50%', 'kubernetes': {'denyPodAnnotation': True}}}}}
    config, notes = imported(tmp_path, {'policy': {'Active': 'topology-aware', 'ReservedResources': {'CPU': 1}}, 'rdt': {'options': options, 'partitions': partitions}})
    assert config.get('controllers') == controllers and 'annotations' in notes
    written = config['rdt'].pop('partitions', None)
    assert config['rdt'] == rdt and (written is None) == (options['mode'] == 'Discovery')
    assert not written or written['p']['classes'] == {'a': {'l3Allocation': '50%'}}


def test_classes_of_disks_of_the_manager(tmp_path):
    config, notes = imported(tmp_path, {'policy': {'Active': 'none'}, 'resource-manager': {'blockio': {}}, 'blockio': {'Classes': {'LowPrio': [
        {'Weight': 80}, {'Devices': ['/dev/sd*'], 'ThrottleReadBps': '50M', 'ThrottleWriteIOPS': '5k'}]}}})
    assert config['controllers'] == ['blkio'] and config['blkio'] == {'classes': {'LowPrio': [
        {'weight': 80}, {'devices': ['/dev/sd*'], 'throttleReadBps': '50M', 'throttleWriteIOPS': '5k'}]}}


def test_what_cmk_stores(tmp_path):
    state = {'exclusive': {'0': {'4,12': [], '5,13': []}, '1': {}}, 'infra': {'0': {'0-2,8-10': ['48624']}, '1': {}}, 'shared': {'0': {'3,11': []}, '1': {}}}
    config, _ = imported(tmp_path, {'kind': 'ConfigMap', 'metadata': {'name': 'cmk-config-worker-1'}, 'data': {'config': yaml.safe_dump(state)}})
    assert config == {'policy': 'static-pools', 'static-pools': {'pools': {
        'exclusive': {'exclusive': True, 'cpuLists': [{'cpuset': '4,12', 'socket': 0}, {'cpuset': '5,13', 'socket': 0}]},
        'infra': {'exclusive': False, 'cpuLists': [{'cpuset': '0-2,8-10', 'socket': 0}]}, 'shared': {'exclusive': False, 'cpuLists': [{'cpuset': '3,11', 'socket': 0}]}}}}


def test_the_manifest_of_weka(tmp_path):
    config, _ = imported(tmp_path, {'kind': 'ServiceAccount'}, {'kind': 'DaemonSet', 'metadata': {'name': 'weka-nri-cpuset', 'labels': {'app': 'weka-nri-cpuset'}}, 'spec': {
        'template': {'spec': {'containers': [{'name': 'weka-cpuset', 'image': 'PLACEHOLDER_IMAGE_TAG'}]}}}})
    assert config['policy'] == 'cpuset'


SLO = {'colocation-config': {'enable': True, 'cpuReclaimThresholdPercent': 70, 'metricAggregatePolicy': {'durations': ['5m']}, 'somethingNew': 1, 'nodeConfigs': [
    {'name': 'x', 'nodeSelector': {'matchExpressions': []}}, {'name': 'anolis', 'nodeSelector': {'matchLabels': {'a': 'b'}}, 'resourceDiffThreshold': 0.2}]},
       'resource-threshold-config': {'clusterStrategy': {'enable': True, 'cpuSuppressThresholdPercent': 60, 'CPUEvictTimeWindowSeconds': 60}, 'nodeStrategies': [{'name': 'a'}]},
       'resource-qos-config': {'clusterStrategy': {'lsClass': {'memoryQOS': {'enable': True, 'minLimitPercent': 50, 'wmarkRatio': 95}, 'resctrlQOS': {'enable': True}},
                                                   'beClass': {'memoryQOS': {'enable': False, 'minLimitPercent': 1}}}},
       'cpu-burst-config': {'clusterStrategy': {'policy': 'auto', 'cpuBurstPercent': 500}}}


def test_koordinators_config_map(tmp_path):
    data = {key: json.dumps(value) for key, value in SLO.items()}
    config, notes = imported(tmp_path, {'kind': 'ConfigMap', 'metadata': {'name': 'slo-controller-config'}, 'data': {
        **data, 'system-config': '{"clusterStrategy": {}\n "nodeStrategies": []}', 'cpu-normalization-config': '{"enable": tr\n[}'}})
    assert config['calculators'] == ['batch'] and config['controllers'] == ['batch-limits', 'memory-qos', 'cpu-suppress', 'cpu-burst', 'evict']
    assert config['nodeResources'] == {'strategy': {'enable': True, 'cpuReclaimThresholdPercent': 70, 'metricAggregatePolicy': {'durations': ['5m']}},
                                       'nodeConfigs': [{'name': 'anolis', 'matchLabels': {'a': 'b'}, 'strategy': {'resourceDiffThreshold': 0.2}}]}
    assert config['cpu-suppress'] == {'enable': True, 'cpuSuppressThresholdPercent': 60} and config['evict'] == {'enable': True, 'cpuEvictTimeWindowSeconds': 60}
    assert config['memory-qos'] == {'ls': {'minLimitPercent': 50}} and config['cpu-burst'] == {'policy': 'auto', 'cpuBurstPercent': 500}
    for note in ['nodeConfigs x: omitted', 'somethingNew', 'nodeStrategies', 'resctrlQOS', 'sysctl.d', 'cpu-normalization-config: omitted, it cannot be read']:
        assert note in notes, notes


def test_what_koordinator_has_switched_off(tmp_path):
    config, _ = imported(tmp_path, {'kind': 'ConfigMap', 'data': {'colocation-config': '{"enable": false}', 'resource-threshold-config': '{"clusterStrategy": {"enable": false}}'}})
    assert config['controllers'] == ['batch-limits'] and config['nodeResources'] == {'strategy': {'enable': False}} and config['evict'] == {'enable': False}
    config, notes = imported(tmp_path, {'kind': 'NodeSLO', 'metadata': {'name': 'n'}, 'spec': {'resourceUsedThresholdWithBE': {'enable': True, 'memoryEvictThresholdPercent': 70}}})
    assert config['evict'] == {'enable': True, 'memoryEvictThresholdPercent': 70} and 'slo-controller-config' in notes
