/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/set.h>
#include <utlist.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/slices.h"
#include "core/nri-rp-agent/watch.h"

#define LOG_SOURCE "places"
#define SLICES_PATH SLICES_GROUP "/resourceslices"
#define STANDARD "resource.kubernetes.io/"
#define ARENA_BLOCK 1024u
#define ARENA_MAX (256u << 10) /* largest memory of one resource slice, in bytes */
#define PCI_TEXT_MAX 32u /* longest PCI address or root */
#define UNKNOWN_MAX (ERR_TEXT_MAX + 64u)

struct place {
	const char *device;
	uint32_t node; /* NUMA node of the device; RP_NODES_MAX: not in the slice */
	const char *pci; /* PCI address of the device; "": not in the slice */
};

struct slice {
	struct arena *arena; /* arena that owns the slice */
	const char *name, *driver, *pool;
	int64_t generation; /* generation of the pool */
	unsigned list; /* number of the last list that contained the slice */
	const struct place *places;
	uint32_t n;
	struct slice *prev, *next;
};

struct places {
	struct kube *kube; /* source of resource slices; NULL: there is no cluster */
	struct watch *watch;
	struct loop_timer *timer; /* limits the wait for the first list */
	struct slice *all;
	unsigned n, lists;
	bool listed, done, full;
	void (*settled)(void *arg);
	void *arg;
	char why_not[ERR_TEXT_MAX]; /* why slices cannot be read; "": they can */
	char text[UNKNOWN_MAX]; /* `unknown` of the devices located last */
};

/* ---- attributes of a device ------------------------------------------------------------------ */

/* Returns an attribute by its name: the standard one, else a driver's own. */
static const json_t *places_attribute(json_t *attributes, const char *name)
{
	char standard[64];
	const char *key;
	json_t *value;
	(void)snprintf(standard, sizeof standard, STANDARD "%s", name);
	if (json_object_get(attributes, standard))
		return json_object_get(attributes, standard);
	json_object_foreach(attributes, key, value)
	{
		const char *slash = strrchr(key, '/');
		if (str_eq(slash ? slash + 1 : key, name))
			return value;
	}
	return NULL;
}

/* Returns the NUMA node, or RP_NODES_MAX. A list has the node of the device first, then the other
 * nodes of its socket. */
static uint32_t places_node(json_t *attributes)
{
	const json_t *value = places_attribute(attributes, "numaNode");
	const json_t *number = json_object_get(value, "int");
	if (!number)
		number = json_array_get(json_object_get(value, "ints"), 0);
	json_int_t node = json_is_integer(number) ? json_integer_value(number) : -1;
	return node >= 0 && node < RP_NODES_MAX ? (uint32_t)node : RP_NODES_MAX;
}

static const char *places_pci(json_t *attributes)
{
	static const char *const names[] = {"pciBusID", "pcieBusID", "pciAddress", "pcieRoot"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *text = json_string_value(
			json_object_get(places_attribute(attributes, names[i]), "string"));
		if (text && *text && strlen(text) < PCI_TEXT_MAX)
			return text;
	}
	return "";
}

/* ---- slices ---------------------------------------------------------------------------------- */

static const char *places_name(struct arena *a, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text && *text && strlen(text) < AGENT_NAME_MAX ? arena_strdup(a, text) : NULL;
}

static void places_drop(struct places *s, struct slice *slice)
{
	DL_DELETE(s->all, slice);
	s->n--;
	arena_free(slice->arena);
}

static int places_read_devices(struct slice *to, const json_t *devices)
{
	size_t n = json_array_size(devices);
	struct place *list =
		n > PLACES_DEVICES_MAX ? NULL : arena_array(to->arena, n + 1, sizeof *list);
	if (!list)
		return n > PLACES_DEVICES_MAX ? -E2BIG : -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *device = json_array_get(devices, i);
		json_t *attributes = json_object_get(device, "attributes");
		struct place *p = &list[to->n];
		p->device = places_name(to->arena, device, "name");
		p->node = places_node(attributes);
		p->pci = arena_strdup(to->arena, places_pci(attributes));
		if (!p->pci)
			return -ENOMEM;
		to->n += p->device != NULL;
	}
	to->places = list;
	return 0;
}

/* Reads a slice. -EINVAL: no server would send it; -E2BIG; -ENOMEM. */
static int places_read(const json_t *object, struct slice **ret)
{
	const json_t *spec = json_object_get(object, "spec"), *pool = json_object_get(spec, "pool");
	struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct slice *slice = a ? arena_zero(a, struct slice) : NULL;
	int r = slice ? 0 : -ENOMEM;
	if (!r) {
		slice->arena = a;
		slice->name = places_name(a, json_object_get(object, "metadata"), "name");
		slice->driver = places_name(a, spec, "driver");
		slice->pool = places_name(a, pool, "name");
		slice->generation = json_integer_value(json_object_get(pool, "generation"));
		r = slice->name && slice->driver && slice->pool ? 0 : -EINVAL;
	}
	if (!r)
		r = places_read_devices(slice, json_object_get(spec, "devices"));
	if (r)
		arena_free(a);
	else
		*ret = slice;
	return r;
}

static struct slice *places_find(struct places *s, const char *name)
{
	struct slice *slice;
	DL_FOREACH (s->all, slice)
		if (str_eq(slice->name, name))
			return slice;
	return NULL;
}

