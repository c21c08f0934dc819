/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/str.h"

static const char *show_status_count(const json_t *o, const char *key, const char *one,
				     const char *many, char buf[UNIT_MAX])
{
	return unit_count((uint64_t)ji(o, key), one, many, buf);
}

static int64_t show_status_since(const json_t *doc, const char *time)
{
	int64_t then = time_parse(time);
	return then ? time_parse(js(doc, "now")) - then : 0;
}

static void show_head(struct out *o, const json_t *doc)
{
	char age[UNIT_MAX];
	size_t i;
	const json_t *reason;
	bool degraded = jb(doc, "degraded");
	out_style(o, BOLD);
	out_printf(o, "nri-rpd %s", js(doc, "version"));
	out_style(o, PLAIN);
	out_put(o, "  ");
	out_styled(o, degraded ? YELLOW : GREEN, degraded ? "degraded" : "healthy");
	out_printf(o, ", up %s, pid %lld\n",
		   unit_age(show_status_since(doc, js(doc, "started")), age),
		   (long long)ji(doc, "pid"));
	json_array_foreach(json_object_get(doc, "reasons"), i, reason)
	{
		out_item(o, YELLOW, "  ! ", json_string_value(reason), 4);
	}
	out_put(o, "\n");
}

/* Shows problems if there are several; a single one is among the reasons already. */
static void show_problems(struct out *o, const json_t *problems)
{
	size_t i;
	const json_t *line;
	json_array_foreach(problems, i, line)
	{
		if (json_array_size(problems) < 2)
			return;
		out_item(o, YELLOW, "  ! ", json_string_value(line), 4);
	}
}

static void show_policy(struct out *o, const json_t *doc)
{
	const json_t *policy = json_object_get(doc, "policy"),
		     *config = json_object_get(doc, "config");
	const char *name = js(policy, "name"), *configured = js(policy, "configured");
	if (str_eq(name, configured))
		out_fieldf(o, "Policy", "%s %s", name, js(policy, "version"));
	else
		out_fieldf(o, "Policy", "%s %s, configured: %s", *name ? name : "-",
			   js(policy, "version"), configured);
	out_fieldf(o, "Configuration", "%s, generation %lld%s%s", js(config, "path"),
		   (long long)ji(config, "generation"),
		   *js(config, "kept") ? ", last working configuration of "
		   : jb(config, "ok")  ? ""
				       : ", changed and refused since",
		   js(config, "kept"));
	if (jb(config, "undone"))
		out_fieldf(o, "", "previous configuration (rp.conf on disk is not active)");
	if (ji(config, "unconfirmed_s"))
		out_fieldf(o, "", "will be undone in %lld s; run `nri-rpctl confirm` to keep it",
			   (long long)ji(config, "unconfirmed_s"));
	show_problems(o, json_object_get(config, "problems"));
}

static void show_runtime(struct out *o, const json_t *doc)
{
	const json_t *rt = json_object_get(doc, "runtime");
	char age[UNIT_MAX];
	if (!jb(rt, "connected")) {
		out_fieldf(o, "Runtime", "not connected");
		return;
	}
	const char *nri = js(rt, "nri_version");
	out_fieldf(o, "Runtime", "%s %s%s%s%s, connected for %s%s", js(rt, "name"),
		   js(rt, "version"), *nri ? " (NRI " : "", nri, *nri ? ")" : "",
		   unit_age(show_status_since(doc, js(rt, "connected_at")), age),
		   jb(rt, "synchronized") ? "" : ", not synchronized yet");
	if (jb(rt, "on_fallback"))
		out_fieldf(o, "Fallback", "connected to %s: %s", js(rt, "fallback"),
			   js(rt, "fallback_reason"));
	if (jb(rt, "creation_is_late"))
		out_fieldf(o, "",
			   "containers are placed just after their start and cannot be refused");
}

#define NOTES_SHOWN 3u

