/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "modules/topology-aware/ta.h"

struct cpus *cpus_new(struct rp_ids ids, int32_t *ret_code)
{
	uint32_t nw = ids.nw;
	while (nw && !ids.w[nw - 1])
		nw--;
	if (!nw)
		return NULL;
	struct cpus *c = malloc(sizeof *c + nw * sizeof c->w[0]);
	if (!c) {
		*ret_code = -RP_ENOMEM;
		return NULL;
	}
	c->nw = nw;
	c->n = rp_ids_count(ids);
	memcpy(c->w, ids.w, nw * sizeof c->w[0]);
	return c;
}
