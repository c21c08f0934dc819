/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locates a device. The search goes up from its directory to the first one below /sys/devices that
 * names CPUs or a node. A device made of others is where these are.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/topo/impl.h"
#include "core/lib/util/str.h"

#define DEVICES "sys/devices/"
#define VFIO "sys/devices/virtual/vfio/"
/* depth of block devices that consist of others (dm on md on multipath on …) */
#define DEVICE_DEPTH_MAX 8u
/* largest number of devices that a device consists of; also ends a cycle of slaves */
#define DEVICE_VISITS_MAX 256u

struct search {
	const struct topo *t;
	struct rp_idset *cpus, *nodes;
	const char *folder; /* directory of the current list */
	unsigned n_visits, depth;
};

/* ---- a single directory ---------------------------------------------------------------------- */

static int read_list(const struct topo *t, const char *dir, const char *file, struct rp_idset *ret)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path)
		return -ENAMETOOLONG;
	int rc = fs_read_ids(&t->root, path, RP_CPUS_MAX, ret);
	if (rc)
		return rc;
	rp_idset_and(ret, rp_ids_of(ret), t->sets[RP_CPUS_ONLINE]);
	return rp_ids_empty(rp_ids_of(ret)) ? -ENOENT : 0;
}

/* Reads the node that the device reports. -1 is the kernel's "unknown"; the local CPUs that it
 * lists then are all CPUs. */
static int read_node(const struct topo *t, const char *dir, int64_t *ret)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof path, "%s/numa_node", dir) >= (int)sizeof path)
		return -ENAMETOOLONG;
	return fs_read_i64(&t->root, path, ret);
}

/* Returns true for the directory of a node, whose place is the node. */
static bool is_node_dir(const char *dir, uint32_t *ret)
{
	char rest;
	return sscanf(dir, NODE_DIR "/node%5u%c", ret, &rest) == 1;
}

/* Adds the CPUs of the nodes, or of the nodes closest to them if they have none. */
static void add_cpus_of_nodes(const struct topo *t, struct rp_ids nodes, struct rp_idset *cpus)
{
	uint32_t closest = UINT32_MAX;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (rp_ids_has(nodes, t->nodes[i].id))
			rp_idset_or(cpus, rp_ids_of(cpus), t->nodes[i].cpus);
	if (!rp_ids_empty(rp_ids_of(cpus)))
		return;
	for (unsigned pass = 0; pass < 2; pass++) {
		RP_IDS_EACH (node, nodes) {
			for (uint32_t i = 0; i < t->n_nodes; i++) {
				uint32_t d = topo_distance(t, node, t->nodes[i].id);
				if (!d || rp_ids_empty(t->nodes[i].cpus))
					continue;
				if (pass == 0 && d < closest)
					closest = d;
				else if (pass == 1 && d == closest)
					rp_idset_or(cpus, rp_ids_of(cpus), t->nodes[i].cpus);
			}
		}
	}
}

static void add_nodes_of_cpus(const struct topo *t, struct rp_ids cpus, struct rp_idset *nodes)
{
	RP_IDS_EACH (cpu, cpus) {
		rp_idset_add(nodes, t->nodes[t->cpus[topo_cpu_index(t, cpu)].node].id);
	}
}

void topo_nodes_near(const struct topo *t, struct rp_ids nodes, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (node, nodes) {
		struct rp_idset one, cpus;
		uint32_t index = topo_node_index(t, node);
		rp_idset_clear(&one);
		rp_idset_clear(&cpus);
		rp_idset_add(&one, node);
		if (index != TOPO_NO_INDEX && rp_ids_empty(t->nodes[index].cpus))
			add_cpus_of_nodes(t, rp_ids_of(&one), &cpus);
		if (rp_ids_empty(rp_ids_of(&cpus)))
			rp_idset_add(ret, node);
		else
			add_nodes_of_cpus(t, rp_ids_of(&cpus), ret);
	}
}

