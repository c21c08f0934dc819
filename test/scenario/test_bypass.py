# SPDX-License-Identifier: Apache-2.0
"""nri-rp-bridge with the source cgroups, on a node of files: the real program, a real nri-rpd behind it, a kubelet's /pods."""
import os
import pathlib
import re
import subprocess
import time

import pytest

from apiserver import ApiServer
from bypass import ALL, BRIDGE, PLACED, STATIC, Kubelet, Node, certificate, closed_port, wait_for
from kubelet import Agent
from simnode import TEST_MODULES

UNPINNED = {'cpu.preserve.resource-policy.nri.io': 'true'}
TOPOLOGY = 'policy: topology-aware\ntopology-aware: {reservedResources: {cpu: "cpuset:0"}, preferIsolatedCPUs: false}\n'
FORMS = [(True, True), (True, False), (False, True), (False, False)]
IN_TIME_S = 5.0  # what is waited for half a second for on a loaded machine


@pytest.fixture
def node():
    with Node() as n:
        yield n


@pytest.fixture
def kubelet(node):
    with Kubelet(node) as k:
        yield k


def two_cpus(ctr):
    return len(ctr.cpus()) == 2


@pytest.mark.parametrize('unified,systemd', FORMS)
def test_a_containers_life(unified, systemd):
    with Node(unified, systemd) as node, node.bridge(), node.daemon():
        other = node.pod('other', 'burstable').ctr('x', 100)
        pod = node.pod('web')
        app = pod.ctr('app', 2000)
        wait_for(lambda: two_cpus(app))
        wait_for(lambda: len(other.cpus()) == 14)
        assert {c['full_name'] for c in node.ctl('containers')} == {'default/other/x', 'default/web/app'}
        found = next(c for c in node.ctl('containers') if c['name'] == 'app')
        assert (found['qos'], found['id'], found['wanted']['cpu_request_milli']) == ('Guaranteed', app.id, 2000)
        mine = app.read('cpuset.cpus')
        app.write('cpuset.cpus', '0-3')
        wait_for(lambda: app.read('cpuset.cpus') == mine)
        app.remove()
        wait_for(lambda: len(other.cpus()) == 16)
        pod.remove()
        wait_for(lambda: [p['name'] for p in node.ctl('pods')] == ['other'])


def test_what_is_there_is_kept_when_either_is_restarted(node):
    with node.bridge() as bridge, node.daemon() as daemon:
        first, second = node.pod('a').ctr('c', 2000), node.pod('b').ctr('c', 2000)
        wait_for(lambda: two_cpus(first) and two_cpus(second))
        first.pod.remove()
        wait_for(lambda: [p['name'] for p in node.ctl('pods')] == ['b'])
        mine = second.cpus()
        for i in range(3):
            placed = bridge.count(PLACED)
            daemon.kill()
            daemon.start()
            bridge.wait_log(PLACED, placed + 1)
            bridge.kill()
            came = node.pod('new%d' % i, 'burstable').ctr('c', 100)
            bridge.start().wait_log(PLACED, placed + 2)
            wait_for(lambda: came.cpus() and not came.cpus() & mine)
            assert second.cpus() == mine


def test_what_is_wanted_is_kept_when_the_daemon_has_gone(node):
    """It says nothing of what is right, and what was changed meanwhile counts as it is."""
    with node.bridge() as bridge, node.daemon() as daemon:
        ctr = node.pod('web').ctr('app', 2000)
        wait_for(lambda: two_cpus(ctr))
        mine = ctr.read('cpuset.cpus')
        daemon.kill()
        daemon.start()
        bridge.wait_log(PLACED, 2)
        ctr.write('cpuset.cpus', '0-3')
        wait_for(lambda: ctr.read('cpuset.cpus') == mine)


def test_a_kubelets_cgroup_at_the_first_level_is_preferred(node):
    node.remove(node.top)
    top, node.top = node.top, node.cgroup('kind.slice/kubepods.slice', cpus=ALL, mems='0-3')
    with node.bridge() as bridge, node.daemon():
        deep = node.pod('deep').ctr('app', 2000)
        wait_for(lambda: two_cpus(deep))
        node.top = node.cgroup(top, cpus=ALL, mems='0-3')
        ctr = node.pod('web').ctr('app', 2000)
        wait_for(lambda: two_cpus(ctr))
        wait_for(lambda: {c['full_name'] for c in node.ctl('containers')} == {'default/web/app'})


