# SPDX-License-Identifier: Apache-2.0
"""Claims of CPUs and memory while kubelet, agent, daemon and API server fail, and DRA_CLAIMS claims that come and go."""
import contextlib
import os
import pathlib
import re
import statistics
import threading
import time

import grpc
import pytest

import kubelet
from dra import DRIVER, Kubelet, allocated
from simnode import INSTRUMENTED, ctr, eventually
from test_cluster import NODE, memory_of
from test_dra import CLAIMS, OTHER, POD, SLICE, SLICES, STATIC, TOPOLOGY_AWARE, Claims, cdi, claims, ids, policies  # pylint: disable=unused-import

DRA_CLAIMS = int(os.environ.get('DRA_CLAIMS', 60))
TOGETHER = 4  # claims at a time
MEMORY = 1 << 20  # bytes by which a process may grow


def prepare_aside(c, claim):
    """Prepares in a thread; its errors are lost with the agent."""
    def run():
        with contextlib.suppress(grpc.RpcError):
            c.prepare(claim)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def only(c, claim, cpus=4):
    """The daemon has this claim alone, and its container gets the claim's CPUs."""
    listed = c.node.ctl('claims')
    assert [x['uid'] for x in listed] == [claim[2]] and len(ids(listed[0]['cpus'])) == cpus and len(c.files()) == 1
    c.node.create('web', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=POD)
    assert ids(c.cpus('web', 'c0')) == ids(listed[0]['cpus'])
    c.node.create('plain', ctr('c0', '2', '64Mi'))
    assert not ids(c.cpus('plain', 'c0')) & ids(listed[0]['cpus'])


def test_kubelet_restarts_between_prepare_and_create(claims):
    c = claims()
    claim = c.prepared('four', pods=[POD])
    c.kubelet = Kubelet(c.folder)
    assert c.kubelet.register().name and not c.prepare(claim).error
    only(c, claim)


def test_daemon_is_killed_between_prepare_and_create(claims):
    c = claims()
    claim = c.prepared('four', pods=[POD])
    c.node.kill()
    c.node.start()
    only(c, claim)


def test_agent_is_killed_while_it_reads_the_claim(claims):
    c = claims()
    claim = c.put('four', pods=[POD])
    asked = threading.Event()

    def never(_handler):
        asked.set()
        time.sleep(1)
    c.api.fault(never, when=lambda method, path, query: CLAIMS in path)
    thread = prepare_aside(c, claim)
    assert asked.wait(10)
    c.agent.kill()
    thread.join()
    assert c.node.ctl('claims') == [] and not c.files()
    c.agent.start()
    eventually(lambda: c.answers(claim))
    only(c, claim)


def kill_the_agent_while_the_daemon_allocates(c):
    claim = c.put('four', pods=[POD])
    c.node.signal('STOP')
    thread = prepare_aside(c, claim)
    eventually(lambda: any(CLAIMS in r['path'] for r in c.api.requests))
    time.sleep(0.2)
    c.agent.kill()
    thread.join()
    c.node.signal('CONT')
    eventually(lambda: len(c.node.ctl('claims')) == 1)
    return claim


def test_agent_is_killed_while_the_daemon_allocates(claims):
    """The daemon has the claim, and neither the kubelet nor the CDI folder knows of it."""
    c = claims()
    claim = kill_the_agent_while_the_daemon_allocates(c)
    assert not c.files()
    c.agent.start()
    eventually(lambda: c.answers(claim))
    only(c, claim)


def test_claim_that_only_the_daemon_has_is_released_with_its_object(claims):
    c = claims()
    kill_the_agent_while_the_daemon_allocates(c)
    c.api.delete(CLAIMS, 'default', 'four')
    c.agent.start()
    eventually(lambda: c.node.ctl('claims') == [])


