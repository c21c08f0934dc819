/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of expectations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-sim/expect_internal.h"
#include "core/nri-rp-sim/files.h"
#include "core/nri-rp-sim/kubelet.h"
#include "core/nri-rp-sim/model.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define ARGS_MAX 24u

struct call {
	struct parser *p;
	const struct function *f;
	struct value *args;
	unsigned n;
	struct value *ret;
};

struct function {
	const char *name;
	unsigned min, max; /* limits of the number of arguments */
	enum { CTR = 1, SETS } first; /* kind of the first argument, or of all that are no text */
	const char *text; /* content of the last argument, a text; NULL: another kind */
	int (*run)(struct call *c);
	int detail; /* variant, for functions that share their code */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static int functions_wrong(const struct call *c, const char *expected)
{
	return err_set(c->p->err, -EINVAL, "%s: %s: expected %s", c->p->whole, c->f->name,
		       expected);
}

/* Checks the kinds of all arguments, and converts lists of CPUs or nodes to sets. */
static int functions_check(const struct call *c)
{
	unsigned n = c->f->text ? c->n - 1 : c->n;
	int r = 0;
	if (c->f->first == CTR && c->args[0].kind != V_CTR)
		return functions_wrong(c, "a container");
	for (unsigned i = 0; !r && c->f->first == SETS && i < n; i++)
		r = value_to_set(c->p, &c->args[i]);
	if (!r && c->f->text && c->args[n].kind != V_TEXT)
		r = functions_wrong(c, c->f->text);
	return r;
}

/* ---- functions of containers ----------------------------------------------------------------- */

static int f_cpus(struct call *c)
{
	c->ret->kind = V_SET;
	if (c->f->detail)
		model_mems(c->p->s, c->args[0].ctr, &c->ret->set);
	else
		model_cpus(c->p->s, c->args[0].ctr, &c->ret->set);
	return 0;
}

enum { N_SHARES, N_QUOTA, N_PERIOD, N_MEMORY_LIMIT, N_OOM, N_UPDATES, N_MOVES, N_PINNED, N_ALIVE };

static int64_t number_of(const struct sim_ctr *t, int which)
{
	switch (which) {
	case N_SHARES:
		return t->res.shares;
	case N_QUOTA:
		return t->res.quota;
	case N_PERIOD:
		return t->res.period;
	case N_MEMORY_LIMIT:
		return t->res.memory_limit;
	case N_OOM:
		return t->oom_score_adj;
	case N_UPDATES:
		return (int64_t)t->n_updates;
	case N_MOVES:
		return (int64_t)t->n_moves;
	case N_PINNED:
		return *t->res.cpus != '\0';
	default:
		return t->state != CTR_EXITED;
	}
}

static int f_number(struct call *c)
{
	int64_t number = number_of(c->args[0].ctr, c->f->detail);
	value_number(c->ret, number == SIM_NOT_SET ? -1 : number);
	return 0;
}

enum { T_QOS, T_STATE, T_RDT, T_BLOCKIO, T_ENV, T_ANNOTATION, T_UNIFIED };

static const char *text_of(const struct sim_ctr *t, int which, const char *key)
{
	static const char *const maps[] = {
		[T_ENV] = "env", [T_ANNOTATION] = "annotations", [T_UNIFIED] = "unified"};
	switch (which) {
	case T_QOS:
		return kubelet_qos_name(t->pod->qos);
	case T_STATE:
		return model_state_name(t->state);
	case T_RDT:
		return json_string_value(json_object_get(t->given, "rdt"));
	case T_BLOCKIO:
		return json_string_value(json_object_get(t->given, "blockio"));
	default:
		return json_string_value(
			json_object_get(json_object_get(t->given, maps[which]), key));
	}
}

static int f_text(struct call *c)
{
	const char *text =
		text_of(c->args[0].ctr, c->f->detail, c->n == 2 ? c->args[1].text : NULL);
	value_text(c->ret, text ? text : "", text ? strlen(text) : 0);
	return 0;
}

/* Returns a member of the plugin's adjustments, such as scheduler/nice or args/0. */
static int f_given(struct call *c)
{
	const json_t *node = c->args[0].ctr->given;
	char path[VALUE_TEXT_MAX], number[ARG_NUMBER_MAX];
	(void)snprintf(path, sizeof path, "%s", c->args[1].text);
	for (char *key, *rest = path; (key = strsep(&rest, "/"));)
		node = json_is_array(node) ? json_array_get(node, strtoul(key, NULL, 10))
					   : json_object_get(node, key);
	const char *text = node ? arg_scalar(node, number) : "";
	if (json_is_integer(node))
		value_number(c->ret, json_integer_value(node));
	else
		value_text(c->ret, text ? text : "", text ? strlen(text) : 0);
	return 0;
}

/* ---- functions of files ---------------------------------------------------------------------- */

static int take_file(struct call *c, int r, const char *name, char *text)
{
	if (r)
		return err_errno(c->p->err, r == -EINVAL ? -EIO : r, "%s: %s", c->f->name, name);
	if (strlen(text) >= VALUE_TEXT_MAX)
		r = err_set(c->p->err, -EFBIG, "%s: %s has more than %u bytes", c->f->name, name,
			    VALUE_TEXT_MAX);
	else
		value_text(c->ret, text, strlen(text));
	free(text);
	return r;
}

static int f_file(struct call *c)
{
	char *text = NULL;
	int r = files_read(c->p->s, c->args[0].text, &text);
	return take_file(c, r, c->args[0].text, text);
}

static int f_exported(struct call *c)
{
	value_text(c->ret, "", 0);
	files_exported(c->args[0].ctr, c->args[1].text, c->ret->text, sizeof c->ret->text);
	return 0;
}

static int f_cgroup(struct call *c)
{
	char *text = NULL;
	int r = files_read_cgroup(c->p->s, c->args[0].ctr, c->args[1].text, &text);
	return take_file(c, r, c->args[1].text, text);
}

/* Reads a file of each of the CPUs. Returns the content if all are equal, otherwise "not the
 * same". */
static int f_cpufile(struct call *c)
{
	bool first = true, same = true;
	struct value one = {0};
	for (uint32_t cpu = 0; cpu < RP_CPUS_MAX; cpu++) {
		char path[VALUE_TEXT_MAX + 64], *text = NULL;
		if (!rp_ids_has(rp_ids_of(&c->args[0].set), cpu))
			continue;
		(void)snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/%s", cpu,
			       c->args[1].text);
		int r = files_read(c->p->s, path, &text);
		r = take_file(c, r, path, text);
		if (r)
			return r;
		if (!first && !str_eq(one.text, c->ret->text))
			same = false;
		first = false;
		value_text(&one, c->ret->text, strlen(c->ret->text));
	}
	if (first || !same)
		value_text(c->ret, "they differ", strlen("they differ"));
	return 0;
}

