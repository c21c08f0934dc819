# SPDX-License-Identifier: Apache-2.0
"""nri-rpctl's command line: exit statuses, terminals and pipes, strange and many names, daemons that are not there, and what the
manual and the completion say of it."""
import contextlib
import json
import os
import pathlib
import re
import socket
import stat
import subprocess
import threading

import pytest

from operator_tools import (CONFIG, CTL, DEGRADED, FAILED, NOT_RUNNING, OK, RESPONSE, USAGE, Bare, Following, ctl, ctl_json, field, frame,
                            on_terminal, plain, run_as_nobody, run_ctl)
from simnode import BUILD, STATIC, TOP, ctr, eventually

COMMANDS = ['status', 'pods', 'containers', 'topology', 'zones', 'explain x', 'events', 'reload', 'plan /dev/null', 'rebalance', 'config show',
            'modules', 'modules clear x', 'log level', 'log debug']
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='takes root')
ESC = '\x1b'


# ---- wrong usage ----

@pytest.mark.parametrize('words, said', [
    ([], ['missing command', '--help']),
    (['statsu'], ['"statsu"', 'did you mean "status"']),
    (['qqqqqqqq'], ['"qqqqqqqq"', '--help']),
    (['status', 'x'], ['usage: nri-rpctl status']),
    (['explain'], ['usage: nri-rpctl explain CONTAINER']),
    (['explain', 'a', 'b'], ['usage: nri-rpctl explain CONTAINER']),
    (['pods', 'a', 'b'], ['usage: nri-rpctl pods [NAME]']),
    (['plan'], ['usage: nri-rpctl plan FILE']),
    (['try'], ['usage: nri-rpctl try FILE|-']),
    (['try', 'a', 'b'], ['usage: nri-rpctl try FILE|-']),
    (['config'], ['check', 'show', 'schema']),
    (['config', 'chek'], ['check show schema', 'did you mean "check"']),
    (['log'], ['level', 'debug']),
    (['modules', 'claer', 'x'], ['clear']),
    (['--sokcet', 'x', 'status'], ['--sokcet', 'did you mean "--socket"']),
    (['status', '--jsno'], ['did you mean "--json"']),
    (['status', '--follow'], ['takes no', 'follow']),
    (['pods', '--wide'], ['takes no', 'wide']),
    (['status', '--socket'], ['needs a value', '--socket']),
    (['events', '--since'], ['needs a value', '--since']),
    (['events', '--since', 'soon'], ['--since soon: expected an event number']),
    (['status', '--json=yes'], ['takes no value']),
    (['status', '-x'], ['"-x"']),
    (['status', '-'], ['usage: nri-rpctl status']),
    (['x'] * 40, ['too many arguments']),
    (['--module-dir', '/'] * 17 + ['config', 'schema'], ['too many --module-dir']),
], ids=lambda v: ' '.join(v)[:40] if isinstance(v, list) else None)
def test_wrong_usage(words, said):
    done = run_ctl(*words)
    assert done.code == USAGE and done.out == ''
    assert done.err.startswith('nri-rpctl: ')
    for word in said:
        assert word in done.err


def test_help_wherever_it_is_asked_for():
    whole = run_ctl('--help')
    assert whole.code == OK and whole.err == '' and whole.out.startswith('Usage: nri-rpctl')
    assert run_ctl('-h').out == run_ctl('help').out == whole.out
    one = run_ctl('events', '--help')
    assert one.code == OK and one.out.startswith('Usage: nri-rpctl events') and '--follow' in one.out and '--since' in one.out
    assert run_ctl('help', 'events').out == run_ctl('-h', 'events').out == one.out
    assert run_ctl('config', 'show', '--help').out.startswith('Usage: nri-rpctl config show')
    assert run_ctl('help', 'nonsense').code == USAGE
    assert 'did you mean "events"' in run_ctl('help', 'evnets').err
    assert json.loads(run_ctl('--json').out)['error'].startswith('missing command')


