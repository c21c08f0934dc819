# SPDX-License-Identifier: Apache-2.0
"""A real containerd with NRI, from Debian's packages, in a folder of its own.

Nothing is installed: containerd comes from a newer suite of the archive that this machine's apt uses, as bookworm's is too old for NRI, and
is unpacked under the cache folder. runc and busybox are those of this machine.
"""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import uuid

import grpc

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get('NRI_RP_TEST_CACHE', pathlib.Path.home() / '.cache/nri-rp-test'))
SUITES = {'1.7': (['trixie'], r'1\.7\.'), '2': (['forky', 'sid'], r'2\.')}
# For slow tests of what no release does in its own way.
ANY = list(SUITES) if os.environ.get('ALL_RUNTIMES') else list(SUITES)[-1:]
BUSYBOX, PAUSE = 'localhost/nri-rp/busybox:1', 'localhost/nri-rp/pause:1'
# An emulated machine may take so long; what hangs still ends a test.
READY_S = CALL_S = 180


class Unavailable(Exception):
    """This machine cannot run a containerd; says why."""


def cgroups(matches, root='/sys/fs/cgroup'):
    """Folders of cgroups below `root` whose names match. Other tests' cgroups may end meanwhile: os.walk passes over them, glob fails."""
    return [pathlib.Path(folder, name) for folder, names, _ in os.walk(root) for name in names if matches(name)]


def wait_for(what, fn, seconds=60.0):
    end = time.monotonic() + seconds
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError('not within %g s: %s' % (seconds, what))
        time.sleep(0.02)


def cpus(text):
    """The numbers in a list as the kernel writes it."""
    out = set()
    for item in filter(None, text.strip().split(',')):
        first, _, last = item.partition('-')
        out |= set(range(int(first), int(last or first) + 1))
    return out


# ---- packages ----------------------------------------------------------------------------------------------------------

def archive():
    """URI and keyring option of the Debian archive that apt is set up for."""
    files = [pathlib.Path('/etc/apt/sources.list'), *sorted(pathlib.Path('/etc/apt/sources.list.d').glob('*'))]
    for path in [f for f in files if f.is_file()]:
        text = path.read_text(errors='replace')
        for m in re.finditer(r'^\s*(?:deb\s+(?:\[[^]]*\]\s+)?|URIs:\s*)(\S+/debian/?)(?:\s|$)', text, re.M):
            key = re.search(r'(?:signed-by=|Signed-By:\s*)(\S+?)[\]\s]', text + ' ')
            return m.group(1), '[signed-by=%s] ' % key.group(1) if key else ''
    raise Unavailable('apt knows no Debian archive')


def apt(suite, *command):
    state = CACHE / 'apt' / suite
    (state / 'lists/partial').mkdir(parents=True, exist_ok=True)
    (state / 'cache/archives/partial').mkdir(parents=True, exist_ok=True)
    uri, key = archive()
    (state / 'sources.list').write_text('deb %s%s %s main\n' % (key, uri, suite))
    # A mirror may stand still.
    options = {'Acquire::Check-Valid-Until': 'false', 'Dir::Etc::sourcelist': state / 'sources.list', 'Dir::Etc::sourceparts': '/dev/null',
               'Dir::Etc::preferencesparts': '/dev/null', 'Dir::State::lists': state / 'lists', 'Dir::Cache': state / 'cache',
               'APT::Sandbox::User': 'root', 'Acquire::Languages': 'none', 'Acquire::Retries': '2'}
    args = ['-o%s=%s' % kv for kv in options.items()]
    return subprocess.run([command[0], '-qq', *args, *command[1:]], cwd=state, capture_output=True, text=True)


def newest(suite, wanted):
    out = apt(suite, 'apt-cache', 'madison', 'containerd').stdout
    versions = [line.split('|')[1].strip() for line in out.splitlines() if line.count('|') == 2]
    return next((v for v in versions if re.match(wanted, v.split(':')[-1])), None)


