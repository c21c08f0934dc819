/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHE_RESOURCES_H
#define CACHE_RESOURCES_H

#include "core/nri-rpd/cache/derive.h"

/* The annotation noderesource.dev/resources (or intel.com/resources): what a webhook wrote down of
 * the pod's requirements. Returns 0 when it has the container (*ret is filled), -ENOENT when not,
 * -EINVAL with a reason when it does not parse. */
int resources_annotation(const struct pod *pod, const char *ctr_name, struct needs *ret,
			 bool *ret_init, struct err *err);
int resources_annotation_extended(const struct pod *pod, const char *ctr_name, const char *resource,
				  int64_t *ret_request, int64_t *ret_limit);

#endif
