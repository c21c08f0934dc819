/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRI_RP_AGENT_PLUGINASK_H
#define NRI_RP_AGENT_PLUGINASK_H

#include "core/nri-rp-agent/plugins.h"

/* pluginask.c */
bool ask_serve(struct plugins *p, struct rpc_request *req);

/* Asks what it has allocated, and has the daemon look at that. */
void ask_sweep(struct known_plugin *k);

#endif
