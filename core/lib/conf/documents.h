/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses YAML files that are no configuration, such as the simulator's descriptions and scenarios:
 * any number of documents, each a map, under the limits of a source of rp.conf. The trees have the
 * getters of the configuration.
 */
#pragma once

#include "core/lib/conf/conf.h"

struct documents {
	struct arena *arena;
	rp_cfg *roots; /* roots of the documents that are not empty */
	unsigned n_roots;
};

/* Parses a text; `name` is its name in messages. Returns 0 with *ret, to be freed by
 * documents_fini; -EINVAL with the first problem and its position; or -ENOMEM. */
int documents_parse(const char *name, const char *text, size_t len, struct documents *ret,
		    struct err *err);
void documents_fini(struct documents *d);
