/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash with a function that takes eight bytes at a time: ids are long, and each is looked up
 * several times a request. It starts from a number that differs in every process, as names come
 * from people.
 *
 * Without memory HASH_ADD leaves hh.tbl of the added element NULL, and the table unchanged. Every
 * caller has to check that. uthash itself would end the process, so that no other file of core/
 * includes uthash.h.
 */
#ifndef UTIL_HASH_H
#define UTIL_HASH_H

#include <stddef.h>

unsigned hash_bytes(const void *bytes, size_t n);

#define HASH_FUNCTION(key, n, ret) ((ret) = hash_bytes((key), (n)))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