def test_api_server_is_down_during_prepare(claims):
    c = claims()
    claim = c.put('four', pods=[POD])
    c.api.stop()  # connections that are open are closed by the next request
    c.api.fault(lambda handler: setattr(handler, 'close_connection', True), times=100)
    assert c.prepare(claim).error
    assert c.node.ctl('claims') == [] and not c.files()
    c.api.faults.clear()
    c.api.start()
    eventually(lambda: c.answers(claim))
    only(c, claim)


def test_slice_after_an_expired_watch(claims):
    c = claims()
    c.api.compact()
    c.api.delete(SLICES, None, SLICE)
    eventually(lambda: c.api.find(SLICES, None, SLICE))


def test_prepare_tells_what_it_took(claims):
    """From the request of the kubelet to the answer, and the API server's part of it."""
    c = claims()
    for i in range(50):
        assert c.unprepare(c.prepared('c%d' % i, pods=[POD])) == ''
    took = [int(a) - int(b) for a, b in re.findall(r'ready after (\d+) us, of which the API server took (\d+) us', c.agent.read_log())]
    print('microseconds without it: median %d, most %d' % (statistics.median(took), max(took)))
    assert len(took) == 50 and min(took) >= 0


@policies
def test_creation_costs_no_more_than_that_of_a_plain_container(claims, config):
    """The two take turns; microseconds until the reply to CreateContainer."""
    c = claims(config=config)
    claim = c.prepared('four', memory='64Mi', pods=[POD])
    took = {'plain': [], 'claim': []}
    for _ in range(150):
        for kind, more in (('plain', {}), ('claim', {'cdi': [cdi(claim)]})):
            took[kind].append(c.node.create('web', ctr('c0', '2', '64Mi', **more), uid=POD)[0]['took_us'])
            c.node.delete('web')
    plain, mine = (statistics.median(took[kind]) for kind in ('plain', 'claim'))
    print('microseconds: plain %d, of a claim %d' % (plain, mine))
    assert mine <= 3 * plain


def test_conflict_of_the_slice(claims):
    """A conflict is not the last word: the slice is written again."""
    c = claims()
    before = c.devices()
    seen = []
    c.api.fault(lambda handler: (seen.append(1), handler.fail(409, 'the object has been modified')),
                when=lambda method, path, query: method == 'PATCH' and SLICES in path)
    c.node.create('web', ctr('c0', '2', '64Mi'))
    eventually(lambda: c.devices() != before, seconds=40)
    assert len(seen) == 1


def test_problems_of_two_watches_of_one_kind(claims):
    """The watch that can list does not clear the problem of the one that cannot."""
    c = claims(config={**STATIC, 'agent': {'podResourceAPI': True, 'resourceSlices': True}})
    over, listed = threading.Event(), []

    def lists(selector):
        return lambda method, path, query: query.get('fieldSelector') == selector and not query.get('watch')
    c.api.fault(lambda handler: handler.fail(403, 'not the driver'), when=lists('metadata.name=' + SLICE))
    c.api.fault(lambda handler: over.wait(60), times=9, when=lists('metadata.name=' + SLICE))
    c.api.fault(None, when=lambda *request: lists('spec.nodeName=' + NODE)(*request) and listed.append(request))
    c.api.compact()
    eventually(lambda: any('not the driver' in text for text in c.status()['problems']))
    before = len(listed)
    c.api.compact()
    eventually(lambda: len(listed) > before)
    time.sleep(0.5)
    assert any('not the driver' in text for text in c.status()['problems'])
    over.set()


