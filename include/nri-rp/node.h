/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.node/1 [since 1.3, a host may not have it]: the cluster's Node object, and what a
 * module wants to be set there. All functions may be called in every callback, on the main thread.
 *
 * Getters return the Node as the node agent reported it last. Without an agent, or before it has
 * connected, they return NULL or -RP_ENOENT.
 *
 * Wishes are labels, annotations, taints and extended resources that the Node is to have for a
 * module. They belong to the instance, are no part of a transaction, and last until they are
 * withdrawn or the instance is destroyed. A module sets them from commit() on, and each new
 * instance sets them again: a key without a wish is removed from the Node. Setting an unchanged
 * wish costs only a comparison.
 *
 * The host merges the wishes of all instances. If two instances wish different values for one key,
 * the first wish is effective, and the second one becomes effective when the first is withdrawn.
 * The agent writes the wishes to the Node and records there which keys belong to the host
 * (annotation nri-rp/owned). A key that the Node has from another component is not changed, and
 * `nri-rpctl status` reports it. `nri-rpctl node` shows the wishes also without an agent.
 *
 * In a trial wishes are checked, but not published.
 */
#ifndef NRI_RP_NODE_H
#define NRI_RP_NODE_H

#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_HOST_NODE_1 "nri-rp.host.node/1"
#define RP_NODE_WISHES_MAX 128u /* largest number of wishes of one instance */
#define RP_NODE_KEY_MAX 317u /* limit in bytes: a domain of 253, a slash, a name of 63 */
#define RP_NODE_LABEL_MAX 63u /* limit in bytes of the value of a label or a taint */
#define RP_NODE_ANNOTATION_MAX 16384u /* limit in bytes of the value of an annotation */

struct rp_node_taint {
	uint32_t size;
	uint32_t pad;
	const char *key, *value;
	const char *effect; /* "NoSchedule", "PreferNoSchedule" or "NoExecute" */
};

struct rp_host_node {
	uint32_t size;
	uint32_t pad;
	/* ---- the Node; texts are valid until the callback returns ---- */
	/* Returns the node's name in the cluster; NULL: unknown. */
	const char *(*name)(void *ctx);
	/* Return the value of a key; NULL: the Node does not have this key. */
	const char *(*label)(void *ctx, const char *key);
	const char *(*annotation)(void *ctx, const char *key);
	/* Fills *out with taint `index`, counted from 0. -RP_ENOENT: past the last one. */
	int32_t (*taint)(void *ctx, uint32_t index, struct rp_node_taint *out);
	/* Store the amount of a resource: CPU in milli-CPU, all others in units. -RP_ENOENT:
	 * the node does not have this resource. */
	int32_t (*capacity)(void *ctx, const char *resource, int64_t *ret);
	int32_t (*allocatable)(void *ctx, const char *resource, int64_t *ret);
	/* ---- wishes ---- */
	/* Set a wish. The value NULL withdraws it, and is no error without a wish. Keys have
	 * the form [DOMAIN/]NAME of Kubernetes; the domain nri-rp is reserved for the host.
	 * -RP_EINVAL: the key, the value or the effect is not valid in a Node; -RP_E2BIG: a limit
	 * is exceeded; -RP_ENOMEM. */
	int32_t (*set_label)(void *ctx, const char *key, const char *value);
	int32_t (*set_annotation)(void *ctx, const char *key, const char *value);
	int32_t (*set_taint)(void *ctx, const char *key, const char *effect, const char *value);
	/* Sets the amount of an extended resource, DOMAIN/NAME, in whole units, at least 0.
	 * RP_NOT_SET withdraws the wish. */
	int32_t (*set_resource)(void *ctx, const char *name, int64_t amount);
};

#ifdef __cplusplus
}
#endif
#endif
