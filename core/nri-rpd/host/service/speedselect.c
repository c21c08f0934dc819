/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.speedselect/1. Functions marked [any] use only the root of an instance, which never
 * changes. */
#include <nri-rp/speedselect.h>

#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/sized.h"
#include "core/lib/topo/sst.h"

static struct topo *topo_of(void *ctx)
{
	return instance_of(ctx)->env->topo;
}

static uint32_t n_punits(void *ctx)
{
	MAIN_ONLY(ctx, RP_HOST_SPEEDSELECT_1, 0);
	return sst_n_punits(topo_of(ctx));
}

static const char *why(void *ctx)
{
	MAIN_ONLY(ctx, RP_HOST_SPEEDSELECT_1, "");
	return sst_why(topo_of(ctx));
}

static int32_t punit(void *ctx, uint32_t index, struct rp_sst_punit *out)
{
	MAIN_ONLY(ctx, RP_HOST_SPEEDSELECT_1, -RP_EPERM);
	return sst_punit(topo_of(ctx), index, out);
}

static uint32_t clos_of(void *ctx, uint32_t cpu)
{
	MAIN_ONLY(ctx, RP_HOST_SPEEDSELECT_1, 0);
	return sst_clos_of(topo_of(ctx), cpu);
}

static int32_t manage(void *ctx, uint32_t on)
{
	MAIN_ONLY(ctx, RP_HOST_SPEEDSELECT_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	if (!on && i->env->sst_manager != i)
		return -RP_EBUSY;
	i->env->sst_manager = on ? i : NULL;
	return 0;
}

static int32_t punit_now(void *ctx, const struct rp_sst_at *at, struct rp_sst_punit *out)
{
	struct rp_sst_punit full;
	int r = sst_punit_now(((struct instance *)ctx)->env->root, at, &full);
	if (!r)
		sized_fill(out, &full, sizeof full);
	return r;
}

static int32_t clos_now(void *ctx, const struct rp_sst_at *at, uint32_t *ret_clos)
{
	return sst_clos_now(((struct instance *)ctx)->env->root, at, ret_clos);
}

/* Returns the file system root through which Speed Select may be changed; NULL in a trial, which
 * changes nothing. */
static const struct fs_root *speedselect_writable(void *ctx)
{
	const struct host_env *env = ((struct instance *)ctx)->env;
	return env->trial ? NULL : env->root;
}

static int32_t set_cp(void *ctx, const struct rp_sst_at *at, uint32_t on, uint32_t priority)
{
	const struct fs_root *root = speedselect_writable(ctx);
	return root ? sst_set_cp(root, at, on, priority) : -RP_ENOTSUP;
}

static int32_t set_tf(void *ctx, const struct rp_sst_at *at, uint32_t on)
{
	const struct fs_root *root = speedselect_writable(ctx);
	return root ? sst_set_tf(root, at, on) : -RP_ENOTSUP;
}

static int32_t set_clos(void *ctx, const struct rp_sst_at *at, uint32_t clos,
			const struct rp_clos *value)
{
	const struct fs_root *root = speedselect_writable(ctx);
	return root ? sst_set_clos(root, at, clos, value) : -RP_ENOTSUP;
}

static int32_t associate(void *ctx, const struct rp_sst_at *at, uint32_t clos)
{
	const struct fs_root *root = speedselect_writable(ctx);
	return root ? sst_associate(root, at, clos) : -RP_ENOTSUP;
}

const struct rp_host_speedselect host_speedselect_service = {
	.size = sizeof host_speedselect_service,
	.n_punits = n_punits,
	.why = why,
	.punit = punit,
	.clos_of = clos_of,
	.manage = manage,
	.punit_now = punit_now,
	.clos_now = clos_now,
	.set_cp = set_cp,
	.set_tf = set_tf,
	.set_clos = set_clos,
	.associate = associate,
};