def test_comparison_of_many_claims_delays_nothing(claims):
    """A start compares all claims with the API server, one after the other; other requests do not wait for these."""
    c = claims(speed=1)
    all_claims = [c.prepared('c%d' % i, cpu='1', memory='16Mi', pods=[POD]) for i in range(30)]
    c.agent.kill()
    c.api.delete(SLICES, None, SLICE)
    for claim in all_claims[1:]:
        c.api.delete(CLAIMS, 'default', claim[1])
    over, compared = threading.Event(), []
    c.api.fault(lambda handler: compared.append(handler) or over.wait(60) and handler.fail(404, 'not found'), times=len(all_claims),
                when=lambda method, path, query: CLAIMS in path and not path.endswith(all_claims[0][1]))
    c.agent.start()
    eventually(lambda: compared and c.api.find(SLICES, None, SLICE))
    assert len(compared) == 1
    over.set()
    # one that is released meanwhile is not allocated again; a comparison that fails is repeated after a minute
    eventually(lambda: c.released(all_claims[0]))
    eventually(lambda: c.node.ctl('claims') == [] and not c.files(), 90)


def test_pod_that_joins_a_prepared_claim(claims):
    """The kubelet prepares a claim once for all pods of the node."""
    c = claims()
    claim = c.prepared('four', pods=[POD])
    c.node.create('first', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=POD)
    c.api.put(CLAIMS, 'default', 'four', allocated(NODE, pods=[POD, OTHER]))
    c.node.create('later', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=OTHER)
    assert c.cpus('later', 'c0') == c.cpus('first', 'c0')
    # the other pod ends, and the claim stays with the later one
    c.node.delete('first')
    c.node.kill()
    c.node.start()
    assert ids(c.cpus('later', 'c0')) == ids(c.node.ctl('claims')[0]['cpus'])


def test_runtime_that_reports_no_cdi_devices(claims):
    """Before NRI 0.10: the kubelet names the claim of the container."""
    c = claims(config={**STATIC, 'agent': {'podResourceAPI': True, 'resourceSlices': True}})
    with kubelet.Kubelet() as api:
        os.symlink(api.socket, c.agent.sockets[1])
        claim = c.prepared('four', pods=[POD])
        api.pod('default/web', c0={}, plain={})
        api.claims['default/web', 'c0'] = [('four', DRIVER, NODE, 'cpu-node-0')]
        c.node.create('web', ctr('c0', '1', '64Mi'), ctr('plain', '1', '64Mi'), uid=POD)
        mine = ids(c.node.ctl('claims')[0]['cpus'])
        assert ids(c.cpus('web', 'c0')) == mine and not ids(c.cpus('web', 'plain')) & mine
        # a device of another driver, and none
        api.pod('default/other', c0={})
        api.claims['default/other', 'c0'] = [('four', 'gpu.example.com', NODE, 'cpu-node-0')]
        api.pod('default/web2', c0={})
        c.node.create('other', ctr('c0', '1', '64Mi'))
        c.node.create('web2', ctr('c0', '1', '64Mi'))
        assert not (ids(c.cpus('other', 'c0')) | ids(c.cpus('web2', 'c0'))) & mine
        assert c.unprepare(claim) == ''


def test_joining_pod_does_not_wait_for_an_api_server(claims):
    c = claims()
    claim = c.prepared('four', pods=[POD])
    c.api.fault(lambda handler: time.sleep(5), times=10, when=lambda method, path, query: CLAIMS in path)
    c.node.create('later', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=OTHER)  # the runtime drops a plugin without an answer
    c.node.check()
    assert 'is not reserved for this pod' in str(c.node.ctl('explain', 'later/c0'))


def test_pod_that_names_many_claims_of_other_pods(claims):
    """The API server is asked about each of them once, and about two for a container."""
    c = claims()
    mine = [c.prepared('c%d' % i, cpu='1', memory='16Mi', pods=[POD]) for i in range(3)]
    names = [cdi(claim) for claim in mine for _ in range(10)]
    for n in 2, 3, 3, 3:
        c.node.create('thief', ctr('c0', '1', '64Mi', cdi=names), uid=OTHER)
        c.node.delete('thief')
        assert len([r for r in c.api.requests if CLAIMS in r['path']]) == len(mine) + n


