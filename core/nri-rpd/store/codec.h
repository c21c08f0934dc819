/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the store: conversion between the cache's objects and proto/store.proto.
 *
 * Decoders accept arbitrary bytes. Their results are within the limits of the cache (lengths, sets,
 * states), live in the arena or in the caller's struct, and do not point into the bytes.
 */
#pragma once

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

#define RECORD_HEAD 9u /* bytes before the message: kind and number */
/* Largest record: a pod whose labels and annotations reach their limits, or a blob, and the
 * remaining fields. */
#define RECORD_MAX (STORE_BLOB_MAX + 65536u)
#define RECORD_ARENA_LIMIT ((size_t)32 << 20)

/* ---- encoding -------------------------------------------------------------------------------- */

/* Message that points into its object; valid while the object is unchanged. Must not be copied,
 * because it points into itself. */
struct record {
	enum record_kind kind;
	uint64_t number; /* number of the object; 0: none */
	union {
		RpStore__Pod pod;
		RpStore__Facts facts;
		RpStore__Decision decision;
		RpStore__Moved moved;
		RpStore__Blob blob;
	} u;
	RpStore__Values values[3];
	RpStore__Needs needs;
	RpStore__Huge huge[HUGE_SIZES_MAX], *huge_list[HUGE_SIZES_MAX];
	/* message behind the head; NULL: the record has a head only */
	const ProtobufCMessage *message;
};

/* Fills a record from an object. `policy`: name of the policy that owns the private data. */
void record_of_pod(struct record *r, const struct pod *pod, const char *policy);
void record_of_facts(struct record *r, const struct ctr *ctr);
void record_of_decision(struct record *r, const struct ctr *ctr, const char *policy);
/* Fills a record of sets that several containers got. acked: the runtime has acknowledged the
 * present ones. */
void record_of_moved(struct record *r, const struct iset *cpus, const struct iset *mems, bool acked,
		     const uint64_t *numbers, uint32_t n);
/* Fills a record of a blob or note (kind). data NULL: it was removed. */
void record_of_blob(struct record *r, enum record_kind kind, const char *name, const char *version,
		    const void *data, size_t len);
void record_of_gone(struct record *r, uint64_t number);
/* Returns the size of the encoded record in bytes. */
size_t record_size(const struct record *r);
/* Writes exactly record_size() bytes. */
void record_write(const struct record *r, uint8_t *out);
/* Writes the record into the end of `room` in a single pass, and returns its size. 0: the room is
 * too small. */
size_t record_pack(const struct record *r, uint8_t *room, size_t size);

/* ---- decoding -------------------------------------------------------------------------------- */

struct record_view {
	enum record_kind kind;
	uint64_t number;
	const uint8_t *message;
	size_t len;
};

/* Splits a record into head and message. -EINVAL: unknown kind, or a wrong size. */
int record_open(const void *record, size_t len, struct record_view *ret);

struct stored_bytes {
	const void *data; /* borrowed bytes; NULL: the field is absent */
	uint32_t len;
};

struct stored_pod {
	struct pod_desc desc; /* without labels and annotations */
	struct kvs labels, annotations;
	bool stopped;
	const char *policy; /* policy of private_data; "": none */
	struct stored_bytes private_data, grants;
};

struct stored_facts {
	/* without labels, annotations, state, pid and creation time */
	struct ctr_desc desc;
	struct kvs labels, annotations;
	uint32_t flags;
	struct needs wanted;
	int64_t pod_cpu_extra;
	const char *device, *users; /* members of a claim (claim.h); device NULL: a container */
	const char *claim; /* id of the claim that the container uses; NULL: none */
};

struct stored_set {
	bool present;
	struct rp_idset ids;
};

struct stored_values {
	CPU_AMOUNTS;
	struct stored_set cpus, mems;
};

struct stored_decision {
	uint32_t state, pid, group;
	uint64_t created_ns; /* creation time of the container; 0: unknown */
	bool confined, claimed;
	struct stored_values decided, acked, sent;
	struct stored_set exclusive;
	struct needs needs;
	const char *policy; /* policy that owns the private data; "": none */
#define DECLARE_BLOB(member, what, max) struct stored_bytes member;
	DECISION_BLOBS(DECLARE_BLOB)
};

struct stored_moved {
	struct stored_set cpus, mems;
	bool acked;
	const uint64_t *numbers; /* numbers of containers */
	uint32_t n;
};

struct stored_blob {
	const char *name;
	const char *version; /* version of the format of `data`; "": none */
	const void *data; /* contents; NULL: the data of this name was removed */
	size_t len;
};

/* Decodes messages. 0; -EINVAL with the reason in err; -ENOMEM, also at the limit of the arena. */
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
