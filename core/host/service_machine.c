/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.topology/1 and nri-rp.host.config/1: thin covers over the snapshot and the configuration tree. */
#include <string.h>

#include "core/host/services.h"

static struct topo *topo_of(void *ctx)
{
	return ((struct instance *)ctx)->env->topo;
}

static uint64_t t_generation(void *ctx)
{
	return topo_generation(topo_of(ctx));
}

static int32_t t_set(void *ctx, uint32_t which, struct rp_ids *ret)
{
	return topo_set(topo_of(ctx), which, ret);
}

static int32_t t_cpu(void *ctx, uint32_t cpu, struct rp_cpu_info *out)
{
	return topo_cpu(topo_of(ctx), cpu, out);
}

static uint32_t t_n_units(void *ctx, uint32_t level)
{
	return topo_n_units(topo_of(ctx), level);
}

static int32_t t_unit(void *ctx, uint32_t level, uint32_t index, struct rp_unit_info *out)
{
	return topo_unit(topo_of(ctx), level, index, out);
}

static int32_t t_node(void *ctx, uint32_t node, struct rp_node_info *out)
{
	return topo_node(topo_of(ctx), node, out);
}

static uint32_t t_distance(void *ctx, uint32_t from, uint32_t to)
{
	return topo_distance(topo_of(ctx), from, to);
}

static uint32_t t_n_caches(void *ctx)
{
	return topo_n_caches(topo_of(ctx));
}

static int32_t t_cache(void *ctx, uint32_t index, struct rp_cache_info *out)
{
	return topo_cache(topo_of(ctx), index, out);
}

static int32_t t_device(void *ctx, const char *path, struct rp_idset *ret_cpus, struct rp_idset *ret_nodes)
{
	return topo_device_near(topo_of(ctx), path, ret_cpus, ret_nodes);
}

static uint64_t t_memory(void *ctx)
{
	return topo_memory(topo_of(ctx));
}

const struct rp_host_topology host_topology_service = {
	.size = sizeof host_topology_service,
	.generation = t_generation,
	.set = t_set,
	.cpu = t_cpu,
	.n_units = t_n_units,
	.unit = t_unit,
	.node = t_node,
	.distance = t_distance,
	.n_caches = t_n_caches,
	.cache = t_cache,
	.device = t_device,
	.memory = t_memory,
};

static uint32_t c_kind(void *ctx, rp_cfg node)
{
	(void)ctx;
	return conf_kind(node);
}

static rp_cfg c_get(void *ctx, rp_cfg node, const char *path)
{
	(void)ctx;
	return conf_get(node, path);
}

static uint32_t c_count(void *ctx, rp_cfg node)
{
	(void)ctx;
	return conf_count(node);
}

static rp_cfg c_item(void *ctx, rp_cfg node, uint32_t i)
{
	(void)ctx;
	return conf_item(node, i);
}

static const char *c_key(void *ctx, rp_cfg node, uint32_t i)
{
	(void)ctx;
	return conf_key(node, i);
}

static const char *c_text(void *ctx, rp_cfg node, const char *fallback)
{
	(void)ctx;
	return conf_text(node, fallback);
}

static int64_t c_value(void *ctx, rp_cfg node, uint32_t type, int64_t fallback)
{
	(void)ctx;
	return conf_value(node, type, fallback);
}

static double c_number(void *ctx, rp_cfg node, double fallback)
{
	(void)ctx;
	return conf_number(node, fallback);
}

static int32_t c_fail_at(void *ctx, rp_cfg node, int32_t code, const char *text)
{
	struct instance *i = ctx;
	char place[CONF_PLACE_MAX];
	if (!node)
		return err_set(&i->failed, code, "%s: %s", i->module->name, text);
	return err_set(&i->failed, code, "%s: %s", conf_place(node, place, sizeof place), text);
}

static const char *c_where(void *ctx, rp_cfg node)
{
	struct instance *i = ctx;
	return conf_where(node, i->where, sizeof i->where);
}

const struct rp_host_config host_config_service = {
	.size = sizeof host_config_service,
	.kind = c_kind,
	.get = c_get,
	.count = c_count,
	.item = c_item,
	.key = c_key,
	.text = c_text,
	.value = c_value,
	.number = c_number,
	.fail_at = c_fail_at,
	.where = c_where,
};
