# SPDX-License-Identifier: Apache-2.0
"""A container of a claim on a real containerd, which applies the CDI file: its CPUs from the kernel, its environment from the process.

containerd 1.7 and 2.1 report no CDI devices by NRI: there the kubelet names the claim. nri-rp-bridge before them reports the devices.
"""
import contextlib
import os
import pathlib
import shutil
import tempfile

import pytest

import containerd
import kubelet
from apiserver import ApiServer
from containerd import cpus, wait_for
from dra import DRIVER, Kubelet, allocated
from test_containerd import BRIDGED, BUILD, ONLINE, SCRATCH, needs_two_cpus, pods, runtime, unstarted  # pylint: disable=unused-import

NODE, CLAIMS, SLICES = 'n1', 'resourceclaims', 'resourceslices'


@pytest.fixture
def root():
    """The kubelet's folder; names of sockets are short."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-k-', dir=SCRATCH))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def environment(container):
    text = pathlib.Path('/proc/%d/environ' % container.pid()).read_text(encoding='utf-8', errors='replace')
    return dict(item.split('=', 1) for item in text.split('\0') if '=' in item)


@needs_two_cpus
def test_container_of_a_claim(runtime, unstarted, pods, root, tmp_path):
    socket = root / 'agent.sock'
    by_kubelet = not BRIDGED
    unstarted.configure('static', '{reservedResources: {cpu: "cpuset:%d"}}' % ONLINE[0],
                        'dra: {enabled: true}\nagent: {cluster: true, podResourceAPI: %s, resourceSlices: %s, socket: %s}\n' %
                        (*2 * ['true' if by_kubelet else 'false'], socket))
    unstarted.start()
    with contextlib.ExitStack() as stack:
        api, resources, driver = stack.enter_context(ApiServer()), stack.enter_context(kubelet.Kubelet()), Kubelet(root)
        api.put('nodes', None, NODE, {'metadata': {'labels': {}}})
        stack.enter_context(kubelet.Agent(socket, resources.socket, options=['--kubeconfig', api.kubeconfig(tmp_path), '--node', NODE, '--kubelet-root', root,
                                                                             '--cdi-dir', runtime.dir / 'cdi']))
        wait_for('the slice', lambda: api.find(SLICES, None, '%s-%s' % (NODE, DRIVER)))
        wait_for('the driver', driver.socket.exists)
        driver.register()
        resources.pod('default/app', c={})
        resources.claims['default/app', 'c'] = [('one', DRIVER, NODE, 'cpu-node-0')]
        resources.pod('default/thief', c={})
        pod, other, plain = pods('app'), pods('thief'), pods('plain', 'besteffort').run('c')
        uid = api.put(CLAIMS, 'default', 'one', allocated(NODE, cpu='1', memory='16Mi', pods=[pod.config.metadata.uid]))['metadata']['uid']
        assert not driver.prepare(('default', 'one', uid))[uid].error
        device = '%s/claim=%s' % (DRIVER, uid)
        ctr = pod.run('c', cdi=[device])
        own = cpus(ctr.allowed())
        env = environment(ctr)
        assert len(own) == 1 and not own & {ONLINE[0]} and not own & cpus(plain.allowed())
        assert (env['NRI_RP_CLAIM'], cpus(env['NRI_RP_CLAIM_CPUS'])) == ('default/one', own)
        # another pod that names the device gets its environment from the runtime, and nothing else
        thief = other.run('c', cdi=[device])
        assert environment(thief)['NRI_RP_CLAIM'] == 'default/one' and not cpus(thief.allowed()) & own
        pod.runtime.stop_pod(pod.id)
        assert driver.unprepare(('default', 'one', uid))[uid].error == ''
        wait_for('the CPUs are free', lambda: own <= cpus(plain.allowed()))
        assert not list((runtime.dir / 'cdi').iterdir())
