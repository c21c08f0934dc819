/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines with long options from a table, and prints the help from that table. */
#ifndef UTIL_CMDLINE_H
#define UTIL_CMDLINE_H

#include <getopt.h>
#include <stdbool.h>

struct cmdline_option {
	struct option option;
	const char *argument, *help; /* argument NULL: the option has none */
};

#define CMDLINE_OPTIONS_MAX 32u
enum { CMDLINE_VERSION = 254, CMDLINE_HELP = 255 }; /* table values of these two options */

struct cmdline {
	const char *program, *version;
	const char *before, *after; /* texts of the help before and after the options */
	const struct cmdline_option *options;
	unsigned n_options; /* CMDLINE_OPTIONS_MAX at most */
	const char *letters; /* short forms, as of getopt(3); NULL: none */
	int column; /* column of the explanations in the help; 0: default */
	bool words; /* arguments other than options are allowed: argv from optind on */
	/* Receives an option. Returns 0, or -1 after printing why its argument is wrong. */
	int (*take)(void *to, int option, const char *argument);
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

/* Parses the command line. OPTIONS_DONE: help or version was printed. OPTIONS_WRONG: an error was
 * printed. */
enum options_result cmdline_parse(const struct cmdline *c, int argc, char **argv, void *to);

#endif
