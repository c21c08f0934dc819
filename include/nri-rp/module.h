/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nri-rp module ABI, major 1: what every module and the host have in common.
 *
 * A module is one shared object, <module directory>/<name>.so, that defines exactly one exported
 * symbol with RP_MODULE_DEFINE. The host (nri-rpd) reads the module's ELF note before it loads the
 * file. A module of another major, a damaged file or an unrelated library is refused without
 * running any of its code.
 *
 * These rules hold for everything under <nri-rp/>:
 *
 *   Threads     A function without a mark is called on the host's main thread only, in both
 *               directions. Callbacks are never nested and never run at the same time. A module
 *               takes no locks, starts no threads, never blocks, never exits, and never writes to
 *               stdout or stderr. Work that can block goes to the host's worker (host.h).
 *               [any] marks a function that may be called on any thread.
 *               [worker] marks a callback that the host runs on its worker thread.
 *               The host refuses a call of an unmarked function on another thread. The call has no
 *               effect, returns -RP_EPERM (NULL, 0 or "" by the type of the result), and is logged
 *               and counted as a defect of the module. In nri-rp-modcheck it fails the case.
 *   Callbacks   A host getter may be called in every callback of an instance, where its comment
 *               names no other limit. A function with a transaction (rp_txn) may be called only in
 *               the callback that received this transaction.
 *   Structs     Each struct begins with `uint32_t size`. The side that fills a struct sets size to
 *               the bytes it knows. The side that reads it uses only members that size covers
 *               (RP_HAS). Within a major, members are only appended.
 *               Structs of requests (rp_key, rp_nr_item, rp_mount, rp_device) are stricter: the
 *               host refuses one whose unknown members are not all zero, rather than carry out a
 *               part of the request. The host never calls module functions that it does not
 *               know.
 *   Results     0 is success. A negative value is one of the RP_E codes. The module records a
 *               sentence for people with fail() first and then returns the code. Exceptions are
 *               stated at the function: where a host function has recorded the sentence already,
 *               the module only returns the code. A positive value has a meaning only where the
 *               function documents one.
 *   Memory      Nothing changes owner. Arguments are borrowed for the call. The result of a host
 *               getter stays valid until the module's callback returns, unless the getter documents
 *               another lifetime. The result of a module function stays valid until the same
 *               function is called again or the instance is destroyed.
 *   Text        UTF-8, NUL-terminated, and "" rather than NULL where a text is required.
 *   Amounts     CPU in milli-CPU, memory in bytes, both int64_t.
 *
 * Services in both directions are found by name: rp_host.service() returns a service of the host,
 * rp_module.service() one of the module. An unknown name returns NULL, which is how an older and a
 * newer side find out what the other one supports.
 *
 * Changes:
 *   1.0 first release
 *   1.1 nri-rp.host.usage/1, RP_EVENT_PRESSURE, the budget of RP_EVENT_REBALANCE,
 *       rp_controller.measure, rp_host_work.figure
 *   1.2 nri-rp.host.speedselect/1, nri-rp.host.settings/1, nri-rp.extended/1, rp_policy.stop,
 *       rp_policy.unmanaged, rp_host_cache.pod_resource, rp_ctr_info.has_cpus and has_mems
 *   1.3 rp_host_cache.arg, set_args and set_group, rp_ctr_info.asked_shares, asked_quota and
 *       asked_period, rp_host_topology.simulated, nri-rp.calculator/1, nri-rp.host.noderes/1,
 *       nri-rp.host.node/1, nri-rp.host.evict/1, nri-rp.host.runtime/1, RP_EVENT_RUNTIME,
 *       nri-rp.host.hints/1, nri-rp.decision/1, nri-rp.allocation/1,
 *       rp_policy.admit_pod and pod_removed, rp_host_cache.list_pods, get_pod_private,
 *       set_pod_private and may_wait, rp_pod_info.flags, cpu_request, cpu_limit, mem_limit and
 *       mem_request, rp_host_cache.pod_ctr, add_mount, add_device and add_cdi, RP_F_HUGEPAGES and
 *       RP_F_SWAP, RP_F_RDT_GROUP, RP_F_TOPTIER_LIMIT, RP_TAKES_TOPTIER_LIMIT, rp_host_work.post
 *       and read_node, RP_EVENT_POSTED; -RP_EBUSY when two modules request different values of
 *       one setting; nri-rp.devices/1, RP_CTR_CLAIM, rp_host_cache.leave_unpinned
 */
#ifndef NRI_RP_MODULE_H
#define NRI_RP_MODULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_ABI_MAJOR 1u
#define RP_ABI_MINOR 3u

/* Returns true if p is not NULL and its size covers `field`: the side that filled the struct knows
 * the member. */
#define RP_HAS(p, field)                                                                           \
	((p) && (p)->size >= offsetof(__typeof__(*(p)), field) + sizeof((p)->field))

/* Error codes of both directions. Functions return them negated (return -RP_EINVAL). The values are
 * Linux errno numbers. */
