# SPDX-License-Identifier: Apache-2.0
"""No container crosses the border of a NUMA node without need: test/quality.py with bounds that may only become lower. `make quality`
measures more machines."""
import pytest

import quality

# Containers of 25 that cross without relief, with qos refused ones: what packing alone reaches.
BOUNDS = {('topology-aware', 'n4c16'): 4, ('static', 'n4c16'): 4, ('static-plus', 'n4c16'): 4, ('cpuset', 'n4c16'): 5, ('balloons', 'n4c16'): 4,
          ('qos', 'n4c16'): 4, ('topology-aware', 'snc-2x2'): 3, ('topology-aware', 'nodes-8'): 5, ('topology-aware', 'hbm-cxl'): 0,
          ('topology-aware', 'hybrid'): 3}


@pytest.mark.parametrize('policy, machine', BOUNDS)
def test_packing_leaves_no_room_unused(policy, machine):
    r = quality.measure(policy, machine, 'off', 1, 25)
    assert r['placed'] + r['refused'] == 25
    assert not r['avoidable']
    assert r['crossing'] + r['refused'] <= BOUNDS[policy, machine]


@pytest.mark.parametrize('policy', quality.POLICIES)
@pytest.mark.parametrize('machine', ['n4c16', 'smt-2x2', 'hybrid'])
def test_what_three_moves_can_do_is_done(policy, machine):
    r = quality.measure(policy, machine, 'admission', 1, 25)
    assert r['placed'] + r['refused'] == 25
    assert not r['moves'] and not r['avoidable']


def test_the_solver():
    assert quality.fits([4, 3, 3, 2, 2, 1], [4, 4, 4, 3])
    assert not quality.fits([3, 3, 3, 3, 3], [4, 4, 4, 3])
    assert not quality.fits([4, 4], [3, 5])
    assert quality.fits([], [])
    # a container of 4 and one of 2 change places
    assert quality.fits_after_moves([1, 2], [(0, 4), (1, 2)], 3, 2)
    assert not quality.fits_after_moves([1, 2], [(0, 4), (1, 2)], 3, 1)
    assert not quality.fits_after_moves([1, 1, 1], [(0, 3), (1, 3), (2, 3)], 2)
