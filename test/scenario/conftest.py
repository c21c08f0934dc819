# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from simnode import STATIC, Node  # noqa: E402

ROOM = 1 << 30


# In the background of a script interrupts are ignored, and what is started from here would do so, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope='session')
def in_memory():
    """The machines' trees are thousands of small files."""
    shm = '/dev/shm'
    if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > ROOM:
        os.environ['TMPDIR'] = shm


def pytest_collection_modifyitems(config, items):
    """Every so many of them, when others run the rest at the same time."""
    part, parts = map(int, os.environ.get('NRI_RP_SHARD', '0/1').split('/'))
    config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % parts != part])
    items[:] = items[part::parts]


def pytest_runtest_setup():
    if 'kubelet' in sys.modules:
        sys.modules['kubelet'].Agent.all.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With a failure come the ends of the logs."""
    report = (yield).get_result()
    if report.failed:
        for node in getattr(item, 'nodes', []):
            report.sections.append(('nri-rpd', node.tail(60)))
        for agent in sys.modules['kubelet'].Agent.all if 'kubelet' in sys.modules else ():
            if not agent.log.closed:
                report.sections.append(('nri-rp-agent', '\n'.join(agent.read_log().splitlines()[-60:])))


@pytest.fixture
def make_node(request):
    """Nodes that are closed, and with that checked, when the test has passed."""
    nodes = request.node.nodes = []

    def make(*args, **kwargs):
        nodes.append(Node(*args, **kwargs))
        return nodes[-1]

    yield make
    for node in nodes:
        if node.sim.poll() is None:
            node.close()


@pytest.fixture
def node(make_node):
    """n4c16 with the static policy, CPU 0 reserved."""
    return make_node(STATIC)
