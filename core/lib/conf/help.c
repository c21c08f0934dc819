/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tables for people. */
#include "core/lib/conf/internal.h"

#include <stdio.h>

/* ---- help ------------------------------------------------------------------------------------ */

/* Adds a text for mdoc, so that no line of the text is read as a request and backslashes are
 * characters. */
static void add_mdoc(struct buf *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		(void)buf_add_str(out, "\\&");
	for (; *s; s++)
		(void)buf_add(out, *s == '\\' ? "\\e" : s, *s == '\\' ? 2 : 1);
}

static void add_plain(struct buf *out, const char *s)
{
	(void)buf_add_str(out, s);
}

static void help_describe(const struct rp_key *row, void (*add)(struct buf *out, const char *s),
			  const char *begin, struct buf *out)
{
	char expected[CONF_PROBLEM_TEXT_MAX];
	(void)buf_printf(out, "%sValue: ", begin);
	add(out, value_expected(row, expected, sizeof expected));
	(void)buf_add_str(out, ".\n");
	if (row->fallback) {
		(void)buf_printf(out, "%sDefault: ", begin);
		add(out, row->fallback[0] ? row->fallback : "\"\"");
		(void)buf_add_str(out, ".\n");
	}
	if (row->flags & RP_KEY_REQUIRED)
		(void)buf_printf(out, "%sRequired.\n", begin);
	if (row->flags & RP_KEY_RESTART)
		(void)buf_printf(out, "%sA change takes effect after a restart.\n", begin);
	if (!row->doc || !row->doc[0])
		return;
	(void)buf_add_str(out, begin);
	add(out, row->doc);
	(void)buf_add_str(out, "\n");
}

int conf_schema_help(const struct rp_schema *schema, enum conf_format format, struct buf *out)
{
	int rc = conf_schema_check(schema, NULL);
	if (rc < 0)
		return rc;
	bool mdoc = format == CONF_MDOC;
	for (uint32_t i = 0; i < schema->n_keys; i++) {
		struct rp_key row = schema_row(schema, i);
		(void)buf_add_str(out, mdoc ? ".It Ic " : "");
		(mdoc ? add_mdoc : add_plain)(out, row.path);
		(void)buf_add_str(out, "\n");
		help_describe(&row, mdoc ? add_mdoc : add_plain, mdoc ? "" : "    ", out);
	}
	return out->failed;
}
