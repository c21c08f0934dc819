/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, resizing and deletion of balloons, including composite ones. */
#include <string.h>

#include "modules/balloons/place.h"
#include "modules/lib/private/room.h"

static const char out_of_memory[] = "out of memory";

void balloon_name(const struct balloon *b, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s[%u]", b->type->name, b->instance);
}

struct balloon *balloon_alloc(const struct type *t, uint32_t instance)
{
	struct balloon *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->type = t;
	b->instance = instance;
	return b;
}

int32_t balloon_add_part(struct balloon *b, struct balloon *part)
{
	if (!room_for(&b->parts, &b->cap_parts, b->n_parts + 1, sizeof(struct balloon *)))
		return -RP_ENOMEM;
	b->parts[b->n_parts++] = part;
	part->whole = b;
	return 0;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t balloon_avail(const struct balloon *b)
{
	return 1000 * (int64_t)b->n_cpus;
}

void balloon_count_cpus(struct balloon *b)
{
	b->n_cpus = rp_ids_count(rp_ids_of(&b->cpus));
}

static int64_t max_cpus(const struct balloon *b, int64_t n_free)
{
	int64_t own = b->n_cpus, n = own + n_free;
	for (uint32_t i = 0; i < b->n_parts; i++) {
		/* All parts have the same size, except where the limits of their types differ. */
		int64_t part = max_cpus(b->parts[i], n_free) * b->n_parts;
		n = part < n ? part : n;
	}
	n = n < own ? own : n;
	if (b->type->max_cpus < 0)
		return 0;
	return b->type->max_cpus && b->type->max_cpus < n ? b->type->max_cpus : n;
}

int64_t balloon_max_avail_of(const struct balloon *b, uint32_t n_free)
{
	return 1000 * max_cpus(b, n_free);
}

int64_t balloon_max_avail(const struct state *s, const struct balloon *b)
{
	return balloon_max_avail_of(b, rp_ids_count(rp_ids_of(&s->free)));
}

/* ---- changes of size ------------------------------------------------------------------------- */

int64_t balloon_wanted(const struct type *t, int64_t mcpu)
{
	int64_t n = mcpu / 1000 + (mcpu % 1000 > 0);
	if (t->max_cpus > 0 && n > t->max_cpus)
		n = t->max_cpus;
	if (t->max_cpus < 0)
		n = 0;
	n = n < t->min_cpus ? t->min_cpus : n;
	return (n + t->core - 1) / t->core * t->core;
}

static int32_t move_cpus(struct state *s, struct balloon *b, int64_t delta)
{
	struct rp_idset moved;
	int32_t r = delta > 0 ? resize_grow(s, b, (uint32_t)delta, &moved)
			      : resize_shrink(s, b, (uint32_t)-delta, &moved);
	if (r)
		return r;
	state_save(s, b);
	state_save_free(s);
	if (delta > 0) {
		rp_idset_or(&b->cpus, rp_ids_of(&b->cpus), rp_ids_of(&moved));
		rp_idset_andnot(&s->free, rp_ids_of(&s->free), rp_ids_of(&moved));
	} else {
		rp_idset_andnot(&b->cpus, rp_ids_of(&b->cpus), rp_ids_of(&moved));
		rp_idset_or(&s->free, rp_ids_of(&s->free), rp_ids_of(&moved));
	}
	balloon_count_cpus(b);
	return 0;
}

static int32_t resize_parts(struct state *s, struct balloon *b, int64_t mcpu, const char **why)
{
	if (mcpu < 1000 * b->type->min_cpus)
		mcpu = 1000 * b->type->min_cpus;
	int64_t each = mcpu / b->n_parts + (mcpu % b->n_parts > 0);
	struct rp_idset all;
	rp_idset_clear(&all);
	for (uint32_t i = 0; i < b->n_parts; i++) {
		int32_t r = balloon_resize(s, b->parts[i], each, why);
		if (r)
			return r;
		rp_idset_or(&all, rp_ids_of(&all), rp_ids_of(&b->parts[i]->cpus));
	}
	if (rp_ids_equal(rp_ids_of(&all), rp_ids_of(&b->cpus)))
		return 0;
	state_save(s, b);
	rp_idset_copy(&b->cpus, rp_ids_of(&all));
	balloon_count_cpus(b);
	return 0;
}

int32_t balloon_resize(struct state *s, struct balloon *b, int64_t mcpu, const char **why)
{
	if (b->n_parts)
		return resize_parts(s, b, mcpu, why);
	int64_t delta = balloon_wanted(b->type, mcpu) - b->n_cpus;
	int32_t r = delta ? move_cpus(s, b, delta) : 0;
	if (r)
		*why = r == -RP_ENOMEM ? out_of_memory : "not enough free CPUs";
	return r;
}

/* ---- creation -------------------------------------------------------------------------------- */

/* Adds the numbers of the balloons of type t at or below b, relative to `first`, within one
 * window of RP_CPUS_MAX numbers. */
static void add_used(const struct balloon *b, const struct type *t, uint32_t first,
		     struct rp_idset *ret)
{
	if (b->type == t && b->instance - first < RP_CPUS_MAX)
		rp_idset_add(ret, b->instance - first);
	for (uint32_t i = 0; i < b->n_parts; i++)
		add_used(b->parts[i], t, first, ret);
}

/* Searches one window of RP_CPUS_MAX numbers after another. The first window almost always has a
 * free number. */
uint32_t balloon_free_instance(const struct state *s, const struct type *t,
			       const struct balloon *whole)
{
	for (uint32_t first = 0;; first += RP_CPUS_MAX) {
		struct rp_idset used;
		rp_idset_clear(&used);
		for (uint32_t i = 0; i < s->n; i++)
			add_used(s->list[i], t, first, &used);
		for (const struct balloon *w = whole; w; w = w->whole)
			add_used(w, t, first, &used);
		for (uint32_t i = 0; i < RP_CPUS_MAX; i++)
			if (!rp_ids_has(rp_ids_of(&used), i))
				return first + i;
	}
}

/* Returns the number of balloons of a type at or below b. Balloons of claims do not count for the
 * built-in type default, which has those of claims of other policies. */
static uint32_t count_in(const struct balloon *b, const struct type *t)
{
	uint32_t n = b->type == t && (t->at || !claims_has(b));
	for (uint32_t i = 0; i < b->n_parts; i++)
		n += count_in(b->parts[i], t);
	return n;
}

/* Returns the number of balloons of a type, including those under construction. A balloon under
 * construction is not in the list, and not among the parts of its `whole`. */
static uint32_t count_all(const struct state *s, const struct type *t, const struct balloon *whole)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		n += count_in(s->list[i], t);
	for (; whole; whole = whole->whole)
		n += count_in(whole, t);
	return n;
}

