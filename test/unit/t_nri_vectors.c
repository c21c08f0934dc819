/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI on the wire, byte for byte: recorded frames through both ends, and every message there and
 * back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/rpc.h"
#include "proto/nri.pb-c.h"

static const uint8_t register_request[] = {
	0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x55, 0x00, 0x00, 0x00, 0x4b, 0x00, 0x00,
	0x00, 0x01, 0x01, 0x00, 0x0a, 0x1c, 0x6e, 0x72, 0x69, 0x2e, 0x70, 0x6b, 0x67, 0x2e,
	0x61, 0x70, 0x69, 0x2e, 0x76, 0x31, 0x61, 0x6c, 0x70, 0x68, 0x61, 0x31, 0x2e, 0x52,
	0x75, 0x6e, 0x74, 0x69, 0x6d, 0x65, 0x12, 0x0e, 0x52, 0x65, 0x67, 0x69, 0x73, 0x74,
	0x65, 0x72, 0x50, 0x6c, 0x75, 0x67, 0x69, 0x6e, 0x1a, 0x15, 0x0a, 0x06, 0x6e, 0x72,
	0x69, 0x2d, 0x72, 0x70, 0x12, 0x02, 0x39, 0x30, 0x1a, 0x07, 0x76, 0x30, 0x2e, 0x31,
	0x32, 0x2e, 0x32, 0x20, 0x80, 0xe4, 0x97, 0xd0, 0x12};
static const uint8_t register_response[] = {0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x0a, 0x00,
					    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00};
static const uint8_t configure_request[] = {
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x5d, 0x00, 0x00, 0x00, 0x53, 0x00, 0x00, 0x00,
	0x01, 0x01, 0x00, 0x0a, 0x1b, 0x6e, 0x72, 0x69, 0x2e, 0x70, 0x6b, 0x67, 0x2e, 0x61, 0x70,
	0x69, 0x2e, 0x76, 0x31, 0x61, 0x6c, 0x70, 0x68, 0x61, 0x31, 0x2e, 0x50, 0x6c, 0x75, 0x67,
	0x69, 0x6e, 0x12, 0x09, 0x43, 0x6f, 0x6e, 0x66, 0x69, 0x67, 0x75, 0x72, 0x65, 0x1a, 0x23,
	0x12, 0x0a, 0x63, 0x6f, 0x6e, 0x74, 0x61, 0x69, 0x6e, 0x65, 0x72, 0x64, 0x1a, 0x06, 0x76,
	0x32, 0x2e, 0x33, 0x2e, 0x30, 0x20, 0x88, 0x27, 0x28, 0xd0, 0x0f, 0x32, 0x07, 0x76, 0x30,
	0x2e, 0x31, 0x32, 0x2e, 0x30, 0x20, 0xb0, 0xb0, 0xce, 0xb9, 0x07};
static const uint8_t configure_response[] = {0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x0f,
					     0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x01,
					     0x02, 0x00, 0x12, 0x03, 0x10, 0xaf, 0x0d};
static const uint8_t create_response[] = {
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x38, 0x00, 0x00, 0x00, 0x2e, 0x00,
	0x00, 0x00, 0x07, 0x02, 0x00, 0x12, 0x2c, 0x0a, 0x13, 0x32, 0x11, 0x12, 0x0f,
	0x12, 0x0d, 0x0a, 0x03, 0x08, 0x80, 0x10, 0x32, 0x03, 0x38, 0x2d, 0x39, 0x3a,
	0x01, 0x32, 0x12, 0x15, 0x0a, 0x06, 0x63, 0x30, 0x66, 0x66, 0x65, 0x65, 0x12,
	0x09, 0x0a, 0x07, 0x12, 0x05, 0x32, 0x03, 0x30, 0x2d, 0x33, 0x18, 0x01};
static const uint8_t unknown_response[] = {0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x1a, 0x00,
					   0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x05, 0x02, 0x00,
					   0x0a, 0x0e, 0x08, 0x0c, 0x12, 0x0a, 0x6d, 0x65, 0x74,
					   0x68, 0x6f, 0x64, 0x20, 0x46, 0x6f, 0x6f};

#define SERVICE_RUNTIME "nri.pkg.api.v1alpha1.Runtime"
#define SERVICE_PLUGIN "nri.pkg.api.v1alpha1.Plugin"

