# SPDX-License-Identifier: Apache-2.0
"""Calls of every method of CRI's two services, good and bad, and what comes of them: the same script twice, by two ways, gives two lists that
can be compared. Messages are read by their wire format alone, so that nothing is left out.

What differs from one run to the next by nature is named, not compared: ids and tokens by the order in which they are seen first, times,
processes' numbers, what is measured.
"""
import difflib
import json
import re
import struct

import grpc

CALL_S = 60
RUNTIME, IMAGE = '/runtime.v1.RuntimeService/', '/runtime.v1.ImageService/'
NANOSECONDS = 10**18  # a number of that size is a time
# No two are alike: only that there is an answer.
MEASURED = 'ContainerStats', 'ListContainerStats', 'PodSandboxStats', 'ListPodSandboxStats', 'ListPodSandboxMetrics', 'ImageFsInfo'
GIVES_UP = 'the caller gives up'
GARBAGE = b'\xff\xff\xff', b'\x0a\x00\x10\x01\x0b'


# ---- the wire format ---------------------------------------------------------------------------------------------------------------

def varint(n):
    out = b''
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def message(*fields):
    """(number, value)…: text, bytes, a message's bytes, a number of 0 or more, or a list of these."""
    out = b''
    for number, value in fields:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int):
                out += varint(number << 3) + varint(one)
            else:
                data = one.encode() if isinstance(one, str) else one
                out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError('no number')


def fields(data):
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5):
            n = 8 if wire == 1 else 4
            value, at = struct.unpack_from('<Q' if n == 8 else '<I', data, at)[0], at + n
        elif wire == 2:
            n, at = read_varint(data, at)
            value, at = data[at:at + n], at + n
            if len(value) < n:
                raise ValueError('cut off')
        else:
            raise ValueError('no wire type')
        if not tag >> 3:
            raise ValueError('no field')
        yield tag >> 3, value


class Names:
    """Gives what is random a name, by its place in the order of appearance."""

    KINDS = ('id', re.compile(r'\b[0-9a-f]{64}\b')), ('url', re.compile(r'http://127\.0\.0\.1:\d+/(\w+)/[\w-]+')), \
        ('time', re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)')), ('file', re.compile(r'runc-process\d+')), \
        ('process', re.compile(r'/proc/\d+')), \
        ('time', re.compile(r'(?<=\D)\d{19}(?=\D|$)'))

    def __init__(self, hidden=''):
        self.ids, self.hidden = {}, hidden  # annotations that begin so are passed over

    def shown(self, text):
        return not (self.hidden and text.startswith(self.hidden))

    def text(self, text):
        for kind, pattern in self.KINDS:
            text = pattern.sub(lambda m, kind=kind: self.name(kind, m), text)
        return text

    def name(self, kind, m):
        if kind == 'id':
            return '<id %d>' % self.ids.setdefault(m.group(), len(self.ids))
        return '<url %s>' % m.group(1) if kind == 'url' else '<%s>' % kind

    def is_hidden(self, value):
        """An entry of a map, whose first field is the key."""
        return bool(self.hidden and isinstance(value, bytes) and value[:1] == b'\x0a' and value[2:].startswith(self.hidden.encode()))

    def json(self, value, key=''):
        if isinstance(value, dict):
            out = {k: self.json(v, k) for k, v in sorted(value.items()) if self.shown(k)}
            return {k: v for k, v in out.items() if v or v == value[k]}  # what had nothing but ours is not there without it
        if isinstance(value, list):
            return [self.json(v) for v in value]
        if key.lower() in ('pid', 'createdat', 'startedat', 'finishedat', 'lastupdatetime') and isinstance(value, int):
            return '<number>'
        return self.text(value) if isinstance(value, str) else value

    def tree(self, data):
        """Nested lists of [number, value], where order means nothing in order."""
        if not isinstance(data, bytes):
            return '<time>' if data > NANOSECONDS else data
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
        if text is not None and not re.search(r'[\x00-\x08\x0b-\x1f]', text):
            try:
                return self.json(json.loads(text)) if text[:1] in ('{', '[') else self.text(text)
            except ValueError:
                return self.text(text)
        try:
            return sorted(([n, self.tree(v)] for n, v in fields(data) if not self.is_hidden(v)), key=repr)
        except (ValueError, IndexError, struct.error):
            return self.text(repr(data))


# ---- the script --------------------------------------------------------------------------------------------------------------------

