/* SPDX-License-Identifier: Apache-2.0 */
/* Built with headers whose service of devices ended before the release of claims. */
#include <stddef.h>

#include "common.h"

static int32_t report(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	sink->device(sink->ctx, "cpus");
	sink->capacity(sink->ctx, "cpu", 1);
	return 0;
}

static int32_t claim(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *device)
{
	return test_nothing(inst, txn, ctr);
}

static const struct rp_devices devices = {
	.size = offsetof(struct rp_devices, release), .devices = report, .allocate = claim};

static const void *service(struct rp_instance *inst, const char *id)
{
	return test_same(id, RP_DEVICES_1) ? &devices : test_service(inst, id);
}

RP_MODULE_DEFINE("devices-old", "1.0", RP_KIND_POLICY, .create = test_create,
		 .destroy = test_destroy, .service = service);
