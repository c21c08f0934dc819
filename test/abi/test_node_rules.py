# SPDX-License-Identifier: Apache-2.0
"""Random inputs through the rules of the real modules, and of the host, against the same rules written a second time."""
import json
import os
import pathlib
import random
import subprocess

import pytest

import node_rules

BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', pathlib.Path(__file__).resolve().parent.parent.parent / 'build'))
SEED = int(os.environ.get('NODE_RULES_SEED', '1'))
CASES = int(os.environ.get('NODE_RULES_CASES', '100'))


@pytest.mark.parametrize('rule', node_rules.KINDS, ids=lambda f: f.__name__)
def test_random_inputs(rule, tmp_path):
    table = node_rules.table(rule, random.Random('%s %d' % (rule.__name__, SEED)), CASES)
    # YAML takes JSON
    (tmp_path / 'table.yaml').write_text(json.dumps(table))
    done = subprocess.run([BUILD / 'bin/nri-rp-modcheck', '--vectors', tmp_path / 'table.yaml', BUILD / 'modules/batch.so'], capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if not line.startswith('ok')]
    assert wrong[-1] == '# %d passed, 0 failed' % CASES and done.returncode == 0, done.stdout + done.stderr
