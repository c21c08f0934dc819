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

SERVICE_CALL(uint32_t, RP_HOST_SPEEDSELECT_1, 0, n_punits, (void *ctx), sst_n_punits(topo_of(ctx)))
SERVICE_CALL(const char *, RP_HOST_SPEEDSELECT_1, "", why, (void *ctx), sst_why(topo_of(ctx)))
SERVICE_CALL(int32_t, RP_HOST_SPEEDSELECT_1, -RP_EPERM, punit,
	     (void *ctx, uint32_t index, struct rp_sst_punit *out),
	     sst_punit(topo_of(ctx), index, out))
SERVICE_CALL(uint32_t, RP_HOST_SPEEDSELECT_1, 0, clos_of, (void *ctx, uint32_t cpu),
	     sst_clos_of(topo_of(ctx), cpu))
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

SERVICE_CHANGE(set_cp, (void *ctx, const struct rp_sst_at *at, uint32_t on, uint32_t priority),
	       sst_set_cp(root, at, on, priority))
SERVICE_CHANGE(set_tf, (void *ctx, const struct rp_sst_at *at, uint32_t on),
	       sst_set_tf(root, at, on))
SERVICE_CHANGE(set_clos,
	       (void *ctx, const struct rp_sst_at *at, uint32_t clos, const struct rp_clos *value),
	       sst_set_clos(root, at, clos, value))
SERVICE_CHANGE(associate, (void *ctx, const struct rp_sst_at *at, uint32_t clos),
	       sst_associate(root, at, clos))

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
