/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's Speed Select interface, /dev/isst_interface, as far as it is used here. Debian 12's
 * <linux/isst_if.h> ends before the part for TPMI, so the layouts are repeated here: they are the
 * kernel's ABI. Command numbers contain the size of a pointer, whatever they point to.
 */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

#define ISST_PATH "dev/isst_interface"
#define ISST_API_TPMI 2u /* first version with TPMI; earlier ones use mailboxes */

#define ISST_MAGIC 0xFE
#define ISST_PLATFORM _IOR(ISST_MAGIC, 0, void *)
#define ISST_PHYS_ID _IOWR(ISST_MAGIC, 1, void *)
#define ISST_IO _IOW(ISST_MAGIC, 2, void *)
#define ISST_MBOX _IOWR(ISST_MAGIC, 3, void *)
#define ISST_INSTANCES _IOR(ISST_MAGIC, 5, void *)
#define ISST_CORE_POWER _IOWR(ISST_MAGIC, 6, void *)
#define ISST_CLOS_PARAM _IOWR(ISST_MAGIC, 7, void *)
#define ISST_CLOS_ASSOC _IOWR(ISST_MAGIC, 8, void *)
#define ISST_LEVELS _IOWR(ISST_MAGIC, 9, void *)
#define ISST_SET_FEATURE _IOW(ISST_MAGIC, 11, void *)
#define ISST_BF_MASK _IOR(ISST_MAGIC, 15, void *)
#define ISST_TF_INFO _IOR(ISST_MAGIC, 16, void *)

/* ---- all platforms --------------------------------------------------------------------------- */

struct isst_platform {
	uint16_t api, driver, max_commands;
	uint8_t mbox, mmio;
};

struct isst_phys_id {
	uint32_t n; /* always 1 */
	uint32_t cpu, physical;
};

/* Core and punit within a physical CPU number, whose layout depends on the interface (mailbox or
 * TPMI). */
#define ISST_MBOX_CORE(physical) (((physical)&0x1ffu) >> 1)
#define ISST_TPMI_CORE(physical) ((physical) >> 3 & 0xffu)
#define ISST_TPMI_PUNIT(physical) ((physical) >> 11 & 0x1fu)

/* ---- mailboxes ------------------------------------------------------------------------------- */

struct isst_io {
	uint32_t n; /* always 1 */
	uint32_t write, cpu, reg, value;
};

struct isst_mbox {
	uint32_t n; /* always 1 */
	uint32_t cpu, parameter, request, response;
	uint16_t command, sub;
	uint32_t reserved;
};

#define MBOX_TDP 0x7fu
#define MBOX_TDP_LEVELS 0x00u
#define MBOX_TDP_GET_CONTROL 0x01u
#define MBOX_TDP_SET_CONTROL 0x02u
#define MBOX_TDP_TF_CORES 0x10u
#define MBOX_TDP_BF_MASK 0x20u
#define MBOX_CLOS 0xd0u
#define MBOX_CLOS_ASSOC 0x00u
#define MBOX_CLOS_PARAM 0x01u
#define MBOX_CLOS_QOS 0x02u
#define MBOX_READ_PM 0x94u
#define MBOX_WRITE_PM 0x95u
#define MBOX_PM_FEATURE 0x03u
#define MBOX_PARAMETER_WRITE 0x100u

#define IO_CLOS_PARAM 0x08u
#define IO_CLOS_ASSOC 0x20u

/* Bits of answers. */
#define LEVELS_VERSION(v) ((v)&0xffu)
#define LEVELS_CURRENT(v) ((v) >> 16 & 0xffu)
#define LEVELS_VERSION_MIN 3u /* older firmware lacks all features used here */
#define CONTROL_TF_SUPPORTED 0x1u
#define CONTROL_BF_SUPPORTED 0x2u
#define CONTROL_TF 0x10000u
#define CONTROL_BF 0x20000u
#define PM_CP_SUPPORTED 0x1u
#define PM_CP 0x10000u /* written but not read back: QOS_ON is decisive */
#define QOS_ON 0x2u
#define QOS_ORDERED 0x4u
#define PARAM_WEIGHT(v) ((v) >> 4 & 0xfu)
#define PARAM_MIN(v) ((v) >> 8 & 0xffu)
#define PARAM_MAX(v) ((v) >> 16 & 0xffu)
#define ASSOC_CLOS(v) ((v) >> 16 & 0x3u)

/* ---- TPMI ------------------------------------------------------------------------------------ */

struct isst_instances {
	uint8_t package, n;
	uint16_t valid;
};

struct isst_core_power {
	uint8_t set, package, punit, enable, supported, priority;
};

struct isst_clos_param {
	uint8_t set, package, punit, clos;
	uint16_t min_mhz, max_mhz;
	uint8_t weight;
};

struct isst_clos_assoc {
	uint16_t n, set, by_core; /* always 1; 0 or 1; always 1 */
	uint8_t package, punit;
	uint16_t core, clos;
};

struct isst_levels {
	uint8_t package, punit, max_level, revision, level_mask, level, features, locked, enabled,
		tf_supported, bf_supported;
};
#define FEATURE_BF 0x1u
#define FEATURE_TF 0x2u

struct isst_feature {
	uint8_t package, punit, features;
};

struct isst_cpu_mask {
	uint8_t package, punit, level, by_core; /* by_core is always 1 */
	uint64_t mask;
	uint16_t buffer_size;
	int8_t buffer[1];
};

#define ISST_TRL_LEVELS 6u
#define ISST_BUCKETS 8u
struct isst_tf_info {
	uint8_t package, punit;
	uint16_t level, n_clips, n_buckets, n_levels;
	uint16_t clip_mhz[ISST_TRL_LEVELS];
	uint16_t cores[ISST_BUCKETS];
	uint16_t mhz[ISST_TRL_LEVELS][ISST_BUCKETS];
};

/* Sizes of the kernel's layouts. */
_Static_assert(sizeof(struct isst_platform) == 8 && sizeof(struct isst_phys_id) == 12 &&
		       sizeof(struct isst_io) == 20 && sizeof(struct isst_mbox) == 28,
	       "commands of mailboxes");
_Static_assert(sizeof(struct isst_instances) == 4 && sizeof(struct isst_core_power) == 6 &&
		       sizeof(struct isst_clos_param) == 10 &&
		       sizeof(struct isst_clos_assoc) == 12 && sizeof(struct isst_levels) == 11 &&
		       sizeof(struct isst_feature) == 3 && sizeof(struct isst_cpu_mask) == 24 &&
		       sizeof(struct isst_tf_info) == 134,
	       "commands of TPMI");
