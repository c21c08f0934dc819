# SPDX-License-Identifier: Apache-2.0
"""A runtime's CRI socket as far as bytes go, with a real gRPC server, and an nri-rp-bridge before it.

    with Runtime() as runtime, Bridge(runtime) as bridge:
        bridge.unary('Echo')(b'x')
"""
import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

import grpc

BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', pathlib.Path(__file__).resolve().parents[1] / 'build'))
SERVICE = '/runtime.v1.RuntimeService/'
IMAGES = '/runtime.v1.ImageService/'
UNLIMITED = [('grpc.max_receive_message_length', -1), ('grpc.max_send_message_length', -1)]
STOP_S = 60
STARTED = 'bridge: between '
MANY = 2000  # messages that Flood sends at most


def same(data):
    return data


class Runtime(grpc.GenericRpcHandler):
    """Methods are called for what they do. Messages are bytes: what comes out has to be what went in."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nri-rp-cri-'))
        self.socket = self.dir / 'runtime.sock'
        self.calls, self.cancelled, self.sent = [], threading.Semaphore(0), 0
        self.release, self.waiting = threading.Event(), threading.Semaphore(0)
        self.server = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release.set()
        self.stop()
        shutil.rmtree(self.dir)

    def start(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(64), options=UNLIMITED)
        self.server.add_generic_rpc_handlers((self,))
        assert self.server.add_insecure_port('unix:' + str(self.socket))
        self.server.start()

    def stop(self):
        """As one that dies: connections end, calls under way with them."""
        if self.server:
            self.server.stop(None).wait(STOP_S)
        self.server = None
        self.socket.unlink(missing_ok=True)

    def service(self, handler_call_details):
        method = handler_call_details.method
        self.calls.append(method)
        name = method.rsplit('/', 1)[-1]
        unary, stream, both = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        made = {'Echo': (unary, self.echo), 'Fail': (unary, self.fail), 'Hold': (unary, self.hold), 'Flood': (stream, self.flood),
                'Break': (stream, self.break_off), 'Chat': (both, self.chat)}.get(name)
        return made and made[0](made[1], same, same)

    @staticmethod
    def echo(request, context):
        context.send_initial_metadata(tuple((k, v) for k, v in context.invocation_metadata() if k.startswith('x-')))
        context.set_trailing_metadata((('x-trailer-bin', b'\0\1\xff'),))
        return request

    @staticmethod
    def fail(request, context):
        context.set_trailing_metadata((('x-why', 'so'),))
        context.abort(grpc.StatusCode.NOT_FOUND, 'no "%s", nö 100%%' % request.decode())

    def hold(self, request, context):
        context.add_callback(self.cancelled.release)
        self.waiting.release()
        while context.is_active() and not self.release.wait(0.05):
            pass
        return request

    def flood(self, request, context):
        for _ in range(MANY):
            if not context.is_active():
                return
            self.sent += 1
            yield request

    def break_off(self, request, context):
        yield request
        self.waiting.release()
        self.release.wait(STOP_S)

    @staticmethod
    def chat(requests, context):
        for request in requests:
            yield request[::-1]


class Bridge:
    def __init__(self, runtime, *options, image=None, under=()):
        self.dir, self.options = runtime.dir, [str(o) for o in options]
        self.socket, self.nri_socket, self.log = self.dir / 'kubelet.sock', self.dir / 'bridge.sock', self.dir / 'bridge.log'
        self.runtime, self.image, self.under = runtime, image, list(under)
        self.process = self.channel = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.stop() if self.process else 0
        if kind or code:
            print(self.log.read_text())
        assert kind or code == 0, 'nri-rp-bridge has ended with %s' % code

    def start(self):
        words = ['--listen', self.socket, '--runtime', 'unix://%s' % self.runtime.socket, '--nri-socket', self.nri_socket]
        words += ['--image', self.image.socket] if self.image else []
        before = self.log.read_text().count(STARTED) if self.log.exists() else 0
        with open(self.log, 'a', encoding='utf-8') as log:
            self.process = subprocess.Popen([*self.under, str(BUILD / 'bin/nri-rp-bridge'), *map(str, words), *self.options], stderr=log)
        self.wait_log(STARTED, before + 1)
        self.channel = self.connect()

    def connect(self):
        return grpc.insecure_channel('unix:%s' % self.socket, options=UNLIMITED + [('grpc.use_local_subchannel_pool', 1)])

    def stop(self):
        self.channel.close()
        self.process.terminate()
        code = self.process.wait(STOP_S)
        self.process = None
        return code

    def wait_log(self, text, count=1):
        end = time.monotonic() + STOP_S
        while self.log.read_text().count(text) < count:
            assert time.monotonic() < end and self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)

    def unary(self, name, service=SERVICE):
        return self.channel.unary_unary(service + name)

    def stream(self, name):
        return self.channel.unary_stream(SERVICE + name)

    def chat(self, requests):
        return self.channel.stream_stream(SERVICE + 'Chat')(requests)


class Judge:
    """A plugin that says which promises of NRI a runtime breaks; BROKEN is in its log then."""

    def __init__(self, socket, *options):
        self.log = pathlib.Path(str(socket) + '.judge')
        with open(self.log, 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen([str(BUILD / 'test/judge/judge'), *options, str(socket)], stdout=log)
        self.wait('Synchronize')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def lines(self, method=''):
        """[(method, id, name)]"""
        return [tuple(line.split(' ')) for line in self.log.read_text().splitlines() if line.startswith(method)]

    def wait(self, method, count=1):
        end = time.monotonic() + STOP_S
        while len(self.lines(method)) < count:
            assert time.monotonic() < end and self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)
        return self.lines(method)[-1]

    def verdict(self):
        assert 'BROKEN' not in self.log.read_text(), self.log.read_text()


class Churn(threading.Thread):
    """Pods that come and go until it is left. create(i) and remove(pod) are called from a thread of its own; what they raise is in errors, but for what a
    bridge that is killed makes of calls when that is borne, as a kubelet does: clean(pods) is called then, to remove what there is beside these."""

    BORNE = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL

    def __init__(self, create, remove, live=3, clean=None):
        super().__init__()
        self.work, self.remove, self.live, self.clean = create, remove, live, clean
        self.ended, self.errors, self.made, self.broken, self.unclean = threading.Event(), [], 0, 0, False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()

    def run(self):
        rng, pods, i = random.Random(1), [], 0
        while not self.ended.is_set():
            i += 1
            self.attempt(lambda: pods.append(self.work(i)))
            self.made = i
            if len(pods) >= self.live:
                self.attempt(lambda: self.remove(pods.pop(rng.randrange(len(pods)))))
            while self.unclean and self.clean and not self.ended.is_set():
                self.unclean = False
                self.attempt(lambda: self.clean(pods))
        for pod in pods:
            self.attempt(lambda pod=pod: self.remove(pod))

    def attempt(self, work):
        try:
            work()
        except grpc.RpcError as e:
            self.unclean = True
            if not self.clean or e.code() not in self.BORNE:
                self.errors.append(e)
            self.broken += 1
            time.sleep(0.02)
        except Exception as e:  # pylint: disable=broad-except
            self.errors.append(e)
            self.ended.set()
