# SPDX-License-Identifier: Apache-2.0
"""The tutorial of nri-rp(7) works as printed: its configuration is accepted, and each of its commands succeeds in that order."""
import pathlib
import re
import shlex

from operator_tools import ctl
from simnode import ctr

PAGE = pathlib.Path(__file__).resolve().parents[2] / 'man' / 'nri-rp.7'


def tutorial():
    """Returns the configuration of the tutorial, and its commands of nri-rpctl in order."""
    section = re.search(r'^\.Sh TUTORIAL$(.*?)^\.Sh ', PAGE.read_text(), re.S | re.M).group(1)
    text = '\n'.join(re.findall(r'^\.Bd -literal[^\n]*\n(.*?)^\.Ed', section, re.S | re.M)).replace('\\&', '')
    config = re.search(r'^cat > /etc/nri-rp/rp\.conf <<\.\n(.*?)^\.$', text, re.S | re.M).group(1)
    return config, [shlex.split(line)[1:] for line in text.splitlines() if line.startswith('nri-rpctl ')]


def test_tutorial(make_node):
    node = make_node({'policy': 'none'})
    node.create('web', ctr('web', '2', '64Mi'))
    config, commands = tutorial()
    assert [c[0] for c in commands] == ['doctor', 'config', 'plan', 'reload', 'confirm', 'status', 'topology', 'containers', 'explain']
    # other tests may use the default address of the metrics at the same time
    pathlib.Path(node.paths['config']).write_text(config + "metrics:\n  listen: ''\n")
    for words in commands:
        done = ctl(node, *[node.paths['config'] if w == '/etc/nri-rp/rp.conf' else w for w in words])
        assert done.code == 0 or words[0] == 'doctor', (words, done)
    assert 'topology-aware' in ctl(node, 'status').out and node.cpus('web/web') != set(range(16))
