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
           'topologyManagerPolicy': 'restricted', 'memoryManagerPolicy': 'Static'}
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
    check = run_ctl(*MODULES, 'config', 'check', '--local', tmp_path / 'rp.conf')
    assert check.code == OK, (done.out, check)
    doc = json.loads(run_ctl(*MODULES, '--json', 'import', path).out)
    assert yaml.safe_load(doc['config']) == yaml.safe_load(done.out) and all('# - %s\n' % note in done.out for note in doc['notes'])
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
                                              'topologyManagerPolicy': 'restricted', 'pinMemory': True}}, ['cpuManagerPolicy: none']),
    (CMK, {'policy': 'static-pools', 'static-pools': {'pools': {
        'exclusive': {'exclusive': True, 'cpuLists': [{'cpuset': '2,10', 'socket': 0}, {'cpuset': '3,11', 'socket': 0}]},
        'infra': {'cpuLists': [{'cpuset': '0-1', 'socket': 0}]}}}}, ['exclusive-cores']),
    ({'policy': {'Active': 'static-pools', 'static-pools': {'LabelNode': True, 'ConfDirPath': '/etc/cmk', 'Pools': {'Gold': {'Exclusive': False, 'CPULists': [
        {'Cpuset': '1-3,5', 'Socket': 1}]}}}}},
     {'policy': 'static-pools', 'static-pools': {'labelNode': True, 'pools': {'Gold': {'exclusive': False, 'cpuLists': [{'cpuset': '1-3,5', 'socket': 1}]}}}},
     ['ConfDirPath']),
    # as the manual has it, with nothing but comments below the policy; and as its configuration map has it, for four sockets
    ({'policy': {'Active': 'static-pools', 'static-pools': None}}, {'policy': 'static-pools', 'static-pools': {'pools': {}}}, ['no pools are named']),
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
    assert 'document 2 and what follows are left out' in said


def test_what_is_nothing_of_that(tmp_path):
    done = run_ctl('import', '-', input='{kind: Service}\n')
    assert done.code == FAILED and 'it is none of these' in done.err and 'KubeletConfiguration' in done.err
    assert 'none of these' in json.loads(run_ctl('--json', 'import', '-', input='a: 1\n').out)['error']
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
