/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the kind of memory of a node. A node with CPUs is DRAM, also if all of them are
 * offline; one
 * without memory is none. Memory without CPUs is classified, in this order, by
 *   the device it comes from, if the dax driver made it into memory: persistent memory or CXL;
 *   its memory tier: that of the DRAM nodes is DRAM, faster is HBM, slower is CXL, five times as
 *   slow PMEM, which the dax driver assumes if the firmware reports nothing;
 *   its size: less than the average DRAM node's is HBM, else PMEM.
 */
#include "core/lib/topo/memtype.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/util/str.h"

#define DAX_DIR "sys/bus/dax/devices"
#define TIER_DIR "sys/devices/virtual/memory_tiering"
#define DAX_SLOWNESS 5u /* tier of dax memory without firmware data, relative to DRAM */
#define UNTOLD UINT8_MAX
#define NO_TIER UINT32_MAX

struct dax_nodes {
	const struct reader *r;
	struct rp_idset *nodes;
};

struct tiers {
	struct reader *r;
	uint32_t *of; /* type by index of the node */
};

/* ---- by device ------------------------------------------------------------------------------- */

static uint8_t type_of_device(const char *path)
{
	static const struct {
		const char *part;
		uint8_t type;
	} parts[] = {
		{"/ndbus", RP_MEM_PMEM},
		{"/cxl", RP_MEM_CXL},
		{"/ACPI0017", RP_MEM_CXL},
		{"/decoder", RP_MEM_CXL},
	};
	for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strstr(path, parts[i].part))
			return parts[i].type;
	return UNTOLD;
}

static int read_dax(const char *name, void *arg)
{
	struct reader *r = arg;
	char path[PATH_MAX], real[PATH_MAX];
	int64_t node;
	(void)snprintf(path, sizeof path, DAX_DIR "/%s/target_node", name);
	if (fs_read_i64(&r->t->root, path, &node) || node < 0 || node >= RP_NODES_MAX)
		return 0;
	uint16_t index = topo_node_index(r->t, (uint32_t)node);
	(void)snprintf(path, sizeof path, DAX_DIR "/%s", name);
	if (index == TOPO_NO_INDEX || fs_realpath(&r->t->root, path, real, sizeof real))
		return 0;
	struct topo_node *n = &r->t->nodes[index];
	if (n->type == UNTOLD)
		n->type = type_of_device(real);
	return 0;
}

static int note_dax_node(const char *name, void *arg)
{
	struct rp_idset *nodes = ((struct dax_nodes *)arg)->nodes;
	const struct reader *r = ((struct dax_nodes *)arg)->r;
	char path[PATH_MAX];
	int64_t node;
	(void)snprintf(path, sizeof path, DAX_DIR "/%s/target_node", name);
	if (!fs_read_i64(&r->t->root, path, &node) && node >= 0 && node < RP_NODES_MAX)
		rp_idset_add(nodes, (uint32_t)node);
	return 0;
}

/* ---- device memory --------------------------------------------------------------------------- */

/* Notes the nodes of the setting that have CPUs: their memory stays in use. */
static void note_nodes_with_cpus(struct reader *r, struct rp_ids named)
{
	struct rp_idset with_cpus;
	char text[256];
	rp_idset_clear(&with_cpus);
	for (uint32_t i = 0; i < r->t->n_nodes; i++)
		if (!rp_ids_empty(r->t->nodes[i].cpus) && rp_ids_has(named, r->t->nodes[i].id))
			rp_idset_add(&with_cpus, r->t->nodes[i].id);
	if (rp_ids_empty(rp_ids_of(&with_cpus)))
		return;
	(void)rp_ids_format(rp_ids_of(&with_cpus), text, sizeof text);
	reader_note(r,
		    "topology.deviceMemoryNodes: nodes with CPUs are not memory of devices, "
		    "containers still use them: %s",
		    text);
}

/* Finds the nodes with device memory, by the setting or by the firmware's description. */
static void find_device_nodes(struct reader *r, struct rp_idset *ret)
{
	const char *setting = r->t->device_nodes;
	struct rp_idset dax;
	rp_idset_clear(ret);
	if (str_eq(setting, "none"))
		return;
	if (*setting && !str_eq(setting, "auto")) {
		(void)rp_idset_parse(ret, setting, RP_NODES_MAX);
		note_nodes_with_cpus(r, rp_ids_of(ret));
		return;
	}
	if (fs_read_ids(&r->t->root, NODE_DIR "/has_generic_initiator", RP_NODES_MAX, ret)) {
		rp_idset_clear(ret);
		return;
	}
	rp_idset_clear(&dax);
	(void)fs_list(&r->t->root, DAX_DIR, note_dax_node, &(struct dax_nodes){r, &dax});
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&dax));
}

