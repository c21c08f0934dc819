/* SPDX-License-Identifier: Apache-2.0 */
/* The capabilities of the kernel's resctrl file system. */
#include <errno.h>
#include <stdlib.h>

#include "modules/rdt/rdt.h"

const char *rdt_level_name(enum rdt_level level)
{
	return level == RDT_L2 ? "L2" : "L3";
}

/* ---- mount point ----------------------------------------------------------------------------- */

static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = options; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == len && memcmp(at, name, len) == 0)
			return true;
	return false;
}

/* Finds the first line of type resctrl: "DEVICE MOUNTPOINT TYPE OPTIONS 0 0". */
static int32_t find_mount(const struct modhost *h, struct rdt_machine *m)
{
	char *text = NULL;
	int32_t r = ctl_read(h, "/proc/mounts", &text), found = -RP_ENOENT;
	if (r < 0 && r != -RP_ENOENT)
		return modhost_fail(h, r, "/proc/mounts: %s", modhost_why(r));
	for (char *line, *rest = text; found == -RP_ENOENT && (line = strsep(&rest, "\n"));) {
		(void)strsep(&line, " ");
		const char *dir = strsep(&line, " "), *type = strsep(&line, " "),
			   *options = strsep(&line, " ");
		if (!dir || !type || !options || strcmp(type, "resctrl") != 0)
			continue;
		found = ctl_format(m->root, sizeof m->root, "%s", dir);
		m->mb.mbps = has_option(options, "mba_MBps");
	}
	free(text);
	if (found == -RP_ENOENT)
		return modhost_fail(h, -RP_ENOTSUP,
				    "no resctrl file system is mounted: run \"mount -t resctrl "
				    "resctrl /sys/fs/resctrl\", unless the kernel or the processor "
				    "does not support it");
	return found ? modhost_fail(h, found, "the mount point of resctrl is too long") : 0;
}

/* ---- contents of info/ ----------------------------------------------------------------------- */

/* Reads a number from info/. -RP_ENOENT: the file does not exist. */
static int32_t read_info(const struct modhost *h, const struct rdt_machine *m, const char *what,
			 const char *file, int base, uint64_t *ret)
{
	char path[CTL_PATH_MAX], text[64];
	int32_t r = ctl_format(path, sizeof path, "%s/info/%s/%s", m->root, what, file);
	if (r)
		return r;
	r = h->work->read_file(h->ctx, path, text, sizeof text);
	if (r == -ENOENT)
		return r;
	if (r >= 0)
		r = ctl_number(text, base, ret, NULL);
	return r < 0 ? modhost_fail(h, r, "%s: %s", path, modhost_why(r)) : 0;
}

static void note_closids(struct rdt_machine *m, uint64_t n)
{
	if (n && n <= UINT32_MAX && (!m->num_closids || n < m->num_closids))
		m->num_closids = (uint32_t)n;
}

static int32_t read_cache(const struct modhost *h, struct rdt_machine *m, enum rdt_level level)
{
	static const char *const suffixes[] = {"", "CODE"};
	struct rdt_cache *c = &m->cache[level];
	for (unsigned i = 0; i < 2 && !c->present; i++) {
		char what[16];
		uint64_t bits, closids;
		(void)snprintf(what, sizeof what, "%s%s", rdt_level_name(level), suffixes[i]);
		int32_t r = read_info(h, m, what, "cbm_mask", 16, &c->mask);
		if (r == -ENOENT)
			continue;
		if (!r)
			r = read_info(h, m, what, "min_cbm_bits", 10, &bits);
		if (!r)
			r = read_info(h, m, what, "num_closids", 10, &closids);
		if (r)
			return r;
		c->width = c->mask == UINT64_MAX ? 64 : (uint32_t)__builtin_ctzll(~c->mask);
		if (!c->width || !bits || bits > c->width)
			return modhost_fail(h, -RP_ENOTSUP, "resctrl's %s has an invalid mask",
					    what);
		c->min_bits = (uint32_t)bits;
		c->cdp = i == 1;
		c->present = true;
		note_closids(m, closids);
	}
	return 0;
}

static int32_t read_bandwidth(const struct modhost *h, struct rdt_machine *m)
{
	uint64_t min, closids;
	int32_t r = read_info(h, m, "MB", "min_bandwidth", 10, &min);
	if (r == -ENOENT)
		return 0;
	if (!r)
		r = read_info(h, m, "MB", "num_closids", 10, &closids);
	if (r)
		return r;
	m->mb.present = true;
	m->mb.min = min > 100 ? 100 : (uint32_t)min;
	note_closids(m, closids);
	return 0;
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Reads the ids of a schemata line: "L3:0=7fff;1=7fff" has 0 and 1. */
static int32_t parse_ids(const char *values, uint32_t *ids, uint32_t *n)
{
	*n = 0;
	for (;;) {
		uint64_t id;
		if (ctl_number(values + strspn(values, " "), 10, &id, &values) || *values != '=' ||
		    id > UINT32_MAX || *n == RDT_IDS_MAX)
			return -RP_EINVAL;
		ids[(*n)++] = (uint32_t)id;
		values += strcspn(values, ";");
		if (!*values)
			return 0;
		values++;
	}
}

static int32_t take_line(struct rdt_machine *m, const char *line)
{
	line += strspn(line, " ");
	const char *colon = strchr(line, ':');
	if (!colon)
		return 0;
	if (strncmp(line, "MB:", 3) == 0 && m->mb.present)
		return parse_ids(colon + 1, m->mb.ids, &m->mb.n_ids);
	for (enum rdt_level l = 0; l < RDT_N_LEVELS; l++) {
		struct rdt_cache *c = &m->cache[l];
		if (strncmp(line, rdt_level_name(l), 2) == 0 && c->present && !c->n_ids)
			return parse_ids(colon + 1, c->ids, &c->n_ids);
	}
	return 0;
}

static int32_t read_ids(const struct modhost *h, struct rdt_machine *m)
{
	char path[CTL_PATH_MAX], *text;
	(void)ctl_format(path, sizeof path, "%s/schemata", m->root);
	int32_t r = ctl_read(h, path, &text);
	if (r < 0)
		return modhost_fail(h, r, "%s: %s", path, modhost_why(r));
	r = 0;
	for (char *line, *rest = text; !r && (line = strsep(&rest, "\n"));)
		r = take_line(m, line);
	free(text);
	return r ? modhost_fail(h, r, "%s has an unknown format", path) : 0;
}

int32_t rdt_machine_read(const struct modhost *h, struct rdt_machine *ret)
{
	uint64_t n;
	*ret = (struct rdt_machine){0};
	int32_t r = find_mount(h, ret);
	for (enum rdt_level l = 0; !r && l < RDT_N_LEVELS; l++)
		r = read_cache(h, ret, l);
	if (!r)
		r = read_bandwidth(h, ret);
	if (!r)
		r = read_ids(h, ret);
	if (r)
		return r;
	ret->monitors = read_info(h, ret, "L3_MON", "num_rmids", 10, &n) == 0;
	for (enum rdt_level l = 0; l < RDT_N_LEVELS; l++)
		ret->cache[l].present = ret->cache[l].present && ret->cache[l].n_ids;
	ret->mb.present = ret->mb.present && ret->mb.n_ids;
	return 0;
}