struct end {
	struct rpc *rpc;
	struct buf in, out;
	struct mux_rx rx;
	struct buf other;
	unsigned n_requests, n_results;
	int error;
	int32_t code;
	char text[100];
	struct buf payload;
};

static void on_output(void *arg)
{
}

static void on_failed(int error, void *arg)
{
	fail_msg("%d", error);
}

static void on_done(const struct rpc_result *r, void *arg)
{
	struct end *e = arg;
	e->n_results++;
	e->error = r->error;
	e->code = r->code;
	(void)snprintf(e->text, sizeof e->text, "%s", r->text);
	buf_reset(&e->payload);
	assert_int_equal(0, buf_add(&e->payload, r->payload, r->payload_len));
}

static void end_open(struct end *e, uint32_t conn, uint32_t first_stream, rpc_handler handler)
{
	memset(e, 0, sizeof *e);
	e->rpc = rpc_new(&(struct rpc_config){.conn = conn,
					      .first_stream = first_stream,
					      .out = &e->out,
					      .output = on_output,
					      .failed = on_failed});
	assert_non_null(e->rpc);
	rpc_serve(e->rpc, handler, e);
	mux_rx_init(&e->rx, conn == 1 ? &e->in : &e->other, conn == 2 ? &e->in : &e->other,
		    MUX_RECV_MAX);
}

static void end_close(struct end *e)
{
	rpc_free(e->rpc);
	buf_fini(&e->in);
	buf_fini(&e->out);
	buf_fini(&e->other);
	buf_fini(&e->payload);
}

static void feed(struct end *e, const uint8_t *frame, size_t n)
{
	assert_int_equal(n, mux_rx_feed(&e->rx, frame, n, NULL));
	assert_int_equal(0, buf_len(&e->other));
	assert_int_equal(0, rpc_input(e->rpc, &e->in, 0, NULL));
	assert_int_equal(0, buf_len(&e->in));
}

#define FEED(e, frame) feed(e, frame, sizeof(frame))
#define ASSERT_OUT(e, frame)                                                                       \
	do {                                                                                       \
		assert_int_equal(sizeof(frame), buf_len(&(e)->out));                               \
		assert_memory_equal(frame, buf_bytes(&(e)->out), sizeof(frame));                   \
		buf_reset(&(e)->out);                                                              \
	} while (0)

/* Sends an empty request that causes an answer. */
static void feed_request(struct end *e, uint32_t stream, const char *method)
{
	struct buf b = BUF_INIT;
	struct ttrpc_out out = {.service = SERVICE_PLUGIN, .method = method};
	size_t size = ttrpc_request_size(&out), n = TTRPC_HEADER_SIZE + size;
	uint8_t *p = mux_begin(&b, n, MUX_FIRST_FRAME_MAX);
	assert_non_null(p);
	ttrpc_header_encode(p, &(struct ttrpc_header){(uint32_t)size, stream, TTRPC_REQUEST, 0});
	ttrpc_request_encode(&out, p + TTRPC_HEADER_SIZE);
	mux_end(&b, MUX_CONN_PLUGIN, n, MUX_FIRST_FRAME_MAX);
	feed(e, buf_bytes(&b), buf_len(&b));
	buf_fini(&b);
}

/* ---- RegisterPlugin ---- */

static void runtime_handler(struct rpc_request *req, void *arg)
{
	struct end *e = arg;
	e->n_requests++;
	assert_string_equal(SERVICE_RUNTIME, req->service);
	assert_string_equal("RegisterPlugin", req->method);
	assert_true(req->timeout_ns == 5000000000);
	assert_int_equal(1, req->stream);
	Nri__RegisterPluginRequest *m =
		nri__register_plugin_request__unpack(NULL, req->payload_len, req->payload);
	assert_non_null(m);
	assert_string_equal("nri-rp", m->plugin_name);
	assert_string_equal("90", m->plugin_idx);
	assert_string_equal("v0.12.2", m->nri_version);
	nri__register_plugin_request__free_unpacked(m, NULL);
	assert_int_equal(0, rpc_reply(req, NULL));
}

