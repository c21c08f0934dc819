/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to the host for modules: its services, looked up once, and its text functions with
 * formats.
 *
 * Messages are cut at MODHOST_TEXT_MAX bytes, never within a UTF-8 character, and are one line:
 * control characters become blanks.
 */
#ifndef NRI_RP_LIB_HOST_H
#define NRI_RP_LIB_HOST_H

#include <stdbool.h>

#include <nri-rp/cache.h>
#include <nri-rp/calculator.h>
#include <nri-rp/config.h>
#include <nri-rp/host.h>
#include <nri-rp/module.h>
#include <nri-rp/node.h>
#include <nri-rp/policy.h>
#include <nri-rp/speedselect.h>
#include <nri-rp/topology.h>

#define MODHOST_TEXT_MAX 1000

struct modhost {
	const struct rp_host *host;
	void *ctx; /* first argument of all service functions */
	/* Services of `need` in modhost_init() are never NULL. */
	const struct rp_host_topology *topology;
	const struct rp_host_cache *cache;
	const struct rp_host_config *config;
	const struct rp_host_explain *explain;
	const struct rp_host_timer *timer;
	const struct rp_host_work *work;
	const struct rp_host_speedselect *speedselect; /* NULL: an older host */
	const struct rp_host_settings *settings; /* NULL: an older host */
	const struct rp_host_noderes *noderes; /* NULL: an older host */
	const struct rp_host_node *node; /* NULL: an older host */
	const struct rp_host_evict *evict; /* NULL: an older host */
	const struct rp_host_hints *hints; /* NULL: an older host */
	const struct rp_host_usage *usage; /* NULL: an older host */
	const struct rp_host_runtime *runtime; /* NULL: an older host */
	/* Buffer of MODHOST_TEXT_MAX bytes that receives a copy of the last failure's sentence;
	 * NULL, as after modhost_init(): none. */
	char *why;
};

#define MODHOST_TOPOLOGY 0x01u
#define MODHOST_CACHE 0x02u
#define MODHOST_CONFIG 0x04u
#define MODHOST_EXPLAIN 0x08u
#define MODHOST_TIMER 0x10u
#define MODHOST_WORK 0x20u
#define MODHOST_NODERES 0x40u
#define MODHOST_CALCULATOR (MODHOST_CONFIG | MODHOST_NODERES)
/* The services that every policy needs. */
#define MODHOST_POLICY (MODHOST_TOPOLOGY | MODHOST_CACHE | MODHOST_CONFIG)

/* Looks up all services. -RP_ENOTSUP, with a message that names it, if a service of `need` is
 * missing or too old. */
int32_t modhost_init(struct modhost *h, const struct rp_host *host, uint32_t need);

/* For create(): allocates an instance of `size` zeroed bytes that begins with a struct modhost,
 * which is filled. The module frees it with free(). */
int32_t modhost_instance(const struct rp_host *host, size_t size, uint32_t need,
			 struct rp_instance **ret);

/* Stores the latest measured usage of a container. False: nothing was measured yet. */
bool modhost_usage(const struct modhost *h, rp_ctr ctr, struct rp_usage *ret);

/* Records a formatted failure and returns code: return modhost_fail(h, -RP_ENOSPC, "…", …); */
int32_t modhost_fail(const struct modhost *h, int32_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int32_t modhost_no_memory(const struct modhost *h); /* records the failure and returns -RP_ENOMEM */
/* Sets the limits of a device's last capacity, if the host has limits (rp_devices_sink). */
void modhost_limits(const struct rp_devices_sink *sink, int64_t min, int64_t max);
/* Returns a negative result in words: RP_E codes have the numbers of errno, so that the results of
 * services and of the kernel are one vocabulary. [any] */
const char *modhost_why(int32_t code);
/* Records a failure with the place of a configuration node before the text; without a node as
 * modhost_fail(). */
int32_t modhost_fail_at(const struct modhost *h, rp_cfg node, int32_t code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Refuses a configuration because of a node: records the failure as modhost_fail_at() does and
 * returns -RP_EINVAL. */
int32_t modhost_refuse(const struct modhost *h, rp_cfg node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Logs a formatted line. `object` is the container or pod that it is about, or 0. */
void modhost_log(const struct modhost *h, uint32_t level, uint64_t object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Adds a line to the container's trail, if the host has trails. modhost_decided_by() names the
 * configuration node that decided; NULL makes it a plain note. */
void modhost_note(const struct modhost *h, rp_ctr ctr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void modhost_decided_by(const struct modhost *h, rp_ctr ctr, rp_cfg node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Adds a text that is already one line. */
void modhost_decided_line(const struct modhost *h, rp_ctr ctr, rp_cfg node, const char *line);
void modhost_note_line(const struct modhost *h, rp_ctr ctr, const char *line);

/* Replaces control characters by blanks and cuts at MODHOST_TEXT_MAX: for texts that a module
 * passes to host functions directly. */
void modhost_one_line(char *text);

/* Copies a set of the topology (RP_CPUS_…, RP_NODES_…); empty if the host does not know it. */
void modhost_set(const struct modhost *h, uint32_t which, struct rp_idset *ret);

/* A service of the module with its id, in a list that ends with an element without id. */
struct modhost_service {
	const char *id;
	const void *service;
};
/* Returns a service from a list, for a module's service(). NULL: the list does not have it. */
const void *modhost_service(const struct modhost_service *list, const char *id);

/* Parses a boolean as Kubernetes does ("true", "1" and others). Returns 0, or -RP_EINVAL with *ret
 * unchanged. */
int32_t modhost_parse_bool(const char *text, int *ret);

/* Writes the list form of a set for messages, cut with "…" if it is longer than the buffer. Returns
 * buf. */
const char *modhost_set_text(struct rp_ids ids, char *buf, uint32_t size);

#endif
