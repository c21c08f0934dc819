# SPDX-License-Identifier: Apache-2.0
"""The live map over HTTP: who is answered, what is told, what happens to clients of all kinds, and the page in a real browser."""
import json
import pathlib
import re
import socket
import stat
import urllib.parse

import pytest

import browser
from test_controllers import add_cgroup
from operator_tools import ANSWER_S, ctl, free_port, http_connect, http_raw
from simnode import ctr, eventually

TOPOLOGY_AWARE = {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'cpuset:0'}}}
LARGEST = str(pathlib.Path(__file__).resolve().parents[2] / 'conf/machines/c4096.yaml')
STREAMS_MAX, REQUESTS_MAX, TEXT_MAX = 8, 16, 256 << 10
POD = """apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - {name: app, resources: {requests: {cpu: "2", memory: 64Mi}, limits: {cpu: "2", memory: 64Mi}}}
"""


@pytest.fixture
def mapped(make_node):
    """A node that serves its map, and where."""
    def make(machine='n4c16', config=TOPOLOGY_AWARE, **metrics):
        port = free_port()
        node = make_node({**config, 'metrics': {'listen': '127.0.0.1:%d' % port, 'map': True, **metrics}}, machine=machine)
        return node, node_address(metrics.get('listen')) or '127.0.0.1:%d' % port
    return make


def node_address(listen):
    return listen and listen.removeprefix('unix:')


def request(address, path, method='GET', host='localhost', body=None, **headers):
    lines = ['%s %s HTTP/1.1' % (method, path)] + (['Host: ' + host] if host is not None else [])
    lines += ['%s: %s' % (name.replace('_', '-'), value) for name, value in headers.items()]
    data = body.encode() if isinstance(body, str) else body
    if data is not None:
        lines.append('Content-Length: %d' % len(data))
    return http_raw(address, '\r\n'.join(lines + ['', '']).encode() + (data or b''), method == 'HEAD')


def document(address, path, **how):
    answer = request(address, path, **how)
    assert answer.status == 200, answer
    assert answer.headers['content-type'] == 'application/json'
    return json.loads(answer.body)


class Stream:
    """Server-sent events, read as they come."""

    def __init__(self, address, after=0, **headers):
        self.socket = http_connect(address)
        more = ''.join('%s: %s\r\n' % (name.replace('_', '-'), value) for name, value in headers.items())
        self.socket.sendall(('GET /map/events?after=%d HTTP/1.1\r\nHost: localhost\r\n%s\r\n' % (after, more)).encode())
        self.data = b''
        while b'\r\n\r\n' not in self.data:
            self._more()
        head, self.data = self.data.split(b'\r\n\r\n', 1)
        self.status = int(head.split()[1])
        self.head = head.decode().lower()

    def _more(self):
        data = self.socket.recv(1 << 16)
        assert data, 'the stream has ended'
        self.data += data

    def message(self):
        """The number and the document of the next one."""
        while True:
            match = re.match(rb'([0-9a-f]+)\r\n', self.data)
            size = int(match[1], 16) if match else None
            if match and len(self.data) >= match.end() + size + 2:
                chunk, self.data = self.data[match.end():match.end() + size], self.data[match.end() + size + 2:]
                found = re.fullmatch(rb'id: (\d+)\ndata: (.*)\n\n', chunk)
                return int(found[1]), json.loads(found[2])
            self._more()

    def close(self):
        self.socket.close()


# ---- who is answered ----

@pytest.mark.parametrize('path, kind', [('/map', 'text/html'), ('/map/map.css', 'text/css'), ('/map/map.js', 'text/javascript'),
                                        ('/map/layout.js', 'text/javascript'), ('/map/history.js', 'text/javascript')])
def test_page(mapped, path, kind):
    _, address = mapped()
    answer = request(address, path)
    assert answer.status == 200 and answer.headers['content-type'] == kind + '; charset=utf-8'
    policy = dict(part.strip().split(' ', 1) for part in answer.headers['content-security-policy'].split(';'))
    assert policy['default-src'] == "'none'" and policy['script-src'] == "'self'" and policy['frame-ancestors'] == "'none'"
    assert answer.headers['x-content-type-options'] == 'nosniff'
    text = answer.body.decode()
    assert not re.search(r'(https?:)?//[a-z]', re.sub(r'^\s*//.*|\s// .*', '', text, flags=re.M)), 'something from elsewhere'
    head = request(address, path, method='HEAD')
    assert head.status == 200 and int(head.headers['content-length']) == len(answer.body)