@pytest.mark.parametrize('unified,systemd', FORMS)
def test_pods_of_the_system_partition(unified, systemd):
    """KEP-5894: those of a node's system partition have a tree of their own below the kubelet's cgroup."""
    with Node(unified, systemd) as node, node.bridge('--reconcile', '1h'), node.daemon():
        own = node.pod('own', 'system').ctr('c', 2000)
        shared = node.pod('shared', 'system/burstable').ctr('c', 100)
        user = node.pod('user').ctr('c', 2000)
        wait_for(lambda: two_cpus(own) and two_cpus(user) and len(shared.cpus()) == 12)
        assert {(c['full_name'], c['qos']) for c in node.ctl('containers')} == {
            ('default/own/c', 'Guaranteed'), ('default/shared/c', 'Burstable'), ('default/user/c', 'Guaranteed')}
        own.pod.remove()
        wait_for(lambda: len(shared.cpus()) == 14)


def looked_into(node):
    return sum(map(int, re.findall(r'(\d+) folders', node.log())))


def test_a_change_makes_no_look_at_everything(node):
    """Of many pods those alone are looked at of which a folder has come or gone."""
    with node.bridge('--reconcile', '1h'), node.daemon():
        pods = [node.pod('p%d' % i, 'burstable') for i in range(60)]
        for pod in pods:
            pod.ctr('c', 10)
        wait_for(lambda: len(node.ctl('containers')) == 60)
        time.sleep(1)
        before = looked_into(node)
        own = node.pod('own').ctr('c', 2000)
        wait_for(lambda: two_cpus(own))
        pods[7].ctrs[0].remove()
        pods[8].remove()
        wait_for(lambda: len(node.ctl('containers')) == 59)
        late = pods[7].ctr('late', 10)
        wait_for(lambda: len(late.cpus()) == 14)
        wait_for(lambda: {p['name'] for p in node.ctl('pods')} == {'own', *(p.name for p in pods if p is not pods[8])})
        time.sleep(1)
        assert 0 < looked_into(node) - before < 40, 'all of them once are 62'


def has_open(program, path):
    return any(os.path.realpath(fd) == str(path) for fd in pathlib.Path('/proc/%d/fd' % program.process.pid).iterdir())


def test_a_write_that_hangs_keeps_no_answer_waiting(node):
    """As when the kernel moves gigabytes to other memory nodes: meanwhile pods come and go."""
    with node.bridge() as bridge, node.daemon():
        first = node.pod('first').ctr('c', 2000)
        wait_for(lambda: two_cpus(first))
        mine, path = first.read('cpuset.cpus'), node.mounts['cpuset'] / first.path / 'cpuset.cpus'
        # The end held here lets every open of the file succeed at once, and every read wait for what is written below: bridge and daemon read it.
        os.mkfifo(node.dir / 'fifo')
        held = os.open(node.dir / 'fifo', os.O_RDWR | os.O_NONBLOCK)
        os.rename(node.dir / 'fifo', path)
        wait_for(lambda: has_open(bridge, path))
        second = node.pod('second').ctr('c', 2000)
        wait_for(lambda: {c['full_name'] for c in node.ctl('containers')} == {'default/first/c', 'default/second/c'})
        node.pod('third', 'burstable').remove()
        wait_for(lambda: len(node.ctl('pods')) == 2)
        time.sleep(0.5)
        assert second.read('cpuset.cpus') == ALL or not second.read('cpuset.cpus'), 'writes go in order'
        first.write('cpuset.cpus', mine)  # another file in its place
        wait_for(lambda: os.write(held, b'\n') and two_cpus(second))
        os.close(held)


def test_what_is_refused_is_managed_when_there_is_room(node):
    with node.bridge() as bridge, node.daemon():
        large = node.pod('large').ctr('c', 14000)
        wait_for(lambda: len(large.cpus()) == 14)
        late = node.pod('late').ctr('c', 4000)
        bridge.wait_log('container %s is not managed' % late.id)
        large.remove()
        wait_for(lambda: len(late.cpus()) == 4)
        bridge.wait_log('container %s is now managed' % late.id)
        assert bridge.count('%s is not managed' % late.id) == 1, 'said once'


