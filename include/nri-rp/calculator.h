/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.calculator/1 [since 1.3]: the interface of a calculator module. A calculator derives, from
 * measurements, capacity that a node can overcommit (batch and mid resources), or facts for the
 * Node object.
 *
 * An instance lives as a controller's does:
 *
 *	create ─▶ prepare ─▶ commit ─▶ { calculate | reset | apply | … }* ─▶ destroy
 *
 * All callbacks run on the main thread and must return within the time limit of a stage (one
 * second). Slow work belongs on the host's worker.
 *
 * In each pass the host calls the calculators in the order of rp.conf:
 *
 *   calculate   computes the present amounts of its resources (reset: while colocation is off)
 *   apply       puts the result on a copy of the Node, once for each attempt to write it.
 *               Equal copies must give equal results.
 *   need_sync   returns whether the Node must be written for its resources
 *
 * A function that is NULL is skipped. If `calculate` fails, the host drops the items that this
 * calculator reported in this pass, and keeps those of the others.
 *
 * Quantities of items are in thousandths of the resource's unit, so that a share of a byte can be
 * expressed. The unit of batch-cpu is the milli-CPU: 25000 milli-CPU are the quantity 25000000.
 * Published values are rounded up to whole units.
 *
 * All services use the key and resource names of the Koordinator scheduler, such as
 * koordinator.sh/qosClass and kubernetes.io/batch-cpu. Where a site has configured other names, the
 * host translates them on reading and publishing, also the names of batch and mid resources within
 * the text of an annotation that is published or read with parse().
 */
#ifndef NRI_RP_CALCULATOR_H
#define NRI_RP_CALCULATOR_H

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_CALCULATOR_1 "nri-rp.calculator/1"

/* ---- inputs ---- */

/* Indexes of amounts, milli-CPU and bytes. An unknown amount is RP_NOT_SET. All other amounts lie
 * between 0 and RP_NR_AMOUNT_MAX; the host guarantees this for input from API server and kernel.
 * Their thousandths, and sums over all pods of a node, fit an int64_t. */
#define RP_NR_AMOUNT_MAX (INT64_C(1) << 50)
#define RP_NR_CPU 0u
#define RP_NR_MEMORY 1u
#define RP_NR_AMOUNTS 2u

/* Priority classes and QoS classes that pods name in their labels. */
#define RP_PRIO_NONE 0u
#define RP_PRIO_PROD 1u
#define RP_PRIO_MID 2u
#define RP_PRIO_BATCH 3u
#define RP_PRIO_FREE 4u

#define RP_KOORD_NONE 0u
#define RP_KOORD_LSE 1u
#define RP_KOORD_LSR 2u
#define RP_KOORD_LS 3u
#define RP_KOORD_BE 4u
#define RP_KOORD_SYSTEM 5u

/* Fields of the effective strategy of this node. Numbers are in the unit of the configuration.
 * RP_NOT_SET: not configured, and without a default. */
#define RP_NR_ENABLE 0u /* 0 or 1 */
#define RP_NR_AGGREGATE_SECONDS 1u
#define RP_NR_REPORT_SECONDS 2u
#define RP_NR_MEMORY_COLLECT 3u /* RP_NR_COLLECT_… */
#define RP_NR_CPU_RECLAIM_PERCENT 4u
#define RP_NR_CPU_POLICY 5u /* RP_NR_BY_… */
#define RP_NR_MEMORY_RECLAIM_PERCENT 6u
#define RP_NR_MEMORY_POLICY 7u /* RP_NR_BY_… */
#define RP_NR_DEGRADE_MINUTES 8u
#define RP_NR_UPDATE_SECONDS 9u
#define RP_NR_DIFF_THRESHOLD 10u /* in millionths */
#define RP_NR_MID_MODE 11u /* 1: static */
#define RP_NR_MID_CPU_PERCENT 12u
#define RP_NR_MID_MEMORY_PERCENT 13u
#define RP_NR_MID_UNALLOCATED_PERCENT 14u
#define RP_NR_MID_STATIC_CPU_PERCENT 15u
#define RP_NR_MID_STATIC_MEMORY_PERCENT 16u
#define RP_NR_BATCH_CPU_PERCENT 17u
#define RP_NR_BATCH_MEMORY_PERCENT 18u
#define RP_NR_FIELDS 19u

#define RP_NR_COLLECT_WITHOUT_CACHE 0
#define RP_NR_COLLECT_HOT_CACHE 1
#define RP_NR_COLLECT_WITH_CACHE 2

#define RP_NR_BY_USAGE 0
#define RP_NR_BY_REQUEST 1
#define RP_NR_BY_MAX 2 /* the larger one of usage and request */

/* Capacity of the Node. */
struct rp_nr_node {
	uint32_t size;
	uint32_t n_zones;
	int64_t capacity[RP_NR_AMOUNTS], allocatable[RP_NR_AMOUNTS];
	int64_t reserved[RP_NR_AMOUNTS]; /* reserved by the Node's annotation; 0: nothing */
};