/* Returns the type, of b or of a part below it, that would exceed maxBalloons if `whole` were
 * added to the list; NULL: none. */
static const struct type *too_many(const struct state *s, const struct balloon *whole,
				   const struct balloon *b)
{
	const struct type *t = b->type;
	if (t->max_balloons &&
	    (uint64_t)count_all(s, t, NULL) + count_in(whole, t) > (uint64_t)t->max_balloons)
		return t;
	const struct type *found = NULL;
	for (uint32_t i = 0; i < b->n_parts && !found; i++)
		found = too_many(s, whole, b->parts[i]);
	return found;
}

bool balloon_is_welcome(const struct state *s, const struct balloon *b)
{
	if (state_find(s, b->type, b->instance))
		return false;
	const struct type *t = too_many(s, b, b);
	if (t)
		modhost_log(s->h, RP_LOG_INFO, 0,
			    "not creating %s[%u]: maxBalloons of %s (%lld) reached", b->type->name,
			    b->instance, t->name, (long long)t->max_balloons);
	return !t;
}

/* Returns the number of balloons of a type and of all its component types. A type reached twice is
 * counted once. */
static uint32_t count_family(const struct state *s, const struct type *t,
			     const struct balloon *whole)
{
	if (s->counted[t->index])
		return 0;
	s->counted[t->index] = 1;
	uint32_t n = count_all(s, t, whole);
	for (uint32_t i = 0; i < t->parts.n; i++)
		n += count_family(s, &s->plan->types[t->parts.list[i]], whole);
	return n;
}

static struct balloon *place_balloon_make(struct state *s, const struct type *t,
					  struct balloon *whole, int64_t mcpu, const char **why);

static int32_t make_part(struct state *s, struct balloon *b, uint32_t type, int64_t mcpu,
			 const char **why)
{
	uint32_t mark = state_mark(s);
	struct balloon *part = place_balloon_make(s, &s->plan->types[type], b, mcpu, why);
	if (!part)
		return -RP_ENOSPC;
	if (!balloon_add_part(b, part))
		return 0;
	*why = out_of_memory;
	/* Undo before the part is freed: the undo log refers to it, and the caller undoes the
	 * rest. */
	state_undo_to(s, mark);
	balloon_free(part);
	return -RP_ENOMEM;
}

static int32_t make_parts(struct state *s, struct balloon *b, int64_t mcpu, const char **why)
{
	const struct type *t = b->type;
	uint32_t fewest = UINT32_MAX, best = 0;
	int64_t each = t->parts.n ? (mcpu + t->parts.n - 1) / t->parts.n : 0;
	for (uint32_t i = 0; i < t->parts.n; i++) {
		if (!t->balance_parts) {
			int32_t r = make_part(s, b, t->parts.list[i], each, why);
			if (r)
				return r;
			continue;
		}
		memset(s->counted, 0, s->plan->n_types);
		uint32_t n = count_family(s, &s->plan->types[t->parts.list[i]], b);
		if (n < fewest)
			best = t->parts.list[i];
		fewest = n < fewest ? n : fewest;
	}
	return t->parts.n && t->balance_parts ? make_part(s, b, best, mcpu, why) : 0;
}