static void test_register(void **state)
{
	struct end plugin, runtime;
	end_open(&plugin, MUX_CONN_RUNTIME, 0, NULL);
	end_open(&runtime, MUX_CONN_RUNTIME, 0, runtime_handler);
	Nri__RegisterPluginRequest m = NRI__REGISTER_PLUGIN_REQUEST__INIT;
	m.plugin_name = (char *)"nri-rp";
	m.plugin_idx = (char *)"90";
	m.nri_version = (char *)"v0.12.2";
	assert_int_equal(0, rpc_call(plugin.rpc, SERVICE_RUNTIME, "RegisterPlugin", &m.base, 5000,
				     on_done, &plugin));
	ASSERT_OUT(&plugin, register_request);
	FEED(&runtime, register_request);
	assert_int_equal(1, runtime.n_requests);
	ASSERT_OUT(&runtime, register_response);
	FEED(&plugin, register_response);
	assert_int_equal(1, plugin.n_results);
	assert_int_equal(0, plugin.error);
	assert_int_equal(0, buf_len(&plugin.payload));
	end_close(&plugin);
	end_close(&runtime);
}

/* ---- requests of the runtime ---- */

static void answer_configure(struct rpc_request *req)
{
	Nri__ConfigureRequest *m =
		nri__configure_request__unpack(NULL, req->payload_len, req->payload);
	assert_non_null(m);
	assert_true(req->timeout_ns == 1999870000);
	assert_string_equal("", m->config);
	assert_string_equal("containerd", m->runtime_name);
	assert_string_equal("v2.3.0", m->runtime_version);
	assert_true(m->registration_timeout == 5000);
	assert_true(m->request_timeout == 2000);
	assert_string_equal("v0.12.0", m->nri_version);
	nri__configure_request__free_unpacked(m, NULL);
	Nri__ConfigureResponse answer = NRI__CONFIGURE_RESPONSE__INIT;
	answer.events = 0x6af;
	assert_int_equal(0, rpc_reply(req, &answer.base));
}

static void answer_create(struct rpc_request *req)
{
	Nri__OptionalUInt64 shares = NRI__OPTIONAL_UINT64__INIT;
	shares.value = 2048;
	Nri__LinuxCPU cpu = NRI__LINUX_CPU__INIT, others_cpu = NRI__LINUX_CPU__INIT;
	cpu.shares = &shares;
	cpu.cpus = (char *)"8-9";
	cpu.mems = (char *)"2";
	others_cpu.cpus = (char *)"0-3";
	Nri__LinuxResources res = NRI__LINUX_RESOURCES__INIT,
			    others_res = NRI__LINUX_RESOURCES__INIT;
	res.cpu = &cpu;
	others_res.cpu = &others_cpu;
	Nri__LinuxContainerAdjustment lnx = NRI__LINUX_CONTAINER_ADJUSTMENT__INIT;
	lnx.resources = &res;
	Nri__ContainerAdjustment adjust = NRI__CONTAINER_ADJUSTMENT__INIT;
	adjust.lnx = &lnx;
	Nri__LinuxContainerUpdate others_lnx = NRI__LINUX_CONTAINER_UPDATE__INIT;
	others_lnx.resources = &others_res;
	Nri__ContainerUpdate update = NRI__CONTAINER_UPDATE__INIT;
	update.container_id = (char *)"c0ffee";
	update.lnx = &others_lnx;
	update.ignore_failure = true;
	Nri__ContainerUpdate *updates[] = {&update};
	Nri__CreateContainerResponse answer = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	answer.adjust = &adjust;
	answer.n_update = 1;
	answer.update = updates;
	assert_int_equal(0, rpc_reply(req, &answer.base));
}

static void plugin_handler(struct rpc_request *req, void *arg)
{
	struct end *e = arg;
	e->n_requests++;
	assert_string_equal(SERVICE_PLUGIN, req->service);
	if (str_eq(req->method, "Configure"))
		answer_configure(req);
	else if (str_eq(req->method, "CreateContainer"))
		answer_create(req);
	else
		assert_int_equal(
			0, rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "method %s", req->method));
}

