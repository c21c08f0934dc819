/* SPDX-License-Identifier: Apache-2.0 */
/* The command rebalance. */
#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/rebalance.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"

/* Runs rebalance. The limit on moves is the argument, else the configuration's; 0: no limit. */
enum call_result run_rebalance(struct call *call)
{
	uint64_t budget = conf_core(pipeline_conf(call->p))->rebalance_moves;
	struct err err = ERR_INIT;
	unsigned n_moves;
	if (call->req->n_args &&
	    (str_to_u64(call->req->args[0], &budget) || budget > CACHE_CTRS_MAX))
		return call_fail(call, CTL_USAGE, "%s: expected a number of containers, 0 to %u",
				 call->req->args[0], CACHE_CTRS_MAX);
	int r = pipeline_rebalance(call->p, (uint32_t)budget, &n_moves, &err);
	if (r)
		return call_fail(call, CTL_FAILED, "%s", err_text(&err, r));
	json_obj(&call->j);
	json_kstr(&call->j, "policy", instance_name(pipeline_policy(call->p)));
	json_kuint(&call->j, "moved", n_moves);
	json_end_obj(&call->j);
	return CALL_DONE;
}
