/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for values that only a creation can set: storage, comparison and display. */
#include "core/nri-rpd/cache/extras.h"

#include <stdio.h>

#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/extras_check.h"

#define EXTRAS_ARENA (512u * 1024u)

/* ---- display --------------------------------------------------------------------------------- */

const char *extra_name(uint32_t field)
{
	static const struct {
		uint32_t field;
		const char *name;
	} names[] = {
		{RP_F_ENV, "environment variable"},
		{RP_F_ANNOTATION, "annotation"},
		{RP_F_UNIFIED, "cgroup file"},
		{RP_F_HUGEPAGES, "huge pages"},
		{EXTRA_MOUNT, "mount"},
		{EXTRA_DEVICE, "device"},
		{EXTRA_CDI, "CDI device"},
		{RP_F_SCHED_POLICY, "scheduling policy"},
		{RP_F_SCHED_PRIORITY, "scheduling priority"},
		{RP_F_NICE, "nice value"},
		{RP_F_IO_CLASS, "I/O class"},
		{RP_F_IO_PRIORITY, "I/O priority"},
		{RP_F_OOM_SCORE_ADJ, "OOM score"},
		{RP_F_SCHED_FLAGS, "scheduling flags"},
		{RP_F_SCHED_RUNTIME, "scheduling runtime"},
		{RP_F_SCHED_DEADLINE, "scheduling deadline"},
		{RP_F_SCHED_PERIOD, "scheduling period"},
		{RP_F_SWAP, "memory and swap"},
		{RP_F_MEMPOLICY_MODE, "memory policy mode"},
		{RP_F_MEMPOLICY_NODES, "memory policy nodes"},
		{RP_F_MEMPOLICY_FLAGS, "memory policy flags"},
		{RP_F_RDT_GROUP, "RDT group"},
	};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].field == field)
			return names[i].name;
	return "value";
}

static void mount_value(const struct rp_mount *m, char ret[EXTRA_VALUE_MAX])
{
	(void)snprintf(ret, EXTRA_VALUE_MAX, "%s (%s%s%s, %s)", m->source, m->type,
		       *m->options ? ", " : "", m->options,
		       m->read_only ? "read only" : "writable");
}

static void device_value(const struct rp_device *d, char ret[EXTRA_VALUE_MAX])
{
	int n = snprintf(ret, EXTRA_VALUE_MAX, "%s %lld:%lld", d->type, (long long)d->major,
			 (long long)d->minor);
	if (d->mode)
		n += snprintf(ret + n, EXTRA_VALUE_MAX - (size_t)n, " mode %04o", d->mode);
	if (d->uid != RP_OWNER_NOT_SET)
		n += snprintf(ret + n, EXTRA_VALUE_MAX - (size_t)n, " user %u", d->uid);
	if (d->gid != RP_OWNER_NOT_SET)
		(void)snprintf(ret + n, EXTRA_VALUE_MAX - (size_t)n, " group %u", d->gid);
}

void extra_value(const struct extra *e, char ret[EXTRA_VALUE_MAX])
{
	if (e->mount)
		mount_value(e->mount, ret);
	else if (e->device)
		device_value(e->device, ret);
	else if (e->text)
		(void)snprintf(ret, EXTRA_VALUE_MAX, "%s", e->text);
	else
		(void)snprintf(ret, EXTRA_VALUE_MAX, "%lld", (long long)e->number);
	ret[utf8_cut(ret, EXTRA_VALUE_MAX - 1)] = '\0';
}

/* ---- comparison ------------------------------------------------------------------------------ */

static bool same_mount(const struct rp_mount *a, const struct rp_mount *b)
{
	return !a || (a->read_only == b->read_only && str_eq(a->source, b->source) &&
		      str_eq(a->type, b->type) && str_eq(a->options, b->options));
}

static bool same_device(const struct rp_device *a, const struct rp_device *b)
{
	return !a || (a->mode == b->mode && a->major == b->major && a->minor == b->minor &&
		      a->uid == b->uid && a->gid == b->gid && str_eq(a->type, b->type));
}

