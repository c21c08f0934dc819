/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/private/isolation_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/room.h"

#define CGROUP "/sys/fs/cgroup"
#define WORKQUEUE "/sys/devices/virtual/workqueue/cpumask"
#define POSSIBLE "/sys/devices/system/cpu/possible"
#define CLOSED " (the shipped service needs interrupts.conf, see nri-rpd(8))"
#define NOT_ALLOWED " (needs CAP_SYS_ADMIN: partition.conf of the service, see nri-rpd(8))"
#define PATH_MAX_ RP_SETTING_PATH_MAX
#define VALUE_MAX RP_SETTING_MAX
#define MESSAGE_MAX 512u
#define DEPTH_MAX 16u /* cgroups above a container's */

/* ---- orders ---------------------------------------------------------------------------------- */

struct isolation_order *isolation_order_new(const struct isolation_keys *keys)
{
	struct isolation_order *o = calloc(1, sizeof *o);
	if (o) {
		o->keys = *keys;
		o->refs = 1;
	}
	return o;
}

struct isolation_order *isolation_order_free(struct isolation_order *o)
{
	if (!o || --o->refs)
		return NULL;
	for (uint32_t i = 0; i < o->n; i++) {
		free(o->places[i].ref);
		free(o->places[i].cpus);
	}
	free(o->places);
	free(o);
	return NULL;
}

int32_t isolation_order_add(struct isolation_order *o, const char *ref, struct rp_ids cpus)
{
	char text[VALUE_MAX];
	if (rp_ids_format(cpus, text, sizeof text) >= sizeof text)
		return 0; /* more than a file takes */
	if (!room_for(&o->places, &o->cap, o->n + 1, sizeof *o->places))
		return -RP_ENOMEM;
	struct isolation_place *p = &o->places[o->n];
	*p = (struct isolation_place){strdup(ref), strdup(text)};
	o->n++;
	return p->ref && p->cpus ? 0 : -RP_ENOMEM;
}

static bool order_has_keys(const struct isolation_keys *a, const struct isolation_keys *b)
{
	bool same = a->no_quota == b->no_quota && a->host_away == b->host_away &&
		    a->partition == b->partition && a->kernel_away == b->kernel_away &&
		    a->idle == b->idle && a->own_quota == b->own_quota &&
		    a->n_slices == b->n_slices;
	for (uint32_t i = 0; same && i < a->n_slices; i++)
		same = strcmp(a->slices[i], b->slices[i]) == 0;
	return same;
}

