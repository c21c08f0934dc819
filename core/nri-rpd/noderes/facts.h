/* SPDX-License-Identifier: Apache-2.0 */
/* CPU model of a machine, as needed for a ratio by model: from the machine's files, or from the
 * annotation by which agents report it on a Node. */
#pragma once

#include <stdbool.h>

#include "core/lib/util/fs.h"

#define CPU_FACTS_ANNOTATION "node.koordinator.sh/cpu-basic-info"

struct cpu_facts {
	bool known, hyper_threads, turbo;
	char model[128];
};

/* Reads the model from /proc/cpuinfo; unknown if the kernel does not name it. */
void cpu_facts_read(const struct fs_root *root, struct cpu_facts *ret);
/* Parses the annotation's text; unknown if it is malformed or names no model. */
void cpu_facts_parse(const char *text, struct cpu_facts *ret);
