# SPDX-License-Identifier: Apache-2.0
"""What a node with a real kubelet and a real runtime lends: on its Node, and what pods that take it get of the kernel.

NRI_RP_KUBE_ADMIN and NRI_RP_KUBE_AGENT as in test_kubernetes.py; NRI_RP_KUBELET_NODE is the kubelet's Node, NRI_RP_KUBELET_NRI the NRI socket of
its runtime, NRI_RP_KUBELET_IMAGE an image of it with /bin/sh, NRI_RP_KUBELET_RESTART a command that restarts the kubelet.
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time

import pytest

from containerd import cgroups
from kubelet import Agent
from simnode import BUILD, LEAST, eventually
from test_kubernetes import ADMIN, AGENT, BATCH_CPU, KUBECTL, get, kubectl

NODE, NRI, IMAGE, RESTART = (os.environ.get('NRI_RP_KUBELET_' + name) for name in ('NODE', 'NRI', 'IMAGE', 'RESTART'))
BATCH_MEMORY, SPEC = 'kubernetes.io/batch-memory', 'node.koordinator.sh/extended-resource-spec'
V1 = not pathlib.Path('/sys/fs/cgroup/cgroup.controllers').exists()
MI = 1 << 20
REPORT_S, WINDOW_S = 2, 10
# more than there is: on a busy machine, too, there is something to lend
STRATEGY = {'enable': True, 'metricReportIntervalSeconds': REPORT_S, 'metricAggregateDurationSeconds': WINDOW_S, 'updateTimeThresholdSeconds': 30,
            'resourceDiffThreshold': 0.05, 'cpuReclaimThresholdPercent': 300}
CONFIG = {'policy': 'none', 'calculators': ['batch'], 'controllers': ['batch-limits'], 'metrics': {'collectInterval': '1s', 'listen': ''},
          'nodeResources': {'least': LEAST, 'strategy': STRATEGY}}

pytestmark = pytest.mark.skipif(not (ADMIN and AGENT and KUBECTL and NODE and NRI and IMAGE),
                                reason='needs a cluster with a kubelet: NRI_RP_KUBE_ADMIN, _AGENT, NRI_RP_KUBELET_NODE, _NRI, _IMAGE')


class Daemons:
    """nri-rpd beside the kubelet's runtime, and the agent."""

    def __init__(self, folder, config):
        agent = folder / 'agent.sock'
        self.control = folder / 'ctl.sock'
        (folder / 'rp.conf').write_text(json.dumps({'agent': {'cluster': True, 'nodeResourceTopology': False, 'socket': str(agent)}, **config}))
        self.log = open(folder / 'log', 'wb')
        self.daemon = self.start(BUILD / 'bin/nri-rpd', '--config', folder / 'rp.conf', '--nri-socket', NRI, '--state-dir', folder / 'state',
                                 '--control-socket', self.control, '--module-dir', BUILD / 'modules')
        eventually(lambda: b'synchronized with' in (folder / 'log').read_bytes())
        self.agent = Agent(agent, folder / 'none.sock', options=['--kubeconfig', AGENT, '--node', NODE, '--namespace', 'nri-rp'])
        self.agent.__enter__()

    def start(self, *command):
        return subprocess.Popen([str(c) for c in command], stdout=self.log, stderr=self.log)

    def node(self):
        done = subprocess.run([str(BUILD / 'bin/nri-rpctl'), '--socket', str(self.control), '--json', 'node'], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def calculated(self, name):
        return next((r for r in self.node().get('resources', []) if r['name'] == name), {})

    def stop(self):
        self.agent.__exit__(None, None, None)
        self.daemon.terminate()
        self.daemon.wait(60)
        self.log.close()


@pytest.fixture
def daemons():
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-kn-'))
    d = Daemons(folder, CONFIG)
    try:
        yield d
    finally:
        d.stop()
        print((folder / 'log').read_text())
        shutil.rmtree(folder)


def on_node(name, part='allocatable'):
    text = get('node', NODE)['status'][part].get(name)
    return None if text is None else int(text.replace('k', '000'))


def container(name, command='sleep 100000', **resources):
    return {'name': name, 'image': IMAGE, 'imagePullPolicy': 'Never', 'command': ['/bin/sh', '-c', command], 'resources': resources}


@pytest.fixture
def run():
    """Pods that the scheduler, too, has found a place for."""
    with contextlib.ExitStack() as stack:
        def one(name, *containers, annotations=None, labels=None):
            pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'namespace': 'default', 'annotations': annotations or {}, 'labels': labels or {}},
                   'spec': {'nodeSelector': {'kubernetes.io/hostname': NODE}, 'hostNetwork': True, 'terminationGracePeriodSeconds': 0,
                            'automountServiceAccountToken': False, 'containers': list(containers)}}
            kubectl('create', '-f', '-', text=json.dumps(pod))
            stack.callback(kubectl, '-n', 'default', 'delete', '--force', '--grace-period=0', 'pod', name)
            eventually(lambda: all('running' in s['state'] for s in seen(name) or [{'state': {}}]), 90)
            return get('-n', 'default', 'pod', name)

        def seen(name):
            return get('-n', 'default', 'pod', name)['status'].get('containerStatuses')
        yield one


