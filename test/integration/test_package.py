# SPDX-License-Identifier: Apache-2.0
"""The Debian package in an operator's hands: installed without a runtime and with one, upgraded under containers, removed, purged.

Installs and purges nri-rp on this machine: runs only where NRI_RP_TEST_PACKAGE is set, in a virtual machine that is.
"""
import os
import pathlib
import pwd
import re
import shutil
import subprocess

import pytest

from containerd import cpus
from test_systemd import (BUILD, ONLINE, STATIC, in_force, needs_two_cpus, pods, runtime,  # noqa: F401, fixtures
                          skip_if_systemd_was_misled)
from units import Unit, run, under_systemd

NAME, USER = 'nri-rp', 'nri-rp-agent'
LATER = '9999'
POLICY_RC = pathlib.Path('/usr/sbin/policy-rc.d')
STATE, RUN, CONF, OPTIONS = map(pathlib.Path, ('/var/lib/nri-rp', '/run/nri-rp', '/etc/nri-rp', '/etc/default/nri-rp'))
# Where others than dpkg put files for a package, and what goes with the next boot.
KEPT_BY_OTHERS, UNTIL_BOOT = ('/etc', '/run', '/var/lib', '/var/log'), ('/run/systemd', '/run/udev', '/run/log', '/var/log/journal')
# Those of other tests.
NOT_OURS = '/run/nri-rp-sd-', '/var/lib/nri-rp-it-'
# What a removed package is remembered by.
REMEMBERED = '/etc/systemd/system/', '/var/lib/systemd/', '/var/lib/dpkg/'

needs_package = pytest.mark.skipif(not os.environ.get('NRI_RP_TEST_PACKAGE') or not shutil.which('dpkg'),
                                   reason='needs NRI_RP_TEST_PACKAGE=1, and a Debian that it may be installed on')
pytestmark = [under_systemd, needs_package]


def dpkg(*args, fails=False):
    """What it prints. The disk need not have it for good, nor man-db know of it."""
    done = run('dpkg', '--force-unsafe-io', '--no-triggers', *args, stdin=subprocess.DEVNULL, env=dict(os.environ, DEBIAN_FRONTEND='noninteractive'))
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def status(query):
    return run('dpkg-query', '-W', '-f', '${%s}' % query, NAME).stdout


class Package:
    def __init__(self, folder):
        self.folder = folder
        made = sorted((BUILD / 'deb').glob('nri-rp_*.deb'))
        assert len(made) == 1, 'run `make deb` first'
        self.deb, self.daemon = made[0], Unit('nri-rpd')

    def later(self):
        """The same as a later version."""
        tree, out = self.folder / 'later', self.folder / 'later.deb'
        if out.exists():
            return out
        subprocess.run(['dpkg-deb', '-R', self.deb, tree], check=True)
        control = tree / 'DEBIAN/control'
        control.write_text(re.sub(r'^Version: .*$', 'Version: ' + LATER, control.read_text(), flags=re.M))
        subprocess.run(['dpkg-deb', '-Znone', '--root-owner-group', '-b', tree, out], check=True, capture_output=True)
        return out

    def ours(self):
        """Files of this machine with the package's name."""
        of_the_package = {line.split()[5][1:].rstrip('/') for line in run('dpkg-deb', '-c', self.deb).stdout.splitlines()}
        found = set(run('find', *KEPT_BY_OTHERS, '-xdev', '-name', '*nri-rp*').stdout.split())
        found |= {f for f in of_the_package if NAME in f and os.path.lexists(f)}
        return {f for f in found if not f.startswith(UNTIL_BOOT + NOT_OURS)}

    def purge(self):
        if status('Status'):
            dpkg('--purge', NAME)


@pytest.fixture
def package(runtime, tmp_path):  # noqa: F811, a fixture
    """To be installed; its daemon will look for that runtime."""
    if POLICY_RC.exists():
        pytest.skip('this machine does not let packages start services: there is a %s' % POLICY_RC)
    assert not status('Status'), 'nri-rp is installed here'
    OPTIONS.write_text('NRI_RPD_OPTIONS=--nri-socket %s\n' % runtime.nri_socket)
    p = Package(tmp_path)
    p.before = p.ours()
    try:
        yield p
    finally:
        p.purge()
        shutil.rmtree(CONF, ignore_errors=True)
        OPTIONS.unlink(missing_ok=True)


def has_user():
    try:
        return bool(pwd.getpwnam(USER))
    except KeyError:
        return False


def ctl(*args):
    return run('/usr/bin/nri-rpctl', *args)


