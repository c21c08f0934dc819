# SPDX-License-Identifier: Apache-2.0
"""What a cluster is given belongs together: roles and who has them, volumes and their mounts, and metrics that there are."""
import json
import pathlib
import re

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDER = TOP / 'packaging' / 'kubernetes'
BASE = FOLDER / 'base'


def documents():
    return [d for f in sorted(BASE.glob('*.yaml')) for d in yaml.safe_load_all(f.read_text()) if d]


def of_kind(*kinds):
    return [d for d in documents() if d['kind'] in kinds]


def test_all_files_are_listed():
    listed = yaml.safe_load((BASE / 'kustomization.yaml').read_text())['resources']
    assert set(listed) == {f.name for f in BASE.glob('*.yaml')} - {'kustomization.yaml'} | {'crds.json'}


def test_each_role_is_given_to_the_agent():
    account, = of_kind('ServiceAccount')
    roles = {(d['kind'], d['metadata']['name']) for d in of_kind('Role', 'ClusterRole')}
    bound = {(d['roleRef']['kind'], d['roleRef']['name']) for d in of_kind('RoleBinding', 'ClusterRoleBinding')}
    assert roles == bound and len(roles) > 3
    for binding in of_kind('RoleBinding', 'ClusterRoleBinding'):
        assert [s['name'] for s in binding['subjects']] == [account['metadata']['name']]
    daemons, = of_kind('DaemonSet')
    assert daemons['spec']['template']['spec']['serviceAccountName'] == account['metadata']['name']


def test_no_right_is_more_than_asked_for():
    verbs = {v for d in of_kind('Role', 'ClusterRole') for rule in d['rules'] for v in rule['verbs']}
    assert verbs <= {'get', 'list', 'watch', 'create', 'patch'}


def test_volumes():
    pod = of_kind('DaemonSet')[0]['spec']['template']['spec']
    volumes = {v['name'] for v in pod['volumes']}
    mounted = {m['name'] for c in pod['containers'] for m in c['volumeMounts']}
    assert volumes == mounted
    for container in pod['containers']:
        context = container['securityContext']
        assert context['capabilities']['drop'] == ['ALL'] and not context['allowPrivilegeEscalation'] and context['readOnlyRootFilesystem']


def test_metrics_exist():
    text = (FOLDER / 'monitoring' / 'rules.yaml').read_text() + json.dumps(json.loads((FOLDER / 'monitoring' / 'dashboard.json').read_text()))
    names = {re.sub('_bucket$', '', n) for n in re.findall(r'\bnri_rp_\w+', text)}
    sources = ''.join(p.read_text() for p in (TOP / 'core' / 'metrics').glob('*.c'))
    assert len(names) > 8 and {n for n in names if '"%s"' % n not in sources} == set()
    for group in yaml.safe_load((FOLDER / 'monitoring' / 'rules.yaml').read_text())['groups']:
        assert all(r['alert'] and r['expr'] and r['annotations']['summary'] for r in group['rules'])
