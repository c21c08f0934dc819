# SPDX-License-Identifier: Apache-2.0
"""CPU classes of Intel Speed Select, with the real daemon and a made-up driver (test/preload/isst.c): what is set up, in which order, which CPUs
are in which class of service, what is taken back."""
import errno
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from simnode import BUILD, ctr, eventually

from test_controllers import get, put

DEVICE = 'dev/isst_interface'
# n4c16: with TPMI a punit is a memory node, with mailboxes a package. Features 3: SST-CP and SST-TF.
TPMI = ('api 2\nthreads 2\npunit 0 0 0 3 3 0 1 2\npunit 0 1 4 7 3 0 1 2\npunit 1 0 8 11 3 0 2 3\npunit 1 1 12 15 3 0 1 2\n', 4)
MAILBOX = ('api 1\nmmio 1\nthreads 2\npunit 0 0 0 7 3 0 2 4\npunit 1 0 8 15 3 0 2 5\n', 2)
OLD_MAILBOX = (MAILBOX[0].replace('mmio 1', 'mmio 0'), 2)
PLATFORMS = {'tpmi': TPMI, 'mailbox': MAILBOX, 'mailbox without registers': OLD_MAILBOX}

CLASSES = [{'name': 'hi', 'pctPriority': 'high', 'pctMinFreq': '2.5GHz', 'pctMaxFreq': '3.8GHz', 'publishExtendedResource': True},
           {'name': 'lo', 'pctPriority': 'low', 'minFreq': '800MHz', 'maxFreq': '2.1GHz'}]
BALLOONS = {'reservedResources': {'cpu': 'cpuset:15'}, 'idleCPUClass': 'lo',
            'balloonTypes': [{'name': 'fast', 'cpuClass': 'hi', 'preferNewBalloons': True}, {'name': 'slow', 'cpuClass': 'lo'}]}
MANAGED = {'policy': 'balloons', 'balloons': {**BALLOONS, 'cpuClasses': CLASSES}}
ASSOCIATED = {'policy': 'balloons', 'balloons': {
    **BALLOONS, 'cpuClasses': [{'name': 'hi', 'sstClosID': 1}, {'name': 'lo', 'sstClosID': 2}], 'idleCPUClass': ''}}
TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {
    'reservedResources': {'cpu': 'cpuset:15'}, 'cpuClasses': CLASSES, 'sharedPoolCPUClass': 'lo', 'defaultExclusiveCPUClass': 'hi'}}
FAST = {'balloon.balloons.resource-policy.nri.io': 'fast'}


@pytest.fixture
def platform(make_node):
    """A node with a device, and what the driver knows."""
    def make(config, device=TPMI, now=None, under=()):
        return Platform(make_node, config, device, now, under)
    return make


class Platform:
    def __init__(self, make_node, config, device, now, under=()):
        env = {'LD_PRELOAD': BUILD / 'test' / 'isst.so', 'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0'}
        daemon = ' '.join([*under, '/usr/bin/env', *('%s=%s' % pair for pair in env.items()), str(BUILD / 'bin' / 'nri-rpd'),
                           '--config {config} --nri-socket {socket} --host-root {root} --state-dir {state} --control-socket {control}'])
        self.node = make_node(config, start=False, daemon=daemon, module_dirs=[BUILD / 'modules'])
        self.n_punits = device[1]
        self.file('', device[0])
        if now:
            self.file('.now', now)
        self.node.start()

    def file(self, suffix, text):
        put(self.node, DEVICE + suffix, text)

    def read(self, suffix):
        try:
            return get(self.node, DEVICE + suffix)
        except FileNotFoundError:
            return ''

    def log(self):
        """What was written, in order."""
        return self.read('.log').splitlines()

    def clos(self):
        """CPUs by the class of service that they are in now."""
        found = {}
        for cpu, clos in re.findall(r'^cpu (\d+) (\d+)$', self.read('.now'), re.M):
            found.setdefault(int(clos), set()).add(int(cpu))
        return found

    def features(self):
        """Of each punit: CP 1, TF 2, and whether its priority is ordered."""
        return re.findall(r'^punit \d+ \d+ on (\d+) ordered (\d+)$', self.read('.now'), re.M)

    def refuse(self, command, error):
        self.file('.fail', '%s %d\n' % (command, error))

    def is_up(self):
        return self.features() == [('3', '1')] * self.n_punits

    def idle(self):
        """Set up, and all CPUs idle."""
        return self.is_up() and self.clos() == {3: set(range(16))}


