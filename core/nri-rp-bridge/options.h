/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRI_RP_BRIDGE_OPTIONS_H
#define NRI_RP_BRIDGE_OPTIONS_H

#include "core/nri-rp-bridge/trace.h"
#include "core/util/cmdline.h"
#include "core/util/log.h"

/* Texts are argv's. */
struct options {
	const char *listen, *runtime, *image; /* image NULL: the runtime's */
	const char *nri_socket;
	bool strict, require_plugin;
	bool pod_event_after;
	struct trace_rules trace;
	enum log_level log_level;
};

/* As cmdline_parse. */
enum options_result options_parse(int argc, char **argv, struct options *ret);

#endif
