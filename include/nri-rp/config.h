/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration: the module's section of rp.conf, and the table of the section's keys.
 *
 * The host reads the file, checks it against the module's table (types, ranges, unknown keys,
 * duplicates) and passes a tree of nodes to prepare(). Getters cannot fail for what the table has
 * ruled out.
 */
#ifndef NRI_RP_CONFIG_H
#define NRI_RP_CONFIG_H

#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- nri-rp.config-schema/1: module side ----------------------------------------------------- */

#define RP_SCHEMA_1 "nri-rp.config-schema/1"

#define RP_T_BOOL 1u
#define RP_T_INT 2u /* min … max */
#define RP_T_NUMBER 3u /* a decimal number */
#define RP_T_STRING 4u
#define RP_T_ENUM 5u /* a member of `choices`, which are separated by '|' */
#define RP_T_CPU 6u /* Kubernetes CPU quantity: 2, 750m, 1.5 */
#define RP_T_BYTES 7u /* Kubernetes memory quantity: 512Mi, 1G */
#define RP_T_DURATION 8u /* 30s, 1m30s, 250ms */
/* A CPU quantity, or cpuset:LIST, exclude-cpuset:LIST or cgroup:PATH, or a bare list with '-' or
 * ',' in it, or a bare path that begins with '/'. */
#define RP_T_AMOUNT 9u
#define RP_T_CPULIST 10u /* 0-3,8 */
#define RP_T_MAP 11u
#define RP_T_LIST 12u
#define RP_T_ANY 13u /* not checked below this key; the module checks it in prepare() */
#define RP_T_FREQ 14u /* 2.4GHz, 800MHz, a bare number in kHz, or min, base, turbo */

#define RP_KEY_REQUIRED 0x1u /* must be present wherever its parent map is present */
#define RP_KEY_RESTART                                                                             \
	0x2u /* a change needs a restart of nri-rpd; everything else is taken over by a reload */
#define RP_KEY_NON_EMPTY 0x4u

/*
 * A key. `path` is relative to the section: "pinCPU", "reservedResources.cpu",
 * "balloonTypes[].name" (each element), "cpuManagerPolicyOptions.*" (any key of a map). Parents
 * precede children. Members that a type does not use are 0 or NULL. A map or list without rows for
 * its members takes any members. An INT without an upper limit has max INT64_MAX, one without a
 * lower limit min INT64_MIN.
 */
struct rp_key {
	const char *path;
	uint32_t type;
	uint32_t flags;
	int64_t min, max; /* range of an INT; both 0: any */
	const char *choices; /* values of an ENUM, separated by '|' */
	/* default value as people would write it, for documentation; NULL: none */
	const char *fallback;
	const char *doc; /* description in one sentence */
	/* noun for the values of a BYTES in messages, as "bytes per second (60M)"; NULL: an
	 * amount of memory [since 1.3] */
	const char *expected;
};

#define RP_SCHEMA_FOLD_CASE 0x1u /* keys match without regard to ASCII case */

/* The keys of a section. */
struct rp_schema {
	uint32_t size;
	uint32_t flags;
	const struct rp_key *keys;
	uint32_t n_keys;
	uint32_t key_size; /* sizeof(struct rp_key) at the module's build */
	/* kind of the custom resource whose spec is this section ("BalloonsPolicy"); NULL: none */
	const char *cr_kind;
};

/* The host requests a schema before any instance exists: rp_module.service(NULL, RP_SCHEMA_1) must
 * return it. The table, its rows and their texts must be static data of the module; the host
 * refuses pointers to other memory. */

/* ---- nri-rp.host.config/1: host side --------------------------------------------------------- */

#define RP_HOST_CONFIG_1 "nri-rp.host.config/1"

typedef const struct rp_cfg_node
	*rp_cfg; /* NULL is a key that is not there: every getter takes it */

#define RP_NODE_NULL 0u
#define RP_NODE_SCALAR 1u
#define RP_NODE_LIST 2u
#define RP_NODE_MAP 3u

struct rp_host_config {
	uint32_t size;
	uint32_t pad;
	/* Returns RP_NODE_…. */
	uint32_t (*kind)(void *ctx, rp_cfg node);
	/* Returns the node at a path below `node` ("reservedResources.cpu", without []), or
	 * NULL. */
	rp_cfg (*get)(void *ctx, rp_cfg node, const char *path);
	/* Return the number of members of a list or a map, and member i in the order of the
	 * file. item() returns NULL past the last one. */
	uint32_t (*count)(void *ctx, rp_cfg node);
	rp_cfg (*item)(void *ctx, rp_cfg node, uint32_t i);
	/* Returns the key of a map's member i in its canonical spelling. */
	const char *(*key)(void *ctx, rp_cfg node,
			   uint32_t i); /* canonical spelling of a map's key i */
	/* Returns the scalar as text, or `fallback` when node is NULL or no scalar. Valid as long
	 * as the tree. */
	const char *(*text)(void *ctx, rp_cfg node, const char *fallback);
	/* Returns the scalar in the unit of `type` (RP_T_…): BOOL 0 or 1, INT, CPU in milli-CPU,
	 * BYTES in bytes, DURATION in ms, FREQ in kHz (RP_FREQ_… for min, base and turbo).
	 * `fallback` when node is NULL or is not of that type. */
	int64_t (*value)(void *ctx, rp_cfg node, uint32_t type, int64_t fallback);
	/* Returns the scalar as a decimal number, or `fallback`. */
	double (*number)(void *ctx, rp_cfg node, double fallback);
	/* Records a sentence as fail() does, with the node's place before the text: "rp.conf:12:5:
	 * balloons.balloonTypes[2].maxCPUs: TEXT". Returns `code`. */
	int32_t (*fail_at)(void *ctx, rp_cfg node, int32_t code, const char *text);
	/* Returns the node's place, "rp.conf:12:5". */
	const char *(*where)(void *ctx, rp_cfg node);
	/*
	 * Parses a text in the syntax of a configuration that is none: the YAML or JSON of an
	 * annotation, a map at the top. All getters take the tree, which is valid until the
	 * callback returns. NULL: the text is empty (*ret_code is 0), malformed, or exceeds a limit
	 * of the host. For the latter *ret_code, if not NULL, is negative and fail() was called
	 * with `what` ("annotation x"), the error and its place.
	 */
	rp_cfg (*parse)(void *ctx, const char *what, const char *text, int32_t *ret_code);
};

#define RP_FREQ_MIN (-1)
#define RP_FREQ_BASE (-2)
#define RP_FREQ_TURBO (-3)

#ifdef __cplusplus
}
#endif
#endif
