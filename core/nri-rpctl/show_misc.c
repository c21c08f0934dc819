/* SPDX-License-Identifier: Apache-2.0 */
/* Output of events, results of configurations, modules, log levels, and findings. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/str.h"

/* ---- lists ----------------------------------------------------------------------------------- */

void show_join(struct buf *ret, const json_t *list)
{
	const json_t *item;
	size_t i;
	json_array_foreach(list, i, item)
	{
		const char *comma = i ? ", " : "";
		if (json_is_integer(item))
			(void)buf_printf(ret, "%s%" JSON_INTEGER_FORMAT, comma,
					 json_integer_value(item));
		else
			(void)buf_printf(ret, "%s%s", comma, json_string_value(item));
	}
}

void show_list(struct table *t, enum style style, const json_t *list)
{
	struct buf text = BUF_INIT;
	show_join(&text, list);
	table_add(t, style, buf_text(&text));
	buf_fini(&text);
}

/* ---- events ---------------------------------------------------------------------------------- */

#define KIND_WIDTH 13u

void show_event(struct out *o, const json_t *e)
{
	static const struct {
		const char *kind;
		enum style style;
	} styles[] = {
		{"runtime", BLUE}, {"config", MAGENTA},	 {"created", GREEN},	 {"refused", RED},
		{"moved", CYAN},   {"degraded", YELLOW}, {"update-failed", RED}, {"module", RED},
		{"machine", BLUE}, {"pressure", YELLOW},
	};
	const char *kind = js(e, "kind");
	enum style style = DIM;
	char when[UNIT_MAX], number[UNIT_MAX];
	for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++)
		if (str_eq(styles[i].kind, kind))
			style = styles[i].style;
	(void)snprintf(number, sizeof number, "%6" PRId64 "  ", ji(e, "seq"));
	out_styled(o, DIM, number);
	out_text(o, unit_time(js(e, "time"), when));
	out_put(o, "  ");
	out_styled(o, style, kind);
	unsigned width = text_width(kind), column = text_width(number) + text_width(when) + 2;
	out_pad(o, width < KIND_WIDTH ? KIND_WIDTH - width + 2 : 2);
	column += (width < KIND_WIDTH ? KIND_WIDTH : width) + 2;
	out_wrap(o, js(e, "text"), column, column);
	out_put(o, "\n");
}

/* ---- configurations -------------------------------------------------------------------------- */

#define SOURCE_WIDTH_MAX 400u /* largest part of a line that is shown, in bytes */

/* Shows the line of a file with a caret below the column. */
static void show_source(struct out *o, const char *path, unsigned line, unsigned column)
{
	char text[SOURCE_WIDTH_MAX];
	unsigned at = 0;
	struct stat st;
	FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
	while (file && at < line && fgets(text, sizeof text, file))
		at += strchr(text, '\n') || feof(file) || at + 1 == line;
	if (file)
		(void)fclose(file);
	text[at == line ? strcspn(text, "\n") : 0] = '\0';
	if (at != line || !column || column > strlen(text) + 1)
		return;
	for (char *tab = text; (tab = strchr(tab, '\t'));)
		*tab = ' ';
	out_printf(o, "%8u | ", line);
	out_text(o, text);
	out_printf(o, "\n%8s | ", "");
	text[utf8_cut(text, column - 1)] = '\0';
	out_pad(o, text_width(text));
	out_styled(o, RED, "^");
	out_put(o, "\n");
}

void show_problem(struct out *o, const char *text, unsigned column, unsigned indent)
{
	char path[PATH_MAX];
	unsigned line, at;
	int end = 0;
	out_wrap(o, text, column, indent);
	out_put(o, "\n");
	const size_t len = strcspn(text, ":");
	if (!text[len] || len >= sizeof path ||
	    sscanf(text + len, ":%u:%u: %n", &line, &at, &end) != 2 || !end)
		return;
	memcpy(path, text, len);
	path[len] = '\0';
	show_source(o, path, line, at);
}

static void show_lines(struct out *o, const json_t *lines, const char *title, enum style style)
{
	const json_t *line;
	size_t i;
	if (!json_array_size(lines))
		return;
	if (title)
		out_heading(o, title);
	json_array_foreach(lines, i, line)
	{
		out_put(o, "  ");
		if (style != PLAIN)
			out_style(o, style);
		show_problem(o, json_string_value(line), 2, 4);
		if (style != PLAIN)
			out_style(o, PLAIN);
	}
}

static void show_moves(struct out *o, const json_t *moves)
{
	const struct column columns[] = {
		{.title = "Container", .flex = true},
		{.title = "CPUs", .flex = true},
		{.title = o->term.utf8 ? "→ CPUs" : "-> CPUs", .flex = true},
		{.title = "Mems", .flex = true, .drop = 2},
		{.title = o->term.utf8 ? "→ Mems" : "-> Mems", .flex = true, .drop = 2},
		{.title = "Note", .flex = true, .drop = 3},
	};
	static const char *const keys[] = {"container", "from_cpus", "to_cpus",
					   "from_mems", "to_mems",   "note"};
	const json_t *m;
	size_t i;
	struct table *t = table_new(&o->term, columns, 6);
	json_array_foreach(moves, i, m)
	{
		/* a container that does not exist yet comes with the reasons of its placement */
		const bool is_new = json_object_get(m, "why") != NULL;
		for (size_t k = 0; k < 6; k++) {
			const bool anywhere = k && k < 5 && !(is_new && (k == 1 || k == 3));
			table_add(t, k == 5 ? YELLOW : PLAIN,
				  anywhere && !*js(m, keys[k]) ? "any" : js(m, keys[k]));
		}
	}
	if (table_rows(t))
		out_put(o, "\n");
	table_end(t, o);
}