def fetch(release):
    """Folder with containerd's programs, fetched when the cache does not have it."""
    suites, wanted = SUITES[release]
    home = CACHE / ('containerd-' + release)
    if (home / 'usr/bin/containerd').exists():
        return home / 'usr/bin'
    for suite in suites:
        if apt(suite, 'apt-get', 'update').returncode:
            continue
        version = newest(suite, wanted)
        if not version or apt(suite, 'apt-get', 'download', 'containerd=' + version).returncode:
            continue
        deb = next((CACHE / 'apt' / suite).glob('containerd_*.deb'))
        part = home.with_suffix('.part')
        shutil.rmtree(part, ignore_errors=True)
        subprocess.run(['dpkg', '-x', str(deb), str(part)], check=True)
        deb.unlink()
        part.rename(home)
        return home / 'usr/bin'
    raise Unavailable('the archive has no containerd %s' % release)


def cri_messages():
    """The messages of cri.proto, compiled when needed."""
    out = CACHE / 'proto'
    made = out / 'cri_pb2.py'
    if not made.exists() or made.stat().st_mtime < (HERE / 'cri.proto').stat().st_mtime:
        out.mkdir(parents=True, exist_ok=True)
        subprocess.run(['protoc', '--python_out=%s' % out, '-I%s' % HERE, 'cri.proto'], check=True)
    sys.path.insert(0, str(out))
    import cri_pb2
    return cri_pb2


# ---- images ------------------------------------------------------------------------------------------------------------

APPLETS = 'sh', 'sleep', 'cat', 'grep', 'true', 'head', 'tail', 'dd'
WAIT = b"#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 3600 & wait $!; done\n"


def add_file(tar, name, data=b'', mode=0o755, link=None, folder=False):
    info = tarfile.TarInfo(name)
    info.mode, info.size = mode, len(data)
    if folder:
        info.type = tarfile.DIRTYPE
    elif link:
        info.type, info.linkname, info.size = tarfile.SYMTYPE, link, 0
    tar.addfile(info, io.BytesIO(data) if info.isreg() else None)


def root_layer():
    busybox = shutil.which('busybox')
    if not busybox:
        raise Unavailable('busybox-static is not installed')
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name in ('bin', 'dev', 'etc', 'proc', 'sys', 'tmp'):
            add_file(tar, name, folder=True)
        add_file(tar, 'bin/busybox', pathlib.Path(busybox).read_bytes())
        for applet in APPLETS:
            add_file(tar, 'bin/' + applet, link='busybox')
        add_file(tar, 'bin/wait', WAIT)
    return out.getvalue()


def make_images(path):
    """An OCI layout with two names for one image that waits for SIGTERM."""
    blobs = {}

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {'mediaType': 'application/vnd.oci.image.' + kind, 'digest': 'sha256:' + digest, 'size': len(data)}

    layer = blob(root_layer(), 'layer.v1.tar')
    config = blob(json.dumps({'architecture': 'amd64', 'os': 'linux', 'config': {'Cmd': ['/bin/wait'], 'Env': ['PATH=/bin']},
                              'rootfs': {'type': 'layers', 'diff_ids': [layer['digest']]}}).encode(), 'config.v1+json')
    manifest = json.dumps({'schemaVersion': 2, 'mediaType': 'application/vnd.oci.image.manifest.v1+json', 'config': config,
                           'layers': [layer]}).encode()
    index = [dict(blob(manifest, 'manifest.v1+json'), annotations={'io.containerd.image.name': name}) for name in (BUSYBOX, PAUSE)]
    with tarfile.open(path, 'w') as tar:
        add_file(tar, 'oci-layout', b'{"imageLayoutVersion":"1.0.0"}', 0o644)
        add_file(tar, 'index.json', json.dumps({'schemaVersion': 2, 'manifests': index}).encode(), 0o644)
        for digest, data in blobs.items():
            add_file(tar, 'blobs/sha256/' + digest, data, 0o644)


# ---- the runtime -------------------------------------------------------------------------------------------------------

