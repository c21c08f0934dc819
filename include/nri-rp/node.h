/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.node/1 [since 1.3, a host may not have it]: the node as the cluster has it, and what
 * a module wants it to have there.
 *
 * Reading: the Node as the node agent has told it last, for policies, controllers and calculators
 * at any time. Without an agent, or before it has come, nothing is known, and each getter says so.
 *
 * Wishes: a module says which labels, annotations, taints and extended resources the Node is to
 * have for its sake. They are the instance's own, are no part of a transaction, and hold until they
 * are withdrawn or the instance is destroyed. They are set from commit() on, and again by each new
 * instance: what nobody wishes any more is taken off the Node. Setting what is set already costs a
 * comparison.
 *
 * The host merges the wishes of all instances: of two for one key, that of the instance which said
 * it first counts, and the other one waits behind it. The agent writes what is wished to the Node
 * and notes there what is the host's (annotation nri-rp/owned). A key that the Node has from
 * somebody else stays as it is, and `nri-rpctl status` says so. Without an agent `nri-rpctl node`
 * shows the wishes.
 *
 * In a trial wishes are checked and go nowhere.
 */
#ifndef NRI_RP_NODE_H
#define NRI_RP_NODE_H

#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_HOST_NODE_1 "nri-rp.host.node/1"
#define RP_NODE_WISHES_MAX 128u /* of one instance */
#define RP_NODE_KEY_MAX 317u /* bytes: a domain of 253, a slash, a name of 63 */
#define RP_NODE_LABEL_MAX 63u /* bytes of the value of a label or a taint */
#define RP_NODE_ANNOTATION_MAX 16384u /* bytes of the value of an annotation */

struct rp_node_taint {
	uint32_t size;
	uint32_t pad;
	const char *key, *value;
	const char *effect; /* "NoSchedule", "PreferNoSchedule", "NoExecute" */
};

struct rp_host_node {
	uint32_t size;
	uint32_t pad;
	/* ---- the Node; texts are valid until the callback returns ---- */
	/* The node's name in the cluster; NULL: nothing is known. */
	const char *(*name)(void *ctx);
	/* NULL: it has none of that key. */
	const char *(*label)(void *ctx, const char *key);
	const char *(*annotation)(void *ctx, const char *key);
	/* Indexes begin at 0; -RP_ENOENT ends the list. */
	int32_t (*taint)(void *ctx, uint32_t index, struct rp_node_taint *out);
	/* The amount of any resource: CPU in milli-CPU, everything else in units. -RP_ENOENT: the
	 * node has no such resource. */
	int32_t (*capacity)(void *ctx, const char *resource, int64_t *ret);
	int32_t (*allocatable)(void *ctx, const char *resource, int64_t *ret);
	/* ---- wishes ---- */
	/* A value of NULL withdraws the wish, which is no error when there is none. Keys are
	 * [DOMAIN/]NAME as Kubernetes has them; those of the domain nri-rp are the host's.
	 * -RP_EINVAL: key, value or effect are nothing that a Node can have; -RP_E2BIG;
	 * -RP_ENOMEM. */
	int32_t (*set_label)(void *ctx, const char *key, const char *value);
	int32_t (*set_annotation)(void *ctx, const char *key, const char *value);
	int32_t (*set_taint)(void *ctx, const char *key, const char *effect, const char *value);
	/* An extended resource, DOMAIN/NAME, in whole units from 0 on; RP_NOT_SET withdraws it. */
	int32_t (*set_resource)(void *ctx, const char *name, int64_t amount);
};

#ifdef __cplusplus
}
#endif
#endif
