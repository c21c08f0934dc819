# SPDX-License-Identifier: Apache-2.0
"""A simulated node for tests: nri-rp-sim serve in the background, with a real nri-rpd connected to it.

    with Node(config={'policy': 'static', 'static': {'reservedResources': {'cpu': '1'}}}) as node:
        node.create('web', {'name': 'app', 'cpu': '2', 'memory': '200Mi'})
        assert node.cpus('web/app') == {2, 3}

Whatever nri-rpd does that a runtime would not take fails the test at the end, unless node.allow() has named it.
"""
import json
import os
import pathlib
import re
import selectors
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build'))
TEST_MODULES = BUILD / 'test' / 'modules'
ANSWER_S = 60
SETTLE = '8s'  # how long an expectation may take to come true on a busy machine
DAEMON = BUILD / 'bin' / 'nri-rpd'
# With sanitizers or coverage; the host lets modules that are pass, although they have constructors.
INSTRUMENTED = any(mark in DAEMON.read_bytes() for mark in (b'__asan_init', b'__gcov_')) if DAEMON.exists() else False
STATIC = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}


class SimError(AssertionError):
    """A step that did not do what it should: .result is the whole answer."""

    def __init__(self, text, result=None):
        super().__init__(text)
        self.result = result or {}


def cpuset(text):
    """"0-3,8" as a set."""
    ids = set()
    for part in filter(None, text.split(',')):
        first, _, last = part.partition('-')
        ids.update(range(int(first), int(last or first) + 1))
    return ids


def ctr(name, cpu=None, memory=None, **more):
    """A container: amounts are REQUEST/LIMIT, or one for both."""
    spec = {'name': name, **more}
    if cpu is not None:
        spec['cpu'] = cpu
    if memory is not None:
        spec['memory'] = memory
    return spec


def fast_env(speed):
    """The environment of a program whose clock runs so many times as fast (test/preload/fast.c)."""
    return {'LD_PRELOAD': str(BUILD / 'test' / 'fast.so'), 'FAST_BY': str(speed), 'FAST_SINCE': str(time.monotonic_ns()),
            'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0'}


def fast_daemon(speed):
    """The command line of a daemon with such a clock."""
    return ' '.join(['/usr/bin/env', *('%s=%s' % pair for pair in fast_env(speed).items()), str(DAEMON),
                     '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state} --control-socket {control} --module-dir',
                     str(BUILD / 'modules')])


# what intervals of a strategy are at least, in tests
LEAST = {'report': '1s', 'aggregate': '1s'}


def put_machine(node, ticks=0, used=2 << 30, total=8 << 30):
    """What the node is measured by. A CPU ticks a hundred times a second; the user's part of it."""
    proc = pathlib.Path(node.paths['root']) / 'proc'
    proc.mkdir(parents=True, exist_ok=True)
    (proc / 'stat').write_text('cpu  %d 0 0 500 0 0 0 0 0 0\n' % ticks)
    (proc / 'meminfo').write_text('MemTotal: %d kB\nMemFree: 0 kB\nMemAvailable: %d kB\n' % (total >> 10, (total - used) >> 10))


def eventually(what, seconds=20):
    """Returns the first true value of `what`."""
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, 'has not come true'
        time.sleep(0.02)
    return value