CONFIG_COMMON = '''
root = "{dir}/root"
state = "{dir}/state"
[grpc]
  address = "{dir}/cri.sock"
[ttrpc]
  address = "{dir}/ttrpc.sock"
[plugins.'io.containerd.internal.v1.opt']
  path = "{dir}/opt"
[plugins.'io.containerd.nri.v1.nri']
  disable = {nri_off}
  socket_path = "{dir}/nri/nri.sock"
  plugin_path = "{dir}/nri/plugins"
  plugin_config_path = "{dir}/nri/conf.d"
  plugin_registration_timeout = "60s"
  plugin_request_timeout = "30s"
'''
CONFIG_RUNTIME = '''
[plugins.'{cri}']
  restrict_oom_score_adj = {restrict}
  enable_cdi = true
  cdi_spec_dirs = ["{dir}/cdi"]
  disable_hugetlb_controller = false
{pause17}  [plugins.'{cri}'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'{cri}'.containerd.runtimes.runc.options]
      BinaryName = "{dir}/runc-told"
      Root = "{dir}/runc"
      SystemdCgroup = {systemd}
'''
CONFIG_IMAGES_2 = '''
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{pause}"
'''
# Runs the test's program, if there is one, with runc's arguments before runc does anything: the kernel as it is before a container is.
RUNC_TOLD = '''#!/bin/sh
[ ! -x {dir}/before-runc ] || {dir}/before-runc "$@"
exec {runc} "$@"
'''


def may_lower_oom_score():
    caps = int(re.search(r'CapEff:\s*(\w+)', pathlib.Path('/proc/self/status').read_text()).group(1), 16)
    return bool(caps >> 24 & 1)


