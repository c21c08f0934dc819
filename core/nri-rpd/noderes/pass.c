/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the stages of a pass, calculator by calculator. */
#include <assert.h>
#include <stdlib.h>

#include "core/nri-rpd/noderes/result.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/noderes/pass.h"

#define UNIT 1000 /* quantities are thousandths */

/* ---- cost of calls --------------------------------------------------------------------------- */

static void pass_account(struct nr_cost *costs, unsigned i, uint64_t began_ns,
			 const struct err *failed)
{
	uint64_t took = clock_ns() - began_ns;
	if (!costs)
		return;
	costs[i].ns += took;
	costs[i].failures += failed->text[0] != '\0';
	if (took <= NR_BUDGET_MS * UINT64_C(1000000))
		return;
	costs[i].slow++;
	costs[i].slowest_ns = took;
}

/* ---- calculate ------------------------------------------------------------------------------- */

/* Results of one calculator, under the site's names, and its first error. */
struct giving {
	struct nr_result *to;
	const struct prefixes *names;
	int bad;
};

static void pass_note(struct giving *g, int bad)
{
	if (!g->bad)
		g->bad = bad;
}

static int set_item(struct nr_result *to, const struct prefixes *names, struct rp_nr_item item)
{
	struct site_name buf;
	item.name = site_name(names, item.name, &buf);
	return nr_result_set(to, &item);
}

/* Sets an annotation; value NULL: deletes it. */
static int set_annotation(struct nr_result *to, const char *key, const struct prefixes *names,
			  const char *value)
{
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	const char *said = value ? site_text(names, value, &text) : NULL;
	return value && !said ? -ENOMEM : nr_result_annotate(to, key, said);
}

static void give_item(void *ctx, const struct rp_nr_item *item)
{
	struct giving *g = ctx;
	if (item->size < sizeof *item || !item->name)
		pass_note(g, -EINVAL);
	else if (!sized_is_understood(item, item->size, sizeof *item))
		pass_note(g, -EOPNOTSUPP);
	else
		pass_note(g, set_item(g->to, g->names, *item));
}

static void give_label(void *ctx, const char *key, const char *value)
{
	struct giving *g = ctx;
	struct site_name buf;
	pass_note(g, nr_result_label(g->to, site_name(g->names, key, &buf), value));
}

static void give_annotation(void *ctx, const char *key, const char *value)
{
	struct giving *g = ctx;
	struct site_name buf;
	pass_note(g, set_annotation(g->to, site_name(g->names, key, &buf), g->names, value));
}

static int reset_all(struct instance *i, const char *message, struct nr_result *to)
{
	int r = 0;
	for (const char *const *name = instance_resources(i); !r && *name; name++)
		r = set_item(to, instance_prefixes(i),
			     (struct rp_nr_item){.size = sizeof(struct rp_nr_item),
						 .flags = RP_NR_ITEM_RESET,
						 .name = *name,
						 .quantity = RP_NOT_SET,
						 .message = message});
	return r;
}

static int pass_ask(struct instance *i, bool reset, const char *message, struct nr_result *to,
		    struct err *err)
{
	struct giving g = {.to = to, .names = instance_prefixes(i)};
	const struct rp_nr_sink sink = {.size = sizeof sink,
					.ctx = &g,
					.item = give_item,
					.label = give_label,
					.annotation = give_annotation};
	bool by_host = false;
	int r = reset ? instance_reset(i, message, &sink, &by_host, err)
		      : instance_calculate(i, &sink, err);
	if (!r && by_host)
		r = reset_all(i, message, to);
	if (!r && g.bad)
		r = err_errno(err, g.bad, "calculator %s: its items", instance_name(i));
	return r;
}

static void pass_sign(struct nr_pair *pairs, unsigned n, const char *key, struct instance *by)
{
	struct nr_pair *p = nr_pair_find(pairs, n, key);
	if (p)
		p->by = by;
}

static int merge_value(struct nr_result *to, const struct nr_value *v, struct instance *by)
{
	const struct rp_nr_item item = {.size = sizeof item,
					.flags = v->reset ? RP_NR_ITEM_RESET : 0,
					.name = v->name,
					.quantity = v->quantity,
					.zones = v->zones,
					.n_zones = v->n_zones,
					.message = v->message};
	int r = nr_result_set(to, &item);
	struct nr_value *at = (struct nr_value *)(uintptr_t)nr_result_value(to, v->name);
	if (at)
		at->by = by;
	return r;
}

/* Copies from `from` the entries whose owner is `of` (NULL: no owner yet) and marks them as owned
 * by `by`. */
static int pass_merge(struct nr_result *to, const struct nr_result *from, const struct instance *of,
		      struct instance *by)
{
	int r = 0;
	for (unsigned i = 0; !r && i < from->n_values; i++)
		if (from->values[i].by == of)
			r = merge_value(to, &from->values[i], by);
	for (unsigned i = 0; !r && i < from->n_labels; i++) {
		const struct nr_pair *p = &from->labels[i];
		if (p->by != of)
			continue;
		r = nr_result_label(to, p->key, p->value);
		pass_sign(to->labels, to->n_labels, p->key, by);
	}
	for (unsigned i = 0; !r && i < from->n_annotations; i++) {
		const struct nr_pair *p = &from->annotations[i];
		if (p->by != of)
			continue;
		r = nr_result_annotate(to, p->key, p->value);
		pass_sign(to->annotations, to->n_annotations, p->key, by);
	}
	return r;
}

