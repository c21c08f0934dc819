# SPDX-License-Identifier: Apache-2.0
"""Two runtimes over real sockets: runtime.socket's own and another one behind runtime.fallback, with the same containers."""
import socket
import threading

import pytest

from operator_tools import ctl_json, http_get
from simnode import BUILD, STATIC, TEST_MODULES, ctr, eventually

BIG = ctr('own', '2', '200Mi')


@pytest.fixture
def standin(make_node):
    """The runtime's side of NRI behind the fallback, without a daemon of its own."""
    return make_node(STATIC, start=False)


@pytest.fixture
def configured(make_node, standin, tmp_path):
    def make(after='100ms', start=True):
        served = {'metrics': {'listen': 'unix:%s' % (tmp_path / 'metrics')}}
        node = make_node({**STATIC, **served, 'runtime': {'fallback': standin.paths['socket'], 'fallbackAfter': after}}, start=start)
        node.metrics = served['metrics']['listen'][5:]
        return node
    return make


def runtime(node):
    return node.control('Status')['runtime']


def on_fallback(node, expected=True):
    eventually(lambda: (runtime(node)['synchronized'], runtime(node)['on_fallback']) == (True, expected))
    assert 'nri_rp_runtime_fallback %d\n' % expected in http_get(node.metrics).body.decode()


def test_there_and_back_and_nobody_moves(configured, standin):
    node = configured()
    on_fallback(node, False)
    node.create('f', ctr('first', '2', '200Mi'))
    node.create('g', BIG)
    node.delete('f')
    assert node.cpus('g/own') == {4, 5}, 'not where a newcomer is put'
    standin.existing('f', ctr('first', '2', '200Mi'))  # identifiers are made in the order of creation
    standin.existing('g', ctr('own', '2', '200Mi', cpus='4-5'))
    standin.delete('f')
    standin.runtime_start()
    node.runtime_stop()
    on_fallback(node)
    assert standin.containers()['g/own']['id'] == node.containers()['g/own']['id']
    assert standin.cpus('g/own') == {4, 5} and not standin.updates()
    assert runtime(node)['fallback_reason']
    found = [f for f in ctl_json(node, 'doctor') if 'fallback' in f['text']]
    assert [f['verdict'] for f in found] == ['warning']
    standin.create('h', ctr('new', '2', '200Mi'))
    placed = standin.cpus('h/new')
    assert len(placed) == 2 and not placed & {4, 5}, 'decided by the daemon'
    node.existing('h', ctr('new', '2', '200Mi', cpus=','.join(map(str, sorted(placed)))))
    node.runtime_start()
    on_fallback(node, False)
    assert (node.cpus('g/own'), node.cpus('h/new')) == ({4, 5}, placed)


def test_a_policy_is_told_of_another_runtime(make_node, standin):
    """Once for each change of what synchronises, and not when the same one comes back."""
    node = make_node({'policy': 'puppet'}, module_dirs=[TEST_MODULES, BUILD / 'modules'])
    node.log('the runtime is containerd v2.3.0, flags 443')
    node.runtime_restart()
    eventually(lambda: runtime(node)['connects'] == 2 and runtime(node)['synchronized'])
    assert node.read_log().count('the runtime is') == 1


def test_at_the_start_nothing_is_waited_for(configured, standin):
    standin.runtime_start()
    node = configured(after='1h', start=False)
    node.start(wait=False)
    node.log('synchronized with')
    on_fallback(node)
    standin.create('g', BIG)
    assert standin.cpus('g/own') == {2, 3}


def test_a_runtime_that_was_there_is_waited_for(configured, standin):
    standin.runtime_start()
    node = configured(after='1h')
    node.runtime_stop()
    eventually(lambda: not runtime(node)['connected'])
    node.runtime_start()
    on_fallback(node, False)
    assert 'connecting to the fallback' not in node.read_log()


def test_the_fallback_is_taken_out_of_the_configuration(configured, standin):
    standin.runtime_start()
    node = configured(after='1h', start=False)
    node.start(wait=False)
    node.log('synchronized with')
    on_fallback(node)
    node.config(STATIC)
    eventually(lambda: (runtime(node)['connected'], runtime(node)['on_fallback']) == (False, False))


def test_a_first_socket_that_takes_nobody_in(configured, standin, tmp_path):
    """It takes connections and closes them: the fallback stays, and looks for it become rare."""
    standin.runtime_start()
    node = configured(start=False)
    taken = []
    with socket.socket(socket.AF_UNIX) as first:
        first.bind(node.paths['socket'])
        first.listen()

        def turn_away():
            while True:
                try:
                    taken.append(first.accept()[0])
                except OSError:
                    return
                taken[-1].close()
        thread = threading.Thread(target=turn_away, daemon=True)
        thread.start()
        node.start(wait=False)
        node.log('synchronized with')
        eventually(lambda: len(taken) > 3)
        first.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    on_fallback(node)