@pytest.mark.parametrize('device', PLATFORMS.values(), ids=PLATFORMS)
def test_set_up_in_order(platform, device):
    """Each punit: the reset, SST-TF, the priority; then the classes by number; SST-CP when all of that is done."""
    p = platform(MANAGED, device)
    eventually(p.idle)
    log = p.log()
    punits = sorted({tuple(line.split()[1:3]) for line in log if line.startswith('tf ')})
    assert len(punits) == p.n_punits
    last_high = max(i for i, line in enumerate(log) if line.endswith('0 min 2500 max 3800'))
    first_low = min(i for i, line in enumerate(log) if line.endswith('3 min 800 max 2100'))
    assert last_high < first_low
    for package, punit in punits:
        at = ' %s %s ' % (package, punit)
        order = [log.index(line) for line in ('clos' + at + '3 min 0 max 25500', 'tf' + at + 'on', 'priority' + at + 'ordered',
                                              'clos' + at + '0 min 2500 max 3800', 'clos' + at + '3 min 800 max 2100', 'cp' + at + 'on')]
        assert order == sorted(order)
        assert log.index('cp' + at + 'on') > max(i for i, line in enumerate(log) if line.startswith('clos'))
    # Only then do CPUs follow.
    assert min(i for i, line in enumerate(log) if line.startswith('assoc')) > max(i for i, line in enumerate(log) if line.startswith('cp'))


@pytest.mark.parametrize('device', PLATFORMS.values(), ids=PLATFORMS)
def test_cpus_follow(platform, device):
    p = platform(MANAGED, device)
    eventually(p.idle)
    before = len(p.log())
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    own = p.node.cpus('a/c')
    assert len(own) == 2
    eventually(lambda: p.clos() == {0: own, 3: set(range(16)) - own})
    # Those alone, and nothing else of the platform.
    assert {line.split()[0] for line in p.log()[before:]} == {'assoc'}
    p.node.delete('a')
    eventually(p.idle)


def test_most_room_first(platform):
    """Of four punits one has room for three high CPUs; containers of other classes keep away from it."""
    p = platform(MANAGED)
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    assert p.node.cpus('a/c') <= {8, 9, 10, 11}
    p.node.create('b', ctr('c', '3/3', '64Mi'), annotations={'balloon.balloons.resource-policy.nri.io': 'slow'})
    assert not p.node.cpus('b/c') & {8, 9, 10, 11}


def test_associated_only(platform):
    """Somebody else has set the platform up: CPUs are put into classes, and stay there."""
    now = ''.join('punit %d %d on 3 ordered 1\nclos %d %d 1 min 0 max 3800 weight 0\nclos %d %d 2 min 0 max 2000 weight 0\n' % (3 * (i, j))
                  for i in (0, 1) for j in (0, 1))
    p = platform(ASSOCIATED, TPMI, now)
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    own = p.node.cpus('a/c')
    eventually(lambda: p.clos().get(1) == own)
    p.node.delete('a')
    p.node.create('b', ctr('c', '2/2', '64Mi'), annotations=FAST)
    # They are in the class already.
    assert p.node.cpus('b/c') == own
    p.node.stop()
    assert p.clos().get(1) == own
    assert p.features() == [('3', '1')] * 4
    assert {line.split()[0] for line in p.log()} == {'assoc'}


@pytest.mark.parametrize('command', ['tf', 'clos', 'assoc', 'cp', 'priority'])
def test_refused_and_tried_again(platform, command):
    """What the driver refuses is told, and done when it does not any more. A refused write does not hold up a container."""
    p = platform(MANAGED)
    eventually(p.idle)
    p.node.stop()
    p.refuse(command, errno.EIO)
    p.node.start()
    p.node.log('Speed Select.*Input/output error')
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    assert not p.is_up() or command == 'assoc'
    p.file('.fail', '')
    eventually(lambda: p.is_up() and p.clos().get(0) == p.node.cpus('a/c'), 40)


