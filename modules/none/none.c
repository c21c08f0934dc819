/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy none: it decides nothing, and containers keep their CPUs. Controllers still work. The
 * daemon falls back to this policy when another one cannot be used, so it must not fail.
 */
#include <stdlib.h>
#include <string.h>

#include <nri-rp/policy.h>
#include <nri-rp/lib/section.h>

struct rp_plan {
	int nothing;
};

struct rp_instance {
	struct rp_plan plan;
};

/* Keys of other policies, so that a switch to none requires no other change of the section. */
static const struct rp_key keys[] = {
	SECTION_MAP("availableResources", "Accepted; no effect."),
	SECTION_ANY("availableResources.cpu", "Accepted; no effect."),
	SECTION_MAP("reservedResources", "Accepted; no effect."),
	SECTION_ANY("reservedResources.cpu", "Accepted; no effect."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

static int32_t none_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	*ret_plan = &inst->plan;
	return 0;
}

static void none_take(struct rp_instance *inst, struct rp_plan *plan)
{
}

static int32_t none_sync(struct rp_instance *inst, rp_txn txn)
{
	return 0;
}

static int32_t none_container(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return 0;
}

static int32_t none_rolled_back(struct rp_instance *inst)
{
	return 0;
}

static const struct rp_policy policy = {
	.size = sizeof(struct rp_policy),
	.prepare = none_prepare,
	.commit = none_take,
	.abort = none_take,
	.sync = none_sync,
	.allocate = none_container,
	.update = none_container,
	.release = none_container,
	.rolled_back = none_rolled_back,
};

static int32_t none_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	*ret_inst = inst;
	return 0;
}

static void none_destroy(struct rp_instance *inst)
{
	free(inst);
}

static const void *none_service(struct rp_instance *inst, const char *id)
{
	if (strcmp(id, RP_POLICY_1) == 0)
		return &policy;
	return strcmp(id, RP_SCHEMA_1) == 0 ? &schema : NULL;
}

RP_MODULE_DEFINE("none", "1.0", RP_KIND_POLICY, .summary = "moves no container",
		 .licence = "Apache-2.0", .create = none_create, .destroy = none_destroy,
		 .service = none_service);
