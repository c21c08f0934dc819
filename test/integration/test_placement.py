# SPDX-License-Identifier: Apache-2.0
"""Where topology-aware and balloons put containers of a real containerd, read from the kernel.

What is wanted is worked out by hand for machines of two packages with two memory nodes each and four CPUs a node, and follows their numbering of
nodes, cores and CPUs. On other machines only what holds everywhere is looked at.
"""
import glob
import pathlib
import re
import subprocess

import pytest

from containerd import cpus, wait_for
from test_containerd import ONLINE, needs_two_cpus, pods, runtime, unstarted  # noqa: F401, fixtures

CPU = '/sys/devices/system/cpu/'
RESERVED = 'reservedResources: {cpu: "cpuset:%d"}' % ONLINE[0]
TYPE = 'balloon.balloons.resource-policy.nri.io'
NODES_MANY = 64


def number_of(path, name):
    return int(pathlib.Path(CPU, path, name).read_text())


def machine():
    """{node: its cores in order, each a sorted list of CPUs}, or why this is not the machine wanted."""
    nodes = {int(re.search(r'\d+$', f).group()): cpus(pathlib.Path(f, 'cpulist').read_text())
             for f in glob.glob('/sys/devices/system/node/node[0-9]*')}
    if [len(of) for of in nodes.values()] != [4] * 4 or set().union(*nodes.values()) != set(ONLINE):
        return 'needs four memory nodes of four CPUs'
    if pathlib.Path(CPU, 'isolated').read_text().strip():
        return 'needs a machine without isolated CPUs'
    of = {n: {number_of('cpu%d' % c, 'topology/physical_package_id') for c in nodes[n]} for n in nodes}
    if [of[n] for n in sorted(nodes)] != [{0}, {0}, {1}, {1}]:
        return 'needs two packages of two memory nodes'
    cores = {n: sorted({tuple(sorted(cpus(pathlib.Path(CPU, 'cpu%d/topology/thread_siblings_list' % c).read_text()))) for c in nodes[n]})
             for n in sorted(nodes)}
    return cores if {len(core) for n in cores for core in cores[n]} == {2} else 'needs two threads a core'


MACHINE = machine()
needs_four_nodes = pytest.mark.skipif(isinstance(MACHINE, str), reason=str(MACHINE))


class Node:
    """A memory node: `n`, its CPUs `all`, its cores."""
    def __init__(self, n):
        self.n, self.cores = n, [set(core) for core in MACHINE[n]]
        self.all = set().union(*self.cores)


@pytest.fixture
def nodes():
    return [Node(n) for n in sorted(MACHINE)]


@pytest.fixture
def start(unstarted):
    def go(policy, section, more=''):
        unstarted.configure(policy, section, more)
        return unstarted.start()
    return go


def has(container, own, mems):
    """Whether the kernel confines it to these, by whomever it is asked."""
    v2 = not (container.cgroup() / 'cpuset.effective_cpus').exists()
    return [(cpus(container.allowed()), cpus(container.allowed('Mems'))) == (own, mems),
            cpus(container.cgroup_file('cpuset.cpus')) == own, cpus(container.cgroup_file('cpuset.mems')) == mems,
            cpus(container.cgroup_file('cpuset.cpus.effective' if v2 else 'cpuset.effective_cpus')) == own,
            cpus(container.cgroup_file('cpuset.mems.effective' if v2 else 'cpuset.effective_mems')) == mems]


def assert_has(container, own, mems):
    seen = container.allowed(), container.allowed('Mems')
    assert has(container, own, mems) == [True] * 5, '%s instead of CPUs %s, nodes %s' % (seen, sorted(own), sorted(mems))


def wait_has(container, own, mems):
    wait_for('CPUs %s, nodes %s' % (sorted(own), sorted(mems)), lambda: all(has(container, own, mems)))


