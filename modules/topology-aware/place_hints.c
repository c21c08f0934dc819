/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology hints: the CPUs, NUMA nodes and sockets close to the devices of a container, to the
 * disks of its mounts, and to locations named by annotations. Devices and mounts are known only
 * while a container is being created, so hints are made then and saved. hints_make() makes hints,
 * hint_score() and hints_score() rate pools by them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "modules/lib/private/annotation.h"
#include "modules/topology-aware/place.h"
#include "modules/topology-aware/topology-aware.h"

#define HINTS_KEY "topologyhints" TA_DOMAIN
#define ALLOW_KEY "allow.topologyhints" TA_DOMAIN
#define DENY_KEY "deny.topologyhints" TA_DOMAIN
#define TEST_KEY "test.topologyhints" TA_DOMAIN
#define TEST_WHAT "annotation " TEST_KEY
#define POD_RESOURCE_PREFIX "podresourceapi:"
#define CLAIM_PREFIX "claim:" /* begins the resource of a device that a claim allocated */

#define HINTS_MAX 64u /* maximum number of hints of one container */
#define SCANNED_MAX 256u /* maximum number of mounts or devices checked */
#define DEVICE_PATH_MAX 1024u
#define PROVIDER_MAX 352u /* longest provider name; resource names have up to 316 bytes */

#define KIND_MOUNTS 0x1u
#define KIND_DEVICES 0x2u
#define KIND_POD_RESOURCES 0x4u
#define KIND_ALL 0x7u

/* List of path patterns, which are globs or prefixes. */
struct paths {
	rp_cfg list;
	bool globs;
};

/* The device that was located last; mounts of a container are often on one disk. Devices may be
 * replaced without notice, so their locations are not kept for other containers. */
struct located {
	char path[DEVICE_PATH_MAX];
	bool known; /* the location is known */
	struct rp_idset cpus, nodes;
};

struct search {
	struct rp_instance *inst;
	struct located *last;
	rp_ctr ctr;
	uint32_t kinds;
	struct paths allow, deny;
	struct hints *hints;
};

/* ---- lists ----------------------------------------------------------------------------------- */

struct hints *hints_ref(struct hints *h)
{
	if (h)
		h->n_users++;
	return h;
}

static struct hint *hint_free(struct hint *h)
{
	free(h->cpus);
	free(h->nodes);
	free(h->sockets);
	free(h);
	return NULL;
}

struct hints *hints_unref(struct hints *h)
{
	if (!h || --h->n_users)
		return NULL;
	while (h->first) {
		struct hint *next = h->first->next;
		hint_free(h->first);
		h->first = next;
	}
	free(h);
	return NULL;
}

static bool place_hints_begins(const char *text, const char *prefix)
{
	while (*prefix && *text == *prefix) {
		text++;
		prefix++;
	}
	return !*prefix;
}

