/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs (state of modules) and notes (facts of the daemon itself) in the store, found by name.
 */
#pragma once

#include "core/nri-rpd/store/store.h"

/* Stores a copy of a module's state, or a note. No data: it is removed. Equal data costs a
 * comparison only. -E2BIG: over a limit in store.h; -ENOMEM. */
int store_put_blob(struct store *s, const char *module, const char *version, const void *data,
		   size_t len);
int store_put_note(struct store *s, const char *name, const void *data, size_t len);

/* Returns the data of a name, followed by a NUL and valid until that name is stored again; NULL:
 * none. */
const void *store_blob(const struct store *s, const char *module, const char **ret_version,
		       size_t *ret_len);
const void *store_note(const struct store *s, const char *name, size_t *ret_len);
