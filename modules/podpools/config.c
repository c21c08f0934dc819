/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the configuration section and allocates the CPUs of each pool. plan_fill() and plan_look()
 * are the entry points.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "modules/lib/private/number.h"
#include <nri-rp/lib/section.h>
#include "modules/podpools/podpools.h"

#define TEXT_MAX 64u

const char *const fill_names[] = {"Balanced", "Packed", "FirstFree"};
#define N_FILLS (sizeof fill_names / sizeof *fill_names)

static const struct rp_key keys[] = {
	POOLS_KEYS,
	SECTION_LIST("pools", "Pools besides reserved and default."),
	SECTION_MAP("pools[]", "A pool, or several equal instances."),
	SECTION_KEY("pools[].name", STRING, "Name used by pods. reserved and default are built in.",
		    .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY),
	SECTION_ANY("pools[].cpu", "CPUs of each instance: a whole number."),
	SECTION_NUMBER("pools[].maxPods", -1, 1000000, "0",
		       "Pods in one instance; 0: any number, -1: none."),
	SECTION_KEY("pools[].instances", ANY,
		    "Number of instances: a number, \"8 CPUs\" for as many as fit into 8 CPUs, or "
		    "\"50 %\" of the CPUs that are not reserved.",
		    .fallback = "1"),
	SECTION_CHOICE("pools[].fillOrder", "Balanced|Packed|FirstFree", "Balanced",
		       "Instance for a new pod: the one with the fewest pods, with the most, or "
		       "the first with room."),
};

const struct rp_schema podpools_schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

void plan_fini(struct rp_plan *p)
{
	free(p->pools);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void cut_blanks(char *text)
{
	size_t len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
}

/* Removes the unit behind a number. Returns '%', 'c' for CPUs, or 0 without a unit. */
static char cut_unit(char *text)
{
	static const char *const units[] = {"%", "cpus", "cpu"};
	cut_blanks(text);
	for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
		size_t len = strlen(text), n = strlen(units[i]);
		if (len < n || strcasecmp(text + len - n, units[i]) != 0)
			continue;
		text[len - n] = '\0';
		cut_blanks(text);
		return units[i][0];
	}
	return '\0';
}

/* Computes the number of instances with `each` CPUs, of n_free CPUs. Errors name the place in
 * the configuration. */
static int32_t count_instances(const struct modhost *h, rp_cfg node, int64_t each, uint32_t n_free,
			       bool lenient, uint32_t *ret)
{
	const char *text = h->config->text(h->ctx, node, "");
	char number[TEXT_MAX];
	*ret = 1;
	if (!*text)
		return 0;
	(void)snprintf(number, sizeof number, "%s", text);
	char unit = cut_unit(number);
	int64_t n = strlen(text) < sizeof number ? number_parse(number, RP_CPUS_MAX) : -1;
	if (n < 0)
		return modhost_refuse(
			h, node,
			"invalid Instances: \"%.64s\": write a number, \"8 CPUs\" or \"50 %%\"",
			text);
	*ret = (uint32_t)(unit == '%' ? n_free * n / 100 / each : unit ? n / each : n);
	if (unit == 'c' && n > n_free && !lenient)
		return modhost_refuse(h, node,
				      "insufficient CPUs: %lld required for instances but %u is "
				      "available",
				      (long long)n, n_free);
	return 0;
}

/* ---- definitions ----------------------------------------------------------------------------- */

struct def {
	rp_cfg at;
	const char *name;
	int64_t cpus; /* number of CPUs of an instance; 0: not configured */
	int64_t max_pods;
	enum fill_order fill;
	uint32_t n;
};

struct making {
	const struct modhost *h;
	struct rp_plan *p;
	struct cpualloc *alloc;
	struct rp_idset free;
	bool lenient; /* pools get the CPUs that are online, and may have none */
};

static bool is_built_in(const char *name)
{
	return strcmp(name, "reserved") == 0 || strcmp(name, "default") == 0;
}

