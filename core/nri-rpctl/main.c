/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rpctl: command line of the operator. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/str.h"

#define MODULE_DIRS_MAX 16u

struct option {
	const char *name, *argument;
	unsigned bit; /* OPT_… of a command; 0: option of all commands */
	const char *help;
};

enum {
	GLOBAL_SOCKET,
	GLOBAL_JSON,
	GLOBAL_CONFIG,
	GLOBAL_MODULE_DIR,
	GLOBAL_HOST_ROOT,
	GLOBAL_VERSION,
	GLOBAL_HELP,
	N_GLOBAL
};

static const struct option globals[N_GLOBAL] = {
	[GLOBAL_SOCKET] = {"socket", "PATH", 0,
			   "control socket, default " CTL_DEFAULT_SOCKET " or $NRI_RP_SOCKET"},
	[GLOBAL_JSON] = {"json", NULL, 0, "print the JSON document instead of text"},
	[GLOBAL_CONFIG] = {"config", "FILE", 0,
			   "for config and doctor: use this file instead of the daemon's"},
	[GLOBAL_MODULE_DIR] = {"module-dir", "DIR", 0,
			       "for config without a daemon: folder of modules"},
	[GLOBAL_HOST_ROOT] = {"host-root", "DIR", 0,
			      "for config check --local: the files of another machine"},
	[GLOBAL_VERSION] = {"version", NULL, 0, "print the versions and exit"},
	[GLOBAL_HELP] = {"help", NULL, 0, "print this help, or that of a command, and exit"},
};

static const struct option options[] = {
	{"memory", NULL, OPT_MEMORY, "also show the daemon's memory use"},
	{"wide", NULL, OPT_WIDE, "show all columns, whatever the terminal's width"},
	{"follow", NULL, OPT_FOLLOW, "wait for new events"},
	{"since", "N|TIME", OPT_SINCE, "events after number N, or of the last TIME (10m, 2h)"},
	{"table", NULL, OPT_TABLE, "a line per CPU instead of a map"},
	{"origin", NULL, OPT_ORIGIN, "where each key was set"},
	{"defaults", NULL, OPT_DEFAULTS, "also keys that are not set"},
	{"confirm", "TIME", OPT_CONFIRM, "undo after TIME unless confirmed (60s, 5m)"},
	{"yes", NULL, OPT_YES, "go back even if the files were refused"},
	{"dry-run", NULL, OPT_DRY_RUN, "only show what it would go back to, and what would move"},
	{"history", NULL, OPT_HISTORY, "its events, including refusals and moves"},
	{"local", NULL, OPT_LOCAL, "do not ask the daemon"},
};
#define N_OPTIONS (sizeof options / sizeof options[0])

struct command {
	const char *name, *sub; /* second word of the command; NULL: none */
	const char *arguments;
	unsigned min_args, max_args;
	unsigned options;
	int (*run)(struct cli *cli);
	const char *help;
};

