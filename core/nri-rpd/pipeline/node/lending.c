/* SPDX-License-Identifier: Apache-2.0 */
/* Publication of results on the Node: copy of the Node, comparison with the published entries, and
 * requests for changes to the agent. */
#include "core/nri-rpd/pipeline/node/lending.h"

#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/host/service/node.h"
#include "core/nri-rpd/noderes/pass.h"

#define LOG_SOURCE "node"
#define UNIT 1000 /* amounts are in thousandths of a unit */

/* ---- copy of the Node ------------------------------------------------------------------------ */

static int lending_put(struct nr_result *to, const char *name, int64_t thousandths)
{
	return nr_result_set(to, &(struct rp_nr_item){.size = sizeof(struct rp_nr_item),
						      .name = name,
						      .quantity = thousandths});
}

/* Copies an amount of the Node. The Node has CPU in thousandths and all other resources in
 * units. */
static int put_amount(struct nr_result *to, const struct node_amount *a)
{
	int64_t thousandths = a->amount;
	if (!str_eq(a->name, "cpu") && __builtin_mul_overflow(thousandths, UNIT, &thousandths))
		return 0; /* no calculator publishes such an amount */
	return lending_put(to, a->name, thousandths);
}

/* Accepts -E2BIG as a success: entries of other origin may exceed the limits for calculators, and
 * calculators do not see those. */
static int unless_big(int r)
{
	return r == -E2BIG ? 0 : r;
}

static int copy_object(const struct node_object *node, struct nr_result *to)
{
	int r = 0;
	for (uint32_t i = 0; !r && i < node->n_capacity; i++)
		r = unless_big(put_amount(to, &node->capacity[i]));
	for (uint32_t i = 0; !r && i < node->n_annotations; i++)
		r = unless_big(nr_result_annotate(to, node->annotations[i].key,
						  node->annotations[i].value));
	for (uint32_t i = 0; !r && i < node->n_labels; i++)
		r = unless_big(nr_result_label(to, node->labels[i].key, node->labels[i].value));
	return r;
}

static int copy_standing(const struct nr_result *from, struct nr_result *to)
{
	int r = 0;
	for (unsigned i = 0; !r && i < from->n_values; i++)
		r = lending_put(to, from->values[i].name, from->values[i].quantity);
	for (unsigned i = 0; !r && i < from->n_annotations; i++)
		r = nr_result_annotate(to, from->annotations[i].key, from->annotations[i].value);
	for (unsigned i = 0; !r && i < from->n_labels; i++)
		r = nr_result_label(to, from->labels[i].key, from->labels[i].value);
	return r;
}

static int copy_node(const struct lending *l, const struct lending_pass *pass, struct nr_result *to)
{
	return pass->node ? copy_object(pass->node, to) : copy_standing(&l->stands, to);
}

/* ---- entries of calculators ------------------------------------------------------------------ */

static bool is_among(const struct instance *i, struct instance *const *list, unsigned n)
{
	unsigned k = 0;
	while (k < n && list[k] != i)
		k++;
	return k < n;
}

static void keep_pairs(struct nr_result *r, struct nr_pair *pairs, const unsigned *n,
		       int (*remove)(struct nr_result *r, const char *key, const char *value),
		       struct instance *const *list, unsigned n_list)
{
	for (unsigned i = *n; i-- > 0;)
		if (!is_among(pairs[i].by, list, n_list))
			(void)remove(r, pairs[i].key, NULL);
}

/* Removes entries whose calculator is not in the list. */
static void keep_theirs(struct nr_result *r, struct instance *const *list, unsigned n)
{
	for (unsigned i = r->n_values; i-- > 0;)
		if (!is_among(r->values[i].by, list, n))
			nr_result_remove(r, r->values[i].name);
	keep_pairs(r, r->annotations, &r->n_annotations, nr_result_annotate, list, n);
	keep_pairs(r, r->labels, &r->n_labels, nr_result_label, list, n);
}

