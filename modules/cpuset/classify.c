/* SPDX-License-Identifier: Apache-2.0 */
/* Which class a container is of, by its pod's annotations and by what the runtime was asked for. */
#include <stdio.h>
#include <string.h>

#include "modules/cpuset/cpuset.h"

#define SHARES_MAX 262144 /* the scale of shares ends at 256 CPUs */
#define CPUS_OF_SHARES_MAX 256
#define WRONG_CPUS_SHOWN 16u

const char *const class_names[N_CLASSES] = {"shared", "integer", "annotated"};

/* ---- lists --------------------------------------------------------------------------------------------------------- */

static bool read_number(const char **text, uint32_t *ret)
{
	const char *p = *text;
	uint32_t n = 0;
	while (*p >= '0' && *p <= '9' && n <= LIST_CPU_MAX)
		n = n * 10 + (uint32_t)(*p++ - '0');
	if (p == *text || n > LIST_CPU_MAX)
		return false;
	*text = p;
	*ret = n;
	return true;
}

/* "5" or "2-4", and nothing behind it. */
static bool read_item(const char *item, uint32_t len, struct rp_idset *ret, uint32_t *ret_beyond)
{
	const char *p = item;
	uint32_t first, last;
	if (!read_number(&p, &first))
		return false;
	last = first;
	if (p < item + len && *p == '-') {
		p++;
		if (!read_number(&p, &last))
			return false;
	}
	if (p != item + len || last < first)
		return false;
	for (uint32_t cpu = first; cpu <= last && cpu < RP_CPUS_MAX; cpu++)
		rp_idset_add(ret, cpu);
	if (last >= RP_CPUS_MAX && !*ret_beyond)
		*ret_beyond = first < RP_CPUS_MAX ? RP_CPUS_MAX : first;
	return true;
}

bool list_parse(const char *text, struct rp_idset *ret, uint32_t *ret_beyond,
		char why[LIST_WHY_MAX])
{
	uint32_t n = 0;
	*ret_beyond = 0;
	rp_idset_clear(ret);
	if (strnlen(text, LIST_TEXT_MAX + 1) > LIST_TEXT_MAX) {
		(void)snprintf(why, LIST_WHY_MAX, "longer than %u characters", LIST_TEXT_MAX);
		return false;
	}
	if (!text[strspn(text, " \t")]) {
		(void)snprintf(why, LIST_WHY_MAX, "empty");
		return false;
	}
	for (const char *p = text, *end; p; p = *end ? end + 1 : NULL) {
		end = p + strcspn(p, ",");
		p += strspn(p, " \t");
		uint32_t len = (uint32_t)(end > p ? end - p : 0);
		while (len && (p[len - 1] == ' ' || p[len - 1] == '\t'))
			len--;
		if (!len) {
			(void)snprintf(why, LIST_WHY_MAX, "empty CPU value");
			return false;
		}
		if (n++ == LIST_ITEMS_MAX) {
			(void)snprintf(why, LIST_WHY_MAX, "more than %u elements", LIST_ITEMS_MAX);
			return false;
		}
		if (!read_item(p, len, ret, ret_beyond)) {
			(void)snprintf(why, LIST_WHY_MAX, "%.*s", (int)(len < 64 ? len : 64), p);
			return false;
		}
	}
	return true;
}

/* "[3 5 99]", at most so many of them. */
static const char *few(struct rp_ids cpus, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "[");
	uint32_t shown = 0;
	RP_IDS_EACH (cpu, cpus) {
		if (shown == WRONG_CPUS_SHOWN || n + 16 > size) {
			n += (size_t)snprintf(buf + n, size - n, " …");
			break;
		}
		n += (size_t)snprintf(buf + n, size - n, "%s%u", shown++ ? " " : "", cpu);
	}
	(void)snprintf(buf + n, size - n, "]");
	return buf;
}

static const char *named_text(const struct rp_instance *inst, const struct looked *c)
{
	const struct modhost *h = &inst->h;
	const char *text = h->cache->pod_annotation(h->ctx, c->info.pod, inst->plan->named_key);
	return text ? text : "";
}

