/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of Dynamic Resource Allocation for the policy's devices: registers with the kubelet,
 * publishes the devices (slices.c), and on the kubelet's request reads a ResourceClaim
 * (claim_object.c), has the daemon allocate it, and writes its CDI file (cdi.c).
 *
 * The driver runs while the daemon's dra.enabled is set. After that it stays registered until the
 * kubelet has unprepared all claims.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

#define DRA_DRIVER "nri-rp.nri.io"
#define DRA_DEFAULT_KUBELET_ROOT "/var/lib/kubelet"

struct dra;

struct dra_config {
	struct link *link;
	struct kube *kube;
	const char *node;
	const char *kubelet_root; /* folder with plugins and plugins_registry */
	const char *cdi_dir;
};

struct dra *dra_new(const struct dra_config *config); /* NULL: no memory */
/* Call after link_free. Accepts NULL; returns NULL. */
struct dra *dra_free(struct dra *d);
/* Starts or stops the driver, and sets the devices. Returns 0, -E2BIG or -ENOMEM. */
int dra_take(struct dra *d, const Agent__PublishedRequest *m);
/* Sends the pods of a claim to the daemon again, then answers req. */
void dra_check_claim(struct dra *d, const Agent__Claim *m, struct rpc_request *req);
/* Call when the daemon has connected: it may have lost its claims. */
void dra_daemon_connected(struct dra *d);
/* Call with each version of the Node. */
void dra_node_seen(struct dra *d, const json_t *node);
