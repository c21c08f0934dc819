/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of integers, and fractions of amounts. */
#include "modules/lib/private/number.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX 64u
#define BILLION INT64_C(1000000000)

int64_t number_parse(const char *text, int64_t max)
{
	static const struct {
		const char *prefix;
		int base;
	} prefixes[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}, {"0", 8}, {"", 10}};
	char digits[TEXT_MAX], *end;
	size_t n = 0;
	unsigned i = 0;
	while (strncasecmp(text, prefixes[i].prefix, strlen(prefixes[i].prefix)) != 0 ||
	       (prefixes[i].base == 8 && !text[1]))
		i++;
	for (const char *p = text + strlen(prefixes[i].prefix); *p; p++) {
		if (*p == '_' && p > text && isalnum((unsigned char)p[1]))
			continue;
		if (!isalnum((unsigned char)*p) || n == sizeof digits - 1)
			return -1;
		digits[n++] = *p;
	}
	digits[n] = '\0';
	long long value = n ? strtoll(digits, &end, prefixes[i].base) : -1;
	return value < 0 || *end || value > max ? -1 : value;
}

int64_t number_part(int64_t amount, double part)
{
	int64_t billionths = (int64_t)(part * (double)BILLION + 0.5);
	return amount / BILLION * billionths + amount % BILLION * billionths / BILLION;
}
