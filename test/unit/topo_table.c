/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_table ROOT        prints the machine below ROOT as core/lib/topo reads it, one line for each
 *                        unit, node and cache, for test/topo-hwloc.py
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/lib/topo/topo.h"

static void put_set(struct rp_ids ids)
{
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, text, sizeof text);
	(void)puts(text);
}

static void put_units(const struct topo *t, uint32_t level, const char *name)
{
	struct rp_unit_info u = {.size = sizeof u};
	for (uint32_t i = 0; topo_unit(t, level, i, &u) == 0; i++) {
		(void)printf("%s %u ", name, u.id);
		put_set(u.cpus);
	}
}

static void put_machine(const struct topo *t)
{
	static const struct {
		uint32_t level;
		const char *name;
	} levels[] = {
		{RP_LEVEL_PACKAGE, "package"}, {RP_LEVEL_DIE, "die"}, {RP_LEVEL_CLUSTER, "cluster"},
		{RP_LEVEL_CORE, "core"},       {RP_LEVEL_L3, "l3"},   {RP_LEVEL_L2, "l2"},
		{RP_LEVEL_THREAD, "thread"},   {RP_LEVEL_LLC, "llc"},
	};
	for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++)
		put_units(t, levels[i].level, levels[i].name);
	RP_IDS_EACH (id, topo_ids(t, RP_NODES_ONLINE)) {
		struct rp_node_info n = {.size = sizeof n};
		(void)topo_node(t, id, &n);
		(void)printf("node %u %s %" PRIu64 " ", n.id, topo_memory_type_name(n.type),
			     n.memory);
		put_set(n.cpus);
	}
	struct rp_cache_info c = {.size = sizeof c};
	for (uint32_t i = 0; topo_cache(t, i, &c) == 0; i++) {
		(void)printf("cache %u %u %u %" PRIu64 " ", c.level, c.type, c.id, c.bytes);
		put_set(c.cpus);
	}
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct fs_root root;
	struct topo *t;
	if (argc != 2) {
		(void)fprintf(stderr, "usage: topo_table ROOT\n");
		return 2;
	}
	if (fs_root_open(&root, argv[1], &err) || topo_read(&root, &t, &err)) {
		(void)fprintf(stderr, "topo_table: %s\n", err.text);
		return 1;
	}
	fs_root_close(&root);
	put_machine(t);
	topo_free(t);
	return 0;
}
