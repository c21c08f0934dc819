/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: calculators on random nodes, with many, few and no data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/noderes.h"
#include "core/nri-rpd/noderes/result.h"
#include "core/nri-rpd/noderes/strategy.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/lib/util/cleanup.h"
#include "core/nri-rpd/noderes/pass.h"

#define NODES 200u
#define PODS_MAX 12u
#define ZONES_USED 4u
#define THIRD_PARTY "node.koordinator.sh/thirdPartyAllocations"

/* Inputs of one pass, with the arrays that they point to. */
struct node {
	struct nr_input in;
	struct rp_nr_pod pods[PODS_MAX];
	uint64_t bound[PODS_MAX];
	struct rp_nr_zone zones[ZONES_USED];
	struct rp_nr_app apps[2];
	struct kv annotations[2];
};

/* ---- random nodes ---------------------------------------------------------------------------- */

static void some_amounts(struct churn *c, unsigned bits, int64_t ret[RP_NR_AMOUNTS])
{
	ret[RP_NR_CPU] = (int64_t)churn_random(c, UINT64_C(1) << bits / 2);
	ret[RP_NR_MEMORY] = (int64_t)churn_random(c, UINT64_C(1) << bits);
}

static void make_pods(struct churn *c, struct node *n, unsigned bits)
{
	n->in.pods = n->pods;
	n->in.n_pods = (uint32_t)churn_random(c, PODS_MAX + 1);
	for (uint32_t i = 0; i < n->in.n_pods; i++) {
		struct rp_nr_pod *pod = &n->pods[i];
		n->bound[i] = churn_random(c, 2) ? churn_random(c, 32) : 0;
		*pod = (struct rp_nr_pod){.size = sizeof *pod,
					  .flags = (uint32_t)churn_random(c, 4),
					  .name = "p",
					  .qos = (uint32_t)churn_random(c, RP_KOORD_SYSTEM + 1),
					  .prio = (uint32_t)churn_random(c, RP_PRIO_FREE + 1),
					  .reported = (uint32_t)churn_random(c, RP_PRIO_FREE + 1),
					  .zones = {&n->bound[i], 1, 0}};
		some_amounts(c, bits, pod->request);
		some_amounts(c, bits, pod->usage);
	}
}

static void make_zones(struct churn *c, struct node *n, unsigned bits)
{
	n->in.zones = n->zones;
	n->in.n_zones = n->in.node.n_zones = (uint32_t)churn_random(c, ZONES_USED + 1);
	for (uint32_t i = 0; i < n->in.n_zones; i++) {
		n->zones[i] = (struct rp_nr_zone){.size = sizeof *n->zones, .id = i};
		some_amounts(c, bits, n->zones[i].allocatable);
	}
}

static void make_strategy(struct churn *c, struct nr_input *in)
{
	struct strategy s;
	strategy_defaults(&s);
	memcpy(in->strategy, s.values, sizeof in->strategy);
	in->strategy[RP_NR_ENABLE] = 1;
	in->strategy[RP_NR_CPU_RECLAIM_PERCENT] = (int64_t)churn_random(c, 300);
	in->strategy[RP_NR_CPU_POLICY] = (int64_t)churn_random(c, 3);
	in->strategy[RP_NR_MEMORY_RECLAIM_PERCENT] = (int64_t)churn_random(c, 300);
	in->strategy[RP_NR_MEMORY_POLICY] = (int64_t)churn_random(c, 3);
	in->strategy[RP_NR_MID_MODE] = (int64_t)churn_random(c, 2);
	in->strategy[RP_NR_MID_UNALLOCATED_PERCENT] = (int64_t)churn_random(c, 101);
	if (churn_random(c, 2))
		in->strategy[RP_NR_BATCH_CPU_PERCENT] = (int64_t)churn_random(c, 150);
}

/* Makes a random node. bits: size of the largest node in bytes; half as many bits for
 * milli-CPUs. */
