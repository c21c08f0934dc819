# SPDX-License-Identifier: Apache-2.0
"""
Every system call fails that nri-rp-bridge or nri-rp-agent makes, one at a time: the program stays, the next call passes, what the kubelet was told
to be created is in the runtime and has what it was given, and what the cluster wants is in force in the end. So it is when their clock jumps by
years and when they do not run for a while.
"""
import os
import random
import signal
import threading

import grpc
import pytest

from criproxy import Bridge
from kubelet import Agent
from preload import Preload
from simnode import eventually
from syscalls import Plan, pairs, possible

from test_bridge_police import API, PLACED, Client, Cri, Daemon
from test_cluster import CRS, NS, Cluster, balloons

DEPTH = int(os.environ.get('FAULT_DEPTH', 0))  # 0: a sample
pytestmark = pytest.mark.skipif(not possible(), reason='no seccomp notifiers here')
OWNED_MAX = 6  # of 15 CPUs


AT_WORK = ('read', 'recvfrom', 'sendto', 'epoll_wait', 'epoll_ctl', 'poll', 'mmap')  # few others are made once all are connected


def chosen(rng, n, calls=()):
    """(call, error, skip)"""
    for call, error in pairs() if DEPTH else rng.sample([p for p in pairs() if not calls or p[0] in calls], n):
        for skip in range(max(1, DEPTH)):
            yield call, error, skip if DEPTH else rng.choice([0, 0, 1, 2, 5])


def passes(client):
    """A connection that broke is noticed by the first call on it."""
    try:
        return client.call('ListPodSandbox', b'', API.PodList, timeout=5) is not None
    except grpc.RpcError:
        return False


def test_the_bridge(tmp_path):
    plan, rng, failed, refused, tries, owned = Plan(tmp_path / 'plan'), random.Random(3), 0, 0, 0, {}
    with Cri() as runtime, Bridge(runtime, under=plan.command()) as bridge:
        daemon, client = Daemon(tmp_path, bridge.nri_socket).start(), Client(bridge)
        bridge.wait_log(PLACED)
        for call, error, skip in chosen(rng, 12, AT_WORK):
            tries += 1
            plan.arm(call, error, skip)
            try:
                pod, ctr = client.run('p%d' % tries, 2000)
                owned[pod] = ctr
            except grpc.RpcError:
                refused += 1
            failed += plan.disarm()[0]
            assert bridge.process.poll() is None, (call, error, skip)
            eventually(lambda: passes(client))
            assert all(ctr in runtime.ctrs for ctr in owned.values()), 'answered, and not there'
            eventually(lambda: all(len(runtime.cpus(ctr)) == 2 for ctr in owned.values()))
            mine = [runtime.cpus(ctr) for ctr in owned.values()]
            assert len(set().union(*mine)) == 2 * len(mine), (call, error, skip)
            for pod in list(runtime.pods):  # those that were refused half-way, too
                if pod not in owned or len(owned) > OWNED_MAX // 2:
                    client.remove(pod)
                    owned.pop(pod, None)
        print('%d tries, %d calls failed, %d calls refused' % (tries, failed, refused))
        assert failed
        daemon.kill()


def test_the_agent(make_node, tmp_path):
    plan, rng, failed, tries = Plan(tmp_path / 'plan'), random.Random(5), 0, 0
    with Cluster(make_node, tmp_path) as c:
        sockets = c.agent.sockets
        c.agent.stop()
        c.agent = Agent(*sockets, under=plan.command(), options=c.options)
        c.api.put(CRS, NS, 'default', balloons(2))
        c.has_verdict('Success', 1)
        for call, error, skip in chosen(rng, 7, AT_WORK):
            tries += 1
            plan.arm(call, error, skip)
            c.api.put(CRS, NS, 'default', balloons(2 + tries % 3))
            eventually(lambda: (c.verdict() or {}).get('generation') == tries + 1 or plan.counts()[0])
            failed += plan.disarm()[0]
            c.has_verdict('Success', tries + 1)
            assert c.agent.process.poll() is None, (call, error, skip)
            assert c.policy() == 'balloons'
        print('%d tries, %d calls failed' % (tries, failed))
        assert failed


STOPPED_S = 1
JUMPS = [years * 365 * 86400 for years in (10, -10, 0)]


def stop_for_a_while(process):
    process.send_signal(signal.SIGSTOP)
    threading.Timer(STOPPED_S, process.send_signal, [signal.SIGCONT]).start()


def test_the_bridge_and_time(tmp_path):
    plan = Preload(tmp_path / 'plan')
    with Cri() as runtime, Bridge(runtime, under=plan.command()) as bridge:
        daemon, client = Daemon(tmp_path, bridge.nri_socket).start(), Client(bridge)
        bridge.wait_log(PLACED)
        ctrs = []
        for i, seconds in enumerate(JUMPS):
            plan.shift(seconds)
            ctrs.append(client.run('p%d' % i, 2000)[1])
            stop_for_a_while(bridge.process)
            ctrs.append(client.run('q%d' % i, 1000)[1])
        eventually(lambda: [len(runtime.cpus(ctr)) for ctr in ctrs] == [2, 1] * len(JUMPS))
        assert len(set().union(*map(runtime.cpus, ctrs))) == 3 * len(JUMPS)
        daemon.kill()


def test_the_agent_and_time(make_node, tmp_path):
    plan = Preload(tmp_path / 'plan')
    with Cluster(make_node, tmp_path) as c:
        sockets = c.agent.sockets
        c.agent.stop()
        c.agent = Agent(*sockets, under=plan.command(), options=c.options)
        c.api.put(CRS, NS, 'default', balloons(2))
        c.has_verdict('Success', 1)
        for i, seconds in enumerate(JUMPS):
            plan.shift(seconds)
            stop_for_a_while(c.agent.process)
            c.api.put(CRS, NS, 'default', balloons(3 + i))
            c.has_verdict('Success', 2 + i)
        assert c.policy() == 'balloons'
