/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The envelope's decoders: where protobuf-c accepts the same bytes it has to see the same in them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/ttrpc.h"
#include "proto/ttrpc.pb-c.h"

static void check(int ok)
{
	if (!ok)
		abort();
}

static void same_bytes(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b)
{
	check(n_a == n_b && (!n_a || memcmp(a, b, n_a) == 0));
}

static void within(const uint8_t *p, size_t n, const uint8_t *data, size_t size)
{
	check(!n || (p >= data && n <= size && p + n <= data + size));
}

static void try_request(const uint8_t *data, size_t size)
{
	struct ttrpc_request r;
	struct err err = ERR_INIT;
	int e = ttrpc_request_decode(data, size, &r, &err);
	check(e <= 0 && err.code == e && (e == 0) == (*err.text == '\0'));
	if (e)
		return;
	within(r.payload, r.payload_len, data, size);
	check(strlen(r.service) < TTRPC_NAME_MAX && strlen(r.method) < TTRPC_NAME_MAX);
	Ttrpc__Request *m = ttrpc__request__unpack(NULL, size, data);
	if (!m)
		return; /* unpacking checks the metadata as well */
	check(strcmp(r.service, m->service) == 0 && strcmp(r.method, m->method) == 0);
	check(r.timeout_ns == m->timeout_nano);
	same_bytes(r.payload, r.payload_len, m->payload.data, m->payload.len);
	ttrpc__request__free_unpacked(m, NULL);
}

static void try_response(const uint8_t *data, size_t size)
{
	struct ttrpc_response r;
	struct err err = ERR_INIT;
	int e = ttrpc_response_decode(data, size, &r, &err);
	check(e <= 0 && err.code == e && (e == 0) == (*err.text == '\0'));
	if (e)
		return;
	within(r.payload, r.payload_len, data, size);
	within(r.text, r.text_len, data, size);
	Ttrpc__Response *m = ttrpc__response__unpack(NULL, size, data);
	if (!m)
		return; /* unpacking checks the details as well */
	same_bytes(r.payload, r.payload_len, m->payload.data, m->payload.len);
	/* How two statuses are merged is another matter: only what has one form is compared. */
	if (ttrpc__response__get_packed_size(m) == size && m->status) {
		const uint8_t *text = r.text_len ? memchr(r.text, '\0', r.text_len) : NULL;
		size_t n = text ? (size_t)(text - r.text) : r.text_len;
		check(r.code == m->status->code);
		same_bytes(r.text, n, (const uint8_t *)m->status->message,
			   strlen(m->status->message));
	}
	ttrpc__response__free_unpacked(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_request(data, size);
	try_response(data, size);
	return 0;
}
