/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of nri-rp-agent. */
#pragma once

#include "core/lib/util/cmdline.h"
#include "core/lib/util/log.h"

struct options {
	const char *daemon_socket, *kubelet_socket, *pods_socket;
	const char *bridge_socket; /* socket of nri-rp-bridge; NULL: there is no bridge */
	/* Members of struct cluster_config. */
	const char *kubeconfig, *context, *service_account, *node, *ns, *config_map;
	const char *kubelet_root, *cdi_dir; /* folders for claims of devices */
	const char *plugin_dir; /* folder of resource plugins' sockets; NULL: no resource plugins */
	uint64_t plugin_grace_s;
	/* socket on which the pod-resources API is served; NULL: it is not served */
	const char *pod_resources_socket;
	bool kubelet_devices; /* list the kubelet's devices in the pod-resources API */
	enum log_level log_level;
};

enum options_result options_parse(int argc, char **argv, struct options *ret);
