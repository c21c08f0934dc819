/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/daemon.h"

#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/clock.h"

#define ARGS_MAX 64u
#define LOG_MAX (256u << 20)
#define LOG_POLL_MS 20u
#define EXIT_NOT_STARTED 127

struct daemon {
	pid_t pid; /* process of the daemon; 0: not running */
	int last_status;
	struct loop_signal *child;
};

/* ---- the command ----------------------------------------------------------------------------- */

/* Finds the folder of this program, which also contains nri-rpd. */
static int own_folder(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	char *slash = strrchr(buf, '/');
	if (slash)
		*slash = '\0';
	return 0;
}

static void add_module_dirs(const struct sim *s, const char *folder, struct buf *out)
{
	struct stat st;
	char path[PATH_MAX];
	for (unsigned i = 0; i < s->options.n_module_dirs; i++)
		buf_printf(out, " --module-dir %s", s->options.module_dirs[i]);
	if (s->options.n_module_dirs)
		return;
	/* layout of a build folder */
	(void)snprintf(path, sizeof path, "%.*s/../modules", (int)sizeof path - 16, folder);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		buf_printf(out, " --module-dir %s", path);
}

static int command_template(const struct sim *s, struct buf *out)
{
	char folder[PATH_MAX];
	int r = own_folder(folder, sizeof folder);
	if (r)
		return r;
	if (s->options.daemon) {
		buf_add_str(out, s->options.daemon);
		if (s->options.n_module_dirs)
			add_module_dirs(s, folder, out);
		return out->failed;
	}
	buf_printf(out, "%s/nri-rpd --config {config} --nri-socket {socket} --host-root {root}",
		   folder);
	buf_add_str(out, " --state-dir {state} --control-socket {control}");
	add_module_dirs(s, folder, out);
	return out->failed;
}

static const char *value_of(const struct sim *s, const char *name, size_t len)
{
	const struct {
		const char *name, *value;
	} values[] = {{"config", s->config}, {"socket", s->socket},   {"root", s->root},
		      {"state", s->state},   {"control", s->control}, {"work", s->work}};
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
		if (strlen(values[i].name) == len && strncmp(values[i].name, name, len) == 0)
			return values[i].value;
	return NULL;
}

/* Expands the placeholders of a word; the result is malloc'd. */
static char *daemon_expand(const struct sim *s, const char *word)
{
	struct buf out = BUF_INIT;
	while (*word) {
		const char *end = *word == '{' ? strchr(word, '}') : NULL;
		const char *value = end ? value_of(s, word + 1, (size_t)(end - word - 1)) : NULL;
		if (value) {
			buf_add_str(&out, value);
			word = end + 1;
		} else {
			buf_add(&out, word++, 1);
		}
	}
	char *ret = out.failed ? NULL : strdup(buf_text(&out));
	buf_fini(&out);
	return ret;
}

static void free_args(char **args)
{
	for (unsigned i = 0; args[i]; i++)
		free(args[i]);
}

