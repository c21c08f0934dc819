/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves all tasks of a container into a resctrl group. Tasks are moved one by one, and a task that
 * is not moved yet creates its children in the old group. Therefore the cgroup is read again until
 * a pass finds no new task.
 */
#include <errno.h>

#include "modules/lib/private/table.h"
#include "modules/rdt/rdt.h"

#define PASSES_MAX 16u

/* ---- moving ---------------------------------------------------------------------------------- */

struct mover {
	struct rdt_groups *g;
	/* paths of files; monitor_tasks NULL: no monitoring group */
	const char *tasks, *monitor_tasks;
	struct table seen; /* tasks seen so far, by thread id */
	uint32_t n_new, n_moved, n_failed, n_unmonitored;
	int32_t why, why_unmonitored;
};

static int32_t move_one(void *arg, uint32_t tid)
{
	struct mover *m = arg;
	char text[16];
	int32_t r;
	if (table_get(&m->seen, tid))
		return 0;
	if (table_put(&m->seen, tid, m))
		return -RP_ENOMEM;
	m->n_new++;
	(void)snprintf(text, sizeof text, "%u\n", tid);
	const struct modhost *h = m->g->h;
	r = h->work->write_file(h->ctx, m->tasks, text);
	if (r == -ESRCH)
		return 0; /* the task has ended */
	if (r) {
		m->n_failed++;
		m->why = r;
		return 0;
	}
	m->n_moved++;
	if (m->monitor_tasks) {
		r = h->work->write_file(h->ctx, m->monitor_tasks, text);
		if (r && r != -ESRCH) {
			m->n_unmonitored++;
			m->why_unmonitored = r;
		}
	}
	return 0;
}

static int32_t move_all(struct mover *m, const char *cgroup)
{
	for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
		m->n_new = 0;
		int32_t r = ctl_each_thread(m->g->h, cgroup, move_one, m);
		if (r)
			return r;
		if (!m->n_new)
			return 0;
	}
	return -RP_EAGAIN;
}

static int32_t find_cgroup(const struct rdt_groups *g, const struct rdt_assign *a, char *buf,
			   uint32_t cap)
{
	static const char *const controllers[] = {"cpuset", "memory", "cpu", "pids"};
	int32_t r = -RP_ENOENT;
	for (unsigned i = 0; r == -RP_ENOENT && i < sizeof controllers / sizeof *controllers; i++)
		r = g->h->work->cgroup_find(g->h->ctx, a->item.ref, controllers[i], buf, cap);
	return r;
}

static void assign_judge(struct rdt_assign *a, const struct mover *m, int32_t r)
{
	struct ctl_item *item = &a->item;
	a->n_moved = m->n_moved;
	if (r && r != -RP_EAGAIN && !m->n_moved)
		ctl_say(item, r == -ENOENT ? RP_APPLY_DONE : RP_APPLY_FAILED,
			"its tasks cannot be listed: %s", modhost_why(r));
	else if (m->n_failed)
		ctl_say(item, m->n_moved ? RP_APPLY_PARTIAL : RP_APPLY_FAILED,
			"%u of %u tasks cannot be moved: %s", m->n_failed, m->n_failed + m->n_moved,
			modhost_why(m->why));
	else if (r)
		ctl_say(item, RP_APPLY_PARTIAL, "it creates tasks faster than they can be moved");
	else if (m->n_unmonitored)
		ctl_say(item, RP_APPLY_PARTIAL, "%u tasks are not monitored: %s", m->n_unmonitored,
			modhost_why(m->why_unmonitored));
	else
		ctl_say(item, RP_APPLY_DONE, "%s", "");
}

/* ---- monitoring groups ----------------------------------------------------------------------- */

static int32_t monitor_dir(const struct rdt_groups *g, const char *class, const char *name,
			   char *buf, size_t size)
{
	char dir[CTL_PATH_MAX];
	int32_t r = rdt_group_dir(g, class, dir, sizeof dir);
	return r ? r : ctl_format(buf, size, "%s/mon_groups/%s%s", dir, RDT_PREFIX, name);
}

static void drop_monitor(struct rdt_groups *g, const char *class, const char *name)
{
	char dir[CTL_PATH_MAX];
	if (*name && monitor_dir(g, class, name, dir, sizeof dir) == 0)
		(void)g->h->work->remove_dir(g->h->ctx, dir); /* usually removed with its class */
}

