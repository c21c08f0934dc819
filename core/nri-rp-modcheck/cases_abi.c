/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: older and newer hosts, missing services, the module's own services, its table, and the
 * rules of the ABI. */
#include <stdio.h>
#include <string.h>

#include "core/lib/conf/conf.h"
#include "core/nri-rp-modcheck/balance.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/nri-rp-modcheck/machines.h"
#include "core/nri-rp-modcheck/config.h"
#include "core/lib/util/cleanup.h"

#define REQUESTS 200u

/* ---- configuration --------------------------------------------------------------------------- */

static int cases_abi_config(struct check *c, struct err *err)
{
	int bad = rig_create(c->rig, err);
	bad = bad ? bad : rig_commit(c->rig, c->conf, err);
	const struct err why = *err;
	if (bad == RIG_REFUSED)
		return err_set(err, why.code, "%s%s", why.text,
			       c->o->config ? "" : "; pass a configuration with --config FILE");
	return bad;
}

static int unknown_keys(struct check *c, struct err *err)
{
	struct conf *conf = NULL;
	struct err refused = ERR_INIT;
	if (!c->schema)
		return check_skip(c, "the module has no table of keys (" RP_SCHEMA_1 ")");
	int r = config_load_with(c, "  noSuchKeyAtAll: 1\n", &conf, &refused);
	conf_free(conf);
	if (r == -ENOTSUP)
		return check_skip(c, "%s", refused.text);
	if (!r)
		return err_set(err, -EINVAL, "a key outside the table was accepted");
	if (!strstr(refused.text, "noSuchKeyAtAll"))
		return err_set(err, -EINVAL, "an unknown key is refused for another reason: %s",
			       refused.text);
	return 0;
}

static int cases_abi_table(struct check *c, struct err *err)
{
	if (!c->schema)
		return check_skip(c, "the module has no table of keys (" RP_SCHEMA_1 ")");
	int r = conf_schema_check(c->schema, err);
	for (uint32_t i = 0; !r && i < c->schema->n_keys; i++) {
		const struct rp_key *key = &c->schema->keys[i];
		if (!key->doc || !*key->doc)
			check_note(c, "%s: no sentence of documentation", key->path);
	}
	return r;
}

/* Checks that a missing section is handled like any configuration: defaults apply, or it is refused
 * with a reason. */
static int no_section(struct check *c, struct err *err)
{
	struct rp_plan *plan;
	int bad = instance_prepare(c->rig->instance, NULL, &plan, err);
	if (!bad) {
		instance_abort(c->rig->instance, plan);
		return 0;
	}
	bad = rig_known_code(bad, "prepare", err);
	if (bad == RIG_REFUSED && strstr(err->text, "without an error text"))
		return err->code;
	return bad == RIG_REFUSED ? 0 : bad;
}

/* ---- the module's services ------------------------------------------------------------------- */

static const struct {
	const char *id;
	uint32_t least; /* size of the service in its first release */
} known[] = {
	{RP_POLICY_1, offsetof(struct rp_policy, event)},
	{RP_CONTROLLER_1, offsetof(struct rp_controller, pre_create)},
	{RP_ZONES_1, sizeof(struct rp_zones)},
	{RP_METRICS_1, sizeof(struct rp_metrics)},
	{RP_ALLOCATION_1, sizeof(struct rp_allocation)},
	{RP_DEVICES_1, sizeof(struct rp_devices)},
	{RP_STATE_1, sizeof(struct rp_state)},
	{RP_SCHEMA_1, sizeof(struct rp_schema)},
};

static int check_service(const struct rp_module *abi, struct rp_instance *inst, unsigned i,
			 struct err *err)
{
	const void *a = abi->service(inst, known[i].id), *b = abi->service(inst, known[i].id);
	uint32_t size = 0;
	if (a != b)
		return err_set(err, -EINVAL, "service(\"%s\") returns another struct each time",
			       known[i].id);
	if (a)
		memcpy(&size, a, sizeof size);
	if (a && (size < known[i].least || size > 4096))
		return err_set(err, -EBADMSG, "%s has size %u, at least %u is needed", known[i].id,
			       size, known[i].least);
	return 0;
}

