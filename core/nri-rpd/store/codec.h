/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the store: the way between the cache's objects and proto/store.proto.
 *
 * Decoders take bytes from anywhere. What they return is within the limits of the cache (lengths,
 * sets, states) and lives in the arena or in the caller's struct; the bytes themselves are not
 * referred to any more.
 */
#ifndef CACHE_STORE_CODEC_H
#define CACHE_STORE_CODEC_H

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/store/store.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/store.pb-c.h"

enum record_kind {
	RECORD_BLOB = 'b',
	RECORD_FACTS = 'c',
	RECORD_DECISION = 'd',
	RECORD_GONE = 'g',
	RECORD_MOVED = 'm',
	RECORD_NOTE = 'n',
	RECORD_POD = 'p',
};

#define RECORD_HEAD 9u /* bytes in front of the message: the kind, the number */
#define RECORD_TEXT_MAX (1u << 20) /* a class, a reason, the lines of a data file */
/* The largest: a pod whose labels and annotations fill their limits, or a blob; with room for the
 * rest. */
#define RECORD_MAX (STORE_BLOB_MAX + 65536u)
#define RECORD_ARENA_LIMIT ((size_t)32 << 20)

/* ---- writing --------------------------------------------------------------------------------- */

/* A message that points into the object it is of; valid while that does not change. Not to be
 * copied: it points into itself. */
struct record {
	enum record_kind kind;
	uint64_t number; /* of the object; 0: it has none */
	union {
		RpStore__Pod pod;
		RpStore__Facts facts;
		RpStore__Decision decision;
		RpStore__Moved moved;
		RpStore__Blob blob;
	} u;
	RpStore__Values values[3];
	RpStore__Needs needs;
	const ProtobufCMessage *message; /* NULL: the head says it all */
};

/* policy: the name of that whose private data the pod has. */
void record_of_pod(struct record *r, const struct pod *pod, const char *policy);
void record_of_facts(struct record *r, const struct ctr *ctr);
void record_of_decision(struct record *r, const struct ctr *ctr, const char *policy);
/* acked: the runtime has those of these sets that there are. */
void record_of_moved(struct record *r, const struct iset *cpus, const struct iset *mems, bool acked,
		     const uint64_t *numbers, uint32_t n);
/* kind: RECORD_BLOB, RECORD_NOTE; data NULL: it has been removed. */
void record_of_blob(struct record *r, enum record_kind kind, const char *name, const char *version,
		    const void *data, size_t len);
void record_of_gone(struct record *r, uint64_t number);
/* Bytes of the record. */
size_t record_size(const struct record *r);
/* Exactly record_size bytes. */
void record_write(const struct record *r, uint8_t *out);
/* The same into the end of some room, in one go: what it is long. 0: there is not room enough. */
size_t record_pack(const struct record *r, uint8_t *room, size_t size);

/* ---- reading --------------------------------------------------------------------------------- */

struct record_view {
	enum record_kind kind;
	uint64_t number;
	const uint8_t *message;
	size_t len;
};

/* -EINVAL: it is of no kind that there is, or too short or long. */
int record_open(const void *record, size_t len, struct record_view *ret);

struct stored_bytes {
	const void *data; /* NULL: absent */
	uint32_t len;
};

struct stored_pod {
	struct pod_desc desc; /* without labels and annotations */
	struct kvs labels, annotations;
	bool stopped;
	const char *policy; /* whose private_data is; "" */
	struct stored_bytes private_data, grants;
};

struct stored_facts {
	struct ctr_desc desc; /* without labels, annotations, state and pid */
	struct kvs labels, annotations;
	uint32_t flags;
	struct needs wanted;
	int64_t pod_cpu_extra;
};

struct stored_set {
	bool present;
	struct rp_idset ids;
};

struct stored_values {
	int64_t shares, quota, period, mem_limit;
	struct stored_set cpus, mems;
};

struct stored_decision {
	uint32_t state, pid, group;
	bool confined;
	struct stored_values decided, acked, sent;
	struct stored_set exclusive;
	struct needs needs;
	const char *policy; /* "": none */
	struct stored_bytes rdt_class, blockio_class, cpu_class, private_data, degraded, data;
};

struct stored_moved {
	struct stored_set cpus, mems;
	bool acked;
	const uint64_t *numbers; /* of containers */
	uint32_t n;
};

struct stored_blob {
	const char *name;
	const char *version; /* "": none */
	const void *data; /* NULL: it has been removed */
	size_t len;
};

/* 0; -EINVAL with what is wrong; -ENOMEM (also of the arena's limit). */
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