/* Creates the monitoring group. After an error the tasks are moved without monitoring. */
static int32_t make_monitor(struct rdt_groups *g, const struct rdt_assign *a, const char *class,
			    char *tasks, size_t size)
{
	char dir[CTL_PATH_MAX];
	int32_t r = monitor_dir(g, class, a->monitor, dir, sizeof dir);
	if (!r)
		r = ctl_format(tasks, size, "%s/tasks", dir);
	if (!r)
		r = g->h->work->make_dir(g->h->ctx, dir);
	return r == -EEXIST ? 0 : r;
}

/* Reports a missing monitoring group. The lack of a free RMID is no failure, since RMIDs are
 * scarce; other errors are worth another attempt. */
static void judge_monitor(struct rdt_assign *a, int32_t r)
{
	if (r == -ENOSPC)
		ctl_say(&a->item, RP_APPLY_DONE, "not monitored: no monitoring group is left");
	else if (r)
		ctl_say(&a->item, RP_APPLY_PARTIAL,
			"not monitored: its monitoring group cannot be created: %s",
			modhost_why(r));
}

/* ---- a container ----------------------------------------------------------------------------- */

static bool is_there(const struct rdt_groups *g, const char *class)
{
	char dir[CTL_PATH_MAX], path[CTL_PATH_MAX], text[2];
	if (rdt_group_dir(g, class, dir, sizeof dir) ||
	    ctl_format(path, sizeof path, "%s/tasks", dir))
		return false;
	return g->h->work->read_file(g->h->ctx, path, text, sizeof text) != -ENOENT;
}

/* Determines the class to use: without a group, the containers of a class belong to the root group.
 * Returns the reason, or NULL if the class is usable. */
static const char *usable_class(const struct rdt_groups *g, const struct rdt_assign *a,
				const char **ret_class)
{
	*ret_class = a->class;
	if (!a->known) {
		*ret_class = "";
		return "unknown RDT class";
	}
	if (!a->class[0])
		return NULL;
	if (g->discovery) {
		if (is_there(g, a->class))
			return NULL;
		*ret_class = "";
		return a->mild ? NULL : "unknown group";
	}
	const struct rdt_group *group = rdt_group_of(g, a->class);
	if (group && group->there && group->right)
		return NULL;
	if (!group || !group->there)
		*ret_class = "";
	return group ? group->why : "its group was not created";
}

void rdt_assign_run(struct rdt_groups *g, struct rdt_assign *a)
{
	char cgroup[CTL_PATH_MAX], dir[CTL_PATH_MAX], tasks[CTL_PATH_MAX], mon[CTL_PATH_MAX];
	const char *class;
	if (a->gone) {
		if (!a->shared)
			drop_monitor(g, a->former, a->monitor);
		ctl_say(&a->item, RP_APPLY_DONE, "%s", "");
		return;
	}
	const char *lacks = usable_class(g, a, &class);
	int32_t r = find_cgroup(g, a, cgroup, sizeof cgroup);
	if (r) {
		ctl_say(&a->item, RP_APPLY_FAILED, "its cgroup was not found: %s", modhost_why(r));
		return;
	}
	if (rdt_group_dir(g, class, dir, sizeof dir) ||
	    ctl_format(tasks, sizeof tasks, "%s/tasks", dir)) {
		ctl_say(&a->item, RP_APPLY_FAILED, "the path of its group is too long");
		return;
	}
	int32_t unmonitored = a->monitor[0] ? make_monitor(g, a, class, mon, sizeof mon) : 0;
	struct mover m = {.g = g,
			  .tasks = tasks,
			  .monitor_tasks = a->monitor[0] && !unmonitored ? mon : NULL};
	r = move_all(&m, cgroup);
	table_fini(&m.seen);
	assign_judge(a, &m, r);
	if (strcmp(a->former, class) != 0 && !a->shared)
		drop_monitor(g, a->former, a->monitor);
	a->item.final = !a->known;
	if (lacks)
		ctl_say(&a->item, strcmp(class, a->class) == 0 ? RP_APPLY_PARTIAL : RP_APPLY_FAILED,
			"class %s: %s%s", a->class, lacks,
			strcmp(class, a->class) == 0 ? "" : "; it is in the root group");
	else if (a->item.result == RP_APPLY_DONE)
		judge_monitor(a, unmonitored);
}
