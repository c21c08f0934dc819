/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete policy, to be copied. Rename it, change what place() decides, and you have yours.
 *
 * It keeps some CPUs for the containers of kube-system and lets all others run on the rest:
 *
 *	template:
 *	  availableResources: {cpu: "cpuset:2-15"}	# default: all online CPUs
 *	  reservedResources: {cpu: 2}			# for kube-system; required
 *	  pinCPU: true					# default; false: leave containers alone
 *
 * What to know before you start:
 *
 *  - The host calls every function on one thread, one at a time. Decide quickly and return: no files, no sleeping, no threads.
 *  - Containers are handles. cache->get_ctr() tells about one; the set_…() functions say what you want for one.
 *  - The set_…() functions only *stage*. When your function returns 0 the host checks everything and makes it true; when it
 *    returns an error, nothing has happened. You never have to clean up after yourself.
 *  - Remember as little as you can. What the cache knows survives a restart of the daemon; what your variables know does not. This policy
 *    remembers nothing but its configuration.
 */
#include <stdlib.h>
#include <string.h>

#include <nri-rp/policy.h>

/* Optional helpers that are linked into the module: messages with formats, and the notation of CPU amounts. */
#include "modules/lib/amount.h"
#include "modules/lib/host.h"

/* ---- what may be configured -------------------------------------------------------------------------------------- */

/* The host checks rp.conf against this table before you see it, and makes its help and manual from it. */
static const struct rp_key keys[] = {
	{.path = "availableResources", .type = RP_T_MAP, .doc = "What containers may use."},
	{.path = "availableResources.cpu",
	 .type = RP_T_AMOUNT,
	 .doc = "CPUs that containers may use, as a set; by default all online ones."},
	{.path = "reservedResources",
	 .type = RP_T_MAP,
	 .flags = RP_KEY_REQUIRED,
	 .doc = "What the containers of kube-system have for themselves."},
	{.path = "reservedResources.cpu",
	 .type = RP_T_AMOUNT,
	 .flags = RP_KEY_REQUIRED,
	 .doc = "Their CPUs: a set, or a quantity of the lowest available ones."},
	{.path = "pinCPU",
	 .type = RP_T_BOOL,
	 .fallback = "true",
	 .doc = "Pin containers to CPUs at all."},
};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
	.cr_kind = "TemplatePolicy", /* custom resources of this kind are read as this section */
};

/* A configuration that has been checked, with all that follows from it. The name is given, the contents are yours. */
struct rp_plan {
	int pin_cpu;
	struct amount available, reserved_cpu; /* as configured … */
	struct rp_idset reserved, shared; /* … and on the machine as it is */
};

/* Your module's memory. There can be several instances at a time: a trial of a new configuration has its own. */
struct rp_instance {
	struct modhost h; /* the host's services */
	struct rp_plan *plan; /* the configuration in force; NULL before the first one */
};

/* ---- taking a configuration into use ------------------------------------------------------------------------------- */

/* Splits the CPUs that are online. CPUs come and go: this is done anew whenever they do. */
static void split_cpus(const struct modhost *h, struct rp_plan *plan)
{
	struct rp_idset online, usable;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	amount_pick(&plan->available, rp_ids_of(&online), &usable);
	amount_pick(&plan->reserved_cpu, rp_ids_of(&usable), &plan->reserved);
	while (plan->reserved_cpu.kind == AMOUNT_QUANTITY &&
	       rp_ids_count(rp_ids_of(&plan->reserved)) > amount_count(&plan->reserved_cpu))
		rp_idset_del(&plan->reserved, rp_ids_last(rp_ids_of(&plan->reserved)));
	rp_idset_andnot(&plan->shared, rp_ids_of(&usable), rp_ids_of(&plan->reserved));
}

/* Errors are one sentence for people, and name the place in rp.conf when a key is to blame. */
static int32_t read_cpus(const struct modhost *h, rp_cfg cfg, struct rp_plan *plan)
{
	rp_cfg reserved_node = h->config->get(h->ctx, cfg, "reservedResources.cpu");
	int32_t r = amount_read(h, h->config->get(h->ctx, cfg, "availableResources.cpu"),
				AMOUNT_TAKES_CPUS | AMOUNT_TAKES_EXCEPT, &plan->available);
	if (!r)
		r = amount_read(h, reserved_node, AMOUNT_TAKES_CPUS | AMOUNT_TAKES_QUANTITY,
				&plan->reserved_cpu);
	if (r)
		return r;
	split_cpus(h, plan);
	if (rp_ids_count(rp_ids_of(&plan->reserved)) < amount_count(&plan->reserved_cpu) ||
	    rp_ids_empty(rp_ids_of(&plan->reserved)))
		return modhost_fail_at(h, reserved_node, -RP_EINVAL,
				       "not enough available CPUs to reserve");
	if (rp_ids_empty(rp_ids_of(&plan->shared)))
		return modhost_fail_at(h, reserved_node, -RP_EINVAL,
				       "nothing is left for other containers");
	return 0;
}

