/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles the runtime's calls: decodes pod and container, passes the request to the pipeline, and
 * encodes the answer.
 */
#include <stdlib.h>

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/internal.h"
#include "core/nri-rpd/nri/sync.h"
#include "core/nri-rpd/nri/wait.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/prefault.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/nri/abilities.h"
#include "core/nri-rpd/nri/decode.h"
#include "core/nri-rpd/nri/encode.h"
#include "core/nri-rpd/nri/handlers.h"
#include "core/nri-rpd/nri/nri.h"
#include "core/nri-rpd/pipeline/request/sync.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define LOG_SOURCE "nri"
#define UPDATE_FRAME_MAX 6u /* maximum bytes of the tag and length of an update in an answer */

/* ---- current request ------------------------------------------------------------------------- */

static ProtobufCAllocator request_allocator(struct nri *nri)
{
	return pb_arena(nri->arena);
}

static void answer_error(struct call *c, struct reply *reply, const struct err *err)
{
	(void)rpc_reply_error(c->req, TTRPC_UNKNOWN, "%s", err->text);
	reply_sent(c->pipeline, reply, true);
}

static void handlers_answer(struct call *c, struct reply *reply, const ProtobufCMessage *msg)
{
	int r = rpc_reply(c->req, msg);
	if (!r || !reply) {
		reply_sent(c->pipeline, reply, false);
		return;
	}
	log_warning("the reply to %s could not be sent: %s", request_name(c->kind), strerror(-r));
	reply_dropped(c->pipeline, reply);
}

static void answer_empty(struct call *c)
{
	handlers_answer(c, NULL, NULL);
}

/* Refuses a request for lack of memory. The log gets a message too, because the runtime shows only
 * that the request failed. */
static void refuse_for_memory(struct rpc_request *req, const char *method)
{
	static struct log_limit limit = LOG_LIMIT(10, 60000);
	if (log_allowed(&limit, LOG_SOURCE))
		log_error("%s fails: out of memory", method);
	(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED, "nri-rp: out of memory");
}

static void out_of_memory(struct call *c, struct reply *reply)
{
	refuse_for_memory(c->req, request_name(c->kind));
	if (reply)
		reply_dropped(c->pipeline, reply);
	else
		reply_sent(c->pipeline, NULL, true);
}

/* Returns the bytes of the update in a message, with its tag and length. */
static size_t update_size(const Nri__ContainerUpdate *update)
{
	return nri__container_update__get_packed_size(update) + UPDATE_FRAME_MAX;
}

/* Encodes the updates of an answer whose other fields are in `out`. Updates that do not fit into a
 * message are left to the queue of unsolicited updates. Error: -ENOMEM. Without updates `ret` and
 * `ret_n` are unchanged. */
