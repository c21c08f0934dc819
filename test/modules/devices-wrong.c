/* SPDX-License-Identifier: Apache-2.0 */
/* Reports devices with wrong limits. After the first claim it cannot report its devices. */
#include "common.h"

static int32_t result;

static int32_t report(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	sink->limits(sink->ctx, 1, 1);
	sink->device(sink->ctx, "cpus");
	sink->limits(sink->ctx, 1, 1);
	sink->capacity(sink->ctx, "cpu", 4);
	sink->limits(sink->ctx, -1, 1);
	sink->limits(sink->ctx, 3, 2);
	return result;
}

static int32_t claim(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *device)
{
	(void)inst, (void)txn, (void)ctr, (void)device;
	result = -RP_ENOTSUP;
	return -RP_ENOSPC;
}

static const struct rp_devices devices = {
	.size = sizeof devices, .devices = report, .allocate = claim, .release = test_nothing};

static const void *service(struct rp_instance *inst, const char *id)
{
	return test_same(id, RP_DEVICES_1) ? &devices : test_service(inst, id);
}

RP_MODULE_DEFINE("devices-wrong", "1.0", RP_KIND_POLICY, .create = test_create,
		 .destroy = test_destroy, .service = service);
