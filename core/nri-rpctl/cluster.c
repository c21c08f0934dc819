/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the nodes of a cluster from what their agents have published: the condition of the Node,
 * and the statuses of the custom resources of the group config.nri. Reads them with kubectl, whose
 * configuration and rights apply.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define GROUP "config.nri"
#define CONDITION "NRIResourcePolicyReady"

/* Runs kubectl. Returns its exit status; others than 0 have been reported. */
static int cluster_kubectl(const struct cli *cli, const char *const *argv, struct buf *ret)
{
	int r = run_program(argv, ret);
	if (r < 0)
		complain(cli, "cannot run kubectl: install it, or run this command where it is");
	else if (r)
		complain(cli, "kubectl failed: %s", buf_text(ret));
	return r ? CTL_FAILED : CTL_OK;
}

/* Reads a list of objects as JSON; warnings of kubectl may precede it. NULL: reported. */
static json_t *cluster_get(const struct cli *cli, const char *what)
{
	const char *const argv[] = {"kubectl", "get", what, "-A", "-o", "json", NULL};
	struct buf text = BUF_INIT;
	json_error_t why;
	json_t *list = NULL;
	if (!cluster_kubectl(cli, argv, &text)) {
		const char *start = strchr(buf_text(&text), '{');
		list = json_loads(start ? start : "", 0, &why);
		if (!list)
			complain(cli, "kubectl get %s: the answer is not JSON: %s", what, why.text);
	}
	buf_fini(&text);
	return list;
}

/* Reads the custom resources of all kinds in the group; an empty list if there are no kinds. */
static json_t *cluster_policies(const struct cli *cli)
{
	static const char group[] = "--api-group=" GROUP;
	static const char *const argv[] = {"kubectl", "api-resources", group, "-o", "name", NULL};
	struct buf names = BUF_INIT, kinds = BUF_INIT;
	json_t *list = NULL;
	if (!cluster_kubectl(cli, argv, &names)) {
		char *save = NULL, *text = strdup(buf_text(&names));
		for (char *w = text ? strtok_r(text, " \n", &save) : NULL; w;
		     w = strtok_r(NULL, " \n", &save))
			if (str_has_suffix(w, "." GROUP))
				(void)buf_printf(&kinds, "%s%s", buf_len(&kinds) ? "," : "", w);
		free(text);
		list = buf_len(&kinds) ? cluster_get(cli, buf_text(&kinds)) : json_object();
	}
	buf_fini(&names);
	buf_fini(&kinds);
	return list;
}

/* Adds the part of an object's status that concerns the node. The object that configures the node
 * comes first, before objects that are not used. */
static void cluster_add_status(json_t *row, const json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	const json_t *nodes = json_object_get(json_object_get(object, "status"), "nodes");
	const json_t *of = json_object_get(nodes, js(row, "node"));
	const bool refused = str_eq(js(of, "status"), "Failure");
	if (!of || str_has_prefix(js(of, "errors"), "not used: "))
		return;
	_free_ char *name =
		str_printf("%s %s/%s", js(object, "kind"), js(meta, "namespace"), js(meta, "name"));
	(void)json_object_set_new(row, "configuration", json_string(name ? name : ""));
	(void)json_object_set_new(row, "generation", json_integer(ji(of, "generation")));
	(void)json_object_set_new(row, "current",
				  json_boolean(ji(of, "generation") == ji(meta, "generation")));
	(void)json_object_set_new(row, "refused", json_boolean(refused));
	(void)json_object_set_new(row, "text",
				  json_string(js(of, refused ? "errors" : "warnings")));
}

/* Adds the message of the condition, and the numbers in it as nri-rp-agent writes them: containers
 * that are not placed as requested, and containers that were refused. */
