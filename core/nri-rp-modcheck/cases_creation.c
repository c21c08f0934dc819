/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: two modules request the same creation value, hints of other components, and runtimes with
 * fewer abilities. */
#include <stdio.h>
#include <string.h>

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/lib/util/cleanup.h"
#include "core/nri-rpd/cache/extras_check.h"

#define WISHES 40u
#define ASKED_MAX 16u
#define TEXT_MAX 256u
#define REQUESTS 40u
#define OTHER "another"

/* ---- conflicting requests -------------------------------------------------------------------- */

struct asked {
	struct extra e;
	char key[TEXT_MAX], text[TEXT_MAX];
	struct rp_mount mount;
	struct rp_device device;
	char source[TEXT_MAX], type[32], options[TEXT_MAX];
};

struct creating {
	struct rig rig;
	struct asked asked[ASKED_MAX];
	unsigned n;
	const struct extra *others; /* earlier requests of another module; NULL: none */
};

static bool cases_creation_keep(char *to, size_t size, const char *from, const char **ret)
{
	*ret = to;
	return snprintf(to, size, "%s", from) < (int)size;
}

/* Copies a request of the module. Returns false if its text is too long. */
static bool keep_asked(struct asked *a, const struct extra *e)
{
	bool ok = true;
	a->e = *e;
	a->e.by = OTHER;
	if (e->key)
		ok = cases_creation_keep(a->key, sizeof a->key, e->key, &a->e.key);
	if (e->text)
		ok = ok && cases_creation_keep(a->text, sizeof a->text, e->text, &a->e.text);
	if (e->mount) {
		a->mount = *e->mount;
		a->mount.destination = a->key;
		ok = ok &&
		     cases_creation_keep(a->source, sizeof a->source, e->mount->source,
					 &a->mount.source) &&
		     cases_creation_keep(a->type, sizeof a->type, e->mount->type, &a->mount.type) &&
		     cases_creation_keep(a->options, sizeof a->options, e->mount->options,
					 &a->mount.options);
		a->e.mount = &a->mount;
	}
	if (e->device) {
		a->device = *e->device;
		a->device.path = a->key;
		ok = ok &&
		     cases_creation_keep(a->type, sizeof a->type, e->device->type, &a->device.type);
		a->e.device = &a->device;
	}
	return ok;
}

static void at_allocate(struct shim *s, bool after)
{
	struct creating *c =
		(struct creating *)((char *)s - offsetof(struct creating, rig.own_shim));
	struct extras *x = txn_extras(rig_txn(&c->rig));
	struct err ignored = ERR_INIT;
	if (!after && c->others)
		(void)extras_put(x, c->others, &ignored);
	for (uint32_t i = 0; after && !c->others && i < x->n && c->n < ASKED_MAX; i++)
		c->n += keep_asked(&c->asked[c->n], &x->list[i]);
}

/* Changes the request to another valid value. Returns false if there is none. */
static bool cases_creation_otherwise(struct asked *a)
{
	size_t len = strlen(a->text);
	if (a->e.mount)
		a->mount.read_only = !a->mount.read_only;
	else if (a->e.device)
		a->device.minor = a->device.minor ? 0 : 1;
	else if (a->e.field == EXTRA_CDI)
		return false; /* a CDI device has only a name */
	else if (!a->e.text)
		a->e.number = a->e.number ? a->e.number - 1 : 1;
	else if (len + 2 > TEXT_MAX)
		return false;
	else
		memcpy(a->text + len, "1", 2);
	return extra_check(&a->e, NULL) == 0;
}

/* Checks that a module whose request fails with -RP_EBUSY either refuses the container or continues
 * without the value. */
