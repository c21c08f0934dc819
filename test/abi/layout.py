#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the layout of the module ABI as assertions in C, from the headers as they are: once, for a release.

  test/abi/layout.py > test/abi/layout_1_0.c

A released file is never made anew: it is the promise; that of the minor in the making is. The next minor gets a file of its own.
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADERS = ['cache', 'calculator', 'config', 'controller', 'decision', 'host', 'module', 'node', 'policy', 'set', 'speedselect', 'topology']
# No size in front: they are what they are for as long as the major lives.
FIXED = {'rp_note', 'rp_elf_note', 'rp_ids', 'rp_idset', 'rp_clos', 'rp_sst_at'}
# Known to a host alone, or the module's own.
NOT_VALUES = re.compile(r'^RP_(IDS_EACH|MODULE_DEFINE|HAS|ABI_MINOR|MIN_HOST_MINOR)$')


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


def main():
    print('/* SPDX-License-Identifier: Apache-2.0 */')
    print('/* The module ABI as it was released with 1.%s, on machines with pointers of 64 bits: what a module' % minor())
    print(' * built then relies on. Structs with a size in front may have become longer since. Made by')
    print(' * layout.py, once. */')
    print(includes())
    print('#define AT(s, field, n) _Static_assert(offsetof(struct s, field) == (n), #s "." #field " has moved")')
    print('#define SIZE(s, n) _Static_assert(sizeof(struct s) == (n), #s " has another size")')
    print('#define AT_LEAST(s, n) _Static_assert(sizeof(struct s) >= (n), #s " has become shorter")')
    print('#define VALUE(name, n) _Static_assert((name) == (n), #name " has another value")')
    print('#define TEXT(name, t) _Static_assert(__builtin_strcmp(name, t) == 0, #name " has another text")')
    for line in evaluate(list(structs()), list(constants())).split('\n'):
        w = line.split(' ', 3)
        if w[0] == 'S':
            print('\n%s(%s, %s);' % ('SIZE' if w[1] in FIXED else 'AT_LEAST', w[1], w[2]))
        elif w[0] == 'O':
            print('AT(%s, %s, %s);' % (w[1], w[2], w[3]))
        elif w[0] == 'N':
            print('VALUE(%s, %s);' % (w[1], number(w[2])))
        elif w[0] == 'T':
            print('TEXT(%s, "%s");' % (w[1], ' '.join(w[2:])))
    return 0


if __name__ == '__main__':
    sys.exit(main())
