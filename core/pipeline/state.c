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

#define LOG_SOURCE "pipeline"

#define BOOT_ID "proc/sys/kernel/random/boot_id"
#define STATE_FILE "store.mdb"
#define COPY_CHUNK ((size_t)64 << 10)
#define COPY_TRIES 4u /* a daemon may be writing meanwhile */

static const char *const outcomes[] = {
	[STORE_FRESH] = "fresh",	[STORE_FOUND] = "restored",
	[STORE_RESET] = "reset",	[STORE_OTHER_BOOT] = "other boot",
	[STORE_NEWER] = "newer format", [STORE_DAMAGED] = "damaged",
	[STORE_UNSAFE] = "unsafe",
};

static int open_in(struct pipeline *p, const char *dir, struct store_opening *ret, struct err *err)
{
	char boot_id[64];
	struct fs_root real;
	int r = fs_root_open(&real, "/", err);
	if (r)
		return r;
	ssize_t n = fs_read(&real, BOOT_ID, boot_id, sizeof boot_id);
	fs_root_close(&real);
	if (n < 0)
		return err_errno(err, (int)n, "/" BOOT_ID);
	const struct store_params params = {
		.dir = dir, .boot_id = boot_id, .reset = p->cfg.reset_cache};
	return store_open(&params, &p->store, ret, err);
}

int state_open(struct pipeline *p, struct err *err)
{
	struct store_opening opening;
	struct store_counts counts;
	int r = open_in(p, p->state_dir, &opening, err);
	if (r)
		return r;
	(void)snprintf(p->store_state, sizeof p->store_state, "%s", outcomes[opening.outcome]);
	if (opening.why[0])
		log_notice("%s", opening.why);
	r = store_restore(p->store, p->env.cache, &counts, err);
	if (!r && counts.ctrs)
		log_info("restored %u pods and %u containers", counts.pods, counts.ctrs);
	return r;
}

/* ---- to check a configuration ------------------------------------------------------------------------------------------ */

static int copy_bytes(int from, int to)
{
	_free_ uint8_t *chunk = malloc(COPY_CHUNK);
	ssize_t n = chunk ? 1 : -1;
	while (n > 0) {
		n = read(from, chunk, COPY_CHUNK);
		ssize_t written = n > 0 ? write(to, chunk, (size_t)n) : n;
		if (written != n)
			return written < 0 ? -errno : -ENOSPC;
	}
	return n < 0 ? -errno : 0;
}

/* -ENOENT: there is none. */
static int copy_state(const char *dir, const char *to)
{
	char path[CACHE_PATH_MAX], copy[CACHE_PATH_MAX];
	struct stat st;
	if (snprintf(path, sizeof path, "%s/" STATE_FILE, dir) >= (int)sizeof path ||
	    snprintf(copy, sizeof copy, "%s/" STATE_FILE, to) >= (int)sizeof copy)
		return -ENAMETOOLONG;
	_close_ int in = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (in < 0)
		return -errno;
	if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return -EPERM;
	_close_ int out = open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return out < 0 ? -errno : copy_bytes(in, out);
}

static void remove_copy(const char *dir)
{
	DIR *d = opendir(dir);
	for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (e->d_name[0] != '.')
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		(void)closedir(d);
	(void)rmdir(dir);
}

/* Everything is in memory afterwards. */
static int read_copy(struct pipeline *p, const char *dir, const char *to,
		     struct store_opening *opening, struct err *err)
{
	struct store_counts counts;
	int r = 0;
	for (unsigned i = 0; i < COPY_TRIES; i++) {
		p->store = store_close(p->store);
		r = copy_state(dir, to);
		if (r)
			return r == -ENOENT ? r : err_errno(err, r, "cannot read it");
		r = open_in(p, to, opening, err);
		if (r || opening->outcome != STORE_DAMAGED)
			break;
	}
	return r ? r : store_restore(p->store, p->env.cache, &counts, err);
}

void state_look(struct pipeline *p, const char *dir, struct buf *report)
{
	const char *tmp = getenv("TMPDIR");
	char to[CACHE_PATH_MAX];
	struct store_opening opening = {.outcome = STORE_FRESH};
	struct err err = ERR_INIT;
	if (p->cfg.reset_cache)
		return;
	int n = snprintf(to, sizeof to, "%s/nri-rpd-check-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	int r = n >= (int)sizeof to ? -ENAMETOOLONG : mkdtemp(to) ? 0 : -errno;
	if (r) {
		(void)err_errno(&err, r, "no place for a copy");
	} else {
		r = read_copy(p, dir, to, &opening, &err);
		p->store = store_abandon(p->store);
		remove_copy(to);
	}
	if (r == -ENOENT)
		return;
	if (r)
		(void)buf_printf(report,
				 "warning: the state in %s is left out of account, as for a first "
				 "start: %s\n",
				 dir, err_text(&err, r));
	else if (opening.outcome != STORE_FOUND)
		(void)buf_printf(report, "warning: a start would not use the state in %s: %s\n",
				 dir, outcomes[opening.outcome]);
}
