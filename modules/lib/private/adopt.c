/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that containers had before their policy first placed them. */
#include "modules/lib/private/adopt.h"

#include <stdbool.h>

struct rp_ids adopt_cpus(const struct rp_ctr_info *info)
{
	bool told = rp_ids_empty(info->cpus) && RP_HAS(info, has_cpus);
	return told ? info->has_cpus : info->cpus;
}

int32_t adopt_common(const struct modhost *h, const rp_ctr *ctrs, uint32_t n, struct rp_idset *ret)
{
	struct rp_idset all, both;
	rp_idset_clear(&all);
	rp_idset_clear(ret);
	for (uint32_t i = 0; i < n; i++) {
		struct rp_ctr_info info = {.size = sizeof info};
		int32_t r = h->cache->get_ctr(h->ctx, ctrs[i], &info);
		if (r)
			return r;
		rp_idset_and(&both, rp_ids_of(&all), adopt_cpus(&info));
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&both));
		rp_idset_or(&all, rp_ids_of(&all), adopt_cpus(&info));
	}
	return 0;
}
