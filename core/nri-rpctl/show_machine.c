/* SPDX-License-Identifier: Apache-2.0 */
/* Output of zones, and of the table of CPUs. show_map.c draws the map. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <nri-rp/set.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/str.h"

/* ---- zones ----------------------------------------------------------------------------------- */

#define ZONE_DEPTH_MAX 16u

static unsigned depth_of(const json_t *doc, const json_t *zone)
{
	unsigned depth = 0;
	for (const char *parent = js(zone, "parent"); *parent && depth < ZONE_DEPTH_MAX;) {
		const json_t *z, *found = NULL;
		size_t i;
		json_array_foreach(doc, i, z) if (str_eq(js(z, "name"), parent)) found = z;
		if (!found)
			break;
		depth++;
		parent = js(found, "parent");
	}
	return depth;
}

/* Formats CPUs with at most two decimals, so that the numbers of a column have one unit. The
 * thousandth that is counted for a container without a request is not shown. */
static const char *zone_cpus(int64_t milli, char ret[UNIT_MAX])
{
	const int64_t hundredths = (milli + 5) / 10;
	if (milli < 0)
		return unit_cpu(milli, ret);
	(void)snprintf(ret, UNIT_MAX, "%.2f", (double)hundredths / 100);
	for (size_t n = strlen(ret);
	     n && strchr(ret, '.') && (ret[n - 1] == '0' || ret[n - 1] == '.'); n--) {
		const bool point = ret[n - 1] == '.';
		ret[n - 1] = '\0';
		if (point)
			break;
	}
	return ret;
}

/* Adds an amount as "12 of 16": available of allocatable, and the capacity if it is larger. */
static void add_resource(struct table *t, const json_t *zone, const char *name)
{
	const json_t *r;
	size_t i;
	bool cpu = str_eq(name, "cpu");
	json_array_foreach(json_object_get(zone, "resources"), i, r)
	{
		char free[UNIT_MAX], all[UNIT_MAX];
		if (!str_eq(js(r, "name"), name))
			continue;
		int64_t available = ji(r, "available"), allocatable = ji(r, "allocatable");
		table_addf(t, available > 0 ? PLAIN : YELLOW, "%s of %s",
			   cpu ? zone_cpus(available, free)
			       : unit_bytes(available > 0 ? (uint64_t)available : 0, free),
			   cpu ? zone_cpus(allocatable, all)
			       : unit_bytes(allocatable > 0 ? (uint64_t)allocatable : 0, all));
		return;
	}
	table_add(t, DIM, "-");
}

static void add_attributes(struct table *t, const json_t *zone)
{
	struct buf text = BUF_INIT;
	const json_t *a;
	size_t i;
	json_array_foreach(json_object_get(zone, "attributes"), i, a)
	{
		if (*js(a, "value"))
			(void)buf_printf(&text, "%s%s %s", buf_len(&text) ? "; " : "",
					 js(a, "name"), js(a, "value"));
	}
	table_add(t, PLAIN, buf_text(&text));
	buf_fini(&text);
}

void show_zones(struct out *o, const json_t *doc)
{
	static const struct column columns[] = {
		{.title = "Zone"},
		{.title = "Type", .drop = 2},
		{.title = "Free CPU", .right = true},
		{.title = "Free memory", .right = true},
		{.title = "Attributes", .flex = true, .drop = 3},
	};
	const json_t *z;
	size_t i;
	struct table *t = table_new(&o->term, columns, 5);
	json_array_foreach(doc, i, z)
	{
		table_addf(t, BOLD, "%*s%s", (int)(2 * depth_of(doc, z)), "", js(z, "name"));
		table_add(t, DIM, js(z, "type"));
		add_resource(t, z, "cpu");
		add_resource(t, z, "memory");
		add_attributes(t, z);
	}
	if (!table_rows(t))
		out_put(o, "The active policy has no zones.\n");
	table_end(t, o);
}

/* ---- topology as a table --------------------------------------------------------------------- */

#define NAMED_MAX 3u

static void add_number(struct table *t, const json_t *o, const char *key)
{
	if (json_is_integer(json_object_get(o, key)))
		table_addf(t, PLAIN, "%" PRId64, ji(o, key));
	else
		table_add(t, PLAIN, "-");
}

