/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static-pools policy: pools of ready-made CPU lists, as CMK has them. A container asks by its
 * environment or by `cmk isolate` in its command line, and gets so many lists of an exclusive pool
 * for itself, or one list of another pool together with others. Nobody is ever moved.
 *
 * Which lists a container has is kept with it, by their texts; the users of a list are an index
 * over that.
 *
 *	config.c  section → pools and lists     ask.c  what a container asks for
 *	static-pools.c  the callbacks           report.c  zones, metrics
 */
#ifndef STATIC_POOLS_H
#define STATIC_POOLS_H

#include "modules/lib/life.h"

#define NAME_MAX_LEN 63u
#define LIST_TEXT_MAX 255u
#define LISTS_MAX 4096u
#define SOCKET_ANY (-1)
#define CORES_RESOURCE "cmk.intel.com/exclusive-cores" /* lists of exclusive pools */
#define CMK_LABEL "cmk.intel.com/cmk-node"
#define CMK_TAINT "cmk"

/* Whoever has it runs on its CPUs. */
struct list {
	char text[LIST_TEXT_MAX + 1]; /* as configured: containers are told this */
	struct rp_idset cpus;
	int64_t socket;
	uint32_t users;
	bool alone; /* no other list has a CPU of it */
};

struct pool {
	char name[NAME_MAX_LEN + 1];
	bool exclusive;
	uint32_t first, n; /* lists */
};

struct rp_plan {
	rp_cfg section;
	struct pool *pools;
	uint32_t n_pools;
	struct list *lists;
	uint32_t n_lists;
	bool label, taint;
};

extern const struct rp_schema pools_schema;
int32_t plan_new(const struct modhost *h, rp_cfg section, struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
struct pool *plan_pool(const struct rp_plan *p, const char *name); /* or NULL */
/* The texts of a pool's lists, with commas. Free it; NULL: out of memory. */
char *plan_lists_text(const struct rp_plan *p, const struct pool *pool);

/* ---- what a container asks for (ask.c) ------------------------------------------------------- */

struct ask {
	char pool[NAME_MAX_LEN + 1];
	int64_t socket; /* or SOCKET_ANY */
	int64_t n; /* lists of an exclusive pool */
	bool no_affinity; /* it pins itself */
	/* What follows `cmk isolate` in its command line; 0: that is not there. */
	const char **args;
	uint32_t n_args;
	char *words; /* what args may point into */
};

/* 0, or -RP_ENOMEM. ask_fini() in any case. */
int32_t ask_of(const struct modhost *h, rp_ctr ctr, struct ask *ret);
void ask_fini(struct ask *a);

/* ---- the instance ---------------------------------------------------------------------------- */

struct rp_instance {
	LIFE;
	uint64_t placed, refused;
};

extern const struct rp_zones pools_zones;
extern const struct rp_metrics pools_metrics;

#endif