class Containerd:
    def __init__(self, release, folder, systemd=False, nri=True):
        if os.geteuid():
            raise Unavailable('only root can run containers')
        if not os.path.exists('/etc/hosts'):
            raise Unavailable('there is no /etc/hosts, which pods on the network of the host get')
        runc = shutil.which('runc')
        if not runc:
            raise Unavailable('runc is not installed')
        self.release, self.dir, self.systemd = release, pathlib.Path(folder), systemd
        self.bin = fetch(release)
        self.pb = cri_messages()
        self.nri_socket, self.socket = self.dir / 'nri/nri.sock', self.dir / 'cri.sock'
        self.front = self.socket  # where calls go
        self.cgroup = '/nri-rp-' + hashlib.sha1(str(self.dir).encode()).hexdigest()[:8]
        self.process = self.channel = None
        for sub in ('nri/plugins', 'nri/conf.d', 'opt'):
            (self.dir / sub).mkdir(parents=True, exist_ok=True)
        two = release != '1.7'
        values = dict(dir=self.dir, runc=runc, nri_off='false' if nri else 'true', pause=PAUSE, systemd='true' if systemd else 'false',
                      cri='io.containerd.cri.v1.runtime' if two else 'io.containerd.grpc.v1.cri',
                      restrict='false' if may_lower_oom_score() else 'true', pause17='' if two else '  sandbox_image = "%s"\n' % PAUSE)
        text = 'version = %d\n' % (3 if two else 2) + CONFIG_COMMON + CONFIG_RUNTIME + (CONFIG_IMAGES_2 if two else '')
        (self.dir / 'config.toml').write_text(text.format(**values))
        (self.dir / 'runc-told').write_text(RUNC_TOLD.format(**values))
        (self.dir / 'runc-told').chmod(0o755)

    # -- the process

    def start(self):
        env = dict(os.environ, PATH='%s:/usr/sbin:/usr/bin:/sbin:/bin' % self.bin)
        env.pop('NOTIFY_SOCKET', None)
        with open(self.dir / 'containerd.log', 'ab') as log:
            self.process = subprocess.Popen([str(self.bin / 'containerd'), '--config', str(self.dir / 'config.toml')], stdout=log,
                                            stderr=log, env=env, cwd=self.dir, start_new_session=True)
        self.connect(self.front)
        wait_for('containerd answers', self.ready, READY_S)
        return self

    def connect(self, path):
        """Calls go there from now on."""
        self.front = path
        self.channel = grpc.insecure_channel('unix://%s' % path, options=[('grpc.use_local_subchannel_pool', 1)])

    def ready(self):
        if self.process.poll() is not None:
            raise Unavailable('containerd ended: ' + (self.dir / 'containerd.log').read_text()[-1500:])
        try:
            status = self.call('Status', self.pb.Empty(), self.pb.RuntimeStatusResponse, timeout=10).status
        except grpc.RpcError:
            return False
        return any(c.type == 'RuntimeReady' and c.status for c in status.conditions)

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        self.process.wait(CALL_S)
        self.channel.close()

    def restart(self, sig=signal.SIGTERM):
        self.stop(sig)
        self.start()

    def load_images(self):
        images = CACHE / ('images-%s.tar' % hashlib.sha1(' '.join(APPLETS).encode() + WAIT).hexdigest()[:8])
        if not images.exists():
            make_images(str(images) + '.part')
            os.rename(str(images) + '.part', images)
        subprocess.run([str(self.bin / 'ctr'), '-a', '%s/cri.sock' % self.dir, '-n', 'k8s.io', 'images', 'import', str(images)],
                       check=True, capture_output=True)
        wait_for('the images', lambda: {BUSYBOX, PAUSE} <= {t for i in self.images() for t in i.repo_tags})

    def down(self):
        """Ends all pods, containerd, and what is left of them."""
        if not self.process:
            return
        if self.process.poll() is not None:
            self.start()
        for pod in self.call('ListPodSandbox', self.pb.ListRequest(), self.pb.PodList).items:
            self.stop_pod(pod.id)
            self.remove_pod(pod.id)
        self.stop()
        for line in pathlib.Path('/proc/mounts').read_text().splitlines()[::-1]:
            point = line.split()[1]
            if point.startswith(str(self.dir) + '/'):
                subprocess.run(['umount', '-l', point], check=False)
        name = self.cgroup.strip('/')
        for top in cgroups(lambda found: found == name):
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)

    # -- the CRI

    def call(self, method, request, answer, timeout=CALL_S, service='RuntimeService'):
        stub = self.channel.unary_unary('/runtime.v1.%s/%s' % (service, method), request_serializer=lambda m: m.SerializeToString(),
                                        response_deserializer=answer.FromString)
        return stub(request, timeout=timeout)

    def images(self):
        return self.call('ListImages', self.pb.Empty(), self.pb.ImageList, service='ImageService').images

    def host_namespaces(self):
        return self.pb.NamespaceOption(network='NODE', pid='CONTAINER', ipc='POD')

    def cgroup_parent(self, qos, uid):
        if self.systemd:
            middle = '' if qos == 'guaranteed' else '-' + qos
            return 'kubepods%s-pod%s.slice' % (middle, uid.replace('-', '_'))
        return '%s/kubepods%s/pod%s' % (self.cgroup, '' if qos == 'guaranteed' else '/' + qos, uid)

    def run_pod(self, name, qos='guaranteed', annotations=None, namespace='default', mcpu=0):
        """mcpu: CPUs of the pod itself (spec.resources)"""
        uid = str(uuid.uuid4())
        config = self.pb.PodConfig(metadata=dict(name=name, uid=uid, namespace=namespace), annotations=annotations or {})
        config.linux.cgroup_parent = self.cgroup_parent(qos, uid)
        config.linux.security_context.namespace_options.CopyFrom(self.host_namespaces())
        if mcpu:
            config.linux.resources.CopyFrom(self.resources(qos, mcpu, 1 << 30))
        pod = self.call('RunPodSandbox', self.pb.RunPodSandboxRequest(config=config), self.pb.RunPodSandboxResponse).pod_sandbox_id
        return Pod(self, pod, config, qos)

    def stop_pod(self, pod):
        self.call('StopPodSandbox', self.pb.PodRequest(pod_sandbox_id=pod), self.pb.Empty)

    def remove_pod(self, pod):
        self.call('RemovePodSandbox', self.pb.PodRequest(pod_sandbox_id=pod), self.pb.Empty)

    def resources(self, qos, mcpu, mem=None, limit_mcpu=0):
        """As a kubelet translates a request and, for burstable pods, limits; a guaranteed pod's are its request."""
        r = self.pb.Resources(cpu_shares=max(2, mcpu * 1024 // 1000))
        if qos == 'guaranteed':
            mem, limit_mcpu, r.oom_score_adj = mem or 64 << 20, mcpu, -997
        else:
            r.oom_score_adj = 1000 if qos == 'besteffort' else 999
        if limit_mcpu:
            r.cpu_period, r.cpu_quota = 100000, limit_mcpu * 100
        if mem:
            r.memory_limit_in_bytes = mem
        return r


class Pod:
    def __init__(self, runtime, pod_id, config, qos):
        self.runtime, self.id, self.config, self.qos = runtime, pod_id, config, qos

    def run(self, name, mcpu=0, command=('/bin/wait',), devices=(), mounts=(), huge=None, cdi=(), **limits):
        """Creates and starts a container; gRPC errors pass. mounts: files of the host; huge: {page size: bytes}; cdi: names of CDI devices"""
        rt, pb = self.runtime, self.runtime.pb
        config = pb.ContainerConfig(metadata=dict(name=name), image=dict(image=BUSYBOX), command=command,
                                    devices=[dict(container_path=d, host_path=d, permissions='rwm') for d in devices],
                                    mounts=[dict(container_path='/mnt/' + os.path.basename(m), host_path=str(m), readonly=True) for m in mounts])
        config.labels['io.kubernetes.container.name'] = name
        config.linux.resources.CopyFrom(rt.resources(self.qos, mcpu, **limits))
        for device in cdi:
            config.CDI_devices.add(name=device)
        for size, limit in (huge or {}).items():
            config.linux.resources.hugepage_limits.add(page_size=size, limit=limit)
        config.linux.security_context.namespace_options.CopyFrom(rt.host_namespaces())
        request = pb.CreateContainerRequest(pod_sandbox_id=self.id, config=config, sandbox_config=self.config)
        ctr = rt.call('CreateContainer', request, pb.CreateContainerResponse).container_id
        rt.call('StartContainer', pb.ContainerRequest(container_id=ctr), pb.Empty)
        return Container(rt, ctr, self.qos)

    def remove(self):
        self.runtime.stop_pod(self.id)
        self.runtime.remove_pod(self.id)


class Container:
    def __init__(self, runtime, ctr_id, qos):
        self.runtime, self.id, self.qos = runtime, ctr_id, qos

    def pid(self):
        pb = self.runtime.pb
        answer = self.runtime.call('ContainerStatus', pb.StatusRequest(container_id=self.id, verbose=True), pb.StatusResponse)
        return json.loads(answer.info['info'])['pid']

    def allowed(self, what='Cpus'):
        """What the kernel lets it run on, as a list: Cpus or Mems."""
        status = pathlib.Path('/proc/%d/status' % self.pid()).read_text()
        return re.search(r'^%s_allowed_list:\s*(\S*)' % what, status, re.M).group(1)

    def cgroup(self, controller='cpuset'):
        """Folder of its cgroup, which is that of all controllers with version 2."""
        text = pathlib.Path('/proc/%d/cgroup' % self.pid()).read_text()
        one = re.search(r'^\d+:(?:[\w=,]*,)?%s(?:,[\w=,]*)?:(.*)$' % controller, text, re.M)
        if one:
            return pathlib.Path('/sys/fs/cgroup/%s%s' % (controller, one.group(1)))
        return pathlib.Path('/sys/fs/cgroup' + re.search(r'^0::(.*)$', text, re.M).group(1))

    def cgroup_file(self, name, controller='cpuset'):
        return pathlib.Path(self.cgroup(controller), name).read_text().strip()

    def exec(self, *command):
        """What a command writes that is run inside of it."""
        pb = self.runtime.pb
        done = self.runtime.call('ExecSync', pb.ExecSyncRequest(container_id=self.id, cmd=command), pb.ExecSyncResponse)
        assert done.exit_code == 0, done.stderr
        return done.stdout.decode()

    def update(self, mcpu):
        pb = self.runtime.pb
        self.runtime.call('UpdateContainerResources', pb.UpdateRequest(container_id=self.id, linux=self.runtime.resources(self.qos, mcpu)),
                          pb.Empty)

    def stop(self):
        request = self.runtime.pb.ContainerRequest(container_id=self.id, timeout=CALL_S // 2)
        self.runtime.call('StopContainer', request, self.runtime.pb.Empty)

    def remove(self):
        self.stop()
        self.runtime.call('RemoveContainer', self.runtime.pb.ContainerRequest(container_id=self.id), self.runtime.pb.Empty)
