/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/str.h"

#define ID_LENGTH 13u
#define USAGE_COLUMN 8u /* first column of containers that needs measured usage */

/* ---- pods ------------------------------------------------------------------------------------ */

static const char *amount_cpu(int64_t milli, char buf[UNIT_MAX])
{
	return milli ? unit_cpu(milli, buf) : "-";
}

static const char *amount_bytes(int64_t bytes, char buf[UNIT_MAX])
{
	return bytes ? unit_bytes((uint64_t)bytes, buf) : "-";
}

/* Adds the beginning of an id, as other tools show it; explain accepts it. */
static void add_id(struct table *t, const json_t *o)
{
	table_addf(t, DIM, "%.*s", (int)ID_LENGTH, js(o, "id"));
}

void show_claims(struct out *o, const json_t *doc)
{
	static const struct column columns[] = {
		{.title = "Namespace", .flex = true, .drop = 2},
		{.title = "Claim", .flex = true},
		{.title = "Device"},
		{.title = "CPUs"},
		{.title = "Memory nodes", .drop = 3},
		{.title = "Memory", .right = true, .drop = 4},
		{.title = "Containers", .flex = true, .drop = 1},
	};
	const json_t *p, *name;
	size_t i, k;
	struct table *t = table_new(&o->term, columns, 7);
	json_array_foreach(doc, i, p)
	{
		char text[UNIT_MAX], names[256] = "";
		size_t n = 0;
		json_array_foreach(json_object_get(p, "containers"), k, name) if (n < sizeof names)
			n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", k ? ", " : "",
					      json_string_value(name));
		table_add(t, PLAIN, js(p, "namespace"));
		table_add(t, PLAIN, js(p, "name"));
		table_add(t, PLAIN, js(p, "device"));
		table_add(t, PLAIN, js(p, "cpus"));
		table_add(t, PLAIN, js(p, "mems"));
		table_add(t, PLAIN, amount_bytes(ji(p, "memory"), text));
		table_add(t, PLAIN, names);
	}
	table_end(t, o);
	if (!json_array_size(doc))
		out_put(o, "No claims.\n");
}

void show_pods(struct out *o, const json_t *doc)
{
	static const struct column columns[] = {
		{.title = "Namespace", .flex = true, .drop = 3},
		{.title = "Pod", .flex = true},
		{.title = "QoS", .drop = 1},
		{.title = "Containers", .right = true, .drop = 2},
		{.title = "CPU", .right = true},
		{.title = "Memory", .right = true, .drop = 4},
		{.title = "State"},
		{.title = "ID", .drop = 9},
	};
	const json_t *p;
	size_t i;
	struct table *t = table_new(&o->term, columns, 8);
	json_array_foreach(doc, i, p)
	{
		char text[UNIT_MAX];
		int64_t n = ji(p, "containers"), live = ji(p, "live"), degraded = ji(p, "degraded");
		table_add(t, PLAIN, js(p, "namespace"));
		table_add(t, PLAIN, js(p, "name"));
		table_add(t, PLAIN, js(p, "qos"));
		if (live == n)
			table_addf(t, PLAIN, "%" PRId64, n);
		else
			table_addf(t, PLAIN, "%" PRId64 "/%" PRId64, live, n);
		table_add(t, PLAIN, amount_cpu(ji(p, "cpu_request_milli"), text));
		table_add(t, PLAIN, amount_bytes(ji(p, "memory_request"), text));
		if (jb(p, "stopped"))
			table_add(t, DIM, "stopped");
		else if (degraded)
			table_add(t, YELLOW, "degraded");
		else
			table_add(t, GREEN, "running");
		add_id(t, p);
	}
	if (!table_rows(t))
		out_put(o, "No pods.\n");
	table_end(t, o);
}

/* ---- containers ------------------------------------------------------------------------------ */

static enum style state_style(const char *state)
{
	if (str_eq(state, "running"))
		return GREEN;
	return str_eq(state, "exited") ? DIM : PLAIN;
}

/* Describes the CPUs of a container: "exclusive", "shared", or the exclusive part of its CPUs. */
static const char *own_part(const json_t *c)
{
	const char *exclusive = js(c, "exclusive");
	if (!*exclusive)
		return "shared";
	return str_eq(exclusive, js(c, "cpus")) ? "exclusive" : exclusive;
}

/* Adds the measured usage: CPU, share of throttled periods, memory, and the resources that the
 * container lacks. */
