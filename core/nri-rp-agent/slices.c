/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/slices.h"

#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-agent/capacity.h"
#include "core/nri-rp-agent/watch.h"
#include "core/nri-rp-agent/writer.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/agent_protocol.h"

#define LOG_SOURCE "slices"
#define PATH SLICES_GROUP "/resourceslices"
#define SCHEMA_PATH "/openapi/v3" SLICES_GROUP
#define SCHEMA_DEVICE "io.k8s.api.resource.v1.Device"
#define MAPPING "nodeAllocatableResources"
#define FIELD_MANAGER "?fieldManager=nri-rp&force=true"
#define MISSING                                                                                    \
	"the API server needs resource.k8s.io/v1, which Kubernetes has since 1.34: set "           \
	"dra.enabled: false on an older one"
#define NUMA_NODE "numaNode"
/* name that drivers of other devices use for the same attribute */
#define NUMA_NODE_KEY "resource.kubernetes.io/numaNode"
#define MIB (INT64_C(1) << 20)
#define NS_PER_S UINT64_C(1000000000)

struct slices {
	struct kube *kube;
	char *node, *driver, *name, *uid; /* uid: UID of the Node object; NULL: not seen yet */
	struct writer *writer, *remover; /* remover NULL: nothing was removed yet */
	struct watch *watch; /* watch of the published slice; NULL: nothing is published */
	json_t *devices; /* devices to publish; NULL: none */
	int64_t generation; /* generation of `devices` */
	bool listed; /* the list that the watch reads has the slice */
	struct kube_call *schema; /* query for the fields of devices; NULL: none is running */
	bool asked; /* the query was made, with a result that stays */
	bool mapped; /* devices have the field MAPPING */
};

/* ---- devices --------------------------------------------------------------------------------- */

/* Returns what a capacity has the size of; NULL: it is a number. */
static const struct capacity_size *slices_size(const char *resource)
{
	for (unsigned i = 0; i < CAPACITY_SIZES; i++)
		if (str_eq(capacity_sizes[i].resource, resource))
			return &capacity_sizes[i];
	return NULL;
}

/* Returns the unit of a capacity in MiB; 0: its unit is 1. */
static int64_t slices_unit(const char *resource)
{
	const struct capacity_size *size = slices_size(resource);
	return size ? size->unit : 0;
}

static json_t *slices_quantity(int64_t amount, int64_t unit)
{
	_free_ char *text = unit ? str_printf("%lldMi", (long long)(amount / MIB))
				 : str_printf("%lld", (long long)amount);
	return text ? json_string(text) : NULL;
}

/* Returns the smallest amount that a claim can request. */
static int64_t slices_least(const Agent__Amount *a)
{
	int64_t unit = slices_unit(a->name);
	return a->limits ? a->limits->min : unit ? unit * MIB : 1;
}

/* Returns the amount of a claim that requests none: without a default it would get all. Huge pages
 * only on request. */
static int64_t slices_default(const Agent__Amount *a)
{
	return slices_unit(a->name) > 1 ? 0 : slices_least(a);
}

static json_t *slices_capacity(const Agent__Amount *a)
{
	int64_t unit = slices_unit(a->name), least = slices_default(a);
	json_t *range = json_pack("{s:o, s:o}", "min", slices_quantity(least, unit), "step",
				  slices_quantity(unit ? unit * MIB : 1, unit));
	if (a->limits && a->limits->max)
		(void)json_object_set_new(range, "max", slices_quantity(a->limits->max, unit));
	return json_pack("{s:o, s:{s:o, s:o}}", "value", slices_quantity(a->amount, unit),
			 "requestPolicy", "default", slices_quantity(least, unit), "validRange",
			 range);
}

/* Returns true if a claim can get the least amount of each capacity. The API server refuses other
 * devices. */
static bool slices_has_room(const Agent__Device *d)
{
	for (size_t i = 0; i < d->n_capacity; i++)
		if (d->capacity[i]->amount < slices_least(d->capacity[i]))
			return false;
	return true;
}

