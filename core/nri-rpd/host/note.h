/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a module's ELF note, and what else decides whether its file may be loaded, without
 * running any of it.
 *
 * Only the program headers are needed (a file may be stripped of its sections); sections are a
 * second place to look for the note. Nothing read is believed: every offset and length is checked
 * against the file's size in 64 bit.
 */
#ifndef HOST_NOTE_H
#define HOST_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/module.h>

#include "core/lib/util/err.h"

#define NOTE_BUILD_ID_MAX 32u /* bytes; longer ones are cut */
#define NOTE_SEGMENT_MAX 65536u /* bytes of one PT_NOTE segment or note section */
#define NOTE_HEADERS_MAX 512u /* program headers, section headers */
#define NOTE_DYNAMIC_MAX 1024u /* entries of the dynamic section */
#define NOTE_SYMBOLS_MAX 65536u /* dynamic symbols */
#define NOTE_RELOCATIONS_MAX 1048576u
#define NOTE_COMPILER_INIT                                                                         \
	64u /* bytes of the function that the compiler's start files put into .init */
#define NOTE_COMPILER_CTORS 1u /* what the compiler's start files put into .init_array */

struct build_id {
	uint32_t size; /* 0: the file has none */
	uint8_t bytes[NOTE_BUILD_ID_MAX];
};

/* A hash over bytes, to tell two builds apart; not for anything an attacker could gain by. */
#define NOTE_HASH_INIT UINT64_C(0xcbf29ce484222325)
uint64_t note_hash(uint64_t hash, const void *data, size_t size);

bool build_id_equal(const struct build_id *a, const struct build_id *b);

/* What the file says. */
struct note_facts {
	/* of our major when there are several; name and version are NUL-terminated text */
	struct rp_note note;
	struct build_id build_id;
	/* over the bytes of all PT_NOTE segments, in order: the same in the file and in its
	 * image */
	uint64_t notes_hash;
	uint32_t n_constructors; /* entries of .init_array */
	uint32_t n_resolvers; /* relocations that call a function to know their value (ifunc) */
	bool own_init; /* DT_INIT is not the compiler's */
	/* defined global symbols; counted when there is a hash table to count by */
	uint32_t n_exports;
	bool has_symbol; /* RP_MODULE_SYMBOL is a defined data symbol */
	bool text_relocations;
	bool exec_stack;
	bool run_path; /* RPATH or RUNPATH */
};

/*
 * Both fill *ret when the file is a shared object for this machine with one readable note of
 * nri-rp, of whatever version. `label` is how errors call it (its path). -ENOEXEC: no shared object
 * for this machine; -ENOMSG: no note; -EBADMSG: damaged or contradictory; -EFBIG: over a limit; or
 * what reading gave.
 */
int note_parse(const void *image, size_t size, const char *label, struct note_facts *ret,
	       struct err *err);
int note_read(int fd, const char *label, struct note_facts *ret, struct err *err);

/* The file is instrumented (sanitizers, coverage): it has constructors and a run path that are not
 * its author's. */
#define NOTE_INSTRUMENTED 0x1u

/*
 * May a host of this ABI load it? -EPROTONOSUPPORT: versions do not fit; -EPERM: it would run code
 * or map memory that a module may not; -ENOEXEC: the module symbol is missing; -EINVAL: empty or
 * malformed name, version or kinds.
 */
int note_check(const struct note_facts *facts, const char *label, unsigned flags, struct err *err);

/* [a-z0-9][a-z0-9-]*, at most RP_NAME_MAX - 1 bytes. */
bool note_name_valid(const char *name);

#endif
