/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glob patterns as in shells: * ? [a-z] [^a-z] [!a-z] \x. The whole text must match. No slash
 * matches *, ? or a class. In a class a first ] and a last - stand for themselves. A malformed
 * pattern matches no text: a class without end, or a final \.
 */
#ifndef NRI_RP_LIB_GLOB_H
#define NRI_RP_LIB_GLOB_H

#include <stdbool.h>

#include <nri-rp/lib/blocks.h>

/* Returns true if the pattern is well-formed. */
bool glob_valid(const char *pattern);
/* Returns true if the text matches, in at most pattern × text steps. */
bool glob_match(const char *pattern, const char *text);
/* Reads a list of patterns of a section (texts_read() in blocks.h). A malformed pattern is an error
 * with the line of the configuration file. */
int32_t glob_read(const struct modhost *h, struct blocks *memory, rp_cfg list, struct texts *ret);
/* Returns true if one of the patterns matches the text. */
bool glob_any(const struct texts *patterns, const char *text);

#endif
