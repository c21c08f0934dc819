/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static-pools policy: pools of configured CPU lists, as in CMK. A container requests lists
 * by environment variables or by `cmk isolate` in its command line. It gets the requested number
 * of lists of an exclusive pool, or one list of another pool, which it shares. Containers never
 * move.
 *
 * The texts of its lists are saved with each container. The number of users of a list is counted
 * from these.
 *
 *	config.c  section → pools and lists     ask.c  request of a container
 *	static-pools.c  the callbacks           report.c  zones, metrics
 */
#pragma once

#include <nri-rp/lib/life.h>

#define NAME_MAX_LEN 63u
#define LIST_TEXT_MAX 255u
#define LISTS_MAX 4096u
#define SOCKET_ANY (-1)
/* extended resource: number of lists of exclusive pools */
#define CORES_RESOURCE "cmk.intel.com/exclusive-cores"
#define CMK_LABEL "cmk.intel.com/cmk-node"
#define CMK_TAINT "cmk"

/* List of CPUs. Containers with the list run on these CPUs. */
struct list {
	char text[LIST_TEXT_MAX + 1]; /* text as configured, published to containers */
	struct rp_idset cpus;
	int64_t socket;
	uint32_t users;
	bool alone; /* no other list contains one of the CPUs */
};

struct pool {
	char name[NAME_MAX_LEN + 1];
	bool exclusive;
	uint32_t first, n; /* range of the pool's lists in plan->lists */
};

struct rp_plan {
	struct pool *pools;
	uint32_t n_pools;
	struct list *lists;
	uint32_t n_lists;
	bool label, taint;
};

extern const struct rp_schema pools_schema;
int32_t plan_read(const struct modhost *h, rp_cfg section, struct rp_plan *p);
void plan_fini(struct rp_plan *p);
/* Returns the pool of that name; NULL: none. */
struct pool *plan_pool(const struct rp_plan *p, const char *name);
/* Returns the texts of a pool's lists, separated by commas, or NULL without memory. The caller
 * frees the result. */
char *plan_lists_text(const struct rp_plan *p, const struct pool *pool);

/* ---- request of a container (ask.c) ---------------------------------------------------------- */

struct ask {
	char pool[NAME_MAX_LEN + 1];
	int64_t socket; /* number of the socket, or SOCKET_ANY */
	int64_t n; /* number of lists, for an exclusive pool */
	bool no_affinity; /* the container pins itself */
	/* Words after `cmk isolate` and its options in the command line; n_args 0: none. */
	const char **args;
	uint32_t n_args;
	char *words; /* buffer of the texts in args */
};

/* Reads the request of a container. Returns 0 or -RP_ENOMEM. Call ask_fini() in any case. */
int32_t ask_of(const struct modhost *h, rp_ctr ctr, struct ask *ret);
void ask_fini(struct ask *a);

/* ---- policy instance ------------------------------------------------------------------------- */

struct rp_instance {
	LIFE;
	uint64_t placed, refused;
};

int32_t static_pools_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t static_pools_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
