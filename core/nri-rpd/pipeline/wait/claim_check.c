/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/pipeline/wait/claim_check.h"

#include "core/nri-rpd/pipeline/internal.h"

void pipeline_claim_source(struct pipeline *p, const struct claim_source *source)
{
	p->wait.claim_check.source = source ? *source : (struct claim_source){NULL, NULL};
}

void pipeline_claim_checked(struct pipeline *p)
{
	p->wait.claim_check.answered++;
	hold_told(p);
}

static void claim_check_ask(struct pipeline *p, const struct request_about *a)
{
	struct claim_check *c = &p->wait.claim_check;
	for (uint32_t i = 0; c->source.ask && i < a->ctr->n_cdi; i++) {
		const struct ctr *claim = claim_by_cdi(p->env.cache, a->ctr->cdi[i]);
		if (claim && !claim_is_for(claim, a->pod->uid) &&
		    !c->source.ask(c->source.arg, claim))
			c->asked++;
	}
}

uint64_t claim_check_wait(struct pipeline *p, const struct request_about *a, bool first)
{
	const struct claim_check *c = &p->wait.claim_check;
	if (first)
		claim_check_ask(p, a);
	return c->asked == c->answered ? 0 : hold_limit(p, a->received_ns, CLAIM_CHECK_WAIT_MS);
}
