# SPDX-License-Identifier: Apache-2.0
"""
The churn of a busy node: 300 pods, ten of which end each second, and ten others come. What the daemon holds stays what it is: memory, descriptors,
files. SOAK_SECONDS says for how long, a few in `make check`, and SOAK_RATE how many come each second; `make soak` leaves build/soak.csv and
build/soak.svg.
"""
import os
import pathlib
import random
import statistics
import time

import pytest

from simnode import BUILD, INSTRUMENTED, ctr, cpuset

SECONDS = float(os.environ.get('SOAK_SECONDS', 4))
RATE = float(os.environ.get('SOAK_RATE', 10))
PODS = 300
BINS = 240  # of the picture
CONFIG = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0-1'}}, 'rebalanceInterval': '10s'}
OWNED_MAX = 40  # CPUs of 128
COLUMNS = 'second pods rss_kib fds state_bytes cpu_ms creations p50_us p99_us p999_us max_us'.split()


class Churn:
    def __init__(self, node):
        self.node, self.rng, self.n, self.pods, self.owned = node, random.Random(1), 0, [], {}

    def come(self):
        """How long the answer took, in microseconds."""
        self.n += 1
        name, cpus = 'p%d' % self.n, self.rng.choice([0, 0, 0, 0, 0, 1, 2, 4])
        own = cpus and sum(len(c) for c in self.owned.values()) + cpus <= OWNED_MAX
        spec = ctr('c', str(cpus), '64Mi') if own else self.rng.choice([ctr('c', '50m/-'), ctr('c', '100m/1', '16Mi/64Mi'), ctr('c')])
        made = self.node.create(name, spec, labels={'app': 'a%d' % self.rng.randint(0, 20)})[0]
        self.pods.append(name)
        if own:
            self.owned[name] = cpuset(made['cpus'])
        return made['took_us']

    def go(self):
        name = self.pods.pop(self.rng.randrange(len(self.pods)))
        self.node.delete(name)
        self.owned.pop(name, None)

    def check(self):
        places = {name: cpuset(cpus) for name, (cpus, _) in self.node.places().items()}
        owned = set().union(*self.owned.values()) if self.owned else set()
        assert len(places) == len(self.pods) and len(owned) == sum(len(c) for c in self.owned.values())
        for name in self.pods:
            assert places[name + '/c'] == self.owned[name] if name in self.owned else places[name + '/c'] and not places[name + '/c'] & owned, name


def held(node, pid):
    """KiB of memory, descriptors, bytes of state, milliseconds of CPU so far."""
    status = pathlib.Path('/proc/%d/status' % pid).read_text()
    fields = pathlib.Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()
    ticks = int(fields[11]) + int(fields[12])
    files = [p for p in pathlib.Path(node.paths['state']).rglob('*') if p.is_file()]
    return (int(status.partition('VmRSS:')[2].split()[0]), len(os.listdir('/proc/%d/fd' % pid)), sum(p.stat().st_size for p in files),
            ticks * 1000 // os.sysconf('SC_CLK_TCK'))


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))] if values else 0


def sample(node, pid, began, churn, took):
    return (time.monotonic() - began, len(churn.pods), *held(node, pid), len(took), *(quantile(took, q) for q in (.5, .99, .999, 1)))


def churned(node, churn, pid):
    """A row each so often."""
    began, took, rows, beats = time.monotonic(), [], [], 0
    every = max(1., SECONDS / BINS)
    while time.monotonic() - began < SECONDS:
        churn.go()
        took.append(churn.come())
        beats += 1
        time.sleep(max(0, began + beats / RATE - time.monotonic()))
        if time.monotonic() - began >= every * (len(rows) + 1):
            rows.append(sample(node, pid, began, churn, took))
            took = []
            node.updates()  # or the simulator would remember all of them
            churn.check()
    return rows


PANELS = (('memory, MiB', [('rss_kib', 1024, '#4477aa')]), ('state, KiB', [('state_bytes', 1024, '#228833')]), ('descriptors', [('fds', 1, '#aa3377')]),
          ('an answer, ms: median, 99.9 %, longest', [('p50_us', 1000, '#4477aa'), ('p999_us', 1000, '#ee8866'), ('max_us', 1000, '#cc3311')]))


def panel(rows, top, title, lines):
    columns = {name: [row[COLUMNS.index(name)] / unit for row in rows] for name, unit, _ in lines}
    most = max(max(values) for values in columns.values()) or 1
    parts = ['<text x="60" y="%d">%s</text><text x="52" y="%d" text-anchor="end">%.4g</text><text x="52" y="%d" text-anchor="end">0</text>' % (
        top + 12, title, top + 28, most, top + 120)]
    for name, _, colour in lines:
        points = ' '.join('%.1f,%.1f' % (60 + 880 * row[0] / rows[-1][0], top + 120 - 96 * v / most) for row, v in zip(rows, columns[name]))
        parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.2"/>' % (points, colour))
    return ''.join(parts)


def draw(rows):
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="960" height="560" font-family="sans-serif" font-size="12"><rect width="960" height="560" fill="#fff"/>'
    foot = '<text x="940" y="550" text-anchor="end">%.0f minutes, %d creations</text></svg>\n' % (rows[-1][0] / 60, sum(r[6] for r in rows))
    return head + ''.join(panel(rows, 10 + 132 * i, *p) for i, p in enumerate(PANELS)) + foot


@pytest.fixture
def node(make_node):
    return make_node(CONFIG, machine='n4c128')


def test_soak(node):
    churn, pid = Churn(node), node.status()['pid']
    while len(churn.pods) < PODS:
        churn.come()
    churn.check()
    first = held(node, pid)
    rows = churned(node, churn, pid)
    assert node.status()['pid'] == pid
    if 'SOAK_SECONDS' in os.environ:
        (BUILD / 'soak.csv').write_text(','.join(COLUMNS) + '\n' + ''.join(','.join('%g' % v for v in row) + '\n' for row in rows))
        (BUILD / 'soak.svg').write_text(draw(rows))
    third = len(rows) // 3 or 1
    for what in ('rss_kib', 'fds', 'state_bytes', 'p50_us', 'p999_us', 'max_us'):
        i = COLUMNS.index(what)
        print('%s: %g in the first third, %g in the last one; most %g' % (
            what, statistics.median(r[i] for r in rows[:third]), statistics.median(r[i] for r in rows[-third:]), max(r[i] for r in rows)))
    print('%.0f s, %d creations, %d ms of CPU' % (rows[-1][0], sum(r[6] for r in rows), rows[-1][5] - first[3]))
    assert rows[-1][3] <= first[1] + 1, 'descriptors'
    assert INSTRUMENTED or rows[-1][2] <= first[0] * 1.1 + 1024, 'memory'
    assert rows[-1][4] <= max(4 * first[2], 4 << 20), 'files'
