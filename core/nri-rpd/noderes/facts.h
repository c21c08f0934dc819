/* SPDX-License-Identifier: Apache-2.0 */
/* What CPUs a machine has, as far as a ratio for their model needs it: from its files, or from the
 * annotation by which others tell it of a Node. */
#ifndef NODERES_FACTS_H
#define NODERES_FACTS_H

#include <stdbool.h>

#include "core/lib/util/fs.h"

#define CPU_FACTS_ANNOTATION "node.koordinator.sh/cpu-basic-info"

struct cpu_facts {
	bool known, hyper_threads, turbo;
	char model[128];
};

/* Not known: the kernel does not name the model. */
void cpu_facts_read(const struct fs_root *root, struct cpu_facts *ret);
/* The annotation's text; not known: it makes no sense, or names no model. */
void cpu_facts_parse(const char *text, struct cpu_facts *ret);

#endif