/* Adds the containers that may use a CPU: the first few names, and the number of the others. */
static void add_users(struct table *t, const json_t *groups, struct rp_idset *sets, uint32_t cpu)
{
	struct buf text = BUF_INIT;
	const json_t *g, *name;
	size_t i, k;
	unsigned n = 0;
	bool exclusive = false;
	json_array_foreach(groups, i, g)
	{
		if (!rp_ids_has(rp_ids_of(&sets[i]), cpu))
			continue;
		exclusive = exclusive || jb(g, "exclusive");
		json_array_foreach(json_object_get(g, "containers"), k, name) if (n++ < NAMED_MAX)(
			void) buf_printf(&text, "%s%s", n > 1 ? ", " : "", json_string_value(name));
	}
	if (n > NAMED_MAX)
		(void)buf_printf(&text, " and %u more", n - NAMED_MAX);
	table_add(t, exclusive ? CYAN : DIM, exclusive ? "exclusive" : n ? "shared" : "free");
	table_add(t, PLAIN, buf_text(&text));
	buf_fini(&text);
}

static struct rp_idset *parse_sets(const json_t *groups)
{
	const json_t *g;
	size_t i;
	struct rp_idset *sets = calloc(json_array_size(groups) + 1, sizeof *sets);
	json_array_foreach(groups, i,
			   g) if (sets && rp_idset_parse(&sets[i], js(g, "cpus"), RP_CPUS_MAX))
		rp_idset_clear(&sets[i]);
	return sets;
}

/* ---- Speed Select ---------------------------------------------------------------------------- */

static void add_texts(struct table *t, const json_t *list)
{
	struct buf text = BUF_INIT;
	const json_t *s;
	size_t i;
	json_array_foreach(list, i, s)(void)
		buf_printf(&text, "%s%s", i ? " " : "", json_string_value(s));
	table_add(t, buf_len(&text) ? GREEN : DIM, buf_len(&text) ? buf_text(&text) : "off");
	buf_fini(&text);
}

static void add_classes(struct table *t, const json_t *list)
{
	struct buf text = BUF_INIT;
	const json_t *c;
	size_t i;
	json_array_foreach(list, i, c)(void)
		buf_printf(&text, "%s%" PRId64 ": %" PRId64 "-%" PRId64, i ? ", " : "", ji(c, "id"),
			   ji(c, "min_mhz"), ji(c, "max_mhz"));
	table_add(t, PLAIN, buf_text(&text));
	buf_fini(&text);
}

void show_speedselect(struct out *o, const json_t *doc)
{
	static const struct column columns[] = {
		{.title = "Package", .right = true},
		{.title = "Punit", .right = true},
		{.title = "CPUs"},
		{.title = "Speed Select"},
		{.title = "Priority", .drop = 2},
		{.title = "High CPUs"},
		{.title = "CLOS, MHz", .drop = 3},
	};
	const json_t *punits = json_object_get(json_object_get(doc, "speed_select"), "punits"), *p;
	size_t i;
	if (!json_array_size(punits))
		return;
	out_put(o, "\n");
	struct table *t = table_new(&o->term, columns, 7);
	json_array_foreach(punits, i, p)
	{
		add_number(t, p, "package");
		add_number(t, p, "punit");
		table_add(t, PLAIN, js(p, "cpus"));
		add_texts(t, json_object_get(p, "enabled"));
		table_add(t, PLAIN, js(p, "priority"));
		show_list(t, PLAIN, json_object_get(p, "high_priority_cores"));
		add_classes(t, json_object_get(p, "clos"));
	}
	table_end(t, o);
}

void show_topology_table(struct out *o, const json_t *doc)
{
	static const struct column columns[] = {
		{.title = "CPU", .right = true},
		{.title = "Package", .right = true, .drop = 2},
		{.title = "Die", .right = true, .drop = 4},
		{.title = "Node", .right = true},
		{.title = "Cache", .right = true, .drop = 3},
		{.title = "Core", .right = true},
		{.title = "Kind", .drop = 5},
		{.title = "Use"},
		{.title = "Containers", .flex = true},
	};
	static const char *const keys[] = {"cpu", "package", "die", "node", "cache_unit", "core"};
	const json_t *groups = json_object_get(doc, "groups"), *cpu;
	size_t i;
	struct rp_idset *sets = parse_sets(groups);
	struct table *t = sets ? table_new(&o->term, columns, 9) : NULL;
	json_array_foreach(json_object_get(doc, "cpus"), i, cpu)
	{
		for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
			add_number(t, cpu, keys[k]);
		table_add(t, DIM, js(cpu, "kind"));
		if (sets)
			add_users(t, groups, sets, (uint32_t)ji(cpu, "cpu"));
	}
	table_end(t, o);
	free(sets);
	show_speedselect(o, doc);
}
