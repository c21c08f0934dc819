# SPDX-License-Identifier: Apache-2.0
"""nri-rpd's command line and what systemd and operators send it: options, configurations, locks, signals in all states, sd_notify."""
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from operator_tools import CONFIG, DAEMON, FAILED, OK, USAGE, Bare, ctl, ctl_json, run_as_nobody
from simnode import ANSWER_S, BUILD, STATIC, TOP, ctr, eventually

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='takes root')
QUIET = 'metrics: {listen: ""}\n'
MACHINE = None
PROGRAMS = ['nri-rpd', 'nri-rpctl', 'nri-rp-sim', 'nri-rp-modcheck', 'nri-rp-agent', 'nri-rp-bridge']


def run(*words, program='nri-rpd', **how):
    return subprocess.run([str(BUILD / 'bin' / program), *map(str, words)], capture_output=True, text=True, timeout=ANSWER_S, **how)


def check(tmp_path, text, *options, name='rp.conf'):
    path = tmp_path / name
    path.write_text(text)
    return run('--check-config', '--config', path, '--state-dir', tmp_path / 'state', '--module-dir', BUILD / 'modules', '--host-root', MACHINE, *options)


@pytest.fixture(scope='module', autouse=True)
def machine(tmp_path_factory):
    """One for all, as nobody changes it."""
    global MACHINE
    MACHINE = tmp_path_factory.mktemp('machine')
    done = run('machine', 'n4c16', MACHINE, program='nri-rp-sim')
    assert done.returncode == 0, done.stderr


# ---- help and version ----

@pytest.mark.parametrize('program', PROGRAMS)
def test_help_and_version(program):
    """To standard output, with success, and nothing beside it."""
    helped, version = run('--help', program=program), run('--version', program=program)
    assert helped.returncode == OK and helped.stderr == '' and program in helped.stdout and helped.stdout.lower().startswith('usage')
    assert version.returncode == OK and version.stderr == ''
    assert re.match(r'%s \d+\.\d+\.\d+' % program, version.stdout)


@pytest.mark.parametrize('program', PROGRAMS)
def test_unknown_options(program):
    done = run('--no-such-option', program=program)
    assert done.returncode == USAGE and done.stdout == ''
    assert '--no-such-option' in done.stderr and '--help' in done.stderr


def test_all_programs_are_of_one_version():
    assert len({run('--version', program=p).stdout.split()[1] for p in PROGRAMS}) == 1


def options_of_help():
    return set(re.findall(r'^  --([a-z-]+)', run('--help').stdout, re.M))


def test_manual_and_help_agree():
    text = (TOP / 'man' / 'nri-rpd.8').read_text()
    synopsis, rest = text[text.index('.Sh SYNOPSIS'):text.index('.Sh DESCRIPTION')], text[text.index('.Sh DESCRIPTION'):]
    assert set(re.findall(r'^\.Op Fl -([a-z-]+)', synopsis, re.M)) == options_of_help() == set(re.findall(r'^\.It Fl -([a-z-]+)', rest, re.M))
    section = text[text.index('.Sh EXIT STATUS'):]
    said = run('--help').stdout.split('Exit status:')[1]
    assert set(re.findall(r'^\.It (\d+)$', section, re.M)) == set(re.findall(r'\b(\d+) [a-z]', said))


@pytest.mark.parametrize('words, said', [
    (['--config'], '--config'), (['--module-dir'], '--module-dir'), (['--log-level', 'loud'], 'error, warning, notice, info or debug'),
    (['--log-level='], 'error, warning, notice, info or debug'), (['extra'], 'unexpected argument "extra"'), (['--check-config=yes'], '--check-config'),
    (['--', '--help'], 'unexpected argument "--help"'), (['-c', 'x'], 'c'), (['--module-dir', '/'] * 65, '--module-dir'),
], ids=lambda v: ' '.join(v)[:30] if isinstance(v, list) else '')
def test_wrong_usage(words, said):
    done = run(*words)
    assert done.returncode == USAGE and done.stdout == ''
    assert said in done.stderr and '--help' in done.stderr or 'log-level' in done.stderr


# ---- checking configurations ----

def test_a_good_one(tmp_path):
    done = check(tmp_path, 'policy: static\nstatic: {reservedResources: {cpu: "cpuset:0"}}\n')
    assert (done.returncode, done.stderr) == (OK, '')
    assert done.stdout == '%s: good\n' % (tmp_path / 'rp.conf')


