/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the modules' key tables as a JSON schema for editors, and as custom resource definitions
 * for API servers.
 */
#pragma once

#include "core/lib/conf/conf.h"

/*
 * Writes a JSON schema (2020-12) of a complete rp.conf with the sections of these modules. Returns
 * 0, -EINVAL for a table that cannot be expressed, or -ENOMEM.
 */
int conf_json_schema(const struct conf_named_schema *modules, unsigned n_modules, struct buf *out);

/*
 * Writes a List of CustomResourceDefinitions, one for each module whose section is the spec of a
 * custom resource. Returns 0, -EINVAL or -ENOMEM.
 */
int conf_crds(const struct conf_named_schema *modules, unsigned n_modules, struct buf *out);
