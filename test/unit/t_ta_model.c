/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pool topology-aware chooses, and what containers share afterwards: a plain, slow reading of
 * the rules beside the real module, on random machines, configurations and loads. Which of a pool's
 * CPUs are taken is left to the model of the CPU allocator (t_cpualloc_model); here they only have
 * to come from where they may. Memory is plentiful, so that nothing moves.
 */
#include <nri-rp/lib/host.h>
#include "test/unit/t_ta_model.h"

#define N_MACHINES 1500u
#define N_STEPS 120u
#define R ".resource-policy.nri.io"

static const char *const priorities[] = {"high", "normal", "low", "none"};
static const char *const levels[] = {"system", "package", "die", "numa", "l3cache"};

static void differs(const struct model *m, const struct held *c, const char *what)
{
	const struct notes *n = &m->notes[c->pod];
	char all[256];
	fail_msg("%s\n%s of pod %u, QoS %u, %lld/%lldm, %lld full, memory %lld/%lld\nannotations "
		 "%d %d %d %d %d %d %d\nconfiguration %s\nmodule: %s\n%s\nCPUs %s\n%s",
		 what, c->name, c->pod, c->qos, (long long)c->request, (long long)c->limit,
		 (long long)c->full, (long long)c->mem_size, (long long)c->mem_limit, n->shared,
		 n->isolated, n->required, n->reserved, n->priority, n->level, n->types, m->config,
		 fake_error(m->f), c->ctr ? fake_trail(m->f, c->ctr) : "",
		 list(m->online, all, sizeof all), fake_zones(m->f));
}

/* Returns the rest of the module's last line about the container if it begins with these words;
 * else NULL. */
static const char *said(const struct model *m, const struct held *c, const char *words)
{
	const char *last = fake_trail(m->f, c->ctr);
	for (const char *at = last; *at; at = strchr(at, '\n') + 1)
		last = at;
	return strncmp(last, words, strlen(words)) == 0 ? last + strlen(words) : NULL;
}

/* Takes over what the module has taken, if it may. Its threads that are hidden from it belong to it
 * too. */
static void accept(struct model *m, struct held *c, uint64_t from)
{
	char what[160], text[256] = "";
	bool whole = c->kind == NORMAL && c->full;
	c->portion = c->fraction;
	c->zero = c->kind == NORMAL && !c->full && !c->fraction;
	c->odd = false;
	c->zone = offered(m, c->pool, c->types);
	if (whole)
		(void)snprintf(what, sizeof what, "%s: exclusive CPUs ", m->pools[c->pool].name);
	else
		(void)snprintf(what, sizeof what, "%s: %lldm of its %s CPUs",
			       m->pools[c->pool].name, (long long)c->portion,
			       c->kind == NORMAL ? "shared" : "reserved");
	const char *at = said(m, c, what);
	if (!at)
		differs(m, c, what);
	if (whole)
		(void)snprintf(text, sizeof text, "%.*s", (int)strcspn(at, " (;"), at);
	if (*text && text[strlen(text) - 1] == ',')
		text[strlen(text) - 1] = '\0';
	c->exclusive = parsed(text);
	if (count(c->exclusive) != (whole ? c->full : 0) || c->exclusive & ~from)
		differs(m, c, "exclusive CPUs that it may not have");
}

/* Checks the invariants of every container. */
static void check(const struct model *m)
{
	for (unsigned i = 0; i < m->n_held; i++) {
		const struct held *c = &m->held[i];
		uint64_t cpus = c->exclusive, kept = 0;
		char text[256];
		if (c->kind == RESERVED)
			cpus = m->reserved;
		else if (c->portion || !c->exclusive)
			cpus |= sharable(m, c->pool);
		for (unsigned cpu = 0; cpu < 64 && m->notes[c->pod].hides; cpu++) {
			bool again = !(cpus & bit(cpu));
			for (unsigned o = 0; o < cpu; o++)
				again |= kept & bit(o) && m->cpu[o].unit[RP_LEVEL_CORE] ==
								  m->cpu[cpu].unit[RP_LEVEL_CORE];
			kept |= again ? 0 : bit(cpu);
		}
		if (m->notes[c->pod].hides)
			cpus = kept;
		if (word(fake_cpu_ids(m->f, c->ctr)) != cpus || !cpus)
			differs(m, c, list(cpus, text, sizeof text));
		if (parsed(fake_mems(m->f, c->ctr)) != c->zone)
			differs(m, c, list(c->zone, text, sizeof text));
	}
}

/* ---- random machines ------------------------------------------------------------------------- */