static void show_machine(struct out *o, const json_t *doc)
{
	const json_t *m = json_object_get(doc, "machine");
	char a[UNIT_MAX], b[UNIT_MAX], c[UNIT_MAX], d[UNIT_MAX], e[UNIT_MAX];
	out_fieldf(o, "Machine", "%s, %s, %s, %s, %s",
		   show_status_count(m, "packages", "package", "packages", a),
		   show_status_count(m, "nodes", "memory node", "memory nodes", b),
		   show_status_count(m, "cores", "core", "cores", c),
		   show_status_count(m, "cpus", "CPU", "CPUs", d),
		   unit_bytes((uint64_t)ji(m, "memory"), e));
	const json_t *notes = json_object_get(m, "notes"), *note;
	size_t i;
	json_array_foreach(notes, i, note)
	{
		if (i == NOTES_SHOWN)
			break;
		out_fieldf(o, "", "%s", json_string_value(note));
	}
	if (json_array_size(notes) > NOTES_SHOWN)
		out_fieldf(o, "", "and %zu more: nri-rpctl doctor",
			   json_array_size(notes) - NOTES_SHOWN);
}

static void show_counts(struct out *o, const json_t *doc)
{
	const json_t *u = json_object_get(doc, "updates");
	char a[UNIT_MAX], b[UNIT_MAX];
	int64_t degraded = ji(doc, "degraded_containers"), failed = ji(u, "failed");
	int64_t waiting = ji(u, "waiting");
	struct buf text = BUF_INIT;
	(void)buf_printf(&text, "%s in %s",
			 show_status_count(doc, "containers", "container", "containers", a),
			 show_status_count(doc, "pods", "pod", "pods", b));
	if (degraded)
		(void)buf_printf(&text, ", %lld degraded", (long long)degraded);
	out_field(o, "Containers", buf_text(&text));
	buf_reset(&text);
	(void)buf_printf(&text, "%lld with replies, %lld unsolicited",
			 (long long)ji(u, "in_replies"), (long long)ji(u, "sent"));
	if (failed)
		(void)buf_printf(&text, ", %lld failed", (long long)failed);
	if (waiting)
		(void)buf_printf(&text, ", %lld waiting", (long long)waiting);
	out_field(o, "Updates", buf_text(&text));
	buf_fini(&text);
}

static void show_controllers(struct out *o, const json_t *doc)
{
	const json_t *list = json_object_get(doc, "controllers"), *c;
	size_t i;
	struct buf text = BUF_INIT;
	json_array_foreach(list, i, c)(void)
		buf_printf(&text, "%s%s%s", i ? ", " : "", js(c, "name"),
			   jb(c, "running") ? "" : " (not running)");
	out_field(o, "Controllers", buf_len(&text) ? buf_text(&text) : "none");
	buf_fini(&text);
}

/* Shows the agent, if the configuration needs one. */
static void show_agent(struct out *o, const json_t *doc)
{
	const json_t *a = json_object_get(doc, "agent");
	const json_t *pods = json_object_get(a, "pods"), *claims = json_object_get(a, "claims");
	char text[UNIT_MAX];
	if (!json_is_object(a))
		return;
	if (jb(a, "connected"))
		out_fieldf(o, "Agent", "connected, devices of %s",
			   show_status_count(pods, "known", "pod", "pods", text));
	else
		out_fieldf(o, "Agent", "not connected: %s", js(a, "error"));
	if (!json_is_object(claims))
		return;
	out_fieldf(o, "  claims", "%s, devices with a known place: %lld of %lld",
		   show_status_count(claims, "known", "claim", "claims", text),
		   (long long)ji(claims, "located_devices"),
		   (long long)ji(claims, "located_devices") +
			   (long long)ji(claims, "unlocated_devices"));
	if (json_is_string(json_object_get(claims, "unlocated")))
		out_fieldf(o, "  unlocated", "%s", js(claims, "unlocated"));
	if (json_is_string(json_object_get(claims, "without_claim")))
		out_fieldf(o, "  no claim", "%s", js(claims, "without_claim"));
}

