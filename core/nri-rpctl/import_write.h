/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRI_RPCTL_IMPORT_WRITE_H
#define NRI_RPCTL_IMPORT_WRITE_H

#include "core/nri-rpctl/import.h"

void import_fini(struct import *im);
void import_printf(struct import *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void import_note(struct import *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "key: value" and what is below, indented; `rename` makes names of keys out of the source's (NULL:
 * as they are, and leaves a member out where it gives an empty name). */
void import_put(struct import *im, const char *key, rp_cfg node, unsigned indent,
		void (*rename)(const char *key, char *buf, size_t size));

/* Writes "KEY:", indented. */
void import_key(struct import *im, const char *key, unsigned indent);

/* Writes "KEY: TEXT", indented. */
void import_value(struct import *im, const char *key, const char *text, unsigned indent);

/* "PinCPU" is pinCPU, "CPUClass" cpuClass, "CPU" cpu. */
void import_camel(const char *key, char *buf, size_t size);

/* Older names of RDT's: l3schema is l3Allocation. */
void import_class(const char *key, char *buf, size_t size);

/* The member of a map, whatever the case of its letters. */
rp_cfg import_get(rp_cfg map, const char *key);
const char *import_text(rp_cfg map, const char *key, const char *fallback);
bool str_eq_nocase(const char *a, const char *b);

#endif