static int32_t read_def(const struct making *m, rp_cfg at, struct def *ret)
{
	const struct modhost *h = m->h;
	uint32_t n_free = rp_ids_count(rp_ids_of(&m->free));
	const char *cpu = section_text(h, at, "cpu", "");
	const char *fill = section_text(h, at, "fillOrder", fill_names[0]);
	*ret = (struct def){.at = at, .n = 1};
	ret->name = section_text(h, at, "name", "");
	ret->max_pods = section_int(h, at, "maxPods", 0);
	for (unsigned i = 0; i < N_FILLS; i++)
		if (strcasecmp(fill, fill_names[i]) == 0)
			ret->fill = (enum fill_order)i;
	if (!*ret->name || strlen(ret->name) > POOLS_NAME_MAX)
		return modhost_refuse(h, at, "a pool has a name of 1 to %u bytes", POOLS_NAME_MAX);
	bool built_in = is_built_in(ret->name);
	if (built_in && !*cpu && !section_get(h, at, "instances"))
		return 0;
	if (!*cpu)
		return modhost_refuse(h, at, "missing CPUs in pool \"%s\"", ret->name);
	ret->cpus = number_parse(cpu, RP_CPUS_MAX);
	if (ret->cpus < 1)
		return modhost_refuse(h, section_get(h, at, "cpu"),
				      "invalid CPUs per pool: \"%.64s\", integer > 1 expected",
				      cpu);
	int32_t r = count_instances(h, section_get(h, at, "instances"), ret->cpus, n_free,
				    m->lenient, &ret->n);
	if (r || !built_in || ret->n == 1)
		return r;
	return modhost_refuse(h, section_get(h, at, "instances"),
			      "cannot change the number of instances of pool \"%s\"", ret->name);
}

static int32_t check_def(const struct making *m, struct def *d)
{
	if (m->lenient && !d->n)
		d->n = 1;
	if (!d->n)
		return modhost_refuse(m->h, d->at,
				      "insufficient CPUs to create any instances of pool \"%s\"",
				      d->name);
	if (d->n > 1 && d->fill == FILL_PACKED && !d->max_pods)
		return modhost_refuse(
			m->h, d->at,
			"%u pool(s) unreachable due to unlimited pod capacity: set maxPods",
			d->n - 1);
	for (uint32_t i = 0; i < m->p->n_pools; i++)
		if (strcmp(m->p->pools[i].name, d->name) == 0)
			return modhost_refuse(m->h, d->at, "duplicate pool name \"%s\"", d->name);
	int64_t needed = d->n * d->cpus, n_free = rp_ids_count(rp_ids_of(&m->free));
	bool enough = m->lenient || needed <= n_free;
	if (m->p->n_pools + d->n > POOLS_MAX || !enough)
		return modhost_refuse(
			m->h, d->at,
			"insufficient CPUs: pool \"%s\" needs %lld and %lld are available", d->name,
			(long long)needed, (long long)n_free);
	return 0;
}

static int32_t config_take(struct making *m, const struct def *d, struct pool *pool)
{
	uint32_t n = (uint32_t)d->cpus, n_free = rp_ids_count(rp_ids_of(&m->free));
	int r = cpualloc_allocate(m->alloc, &m->free, m->lenient && n > n_free ? n_free : n,
				  CPUALLOC_NORMAL, CPUALLOC_PLAIN, &pool->whole);
	return r ? modhost_refuse(m->h, d->at, "insufficient CPUs for pool \"%s\"", d->name) : 0;
}

static int32_t make_built_in(struct making *m, const struct def *d)
{
	bool reserved = strcmp(d->name, "reserved") == 0;
	struct pool *pool = &m->p->pools[reserved ? POOL_RESERVED : POOL_DEFAULT];
	pool->max_pods = d->max_pods;
	if (!d->cpus)
		return 0;
	if (!reserved)
		return config_take(m, d, pool);
	return m->lenient || d->cpus == rp_ids_count(rp_ids_of(&pool->whole))
		       ? 0
		       : modhost_refuse(m->h, section_get(m->h, d->at, "cpu"),
					"conflicting ReservedResources CPUs: %u are reserved",
					rp_ids_count(rp_ids_of(&pool->whole)));
}

static int32_t make_pools(struct making *m, struct def *d)
{
	int32_t r = check_def(m, d);
	for (uint32_t i = 0; !r && i < d->n; i++) {
		struct pool *pool = &m->p->pools[m->p->n_pools];
		*pool = (struct pool){.instance = i, .fill = d->fill, .max_pods = d->max_pods};
		(void)snprintf(pool->name, sizeof pool->name, "%s", d->name);
		r = config_take(m, d, pool);
		m->p->n_pools += !r;
	}
	return r;
}