static struct fake_machine random_machine(struct seed *s, char *isolated, size_t size)
{
	struct fake_machine k = {
		.packages = 1 + draw(s, 2),
		.dies = 1 + once_in(s, 3),
		.nodes = 1 + draw(s, 2),
		.cores = 1 + draw(s, 4),
		.threads = 1 + draw(s, 2),
		.siblings = once_in(s, 2),
		.e_cores = once_in(s, 4) ? 2 : 0,
		.l3_cores = draw(s, 3),
		.memory_nodes = once_in(s, 3) ? 1 + draw(s, 3) : 0,
		.node_memory = UINT64_C(32) << 30,
	};
	if (k.cores == 4)
		k.e_cores = 0; /* there are 64 CPUs at most */
	if (once_in(s, 2)) {
		unsigned first = 2 + draw(s, 6);
		(void)snprintf(isolated, size, "%u-%u", first, first + draw(s, 3));
		k.isolated = isolated;
	}
	return k;
}

/* Clusters, memory of other types and at other distances, a node without memory. */
static void vary(struct model *m, const struct fake_machine *k)
{
	struct seed *s = m->seed;
	unsigned n_cpu_nodes = k->packages * k->dies * k->nodes;
	bool clustered = once_in(s, 2);
	for (unsigned cpu = 0; clustered && fake_cpu_info(m->f, cpu); cpu++)
		fake_cpu_info(m->f, cpu)->cluster_id = fake_cpu_info(m->f, cpu)->core_id;
	for (unsigned i = n_cpu_nodes; i < n_cpu_nodes + k->memory_nodes; i++) {
		bool hbm = once_in(s, 2);
		fake_node_info(m->f, i)->type = hbm ? RP_MEM_HBM : RP_MEM_PMEM;
		fake_node_info(m->f, i)->memory = UINT64_C(1) << (hbm ? 33 : 37);
		fake_set_distance(m->f, i, draw(s, n_cpu_nodes), 14 + draw(s, 3));
	}
	if (k->nodes > 1 && once_in(s, 5))
		fake_node_info(m->f, draw(s, n_cpu_nodes))->memory = 0;
	assert_int_equal(fake_set_offline(m->f, ""), 0);
}

static void read_machine(struct model *m, const struct fake_machine *k)
{
	struct modhost h;
	struct rp_idset set;
	assert_int_equal(modhost_init(&h, fake_rp_host(m->f), MODHOST_POLICY), 0);
	modhost_set(&h, RP_CPUS_ONLINE, &set);
	m->online = m->allowed = word(rp_ids_of(&set));
	assert_true(set.nw <= 1);
	modhost_set(&h, RP_CPUS_ISOLATED, &set);
	m->isolated = word(rp_ids_of(&set));
	m->n_cpu_nodes = k->packages * k->dies * k->nodes;
	m->n_nodes = m->n_cpu_nodes + k->memory_nodes;
	for (unsigned cpu = 0; cpu < 64 && fake_cpu_info(m->f, cpu); cpu++) {
		m->cpu[cpu] = *fake_cpu_info(m->f, cpu);
		if (k->e_cores && m->cpu[cpu].kind == RP_CORE_EFFICIENT)
			m->efficient |= bit(cpu);
	}
	for (unsigned i = 0; i < m->n_nodes; i++) {
		const struct rp_node_info *node = fake_node_info(m->f, i);
		m->node_bytes[i] = (int64_t)node->memory;
		m->node_type[i] = node->type == RP_MEM_HBM ? HBM : i < m->n_cpu_nodes ? DRAM : PMEM;
		for (unsigned j = 0; j < m->n_nodes; j++)
			m->distance[i][j] = h.topology->distance(h.ctx, i, j);
	}
}

/* ---- random configurations and containers ---------------------------------------------------- */

static uint64_t some_of(struct seed *s, uint64_t set, unsigned in)
{
	uint64_t some = 0;
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (set & bit(cpu) && once_in(s, in))
			some |= bit(cpu);
	return some ? some : set & -set;
}

static void configure(struct model *m)
{
	struct seed *s = m->seed;
	char available[128], reserved[128], text[400];
	if (once_in(s, 3))
		m->allowed &= ~some_of(s, m->online & ~bit(0), 8);
	m->isolated &= m->allowed;
	m->reserved = once_in(s, 3) ? some_of(s, m->allowed & ~m->isolated, 6) : bit(0);
	m->prefer_isolated = once_in(s, 2);
	m->prefer_shared = once_in(s, 4);
	m->colocate_pods = once_in(s, 3);
	m->colocate_namespaces = once_in(s, 5);
	m->priority = once_in(s, 2) ? ANY : (enum priority)draw(s, 4);
	m->level = draw(s, 5);
	(void)snprintf(text, sizeof text,
		       "preferIsolatedCPUs: %s, preferSharedCPUs: %s, colocatePods: %s, "
		       "colocateNamespaces: %s, defaultCPUPriority: %s, unlimitedBurstable: %s, "
		       "bestEffortOverflow: refuse",
		       m->prefer_isolated ? "true" : "false", m->prefer_shared ? "true" : "false",
		       m->colocate_pods ? "true" : "false",
		       m->colocate_namespaces ? "true" : "false", priorities[m->priority],
		       levels[m->level]);
	(void)snprintf(
		m->config, sizeof m->config,
		"{parity: true, availableResources: {cpu: \"cpuset:%s\"}, reservedResources: {cpu: "
		"\"cpuset:%s\"}, %s}",
		list(m->allowed, available, sizeof available),
		list(m->reserved, reserved, sizeof reserved), text);
	(void)start_on(m->f, m->config);
}