@pytest.mark.parametrize('text, place, said', [
    ('policy: [', '2:1', ['YAML']),
    ('polcy: none\n', '1:1', ['polcy', 'did you mean policy']),
    ('policy: none\npolicy: static\n', '2:1', ['policy', 'twice']),
    ('policy: sttaic\n', '1:1', ['policy', 'sttaic', 'did you mean "static"']),
    ('policy: static\nstatic:\n  reservedResources: {cpu: many}\n', '3:23', ['static.reservedResources.cpu', 'many']),
    ('policy: static\nstatic: {reservedResources: {cpu: "cpuset:99"}}\n', '2:30', ['static.reservedResources.cpu', '99']),
    ('policy: static\nstatic:\n  reservedResources: {cpu: 1}\n  pinMemroy: true\n', '4:3', ['static.pinMemroy', 'pinMemory']),
    ('policy: balloons\nballoons:\n  reservedResources: {cpu: 1}\n  balloonTypes:\n  - name: a\n    maxCPUs: many\n', '6:5',
     ['balloons.balloonTypes[0].maxCPUs', 'integer', '"many"']),
    ('log: {level: loud}\n', '1:7', ['log.level', 'loud', 'error, warning, notice, info']),
    ('runtime: {index: 100}\n', '1:11', ['runtime.index', '99']),
    ('metrics: {listen: here}\n', '1:11', ['metrics.listen', '127.0.0.1:8891']),
    ('rebalanceInterval: 5\n', '1:1', ['rebalanceInterval', '5']),
    ('policy: none\n\tx: 1\n', '2:1', ['tab', 'spaces']),
    ('- policy\n', '1:1', ['expected keys with values', 'a list']),
    ('policy: !!python/object:x none\n', '1:', ['tag']),
    ('a: &a [*a]\n', '1:', []),
    ('x' * 2000 + '\n', '1:1', []),
    ('log: {level: info}\npolicy static\n', '2:1', ['write a colon and a blank', '"policy: static"']),
    ('policy:static\nlog: {level: info}\n', '1:1', ['"policy: static"']),
    ('policy:static\n', '1:1', ['"policy: static"']),
    ('policy: Topology_Aware\n', '1:1', ['did you mean topology-aware?']),
    ('policy: static\nTopology_Aware: {a: 1}\n', '2:1', ['unknown section', 'did you mean topology-aware?', 'installed modules: balloons, batch']),
    ('policy: Topology_Aware\nTopology_Aware: {a: 1}\n', '2:1', ['did you mean topology-aware?']),
    ('policy: topology-aware\n', '1:1', ['reservedResources: missing required key', 'as in {cpu: 750m}']),
    ('foo: {a: 1}\n', '1:1', ['module foo is not installed; installed modules: balloons']),
    ('foo: 1\n', '1:1', ['foo: unknown key']),
    ('policy: static\nstatic: {reservedResources: {cpu: cpuset:0,64}}\n', '2:44', ['quote a CPU list within braces: cpu: "cpuset:0,64"']),
    ('policy: static\nstatic: {reservedResources: {cpu: 750M}}\n', '2:30', ['"750M"', 'a lower-case m: 750m']),
    ('policy: static\n', '1:1', ['without reserved CPUs', 'reservedResources: {cpu: 1}']),
    ('policy: balloons\nballoons: {balloonTypes: [{name: a, minCPUs: -5}]}\n', '2:37', ['minCPUs is negative']),
    ('policy: balloons\nballoons: {balloonTypes: [{name: a, maxCPUs: many}]}\n', '2:37', ['expected an integer, found "many"']),
    ('controllers: [blkio]\nblkio: {classes: {a: [{devices: [/dev/x], weight: 5000}]}}\n', '2:43', ['from 10 to 1000']),
    ('image: {name: x}\nconfig: {reservedResources: {cpu: 1}}\n', '2:1', ['values of a Helm chart', 'below `config:`']),
    ('policy: "\xff"\n'.encode('latin-1').decode('latin-1'), '1:', ['policy']),
], ids=lambda v: repr(v)[:30] if isinstance(v, str) else '')
def test_wrong_ones(tmp_path, text, place, said):
    """Place, key and remedy of each, and status 78."""
    done = check(tmp_path, text)
    assert done.returncode == CONFIG
    output = done.stdout + done.stderr
    line = next((l for l in output.splitlines() if l.startswith('%s:%s' % (tmp_path / 'rp.conf', place))), None)
    assert line, output
    assert output.count(line) == 1 and ' error: ' not in output, 'told once, as lines of a report'
    for word in said:
        assert word.lower() in line.lower(), line


