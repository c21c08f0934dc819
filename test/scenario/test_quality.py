# SPDX-License-Identifier: Apache-2.0
"""No container crosses the border of a NUMA node without need: test/quality.py with bounds that may only become lower. `make quality`
measures more machines."""
import pytest

import quality

# crossing containers of 25 without relief: what packing alone reaches
BOUNDS = {('topology-aware', 'n4c16'): 4, ('static', 'n4c16'): 4, ('static-plus', 'n4c16'): 4, ('cpuset', 'n4c16'): 5, ('balloons', 'n4c16'): 4}


@pytest.mark.parametrize('policy', quality.POLICIES)
def test_packing_leaves_no_room_unused(policy):
    r = quality.measure(policy, 'n4c16', 'off', 1, 25)
    assert r['placed'] == 25
    assert not r['avoidable']
    assert r['crossing'] <= BOUNDS[policy, 'n4c16']


@pytest.mark.parametrize('policy', quality.POLICIES)
@pytest.mark.parametrize('machine', ['n4c16', 'smt-2x2'])
def test_what_could_lie_in_one_node_does_with_relief(policy, machine):
    r = quality.measure(policy, machine, 'admission', 1, 25)
    assert r['placed'] == 25
    assert not r['possible'] and not r['avoidable']


def test_the_solver():
    assert quality.fits([4, 3, 3, 2, 2, 1], [4, 4, 4, 3])
    assert not quality.fits([3, 3, 3, 3, 3], [4, 4, 4, 3])
    assert not quality.fits([4, 4], [3, 5])
    assert quality.fits([], [])