static json_t *slices_device(const Agent__Device *d)
{
	json_t *attributes = json_object(), *capacity = json_object();
	for (size_t i = 0; i < d->n_attributes; i++) {
		const Agent__DeviceAttribute *a = d->attributes[i];
		const char *name = str_eq(a->name, NUMA_NODE) ? NUMA_NODE_KEY : a->name;
		(void)json_object_set_new(
			attributes, name,
			a->is_text ? json_pack("{s:s}", "string", a->text)
				   : json_pack("{s:I}", "int", (json_int_t)a->number));
	}
	for (size_t i = 0; i < d->n_capacity; i++) {
		const struct capacity_size *size = slices_size(d->capacity[i]->name);
		(void)json_object_set_new(capacity, size ? size->name : d->capacity[i]->name,
					  slices_capacity(d->capacity[i]));
	}
	return json_pack("{s:s, s:o, s:o, s:b}", "name", d->name, "attributes", attributes,
			 "capacity", capacity, "allowMultipleAllocations", 1);
}

static void slices_map_one(json_t *map, const json_t *device, const char *resource,
			   const char *capacity)
{
	if (json_object_get(json_object_get(device, "capacity"), capacity))
		(void)json_object_set_new(map, resource,
					  json_pack("{s:{s:s, s:s}}", "mapping", "capacityKey",
						    capacity, "capacityMultiplier", "1"));
}

/* Names the resources of the Node that claims of the devices take (KEP-5517). The scheduler then
 * subtracts them from the Node. */
static void slices_map(json_t *devices)
{
	json_t *device, *map;
	size_t i;
	json_array_foreach(devices, i, device)
	{
		map = json_object();
		slices_map_one(map, device, "cpu", "cpu");
		for (unsigned k = 0; k < CAPACITY_SIZES; k++)
			slices_map_one(map, device, capacity_sizes[k].resource,
				       capacity_sizes[k].name);
		if (json_object_size(map))
			(void)json_object_set(device, MAPPING, map);
		json_decref(map);
	}
}

static bool slices_too_much(const Agent__PublishedRequest *m)
{
	bool much = m->n_devices > AGENT_DEVICES_MAX;
	for (size_t i = 0; !much && i < m->n_devices; i++)
		much = m->devices[i]->n_capacity > AGENT_DEVICE_ITEMS_MAX ||
		       m->devices[i]->n_attributes > AGENT_DEVICE_ITEMS_MAX;
	return much;
}

/* ---- the object ------------------------------------------------------------------------------ */

static void slices_write(struct slices *s)
{
	if (!s->uid || !s->devices || s->schema)
		return;
	json_t *object = json_pack(
		"{s:s, s:s, s:{s:s, s:[{s:s, s:s, s:s, s:s}]}, s:{s:s, s:s, s:{s:s, s:I, s:i}, "
		"s:O}}",
		"apiVersion", "resource.k8s.io/v1", "kind", "ResourceSlice", "metadata", "name",
		s->name, "ownerReferences", "apiVersion", "v1", "kind", "Node", "name", s->node,
		"uid", s->uid, "spec", "driver", s->driver, "nodeName", s->node, "pool", "name",
		s->node, "generation", (json_int_t)s->generation, "resourceSliceCount", 1,
		"devices", s->devices);
	if (writer_put(s->writer, object))
		log_error("the devices of claims cannot be published: no memory");
}

/* Chooses a generation that is higher than all generations of this and earlier runs. */
static void slices_renew(struct slices *s, int64_t above)
{
	int64_t now = (int64_t)(clock_wall_ns() / NS_PER_S);
	s->generation = s->generation < above ? above : s->generation;
	s->generation = now > s->generation ? now : s->generation + 1;
	slices_write(s);
}

static void slices_on_schema(const struct kube_answer *answer, void *arg)
{
	struct slices *s = arg;
	json_t *schemas = json_object_get(json_object_get(answer->body, "components"), "schemas");
	json_t *device = json_object_get(json_object_get(schemas, SCHEMA_DEVICE), "properties");
	s->schema = NULL;
	s->asked = !answer->error || answer->error == -EACCES || answer->error == -ENOENT;
	s->mapped = json_object_get(device, MAPPING) != NULL;
	if (s->mapped) {
		slices_map(s->devices);
		slices_renew(s, 0);
	} else {
		slices_write(s);
	}
}

/* Asks the API server for the fields of devices. It refuses a slice with an unknown field. */
static void slices_ask_schema(struct slices *s)
{
	const struct kube_request request = {
		.method = "GET", .path = SCHEMA_PATH, .done = slices_on_schema, .arg = s};
	if (!s->asked && !s->schema)
		s->schema = kube_call(s->kube, &request);
}