def inside(container):
    """The CPUs and the nodes that a process of the container reads of itself."""
    status = container.exec('cat', '/proc/self/status')
    return tuple(cpus(re.search(r'^%s_allowed_list:\s*(\S*)' % what, status, re.M).group(1)) for what in ('Cpus', 'Mems'))


# ---- huge pages --------------------------------------------------------------------------------------------------------

HUGE = '/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages'
N_HUGE = 8
BOUND = {'katalyst.kubewharf.io/qos_level': 'dedicated_cores', 'katalyst.kubewharf.io/memory_enhancement': '{"numa_binding":"true"}'}
HUGE_C = """
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	char *p = mmap(0, %d, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	memset(p, 1, %d);
	return pause();
}
""" % (N_HUGE << 21, N_HUGE << 21)


@needs_four_nodes
@pytest.mark.parametrize('policy', ['topology-aware', 'static', 'qos'])
def test_huge_pages_lie_on_the_node_of_their_container(start, pods, nodes, tmp_path, policy):
    """Only one node has any, which is not the one with the most CPUs left."""
    here, program = nodes[3], tmp_path / 'huge'
    subprocess.run(['cc', '-static', '-x', 'c', '-', '-o', str(program)], input=HUGE_C, text=True, check=True)
    files = {n.n: pathlib.Path(HUGE % n.n) for n in nodes}
    before = {n: f.read_text() for n, f in files.items()}
    try:
        for n, f in files.items():
            f.write_text(str(2 * N_HUGE if n == here.n else 0))
        if int(files[here.n].read_text()) != 2 * N_HUGE:
            pytest.skip('the kernel has no huge pages left on node %d' % here.n)
        start(policy, {'topology-aware': '{%s}', 'static': '{%s, pinMemory: true, topologyManagerPolicy: single-numa-node}',
                       'qos': '{reservedCPUCount: 1, rampUpSeconds: 0}'}[policy].replace('%s', RESERVED))
        ctr = pods('dpdk', annotations=BOUND if policy == 'qos' else None).run(
            'c', 2000, command=('/mnt/huge',), mounts=[program], huge={'2MB': N_HUGE << 21})

        def pages():
            return re.findall(r' huge .*?((?: N\d+=\d+)+)', pathlib.Path('/proc/%d/numa_maps' % ctr.pid()).read_text())
        wait_for('its huge pages', lambda: pages() == [' N%d=%d' % (here.n, N_HUGE)])
        print(pages(), ctr.allowed(), ctr.allowed('Mems'))
        assert cpus(ctr.allowed()) <= here.all and cpus(ctr.allowed('Mems')) == {here.n}
    finally:
        for n, f in files.items():
            f.write_text(before[n])


# ---- topology-aware ------------------------------------------------------------------------------------------------------

@needs_four_nodes
def test_every_quality_of_service(start, pods, nodes):
    a, b, c, d = nodes
    start('topology-aware', '{%s, packing: balanced}' % RESERVED)
    every = {n.n for n in nodes}

    # Two whole CPUs: of the nodes that can give most, which is not the one with the reserved CPU, the first; a core, not two halves.
    exclusive = pods('exclusive').run('c', 2000)
    assert_has(exclusive, b.cores[0], {b.n})
    # One CPU of its own and half a one of those it shares, in the next node that has all of its CPUs left.
    mixed = pods('mixed').run('c', 1500)
    assert_has(mixed, c.all, {c.n})
    # With limits a burstable container fits any node: that with the fewest containers, and of two such the emptier one.
    limited = pods('limited', 'burstable').run('c', 500, limit_mcpu=1000, mem=64 << 20)
    assert_has(limited, d.all, {d.n})
    # What asks for nothing goes where nobody is, off the reserved CPU.
    best = pods('best', 'besteffort').run('c')
    assert_has(best, a.all - {ONLINE[0]}, {a.n})
    # Without a limit of CPUs: the package that has more left.
    package = pods('package', 'burstable').run('c', 500, mem=64 << 20)
    own = cpus(mixed.allowed()) - cpus(package.allowed())
    assert len(own) == 1
    assert_has(package, c.all - own | d.all, {c.n, d.n})
    # Without a limit of memory, too: the whole machine, but for what belongs to others.
    anywhere = pods('anywhere', 'burstable').run('c', 500)
    shared = set(ONLINE) - {ONLINE[0]} - b.cores[0] - own
    assert_has(anywhere, shared, every)
    # The system's own have the reserved CPU.
    system = pods('system', 'burstable', namespace='kube-system').run('c', 100)
    assert_has(system, {ONLINE[0]}, every)

    for container in (exclusive, mixed, limited, best, package, anywhere, system):
        assert inside(container) == (cpus(container.allowed()), cpus(container.allowed('Mems')))


