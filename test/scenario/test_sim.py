# SPDX-License-Identifier: Apache-2.0
"""nri-rp-sim itself: its commands, its judgement, its messages."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from simnode import BUILD, STATIC, SimError, ctr

SIM = BUILD / 'bin' / 'nri-rp-sim'
HERE = pathlib.Path(__file__).parent
HEAD = 'config: {policy: static, static: {reservedResources: {cpu: "1"}}}\n'


def sim(*args, code=0, **kwargs):
    done = subprocess.run([SIM, *args], capture_output=True, text=True, timeout=120, **kwargs)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def scenario(tmp_path):
    def make(text, head=HEAD):
        path = tmp_path / 'scenario.yaml'
        path.write_text(head + text)
        return path

    return make


# ---- the command line -----------------------------------------------------------------------------------------------------


def test_help_and_version():
    assert 'nri-rp-sim play' in sim('--help')
    assert sim('--version').startswith('nri-rp-sim ')


@pytest.mark.parametrize('args', [[], ['dance'], ['play'], ['machine', 'n4c16'], ['--nonsense'], ['--seed', 'x', 'machines'],
                                  ['--settle', 'x', 'machines'], ['serve', 'more']])
def test_wrong_usage(args):
    assert "Try 'nri-rp-sim --help'" in sim(*args, code=2)


def test_machines():
    listed = {line.split()[0] for line in sim('machines').splitlines()}
    shipped = {p.stem for p in (HERE.parents[1] / 'conf/machines').glob('*.yaml')}
    assert listed == shipped and len(listed) >= 9


def test_machine(tmp_path):
    sim('machine', 'laptop', tmp_path / 'l')
    cpu = tmp_path / 'l/sys/devices/system/cpu'
    assert (cpu / 'online').read_text() == '0-15\n'
    assert (tmp_path / 'l/sys/devices/cpu_atom/cpus').read_text() == '8-15\n'
    assert (cpu / 'cpu9/cache/index2/shared_cpu_list').read_text() == '8-11\n'
    assert (cpu / 'cpu3/topology/core_cpus_list').read_text() == '2-3\n'
    assert 'MemTotal:       33554432 kB' in (tmp_path / 'l/proc/meminfo').read_text()
    assert (tmp_path / 'l/sys/devices/system/node/node0/cpu5').resolve() == (cpu / 'cpu5').resolve()
    assert 'did you mean "laptop"' in sim('machine', 'latop', tmp_path / 'x', code=1)
    assert 'already contains a machine' in sim('machine', tmp_path / 'l', tmp_path / 'x', code=1)


@pytest.mark.parametrize('text, why', [
    ('cores: many', 'cores: expected an integer'),
    ('coers: 4', 'did you mean "cores"'),
    ('{cores: 5000, packages: 2}', 'more than'),
    ('memory: lots', 'memory: expected a size'),
    ('numbering: odd', 'numbering: expected near or far'),
    ('offline: 0', 'offline: at least one CPU must stay online'),
    ('isolated: 7', 'isolated: expected CPUs'),
    ('{numa: false, nodes: 2}', 'numa:'),
    ('base: nothing', 'unknown machine'),
    ('kinds: []', 'kinds: expected'),
    ('kinds: [{type: fast}]', 'type: expected performance'),
    ('caches: {l3Shared: all}', 'l3Shared: expected'),
    ('caches: {l2: big}', 'l2: expected a size'),
    ('frequency: {base: fast}', 'base: expected a frequency'),
    ('frequency: {turbo: 4GHz}', 'frequency: unknown key "turbo"'),
    ('kinds: [{frequency: {max: fast}}]', 'max: expected a frequency'),
    ('distances: {die: 5}', 'die: expected 11 to 255'),
    ('memoryNodes: [{type: paper}]', 'type: expected hbm'),
    ('memoryNodes: [{distances: {7: 20}}]', 'unknown node'),
    ('memoryNodes: [{distances: {0: 5}}]', 'expected 11 to 255'),
    ('[1]', 'found a list'),
    ('a: [', 'm.yaml'),
    ('{}\n---\n{}', 'expected one machine'),
])
def test_wrong_machines(tmp_path, text, why):
    (tmp_path / 'm.yaml').write_text(text)
    assert why in sim('machine', tmp_path / 'm.yaml', tmp_path / 'x', code=1)


# ---- scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('options', [[], ['--runtime', 'cri-o', '--cgroups', 'cgroupfs'], ['--nri', '0.6', '-v'],
                                     ['--sync-parts', '1', '--seed', '9']], ids=' '.join)
def test_play(options):
    out = sim('play', *options, HERE / 'first.yaml')
    assert out.endswith('2 passed, 0 failed\n')
    if '-v' in options:
        assert '2 C  3 C' in out and 'no container moved' in out and 'nobody is left but the old one' in out


@pytest.mark.skipif(not (BUILD / 'modules/topology-aware.so').exists(), reason='the story ends with topology-aware')
def test_demo():
    out = sim('play', '-v', HERE.parents[1] / 'conf/demo/story.yaml')
    assert out.endswith('1 passed, 0 failed\n')
    assert 'exclusive CPUs' in out and 'healthy' in out
    first = out[:out.index('2. Another policy')]
    assert '4 shared' in first and '4 exclusive' not in first, 'a container without other containers is not exclusive under the policy none'


def test_the_map_is_served_after_the_last_step(scenario):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        address = '127.0.0.1:%d' % free.getsockname()[1]
    path = scenario('steps:\n- create: {pod: a, containers: [{name: c}]}\n')
    with subprocess.Popen([SIM, 'play', '--map', address, path], stdout=subprocess.PIPE, text=True) as sim_:
        assert any('http://%s/map ' % address in line for line in sim_.stdout)
        assert 'default/a/c' in urllib.request.urlopen('http://%s/map/containers' % address, timeout=10).read().decode()
        sim_.send_signal(signal.SIGINT)
        assert '1 passed, 0 failed' in sim_.stdout.read()
    assert sim_.returncode == 0


def test_play_json(scenario):
    path = scenario('steps:\n- create: {pod: a, containers: [{name: c}]}\n- expect: count(cpus(c)) == 3\n')
    results = json.loads(sim('play', '--json', '--settle', '50ms', path, code=1))
    assert results[0]['passed'] is False and 'does not hold' in results[0]['error']


@pytest.mark.parametrize('steps, why', [
    ('- expect: count(cpus(nobody)) == 1', 'unknown container "nobody"'),
    ('- create: {pod: a, containers: [{name: c}]}\n- expect: cpus(c) == 3', 'cpus(c) is 0-15'),
    ('- create: {pod: a, containers: [{name: c, cpu: lots}]}', 'cpu: expected'),
    ('- create: {pod: a, containers: [{name: c, cpu: 99, memory: 1Mi}]}', 'not enough cpus'),
    ('- reject: {pod: a, containers: [{name: c}]}', 'a was accepted'),
    ('- reject: {pod: a, containers: [{name: c, cpu: 99, memory: 1Mi}], error: other words}', 'refused with another error'),
    ('- delete: a', 'unknown pod "a"'),
    ('- exit: c', 'unknown container "c"'),
    ('- log: no line looks like this', 'has no line'),
    ('- log: "["', 'not a regular expression'),
    ('- config: {policy: nonsense}', 'the configuration was refused'),
    ('- badconfig: {policy: none}', 'the configuration was accepted'),
    ('- signal: BLUE', 'signal: expected HUP'),
    ('- wait: for me', 'expected a duration'),
    ('- offline: 0-15', 'at least one CPU must stay online'),
    ('- kill:\n- exited: 0', 'exited with signal 9, not exit status 0'),
    ('- start:', 'already running'),
    ('- control: {method: Dance}', 'Dance'),
])
def test_failing_steps(scenario, steps, why):
    out = sim('play', '--settle', '60ms', scenario('steps:\n' + steps + '\n'), code=1)
    assert why in out
    assert 'FAILED' in out and 'scenario.yaml:' in out and 'node 0' in out
    assert out.endswith('0 passed, 1 failed\n')


@pytest.mark.parametrize('step, why', [
    ('- creat: {pod: b}', 'unknown step "creat", did you mean "create"'), ('- create: {pod: b, contianers: []}', 'did you mean "containers"'),
    ('- create: [{pod: b, containers: [{name: c, cpuu: 1}]}]', 'container: unknown key "cpuu"'), ('- {create: {pod: b}, delete: b}', 'a step is one word'),
    ('- reject: {pod: b, eror: x}', 'unknown key "eror", did you mean "error"'), ('- update: {container: c, error: x}', 'unknown key "error"'),
    ('- reject-update: {container: c, cpu: 9, eror: x}', 'did you mean "error"'), ('- expect: cpus(c == 1', 'expect: cpus(c == 1: expected'),
    ('- expect: [1 == 1, 1 ? 2]', 'expected a word at "? 2"'), ('- log: {regexp: x}', 'did you mean "regex"'), ('- expect: 7', 'expected an expression'),
])
def test_malformed_steps_fail_before_the_first(scenario, step, why):
    out = sim('play', '--verbose', scenario('steps:\n- create: {pod: a, containers: [{name: c}]}\n%s\n' % step), code=1)
    assert why in out and 'scenario.yaml:' in out and '---' not in out
    assert out.endswith('0 passed, 1 failed\n')


@pytest.mark.parametrize('head, why', [
    ('steps: []\n', 'a scenario needs a configuration'),
    (HEAD + 'machine: mars\n', 'unknown machine "mars"'),
    (HEAD + 'nri: "9.9"\n', 'expected 0.3 to 0.12'),
    (HEAD + 'runtime: docker\n', 'expected containerd or cri-o'),
    (HEAD + 'cgroups: v3\n', 'expected systemd or cgroupfs'),
    (HEAD + 'stepps: []\n', 'did you mean "steps"'),
    (HEAD + 'existing: [{pod: a, containers: [{name: c, cpus: 99}]}]\n', 'are not online'),
    ('config: {policy: static}\n', 'exit status 78'),
    ('config: [\n', 'scenario.yaml'),
])
def test_wrong_scenarios(scenario, head, why):
    assert why in sim('play', scenario('', head), code=1)


def test_missing_file():
    assert 'cannot read' in sim('play', '/nonexistent.yaml', code=1)


@pytest.mark.parametrize('expression, why', [
    ('count(cpus(c)', 'expected'), ('count(cpus(c)) == ', 'expected a value'), ('cuont(c)', 'did you mean "count"'), ('count()', 'takes 1'),
    ('shares(3)', 'expected a container'), ("'a' < 'b'", 'texts are'), ('1 not 2', 'expected "in"'), ('(' * 60, 'nested too deep'),
    ('99999999999999999999', 'a smaller number'), ('0-9999', 'expected a list'), ('c ?', 'expected the end'), ("'open", 'expected a value'),
    ('env(c, 3)', 'expected a text'), ("cpus(c) + 'x'", 'expected a set'),
])
def test_wrong_expressions(make_node, expression, why):
    node = make_node({'policy': 'none'})
    node.create('p', ctr('c'))
    with pytest.raises(SimError) as e:
        node.expect(expression)
    assert why in str(e.value)


@pytest.mark.parametrize('expression', [
    'cpus(c) == 0-15', 'count(cpus(c)) == 16', '1 + 2 - 3 == 0', 'cpus(c) - 1-15 == 0', '3 in cpus(c)', 'not 3 in 4-5', '3 not in 4-5',
    '0-1 < 0-3', '0-3 >= 0-3', '0-3 > 0-1', '1 <= 2 and 2 < 3 or 1 > 2', "qos(c) == 'besteffort'", "qos(c) != 'guaranteed'",
    'cpus(c) & 3-4 == 3-4', '0-1 | 2 == 0-2', '1 == 1 == 1', 'not (1 == 2)', 'union(0, 1, 2-3) == 0-3', 'disjoint(0-1, 2)',
    'nodes(0-3) == 0', 'nodes(c) == 0-3', 'packages(c) == 0-1', 'dies(c) == 0-1', 'l3s(c) == 0-1', 'cores(0-3) == 0-1',
    'node(1) == 4-7', 'package(1) == 8-15', 'core(7) == 14-15', 'l3(0) == 0-7', 'die(1) == package(1)', 'mems(c) == memory',
    'online == present', 'count(isolated) == 0', 'pinned(c) == false', 'alive(c)', "state(p/c) == 'running'", "env(c, 'A') == ''",
    'shares(c) == 2', 'quota(c) < 0', 'period(c) == 100000', 'memory_limit(c) < 0', 'oom_score_adj(c) == 1000',
    "rdt(c) == ''", "blockio(default/p/c) == ''", "unified(c, 'x') == ''", "annotation(c, 'x') == ''", 'updates(c) == 0', 'unsolicited == 0',
    "'x' == \"x\"", 'true and not false',
])
def test_expressions(none_node, expression):
    none_node.expect(expression)


@pytest.fixture(scope='module')
def none_node():
    from simnode import Node
    with Node({'policy': 'none'}) as node:
        node.create('p', ctr('c'))
        yield node


# ---- the judge --------------------------------------------------------------------------------------------------------------


def test_interrupted(scenario, tmp_path):
    path = scenario('steps:\n- wait: 60s\n')
    env = dict(os.environ, TMPDIR=str(tmp_path))
    playing = subprocess.Popen([SIM, 'play', path], stdout=subprocess.PIPE, text=True, env=env)
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob('nri-rp-sim-*/nri-rpd.log')) and time.monotonic() < deadline:
        time.sleep(0.02)
    log = list(tmp_path.glob('nri-rp-sim-*/nri-rpd.log'))[0]
    while 'synchronized' not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    playing.send_signal(signal.SIGINT)
    out, _ = playing.communicate(timeout=20)
    assert playing.returncode == 1 and 'interrupted' in out.lower()
    assert list(tmp_path.glob('nri-rp-sim-*')) == [], 'nothing is left behind'


def test_daemon_that_cannot_be_started(make_node):
    with pytest.raises(SimError, match='exit status 127'):
        make_node(STATIC, daemon='/nonexistent/nri-rpd --config {config}')


def test_daemon_that_does_not_connect(make_node):
    with pytest.raises(SimError, match='exit status'):
        make_node(STATIC, daemon='/bin/sh -c exit')


def test_work_folder_is_kept(tmp_path):
    sim('play', '--work', tmp_path / 'w', HERE / 'first.yaml')
    assert (tmp_path / 'w/rp.conf').exists() and (tmp_path / 'w/nri-rpd.log').exists()


def test_a_stopped_daemon_is_late(make_node):
    """What a frozen plugin looks like to a runtime: late, dropped, and the container is created without it."""
    node = make_node(STATIC, requestTimeout='1s')
    node.create('a', ctr('a0', '1', '64Mi'))
    node.signal('STOP')
    node.create('b', ctr('b0', '1', '64Mi'))
    assert not node.container('b0')['pinned']
    assert 'was not answered within 1000 ms' in node.problems()[0]
    node.signal('CONT')
    node.connected()
    node.expect('count(cpus(b0)) == 1', 'disjoint(a0, b0)')


def test_serve_from_a_file(tmp_path):
    (tmp_path / 'in').write_text('{"id": 1, "setup": {}}\n{"id": 2, "map": {"width": 40}}\nnonsense\n{"id": 3}\n{"id": 4, "wait": 1}\n')
    with open(tmp_path / 'in', encoding='ascii') as f:
        out = [json.loads(line) for line in sim('serve', stdin=f).splitlines()]
    assert [o.get('id') for o in out] == [1, 2, None, 3, 4]
    assert [o['ok'] for o in out] == [True, True, False, False, True]
    assert 'node 3' in out[1]['map']


def test_events_are_told(make_node):
    node = make_node({'policy': 'none'})
    node.create('a', ctr('a0', '2', '64Mi'))
    node.config(STATIC)
    node.expect('count(cpus(a0)) == 2')
    node.kill()
    kinds = [e['event'] for e in node.events]
    assert kinds == ['synchronized', 'updated', 'exited', 'disconnected'] or kinds == ['synchronized', 'updated', 'disconnected', 'exited']


def test_map_of_a_narrow_terminal(make_node):
    node = make_node(STATIC, machine='n4c128')
    node.create('a', ctr('a0', '4', '64Mi'))
    node.create('s', ctr('s0', '1/2'))
    text = node.map(60)
    assert max(len(line) for line in text.splitlines() if 'CPUs' not in line) <= 60
    assert (len(re.findall(r'\d A\b', text)), len(re.findall(r'\d b\b', text))) == (4, 124) and 'package 1' in text


def test_serve_takes_the_configuration_with_the_setup():
    """As a story does; without one it is written by write-config."""
    lines = [{'setup': {'machine': 'n4c16', 'config': {'policy': 'static', 'static': {'reservedResources': {'cpu': 1}}}}}, {'start': None},
             {'create': {'pod': 'p', 'containers': [{'name': 'c', 'cpu': 2, 'memory': '64Mi'}]}}, {'expect': 'count(cpus(c)) == 2'}]
    done = subprocess.run([SIM, 'serve'], input='\n'.join(map(json.dumps, lines)) + '\n', capture_output=True, text=True, timeout=120)
    answers = [answer for answer in map(json.loads, done.stdout.splitlines()) if 'ok' in answer]
    assert [a['ok'] for a in answers] == [True] * 4, (answers, done.stderr)