/* ---- wishes ---------------------------------------------------------------------------------- */

static void lending_say(int32_t r, const struct instance *by, const char *key)
{
	if (r)
		log_warning("calculator %s: %s cannot be published: %s", instance_name(by), key,
			    r == -RP_EINVAL  ? "the name or value is invalid for a Node"
			    : r == -RP_E2BIG ? "it is too long, or there are too many"
					     : "out of memory");
}

static unsigned wish_pairs(enum wish_kind kind, const struct nr_pair *pairs, unsigned n,
			   struct nr_pair *before, unsigned n_before, bool tell)
{
	unsigned changed = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct nr_pair *old = nr_pair_find(before, n_before, pairs[i].key);
		changed += !old || !str_eq(old->value, pairs[i].value);
		if (old && old->by != pairs[i].by)
			(void)instance_wish_pair(old->by, kind, old->key, NULL);
		if (tell)
			lending_say(
				instance_wish_pair(pairs[i].by, kind, pairs[i].key, pairs[i].value),
				pairs[i].by, pairs[i].key);
	}
	for (unsigned i = 0; i < n_before; i++) {
		bool gone = !nr_pair_find((struct nr_pair *)(uintptr_t)pairs, n, before[i].key);
		changed += gone;
		if (gone || !tell)
			(void)instance_wish_pair(before[i].by, kind, before[i].key, NULL);
	}
	return changed;
}

static unsigned wish_resources(const struct nr_result *next, const struct nr_result *before,
			       bool tell)
{
	unsigned changed = 0;
	for (unsigned i = 0; i < next->n_values; i++) {
		const struct nr_value *v = &next->values[i],
				      *old = nr_result_value(before, v->name);
		changed += !old || old->quantity != v->quantity;
		if (old && old->by != v->by)
			(void)instance_wish_resource(old->by, v->name, RP_NOT_SET);
		if (tell)
			lending_say(instance_wish_resource(v->by, v->name, v->quantity / UNIT),
				    v->by, v->name);
	}
	for (unsigned i = 0; i < before->n_values; i++) {
		const struct nr_value *old = &before->values[i];
		bool gone = !nr_result_value(next, old->name);
		changed += gone;
		if (gone || !tell)
			(void)instance_wish_resource(old->by, old->name, RP_NOT_SET);
	}
	return changed;
}

/* Publishes the differences as requested changes of the Node, if `tell`. Returns the number of
 * changed keys. */