@needs_four_nodes
def test_what_is_stopped_or_removed_is_given_back(start, pods, nodes):
    a, b, c, d = nodes
    daemon = start('topology-aware', '{%s, packing: balanced}' % RESERVED)
    every, rest = {n.n for n in nodes}, set(ONLINE) - {ONLINE[0]}
    anywhere = pods('anywhere', 'burstable').run('c', 500)
    assert_has(anywhere, rest, every)

    first, mixed = pods('first').run('c', 2000), pods('mixed').run('c', 1500)
    assert_has(first, b.cores[0], {b.n})
    own = rest - b.cores[0] - cpus(anywhere.allowed())
    assert len(own) == 1 and own < c.all
    first.stop()
    wait_has(anywhere, rest - own, every)
    assert_has(mixed, c.all, {c.n})
    first.remove()
    mixed.remove()
    wait_has(anywhere, rest, every)

    again = pods('again').run('c', 2000)
    assert_has(again, b.cores[0], {b.n})
    daemon.kill()
    mark = daemon.mark()
    daemon.start()
    assert ' 0 updates' in daemon.tail(mark)
    assert_has(again, b.cores[0], {b.n})
    assert_has(anywhere, rest - b.cores[0], every)


@needs_four_nodes
def test_preferences_of_pods(start, pods, nodes):
    a, b, c, d = nodes
    start('topology-aware', '{%s, packing: balanced}' % RESERVED)
    wants = {'prefer-shared-cpus.resource-policy.nri.io/pod': 'true'}
    assert_has(pods('shares', annotations=wants).run('c', 2000), b.all, {b.n})
    # One thread a core, the first.
    wants = {'hide-hyperthreads.resource-policy.nri.io/container.c': 'true'}
    assert_has(pods('whole', annotations=wants).run('c', 4000), {min(core) for core in c.cores}, {c.n})
    wants = {'cpu.preserve.resource-policy.nri.io': 'true', 'memory.preserve.resource-policy.nri.io': 'true'}
    assert inside(pods('untouched', annotations=wants).run('c', 2000)) == (set(ONLINE), {n.n for n in nodes})


def pages(container):
    """The pages of the container's heap and stack that the kernel has in each memory node."""
    found = {}
    for line in pathlib.Path('/proc/%d/numa_maps' % container.pid()).read_text().splitlines():
        for node, n in re.findall(r' N(\d+)=(\d+)', line) if ' anon=' in line and ' file=' not in line else ():
            found[int(node)] = found.get(int(node), 0) + int(n)
    return found