def test_locked(platform):
    """A platform that the firmware has locked: it is told once, containers run as ever."""
    p = platform({'policy': 'none'})
    p.file('.fail', ''.join('%s %d\n' % (c, errno.EPERM) for c in ('clos', 'tf', 'cp', 'assoc', 'priority')))
    p.node.config(MANAGED)
    p.node.log('Speed Select.*Operation not permitted')
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    assert len(p.node.cpus('a/c')) == 2
    assert p.log() == []


def test_firmware_without_power_management(platform):
    """Mailboxes have two switches for SST-CP. Firmware that refuses the one has the platform set up with the other, and nobody complains."""
    p = platform({'policy': 'none'}, MAILBOX)
    p.file('.fail', 'pm %d\n' % errno.ENXIO)
    p.node.config(MANAGED)
    eventually(p.idle)
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    own = p.node.cpus('a/c')
    eventually(lambda: p.clos() == {0: own, 3: set(range(16)) - own})
    p.node.stop()
    assert {on for on, _ in p.features()} == {'0'}
    assert 'Speed Select' not in p.node.read_log()


def test_a_restart_keeps(platform):
    """Killed and started again it finds all as it should be, and writes nothing."""
    p = platform(MANAGED)
    eventually(p.idle)
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    own = p.node.cpus('a/c')
    eventually(lambda: p.clos().get(0) == own)
    before = p.log()
    p.node.kill()
    p.node.allow('died')
    p.node.start()
    p.node.create('b', ctr('c', '1/1', '64Mi'), annotations=FAST)
    eventually(lambda: p.clos().get(0, set()) >= own | p.node.cpus('b/c'))
    assert p.node.cpus('a/c') == own
    # All that was written is about the new one.
    assert {line.split()[0] for line in p.log()[len(before):]} == {'assoc'}
    assert not own & {int(line.split()[1]) for line in p.log()[len(before):]}


@pytest.mark.parametrize('device', PLATFORMS.values(), ids=PLATFORMS)
def test_a_stop_takes_back(platform, device):
    p = platform(MANAGED, device)
    eventually(p.idle)
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    eventually(lambda: 0 in p.clos())
    p.node.stop()
    assert p.clos() == {0: set(range(16))}
    assert {on for on, _ in p.features()} == {'0'}
    assert re.findall(r' min (\d+) max (\d+) ', p.read('.now')) == [('0', '25500')] * 4 * p.n_punits
    log = p.log()
    for package, punit in {tuple(line.split()[1:3]) for line in log if line.startswith('tf ')}:
        at = ' %s %s ' % (package, punit)
        assert log.index('tf' + at + 'off') < len(log) - 1 - log[::-1].index('cp' + at + 'off')


def test_other_configurations(platform):
    """Classes that change are programmed anew; without any the platform is given back."""
    p = platform(MANAGED)
    eventually(p.idle)
    faster = [{**CLASSES[0], 'pctMaxFreq': '4GHz'}, CLASSES[1]]
    p.node.config({'policy': 'balloons', 'balloons': {**BALLOONS, 'cpuClasses': faster}})
    eventually(lambda: p.idle() and p.read('.now').count('0 min 2500 max 4000') == 4)
    p.node.config({'policy': 'balloons', 'balloons': {'reservedResources': {'cpu': 'cpuset:15'}}})
    eventually(lambda: {on for on, _ in p.features()} == {'0'} and p.clos() == {0: set(range(16))})


def test_another_policy_takes_over(platform):
    """The policy that goes leaves what the next one has set up."""
    p = platform(MANAGED)
    eventually(p.idle)
    before = len(p.log())
    p.node.config(TOPOLOGY_AWARE)
    p.node.create('a', ctr('c', '2/2', '64Mi'))
    own = p.node.cpus('a/c')
    eventually(lambda: p.clos().get(0) == own)
    assert p.is_up()
    assert not [line for line in p.log()[before:] if line.startswith(('tf', 'cp'))]
    p.node.config({'policy': 'none'})
    eventually(lambda: {on for on, _ in p.features()} == {'0'})


def test_a_plan_changes_nothing(platform, tmp_path):
    """What would be is found out in a process of its own, that may look but not touch."""
    p = platform({'policy': 'none', 'modules': {'path': [str(BUILD / 'modules')]}})
    file = tmp_path / 'rp.conf'
    file.write_text(json.dumps({**MANAGED, 'modules': {'path': [str(BUILD / 'modules')]}}))
    p.node.ctl('plan', str(file))
    assert p.log() == []


