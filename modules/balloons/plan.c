/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a configuration to the topology: built-in types, reserved CPUs, and the devices that
 * types prefer and avoid. */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/lib/private/irq.h"
#include <nri-rp/lib/glob.h>
#include <nri-rp/lib/section.h>

struct type *plan_type(const struct rp_plan *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_types; i++)
		if (strcmp(p->types[i].name, name) == 0)
			return &p->types[i];
	return NULL;
}

/* ---- built-in types -------------------------------------------------------------------------- */

static void built_in(const struct rp_plan *p, struct type *t, const char *name)
{
	*t = (struct type){
		.name = name,
		.group_by = "",
		.core_type = "",
		.cpu_class_name = "",
		.min_balloons = 1,
		.priority = CPUALLOC_LOW,
		.balancing = p->balancing,
		.spread_cores = p->spread_cores,
		.pin_memory = p->pin_memory,
		.show_containers = p->show_containers,
		.share = -1,
		.sched = SCHEDCLASS_NONE,
		.mempolicy = MEMPOLICY_NONE,
		.cpu_class = cpuclass_find(&p->classes, "default"),
	};
}

static int32_t reserve_namespaces(const struct modhost *h, struct rp_plan *p)
{
	struct texts *to = &p->reserved_type->namespaces;
	if (!to->list)
		to->list =
			blocks_alloc(&p->memory, 1u + p->reserved_namespaces.n, sizeof *to->list);
	if (!to->list)
		return modhost_no_memory(h);
	to->list[to->n++] = "kube-system";
	for (uint32_t i = 0; i < p->reserved_namespaces.n; i++)
		to->list[to->n++] = p->reserved_namespaces.list[i];
	return 0;
}

static int32_t add_built_in(const struct modhost *h, struct rp_plan *p)
{
	/* config_read() left an unused entry before the first type and one after the last. */
	if (!plan_type(p, "reserved")) {
		p->types--;
		p->n_types++;
		built_in(p, p->types, "reserved");
	}
	if (!plan_type(p, "default")) {
		struct type *t = &p->types[p->n_types++];
		built_in(p, t, "default");
		t->max_balloons = 1;
	}
	for (uint32_t i = 0; i < p->n_types; i++)
		p->types[i].index = i;
	p->reserved_type = plan_type(p, "reserved");
	p->default_type = plan_type(p, "default");
	p->reserved_type->min_balloons = p->reserved_type->max_balloons = 1;
	return reserve_namespaces(h, p);
}

/* ---- available and reserved CPUs ------------------------------------------------------------- */

static int32_t check_quantity(const struct modhost *h, struct rp_plan *p, rp_cfg at)
{
	struct type *t = p->reserved_type;
	int64_t n = amount_count(&p->reserved);
	if (t->min_cpus == 0)
		t->min_cpus = n;
	if (t->min_cpus != n)
		return modhost_refuse(h, at,
				      "reservedResources.cpu requests %lld CPUs, but minCPUs of "
				      "balloon type reserved is %lld",
				      (long long)n, (long long)t->min_cpus);
	if (t->max_cpus && t->max_cpus < n)
		return modhost_refuse(h, at,
				      "reservedResources.cpu requests %lld CPUs, but maxCPUs of "
				      "balloon type reserved is %lld",
				      (long long)n, (long long)t->max_cpus);
	return 0;
}

void plan_past(const struct rp_plan *p, struct reserve_past *ret)
{
	*ret = (struct reserve_past){0};
	if (p->reserved.kind == AMOUNT_CPUS)
		ret->listed = p->reserved.cpus;
}

static int32_t reserve_cpus(const struct modhost *h, struct rp_plan *p, rp_cfg at,
			    const struct reserve_past *past)
{
	struct type *t = p->reserved_type;
	struct rp_idset awaited;
	int32_t r = p->reserved.kind == AMOUNT_CPUS
			    ? amount_check_reserved(h, at, past, rp_ids_of(&p->reserved.cpus),
						    rp_ids_of(&p->allowed),
						    rp_ids_of(&p->machine->online), &awaited)
			    : 0;
	if (r)
		return r;
	amount_pick(&p->reserved, rp_ids_of(&p->allowed), &p->reserved_cpus);
	int64_t n = rp_ids_count(rp_ids_of(&p->reserved_cpus));
	/* Without maxCPUs the reserved balloon starts empty and grows with its members. */
	if (t->min_cpus == 0 && t->max_cpus > 0)
		t->min_cpus = n < t->max_cpus ? n : t->max_cpus;
	t->priority = CPUALLOC_NORMAL;
	return 0;
}