static const struct command commands[] = {
	{"status", NULL, "", 0, 0, OPT_MEMORY, cmd_status,
	 "health, versions, containers and speed of the daemon"},
	{"claims", NULL, "", 0, 0, 0, cmd_claims, "claims (nri-rp-dra(7)) and the CPUs they have"},
	{"pods", NULL, "[NAME]", 0, 1, 0, cmd_pods, "pods, or those whose name matches"},
	{"containers", NULL, "[NAME]", 0, 1, OPT_WIDE, cmd_containers,
	 "containers and their placement"},
	{"topology", NULL, "", 0, 0, OPT_TABLE, cmd_topology,
	 "a map of the node: which container runs on which CPU"},
	{"zones", NULL, "", 0, 0, 0, cmd_zones, "how the policy divides the node"},
	{"node", NULL, "", 0, 0, 0, cmd_node,
	 "overcommitted resources of the node, and how they were calculated"},
	{"explain", NULL, "CONTAINER", 1, 1, OPT_HISTORY, cmd_explain,
	 "reasons for the placement or the refusal of a container"},
	{"events", NULL, "", 0, 0, OPT_FOLLOW | OPT_SINCE, cmd_events, "recent events"},
	{"reload", NULL, "", 0, 0, OPT_CONFIRM, cmd_reload,
	 "read the configuration again and wait for the result"},
	{"confirm", NULL, "", 0, 0, 0, cmd_confirm, "keep the configuration of a reload --confirm"},
	{"undo", NULL, "", 0, 0, OPT_YES | OPT_DRY_RUN, cmd_undo,
	 "return to the previous configuration"},
	{"plan", NULL, "FILE|-", 1, 1, 0, cmd_plan,
	 "containers that would move with this configuration"},
	{"try", NULL, "FILE|-", 1, 1, 0, cmd_try,
	 "where the pods of this manifest would be placed: a Pod, Deployment, List …"},
	{"rebalance", NULL, "[MOVES]", 0, 1, 0, cmd_rebalance,
	 "let the policy move at most so many containers if that improves them"},
	{"import", NULL, "FILE|-", 1, 1, 0, cmd_import,
	 "convert the configuration of another resource manager to rp.conf"},
	{"config", "check", "[FILE|-]", 0, 1, OPT_LOCAL, cmd_config_check, "check a configuration"},
	{"config", "show", "", 0, 0, OPT_ORIGIN | OPT_DEFAULTS | OPT_LOCAL, cmd_config_show,
	 "the active configuration"},
	{"config", "schema", "[MODULE]...", 0, 16, 0, cmd_config_schema,
	 "keys of modules (or core), or a JSON schema of all"},
	{"config", "crds", "", 0, 0, 0, cmd_config_crds,
	 "definitions of the policies' custom resources, for kubectl apply -f -"},
	{"modules", NULL, "", 0, 0, 0, cmd_modules, "installed modules and their state"},
	{"modules", "clear", "NAME", 1, 1, 0, cmd_modules_clear, "end the quarantine of a module"},
	{"log", "level", "[LEVEL]", 0, 1, 0, cmd_log_level, "log level, until the next reload"},
	{"log", "debug", "[SOURCE]...", 0, 16, 0, cmd_log_debug,
	 "sources whose debug messages are logged, or off"},
	{"doctor", NULL, "", 0, 0, 0, cmd_doctor, "check for common problems"},
	{"support", NULL, "[FILE|-]", 0, 1, 0, cmd_support,
	 "an archive of what a report of a fault needs"},
	{"cluster", NULL, "", 0, 0, 0, cmd_cluster,
	 "nodes of the cluster and their configurations, with kubectl"},
	{"version", NULL, "", 0, 0, 0, cmd_version, "versions of this program and of the daemon"},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

struct line {
	struct cli cli;
	const char *words[32];
	unsigned n_words;
	const char *module_dirs[MODULE_DIRS_MAX];
	bool help, version;
};

/* ---- help ------------------------------------------------------------------------------------ */

static void print_option(const struct option *o)
{
	char left[48];
	(void)snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? " " : "",
		       o->argument ? o->argument : "");
	printf("  %-20s %s\n", left, o->help);
}

static void print_command(const struct command *c)
{
	char left[64];
	(void)snprintf(left, sizeof left, "%s%s%s%s%s", c->name, c->sub ? " " : "",
		       c->sub ? c->sub : "", *c->arguments ? " " : "", c->arguments);
	printf("  %-28s %s\n", left, c->help);
}

