# SPDX-License-Identifier: Apache-2.0
"""Whatever is broken when the service starts: containers that own CPUs own them still, by the kernel's word, and nobody new runs there.

A reboot needs a file tree that outlives it. Where that is lost with the machine, as of an emulated one, NRI_RP_TEST_DISK names a folder that is
there in the next boot, too: one run leaves there what the disk has, and the next one, in another boot, goes on from that.
"""
import os
import pathlib
import shutil
import subprocess

import pytest

import test_package
from containerd import cpus
from test_package import CONF, OPTIONS, dpkg, needs_package, package  # noqa: F401, a fixture
from test_systemd import BUILD, NAME, ONLINE, RUN, STATE, STATIC, idle, needs_two_cpus, pods, runtime  # noqa: F401, fixtures
from units import Unit, run, under_systemd

pytestmark = [under_systemd, needs_two_cpus]
DISK = os.environ.get('NRI_RP_TEST_DISK')
BOOT = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().strip()
DEGRADED = 4
RESERVED = 'reservedResources: {cpu: "cpuset:%d"}' % ONLINE[0]
POLICIES = {
    'static': STATIC,
    'topology-aware': '{%s}' % RESERVED,
    'balloons': '{%s, balloonTypes: [{name: own, namespaces: [own], preferNewBalloons: true}]}' % RESERVED,
}
both_runtimes = pytest.mark.parametrize('runtime', ['2', '1.7'], indirect=True, ids=lambda release: 'containerd-' + release)


# ---- what may be broken ------------------------------------------------------------------------------------------------------------

def refused_edit(service):
    service.conf.write_text(service.conf.read_text() + 'policcy: none\n')


def unreadable(service):
    service.conf.unlink()
    service.conf.mkdir()


def not_permitted(service):
    """Not even to root, which has no capability in the unit."""
    service.conf.chmod(0)


def empty(service):
    service.conf.write_text('')


def wrong_major(service):
    """What an upgrade may leave behind: modules are replaced, and this one was not built again."""
    shutil.copy(BUILD / 'test/modules/wrong-major.so', service.module())


def no_module(service):
    service.module().unlink()


def no_controller(service):
    service.module('cpu').unlink()


def state_read_only(service):
    """As when the disk has gone bad, and its file system read-only."""
    run('mount', '--bind', STATE, STATE)
    run('mount', '-o', 'remount,ro,bind', STATE)


def another_disk(folder):
    """Nothing of ours is on it, the folder's mode is not the one that is wanted, and nobody can change that."""
    run('mount', '-t', 'tmpfs', '-o', 'ro,mode=755', 'nothing', folder)


def no_state(service):
    another_disk(STATE)


def no_state_and_refused_edit(service):
    no_state(service)
    refused_edit(service)


def no_run(service):
    another_disk(RUN)


def store_gone(service):
    """What a reboot leaves: configurations, and no placements; with a wrong one on disk."""
    refused_edit(service)
    for file in STATE.glob('store*'):
        file.unlink()


def everything(service):
    """All that can be at the same time: rp.conf is empty, of its parts one is refused and one cannot be read, …"""
    parts = pathlib.Path(str(service.conf) + '.d')
    parts.mkdir()
    empty(service)
    (parts / '10-edit.conf').write_text('policcy: none\n')
    (parts / '20-folder.conf').mkdir()
    for damage in (wrong_major, no_controller, state_read_only):
        damage(service)


