# SPDX-License-Identifier: Apache-2.0
"""A node whose runtime has no NRI, as files: a machine, the kubelet's cgroups and what a runtime writes of its containers; an nri-rp-bridge
with the source cgroups beside it, and a real nri-rpd behind that.

    with Node() as node, node.bridge(), node.daemon():
        pod = node.pod('web')
        ctr = pod.ctr('app', mcpu=2000)
        node.wait(lambda: len(ctr.cpus()) == 2)
"""
import atexit
import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import uuid

from simnode import BUILD, cpuset

WAIT_S = 60
BRIDGE, DAEMON = BUILD / 'bin' / 'nri-rp-bridge', BUILD / 'bin' / 'nri-rpd'
ALL = '0-15'
PLACED = 'containers are placed'
STATIC = 'policy: static\nstatic: {reservedResources: {cpu: "cpuset:0"}}\n'


def wait_for(what, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, 'has not come true'
        time.sleep(0.01)


@functools.lru_cache
def machine():
    """The files of one, made once."""
    folder = tempfile.mkdtemp(prefix='nri-rp-machine-')
    atexit.register(shutil.rmtree, folder)
    subprocess.run([str(BUILD / 'bin' / 'nri-rp-sim'), 'machine', 'n4c16', folder + '/root'], check=True, capture_output=True)
    return folder + '/root'


def new_id():
    return uuid.uuid4().hex + uuid.uuid4().hex


class Process:
    """A program with a log."""

    def __init__(self, log, words):
        self.log, self.words, self.process = log, [str(w) for w in words], None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.stop() if self.process else 0
        if kind or code:
            print(self.log.read_text(errors='replace'))
        assert kind or code == 0, '%s has ended with %s' % (self.words[0], code)

    def start(self):
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.words, stdout=log, stderr=log)
        return self

    def count(self, text):
        return len(re.findall(text, self.log.read_text(errors='replace'))) if self.log.exists() else 0

    def wait_log(self, text, count=1):
        def seen():
            assert self.process.poll() is None, self.log.read_text(errors='replace')
            return self.count(text) >= count
        wait_for(seen)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT_S)
        self.process = None
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None


