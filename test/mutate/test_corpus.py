# SPDX-License-Identifier: Apache-2.0
"""What fuzzing has found, and what it begins with, by the build at hand: each target over its corpus, and over nothing."""
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build'))
CORPUS = TOP / 'test/fuzz/corpus'
TARGETS = sorted(p.stem for p in (TOP / 'test/fuzz').glob('fuzz_*.c'))


@pytest.mark.parametrize('target', TARGETS)
def test_corpus(target, tmp_path):
    replay = BUILD / 'fuzz-replay' / target
    if not replay.exists():
        pytest.skip('the replay programs are not built')
    inputs = sorted((CORPUS / target).glob('*'))
    for name, data in {'empty': b'', 'zero': b'\0', 'zeros': bytes(200), 'ones': b'\xff' * 200}.items():
        inputs.append(tmp_path / name)
        inputs[-1].write_bytes(data)
    for path in inputs:
        done = subprocess.run([str(replay), str(path)], capture_output=True, text=True, errors='replace', check=False, timeout=120)
        assert done.returncode == 0, '%s: %s%s' % (path, done.stdout, done.stderr)


def test_each_corpus_has_a_target():
    assert sorted({p.name for p in CORPUS.iterdir()} - set(TARGETS)) == []