def test_container_without_a_claim_does_not_wait_for_the_answer_about_another(claims):
    c = claims(config={**STATIC, 'log': {'debug': ['request']}})
    claim = c.prepared('four', pods=[POD])
    c.api.fault(lambda handler: time.sleep(5), times=10, when=lambda method, path, query: CLAIMS in path)
    c.node.create('thief', ctr('c0', '1', '64Mi', cdi=[cdi(claim)]), uid=OTHER)
    waits = 'CreateContainer waits'
    assert c.node.read_log().count(waits) == 1
    c.node.create('plain', ctr('c0', '1', '64Mi'))
    assert c.node.read_log().count(waits) == 1


def test_resources_of_the_node_are_mapped_where_the_api_server_knows_the_field(make_node, tmp_path):
    """The field of KEP-5517; one that the API server does not know would make it refuse the slice."""
    machine = {'base': 'server-2s', 'hugepages': {'2Mi': 10}}
    with Claims(make_node, tmp_path, config={**STATIC, 'dra': {'enabled': False}}, machine=machine) as c:
        c.runs('static')
        fields = {'components': {'schemas': {'io.k8s.api.resource.v1.Device': {'properties': {'name': {}, 'nodeAllocatableResources': {}}}}}}
        c.api.fault(lambda handler: handler.answer(200, fields), when=lambda method, path, query: path == '/openapi/v3/apis/resource.k8s.io/v1')
        c.base['dra'] = {'enabled': True}
        c.reconfigure()
        c.ready()

        def mapping(key):
            return {'mapping': {'capacityKey': key, 'capacityMultiplier': '1'}}
        for device in c.devices().values():
            assert device['nodeAllocatableResources'] == {'cpu': mapping('cpu'), 'memory': mapping('memory'), 'hugepages-2Mi': mapping('hugepages2Mi')}
        before = c.devices()
        c.node.create('web', ctr('c0', '2', '64Mi'))
        eventually(lambda: c.devices() != before)
        assert all('nodeAllocatableResources' in d for d in c.devices().values())


def test_query_for_the_field_is_repeated_after_a_failure(make_node, tmp_path):
    """Also if the devices have not changed."""
    with Claims(make_node, tmp_path, config={**STATIC, 'dra': {'enabled': False}}) as c:
        c.runs('static')
        path = '/openapi/v3/apis/resource.k8s.io/v1'
        fields = {'components': {'schemas': {'io.k8s.api.resource.v1.Device': {'properties': {'nodeAllocatableResources': {}}}}}}
        c.api.fault(lambda handler: handler.fail(500, 'in trouble'), when=lambda method, at, query: at == path)
        c.base['dra'] = {'enabled': True}
        c.reconfigure()
        c.ready()
        before = c.api.find(SLICES, None, SLICE)['spec']
        assert not any('nodeAllocatableResources' in d for d in before['devices'])
        c.api.fault(lambda handler: handler.answer(200, fields), when=lambda method, at, query: at == path)
        c.node.restart()
        eventually(lambda: all('nodeAllocatableResources' in d for d in c.devices().values()))
        assert c.api.find(SLICES, None, SLICE)['spec']['pool']['generation'] > before['pool']['generation']
        assert {name: d['capacity'] for name, d in c.devices().items()} == {d['name']: d['capacity'] for d in before['devices']}


def test_slices_under_churn(claims):
    """At most one write in 5 seconds, however often the capacity changes."""
    c = claims(speed=1)
    began = time.monotonic()
    i = kept = 0
    while time.monotonic() - began < 12:
        if time.monotonic() - began >= kept:  # no capacity of an earlier second comes again
            c.node.create('kept%d' % kept, ctr('c0', '4', '64Mi'))
            kept += 1
        c.node.create('p%d' % i, ctr('c0', '2', '64Mi'))
        c.node.delete('p%d' % i)
        c.node.create('q%d' % i, ctr('c0', str(1 + i % 3), '64Mi'))
        time.sleep(0.02)
        c.node.delete('q%d' % i)
        i += 1
    times = [r['at'] for r in c.api.requests if r['method'] == 'PATCH' and SLICES in r['path']]
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert i > len(times) >= 2 and min(gaps) > 4, gaps  # less than 5: a request can be late at the server


