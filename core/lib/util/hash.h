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

/* Finds the element whose member `key` has the value, or adds a zeroed one. NULL: out of memory. */
#define HASH_FIND_OR_ADD(list, key, value)                                                         \
	__extension__({                                                                            \
		__typeof__(list) e_;                                                               \
		__typeof__(e_->key) key_ = (value);                                                \
		HASH_FIND(hh, list, &key_, sizeof key_, e_);                                       \
		if (!e_ && (e_ = calloc(1, sizeof *e_))) {                                         \
			e_->key = key_;                                                            \
			HASH_ADD(hh, list, key, sizeof key_, e_);                                  \
			if (!e_->hh.tbl) {                                                         \
				free(e_);                                                          \
				e_ = NULL;                                                         \
			}                                                                          \
		}                                                                                  \
		e_;                                                                                \
	})
