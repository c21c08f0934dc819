# SPDX-License-Identifier: Apache-2.0
"""Modules that misbehave: each of test/modules has one thing wrong."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import time

import pytest

from simnode import BUILD, INSTRUMENTED, STATIC, TEST_MODULES, SimError, ctr, eventually


@pytest.fixture
def with_module(make_node, tmp_path):
    """A node with one bad module beside the good ones."""

    def make(name, *more, **options):
        folder = tmp_path / 'modules'
        folder.mkdir()
        for module in (name, *more):
            shutil.copy(TEST_MODULES / ('%s.so' % module), folder)
        return make_node({'policy': name}, module_dirs=[folder, BUILD / 'modules'], **options)

    return make


def test_crash(with_module):
    node = with_module('crash')
    for death in range(3):
        node.create('p%d' % death, ctr('c', '1', '64Mi'))
        ended = node.exited()
        assert ended.get('signal') == 11 or ended.get('exit'), ended
        assert not node.container('p%d/c' % death)['pinned'], 'the runtime goes on without'
        node.start()
    node.log('safe mode')
    node.create('q', ctr('c', '1', '64Mi'))
    status = node.control('Status')
    assert status['policy'] != 'crash' or 'none' in str(status), status
    node.config({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.expect('count(cpus(q/c)) == 1', 'count(cpus(p0/c)) == 1')


HARM_ROUNDS = int(os.environ.get('HARM_ROUNDS', '1'))


def harmed(node, pod, what):
    """A container whose placement does harm; waits for the end of the daemon."""
    with contextlib.suppress(SimError):
        node.create(pod, ctr('c', '1', '64Mi'), annotations={'t/do': 'cpus 1; %s' % what})
    start = time.monotonic()
    ended = node.exited()
    assert time.monotonic() - start < 8, what
    with contextlib.suppress(SimError):
        node.delete(pod)  # a start would place it again
    return ended


@pytest.mark.parametrize('seed', range(HARM_ROUNDS))
def test_harm_ends_in_safe_mode(make_node, seed):
    """Whatever a module does to the process: it ends within seconds, and after three times the daemon starts without the module."""
    rng = random.Random(seed)
    harms = rng.sample(['rob', 'replace', 'bomb', 'crash', 'exit'], 3)
    node = make_node({'policy': 'puppet'}, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    for death, what in enumerate(harms):
        harmed(node, 'p%d' % death, what)
        node.start()
    policy = node.ctl('status', check=False)['policy']
    assert (policy['name'], policy['safe_mode']) == ('none', True), (harms, policy)
    assert 'puppet' in policy['safe_mode_reason']
    node.create('q', ctr('c', '1', '64Mi'), annotations={'t/do': harms[0]})
    assert node.status()['pid'], 'nobody calls it any more'


@pytest.mark.parametrize('what', ['deaf', 'stop'])
def test_module_that_no_handler_can_end(make_node, what):
    """The kernel's timer kills the process within seconds, three times in a row; an operator's kills in between do not count."""
    node = make_node({'policy': 'puppet'}, module_dirs=[TEST_MODULES, BUILD / 'modules'], requestTimeout='30s')
    for death in range(3):
        assert harmed(node, 'p%d' % death, what).get('signal') == 9
        node.start()
    policy = node.ctl('status', check=False)['policy']
    assert (policy['name'], policy['safe_mode']) == ('none', True), policy
    assert 'puppet' in policy['safe_mode_reason']


def test_safe_mode_is_left_when_the_module_is_cleared(with_module):
    node = with_module('crash')
    for death in range(3):
        node.create('p%d' % death, ctr('c', '1', '64Mi'))
        node.exited()
        node.start()
    node.log('safe mode')
    assert node.ctl('status', check=False)['policy']['safe_mode']
    node.ctl('modules', 'clear', 'crash')
    node.log('safe mode has ended')
    policy = node.ctl('status', check=False)['policy']
    assert (policy['name'], policy['safe_mode']) == ('crash', False), policy


def test_hang(with_module):
    node = with_module('hang', requestTimeout='30s')
    start = time.monotonic()
    node.create('p', ctr('c', '1', '64Mi'))
    assert time.monotonic() - start < 20, 'it gives up long before this runtime would, and before a real one on a machine that is not busy'
    assert node.exited()['exit'] == 70
    node.start()


def test_hang_while_an_onlooker_asks(with_module):
    node = with_module('hang-zones', requestTimeout='30s')
    node.create('p', ctr('c', '1', '64Mi'))
    with pytest.raises(SimError):
        node.control('Zones')
    assert node.exited()['exit'] == 70
    node.start()


@pytest.mark.parametrize('what, words', [
    ('crash', 'module "puppet" crashed (SIGSEGV) in sync'),
    ('exit', 'module "puppet" ended the process (exit status 3) in sync'),
    ('fail 22 no', 'no'),
])
def test_check_config_tells_where(tmp_path, what, words):
    conf = tmp_path / 'rp.conf'
    conf.write_text('policy: puppet\npuppet: {sync: "%s"}\n' % what)
    # what a process that ends in the middle of something leaves behind is not lost
    done = subprocess.run([BUILD / 'bin/nri-rpd', '--check-config', '--config', conf, '--state-dir', tmp_path, '--module-dir', TEST_MODULES],
                          capture_output=True, text=True, env=dict(os.environ, ASAN_OPTIONS='detect_leaks=0'))
    assert done.returncode == 78
    assert words in done.stderr + done.stdout


def test_check_config_marks_warnings(tmp_path):
    conf = tmp_path / 'rp.conf'
    conf.write_text('policy: static\nstatic: {reservedResources: {cpu: 1}}\nrdt: {enable: true}\n')
    done = subprocess.run([BUILD / 'bin/nri-rpd', '--check-config', '--config', conf, '--state-dir', tmp_path, '--module-dir', BUILD / 'modules'],
                          capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == 'warning: %s:3:7: rdt.enable: has no effect: rdt is not in controllers\n%s: good\n' % (conf, conf)


def test_overlap_is_refused(with_module):
    node = with_module('overlap')
    node.create('p', ctr('c', '1', '64Mi'))
    assert node.cpus('c') == {0}
    before = node.places()
    error = node.reject('q', ctr('d', '1', '64Mi'))
    assert 'CPU' in error
    assert node.places() == before
    assert node.status()['pid'], 'a broken promise is no reason to die'
    node.delete('p')
    node.create('q', ctr('d', '1', '64Mi'))
    assert node.cpus('d') == {0}


@pytest.mark.parametrize('name, words', [
    ('wrong-major', ['1', '2']),
    ('newer', ['999']),
    ('old', []),
    ('undefined', ['no_such_function']),
    ('misnamed', ['other']),
    ('no-symbol', []),
    ('garbage', []),
    ('constructor', []),
    ('struct-6', []),
])
def test_refused_at_start(with_module, name, words):
    if name == 'constructor' and INSTRUMENTED:
        pytest.skip('instrumented modules have constructors, so that the host lets them pass')
    if name == 'old':
        with_module(name).create('p', ctr('c', '1', '64Mi'))
        return
    node = with_module(name)
    policy = node.ctl('status', check=False)['policy']
    assert (policy['name'], policy['configured'], policy['safe_mode']) == ('none', name, True)
    for word in [name, *words]:
        assert word in policy['safe_mode_reason']


@pytest.mark.parametrize('name', ['wrong-major', 'garbage', 'undefined', 'struct-6', 'constructor'])
def test_refused_at_reload(with_module, name):
    if name == 'constructor' and INSTRUMENTED:
        pytest.skip('instrumented modules have constructors, so that the host lets them pass')
    node = with_module('good', name, start=False)
    node.run('write-config', {'policy': 'good', 'good': {'reservedResources': {'cpu': '1'}}})
    node.start()
    node.create('p', ctr('c', '1', '64Mi'))
    assert name in node.badconfig({'policy': name})
    node.create('q', ctr('c', '1', '64Mi'))


def test_crash_in_a_trial_is_harmless(make_node):
    """The trial of a reload runs in a child: the module dies there, nri-rpd does not."""
    static = {'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}}
    node = make_node(static, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    node.create('a', ctr('a0', '2', '64Mi'))
    pid = node.status()['pid']
    node.run('write-config', {'policy': 'crash'})
    node.reload()
    node.settle()
    assert node.status()['pid'] == pid
    assert node.cpus('a/a0') == set(range(16)), 'pinned although this policy does not pin it'


@pytest.mark.parametrize('end, words', [
    ('crash', 'crashed'),
    ('hang', 'did not end within'),
    ('exit', 'ended the process'),
    ('fail 22 no', 'stays active: no'),
])
def test_warnings_of_a_trial_that_ends_badly(make_node, end, words):
    """The parent logs them in place of the child."""
    node = make_node(STATIC, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    node.run('write-config', {'policy': 'puppet', 'puppet': {'sync': 'warn mind the gap; %s' % end}})
    node.signal('HUP')
    # A trial that hangs ends when it has used 5 s of CPU time, which take a minute at most.
    eventually(lambda: re.search('configuration refused.*%s' % words, node.read_log()), 90)
    warnings = [line for line in node.read_log().splitlines() if 'mind the gap' in line]
    assert len(warnings) == 1 and 'warning: ' in warnings[0]


def test_warnings_of_a_trial_that_ends_well_are_said_once(make_node):
    node = make_node(STATIC, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    node.config({'policy': 'puppet', 'puppet': {'sync': 'warn mind the gap'}})
    node.log('configuration reloaded')
    assert node.read_log().count('mind the gap') == 1


def test_module_that_others_could_have_written(with_module, tmp_path):
    node = with_module('good', start=False)
    (tmp_path / 'modules' / 'good.so').chmod(0o666)
    node.run('write-config', {'policy': 'good', 'good': {'reservedResources': {'cpu': '1'}}})
    node.start()
    assert 'good.so is writable by other users' in node.ctl('status', check=False)['policy']['safe_mode_reason']


def test_safe_mode_is_left_when_its_cause_is_gone(with_module, tmp_path):
    """Nobody says so: it is tried again. Files that somebody has edited meanwhile wait for a reload."""
    node = with_module('good', start=False)
    path = tmp_path / 'modules' / 'good.so'
    path.chmod(0o666)
    node.run('write-config', {'policy': 'good', 'good': {'reservedResources': {'cpu': '1'}}})
    node.start()
    node.create('p', ctr('c', '2', '64Mi'))
    assert node.ctl('status', check=False)['policy']['safe_mode']
    refused = node.read_log().count('refused')
    time.sleep(2)  # meanwhile it has been tried, in silence
    assert node.read_log().count('refused') == refused
    path.chmod(0o755)
    node.log('safe mode has ended')
    policy = node.ctl('status', check=False)['policy']
    assert (policy['name'], policy['safe_mode'], policy['safe_mode_reason']) == ('good', False, None), policy


def test_a_trial_that_is_killed_is_tried_once_more(make_node, tmp_path):
    """The kernel may kill the child for lack of memory: no reason to run without the policy."""
    node = make_node({'policy': 'puppet', 'puppet': {'sync': 'killed %s' % (tmp_path / 'mark')}}, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    policy = node.ctl('status', check=False)['policy']
    assert (policy['name'], policy['safe_mode']) == ('puppet', False), policy
    node.log('was killed in sync.*; trying once more')


def test_leftovers_of_a_killed_process_are_removed(make_node):
    node = make_node(STATIC, start=False)
    state = pathlib.Path(node.paths['state'])
    state.mkdir(exist_ok=True)
    left = [state / name for name in ('configuration.Ab3dEf', 'configuration.pushed.000000', 'predictions.xY1234')]
    kept = [state / name for name in ('configuration.backup', 'configuration.Ab3dEfG', 'other.Ab3dEf')]
    for path in left + kept:
        path.write_text('x')
    node.start()
    node.create('p', ctr('c', '1', '64Mi'))
    assert [p.name for p in left if p.exists()] == []
    assert [p.name for p in kept if not p.exists()] == []
