/* SPDX-License-Identifier: Apache-2.0 */
/* The resources annotation, in which a webhook of the cluster records a pod's exact requests. */
#pragma once

#include "core/nri-rpd/cache/derive.h"

/* Reads a container's requests and limits from the annotation noderesource.dev/resources (or
 * intel.com/resources). Returns 0 if the annotation has the container (*ret is filled), -ENOENT if
 * not, -EINVAL with a reason if it does not parse. */
int resources_annotation(const struct pod *pod, const char *ctr_name, struct needs *ret,
			 bool *ret_init, struct err *err);
/* Reads a container's amounts of an extended resource from the annotation. -ENOENT: none; -EINVAL:
 * malformed. */
int resources_annotation_extended(const struct pod *pod, const char *ctr_name, const char *resource,
				  int64_t *ret_request, int64_t *ret_limit);
