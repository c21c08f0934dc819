/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash with a hash function that reads eight bytes at a time, because ids are long and each is
 * looked up several times a request. The seed differs in every process, because names are chosen by
 * users.
 *
 * Without memory HASH_ADD leaves hh.tbl of the added element NULL and the table unchanged. Every
 * caller has to check that. uthash itself would end the process, so no other file of core/ includes
 * uthash.h.
 */
#pragma once

#include <stddef.h>

unsigned hash_bytes(const void *bytes, size_t n);

#define HASH_FUNCTION(key, n, ret) ((ret) = hash_bytes((key), (n)))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
