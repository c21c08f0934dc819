/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the machine: divided by the policy (zones), and CPU by CPU with the containers that may use
 * it (topology). */
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/observe/zones.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/topo/isst.h"
#include "core/lib/util/arena.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/machine.h"
#include "core/nri-rpd/control/usage.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"
#include "core/nri-rpd/control/server.h"
#include "core/nri-rpd/control/speedselect.h"

/* ---- zones ----------------------------------------------------------------------------------- */

#define ZONES_ARENA_BLOCK 16384u
/* largest memory for a policy's description of its zones, in bytes */
#define ZONES_ARENA_MAX (32u << 20)

static void put_zone(struct json *j, const Agent__Zone *zone)
{
	json_obj(j);
	JSON_MEMBERS(j, zone, name, type, parent);
	JSON_LIST(j, "resources", zone->resources[i], zone->n_resources, name, capacity,
		  allocatable, available);
	JSON_LIST(j, "attributes", zone->attributes[i], zone->n_attributes, name, value);
	JSON_LIST(j, "costs", zone->costs[i], zone->n_costs, name, value);
	json_end_obj(j);
}

enum call_result run_zones(struct call *call)
{
	struct err err = ERR_INIT;
	struct instance *policy = pipeline_policy(call->p);
	_arena_ struct arena *arena = arena_new(ZONES_ARENA_BLOCK, ZONES_ARENA_MAX);
	Agent__PublishedRequest m = AGENT__PUBLISHED_REQUEST__INIT;
	if (!arena)
		return call_fail(call, CTL_FAILED, "out of memory");
	int r = zones_collect(call->p, arena, &m, &err);
	if (r)
		return call_fail(call, CTL_FAILED, "policy %s: %s", instance_name(policy),
				 err_text(&err, r));
	if (arena_failed(arena))
		return call_fail(call, CTL_FAILED,
				 "policy %s has more zones than fit into the reserved memory",
				 instance_name(policy));
	json_arr(&call->j);
	for (size_t i = 0; i < m.n_zones; i++)
		put_zone(&call->j, m.zones[i]);
	json_end_arr(&call->j);
	return CALL_DONE;
}

/* ---- topology: the machine ------------------------------------------------------------------- */

static void put_unit(struct json *j, const char *key, uint32_t unit)
{
	json_key(j, key);
	if (unit == RP_IDSET_NONE)
		json_nil(j);
	else
		json_uint(j, unit);
}

static void put_cpu(struct json *j, struct topo *topo, uint32_t cpu)
{
	/* Frequencies are left out, because they would be read from sysfs here. */
	struct rp_cpu_info c = {.size = offsetof(struct rp_cpu_info, base_khz)};
	if (topo_cpu(topo, cpu, &c))
		return;
	json_obj(j);
	json_kuint(j, "cpu", cpu);
	json_kuint(j, "package", c.package_id);
	json_kuint(j, "die", c.die_id);
	json_kuint(j, "node", c.node_id);
	json_kuint(j, "core", c.core_id);
	put_unit(j, "core_unit", c.unit[RP_LEVEL_CORE]);
	put_unit(j, "cache_unit", c.unit[RP_LEVEL_LLC]);
	json_kstr(j, "kind", c.kind == RP_CORE_EFFICIENT ? "efficient" : "performance");
	json_end_obj(j);
}

static void put_node(struct json *j, struct pipeline *p, uint32_t id)
{
	struct topo *topo = pipeline_topo(p);
	struct rp_node_info n = {.size = sizeof n};
	if (topo_node(topo, id, &n))
		return;
	json_obj(j);
	json_kuint(j, "node", id);
	json_kstr(j, "type", topo_memory_type_name(n.type));
	json_kbool(j, "normal", n.normal);
	json_kuint(j, "memory", n.memory);
	put_node_used(j, p, id);
	json_kuint(j, "package", n.package_id);
	put_ids(j, "cpus", n.cpus);
	json_end_obj(j);
}

