/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers of numbers, declared in number.h. Decimals are exact: they stay digits and a power of ten
 * until the unit is known, without floating point between text and integer.
 */
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef unsigned __int128 u128;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int str_to_u64(const char *s, uint64_t *ret)
{
	uint64_t v = 0;
	if (!*s)
		return -EINVAL;
	if (s[strspn(s, "0123456789")])
		return -EINVAL;
	for (; *s; s++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (unsigned)(*s - '0'), &v))
			return -ERANGE;
	*ret = v;
	return 0;
}

int str_to_i64(const char *s, int64_t *ret)
{
	bool negative = *s == '-';
	uint64_t v;
	int r = str_to_u64(s + (*s == '-' || *s == '+'), &v);
	if (r)
		return r;
	if (v > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	*ret = negative ? (int64_t)-v : (int64_t)v;
	return 0;
}

int str_to_double(const char *s, double *ret)
{
	const char *p = s + (*s == '-' || *s == '+');
	/* strtod also accepts blanks, hexadecimal, infinity and NaN, which are invalid here. */
	if (!is_digit(p[0]) && !(p[0] == '.' && is_digit(p[1])))
		return -EINVAL;
	if (p[strspn(p, "0123456789.eE+-")])
		return -EINVAL;
	char *end;
	double v = strtod(s, &end);
	if (*end)
		return -EINVAL;
	if (isinf(v))
		return -ERANGE;
	*ret = v;
	return 0;
}

int str_to_bool(const char *s, bool *ret)
{
	static const char *const yes[] = {"1", "t",   "T",   "true", "True", "TRUE", "y",
					  "Y", "yes", "Yes", "YES",  "on",   "On",   "ON"};
	static const char *const no[] = {"0", "f",  "F",  "false", "False", "FALSE", "n",
					 "N", "no", "No", "NO",	   "off",   "Off",   "OFF"};
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		if (!str_eq(s, yes[i]) && !str_eq(s, no[i]))
			continue;
		*ret = str_eq(s, yes[i]);
		return 0;
	}
	return -EINVAL;
}

/* ---- decimals -------------------------------------------------------------------------------- */

#define DIGITS_MAX 20 /* 10^20 < 2^67: leaves room for 2^60 */
#define EXPONENT_MAX 1000000 /* largest accepted; far beyond the range of any result */

struct decimal {
	u128 digits;
	int64_t exp10;
	/* Digits beyond DIGITS_MAX are not all zero: the value is a little larger. */
	bool more;
};

static void add_digit(struct decimal *d, int digit, int *n_digits)
{
	if (*n_digits == DIGITS_MAX) {
		d->exp10++;
		d->more |= digit != 0;
		return;
	}
	d->digits = d->digits * 10 + (unsigned)digit;
	if (d->digits)
		++*n_digits;
}

/* Parses "12", "1.5", "1." or ".5" and moves the text behind it. */
static int parse_decimal(const char **text, struct decimal *ret)
{
	struct decimal d = {0};
	const char *p = *text;
	int n_digits = 0;
	size_t n_read = 0;
	for (; is_digit(*p); p++, n_read++)
		add_digit(&d, *p - '0', &n_digits);
	if (*p == '.')
		for (p++; is_digit(*p); p++, n_read++) {
			add_digit(&d, *p - '0', &n_digits);
			d.exp10--;
		}
	if (!n_read)
		return -EINVAL;
	*text = p;
	*ret = d;
	return 0;
}

/* Computes digits × 10^exp10 × 2^exp2 (exp2 at most 60), rounded up. */
static int scale_up(const struct decimal *d, int64_t exp10, unsigned exp2, u128 *ret)
{
	u128 v = d->digits << exp2;
	bool rest = d->more;
	if (exp10 > EXPONENT_MAX || exp10 < -EXPONENT_MAX)
		return -ERANGE;
	for (; exp10 > 0 && v; exp10--) {
		if (v > INT64_MAX)
			return -ERANGE;
		v *= 10;
	}
	for (; exp10 < 0 && v; exp10++) {
		rest |= v % 10 != 0;
		v /= 10;
	}
	v += rest;
	if (v > INT64_MAX)
		return -ERANGE;
	*ret = v;
	return 0;
}

