/* SPDX-License-Identifier: Apache-2.0 */
/* The merged tree against the tables. */
#include "core/conf/internal.h"

#include "core/util/str.h"

#define CANDIDATES_MAX 256u /* keys that a suggestion is looked for in */

/* ---- spelling ---------------------------------------------------------------------------------------------------- */

static void fold_node(struct conf_errors *errs, struct rp_cfg_node *node,
		      const struct schema_node *s);

static void fold_members(struct conf_errors *errs, struct rp_cfg_node *map,
			 const struct schema_node *s)
{
	for (uint32_t i = 0; i < map->n;) {
		struct conf_member *m = &map->members[i];
		const struct schema_node *child = schema_child(s, m->key, true);
		const struct rp_cfg_node *twin = NULL;
		if (child && child != s->any && !str_eq(child->key.path, m->key)) {
			twin = node_child(map, child->key.path);
			node_rename(m, child->key.path);
		}
		if (twin) {
			char first[CONF_PLACE_MAX];
			(void)problem_node(errs, m->node, NULL, "given twice, first as %s at %s",
					   twin->written, conf_where(twin, first, sizeof first));
			node_remove(map, m);
			continue;
		}
		fold_node(errs, m->node, child);
		i++;
	}
}

static void fold_node(struct conf_errors *errs, struct rp_cfg_node *node,
		      const struct schema_node *s)
{
	if (schema_open(s))
		return;
	if (node_is(node, RP_NODE_MAP) && s->key.type == RP_T_MAP)
		fold_members(errs, node, s);
	for (uint32_t i = 0; node_is(node, RP_NODE_LIST) && s->elem && i < node->n; i++)
		fold_node(errs, node->members[i].node, s->elem);
}

void check_spelling(struct conf_errors *errs, struct rp_cfg_node *section,
		    const struct schema_tree *schema)
{
	if (schema->fold)
		fold_node(errs, section, &schema->root);
}

/* ---- one table --------------------------------------------------------------------------------------------------- */

struct check {
	struct conf_errors *errs;
	bool strict;
};

/* The key of s that somebody may have meant; NULL when none is close. */
static const char *suggest(const struct schema_node *s, const char *key, bool maps_only)
{
	const char *names[CANDIDATES_MAX];
	unsigned n = 0;
	for (const struct schema_node *c = s->first; c && n < CANDIDATES_MAX; c = c->next)
		if (!maps_only || c->key.type == RP_T_MAP)
			names[n++] = c->key.path;
	return str_closest(key, names, n);
}

static void unknown_key(const struct check *c, const struct schema_node *s,
			const struct conf_member *m)
{
	const char *close = suggest(s, m->key, false);
	const char *before = close ? ", did you mean " : "", *after = close ? "?" : "";
	if (c->strict)
		(void)problem_node(c->errs, m->node, NULL, "unknown key%s%s%s", before,
				   close ? close : "", after);
	else
		warning_node(c->errs, m->node, NULL, "unknown key%s%s%s", before,
			     close ? close : "", after);
}

static void check_node(const struct check *c, const struct schema_node *s, rp_cfg node);

static void check_map(const struct check *c, const struct schema_node *s, rp_cfg map)
{
	for (uint32_t i = 0; i < map->n; i++) {
		const struct schema_node *child = schema_child(s, map->members[i].key, false);
		if (child)
			check_node(c, child, map->members[i].node);
		else
			unknown_key(c, s, &map->members[i]);
	}
	for (const struct schema_node *child = s->first; child; child = child->next)
		if ((child->key.flags & RP_KEY_REQUIRED) && !node_set(map, child->key.path))
			(void)problem_node(c->errs, map, child->key.path,
					   "required, but not there");
}

static void check_list(const struct check *c, const struct schema_node *s, rp_cfg list)
{
	char expected[CONF_PROBLEM_TEXT_MAX];
	for (uint32_t i = 0; i < list->n; i++) {
		rp_cfg item = list->members[i].node;
		if (node_is(item, RP_NODE_NULL) && s->elem->key.type != RP_T_ANY)
			(void)problem_node(
				c->errs, item, NULL, "expected %s, found nothing",
				value_expected(&s->elem->key, expected, sizeof expected));
		check_node(c, s->elem, item);
	}
}

