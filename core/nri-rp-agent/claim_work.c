/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/claim_work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rp-agent/cdi.h"
#include "core/nri-rp-agent/claim_object.h"
#include "core/nri-rp-agent/slices.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/agent_protocol.h"
#include "proto/agent.pb-c.h"

#define LOG_SOURCE "claims"
#define GET_MS 10000u
#define ARENA_BLOCK 4096u
#define ARENA_MAX (8u << 20)
#define RECONCILE_MS 60000u
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789.-"

/* A request of the kubelet; its memory lives in the arena until the answer. NULL in a job: the
 * claim is being reconciled or checked. */
struct batch {
	struct arena *arena;
	struct unary *unary;
	bool prepare;
	unsigned waiting; /* unanswered claims, plus one while they are started */
	Dra__PreparedEntry **prepared;
	Dra__UnpreparedEntry **unprepared;
	size_t n;
};

struct job {
	struct claim_work *work;
	struct batch *batch;
	char *uid, *ns, *name;
	struct prepared {
		char *request, *device, *share_id; /* share_id NULL: none */
	} results[AGENT_CLAIM_PARTS_MAX];
	uint32_t n_results;
	/* the claim's entries in the response of its batch; NULL: the job reconciles */
	Dra__Prepared *prepared;
	Dra__Unprepared *unprepared;
	struct rpc_request *check; /* the daemon's request to check the claim; NULL: none */
	struct kube_call *get;
	/* times (clock_ns) of the start, and of the API server's answer; 0: none yet */
	uint64_t began_ns, read_ns;
	bool waits; /* the job has to wait for other comparisons */
	struct job *prev, *next;
};

static char no_memory[] = "out of memory";

struct claim_work {
	struct claim_work_config config;
	struct job *jobs;
	struct loop_timer *again; /* reconciles after a failure */
	struct loop_timer *next; /* starts the next comparison */
};

/* ---- answers --------------------------------------------------------------------------------- */

static void batch_release(struct batch *b)
{
	Dra__PrepareResponse prepared = DRA__PREPARE_RESPONSE__INIT;
	Dra__UnprepareResponse unprepared = DRA__UNPREPARE_RESPONSE__INIT;
	if (--b->waiting)
		return;
	prepared.claims = b->prepared;
	unprepared.claims = b->unprepared;
	prepared.n_claims = unprepared.n_claims = b->n;
	unary_answer(b->unary, b->prepare ? &prepared.base : &unprepared.base);
	arena_free(b->arena);
}

static void job_end(struct job *j)
{
	struct batch *b = j->batch;
	DL_DELETE(j->work->jobs, j);
	kube_cancel(j->get);
	if (j->check)
		(void)rpc_reply(j->check, NULL);
	if (!b)
		(void)loop_timer_arm(j->work->next, 0);
	free(j->uid);
	free(j->ns);
	free(j->name);
	for (uint32_t i = 0; i < j->n_results; i++) {
		free(j->results[i].request);
		free(j->results[i].device);
		free(j->results[i].share_id);
	}
	free(j);
	if (b)
		batch_release(b);
}

__attribute__((format(printf, 2, 3))) static void job_fail(struct job *j, const char *fmt, ...)
{
	struct err err = ERR_INIT;
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(err.text, sizeof err.text, fmt, ap);
	va_end(ap);
	utf8_mend(err.text);
	log_warning("claim %s/%s: %s", j->ns, j->name, err.text);
	char *text = j->batch ? arena_strdup(j->batch->arena, err.text) : NULL;
	if (j->prepared)
		j->prepared->error = text ? text : no_memory;
	if (j->unprepared)
		j->unprepared->error = text ? text : no_memory;
	if (!j->batch && !j->check)
		(void)loop_timer_arm(j->work->again, RECONCILE_MS);
	job_end(j);
}

/* Describes the claim's devices in the answer. Returns false without memory. */
static bool job_describe(const struct job *j)
{
	struct arena *a = j->batch->arena;
	for (uint32_t i = 0; i < j->n_results; i++) {
		const struct prepared *p = &j->results[i];
		Dra__PreparedDevice *d = PB_ADD(a, j->prepared, devices, dra__prepared_device);
		if (!d)
			break;
		(void)pb_build_item(a, arena_strdup(a, p->request), &d->request_names,
				    &d->n_request_names);
		(void)pb_build_item(a, arena_printf(a, CDI_KIND "=%s", j->uid), &d->cdi_device_ids,
				    &d->n_cdi_device_ids);
		d->pool_name = arena_strdup(a, j->work->config.pool);
		d->device_name = arena_strdup(a, p->device);
		if (p->share_id)
			d->share_id = arena_strdup(a, p->share_id);
	}
	if (arena_failed(a))
		j->prepared->n_devices = 0;
	return !arena_failed(a);
}