static int32_t divide_cpus(const struct modhost *h, struct rp_plan *p,
			   const struct reserve_past *past)
{
	rp_cfg at = section_get(h, p->section, "reservedResources.cpu");
	amount_pick(&p->available, rp_ids_of(&p->machine->online), &p->allowed);
	rp_idset_andnot(&p->sharable, rp_ids_of(&p->allowed), rp_ids_of(&p->machine->isolated));
	rp_idset_clear(&p->reserved_cpus);
	if (rp_ids_empty(rp_ids_of(&p->allowed)))
		return modhost_refuse(h, section_get(h, p->section, "availableResources.cpu"),
				      "none of the available CPUs is online");
	if (p->reserved.kind == AMOUNT_NONE)
		return 0;
	if (p->reserved.kind == AMOUNT_QUANTITY)
		return check_quantity(h, p, at);
	return reserve_cpus(h, p, at, past);
}

/* Sets the number of CPUs by which the balloons of each type grow. The reserved balloon may have
 * parts of cores, whose other threads are then not used by other balloons. */
static int32_t set_cores(const struct modhost *h, struct rp_plan *p)
{
	uint32_t threads = p->isolation.threads;
	for (uint32_t i = 0; i < p->n_types; i++) {
		struct type *t = &p->types[i];
		t->core = threads > 1 && t != p->reserved_type ? threads : 1;
		if (t->max_cpus > 0 && t->max_cpus % t->core)
			return modhost_refuse(
				h, t->at,
				"balloon type %s: maxCPUs %lld is no number of whole "
				"cores, and isolation.siblings is own: set a multiple of "
				"%u",
				t->name, (long long)t->max_cpus, threads);
	}
	return 0;
}

/* ---- components ------------------------------------------------------------------------------ */

static int32_t resolve_parts(const struct modhost *h, struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n_types; i++) {
		struct type *t = &p->types[i];
		for (uint32_t k = 0; k < t->part_names.n; k++) {
			const struct type *part = plan_type(p, t->part_names.list[k]);
			if (!part)
				return modhost_refuse(h, t->at,
						      "balloon type %s: unknown balloon type "
						      "\"%s\" of a component",
						      t->name, t->part_names.list[k]);
			t->parts.list[t->parts.n++] = part->index;
		}
	}
	return 0;
}

/* Returns true if type `what` is reachable from the components of t. */
static bool plan_reaches(const struct rp_plan *p, const struct type *t, uint32_t what,
			 uint8_t *seen)
{
	for (uint32_t i = 0; i < t->parts.n; i++) {
		uint32_t part = t->parts.list[i];
		if (part == what)
			return true;
		if (seen[part])
			continue;
		seen[part] = 1;
		if (plan_reaches(p, &p->types[part], what, seen))
			return true;
	}
	return false;
}

static int32_t check_circles(const struct modhost *h, struct rp_plan *p)
{
	uint8_t *seen = blocks_alloc(&p->memory, p->n_types, 1);
	if (!seen)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < p->n_types; i++) {
		memset(seen, 0, p->n_types);
		if (plan_reaches(p, &p->types[i], i, seen))
			return modhost_refuse(h, p->types[i].at,
					      "balloon type %s is a component of itself",
					      p->types[i].name);
	}
	return 0;
}

/* ---- devices --------------------------------------------------------------------------------- */

#define DEVICE_PATH_MAX 4096u

static uint32_t count_devices(const struct rp_plan *p)
{
	uint32_t n = 4 + p->n_loads;
	for (uint32_t i = 0; i < p->n_types; i++)
		n += p->types[i].close_paths.n;
	return n;
}

/* Returns the index of the device of a kind, and of a load class or path where the kind has
 * several. Adds it if it is missing, and sets *ret_new. */
static uint32_t device_of(struct rp_plan *p, enum device_kind kind, uint32_t load, const char *path,
			  bool *ret_new)
{
	*ret_new = false;
	for (uint32_t i = 0; i < p->n_devices; i++) {
		const struct device *d = &p->devices[i];
		if (d->kind == kind && d->load == load &&
		    (d->path == path || (d->path && path && strcmp(d->path, path) == 0)))
			return i;
	}
	p->devices[p->n_devices] = (struct device){.kind = kind, .load = load, .path = path};
	*ret_new = true;
	return p->n_devices++;
}

static uint32_t device_of_kind(struct rp_plan *p, enum device_kind kind, struct rp_ids cpus)
{
	bool added;
	uint32_t i = device_of(p, kind, 0, NULL, &added);
	if (added)
		rp_idset_copy(&p->devices[i].cpus, cpus);
	return i;
}

/* Finds the CPUs near a device. A path outside sysfs is resolved to its device: a device file,
 * or the device of the file system that contains the path. */
static int32_t cpus_near(const struct modhost *h, const char *path, struct rp_idset *ret)
{
	char device[DEVICE_PATH_MAX];
	struct rp_idset nodes;
	if (strncmp(path, "/sys/", 5) != 0 && RP_HAS(h->topology, device_path) &&
	    h->topology->device_path(h->ctx, path, device, sizeof device) >= 0)
		path = device;
	return h->topology->device(h->ctx, path, ret, &nodes);
}