def test_cpus_come_and_go(platform):
    """What is set up stays when the machine changes; CPUs that come back follow again."""
    p = platform(MANAGED)
    eventually(p.idle)
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    own = p.node.cpus('a/c')
    eventually(lambda: p.clos().get(0) == own)
    before = len(p.log())
    p.node.offline('0-1')
    p.node.signal('HUP')
    p.node.log('the topology of the machine has changed: CPUs went offline: 0-1')
    p.node.create('b', ctr('c', '1/1', '64Mi'), annotations=FAST)
    eventually(lambda: p.clos().get(0, set()) >= own | p.node.cpus('b/c'))
    p.node.online('0-1')
    p.node.signal('HUP')
    p.node.log('the topology of the machine has changed: CPUs came online: 0-1')
    p.node.delete('a', 'b')
    eventually(p.idle)
    assert {line.split()[0] for line in p.log()[before:]} == {'assoc'}


def test_controller(platform):
    """The controller cpu does the same for containers of any policy."""
    p = platform({'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}, 'controllers': ['cpu'], 'cpu': {'cpuClasses': CLASSES}})
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations={'cpuclass.resource-policy.nri.io': 'hi'})
    own = p.node.cpus('a/c')
    eventually(lambda: p.is_up() and p.clos() == {0: own, 3: set(range(16)) - own})
    p.node.delete('a')
    eventually(p.idle)
    p.node.stop()
    assert {on for on, _ in p.features()} == {'0'}


def test_topology_aware(platform):
    """Exclusive CPUs are high where there is room for them, and go back to the class of shared ones."""
    p = platform(TOPOLOGY_AWARE)
    eventually(p.idle)
    p.node.create('a', ctr('c', '3/3', '64Mi'))
    own = p.node.cpus('a/c')
    assert own <= {8, 9, 10, 11}  # room for three is nowhere else
    eventually(lambda: p.clos().get(0, set()) >= own)
    p.node.delete('a')
    eventually(p.idle)
    p.node.stop()
    assert {on for on, _ in p.features()} == {'0'}


def test_what_is_shown(platform):
    p = platform(MANAGED)
    eventually(p.idle)
    # 1 + 1 + 2 + 1 CPUs can be as fast as it gets.
    assert p.node.ctl('status')['extended_resources'] == {
        'own': ['cpuclass.balloons.nri.io/*'], 'resources': [{'name': 'cpuclass.balloons.nri.io/hi', 'amount': 5}]}
    shown = p.node.ctl('topology')['speed_select']
    assert shown['missing'] is None
    assert [(u['package'], u['punit'], u['cpus']) for u in shown['punits']] == [(0, 0, '0-3'), (0, 1, '4-7'), (1, 0, '8-11'), (1, 1, '12-15')]
    assert all(u['enabled'] == u['supported'] == ['SST-CP', 'SST-TF'] and u['priority'] == 'ordered' for u in shown['punits'])
    assert shown['punits'][2]['high_priority_cores'] == [2, 3]
    assert shown['punits'][0]['clos'][0] == {'id': 0, 'min_mhz': 2500, 'max_mhz': 3800, 'weight': 0}


def test_shown_as_it_is_now(platform):
    """Whatever the policy, and whoever has set it up since: nri-rpctl topology asks the hardware."""
    p = platform({'policy': 'none'}, MAILBOX)
    assert [u['enabled'] for u in p.node.ctl('topology')['speed_select']['punits']] == [[], []]
    p.file('.now', 'punit 1 0 on 3 ordered 1\nclos 1 0 2 min 500 max 3000 weight 0\n')
    shown = p.node.ctl('topology')
    assert [u['enabled'] for u in shown['speed_select']['punits']] == [[], ['SST-CP', 'SST-TF']]
    assert shown['speed_select']['punits'][1]['clos'][2] == {'id': 2, 'min_mhz': 500, 'max_mhz': 3000, 'weight': 0}
    assert shown['policy'] == 'none' and len(shown['cpus']) == 16
    # What cannot be asked any more is no reason to show nothing of the rest.
    p.file('.fail', 'platform %d\n' % errno.EIO)
    assert 'Input/output error' in p.node.ctl('topology')['speed_select']['missing']


def test_reload_looks_anew(platform):
    """Classes that somebody else programs while the daemon runs are known after a reload of the same configuration: one class is high then."""
    p = platform(ASSOCIATED)
    p.node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    eventually(lambda: p.clos().get(1) == p.node.cpus('a/c'))
    p.file('.now', ''.join('punit %d %d on 3 ordered 1\nclos %d %d 1 min 0 max 3800 weight 0\nclos %d %d 2 min 0 max 2000 weight 0\n' % (3 * (i, j))
                           for i in (0, 1) for j in (0, 1)))
    p.node.reload()
    # Room for three is in one punit alone; the other class keeps away from it.
    p.node.create('b', ctr('c', '2/2', '64Mi'), annotations=FAST)
    assert p.node.cpus('b/c') <= {8, 9, 10, 11}
    p.node.create('d', ctr('c', '2/2', '64Mi'), annotations={'balloon.balloons.resource-policy.nri.io': 'slow'})
    assert not p.node.cpus('d/c') & {8, 9, 10, 11}


def text_of(node, *words):
    done = subprocess.run([str(BUILD / 'bin' / 'nri-rpctl'), '--socket', node.paths['control'], *words], stdout=subprocess.PIPE, text=True, timeout=60)
    return done.stdout


def test_text(platform):
    p = platform(MANAGED)
    eventually(p.idle)
    assert 'Extended' in text_of(p.node, 'status') and 'cpuclass.balloons.nri.io/hi 5' in text_of(p.node, 'status')
    for options in ([], ['--table']):
        lines = [line.split() for line in text_of(p.node, 'topology', *options).splitlines()]
        assert ['1', '0', '8-11', 'SST-CP', 'SST-TF', 'ordered', '2,', '3'] in [line[:8] for line in lines]
    assert 'Speed Select has 4 punits' in text_of(p.node, 'doctor')
    p.node.stop()
    p.file('', 'api 0\n')
    p.node.start()
    assert 'Speed Select cannot be used' in text_of(p.node, 'doctor')


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which('setpriv'), reason='needs root and setpriv')
def test_doctor_tells_how(platform):
    """A daemon that may not change the platform: what to copy is told, and it is a file that is installed."""
    p = platform(MANAGED, under=['/usr/bin/setpriv', '--bounding-set=-sys_admin'])
    doctor = text_of(p.node, 'doctor')
    assert 'Speed Select has 4 punits; changing them needs CAP_SYS_ADMIN' in doctor
    (file,) = re.findall(r'install -D -m 644 -t /etc/systemd/system/nri-rpd.service.d \S+/systemd/(\S+)', doctor)
    text = (pathlib.Path(__file__).resolve().parents[2] / 'packaging' / 'systemd' / (file + '.in')).read_text()
    assert '\n[Service]\nCapabilityBoundingSet=CAP_SYS_ADMIN\n' in text


