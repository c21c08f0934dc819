/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command support: collects what a report of a fault needs in a temporary directory and packs it
 * with tar. Documents come from the daemon without annotations, processes and cgroups; texts are
 * the output of other commands of this program; values of configuration keys that look like secrets
 * are omitted.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/nri-rpctl/cli.h"

#define SELF "/proc/self/exe"
#define JOURNAL_LINES "20000"
#define ARGS_MAX 16u
#define TREE_DEPTH 8
#define PARENT_MAX 128u
#define LEFT_OUT "(omitted)"

static const struct {
	const char *file, *method;
	uint32_t flags;
	const char *what;
} documents[] = {
	{"version.json", "Version", 0, "versions of the daemon and its interfaces"},
	{"status.json", "Status", CTL_FLAG_MEMORY, "status with the uses of memory"},
	{"containers.json", "Containers", 0, "containers and their decisions"},
	{"pods.json", "Pods", 0, "pods without their annotations"},
	{"topology.json", "Topology", 0, "the machine and the owners of its CPUs"},
	{"zones.json", "Zones", 0, "the policy's zones"},
	{"node.json", "Node", 0, "overcommitted resources of the node"},
	{"events.json", "Events", 0, "events since the daemon's start"},
	{"modules.json", "Modules", 0, "installed modules and their state"},
};

static const struct {
	const char *file;
	const char *argv[ARGS_MAX];
	const char *what;
	bool own; /* a command of this program */
	/* the file includes the configuration, with values of keys that may be secrets */
	bool configuration;
} programs[] = {
	{"doctor.txt", {SELF, "doctor"}, "findings of nri-rpctl doctor", true, false},
	{"topology.txt", {SELF, "topology"}, "the machine as a map", true, false},
	{"config.txt",
	 {SELF, "config", "show", "--origin", "--defaults"},
	 "the active configuration with the origin of each key; values of passwords, tokens and "
	 "the like are omitted",
	 true,
	 true},
	{"check.txt",
	 {SELF, "config", "check"},
	 "problems of the configuration files",
	 true,
	 false},
	{"journal.txt",
	 {"journalctl", "-b", "--no-pager", "-o", "short-iso-precise", "-n", JOURNAL_LINES, "-u",
	  "nri-rpd", "-u", "nri-rp-agent", "-u", "nri-rp-bridge"},
	 "log of the daemon, the agent and the bridge since boot, the last " JOURNAL_LINES " lines",
	 false,
	 false},
	{"kernel.txt", {"uname", "-srvm"}, "version of the kernel", false, false},
	{"system.txt", {"cat", "/etc/os-release"}, "version of the operating system", false, false},
};

struct support {
	struct cli *cli;
	char dir[PARENT_MAX + 64];
	struct buf readme;
	unsigned missing;
};

/* ---- files ----------------------------------------------------------------------------------- */

static int support_write(struct support *s, const char *file, struct buf *text)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/%s", s->dir, file);
	FILE *f = fopen(path, "we");
	if (!f)
		return -errno;
	int r = fputs(buf_text(text), f);
	return fclose(f) || r < 0 ? -EIO : 0;
}

static void support_add(struct support *s, const char *file, const char *what, struct buf *text,
			const char *error)
{
	int r = error ? 0 : support_write(s, file, text);
	const char *why = error ? error : r ? strerror(-r) : NULL;
	s->missing += why != NULL;
	(void)buf_printf(&s->readme, "%-16s %s%s%s\n", file, what, why ? "; MISSING: " : "",
			 why ? why : "");
}

static int support_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

/* ---- secrets --------------------------------------------------------------------------------- */

/* Returns true if the key of a line of YAML names a secret. */
static bool support_is_secret(const char *line, size_t len)
{
	static const char *const words[] = {"password", "passwd", "secret", "token", "credential"};
	const char *colon = memchr(line, ':', len);
	char key[128];
	size_t n = colon ? (size_t)(colon - line) : 0;
	if (!n || n >= sizeof key)
		return false;
	memcpy(key, line, n);
	key[n] = '\0';
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(key, words[i]))
			return true;
	return false;
}

/* Copies YAML without the values of secrets, which may continue on lines that are indented more. */
static void support_without_secrets(const char *yaml, struct buf *ret)
{
	size_t hidden = SIZE_MAX; /* indentation of the secret's key */
	for (const char *line = yaml, *next; *line; line = next) {
		size_t len = strcspn(line, "\n"), indent = strspn(line, " -");
		next = line + len + (line[len] == '\n');
		if (hidden != SIZE_MAX && (indent > hidden || indent == len))
			continue;
		hidden = SIZE_MAX;
		if (support_is_secret(line, len)) {
			hidden = indent;
			(void)buf_add(ret, line, strcspn(line, ":") + 1);
			(void)buf_add_str(ret, " " LEFT_OUT "\n");
		} else {
			(void)buf_add(ret, line, (size_t)(next - line));
		}
	}
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void support_documents(struct support *s)
{
	struct err err = ERR_INIT;
	struct link *l = NULL;
	int r = link_open(s->cli->socket, &l, &err);
	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
		struct answer a = {.text = BUF_INIT};
		struct question q = {.method = documents[i].method,
				     .flags = documents[i].flags | CTL_FLAG_PUBLIC};
		if (l)
			r = link_call(l, &q, &a, &err);
		support_add(s, documents[i].file, documents[i].what, &a.text,
			    r ? err_text(&err, r) : NULL);
		answer_fini(&a);
	}
	link_close(l);
}