int nr_calculate(struct instance *const *list, unsigned n, const struct nr_asking *how,
		 struct nr_result *ret, struct err failed[NR_CALCULATORS_MAX])
{
	int r = 0;
	for (unsigned i = 0; !r && i < n; i++) {
		struct nr_result own = {0};
		uint64_t began = clock_ns();
		failed[i] = (struct err)ERR_INIT;
		int bad = pass_ask(list[i], how->reset, how->message, &own, &failed[i]);
		pass_account(how->costs, i, began, &failed[i]);
		if (!bad)
			r = pass_merge(ret, &own, NULL, list[i]);
		else if (how->kept & 1u << i)
			r = pass_merge(ret, how->before, list[i], list[i]);
		nr_result_fini(&own);
	}
	return r;
}

/* ---- apply ----------------------------------------------------------------------------------- */

/* Editing of a Node by a calculator. Result and Node have the site's names, while the calculator
 * uses its own. */
struct editing {
	/* result to apply to the Node; NULL: the Node is only compared */
	const struct nr_result *result;
	struct nr_result *node;
	struct instance *by; /* calculator that edits */
	int bad;
};

static const char *pass_called(const struct editing *e, const char *name, struct site_name *buf)
{
	return site_name(instance_prefixes(e->by), name, buf);
}

static const struct nr_value *value_in(const struct editing *e, const struct nr_result *in,
				       const char *name)
{
	struct site_name buf;
	return in ? nr_result_value(in, pass_called(e, name, &buf)) : NULL;
}

static struct nr_value *on_node(const struct editing *e, const char *name)
{
	return (struct nr_value *)(uintptr_t)value_in(e, e->node, name);
}

static const char *annotation_in(const struct editing *e, const struct nr_result *in,
				 const char *key)
{
	struct site_name buf;
	return in ? nr_result_annotation(in, pass_called(e, key, &buf)) : NULL;
}

static int32_t edit_result(void *ctx, const char *name, int64_t *ret)
{
	const struct editing *e = ctx;
	const struct nr_value *v = value_in(e, e->result, name);
	if (!v || v->reset || v->quantity == RP_NOT_SET)
		return -RP_ENOENT;
	*ret = v->quantity;
	return 0;
}

static const char *edit_result_annotation(void *ctx, const char *key)
{
	const struct editing *e = ctx;
	return annotation_in(e, e->result, key);
}

static int32_t edit_get(void *ctx, const char *name, int64_t *ret)
{
	const struct editing *e = ctx;
	const struct nr_value *v = on_node(e, name);
	if (!v)
		return -RP_ENOENT;
	*ret = v->quantity;
	return 0;
}

static int64_t round_up(int64_t quantity)
{
	int64_t units = quantity / UNIT;
	return (units + (quantity > units * UNIT)) * UNIT;
}

static void edit_set(void *ctx, const char *name, int64_t quantity)
{
	struct editing *e = ctx;
	struct nr_value *v = on_node(e, name);
	int r = 0;
	if (v) {
		v->quantity = round_up(quantity); /* the zones are unchanged */
	} else {
		r = set_item(e->node, instance_prefixes(e->by),
			     (struct rp_nr_item){.size = sizeof(struct rp_nr_item),
						 .name = name,
						 .quantity = round_up(quantity)});
		v = on_node(e, name);
	}
	if (!e->bad)
		e->bad = r;
	if (v)
		v->by = e->by;
}

static struct nr_value *pass_zoned(const struct editing *e, const char *name, uint32_t index)
{
	struct nr_value *v = on_node(e, name);
	return v && index < v->n_zones ? v : NULL;
}

static int32_t edit_get_zone(void *ctx, const char *name, uint32_t index, int64_t *ret)
{
	const struct nr_value *v = pass_zoned(ctx, name, index);
	if (!v)
		return -RP_ENOENT;
	*ret = v->zones[index];
	return 0;
}

static int32_t edit_set_zone(void *ctx, const char *name, uint32_t index, int64_t quantity)
{
	struct nr_value *v = pass_zoned(ctx, name, index);
	if (!v)
		return -RP_ENOENT;
	v->zones[index] = round_up(quantity);
	return 0;
}

/* Replaces the zones of a resource on the Node by those that a calculator has set. */
static void put_zones(struct editing *e, const char *name)
{
	const struct nr_value *from = value_in(e, e->result, name);
	struct nr_value *to = on_node(e, name);
	if (!to || !from || !from->n_zones)
		return;
	free(to->zones);
	to->zones = calloc(from->n_zones, sizeof *to->zones);
	to->n_zones = to->zones ? from->n_zones : 0;
	if (!to->zones)
		e->bad = -ENOMEM;
	for (uint32_t i = 0; i < to->n_zones; i++)
		to->zones[i] = round_up(from->zones[i]);
}

