# SPDX-License-Identifier: Apache-2.0
"""Random workloads are placed as recorded. `make record` records an intended change."""
import json

import pytest

import record


@pytest.mark.parametrize('name', record.workloads())
def test_recorded(name):
    recorded = json.loads(record.RECORDED.read_text())[name]
    assert record.play(name, recorded) == recorded
