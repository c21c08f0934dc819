/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the parts that several documents have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/nri-rpd/control/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/control/document.h"

void put_time(struct json *j, const char *key, uint64_t wall_ns)
{
	char date[32], text[48];
	const time_t s = (time_t)(wall_ns / 1000000000u);
	struct tm tm;
	json_key(j, key);
	if (!wall_ns || !gmtime_r(&s, &tm)) {
		json_nil(j);
		return;
	}
	(void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text, sizeof text, "%s.%03uZ", date,
		       (unsigned)(wall_ns % 1000000000u / 1000000u));
	json_str(j, text);
}

bool put_object(struct json *j, const char *key, bool there)
{
	json_key(j, key);
	if (there)
		json_obj(j);
	else
		json_nil(j);
	return there;
}

void put_set(struct json *j, const char *key, const struct iset *set)
{
	json_kstr(j, key, set ? set->text : NULL);
}

void put_ids(struct json *j, const char *key, struct rp_ids ids)
{
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, text, sizeof text);
	json_kstr(j, key, text);
}

void put_amount(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	if (v == RP_NOT_SET)
		json_nil(j);
	else
		json_int(j, v);
}

void put_text(struct json *j, const char *key, const char *s)
{
	json_kstr(j, key, s && *s ? s : NULL);
}

const char *state_name(uint32_t state)
{
	static const char *const names[] = {
		[RP_STATE_CREATING] = "creating", [RP_STATE_CREATED] = "created",
		[RP_STATE_RUNNING] = "running",	  [RP_STATE_PAUSED] = "paused",
		[RP_STATE_EXITED] = "exited",
	};
	return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

const char *told(const char *text, uint32_t flags)
{
	if (!text || !(flags & CTL_FLAG_PUBLIC) || !strstr(text, "annotation"))
		return text;
	return "invalid annotation: see nri-rpctl explain, or nri-rpctl events";
}

bool matches(const char *pattern, const char *name)
{
	if (!pattern || !*pattern)
		return true;
	return strpbrk(pattern, "*?[") ? str_glob(pattern, name) : strstr(name, pattern) != NULL;
}

void put_bits(struct json *j, const char *key, uint32_t bits, const struct bit_name *list, size_t n)
{
	json_karr(j, key);
	for (size_t i = 0; i < n; i++)
		if (bits & list[i].bit)
			json_str(j, list[i].name);
	json_end_arr(j);
}

void put_lines(struct json *j, const char *key, const char *lines)
{
	put_told(j, key, lines, 0);
}

void put_told(struct json *j, const char *key, const char *text, uint32_t flags)
{
	struct buf line = BUF_INIT;
	json_karr(j, key);
	for (size_t n; text && *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		buf_reset(&line);
		if (n && buf_add(&line, text, n) == 0)
			json_str(j, told(buf_text(&line), flags));
	}
	json_end_arr(j);
	buf_fini(&line);
}

uint64_t process_number(const char *name, int base)
{
	char text[4096];
	size_t n = 0;
	_fclose_ FILE *f = fopen("/proc/self/status", "re");
	if (f)
		n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	const char *line = strstr(text, name);
	return line ? strtoull(line + strlen(name) + 1, NULL, base) : 0;
}
