/* SPDX-License-Identifier: Apache-2.0 */
/* Queries about devices of pods: their states, answers and time limits, and the notes in trails. */
#include "core/nri-rpd/pipeline/wait/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/host/service/work.h"
#include "core/nri-rpd/pipeline/request/request.h"

#define LOG_SOURCE "devices"
#define ARENA_BLOCK 256u
#define ARENA_MAX (16u << 20) /* largest memory of the devices of one pod, in bytes */
#define NOTE_MAX 512u
/* annotation: kinds of hints that a pod wants */
#define HINTS_KEY "topologyhints.resource-policy.nri.io"
#define HINTS_STEM "topologyhints."
#define CLAIM_PREFIX "claim:" /* begins the resource of a device of a claim */

enum query_state { QUERY_ASKED, QUERY_KNOWN, QUERY_FAILED };

struct device {
	const char *ctr, *resource;
	struct rp_ids nodes; /* empty: a device of a claim whose place is unknown */
	const char *claim; /* claim that has the device; NULL: the device belongs to no claim */
	const char *unknown; /* cause of an unknown place */
};

/* Query to the kubelet about one pod. */
struct query {
	rp_pod pod;
	enum query_state state;
	uint64_t failed_ms;
	struct arena *arena; /* owns list and why; NULL: neither */
	const struct device *list;
	uint32_t n;
	const char *why;
	UT_hash_handle hh;
};

struct devices {
	struct device_source source;
	const struct topo *const *topo;
	struct devices_status status; /* without the counts of the present queries */
	bool warned; /* a message has said that the agent cannot be queried */
	struct query *queries;
	bool listing;
	/* list that arrived before the pods of its Synchronize, and its memory */
	bool has_kept;
	struct arena *kept;
	struct pod_devices_desc *kept_pods;
	uint32_t n_kept;
	struct log_limit failures;
};

/* ---- containers that want hints -------------------------------------------------------------- */

static bool is_one_of(const char *word, size_t len, const char *const words[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) == len && !memcmp(words[i], word, len))
			return true;
	return false;
}

/* Returns true if an annotation lists hints from the kubelet's devices. Without the annotation
 * (NULL) hints are on. */
static bool is_listed(const char *text)
{
	static const char between[] = " \t\r\n,[]\"'-";
	static const char *const all[] = {"pod-resources", "all",  "1",	  "t", "T",
					  "true",	   "True", "TRUE"};
	bool listed = !text;
	while (text && *(text += strspn(text, between))) {
		size_t len = strcspn(text, " \t\r\n,[]\"'");
		if (len == strlen("none") && !memcmp(text, "none", len))
			return false;
		listed = listed || is_one_of(text, len, all, sizeof all / sizeof *all);
		text += len;
	}
	return listed;
}

static bool ctr_wants(const struct pod *pod, const char *ctr)
{
	return is_listed(annotation_effective(pod, ctr, HINTS_KEY, NULL));
}

/* Returns true if any container of the pod may want hints. The containers are not known yet. */
static bool pod_wants(const struct pod *pod)
{
	if (ctr_wants(pod, ""))
		return true;
	KVS_EACH(k, v, pod_heard(pod))
	{
		if (str_has_prefix(k, HINTS_STEM) && strstr(k, "/container.") && is_listed(v))
			return true;
	}
	return false;
}

/* ---- queries --------------------------------------------------------------------------------- */

static struct query *devices_find(const struct devices *d, rp_pod pod)
{
	struct query *q = NULL;
	HASH_FIND(hh, d->queries, &pod, sizeof pod, q);
	return q;
}

static void forget_answer(struct query *q)
{
	q->arena = arena_free(q->arena);
	q->list = NULL;
	q->n = 0;
	q->why = NULL;
}

static void query_free(struct devices *d, struct query *q)
{
	HASH_DEL(d->queries, q);
	forget_answer(q);
	free(q);
}