static uint32_t device_of_path(const struct modhost *h, struct rp_plan *p, const char *path)
{
	bool added;
	uint32_t i = device_of(p, DEVICE_PATH, 0, path, &added);
	if (added && cpus_near(h, path, &p->devices[i].cpus)) {
		rp_idset_clear(&p->devices[i].cpus);
		modhost_log(h, RP_LOG_ERROR, 0, "%s: the CPUs near this device are unknown", path);
	}
	return i;
}

static bool has_index(const struct indexes *in, uint32_t index)
{
	for (uint32_t i = 0; i < in->n; i++)
		if (in->list[i] == index)
			return true;
	return false;
}

void plan_add_index(struct indexes *to, uint32_t index)
{
	if (!has_index(to, index))
		to->list[to->n++] = index;
}

static bool plan_begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void like_pod_devices(const struct modhost *h, struct rp_plan *p, struct type *t,
			     const char *path)
{
	const char *glob = path;
	if (plan_begins(path, POD_RESOURCE))
		glob += sizeof POD_RESOURCE - 1;
	bool added;
	if (!RP_HAS(h->cache, pod_resource)) {
		modhost_log(h, RP_LOG_WARNING, 0,
			    "balloon type %s: %s has no effect: this host does not provide devices "
			    "of pods",
			    t->name, path);
		return;
	}
	if (!glob_valid(glob))
		modhost_log(h, RP_LOG_WARNING, 0,
			    "balloon type %s: %s matches nothing: it is not a well-formed glob",
			    t->name, path);
	if (!t->prefer_new || !t->spread_pods)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "balloon type %s: %s is used for the container for which a balloon is "
			    "created, but without preferNewBalloons and preferSpreadingPods other "
			    "containers may share the balloon",
			    t->name, path);
	p->uses_pods = true;
	plan_add_index(&t->close, device_of(p, DEVICE_POD, 0, glob, &added));
}

static void like_devices(const struct modhost *h, struct rp_plan *p, struct type *t)
{
	const struct plan_machine *m = p->machine;
	if (t == p->reserved_type && !rp_ids_empty(rp_ids_of(&p->reserved_cpus)))
		plan_add_index(&t->close,
			       device_of_kind(p, DEVICE_RESERVED, rp_ids_of(&p->reserved_cpus)));
	for (uint32_t i = 0; i < t->close_paths.n; i++) {
		const char *path = t->close_paths.list[i];
		if (!plan_begins(path, POD_RESOURCE) && !plan_begins(path, CLAIM)) {
			plan_add_index(&t->close, device_of_path(h, p, path));
			continue;
		}
		like_pod_devices(h, p, t, path);
	}
	if (t->prefer_isolated)
		plan_add_index(&t->close,
			       device_of_kind(p, DEVICE_ISOLATED, rp_ids_of(&m->isolated)));
	if (strcmp(t->core_type, "performance") == 0)
		plan_add_index(&t->close,
			       device_of_kind(p, DEVICE_PERFORMANCE,
					      cpualloc_prio_cpus(p->alloc, CPUALLOC_HIGH)));
	if (strcmp(t->core_type, "efficient") == 0)
		plan_add_index(&t->close,
			       device_of_kind(p, DEVICE_EFFICIENT,
					      cpualloc_prio_cpus(p->alloc, CPUALLOC_LOW)));
	if (t->prefer_isolated && t->share >= 0)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "balloon type %s: preferIsolCpus with shareIdleCPUsInSame: its "
			    "containers may also run on CPUs that are not isolated",
			    t->name);
}

/* Adds to the far devices of each type the devices that other types prefer. */
static int32_t avoid_devices(const struct modhost *h, struct rp_plan *p)
{
	struct indexes avoid = {blocks_alloc(&p->memory, p->n_devices + 1u, sizeof *avoid.list), 0};
	if (!avoid.list)
		return modhost_no_memory(h);
	struct rp_ids isolated = rp_ids_of(&p->machine->isolated);
	bool added;
	if (!rp_ids_empty(isolated))
		plan_add_index(&avoid, device_of_kind(p, DEVICE_ISOLATED, isolated));
	for (uint32_t i = 0; i < p->n_types; i++)
		for (uint32_t k = 0; k < p->types[i].close.n; k++)
			if (p->devices[p->types[i].close.list[k]].kind != DEVICE_POD)
				plan_add_index(&avoid, p->types[i].close.list[k]);
	for (uint32_t i = 0; i < p->n_types; i++) {
		struct type *t = &p->types[i];
		for (uint32_t k = 0; k < avoid.n; k++)
			if (!has_index(&t->close, avoid.list[k]))
				plan_add_index(&t->far, avoid.list[k]);
		for (uint32_t k = 0; k < t->loads.n; k++)
			plan_add_index(&t->far,
				       device_of(p, DEVICE_LOAD, t->loads.list[k], NULL, &added));
	}
	return 0;
}

