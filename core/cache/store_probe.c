/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB trusts its file: a flipped bit in a page's header can make it read beyond the map, divide by zero or run in circles. So
 * before the daemon reads a file of an earlier run, a child of it does so, in the same way. The file is only read, by either.
 */
#include "core/cache/store_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/util/cleanup.h"

#define PROBE_ARENA 4096u

static void conclude(struct probe_result *ret, enum store_outcome outcome, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void conclude(struct probe_result *ret, enum store_outcome outcome, const char *fmt, ...)
{
	va_list ap;
	ret->outcome = outcome;
	va_start(ap, fmt);
	(void)vsnprintf(ret->why, sizeof ret->why, fmt, ap);
	va_end(ap);
}

static void check_meta(struct store_reader *reader, const char *boot_id, struct probe_result *ret)
{
	struct record_key key = {1, {RECORD_META}};
	struct stored_meta meta;
	struct err err = ERR_INIT;
	const uint8_t *message;
	size_t len;
	MDB_val value;
	_arena_ struct arena *a = arena_new(PROBE_ARENA, RECORD_ARENA_LIMIT);
	int rc = store_reader_get(reader, &key, &value);
	if (rc) {
		conclude(ret, STORE_DAMAGED, "its head cannot be read: %s", mdb_strerror(rc));
		return;
	}
	if (!a || record_open(key.bytes, key.len, value.mv_data, value.mv_size, &message, &len) ||
	    record_decode_meta(a, message, len, &meta, &err) || !meta.format) {
		conclude(ret, STORE_DAMAGED, "its head is damaged");
		return;
	}
	if (meta.format > STORE_FORMAT)
		conclude(ret, STORE_NEWER,
			 "it is of format %u, written by version %.64s; this one knows formats up "
			 "to %u",
			 meta.format, *meta.version ? meta.version : "(unknown)", STORE_FORMAT);
	else if (strcmp(meta.boot_id, boot_id) != 0)
		conclude(ret, STORE_OTHER_BOOT, "it is of another boot");
	else if (meta.commit != reader->commit)
		conclude(ret, STORE_DAMAGED, "its last commit is not whole");
	else
		conclude(ret, STORE_FOUND, "usable");
	ret->commit = reader->commit;
	ret->journal = meta.journal;
	/* the root is that which was in the meta page before */
	ret->torn = ret->outcome == STORE_DAMAGED && meta.commit + META_PAGES == reader->commit;
}

static void walk(struct store_reader *reader, struct probe_result *ret)
{
	MDB_val key, value;
	const uint8_t *message;
	size_t len;
	int rc;
	while (!(rc = store_reader_next(reader, &key, &value))) {
		ret->n_records++;
		if (record_open(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &message,
				&len))
			ret->n_bad++;
	}
	if (rc != MDB_NOTFOUND)
		conclude(ret, STORE_DAMAGED, "%s after %u records", mdb_strerror(rc),
			 ret->n_records);
}

void store_check_file(const char *path, const char *boot_id, struct probe_result *ret)
{
	struct store_reader reader;
	*ret = (struct probe_result){0};
	int rc = store_reader_open(&reader, path);
	if (rc) {
		conclude(ret, STORE_DAMAGED, "it cannot be opened as a store: %s",
			 mdb_strerror(rc));
		return;
	}
	check_meta(&reader, boot_id, ret);
	if (ret->outcome == STORE_FOUND &&
	    (rc = store_reader_add_journal(&reader, path, ret->journal)) != 0 && !store_passes(rc))
		conclude(ret, STORE_DAMAGED, "its journal cannot be read: %s", mdb_strerror(rc));
	if (ret->outcome == STORE_FOUND)
		walk(&reader, ret);
	store_reader_close(&reader);
}

/* Whatever happens to it, it happens quietly and not for long. */
static void calm_child(pid_t parent, unsigned seconds)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
	sigset_t none;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)prctl(PR_SET_DUMPABLE, 0);
	for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++)
		(void)signal(fatal[i], SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* LMDB's assertions print before they abort */
	_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null >= 0)
		(void)dup2(null, STDERR_FILENO);
	(void)alarm(seconds);
}

static void child_died(int status, unsigned seconds, struct probe_result *ret)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		conclude(ret, STORE_DAMAGED, "reading it takes more than %u s", seconds);
	else if (WIFSIGNALED(status))
		conclude(ret, STORE_DAMAGED, "reading it ends in %s",
			 sigdescr_np(WTERMSIG(status)));
	else
		conclude(ret, STORE_DAMAGED, "reading it fails");
}

void store_probe(const char *path, const char *boot_id, int lock_fd, unsigned seconds,
		 struct probe_result *ret)
{
	int ends[2], status = 0;
	*ret = (struct probe_result){0};
	if (pipe2(ends, O_CLOEXEC) < 0) {
		conclude(ret, STORE_DAMAGED, "it cannot be checked: %s", strerrordesc_np(errno));
		return;
	}
	pid_t self = getpid(), pid = fork();
	if (pid == 0) {
		(void)close(lock_fd);
		calm_child(self, seconds);
		store_check_file(path, boot_id, ret);
		_exit(write(ends[1], ret, sizeof *ret) == sizeof *ret ? 0 : 1);
	}
	int failure = errno;
	(void)close(ends[1]);
	_close_ int from = ends[0];
	if (pid < 0) {
		conclude(ret, STORE_DAMAGED, "it cannot be checked: %s", strerrordesc_np(failure));
		return;
	}
	ssize_t n;
	while ((n = read(from, ret, sizeof *ret)) < 0 && errno == EINTR)
		;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != sizeof *ret || !WIFEXITED(status) || WEXITSTATUS(status))
		child_died(status, seconds, ret);
}
