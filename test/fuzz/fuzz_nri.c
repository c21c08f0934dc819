/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the messages of runtimes and plugins, with a limited arena: decoding fails cleanly, or
 * returns a message that packs into bytes of the same meaning. The first byte chooses the message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/pb.h"
#include "proto/nri.pb-c.h"

#define ARENA_BLOCK (64u << 10)
#define ARENA_MAX (4u << 20)

static const ProtobufCMessageDescriptor *const messages[] = {
	&nri__configure_request__descriptor,
	&nri__synchronize_request__descriptor,
	&nri__create_container_request__descriptor,
	&nri__update_container_request__descriptor,
	&nri__stop_container_request__descriptor,
	&nri__state_change_event__descriptor,
	&nri__run_pod_sandbox_request__descriptor,
	&nri__update_pod_sandbox_request__descriptor,
	&nri__post_update_pod_sandbox_request__descriptor,
	&nri__stop_pod_sandbox_request__descriptor,
	&nri__remove_pod_sandbox_request__descriptor,
	&nri__post_create_container_request__descriptor,
	&nri__start_container_request__descriptor,
	&nri__post_start_container_request__descriptor,
	&nri__post_update_container_request__descriptor,
	&nri__remove_container_request__descriptor,
	&nri__validate_container_adjustment_request__descriptor,
	&nri__empty__descriptor,
	/* to the runtime, for the simulator */
	&nri__register_plugin_request__descriptor,
	&nri__update_containers_request__descriptor,
	&nri__configure_response__descriptor,
	&nri__synchronize_response__descriptor,
	&nri__create_container_response__descriptor,
	&nri__update_container_response__descriptor,
	&nri__stop_container_response__descriptor,
	&nri__update_containers_response__descriptor,
};
#define N_MESSAGES (sizeof messages / sizeof *messages)

static void check(int ok)
{
	if (!ok)
		abort();
}

static uint8_t *packed(const ProtobufCMessage *m, struct arena *arena, size_t *ret_n)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = arena_alloc(arena, n + 1);
	if (bytes)
		check(protobuf_c_message_pack(m, bytes) == n);
	*ret_n = n;
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	const ProtobufCMessageDescriptor *d = messages[data[0] % N_MESSAGES];
	struct arena *arena = arena_new(ARENA_BLOCK, ARENA_MAX);
	check(arena != NULL);
	ProtobufCAllocator alloc = pb_arena(arena);
	const ProtobufCMessage *m = protobuf_c_message_unpack(d, &alloc, size - 1, data + 1);
	size_t n = 0, n_again = 0;
	const uint8_t *bytes = m ? packed(m, arena, &n) : NULL;
	if (bytes) {
		const ProtobufCMessage *same = protobuf_c_message_unpack(d, &alloc, n, bytes);
		/*
		 * NULL when the arena ends on the way, and for a field number 0, which protobuf-c
		 * takes in a long form and refuses in its short one.
		 */
		const uint8_t *again = same ? packed(same, arena, &n_again) : NULL;
		check(!again || (n == n_again && memcmp(bytes, again, n) == 0));
	}
	check(arena_held(arena) <= ARENA_MAX);
	arena_free(arena);
	return 0;
}
