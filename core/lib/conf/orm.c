/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites the section `orm` of the out-of-band resource manager: keys for the connection to the
 * runtime become `runtime`. Keys for which other programs of this project are responsible are
 * refused, with the name of the key there.
 */
#include "core/lib/conf/internal.h"

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *section, *key, *ours; /* section NULL: `orm` itself */
} moved[] = {
	{"nri", "socket", "socket"},	 {"nri", "pluginName", "name"},
	{"nri", "pluginIndex", "index"}, {"nri", "fallbackAfter", "fallbackAfter"},
	{NULL, "mode", "socket"},	 {NULL, "fallback", "fallback"},
};

static const struct {
	const char *section, *key, *instead;
} elsewhere[] = {
	{"nri", "reconnectBackoff", "fixed at 50 ms to 2 s, without a key"},
	{"bypass", "source", "--pods of nri-rp-bridge(8)"},
	{"bypass", "pollInterval", "--poll of nri-rp-bridge(8)"},
	{"kubelet", "readOnlyPort", "--read-only-port of nri-rp-bridge(8)"},
	{"kubelet", "securePort", "--secure-port of nri-rp-bridge(8)"},
	{"kubelet", "tokenFile", "--kubelet-token of nri-rp-bridge(8)"},
	{"admit", "timeout", "admit.timeout"},
	{"admit", "requestSource", "admit.requestSource"},
	{"admit", "onTimeout", "admit.onTimeout"},
	{NULL, "resourceNames", "admit.resourceNames"},
	{NULL, "reconcilePeriod", "--reconcile of nri-rp-bridge(8)"},
	{NULL, "topologyPolicy", "qos.topologyPolicy"},
	{NULL, "numericAlignResources", "qos.numericAlignResources"},
	{NULL, "pluginDir", "--plugin-dir of nri-rp-agent(8)"},
	{NULL, "podResourcesSocket", "--pod-resources-socket of nri-rp-agent(8)"},
};

static struct rp_cfg_node *section_of(struct rp_cfg_node *orm, const char *name)
{
	struct rp_cfg_node *section = name ? node_child(orm, name) : orm;
	return node_is(section, RP_NODE_MAP) ? section : NULL;
}

/* Rewrites `mode: bypass` and `fallback: true`, which work without NRI as the bridge does: the
 * value becomes the bridge's socket. Other values are unchanged, and check.c reports them. */
static bool name_bridge(struct rp_cfg_node *node, const char *key)
{
	const char *text = conf_text(node, "");
	bool is_mode = str_eq(key, "mode"), on = true;
	if (is_mode ? !str_eq(text, "bypass") : str_to_bool(text, &on) < 0)
		return false;
	node->text = on ? CONF_BRIDGE_SOCKET : "";
	return true;
}

static int orm_move(struct conf_loader *l, struct rp_cfg_node *section, unsigned i,
		    struct rp_cfg_node *runtime)
{
	const char *key = moved[i].key, *ours = moved[i].ours;
	const struct conf_member *m = node_member(section, key);
	struct rp_cfg_node *node = m ? m->node : NULL;
	if (!m || (!moved[i].section && !name_bridge(node, key)))
		return 0;
	node_remove(section, m);
	warning_node(l->errs, node, NULL, "is an alias: write runtime.%s: %s", ours,
		     conf_text(node, ""));
	struct conf_member *former = node_member(runtime, ours);
	if (!former)
		return node_append(l->arena, runtime, ours, node);
	former->node = node;
	return 0;
}

static void orm_refuse(struct conf_loader *l, struct rp_cfg_node *orm)
{
	for (unsigned i = 0; i < COUNT(elsewhere); i++) {
		struct rp_cfg_node *section = section_of(orm, elsewhere[i].section);
		const struct conf_member *m = node_member(section, elsewhere[i].key);
		if (!m)
			continue;
		(void)problem_node(l->errs, m->node, NULL, "not a key of nri-rp: use %s",
				   elsewhere[i].instead);
		node_remove(section, m);
	}
}

static void drop_empty(struct rp_cfg_node *map, const char *key)
{
	const struct conf_member *m = node_member(map, key);
	if (m && node_is(m->node, RP_NODE_MAP) && !m->node->n)
		node_remove(map, m);
}

int orm_rewrite(struct conf_loader *l, struct rp_cfg_node *root, struct rp_cfg_node **ret)
{
	struct rp_cfg_node *orm = node_child(root, "orm");
	*ret = NULL;
	if (!node_is(orm, RP_NODE_MAP))
		return 0;
	struct rp_cfg_node *runtime = node_new(l->arena, RP_NODE_MAP, orm->file);
	int rc = runtime ? 0 : -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < COUNT(moved); i++) {
		struct rp_cfg_node *section = section_of(orm, moved[i].section);
		rc = section ? orm_move(l, section, i, runtime) : 0;
	}
	if (rc < 0)
		return rc;
	orm_refuse(l, orm);
	for (unsigned i = 0; i < COUNT(elsewhere); i++)
		if (elsewhere[i].section)
			drop_empty(orm, elsewhere[i].section);
	drop_empty(root, "orm");
	*ret = runtime->n ? runtime : NULL;
	return 0;
}
