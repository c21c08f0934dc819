/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/nri-rp-agent/plugins.h"

/* Serves a request of the daemon for plugins. Returns false if the method is another one. */
bool ask_serve(struct plugins *p, struct rpc_request *req);

/* Requests a plugin's allocations and sends them to the daemon for comparison with the existing
 * pods. */
void ask_sweep(struct known_plugin *k);