/* Returns true if the minCPUs of the component types together cover mcpu. */
static bool parts_suffice(const struct state *s, const struct type *t, int64_t mcpu)
{
	int64_t least = 0;
	if (t->balance_parts)
		return false;
	for (uint32_t i = 0; i < t->parts.n; i++)
		least += 1000 * s->plan->types[t->parts.list[i]].min_cpus;
	return least >= mcpu;
}

/*
 * Returns a new balloon with CPUs for mcpu, at least minCPUs, with all its parts. The balloon is
 * not in the list and not among the parts of `whole` (NULL: top-level). Its place is chosen for
 * the full size, so that growth does not cross a NUMA node's border. Returns NULL with *why if
 * that is impossible.
 */
static struct balloon *place_balloon_make(struct state *s, const struct type *t,
					  struct balloon *whole, int64_t mcpu, const char **why)
{
	if (t->max_balloons && count_all(s, t, whole) >= (uint64_t)t->max_balloons) {
		*why = "maxBalloons reached";
		return NULL;
	}
	uint32_t mark = state_mark(s);
	struct balloon *b = balloon_alloc(t, balloon_free_instance(s, t, whole));
	if (!b) {
		*why = out_of_memory;
		return NULL;
	}
	b->whole = whole;
	if (mcpu < 1000 * t->min_cpus || parts_suffice(s, t, mcpu))
		mcpu = 1000 * t->min_cpus;
	if (!make_parts(s, b, mcpu, why) && !balloon_resize(s, b, mcpu, why))
		return b;
	state_undo_to(s, mark);
	return balloon_free(b);
}

int32_t balloon_create(struct state *s, const struct type *t, int64_t mcpu, struct near *near,
		       struct balloon **ret, const char **why)
{
	uint32_t mark = state_mark(s);
	s->making = near;
	struct balloon *b = place_balloon_make(s, t, NULL, mcpu, why);
	s->making = NULL;
	if (!b) {
		near_free(near);
		return 1;
	}
	b->near = near;
	if (state_add_balloon(s, b)) {
		state_undo_to(s, mark);
		balloon_free(b);
		return -RP_ENOMEM;
	}
	/* pin_changed() checks a new balloon even if it has no CPUs. */
	b->dirty = true;
	*ret = b;
	return 0;
}

static int32_t precreate_type(struct state *s, const struct type *t)
{
	for (int64_t n = state_count(s, t); n < t->min_balloons; n++) {
		struct balloon *b;
		const char *why = out_of_memory;
		int32_t r = balloon_create(s, t, 0, NULL, &b, &why);
		if (r)
			return modhost_fail_at(
				s->h, t->at, r < 0 ? r : -RP_EINVAL,
				"balloon type %s: cannot create the first %lld balloons: %s",
				t->name, (long long)t->min_balloons, why);
	}
	return 0;
}

int32_t balloon_precreate(struct state *s)
{
	static const enum cpualloc_prio order[] = {CPUALLOC_HIGH, CPUALLOC_NORMAL, CPUALLOC_LOW,
						   CPUALLOC_NONE};
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < s->plan->n_types; k++) {
			const struct type *t = &s->plan->types[k];
			int32_t r = t->priority == order[i] ? precreate_type(s, t) : 0;
			if (r)
				return r;
		}
	}
	return 0;
}

/* ---- deletion -------------------------------------------------------------------------------- */

/* Frees the CPUs of a balloon and of its parts. */
static void place_balloon_drain(struct state *s, struct balloon *b)
{
	state_save(s, b);
	rp_idset_or(&s->free, rp_ids_of(&s->free), rp_ids_of(&b->cpus));
	rp_idset_clear(&b->cpus);
	b->n_cpus = 0;
	rp_idset_clear(&b->shared);
	for (uint32_t i = 0; i < b->n_parts; i++)
		place_balloon_drain(s, b->parts[i]);
}

int32_t balloon_shrink(struct state *s, struct balloon *b, const char **why)
{
	if (!b->n_members)
		return balloon_emptied(s, b);
	uint32_t mark = state_mark(s);
	int32_t r = balloon_resize(s, b, b->request > 0 ? b->request : 1, why);
	if (r != -RP_ENOSPC)
		return r;
	/*
	 * The balloon has fewer than minCPUs because the last sync() found no more, and there
	 * are still none. Its members have what they need, so the size is unchanged.
	 */
	state_undo_to(s, mark);
	return 0;
}

int32_t balloon_emptied(struct state *s, struct balloon *b)
{
	const char *why = "";
	if (state_count(s, b->type) > (uint64_t)b->type->min_balloons) {
		state_save_free(s);
		place_balloon_drain(s, b);
		state_remove_balloon(s, b);
		return 0;
	}
	int32_t r = balloon_resize(s, b, 0, &why);
	if (r)
		modhost_log(s->h, RP_LOG_WARNING, 0, "%s[%u] cannot be shrunk: %s", b->type->name,
			    b->instance, why);
	return r == -RP_ENOMEM ? r : 0;
}
