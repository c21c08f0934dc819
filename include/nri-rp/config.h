/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration: the module's section of rp.conf, and the table of the keys it knows.
 *
 * The host reads the file, checks it against the module's table (types, ranges, unknown keys,
 * duplicates) and hands over a tree of nodes. Getters do not fail on what the table has already
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
#define RP_T_ENUM 5u /* one of `choices`, separated by '|' */
#define RP_T_CPU 6u /* Kubernetes CPU quantity: 2, 750m, 1.5 */
#define RP_T_BYTES 7u /* Kubernetes memory quantity: 512Mi, 1G */
#define RP_T_DURATION 8u /* 30s, 1m30s, 250ms */
/* a CPU quantity, or cpuset:LIST, or exclude-cpuset:LIST, or cgroup:PATH; a bare list with - or ,
 * in it, or /PATH */
#define RP_T_AMOUNT 9u
#define RP_T_CPULIST 10u /* 0-3,8 */
#define RP_T_MAP 11u
#define RP_T_LIST 12u
#define RP_T_ANY 13u /* not checked below here: the module does it in prepare() */
#define RP_T_FREQ 14u /* 2.4GHz, 800MHz, a bare number in kHz, or min, base, turbo */

#define RP_KEY_REQUIRED 0x1u /* wherever the map that holds it is there */
#define RP_KEY_RESTART                                                                             \
	0x2u /* a change needs a restart of nri-rpd; everything else is taken over by a reload */
#define RP_KEY_NON_EMPTY 0x4u

/*
 * One key. `path` is relative to the section: "pinCPU", "reservedResources.cpu",
 * "balloonTypes[].name" (each element), "cpuManagerPolicyOptions.*" (any key of a map). Parents
 * come before children. Members that a type does not use are 0 or NULL. A map or list without rows
 * for what is in it takes anything. An INT of at least N has max INT64_MAX, of at most N min
 * INT64_MIN.
 */
struct rp_key {
	const char *path;
	uint32_t type;
	uint32_t flags;
	int64_t min, max; /* of an INT; both 0: any */
	const char *choices; /* of an ENUM */
	const char *fallback; /* the default as it would be written, for people; NULL: none */
	const char *doc; /* one sentence */
};

#define RP_SCHEMA_FOLD_CASE 0x1u /* keys match without regard to ASCII case */

struct rp_schema {
	uint32_t size;
	uint32_t flags;
	const struct rp_key *keys;
	uint32_t n_keys;
	uint32_t key_size; /* sizeof(struct rp_key) at the module's build */
	/* kind of the custom resource whose spec this section is ("BalloonsPolicy"), or NULL */
	const char *cr_kind;
};

/* A schema is asked for before any instance exists: rp_module.service(NULL, RP_SCHEMA_1) must
 * answer. The table, its rows and their texts have to be static data of the module; the host
 * refuses pointers to anywhere else. */

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
	uint32_t (*kind)(void *ctx, rp_cfg node);
	/* The node at a path below `node` ("reservedResources.cpu"; no [] here), or NULL. */
	rp_cfg (*get)(void *ctx, rp_cfg node, const char *path);
	/* Members of a list or a map, in the order of the file. */
	uint32_t (*count)(void *ctx, rp_cfg node);
	rp_cfg (*item)(void *ctx, rp_cfg node, uint32_t i);
	const char *(*key)(void *ctx, rp_cfg node,
			   uint32_t i); /* of a map's i-th member, as canonically written */
	/* The scalar as text; `fallback` when node is NULL or no scalar. */
	const char *(*text)(void *ctx, rp_cfg node, const char *fallback);
	/* The scalar as the type its table row gives: BOOL 0 or 1, INT, CPU in milli, BYTES,
	 * DURATION in ms, FREQ in kHz (min, base and turbo are negative: RP_FREQ_…). `fallback`
	 * when node is NULL or does not read as that type. */
	int64_t (*value)(void *ctx, rp_cfg node, uint32_t type, int64_t fallback);
	double (*number)(void *ctx, rp_cfg node, double fallback);
	/* fail() with the place of the node before the text: "rp.conf:12:5:
	 * balloons.balloonTypes[2].maxCPUs: TEXT". */
	int32_t (*fail_at)(void *ctx, rp_cfg node, int32_t code, const char *text);
	/* The place, "rp.conf:12:5". */
	const char *(*where)(void *ctx, rp_cfg node);
	/*
	 * Reads text that is no configuration but looks like one: the YAML or JSON of an
	 * annotation, a map at the top. The tree takes all getters and is valid until the callback
	 * returns. NULL when the text is empty, and when it is malformed or over a limit of the
	 * host; then fail() has been called with `what` ("annotation x"), what is wrong and where,
	 * and *ret_code (may be NULL) is negative, 0 otherwise.
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
