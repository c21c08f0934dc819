/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.calculator/1 [since 1.3]: what a node-resource module does. It derives capacity that a
 * node can lend a second time, or facts that the node's object tells, from what was measured.
 *
 * The life of an instance is that of a controller's: create ─▶ prepare ─▶ commit ─▶ { calculate | reset | apply | … }* ─▶ destroy. All
 * calls come on the main thread and have to be over within the budget of a stage (one second); slow
 * work belongs to the host's worker.
 *
 * One pass of the host asks every calculator in the order of rp.conf:
 *
 *   calculate   what its resources are now; while colocation is switched off: reset
 *   apply       the result on a copy of the Node, once for each attempt to write it: must give the
 *               same for the same copy
 *   need_sync   whether the Node has to be written for its resources' sake
 *
 * A stage that is NULL is left out. What fails in `calculate` loses all the items of that
 * calculator of that pass, and nothing of others'.
 *
 * Quantities of items are in thousandths of the resource's unit, so that a share of a byte can be
 * told: batch-cpu of 25000 milli-CPU, whose unit is the milli-CPU, is 25000000. Published values
 * are rounded up to whole units.
 *
 * Keys and resources are named as schedulers come with them, koordinator.sh/qosClass and
 * kubernetes.io/batch-cpu, in all services; where a site calls them otherwise, the host reads and
 * publishes them as the site does, and batch and mid resources within the text of an annotation,
 * too, where that is given, or read by parse().
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

/* ---- what there is to calculate from ---- */

/* Indexes of amounts: milli-CPU and bytes. An amount that is not known is RP_NOT_SET. No other one
 * is below zero or above RP_NR_AMOUNT_MAX, whatever an API server or a kernel has told: thousandths
 * of it, and the sum of as many as there are pods on a node, fit an int64_t. */
#define RP_NR_AMOUNT_MAX (INT64_C(1) << 50)
#define RP_NR_CPU 0u
#define RP_NR_MEMORY 1u
#define RP_NR_AMOUNTS 2u

/* Classes of priority, and of quality of service, that pods name in their labels. */
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

/* Fields of the effective strategy of this node. Numbers as configured, in their unit; RP_NOT_SET
 * where nothing is said and there is no default. */
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
#define RP_NR_BY_MAX 2 /* the larger of usage and request */

struct rp_nr_node {
	uint32_t size;
	uint32_t n_zones;
	int64_t capacity[RP_NR_AMOUNTS], allocatable[RP_NR_AMOUNTS];
	int64_t reserved[RP_NR_AMOUNTS]; /* that the Node's annotation reserves; 0: nothing */
};

struct rp_nr_measured {
	uint32_t size;
	uint32_t degraded; /* 1: there is no sample, or it is too old to go by */
	int64_t age_ms; /* of the sample; RP_NOT_SET: there never was one */
	int64_t node[RP_NR_AMOUNTS], system[RP_NR_AMOUNTS]; /* usage */
	int64_t prod_reclaimable[RP_NR_AMOUNTS]; /* by prediction; RP_NOT_SET: none yet,
						    or nobody asks for it */
	/* What prod pods and the system are predicted to need at most, requests of pods that
	 * nothing is known of among it; RP_NOT_SET as above. */
	int64_t prod_peak[RP_NR_AMOUNTS];
};

/* What a usage over some time is told by; a percentile of so many samples is one of them. */
#define RP_NR_AVG 0u
#define RP_NR_P50 1u
#define RP_NR_P90 2u
#define RP_NR_P95 3u
#define RP_NR_P99 4u
#define RP_NR_STATISTICS 5u

/* Usage over one of the durations that the strategy has, metricAggregatePolicy. */
struct rp_nr_aggregated {
	uint32_t size;
	uint32_t n; /* samples, the last one of now */
	int64_t duration_ms;
	/* RP_NOT_SET: what the system uses cannot be told, as not all pods are measured. */
	int64_t node[RP_NR_STATISTICS][RP_NR_AMOUNTS], system[RP_NR_STATISTICS][RP_NR_AMOUNTS];
};

/* A pod, or a sample of one that is in no list any more. */
#define RP_NR_POD_ACTIVE 0x1u /* it is listed, and pending or running */
#define RP_NR_POD_SAMPLED 0x2u

struct rp_nr_pod {
	uint32_t size;
	uint32_t flags; /* RP_NR_POD_… */
	const char *name; /* as long-lived as the pass */
	uint32_t qos; /* RP_KOORD_… */
	uint32_t prio; /* RP_PRIO_…: its own, or what follows from its QoS */
	uint32_t reported; /* RP_PRIO_…: of the sample, for one that is not active */
	uint32_t pad;
	int64_t request[RP_NR_AMOUNTS], usage[RP_NR_AMOUNTS];
	struct rp_ids zones; /* that it is bound to; empty: none */
};

/* A group of processes outside of pods. */
struct rp_nr_app {
	uint32_t size;
	uint32_t prio; /* RP_PRIO_… */
	int64_t usage[RP_NR_AMOUNTS];
};

struct rp_nr_zone {
	uint32_t size;
	uint32_t id;
	int64_t allocatable[RP_NR_AMOUNTS];
};

struct rp_nr_cpu {
	uint32_t size;
	uint32_t hyper_threads, turbo; /* 0 or 1 */
	uint32_t pad;
	const char *model;
};

struct rp_nr_device {
	uint32_t size;
	uint32_t healthy; /* 0 or 1 */
	const char *type; /* "gpu", "rdma" */
	const char *vendor, *model, *driver; /* "" when it is not known */
};

