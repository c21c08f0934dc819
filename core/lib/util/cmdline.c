/* SPDX-License-Identifier: Apache-2.0 */
/* Parses options with getopt_long and prints the help. */
#include "core/lib/util/cmdline.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "core/lib/util/log.h"

#define COLUMN 24 /* column of the help texts of a program that runs as a service */
#define FIRST 256 /* getopt's value of the table's first option */
enum { VERSION = 254, HELP = 255 };

static void print_option(const struct cmdline *c, const char *name, const char *argument,
			 const char *help)
{
	char left[40];
	(void)snprintf(left, sizeof left, "--%s%s%s", name, argument ? " " : "",
		       argument ? argument : "");
	printf("  %-*s %s\n", c->column ? c->column : COLUMN, left, help);
}

static void print_help(const struct cmdline *c)
{
	printf("%s\n", c->before);
	for (unsigned i = 0; i < c->n_options; i++)
		print_option(c, c->options[i].name, c->options[i].argument, c->options[i].help);
	print_option(c, "version", NULL, "print the version and exit");
	print_option(c, "help", NULL, "print this help and exit");
	printf("\n%s", c->after);
}

static enum options_result cmdline_wrong(const struct cmdline *c)
{
	(void)fprintf(stderr, "Try '%s --help'.\n", c->program);
	return OPTIONS_WRONG;
}

static int cmdline_take(const struct cmdline *c, const struct cmdline_option *o,
			const char *argument, void *to)
{
	void *member = cmdline_member(to, o);
	if (o->mark)
		*(bool *)((char *)to + o->mark) = true;
	if (o->take)
		return o->take(to, o, argument);
	if (o->kind == CMDLINE_FLAG)
		*(bool *)member = true;
	else if (o->kind == CMDLINE_TEXT)
		*(const char **)member = argument;
	else if (log_level_from_name(argument, member))
		return fprintf(stderr,
			       "%s: --%s %s: expected error, warning, notice, info or debug\n",
			       c->program, o->name, argument),
		       -1;
	return 0;
}

/* Fills the tables of getopt_long. */
static void cmdline_tables(const struct cmdline *c, struct option *longs, char *letters)
{
	assert(c->n_options <= CMDLINE_OPTIONS_MAX);
	for (unsigned i = 0; i < c->n_options; i++) {
		const struct cmdline_option *o = &c->options[i];
		*longs++ = (struct option){o->name, o->argument ? required_argument : no_argument,
					   NULL, o->letter ? o->letter : FIRST + (int)i};
		if (o->letter)
			*letters++ = o->letter;
	}
	*longs++ = (struct option){"version", no_argument, NULL, VERSION};
	*longs = (struct option){"help", no_argument, NULL, HELP};
}

static const struct cmdline_option *cmdline_found(const struct cmdline *c, int opt)
{
	for (unsigned i = 0; i < c->n_options; i++)
		if (opt == FIRST + (int)i || opt == c->options[i].letter)
			return &c->options[i];
	return NULL;
}

enum options_result cmdline_parse(const struct cmdline *c, int argc, char **argv, void *to)
{
	struct option longs[CMDLINE_OPTIONS_MAX + 3] = {0};
	char letters[CMDLINE_OPTIONS_MAX + 1] = "";
	int opt;
	cmdline_tables(c, longs, letters);
	argv[0] = (char *)(uintptr_t)c->program; /* getopt begins its messages with this name */
	while ((opt = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (opt == HELP) {
			print_help(c);
			return OPTIONS_DONE;
		}
		if (opt == VERSION) {
			printf("%s %s\n", c->program, c->version);
			return OPTIONS_DONE;
		}
		const struct cmdline_option *o = cmdline_found(c, opt);
		if (!o || cmdline_take(c, o, optarg, to))
			return cmdline_wrong(c);
	}
	if (optind == argc || c->words)
		return OPTIONS_RUN;
	(void)fprintf(stderr, "%s: unexpected argument \"%s\". ", c->program, argv[optind]);
	return cmdline_wrong(c);
}