@pytest.mark.parametrize('host, answered', [
    ('localhost', True), ('LOCALHOST:8891', True), ('127.0.0.1:8891', True), ('[::1]:8891', True), ('10.1.2.3', True), ('[::1]', True),
    ('evil.example', False), ('127.0.0.1.evil.example', False), ('localhost.evil.example:80', False), ('', False), (None, False),
    ('127.0.0.1:80x', False), ('[::1', False), ('[::1]x', False), ('127.1', False), ('a' * 300, False)])
def test_host(mapped, host, answered):
    _, address = mapped()
    for path in ('/map', '/map/containers'):
        status = request(address, path, host=host).status
        assert status == 200 if answered else status in (400, 403), path
    assert request(address, '/metrics', host=host or 'x').status == 200  # scrapers go by names


@pytest.mark.parametrize('origin, answered', [('http://localhost', True), ('http://localhost:80', False), ('https://localhost', False),
                                              ('http://evil.example', False), ('null', False)])
def test_origin(mapped, origin, answered):
    _, address = mapped()
    assert request(address, '/map/containers', Origin=origin).status == (200 if answered else 403)
    assert request(address, '/map/try', 'POST', body=POD, Origin=origin).status == (200 if answered else 403)


def test_only_reading(mapped):
    node, address = mapped()
    node.create('a', ctr('a0', '1', '64Mi'))
    before = node.places()
    for method in ('POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'):
        for path in ('/map', '/map/containers', '/map/explain?name=a', '/map/events'):
            assert request(address, path, method, body='').status in (404, 405), (method, path)
    assert request(address, '/map/try').status == 405
    for path in ('/map/', '/map/reload', '/map/../metrics', '/map/map.html', '/map//map.js', '/map/config', '/map/topology/x'):
        assert request(address, path).status == 404, path
    assert node.places() == before


def test_off(mapped):
    node, address = mapped(map=False)
    assert request(address, '/map').status == 404 and b'/map' not in request(address, '/').body


def test_switched_while_followed(mapped):
    node, address = mapped()
    stream = Stream(address)
    stream.message()
    assert b'/map\n' in request(address, '/').body
    node.config({**TOPOLOGY_AWARE, 'metrics': {'listen': address}})
    node.reload()
    assert request(address, '/map').status == 404
    stream.socket.settimeout(ANSWER_S)
    while stream.socket.recv(1 << 16):
        pass


def test_not_for_others(make_node):
    """All addresses: the metrics are served, the map is not, and the configuration says why."""
    port = free_port()
    node = make_node({**TOPOLOGY_AWARE, 'metrics': {'listen': ':%d' % port, 'map': True}})
    assert request('127.0.0.1:%d' % port, '/metrics').status == 200
    assert request('127.0.0.1:%d' % port, '/map').status == 404
    assert re.search(r'metrics\.map: has no effect: metrics\.listen is ":\d+"', node.read_log())