static int32_t make_hint(const char *provider, struct rp_ids cpus, struct rp_ids nodes,
			 struct rp_ids sockets, struct hint **ret)
{
	int32_t r = 0;
	size_t len = strnlen(provider, PROVIDER_MAX - 1);
	struct hint *h = calloc(1, sizeof *h + len + 1);
	if (!h)
		return -RP_ENOMEM;
	memcpy(h->provider, provider, len);
	h->pod_resource = place_hints_begins(provider, POD_RESOURCE_PREFIX) ||
			  place_hints_begins(provider, CLAIM_PREFIX);
	h->cpus = cpus_new(cpus, &r);
	h->nodes = cpus_new(nodes, &r);
	h->sockets = cpus_new(sockets, &r);
	if (r) {
		hint_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

/* Adds a hint in the order of provider names. A second hint with the same name is ignored. */
int32_t hints_add(struct hints **hints, const char *provider, struct rp_ids cpus,
		  struct rp_ids nodes, struct rp_ids sockets)
{
	struct hint *h = NULL;
	if (!*hints) {
		*hints = calloc(1, sizeof **hints);
		if (!*hints)
			return -RP_ENOMEM;
		(*hints)->n_users = 1;
	}
	struct hint **link = &(*hints)->first;
	while (*link && strncmp((*link)->provider, provider, PROVIDER_MAX - 1) < 0)
		link = &(*link)->next;
	if (*link && strncmp((*link)->provider, provider, PROVIDER_MAX - 1) == 0)
		return 0;
	if ((*hints)->n == HINTS_MAX)
		return -RP_E2BIG;
	int32_t r = make_hint(provider, cpus, nodes, sockets, &h);
	if (r)
		return r;
	h->next = *link;
	*link = h;
	(*hints)->n++;
	return 0;
}

/* ---- kinds and paths of hints ---------------------------------------------------------------- */

/*
 * Parses a list of kinds such as "mounts, devices", with or without brackets, or a YAML list with
 * one dash per line. Returns a mask of KIND_….
 */
static uint32_t parse_kinds(struct rp_instance *inst, rp_ctr ctr, const char *text)
{
	static const struct {
		const char *name;
		uint32_t kinds;
	} words[] = {{"mounts", KIND_MOUNTS},
		     {"devices", KIND_DEVICES},
		     {"pod-resources", KIND_POD_RESOURCES},
		     {"all", KIND_ALL},
		     {"none", 0}};
	static const char between[] = " \t\r\n,[]\"'";
	uint32_t kinds = 0;
	int all;
	if (modhost_parse_bool(text, &all) == 0)
		return all ? KIND_ALL : 0;
	for (text += strspn(text, between); *text; text += strspn(text, between)) {
		size_t len = strcspn(text, between), i = 0;
		while (i < 5 &&
		       (strlen(words[i].name) != len || memcmp(words[i].name, text, len) != 0))
			i++;
		if (i == 4)
			return 0;
		if (i < 4)
			kinds |= words[i].kinds;
		else if (len != 1 || *text != '-')
			modhost_log(&inst->h, RP_LOG_WARNING, ctr,
				    "annotation " HINTS_KEY ": unknown word \"%.*s\"",
				    len < 64 ? (int)len : 64, text);
		text += len;
	}
	return kinds;
}

static int32_t read_paths(struct search *s, const char *key, const char *what, struct paths *ret)
{
	const struct modhost *h = &s->inst->h;
	const char *text = h->cache->annotation(h->ctx, s->ctr, key, NULL);
	rp_cfg map, at;
	if (!text)
		return 0;
	int32_t r = annotation_parse(h, what, text, &map);
	if (!r)
		r = annotation_member(h, what, map, "type", RP_NODE_SCALAR, &at);
	if (r)
		return r;
	const char *type = h->config->text(h->ctx, at, "");
	ret->globs = strcmp(type, "glob") == 0;
	if (!ret->globs && strcmp(type, "prefix") != 0)
		return modhost_fail(h, -RP_EINVAL, "%s: type \"%.64s\" is neither prefix nor glob",
				    what, type);
	return annotation_texts(h, what, map, "paths", &ret->list);
}

static bool is_listed(const struct search *s, const struct paths *paths, const char *path)
{
	const struct modhost *h = &s->inst->h;
	uint32_t n = h->config->count(h->ctx, paths->list);
	for (uint32_t i = 0; i < n; i++) {
		const char *p =
			h->config->text(h->ctx, h->config->item(h->ctx, paths->list, i), "");
		if (paths->globs && !glob_valid(p))
			return false;
		if (paths->globs ? glob_match(p, path) : strncmp(path, p, strlen(p)) == 0)
			return true;
	}
	return false;
}

static bool is_allowed(const struct search *s, const char *path)
{
	return !is_listed(s, &s->deny, path) || is_listed(s, &s->allow, path);
}

/* ---- devices and mounts ---------------------------------------------------------------------- */

static int32_t add_hint(struct search *s, const char *provider, struct rp_ids cpus,
			struct rp_ids nodes, struct rp_ids sockets)
{
	int32_t r = hints_add(&s->hints, provider, cpus, nodes, sockets);
	if (r == -RP_E2BIG) {
		modhost_log(&s->inst->h, RP_LOG_WARNING, s->ctr,
			    "more than %u topology hints: ignoring that of %.64s", HINTS_MAX,
			    provider);
		return 0;
	}
	return r ? modhost_fail(&s->inst->h, r, "out of memory") : 0;
}

/* Adds a hint for a device. what: a path of the host, or a device number such as "b8:0". */
static int32_t add_device(struct search *s, const char *provider, const char *what)
{
	const struct modhost *h = &s->inst->h;
	struct located *l = s->last;
	char path[DEVICE_PATH_MAX];
	if (!RP_HAS(h->topology, device_path) ||
	    h->topology->device_path(h->ctx, what, path, sizeof path) < 0 || !is_allowed(s, path))
		return 0;
	if (strcmp(path, l->path) != 0) {
		memcpy(l->path, path, strlen(path) + 1);
		l->known = h->topology->device(h->ctx, path, &l->cpus, &l->nodes) == 0;
	}
	return l->known ? add_hint(s, provider, rp_ids_of(&l->cpus), rp_ids_of(&l->nodes),
				   rp_ids_none())
			: 0;
}

static bool is_boring_path(const char *path)
{
	static const char *const prefixes[] = {RP_DATA_DIR,   "/etc/",	    "/dev/termination-log",
					       "/lib/",	      "/lib64/",    "/usr/lib/",
					       "/usr/lib32/", "/usr/lib64/"};
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		/* most paths differ in the second character */
		if (path[0] == '/' && path[1] == prefixes[i][1] &&
		    place_hints_begins(path, prefixes[i]))
			return true;
	return false;
}

/*
 * Returns true for mounts that say nothing about devices: files that every pod has, config maps and
 * secrets.
 */
static bool is_boring(const struct rp_mount_info *m)
{
	if (is_boring_path(m->source) || is_boring_path(m->destination))
		return true;
	const char *pod = strstr(m->source, "/pods/");
	const char *kind = pod ? strstr(pod, "/volumes/kubernetes.io~") : NULL;
	return kind && (place_hints_begins(kind, "/volumes/kubernetes.io~configmap/") ||
			place_hints_begins(kind, "/volumes/kubernetes.io~secret/"));
}

static int32_t add_mounts(struct search *s)
{
	const struct modhost *h = &s->inst->h;
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < SCANNED_MAX; i++) {
		struct rp_mount_info m = {.size = sizeof m};
		if (h->cache->mount(h->ctx, s->ctr, i, &m))
			break;
		if (m.read_only || m.source[0] != '/' || is_boring(&m) || !is_allowed(s, m.source))
			continue;
		r = add_device(s, m.source, m.source);
	}
	return r;
}

static int32_t add_devices(struct search *s)
{
	const struct modhost *h = &s->inst->h;
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < SCANNED_MAX; i++) {
		struct rp_device_info d = {.size = sizeof d};
		char number[64];
		if (h->cache->device(h->ctx, s->ctr, i, &d))
			break;
		if (!d.writable || (d.type[0] != 'b' && d.type[0] != 'c') || !is_allowed(s, d.path))
			continue;
		(void)snprintf(number, sizeof number, "%c%lld:%lld", d.type[0], (long long)d.major,
			       (long long)d.minor);
		r = add_device(s, d.path, number);
	}
	return r;
}