/* ---- release --------------------------------------------------------------------------------- */

static void work_look_idle(struct claim_work *w);

static void on_released(const struct rpc_result *result, void *arg)
{
	struct job *j = arg;
	struct claim_work *w = j->work;
	struct err err = ERR_INIT;
	if (result->error == -ECANCELED) {
		job_fail(j, "the agent stops");
		return;
	}
	if (result->error) {
		job_fail(j, "nri-rpd does not release it: %s", result->text);
		return;
	}
	if (cdi_remove(w->config.cdi_dir, j->uid, &err)) {
		job_fail(j, "%s", err.text);
		return;
	}
	log_info("claim %s/%s is released", j->ns, j->name);
	job_end(j);
	work_look_idle(w);
}

static void job_release(struct job *j)
{
	Agent__ReleaseClaimRequest m = AGENT__RELEASE_CLAIM_REQUEST__INIT;
	m.uid = j->uid;
	int r = link_call(j->work->config.link, "ReleaseClaim", &m.base, AGENT_CLAIM_MS,
			  on_released, j);
	if (r)
		job_fail(j, "nri-rpd is not connected");
}

/* ---- allocation ------------------------------------------------------------------------------ */

/* Ends the job of an allocated claim. */
static void job_done(struct job *j)
{
	uint64_t now = clock_ns();
	log_debug("claim %s/%s: ready after %" PRIu64 " us, of which the API server took %" PRIu64
		  " us",
		  j->ns, j->name, (now - j->began_ns) / 1000, (j->read_ns - j->began_ns) / 1000);
	job_end(j);
}

static void on_allocated(const struct rpc_result *result, void *arg)
{
	struct job *j = arg;
	struct err err = ERR_INIT;
	if (result->error) {
		job_fail(j, "nri-rpd does not allocate it: %s", result->text);
		return;
	}
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	const Agent__Claim *m = RPC_MESSAGE(a, agent__claim, result);
	if (!m)
		job_fail(j, "the answer of nri-rpd cannot be decoded");
	else if (cdi_write(j->work->config.cdi_dir, j->uid, j->ns, j->name, m->cpus, &err))
		job_fail(j, "%s", err.text);
	else if (j->batch && !job_describe(j))
		job_fail(j, "out of memory");
	else
		job_done(j);
}

static int job_keep(struct job *j, const struct claim_object *o)
{
	for (; j->n_results < o->n_results; j->n_results++) {
		const struct claim_result *from = &o->results[j->n_results];
		struct prepared *to = &j->results[j->n_results];
		to->request = strndup(from->request, from->request_len);
		to->device = strdup(from->device);
		to->share_id = from->share_id ? strdup(from->share_id) : NULL;
		if (!to->request || !to->device || (from->share_id && !to->share_id)) {
			j->n_results++; /* freed with the job */
			return -ENOMEM;
		}
	}
	return 0;
}

static void job_allocate(struct job *j, struct claim_object *o)
{
	Agent__PrepareClaimRequest m = AGENT__PREPARE_CLAIM_REQUEST__INIT;
	m.uid = j->uid;
	m.namespace_ = j->ns;
	m.name = j->name;
	Agent__ClaimPart parts[AGENT_CLAIM_PARTS_MAX], *more[AGENT_CLAIM_PARTS_MAX];
	m.device = j->results[0].device;
	m.cpus = o->results[0].cpus;
	m.memory = o->results[0].memory;
	m.huge = o->results[0].huge;
	m.n_huge = o->results[0].n_huge;
	for (uint32_t i = 1; i < o->n_results; i++) {
		more[m.n_more] = &parts[m.n_more];
		agent__claim_part__init(more[m.n_more]);
		more[m.n_more]->device = j->results[i].device;
		more[m.n_more]->cpus = o->results[i].cpus;
		more[m.n_more]->huge = o->results[i].huge;
		more[m.n_more]->n_huge = o->results[i].n_huge;
		more[m.n_more++]->memory = o->results[i].memory;
	}
	m.more = more;
	m.pods = (char **)(uintptr_t)o->pods;
	m.n_pods = o->n_pods;
	int r = link_call(j->work->config.link, "PrepareClaim", &m.base, AGENT_CLAIM_MS,
			  on_allocated, j);
	if (r)
		job_fail(j, "nri-rpd is not connected");
}