/* an unmarked function was called on another thread than the main one [since 1.3] */
#define RP_EPERM 1
/* the object does not exist: annotation, key, private data, index past the end */
#define RP_ENOENT 2
#define RP_EAGAIN 11 /* temporarily not possible; the caller may try again later */
#define RP_ENOMEM 12
#define RP_EBUSY 16 /* another module or object uses the requested one already */
#define RP_EINVAL 22 /* malformed configuration, annotation or argument */
#define RP_ENOSPC 28 /* the container or pod cannot be placed: not enough capacity */
#define RP_E2BIG 7 /* a limit of the host is exceeded */
#define RP_ENOTSUP 95 /* not supported by this host, this machine or in this situation */
#define RP_ESTALE 116 /* the id names an object that was removed */

/* Kinds of use that a module supports, a bit mask. */
#define RP_KIND_POLICY 0x1u
#define RP_KIND_CONTROLLER 0x2u
#define RP_KIND_CALCULATOR 0x4u

/* Levels of log(), the numbers of syslog. */
#define RP_LOG_ERROR 3u
#define RP_LOG_WARNING 4u
#define RP_LOG_NOTICE 5u
#define RP_LOG_INFO 6u
#define RP_LOG_DEBUG 7u

/* Ids of pods and containers in the host's cache. 0 is no object. The id of a removed object is
 * never reused; functions return -RP_ESTALE for it. */
typedef uint64_t rp_pod;
typedef uint64_t rp_ctr;

struct rp_instance; /* the module's own type; the host only passes pointers to it */

/* Functions of the host for one instance. Valid from create() until destroy() has returned. */
struct rp_host {
	uint32_t size;
	uint32_t abi_minor;
	void *ctx; /* first argument of every host function */
	/* Returns the struct of a host service ("nri-rp.host.cache/1"), or NULL if this host does
	 * not have it. The struct stays valid as long as the instance. May be called from create()
	 * on. */
	const void *(*service)(void *ctx, const char *id);
	/* Logs one line. `object` is the container or pod that the line is about, or 0. */
	void (*log)(void *ctx, uint32_t level, uint64_t object, const char *text);
	/* Records a sentence that explains why the running callback fails, and returns `code`, so
	 * that a callback can end with: return fail(ctx, -RP_ENOSPC, "…"). The text is one sentence
	 * without newline. The last sentence recorded before the callback returns is shown to
	 * people. */
	int32_t (*fail)(void *ctx, int32_t code, const char *text);
};

struct rp_module {
	uint32_t size;
	uint32_t abi_minor; /* minor of the headers that the module was built with */
	uint32_t min_host_minor; /* oldest minor of a host that may load the module */
	uint32_t kinds;
	const char *name; /* file name without .so: [a-z0-9][a-z0-9-]*, at most 31 bytes */
	const char *version;
	const char *summary; /* description of one line */
	const char *licence; /* SPDX identifier */
	/* Creates an instance and stores it in *ret_inst. Called before any configuration is known;
	 * must be cheap and have no side effects. */
	int32_t (*create)(const struct rp_host *host, struct rp_instance **ret_inst);
	/* Frees the instance. Not called when create() failed. Changes nothing on the node. */
	void (*destroy)(struct rp_instance *inst);
	/* Returns the module's struct for a service id ("nri-rp.policy/1"), or NULL if the
	 * module does not offer the service. `inst` is NULL when the host requests RP_SCHEMA_1
	 * (config.h). */
	const void *(*service)(struct rp_instance *inst, const char *id);
};

/* ---- the ELF note that the host reads before dlopen ------------------------------------------ */

#define RP_NOTE_OWNER "nri-rp"
#define RP_NOTE_TYPE 1u
#define RP_NAME_MAX 32u
#define RP_VERSION_MAX 24u

struct rp_note {
	uint32_t abi_major;
	uint32_t abi_minor;
	uint32_t min_host_minor;
	uint32_t kinds;
	char name[RP_NAME_MAX];
	char version[RP_VERSION_MAX];
};

struct rp_elf_note {
	uint32_t owner_size;
	uint32_t desc_size;
	uint32_t type;
	char owner[8];
	struct rp_note note;
};

#define RP_MODULE_SYMBOL "rp_module_1"

/* The oldest minor of a host that the module can work with. A module that needs another one than 0
 * defines it before including this header. */
#ifndef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 0u
#endif

/*
 * Defines the module. Used once, in one source file, at file scope:
 *
 *	RP_MODULE_DEFINE("mine", "1.0", RP_KIND_POLICY, .summary = "…", .create = …);
 *
 * name, version and kinds must be literals, because the ELF note repeats them.
 */
#define RP_MODULE_DEFINE(name_, version_, kinds_, ...)                                             \
	__attribute__((section(".note.nri-rp"), used,                                              \
		       aligned(4))) static const struct rp_elf_note rp_module_note = {             \
		sizeof RP_NOTE_OWNER,                                                              \
		sizeof(struct rp_note),                                                            \
		RP_NOTE_TYPE,                                                                      \
		RP_NOTE_OWNER,                                                                     \
		{RP_ABI_MAJOR, RP_ABI_MINOR, RP_MIN_HOST_MINOR, (kinds_), name_, version_}};       \
	__attribute__((visibility("default"))) extern const struct rp_module rp_module_1;          \
	const struct rp_module rp_module_1 = {.size = sizeof(struct rp_module),                    \
					      .abi_minor = RP_ABI_MINOR,                           \
					      .min_host_minor = RP_MIN_HOST_MINOR,                 \
					      .kinds = (kinds_),                                   \
					      .name = name_,                                       \
					      .version = version_,                                 \
					      __VA_ARGS__}

#ifdef __cplusplus
}
#endif
#endif
