/* SPDX-License-Identifier: Apache-2.0 */
/* Problems of a configuration: collected, limited in number, in the order of the files. */
#include "core/lib/conf/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/lib/util/str.h"

void conf_errors_init(struct conf_errors *errs)
{
	errs->n_items = errs->n_errors = errs->n_warnings = 0;
}

/* Returns the slot for a new problem; if all are in use, an error replaces the last warning. */
static struct conf_problem *new_slot(struct conf_errors *errs, bool warning)
{
	if (errs->n_items < CONF_ERRORS_MAX)
		return &errs->items[errs->n_items++];
	if (warning)
		return NULL;
	for (unsigned i = errs->n_items; i-- > 0;)
		if (errs->items[i].warning)
			return &errs->items[i];
	return NULL;
}

__attribute__((format(printf, 5, 0))) static void errors_add(struct conf_errors *errs, bool warning,
							     const struct conf_problem *place,
							     const char *where, const char *fmt,
							     va_list ap)
{
	unsigned seq = errs->n_errors + errs->n_warnings;
	if (warning)
		errs->n_warnings++;
	else
		errs->n_errors++;
	struct conf_problem *p = new_slot(errs, warning);
	if (!p)
		return;
	*p = (struct conf_problem){.warning = warning,
				   .line = place->line,
				   .column = place->column,
				   .source = place->source,
				   .seq = seq};
	/* The buffer is longer than the stored text, so that utf8_cut sees the character at the
	 * cut. */
	char text[CONF_PLACE_MAX + CONF_PROBLEM_TEXT_MAX];
	int n = snprintf(text, sizeof text, "%s%s", where, where[0] ? ": " : "");
	(void)vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
	size_t len = utf8_cut(text, sizeof p->text - 1);
	memcpy(p->text, text, len);
	p->text[len] = '\0';
}

int problem_at(struct conf_errors *errs, const struct conf_file *file, unsigned line,
	       unsigned column, const char *fmt, ...)
{
	char where[CONF_PLACE_MAX] = "";
	if (file && line)
		(void)snprintf(where, sizeof where, "%s:%u:%u", file->name, line, column);
	else if (file)
		(void)snprintf(where, sizeof where, "%s", file->name);
	struct conf_problem place = {
		.line = line, .column = column, .source = file ? file->number : 0};
	va_list ap;
	va_start(ap, fmt);
	errors_add(errs, false, &place, where, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void warning_at(struct conf_errors *errs, const struct conf_file *file, const char *fmt, ...)
{
	const struct conf_problem place = {.source = file->number};
	va_list ap;
	va_start(ap, fmt);
	errors_add(errs, true, &place, file->name, fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 5, 0))) static void add_node(struct conf_errors *errs, bool warning,
							   rp_cfg node, const char *below,
							   const char *fmt, va_list ap)
{
	char where[CONF_PLACE_MAX], path[CONF_PLACE_MAX];
	conf_place(node, where, sizeof where);
	if (below) {
		size_t len = strlen(where);
		const char *glue = conf_path(node, path, sizeof path)[0] ? "."
				   : where[0]				 ? ": "
									 : "";
		(void)snprintf(where + len, sizeof where - len, "%s%s", glue, below);
	}
	struct conf_problem place = {0};
	if (node) {
		place.line = node->line;
		place.column = node->column;
		place.source = node->file ? node->file->number : 0;
	}
	errors_add(errs, warning, &place, where, fmt, ap);
}

int problem_node(struct conf_errors *errs, rp_cfg node, const char *below, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add_node(errs, false, node, below, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void warning_node(struct conf_errors *errs, rp_cfg node, const char *below, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add_node(errs, true, node, below, fmt, ap);
	va_end(ap);
}

static int errors_compare(const void *a, const void *b)
{
	const struct conf_problem *p = a, *q = b;
	const unsigned left[] = {p->source, p->line, p->column, p->seq};
	const unsigned right[] = {q->source, q->line, q->column, q->seq};
	for (unsigned i = 0; i < sizeof left / sizeof left[0]; i++)
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	return 0;
}

void conf_errors_sort(struct conf_errors *errs)
{
	qsort(errs->items, errs->n_items, sizeof errs->items[0], errors_compare);
}

void conf_errors_print(const struct conf_errors *errs, struct buf *out)
{
	for (unsigned i = 0; i < errs->n_items; i++)
		(void)buf_printf(out, "%s%s\n", errs->items[i].warning ? CONF_WARNING : "",
				 errs->items[i].text);
	unsigned total = errs->n_errors + errs->n_warnings;
	if (total > errs->n_items)
		(void)buf_printf(out, "and %u more\n", total - errs->n_items);
}

int conf_errors_to_err(const struct conf_errors *errs, int code, struct err *err)
{
	for (unsigned i = 0; i < errs->n_items; i++) {
		const struct conf_problem *p = &errs->items[i];
		if (p->warning)
			continue;
		if (errs->n_errors == 1)
			return err_set(err, code, "%s", p->text);
		return err_set(err, code, "%s (and %u more)", p->text, errs->n_errors - 1);
	}
	return err_errno(err, code, "cannot load the configuration");
}