static bool same_value(const struct extra *a, const struct extra *b)
{
	return a->number == b->number && (!a->text || str_eq(a->text, b->text)) &&
	       same_mount(a->mount, b->mount) && same_device(a->device, b->device);
}

static bool same_asker(const char *a, const char *b)
{
	return a == b || str_eq(a, b);
}

static int extras_conflict(const struct extra *had, const struct extra *e, struct err *err)
{
	char one[EXTRA_VALUE_MAX], other[EXTRA_VALUE_MAX];
	extra_value(had, one);
	extra_value(e, other);
	return err_set(err, -EBUSY,
		       "%s%s%s: %s sets it to \"%s\" and %s to \"%s\"; change the configuration of "
		       "one of them",
		       extra_name(e->field), e->key ? " " : "", e->key ? e->key : "", had->by, one,
		       e->by, other);
}

/* ---- storage --------------------------------------------------------------------------------- */

static struct arena *extras_room(struct extras *x)
{
	if (!x->arena)
		x->arena = arena_new(4096, EXTRAS_ARENA);
	return x->arena;
}

static bool copy_text(struct arena *a, const char **text)
{
	*text = *text ? arena_strdup(a, *text) : NULL;
	return *text != NULL;
}

/* Copies the texts into the arena. Returns false if it is full. */
static bool extras_copy(struct arena *a, struct extra *e)
{
	if ((e->key && !copy_text(a, &e->key)) || (e->text && !copy_text(a, &e->text)))
		return false;
	if (e->mount) {
		struct rp_mount *m = arena_memdup(a, e->mount, sizeof *m);
		if (!m || !copy_text(a, &m->source) || !copy_text(a, &m->type) ||
		    !copy_text(a, &m->options))
			return false;
		m->destination = e->key;
		e->mount = m;
	}
	if (e->device) {
		struct rp_device *d = arena_memdup(a, e->device, sizeof *d);
		if (!d || !copy_text(a, &d->type))
			return false;
		d->path = e->key;
		e->device = d;
	}
	return true;
}

static struct extra *extras_find(struct extras *x, const struct extra *e)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->list[i].field == e->field && (!e->key || str_eq(x->list[i].key, e->key)))
			return &x->list[i];
	return NULL;
}

int extras_put(struct extras *x, const struct extra *e, struct err *err)
{
	if (extras_room(x) && !x->list)
		x->list = arena_array(x->arena, EXTRAS_MAX, sizeof *x->list);
	if (!x->list)
		return -ENOMEM;
	struct extra *had = extras_find(x, e), made = *e;
	int r = extra_check(e, err);
	if (r)
		return r;
	if (had && same_value(had, e))
		return 0;
	if (had && !same_asker(had->by, e->by))
		return extras_conflict(had, e, err);
	if ((!had && x->n == EXTRAS_MAX) || !extras_copy(x->arena, &made))
		return -E2BIG;
	if (!had)
		had = &x->list[x->n++];
	*had = made;
	return 0;
}

static bool same_args(const struct extras *x, const char *const *args, uint32_t n)
{
	bool same = n == x->n_args;
	for (uint32_t i = 0; same && i < n; i++)
		same = str_eq(x->args[i], args[i]);
	return same;
}

int extras_put_args(struct extras *x, const char *const *args, uint32_t n, const char *by,
		    struct err *err)
{
	if (x->args && !same_asker(x->args_by, by))
		return same_args(x, args, n)
			       ? 0
			       : err_set(err, -EBUSY,
					 "process arguments: %s and %s set different ones; change "
					 "the configuration of one of them",
					 x->args_by, by);
	const char **made =
		extras_room(x) ? arena_array(x->arena, (size_t)n + 1, sizeof *made) : NULL;
	if (!made)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		made[i] = arena_strdup(x->arena, args[i]);
		if (!made[i])
			return -E2BIG;
	}
	x->args = made;
	x->n_args = n;
	x->args_by = by;
	return 0;
}

void extras_clear(struct extras *x)
{
	x->n = x->n_args = 0;
	x->args = NULL;
}

void extras_fini(struct extras *x)
{
	arena_free(x->arena);
	*x = (struct extras){0};
}