class Script:
    """`outcomes`: [(what, status, text, trailers, answer)] of each call in the order in which they were made."""

    def __init__(self, runtime, channel, hidden=''):
        self.rt, self.pb, self.channel = runtime, runtime.pb, channel
        self.names, self.outcomes = Names(hidden), []

    def call(self, what, method, data=b'', service=RUNTIME, deadline=CALL_S):
        """The answer's bytes, or None."""
        data = data if isinstance(data, bytes) else data.SerializeToString()
        try:
            answer, call = self.channel.unary_unary(service + method).with_call(data, timeout=deadline)
            self.note(what, method, call, answer)
        except grpc.RpcError as e:
            answer = None
            self.note(what, method, e, None)
        return answer

    def note(self, what, method, call, answer):
        tree = None if answer is None else bool(answer) if method in MEASURED else self.names.tree(answer)
        if what == GIVES_UP:
            # Either the runtime is first to say so, or the client.
            assert call.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED)
            self.outcomes.append((what, 'no answer', '', [], None))
            return
        trailers = sorted((k, self.names.text(str(v))) for k, v in call.trailing_metadata() or ())
        self.outcomes.append(('%s: %s' % (method, what), call.code().name, self.names.text(call.details() or ''), trailers, tree))

    def pod_config(self, name='conformance', **more):
        uid = 'c0f0' + name.encode().hex()[:28].ljust(28, '0')
        config = self.pb.PodConfig(metadata=dict(name=name, uid=uid, namespace='default', attempt=0), labels={'a': 'b'}, annotations={'x': 'y'},
                                   log_directory=str(self.rt.dir / 'logs'), **more)
        config.linux.cgroup_parent = self.rt.cgroup_parent('burstable', uid)
        config.linux.security_context.namespace_options.CopyFrom(self.rt.host_namespaces())
        return config

    def run_pod(self, what, config, *more):
        answer = self.call(what, 'RunPodSandbox', message((1, config.SerializeToString()), *more))
        return self.pb.RunPodSandboxResponse.FromString(answer).pod_sandbox_id if answer else ''

    def container(self, name='c', image=None, **more):
        from containerd import BUSYBOX
        config = self.pb.ContainerConfig(metadata=dict(name=name), image=dict(image=image or BUSYBOX), command=['/bin/wait'], labels={'l': name}, **more)
        config.linux.resources.CopyFrom(self.rt.resources('burstable', 200))
        config.linux.security_context.namespace_options.CopyFrom(self.rt.host_namespaces())
        # log_path
        return config.SerializeToString() + message((11, name + '.log'))

    def create(self, what, pod, container, config):
        answer = self.call(what, 'CreateContainer', message((1, pod), (2, container), (3, config.SerializeToString())))
        return self.pb.CreateContainerResponse.FromString(answer).container_id if answer else ''

    # -- groups of calls

    def about_the_runtime(self):
        for version in ('', '0.1.0', 'v9'):
            self.call('version "%s"' % version, 'Version', message((1, version)))
        self.call('', 'Status')
        self.call('verbose', 'Status', message((1, 1)))
        self.call('', 'RuntimeConfig')
        self.call('nothing', 'UpdateRuntimeConfig')
        self.call('a CIDR', 'UpdateRuntimeConfig', message((1, message((1, message((1, '10.9.0.0/24')))))))
        self.call('', 'ListMetricDescriptors')
        self.call('', 'ListPodSandboxMetrics')
        self.call('not there', 'CheckpointContainer', message((1, 'none'), (2, '/nowhere'), (3, 1)))
        self.call('not there', 'UpdatePodSandboxResources', message((1, 'none')))
        self.call('', 'NoSuchMethod')
        self.call('', 'Method', service='/runtime.v9.RuntimeService/')

    def garbage(self):
        for method in ('RunPodSandbox', 'CreateContainer', 'StartContainer', 'UpdateContainerResources', 'StopContainer', 'RemovePodSandbox', 'ListContainers',
                       'ExecSync'):
            for i, data in enumerate(GARBAGE):
                self.call('garbage %d' % i, method, data)

    def images(self):
        from containerd import BUSYBOX
        for what, data in (('all', b''), ('one', message((1, message((1, message((1, BUSYBOX))))))), ('none', message((1, message((1, message((1, 'x/y:z')))))))):
            self.call(what, 'ListImages', data, IMAGE)
        for what, name, verbose in (('there', BUSYBOX, 0), ('verbose', BUSYBOX, 1), ('not there', 'x/y:z', 0), ('no name', '', 0)):
            self.call(what, 'ImageStatus', message((1, message((1, name))), (2, verbose)), IMAGE)
        self.call('no name', 'PullImage', b'', IMAGE)
        self.call('a bad name', 'PullImage', message((1, message((1, 'UPPER/x:y z')))), IMAGE)
        self.call('nobody is there', 'PullImage', message((1, message((1, 'localhost:1/x:y')))), IMAGE)
        self.call('not there', 'RemoveImage', message((1, message((1, 'x/y:z')))), IMAGE)
        self.call('', 'ImageFsInfo', b'', IMAGE)
        self.call('', 'NoSuchMethod', b'', IMAGE)
        self.call('garbage', 'ImageStatus', GARBAGE[0], IMAGE)

    def pods(self):
        config = self.pod_config()
        pod = self.run_pod('good', config)
        self.run_pod('the same once more', config)
        self.call('nothing', 'RunPodSandbox')
        self.call('no metadata', 'RunPodSandbox', self.pb.RunPodSandboxRequest(config=self.pb.PodConfig()))
        self.run_pod('an unknown handler', self.pod_config('handler'), (2, 'nope'))
        network = self.pod_config('network')
        network.linux.security_context.namespace_options.network = self.pb.POD
        self.run_pod('a network that there is not', network)
        for what, data in (('', message((1, pod))), ('verbose', message((1, pod), (2, 1))), ('not there', message((1, 'none'))), ('no id', b'')):
            self.call(what, 'PodSandboxStatus', data)
        for what, data in (('by id', message((1, pod))), ('by a part of it', message((1, pod[:13]))), ('not ready', message((1, pod), (2, message((1, 1))))),
                           ('by label', message((3, [message((1, 'a'), (2, 'b'))]))), ('none', message((3, [message((1, 'a'), (2, 'c'))])))):
            self.call(what, 'ListPodSandbox', message((1, data)))
        return pod, config

    def containers(self, pod, config):
        ctr = self.create('good', pod, self.container(), config)
        self.create('the same once more', pod, self.container(), config)
        self.create('no such pod', 'none', self.container(), config)
        self.create('no such image', pod, self.container('i', image='x/y:z'), config)
        device = dict(container_path='/dev/none', host_path='/dev/none', permissions='rwm')
        self.create('no such device', pod, self.container('d', devices=[device]), config)
        self.call('nothing', 'CreateContainer')
        self.call('no config', 'CreateContainer', message((1, pod)))
        self.call('created', 'ContainerStatus', message((1, ctr)))
        self.call('nothing runs', 'ExecSync', message((1, ctr), (2, ['/bin/true'])))
        self.call('good', 'StartContainer', message((1, ctr)))
        self.call('again', 'StartContainer', message((1, ctr)))
        for what, data in (('runs', message((1, ctr))), ('verbose', message((1, ctr), (2, 1))), ('not there', message((1, 'none'))), ('no id', b'')):
            self.call(what, 'ContainerStatus', data)
        for what, data in (('by id', message((1, ctr))), ('running', message((1, ctr), (2, message((1, 1))))), ('exited', message((1, ctr), (2, message((1, 2))))),
                           ('of the pod', message((3, pod))), ('by label', message((4, [message((1, 'l'), (2, 'c'))])))):
            self.call(what, 'ListContainers', message((1, data)))
        never = self.create('never started', pod, self.container('n'), config)
        self.call('never started', 'RemoveContainer', message((1, never)))
        # A command that there is not: created, and cannot be started.
        bad = self.pb.ContainerConfig.FromString(self.container('b'))
        bad.command[:] = ['/no/such/program']
        lost = self.create('no such program', pod, bad.SerializeToString(), config)
        self.call('no such program', 'StartContainer', message((1, lost)))
        self.call('no such program', 'RemoveContainer', message((1, lost)))
        return ctr

    def resources(self, ctr):
        more = self.rt.resources('burstable', 300)
        for what, data in (('good', message((1, ctr), (2, more.SerializeToString()))), ('nothing', message((1, ctr))), ('not there', message((1, 'none'))),
                           ('no such CPU', message((1, ctr), (2, message((6, '4000')))))):
            self.call(what, 'UpdateContainerResources', data)
        for method in ('ContainerStats', 'PodSandboxStats'):
            self.call('not there', method, message((1, 'none')))
        self.call('', 'ContainerStats', message((1, ctr)))
        self.call('one', 'ListContainerStats', message((1, message((1, ctr)))))
        self.call('', 'ListPodSandboxStats')

    def inside(self, pod, ctr):
        def sync(what, *command, seconds=0, **how):
            self.call(what, 'ExecSync', message((1, how.pop('ctr', ctr)), (2, list(command)), (3, seconds)), **how)
        sync('good', '/bin/cat', '/etc/passwd')
        sync('a status', '/bin/sh', '-c', 'echo out; echo err >&2; exit 7')
        sync('a megabyte', '/bin/dd', 'if=/dev/zero', 'bs=1024', 'count=1024')
        sync('too long', '/bin/sleep', '20', seconds=1)
        sync('no such program', '/no/such/program')
        sync('not there', '/bin/true', ctr='none')
        sync(GIVES_UP, '/bin/sleep', '5', deadline=0.5)
        future = self.channel.unary_unary(RUNTIME + 'ExecSync').future(message((1, ctr), (2, ['/bin/sleep', '5'])), timeout=CALL_S)
        future.cancel()
        self.outcomes.append(('ExecSync: cancelled', future.code().name, '', [], None))
        for method, good in (('Exec', message((1, ctr), (2, ['/bin/true']), (4, 1), (5, 1))), ('Attach', message((1, ctr), (4, 1))),
                             ('PortForward', message((1, pod), (2, 80)))):
            self.call('good', method, good)
            self.call('not there', method, message((1, 'none'), (2, '/bin/true') if method == 'Exec' else (4, 1)))
            self.call('nothing', method)
        self.call('good', 'ReopenContainerLog', message((1, ctr)))
        self.call('not there', 'ReopenContainerLog', message((1, 'none')))

    def events(self, pod, config):
        """The stream of events, while a container lives; then it is cancelled."""
        stream = self.channel.unary_stream(RUNTIME + 'GetContainerEvents')(b'', timeout=CALL_S)
        ctr = self.create('while events are watched', pod, self.container('e'), config)
        for method in ('StartContainer', 'StopContainer', 'RemoveContainer'):
            self.call('while events are watched', method, message((1, ctr)))
        seen = []
        for event in stream:
            kinds = dict(fields(event))
            if kinds.get(1) != ctr.encode():
                continue  # a runtime may tell what nobody has taken before
            seen.append(kinds.get(2, 0))
            if seen[-1] == 3:
                break
        stream.cancel()
        self.outcomes.append(('GetContainerEvents: a life', stream.code().name, '', [], sorted(seen)))

    def ends(self, pod, ctr):
        for method in ('StopContainer', 'RemoveContainer'):
            self.call('good', method, message((1, ctr), (2, 1)))
            self.call('again', method, message((1, ctr)))
            self.call('not there', method, message((1, 'none')))
            self.call('no id', method)
        for method in ('RemovePodSandbox', 'StopPodSandbox'):
            self.call('not there', method, message((1, 'none')))
            self.call('no id', method)
        self.call('good', 'StopPodSandbox', message((1, pod)))
        self.call('again', 'StopPodSandbox', message((1, pod)))
        self.call('stopped', 'PodSandboxStatus', message((1, pod)))
        self.call('good', 'RemovePodSandbox', message((1, pod)))
        self.call('again', 'RemovePodSandbox', message((1, pod)))

    def clean(self):
        """What calls that fail have left."""
        pods = self.channel.unary_unary(RUNTIME + 'ListPodSandbox')(message((1, message((3, [message((1, 'a'), (2, 'b'))])))), timeout=CALL_S)
        for pod in self.pb.PodList.FromString(pods).items:
            for method in ('StopPodSandbox', 'RemovePodSandbox'):
                self.channel.unary_unary(RUNTIME + method)(message((1, pod.id)), timeout=CALL_S)

    def run(self):
        (self.rt.dir / 'logs').mkdir(exist_ok=True)
        self.about_the_runtime()
        self.garbage()
        self.images()
        pod, config = self.pods()
        ctr = self.containers(pod, config)
        self.resources(ctr)
        self.inside(pod, ctr)
        self.events(pod, config)
        self.ends(pod, ctr)
        self.clean()
        return self.outcomes


def lines(outcome):
    return json.dumps(outcome, indent=0, sort_keys=True, default=repr).splitlines()


def differences(one, two):
    """[(what, what only the one has, what only the other), …] of calls that differ."""
    out = [] if len(one) == len(two) else [('the number of calls', len(one), len(two))]
    for a, b in zip(one, two):
        if a != b:
            changed = [line for line in difflib.unified_diff(lines(a), lines(b), lineterm='', n=0) if not line.startswith(('---', '+++', '@@'))]
            out.append((a[0], [c[1:] for c in changed if c[0] == '-'], [c[1:] for c in changed if c[0] == '+']))
    return out
