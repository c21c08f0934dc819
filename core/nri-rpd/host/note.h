/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a module's ELF note, and the other facts that decide whether its file may be loaded,
 * without running any of it.
 *
 * The program headers suffice, because a file may be stripped of its sections; sections are a
 * second place to look for the note. The file is not trusted: every offset and length is checked
 * against the file's size in 64 bit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/module.h>

#include "core/lib/util/err.h"

#define NOTE_BUILD_ID_MAX 32u /* bytes; longer ones are cut */
#define NOTE_SEGMENT_MAX 65536u /* largest size of one PT_NOTE segment or note section, in bytes */
#define NOTE_HEADERS_MAX 512u /* largest number of program headers, and of section headers */
#define NOTE_DYNAMIC_MAX 1024u /* largest number of entries of the dynamic section */
#define NOTE_SYMBOLS_MAX 65536u /* largest number of dynamic symbols */
#define NOTE_RELOCATIONS_MAX 1048576u
#define NOTE_COMPILER_INIT                                                                         \
	64u /* size in bytes of the function that the compiler's start files add to .init */
/* number of entries that the compiler's start files add to .init_array */
#define NOTE_COMPILER_CTORS 1u

struct build_id {
	uint32_t size; /* bytes of the build id; 0: the file has none */
	uint8_t bytes[NOTE_BUILD_ID_MAX];
};

/* Initial value of a hash that tells two builds apart. The hash is not cryptographic. */
#define NOTE_HASH_INIT UINT64_C(0xcbf29ce484222325)
uint64_t note_hash(uint64_t hash, const void *data, size_t size);

bool build_id_equal(const struct build_id *a, const struct build_id *b);

/* Facts that a file states about itself. */
struct note_facts {
	/* if there are several, the one of this major version; name and version are
	 * NUL-terminated */
	struct rp_note note;
	struct build_id build_id;
	/* hash of the bytes of all PT_NOTE segments, in order; equal for the file and its image */
	uint64_t notes_hash;
	uint32_t n_constructors; /* entries of .init_array */
	uint32_t n_resolvers; /* relocations that call a function to get their value (ifunc) */
	bool own_init; /* DT_INIT is a function of the file itself, not the compiler's */
	/* defined global symbols; counted if there is a hash table */
	uint32_t n_exports;
	bool has_symbol; /* RP_MODULE_SYMBOL is a defined data symbol */
	bool text_relocations;
	bool exec_stack;
	bool run_path; /* RPATH or RUNPATH is present */
};

/*
 * Fills *ret if the file is a shared object for this machine with one readable note of nri-rp, of
 * any version. `label` names the file in errors (its path). -ENOEXEC: no shared object for this
 * machine; -ENOMSG: no note; -EBADMSG: damaged or contradictory; -EFBIG: over a limit; or an error
 * of reading.
 */
int note_parse(const void *image, size_t size, const char *label, struct note_facts *ret,
	       struct err *err);
int note_read(int fd, const char *label, struct note_facts *ret, struct err *err);

/* Flag: the file is instrumented (sanitizers, coverage) and has constructors and a run path that
 * its author did not add. */
#define NOTE_INSTRUMENTED 0x1u

/*
 * Checks whether a host of this ABI may load the file. -EPROTONOSUPPORT: versions do not fit;
 * -EPERM: it would run code or map memory that a module may not; -ENOEXEC: the module symbol is
 * missing; -EINVAL: empty or malformed name, version or kinds.
 */
int note_check(const struct note_facts *facts, const char *label, unsigned flags, struct err *err);

/* Returns true for a name [a-z0-9][a-z0-9-]* of at most RP_NAME_MAX - 1 bytes. */
bool note_name_valid(const char *name);