static void cluster_add_counts(json_t *row, const char *message)
{
	const char *counts = strstr(message, "; degraded: ");
	unsigned degraded = 0, refused = 0;
	if (counts)
		(void)sscanf(counts, "; degraded: %u, refused: %u", &degraded, &refused);
	(void)json_object_set_new(row, "degraded", json_integer(degraded));
	(void)json_object_set_new(row, "refused_containers", json_integer(refused));
	(void)json_object_set_new(row, "text", json_string(message));
}

static json_t *cluster_row(const json_t *node, const json_t *policies)
{
	const json_t *status = json_object_get(node, "status"), *condition, *object;
	size_t i;
	json_t *row = json_pack("{s:s, s:s, s:i, s:i, s:s}", "node",
				js(json_object_get(node, "metadata"), "name"), "ready", "-",
				"degraded", 0, "refused_containers", 0, "text", "");
	json_array_foreach(json_object_get(status, "conditions"), i, condition)
	{
		if (!str_eq(js(condition, "type"), CONDITION))
			continue;
		(void)json_object_set_new(row, "ready", json_string(js(condition, "status")));
		cluster_add_counts(row, js(condition, "message"));
	}
	json_array_foreach(json_object_get(policies, "items"), i, object)
		cluster_add_status(row, object);
	return row;
}

static void cluster_show_count(struct table *t, int64_t n)
{
	table_addf(t, n ? YELLOW : PLAIN, "%" PRId64, n);
}

static void show_cluster(struct out *o, const json_t *rows)
{
	static const struct column columns[] = {
		{.title = "Node"},
		{.title = "Ready"},
		{.title = "Degraded", .right = true},
		{.title = "Refused", .right = true},
		{.title = "Configuration", .flex = true},
		{.title = "Generation", .right = true},
		{.title = "Outcome"},
		{.title = "Text", .flex = true, .drop = 1},
	};
	const json_t *row;
	size_t i;
	struct table *t = table_new(&o->term, columns, 8);
	json_array_foreach(rows, i, row)
	{
		char number[UNIT_MAX];
		const bool has = *js(row, "configuration"), refused = jb(row, "refused");
		const bool ready = str_eq(js(row, "ready"), "True");
		const bool current = !has || jb(row, "current");
		(void)snprintf(number, sizeof number, "%" PRId64, ji(row, "generation"));
		table_add(t, PLAIN, js(row, "node"));
		table_add(t, ready ? GREEN : YELLOW, js(row, "ready"));
		cluster_show_count(t, ji(row, "degraded"));
		cluster_show_count(t, ji(row, "refused_containers"));
		table_add(t, PLAIN, has ? js(row, "configuration") : "files of the node");
		table_add(t, PLAIN, has ? number : "-");
		table_add(t, refused ? RED : PLAIN,
			  refused    ? "refused"
			  : !current ? "outdated"
			  : has	     ? "active"
				     : "-");
		table_add(t, PLAIN, js(row, "text"));
	}
	if (!table_rows(t))
		out_put(o, "No nodes.\n");
	table_end(t, o);
}

int cmd_cluster(struct cli *cli)
{
	json_t *nodes = cluster_get(cli, "nodes"), *policies = nodes ? cluster_policies(cli) : NULL;
	json_t *rows = policies ? json_array() : NULL;
	const json_t *node;
	size_t i;
	bool degraded = false;
	json_array_foreach(json_object_get(nodes, "items"), i, node)
	{
		json_t *row = rows ? cluster_row(node, policies) : NULL;
		degraded = degraded || !str_eq(js(row, "ready"), "True") || jb(row, "refused");
		(void)json_array_append_new(rows, row);
	}
	if (rows && cli->json) {
		_free_ char *text = json_dumps(rows, JSON_COMPACT);
		out_printf(&cli->out, "%s\n", text ? text : "[]");
	} else if (rows) {
		show_cluster(&cli->out, rows);
	}
	const bool failed = !rows;
	json_decref(nodes);
	json_decref(policies);
	json_decref(rows);
	return failed ? CTL_FAILED : degraded ? CTL_DEGRADED : CTL_OK;
}
