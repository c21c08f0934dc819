/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.evict/1: forwarded to the component that performs evictions. */
#include <stdio.h>

#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/str.h"

static int32_t available(void *ctx)
{
	MAIN_ONLY(ctx, RP_HOST_EVICT_1, -RP_EPERM);
	const struct host_env *env = instance_of(ctx)->env;
	return env->evict && env->evict->available(env->arg);
}

static int32_t evict(void *ctx, rp_pod handle, int64_t grace_s, const char *reason)
{
	MAIN_ONLY(ctx, RP_HOST_EVICT_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	struct pod *pod = cache_pod_of(i->env->cache, handle);
	if (!pod)
		return -RP_ESTALE;
	if (i->env->trial)
		return 0;
	if (!i->env->evict)
		return -RP_ENOTSUP;
	return i->env->evict->evict(i, pod, grace_s < 0 ? -1 : grace_s, reason, i->env->arg);
}

static void withdraw(void *ctx, rp_pod pod)
{
	MAIN_ONLY(ctx, RP_HOST_EVICT_1, );
	struct instance *i = instance_of(ctx);
	if (i->env->evict)
		i->env->evict->withdraw(i, pod, i->env->arg);
}

static uint32_t state(void *ctx, rp_pod pod, char *why, uint32_t cap)
{
	MAIN_ONLY(ctx, RP_HOST_EVICT_1, RP_EVICTION_NONE);
	const struct host_env *env = instance_of(ctx)->env;
	const char *text = "";
	uint32_t result = env->evict ? env->evict->state(pod, &text, env->arg) : RP_EVICTION_NONE;
	if (cap)
		(void)snprintf(why, cap, "%.*s", (int)utf8_cut(text, cap - 1), text);
	return result;
}

const struct rp_host_evict host_evict_service = {
	.size = sizeof host_evict_service,
	.available = available,
	.evict = evict,
	.withdraw = withdraw,
	.state = state,
};
