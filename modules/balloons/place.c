/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of the balloon type and the balloon for a container. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"

static const char *place_annotation(struct rp_instance *inst, rp_ctr ctr, const char *key)
{
	return inst->h.cache->annotation(inst->h.ctx, ctr, key, NULL);
}

bool choose_untouched(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	if (info->flags & RP_CTR_CLAIM)
		return false;
	if (info->flags & RP_CTR_PRESERVE_CPU) {
		modhost_note(&inst->h, info->ctr, "annotated to keep its CPUs: unmanaged");
		return true;
	}
	int32_t i = match_any(&inst->h, &inst->plan->preserve, info);
	if (i >= 0)
		modhost_note(&inst->h, info->ctr, "preserve.matchExpressions[%d]: unmanaged", i);
	return i >= 0;
}

/* Writes the message to c->error and returns code. */
__attribute__((format(printf, 3, 4))) static int32_t choose_fail(struct choice *c, int32_t code,
								 const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(c->error, sizeof c->error, fmt, ap);
	va_end(ap);
	modhost_one_line(c->error);
	return code;
}

/* ---- type ------------------------------------------------------------------------------------ */

static bool place_takes(struct rp_instance *inst, const struct type *t,
			const struct rp_ctr_info *info, struct choice *c)
{
	int32_t i = match_any(&inst->h, &t->match, info);
	if (i >= 0) {
		(void)snprintf(c->text, sizeof c->text, "balloon type %s: matchExpressions[%d]",
			       t->name, i);
		return true;
	}
	if (!glob_any(&t->namespaces, info->pod_namespace))
		return false;
	(void)snprintf(c->text, sizeof c->text, "balloon type %s by namespace %s", t->name,
		       info->pod_namespace);
	return true;
}

int32_t choose_type(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c)
{
	const struct rp_plan *p = inst->plan;
	const char *name = place_annotation(inst, info->ctr, "balloon.balloons." ANNOTATION_DOMAIN);
	if (info->flags & RP_CTR_CLAIM) {
		claims_choose_type(inst, info, c);
		return 0;
	}
	c->type = NULL;
	if (name) {
		c->type = plan_type(p, name);
		if (!c->type)
			return choose_fail(c, -RP_EINVAL, "no balloon for annotation \"%s\"", name);
		(void)snprintf(c->text, sizeof c->text, "balloon type %s by annotation", name);
	}
	for (uint32_t i = 0; !c->type && i < p->n_types; i++)
		if (place_takes(inst, &p->types[i], info, c))
			c->type = &p->types[i];
	if (!c->type) {
		static const char none[] = "no balloon type matches: default";
		c->type = p->default_type;
		memcpy(c->text, none, sizeof none);
	}
	c->decided_at = c->type->at;
	return 0;
}

/* ---- balloon --------------------------------------------------------------------------------- */

/* Search for a balloon. The best candidate has the most room, then the fewest members, then the
 * lowest index. */
struct search {
	struct rp_instance *inst;
	const struct rp_ctr_info *info;
	const struct type *type;
	struct balloon *best;
	uint32_t n_free; /* number of free CPUs */
	bool quiet; /* write no notes about failed attempts */
	int64_t room;
	uint32_t at;
};

/* Capacity that a search considers, and the order of the candidates. */
enum how {
	AS_IT_IS, /* room in the current CPUs */
	INFLATED, /* room after growth, ordered by that room */
	SAME, /* room after growth, ordered by room in the current CPUs */
};

static void place_consider(struct search *q, struct balloon *b, uint32_t at, enum how how)
{
	int64_t max = balloon_max_avail_of(b, q->n_free);
	int64_t now = balloon_avail(b) - b->request;
	if (claims_has(b))
		return;
	if ((how == AS_IT_IS ? now : max - b->request) < ctr_counted_cpu(q->info))
		return;
	/* A container that requests no CPU still needs one to run on. */
	if (!b->n_cpus && max < 1000)
		return;
	int64_t room = how == INFLATED ? max - b->request : now;
	if (q->best && room <= q->room) {
		if (room < q->room || b->n_members > q->best->n_members)
			return;
		if (b->n_members == q->best->n_members && at > q->at)
			return;
	}
	q->best = b;
	q->room = room;
	q->at = at;
}

static bool are_same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* A group or a namespace with its hash. */
struct tag {
	const char *text;
	uint32_t hash;
};

static bool has_group(const struct balloon *b, const void *arg)
{
	const struct tag *tag = arg;
	for (uint32_t i = 0; b->n_of_group[tag->hash] && i < b->n_members; i++)
		if (are_same(b->members[i]->group, tag->text))
			return true;
	return false;
}

static bool has_space(const struct balloon *b, const void *arg)
{
	const struct tag *tag = arg;
	for (uint32_t i = 0; b->n_of_space[tag->hash] && i < b->n_members; i++)
		if (are_same(b->members[i]->space, tag->text))
			return true;
	return false;
}

static bool has_pod(const struct balloon *b, const void *arg)
{
	for (const struct member *m = arg; m; m = m->pod_next)
		if (m->balloon == b)
			return true;
	return false;
}

