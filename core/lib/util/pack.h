/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf-c's messages to bytes, from the last byte to the first: what a nested message is long is
 * known when its length is due, so that one pass does what protobuf_c_message_get_packed_size() and
 * protobuf_c_message_pack() need two for, each of which looks at every level again. The bytes are
 * the same.
 */
#ifndef UTIL_PACK_H
#define UTIL_PACK_H

#include <protobuf-c/protobuf-c.h>

/*
 * Into the end of [room, room + size). 0 and what the message is long; -ENOBUFS: there is no room
 * for it; -ENOTSUP: it has what our messages do not have (a oneof, numbers of fixed length, unknown
 * fields).
 */
int pack_backwards(const ProtobufCMessage *m, uint8_t *room, size_t size, size_t *ret_len);

#endif
