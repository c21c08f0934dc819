/* SPDX-License-Identifier: Apache-2.0 */
/* Places containers, but never returns from the call for its zones. */
#include "common.h"

static int32_t zones_for_ever(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	static volatile int for_ever = 1;
	while (for_ever)
		;
	return 0;
}

static const struct rp_zones zones = {.size = sizeof zones, .zones = zones_for_ever};

static const void *service(struct rp_instance *inst, const char *id)
{
	return inst && test_same(id, RP_ZONES_1) ? &zones : test_service(inst, id);
}

RP_MODULE_DEFINE("hang-zones", "1.0", RP_KIND_POLICY, .create = test_create,
		 .destroy = test_destroy, .service = service);
