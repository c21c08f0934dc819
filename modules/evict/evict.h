/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict.so: pods that had better run elsewhere when a node that lends its capacity runs short of
 * it. Six rules look at the node every interval; each says how much has to be released, and in
 * which order pods go until that is so.
 *
 *	rule.c		how much; the order of pods
 *	answer.c	the same of given figures
 *	pods.c		what is known of each pod
 *	rounds.c	a round: read on the worker, decide, ask
 *	evict.c		the module
 */
#ifndef EVICT_H
#define EVICT_H

#include <stdbool.h>

#include "modules/lib/amounts.h"
#include "modules/lib/decide.h"
#include "modules/lib/koord.h"

/* Named as the annotation koordinator.sh/eviction-policy does. */
enum evict_rule {
	EVICT_BE_CPU, /* BE pods get much less than they ask for */
	EVICT_CPU, /* of the node, by usage */
	EVICT_CPU_ALLOCATABLE, /* more was asked for than there is to lend */
	EVICT_BE_MEMORY,
	EVICT_MEMORY,
	EVICT_MEMORY_ALLOCATABLE,
	EVICT_RULES
};
extern const char *const evict_rule_names[EVICT_RULES];

/* ---- how much -------------------------------------------------------------------------------- */

/* Of all BE pods together, in milli-CPU. */
struct evict_be {
	int64_t count; /* readings that it is an average of; 0: none */
	int64_t limit, used, request;
};

struct evict_satisfaction {
	int64_t lower_percent, upper_percent, usage_percent;
	int64_t window_s, period_s;
	struct evict_be average, current; /* current.count 0: the average alone */
};

/* Milli-CPU of requests that have to go; 0: none. */
int64_t evict_by_satisfaction(const struct evict_satisfaction *s);
/* Of cap, both in one unit; lower_percent RP_NOT_SET: two less than the threshold. */
int64_t evict_by_usage(int64_t cap, int64_t used, int64_t threshold_percent, int64_t lower_percent);
/* allocatable RP_NOT_SET: the node does not have the resource. */
int64_t evict_by_allocatable(int64_t allocatable, int64_t request, int64_t threshold_percent,
			     int64_t lower_percent);

/* ---- who ------------------------------------------------------------------------------------- */

/* Of a resource that is lent. */
enum { EVICT_BATCH, EVICT_MID, EVICT_LENT };

struct evict_pod {
	rp_pod pod;
	const char *name;
	int64_t priority; /* numeric; that of its class where it is not known */
	int64_t order, sub_priority; /* by its annotation and label */
	bool is_be, opted_in;
	bool leaves; /* it is being evicted already */
	uint32_t features; /* bits of rules that may choose it */
	int64_t used[RP_NR_AMOUNTS];
	int64_t request[EVICT_LENT][RP_NR_AMOUNTS];
};

uint32_t evict_class(int64_t priority); /* EVICT_…; EVICT_LENT: nothing is lent to such pods */

/* What one rule is about to release. */
struct evict_need {
	enum evict_rule rule;
	uint32_t amount; /* RP_NR_… */
	uint32_t lent; /* EVICT_…: of the rules by allocatable */
	int64_t release;
	int64_t priority_max; /* RP_NOT_SET: any */
};

/*
 * Puts those first, in their order, that have to go, and returns their number. What leaves already
 * counts as released.
 */
uint32_t evict_choose(struct evict_pod *list, uint32_t n, const struct evict_need *need);

/* ---- the module ------------------------------------------------------------------------------ */

struct evict_percents {
	int64_t threshold, lower; /* RP_NOT_SET: the rule is off; two less */
};

struct rp_plan {
	bool enable, by_allocatable; /* by_allocatable: limit of BE pods is what is lent */
	int64_t be_lower, be_upper, be_usage, be_window_s;
	struct evict_percents by_usage[RP_NR_AMOUNTS], by_lent[RP_NR_AMOUNTS];
	int64_t priority_max, lent_priority_max; /* RP_NOT_SET: nobody */
	uint64_t interval_ms, cool_ms[RP_NR_AMOUNTS];
};

/* What a round has read. */
struct evict_reading {
	int64_t busy_us, mem_total, mem_used;
	int64_t be_limit; /* milli-CPU; RP_NOT_SET: nobody is BE */
};

struct evict_rounds;

struct rp_instance {
	struct modhost h;
	struct rp_plan *plan; /* in force */
	const struct rp_host_usage *usage;
	struct ctl_queue *queue;
	struct evict_rounds *rounds;
	bool running, armed;
};

/* Every live pod, malloc'd; NULL: no memory. Names are valid until the callback returns. */
struct evict_pod *evict_survey(const struct rp_instance *inst, uint32_t *ret_n);

struct evict_rounds *evict_rounds_new(void);
void evict_rounds_free(struct evict_rounds *r);
/* What was seen is of another configuration, or of before a stop. */
void evict_rounds_reset(struct evict_rounds *r);
void evict_decide(struct rp_instance *inst, const struct evict_reading *read);
int32_t evict_collect(struct rp_instance *inst, const struct rp_metric_sink *sink);

extern const struct rp_decision evict_decision;

#endif
