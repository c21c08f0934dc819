/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the image of the balloons is lost: those that containers were in are made anew, out of the
 * CPUs that the containers have. Which of these were the balloon's own, and which were idle and
 * shared, is not known; how many were its own follows from what they ask for. Composite balloons
 * are not made anew: what their parts had cannot be told.
 */
#include <string.h>

#include "modules/balloons/balloons.h"

#define UNKNOWN UINT32_MAX

/* Containers of one balloon. */
struct trace {
	const struct type *type;
	uint32_t instance; /* UNKNOWN: nobody has a record of it */
	int64_t request;
	struct rp_idset cpus; /* that they may run on */
	bool hidden; /* some of them do not see all threads */
};

struct traces {
	struct trace *list;
	uint32_t n;
	struct rp_idset once, often; /* CPUs of at least one, of several */
};

static struct trace *find(struct traces *t, const struct type *type, uint32_t instance,
			  struct rp_ids cpus)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct trace *x = &t->list[i];
		if (x->type != type || x->instance != instance)
			continue;
		if (instance != UNKNOWN || rp_ids_equal(rp_ids_of(&x->cpus), cpus))
			return x;
	}
	struct trace *x = &t->list[t->n++];
	*x = (struct trace){.type = type, .instance = instance};
	return x;
}

static int32_t add_container(struct rp_instance *inst, struct traces *t, rp_ctr ctr,
			     struct choice *c)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct record rec = {.instance = UNKNOWN};
	int32_t r = h->cache->get_ctr(h->ctx, ctr, &info);
	if (r || rp_ids_empty(info.cpus) || choose_untouched(inst, &info) ||
	    choose_type(inst, &info, c) || c->type->parts.n)
		return r;
	if (pin_read_record(inst, ctr, &rec) && strcmp(rec.type, c->type->name) != 0)
		return 0;
	struct member *m = choose_member(inst, &info, c->type);
	if (!m)
		return -RP_ENOMEM;
	struct trace *x = find(t, c->type, rec.instance, info.cpus);
	rp_idset_or(&x->cpus, rp_ids_of(&x->cpus), info.cpus);
	x->request += m->request;
	x->hidden = x->hidden || m->hide_threads;
	free(m);
	return 0;
}

static void count_cpus(struct traces *t)
{
	struct rp_idset again;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct rp_idset *cpus = &t->list[i].cpus;
		rp_idset_and(&again, rp_ids_of(&t->once), rp_ids_of(cpus));
		rp_idset_or(&t->often, rp_ids_of(&t->often), rp_ids_of(&again));
		rp_idset_or(&t->once, rp_ids_of(&t->once), rp_ids_of(cpus));
	}
}

/* Threads that containers do not see although they may be the balloon's: those behind the one of
 * their core that they see. */
static void hidden_cpus(const struct state *s, const struct traces *t, const struct trace *x,
			struct rp_idset *ret)
{
	const struct machine *m = s->plan->machine;
	rp_idset_clear(ret);
	if (!x->hidden)
		return;
	RP_IDS_EACH (cpu, rp_ids_of(&x->cpus)) {
		if (!rp_ids_has(rp_ids_of(&s->free), cpu))
			continue;
		const struct tree_node *core = &m->plain.nodes[m->at[TREE_CORE][cpu]];
		for (uint32_t i = core->first; i < core->end; i++)
			if (m->plain.cpus[i] > cpu)
				rp_idset_add(ret, m->plain.cpus[i]);
	}
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&t->once));
	rp_idset_and(ret, rp_ids_of(ret), rp_ids_of(&s->free));
}

/* Adds up to *n of the CPUs in `from`. */
static int32_t add_some(const struct state *s, const struct trace *x, struct rp_idset *from,
			uint32_t *n, struct rp_idset *ret)
{
	struct rp_idset some;
	uint32_t n_from = rp_ids_count(rp_ids_of(from)), n_some = n_from < *n ? n_from : *n;
	if (!n_some)
		return 0;
	int32_t r = cpualloc_allocate(s->plan->alloc, from, n_some, x->type->priority,
				      CPUALLOC_DEFAULT, &some);
	if (r)
		return r;
	rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&some));
	*n -= n_some;
	return 0;
}

/* The CPUs that were the balloon's own, or as many: rather those that no other containers have. */
static int32_t own_cpus(const struct state *s, const struct traces *t, const struct trace *x,
			struct rp_idset *ret)
{
	struct rp_idset seen, alone, rest, hidden;
	uint32_t want = (uint32_t)balloon_wanted(x->type, x->request > 0 ? x->request : 1);
	rp_idset_clear(ret);
	rp_idset_and(&seen, rp_ids_of(&x->cpus), rp_ids_of(&s->free));
	if (x->instance == UNKNOWN && rp_ids_count(rp_ids_of(&seen)) != want)
		return 0;
	rp_idset_andnot(&alone, rp_ids_of(&seen), rp_ids_of(&t->often));
	rp_idset_and(&rest, rp_ids_of(&seen), rp_ids_of(&t->often));
	hidden_cpus(s, t, x, &hidden);
	int32_t r = add_some(s, x, &alone, &want, ret);
	if (!r)
		r = add_some(s, x, &rest, &want, ret);
	return r ? r : add_some(s, x, &hidden, &want, ret);
}

static int32_t make(struct state *s, const struct traces *t, const struct trace *x)
{
	struct rp_idset cpus;
	uint32_t instance =
		x->instance == UNKNOWN ? balloon_free_instance(s, x->type, NULL) : x->instance;
	int32_t r = own_cpus(s, t, x, &cpus);
	if (r || rp_ids_empty(rp_ids_of(&cpus)))
		return r;
	struct balloon *b = balloon_alloc(x->type, instance);
	if (!b)
		return -RP_ENOMEM;
	if (!balloon_is_welcome(s, b)) {
		balloon_free(b);
		return 0;
	}
	if (state_add_balloon(s, b)) {
		balloon_free(b);
		return -RP_ENOMEM;
	}
	state_save_free(s);
	state_save(s, b);
	rp_idset_copy(&b->cpus, rp_ids_of(&cpus));
	balloon_count_cpus(b);
	rp_idset_andnot(&s->free, rp_ids_of(&s->free), rp_ids_of(&cpus));
	b->request_before = x->request;
	return 0;
}

int32_t rebuild_balloons(struct rp_instance *inst, uint32_t n, struct choice *c)
{
	struct traces t = {.list = calloc(n + 1u, sizeof *t.list)};
	int32_t r = t.list ? 0 : -RP_ENOMEM;
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_container(inst, &t, inst->list.ctrs[i], c);
	count_cpus(&t);
	/* First those that are sure of their number. */
	for (uint32_t unsure = 0; unsure < 2; unsure++)
		for (uint32_t i = 0; !r && i < t.n; i++)
			if ((t.list[i].instance == UNKNOWN) == unsure)
				r = make(inst->state, &t, &t.list[i]);
	free(t.list);
	return r;
}
