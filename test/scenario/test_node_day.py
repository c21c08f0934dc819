# SPDX-License-Identifier: Apache-2.0
"""
Hours of a node's load a thousand times as fast (test/preload/fast.c), with the real daemon reading it from files: what is lent follows what is
used, is written by the rules of thresholds alone, and is taken back while nothing can be measured. Two hours in `make check`; `make day`: a day,
which leaves build/day.csv and build/day.svg.
"""
import math
import os
import pathlib
import random
import subprocess
import threading
import time

import pytest

from simnode import BUILD, ctr, fast_daemon, put_machine
from test_controllers import add_cgroup, cgroup_of

HOURS = int(os.environ.get('DAY_HOURS', 2))
SPEED, STEP_S = 1000, 4
CAPACITY, THRESHOLD, SYSTEM = 16000, 65, 500  # milli-CPU, percent
WINDOW_S, PASS_S, READ_S, AGE_S, DIFF, DEGRADE_S = 300, 60, 15, 3600, 0.1, 15 * 60
END_S = HOURS * 3600
OUTAGE = (END_S / 2, END_S / 2 + 40 * 60)
SETTLED_S = 2 * WINDOW_S
BUSY_S = WINDOW_S / 3  # a delay that an average still says something with


class Load:
    """What a prod pod uses at a time: it follows the day, trembles, and has half an hour of much more every six hours."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.used, self.at = [0.0], 0.0  # milli-CPU seconds until each step
        while self.at < END_S + 2 * STEP_S:
            self.used.append(self.used[-1] + STEP_S * self.mcpu(self.at) * self.random.uniform(0.97, 1.03))
            self.at += STEP_S

    def mcpu(self, t):
        busy = 4000 if 1800 <= t % 21600 < 3600 else 0
        return 3000 - 1500 * math.cos(2 * math.pi * t / 86400) + busy

    def until(self, t):
        step = min(int(t // STEP_S), len(self.used) - 2)
        return self.used[step] + (self.used[step + 1] - self.used[step]) * (t / STEP_S - step)

    def lent(self, t, stale=0):
        """
        The rule: a part of the machine, less what the system and prod pods have used on average; least and most, where either end of the average may
        have been read from files that were that old.
        """
        window = min(WINDOW_S, t)
        spare, system = CAPACITY * THRESHOLD // 100 - SYSTEM, SYSTEM * stale
        most = self.until(t) - self.until(max(0, t - window - stale))
        least = self.until(max(0, t - stale)) - self.until(t - window)
        return spare - (most + system) / window, spare - max(0, least - system) / window


class Machine(threading.Thread):
    """Writes the files that the daemon measures by."""

    def __init__(self, node, load):
        super().__init__(daemon=True)
        self.root, self.load, self.over = pathlib.Path(node.paths['root']), load, False
        self.cgroup = self.root / cgroup_of(node, 'c')
        self.began = time.monotonic()
        self.late = 0  # the longest time without a new reading: on a busy machine this thread waits, too

    def now(self):
        return (time.monotonic() - self.began) * SPEED

    def write(self, path, text):
        path.with_suffix('.new').write_text(text)
        path.with_suffix('.new').rename(path)

    def run(self):
        last = self.now()
        while not self.over:
            t = self.now()
            self.late, last = max(self.late, t - last), t
            used = self.load.until(t)
            self.write(self.cgroup / 'cpu.stat', 'usage_usec %d\n' % (used * 1000))
            broken = OUTAGE[0] <= t < OUTAGE[1]
            self.write(self.root / 'proc/stat', 'garbage\n' if broken else 'cpu  %d 0 0 0 0 0 0 0 0 0\n' % ((used + SYSTEM * t) / 10))
            time.sleep(STEP_S / SPEED / 2)


def watch(node, machine):
    """As often as can be: between which times the last pass was, its value, what is written, writes, and the number of the pass."""
    seen = []
    while machine.now() < END_S:
        asked = machine.now()
        doc = node.ctl('node')
        answered, age = machine.now(), doc.get('age_ms', 0) / 1000
        cpu = next((r for r in doc.get('resources', []) if r['name'] == 'kubernetes.io/batch-cpu'), {})
        seen.append((asked - age, answered - age, cpu.get('value'), cpu.get('written'), doc['writes'], doc['passes']))
        time.sleep(0.02)
    return seen


def follows_the_rules(seen):
    """
    Each pass that was seen right behind the one before it has written if, and only if, the rules say so of the value that it came to: how many such
    passes there were, and how many of them have written. By which values it came to that is another matter: near the threshold a sample more or
    less decides, so that no calculation beside the daemon's own tells how often it writes.
    """
    passes, writes = 0, 0
    first = last = seen[0][0]  # when it was decided before, at the earliest and at the latest: what writes the same value again is not seen
    for (_, _, _, written, n_writes, n), (least, most, value, now, n_now, number) in zip(seen, seen[1:]):
        if number == n:
            continue
        wrote = n_now - n_writes
        if number == n + 1:
            at = 'pass %d, at %d s: %s, %s was written' % (number, most, value, written)
            passes, writes = passes + 1, writes + wrote
            assert now == (value if wrote else written), at
            if (value is None) != (written is None) or (value is not None and abs(value - written) > DIFF * written):
                assert wrote == 1, at
            elif wrote:
                assert most - first > AGE_S, at
            else:
                assert value == written or least - last <= AGE_S + 2 * PASS_S, at
        if wrote:
            first, last = least, most
        elif value == written and most - first > AGE_S:
            last = most
    return passes, writes


def draw(seen, load):
    """Time to the right, a milli-CPU up; what was used, what is calculated, what is written."""
    def line(points, colour):
        path = ''.join('%s%.1f,%.1f' % ('M' if i == 0 else 'L', 40 + 900 * t / END_S, 310 - 300 * v / CAPACITY) for i, (t, v) in enumerate(points))
        return '<path d="%s" fill="none" stroke="%s" stroke-width="1.2"/>' % (path, colour)
    used = [(t, (load.until(t) - load.until(t - 60)) / 60 + SYSTEM) for t in range(60, END_S, 60)]
    words = ''.join('<text x="%d" y="335" fill="%s">%s</text>' % (40 + 220 * i, colour, word) for i, (word, colour) in enumerate(
        (('used', '#888'), ('calculated', '#4477aa'), ('on the Node', '#cc6677'))))
    steps = [p for a, b in zip(seen, seen[1:]) if a[3] is not None and b[3] is not None for p in ((a[1], a[3]), (b[1], a[3]))]
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="960" height="350" font-family="sans-serif" font-size="13">'
            '<rect width="960" height="350" fill="#fff"/>%s%s%s%s</svg>\n' % (
                line(used, '#888'), line([(s[1], s[2]) for s in seen if s[2] is not None], '#4477aa'), line(steps, '#cc6677'), words))


@pytest.fixture
def node(make_node):
    strategy = {'enable': True, 'cpuReclaimThresholdPercent': THRESHOLD, 'metricReportIntervalSeconds': PASS_S, 'metricAggregateDurationSeconds': WINDOW_S,
                'updateTimeThresholdSeconds': AGE_S, 'resourceDiffThreshold': DIFF, 'degradeTimeMinutes': DEGRADE_S // 60}
    config = {'policy': 'none', 'calculators': ['batch'], 'nodeResources': {'strategy': strategy}, 'metrics': {'collectInterval': '%ds' % READ_S, 'listen': ''}}
    node = make_node(config, start=False, daemon=fast_daemon(SPEED))
    put_machine(node)
    node.start()
    node.create('p', ctr('c', '8', '1Gi'))
    add_cgroup(node, 'c', {'cpu.stat': 'usage_usec 0\n', 'memory.current': '4096\n'})
    return node


def test_hours_of_load(node):
    load = Load(os.environ.get('DAY_SEED', '1'))
    machine = Machine(node, load)
    machine.start()
    seen = watch(node, machine)
    def batch_cpu():
        return next(r for r in node.ctl('node')['resources'] if r['name'] == 'kubernetes.io/batch-cpu')
    cpu = text = None
    while cpu is None or cpu['past'] != batch_cpu()['past']:  # a pass came between the document and the text
        cpu = batch_cpu()
        text = subprocess.run([BUILD / 'bin/nri-rpctl', '--socket', node.paths['control'], 'node'], capture_output=True, text=True, check=True).stdout
    machine.over = True
    machine.join()
    print(text)
    # the last hour, a minute each, as people see it
    assert len(cpu['past']) == 60 and cpu['since_ms'] <= 1000 * (AGE_S + 2 * PASS_S)
    least, most = (f(v for v in cpu['past'] if v is not None) for f in (min, max))
    assert 'kubernetes.io/batch-cpu in the last 60 min, %d to %d\n' % (least, most) in text
    if HOURS >= 24:
        (BUILD / 'day.csv').write_text('second,calculated,written,writes\n' + ''.join('%d,%s,%s,%d\n' % s[1:5] for s in seen))
        (BUILD / 'day.svg').write_text(draw(seen, load))
    passes, writes = follows_the_rules(seen)
    print('%d hours: %d passes, %d seen each by itself, of which %d have written, as the rules say of what each came to; %d writes in all; the longest time '
          'without a new reading: %d s' % (HOURS, seen[-1][5] - seen[0][5], passes, writes, seen[-1][4], machine.late))
    assert writes <= seen[-1][4]
    if machine.late > BUSY_S:
        pytest.skip('this machine is too busy: for %d s of that day there were no new readings' % machine.late)
    assert len(seen) > END_S / PASS_S / 10, 'looked at too rarely to tell'
    for least, most, value, written, _, _ in seen:
        if value is not None and written is not None:
            assert abs(value - written) <= DIFF * written, 'at %d s' % most
        if value is not None and least > SETTLED_S and not OUTAGE[0] <= most < OUTAGE[1] + SETTLED_S:
            # what a pass goes by may be three intervals of the collector old
            ends = [max(STEP_S, t) for t in range(int(least) - 3 * READ_S, int(most) + STEP_S + 1, STEP_S)]
            around = [load.lent(t, machine.late + STEP_S) for t in ends]
            assert min(a for a, _ in around) <= value <= max(b for _, b in around), 'at %d s' % most
    gone = [(least, most) for least, most, value, _, _, _ in seen if value is None and least > SETTLED_S]
    assert gone and min(m for _, m in gone) >= OUTAGE[0] + DEGRADE_S - PASS_S and max(m for m, _ in gone) < OUTAGE[1] + 3 * PASS_S
