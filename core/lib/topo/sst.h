/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intel Speed Select: the platform as it was when the configuration was tried, and the present
 * hardware. Answers of the driver are checked: numbers beyond a limit are cut or mean "unknown".
 */
#pragma once

#include <stdint.h>

#include <nri-rp/speedselect.h>

#include "core/lib/topo/topo.h"
#include "core/lib/util/fs.h"

/* ---- the snapshot ---------------------------------------------------------------------------- */

/* Returns the number of punits. The first call of one of these functions reads the platform. 0
 * punits: sst_why() has the reason. */
uint32_t sst_n_punits(struct topo *t);
const char *sst_why(struct topo *t);
/* Returns 0 or -ENOENT. */
int sst_punit(struct topo *t, uint32_t index, struct rp_sst_punit *out);
uint32_t sst_clos_of(struct topo *t, uint32_t cpu);

/*
 * Time limits of reading. Reading sends up to SST_COMMANDS_MAX commands to a mailbox, each of which
 * may take the kernel's SST_MAILBOX_MS, which is too long for the loop. A forked child therefore
 * reads the platform, and the result is put into the snapshot.
 */
#define SST_MAILBOX_MS 2u
#define SST_COMMANDS_MAX(n_punits, n_cores) (12u * (n_punits) + (n_cores))
bool sst_is_read(const struct topo *t);
/* Forgets the platform; the next query reads it again. */
void sst_forget(struct topo *t);
/*
 * Replaces the Speed Select platform in the snapshot by the one that another process has read.
 * `punits`: in ascending order of package and punit, or none, and `why` says why there are none.
 * `clos`: CLOS of each CPU, by CPU number; RP_CLOS_COUNT: unknown. Returns 0, -EINVAL (does not
 * match this machine) or -ENOMEM. An error leaves the snapshot unchanged.
 */
int sst_put(struct topo *t, const char *why, const struct rp_sst_punit *punits, uint32_t n,
	    const uint8_t *clos, uint32_t n_clos);

/* ---- the hardware; any thread ---------------------------------------------------------------- */

/* Access the device below the root. Errors are -errno as documented in <nri-rp/speedselect.h>. */
int sst_punit_now(const struct fs_root *root, const struct rp_sst_at *at, struct rp_sst_punit *out);
int sst_clos_now(const struct fs_root *root, const struct rp_sst_at *at, uint32_t *ret);
int sst_set_cp(const struct fs_root *root, const struct rp_sst_at *at, bool on, uint32_t priority);
int sst_set_tf(const struct fs_root *root, const struct rp_sst_at *at, bool on);
int sst_set_clos(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos,
		 const struct rp_clos *value);
int sst_associate(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos);
