# SPDX-License-Identifier: Apache-2.0
"""The Helm chart without helm: its templates of the manifests, by chart.sed, and what they make of values. Of Go's templates only what chart.sed
writes is known; anything else is an error."""
import json
import pathlib
import re
import subprocess

import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'packaging' / 'kubernetes'
CHART = FOLDER / 'chart'
TEMPLATES = {**{name: 'base/' + name for name in ('rbac', 'configuration', 'networkpolicy', 'daemonset')},
             'resource-slices': 'resource-slices/rbac', 'dra': 'dra/driver'}  # and the manifests that they are made of


def values(version='0.0.0'):
    return yaml.safe_load((CHART / 'values.yaml').read_text().replace('@version@', version))


def template(name):
    return subprocess.run(['sed', '-f', str(FOLDER / 'chart.sed'), str(FOLDER / (TEMPLATES[name] + '.yaml'))], capture_output=True, text=True, check=True).stdout


def _term(word, scope):
    if word.startswith('"'):
        return json.loads(word)
    absent_is_none = word.startswith('(')
    for key in word.replace('(', '').replace(')', '')[1:].split('.'):
        scope = (scope or {}).get(key) if absent_is_none else scope[key]
    return scope


def _expression(text, scope):
    first, *functions = [part.split() for part in text.split('|')]
    if first[0] == 'pick':
        value = {k: v for k, v in _term(first[1], scope).items() if k in [_term(word, scope) for word in first[2:]]}
    elif first[:2] == ['default', 'dict']:
        value = _term(first[2], scope) or {}
    elif first[0] == 'printf':
        value = _term(first[1], scope) % tuple(_term(word, scope) for word in first[2:])
    else:
        word, = first
        value = _term(word, scope)
    for function, in functions:
        assert function == 'toJson', function
        value = json.dumps(value, separators=(',', ':'), sort_keys=True)  # as Go writes it
    return value


def _conditions(text, scope):
    """Blocks of lines between {{- if VALUE }} and {{- end }}, the inner ones first."""
    def block(m):
        return m.group(2) if _term(m.group(1), scope) else ''
    while True:
        done = re.sub(r'\n *\{\{- if (\S+) \}\}((?:\n(?! *\{\{- (?:if|end)).*)*)\n *\{\{- end \}\}', block, text)
        if done == text:
            return done
        text = done


def render(with_values, namespace='nri-rp'):
    """All documents of a release."""
    scope = {'Values': with_values, 'Release': {'Namespace': namespace}}
    texts = [re.sub(r'\{\{(.*?)\}\}', lambda m: _expression(m.group(1), scope), _conditions(template(name), scope)) for name in TEMPLATES]
    return [d for text in texts for d in yaml.safe_load_all(text) if d]
