/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of as much ELF as is needed to refuse a file: headers, notes, the dynamic section, the
 * dynamic symbols.
 *
 * All reading goes through note_get(), which checks against the size of the file; everything else
 * works on copies. Data that the dynamic loader will use is looked up as the loader does, by
 * virtual address through the PT_LOAD headers, so that both see the same bytes.
 */
#include "core/nri-rpd/host/note.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#define RELOCATION_CALLS R_X86_64_IRELATIVE
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#define RELOCATION_CALLS R_AARCH64_IRELATIVE
#elif defined(__powerpc64__)
#define HOST_MACHINE EM_PPC64
#define RELOCATION_CALLS R_PPC64_IRELATIVE
#elif defined(__s390x__)
#define HOST_MACHINE EM_S390
#define RELOCATION_CALLS R_390_IRELATIVE
#elif defined(__riscv)
#define HOST_MACHINE EM_RISCV
#define RELOCATION_CALLS R_RISCV_IRELATIVE
#else
#error "add the ELF machine number of this architecture to core/nri-rpd/host/note.c"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_DATA ELFDATA2LSB
#else
#define HOST_DATA ELFDATA2MSB
#endif

#define PAGE_OF_SYMBOLS 128u
#define PAGE_OF_RELOCATIONS 128u

/* A module file that is read. The first error is kept, and each later read returns zeros. */
struct elf {
	const uint8_t *image; /* bytes of the file; NULL: they are read from fd */
	int fd;
	uint64_t size;
	const char *label;
	struct err *err;
	int error; /* 0: none */
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	unsigned n_segments;
};

/* Relevant entries of the dynamic section. Addresses are virtual; 0: absent. */
struct dynamic {
	uint64_t symtab, strtab, strtab_size, symbol_size, hash, gnu_hash, init_array_size, flags;
	uint64_t init; /* address of the DT_INIT function */
	uint64_t rela, rela_size, plt_rela, plt_rela_size;
	bool text_relocations, run_path;
};

static const struct {
	uint16_t machine;
	const char *name;
} machines[] = {
	{EM_X86_64, "x86-64"}, {EM_AARCH64, "arm64"},  {EM_PPC64, "ppc64"},    {EM_S390, "s390x"},
	{EM_RISCV, "riscv64"}, {EM_386, "32-bit x86"}, {EM_ARM, "32-bit arm"},
};

