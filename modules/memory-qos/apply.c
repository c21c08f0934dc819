/* SPDX-License-Identifier: Apache-2.0 */
/* [worker] Writes the values of containers, and their sums into the directories above. */
#include <stdlib.h>

#include "modules/memory-qos/memory-qos.h"

#define NUMBER_MAX 32u

static int32_t qos_apply_put(const struct modhost *h, const char *dir, const char *file,
			     int64_t value, struct ctl_item *item)
{
	char text[NUMBER_MAX];
	memqos_text(value, text, sizeof text);
	return koord_put(h, item, dir, file, text);
}

void memqos_apply(const struct modhost *h, struct memqos_item *m)
{
	char dir[CTL_PATH_MAX];
	if (ctl_find_cgroup(h, &m->item, "", dir, sizeof dir))
		return;
	ctl_say(&m->item, RP_APPLY_DONE, "%s", "");
	if (!qos_apply_put(h, dir, "memory.min", m->values.min, &m->item) &&
	    !qos_apply_put(h, dir, "memory.low", m->values.low, &m->item))
		(void)qos_apply_put(h, dir, "memory.high", m->values.high, &m->item);
}

/* ---- directories above containers ------------------------------------------------------------ */

void memqos_dirs_free(struct memqos_dir *d)
{
	while (d) {
		struct memqos_dir *next = d->next;
		free(d->path);
		free(d);
		d = next;
	}
}

static struct memqos_dir *dir_of(struct memqos_dir **list, const char *path)
{
	struct memqos_dir *d = *list;
	while (d && strcmp(d->path, path) != 0)
		d = d->next;
	if (d)
		return d;
	d = calloc(1, sizeof *d);
	if (d)
		d->path = strdup(path);
	if (!d || !d->path) {
		free(d);
		return NULL;
	}
	d->next = *list;
	*list = d;
	return d;
}

static void apply_add(const struct modhost *h, struct memqos_sums *sums,
		      const struct memqos_part *part)
{
	char dir[CTL_PATH_MAX];
	if (h->work->cgroup_find(h->ctx, part->ref, "", dir, sizeof dir))
		return; /* removed, or reported by the container's own item */
	while (koord_dir_above(dir)) {
		struct memqos_dir *d = dir_of(sums->dirs, dir);
		if (!d)
			continue;
		d->min += part->min;
		d->low += part->low;
		d->has = true;
	}
}

/* Writes the sums of directories above containers. Directories that never had a protected container
 * are left unchanged: other programs may set them. */
void memqos_sum(const struct modhost *h, struct memqos_sums *sums)
{
	for (struct memqos_dir *d = *sums->dirs; d; d = d->next) {
		d->min = d->low = 0;
		d->has = false;
	}
	for (uint32_t i = 0; i < sums->n; i++)
		apply_add(h, sums, &sums->parts[i]);
	ctl_say(&sums->item, RP_APPLY_DONE, "%s", "");
	for (struct memqos_dir **at = sums->dirs; *at;) {
		struct memqos_dir *d = *at;
		struct ctl_item gone = {0}, *say = d->has ? &sums->item : &gone;
		(void)qos_apply_put(h, d->path, "memory.min", d->min, say);
		(void)qos_apply_put(h, d->path, "memory.low", d->low, say);
		sums->item.n_writes += gone.n_writes;
		if (d->has) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		d->next = NULL;
		memqos_dirs_free(d);
	}
}
