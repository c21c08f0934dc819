/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp-sim: the command line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/machines/machine.h"
#include "core/nri-rp-sim/serve.h"
#include "core/lib/util/cmdline.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define EXIT_USAGE 2

enum {
	OPT_MACHINE = 256,
	OPT_DAEMON,
	OPT_MODULE_DIR,
	OPT_WORK,
	OPT_NRI,
	OPT_RUNTIME,
	OPT_CGROUPS,
	OPT_SYNC_PARTS,
	OPT_SEED,
	OPT_SETTLE,
	OPT_JSON,
	OPT_KEEP
};

static const struct cmdline_option table[] = {
	{{"machine", required_argument, NULL, OPT_MACHINE},
	 "M",
	 "a machine's name, FILE.yaml, or a folder with sys/ and proc/"},
	{{"daemon", required_argument, NULL, OPT_DAEMON},
	 "COMMAND",
	 "instead of the nri-rpd beside this program; {config} {socket} {root} {state} {control} "
	 "{work} stand for files"},
	{{"module-dir", required_argument, NULL, OPT_MODULE_DIR},
	 "DIR",
	 "where nri-rpd looks for modules, such as the folder of your own MODULE.so, instead of "
	 "those beside this program; may be given several times"},
	{{"nri", required_argument, NULL, OPT_NRI},
	 "0.N",
	 "the release of NRI to imitate, 0.3 to 0.12"},
	{{"runtime", required_argument, NULL, OPT_RUNTIME}, "NAME", "containerd or cri-o"},
	{{"cgroups", required_argument, NULL, OPT_CGROUPS}, "NAME", "systemd or cgroupfs"},
	{{"sync-parts", required_argument, NULL, OPT_SYNC_PARTS},
	 "N",
	 "synchronize in parts of N pods and containers"},
	{{"seed", required_argument, NULL, OPT_SEED}, "N", "for the ids of pods and containers"},
	{{"settle", required_argument, NULL, OPT_SETTLE},
	 "TIME",
	 "how long an expectation may take to come true, default 2s"},
	{{"work", required_argument, NULL, OPT_WORK}, "DIR", "work there, and keep what is there"},
	{{"keep", no_argument, NULL, OPT_KEEP}, NULL, "keep the temporary folder"},
	{{"json", no_argument, NULL, OPT_JSON}, NULL, "play: the outcome as JSON"},
	{{"verbose", no_argument, NULL, 'v'},
	 NULL,
	 "play: show each step and the map of the machine after it"},
	{{"version", no_argument, NULL, CMDLINE_VERSION}, NULL, "print the version and exit"},
	{{"help", no_argument, NULL, CMDLINE_HELP}, NULL, "print this and exit"},
};
static int sim_usage(const char *what)
{
	(void)fprintf(stderr, "nri-rp-sim: %s\nTry 'nri-rp-sim --help'.\n", what);
	return EXIT_USAGE;
}

/* ---- options --------------------------------------------------------------------------------- */

static int sim_wrong(const char *what, const char *argument)
{
	(void)fprintf(stderr, "nri-rp-sim: %s: %s. ", argument, what);
	return -1;
}

static int take_number(struct sim_options *o, int opt, const char *argument)
{
	uint64_t number;
	int64_t ms;
	if (opt == OPT_SETTLE) {
		if (str_to_ms(argument, &ms) || ms < 0)
			return sim_wrong("expected a time, as in 2s", argument);
		o->settle_ms = (uint64_t)ms;
		return 0;
	}
	if (str_to_u64(argument, &number))
		return sim_wrong("expected a number", argument);
	if (opt == OPT_SEED)
		o->seed = number;
	else
		o->sync_parts = number > UINT32_MAX ? UINT32_MAX : (unsigned)number;
	return 0;
}