static void make_node(struct churn *c, struct node *n, unsigned bits)
{
	*n = (struct node){.in = {.node = {.size = sizeof n->in.node},
				  .measured = {.size = sizeof n->in.measured},
				  .cpu = {.size = sizeof n->in.cpu, .model = "Some CPU"}}};
	struct rp_nr_measured *m = &n->in.measured;
	make_strategy(c, &n->in);
	some_amounts(c, bits, n->in.node.capacity);
	some_amounts(c, bits, n->in.node.allocatable);
	some_amounts(c, bits - 4, n->in.node.reserved);
	m->degraded = churn_random(c, 8) == 0;
	m->age_ms = churn_random(c, 8) ? (int64_t)churn_random(c, 60000) : RP_NOT_SET;
	some_amounts(c, bits, m->node);
	some_amounts(c, bits, m->system);
	some_amounts(c, bits, m->prod_reclaimable);
	if (churn_random(c, 4) == 0)
		m->prod_reclaimable[RP_NR_CPU] = m->prod_reclaimable[RP_NR_MEMORY] = RP_NOT_SET;
	make_zones(c, n, bits);
	make_pods(c, n, bits);
	n->in.apps = n->apps;
	n->in.n_apps = (uint32_t)churn_random(c, 3);
	for (uint32_t i = 0; i < n->in.n_apps; i++) {
		n->apps[i] =
			(struct rp_nr_app){.size = sizeof *n->apps,
					   .prio = (uint32_t)churn_random(c, RP_PRIO_FREE + 1)};
		some_amounts(c, bits, n->apps[i].usage);
	}
	n->in.cpu_known = churn_random(c, 2);
}

/* Makes a node without any measurements or pods. */
static void make_blind(struct node *n)
{
	struct strategy s;
	*n = (struct node){.in = {.node = {.size = sizeof n->in.node},
				  .measured = {.size = sizeof n->in.measured,
					       .degraded = 1,
					       .age_ms = RP_NOT_SET},
				  .cpu = {.size = sizeof n->in.cpu, .model = ""}}};
	strategy_defaults(&s);
	memcpy(n->in.strategy, s.values, sizeof n->in.strategy);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		n->in.measured.prod_reclaimable[k] = RP_NOT_SET;
}

/* ---- results --------------------------------------------------------------------------------- */

static void describe_pairs(const struct nr_pair *pairs, unsigned n, struct buf *out)
{
	for (unsigned i = 0; i < n; i++)
		(void)buf_printf(out, "%s = %s\n", pairs[i].key, pairs[i].value);
}

static void cases_calculator_describe(const struct nr_result *r, struct buf *out)
{
	for (unsigned i = 0; i < r->n_values; i++) {
		const struct nr_value *v = &r->values[i];
		(void)buf_printf(out, "%s %lld%s", v->name, (long long)v->quantity,
				 v->reset ? " reset" : "");
		for (uint32_t z = 0; z < v->n_zones; z++)
			(void)buf_printf(out, " %lld", (long long)v->zones[z]);
		(void)buf_printf(out, " %s\n", v->message ? v->message : "");
	}
	describe_pairs(r->labels, r->n_labels, out);
	describe_pairs(r->annotations, r->n_annotations, out);
}

static int cases_calculator_same(const struct nr_result *a, const struct nr_result *b,
				 const char *what, struct err *err)
{
	_cleanup_(buf_fini) struct buf one = BUF_INIT, other = BUF_INIT;
	cases_calculator_describe(a, &one);
	cases_calculator_describe(b, &other);
	return text_same(&one, &other, err, "%s returns something else", what);
}

/* Checks that no amount is negative and that reset resources have none. */
static int cases_calculator_sound(const struct nr_result *r, struct err *err)
{
	for (unsigned i = 0; i < r->n_values; i++) {
		const struct nr_value *v = &r->values[i];
		bool none = v->quantity == RP_NOT_SET;
		if (v->quantity < 0 && !none)
			return err_set(err, -EPROTO, "%s of %lld", v->name, (long long)v->quantity);
		for (uint32_t z = 0; z < v->n_zones; z++)
			if (v->zones[z] < 0)
				return err_set(err, -EPROTO, "%s of %lld in zone %u", v->name,
					       (long long)v->zones[z], z);
	}
	return 0;
}

/* Calls the calculator, which may fail and then has no results. */
static int cases_calculator_calculate(struct rig *r, const struct node *n, bool reset,
				      struct nr_result *ret)
{
	struct err failed[NR_CALCULATORS_MAX];
	const struct nr_asking how = {.reset = reset, .message = "it is a test"};
	r->env->noderes = &n->in;
	int bad = nr_calculate(&r->instance, 1, &how, ret, failed);
	r->env->noderes = NULL;
	return bad;
}

static int cases_calculator_apply(struct rig *r, const struct node *n,
				  const struct nr_result *result, struct nr_result *node)
{
	struct err failed[NR_CALCULATORS_MAX];
	r->env->noderes = &n->in;
	int bad = nr_apply(&r->instance, 1, result, node, NULL, failed);
	r->env->noderes = NULL;
	return bad;
}