static bool order_same(const struct isolation_order *a, const struct isolation_order *b)
{
	bool same = order_has_keys(&a->keys, &b->keys) && a->n == b->n &&
		    rp_ids_equal(rp_ids_of(&a->exclusive), rp_ids_of(&b->exclusive)) &&
		    rp_ids_equal(rp_ids_of(&a->online), rp_ids_of(&b->online));
	for (uint32_t i = 0; same && i < a->n; i++)
		same = strcmp(a->places[i].ref, b->places[i].ref) == 0 &&
		       strcmp(a->places[i].cpus, b->places[i].cpus) == 0;
	return same;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A file that a job has written. The host records its content before it was first set. */
struct kept {
	char *path;
	char *wanted; /* value that was set last; NULL: another file changes this one */
	char *placed; /* content read back after the write */
	uint32_t mark; /* number of the last job whose order contained the file */
};

struct isolation_files {
	struct modhost h;
	/* accessed only by the worker */
	struct kept *kept; /* changed files, in the order of writing */
	uint32_t n, cap, mark;
	/* accessed only by the main thread */
	struct isolation_order *last;
	bool again; /* a cgroup was not found, or a file could not be written */
	char complained[MESSAGE_MAX]; /* message logged last */
};

struct job {
	struct isolation_files *files;
	struct isolation_order *order;
	bool again;
	char message[MESSAGE_MAX]; /* text of the first failure; "": none */
};

static void files_complain(struct job *j, const char *path, const char *what, const char *why)
{
	if (!j->message[0])
		(void)snprintf(j->message, sizeof j->message, "isolation: %.200s: %.64s: %.120s",
			       path, what, why);
}

/* Adds a remedy to the message. */
static void files_advise(struct job *j, const char *remedy)
{
	(void)strncat(j->message, remedy, sizeof j->message - strlen(j->message) - 1);
}

/* Reads a file without its newline. Returns the length or -errno. */
static int32_t files_read(const struct isolation_files *f, const char *path, char text[VALUE_MAX])
{
	int32_t r = f->h.work->read_file(f->h.ctx, path, text, VALUE_MAX);
	if (r >= 0)
		text[strcspn(text, "\n")] = '\0';
	return r;
}

/* Reads the content that a file had before any module set it. Returns the length or -errno. */
static int32_t files_before(const struct isolation_files *f, const char *path, char text[VALUE_MAX])
{
	int32_t r = f->h.settings->found(f->h.ctx, path, text, VALUE_MAX);
	return r < 0 ? files_read(f, path, text) : r;
}

/* Writes a text into a file. Writing no bytes has no effect, so an empty text is written as an
 * empty line. The kernel refuses to clear the CPUs of a cgroup with tasks (ENOSPC). The cgroup then
 * gets all possible CPUs, which is no restriction either. */
static int32_t files_write(const struct isolation_files *f, const char *path, const char *text)
{
	const struct rp_host_work *work = f->h.work;
	char all[VALUE_MAX];
	int32_t r = work->write_file(f->h.ctx, path, *text ? text : "\n");
	if (r == -ENOSPC && !*text && work->read_file(f->h.ctx, POSSIBLE, all, sizeof all) > 0)
		r = work->write_file(f->h.ctx, path, all);
	return r;
}

static struct kept *files_find(const struct isolation_files *f, const char *path)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (strcmp(f->kept[i].path, path) == 0)
			return &f->kept[i];
	return NULL;
}

static void files_forget(struct isolation_files *f, struct kept *k)
{
	f->h.settings->drop(f->h.ctx, k->path);
	free(k->path);
	free(k->wanted);
	free(k->placed);
	f->n--;
	memmove(k, k + 1, (size_t)(f->kept + f->n - k) * sizeof *k);
}

static struct kept *files_add(struct isolation_files *f, const char *path)
{
	if (!room_for(&f->kept, &f->cap, f->n + 1, sizeof *f->kept))
		return NULL;
	struct kept *k = &f->kept[f->n];
	*k = (struct kept){.path = strdup(path)};
	f->n += k->path != NULL;
	return k->path ? k : NULL;
}

/* Returns the entry of a file that is recorded with the host before it is written, so that it is
 * restored whatever happens. NULL: the file must not be written. */
static struct kept *files_keep(struct job *j, const char *path, const char *value, const char *now)
{
	struct isolation_files *f = j->files;
	struct kept *k = files_find(f, path);
	bool is_new = !k;
	if (is_new)
		k = files_add(f, path);
	/* The host ignores `now` if another module, or the previous process, has set the file. */
	if (k && f->h.settings->keep(f->h.ctx, path, value, now) == 0) {
		k->mark = f->mark;
		return k;
	}
	if (is_new && k)
		files_forget(f, k);
	files_complain(j, path, "not set", "it could not be restored later");
	return NULL;
}

/* Sets a file. False: it has another content, or does not exist. */
static bool files_set(struct job *j, const char *path, const char *value)
{
	struct isolation_files *f = j->files;
	char now[VALUE_MAX];
	int32_t r = files_read(f, path, now);
	bool known = files_find(f, path) != NULL;
	if (r < 0) {
		files_complain(j, path, "reading it", strerror(-r));
		return false;
	}
	struct kept *k = files_keep(j, path, value, now);
	if (!k)
		return false;
	bool is_there = strcmp(now, value) == 0 ||
			(k->wanted && k->placed && strcmp(k->wanted, value) == 0 &&
			 strcmp(k->placed, now) == 0 && !strstr(now, "invalid"));
	if (!is_there)
		r = files_write(f, path, value);
	if (r < 0) {
		files_complain(j, path, value, strerror(-r));
		if (r == -EROFS && strcmp(path, WORKQUEUE) == 0)
			files_advise(j, CLOSED);
		if (!known)
			files_forget(f, k);
		return false;
	}
	free(k->wanted);
	free(k->placed);
	k->wanted = strdup(value);
	k->placed = files_read(f, path, now) < 0 ? NULL : strdup(now);
	return true;
}