static void drop_kept(struct devices *d)
{
	d->kept = arena_free(d->kept);
	d->has_kept = false;
}

static void devices_fail(struct devices *d, struct query *q, const char *why)
{
	forget_answer(q);
	q->state = QUERY_FAILED;
	q->failed_ms = clock_ms();
	q->arena = arena_new(ARENA_BLOCK, ARENA_MAX);
	q->why = q->arena ? arena_strdup(q->arena, why) : NULL;
	d->status.failed++;
	(void)snprintf(d->status.last_error, sizeof d->status.last_error, "%s", why);
}

/* Writes the path in sysfs of a PCI device "0000:17:00.0" or of a PCIe root "pci0000:17", for
 * topo_device_near(). Returns false for other texts. */
static bool pci_path(const char *pci, char *ret, size_t size)
{
	unsigned domain, bus, device, function;
	char rest;
	if (sscanf(pci, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &rest) == 4)
		(void)snprintf(ret, size, "/sys/bus/pci/devices/%04x:%02x:%02x.%x", domain, bus,
			       device, function);
	else if (sscanf(pci, "pci%8x:%2x%c", &domain, &bus, &rest) == 2)
		(void)snprintf(ret, size, "/sys/class/pci_bus/%04x:%02x", domain, bus);
	else
		return false;
	return true;
}

/* Adds the nodes of a device of a claim. Nodes without CPUs, as those of a GPU's memory, are
 * replaced by the closest nodes with CPUs. */
static int locate_claim(const struct devices *d, struct arena *a, const struct device_desc *from,
			struct rp_idset *nodes, struct device *to)
{
	char path[64], pci[40];
	struct rp_idset cpus, found;
	const char *why = from->unknown;
	(void)snprintf(pci, sizeof pci, "%s", from->pci);
	if (rp_ids_empty(rp_ids_of(nodes)) && pci[0]) {
		why = "sysfs names no NUMA node of its PCI address";
		if (pci_path(pci, path, sizeof path))
			(void)topo_device_near(*d->topo, path, &cpus, nodes);
	}
	topo_nodes_near(*d->topo, rp_ids_of(nodes), &found);
	rp_idset_copy(nodes, rp_ids_of(&found));
	to->claim = arena_strdup(a, from->claim);
	to->unknown = rp_ids_empty(rp_ids_of(nodes))
			      ? arena_printf(a, "%s%s%s", why, pci[0] ? " " : "", pci)
			      : "";
	return to->claim && to->unknown ? 0 : -ENOMEM;
}

static int copy_device(const struct devices *d, struct arena *a, const struct device_desc *from,
		       struct device *to)
{
	struct rp_idset nodes;
	rp_idset_clear(&nodes);
	for (uint32_t i = 0; i < from->n_nodes; i++)
		if (from->nodes[i] < RP_NODES_MAX)
			rp_idset_add(&nodes, from->nodes[i]);
	if (from->claim && locate_claim(d, a, from, &nodes, to))
		return -ENOMEM;
	struct rp_ids ids = rp_ids_of(&nodes);
	to->ctr = arena_strdup(a, from->ctr);
	to->resource = arena_strdup(a, from->resource);
	to->nodes = ids;
	to->nodes.w = arena_memdup(a, ids.w, ids.nw * sizeof *ids.w);
	return to->ctr && to->resource && to->nodes.w ? 0 : -ENOMEM;
}

static int copy_list(const struct devices *d, struct query *q, const struct device_desc *list,
		     uint32_t n)
{
	q->arena = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct device *copy = q->arena ? arena_array(q->arena, n + 1, sizeof *copy) : NULL;
	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (copy_device(d, q->arena, &list[i], &copy[i]))
			return -ENOMEM;
	q->list = copy;
	q->n = n;
	return 0;
}