@pytest.mark.parametrize('text, said', [
    ('policy: balloons\nballoons: {availableResources: {cpu: "cpuset:0-99"}}\n', '2:33: balloons.availableResources.cpu: CPUs 16-99 do not exist on this node, which has 0-15'),
    ('policy: topology-aware\ntopology-aware: {reservedResources: {cpu: 16}}\n', '2:38: topology-aware.reservedResources.cpu: all 16 CPUs are reserved'),
    ('policy: none\nruntime: {name: a/b}\n', '2:11: runtime.name: runtimes with NRI 0.12 or later refuse "a/b"'),
    ('policy: balloons\nballoons: {cpuClasses: [{name: b}], balloonTypes: [{name: a, cpuClass: nosuch}]}\n', '2:62: a: unknown CPU class "nosuch"'),
])
def test_good_but_hardly_meant(tmp_path, text, said):
    done = check(tmp_path, text)
    lines = (done.stdout + done.stderr).splitlines()
    assert done.returncode == OK and any('warning: ' in line and said in line for line in lines), lines


def test_a_file_that_anybody_writes(tmp_path):
    path = tmp_path / 'rp.conf'
    path.touch()
    path.chmod(0o666)
    done = check(tmp_path, 'policy: none\n')
    assert done.returncode == OK and 'any user may write it and so control this root daemon: chmod go-w' in done.stdout + done.stderr
    path.chmod(0o640)
    done = check(tmp_path, 'policy: none\n')
    assert done.returncode == OK and 'chmod' not in done.stdout + done.stderr


def test_an_optional_controller_is_a_warning(tmp_path):
    """Names in a list are relaxed: one that is not there is switched off, and it is said what was meant."""
    done = check(tmp_path, 'controllers: [rtd]\n')
    assert done.returncode == OK
    assert 'rtd' in done.stdout + done.stderr and 'did you mean "rdt"' in done.stdout + done.stderr
    done = check(tmp_path, 'controllers: {rtd: required}\n')
    assert done.returncode == CONFIG and 'did you mean "rdt"' in done.stdout + done.stderr


def test_every_problem_is_told_at_once(tmp_path):
    done = check(tmp_path, 'policy: static\nlog: {level: loud}\nruntime: {index: 100}\nrebalanceMoves: many\n')
    lines = (done.stdout + done.stderr).splitlines()
    assert done.returncode == CONFIG
    for place in ('2:7', '3:11', '4:1'):
        assert sum(l.startswith('%s:%s: ' % (tmp_path / 'rp.conf', place)) for l in lines) == 1, lines


@pytest.mark.parametrize('problem', ['absent', 'folder', 'too large', 'unreadable', 'a loop'])
def test_files_that_cannot_be_read(tmp_path, problem):
    path = tmp_path / 'rp.conf'
    words = '--check-config', '--config', path, '--module-dir', BUILD / 'modules'
    if problem == 'folder':
        path.mkdir()
    elif problem == 'too large':
        path.write_text('# ' + 'x' * (1 << 20) + '\npolicy: none\n')
    elif problem == 'a loop':
        path.symlink_to(path)
    elif problem == 'unreadable':
        if os.geteuid():
            pytest.skip('takes root')
        path.write_text('policy: none\n')
        path.chmod(0o600)
        for folder in [tmp_path, *tmp_path.parents]:
            if folder.stat().st_uid == 0 and str(folder).startswith('/tmp/'):
                folder.chmod(folder.stat().st_mode | 0o055)
    done = run_as_nobody(DAEMON, *words) if problem == 'unreadable' else run(*words)
    assert done.returncode == CONFIG and str(path) in done.stdout + done.stderr