def test_options_stand_anywhere(make_node):
    node = make_node(STATIC)
    socket_ = node.paths['control']
    assert run_ctl('pods', '--socket', socket_, '--json').out == run_ctl('--json', '--socket=' + socket_, 'pods').out == '[]\n'
    assert run_ctl('pods', '--json', env={'NRI_RP_SOCKET': socket_}).out == '[]\n'
    assert run_ctl('pods', '--socket', '/nowhere', env={'NRI_RP_SOCKET': socket_}).code == NOT_RUNNING, 'the option goes over the variable'
    node.create('p', ctr('c'))
    assert json.loads(run_ctl('--socket', socket_, '--json', 'explain', '--', 'p/c').out)['pod'] == 'p'


def test_a_name_that_begins_with_a_dash(make_node):
    node = make_node(STATIC)
    node.create('-rf', ctr('--json'))
    assert ctl_json(node, 'explain', '--', '-rf/--json')['full_name'] == 'default/-rf/--json'
    assert ctl_json(node, 'pods', '--', '-r')[0]['name'] == '-rf'


# ---- nobody there ----

@pytest.mark.parametrize('command', COMMANDS)
def test_not_running(tmp_path, command):
    done = ctl(tmp_path / 'none.sock', *command.split())
    assert done.code == NOT_RUNNING and done.out == ''
    assert 'nri-rpd is not running' in done.err and str(tmp_path / 'none.sock') in done.err and 'nri-rpctl doctor' in done.err


def test_a_socket_that_was_left(tmp_path):
    path = tmp_path / 'left.sock'
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
    done = ctl(path, 'status')
    assert done.code == NOT_RUNNING and str(path) in done.err
    findings = ctl_json(path, 'doctor', code=NOT_RUNNING)
    bad = next(f for f in findings if f['check'] == 'control socket')
    assert bad['verdict'] == 'error' and 'no process listens' in bad['text'] and 'journalctl' in bad['hint']
    tmp_path.chmod(0o777)
    assert 'is writable by other users' in ctl(path, 'doctor').out


def test_commands_of_a_pod(tmp_path):
    """In a cluster there is no systemd to ask: kubectl has the log of the container."""
    pod = {'KUBERNETES_SERVICE_HOST': '10.0.0.1'}
    done = ctl(tmp_path / 'none.sock', 'status', env=pod)
    assert done.code == NOT_RUNNING and 'systemctl' not in done.err and '-c nri-rpd`' in done.err and 'kubectl -n nri-rp logs ' in done.err
    done = ctl(tmp_path / 'none.sock', 'doctor', env=pod)
    assert 'systemctl' not in done.out and 'journalctl' not in done.out and 'kubectl -n nri-rp describe pod' in done.out


def test_doctor_without_a_daemon(tmp_path):
    path = tmp_path / 'rp.conf'
    path.write_text('policy: [\n')
    done = ctl(tmp_path / 'none.sock', 'doctor', '--config', path)
    assert done.code == NOT_RUNNING
    assert '%s:2:1' % path in done.out and 'none.sock' in done.out and 'systemctl start nri-rpd' in done.out
    path.write_text('policy: none\n')
    assert '%s can be read' % path in ctl(tmp_path / 'none.sock', 'doctor', '--config', path).out
    (tmp_path / 'file.sock').write_text('')
    assert 'is not a socket' in ctl(tmp_path / 'file.sock', 'doctor', '--config', path).out


def test_doctor_looks_for_the_runtime_where_the_daemon_does(tmp_path):
    """The command line, too, may say where that is."""
    with Bare(tmp_path) as daemon:
        daemon.answers()
        findings = ctl_json(daemon.control, 'doctor', code=DEGRADED)
        told = [f['text'] for f in findings if f['check'] == 'runtime' and 'fallback' not in f['text']]
        assert len(told) == 2 and all(str(daemon.nri) in text for text in told), told
        assert [f['hint'] for f in findings if 'fallback' in f['text']] == ['nri-rp-bridge(8)']