class Node:
    def __init__(self, unified=True, systemd=True):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-bypass-'))
        self.root, self.unified, self.systemd = self.dir / 'root', unified, systemd
        self.nri_socket, self.agent_socket, self.control = self.dir / 'bridge.sock', self.dir / 'agent.sock', self.dir / 'ctl.sock'
        subprocess.run(['cp', '-al', machine(), str(self.root)], check=True)
        mount = self.root / 'sys/fs/cgroup'
        shutil.rmtree(mount, ignore_errors=True)
        if unified:
            mount.mkdir(parents=True)
            (mount / 'cgroup.controllers').write_text('cpuset cpu memory\n')
        self.mounts = {c: mount if unified else mount / c for c in ('cpuset', 'cpu', 'memory')}
        self.pods = 0
        self.top = self.cgroup('kubepods.slice' if systemd else 'kubepods', cpus=ALL, mems='0-3')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    # -- files

    def cgroup(self, path, cpus='', mems='', shares=1024, quota=-1, memory=None):
        """The folders of a cgroup, with what the kernel and the runtime put into them. Returns its path."""
        if self.unified:
            files = {'cpuset': {'cpuset.cpus': '' if cpus == ALL else cpus, 'cpuset.mems': '' if mems == '0-3' else mems, 'cgroup.procs': '',
                                'cgroup.events': 'populated 1\nfrozen 0', 'cgroup.subtree_control': 'cpuset cpu memory',
                                'cpu.weight': 1 + (shares - 2) * 9999 // 262142, 'cpu.max': '%s 100000' % ('max' if quota < 0 else quota),
                                'memory.max': memory or 'max', 'memory.high': 'max'}}
        else:
            files = {'cpuset': {'cpuset.cpus': cpus, 'cpuset.mems': mems, 'cpuset.memory_migrate': '0', 'cgroup.procs': '1\n'},
                     'cpu': {'cpu.shares': shares, 'cpu.cfs_period_us': 100000, 'cpu.cfs_quota_us': quota},
                     'memory': {'memory.limit_in_bytes': memory or 9223372036854771712}}
        # As a runtime does it: what the others look at is there last.
        for controller, values in reversed(list(files.items())):
            folder = self.mounts[controller] / path
            folder.mkdir(parents=True, exist_ok=True)
            for name, value in values.items():
                self.put(folder / name, value)
        return path

    def remove(self, path):
        for mount in set(self.mounts.values()):
            shutil.rmtree(mount / path, ignore_errors=True)

    def read(self, path, file):
        """What it says twice in a row: unlike the kernel's, a plain file can be read half written."""
        at = self.mounts[file.split('.')[0]] / path / file
        text = None
        while text != (again := at.read_text()):
            text = again
            time.sleep(0.001)
        return text.strip()

    def write(self, path, file, text):
        self.put(self.mounts[file.split('.')[0]] / path / file, text)

    def put(self, path, text):
        """Writes the file in one go: the bridge writes there, too."""
        whole = self.dir / 'written'
        whole.write_text('%s\n' % text)
        whole.rename(path)

    # -- what runs

    def bridge(self, *options, pods='cgroupfs', start=True):
        p = Process(self.dir / 'bridge.log', [BRIDGE, '--source', 'cgroups', '--nri-socket', self.nri_socket, '--host-root', self.root, '--pods', pods,
                                              '--agent-socket', self.agent_socket, '--reconcile', '300ms', '--log-level', 'debug', *options])
        if start:
            p.start().wait_log('waiting for nri-rpd')
        return p

    def daemon(self, config=STATIC, nri_socket=None, start=True, module_dirs=()):
        (self.dir / 'rp.conf').write_text('%smetrics: {listen: "unix:%s"}\n' % (config, self.dir / 'metrics'))
        p = Process(self.dir / 'nri-rpd.log', [DAEMON, '--config', self.dir / 'rp.conf', '--nri-socket', nri_socket or self.nri_socket, '--host-root', self.root,
                                               '--state-dir', self.dir / 'state', '--control-socket', self.control, '--module-dir', BUILD / 'modules',
                                               *[w for d in module_dirs for w in ('--module-dir', d)]])
        if start:
            p.start().wait_log('synchronized with')
        return p

    def ctl(self, *words):
        done = subprocess.run([str(BUILD / 'bin/nri-rpctl'), '--socket', str(self.control), '--json', *words], capture_output=True, text=True, timeout=WAIT_S)
        return json.loads(done.stdout)

    def log(self):
        return (self.dir / 'bridge.log').read_text(errors='replace')

    def pod(self, name, qos='guaranteed', **more):
        self.pods += 1
        return Pod(self, name, qos, **more)