/* Stores a slice, except beyond the limit, which is logged once. */
static void places_put(struct places *s, struct slice *slice)
{
	if (s->n >= PLACES_SLICES_MAX) {
		if (!s->full)
			log_warning("the node has more than %u ResourceSlices: devices of the "
				    "others are not located",
				    PLACES_SLICES_MAX);
		s->full = true;
		arena_free(slice->arena);
		return;
	}
	slice->list = s->lists;
	DL_APPEND(s->all, slice);
	s->n++;
}

void places_take(struct places *s, const json_t *object, bool gone)
{
	const char *name = json_string_value(kube_meta(object, "name"));
	struct slice *old = name ? places_find(s, name) : NULL, *slice = NULL;
	if (old)
		places_drop(s, old);
	int r = gone ? 0 : places_read(object, &slice);
	if (r)
		log_warning("ResourceSlice %.253s is ignored: %s", name ? name : "without a name",
			    r == -ENOMEM  ? "out of memory"
			    : r == -E2BIG ? "it has too many devices"
					  : "it lacks its driver, pool or name");
	else if (slice)
		places_put(s, slice);
}

/* ---- the watch ------------------------------------------------------------------------------- */

static void places_settle(void *arg)
{
	struct places *s = arg;
	if (s->done)
		return;
	s->done = true;
	loop_timer_disarm(s->timer);
	s->settled(s->arg);
}

static void places_listed(struct places *s)
{
	struct slice *slice, *next;
	DL_FOREACH_SAFE(s->all, slice, next)
	if (slice->list != s->lists)
		places_drop(s, slice);
	s->listed = true;
	s->why_not[0] = '\0';
	places_settle(s);
}

/* Slices that were read earlier are kept while they cannot be read: devices do not move. */
static void on_slice(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct places *s = arg;
	if (event == WATCH_BEGIN) {
		s->lists++;
		s->full = false;
	} else if (event == WATCH_OBJECT || event == WATCH_GONE) {
		places_take(s, object, event == WATCH_GONE);
	} else if (event == WATCH_LISTED) {
		places_listed(s);
	} else if (event != WATCH_FAILED) {
		(void)snprintf(s->why_not, sizeof s->why_not, "%s", text);
		places_settle(s);
	}
}

struct places *places_new(struct kube *k, const char *node, void (*settled)(void *arg), void *arg)
{
	struct places *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->kube = k;
	s->settled = settled;
	s->arg = arg;
	s->done = !k;
	_free_ char *selector = str_printf("spec.nodeName=%s", node ? node : "");
	if (!k)
		return s;
	s->timer = loop_timer_new(kube_loop(k), places_settle, s);
	s->watch = s->timer && selector ? watch_new(k, SLICES_PATH, selector, on_slice, s) : NULL;
	if (!s->watch)
		return places_free(s);
	watch_set_key(s->watch, LOG_SOURCE);
	(void)loop_timer_arm(s->timer, PLACES_FIRST_MS);
	return s;
}

struct places *places_free(struct places *s)
{
	if (!s)
		return NULL;
	watch_free(s->watch);
	loop_timer_free(s->timer);
	while (s->all)
		places_drop(s, s->all);
	free(s);
	return NULL;
}

bool places_settled(const struct places *s)
{
	return s->done;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Returns the place of a device in the slice of the latest generation of its pool, or NULL. */
static const struct place *places_place(const struct places *s, const Agent__ClaimDevice *d)
{
	const struct place *found = NULL;
	const struct slice *slice;
	int64_t generation = INT64_MIN;
	DL_FOREACH (s->all, slice) {
		if (slice->generation < generation || !str_eq(slice->driver, d->driver) ||
		    !str_eq(slice->pool, d->pool))
			continue;
		for (uint32_t i = 0; i < slice->n; i++)
			if (str_eq(slice->places[i].device, d->device)) {
				found = &slice->places[i];
				generation = slice->generation;
			}
	}
	return found;
}

/* Returns why the place of a device without a slice is unknown. */
static char *places_why(struct places *s)
{
	const char *unreachable = s->kube ? kube_unreachable(s->kube) : "";
	const char *why = s->why_not[0]	   ? s->why_not
			  : unreachable[0] ? unreachable
			  : s->listed	   ? NULL
			  : s->kube	   ? "they are not read yet"
					   : "nri-rp-agent has no cluster; see --kubeconfig";
	(void)snprintf(s->text, sizeof s->text, "%s%s",
		       why ? "ResourceSlices cannot be read: "
			   : "no ResourceSlice of this node lists the device",
		       why ? why : "");
	return s->text;
}

static void places_locate_one(struct places *s, Agent__ClaimDevice *d)
{
	static char no_place[] = "its driver publishes neither numaNode nor a PCI address in the "
				 "ResourceSlice";
	const struct place *p = places_place(s, d);
	if (!p) {
		d->unknown = places_why(s);
	} else if (p->node < RP_NODES_MAX) {
		d->nodes = (uint32_t *)(uintptr_t)&p->node;
		d->n_nodes = 1;
	} else if (p->pci[0]) {
		d->pci = (char *)(uintptr_t)p->pci;
	} else {
		d->unknown = no_place;
	}
}

void places_locate(struct places *s, const Agent__PodDevices *pod)
{
	for (size_t i = 0; i < pod->n_containers; i++)
		for (size_t k = 0; k < pod->containers[i]->n_claims; k++)
			places_locate_one(s, pod->containers[i]->claims[k]);
}
