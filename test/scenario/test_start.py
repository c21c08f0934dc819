# SPDX-License-Identifier: Apache-2.0
"""Starts that find something wrong: with the files, with modules, with directories. Containers run meanwhile, so there is always a daemon."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from operator_tools import DAEMON, DEGRADED, OK, ctl, ctl_json, free_port, http_get
from simnode import BUILD, STATIC, TEST_MODULES, ctr, eventually

EXIT_CONFIG = 78
CONTROLLED = {**STATIC, 'controllers': {'hand': 'required'}}


@pytest.fixture
def modules(tmp_path):
    """A folder of modules that a test may damage."""
    folder = tmp_path / 'modules'
    folder.mkdir()
    for module in ('static', 'none', 'balloons', 'template'):
        shutil.copy(BUILD / 'modules' / ('%s.so' % module), folder)
    shutil.copy(TEST_MODULES / 'hand.so', folder)
    return folder


@pytest.fixture
def busy(make_node, modules):
    """One container owns CPUs 2-3 by the static policy."""
    def make(config=STATIC):
        node = make_node(config, module_dirs=[modules])
        node.create('g', ctr('own', '2', '200Mi'))
        assert node.cpus('g/own') == {2, 3}
        return node
    return make


def path_of(node, name='config'):
    return pathlib.Path(node.paths[name])


def reasons(node):
    return ctl_json(node, 'status', code=DEGRADED)['reasons']


def owns_still(node):
    """Who owned CPUs has them, and a newcomer does not get them."""
    assert node.cpus('g/own') == {2, 3}
    node.create('h', ctr('new', '2', '200Mi'))
    assert not node.cpus('h/new') & {2, 3} and len(node.cpus('h/new')) == 2


# ---- the files ----

def no_yaml(conf):
    conf.write_text('policy: [\n')
    return 'rp.conf:2:1: '


def wrong_value(conf):
    conf.write_text('policy: static\nmetrics: {listen: ""}\nstatic: {reservedResources: {cpu: lots}}\n')
    return 'rp.conf:3:30: static.reservedResources.cpu: '


def what_the_policy_refuses(conf):
    conf.write_text('policy: static\nmetrics: {listen: ""}\nstatic: {reservedResources: {cpu: "cpuset:9000"}}\n')
    return '9000'


def drop_in(conf):
    folder = pathlib.Path(str(conf) + '.d')
    folder.mkdir()
    (folder / '50-own.conf').write_text('policcy: static\n')
    return '50-own.conf:1:1: policcy: unknown key'


def dangling_drop_in(conf):
    folder = pathlib.Path(str(conf) + '.d')
    folder.mkdir()
    (folder / '50-own.conf').symlink_to('nowhere')
    return '50-own.conf: cannot be opened'


def unreadable(conf):
    conf.unlink()
    conf.mkdir()
    return 'rp.conf: cannot be read: Is a directory'


def gone(conf):
    conf.unlink()
    return 'rp.conf: cannot be opened: No such file'


@pytest.mark.parametrize('damage', [no_yaml, wrong_value, what_the_policy_refuses, drop_in, dangling_drop_in, unreadable, gone],
                         ids=lambda f: f.__name__)
def test_files_that_cannot_be_used(busy, damage):
    node = busy()
    words = damage(path_of(node))
    node.restart()
    owns_still(node)
    node.log('is invalid: ')
    node.log('running with the last working configuration')
    said = reasons(node)
    assert words in said[0] and 'is invalid' in said[0], said
    doc = ctl_json(node, 'status', code=DEGRADED)
    assert doc['config']['ok'] is False and doc['config']['kept'], doc['config']
    assert any(words in problem for problem in doc['config']['problems'])
    shown = ctl(node, 'status')
    assert shown.code == DEGRADED and words in shown.out
    found = ctl(node, 'doctor')
    assert found.code == DEGRADED and words in found.out
    # Once more: what was kept is kept.
    node.restart()
    assert words in reasons(node)[0]
    # Good files end it.
    conf = path_of(node)
    shutil.rmtree(str(conf) + '.d', ignore_errors=True)
    if conf.is_dir():
        conf.rmdir()
    node.config(STATIC)
    assert ctl(node, 'status').code == OK
    assert node.cpus('g/own') == {2, 3}


def test_every_problem_is_told_the_first_one_first(busy):
    node = busy()
    path_of(node).write_text('policy: static\nmetrics: {listen: ""}\nonPolicyError: maybe\nstatic: {reservedResources: {cpu: lots}}\n')
    node.restart()
    said = reasons(node)
    assert 'rp.conf:3:1: onPolicyError' in said[0], said
    problems = ctl_json(node, 'status', code=DEGRADED)['config']['problems']
    assert [p.split(': ')[1] for p in problems] == ['onPolicyError', 'static.reservedResources.cpu']
    out = ctl(node, 'status').out
    assert out.index('onPolicyError') < out.index('static.reservedResources.cpu')
    log = node.read_log()
    assert 'rp.conf:4:' in log and 'rp.conf:3:' in log


def test_a_refused_reload_that_was_left_on_disk(busy):
    node = busy()
    node.badconfig({**STATIC, 'static': {'reservedResources': {'cpu': 'many'}}})
    node.kill()
    node.start()
    owns_still(node)
    assert 'many' in reasons(node)[0]


def test_another_boot(busy):
    """Placements are those of a boot; the configuration is not."""
    node = busy()
    path_of(node).write_text('policy: [\n')
    node.stop()
    for f in path_of(node, 'state').iterdir():
        if f.name != 'configuration':
            f.unlink()
    node.start()
    owns_still(node)


def test_a_state_directory_that_is_lost(busy):
    """A disk that is not mounted any more hides what was kept there; the run-time directory has it, too, while containers run."""
    node = busy()
    path_of(node).write_text('policy: [\n')
    node.stop()
    shutil.rmtree(path_of(node, 'state'))
    node.start()
    owns_still(node)
    # Of both the later one is taken, and the next start finds both again.
    path_of(node).write_text(json.dumps({**STATIC, 'log': {'level': 'debug'}}))
    assert ctl(node, 'reload').code == OK
    run = path_of(node, 'control').parent / 'configuration'
    eventually(lambda: b'debug' in run.read_bytes() and b'debug' in (path_of(node, 'state') / 'configuration').read_bytes())
    node.stop()
    run.unlink()
    node.start()
    eventually(run.exists)


def test_what_was_kept_is_damaged(busy):
    node = busy()
    node.stop()
    kept = path_of(node, 'state') / 'configuration'
    text = bytearray(kept.read_bytes())
    text[-1] ^= 1
    kept.write_bytes(text)
    node.start()
    node.log('the last working configuration cannot be read: .*/configuration: it is damaged')
    assert ctl(node, 'status').code == OK
    # It is written anew, so that the next start has it.
    node.stop()
    path_of(node).write_text('policy: [\n')
    node.start()
    owns_still(node)


def test_a_node_that_never_had_one(make_node):
    node = make_node(start=False)
    path_of(node).write_text('policy: [\nno: [\n')
    node.start(wait=False)
    assert node.exited()['exit'] == EXIT_CONFIG
    node.log(r'rp\.conf:[0-9]+:[0-9]+: not valid YAML')


# ---- modules ----

def wrong_major(module):
    shutil.copy(TEST_MODULES / 'wrong-major.so', module)


def no_module(module):
    module.unlink()


def no_object(module):
    module.write_bytes(b'\x7fELF' + bytes(200))


def with_constructor(module):
    shutil.copy(TEST_MODULES / 'constructor.so', module)


def anybodys(module):
    module.chmod(0o666)


DAMAGES = pytest.mark.parametrize('damage', [wrong_major, no_module, no_object, with_constructor, anybodys], ids=lambda f: f.__name__)


@DAMAGES
def test_the_module_of_the_policy(busy, modules, damage):
    """As one that crashes: the daemon is there, in safe mode, and says why."""
    node = busy()
    node.stop()
    damage(modules / 'static.so')
    node.start()
    node.log('safe mode: .*static')
    assert node.cpus('g/own') == {2, 3}
    said = reasons(node)
    assert 'safe mode' in said[0] and 'static' in said[0], said
    status = ctl_json(node, 'status', code=DEGRADED)['policy']
    assert (status['name'], status['configured'], status['safe_mode']) == ('none', 'static', True)
    # The package that is whole again ends it.
    shutil.copy(BUILD / 'modules/static.so', modules / 'static.so')
    (modules / 'static.so').chmod(0o644)
    node.reload('control')
    assert ctl(node, 'status').code == OK
    owns_still(node)


@DAMAGES
def test_a_policy_that_is_new_and_cannot_be_used(busy, modules, damage):
    """The one that worked before goes on."""
    node = busy()
    node.stop()
    damage(modules / 'template.so')
    node.run('write-config', {'policy': 'template', 'template': {'reservedResources': {'cpu': 'cpuset:0'}}})
    node.start()
    owns_still(node)
    status = ctl_json(node, 'status', code=DEGRADED)['policy']
    assert (status['name'], status['configured'], status['safe_mode']) == ('static', 'template', True)
    assert 'template' in reasons(node)[0]


@DAMAGES
def test_a_required_controller(busy, modules, damage):
    """What it does is not done; the policy goes on placing."""
    node = busy(CONTROLLED)
    node.stop()
    damage(modules / 'hand.so')
    node.start()
    owns_still(node)
    said = reasons(node)
    assert 'hand' in said[0], said
    assert ctl_json(node, 'status', code=DEGRADED)['policy']['name'] == 'static'


def test_no_module_at_all(busy, modules):
    node = busy()
    node.stop()
    for module in modules.iterdir():
        module.unlink()
    node.start()
    node.log('even the policy none cannot be used')
    assert node.cpus('g/own') == {2, 3}
    node.create('q', ctr('c', '1', '64Mi'))
    for command in (['doctor'], ['zones'], ['containers'], ['pods'], ['modules'], ['explain', 'q/c'], ['config', 'show']):
        assert ctl(node, *command).code in (OK, DEGRADED), command
    assert ctl_json(node, 'status', code=DEGRADED)['policy']['name'] == 'none'
    node.delete('q')
    shutil.copy(BUILD / 'modules/static.so', modules / 'static.so')
    node.reload('control')
    assert ctl(node, 'status').code == OK
    owns_still(node)


# ---- what a restart would meet ----

def verdicts(node, check, code=DEGRADED):
    return {f['verdict']: f['text'] for f in ctl_json(node, 'doctor', code=code) if f['check'] == check}


@DAMAGES
def test_modules_are_known_before_the_restart(busy, modules, damage):
    """While the old build runs, the doctor and config check look at the file."""
    node = busy()
    assert 'error' not in verdicts(node, 'modules', OK)
    kept = modules / 'kept'
    (modules / 'static.so').rename(kept)
    shutil.copy(kept, modules / 'static.so')
    damage(modules / 'static.so')
    assert 'a restart could not use the active module static: ' in verdicts(node, 'modules')['error']
    checked = ctl(node, 'config', 'check')
    assert 'a restart could not use the active module static: ' in checked.out + checked.err
    kept.rename(modules / 'static.so')
    assert 'error' not in verdicts(node, 'modules', OK)


def test_files_are_known_before_the_restart(busy):
    node = busy()
    path_of(node).write_text('policy: [\n')
    assert '%s is now invalid, so a restart' % path_of(node) in verdicts(node, 'configuration')['error']
    assert ctl(node, 'status').code == OK, 'nothing has happened yet'
    node.run('write-config', {**STATIC, 'rebalanceMoves': 3})
    assert 'has changed and is not active' in verdicts(node, 'configuration', OK)['note']
    node.run('write-config', STATIC)
    assert list(verdicts(node, 'configuration', OK)) == ['ok']


# ---- how it is ----

def test_a_policy_that_refuses_everything(busy):
    """One refusal is an answer; when nobody is placed any more it is a condition."""
    node = busy()
    for n in range(4):
        node.reject('big%d' % n, ctr('c', '64', '64Mi'))
    node.reject('big0', ctr('c', '64', '64Mi'))
    assert ctl(node, 'status').code == OK, 'of different containers'
    node.reject('big4', ctr('c', '64', '64Mi'))
    said = reasons(node)
    assert 'the last 5 containers were all refused' in said[0] and 'big4' in said[0], said
    node.create('small', ctr('c', '1', '64Mi'))
    assert ctl(node, 'status').code == OK


def test_conditions_as_figures(make_node, modules):
    address = '127.0.0.1:%d' % free_port()
    node = make_node({**STATIC, 'metrics': {'listen': address}}, module_dirs=[modules])
    assert b'nri_rp_condition{condition="config-refused"} 0\n' in http_get(address, '/metrics').body
    node.badconfig({'policy': 'nowhere'})
    figures = http_get(address, '/metrics').body
    assert b'nri_rp_condition{condition="config-refused"} 1\n' in figures and b'nri_rp_degraded 1\n' in figures
    assert b'the last reload was refused' in http_get(address, '/readyz').body


def test_a_control_socket_that_cannot_be_had(tmp_path):
    """Only a reload can tell of it: by the old socket, which stays."""
    first, second = tmp_path / 'run/first.sock', tmp_path / 'a-file/second.sock'
    conf = tmp_path / 'rp.conf'
    text = 'policy: none\nmetrics: {listen: ""}\nruntime: {socket: %s}\ncontrol: {socket: %s}\n'
    conf.write_text(text % (tmp_path / 'nri.sock', first))
    (tmp_path / 'a-file').write_text('')
    command = [DAEMON, '--config', conf, '--state-dir', tmp_path / 'state', '--module-dir', BUILD / 'modules']
    if os.geteuid() == 0:
        # without the option --control-socket it keeps its configuration where a daemon of this machine looks for its own
        command = ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /run && exec "$@"', 'sh'] + command
    with open(tmp_path / 'log', 'w') as log, subprocess.Popen(command, stderr=log) as daemon:
        try:
            eventually(first.exists)
            conf.write_text(text % (tmp_path / 'nri.sock', second))
            assert ctl(first, 'reload').code == OK
            doc = json.loads(ctl(first, 'status', '--json').out)
            assert 'control-unserved' in [c['id'] for c in doc['conditions']]
            assert any('the control socket is not as configured' in r and 'a-file' in r for r in doc['reasons'])
        finally:
            daemon.terminate()


def test_forced_debugging_outlives_a_reload(busy):
    node = busy()
    node.signal('USR1')
    node.log('full debugging is on')
    node.reload('control')
    node.create('p', ctr('c', '1', '64Mi'))
    assert len([line for line in node.read_log().splitlines() if 'debug: nri: CreateContainer' in line]) == 1
    node.signal('USR1')
    node.log('full debugging is off')
    node.delete('p')
    assert 'debug: nri: RemovePodSandbox' not in node.read_log()


# ---- directories ----

def test_a_state_directory_that_cannot_be_used(busy):
    node = busy()
    node.stop()
    state = path_of(node, 'state')
    shutil.rmtree(state)
    state.write_text('a file\n')
    node.start()
    owns_still(node)
    said = reasons(node)
    assert 'the state directory' in said[0], said
    node.reload('control')
    state.unlink()


def test_all_of_it_at_once(busy, modules):
    node = busy()
    node.stop()
    state = path_of(node, 'state')
    shutil.rmtree(state)
    state.write_text('a file\n')
    (modules / 'static.so').unlink()
    node.start()
    said = reasons(node)
    assert 'safe mode' in said[0] and any('the state directory' in r for r in said), said
    assert node.cpus('g/own') == {2, 3}
    state.unlink()