static unsigned tell_wishes(const struct nr_result *next, const struct nr_result *before, bool tell)
{
	return wish_resources(next, before, tell) +
	       wish_pairs(WISH_ANNOTATION, next->annotations, next->n_annotations,
			  before->annotations, before->n_annotations, tell) +
	       wish_pairs(WISH_LABEL, next->labels, next->n_labels, before->labels,
			  before->n_labels, tell);
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* Returns true if the sets of keys differ, or a label has another value. */
static bool other_keys(const struct nr_result *stands, const struct nr_result *next)
{
	for (unsigned i = 0; i < next->n_labels; i++) {
		const struct nr_pair *old =
			nr_pair_find(stands->labels, stands->n_labels, next->labels[i].key);
		if (!old || !str_eq(old->value, next->labels[i].value))
			return true;
	}
	for (unsigned i = 0; i < next->n_annotations; i++)
		if (!nr_result_annotation(stands, next->annotations[i].key))
			return true;
	return stands->n_labels != next->n_labels || stands->n_annotations != next->n_annotations ||
	       stands->n_values != next->n_values;
}

static bool is_time(const struct lending *l, const struct lending_pass *p, struct nr_result *before,
		    struct nr_result *after, uint64_t now_ms)
{
	const int64_t *of = p->strategy->values;
	int64_t since = l->decided_ms ? (int64_t)((now_ms - l->decided_ms) / 1000) : RP_NOT_SET;
	return nr_is_due(since, of[RP_NR_UPDATE_SECONDS]) ||
	       nr_need_sync(p->calculators, p->n_calculators, before, after,
			    of[RP_NR_DIFF_THRESHOLD]) ||
	       nr_need_sync_meta(p->calculators, p->n_calculators, before, after);
}

/* ---- zones ----------------------------------------------------------------------------------- */

/* Restores previous zone amounts that differ by less than the threshold. Returns true if others
 * have changed. */
static bool settle_zones(const struct nr_value *was, struct nr_value *now, int64_t threshold)
{
	bool changed = false;
	for (uint32_t i = 0; i < now->n_zones; i++) {
		if (was->zones[i] == now->zones[i])
			continue;
		if (nr_differs(was->zones[i], now->zones[i], threshold))
			changed = true;
		else
			now->zones[i] = was->zones[i];
	}
	return changed;
}

static int copy_zones(const struct nr_result *from, struct nr_result *to)
{
	int r = 0;
	for (unsigned i = 0; !r && i < from->n_values; i++) {
		const struct nr_value *v = &from->values[i];
		if (v->n_zones)
			r = nr_result_set(to,
					  &(struct rp_nr_item){.size = sizeof(struct rp_nr_item),
							       .name = v->name,
							       .quantity = v->quantity,
							       .zones = v->zones,
							       .n_zones = v->n_zones});
	}
	return r;
}

/* Decides each amount of a zone on its own, and all amounts together after a long time without a
 * change. */
static int decide_zones(struct lending *l, struct lending_pass *p, const struct nr_result *node,
			uint64_t now_ms)
{
	struct nr_result next = {0};
	const int64_t *of = p->strategy->values;
	bool due = nr_is_due((int64_t)((now_ms - l->zones_ms) / 1000), of[RP_NR_UPDATE_SECONDS]);
	int r = copy_zones(node, &next);
	bool changed = due || next.n_values != l->zones.n_values;
	for (unsigned i = 0; !r && i < next.n_values; i++) {
		struct nr_value *v = &next.values[i];
		const struct nr_value *was = nr_result_value(&l->zones, v->name);
		bool same = was && was->n_zones == v->n_zones;
		changed |= !same || (!due && settle_zones(was, v, of[RP_NR_DIFF_THRESHOLD]));
	}
	if (r || !changed) {
		nr_result_fini(&next);
		return r;
	}
	nr_result_fini(&l->zones);
	l->zones = next;
	l->zones_ms = now_ms;
	p->other_zones = true;
	return 0;
}

/* ---- the whole decision ---------------------------------------------------------------------- */

int lending_decide(struct lending *l, struct lending_pass *p, uint64_t now_ms)
{
	struct nr_result before = {0}, next = {0};
	struct err failed[NR_CALCULATORS_MAX];
	if (p->node && (!p->node->n_capacity || !p->node->n_allocatable))
		return 0; /* the kubelet has not reported its resources */
	int r = copy_node(l, p, &before);
	if (!r)
		r = copy_node(l, p, &next);
	if (!r)
		r = nr_apply(p->calculators, p->n_calculators, p->result, &next, p->costs, failed);
	bool time = !r && is_time(l, p, &before, &next, now_ms);
	keep_theirs(&next, p->calculators, p->n_calculators);
	if (!r)
		r = decide_zones(l, p, &next, now_ms);
	if (!r && (time || other_keys(&l->stands, &next))) {
		struct nr_result was = l->stands;
		l->stands = next;
		next = was;
		l->writes += tell_wishes(&l->stands, &was, p->cluster) > 0;
		l->decided_ms = now_ms;
	}
	nr_result_fini(&before);
	nr_result_fini(&next);
	return r;
}

void lending_keep(struct lending *l, struct instance *const *calculators, unsigned n)
{
	keep_theirs(&l->stands, calculators, n);
	l->decided_ms = 0;
	if (!n)
		nr_result_fini(&l->zones); /* otherwise the next pass decides */
}

void lending_fini(struct lending *l)
{
	nr_result_fini(&l->stands);
	nr_result_fini(&l->zones);
}