def test_without_a_runtime_it_is_installed_and_waits(package, runtime):  # noqa: F811
    runtime.stop()
    try:
        said = dpkg('-i', package.deb)
        assert 'nri-rpd is waiting for the runtime: connecting to %s failed' % runtime.nri_socket in said
        assert status('Status') == 'install ok installed'
        daemon = package.daemon
        assert [daemon.show(p) for p in ('ActiveState', 'UnitFileState', 'NRestarts')] == ['active', 'enabled', '0']
        assert has_user() and Unit('nri-rp-agent').show('ActiveState') == 'inactive'
        # Why nothing is placed is said wherever one looks.
        assert daemon.show('StatusText').startswith('waiting for the runtime: ') and str(runtime.nri_socket) in daemon.show('StatusText')
        shown = ctl('status')
        assert shown.returncode == 4 and 'not connected' in shown.stdout, shown.stdout + shown.stderr
        assert str(runtime.nri_socket) in shown.stdout
    finally:
        runtime.start()
    daemon.wait('connected', lambda: daemon.show('StatusText').startswith('connected to containerd'))
    assert ctl('status').returncode == 0

    package.purge()
    assert daemon.show('LoadState') == 'not-found'
    assert not has_user()
    assert package.ours() == package.before


def test_an_account_that_was_there_before_stays(package):
    subprocess.run(['useradd', '--system', USER], check=True)
    try:
        dpkg('-i', package.deb)
        package.purge()
        assert has_user()
    finally:
        subprocess.run(['userdel', USER], check=True)


def test_a_daemon_that_does_not_come_up_is_told_of(package):
    """A node that never had a configuration, and has a wrong one; a later installation of the same tries again."""
    own = CONF / 'rp.conf.d/own.conf'
    own.parent.mkdir(parents=True)
    own.write_text('policcy: static\n')
    said = dpkg('-i', package.deb, fails=True)
    assert 'nri-rpd does not start' in said and 'own.conf:1:1: policcy: unknown key' in said
    assert package.daemon.show('ActiveState') == 'failed'
    own.unlink()
    dpkg('-i', package.later())
    assert package.daemon.show('ActiveState') == 'active' and status('Status') == 'install ok installed'


def test_an_upgrade_over_a_refused_edit(package):
    """The daemon goes on with what was in force, and the installation says so."""
    dpkg('-i', package.deb)
    own = CONF / 'rp.conf.d/own.conf'
    own.write_text('policcy: static\n')
    said = dpkg('-i', package.later())
    assert 'degraded: ' in said and 'own.conf:1:1: policcy: unknown key' in said
    assert package.daemon.show('ActiveState') == 'active'
    assert ctl('status').returncode == 4
    own.unlink()


@needs_two_cpus
def test_containers_stay_through_upgrade_and_removal(package, pods):  # noqa: F811
    dpkg('-i', package.deb)
    daemon = package.daemon
    own = CONF / 'rp.conf.d/own.conf'
    own.write_text('policy: static\nstatic: %s\n' % STATIC)
    daemon.systemctl('reload', daemon.name)
    made = [pods('pinned').run('c', 1000), pods('shared', 'burstable').run('c', 100)]
    before, pid = list(map(in_force, made)), daemon.pid()
    assert len(cpus(made[0].allowed())) == 1
    assert cpus(made[1].allowed()) == set(ONLINE) - cpus(made[0].allowed())
    skip_if_systemd_was_misled(daemon, *made)

    # With a later version the daemon is a new one, and all are where they were.
    dpkg('-i', package.later())
    assert status('Version') == LATER
    assert daemon.pid() not in (0, pid)
    daemon.wait_journal('2 containers, 0 updates')
    assert list(map(in_force, made)) == before
    assert own.exists()

    # What is left is what was configured, what was decided, and until the next boot what the machine was like before.
    dpkg('-r', NAME)
    assert status('Status') == 'deinstall ok config-files'
    assert not daemon.show('MainPID').strip('0')
    assert list(map(in_force, made)) == before
    left = {f for f in package.ours() - package.before if not f.startswith(REMEMBERED)}
    assert left == set(map(str, (CONF, CONF / 'rp.conf', own.parent, STATE, RUN)))
    assert list(RUN.iterdir()) == [RUN / 'settings']
    assert own.exists()

    # Again: it runs, and finds them as it left them.
    dpkg('-i', package.deb)
    assert [daemon.show(p) for p in ('ActiveState', 'UnitFileState')] == ['active', 'enabled']
    daemon.wait('it has told of them twice', lambda: daemon.journal_text().count('2 containers, 0 updates') == 2)
    assert list(map(in_force, made)) == before

    # One that the operator has stopped stays so.
    daemon.systemctl('stop', daemon.name)
    dpkg('-i', package.later())
    assert daemon.show('ActiveState') == 'inactive'
    package.purge()
    assert list(map(in_force, made)) == before
    assert not STATE.exists() and not RUN.exists() and not (CONF / 'rp.conf').exists()
    assert own.exists(), 'the operator\'s own file is the operator\'s'