/* Counts containers whose CPUs or memory nodes change; others are listed only for their notes. */
static size_t count_moved(const json_t *moves)
{
	const json_t *m;
	size_t i, n = 0;
	json_array_foreach(moves, i, m)
	{
		n += jb(m, "moved");
	}
	return n;
}

static void show_note(struct out *o, const char *text)
{
	out_style(o, YELLOW);
	out_wrap(o, text, 0, 0);
	out_style(o, PLAIN);
	out_put(o, "\n");
}

static void show_refusal(struct out *o, const json_t *doc)
{
	const json_t *problems = json_object_get(doc, "problems");
	out_styled(o, RED, str_eq(js(doc, "outcome"), "refused") ? "Refused" : "Failed");
	out_put(o, json_array_size(problems) ? ":\n" : ": ");
	if (json_array_size(problems))
		show_lines(o, problems, NULL, PLAIN);
	/* The error usually repeats the first problem. */
	const char *error = js(doc, "error"),
		   *first = json_string_value(json_array_get(problems, 0));
	if (first && strncmp(error, first, strlen(first)) == 0)
		return;
	if (first)
		out_put(o, "  ");
	show_problem(o, error, 9, 2);
}

void show_outcome(struct out *o, const json_t *doc, const char *verb)
{
	const json_t *moves = json_object_get(doc, "moves");
	const char *outcome = js(doc, "outcome");
	char a[UNIT_MAX], b[UNIT_MAX];
	if (str_eq(outcome, "refused") || str_eq(outcome, "failed")) {
		show_refusal(o, doc);
		return;
	}
	out_styled(o, GREEN, verb);
	if (*js(doc, "restores"))
		out_printf(o, " the configuration of %s", unit_time(js(doc, "restores"), a));
	if (str_eq(outcome, "in force"))
		out_printf(o, ", generation %" PRId64, ji(doc, "generation"));
	const size_t moved = count_moved(moves), others = json_array_size(moves) - moved;
	out_printf(o, "; %s%s", unit_count(moved, "container", "containers", a),
		   str_eq(outcome, "in force") ? " moved" : " would move");
	if (others)
		out_printf(o, ", %s degraded in place",
			   unit_count(others, "container", "containers", a));
	out_printf(o, " (%s)\n", unit_us((uint64_t)ji(doc, "took_us"), b));
	if (ji(doc, "unconfirmed_s")) {
		out_style(o, YELLOW);
		out_printf(o,
			   "Will be undone in %" PRId64 " s; run `nri-rpctl confirm` to keep it\n",
			   ji(doc, "unconfirmed_s"));
		out_style(o, PLAIN);
	}
	show_lines(o, json_object_get(doc, "problems"), "Warnings", YELLOW);
	show_lines(o, json_object_get(doc, "changes"), "Changes", PLAIN);
	if (jb(doc, "restart_needed"))
		show_note(o, "Some changes only take effect after a restart of nri-rpd.");
	show_lines(o, json_object_get(doc, "classes"), "Classes and limits", PLAIN);
	show_moves(o, moves);
}

/* Returns true for names that differ only in numbers, such as "default/shop-3/c" and
 * "default/shop-4/c". */
static bool same_but_numbers(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b || !*a)
			return *a == *b;
	}
}

/* Shows the reasons of moves; of several replicas, the reasons of the first replica only. */
static void show_reasons(struct out *o, const json_t *moves)
{
	const json_t *m;
	const char *last = "";
	size_t i;
	json_array_foreach(moves, i, m)
	{
		const json_t *why = json_object_get(m, "why");
		if (!json_array_size(why) || same_but_numbers(js(m, "container"), last))
			continue;
		last = js(m, "container");
		out_put(o, "\n");
		show_lines(o, why, js(m, "container"), PLAIN);
	}
}

void show_tried(struct out *o, const json_t *doc)
{
	const json_t *moves = json_object_get(doc, "moves"),
		     *notes = json_object_get(doc, "problems");
	bool accepted = str_eq(js(doc, "outcome"), "accepted");
	if (!accepted) {
		out_styled(o, RED, str_eq(js(doc, "outcome"), "refused") ? "Refused" : "Failed");
		out_put(o, ": ");
		out_wrap(o, js(doc, "error"), 9, 2);
		out_put(o, "\n");
	}
	show_lines(o, notes, accepted ? NULL : "Also", YELLOW);
	if (!accepted && !json_array_size(moves))
		return;
	if (!accepted)
		out_put(o, "\n");
	out_styled(o, GREEN, accepted ? "Would be placed" : "Would be placed before it");
	out_put(o, ":\n");
	show_moves(o, moves);
	show_reasons(o, moves);
}

