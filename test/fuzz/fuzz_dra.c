/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the driver of claims: requests of the kubelet, ResourceClaims of the API server and
 * answers of the daemon, which are bytes 4 to 4 + n, the next m bytes and the rest. The first two
 * bytes are n and the kind of request, the next two m. Each claim of a request is answered once.
 */
#include <string.h>

#include <utlist.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/nri-rp-agent/cdi.h"
#include "core/nri-rp-agent/claim_work.h"
#include "test/fuzz/check.h"

#define ARENA_MAX (1u << 20)
#define PREPARE 0x8000u

struct kube_call {
	struct kube_request request;
	struct kube_call *prev, *next;
};

struct daemon_call {
	rpc_done done;
	void *arg;
	struct daemon_call *prev, *next;
};

static struct {
	struct loop *loop;
	struct kube_call *reads;
	struct daemon_call *calls;
	size_t claims; /* number of claims of the request */
	unsigned answers, files;
} state;

/* ---- the rest of the agent ------------------------------------------------------------------- */

void unary_answer(struct unary *u, const ProtobufCMessage *msg)
{
	uint8_t *packed = malloc(protobuf_c_message_get_packed_size(msg) + 1);
	check(!u && packed);
	(void)protobuf_c_message_pack(msg, packed);
	free(packed);
	const Dra__PrepareResponse *prepared = (const Dra__PrepareResponse *)msg;
	bool is_prepare = msg->descriptor == &dra__prepare_response__descriptor;
	check((is_prepare ? prepared->n_claims : ((const Dra__UnprepareResponse *)msg)->n_claims) ==
	      state.claims);
	for (size_t i = 0; is_prepare && i < prepared->n_claims; i++)
		check((prepared->claims[i]->value->n_devices == 0) ==
		      (*prepared->claims[i]->value->error != 0));
	state.answers++;
}

void unary_fail(struct unary *u, enum grpc_status status, const char *text)
{
	check(!u && status && *text);
	state.answers++;
}

struct kube_call *kube_call(struct kube *k, const struct kube_request *request)
{
	struct kube_call *c = calloc(1, sizeof *c);
	check(!k && c && request->path[0] == '/' && !strstr(request->path, "//"));
	c->request = *request;
	DL_APPEND(state.reads, c);
	return c;
}

struct kube_call *kube_cancel(struct kube_call *c)
{
	if (c)
		DL_DELETE(state.reads, c);
	free(c);
	return NULL;
}

struct loop *kube_loop(const struct kube *k)
{
	return state.loop;
}

int link_call(struct link *l, const char *method, const ProtobufCMessage *msg, uint64_t timeout_ms,
	      rpc_done done, void *arg)
{
	struct daemon_call *c = calloc(1, sizeof *c);
	check(!l && *method && msg && timeout_ms && c);
	c->done = done;
	c->arg = arg;
	DL_APPEND(state.calls, c);
	return 0;
}

int cdi_write(const char *dir, const char *uid, const char *ns, const char *name, const char *cpus,
	      struct err *err)
{
	(void)dir, (void)err;
	check(*uid && !strchr(uid, '/') && *ns && *name && cpus);
	state.files++;
	return 0;
}

int cdi_remove(const char *dir, const char *uid, struct err *err)
{
	(void)dir, (void)uid, (void)err;
	return 0;
}

void cdi_each(const char *dir,
	      void (*fn)(const char *uid, const char *ns, const char *name, void *arg), void *arg)
{
	(void)dir, (void)fn, (void)arg;
}

static void on_idle(void *arg)
{
}

/* ---- one input ------------------------------------------------------------------------------- */

static void answer_reads(const uint8_t *data, size_t n)
{
	json_t *body = json_loadb((const char *)data, n, 0, NULL);
	while (state.reads) {
		struct kube_call *c = state.reads;
		const struct kube_answer answer = {
			.error = body ? 0 : -ENOENT, .text = body ? "" : "none", .body = body};
		void (*done)(const struct kube_answer *, void *) = c->request.done;
		void *arg = c->request.arg;
		kube_cancel(c);
		done(&answer, arg);
	}
	json_decref(body);
}

static void answer_calls(const uint8_t *data, size_t n)
{
	while (state.calls) {
		struct daemon_call *c = state.calls;
		const struct rpc_result result = {.text = "", .payload = data, .payload_len = n};
		DL_DELETE(state.calls, c);
		c->done(&result, c->arg);
		free(c);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_arena_ struct arena *a = arena_new(4096, ARENA_MAX);
	ProtobufCAllocator alloc = pb_arena(a);
	if (!state.loop) {
		log_set_level(LOG_ERROR - 1);
		state.loop = loop_new();
		check(state.loop != NULL);
	}
	if (!a || size < 4)
		return 0;
	unsigned head = data[0] | data[1] << 8u;
	size_t n = head & ~PREPARE, m = data[2] | (size_t)data[3] << 8;
	data += 4;
	size -= 4;
	n = n < size ? n : size;
	m = m < size - n ? m : size - n;
	const Dra__ClaimsRequest *request = dra__claims_request__unpack(&alloc, n, data);
	const struct claim_work_config config = {
		.driver = "nri-rp.nri.io", .pool = "n1", .cdi_dir = "", .idle = on_idle};
	struct claim_work *w = claim_work_new(&config);
	check(w != NULL);
	state.claims = request ? request->n_claims : 0;
	state.answers = state.files = 0;
	if (request)
		claim_work_serve(w, NULL, request, head & PREPARE);
	answer_reads(data + n, m);
	answer_calls(data + n + m, size - n - m);
	check(state.answers == (request != NULL) && state.files <= state.claims);
	claim_work_free(w);
	return 0;
}
