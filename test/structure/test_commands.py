# SPDX-License-Identifier: Apache-2.0
"""Commands that manuals, README and sample configurations name exist, with the options that are named."""
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build'))
PROGRAMS = ('nri-rpctl', 'nri-rpd', 'nri-rp-agent', 'nri-rp-bridge', 'nri-rp-sim', 'nri-rp-modcheck')
END = re.compile(r'[|;&><()`"\'─]|^\\|…|^[.,:]$|^--$')


def words_of(text):
    """The words of a command up to what is no part of it; placeholders stay as they are."""
    out = []
    for word in text.split():
        last = word.rstrip('.,:')
        if END.search(word) or not last:
            break
        out.append(last)
        if last != word:
            break
    return out


def of_manual(path):
    literal = False
    for line in path.read_text(encoding='utf-8').splitlines():
        literal = line.startswith('.Bd -literal') or (literal and not line.startswith('.Ed'))
        macro = re.match(r'\.(?:Ql|Ic|Dl|Li|D1|Cm) (.*)', line)
        text = line if literal else macro.group(1) if macro else ''
        text = re.sub(r'\bFl (\S+)', lambda m: '-' + m.group(1), re.sub(r'\b(?:Cm|Ic|Ql|Ns|Ar) ', '', text)).replace('\\-', '-').replace('\\(dq', '"')
        yield from of_text(text)


def of_marked(path):
    """What stands between backticks, and lines of examples."""
    for line in path.read_text(encoding='utf-8').splitlines():
        line = line.lstrip('#')
        for text in re.findall(r'`([^`]+)`', line) + ([line] if line.startswith('    ') else []):
            yield from of_text(text)


def of_text(text):
    for match in re.finditer(r'(?:^|[\s/$=])(%s)(?=\s)' % '|'.join(PROGRAMS), text):
        yield (match.group(1), *words_of(text[match.end():]))


def named():
    found = {}
    for path in sorted((TOP / 'man').glob('*.[0-9]')):
        for command in of_manual(path):
            found.setdefault(command, path.name)
    for path in [TOP / 'README.md', TOP / 'CONTRIBUTING.md', *sorted((TOP / 'conf').rglob('*.conf'))]:
        for command in of_marked(path):
            found.setdefault(command, path.name)
    return sorted((where, command) for command, where in found.items() if len(command) > 1)


def test_some_are_found():
    commands = {command[:2] for _, command in named()}
    assert ('nri-rpctl', 'status') in commands and len(named()) > 35


@pytest.mark.parametrize('where, command', named(), ids=lambda value: value if isinstance(value, str) else ' '.join(value))
def test_it_exists(where, command):
    program, *words = command
    if words[0] in ('is', 'has', 'and', 'or', 'in', 'with', 'on', 'does', 'can', 'of', 'to', 'at', 'by', 'for', 'the', 'runs'):
        pytest.skip('prose')
    if words[-1].startswith('--'):  # it may want a value, which is not named
        option = words.pop()
        texts = [help_of(program), help_of(program, *words)]
        assert any(re.search(re.escape(option) + r'\b', text) for text in texts), (where, command, texts[-1])
    assert program in help_of(program, *words), (where, command)


def help_of(program, *words):
    done = subprocess.run([BUILD / 'bin' / program, *words, '--help'], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (program, words, done.stderr)
    return done.stdout