static void help_all(void)
{
	printf("Usage: nri-rpctl [OPTION]... COMMAND\nShows and controls nri-rpd, the resource "
	       "policy daemon of this node.\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		print_command(&commands[i]);
	printf("\n");
	for (size_t i = 0; i < N_GLOBAL; i++)
		print_option(&globals[i]);
	printf("\nExit status: 0 success, 1 failed, 2 wrong usage, 3 nri-rpd is not running, 4 "
	       "degraded,\n78 wrong configuration. See nri-rpctl(1).\n");
}

static void help_command(const struct command *c)
{
	printf("Usage: nri-rpctl %s%s%s%s%s%s\n%c%s.\n", c->name, c->sub ? " " : "",
	       c->sub ? c->sub : "", c->options ? " [OPTION]..." : "", *c->arguments ? " " : "",
	       c->arguments,
	       c->help[0] >= 'a' && c->help[0] <= 'z' ? c->help[0] - 'a' + 'A' : c->help[0],
	       c->help + 1);
	if (c->options)
		printf("\n");
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (c->options & options[i].bit)
			print_option(&options[i]);
}

/* ---- the command line ------------------------------------------------------------------------ */

static int rpctl_wrong(const struct line *l, const char *what, const char *word,
		       const char *closest)
{
	complain(&l->cli, "%s%s%s%s%s%s%s%s\nTry `nri-rpctl --help`.", what, word ? " \"" : "",
		 word ? word : "", word ? "\"" : "", closest ? "; did you mean \"" : "",
		 closest && word && word[0] == '-' ? "--" : "", closest ? closest : "",
		 closest ? "\"?" : "");
	return -1;
}

static const char *closest_option(const char *word)
{
	const char *names[N_GLOBAL + N_OPTIONS];
	for (size_t i = 0; i < N_GLOBAL; i++)
		names[i] = globals[i].name;
	for (size_t i = 0; i < N_OPTIONS; i++)
		names[N_GLOBAL + i] = options[i].name;
	return str_closest(word, names, N_GLOBAL + N_OPTIONS);
}

static int take_global(struct line *l, unsigned which, const char *value)
{
	switch (which) {
	case GLOBAL_SOCKET:
		l->cli.socket = value;
		return 0;
	case GLOBAL_JSON:
		l->cli.json = true;
		return 0;
	case GLOBAL_CONFIG:
		l->cli.config = value;
		return 0;
	case GLOBAL_MODULE_DIR:
		if (l->cli.n_module_dirs == MODULE_DIRS_MAX)
			return rpctl_wrong(l, "too many --module-dir", NULL, NULL);
		l->module_dirs[l->cli.n_module_dirs++] = value;
		return 0;
	case GLOBAL_HOST_ROOT:
		l->cli.host_root = value;
		return 0;
	case GLOBAL_VERSION:
		l->version = true;
		return 0;
	default:
		l->help = true;
		return 0;
	}
}

/* Returns the option with that name, without "=value". */
static const struct option *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < N_GLOBAL; i++)
		if (strlen(globals[i].name) == len && strncmp(globals[i].name, name, len) == 0)
			return &globals[i];
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (strlen(options[i].name) == len && strncmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

/* Parses the option at argv[*at], which begins with "--". */
static int take_option(struct line *l, int argc, char **argv, int *at)
{
	const char *name = argv[*at] + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value++ - name) : strlen(name);
	const struct option *o = find_option(name, len);
	if (!o)
		return rpctl_wrong(l, "unknown option", argv[*at], closest_option(name));
	if (!o->argument && value)
		return rpctl_wrong(l, "this option takes no value:", argv[*at], NULL);
	if (o->argument && !value) {
		if (*at + 1 >= argc)
			return rpctl_wrong(l, "this option needs a value:", argv[*at], NULL);
		value = argv[++*at];
	}
	if (!o->bit)
		return take_global(l, (unsigned)(o - globals), value);
	l->cli.options |= o->bit;
	if (o->bit == OPT_SINCE)
		l->cli.since = value;
	if (o->bit == OPT_CONFIRM)
		l->cli.confirm = value;
	return 0;
}

static int rpctl_parse(struct line *l, int argc, char **argv)
{
	bool words_only = false;
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		if (!words_only && str_eq(arg, "--")) {
			words_only = true;
			continue;
		}
		if (!words_only && str_eq(arg, "-h")) {
			l->help = true;
			continue;
		}
		if (!words_only && str_has_prefix(arg, "--")) {
			if (take_option(l, argc, argv, &i))
				return -1;
			continue;
		}
		if (!words_only && arg[0] == '-' && arg[1])
			return rpctl_wrong(l, "unknown option", arg, NULL);
		if (l->n_words == sizeof l->words / sizeof l->words[0])
			return rpctl_wrong(l, "too many arguments", NULL, NULL);
		l->words[l->n_words++] = arg;
	}
	return 0;
}

