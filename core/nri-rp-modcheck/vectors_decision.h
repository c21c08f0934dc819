/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of a module's own decisions. */
#ifndef MODCHECK_VECTORS_DECISION_H
#define MODCHECK_VECTORS_DECISION_H

#include "core/nri-rp-modcheck/vectors.h"

/* Calls the module's own decision of that kind and compares the results. */
int vector_decide(struct vector *v, struct instance *i, const char *kind, struct err *err);

#endif