static void put_machine(struct json *j, struct pipeline *p)
{
	struct topo *topo = pipeline_topo(p);
	static const struct {
		const char *key;
		uint32_t which;
	} sets[] = {{"online", RP_CPUS_ONLINE},
		    {"present", RP_CPUS_PRESENT},
		    {"isolated", RP_CPUS_ISOLATED},
		    {"nohz_full", RP_CPUS_NOHZ_FULL},
		    {"efficient", RP_CPUS_EFFICIENT}};
	static const struct {
		const char *key;
		uint32_t level;
	} levels[] = {{"n_packages", RP_LEVEL_PACKAGE}, {"n_dies", RP_LEVEL_DIE},
		      {"n_nodes", RP_LEVEL_NODE},	{"n_caches", RP_LEVEL_LLC},
		      {"n_cores", RP_LEVEL_CORE},	{"n_cpus", RP_LEVEL_THREAD}};
	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
		json_kuint(j, levels[i].key, topo_n_units(topo, levels[i].level));
	json_kuint(j, "memory", topo_memory(topo));
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		put_ids(j, sets[i].key, topo_ids(topo, sets[i].which));
	json_karr(j, "cpus");
	RP_IDS_EACH (cpu, topo_ids(topo, RP_CPUS_ONLINE))
		put_cpu(j, topo, cpu);
	json_end_arr(j);
	json_karr(j, "nodes");
	RP_IDS_EACH (node, topo_ids(topo, RP_NODES_ONLINE))
		put_node(j, p, node);
	json_end_arr(j);
	json_karr(j, "notes");
	for (uint32_t i = 0; i < topo_n_notes(topo); i++)
		json_str(j, topo_note(topo, i));
	json_end_arr(j);
}

/* ---- topology: containers on CPUs ------------------------------------------------------------ */

/* A part of a container's CPUs: its exclusive or its shared ones. Equal sets are one object. */
struct use {
	struct iset *set;
	const struct ctr *ctr;
	bool exclusive;
};

struct uses {
	struct use *items;
	unsigned n, unconfined;
};

static int compare_sets(const struct iset *a, const struct iset *b, bool by_size)
{
	uint32_t first_a = rp_ids_first(a->ids), first_b = rp_ids_first(b->ids);
	if (by_size && a->count != b->count)
		return a->count < b->count ? -1 : 1;
	if (first_a != first_b)
		return first_a < first_b ? -1 : 1;
	return a == b ? 0 : strcmp(a->text, b->text);
}

/* Orders exclusive CPUs first, then smaller sets before the sets that contain them. */
static int compare_uses(const void *x, const void *y)
{
	const struct use *a = x, *b = y;
	if (a->exclusive != b->exclusive)
		return a->exclusive ? -1 : 1;
	int r = compare_sets(a->set, b->set, !a->exclusive);
	if (r)
		return r;
	return a->ctr->seq < b->ctr->seq ? -1 : a->ctr->seq > b->ctr->seq;
}

static int add_uses(struct cache *cache, struct uses *u, const struct ctr *ctr)
{
	const struct decision *d = &ctr->cur;
	struct rp_idset shared;
	if (!ctr_live(d->state))
		return 0;
	if (!d->cpus || !d->cpus->count) {
		u->unconfined++;
		return 0;
	}
	struct iset *exclusive = ctr_exclusive(cache, ctr);
	if (exclusive)
		u->items[u->n++] = (struct use){intern_ref(exclusive), ctr, true};
	rp_idset_andnot(&shared, d->cpus->ids, exclusive ? exclusive->ids : rp_ids_none());
	if (rp_ids_empty(rp_ids_of(&shared)))
		return 0;
	struct iset *set = intern_get(cache_sets(cache), rp_ids_of(&shared));
	if (!set)
		return -ENOMEM;
	u->items[u->n++] = (struct use){set, ctr, false};
	return 0;
}

static int collect_uses(struct cache *cache, struct uses *u)
{
	u->items = calloc(2 * (size_t)cache_n_ctrs(cache) + 1, sizeof *u->items);
	if (!u->items)
		return -ENOMEM;
	for (const struct ctr *ctr = cache_ctrs(cache); ctr; ctr = ctr->next) {
		int r = add_uses(cache, u, ctr);
		if (r)
			return r;
	}
	qsort(u->items, u->n, sizeof *u->items, compare_uses);
	return 0;
}