static int take(void *to, int opt, const char *argument)
{
	struct sim_options *o = to;
	switch (opt) {
	case OPT_MACHINE:
		o->machine = argument;
		return 0;
	case OPT_DAEMON:
		o->daemon = argument;
		return 0;
	case OPT_WORK:
		o->work = argument;
		return 0;
	case OPT_NRI:
		o->nri = argument;
		return 0;
	case OPT_RUNTIME:
		o->runtime = argument;
		return 0;
	case OPT_CGROUPS:
		o->cgroups = argument;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_KEEP:
		o->keep = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case OPT_MODULE_DIR:
		if (o->n_module_dirs == SIM_MODULE_DIRS_MAX)
			return sim_wrong("too many folders of modules", argument);
		o->module_dirs[o->n_module_dirs++] = argument;
		return 0;
	case OPT_SYNC_PARTS:
	case OPT_SEED:
	case OPT_SETTLE:
		return take_number(o, opt, argument);
	default:
		return -1;
	}
}

static const struct cmdline line = {
	.program = "nri-rp-sim",
	.version = NRI_RP_VERSION,
	.before = "Usage: nri-rp-sim play [OPTION]… SCENARIO.yaml…\n"
		  "       nri-rp-sim serve [OPTION]…\n"
		  "       nri-rp-sim machine MACHINE DIR\n"
		  "       nri-rp-sim machines\n"
		  "A container runtime with a machine to go with it, for a real nri-rpd.\n\n"
		  "  play      runs scenarios, each with an nri-rpd of its own\n"
		  "  serve     takes commands on standard input, a JSON object a line\n"
		  "  machine   writes a machine's files below sys/ and proc/ into a folder\n"
		  "  machines  lists the machines that it knows\n",
	.after = "In a scenario, reject: and reject-update: expect a refusal, and error: REGEX "
		 "among\n"
		 "their keys the words of it. Malformed steps fail before the first one runs.\n\n"
		 "Exit status: 0 all passed, 1 something failed, 2 wrong usage. See "
		 "nri-rp-sim(1).\n",
	.options = table,
	.n_options = sizeof table / sizeof *table,
	.letters = "v",
	.column = 22,
	.words = true,
	.take = take,
};

/* ---- machines -------------------------------------------------------------------------------- */

static int list_machines(void)
{
	for (unsigned i = 0; i < n_shipped_machines; i++) {
		struct err err = ERR_INIT;
		json_t *d;
		if (machine_shipped(shipped_machines[i].name, &d, &err)) {
			(void)fprintf(stderr, "nri-rp-sim: %s\n", err.text);
			return EXIT_FAILURE;
		}
		const char *about = json_string_value(json_object_get(d, "about"));
		printf("%-12s %s\n", shipped_machines[i].name, about ? about : "");
		json_decref(d);
	}
	return EXIT_SUCCESS;
}

static int write_machine(const char *name, const char *dir)
{
	struct err err = ERR_INIT;
	struct machine m;
	_json_ json_t *which = json_string(name), *d = NULL;
	int r = machine_describe(which, &d, &err);
	if (r == -EISDIR)
		r = err_set(&err, r, "%s is a tree already", name);
	if (!r)
		r = machine_from(d, &m, &err);
	if (!r) {
		r = machine_write(&m, dir, &err);
		machine_fini(&m);
	}
	if (r)
		(void)fprintf(stderr, "nri-rp-sim: %s\n", err_text(&err, r));
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct sim_options options = {.seed = 1, .settle_ms = 2000};
	log_init("nri-rp-sim");
	enum options_result r = cmdline_parse(&line, argc, argv, &options);
	if (r != OPTIONS_RUN)
		return r == OPTIONS_DONE ? EXIT_SUCCESS : EXIT_USAGE;
	int n = argc - optind;
	const char *command = n ? argv[optind] : "";
	(void)signal(SIGPIPE, SIG_IGN);
	if (str_eq(command, "machines") && n == 1)
		return list_machines();
	if (str_eq(command, "machine") && n == 3)
		return write_machine(argv[optind + 1], argv[optind + 2]);
	if (str_eq(command, "serve") && n == 1)
		return serve(&options);
	if (str_eq(command, "play") && n > 1)
		return play(&options, argv + optind + 1, n - 1);
	return sim_usage(n ? "wrong command, or wrong arguments for it" : "a command is needed");
}
