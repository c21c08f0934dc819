/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes messages of protobuf-c from the last byte to the first. The size of a nested message is
 * then known when its length has to be written, so one pass replaces the two of
 * protobuf_c_message_get_packed_size() and protobuf_c_message_pack(), each of which visits every
 * level again. The bytes are identical.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

/*
 * Encodes into the end of [room, room + size). 0 and the length of the message; -ENOBUFS: not
 * enough room; -ENOTSUP: the message uses a feature that the project's messages do not use (a
 * oneof, numbers of fixed length, unknown fields).
 */
int pack_backwards(const ProtobufCMessage *m, uint8_t *room, size_t size, size_t *ret_len);