/* ---- functions of sets ----------------------------------------------------------------------- */

static int f_count(struct call *c)
{
	value_number(c->ret, rp_ids_count(rp_ids_of(&c->args[0].set)));
	return 0;
}

static int f_disjoint(struct call *c)
{
	bool apart = true;
	for (unsigned i = 0; i < c->n; i++)
		for (unsigned k = 0; k < i; k++)
			apart &= !rp_ids_overlap(rp_ids_of(&c->args[i].set),
						 rp_ids_of(&c->args[k].set));
	value_number(c->ret, apart);
	return 0;
}

static int f_union(struct call *c)
{
	c->ret->kind = V_SET;
	rp_idset_clear(&c->ret->set);
	for (unsigned i = 0; i < c->n; i++)
		rp_idset_or(&c->ret->set, rp_ids_of(&c->ret->set), rp_ids_of(&c->args[i].set));
	return 0;
}

/* Returns the units that contain the CPUs. */
static int f_units(struct call *c)
{
	uint32_t level = (uint32_t)c->f->detail;
	c->ret->kind = V_SET;
	rp_idset_clear(&c->ret->set);
	RP_IDS_EACH (cpu, rp_ids_of(&c->args[0].set)) {
		struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
		if (topo_cpu(c->p->s->topo, cpu, &info))
			continue;
		uint32_t unit = level == RP_LEVEL_NODE ? info.node_id : info.unit[level];
		if (unit != RP_IDSET_NONE)
			rp_idset_add(&c->ret->set, unit);
	}
	return 0;
}

