/* SPDX-License-Identifier: Apache-2.0 */
/* Covers of nri-rp.host.cache/1. */
#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rp-modcheck/shim.h"

static uint32_t c_list(void *ctx, uint32_t order, rp_ctr *ret, uint32_t cap)
{
	(void)shim_enter(ctx, "list");
	return host_cache_service.list(ctx, order, ret, cap);
}

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

static const char *c_pod_label(void *ctx, rp_pod pod, const char *key)
{
	(void)shim_enter(ctx, "pod_label");
	return host_cache_service.pod_label(ctx, pod, key);
}

static const char *c_ctr_label(void *ctx, rp_ctr ctr, const char *key)
{
	(void)shim_enter(ctx, "ctr_label");
	return host_cache_service.ctr_label(ctx, ctr, key);
}

static const char *c_ctr_annotation(void *ctx, rp_ctr ctr, const char *key)
{
	(void)shim_enter(ctx, "ctr_annotation");
	return host_cache_service.ctr_annotation(ctx, ctr, key);
}

static const char *c_env(void *ctx, rp_ctr ctr, const char *name)
{
	(void)shim_enter(ctx, "env");
	return host_cache_service.env(ctx, ctr, name);
}

static int32_t c_mount(void *ctx, rp_ctr ctr, uint32_t index, struct rp_mount_info *out)
{
	(void)shim_enter(ctx, "mount");
	shim_out(ctx, "mount", out, sizeof *out);
	return host_cache_service.mount(ctx, ctr, index, out);
}

static int32_t c_device(void *ctx, rp_ctr ctr, uint32_t index, struct rp_device_info *out)
{
	(void)shim_enter(ctx, "device");
	shim_out(ctx, "device", out, sizeof *out);
	return host_cache_service.device(ctx, ctr, index, out);
}

static int32_t c_pod_resource(void *ctx, rp_ctr ctr, uint32_t index,
			      struct rp_pod_resource_info *out)
{
	(void)shim_enter(ctx, "pod_resource");
	shim_out(ctx, "pod_resource", out, sizeof *out);
	return host_cache_service.pod_resource(ctx, ctr, index, out);
}

static int32_t c_pod_ctr(void *ctx, rp_pod pod, uint32_t index, struct rp_pod_ctr_info *out)
{
	(void)shim_enter(ctx, "pod_ctr");
	shim_out(ctx, "pod_ctr", out, sizeof *out);
	return host_cache_service.pod_ctr(ctx, pod, index, out);
}

static int32_t c_get_int(void *ctx, rp_ctr ctr, uint32_t field, int64_t *ret)
{
	(void)shim_enter(ctx, "get_int");
	return host_cache_service.get_int(ctx, ctr, field, ret);
}

static const char *c_get_text(void *ctx, rp_ctr ctr, uint32_t field)
{
	(void)shim_enter(ctx, "get_text");
	return host_cache_service.get_text(ctx, ctr, field);
}

static int32_t c_get_private(void *ctx, rp_ctr ctr, const void **ret, uint32_t *ret_size)
{
	(void)shim_enter(ctx, "get_private");
	return host_cache_service.get_private(ctx, ctr, ret, ret_size);
}

static int32_t c_extended(void *ctx, rp_ctr ctr, const char *resource, int64_t *ret_request,
			  int64_t *ret_limit)
{
	(void)shim_enter(ctx, "extended");
	return host_cache_service.extended(ctx, ctr, resource, ret_request, ret_limit);
}

static int32_t c_set_cpus(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids ids)
{
	int32_t r = shim_try(ctx, "set_cpus");
	return shim_result(ctx, r ? r : host_cache_service.set_cpus(ctx, txn, ctr, ids));
}

static int32_t c_set_mems(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids ids)
{
	int32_t r = shim_try(ctx, "set_mems");
	return shim_result(ctx, r ? r : host_cache_service.set_mems(ctx, txn, ctr, ids));
}

static int32_t c_set_exclusive(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids ids)
{
	int32_t r = shim_try(ctx, "set_exclusive");
	return shim_result(ctx, r ? r : host_cache_service.set_exclusive(ctx, txn, ctr, ids));
}

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

static int32_t c_set_text(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *value)
{
	int32_t r = shim_try(ctx, "set_text");
	return shim_result(ctx, r ? r : host_cache_service.set_text(ctx, txn, ctr, field, value));
}

static int32_t c_set_pair(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *key,
			  const char *value)
{
	int32_t r = shim_try(ctx, "set_pair");
	return shim_result(ctx,
			   r ? r : host_cache_service.set_pair(ctx, txn, ctr, field, key, value));
}

static int32_t c_set_private(void *ctx, rp_txn txn, rp_ctr ctr, const void *data, uint32_t size)
{
	int32_t r = shim_try(ctx, "set_private");
	return shim_result(ctx, r ? r : host_cache_service.set_private(ctx, txn, ctr, data, size));
}