def cgroup(status, controller):
    """Folders of a container's cgroup and of its pod's, by the name that the runtime gave it."""
    ident = status['containerID'].split('//')[1]
    root = pathlib.Path('/sys/fs/cgroup') / (controller if V1 else '')
    own = cgroups(lambda name: ident in name, root)[0]
    return own, own.parent


def limits(folders):
    """(shares or weight, quota, memory) of each."""
    def read(at, v1, v2):
        return (at / (v1 if V1 else v2)).read_text().strip()
    cpu, memory = folders
    return (read(cpu, 'cpu.shares', 'cpu.weight'), read(cpu, 'cpu.cfs_quota_us', 'cpu.max').split()[0], read(memory, 'memory.limit_in_bytes', 'memory.max'))


def by_rule(request, limit, memory):
    shares = request * 1024 // 1000
    return (str(shares if V1 else 1 + (shares - 2) * 9999 // 262142), str(limit * 100), str(memory))


def asks(cpu, limit, memory):
    return {'requests': {BATCH_CPU: str(cpu), BATCH_MEMORY: str(memory)}, 'limits': {BATCH_CPU: str(limit), BATCH_MEMORY: str(memory)}}


def test_a_pod_of_batch_resources_gets_them_of_the_kernel(daemons, run):
    eventually(lambda: (on_node(BATCH_CPU) or 0) >= 1500 and on_node(BATCH_MEMORY), 60)
    # a scheduler takes for an amount what is asked and what is the most; the annotation tells them apart
    amounts = {'a': asks(500, 1000, 64 * MI), 'b': asks(250, 250, 32 * MI)}
    taken = {name: {part: {**of['limits']} for part in of} for name, of in amounts.items()}
    pod = run('batch', *(container(name, **taken[name]) for name in amounts), annotations={SPEC: json.dumps({'containers': amounts})},
              labels={'koordinator.sh/qosClass': 'BE', 'koordinator.sh/priority-class': 'koord-batch'})
    assert pod['status']['qosClass'] == 'BestEffort' and pod['spec']['nodeName'] == NODE
    status = {s['name']: s for s in pod['status']['containerStatuses']}
    folders = {name: [cgroup(status[name], c) for c in ('cpu', 'memory')] for name in status}
    for name, want in (('a', by_rule(500, 1000, 64 * MI)), ('b', by_rule(250, 250, 32 * MI))):
        eventually(lambda: limits([own for own, _ in folders[name]]) == want)
    above = [above for _, above in folders['a']]
    eventually(lambda: limits(above) == by_rule(750, 1250, 96 * MI))
    print({name: limits([own for own, _ in folders[name]]) for name in folders}, 'pod', limits(above))
    # somebody else writes: within ten seconds it is as it was
    (folders['a'][0][0] / ('cpu.cfs_quota_us' if V1 else 'cpu.max')).write_text('-1' if V1 else 'max 100000')
    eventually(lambda: limits([own for own, _ in folders['a']]) == by_rule(500, 1000, 64 * MI), 15)


def used_by_high_priority(daemons):
    """As the sentence of the calculation has it; none yet counts as much."""
    found = re.search(r'high-priority usage (\d+)', daemons.calculated(BATCH_CPU).get('why', ''))
    return int(found[1]) if found else 1 << 30


def test_the_node_follows_what_is_used(daemons, run):
    eventually(lambda: on_node(BATCH_CPU) and used_by_high_priority(daemons) < 50, 60)
    pod = run('busy', container('c', 'while :; do :; done', requests={'cpu': '500m'}, limits={'cpu': '500m'}))
    began = time.monotonic()
    own, _ = cgroup(pod['status']['containerStatuses'][0], 'cpuacct')

    def spent_ns():
        if V1:
            return int((own / 'cpuacct.usage').read_text())
        return 1000 * int(re.search(r'usage_usec (\d+)', (own / 'cpu.stat').read_text())[1])

    # what a busy machine lets it have of its half CPU
    before = spent_ns()
    time.sleep(WINDOW_S)
    rate = (spent_ns() - before) / (time.monotonic() - began) / 1e6
    eventually(lambda: 0.6 * rate <= used_by_high_priority(daemons) <= 1.5 * rate, WINDOW_S + 20)
    took, used = time.monotonic() - began, used_by_high_priority(daemons)

    def differs():
        node, calculated = on_node(BATCH_CPU), daemons.calculated(BATCH_CPU)['value']
        return abs(calculated - node) / max(1, node)
    # a write takes a moment: what is on the Node is seldom further off than the threshold
    near = []
    for _ in range(20):
        near.append(differs() <= STRATEGY['resourceDiffThreshold'])
        time.sleep(0.5)
    print('%d milli-CPU used, %d seen %.1f s after the start; %d of 20 looks within the threshold' % (rate, used, took, sum(near)))
    assert sum(near) >= 10
    assert used_by_high_priority(daemons) <= 600


@pytest.mark.skipif(not RESTART, reason='needs NRI_RP_KUBELET_RESTART')
def test_a_kubelet_starts_anew(daemons):
    eventually(lambda: on_node(BATCH_CPU) and on_node(BATCH_MEMORY), 60)

    def restart():
        subprocess.run(shlex.split(RESTART), check=True, capture_output=True, timeout=120)
    restart()
    eventually(lambda: on_node(BATCH_CPU) and on_node(BATCH_CPU, 'capacity') and on_node(BATCH_MEMORY), 60)
    # and registers a Node that knows of nothing
    uid = get('node', NODE)['metadata']['uid']
    kubectl('delete', 'node', NODE)
    restart()
    eventually(lambda: kubectl('get', 'node', NODE, check=False).returncode == 0 and get('node', NODE)['metadata']['uid'] != uid, 60)
    began = time.monotonic()
    eventually(lambda: on_node(BATCH_CPU) and on_node(BATCH_CPU, 'capacity') and on_node(BATCH_MEMORY), 60)
    print('on the new Node after %.1f s' % (time.monotonic() - began))


def test_lending_ends(daemons):
    """With the strategy, said on the Node itself."""
    strategy = 'node.koordinator.sh/colocation-strategy'
    eventually(lambda: on_node(BATCH_CPU), 60)
    kubectl('annotate', '--overwrite', 'node', NODE, strategy + '={"enable": false}')
    try:
        eventually(lambda: on_node(BATCH_CPU) is None and on_node(BATCH_MEMORY, 'capacity') is None, 60)
    finally:
        kubectl('annotate', 'node', NODE, strategy + '-')
    eventually(lambda: on_node(BATCH_CPU), 60)