/* Creates the built-in pools first. The CPUs that are free then are divided among the other
 * pools, whatever the order of the definitions. */
static int32_t make_all(struct making *m)
{
	const struct modhost *h = m->h;
	rp_cfg list = section_get(h, m->p->bounds.section, "pools");
	uint32_t n = h->config->count(h->ctx, list);
	struct def *defs = calloc(n + 1u, sizeof *defs);
	int32_t r = defs ? 0 : modhost_no_memory(h);
	for (uint32_t i = 0; !r && i < n; i++) {
		rp_cfg at = h->config->item(h->ctx, list, i);
		if (!is_built_in(section_text(h, at, "name", "")))
			continue;
		r = read_def(m, at, &defs[i]);
		if (!r)
			r = make_built_in(m, &defs[i]);
	}
	for (uint32_t i = 0; !r && i < n; i++)
		if (!defs[i].at)
			r = read_def(m, h->config->item(h->ctx, list, i), &defs[i]);
	for (uint32_t i = 0; !r && i < n; i++)
		if (!is_built_in(defs[i].name))
			r = make_pools(m, &defs[i]);
	free(defs);
	return r;
}

/* ---- creation of a plan ---------------------------------------------------------------------- */

static int32_t config_fill(struct making *m, rp_cfg section, const struct reserve_past *past)
{
	const struct modhost *h = m->h;
	struct rp_plan *p = m->p;
	const struct bounds *b = &p->bounds.cpus;
	int32_t r = pools_read(h, section, m->alloc, past, &p->bounds);
	/* Listed reserved CPUs may be offline; the policy waits for them. */
	if (!r && rp_ids_empty(rp_ids_of(&b->reserved)) && rp_ids_empty(rp_ids_of(&b->listed)) &&
	    !m->lenient)
		r = modhost_refuse(h, section,
				   "podpools cannot run without reserved CPUs that are also "
				   "AvailableResources");
	if (r)
		return r;
	rp_idset_copy(&m->free, rp_ids_of(&b->rest));
	(void)snprintf(p->pools[POOL_RESERVED].name, sizeof p->pools->name, "reserved");
	(void)snprintf(p->pools[POOL_DEFAULT].name, sizeof p->pools->name, "default");
	rp_idset_copy(&p->pools[POOL_RESERVED].whole, rp_ids_of(&b->reserved));
	p->n_pools = 2;
	r = make_all(m);
	struct pool *rest = &p->pools[POOL_DEFAULT];
	rp_idset_or(&rest->whole, rp_ids_of(&rest->whole), rp_ids_of(&m->free));
	if (rp_ids_empty(rp_ids_of(&rest->whole)))
		rp_idset_copy(&rest->whole, rp_ids_of(&p->pools[POOL_RESERVED].whole));
	return r;
}

void plan_look(const struct modhost *h, struct rp_plan *p)
{
	struct rp_idset online;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	for (uint32_t i = 0; i < p->n_pools; i++) {
		struct pool *pool = &p->pools[i];
		rp_idset_and(&pool->cpus, rp_ids_of(&pool->whole), rp_ids_of(&online));
	}
	for (uint32_t i = 0; i < p->n_pools; i++) {
		struct pool *pool = &p->pools[i];
		if (rp_ids_empty(rp_ids_of(&pool->cpus)))
			rp_idset_copy(&pool->cpus, rp_ids_of(&p->pools[POOL_DEFAULT].cpus));
		if (rp_ids_empty(rp_ids_of(&pool->cpus)))
			rp_idset_copy(&pool->cpus, rp_ids_of(&online));
	}
}

int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	struct making m = {.h = h, .p = p, .lenient = past->hotplug};
	p->pools = calloc(POOLS_MAX, sizeof *p->pools);
	int32_t r =
		!p->pools || cpualloc_new(h->topology, h->ctx, &m.alloc) ? modhost_no_memory(h) : 0;
	if (!r)
		r = config_fill(&m, section, past);
	cpualloc_free(m.alloc);
	if (!r)
		plan_look(h, p);
	return r;
}
