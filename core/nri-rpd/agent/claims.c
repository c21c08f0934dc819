/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/claims.h"
#include "core/nri-rpd/agent/call.h"

#include <string.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/hugepages.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/agent_protocol.h"
#include "proto/agent.pb-c.h"

#define ARENA_BLOCK 4096u
#define CLAIM_ARENA (256u << 10)
#define LIST_ARENA (32u << 20)

/* Returns true for names and UIDs of Kubernetes objects. */
static bool claims_good_name(const char *name, size_t max)
{
	size_t len = strnlen(name, max + 1);
	return len && len <= max &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '\0';
}

static char *claims_join(struct arena *a, char *const *items, size_t n)
{
	_cleanup_(buf_fini) struct buf b = BUF_INIT;
	for (size_t i = 0; i < n; i++)
		(void)buf_printf(&b, "%s%s", i ? " " : "", items[i]);
	return b.failed ? NULL : arena_strdup(a, buf_text(&b));
}

static bool claims_good_part(const struct claim_part *part)
{
	return claims_good_name(part->device, AGENT_NAME_MAX - 1) && part->cpus >= 0 &&
	       part->cpus <= AGENT_CLAIM_CPUS_MAX && part->memory >= 0 &&
	       part->memory <= DERIVE_BYTES_MAX;
}

static int claims_read_huge(Agent__Amount *const *list, size_t n, struct huge *ret)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t page = str_has_prefix(list[i]->name, HUGE_RESOURCE)
					? hugepages_size(list[i]->name + strlen(HUGE_RESOURCE))
					: 0;
		if (!page || i == HUGE_SIZES_MAX || list[i]->amount <= 0 ||
		    list[i]->amount > DERIVE_BYTES_MAX)
			return -EINVAL;
		ret->of[ret->n++] =
			(struct huge_request){.page = page, .bytes = (uint64_t)list[i]->amount};
	}
	return 0;
}

int agent_decode_claim(struct arena *a, const uint8_t *data, size_t n, struct claim_desc *ret)
{
	const Agent__PrepareClaimRequest *m = PB_UNPACK(a, agent__prepare_claim_request, n, data);
	if (!m)
		return -EBADMSG;
	uint32_t n_parts = m->n_more < CLAIM_PARTS_MAX ? 1 + (uint32_t)m->n_more : 0;
	struct claim_part *parts = arena_array(a, n_parts + 1, sizeof *parts);
	if (!parts)
		return -ENOMEM;
	int r = 0;
	for (uint32_t i = 0; i < n_parts && !r; i++) {
		const Agent__ClaimPart *more = i ? m->more[i - 1] : NULL;
		parts[i] = more ? (struct claim_part){more->device, more->cpus, more->memory, {0}}
				: (struct claim_part){m->device, m->cpus, m->memory, {0}};
		r = claims_read_huge(more ? more->huge : m->huge, more ? more->n_huge : m->n_huge,
				     &parts[i].huge);
	}
	*ret = (struct claim_desc){.uid = m->uid,
				   .ns = m->namespace_,
				   .name = m->name,
				   .parts = parts,
				   .n_parts = n_parts};
	if (r || !claims_good_name(m->uid, CLAIM_UID_MAX) ||
	    !claims_good_name(m->namespace_, AGENT_NAME_MAX - 1) ||
	    !claims_good_name(m->name, AGENT_NAME_MAX - 1) || !n_parts ||
	    m->n_pods > AGENT_CLAIM_PODS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < n_parts; i++)
		if (!claims_good_part(&parts[i]))
			return -EINVAL;
	for (size_t i = 0; i < m->n_pods; i++)
		if (!claims_good_name(m->pods[i], CLAIM_UID_MAX))
			return -EINVAL;
	ret->users = claims_join(a, m->pods, m->n_pods);
	return ret->users ? 0 : -ENOMEM;
}

static void claims_fill(const struct ctr *claim, Agent__Claim *ret)
{
	const struct decision *d = &claim->cur;
	if (!ret)
		return;
	agent__claim__init(ret);
	ret->uid = (char *)(uintptr_t)claim_uid(claim);
	ret->namespace_ = claim->pod->ns;
	ret->name = claim->pod->name;
	ret->device = claim->device;
	ret->cpus = d->cpus ? (char *)(uintptr_t)d->cpus->text : ret->cpus;
	ret->mems = d->mems ? (char *)(uintptr_t)d->mems->text : ret->mems;
}

/* Returns the CPUs of all parts of a claim; NULL: out of memory. */
static char *claims_cpus(struct arena *a, const struct ctr *claim)
{
	struct rp_idset all;
	char text[RP_IDSET_TEXT_MAX];
	rp_idset_clear(&all);
	for (const struct ctr *part = claim->pod->ctrs; part; part = part->pod_next)
		if (part->cur.cpus)
			rp_idset_or(&all, rp_ids_of(&all), part->cur.cpus->ids);
	(void)rp_ids_format(rp_ids_of(&all), text, sizeof text);
	return arena_strdup(a, text);
}

static void on_checked(const struct rpc_result *result, void *arg)
{
	pipeline_claim_checked(arg);
}

int agent_ask_claim(void *link, const struct ctr *claim)
{
	const struct agent_link *l = link;
	Agent__Claim m;
	if (!l->rpc)
		return -ENOTCONN;
	claims_fill(claim, &m);
	return rpc_call(l->rpc, AGENT_SERVICE, "CheckClaim", &m.base, AGENT_CLAIM_MS, on_checked,
			l->pipeline);
}

void agent_serve_prepare_claim(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, CLAIM_ARENA);
	struct err err = ERR_INIT;
	struct claim_desc desc;
	const struct ctr *claim;
	Agent__Claim out;
	char *cpus;
	int r = a ? agent_decode_claim(a, req->payload, req->payload_len, &desc) : -ENOMEM;
	if (r) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the claim");
		return;
	}
	if (!conf_core(pipeline_conf(p))->dra) {
		(void)rpc_reply_error(req, TTRPC_FAILED_PRECONDITION,
				      "this node allocates no claims: dra.enabled is not set");
		return;
	}
	r = pipeline_claim_prepare(p, &desc, &claim, &err);
	if (r) {
		(void)rpc_reply_error(req,
				      r == -EAGAIN ? TTRPC_UNAVAILABLE : TTRPC_FAILED_PRECONDITION,
				      "%s", err_text(&err, r));
		return;
	}
	claims_fill(claim, &out);
	cpus = claims_cpus(a, claim);
	out.cpus = cpus ? cpus : out.cpus;
	(void)rpc_reply(req, &out.base);
}

void agent_serve_release_claim(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, CLAIM_ARENA);
	const Agent__ReleaseClaimRequest *m = RPC_MESSAGE(a, agent__release_claim_request, req);
	if (!m) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
		return;
	}
	pipeline_claim_release(p, m->uid);
	(void)rpc_reply(req, NULL);
}

void agent_serve_list_claims(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, LIST_ARENA);
	Agent__ListClaimsResponse out = AGENT__LIST_CLAIMS_RESPONSE__INIT;
	for (const struct ctr *ctr = cache_ctrs(pipeline_cache(p)); ctr && !arena_failed(a);
	     ctr = ctr->next)
		if (ctr->device &&
		    str_eq(ctr->id, ctr->pod->id)) /* the first part stands for the claim */
			claims_fill(ctr, PB_ADD(a, &out, claims, agent__claim));
	agent_answer(req, arena_failed(a) ? -ENOMEM : 0, "", &out.base);
}
