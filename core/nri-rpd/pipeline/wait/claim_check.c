/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/pipeline/wait/claim_check.h"

#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/hash.h"

void pipeline_claim_source(struct pipeline *p, const struct claim_source *source)
{
	p->wait.claim_check.source = source ? *source : (struct claim_source){NULL, NULL};
}

void pipeline_claim_checked(struct pipeline *p)
{
	p->wait.claim_check.answered++;
	hold_told(p);
}

/* Returns the number of the query about this claim and pod, if it was sent a short time ago; 0: it
 * was not. */
static uint64_t claim_check_find(const struct claim_check *c, uint64_t claim, unsigned pod)
{
	for (unsigned i = 0; i < CLAIM_QUERIES_KEPT; i++) {
		const struct claim_query *q = &c->latest[i];
		if (q->claim == claim && q->pod == pod && clock_ms() < q->until_ms)
			return q->number;
	}
	return 0;
}

/* Asks for the claims of the container that do not name its pod. A pod can name the claims of all
 * other pods, so the number of queries is limited. */
static void claim_check_ask(struct pipeline *p, const struct request_about *a)
{
	struct claim_check *c = &p->wait.claim_check;
	unsigned pod = hash_bytes(a->pod->uid, strlen(a->pod->uid)), n = 0;
	c->needed = 0;
	for (uint32_t i = 0; c->source.ask && i < a->ctr->n_cdi; i++) {
		const struct ctr *claim = claim_by_cdi(p->env.cache, a->ctr->cdi[i]);
		if (!claim || claim_is_for(claim, a->pod->uid))
			continue;
		uint64_t number = claim_check_find(c, claim->seq, pod);
		if (!number && n < CLAIM_QUERIES_MAX && !c->source.ask(c->source.arg, claim)) {
			n++;
			number = ++c->asked;
			c->latest[number % CLAIM_QUERIES_KEPT] = (struct claim_query){
				claim->seq, number, clock_ms() + CLAIM_QUERY_KEEP_MS, pod};
		}
		c->needed = number > c->needed ? number : c->needed;
	}
}

uint64_t claim_check_wait(struct pipeline *p, const struct request_about *a, bool first)
{
	const struct claim_check *c = &p->wait.claim_check;
	if (first)
		claim_check_ask(p, a);
	return c->needed <= c->answered ? 0 : hold_limit(p, a->received_ns, CLAIM_CHECK_WAIT_MS);
}
