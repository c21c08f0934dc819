# SPDX-License-Identifier: Apache-2.0
"""The way back to the configuration before: undo, and what nobody has confirmed in time."""
import os
import re
import time

from operator_tools import DEGRADED, FAILED, OK, USAGE, ctl, ctl_json
from simnode import STATIC, ctr, eventually

TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}
BALLOONS = {'policy': 'balloons'}


def policy(node):
    return ctl(node, 'status').out.split('Policy')[1].split()[0]


def test_undo_and_back(make_node):
    node = make_node(TOPOLOGY_AWARE)
    node.create('a', ctr('a0', '2', '64Mi'))
    assert ctl(node, 'undo').code == FAILED and 'no previous configuration' in ctl(node, 'undo').out
    node.run('write-config', STATIC)
    assert ctl(node, 'reload').code == OK
    done = ctl(node, 'undo')
    assert done.code == OK and done.out.startswith('Restored') and policy(node) == 'topology-aware'
    status = ctl(node, 'status')
    assert status.code == DEGRADED and 'was undone' in status.out
    # a restart does not take the files that were undone
    node.restart()
    assert policy(node) == 'topology-aware' and ctl(node, 'status').code == DEGRADED
    assert ctl(node, 'undo').code == OK and policy(node) == 'static', 'undone is what was undone'
    assert ctl(node, 'undo').code == OK and policy(node) == 'topology-aware'
    # who loads them again wants them
    assert ctl(node, 'reload').code == OK and policy(node) == 'static' and ctl(node, 'status').code == OK
    node.restart()
    assert policy(node) == 'static' and ctl(node, 'status').code == OK


def test_after_a_restart_without_the_copy_in_the_run_directory(make_node):
    """As after a boot: the checksum of the active configuration is not known, and undo still is more than a plan."""
    node = make_node(TOPOLOGY_AWARE)
    node.run('write-config', STATIC)
    assert ctl(node, 'reload').code == OK and ctl(node, 'undo').code == OK
    node.stop()
    os.unlink(os.path.join(os.path.dirname(node.paths['control']), 'configuration'))
    node.start()
    assert policy(node) == 'topology-aware'
    assert ctl_json(node, 'undo', '--dry-run')['outcome'] == 'accepted' and policy(node) == 'topology-aware'
    assert ctl_json(node, 'undo')['outcome'] == 'in force' and policy(node) == 'static'
    assert ctl(node, 'undo').code == OK and policy(node) == 'topology-aware'
    node.restart()
    assert policy(node) == 'topology-aware'


def test_not_confirmed(make_node):
    node = make_node(STATIC)
    node.run('write-config', BALLOONS)
    doc = ctl_json(node, 'reload', '--confirm', '1')
    assert doc['outcome'] == 'in force' and doc['unconfirmed_s'] == 1
    eventually(lambda: 'was undone' in ctl(node, 'status').out)
    assert policy(node) == 'static' and 'not confirmed in time: restoring the previous configuration' in ctl(node, 'events').out


def test_a_restart_before_it_is_confirmed(make_node):
    node = make_node(STATIC)
    node.run('write-config', BALLOONS)
    assert 'Will be undone in 600 s; run `nri-rpctl confirm`' in ctl(node, 'reload', '--confirm', '600').out and policy(node) == 'balloons'
    node.settle()
    node.restart()
    assert policy(node) == 'static' and 'not confirmed in time' in ' '.join(ctl(node, 'status').out.split())


def test_confirmed(make_node):
    node = make_node(STATIC)
    assert ctl(node, 'confirm').code == FAILED
    node.run('write-config', BALLOONS)
    assert ctl(node, 'reload', '--confirm', '600').code == OK
    assert 'nri-rpctl confirm' in ctl(node, 'status').out
    assert ctl_json(node, 'confirm') == {'confirmed': 2}
    node.restart()
    assert policy(node) == 'balloons' and ctl(node, 'status').code == OK
    assert ctl(node, 'undo').code == OK and policy(node) == 'static'


def test_wrong_times(make_node):
    node = make_node(STATIC)
    for seconds in ('0', 'x', '-1', '86401'):
        done = ctl(node, 'reload', '--confirm', seconds)
        assert done.code == USAGE and 'from 1 to 86400 seconds' in done.err


def test_one_that_is_refused_changes_nothing(make_node):
    node = make_node(STATIC)
    node.run('write-config', {'policy': 'static', 'static': {'reservedResources': {'cpu': 99}}})
    assert ctl(node, 'reload', '--confirm', '600').code == 78
    assert ctl(node, 'confirm').code == FAILED and policy(node) == 'static'