static void devices_take(struct devices *d, struct query *q, const struct device_desc *list,
			 uint32_t n)
{
	forget_answer(q);
	if (copy_list(d, q, list, n)) {
		devices_fail(d, q, "out of memory");
		return;
	}
	q->state = QUERY_KNOWN;
	d->status.answered++;
}

/* ---- queries to the source ------------------------------------------------------------------- */

static void warn_once(struct devices *d)
{
	if (d->warned)
		return;
	d->warned = true;
	log_warning("the devices of pods are unknown, because no agent is available (%s): "
		    "containers are placed without these hints (logged once)",
		    d->status.why_not);
}

static void devices_ask(struct pipeline *p, const struct pod *pod)
{
	struct devices *d = p->wait.devices;
	if (!d->status.reachable) {
		warn_once(d);
		return;
	}
	struct query *q = HASH_FIND_OR_ADD(d->queries, pod, pod->handle);
	if (!q)
		return;
	forget_answer(q);
	q->state = QUERY_ASKED;
	d->status.asked++;
	int r = d->source.ask_pod(d->source.arg, pod->handle, pod->ns, pod->name);
	if (r)
		devices_fail(d, q, strerror(-r));
}

void devices_pod_came(struct pipeline *p, const struct pod *pod)
{
	struct query *q = p->wait.devices ? devices_find(p->wait.devices, pod->handle) : NULL;
	if (p->wait.devices && (!q || q->state != QUERY_ASKED) && pod_wants(pod))
		devices_ask(p, pod);
}

void devices_pod_ended(struct pipeline *p, const struct pod *pod)
{
	struct devices *d = p->wait.devices;
	struct query *q = d ? devices_find(d, pod->handle) : NULL;
	if (!q)
		return;
	query_free(d, q);
	if (d->status.reachable)
		d->source.pod_ended(d->source.arg, pod->ns, pod->name);
}

/* ---- answers --------------------------------------------------------------------------------- */

void pipeline_devices_tell(struct pipeline *p, rp_pod pod, const struct device_desc *list,
			   uint32_t n)
{
	struct query *q = p->wait.devices ? devices_find(p->wait.devices, pod) : NULL;
	if (!q || q->state != QUERY_ASKED)
		return; /* the pod has ended */
	devices_take(p->wait.devices, q, list, n);
	hold_told(p);
}

static void log_failure(struct devices *d, const struct pod *pod, const char *why)
{
	if (pod && log_allowed(&d->failures, LOG_SOURCE))
		log_warning("the devices of pod %s/%s are unknown: %s", pod->ns, pod->name, why);
}

void pipeline_devices_fail(struct pipeline *p, rp_pod pod, const char *why)
{
	struct devices *d = p->wait.devices;
	struct query *q = d ? devices_find(d, pod) : NULL;
	if (!q || q->state != QUERY_ASKED)
		return;
	log_failure(d, cache_pod_of(p->env.cache, pod), why);
	devices_fail(d, q, why);
	hold_told(p);
}

static int pod_cmp(const void *a, const void *b)
{
	const struct pod_devices_desc *x = a, *y = b;
	int c = strcmp(x->ns, y->ns);
	return c ? c : strcmp(x->name, y->name);
}

/* Stores the list's answers. The list holds all pods with devices, so a pod without a query that is
 * not listed has none. */
static void take_listed(struct pipeline *p, const struct pod_devices_desc *pods, uint32_t n)
{
	struct devices *d = p->wait.devices;
	for (struct pod *pod = cache_pods(p->env.cache); pod; pod = pod->hh.next) {
		const struct pod_devices_desc key = {.ns = pod->ns, .name = pod->name};
		struct query *q = devices_find(d, pod->handle);
		/* an outstanding query about this pod alone gets the newer answer */
		if (pod->stopped || (q && q->state == QUERY_ASKED))
			continue;
		const struct pod_devices_desc *listed =
			n ? bsearch(&key, pods, n, sizeof *pods, pod_cmp) : NULL;
		if (q && !listed)
			continue;
		q = HASH_FIND_OR_ADD(d->queries, pod, pod->handle);
		if (q)
			devices_take(d, q, listed ? listed->list : NULL, listed ? listed->n : 0);
	}
}