def test_without_a_word_of_the_runtime(node):
    """Neither names nor amounts but those of the cgroups."""
    with node.bridge(), node.daemon():
        ctr = node.pod('web', bundle=False).ctr('app', 2000)
        node.write(ctr.path, 'cpuset.cpus', '')
        run_in(node, ctr.pod.child(ctr.pod.id), 101, 'pause')
        run_in(node, ctr.path, 102, 'app')
        wait_for(lambda: len(node.ctl('containers')) == 1)
        found = node.ctl('containers')[0]
        assert (found['name'], found['id']) == (ctr.id[:12], ctr.id) and abs(found['wanted']['cpu_request_milli'] - 2000) < 30


def run_in(node, path, pid, name):
    """A process in a container's cgroup."""
    (node.root / 'proc' / str(pid)).mkdir(exist_ok=True)
    (node.root / 'proc' / str(pid) / 'comm').write_text(name + '\n')
    (node.mounts['cpuset'] / path / 'cgroup.procs').write_text('%d\n' % pid)


def ids(node):
    return {c['id'] for c in node.ctl('containers')}


def test_what_a_runtime_is_still_making_is_no_container_yet(node):
    """Where the runtime says nothing: its own process is in the cgroup first. And a pod has one sandbox, whatever its containers call themselves."""
    with node.bridge(), node.daemon():
        pod = node.pod('web', bundle=False)
        run_in(node, pod.child(pod.id), 101, 'pause')
        ctr = pod.ctr('app', 2000)
        node.write(ctr.path, 'cpuset.cpus', '')
        run_in(node, ctr.path, 102, 'runc:[2:INIT]')
        for i in range(2):  # they are placed after a look at all
            other = node.pod('other%d' % i).ctr('c', 2000)
            wait_for(lambda: two_cpus(other))
        assert len(ids(node)) == 2 and ctr.id not in ids(node)
        run_in(node, ctr.path, 102, 'app')
        wait_for(lambda: ctr.id in ids(node))
        second = pod.ctr('second', 1000)
        node.write(second.path, 'cpuset.cpus', '')
        run_in(node, second.path, 103, 'pause')
        wait_for(lambda: second.id in ids(node))
        assert pod.id not in ids(node)


def test_a_file_that_names_another_pods_sandbox_is_not_believed(node, kubelet):
    with node.bridge('--read-only-port', kubelet.port, pods='readonly'), node.daemon():
        victim, thief = node.pod('victim'), node.pod('thief')
        kubelet.pods += [victim, thief]
        mine = victim.ctr('a', 2000)
        wait_for(lambda: two_cpus(mine))
        thief.id, own = victim.id, thief.id
        other = thief.ctr('b', 1000)
        thief.id = own
        wait_for(lambda: other.id in ids(node))
        assert {c['full_name'] for c in node.ctl('containers')} == {'default/victim/a', 'default/thief/b'}


def test_a_write_that_fails_is_tried_again(node):
    with node.bridge() as bridge, node.daemon():
        pod = node.pod('web')
        folder = node.mounts['cpuset'] / pod.child('0' * 64)
        folder.mkdir()
        (folder / 'cpuset.cpus').mkdir()  # no file
        ctr = pod.ctr('app', 2000)
        wait_for(lambda: two_cpus(ctr))
        (node.mounts['cpuset'] / ctr.path / 'cpuset.cpus').unlink()
        (node.mounts['cpuset'] / ctr.path / 'cpuset.cpus').mkdir()
        bridge.wait_log(': cannot apply its settings')
        (node.mounts['cpuset'] / ctr.path / 'cpuset.cpus').rmdir()
        ctr.write('cpuset.cpus', '')
        wait_for(lambda: two_cpus(ctr))


# ---- the kubelet's list -------------------------------------------------------------------------------------------------------------

def unpinned(node, name):
    pod = node.pod(name, annotations=UNPINNED)
    return pod.ctr('app', 2000)


