/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses numbers, quantities, durations and frequencies. Parsers take the whole text or fail with
 * -EINVAL (-ERANGE: too large).
 */
#pragma once

#include "core/lib/util/str.h"

int str_to_i64(const char *s, int64_t *ret);
int str_to_u64(const char *s, uint64_t *ret);
int str_to_double(const char *s, double *ret);

/* Parses a boolean in the notations of Go's ParseBool and YAML. */
int str_to_bool(const char *s, bool *ret);

/* Parses Kubernetes quantities: "2", "750m", "1.5" → milli, rounded up; "512Mi", "1G", "1e3" →
 * bytes, rounded up. */
int str_to_milli(const char *s, int64_t *ret);
int str_to_bytes(const char *s, int64_t *ret);

/* Parses a duration: "300ms", "30s", "1m30s", "2h" → milliseconds, rounded up. */
int str_to_ms(const char *s, int64_t *ret);

/* Parses a frequency: "2.4GHz", "800 M", "1200000" (kHz) → kHz, rounded up; not negative.
 * Amounts between 0 and 1 kHz are refused. */
int str_to_khz(const char *s, int64_t *ret);
