/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intel Speed Select: the platform as it was when the configuration was tried, and the hardware as
 * it is. What the driver answers is believed no further than it makes sense: numbers beyond a bound
 * are cut or mean "not known".
 */
#ifndef TOPO_SST_H
#define TOPO_SST_H

#include <stdint.h>

#include <nri-rp/speedselect.h>

#include "core/lib/topo/topo.h"
#include "core/lib/util/fs.h"

/* ---- the picture in a snapshot --------------------------------------------------------------- */

/* The first of these to be called reads the platform. 0 punits: sst_why() tells why. */
uint32_t sst_n_punits(struct topo *t);
const char *sst_why(struct topo *t);
int sst_punit(struct topo *t, uint32_t index, struct rp_sst_punit *out); /* -ENOENT */
uint32_t sst_clos_of(struct topo *t, uint32_t cpu);

/*
 * Reading it asks a mailbox up to SST_COMMANDS_MAX times, each of which may take the kernel's
 * SST_MAILBOX_MS: nothing for the loop. So it is read where there is time, in a forked child, and
 * put into the snapshot from there.
 */
#define SST_MAILBOX_MS 2u
#define SST_COMMANDS_MAX(n_punits, n_cores) (12u * (n_punits) + (n_cores))
bool sst_is_read(const struct topo *t);
/* The next one to ask reads it anew. */
void sst_forget(struct topo *t);
/*
 * What somebody else has read: a sentence and no punits, or punits in ascending order; `clos` by
 * CPU number, RP_CLOS_COUNT where it is not known. -EINVAL: that cannot be of this machine;
 * -ENOMEM. All is as it was then.
 */
int sst_put(struct topo *t, const char *why, const struct rp_sst_punit *punits, uint32_t n,
	    const uint8_t *clos, uint32_t n_clos);

/* ---- the hardware: on any thread ------------------------------------------------------------- */

/* Each opens the device below the root. -errno, as <nri-rp/speedselect.h> tells. */
int sst_punit_now(const struct fs_root *root, const struct rp_sst_at *at, struct rp_sst_punit *out);
int sst_clos_now(const struct fs_root *root, const struct rp_sst_at *at, uint32_t *ret);
int sst_set_cp(const struct fs_root *root, const struct rp_sst_at *at, bool on, uint32_t priority);
int sst_set_tf(const struct fs_root *root, const struct rp_sst_at *at, bool on);
int sst_set_clos(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos,
		 const struct rp_clos *value);
int sst_associate(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos);

#endif
