/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict.so: evicts pods when a node with overcommitted capacity runs short of it. Six rules check
 * the node each interval. Each rule determines how much must be released, and the order in which
 * pods are evicted until that is achieved.
 *
 *	rule.c		amounts to release, order of pods
 *	answer.c	decisions for given figures
 *	pods.c		requests, usage and annotations of pods
 *	rounds.c	a round: readings, decisions, requests for evictions
 *	evict.c		the module
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/amounts.h>
#include "modules/lib/private/decide.h"
#include "modules/lib/private/koord.h"

/* Rules, named as in the annotation koordinator.sh/eviction-policy. */
enum evict_rule {
	EVICT_BE_CPU, /* BE pods get much less than they request */
	EVICT_CPU, /* usage of the node's CPUs exceeds the threshold */
	EVICT_CPU_ALLOCATABLE, /* requests exceed the overcommitted capacity */
	EVICT_BE_MEMORY,
	EVICT_MEMORY,
	EVICT_MEMORY_ALLOCATABLE,
	EVICT_RULES
};
extern const char *const evict_rule_names[EVICT_RULES];

/* ---- amounts to release ---------------------------------------------------------------------- */

/* All BE pods together, in milli-CPU. */
struct evict_be {
	int64_t count; /* number of averaged readings; 0: none */
	int64_t limit, used, request;
};

struct evict_satisfaction {
	int64_t lower_percent, upper_percent, usage_percent;
	int64_t window_s, period_s;
	struct evict_be average, current; /* current.count 0: use the average alone */
};

/* Returns the requests to release in milli-CPU; 0: none. */
int64_t evict_by_satisfaction(const struct evict_satisfaction *s);
/* Returns the amount to release, in the unit of cap. lower_percent RP_NOT_SET: two percentage
 * points below the threshold. */
int64_t evict_by_usage(int64_t cap, int64_t used, int64_t threshold_percent, int64_t lower_percent);
/* Returns the requests to release. allocatable RP_NOT_SET: the node does not have the resource. */
int64_t evict_by_allocatable(int64_t allocatable, int64_t request, int64_t threshold_percent,
			     int64_t lower_percent);

/* Classes of overcommitted resources, and the names of the resources. */
enum { EVICT_BATCH, EVICT_MID, EVICT_LENT };
extern const char *const evict_lent_names[EVICT_LENT][RP_NR_AMOUNTS];

struct evict_pod {
	rp_pod pod;
	const char *name;
	int64_t priority; /* numeric priority of the pod; if unknown, the priority of its class */
	int64_t order, sub_priority; /* values of the pod's annotation and label */
	bool is_be, opted_in;
	bool leaves; /* the pod is being evicted already */
	uint32_t features; /* rules that may choose the pod, as bits */
	int64_t used[RP_NR_AMOUNTS];
	int64_t request[EVICT_LENT][RP_NR_AMOUNTS];
};

/* Returns the class of overcommitted resources that pods of this numeric priority use; EVICT_LENT,
 * the number of classes: they use none. */
uint32_t evict_class(int64_t priority);

/* The release that a rule requires. */
struct evict_need {
	enum evict_rule rule;
	uint32_t amount; /* resource to release, RP_NR_… */
	uint32_t lent; /* EVICT_… of a rule by allocatable */
	int64_t release;
	int64_t priority_max; /* highest priority of evicted pods; RP_NOT_SET: any */
};

/*
 * Moves the pods to evict to the front of the list, in their order, and returns their number. Pods
 * that are being evicted already are counted as released.
 */
uint32_t evict_choose(struct evict_pod *list, uint32_t n, const struct evict_need *need);

/* ---- module ---------------------------------------------------------------------------------- */

struct evict_percents {
	/* threshold RP_NOT_SET: the rule is off; lower RP_NOT_SET: two less than the threshold */
	int64_t threshold, lower;
};

struct rp_plan {
	CTL_PLAN;
	bool by_allocatable; /* the limit of BE pods is the overcommitted capacity */
	int64_t be_lower, be_upper, be_usage, be_window_s;
	struct evict_percents by_usage[RP_NR_AMOUNTS], by_lent[RP_NR_AMOUNTS];
	int64_t priority_max, lent_priority_max; /* RP_NOT_SET: no pod */
	uint64_t interval_ms, cool_ms[RP_NR_AMOUNTS];
};

/* Readings of a round. */
struct evict_reading {
	int64_t busy_us, mem_total, mem_used;
	int64_t be_limit; /* milli-CPU; RP_NOT_SET: there are no BE pods */
};

struct evict_rounds;

struct rp_instance {
	CTL_LIFE;
	struct koord_rounds timer;
	struct evict_rounds *rounds;
};

/* Returns all live pods, in memory of malloc(); NULL: out of memory. Names are valid until the
 * callback returns. */
struct evict_pod *evict_survey(const struct rp_instance *inst, uint32_t *ret_n);

struct evict_rounds *evict_rounds_new(void);
void evict_rounds_free(struct evict_rounds *r);
/* Drops the readings, which belong to another configuration or to the time before a stop. */
void evict_rounds_reset(struct evict_rounds *r);
void evict_decide(struct rp_instance *inst, const struct evict_reading *read);
int32_t evict_collect(struct rp_instance *inst, const struct rp_metric_sink *sink);

extern const struct rp_decision evict_decision;
