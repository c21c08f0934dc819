# SPDX-License-Identifier: Apache-2.0
"""nri-rp-modcheck: in-tree modules pass, modules with one thing wrong fail in the case that is about it."""
import json
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build'))
PROGRAM = BUILD / 'bin' / 'nri-rp-modcheck'
INSTRUMENTED = 'fsanitize' in (BUILD / 'flags').read_text() or '--coverage' in (BUILD / 'flags').read_text()
# What the kit finds in modules made for it is shown in the plain build; under sanitizers it runs those that ship.
kit = pytest.mark.skipif(INSTRUMENTED, reason='tested with the plain build')
# One machine and one seed of each random case.
BRIEF = r'^(static|abi|lifecycle|faults|controller)/|report/(metrics|state)|two-sockets( seed 1)?$|explain'

# What is wrong, and the case that has to say so, in what words.
CONDUCT = {
    1: ('lifecycle/create-destroy', 'bytes leak each time'),
    2: ('lifecycle/create-destroy', '1000 file descriptors leak'),
    3: ('lifecycle/orders', 'written to standard output or error: placed'),
    4: ('placement/determinism two-sockets seed 1', 'decided differently the second time'),
    5: ('lifecycle/release-unplaced', 'release() must not fail: it is mine'),
    6: ('placement/restart two-sockets seed 1', 'changes a valid placement'),
    7: ('faults/enomem', 'call 1 of the host, get_ctr(), fails with Cannot allocate memory'),
    8: ('abi/longer-structs', 'crashed (SIGSEGV) in create'),
    9: ('abi/missing-services', 'crashed (SIGSEGV) in allocate'),
    10: ('static/symbols', 'pthread_create, which starts a thread'),
    11: ('abi/rules', 'set .size to its sizeof'),
    12: ('placement/dry-run two-sockets seed 1', 'tried and dropped changed later decisions'),
    13: ('faults/annotations', 'crashed (SIGABRT) in allocate'),
    14: ('abi/services', 'service("nri-rp.policy/99") returns a struct'),
    15: ('placement/invariants two-sockets seed 1', 'I1: container'),
    16: ('placement/explain large', 'without a note that explains why'),
    17: ('placement/returns two-sockets seed 1', 'placed differently than by a fresh instance'),
    18: ('lifecycle/orders', 'not an RP_E code'),
    19: ('lifecycle/prepare-abort', 'bytes leak each time'),
    21: ('unmanaged/invariants two-sockets seed 1', 'unmanaged returned -1, which is not an RP_E code'),
    22: ('unmanaged/dry-run two-sockets seed 1', 'tried and dropped have changed later ones'),
    23: ('unmanaged/later two-sockets', 'still degraded (no room) after the others were removed'),
}

# What is told of itself, asked for or returned that makes no sense.
CURIOUS = {
    1: ('report/zones two-sockets', 'a zone with name "whole" and type ""'),
    2: ('report/zones two-sockets', 'two zones whole'),
    3: ('report/zones two-sockets', 'zone part is listed before its parent whole'),
    4: ('report/zones two-sockets', 'more than 1024 zones'),
    5: ('report/zones two-sockets', 'resource "cpu" before any zone'),
    6: ('report/zones two-sockets', 'cpu of zone whole: capacity 4000, allocatable 4000, available 5000'),
    7: ('report/zones two-sockets', 'attribute "" without zone, name or value'),
    8: ('report/zones two-sockets', 'cost -1 to zone "whole"'),
    9: ('report/metrics', 'metric "2 much" (What it has seen.): not valid for Prometheus'),
    10: ('report/metrics', 'labels of metric seen: {a}: not valid for Prometheus'),
    11: ('abi/rules', 'log() at the unknown level 99'),
    12: ('abi/rules', 'log() without a text'),
    13: ('abi/rules', 'fail() with code 0: codes are negative'),
    14: ('abi/rules', 'fail() without a text'),
    15: ('abi/rules', 'note() without a text'),
    16: ('abi/services', 'service("nri-rp.metrics/1") returns another struct each time'),
    17: ('abi/config', 'declares itself a policy but lacks parts of nri-rp.policy/1'),
    18: ('abi/services', 'nri-rp.config-schema/1 differs without an instance'),
    19: ('report/state', 'load() of its saved state failed: not mine'),
    20: ('lifecycle/reloads', 'a reload of the same configuration'),
    21: ('report/allocatable two-sockets', 'allocatable CPUs that are not online: 0,8000'),
    22: ('report/allocatable two-sockets', 'two calls report different allocatable CPUs'),
    23: ('report/memory two-sockets', '4096 bytes of node 1000, which has no memory or was already reported'),
    24: ('report/memory two-sockets', 'two calls report different memory of'),
}


