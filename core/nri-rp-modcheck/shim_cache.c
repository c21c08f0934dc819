/* SPDX-License-Identifier: Apache-2.0 */
/* Covers of nri-rp.host.cache/1. */
#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rp-modcheck/shim.h"

static uint32_t info_size(uint32_t minor)
{
	if (minor < 2)
		return offsetof(struct rp_ctr_info, has_cpus);
	return minor < 3 ? offsetof(struct rp_ctr_info, asked_shares) : sizeof(struct rp_ctr_info);
}

static int32_t c_get_ctr(void *ctx, rp_ctr ctr, struct rp_ctr_info *out)
{
	int32_t r = shim_try(ctx, "get_ctr");
	shim_out(ctx, "get_ctr", out, sizeof *out);
	r = shim_result(ctx, r ? r : host_cache_service.get_ctr(ctx, ctr, out));
	if (!r)
		shim_shorten(ctx, out, info_size(shim_of(ctx)->minor));
	return r;
}

static int32_t c_get_pod(void *ctx, rp_pod pod, struct rp_pod_info *out)
{
	int32_t r = shim_try(ctx, "get_pod");
	shim_out(ctx, "get_pod", out, sizeof *out);
	r = shim_result(ctx, r ? r : host_cache_service.get_pod(ctx, pod, out));
	if (!r && shim_of(ctx)->minor < 3)
		shim_shorten(ctx, out, offsetof(struct rp_pod_info, flags));
	return r;
}

static const char *c_annotation(void *ctx, rp_ctr ctr, const char *key, uint32_t *ret_scope)
{
	shim_asked(shim_enter(ctx, "annotation"), key);
	return host_cache_service.annotation(ctx, ctr, key, ret_scope);
}

static const char *c_pod_annotation(void *ctx, rp_pod pod, const char *key)
{
	shim_asked(shim_enter(ctx, "pod_annotation"), key);
	return host_cache_service.pod_annotation(ctx, pod, key);
}

static int64_t c_memory(void *ctx, rp_ctr ctr)
{
	(void)shim_enter(ctx, "memory");
	return host_cache_service.memory(ctx, ctr);
}

static void c_pod_annotations(void *ctx, rp_pod pod, const char *const *keys, uint32_t n,
			      const char **ret)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = c_pod_annotation(ctx, pod, keys[i]);
}

COVER_OUT(cache, mount, (void *ctx, rp_ctr ctr, uint32_t index, struct rp_mount_info *out), ctx,
	  ctr, index, out)
COVER_OUT(cache, device, (void *ctx, rp_ctr ctr, uint32_t index, struct rp_device_info *out), ctx,
	  ctr, index, out)
COVER_OUT(cache, pod_resource,
	  (void *ctx, rp_ctr ctr, uint32_t index, struct rp_pod_resource_info *out), ctx, ctr,
	  index, out)
COVER_OUT(cache, pod_ctr, (void *ctx, rp_pod pod, uint32_t index, struct rp_pod_ctr_info *out), ctx,
	  pod, index, out)
COVER_TRY(cache, set_cpus, (void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids ids), ctx, txn, ctr,
	  ids)
COVER_TRY(cache, set_mems, (void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids ids), ctx, txn, ctr,
	  ids)
COVER_TRY(cache, set_exclusive, (void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids ids), ctx, txn,
	  ctr, ids)

static int32_t c_set_int(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, int64_t value)
{
	int32_t r = shim_try(ctx, "set_int");
	if (value == SHIM_POISONED)
		shim_broken(shim_of(ctx),
			    "set_int() received a value that a host of ABI %u.%u does not set: "
			    "check RP_HAS() of its struct first",
			    RP_ABI_MAJOR, shim_of(ctx)->minor);
	return shim_result(ctx, r ? r : host_cache_service.set_int(ctx, txn, ctr, field, value));
}

COVER_TRY(cache, set_text, (void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *value),
	  ctx, txn, ctr, field, value)
COVER_TRY(cache, set_pair,
	  (void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *key, const char *value),
	  ctx, txn, ctr, field, key, value)
COVER_TRY(cache, set_private, (void *ctx, rp_txn txn, rp_ctr ctr, const void *data, uint32_t size),
	  ctx, txn, ctr, data, size)
COVER_TRY(cache, set_degraded, (void *ctx, rp_txn txn, rp_ctr ctr, const char *reason), ctx, txn,
	  ctr, reason)
COVER_TRY(cache, set_data, (void *ctx, rp_txn txn, rp_ctr ctr, const char *key, const char *value),
	  ctx, txn, ctr, key, value)
COVER_TRY(cache, set_args, (void *ctx, rp_txn txn, rp_ctr ctr, const char *const *args, uint32_t n),
	  ctx, txn, ctr, args, n)
COVER_TRY(cache, add_mount, (void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_mount *mount), ctx,
	  txn, ctr, mount)
COVER_TRY(cache, add_device, (void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_device *device),
	  ctx, txn, ctr, device)
COVER_TRY(cache, add_cdi, (void *ctx, rp_txn txn, rp_ctr ctr, const char *name), ctx, txn, ctr,
	  name)
COVER_TRY(cache, may_wait, (void *ctx, rp_txn txn, uint32_t quiet_ms, uint32_t longest_ms), ctx,
	  txn, quiet_ms, longest_ms)
COVER_TRY(cache, set_group, (void *ctx, rp_txn txn, rp_ctr ctr, uint32_t group), ctx, txn, ctr,
	  group)
COVER_TRY(cache, leave_unpinned, (void *ctx, rp_txn txn, rp_ctr ctr), ctx, txn, ctr)
COVER_TRY(cache, set_pod_private,
	  (void *ctx, rp_txn txn, rp_pod pod, const void *data, uint32_t size), ctx, txn, pod, data,
	  size)

const struct rp_host_cache shim_cache = {
	.size = sizeof shim_cache,
	.get_ctr = c_get_ctr,
	.get_pod = c_get_pod,
	.annotation = c_annotation,
	.pod_annotation = c_pod_annotation,
	.pod_annotations = c_pod_annotations,
	.memory = c_memory,
	.mount = cover_mount,
	.device = cover_device,
	.set_cpus = cover_set_cpus,
	.set_mems = cover_set_mems,
	.set_exclusive = cover_set_exclusive,
	.set_int = c_set_int,
	.set_text = cover_set_text,
	.set_pair = cover_set_pair,
	.set_private = cover_set_private,
	.set_degraded = cover_set_degraded,
	.set_data = cover_set_data,
	.pod_resource = cover_pod_resource,
	.set_args = cover_set_args,
	.add_mount = cover_add_mount,
	.add_device = cover_add_device,
	.add_cdi = cover_add_cdi,
	.set_group = cover_set_group,
	.leave_unpinned = cover_leave_unpinned,
	.may_wait = cover_may_wait,
	.pod_ctr = cover_pod_ctr,
	.set_pod_private = cover_set_pod_private,
};
