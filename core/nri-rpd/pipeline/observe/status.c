/* SPDX-License-Identifier: Apache-2.0 */
/* Status of the pipeline and its controllers. */
#include <utlist.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/updates.h"

unsigned pipeline_n_degraded(const struct pipeline *p)
{
	unsigned n = 0;
	const struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr)
		n += ctr_live(ctr->cur.state) && ctr->cur.degraded;
	return n;
}

static unsigned n_deaths(const struct pipeline *p)
{
	unsigned n = 0;
	while (crumb_history(p->env.crumb, n))
		n++;
	return n;
}

void pipeline_status(const struct pipeline *p, struct pipeline_status *ret)
{
	*ret = (struct pipeline_status){
		.policy = p->policy ? instance_name(p->policy) : "none",
		.configured_policy = p->reloads.configured_policy,
		.safe_mode = p->reloads.safe_mode_reason[0] != '\0',
		.safe_mode_reason = p->reloads.safe_mode_reason,
		.config_path = p->config_path,
		.config_generation = p->reloads.generation,
		.config_undone = p->reloads.undo.undone,
		.config_ok = p->reloads.error[0] == '\0',
		.config_error = p->reloads.error,
		.config_problems = p->reloads.problems,
		.config_kept_ns = p->reloads.saved_ns,
		.started_ns = p->observe.started_ns,
		.n_pods = cache_n_pods(p->env.cache),
		.n_ctrs = cache_n_ctrs(p->env.cache),
		.n_degraded = pipeline_n_degraded(p),
		.n_updates_waiting = updates_waiting(p),
		.n_module_deaths = n_deaths(p),
		.store_state = p->state.store_state,
	};
	ret->degraded = conditions_each(p, NULL, NULL) != 0;
}

DEFINE_GETTER(pipeline_n_controllers, unsigned, p->controllers.n)

void pipeline_controller(const struct pipeline *p, unsigned i, struct controller_status *ret)
{
	static const char *const modes[] = {
		[CONF_RELAXED] = "relaxed",
		[CONF_OPTIONAL] = "optional",
		[CONF_REQUIRED] = "required",
		[CONF_DISABLED] = "disabled",
	};
	const struct controller *c = p->controllers.list[i];
	*ret = (struct controller_status){
		.name = c->name,
		.mode = modes[c->mode],
		.running = controller_runs(c),
		.calculator = c->kind == RP_KIND_CALCULATOR,
		.error = c->error,
		.pending = c->results[RP_APPLY_PENDING],
		.done = c->results[RP_APPLY_DONE],
		.partial = c->results[RP_APPLY_PARTIAL],
		.failed = c->results[RP_APPLY_FAILED],
	};
}

DEFINE_GETTER(pipeline_stats, const struct pipeline_stats *, &p->stats)