static void test_configure(void **state)
{
	struct end plugin, runtime;
	end_open(&plugin, MUX_CONN_PLUGIN, 0, plugin_handler);
	FEED(&plugin, configure_request);
	assert_int_equal(1, plugin.n_requests);
	ASSERT_OUT(&plugin, configure_response);
	end_open(&runtime, MUX_CONN_PLUGIN, 0, NULL);
	assert_int_equal(
		0, rpc_call(runtime.rpc, SERVICE_PLUGIN, "Configure", NULL, 0, on_done, &runtime));
	FEED(&runtime, configure_response);
	Nri__ConfigureResponse *m = nri__configure_response__unpack(NULL, buf_len(&runtime.payload),
								    buf_bytes(&runtime.payload));
	assert_non_null(m);
	assert_int_equal(0x6af, m->events);
	nri__configure_response__free_unpacked(m, NULL);
	end_close(&plugin);
	end_close(&runtime);
}

/* Checks the request as the runtime sends it, with a timeout that is no whole number of
 * milliseconds. */
static void test_configure_request(void **state)
{
	Nri__ConfigureRequest m = NRI__CONFIGURE_REQUEST__INIT;
	m.runtime_name = (char *)"containerd";
	m.runtime_version = (char *)"v2.3.0";
	m.registration_timeout = 5000;
	m.request_timeout = 2000;
	m.nri_version = (char *)"v0.12.0";
	struct ttrpc_out out = {.service = SERVICE_PLUGIN,
				.method = "Configure",
				.timeout_ns = 1999870000,
				.payload = &m.base};
	uint8_t bytes[sizeof configure_request];
	size_t head = MUX_HEADER_SIZE + TTRPC_HEADER_SIZE;
	assert_int_equal(sizeof bytes - head, ttrpc_request_size(&out));
	ttrpc_request_encode(&out, bytes);
	assert_memory_equal(configure_request + head, bytes, sizeof bytes - head);
}

static void test_create(void **state)
{
	struct end plugin, runtime;
	end_open(&plugin, MUX_CONN_PLUGIN, 0, plugin_handler);
	feed_request(&plugin, 7, "CreateContainer");
	ASSERT_OUT(&plugin, create_response);
	end_open(&runtime, MUX_CONN_PLUGIN, 7, NULL);
	assert_int_equal(0, rpc_call(runtime.rpc, SERVICE_PLUGIN, "CreateContainer", NULL, 0,
				     on_done, &runtime));
	FEED(&runtime, create_response);
	assert_int_equal(0, runtime.error);
	Nri__CreateContainerResponse *m = nri__create_container_response__unpack(
		NULL, buf_len(&runtime.payload), buf_bytes(&runtime.payload));
	assert_non_null(m);
	const Nri__LinuxCPU *cpu = m->adjust->lnx->resources->cpu;
	assert_true(cpu->shares->value == 2048);
	assert_null(cpu->quota);
	assert_string_equal("8-9", cpu->cpus);
	assert_string_equal("2", cpu->mems);
	assert_int_equal(1, m->n_update);
	assert_string_equal("c0ffee", m->update[0]->container_id);
	assert_string_equal("0-3", m->update[0]->lnx->resources->cpu->cpus);
	assert_true(m->update[0]->ignore_failure);
	nri__create_container_response__free_unpacked(m, NULL);
	end_close(&plugin);
	end_close(&runtime);
}

static void test_unknown_method(void **state)
{
	struct end plugin, runtime;
	end_open(&plugin, MUX_CONN_PLUGIN, 0, plugin_handler);
	feed_request(&plugin, 5, "Foo");
	ASSERT_OUT(&plugin, unknown_response);
	end_open(&runtime, MUX_CONN_PLUGIN, 5, NULL);
	assert_int_equal(0,
			 rpc_call(runtime.rpc, SERVICE_PLUGIN, "Foo", NULL, 0, on_done, &runtime));
	FEED(&runtime, unknown_response);
	assert_int_equal(-EREMOTEIO, runtime.error);
	assert_int_equal(TTRPC_UNIMPLEMENTED, runtime.code);
	assert_string_equal("method Foo", runtime.text);
	end_close(&plugin);
	end_close(&runtime);
}