/* ---- the kubelet's devices ------------------------------------------------------------------- */

static int32_t add_pod_resource(struct search *s, const struct rp_pod_resource_info *r)
{
	const struct rp_plan *p = s->inst->plan;
	char provider[PROVIDER_MAX];
	struct rp_idset cpus;
	(void)snprintf(provider, sizeof provider, "%s%s",
		       place_hints_begins(r->resource, CLAIM_PREFIX) ? "" : POD_RESOURCE_PREFIX,
		       r->resource);
	if (!is_allowed(s, provider))
		return 0;
	machine_cpus_of(p->machine, r->nodes, &cpus);
	if (rp_ids_empty(rp_ids_of(&cpus)) && !memalloc_mask_of(p->mem, r->nodes)) {
		modhost_note(&s->inst->h, s->ctr, "%.100s: this machine has no such NUMA nodes",
			     provider);
		return 0;
	}
	return add_hint(s, provider, rp_ids_of(&cpus), r->nodes, rp_ids_none());
}

static int32_t add_pod_resources(struct search *s)
{
	const struct modhost *h = &s->inst->h;
	int32_t r = 0;
	for (uint32_t i = 0; !r && RP_HAS(h->cache, pod_resource) && i < SCANNED_MAX; i++) {
		struct rp_pod_resource_info info = {.size = sizeof info};
		if (h->cache->pod_resource(h->ctx, s->ctr, i, &info))
			break;
		r = add_pod_resource(s, &info);
	}
	return r;
}

