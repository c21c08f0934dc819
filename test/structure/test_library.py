# SPDX-License-Identifier: Apache-2.0
"""What authors of modules call of the library goes on being there as long as its major does (modules/lib/version.h)."""
import sys

from test_layers import TOP, includes

sys.path.insert(0, str(TOP / 'test/abi'))
import library  # noqa: E402  pylint: disable=wrong-import-position


def test_functions_stay():
    promised = (TOP / 'test/abi' / ('library_%d.txt' % library.version('MAJOR'))).read_text().splitlines()
    missing = sorted(set(promised) - set(library.functions()))
    assert missing == [], 'gone or changed: a new major, or a name of its own for what is new'


def test_headers_are_read():
    found = library.functions()
    assert [f for f in found if f.startswith('machine.h: ') and 'machine_grow(' in f]
    assert [f for f in found if f.startswith('host.h: ') and 'modhost_fail(' in f]


def test_promised_headers_need_only_what_is_installed():
    bad = ['%s includes %s' % (p.name, name) for p in library.LIB.glob('*.h') for kind, name in includes(p)
           if kind == '"' or not name.startswith('nri-rp/') and '/' in name]
    assert bad == []


def test_readme_lists_every_header():
    for folder in (library.LIB, library.LIB / 'private'):
        text = (folder / 'README').read_text()
        assert [p.name for p in sorted(folder.glob('*.h')) if not p.name.endswith('_impl.h') and p.name + ' ' not in text] == []
