/* SPDX-License-Identifier: Apache-2.0 */
/* Memory policy classes: reading, choice by annotation, nodes, and staging. */
#include "modules/lib/private/mempolicy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "modules/lib/private/annotation.h"
#include <nri-rp/lib/ctr.h>
#include <nri-rp/lib/section.h>

#define KEY "memory-policy.resource-policy.nri.io"
/* annotations of the memory-policy plugin of containers/nri-plugins */
#define PEER_CLASS "class.memory-policy.nri.io"
#define PEER_POLICY "policy.memory-policy.nri.io"
#define MAX_DISTANCE "max-dist:"

/* Linux's numbers. */
enum { MODE_DEFAULT, MODE_PREFERRED, MODE_BIND, MODE_LOCAL = 4, MODE_PREFERRED_MANY };

struct mempolicy_word {
	const char *name, *kernel;
	int64_t value;
};

static const struct mempolicy_word mempolicy_modes[] = {
	{"default", "MPOL_DEFAULT", MODE_DEFAULT},
	{"preferred", "MPOL_PREFERRED", MODE_PREFERRED},
	{"bind", "MPOL_BIND", MODE_BIND},
	{"interleave", "MPOL_INTERLEAVE", 3},
	{"local", "MPOL_LOCAL", MODE_LOCAL},
	{"preferred-many", "MPOL_PREFERRED_MANY", MODE_PREFERRED_MANY},
	{"weighted-interleave", "MPOL_WEIGHTED_INTERLEAVE", 6},
	{NULL, NULL, 0}};

enum { FLAG_STATIC = 1, FLAG_RELATIVE = 2, FLAG_BALANCING = 4 };

static const struct mempolicy_word mempolicy_flags[] = {
	{"static", "MPOL_F_STATIC_NODES", FLAG_STATIC},
	{"relative", "MPOL_F_RELATIVE_NODES", FLAG_RELATIVE},
	{"numa-balancing", "MPOL_F_NUMA_BALANCING", FLAG_BALANCING},
	{NULL, NULL, 0}};

static const struct mempolicy_word mempolicy_sets[] = {
	{"allowed", "allowed-mems", MEMPOLICY_ALLOWED},
	{"all", "all", MEMPOLICY_ALL},
	{"cpu-nodes", "cpu-nodes", MEMPOLICY_CPU_NODES},
	{"cpu-packages", "cpu-packages", MEMPOLICY_CPU_PACKAGES},
	{"within-socket", "within-socket", MEMPOLICY_WITHIN_SOCKET},
	{NULL, NULL, 0}};

