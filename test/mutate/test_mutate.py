# SPDX-License-Identifier: Apache-2.0
"""Some mutations of what the daemon reads, by the build at hand. `make mutate MUTATIONS=100000` does many, sanitized."""
import os
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('NRI_RP_BUILD', os.path.join(TOP, 'build'))
MUTATE = os.path.join(BUILD, 'test/mutate/mutate')


@pytest.mark.parametrize('kind', ['session', 'conf', 'store', 'records'])
def test_mutations(kind, tmp_path):
    if not os.path.exists(MUTATE):
        pytest.skip('test/mutate is not built')
    done = subprocess.run([MUTATE, '-o', str(tmp_path), '-k', kind, os.environ.get('MUTATIONS', '300')], capture_output=True, text=True,
                          errors='replace', check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert kind + ':' in done.stdout