static int two_ask(struct creating *c, const struct wish *w, struct asked *a, struct err *err)
{
	struct rig *r = &c->rig;
	struct ctr *ctr;
	char what[TEXT_MAX + 64];
	(void)snprintf(what, sizeof what, "%s%s%s", extra_name(a->e.field), a->e.key ? " " : "",
		       a->e.key ? a->e.key : "");
	c->others = &a->e;
	check_doing(r->check, "when another component requests the same %s", what);
	int bad = rig_add(r, w, &ctr, err);
	if (bad == RIG_REFUSED)
		return err_set(err, -EINVAL,
			       "a container is refused because another component requests %s with "
			       "the same value: %s",
			       what, err->text);
	bad = bad ? bad : rig_remove(r, ctr, err);
	if (bad || !cases_creation_otherwise(a))
		return bad;
	check_doing(r->check, "when another component requests %s with another value", what);
	bad = rig_add(r, w, &ctr, err);
	if (bad)
		return rig_settle(bad);
	return rig_remove(r, ctr, err);
}

static int one_wish(struct creating *c, const struct wish *w, struct err *err)
{
	struct rig *r = &c->rig;
	struct ctr *ctr;
	c->others = NULL;
	c->n = 0;
	int bad = rig_add(r, w, &ctr, err);
	if (bad)
		return rig_settle(bad);
	bad = rig_remove(r, ctr, err);
	for (unsigned i = 0; !bad && i < c->n; i++)
		bad = two_ask(c, w, &c->asked[i], err);
	return bad;
}

static int cases_creation_conflict(struct check *check, struct err *err)
{
	_free_ struct creating *c = calloc(1, sizeof *c);
	struct churn churn;
	unsigned n = 0;
	if (!c)
		return -ENOMEM;
	struct rig *r = &c->rig;
	r->check = check;
	int bad = churn_begin(&churn, r, check, err);
	r->own_shim.at_allocate = at_allocate;
	for (unsigned i = 0; !bad && i < WISHES; i++) {
		struct wish w;
		churn_wish(&churn, &w);
		bad = one_wish(c, &w, err);
		n += c->n;
	}
	rig_close(r);
	if (!bad && !n)
		return check_skip(check, "it requests no settings that only a creation can set");
	if (!bad)
		check_note(check, "%u values that another component also requests", n);
	return bad;
}

/* ---- runtimes -------------------------------------------------------------------------------- */

static int cases_creation_runtimes(struct check *c, struct err *err)
{
	static const uint32_t both = RP_RUNTIME_CAN_REFUSE | RP_RUNTIME_CAN_INJECT;
	static const uint32_t flags[] = {0,
					 RP_RUNTIME_CAN_REFUSE,
					 RP_RUNTIME_CAN_INJECT,
					 RP_RUNTIME_CREATION_IS_LATE,
					 UINT32_MAX & ~RP_RUNTIME_CREATION_IS_LATE,
					 both};
	struct runtime_facts facts = {.name = "a runtime", .version = "0"};
	struct rig *r = c->rig;
	r->env->runtime = &facts;
	int bad = rig_start(r, err);
	for (unsigned i = 0; !bad && i < sizeof flags / sizeof *flags; i++) {
		check_doing(c, "with a runtime that supports 0x%x", flags[i]);
		facts.flags = flags[i];
		bad = rig_sync(r, err);
		if (!bad && instance_knows(r->instance, 3))
			bad = rig_settle(rig_event(r, RP_EVENT_RUNTIME, NULL, err));
		bad = bad ? bad : churn_run(c->churn, REQUESTS, err);
	}
	return bad ? bad : churn_empty(c->churn, err);
}

/* ---- hints of other components --------------------------------------------------------------- */

#define LISTS 4u
#define NO_NODE 63u /* a node that the machine does not have; providers may name one */

struct provider {
	struct rig *rig;
	unsigned n_asked, n_chosen;
	struct err bad;
};

static const struct {
	const char *ctr, *resource;
	uint32_t flags, n;
	const char *nodes[2]; /* the first one is preferred */
} lists[LISTS] = {
	{"", "vendor.example/gpu", RP_HINTS_MAIN, 2, {"0", "0-1"}},
	{"sidecar", "vendor.example/nic", 0, 2, {"1", "63"}},
	{"", "vendor.example/none", RP_HINTS_NOTHING_FITS, 0, {NULL}},
	{"", "vendor.example/any", RP_HINTS_MAIN, 0, {NULL}},
};

