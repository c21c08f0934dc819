/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of Speed Select. */
#pragma once

#include "core/lib/topo/isst.h"
#include "core/lib/topo/sst.h"

struct sst_ops;

struct sst_device {
	int fd;
	struct isst_platform platform;
	const struct sst_ops *ops;
};

/* Address of a CPU or a punit, with the numbers that the device's commands use. */
struct sst_place {
	uint32_t package, punit, cpu;
	uint32_t core; /* number of the core within the punit */
};

struct sst_state {
	/* members with the meaning that they have in struct rp_sst_punit */
	uint32_t supported, enabled, priority;
	uint32_t level; /* performance level that buckets and BF belong to */
};

/* Operations that differ between mailboxes and TPMI. 0 or -errno. Arguments are within their
 * ranges. */
struct sst_ops {
	void (*locate)(uint32_t physical, struct sst_place *at); /* core; for TPMI also punit */
	/* Returns 0 if this power unit supports Speed Select. */
	int (*check)(const struct sst_device *d, const struct sst_place *at);
	int (*state)(const struct sst_device *d, const struct sst_place *at, struct sst_state *ret);
	int (*buckets)(const struct sst_device *d, const struct sst_place *at, uint32_t level,
		       uint32_t cores[RP_SST_BUCKETS]);
	/* Returns the cores with the higher base frequency. */
	int (*bf_cores)(const struct sst_device *d, const struct sst_place *at, uint32_t level,
			uint64_t *ret_mask);
	int (*get_clos)(const struct sst_device *d, const struct sst_place *at, uint32_t clos,
			struct rp_clos *ret);
	int (*set_clos)(const struct sst_device *d, const struct sst_place *at, uint32_t clos,
			const struct rp_clos *value);
	int (*get_assoc)(const struct sst_device *d, const struct sst_place *at, uint32_t *ret);
	int (*set_assoc)(const struct sst_device *d, const struct sst_place *at, uint32_t clos);
	int (*set_cp)(const struct sst_device *d, const struct sst_place *at, bool on,
		      uint32_t priority);
	int (*set_tf)(const struct sst_device *d, const struct sst_place *at, bool on);
};

extern const struct sst_ops sst_mbox_ops, sst_tpmi_ops;

/* Opens the device. -ENOTSUP: no such device, or of an unknown kind. The caller closes ret->fd. */
int sst_open(const struct fs_root *root, struct sst_device *ret);
/* Sends a command. 0 or -errno. */
int sst_command(const struct sst_device *d, unsigned long command, void *arg);
/* Determines the core and punit of a CPU. */
int sst_locate(const struct sst_device *d, struct sst_place *at);

struct sst;
struct sst *sst_free(struct sst *s); /* accepts NULL; returns NULL */
/* Returns the bytes of memory for the Speed Select state; 0: it was not read. */
size_t sst_size(const struct topo *t);