/* The inputs of the running pass; RP_ENOENT outside of one. Indexes begin at 0; -RP_ENOENT ends a
 * list. */
#define RP_HOST_NODERES_1 "nri-rp.host.noderes/1"

struct rp_host_noderes {
	uint32_t size;
	uint32_t pad;
	int64_t (*strategy)(void *ctx, uint32_t field); /* RP_NR_… */
	int32_t (*node)(void *ctx, struct rp_nr_node *out);
	/* The value of a label of the Node; NULL: the Node has none of that key. */
	const char *(*label)(void *ctx, const char *key);
	const char *(*annotation)(void *ctx, const char *key);
	int32_t (*measured)(void *ctx, struct rp_nr_measured *out);
	int32_t (*pod)(void *ctx, uint32_t index, struct rp_nr_pod *out);
	int32_t (*app)(void *ctx, uint32_t index, struct rp_nr_app *out);
	int32_t (*zone)(void *ctx, uint32_t index, struct rp_nr_zone *out);
	int32_t (*cpu)(void *ctx, struct rp_nr_cpu *out); /* -RP_ENOENT: not known */
	int32_t (*device)(void *ctx, uint32_t index, struct rp_nr_device *out);
	/* What a device counts for of a resource. -RP_ENOENT: it has no such one. */
	int32_t (*device_amount)(void *ctx, uint32_t index, const char *resource,
				 int64_t *ret_thousandths);
	/* By the strategy's durations, in its order; those that are not measured for half of their
	 * time yet are left out. */
	int32_t (*aggregated)(void *ctx, uint32_t index, struct rp_nr_aggregated *out);
};

/* ---- what comes out ---- */

/* the Node has no such resource: its key is deleted, as it is when there is no quantity */
#define RP_NR_ITEM_RESET 0x1u

struct rp_nr_item {
	uint32_t size;
	uint32_t flags; /* RP_NR_ITEM_… */
	const char *name; /* of the resource */
	int64_t quantity; /* thousandths; RP_NOT_SET: none */
	const int64_t *zones; /* the same by zone; NULL: none */
	uint32_t n_zones;
	uint32_t pad;
	const char *message; /* how it comes about, for people; "" or NULL: nothing to say */
};

/* Everything is copied. A later item, label or annotation of one name replaces the earlier one,
 * whoever gave it. */
struct rp_nr_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	void (*item)(void *ctx, const struct rp_nr_item *item);
	void (*label)(void *ctx, const char *key, const char *value);
	void (*annotation)(void *ctx, const char *key, const char *value);
};

/* A copy of the Node on which the result of a pass is put. */
struct rp_nr_edit {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* The calculated amount of a resource: 0; -RP_ENOENT: nothing was calculated, or it is
	 * reset. */
	int32_t (*result)(void *ctx, const char *name, int64_t *ret_quantity);
	/* An annotation of the result; NULL: none. */
	const char *(*result_annotation)(void *ctx, const char *key);
	/* Capacity and allocatable of the copy; thousandths are rounded up to units. */
	int32_t (*get)(void *ctx, const char *name, int64_t *ret_quantity);
	void (*set)(void *ctx, const char *name, int64_t quantity);
	void (*remove)(void *ctx, const char *name);
	const char *(*annotation)(void *ctx, const char *key);
	void (*set_annotation)(void *ctx, const char *key,
			       const char *value); /* NULL: no such one */
	void (*set_label)(void *ctx, const char *key, const char *value);
	/* The same by zone, as the NodeResourceTopology has it: the host has put the result's
	 * there. By the index of rp_host_noderes.zone; -RP_ENOENT: it has none of that index. */
	int32_t (*get_zone)(void *ctx, const char *name, uint32_t index, int64_t *ret_quantity);
	int32_t (*set_zone)(void *ctx, const char *name, uint32_t index, int64_t quantity);
};

/* The calculator goes by rp_nr_measured.prod_reclaimable: the host learns from what is measured
 * what pods need, which it leaves when no calculator asks for that. */
#define RP_CALCULATOR_FORECAST 0x1u

struct rp_calculator {
	uint32_t size;
	uint32_t flags; /* RP_CALCULATOR_… */
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	/* Names of the resources that are its own, and of the annotations; each list ends with NULL
	 * and is constant. The host puts results of these names on the Node, deletes keys that have
	 * none, compares them with what is there, and resets them. */
	const char *const *resources;
	const char *const *annotations;
	int32_t (*calculate)(struct rp_instance *inst, const struct rp_nr_sink *out);
	/* Optional: instead of resetting each of its resources. */
	int32_t (*reset)(struct rp_instance *inst, const char *message,
			 const struct rp_nr_sink *out);
	/* Optional: after the host has put the results of its own names on the copy. */
	int32_t (*apply)(struct rp_instance *inst, const struct rp_nr_edit *node);
	/* Optional: does the Node have to be written although no resource differs by more than the
	 * strategy's threshold? 1: yes. */
	int32_t (*need_sync)(struct rp_instance *inst, const struct rp_nr_edit *old_node,
			     const struct rp_nr_edit *new_node);
	/* Optional, else any difference counts: do the texts of an annotation of its own differ?
	 * NULL: it is not there. 1: yes. */
	int32_t (*meta_changed)(struct rp_instance *inst, const char *key, const char *old_text,
				const char *new_text);
};

#ifdef __cplusplus
}
#endif
#endif
