# SPDX-License-Identifier: Apache-2.0
"""Messages and comments keep to the rules of wording; both checks find planted violations."""
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / 'test'))
import wording  # noqa: E402


def sources(*folders):
    return [(str(p.relative_to(TOP)), p.read_text(errors='replace')) for f in folders for p in sorted((TOP / f).rglob('*.[ch]'))]


def test_messages():
    found = ['%s:%d: %s: %s' % (name, line, reason, text) for name, source in sources('core', 'modules')
             for line, text, reason in wording.check_texts(source)]
    assert not found, '\n'.join(found)


def test_comments():
    found = ['%s:%d: %s: %s' % (name, line, reason, text) for name, source in sources('core', 'modules', 'include')
             for line, text, reason in wording.check_comments(source)]
    assert not found, '\n'.join(found)


@pytest.mark.parametrize('text', [
    'nobody listens on %s', 'the configuration in force', 'containers are placed anew', 'the agent has told of %u pods', 'policy %s misbehaves',
    'memory is put back', 'what the node lends', '%s: a line that makes no sense', 'it asks for CPUs of its own', 'CPUs that are off line',
    'at most \\"%s\\" can not be used', 'the key has to be set', 'a client is turned away', '%u calls are under way'])
def test_planted_message(text):
    assert wording.check_texts('#include "nobody in force.h"\nvoid f(void)\n{\n\tlog_error("x: "\n\t\t  "%s", 1);\n}\n' % text)
    assert not wording.check_texts('#include "nobody in force.h"\n/* %s */\n' % text)


@pytest.mark.parametrize('source', [
    '/* That of a child is another one. */\nint n;\n', 'int n; /* what nobody has */\n', '/* Containers are placed anew. */\nint n;\n',
    '/* The sum of both. */\nstatic int add(int a, int b)\n{\n', '/* Whether it is there. */\nbool there(void);\n',
    '/*\n * Otherwise the next one, or none.\n */\nstatic const struct a *next(struct b *b)\n{\n'])
def test_planted_comment(source):
    assert wording.check_comments(source)


def test_plain_comments():
    assert not wording.check_comments('/* Returns the sum of both. */\nstatic int add(int a, int b)\n{\n'
                                      '/* [worker] Reads the file. */\nint read_all(void);\n/* ---- what becomes of it ---- */\n'
                                      'int n; /* number of containers */\n')
