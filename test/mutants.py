#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which share of errors in modules/ the tests catch.

Makes small random errors in the sources of modules, one at a time, in a copy of the tree: builds what depends on the file, runs the unit
tests that do, the conformance kit on a module when those pass, and then the stories of that module. A mutant that does not compile, or compiles to the same code, does not
count. What survives is listed: a test to write, or an error that makes no difference.

    test/mutants.py [--seed N] [--work DIR] [--module NAME] [--last PATTERN] N

With --last, programs of test/unit that the pattern fits are asked after everything else, all of them: what only they notice is what they are
worth, and a program that alone notices nothing can go.
"""
import argparse
from concurrent import futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = ['make', '-k', '-j2', 'CC=' + os.environ.get('CC', 'gcc')]
UNIT_S = 60
KIT_S = 300
STORIES_S = 120
PYTEST = ['/usr/bin/python3', '-B', '-m', 'pytest', '-q', '-p', 'no:cacheprovider']
JOBS = 6
# Machines are thousands of small files.
if os.access('/dev/shm', os.W_OK):
    os.environ['TMPDIR'] = '/dev/shm'
# Modules that stand for the library when the kit checks an error in it.
OF_THE_LIBRARY = ['topology-aware', 'balloons', 'static']
# What the kit is told beside the module: no cases of how long calls take, on a machine that does several things at once; and what it cannot do
# without.
TIMELESS = '^([^p]|p[^l]|placement/[^t])'
KIT = {'static-pools': ['--config', 'conf/samples/static-pools.conf', '--cases', 'laptop|lifecycle|abi/rules']}
# Programs of test/unit that a folder's sources are in, where they are not called as the folder is; of the library those that are called as
# the source, and these.
TESTS = {'topology-aware': 'ta', 'dynamic-pools': 'dynpools', 'cpu': 'cpuctl', 'lib': '(modlib|static|ta|balloons|dynpools|template)'}

# What is looked for, and what may come in its place.
OPERATORS = [
    (r' < ', [' <= ', ' > ']), (r' > ', [' >= ', ' < ']), (r' <= ', [' < ']), (r' >= ', [' > ']),
    (r' == ', [' != ']), (r' != ', [' == ']), (r' && ', [' || ']), (r' \|\| ', [' && ']),
    (r' \+ ', [' - ']), (r' - ', [' + ']), (r' \+= ', [' -= ']), (r' -= ', [' += ']),
    (r' \|= ', [' &= ', ' = ']), (r' & ~', [' & ', ' | ~']), (r'\+\+', ['--']),
    (r'\btrue\b', ['false']), (r'\bfalse\b', ['true']), (r'\b0\b', ['1']), (r'\b1\b', ['0', '2']),
    (r'(?<=[ (!])!(?=[a-z(])', ['']), (r'\bcontinue;', ['break;']), (r'\bbreak;', ['continue;', ';']),
    (r'_and\(', ['_or(']), (r'_andnot\(', ['_and(']), (r'_or\(', ['_and(']),
    (r'^\t+(?!return|struct|const|static|case|goto)[a-z_>.\-\[\]]+(\(.*\)| = .*);$', [';']),
]


def lines_of_code(text):
    """Numbers of the lines within functions, without comments and strings that would match."""
    inside = comment = False
    for number, line in enumerate(text.split('\n')):
        if line == '{':
            inside = True
        elif line.startswith('}'):
            inside = False
        was = comment
        comment = (comment or '/*' in line) and '*/' not in line.rpartition('/*')[2]
        if inside and not was and '/*' not in line and 'modhost_' not in line and '"' not in line:
            yield number


def mutate(path, rng):
    """The text with one error, and what it is; None: nothing was found to do."""
    lines = path.read_text().split('\n')
    numbers = list(lines_of_code('\n'.join(lines)))
    for _ in range(50 if numbers else 0):
        number = rng.choice(numbers)
        pattern, others = rng.choice(OPERATORS)
        found = list(re.finditer(pattern, lines[number]))
        if not found:
            continue
        at, line = rng.choice(found), lines[number]
        lines[number] = line[:at.start()] + rng.choice(others) + line[at.end():]
        return '\n'.join(lines), '%s:%d: %s  ->  %s' % (path, number + 1, line.strip(), lines[number].strip())
    return None


class Tree:
    def __init__(self, work, last):
        self.top, self.last = work, last

    def make(self, *targets):
        return subprocess.run(BUILD + list(targets), cwd=self.top, capture_output=True, text=True, check=False)

    def fails(self, command, limit, tries=2):
        """Twice, since a test may have waited for too long on a busy machine."""
        for _ in range(tries):
            try:
                if not subprocess.run(command, cwd=self.top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit, check=False).returncode:
                    return False
            except subprocess.TimeoutExpired:
                pass
        return True

    def first_failing(self, checks):
        """The name of a check (name, command, limit, tries) that fails, several at a time since most of them wait; '' when none does."""
        with futures.ThreadPoolExecutor(JOBS) as pool:
            running = {pool.submit(self.fails, *check[1:]): check[0] for check in checks}
            for done in futures.as_completed(running):
                if done.result():
                    pool.shutdown(wait=False, cancel_futures=True)
                    return running[done]
        return ''

    def object_of(self, source):
        return self.top / 'build/pic' / source.relative_to(self.top).with_suffix('.o')

    def tests(self, source):
        folder = source.parent.name
        names = [TESTS.get(folder, folder.replace('-', '_'))]
        if folder == 'lib':
            names.insert(0, source.stem.split('_')[0])
        programs = sorted('build/test/' + p.stem for p in (self.top / 'test/unit').glob('t_*.c'))
        return [t for n in names for t in programs if re.match('build/test/t_' + n + '(_|$)', t)]

    def names(self, source):
        return OF_THE_LIBRARY if source.parent.name == 'lib' else [source.parent.name]

    def modules(self, source):
        return ['build/modules/%s.so' % n for n in self.names(source)]

    def stories(self, source):
        """The stories and the recorded workloads of the module, as checks."""
        names, top = self.names(source), self.top / 'test/scenario/stories'
        files = [str(p) for n in names for p in [*sorted(top.glob(n + '/*.yaml')), *sorted(top.glob('*/%s.yaml' % n))]]
        stories = [(os.path.relpath(f, self.top), ['build/bin/nri-rp-sim', 'play', f], STORIES_S) for f in files]
        recorded = [*PYTEST, 'test/scenario/test_recorded.py', '-k', ' or '.join(names)]
        return stories + [('recorded', recorded, STORIES_S)] * (names[0] in OF_THE_LIBRARY)

    def caught_by(self, source):
        """The first check that fails, or the last programs that do; '' when none does."""
        self.make(*self.tests(source))
        last = [t for t in self.tests(source) if self.last and re.search(self.last, t)]
        found = self.first_failing([(t, [t], UNIT_S) for t in self.tests(source) if t not in last])
        if found:
            return found
        self.make(*self.modules(source))
        kit = [('nri-rp-modcheck ' + m, ['build/bin/nri-rp-modcheck', m, *KIT.get(pathlib.Path(m).stem, ['--cases', TIMELESS])], KIT_S, 1) for m in self.modules(source)]
        return self.first_failing(kit + self.stories(source)) or ' '.join('only ' + t for t in last if self.fails([t], UNIT_S))

    def compiles_to_another(self, source):
        obj = self.object_of(source)
        before, since = obj.read_bytes(), time.time()
        self.make(str(obj.relative_to(self.top)))
        return obj.exists() and obj.stat().st_mtime >= since and obj.read_bytes() != before


def prepare(work, last):
    """A copy of what is committed, with everything built."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    files = subprocess.run(['git', 'archive', 'HEAD'], cwd=TOP, capture_output=True, check=True).stdout
    subprocess.run(['tar', 'x'], cwd=work, input=files, check=True)
    tree = Tree(work, last)
    done = tree.make('all', 'test-programs')
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return tree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('n', type=int, help='errors that count')
    parser.add_argument('--seed', type=int, default=int(time.time()))
    parser.add_argument('--work', type=pathlib.Path, default=TOP / 'build/mutants', help='where the copy is built')
    parser.add_argument('--module', default='*', help='a folder of modules/; all of them by default')
    parser.add_argument('--last', metavar='PATTERN', help='programs of test/unit that are asked after everything else')
    args = parser.parse_args()
    tree, rng = prepare(args.work.resolve(), args.last), random.Random(args.seed)
    print('seed %d' % args.seed, flush=True)
    sources = sorted(p for p in (tree.top / 'modules').glob(args.module + '/*.c') if tree.object_of(p).exists())
    weights = [p.read_text().count('\n') for p in sources]
    tried = caught = same = alone = 0
    by_folder = {}
    while tried < args.n:
        source = rng.choices(sources, weights)[0]
        change, whole = mutate(source, rng), source.read_text()
        if not change:
            continue
        if source.parent.name not in by_folder:
            fails = tree.caught_by(source)
            if fails:
                sys.exit('%s fails without an error' % fails)
        source.write_text(change[0])
        found = tree.caught_by(source) if tree.compiles_to_another(source) else None
        source.write_text(whole)
        tree.make(str(tree.object_of(source).relative_to(tree.top)))
        if found is None:
            same += 1
            continue
        tried += 1
        caught += bool(found)
        alone += found.startswith('only ')
        row = by_folder.setdefault(source.parent.name, [0, 0])
        row[0] += bool(found)
        row[1] += 1
        what = change[1].replace(str(tree.top) + '/', '')
        print('%s %s%s' % ('caught  ' if found else 'SURVIVES', what, '  by ' + found if found else ''), flush=True)
        print('%d of %d caught, %d%%, %d by the last alone; %d made no difference or no program'
              % (caught, tried, 100 * caught // tried, alone, same), flush=True)
    for name, (n_caught, n) in sorted(by_folder.items()):
        print('%-24s %d of %d' % (name, n_caught, n))
    return 0


if __name__ == '__main__':
    sys.exit(main())