struct unit {
	const char *name;
	int exp10;
	unsigned exp2;
};

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name,
				    int (*cmp)(const char *, const char *))
{
	for (size_t i = 0; i < n; i++)
		if (cmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

/* ---- Kubernetes quantities ------------------------------------------------------------------- */

static const struct unit quantity_units[] = {
	{"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
	{"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
	{"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

/* Parses "e3" or "E-2"; a lone "E" is a unit. */
static int parse_exponent(const char *s, int64_t *ret)
{
	if ((*s != 'e' && *s != 'E') || !s[1])
		return -EINVAL;
	return str_to_i64(s + 1, ret);
}

/* Parses a quantity × 10^exp10, rounded away from zero, so that a negative amount never becomes
 * zero. */
static int parse_quantity(const char *s, int exp10, int64_t *ret)
{
	bool negative = *s == '-';
	struct decimal d;
	const char *p = s + (*s == '-' || *s == '+');
	int r = parse_decimal(&p, &d);
	if (r)
		return r;
	int64_t exponent = 0;
	const struct unit *unit = find_unit(
		quantity_units, sizeof quantity_units / sizeof quantity_units[0], p, strcmp);
	if (!unit) {
		r = parse_exponent(p, &exponent);
		if (r)
			return r;
		if (exponent > EXPONENT_MAX || exponent < -EXPONENT_MAX)
			return -ERANGE;
		unit = &quantity_units[0];
	}
	u128 v;
	r = scale_up(&d, d.exp10 + exponent + unit->exp10 + exp10, unit->exp2, &v);
	if (r)
		return r;
	*ret = negative ? -(int64_t)v : (int64_t)v;
	return 0;
}

int str_to_milli(const char *s, int64_t *ret)
{
	return parse_quantity(s, 3, ret);
}

int str_to_bytes(const char *s, int64_t *ret)
{
	return parse_quantity(s, 0, ret);
}

#define KHZ_UNIT_MAX 8u

int str_to_khz(const char *s, int64_t *ret)
{
	static const struct unit units[] = {{"", 0, 0},	 {"Hz", -3, 0}, {"k", 0, 0}, {"kHz", 0, 0},
					    {"M", 3, 0}, {"MHz", 3, 0}, {"G", 6, 0}, {"GHz", 6, 0}};
	static const char blanks[] = " \t";
	char name[KHZ_UNIT_MAX];
	struct decimal d;
	s += strspn(s, blanks);
	int r = parse_decimal(&s, &d);
	if (r)
		return r;
	s += strspn(s, blanks);
	size_t len = strcspn(s, blanks);
	if (len >= sizeof name || s[len + strspn(s + len, blanks)])
		return -EINVAL;
	(void)snprintf(name, sizeof name, "%.*s", (int)len, s);
	const struct unit *unit =
		find_unit(units, sizeof units / sizeof units[0], name, strcasecmp);
	if (!unit)
		return -EINVAL;
	u128 hz;
	r = scale_up(&d, d.exp10 + unit->exp10 + 3, 0, &hz);
	if (r)
		return r;
	/* A value this small is a mistake in the unit. */
	if (hz && hz < 1000)
		return -EINVAL;
	*ret = (int64_t)((hz + 500) / 1000);
	return 0;
}

/* ---- durations ------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"\xc2\xb5s", 1000}, /* the two characters that look like a mu */
	{"\xce\xbcs", 1000},
	{"ms", 1000000},
	{"s", UINT64_C(1000000000)},
	{"m", UINT64_C(60000000000)},
	{"h", UINT64_C(3600000000000)},
};

/* Parses one term such as "1.5h" and adds its nanoseconds. */
static int parse_duration_term(const char **text, u128 *sum_ns)
{
	struct decimal d;
	int r = parse_decimal(text, &d);
	if (r)
		return r;
	size_t len = strcspn(*text, "0123456789.");
	for (size_t i = 0; i < sizeof duration_units / sizeof duration_units[0]; i++) {
		if (strlen(duration_units[i].name) != len ||
		    memcmp(*text, duration_units[i].name, len) != 0)
			continue;
		*text += len;
		u128 ns;
		d.digits *= duration_units[i].ns;
		r = scale_up(&d, d.exp10, 0, &ns);
		if (r)
			return r;
		*sum_ns += ns;
		return *sum_ns > INT64_MAX ? -ERANGE : 0;
	}
	return -EINVAL;
}

int str_to_ms(const char *s, int64_t *ret)
{
	bool negative = *s == '-';
	const char *p = s + (*s == '-' || *s == '+');
	u128 sum_ns = 0;
	if (str_eq(p, "0")) {
		*ret = 0;
		return 0;
	}
	do {
		int r = parse_duration_term(&p, &sum_ns);
		if (r)
			return r;
	} while (*p);
	int64_t ms = (int64_t)((sum_ns + 999999) / 1000000);
	*ret = negative ? -ms : ms;
	return 0;
}
