# SPDX-License-Identifier: Apache-2.0
"""The sample configurations and the examples of the manual pages: each is accepted as it is, and each sample does what its first lines say."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import time

import pytest
import yaml

from simnode import ctr

BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', 'build'))
TOP = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = TOP / 'conf' / 'samples'
PER_PACKAGE = 8


def examples():
    """Configurations that manual pages show: all of rp.conf(5), of other pages those with a policy or controllers."""
    for page in sorted((TOP / 'man').glob('*.[1-8]')):
        for number, text in enumerate(re.findall(r'^\.Bd -literal[^\n]*\n(.*?)^\.Ed', page.read_text(encoding='utf-8'), re.M | re.S)):
            key = re.match(r'(\w+):( |\n  )', text)
            if key and (page.name == 'rp.conf.5' or key[1] in ('policy', 'controllers')) and 'policy: mine' not in text:
                yield pytest.param(text.replace('\\(dq', '"'), id='%s-%d' % (page.name, number))


def check_config(make_node, path):
    root = make_node(start=False).paths['root']
    pathlib.Path(root, 'proc/interrupts').write_text('            CPU0\n  24:          1  PCI-MSI 524288-edge  eth0-rx-0\n')
    done = subprocess.run([BUILD / 'bin/nri-rpd', '--check-config', '--config', path, '--module-dir', BUILD / 'modules', '--host-root', root],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith('good\n'), done.stdout + done.stderr


@pytest.mark.parametrize('sample', sorted(SAMPLES.glob('*.conf')), ids=lambda path: path.stem)
def test_accepted(make_node, sample):
    check_config(make_node, sample)


@pytest.mark.parametrize('text', examples())
def test_examples_of_manuals(make_node, tmp_path, text):
    path = tmp_path / 'rp.conf'
    path.write_text(text)
    check_config(make_node, path)


def test_examples_per_section():
    """Each section of rp.conf(5) that describes keys has an example, and all keys are described in such a section."""
    page = (TOP / 'man/rp.conf.5').read_text(encoding='utf-8')
    sections = [s for s in page.split('\n.Sh ') if re.search(r'^\.It Ic \w', s, re.M)]
    assert len(sections) > 5 and not [s.partition('\n')[0] for s in sections if '.Bd -literal' not in s]


def test_options_of_the_agent():
    """Each line, whether it is commented out or not, has options that the agent knows, and a value for each that wants one."""
    lines = [shlex.split(line.lstrip('#'))[0] for line in (SAMPLES / 'nri-rp-agent.default').read_text().splitlines() if 'NRI_RP_AGENT_OPTIONS=' in line]
    assert len(lines) == 2
    for line in lines:
        options = shlex.split(line.removeprefix('NRI_RP_AGENT_OPTIONS='))
        done = subprocess.run([BUILD / 'bin/nri-rp-agent', *options, '--version'], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout.startswith('nri-rp-agent '), done.stderr


def sample(make_node, name, start=True):
    return make_node(yaml.safe_load((SAMPLES / f'{name}.conf').read_text()), start=start)


def test_dedicated(make_node):
    node = sample(make_node, 'balloons-dedicated')
    node.create('g', ctr('g0', '2', '64Mi'))
    node.create('b', ctr('b0', '500m/1'))
    node.expect('disjoint(g0, b0)', 'count(cpus(g0)) == 2')
    assert len(node.cpus('b0')) > 1


def frequency(node, cpu, which):
    return (pathlib.Path(node.paths['root']) / f'sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{which}_freq').read_text().strip()


def reaches(node, cpu, which, khz):
    deadline = time.monotonic() + 20
    while frequency(node, cpu, which) != khz and time.monotonic() < deadline:
        time.sleep(0.02)
    assert frequency(node, cpu, which) == khz


def test_turbo(make_node):
    node = sample(make_node, 'balloons-turbo', start=False)
    limits = {'cpuinfo_min_freq': '800000', 'cpuinfo_max_freq': '3800000', 'base_frequency': '2400000', 'scaling_min_freq': '800000',
              'scaling_max_freq': '3800000', 'scaling_governor': 'powersave'}
    for cpu in range(16):
        folder = pathlib.Path(node.paths['root'], 'sys/devices/system/cpu/cpu%d/cpufreq' % cpu)
        folder.mkdir(exist_ok=True)
        for name, text in limits.items():
            (folder / name).write_text(text + '\n')
    node.start()
    node.create('n', ctr('n0', '2', '64Mi'))
    node.create('c', ctr('c0', '4', '64Mi'), labels={'latency': 'critical'})
    package = {cpu // PER_PACKAGE for cpu in node.cpus('c0')}
    assert len(package) == 1 and len({cpu // 2 for cpu in node.cpus('c0')}) == len(node.cpus('c0'))
    for cpu in node.cpus('c0'):
        reaches(node, cpu, 'min', '2400000')
        reaches(node, cpu, 'max', '3800000')
    near, far = ({cpu for cpu in range(16) if (cpu // PER_PACKAGE in package) == here and cpu not in node.cpus('c0')} for here in (True, False))
    idle = max(near - {cpu | 1 for cpu in node.cpus('c0')} - {cpu & ~1 for cpu in node.cpus('c0')} - {0})
    reaches(node, idle, 'max', '2400000')
    reaches(node, max(far), 'max', '3800000')
    node.delete('c')
    reaches(node, idle, 'max', '3800000')


def test_neighbours(make_node):
    node = sample(make_node, 'balloons-neighbours')
    node.create('o', ctr('o0', '2', '64Mi'))
    for i in range(3):
        node.create(f'j{i}', ctr(f'j{i}c', '2', '64Mi'), namespace='batch-nightly')
    node.create('loud', ctr('loud0', '2', '64Mi'), labels={'noisy': 'yes'})
    assert node.cpus('batch-nightly/j0/j0c') == node.cpus('loud0') and len(node.cpus('loud0')) == 8
    node.reject('more', ctr('more0', '1', '64Mi'), namespace='ci', error='no balloon of type')
    node.create('h0', ctr('h0c', '1', '64Mi'), labels={'load': 'cache'})
    node.create('h1', ctr('h1c', '1', '64Mi'), labels={'load': 'cache'})
    node.expect('disjoint(o0, loud0, h0c, h1c)', 'disjoint(cores(h0c), cores(h1c))')


def test_namespaces(make_node):
    node = sample(make_node, 'balloons-namespaces')
    for pod, space, labels in (('a', 'red', {}), ('b', 'red', {}), ('c', 'blue', {}), ('d', 'db-x', {}),
                               ('e', 'ci-1', {'stage': 'lint'}), ('f', 'ci-2', {'stage': 'lint'}), ('g', 'ci-2', {'stage': 'test'})):
        node.create(pod, ctr(pod + '0', '1', '64Mi'), namespace=space, labels=labels)
    node.expect('count(cpus(d0)) == 4')
    zones = {z['name']: {a['name']: a['value'] for a in z['attributes']} for z in node.ctl('zones')}
    assert sorted(name for name in zones if '/' not in name) == [
        'builds[0]', 'builds[1]', 'databases[0]', 'default[0]', 'reserved[0]', 'teams[0]', 'teams[1]']
    assert node.cpus('ci-1/e/e0') == node.cpus('ci-2/f/f0') != node.cpus('ci-2/g/g0')
    own = [zones[f'teams[{i}]']['cpuset'] for i in range(2)]
    assert len(set(own)) == 2


def test_composite(make_node):
    node = sample(make_node, 'balloons-composite')
    node.create('j', ctr('j0', '4', '64Mi'), namespace='jobs')
    node.expect('count(cpus(j0)) == 4', 'count(nodes(j0)) == 2')
    node.create('b', ctr('b0', '2', '64Mi'), namespace='batch-1')
    node.expect('count(nodes(b0)) == 1', 'disjoint(j0, b0)')


# ---- the JSON schema for editors ----

TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'integer': int, 'number': (int, float), 'null': type(None)}


def misfits(value, schema, place=''):
    """Where a value is not what a JSON schema of ours allows, by the words that these use."""
    types = schema.get('type', [])
    types = [types] if isinstance(types, str) else types
    if types and not any(isinstance(value, TYPES[t]) and (t == 'boolean' or not isinstance(value, bool)) for t in types):
        return [f'{place}: {value!r} is none of {types}']
    bad = []
    if 'enum' in schema and not any(value == allowed and isinstance(value, bool) == isinstance(allowed, bool) for allowed in schema['enum']):
        bad.append(f'{place}: {value!r} is none of {schema["enum"]}')
    if isinstance(value, str) and not re.search(schema.get('pattern', ''), value):
        bad.append(f'{place}: {value!r} does not match')
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not schema.get('minimum', value) <= value <= schema.get('maximum', value):
        bad.append(f'{place}: {value} is out of range')
    if isinstance(value, dict):
        bad += [f'{place}: no {key}' for key in schema.get('required', []) if key not in value]
        for key, member in value.items():
            below = schema.get('properties', {}).get(key, schema.get('additionalProperties', True))
            if below is False:
                bad.append(f'{place}.{key}: unknown')
            elif below is not True:
                bad += misfits(member, below, f'{place}.{key}')
    if isinstance(value, list):
        for member in value:
            bad += misfits(member, schema.get('items', {}), place + '[]')
    return bad


@pytest.fixture(scope='module')
def editors_schema():
    return json.loads(subprocess.run([BUILD / 'bin/nri-rpctl', '--module-dir', BUILD / 'modules', 'config', 'schema'], capture_output=True, check=True).stdout)


@pytest.mark.parametrize('sample', sorted([*SAMPLES.glob('*.conf'), SAMPLES.parent / 'rp.conf']), ids=lambda path: path.stem)
def test_editors_accept_samples(editors_schema, sample):
    assert [misfits(document, editors_schema) for document in yaml.safe_load_all(sample.read_text()) if document] in ([], [[]])


@pytest.mark.parametrize('text', [
    'policy: static\nstatic: {reservedResources: {cpu: 1}, pinMemory: yes}\n', 'policy: none\nstatic: null\nmetrics:\nlog: {level: null}\n',
    '{apiVersion: config.nri/v1alpha1, kind: BalloonsPolicy, metadata: {name: default}, spec: {reservedResources: {cpu: 750m}}}\n',
    'policy: balloons\nballoons: {reservedResources: {cpu: 1}, log: {debug: [policy]}, control: {rdt: {enable: false}, cpu: {classes: {a: {minFreq: 800000}}}}}\n',
    'policy: balloons\nballoons: {reservedResources: {cpu: 1}, balloonTypes: [{name: 5, minCPUs: 1, namespaces: [1, yes]}]}\n',
    'controllers: [rdt]\nrdt: {monitoring: off}\n', 'static: {topologyManagerPolicy: restricted}\n', 'admit: {timeout: 0}\n',
], ids=['words', 'nulls', 'resource', 'pasted', 'names', 'off', 'part', 'zero'])
def test_editors_accept_what_the_daemon_accepts(editors_schema, tmp_path, text):
    """Words are read as YAML 1.1 has them. A part is a file of rp.conf.d, whose required keys another file has."""
    path = tmp_path / 'rp.conf'
    path.write_text('static: {reservedResources: {cpu: 1}}\n---\n' + text)
    done = subprocess.run([BUILD / 'bin/nri-rpctl', '--module-dir', BUILD / 'modules', 'config', 'check', '--local', path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert misfits(yaml.safe_load(text), editors_schema) == []


@pytest.mark.parametrize('text', ['policy: [a]\n', 'static: {pinMemory: maybe}\n', 'metrics: {no-such: 1}\n', 'runtime: {index: 100}\n', 'static: 5\n',
                                  'balloons: {balloonTypes: [{minCPUs: 1}]}\n'])
def test_editors_refuse_what_the_daemon_refuses(editors_schema, text):
    assert misfits(yaml.safe_load(text), editors_schema)
