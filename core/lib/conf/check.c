/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the merged tree against the schemas of the core and the modules. */
#include "core/lib/conf/internal.h"

#include <stdio.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/str.h"

#define LISTED_MAX 20u /* largest number of keys that are listed for an unknown one */
#define CANDIDATES_MAX 256u /* largest number of keys that are compared for a suggestion */

/* ---- spelling -------------------------------------------------------------------------------- */

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
			(void)problem_node(errs, m->node, NULL, "set twice, first as %s at %s",
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

/* ---- a single table -------------------------------------------------------------------------- */

struct check {
	struct conf_errors *errs;
	bool strict;
};

/* Returns the key of s that is closest to the unknown one; NULL: none is close. */
static const char *check_suggest(const struct schema_node *s, const char *key, bool maps_only)
{
	const char *names[CANDIDATES_MAX];
	unsigned n = 0;
	for (const struct schema_node *c = s->first; c && n < CANDIDATES_MAX; c = c->next)
		if (!maps_only || c->key.type == RP_T_MAP)
			names[n++] = c->key.path;
	return str_closest(key, names, n);
}

__attribute__((format(printf, 3, 4))) static void check_tell(const struct check *c,
							     const struct conf_member *m,
							     const char *fmt, ...)
{
	char text[CONF_PROBLEM_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (c->strict)
		(void)problem_node(c->errs, m->node, NULL, "%s", text);
	else
		warning_node(c->errs, m->node, NULL, "%s", text);
}

/* Returns true if the member is probably the rest of a list of CPUs: in {cpu: cpuset:0,64} the
 * comma ends the value, and 64 looks like another key. */
static bool ends_a_list(rp_cfg map, uint32_t i)
{
	const struct conf_member *m = &map->members[i];
	const char *before = i ? conf_text(map->members[i - 1].node, "") : "";
	size_t len = strlen(before);
	return len && before[len - 1] >= '0' && before[len - 1] <= '9' &&
	       !map->members[i - 1].node->quoted && node_is(m->node, RP_NODE_NULL) &&
	       strspn(m->key, "0123456789-") == strlen(m->key);
}

/* Reports an unknown key, with the keys that its map may have unless they are many. */
static void unknown_listed(const struct check *c, const struct schema_node *s,
			   const struct conf_member *m)
{
	struct buf keys = BUF_INIT;
	unsigned n = 0;
	for (const struct schema_node *k = s->first; k; k = k->next, n++)
		(void)buf_printf(&keys, "%s%s", n ? ", " : "; the keys here are ", k->key.path);
	check_tell(c, m, "unknown key%s", n <= LISTED_MAX ? buf_text(&keys) : "");
	buf_fini(&keys);
}

static void unknown_key(const struct check *c, const struct schema_node *s, rp_cfg map, uint32_t i)
{
	const struct conf_member *m = &map->members[i];
	const char *close = check_suggest(s, m->key, false);
	if (ends_a_list(map, i))
		check_tell(c, m,
			   "a comma ends the value before it; quote a CPU list within braces: %s: "
			   "\"%s,%s\"",
			   map->members[i - 1].key, map->members[i - 1].node->text, m->key);
	else if (close)
		check_tell(c, m, "unknown key, did you mean %s?", close);
	else
		unknown_listed(c, s, m);
}

static void check_node(const struct check *c, const struct schema_node *s, rp_cfg node);

static void check_map(const struct check *c, const struct schema_node *s, rp_cfg map)
{
	for (uint32_t i = 0; i < map->n; i++) {
		const struct schema_node *child = schema_child(s, map->members[i].key, false);
		if (child)
			check_node(c, child, map->members[i].node);
		else
			unknown_key(c, s, map, i);
	}
	for (const struct schema_node *child = s->first; child; child = child->next)
		if ((child->key.flags & RP_KEY_REQUIRED) && !node_set(map, child->key.path))
			(void)problem_node(c->errs, map, child->key.path,
					   "missing required key%s%s", *child->key.doc ? ". " : "",
					   child->key.doc);
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
				   fits ? "an empty value" : node_found(node, found, sizeof found));
		return;
	}
	if (schema_open(s))
		return;
	if (type == RP_T_MAP)
		check_map(c, s, node);
	else
		check_list(c, s, node);
}

/* ---- all tables ------------------------------------------------------------------------------ */

/* Returns true if the section has an effect. Custom resources contain disabled and empty sections
 * for controllers that need not be installed. */
static bool does_something(rp_cfg section)
{
	return conf_count(section) && conf_value(node_child(section, "enable"), RP_T_BOOL, 1);
}

/* Returns true if the configuration lists the controller. Its module was looked up when the section
 * was rewritten to the plain form. */
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

/* Valid names of sections, for suggestions: keys of the core that are maps, modules in use,
 * installed modules. */
struct sections {
	struct arena *arena;
	const char *names[CANDIDATES_MAX];
	unsigned n, first_module; /* installed modules are last */
};