static const char *machine_name(uint16_t machine)
{
	for (unsigned i = 0; i < sizeof machines / sizeof machines[0]; i++)
		if (machines[i].machine == machine)
			return machines[i].name;
	return "another machine";
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* Returns the FNV-1a hash of the bytes, continued from `hash`. */
uint64_t note_hash(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *p = data;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

bool note_name_valid(const char *name)
{
	if (*name == '-')
		return false;
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	return n > 0 && n < RP_NAME_MAX && !name[n];
}

/* ---- bytes ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void note_fail(struct elf *e, int error,
							    const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (!e->error)
		e->error = err_vset(e->err, error, fmt, ap);
	va_end(ap);
}

static void note_damaged(struct elf *e, const char *what)
{
	note_fail(e, -EBADMSG, "module file %s is damaged: %s", e->label, what);
}

static void note_unread(struct elf *e, int error)
{
	if (!e->error)
		e->error = err_errno(e->err, error, "cannot read module file %s", e->label);
}

static void note_get(struct elf *e, uint64_t off, void *dst, uint64_t len, const char *what)
{
	memset(dst, 0, len);
	if (off > e->size || len > e->size - off)
		note_fail(e, -EBADMSG, "module file %s is damaged: %s would end past its end",
			  e->label, what);
	else if (e->image && !e->error)
		memcpy(dst, e->image + off, len);
	for (uint64_t done = 0; !e->image && !e->error && done < len;) {
		ssize_t n = pread(e->fd, (uint8_t *)dst + done, len - done, (off_t)(off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			note_unread(e, -errno);
		else if (n == 0)
			note_damaged(e, "it was truncated while being read");
		else
			done += (uint64_t)n;
	}
}

/* Reads the bytes that will be at a virtual address once the file is mapped. */
static void get_mapped(struct elf *e, uint64_t addr, void *dst, uint64_t len, const char *what)
{
	for (unsigned i = 0; i < e->n_segments; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		if (p->p_type != PT_LOAD || addr < p->p_vaddr || addr - p->p_vaddr >= p->p_filesz)
			continue;
		uint64_t skip = addr - p->p_vaddr;
		if (len > p->p_filesz - skip || p->p_offset > e->size ||
		    skip > e->size - p->p_offset)
			break;
		note_get(e, p->p_offset + skip, dst, len, what);
		return;
	}
	memset(dst, 0, len);
	note_fail(e, -EBADMSG, "module file %s is damaged: %s is not in a loaded segment", e->label,
		  what);
}

/* Returns true if the file has a table of section headers of the known form. */
static bool has_sections(const struct elf *e)
{
	const Elf64_Ehdr *h = &e->header;
	return h->e_shoff && h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shnum <= NOTE_HEADERS_MAX;
}

static Elf64_Shdr get_section(struct elf *e, unsigned i)
{
	Elf64_Shdr s = {0};
	if (e->header.e_shoff > e->size)
		note_damaged(e, "the section header table would be past its end");
	else
		note_get(e, e->header.e_shoff + (uint64_t)i * sizeof s, &s, sizeof s,
			 "the section header table");
	return s;
}

/* ---- headers --------------------------------------------------------------------------------- */

static void note_refuse(struct elf *e, const char *why)
{
	note_fail(e, -ENOEXEC, "%s is not a module: %s", e->label, why);
}

static void check_ident(struct elf *e)
{
	const unsigned char *ident = e->header.e_ident;
	if (e->size < EI_NIDENT) {
		note_refuse(e, "too short for an ELF file");
		return;
	}
	note_get(e, 0, e->header.e_ident, EI_NIDENT, "the ELF identification");
	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		note_refuse(e, "not an ELF file");
	if (ident[EI_CLASS] != ELFCLASS64)
		note_refuse(e, "not a 64-bit ELF file");
	if (ident[EI_DATA] != HOST_DATA)
		note_refuse(e, "an ELF file of the other byte order");
	if (ident[EI_VERSION] != EV_CURRENT)
		note_refuse(e, "an ELF file of an unknown version");
}

static void check_header(struct elf *e)
{
	const Elf64_Ehdr *h = &e->header;
	note_get(e, 0, &e->header, sizeof e->header, "the ELF header");
	if (h->e_machine != HOST_MACHINE)
		note_fail(e, -ENOEXEC,
			  "%s is not a module for this machine: built for %s (ELF machine "
			  "%u), this host is %s",
			  e->label, machine_name(h->e_machine), h->e_machine,
			  machine_name(HOST_MACHINE));
	if (h->e_type == ET_REL)
		note_refuse(e, "an object file; link it with -shared");
	if (h->e_type != ET_DYN)
		note_refuse(e, "not a shared object");
	if (!h->e_phnum || h->e_phentsize != sizeof(Elf64_Phdr))
		note_damaged(e, "it has no program headers");
	if (h->e_phnum > NOTE_HEADERS_MAX)
		note_fail(e, -EFBIG, "module file %s has %u program headers, at most %u are read",
			  e->label, h->e_phnum, NOTE_HEADERS_MAX);
}

static void read_segments(struct elf *e)
{
	uint64_t size = (uint64_t)e->header.e_phnum * sizeof *e->segments;
	e->segments = e->error ? NULL : malloc(size);
	if (!e->segments) {
		note_unread(e, -ENOMEM);
		return;
	}
	note_get(e, e->header.e_phoff, e->segments, size, "the program header table");
	e->n_segments = e->error ? 0 : e->header.e_phnum;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static bool is_text(const char *s, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!s[i])
			return true;
		if (s[i] < 0x20 || s[i] > 0x7e)
			return false;
	}
	return false;
}

/* Takes over a note of nri-rp. A note of this major version wins over notes of other majors, which
 * only serve to report what the file was built for. */
static void take_note(struct elf *e, const uint8_t *desc, uint64_t size, struct note_facts *facts,
		      bool *found)
{
	struct rp_note note;
	if (size < sizeof note) {
		note_damaged(e, "its nri-rp note is too short");
		return;
	}
	memcpy(&note, desc, sizeof note);
	bool ours = note.abi_major == RP_ABI_MAJOR;
	bool text =
		is_text(note.name, sizeof note.name) && is_text(note.version, sizeof note.version);
	if (ours && !text)
		note_damaged(e, "the name or version in its nri-rp note is not text");
	if (!text)
		note.name[0] = note.version[0] = '\0';
	if (*found && ours && facts->note.abi_major == RP_ABI_MAJOR &&
	    memcmp(&note, &facts->note, sizeof note) != 0)
		note_damaged(e, "it has two different nri-rp notes (two modules in one file?)");
	if (!*found || ours)
		facts->note = note;
	*found = true;
}

static void take_build_id(const uint8_t *desc, uint64_t size, struct build_id *id)
{
	id->size = size < NOTE_BUILD_ID_MAX ? (uint32_t)size : NOTE_BUILD_ID_MAX;
	memcpy(id->bytes, desc, id->size);
}

static uint64_t round_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) / align * align;
}

