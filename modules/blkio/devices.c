/* SPDX-License-Identifier: Apache-2.0 */
/* Disks of /sys/block and the patterns that select them. They are read whenever a class is applied,
 * since disks may be added and removed. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "modules/blkio/blkio.h"

#define LINKS_MAX 8u
#define DEPTH_MAX 16u

struct lister {
	const struct modhost *h;
	struct blkio_devices *to;
};

/* Returns true if the active scheduler supports weights; its name is in brackets: "mq-deadline
 * [bfq] none". */
static bool knows_weights(const struct modhost *h, const char *name)
{
	char path[CTL_PATH_MAX], text[256];
	if (ctl_format(path, sizeof path, "/sys/block/%s/queue/scheduler", name) ||
	    h->work->read_file(h->ctx, path, text, sizeof text) < 0)
		return false;
	return strstr(text, "[bfq]") || strstr(text, "[cfq]");
}

static int32_t add_device(void *arg, const char *name, uint32_t kind)
{
	struct lister *l = arg;
	struct blkio_device d = {0};
	char path[CTL_PATH_MAX], text[32];
	const char *at;
	uint64_t major, minor;
	if (strlen(name) >= sizeof d.name || l->to->n == BLKIO_DEVICES_MAX ||
	    ctl_format(path, sizeof path, "/sys/block/%s/dev", name) ||
	    l->h->work->read_file(l->h->ctx, path, text, sizeof text) < 0)
		return 0; /* removed meanwhile */
	if (ctl_number(text, 10, &major, &at) || *at != ':' ||
	    ctl_number(at + 1, 10, &minor, NULL) || major > UINT32_MAX || minor > UINT32_MAX)
		return 0;
	struct blkio_device *grown = reallocarray(l->to->list, l->to->n + 1, sizeof *l->to->list);
	if (!grown)
		return -RP_ENOMEM;
	l->to->list = grown;
	(void)snprintf(d.name, sizeof d.name, "%s", name);
	d.major = (uint32_t)major;
	d.minor = (uint32_t)minor;
	d.weighs = knows_weights(l->h, name);
	grown[l->to->n++] = d;
	return 0;
}

int32_t blkio_devices_read(const struct modhost *h, struct blkio_devices *ret)
{
	struct lister l = {h, ret};
	*ret = (struct blkio_devices){0};
	int32_t r = h->work->list_dir(h->ctx, "/sys/block", add_device, &l);
	if (r)
		blkio_devices_fini(ret);
	return r;
}

void blkio_devices_fini(struct blkio_devices *d)
{
	free(d->list);
	*d = (struct blkio_devices){0};
}

bool blkio_devices_equal(const struct blkio_devices *a, const struct blkio_devices *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->list[i].major != b->list[i].major || a->list[i].minor != b->list[i].minor ||
		    strcmp(a->list[i].name, b->list[i].name) != 0)
			return false;
	return true;
}

/* ---- patterns -------------------------------------------------------------------------------- */

struct matcher {
	const struct modhost *h;
	const struct blkio_devices *d;
	void (*fn)(void *arg, const struct blkio_device *device);
	void *arg;
	uint32_t n;
	/* a folder, the pattern for its entries, and the rest of the pattern */
	const char *dir, *part, *rest;
	unsigned depth;
};

/* Returns the disk of a device path: "/dev/cciss/c0d0" is the disk cciss!c0d0. */
static const struct blkio_device *device_at(const struct blkio_devices *d, const char *path)
{
	if (strncmp(path, "/dev/", 5) != 0)
		return NULL;
	for (uint32_t i = 0; i < d->n; i++) {
		const char *name = d->list[i].name, *p = path + 5;
		while (*name && (*name == *p || (*name == '!' && *p == '/')))
			name++, p++;
		if (!*name && !*p)
			return &d->list[i];
	}
	return NULL;
}

/* Removes "x/../" and "./" in place. */
static void devices_tidy(char *path)
{
	char *to = path;
	for (const char *from = path; *from;) {
		size_t n = strcspn(from + 1, "/") + 1;
		if (n == 3 && strncmp(from, "/..", 3) == 0) {
			while (to > path && *--to != '/')
				;
		} else if (n > 1 && !(n == 2 && from[1] == '.')) {
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	*to = '\0';
}

/* Returns the disk that a path refers to, following links. */
static const struct blkio_device *devices_resolve(const struct matcher *m, const char *path)
{
	char at[CTL_PATH_MAX], target[CTL_PATH_MAX / 2], next[CTL_PATH_MAX];
	if (ctl_format(at, sizeof at, "%s", path))
		return NULL;
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		const struct blkio_device *d = device_at(m->d, at);
		if (d)
			return d;
		int32_t n = m->h->work->read_link(m->h->ctx, at, target, sizeof target);
		char *slash = strrchr(at, '/');
		if (n <= 0 || !slash)
			return NULL;
		int32_t r = target[0] == '/' ? ctl_format(next, sizeof next, "%s", target)
					     : ctl_format(next, sizeof next, "%.*s/%s",
							  (int)(slash - at), at, target);
		if (r)
			return NULL;
		devices_tidy(next);
		memcpy(at, next, strlen(next) + 1);
	}
	return NULL;
}

static void devices_found(struct matcher *m, const struct blkio_device *d)
{
	if (!d)
		return;
	m->n++;
	m->fn(m->arg, d);
}

static void devices_walk(struct matcher *m, const char *dir, const char *pattern, unsigned depth);

static int32_t walk_entry(void *arg, const char *name, uint32_t kind)
{
	struct matcher *m = arg;
	const struct matcher here = *m; /* devices_walk() changes *m */
	char path[CTL_PATH_MAX];
	if (fnmatch(here.part, name, FNM_PATHNAME | FNM_PERIOD) != 0 ||
	    ctl_format(path, sizeof path, "%s/%s", here.dir, name))
		return 0;
	if (*here.rest)
		devices_walk(m, path, here.rest, here.depth + 1);
	else if (kind != RP_FILE_DIR)
		devices_found(m, devices_resolve(m, path));
	m->dir = here.dir;
	m->part = here.part;
	m->rest = here.rest;
	m->depth = here.depth;
	return 0;
}

static void devices_walk(struct matcher *m, const char *dir, const char *pattern, unsigned depth)
{
	char part[256];
	pattern += strspn(pattern, "/");
	size_t n = strcspn(pattern, "/");
	if (!n || n >= sizeof part || depth > DEPTH_MAX)
		return;
	memcpy(part, pattern, n);
	part[n] = '\0';
	m->dir = dir;
	m->part = part;
	m->rest = pattern + n + strspn(pattern + n, "/");
	m->depth = depth;
	(void)m->h->work->list_dir(m->h->ctx, *dir ? dir : "/", walk_entry, m);
}

uint32_t blkio_match(const struct modhost *h, const struct blkio_devices *d, const char *pattern,
		     void (*fn)(void *arg, const struct blkio_device *device), void *arg)
{
	struct matcher m = {.h = h, .d = d, .fn = fn, .arg = arg};
	/* Names of the kernel match without reading /dev. */
	for (uint32_t i = 0; i < d->n; i++) {
		char path[80];
		(void)snprintf(path, sizeof path, "/dev/%s", d->list[i].name);
		for (char *p = path; (p = strchr(p, '!'));)
			*p = '/';
		if (fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0)
			devices_found(&m, &d->list[i]);
	}
	if (!m.n)
		devices_walk(&m, "", pattern, 0);
	return m.n;
}