static void add_module(const char *name, void *arg)
{
	struct sections *s = arg;
	const char *copy = s->n < CANDIDATES_MAX ? arena_strdup(s->arena, name) : NULL;
	if (copy)
		s->names[s->n++] = copy;
}

static void collect_sections(const struct conf_loader *l, struct sections *ret)
{
	const struct conf_schemas *modules = l->schemas;
	rp_cfg policy = node_child(l->conf->root, "policy");
	*ret = (struct sections){.arena = l->arena};
	for (const struct schema_node *c = l->conf->schema->root.first;
	     c && ret->n < CANDIDATES_MAX / 2; c = c->next)
		if (c->key.type == RP_T_MAP)
			ret->names[ret->n++] = c->key.path;
	if (policy && module_name_valid(conf_text(policy, "")))
		ret->names[ret->n++] = conf_text(policy, "");
	ret->first_module = ret->n;
	if (modules && modules->each)
		modules->each(modules->ctx, add_module, ret);
}

/* Writes "; did you mean X? Sections of modules are: …"; "" if no names are available. */
static void describe_sections(const struct sections *s, const char *word, char *buf, size_t size)
{
	char plain[RP_NAME_MAX];
	size_t n = 0;
	(void)snprintf(plain, sizeof plain, "%s", word);
	for (char *c = plain; *c; c++)
		if (*c == '_' || *c == ' ')
			*c = '-';
	const char *close = str_closest(plain, s->names, s->n);
	buf[0] = '\0';
	if (close)
		n = (size_t)snprintf(buf, size, "; did you mean %s?", close);
	for (unsigned i = s->first_module; i < s->n && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s",
				      i > s->first_module ? ", "
				      : close		  ? " Installed modules: "
							  : "; installed modules: ",
				      s->names[i]);
}

/* Reports a section that belongs to no installed module and therefore has no effect. */
static void nobodys_section(const struct conf_loader *l, const struct check *c,
			    const struct conf_member *m)
{
	struct check lenient = {.errs = c->errs};
	struct sections s;
	char more[CONF_PROBLEM_TEXT_MAX];
	const char *policy = conf_text(node_child(l->conf->root, "policy"), "");
	/* A module that is used and missing is reported elsewhere, not for its section. */
	if (str_eq(policy, m->key) || names_controller(l->conf->root, m->key)) {
		check_tell(&lenient, m, "module %s is not installed, not checked", m->key);
		return;
	}
	collect_sections(l, &s);
	describe_sections(&s, m->key, more, sizeof more);
	check_tell(c, m, "module %s is not installed%s%s", m->key, c->strict ? "" : ", not checked",
		   more);
}

/* Reports a key that is no valid name of a module. */
static void nobodys_name(const struct conf_loader *l, const struct check *c, uint32_t i)
{
	const struct conf_member *m = &l->conf->root->members[i];
	struct sections s;
	char more[CONF_PROBLEM_TEXT_MAX];
	if (!node_is(m->node, RP_NODE_MAP)) {
		unknown_key(c, &l->conf->schema->root, l->conf->root, i);
		return;
	}
	collect_sections(l, &s);
	describe_sections(&s, m->key, more, sizeof more);
	check_tell(c, m, "unknown section%s", more);
}

static void check_section(const struct conf_loader *l, const struct check *c, uint32_t i)
{
	const struct conf_member *m = &l->conf->root->members[i];
	if (!module_name_valid(m->key)) {
		nobodys_name(l, c, i);
		return;
	}
	const struct conf_module *module = known_module(l->conf, m->key);
	bool map = node_is(m->node, RP_NODE_MAP) || node_is(m->node, RP_NODE_NULL);
	if (module->schema) {
		check_node(c, &module->schema->root, m->node);
	} else if (!map && (module->found == CONF_NO_MODULE || !l->schemas)) {
		unknown_key(c, &l->conf->schema->root, l->conf->root, i);
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

/* Returns true for the values of a Helm chart, whose `config` contains the configuration. */
static bool is_helm_values(rp_cfg root)
{
	static const char *const keys[] = {
		"image",	"nri",	     "tolerations", "initContainerImage",
		"nameOverride", "resources", "hostPort"};
	for (size_t i = 0;
	     node_is(node_child(root, "config"), RP_NODE_MAP) && i < sizeof keys / sizeof keys[0];
	     i++)
		if (node_child(root, keys[i]))
			return true;
	return false;
}

void check_all(const struct conf_loader *l)
{
	struct check c = check_of(l);
	const struct rp_cfg_node *root = l->conf->root;
	if (is_helm_values(root)) {
		(void)problem_node(
			l->errs, node_child(root, "config"), NULL,
			"these are the values of a Helm chart: paste the part below `config:` as "
			"the policy's section, or run `nri-rpctl import` on the file");
		return;
	}
	for (uint32_t i = 0; i < root->n; i++) {
		const struct conf_member *m = &root->members[i];
		if (core_key(m->key))
			check_node(&c, schema_child(&l->conf->schema->root, m->key, false),
				   m->node);
		else
			check_section(l, &c, i);
	}
}

/* Checks a module that is used without a section as if it had an empty one. */
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
