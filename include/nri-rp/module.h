/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nri-rp module ABI, major 1.
 *
 * A module is one shared object, <module directory>/<name>.so, that defines exactly one exported
 * symbol with RP_MODULE_DEFINE. The host (nri-rpd) reads the module's ELF note before it loads the
 * file, so that a module of another major, a garbage file or somebody else's library is refused
 * without running any of its code.
 *
 * The rules of the border, for everything under <nri-rp/>:
 *
 *   Threads     Every function is called on the host's main thread, never nested, never at the same
 *               time as another one,
 *               unless it is marked [any] or [worker]. A module takes no locks, starts no threads,
 *               never blocks, never
 *               exits, never writes to stdout or stderr. Work that can block goes to the host's
 *               worker (host.h). The host
 *               refuses a call of its functions that are not marked [any] on any other thread: it
 *               has no effect, returns -RP_EPERM (NULL, 0 or "" by the type of the result), and is
 *               logged and counted as a defect of the module. In nri-rp-modcheck such a call fails
 *               the case.
 *   Structs     Each begins with `uint32_t size`. Whoever fills a struct sets size to what it
 *               knows; whoever reads it looks
 *               only at members that size covers (RP_HAS). Members are only ever appended within a
 *               major. In a struct
 *               that asks for something (rp_key, rp_nr_item, rp_mount, rp_device) the host refuses
 *               what it is too old to know, unless that is all zero: half of what was said is not
 *               what was said. Functions that it does not know it just never calls.
 *   Results     0 is success. A negative value is one of the RP_E codes; a sentence for people goes
 *               through fail() first. A
 *               positive value means something only where its function says so.
 *   Memory      Nothing changes owner. Arguments are borrowed for the call; what a host getter
 *               returns stays valid until the
 *               module's callback returns, where nothing else is said. What a module returns stays
 *               valid until the same
 *               function is called again or the instance is destroyed.
 *   Text        UTF-8, NUL-terminated, never NULL where a "" will do.
 *   Amounts     CPU in milli-CPU, memory in bytes, both int64_t.
 *
 * Services in both directions are found by name: rp_host.service() gives what the host offers,
 * rp_module.service() what the module does. An unknown name gives NULL: that is how older and newer
 * sides find out about each other.
 *
 * Changes:
 *   1.0 first release
 *   1.1 nri-rp.host.usage/1, RP_EVENT_PRESSURE, the budget of RP_EVENT_REBALANCE;
 *   rp_controller.measure, rp_host_work.figure
 *   1.2 nri-rp.host.speedselect/1, nri-rp.host.settings/1, nri-rp.extended/1, rp_policy.stop,
 *   rp_policy.unmanaged,
 *       rp_host_cache.pod_resource, rp_ctr_info.has_cpus and has_mems
 *   1.3 rp_host_cache.arg, set_args and set_group, rp_ctr_info.asked_shares, asked_quota and
 *   asked_period,
 *       rp_host_topology.simulated, nri-rp.calculator/1, nri-rp.host.noderes/1,
 *       nri-rp.host.node/1, nri-rp.host.evict/1, nri-rp.host.runtime/1, RP_EVENT_RUNTIME,
 *       nri-rp.host.hints/1,
 *       nri-rp.decision/1, nri-rp.allocation/1,
 *       rp_policy.admit_pod and pod_removed, rp_host_cache.list_pods, get_pod_private,
 *       set_pod_private and may_wait, rp_pod_info.flags, cpu_request,
 *       cpu_limit, mem_limit and mem_request, rp_host_cache.pod_ctr,
 *       add_mount, add_device and add_cdi, RP_F_HUGEPAGES and RP_F_SWAP,
 *       RP_F_TOPTIER_LIMIT, RP_TAKES_TOPTIER_LIMIT,
 *       rp_host_work.post and read_node, RP_EVENT_POSTED; different values of one thing
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

/* Is `field` within the struct p points to, as its filler knew it? */
#define RP_HAS(p, field)                                                                           \
	((p) && (p)->size >= offsetof(__typeof__(*(p)), field) + sizeof((p)->field))

/* Error codes that cross the border, negated (return -RP_EINVAL). The values are Linux errno
 * numbers. */
/* [since 1.3] a function that is not marked [any] was called on another thread than the main one */
#define RP_EPERM 1
#define RP_ENOENT 2 /* there is no such thing (annotation, key, private data) */
#define RP_EAGAIN 11 /* not now; try again later */
#define RP_ENOMEM 12
#define RP_EBUSY 16 /* somebody else holds what would be needed */
#define RP_EINVAL 22 /* malformed: a configuration, an annotation, an argument */
#define RP_ENOSPC 28 /* cannot be placed: not enough of something */
#define RP_E2BIG 7 /* over a limit of the host */
#define RP_ENOTSUP 95 /* not supported by this host or on this machine */
#define RP_ESTALE 116 /* the id names an object that is gone */

/* Kinds, a bit mask: what a module can be used as. */
#define RP_KIND_POLICY 0x1u
#define RP_KIND_CONTROLLER 0x2u
#define RP_KIND_CALCULATOR 0x4u

/* Levels of log(). */
#define RP_LOG_ERROR 3u
#define RP_LOG_WARNING 4u
#define RP_LOG_NOTICE 5u
#define RP_LOG_INFO 6u
#define RP_LOG_DEBUG 7u

/* Objects of the host's cache. 0 is none; the id of a removed object is never used again
 * (-RP_ESTALE). */
typedef uint64_t rp_pod;
typedef uint64_t rp_ctr;

struct rp_instance; /* the module's own; the host only passes it back */

/* What the host gives every instance. Valid until destroy() has returned. */
struct rp_host {
	uint32_t size;
	uint32_t abi_minor;
	void *ctx; /* first argument of every host function */
	/* The service's struct, or NULL. Allowed from create() on. */
	const void *(*service)(void *ctx, const char *id);
	/* One line of log. `object` is a container or pod it is about, or 0. */
	void (*log)(void *ctx, uint32_t level, uint64_t object, const char *text);
	/* Records why the running callback is going to fail and returns `code`: return fail(ctx,
	 * -RP_ENOSPC, "…"). One sentence, no newline. The last one recorded before the callback
	 * returns is the one that people see. */
	int32_t (*fail)(void *ctx, int32_t code, const char *text);
};

struct rp_module {
	uint32_t size;
	uint32_t abi_minor; /* of the headers it was built with */
	uint32_t min_host_minor; /* an older host refuses to load it */
	uint32_t kinds;
	const char *name; /* file name without .so: [a-z0-9][a-z0-9-]*, at most 31 bytes */
	const char *version;
	const char *summary; /* one line */
	const char *licence; /* SPDX identifier */
	/* Makes an instance. Cheap and without side effects: no configuration is known yet. */
	int32_t (*create)(const struct rp_host *host, struct rp_instance **ret_inst);
	/* Frees it. Not called when create() failed. Nothing on the node is changed by it. */
	void (*destroy)(struct rp_instance *inst);
	/* The module's struct for a service id ("nri-rp.policy/1"), or NULL. */
	const void *(*service)(struct rp_instance *inst, const char *id);
};

/* ---- the note: what the host reads before dlopen --------------------------------------------- */

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

/* The oldest minor of a host that the module can work with; define it before including this header
 * when it is not 0. */
#ifndef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 0u
#endif

/*
 * Defines the module. In one source file, at file scope:
 *
 *	RP_MODULE_DEFINE("mine", "1.0", RP_KIND_POLICY, .summary = "…", .create = …);
 *
 * name, version and kinds have to be literals, since the note repeats them.
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
