/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intel Speed Select: the platform as it was when it was first asked for, and the hardware as it is. What the driver answers is
 * believed no further than it makes sense: numbers beyond a bound are cut or mean "not known".
 */
#ifndef TOPO_SST_H
#define TOPO_SST_H

#include <stdint.h>

#include <nri-rp/speedselect.h>

#include "core/topo/topo.h"
#include "core/util/fs.h"

/* ---- the picture in a snapshot -------------------------------------------------------------------------------------- */

/* The first of these to be called reads the platform. 0 punits: sst_why() tells why. */
uint32_t sst_n_punits(struct topo *t);
const char *sst_why(struct topo *t);
int sst_punit(struct topo *t, uint32_t index, struct rp_sst_punit *out); /* -ENOENT */
uint32_t sst_clos_of(struct topo *t, uint32_t cpu);

/* ---- the hardware: on any thread ------------------------------------------------------------------------------------ */

/* Each opens the device below the root. -errno, as <nri-rp/speedselect.h> tells. */
int sst_punit_now(const struct fs_root *root, const struct rp_sst_at *at, struct rp_sst_punit *out);
int sst_clos_now(const struct fs_root *root, const struct rp_sst_at *at, uint32_t *ret);
int sst_set_cp(const struct fs_root *root, const struct rp_sst_at *at, bool on, uint32_t priority);
int sst_set_tf(const struct fs_root *root, const struct rp_sst_at *at, bool on);
int sst_set_clos(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos,
		 const struct rp_clos *value);
int sst_associate(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos);

#endif