class Pod:
    def __init__(self, node, name, qos, namespace='default', annotations=None, bundle=True):
        self.node, self.name, self.namespace, self.annotations, self.bundle = node, name, namespace, annotations or {}, bundle
        self.uid, self.id, self.ctrs = str(uuid.uuid4()), new_id(), []
        around, prefix = node.top, 'kubepods'
        for part in [p for p in qos.split('/') if p != 'guaranteed']:
            prefix += '-' + part
            around += '/%s.slice' % prefix if node.systemd else '/' + part
            self.make(around)
        self.path = around + ('/%s-pod%s.slice' % (prefix, self.uid.replace('-', '_')) if node.systemd else '/pod' + self.uid)
        self.make(self.path)
        self.write_bundle(self.id, {'container-type': 'sandbox'}, 2, -1, None)
        self.node.cgroup(self.child(self.id), cpus=ALL, mems='0-3', shares=2)

    def make(self, path):
        if not (self.node.mounts['cpuset'] / path).exists():
            self.node.cgroup(path, cpus=ALL, mems='0-3')

    def child(self, ctr_id):
        return '%s/%s' % (self.path, 'cri-containerd-%s.scope' % ctr_id if self.node.systemd else ctr_id)

    def write_bundle(self, ctr_id, own, shares, quota, memory):
        if not self.bundle:
            return
        folder = self.node.root / 'run/containerd/io.containerd.runtime.v2.task/k8s.io' / ctr_id
        folder.mkdir(parents=True)
        said = {'sandbox-id': self.id, 'sandbox-name': self.name, 'sandbox-namespace': self.namespace, 'sandbox-uid': self.uid, **own}
        resources = {'cpu': {'shares': shares, 'period': 100000, **({'quota': quota} if quota > 0 else {})}, 'memory': {'limit': memory} if memory else {}}
        (folder / 'config.json').write_text(json.dumps({'annotations': {'io.kubernetes.cri.' + k: v for k, v in said.items()},
                                                        'process': {'oomScoreAdj': -997}, 'linux': {'resources': resources}}))

    def ctr(self, name, mcpu=0, memory=64 << 20):
        return Ctr(self, name, mcpu, memory)

    def listed(self):
        """As the kubelet has it."""
        amounts = {c.name: {'cpu': '%dm' % c.mcpu, 'memory': str(c.memory)} for c in self.ctrs}
        return {'metadata': {'name': self.name, 'namespace': self.namespace, 'uid': self.uid, 'annotations': self.annotations, 'labels': {'app': self.name}},
                'spec': {'containers': [{'name': c.name, 'resources': {'requests': amounts[c.name], 'limits': amounts[c.name]}} for c in self.ctrs]},
                'status': {'phase': 'Running', 'containerStatuses': [{'name': c.name, 'containerID': 'containerd://' + c.id} for c in self.ctrs]}}

    def remove(self):
        self.node.remove(self.path)


class Ctr:
    def __init__(self, pod, name, mcpu, memory):
        self.pod, self.name, self.mcpu, self.memory, self.id = pod, name, mcpu, memory, new_id()
        self.path = pod.child(self.id)
        shares, quota = max(2, mcpu * 1024 // 1000), mcpu * 100 or -1
        pod.ctrs.append(self)
        pod.write_bundle(self.id, {'container-type': 'container', 'container-name': name}, shares, quota, memory)
        pod.node.cgroup(self.path, cpus=ALL, mems='0-3', shares=shares, quota=quota, memory=memory)

    def read(self, file):
        return self.pod.node.read(self.path, file)

    def write(self, file, text):
        self.pod.node.write(self.path, file, text)

    def cpus(self):
        return cpuset(self.read('cpuset.cpus'))

    def remove(self):
        self.pod.ctrs.remove(self)
        self.pod.node.remove(self.path)


class Kubelet:
    """/pods of a kubelet: `mode` is 'pods', 'empty', 'denied', 'hanging' or 'garbage'."""

    def __init__(self, node, secure=None):
        self.pods, self.mode, self.calls, self.tokens = [], 'pods', 0, set()
        self.release = threading.Event()
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kubelet.calls += 1
                kubelet.tokens.add(self.headers.get('Authorization'))
                mode = kubelet.mode
                if mode == 'hanging':
                    kubelet.release.wait(WAIT_S)
                items = [p.listed() for p in list(kubelet.pods)] if mode == 'pods' else None
                text = b'{"kind": "PodL' if mode == 'garbage' else json.dumps({'kind': 'PodList', 'apiVersion': 'v1', 'items': items}).encode()
                try:
                    self.send_response(403 if mode == 'denied' else 200 if self.path == '/pods' else 404)
                    self.send_header('Content-Length', str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    pass

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.port, self.secure = self.server.server_address[1], secure
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*secure)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.node = node

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def closed_port():
    """One that refuses connections, and that nobody else gets meanwhile."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        yield s.getsockname()[1]


def certificate(folder):
    """A certificate that signs itself, and its key."""
    cert, key = folder / 'kubelet.crt', folder / 'kubelet.key'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=kubelet', '-addext', 'subjectAltName=IP:127.0.0.1',
                    '-keyout', str(key), '-out', str(cert)], check=True, capture_output=True)
    os.chmod(key, 0o600)
    return cert, key