@needs_four_nodes
@pytest.mark.parametrize('at', ['admission', 'rebalance'])
def test_a_container_moves_for_another_one(start, pods, nodes, at):
    a, b, c, d = nodes
    start('topology-aware', '{%s, relief: {at: %s, exclusive: all}}' % (RESERVED, at))
    fill = ('/bin/sh', '-c', 'x=$(head -c 6000000 /dev/urandom); while :; do sleep 1 & wait $!; done')
    first = pods('first').run('c', 3000)
    moved, leaves = pods('moved').run('c', 2000, command=fill), pods('leaves').run('c', 2000)
    stays, leaves_too = pods('stays').run('c', 2000), pods('leaves-too').run('c', 2000)
    last = pods('last').run('c', 3000)
    leaves.remove()
    leaves_too.remove()
    before = {x: cpus(x.allowed()) for x in (first, stays, last)}
    assert_has(moved, b.cores[0], {b.n})
    wait_for('6 MB in node %d' % b.n, lambda: pages(moved).get(b.n, 0) > 1200)
    print('before: CPUs %s, pages by node %s' % (moved.allowed(), pages(moved)))

    large = pods('large').run('c', 4000, command=fill)
    wait_has(large, b.all, {b.n})
    wait_has(moved, c.all - before[stays], {c.n})
    wait_for('the pages in node %d, none in node %d' % (c.n, b.n), lambda: pages(moved).get(c.n, 0) > 1200 and not pages(moved).get(b.n))
    wait_for('6 MB in node %d' % b.n, lambda: pages(large).get(b.n, 0) > 1200)
    print('after: CPUs %s, pages by node %s; the new one: CPUs %s, pages %s' % (moved.allowed(), pages(moved), large.allowed(), pages(large)))
    assert {x: cpus(x.allowed()) for x in before} == before


@needs_two_cpus
@pytest.mark.parametrize('policy', ['topology-aware', 'balloons'])
def test_a_whole_cpu_is_its_own_for_as_long_as_it_runs(start, pods, policy):
    shared = '{%s, balloonTypes: [{name: others, matchExpressions: [{key: qosclass, operator: In, values: [BestEffort]}], ' \
             'shareIdleCPUsInSame: system}]}' if policy == 'balloons' else '{%s}'
    start(policy, shared % 'reservedResources: {cpu: "cpuset:%d"}' % ONLINE[-1])
    others = pods('others', 'besteffort').run('c')
    before = cpus(others.allowed())
    if len(before) < 2 and len(ONLINE) < 3:
        pytest.skip('the only CPU that is not reserved has to be shared')
    own = pods('own').run('c', 1000)
    taken = cpus(own.allowed())
    assert len(taken) == 1 and taken < set(ONLINE)
    assert not taken & cpus(others.allowed())
    assert inside(own)[0] == taken
    own.remove()
    wait_for('all is as before', lambda: cpus(others.allowed()) == before)


# ---- balloons ------------------------------------------------------------------------------------------------------------

@needs_four_nodes
def test_every_quality_of_service_in_balloons(start, pods, nodes):
    """With the types that the charts install, but for the reserved CPU, which is a given one."""
    a, b, c, d = nodes
    start('balloons', '{%s, allocatorTopologyBalancing: true, balloonTypes: [{name: dedicated-cpus, preferNewBalloons: true, '
          'preferSpreadingPods: true, matchExpressions: [{key: qosclass, operator: In, values: [Guaranteed]}]}, '
          '{name: shared-local-cpus, preferNewBalloons: true, maxBalloons: 2, shareIdleCPUsInSame: package, '
          'matchExpressions: [{key: qosclass, operator: In, values: [BestEffort, Burstable]}]}]}' % RESERVED)

    # The package without the reserved CPU has more to give.
    exclusive = pods('exclusive').run('c', 2000)
    assert_has(exclusive, c.cores[0], {c.n})
    # Now the other one has, and there the node without that CPU. One CPU is its own; what is idle in the package is lent.
    burstable = pods('burstable', 'burstable').run('c', 500)
    assert_has(burstable, a.all | b.all, {a.n, b.n})
    # Both packages have as many, but for the reserved one: the node that nobody is in.
    best = pods('best', 'besteffort').run('c')
    beside = c.all - c.cores[0] | d.all
    assert_has(best, beside, {c.n, d.n})
    # There may be two balloons of the type, and that one has more room.
    limited = pods('limited', 'burstable').run('c', 300, limit_mcpu=1000, mem=64 << 20)
    assert_has(limited, beside, {c.n, d.n})

    # Three are left in three of the nodes: the package that has more left, its first node. They are not lent any more.
    large = pods('large').run('c', 3000)
    assert_has(large, a.all - {ONLINE[0]}, {a.n})
    assert_has(burstable, {ONLINE[0]} | b.all, {a.n, b.n})
    # Nor is the reserved one, once the system needs it.
    system = pods('system', 'burstable', namespace='kube-system').run('c', 100)
    assert_has(system, {ONLINE[0]}, {a.n})
    wait_has(burstable, b.all, {b.n})

    for container in (exclusive, burstable, best, limited, large, system):
        assert inside(container) == (cpus(container.allowed()), cpus(container.allowed('Mems')))
    exclusive.remove()
    for container in (best, limited):
        wait_has(container, c.all | d.all, {c.n, d.n})