static void slices_on_slice(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct slices *s = arg;
	const json_t *spec = json_object_get(object, "spec");
	int64_t generation =
		json_integer_value(json_object_get(json_object_get(spec, "pool"), "generation"));
	if (event == WATCH_BEGIN || event == WATCH_OBJECT)
		s->listed = event == WATCH_OBJECT;
	if (!s->devices || !writer_idle(s->writer))
		return;
	if (event == WATCH_GONE || (event == WATCH_LISTED && !s->listed))
		slices_write(s);
	else if (event == WATCH_OBJECT && generation != s->generation)
		slices_renew(s, generation);
}

int slices_take(struct slices *s, const Agent__PublishedRequest *m)
{
	if (slices_too_much(m))
		return -E2BIG;
	json_t *devices = json_array();
	for (size_t i = 0; i < m->n_devices; i++)
		if (slices_has_room(m->devices[i]))
			(void)json_array_append_new(devices, slices_device(m->devices[i]));
	if (!devices)
		return -ENOMEM;
	if (s->mapped)
		slices_map(devices);
	slices_ask_schema(s); /* again after a temporary failure, also for the same devices */
	if (s->devices && json_equal(devices, s->devices)) {
		json_decref(devices);
		return 0;
	}
	json_decref(s->devices);
	s->devices = devices;
	_free_ char *selector = str_printf("metadata.name=%s", s->name);
	if (!s->watch && selector) {
		s->watch = watch_new(s->kube, PATH, selector, slices_on_slice, s);
		if (s->watch)
			watch_set_key(s->watch, LOG_SOURCE);
	}
	slices_renew(s, 0);
	return s->watch ? 0 : -ENOMEM;
}

void slices_node_seen(struct slices *s, const json_t *node)
{
	const char *uid = json_string_value(kube_meta(node, "uid"));
	if (!uid || (s->uid && str_eq(s->uid, uid)))
		return;
	free(s->uid);
	s->uid = strdup(uid);
	slices_write(s);
}

/* Writes the devices again after a conflict, whose event may have arrived before. */
static void slices_written(const struct kube_answer *answer, void *arg)
{
	if (answer->error == -EEXIST && writer_idle(((struct slices *)arg)->writer))
		slices_write(arg);
}

static struct writer *slices_writer(struct slices *s, const char *method, const char *query)
{
	const struct writer_config config = {
		.what = "ResourceSlice",
		.method = method,
		.path = str_printf(PATH "/%s%s", s->name, query),
		.content_type = *query ? KUBE_APPLY_PATCH : KUBE_JSON,
		.interval_ms = SLICES_INTERVAL_MS,
		.missing = MISSING,
		.ends_with_it = !*query,
		.written = slices_written,
		.arg = s,
	};
	return writer_new(s->kube, &config);
}

void slices_withdraw(struct slices *s)
{
	s->watch = watch_free(s->watch);
	json_decref(s->devices);
	s->devices = NULL;
	s->writer = writer_free(s->writer); /* a waiting write would create the slice again */
	s->writer = slices_writer(s, "PATCH", FIELD_MANAGER);
	if (!s->remover)
		s->remover = slices_writer(s, "DELETE", "");
	if (!s->writer || !s->remover || writer_put(s->remover, json_object()))
		log_error("ResourceSlice %s cannot be removed: no memory", s->name);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct slices *slices_new(struct kube *k, const char *node, const char *driver)
{
	struct slices *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->kube = k;
	s->node = strdup(node);
	s->driver = strdup(driver);
	s->name = str_printf("%s-%s", node, driver);
	s->writer = s->name ? slices_writer(s, "PATCH", FIELD_MANAGER) : NULL;
	return s->node && s->driver && s->writer ? s : slices_free(s);
}

struct slices *slices_free(struct slices *s)
{
	if (!s)
		return NULL;
	kube_cancel(s->schema);
	watch_free(s->watch);
	writer_free(s->writer);
	writer_free(s->remover);
	json_decref(s->devices);
	free(s->node);
	free(s->driver);
	free(s->name);
	free(s->uid);
	free(s);
	return NULL;
}