def test_checking_leaves_nothing(tmp_path):
    """No lock, no socket, no state, and it does not matter that a daemon runs."""
    with Bare(tmp_path) as daemon:
        daemon.answers()
        before = sorted(tmp_path.rglob('*'))
        done = run('--check-config', '--config', daemon.conf, '--state-dir', tmp_path / 'state', '--module-dir', BUILD / 'modules')
        assert done.returncode == OK, done
        assert sorted(tmp_path.rglob('*')) == before
        assert daemon.stop() == 0


def test_modules_of_other_folders(tmp_path):
    done = run('--check-config', '--config', write(tmp_path, 'policy: static\n'), '--module-dir', tmp_path)
    assert done.returncode == CONFIG and 'static' in done.stdout + done.stderr and str(tmp_path) in done.stdout + done.stderr


def write(tmp_path, text, name='rp.conf'):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


# ---- several files ----

def show(tmp_path, *options):
    done = run('--socket', tmp_path / 'none.sock', 'config', 'show', '--local', '--config', tmp_path / 'rp.conf', '--module-dir', BUILD / 'modules',
               *options, program='nri-rpctl')
    assert done.returncode == OK, done
    return done.stdout


def test_drop_ins_in_byte_order(tmp_path):
    """Upper case before lower, 10 before 9; maps are merged, lists replaced, null takes back; other names are not read."""
    write(tmp_path, 'policy: none\ncontrollers: [cpu, rdt]\nlog: {level: error, debug: [a]}\nonPolicyError: unmanaged\n')
    for name, text in {'10.conf': 'log: {level: warning}\n', '9.conf': 'log: {level: notice}\n', 'a.conf': 'log: {source: true}\n',
                       'B.conf': 'controllers: [blkio]\nlog: {source: false}\n', 'z.conf': 'onPolicyError: ~\n',
                       'z.conf.bak': 'log: {level: debug}\n', 'z.yaml': 'nonsense: [', 'README': 'policy: ['}.items():
        write(tmp_path, text, 'rp.conf.d/' + name)
    text = show(tmp_path, '--origin')
    assert re.search(r'level: "?notice"?  # .*/9\.conf:1', text), text
    assert re.search(r'source: true  # .*/a\.conf:1', text)
    assert re.search(r'controllers: \["?blkio"?\]  # .*/B\.conf:1', text)
    assert re.search(r'debug: \["?a"?\]  # .*/rp\.conf:3', text) and 'onPolicyError' not in text


def test_problems_of_a_drop_in_name_it(tmp_path):
    write(tmp_path, 'policy: none\n')
    write(tmp_path, '\nlog:\n  levle: info\n', 'rp.conf.d/50-log.conf')
    done = run('--check-config', '--config', tmp_path / 'rp.conf', '--module-dir', BUILD / 'modules')
    assert done.returncode == CONFIG and '%s/rp.conf.d/50-log.conf:3:3: log.levle: ' % tmp_path in done.stdout + done.stderr


def test_documents_of_one_file_count_as_files(tmp_path):
    write(tmp_path, 'log: {level: error, source: true}\n---\nlog: {level: notice}\n')
    text = show(tmp_path)
    assert re.search(r'level: "?notice"?', text) and 'source: true' in text


def test_a_custom_resource_and_what_stands_beside_it(tmp_path):
    """The kind selects the policy; parts of its spec that are everybody's go to the top, under what the top says itself."""
    write(tmp_path, 'apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nmetadata: {name: default}\nspec:\n'
                    '  reservedResources: {cpu: "1"}\n  log: {debug: [policy]}\n  instrumentation: {httpEndpoint: ":9999"}\n  balloonTypes: [{name: a}]\n')
    write(tmp_path, 'log: {level: error}\n', 'rp.conf.d/1.conf')
    text = show(tmp_path)
    assert re.search(r'^policy: "?balloons"?$', text, re.M) and re.search(r'^balloons:\n  reservedResources:', text, re.M)
    assert re.search(r'^log:\n(  .*\n)*  debug: \["?policy"?\]', text, re.M) and 'httpEndpoint: ":9999"' in text
    assert 'metadata' not in text and 'spec' not in text
    write(tmp_path, 'apiVersion: config.nri/v1alpha1\nkind: NoSuchPolicy\nspec: {}\n')
    done = run('--check-config', '--config', tmp_path / 'rp.conf', '--module-dir', BUILD / 'modules')
    assert done.returncode == CONFIG and 'rp.conf:2:1: kind' in done.stdout + done.stderr and 'NoSuchPolicy' in done.stdout + done.stderr