static void add_usage(struct table *t, const json_t *u)
{
	char text[UNIT_MAX];
	const json_t *throttled = json_object_get(u, "throttled_permille");
	table_add(t, PLAIN,
		  json_object_get(u, "cpu_milli") ? unit_cpu(ji(u, "cpu_milli"), text) : "-");
	(void)snprintf(text, sizeof text, "%.1f %%", (double)json_integer_value(throttled) / 10);
	table_add(t, json_integer_value(throttled) ? YELLOW : PLAIN, throttled ? text : "-");
	table_add(t, PLAIN, amount_bytes(ji(u, "memory"), text));
	show_list(t, YELLOW, json_object_get(u, "pressure"));
}

static void add_container(struct table *t, const json_t *c, bool measured)
{
	char text[UNIT_MAX];
	const char *state = js(c, "state"), *cpus = js(c, "cpus");
	const json_t *wanted = json_object_get(c, "wanted");
	bool confined = *cpus != '\0';
	bool exclusive = *js(c, "exclusive");
	table_add(t, PLAIN, js(c, "full_name"));
	table_add(t, state_style(state), state);
	table_add(t, PLAIN, js(c, "qos"));
	table_add(t, PLAIN, confined ? cpus : "any");
	table_add(t, exclusive ? CYAN : DIM, confined ? own_part(c) : "");
	table_add(t, PLAIN, *js(c, "mems") ? js(c, "mems") : "any");
	table_add(t, PLAIN, amount_cpu(ji(wanted, "cpu_request_milli"), text));
	table_add(t, PLAIN, amount_bytes(ji(wanted, "memory_request"), text));
	if (measured)
		add_usage(t, json_object_get(c, "usage"));
	add_id(t, c);
}

void show_containers(struct out *o, const json_t *doc, bool wide)
{
	static const struct column columns[] = {
		{.title = "Container", .flex = true},
		{.title = "State", .drop = 6},
		{.title = "QoS", .drop = 5},
		{.title = "CPUs", .flex = true},
		{.title = "Use", .flex = true, .drop = 2},
		{.title = "Mems", .flex = true},
		{.title = "CPU req", .right = true},
		{.title = "Mem req", .right = true, .drop = 3},
		{.title = "CPU used", .right = true},
		{.title = "Throttled", .right = true},
		{.title = "Mem used", .right = true},
		{.title = "Lacks"},
	};
	static const struct column id = {.title = "ID", .drop = 9};
	struct column list[sizeof columns / sizeof columns[0] + 1];
	const json_t *c;
	size_t i;
	bool measured = false;
	struct term term = o->term;
	if (wide)
		term.width = 0;
	json_array_foreach(doc, i, c) measured =
		measured || (wide && json_is_object(json_object_get(c, "usage")));
	const unsigned n = measured ? sizeof columns / sizeof columns[0] : USAGE_COLUMN;
	memcpy(list, columns, n * sizeof list[0]);
	list[n] = id;
	struct table *t = table_new(&term, list, n + 1);
	json_array_foreach(doc, i, c) add_container(t, c, measured);
	if (!table_rows(t))
		out_put(o, "No containers.\n");
	table_end(t, o);
	json_array_foreach(doc, i, c)
	{
		const char *degraded = js(c, "degraded");
		if (!*degraded)
			continue;
		out_styled(o, YELLOW, "! ");
		out_text(o, js(c, "full_name"));
		out_put(o, ": ");
		out_wrap(o, degraded, 4 + text_width(js(c, "full_name")), 4);
		out_put(o, "\n");
	}
}

/* ---- explain --------------------------------------------------------------------------------- */

static void show_identity(struct out *o, const json_t *c)
{
	out_heading(o, js(c, "full_name"));
	out_fieldf(o, "State", "%s, %s", js(c, "state"), js(c, "qos"));
	out_field(o, "ID", js(c, "id"));
	if (*js(c, "cgroup"))
		out_field(o, "Cgroup", js(c, "cgroup"));
	if (*js(c, "degraded"))
		out_item(o, YELLOW, "Degraded      ", js(c, "degraded"), 14);
}

static void show_needs(struct out *o, const json_t *c)
{
	const json_t *w = json_object_get(c, "wanted"), *flag;
	char a[UNIT_MAX], b[UNIT_MAX];
	bool estimated = false;
	size_t i;
	json_array_foreach(json_object_get(c, "flags"), i, flag) estimated =
		estimated || str_eq(json_string_value(flag), "memory-estimated");
	out_fieldf(o, "CPU", "request %s, limit %s", amount_cpu(ji(w, "cpu_request_milli"), a),
		   amount_cpu(ji(w, "cpu_limit_milli"), b));
	out_fieldf(o, "Memory", "request %s%s, limit %s", amount_bytes(ji(w, "memory_request"), a),
		   estimated ? " (estimated from its OOM score)" : "",
		   amount_bytes(ji(w, "memory_limit"), b));
	if (!*js(c, "adjustment"))
		return;
	w = json_object_get(c, "decided_for");
	out_fieldf(o, "Adjusted by", "%.60s: CPU request %s, memory request %s",
		   js(c, "adjustment"), amount_cpu(ji(w, "cpu_request_milli"), a),
		   amount_bytes(ji(w, "memory_request"), b));
	if (!ji(c, "toptier_limit"))
		return;
	out_fieldf(o, "Top tier", "at most %s%s", amount_bytes(ji(c, "toptier_limit"), a),
		   jb(c, "toptier_written")
			   ? ""
			   : ", not applied: the controller memory is not running");
}