/* Reads a run of notes. Sanitizers leave zeroes behind theirs, which read as empty notes. */
static void walk_notes(struct elf *e, const uint8_t *p, uint64_t size, uint64_t align,
		       struct note_facts *facts, bool *found)
{
	for (uint64_t at = 0; !e->error && at <= size && size - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr h;
		memcpy(&h, p + at, sizeof h);
		uint64_t name = at + sizeof h;
		uint64_t desc = round_up(name + h.n_namesz, align);
		if (desc > size || h.n_descsz > size - desc) {
			note_damaged(e, "a note would end past its segment");
			return;
		}
		if (h.n_namesz == sizeof RP_NOTE_OWNER && h.n_type == RP_NOTE_TYPE &&
		    memcmp(p + name, RP_NOTE_OWNER, sizeof RP_NOTE_OWNER) == 0)
			take_note(e, p + desc, h.n_descsz, facts, found);
		else if (h.n_namesz == sizeof ELF_NOTE_GNU && h.n_type == NT_GNU_BUILD_ID &&
			 memcmp(p + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0)
			take_build_id(p + desc, h.n_descsz, &facts->build_id);
		at = round_up(desc + h.n_descsz, align);
	}
}

static void read_notes(struct elf *e, uint64_t off, uint64_t size, uint64_t align,
		       struct note_facts *facts, bool *found)
{
	if (size > NOTE_SEGMENT_MAX) {
		note_fail(e, -EFBIG, "module file %s has %llu bytes of notes, at most %u are read",
			  e->label, (unsigned long long)size, NOTE_SEGMENT_MAX);
		return;
	}
	_free_ uint8_t *bytes = malloc(size + 1);
	if (!bytes) {
		note_unread(e, -ENOMEM);
		return;
	}
	note_get(e, off, bytes, size, "a note segment");
	facts->notes_hash = note_hash(facts->notes_hash, bytes, size);
	walk_notes(e, bytes, size, align == 8 ? 8 : 4, facts, found);
}

static void find_note(struct elf *e, struct note_facts *facts)
{
	bool found = false;
	for (unsigned i = 0; i < e->n_segments && !e->error; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		if (p->p_type == PT_NOTE)
			read_notes(e, p->p_offset, p->p_filesz, p->p_align, facts, &found);
	}
	uint64_t hash = facts->notes_hash;
	/* The linker of a file may have created a section for the note but no segment. */
	const unsigned n = !found && has_sections(e) ? e->header.e_shnum : 0;
	for (unsigned i = 0; i < n && !e->error; i++) {
		Elf64_Shdr s = get_section(e, i);
		if (s.sh_type == SHT_NOTE)
			read_notes(e, s.sh_offset, s.sh_size, s.sh_addralign, facts, &found);
	}
	facts->notes_hash = hash;
	if (!found)
		note_fail(e, -ENOMSG,
			  "%s is not an nri-rp module: it has no nri-rp note (RP_MODULE_DEFINE "
			  "creates it)",
			  e->label);
}

/* ---- the dynamic section --------------------------------------------------------------------- */

static void take_dynamic(const Elf64_Dyn *d, struct dynamic *dyn)
{
	static const struct {
		Elf64_Sxword tag;
		size_t at;
	} rows[] = {
		{DT_SYMTAB, offsetof(struct dynamic, symtab)},
		{DT_STRTAB, offsetof(struct dynamic, strtab)},
		{DT_STRSZ, offsetof(struct dynamic, strtab_size)},
		{DT_SYMENT, offsetof(struct dynamic, symbol_size)},
		{DT_HASH, offsetof(struct dynamic, hash)},
		{DT_GNU_HASH, offsetof(struct dynamic, gnu_hash)},
		{DT_INIT_ARRAYSZ, offsetof(struct dynamic, init_array_size)},
		{DT_INIT, offsetof(struct dynamic, init)},
		{DT_RELA, offsetof(struct dynamic, rela)},
		{DT_RELASZ, offsetof(struct dynamic, rela_size)},
		{DT_JMPREL, offsetof(struct dynamic, plt_rela)},
		{DT_PLTRELSZ, offsetof(struct dynamic, plt_rela_size)},
		{DT_FLAGS, offsetof(struct dynamic, flags)},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].tag == d->d_tag)
			*(uint64_t *)((char *)dyn + rows[i].at) = d->d_un.d_val;
	dyn->text_relocations |= d->d_tag == DT_TEXTREL;
	dyn->run_path |= d->d_tag == DT_RPATH || d->d_tag == DT_RUNPATH;
}

