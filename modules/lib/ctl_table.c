/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "modules/lib/ctl_table.h"

static uint32_t bucket_of(const struct ctl_table *t, rp_ctr ctr)
{
	return (uint32_t)(ctr * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (t->n_buckets - 1);
}

struct ctl_entry *ctl_table_find(const struct ctl_table *t, rp_ctr ctr)
{
	if (!t->n_buckets)
		return NULL;
	struct ctl_entry *e = t->buckets[bucket_of(t, ctr)];
	while (e && e->ctr != ctr)
		e = e->next;
	return e;
}

static int grow(struct ctl_table *t)
{
	struct ctl_table bigger = {.n_buckets = t->n_buckets ? t->n_buckets * 2 : 64, .n = t->n};
	bigger.buckets = calloc(bigger.n_buckets, sizeof(void *));
	if (!bigger.buckets)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < t->n_buckets; i++)
		while (t->buckets[i]) {
			struct ctl_entry *e = t->buckets[i], **to;
			t->buckets[i] = e->next;
			to = &bigger.buckets[bucket_of(&bigger, e->ctr)];
			e->next = *to;
			*to = e;
		}
	free(t->buckets);
	*t = bigger;
	return 0;
}

struct ctl_entry *ctl_table_put(struct ctl_table *t, rp_ctr ctr)
{
	struct ctl_entry *e = ctl_table_find(t, ctr);
	if (e)
		return e;
	if (t->n >= t->n_buckets && grow(t))
		return NULL;
	e = calloc(1, sizeof *e);
	if (!e)
		return NULL;
	struct ctl_entry **bucket = &t->buckets[bucket_of(t, ctr)];
	e->ctr = ctr;
	e->next = *bucket;
	*bucket = e;
	t->n++;
	return e;
}

void ctl_table_del(struct ctl_table *t, rp_ctr ctr)
{
	if (!t->n_buckets)
		return;
	for (struct ctl_entry **at = &t->buckets[bucket_of(t, ctr)]; *at; at = &(*at)->next) {
		struct ctl_entry *e = *at;
		if (e->ctr != ctr)
			continue;
		*at = e->next;
		free(e);
		t->n--;
		return;
	}
}

void ctl_table_mark_stale(struct ctl_table *t)
{
	for (uint32_t i = 0; i < t->n_buckets; i++)
		for (struct ctl_entry *e = t->buckets[i]; e; e = e->next)
			e->stale = 1;
}

void ctl_table_sweep(struct ctl_table *t, const struct modhost *h)
{
	struct rp_ctr_info info = {.size = sizeof info};
	for (uint32_t i = 0; i < t->n_buckets; i++)
		for (struct ctl_entry **at = &t->buckets[i]; *at;) {
			struct ctl_entry *e = *at;
			if (h->cache->get_ctr(h->ctx, e->ctr, &info) == 0 &&
			    info.state != RP_STATE_EXITED) {
				at = &e->next;
				continue;
			}
			*at = e->next;
			free(e);
			t->n--;
		}
}

void ctl_table_fini(struct ctl_table *t)
{
	for (uint32_t i = 0; i < t->n_buckets; i++)
		while (t->buckets[i]) {
			struct ctl_entry *e = t->buckets[i];
			t->buckets[i] = e->next;
			free(e);
		}
	free(t->buckets);
	*t = (struct ctl_table){0};
}

int32_t ctl_each_container(const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr), void *arg)
{
	uint32_t n = h->cache->list(h->ctx, RP_ORDER_CREATED, NULL, 0);
	rp_ctr *list = calloc(n + 1, sizeof *list);
	if (!list)
		return -RP_ENOMEM;
	n = h->cache->list(h->ctx, RP_ORDER_CREATED, list, n);
	for (uint32_t i = 0; i < n; i++)
		fn(arg, list[i]);
	free(list);
	return 0;
}

const char *ctl_class_of(const struct modhost *h, rp_ctr ctr, uint32_t field, const char *key,
			 const char **ret_source)
{
	const char *class = field ? h->cache->get_text(h->ctx, ctr, field) : NULL;
	*ret_source = "decided by the policy";
	if (class && *class)
		return class;
	*ret_source = "from an annotation";
	return h->cache->annotation(h->ctx, ctr, key, NULL);
}

const char *ctl_qos_name(uint32_t qos)
{
	static const char *const names[] = {"Guaranteed", "Burstable", "BestEffort"};
	return names[qos <= RP_QOS_BEST_EFFORT ? qos : 0];
}