static void test_negative_number(void **state)
{
	static const uint8_t want[] = {0x12, 0x0b, 0x08, 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	Nri__OptionalInt64 quota = NRI__OPTIONAL_INT64__INIT;
	quota.value = -1;
	Nri__LinuxCPU cpu = NRI__LINUX_CPU__INIT;
	cpu.quota = &quota;
	uint8_t bytes[64];
	assert_int_equal(sizeof want, nri__linux_cpu__get_packed_size(&cpu));
	assert_int_equal(sizeof want, nri__linux_cpu__pack(&cpu, bytes));
	assert_memory_equal(want, bytes, sizeof want);
	Nri__LinuxCPU *back = nri__linux_cpu__unpack(NULL, sizeof want, want);
	assert_non_null(back);
	assert_true(back->quota->value == -1);
	nri__linux_cpu__free_unpacked(back, NULL);
}

/* Checks that wrappers distinguish "not set" and "zero". */
static void test_wrappers(void **state)
{
	static const uint8_t zero[] = {0x0a, 0x00};
	Nri__LinuxCPU *cpu = nri__linux_cpu__unpack(NULL, sizeof zero, zero);
	assert_non_null(cpu);
	assert_non_null(cpu->shares);
	assert_true(cpu->shares->value == 0);
	assert_null(cpu->period);
	assert_int_equal(sizeof zero, nri__linux_cpu__get_packed_size(cpu));
	nri__linux_cpu__free_unpacked(cpu, NULL);
}

/* Checks repeated numbers, packed or one by one, and fields of a newer NRI, which are skipped. */
static void test_packed_and_unknown(void **state)
{
	static const uint8_t packed[] = {0x1a, 3, 1, 2, 3};
	static const uint8_t apart[] = {0x18, 1, 0x18, 2, 0xfa, 0x3e, 2, 'h', 'i', 0x18, 3};
	const struct {
		const uint8_t *bytes;
		size_t n;
	} forms[] = {{packed, sizeof packed}, {apart, sizeof apart}};
	for (unsigned i = 0; i < 2; i++) {
		Nri__User *u = nri__user__unpack(NULL, forms[i].n, forms[i].bytes);
		assert_non_null(u);
		assert_int_equal(3, u->n_additional_gids);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(k + 1, u->additional_gids[k]);
		nri__user__free_unpacked(u, NULL);
	}
}

/* ---- every message, with every field set ---- */

static void fill_value(const ProtobufCFieldDescriptor *f, void *to, unsigned *seed);

static void *fill_message(const ProtobufCMessageDescriptor *d, unsigned *seed)
{
	ProtobufCMessage *m = calloc(1, d->sizeof_message);
	assert_non_null(m);
	protobuf_c_message_init(d, m);
	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		uint8_t *at = (uint8_t *)m + f->offset;
		if (f->label != PROTOBUF_C_LABEL_REPEATED) {
			fill_value(f, at, seed);
			continue;
		}
		const size_t n = 2, width = f->type == PROTOBUF_C_TYPE_STRING ||
							    f->type == PROTOBUF_C_TYPE_MESSAGE
						    ? sizeof(void *)
						    : sizeof(uint32_t);
		/* Lists of numbers are of 32 bits in NRI. */
		assert_true(width == sizeof(void *) || f->type == PROTOBUF_C_TYPE_UINT32 ||
			    f->type == PROTOBUF_C_TYPE_ENUM);
		uint8_t *list = calloc(n, width);
		for (size_t k = 0; k < n; k++)
			fill_value(f, list + k * width, seed);
		*(size_t *)((uint8_t *)m + f->quantifier_offset) = n;
		*(void **)at = list;
	}
	return m;
}

static void fill_value(const ProtobufCFieldDescriptor *f, void *to, unsigned *seed)
{
	unsigned v = ++*seed;
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING: {
		char text[32];
		(void)snprintf(text, sizeof text, "%.20s-%u", f->name, v);
		*(char **)to = strdup(text);
		break;
	}
	case PROTOBUF_C_TYPE_MESSAGE:
		*(void **)to = fill_message(f->descriptor, seed);
		break;
	case PROTOBUF_C_TYPE_INT64:
		*(int64_t *)to = v % 2 ? -(int64_t)v : INT64_MAX - v;
		break;
	case PROTOBUF_C_TYPE_UINT64:
		*(uint64_t *)to = UINT64_MAX - v;
		break;
	case PROTOBUF_C_TYPE_INT32:
		*(int32_t *)to = v % 2 ? -(int32_t)v : (int32_t)v;
		break;
	case PROTOBUF_C_TYPE_UINT32:
		*(uint32_t *)to = UINT32_MAX - v;
		break;
	case PROTOBUF_C_TYPE_ENUM:
		*(int *)to = 1 + (int)(v % 300); /* includes values that NRI does not define */
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)to = 1;
		break;
	default:
		fail_msg("field %s has a type that NRI did not use so far", f->name);
	}
}