static const Elf64_Phdr *dynamic_segment(const struct elf *e)
{
	const Elf64_Phdr *found = NULL;
	for (unsigned i = 0; i < e->n_segments; i++)
		if (e->segments[i].p_type == PT_DYNAMIC)
			found = &e->segments[i];
	return found;
}

static void read_dynamic(struct elf *e, struct dynamic *dyn)
{
	const Elf64_Phdr *p = dynamic_segment(e);
	if (!p) {
		note_refuse(e, "it has no dynamic section");
		return;
	}
	for (uint64_t i = 0; i < NOTE_DYNAMIC_MAX; i++) {
		Elf64_Dyn d;
		get_mapped(e, p->p_vaddr + i * sizeof d, &d, sizeof d, "the dynamic section");
		if (d.d_tag == DT_NULL) /* the end, or an error */
			return;
		take_dynamic(&d, dyn);
	}
	note_fail(e, -EFBIG, "module file %s has more than %u dynamic entries", e->label,
		  NOTE_DYNAMIC_MAX);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static void check_symbols(struct elf *e, bool fit)
{
	if (!fit)
		note_fail(e, -EFBIG, "module file %s has more than %u dynamic symbols", e->label,
			  NOTE_SYMBOLS_MAX);
}

/* Counts the symbols of a GNU hash table. The table does not store their number: the last chain of
 * the highest bucket ends with the last symbol. */
static uint32_t count_gnu_hash(struct elf *e, uint64_t table)
{
	uint32_t h[4]; /* buckets, first symbol, words of the Bloom filter, its shift */
	get_mapped(e, table, h, sizeof h, "the symbol hash table");
	check_symbols(e, h[0] <= NOTE_SYMBOLS_MAX && h[1] <= NOTE_SYMBOLS_MAX &&
				 h[2] <= NOTE_SYMBOLS_MAX);
	uint64_t buckets = table + sizeof h + (uint64_t)h[2] * 8,
		 chains = buckets + (uint64_t)h[0] * 4;
	uint32_t last = 0;
	for (uint32_t i = 0; i < h[0] && !e->error; i++) {
		uint32_t first;
		get_mapped(e, buckets + (uint64_t)i * 4, &first, sizeof first, "a hash bucket");
		last = first > last ? first : last;
	}
	if (last < h[1])
		return h[1];
	for (uint32_t link = 0; !(link & 1) && !e->error; last++) {
		check_symbols(e, last < NOTE_SYMBOLS_MAX);
		get_mapped(e, chains + (uint64_t)(last - h[1]) * 4, &link, sizeof link,
			   "a hash chain");
	}
	return last;
}

static uint32_t count_symbols(struct elf *e, const struct dynamic *dyn)
{
	uint32_t h[2]; /* buckets, symbols */
	if (dyn->gnu_hash)
		return count_gnu_hash(e, dyn->gnu_hash);
	if (!dyn->hash)
		note_damaged(e, "it has no symbol hash table");
	get_mapped(e, dyn->hash, h, sizeof h, "the symbol hash table");
	check_symbols(e, h[1] <= NOTE_SYMBOLS_MAX);
	return h[1];
}

static bool note_exported(const Elf64_Sym *s)
{
	unsigned bind = ELF64_ST_BIND(s->st_info), see = ELF64_ST_VISIBILITY(s->st_other);
	return s->st_shndx != SHN_UNDEF &&
	       (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE) &&
	       (see == STV_DEFAULT || see == STV_PROTECTED);
}

static void take_symbol(struct elf *e, const struct dynamic *dyn, const Elf64_Sym *s,
			struct note_facts *facts)
{
	char name[sizeof RP_MODULE_SYMBOL];
	if (!note_exported(s))
		return;
	facts->n_exports++;
	if (ELF64_ST_TYPE(s->st_info) != STT_OBJECT || s->st_size < sizeof(struct rp_module))
		return;
	if (dyn->strtab_size < sizeof name || s->st_name > dyn->strtab_size - sizeof name)
		/* too close to the end of the string table to be the name of an nri-rp module's
		 * symbol */
		return;
	get_mapped(e, dyn->strtab + s->st_name, name, sizeof name, "the name of a symbol");
	facts->has_symbol |= memcmp(name, RP_MODULE_SYMBOL, sizeof name) == 0;
}

static void read_symbols(struct elf *e, const struct dynamic *dyn, struct note_facts *facts)
{
	if (dyn->symbol_size != sizeof(Elf64_Sym))
		note_damaged(e, "its dynamic symbols have an unknown size");
	uint32_t n = count_symbols(e, dyn);
	for (uint32_t i = 0; i < n && !e->error; i += PAGE_OF_SYMBOLS) {
		Elf64_Sym page[PAGE_OF_SYMBOLS];
		uint32_t here = n - i < PAGE_OF_SYMBOLS ? n - i : PAGE_OF_SYMBOLS;
		get_mapped(e, dyn->symtab + (uint64_t)i * sizeof page[0], page,
			   (uint64_t)here * sizeof page[0], "the dynamic symbols");
		for (uint32_t k = 0; k < here && !e->error; k++)
			take_symbol(e, dyn, &page[k], facts);
	}
}

/* ---- code that runs during loading ----------------------------------------------------------- */

/* Determines whether DT_INIT is the compiler's function, which is short and fills its section
 * alone. Without section headers this cannot be determined. */
static void read_init(struct elf *e, const struct dynamic *dyn, struct note_facts *facts)
{
	facts->own_init = dyn->init && has_sections(e);
	for (unsigned i = 0; i < e->header.e_shnum && facts->own_init && !e->error; i++) {
		Elf64_Shdr s = get_section(e, i);
		facts->own_init = s.sh_addr != dyn->init || s.sh_type != SHT_PROGBITS ||
				  s.sh_size > NOTE_COMPILER_INIT;
	}
}

static void count_resolvers(struct elf *e, uint64_t table, uint64_t size, struct note_facts *facts)
{
	uint64_t n = table ? size / sizeof(Elf64_Rela) : 0;
	if (n > NOTE_RELOCATIONS_MAX)
		note_fail(e, -EFBIG, "module file %s has more than %u relocations", e->label,
			  NOTE_RELOCATIONS_MAX);
	for (uint64_t i = 0; i < n && !e->error; i += PAGE_OF_RELOCATIONS) {
		Elf64_Rela page[PAGE_OF_RELOCATIONS];
		uint64_t here = n - i < PAGE_OF_RELOCATIONS ? n - i : PAGE_OF_RELOCATIONS;
		get_mapped(e, table + i * sizeof page[0], page, here * sizeof page[0],
			   "the relocations");
		for (uint64_t k = 0; k < here; k++)
			facts->n_resolvers += ELF64_R_TYPE(page[k].r_info) == RELOCATION_CALLS;
	}
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* Returns true if the file requires an executable stack. Without the header, the dynamic loader
 * assumes that it does. */
static bool wants_exec_stack(const struct elf *e)
{
	for (unsigned i = 0; i < e->n_segments; i++)
		if (e->segments[i].p_type == PT_GNU_STACK)
			return e->segments[i].p_flags & PF_X;
	return true;
}

static void read_dynamic_facts(struct elf *e, struct note_facts *facts)
{
	struct dynamic dyn = {0};
	read_dynamic(e, &dyn);
	uint64_t n = dyn.init_array_size / 8 + (dyn.init_array_size % 8 != 0);
	facts->n_constructors = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	facts->text_relocations = dyn.text_relocations || (dyn.flags & DF_TEXTREL);
	facts->run_path = dyn.run_path;
	facts->exec_stack = wants_exec_stack(e);
	read_init(e, &dyn, facts);
	count_resolvers(e, dyn.rela, dyn.rela_size, facts);
	count_resolvers(e, dyn.plt_rela, dyn.plt_rela_size, facts);
	read_symbols(e, &dyn, facts);
}

static int note_do_parse(struct elf *e, struct note_facts *ret)
{
	struct note_facts facts = {.notes_hash = NOTE_HASH_INIT};
	check_ident(e);
	check_header(e);
	read_segments(e);
	find_note(e, &facts);
	read_dynamic_facts(e, &facts);
	free(e->segments);
	if (!e->error)
		*ret = facts;
	return e->error;
}

int note_parse(const void *image, size_t size, const char *label, struct note_facts *ret,
	       struct err *err)
{
	struct elf e = {.image = image, .fd = -1, .size = size, .label = label, .err = err};
	return note_do_parse(&e, ret);
}

int note_read(int fd, const char *label, struct note_facts *ret, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot read module file %s", label);
	struct elf e = {.fd = fd, .size = (uint64_t)st.st_size, .label = label, .err = err};
	if (!S_ISREG(st.st_mode))
		note_refuse(&e, "not a regular file");
	return note_do_parse(&e, ret);
}

/* ---- verdict --------------------------------------------------------------------------------- */

static int check_versions(const struct rp_note *n, const char *who, struct err *err)
{
	if (n->abi_major != RP_ABI_MAJOR)
		return err_set(
			err, -EPROTONOSUPPORT,
			"%s: built for ABI %u.%u, this host has %u.%u; install a build for ABI %u",
			who, n->abi_major, n->abi_minor, RP_ABI_MAJOR, RP_ABI_MINOR, RP_ABI_MAJOR);
	if (n->min_host_minor > RP_ABI_MINOR)
		return err_set(err, -EPROTONOSUPPORT,
			       "%s: needs a host of ABI %u.%u, this host has %u.%u; update nri-rp "
			       "or install an older build",
			       who, n->abi_major, n->min_host_minor, RP_ABI_MAJOR, RP_ABI_MINOR);
	return 0;
}

static int check_identity(const struct rp_note *n, const char *who, struct err *err)
{
	if (!note_name_valid(n->name))
		return err_set(err, -EINVAL,
			       "%s: \"%s\" is not a module's name (a-z, 0-9 and -, at most %u)",
			       who, n->name, RP_NAME_MAX - 1);
	if (!n->version[0])
		return err_set(err, -EINVAL, "%s: its note has no version", who);
	if (!(n->kinds & (RP_KIND_POLICY | RP_KIND_CONTROLLER | RP_KIND_CALCULATOR)))
		return err_set(err, -EINVAL, "%s: of a kind unknown to this host (kinds 0x%x)", who,
			       n->kinds);
	return 0;
}

/* Refuses files that would run code or map memory during loading, before the module could be
 * checked. */
static int check_contents(const struct note_facts *f, const char *who, unsigned flags,
			  struct err *err)
{
	bool instrumented = flags & NOTE_INSTRUMENTED;
	if (f->n_constructors > NOTE_COMPILER_CTORS && !instrumented)
		return err_set(err, -EPERM,
			       "%s: has %u constructors, which would run before the checks; "
			       "initialize in create()",
			       who, f->n_constructors - NOTE_COMPILER_CTORS);
	if (f->own_init && !instrumented)
		return err_set(err, -EPERM,
			       "%s: has a DT_INIT function, which would run before the checks; "
			       "initialize in create()",
			       who);
	if (f->n_resolvers && !instrumented)
		return err_set(err, -EPERM,
			       "%s: has %u resolvers of indirect functions (ifunc), which would "
			       "run before the checks; choose in create()",
			       who, f->n_resolvers);
	if (f->text_relocations)
		return err_set(err, -EPERM, "%s: has text relocations; build it with -fPIC", who);
	if (f->exec_stack)
		return err_set(err, -EPERM,
			       "%s: needs an executable stack; link it with -z noexecstack", who);
	if (f->run_path && !instrumented)
		return err_set(err, -EPERM,
			       "%s: has an RPATH or RUNPATH; only the system's library directories "
			       "are used",
			       who);
	return 0;
}

int note_check(const struct note_facts *facts, const char *label, unsigned flags, struct err *err)
{
	char who[RP_NAME_MAX + 16 + 512];
	bool named = note_name_valid(facts->note.name);
	(void)snprintf(who, sizeof who, named ? "module \"%s\" (%.*s)" : "module %s(%.*s)",
		       named ? facts->note.name : "", 512, label);
	int r = check_versions(&facts->note, who, err);
	if (r == 0)
		r = check_identity(&facts->note, who, err);
	if (r == 0)
		r = check_contents(facts, who, flags, err);
	if (r == 0 && !facts->has_symbol)
		r = err_set(err, -ENOEXEC, "%s: does not export its symbol %s", who,
			    RP_MODULE_SYMBOL);
	return r;
}
