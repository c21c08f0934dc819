/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define SELF "/proc/self/exe"
/* relative to the parent of bin/ */
#define SANITIZED_PROGRAM "lib/nri-rp/nri-rp-modcheck-sanitized"
#define LOG_VARIABLE "NRI_RP_MODCHECK_VALGRIND_LOG"
#define ARGUMENTS_MAX 64u
#define LINE_MAX_SHOWN 160u

static bool watch_is_sanitized(void)
{
#ifdef SANITIZED
	return true;
#else
	return false;
#endif
}

int watch_valgrind_log(void)
{
	const char *text = getenv(LOG_VARIABLE);
	uint64_t fd;
	return text && str_to_u64(text, &fd) == 0 && fd <= INT_MAX ? (int)fd : -1;
}

unsigned watch_factor(void)
{
	if (watch_valgrind_log() >= 0)
		return WATCH_VALGRIND_FACTOR;
	return watch_is_sanitized() ? WATCH_SANITIZED_FACTOR : 1;
}

/* ---- replacement of the process -------------------------------------------------------------- */

int watch_with_sanitizers(char **argv, struct err *err)
{
	char path[PATH_MAX + sizeof SANITIZED_PROGRAM];
	if (watch_is_sanitized())
		return 0;
	ssize_t n = readlink(SELF, path, PATH_MAX - 1);
	if (n < 0)
		return err_errno(err, -errno, "%s", SELF);
	path[n] = '\0';
	for (unsigned i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	}
	n = (ssize_t)strlen(path);
	(void)snprintf(path + n, sizeof path - (size_t)n, "/%s", SANITIZED_PROGRAM);
	(void)execv(path, argv);
	return err_errno(err, -errno,
			 "cannot run %s (make deb SANITIZED=1 adds it to the package "
			 "nri-rp-dev; in the sources, make sanitized-modcheck makes it)",
			 path);
}

int watch_with_valgrind(char **argv, struct err *err)
{
	char self[PATH_MAX], number[16], log[32];
	const char *args[ARGUMENTS_MAX] = {"valgrind", "--quiet", "--error-exitcode=99", log, self};
	unsigned n = 5;
	if (watch_valgrind_log() >= 0)
		return 0;
	ssize_t len = readlink(SELF, self, sizeof self - 1);
	int fd = memfd_create("valgrind", 0);
	if (len < 0 || fd < 0)
		return err_errno(err, -errno, "cannot run valgrind");
	self[len] = '\0';
	(void)snprintf(number, sizeof number, "%d", fd);
	(void)snprintf(log, sizeof log, "--log-fd=%d", fd);
	for (char **arg = argv + 1; *arg; arg++) {
		if (n + 1 >= ARGUMENTS_MAX)
			return err_set(err, -E2BIG, "more than %u words", ARGUMENTS_MAX);
		args[n++] = *arg;
	}
	if (setenv(LOG_VARIABLE, number, 1) < 0)
		return err_errno(err, -errno, "cannot run valgrind");
	(void)execvp(args[0], (char *const *)args);
	return err_errno(err, -errno, "cannot run valgrind (Debian's package is of that name)");
}

/* ---- findings -------------------------------------------------------------------------------- */

/* Copies the next line of *text and advances *text behind it. Returns false at the end. */
static bool next_line(const char **text, char *ret, size_t size)
{
	size_t len = strcspn(*text, "\n");
	if (!**text)
		return false;
	(void)snprintf(ret, size, "%.*s", (int)len, *text);
	*text += len + ((*text)[len] == '\n');
	return true;
}

/* Returns the text after the prefix of a valgrind line such as "==12== Invalid read of size 4";
 * NULL: another line. */
static const char *of_valgrind(const char *line)
{
	if (strncmp(line, "==", 2) != 0)
		return NULL;
	const char *end = strstr(line + 2, "== ");
	return end && strspn(line + 2, "0123456789") == (size_t)(end - line - 2) ? end + 3 : NULL;
}

/* Appends the description of a finding if the line begins one: of the address sanitizer, of the one
 * for undefined behaviour, or of valgrind. */
static bool watch_begins(const char *line, struct buf *ret)
{
	static const char address[] = "ERROR: AddressSanitizer: ";
	const char *at = strstr(line, address);
	if (at) {
		at += sizeof address - 1;
		const char *end = strstr(at, " on ");
		(void)buf_printf(ret, "%.*s", end ? (int)(end - at) : INT_MAX, at);
		return true;
	}
	if (strstr(line, ": runtime error: ")) {
		(void)buf_add_str(ret, line);
		return true;
	}
	at = of_valgrind(line);
	if (!at || *at < 'A' || *at > 'Z')
		return false;
	(void)buf_add_str(ret, at);
	return true;
}

/* Returns the function of a stack frame, such as " #1 0x12 in place mine.c:20" or " by 0x12: place
 * (mine.c:20)"; NULL: another line, or a function of the C library or its replacement. */
static const char *watch_frame(const char *line)
{
	const char *at = of_valgrind(line);
	if (at) {
		at = strstr(at, " 0x") ? strstr(at, ": ") : NULL;
		return at && !strstr(at, "(vg_replace_") && !strstr(at, "(in /usr/libexec/valgrind")
			       ? at + 2
			       : NULL;
	}
	size_t space = strspn(line, " ");
	at = line[space] == '#' ? strstr(line, " in ") : NULL;
	return at && strncmp(at + 4, "__", 2) != 0 ? at + 4 : NULL;
}

void watch_finding(const char *text, struct buf *ret)
{
	char line[LINE_MAX_SHOWN];
	bool found = false;
	while (next_line(&text, line, sizeof line)) {
		const char *end = strstr(line, " at 0x"), *at;
		if (!found) {
			found = watch_begins(line, ret);
			continue;
		}
		at = watch_frame(line);
		if (at) {
			(void)buf_printf(ret, " in %s", at);
			return;
		}
		if (str_has_prefix(line, "READ of") || str_has_prefix(line, "WRITE of"))
			(void)buf_printf(ret, ": %.*s", end ? (int)(end - line) : INT_MAX, line);
	}
}
