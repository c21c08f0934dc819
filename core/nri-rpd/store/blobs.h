/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_BLOBS_H
#define STORE_BLOBS_H

#include "core/nri-rpd/store/store.h"

int store_put_blob(struct store *s, const char *module, const char *version, const void *data,
		   size_t len);
int store_put_note(struct store *s, const char *name, const void *data, size_t len);

/* The bytes, with a NUL behind them; NULL: none. Good until the next put of that name. */
const void *store_blob(const struct store *s, const char *module, const char **ret_version,
		       size_t *ret_len);
const void *store_note(const struct store *s, const char *name, size_t *ret_len);

#endif