static struct balloon *best_of(struct search *q, enum how how,
			       bool (*has)(const struct balloon *b, const void *arg),
			       const void *arg)
{
	const struct state *s = q->inst->state;
	q->best = NULL;
	q->n_free = rp_ids_count(rp_ids_of(&s->free));
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i]->type == q->type && (!has || has(s->list[i], arg)))
			place_consider(q, s->list[i], i, how);
	return q->best;
}

static struct balloon *same_group(struct search *q, const char *group)
{
	const struct tag tag = {group, state_hash(group)};
	return *q->type->group_by ? best_of(q, SAME, has_group, &tag) : NULL;
}

static struct balloon *same_pod(struct search *q)
{
	const struct member *m = table_get(&q->inst->state->by_pod, q->info->pod);
	return m && !q->type->spread_pods ? best_of(q, SAME, has_pod, m) : NULL;
}

static struct balloon *empty_one(struct search *q)
{
	const struct state *s = q->inst->state;
	q->n_free = rp_ids_count(rp_ids_of(&s->free));
	for (uint32_t i = 0; i < s->n; i++) {
		q->best = NULL;
		if (s->list[i]->type == q->type && !s->list[i]->n_members)
			place_consider(q, s->list[i], i, INFLATED);
		if (q->best)
			return q->best;
	}
	return NULL;
}

static struct balloon *new_one(struct search *q, struct choice *c)
{
	struct state *s = q->inst->state;
	struct balloon *b = empty_one(q);
	if (b)
		return b;
	int64_t n_free = rp_ids_count(rp_ids_of(&s->free));
	uint32_t mark = state_mark(s);
	const char *why = "no CPU is free";
	struct near *near = NULL;
	bool can = n_free && n_free >= q->type->min_cpus;
	if (can && devices_near(q->inst, q->info->ctr, q->type, q->quiet, &near)) {
		why = "out of memory";
		can = false;
	}
	/* The balloon is created even if it cannot reach this size yet. The check below notes
	 * what is missing. */
	int64_t size = q->inst->plan->parity ? 0 : ctr_counted_cpu(q->info);
	if (size > 1000 * n_free)
		size = 0;
	if (!can || balloon_create(s, q->type, size, near, &b, &why)) {
		if (!q->quiet)
			modhost_note(&q->inst->h, q->info->ctr, "no new balloon: %s", why);
		return NULL;
	}
	if (balloon_max_avail(s, b) < ctr_counted_cpu(q->info) || balloon_max_avail(s, b) < 1000) {
		state_undo_to(s, mark);
		if (!q->quiet)
			modhost_note(
				&q->inst->h, q->info->ctr,
				"no new balloon: it could not grow to the container's request");
		return NULL;
	}
	c->created = true;
	return b;
}

static struct balloon *place_method(struct choice *c, const char *name, struct balloon *found)
{
	if (found)
		c->method = name;
	return found;
}

/* Applies the methods that tie a container to a balloon, strongest first, and stops before the
 * method of tie `than`. */
static struct balloon *find_tied(struct search *q, struct choice *c, bool grouped, enum tie than)
{
	const struct type *t = q->type;
	const struct tag space = {q->info->pod_namespace, state_hash(q->info->pod_namespace)};
	struct balloon *b = NULL;
	if (grouped && than > TIE_GROUP)
		b = place_method(c, "same group", same_group(q, c->group));
	if (!b && than > TIE_POD)
		b = place_method(c, "same pod", same_pod(q));
	if (!b && than > TIE_SPACE && t->per_namespace)
		b = place_method(c, "same namespace", best_of(q, SAME, has_space, &space));
	if (!b && than > TIE_OWN && (t->per_namespace || t->prefer_new))
		b = place_method(c, "a new one", new_one(q, c));
	return b;
}

static struct balloon *find_balloon(struct search *q, struct choice *c, bool grouped)
{
	const struct type *t = q->type;
	if (q->info->flags & RP_CTR_CLAIM)
		return place_method(c, "a claim", new_one(q, c));
	struct balloon *b = find_tied(q, c, grouped, TIE_NONE);
	if (!b)
		b = place_method(c, "enough room", best_of(q, AS_IT_IS, NULL, NULL));
	if (!b)
		b = place_method(c, "can be inflated", best_of(q, INFLATED, NULL, NULL));
	if (!b && !t->per_namespace && !t->prefer_new)
		b = place_method(c, "a new one", new_one(q, c));
	return b;
}

/* Sets c->group. Returns false if the type has no groupBy or it names a value that the container
 * does not have. */
static bool read_group(const struct search *q, struct choice *c)
{
	struct rp_instance *inst = q->inst;
	c->created = false;
	c->group[0] = '\0';
	if (!*q->type->group_by)
		return false;
	if (match_expand(&inst->h, q->info, q->type->group_by, c->group, sizeof c->group))
		return true;
	if (!q->quiet)
		modhost_note(&inst->h, q->info->ctr,
			     "groupBy uses a property that the container lacks");
	return false;
}