static int maybe(struct seed *s, unsigned in, unsigned n)
{
	return once_in(s, in) ? (int)draw(s, n) : -1;
}

static void random_pod(struct model *m, unsigned pod)
{
	struct seed *s = m->seed;
	struct notes *n = &m->notes[pod];
	*n = (struct notes){.shared = maybe(s, 3, 2),
			    .isolated = maybe(s, 3, 2),
			    .required = maybe(s, 8, 2),
			    .reserved = maybe(s, 8, 2),
			    .priority = maybe(s, 3, 4),
			    .level = maybe(s, 3, 5),
			    .types = maybe(s, 3, 7),
			    .hides = once_in(s, 6)};
	n->types += n->types >= 0; /* a list has one type at least */
	if (once_in(s, 3))
		memcpy(n->likes, once_in(s, 2) ? "ab" : "bc", 2);
	if (once_in(s, 4))
		memcpy(n->hates, once_in(s, 2) ? "ca" : "cd", 2);
}

static void say_bool(char *text, size_t size, const char *key, int value)
{
	size_t n = strlen(text);
	if (value >= 0)
		(void)snprintf(text + n, size - n, "%s" R "=%s;", key, value ? "true" : "false");
}

static void say(char *text, size_t size, const char *key, const char *value)
{
	size_t n = strlen(text);
	(void)snprintf(text + n, size - n, "%s=%s;", key, value);
}

static void annotate(const struct notes *n, char *text, size_t size)
{
	static const char *const types[] = {"",	   "dram",     "pmem",	   "dram,pmem",
					    "hbm", "dram,hbm", "pmem,hbm", "mixed"};
	char pair[32];
	text[0] = 0;
	say_bool(text, size, "prefer-shared-cpus", n->shared);
	say_bool(text, size, "prefer-isolated-cpus", n->isolated);
	say_bool(text, size, "require-isolated-cpus", n->required);
	say_bool(text, size, "prefer-reserved-cpus", n->reserved);
	say_bool(text, size, "hide-hyperthreads", n->hides ? 1 : -1);
	if (n->priority >= 0)
		say(text, size, "prefer-cpu-priority" R, priorities[n->priority]);
	if (n->level >= 0)
		say(text, size, "unlimited-burstable" R, levels[n->level]);
	if (n->types >= 0)
		say(text, size, "memory-type" R, types[n->types]);
	(void)snprintf(pair, sizeof pair, "{%c: [%c]}", n->likes[0], n->likes[1]);
	if (n->likes[0])
		say(text, size, "resource-policy.nri.io/affinity", pair);
	(void)snprintf(pair, sizeof pair, "{%c: [%c]}", n->hates[0], n->hates[1]);
	if (n->hates[0])
		say(text, size, "resource-policy.nri.io/anti-affinity", pair);
}

#define N_DEVICES 4u

/* Devices 0 … 3 of the machine are near random CPUs. */
static void add_devices(struct model *m, uint64_t *ret_near)
{
	for (unsigned i = 0; i < N_DEVICES; i++) {
		char what[16], path[48], cpus[256], node[16];
		ret_near[i] = some_of(m->seed, m->online, 4);
		(void)snprintf(what, sizeof what, "c7:%u", i);
		(void)snprintf(path, sizeof path, "/sys/devices/d%u", i);
		(void)snprintf(node, sizeof node, "%u", draw(m->seed, m->n_cpu_nodes));
		fake_device(m->f, what, path, list(ret_near[i], cpus, sizeof cpus), node);
	}
}

