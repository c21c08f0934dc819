/* SPDX-License-Identifier: Apache-2.0 */
/* Speed Select by TPMI: each punit of a package is a separate instance. */
#include "core/lib/topo/sst_impl.h"

/* Members of a command that address the punit. */
#define PUNIT(at) .package = (uint8_t)(at)->package, .punit = (uint8_t)(at)->punit

static void locate(uint32_t physical, struct sst_place *at)
{
	at->core = ISST_TPMI_CORE(physical);
	at->punit = ISST_TPMI_PUNIT(physical);
}

static int check(const struct sst_device *d, const struct sst_place *at)
{
	struct isst_instances in = {.package = (uint8_t)at->package};
	int r = sst_command(d, ISST_INSTANCES, &in);
	if (r)
		return r;
	return at->punit < 16 && (in.valid >> at->punit & 1) ? 0 : -ENXIO;
}

static int sst_tpmi_levels(const struct sst_device *d, const struct sst_place *at,
			   struct isst_levels *ret)
{
	*ret = (struct isst_levels){PUNIT(at)};
	return sst_command(d, ISST_LEVELS, ret);
}

static int state(const struct sst_device *d, const struct sst_place *at, struct sst_state *ret)
{
	struct isst_levels l;
	struct isst_core_power cp = {PUNIT(at)};
	int r = sst_tpmi_levels(d, at, &l);
	if (!r)
		r = sst_command(d, ISST_CORE_POWER, &cp);
	if (r)
		return r;
	*ret = (struct sst_state){
		.supported = (cp.supported ? RP_SST_CP : 0u) | (l.tf_supported ? RP_SST_TF : 0u) |
			     (l.bf_supported ? RP_SST_BF : 0u),
		.enabled = (cp.enable ? RP_SST_CP : 0u) |
			   (l.features & FEATURE_TF ? RP_SST_TF : 0u) |
			   (l.features & FEATURE_BF ? RP_SST_BF : 0u),
		.priority = cp.priority ? RP_SST_ORDERED : RP_SST_PROPORTIONAL,
		.level = l.level,
	};
	return 0;
}

static int buckets(const struct sst_device *d, const struct sst_place *at, uint32_t level,
		   uint32_t cores[RP_SST_BUCKETS])
{
	struct isst_tf_info info = {PUNIT(at), .level = (uint16_t)level};
	int r = sst_command(d, ISST_TF_INFO, &info);
	for (uint32_t i = 0; i < RP_SST_BUCKETS; i++)
		cores[i] = i < info.n_buckets ? info.cores[i] : 0;
	return r;
}

static int bf_cores(const struct sst_device *d, const struct sst_place *at, uint32_t level,
		    uint64_t *ret_mask)
{
	struct isst_cpu_mask m = {PUNIT(at), .level = (uint8_t)level, .by_core = 1};
	int r = sst_command(d, ISST_BF_MASK, &m);
	*ret_mask = m.mask;
	return r;
}

static int get_clos(const struct sst_device *d, const struct sst_place *at, uint32_t clos,
		    struct rp_clos *ret)
{
	struct isst_clos_param p = {PUNIT(at), .clos = (uint8_t)clos};
	int r = sst_command(d, ISST_CLOS_PARAM, &p);
	*ret = (struct rp_clos){.min_mhz = p.min_mhz, .max_mhz = p.max_mhz, .weight = p.weight};
	return r;
}

static int set_clos(const struct sst_device *d, const struct sst_place *at, uint32_t clos,
		    const struct rp_clos *value)
{
	struct isst_clos_param p = {
		.set = 1,
		PUNIT(at),
		.clos = (uint8_t)clos,
		.min_mhz = (uint16_t)value->min_mhz,
		.max_mhz = (uint16_t)value->max_mhz,
		.weight = (uint8_t)value->weight,
	};
	return sst_command(d, ISST_CLOS_PARAM, &p);
}

static struct isst_clos_assoc sst_tpmi_assoc(const struct sst_place *at, bool set, uint32_t clos)
{
	return (struct isst_clos_assoc){
		.n = 1,
		.set = set,
		.by_core = 1,
		PUNIT(at),
		.core = (uint16_t)at->core,
		.clos = (uint16_t)clos,
	};
}

static int get_assoc(const struct sst_device *d, const struct sst_place *at, uint32_t *ret)
{
	struct isst_clos_assoc a = sst_tpmi_assoc(at, false, 0);
	int r = sst_command(d, ISST_CLOS_ASSOC, &a);
	*ret = a.clos;
	return r;
}

static int set_assoc(const struct sst_device *d, const struct sst_place *at, uint32_t clos)
{
	struct isst_clos_assoc a = sst_tpmi_assoc(at, true, clos);
	return sst_command(d, ISST_CLOS_ASSOC, &a);
}

static int set_cp(const struct sst_device *d, const struct sst_place *at, bool on,
		  uint32_t priority)
{
	struct isst_core_power cp = {
		.set = 1,
		PUNIT(at),
		.enable = on,
		.priority = (uint8_t)priority,
	};
	return sst_command(d, ISST_CORE_POWER, &cp);
}

static int set_tf(const struct sst_device *d, const struct sst_place *at, bool on)
{
	struct isst_levels l;
	int r = sst_tpmi_levels(d, at, &l);
	if (r)
		return r;
	/* Leave base frequency (BF) unchanged. */
	struct isst_feature f = {
		PUNIT(at),
		.features = (uint8_t)((l.features & FEATURE_BF) | (on ? FEATURE_TF : 0u)),
	};
	return sst_command(d, ISST_SET_FEATURE, &f);
}

const struct sst_ops sst_tpmi_ops = {
	.locate = locate,
	.check = check,
	.state = state,
	.buckets = buckets,
	.bf_cores = bf_cores,
	.get_clos = get_clos,
	.set_clos = set_clos,
	.get_assoc = get_assoc,
	.set_assoc = set_assoc,
	.set_cp = set_cp,
	.set_tf = set_tf,
};
