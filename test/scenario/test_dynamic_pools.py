# SPDX-License-Identifier: Apache-2.0
"""What stories cannot show of the dynamic-pools policy: pools that follow what was measured."""
import pathlib

from simnode import ctr, eventually
from test_controllers import add_cgroup, cgroup_of

CONFIG = {'policy': 'dynamic-pools', 'metrics': {'collectInterval': '1s'},
          'dynamic-pools': {'reservedResources': {'cpu': 'cpuset:0-1'}, 'dynamicPoolTypes': [{'name': 'p', 'namespaces': ['p']}, {'name': 'q', 'namespaces': ['q']}]}}


def sizes(node):
    return tuple(len(node.cpus(name)) for name in ('s0', 'p0', 'q0'))


def test_load(make_node):
    """CPUs that nobody asks for are in shared until a rebalancing sees who works; then they stay until the next one, over restarts, too."""
    node = make_node(CONFIG, machine='n4c16')
    node.create('s', ctr('s0'))
    node.create('p', ctr('p0', '1/2'), namespace='p')
    node.create('q', ctr('q0', '1/2'), namespace='q')
    assert sizes(node) == (12, 1, 1)
    node.ctl('rebalance')
    assert sizes(node) == (12, 1, 1)
    for name in ('s0', 'p0', 'q0'):
        add_cgroup(node, name, {'cpu.stat': 'usage_usec 0\n', 'memory.current': '4096\n'})
    folder, used = pathlib.Path(node.paths['root']) / cgroup_of(node, 'p0'), 0

    def grown():
        nonlocal used
        used += 1000000
        (folder / 'new').write_text('usage_usec %d\n' % used)
        (folder / 'new').rename(folder / 'cpu.stat')
        return node.ctl('rebalance')['moved'] == 0 and sizes(node) == (1, 12, 1)

    eventually(grown, 60)
    node.create('q2', ctr('q1', '2'), namespace='q')
    assert sizes(node) == (1, 10, 3)
    node.kill()
    node.start()
    assert sizes(node) == (1, 10, 3)
    node.delete('p')
    assert len(node.cpus('s0')) == 11 and len(node.cpus('q0')) == 3