def test_version_without_a_daemon(tmp_path):
    done = ctl(tmp_path / 'none.sock', 'version')
    assert done.code == OK and re.fullmatch(r'nri-rpctl \S+\n', done.out)
    assert ctl_json(tmp_path / 'none.sock', 'version')['nri-rpd'] is None


def test_config_check_without_a_daemon(tmp_path):
    path = tmp_path / 'rp.conf'
    path.write_text('policy: none\n')
    assert ctl(tmp_path / 'none.sock', 'config', 'check', path).code == OK
    path.write_text('polcy: none\n')
    done = ctl(tmp_path / 'none.sock', 'config', 'check', path)
    assert done.code == CONFIG and '%s:1:1: polcy: ' % path in done.out + done.err and 'policy' in (done.out + done.err).split('polcy:', 1)[1]
    done = ctl(tmp_path / 'none.sock', 'config', 'check', tmp_path / 'absent.conf')
    assert done.code != OK and 'absent.conf' in done.err


def test_a_path_that_is_no_socket(tmp_path):
    (tmp_path / 'file').write_text('')
    assert ctl(tmp_path / 'file', 'status').code in (FAILED, NOT_RUNNING)
    done = ctl('/' + 'x' * 200, 'status')
    assert done.code == FAILED and 'at most 107 bytes' in done.err


@ROOT
def test_without_permission(make_node):
    """Who may not open the socket is told that it takes root, not that nobody is there."""
    node = make_node(STATIC)
    assert stat.S_IMODE(os.stat(node.paths['control']).st_mode) == 0o600
    folder = pathlib.Path(node.paths['control']).parent
    os.chmod(folder, 0o755)
    done = run_as_nobody(CTL, '--socket', node.paths['control'], 'status')
    assert done.returncode == FAILED
    assert node.paths['control'] in done.stderr and 'ermission denied' in done.stderr and 'root' in done.stderr


# ---- daemons that are not well ----

@contextlib.contextmanager
def impostor(tmp_path, answer):
    """Somebody at the control socket who answers one request with these bytes and closes."""
    path = tmp_path / 'odd.sock'
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve():
            with listener.accept()[0] as s:
                data = s.recv(4096)
                if data:
                    s.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        thread.join(20)


def reply(document, exit_=0, rest=0, stream=1, status=b''):
    return frame(stream, RESPONSE, status + field(2, field(1, document) + field(2, exit_) + field(3, rest)))


@pytest.mark.parametrize('name, answer', [
    ('closes', b''),
    ('half a header', b'\0\0\0'),
    ('half an answer', reply(b'{}')[:-1]),
    ('no ttrpc', b'HTTP/1.1 400 Bad Request\r\n\r\n'),
    ('no message', frame(1, RESPONSE, b'\xff\xff\xff')),
    ('no document', reply(b'')),
    ('no json', reply(b'{"pods":')),
    ('a piece of json', reply(b'[', rest=7)),
    ('a frame without end', frame(1, RESPONSE, b'', length=0xffffffff)),
    ('an error', frame(1, RESPONSE, field(1, field(1, 14) + field(2, 'nri-rpd is stopping')))),
], ids=lambda v: v if isinstance(v, str) else '')
def test_a_daemon_that_ends_in_the_middle(tmp_path, name, answer):
    with impostor(tmp_path, answer) as path:
        done = ctl(path, 'pods')
    assert done.code == FAILED and done.out == ''
    assert re.match(r'nri-rpctl: .{5,}', done.err), done
    if name == 'an error':
        assert 'nri-rpd is stopping' in done.err


def test_documents_of_another_version(tmp_path):
    """Members that are missing, of another type or new are no reason to crash."""
    for document in (b'{}', b'[]', b'null', b'[{}]', b'{"error":"odd"}', b'[{"name":5,"namespace":[],"containers":"x"}]', b'{"pods":1}', b'[[[]]]'):
        for command in ('status', 'pods', 'containers', 'zones', 'topology', 'modules', 'explain x', 'reload', 'log level', 'events', 'rebalance'):
            with impostor(tmp_path, reply(document)) as path:
                done = ctl(path, *command.split())
            os.unlink(path)
            assert done.code in (OK, FAILED), (document, command, done)