/* Checks a configuration. Must not change anything that is in force: it may yet be dropped by abort(). */
static int32_t template_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	const struct modhost *h = &inst->h;
	struct rp_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return modhost_fail(h, -RP_ENOMEM, "out of memory");
	rp_cfg pin_cpu = h->config->get(h->ctx, cfg, "pinCPU");
	plan->pin_cpu = h->config->value(h->ctx, pin_cpu, RP_T_BOOL, 1) != 0;
	int32_t r = read_cpus(h, cfg, plan);
	if (r) {
		free(plan);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

/* Puts a prepared one in force. sync() comes next, so containers need not be looked at here. */
static void template_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	free(inst->plan);
	inst->plan = plan;
}

static void template_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	free(plan);
}

/* ---- placing containers -------------------------------------------------------------------------------------------- */

/* The policy proper. */
static int32_t place(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	int32_t r = h->cache->get_ctr(h->ctx, ctr, &info);
	if (r)
		return r; /* codes of host functions can be passed on as they are */
	if (!inst->plan->pin_cpu || (info.flags & RP_CTR_PRESERVE_CPU))
		return 0; /* to stage nothing is fine */
	int system = strcmp(info.pod_namespace, "kube-system") == 0;
	struct rp_ids cpus = rp_ids_of(system ? &inst->plan->reserved : &inst->plan->shared);
	if (rp_ids_empty(cpus))
		return modhost_fail(h, -RP_ENOSPC, "all CPUs for namespace %s are offline",
				    info.pod_namespace);
	/* `nri-rpctl explain` shows this. */
	modhost_note(h, ctr, "namespace %s: %s CPUs", info.pod_namespace,
		     system ? "reserved" : "shared");
	return h->cache->set_cpus(h->ctx, txn, ctr, cpus);
}

/* After a start, a reload or a reconnect: makes sure that everybody is where he should be. What is already so costs nothing. */
static int32_t template_sync(struct rp_instance *inst, rp_txn txn)
{
	const struct modhost *h = &inst->h;
	uint32_t n = h->cache->list(h->ctx, RP_ORDER_SYNC, NULL, 0);
	rp_ctr *ctrs = calloc(n ? n : 1, sizeof *ctrs);
	if (!ctrs)
		return modhost_fail(h, -RP_ENOMEM, "out of memory");
	int32_t r = 0;
	(void)h->cache->list(h->ctx, RP_ORDER_SYNC, ctrs, n);
	for (uint32_t i = 0; i < n && !r; i++)
		r = place(inst, txn, ctrs[i]);
	free(ctrs);
	return r;
}

/* The machine has changed: everybody is looked at anew. An error here leaves all as it was. */
static int32_t template_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (ev->type != RP_EVENT_TOPOLOGY || !inst->plan)
		return 0;
	split_cpus(&inst->h, inst->plan);
	return template_sync(inst, txn);
}

/* Nobody gets anything back when a container goes, since nothing was its own. A policy with exclusive CPUs would free them here. */
static int32_t template_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	(void)inst;
	(void)txn;
	(void)ctr;
	return 0;
}

/* An error or a broken invariant has dropped what the last call staged. We have no tables that could be wrong now. */
static int32_t template_rolled_back(struct rp_instance *inst)
{
	(void)inst;
	return 0;
}

static const struct rp_policy policy = {
	.size = sizeof(struct rp_policy),
	.prepare = template_prepare,
	.commit = template_commit,
	.abort = template_abort,
	.sync = template_sync,
	.allocate = place,
	.update = place, /* an in-place resize changes nothing for us, so the answer is the same */
	.release = template_release,
	.event = template_event,
	.rolled_back = template_rolled_back,
};

/* ---- the module ------------------------------------------------------------------------------------------------------ */

static int32_t template_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = modhost_init(&inst->h, host, MODHOST_POLICY);
	if (r) {
		free(inst);
		return r;
	}
	*ret_inst = inst;
	return 0;
}

static void template_destroy(struct rp_instance *inst)
{
	free(inst->plan);
	free(inst);
}

/* How the host finds out what the module can do. The schema is asked for before there is an instance. */
static const void *template_service(struct rp_instance *inst, const char *id)
{
	(void)inst;
	if (strcmp(id, RP_POLICY_1) == 0)
		return &policy;
	return strcmp(id, RP_SCHEMA_1) == 0 ? &schema : NULL;
}

/* The one exported symbol, and the note that the host reads before it loads the file. The name is that of the file. */
RP_MODULE_DEFINE("template", "1.0", RP_KIND_POLICY,
		 .summary = "reserved CPUs for kube-system, the rest for everybody else",
		 .licence = "Apache-2.0", .create = template_create, .destroy = template_destroy,
		 .service = template_service);
