# SPDX-License-Identifier: Apache-2.0
"""nri-rpctl doctor and log against a daemon: what doctor finds with its remedies, and log sources."""
import json
import re

from operator_tools import DEGRADED, OK, USAGE, ctl, ctl_json
from simnode import STATIC, ctr
from test_ctl import busy  # noqa: F401


def test_doctor_of_a_healthy_node(busy):
    node = busy()
    done = ctl(node, '--json', 'doctor')
    findings = json.loads(done.out)
    assert done.code == OK
    assert {f['verdict'] for f in findings} <= {'ok', 'note', 'warning'}
    checks = {f['check'] for f in findings}
    assert {'daemon', 'runtime', 'updates', 'configuration', 'modules', 'controllers', 'store', 'containers', 'control socket',
            'kubelet', 'drift', 'cgroup', 'machine'} <= checks
    text = ctl(node, 'doctor').out
    # between the two it may have answered another request
    assert all(re.sub(r'\d+', '#', f['text'][:30]) in re.sub(r'\d+', '#', text) for f in findings)


def test_doctor_finds_and_tells_what_to_do(make_node):
    node = make_node({**STATIC, 'controllers': ['rdt']}, files={'var/lib/kubelet/cpu_manager_state': '{"policyName":"static","checksum":1}'})
    node.badconfig('policy: [')
    findings = ctl_json(node, 'doctor', code=DEGRADED)
    bad = {f['check']: f for f in findings if f['verdict'] in ('warning', 'error')}
    assert bad['configuration']['verdict'] == 'error' and 'config check' in bad['configuration']['hint']
    assert bad['kubelet']['verdict'] == 'error' and 'cpuManagerPolicy: none' in bad['kubelet']['hint']
    assert bad['controllers']['verdict'] == 'warning' and 'resctrl' in bad['controllers']['text']
    text = ctl(node, 'doctor').out
    assert '✗ kubelet' in text and '! controllers' in text and '→ kubelet: cpuManagerPolicy: none' in text


def test_log_by_hand_until_the_reload(busy):
    node = busy()
    assert ctl_json(node, 'log', 'level') == {'level': 'info', 'debug': []}
    assert ctl_json(node, 'log', 'level', 'debug')['level'] == 'debug'
    node.create('h', ctr('more', '1m/-'))
    node.log('debug: nri: CreateContainer')
    assert ctl(node, 'log', 'level').out.split()[:2] == ['Level', 'debug']
    assert ctl_json(node, 'reload')['outcome'] == 'in force'
    assert ctl_json(node, 'log', 'level')['level'] == 'info'
    assert ctl_json(node, 'log', 'debug', 'nri', 'cache')['debug'] == ['nri', 'cache']
    assert ctl_json(node, 'log', 'debug', 'off')['debug'] == []
    assert ctl_json(node, 'log', 'debug', '*')['debug'] == ['*']
    done = ctl(node, 'log', 'level', 'loud')
    assert done.code == USAGE and 'loud' in done.err and 'error, warning, notice, info' in done.err