# ---- the state ----

def test_a_second_instance(tmp_path):
    """It is refused by the lock, names its holder, and leaves the first alone."""
    with Bare(tmp_path) as first:
        first.answers()
        with Bare(tmp_path, name='second.conf', run='run2') as second:
            assert second.ended() == FAILED
            assert str(first.process.pid) in second.text() and str(tmp_path / 'state') in second.text()
        assert not second.control.exists()
        assert first.answers()['nri-rpd']['pid'] == first.process.pid
        with Bare(tmp_path, name='third.conf', state='other', run='run3') as third:
            assert third.answers()['nri-rpd']['pid'] == third.process.pid, 'another state is nobody else’s'
            assert third.stop() == 0
        assert first.stop() == 0


def test_the_control_socket_of_another(tmp_path):
    """A daemon with a state of its own does not take the socket of one that lives, nor its folder."""
    with Bare(tmp_path) as first:
        first.answers()
        with Bare(tmp_path, '--control-socket', first.control, name='second.conf', state='other') as second:
            assert second.ended() == FAILED
            assert 'is nri-rpd running already?' in second.text() and str(first.control.parent) in second.text()
        assert first.control.exists() and first.answers()['nri-rpd']['pid'] == first.process.pid
        assert first.stop() == 0
    assert not first.control.exists()


def test_a_state_folder_that_is_a_file(tmp_path):
    """Containers are placed without it, and what is there stays."""
    (tmp_path / 'state').write_text('precious')
    with Bare(tmp_path) as daemon:
        reasons = daemon.answers('status')['reasons']
        assert any('the state directory cannot be used' in r and str(tmp_path / 'state') in r for r in reasons), reasons
        assert daemon.stop() == 0
    assert (tmp_path / 'state').read_text() == 'precious'


def test_reset_cache(make_node):
    """Placements are forgotten; the containers are placed by what the runtime says."""
    node = make_node(STATIC)
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '2', '64Mi'))
    node.delete('a')
    assert node.cpus('b/b0') == {4, 5}
    node.restart()
    assert ctl_json(node, 'status')['store']['state'] == 'restored' and node.cpus('b/b0') == {4, 5}
    assert '--reset-cache' in run('--help').stdout


def test_reset_cache_of_a_bare_one(tmp_path):
    with Bare(tmp_path) as daemon:
        daemon.answers()
        assert daemon.stop() == 0
    with Bare(tmp_path, '--reset-cache') as daemon:
        assert daemon.answers('status')['store']['state'] != 'restored'
        assert daemon.stop() == 0


# ---- logging ----

def test_the_option_goes_over_the_key(tmp_path):
    with Bare(tmp_path, '--log-level', 'error', conf=QUIET + 'log: {level: debug}\n') as daemon:
        daemon.answers()
        assert ctl_json(daemon.control, 'log', 'level')['level'] == 'error'
        assert ctl_json(daemon.control, 'reload')['outcome'] == 'in force'
        assert ctl_json(daemon.control, 'log', 'level')['level'] == 'error', 'after a reload as well'
        assert daemon.stop() == 0
    assert not re.search(r'\b(info|debug|notice|warning): ', daemon.text())


def test_log_keys_live(make_node):
    node = make_node({**STATIC, 'log': {'level': 'warning'}})
    node.create('quiet', ctr('c'))
    node.config({**STATIC, 'log': {'level': 'info', 'debug': ['nri:on', 'cache,policy:off'], 'source': True}})
    assert ctl_json(node, 'log', 'level')['level'] == 'info'
    node.create('loud', ctr('c'))
    node.log('debug: .*nri.*CreateContainer')
    why = node.badconfig({**STATIC, 'log': {'debug': ['nri:maybe']}})
    assert re.search(r'rp\.conf:\d+:\d+: log\.debug\[0\]: .*maybe', why), why


# ---- signals ----

