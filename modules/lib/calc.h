/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of calculators: sums over pods and applications, items with messages, and the life
 * of a module whose section one function reads.
 */
#ifndef NRI_RP_LIB_CALC_H
#define NRI_RP_LIB_CALC_H

#include <stdbool.h>

#include <nri-rp/lib/amounts.h>
#include <nri-rp/lib/host.h>

/* Amounts, milli-CPU and bytes. */
struct calc_amounts {
	int64_t of[RP_NR_AMOUNTS];
};

/* Returns the resources that the kubelet or the Node's annotation reserves: the larger amount of
 * each. */
struct calc_amounts calc_node_reserved(const struct rp_nr_node *node);
/* Returns the usage of applications outside of pods, of class prod and, with mid_too, of class
 * mid. */
struct calc_amounts calc_apps(const struct modhost *h, bool mid_too);

/* Reports an item in whole units, with an explanation. */
void calc_give(const struct rp_nr_sink *out, const char *name, int64_t units, const int64_t *zones,
	       uint32_t n_zones, const char *message);
/* Reports a reset of each resource of the list, which ends with NULL. */
void calc_reset(const struct rp_nr_sink *out, const char *const *names, const char *message);
/* Reads the node and its usage. -RP_ENOENT with a message: they are unknown. Inline, so that the
 * structs have the size that the calculator was built with. */
static inline int32_t calc_node(const struct modhost *h, struct rp_nr_node *ret,
				struct rp_nr_measured *ret_usage)
{
	*ret = (struct rp_nr_node){.size = sizeof *ret};
	*ret_usage = (struct rp_nr_measured){.size = sizeof *ret_usage};
	if (!h->noderes->node(h->ctx, ret) && !h->noderes->measured(h->ctx, ret_usage))
		return 0;
	return modhost_fail(h, -RP_ENOENT, "the node is unknown");
}
/* Writes the reason why usage is unknown at present. Returns text. */
const char *calc_why_degraded(const struct rp_nr_measured *m, char *text, size_t size);
#define CALC_WHY_MAX 128u

/* Returns the number of a text in millionths: "1.20" is 1200000. -1: no number, or outside of 0 …
 * 1000. */
int64_t calc_millionths(const char *text);
#define CALC_MILLION 1000000

/* ---- the module ---- */

struct calc_ops {
	/* Checks the section and builds a plan. NULL: the calculator has no configuration, or
	 * `read`. */
	int32_t (*plan)(const struct modhost *h, rp_cfg section, struct rp_plan **ret);
	void (*plan_free)(struct rp_plan *p); /* NULL: free() */
	const struct rp_schema *schema;
	/* In place of `plan`: size of struct rp_plan, and a function that reads the section into a
	 * zeroed plan. */
	size_t plan_size;
	int32_t (*read)(const struct modhost *h, rp_cfg section, struct rp_plan *ret);
};

struct rp_instance {
	struct modhost h;
	const struct calc_ops *ops;
	struct rp_plan *plan; /* active configuration; NULL: none was committed yet */
};

/* The callbacks of struct rp_module and struct rp_calculator, used by CALC_MODULE and CALC_LIFE. */
int32_t calc_create(const struct rp_host *host, const struct calc_ops *ops,
		    struct rp_instance **ret);
void calc_destroy(struct rp_instance *inst);
int32_t calc_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret);
void calc_commit(struct rp_instance *inst, struct rp_plan *plan);
void calc_abort(struct rp_instance *inst, struct rp_plan *plan);

/* First members of a struct rp_calculator. */
#define CALC_LIFE                                                                                  \
	.size = sizeof(struct rp_calculator), .prepare = calc_prepare, .commit = calc_commit,      \
	.abort = calc_abort

/* Defines a calculator module, like RP_MODULE_DEFINE. The last arguments are .summary and
 * .licence. */
#define CALC_MODULE(name_, version_, ops_, calculator_, ...)                                       \
	static int32_t calc_module_create(const struct rp_host *host, struct rp_instance **ret)    \
	{                                                                                          \
		return calc_create(host, &(ops_), ret);                                            \
	}                                                                                          \
	static const void *calc_module_service(struct rp_instance *inst, const char *id)           \
	{                                                                                          \
		const struct modhost_service services[] = {{RP_CALCULATOR_1, &(calculator_)},      \
							   {RP_SCHEMA_1, (ops_).schema},           \
							   {NULL, NULL}};                          \
		(void)inst;                                                                        \
		return modhost_service(services, id);                                              \
	}                                                                                          \
	RP_MODULE_DEFINE(name_, version_, RP_KIND_CALCULATOR, .create = calc_module_create,        \
			 .destroy = calc_destroy, .service = calc_module_service, __VA_ARGS__)

#endif
