/* SPDX-License-Identifier: Apache-2.0 */
/* What police.c, tell.c and gather.c share. */
#ifndef NRI_RP_BRIDGE_POLICE_INTERNAL_H
#define NRI_RP_BRIDGE_POLICE_INTERNAL_H

#include "core/grpc/call.h"
#include "core/nri-rp-bridge/ask.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/util/fields.h"
#include "core/nri-rp-bridge/police.h"

#define SERVICE_V1 "/runtime.v1.RuntimeService/"
#define SERVICE_V1ALPHA2 "/runtime.v1alpha2.RuntimeService/"

struct gather;

struct police {
	struct police_config config;
	struct nri_runtime *nri;
	struct model model;
	/* Which Synchronize the model is of: what was begun before another one is of a plugin that
	 * is gone. */
	unsigned generation;
	char service[64]; /* by which the runtime is asked: as the kubelet asks last */
	struct police_call *calls;
	struct notice *notices;
	struct gather *gather; /* under way */
	struct loop_timer *poll;
};

/* ---- tell.c ---- */

/* What has happened, and what follows from it. */
enum effect { EFFECT_NONE, EFFECT_REMOVE };
/* Told when its turn comes; out of memory is logged. ctr NULL: an event of the pod. */
void notice_tell(struct police *p, Nri__Event event, struct pod *pod, struct ctr *ctr,
		 enum effect effect);
void notices_free(struct police *p);
/* A container has ended, if it had not before. */
void tell_stopped(struct police *p, struct ctr *ctr);
/* A container is no more. */
void tell_removed(struct police *p, struct ctr *ctr);

/* Updates of containers, but of the one with the id `except`. done comes once, perhaps from inside:
 * how many failed. */
void carry_updates(struct police *p, Nri__ContainerUpdate *const *list, size_t n,
		   const char *except, void (*done)(unsigned failed, void *arg), void *arg);
/* Sets what waited for the container to have an id. */
void carry_pending(struct police *p, struct ctr *ctr);
/* Asks the runtime. */
int police_call_runtime(struct police *p, const char *method, const ProtobufCMessage *msg,
			uint32_t timeout_ms, grpc_done done, void *arg);

/* ---- gather.c ---- */

void gather_begin(void *police); /* of nri_runtime_config */
struct gather *gather_free(struct gather *g);
void gather_poll(void *police);
void gather_poll_later(struct police *p);

#endif
