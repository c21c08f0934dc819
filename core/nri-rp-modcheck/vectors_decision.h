/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of a module's own decisions. */
#pragma once

#include "core/nri-rp-modcheck/vectors.h"

/* Calls the module's own decision of that kind and compares the results. */
int vector_decide(struct vector *v, struct instance *i, const char *kind, struct err *err);
