/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of resctrl: removes groups that are no longer wanted, creates missing ones and writes
 * their schemata. */
#include <errno.h>
#include <stdlib.h>

#include "modules/rdt/rdt.h"

/* ---- names ----------------------------------------------------------------------------------- */

int32_t rdt_names_add(struct rdt_names *names, const char *name)
{
	if (rdt_names_has(names, name))
		return 0;
	void *grown = reallocarray(names->list, names->n + 1, sizeof *names->list);
	if (!grown)
		return -RP_ENOMEM;
	names->list = grown;
	(void)snprintf(names->list[names->n++], RDT_NAME_MAX, "%s", name);
	return 0;
}

bool rdt_names_has(const struct rdt_names *names, const char *name)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (strcmp(names->list[i], name) == 0)
			return true;
	return false;
}

void rdt_names_fini(struct rdt_names *names)
{
	free(names->list);
	*names = (struct rdt_names){0};
}

int32_t rdt_group_dir(const struct rdt_groups *g, const char *class, char *buf, size_t size)
{
	if (rdt_is_root(class))
		return ctl_format(buf, size, "%s", g->root);
	return ctl_format(buf, size, "%s/%s%s", g->root, g->discovery ? "" : RDT_PREFIX, class);
}

const struct rdt_group *rdt_group_of(const struct rdt_groups *g, const char *class)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (strcmp(g->list[i].name, class) == 0)
			return &g->list[i];
	return NULL;
}

/* ---- schemata -------------------------------------------------------------------------------- */

/* Returns the values of the line with the same key (up to the colon) as `line`; NULL: none. */
static const char *line_of(const char *text, const char *line)
{
	size_t key = strcspn(line, ":") + 1;
	for (;; text += *text == '\n') {
		text += strspn(text, " ");
		if (!*text)
			return NULL;
		if (strncmp(text, line, key) == 0)
			return text + key;
		text += strcspn(text, "\n");
	}
}

/* Reads the value of an id from the "ID=VALUE" items of a line. */
static bool value_of(const char *values, uint64_t id, int base, uint64_t *ret)
{
	while (*values && *values != '\n') {
		uint64_t found;
		values += strspn(values, " ;");
		if (ctl_number(values, 10, &found, &values) || *values != '=')
			return false;
		values++;
		values += strspn(values, " ");
		if (ctl_number(values, base, ret, &values))
			return false;
		if (found == id)
			return true;
	}
	return false;
}

bool rdt_schemata_equal(const char *have, const char *want)
{
	for (; *want; want += *want == '\n') {
		const char *there = line_of(have, want);
		int base = strncmp(want, "MB", 2) == 0 ? 10 : 16;
		if (!there)
			return false;
		want += strcspn(want, ":") + 1;
		while (*want && *want != '\n') {
			uint64_t id, value, is;
			if (ctl_number(want, 10, &id, &want) || *want != '=' ||
			    ctl_number(want + 1, base, &value, &want) ||
			    !value_of(there, id, base, &is) || is != value)
				return false;
			want += *want == ';';
		}
	}
	return true;
}

/* Writes the kernel's own description of the last failure, or else the meaning of the code. */
static void groups_explain(const struct rdt_groups *g, int32_t code, char *buf, size_t size)
{
	char path[CTL_PATH_MAX], text[160];
	int32_t n = ctl_format(path, sizeof path, "%s/info/last_cmd_status", g->root);
	if (!n)
		n = g->h->work->read_file(g->h->ctx, path, text, sizeof text);
	if (n > 0 && strcmp(text, "ok") != 0) {
		text[strcspn(text, "\n")] = '\0';
		(void)snprintf(buf, size, "%s: %s", modhost_why(code), text);
	} else {
		(void)snprintf(buf, size, "%s", modhost_why(code));
	}
}

static void groups_failed(struct rdt_groups *g, struct rdt_group *group, const char *what,
			  int32_t code)
{
	char why[200];
	g->n_failures++;
	if (code == -ENOSPC)
		(void)snprintf(why, sizeof why, "the hardware has no class left");
	else
		groups_explain(g, code, why, sizeof why);
	(void)ctl_format(group->why, sizeof group->why, "group %s: %s: %s", group->name, what, why);
}