static int unknown_command(const struct line *l, const char *first, const char *second)
{
	const char *names[N_COMMANDS], *known = NULL;
	unsigned n = 0;
	for (size_t i = 0; i < N_COMMANDS; i++) {
		bool same = str_eq(commands[i].name, first);
		known = same ? commands[i].name : known;
		if (!same && !second)
			names[n++] = commands[i].name;
	}
	if (!known) {
		n = 0;
		for (size_t i = 0; i < N_COMMANDS; i++)
			names[n++] = commands[i].name;
		return rpctl_wrong(l, "unknown command", first, str_closest(first, names, n));
	}
	n = 0;
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (str_eq(commands[i].name, first) && commands[i].sub)
			names[n++] = commands[i].sub;
	struct buf list = BUF_INIT;
	for (unsigned i = 0; i < n; i++)
		(void)buf_printf(&list, " %s", names[i]);
	const char *close = second ? str_closest(second, names, n) : NULL;
	complain(&l->cli, "%s needs a subcommand:%s%s%s%s", first, buf_text(&list),
		 close ? "; did you mean \"" : "", close ? close : "", close ? "\"?" : "");
	buf_fini(&list);
	return -1;
}

/* Finds a command of one or two words; *ret_used: the number of its words. */
static const struct command *find_command(const struct line *l, unsigned *ret_used)
{
	const struct command *single = NULL;
	for (size_t i = 0; i < N_COMMANDS; i++) {
		const struct command *c = &commands[i];
		if (!str_eq(c->name, l->words[0]))
			continue;
		if (!c->sub) {
			single = c;
		} else if (l->n_words > 1 && str_eq(c->sub, l->words[1])) {
			*ret_used = 2;
			return c;
		}
	}
	*ret_used = 1;
	return single;
}

static bool has_subs(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i].sub && str_eq(commands[i].name, name))
			return true;
	return false;
}

static int rpctl_check(const struct line *l, const struct command *c)
{
	unsigned strange = l->cli.options & ~c->options, n = l->cli.n_args;
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (strange & options[i].bit)
			return rpctl_wrong(l, "this command takes no", options[i].name, NULL);
	if (n >= c->min_args && n <= c->max_args)
		return 0;
	if (n && !c->sub && !c->max_args && has_subs(c->name))
		return unknown_command(l, c->name, l->cli.args[0]);
	complain(&l->cli, "usage: nri-rpctl %s%s%s%s%s", c->name, c->sub ? " " : "",
		 c->sub ? c->sub : "", *c->arguments ? " " : "", c->arguments);
	return -1;
}

static int rpctl_run(struct line *l)
{
	unsigned used = 0;
	const struct command *c = find_command(l, &used);
	if (!c) {
		(void)unknown_command(l, l->words[0], l->n_words > 1 ? l->words[1] : NULL);
		return CTL_USAGE;
	}
	if (l->help) {
		help_command(c);
		return CTL_OK;
	}
	struct term term;
	l->cli.args = l->words + used;
	l->cli.n_args = l->n_words - used;
	l->cli.module_dirs = l->module_dirs;
	if (rpctl_check(l, c))
		return CTL_USAGE;
	term_init(&term, STDOUT_FILENO);
	out_init(&l->cli.out, &term);
	int exit = c->run(&l->cli);
	int r = out_flush(&l->cli.out);
	if (r)
		fprintf(stderr, "nri-rpctl: writing the output: %s\n", strerror(-r));
	if (r && exit == CTL_OK)
		exit = CTL_FAILED;
	out_fini(&l->cli.out);
	return exit;
}

int main(int argc, char **argv)
{
	static const char *const version_words[] = {"version"};
	struct line l = {.cli = {.socket = getenv("NRI_RP_SOCKET")}};
	if (!l.cli.socket || !*l.cli.socket)
		l.cli.socket = CTL_DEFAULT_SOCKET;
	(void)signal(SIGPIPE, SIG_DFL);
	/* find --json first, so that errors in the command line are JSON, too */
	for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++)
		l.cli.json = l.cli.json || str_eq(argv[i], "--json");
	if (rpctl_parse(&l, argc, argv))
		return CTL_USAGE;
	if (l.n_words && str_eq(l.words[0], "help")) {
		l.help = true;
		memmove(l.words, l.words + 1, --l.n_words * sizeof l.words[0]);
	}
	if (l.version && !l.help) {
		l.words[0] = version_words[0];
		l.n_words = 1;
	}
	if (!l.n_words) {
		if (l.help) {
			help_all();
			return CTL_OK;
		}
		(void)rpctl_wrong(&l, "missing command", NULL, NULL);
		return CTL_USAGE;
	}
	return rpctl_run(&l);
}