def module(name):
    in_tree = BUILD / 'modules' / (name + '.so')
    return in_tree if in_tree.exists() else BUILD / 'test' / 'modules' / (name + '.so')


def run(*args, timeout=300):
    return subprocess.run([str(PROGRAM), *map(str, args)], capture_output=True, text=True, timeout=timeout)


def cases(path, *args):
    done = run('--json', *args, path)
    assert done.stderr == ''
    doc = json.loads(done.stdout)
    found = {c['name']: c for c in doc['cases']}
    assert len(found) == len(doc['cases'])
    for verdict in ('passed', 'failed', 'skipped'):
        assert doc[verdict] == sum(c['result'] == verdict for c in found.values())
    assert done.returncode == (1 if doc['failed'] else 0)
    return found


def failed(found):
    return {n: c['reason'] for n, c in found.items() if c['result'] == 'failed'}


@pytest.mark.parametrize('name', ['none', 'static', 'static-plus', 'podpools', 'dynamic-pools', 'cpuset', 'template', 'topology-aware', 'balloons',
                                  *(pytest.param(name, marks=kit) for name in ('good', 'conduct-0', 'conduct-20', 'curious-0'))])
def test_sound_modules_pass(name):
    found = cases(module(name), '--cases', BRIEF)
    assert failed(found) == {}
    assert sum(c['result'] == 'passed' for c in found.values()) > 25


@pytest.mark.parametrize('name', ['memory', 'blkio'])
def test_controllers_pass(name):
    found = cases(module(name), '--cases', BRIEF)
    assert failed(found) == {}
    assert found['controller/faults']['result'] == 'passed'
    assert not any(n.startswith('placement') for n in found)


FILE_CONFIGS = {
    'batch-limits': '{}',
    'blkio': 'classes: {gold: [{devices: [/dev/sda], throttleReadBps: 1M, weight: 500}]}',
    'cpu': 'cpuClasses: [{name: gold, minFreq: 1GHz}]',
    'cpu-burst': '{policy: auto}',
    'cpu-suppress': '{enable: true}',
    'evict': '{interval: 100ms}',
    'memory': 'classes: [{name: gold, swapLimitRatio: 0.5}]',
    'memory-qos': '{}',
    'rdt': 'partitions: {all: {l3Allocation: 100%, mbAllocation: [100%], classes: {gold: {l3Allocation: 50%, mbAllocation: [50%]}}}}',
}


@pytest.mark.parametrize('name', sorted(FILE_CONFIGS))
def test_jobs_of_controllers_use_only_what_any_thread_may(name, tmp_path):
    config = tmp_path / 'config'
    config.write_text(FILE_CONFIGS[name] + '\n')
    found = cases(module(name), '--config', config, '--cases', '^controller/files')
    assert failed(found) == {}
    case = found['controller/files']
    assert case['result'] == 'passed', case
    assert int(re.search(r'(\d+) jobs', str(case))[1]) > 0


@pytest.mark.parametrize('name', ['batch', 'mid', 'cpu-normalization', 'resource-amplification', 'reclaimed', 'gpu', 'rdma', 'template-calculator'])
def test_calculators_pass(name):
    found = cases(module(name))
    assert failed(found) == {}
    assert sum(n.startswith('calculator/') and c['result'] == 'passed' for n, c in found.items()) == 9  # three seeds of each


@pytest.mark.parametrize('n', sorted(CONDUCT))
def test_bad_conduct_is_noticed(n):
    case, text = CONDUCT[n]
    if INSTRUMENTED and case in ('static/symbols', 'lifecycle/create-destroy', 'lifecycle/prepare-abort'):
        pytest.skip('not looked at in instrumented builds')
    found = cases(module('conduct-%d' % n), '--cases', '^%s$' % case)
    assert text in failed(found)[case]


@pytest.mark.parametrize('n', sorted(CURIOUS))
def test_odd_words_are_noticed(n):
    case, text = CURIOUS[n]
    found = cases(module('curious-%d' % n), '--cases', '^%s$' % case)
    assert text in failed(found)[case]


@pytest.mark.parametrize('name', ['balloons', pytest.param('conduct-20', marks=kit)])
def test_unmanaged(name):
    """The optional callback is looked at where there is one, and not passed over."""
    found = cases(module(name), '--cases', '^unmanaged/')
    assert failed(found) == {}
    assert found['unmanaged/invariants two-sockets seed 1']['result'] == found['unmanaged/later two-sockets']['result'] == 'passed'
    assert 'ran unmanaged' in found['unmanaged/invariants two-sockets seed 1']['notes']


@kit
def test_hints_of_others():
    """The one policy that merges them has looked at them, and chosen."""
    found = cases(module('qos'), '--cases', '^creation/')
    assert {case['result'] for name, case in found.items() if name != 'creation/conflict'} == {'passed'}
    assert ' choices' in found['creation/hints']['notes']


