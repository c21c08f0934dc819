# SPDX-License-Identifier: Apache-2.0
"""
A thousand connections at every socket at once, of those who say nothing, say it slowly, say nonsense or do not listen: the runtime is answered
meanwhile, and whoever comes afterwards is served. And folders whose files somebody has put there or swaps while they are opened.
"""
import contextlib
import os
import pathlib
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading

import pytest

from bypass import Node
from criproxy import Bridge, Runtime
from operator_tools import NOBODY, OK, Bare, ctl
from simnode import BUILD, STATIC, ctr, eventually

CROWD = int(os.environ.get('CROWD', 1000))
WORDS = [b'', b'\0', b'GET / HT', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', b'\xff' * 4096, b'\0\0\0\x05\0\0\0\x01\x01\0hello']
SECRET = 'not to be touched\n'


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 8 * CROWD and hard >= 8 * CROWD:
        resource.setrlimit(resource.RLIMIT_NOFILE, (8 * CROWD, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def crowd(path, stack):
    """Those whom the queue of the socket has no room for have not come."""
    come = []
    for i in range(CROWD):
        s = stack.enter_context(socket.socket(socket.AF_UNIX))
        s.setblocking(False)
        try:
            s.connect(str(path))
            s.send(WORDS[i % len(WORDS)])
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            continue
        come.append(s)
    return come


def keep_talking(connections, over):
    """A byte now and then."""
    while not over.wait(.01):
        for s in connections[:200]:
            with contextlib.suppress(OSError):
                s.send(b'\0')


def descriptors(pid):
    return len(os.listdir('/proc/%d/fd' % pid))


@contextlib.contextmanager
def besieged(*paths):
    over = threading.Event()
    with contextlib.ExitStack() as stack:
        come = [s for path in paths for s in crowd(path, stack)]
        talker = threading.Thread(target=keep_talking, args=(come, over))
        talker.start()
        try:
            yield come
        finally:
            over.set()
            talker.join()


def test_a_siege_of_the_daemon(make_node, many_files):
    """Of its three sockets."""
    node = make_node(None, start=False)
    work = pathlib.Path(node.paths['work'])
    agent, metrics = work / 'agent.sock', work / 'metrics.sock'
    node.run('write-config', {**STATIC, 'metrics': {'listen': 'unix:%s' % metrics}, 'agent': {'cluster': True, 'socket': str(agent)}})
    node.start()
    pid = node.status()['pid']
    before = descriptors(pid)
    with besieged(node.paths['control'], metrics, agent) as come:
        assert len(come) > 300
        for i in range(20):
            node.create('p%d' % i, ctr('c', '100m/-'))
            node.check()  # the runtime drops a plugin without an answer
        node.create('own', ctr('o', '2', '64Mi'))
        node.expect('count(cpus(own/o)) == 2')
    eventually(lambda: descriptors(pid) <= before + 2)
    eventually(lambda: ctl(node, 'status').code == OK)
    log = node.read_log()
    assert node.status()['pid'] == pid and len(log) < 200000, 'a line for each of them'


def test_a_siege_of_the_bridge(many_files):
    """Of both of its sockets, while the kubelet's calls pass."""
    with Runtime() as runtime, Bridge(runtime) as bridge:
        pid = bridge.process.pid
        bridge.unary('Echo')(b'before')
        before = descriptors(pid)
        with besieged(bridge.socket, bridge.nri_socket):
            for _ in range(20):
                assert bridge.unary('Echo')(b'meanwhile', timeout=10)
        eventually(lambda: descriptors(pid) <= before + 2, 60)
        channel = bridge.connect()
        assert channel.unary_unary('/runtime.v1.RuntimeService/Echo')(b'after', timeout=10)
        channel.close()
        assert len(bridge.log.read_text()) < 200000


ENTER = """
import errno, socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    print(errno.errorcode.get(s.connect_ex(path), 'in'))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason='takes root')
def test_other_users_at_the_bridge():
    """Wherever its sockets are; what others of the kubelet's group may, its operator has said. (nri-rpd asks who it is: test_control_socket, test_devices.)"""
    with Runtime() as runtime, Bridge(runtime) as bridge, Node() as node, node.bridge(pods='agent'):
        sockets = [bridge.socket, bridge.nri_socket, node.nri_socket, node.agent_socket]
        eventually(lambda: all(path.exists() for path in sockets))
        assert [stat.S_IMODE(path.stat().st_mode) for path in sockets] == [0o660, 0o600, 0o600, 0o600]
        for path in sockets:
            path.parent.chmod(0o755)
        words = [sys.executable, '-c', ENTER, *map(str, sockets)]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == ['in'] * 4
        others = subprocess.run(words, capture_output=True, text=True, check=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd='/')
        assert others.stdout.split() == ['EACCES'] * 4
        assert bridge.unary('Echo')(b'after', timeout=10)


# ---- folders ---------------------------------------------------------------------------------------------------------------

@pytest.fixture
def victim():
    """Somebody's file that nri-rpd could write, and must not; where nodes have their folders, as hard links take that."""
    with tempfile.TemporaryDirectory(dir=os.environ.get('TMPDIR')) as folder:
        path = pathlib.Path(folder) / 'victim'
        path.write_text(SECRET)
        yield path
        assert path.read_text() == SECRET


def state_files(make_node):
    """What there is in the folder of a daemon that has something to remember."""
    node = make_node(STATIC)
    node.create('a', ctr('c', '2', '64Mi'))
    node.stop()
    state = pathlib.Path(node.paths['state'])
    return node, state, sorted(p.name for p in state.iterdir() if p.is_file())


@pytest.mark.parametrize('how', ['symlink_to', 'hardlink_to'])
def test_links_in_the_state_folder(make_node, victim, how):
    """In the place of each file: it is refused or set aside, and never written through."""
    node, state, names = state_files(make_node)
    assert names
    for name in names:
        (state / name).unlink()
        getattr(state / name, how)(victim)
        node.start(wait=False)
        eventually(lambda: node.status()['connected'] or not node.status()['pid'])
        if node.status()['pid']:
            node.create('p-' + name.replace('.', '-'), ctr('c', '1', '64Mi'))
            node.kill()
        assert victim.read_text() == SECRET, name
        (state / name).unlink(missing_ok=True)
    node.start()
    node.expect('count(cpus(a/c)) == 2')


def test_a_link_that_comes_and_goes(make_node, victim):
    """Swapped with the file all the time, while the daemon starts, writes and dies."""
    node, state, names = state_files(make_node)
    over = threading.Event()

    def swap():
        spare = state / 'spare'
        while not over.is_set():
            for name in names:
                with contextlib.suppress(OSError):
                    spare.symlink_to(victim)
                    spare.rename(state / name)
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for i in range(10):
            node.start(wait=False)
            with contextlib.suppress(AssertionError):
                eventually(lambda: node.status()['connected'] or not node.status()['pid'], 5)
            if node.status()['pid']:
                with contextlib.suppress(AssertionError):
                    node.create('p%d' % i, ctr('c', '100m/-'))
                if node.status()['pid']:
                    node.kill()
    finally:
        over.set()
        swapper.join()
    assert victim.read_text() == SECRET
    for path in state.iterdir():
        if path.is_symlink():
            path.unlink()
    node.start()
    node.expect('count(cpus(a/c)) == 2')
    node.allow('.')


@pytest.mark.skipif(os.geteuid() != 0, reason='takes root')
@pytest.mark.parametrize('what, words', [('owner', 'is owned by user'), ('link', 'is a link or a file')])
def test_a_state_folder_of_others(tmp_path, what, words):
    state, other = tmp_path / 'state', tmp_path / 'other'
    other.mkdir()
    if what == 'owner':
        state.mkdir()
        os.chown(state, NOBODY, NOBODY)
    else:
        state.symlink_to(other)
    with Bare(tmp_path, '--state-dir', state) as daemon:
        daemon.wait_for(words)
    assert list(other.iterdir()) == []


def test_a_module_that_is_replaced_while_it_is_loaded(make_node, tmp_path):
    """As packages do it, by rename, and as nobody should, by writing into it."""
    folder = tmp_path / 'modules'
    folder.mkdir(mode=0o755)
    for name in ('static.so', 'none.so'):
        shutil.copy(BUILD / 'modules' / name, folder / name)
    node = make_node(STATIC, module_dirs=[folder])
    node.create('a', ctr('c', '2', '64Mi'))
    shutil.copy(BUILD / 'modules' / 'static.so', folder / 'new')
    (folder / 'new').rename(folder / 'static.so')
    node.create('b', ctr('d', '2', '64Mi'))
    node.reload()
    (folder / 'static.so').unlink()
    (folder / 'static.so').write_bytes(b'\x7fELF' + b'\0' * 100)
    node.create('e', ctr('f', '2', '64Mi'))
    before = node.places()
    node.kill()
    node.start()
    assert 'static' in node.ctl('status', check=False)['policy']['safe_mode_reason']
    assert node.places() == before, 'who runs keeps what it has'
    shutil.copy(BUILD / 'modules' / 'static.so', folder / 'new')
    (folder / 'new').rename(folder / 'static.so')
    node.restart()
    node.settle()
    assert node.places() == before and node.ctl('status')['policy']['name'] == 'static'
