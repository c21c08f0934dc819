# SPDX-License-Identifier: Apache-2.0
"""Definitions of custom resources, made of the modules' tables: structural, as API servers demand, and with what the tables say."""
import json
import subprocess

from simnode import BUILD

ANYTHING, INT_OR_STRING = 'x-kubernetes-preserve-unknown-fields', 'x-kubernetes-int-or-string'


def definitions():
    done = subprocess.run([BUILD / 'bin' / 'nri-rpctl', '--module-dir', BUILD / 'modules', 'config', 'crds'], capture_output=True, check=True)
    return {d['spec']['names']['kind']: d for d in json.loads(done.stdout)['items']}


def schema(definition):
    version, = definition['spec']['versions']
    assert version['served'] and version['storage'] and version['subresources'] == {'status': {}}
    return version['schema']['openAPIV3Schema']


def not_structural(node, path=''):
    """What an API server would refuse."""
    bad = []
    if not (isinstance(node.get('type'), str) or node.get(ANYTHING) or node.get(INT_OR_STRING)):
        bad.append(path + ': no type')
    if 'properties' in node and 'additionalProperties' in node:
        bad.append(path + ': named members and others')
    if node.get('additionalProperties') is False or 'default' in node:
        bad.append(path + ': not allowed')
    if node.get('type') == 'array' and 'items' not in node:
        bad.append(path + ': no items')
    if any(abs(node.get(key, 0)) > 2 ** 53 for key in ('minimum', 'maximum')):
        bad.append(path + ': not exact')
    below = {**node.get('properties', {}), '[]': node.get('items'), '*': node.get('additionalProperties')}
    for key, child in below.items():
        if child:
            bad += not_structural(child, path + '.' + key)
    return bad


def test_structural():
    found = definitions()
    assert set(found) >= {'BalloonsPolicy', 'TopologyAwarePolicy'}
    for kind, definition in found.items():
        names = definition['spec']['names']
        assert definition['metadata']['name'] == names['plural'] + '.config.nri' and names['singular'] == kind.lower()
        assert not_structural(schema(definition)) == []
        selector = schema(definition)['properties']['spec']['properties']['nodeSelector']
        assert (selector['type'], selector['additionalProperties']) == ('object', {'type': 'string'})
        assert [c['name'] for c in definition['spec']['versions'][0]['additionalPrinterColumns']] == ['Generation', 'Nodes', 'Status', 'Age']
    assert found['BalloonsPolicy']['spec']['names']['plural'] == 'balloonspolicies'
    assert not_structural({'properties': {'a': {'enum': ['x']}}, 'type': 'object'}) == ['.a: no type']


def test_what_tables_say():
    spec = schema(definitions()['BalloonsPolicy'])['properties']['spec']
    kind = spec['properties']['balloonTypes']['items']
    assert kind['required'] == ['name'] and kind['properties']['minCPUs']['type'] == 'integer'
    assert spec['properties']['instrumentation']['properties']['samplingRatePerMillion']['maximum'] == 1000000
    assert spec['properties']['pinCPU']['type'] == 'boolean' and 'Default: true.' in spec['properties']['pinCPU']['description']
    assert spec['properties']['reservedResources']['properties']['cpu'][INT_OR_STRING] is True
    assert {'agent', 'log', 'control', 'instrumentation', 'dra'} <= set(spec['properties'])


def test_parts_of_the_core_in_a_policy_that_has_some_itself():
    """BalloonsPolicy has control.cpu.classes of its own; rdt and blockio are the core's, as in every other kind."""
    found = definitions()
    control = schema(found['BalloonsPolicy'])['properties']['spec']['properties']['control']['properties']
    assert set(control) == set(schema(found['TopologyAwarePolicy'])['properties']['spec']['properties']['control']['properties'])
    assert control['rdt'][ANYTHING] and control['blockio'][ANYTHING]
    assert control['cpu'][ANYTHING] and control['cpu']['properties']['classes']['type'] == 'object'