def test_warned_once(make_node, tmp_path):
    """What a module warns of is said once a configuration: by the daemon, by the trial when nothing comes of it, and of a plan in its answer."""
    config = {**MANAGED, 'modules': {'path': [str(BUILD / 'modules')]}}
    node = make_node(config)

    def warnings():
        return node.read_log().count('no effect without Speed Select')
    assert warnings() == 1
    node.config(config)
    assert warnings() == 2
    file = tmp_path / 'rp.conf'
    file.write_text(json.dumps(config))
    assert any('no effect without Speed Select' in line for line in node.ctl('plan', str(file))['problems'])
    assert warnings() == 2
    # The trial's word is the only one here.
    node.badconfig({**config, 'controllers': {'rdt': 'required'}})
    node.badconfig({**config, 'balloons': {**config['balloons'], 'balloonTypes': [{'name': 'x', 'minCPUs': 99, 'minBalloons': 1}]}})
    assert warnings() == 3


def test_without(make_node):
    """No device: a warning, and everything else as ever."""
    node = make_node(MANAGED, module_dirs=[BUILD / 'modules'])
    node.log('no effect without Speed Select: missing /dev/isst_interface')
    node.create('a', ctr('c', '2/2', '64Mi'), annotations=FAST)
    assert node.ctl('status')['extended_resources']['resources'] == []
    assert 'isst_interface' in node.ctl('topology')['speed_select']['missing']
    assert 'Speed Select' not in text_of(node, 'doctor') + text_of(node, 'status') + text_of(node, 'topology')
