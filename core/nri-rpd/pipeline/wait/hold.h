/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that has come and not begun: somebody outside has to say something first, the cluster
 * what a pod asks for, the kubelet which devices it has given. The loop goes on meanwhile. One
 * request is held at a time, as runtimes ask for one thing at a time; its continuation is kept
 * here.
 */
#ifndef PIPELINE_REQUEST_HOLD_H
#define PIPELINE_REQUEST_HOLD_H

#include "core/nri-rpd/pipeline/request/request.h"

struct hold {
	struct loop_timer
		*timer; /* to look again: it is too late now, or somebody has said something */
	struct request_about about;
	void (*resume)(void *arg); /* NULL: nothing is held */
	void *arg;
	unsigned told; /* times that somebody has said something */
};

int hold_init(struct pipeline *p);
void hold_fini(struct pipeline *p);
/* What a request may wait for is known, or will not be: a held one is looked at again, soon. */
void hold_told(struct pipeline *p);

/*
 * Before request_begin(). True: it has to wait for what somebody outside says; when it need not any
 * longer `resume` is called, from the loop, and what `about` points to stays as it is until then.
 * Nothing else may begin meanwhile. False: it may begin.
 */
bool request_hold(struct pipeline *p, const struct request_about *about, void (*resume)(void *arg),
		  void *arg);

/* What is held is nobody's any more, or begins at once: resume is not called. */
void request_unhold(struct pipeline *p);

#endif
