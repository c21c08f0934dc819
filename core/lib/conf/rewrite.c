/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges documents into one tree. A custom resource becomes `policy: MODULE` and the module's
 * section. Keys that custom resources have beside those of the policy (`control`, `log` …) are
 * moved to the top level, also from a section that such a spec was pasted into; only those of the
 * active policy count. Parts of `control` that belong to a controller become the controller's
 * section. Parts that the module's own table has are unchanged.
 */
#include "core/lib/conf/internal.h"

#include "core/lib/util/str.h"

#define CR_GROUP "config.nri/"
#define CR_NODE_SELECTOR "nodeSelector" /* which nodes follow a resource; nri-rp-agent decides */

static const struct {
	const char *part, *module;
} control_parts[] = {{"cpu", "cpu"}, {"rdt", "rdt"}, {"blockio", "blkio"}};

/* Keys of the core that the agent may push, besides the sections of modules. */
static const char *const pushable_keys[] = {
	"policy",	 "controllers",	      "calculators",   "log",	      "instrumentation",
	"agent",	 "onPolicyError",     "resetOnSwitch", "adjustments", "metrics",
	"nodeResources", "rebalanceInterval", "dra",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static const struct conf_strings pushable = {pushable_keys, COUNT(pushable_keys)};

/* ---- merging --------------------------------------------------------------------------------- */

/* Merges src over dst. A null in src removes the value in dst. The depth is limited by the depth of
 * the documents. */
static int rewrite_do_merge(struct arena *arena, struct rp_cfg_node *dst,
			    const struct rp_cfg_node *src)
{
	for (uint32_t i = 0; i < src->n; i++) {
		const struct conf_member *from = &src->members[i];
		struct conf_member *to = node_member(dst, from->key);
		int rc = 0;
		if (!to)
			rc = node_append(arena, dst, from->key, from->node);
		else if (node_is(to->node, RP_NODE_MAP) && node_is(from->node, RP_NODE_MAP))
			rc = rewrite_do_merge(arena, to->node, from->node);
		else if (node_is(from->node, RP_NODE_NULL))
			node_remove(dst, to);
		else
			to->node = from->node;
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Makes node the member `key` of map; existing members of map override those of node. */
static int merge_under(struct arena *arena, struct rp_cfg_node *map, const char *key,
		       struct rp_cfg_node *node)
{
	struct conf_member *own = node_member(map, key);
	if (!own)
		return node_append(arena, map, key, node);
	if (!node_is(own->node, RP_NODE_MAP) || !node_is(node, RP_NODE_MAP))
		return 0;
	int rc = rewrite_do_merge(arena, node, own->node);
	own->node = node;
	return rc;
}

/* ---- custom resources ------------------------------------------------------------------------ */

static bool is_resource(const struct rp_cfg_node *root)
{
	return node_child(root, "kind") || node_child(root, "apiVersion");
}

static const char *module_of_kind(const struct conf_loader *l, const char *kind)
{
	const char *module = l->schemas && l->schemas->of_kind
				     ? l->schemas->of_kind(l->schemas->ctx, kind)
				     : NULL;
	return module && module_name_valid(module) ? module : NULL;
}

static void check_resource_keys(struct conf_loader *l, const struct rp_cfg_node *root)
{
	static const char *const names[] = {"apiVersion", "kind", "metadata", "spec", "status"};
	static const struct conf_strings keys = {names, COUNT(names)};
	for (uint32_t i = 0; i < root->n; i++)
		if (!conf_has_string(&keys, root->members[i].key))
			(void)problem_node(l->errs, root->members[i].node, NULL,
					   "unknown key of a custom resource");
}

/* Determines the module of a custom resource. 0, -EINVAL: not usable, -ENOMEM. */
static int read_resource(struct conf_loader *l, struct conf_doc *doc)
{
	const struct rp_cfg_node *root = doc->root;
	rp_cfg version = node_child(root, "apiVersion"), kind = node_child(root, "kind");
	char found[CONF_PLACE_MAX];
	check_resource_keys(l, root);
	if (!str_has_prefix(conf_text(version, ""), CR_GROUP))
		return problem_node(l->errs, version ? version : root,
				    version ? NULL : "apiVersion",
				    "expected " CR_GROUP "VERSION, found %s",
				    node_found(version, found, sizeof found));
	if (!conf_text(kind, NULL))
		return problem_node(l->errs, kind ? kind : root, kind ? NULL : "kind",
				    "expected the kind of a policy's custom resource, found %s",
				    node_found(kind, found, sizeof found));
	const char *module = module_of_kind(l, conf_text(kind, ""));
	if (!module)
		return problem_node(l->errs, kind, NULL,
				    "no installed module has custom resources of kind %s",
				    node_found(kind, found, sizeof found));
	rp_cfg spec = node_child(root, "spec");
	if (!node_is(spec, RP_NODE_MAP))
		return problem_node(l->errs, spec ? spec : root, spec ? NULL : "spec",
				    "expected a map, found %s",
				    node_found(spec, found, sizeof found));
	rp_cfg selector = node_child(spec, CR_NODE_SELECTOR);
	if (selector && !node_is(selector, RP_NODE_MAP))
		return problem_node(l->errs, selector, NULL, "expected a map of labels, found %s",
				    node_found(selector, found, sizeof found));
	doc->module = arena_strdup(l->arena, module);
	return doc->module ? 0 : -ENOMEM;
}

/* Replaces the root of a custom resource by its plain form. */
static int plain_resource(struct conf_loader *l, struct conf_doc *doc)
{
	const struct rp_cfg_node *kind = node_child(doc->root, "kind");
	struct rp_cfg_node *spec = node_child(doc->root, "spec");
	struct rp_cfg_node *root = node_new(l->arena, RP_NODE_MAP, kind->file);
	struct rp_cfg_node *policy = node_new(l->arena, RP_NODE_SCALAR, kind->file);
	if (!root || !policy)
		return -ENOMEM;
	policy->line = kind->line;
	policy->column = kind->column;
	policy->parent = root;
	policy->written = "policy";
	policy->text = doc->module;
	if (node_member(spec, CR_NODE_SELECTOR))
		node_remove(spec, node_member(spec, CR_NODE_SELECTOR));
	spec->parent = root;
	spec->written = kind->file && kind->file->object ? "spec" : doc->module;
	doc->root = root;
	int rc = node_append(l->arena, root, "policy", policy);
	return rc < 0 ? rc : node_append(l->arena, root, doc->module, spec);
}

/* Returns the policy that the documents select; of several documents with a policy, the last one
 * decides. */
static const char *policy_of(const struct conf_docs *docs, bool pushed, const char *fallback)
{
	const char *policy = fallback;
	for (const struct conf_doc *doc = docs->first; doc; doc = doc->next)
		if (doc->pushed == pushed)
			policy = conf_text(node_child(doc->root, "policy"), policy);
	return policy;
}

/* ---- plain form ------------------------------------------------------------------------------ */

/* Takes the keys that a table has out of a part, as a separate map; *ret is NULL if there are
 * none. */
static int take_own(struct conf_loader *l, struct rp_cfg_node *part,
		    const struct schema_node *schema, struct rp_cfg_node **ret)
{
	struct rp_cfg_node *own = NULL;
	for (uint32_t i = part->n; i-- > 0;) {
		const struct conf_member *m = &part->members[i];
		const struct schema_node *s = schema_child(schema, m->key, false);
		struct rp_cfg_node *node = m->node, *below = node;
		const char *key = m->key;
		int rc = 0;
		if (!s)
			continue;
		if (s->first && node_is(node, RP_NODE_MAP))
			rc = take_own(l, node, s, &below);
		if (rc == 0 && !below)
			continue;
		if (rc == 0 && !own) {
			own = node_new(l->arena, RP_NODE_MAP, part->file);
			rc = own ? 0 : -ENOMEM;
		}
		if (rc == 0)
			rc = node_append(l->arena, own, key, below);
		if (rc < 0)
			return rc;
		if (below == node || !node->n)
			node_remove(part, node_member(part, key));
	}
	if (own) {
		own->line = part->line;
		own->column = part->column;
		own->parent = part->parent;
		own->written = part->written;
	}
	*ret = own;
	return 0;
}

/* Removes a common part from the section, except the keys of the module's own table. *ret is the
 * removed part; NULL: nothing was removed. */
static int split_part(struct conf_loader *l, struct rp_cfg_node *section,
		      const struct conf_member *m, const struct schema_node *schema,
		      struct rp_cfg_node **ret)
{
	const struct schema_node *s = schema_child(schema, m->key, false);
	struct rp_cfg_node *node = m->node, *own = NULL;
	const char *key = m->key;
	*ret = s && !s->first ? NULL : node;
	if (!*ret)
		return 0;
	int rc = s && node_is(node, RP_NODE_MAP) ? take_own(l, node, s, &own) : 0;
	if (rc < 0)
		return rc;
	node_remove(section, m);
	if (own && !node->n)
		*ret = NULL;
	return own ? node_append(l->arena, section, key, own) : 0;
}

/* Takes the common parts out of a section, and moves them to the top level if the policy is
 * active. */
static int rewrite_hoist(struct conf_loader *l, struct rp_cfg_node *root, const char *name,
			 struct rp_cfg_node *section, const char *policy)
{
	const struct conf_module *module = loader_module(l, name);
	if (!module)
		return -ENOMEM;
	bool in_force = str_eq(name, policy);
	if (!module->schema || (!in_force && !module->schema->cr_kind))
		return 0;
	for (unsigned i = 0; i < conf_common_parts.n; i++) {
		const char *part = conf_common_parts.items[i];
		const struct conf_member *m = node_member(section, part);
		struct rp_cfg_node *node;
		if (!m)
			continue;
		int rc = split_part(l, section, m, &module->schema->root, &node);
		if (rc == 0 && node && in_force)
			rc = merge_under(l->arena, root, part, node);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int split_control(struct conf_loader *l, struct rp_cfg_node *root)
{
	struct rp_cfg_node *control = node_child(root, "control");
	bool moved = false;
	for (size_t i = 0; i < COUNT(control_parts); i++) {
		const struct conf_member *m = node_member(control, control_parts[i].part);
		if (!m)
			continue;
		struct rp_cfg_node *node = m->node;
		node_remove(control, m);
		moved = true;
		int rc = merge_under(l->arena, root, control_parts[i].module, node);
		if (rc < 0)
			return rc;
	}
	if (moved && !control->n)
		node_remove(root, node_member(root, "control"));
	return 0;
}

static int fix_spelling(struct conf_loader *l, const struct rp_cfg_node *root)
{
	for (uint32_t i = 0; i < root->n; i++) {
		const struct conf_member *m = &root->members[i];
		if (core_key(m->key) || !module_name_valid(m->key))
			continue;
		const struct conf_module *module = loader_module(l, m->key);
		if (!module)
			return -ENOMEM;
		if (module->schema)
			check_spelling(l->errs, m->node, module->schema);
	}
	return 0;
}

static int plain_form(struct conf_loader *l, struct rp_cfg_node *root, const char *policy)
{
	/* rewrite_hoist() appends core keys only, which need no visit. */
	uint32_t n = root->n;
	for (uint32_t i = 0; i < n; i++) {
		const struct conf_member *m = &root->members[i];
		if (core_key(m->key) || !module_name_valid(m->key) ||
		    !node_is(m->node, RP_NODE_MAP))
			continue;
		int rc = rewrite_hoist(l, root, m->key, m->node, policy);
		if (rc < 0)
			return rc;
	}
	struct rp_cfg_node *runtime;
	int rc = split_control(l, root);
	if (rc == 0)
		rc = orm_rewrite(l, root, &runtime);
	if (rc == 0 && runtime)
		rc = merge_under(l->arena, root, "runtime", runtime);
	return rc < 0 ? rc : fix_spelling(l, root);
}

/* ---- sections pushed by the agent ------------------------------------------------------------ */

/* Returns `agent.accept` of the files; NULL: everything is accepted. */
static rp_cfg accept_list(const struct conf_loader *l)
{
	rp_cfg list = conf_get(l->conf->root, "agent.accept");
	return node_is(list, RP_NODE_LIST) ? list : NULL;
}

static bool rewrite_accepts(rp_cfg list, const char *name)
{
	if (!list)
		return true;
	for (uint32_t i = 0; i < list->n; i++)
		if (str_eq(conf_text(list->members[i].node, ""), name))
			return true;
	return false;
}

/* Members of sections that only files may set, not pushed configurations: access to the daemon, and
 * paths and ports that it opens. */
static const struct {
	const char *section, *key;
} own_keys[] = {{"agent", "accept"},	   {"agent", "cluster"},	{"agent", "socket"},
		{"agent", "namespaces"},   {"agent", "user"},		{"metrics", "listen"},
		{"nodeResources", "file"}, {"nodeResources", "devices"}};

/* Restores the files' value of a key that may not be pushed. */
static int keep_own(struct conf_loader *l, struct rp_cfg_node *section, const char *name,
		    const char *key)
{
	const struct conf_member *pushed = node_member(section, key);
	if (pushed) {
		warning_node(l->errs, pushed->node, NULL,
			     "only rp.conf can set this; the pushed value is ignored");
		node_remove(section, pushed);
	}
	struct rp_cfg_node *own = node_child(node_child(l->conf->root, name), key);
	return own ? node_append(l->arena, section, key, own) : 0;
}

static int rewrite_replace(struct conf_loader *l, const struct conf_member *from)
{
	for (unsigned i = 0; i < COUNT(own_keys); i++) {
		if (!str_eq(from->key, own_keys[i].section))
			continue;
		if (!node_is(from->node, RP_NODE_MAP))
			return 0;
		int rc = keep_own(l, from->node, own_keys[i].section, own_keys[i].key);
		if (rc < 0)
			return rc;
	}
	struct conf_member *to = node_member(l->conf->root, from->key);
	if (!to)
		return node_append(l->arena, l->conf->root, from->key, from->node);
	to->node = from->node;
	return 0;
}

static int leave_out(struct conf_loader *l, const struct rp_cfg_node *pushed)
{
	for (uint32_t i = 0; i < pushed->n; i++)
		warning_node(l->errs, pushed->members[i].node, NULL,
			     "agent.cluster is not set in the files; the pushed value is ignored");
	return 0;
}

static int rewrite_overlay(struct conf_loader *l, const struct rp_cfg_node *pushed, rp_cfg accept,
			   const char *policy)
{
	for (uint32_t i = 0; i < pushed->n; i++) {
		const struct conf_member *m = &pushed->members[i];
		if (core_key(m->key) && !conf_has_string(&pushable, m->key)) {
			warning_node(l->errs, m->node, NULL,
				     "only rp.conf can set this; the pushed value is ignored");
			continue;
		}
		if (!rewrite_accepts(accept, m->key)) {
			if (!str_eq(m->key, "policy") || !str_eq(conf_text(m->node, ""), policy))
				warning_node(l->errs, m->node, NULL,
					     "agent.accept does not list it; the pushed value is "
					     "ignored");
			continue;
		}
		int rc = rewrite_replace(l, m);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- all steps ------------------------------------------------------------------------------- */

/* Rewrites custom resources and drops the unusable ones. */
static int read_resources(struct conf_loader *l, struct conf_docs *docs)
{
	for (struct conf_doc **at = &docs->first; *at;) {
		struct conf_doc *doc = *at;
		int rc = 0;
		if (is_resource(doc->root)) {
			rc = read_resource(l, doc);
			if (rc == 0)
				rc = plain_resource(l, doc);
		}
		if (rc == -ENOMEM)
			return rc;
		if (rc < 0)
			*at = doc->next;
		else
			at = &doc->next;
	}
	return 0;
}

static int check_width(struct conf_loader *l, const struct rp_cfg_node *top, rp_cfg where)
{
	if (top->n <= CONF_SECTIONS_MAX)
		return 0;
	return problem_node(l->errs, where, NULL, "more than %u keys at the top level",
			    CONF_SECTIONS_MAX);
}

static int merge_docs(struct conf_loader *l, const struct conf_docs *docs, bool pushed,
		      const char *policy, struct rp_cfg_node *into)
{
	for (struct conf_doc *doc = docs->first; doc; doc = doc->next) {
		if (doc->pushed != pushed)
			continue;
		int rc = check_width(l, doc->root, doc->root);
		if (rc == 0)
			rc = plain_form(l, doc->root, policy);
		if (rc == 0)
			rc = rewrite_do_merge(l->arena, into, doc->root);
		if (rc == 0)
			rc = check_width(l, into, doc->root);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int rewrite_merge(struct conf_loader *l, struct conf_docs *docs)
{
	struct rp_cfg_node *pushed = node_new(l->arena, RP_NODE_MAP, NULL);
	if (!pushed)
		return -ENOMEM;
	int rc = read_resources(l, docs);
	if (rc < 0)
		return rc;
	const char *policy = policy_of(docs, false, core_default("policy"));
	rc = merge_docs(l, docs, false, policy, l->conf->root);
	if (rc < 0)
		return rc;
	rp_cfg accept = accept_list(l);
	bool wanted = conf_value(conf_get(l->conf->root, "agent.cluster"), RP_T_BOOL, 0);
	if (accept && accept->n && !wanted)
		warning_node(l->errs, accept, NULL, "has no effect without agent.cluster: true");
	const char *next = wanted && rewrite_accepts(accept, "policy")
				   ? policy_of(docs, true, policy)
				   : policy;
	rc = merge_docs(l, docs, true, next, pushed);
	return rc < 0	? rc
	       : wanted ? rewrite_overlay(l, pushed, accept, policy)
			: leave_out(l, pushed);
}
