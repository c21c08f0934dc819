/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: configurations that the module's table allows: each key with values at its bounds, and odd
 * ones. */
#include <stdio.h>
#include <string.h>

#include "core/nri-rp-modcheck/balance.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/config.h"
#include "core/lib/util/cleanup.h"

#define VALUE_MAX 384u
#define VALUES_MAX 24u
#define REQUESTS 12u
#define DEFAULT_REQUESTS 60u

struct odd_values {
	char text[VALUES_MAX][VALUE_MAX];
	unsigned n;
};

static void cases_values_add(struct odd_values *v, const char *text, size_t len)
{
	if (v->n < VALUES_MAX && len < VALUE_MAX)
		(void)snprintf(v->text[v->n++], VALUE_MAX, "%.*s", (int)len, text);
}

static void add_int(struct odd_values *v, int64_t value)
{
	char text[32];
	cases_values_add(v, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

static void add_choices(struct odd_values *v, const char *choices)
{
	while (*choices) {
		char quoted[VALUE_MAX];
		size_t len = strcspn(choices, "|");
		cases_values_add(
			v, quoted,
			(size_t)snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)len, choices));
		choices += len + (choices[len] == '|');
	}
}

/* Values to try for keys of each type, separated by bars. The host rejects values that the module's
 * schema forbids. */
static const char *const odd[] = {
	[RP_T_BOOL] = "true|false",
	[RP_T_INT] = "0|1|-1|2|7|100|65536|2147483647|2147483648|9223372036854775807",
	[RP_T_NUMBER] = "0|0.5|1|-1|1e308|-1e308|1e-308",
	[RP_T_STRING] =
		"\"\"|x|\"*\"|\"%n%s%s\"|\"../../etc\"|\"a b\"|\"\\u00e9\"|\"[\"|\"0\"|\"a/b\"",
	[RP_T_CPU] = "0|1m|1|1500m|2|64|1000000",
	[RP_T_BYTES] = "0|1|4Ki|1Gi|7Ei",
	[RP_T_DURATION] = "0s|1ms|1s|8760h",
	[RP_T_AMOUNT] = "0|1|1500m|1000|cpuset:0-1|cpuset:1023|exclude-cpuset:0|cgroup:/none",
	[RP_T_CPULIST] = "\"\"|\"0\"|\"0-1\"|\"1023\"|\"0-1023\"",
	[RP_T_MAP] = "{}|null",
	[RP_T_LIST] = "[]|null",
	[RP_T_ANY] = "{}|[]|\"\"|1|null|{a: {b: [1]}}|[{a: 1}, {}]|[[[]]]|true",
	[RP_T_FREQ] = "min|base|turbo|0|1|800MHz|5GHz",
};

static void values_of(const struct rp_key *key, struct odd_values *ret)
{
	ret->n = 0;
	if (key->type == RP_T_INT && (key->min || key->max)) {
		add_int(ret, key->min);
		add_int(ret, key->max);
	}
	if (key->type == RP_T_ENUM) {
		add_choices(ret, key->choices);
		return;
	}
	const char *p =
		key->type < sizeof odd / sizeof *odd && odd[key->type] ? odd[key->type] : "";
	while (*p) {
		size_t len = strcspn(p, "|");
		cases_values_add(ret, p, len);
		p += len + (p[len] == '|');
	}
	if (key->type == RP_T_STRING) {
		char text[VALUE_MAX];
		memset(text, 'a', sizeof text);
		cases_values_add(ret, text, VALUE_MAX - 1);
	}
}

/* ---- a single configuration ------------------------------------------------------------------ */

/* Repeats a refused configuration to find leaks. */
static int refused_again(struct rig *r, struct conf *conf, struct err *err)
{
	struct balances leaks;
	struct err why = *err;
	if (strstr(err->text, "without an error text"))
		return err->code;
	for (unsigned i = 0; i < BALANCE_ROUNDS; i++) {
		if (rig_commit(r, conf, &why) != RIG_REFUSED)
			return err_set(err, -EINVAL,
				       "a configuration was refused once (%s) and then accepted",
				       why.text);
		balance_round(&leaks, i);
	}
	return balance_exact(&leaks, "a configuration that is refused", err);
}

static int lives_with(struct check *c, struct conf *conf, bool *ret_taken, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	struct churn churn;
	int bad = rig_open(&r, c, NULL, err);
	bad = bad ? bad : rig_create(&r, err);
	bad = bad ? bad : rig_commit(&r, conf, err);
	*ret_taken = !bad;
	if (bad)
		return bad == RIG_REFUSED ? refused_again(&r, conf, err) : bad;
	if (c->role != RP_KIND_POLICY)
		return 0;
	bad = rig_sync(&r, err);
	if (bad)
		return bad;
	churn_init(&churn, &r, c->seed);
	churn.still = true;
	bad = churn_run(&churn, REQUESTS, err);
	return bad ? bad : churn_empty(&churn, err);
}

/* Prepares and aborts a configuration beside the active one, which must not change placements. */
static int changes_nothing(struct rig *r, struct conf *conf, struct buf *expected, struct err *err)
{
	_cleanup_(buf_fini) struct buf got = BUF_INIT;
	struct rp_plan *plan;
	int bad = instance_prepare(r->instance, conf_section(conf, r->check->o->name), &plan, err);
	if (bad)
		return 0;
	instance_abort(r->instance, plan);
	if (r->check->role != RP_KIND_POLICY)
		return 0;
	bad = churn_probe(r, &got, err);
	return bad ? bad
		   : text_same(expected, &got, err,
			       "prepare() and abort() changed the active configuration");
}

