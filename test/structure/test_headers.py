# SPDX-License-Identifier: Apache-2.0
"""A header belongs to one source: it declares what the source of the same name defines, and what other files use."""
import functools
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
DEFINITION = re.compile(r'^(?!static|typedef|return|else|#|\s|/|\*|extern)[A-Za-z_][\w \*]*?[ \*](\w+)\((?:[^;{}]|\n)*?\)\n\{', re.M)
ROW = re.compile(r'^DEFINE_\w+\((\w+),', re.M)  # of a macro that defines a function
PROTOTYPE = re.compile(r'^(?!static|typedef|#|\s|\}|\{)[A-Za-z_][\w \*]*?[ \*](\w+)\([^;{}]*\)[^;{}()]*;', re.M | re.S)
# What the files of one folder share, under a name that says so, and headers that are the face of a whole folder.
SHARED = re.compile(r'(^|_)(internal|impl)\.h$')
FACES = {'core/lib/conf/conf.h', 'core/lib/topo/topo.h', 'core/lib/topo/sst.h', 'core/lib/term/out.h',
         'core/nri-rpctl/cli.h', 'core/nri-rpd/host/service/services.h'}


def code_of(path):
    """Returns the text with blanks in place of comments, so that offsets stay."""
    return re.sub(r'/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m[0]), path.read_text(), flags=re.S)


@functools.cache
def core_code(top):
    return {p.relative_to(top).as_posix(): code_of(p) for p in sorted((top / 'core').rglob('*')) if p.suffix in ('.c', '.h')}


def definitions(code):
    """Returns function -> sources that define it."""
    found = {}
    for name, text in code.items():
        if name.endswith('.c'):
            for function in DEFINITION.findall(text) + ROW.findall(text):
                found.setdefault(function, []).append(name)
    return found


def misplaced(code):
    """Yields prototypes that stand in a header of another source."""
    defined = definitions(code)
    for name, text in code.items():
        if not name.endswith('.h') or name in FACES or SHARED.search(pathlib.PurePosixPath(name).name):
            continue
        for function in PROTOTYPE.findall(text):
            sources = defined.get(function, [])
            if not sources:
                yield '%s declares %s(), which no source defines' % (name, function)
            elif name[:-2] + '.c' not in sources:
                yield '%s declares %s() of %s' % (name, function, sources[0])


def own_use_only(code, others):
    """Yields functions that a header declares and only their own source uses."""
    users = {}
    for name, text in {**code, **others}.items():
        for word in set(re.findall(r'\w+', text)):
            users.setdefault(word, set()).add(name)
    defined = definitions(code)
    for name, text in code.items():
        if name.endswith('.h'):
            for function in PROTOTYPE.findall(text):
                in_macros = len(re.findall(r'\b%s\b' % function, text)) > 1
                if not in_macros and not users[function] - set(defined.get(function, [])) - {name}:
                    yield '%s declares %s() for nobody' % (name, function)


def other_code(top):
    files = [p for folder in ('test', 'modules/lib') for p in (top / folder).rglob('*') if p.suffix in ('.c', '.h')]
    return {p.relative_to(top).as_posix(): code_of(p) for p in files}


def test_a_header_declares_what_its_source_defines():
    assert list(misplaced(core_code(TOP))) == []


def test_a_header_declares_what_others_use():
    assert list(own_use_only(core_code(TOP), other_code(TOP))) == []


def test_the_checks_can_fail(tmp_path):
    folder = tmp_path / 'core/lib/util'
    folder.mkdir(parents=True)
    (folder / 'a.h').write_text('int a_run(void);\nint b_run(void);\nint none(void);\n')
    (folder / 'a.c').write_text('int a_run(void)\n{\n\treturn b_run();\n}\n')
    (folder / 'b.c').write_text('int b_run(void)\n{\n\treturn 0;\n}\n')
    code = core_code(tmp_path)
    assert len(list(misplaced(code))) == 2
    assert len(list(own_use_only(code, {}))) == 2
