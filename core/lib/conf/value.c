/* SPDX-License-Identifier: Apache-2.0 */
/* Values of scalars by type. */
#include "core/lib/conf/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include <nri-rp/set.h>

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

static int to_bool(const char *s, int64_t *ret)
{
	bool v;
	int rc = str_to_bool(s, &v);
	if (rc == 0)
		*ret = v;
	return rc;
}

static int to_amount(const char *s, int (*parse)(const char *s, int64_t *ret), int64_t *ret)
{
	int64_t v;
	int rc = parse(s, &v);
	if (rc == 0 && v < 0)
		return -EINVAL;
	if (rc == 0)
		*ret = v;
	return rc;
}

static int to_freq(const char *s, int64_t *ret)
{
	static const struct {
		const char *word;
		int64_t value;
	} words[] = {{"min", RP_FREQ_MIN}, {"base", RP_FREQ_BASE}, {"turbo", RP_FREQ_TURBO}};
	const char *word = s + strspn(s, " \t");
	size_t len = strcspn(word, " \t");
	if (!*word) { /* empty: unchanged, as 0 */
		*ret = 0;
		return 0;
	}
	for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strlen(words[i].word) != len || strncasecmp(word, words[i].word, len) != 0 ||
		    word[len + strspn(word + len, " \t")])
			continue;
		*ret = words[i].value;
		return 0;
	}
	return str_to_khz(s, ret);
}

/* Converts a scalar of a type that is represented as a whole number. */
static int to_integer(const char *s, uint32_t type, int64_t *ret)
{
	switch (type) {
	case RP_T_BOOL:
		return to_bool(s, ret);
	case RP_T_INT:
		return str_to_i64(s, ret);
	case RP_T_CPU:
	case RP_T_AMOUNT:
		return to_amount(s, str_to_milli, ret);
	case RP_T_BYTES:
		return to_amount(s, str_to_bytes, ret);
	case RP_T_DURATION:
		return to_amount(s, str_to_ms, ret);
	case RP_T_FREQ:
		return to_freq(s, ret);
	default:
		return -EINVAL;
	}
}

int64_t conf_value(rp_cfg node, uint32_t type, int64_t fallback)
{
	int64_t v;
	if (!node_is(node, RP_NODE_SCALAR) || to_integer(node->text, type, &v) < 0)
		return fallback;
	return v;
}

