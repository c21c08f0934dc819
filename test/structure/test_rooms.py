# SPDX-License-Identifier: Apache-2.0
"""The rooms of the pipeline have an order: a room calls the rooms below it, and upwards only the functions named here."""
import re

import test_headers as headers

PIPELINE = 'core/nri-rpd/pipeline/'
# From bottom to top. What the rooms note for people (events, conditions) is the lowest, as every room has something to note.
ORDER = ['observe', 'state', 'verify', 'controllers', 'wait', 'request', 'node', 'reload', 'try']
# Calls upwards, each with the room that offers the function. A new one needs a reason here.
UPWARD = {
    # What status shows of other rooms, and when an event is saved.
    'observe': {'controller_runs', 'decide_touched', 'updates_waiting', 'persist_later'},
    # The store takes what the open decision touched; a start gives plugins and the policy their saved state.
    'state': {'decide_touched', 'plugins_keep', 'plugins_restore', 'config_keep_policy'},
    # A value that differs in the kernel is queued as an update.
    'verify': {'updates_add', 'updates_outstanding', 'controllers_take'},
    'controllers': {'open_instance'},
    # A deferred request goes on; an answer that changes a pod's grants or devices is a decision of its own.
    'wait': {'confine_unknown', 'decide', 'decide_event', 'decide_invariants', 'decide_settle', 'request_adopt_pod', 'request_allowed_ms',
             'request_name'},
    # The restored decisions of another policy; the active configuration.
    'request': {'apply_other_policy', 'pipeline_conf'},
    'node': {'attempt_start', 'pushed_source'},
    'reload': {'try_pods'},
}


def room_of(name):
    parts = name[len(PIPELINE):].split('/')
    return parts[0] if len(parts) > 1 else ''


def calls(code):
    """Yields (file, its room, function, the room that defines it) for each call from one room into another."""
    defined = headers.definitions(code)
    for name, text in code.items():
        if not name.startswith(PIPELINE) or not name.endswith('.c') or not room_of(name):
            continue
        for function in sorted(set(re.findall(r'\b\w+(?=\()', text))):
            for source in defined.get(function, []):
                if source.startswith(PIPELINE) and room_of(source) and room_of(source) != room_of(name):
                    yield name, room_of(name), function, room_of(source)


def violations(code):
    return ['%s calls %s() of %s, a room above it' % (name, function, target) for name, room, function, target in calls(code)
            if ORDER.index(target) > ORDER.index(room) and function not in UPWARD.get(room, ())]


def test_every_room_has_its_place():
    rooms = {room_of(name) for name in headers.core_code(headers.TOP) if name.startswith(PIPELINE)} - {''}
    assert rooms == set(ORDER)


def test_rooms_call_downwards():
    assert violations(headers.core_code(headers.TOP)) == []


def test_named_exceptions_are_used():
    used = {(room, function) for _, room, function, _ in calls(headers.core_code(headers.TOP))}
    assert [(room, function) for room in UPWARD for function in sorted(UPWARD[room]) if (room, function) not in used] == []


def test_the_check_can_fail():
    code = {PIPELINE + 'state/a.c': 'void a(void)\n{\n\ttry_it();\n}\n', PIPELINE + 'try/b.c': 'void try_it(void)\n{\n}\n'}
    assert len(violations(code)) == 1


def test_static_functions_carry_the_noun_of_their_file():
    """No bare one-word name, but for callbacks that are named after their slot."""
    bare = []
    modules = {p.relative_to(headers.TOP).as_posix(): headers.code_of(p) for p in (headers.TOP / 'modules').rglob('*.c')}
    for name, text in {**headers.core_code(headers.TOP), **modules}.items():
        if name.endswith('.c'):
            for word in re.findall(r'^static (?:inline )?[A-Za-z_][\w \*\n]*?[ \*]([a-z0-9]+)\((?:[^;{}]|\n)*?\)\n\{', text, re.M):
                if not re.search(r'\.%s\s*=\s*%s\b' % (word, word), text):
                    bare.append('%s: %s()' % (name, word))
    assert bare == []