static void random_container(struct model *m, const uint64_t *near, struct held *c)
{
	static const int64_t requests[] = {0, 100, 250, 999, 1000, 1500, 2000, 2500, 3000, 5000};
	struct seed *s = m->seed;
	char annotations[512], devices[64] = "", pod[16];
	*c = (struct held){.pod = draw(s, N_PODS), .qos = draw(s, 3)};
	c->name[0] = (char)('a' + draw(s, 4));
	c->request = c->qos == RP_QOS_BEST_EFFORT ? 0 : requests[draw(s, 10)];
	if (c->qos == RP_QOS_GUARANTEED)
		c->limit = c->request;
	else if (c->qos == RP_QOS_BURSTABLE && once_in(s, 2))
		c->limit = c->request + 1000 * (int64_t)draw(s, 8);
	c->mem_size = c->qos == RP_QOS_BEST_EFFORT || once_in(s, 3) ? 0 : 1 << 20;
	c->mem_limit = c->mem_size;
	if (c->qos == RP_QOS_BURSTABLE && c->mem_size && once_in(s, 2))
		c->mem_limit = once_in(s, 2) ? 0 : (INT64_C(20) + draw(s, 150)) << 30;
	for (; c->n_hints < 2 && once_in(s, 4); c->n_hints++) {
		unsigned device = draw(s, N_DEVICES);
		size_t n = strlen(devices);
		c->hint[c->n_hints] = near[device];
		(void)snprintf(devices + n, sizeof devices - n, "/dev/d%u:c7:%u;", device, device);
		if (c->n_hints && c->hint[1] == c->hint[0])
			break; /* a device that occurs twice gives a single hint */
	}
	annotate(&m->notes[c->pod], annotations, sizeof annotations);
	(void)snprintf(pod, sizeof pod, "p%u", c->pod);
	struct fake_ctr d = {
		.name = c->name,
		.pod_name = pod,
		.pod_namespace = c->pod == 0  ? "kube-system"
				 : c->pod % 2 ? "red"
					      : "blue",
		.qos = c->qos,
		.cpu_request = c->request,
		.cpu_limit = c->limit,
		.mem_request = c->mem_size,
		.mem_limit = c->mem_limit,
		.annotations = annotations,
		.devices = devices[0] ? devices : NULL,
	};
	c->ctr = fake_ctr(m->f, &d);
	ask(m, c);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void create(struct model *m, const uint64_t *near)
{
	struct held c;
	uint64_t from;
	random_container(m, near, &c);
	bool fits = place(m, &c, NULL, &from);
	int32_t r = fake_allocate(m->f, c.ctr);
	c.ctr = r ? 0 : c.ctr;
	if (r && r != -RP_ENOSPC)
		differs(m, &c, "neither placed nor refused");
	if (fits != (r == 0))
		differs(m, &c, fits ? m->pools[c.pool].name : "taken though nothing suits");
	if (r)
		return;
	accept(m, &c, from);
	m->held[m->n_held++] = c;
}

static void resize(struct model *m, unsigned i)
{
	struct held had = m->held[i], c = had;
	uint64_t from;
	c.request = 250 * (int64_t)draw(m->seed, 16);
	if (c.qos == RP_QOS_BEST_EFFORT || (c.qos == RP_QOS_BURSTABLE && c.limit))
		return;
	if (c.qos == RP_QOS_GUARANTEED)
		c.limit = c.request;
	if (c.request == had.request)
		return;
	ask(m, &c);
	m->held[i] = m->held[--m->n_held];
	bool fits = place(m, &c, &had, &from);
	fake_request(m->f, c.ctr, c.request, c.limit);
	int32_t r = fake_update(m->f, c.ctr);
	bool keeps = !fits && c.request < had.request;
	if ((fits || keeps) != (r == 0))
		differs(m, &c, r ? "the resize is refused" : "the resize is taken");
	if (fits) {
		accept(m, &c, from);
	} else {
		int64_t request = c.request, limit = c.limit;
		c = had;
		c.request = keeps ? request : had.request;
		c.limit = keeps ? limit : had.limit;
		c.odd = keeps;
	}
	m->held[m->n_held++] = c;
}

static void step(struct model *m, const uint64_t *near)
{
	struct seed *s = m->seed;
	unsigned what = draw(s, 10);
	if (m->n_held == N_HELD || (m->n_held && what < 3)) {
		unsigned i = draw(s, m->n_held);
		assert_int_equal(fake_release(m->f, m->held[i].ctr), 0);
		m->held[i] = m->held[--m->n_held];
	} else if (m->n_held && what == 3) {
		resize(m, draw(s, m->n_held));
	} else {
		create(m, near);
	}
	check(m);
}

static void run(struct model *m)
{
	char isolated[16];
	uint64_t near[N_DEVICES];
	struct fake_machine k = random_machine(m->seed, isolated, sizeof isolated);
	m->f = fake_host_new(&k);
	vary(m, &k);
	read_machine(m, &k);
	add_devices(m, near);
	configure(m);
	build_tree(m);
	for (unsigned i = 0; i < N_PODS; i++)
		random_pod(m, i);
	for (unsigned i = 0; i < N_STEPS; i++)
		step(m, near);
	fake_host_free(m->f);
}

static void test_choice(void **state)
{
	struct seed seed = seed_begin();
	struct model *m = malloc(sizeof *m);
	assert_non_null(m);
	for (unsigned i = 0; i < N_MACHINES; i++) {
		*m = (struct model){.seed = &seed};
		run(m);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
