/* SPDX-License-Identifier: Apache-2.0 */
/* The ttrpc envelope, held against what protobuf-c makes of proto/ttrpc.proto. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lib/wire/ttrpc.h"
#include "proto/nri.pb-c.h"
#include "proto/ttrpc.pb-c.h"

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void test_header(void **state)
{
	static const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0xf5, 0x06, 0x07, 0x08, 3, 5};
	struct ttrpc_header h;
	ttrpc_header_decode(bytes, &h);
	assert_int_equal(0x01020304, h.length);
	assert_int_equal(0xf5060708, h.stream);
	assert_int_equal(TTRPC_DATA, h.type);
	assert_int_equal(5, h.flags);
	uint8_t again[TTRPC_HEADER_SIZE];
	ttrpc_header_encode(again, &h);
	assert_memory_equal(bytes, again, sizeof bytes);
}

/* ---- requests ---- */

static void check_request(const char *service, const char *method, size_t n_payload,
			  int64_t timeout_ns)
{
	uint8_t *payload = malloc(n_payload + 1);
	memset(payload, 0xa5, n_payload);
	Ttrpc__KeyValue kv = TTRPC__KEY_VALUE__INIT;
	kv.key = (char *)"traceparent";
	kv.value = (char *)"00-0";
	Ttrpc__KeyValue *kvs[] = {&kv, &kv};
	Ttrpc__Request m = TTRPC__REQUEST__INIT;
	m.service = (char *)service;
	m.method = (char *)method;
	m.payload = (ProtobufCBinaryData){n_payload, payload};
	m.timeout_nano = timeout_ns;
	m.n_metadata = 2;
	m.metadata = kvs;
	size_t n = ttrpc__request__get_packed_size(&m);
	uint8_t *bytes = malloc(n);
	ttrpc__request__pack(&m, bytes);

	struct ttrpc_request r;
	struct err err = ERR_INIT;
	assert_int_equal(0, ttrpc_request_decode(bytes, n, &r, &err));
	assert_string_equal(service, r.service);
	assert_string_equal(method, r.method);
	assert_int_equal(n_payload, r.payload_len);
	if (n_payload)
		assert_memory_equal(payload, r.payload, n_payload);
	assert_true(timeout_ns == r.timeout_ns);
	free(bytes);
	free(payload);
}

