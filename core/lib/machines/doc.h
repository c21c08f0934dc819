/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions and scenarios as trees of JSON values, read from YAML files or JSON lines, and
 * getters for them. A plain scalar of YAML becomes a boolean or an integer if it is written as one;
 * everything else is text. The getters accept either.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define DOC_FILE_MAX (1u << 20) /* largest size of a YAML file, in bytes */

struct doc_place {
	const json_t *node;
	unsigned line;
};

struct doc {
	char *name; /* name of the file */
	json_t *documents; /* array of objects, one for each YAML document */
	struct doc_place *places;
	size_t n_places;
};

/* Parses YAML; name is for messages. -EINVAL: invalid; -E2BIG; -ENOMEM. */
int doc_parse(const char *name, const char *text, size_t len, struct doc *ret, struct err *err);
int doc_read(const char *path, struct doc *ret, struct err *err);
void doc_fini(struct doc *doc);
/* Writes "file:12", or "file" if the line is unknown. Returns buf. */
const char *doc_where(const struct doc *doc, const json_t *node, char *buf, size_t size);

/* Writes a map as a file for nri-rp's YAML reader. */
int doc_write_yaml(const json_t *map, struct buf *out);

/* ---- getters --------------------------------------------------------------------------------- */

/* Returns a scalar as text. Numbers and booleans are written into buf. NULL: absent, or not a
 * scalar. */
#define ARG_NUMBER_MAX 32
const char *arg_scalar(const json_t *node, char buf[ARG_NUMBER_MAX]);

/* Members of a map that are read one after another. After the first error the others are not read,
 * and their results are undefined. All getters return `r`. */
struct args {
	const json_t *map; /* NULL: no map, which is treated as empty */
	struct err *err;
	int r; /* the first error; 0: none */
};
#define ARGS(map, err) (&(struct args){map, err, 0})

/* Checks that all keys of the map are among `keys`, separated by blanks. -EINVAL names the first
 * unknown key, and the most similar valid one. */
int arg_check(struct args *a, const char *keys, const char *what);
/* Reads a member of one type. *ret is `otherwise` if the member is absent; another type is an
 * error. */
int arg_text(struct args *a, const char *key, const char *otherwise, const char **ret);
int arg_int(struct args *a, const char *key, int64_t otherwise, int64_t min, int64_t max,
	    int64_t *ret);
int arg_bool(struct args *a, const char *key, bool otherwise, bool *ret);
/* Units of Kubernetes quantities and durations, see core/lib/util/number.h: bytes, milli CPUs,
 * milliseconds, kHz. */
enum arg_unit { ARG_BYTES, ARG_MILLI, ARG_MS, ARG_KHZ };
int arg_amount(struct args *a, const char *key, enum arg_unit unit, int64_t otherwise,
	       int64_t *ret);
/* Reads a member that has to be a map (or list); NULL: absent. */
int arg_map(struct args *a, const char *key, const json_t **ret);
int arg_list(struct args *a, const char *key, const json_t **ret);
/* Returns the members of a map in the map, checked like arg_check(), with the first error so
 * far. */
struct args arg_sub(struct args *a, const char *key, const char *keys);

/* Adds to a result. They do not report lack of memory, which json_dumps detects at the end. */
void doc_put_text(json_t *map, const char *key, const char *value);
void doc_put_int(json_t *map, const char *key, int64_t value);
void doc_put_bool(json_t *map, const char *key, bool value);

static inline void cleanup_json(json_t **node)
{
	json_decref(*node);
}
#define _json_ __attribute__((cleanup(cleanup_json)))
