# SPDX-License-Identifier: Apache-2.0
"""The lines of README's cluster chapter and of nri-rp-cluster(7), one after the other: each does what the text says, as far as that can be seen without
an API server: manifests are made and rendered by kubectl, names in commands are those of the rendered objects, and objects in examples are accepted by
the node that they are for.

With a cluster they are typed as they are: NRI_RP_KUBE_ADMIN and NRI_RP_KUBELET_NODE as in test_kubelet_node.py, NRI_RP_KUBELET_LOAD is a command that
loads the image archive whose path follows, NRI_RP_KUBELET_PATCH the file of a JSON patch of the DaemonSet for this node, such as other paths.
"""
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tarfile

import pytest
import yaml

from apiserver import ApiServer
from kubelet import Agent
from simnode import Node, ctr, eventually

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build')).resolve()
PAGE = (TOP / 'man' / 'nri-rp-cluster.7').read_text(encoding='utf-8')
NODE = 'worker-1'
ADMIN, KUBELET_NODE, LOAD, PATCH = (os.environ.get('NRI_RP_' + name) for name in ('KUBE_ADMIN', 'KUBELET_NODE', 'KUBELET_LOAD', 'KUBELET_PATCH'))

pytestmark = pytest.mark.skipif(not shutil.which('kubectl'), reason='needs kubectl')


def chapter():
    """README's lines, without their comments."""
    text = (TOP / 'README.md').read_text(encoding='utf-8').split('## Install in a cluster')[1].split('\n## ')[0]
    return [line.strip().split('  #')[0].strip() for line in text.splitlines() if line.startswith('    ')]


def literals():
    return [m.group(1) for m in re.finditer(r'\.Bd -literal[^\n]*\n(.*?)\n\.Ed', PAGE, re.S)]


def commands():
    """Those of README and of the manual, each once."""
    lines = chapter() + re.findall(r'^\.Dl ((?:kubectl|helm) .*)', PAGE, re.M)
    for text in literals():
        lines += [line for line in text.splitlines() if re.match(r'make |podman |editor |kubectl |nri-rpctl ', line)]
    return list(dict.fromkeys(lines))