def test_before_the_runtime_is_there(tmp_path):
    """Reload, debugging and the state work without a runtime, and so does stopping."""
    with Bare(tmp_path) as daemon:
        daemon.answers()
        daemon.signal('HUP')
        daemon.wait_for('reloaded|in force|generation 2')
        daemon.signal('USR1')
        daemon.wait_for('full debugging is on')
        daemon.signal('USR2')
        daemon.wait_for('state: policy none, 0 pods, 0 containers')
        daemon.conf.write_text('policy: [')
        daemon.signal('HUP')
        daemon.wait_for(r'refused.*rp\.conf:\d+:\d+')
        done = ctl(daemon.control, 'status')
        assert done.code == 4 and 'the runtime is not connected' in done.out and str(daemon.nri) in done.out
        assert daemon.stop() == 0
    assert not daemon.control.exists()


@pytest.mark.parametrize('name', ['TERM', 'INT'])
def test_stopping(tmp_path, name):
    with Bare(tmp_path) as daemon:
        daemon.answers()
        daemon.signal(name)
        assert daemon.ended() == 0
        assert 'stopping' in daemon.text()


def test_stopped_at_once(tmp_path):
    """Whatever it was at: as soon as it takes the signal it ends well, and the next one starts."""
    for delay in (0.0, 0.01, 0.03, 0.06):
        with Bare(tmp_path) as daemon:
            time.sleep(delay)
            daemon.signal('TERM')
            assert daemon.ended() in (0, -signal.SIGTERM)
    with Bare(tmp_path) as daemon:
        daemon.answers()
        assert daemon.stop() == 0


def test_signals_while_containers_come(make_node):
    """Nothing is lost and nobody is moved by reloads, toggles and dumps between requests."""
    node = make_node(STATIC)
    for i in range(12):
        for name in ('HUP', 'USR1', 'USR2'):
            node.signal(name)
        node.create('p%d' % i, ctr('c', '1', '64Mi'))
    node.log('state: policy static, 1[12] pods')  # the last signal may be seen after the last pod
    places = node.places()
    assert len({cpus for cpus, _ in places.values()}) == 12, 'each has a CPU of its own'
    eventually(lambda: ctl_json(node, 'status')['config']['ok'] and ctl(node, 'reload').code == OK)
    assert node.places() == places


def test_stopped_while_it_reloads(make_node):
    node = make_node(STATIC)
    node.create('p', ctr('c', '2', '64Mi'))
    node.signal('HUP')
    node.stop()
    node.start()
    assert node.cpus('p/c') == {2, 3} and ctl(node, 'status').code == OK


def test_signals_in_the_middle_of_synchronization(make_node):
    """Three thousand containers in many parts, and a reload in between."""
    existing = [{'pod': 'p%d' % i, 'containers': [ctr('c%d' % k, '1m/-') for k in range(30)]} for i in range(100)]
    node = make_node(STATIC, existing=existing, start=False, syncParts=10)
    node.start(wait=False)
    node.runtime_start()
    eventually(lambda: node.status()['pid'])
    eventually(lambda: os.path.exists(node.paths['control']))
    node.signal('HUP')
    node.signal('USR2')
    node.connected()
    eventually(lambda: ctl_json(node, 'version')['nri-rpd'] and len(node.control('Containers')) == 3000)
    eventually(lambda: ctl(node, 'status').code == OK)
    node.create('own', ctr('c', '2', '64Mi'))
    node.expect('count(cpus(own/c)) == 2', 'disjoint(own/c, p0/c0)')


# ---- systemd ----

