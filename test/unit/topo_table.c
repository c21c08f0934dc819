/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_table ROOT        prints what core/lib/topo reads below ROOT, for people
 * topo_table -m ROOT     the same through the getters, a line a thing, for test/topo-hwloc.py
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/topo/topo.h"
#include "core/lib/util/cleanup.h"

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
	bool machine = argc == 3 && strcmp(argv[1], "-m") == 0;
	if (argc != 2 && !machine) {
		(void)fprintf(stderr, "usage: topo_table [-m] ROOT\n");
		return 2;
	}
	if (fs_root_open(&root, argv[argc - 1], &err) || topo_read(&root, &t, &err)) {
		(void)fprintf(stderr, "topo_table: %s\n", err.text);
		return 1;
	}
	fs_root_close(&root);
	if (machine) {
		put_machine(t);
	} else {
		_cleanup_(buf_fini) struct buf out = BUF_INIT;
		(void)topo_describe(t, &out);
		(void)fputs(buf_text(&out), stdout);
	}
	topo_unref(t);
	return 0;
}
