/* SPDX-License-Identifier: Apache-2.0 */
/* The deferred request: computes its time limit from admission, claims, devices and plugins, and
 * resumes it. */
#include "core/nri-rpd/pipeline/wait/hold.h"

#include <assert.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/wait/admit.h"
#include "core/nri-rpd/pipeline/wait/claim_check.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/pipeline/wait/plugin_question.h"

#define LOG_SOURCE "request"

uint64_t hold_limit(const struct pipeline *p, uint64_t received_ns, uint64_t most_ms)
{
	uint64_t half = request_allowed_ms(p) / 2;
	uint64_t end = received_ns / 1000000u + (half < most_ms ? half : most_ms);
	return clock_ms() < end ? end : 0;
}

/* Returns the time (clock_ms) until which the request has to wait; 0: it need not wait. `first`:
 * the request has just arrived. */
static uint64_t wait_until(struct pipeline *p, const struct request_about *a, bool first)
{
	uint64_t until;
	switch (a->kind) {
	case REQ_RUN_POD:
		until = admit_wait(p, a->pod, a->received_ns, first);
		return until ? until : inquiry_wait_pod(p, a);
	case REQ_CREATE:
		until = claim_check_wait(p, a, first);
		if (!until)
			until = devices_wait(p, a->pod, a->ctr->name, a->received_ns);
		return until ? until : inquiry_wait_ctr(p, a);
	case REQ_SYNCHRONIZE:
		until = devices_wait_all(p, a->begins && first, a->received_ns);
		return a->ends ? until : 0;
	default:
		return 0;
	}
}

static void hold_arm(struct pipeline *p, uint64_t until)
{
	uint64_t now = clock_ms();
	(void)loop_timer_arm(p->wait.hold.timer, until > now ? until - now : 0);
}

static void look_again(void *arg)
{
	struct pipeline *p = arg;
	struct hold *h = &p->wait.hold;
	uint64_t until = h->resume ? wait_until(p, &h->about, false) : 0;
	void (*resume)(void *) = h->resume;
	if (until) {
		hold_arm(p, until);
	} else if (resume) {
		h->resume = NULL;
		resume(h->arg);
	}
}

bool request_hold(struct pipeline *p, const struct request_about *about, void (*resume)(void *arg),
		  void *arg)
{
	struct hold *h = &p->wait.hold;
	assert(!h->resume && !p->txn);
	if (!about->goes_on)
		inquiry_reset(p);
	uint64_t until = wait_until(p, about, true);
	if (!until)
		return false;
	log_debug("%s waits", request_name(about->kind));
	h->about = *about;
	h->resume = resume;
	h->arg = arg;
	hold_arm(p, until);
	return true;
}

void request_unhold(struct pipeline *p)
{
	p->wait.hold.resume = NULL;
	loop_timer_disarm(p->wait.hold.timer);
}

void hold_told(struct pipeline *p)
{
	p->wait.hold.told++;
	if (p->wait.hold.resume)
		hold_arm(p, 0);
}

int hold_init(struct pipeline *p)
{
	p->wait.hold.timer = loop_timer_new(p->env.loop, look_again, p);
	return p->wait.hold.timer ? 0 : -ENOMEM;
}

void hold_fini(struct pipeline *p)
{
	p->wait.hold.timer = loop_timer_free(p->wait.hold.timer);
}