class Notify:
    """Where systemd would listen."""

    def __init__(self, tmp_path, abstract=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(30)
        self.name = '@nri-rp-test-%d' % os.getpid() if abstract else str(tmp_path / 'notify')
        self.socket.bind('\0' + self.name[1:] if abstract else self.name)
        self.seen = []

    def until(self, key, value=None):
        """The next message with that key, as a map."""
        while True:
            text = self.socket.recv(4096).decode()
            message = dict(line.split('=', 1) for line in text.split('\n'))
            self.seen.append(message)
            if key in message and value in (None, message[key]):
                return message

    def close(self):
        self.socket.close()


@pytest.fixture
def notify(tmp_path):
    made = []

    def make(**kwargs):
        made.append(Notify(tmp_path, **kwargs))
        return made[-1]

    yield make
    for n in made:
        n.close()


@pytest.mark.parametrize('abstract', [False, True], ids=['path', 'abstract'])
def test_what_systemd_is_told(tmp_path, notify, abstract):
    """Without a runtime it says what it waits for, whatever is reloaded meanwhile; the end is announced."""
    heard = notify(abstract=abstract)
    with Bare(tmp_path, env={'NOTIFY_SOCKET': heard.name}) as daemon:
        assert 'connecting' in heard.until('STATUS')['STATUS']
        assert not any('READY' in m for m in heard.seen), 'not ready without a runtime'
        daemon.answers()
        daemon.signal('HUP')
        eventually(lambda: daemon.answers('status')['counts']['reloads'] == 1)
        daemon.signal('TERM')
        assert heard.until('STOPPING')['STOPPING'] == '1'
        assert daemon.ended() == 0
        assert not any('READY' in m for m in heard.seen), 'a reload is no synchronization'


def notifying(heard, **env):
    words = ' '.join('%s=%s' % pair for pair in {'NOTIFY_SOCKET': heard.name, **env}.items())
    return ('/usr/bin/env %s %s --config {config} --nri-socket {socket} --host-root {root} --state-dir {state} --control-socket {control}'
            % (words, DAEMON))


def test_ready_after_the_first_synchronization(make_node, notify):
    heard = notify()
    node = make_node(STATIC, daemon=notifying(heard), module_dirs=[BUILD / 'modules'])
    message = heard.until('READY')
    assert message['READY'] == '1' and 'containerd' in message['STATUS']
    node.runtime_restart()
    while 'connected to containerd' not in heard.until('STATUS')['STATUS']:
        pass
    assert not any('READY' in m for m in heard.seen[heard.seen.index(message) + 1:]), 'said once'


def test_reloads_as_systemd_sees_them(make_node, notify):
    """A refused one is in the unit's status text until the next good one, whoever asked for it."""
    heard = notify()
    node = make_node(STATIC, daemon=notifying(heard), module_dirs=[BUILD / 'modules'])
    assert 'degraded' not in heard.until('READY')['STATUS']
    node.run('write-config', 'policy: [')
    node.signal('HUP')
    message = heard.until('RELOADING')
    assert message['RELOADING'] == '1' and int(message['MONOTONIC_USEC']) <= time.monotonic_ns() // 1000
    assert 'degraded: the last reload was refused: ' in heard.until('READY')['STATUS']
    node.runtime_restart()
    node.connected()
    while 'connected to containerd' not in (status := heard.until('STATUS')['STATUS']):
        pass
    assert 'degraded: the last reload was refused: ' in status
    node.run('write-config', STATIC)
    node.reload('control')
    while 'degraded' in heard.until('STATUS')['STATUS']:
        pass


def test_watchdog(tmp_path, notify):
    """Fed at least twice in the time that systemd allows, and not at all when it is meant for another process."""
    heard = notify()
    with Bare(tmp_path, env={'NOTIFY_SOCKET': heard.name, 'WATCHDOG_USEC': '200000'}) as daemon:
        for _ in range(5):
            assert heard.until('WATCHDOG')['WATCHDOG'] == '1'
        assert daemon.stop() == 0
    heard = Notify(tmp_path / 'nowhere', abstract=True)
    with Bare(tmp_path, env={'NOTIFY_SOCKET': heard.name, 'WATCHDOG_USEC': '10000', 'WATCHDOG_PID': '1'}) as daemon:
        daemon.answers()
        daemon.signal('TERM')
        heard.until('STOPPING')
        assert daemon.ended() == 0
    assert not any('WATCHDOG' in m for m in heard.seen)
    heard.close()


@pytest.mark.parametrize('env', [{'NOTIFY_SOCKET': ''}, {'NOTIFY_SOCKET': 'relative'}, {'NOTIFY_SOCKET': '/nowhere'}, {'NOTIFY_SOCKET': '/' + 'x' * 300},
                                 {'NOTIFY_SOCKET': '/nowhere', 'WATCHDOG_USEC': 'often'}, {'NOTIFY_SOCKET': '/nowhere', 'WATCHDOG_USEC': '-1'},
                                 {'WATCHDOG_USEC': '1000000'}], ids=str)
def test_environments_that_make_no_sense(tmp_path, env):
    """Nobody to tell is no reason not to run."""
    with Bare(tmp_path, env={key: value[:200] if key != 'NOTIFY_SOCKET' else value for key, value in env.items()}) as daemon:
        daemon.answers()
        assert daemon.stop() == 0