def daemon_memory(node):
    status = pathlib.Path('/proc/%d/status' % node.status()['pid']).read_text(encoding='ascii')
    return int(status.partition('VmRSS:')[2].split()[0]) << 10


class Churn:
    """Claims that come and go, TOGETHER at a time, with their containers."""

    def __init__(self, c):
        self.c, self.n = c, 0

    def round(self):
        c = self.c
        mine = []
        for _ in range(TOGETHER):
            self.n += 1
            mine.append(c.put('c%d' % self.n, cpu=str(1 + self.n % 3), memory='16Mi', pods=[POD]))
        reply = c.kubelet.prepare(*mine)
        assert not any(r.error for r in reply.values()), reply
        c.node.create('web', ctr('c0', '1', '16Mi', cdi=[cdi(mine[0])]), ctr('c1', '1', '16Mi', cdi=[cdi(mine[1])]), ctr('plain', '1', '16Mi'), uid=POD)
        sets = {x['uid']: ids(x['cpus']) for x in c.node.ctl('claims')}
        owned = [*sets.values(), ids(c.cpus('web', 'plain'))]
        assert len(sets) == TOGETHER and sum(map(len, owned)) == len(set.union(*owned)), 'a CPU is owned twice'
        assert ids(c.cpus('web', 'c0')) == sets[mine[0][2]] and len(c.files()) == TOGETHER
        return mine

    def end(self, mine):
        c = self.c
        c.node.delete('web')
        reply = c.kubelet.unprepare(*mine)
        assert not any(r.error for r in reply.values()), reply
        for claim in mine:
            c.api.delete(CLAIMS, 'default', claim[1])
        with c.api.lock:  # what the API server remembers is no matter of this test
            c.api.events[:] = [e for e in c.api.events if e[2][0] != CLAIMS]
            c.api.requests.clear()
            c.api.writes.clear()

    def kill_daemon(self, mine):
        self.c.node.kill()
        self.c.node.start()
        eventually(lambda: self.c.answers(mine[0]))

    def kill_agent(self, mine):
        self.c.agent.kill()
        self.c.agent.start()
        eventually(lambda: self.c.answers(mine[0]))


@pytest.mark.parametrize('config', [STATIC, TOPOLOGY_AWARE], ids=lambda c: c['policy'])
def test_claims_that_come_and_go(claims, config):
    """kill -9 of daemon and agent in the first two thirds; memory, store and CDI folder are as before in the last."""
    c = claims(config=config)
    churn, rounds = Churn(c), DRA_CLAIMS // TOGETHER
    store = pathlib.Path(c.node.paths['state'], 'store.log')
    every, quiet, before = max(2, rounds // 40), rounds * 2 // 3, None
    empty, began = store.stat().st_size, time.monotonic()
    for i in range(rounds):
        mine = churn.round()
        if i < quiet and i % every == 0:
            (churn.kill_daemon if i // every % 2 else churn.kill_agent)(mine)
        churn.end(mine)
        if i == quiet + (rounds - quiet) // 4:
            before = memory_of(c.agent), daemon_memory(c.node)
    assert c.node.ctl('claims') == [] and not c.files()
    after = memory_of(c.agent), daemon_memory(c.node)
    assert INSTRUMENTED or (after[0] - before[0] < MEMORY and after[1] - before[1] < MEMORY)
    log = store.stat().st_size
    c.node.restart()  # which writes the store again, as a log that has become long does
    stored = empty, store.stat().st_size
    print('%d claims in %.0f s; bytes of agent and daemon: %s -> %s, of the store: %s -> %s, before its compaction %d' %
          (churn.n, time.monotonic() - began, before, after, *stored, log))
    assert stored[1] <= stored[0]
