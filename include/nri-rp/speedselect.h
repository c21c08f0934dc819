/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.speedselect/1: Intel Speed Select. A package has one or more power units (punits).
 * Core power (CP) puts each core in one of four classes of service (CLOS) with a lowest and a
 * highest frequency. Turbo frequency (TF) lets a few cores of the punit, those of CLOS 0 and 1,
 * exceed the frequency of the others. Base frequency (BF) has a fixed list of cores with a higher
 * base frequency. Threads of a core are always in the same CLOS.
 *
 * Getters return what was read when the active configuration was tried, so a reload refreshes it,
 * or when it was first queried in this snapshot of the machine (topology.h), if that was later.
 * They may be called in every callback, on the main thread.
 *
 * Functions marked [any] query or change the hardware. They take about as long as a register
 * access, with mailboxes some milliseconds, and belong on the worker.
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
#define RP_SST_MHZ_STEP 100u /* the hardware counts in multiples of this … */
#define RP_SST_MHZ_MAX 25500u /* … up to this value, which means no limit */
#define RP_SST_WEIGHT_MAX 15u

/* Features, a bit mask. */
#define RP_SST_CP 0x1u
#define RP_SST_TF 0x2u
#define RP_SST_BF 0x4u

/* Modes of sharing power between CLOSes. */
#define RP_SST_PROPORTIONAL 0u /* by weight */
#define RP_SST_ORDERED 1u /* the lowest CLOS number takes all the power that it can use first */

/* A class of service. Its layout is fixed for ever, because it is used in arrays. */
struct rp_clos {
	uint32_t min_mhz, max_mhz; /* 0 … RP_SST_MHZ_MAX */
	uint32_t weight; /* 0 (heaviest) … RP_SST_WEIGHT_MAX; used in proportional mode */
	uint32_t pad;
};

/* A power unit. */
struct rp_sst_punit {
	uint32_t size;
	uint32_t package_id, punit_id;
	uint32_t supported, enabled; /* RP_SST_… */
	uint32_t priority; /* RP_SST_ORDERED, RP_SST_PROPORTIONAL */
	uint32_t n_buckets;
	/* for TF, ascending: numbers of high-priority cores in use up to which each step of the
	 * frequencies holds */
	uint32_t hp_cores[RP_SST_BUCKETS];
	uint32_t pad;
	struct rp_clos clos[RP_CLOS_COUNT]; /* all zero without CP */
	struct rp_ids cpus; /* online CPUs of the punit */
	struct rp_ids bf_cpus; /* CPUs with the higher base frequency under BF */
};

/* A place in the hardware: a package and punit, with any CPU of it. For associate() and clos_now()
 * it is the CPU that is meant. */
struct rp_sst_at {
	uint32_t package_id, punit_id, cpu;
};

struct rp_host_speedselect {
	uint32_t size;
	uint32_t pad;
	/* n_punits() returns the number of power units, ascending by package and punit. 0: this
	 * machine has no usable Speed Select; why() then returns a sentence with the reason,
	 * otherwise "". */
	uint32_t (*n_punits)(void *ctx);
	const char *(*why)(void *ctx);
	/* Fills *out with a power unit. -RP_ENOENT: past the last one. */
	int32_t (*punit)(void *ctx, uint32_t index, struct rp_sst_punit *out);
	/* Returns the CLOS of a CPU at the time of reading. RP_CLOS_UNKNOWN: no CP, or the CPU is
	 * in no punit. */
	uint32_t (*clos_of)(void *ctx, uint32_t cpu);
	/*
	 * Claims (on 1) or releases (on 0) the setup of the platform for this instance. A later
	 * instance takes over from an earlier one. Returns 0. -RP_EBUSY, for on 0: another instance
	 * has taken over, so leave the platform unchanged.
	 */
	int32_t (*manage)(void *ctx, uint32_t on);
	/*
	 * [any] All functions below. They return 0, -RP_EINVAL for values out of range, -RP_ENOTSUP
	 * in a trial or without the device, or the driver's -errno (EPERM: the firmware has locked
	 * writing, or the process lacks the right).
	 */
	/* Reads the punit from the hardware. Its sets and buckets are left empty. */
	int32_t (*punit_now)(void *ctx, const struct rp_sst_at *at, struct rp_sst_punit *out);
	/* Reads the CLOS of a CPU from the hardware. */
	int32_t (*clos_now)(void *ctx, const struct rp_sst_at *at, uint32_t *ret_clos);
	/* Switches CP on or off, with a mode RP_SST_PROPORTIONAL or RP_SST_ORDERED. */
	int32_t (*set_cp)(void *ctx, const struct rp_sst_at *at, uint32_t on, uint32_t priority);
	/* Switches TF on or off. */
	int32_t (*set_tf)(void *ctx, const struct rp_sst_at *at, uint32_t on);
	/* Writes the parameters of a CLOS. */
	int32_t (*set_clos)(void *ctx, const struct rp_sst_at *at, uint32_t clos,
			    const struct rp_clos *value);
	/* Moves a CPU, with the other threads of its core, to a CLOS. */
	int32_t (*associate)(void *ctx, const struct rp_sst_at *at, uint32_t clos);
};

#ifdef __cplusplus
}
#endif
#endif