/* The provider of the running case: the pipeline passes its own argument to the functions below. */
static struct provider *provider_asked;

static bool cases_creation_admits(const struct provider *p, rp_pod pod)
{
	const char *id = p->rig->admitting;
	return id && rig_txn(p->rig) && cache_pod(p->rig->env->cache, id)->handle == pod;
}

static int hint_list(rp_pod pod, uint32_t list, struct rp_hint_list *ret, void *arg)
{
	struct provider *p = provider_asked;
	if (!cases_creation_admits(p, pod) || list >= LISTS)
		return -RP_ENOENT;
	p->n_asked++;
	*ret = (struct rp_hint_list){.size = sizeof *ret,
				     .flags = lists[list].flags,
				     .ctr = lists[list].ctr,
				     .resource = lists[list].resource,
				     .n = lists[list].n};
	return 0;
}

static int hint_of(rp_pod pod, uint32_t list, uint32_t index, struct rp_hint *ret, void *arg)
{
	static struct rp_idset nodes; /* valid until the callback returns */
	if (!cases_creation_admits(provider_asked, pod) || list >= LISTS || index >= lists[list].n)
		return -RP_ENOENT;
	(void)rp_idset_parse(&nodes, lists[list].nodes[index], NO_NODE + 1);
	*ret = (struct rp_hint){
		.size = sizeof *ret, .preferred = !index, .nodes = rp_ids_of(&nodes)};
	return 0;
}

static int cases_creation_choose(rp_pod pod, uint32_t list, struct rp_ids nodes, bool preferred,
				 void *arg)
{
	struct provider *p = provider_asked;
	struct rp_idset offered;
	if (!cases_creation_admits(p, pod) || list >= LISTS)
		return -RP_ENOENT;
	p->n_chosen++;
	if (rp_ids_subset(nodes, topo_ids(p->rig->env->topo, RP_NODES_ONLINE)))
		return 0;
	for (uint32_t i = 0; i < lists[list].n; i++)
		if (!rp_idset_parse(&offered, lists[list].nodes[i], NO_NODE + 1) &&
		    rp_ids_equal(nodes, rp_ids_of(&offered)))
			return 0;
	if (!p->bad.code)
		(void)err_set(
			&p->bad, -EINVAL,
			"choose() for %s returns nodes that are neither on the node nor in a hint",
			lists[list].resource);
	return 0;
}

static int cases_creation_hints(struct check *c, struct err *err)
{
	static const struct hint_ops ops = {hint_list, hint_of, cases_creation_choose};
	struct provider p = {.rig = c->rig};
	provider_asked = &p;
	c->rig->env->hints = &ops;
	int bad = rig_start(c->rig, err);
	bad = bad ? bad : churn_run(c->churn, 2 * REQUESTS, err);
	bad = bad ? bad : churn_empty(c->churn, err);
	c->rig->env->hints = NULL;
	if (!bad && p.bad.code)
		return err_set(err, p.bad.code, "%s", p.bad.text);
	if (!bad && !p.n_asked)
		return check_skip(c, "it does not request hints");
	if (!bad)
		check_note(c, "%u lists read, %u choices", p.n_asked, p.n_chosen);
	return bad;
}

static const struct check_case cases[] = {
	{"creation/conflict", RP_KIND_POLICY, CASE_SMALL, cases_creation_conflict,
	 "another component requests the same or other values that only a creation can set: equal "
	 "values are merged, and -RP_EBUSY is handled"},
	{"creation/runtimes", RP_KIND_POLICY, CASE_SMALL | CASE_OPEN, cases_creation_runtimes,
	 "runtimes that cannot refuse, cannot inject, report containers that already run, and "
	 "change meanwhile"},
	{"creation/hints", RP_KIND_POLICY, CASE_SMALL | CASE_OPEN, cases_creation_hints,
	 "hints of external providers: preferred nodes, no fit, no opinion, unknown nodes"},
};

const struct check_group creation_cases = {cases, sizeof cases / sizeof *cases};
