/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash with a function that takes eight bytes at a time: ids are long, and each is looked up
 * several times a request. It starts from a number that differs in every process, as names come
 * from people.
 */
#ifndef UTIL_HASH_H
#define UTIL_HASH_H

#include <stddef.h>

unsigned hash_bytes(const void *bytes, size_t n);

#define HASH_FUNCTION(key, n, ret) ((ret) = hash_bytes((key), (n)))
#include <uthash.h>

#endif
