#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What measuring a node and calculating its resources costs nri-rpd, by the CPU time and the memory of its process.

  test/bench/node.py [--pods N] [--seconds S]

Containers have real cgroups of this kernel where root runs it (in a mount namespace of its own, `unshare -m`), else files that look like v2's.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from operator_tools import free_port, http_get  # noqa: E402
from simnode import Node, ctr, eventually, put_machine  # noqa: E402

def cgroup_of(node, name):
    """Where systemd has a container's cgroup."""
    unit, prefix, ident = node.container(name)['cgroupsPath'].split(':')
    parts = unit.removesuffix('.slice').split('-')
    return 'sys/fs/cgroup/%s/%s-%s.scope' % ('/'.join('-'.join(parts[:i + 1]) + '.slice' for i in range(len(parts))), prefix, ident)


TREE = pathlib.Path('/sys/fs/cgroup')
# lines of a kernel 6: what a reader has to go over
V2 = {'cpu.stat': 'usage_usec 1000\nuser_usec 500\nsystem_usec 500\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n', 'memory.current': '1048576\n',
      'memory.stat': ''.join('%s 4096\n' % k for k in ['anon', 'file', 'kernel'] + ['filler%d' % i for i in range(25)] +
                             ['inactive_anon', 'active_anon', 'inactive_file', 'active_file', 'unevictable'] + ['filler%d' % i for i in range(20)] + ['pgmajfault']),
      'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n', 'io.stat': '', **{f: 'some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n'
                                                                                   for f in ('cpu.pressure', 'memory.pressure', 'io.pressure')}}
STRATEGY = {'enable': True, 'metricReportIntervalSeconds': 60}


def cpu_s(pid):
    return sum(int((task / 'schedstat').read_text().split()[0]) for task in pathlib.Path('/proc/%d/task' % pid).iterdir()) / 1e9


def rss(pid):
    return int(re.search(r'VmRSS:\s+(\d+)', pathlib.Path('/proc/%d/status' % pid).read_text())[1]) * 1024


def real_hierarchies(root):
    """Binds the kernel's below the simulated root; an empty list: it cannot be done."""
    names = ['cpu', 'cpuacct', 'memory', 'blkio'] if (TREE / 'memory').is_dir() else ['']
    if len(names) > 1:
        (root / 'sys/fs/cgroup/cgroup.controllers').unlink(missing_ok=True)
    for name in names:
        to = root / 'sys/fs/cgroup' / name
        to.mkdir(parents=True, exist_ok=True)
        if subprocess.run(['mount', '--bind', TREE / name, to], stderr=subprocess.DEVNULL).returncode:
            return []
    return names


def config(collect, *calculators, address):
    return {'policy': 'none', 'calculators': list(calculators), 'nodeResources': {'strategy': STRATEGY}, 'metrics': {'collectInterval': collect, 'listen': address}}


def scrape(address, name):
    found = re.search(r'^%s (\S+)' % name, http_get(address, '/metrics').body.decode(), re.M)
    return float(found[1]) if found else 0.0


def measure(args):
    address = '127.0.0.1:%d' % free_port()
    made = []
    with Node(config('0s', address=address), start=False) as node:
        root = pathlib.Path(node.paths['root'])
        put_machine(node)
        names = real_hierarchies(root) if os.geteuid() == 0 and not args.files else []
        if not names:
            (root / 'sys/fs/cgroup').mkdir(parents=True, exist_ok=True)
            (root / 'sys/fs/cgroup/cgroup.controllers').write_text('cpu io memory\n')
        node.start()
        pid = node.status()['pid']
        for i in range(args.pods):
            node.create('p%d' % i, ctr('c%d' % i, '100m', '64Mi'))
        for i in range(args.pods):
            path = cgroup_of(node, 'c%d' % i)
            if not names:
                for file, text in V2.items():
                    (root / path).mkdir(parents=True, exist_ok=True)
                    (root / path / file).write_text(text)
            for name in names:
                folder = TREE / name / pathlib.Path(path).relative_to('sys/fs/cgroup')
                folder.mkdir(parents=True, exist_ok=True)
                made.append(folder)
        time.sleep(2)
        try:
            def spent(seconds):
                began = cpu_s(pid)
                time.sleep(seconds)
                return (cpu_s(pid) - began) / seconds
            idle, before = spent(args.seconds / 2), rss(pid)
            node.config(config('1s', address=address))
            eventually(lambda: scrape(address, 'nri_rp_collect_rounds_total') > 8)
            def collected():
                return [scrape(address, 'nri_rp_collect_' + n) for n in ('rounds_total', 'files_total', 'missing_total', 'cpu_seconds_total')]
            first = collected()
            sampling = spent(args.seconds) - idle
            rounds, files, missing, thread = (b - a for a, b in zip(first, collected()))
            node.config(config('1s', 'cpu-normalization', 'resource-amplification', 'mid', 'batch', address=address))
            eventually(lambda: scrape(address, 'nri_rp_node_resource_passes_total') > 2)
            time.sleep(5)
            memory = rss(pid) - before
            passes, took = (scrape(address, 'nri_rp_node_resource_' + n) for n in ('passes_total', 'cpu_seconds_total'))
            print('cgroups          %s' % ('of the kernel, v1' if len(names) > 1 else 'of the kernel, v2' if names else 'files'))
            print('pods             %d, %.0f files a round, %d not found' % (args.pods, files / rounds, missing))
            print('idle             %.3f %% of a CPU' % (100 * idle))
            print('sampling, 1 s    %.3f %% of a CPU more; %.3f %% on the thread that reads' % (100 * sampling, 100 * thread / rounds))
            print('a pass           %.3f ms of CPU' % (1000 * took / max(1, passes)))
            print('memory           %.1f KiB a pod, %d descriptors' % (memory / 1024 / args.pods, len(os.listdir('/proc/%d/fd' % pid))))
        finally:
            for folder in sorted(made, key=lambda f: -len(str(f))):
                while len(folder.parts) > len(TREE.parts) + 1:
                    try:
                        folder.rmdir()
                    except OSError:
                        break
                    folder = folder.parent
            for name in names:
                subprocess.run(['umount', root / 'sys/fs/cgroup' / name])


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--pods', type=int, default=250)
    parser.add_argument('--files', action='store_true', help='no real cgroups')
    parser.add_argument('--seconds', type=float, default=20)
    measure(parser.parse_args())
