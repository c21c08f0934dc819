# SPDX-License-Identifier: Apache-2.0
"""What operators have in their hands: nri-rpctl in a pipe or on a terminal, the control socket by hand, a scraper, and nri-rpd without a node."""
import collections
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time

from simnode import ANSWER_S, BUILD

CTL = str(BUILD / 'bin' / 'nri-rpctl')
DAEMON = str(BUILD / 'bin' / 'nri-rpd')
OK, FAILED, USAGE, NOT_RUNNING, DEGRADED, CONFIG = 0, 1, 2, 3, 4, 78
NOBODY = 65534
Done = collections.namedtuple('Done', 'code out err')


# ---- nri-rpctl ----

def environment(**more):
    """Without what would change the look of the output; None takes a variable away."""
    drop = ('COLUMNS', 'NO_COLOR', 'NRI_RP_SOCKET', 'LC_ALL', 'LC_CTYPE', 'LANG')
    env = {key: value for key, value in os.environ.items() if key not in drop}
    env.update({'LC_ALL': 'C.UTF-8', 'TERM': 'xterm'})
    env.update({key: value for key, value in more.items() if value is not None})
    for key in [key for key, value in more.items() if value is None]:
        env.pop(key, None)
    return env


def run_as_nobody(program, *args):
    """A copy of it, as the build folder may be below a home that is closed to others."""
    with tempfile.TemporaryDirectory(prefix='nri-rp-nobody-') as folder:
        os.chmod(folder, 0o755)
        return subprocess.run([shutil.copy(program, folder), *map(str, args)], capture_output=True, text=True, timeout=ANSWER_S, env=environment(),
                              user=NOBODY, group=NOBODY, extra_groups=[])


def control_of(where):
    return getattr(where, 'paths', {}).get('control') or str(where)


def run_ctl(*args, env=None, **how):
    done = subprocess.run([CTL, *map(str, args)], capture_output=True, text=True, timeout=ANSWER_S, env=environment(**(env or {})), **how)
    return Done(done.returncode, done.stdout, done.stderr)


def ctl(where, *args, **how):
    """In a pipe; where: a node, or the path of a socket."""
    return run_ctl('--socket', control_of(where), *args, **how)


def ctl_json(where, *args, code=OK):
    done = ctl(where, '--json', *args)
    assert done.code == code, done
    assert done.err == '', done
    return json.loads(done.out)


def on_terminal(where, *args, columns=80, env=None):
    """What a terminal of that width gets, and the exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
    process = subprocess.Popen([CTL, '--socket', control_of(where), *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
                               env=environment(**(env or {})))
    os.close(theirs)
    text = b''
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    return process.wait(ANSWER_S), text.decode().replace('\r\n', '\n')


ESCAPE = re.compile('\x1b\\[[0-9;]*m')


def plain(text):
    return ESCAPE.sub('', text)


class Following:
    """nri-rpctl events --follow in the background."""

    def __init__(self, where, *options):
        self.process = subprocess.Popen([CTL, '--socket', control_of(where), 'events', '--follow', *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment())
        self.text = b''

    def until(self, what, seconds=20):
        """Reads until that is in the text."""
        end = time.monotonic() + seconds
        while what not in self.text.decode(errors='replace'):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, 'has not come: %r in %r' % (what, self.text)
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            assert piece, 'has ended: %r' % self.text
            self.text += piece
        return self.text.decode()

    def end(self, signo=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(signo)
        _, err = self.process.communicate(timeout=ANSWER_S)
        return self.process.returncode, err.decode()


# ---- the control socket by hand ----

def varint(n):
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, value):
    """A field of a message: texts and bytes with their length, numbers as they are; 0 is not said."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b''
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    """The fields of a message: [(number, value)]."""
    found, at = [], 0

    def take():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(data):
        key = take()
        value = take()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, key
        found.append((key >> 3, value))
    return found


SERVICE = 'nri-rp.v1.Control'
REQUEST, RESPONSE = 1, 2
Answer = collections.namedtuple('Answer', 'stream code message json exit rest')


def frame(stream, kind, data, flags=0, length=None):
    return struct.pack('>IIBB', len(data) if length is None else length, stream, kind, flags) + data


def control_request(*args, after=0, wait_ms=0, flags=0, rest=0):
    return b''.join(field(1, a) for a in args) + field(2, after) + field(3, wait_ms) + field(4, flags) + field(5, rest)


def call_frame(stream, method, payload=b'', service=SERVICE):
    return frame(stream, REQUEST, field(1, service) + field(2, method) + field(3, payload))


