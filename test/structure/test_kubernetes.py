# SPDX-License-Identifier: Apache-2.0
"""What a cluster is given belongs together: roles and who has them, volumes and their mounts, and metrics that there are."""
import json
import pathlib
import re
import sys

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import helmchart  # noqa: E402

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


def test_objects_are_found_where_charts_of_others_put_them():
    """In kube-system, and of every kind that those charts have."""
    config, = of_kind('ConfigMap')
    for ns in yaml.safe_load(config['data']['rp.conf'])['agent']['namespaces']:
        role, = [d for d in of_kind('Role') if d['metadata']['namespace'] == ns]
        assert {'apiGroups': ['config.nri'], 'resources': ['*'], 'verbs': ['get', 'list', 'watch']} in role['rules']
    for made_by in ('kubernetes.mk', 'install.mk'):
        left_out = re.search(r"modules/\*\.so \| grep -v (\S+?)\)", (TOP / 'packaging' / made_by).read_text()).group(1).strip("'").replace('$$', '$')
        modules = ['balloons.so', 'topology-aware.so', 'template.so']
        assert [m for m in modules if not re.search(left_out, '/' + m)] == modules


def test_what_kubectl_shows_of_adjustments():
    """The same columns as of policies."""
    definition, = [d for d in of_kind('CustomResourceDefinition') if d['metadata']['name'] == 'adjustments.nri-rp.io']
    assert [c['name'] for c in definition['spec']['versions'][0]['additionalPrinterColumns']] == ['Generation', 'Nodes', 'Status', 'Age']


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
        assert context['capabilities'] == {'drop': ['ALL']} and not context['allowPrivilegeEscalation'] and context['readOnlyRootFilesystem']


def test_metrics_are_not_for_every_pod():
    """A NetworkPolicy admits labelled namespaces to the port that the daemon listens on, and no other pod."""
    policy, = of_kind('NetworkPolicy')
    daemons, = of_kind('DaemonSet')
    template = daemons['spec']['template']
    port, = [p['containerPort'] for c in template['spec']['containers'] for p in c.get('ports', [])]
    assert policy['spec']['podSelector'] == {'matchLabels': template['metadata']['labels']} and policy['spec']['policyTypes'] == ['Ingress']
    rule, = policy['spec']['ingress']
    assert [p['port'] for p in rule['ports']] == [port] and all(peer['namespaceSelector']['matchLabels'] for peer in rule['from'])


def test_what_is_installed_lets_no_pod_take_from_others():
    """Annotations that take from other containers count in kube-system only: in the package's file, in the manifests and in the chart."""
    config, = of_kind('ConfigMap')
    for installed in (yaml.safe_load((TOP / 'conf' / 'rp.conf').read_text()), yaml.safe_load(config['data']['rp.conf']), helmchart.values()['config']):
        assert installed['annotations'] == {'takers': 'named', 'takerNamespaces': ['kube-system']}


def without(document, *paths):
    """A copy that lacks these."""
    copy = json.loads(json.dumps(document))
    for *folders, last in paths:
        at = copy
        for key in folders:
            at = at[key]
        at.pop(last, None)
    return copy


def comparable(document):
    """Of a ConfigMap what rp.conf says, of the DaemonSet all but how images are pulled."""
    if document['kind'] == 'ConfigMap':
        return {**document, 'data': {k: yaml.safe_load(v) for k, v in document['data'].items()}}
    if document['kind'] == 'DaemonSet':
        return without(document, *[('spec', 'template', 'spec', 'containers', n, key) for n in range(2) for key in ('image', 'imagePullPolicy')])
    return document


def test_the_chart_is_the_manifests():
    """With its own values."""
    base = [comparable(d) for d in documents() if d['kind'] not in ('Kustomization', 'Namespace', 'CustomResourceDefinition')]
    chart = [comparable(d) for d in helmchart.render(helmchart.values())]
    chart, base = (sorted(json.dumps(d, sort_keys=True) for d in documents_) for documents_ in (chart, base))
    assert chart == base and len(chart) > 10


def test_slices_are_a_right_only_with_their_key():
    """Of the manifests by a folder of its own, of the chart by its value config."""
    def named(documents_):
        return [comparable(d) for d in documents_ if d.get('metadata', {}).get('name') == 'nri-rp-resource-slices']
    with_key = {**helmchart.values(), 'config': {'agent': {'resourceSlices': True}}}
    manifest = list(yaml.safe_load_all((FOLDER / 'resource-slices' / 'rbac.yaml').read_text()))
    assert named(helmchart.render(with_key)) == named(manifest) and len(named(manifest)) == 2
    assert manifest[0]['rules'] == [{'apiGroups': ['resource.k8s.io'], 'resources': ['resourceslices'], 'verbs': ['list', 'watch']}]
    assert not named(helmchart.render(helmchart.values())) and not named(helmchart.render({**with_key, 'config': {}})) and not named(documents())


