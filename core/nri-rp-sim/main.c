/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp-sim: the command line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/lib/machines/machine.h"
#include "core/lib/machines/tree.h"
#include "core/lib/machines/shipped.h"
#include "core/nri-rp-sim/serve.h"
#include "core/nri-rp-sim/play.h"
#include "core/lib/util/cmdline.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

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

static int sim_take_settle(void *to, const struct cmdline_option *option, const char *argument)
{
	int64_t ms;
	if (str_to_ms(argument, &ms) || ms < 0)
		return sim_wrong("expected a time, as in 2s", argument);
	*(uint64_t *)cmdline_member(to, option) = (uint64_t)ms;
	return 0;
}

static int sim_take_number(void *to, const struct cmdline_option *option, const char *argument)
{
	if (str_to_u64(argument, cmdline_member(to, option)))
		return sim_wrong("expected a number", argument);
	return 0;
}

static int sim_take_module_dir(void *to, const struct cmdline_option *option, const char *argument)
{
	struct sim_options *o = to;
	if (o->n_module_dirs == SIM_MODULE_DIRS_MAX)
		return sim_wrong("too many folders of modules", argument);
	o->module_dirs[o->n_module_dirs++] = argument;
	return 0;
}

#define OPTION_AT(member) offsetof(struct sim_options, member)

static const struct cmdline_option table[] = {
	OPTION("machine", "M", "a machine's name, FILE.yaml, or a folder with sys/ and proc/",
	       OPTION_TEXT(machine)),
	OPTION("daemon", "COMMAND",
	       "command to run instead of the nri-rpd in this program's folder; {config} {socket} "
	       "{root} {state} {control} {work} stand for files",
	       OPTION_TEXT(daemon)),
	OPTION("module-dir", "DIR",
	       "folder of modules, such as that of your own MODULE.so, instead of the folders "
	       "beside this program; may be repeated",
	       .take = sim_take_module_dir),
	OPTION("nri", "0.N", "the release of NRI to imitate, 0.3 to 0.12", OPTION_TEXT(nri)),
	OPTION("runtime", "NAME", "containerd or cri-o", OPTION_TEXT(runtime)),
	OPTION("cgroups", "NAME", "systemd or cgroupfs", OPTION_TEXT(cgroups)),
	OPTION("sync-parts", "N", "synchronize in parts of N pods and containers",
	       OPTION_TAKE(sim_take_number, sync_parts)),
	OPTION("seed", "N", "seed for the ids of pods and containers",
	       OPTION_TAKE(sim_take_number, seed)),
	OPTION("settle", "TIME", "time until an expectation must hold, default 2s",
	       OPTION_TAKE(sim_take_settle, settle_ms)),
	OPTION("work", "DIR", "work in that folder, and keep its files", OPTION_TEXT(work)),
	OPTION("keep", NULL, "keep the temporary folder", OPTION_FLAG(keep)),
	OPTION("map", "ADDRESS",
	       "play: serve the live map there, as in 127.0.0.1:8891, until Ctrl-C after the last "
	       "step",
	       OPTION_TEXT(map)),
	OPTION("json", NULL, "play: the outcome as JSON", OPTION_FLAG(json)),
	OPTION("verbose", NULL, "play: show each step and the map of the machine after it",
	       OPTION_FLAG(verbose), .letter = 'v'),
};

static const struct cmdline line = {
	.program = "nri-rp-sim",
	.version = NRI_RP_VERSION,
	.before = "Usage: nri-rp-sim play [OPTION]… SCENARIO.yaml…\n       nri-rp-sim serve "
		  "[OPTION]…\n       nri-rp-sim machine MACHINE DIR\n       nri-rp-sim "
		  "machines\nSimulates a container runtime and a machine for a real nri-rpd.\n\n  "
		  "play      runs scenarios, each with a separate nri-rpd\n  serve     reads "
		  "commands from standard input, a JSON object per line\n  machine   writes a "
		  "machine's files below sys/ and proc/ into a folder\n  machines  lists the "
		  "built-in machines\n",
	.after = "In a scenario, reject: and reject-update: expect a refusal, and their key error: "
		 "REGEX\nits text. Malformed steps fail before the first step runs.\n\nExit "
		 "status: 0 all passed, 1 something failed, 2 wrong usage. See nri-rp-sim(1).\n",
	.options = table,
	.n_options = sizeof table / sizeof *table,
	.column = 22,
	.words = true,
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
		r = err_set(&err, r, "%s already contains a machine", name);
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
		return r;
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
	return sim_usage(n ? "unknown command, or wrong arguments" : "missing command");
}
