/* SPDX-License-Identifier: Apache-2.0 */
/* Output of node: the Node object, its overcommitted resources, and how they were calculated. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/nri-rpctl/cli.h"

static void show_amounts(struct out *o, const char *name, const json_t *of)
{
	char cpu[UNIT_MAX], memory[UNIT_MAX];
	if (!json_object_get(of, "cpu"))
		return;
	(void)unit_cpu(ji(of, "cpu"), cpu);
	(void)unit_bytes((uint64_t)ji(of, "memory"), memory);
	out_pad(o, 2);
	out_printf(o, "%-12s %8s CPUs  %10s\n", name, cpu, memory);
}

static void add_since(struct table *t, const json_t *r)
{
	char age[UNIT_MAX] = "";
	if (json_object_get(r, "since_ms"))
		(void)unit_age(ji(r, "since_ms") / 1000, age);
	table_add(t, PLAIN, age);
}

static const char *quantity_text(const json_t *r, int64_t v, char text[UNIT_MAX])
{
	if (strstr(js(r, "name"), "memory"))
		(void)unit_bytes((uint64_t)v, text);
	else
		(void)snprintf(text, UNIT_MAX, "%" PRId64, v);
	return text;
}

/* Shows values as bars, from 0 to the maximum of the hour; a blank is a missing value. */
static void show_graph(struct out *o, const json_t *past, int64_t most)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	const json_t *v;
	size_t i;
	json_array_foreach(past, i, v)
	{
		int64_t n = json_integer_value(v);
		int64_t level = most > 0 ? n * 7 / most : 0;
		const char *const *set = o->term.utf8 ? bars : ascii;
		(void)buf_add_str(&o->buf, json_is_integer(v) ? set[level < 0	? 0
								    : level > 7 ? 7
										: level]
							      : " ");
	}
}

static void show_past(struct out *o, const json_t *list)
{
	const json_t *r, *v;
	size_t i, k;
	char text[UNIT_MAX], low[UNIT_MAX];
	json_array_foreach(list, i, r)
	{
		const json_t *past = json_object_get(r, "past");
		int64_t most = INT64_MIN, least = INT64_MAX;
		json_array_foreach(past, k, v)
		{
			if (!json_is_integer(v))
				continue;
			most = json_integer_value(v) > most ? json_integer_value(v) : most;
			least = json_integer_value(v) < least ? json_integer_value(v) : least;
		}
		if (json_array_size(past) < 2 || most == INT64_MIN)
			continue;
		out_styled(o, BOLD, js(r, "name"));
		out_printf(o, " in the last %zu min, %s to %s\n  ", json_array_size(past),
			   quantity_text(r, least, low), quantity_text(r, most, text));
		show_graph(o, past, most);
		out_put(o, "\n");
	}
}

static void add_quantity(struct table *t, const json_t *r, const char *key)
{
	char text[UNIT_MAX] = "-";
	if (!json_object_get(r, key)) {
		table_add(t, DIM, text);
		return;
	}
	table_add(t, PLAIN, quantity_text(r, ji(r, key), text));
}

static void show_resources(struct out *o, const json_t *list)
{
	static const struct column columns[] = {
		{.title = "Resource"},
		{.title = "Calculated", .right = true},
		{.title = "On the node", .right = true},
		{.title = "Since", .right = true, .drop = COLUMN_EXTRA},
		{.title = "Why", .flex = true},
	};
	const json_t *r;
	size_t i;
	struct table *t = table_new(&o->term, columns, 5);
	json_array_foreach(list, i, r)
	{
		table_add(t, BOLD, js(r, "name"));
		add_quantity(t, r, "value");
		add_quantity(t, r, "written");
		add_since(t, r);
		table_add(t, PLAIN, js(r, "why"));
	}
	table_end(t, o);
}

static void show_calculators(struct out *o, const json_t *list)
{
	const json_t *c;
	size_t i;
	json_array_foreach(list, i, c)
	{
		if (!*js(c, "error"))
			continue;
		out_styled(o, BOLD, js(c, "name"));
		out_put(o, ": ");
		out_text(o, js(c, "error"));
		out_put(o, "\n");
	}
}

static void show_statistics(struct out *o, const json_t *a, const char *of)
{
	static const char *const names[] = {"avg", "p50", "p90", "p95", "p99"};
	const json_t *all = json_object_get(a, of);
	char cpu[UNIT_MAX], memory[UNIT_MAX];
	if (!all)
		return;
	out_printf(o, "  %s in %" PRId64 " s:", strcmp(of, "node") ? "Without a pod" : "Used",
		   ji(a, "duration_s"));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const json_t *one = json_object_get(all, names[i]);
		(void)unit_cpu(ji(one, "cpu"), cpu);
		(void)unit_bytes((uint64_t)ji(one, "memory"), memory);
		out_printf(o, "  %s %s CPUs %s", names[i], cpu, memory);
	}
	out_put(o, "\n");
}

