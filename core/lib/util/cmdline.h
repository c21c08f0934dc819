/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines with long options from a table, and prints the help from that table. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

enum cmdline_kind {
	CMDLINE_TEXT, /* member: const char *, the argument */
	CMDLINE_FLAG, /* member: bool, set to true */
	CMDLINE_LEVEL, /* member: enum log_level */
};

/* An option and the member of the program's options that it sets. */
struct cmdline_option {
	const char *name, *argument, *help; /* argument NULL: the option has none */
	enum cmdline_kind kind;
	size_t at; /* offset of the member */
	size_t mark; /* offset of a bool that every use of the option sets; 0: none */
	char letter; /* short form of the option; 0: none */
	/* Parses the argument and sets the option's member of the options `to`, for types without
	 * an enum cmdline_kind. Returns 0, or -1 after printing why the argument is wrong. NULL:
	 * `kind` determines how the member is set. */
	int (*take)(void *to, const struct cmdline_option *o, const char *argument);
};

#define OPTION(name_, argument_, help_, ...)                                                       \
	{                                                                                          \
		.name = (name_), .argument = (argument_), .help = (help_), __VA_ARGS__             \
	}
/* The kind and the member; a file defines OPTION_AT(member) for the struct of its options. */
#define CMDLINE_AS(kind_, at_) .kind = (kind_), .at = (at_)
#define OPTION_TEXT(member) CMDLINE_AS(CMDLINE_TEXT, OPTION_AT(member))
#define OPTION_FLAG(member) CMDLINE_AS(CMDLINE_FLAG, OPTION_AT(member))
#define OPTION_LEVEL(member) CMDLINE_AS(CMDLINE_LEVEL, OPTION_AT(member))
#define OPTION_TAKE(take_, member) .take = (take_), .at = OPTION_AT(member)

#define CMDLINE_OPTIONS_MAX 32u

/* --version and --help are added to the table. */
struct cmdline {
	const char *program, *version;
	const char *before, *after; /* texts of the help before and after the options */
	const struct cmdline_option *options;
	unsigned n_options; /* CMDLINE_OPTIONS_MAX at most */
	int column; /* column of the explanations in the help; 0: default */
	bool words; /* arguments other than options are allowed: argv from optind on */
};

#define EXIT_USAGE 2

/* OPTIONS_RUN, or the exit status of a program that has nothing more to do. */
enum options_result { OPTIONS_RUN = -1, OPTIONS_DONE = 0, OPTIONS_WRONG = EXIT_USAGE };

/* Parses the command line. OPTIONS_DONE: help or version was printed. OPTIONS_WRONG: an error was
 * printed. */
enum options_result cmdline_parse(const struct cmdline *c, int argc, char **argv, void *to);
/* Returns the member that the option sets. */
static inline void *cmdline_member(void *to, const struct cmdline_option *o)
{
	return (char *)to + o->at;
}
