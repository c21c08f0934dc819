# SPDX-License-Identifier: Apache-2.0
"""A calculator of somebody else: built against the installed tree alone, asked after those of the host, failing alone."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from simnode import LEAST, Node, eventually, put_machine  # noqa: E402
from test_abi import BUILD, author_env, installed, is_instrumented, must  # noqa: E402,F401

CPU, OWN, BROKEN = 'kubernetes.io/batch-cpu', 'example.com/night-cpu', 'example.com/broken'
HANGS = 'example.com/hangs'
LONGER, SAID = 'example.com/longer', 'example.com/said'
SOURCE = r'''
#include <nri-rp/lib/calc.h>

/* What is lent at night: what the calculators before have given of batch-cpu is replaced. */
static const char *const names[] = {"example.com/night-cpu", NULL};
static const char *const no_names[] = {NULL};

static int32_t night_calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	static int64_t moody;
	calc_give(out, names[0], 7 + MOOD, NULL, 0, "seven at night");
	calc_give(out, "kubernetes.io/batch-cpu", 4321, NULL, 0, "less at night");
	/* as a later release may have it: of the second one this host knows not what it says */
	struct longer {
		struct rp_nr_item item;
		uint64_t later;
	} longer = {{.size = sizeof longer, .name = names[0], .quantity = 8000}, 0};
	if (h->noderes->annotation(h->ctx, "example.com/longer")) {
		longer.later = h->noderes->annotation(h->ctx, "example.com/said") != NULL;
		out->item(out->ctx, &longer.item);
	}
	while (h->noderes->annotation(h->ctx, "example.com/hangs"))
		;
	if (h->noderes->annotation(h->ctx, "example.com/broken"))
		return modhost_fail(h, -RP_EINVAL, "the night is broken");
	return 0;
}

static const struct rp_calculator calculator = {CALC_LIFE, .resources = names, .annotations = no_names, .calculate = night_calculate};
static const struct calc_ops ops = {.plan = NULL};
CALC_MODULE("night", "1.0", ops, calculator, .summary = "What is lent at night", .licence = "none");
'''
MAKEFILE = '''MODULE := night
SOURCES := night.c
PKG_CONFIG ?= pkg-config
include $(shell $(PKG_CONFIG) --variable=makefile nri-rp-module)
'''


@pytest.fixture(scope='module')
def night(installed, tmp_path_factory):  # noqa: F811
    if is_instrumented():
        pytest.skip('libnri-rp-module.a is instrumented')
    folder = tmp_path_factory.mktemp('night')
    (folder / 'night.c').write_text(SOURCE)
    (folder / 'Makefile').write_text(MAKEFILE)
    env = author_env(installed)
    env.pop('MAKEFLAGS', None)
    must(['make', '-C', str(folder), 'CFLAGS=-O2 -Werror -DMOOD=0*moody', 'all'], env=env)
    os.chmod(folder / 'night.so', 0o644)
    return folder


@pytest.fixture(scope='module')
def moody(installed, night, tmp_path_factory):  # noqa: F811
    """The same with a mind of its own: each time it gives something else."""
    folder = tmp_path_factory.mktemp('moody')
    for name in ('night.c', 'Makefile'):
        (folder / name).write_bytes((night / name).read_bytes())
    env = author_env(installed)
    env.pop('MAKEFLAGS', None)
    must(['make', '-C', str(folder), 'CFLAGS=-O2 -Werror -DMOOD=moody++', 'all'], env=env)
    os.chmod(folder / 'night.so', 0o644)
    return folder


# A header of before the last members came, and one of a release to come: what a struct ends with.
OTHER_HEADERS = {
    'older': [('struct rp_calculator', 'meta_changed', ''), ('struct rp_host_noderes', 'aggregated', ''), ('struct rp_nr_measured', 'prod_reclaimable', '')],
    'newer': [('struct rp_calculator', None, 'int32_t (*later)(struct rp_instance *inst);'), ('struct rp_host_noderes', None, 'int32_t (*later)(void *ctx);'),
              ('struct rp_nr_measured', None, 'uint64_t later[8];'), ('struct rp_nr_item', None, 'uint64_t later[8];'), ('struct rp_nr_pod', None, 'uint64_t later[8];')]}


def with_other_headers(installed, which, to):  # noqa: F811
    shutil.copytree(installed, to)
    header = to / 'usr/include/nri-rp/calculator.h'
    text = header.read_text()
    for struct, last, more in OTHER_HEADERS[which]:
        begin = text.index(struct + ' {')
        end = text.index('\n};', begin)
        body = text[begin:end]
        if last:
            body = body[:body.rindex('\n', 0, body.index(last))]
        text = text[:begin] + body + '\n\t' + more + text[end:]
    header.write_text(text)
    return to


@pytest.mark.parametrize('which', OTHER_HEADERS)
def test_headers_of_another_minor(which, installed, tmp_path):  # noqa: F811
    """The calculator to copy, of somebody who has built it before, or against what is yet to come: it runs as any other."""
    if is_instrumented():
        pytest.skip('libnri-rp-module.a is instrumented')
    folder = tmp_path / 'mine'
    shutil.copytree(installed / 'usr/share/nri-rp/template-calculator', folder)
    env = author_env(with_other_headers(installed, which, tmp_path / 'tree'))
    env.pop('MAKEFLAGS', None)
    must(['make', '-C', str(folder), 'CFLAGS=-O2 -Werror', 'all'], env=env)
    built = folder / 'template-calculator.so'
    os.chmod(built, 0o644)
    shutil.copy(os.path.join(BUILD, 'modules/none.so'), folder)
    done = subprocess.run([os.path.join(BUILD, 'bin/nri-rp-modcheck'), '--cases', '^(abi|calculator)/', built], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    with Node(None, start=False, module_dirs=[folder]) as node:
        node.run('write-config', {**config(), 'calculators': ['template-calculator']})
        put_machine(node)
        node.start()
        eventually(lambda: values(node) == {'example.com/spare-memory': 3 << 30})


def check(folder):
    done = subprocess.run([os.path.join(BUILD, 'bin/nri-rp-modcheck'), '--json', '--cases', '^(abi|calculator)/', folder / 'night.so'], capture_output=True, text=True)
    return {c['name']: c for c in json.loads(done.stdout)['cases']}


def test_the_kit_tells_a_sound_one_from_a_moody_one(night, moody):
    found = check(night)
    assert [n for n, c in found.items() if c['result'] == 'failed'] == []
    assert {found['abi/%s-structs' % how]['result'] for how in ('longer', 'shorter')} == {'passed'}
    found = check(moody)
    assert all('calculate() with equal inputs returns something else' in c['reason'] for n, c in found.items() if n.startswith('calculator/same'))


def config(annotations=None, **more):
    strategy = {'enable': True, 'metricReportIntervalSeconds': 1, 'cpuReclaimThresholdPercent': 100}
    return {'policy': 'none', 'calculators': ['batch', 'night'], 'nodeResources': {'least': LEAST, 'strategy': strategy, 'node': {'annotations': annotations or {}}, **more}}


def values(node):
    return {r['name']: r.get('value') for r in node.ctl('node').get('resources', [])}


def test_asked_last_and_failing_alone(night):
    with Node(None, start=False, module_dirs=[os.path.join(BUILD, 'modules'), night]) as node:
        node.run('write-config', config())
        put_machine(node)
        node.start()
        eventually(lambda: values(node).get(CPU) == 4321 and values(node)[OWN] == 7)
        assert [c['name'] for c in node.ctl('node')['calculators']] == ['batch', 'night']
        def errors():
            return {c['name']: c['error'] for c in node.ctl('node')['calculators']}

        node.config(config({BROKEN: ''}))
        node.reload()
        eventually(lambda: 'the night is broken' in errors()['night'])
        assert values(node)[CPU] == 4321 and values(node)[OWN] == 7, 'what it gave last stands'
        node.config(config({BROKEN: ''}, keepOnError=False))
        node.reload()
        eventually(lambda: values(node).get(CPU) == 16000)
        assert OWN not in values(node), 'none of its items are used'
        assert errors()['batch'] == '' and 'the night is broken' in errors()['night']
        node.config(config())
        node.reload()
        eventually(lambda: values(node).get(OWN) == 7)
        assert not any(errors().values())
        # a struct that is longer than this host knows, with nothing said in the rest, and with something
        node.config(config({LONGER: ''}))
        node.reload()
        eventually(lambda: values(node).get(OWN) == 8)
        node.config(config({LONGER: '', SAID: ''}))
        node.reload()
        eventually(lambda: 'not supported' in errors()['night'])


def test_hanging(night):
    """The daemon ends in the call, with its name, and after the third time begins without the module; what others give is there."""
    with Node(None, start=False, module_dirs=[os.path.join(BUILD, 'modules'), night]) as node:
        node.run('write-config', {**config({HANGS: ''}), 'calculators': {'batch': 'required', 'night': 'optional'}})
        put_machine(node)
        for _ in range(3):
            node.start()
            assert node.exited()['exit'] == 70
        node.start()
        eventually(lambda: values(node).get(CPU) == 16000 and OWN not in values(node))
        doc = {c['name']: c for c in node.ctl('node')['calculators']}
        assert doc['batch']['running'] and not doc['night']['running'] and 'quarantined' in doc['night']['error']
        assert 'crashed inside' in doc['night']['error']