/* Writes the groups. measured: usage is collected, and each group gets the share of its CPUs in
 * that of its containers. */
static void put_groups(struct json *j, const struct uses *u, bool measured)
{
	json_karr(j, "groups");
	for (unsigned i = 0; i < u->n;) {
		const struct use *first = &u->items[i];
		int64_t used = 0;
		json_obj(j);
		json_kbool(j, "exclusive", first->exclusive);
		put_set(j, "cpus", first->set);
		json_karr(j, "containers");
		for (; i < u->n && u->items[i].set == first->set &&
		       u->items[i].exclusive == first->exclusive;
		     i++) {
			json_str(j, u->items[i].ctr->full_name);
			used += usage_cpu_milli(u->items[i].ctr) * first->set->count /
				u->items[i].ctr->cur.cpus->count;
		}
		json_end_arr(j);
		if (measured)
			json_kint(j, "cpu_used_milli", used);
		json_end_obj(j);
	}
	json_end_arr(j);
	json_kuint(j, "unconfined", u->unconfined);
}

/* Writes the CPUs that the policy reserves for the system. */
static void put_reserved(struct json *j, struct pipeline *p)
{
	const struct rp_ids online = topo_ids(pipeline_topo(p), RP_CPUS_ONLINE);
	struct rp_idset cpus;
	if (pipeline_allocatable(p, &cpus, NULL))
		rp_idset_copy(&cpus, online);
	rp_idset_andnot(&cpus, online, rp_ids_of(&cpus));
	put_ids(j, "reserved", rp_ids_of(&cpus));
}

static int put_topology(struct json *j, struct pipeline *p)
{
	struct uses u = {0};
	struct cache *cache = pipeline_cache(p);
	const struct instance *policy = pipeline_policy(p);
	int r = collect_uses(cache, &u);
	if (!r) {
		json_obj(j);
		put_text(j, "policy", policy ? instance_name(policy) : NULL);
		put_machine(j, p);
		put_reserved(j, p);
		put_speedselect(j, pipeline_topo(p), pipeline_root(p));
		put_groups(j, &u, pipeline_usage_stats(p)->on);
		json_end_obj(j);
	}
	for (unsigned i = 0; i < u.n; i++)
		intern_unref(cache_sets(cache), u.items[i].set);
	free(u.items);
	return r;
}

static int write_topology(struct pipeline *p, void *arg, struct buf *out, struct err *err)
{
	struct json j;
	json_init(&j, out);
	int r = put_topology(&j, p);
	return r ? err_errno(err, r, "topology") : out->failed;
}

static void topology_written(void *arg, const struct trial_result *res)
{
	struct buf out = BUF_INIT;
	bool done = res && res->outcome == TRIAL_DONE;
	if (done)
		(void)buf_add(&out, res->data, res->size);
	else
		document_error(&out, res ? res->err.text : "nri-rpd is stopping");
	job_end(arg, &out, done ? CTL_OK : CTL_FAILED);
	buf_fini(&out);
}

/* Shows the topology. Speed Select is read afresh, and its mailboxes are slow, so the document is
 * then written in a child process. */
enum call_result run_topology(struct call *call)
{
	struct ctl *ctl = call->ctl;
	struct err err = ERR_INIT;
	if (!fs_exists(pipeline_root(call->p), ISST_PATH)) {
		if (put_topology(&call->j, call->p))
			return call_fail(call, CTL_FAILED, "out of memory");
		return CALL_DONE;
	}
	if (ctl->n_plans >= CTL_PLANS_MAX)
		return call_fail(call, CTL_FAILED,
				 "%u requests that need a process are already in progress",
				 ctl->n_plans);
	struct job *job = job_new(call, &ctl->jobs);
	if (!job)
		return call_fail(call, CTL_FAILED, "too many requests are already waiting");
	job->plan = true;
	ctl->n_plans++;
	const struct attempt_spec spec = {.what = "the topology was written",
					  .fn = write_topology,
					  .done = topology_written,
					  .arg = job};
	int r = attempt_start(call->p, &spec, &err);
	if (!r)
		return CALL_LATER;
	job_drop(job, &ctl->jobs);
	return call_fail(call, CTL_FAILED, "%s", err_text(&err, r));
}