# What is done, and what the operator is told: the first reason by the unit's status text, all of them by status and doctor.
DAMAGES = {
    'refused edit': (refused_edit, ['policcy: unknown key']),
    'unreadable': (unreadable, ['rp.conf: cannot be read: Is a directory']),
    'not permitted': (not_permitted, ['rp.conf: cannot be opened: Permission denied']),
    'empty': (empty, ['the configuration is empty']),
    'store gone': (store_gone, ['policcy: unknown key']),
    'wrong major': (wrong_major, ['built for ABI 2.0']),
    'no module': (no_module, ['no module']),
    'state read-only': (state_read_only, ['the state cannot be written']),
    'no state': (no_state, ['the active configuration cannot be saved for later starts', 'the state cannot be written']),
    'no state, refused edit': (no_state_and_refused_edit, ['policcy: unknown key', 'the state cannot be written']),
    'no run-time directory': (no_run, ['the run-time directory cannot be used']),
    'everything': (everything, ['cannot be read: Is a directory', 'policcy: unknown key', 'built for ABI 2.0', 'the state cannot be written']),
}
CASES = [('static', name) for name in DAMAGES] + [
    (policy, name) for policy in ('topology-aware', 'balloons') for name in ('refused edit', 'no module', 'no state', 'everything')]


def mend(service, policy):
    for folder in (STATE, RUN):
        run('umount', folder)
    for path in (service.conf, pathlib.Path(str(service.conf) + '.d')):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    service.override('')
    service.configure(policy, POLICIES[policy], CONTROLLERS)
    for module in (policy, 'cpu'):
        shutil.copy(BUILD / 'modules' / (module + '.so'), service.module(module))


# ---- what it costs -----------------------------------------------------------------------------------------------------------------

CONTROLLERS = 'controllers: [cpu]\n'


def flat(text):
    return ' '.join(text.split())


def new_pods(pods, suffix=''):  # noqa: F811
    """One that asks for CPUs of its own, one that shares."""
    return pods('new' + suffix, namespace='own').run('c', 1000), pods('shared' + suffix, 'burstable').run('c', 100)


def nobody_runs_on(owned, *containers):
    for c in containers:
        assert cpus(c.allowed()) and not cpus(c.allowed()) & owned and cpus(c.allowed()) <= set(ONLINE)


def show(what, own, made, unit):
    print('\n%s: owned %s, %s; unit: %s' % (what, own.allowed(), ', '.join('new %s' % c.allowed() for c in made), unit.show('StatusText')))


@both_runtimes
@pytest.mark.parametrize('policy, name', CASES, ids=['%s-%s' % case for case in CASES])
def test_a_start_costs_nobody_his_cpus(idle, pods, policy, name):  # noqa: F811
    service, (damage, reasons) = idle, DAMAGES[name]
    service.module = lambda module=policy: service.dir / 'modules' / (module + '.so')

    def ctl(command):
        done = run(service.dir / 'bin/nri-rpctl', '--socket', service.socket, command)
        return done.returncode, done.stdout
    service.configure(policy, POLICIES[policy], CONTROLLERS)
    service.start()
    own = pods('own', namespace='own').run('c', 1000)
    before = cpus(own.allowed())
    assert len(before) == 1
    service.systemctl('stop', NAME)
    try:
        damage(service)
        service.start()
        service.synchronized(service.pid())
        made = new_pods(pods)
        show('%s, %s' % (policy, name), own, made, service)
        assert cpus(own.allowed()) == before
        nobody_runs_on(before, *made)
        told = service.show('StatusText')
        assert 'degraded' in told and reasons[0] in told, told
        for command in ('status', 'doctor') if damage != no_run else ():
            code, text = ctl(command)
            print(text)
            assert code == DEGRADED
            assert [r for r in reasons if r not in flat(text)] == [], text
    finally:
        mend(service, policy)
    # What is whole again is in force at the next start, and nobody has moved.
    service.systemctl('restart', NAME)
    service.synchronized(service.pid())
    assert cpus(own.allowed()) == before
    code, text = ctl('status')
    assert code == 0, text


# ---- a package, from the edit to the next boot -------------------------------------------------------------------------------------

# Where dpkg and the service manager remember a package.
REMEMBERED = '/etc/systemd/system', '/var/lib/dpkg', '/var/lib/systemd', '/etc/passwd', '/etc/group'
EDIT = 'policy: static\npolcy: none\nstatic: %s\n' % STATIC