class Node:
    def __init__(self, config=None, machine='n4c16', existing=(), start=True, module_dirs=(), daemon=None, options=(), **head):
        self.events, self.allowed, self._next_id, self._buffer = [], [], 0, b''
        command = [str(BUILD / 'bin' / 'nri-rp-sim'), 'serve', '--settle', SETTLE, *options]
        for folder in module_dirs:
            command += ['--module-dir', str(folder)]
        if daemon:
            command += ['--daemon', daemon]
        self.sim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.sim.stdout, selectors.EVENT_READ)
        try:
            self.run('setup', {'machine': machine, **head})
            self.paths = self.status()
            if config is not None:
                self.run('write-config', config)
            if existing:
                self.run('existing', list(existing))
            if start:
                self.start()
        except BaseException:
            self.abandon()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.abandon()
        else:
            self.close()

    # ---- the line to the simulator ----

    def _line(self, deadline):
        while b'\n' not in self._buffer:
            if not self._selector.select(max(0, deadline - time.monotonic())):
                raise SimError('nri-rp-sim does not answer')
            piece = os.read(self.sim.stdout.fileno(), 1 << 16)
            if not piece:
                raise SimError('nri-rp-sim has ended with %s' % self.sim.wait())
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b'\n')
        return json.loads(line)

    def run(self, command, args=None, timeout=ANSWER_S):
        """One step; what it gives, or SimError."""
        self._next_id += 1
        text = json.dumps({'id': self._next_id, command: args}, ensure_ascii=False)
        self.sim.stdin.write(text.encode() + b'\n')
        self.sim.stdin.flush()
        deadline = time.monotonic() + timeout
        while True:
            answer = self._line(deadline)
            if 'event' in answer:
                self.events.append(answer)
                continue
            assert answer.get('id') == self._next_id, answer
            if not answer['ok']:
                raise SimError('%s: %s' % (command, answer['failed']), answer)
            return answer

    def close(self):
        """Stops everything, and fails on what has been found wrong."""
        try:
            if self.status()['pid']:
                self.stop()
            self.check()
        except BaseException:
            self.abandon()
            raise
        self.sim.stdin.close()
        code = self.sim.wait(ANSWER_S)
        self.sim.stdout.close()
        assert code == 0, 'nri-rp-sim has ended with %d' % code

    def abandon(self):
        if self.sim.poll() is None:
            print(self.tail())
            self.sim.terminate()  # so that it cleans up
        try:
            self.sim.communicate(timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            self.sim.kill()
            self.sim.communicate()

    def tail(self, lines=40):
        try:
            return '\n'.join(self.read_log().splitlines()[-lines:])
        except (OSError, AttributeError):
            return ''

    def check(self):
        """Nothing has been found wrong so far, but for what is allowed."""
        bad = [p for p in self.problems() if not any(re.search(a, p) for a in self.allowed)]
        assert not bad, bad

    def allow(self, regex):
        self.allowed.append(regex)

    # ---- nri-rpd ----

    def start(self, wait=True):
        return self.run('start', {'wait': wait})

    def stop(self):
        return self.run('stop')

    def kill(self):
        return self.run('kill')

    def restart(self):
        return self.run('restart')

    def exited(self):
        """Waits until it has ended by itself: {'exit': 70} or {'signal': 11}."""
        return self.run('exited')

    def connected(self):
        return self.run('connected')

    def signal(self, name):
        return self.run('signal', name)

    def config(self, config):
        """A new configuration, which has to be accepted."""
        return self.run('config', config)

    def badconfig(self, config):
        """One that has to be refused; why."""
        return self.run('badconfig', config).get('error', '')

    def reload(self, how=None):
        return self.run('reload', how)

    def log(self, regex, within='5s'):
        """A line of the log, which may take a while to come."""
        return self.run('log', {'regex': regex, 'within': within})

    def read_log(self):
        return pathlib.Path(self.paths['log']).read_text(errors='replace')

    def control(self, method, *args):
        """The document that the control socket gives."""
        return self.run('control', {'method': method, 'args': list(args)})['document']

    def ctl(self, *args, check=True):
        """nri-rpctl --json."""
        done = subprocess.run([str(BUILD / 'bin' / 'nri-rpctl'), '--socket', self.paths['control'], '--json', *args],
                              capture_output=True, text=True, timeout=ANSWER_S)
        if check and done.returncode:
            raise SimError('nri-rpctl %s: %d: %s' % (' '.join(args), done.returncode, done.stderr or done.stdout))
        return json.loads(done.stdout) if done.stdout.strip() else None

    # ---- the runtime ----

    def runtime_stop(self):
        return self.run('runtime-stop')

    def runtime_start(self, **faults):
        return self.run('runtime-start', faults)

    def runtime_restart(self):
        return self.run('runtime-restart')

    def create(self, pod, *containers, **more):
        """A pod, or more containers for one that is there; what became of them."""
        return self.run('create', {'pod': pod, 'containers': list(containers), **more})['containers']

    def reject(self, pod, *containers, error='', **more):
        """A pod that has to be refused; with what words."""
        return self.run('reject', {'pod': pod, 'containers': list(containers), 'error': error, **more})['error']

    def existing(self, pod, *containers, **more):
        """A pod nobody tells of."""
        return self.run('existing', {'pod': pod, 'containers': list(containers), **more})

    def delete(self, *pods):
        return self.run('delete', list(pods))

    def exit(self, *containers):
        return self.run('exit', list(containers))

    def remove(self, *containers):
        return self.run('remove', list(containers))

    def replace(self, container):
        return self.run('replace', container)

    def update(self, container, **amounts):
        return self.run('update', {'container': container, **amounts})

    def reject_update(self, container, error='', **amounts):
        return self.run('reject-update', {'container': container, 'error': error, **amounts})['error']

    def fail_updates(self, *containers):
        return self.run('fail-updates', list(containers))

    def tell(self, event, container):
        return self.run('tell', {'event': event, 'container': container})

    def offline(self, cpus):
        return self.run('offline', cpus)

    def online(self, cpus):
        return self.run('online', cpus)

    # ---- looking ----

    def container(self, name):
        return self.run('container', name)['container']

    def containers(self):
        """By namespace/pod/container, without default/."""
        return {c['name']: c for c in self.run('containers')['containers']}

    def cpus(self, name):
        return cpuset(self.container(name)['cpus'])

    def mems(self, name):
        return cpuset(self.container(name)['mems'])

    def cgroup(self, name):
        """Where the container's cgroup would be below the machine's tree; this runtime makes none."""
        path = self.container(name)['cgroupsPath']
        if ':' not in path:
            return pathlib.Path(self.paths['root'] + '/sys/fs/cgroup' + path)
        unit, prefix, ident = path.split(':')
        parts = unit.removesuffix('.slice').split('-')
        slices = ['-'.join(parts[:i + 1]) + '.slice' for i in range(len(parts))]
        return pathlib.Path(self.paths['root'], 'sys/fs/cgroup', *slices, '%s-%s.scope' % (prefix, ident))

    def places(self):
        """Where everybody who has not exited is: {name: (cpus, mems)}."""
        return {c['name']: (c['cpus'], c['mems']) for c in self.run('containers')['containers'] if c['state'] != 'exited'}

    def updates(self):
        """Those since the last time."""
        return self.run('updates')['updates']

    def problems(self):
        """Those since the last time."""
        return self.run('problems')['problems']

    def status(self):
        return self.run('status')

    def expect(self, *expressions):
        return self.run('expect', list(expressions))

    def evaluate(self, expression):
        return self.run('evaluate', expression)

    def settle(self, ms=200):
        """Until no update has come for a while."""
        return self.run('settle', ms)

    def map(self, width=100):
        return self.run('map', {'width': width})['map']