def text_of(path, name):
    """A text of a macro of C."""
    return re.search(r'^#define %s "(.*)"' % name, (TOP / path).read_text(), re.M).group(1)


def dra(name):
    return list(yaml.safe_load_all((FOLDER / 'dra' / (name + '.yaml')).read_text()))


def test_claims_are_served_only_with_their_key():
    """Role, class and folders: of the manifests by a folder of their own, of the chart by its value config. Without the key there is none."""
    kustomization, = dra('kustomization')
    assert kustomization['resources'] == ['../base', 'driver.yaml']
    assert [patch['path'] for patch in kustomization['patches']] == ['configuration.yaml', 'daemonset.yaml']
    (config,), (patch,), base = dra('configuration'), dra('daemonset'), of_kind('DaemonSet')[0]
    conf = yaml.safe_load(config['data']['rp.conf'])
    assert conf['dra'] == {'enabled': True} and conf['agent']['cluster'] and conf['policy'] in ('static', 'cpuset')
    assert conf['annotations'] == helmchart.values()['config']['annotations']
    off = [comparable(d) for d in helmchart.render({**helmchart.values(), 'config': {**conf, 'dra': {'enabled': False}}})]
    on = [comparable(d) for d in helmchart.render({**helmchart.values(), 'config': conf})]
    assert [d for d in on if d not in off and d['kind'] not in ('ConfigMap', 'DaemonSet')] == dra('driver')
    before, after = (next(d for d in documents_ if d['kind'] == 'DaemonSet')['spec']['template']['spec'] for documents_ in (off, on))
    adds = patch['spec']['template']['spec']
    agent, theirs = adds['containers'][1], after['containers'][1]
    assert agent['name'] == theirs['name'] and theirs['volumeMounts'] == before['containers'][1].pop('volumeMounts') + agent['volumeMounts']
    assert after['volumes'] == adds['volumes'] + before.pop('volumes')
    assert without(after, ['volumes'], ['containers', 1, 'volumeMounts']) == before
    kubelet = text_of('core/nri-rp-agent/dra.h', 'DRA_DEFAULT_KUBELET_ROOT')
    folders = [kubelet + '/plugins', kubelet + '/plugins_registry', text_of('core/nri-rp-agent/cdi.h', 'CDI_DEFAULT_DIR')]
    assert [m['mountPath'] for m in agent['volumeMounts']] == [v['hostPath']['path'] for v in adds['volumes']] == folders
    for documents_ in off, helmchart.render(helmchart.values()), documents():
        text = json.dumps(documents_)
        assert not [word for word in ('resource.k8s.io', 'plugins', 'cdi') if '"%s' % word in text or '/%s' % word in text]
    assert base['metadata'] == {**patch['metadata'], 'labels': base['metadata']['labels']}


def test_rights_of_claims():
    """Only what the driver uses; nodes are read by another role."""
    role, binding, *_ = dra('driver')
    assert role['rules'] == [{'apiGroups': ['resource.k8s.io'], 'resources': ['resourceslices'], 'verbs': ['list', 'watch', 'create', 'patch', 'delete']},
                             {'apiGroups': ['resource.k8s.io'], 'resources': ['resourceclaims'], 'verbs': ['get']}]
    assert binding['roleRef']['name'] == role['metadata']['name'] and binding['subjects'] == of_kind('ClusterRoleBinding')[0]['subjects']
    manual = (TOP / 'man' / 'nri-rp-dra.7').read_text()
    assert all(re.search(r'resources: \[%s\] +verbs: \[%s\]' % (rule['resources'][0], ', '.join(rule['verbs'])), manual) for rule in role['rules'])