/* Shows the cluster, if the agent takes configurations from it. */
static void show_cluster(struct out *o, const json_t *doc)
{
	const json_t *c = json_object_get(doc, "cluster"), *problem, *written;
	char when[UNIT_MAX];
	const char *source = json_string_value(json_object_get(c, "configuration"));
	size_t i;
	if (!json_is_object(c))
		return;
	if (jb(c, "connected"))
		out_fieldf(o, "Cluster", "node %s of %s, %s%s", js(c, "node"), js(c, "server"),
			   source ? "configured by " : "no configuration in namespace ",
			   source ? source : js(c, "namespace"));
	else
		out_fieldf(o, "Cluster", "not connected: %s%s%s", js(c, "error"),
			   source ? "; configured by " : "", source ? source : "");
	json_array_foreach(json_object_get(c, "written"), i, written)
		out_fieldf(o, i ? "" : "  written", "%s, %s", unit_time(js(written, "time"), when),
			   js(written, "what"));
	if (ji(c, "events_waiting") || ji(c, "events_lost"))
		out_fieldf(o, "  events", "%lld waiting to be written, %lld lost",
			   (long long)ji(c, "events_waiting"), (long long)ji(c, "events_lost"));
	json_array_foreach(json_object_get(c, "problems"), i, problem)
		out_fieldf(o, "  off", "%s", json_string_value(problem));
}

/* Shows the namespaces whose annotations may take resources from other containers. */
static void show_annotations(struct out *o, const json_t *doc)
{
	const json_t *a = json_object_get(doc, "annotations");
	struct buf text = BUF_INIT;
	if (!json_is_object(a))
		return;
	show_join(&text, json_object_get(a, "taker_namespaces"));
	if (str_eq(js(a, "takers"), "peers"))
		out_fieldf(o, "Annotations",
			   "takers: peers; pods of all namespaces may take from other containers%s",
			   ji(a, "rules") ? ", unless annotations.allow has a rule" : "");
	else
		out_fieldf(o, "Annotations",
			   "takers: named; pods of %s%s may take from other containers%s",
			   buf_len(&text) ? "namespaces " : "no namespace",
			   buf_len(&text) ? buf_text(&text) : "",
			   ji(a, "rules") ? ", and those that annotations.allow lists" : "");
	buf_fini(&text);
}

/* Shows the number of adjustments, if there are any. */
static void show_adjustments(struct out *o, const json_t *doc)
{
	char text[UNIT_MAX];
	if (ji(doc, "adjustments"))
		out_fieldf(o, "Adjustments", "%s",
			   show_status_count(doc, "adjustments", "active adjustment",
					     "active adjustments", text));
}

static void show_feed(struct out *o, const json_t *doc)
{
	const json_t *f = json_object_get(doc, "pod_feed");
	char text[UNIT_MAX];
	if (!json_is_object(f))
		return;
	bool current = jb(f, "current");
	out_fieldf(o, "Pod feed", "%s%s%s%s; requests by the %s",
		   current ? "" : "no agent reports; ",
		   show_status_count(f, "pods", "pod", "pods", text),
		   current && *js(f, "origin") ? " of the " : "", current ? js(f, "origin") : "",
		   str_eq(js(f, "request_source"), "feed") ? "feed" : "runtime");
	if (*js(f, "problem"))
		out_fieldf(o, "", "%s", js(f, "problem"));
}

static void show_plugins(struct out *o, const json_t *doc)
{
	const json_t *all = json_object_get(doc, "resource_plugins"), *v;
	size_t i;
	json_array_foreach(json_object_get(all, "plugins"), i, v)
		out_fieldf(o, "Plugin", "%s (%s), %s%s%s", js(v, "resource"), js(v, "endpoint"),
			   jb(v, "connected") ? "connected" : "not connected",
			   *js(v, "error") ? "; last error: " : "", js(v, "error"));
}

static void show_evictions(struct out *o, const json_t *doc)
{
	const json_t *v;
	size_t i;
	json_array_foreach(json_object_get(doc, "evictions"), i, v)
		out_fieldf(o, "Eviction", "%s/%s, %s%s%s; %s: %s", js(v, "namespace"), js(v, "pod"),
			   js(v, "state"), *js(v, "answer") ? ": " : "", js(v, "answer"),
			   js(v, "module"), js(v, "reason"));
}

