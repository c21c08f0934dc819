/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host as a module uses it: its services looked up once, and its text functions with formats.
 *
 * Messages are cut at MODHOST_TEXT_MAX bytes, never in the middle of a UTF-8 character, and are one
 * line: control characters become blanks.
 */
#ifndef NRI_RP_LIB_HOST_H
#define NRI_RP_LIB_HOST_H

#include <nri-rp/cache.h>
#include <nri-rp/calculator.h>
#include <nri-rp/config.h>
#include <nri-rp/host.h>
#include <nri-rp/module.h>
#include <nri-rp/node.h>
#include <nri-rp/speedselect.h>
#include <nri-rp/topology.h>

#define MODHOST_TEXT_MAX 1000

struct modhost {
	const struct rp_host *host;
	void *ctx; /* first argument of every function below */
	/* Never NULL after modhost_init when they were asked for in `need`. */
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
	/* MODHOST_TEXT_MAX bytes that the sentence of the last failure is kept in as well; NULL, as
	 * after modhost_init: it is not kept. */
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
/* What no policy can do without. */
#define MODHOST_POLICY (MODHOST_TOPOLOGY | MODHOST_CACHE | MODHOST_CONFIG)

/* Looks all services up. -RP_ENOTSUP, with a message that names it, when one of `need` is missing
 * or too old. */
int32_t modhost_init(struct modhost *h, const struct rp_host *host, uint32_t need);

/* For create(): an instance of `size` zeros that begins with its struct modhost, which is filled.
 * free() ends it. */
int32_t modhost_instance(const struct rp_host *host, size_t size, uint32_t need,
			 struct rp_instance **ret);

/* return modhost_fail(h, -RP_ENOSPC, "…", …); */
int32_t modhost_fail(const struct modhost *h, int32_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int32_t modhost_no_memory(const struct modhost *h); /* -RP_ENOMEM, and the sentence */
/* The same with the place of a configuration node in front; without a node it is modhost_fail. */
int32_t modhost_fail_at(const struct modhost *h, rp_cfg node, int32_t code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void modhost_log(const struct modhost *h, uint32_t level, uint64_t object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* For the container's trail; nothing happens on a host that keeps none. What no configuration
 * decided (NULL) is a plain note. */
void modhost_note(const struct modhost *h, rp_ctr ctr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void modhost_decided_by(const struct modhost *h, rp_ctr ctr, rp_cfg node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same for a text that is one line as it stands. */
void modhost_decided_line(const struct modhost *h, rp_ctr ctr, rp_cfg node, const char *line);
void modhost_note_line(const struct modhost *h, rp_ctr ctr, const char *line);

/* What goes to the host in other ways than by the functions above. */
void modhost_one_line(char *text);

/* A set of CPUs of the machine (RP_CPUS_…, RP_NODES_…), copied; empty when the host does not know
 * it. */
void modhost_set(const struct modhost *h, uint32_t which, struct rp_idset *ret);

/* For a module's service(): of a list that ends with one without an id. NULL: it has no such
 * service. */
struct modhost_service {
	const char *id;
	const void *service;
};
const void *modhost_service(const struct modhost_service *list, const char *id);

/* "true", "1" and their like, as Kubernetes reads booleans. 0, or -RP_EINVAL with *ret
 * untouched. */
int32_t modhost_parse_bool(const char *text, int *ret);

/* The list form of a set for messages, cut with "…" when it is longer than the buffer. Returns
 * buf. */
const char *modhost_set_text(struct rp_ids ids, char *buf, uint32_t size);

#endif