int32_t choose_balloon(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c)
{
	struct search q = {.inst = inst, .info = info, .type = c->type};
	bool grouped = read_group(&q, c);
	c->balloon = find_balloon(&q, c, grouped);
	if (!c->balloon)
		return choose_fail(c, -RP_ENOSPC, "no balloon of type %s has room for %lldm",
				   c->type->name, (long long)ctr_counted_cpu(info));
	return 0;
}

/* ---- better balloons for members ------------------------------------------------------------- */

struct company choose_company(const struct member *m)
{
	struct company c = {0, 0, 0};
	for (uint32_t i = 0; i < m->balloon->n_members; i++) {
		const struct member *x = m->balloon->members[i];
		if (x == m)
			continue;
		c.in_group += are_same(x->group, m->group);
		c.in_space += are_same(x->space, m->space);
		c.in_pod += x->pod == m->pod;
	}
	return c;
}

enum tie choose_tie(const struct member *m)
{
	const struct type *t = m->balloon->type;
	struct company c = choose_company(m);
	if (c.in_group)
		return TIE_GROUP;
	if (!t->spread_pods && c.in_pod)
		return TIE_POD;
	if (c.in_space)
		return TIE_SPACE;
	return (t->per_namespace || t->prefer_new) && m->balloon->n_members == 1 ? TIE_OWN
										 : TIE_NONE;
}

void choose_stronger(struct rp_instance *inst, const struct rp_ctr_info *info, enum tie than,
		     struct choice *c)
{
	struct search q = {.inst = inst, .info = info, .type = c->type, .quiet = true};
	bool grouped = read_group(&q, c);
	c->balloon = find_tied(&q, c, grouped, than);
}

static bool is_other(const struct balloon *b, const void *arg)
{
	return b != arg && b->n_cpus;
}

struct balloon *choose_roomier(struct rp_instance *inst, const struct rp_ctr_info *info,
			       const struct balloon *but)
{
	struct search q = {.inst = inst, .info = info, .type = but->type};
	return best_of(&q, AS_IT_IS, is_other, but);
}

/* ---- new members ----------------------------------------------------------------------------- */

static void read_annotations(struct rp_instance *inst, const struct rp_ctr_info *info,
			     struct member *m)
{
	const char *text;
	int hide = ctr_annotated_bool(&inst->h, info->ctr, "hide-hyperthreads." ANNOTATION_DOMAIN,
				      NULL);
	if (hide >= 0)
		m->hide_threads = hide;
	text = place_annotation(inst, info->ctr, "memory-type." ANNOTATION_DOMAIN);
	uint32_t types = text ? memalloc_types_of(text) : 0;
	if (types)
		m->memory_types = types;
	else if (text && *text)
		modhost_log(&inst->h, RP_LOG_WARNING, info->ctr,
			    "annotation memory-type: \"%.40s\" is ignored", text);
}

struct member *choose_member(struct rp_instance *inst, const struct rp_ctr_info *info,
			     const struct type *t)
{
	struct member *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->ctr = info->ctr;
	m->pod = info->pod;
	m->fresh = true;
	m->request = ctr_counted_cpu(info);
	m->mem_limit = info->mem_limit;
	m->qos = info->qos;
	m->claim = info->flags & RP_CTR_CLAIM;
	m->hide_threads = t->hide_threads && !m->claim;
	m->pin_memory = t->pin_memory;
	m->preserve_memory = info->flags & RP_CTR_PRESERVE_MEM;
	m->memory_types = t->memory_types;
	read_annotations(inst, info, m);
	return m;
}

int32_t choose_join(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c)
{
	struct state *s = inst->state;
	struct balloon *b = c->balloon;
	const struct type *t = b->type;
	const char *why = "";
	bool unused = !b->n_members && !inst->plan->parity;
	int64_t want = b->request + ctr_counted_cpu(info);
	if (want < 1)
		want = 1;
	if (balloon_avail(b) < want) {
		int32_t r = balloon_resize(s, b, want, &why);
		if (!r && balloon_avail(b) < want) {
			r = -RP_ENOSPC;
			why = "its components cannot grow evenly";
		}
		if (r)
			return choose_fail(c, r, "%s[%u] cannot be inflated to %lldm: %s", t->name,
					   b->instance, (long long)want, why);
		inst->counters.resized++;
		/* No container uses the CPUs of this balloon yet, so it may move to better ones. */
		if (unused && compact(s, b, &why) < 0)
			return choose_fail(c, -RP_ENOMEM, "out of memory");
	}
	if (info->flags & RP_CTR_CLAIM && balloon_avail(b) != want)
		return choose_fail(c, -RP_ENOSPC,
				   "balloon type %s gives a claim of %lld CPUs a balloon of %u: "
				   "claim as many",
				   t->name, (long long)(want / 1000), b->n_cpus);
	struct member *m = choose_member(inst, info, t);
	if (!m || state_join(s, b, m, t->per_namespace ? info->pod_namespace : NULL,
			     *t->group_by ? c->group : NULL))
		return choose_fail(c, -RP_ENOMEM, "out of memory");
	return 0;
}