/* Adds an allocation of a third party from the calculator's resource to the Node. */
static int put_others(struct rig *r, struct nr_result *node)
{
	char text[512];
	const char *name = instance_resources(r->instance)[0];
	if (!name)
		return 0;
	(void)snprintf(
		text, sizeof text,
		"{\"allocations\":[{\"name\":\"o\",\"priority\":\"koord-batch\",\"resources\":"
		"{\"%s\":\"10\"}}]}",
		name);
	return nr_result_annotate(node, THIRD_PARTY, text);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Applies a result to two equal Nodes, and once more to the outcome; all must be equal. */
static int put_on_nodes(struct rig *r, const struct node *n, const struct nr_result *result,
			struct err *err)
{
	_cleanup_(nr_result_fini) struct nr_result one = {0}, other = {0};
	int bad = put_others(r, &one);
	bad = bad ? bad : put_others(r, &other);
	bad = bad ? bad : cases_calculator_apply(r, n, result, &one);
	bad = bad ? bad : cases_calculator_apply(r, n, result, &other);
	bad = bad ? bad : cases_calculator_same(&one, &other, "apply() on an equal Node", err);
	bad = bad ? bad : cases_calculator_sound(&one, err);
	bad = bad ? bad : cases_calculator_apply(r, n, result, &one);
	return bad ? bad : cases_calculator_same(&other, &one, "apply() on its own outcome", err);
}

static int one_node(struct rig *r, const struct node *n, struct err *err)
{
	_cleanup_(nr_result_fini) struct nr_result one = {0}, other = {0};
	int bad = cases_calculator_calculate(r, n, false, &one);
	bad = bad ? bad : cases_calculator_calculate(r, n, false, &other);
	bad = bad ? bad : cases_calculator_same(&one, &other, "calculate() with equal inputs", err);
	bad = bad ? bad : cases_calculator_sound(&one, err);
	return bad ? bad : put_on_nodes(r, n, &one, err);
}

/* Checks that a reset removes all of the calculator's resources from the Node. */
static int reset_one(struct rig *r, const struct node *n, struct err *err)
{
	_cleanup_(nr_result_fini) struct nr_result before = {0}, none = {0}, node = {0};
	int bad = cases_calculator_calculate(r, n, false, &before);
	bad = bad ? bad : cases_calculator_apply(r, n, &before, &node);
	bad = bad ? bad : cases_calculator_calculate(r, n, true, &none);
	bad = bad ? bad : cases_calculator_apply(r, n, &none, &node);
	for (const char *const *name = instance_resources(r->instance); !bad && *name; name++)
		if (nr_result_value(&node, *name))
			bad = err_set(err, -EPROTO, "%s exists after a reset", *name);
	return bad;
}

static int cases_calculator_run(struct check *c,
				int (*one)(struct rig *r, const struct node *n, struct err *err),
				struct err *err)
{
	struct node n;
	int bad = rig_commit(c->rig, c->conf, err);
	for (unsigned i = 0; !bad && i < NODES; i++) {
		make_node(c->churn, &n, (unsigned)c->detail);
		bad = one(c->rig, &n, err);
	}
	make_blind(&n);
	bad = bad ? bad : one(c->rig, &n, err);
	rig_destroy(c->rig);
	return bad;
}

static int equal_inputs(struct check *c, struct err *err)
{
	return cases_calculator_run(c, one_node, err);
}

static int reset(struct check *c, struct err *err)
{
	return cases_calculator_run(c, reset_one, err);
}

static const struct check_case cases[] = {
	{"calculator/same", RP_KIND_CALCULATOR,
	 CASE_SMALL | CASE_SEEDS | CASE_CREATED | CASE_DETAIL(40), equal_inputs,
	 "equal inputs give equal items, an equal Node the same Node, and no amount is negative"},
	{"calculator/large", RP_KIND_CALCULATOR,
	 CASE_SMALL | CASE_SEEDS | CASE_CREATED | CASE_DETAIL(50), equal_inputs,
	 "the same with amounts up to the largest possible"},
	{"calculator/reset", RP_KIND_CALCULATOR,
	 CASE_SMALL | CASE_SEEDS | CASE_CREATED | CASE_DETAIL(40), reset,
	 "after a reset the Node has none of its resources"},
};

const struct check_group calculator_cases = {cases, sizeof cases / sizeof *cases};
