# SPDX-License-Identifier: Apache-2.0
"""Each manual page has examples, those of programs and policies help in trouble, and the public headers give sound pages of section 3."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((TOP / 'man').glob('*.[1-8]'))
POLICIES = ['topology-aware', 'balloons', 'static', 'qos', 'cpuset', 'podpools', 'dynamic-pools', 'static-plus', 'static-pools']
TROUBLE = ['nri-rp.7', 'nri-rpd.8', 'nri-rp-agent.8', 'nri-rp-bridge.8', 'nri-rp-cluster.7'] + ['nri-rp-%s.7' % p for p in POLICIES]
HEADERS = sorted((TOP / 'include' / 'nri-rp').glob('*.h')) + sorted((TOP / 'include' / 'nri-rp' / 'lib').glob('*.h'))


@pytest.mark.parametrize('page', PAGES, ids=lambda p: p.name)
def test_examples(page):
    text = page.read_text(encoding='utf-8')
    assert '\n.Sh EXAMPLES\n' in text
    assert page.name not in TROUBLE or re.search(r'^\.Sh (TROUBLESHOOTING|DIAGNOSTICS)$', text, re.M)


@pytest.fixture(scope='module')
def section3(tmp_path_factory):
    folder = tmp_path_factory.mktemp('man3')
    subprocess.run([sys.executable, '-B', TOP / 'man' / 'section3', folder, *HEADERS], check=True)
    return folder


def test_functions_are_described(section3):
    missing = []
    for page in sorted(section3.iterdir()):
        for entry in page.read_text(encoding='utf-8').split('\n.Ss ')[1:]:
            if not entry.partition('\n.Ed')[2].partition('\n.Sh ')[0].strip():
                missing.append('%s: %s' % (page.name, entry.partition('\n')[0]))
    assert not missing, 'functions without a comment: ' + ', '.join(missing)


def test_threads_are_stated(section3):
    """Each function says on which thread it is called, in the words of its comment or of the generator."""
    missing = []
    for page in sorted(section3.iterdir()):
        for entry in page.read_text(encoding='utf-8').split('\n.Ss ')[1:]:
            if not re.search(r'\[(any|worker)\]|thread', entry) and page.name != 'nri-rp-speedselect.3':
                missing.append('%s: %s' % (page.name, entry.partition('\n')[0]))
    assert not missing, missing


@pytest.mark.skipif(not shutil.which('mandoc'), reason='no mandoc')
def test_section3_lint(section3):
    done = subprocess.run(['mandoc', '-Tlint', '-Wwarning', *sorted(section3.iterdir())], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout, done.stdout