def disk(release):
    return pathlib.Path(DISK, 'containerd-%s.tar' % release)


def leave_disk(release):
    listed = run('dpkg', '-L', 'nri-rp').stdout.split('\n')
    files = [f for f in listed if os.path.isfile(f)] + [str(f) for f in (*REMEMBERED, CONF, OPTIONS, test_package.STATE) if os.path.exists(f)]
    subprocess.run(['tar', '-C', '/', '-cPf', disk(release), *files], check=True)
    disk(release).with_suffix('.boot').write_text(BOOT)


def is_refused_but_safe(what, daemon, own, pods):  # noqa: F811
    before = cpus(own.allowed())
    assert len(before) == 1
    made = new_pods(pods, '-' + what)
    show(what, own, made, daemon)
    assert cpus(own.allowed()) == before
    nobody_runs_on(before, *made)
    nobody_runs_on(cpus(made[0].allowed()), made[1])
    assert len(cpus(made[0].allowed())) == 1, 'the policy that was in force is'
    told = daemon.show('StatusText')
    assert 'degraded' in told and 'own.conf:2:1: polcy: unknown key' in told
    for command in ('status', 'doctor'):
        done = test_package.ctl(command)
        print(done.stdout)
        assert done.returncode == DEGRADED and 'polcy: unknown key' in flat(done.stdout)


@needs_package
@both_runtimes
def test_edit_restart_upgrade(package, pods, runtime):  # noqa: F811
    """A refused edit stays on disk, and what follows it costs nobody his CPUs; what a reboot makes of it is the next test's."""
    dpkg('-i', package.deb)
    daemon, part = package.daemon, CONF / 'rp.conf.d/own.conf'
    part.write_text(EDIT.replace('polcy: none\n', ''))
    daemon.systemctl('reload', daemon.name)
    own = pods('own', namespace='own').run('c', 1000)
    owned = cpus(own.allowed())
    part.write_text(EDIT)
    assert run('systemctl', 'reload', daemon.name).returncode != 0
    is_refused_but_safe('edit', daemon, own, pods)
    daemon.systemctl('restart', daemon.name)
    is_refused_but_safe('restart', daemon, own, pods)
    said = dpkg('-i', package.later())
    print(said)
    assert 'degraded: ' in said and 'polcy: unknown key' in said
    is_refused_but_safe('upgrade', daemon, own, pods)
    assert cpus(own.allowed()) == owned
    if DISK:
        daemon.systemctl('stop', daemon.name)
        leave_disk(runtime.release)


@needs_package
@both_runtimes
def test_after_the_reboot(runtime, pods):  # noqa: F811
    """The containers are gone with the boot before, and so is all that was known of them; the refused edit is there still."""
    if not DISK or not disk(runtime.release).exists():
        pytest.skip('no earlier boot has left anything: NRI_RP_TEST_DISK')
    if disk(runtime.release).with_suffix('.boot').read_text() == BOOT:
        pytest.skip('this is the boot yet that has left it')
    subprocess.run(['tar', '-C', '/', '-xPf', disk(runtime.release)], check=True)
    OPTIONS.write_text('NRI_RPD_OPTIONS=--nri-socket %s\n' % runtime.nri_socket)
    daemon = Unit('nri-rpd')
    try:
        daemon.systemctl('daemon-reload')
        assert test_package.status('Status') == 'install ok installed' and daemon.show('UnitFileState') == 'enabled'
        daemon.start()
        own = pods('own', namespace='own').run('c', 1000)
        is_refused_but_safe('reboot', daemon, own, pods)
        # Each boot goes on with it.
        daemon.systemctl('restart', daemon.name)
        is_refused_but_safe('again', daemon, own, pods)
    finally:
        dpkg('--purge', 'nri-rp')
        shutil.rmtree(CONF, ignore_errors=True)
        OPTIONS.unlink(missing_ok=True)
