/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of programs that take long options: a table says what there is, for the help as
 * well. */
#ifndef UTIL_CMDLINE_H
#define UTIL_CMDLINE_H

#include <getopt.h>
#include <stdbool.h>

struct cmdline_option {
	struct option option;
	const char *argument, *help; /* argument NULL: it takes none */
};

#define CMDLINE_OPTIONS_MAX 32u
enum { CMDLINE_VERSION = 254, CMDLINE_HELP = 255 }; /* the values of these two in a table */

struct cmdline {
	const char *program, *version;
	const char *before, *after; /* what the help says before and after the options */
	const struct cmdline_option *options;
	unsigned n_options; /* CMDLINE_OPTIONS_MAX at most */
	const char *letters; /* short forms, as of getopt(3); NULL: none */
	int column; /* of the explanations in the help; 0: the usual one */
	bool words; /* words other than options are allowed: argv from optind on */
	/* An option that was given. 0, or -1 when its argument is wrong, which it has said. */
	int (*take)(void *to, int option, const char *argument);
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

/* OPTIONS_DONE: help or version was printed. OPTIONS_WRONG: a message was printed. */
enum options_result cmdline_parse(const struct cmdline *c, int argc, char **argv, void *to);

#endif