def test_after_a_refused_reload(make_node):
    """The refused file has changed nothing: undo does not go further back by itself."""
    node = make_node(TOPOLOGY_AWARE)
    node.run('write-config', STATIC)
    assert ctl(node, 'reload').code == OK
    node.run('write-config', {'policy': 'static', 'static': {'reservedResources': {'cpu': 99}}})
    assert ctl(node, 'reload').code == 78
    done = ctl(node, 'undo')
    assert done.code == FAILED and 'has changed nothing' in done.err and 'undo --yes' in done.err and policy(node) == 'static'
    assert ctl(node, 'undo', '--yes').code == OK and policy(node) == 'topology-aware'


def test_what_it_would_go_back_to(make_node):
    """--dry-run names the configuration by its time and its differences, also after a refused reload, and changes nothing."""
    node = make_node(TOPOLOGY_AWARE)
    node.create('a', ctr('a0', '2', '64Mi'))
    assert ctl(node, 'undo', '--dry-run').code == FAILED
    node.run('write-config', STATIC)
    assert ctl(node, 'reload').code == OK
    refused = {'policy': 'static', 'static': {'reservedResources': {'cpu': 99}}}
    for config, code in ((STATIC, OK), (refused, 78)):
        node.run('write-config', config)
        assert ctl(node, 'reload').code == code
        said = ctl(node, 'undo', '--dry-run')
        assert said.code == OK and re.match(r'Would restore the configuration of \w+ +\d+ \d\d:\d\d:\d\d; \d container', said.out), said
        assert 'policy: static -> topology-aware' in said.out.replace('→', '->') and policy(node) == 'static'
        doc = ctl_json(node, 'undo', '--dry-run')
        assert doc['outcome'] == 'accepted' and doc['restores'] < node.ctl('status', check=False)['now']
        assert node.ctl('status', check=False)['config']['undone'] is False
    done = ctl(node, 'undo', '--yes')
    assert done.code == OK and done.out.startswith('Restored the configuration of ') and policy(node) == 'topology-aware'
    # after an undo it names what was undone; while a reload waits for its confirmation, what comes back without one
    assert 'policy: topology-aware -> static' in ctl(node, 'undo', '--dry-run').out.replace('→', '->')
    node.run('write-config', BALLOONS)
    assert ctl(node, 'reload', '--confirm', '600').code == OK
    assert 'policy: balloons -> topology-aware' in ctl(node, 'undo', '--dry-run').out.replace('→', '->')
    assert 'run `nri-rpctl confirm`' in ' '.join(ctl(node, 'status').out.split())


def test_what_doctor_says_of_what_was_undone(make_node):
    node = make_node(STATIC)
    node.run('write-config', TOPOLOGY_AWARE)
    assert ctl(node, 'reload').code == OK and ctl(node, 'undo').code == OK
    found = [f for f in ctl_json(node, 'doctor', code=DEGRADED) if f['check'] == 'configuration']
    assert [f['verdict'] for f in found] == ['warning'] and 'was undone' in found[0]['text'] and 'what is wrong' not in found[0]['hint'], found


def test_times_to_confirm(make_node):
    node = make_node(STATIC)
    for text, seconds in (('60s', 60), ('2m', 120), ('1m30s', 90), ('45', 45), ('1500ms', 2)):
        assert ctl_json(node, 'reload', '--confirm', text)['unconfirmed_s'] == seconds
        assert ctl(node, 'confirm').code == OK
    assert ctl(node, 'reload', '--confirm', '0s').code == USAGE and ctl(node, 'reload', '--confirm', '2d').code == USAGE


def rename_into(path, text):
    """As the kubelet replaces the files of a ConfigMap: by another target of a link in their directory."""
    new = path + '.new'
    with open(new, 'w', encoding='utf-8') as f:
        f.write(text)
    os.rename(new, path)


def test_files_are_watched(make_node):
    node = make_node({**STATIC, 'watchFiles': True})
    path = node.paths['config']
    rename_into(path, 'policy: balloons\nballoons: {reservedResources: {cpu: 1}}\nwatchFiles: true\nmetrics: {listen: ""}\n')
    eventually(lambda: policy(node) == 'balloons')
    generation = ctl_json(node, 'status')['config']['generation']
    os.utime(path)
    with open(path, 'a', encoding='utf-8'):
        pass  # nothing has changed: nothing is reloaded
    rename_into(path, 'policy: none\nmetrics: {listen: ""}\n')
    eventually(lambda: policy(node) == 'none')
    assert ctl_json(node, 'status')['config']['generation'] == generation + 1
    rename_into(path, 'policy: balloons\nballoons: {reservedResources: {cpu: 1}}\nmetrics: {listen: ""}\n')
    time.sleep(1.5)
    assert policy(node) == 'none', 'nor without the key'
