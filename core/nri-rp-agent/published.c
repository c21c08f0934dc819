/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/published.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-agent/node_patch.h"
#include "core/nri-rp-agent/writer.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define LOG_SOURCE "published"
#define TOPOLOGY_VERSION "topology.node.k8s.io/v1alpha2"
#define TOPOLOGY_MISSING                                                                           \
	"install the definition noderesourcetopologies.topology.node.k8s.io of "                   \
	"github.com/k8stopologyawareschedwg/noderesourcetopology-api, or set "                     \
	"agent.nodeResourceTopology: false"
#define TOPOLOGY_PATH "/apis/" TOPOLOGY_VERSION "/noderesourcetopologies/%s"
#define FIELD_MANAGER "?fieldManager=nri-rp&force=true"
#define QUANTITY_MAX 32u
#define SETTLE_MS 300u

struct published {
	char *name;
	struct writer *topology, *capacity;
	json_t *wanted; /* name → amount as text; NULL: not received yet */
	json_t *patterns; /* names of the agent's resources */
	json_t *seen; /* the Node; NULL: not seen yet */
	bool settling; /* modules are still settling: nothing is removed from the Node yet */
	struct loop_timer *settle; /* delay until the watch has reported a write */
};

/* ---- NodeResourceTopology -------------------------------------------------------------------- */

/* Formats a quantity: CPU in milli-CPU, all other resources in units. */
static json_t *published_quantity(const char *resource, int64_t value)
{
	char text[QUANTITY_MAX];
	bool milli = str_eq(resource, "cpu");
	if (milli && value % 1000 == 0) {
		value /= 1000;
		milli = false;
	}
	(void)snprintf(text, sizeof text, "%lld%s", (long long)value, milli ? "m" : "");
	return json_string(text);
}

static json_t *zone_resources(const Agent__Zone *z)
{
	json_t *list = json_array();
	for (size_t i = 0; i < z->n_resources; i++) {
		const Agent__ZoneResource *r = z->resources[i];
		(void)json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:o}", "name", r->name, "capacity",
					published_quantity(r->name, r->capacity), "allocatable",
					published_quantity(r->name, r->allocatable), "available",
					published_quantity(r->name, r->available)));
	}
	return list;
}

static json_t *zone_attributes(const Agent__Zone *z)
{
	json_t *list = json_array();
	for (size_t i = 0; i < z->n_attributes; i++)
		if (*z->attributes[i]->value) /* API servers may treat an empty text as null */
			(void)json_array_append_new(list, json_pack("{s:s, s:s}", "name",
								    z->attributes[i]->name, "value",
								    z->attributes[i]->value));
	return list;
}

static json_t *zone_costs(const Agent__Zone *z)
{
	json_t *list = json_array();
	for (size_t i = 0; i < z->n_costs; i++)
		(void)json_array_append_new(list,
					    json_pack("{s:s, s:I}", "name", z->costs[i]->name,
						      "value", (json_int_t)z->costs[i]->value));
	return list;
}

static void set_unless_empty(json_t *object, const char *key, json_t *list)
{
	if (json_array_size(list))
		(void)json_object_set(object, key, list);
	json_decref(list);
}

static json_t *zone_object(const Agent__Zone *z)
{
	json_t *zone = json_pack("{s:s, s:s}", "name", z->name, "type", z->type);
	if (*z->parent)
		(void)json_object_set_new(zone, "parent", json_string(z->parent));
	set_unless_empty(zone, "resources", zone_resources(z));
	set_unless_empty(zone, "attributes", zone_attributes(z));
	set_unless_empty(zone, "costs", zone_costs(z));
	return zone;
}

/* Returns the object to apply, owned. NULL: no memory. */
static json_t *published_topology(const char *name, const Agent__PublishedRequest *m)
{
	json_t *zones = json_array();
	for (size_t i = 0; i < m->n_zones; i++)
		(void)json_array_append_new(zones, zone_object(m->zones[i]));
	return json_pack("{s:s, s:s, s:{s:s}, s:[{s:s, s:s}], s:o}", "apiVersion", TOPOLOGY_VERSION,
			 "kind", "NodeResourceTopology", "metadata", "name", name, "attributes",
			 "name", "TopologyPolicy", "value", m->policy, "zones", zones);
}

/* ---- extended resources ---------------------------------------------------------------------- */

/* Returns true if a policy may publish the resource, regardless of the daemon: other names belong
 * to the kubelet and to device plugins. */
static bool may_write(const char *resource)
{
	const char *slash = strchr(resource, '/');
	size_t suffix = strlen(PUBLISHED_OWN_SUFFIX);
	size_t domain = slash ? (size_t)(slash - resource) : 0;
	return domain > suffix &&
	       strncmp(resource + domain - suffix, PUBLISHED_OWN_SUFFIX, suffix) == 0;
}

static bool is_ours(const json_t *patterns, const char *resource)
{
	json_t *pattern;
	size_t i;
	json_array_foreach(patterns, i, pattern)
	{
		if (may_write(resource) && str_glob(json_string_value(pattern), resource))
			return true;
	}
	return false;
}

static bool same_amount(const json_t *has, const json_t *wanted)
{
	int64_t a, b;
	const char *text = json_string_value(has);
	return text && str_to_bytes(text, &a) == 0 &&
	       str_to_bytes(json_string_value(wanted), &b) == 0 && a == b;
}