/* Measured usage of the node. */
struct rp_nr_measured {
	uint32_t size;
	uint32_t degraded; /* 1: there is no sample, or it is too old to be used */
	int64_t age_ms; /* age of the sample; RP_NOT_SET: there never was one */
	int64_t node[RP_NR_AMOUNTS], system[RP_NR_AMOUNTS]; /* usage */
	/* predicted; RP_NOT_SET: no prediction yet, or no calculator has RP_CALCULATOR_FORECAST */
	int64_t prod_reclaimable[RP_NR_AMOUNTS];
	/* Predicted peak demand of prod pods and the system, including the requests of pods without
	 * measurements. RP_NOT_SET: as for prod_reclaimable. */
	int64_t prod_peak[RP_NR_AMOUNTS];
};

/* Statistics of a usage over some time. A percentile is the value of a sample. */
#define RP_NR_AVG 0u
#define RP_NR_P50 1u
#define RP_NR_P90 2u
#define RP_NR_P95 3u
#define RP_NR_P99 4u
#define RP_NR_STATISTICS 5u

/* Usage over one of the strategy's durations, metricAggregatePolicy. */
struct rp_nr_aggregated {
	uint32_t size;
	uint32_t n; /* number of samples; the last one is the current one */
	int64_t duration_ms;
	/* system is RP_NOT_SET unless all pods are measured */
	int64_t node[RP_NR_STATISTICS][RP_NR_AMOUNTS], system[RP_NR_STATISTICS][RP_NR_AMOUNTS];
};

/* A pod, or the sample of a pod that is no longer listed. */
#define RP_NR_POD_ACTIVE 0x1u /* listed, and pending or running */
/* a sample of its usage exists */
#define RP_NR_POD_SAMPLED 0x2u

struct rp_nr_pod {
	uint32_t size;
	uint32_t flags; /* properties of the pod, RP_NR_POD_… */
	const char *name; /* valid until the end of the pass */
	uint32_t qos; /* RP_KOORD_… */
	uint32_t prio; /* RP_PRIO_…: its own class, or the one derived from its QoS */
	uint32_t reported; /* RP_PRIO_… as sampled, for a pod that is not active */
	uint32_t pad;
	int64_t request[RP_NR_AMOUNTS], usage[RP_NR_AMOUNTS];
	struct rp_ids zones; /* NUMA zones that the pod is bound to; empty: none */
};

/* A group of host processes outside of pods. */
struct rp_nr_app {
	uint32_t size;
	uint32_t prio; /* RP_PRIO_… */
	int64_t usage[RP_NR_AMOUNTS];
};

/* A NUMA zone, in the order of the NodeResourceTopology. */
struct rp_nr_zone {
	uint32_t size;
	uint32_t id;
	int64_t allocatable[RP_NR_AMOUNTS];
};

/* The node's CPU model. */
struct rp_nr_cpu {
	uint32_t size;
	uint32_t hyper_threads, turbo; /* 0 or 1 */
	uint32_t pad;
	const char *model;
};

/* A device that the node reports. */
struct rp_nr_device {
	uint32_t size;
	uint32_t healthy; /* 0 or 1 */
	const char *type; /* "gpu", "rdma" */
	const char *vendor, *model, *driver; /* "" if unknown */
};

/* Inputs of the running pass. Outside of a pass the functions return -RP_ENOENT or NULL. They may
 * be called in calculate(), reset(), apply() and need_sync(). Indexes begin at 0; -RP_ENOENT ends a
 * list. */
#define RP_HOST_NODERES_1 "nri-rp.host.noderes/1"

struct rp_host_noderes {
	uint32_t size;
	uint32_t pad;
	/* Returns a field RP_NR_… of the strategy; RP_NOT_SET: not configured. */
	int64_t (*strategy)(void *ctx, uint32_t field);
	/* Fills *out with the node's capacity. */
	int32_t (*node)(void *ctx, struct rp_nr_node *out);
	/* Return the value of a label or annotation of the Node; NULL: the Node does not have
	 * the key. */
	const char *(*label)(void *ctx, const char *key);
	const char *(*annotation)(void *ctx, const char *key);
	/* Fill *out, whose size the caller has set. */
	int32_t (*measured)(void *ctx, struct rp_nr_measured *out);
	int32_t (*pod)(void *ctx, uint32_t index, struct rp_nr_pod *out);
	int32_t (*app)(void *ctx, uint32_t index, struct rp_nr_app *out);
	int32_t (*zone)(void *ctx, uint32_t index, struct rp_nr_zone *out);
	int32_t (*cpu)(void *ctx, struct rp_nr_cpu *out); /* -RP_ENOENT: unknown */
	int32_t (*device)(void *ctx, uint32_t index, struct rp_nr_device *out);
	/* Stores how much of a resource a device has, in thousandths. -RP_ENOENT: the device does
	 * not have this resource. */
	int32_t (*device_amount)(void *ctx, uint32_t index, const char *resource,
				 int64_t *ret_thousandths);
	/* Fills *out with the usage over one of the strategy's durations, in their order. Durations
	 * that have been measured for less than half of their time are omitted. */
	int32_t (*aggregated)(void *ctx, uint32_t index, struct rp_nr_aggregated *out);
};