static int put_updates(struct call *c, struct reply *reply, const ProtobufCMessage *out,
		       Nri__ContainerUpdate ***ret, size_t *ret_n)
{
	if (!reply->n_updates)
		return 0;
	Nri__ContainerUpdate **list =
		encode_updates(c->nri->arena, reply->updates, reply->n_updates, true);
	size_t size = protobuf_c_message_get_packed_size(out);
	uint32_t n = 0;
	if (!list)
		return -ENOMEM;
	while (n < reply->n_updates && (size += update_size(list[n])) <= TTRPC_MESSAGE_MAX)
		n++;
	if (n < reply->n_updates)
		reply_defer_updates(c->pipeline, reply, n);
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ---- calls of the runtime -------------------------------------------------------------------- */

static void begin_event(struct call *c);

/* Delays the answer to a RunPodSandbox that the policy has admitted until external plugins have
 * agreed. */
static void run_pod_later(struct call *c)
{
	const struct request_about about = {.kind = c->kind,
					    .received_ns = c->req->received_ns,
					    .pod = &c->pod,
					    .goes_on = true};
	request_pause(c->pipeline);
	c->goes_on = true;
	if (!wait_hold(c->nri, &about))
		begin_event(c);
}

static void do_run_pod(struct call *c)
{
	struct err err = ERR_INIT;
	int r = c->goes_on ? request_pod_granted(c->pipeline, &c->pod, &err)
			   : request_run_pod(c->pipeline, &c->pod, &err);
	if (r == 1)
		run_pod_later(c);
	else if (r)
		answer_error(c, NULL, &err);
	else
		answer_empty(c);
}

static void do_stop_pod(struct call *c)
{
	request_stop_pod(c->pipeline, &c->pod);
	answer_empty(c);
}

static void do_remove_pod(struct call *c)
{
	request_remove_pod(c->pipeline, &c->pod);
	answer_empty(c);
}

static void do_create(struct call *c)
{
	struct err err = ERR_INIT;
	struct reply reply;
	Nri__CreateContainerResponse out = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	bool empty;
	if (request_create(c->pipeline, &c->pod, &c->ctr, &reply, &err)) {
		answer_error(c, NULL, &err);
		return;
	}
	out.adjust = encode_adjustment(c->nri->arena, &reply, &empty);
	if (!out.adjust || put_updates(c, &reply, &out.base, &out.update, &out.n_update)) {
		out_of_memory(c, &reply);
		return;
	}
	if (empty)
		out.adjust = NULL;
	handlers_answer(c, &reply, &out.base);
}

static void do_start(struct call *c)
{
	request_start(c->pipeline, &c->pod, &c->ctr);
	answer_empty(c);
}

static void do_note(struct call *c)
{
	request_note(c->pipeline, &c->pod, &c->ctr);
	answer_empty(c);
}

static void do_update(struct call *c)
{
	struct err err = ERR_INIT;
	struct reply reply;
	Nri__UpdateContainerResponse out = NRI__UPDATE_CONTAINER_RESPONSE__INIT;
	if (request_update(c->pipeline, &c->pod, &c->ctr, &c->res, &reply, &err)) {
		answer_error(c, NULL, &err);
		return;
	}
	if (put_updates(c, &reply, &out.base, &out.update, &out.n_update))
		out_of_memory(c, &reply);
	else
		handlers_answer(c, &reply, &out.base);
}

static void do_stop(struct call *c)
{
	struct reply reply;
	Nri__StopContainerResponse out = NRI__STOP_CONTAINER_RESPONSE__INIT;
	request_stop(c->pipeline, &c->pod, &c->ctr, &reply);
	if (put_updates(c, &reply, &out.base, &out.update, &out.n_update))
		out_of_memory(c, &reply);
	else
		handlers_answer(c, &reply, &out.base);
}

static void do_remove(struct call *c)
{
	request_remove(c->pipeline, &c->pod, &c->ctr);
	answer_empty(c);
}

static void do_update_pod(struct call *c)
{
	struct err err = ERR_INIT;
	if (request_update_pod(c->pipeline, &c->pod, &c->res, &err))
		answer_error(c, NULL, &err);
	else
		answer_empty(c);
}

/* ---- decoding: by message first, then common parts ------------------------------------------- */

struct nri_event {
	enum request kind;
	Nri__Event event;
	unsigned n_parts; /* relevant parts of the message: pod, container, resources */
	void (*handle)(struct call *c);
};

static const struct nri_event events[] = {
	{REQ_CREATE, NRI__EVENT__CREATE_CONTAINER, 2, do_create},
	{REQ_START, NRI__EVENT__START_CONTAINER, 2, do_start},
	{REQ_STOP, NRI__EVENT__STOP_CONTAINER, 2, do_stop},
	{REQ_REMOVE, NRI__EVENT__REMOVE_CONTAINER, 2, do_remove},
	{REQ_UPDATE, NRI__EVENT__UPDATE_CONTAINER, 3, do_update},
	{REQ_RUN_POD, NRI__EVENT__RUN_POD_SANDBOX, 1, do_run_pod},
	{REQ_STOP_POD, NRI__EVENT__STOP_POD_SANDBOX, 1, do_stop_pod},
	{REQ_REMOVE_POD, NRI__EVENT__REMOVE_POD_SANDBOX, 1, do_remove_pod},
	{REQ_POST_CREATE, NRI__EVENT__POST_CREATE_CONTAINER, 2, do_note},
	{REQ_POST_START, NRI__EVENT__POST_START_CONTAINER, 2, do_note},
	{REQ_POST_UPDATE, NRI__EVENT__POST_UPDATE_CONTAINER, 2, do_note},
	{REQ_UPDATE_POD, NRI__EVENT__UPDATE_POD_SANDBOX, 3, do_update_pod},
	{REQ_OTHER, NRI__EVENT__POST_UPDATE_POD_SANDBOX, 0, answer_empty},
	{REQ_OTHER, NRI__EVENT__VALIDATE_CONTAINER_ADJUSTMENT, 0, answer_empty},
};

/* Parts of an event's message, packed; p is NULL: absent. */
enum part { PART_POD, PART_CTR, PART_RESOURCES, N_PARTS };
struct event_parts {
	struct span part[N_PARTS];
};

static const struct nri_event *event_of_method(const char *method)
{
	for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
		if (str_eq(nri_event_method(events[i].event), method))
			return &events[i];
	return NULL;
}

static const struct nri_event *event_of_number(uint64_t number)
{
	for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
		if ((uint64_t)events[i].event == number)
			return &events[i];
	return NULL;
}

/* Finds the parts of an event's message. The pod is field `first`, the others follow. */
static int split_event(const struct rpc_request *req, uint32_t first, unsigned n_parts,
		       struct event_parts *ret)
{
	struct span s = span_of(req->payload, req->payload_len);
	struct field f;
	int more;
	*ret = (struct event_parts){0};
	while ((more = field_next(&s, &f)) > 0) {
		if (f.number < first || f.number >= first + n_parts)
			continue;
		if (f.wire != WIRE_LEN)
			return -EBADMSG;
		ret->part[f.number - first] = f.bytes;
	}
	return more;
}

/* Reads the event of a StateChange. */
static int state_change_event(const struct rpc_request *req, uint64_t *ret)
{
	struct span s = span_of(req->payload, req->payload_len);
	struct field f;
	int more;
	*ret = 0;
	while ((more = field_next(&s, &f)) > 0) {
		if (f.number != 1)
			continue;
		if (f.wire != WIRE_VARINT)
			return -EBADMSG;
		*ret = f.value;
	}
	return more;
}

/*
 * Decodes the pod and container of an event. Of tracked objects only the name is decoded, unless
 * the runtime sends them in full again. An untracked container may have to be adopted, with its
 * pod. Behind nri-rp-bridge a container's cgroup is reported when it exists, not with its creation.
 */
static int decode_event(struct call *c, const struct event_parts *e)
{
	struct arena *a = c->nri->arena;
	struct cache *cache = pipeline_cache(c->pipeline);
	struct span pod = e->part[PART_POD], ctr = e->part[PART_CTR];
	if (c->kind == REQ_UPDATE_POD) /* the second part is the pod's overhead */
		ctr = (struct span){0};
	bool create = c->kind == REQ_CREATE, run = c->kind == REQ_RUN_POD;
	int r = decode_ctr(a, a, ctr, create ? DECODE_ALL : DECODE_NAME, &c->ctr);
	const struct ctr *known = r || !ctr.p || create ? NULL : cache_ctr(cache, c->ctr.id);
	if (!r && ctr.p && !create && !known)
		r = decode_ctr(a, a, ctr, DECODE_ALL, &c->ctr);
	else if (known && c->kind == REQ_START && !*known->cgroups_path)
		r = decode_ctr(a, a, ctr, DECODE_FACTS, &c->ctr);
	if (!r)
		r = decode_pod(a, pod, run ? DECODE_ALL : DECODE_NAME, &c->pod);
	if (!r && pod.p && !run && !cache_pod(cache, c->pod.id))
		r = decode_pod(a, pod, DECODE_ALL, &c->pod);
	if (!r && ctr.p && !*c->ctr.pod_id)
		c->ctr.pod_id = c->pod.id;
	return r ? r : decode_resources(a, e->part[PART_RESOURCES], &c->res);
}

static void handlers_undecodable(struct call *c, const char *method)
{
	log_error("the runtime's %s request is invalid (%zu bytes)", method, c->req->payload_len);
	(void)rpc_reply_error(c->req, TTRPC_INVALID_ARGUMENT,
			      "nri-rp: cannot decode the %s request", method);
}

static void begin_event(struct call *c)
{
	request_begin(c->pipeline, c->kind);
	log_debug("%s %s %s", nri_event_method(c->event->event), c->pod.id, c->ctr.id);
	c->event->handle(c);
}

static void handle_event(struct call *c, const struct nri_event *e, uint32_t first)
{
	struct event_parts parts;
	c->kind = e->kind;
	c->event = e;
	int r = split_event(c->req, first, e->n_parts, &parts);
	if (!r)
		r = decode_event(c, &parts);
	const struct request_about about = {.kind = c->kind,
					    .received_ns = c->req->received_ns,
					    .pod = &c->pod,
					    .ctr = &c->ctr};
	if (r == -EBADMSG)
		handlers_undecodable(c, nri_event_method(e->event));
	else if (r)
		refuse_for_memory(c->req, nri_event_method(e->event));
	else if (!wait_hold(c->nri, &about))
		begin_event(c);
}

static void handle_state_change(struct call *c)
{
	uint64_t number;
	if (state_change_event(c->req, &number)) {
		handlers_undecodable(c, "StateChange");
		return;
	}
	const struct nri_event *e = event_of_number(number);
	/* Events whose answers have contents are never sent as StateChange. */
	bool answered =
		e && (e->kind == REQ_CREATE || e->kind == REQ_UPDATE || e->kind == REQ_STOP);
	if (!e || answered)
		(void)rpc_reply(c->req, NULL);
	else
		handle_event(c, e, 2);
}

/* ---- Configure and Synchronize --------------------------------------------------------------- */

static void handle_configure(struct call *c)
{
	ProtobufCAllocator alloc = request_allocator(c->nri);
	const Nri__ConfigureRequest *m =
		nri__configure_request__unpack(&alloc, c->req->payload_len, c->req->payload);
	Nri__ConfigureResponse out = NRI__CONFIGURE_RESPONSE__INIT;
	struct runtime_state *state = pipeline_runtime(c->pipeline);
	if (!m) {
		handlers_undecodable(c, "Configure");
		return;
	}
	request_begin(c->pipeline, c->kind = REQ_CONFIGURE);
	struct runtime_facts *facts = &state->facts;
	(void)snprintf(facts->name, sizeof facts->name, "%s", m->runtime_name);
	(void)snprintf(facts->version, sizeof facts->version, "%s", m->runtime_version);
	facts->flags = runtime_flags(m->runtime_name, m->runtime_version, m->nri_version);
	(void)snprintf(state->nri_version, sizeof state->nri_version, "%s", m->nri_version);
	state->request_timeout_ms = m->request_timeout > 0 ? (uint64_t)m->request_timeout : 0;
	c->nri->extended = !c->nri->only_old && runtime_has_pod_updates(facts, m->nri_version);
	log_info("runtime %s %s, NRI %s", m->runtime_name, m->runtime_version,
		 *m->nri_version ? m->nri_version : "before 0.12");
	out.events = NRI_EVENTS | (c->nri->extended ? NRI_EVENT_UPDATE_POD : 0);
	handlers_answer(c, NULL, &out.base);
}

void nri_sync_reset(struct sync_parts *s)
{
	arena_free(s->kept);
	buf_fini(&s->bytes);
	*s = (struct sync_parts){0};
}

/* Closes the connection after an error in the answer. containerd 1.7 keeps a plugin connected whose
 * synchronization failed, and never calls it again. */
static void synchronize_failed(struct call *c)
{
	c->nri->close_why = "the synchronization with the runtime failed";
	nri_sync_reset(&c->nri->sync);
}

static void handlers_synchronize(struct call *c, const uint8_t *data, size_t len)
{
	struct sync_parts *s = &c->nri->sync;
	Nri__SynchronizeResponse out = NRI__SYNCHRONIZE_RESPONSE__INIT;
	struct reply reply;
	request_begin(c->pipeline, c->kind = REQ_SYNCHRONIZE);
	/* A list for an empty cache needs one and a half times its length for unpacking, records
	 * and decisions. */
	if (cache_n_ctrs(pipeline_cache(c->pipeline)) == 0)
		heap_widen(len + len / 2);
	s->kept = arena_new(ARENA_BLOCK, NRI_REQUEST_ARENA);
	int r = s->kept ? sync_feed(c->pipeline, c->nri->arena, s->kept, data, len) : -ENOMEM;
	if (r) {
		sync_abandon(c->pipeline);
		handlers_undecodable(c, "Synchronize");
		reply_sent(c->pipeline, NULL, true);
		synchronize_failed(c);
		return;
	}
	sync_end(c->pipeline, &reply);
	arena_reset(c->nri->arena);
	if (!put_updates(c, &reply, &out.base, &out.update, &out.n_update)) {
		handlers_answer(c, &reply, &out.base);
		return;
	}
	out_of_memory(c, &reply);
	synchronize_failed(c);
}

/* Checks whether the answer is too late. containerd 1.7 keeps a plugin connected whose answer came
 * too late, and never calls it again: only a new connection helps. */
static void check_lateness(struct call *c, uint64_t received_ns)
{
	uint64_t took = (clock_ns() - received_ns) / 1000000;
	if (took > request_allowed_ms(c->pipeline))
		c->nri->close_why = "the reply to Synchronize came too late for the runtime";
	if (!c->nri->close_why)
		backoff_reset(&c->nri->late);
}

/* Handles a complete Synchronize: the stored parts, or the request alone. */
static void end_synchronize(struct call *c)
{
	struct sync_parts *s = &c->nri->sync;
	uint64_t received_ns = c->req->received_ns;
	if (buf_len(&s->bytes))
		handlers_synchronize(c, buf_bytes(&s->bytes), buf_len(&s->bytes));
	else
		handlers_synchronize(c, c->req->payload, c->req->payload_len);
	nri_sync_reset(s);
	heap_settle();
	nri_give_back(c->nri);
	check_lateness(c, received_ns);
}

static void handle_synchronize(struct call *c)
{
	struct sync_parts *s = &c->nri->sync;
	struct rpc_request *req = c->req;
	uint32_t objects;
	bool more, begins = !s->objects && !buf_len(&s->bytes);
	c->nri->extended = false; /* the runtime accepted the subscription */
	if (sync_look(req->payload, req->payload_len, &more, &objects)) {
		handlers_undecodable(c, "Synchronize");
		synchronize_failed(c);
		return;
	}
	s->objects += objects;
	if (s->objects > NRI_SYNC_OBJECTS_MAX ||
	    buf_len(&s->bytes) + req->payload_len > NRI_SYNC_BYTES_MAX) {
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED,
				      "nri-rp: more than %u pods and containers or %u MiB",
				      NRI_SYNC_OBJECTS_MAX, NRI_SYNC_BYTES_MAX >> 20);
		synchronize_failed(c);
		return;
	}
	const struct request_about about = {.kind = c->kind = REQ_SYNCHRONIZE,
					    .received_ns = req->received_ns,
					    .begins = begins,
					    .ends = !more};
	bool held = wait_hold(c->nri, &about);
	if ((more || held || buf_len(&s->bytes)) &&
	    buf_add(&s->bytes, req->payload, req->payload_len)) {
		wait_let_go(c->nri);
		refuse_for_memory(req, "Synchronize");
		synchronize_failed(c);
	} else if (more) {
		Nri__SynchronizeResponse out = NRI__SYNCHRONIZE_RESPONSE__INIT;
		out.more = true;
		(void)rpc_reply(req, &out.base);
	} else if (!held) {
		end_synchronize(c);
	}
}