/* ---- modules --------------------------------------------------------------------------------- */

static const char *module_state(const json_t *m, enum style *ret_style)
{
	const char *stale = js(m, "stale");
	*ret_style = YELLOW;
	if (jb(m, "quarantined")) {
		*ret_style = RED;
		return "quarantined";
	}
	if (jb(m, "hidden"))
		return "hidden";
	if (*js(m, "error"))
		return "unusable";
	if (str_eq(stale, "changed"))
		return jb(m, "in_use") ? "in use, replaced on disk" : "loaded, replaced on disk";
	if (str_eq(stale, "gone"))
		return jb(m, "in_use") ? "in use, file gone" : "loaded, file gone";
	*ret_style = jb(m, "in_use") ? GREEN : PLAIN;
	if (jb(m, "in_use"))
		return "in use";
	return jb(m, "loaded") ? "loaded" : "installed";
}

static void show_deaths(struct out *o, const json_t *deaths)
{
	const json_t *d;
	size_t i;
	if (!json_array_size(deaths))
		return;
	out_put(o, "\n");
	out_heading(o, "Crashes inside modules");
	json_array_foreach(deaths, i, d)
	{
		char when[UNIT_MAX];
		const char *object = js(d, "object");
		out_put(o, "  ");
		out_text(o, unit_time(js(d, "time"), when));
		out_put(o, "  ");
		out_text(o, js(d, "module"));
		out_printf(o, " %s in ", js(d, "cause"));
		out_text(o, js(d, "call"));
		if (*object)
			out_put(o, " of ");
		out_text(o, object);
		if (json_is_false(json_object_get(d, "counted")))
			out_put(o, " (not counted)");
		out_put(o, "\n");
	}
}

void show_modules(struct out *o, const json_t *doc)
{
	static const struct column columns[] = {
		{.title = "Module"},
		{.title = "Version", .drop = 2},
		{.title = "ABI", .drop = 4},
		{.title = "Kind", .drop = 1},
		{.title = "State"},
		{.title = "Deaths", .right = true, .drop = 4},
		{.title = "Path", .flex = true, .drop = 3},
	};
	const json_t *list = json_object_get(doc, "modules"), *m;
	size_t i;
	struct table *t = table_new(&o->term, columns, 7);
	json_array_foreach(list, i, m)
	{
		enum style style;
		const char *state = module_state(m, &style);
		table_add(t, BOLD, js(m, "name"));
		table_add(t, PLAIN, js(m, "version"));
		table_add(t, PLAIN, js(m, "abi"));
		show_list(t, PLAIN, json_object_get(m, "kinds"));
		table_add(t, style, state);
		table_addf(t, ji(m, "deaths") ? RED : DIM, "%" PRId64, ji(m, "deaths"));
		table_add(t, DIM, js(m, "path"));
	}
	if (!table_rows(t))
		out_put(o, "No modules are installed.\n");
	table_end(t, o);
	json_array_foreach(list, i, m)
	{
		if (*js(m, "error"))
			out_item(o, YELLOW, "! ", js(m, "error"), 4);
	}
	show_deaths(o, json_object_get(doc, "deaths"));
}

/* ---- log ------------------------------------------------------------------------------------- */

void show_log(struct out *o, const json_t *doc)
{
	struct buf text = BUF_INIT;
	show_join(&text, json_object_get(doc, "debug"));
	out_field(o, "Level", js(doc, "level"));
	out_field(o, "Debug sources", buf_len(&text) ? buf_text(&text) : "none");
	buf_fini(&text);
}

/* ---- doctor ---------------------------------------------------------------------------------- */

#define CHECK_WIDTH 14u

void show_findings(struct out *o, const json_t *doc)
{
	static const struct {
		const char *verdict, *mark;
		enum style style;
	} looks[] = {{"ok", "✓", GREEN},
		     {"note", "•", BLUE},
		     {"warning", "!", YELLOW},
		     {"error", "✗", RED}};
	const json_t *f;
	size_t i;
	json_array_foreach(doc, i, f)
	{
		const char *check = js(f, "check"), *hint = js(f, "hint");
		unsigned width = text_width(check);
		for (size_t l = 0; l < sizeof looks / sizeof looks[0]; l++)
			if (str_eq(looks[l].verdict, js(f, "verdict")))
				out_styled(o, looks[l].style, looks[l].mark);
		out_put(o, " ");
		out_text(o, check);
		out_pad(o, width < CHECK_WIDTH ? CHECK_WIDTH - width + 2 : 2);
		out_wrap(o, js(f, "text"), CHECK_WIDTH + 4, CHECK_WIDTH + 4);
		out_put(o, "\n");
		if (!*hint)
			continue;
		out_pad(o, CHECK_WIDTH + 4);
		out_style(o, DIM);
		out_put(o, "→ ");
		out_wrap(o, hint, CHECK_WIDTH + 6, CHECK_WIDTH + 6);
		if (o->term.colour)
			out_style(o, PLAIN);
		out_put(o, "\n");
	}
}