/* Shows extended resources, if any are published. */
static void show_extended(struct out *o, const json_t *doc)
{
	const json_t *list =
		json_object_get(json_object_get(doc, "extended_resources"), "resources");
	const json_t *r;
	size_t i;
	struct buf text = BUF_INIT;
	json_array_foreach(list, i, r)(void) buf_printf(&text, "%s%s %lld", i ? ", " : "",
							js(r, "name"), (long long)ji(r, "amount"));
	if (buf_len(&text))
		out_field(o, "Extended", buf_text(&text));
	buf_fini(&text);
}

static void show_store(struct out *o, const json_t *doc)
{
	const json_t *s = json_object_get(doc, "store");
	char a[UNIT_MAX], b[UNIT_MAX], took[UNIT_MAX];
	struct buf text = BUF_INIT;
	const char *state = js(s, "state");
	(void)buf_printf(&text, "%s, %s, %s",
			 str_eq(state, "fresh")	     ? "new"
			 : str_eq(state, "restored") ? "restored from disk"
						     : state,
			 show_status_count(s, "commits", "commit", "commits", a),
			 unit_bytes((uint64_t)ji(s, "file_bytes"), b));
	if (ji(s, "commits"))
		(void)buf_printf(&text, ", last took %s",
				 unit_us((uint64_t)ji(s, "last_duration_us"), took));
	if (ji(s, "failures"))
		(void)buf_printf(&text, ", %lld failed", (long long)ji(s, "failures"));
	out_field(o, "Saved state", buf_text(&text));
	buf_fini(&text);
}

static void show_requests(struct out *o, const json_t *doc)
{
	static const struct column columns[] = {{.title = "Request"},
						{.title = "Count", .right = true},
						{.title = "Failed", .right = true},
						{.title = "Mean", .right = true},
						{.title = "Longest", .right = true}};
	const json_t *r;
	size_t i;
	struct table *t = table_new(&o->term, columns, 5);
	json_array_foreach(json_object_get(doc, "requests"), i, r)
	{
		char text[UNIT_MAX];
		int64_t failed = ji(r, "failed");
		table_add(t, PLAIN, js(r, "name"));
		table_addf(t, PLAIN, "%lld", (long long)ji(r, "count"));
		table_addf(t, failed ? YELLOW : PLAIN, "%lld", (long long)failed);
		table_add(t, PLAIN, unit_us((uint64_t)ji(r, "mean_us"), text));
		table_add(t, PLAIN, unit_us((uint64_t)ji(r, "max_us"), text));
	}
	if (table_rows(t))
		out_put(o, "\n");
	table_end(t, o);
}

static void show_memory(struct out *o, const json_t *m)
{
	static const struct {
		const char *key, *name;
	} rows[] = {{"resident", "Resident"},
		    {"resident_peak", "  peak"},
		    {"resident_anonymous", "  anonymous"},
		    {"resident_files", "  files"},
		    {"resident_shared", "  shared"},
		    {"heap_used", "Heap in use"},
		    {"heap_free", "Heap free"},
		    {"machine", "Machine"},
		    {"store_file", "Store file"}};
	char text[UNIT_MAX];
	if (!m)
		return;
	out_put(o, "\n");
	out_heading(o, "Memory");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		out_field(o, rows[i].name, unit_bytes((uint64_t)ji(m, rows[i].key), text));
	out_fieldf(o, "Sets", "%lld different sets of CPUs and nodes for %lld containers",
		   (long long)ji(m, "sets"), (long long)ji(m, "containers"));
}

void show_status(struct out *o, const json_t *doc)
{
	show_head(o, doc);
	show_policy(o, doc);
	show_runtime(o, doc);
	show_machine(o, doc);
	show_counts(o, doc);
	show_controllers(o, doc);
	show_annotations(o, doc);
	show_agent(o, doc);
	show_cluster(o, doc);
	show_adjustments(o, doc);
	show_feed(o, doc);
	show_plugins(o, doc);
	show_evictions(o, doc);
	show_extended(o, doc);
	show_store(o, doc);
	show_requests(o, doc);
	show_memory(o, json_object_get(doc, "memory"));
}
