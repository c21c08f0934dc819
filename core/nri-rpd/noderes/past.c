/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/past.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/str.h"

const struct past_row *past_find(const struct past *p, const char *name)
{
	for (unsigned i = 0; i < p->n; i++)
		if (str_eq(p->rows[i].name, name))
			return &p->rows[i];
	return NULL;
}

int64_t past_point(const struct past_row *row, uint32_t i)
{
	assert(i < row->n);
	return row->list[(row->next + PAST_POINTS - row->n + i) % PAST_POINTS];
}

static void drop_others(struct past *p, const struct nr_result *result)
{
	for (unsigned i = p->n; i-- > 0;) {
		if (nr_result_value(result, p->rows[i].name))
			continue;
		free(p->rows[i].name);
		memmove(&p->rows[i], &p->rows[i + 1], (--p->n - i) * sizeof *p->rows);
	}
}

static struct past_row *row_of(struct past *p, const char *name)
{
	struct past_row *found = (struct past_row *)(uintptr_t)past_find(p, name);
	struct past_row *more = found ? NULL : realloc(p->rows, (p->n + 1u) * sizeof *more);
	char *copy = more ? strdup(name) : NULL;
	if (more)
		p->rows = more;
	if (!copy)
		return found;
	p->rows[p->n] = (struct past_row){.name = copy, .written = RP_NOT_SET};
	return &p->rows[p->n++];
}

void past_note(struct past *p, const struct nr_result *result, const struct nr_result *node,
	       uint64_t now_ms)
{
	bool point = !p->point_ms || now_ms - p->point_ms >= PAST_STEP_MS;
	drop_others(p, result);
	for (unsigned i = 0; i < result->n_values; i++) {
		const struct nr_value *v = &result->values[i];
		const struct nr_value *on_node = nr_result_value(node, v->name);
		int64_t written = on_node ? on_node->quantity : RP_NOT_SET;
		struct past_row *row = row_of(p, v->name);
		if (!row)
			continue;
		if (point || !row->n) {
			row->list[row->next] = v->reset ? RP_NOT_SET : v->quantity;
			row->next = (row->next + 1) % PAST_POINTS;
			row->n += row->n < PAST_POINTS;
		}
		if (row->written != written || !row->written_ms)
			row->written_ms = now_ms;
		row->written = written;
	}
	if (point)
		p->point_ms = now_ms;
}

void past_fini(struct past *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->rows[i].name);
	free(p->rows);
	*p = (struct past){0};
}
