/* SPDX-License-Identifier: Apache-2.0 */
/* [worker] Writes the values of a container into the files of its cgroup, if they differ. */
#include "modules/memory/memory.h"

/* Returns true if a file has the wanted value. Numbers are compared by value; v1 shows "no limit"
 * as the largest number of pages. */
static bool apply_do_same(const char *is, const char *want)
{
	uint64_t a, b;
	if (strcmp(is, want) == 0)
		return true;
	if (ctl_number(is, 10, &a, NULL))
		return false;
	if (strcmp(want, "-1") == 0)
		return a >= (uint64_t)INT64_MAX / MEMORY_PAGE * MEMORY_PAGE;
	return ctl_number(want, 10, &b, NULL) == 0 && a == b / MEMORY_PAGE * MEMORY_PAGE;
}

static int32_t read_value(const struct modhost *h, const char *path, char *buf, uint32_t cap)
{
	int32_t n = h->work->read_file(h->ctx, path, buf, cap);
	if (n >= 0)
		buf[strcspn(buf, "\n")] = '\0';
	return n;
}

static bool is_toptier(const struct memory_value *v)
{
	return strcmp(v->file, MEMORY_TOPTIER_FILE) == 0;
}

/* Writes a value. Returns 0, or -errno with a sentence in `why`. */
static int32_t memory_apply_put(const struct modhost *h, struct memory_item *item, const char *dir,
				const struct memory_value *v, char why[CTL_TEXT_MAX])
{
	char path[CTL_PATH_MAX], is[128];
	int32_t r = ctl_format(path, sizeof path, "%s/%s", dir, v->file);
	if (!r)
		r = read_value(h, path, is, sizeof is);
	if (r >= 0 && apply_do_same(is, v->text))
		return 0;
	if (r == -RP_ENOENT && is_toptier(v)) {
		(void)ctl_format(why, CTL_TEXT_MAX, "this kernel has no " MEMORY_TOPTIER_FILE);
		return item->values.toptier ? r : 0; /* a reset is not necessary then */
	}
	if (r >= 0) {
		item->item.n_writes++;
		r = h->work->write_file(h->ctx, path, v->text);
	}
	if (r < 0) {
		(void)ctl_format(why, CTL_TEXT_MAX, "%s: %s", v->file, modhost_why(r));
		return r;
	}
	if (read_value(h, path, is, sizeof is) >= 0 && !apply_do_same(is, v->text)) {
		(void)ctl_format(why, CTL_TEXT_MAX, "%s: the kernel set %s instead of %s", v->file,
				 is, v->text);
		return -RP_EINVAL;
	}
	return 0;
}

void memory_apply(const struct modhost *h, struct memory_item *item)
{
	char dir[CTL_PATH_MAX], why[CTL_TEXT_MAX] = "";
	uint32_t n_failed = 0;
	bool missing = false;
	int32_t r = ctl_find_cgroup(h, &item->item, "memory", dir, sizeof dir);
	if (item->values.why[0]) {
		/* Values of a class that is no longer configured are reset nevertheless. */
		for (uint32_t i = 0; !r && i < item->values.n; i++)
			(void)memory_apply_put(h, item, dir, &item->values.list[i], why);
		item->item.final = 1;
		ctl_say(&item->item, RP_APPLY_FAILED, "%s", item->values.why);
		return;
	}
	if (r)
		return;
	for (uint32_t i = 0; i < item->values.n; i++) {
		char reason[CTL_TEXT_MAX];
		r = memory_apply_put(h, item, dir, &item->values.list[i], reason);
		if (!r)
			continue;
		missing |= r == -RP_ENOENT && is_toptier(&item->values.list[i]);
		if (!n_failed++)
			memcpy(why, reason, sizeof why);
	}
	/* the file cannot appear while the kernel runs */
	item->item.final = n_failed == 1 && missing;
	ctl_say(&item->item,
		!n_failed		    ? RP_APPLY_DONE
		: n_failed < item->values.n ? RP_APPLY_PARTIAL
					    : RP_APPLY_FAILED,
		"%s", why);
}