/* Restores a file and forgets it. A file that another program has changed since is not written. The
 * file of a removed cgroup needs no restoring. */
static void files_restore(struct job *j, struct kept *k)
{
	struct isolation_files *f = j->files;
	char now[VALUE_MAX], rest[VALUE_MAX];
	int32_t r = files_read(f, k->path, now);
	bool is_ours = !k->placed || strcmp(now, k->placed) == 0;
	if (r >= 0 && is_ours &&
	    f->h.settings->without(f->h.ctx, k->path, rest, sizeof rest) >= 0 &&
	    strcmp(now, rest) != 0)
		r = files_write(f, k->path, rest);
	if (r < 0 && r != -ENOENT && r != -ENODEV) {
		files_complain(j, k->path, "restoring it", strerror(-r));
		j->again = true;
		return;
	}
	files_forget(f, k);
}

/* ---- the keys -------------------------------------------------------------------------------- */

static void files_host(struct job *j)
{
	const struct isolation_order *o = j->order;
	for (uint32_t i = 0; i < o->keys.n_slices; i++) {
		char path[PATH_MAX_], now[VALUE_MAX], text[VALUE_MAX];
		struct rp_idset cpus;
		(void)snprintf(path, sizeof path, CGROUP "/%s/cgroup.procs", o->keys.slices[i]);
		if (j->files->h.work->read_file(j->files->h.ctx, path, now, sizeof now) == -ENOENT)
			continue; /* there is no such cgroup */
		(void)snprintf(path, sizeof path, CGROUP "/%s/cpuset.cpus", o->keys.slices[i]);
		if (files_before(j->files, path, now) < 0)
			now[0] = '\0';
		if (!*now || rp_idset_parse(&cpus, now, RP_CPUS_MAX))
			rp_idset_copy(&cpus, rp_ids_of(&o->online));
		rp_idset_andnot(&cpus, rp_ids_of(&cpus), rp_ids_of(&o->exclusive));
		if (rp_ids_empty(rp_ids_of(&cpus)))
			files_complain(j, path, "not set", "no CPU would be left");
		else if (rp_ids_format(rp_ids_of(&cpus), text, sizeof text) < sizeof text)
			(void)files_set(j, path, text);
	}
}

/* Parses a mask of hexadecimal digits in groups of 32 CPUs. */
static bool mask_parse(const char *text, struct rp_idset *ret)
{
	uint32_t bit = 0;
	rp_idset_clear(ret);
	for (size_t i = strlen(text); i-- > 0;) {
		char c = text[i];
		if (c == ',')
			continue;
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : -1;
		if (digit < 0)
			return false;
		for (uint32_t b = 0; b < 4; b++, bit++)
			if (digit >> b & 1)
				rp_idset_add(ret, bit);
	}
	return bit > 0;
}

static void mask_format(struct rp_ids ids, char text[VALUE_MAX])
{
	uint32_t groups = rp_ids_last(ids) / 32 + 1;
	int used = 0;
	for (uint32_t g = groups; g-- > 0 && used + 10 < (int)VALUE_MAX;) {
		uint32_t word = (uint32_t)(rp_ids_word(ids, g / 2) >> (g % 2 * 32));
		used += snprintf(text + used, VALUE_MAX - (size_t)used, "%s%08x", used ? "," : "",
				 word);
	}
}

