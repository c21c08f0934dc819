/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHE_EXTRAS_CHECK_H
#define CACHE_EXTRAS_CHECK_H

#include "core/nri-rpd/cache/extras.h"

/* Is it well-formed? -EINVAL with what is not. */
int extra_check(const struct extra *e, struct err *err);

/* UTF-8 of at most max bytes. */
bool extra_text(const char *text, size_t max);

#endif
