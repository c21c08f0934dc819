/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/fields.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "trace"
#define DEPTH_MAX 12u
#define TEXT_MAX 256u /* largest part of one field that is shown, in bytes */
#define LINE_MAX 3500u /* just below the limit of a log line */
#define PULL_IMAGE_AUTH 2u /* number of the field with the registry's password */

static const char *const level_names[] = {"off", "name", "short", "full"};

int trace_add(struct trace_rules *rules, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : strlen(text);
	if (rules->n == TRACE_RULES_MAX)
		return -E2BIG;
	struct trace_rule *rule = &rules->list[rules->n];
	if (!n || n >= sizeof rule->glob)
		return -EINVAL;
	memcpy(rule->glob, text, n);
	rule->glob[n] = '\0';
	rule->level = TRACE_SHORT;
	if (equals) {
		unsigned i = 0;
		while (i <= TRACE_FULL && !str_eq(equals + 1, level_names[i]))
			i++;
		if (i > TRACE_FULL)
			return -EINVAL;
		rule->level = (enum trace_level)i;
	}
	rules->n++;
	return 0;
}

const char *trace_method(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

enum trace_level trace_level_of(const struct trace_rules *rules, const char *path)
{
	for (unsigned i = 0; i < rules->n; i++) {
		const struct trace_rule *rule = &rules->list[i];
		if (str_glob(rule->glob, strchr(rule->glob, '/') ? path : trace_method(path)))
			return rule->level;
	}
	return TRACE_OFF;
}

/* ---- messages as text ------------------------------------------------------------------------ */

static bool is_text(const struct span *s)
{
	for (const uint8_t *p = s->p; p < s->end; p++)
		if (*p < ' ' || *p == 0x7f)
			return false;
	return utf8_valid((const char *)s->p, span_len(s));
}

static bool is_message(struct span s)
{
	struct field f;
	int r;
	while ((r = field_next(&s, &f)) > 0)
		if (!f.number)
			return false;
	return r == 0;
}

static void print_message(struct buf *to, struct span s, unsigned depth, uint32_t hidden);

static void print_bytes(struct buf *to, const struct span *s, unsigned depth)
{
	size_t n = span_len(s);
	if (is_text(s))
		(void)buf_printf(to, "\"%.*s%s\"",
				 (int)(n > TEXT_MAX ? utf8_cut((const char *)s->p, TEXT_MAX) : n),
				 (const char *)s->p, n > TEXT_MAX ? "…" : "");
	else if (depth < DEPTH_MAX && is_message(*s))
		print_message(to, *s, depth + 1, 0);
	else
		(void)buf_printf(to, "(%zu bytes)", n);
}

static void print_field(struct buf *to, const struct field *f, unsigned depth, uint32_t hidden)
{
	(void)buf_printf(to, "%" PRIu32 ": ", f->number);
	if (hidden && f->number == hidden)
		(void)buf_add_str(to, "(hidden)");
	else if (f->wire == WIRE_LEN)
		print_bytes(to, &f->bytes, depth);
	else if (f->wire == WIRE_VARINT)
		(void)buf_printf(to, "%" PRId64, (int64_t)f->value);
	else
		(void)buf_add_str(to, "(fixed)");
}

static void print_message(struct buf *to, struct span s, unsigned depth, uint32_t hidden)
{
	struct field f;
	const char *between = "{";
	while (buf_len(to) < LINE_MAX && field_next(&s, &f) > 0) {
		(void)buf_add_str(to, between);
		print_field(to, &f, depth, hidden);
		between = ", ";
	}
	if (*between == '{')
		(void)buf_add_str(to, between);
	(void)buf_add_str(to, s.p < s.end ? " …}" : "}");
}

void trace_log_message(const char *path, const char *arrow, const uint8_t *data, size_t n)
{
	struct buf text = BUF_INIT;
	const char *method = trace_method(path);
	print_message(&text, span_of(data, n), 0,
		      str_eq(method, "PullImage") ? PULL_IMAGE_AUTH : 0);
	log_write(LOG_SOURCE, LOG_INFO, "%s %s %s", method, arrow, buf_text(&text));
	buf_fini(&text);
}