/* ---- annotated hints ------------------------------------------------------------------------- */

/* Reads a member of a map, ignoring the case of its name. *ret is "" if the member is missing. */
static int32_t read_member(const struct modhost *h, rp_cfg map, const char *name, const char **ret)
{
	*ret = "";
	for (uint32_t i = 0; i < h->config->count(h->ctx, map); i++) {
		const char *key = h->config->key(h->ctx, map, i);
		rp_cfg at;
		if (strcasecmp(key, name) != 0)
			continue;
		int32_t r = annotation_member(h, TEST_WHAT, map, key, RP_NODE_SCALAR, &at);
		if (!r)
			*ret = h->config->text(h->ctx, at, "");
		return r;
	}
	return 0;
}

static int32_t read_ids(const struct modhost *h, rp_cfg map, const char *hint, const char *name,
			uint32_t max, struct rp_idset *ret)
{
	const char *text;
	int32_t r = read_member(h, map, name, &text);
	if (!r && rp_idset_parse(ret, text, max))
		return modhost_fail(h, -RP_EINVAL, TEST_WHAT ": \"%.64s\" has an invalid list",
				    hint);
	return r;
}

static int32_t add_test_hint(struct search *s, const char *name, rp_cfg map)
{
	const struct modhost *h = &s->inst->h;
	struct rp_idset cpus, nodes, sockets;
	const char *provider;
	int32_t r = read_member(h, map, "Provider", &provider);
	if (!r)
		r = read_ids(h, map, name, "CPUs", RP_CPUS_MAX, &cpus);
	if (!r)
		r = read_ids(h, map, name, "NUMAs", RP_NODES_MAX, &nodes);
	if (!r)
		r = read_ids(h, map, name, "Sockets", RP_CPUS_MAX, &sockets);
	if (r)
		return r;
	if (rp_ids_empty(rp_ids_of(&cpus)))
		machine_cpus_of(s->inst->plan->machine, rp_ids_of(&nodes), &cpus);
	return add_hint(s, *provider ? provider : name, rp_ids_of(&cpus), rp_ids_of(&nodes),
			rp_ids_of(&sockets));
}

static int32_t add_test_hints(struct search *s)
{
	const struct modhost *h = &s->inst->h;
	const char *text = s->inst->plan->settings.test_hints
				   ? h->cache->annotation(h->ctx, s->ctr, TEST_KEY, NULL)
				   : NULL;
	rp_cfg map = NULL, hint;
	int32_t r = text ? annotation_parse(h, TEST_WHAT, text, &map) : 0;
	for (uint32_t i = 0; !r && i < h->config->count(h->ctx, map); i++) {
		const char *name = h->config->key(h->ctx, map, i);
		r = annotation_member(h, TEST_WHAT, map, name, RP_NODE_MAP, &hint);
		if (!r)
			r = add_test_hint(s, name, hint);
	}
	return r;
}

int32_t hints_make(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints **ret)
{
	struct located last;
	struct search s = {.inst = inst, .last = &last, .ctr = info->ctr, .kinds = KIND_ALL};
	const char *text = inst->h.cache->annotation(inst->h.ctx, info->ctr, HINTS_KEY, NULL);
	*ret = NULL;
	last.path[0] = '\0';
	last.known = false;
	if (text)
		s.kinds = parse_kinds(inst, info->ctr, text);
	if (!s.kinds)
		return 0;
	int32_t r = read_paths(&s, ALLOW_KEY, "annotation " ALLOW_KEY, &s.allow);
	if (!r)
		r = read_paths(&s, DENY_KEY, "annotation " DENY_KEY, &s.deny);
	if (!r && s.kinds & KIND_MOUNTS)
		r = add_mounts(&s);
	if (!r && s.kinds & KIND_DEVICES)
		r = add_devices(&s);
	if (!r && s.kinds & KIND_POD_RESOURCES)
		r = add_pod_resources(&s);
	if (!r)
		r = add_test_hints(&s);
	if (r)
		hints_unref(s.hints);
	else
		*ret = s.hints;
	return r;
}

/* ---- scores ---------------------------------------------------------------------------------- */