def test_samples_of_claims():
    """Each has a claim of the shipped class, and a pod that uses it and requests the same amounts."""
    class_, l3, socket, *others = dra('driver')[2:]
    driver = text_of('core/nri-rp-agent/dra.h', 'DRA_DRIVER')
    attribute = text_of('core/nri-rp-agent/slices.c', 'NUMA_NODE_KEY')
    for level, of_level in ('node', class_), ('l3', l3), ('socket', socket):
        assert of_level['metadata']['name'] == 'cpu-%s.%s' % (level, driver)
        assert of_level['spec']['selectors'] == [{'cel': {'expression': 'device.driver == "{0}" && "level" in device.attributes["{0}"] && '
                                                          'device.attributes["{0}"].level == "{1}"'.format(driver, level)}}]
    samples = sorted((FOLDER / 'dra' / 'samples').glob('*.yaml'))
    assert [f.stem for f in samples] == ['balloon', 'four-cpus', 'huge-pages', 'near-gpu', 'rdt']
    kinds = {'balloon': 'type', 'rdt': 'class'}
    assert [(c['metadata']['name'], c['spec']['selectors']) for c in others] == [
        ('%s.%s' % (kind, driver), [{'cel': {'expression': 'device.driver == "%s" && "%s" in device.attributes["%s"]' % (driver, key, driver)}}])
        for kind, key in kinds.items()]
    names = [c['metadata']['name'] for c in (class_, *others)]
    for f in samples:
        template, pod = yaml.safe_load_all(f.read_text())
        devices = template['spec']['spec']['devices']
        cpus = devices['requests'][-1]
        assert all(r['exactly']['deviceClassName'] in names for r in devices['requests'] if r['name'] != 'gpu')
        if f.stem in kinds:
            continue
        huge = cpus['exactly']['capacity']['requests'].pop('hugepages2Mi', None)
        assert bool(huge) == (f.stem == 'huge-pages')
        assert cpus['exactly'] == {'deviceClassName': class_['metadata']['name'], 'capacity': {'requests': {'cpu': '4', 'memory': '8Gi'}}}
        claim, = pod['spec']['resourceClaims']
        assert claim['resourceClaimTemplateName'] == template['metadata']['name']
        parts = [c['resources'] for c in pod['spec']['containers']]
        assert all(part['claims'] == [{'name': claim['name']}] for part in parts)
        assert [part.get('limits', {}).get('hugepages-2Mi') for part in parts if huge] == [huge for part in parts if huge]
        assert sum(int(part['requests']['cpu']) for part in parts) == 4 and sum(int(part['requests']['memory'][:-2]) for part in parts) == 8
        if len(devices['requests']) > 1:
            assert devices['constraints'] == [{'requests': [r['name'] for r in devices['requests']], 'matchAttribute': attribute}]


def test_nri_is_switched_on_by_both():
    """What the chart adds for nri.runtime.patchConfig is what the other manifest adds."""
    def pods(on, required=False):
        given = {**helmchart.values(), 'nri': {'runtime': {'patchConfig': on, 'requirePlugin': required}}}
        return [d for d in helmchart.render(given) if d['kind'] == 'DaemonSet'][0]['spec']['template']['spec']
    patch, = yaml.safe_load_all((FOLDER / 'enable-nri' / 'daemonset.yaml').read_text())
    adds, off, on = patch['spec']['template']['spec'], pods(False), pods(True)
    assert 'initContainers' not in off and 'hostPID' not in off
    assert {k: v for k, v in on.items() if k not in ('initContainers', 'volumes', 'hostPID')} == {k: v for k, v in off.items() if k != 'volumes'}
    assert on['hostPID'] == adds['hostPID'] and on['volumes'] == adds['volumes'] + off['volumes']
    (ours,), (theirs,) = on['initContainers'], adds['initContainers']
    assert pods(False, True) == off and pods(True, True)['initContainers'] == [{**ours, 'args': ['--require-plugin']}]
    assert {k: v for k, v in ours.items() if not k.startswith('image')} == {k: v for k, v in theirs.items() if k != 'image'}


def test_values_of_the_chart():
    given = {**helmchart.values(), 'image': {'name': 'r.example/x', 'tag': 'a"b', 'pullPolicy': 'Never'}, 'config': {'policy': 'none', 'text': "it's"},
             'priorityClassName': 'p', 'nodeSelector': {'a': 'b'}, 'tolerations': [], 'resources': {'limits': {'cpu': 1}}, 'agentResources': {'limits': {'cpu': 2}}}
    documents_ = helmchart.render(given, 'elsewhere')
    assert {d['metadata']['namespace'] for d in documents_ if 'namespace' in d['metadata']} == {'elsewhere', 'kube-system'}
    assert {s['namespace'] for d in documents_ for s in d.get('subjects', [])} == {'elsewhere'}
    config, = [d for d in documents_ if d['kind'] == 'ConfigMap']
    assert yaml.safe_load(config['data']['rp.conf']) == given['config']
    pod = [d for d in documents_ if d['kind'] == 'DaemonSet'][0]['spec']['template']['spec']
    assert {(c['image'], c['imagePullPolicy']) for c in pod['containers']} == {('r.example/x:a"b', 'Never')}
    assert [c['resources']['limits']['cpu'] for c in pod['containers']] == [1, 2]
    assert (pod['priorityClassName'], pod['nodeSelector'], pod['tolerations']) == ('p', {'a': 'b'}, [])
    schema = json.loads((FOLDER / 'chart' / 'values.schema.json').read_text())
    assert set(schema['properties']) >= set(helmchart.values()) and set(schema['properties']['image']['properties']) == set(given['image'])