static const struct mempolicy_word *mempolicy_word(const struct mempolicy_word *words,
						   const char *text)
{
	while (words->name && strcasecmp(words->name, text) != 0 &&
	       strcasecmp(words->kernel, text) != 0)
		words++;
	return words->name ? words : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int32_t read_flags(const struct modhost *h, rp_cfg list, struct mempolicy *p)
{
	int64_t bits = 0;
	for (uint32_t i = 0; i < h->config->count(h->ctx, list); i++) {
		rp_cfg node = h->config->item(h->ctx, list, i);
		const char *text = h->config->text(h->ctx, node, "");
		const struct mempolicy_word *w = mempolicy_word(mempolicy_flags, text);
		if (!w)
			return modhost_refuse(h, node, "memory policy %s: unknown flag \"%.64s\"",
					      p->name, text);
		if (bits & w->value)
			continue;
		bits |= w->value;
		(void)snprintf(p->flags + strlen(p->flags), sizeof p->flags - strlen(p->flags),
			       "%s%s", p->flags[0] ? "," : "", w->name);
	}
	p->relative = bits & FLAG_RELATIVE;
	bool over_nodes = p->mode != MODE_DEFAULT && p->mode != MODE_LOCAL;
	if ((bits && !over_nodes) || (bits & FLAG_STATIC && bits & FLAG_RELATIVE) ||
	    (bits & FLAG_BALANCING && p->mode != MODE_BIND))
		return modhost_refuse(
			h, list,
			"memory policy %s: the kernel does not accept the flags %s with this mode",
			p->name, p->flags);
	return 0;
}

static int32_t read_nodes(const struct modhost *h, rp_cfg node, struct mempolicy *p)
{
	struct rp_idset set;
	const char *text = h->config->text(h->ctx, node, "allowed");
	const struct mempolicy_word *w = mempolicy_word(mempolicy_sets, text);
	size_t len = strlen(MAX_DISTANCE);
	p->nodes = w ? (enum mempolicy_nodes)w->value : MEMPOLICY_LIST;
	if (w)
		return 0;
	if (strncmp(text, MAX_DISTANCE, len) == 0) {
		char *end;
		unsigned long distance = strtoul(text + len, &end, 10);
		p->nodes = MEMPOLICY_MAX_DISTANCE;
		p->distance = (uint32_t)distance;
		if (end != text + len && !*end && distance <= UINT8_MAX)
			return 0;
	}
	p->list = text;
	if (strlen(text) < MEMPOLICY_NODES_MAX && !rp_idset_parse(&set, text, RP_NODES_MAX) &&
	    !rp_ids_empty(rp_ids_of(&set)))
		return 0;
	return modhost_refuse(
		h, node,
		"memory policy %s: \"%.64s\" is neither a named set of nodes nor a list of nodes",
		p->name, text);
}

/* Reads a map with mode, nodes and flags; p->name is already set. */
static int32_t read_one(const struct modhost *h, rp_cfg node, struct mempolicy *p)
{
	const char *mode = section_text(h, node, "mode", "");
	const struct mempolicy_word *w = mempolicy_word(mempolicy_modes, mode);
	if (!w)
		return modhost_refuse(h, node, "memory policy %s: unknown mode \"%.64s\"", p->name,
				      mode);
	p->mode = w->value;
	int32_t r = read_nodes(h, section_get(h, node, "nodes"), p);
	return r ? r : read_flags(h, section_get(h, node, "flags"), p);
}

int32_t mempolicy_read(const struct modhost *h, struct blocks *memory, rp_cfg section,
		       struct mempolicies *ret)
{
	rp_cfg list = section_get(h, section, "memoryPolicyClasses");
	uint32_t n = h->config->count(h->ctx, list);
	*ret = (struct mempolicies){blocks_alloc(memory, n, sizeof *ret->list), 0};
	if (!ret->list)
		return modhost_no_memory(h);
	for (; ret->n < n; ret->n++) {
		rp_cfg node = h->config->item(h->ctx, list, ret->n);
		struct mempolicy *p = &ret->list[ret->n];
		p->name = section_text(h, node, "name", "");
		int32_t r = read_one(h, node, p);
		if (r)
			return r;
		if (mempolicy_find(ret, p->name) != MEMPOLICY_NONE)
			return modhost_refuse(h, node, "two memory policies are named \"%s\"",
					      p->name);
	}
	return 0;
}

int32_t mempolicy_find(const struct mempolicies *classes, const char *name)
{
	for (uint32_t i = 0; i < classes->n; i++)
		if (strcmp(classes->list[i].name, name) == 0)
			return (int32_t)i;
	return MEMPOLICY_NONE;
}

/* ---- choice ---------------------------------------------------------------------------------- */

static int32_t mempolicy_refuse(const struct modhost *h, rp_txn txn, rp_ctr ctr, const char *why)
{
	modhost_log(h, RP_LOG_WARNING, ctr, "%s", why);
	modhost_note(h, ctr, "%s", why);
	return h->cache->set_degraded(h->ctx, txn, ctr, why);
}

/* Chooses the memory policy of a container. Returns 0 with *ret filled, 1 if there is none, or
 * -RP_ENOMEM. */
static int32_t mempolicy_choose(const struct modhost *h, rp_txn txn, const struct rp_ctr_info *info,
				const struct mempolicies *classes, int32_t fallback,
				struct mempolicy *ret)
{
	rp_cfg map;
	char why[MODHOST_TEXT_MAX];
	const char *name = h->cache->annotation(h->ctx, info->ctr, KEY, NULL);
	const char *text = name ? NULL : h->cache->annotation(h->ctx, info->ctr, PEER_POLICY, NULL);
	if (!name && !text)
		name = h->cache->annotation(h->ctx, info->ctr, PEER_CLASS, NULL);
	if (text) {
		*ret = (struct mempolicy){.name = PEER_POLICY};
		if (!annotation_parse(h, "annotation " PEER_POLICY, text, &map) &&
		    !read_one(h, map, ret))
			return 0;
		(void)snprintf(why, sizeof why,
			       "annotation " PEER_POLICY
			       " is not a memory policy: the container starts without one");
		int32_t r = mempolicy_refuse(h, txn, info->ctr, why);
		return r ? r : 1;
	}
	int32_t class = name && *name ? mempolicy_find(classes, name) : fallback;
	if (class != MEMPOLICY_NONE) {
		*ret = classes->list[class];
		return 0;
	}
	if (!name || !*name)
		return 1;
	(void)snprintf(why, sizeof why,
		       "unknown memory policy class \"%.64s\": the container starts without one",
		       name);
	int32_t r = mempolicy_refuse(h, txn, info->ctr, why);
	return r ? r : 1;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Stores the nodes with memory of the packages of these CPUs. A node without CPUs belongs to the
 * package of the closest node. */
static void package_nodes(const struct modhost *h, struct rp_ids cpus, struct rp_ids with_memory,
			  struct rp_idset *ret)
{
	struct rp_idset packages;
	rp_idset_clear(&packages);
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, cpus) {
		struct rp_cpu_info c = {.size = sizeof c};
		if (!h->topology->cpu(h->ctx, cpu, &c))
			rp_idset_add(&packages, c.package_id);
	}
	RP_IDS_EACH (id, with_memory) {
		struct rp_node_info node = {.size = sizeof node};
		if (!h->topology->node(h->ctx, id, &node) &&
		    rp_ids_has(rp_ids_of(&packages), node.package_id))
			rp_idset_add(ret, id);
	}
}

static void near_nodes(const struct modhost *h, struct rp_ids from, struct rp_ids with_memory,
		       uint32_t distance, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (to, with_memory) {
		RP_IDS_EACH (node, from) {
			uint32_t d = h->topology->distance(h->ctx, node, to);
			if (d && d <= distance)
				rp_idset_add(ret, to);
		}
	}
}

/* Stores the nodes of a memory policy, limited to the nodes that the container may use: the kernel
 * refuses others. */
static void mempolicy_set_of(const struct modhost *h, const struct mempolicy *p, struct rp_ids cpus,
			     struct rp_ids allowed, struct rp_idset *ret)
{
	struct rp_idset with_memory;
	modhost_set(h, RP_NODES_MEMORY, &with_memory);
	rp_idset_copy(ret, allowed);
	switch (p->nodes) {
	case MEMPOLICY_ALLOWED:
	case MEMPOLICY_ALL:
		break;
	case MEMPOLICY_CPU_NODES:
		ctr_memory_near(h, cpus, ret);
		break;
	case MEMPOLICY_CPU_PACKAGES:
	case MEMPOLICY_WITHIN_SOCKET:
		package_nodes(h, cpus, rp_ids_of(&with_memory), ret);
		break;
	case MEMPOLICY_MAX_DISTANCE:
		ctr_memory_near(h, cpus, ret);
		near_nodes(h, rp_ids_of(ret), rp_ids_of(&with_memory), p->distance, &with_memory);
		rp_idset_copy(ret, rp_ids_of(&with_memory));
		break;
	case MEMPOLICY_LIST:
		if (rp_idset_parse(ret, p->list, RP_NODES_MAX))
			rp_idset_clear(ret);
		break;
	}
	rp_idset_and(ret, rp_ids_of(ret), allowed);
}

/* Converts node numbers to positions in the allowed set, as MPOL_F_RELATIVE_NODES requires. */
static void to_positions(struct rp_ids nodes, struct rp_ids allowed, struct rp_idset *ret)
{
	uint32_t at = 0;
	rp_idset_clear(ret);
	RP_IDS_EACH (id, allowed) {
		if (rp_ids_has(nodes, id))
			rp_idset_add(ret, at);
		at++;
	}
}

/* Reduces the nodes to the nearest one, since MPOL_PREFERRED accepts only one. */
static void keep_nearest(const struct modhost *h, struct rp_ids cpus, struct rp_idset *nodes)
{
	struct rp_idset near;
	ctr_memory_near(h, cpus, &near);
	rp_idset_and(&near, rp_ids_of(&near), rp_ids_of(nodes));
	uint32_t first =
		rp_ids_first(rp_ids_empty(rp_ids_of(&near)) ? rp_ids_of(nodes) : rp_ids_of(&near));
	rp_idset_clear(nodes);
	rp_idset_add(nodes, first);
}

/* ---- staging --------------------------------------------------------------------------------- */

static bool mempolicy_supported(const struct modhost *h)
{
	return h->runtime && (h->runtime->flags(h->ctx) & RP_RUNTIME_CAN_MEMPOLICY);
}

static int32_t mempolicy_put(const struct modhost *h, rp_txn txn, rp_ctr ctr,
			     const struct mempolicy *p, struct rp_ids nodes)
{
	char text[MEMPOLICY_NODES_MAX];
	const struct rp_host_cache *c = h->cache;
	int32_t r = c->set_int(h->ctx, txn, ctr, RP_F_MEMPOLICY_MODE, p->mode);
	if (!r && !rp_ids_empty(nodes))
		r = c->set_text(h->ctx, txn, ctr, RP_F_MEMPOLICY_NODES,
				modhost_set_text(nodes, text, sizeof text));
	if (!r && p->flags[0])
		r = c->set_text(h->ctx, txn, ctr, RP_F_MEMPOLICY_FLAGS, p->flags);
	if (r == -RP_ENOMEM)
		return r;
	if (r)
		return mempolicy_refuse(
			h, txn, ctr,
			"its memory policy is ignored: another component requested one");
	modhost_note(h, ctr, "memory policy %s, nodes %s", p->name,
		     rp_ids_empty(nodes) ? "none" : modhost_set_text(nodes, text, sizeof text));
	return 0;
}

int32_t mempolicy_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr,
			const struct mempolicies *classes, int32_t fallback)
{
	struct mempolicy p;
	struct rp_ctr_info info;
	struct rp_idset nodes, allowed, cpus;
	int32_t r = ctr_info(h, ctr, &info);
	if (r || info.state != RP_STATE_CREATING)
		return 0;
	r = mempolicy_choose(h, txn, &info, classes, fallback, &p);
	if (r)
		return r > 0 ? 0 : r;
	if (!mempolicy_supported(h))
		return mempolicy_refuse(h, txn, ctr,
					"the runtime sets no memory policies: NRI 0.12 or later is "
					"needed");
	rp_idset_clear(&nodes);
	if (p.mode == MODE_DEFAULT || p.mode == MODE_LOCAL)
		return mempolicy_put(h, txn, ctr, &p, rp_ids_of(&nodes));
	rp_idset_copy(&cpus, info.cpus);
	rp_idset_copy(&allowed, info.mems);
	if (rp_ids_empty(info.cpus))
		modhost_set(h, RP_CPUS_ONLINE, &cpus);
	if (rp_ids_empty(info.mems))
		modhost_set(h, RP_NODES_MEMORY, &allowed);
	mempolicy_set_of(h, &p, rp_ids_of(&cpus), rp_ids_of(&allowed), &nodes);
	if (rp_ids_empty(rp_ids_of(&nodes)))
		return mempolicy_refuse(h, txn, ctr,
					"none of the nodes of its memory policy is among its "
					"memory nodes: it starts without one");
	if (p.mode == MODE_PREFERRED)
		keep_nearest(h, rp_ids_of(&cpus), &nodes);
	if (p.relative) {
		rp_idset_copy(&cpus, rp_ids_of(&nodes));
		to_positions(rp_ids_of(&cpus), rp_ids_of(&allowed), &nodes);
	}
	return mempolicy_put(h, txn, ctr, &p, rp_ids_of(&nodes));
}