/* Adds the place that a directory names. Returns false if it names none. */
static bool add_place(struct search *s, const char *dir)
{
	static const char *const lists[] = {"local_cpulist", "cpulist", "cpulistaffinity",
					    "shared_cpu_list"};
	const struct topo *t = s->t;
	struct rp_idset cpus, nodes;
	uint32_t node;
	int64_t told = 0;
	rp_idset_clear(&cpus);
	rp_idset_clear(&nodes);
	bool says_node = read_node(t, dir, &told) == 0;
	if (says_node && told >= 0 && told < RP_NODES_MAX &&
	    topo_node_index(t, (uint32_t)told) != TOPO_NO_INDEX)
		rp_idset_add(&nodes, (uint32_t)told);
	else if (is_node_dir(dir, &node) && topo_node_index(t, node) != TOPO_NO_INDEX)
		rp_idset_add(&nodes, node);
	for (unsigned i = says_node && told < 0; i < sizeof lists / sizeof lists[0]; i++) {
		if (read_list(t, dir, lists[i], &cpus) == 0)
			break;
		rp_idset_clear(&cpus);
	}
	if (rp_ids_empty(rp_ids_of(&cpus)) && rp_ids_empty(rp_ids_of(&nodes)))
		return false;
	if (rp_ids_empty(rp_ids_of(&nodes)))
		add_nodes_of_cpus(t, rp_ids_of(&cpus), &nodes);
	if (rp_ids_empty(rp_ids_of(&cpus)))
		add_cpus_of_nodes(t, rp_ids_of(&nodes), &cpus);
	rp_idset_or(s->cpus, rp_ids_of(s->cpus), rp_ids_of(&cpus));
	rp_idset_or(s->nodes, rp_ids_of(s->nodes), rp_ids_of(&nodes));
	return true;
}

/* ---- upward search and component devices ----------------------------------------------------- */

static void device_visit(struct search *s, const char *path);

static int visit_part(const char *name, void *arg)
{
	struct search *s = arg;
	char path[PATH_MAX];
	const char *folder = s->folder;
	if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
		device_visit(s, path);
	s->folder = folder;
	return s->n_visits >= DEVICE_VISITS_MAX;
}

static void visit_parts(struct search *s, const char *folder)
{
	s->folder = folder;
	(void)fs_list(&s->t->root, folder, visit_part, s);
}

static bool cut_last(char *path)
{
	char *slash = strrchr(path, '/');
	if (!slash || slash < path + sizeof DEVICES - 1)
		return false;
	*slash = '\0';
	return true;
}

/* Visits the component devices, which are listed below the device, or below the whole device of a
 * partition. */
static void visit_slaves(struct search *s, const char *device)
{
	char dir[PATH_MAX], folder[PATH_MAX];
	(void)snprintf(dir, sizeof dir, "%s", device);
	for (unsigned i = 0; i < 2; i++) {
		if (snprintf(folder, sizeof folder, "%s/slaves", dir) < (int)sizeof folder)
			visit_parts(s, folder);
		if (!cut_last(dir))
			return;
	}
}

static void device_visit(struct search *s, const char *path)
{
	char dir[PATH_MAX], folder[PATH_MAX];
	unsigned group;
	char rest;
	if (s->depth >= DEVICE_DEPTH_MAX || s->n_visits++ >= DEVICE_VISITS_MAX ||
	    fs_realpath(&s->t->root, path, dir, sizeof dir) || !str_has_prefix(dir, DEVICES))
		return;
	s->depth++;
	visit_slaves(s, dir);
	if (sscanf(dir, VFIO "%9u%c", &group, &rest) == 1) {
		(void)snprintf(folder, sizeof folder, "sys/kernel/iommu_groups/%u/devices", group);
		visit_parts(s, folder);
	}
	s->depth--;
	while (!add_place(s, dir) && cut_last(dir))
		;
}

/* Parses "8:0", "b8:0" or "c1:3". */
static int parse_number(const char *text, char *kind, unsigned *major, unsigned *minor)
{
	char rest;
	*kind = '\0';
	if (text[0] == 'b' || text[0] == 'c')
		*kind = *text++;
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	return sscanf(text, "%7u:%7u%c", major, minor, &rest) == 2 ? 0 : -EINVAL;
}

static void visit_number(struct search *s, const char *kind, unsigned major, unsigned minor)
{
	char path[64];
	(void)snprintf(path, sizeof path, "sys/dev/%s/%u:%u", kind, major, minor);
	device_visit(s, path);
}

int topo_device_near(const struct topo *t, const char *device, struct rp_idset *ret_cpus,
		     struct rp_idset *ret_nodes)
{
	struct rp_idset cpus, nodes;
	struct search s = {.t = t, .cpus = &cpus, .nodes = &nodes};
	unsigned major, minor;
	char kind;
	rp_idset_clear(&cpus);
	rp_idset_clear(&nodes);
	if (str_has_prefix(device, "/sys/")) {
		device_visit(&s, device);
	} else if (parse_number(device, &kind, &major, &minor) == 0) {
		if (kind != 'c')
			visit_number(&s, "block", major, minor);
		if (kind == 'c' || (!kind && rp_ids_empty(rp_ids_of(&cpus))))
			visit_number(&s, "char", major, minor);
	} else {
		return -EINVAL;
	}
	if (rp_ids_empty(rp_ids_of(&nodes)))
		return -ENOENT;
	rp_idset_copy(ret_cpus, rp_ids_of(&cpus));
	rp_idset_copy(ret_nodes, rp_ids_of(&nodes));
	return 0;
}