def test_metrics_exist():
    text = (FOLDER / 'monitoring' / 'rules.yaml').read_text() + json.dumps(json.loads((FOLDER / 'monitoring' / 'dashboard.json').read_text()))
    names = {re.sub('_bucket$', '', n) for n in re.findall(r'\bnri_rp_\w+', text)}
    sources = ''.join(p.read_text() for p in (TOP / 'core/nri-rpd/metrics').glob('*.c'))
    assert len(names) > 8 and {n for n in names if '"%s"' % n not in sources} == set()
    for group in yaml.safe_load((FOLDER / 'monitoring' / 'rules.yaml').read_text())['groups']:
        assert all(r['alert'] and r['expr'] and r['annotations']['summary'] for r in group['rules'])


def test_each_alert_is_in_the_manual():
    rules = yaml.safe_load((FOLDER / 'monitoring' / 'rules.yaml').read_text())['groups'][0]['rules']
    page = (TOP / 'man' / 'nri-rp-cluster.7').read_text().split('.Sh ALERTS', 1)[1]
    for rule in rules:
        assert '.It Ic %s\n' % rule['alert'] in page
        assert set(rule['annotations']) == {'summary', 'description', 'runbook'} and rule['annotations']['runbook'].endswith(', ' + rule['alert'])
    assert len(rules) == page.split('.El', 1)[0].count('.It ')


def test_openshift_allows_what_the_pods_need():
    """Volumes and security contexts of the DaemonSet are within the constraints, which allow no more."""
    scc = yaml.safe_load((FOLDER / 'openshift/scc.yaml').read_text())
    pod = [d for d in documents() if d['kind'] == 'DaemonSet'][0]['spec']['template']['spec']
    kinds = {k for v in pod['volumes'] for k in v if k != 'name'}
    assert kinds | {'projected'} == set(scc['volumes']) and scc['users'] == ['system:serviceaccount:nri-rp:' + pod['serviceAccountName']]
    for container in pod['containers']:
        context = container['securityContext']
        assert context['capabilities'] == {'drop': scc['requiredDropCapabilities']} and not context['allowPrivilegeEscalation']
        assert context['readOnlyRootFilesystem'] and not context.get('privileged')
    assert not [k for k, v in scc.items() if k.startswith('allow') and v is True and k != 'allowHostDirVolumePlugin']


def test_values_of_other_charts():
    """Those of NRI resource policies pass the schema, make valid objects, and what has no effect is in the notes."""
    theirs = {'hostPort': 8891, 'resources': {**helmchart.values()['resources'], 'cpu': '500m', 'memory': '512Mi'}, 'tolerations': [], 'affinity': [], 'nodeSelector': [],
              'nri': {'plugin': {'index': 90, 'annotations': None}, 'runtime': helmchart.values()['nri']['runtime']}, 'initContainerImage': {'name': 'x', 'pullPolicy': 'Always'},
              'podPriorityClassNodeCritical': True, 'plugin-test': {'enableAPIs': False}}
    schema = json.loads((FOLDER / 'chart' / 'values.schema.json').read_text())
    types = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'integer': int, 'null': type(None)}

    def fits(value, rule):
        wanted = rule.get('type', 'object')
        assert isinstance(value, tuple(types[t] for t in ([wanted] if isinstance(wanted, str) else wanted))), (value, rule)
        for key, part in (value.items() if isinstance(value, dict) and 'properties' in rule else ()):
            fits(part, rule['properties'][key])
    fits(theirs, schema)
    pod = [d for d in helmchart.render({**helmchart.values(), **theirs}) if d['kind'] == 'DaemonSet'][0]['spec']['template']['spec']
    assert pod['nodeSelector'] == {} and pod['containers'][0]['resources'] == helmchart.values()['resources']
    notes = (FOLDER / 'chart' / 'NOTES.txt').read_text()
    assert all('"%s"' % key in notes for key in theirs if key not in helmchart.values())