static int cases_abi_services(struct check *c, struct err *err)
{
	static const char *const others[] = {"",  "nri-rp.policy",	  "nri-rp.policy/99",
					     "x", "nri-rp.controller/99", "com.example.nothing/1"};
	const struct rp_module *abi = c->module->abi;
	struct rp_instance *inst = rig_instance(c->rig);
	int bad = 0;
	for (unsigned i = 0; !bad && i < sizeof known / sizeof *known; i++)
		bad = check_service(abi, inst, i, err);
	for (unsigned i = 0; !bad && i < sizeof others / sizeof *others; i++)
		if (abi->service(inst, others[i]))
			bad = err_set(err, -EINVAL, "service(\"%s\") returns a struct", others[i]);
	if (!bad && abi->service(NULL, RP_SCHEMA_1) != abi->service(inst, RP_SCHEMA_1))
		bad = err_set(err, -EINVAL, "%s differs without an instance", RP_SCHEMA_1);
	return bad;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* Makes requests if the instance can be created and configured. A module may refuse to run on such
 * a host. */
static int cases_abi_live(struct check *c, struct shim *s, bool *ret_lives, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	struct churn churn;
	*ret_lives = false;
	int bad = rig_open(&r, c, s, err);
	bad = bad ? bad : rig_create(&r, err);
	bad = bad ? bad : rig_commit(&r, c->conf, err);
	if (bad)
		return bad == RIG_REFUSED ? 0 : bad;
	*ret_lives = true;
	if (instance_role(r.instance) != RP_KIND_POLICY)
		return 0;
	bad = rig_sync(&r, err);
	if (bad)
		return bad;
	churn_init(&churn, &r, c->seed);
	bad = churn_run(&churn, REQUESTS, err);
	return bad ? bad : churn_empty(&churn, err);
}

/* Checks that a repeatedly refused creation leaks nothing. */
static int refused_again(struct check *c, struct shim *s, const char *name, struct err *err)
{
	struct balances leaks;
	char what[96];
	bool lives;
	for (unsigned i = 0; i < BALANCE_ROUNDS; i++) {
		int bad = cases_abi_live(c, s, &lives, err);
		if (bad)
			return bad;
		balance_round(&leaks, i);
	}
	(void)snprintf(what, sizeof what, "refusing a host without %s", name);
	return balance_exact(&leaks, what, err);
}

static int missing_one(struct check *c, uint32_t withheld, const char *name, struct err *err)
{
	_cleanup_(shim_fini) struct shim s;
	bool lives = false;
	int bad = shim_init(&s, c);
	if (bad)
		return bad;
	s.withheld = withheld;
	check_doing(c, "on a host without %s", name);
	bad = cases_abi_live(c, &s, &lives, err);
	if (bad)
		return err_prefix(err, "on a host without %s: ", name);
	if (lives)
		return 0;
	check_note(c, "refuses to work without %s, with an error text", name);
	return refused_again(c, &s, name, err);
}

static int lives_well(struct check *c, struct shim *s, struct err *err)
{
	bool lives = false;
	int bad = cases_abi_live(c, s, &lives, err);
	if (!bad && !lives)
		return err->code;
	return bad;
}

/* Measures the calls of a usual run in one case, so that a slow module does not fail all other
 * cases. */
static int time_of_calls(struct check *c, struct err *err)
{
	_cleanup_(shim_fini) struct shim s;
	int bad = shim_init(&s, c);
	bad = bad ? bad : lives_well(c, &s, err);
	if (!bad && !c->o->reproduce)
		check_note(c, "%llu calls, the slowest, %s, with %.1f ms",
			   (unsigned long long)c->scene->n_calls, c->scene->slowest,
			   (double)c->scene->slowest_ns / 1e6);
	return bad;
}

/* Withholds services one at a time first, so that a crash names the service. */
static int cases_abi_missing(struct check *c, struct err *err)
{
	int r = 0;
	for (unsigned i = 0; !r && i < SHIM_SERVICES; i++) {
		r = missing_one(c, 1u << i, shim_services[i], err);
		r = r ? r : machine_make(c->machine, err);
	}
	return r ? r : missing_one(c, UINT32_MAX, "any service", err);
}

static int cases_abi_longer(struct check *c, struct err *err)
{
	_cleanup_(shim_fini) struct shim s;
	int bad = shim_init(&s, c);
	s.longer = true;
	check_doing(c, "on a host of a later minor version");
	bad = bad ? bad : lives_well(c, &s, err);
	return bad ? err_prefix(err, "on a host of a later minor version: ") : 0;
}

/* Runs on hosts of each minor version that the module supports. */
static int cases_abi_shorter(struct check *c, struct err *err)
{
	int bad = 0;
	for (uint32_t minor = RP_ABI_MINOR; !bad && minor-- > c->module->abi->min_host_minor;) {
		_cleanup_(shim_fini) struct shim s;
		bool lives = false;
		bad = shim_init(&s, c);
		s.minor = minor;
		check_doing(c, "on a host of ABI %u.%u", RP_ABI_MAJOR, minor);
		bad = bad ? bad : cases_abi_live(c, &s, &lives, err);
		if (bad)
			return err_prefix(err, "on a host of ABI %u.%u: ", RP_ABI_MAJOR, minor);
		if (!lives)
			check_note(c,
				   "refuses to work on a host of ABI %u.%u, with an error text: %s",
				   RP_ABI_MAJOR, minor, err->text);
		bad = machine_make(c->machine, err);
	}
	return bad;
}

static int cases_abi_rules(struct check *c, struct err *err)
{
	_cleanup_(shim_fini) struct shim s;
	int bad = shim_init(&s, c);
	bad = bad ? bad : lives_well(c, &s, err);
	if (!bad)
		check_note(c, "%llu calls of the host", (unsigned long long)s.n_calls);
	return bad;
}

static const struct check_case cases[] = {
	{"abi/config", 0, CASE_SMALL | CASE_GATE | CASE_OPEN, cases_abi_config,
	 "the smallest configuration, or that of --config, is accepted"},
	{"abi/time", 0, CASE_SMALL | CASE_GATE | CASE_CLOCK, time_of_calls,
	 "no call takes longer than --slow"},
	{"abi/table", 0, 0, cases_abi_table, "the table of keys is well-formed"},
	{"abi/unknown-keys", 0, 0, unknown_keys, "a key outside the table is refused"},
	{"abi/no-section", 0, CASE_SMALL | CASE_CREATED, no_section,
	 "without a section it works with defaults, or names the missing key"},
	{"abi/services", 0, CASE_SMALL | CASE_CREATED, cases_abi_services,
	 "unknown services return NULL, known services structs of their size"},
	{"abi/missing-services", 0, CASE_SMALL | CASE_SLOW, cases_abi_missing,
	 "without a service of the host it works, or refuses with an error text"},
	{"abi/longer-structs", 0, CASE_SMALL, cases_abi_longer,
	 "works on a host of a later minor version, with longer structs"},
	{"abi/shorter-structs", 0, CASE_SMALL | CASE_SLOW, cases_abi_shorter,
	 "works on a host of each earlier minor version that it declares, back to 1.0"},
	{"abi/rules", 0, CASE_SMALL, cases_abi_rules,
	 "host functions on the host's thread only, sizes set, results and texts as the headers "
	 "say"},
};

const struct check_group abi_cases = {cases, sizeof cases / sizeof *cases};