void reader_hide_device_memory(struct reader *r)
{
	struct topo *t = r->t;
	struct rp_idset device, hidden;
	char text[256];
	find_device_nodes(r, &device);
	rp_idset_clear(&hidden);
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct topo_node *n = &t->nodes[i];
		if (!n->has_memory || !rp_ids_empty(n->cpus) ||
		    !rp_ids_has(rp_ids_of(&device), n->id))
			continue;
		n->has_memory = n->normal = false;
		n->memory = 0;
		rp_idset_add(&hidden, n->id);
	}
	if (rp_ids_empty(rp_ids_of(&hidden)))
		return;
	t->hides_memory = true;
	(void)rp_ids_format(rp_ids_of(&hidden), text, sizeof text);
	reader_note(r, "memory nodes of devices, which containers do not use: %s", text);
}

/* ---- by tier --------------------------------------------------------------------------------- */

static int read_tier(const char *name, void *arg)
{
	struct tiers *tiers = arg;
	struct topo *t = tiers->r->t;
	struct rp_idset nodes;
	char path[128], rest;
	unsigned tier;
	if (sscanf(name, "memory_tier%6u%c", &tier, &rest) != 1)
		return 0;
	(void)snprintf(path, sizeof path, TIER_DIR "/memory_tier%u/nodelist", tier);
	if (fs_read_ids(&t->root, path, RP_NODES_MAX, &nodes)) {
		reader_note(tiers->r, "%s: not a list of nodes, ignored", path);
		return 0;
	}
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (rp_ids_has(rp_ids_of(&nodes), t->nodes[i].id))
			tiers->of[i] = tier;
	return 0;
}

/* Returns the slowest tier of a DRAM node, because HBM can be in sockets, too. */
static uint32_t dram_tier(const struct topo *t, const uint32_t *tier_of)
{
	uint32_t slowest = NO_TIER;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (t->nodes[i].type == RP_MEM_DRAM && tier_of[i] != NO_TIER &&
		    (slowest == NO_TIER || tier_of[i] > slowest))
			slowest = tier_of[i];
	return slowest;
}

static int types_of_tiers(struct reader *r)
{
	struct topo *t = r->t;
	struct tiers tiers = {r, arena_array(r->scratch, t->n_nodes, sizeof *tiers.of)};
	if (!tiers.of)
		return reader_no_memory(r);
	memset(tiers.of, 0xff, t->n_nodes * sizeof *tiers.of);
	(void)fs_list(&t->root, TIER_DIR, read_tier, &tiers);
	uint32_t dram = dram_tier(t, tiers.of);
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct topo_node *n = &t->nodes[i];
		if (n->type != UNTOLD || tiers.of[i] == NO_TIER || dram == NO_TIER)
			continue;
		if (tiers.of[i] < dram)
			n->type = RP_MEM_HBM;
		else if (tiers.of[i] > dram)
			n->type = tiers.of[i] >= DAX_SLOWNESS * dram ? RP_MEM_PMEM : RP_MEM_CXL;
		else
			n->type = RP_MEM_DRAM;
	}
	return 0;
}

/* ---- by size --------------------------------------------------------------------------------- */

static void types_of_sizes(struct topo *t)
{
	uint64_t sum = 0, n = 0;
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		if (t->nodes[i].type == RP_MEM_DRAM && t->nodes[i].memory) {
			/* divided first, so that it does not overflow */
			sum += t->nodes[i].memory / RP_NODES_MAX;
			n++;
		}
	}
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct topo_node *node = &t->nodes[i];
		if (node->type != UNTOLD)
			continue;
		bool small = n && node->memory && node->memory / RP_NODES_MAX < sum / n;
		node->type = small ? RP_MEM_HBM : RP_MEM_PMEM;
	}
}

/* ---- all nodes ------------------------------------------------------------------------------- */

static int find_cpu(const char *name, void *arg)
{
	unsigned cpu;
	char rest;
	return sscanf(name, "cpu%5u%c", &cpu, &rest) == 1;
}

/* Returns true if the node has offline CPUs, which are linked but not in its list. */
static bool has_offline_cpus(const struct topo *t, const struct topo_node *n)
{
	char path[64];
	(void)snprintf(path, sizeof path, NODE_DIR "/node%u", n->id);
	return fs_list(&t->root, path, find_cpu, NULL) == 1;
}

int reader_memory_types(struct reader *r)
{
	struct topo *t = r->t;
	uint32_t n_untold = 0;
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct topo_node *n = &t->nodes[i];
		n->type = UNTOLD;
		if (!rp_ids_empty(n->cpus))
			n->type = RP_MEM_DRAM;
		else if (!n->has_memory)
			n->type = RP_MEM_NONE;
		else if (has_offline_cpus(t, n))
			n->type = RP_MEM_DRAM;
		n_untold += n->type == UNTOLD;
	}
	if (!n_untold)
		return 0;
	(void)fs_list(&t->root, DAX_DIR, read_dax, r);
	int rc = types_of_tiers(r);
	types_of_sizes(t);
	return rc;
}
