/* SPDX-License-Identifier: Apache-2.0 */
/* The table of containers with applied values: entries by container, and a sorted record of
 * their marks for the saved state. */
#include <stdlib.h>

#include <nri-rp/lib/text.h>
#include "modules/lib/private/ctl_table.h"
#include "modules/lib/private/room.h"

struct ctl_entry *ctl_table_find(const struct ctl_table *t, rp_ctr ctr)
{
	return table_get(&t->entries, ctr);
}

struct ctl_entry *ctl_table_put(struct ctl_table *t, rp_ctr ctr)
{
	struct ctl_entry *e = table_make(&t->entries, ctr, sizeof *e);
	if (e)
		e->ctr = ctr;
	return e;
}

/* ---- the record ------------------------------------------------------------------------------ */

#define RECORD_HEAD UINT64_C(0x31204c544320706e) /* version of this layout */

/* Returns the position of a mark in the record; 0: none. */
static uint32_t ctl_table_recorded(const struct ctl_table *t, uint64_t mark)
{
	uint32_t i = t->n_record;
	while (i && t->record[i] != mark)
		i--;
	return i;
}

static int make_record(struct ctl_table *t, uint32_t n)
{
	if (!room_for(&t->record, &t->cap_record, n + 1, sizeof *t->record))
		return -RP_ENOMEM;
	t->record[0] = RECORD_HEAD;
	return 0;
}

static int record_add(struct ctl_table *t, uint64_t mark)
{
	if (t->n_record == CTL_RECORD_MAX || ctl_table_recorded(t, mark))
		return 0;
	int r = make_record(t, t->n_record + 1);
	if (!r)
		t->record[++t->n_record] = mark;
	return r;
}

static void record_del(struct ctl_table *t, uint64_t mark)
{
	uint32_t i = ctl_table_recorded(t, mark);
	if (i)
		t->record[i] = t->record[t->n_record--];
}

void ctl_table_save(struct ctl_table *t, const void **ret_data, uint32_t *ret_size)
{
	static const uint64_t none = RECORD_HEAD;
	*ret_data = t->n_record ? t->record : &none;
	*ret_size = (t->n_record + 1) * (uint32_t)sizeof none;
}

int32_t ctl_table_load(struct ctl_table *t, const void *data, uint32_t size)
{
	uint64_t head;
	uint32_t n = size / (uint32_t)sizeof head;
	if (size < sizeof head || size % sizeof head || n - 1 > CTL_RECORD_MAX)
		return -RP_EINVAL;
	memcpy(&head, data, sizeof head);
	if (head != RECORD_HEAD)
		return -RP_EINVAL;
	if (make_record(t, n - 1))
		return -RP_ENOMEM;
	memcpy(t->record, data, size);
	t->n_record = n - 1;
	return 0;
}

static int by_mark(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

void ctl_table_prune(struct ctl_table *t)
{
	const struct ctl_entry *e;
	uint32_t n = 0;
	TABLE_EACH (e, &t->entries)
		if (e->given && n < t->n_record)
			t->record[++n] = e->mark;
	t->n_record = n;
	/* equal sets of containers must give equal bytes, so the marks are sorted */
	if (n)
		qsort(t->record + 1, n, sizeof *t->record, by_mark);
}

/* ---- entries --------------------------------------------------------------------------------- */

struct ctl_entry *ctl_table_know(struct ctl_table *t, const struct rp_ctr_info *info)
{
	struct ctl_entry *e = ctl_table_find(t, info->ctr);
	uint64_t mark = text_hash(info->id);
	if (e || !ctl_table_recorded(t, mark))
		return e;
	e = ctl_table_put(t, info->ctr);
	if (e) {
		e->mark = mark;
		e->given = e->stale = 1;
	}
	return e;
}

struct ctl_entry *ctl_table_give(struct ctl_table *t, const struct rp_ctr_info *info,
				 const char *class)
{
	uint64_t mark = text_hash(info->id);
	struct ctl_entry *e = class && record_add(t, mark) ? NULL : ctl_table_put(t, info->ctr);
	if (!e)
		return NULL;
	size_t len = class ? strnlen(class, sizeof e->class - 1) : 0;
	if (len)
		memcpy(e->class, class, len);
	e->class[len] = '\0';
	e->mark = mark;
	e->given |= class != NULL;
	e->stale = 0;
	e->serial++;
	return e;
}

void ctl_table_taken(struct ctl_table *t, rp_ctr ctr, uint32_t serial)
{
	struct ctl_entry *e = ctl_table_find(t, ctr);
	if (!e || e->serial != serial)
		return;
	e->given = 0;
	record_del(t, e->mark);
}

static void ctl_table_drop(struct ctl_table *t, struct ctl_entry *e)
{
	if (e->given)
		record_del(t, e->mark);
	table_del(&t->entries, e->ctr);
	free(e);
}

void ctl_table_del(struct ctl_table *t, rp_ctr ctr)
{
	struct ctl_entry *e = ctl_table_find(t, ctr);
	if (e)
		ctl_table_drop(t, e);
}

void ctl_table_mark_stale(struct ctl_table *t)
{
	struct ctl_entry *e;
	TABLE_EACH (e, &t->entries)
		e->stale = 1;
}

void ctl_table_sweep(struct ctl_table *t, const struct modhost *h)
{
	struct rp_ctr_info info = {.size = sizeof info};
	struct ctl_entry *e;
	TABLE_EACH (e, &t->entries)
		if (h->cache->get_ctr(h->ctx, e->ctr, &info) || info.state == RP_STATE_EXITED)
			ctl_table_drop(t, e);
}

void ctl_table_fini(struct ctl_table *t)
{
	table_free(&t->entries);
	free(t->record);
	*t = (struct ctl_table){0};
}

void ctl_table_sync(struct ctl_table *t, const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr),
		    void *arg)
{
	ctl_table_sweep(t, h);
	if (ctl_each_container(h, fn, arg))
		modhost_log(h, RP_LOG_ERROR, 0, "out of memory: containers keep their settings");
	else
		ctl_table_prune(t);
}
