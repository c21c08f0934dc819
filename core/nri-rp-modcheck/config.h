/* SPDX-License-Identifier: Apache-2.0 */
/* The module's configuration, and the pairs of --annotations. */
#pragma once

#include "core/nri-rp-modcheck/check.h"

/* Loads the module's section and validates it: from --config, or with only the required keys. */
int config_load(const struct check *c, struct conf **ret, struct err *err);
/* Loads the section with additional lines "key: value". */
int config_load_with(const struct check *c, const char *more, struct conf **ret, struct err *err);

/* Loads the section with one key of the table set to a value, and the keys that its path
 * requires. */
int config_load_variant(const struct check *c, const char *path, const char *value,
			struct conf **ret, struct err *err);
/* Reads the pairs of --annotations; their texts live as long as *ret_text. */
int config_annotations(const char *path, struct kv **ret, unsigned *ret_n,
		       struct fragment **ret_text, struct err *err);