def test_without_unmanaged():
    found = cases(module('none'), '--cases', '^unmanaged/')
    assert {c['result'] for n, c in found.items() if n.startswith('unmanaged/')} == {'skipped'}


@kit
def test_timing():
    """Figures are notes; only when they are asked to decide, they do."""
    found = cases(module('good'), '--cases', '^placement/time')
    assert failed(found) == {}
    assert any('allocate at' in c.get('notes', '') for c in found.values())


@pytest.mark.parametrize('name,case,text', [
    ('constructor', 'static/constructors', 'before the host could check'),
    ('garbage', 'static/note', 'not an ELF file'),
    ('no-symbol', 'static/exports', 'rp_module_1'),
    ('wrong-major', 'static/note', 'ABI'),
    ('misnamed', 'static/note', 'misnamed.so, but its note has the name other'),
    ('newer', 'static/load', 'needs'),
    ('undefined', 'static/load', 'no_such_function'),
    ('struct-3', 'static/load', 'kinds'),
    ('struct-7', 'static/load', 'create'),
    ('schema-1', 'static/load', ''),
    ('crash', 'lifecycle/orders', 'module "crash" crashed (SIGSEGV) in allocate of "default/pod-c0/c0"'),
    ('overlap', 'placement/invariants small seed 1', 'which is exclusive to container'),
])
def test_bad_modules_fail_where_expected(name, case, text):
    if INSTRUMENTED and case == 'static/constructors':
        pytest.skip('not looked at in instrumented builds')
    found = cases(module(name), '--cases', '^(static/.*|%s)$' % case)
    assert text in failed(found)[case]


@kit
def test_a_hang_ends():
    """One case waits for it, five times as long under sanitizers; no other one has to."""
    found = cases(module('hang'), '--cases', '^lifecycle/')
    assert re.search('did not end within (1|5)0000 ms in allocate', failed(found)['abi/time'])
    assert found['lifecycle/release-twice']['reason'] == 'abi/time failed'


def test_nothing_runs_behind_a_module_that_does_not_load():
    found = cases(module('undefined'))
    assert set(failed(found)) == {'static/load'}
    assert found['lifecycle/orders'] == {'name': 'lifecycle/orders', 'result': 'skipped', 'reason': 'static/load failed',
                                         'took_us': 0}


def test_tap():
    done = run('--cases', '^(static|lifecycle/o)', module('static'))
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0] == 'TAP version 13'
    results = [line for line in lines if re.match(r'(not )?ok ', line)]
    assert lines[1] == '1..%d' % len(results)
    assert [int(re.match(r'ok (\d+) - \w+/', line).group(1)) for line in results] == list(range(1, len(results) + 1))
    assert all(line.startswith('#') for line in lines[2:] if line not in results)


@kit
def test_reproduce_shows_the_same_requests():
    args = ['--reproduce', 7, '--cases', 'invariants small', module('static')]
    first, second = run(*args), run(*args)
    assert first.stdout == second.stdout
    assert 'placement/invariants small seed 7' in first.stdout
    assert first.stdout.count('# create default/c') > 500
    other = run('--reproduce', 8, *args[2:])
    assert other.stdout != first.stdout


def test_recorded_machines(tmp_path):
    cpus = tmp_path / 'machines/mine/sys/devices/system/cpu'
    for cpu in range(3):
        topology = cpus / ('cpu%d' % cpu) / 'topology'
        topology.mkdir(parents=True)
        for name, text in [('physical_package_id', '0'), ('core_id', str(cpu)), ('core_cpus_list', str(cpu))]:
            (topology / name).write_text(text + '\n')
    for name in ('online', 'present', 'possible'):
        (cpus / name).write_text('0-2\n')
    (tmp_path / 'machines/no-machine').mkdir()
    found = cases(module('static'), '--machines', tmp_path / 'machines', '--cases', 'placement/(invariants|restart)')
    assert failed(found) == {}
    assert {n.split()[1] for n in found if n.startswith('placement')} == {'mine'}
    assert (cpus / 'online').read_text() == '0-2\n'
    done = run('--machines', tmp_path / 'machines/no-machine', module('static'))
    assert done.returncode == 1 and 'no folder with' in done.stderr


@kit
def test_pools_that_are_used(tmp_path):
    """Without a configuration all containers are in one pool, or there is none to be in."""
    path = tmp_path / 'pools.conf'
    path.write_text('reservedResources: {cpu: 1}\ndynamicPoolTypes: [{name: p, namespaces: [default]}, {name: q, namespaces: ["kube-*"]}]\n')
    assert failed(cases(module('dynamic-pools'), '--config', path, '--cases', 'two-sockets|lifecycle')) == {}
    path.write_text('pools: {exclusive: {exclusive: true, cpuLists: [{cpuset: 2-3}, {cpuset: "6"}]}, shared: {cpuLists: [{cpuset: 8-11}]}, infra: {cpuLists: [{cpuset: 0-1}]}}\n')
    assert failed(cases(module('static-pools'), '--config', path, '--cases', 'laptop|lifecycle|abi/rules')) == {}