class Caller:
    """A client of the control socket that may misbehave."""

    def __init__(self, where, timeout=ANSWER_S, buffer=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(control_of(where))
        self.stream = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, method, *args, service=SERVICE, **more):
        self.stream += 2
        self.send(call_frame(self.stream, method, control_request(*args, **more), service))
        return self.stream

    def take(self, n):
        data = b''
        while len(data) < n:
            piece = self.socket.recv(min(n - len(data), 1 << 20))
            if not piece:
                raise ConnectionResetError('the daemon has closed')
            data += piece
        return data

    def answer(self):
        length, stream, kind, _ = struct.unpack('>IIBB', self.take(10))
        data = self.take(length)
        assert kind == RESPONSE
        code, message, payload = 0, '', b''
        for number, value in fields(data):
            if number == 1:
                status = dict(fields(value))
                code, message = status.get(1, 0), status.get(2, b'').decode()
            elif number == 2:
                payload = value
        members = dict(fields(payload))
        return Answer(stream, code, message, members.get(1, b''), members.get(2, 0), members.get(3, 0))

    def call(self, method, *args, **more):
        stream = self.ask(method, *args, **more)
        answer = self.answer()
        assert answer.stream == stream
        return answer

    def document(self, method, *args, **more):
        """The whole of it, from all pieces."""
        answer = self.call(method, *args, **more)
        assert answer.code == 0, answer
        text, rest = answer.json, answer.rest
        while rest:
            more_ = self.call('More', rest=rest)
            assert more_.code == 0, more_
            text, rest = text + more_.json, more_.rest
        return json.loads(text)

    def closed(self):
        """Waits until the daemon has closed, whatever it still says."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        return True


# ---- HTTP ----

Response = collections.namedtuple('Response', 'status headers body')


def http_connect(address):
    """"host:port", "[host]:port" or a path."""
    if address.startswith('/'):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(ANSWER_S)
        s.connect(address)
        return s
    host, _, port = address.rpartition(':')
    return socket.create_connection((host.strip('[]'), int(port)), ANSWER_S)


def http_read(s):
    """Everything until the server closes."""
    data = b''
    while True:
        piece = s.recv(1 << 16)
        if not piece:
            return data
        data += piece


def http_parse(data, head=False):
    """A response as RFC 9112 has it: no more, no less than it says of itself."""
    top, sep, body = data.partition(b'\r\n\r\n')
    assert sep, data[:200]
    first, *lines = top.decode('ascii').split('\r\n')
    match = re.fullmatch(r'HTTP/1\.[01] (\d{3}) [ -~]+', first)
    assert match, first
    headers = {}
    for line in lines:
        name, colon, value = line.partition(':')
        assert colon and re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name), line
        assert name.lower() not in headers, line
        headers[name.lower()] = value.strip()
    if not head:
        assert int(headers['content-length']) == len(body)
    else:
        assert body == b''
    return Response(int(match[1]), headers, body)


def http_raw(address, data, head=False):
    with http_connect(address) as s:
        s.sendall(data)
        return http_parse(http_read(s), head)


def http_get(address, path='/metrics', method='GET'):
    return http_raw(address, ('%s %s HTTP/1.1\r\nHost: node\r\n\r\n' % (method, path)).encode(), method == 'HEAD')


def free_port(family=socket.AF_INET, host='127.0.0.1'):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.bind((host, 0))
        return s.getsockname()[1]


# ---- nri-rpd without a node ----

class Bare:
    """nri-rpd by itself, with all of its paths below a folder; nobody is at the runtime's socket."""

    def __init__(self, tmp, *options, env=(), conf='policy: none\nmetrics: {listen: ""}\n', name='rp.conf', state='state', pass_fds=(), run='run', under=()):
        self.conf = tmp / name
        self.control = tmp / run / ('%s.sock' % name)
        self.nri = tmp / 'nri.sock'
        if conf is not None:
            self.conf.write_text(conf)
        self.log = tmp / (name + '.log')
        command = [*under, DAEMON, '--config', self.conf, '--state-dir', tmp / state, '--control-socket', self.control, '--nri-socket', self.nri,
                   '--module-dir', BUILD / 'modules', *options]
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=dict(os.environ, **dict(env)), pass_fds=pass_fds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(ANSWER_S)

    def text(self):
        return self.log.read_text(errors='replace')

    def wait_for(self, regex, seconds=20):
        """A line of the log."""
        end = time.monotonic() + seconds
        while not re.search(regex, self.text(), re.M):
            assert self.process.poll() is None, 'has ended with %s: %s' % (self.process.returncode, self.text())
            assert time.monotonic() < end, 'no %r in %s' % (regex, self.text())
            time.sleep(0.01)

    def answers(self, *command):
        """Waits until the control socket is there."""
        end = time.monotonic() + ANSWER_S
        while True:
            done = ctl(self.control, *(command or ('version',)), '--json')
            if done.code != NOT_RUNNING and done.out.strip() and '"nri-rpd":null' not in done.out:
                return json.loads(done.out)
            assert self.process.poll() is None and time.monotonic() < end, self.text()
            time.sleep(0.01)

    def signal(self, name):
        self.process.send_signal(getattr(signal, 'SIG' + name))

    def ended(self):
        return self.process.wait(ANSWER_S)

    def stop(self):
        self.signal('TERM')
        return self.ended()