/* ---- all keys -------------------------------------------------------------------------------- */

struct sums {
	unsigned taken, refused, forbidden;
};

static int try_value(struct rig *r, const char *path, const char *value, struct buf *expected,
		     struct sums *sums, struct err *err)
{
	struct check *c = r->check;
	struct conf *conf = NULL;
	struct err ignored = ERR_INIT;
	bool taken = false;
	check_doing(c, "with %s: %s", path, value);
	if (config_load_variant(c, path, value, &conf, &ignored)) {
		sums->forbidden++;
		return 0;
	}
	int bad = lives_with(c, conf, &taken, err);
	bad = bad ? bad : changes_nothing(r, conf, expected, err);
	conf_free(conf);
	sums->taken += taken;
	sums->refused += !taken;
	return bad ? err_prefix(err, "with %s: %.60s: ", path, value) : 0;
}

static int all_values(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf expected = BUF_INIT;
	struct rig *r = c->rig;
	_free_ struct odd_values *values = malloc(sizeof *values);
	struct sums sums = {0};
	if (!c->schema)
		return check_skip(c, "the module has no table of keys (" RP_SCHEMA_1 ")");
	int bad = values ? rig_commit(r, c->conf, err) : -ENOMEM;
	if (!bad && c->role == RP_KIND_POLICY) {
		bad = rig_sync(r, err);
		bad = bad ? bad : churn_probe(r, &expected, err);
	}
	for (uint32_t i = 0; !bad && i < c->schema->n_keys; i++) {
		values_of(&c->schema->keys[i], values);
		for (unsigned k = 0; !bad && k < values->n; k++)
			bad = try_value(r, c->schema->keys[i].path, values->text[k], &expected,
					&sums, err);
	}
	/* a value may request thousands of pools, which legitimately take long */
	c->scene->slowest_ns = 0;
	if (!bad)
		check_note(c, "%u configurations accepted, %u refused, %u not allowed by the table",
			   sums.taken, sums.refused, sums.forbidden);
	return bad;
}

/* ---- defaults -------------------------------------------------------------------------------- */

/* Logs the results of random requests to a fresh instance with a configuration. */
static int record_under(struct check *c, struct conf *conf, struct buf *out, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	struct churn churn;
	int bad = rig_open(&r, c, NULL, err);
	bad = bad ? bad : rig_create(&r, err);
	bad = bad ? bad : rig_commit(&r, conf, err);
	if (bad || c->role != RP_KIND_POLICY)
		return bad;
	bad = rig_sync(&r, err);
	if (bad)
		return bad;
	r.log = out;
	churn_init(&churn, &r, c->seed);
	churn.still = true;
	return churn_run(&churn, DEFAULT_REQUESTS, err);
}

/* Returns true if the key's default can be written to a file: it has one, and is not below an entry
 * of a list or map, which may be empty. */
static bool can_be_written_out(const struct rp_key *key)
{
	return key->fallback && *key->fallback && !strpbrk(key->path, "*[");
}

static void as_value(const struct rp_key *key, char ret[VALUE_MAX])
{
	bool text = key->type == RP_T_STRING || key->type == RP_T_ENUM;
	(void)snprintf(ret, VALUE_MAX, text ? "\"%s\"" : "%s", key->fallback);
}

static int try_default(struct check *c, const struct rp_key *key, struct buf *expected,
		       struct err *err)
{
	_cleanup_(buf_fini) struct buf got = BUF_INIT;
	struct conf *conf = NULL;
	char value[VALUE_MAX];
	as_value(key, value);
	check_doing(c, "with %s: %s, its default", key->path, value);
	int bad = config_load_variant(c, key->path, value, &conf, err);
	bad = bad ? bad : record_under(c, conf, &got, err);
	conf_free(conf);
	bad = bad ? bad
		  : text_same(expected, &got, err,
			      "containers are placed differently than without it");
	return bad ? err_prefix(err, "with %s: %.60s, its default: ", key->path, value) : 0;
}

static int cases_values_defaults(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf expected = BUF_INIT;
	unsigned n = 0;
	if (!c->schema)
		return check_skip(c, "the module has no table of keys (" RP_SCHEMA_1 ")");
	int bad = record_under(c, c->conf, &expected, err);
	for (uint32_t i = 0; !bad && i < c->schema->n_keys; i++) {
		const struct rp_key *key = &c->schema->keys[i];
		if (!can_be_written_out(key))
			continue;
		bad = try_default(c, key, &expected, err);
		n++;
	}
	if (!bad)
		check_note(c, "%u defaults", n);
	return bad;
}

static const struct check_case cases[] = {
	{"config/values", 0, CASE_SMALL | CASE_SLOW | CASE_CREATED, all_values,
	 "each key of the table with values at its bounds and unusual values: accepted, or refused "
	 "with an error text; prepare() does not change the active configuration"},
	{"config/defaults", 0, CASE_SMALL, cases_values_defaults,
	 "each key of the table with its declared default: decisions are the same as without the "
	 "key"},
};

const struct check_group value_cases = {cases, sizeof cases / sizeof *cases};