def objects():
    """Examples of objects in the manual."""
    return [yaml.safe_load(text) for text in literals() if 'apiVersion:' in text]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """What `make kubernetes` has made, with the image named as the line with the editor says."""
    out = tmp_path_factory.mktemp('chapter')
    (out / 'build').mkdir()
    env = {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL')}
    subprocess.run(['make', '-C', TOP, '--no-print-directory', 'O=%s' % BUILD, 'KUBERNETES=%s/build/kubernetes' % out, 'KEEP_FLAGS=1', '-o', str(BUILD / 'bin/nri-rpctl'),
                    '-o', 'modules', 'kubernetes'], env=env, check=True, capture_output=True)
    kustomization = out / 'build/kubernetes/base/kustomization.yaml'
    kustomization.write_text(kustomization.read_text().replace('newName: nri-rp', 'newName: registry.example/nri-rp'))
    return out


@pytest.fixture(scope='module')
def rendered(folder):
    done = subprocess.run(['kubectl', 'kustomize', folder / 'build/kubernetes/base'], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def daemon_set(rendered):
    found, = [d for d in rendered if d['kind'] == 'DaemonSet']
    return found


def the_kind(rendered, word):
    """The definition of a resource by one of its names."""
    return [d for d in rendered if d['kind'] == 'CustomResourceDefinition' and word in (d['spec']['names']['plural'], d['spec']['names'].get('singular'),
                                                                                      *d['spec']['names'].get('shortNames', []))]


def canary(folder):
    return yaml.safe_load((folder / 'build/kubernetes/samples/canary.yaml').read_text())


def check_kubectl(words, folder, rendered):
    namespaces = {d['metadata']['name'] for d in rendered if d['kind'] == 'Namespace'}
    if '-n' in words:
        at = words.index('-n')
        assert words[at + 1] in namespaces
        del words[at:at + 2]
    if '-k' in words:
        assert (folder / words[words.index('-k') + 1]).is_dir()
        # of a namespace that is deleted first nothing is left when kubectl comes to it
        assert words[0] == 'apply' or words[:2] == ['delete', '--ignore-not-found']
    elif words[:2] in (['rollout', 'status'], ['delete', 'daemonset']):
        assert words[2].split('/')[-1] == daemon_set(rendered)['metadata']['name']
    elif words[0] == 'exec':
        program = words[words.index('--') + 1:]
        assert words[1] == 'ds/' + daemon_set(rendered)['metadata']['name']
        assert words[words.index('-c') + 1] in [c['name'] for c in daemon_set(rendered)['spec']['template']['spec']['containers']]
        assert subprocess.run([BUILD / 'bin' / program[0], *program[1:], '--help'], capture_output=True, timeout=60).returncode == 0
    elif words[0] == 'get':
        definition, = the_kind(rendered, words[1])
        status = definition['spec']['versions'][0]['schema']['openAPIV3Schema']['properties']['status']
        assert words[words.index('-o') + 1] == 'jsonpath={.status.nodes}' and 'nodes' in status['properties']
    elif words[0] == 'label':
        assert words[1] in ('node', 'namespace')
        assert re.split('[=-]$|=', words[3])[0] in json.dumps(rendered) + json.dumps(canary(folder))
    elif words[0] == 'delete':
        assert the_kind(rendered, words[1]) and words[2] == canary(folder)['metadata']['name']
    else:
        assert words[:2] == ['apply', '-f'] and (folder / words[2]).exists(), words


@pytest.mark.parametrize('line', commands())
def test_each_line(folder, rendered, line):
    program, *words = shlex.split(line.replace('REGISTRY', 'registry.example'))
    if program == 'make':
        assert subprocess.run(['make', '-C', TOP, '-n', *words], capture_output=True, timeout=120).returncode == 0
    elif program == 'podman':
        recipe = (TOP / words[words.index('-f') + 1]).read_text()
        # the image that the manifests name is the one that is built of the package of this version
        version = words[words.index('-t') + 1].split(':')[1]
        assert 'COPY nri-rp_*_${TARGETARCH:-*}.deb' in recipe and words[-1] == 'build/deb'
        assert {c['image'] for c in daemon_set(rendered)['spec']['template']['spec']['containers']} == {'registry.example/nri-rp:' + version}
    elif program == 'editor':
        assert (folder / words[0]).read_text().count('newName: ') == 1
    elif program == 'helm':
        assert (folder / words[-1] / 'Chart.yaml').exists() and {p.name for p in (folder / words[-1] / 'templates').iterdir()} >= {'daemonset.yaml', 'rbac.yaml'}
    elif program == 'nri-rpctl':
        assert subprocess.run([BUILD / 'bin' / program, *words, '--help'], capture_output=True, timeout=60).returncode == 0
    else:
        assert program == 'kubectl'
        check_kubectl(words, folder, rendered)


def test_roles_are_where_they_are_needed(rendered):
    """A namespace for all of them would take away the one in kube-system."""
    assert {d['metadata']['namespace'] for d in rendered if d['kind'] == 'Role' and d['metadata']['name'] == 'nri-rp-configuration'} == {'nri-rp', 'kube-system'}


def test_the_folder_of_claims_is_the_base_and_its_additions(folder, rendered):
    """And the node starts with its configuration."""
    done = subprocess.run(['kubectl', 'kustomize', folder / 'build/kubernetes/dra'], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    names = [{(d['kind'], d['metadata']['name'], d['metadata'].get('namespace')) for d in documents} for documents in (made, rendered)]
    assert {kind for kind, _, _ in names[0] - names[1]} == {'ClusterRole', 'ClusterRoleBinding', 'DeviceClass'}
    assert {name for kind, name, _ in names[0] if kind == 'DeviceClass'} == \
        {kind + '.nri-rp.nri.io' for kind in ('cpu-node', 'cpu-socket', 'cpu-l3', 'balloon', 'rdt')}
    assert names[1] < names[0]
    containers, former = (daemon_set(documents)['spec']['template']['spec']['containers'] for documents in (made, rendered))
    for container, was, more in zip(containers, former, (0, 3)):
        assert len(container['volumeMounts']) == len(was['volumeMounts']) + more and {**container, **{k: was[k] for k in ('image', 'volumeMounts')}} == was
    config, = [yaml.safe_load(d['data']['rp.conf']) for d in made if d['kind'] == 'ConfigMap']
    with Node(None, start=False) as node:
        node.run('write-config', {**config, 'agent': {**config['agent'], 'podResourceAPI': False, 'socket': node.paths['work'] + '/agent.sock'}, 'metrics': {'listen': ''}})
        node.start()
        assert node.ctl('status', check=False)['policy']['name'] == config['policy']


@pytest.mark.parametrize('ours', objects(), ids=lambda o: o['kind'])
def test_objects_do_what_the_manual_says(tmp_path, rendered, ours):
    """On a node with the file of the manifests, through an agent."""
    plural, = [d['spec']['names']['plural'] for d in rendered if d['kind'] == 'CustomResourceDefinition' and d['spec']['names']['kind'] == ours['kind']]
    config, = [d for d in rendered if d['kind'] == 'ConfigMap']
    base = yaml.safe_load(config['data']['rp.conf'])
    kinds = {} if ours['kind'] == 'Adjustment' else {plural: ours['kind']}
    with ApiServer(kinds) as api, Node(None, start=False) as node:
        api.put('nodes', None, NODE, {'metadata': {'labels': {}}})
        base['agent'] = {**base['agent'], 'podResourceAPI': False, 'socket': node.paths['work'] + '/agent.sock'}
        del base['metrics']
        node.run('write-config', base)
        node.start()
        options = ['--kubeconfig', api.kubeconfig(tmp_path), '--node', NODE, '--namespace', 'nri-rp']
        with Agent(base['agent']['socket'], node.paths['work'] + '/none.sock', options=options):
            node.create('web', ctr('c0', '2', '64Mi'), labels={'app': 'web'})
            api.put(plural, ours['metadata']['namespace'], ours['metadata']['name'], ours)

            def verdict():
                return (((api.find(plural, 'nri-rp', ours['metadata']['name']) or {}).get('status') or {}).get('nodes') or {}).get(NODE) or {}
            eventually(lambda: verdict().get('status') == 'Success')
            assert 'errors' not in verdict() and 'warnings' not in verdict(), verdict()
            eventually(lambda: len(node.cpus('web/c0')) == (3 if ours['kind'] == 'Adjustment' else 2))
            node.expect('disjoint(c0, 0)')


def write_image(path, name):
    """An archive of the programs and the libraries that they need, in place of the image that the Containerfile describes."""
    files = {'usr/bin/' + p: BUILD / 'bin' / p for p in ('nri-rpd', 'nri-rpctl', 'nri-rp-agent')}
    files.update({'usr/lib/nri-rp/modules/' + m.name: m for m in (BUILD / 'modules').glob('*.so')})
    for file in list(files.values()):
        needs = subprocess.run(['ldd', file], capture_output=True, text=True, check=True).stdout
        files.update({lib.lstrip('/'): pathlib.Path(lib).resolve() for lib in re.findall(r'(/\S+) \(0x', needs)})
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode='w') as tar:
        for inside, file in files.items():
            tar.add(file, inside, recursive=False)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps({'architecture': 'amd64', 'os': 'linux', 'config': {}, 'rootfs': {'type': 'layers', 'diff_ids': ['sha256:' + digest]}}).encode()
    parts = {'config.json': config, 'layer.tar': layer.getvalue(),
             'manifest.json': json.dumps([{'Config': 'config.json', 'RepoTags': [name], 'Layers': ['layer.tar']}]).encode()}
    with tarfile.open(path, 'w') as tar:
        for inside, data in parts.items():
            entry = tarfile.TarInfo(inside)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def typed(line, folder, text=None):
    """Runs one line of the text, and returns what it prints."""
    env = {**os.environ, 'KUBECONFIG': ADMIN, 'PATH': '%s:%s' % (BUILD / 'bin', os.environ['PATH'])}
    done = subprocess.run([*shlex.split(line)], cwd=folder, input=text, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, line + ': ' + done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not (ADMIN and KUBELET_NODE and LOAD and PATCH), reason='needs a cluster with a kubelet: NRI_RP_KUBE_ADMIN, NRI_RP_KUBELET_NODE, _LOAD, _PATCH')
def test_the_chapter_typed(folder, rendered):
    """Every line that is kubectl's, in the order of README and of the manual, on an API server with a kubelet and a runtime."""
    kustomization = folder / 'build/kubernetes/base/kustomization.yaml'
    kustomization.write_text(kustomization.read_text() + yaml.safe_dump({'patches': [
        {'target': {'kind': 'DaemonSet'}, 'patch': pathlib.Path(PATCH).read_text()}]}))
    write_image(folder / 'image.tar', daemon_set(rendered)['spec']['template']['spec']['containers'][0]['image'])
    subprocess.run([*shlex.split(LOAD), folder / 'image.tar'], check=True, capture_output=True, timeout=120)
    policy, = [o for o in objects() if o['kind'] == 'BalloonsPolicy']
    lines = [line.replace(NODE, KUBELET_NODE) for line in commands() if line.startswith(('kubectl ', 'nri-rpctl '))]

    def follows(name, generation):
        row, = json.loads(typed('nri-rpctl --json cluster', folder))
        return (row['configuration'], row['generation']) == ('BalloonsPolicy nri-rp/' + name, generation)
    typed('kubectl create namespace monitoring', folder)
    try:
        for line in lines:
            if '-o jsonpath' in line and 'canary' not in line:
                typed('kubectl apply -f -', folder, json.dumps(policy))
            said = [typed(line, folder)]
            if line.endswith(' canary=yes'):
                eventually(lambda: follows('canary', 1), 30)
                shown = typed('kubectl -n nri-rp get balloonspolicies', folder)
                assert re.search(r'NODES +STATUS', shown) and re.search(r'(?m)^canary +1 +\{"canary":"yes"\} +Success', shown), shown
                # a new generation of the object reaches the canary
                typed('kubectl -n nri-rp patch balloonspolicy canary --type merge -p {"spec":{"reservedResources":{"cpu":"700m"}}}'.replace('"', '\\"'), folder)
                eventually(lambda: follows('canary', 2), 30)
            elif line.endswith(' canary-'):
                eventually(lambda: follows('default', 1), 30)
            if line.endswith('nri-rpctl status'):
                assert 'healthy' in said[0] and 'node %s of https' % KUBELET_NODE in said[0]
            elif '-o jsonpath' in line:
                eventually(lambda line=line, said=said: KUBELET_NODE in (said.append(typed(line, folder)) or said[-1]), 30)
                # a machine that is smaller than that of the example says so
                assert json.loads(said[-1])[KUBELET_NODE]['status'] == 'Success' or 'CPUs' in said[-1]
        assert typed('kubectl get --ignore-not-found namespace nri-rp -o jsonpath={.metadata.name}', folder) == ''
    finally:
        typed('kubectl label node %s canary-' % KUBELET_NODE, folder)
        typed('kubectl delete --ignore-not-found -k build/kubernetes/base', folder)
        typed('kubectl delete namespace monitoring', folder)
