# SPDX-License-Identifier: Apache-2.0
"""Memory that a program does not get, and a clock that jumps (test/preload/fault.c)."""
import mmap
import pathlib
import struct

from simnode import BUILD

PLAN = struct.Struct('=IiiIq')
SHIFT = struct.Struct('=q')
SHIFT_AT = PLAN.size - SHIFT.size
CALLS = ['malloc', 'calloc', 'realloc']


class Preload:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        with self.path.open('r+b') as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def command(self, *words):
        return ['/usr/bin/env', 'LD_PRELOAD=%s' % (BUILD / 'test' / 'fault.so'), 'FAULT_PLAN=%s' % self.path,
                'ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0', *map(str, words)]

    def arm(self, call, skip, fail=1):
        PLAN.pack_into(self.memory, 0, 0, skip, fail, 0, 0)
        struct.pack_into('=I', self.memory, 0, 1 + CALLS.index(call))

    def disarm(self):
        """How many calls have failed."""
        struct.pack_into('=I', self.memory, 0, 0)
        return PLAN.unpack_from(self.memory)[3]

    def shift(self, seconds):
        SHIFT.pack_into(self.memory, SHIFT_AT, seconds)