static void files_kernel(struct job *j)
{
	const struct isolation_order *o = j->order;
	char text[VALUE_MAX];
	struct rp_idset cpus;
	int32_t r = files_before(j->files, WORKQUEUE, text);
	if (r < 0 || !mask_parse(text, &cpus)) {
		files_complain(j, WORKQUEUE, "reading it", r < 0 ? strerror(-r) : "no mask");
		return;
	}
	rp_idset_andnot(&cpus, rp_ids_of(&cpus), rp_ids_of(&o->exclusive));
	if (rp_ids_empty(rp_ids_of(&cpus))) {
		files_complain(j, WORKQUEUE, "not set", "no CPU would be left");
		return;
	}
	mask_format(rp_ids_of(&cpus), text);
	(void)files_set(j, WORKQUEUE, text);
}

/* A cgroup above partitions, and the CPUs of these partitions. */
struct above {
	char path[PATH_MAX_];
	struct rp_idset cpus;
};

struct partitions {
	struct above *list;
	uint32_t n, cap;
};

/* Finds the directory of a container's cgroup, with a slash in front. False: it is not there
 * (yet). */
static bool files_cgroup(struct job *j, const struct isolation_place *p, char dir[PATH_MAX_])
{
	const struct modhost *h = &j->files->h;
	bool found = h->work->cgroup_find(h->ctx, p->ref, "", dir + 1, PATH_MAX_ - 64) >= 0;
	j->again |= !found;
	dir[0] = '/';
	if (found && dir[1] == '/')
		memmove(dir, dir + 1, strlen(dir));
	return found;
}

/* Adds the CPUs to a cgroup above. Returns false if out of memory. */
static bool partitions_add(struct partitions *a, const char *path, struct rp_ids cpus)
{
	uint32_t i = 0;
	while (i < a->n && strcmp(a->list[i].path, path) != 0)
		i++;
	if (!room_for(&a->list, &a->cap, i + 1, sizeof *a->list))
		return false;
	if (i == a->n) {
		(void)snprintf(a->list[i].path, sizeof a->list[i].path, "%s", path);
		rp_idset_clear(&a->list[i].cpus);
		a->n++;
	}
	rp_idset_or(&a->list[i].cpus, rp_ids_of(&a->list[i].cpus), cpus);
	return true;
}

/* Sets cpuset.cpus.exclusive of the cgroups above. grow: with the CPUs that they have now, so that
 * partitions below stay valid until they are changed. */
static void partitions_set_above(struct job *j, const struct partitions *a, bool grow)
{
	for (uint32_t i = 0; i < a->n; i++) {
		char path[PATH_MAX_ + 32], now[VALUE_MAX], text[VALUE_MAX];
		struct rp_idset cpus, has;
		(void)snprintf(path, sizeof path, "%s/cpuset.cpus.exclusive", a->list[i].path);
		rp_idset_copy(&cpus, rp_ids_of(&a->list[i].cpus));
		if (grow && files_find(j->files, path) && files_read(j->files, path, now) >= 0 &&
		    rp_idset_parse(&has, now, RP_CPUS_MAX) == 0)
			rp_idset_or(&cpus, rp_ids_of(&cpus), rp_ids_of(&has));
		if (rp_ids_format(rp_ids_of(&cpus), text, sizeof text) < sizeof text)
			(void)files_set(j, path, text);
	}
}

/* Makes the cgroup of a container a partition. */
static void partitions_set(struct job *j, const char *dir, const char *cpus)
{
	char path[PATH_MAX_], now[VALUE_MAX];
	(void)snprintf(path, sizeof path, "%s/cpuset.cpus.exclusive", dir);
	if (!files_set(j, path, cpus))
		return;
	(void)snprintf(path, sizeof path, "%s/cpuset.cpus.partition", dir);
	if (!files_set(j, path, "isolated") || files_read(j->files, path, now) < 0)
		return;
	bool first = !j->message[0];
	if (!strstr(now, "invalid"))
		return;
	files_complain(j, path, "the kernel does not isolate it", now);
	if (first && strstr(now, "not permitted"))
		files_advise(j, NOT_ALLOWED);
}

