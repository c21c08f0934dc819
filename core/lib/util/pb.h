/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation of protobuf-c messages from an arena: unpacked messages are freed with the arena. */
#pragma once

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

#include "core/lib/util/arena.h"

static inline void *pb_arena_alloc(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static inline void pb_arena_free(void *arena, void *data)
{
}

/* Returns an allocator for functions of protobuf-c; PB_UNPACK uses it for one message. */
static inline ProtobufCAllocator pb_arena(struct arena *arena)
{
	return (ProtobufCAllocator){
		.alloc = pb_arena_alloc, .free = pb_arena_free, .allocator_data = arena};
}

/* Decodes a message into an arena: PB_UNPACK(a, agent__pod_devices, size, data). NULL: the arena is
 * NULL or full, or the message is malformed. */
#define PB_UNPACK(arena, prefix, size, data)                                                       \
	__extension__({                                                                            \
		ProtobufCAllocator alloc_ = pb_arena(arena);                                       \
		(arena) ? prefix##__unpack(&alloc_, size, data) : NULL;                            \
	})

/* Copies a list of messages to one of another type with the same fields, which share their texts.
 * ret: the member of a message for the list. Without memory for all it is shorter. */
void pb_copy_list(struct arena *a, const ProtobufCMessageDescriptor *type, const void *from,
		  size_t n, void *ret, size_t *ret_n);
/* Does so for a member that two messages have by the same name. */
#define PB_COPY_LIST(arena, from, to, member, prefix)                                              \
	pb_copy_list(arena, &prefix##__descriptor, (from)->member, (from)->n_##member,             \
		     &(to)->member, &(to)->n_##member)

/*
 * Messages under construction in an arena. Once memory is short, a message is incomplete: the
 * caller checks arena_failed() once, at the end.
 */

/* Returns a message with its defaults; NULL: out of memory. */
static inline void *pb_build(struct arena *a, const ProtobufCMessageDescriptor *type)
{
	void *message = arena_alloc(a, type->sizeof_message);
	if (message)
		type->message_init(message);
	return message;
}
/* Returns a copy of a text, in which NULL is ""; NULL: out of memory. */
char *pb_build_text(struct arena *a, const char *text);
/* Appends a pointer to a list of a message, which doubles when it is full. item NULL: there was no
 * memory for it. ret: the member of the message. Returns the pointer; NULL: out of memory. */
void *pb_build_item(struct arena *a, void *item, void *ret, size_t *ret_n);
/* Copies a list that was not built here, as of a decoded message, so that pb_build_item() can
 * append to it. ret: the member of the message. False: out of memory; the list is unchanged. */
bool pb_adopt(struct arena *a, void *ret, size_t n);
#define PB_ADOPT(a, to, member) pb_adopt(a, &(to)->member, (to)->n_##member)
/* Appends a message to the member of another one: PB_ADD(a, adj, env, nri__key_value). */
#define PB_ADD(a, to, member, prefix)                                                              \
	pb_build_item(a, pb_build(a, &prefix##__descriptor), &(to)->member, &(to)->n_##member)
/* Sets a member to a message with the one member `value`: PB_SET(a, cpu->quota,
 * nri__optional_int64, 5000). */
#define PB_SET(a, member, prefix, v)                                                               \
	do {                                                                                       \
		(member) = pb_build(a, &prefix##__descriptor);                                     \
		if (member)                                                                        \
			(member)->value = (v);                                                     \
	} while (0)
/* Returns the message of a member, which is created on first use. NULL: out of memory. */
#define PB_PART(a, member, prefix)                                                                 \
	((member) ? (member) : ((member) = pb_build(a, &prefix##__descriptor)))
