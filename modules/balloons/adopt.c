/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When nothing is known of balloons, as another policy has had the containers before: CPUs that a
 * container has become a balloon, if they are as many as one would be given. Containers of one type
 * that have the same CPUs share it.
 */
#include "modules/balloons/balloons.h"
#include "modules/lib/adopt.h"

struct find {
	const struct type *type;
	int64_t request; /* of all that have these CPUs */
	struct rp_idset cpus;
};

struct finds {
	struct find *list;
	uint32_t n;
};

static struct find *find_of(struct finds *f, const struct type *type, struct rp_ids cpus)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->list[i].type == type && rp_ids_equal(rp_ids_of(&f->list[i].cpus), cpus))
			return &f->list[i];
	struct find *found = &f->list[f->n++];
	*found = (struct find){.type = type};
	rp_idset_copy(&found->cpus, cpus);
	return found;
}

/* What the parts of a composite balloon would have cannot be told. */
static int32_t look_at(struct rp_instance *inst, struct finds *f, rp_ctr ctr, struct choice *c)
{
	struct rp_ctr_info info;
	struct record rec = {0};
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (r || rp_ids_empty(adopt_cpus(&info)) || choose_untouched(inst, &info) ||
	    choose_type(inst, &info, c) || c->type->parts.n ||
	    (pin_read_record(inst, ctr, &rec) && (rec.roams || rec.loose)))
		return r;
	find_of(f, c->type, adopt_cpus(&info))->request += info.cpu_request;
	return 0;
}

static int32_t make(struct state *s, const struct find *found)
{
	struct rp_ids cpus = rp_ids_of(&found->cpus);
	if (!rp_ids_subset(cpus, rp_ids_of(&s->free)) ||
	    rp_ids_count(cpus) !=
		    balloon_wanted(found->type, found->request > 0 ? found->request : 1))
		return 0;
	struct balloon *b = balloon_alloc(found->type, balloon_free_instance(s, found->type, NULL));
	if (!b)
		return -RP_ENOMEM;
	rp_idset_copy(&b->cpus, cpus);
	balloon_count_cpus(b);
	b->request_before = found->request;
	return state_bring_back(s, b);
}

int32_t adopt_balloons(struct rp_instance *inst, uint32_t n, struct choice *c)
{
	struct finds f = {.list = calloc(n + 1u, sizeof *f.list)};
	int32_t r = f.list ? 0 : -RP_ENOMEM;
	for (uint32_t i = 0; !r && i < n; i++)
		r = look_at(inst, &f, inst->list.ctrs[i], c);
	for (uint32_t i = 0; !r && i < f.n; i++)
		r = make(inst->state, &f.list[i]);
	free(f.list);
	return r;
}