static void show_aggregated(struct out *o, const json_t *list)
{
	const json_t *a;
	size_t i;
	json_array_foreach(list, i, a)
	{
		show_statistics(o, a, "node");
		show_statistics(o, a, "system");
	}
}

/* Shows a number, or a list of numbers. */
static void show_value(struct out *o, const json_t *value)
{
	const json_t *v;
	size_t i;
	if (!json_is_array(value)) {
		out_printf(o, "%g", json_number_value(value));
		return;
	}
	json_array_foreach(value, i, v) out_printf(o, "%s%g", i ? ", " : "", json_number_value(v));
}

static void show_strategy(struct out *o, const json_t *list)
{
	const json_t *f;
	size_t i;
	json_array_foreach(list, i, f)
	{
		if (strcmp(js(f, "origin"), "default") == 0)
			continue;
		out_printf(o, "  %s: ", js(f, "field"));
		show_value(o, json_object_get(f, "value"));
		out_printf(o, " (%s)\n", js(f, "origin"));
	}
}

/* Shows labels and taints, which affect scheduling. Annotations, which are many and long, are only
 * in --json. */
static void show_object(struct out *o, const json_t *node)
{
	const json_t *t, *value;
	const char *key;
	size_t i;
	if (!json_is_object(node))
		return;
	out_printf(o, "Node %s in the cluster%s\n", js(node, "name"),
		   jb(node, "unschedulable") ? ", cordoned" : "");
	json_object_foreach((json_t *)json_object_get(node, "labels"), key, value)
		out_printf(o, "  %s=%s\n", key, json_string_value(value));
	json_array_foreach(json_object_get(node, "taints"), i, t)
		out_printf(o, "  taint %s%s%s:%s\n", js(t, "key"), *js(t, "value") ? "=" : "",
			   js(t, "value"), js(t, "effect"));
}

static void show_wishes(struct out *o, const json_t *list)
{
	const json_t *w, *amount;
	size_t i;
	json_array_foreach(list, i, w)
	{
		amount = json_object_get(w, "amount");
		out_printf(o, "%s requests the %s %s", js(w, "module"), js(w, "kind"),
			   js(w, "key"));
		if (amount)
			out_printf(o, " of %" PRId64, (int64_t)json_integer_value(amount));
		else
			out_printf(o, "=%s%s%s", js(w, "value"), *js(w, "effect") ? ":" : "",
				   js(w, "effect"));
		out_put(o, jb(w, "waits")   ? ", as another calculator does\n"
			   : jb(w, "there") ? "\n"
					    : ": missing on the Node\n");
	}
}

void show_node(struct out *o, const json_t *doc)
{
	const json_t *measured = json_object_get(doc, "measured"), *a;
	const char *key;
	show_object(o, json_object_get(doc, "object"));
	show_wishes(o, json_object_get(doc, "wishes"));
	if (!json_array_size(json_object_get(doc, "calculators"))) {
		out_put(o, "No calculators are configured: see nri-rp-node-resources(7).\n");
		return;
	}
	if (!ji(doc, "passes"))
		out_put(o, "No calculation has run yet.\n");
	if (!jb(doc, "enabled"))
		out_put(o, "Overcommitment is off: see nodeResources.strategy.enable.\n");
	if (*js(doc, "error"))
		out_printf(o, "The node cannot be measured: %s\n", js(doc, "error"));
	show_calculators(o, json_object_get(doc, "calculators"));
	show_amounts(o, "Capacity", json_object_get(doc, "capacity"));
	show_amounts(o, "Allocatable", json_object_get(doc, "allocatable"));
	show_amounts(o, "Used", json_object_get(measured, "node"));
	show_amounts(o, "Without a pod", json_object_get(measured, "system"));
	show_amounts(o, "Prod peak", json_object_get(measured, "prod_peak"));
	show_aggregated(o, json_object_get(doc, "aggregated"));
	show_resources(o, json_object_get(doc, "resources"));
	show_past(o, json_object_get(doc, "resources"));
	json_object_foreach((json_t *)json_object_get(doc, "annotations"), key, a)
		out_printf(o, "%s: %s\n", key, json_string_value(a));
	show_strategy(o, json_object_get(doc, "strategy"));
}