static void check_node(const struct check *c, const struct schema_node *s, rp_cfg node)
{
	uint32_t type = s->key.type;
	if (type == RP_T_ANY || node_is(node, RP_NODE_NULL))
		return;
	if (type != RP_T_MAP && type != RP_T_LIST) {
		(void)value_check(node, &s->key, c->errs);
		return;
	}
	bool fits = node_is(node, type == RP_T_MAP ? RP_NODE_MAP : RP_NODE_LIST);
	if (!fits || ((s->key.flags & RP_KEY_NON_EMPTY) && !node->n)) {
		char expected[CONF_PROBLEM_TEXT_MAX], found[CONF_PLACE_MAX];
		(void)problem_node(c->errs, node, NULL, "expected %s, found %s",
				   value_expected(&s->key, expected, sizeof expected),
				   fits ? "an empty one" : node_found(node, found, sizeof found));
		return;
	}
	if (schema_open(s))
		return;
	if (type == RP_T_MAP)
		check_map(c, s, node);
	else
		check_list(c, s, node);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Custom resources carry switched-off and empty sections for controllers that need not be here. */
static bool does_something(rp_cfg section)
{
	return conf_count(section) && conf_value(node_child(section, "enable"), RP_T_BOOL, 1);
}

/* What is known of its module was asked for when the section was brought into its plain form. */
static bool names_controller(const struct rp_cfg_node *root, const char *name)
{
	rp_cfg list = node_child(root, "controllers");
	for (uint32_t i = 0; list && i < list->n; i++) {
		const char *named = node_is(list, RP_NODE_MAP)
					    ? list->members[i].key
					    : conf_text(list->members[i].node, "");
		if (str_eq(named, name))
			return true;
	}
	return false;
}

/* What is in it has no effect, and was meant to have one: that of the policy in use, most likely, when the names are alike. */
static void nobodys_section(const struct conf_loader *l, const struct check *c,
			    const struct conf_member *m)
{
	const char *policy = conf_text(node_child(l->conf->root, "policy"), "");
	bool used = str_eq(policy, m->key) || names_controller(l->conf->root, m->key);
	const char *close = str_closest(m->key, &policy, 1);
	if (!close)
		close = suggest(&l->conf->schema->root, m->key, true);
	if (used)
		close = NULL;
	const char *before = close ? "; did you mean " : "", *after = close ? "?" : "";
	/* what becomes of a module that is used and missing is not up to the section */
	if (c->strict && !used)
		(void)problem_node(l->errs, m->node, NULL, "no module %s is installed%s%s%s",
				   m->key, before, close ? close : "", after);
	else
		warning_node(l->errs, m->node, NULL, "no module %s is installed, not checked%s%s%s",
			     m->key, before, close ? close : "", after);
}

static void check_section(const struct conf_loader *l, const struct check *c,
			  const struct conf_member *m)
{
	const struct schema_node *core = &l->conf->schema->root;
	if (!module_name_valid(m->key)) {
		unknown_key(c, core, m);
		return;
	}
	const struct conf_module *module = known_module(l->conf, m->key);
	bool map = node_is(m->node, RP_NODE_MAP) || node_is(m->node, RP_NODE_NULL);
	if (module->schema) {
		check_node(c, &module->schema->root, m->node);
	} else if (!map && (module->found == CONF_NO_MODULE || !l->schemas)) {
		unknown_key(c, core, m);
	} else if (!map) {
		char found[CONF_PLACE_MAX];
		(void)problem_node(c->errs, m->node, NULL, "expected a map, found %s",
				   node_found(m->node, found, sizeof found));
	} else if (module->found == CONF_NO_MODULE && does_something(m->node)) {
		nobodys_section(l, c, m);
	}
}

static struct check check_of(const struct conf_loader *l)
{
	bool strict = conf_value(node_child(l->conf->root, "strict"), RP_T_BOOL, 1);
	return (struct check){.errs = l->errs, .strict = strict};
}

void check_all(const struct conf_loader *l)
{
	struct check c = check_of(l);
	const struct rp_cfg_node *root = l->conf->root;
	for (uint32_t i = 0; i < root->n; i++) {
		const struct conf_member *m = &root->members[i];
		if (core_key(m->key))
			check_node(&c, schema_child(&l->conf->schema->root, m->key, false),
				   m->node);
		else
			check_section(l, &c, m);
	}
}

/* A module that is used without a section has to be content with none. */
static int check_without_section(struct conf_loader *l, const char *name, rp_cfg user)
{
	if (!module_name_valid(name) || conf_section(l->conf, name))
		return 0;
	const struct conf_module *module = loader_module(l, name);
	struct rp_cfg_node *empty = node_new(l->arena, RP_NODE_MAP, user ? user->file : NULL);
	if (!module || !empty)
		return -ENOMEM;
	if (!module->schema)
		return 0;
	empty->line = user ? user->line : 0;
	empty->column = user ? user->column : 0;
	empty->written = module->name;
	struct check c = check_of(l);
	check_node(&c, &module->schema->root, empty);
	return 0;
}

static bool is_used(const struct conf_core *core, const char *name)
{
	for (unsigned i = 0; i < core->n_controllers; i++)
		if (str_eq(core->controllers[i].name, name))
			return true;
	return str_eq(core->policy, name);
}

int check_used(struct conf_loader *l)
{
	const struct conf_core *core = &l->conf->core;
	int rc = check_without_section(l, core->policy, core->policy_node);
	for (unsigned i = 0; rc == 0 && i < core->n_controllers; i++)
		if (core->controllers[i].mode != CONF_DISABLED &&
		    !str_eq(core->controllers[i].name, core->policy))
			rc = check_without_section(l, core->controllers[i].name,
						   core->controllers[i].node);
	const struct rp_cfg_node *root = l->conf->root;
	for (uint32_t i = 0; rc == 0 && i < root->n; i++) {
		const struct conf_member *m = &root->members[i];
		rp_cfg enable = node_child(m->node, "enable");
		if (!core_key(m->key) && conf_value(enable, RP_T_BOOL, 0) && !is_used(core, m->key))
			warning_node(l->errs, enable, NULL,
				     "has no effect: %s is not in controllers", m->key);
	}
	return rc;
}