def test_stopped_while_it_is_followed(tmp_path):
    """The follower waits for the return, and is interrupted there."""
    with Bare(tmp_path) as daemon:
        daemon.answers()
        follower = Following(daemon.control)
        try:
            eventually(lambda: '2 of 32 clients' in ctl(daemon.control, 'doctor').out)
            assert daemon.stop() == 0
            eventually(lambda: not daemon.control.exists())
        finally:
            follower_code = follower.process.poll()
            code, err = follower.end()
        assert follower_code is None and code == -2
    done = ctl(daemon.control, 'events', '--follow')
    assert done.code == NOT_RUNNING, 'but who is not there from the start is not waited for'


def test_the_reader_goes(make_node):
    """Into a pager that is left: no message, no half line for ever."""
    node = make_node(STATIC)
    node.create('p', *[ctr('c%d' % i) for i in range(30)])
    with subprocess.Popen([CTL, '--socket', node.paths['control'], '--json', 'containers'], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.wait(60) in (-13, FAILED)
        assert process.stderr.read() == b''


def test_output_that_cannot_be_written(make_node):
    node = make_node(STATIC)
    with open('/dev/full', 'w') as full:
        done = subprocess.run([CTL, '--socket', node.paths['control'], 'status'], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == FAILED
    assert 'No space left' in done.stderr, 'and it is said'


# ---- terminals and pipes ----

LONG = 'a-pod-with-a-name-as-long-as-those-of-replica-sets-are-7f9c4d8b6d-x2v8q'


@pytest.fixture
def wide(make_node):
    node = make_node(STATIC)
    node.create(LONG, ctr('container-with-a-long-name', '2', '64Mi'), namespace='a-namespace-of-some-length')
    node.create('short', ctr('s', '1m/-'))
    return node


@pytest.mark.parametrize('columns', [40, 60, 80, 132])
@pytest.mark.parametrize('command', ['pods', 'containers', 'zones', 'events', 'modules', 'status', 'topology', 'doctor', 'explain s'])
def test_tables_fit_the_terminal(wide, command, columns):
    code, text = on_terminal(wide, *command.split(), columns=columns)
    assert code == OK
    assert text.strip()
    if command in ('pods', 'containers', 'zones', 'modules'):
        assert max(map(len, plain(text).splitlines())) <= columns
    elif command in ('events', 'doctor'):  # wrapped at blanks: a word longer than the line stays whole
        for line in plain(text).splitlines():
            assert len(line) <= columns or len(line.split()[-1]) > columns - 36, line


def test_what_is_cut_says_so_and_pipes_are_whole(wide):
    _, text = on_terminal(wide, 'containers', columns=60)
    assert LONG not in text and '…' in text
    whole = ctl(wide, 'containers').out
    assert 'a-namespace-of-some-length/%s/container-with-a-long-name' % LONG in whole and '…' not in whole
    _, text = on_terminal(wide, 'containers', '--wide', columns=60)
    assert plain(text) == whole


def test_colours(wide):
    assert ESC not in ctl(wide, 'status').out
    assert ESC + '[' in on_terminal(wide, 'status')[1]
    for env in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}, {'TERM': None}):
        assert ESC not in on_terminal(wide, 'status', env=env)[1], env
    assert ESC in on_terminal(wide, 'status', env={'NO_COLOR': ''})[1], 'empty is not set'
    code, text = on_terminal(wide, '--json', 'containers')
    assert ESC not in text and len(json.loads(text)) == 2, 'documents are for programs'


def test_every_colour_ends(wide):
    wide.badconfig('policy: [')
    for command in ('status', 'pods', 'containers', 'topology', 'events', 'doctor', 'modules', 'zones'):
        _, text = on_terminal(wide, command, columns=60)
        codes = re.findall('\x1b\\[([0-9;]*)m', text)
        assert codes and all((code == '0') == bool(i % 2) for i, code in enumerate(codes)), (command, codes)


