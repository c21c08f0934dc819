/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/nri-rp-bridge/podlist.h"
#include "core/nri-rp-bridge/trace.h"
#include "core/lib/util/cmdline.h"
#include "core/lib/util/log.h"

enum source { SOURCE_CRI, SOURCE_CGROUPS };

/* Command line options; texts point into argv. */
struct options {
	enum source source;
	const char *listen, *runtime, *image; /* image NULL: same socket as the runtime */
	const char *nri_socket;
	bool strict, require_plugin;
	bool pod_event_after;
	struct trace_rules trace;
	/* Options of the source cgroups; see struct cgroup_source_config. */
	const char *root, *cgroup_root, *state;
	uint64_t reconcile_ms;
	bool migrate;
	struct podlist_config pods;
	enum log_level log_level;
	/* options were given that only the source cri, or only the source cgroups, supports */
	bool of_cri, of_cgroups;
};

/* Parses the command line. Results are as of cmdline_parse(). */
enum options_result options_parse(int argc, char **argv, struct options *ret);
