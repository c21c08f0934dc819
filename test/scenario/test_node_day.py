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
WINDOW_S, PASS_S, AGE_S, DIFF, DEGRADE_S = 300, 60, 3600, 0.1, 15 * 60
END_S = HOURS * 3600
OUTAGE = (END_S / 2, END_S / 2 + 40 * 60)
SETTLED_S = 2 * WINDOW_S
BUSY_S = 5 * STEP_S  # a delay that figures are still exact with


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

    def lent(self, t):
        """The rule: a part of the machine, less what the system and prod pods have used on average."""
        window = min(WINDOW_S, t)
        return CAPACITY * THRESHOLD // 100 - SYSTEM - (self.until(t) - self.until(t - window)) / window


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
    """(time, value, what is written, writes) as often as can be."""
    seen = []
    while machine.now() < END_S:
        doc = node.ctl('node')
        cpu = next((r for r in doc.get('resources', []) if r['name'] == 'kubernetes.io/batch-cpu'), {})
        seen.append((machine.now(), cpu.get('value'), cpu.get('written'), doc['writes']))
        time.sleep(0.02)
    return seen


def writes_by_rule(load):
    """How often the rules alone would write, pass by pass."""
    n, written, at = 0, None, 0.0
    t = float(PASS_S)
    while t < END_S:
        gone = OUTAGE[0] + DEGRADE_S <= t < OUTAGE[1]
        value = None if gone else load.lent(t)
        if (value is None) != (written is None) or (value is not None and (t - at > AGE_S or abs(value - written) > DIFF * written)):
            n, written, at = n + 1, value, t
        t += PASS_S
    return n


def draw(seen, load):
    """Time to the right, a milli-CPU up; what was used, what is calculated, what is written."""
    def line(points, colour):
        path = ''.join('%s%.1f,%.1f' % ('M' if i == 0 else 'L', 40 + 900 * t / END_S, 310 - 300 * v / CAPACITY) for i, (t, v) in enumerate(points))
        return '<path d="%s" fill="none" stroke="%s" stroke-width="1.2"/>' % (path, colour)
    used = [(t, (load.until(t) - load.until(t - 60)) / 60 + SYSTEM) for t in range(60, END_S, 60)]
    words = ''.join('<text x="%d" y="335" fill="%s">%s</text>' % (40 + 220 * i, colour, word) for i, (word, colour) in enumerate(
        (('used', '#888'), ('calculated', '#4477aa'), ('on the Node', '#cc6677'))))
    steps = [p for a, b in zip(seen, seen[1:]) if a[2] is not None and b[2] is not None for p in ((a[0], a[2]), (b[0], a[2]))]
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="960" height="350" font-family="sans-serif" font-size="13">'
            '<rect width="960" height="350" fill="#fff"/>%s%s%s%s</svg>\n' % (
                line(used, '#888'), line([(t, v) for t, v, _, _ in seen if v is not None], '#4477aa'), line(steps, '#cc6677'), words))


@pytest.fixture
def node(make_node):
    strategy = {'enable': True, 'cpuReclaimThresholdPercent': THRESHOLD, 'metricReportIntervalSeconds': PASS_S, 'metricAggregateDurationSeconds': WINDOW_S,
                'updateTimeThresholdSeconds': AGE_S, 'resourceDiffThreshold': DIFF, 'degradeTimeMinutes': DEGRADE_S // 60}
    config = {'policy': 'none', 'calculators': ['batch'], 'nodeResources': {'strategy': strategy}, 'metrics': {'collectInterval': '15s'}}
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
    cpu = next(r for r in node.ctl('node')['resources'] if r['name'] == 'kubernetes.io/batch-cpu')
    text = subprocess.run([BUILD / 'bin/nri-rpctl', '--socket', node.paths['control'], 'node'], capture_output=True, text=True, check=True).stdout
    machine.over = True
    machine.join()
    print(text)
    # the last hour, a minute each, as people see it
    assert len(cpu['past']) == 60 and cpu['since_ms'] <= 1000 * (AGE_S + 2 * PASS_S)
    least, most = (f(v for v in cpu['past'] if v is not None) for f in (min, max))
    assert 'kubernetes.io/batch-cpu in the last 60 min, %d to %d\n' % (least, most) in text
    if HOURS >= 24:
        (BUILD / 'day.csv').write_text('second,calculated,written,writes\n' + ''.join('%d,%s,%s,%d\n' % s for s in seen))
        (BUILD / 'day.svg').write_text(draw(seen, load))
    rule, writes = writes_by_rule(load), seen[-1][3]
    print('%d hours: %d writes, %d by the rules, %d looks; the longest time without a new reading: %d s' % (HOURS, writes, rule, len(seen), machine.late))
    if machine.late > BUSY_S:
        pytest.skip('this machine is too busy: for %d s of that day there were no new readings' % machine.late)
    assert len(seen) > END_S / PASS_S / 10, 'looked at too rarely to tell'
    for t, value, written, _ in seen:
        if value is not None and written is not None:
            assert abs(value - written) <= DIFF * written, 'at %d s' % t
        around = [load.lent(max(STEP_S, t + s)) for s in range(-3 * PASS_S - 30, 31, 15)]
        if value is not None and t > SETTLED_S and not OUTAGE[0] <= t < OUTAGE[1] + SETTLED_S:
            assert min(around) * 0.95 <= value <= max(around) * 1.05, 'at %d s' % t
    gone = [t for t, value, _, _ in seen if value is None and t > SETTLED_S]
    assert gone and min(gone) >= OUTAGE[0] + DEGRADE_S - PASS_S and max(gone) < OUTAGE[1] + 3 * PASS_S
    assert writes <= rule * 1.3 + 4 and writes >= rule * 0.7 - 4
