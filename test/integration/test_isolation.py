# SPDX-License-Identifier: Apache-2.0
"""Whatever is broken when the service starts: containers that own CPUs own them still, by the kernel's word, and nobody new runs there."""
import pathlib
import shutil

import pytest

from containerd import cpus
from test_systemd import (BUILD, NAME, ONLINE, STATIC, idle, needs_two_cpus, pods,  # noqa: F401, fixtures
                          run, runtime, service)
from units import under_systemd

pytestmark = under_systemd
STATE = pathlib.Path('/var/lib/' + NAME)
DEGRADED = 4


def refused_edit(service):
    service.configure('static', STATIC, 'policcy: none\n')


def unreadable(service):
    service.conf.unlink()
    service.conf.mkdir()


def empty(service):
    service.conf.write_text('')


def wrong_major(service):
    """What an upgrade may leave behind: modules are replaced, and this one was not built again."""
    shutil.copy(BUILD / 'test/modules/wrong-major.so', service.dir / 'modules/static.so')


def no_module(service):
    (service.dir / 'modules/static.so').unlink()


def no_state(service):
    """As when the disk has gone bad, and its file system read-only."""
    run('mount', '--bind', STATE, STATE)
    run('mount', '-o', 'remount,ro,bind', STATE)


def another_boot(service):
    """What a reboot leaves: configurations, and no placements; with a wrong one on disk."""
    refused_edit(service)
    for file in STATE.glob('store*'):
        file.unlink()


DAMAGES = {
    'refused edit': ([refused_edit], 'policcy: unknown key'),
    'unreadable': ([unreadable], 'rp.conf'),
    'empty': ([empty], 'there is nothing in it'),
    'another boot': ([another_boot], 'policcy: unknown key'),
    'wrong major': ([wrong_major], 'static'),
    'no module': ([no_module], 'static'),
    'state cannot be written': ([no_state], 'the state cannot be written'),
    'all at once': ([refused_edit, wrong_major, no_state], 'policcy: unknown key'),
}


def mend(service):
    if service.conf.is_dir():
        service.conf.rmdir()
    run('umount', STATE)
    service.configure('static', STATIC)
    shutil.copy(BUILD / 'modules/static.so', service.dir / 'modules/static.so')


def ctl(service, *args):
    return run(service.dir / 'bin/nri-rpctl', '--socket', service.socket, *args)


@needs_two_cpus
@pytest.mark.parametrize('name', DAMAGES)
def test_a_start_costs_nobody_his_cpus(service, pods, name):  # noqa: F811
    damages, reason = DAMAGES[name]
    own = pods('own').run('c', 1000)
    before = cpus(own.allowed())
    assert len(before) == 1
    service.systemctl('stop', NAME)
    for damage in damages:
        damage(service)
    try:
        service.start()
        service.synchronized(service.pid())
        new, shared = pods('new').run('c', 1000), pods('shared', 'burstable').run('c', 100)
        told = service.show('StatusText')
        status, doctor = ctl(service, 'status'), ctl(service, 'doctor')
        print('%s: owned %s, new %s, shared %s; unit: %s; status: %d' % (name, own.allowed(), new.allowed(), shared.allowed(), told,
                                                                      status.returncode))
        assert cpus(own.allowed()) == before
        assert not cpus(new.allowed()) & before and not cpus(shared.allowed()) & before
        assert cpus(shared.allowed()) <= set(ONLINE)
        assert 'degraded' in told and reason in told, told
        assert status.returncode == DEGRADED and reason in status.stdout, status.stdout
        assert doctor.returncode == DEGRADED, doctor.stdout
    finally:
        mend(service)
    # What is whole again is in force at the next start, and nobody has moved.
    service.systemctl('restart', NAME)
    service.synchronized(service.pid())
    assert cpus(own.allowed()) == before and ctl(service, 'status').returncode == 0