static void show_placement(struct out *o, const json_t *c)
{
	static const struct {
		const char *key, *name;
	} classes[] = {{"rdt_class", "RDT class"},
		       {"blockio_class", "Block I/O"},
		       {"cpu_class", "CPU class"}};
	struct buf text = BUF_INIT;
	const char *cpus = js(c, "cpus"), *exclusive = js(c, "exclusive"), *mems = js(c, "mems");
	(void)buf_add_str(&text, *cpus ? cpus : "any");
	if (*cpus && (!*exclusive || str_eq(cpus, exclusive)))
		(void)buf_printf(&text, ", %s",
				 *exclusive	  ? "exclusive"
				 : jb(c, "alone") ? "shared, at present without others"
						  : "shared");
	else if (*cpus)
		(void)buf_printf(&text, ", exclusive: %s", exclusive);
	out_field(o, "CPUs", buf_text(&text));
	out_field(o, "Memory nodes", *mems ? mems : "any");
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
		if (*js(c, classes[i].key))
			out_field(o, classes[i].name, js(c, classes[i].key));
	buf_reset(&text);
	const char *policy = js(c, "policy"), *at = js(c, "configured_at"),
		   *section = js(c, "section");
	(void)buf_printf(&text, "%s%s%s%s%s%s", *policy ? policy : "no policy",
			 *at ? ", chosen at " : "", at, *section ? ", configured at " : "", section,
			 jb(c, "update_waits") ? "; an update is waiting to be sent" : "");
	out_field(o, "Decided by", buf_text(&text));
	buf_fini(&text);
}

/* Shows the last readings of metrics.collectInterval. */
static void show_usage(struct out *o, const json_t *c)
{
	json_t *u = json_object_get(c, "usage"), *bytes;
	const char *node;
	struct buf text = BUF_INIT;
	char amount[UNIT_MAX];
	if (!json_is_object(u))
		return;
	out_put(o, "\n");
	out_heading(o, "Usage");
	if (json_object_get(u, "cpu_milli"))
		(void)buf_add_str(&text, unit_cpu(ji(u, "cpu_milli"), amount));
	if (json_object_get(u, "throttled_permille"))
		(void)buf_printf(&text, ", throttled in %.1f %% of periods",
				 (double)ji(u, "throttled_permille") / 10);
	if (buf_len(&text))
		out_field(o, "CPU", buf_text(&text));
	buf_reset(&text);
	(void)buf_add_str(&text, amount_bytes(ji(u, "memory"), amount));
	json_object_foreach(json_object_get(u, "memory_by_node"), node, bytes)(void) buf_printf(
		&text, "; node %s: %s", node, amount_bytes(json_integer_value(bytes), amount));
	out_field(o, "Memory", buf_text(&text));
	buf_reset(&text);
	show_join(&text, json_object_get(u, "pressure"));
	if (buf_len(&text))
		out_field(o, "Lacks", buf_text(&text));
	buf_fini(&text);
}

static void show_controllers(struct out *o, const json_t *c)
{
	const json_t *r;
	size_t i;
	json_array_foreach(json_object_get(c, "controllers"), i, r)
	{
		const char *result = js(r, "result"), *text = js(r, "text");
		bool bad = str_eq(result, "partial") || str_eq(result, "failed");
		char *line = str_printf("%s%s%s", result, *text ? ": " : "", text);
		out_field(o, js(r, "name"), NULL);
		out_style(o, bad ? YELLOW : PLAIN);
		out_wrap(o, line ? line : result, 14, 14);
		out_style(o, PLAIN);
		out_put(o, "\n");
		free(line);
	}
}

static void add_value(struct table *t, const char *name, const json_t *v)
{
	char text[UNIT_MAX];
	if (json_is_string(v)) {
		table_add(t, PLAIN, json_string_value(v));
		return;
	}
	if (!json_is_integer(v)) {
		table_add(t, DIM, "-");
		return;
	}
	int64_t n = json_integer_value(v);
	if (str_eq(name, "memory_limit"))
		table_add(t, PLAIN, unit_bytes((uint64_t)n, text));
	else
		table_addf(t, PLAIN, "%" PRId64, n);
}