static void files_partitions(struct job *j)
{
	struct partitions a = {0};
	char dir[PATH_MAX_], above[PATH_MAX_];
	for (uint32_t i = 0; i < j->order->n; i++) {
		const struct isolation_place *p = &j->order->places[i];
		struct rp_idset cpus;
		if (!*p->cpus || rp_idset_parse(&cpus, p->cpus, RP_CPUS_MAX) ||
		    !files_cgroup(j, p, dir))
			continue;
		size_t end = sizeof CGROUP; /* behind the slash */
		for (unsigned depth = 0; depth < DEPTH_MAX && end < strlen(dir); depth++) {
			end += strcspn(dir + end, "/");
			if (!dir[end])
				break;
			(void)snprintf(above, sizeof above, "%.*s", (int)end, dir);
			if (!partitions_add(&a, above, rp_ids_of(&cpus)))
				break;
			end++;
		}
	}
	partitions_set_above(j, &a, true);
	for (uint32_t i = 0; i < j->order->n; i++)
		if (*j->order->places[i].cpus && files_cgroup(j, &j->order->places[i], dir))
			partitions_set(j, dir, j->order->places[i].cpus);
	partitions_set_above(j, &a, false);
	free(a.list);
}

/* Sets cpu.idle of the pod's cgroup. The kernel then changes cpu.weight, too, which is recorded
 * first and restored last. */
static void files_idle(struct job *j)
{
	for (uint32_t i = 0; i < j->order->n; i++) {
		char path[PATH_MAX_], now[VALUE_MAX];
		if (*j->order->places[i].cpus || !files_cgroup(j, &j->order->places[i], path))
			continue;
		char *slash = strrchr(path, '/');
		if (slash == path || (size_t)(slash - path) < sizeof CGROUP)
			continue;
		(void)snprintf(slash, sizeof path - (size_t)(slash - path), "/cpu.weight");
		if (files_read(j->files, path, now) >= 0)
			(void)files_keep(j, path, "0", now);
		(void)snprintf(slash, sizeof path - (size_t)(slash - path), "/cpu.idle");
		(void)files_set(j, path, "1");
	}
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static int32_t job_run(void *arg)
{
	struct job *j = arg;
	struct isolation_files *f = j->files;
	const struct isolation_keys *k = &j->order->keys;
	bool any = !rp_ids_empty(rp_ids_of(&j->order->exclusive));
	f->mark++;
	if (k->kernel_away && any)
		files_kernel(j);
	if (k->host_away && any)
		files_host(j);
	if (k->idle)
		files_idle(j);
	if (k->partition)
		files_partitions(j);
	for (uint32_t i = f->n; i-- > 0;)
		if (f->kept[i].mark != f->mark)
			files_restore(j, &f->kept[i]);
	return 0;
}

static void job_done(void *arg, int32_t result)
{
	struct job *j = arg;
	struct isolation_files *f = j->files;
	f->again |= j->again || j->message[0];
	if (j->message[0] && strcmp(j->message, f->complained) != 0)
		modhost_log(&f->h, RP_LOG_WARNING, 0, "%s", j->message);
	(void)snprintf(f->complained, sizeof f->complained, "%s", j->message);
	isolation_order_free(j->order);
	free(j);
}

void isolation_commit(struct isolation_files *f, struct isolation_order *o)
{
	if (!f->h.settings || (!f->again && f->last && order_same(f->last, o))) {
		isolation_order_free(o);
		return;
	}
	isolation_order_free(f->last);
	f->last = o;
	struct job *j = calloc(1, sizeof *j);
	if (j) {
		*j = (struct job){.files = f, .order = o};
		o->refs++;
	}
	f->again = !j || f->h.work->submit(f->h.ctx, job_run, job_done, j);
	if (f->again && j) {
		isolation_order_free(o);
		free(j);
	}
}

struct isolation_files *isolation_files_new(const struct modhost *h)
{
	struct isolation_files *f = calloc(1, sizeof *f);
	if (f)
		f->h = *h;
	return f;
}

struct isolation_files *isolation_files_free(struct isolation_files *f)
{
	if (!f)
		return NULL;
	for (uint32_t i = 0; i < f->n; i++) {
		free(f->kept[i].path);
		free(f->kept[i].wanted);
		free(f->kept[i].placed);
	}
	free(f->kept);
	isolation_order_free(f->last);
	free(f);
	return NULL;
}
