/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions and scenarios as trees of JSON values: read from YAML files or JSON lines, and asked
 * for what they hold. A plain scalar of YAML becomes a boolean or an integer when it is written as
 * one, everything else is text; the getters take either.
 */
#ifndef MACHINES_DOC_H
#define MACHINES_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define DOC_FILE_MAX (1u << 20) /* bytes of a YAML file */

struct doc_place {
	const json_t *node;
	unsigned line;
};

struct doc {
	char *name; /* of the file */
	json_t *documents; /* an array of objects, one for each YAML document */
	struct doc_place *places;
	size_t n_places;
};

/* The text is YAML; name is for messages. -EINVAL: it is not; -E2BIG; -ENOMEM. */
int doc_parse(const char *name, const char *text, size_t len, struct doc *ret, struct err *err);
int doc_read(const char *path, struct doc *ret, struct err *err);
void doc_fini(struct doc *doc);
/* "file:12", or "file" for what has no place of its own. Returns buf. */
const char *doc_where(const struct doc *doc, const json_t *node, char *buf, size_t size);

/* A map as a file that nri-rp's YAML reader takes. */
int doc_write_yaml(const json_t *map, struct buf *out);

/* ---- getters --------------------------------------------------------------------------------- */

/* Are all keys of a map among these, separated by blanks? -EINVAL names the first that is not, and
 * what it could have been. */
int arg_check(const json_t *map, const char *keys, const char *what, struct err *err);
/* A scalar as text. Numbers and booleans are written into buf. NULL: not there, or not a scalar. */
#define ARG_NUMBER_MAX 32
const char *arg_scalar(const json_t *node, char buf[ARG_NUMBER_MAX]);
/* A member that has to be text if it is there; otherwise is returned when it is not. */
int arg_text(const json_t *map, const char *key, const char *otherwise, const char **ret,
	     struct err *err);
int arg_int(const json_t *map, const char *key, int64_t otherwise, int64_t min, int64_t max,
	    int64_t *ret, struct err *err);
int arg_bool(const json_t *map, const char *key, bool otherwise, bool *ret, struct err *err);
/* Kubernetes quantities and durations, see core/lib/util/str.h; in bytes, milli CPUs, milliseconds,
 * kHz. */
enum arg_unit { ARG_BYTES, ARG_MILLI, ARG_MS, ARG_KHZ };
int arg_amount(const json_t *map, const char *key, enum arg_unit unit, int64_t otherwise,
	       int64_t *ret, struct err *err);
/* A member that has to be a map (or list) if it is there; NULL when it is not. */
int arg_map(const json_t *map, const char *key, const json_t **ret, struct err *err);
int arg_list(const json_t *map, const char *key, const json_t **ret, struct err *err);

/* To build results: out of memory is remembered in neither, as json_t's are checked at the end by
 * json_dumps. */
void doc_put_text(json_t *map, const char *key, const char *value);
void doc_put_int(json_t *map, const char *key, int64_t value);
void doc_put_bool(json_t *map, const char *key, bool value);

static inline void cleanup_json(json_t **node)
{
	json_decref(*node);
}
#define _json_ __attribute__((cleanup(cleanup_json)))

#endif