static void on_object(const struct kube_answer *answer, void *arg)
{
	struct job *j = arg;
	struct err err = ERR_INIT;
	struct claim_object o;
	j->get = NULL;
	int r = answer->error ? answer->error
			      : claim_object_read(answer->body, j->uid, j->work->config.driver,
						  j->work->config.pool, &o, &err);
	j->read_ns = clock_ns();
	if (!j->batch && !j->check && (r == -ENOENT || (!answer->error && r == -ESTALE))) {
		log_notice("claim %s/%s does not exist any more: releasing it", j->ns, j->name);
		job_release(j);
	} else if (r) {
		job_fail(j, "%s", answer->error ? answer->text : err.text);
	} else if (job_keep(j, &o)) {
		job_fail(j, "out of memory");
	} else {
		job_allocate(j, &o);
	}
}

static void job_read(struct job *j)
{
	_free_ char *path =
		str_printf(SLICES_GROUP "/namespaces/%s/resourceclaims/%s", j->ns, j->name);
	const struct kube_request request = {.method = "GET",
					     .path = path,
					     .timeout_ms = GET_MS,
					     .urgent = j->batch || j->check,
					     .done = on_object,
					     .arg = j};
	j->get = path ? kube_call(j->work->config.kube, &request) : NULL;
	if (!j->get)
		job_fail(j, "too many requests to the API server wait");
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool work_good_name(const char *name)
{
	return *name && strlen(name) < AGENT_NAME_MAX && name[strspn(name, NAME_CHARS)] == '\0';
}

static struct job *job_new(struct claim_work *w, struct batch *b, const char *uid, const char *ns,
			   const char *name)
{
	struct job *j = calloc(1, sizeof *j);
	if (!j)
		return NULL;
	*j = (struct job){.work = w,
			  .batch = b,
			  .uid = strdup(uid),
			  .ns = strdup(ns),
			  .name = strdup(name),
			  .began_ns = clock_ns()};
	DL_APPEND(w->jobs, j);
	if (b)
		b->waiting++;
	if (j->uid && j->ns && j->name)
		return j;
	job_end(j);
	return NULL;
}

/* Ends the comparisons of a claim that is released now: a comparison would allocate it again. */
static void work_end_comparison(struct claim_work *w, const char *uid)
{
	struct job *j, *next;
	DL_FOREACH_SAFE(w->jobs, j, next)
	{
		if (!j->batch && (j->get || j->waits) && str_eq(j->uid, uid))
			job_end(j);
	}
}

static int batch_add(struct claim_work *w, struct batch *b, const Dra__Claim *claim)
{
	Dra__PreparedEntry *p = pb_build(b->arena, &dra__prepared_entry__descriptor);
	Dra__UnpreparedEntry *u = pb_build(b->arena, &dra__unprepared_entry__descriptor);
	Dra__Prepared *prepared = pb_build(b->arena, &dra__prepared__descriptor);
	Dra__Unprepared *unprepared = pb_build(b->arena, &dra__unprepared__descriptor);
	char *uid = arena_strdup(b->arena, claim->uid);
	static char invalid[] = "its namespace, name or UID is not valid";
	if (!p || !u || !prepared || !unprepared || !uid)
		return -ENOMEM;
	p->key = u->key = uid;
	p->value = prepared;
	u->value = unprepared;
	b->prepared[b->n] = p;
	b->unprepared[b->n++] = u;
	if (!work_good_name(claim->uid) || !work_good_name(claim->namespace_) ||
	    !work_good_name(claim->name)) {
		prepared->error = unprepared->error = invalid;
		return 0;
	}
	struct job *j = job_new(w, b, claim->uid, claim->namespace_, claim->name);
	if (!j) {
		prepared->error = unprepared->error = no_memory;
		return 0;
	}
	j->prepared = prepared;
	j->unprepared = unprepared;
	if (b->prepare) {
		job_read(j);
	} else {
		work_end_comparison(w, uid);
		job_release(j);
	}
	return 0;
}

void claim_work_serve(struct claim_work *w, struct unary *u, const Dra__ClaimsRequest *m,
		      bool prepare)
{
	struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct batch *b = a ? arena_zero(a, struct batch) : NULL;
	if (b) {
		*b = (struct batch){.arena = a, .unary = u, .prepare = prepare, .waiting = 1};
		b->prepared = arena_array(a, m->n_claims + 1, sizeof(Dra__PreparedEntry *));
		b->unprepared = arena_array(a, m->n_claims + 1, sizeof(Dra__UnpreparedEntry *));
	}
	if (!b || !b->prepared || !b->unprepared || m->n_claims > CLAIM_WORK_MAX) {
		unary_fail(u, GRPC_RESOURCE_EXHAUSTED, "too many claims in one request");
		arena_free(a);
		return;
	}
	for (size_t i = 0; i < m->n_claims; i++)
		if (batch_add(w, b, m->claims[i]))
			log_error("a claim of the kubelet is not answered: no memory");
	batch_release(b);
}

/* ---- comparison with the API server --------------------------------------------------------- */

static void work_compare(struct claim_work *w, const char *uid, const char *ns, const char *name,
			 struct rpc_request *check)
{
	struct job *j = work_good_name(ns) && work_good_name(name) && work_good_name(uid)
				? job_new(w, NULL, uid, ns, name)
				: NULL;
	if (!j && check)
		(void)rpc_reply(check, NULL);
	if (!j)
		return;
	j->check = check;
	j->waits = !check;
	if (check)
		job_read(j);
	else
		(void)loop_timer_arm(w->next, 0);
}

/* Starts a comparison if none is running, so that other requests to the API server pass them. */
static void work_next(void *arg)
{
	struct claim_work *w = arg;
	struct job *j, *first = NULL;
	DL_FOREACH (w->jobs, j) {
		if (j->batch || j->check)
			continue;
		if (!j->waits)
			return;
		first = first ? first : j;
	}
	if (!first)
		return;
	first->waits = false;
	job_read(first);
}

void claim_work_check(struct claim_work *w, const Agent__Claim *m, struct rpc_request *req)
{
	work_compare(w, m->uid, m->namespace_, m->name, req);
}

static void work_reconcile_one(const char *uid, const char *ns, const char *name, void *arg)
{
	struct claim_work *w = arg;
	const struct job *j;
	DL_FOREACH (w->jobs, j)
		if (str_eq(j->uid, uid))
			return; /* the claim has a job already */
	work_compare(w, uid, ns, name, NULL);
}

static void on_listed(const struct rpc_result *result, void *arg)
{
	struct claim_work *w = arg;
	if (result->error == -ECANCELED)
		return;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, AGENT_MESSAGE_MAX);
	const Agent__ListClaimsResponse *m = RPC_ANSWER(a, agent__list_claims_response, result);
	if (!m) {
		(void)loop_timer_arm(w->again, RECONCILE_MS);
		return;
	}
	for (size_t i = 0; i < m->n_claims; i++)
		work_reconcile_one(m->claims[i]->uid, m->claims[i]->namespace_, m->claims[i]->name,
				   w);
	cdi_each(w->config.cdi_dir, work_reconcile_one, w);
	if (!w->jobs)
		w->config.idle(w->config.arg);
}