void devices_synchronizing(struct pipeline *p)
{
	struct devices *d = p->wait.devices;
	if (!d || !d->has_kept)
		return;
	take_listed(p, d->kept_pods, d->n_kept);
	drop_kept(d);
}

void pipeline_devices_listed(struct pipeline *p, struct arena *arena, struct pod_devices_desc *pods,
			     uint32_t n)
{
	struct devices *d = p->wait.devices;
	if (!d || !d->listing) {
		(void)arena_free(arena);
		return;
	}
	d->listing = false;
	if (n > 1)
		qsort(pods, n, sizeof *pods, pod_cmp);
	drop_kept(d);
	d->has_kept = true;
	d->kept = arena;
	d->kept_pods = pods;
	d->n_kept = n;
	if (p->runtime.synchronized)
		devices_synchronizing(p);
	hold_told(p);
}

void pipeline_devices_not_listed(struct pipeline *p, const char *why)
{
	struct devices *d = p->wait.devices;
	if (!d || !d->listing)
		return;
	d->listing = false;
	drop_kept(d);
	d->status.failed++;
	(void)snprintf(d->status.last_error, sizeof d->status.last_error, "%s", why);
	log_warning("the devices of pods could not be listed: %s", why);
	hold_told(p);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool is_worth_asking(const struct query *q)
{
	return !q || (q->state == QUERY_FAILED && clock_ms() - q->failed_ms >= DEVICES_RETRY_MS);
}

uint64_t devices_wait(struct pipeline *p, const struct pod_desc *desc, const char *ctr,
		      uint64_t received_ns)
{
	struct devices *d = p->wait.devices;
	if (!d || !d->status.reachable)
		return 0;
	struct pod *pod = cache_pod(p->env.cache, desc->id);
	if (!pod && (!*desc->name || request_adopt_pod(p, desc, &pod, NULL)))
		return 0; /* the handler of the request reports the error */
	if (!ctr_wants(pod, ctr))
		return 0;
	struct query *q = devices_find(d, pod->handle);
	if (is_worth_asking(q)) {
		devices_ask(p, pod);
		q = devices_find(d, pod->handle);
	}
	if (!q || q->state != QUERY_ASKED)
		return 0;
	uint64_t end = hold_limit(p, received_ns, DEVICES_CREATE_WAIT_MS);
	d->status.late += end == 0;
	return end;
}

uint64_t devices_wait_all(struct pipeline *p, bool begin, uint64_t received_ns)
{
	struct devices *d = p->wait.devices;
	if (!d)
		return 0;
	if (begin)
		drop_kept(d); /* the list of an earlier Synchronize is out of date */
	if (begin && d->status.reachable && !d->listing)
		d->listing = d->source.ask_all(d->source.arg) == 0;
	if (!d->listing)
		return 0;
	uint64_t end = hold_limit(p, received_ns, DEVICES_SYNC_WAIT_MS);
	if (!end) {
		d->status.late++;
		log_warning(
			"the devices of pods did not arrive in time: synchronizing without them");
	}
	return end;
}

/* ---- answers for modules, trail and log ------------------------------------------------------ */

static int pod_resource(const struct ctr *ctr, uint32_t index, struct rp_pod_resource_info *ret,
			void *arg)
{
	const struct pipeline *p = arg;
	const struct query *q =
		p->wait.devices ? devices_find(p->wait.devices, ctr->pod->handle) : NULL;
	if (q && q->n && !ctr_wants(ctr->pod, ctr->name))
		return -ENOENT;
	for (uint32_t i = 0; q && i < q->n; i++) {
		if (!str_eq(q->list[i].ctr, ctr->name) || rp_ids_empty(q->list[i].nodes) || index--)
			continue;
		ret->resource = q->list[i].resource;
		ret->nodes = q->list[i].nodes;
		return 0;
	}
	return -ENOENT;
}

struct ctr *devices_claim(struct pipeline *p, const struct ctr *ctr, uint32_t *at)
{
	const struct query *q =
		p->wait.devices ? devices_find(p->wait.devices, ctr->pod->handle) : NULL;
	while (q && *at < q->n) {
		const struct device *d = &q->list[(*at)++];
		if (!d->claim || !str_eq(d->ctr, ctr->name) ||
		    !str_has_prefix(d->resource, CLAIM_PREFIX CLAIM_DRIVER "/"))
			continue;
		struct ctr *claim =
			cache_ctr_named(p->env.cache, ctr->pod->ns, d->claim, CLAIM_NAME);
		if (claim && claim->device)
			return claim;
	}
	return NULL;
}

/* Returns true if a container has CDI devices, but the kubelet reports no claim or device of it. */
static bool is_unclaimed(const struct devices *d, const struct query *q, const struct ctr *ctr)
{
	if (!d->source.claims || !q || q->state != QUERY_KNOWN || !ctr->desc || !ctr->desc->n_cdi)
		return false;
	for (uint32_t i = 0; i < q->n; i++)
		if (str_eq(q->list[i].ctr, ctr->name))
			return false;
	return true;
}

/* Names of CDI devices do not name the device of a driver, so such a container gets no hint. */
static void explain_unclaimed(struct pipeline *p, struct ctr *ctr)
{
	char line[NOTE_MAX];
	(void)snprintf(
		line, sizeof line,
		"the container has the CDI device %.150s, but the kubelet reports no claim of "
		"it: it is older than Kubernetes 1.34, or its feature gate "
		"KubeletPodResourcesDynamicResources is off",
		ctr->desc->cdi[0]);
	host_note(p->env.cache, ctr, line);
	(void)snprintf(p->wait.devices->status.unclaimed, NOTE_MAX, "%.150s: %.350s",
		       ctr->full_name, line);
}

static void explain_device(struct pipeline *p, struct ctr *ctr, const struct device *d)
{
	char line[NOTE_MAX], nodes[128];
	(void)rp_ids_format(d->nodes, nodes, sizeof nodes);
	if (!d->claim)
		(void)snprintf(line, sizeof line, "the kubelet assigned %.200s at NUMA nodes %s",
			       d->resource, nodes);
	else if (!rp_ids_empty(d->nodes))
		(void)snprintf(line, sizeof line, "claim %.100s allocated %.200s at NUMA nodes %s",
			       d->claim, d->resource + sizeof CLAIM_PREFIX - 1, nodes);
	else
		(void)snprintf(line, sizeof line,
			       "claim %.80s allocated %.140s, whose place is unknown: %.220s",
			       d->claim, d->resource + sizeof CLAIM_PREFIX - 1, d->unknown);
	host_note(p->env.cache, ctr, line);
}

static void explain_devices(struct pipeline *p, struct ctr *ctr, const struct query *q)
{
	for (uint32_t i = 0; q && i < q->n; i++)
		if (str_eq(q->list[i].ctr, ctr->name))
			explain_device(p, ctr, &q->list[i]);
	if (is_unclaimed(p->wait.devices, q, ctr))
		explain_unclaimed(p, ctr);
}

void devices_explain(struct pipeline *p, struct ctr *ctr)
{
	struct devices *d = p->wait.devices;
	if (!d || !ctr_wants(ctr->pod, ctr->name))
		return;
	const struct query *q = devices_find(d, ctr->pod->handle);
	const char *why = NULL;
	char line[NOTE_MAX];
	if (!d->status.reachable && (!q || q->state != QUERY_KNOWN))
		why = d->status.why_not;
	else if (q && q->state == QUERY_ASKED)
		why = "the agent did not reply in time";
	else if (q && q->state == QUERY_FAILED)
		why = q->why ? q->why : "out of memory";
	explain_devices(p, ctr, q);
	if (!why)
		return;
	(void)snprintf(line, sizeof line, "devices of its pod are unknown: %.400s", why);
	host_note(p->env.cache, ctr, line);
	if (q && q->state == QUERY_ASKED && log_allowed(&d->failures, LOG_SOURCE))
		log_warning("%s: placed without its devices: %s", ctr->full_name, why);
}

/* ---- start and end --------------------------------------------------------------------------- */

DEFINE_GETTER(pipeline_devices_are_on, bool, p->wait.devices != NULL)

int pipeline_devices_on(struct pipeline *p, const struct device_source *source)
{
	struct devices *d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	pipeline_devices_off(p);
	d->source = *source;
	d->status.on = true;
	d->status.claims = source->claims;
	d->topo = (const struct topo *const *)&p->env.topo;
	d->failures = (struct log_limit)LOG_LIMIT(5, 10000);
	(void)snprintf(d->status.why_not, sizeof d->status.why_not, "no agent has connected yet");
	p->wait.devices = d;
	p->env.pod_resource = pod_resource;
	return 0;
}

void pipeline_devices_off(struct pipeline *p)
{
	struct devices *d = p->wait.devices;
	struct query *q, *next;
	if (!d)
		return;
	p->wait.devices = NULL;
	p->env.pod_resource = NULL;
	HASH_ITER (hh, d->queries, q, next)
		query_free(d, q);
	drop_kept(d);
	free(d);
	hold_told(p);
}

static void fail_asked(struct pipeline *p)
{
	struct devices *d = p->wait.devices;
	struct query *q, *next;
	d->listing = false;
	drop_kept(d);
	HASH_ITER (hh, d->queries, q, next)
		if (q->state == QUERY_ASKED)
			devices_fail(d, q, d->status.why_not);
	hold_told(p);
}

void pipeline_devices_reachable(struct pipeline *p, bool yes, const char *why_not)
{
	struct devices *d = p->wait.devices;
	if (!d)
		return;
	d->status.reachable = yes;
	(void)snprintf(d->status.why_not, sizeof d->status.why_not, "%s", yes ? "" : why_not);
	if (!yes) {
		fail_asked(p);
		return;
	}
	d->warned = false;
	/* query for devices that were missed while the agent was disconnected; a later Synchronize
	 * makes its own query */
	if (p->runtime.synchronized && !d->listing)
		d->listing = d->source.ask_all(d->source.arg) == 0;
}

/* Counts the claims of a pod and their devices. */
static void count_claims(const struct query *q, struct devices_status *ret)
{
	for (uint32_t i = 0; i < q->n; i++) {
		const struct device *d = &q->list[i];
		uint32_t first = 0;
		if (!d->claim)
			continue;
		while (!q->list[first].claim || !str_eq(q->list[first].claim, d->claim))
			first++;
		ret->n_claims += first == i;
		ret->n_located += !rp_ids_empty(d->nodes);
		if (!rp_ids_empty(d->nodes))
			continue;
		ret->n_unlocated++;
		(void)snprintf(ret->unlocated, sizeof ret->unlocated, "%.300s: %.600s",
			       d->resource + sizeof CLAIM_PREFIX - 1, d->unknown);
	}
}

void pipeline_devices_status(const struct pipeline *p, struct devices_status *ret)
{
	const struct devices *d = p->wait.devices;
	*ret = d ? d->status : (struct devices_status){.on = false};
	if (!d)
		return;
	for (const struct query *q = d->queries; q; q = q->hh.next) {
		count_claims(q, ret);
		ret->n_asked += q->state == QUERY_ASKED;
		ret->n_known += q->state == QUERY_KNOWN;
		ret->n_failed += q->state == QUERY_FAILED;
	}
}
