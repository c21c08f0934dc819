# SPDX-License-Identifier: Apache-2.0
"""Pools that follow what is used of them, and what of the rest the node lends."""
import pathlib

from simnode import LEAST, ctr, eventually, put_machine
from test_controllers import add_cgroup, cgroup_of

DOMAIN = 'katalyst.kubewharf.io/'
SECTION = {'rampUpSeconds': 0, 'enableReclaim': True, 'minReclaimedCPUs': 2, 'advisor': {'enable': True, 'reserve': 2, 'period': '1s'}}
CONFIG = {'policy': 'qos', 'qos': SECTION, 'metrics': {'collectInterval': '1s', 'listen': ''}}


def load(node, one, five=0):
    (pathlib.Path(node.paths['root']) / 'proc/loadavg').write_text('%.2f %.2f 0.00 1/100 1234\n' % (one, five))


def counted(node, *names):
    return tuple(len(node.cpus(name)) for name in names)


def test_pools_follow_what_is_used(make_node):
    node = make_node(CONFIG, machine='n4c16', start=False)
    put_machine(node)
    load(node, 0)
    node.start()
    node.create('a', ctr('a0', '8'))
    node.create('b', ctr('b0', '1'), annotations={DOMAIN + 'cpuset_pool': 'batch'})
    node.create('r', ctr('r0', '1'), annotations={DOMAIN + 'qos_level': 'reclaimed_cores'})
    assert counted(node, 'a0', 'b0', 'r0') == (8, 1, 7)
    for name in ('a0', 'b0', 'r0'):
        add_cgroup(node, name, {'cpu.stat': 'usage_usec 0\n', 'memory.current': '4096\n'})
    # nobody uses anything: down by two a period, up to the least of four
    eventually(lambda: counted(node, 'a0', 'b0', 'r0') == (4, 4, 8), 30)
    node.kill()
    node.start()
    assert counted(node, 'a0', 'b0', 'r0') == (4, 4, 8)
    # the load of five minutes is 9, of which the pools have eight and one parts: 2 + 8 and 2 + 1, of which four is the least
    load(node, 3, 9)
    eventually(lambda: counted(node, 'a0', 'b0', 'r0') == (10, 4, 2), 30)
    # more than there is: two are left to reclaim, and the largest gives them
    load(node, 90)
    eventually(lambda: counted(node, 'a0', 'b0', 'r0')[2] == 2 and sum(counted(node, 'a0', 'b0')) == 14, 30)
    load(node, 0)
    eventually(lambda: counted(node, 'a0', 'b0', 'r0') == (4, 4, 8), 60)
    # what is used counts: 3 CPUs and the reserve
    folder, at = pathlib.Path(node.paths['root']) / cgroup_of(node, 'a0'), 0

    def grown():
        nonlocal at
        at += 3000000
        (folder / 'new').write_text('usage_usec %d\n' % at)
        (folder / 'new').rename(folder / 'cpu.stat')
        return counted(node, 'a0')[0] > 4

    eventually(grown, 60)
    # a switch back gives what is asked for
    node.config({**CONFIG, 'qos': {**SECTION, 'advisor': {}}})
    eventually(lambda: counted(node, 'a0', 'b0', 'r0') == (8, 1, 7))


def test_without_measurements(make_node):
    """It needs somewhere to give to, and something to go by; without the latter pools stay as they are, which is said."""
    node = make_node({**CONFIG, 'metrics': {'listen': ''}}, machine='n4c16')
    node.badconfig({'policy': 'qos', 'qos': {'advisor': {'enable': True}}, 'error': 'qos.advisor.enable: .* set enableReclaim'})
    node.create('a', ctr('a0', '8'))
    node.log('no usage of containers is known')
    assert counted(node, 'a0') == (8,)


def reclaimed(node):
    return {r['name'].split('/')[1]: r.get('value') for r in node.ctl('node').get('resources', [])}.get('reclaimed_millicpu')


def test_what_is_not_used_is_published(make_node):
    node = make_node({'policy': 'qos', 'qos': {'rampUpSeconds': 0}, 'calculators': ['reclaimed'], 'metrics': {'listen': ''},
                      'nodeResources': {'least': LEAST, 'strategy': {'enable': True, 'metricReportIntervalSeconds': 1}}}, machine='n4c16', start=False)
    put_machine(node)
    load(node, 0)
    node.start()
    # 16 less a reserve of 4; less a load of 2.5, in whole CPUs
    eventually(lambda: reclaimed(node) == 12000, 60)
    load(node, 1, 2.5)
    eventually(lambda: reclaimed(node) == 9000, 60)
    load(node, 40)
    eventually(lambda: reclaimed(node) == 0, 60)
    assert 'reserve 4000' in node.ctl('node')['resources'][0]['why']