def test_columns_of_the_environment(wide):
    _, text = on_terminal(wide, 'containers', columns=200, env={'COLUMNS': '50'})
    assert max(map(len, plain(text).splitlines())) <= 50
    for strange in ('0', '-5', 'wide', '99999999999999999999'):
        _, text = on_terminal(wide, 'containers', columns=70, env={'COLUMNS': strange})
        assert 50 < max(map(len, plain(text).splitlines())) <= 70, 'then that of the terminal holds'
    assert ctl(wide, 'containers', env={'COLUMNS': '50'}).out == ctl(wide, 'containers').out, 'a pipe has none'


def test_terminals_without_utf8(wide):
    """Lines and marks are replaced; what has no place in ASCII is a question mark."""
    wide.create('üml', ctr('c', '1m/-'))
    for command in ('topology', 'doctor', 'pods'):
        text = ctl(wide, command, env={'LC_ALL': 'C'}).out
        assert text.isascii(), command
    assert '?ml' in ctl(wide, 'pods', env={'LC_ALL': 'C'}).out
    assert 'üml' in ctl(wide, 'pods').out


# ---- names ----

STRANGE = {
    'escape': 'a\x1b[31mred', 'title': 'b\x1b]0;owned\x07', 'bell': 'c\x07', 'line': 'd\ne', 'return': 'f\rg', 'tab': 'h\ti', 'c1': 'j\x9b31m',
    'override': 'k\u202egnp.exe', 'isolate': 'l\u2066x', 'delete': 'm\x7f', 'mark': 'n\u200f',
}
BLANKS = {'quotes': '"; rm -rf /; "', 'backslash': 'o\\n', 'percent': '%s%n%d', 'wide': '容器', 'emoji': '\U0001f4a5', 'space': 'p q'}


@pytest.mark.parametrize('name', [*STRANGE.values(), *BLANKS.values()], ids=[*STRANGE, *BLANKS])
def test_strange_names(make_node, name):
    """Text never carries a terminal's commands; documents carry the name as it is."""
    node = make_node(STATIC)
    node.create(name, ctr('c', '1m/-'), annotations={'balloon.balloons.resource-policy.nri.io': name})
    assert [p['name'] for p in ctl_json(node, 'pods')] == [name]
    doc = ctl_json(node, 'explain', name + '/c')
    assert doc['pod'] == name and doc['annotations']['balloon.balloons.resource-policy.nri.io'] == name
    clean = re.sub('[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u206f]', '?', name)
    for words in (['pods'], ['containers'], ['topology'], ['explain', name + '/c'], ['events'], ['explain', name]):
        done = ctl(node, *words)
        text = done.out + done.err
        assert clean in text, words
        assert not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u206f]', text), words
        if '\n' in name:
            assert name not in text


# ---- many ----

def test_three_hundred_containers(make_node):
    node = make_node(STATIC, machine='n4c128')
    for i in range(30):
        node.create('pod-%02d' % i, *[ctr('c%d' % k, '1m/-', '1Mi/-') for k in range(10)])
    node.create('own', ctr('own', '4', '64Mi'))
    names = ['default/pod-%02d/c%d' % (i, k) for i in range(30) for k in range(10)] + ['default/own/own']
    assert [c['full_name'] for c in ctl_json(node, 'containers')] == names, 'in the order they came'
    lines = ctl(node, 'containers').out.splitlines()
    assert len(lines) == 302 and [line.split()[0] for line in lines[1:]] == names
    assert len(ctl_json(node, 'pods')) == 31
    assert len(ctl_json(node, 'containers', 'pod-07')) == 10
    doc = ctl_json(node, 'topology')
    assert [len(g['containers']) for g in doc['groups']] == [1, 300]
    legend = next(line for line in ctl(node, 'topology').out.splitlines() if line.startswith('a  '))
    assert ' 300 ' in legend and legend.endswith(', …') and len(legend) < 300
    rows = ctl(node, 'topology', '--table').out.splitlines()[1:]
    assert len(rows) == 128 and sum('and 297 more' in row for row in rows) == 124
    assert ctl_json(node, 'status')['containers'] == 301


