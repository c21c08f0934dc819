/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the request of a container: resource requests, QoS class, annotations and the defaults of
 * the configuration determine type and number of CPUs, memory types and classes.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "modules/lib/private/line.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

#define PREFER_SHARED "prefer-shared-cpus" TA_DOMAIN
#define PREFER_ISOLATED "prefer-isolated-cpus" TA_DOMAIN
#define REQUIRE_ISOLATED "require-isolated-cpus" TA_DOMAIN
#define PREFER_RESERVED "prefer-reserved-cpus" TA_DOMAIN
#define PREFER_PRIORITY "prefer-cpu-priority" TA_DOMAIN
#define HIDE_THREADS "hide-hyperthreads" TA_DOMAIN
#define UNLIMITED_BURSTABLE "unlimited-burstable" TA_DOMAIN
#define MEMORY_TYPE "memory-type" TA_DOMAIN
#define STRICT_HINTS "strict.topologyhints" TA_DOMAIN
#define PICK_BY_HINTS "pick-resources-by-hints" TA_DOMAIN

#define DEFAULT_TYPES (MEMALLOC_DRAM | MEMALLOC_PMEM)

/* Boolean preference, and the configuration node that it comes from (NULL: annotation). */
struct preference {
	bool value, annotated;
	rp_cfg at;
};

static const char *place_request_annotation(struct rp_instance *inst, rp_ctr ctr, const char *key,
					    uint32_t *scope)
{
	return inst->h.cache->annotation(inst->h.ctx, ctr, key, scope);
}

