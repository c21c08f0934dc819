/* SPDX-License-Identifier: Apache-2.0 */
/* Gives CPU 0 to every container for its own. */
#define TEST_ALLOCATE return take_cpu_0(inst, txn, ctr)

#include <nri-rp/cache.h>

static int32_t take_cpu_0(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);

#include "common.h"

static int32_t take_cpu_0(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	static const uint64_t cpu_0 = 1;
	struct rp_ids cpus = {&cpu_0, 1, 0};
	int32_t r = inst->cache->set_cpus(inst->host->ctx, txn, ctr, cpus);
	return r < 0 ? r : inst->cache->set_exclusive(inst->host->ctx, txn, ctr, cpus);
}

RP_MODULE_DEFINE("overlap", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
