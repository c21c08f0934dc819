/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the store: keys, checksums, and the way between the cache's objects and proto/store.proto. Nothing here knows LMDB.
 *
 * Decoders take bytes from anywhere. What they return is within the limits of the cache (lengths, sets, states) and lives in the
 * arena or in the caller's struct; the bytes themselves are not referred to any more.
 */
#ifndef CACHE_STORE_CODEC_H
#define CACHE_STORE_CODEC_H

#include "core/cache/cache.h"
#include "core/cache/store.h"
#include "core/util/arena.h"
#include "core/util/err.h"
#include "proto/store.pb-c.h"

enum record_kind {
	RECORD_BLOB = 'b',
	RECORD_FACTS = 'c',
	RECORD_DECISION = 'd',
	RECORD_MOVED = 'l', /* before objects, which are added at the end */
	RECORD_META = 'm',
	RECORD_NOTE = 'n',
	RECORD_OBJECT =
		'o', /* begins the keys of pods, facts and decisions: the number follows, then the kind */
	RECORD_POD = 'p',
};

#define RECORD_SUM 4u /* bytes in front of the message */
#define RECORD_TEXT_MAX (1u << 20) /* a class, a reason, the lines of a data file */
/* The largest value: a pod whose labels and annotations fill their limits, or a blob; with room for the rest. */
#define RECORD_MAX (STORE_BLOB_MAX + 65536u)
#define RECORD_ARENA_LIMIT ((size_t)32 << 20)

struct record_key {
	size_t len;
	uint8_t bytes[1 + STORE_NAME_MAX];
};

void record_key_number(struct record_key *key, enum record_kind kind, uint64_t number);
void record_key_name(struct record_key *key, enum record_kind kind, const char *name);
void record_key_moved(struct record_key *key, uint64_t number);
/* Of any key: is it one that a store has? */
bool record_key_valid(const void *key, size_t len);
/* Of a valid key. */
enum record_kind record_key_get_kind(const void *key);
uint64_t record_key_get_number(const void *key);

/* ---- writing ------------------------------------------------------------------------------------------------------- */

/* A message that points into the object it is of; valid while that does not change. Not to be copied: it points into itself. */
struct record {
	union {
		RpStore__Meta meta;
		RpStore__Pod pod;
		RpStore__Facts facts;
		RpStore__Decision decision;
		RpStore__Moved moved;
		RpStore__Blob blob;
	} u;
	RpStore__Values values[2];
	RpStore__Needs needs;
	const ProtobufCMessage *message;
};

void record_of_meta(struct record *r, const char *boot_id, uint64_t commit, uint64_t journal);
void record_of_pod(struct record *r, const struct pod *pod);
void record_of_facts(struct record *r, const struct ctr *ctr);
void record_of_decision(struct record *r, const struct ctr *ctr, const char *policy);
void record_of_moved(struct record *r, const struct iset *cpus, const struct iset *mems,
		     const uint64_t *numbers, uint32_t n);
void record_of_blob(struct record *r, const char *version, const void *data, size_t len);
/* Bytes of the value, with its checksum. */
size_t record_size(const struct record *r);
/* Exactly record_size bytes. */
void record_write(const struct record *r, const struct record_key *key, uint8_t *out);
/* The same into the end of some room, in one go: what it is long. 0: there is not room enough. */
size_t record_pack(const struct record *r, const struct record_key *key, uint8_t *room,
		   size_t size);

/* ---- reading ------------------------------------------------------------------------------------------------------- */

/* The message in a value; -EINVAL when its checksum, its length or the key is wrong. */
int record_open(const void *key, size_t key_len, const void *value, size_t len,
		const uint8_t **ret_message, size_t *ret_len);

struct stored_meta {
	uint32_t format;
	const char *boot_id, *version;
	uint64_t commit;
	uint64_t journal; /* 0: there is none */
};

struct stored_pod {
	struct pod_desc desc; /* without labels and annotations */
	struct kvs labels, annotations;
	bool stopped;
};

struct stored_facts {
	struct ctr_desc desc; /* without labels, annotations, state and pid */
	struct kvs labels, annotations;
	uint32_t flags;
	struct needs wanted;
};

struct stored_set {
	bool present;
	struct rp_idset ids;
};

struct stored_values {
	int64_t shares, quota, period, mem_limit;
	struct stored_set cpus, mems;
};

struct stored_bytes {
	const void *data; /* NULL: absent */
	uint32_t len;
};

struct stored_decision {
	uint32_t state, pid, group;
	struct stored_values decided, acked;
	struct stored_set exclusive;
	struct needs needs;
	const char *policy; /* "": none */
	struct stored_bytes rdt_class, blockio_class, cpu_class, private_data, degraded, data;
};

struct stored_moved {
	struct stored_set cpus, mems;
	const uint64_t *numbers; /* of containers */
	uint32_t n;
};

struct stored_blob {
	const char *version; /* "": none */
	const void *data;
	size_t len;
};

/* 0; -EINVAL with what is wrong; -ENOMEM (also of the arena's limit). */
int record_decode_meta(struct arena *a, const uint8_t *data, size_t len, struct stored_meta *ret,
		       struct err *err);
int record_decode_pod(struct arena *a, const uint8_t *data, size_t len, struct stored_pod *ret,
		      struct err *err);
int record_decode_facts(struct arena *a, const uint8_t *data, size_t len, struct stored_facts *ret,
			struct err *err);
int record_decode_decision(struct arena *a, const uint8_t *data, size_t len,
			   struct stored_decision *ret, struct err *err);
int record_decode_moved(struct arena *a, const uint8_t *data, size_t len, struct stored_moved *ret,
			struct err *err);
int record_decode_blob(struct arena *a, const uint8_t *data, size_t len, struct stored_blob *ret,
		       struct err *err);

#endif