def test_a_document_of_many_pieces(make_node):
    """More than one answer holds, which is 1 MiB."""
    existing = [{'pod': 'p%d' % i, 'containers': [ctr('c%d' % k, '1m/-') for k in range(40)]} for i in range(100)]
    node = make_node(STATIC, existing=existing)
    done = ctl(node, '--json', 'containers')
    assert done.code == OK and len(done.out) > 3 << 19
    documents = json.loads(done.out)
    assert [d['full_name'] for d in documents] == ['default/p%d/c%d' % (i, k) for i in range(100) for k in range(40)]


# ---- the manual, the help and the completion ----

def helped():
    """{command: (options, arguments)} of the help, and the options of all."""
    text = run_ctl('--help').out
    top, bottom = text.split('\n\n')[1:3]
    commands = {}
    for line in top.splitlines():
        left = re.split('  +', line.strip())[0]
        words = [w for w in left.split() if w.islower() and w.isalpha()]
        own = run_ctl(*words, '--help').out
        commands[' '.join(words)] = set(re.findall(r'^  --([a-z-]+)', own, re.M))
    return commands, set(re.findall(r'^  --([a-z-]+)', bottom, re.M))


def manual():
    text = (TOP / 'man' / 'nri-rpctl.1').read_text()
    options = set(re.findall(r'^\.It Fl -([a-z-]+)', text[:text.index('.Sh COMMANDS')], re.M))
    commands = {}
    for line in re.findall(r'^\.It Cm (.*)$', text[text.index('.Sh COMMANDS'):text.index('.Sh DOCUMENTS')], re.M):
        words = re.match(r'[a-z]+(?: [a-z]+)*(?= |$)', line)[0]
        commands[words] = set(re.findall(r'Fl -([a-z-]+)', line))
    return commands, options


def test_manual_and_help_agree():
    assert helped() == manual()


def complete(*words):
    """What bash would offer for the last of these words."""
    script = 'source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _nri_rpctl; printf "%%s\\n" "${COMPREPLY[@]}"' % (
        TOP / 'packaging/completion/nri-rpctl.bash', ' '.join("'%s'" % w for w in (CTL, *words)), len(words))
    done = subprocess.run(['bash', '-c', script], capture_output=True, text=True, timeout=60)
    assert done.stderr == ''
    return set(done.stdout.split())


def test_completion_and_help_agree():
    commands, options = helped()
    first = {c.split()[0] for c in commands}
    assert complete('') == first | {'help'}
    assert complete('help', '') == first
    assert complete('-') == {'--' + o for o in options}
    for name, own in commands.items():
        words = name.split()
        assert {'--' + o for o in own | options} == complete(*words, '-'), name
    for name in first:
        subs = {c.split()[1] for c in commands if c.startswith(name + ' ')}
        assert subs <= complete(name, ''), name


def test_completion_of_names(make_node):
    node = make_node(STATIC)
    node.create('web', ctr('app', '1m/-'))
    node.create('db', ctr('sql', '1m/-'))
    where = ['--socket', node.paths['control']]
    assert complete(*where, 'explain', '') == {'default/web/app', 'default/db/sql', 'web', 'db'}, 'a pod is explained, too'
    assert complete(*where, 'explain', 'default/w') == {'default/web/app'}
    assert complete(*where, 'pods', '') == {'web', 'db'}
    assert complete('--socket', '/nowhere', 'explain', '') == set(), 'and nothing is said where no daemon runs'


def test_exit_statuses_are_written_down():
    text = (TOP / 'man' / 'nri-rpctl.1').read_text()
    section = text[text.index('.Sh EXIT STATUS'):text.index('.Sh EXAMPLES')]
    said = set(re.findall(r'^\.It (\d+)$', section, re.M))
    line = run_ctl('--help').out.split('Exit status:')[1]
    assert set(re.findall(r'\b(\d+) ', line)) == said == {'0', '1', '2', '3', '4', '78'}


