#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what core/lib/topo reads below a root with what hwloc reads there.

  topo-hwloc.py TOPO_TABLE ROOT...

TOPO_TABLE is build/test/topo_table; each ROOT has sys/ and proc/. Prints a line a root, each difference on a line below it; exits
with 1 when there was one, with 77 when lstopo is not installed. Packages, dies, cores, threads, caches and NUMA nodes are compared
by their CPUs, nodes also by their number and memory. What hwloc does otherwise on purpose is not a difference: it has no dies where
each is a whole package, and gives memory-only nodes the CPUs that are near them.
"""
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET


def parse_list(text):
    """'0-2,5' -> frozenset({0, 1, 2, 5})"""
    out = set()
    for part in filter(None, text.strip().split(',')):
        first, _, last = part.partition('-')
        out.update(range(int(first), int(last or first) + 1))
    return frozenset(out)


def parse_mask(text):
    """hwloc's '0x1,,0x0000ffff' -> frozenset; an empty word is zero."""
    value = 0
    for word in text.split(','):
        value = value << 32 | int(word or '0', 16)
    return frozenset(i for i in range(value.bit_length()) if value >> i & 1)


def format_list(ids):
    out, ids = [], sorted(ids)
    while ids:
        n = 1
        while n < len(ids) and ids[n] == ids[0] + n:
            n += 1
        out.append(str(ids[0]) if n == 1 else '%d-%d' % (ids[0], ids[n - 1]))
        ids = ids[n:]
    return ','.join(out) or '-'


def ours(table, root):
    """{kind: list of CPU sets}, nodes as (number, memory, CPUs)."""
    text = subprocess.run([table, root], check=True, capture_output=True, text=True).stdout
    out = {kind: [] for kind in KINDS}
    for line in text.splitlines():
        word = line.split(' ')
        cpus = parse_list(word[-1])
        if word[0] == 'node':
            out['node'].append((int(word[1]), int(word[3]), cpus))
        elif word[0] == 'cache':
            out['L%s%s' % (word[1], {'1': 'd', '2': 'i', '3': ''}[word[2]])].append(cpus)
        elif word[0] in out:
            out[word[0]].append(cpus)
    return out


SHOWN_MAX = 20      # differences of a root
KINDS = {
    'package': 'Package', 'die': 'Die', 'core': 'Core', 'thread': 'PU', 'node': 'NUMANode',
    'L1d': 'L1Cache', 'L1i': 'L1iCache', 'L2': 'L2Cache', 'L3': 'L3Cache',
}


def lstopo():
    return shutil.which('lstopo-no-graphics') or shutil.which('lstopo')


def theirs(root):
    env = dict(os.environ, HWLOC_THISSYSTEM='0', HWLOC_COMPONENTS='-pci', HWLOC_HIDE_ERRORS='2')
    text = subprocess.run(
        [lstopo(), '--input', root, '--if', 'fsroot', '--filter', 'all:all', '--no-io', '--of', 'xml', '-'],
        check=True, capture_output=True, text=True, env=env).stdout
    names = {v: k for k, v in KINDS.items()}
    out = {kind: [] for kind in KINDS}
    for obj in ET.fromstring(text).iter('object'):
        kind = names.get(obj.get('type'))
        if not kind:
            continue
        cpus = parse_mask(obj.get('cpuset', '0x0'))
        if kind == 'node':
            out[kind].append((int(obj.get('os_index', 0)), int(obj.get('local_memory', 0)), cpus))
        else:
            out[kind].append(cpus)
    return out


def show(kind, item):
    if kind == 'node':
        return 'node %d of %d bytes, cpus %s' % (item[0], item[1], format_list(item[2]))
    return '%s of cpus %s' % (kind, format_list(item))


def compare(table, root):
    mine, other = ours(table, root), theirs(root)
    # hwloc gives a memory-only node the CPUs that are near it
    other['node'] = [(n, m, next((c for i, _, c in mine['node'] if i == n and not c), cpus))
                     for n, m, cpus in other['node']]
    out = []
    for kind in KINDS:
        if kind == 'die' and not other[kind] and len(mine[kind]) == len(mine['package']):
            continue
        out += ['only ours:   ' + show(kind, i) for i in mine[kind] if i not in other[kind]]
        out += ['only hwloc:  ' + show(kind, i) for i in other[kind] if i not in mine[kind]]
        if len(mine[kind]) != len(other[kind]):
            out.append('%d %s here, %d in hwloc' % (len(mine[kind]), kind, len(other[kind])))
    counts = ', '.join('%d %s' % (len(mine[k]), k) for k in KINDS)
    return counts, out


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if not lstopo():
        print('topo-hwloc: lstopo is not installed')
        return 77
    bad = 0
    for root in sys.argv[2:]:
        counts, out = compare(sys.argv[1], root)
        print('%s: %s: %s' % (root, counts, '%d differences' % len(out) if out else 'same'))
        for line in out[:SHOWN_MAX]:
            print('    ' + line)
        bad += bool(out)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