def test_unix_socket(mapped, tmp_path):
    path = tmp_path / 'm.sock'
    _, address = mapped(listen='unix:%s' % path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert document(str(path), '/map/containers') == []


# ---- what is told ----

def test_documents(mapped):
    node, address = mapped()
    node.create('a', ctr('a0', '2', '64Mi'))
    assert document(address, '/map/topology') == json.loads(ctl(node, 'topology', '--json').out)
    (container,) = document(address, '/map/containers')
    (whole,) = json.loads(ctl(node, 'containers', '--json').out)
    assert container == {k: v for k, v in whole.items() if k != 'pid'}
    explained = document(address, '/map/explain?name=' + urllib.parse.quote('default/a/a0'))
    assert explained['cpus'] == whole['cpus'] and explained['trail']
    missing = request(address, '/map/explain?name=nobody')
    assert missing.status == 422 and 'nobody' in json.loads(missing.body)['error']
    assert request(address, '/map/explain').status == 422
    assert request(address, '/map/explain?name=%ff').status == 422


def test_annotations_stay_out(mapped):
    """Not in explanations, not in events, not in what is wrong with a container, when one is faulty."""
    node, address = mapped(config={'policy': 'static', 'static': {'reservedResources': {'cpu': 'cpuset:0'}}})
    secret = 'hunter2'
    node.create('a', ctr('a0', '1', '64Mi'), annotations={'prefer-isolated-cpus.noderesource.dev/pod': secret, 'other': secret})
    assert secret in ctl(node, 'explain', 'a/a0', '--json').out
    stream = Stream(address)
    told = json.dumps([document(address, '/map/containers'), document(address, '/map/explain?name=a/a0'), stream.message()])
    assert 'a0' in told and secret not in told and '"annotations"' not in told and 'cgroup' not in told


def test_events_as_they_come(mapped):
    node, address = mapped()
    node.create('a', ctr('a0', '2', '64Mi'))
    stream = Stream(address)
    assert stream.status == 200 and 'content-type: text/event-stream' in stream.head
    last, first = stream.message()
    assert first['last'] == last and any(e['kind'] == 'created' and e['container'] == 'default/a/a0' for e in first['events'])
    node.create('b', ctr('b0', '1', '64Mi'))
    seen = []
    while not any(e['container'] == 'default/b/b0' for e in seen):
        number, then = stream.message()
        seen += then['events']
    assert all(e['seq'] > last for e in seen)
    again = Stream(address, Last_Event_ID=last)
    assert [e['seq'] for e in again.message()[1]['events']] == list(range(last + 1, number + 1))
    for wrong in ('x', '-1', '99999999999999999999'):
        assert request(address, '/map/events?after=' + wrong).status == 400


def test_try(mapped):
    node, address = mapped()
    node.create('a', ctr('a0', '1', '64Mi'))
    before = document(address, '/map/containers')
    said = document(address, '/map/try', method='POST', body=POD)
    (move,) = [m for m in said['moves'] if m['container'] == 'default/web/app']
    assert said['outcome'] == 'accepted' and document(address, '/map/containers') == before
    node.create('web', ctr('app', '2', '64Mi'))
    (app,) = [c for c in document(address, '/map/containers') if c['pod'] == 'web']
    assert app['cpus'] == move['to_cpus']
    refused = request(address, '/map/try', 'POST', body='kind: [')
    assert refused.status == 422 and 'error' in json.loads(refused.body)
    assert request(address, '/map/try', 'POST', body=b'\xff\xfe').status == 400
    assert request(address, '/map/try', 'POST', body=b'a\0b').status == 400
    assert request(address, '/map/try', 'POST', body='#' * TEXT_MAX).status == 422  # no manifest, but not too long


def test_too_long_a_manifest(mapped):
    _, address = mapped()
    head = 'POST /map/try HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % (TEXT_MAX + 1)
    assert http_raw(address, head.encode()).status == 413


# ---- clients of all kinds ----

def test_streams_are_counted(mapped):
    node, address = mapped()
    streams = [Stream(address) for _ in range(STREAMS_MAX)]
    assert all(s.status == 200 for s in streams)
    assert request(address, '/map/events').status == 503
    assert request(address, '/map').status == 200 and request(address, '/metrics').status == 200
    for s in streams:
        s.close()
    node.create('a', ctr('a0', '1', '64Mi'))  # who is gone is noticed with the next event at the latest
    eventually(lambda: Stream(address).status == 200)


def test_one_that_reads_nothing(mapped):
    """It neither holds up the runtime's requests nor the others who follow."""
    node, address = mapped()
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    stalled.connect(('127.0.0.1', int(address.rpartition(':')[2])))
    stalled.sendall(b'GET /map/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    stream = Stream(address)
    for i in range(60):
        node.create('p%d' % i, ctr('c', '100m/1', '1Mi'))
        node.delete('p%d' % i)
    seen = 0
    while seen < 60:
        seen += sum(e['kind'] == 'created' for e in stream.message()[1]['events'])
    stalled.close()
    stream.close()


def test_one_that_goes_while_it_is_tried(mapped):
    node, address = mapped()
    head = 'POST /map/try HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(POD)
    for _ in range(5):
        with http_connect(address) as s:
            s.sendall((head + POD).encode())
    eventually(lambda: request(address, '/map/try', 'POST', body=POD).status == 200)
    node.create('a', ctr('a0', '1', '64Mi'))


# ---- the page, in a browser ----

@pytest.fixture
def page():
    if not browser.PROGRAM:
        pytest.skip('no Chromium here: the page is not tested (apt-get install chromium)')
    with browser.Browser() as b:
        yield b
        assert b.complaints == []


def opened(page, address):
    page.open('http://%s/map' % address)
    page.until("document.body && document.body.dataset.ready && document.querySelector('#live').dataset.state === 'live'")


def classes(cpu):
    return "document.querySelector('[data-cpu=\"%d\"]').className" % cpu


def test_page_shows_what_happens(mapped, page):
    node, address = mapped()
    node.create('a', ctr('a0', '2', '64Mi'))
    opened(page, address)
    mine = sorted(node.cpus('a/a0'))
    assert page.evaluate("document.querySelectorAll('#machine .cpu').length") == 16
    assert page.evaluate("document.querySelectorAll('.package').length") == 2 and page.evaluate("document.querySelectorAll('.node').length") == 4
    assert 'own' in page.evaluate(classes(mine[0]))
    node.create('b', ctr('b0', '1', '64Mi'))
    (other,) = node.cpus('b/b0')
    page.until(classes(other) + ".includes('own')")
    node.delete('b')
    page.until('!' + classes(other) + ".includes('own')")


def test_page_fits_the_window(mapped, page):
    """All CPUs of the largest machine, without scrolling, and all of them apart."""
    node, address = mapped(machine=LARGEST)
    node.create('a', ctr('a0', '8', '64Mi'))
    page.call('Emulation.setDeviceMetricsOverride', width=1440, height=900, deviceScaleFactor=1, mobile=False)
    opened(page, address)
    assert page.evaluate("document.querySelectorAll('#machine .cpu').length") == 4096
    assert page.evaluate("((m) => m.scrollHeight <= m.clientHeight && m.scrollWidth <= m.clientWidth)(document.querySelector('#machine'))")
    assert page.evaluate("document.querySelector('[data-cpu=\"0\"]').offsetWidth") >= 6 and 'own' in page.evaluate(classes(min(node.cpus('a/a0'))))
    node.abandon()


def test_page_goes_back_in_time(mapped, page):
    node, address = mapped()
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('b', ctr('b0', '1', '64Mi'))
    mine, (other,) = sorted(node.cpus('a/a0')), node.cpus('b/b0')
    node.delete('a')
    opened(page, address)
    page.until("document.querySelector('#slider').max > 0")
    assert 'own' not in page.evaluate(classes(mine[0])) and 'own' in page.evaluate(classes(other))
    page.evaluate("document.querySelector('#back').click()")  # before a was released
    page.until(classes(mine[0]) + ".includes('own')")
    assert page.evaluate("document.querySelector('#live').dataset.state") == 'past'
    page.evaluate("document.querySelector('#back').click()")  # before b was created
    page.until('!' + classes(other) + ".includes('own')")
    page.evaluate("document.querySelector('#now').click()")
    page.until('!' + classes(mine[0]) + ".includes('own')")


def test_page_by_keyboard(mapped, page):
    node, address = mapped()
    node.create('a', ctr('a0', '2', '64Mi'))
    node.create('web', ctr('app', '1', '64Mi'))
    opened(page, address)
    page.key('/')
    for letter in 'web':
        page.key(letter)
    page.until("document.querySelectorAll('#containers button').length === 1")
    page.evaluate("document.querySelector('#containers button').click()")
    page.until("document.querySelector('#details h2')?.textContent === 'default/web/app'")
    (cpu,) = node.cpus('web/app')
    assert 'chosen' in page.evaluate(classes(cpu))
    page.evaluate("document.querySelector('[data-cpu=\"0\"]').focus()")
    page.key('ArrowRight')
    assert page.evaluate('document.activeElement.dataset.cpu') == '1'
    page.key('Escape')
    page.until("!document.querySelector('.chosen')")


def test_page_tries(mapped, page):
    node, address = mapped()
    opened(page, address)
    page.evaluate("document.querySelector('#tab-try').click(); document.querySelector('#try form').requestSubmit()")
    page.until("document.querySelectorAll('.cpu.tried').length > 2")  # two, and the legend's
    assert 'default/trial/app' in page.evaluate("document.querySelector('#outcome').textContent")
    assert node.places() == {}


def test_page_takes_names_for_text(mapped, page):
    """What somebody called a pod is never markup."""
    _, address = mapped()
    opened(page, address)
    page.evaluate("document.querySelector('#tab-try').click(); document.querySelector('#manifest').value = 'kind: <img src=x id=planted>';"
                  "document.querySelector('#try form').requestSubmit()")
    page.until("document.querySelector('#outcome .bad') !== null")
    assert page.evaluate("document.querySelector('#planted') === null")


def test_page_tells_exclusive_containers_apart(mapped, page):
    """By colour on the map and in the list; groups of the list, what the search finds, and a link to a container."""
    node, address = mapped()
    for pod in ('a', 'b'):
        node.create(pod, ctr('c0', '2', '64Mi'))
    opened(page, address)
    colour = "[...document.querySelector('[data-cpu=\"%d\"]').classList].find((c) => /^o\\d$/.test(c))"
    ours, others = (sorted(node.cpus(pod + '/c0'))[0] for pod in ('a', 'b'))
    assert page.evaluate(colour % ours) != page.evaluate(colour % others)
    page.evaluate("document.querySelector('#group').value = 'pod'; document.querySelector('#group').dispatchEvent(new Event('change'))")
    assert page.evaluate("[...document.querySelectorAll('#containers .heading')].map((h) => h.textContent).join()") == 'pod default/a · 1,pod default/b · 1'
    page.evaluate("document.querySelector('#search').value = 'default/b'; document.querySelector('#search').dispatchEvent(new Event('input'))")
    assert 'found' in page.evaluate("document.querySelector('[data-cpu=\"%d\"]').className" % others)
    assert 'found' not in page.evaluate("document.querySelector('[data-cpu=\"%d\"]').className" % ours)
    page.evaluate("document.querySelector('#containers button').click()")
    assert page.evaluate('location.hash') == '#container=default%2Fb%2Fc0'
    page.open('about:blank')
    page.open('http://%s/map#container=default/a/c0' % address)
    page.until("document.querySelector('#details h2')?.textContent === 'default/a/c0'")


def test_page_shows_a_planned_reload(mapped, page):
    """Before and after, with the CPUs that containers would move to; no key and no value of the files is passed on."""
    node, address = mapped(config={'policy': 'none'})
    node.create('a', ctr('a0', '2', '64Mi'))
    opened(page, address)
    config = {**TOPOLOGY_AWARE, 'metrics': {'listen': address, 'map': True}}
    node.run('write-config', config)
    page.evaluate("document.querySelector('#tab-try').click(); document.querySelector('#plan').click()")
    page.until("document.querySelectorAll('#outcome [data-after]').length === 2")
    assert 'would move 1 of 1' in page.evaluate("document.querySelector('#outcome').textContent")
    own = "document.querySelectorAll('#machine .cpu.own.tried').length"
    assert page.evaluate(own) == 2
    page.evaluate("document.querySelector('#outcome [data-after=\"false\"]').click()")
    page.until(own + ' === 0')
    assert node.cpus('a/a0') == set(range(16)), 'nothing has moved'
    answer = json.loads(request(address, '/map/plan', method='POST', body='').body)
    assert answer['changes'] == [] and answer['moves'][0]['exclusive'] == answer['moves'][0]['to_cpus']
    node.run('write-config', {'policy': 'topology-aware', 'topology-aware': {'reservedResources': {'cpu': 'secret'}}})
    assert b'secret' not in request(address, '/map/plan', method='POST', body='').body
    assert request(address, '/map/plan').status == 405


def test_page_shows_usage(mapped, page):
    """Of CPUs, nodes and containers, while it is collected."""
    node, address = mapped(collectInterval='1s')
    node.create('a', ctr('a0', '2', '64Mi'))
    counts = iter(range(1, 1000))

    def counted():
        add_cgroup(node, 'a/a0', {'cpu.stat': 'usage_usec %d\n' % (100000 * next(counts)), 'memory.current': '4096\n'})
        return next(iter(document(address, '/map/containers')))['usage']

    eventually(lambda: (counted() or {}).get('cpu_milli'))
    opened(page, address)
    cpu = min(node.cpus('a/a0'))
    assert ' used' in page.evaluate(classes(cpu)) and ' used' not in page.evaluate(classes(0))
    assert 'used' in page.evaluate("document.querySelector('.label[data-node]').textContent")
    assert 'uses ' in page.evaluate("document.querySelector('#containers').textContent")