static const ProtobufCMessageDescriptor *const messages[] = {
	&nri__register_plugin_request__descriptor,
	&nri__update_containers_request__descriptor,
	&nri__update_containers_response__descriptor,
	&nri__configure_request__descriptor,
	&nri__configure_response__descriptor,
	&nri__synchronize_request__descriptor,
	&nri__synchronize_response__descriptor,
	&nri__run_pod_sandbox_request__descriptor,
	&nri__update_pod_sandbox_request__descriptor,
	&nri__post_update_pod_sandbox_request__descriptor,
	&nri__stop_pod_sandbox_request__descriptor,
	&nri__remove_pod_sandbox_request__descriptor,
	&nri__create_container_request__descriptor,
	&nri__create_container_response__descriptor,
	&nri__post_create_container_request__descriptor,
	&nri__start_container_request__descriptor,
	&nri__post_start_container_request__descriptor,
	&nri__update_container_request__descriptor,
	&nri__update_container_response__descriptor,
	&nri__post_update_container_request__descriptor,
	&nri__stop_container_request__descriptor,
	&nri__stop_container_response__descriptor,
	&nri__remove_container_request__descriptor,
	&nri__validate_container_adjustment_request__descriptor,
	&nri__validate_container_adjustment_response__descriptor,
	&nri__state_change_event__descriptor,
	&nri__empty__descriptor,
};

static void there_and_back(const ProtobufCMessageDescriptor *d, struct arena *arena)
{
	unsigned seed = 0;
	ProtobufCMessage *m = fill_message(d, &seed);
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(n + 1), *again = malloc(n + 1);
	assert_int_equal(n, protobuf_c_message_pack(m, bytes));
	protobuf_c_message_free_unpacked(m, NULL);

	ProtobufCAllocator alloc = pb_arena(arena);
	ProtobufCMessage *back = protobuf_c_message_unpack(d, &alloc, n, bytes);
	assert_non_null(back);
	assert_int_equal(0, back->n_unknown_fields);
	assert_int_equal(n, protobuf_c_message_get_packed_size(back));
	assert_int_equal(n, protobuf_c_message_pack(back, again));
	assert_memory_equal(bytes, again, n);
	/* Cut anywhere it is a smaller message or an error. */
	for (size_t cut = 0; cut < n; cut += 1 + n / 200) {
		arena_reset(arena);
		uint8_t *part = malloc(cut ? cut : 1);
		memcpy(part, bytes, cut);
		(void)protobuf_c_message_unpack(d, &alloc, cut, part);
		free(part);
	}
	arena_reset(arena);
	free(bytes);
	free(again);
}

static void test_all_messages(void **state)
{
	struct arena *arena = arena_new(64u << 10, 16u << 20);
	assert_non_null(arena);
	for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++)
		there_and_back(messages[i], arena);
	arena_free(arena);
}

/* Checks that small input that would need much memory ends at the arena's limit. */
static void test_arena_limit(void **state)
{
	const size_t n = 1u << 20;
	uint8_t *bytes = malloc(n);
	for (size_t i = 0; i < n; i += 2) {
		bytes[i] = 0x12; /* a long row of empty containers */
		bytes[i + 1] = 0;
	}
	struct arena *arena = arena_new(64u << 10, 8u << 20);
	ProtobufCAllocator alloc = pb_arena(arena);
	assert_null(nri__synchronize_request__unpack(&alloc, n, bytes));
	assert_true(arena_held(arena) <= 8u << 20);
	arena_reset(arena);
	Nri__SynchronizeRequest *m = nri__synchronize_request__unpack(&alloc, 200, bytes);
	assert_non_null(m);
	assert_int_equal(100, m->n_containers);
	arena_free(arena);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_register),	  cmocka_unit_test(test_configure),
		cmocka_unit_test(test_configure_request), cmocka_unit_test(test_create),
		cmocka_unit_test(test_unknown_method),	  cmocka_unit_test(test_negative_number),
		cmocka_unit_test(test_wrappers),	  cmocka_unit_test(test_packed_and_unknown),
		cmocka_unit_test(test_all_messages),	  cmocka_unit_test(test_arena_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
