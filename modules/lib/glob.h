/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns as shells have them: * ? [a-z] [^a-z] [!a-z] \x, and the whole text has to match.
 * Neither * nor ? nor a class is a slash. In a class a first ] and a last - are characters like
 * others. A malformed pattern matches nothing: a class that does not end, or a last \.
 */
#ifndef NRI_RP_LIB_GLOB_H
#define NRI_RP_LIB_GLOB_H

#include <stdbool.h>

#include "modules/lib/blocks.h"

bool glob_valid(const char *pattern);
/* Takes at most pattern times text, whatever they are. */
bool glob_match(const char *pattern, const char *text);
/* A list of patterns of a section (blocks.h's texts_read()); one that is malformed is an error at
 * its place. */
int32_t glob_read(const struct modhost *h, struct blocks *memory, rp_cfg list, struct texts *ret);
bool glob_any(const struct texts *patterns, const char *text);

#endif