static void edit_remove(void *ctx, const char *name)
{
	struct editing *e = ctx;
	struct site_name buf;
	nr_result_remove(e->node, pass_called(e, name, &buf));
}

static const char *edit_annotation(void *ctx, const char *key)
{
	const struct editing *e = ctx;
	return annotation_in(e, e->node, key);
}

static void edit_set_annotation(void *ctx, const char *key, const char *value)
{
	struct editing *e = ctx;
	struct site_name buf;
	key = pass_called(e, key, &buf);
	int r = set_annotation(e->node, key, instance_prefixes(e->by), value);
	if (!e->bad)
		e->bad = r;
	pass_sign(e->node->annotations, e->node->n_annotations, key, e->by);
}

static void put_label(struct editing *e, const char *key, const char *value)
{
	int r = nr_result_label(e->node, key, value);
	if (!e->bad)
		e->bad = r;
	pass_sign(e->node->labels, e->node->n_labels, key, e->by);
}

static void edit_set_label(void *ctx, const char *key, const char *value)
{
	struct site_name buf;
	put_label(ctx, pass_called(ctx, key, &buf), value);
}

static struct rp_nr_edit edit_of(struct editing *e)
{
	return (struct rp_nr_edit){.size = sizeof(struct rp_nr_edit),
				   .ctx = e,
				   .result = edit_result,
				   .result_annotation = edit_result_annotation,
				   .get = edit_get,
				   .set = edit_set,
				   .remove = edit_remove,
				   .annotation = edit_annotation,
				   .set_annotation = edit_set_annotation,
				   .set_label = edit_set_label,
				   .get_zone = edit_get_zone,
				   .set_zone = edit_set_zone};
}

static void put_own(struct instance *i, struct editing *e)
{
	int64_t quantity;
	assert(e->result);
	for (const char *const *name = instance_resources(i); *name; name++) {
		if (edit_result(e, *name, &quantity)) {
			edit_remove(e, *name);
			continue;
		}
		edit_set(e, *name, quantity);
		put_zones(e, *name);
	}
	for (const char *const *key = instance_annotations(i); *key; key++)
		if (edit_result_annotation(e, *key))
			edit_set_annotation(e, *key, edit_result_annotation(e, *key));
	for (unsigned k = 0; k < e->result->n_labels; k++)
		if (e->result->labels[k].by == i)
			put_label(e, e->result->labels[k].key, e->result->labels[k].value);
}

int nr_apply(struct instance *const *list, unsigned n, const struct nr_result *result,
	     struct nr_result *node, struct nr_cost *costs, struct err failed[NR_CALCULATORS_MAX])
{
	struct editing e = {.result = result, .node = node};
	const struct rp_nr_edit edit = edit_of(&e);
	for (unsigned i = 0; i < n; i++) {
		failed[i] = (struct err)ERR_INIT;
		e.by = list[i];
		put_own(list[i], &e);
		uint64_t began = clock_ns();
		(void)instance_apply(list[i], &edit, &failed[i]);
		pass_account(costs, i, began, &failed[i]);
	}
	return e.bad;
}

/* ---- checks whether to write ----------------------------------------------------------------- */

bool nr_differs(int64_t before, int64_t after, int64_t threshold)
{
	if (before == RP_NOT_SET || after == RP_NOT_SET)
		return before != after;
	int64_t by = after > before ? after - before : before - after;
	return (__int128)by * 1000000 > (__int128)before * threshold;
}

bool nr_is_due(int64_t last_s, int64_t every_s)
{
	return last_s == RP_NOT_SET || last_s > every_s;
}

static int64_t quantity_of(const struct editing *e, const char *name)
{
	const struct nr_value *v = on_node(e, name);
	return v ? v->quantity : RP_NOT_SET;
}

bool nr_need_sync(struct instance *const *list, unsigned n, struct nr_result *before,
		  struct nr_result *after, int64_t threshold)
{
	struct editing old_node = {.node = before}, new_node = {.node = after};
	const struct rp_nr_edit a = edit_of(&old_node), b = edit_of(&new_node);
	for (unsigned i = 0; i < n; i++) {
		old_node.by = new_node.by = list[i];
		for (const char *const *name = instance_resources(list[i]); *name; name++)
			if (nr_differs(quantity_of(&old_node, *name), quantity_of(&new_node, *name),
				       threshold))
				return true;
		if (instance_need_sync(list[i], &a, &b))
			return true;
	}
	return false;
}

bool nr_need_sync_meta(struct instance *const *list, unsigned n, const struct nr_result *before,
		       const struct nr_result *after)
{
	for (unsigned i = 0; i < n; i++) {
		const struct editing e = {.by = list[i]};
		for (const char *const *key = instance_annotations(list[i]); *key; key++)
			if (instance_meta_changed(list[i], *key, annotation_in(&e, before, *key),
						  annotation_in(&e, after, *key)))
				return true;
	}
	return false;
}
