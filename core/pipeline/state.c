/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of earlier runs, at a start. Who only checks a configuration looks at a copy, as that of a daemon that runs is not to be
 * touched, and that of one that does not, neither.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/pipeline/internal.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"

#define LOG_SOURCE "pipeline"

#define BOOT_ID "proc/sys/kernel/random/boot_id"
#define BOOT_ID_MAX 64
#define COPY_TRIES 4u /* a daemon may be writing meanwhile */
#define COPY_PAUSE_US 50000u

static const char *const outcomes[] = {
	[STORE_FRESH] = "fresh",	[STORE_FOUND] = "restored",
	[STORE_RESET] = "reset",	[STORE_OTHER_BOOT] = "other boot",
	[STORE_NEWER] = "newer format", [STORE_DAMAGED] = "damaged",
	[STORE_UNSAFE] = "unsafe",
};

static int read_boot_id(char ret[BOOT_ID_MAX], struct err *err)
{
	struct fs_root real;
	int r = fs_root_open(&real, "/", err);
	if (r)
		return r;
	ssize_t n = fs_read(&real, BOOT_ID, ret, BOOT_ID_MAX);
	fs_root_close(&real);
	return n < 0 ? err_errno(err, (int)n, "/" BOOT_ID) : 0;
}

static int open_in(struct pipeline *p, const char *dir, struct store_opening *ret, struct err *err)
{
	char boot_id[BOOT_ID_MAX];
	int r = read_boot_id(boot_id, err);
	if (r)
		return r;
	const struct store_params params = {
		.dir = dir, .boot_id = boot_id, .reset = p->cfg.reset_cache};
	return store_open(&params, &p->store, ret, err);
}

int state_open(struct pipeline *p, struct err *err)
{
	struct store_opening opening;
	struct store_counts counts;
	struct err why = ERR_INIT;
	int r = open_in(p, p->state_dir, &opening, &why);
	if (r == -EBUSY || r == -ENOMEM)
		return err_set(err, r, "%s", err_text(&why, r));
	if (r) {
		(void)snprintf(p->state_error, sizeof p->state_error, "%s", err_text(&why, r));
		(void)snprintf(p->store_state, sizeof p->store_state, "unusable");
		log_error("%s; a restart will not know where containers were placed",
			  p->state_error);
		return 0;
	}
	(void)snprintf(p->store_state, sizeof p->store_state, "%s", outcomes[opening.outcome]);
	if (opening.why[0])
		log_notice("%s", opening.why);
	r = store_restore(p->store, p->env.cache, &counts, err);
	if (!r && counts.ctrs)
		log_info("restored %u pods and %u containers", counts.pods, counts.ctrs);
	return r;
}

int state_open_settings(struct pipeline *p, struct err *err)
{
	char boot_id[BOOT_ID_MAX], path[CACHE_PATH_MAX];
	int r = read_boot_id(boot_id, err);
	if (r)
		return r;
	if (snprintf(path, sizeof path, "%s/settings", p->run_dir) >= (int)sizeof path)
		return err_set(err, -ENAMETOOLONG, "directory %s: the path is too long",
			       p->run_dir);
	_free_ char *origin = str_printf("%s %s", boot_id, p->root.path);
	if (!origin)
		return err_errno(err, -ENOMEM, "%s", path);
	struct err why = ERR_INIT;
	r = p->run_error[0] ? 0 : settings_open(&p->env, path, origin, &why);
	if (r == -ENOMEM)
		return err_set(err, r, "%s", why.text);
	if (r) {
		(void)snprintf(p->run_error, sizeof p->run_error, "%s", why.text);
		log_error("%s; what modules set of the machine is not put back when the process "
			  "is killed",
			  p->run_error);
	}
	return 0;
}

/* ---- to check a configuration ------------------------------------------------------------------------------------------ */

/* A folder of our own, by name for LMDB and by descriptor, so that only what is in it is ever removed. */
struct copy {
	char path[CACHE_PATH_MAX];
	int fd;
};

static int make_folder(struct copy *c, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(c->path, sizeof c->path, "%s/nri-rpd-check-XXXXXX",
			 tmp && *tmp ? tmp : "/tmp");
	int r = n >= (int)sizeof c->path ? -ENAMETOOLONG : mkdtemp(c->path) ? 0 : -errno;
	if (r)
		return err_errno(err, r, "no place for a copy in %s (TMPDIR)",
				 tmp && *tmp ? tmp : "/tmp");
	c->fd = open(c->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->fd >= 0)
		return 0;
	r = err_errno(err, -errno, "cannot open %s", c->path);
	(void)rmdir(c->path);
	return r;
}

static void remove_folder(struct copy *c)
{
	DIR *d = fdopendir(c->fd);
	for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (e->d_name[0] != '.')
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		(void)closedir(d);
	else
		(void)close(c->fd);
	(void)rmdir(c->path);
}

/* Everything is in memory afterwards. */
static int read_copy(struct pipeline *p, const char *dir, const struct copy *c,
		     struct store_opening *opening, struct err *err)
{
	struct store_counts counts;
	for (unsigned i = 0; i < COPY_TRIES; i++) {
		p->store = store_close(p->store);
		if (i)
			(void)usleep(COPY_PAUSE_US);
		int r = store_copy(dir, c->path, err);
		if (!r)
			r = open_in(p, c->path, opening, err);
		if (r)
			return r;
		if (opening->outcome != STORE_DAMAGED)
			break;
	}
	return store_restore(p->store, p->env.cache, &counts, err);
}

/* -ENOENT without a word in err: there is none. */
static int look(struct pipeline *p, const char *dir, struct store_opening *opening, struct err *err)
{
	struct copy c;
	int r = make_folder(&c, err);
	if (r)
		return r;
	r = read_copy(p, dir, &c, opening, err);
	p->store = store_abandon(p->store);
	remove_folder(&c);
	return r;
}

void state_look(struct pipeline *p, const char *dir, struct buf *report)
{
	struct store_opening opening = {.outcome = STORE_FRESH};
	struct err err = ERR_INIT;
	if (p->cfg.reset_cache)
		return;
	int r = look(p, dir, &opening, &err);
	if (r == -ENOENT && !err.code)
		return;
	if (r)
		(void)buf_printf(report,
				 "warning: the state in %s is left out of account, as for a first "
				 "start: %s\n",
				 dir, err_text(&err, r));
	else if (opening.outcome != STORE_FOUND)
		(void)buf_printf(report, "warning: a start would not use the state in %s: %s%s\n",
				 dir, outcomes[opening.outcome],
				 opening.outcome == STORE_DAMAGED
					 ? ", unless a daemon was writing it all the time"
					 : "");
}
