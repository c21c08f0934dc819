/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching of glob patterns in linear space and at most pattern × text steps. Patterns come from
 * pods, and fnmatch(3) does not guarantee this bound. It suffices to remember the last star: text
 * that an earlier star could still consume can be consumed by the last one.
 */
#include <nri-rp/lib/glob.h>

/* Returns the end of a character class, whose first character follows the '['. NULL: the class is
 * not closed. An empty class, as in "[]", is not closed. */
static const char *class_end(const char *p)
{
	bool first = true;
	if (*p == '^' || *p == '!')
		p++;
	for (; *p && (*p != ']' || first); p++, first = false) {
		if (*p == '\\' && !*++p)
			return NULL;
		if (p[1] != '-' || !p[2] || p[2] == ']')
			continue;
		p += 2;
		if (*p == '\\' && !*++p)
			return NULL;
	}
	return *p ? p : NULL;
}

bool glob_valid(const char *p)
{
	for (; *p; p++) {
		if (*p == '\\') {
			if (!*++p)
				return false;
		} else if (*p == '[') {
			p = class_end(p + 1);
			if (!p)
				return false;
		}
	}
	return true;
}

/* Returns true if the class contains c. p points behind the '['. */
static bool class_has(const char *p, const char *end, unsigned char c)
{
	bool negated = *p == '^' || *p == '!', found = false;
	if (negated)
		p++;
	while (p < end) {
		if (*p == '\\')
			p++;
		unsigned char low = (unsigned char)*p++, high = low;
		if (p + 1 < end && *p == '-') {
			p++;
			if (*p == '\\')
				p++;
			high = (unsigned char)*p++;
		}
		found |= low <= c && c <= high;
	}
	return found != negated;
}

/* Matches one character. Returns the rest of the pattern, or NULL. */
static const char *match_one(const char *p, char c)
{
	switch (*p) {
	case '\0':
		return NULL;
	case '?':
		return c != '/' ? p + 1 : NULL;
	case '\\':
		return p[1] == c ? p + 2 : NULL;
	case '[': {
		const char *end = class_end(p + 1);
		return c != '/' && class_has(p + 1, end, (unsigned char)c) ? end + 1 : NULL;
	}
	default:
		return *p == c ? p + 1 : NULL;
	}
}

bool glob_match(const char *p, const char *text)
{
	const char *star = NULL, *resume = NULL;
	if (!glob_valid(p))
		return false;
	while (*text) {
		if (*p == '*') {
			star = ++p;
			resume = text;
			continue;
		}
		const char *next = match_one(p, *text);
		if (next) {
			p = next;
			text++;
			continue;
		}
		if (!star || *resume == '/')
			return false;
		p = star;
		text = ++resume;
	}
	while (*p == '*')
		p++;
	return !*p;
}

bool glob_any(const struct texts *patterns, const char *text)
{
	for (uint32_t i = 0; i < patterns->n; i++)
		if (glob_match(patterns->list[i], text))
			return true;
	return false;
}

int32_t glob_read(const struct modhost *h, struct blocks *memory, rp_cfg list, struct texts *ret)
{
	int32_t r = texts_read(h, memory, list, 0, ret);
	for (uint32_t i = 0; !r && i < ret->n; i++)
		if (!glob_valid(ret->list[i]))
			r = modhost_refuse(h, h->config->item(h->ctx, list, i),
					   "\"%.64s\" is not a pattern", ret->list[i]);
	return r;
}
