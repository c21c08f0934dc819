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

#endif