def is_known(node, name, annotated=True):
    pod = next((p for p in node.ctl('pods') if p['name'] == name), None)
    return pod and bool(pod.get('annotations')) == annotated


def test_annotations_come_from_the_kubelet(node, kubelet):
    with node.bridge('--read-only-port', kubelet.port, '--poll', '1h', pods='readonly'), node.daemon(TOPOLOGY):
        ctr = unpinned(node, 'web')
        kubelet.pods.append(ctr.pod)
        pinned = node.pod('other').ctr('app', 2000)
        kubelet.pods.append(pinned.pod)
        wait_for(lambda: two_cpus(pinned))
        assert ctr.read('cpuset.cpus') == '' and kubelet.tokens == {None}


@pytest.mark.parametrize('mode', ['empty', 'denied', 'hanging', 'garbage', 'none'])
def test_a_kubelet_that_is_of_no_help(node, kubelet, mode):
    """Nothing is lost, and who comes is placed by the cgroup alone."""
    with closed_port() as nobody, node.bridge('--read-only-port', nobody if mode == 'none' else kubelet.port, '--poll', '100ms',
                                              pods='readonly') as bridge, node.daemon():
        before = node.pod('before').ctr('c', 2000)
        kubelet.pods.append(before.pod)
        wait_for(lambda: two_cpus(before))
        kubelet.mode = mode
        begin = time.monotonic()
        pod = node.pod('after')
        after = pod.ctr('c', 2000)
        wait_for(lambda: two_cpus(after))
        assert time.monotonic() - begin < IN_TIME_S
        if mode in ('denied', 'garbage', 'none'):
            bridge.wait_log('by their cgroups: readonly: ' + {'denied': 'HTTP status 403', 'garbage': 'not a list of pods', 'none': '.*[Cc]onnect'}[mode])
        time.sleep(1)  # five lists and more
        assert two_cpus(before) and {c['full_name'] for c in node.ctl('containers')} == {'default/before/c', 'default/after/c'}
        if mode == 'none':
            return
        # It is well again, and what it knows of the pod that came meanwhile counts.
        kubelet.pods.append(pod)
        pod.annotations['late'] = 'yes'
        kubelet.mode = 'pods'
        kubelet.release.set()
        bridge.wait_log('more is known about pods now')
        bridge.wait_log(PLACED, 2)
        assert two_cpus(before) and two_cpus(after)


def test_the_secure_port(node, tmp_path):
    cert = certificate(tmp_path)
    token = tmp_path / 'token'
    token.write_text('secret\n')
    options = '--kubelet-token', token, '--poll', '200ms'
    with Kubelet(node, cert) as kubelet:
        ctr = unpinned(node, 'web')
        kubelet.pods.append(ctr.pod)
        with node.bridge('--secure-port', kubelet.port, '--kubelet-ca', cert[0], *options, pods='auto') as bridge, node.daemon(TOPOLOGY):
            bridge.wait_log('pods are identified by secure')
            assert ctr.read('cpuset.cpus') == ''
            token.write_text('other\n')
            wait_for(lambda: 'Bearer other' in kubelet.tokens)
        with node.bridge('--secure-port', kubelet.port, '--kubelet-ca', '/etc/ssl/certs/ca-certificates.crt', *options, pods='secure') as bridge:
            bridge.wait_log('by their cgroups: secure: ')
        with closed_port() as nobody, node.bridge('--secure-port', kubelet.port, '--read-only-port', nobody, *options, pods='auto') as bridge:
            bridge.wait_log('the token is not sent')
            bridge.wait_log('by their cgroups: readonly: ')
        with Kubelet(node) as anybody, node.bridge('--secure-port', kubelet.port, '--read-only-port', anybody.port, *options, pods='auto') as bridge:
            bridge.wait_log('pods are identified by readonly')
            bridge.wait_log('any process could impersonate the kubelet')
    assert kubelet.tokens == {'Bearer secret', 'Bearer other'}


def test_a_resize_is_told(node, kubelet):
    with node.bridge('--read-only-port', kubelet.port, '--poll', '200ms', pods='readonly'), node.daemon(TOPOLOGY):
        ctr = node.pod('web').ctr('app', 2000)
        kubelet.pods.append(ctr.pod)
        wait_for(lambda: two_cpus(ctr))
        ctr.mcpu = 4000
        wait_for(lambda: len(ctr.cpus()) == 4)