/* ---- results ---- */

/* the resource has no quantity: its key is removed from the Node, as for quantity RP_NOT_SET */
#define RP_NR_ITEM_RESET 0x1u

/* The calculated amount of a resource. */
struct rp_nr_item {
	uint32_t size;
	uint32_t flags; /* RP_NR_ITEM_… */
	const char *name; /* name of the resource */
	int64_t quantity; /* thousandths; RP_NOT_SET: none */
	const int64_t *zones; /* quantity of each zone, thousandths; NULL: none */
	uint32_t n_zones;
	uint32_t pad;
	const char *message; /* explanation of the quantity for people; "" or NULL: none */
};

/* Receives the results of a pass. Everything is copied. A later item, label or annotation replaces
 * an earlier one of the same name, also one of another calculator. */
struct rp_nr_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Add an item, or a label or annotation of the Node, to the results. */
	void (*item)(void *ctx, const struct rp_nr_item *item);
	void (*label)(void *ctx, const char *key, const char *value);
	void (*annotation)(void *ctx, const char *key, const char *value);
};

/* A copy of the Node to which the result of a pass is written. */
struct rp_nr_edit {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Stores the calculated amount of a resource. -RP_ENOENT: not calculated, or reset. */
	int32_t (*result)(void *ctx, const char *name, int64_t *ret_quantity);
	/* Returns an annotation of the result; NULL: none. */
	const char *(*result_annotation)(void *ctx, const char *key);
	/* Read, set and remove capacity and allocatable of a resource on the copy.
	 * Thousandths are rounded up to units. */
	int32_t (*get)(void *ctx, const char *name, int64_t *ret_quantity);
	void (*set)(void *ctx, const char *name, int64_t quantity);
	void (*remove)(void *ctx, const char *name);
	/* Read and set an annotation or label of the copy. annotation() returns NULL if there is no
	 * such annotation; set_annotation() with value NULL removes it. */
	const char *(*annotation)(void *ctx, const char *key);
	void (*set_annotation)(void *ctx, const char *key, const char *value);
	void (*set_label)(void *ctx, const char *key, const char *value);
	/* Read and set a resource of a zone, as the NodeResourceTopology has it; the host has
	 * already stored the result's zones there. `index` is that of rp_host_noderes.zone.
	 * -RP_ENOENT: there is no such zone. */
	int32_t (*get_zone)(void *ctx, const char *name, uint32_t index, int64_t *ret_quantity);
	int32_t (*set_zone)(void *ctx, const char *name, uint32_t index, int64_t quantity);
};

/* The calculator uses rp_nr_measured.prod_reclaimable. The host learns the demand of pods from
 * measurements only while a calculator has this flag. */
#define RP_CALCULATOR_FORECAST 0x1u

struct rp_calculator {
	uint32_t size;
	uint32_t flags; /* RP_CALCULATOR_… */
	/* prepare, commit and abort: as in rp_policy (policy.h). */
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	/* Names of the resources and annotations that belong to this calculator; each list ends
	 * with NULL and is constant. The host puts results of these names on the Node, removes keys
	 * without a result, compares results with the Node, and resets them. */
	const char *const *resources;
	const char *const *annotations;
	/* Calculates the present amounts and reports them to `out`. */
	int32_t (*calculate)(struct rp_instance *inst, const struct rp_nr_sink *out);
	/* Optional. Reports the state while colocation is off. Without it the host resets each of
	 * the calculator's resources. `message` is the reason, for people. */
	int32_t (*reset)(struct rp_instance *inst, const char *message,
			 const struct rp_nr_sink *out);
	/* Optional. Edits the copy after the host has written the calculator's results to it. */
	int32_t (*apply)(struct rp_instance *inst, const struct rp_nr_edit *node);
	/* Optional. Returns 1 if the Node must be written although no resource differs by more than
	 * the strategy's threshold, else 0. */
	int32_t (*need_sync)(struct rp_instance *inst, const struct rp_nr_edit *old_node,
			     const struct rp_nr_edit *new_node);
	/* Optional. Returns 1 if two texts of an annotation differ in meaning, else 0. NULL: the
	 * annotation is absent. Without this function any difference counts. */
	int32_t (*meta_changed)(struct rp_instance *inst, const char *key, const char *old_text,
				const char *new_text);
};

#ifdef __cplusplus
}
#endif
#endif