static void test_request_decode(void **state)
{
	char longest[TTRPC_NAME_MAX];
	memset(longest, 'n', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	check_request("nri.pkg.api.v1alpha1.Plugin", "CreateContainer", 3000, 1999870000);
	check_request("", "", 0, 0);
	check_request("s", "m", 1, -1);
	check_request(longest, longest, 127, INT64_MAX);
	check_request("s", "m", 128, INT64_MIN);
	check_request("s\xc3\xa4", "m", 100000, 1);
}

static void check_request_encode(const char *service, const char *method, size_t n_text,
				 int64_t timeout_ns)
{
	char *text = malloc(n_text + 1);
	memset(text, 't', n_text);
	text[n_text] = '\0';
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.id = text;
	struct ttrpc_out out = {.service = service,
				.method = method,
				.timeout_ns = timeout_ns,
				.payload = n_text ? &pod.base : NULL};
	size_t n = ttrpc_request_size(&out);
	uint8_t *bytes = malloc(n + 1);
	bytes[n] = 0x77;
	ttrpc_request_encode(&out, bytes);
	assert_int_equal(0x77, bytes[n]);

	Ttrpc__Request *m = ttrpc__request__unpack(NULL, n, bytes);
	assert_non_null(m);
	assert_string_equal(service, m->service);
	assert_string_equal(method, m->method);
	assert_true(timeout_ns == m->timeout_nano);
	assert_int_equal(0, m->n_metadata);
	Nri__PodSandbox *p = nri__pod_sandbox__unpack(NULL, m->payload.len, m->payload.data);
	assert_non_null(p);
	assert_string_equal(text, p->id);
	/* proto3 has one canonical form */
	assert_int_equal(n, ttrpc__request__get_packed_size(m));
	uint8_t *again = malloc(n + 1);
	ttrpc__request__pack(m, again);
	assert_memory_equal(bytes, again, n);
	nri__pod_sandbox__free_unpacked(p, NULL);
	ttrpc__request__free_unpacked(m, NULL);
	free(again);
	free(bytes);
	free(text);
}

static void test_request_encode(void **state)
{
	check_request_encode("service", "Method", 0, 0);
	check_request_encode("service", "Method", 1, 1);
	check_request_encode("", "", 200, 5000000000);
	check_request_encode("s", "M", 20000, INT64_MAX);
	check_request_encode("s", "M", 3000000, -1);
}

static void refuse_request(const uint8_t *bytes, size_t n, int code)
{
	struct ttrpc_request r;
	struct err err = ERR_INIT;
	assert_int_equal(code, ttrpc_request_decode(bytes, n, &r, &err));
	assert_int_equal(code, err.code);
	assert_true(*err.text);
}

static void test_request_refused(void **state)
{
	const int bad = -EBADMSG;
	refuse_request(BYTES(0x0a), bad); /* no length */
	refuse_request(BYTES(0x0a, 2, 'x'), bad); /* too short */
	refuse_request(BYTES(0x0a, 0x80), bad); /* half a length */
	refuse_request(BYTES(0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), bad);
	refuse_request(BYTES(0x0a, 2, 'x', 0), bad); /* NUL in a name */
	refuse_request(BYTES(0x12, 2, 'x', 0), bad);
	refuse_request(BYTES(0x0a, 1, 0xff), bad); /* not UTF-8 */
	refuse_request(BYTES(0x08, 1), bad); /* wrong types */
	refuse_request(BYTES(0x10, 1), bad);
	refuse_request(BYTES(0x18, 1), bad);
	refuse_request(BYTES(0x22, 1, 'x'), bad);
	refuse_request(BYTES(0x00, 1), bad); /* field 0 */
	refuse_request(BYTES(0x80, 0x80, 0x80, 0x80, 0x10, 1), bad); /* field 2^29 */
	refuse_request(BYTES(0x33), bad); /* groups, and types that do not exist */
	refuse_request(BYTES(0x34), bad);
	refuse_request(BYTES(0x36, 0), bad);
	refuse_request(BYTES(0x37, 0), bad);
	refuse_request(BYTES(0x31, 1, 2, 3, 4, 5, 6, 7), bad); /* half a number */
	refuse_request(BYTES(0x35, 1, 2, 3), bad);
	refuse_request(BYTES(0x20), bad);
	/* numbers over 64 bits */
	refuse_request(BYTES(0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2), bad);
	refuse_request(BYTES(0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		       bad);
	uint8_t name[3 + TTRPC_NAME_MAX] = {0x0a, 0x80, 0x01};
	memset(name + 3, 'a', TTRPC_NAME_MAX);
	refuse_request(name, sizeof name, -ENAMETOOLONG);
	name[0] = 0x12;
	refuse_request(name, sizeof name, -ENAMETOOLONG);
}

static void test_request_tolerated(void **state)
{
	/* Unknown fields of every type, a field that occurs twice, and a timeout of ten bytes. */
	static const uint8_t bytes[] = {0x30, 0x85, 0x01, 0x39, 1,    2,    3,	  4,	5,    6,
					7,    8,    0x42, 2,	'u',  'v',  0x4d, 1,	2,    3,
					4,    0x0a, 3,	  'o',	'l',  'd',  0x0a, 1,	's',  0x12,
					1,    'm',  0x1a, 1,	1,    0x1a, 2,	  8,	9,    0x20,
					0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	struct ttrpc_request r;
	assert_int_equal(0, ttrpc_request_decode(bytes, sizeof bytes, &r, NULL));
	assert_string_equal("s", r.service);
	assert_string_equal("m", r.method);
	assert_int_equal(2, r.payload_len);
	assert_int_equal(9, r.payload[1]);
	assert_true(r.timeout_ns == -1);
	assert_int_equal(0, ttrpc_request_decode(NULL, 0, &r, NULL));
	assert_string_equal("", r.service);
	assert_int_equal(0, r.payload_len);
}

/*
 * Checks that a cut message is either refused or has the fields before the cut, without a read past
 * its end.
 */
static void test_truncation(void **state)
{
	struct ttrpc_out out = {.service = "some.Service", .method = "Method", .timeout_ns = 77};
	size_t n = ttrpc_request_size(&out);
	uint8_t *whole = malloc(n);
	ttrpc_request_encode(&out, whole);
	unsigned n_good = 0;
	for (size_t cut = 0; cut <= n; cut++) {
		uint8_t *bytes = malloc(cut ? cut : 1);
		memcpy(bytes, whole, cut);
		struct ttrpc_request r;
		n_good += ttrpc_request_decode(bytes, cut, &r, NULL) == 0;
		free(bytes);
	}
	assert_int_equal(4, n_good); /* at each field's border */
	free(whole);
}

/* ---- responses ---- */

static void check_response(int32_t code, const char *text, size_t n_payload)
{
	uint8_t *payload = malloc(n_payload + 1);
	memset(payload, 0x5a, n_payload);
	Ttrpc__Any any = TTRPC__ANY__INIT;
	any.type_url = (char *)"type";
	Ttrpc__Any *details[] = {&any};
	Ttrpc__Status status = TTRPC__STATUS__INIT;
	status.code = code;
	status.message = (char *)text;
	status.n_details = 1;
	status.details = details;
	Ttrpc__Response m = TTRPC__RESPONSE__INIT;
	m.status = text ? &status : NULL;
	m.payload = (ProtobufCBinaryData){n_payload, payload};
	size_t n = ttrpc__response__get_packed_size(&m);
	uint8_t *bytes = malloc(n + 1);
	ttrpc__response__pack(&m, bytes);
	struct ttrpc_response r;
	assert_int_equal(0, ttrpc_response_decode(bytes, n, &r, NULL));
	assert_int_equal(code, r.code);
	assert_int_equal(text ? strlen(text) : 0, r.text_len);
	if (r.text_len)
		assert_memory_equal(text, r.text, r.text_len);
	assert_int_equal(n_payload, r.payload_len);
	if (n_payload)
		assert_memory_equal(payload, r.payload, n_payload);
	free(bytes);
	free(payload);
}

static void test_response_decode(void **state)
{
	check_response(0, NULL, 0);
	check_response(0, NULL, 300);
	check_response(0, "", 300);
	check_response(12, "method Foo", 0);
	check_response(-5, "", 1);
	check_response(INT32_MIN, "x", 1);
	struct ttrpc_response r;
	assert_int_equal(0, ttrpc_response_decode(NULL, 0, &r, NULL));
	assert_int_equal(0, r.code);
	/* Two statuses are merged, and unknown fields are skipped. */
	assert_int_equal(
		0, ttrpc_response_decode(BYTES(0x0a, 2, 0x08, 5, 0x0a, 3, 0x12, 1, 'x', 0x18, 9),
					 &r, NULL));
	assert_int_equal(5, r.code);
	assert_int_equal(1, r.text_len);
}

static void refuse_response(const uint8_t *bytes, size_t n)
{
	struct ttrpc_response r;
	struct err err = ERR_INIT;
	assert_int_equal(-EBADMSG, ttrpc_response_decode(bytes, n, &r, &err));
	assert_int_equal(-EBADMSG, err.code);
}

static void test_response_refused(void **state)
{
	refuse_response(BYTES(0x08, 1));
	refuse_response(BYTES(0x10, 1));
	refuse_response(BYTES(0x0a, 2, 0x08));
	refuse_response(BYTES(0x0a, 1, 0x08)); /* the status ends early, the response doesn't */
	refuse_response(BYTES(0x0a, 3, 0x0a, 1, 1)); /* a code that is text */
	refuse_response(BYTES(0x0a, 2, 0x10, 1)); /* a text that is a number */
	refuse_response(BYTES(0x12));
}

static void check_response_encode(int32_t code, const char *text, const ProtobufCMessage *payload,
				  size_t n_payload)
{
	struct ttrpc_out out = {.code = code, .text = text, .payload = payload};
	size_t n = ttrpc_response_size(&out);
	uint8_t *bytes = malloc(n + 1);
	bytes[n] = 0x77;
	ttrpc_response_encode(&out, bytes);
	assert_int_equal(0x77, bytes[n]);
	Ttrpc__Response *m = ttrpc__response__unpack(NULL, n, bytes);
	assert_non_null(m);
	assert_int_equal(code != 0, m->status != NULL);
	assert_int_equal(n_payload, m->payload.len);
	if (code) {
		assert_int_equal(code, m->status->code);
		assert_string_equal(text ? text : "", m->status->message);
	}
	assert_int_equal(n, ttrpc__response__get_packed_size(m));
	ttrpc__response__free_unpacked(m, NULL);
	free(bytes);
}

static void test_response_encode(void **state)
{
	Nri__ConfigureResponse c = NRI__CONFIGURE_RESPONSE__INIT;
	check_response_encode(0, NULL, NULL, 0);
	check_response_encode(0, "ignored", &c.base, 0);
	c.events = 0x6af;
	check_response_encode(0, NULL, &c.base, 3);
	check_response_encode(2, "refused", &c.base, 0); /* no payload beside an error */
	check_response_encode(13, NULL, NULL, 0);
	check_response_encode(-1, "", NULL, 0);
}

static void test_text_is_cut(void **state)
{
	char text[TTRPC_TEXT_MAX + 20];
	memset(text, 'a', sizeof text);
	memcpy(text + TTRPC_TEXT_MAX - 1, "\xe2\x82\xac", 3);
	text[sizeof text - 1] = '\0';
	struct ttrpc_out out = {.code = 2, .text = text};
	uint8_t bytes[TTRPC_TEXT_MAX + 20];
	size_t n = ttrpc_response_size(&out);
	assert_true(n <= sizeof bytes);
	ttrpc_response_encode(&out, bytes);
	struct ttrpc_response r;
	assert_int_equal(0, ttrpc_response_decode(bytes, n, &r, NULL));
	assert_int_equal(TTRPC_TEXT_MAX - 1, r.text_len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_request_decode),
		cmocka_unit_test(test_request_encode),
		cmocka_unit_test(test_request_refused),
		cmocka_unit_test(test_request_tolerated),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_response_decode),
		cmocka_unit_test(test_response_refused),
		cmocka_unit_test(test_response_encode),
		cmocka_unit_test(test_text_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
