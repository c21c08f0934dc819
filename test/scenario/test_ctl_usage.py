# SPDX-License-Identifier: Apache-2.0
"""The measured usage of containers, groups and nodes in the output of nri-rpctl."""
import re

from operator_tools import ctl, ctl_json
from simnode import STATIC, eventually
from test_controllers import add_cgroup
from test_ctl import MI, by_name, of_every_class, table


def test_measured_usage_is_shown(make_node):
    """CPU, throttling, memory and memory by node of containers, of groups and of nodes, while usage is collected."""
    def counted(round_):
        add_cgroup(node, 'g/own', {'cpu.stat': 'usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec 0\n' % (1500000 * round_, 100 * round_, 25 * round_),
                                   'memory.current': '%d\n' % (64 * MI), 'memory.numa_stat': 'anon N0=%d N1=%d\nfile N0=%d N1=0\nother N0=1\n' % (30 * MI, 2 * MI, 32 * MI)})

    node = make_node({**STATIC, 'metrics': {'collectInterval': '1s', 'listen': '', 'pressure': {'throttled': 20}}})
    of_every_class(node)
    counts = iter(range(1, 1000))

    def usage():
        counted(next(counts))
        return by_name(ctl_json(node, 'containers'))['default/g/own']['usage'] or {}

    eventually(lambda: (of := usage()).get('cpu_milli') and of.get('memory') and of.get('pressure') == ['throttled'], 40)
    of = usage()
    assert of['throttled_permille'] == 250 and of['memory'] == 64 * MI and of['cpu_milli'] > 0
    row = next(r for r in table(ctl(node, 'containers', '--wide').out) if r['Container'] == 'default/g/own')
    assert row['Throttled'] == '25.0 %' and row['Mem used'] == '64 MiB' and row['Lacks'] == 'throttled' and row['CPU used'] != '-'
    text = ctl(node, 'explain', 'default/g/own').out
    assert re.search(r'CPU +\S+, throttled in 25\.0 % of periods', text) and 'node 0: 62 MiB; node 1: 2 MiB' in text
    topology = ctl_json(node, 'topology')
    assert topology['nodes'][0]['memory_used'] and all('cpu_used_milli' in g for g in topology['groups'])
    assert 'CPU used' in ctl(node, 'topology').out and ' used), ' in ctl(node, 'topology').out
    node.config(STATIC)
    assert 'CPU used' not in ctl(node, 'containers', '--wide').out + ctl(node, 'topology').out and 'Usage' not in ctl(node, 'explain', 'default/g/own').out
