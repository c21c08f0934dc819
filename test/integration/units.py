# SPDX-License-Identifier: Apache-2.0
"""A unit of systemd for as long as a test takes."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from containerd import wait_for

under_systemd = pytest.mark.skipif(not os.path.isdir('/run/systemd/system') or os.geteuid() != 0,
                                   reason='needs root and systemd as process 1')


def run(*args, **kwargs):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, **kwargs)


class Unit:
    def __init__(self, name):
        self.name, self.file = name, pathlib.Path('/run/systemd/system/%s.service' % name)
        self.dropins = pathlib.Path(str(self.file) + '.d')
        self.began = time.time()

    def put(self, text):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)
        self.systemctl('daemon-reload')

    def remove(self):
        run('systemctl', 'stop', self.name)
        self.file.unlink(missing_ok=True)
        shutil.rmtree(self.dropins, ignore_errors=True)
        run('systemctl', 'daemon-reload')
        run('systemctl', 'reset-failed', self.name)

    def override(self, text):
        self.dropins.mkdir(exist_ok=True)
        (self.dropins / 'test.conf').write_text('[Service]\n' + text)
        self.systemctl('daemon-reload')

    def systemctl(self, *args):
        done = run('systemctl', *args)
        assert done.returncode == 0, done.stderr + self.journal_text()
        return done.stdout.strip()

    def show(self, prop):
        return self.systemctl('show', '-P', prop, self.name)

    def pid(self):
        return int(self.show('MainPID'))

    def start(self):
        self.systemctl('start', self.name)

    def journal(self):
        done = run('journalctl', '--no-pager', '-o', 'json', '-u', self.name, '--since', '@%d' % self.began)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def journal_text(self):
        return '\n'.join(str(e.get('MESSAGE')) for e in self.journal())

    def wait(self, what, fn, seconds=120.0):
        try:
            return wait_for(what, fn, seconds)
        except AssertionError as e:
            raise AssertionError('%s\n%s' % (e, self.journal_text())) from None

    def wait_journal(self, pattern, seconds=120.0):
        return self.wait('%s in the journal' % pattern, lambda: re.search(pattern, self.journal_text()), seconds)