/* Returns the CPUs of the units. */
static int f_unit_cpus(struct call *c)
{
	const struct topo *topo = c->p->s->topo;
	uint32_t level = (uint32_t)c->f->detail;
	c->ret->kind = V_SET;
	rp_idset_clear(&c->ret->set);
	RP_IDS_EACH (unit, rp_ids_of(&c->args[0].set)) {
		struct rp_unit_info info = {.size = sizeof info};
		struct rp_node_info node = {.size = sizeof node};
		if (level == RP_LEVEL_NODE && !topo_node(topo, unit, &node))
			rp_idset_or(&c->ret->set, rp_ids_of(&c->ret->set), node.cpus);
		else if (level != RP_LEVEL_NODE && !topo_unit(topo, level, unit, &info))
			rp_idset_or(&c->ret->set, rp_ids_of(&c->ret->set), info.cpus);
	}
	return 0;
}

static const struct function functions[] = {
	{"cpus", 1, 1, CTR, NULL, f_cpus, 0},
	{"mems", 1, 1, CTR, NULL, f_cpus, 1},
	{"shares", 1, 1, CTR, NULL, f_number, N_SHARES},
	{"quota", 1, 1, CTR, NULL, f_number, N_QUOTA},
	{"period", 1, 1, CTR, NULL, f_number, N_PERIOD},
	{"memory_limit", 1, 1, CTR, NULL, f_number, N_MEMORY_LIMIT},
	{"oom_score_adj", 1, 1, CTR, NULL, f_number, N_OOM},
	{"updates", 1, 1, CTR, NULL, f_number, N_UPDATES},
	{"moves", 1, 1, CTR, NULL, f_number, N_MOVES},
	{"pinned", 1, 1, CTR, NULL, f_number, N_PINNED},
	{"alive", 1, 1, CTR, NULL, f_number, N_ALIVE},
	{"qos", 1, 1, CTR, NULL, f_text, T_QOS},
	{"state", 1, 1, CTR, NULL, f_text, T_STATE},
	{"rdt", 1, 1, CTR, NULL, f_text, T_RDT},
	{"blockio", 1, 1, CTR, NULL, f_text, T_BLOCKIO},
	{"env", 2, 2, CTR, "a text in quotes", f_text, T_ENV},
	{"annotation", 2, 2, CTR, "a text in quotes", f_text, T_ANNOTATION},
	{"unified", 2, 2, CTR, "a text in quotes", f_text, T_UNIFIED},
	{"given", 2, 2, CTR, "a text in quotes", f_given, 0},
	{"file", 1, 1, 0, "a path in quotes", f_file, 0},
	{"exported", 2, 2, CTR, "a variable's name in quotes", f_exported, 0},
	{"cgroup", 2, 2, CTR, "a file's name in quotes", f_cgroup, 0},
	{"cpufile", 2, 2, SETS, "a file's name in quotes", f_cpufile, 0},
	{"count", 1, 1, SETS, NULL, f_count, 0},
	{"disjoint", 2, ARGS_MAX, SETS, NULL, f_disjoint, 0},
	{"union", 1, ARGS_MAX, SETS, NULL, f_union, 0},
	{"cores", 1, 1, SETS, NULL, f_units, RP_LEVEL_CORE},
	{"l3s", 1, 1, SETS, NULL, f_units, RP_LEVEL_L3},
	{"nodes", 1, 1, SETS, NULL, f_units, RP_LEVEL_NODE},
	{"dies", 1, 1, SETS, NULL, f_units, RP_LEVEL_DIE},
	{"packages", 1, 1, SETS, NULL, f_units, RP_LEVEL_PACKAGE},
	{"core", 1, 1, SETS, NULL, f_unit_cpus, RP_LEVEL_CORE},
	{"l3", 1, 1, SETS, NULL, f_unit_cpus, RP_LEVEL_L3},
	{"node", 1, 1, SETS, NULL, f_unit_cpus, RP_LEVEL_NODE},
	{"die", 1, 1, SETS, NULL, f_unit_cpus, RP_LEVEL_DIE},
	{"package", 1, 1, SETS, NULL, f_unit_cpus, RP_LEVEL_PACKAGE},
};
#define N_FUNCTIONS (sizeof functions / sizeof functions[0])

/* ---- names ----------------------------------------------------------------------------------- */

