/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.speedselect/1: Intel Speed Select. A package has one or more power units (punits).
 * Core power (CP) puts each core in one of four classes of service (CLOS) with a lowest and a
 * highest frequency; turbo frequency (TF) lets a few cores of the punit, those of CLOS 0 and 1, go
 * higher than the rest; base frequency (BF) has a fixed list of cores with a higher base frequency.
 *
 * What the getters show was read when the configuration in force was tried, so each reload shows
 * what others have set up since; or when it was first asked for in this snapshot of the machine
 * (topology.h), if that was later. The functions marked [any] ask or change the hardware. They take
 * about as long as a register access each, but for mailboxes, where it can be some milliseconds:
 * they belong on the worker. Threads of a core are always in the same CLOS.
 */
#ifndef NRI_RP_SPEEDSELECT_H
#define NRI_RP_SPEEDSELECT_H

#include <nri-rp/module.h>
#include <nri-rp/set.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_HOST_SPEEDSELECT_1 "nri-rp.host.speedselect/1"

#define RP_CLOS_COUNT 4u
#define RP_CLOS_UNKNOWN 0xffffffffu
#define RP_SST_BUCKETS 8u
#define RP_SST_MHZ_STEP 100u /* the hardware knows multiples of this … */
#define RP_SST_MHZ_MAX 25500u /* … up to this, which is no limit at all */
#define RP_SST_WEIGHT_MAX 15u

/* Features, a bit mask. */
#define RP_SST_CP 0x1u
#define RP_SST_TF 0x2u
#define RP_SST_BF 0x4u

/* How CLOSes share what power there is. */
#define RP_SST_PROPORTIONAL 0u /* by their weights */
#define RP_SST_ORDERED 1u /* a smaller number takes all it can use first */

/* A class of service. Fixed for ever: it lies in arrays. */
struct rp_clos {
	uint32_t min_mhz, max_mhz; /* 0 … RP_SST_MHZ_MAX */
	uint32_t weight; /* 0, the heaviest, … RP_SST_WEIGHT_MAX; of use in proportional mode */
	uint32_t pad;
};

struct rp_sst_punit {
	uint32_t size;
	uint32_t package_id, punit_id;
	uint32_t supported, enabled; /* RP_SST_… */
	uint32_t priority; /* RP_SST_ORDERED, RP_SST_PROPORTIONAL */
	uint32_t n_buckets;
	/* of TF, ascending: so many high-priority cores may be in use for a step of its
	 * frequencies */
	uint32_t hp_cores[RP_SST_BUCKETS];
	uint32_t pad;
	struct rp_clos clos[RP_CLOS_COUNT]; /* zeros without CP */
	struct rp_ids cpus; /* online CPUs */
	struct rp_ids bf_cpus; /* those with the higher base frequency under BF */
};

/* Which piece of hardware: package and punit, by any CPU of it; for associate() and clos_now() by
 * the CPU that is meant. */
struct rp_sst_at {
	uint32_t package_id, punit_id, cpu;
};

struct rp_host_speedselect {
	uint32_t size;
	uint32_t pad;
	/* 0: this machine has no Speed Select that can be used; why() is a sentence then, ""
	 * otherwise. Ascending by package, punit. */
	uint32_t (*n_punits)(void *ctx);
	const char *(*why)(void *ctx);
	/* -RP_ENOENT beyond the last one. */
	int32_t (*punit)(void *ctx, uint32_t index, struct rp_sst_punit *out);
	/* The CLOS a CPU was in; RP_CLOS_UNKNOWN without CP, or for a CPU that is in no punit. */
	uint32_t (*clos_of)(void *ctx, uint32_t cpu);
	/*
	 * This instance sets up the platform from now on (on 1), or does not any more (0). A later
	 * instance takes over from an earlier one. 0; -RP_EBUSY, for on 0: another one does
	 * already, so leave everything as it is.
	 */
	int32_t (*manage)(void *ctx, uint32_t on);
	/*
	 * [any] All of these: 0, -RP_EINVAL for values out of range, -RP_ENOTSUP in a trial or
	 * without the device, or the driver's -errno (EPERM: writing is locked by the firmware or
	 * not allowed to this process).
	 */
	/* The punit as it is now; its sets and buckets are left empty. */
	int32_t (*punit_now)(void *ctx, const struct rp_sst_at *at, struct rp_sst_punit *out);
	/* The CLOS of a CPU now. */
	int32_t (*clos_now)(void *ctx, const struct rp_sst_at *at, uint32_t *ret_clos);
	int32_t (*set_cp)(void *ctx, const struct rp_sst_at *at, uint32_t on, uint32_t priority);
	int32_t (*set_tf)(void *ctx, const struct rp_sst_at *at, uint32_t on);
	int32_t (*set_clos)(void *ctx, const struct rp_sst_at *at, uint32_t clos,
			    const struct rp_clos *value);
	/* The CPU, with the other threads of its core. */
	int32_t (*associate)(void *ctx, const struct rp_sst_at *at, uint32_t clos);
};

#ifdef __cplusplus
}
#endif
#endif