static void show_values(struct out *o, const json_t *c)
{
	static const struct column columns[] = {
		{.title = "Value"},
		{.title = "Decided", .flex = true},
		{.title = "Requested", .flex = true},
		{.title = "Active", .flex = true},
	};
	const json_t *v;
	size_t i;
	struct table *t = table_new(&o->term, columns, 4);
	json_array_foreach(json_object_get(c, "values"), i, v)
	{
		const char *name = js(v, "name");
		const json_t *decided = json_object_get(v, "decided"),
			     *asked = json_object_get(v, "asked");
		const json_t *in_force = json_object_get(v, "in_force");
		if (json_is_null(decided) && json_is_null(asked) && json_is_null(in_force))
			continue;
		table_add(t, PLAIN, name);
		add_value(t, name, decided);
		add_value(t, name, asked);
		add_value(t, name, in_force);
	}
	if (table_rows(t))
		out_put(o, "\n");
	table_end(t, o);
}

static void show_why(struct out *o, const json_t *lines)
{
	const json_t *line;
	size_t i;
	json_array_foreach(lines, i, line)
	{
		out_item(o, PLAIN, "  ", json_string_value(line), 4);
	}
}

static void show_trail(struct out *o, const json_t *c)
{
	out_put(o, "\n");
	out_heading(o, "Why");
	if (*js(c, "remark"))
		out_item(o, PLAIN, "  ", js(c, "remark"), 4);
	show_why(o, json_object_get(c, "why"));
}

static void show_annotations(struct out *o, json_t *annotations)
{
	const char *key;
	json_t *value;
	if (!json_object_size(annotations))
		return;
	out_put(o, "\n");
	out_heading(o, "Annotations of the pod");
	json_object_foreach(annotations, key, value)
	{
		char *line = str_printf("%s: %s", key, json_string_value(value));
		out_item(o, PLAIN, "  ", line ? line : key, 4);
		free(line);
	}
}

static void show_withheld(struct out *o, json_t *keys)
{
	json_t *key;
	size_t i;
	if (!json_array_size(keys))
		return;
	out_put(o, "\n");
	out_heading(o, "Annotations without effect in this namespace");
	json_array_foreach(keys, i, key) out_printf(o, "  %s\n", json_string_value(key));
}

static void show_history(struct out *o, const json_t *events)
{
	const json_t *e;
	size_t i;
	json_array_foreach(events, i, e) show_event(o, e);
}

static void show_refused(struct out *o, const json_t *e)
{
	char when[UNIT_MAX];
	out_styled(o, RED, "Refused");
	out_printf(o, " %s: ", unit_time(js(e, "time"), when));
	out_wrap(o, js(e, "text"), 26, 2);
	out_put(o, "\n");
	if (!json_array_size(json_object_get(e, "why")))
		return;
	out_put(o, "\n");
	out_heading(o, "Attempts");
	show_why(o, json_object_get(e, "why"));
}

static void show_pod(struct out *o, const json_t *pod)
{
	const json_t *containers = json_object_get(pod, "containers");
	const json_t *own = json_object_get(pod, "own"), *c;
	char a[UNIT_MAX], b[UNIT_MAX];
	size_t i;
	out_printf(o, "%s/%s, %s\n", js(pod, "namespace"), js(pod, "name"), js(pod, "qos"));
	if (own) {
		out_fieldf(o, "Pod CPU", "request %s, limit %s",
			   amount_cpu(ji(own, "cpu_request_milli"), a),
			   amount_cpu(ji(own, "cpu_limit_milli"), b));
		out_fieldf(o, "Pod memory", "request %s, limit %s",
			   amount_bytes(ji(own, "memory_request"), a),
			   amount_bytes(ji(own, "memory_limit"), b));
	}
	out_put(o, "\n");
	show_containers(o, containers, false);
	json_array_foreach(containers, i, c)
	{
		out_put(o, "\n");
		out_heading(o, js(c, "name"));
		show_why(o, json_object_get(c, "why"));
	}
}

void show_explain(struct out *o, const json_t *c)
{
	if (str_eq(js(c, "document"), "pod")) {
		show_pod(o, c);
		return;
	}
	if (json_object_get(c, "history")) {
		show_history(o, json_object_get(c, "history"));
		return;
	}
	if (json_object_get(c, "refused")) {
		show_refused(o, json_object_get(c, "refused"));
		return;
	}
	show_identity(o, c);
	out_put(o, "\n");
	out_heading(o, "Needs");
	show_needs(o, c);
	out_put(o, "\n");
	out_heading(o, "Placement");
	show_placement(o, c);
	show_controllers(o, c);
	show_usage(o, c);
	show_values(o, c);
	show_trail(o, c);
	show_annotations(o, json_object_get(c, "annotations"));
	show_withheld(o, json_object_get(c, "withheld_annotations"));
}