@kit
def test_devices_for_claims(tmp_path):
    """Each balloon type in the list is a device, and a claim of the first one keeps its CPUs."""
    path = tmp_path / 'types.conf'
    path.write_text('reservedResources: {cpu: 1}\nballoonTypes: [{name: fast, maxCPUs: 4}, {name: pair, minCPUs: 2}]\n')
    found = cases(module('balloons'), '--config', path, '--cases', 'report/devices')
    assert failed(found) == {} and len(found) > 4


@kit
def test_configuration(tmp_path):
    section, whole, bad = tmp_path / 'section', tmp_path / 'whole', tmp_path / 'bad'
    section.write_text('# all of them\nreservedResources:\n  cpu: 2\n')
    whole.write_text('policy: static\nstatic:\n  reservedResources: {cpu: 3}\n')
    bad.write_text('reservedResources: {cpu: 1}\nreservedResource: {}\n')
    for path in (section, whole):
        assert failed(cases(module('static'), '--config', path, '--cases', 'abi/|small seed 1')) == {}
    found = cases(module('static'), '--config', bad, '--cases', 'lifecycle/orders')
    assert re.search(r'bad:4:\d+: .*reservedResource', failed(found)['abi/config'])
    assert found['lifecycle/orders']['reason'] == 'abi/config failed'
    found = cases(module('static'), '--config', tmp_path / 'none', '--cases', 'lifecycle/orders')
    assert 'No such file' in failed(found)['abi/config']


@pytest.mark.parametrize('args', [[], ['--no-such-option', 'x.so'], ['/no/such/module.so'], [__file__], ['a.so', 'b.so'],
                                  ['--cases', '(', 'x.so'], ['--seed', 'many', 'x.so']])
def test_wrong_usage(args):
    done = run(*args)
    assert done.returncode == 2
    assert done.stderr.startswith('nri-rp-modcheck: ') and done.stdout == ''


def test_help_list_version():
    listed = run('--list')
    assert listed.returncode == 0
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert len(names) == len(set(names)) > 35
    assert {n.split('/')[0] for n in names} == {'static', 'abi', 'lifecycle', 'placement', 'config', 'work', 'unmanaged', 'faults', 'report', 'controller',
                                                    'creation', 'calculator'}
    page = (TOP / 'man/nri-rp-modcheck.1').read_text()
    assert [n for n in names if n not in page] == []
    help_text = run('--help').stdout
    for option in re.findall(r'--[a-z-]+', help_text):
        assert option[2:].replace('-', r'\-') in page or option[2:] in page
    assert run('--version').stdout.startswith('nri-rp-modcheck ')


def test_leaves_nothing_behind(tmp_path):
    env = dict(os.environ, TMPDIR=str(tmp_path))
    done = subprocess.run([str(PROGRAM), '--cases', 'small seed 1', str(module('crash'))], capture_output=True, text=True, env=env,
                          timeout=300)
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


def vectors(path):
    return subprocess.run([PROGRAM, '--vectors', path, BUILD / 'modules/batch.so'], capture_output=True, text=True)


@pytest.mark.parametrize('table', ['node-resources', 'node-qos'])
def test_calculations(table):
    done = vectors(TOP / 'test/vectors' / (table + '.yaml'))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search('^not ok', done.stdout, re.M) and ' 0 failed' in done.stdout


def test_wrong_calculations_are_found(tmp_path):
    text = (TOP / 'test/vectors/node-resources.yaml').read_text().replace('batchCPU: 20600', 'batchCPU: 20601')
    (tmp_path / 'wrong.yaml').write_text(text)
    done = vectors(tmp_path / 'wrong.yaml')
    assert done.returncode == 1 and 'kubernetes.io/batch-cpu: expected 20601, found 20600' in done.stdout


@pytest.mark.parametrize('out, why', [
    ('{min: 52428801, low: 0, high: max}', 'min: expected 52428801, found 52428800'),
    ('{min: 52428800, low: 0}', 'high: expected nothing, found max'),
    ('{min: 52428800, low: 0, high: null}', 'high: expected nothing, found max'),
    ('{min: 52428800, low: 0, high: max, more: 1}', 'more: expected 1, found nothing'),
])
def test_wrong_decisions_are_found(tmp_path, out, why):
    (tmp_path / 'wrong.yaml').write_text('kind: memory-qos\ncases:\n- {name: x, in: {request: 100Mi, minLimitPercent: 50}, out: %s}\n' % out)
    done = vectors(tmp_path / 'wrong.yaml')
    assert done.returncode == 1 and why in done.stdout
