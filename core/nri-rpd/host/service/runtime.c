/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.runtime/1: the abilities of the runtime. */
#include "core/nri-rpd/host/service/services.h"

static const struct runtime_facts *facts_of(void *ctx)
{
	static const struct runtime_facts none = {.flags = RP_RUNTIME_CAN_REFUSE |
							   RP_RUNTIME_CAN_INJECT};
	const struct host_env *env = instance_of(ctx)->env;
	return env->runtime && *env->runtime->name ? env->runtime : &none;
}

SERVICE_CALL(uint32_t, RP_HOST_RUNTIME_1, 0, flags, (void *ctx), facts_of(ctx)->flags)
SERVICE_CALL(const char *, RP_HOST_RUNTIME_1, "", name, (void *ctx), facts_of(ctx)->name)
SERVICE_CALL(const char *, RP_HOST_RUNTIME_1, "", version, (void *ctx), facts_of(ctx)->version)
const struct rp_host_runtime host_runtime_service = {
	.size = sizeof host_runtime_service,
	.flags = flags,
	.name = name,
	.version = version,
};
