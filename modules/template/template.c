/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete policy to be copied. Rename it and change template_wants() and template_shares() to
 * get your own policy. Containers of kube-system run on reserved CPUs. Containers of Guaranteed
 * pods that request whole CPUs get exclusive CPUs, and all others share the rest:
 *
 *	template:
 *	  availableResources: {cpu: "cpuset:2-15"}	# default: all online CPUs
 *	  reservedResources: {cpu: 2}			# for kube-system; required
 *	  pinCPU: true					# default; false: do not pin containers
 *
 * Before you start:
 *
 *  - The host calls every function on one thread, one at a time. Decide quickly and return: no
 *    files, no sleeping, no threads.
 *  - Containers are handles, and a struct rp_ctr_info describes one. Decisions are *staged*: when
 *    a callback returns 0, the host checks all of them and applies them. After an error it drops
 *    them and calls rolled_back().
 *  - Store as little as you can. The host's cache survives a restart of the daemon, your
 *    variables do not.
 *
 * The base does all of this for policies of this kind. Read <nri-rp/lib/simple.h> first, and its
 * source when you need callbacks of your own.
 */
#include <string.h>

#include <nri-rp/policy.h>

/* Optional helpers that are linked into the module; <nri-rp/lib/README> lists them. */
#include <nri-rp/lib/simple.h>

#define DEVICE "template-cpus" /* name of the device for claims */

/* The host checks rp.conf against this table first; help and manual are generated from it. */
static const struct rp_key keys[] = {
	BOUNDS_KEYS("Resources of the containers of kube-system.",
		    "Their CPUs: a set, or a quantity of the available CPUs."),
	SECTION_BOOL("pinCPU", "true", "Pin containers.")};

/* Custom resources of this kind contain this section. */
static const struct rp_schema schema = SECTION_SCHEMA(keys, .cr_kind = "TemplatePolicy");

/* A checked configuration and values derived from it. The name of the struct is required, the
 * members are yours. */
struct rp_plan {
	SIMPLE_PLAN; /* section; cpus: reserved ones and the rest; alloc */
	bool pin_cpu;
};

/* The memory of your module. A trial of a new configuration has an instance of its own. */
struct rp_instance {
	SIMPLE; /* h, the host's services; plan, the active configuration; owners; and more */
};

/* Reads your own keys. An error is one sentence for people, with the place in rp.conf if a key is
 * wrong (modhost_fail_at). */
static int32_t template_read(struct rp_instance *inst, rp_cfg section, struct rp_plan *p)
{
	p->pin_cpu = section_bool(&inst->h, section, "pinCPU", true);
	return 0;
}

static bool is_system(const struct rp_ctr_info *info)
{
	return strcmp(info->pod_namespace, "kube-system") == 0;
}

/* Returns the number of exclusive CPUs that a container should have. */
static uint32_t template_wants(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	bool whole = info->qos == RP_QOS_GUARANTEED && info->cpu_request % 1000 == 0 &&
		     ctr_may_own_cpus(info);
	return inst->plan->pin_cpu && whole && !is_system(info)
		       ? (uint32_t)(info->cpu_request / 1000)
		       : 0;
}

/* Stores the CPUs of a container without exclusive CPUs. */
static void template_shares(const struct rp_instance *inst, const struct rp_ctr_info *info,
			    const struct rp_idset *shared, struct rp_idset *ret)
{
	rp_idset_copy(ret, rp_ids_of(is_system(info) ? &inst->plan->cpus.reserved : shared));
}

static bool template_leaves(const struct rp_instance *inst)
{
	return !inst->plan->pin_cpu;
}

/* Reports what pods can claim (nri-rp-dra(7)): one device with all CPUs that are not exclusive to
 * other containers. The service is optional, and so is this function with the next one. */
static int32_t template_devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	int64_t left = rp_ids_count(rp_ids_of(&inst->plan->cpus.rest));
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED);
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		if (!ctr_info(&inst->h, inst->list.ctrs[i], &info) && !(info.flags & RP_CTR_CLAIM))
			left -= rp_ids_count(info.exclusive);
	}
	if (n < 0 || left <= 0 || !inst->plan->pin_cpu)
		return n < 0 ? n : 0;
	sink->device(sink->ctx, DEVICE);
	sink->capacity(sink->ctx, "cpu", left);
	modhost_limits(sink, 1, left); /* if the host has limits */
	return 0;
}

/* Allocates a claim. It is an object like a Guaranteed container with whole CPUs, which
 * template_wants() gives exclusive CPUs, now and in each sync(). */
static int32_t template_claim(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			      const char *device)
{
	if (strcmp(device, DEVICE) != 0)
		return modhost_fail(&inst->h, -RP_ENOENT, "this node has no device %s", device);
	return simple_place(inst, txn, info);
}

static const struct simple_ops ops = {
	.life = {SIMPLE_LIFE, .schema = &schema, .devices = template_devices,
		 .claim = template_claim},
	.plan_size = sizeof(struct rp_plan),
	.read = template_read,
	.wants = template_wants,
	.shares = template_shares,
	.leaves = template_leaves,
};

/* The one exported symbol, and the ELF note that the host reads before it loads the file. */
LIFE_MODULE("template", "1.0", ops.life,
	    .summary = "reserved CPUs for kube-system, exclusive ones for Guaranteed pods",
	    .licence = "Apache-2.0");