int32_t named_cpus(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	const struct modhost *h = &inst->h;
	char why[LIST_WHY_MAX], text[256];
	struct rp_idset wrong;
	uint32_t beyond;
	if (!list_parse(named_text(inst, c), ret, &beyond, why))
		return modhost_fail(h, -RP_EINVAL, "annotation %s: invalid CPU list: %s",
				    inst->plan->named_key, why);
	if (beyond)
		return modhost_fail(h, -RP_EINVAL, "annotation %s: CPU(s) not online: [%u]",
				    inst->plan->named_key, beyond);
	const struct {
		const char *what;
		const struct rp_idset *of;
	} checks[] = {{"online", &inst->plan->machine->online},
		      {"available", &inst->plan->allowed}};
	for (uint32_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		rp_idset_andnot(&wrong, rp_ids_of(ret), rp_ids_of(checks[i].of));
		if (!rp_ids_empty(rp_ids_of(&wrong)))
			return modhost_fail(h, -RP_EINVAL, "annotation %s: CPU(s) not %s: %s",
					    inst->plan->named_key, checks[i].what,
					    few(rp_ids_of(&wrong), text, sizeof text));
	}
	return 0;
}

void named_here(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	char why[LIST_WHY_MAX];
	uint32_t beyond;
	if (!list_parse(named_text(inst, c), ret, &beyond, why))
		rp_idset_clear(ret);
	rp_idset_and(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->allowed));
}

/* A list that cannot be read forbids nothing, and never keeps a container from being created. */
static void read_forbidden(const struct rp_instance *inst, struct looked *c)
{
	const struct modhost *h = &inst->h;
	const char *key = inst->plan->forbidden_key;
	const char *text = h->cache->pod_annotation(h->ctx, c->info.pod, key);
	char why[LIST_WHY_MAX];
	uint32_t beyond;
	c->forbids = false;
	rp_idset_clear(&c->forbidden);
	if (!text || c->class == CLASS_ANNOTATED)
		return;
	c->forbids = list_parse(text, &c->forbidden, &beyond, why);
	if (!c->forbids)
		modhost_log(h, RP_LOG_WARNING, c->info.ctr,
			    "annotation %s is ignored: invalid CPU list: %s", key, why);
}

/* ---- classes ------------------------------------------------------------------------------------------------------- */

/* Whole CPUs of a quota; 0: it is none of whole CPUs. */
static int64_t whole_quota(const struct rp_ctr_info *i)
{
	if (i->asked_quota == RP_NOT_SET || i->asked_period == RP_NOT_SET || i->asked_quota <= 0 ||
	    i->asked_period <= 0 || i->asked_quota % i->asked_period)
		return 0;
	return i->asked_quota / i->asked_period;
}

/* Shares stand for n CPUs when they are at most a hundredth of a CPU away. */
static bool shares_are(int64_t shares, int64_t n)
{
	if (shares == RP_NOT_SET || n < 1)
		return false;
	if (shares >= SHARES_MAX && n >= CPUS_OF_SHARES_MAX)
		return true;
	int64_t off = shares * 100 - n * 102400;
	return off <= 1024 && off >= -1024;
}

/* What a webhook has written down of the container is exact. */
static int64_t exact_cpus(const struct rp_plan *p, const struct rp_ctr_info *i)
{
	bool memory = i->mem_limit > 0 && i->mem_request == i->mem_limit;
	if (i->cpu_request <= 0 || i->cpu_request % 1000 || i->cpu_request != i->cpu_limit ||
	    (p->needs_memory && !memory))
		return 0;
	return i->cpu_request / 1000;
}

static int64_t integer_cpus(const struct rp_plan *p, const struct rp_ctr_info *i)
{
	if (i->flags & RP_CTR_EXACT_NEEDS)
		return exact_cpus(p, i);
	if (p->needs_memory && i->mem_limit <= 0)
		return 0;
	int64_t n = whole_quota(i);
	if (n)
		return shares_are(i->asked_shares, n) ? n : 0;
	bool no_quota = i->asked_quota == RP_NOT_SET || i->asked_quota <= 0;
	if (!p->by_qos || !no_quota || i->qos != RP_QOS_GUARANTEED || i->cpu_request % 1000)
		return 0;
	return i->cpu_request / 1000;
}

void look_at(const struct rp_instance *inst, const struct rp_ctr_info *info, struct looked *ret)
{
	const struct modhost *h = &inst->h;
	int64_t n = integer_cpus(inst->plan, info);
	ret->info = *info;
	ret->class = CLASS_SHARED;
	ret->why = "does not ask for a whole number of CPUs as request and limit";
	ret->n = 0;
	if (h->cache->pod_annotation(h->ctx, info->pod, inst->plan->named_key)) {
		ret->class = CLASS_ANNOTATED;
		ret->why = "its pod names CPUs";
	} else if (n > 0) {
		ret->class = CLASS_INTEGER;
		ret->why = "asks for a whole number of CPUs as request and limit";
		ret->n = n > RP_CPUS_MAX ? RP_CPUS_MAX + 1 : (uint32_t)n;
	}
	read_forbidden(inst, ret);
}