double conf_number(rp_cfg node, double fallback)
{
	double v;
	if (!node_is(node, RP_NODE_SCALAR) || str_to_double(node->text, &v) < 0)
		return fallback;
	return v;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_cpus(const char *s)
{
	struct rp_idset set;
	if (rp_idset_parse(&set, s, RP_CPUS_MAX) || rp_ids_empty(rp_ids_of(&set)))
		return -EINVAL;
	return 0;
}

static int check_amount(const char *s)
{
	static const char *const prefixes[] = {"cpuset:", "exclude-cpuset:"};
	int64_t v;
	for (unsigned i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (str_has_prefix(s, prefixes[i]))
			return check_cpus(s + strlen(prefixes[i]));
	if (str_has_prefix(s, "cgroup:"))
		return s[strlen("cgroup:")] ? 0 : -EINVAL;
	if (s[0] == '/')
		return 0;
	if (s[0] != '-' && strpbrk(s, "-,"))
		return check_cpus(s);
	return to_integer(s, RP_T_AMOUNT, &v);
}

static int check_range(const char *s, const struct rp_key *key)
{
	int64_t v;
	int rc = str_to_i64(s, &v);
	if (rc < 0)
		return rc;
	if ((key->min || key->max) && (v < key->min || v > key->max))
		return -EINVAL;
	return 0;
}

static int check_choice(const char *s, const char *choices)
{
	size_t len = strlen(s);
	for (const char *at = choices;; at++) {
		size_t n = strcspn(at, "|");
		if (n == len && memcmp(at, s, len) == 0)
			return 0;
		at += n;
		if (!*at)
			return -EINVAL;
	}
}

static int check_text(const char *s, const struct rp_key *key)
{
	int64_t v;
	double d;
	switch (key->type) {
	case RP_T_STRING:
		return (key->flags & RP_KEY_NON_EMPTY) && !s[0] ? -EINVAL : 0;
	case RP_T_ENUM:
		return check_choice(s, key->choices);
	case RP_T_INT:
		return check_range(s, key);
	case RP_T_NUMBER:
		return str_to_double(s, &d);
	case RP_T_CPULIST:
		return s[0] || (key->flags & RP_KEY_NON_EMPTY) ? check_cpus(s) : 0;
	case RP_T_AMOUNT:
		return check_amount(s);
	default:
		return to_integer(s, key->type, &v);
	}
}

/* Returns true if a misspelt unit is likely: 750M in place of 750m is more CPUs than any machine
 * has. */
static bool too_many_cpus(const char *s, const struct rp_key *key)
{
	int64_t v;
	return (key->type == RP_T_CPU || key->type == RP_T_AMOUNT) &&
	       to_integer(s, RP_T_CPU, &v) == 0 && v / 1000 > RP_CPUS_MAX;
}

bool value_fits(const char *text, const struct rp_key *key)
{
	return check_text(text, key) == 0;
}

static bool must_be_plain(uint32_t type)
{
	return type == RP_T_BOOL || type == RP_T_INT || type == RP_T_NUMBER;
}

bool value_check(rp_cfg node, const struct rp_key *key, struct conf_errors *errs)
{
	const char *why = "";
	if (node_is(node, RP_NODE_SCALAR)) {
		int rc = check_text(node->text, key);
		if (rc == 0 && too_many_cpus(node->text, key)) {
			(void)problem_node(errs, node, NULL,
					   "\"%s\" are more CPUs than any node has; write "
					   "thousandths of a CPU with a lower-case m: 750m",
					   node->text);
			return false;
		}
		bool misquoted = node->quoted && must_be_plain(key->type);
		if (rc == 0 && !misquoted)
			return true;
		why = rc == -ERANGE ? ", which is out of range" : rc == 0 ? " in quotes" : "";
	}
	char expected[CONF_PROBLEM_TEXT_MAX], found[CONF_PLACE_MAX];
	(void)problem_node(errs, node, NULL, "expected %s, found %s%s",
			   value_expected(key, expected, sizeof expected),
			   node_found(node, found, sizeof found), why);
	return false;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void expected_integer(const struct rp_key *key, char *buf, size_t size)
{
	bool any_less = key->min <= -INT32_MAX, any_more = key->max >= INT32_MAX;
	if ((!key->min && !key->max) || (any_less && any_more))
		(void)snprintf(buf, size, "an integer");
	else if (any_more)
		(void)snprintf(buf, size, "an integer of at least %" PRId64, key->min);
	else if (any_less)
		(void)snprintf(buf, size, "an integer of at most %" PRId64, key->max);
	else
		(void)snprintf(buf, size, "an integer from %" PRId64 " to %" PRId64, key->min,
			       key->max);
}

/* Writes "a, b or c"; an empty choice is shown as "". */
static void expected_choice(const char *choices, char *buf, size_t size)
{
	size_t len = 0;
	buf[0] = '\0';
	for (const char *at = choices; at && len < size;) {
		const char *bar = strchr(at, '|');
		int n = bar ? (int)(bar - at) : (int)strlen(at);
		const char *glue = at == choices ? "" : bar ? ", " : " or ";
		int added =
			snprintf(buf + len, size - len, n ? "%s%.*s" : "%s\"\"%.*s", glue, n, at);
		len += (size_t)added;
		at = bar ? bar + 1 : NULL;
	}
}

const char *value_expected(const struct rp_key *key, char *buf, size_t size)
{
	static const char *const words[] = {
		[RP_T_BOOL] = "true or false",
		[RP_T_NUMBER] = "a number",
		[RP_T_STRING] = "a text",
		[RP_T_CPU] = "an amount of CPU (2, 750m)",
		[RP_T_BYTES] = "an amount of memory (512Mi, 1G)",
		[RP_T_DURATION] = "a duration (250ms, 1m30s)",
		[RP_T_AMOUNT] = "an amount of CPU (2, 750m), cpuset:LIST, exclude-cpuset:LIST or "
				"cgroup:PATH",
		[RP_T_CPULIST] = "a list of CPUs (0-3,8)",
		[RP_T_MAP] = "a map",
		[RP_T_LIST] = "a list",
		[RP_T_ANY] = "anything",
		[RP_T_FREQ] = "a frequency (2.4GHz, 800MHz), min, base or turbo",
	};
	bool filled = key->flags & RP_KEY_NON_EMPTY;
	if (key->type == RP_T_INT)
		expected_integer(key, buf, size);
	else if (key->type == RP_T_ENUM)
		expected_choice(key->choices, buf, size);
	else if (key->type == RP_T_BYTES && key->expected)
		(void)snprintf(buf, size, "%s", key->expected);
	else
		(void)snprintf(buf, size, "%s%s", words[key->type],
			       filled && (key->type == RP_T_STRING || key->type == RP_T_MAP ||
					  key->type == RP_T_LIST)
				       ? " that is not empty"
				       : "");
	return buf;
}

static bool same_cpus(const char *a, const char *b)
{
	struct rp_idset x, y;
	if (rp_idset_parse(&x, a, RP_CPUS_MAX) || rp_idset_parse(&y, b, RP_CPUS_MAX))
		return false;
	return rp_ids_equal(rp_ids_of(&x), rp_ids_of(&y));
}

bool value_equal(const char *a, const char *b, uint32_t type)
{
	int64_t x, y;
	double v, w;
	if (str_eq(a, b))
		return true;
	switch (type) {
	case RP_T_STRING:
	case RP_T_ENUM:
	case RP_T_ANY:
		return false;
	case RP_T_NUMBER:
		return str_to_double(a, &v) == 0 && str_to_double(b, &w) == 0 && !(v < w) &&
		       !(v > w);
	case RP_T_CPULIST:
		return same_cpus(a, b);
	default:
		return to_integer(a, type, &x) == 0 && to_integer(b, type, &y) == 0 && x == y;
	}
}
