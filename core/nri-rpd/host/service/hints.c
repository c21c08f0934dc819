/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.hints/1: forwarded to the component that collects hints of plugins. */
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/sized.h"

static int32_t list(void *ctx, rp_pod pod, uint32_t index, struct rp_hint_list *out)
{
	MAIN_ONLY(ctx, RP_HOST_HINTS_1, -RP_EPERM);
	const struct host_env *env = instance_of(ctx)->env;
	struct rp_hint_list full = {0};
	int r = env->hints ? env->hints->list(pod, index, &full, env->arg) : -RP_ENOENT;
	if (!r)
		sized_fill(out, &full, sizeof full);
	return r;
}

static int32_t hint(void *ctx, rp_pod pod, uint32_t of, uint32_t index, struct rp_hint *out)
{
	MAIN_ONLY(ctx, RP_HOST_HINTS_1, -RP_EPERM);
	const struct host_env *env = instance_of(ctx)->env;
	struct rp_hint full = {0};
	int r = env->hints ? env->hints->hint(pod, of, index, &full, env->arg) : -RP_ENOENT;
	if (!r)
		sized_fill(out, &full, sizeof full);
	return r;
}

static int32_t choose(void *ctx, rp_pod pod, uint32_t of, const struct rp_hint *chosen)
{
	MAIN_ONLY(ctx, RP_HOST_HINTS_1, -RP_EPERM);
	const struct host_env *env = instance_of(ctx)->env;
	if (chosen->size < sizeof *chosen)
		return -RP_EINVAL;
	return env->hints ? env->hints->choose(pod, of, chosen->nodes, chosen->preferred, env->arg)
			  : -RP_ENOENT;
}

const struct rp_host_hints host_hints_service = {
	.size = sizeof host_hints_service,
	.list = list,
	.hint = hint,
	.choose = choose,
};
