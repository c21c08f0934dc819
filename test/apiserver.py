# SPDX-License-Identifier: Apache-2.0
"""An API server of Kubernetes, as far as nri-rp-agent talks to one: objects in memory, lists, watches, patches, and faults on demand.

    with ApiServer(kinds={'balloonspolicies': 'BalloonsPolicy'}) as api:
        api.put('nodes', None, 'n1', {'metadata': {'labels': {}}})
        subprocess.Popen([…, '--kubeconfig', api.kubeconfig(tmp_path)])
"""
import contextlib
import copy
import http.server
import json
import re
import sys
import threading
import time
import urllib.parse
import uuid

GROUPS = {'config.nri/v1alpha1', 'nri-rp.io/v1alpha1', 'topology.node.k8s.io/v1alpha2', 'resource.k8s.io/v1'}
FORMER = 'criresmgr.intel.com/v1alpha1'  # its adjustments are called FORMER_ADJUSTMENTS here
FORMER_ADJUSTMENTS = 'adjustments.criresmgr.intel.com'
PATH = re.compile(r'^/(?:api/v1|apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<ns>[^/]+))?(?:/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?)?$')
WATCH_STEP_S = 0.05


def merged(old, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    out = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def merge_conditions(old, patch):
    """Conditions, which a strategic merge patch merges by their type; other lists of a Node, as its taints, it replaces."""
    status = patch.get('status') or {}
    if 'conditions' not in status:
        return
    items = {item['type']: item for item in (old.get('status') or {}).get('conditions') or []}
    for item in status['conditions']:
        if item.get('$patch') == 'delete':
            items.pop(item['type'], None)
        else:
            items[item['type']] = {**items.get(item['type'], {}), **item}
    status['conditions'] = list(items.values())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def log_error(self, format, *args):  # pylint: disable=redefined-builtin
        """Shows with a failed test what was no request; such a line also has an answer without a status line."""
        print('API server: %s; descriptor %d got %r' % (format % args, self.connection.fileno(), self.raw_requestline), file=sys.stderr)

    def answer(self, code, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.server.api.sent += len(data)

    def fail(self, code, message, headers=()):
        self.answer(code, {'kind': 'Status', 'status': 'Failure', 'message': message, 'code': code}, headers)

    def handle_request(self):
        api = self.server.api
        if self.server.closed:  # a connection from before has no answer either
            self.close_connection = True
            return
        length = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(length).decode()
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        with api.lock:
            api.requests.append({'method': self.command, 'path': url.path, 'query': query, 'body': body, 'at': time.monotonic(),
                                 'type': self.headers.get('Content-Type'), 'token': (self.headers.get('Authorization') or '')[len('Bearer '):]})
            fault = api.take_fault(self.command, url.path, query)
        if fault:
            fault(self)
            return
        token = (self.headers.get('Authorization') or '')[len('Bearer '):]
        if api.token and token != api.token:
            self.fail(401, 'Unauthorized')
            return
        match = PATH.match(url.path)
        if not match:
            self.fail(404, 'the server could not find the requested resource')
            return
        at = match.groupdict()
        if at['group'] == FORMER:
            at['plural'] = FORMER_ADJUSTMENTS
        getattr(self, 'serve_' + self.command.lower())(api, at, query, body)

    do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = handle_request

    def serve_get(self, api, at, query, _body):
        if at['group'] and at['group'] not in api.groups:
            self.fail(404, 'no such group')
        elif not at['plural']:
            self.discover(api, at['group'] is None)
        elif at['plural'] in api.denied:
            self.fail(403, '%s is forbidden' % at['plural'])
        elif at['name']:
            found = api.find(at['plural'], at['ns'], at['name'])
            if found:
                self.answer(200, found)
            else:
                self.fail(404, '%s not found' % at['name'])
        elif query.get('watch'):
            self.watch(api, at, query)
        else:
            self.list(api, at, query)

    def discover(self, api, core):
        resources = [{'name': plural, 'kind': kind, 'namespaced': True} for plural, kind in api.kinds.items()]
        resources += [{**r, 'name': r['name'] + '/status'} for r in resources]
        if core:
            resources = [{'name': 'pods/eviction', 'group': 'policy', 'version': 'v1', 'kind': 'Eviction', 'namespaced': True}]
        if resources:
            self.answer(200, {'kind': 'APIResourceList', 'resources': resources})
        else:
            self.fail(404, 'no such group')

    @staticmethod
    def selected(at, query, key, object_):
        """Without a namespace in the path it is those of all namespaces."""
        plural, ns, name = key
        parts = [part for part in query.get('fieldSelector', '').split(',') if part]
        wanted = dict(part.split('=', 1) for part in parts if '!=' not in part)
        label, _, value = query.get('labelSelector', '').partition('!=')
        if 'metadata.name!=' + name in parts or (label and (object_['metadata'].get('labels') or {}).get(label) == value):
            return False
        node = (object_.get('spec') or {}).get('nodeName')
        return plural == at['plural'] and at['ns'] in (None, ns) and wanted.get('metadata.name', name) == name and wanted.get('spec.nodeName', node) == node

    def list(self, api, at, query):
        with api.lock:
            items = [copy.deepcopy(o) for key, o in sorted(api.objects.items(), key=str) if self.selected(at, query, key, o)]
            version = str(api.version)
        first = int(query.get('continue', 0))
        size = int(query.get('limit', 500))
        more = {'continue': str(first + size)} if first + size < len(items) else {}
        self.answer(200, {'kind': 'List', 'metadata': {'resourceVersion': version, **more}, 'items': items[first:first + size]})

    def chunk(self, data):
        self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
        self.wfile.flush()
        self.server.api.sent += len(data)

    def watch(self, api, at, query):
        seen = int(query['resourceVersion'])
        with api.lock:
            if seen < api.oldest:
                self.fail(410, 'too old resource version')
                return
            generation = api.streams
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        end = time.monotonic() + int(query.get('timeoutSeconds', 300))
        with contextlib.suppress(OSError):
            while time.monotonic() < end and not api.closing and api.streams == generation:
                with api.lock:
                    events = [e for e in api.events if e[0] > seen]
                for version, kind, key, object_ in events:
                    seen = version
                    if self.selected(at, query, key, object_):
                        self.chunk(json.dumps({'type': kind, 'object': object_}).encode() + b'\n')
                time.sleep(WATCH_STEP_S)
            self.chunk(b'')

    def serve_patch(self, api, at, query, body):
        with api.lock:
            api.writes.append((self.headers.get('Content-Type'), self.path, json.loads(body)))
            if at['plural'] in api.read_only:
                self.fail(403, 'cannot patch %s' % at['plural'])
                return
            if at['group'] and at['group'] not in api.groups:
                self.fail(404, 'the server could not find the requested resource')
                return
            key = at['plural'], at['ns'], at['name']
            apply = self.headers.get('Content-Type') == 'application/apply-patch+yaml'
            if key not in api.objects and not apply:
                self.fail(404, '%s not found' % at['name'])
                return
            patch = json.loads(body)
            version = patch.get('metadata', {}).pop('resourceVersion', None)
            if at['sub'] == 'status':
                patch = {'status': patch.get('status', {})}
            if version and version != api.objects[key]['metadata']['resourceVersion']:
                self.fail(409, 'the object has been modified')
                return
            if 'strategic' in self.headers.get('Content-Type'):
                merge_conditions(api.objects[key], patch)
            out = api.store(key, merged(api.objects.get(key, {}), patch), spec=at['sub'] is None)
        self.answer(200, out)

    def serve_delete(self, api, at, _query, _body):
        with api.lock:
            api.writes.append(('DELETE', self.path, None))
            found = (at['plural'], at['ns'], at['name']) in api.objects
            if found:
                api.delete(at['plural'], at['ns'], at['name'])
        if found:
            self.answer(200, {'kind': 'Status', 'status': 'Success'})
        else:
            self.fail(404, '%s not found' % at['name'])

    def serve_post(self, api, at, query, body):
        with api.lock:
            if at['plural'] == 'events' and api.has_event(json.loads(body)['metadata']['name']):
                self.fail(409, 'there is an event of that name')
                return
            api.writes.append(('POST', self.path, json.loads(body)))
            if at['sub'] == 'eviction' and not self.evict(api, at, json.loads(body)):
                return
        self.answer(201, json.loads(body))

    def evict(self, api, at, body):
        """False: an answer was given."""
        pod = api.objects.get(('pods', at['ns'], at['name']))
        if not pod:
            self.fail(404, 'pods "%s" not found' % at['name'])
        elif body['deleteOptions']['preconditions']['uid'] != pod['metadata']['uid']:
            self.fail(409, 'the UID in the precondition does not match')
        elif api.budget <= 0:
            self.fail(429, 'Cannot evict pod as it would violate the pod\'s disruption budget.')
        else:
            api.budget -= 1
            api.delete('pods', at['ns'], at['name'])
            return True
        return False


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # an agent connects many times at once; a connection that does not fit waits for a second
    closed = False


class ApiServer:
    def __init__(self, kinds=None, token=None):
        """kinds: the custom resources of group config.nri: {plural: kind}"""
        self.kinds, self.token = dict(kinds or {}), token
        self.lock = threading.RLock()
        self.objects, self.events, self.requests, self.writes, self.faults = {}, [], [], [], []
        self.version, self.oldest, self.streams, self.closing = 100, 0, 0, False
        self.denied, self.read_only, self.groups = set(), set(), set(GROUPS)
        self.budget = 1  # pods that may be evicted
        self.sent = 0  # bytes of answers
        self.server = self.port = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing = True
        self.stop()

    def start(self):
        self.server = Server(('127.0.0.1', self.port or 0), Handler)
        self.server.api = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.streams += 1
        self.server.closed = True
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, folder, **user):
        path = folder / 'kubeconfig'
        cluster = {'name': 'c', 'cluster': {'server': 'http://127.0.0.1:%d/' % self.port}}
        path.write_text(json.dumps({'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'x', 'clusters': [cluster],
                                    'contexts': [{'name': 'x', 'context': {'cluster': 'c', 'user': 'u'}}],
                                    'users': [{'name': 'u', 'user': user}]}))
        return path

    # ---- objects ----

    def find(self, plural, ns, name):
        with self.lock:
            return copy.deepcopy(self.objects.get((plural, ns, name)))

    def has_event(self, name):
        return any(m == 'POST' and path.endswith('/events') and body['metadata']['name'] == name for m, path, body in self.writes)

    def store(self, key, object_, spec=True):
        with self.lock:
            old = self.objects.get(key)
            self.version += 1
            meta = object_.setdefault('metadata', {})
            was = (old or {}).get('metadata', {})
            meta.update(name=key[2], resourceVersion=str(self.version), uid=meta.get('uid') or was.get('uid') or str(uuid.uuid4()),
                        creationTimestamp=was.get('creationTimestamp') or '2026-01-01T00:%02d:%02dZ' % divmod(self.version % 3600, 60),
                        generation=was.get('generation', 0) + (1 if spec and (old or {}).get('spec') != object_.get('spec') or not old else 0))
            if key[1]:
                meta['namespace'] = key[1]
            self.objects[key] = object_
            self.events.append((self.version, 'MODIFIED' if old else 'ADDED', key, copy.deepcopy(object_)))
            return copy.deepcopy(object_)

    def put(self, plural, ns, name, object_):
        with self.lock:
            status = self.objects.get((plural, ns, name), {}).get('status')
            if plural in self.kinds:
                object_ = {'apiVersion': 'config.nri/v1alpha1', 'kind': self.kinds[plural], **object_}
            if status and 'status' not in object_:
                object_ = {**object_, 'status': status}
            return self.store((plural, ns, name), copy.deepcopy(object_))

    def delete(self, plural, ns, name):
        with self.lock:
            gone = self.objects.pop((plural, ns, name))
            self.version += 1
            gone['metadata']['resourceVersion'] = str(self.version)
            self.events.append((self.version, 'DELETED', (plural, ns, name), gone))

    # ---- faults ----

    def take_fault(self, method, path, query):
        for fault in self.faults:
            if fault['left'] and fault['when'](method, path, query):
                fault['left'] -= 1
                return fault['do']
        return None

    def fault(self, do, times=1, when=lambda method, path, query: True):
        """do(handler) instead of an answer, the next so many times that it fits."""
        with self.lock:
            self.faults.append({'do': do, 'left': times, 'when': when})

    def compact(self):
        """Versions up to now are forgotten, and all watches end."""
        with self.lock:
            self.version += 1
            self.oldest = self.version
            self.streams += 1