static int32_t find_devices(const struct modhost *h, struct rp_plan *p)
{
	uint32_t n = count_devices(p);
	p->devices = blocks_alloc(&p->memory, n, sizeof *p->devices);
	if (!p->devices)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < p->n_types; i++) {
		struct type *t = &p->types[i];
		t->close.list = blocks_alloc(&p->memory, n, sizeof *t->close.list);
		t->far.list = blocks_alloc(&p->memory, n, sizeof *t->far.list);
		if (!t->close.list || !t->far.list)
			return modhost_no_memory(h);
		like_devices(h, p, t);
	}
	return avoid_devices(h, p);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

static bool steers_interrupts(const struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n_types; i++)
		if (p->types[i].irq_claim.n || p->types[i].irq_mode != IRQ_NORMAL)
			return true;
	return false;
}

static int32_t check_interrupts(const struct modhost *h, struct rp_plan *p)
{
	struct irq_name *denied;
	bool known = false;
	for (uint32_t i = 0; i < p->n_types; i++) {
		const struct type *t = &p->types[i];
		for (uint32_t k = 0; k < t->irq_claim.n; k++) {
			if (!glob_valid(t->irq_claim.list[k]))
				return modhost_refuse(h, section_get(h, t->at, "irqClaim"),
						      "balloon type %s: irqClaim: \"%.64s\" is "
						      "not a valid pattern",
						      t->name, t->irq_claim.list[k]);
			int32_t r =
				known ? 0
				      : irq_read_denied(h, &p->memory, &p->controllable, &denied);
			if (r)
				return modhost_fail_at(
					h, t->at, r,
					"balloon type %s: irqClaim: /proc/interrupts cannot be "
					"read, so no claim can be checked",
					t->name);
			known = true;
			const struct irq_name *name = irq_find_denied(denied, t->irq_claim.list[k]);
			if (name)
				return modhost_refuse(h, t->at,
						      "balloon type %s: irqClaim lists the denied "
						      "interrupt %u (%s)",
						      t->name, name->number, name->description);
		}
	}
	return 0;
}

/* ---- creation of a plan ---------------------------------------------------------------------- */

/* Logs the offline CPUs, which may be the ones that balloons lack. */
static void log_offline_cpus(const struct modhost *h)
{
	char text[256];
	struct rp_ids present;
	struct rp_idset online, offline;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	if (h->topology->set(h->ctx, RP_CPUS_PRESENT, &present))
		return;
	rp_idset_andnot(&offline, present, rp_ids_of(&online));
	if (rp_ids_empty(rp_ids_of(&offline)))
		return;
	(void)rp_ids_format(rp_ids_of(&offline), text, sizeof text);
	modhost_log(h, RP_LOG_WARNING, 0,
		    "CPUs %s are offline, so there is less room for minBalloons", text);
}

static int32_t try_first_balloons(const struct modhost *h, struct rp_plan *p)
{
	struct state *s;
	int32_t r = state_new(h, p, &s);
	if (r)
		return r;
	r = balloon_precreate(s);
	if (r && r != -RP_ENOMEM)
		log_offline_cpus(h);
	p->idle_at_start = rp_ids_count(rp_ids_of(&s->free));
	state_free(s);
	return r;
}

static int32_t new_allocator(const struct modhost *h, struct rp_plan *p)
{
	int32_t r = cpualloc_new(h->topology, h->ctx, &p->alloc);
	if (r)
		return modhost_fail(h, r, "the node's CPUs cannot be described");
	pct_priorities(h, pct_is_managed(&p->classes), p->alloc);
	return 0;
}

int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	int32_t r = config_read(h, section, p);
	if (!r)
		r = add_built_in(h, p);
	if (!r)
		r = set_cores(h, p);
	if (!r)
		r = resolve_parts(h, p);
	if (!r)
		r = check_circles(h, p);
	if (!r)
		r = plan_machine_new(h, &p->machine);
	if (!r)
		r = new_allocator(h, p);
	if (!r)
		r = divide_cpus(h, p, past);
	if (!r)
		r = find_devices(h, p);
	p->uses_irq = steers_interrupts(p) || p->isolation.kernel_away;
	if (!r && !past->hotplug)
		r = check_interrupts(h, p);
	if (!r && !past->hotplug)
		r = try_first_balloons(h, p);
	return r;
}

void plan_fini(struct rp_plan *p)
{
	plan_machine_free(p->machine);
	cpualloc_free(p->alloc);
	blocks_fini(&p->memory);
}
