/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that the kubelet assigned to a container, and devices that its claims allocated
 * (podresourceapi:GLOB and claim:DRIVER/DEVICE in preferCloseToDevices of a type). They are hints
 * for the balloon created for the container and for its parts, while the container is a member.
 *
 * The devices are saved with the container as text, RESOURCE=NODES lines, because the kubelet's
 * answer may be missing after a restart.
 */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"

#define RESOURCES_MAX 64u
#define NODES_TEXT_MAX 1024u

struct near_device {
	uint32_t device; /* index in plan->devices */
	struct rp_idset cpus;
};

struct near {
	rp_ctr ctr;
	bool left; /* the container has left the balloon */
	uint32_t n;
	struct near_device list[];
};

struct near *near_free(struct near *near)
{
	free(near);
	return NULL;
}

/* ---- devices from the kubelet ---------------------------------------------------------------- */

/* Appends a line. Returns false if the text is full. */
static bool add_line(char *text, size_t size, const struct rp_pod_resource_info *r)
{
	char nodes[NODES_TEXT_MAX];
	size_t used = strlen(text);
	int n = snprintf(text + used, size - used, "%s=%s\n", r->resource,
			 modhost_set_text(r->nodes, nodes, sizeof nodes));
	if (n >= 0 && (size_t)n < size - used)
		return true;
	text[used] = '\0';
	return false;
}

void devices_text(struct rp_instance *inst, rp_ctr ctr, char *text, size_t size)
{
	const struct modhost *h = &inst->h;
	struct record rec;
	text[0] = '\0';
	for (uint32_t i = 0; RP_HAS(h->cache, pod_resource) && i < RESOURCES_MAX; i++) {
		struct rp_pod_resource_info r = {.size = sizeof r};
		if (h->cache->pod_resource(h->ctx, ctr, i, &r))
			break;
		if (add_line(text, size, &r))
			continue;
		modhost_log(h, RP_LOG_WARNING, ctr, "it has devices of too many resources");
		break;
	}
	if (!*text && pin_read_record(inst, ctr, &rec))
		(void)snprintf(text, size, "%s", rec.devices);
}

/* Adds to *ret the nodes of the lines whose resource matches the glob. */
static void nodes_of(char *text, const char *glob, struct rp_idset *ret)
{
	for (char *line = text, *eol; (eol = strchr(line, '\n')); line = eol + 1) {
		char *equals = memchr(line, '=', (size_t)(eol - line));
		struct rp_idset nodes;
		if (!equals)
			continue;
		*equals = *eol = '\0';
		if (glob_match(glob, line) && rp_idset_parse(&nodes, equals + 1, RP_NODES_MAX) == 0)
			rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&nodes));
		*equals = '=';
		*eol = '\n';
	}
}

/* ---- CPUs near the devices ------------------------------------------------------------------- */

static void cpus_near(const struct rp_plan *p, struct rp_ids nodes, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, rp_ids_of(&p->allowed))
		if (rp_ids_has(nodes, p->machine->node_of[cpu]))
			rp_idset_add(ret, cpu);
}

static bool uses_device(const struct rp_plan *p, const struct type *t, uint32_t device)
{
	for (uint32_t i = 0; i < t->close.n; i++)
		if (t->close.list[i] == device)
			return true;
	for (uint32_t i = 0; i < t->parts.n; i++)
		if (uses_device(p, &p->types[t->parts.list[i]], device))
			return true;
	return false;
}

static void find_device(struct rp_instance *inst, char *text, uint32_t device, bool quiet,
			struct near *to)
{
	const struct rp_plan *p = inst->plan;
	struct near_device *d = &to->list[to->n];
	struct rp_idset nodes;
	char cpus[200];
	const char *kind =
		strncmp(p->devices[device].path, CLAIM, sizeof CLAIM - 1) == 0 ? "" : POD_RESOURCE;
	rp_idset_clear(&nodes);
	nodes_of(text, p->devices[device].path, &nodes);
	cpus_near(p, rp_ids_of(&nodes), &d->cpus);
	if (rp_ids_empty(rp_ids_of(&d->cpus))) {
		if (!quiet)
			modhost_note(&inst->h, to->ctr,
				     "%s%.100s: no such device of the container is near CPUs of "
				     "the policy",
				     kind, p->devices[device].path);
		return;
	}
	if (!quiet)
		modhost_note(&inst->h, to->ctr, "%s%.100s: near CPUs %s", kind,
			     p->devices[device].path,
			     modhost_set_text(rp_ids_of(&d->cpus), cpus, sizeof cpus));
	d->device = device;
	to->n++;
}

int32_t devices_near(struct rp_instance *inst, rp_ctr ctr, const struct type *t, bool quiet,
		     struct near **ret)
{
	const struct rp_plan *p = inst->plan;
	char text[DEVICES_TEXT_MAX];
	uint32_t n = 0;
	*ret = NULL;
	for (uint32_t i = 0; i < p->n_devices; i++)
		n += p->devices[i].kind == DEVICE_POD && uses_device(p, t, i);
	if (!n)
		return 0;
	struct near *near = calloc(1, sizeof *near + n * sizeof near->list[0]);
	if (!near)
		return -RP_ENOMEM;
	near->ctr = ctr;
	devices_text(inst, ctr, text, sizeof text);
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (p->devices[i].kind == DEVICE_POD && uses_device(p, t, i))
			find_device(inst, text, i, quiet, near);
	*ret = near->n ? near : near_free(near);
	return 0;
}

static const struct near *near_of(const struct state *s, const struct balloon *b)
{
	while (b->whole)
		b = b->whole;
	const struct near *near = b->near ? b->near : s->making;
	return near && !near->left ? near : NULL;
}

void devices_look(struct state *s, const struct balloon *b)
{
	s->near = s->plan->uses_pods ? near_of(s, b) : NULL;
}

struct rp_ids devices_cpus(const struct state *s, uint32_t device)
{
	for (uint32_t i = 0; s->near && i < s->near->n; i++)
		if (s->near->list[i].device == device)
			return rp_ids_of(&s->near->list[i].cpus);
	return rp_ids_none();
}

void devices_moved(const struct member *m, bool joined)
{
	struct near *near = m->balloon->near;
	if (near && near->ctr == m->ctr)
		near->left = !joined;
}

bool devices_owns(const struct member *m)
{
	const struct near *near = m->balloon->near;
	return near && near->ctr == m->ctr && !near->left;
}

int32_t devices_restore(struct rp_instance *inst, const struct member *m)
{
	struct balloon *b = m->balloon;
	return b->near ? 0 : devices_near(inst, m->ctr, b->type, true, &b->near);
}