@needs_four_nodes
def test_balloons_inflate_and_deflate(start, pods, nodes):
    a, b, c, _ = nodes
    start('balloons', '{%s, balloonTypes: [{name: web, minCPUs: 1, maxCPUs: 4}, {name: wide, minCPUs: 4, maxCPUs: 4}]}' % RESERVED)
    typed = {TYPE + '/pod': 'web'}
    # Packed beside the reserved CPU, which others avoid while there is room elsewhere.
    one = pods('one', annotations=typed).run('c', 1000)
    at = a.cores[0] - {ONLINE[0]}
    assert_has(one, at, {a.n})
    # A whole node of the package that is less free.
    wide = pods('wide', annotations={TYPE: 'wide'}).run('c', 100)
    assert_has(wide, b.all, {b.n})

    two = pods('two', annotations=typed).run('c', 1000)
    at |= {min(a.cores[1])}
    for container in (one, two):
        assert_has(container, at, {a.n})
    three = pods('three', annotations=typed).run('c', 1000)
    at |= a.cores[1]
    for container in (one, two, three):
        assert_has(container, at, {a.n})
    # No more room in the package.
    four = pods('four', annotations=typed).run('c', 1000)
    for container in (one, two, three, four):
        assert_has(container, at | {min(c.all)}, {a.n, c.n})
    # It is as large as it may be: another one, in the core that is not whole any more.
    five = pods('five', annotations=typed).run('c', 1000)
    assert_has(five, c.cores[0] - {min(c.all)}, {c.n})
    assert_has(wide, b.all, {b.n})

    four.remove()
    for container in (one, two, three):
        wait_has(container, at, {a.n})
    # The core it has less of goes first.
    three.stop()
    for container in (one, two):
        wait_has(container, a.cores[1], {a.n})
    assert inside(two) == (a.cores[1], {a.n})
    assert_has(five, c.cores[0] - {min(c.all)}, {c.n})
    assert_has(wide, b.all, {b.n})


@needs_four_nodes
def test_idle_cpus_are_lent_until_they_are_needed(start, pods, nodes):
    a, b, c, d = nodes
    start('balloons', '{%s, balloonTypes: [{name: lender, minCPUs: 1, shareIdleCPUsInSame: numa, preferCloseToDevices: [%s]}, '
          '{name: taker, preferCloseToDevices: [%s]}]}' % (RESERVED, *['/sys/devices/system/node/node%d' % c.n] * 2))
    lent = pods('lent', annotations={TYPE: 'lender'}).run('c', 1000)
    assert_has(lent, c.all, {c.n})
    taker = pods('taker', annotations={TYPE: 'taker'}).run('c', 2000)
    taken = cpus(taker.allowed())
    assert len(taken) == 2 and taken < c.all
    wait_has(lent, c.all - taken, {c.n})
    taker.remove()
    wait_has(lent, c.all, {c.n})