/* ---- entry ----------------------------------------------------------------------------------- */

static void handlers_finish(struct nri *nri)
{
	arena_reset(nri->arena);
	if (nri->close_why)
		nri_restart(nri, nri->close_why);
	else
		nri_kick(nri);
}

void nri_resume(struct nri *nri)
{
	struct call *c = &nri->call;
	if (c->event)
		begin_event(c);
	else
		end_synchronize(c);
	if (!nri->held)
		handlers_finish(nri);
}

void nri_handle_now(struct nri *nri, struct rpc_request *req)
{
	struct call *c = &nri->call;
	const struct nri_event *e;
	*c = (struct call){.nri = nri, .pipeline = nri->cfg.pipeline, .req = req};
	if (!str_eq(req->service, NRI_PLUGIN_SERVICE))
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "service %s", req->service);
	else if ((e = event_of_method(req->method)))
		handle_event(c, e, 1);
	else if (str_eq(req->method, "StateChange"))
		handle_state_change(c);
	else if (str_eq(req->method, "Configure"))
		handle_configure(c);
	else if (str_eq(req->method, "Synchronize"))
		handle_synchronize(c);
	else if (str_eq(req->method, "Shutdown"))
		(void)rpc_reply(req, NULL);
	else
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "method %s", req->method);
	if (!nri->held)
		handlers_finish(nri);
}

void nri_handle(struct rpc_request *req, void *arg)
{
	if (!wait_behind(arg, req))
		nri_handle_now(arg, req);
}
