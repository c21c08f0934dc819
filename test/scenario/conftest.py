# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from simnode import STATIC, Node  # noqa: E402

ROOM = 1 << 30


@pytest.fixture(autouse=True, scope='session')
def in_memory():
    """The machines' trees are thousands of small files."""
    shm = '/dev/shm'
    if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > ROOM:
        os.environ['TMPDIR'] = shm


@pytest.fixture
def make_node():
    """Nodes that are closed, and with that checked, when the test has passed."""
    nodes = []

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
