#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What nri-rp-agent asks of an API server: requests and bytes of one agent that has nothing to do and of one whose node starts ten pods a minute, what
that comes to in a large cluster, and what the objects of others cost the agent.

  test/bench/cluster.py [--idle S] [--churn S] [--agents N] [--nodes N] [--pods N]

The server is the tests' own, which selects by field as a real one does and counts what it sends. Watches are opened anew every few minutes: an idle
time of less than ten misses them.
"""
import argparse
import collections
import pathlib
import sys
import tempfile
import time

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TEST), str(TEST / 'scenario')]
from node import cpu_s, rss  # noqa: E402
from simnode import Node, ctr, eventually  # noqa: E402
from test_cluster import Cluster  # noqa: E402
from test_cluster_pods import container, put_pod  # noqa: E402

QOS = {'policy': 'qos', 'log': {'level': 'warning'}, 'qos': {'reservedCPUCount': 1, 'rampUpSeconds': 0}}
START_S, LIVE_PODS, WAIT_S = 6.0, 10, 300
# about what a kubelet and a Deployment make of theirs
FILLER = {'metadata': {'annotations': {'filler%d' % i: 'x' * 90 for i in range(25)}}}


class Spent:
    """What happens at the server within a time."""

    def __init__(self, c):
        self.c, self.began = c, time.monotonic()
        self.requests, self.sent, self.cpu = len(c.api.requests), c.api.sent, cpu_s(c.agent.process.pid)

    def tell(self, what, agents):
        minutes = (time.monotonic() - self.began) / 60
        new = self.c.api.requests[self.requests:]
        kinds = collections.Counter('watch' if r['query'].get('watch') else r['method'] for r in new)
        sent, cpu = self.c.api.sent - self.sent, cpu_s(self.c.agent.process.pid) - self.cpu
        print('%-34s %5.1f requests and %6.1f KiB a minute, %.3f %% of a CPU   %s' %
              (what, len(new) / minutes, sent / minutes / 1024, 100 * cpu / minutes / 60, ', '.join('%s %d' % k for k in sorted(kinds.items())) or 'none'))
        print('%-34s %5.1f requests and %6.1f KiB a second' % ('  of %d agents' % agents, agents * len(new) / minutes / 60, agents * sent / minutes / 60 / 1024), flush=True)


def churn(c, seconds):
    end, i = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        begun, name = time.monotonic(), 'new%d' % i
        put_pod(c, name, container('c', '100m'))
        c.node.create(name, ctr('c', '100m', '120Mi/470Mi'), uid='uid-' + name)
        put_pod(c, name, container('c', '100m'), phase='Running')
        if i >= LIVE_PODS:
            gone = 'new%d' % (i - LIVE_PODS)
            c.node.delete(gone)
            c.api.delete('pods', 'default', gone)
        i += 1
        time.sleep(max(0.0, begun + START_S - time.monotonic()))


def others(c, args):
    for i in range(args.nodes):
        c.api.put('nodes', None, 'other%d' % i, FILLER)
    for i in range(args.pods):
        put_pod(c, 'other%d' % i, container('c', '100m'), node='other%d' % (i % args.nodes), **FILLER['metadata'])


def started_anew(c):
    """Bytes that are resident, bytes that were sent."""
    before = c.api.sent
    c.agent.stop()
    c.agent.start()
    eventually(lambda: c.api.sent > before, WAIT_S)
    eventually(lambda: c.status()['connected'] and c.node.ctl('status', check=False)['pod_feed']['current'], WAIT_S)
    time.sleep(3)
    return rss(c.agent.process.pid), c.api.sent - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--idle', type=float, default=660)
    parser.add_argument('--churn', type=float, default=180)
    parser.add_argument('--agents', type=int, default=1000)
    parser.add_argument('--nodes', type=int, default=1000)
    parser.add_argument('--pods', type=int, default=20000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='nri-rp-bench-') as folder:
        nodes = []

        def make_node(config=None, **more):
            nodes.append(Node(config, machine='n4c128', **more))
            return nodes[-1]
        with Cluster(make_node, pathlib.Path(folder), config=QOS) as c:
            eventually(lambda: c.node.ctl('status', check=False)['pod_feed']['current'], WAIT_S)
            time.sleep(5)
            spent = Spent(c)
            time.sleep(args.idle)
            spent.tell('idle', args.agents)
            spent = Spent(c)
            churn(c, args.churn)
            spent.tell('ten pods a minute', args.agents)
            alone = started_anew(c)
            others(c, args)
            beside = started_anew(c)
            spent = Spent(c)
            for i in range(60):  # a hundred a second
                for k in range(100):
                    n = (100 * i + k) % args.pods
                    put_pod(c, 'other%d' % n, container('c', '100m'), node='other%d' % (n % args.nodes), phase='Running', **FILLER['metadata'])
                time.sleep(1)
            spent.tell('while 100 a second of others change', args.agents)
            print('a start                            alone %d KiB resident, %.1f KiB received; beside %d Nodes and %d Pods %d KiB, %.1f KiB' %
                  (alone[0] >> 10, alone[1] / 1024, args.nodes, args.pods, beside[0] >> 10, beside[1] / 1024))
        nodes[0].stop()


if __name__ == '__main__':
    main()
