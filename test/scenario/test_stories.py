# SPDX-License-Identifier: Apache-2.0
"""The stories: what the policies and controllers promise, by example. A folder a module, a file a topic, a document a test."""
import pathlib
import re
import subprocess

import pytest

from simnode import BUILD, SETTLE

STORIES = pathlib.Path(__file__).parent / 'stories'
TIMEOUT_S = 120


def documents(path):
    """Each document of a file with its name; blank lines before it keep the numbers of the lines right."""
    line = 0
    for text in re.split(r'(?m)^---$\n', path.read_text()):
        name = re.search(r'(?m)^name: *(.*)$', text)
        assert name, '%s:%d: a story without a name' % (path, line + 1)
        yield name[1].strip('\'"'), '\n' * line + text
        line += text.count('\n') + 1


def stories():
    for path in sorted(STORIES.glob('*/*.yaml')):
        folder, names = path.parent.name, set()
        for name, text in documents(path):
            assert name not in names, '%s: two stories are called "%s"' % (path, name)
            names.add(name)
            yield pytest.param(path, text, id='%s/%s: %s' % (folder, path.stem, name))


@pytest.mark.parametrize('path, text', stories())
def test_story(path, text, tmp_path):
    story = tmp_path / path.name
    story.write_text(text)
    done = subprocess.run([BUILD / 'bin' / 'nri-rp-sim', 'play', '--settle', SETTLE, story], capture_output=True, text=True,
                          errors='replace', timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