__attribute__((format(printf, 3, 4))) static void place_request_because(struct request *r,
									rp_cfg at, const char *fmt,
									...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(r->why, sizeof r->why, fmt, ap);
	va_end(ap);
	r->decided_at = at;
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

static struct preference shared_preference(struct rp_instance *inst, rp_ctr ctr)
{
	const struct settings *s = &inst->plan->settings;
	int value = ctr_annotated_bool(&inst->h, ctr, PREFER_SHARED, NULL);
	if (value >= 0)
		return (struct preference){value == 1, true, NULL};
	return (struct preference){s->prefer_shared, false, s->shared_at};
}

/*
 * Reads whether the container wants isolated CPUs. Of the "require" and the "prefer" annotation the
 * more specific one is used; if both are equally specific, the requirement. *ret_strict: isolated
 * CPUs are required.
 */
static struct preference isolated_preference(struct rp_instance *inst, rp_ctr ctr, bool *ret_strict)
{
	const struct settings *s = &inst->plan->settings;
	uint32_t strict_scope = 0, scope = 0;
	bool required =
		place_request_annotation(inst, ctr, REQUIRE_ISOLATED, &strict_scope) != NULL;
	bool preferred = place_request_annotation(inst, ctr, PREFER_ISOLATED, &scope) != NULL;
	bool strict = required && (!preferred || strict_scope <= scope);
	int value = -1;
	if (required || preferred)
		value = ctr_annotated_bool(&inst->h, ctr,
					   strict ? REQUIRE_ISOLATED : PREFER_ISOLATED, NULL);
	*ret_strict = strict && value >= 0;
	if (value >= 0)
		return (struct preference){value == 1, true, NULL};
	return (struct preference){s->prefer_isolated, false, s->isolated_at};
}

static void place_request_share(struct request *r, enum grant_type type)
{
	r->type = type;
	r->full = 0;
	r->fraction = ctr_counted_cpu(&r->info) > 0 ? ctr_counted_cpu(&r->info) : 0;
}

static bool is_reserved_namespace(const struct settings *s, const char *ns)
{
	return strcmp(ns, "kube-system") == 0 || strings_match(&s->reserved_namespaces, ns);
}

/*
 * Classifies containers that preserve their CPUs or run on reserved CPUs. Returns false for other
 * containers.
 */
static bool classify_special(struct rp_instance *inst, struct request *r)
{
	const struct settings *s = &inst->plan->settings;
	if (r->info.flags & RP_CTR_PRESERVE_CPU) {
		place_request_share(r, GRANT_PRESERVE);
		place_request_because(r, NULL, "annotated to keep its CPUs: unmanaged");
		return true;
	}
	int reserved = ctr_annotated_bool(&inst->h, r->info.ctr, PREFER_RESERVED, NULL);
	if (reserved == 1) {
		place_request_because(r, NULL, "annotated to prefer reserved CPUs");
	} else if (reserved < 0 && is_reserved_namespace(s, r->info.pod_namespace)) {
		place_request_because(r, s->namespaces_at, "namespace %s runs on the reserved CPUs",
				      r->info.pod_namespace);
	} else {
		return false;
	}
	place_request_share(r, GRANT_RESERVED);
	return true;
}

/* Requests exclusive CPUs. isolated: the preference for isolated CPUs; NULL: they are not used. */
static void take_whole(const struct rp_instance *inst, struct request *r,
		       const struct preference *isolated)
{
	r->type = GRANT_NORMAL;
	r->full = r->info.cpu_request / 1000;
	if (!(r->info.flags & RP_CTR_CLAIM)) /* the number of CPUs of a claim is fixed */
		r->full = isolation_cores(&inst->plan->settings.isolation, r->full);
	r->fraction = r->info.cpu_request % 1000;
	r->isolate = isolated && isolated->value;
	place_request_because(r, isolated && isolated->value ? isolated->at : NULL,
			      "Guaranteed, %lldm: %lld exclusive CPU%s%s%s",
			      (long long)r->info.cpu_request, (long long)r->full,
			      r->full == 1 ? "" : "s", r->isolate ? " (isolated if possible)" : "",
			      r->fraction ? " and a part of shared CPUs" : "");
}

/*
 * Splits the CPU request of a Guaranteed container into exclusive and shared CPUs, by its size and
 * its annotations.
 */
static void classify_guaranteed(struct rp_instance *inst, struct request *r)
{
	int64_t request = r->info.cpu_request;
	place_request_share(r, GRANT_NORMAL);
	if (request < 1000) {
		place_request_because(r, NULL, "Guaranteed, %lldm, less than one CPU: shared CPUs",
				      (long long)request);
		return;
	}
	if (!ctr_may_own_cpus(&r->info)) {
		place_request_because(
			r, NULL,
			"Guaranteed, %lldm, the pod's own resources are its CPU limit: shared CPUs",
			(long long)request);
		return;
	}
	bool strict;
	struct preference shared = shared_preference(inst, r->info.ctr);
	struct preference isolated = isolated_preference(inst, r->info.ctr, &strict);
	bool one = request < 2000, whole = request % 1000 == 0;
	if ((one || whole) && shared.value) {
		place_request_because(r, shared.at, "Guaranteed, %lldm, prefers shared CPUs",
				      (long long)request);
		return;
	}
	if (!one && !whole && (shared.value || !shared.annotated)) {
		place_request_because(r, NULL,
				      "Guaranteed, %lldm, not a whole number of CPUs and not "
				      "annotated otherwise: shared CPUs",
				      (long long)request);
		return;
	}
	take_whole(inst, r, one || !whole || isolated.annotated ? &isolated : NULL);
	r->strict_isolated = strict && r->isolate;
}

static void place_request_classify(struct rp_instance *inst, struct request *r)
{
	if (r->info.flags & RP_CTR_CLAIM) {
		take_whole(inst, r, NULL);
		return;
	}
	if (classify_special(inst, r))
		return;
	if (r->info.qos == RP_QOS_GUARANTEED) {
		classify_guaranteed(inst, r);
		return;
	}
	place_request_share(r, GRANT_NORMAL);
	if (r->info.qos == RP_QOS_BEST_EFFORT)
		r->fraction = 0;
	struct line why = {0}; /* the most frequent reason: without printf */
	line_say(&why, r->info.qos == RP_QOS_BURSTABLE ? "Burstable, " : "BestEffort, ");
	line_number(&why, r->fraction);
	line_say(&why, "m: shared CPUs");
	memcpy(r->why, why.text, why.n + 1);
}

static void read_priority(struct rp_instance *inst, struct request *r)
{
	if (r->type != GRANT_NORMAL || r->info.qos != RP_QOS_GUARANTEED)
		return;
	const char *text = place_request_annotation(inst, r->info.ctr, PREFER_PRIORITY, NULL);
	if (!text || strcmp(text, "default") == 0)
		return;
	for (uint32_t i = 0; cpualloc_prio_names[i]; i++) {
		if (strcmp(text, cpualloc_prio_names[i]) == 0) {
			r->prio = (enum cpualloc_prio)i;
			return;
		}
	}
	modhost_log(&inst->h, RP_LOG_WARNING, r->info.ctr,
		    "annotation " PREFER_PRIORITY ": \"%.64s\" is not a CPU priority, ignoring it",
		    text);
}

static void read_level(struct rp_instance *inst, struct request *r)
{
	if (r->info.qos != RP_QOS_BURSTABLE || r->info.cpu_limit > 0)
		return;
	const char *text = place_request_annotation(inst, r->info.ctr, UNLIMITED_BURSTABLE, NULL);
	uint32_t level = text ? level_parse(text) : 0;
	if (level)
		r->level = tree_level(inst->plan, level);
	else if (text)
		modhost_log(&inst->h, RP_LOG_WARNING, r->info.ctr,
			    "annotation " UNLIMITED_BURSTABLE
			    ": \"%.64s\" is not a level of the machine, ignoring it",
			    text);
}

/* ---- invalid annotations --------------------------------------------------------------------- */

/* Returns the result of reading annotations, but 0 for invalid ones of a container that exists
 * already. what: the annotations, for parse errors, whose text only the host has. */
static int32_t place_request_judge(const struct rp_instance *inst, struct request *r,
				   const char *what, int32_t result)
{
	if (!result || result == -RP_ENOMEM || r->info.state == RP_STATE_CREATING)
		return result;
	if (!r->problem[0] && inst->why[0])
		(void)snprintf(r->problem, sizeof r->problem, "%.*s", (int)sizeof r->problem - 1,
			       inst->why);
	else if (!r->problem[0])
		(void)snprintf(r->problem, sizeof r->problem, "%s cannot be read", what);
	return 0;
}

void request_warn(const struct rp_instance *inst, const struct request *r)
{
	if (r->problem[0])
		modhost_log(&inst->h, RP_LOG_WARNING, r->info.ctr,
			    "one of its annotations is invalid and ignored: %s", r->problem);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint32_t read_types(struct rp_instance *inst, rp_ctr ctr)
{
	const char *text = place_request_annotation(inst, ctr, MEMORY_TYPE, NULL);
	if (!text || !*text)
		return DEFAULT_TYPES;
	/* Unlike under balloons, blanks are not part of the syntax. */
	uint32_t types = strpbrk(text, " \t") ? 0 : memalloc_types_of(text);
	if (types)
		return types;
	modhost_log(&inst->h, RP_LOG_WARNING, ctr,
		    "annotation " MEMORY_TYPE ": \"%.64s\" is not a list of memory types, ignoring "
		    "it: expected dram, pmem, hbm or mixed, separated by commas without blanks",
		    text);
	return DEFAULT_TYPES;
}

/*
 * Reads size and types of the requested memory and the cold start. Types that the node lacks are
 * replaced.
 */
static int32_t read_memory(struct rp_instance *inst, struct request *r)
{
	const struct rp_plan *p = inst->plan;
	int32_t e = place_request_judge(inst, r, "cold-start" TA_DOMAIN,
					cold_read(inst, r->info.ctr, &r->cold_ms));
	if (e)
		return e;
	char why[PLACE_WHY_MAX];
	r->huge = !r->mem_preserve && RP_HAS(inst->h.cache, hugepages) &&
		  inst->h.cache->hugepages(inst->h.ctx, 0, r->info.ctr, rp_ids_none(), why,
					   sizeof why) != 0;
	r->mem_size = r->info.mem_request ? r->info.mem_request : r->info.mem_limit;
	if (r->info.qos == RP_QOS_BEST_EFFORT || r->mem_size < 0)
		r->mem_size = 0;
	if (r->mem_preserve) {
		r->cold_ms = 0;
		return 0;
	}
	uint32_t wanted = read_types(inst, r->info.ctr);
	r->mem_types = wanted & p->mem_types;
	if (!r->mem_types) {
		modhost_log(&inst->h, RP_LOG_WARNING, r->info.ctr,
			    "the machine has none of the requested memory types: using others");
		r->mem_types =
			DEFAULT_TYPES & p->mem_types ? DEFAULT_TYPES & p->mem_types : p->mem_types;
	}
	if (!p->cold_start && r->mem_types == MEMALLOC_PMEM)
		r->mem_types |= MEMALLOC_DRAM & p->mem_types;
	if (!r->cold_ms)
		return 0;
	r->warm_types = r->mem_types | (MEMALLOC_DRAM & p->mem_types);
	if (r->mem_types & ~MEMALLOC_DRAM) {
		r->mem_types &= ~MEMALLOC_DRAM;
		return 0;
	}
	modhost_log(&inst->h, RP_LOG_WARNING, r->info.ctr,
		    "no memory is available for the cold start: it starts on DRAM");
	r->cold_ms = 0;
	return 0;
}

void request_follow_cold(struct request *r, const struct grant_facts *before)
{
	bool started = r->info.state != RP_STATE_CREATING && r->info.state != RP_STATE_CREATED;
	if (!r->cold_ms)
		return;
	if (before && before->flags & GRANT_COLD)
		r->cold_until = before->cold_until;
	if (!started || r->cold_until)
		return;
	r->cold_ms = 0;
	r->mem_types = r->warm_types;
}

/* ---- request --------------------------------------------------------------------------------- */

struct request request_of(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	return (struct request){
		.info = *info,
		.pool_hint = NO_POOL,
		.pod_pool = NO_POOL,
		.prio = inst->plan->settings.prio,
		.level = inst->plan->burstable_level,
		.mem_preserve = (info->flags & RP_CTR_PRESERVE_MEM) != 0,
		.class = CPUCLASS_NONE,
		.sched = SCHEDCLASS_NONE,
		.needs = {info->cpu_request, info->cpu_limit, info->mem_request, info->mem_limit}};
}

/* Reads the annotations for CPU class, interrupts and memory. */
static int32_t place_request_annotated(struct rp_instance *inst, struct request *r)
{
	int32_t e = place_request_judge(inst, r, "cpu-class" TA_DOMAIN, classes_of(inst, r));
	if (!e)
		e = place_request_judge(inst, r, "irq-affinity" TA_DOMAIN,
					interrupts_read(inst, r));
	return e ? e : read_memory(inst, r);
}

static int32_t place_request_fill(struct rp_instance *inst, struct hints *known,
				  struct request *ret)
{
	const struct rp_ctr_info *info = &ret->info;
	int32_t r = 0;
	if (known)
		ret->hints = hints_ref(known);
	else
		r = place_request_judge(inst, ret, "an annotation of topology hints",
					hints_make(inst, info, &ret->hints));
	if (r)
		return r;
	place_request_classify(inst, ret);
	ret->zero = ret->type == GRANT_NORMAL && !ret->full && !ret->fraction;
	ret->hide_threads = ctr_annotated_bool(&inst->h, info->ctr, HIDE_THREADS, NULL) == 1;
	read_priority(inst, ret);
	read_level(inst, ret);
	if (ret->hints) {
		ret->strict_hints =
			ctr_annotated_bool(&inst->h, info->ctr, STRICT_HINTS, NULL) == 1;
		ret->pick_by_hints =
			ctr_annotated_bool(&inst->h, info->ctr, PICK_BY_HINTS, NULL) == 1;
	}
	return place_request_annotated(inst, ret);
}

int32_t request_read(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints *known,
		     struct request *ret)
{
	*ret = request_of(inst, info);
	/* Hides the message of an earlier failure, which the caller may still need. */
	char first = inst->why[0];
	inst->why[0] = '\0';
	int32_t r = place_request_fill(inst, known, ret);
	if (!inst->why[0])
		inst->why[0] = first;
	if (r)
		request_fini(ret);
	return r;
}

void request_fini(struct request *r)
{
	r->hints = hints_unref(r->hints);
	r->irq = irq_ask_unref(r->irq);
}