def test_a_resize_that_is_refused_is_asked_about_again(node, kubelet):
    with node.bridge('--read-only-port', kubelet.port, '--poll', '200ms', pods='readonly') as bridge, node.daemon(TOPOLOGY):
        ctr, large = node.pod('web').ctr('app', 2000), node.pod('large').ctr('app', 10000)
        kubelet.pods += [ctr.pod, large.pod]
        wait_for(lambda: two_cpus(ctr) and len(large.cpus()) == 10)
        ctr.mcpu = 8000
        bridge.wait_log('container %s is not resized' % ctr.id)
        kubelet.pods.remove(large.pod)
        large.pod.remove()
        wait_for(lambda: len(ctr.cpus()) == 8)
        assert bridge.count('%s is not resized' % ctr.id) == 1, 'said once'


def test_pods_of_the_agent(node, tmp_path):
    with ApiServer({}) as api, node.bridge(pods='auto') as bridge, node.daemon(TOPOLOGY) as daemon:
        api.put('nodes', None, 'n1', {'metadata': {}})
        ctr = unpinned(node, 'web')
        listed = ctr.pod.listed()
        listed['spec']['nodeName'] = 'n1'
        api.put('pods', 'default', 'web', listed)
        options = ['--kubeconfig', api.kubeconfig(tmp_path), '--node', 'n1', '--namespace', 'default', '--bridge-socket', node.agent_socket]
        with Agent(tmp_path / 'no-daemon.sock', tmp_path / 'no-kubelet.sock', options=options) as agent:
            bridge.wait_log('pods are identified by agent')
            wait_for(lambda: ctr.read('cpuset.cpus') == '' or bridge.count(PLACED) > 1)
            second = unpinned(node, 'second')
            listed = second.pod.listed()
            listed['spec']['nodeName'] = 'n1'
            api.put('pods', 'default', 'second', listed)
            wait_for(lambda: len(node.ctl('containers')) == 2)
            assert second.read('cpuset.cpus') == ''
            agent.kill()
            bridge.wait_log('nri-rp-agent disconnected')
            agent.start()
            bridge.wait_log('pods are identified by agent', 2)
            assert daemon.process.poll() is None


# ---- what the daemon knows of it -----------------------------------------------------------------------------------------------------

def test_modules_learn_what_cannot_be_done(node):
    trace = node.dir / 'trace'
    config = STATIC + 'controllers: [hand]\nhand: {env: value, runtime: asked, trace: %s}\n' % trace
    with node.bridge() as bridge, node.daemon(config, module_dirs=[TEST_MODULES]):
        ctr = node.pod('web').ctr('app', 2000)
        wait_for(lambda: two_cpus(ctr))
        assert 'nri-rp-bridge/cgroups 4 ' in trace.read_text()
        bridge.wait_log('%s: the plugin requests environment, which cgroups cannot set' % ctr.id)
        runtime = node.ctl('status')['runtime']
        assert (runtime['can_refuse'], runtime['can_inject'], runtime['creation_is_late']) == (False, False, True)
        assert any('cannot be refused' in f['text'] for f in node.ctl('doctor'))


# ---- the command line ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('words,text', [
    (['--source', 'none'], 'expected cri or cgroups'),
    (['--source', 'cgroups', '--pods', 'api'], 'expected auto, readonly'),
    (['--source', 'cgroups', '--secure-port', '0'], 'expected a port'),
    (['--source', 'cgroups', '--poll', '1ms'], 'expected a time'),
    (['--source', 'cgroups', '--listen', '/run/x'], 'has no effect with --source cgroups'),
    (['--pods', 'auto'], 'has no effect with --source cri'),
])
def test_wrong_usage(words, text):
    done = subprocess.run([str(BRIDGE), *words], capture_output=True, text=True)
    assert done.returncode == 2 and text in done.stderr


def test_no_cgroups(tmp_path):
    done = subprocess.run([str(BRIDGE), '--source', 'cgroups', '--host-root', str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 1 and 'no cgroup hierarchy with cpuset' in done.stderr