static void write_schemata(struct rdt_groups *g, struct rdt_group *group, const char *dir,
			   const char *want)
{
	char path[CTL_PATH_MAX], *have = NULL;
	group->right = false;
	if (ctl_format(path, sizeof path, "%s/schemata", dir))
		return;
	int32_t n = ctl_read(g->h, path, &have);
	bool equal = n >= 0 && rdt_schemata_equal(have, want);
	if (n >= 0)
		free(have);
	if (!equal) {
		g->n_writes++;
		n = g->h->work->write_file(g->h->ctx, path, want);
	}
	if (n < 0) {
		groups_failed(g, group, "its shares are refused", n);
		return;
	}
	group->right = true;
	group->why[0] = '\0';
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void make_group(struct rdt_groups *g, struct rdt_group *group, const struct rdt_want *want)
{
	char dir[CTL_PATH_MAX];
	if (rdt_group_dir(g, want->name, dir, sizeof dir))
		return;
	int32_t r = rdt_is_root(want->name) ? -EEXIST : g->h->work->make_dir(g->h->ctx, dir);
	group->there = r == 0 || r == -EEXIST;
	if (!group->there) {
		groups_failed(g, group, "it cannot be created", r);
		return;
	}
	write_schemata(g, group, dir, want->schemata);
}

static bool is_wanted(const struct rdt_setup *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_want; i++)
		if (strcmp(s->want[i].name, name) == 0)
			return true;
	return false;
}

struct sweep {
	struct rdt_groups *g;
	struct rdt_setup *s;
	struct rdt_names left; /* recorded groups that still exist */
};

static int32_t has_tasks(const struct rdt_groups *g, const char *dir)
{
	char path[CTL_PATH_MAX], text[2];
	if (ctl_format(path, sizeof path, "%s/tasks", dir))
		return 0;
	int32_t n = g->h->work->read_file(g->h->ctx, path, text, sizeof text);
	return n == -EFBIG || n > 0;
}

static void groups_keep(struct sweep *w, const char *name, const char *why)
{
	if (!w->s->text[0])
		(void)snprintf(w->s->text, sizeof w->s->text, "group %s%s is not removed: %s",
			       RDT_PREFIX, name, why);
	if (rdt_names_has(&w->s->owned, name))
		(void)rdt_names_add(&w->left, name);
}

static int32_t sweep_one(void *arg, const char *entry, uint32_t kind)
{
	struct sweep *w = arg;
	const char *name = entry + sizeof RDT_PREFIX - 1;
	char dir[CTL_PATH_MAX];
	if (kind != RP_FILE_DIR || strncmp(entry, RDT_PREFIX, sizeof RDT_PREFIX - 1) != 0 ||
	    strlen(name) >= RDT_NAME_MAX || is_wanted(w->s, name))
		return 0;
	if (ctl_format(dir, sizeof dir, "%s/%s", w->g->root, entry))
		return 0;
	if (!w->s->force && !rdt_names_has(&w->s->owned, name)) {
		groups_keep(w, name, "it was not created by nri-rp (force removes it)");
		return 0;
	}
	if (!w->s->force && has_tasks(w->g, dir)) {
		groups_keep(w, name, "it has tasks (force removes it)");
		return 0;
	}
	int32_t r = w->g->h->work->remove_dir(w->g->h->ctx, dir);
	if (r && r != -ENOENT)
		groups_keep(w, name, modhost_why(r));
	return 0;
}

static void remove_unwanted(struct rdt_groups *g, struct rdt_setup *s)
{
	struct sweep w = {.g = g, .s = s};
	int32_t r = g->h->work->list_dir(g->h->ctx, g->root, sweep_one, &w);
	if (r < 0) {
		(void)ctl_format(s->text, sizeof s->text, "%s: %s", g->root, modhost_why(r));
		return; /* the record is unchanged */
	}
	rdt_names_fini(&s->owned);
	s->owned = w.left;
}

/* Replaces the list of wanted groups. The state of groups that remain wanted is kept. */
static int32_t take_list(struct rdt_groups *g, const struct rdt_setup *s)
{
	struct rdt_group *list = calloc(s->n_want + 1, sizeof *list);
	if (!list)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < s->n_want; i++) {
		const struct rdt_group *was = rdt_group_of(g, s->want[i].name);
		if (was)
			list[i] = *was;
		else
			memcpy(list[i].name, s->want[i].name, sizeof list[i].name);
	}
	free(g->list);
	g->list = list;
	g->n = s->n_want;
	return 0;
}

void rdt_groups_set_up(struct rdt_groups *g, struct rdt_setup *s)
{
	s->n_made = s->n_failed = 0;
	s->text[0] = '\0';
	memcpy(g->root, s->root, sizeof g->root);
	g->discovery = s->discovery;
	if (take_list(g, s)) {
		(void)snprintf(s->text, sizeof s->text, "out of memory");
		return;
	}
	if (s->discovery)
		return;
	remove_unwanted(g, s);
	for (uint32_t i = 0; i < g->n; i++) {
		bool was = g->list[i].there && g->list[i].right;
		make_group(g, &g->list[i], &s->want[i]);
		bool is = g->list[i].there && g->list[i].right;
		s->n_made += is && !was;
		s->n_failed += !is;
		if (!is)
			memcpy(s->text, g->list[i].why, sizeof s->text);
	}
}

void rdt_groups_fini(struct rdt_groups *g)
{
	free(g->list);
	g->list = NULL;
	g->n = 0;
}
