#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the layout of the module ABI as assertions in C, from the headers, each row marked with the minor that added it (none: 1.0).

  test/abi/layout.py            writes test/abi/layout_1.c; rows of the current minor follow the headers, those of earlier ones may not change
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYOUT = os.path.join(TOP, 'test/abi/layout_1.c')
HEADERS = ['cache', 'calculator', 'config', 'controller', 'decision', 'host', 'module', 'node', 'policy', 'set', 'speedselect', 'topology']
# No size in front: they are what they are for as long as the major lives.
FIXED = {'rp_note', 'rp_elf_note', 'rp_ids', 'rp_idset', 'rp_clos', 'rp_sst_at'}
# Known to a host alone, or the module's own.
NOT_VALUES = re.compile(r'^RP_(IDS_EACH|MODULE_DEFINE|HAS|ABI_MINOR|MIN_HOST_MINOR)$')


HEAD = '''/* SPDX-License-Identifier: Apache-2.0 */
/* Made by layout.py. The module ABI on machines with pointers of 64 bits, which modules rely on. */
'''
MACROS = '''
#define AT(s, field, n) _Static_assert(offsetof(struct s, field) == (n), #s "." #field " has moved")
#define SIZE(s, n) _Static_assert(sizeof(struct s) == (n), #s " has another size")
#define AT_LEAST(s, n) _Static_assert(sizeof(struct s) >= (n), #s " has become shorter")
#define VALUE(name, n) _Static_assert((name) == (n), #name " has another value")
#define TEXT(name, t) _Static_assert(__builtin_strcmp(name, t) == 0, #name " has another text")'''


def includes():
    return ''.join('#include <nri-rp/%s.h>\n' % h for h in HEADERS)


def gcc(*args, source):
    return subprocess.run(['gcc', '-std=c11', '-I', os.path.join(TOP, 'include'), '-x', 'c', *args, '-'], input=source, text=True,
                          capture_output=True, check=True).stdout


def members(body):
    for decl in body.split(';'):
        decl = decl.strip()
        m = re.match(r'.*?\(\*\s*(\w+)\)\s*\(', decl, re.S)
        if m:
            yield m[1]
        elif decl:
            for part in decl.split(','):
                yield re.sub(r'\[.*', '', part, flags=re.S).replace('*', ' ').split()[-1]


def structs():
    text = gcc('-E', '-P', source=includes())
    for m in re.finditer(r'struct (rp_\w+)\s*\{(.*?)\};', text, re.S):
        yield m[1], list(members(m[2]))


def constants():
    for line in sorted(gcc('-dM', '-E', source=includes()).split('\n')):
        m = re.match(r'#define (RP_\w+) (.+)', line)
        if m and not NOT_VALUES.match(m[1]) and not m[1].startswith('RP_MODULE_DEFINE'):
            yield m[1], m[2].startswith('"') or m[2] == ''


def evaluate(found, names):
    lines = ['#include <stdio.h>', includes(), 'int main(void) {']
    for name, fields in found:
        lines.append('printf("S %s %%zu %%zu\\n", sizeof(struct %s), _Alignof(struct %s));' % (name, name, name))
        lines += ['printf("O %s %s %%zu\\n", offsetof(struct %s, %s));' % (name, f, name, f) for f in fields]
    for name, is_text in names:
        lines.append('printf("T %s %%s\\n", %s);' % (name, name) if is_text else
                     'printf("N %s %%lld\\n", (long long)(%s));' % (name, name))
    lines += ['return 0; }']
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'layout')
        gcc('-o', program, source='\n'.join(lines))
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def number(text):
    return '(-9223372036854775807 - 1)' if text == '-9223372036854775808' else text


def minor():
    with open(os.path.join(TOP, 'include/nri-rp/module.h')) as f:
        return re.search(r'#define RP_ABI_MINOR (\d+)u', f.read())[1]


def rows():
    for line in evaluate(list(structs()), list(constants())).split('\n'):
        w = line.split(' ', 3)
        if w[0] == 'S':
            yield '%s(%s, %s);' % ('SIZE' if w[1] in FIXED else 'AT_LEAST', w[1], w[2])
        elif w[0] == 'O':
            yield 'AT(%s, %s, %s);' % (w[1], w[2], w[3])
        elif w[0] == 'N':
            yield 'VALUE(%s, %s);' % (w[1], number(w[2]))
        elif w[0] == 'T':
            yield 'TEXT(%s, "%s");' % (w[1], ' '.join(w[2:]))


def saved():
    """The rows of the file, each with the minor that added it."""
    with open(LAYOUT, encoding='utf-8') as f:
        return {row: int(since or 0) for row, since in re.findall(r'^((?:AT|SIZE|AT_LEAST|VALUE|TEXT)\(.*?;)(?: /\* since 1\.(\d+) \*/)?$', f.read(), re.M)}


def text():
    """The file as the headers have it. Rows of an earlier minor that the headers break are an error; structs may become longer."""
    before, now, current = saved(), list(rows()), int(minor())
    broken = [row for row, since in before.items() if since < current and row not in now and not row.startswith('AT_LEAST')]
    if broken:
        sys.exit('the headers break the ABI of an earlier minor: ' + ' '.join(broken))
    lines = [HEAD + includes() + MACROS]
    for row in now:
        since = before.get(row, current)
        lines.append('\n' * row.startswith(('SIZE', 'AT_LEAST')) + row + (' /* since 1.%d */' % since if since else ''))
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    layout = text()
    with open(LAYOUT, 'w', encoding='utf-8') as file:
        file.write(layout)