/* Returns the capacity to merge; NULL: the Node's is correct, or no memory. */
static json_t *capacity_patch(const struct published *n)
{
	const json_t *node = n->seen, *patterns = n->patterns;
	json_t *wanted = n->wanted;
	json_t *has = json_object_get(json_object_get(node, "status"), "capacity");
	json_t *patch = json_object(), *value;
	const char *name;
	json_object_foreach(wanted, name, value)
	{
		if (!same_amount(json_object_get(has, name), value) &&
		    (may_write(name) || wishes_recorded(node, name)))
			(void)json_object_set(patch, name, value);
	}
	json_object_foreach(has, name, value)
	{
		if (!n->settling && !json_object_get(wanted, name) &&
		    (is_ours(patterns, name) || wishes_recorded(node, name)))
			(void)json_object_set_new(patch, name, json_null());
	}
	if (json_object_size(patch))
		return patch;
	json_decref(patch);
	return NULL;
}

static void compare_capacity(struct published *n)
{
	if (!n->seen || !n->wanted || writer_writing(n->capacity) || loop_timer_armed(n->settle))
		return;
	json_t *patch = capacity_patch(n);
	if (!patch)
		return;
	/* the patch applies to this version of the Node: a newer one may need other values */
	json_t *version = kube_meta(n->seen, "resourceVersion");
	json_t *body = json_pack("{s:{s:O*}, s:{s:O, s:O}}", "metadata", "resourceVersion", version,
				 "status", "capacity", patch, "allocatable", patch);
	if (writer_put(n->capacity, body))
		log_error("extended resources cannot be written: no memory");
	json_decref(patch);
}

/*
 * Waits for the watch after a write. The answer has the state at the time of the write and may
 * arrive after newer events of the watch, so it is ignored.
 */
static void capacity_written(const struct kube_answer *answer, void *arg)
{
	struct published *n = arg;
	(void)loop_timer_arm(n->settle, SETTLE_MS);
}

static void published_settle(void *arg)
{
	compare_capacity(arg);
}

void published_seen(struct published *n, json_t *object)
{
	json_decref(n->seen);
	n->seen = json_incref(object);
	compare_capacity(n);
}

/* ---- publication ----------------------------------------------------------------------------- */

static bool too_much(const Agent__PublishedRequest *m)
{
	bool much = m->n_zones > PUBLISHED_ZONES_MAX || m->n_extended > PUBLISHED_RESOURCES_MAX ||
		    m->n_owned > PUBLISHED_RESOURCES_MAX || m->n_labels > PUBLISHED_WISHES_MAX ||
		    m->n_annotations > PUBLISHED_WISHES_MAX || m->n_taints > PUBLISHED_WISHES_MAX ||
		    m->n_resources > PUBLISHED_WISHES_MAX;
	for (size_t i = 0; !much && i < m->n_zones; i++)
		much = m->zones[i]->n_costs > PUBLISHED_ZONES_MAX ||
		       m->zones[i]->n_resources > PUBLISHED_RESOURCES_MAX ||
		       m->zones[i]->n_attributes > PUBLISHED_RESOURCES_MAX;
	return much;
}

static int take_extended(struct published *n, const Agent__PublishedRequest *m)
{
	json_t *wanted = json_object(), *patterns = json_array();
	for (size_t i = 0; i < m->n_extended; i++)
		if (may_write(m->extended[i]->name))
			(void)json_object_set_new(wanted, m->extended[i]->name,
						  published_quantity("", m->extended[i]->amount));
	for (size_t i = 0; i < m->n_resources; i++)
		(void)json_object_set_new(wanted, m->resources[i]->name,
					  published_quantity("", m->resources[i]->amount));
	for (size_t i = 0; i < m->n_owned; i++)
		(void)json_array_append_new(patterns, json_string(m->owned[i]));
	json_decref(n->wanted);
	json_decref(n->patterns);
	n->wanted = wanted;
	n->settling = m->settling;
	n->patterns = patterns;
	return wanted && patterns ? 0 : -ENOMEM;
}

int published_take(struct published *n, const Agent__PublishedRequest *m)
{
	if (too_much(m))
		return -E2BIG;
	int r = m->topology ? writer_put(n->topology, published_topology(n->name, m)) : 0;
	if (!r)
		r = take_extended(n, m);
	if (!r)
		compare_capacity(n);
	return r;
}

static struct writer *open_writer(struct kube *k, const char *content_type, char *path,
				  uint32_t interval_ms, struct published *n)
{
	const struct writer_config config = {
		.what = n ? "extended resources" : "NodeResourceTopology",
		.method = "PATCH",
		.path = path,
		.content_type = content_type,
		.interval_ms = interval_ms,
		.missing = n ? NULL : TOPOLOGY_MISSING,
		.written = n ? capacity_written : NULL,
		.arg = n,
	};
	return writer_new(k, &config);
}

struct published *published_new(struct kube *k, const char *name)
{
	struct published *n = calloc(1, sizeof *n);
	if (!n)
		return NULL;
	n->name = strdup(name);
	n->settle = loop_timer_new(kube_loop(k), published_settle, n);
	n->topology =
		open_writer(k, KUBE_APPLY_PATCH, str_printf(TOPOLOGY_PATH FIELD_MANAGER, name),
			    PUBLISHED_TOPOLOGY_INTERVAL_MS, NULL);
	n->capacity = open_writer(k, KUBE_MERGE_PATCH, str_printf("/api/v1/nodes/%s/status", name),
				  PUBLISHED_CAPACITY_INTERVAL_MS, n);
	return n->name && n->settle && n->topology && n->capacity ? n : published_free(n);
}

struct published *published_free(struct published *n)
{
	if (!n)
		return NULL;
	writer_free(n->topology);
	writer_free(n->capacity);
	loop_timer_free(n->settle);
	json_decref(n->wanted);
	json_decref(n->patterns);
	json_decref(n->seen);
	free(n->name);
	free(n);
	return NULL;
}