static void support_programs(struct support *s)
{
	(void)setenv("NRI_RP_SOCKET", s->cli->socket, 1);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		struct buf text = BUF_INIT, shown = BUF_INIT;
		const char *argv[ARGS_MAX + 3] = {NULL};
		size_t n = 0;
		for (; programs[i].argv[n]; n++)
			argv[n] = programs[i].argv[n];
		if (s->cli->config && programs[i].own) {
			argv[n++] = "--config";
			argv[n] = s->cli->config;
		}
		int r = run_program(argv, &text);
		if (programs[i].configuration)
			support_without_secrets(buf_text(&text), &shown);
		support_add(s, programs[i].file, programs[i].what,
			    programs[i].configuration ? &shown : &text,
			    r < 0 ? "the program is not installed" : NULL);
		buf_fini(&text);
		buf_fini(&shown);
	}
}

/* ---- command --------------------------------------------------------------------------------- */

static int support_pack(struct support *s, const char *file, const char *parent, const char *name)
{
	struct buf said = BUF_INIT;
	const char *const argv[] = {"tar", "--force-local", "-C", parent, "-czf", file, name, NULL};
	mode_t mask = umask(077);
	int r = run_program(argv, &said);
	(void)umask(mask);
	if (r < 0)
		complain(s->cli, "tar is not installed");
	else if (r)
		complain(s->cli, "cannot write %s: %s", file, buf_text(&said));
	buf_fini(&said);
	return r ? CTL_FAILED : CTL_OK;
}

static int support_collect(struct support *s, const char *file, const char *parent,
			   const char *name)
{
	(void)buf_add_str(&s->readme,
			  "State of nri-rp on one node, for a report of a fault. Names of pods and "
			  "containers,\nconfiguration and log are in here; environment variables, "
			  "annotations and secrets are not.\nRead it before you give it away.\n\n");
	support_documents(s);
	support_programs(s);
	int r = support_write(s, "README", &s->readme);
	if (r) {
		complain(s->cli, "cannot write to %s: %s", s->dir, strerror(-r));
		return CTL_FAILED;
	}
	return support_pack(s, file, parent, name);
}

static void support_show(const struct support *s, const char *file)
{
	struct out *o = &s->cli->out;
	if (s->cli->json) {
		json_t *doc = json_pack("{s:s, s:i}", "file", file, "missing", (int)s->missing);
		char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
		(void)buf_printf(&o->buf, "%s\n", text ? text : "{}");
		free(text);
		json_decref(doc);
		return;
	}
	out_put(o, "Wrote ");
	out_text(o, file);
	out_put(o, s->missing ? "; README in it says which parts are missing.\n" : ".\n");
}

/* Makes the temporary directory. /run/nri-rp serves a container, whose root is read-only. */
static int support_make_parent(char ret[PARENT_MAX])
{
	const char *const dirs[] = {getenv("TMPDIR"), "/tmp", "/run/nri-rp"};
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		int n = dirs[i] ? snprintf(ret, PARENT_MAX, "%s/nri-rp-support.XXXXXX", dirs[i])
				: -1;
		if (n > 0 && n < (int)PARENT_MAX && mkdtemp(ret))
			return 0;
	}
	return -errno;
}

/* Copies the archive to stdout. */
static int support_send(struct cli *cli, const char *file)
{
	char chunk[4096];
	FILE *f = fopen(file, "re");
	size_t n = 0;
	while (f && (n = fread(chunk, 1, sizeof chunk, f)) > 0 && fwrite(chunk, 1, n, stdout) == n)
		;
	bool sent = f && !n && !ferror(f) && !fflush(stdout);
	if (f)
		(void)fclose(f);
	if (!sent)
		complain(cli, "cannot write the archive to stdout");
	return sent ? CTL_OK : CTL_FAILED;
}

int cmd_support(struct cli *cli)
{
	struct support s = {.cli = cli, .readme = BUF_INIT};
	char parent[PARENT_MAX], name[64], archive[PATH_MAX];
	const char *file = cli->n_args ? cli->args[0] : archive;
	bool piped = str_eq(file, "-");
	time_t now = time(NULL);
	struct tm tm;
	if (piped && isatty(STDOUT_FILENO)) {
		complain(cli, "an archive is not written to a terminal: redirect stdout, or name a "
			      "file");
		return CTL_USAGE;
	}
	(void)strftime(name, sizeof name, "nri-rp-support-%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
	int r = support_make_parent(parent);
	if (r) {
		complain(cli, "cannot make a temporary directory (set TMPDIR): %s", strerror(-r));
		return CTL_FAILED;
	}
	(void)snprintf(archive, sizeof archive, "%s%s%s.tar.gz", piped ? parent : "",
		       piped ? "/" : "", name);
	file = piped ? archive : file;
	(void)snprintf(s.dir, sizeof s.dir, "%s/%s", parent, name);
	if (mkdir(s.dir, 0700)) {
		complain(cli, "cannot make %s: %s", s.dir, strerror(errno));
		r = CTL_FAILED;
	} else {
		r = support_collect(&s, file, parent, name);
	}
	if (r == CTL_OK && piped)
		r = support_send(cli, file);
	else if (r == CTL_OK)
		support_show(&s, file);
	(void)nftw(parent, support_remove_one, TREE_DEPTH, FTW_DEPTH | FTW_PHYS);
	buf_fini(&s.readme);
	return r;
}
