/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/nri-rpctl/import.h"

void import_fini(struct import *im);
void import_printf(struct import *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void import_note(struct import *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes "key: value" with all members below, indented. `rename` converts keys of the source; it
 * omits a member by writing an empty name. rename NULL: unchanged keys. */
void import_put(struct import *im, const char *key, rp_cfg node, unsigned indent,
		void (*rename)(const char *key, char *buf, size_t size));

/* Writes "KEY:", indented. */
void import_key(struct import *im, const char *key, unsigned indent);

/* Writes "KEY: TEXT", indented. */
void import_value(struct import *im, const char *key, const char *text, unsigned indent);

/* Converts a key to camel case: "PinCPU" to pinCPU, "CPUClass" to cpuClass, "CPU" to cpu. */
void import_camel(const char *key, char *buf, size_t size);

/* Converts older names of RDT keys: l3schema to l3Allocation. */
void import_class(const char *key, char *buf, size_t size);

/* Returns the member of a map with that key, ignoring case. */
rp_cfg import_get(rp_cfg map, const char *key);
const char *import_text(rp_cfg map, const char *key, const char *fallback);
bool str_eq_nocase(const char *a, const char *b);
