/* SPDX-License-Identifier: Apache-2.0 */
/* Parses options with getopt_long and prints the help. */
#include "core/lib/util/cmdline.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#define COLUMN 24 /* column of the help texts of a program that runs as a service */

static void print_help(const struct cmdline *c)
{
	printf("%s\n", c->before);
	for (unsigned i = 0; i < c->n_options; i++) {
		const struct cmdline_option *o = &c->options[i];
		char left[40];
		(void)snprintf(left, sizeof left, "--%s%s%s", o->option.name,
			       o->argument ? " " : "", o->argument ? o->argument : "");
		printf("  %-*s %s\n", c->column ? c->column : COLUMN, left, o->help);
	}
	printf("\n%s", c->after);
}

static enum options_result cmdline_wrong(const struct cmdline *c)
{
	(void)fprintf(stderr, "Try '%s --help'.\n", c->program);
	return OPTIONS_WRONG;
}

enum options_result cmdline_parse(const struct cmdline *c, int argc, char **argv, void *to)
{
	struct option longs[CMDLINE_OPTIONS_MAX + 1] = {0};
	int opt;
	assert(c->n_options <= CMDLINE_OPTIONS_MAX);
	argv[0] = (char *)(uintptr_t)c->program; /* getopt begins its messages with this name */
	for (unsigned i = 0; i < c->n_options; i++)
		longs[i] = c->options[i].option;
	while ((opt = getopt_long(argc, argv, c->letters ? c->letters : "", longs, NULL)) != -1) {
		if (opt == CMDLINE_HELP) {
			print_help(c);
			return OPTIONS_DONE;
		}
		if (opt == CMDLINE_VERSION) {
			printf("%s %s\n", c->program, c->version);
			return OPTIONS_DONE;
		}
		if (opt == '?' || c->take(to, opt, optarg))
			return cmdline_wrong(c);
	}
	if (optind == argc || c->words)
		return OPTIONS_RUN;
	(void)fprintf(stderr, "%s: unexpected argument \"%s\". ", c->program, argv[optind]);
	return cmdline_wrong(c);
}
