/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of requests for values that only a creation can set. */
#pragma once

#include "core/nri-rpd/cache/extras.h"

/* Checks a request. -EINVAL with the reason in err. */
int extra_check(const struct extra *e, struct err *err);

/* Returns true if the text is UTF-8 of at most max bytes. */
bool extra_text(const char *text, size_t max);
