#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a resource plugin adds to pods' admission: pods that want something of a plugin, and as many that do not, come and go one after the other beside
others that stay.

  test/bench/plugin.py [--live N] [--pods N]

Figures are of one pod's life: the time until it is created as the runtime sees it, and the CPU time of nri-rpd and nri-rp-agent together, which does not
depend on what else the machine does. The plugin's own time is what an allocation takes a client that asks it directly.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import grpc

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TEST), str(TEST / 'scenario')]
from node import cpu_s  # noqa: E402
from resourceplugin import API, PACKAGE, Plugin  # noqa: E402
from simnode import Node, ctr, eventually  # noqa: E402
from test_cluster import Cluster  # noqa: E402
from test_cluster_pods import put_pod  # noqa: E402

GPU = 'example.com/gpu'
QOS = {'policy': 'qos', 'log': {'level': 'warning'}, 'qos': {'reservedCPUCount': 1, 'rampUpSeconds': 0, 'nonBindingMemoryCheck': False}}
WAIT_S, ROUNDS = 300, 10


def amounts(**more):
    return {'name': 'c', 'resources': {'requests': {'cpu': '10m', 'memory': '16Mi', **more}}}


def lives(c, names):
    """Each comes and goes: seconds until it was created, and CPU seconds a life."""
    pids = c.node.status()['pid'], c.agent.process.pid
    before, times = sum(map(cpu_s, pids)), []
    for name in names:
        begun = time.perf_counter()
        c.node.create(name, ctr('c', '10m', '16Mi'), uid='uid-' + name)
        times.append(time.perf_counter() - begun)
        c.node.delete(name)
    c.node.settle(200)
    return statistics.median(times), (sum(map(cpu_s, pids)) - before) / len(names)


def own_s(folder, gpu, n):
    """What an allocation takes a client that asks the plugin itself, as the agent does, over its socket."""
    with grpc.insecure_channel('unix:' + str(folder / gpu.endpoint)) as channel:
        def call(method, request, answer):
            return channel.unary_unary('/' + PACKAGE + 'ResourcePlugin/' + method, type(request).SerializeToString, answer.FromString)(request, wait_for_ready=True)
        times = []
        for i in range(n):
            request = API.ResourceRequest(pod_uid='own%d' % i, pod_name='own', container_name='c', resource_name=GPU, resource_requests={GPU: 1})
            begun = time.perf_counter()
            call('Allocate', request, API.ResourceAllocationResponse)
            times.append(time.perf_counter() - begun)
            call('RemovePod', API.RemovePodRequest(pod_uid='own%d' % i), API.Empty)
    return statistics.median(times)


def plugin(folder):
    eventually((folder / 'kubelet.sock').exists)  # the agent has looked through the folder
    return Plugin(folder, GPU)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--live', type=int, default=1000)
    parser.add_argument('--pods', type=int, default=1000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='nri-rp-bench-') as folder:
        folder = pathlib.Path(folder)
        nodes = []

        def make_node(config=None, **more):
            nodes.append(Node(config, machine='n4c128', **more))
            return nodes[-1]
        with Cluster(make_node, folder, config=QOS, agent=['--plugin-dir', folder / 'plugins']) as c, plugin(folder / 'plugins') as gpu:
            names = {kind: ['%s%d' % (kind, i) for i in range(n)] for kind, n in (('live', args.live), ('plain', args.pods), ('gpu', args.pods))}
            for kind, list_ in names.items():
                for name in list_:
                    put_pod(c, name, amounts(**({GPU: '1'} if kind == 'gpu' else {})))
            eventually(lambda: c.node.ctl('status')['pod_feed']['pods'] == sum(map(len, names.values())), WAIT_S)
            for name in names['live']:
                c.node.create(name, ctr('c', '10m', '16Mi'), uid='uid-' + name)
            rounds = []
            for part in range(ROUNDS):  # by turns, as the machine has other work, too
                lists = [names[kind][part::ROUNDS] for kind in ('plain', 'gpu')]
                plain, given = (lives(c, list_) for list_ in lists)
                rounds.append((plain[0], given[0], own_s(folder / 'plugins', gpu, len(lists[1]) // 2), plain[1], given[1]))
            assert len(gpu.called('Allocate')) >= args.pods
            plain, given, own, cpu, cpu_given = (statistics.median(r[i] for r in rounds) * 1e6 for i in range(5))
            print('%d pods beside %d: created in %.0f us, with the plugin in %.0f us, whose own time is %.0f us: beyond it + %.0f us' %
                  (args.pods, args.live, plain, given, own, given - plain - own))
            print('CPU time of nri-rpd and nri-rp-agent a life: %.0f us, with the plugin %.0f us: + %.0f us' % (cpu, cpu_given, cpu_given - cpu))
        nodes[0].stop()


if __name__ == '__main__':
    main()
