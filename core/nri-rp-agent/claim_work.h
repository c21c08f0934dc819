/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims from the kubelet's request to its answer. A claim to prepare is read from the API server,
 * allocated by the daemon, and written as a CDI file; one to unprepare is released by the daemon,
 * and its file is removed. Both may be repeated. After a start all claims that the daemon or a CDI
 * file knows are compared with the API server: those that exist no more are released.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"
#include "core/nri-rp-agent/unary.h"
#include "proto/dra.pb-c.h"

#define CLAIM_WORK_MAX 256u /* largest number of claims of one request */

struct claim_work;

struct claim_work_config {
	struct link *link;
	struct kube *kube;
	const char *driver, *pool, *cdi_dir;
	void (*idle)(void *arg); /* the daemon has no claims */
	void *arg;
};

struct claim_work *claim_work_new(const struct claim_work_config *config); /* NULL: no memory */
struct claim_work *claim_work_free(struct claim_work *w); /* accepts NULL; returns NULL */
/* Prepares or unprepares claims, and answers u. */
void claim_work_serve(struct claim_work *w, struct unary *u, const Dra__ClaimsRequest *m,
		      bool prepare);
/* Reads a claim that the daemon has, sends its pods to the daemon, and answers req. */
void claim_work_check(struct claim_work *w, const Agent__Claim *m, struct rpc_request *req);
/* Compares all claims of the daemon and all CDI files with the API server, and releases those whose
 * claim was deleted. */
void claim_work_reconcile(struct claim_work *w);