#define AROUND 0.9 /* score factor for each level of a pool above the matching one */

static double score_nodes(const struct rp_plan *p, uint32_t id, struct rp_ids nodes)
{
	const struct pool *pool = &p->pools[id];
	memalloc_mask wanted = memalloc_mask_of(p->mem, nodes);
	switch (pool->level) {
	case RP_LEVEL_SYSTEM:
		return AROUND * AROUND;
	case RP_LEVEL_NODE:
		return wanted & pool->nodes ? 1 : 0;
	default:
		return wanted & pool->nodes ? AROUND : 0;
	}
}

static double score_sockets(const struct rp_plan *p, uint32_t id, struct rp_ids sockets)
{
	const struct pool *pool = &p->pools[id];
	if (pool->level == RP_LEVEL_SYSTEM)
		return AROUND;
	if (!rp_ids_has(sockets, pool->package))
		return 0;
	if (pool->level == RP_LEVEL_PACKAGE)
		return 1;
	if (pool->level == RP_LEVEL_L3)
		return AROUND * score_sockets(p, pool->parent, sockets);
	uint32_t around = id;
	while (p->pools[around].level != RP_LEVEL_PACKAGE)
		around = p->pools[around].parent;
	memalloc_mask nodes = p->pools[pool->level == RP_LEVEL_DIE ? id : around].nodes;
	uint32_t n = (uint32_t)__builtin_popcountll(nodes);
	return n ? 1.0 / n : 0;
}

double hint_score(const struct rp_plan *p, uint32_t pool, const struct hint *h)
{
	if (h->cpus)
		return (double)rp_ids_count_and(cpus_ids(h->cpus),
						plan_ids(p, p->pools[pool].cpus)) /
		       h->cpus->n;
	if (h->nodes)
		return score_nodes(p, pool, cpus_ids(h->nodes));
	return h->sockets ? score_sockets(p, pool, cpus_ids(h->sockets)) : 0;
}

void hints_score(const struct rp_plan *p, uint32_t pool, const struct hints *hints, double *ret_all,
		 double *ret_some)
{
	double all = 1, some = 1;
	bool any = false;
	for (const struct hint *h = hints ? hints->first : NULL; h; h = h->next) {
		double score = hint_score(p, pool, h);
		all *= score;
		any |= score > 0;
		some *= score > 0 ? score : 1;
	}
	*ret_all = all;
	*ret_some = any ? some : 0;
}

const struct hint *hints_violated(const struct rp_plan *p, const struct hints *hints,
				  struct rp_ids cpus)
{
	for (const struct hint *h = hints ? hints->first : NULL; h; h = h->next) {
		struct rp_idset near;
		if (h->cpus && !rp_ids_subset(cpus, cpus_ids(h->cpus)))
			return h;
		machine_cpus_of(p->machine, cpus_ids(h->nodes), &near);
		if (h->nodes && !rp_ids_empty(rp_ids_of(&near)) &&
		    !rp_ids_subset(cpus, rp_ids_of(&near)))
			return h;
	}
	return NULL;
}

/*
 * Returns true if a memory zone is close to the wanted nodes. Of a zone with CPU nodes only these
 * count, because the memory-only nodes in it are as close as possible.
 */
static bool is_aligned(const struct rp_plan *p, memalloc_mask zone, memalloc_mask wanted)
{
	memalloc_mask with_cpus = zone & p->pools[p->root].nodes;
	if (with_cpus)
		return !(with_cpus & ~wanted);
	if (!(zone & ~wanted))
		return true;
	for (uint32_t i = 0; i < p->n_pools; i++) {
		const struct pool *pool = &p->pools[i];
		if (pool->nodes && !(pool->nodes & ~wanted) &&
		    !(zone & ~tree_memory(pool, MEMALLOC_ALL_TYPES)))
			return true;
	}
	return false;
}

const struct hint *hints_memory_violated(const struct rp_plan *p, const struct hints *hints,
					 memalloc_mask zone)
{
	for (const struct hint *h = hints ? hints->first : NULL; h; h = h->next)
		if (h->nodes && !is_aligned(p, zone, memalloc_mask_of(p->mem, cpus_ids(h->nodes))))
			return h;
	return NULL;
}
