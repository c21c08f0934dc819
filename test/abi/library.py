#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the functions of the library for modules that authors can call, one a line, from its installed headers as they are.

  test/abi/library.py > test/abi/library_1.txt

Lines of the file are the promise of the major: a new minor adds some, and none is taken out before the next major.
"""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
LIB = TOP / 'modules/lib'
FUNCTION = re.compile(r'^((?:static inline )?(?:const |enum |struct |unsigned )*\w+ \**\w+\([^;{}]*\))\s*(?:;|\{|__attribute__)', re.M)


def functions():
    found = set()
    for header in LIB.glob('*.h'):
        text = re.sub(r'/\*.*?\*/', '', header.read_text(), flags=re.S)
        text = re.sub(r'^#.*?(?<!\\)\n', '\n', text, flags=re.S | re.M)
        text = re.sub(r'^__attribute__\(\(.*?\)\)\)?\s+', '', text, flags=re.M)
        for match in FUNCTION.finditer(text):
            line = ' '.join(match[1].replace('static inline ', '').split())
            found.add('%s: %s' % (header.name, line.replace('( ', '(')))
    return sorted(found)


def version(name):
    return int(re.search(r'^#define NRI_RP_LIB_%s (\d+)$' % name, (LIB / 'version.h').read_text(), re.M)[1])


if __name__ == '__main__':
    print('\n'.join(functions()))