static bool machine_value(const struct sim *s, const char *name, struct value *v)
{
	const struct {
		const char *name;
		struct rp_ids set;
	} sets[] = {{"online", topo_ids(s->topo, RP_CPUS_ONLINE)},
		    {"present", topo_ids(s->topo, RP_CPUS_PRESENT)},
		    {"isolated", topo_ids(s->topo, RP_CPUS_ISOLATED)},
		    {"memory", sim_memory(s)}};
	for (unsigned i = 0; i < sizeof sets / sizeof *sets; i++) {
		if (!str_eq(sets[i].name, name))
			continue;
		v->kind = V_SET;
		rp_idset_copy(&v->set, sets[i].set);
		return true;
	}
	const struct {
		const char *name;
		uint64_t number;
	} numbers[] = {{"unsolicited", s->n_unsolicited}, {"needless", s->n_needless}};
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (!str_eq(numbers[i].name, name))
			continue;
		value_number(v, (int64_t)numbers[i].number);
		return true;
	}
	return false;
}

static const struct function *function_named(const char *name)
{
	for (unsigned i = 0; i < N_FUNCTIONS; i++)
		if (str_eq(functions[i].name, name))
			return &functions[i];
	return NULL;
}

static int unknown_function(const struct parser *p, const char *name)
{
	const char *names[N_FUNCTIONS];
	for (unsigned i = 0; i < N_FUNCTIONS; i++)
		names[i] = functions[i].name;
	const char *close = str_closest(name, names, N_FUNCTIONS);
	return err_set(p->err, -EINVAL, "%s: unknown function \"%s\"%s%s%s", p->whole, name,
		       close ? ", did you mean \"" : "", close ? close : "", close ? "\"?" : "");
}

static int parse_args(struct parser *p, struct value *args, unsigned *ret_n)
{
	unsigned n = 0;
	parser_advance(p); /* skips the "(" */
	while (p->word != W_CLOSE) {
		if (n == ARGS_MAX)
			return parser_wrong(p, "fewer arguments");
		int r = parser_expression(p, &args[n++]);
		if (r)
			return r;
		if (p->word == W_COMMA)
			parser_advance(p);
		else if (p->word != W_CLOSE)
			return parser_wrong(p, "\",\" or \")\"");
	}
	*ret_n = n;
	return 0;
}

static void functions_explain(const struct call *c, const char *begin, const char *end)
{
	if (!c->p->why)
		return;
	buf_printf(c->p->why, "  %.*s is ", (int)(end - begin), begin);
	value_add_to(c->ret, c->p->why);
	buf_add_str(c->p->why, "\n");
}

static int functions_call(struct parser *p, const char *name, const char *begin, struct value *v)
{
	_free_ struct value *args = calloc(ARGS_MAX, sizeof *args);
	struct call c = {.p = p, .f = function_named(name), .args = args, .ret = v};
	if (!c.f)
		return unknown_function(p, name);
	if (!args)
		return err_errno(p->err, -ENOMEM, "expectation");
	int r = parse_args(p, args, &c.n);
	if (r)
		return r;
	if (c.n < c.f->min || c.n > c.f->max)
		return err_set(p->err, -EINVAL, "%s: %s takes %u to %u arguments", p->whole, name,
			       c.f->min, c.f->max);
	r = functions_check(&c);
	if (!r)
		r = c.f->run(&c);
	if (!r)
		functions_explain(&c, begin, p->next);
	parser_advance(p);
	return r;
}

int function_parse(struct parser *p, struct value *v)
{
	char name[256];
	const char *begin = p->at;
	if (p->len >= sizeof name)
		return parser_wrong(p, "a shorter name");
	(void)snprintf(name, sizeof name, "%.*s", (int)p->len, p->text);
	parser_advance(p);
	if (p->word == W_OPEN)
		return functions_call(p, name, begin, v);
	if (machine_value(p->s, name, v))
		return 0;
	if (str_eq(name, "true") || str_eq(name, "false")) {
		value_number(v, *name == 't');
		return 0;
	}
	v->kind = V_CTR;
	v->ctr = model_find_ctr(p->s, name);
	if (!v->ctr)
		return err_set(p->err, -ENOENT, "%s: unknown container \"%s\"", p->whole, name);
	return 0;
}
