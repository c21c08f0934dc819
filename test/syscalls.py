# SPDX-License-Identifier: Apache-2.0
"""System calls of a program fail (test/faults/supervise.c), whoever makes them: the program, its libraries, its children."""
import errno
import mmap
import os
import pathlib
import re
import struct
import subprocess

from simnode import BUILD, INSTRUMENTED

SUPERVISE = BUILD / 'test' / 'supervise'
PLAN = struct.Struct('=iiiiIIi')
MADE_MAX = 512
DISK, MEMORY, AGAIN = 'ENOSPC EROFS EIO', 'ENOMEM', 'EINTR EAGAIN'
SHORT = 'SHORT'  # one byte is moved, and no error told
# What each may fail with. (The kernel's brk tells no error.)
CALLS = {
    'read': 'EIO EINTR SHORT', 'write': DISK + ' EINTR SHORT', 'pread64': 'EIO', 'pwrite64': DISK, 'readv': 'EIO SHORT', 'writev': DISK + ' SHORT',
    'openat': DISK + ' EMFILE EACCES', 'openat2': 'EMFILE EACCES', 'fstat': 'EIO', 'newfstatat': 'EIO EACCES', 'fstatfs': 'EIO', 'mkdir': DISK,
    'mkdirat': DISK, 'rename': DISK, 'renameat': DISK, 'unlink': 'EROFS EIO', 'unlinkat': 'EROFS EIO', 'linkat': DISK, 'ftruncate': DISK,
    'fsync': 'EIO ENOSPC', 'flock': 'EINTR', 'fchmod': 'EROFS', 'mmap': MEMORY, 'clone': 'EAGAIN ENOMEM', 'clone3': 'EAGAIN ENOMEM',
    'pipe2': 'EMFILE', 'socket': 'EMFILE', 'connect': AGAIN, 'bind': 'ENOSPC', 'listen': 'EADDRINUSE', 'accept4': 'EMFILE ENOMEM EINTR',
    'sendto': AGAIN + ' EPIPE SHORT', 'recvfrom': AGAIN + ' ECONNRESET SHORT', 'recvmsg': AGAIN, 'setsockopt': MEMORY, 'getsockopt': MEMORY,
    'epoll_create1': 'EMFILE', 'epoll_ctl': 'ENOMEM ENOSPC', 'epoll_wait': 'EINTR', 'poll': 'EINTR', 'eventfd2': 'EMFILE', 'timerfd_create': 'EMFILE',
    'inotify_init1': 'EMFILE', 'inotify_add_watch': 'ENOSPC', 'getdents64': 'EIO', 'readlinkat': 'EIO', 'getrandom': 'EINTR', 'wait4': 'EINTR'}
# What a program does again by itself, and nobody may notice.
HARMLESS = {(call, error) for call in ('read', 'write', 'readv', 'writev', 'sendto', 'recvfrom', 'epoll_wait', 'poll') for error in (AGAIN + ' SHORT').split()}


def numbers():
    """Those of this machine, as the compiler has them."""
    text = subprocess.run(['cc', '-E', '-dM', '-include', 'sys/syscall.h', '-x', 'c', '/dev/null'], capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r'#define __NR_(\w+) (\d+)', text)}


class Plan:
    def __init__(self, path):
        self.path, self.numbers = pathlib.Path(path), numbers()
        self.path.write_bytes(PLAN.pack(-1, 0, 0, 0, 0, 0, 0).ljust(mmap.PAGESIZE, b'\0'))
        with self.path.open('r+b') as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def command(self, *words):
        return [str(SUPERVISE), str(self.path), *map(str, words)]

    def arm(self, call, error, skip, fail=1, every=0):
        PLAN.pack_into(self.memory, 0, -1, getattr(errno, error, 0), skip, fail, 0, 0, every)
        self.go_on(call)

    def go_on(self, call):
        """Where it has been disarmed."""
        struct.pack_into('=i', self.memory, 0, self.numbers[call])

    def made(self):
        """How many of each call there were since this was asked last."""
        made = struct.unpack_from('=%dI' % MADE_MAX, self.memory, PLAN.size)
        self.memory[PLAN.size:PLAN.size + 4 * MADE_MAX] = bytes(4 * MADE_MAX)
        return {call: made[self.numbers[call]] for call in CALLS}

    def counts(self):
        """How many calls have failed, and how many there were."""
        return PLAN.unpack_from(self.memory)[4:6]

    def disarm(self):
        struct.pack_into('=i', self.memory, 0, -1)
        return self.counts()


def pairs():
    return [(call, error) for call, errors in CALLS.items() for error in errors.split()]


def possible():
    """Whether this kernel, or the container that we are in, has notifiers. A sanitizer takes each call that fails for the end."""
    if not SUPERVISE.exists() or INSTRUMENTED:
        return False
    path = BUILD / 'test' / ('plan-%d' % os.getpid())
    Plan(path)
    done = subprocess.run([SUPERVISE, path, '/bin/true'], capture_output=True)
    path.unlink()
    return done.returncode == 0