def test_problems_show_their_line(make_node, tmp_path):
    """Of config check, with and without a daemon, and of a refused reload: the line, a caret below the place, and the keys that there are."""
    node = make_node(STATIC)
    path = tmp_path / 'bad.conf'
    path.write_text('policy: static\nstatic:\n  reservedResources: {cpu: none}\nlog:\n  zzzzzz: 1\n')
    for args in (('--module-dir', BUILD / 'modules', 'config', 'check', '--local', path), ('config', 'check', path)):
        out = ctl(node, *args).out
        assert '       3 |   reservedResources: {cpu: none}\n         |                       ^\n' in out, args
        assert '       5 |   zzzzzz: 1\n         |   ^\n' in out and 'unknown key; the keys here are level, debug' in ' '.join(out.split()), args
    node.run('write-config', {'policy': 'static', 'static': {'reservedResources': {'cpu': 'none'}}})
    assert '| ' in ctl(node, 'reload').out and '^\n' in ctl(node, 'reload').out


CLUSTER = {'nodes': {'items': [{'metadata': {'name': name}, 'status': {'conditions': [{'type': 'NRIResourcePolicyReady', 'status': ready, 'message': text}]}}
                               for name, ready, text in (('one', 'True', 'nri-rpd places the containers of this node; degraded: 2, refused: 11'), ('two', 'True', ''), ('three', 'False', 'nri-rpd does not answer'))]},
           'policies': {'items': [
               {'kind': 'BalloonsPolicy', 'metadata': {'name': 'default', 'namespace': 'nri-rp', 'generation': 3}, 'status': {'nodes': {
                   'one': {'status': 'Success', 'generation': 3}, 'two': {'status': 'Failure', 'generation': 2, 'errors': 'spec.x: unknown key'}}}},
               {'kind': 'StaticPolicy', 'metadata': {'name': 'default', 'namespace': 'nri-rp', 'generation': 1}, 'status': {'nodes': {
                   'one': {'status': 'Failure', 'generation': 1, 'errors': 'not used: BalloonsPolicy nri-rp/default, which was created later, configures this node'}}}}]}}


def test_nodes_of_a_cluster(tmp_path):
    """What the agents have published, by kubectl: nodes that are not ready, configurations that are refused, objects that are not used."""
    for name, document in CLUSTER.items():
        (tmp_path / name).write_text(json.dumps(document))
    kubectl = tmp_path / 'kubectl'
    kubectl.write_text('#!/bin/sh\ncase "$*" in\napi-resources*) echo balloonspolicies.config.nri; echo staticpolicies.config.nri ;;\n'
                       '"get nodes -A -o json") echo "Warning: old" >&2; cat %s/nodes ;;\n'
                       '"get balloonspolicies.config.nri,staticpolicies.config.nri -A -o json") cat %s/policies ;;\n*) exit 9 ;;\nesac\n' % (tmp_path, tmp_path))
    kubectl.chmod(0o755)
    env = {**os.environ, 'PATH': '%s:%s' % (tmp_path, os.environ['PATH'])}
    done = subprocess.run([CTL, 'cluster'], env=env, capture_output=True, text=True, timeout=60)
    lines = [re.split(r' {2,}', line.strip()) for line in done.stdout.splitlines()]
    assert done.returncode == DEGRADED and lines[0] == ['Node', 'Ready', 'Degraded', 'Refused', 'Configuration', 'Generation', 'Outcome', 'Text']
    assert lines[1][:5] == ['one', 'True', '2', '11', 'BalloonsPolicy nri-rp/default'] and 'active' in lines[1]
    assert lines[2][-2:] == ['refused', 'spec.x: unknown key'] and lines[3][2:5] == ['0', '0', 'files of the node'] and lines[3][-1] == 'nri-rpd does not answer'
    rows = json.loads(subprocess.run([CTL, '--json', 'cluster'], env=env, capture_output=True, text=True, timeout=60).stdout)
    assert [row.get('current') for row in rows] == [True, False, None]
    kubectl.write_text('#!/bin/sh\necho "the server is away" >&2; exit 1\n')
    done = subprocess.run([CTL, 'cluster'], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == FAILED and 'the server is away' in done.stderr