static void work_list(struct claim_work *w)
{
	/* the request is empty */
	Agent__ListClaimsResponse m = AGENT__LIST_CLAIMS_RESPONSE__INIT;
	if (link_call(w->config.link, "ListClaims", &m.base, AGENT_CLAIM_MS, on_listed, w))
		(void)loop_timer_arm(w->again, RECONCILE_MS);
}

void claim_work_reconcile(struct claim_work *w)
{
	work_list(w);
}

static void work_again(void *arg)
{
	work_list(arg);
}

static void work_count(const char *uid, const char *ns, const char *name, void *arg)
{
	(void)uid, (void)ns, (void)name;
	++*(unsigned *)arg;
}

/* Reports that the last claim was released. */
static void work_look_idle(struct claim_work *w)
{
	unsigned n = 0;
	cdi_each(w->config.cdi_dir, work_count, &n);
	if (!n && !w->jobs)
		w->config.idle(w->config.arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct claim_work *claim_work_new(const struct claim_work_config *config)
{
	struct claim_work *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->config = *config;
	w->again = loop_timer_new(kube_loop(config->kube), work_again, w);
	w->next = loop_timer_new(kube_loop(config->kube), work_next, w);
	return w->again && w->next ? w : claim_work_free(w);
}

struct claim_work *claim_work_free(struct claim_work *w)
{
	if (!w)
		return NULL;
	while (w->jobs)
		job_end(w->jobs);
	loop_timer_free(w->again);
	loop_timer_free(w->next);
	free(w);
	return NULL;
}