static int32_t c_set_degraded(void *ctx, rp_txn txn, rp_ctr ctr, const char *reason)
{
	int32_t r = shim_try(ctx, "set_degraded");
	return shim_result(ctx, r ? r : host_cache_service.set_degraded(ctx, txn, ctr, reason));
}

static int32_t c_set_data(void *ctx, rp_txn txn, rp_ctr ctr, const char *key, const char *value)
{
	int32_t r = shim_try(ctx, "set_data");
	return shim_result(ctx, r ? r : host_cache_service.set_data(ctx, txn, ctr, key, value));
}

static const char *c_arg(void *ctx, rp_ctr ctr, uint32_t index)
{
	(void)shim_enter(ctx, "arg");
	return host_cache_service.arg(ctx, ctr, index);
}

static const char *c_cdi(void *ctx, rp_ctr ctr, uint32_t index)
{
	(void)shim_enter(ctx, "cdi");
	return host_cache_service.cdi(ctx, ctr, index);
}

static int32_t c_set_args(void *ctx, rp_txn txn, rp_ctr ctr, const char *const *args, uint32_t n)
{
	int32_t r = shim_try(ctx, "set_args");
	return shim_result(ctx, r ? r : host_cache_service.set_args(ctx, txn, ctr, args, n));
}

static int32_t c_add_mount(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_mount *mount)
{
	int32_t r = shim_try(ctx, "add_mount");
	return shim_result(ctx, r ? r : host_cache_service.add_mount(ctx, txn, ctr, mount));
}

static int32_t c_add_device(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_device *device)
{
	int32_t r = shim_try(ctx, "add_device");
	return shim_result(ctx, r ? r : host_cache_service.add_device(ctx, txn, ctr, device));
}

static int32_t c_add_cdi(void *ctx, rp_txn txn, rp_ctr ctr, const char *name)
{
	int32_t r = shim_try(ctx, "add_cdi");
	return shim_result(ctx, r ? r : host_cache_service.add_cdi(ctx, txn, ctr, name));
}

static int32_t c_may_wait(void *ctx, rp_txn txn, uint32_t quiet_ms, uint32_t longest_ms)
{
	int32_t r = shim_try(ctx, "may_wait");
	return shim_result(ctx,
			   r ? r : host_cache_service.may_wait(ctx, txn, quiet_ms, longest_ms));
}

static int32_t c_set_group(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t group)
{
	int32_t r = shim_try(ctx, "set_group");
	return shim_result(ctx, r ? r : host_cache_service.set_group(ctx, txn, ctr, group));
}

static uint32_t c_list_pods(void *ctx, rp_pod *ret, uint32_t cap)
{
	(void)shim_enter(ctx, "list_pods");
	return host_cache_service.list_pods(ctx, ret, cap);
}

static int32_t c_get_pod_private(void *ctx, rp_pod pod, const void **ret, uint32_t *ret_size)
{
	(void)shim_enter(ctx, "get_pod_private");
	return host_cache_service.get_pod_private(ctx, pod, ret, ret_size);
}

static int32_t c_set_pod_private(void *ctx, rp_txn txn, rp_pod pod, const void *data, uint32_t size)
{
	int32_t r = shim_try(ctx, "set_pod_private");
	return shim_result(ctx,
			   r ? r : host_cache_service.set_pod_private(ctx, txn, pod, data, size));
}

const struct rp_host_cache shim_cache = {
	.size = sizeof shim_cache,
	.list = c_list,
	.get_ctr = c_get_ctr,
	.get_pod = c_get_pod,
	.annotation = c_annotation,
	.pod_annotation = c_pod_annotation,
	.pod_label = c_pod_label,
	.ctr_label = c_ctr_label,
	.ctr_annotation = c_ctr_annotation,
	.env = c_env,
	.mount = c_mount,
	.device = c_device,
	.get_int = c_get_int,
	.get_text = c_get_text,
	.get_private = c_get_private,
	.extended = c_extended,
	.set_cpus = c_set_cpus,
	.set_mems = c_set_mems,
	.set_exclusive = c_set_exclusive,
	.set_int = c_set_int,
	.set_text = c_set_text,
	.set_pair = c_set_pair,
	.set_private = c_set_private,
	.set_degraded = c_set_degraded,
	.set_data = c_set_data,
	.pod_resource = c_pod_resource,
	.arg = c_arg,
	.set_args = c_set_args,
	.add_mount = c_add_mount,
	.add_device = c_add_device,
	.add_cdi = c_add_cdi,
	.cdi = c_cdi,
	.set_group = c_set_group,
	.may_wait = c_may_wait,
	.pod_ctr = c_pod_ctr,
	.list_pods = c_list_pods,
	.get_pod_private = c_get_pod_private,
	.set_pod_private = c_set_pod_private,
};