/* Splits the command into words at blanks; there is no quoting. */
static int make_args(const struct sim *s, char *args[ARGS_MAX + 1], struct err *err)
{
	struct buf template = BUF_INIT;
	unsigned n = 0;
	char *save = NULL;
	int r = command_template(s, &template);
	_free_ char *words = r ? NULL : strdup(buf_text(&template));
	buf_fini(&template);
	if (!words)
		return err_errno(err, r ? r : -ENOMEM, "nri-rpd's command");
	for (char *w = strtok_r(words, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (n == ARGS_MAX)
			return err_set(err, -E2BIG, "nri-rpd's command has too many words");
		args[n] = daemon_expand(s, w);
		if (!args[n++])
			return err_errno(err, -ENOMEM, "nri-rpd's command");
	}
	return n ? 0 : err_set(err, -EINVAL, "nri-rpd's command is empty");
}

/* ---- the process ----------------------------------------------------------------------------- */

static void on_child(int signo, void *arg)
{
	struct sim *s = arg;
	struct daemon *d = s->daemon;
	int status;
	if (!d->pid || waitpid(d->pid, &status, WNOHANG) != d->pid)
		return;
	d->pid = 0;
	d->last_status = status;
	char text[64];
	json_t *details = json_object();
	doc_put_text(details, "status", daemon_status_text(status, text, sizeof text));
	sim_event(s, "exited", details);
	sim_wake(s);
}

int daemon_new(struct sim *s, struct err *err)
{
	s->daemon = calloc(1, sizeof *s->daemon);
	if (!s->daemon)
		return err_errno(err, -ENOMEM, "nri-rpd");
	s->daemon->last_status = -1;
	s->daemon->child = loop_signal_new(s->loop, SIGCHLD, on_child, s);
	return s->daemon->child ? 0 : err_errno(err, -ENOMEM, "nri-rpd");
}

void daemon_free(struct sim *s)
{
	if (!s->daemon)
		return;
	if (s->daemon->pid) {
		(void)kill(s->daemon->pid, SIGKILL);
		(void)waitpid(s->daemon->pid, NULL, 0);
	}
	if (s->daemon->child)
		loop_signal_free(s->daemon->child);
	free(s->daemon);
	s->daemon = NULL;
}

/* Runs in the child: executes nri-rpd, which is killed when the simulation ends, and shares neither
 * signal mask nor input with it. */
__attribute__((noreturn)) static void daemon_become(const struct sim *s, char **args, pid_t parent)
{
	sigset_t none;
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	int log = open(s->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	int null = open("/dev/null", O_RDONLY);
	if (log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(EXIT_NOT_STARTED);
	if (null > 2)
		(void)close(null);
	if (log > 2)
		(void)close(log);
	if (getppid() != parent)
		_exit(EXIT_NOT_STARTED);
	(void)execvp(args[0], args);
	(void)fprintf(stderr, "%s: %s\n", args[0], strerror(errno));
	_exit(EXIT_NOT_STARTED);
}

int daemon_start(struct sim *s, struct err *err)
{
	char *args[ARGS_MAX + 1] = {NULL};
	if (s->daemon->pid)
		return err_set(err, -EALREADY, "nri-rpd is already running");
	int r = make_args(s, args, err);
	pid_t parent = getpid(), pid = r ? -1 : fork();
	if (pid == 0)
		daemon_become(s, args, parent);
	if (!r && pid < 0)
		r = err_errno(err, -errno, "cannot start %s", args[0]);
	if (!r)
		s->daemon->pid = pid;
	free_args(args);
	return r;
}

DEFINE_GETTER_OF(daemon_running, bool, const struct sim *s, s->daemon && s->daemon->pid)
DEFINE_GETTER_OF(daemon_pid, int, const struct sim *s, s->daemon ? s->daemon->pid : 0)

int daemon_last_status(const struct sim *s)
{
	return s->daemon ? s->daemon->last_status : -1;
}

int daemon_signal(struct sim *s, int signo, struct err *err)
{
	if (!daemon_running(s))
		return err_set(err, -ESRCH, "nri-rpd is not running");
	return kill(s->daemon->pid, signo) < 0 ? err_errno(err, -errno, "signal") : 0;
}

static bool has_exited(struct sim *s, void *arg)
{
	return !daemon_running(s);
}

int daemon_wait_exit(struct sim *s, uint64_t timeout_ms, int *ret_status, struct err *err)
{
	int r = sim_wait(s, has_exited, NULL, timeout_ms);
	if (r)
		return err_set(err, r, "nri-rpd has not exited within %llu ms",
			       (unsigned long long)timeout_ms);
	if (ret_status)
		*ret_status = s->daemon->last_status;
	return 0;
}

const char *daemon_status_text(int status, char *buf, size_t size)
{
	if (status < 0)
		(void)snprintf(buf, size, "never started");
	else if (WIFSIGNALED(status))
		(void)snprintf(buf, size, "signal %d", WTERMSIG(status));
	else
		(void)snprintf(buf, size, "exit status %d", WEXITSTATUS(status));
	return buf;
}

/* ---- the log --------------------------------------------------------------------------------- */

uint64_t daemon_log_end(const struct sim *s)
{
	struct stat st;
	return stat(s->log, &st) == 0 ? (uint64_t)st.st_size : 0;
}

char *daemon_read_log(const struct sim *s, uint64_t from)
{
	_close_ int fd = open(s->log, O_RDONLY | O_CLOEXEC);
	uint64_t end = daemon_log_end(s), len = end > from ? end - from : 0;
	if (len > LOG_MAX)
		len = LOG_MAX;
	char *text = malloc(len + 1);
	ssize_t n = text && fd >= 0 ? pread(fd, text, len, (off_t)from) : 0;
	if (text)
		text[n > 0 ? n : 0] = '\0';
	return text;
}

char *daemon_log_tail(const struct sim *s, unsigned n_lines)
{
	const uint64_t most = 16384;
	uint64_t end = daemon_log_end(s);
	char *text = daemon_read_log(s, end > most ? end - most : 0);
	if (!text)
		return NULL;
	char *p = text + strlen(text);
	for (unsigned n = 0; p > text && n <= n_lines; p--)
		n += p[-1] == '\n';
	if (p > text)
		p += 1;
	memmove(text, p, strlen(p) + 1);
	return text;
}

struct log_search {
	regex_t regex;
	uint64_t from;
};

static bool log_matches(struct sim *s, void *arg)
{
	struct log_search *l = arg;
	_free_ char *text = daemon_read_log(s, l->from);
	char *save = NULL;
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (regexec(&l->regex, line, 0, NULL, 0) == 0)
			return true;
	return false;
}

int daemon_wait_log(struct sim *s, const char *regex, uint64_t from, uint64_t timeout_ms,
		    struct err *err)
{
	struct log_search l = {.from = from};
	if (regcomp(&l.regex, regex, REG_EXTENDED | REG_NOSUB))
		return err_set(err, -EINVAL, "not a regular expression: %s", regex);
	uint64_t deadline = clock_ms() + timeout_ms;
	int r = 0;
	while (!r && !log_matches(s, &l)) {
		if (clock_ms() >= deadline)
			r = err_set(err, -ETIMEDOUT,
				    "the log of nri-rpd has no line that matches %s", regex);
		else
			(void)sim_wait(s, NULL, NULL, LOG_POLL_MS);
	}
	regfree(&l.regex);
	return r;
}
