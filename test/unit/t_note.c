/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The note reader. Most tests bend one field of a small shared object that is put together here; a
 * few read what the compiler makes (built by test/modules/modules.mk).
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/nri-rpd/host/note.h"
#include "core/lib/util/cleanup.h"

#define N_DYNAMIC 20
#define N_SYMBOLS 3

struct gnu_note {
	Elf64_Nhdr head;
	char owner[4];
	uint8_t id[20];
};

/* File offset and virtual address of everything are the same. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr load, dynamic_segment, note_segment, stack;
	Elf64_Shdr sections[2];
	Elf64_Dyn dynamic[N_DYNAMIC];
	struct gnu_note build_id;
	struct rp_elf_note note;
	struct rp_elf_note note_2;
	uint32_t hash[2];
	_Alignas(8) uint32_t gnu[4]; /* with what follows: no gaps */
	uint64_t gnu_bloom[1];
	uint32_t gnu_buckets[2];
	uint32_t gnu_chains[2];
	Elf64_Sym symbols[N_SYMBOLS];
	char names[64];
};

#define AT(member) offsetof(struct image, member)

static struct image good;

static Elf64_Phdr segment(uint32_t type, uint64_t at, uint64_t size, uint64_t align)
{
	return (Elf64_Phdr){.p_type = type,
			    .p_flags = PF_R,
			    .p_offset = at,
			    .p_vaddr = at,
			    .p_filesz = size,
			    .p_memsz = size,
			    .p_align = align};
}

static struct rp_elf_note make_note(uint32_t major, uint32_t minor, uint32_t min_host,
				    const char *name)
{
	struct rp_elf_note n = {sizeof RP_NOTE_OWNER,
				sizeof(struct rp_note),
				RP_NOTE_TYPE,
				RP_NOTE_OWNER,
				{major, minor, min_host, RP_KIND_POLICY, "", "1.2"}};
	strcpy(n.note.name, name);
	return n;
}

static void set_dynamic(struct image *im, int64_t tag, uint64_t value)
{
	unsigned i = 0;
	while (im->dynamic[i].d_tag != DT_NULL && im->dynamic[i].d_tag != tag)
		i++;
	assert_true(i < N_DYNAMIC - 1);
	im->dynamic[i].d_tag = tag;
	im->dynamic[i].d_un.d_val = value;
}

static void drop_dynamic(struct image *im, int64_t tag)
{
	for (unsigned i = 0; i < N_DYNAMIC; i++)
		if (im->dynamic[i].d_tag == tag)
			im->dynamic[i].d_tag = DT_DEBUG;
}

static void make_symbols(struct image *im)
{
	strcpy(im->names + 1, RP_MODULE_SYMBOL);
	strcpy(im->names + 20, "needed");
	im->symbols[1] = (Elf64_Sym){.st_name = 20, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
	im->symbols[2] = (Elf64_Sym){.st_name = 1,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
				     .st_shndx = 1,
				     .st_size = sizeof(struct rp_module)};
	im->hash[1] = N_SYMBOLS;
	/* Two buckets, the second one holds symbol 2, whose chain ends at once. */
	im->gnu[0] = 2;
	im->gnu[1] = 2;
	im->gnu[2] = 1;
	im->gnu_buckets[1] = 2;
	im->gnu_chains[0] = 1;
}

static void make_good(void)
{
	struct image *im = &good;
	memset(im, 0, sizeof *im);
	memcpy(im->header.e_ident, ELFMAG, SELFMAG);
	im->header.e_ident[EI_CLASS] = ELFCLASS64;
	im->header.e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	im->header.e_ident[EI_VERSION] = EV_CURRENT;
	im->header.e_type = ET_DYN;
	/* The ELF header of this program has the node's machine type. */
	_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr own;
	assert_int_equal(read(fd, &own, sizeof own), sizeof own);
	im->header.e_machine = own.e_machine;
	im->header.e_phoff = AT(load);
	im->header.e_phentsize = sizeof(Elf64_Phdr);
	im->header.e_phnum = 4;
	im->header.e_shentsize = sizeof(Elf64_Shdr);
	im->load = segment(PT_LOAD, 0, sizeof *im, 4096);
	im->dynamic_segment = segment(PT_DYNAMIC, AT(dynamic), sizeof im->dynamic, 8);
	im->note_segment = segment(PT_NOTE, AT(build_id), AT(note_2) - AT(build_id), 4);
	im->stack = segment(PT_GNU_STACK, 0, 0, 16);
	im->build_id = (struct gnu_note){{4, 20, NT_GNU_BUILD_ID}, "GNU", {1, 2, 3}};
	im->note = make_note(RP_ABI_MAJOR, RP_ABI_MINOR, 0, "mine");
	make_symbols(im);
	set_dynamic(im, DT_SYMTAB, AT(symbols));
	set_dynamic(im, DT_STRTAB, AT(names));
	set_dynamic(im, DT_STRSZ, sizeof im->names);
	set_dynamic(im, DT_SYMENT, sizeof(Elf64_Sym));
	set_dynamic(im, DT_HASH, AT(hash));
	set_dynamic(im, DT_GNU_HASH, AT(gnu));
	set_dynamic(im, DT_INIT_ARRAYSZ, 8);
}

static int setup(void **state)
{
	make_good();
	return 0;
}

static struct err last;

/* Parses a copy of exactly `size` bytes, so that sanitizers detect a read past the end. */
static int parse_size(const struct image *im, size_t size, struct note_facts *ret)
{
	_free_ void *copy = malloc(size ? size : 1);
	memcpy(copy, im, size);
	last.text[0] = '\0';
	int r = note_parse(copy, size, "x.so", ret, &last);
	if (r < 0)
		assert_string_not_equal(last.text, "");
	return r;
}

static int parse(const struct image *im)
{
	struct note_facts facts;
	return parse_size(im, sizeof *im, &facts);
}

static void refused(const struct image *im, int code, const char *text)
{
	int r = parse(im);
	if (r != code || !strstr(last.text, text))
		fail_msg("%d, \"%s\"; expected %d, \"%s\"", r, last.text, code, text);
}

static int check(const struct note_facts *facts, unsigned flags)
{
	last.text[0] = '\0';
	return note_check(facts, "/dir/x.so", flags, &last);
}

static void test_good(void **state)
{
	struct note_facts f;
	assert_int_equal(parse_size(&good, sizeof good, &f), 0);
	assert_string_equal(f.note.name, "mine");
	assert_string_equal(f.note.version, "1.2");
	assert_int_equal(f.note.kinds, RP_KIND_POLICY);
	assert_int_equal(f.build_id.size, 20);
	assert_int_equal(f.build_id.bytes[2], 3);
	assert_int_equal(f.n_constructors, 1);
	assert_int_equal(f.n_exports, 1);
	assert_true(f.has_symbol);
	assert_false(f.text_relocations || f.exec_stack || f.run_path);
	assert_int_equal(check(&f, 0), 0);
}

/* Checks that no prefix of a valid file is accepted or read past its end. */
static void test_truncated(void **state)
{
	struct note_facts f;
	for (size_t size = 0; size < sizeof good; size++) {
		int r = parse_size(&good, size, &f);
		if (size < AT(names) + 1 + sizeof RP_MODULE_SYMBOL)
			assert_true(r < 0);
	}
}

static void test_ident(void **state)
{
	struct image im = good;
	struct note_facts f;
	assert_int_equal(parse_size(&good, 8, &f), -ENOEXEC);
	im.header.e_ident[0] = '#';
	refused(&im, -ENOEXEC, "not an ELF file");
	im = good;
	im.header.e_ident[EI_CLASS] = ELFCLASS32;
	refused(&im, -ENOEXEC, "not a 64-bit");
	im = good;
	im.header.e_ident[EI_DATA] ^= 3;
	refused(&im, -ENOEXEC, "byte order");
	im = good;
	im.header.e_ident[EI_VERSION] = 9;
	refused(&im, -ENOEXEC, "unknown version");
}

static void test_header(void **state)
{
	struct image im = good;
	im.header.e_machine = good.header.e_machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
	refused(&im, -ENOEXEC,
		im.header.e_machine == EM_AARCH64 ? "built for arm64" : "built for x86-64");
	im.header.e_machine = 0x1234;
	refused(&im, -ENOEXEC, "another machine (ELF machine 4660)");
	im = good;
	im.header.e_type = ET_REL;
	refused(&im, -ENOEXEC, "link it with -shared");
	im.header.e_type = ET_EXEC;
	refused(&im, -ENOEXEC, "not a shared object");
	im = good;
	im.header.e_phnum = 0;
	refused(&im, -EBADMSG, "no program headers");
	im = good;
	im.header.e_phentsize = 32;
	refused(&im, -EBADMSG, "no program headers");
	im = good;
	im.header.e_phnum = NOTE_HEADERS_MAX + 1;
	refused(&im, -EFBIG, "513 program headers");
	im = good;
	im.header.e_phoff = UINT64_MAX - 4;
	refused(&im, -EBADMSG, "program header table");
}

static void test_notes_missing(void **state)
{
	struct image im = good;
	im.note_segment.p_type = PT_NULL;
	refused(&im, -ENOMSG, "no nri-rp note");
	im = good;
	im.note.owner[0] = 'N';
	refused(&im, -ENOMSG, "no nri-rp note");
	im = good;
	im.note.type = 2;
	refused(&im, -ENOMSG, "no nri-rp note");
	im = good;
	im.note_segment.p_filesz = 0;
	refused(&im, -ENOMSG, "no nri-rp note");
}

static void test_notes_damaged(void **state)
{
	struct image im = good;
	im.build_id.head.n_namesz = UINT32_MAX;
	refused(&im, -EBADMSG, "a note would end past its segment");
	im = good;
	im.note.desc_size = UINT32_MAX;
	refused(&im, -EBADMSG, "a note would end past its segment");
	im = good;
	im.note.desc_size = sizeof(struct rp_note) - 4;
	refused(&im, -EBADMSG, "too short");
	im = good;
	memset(im.note.note.name, 'a', RP_NAME_MAX);
	refused(&im, -EBADMSG, "is not text");
	im = good;
	im.note.note.version[0] = '\033';
	refused(&im, -EBADMSG, "is not text");
	im = good;
	im.note_segment.p_filesz = NOTE_SEGMENT_MAX + 1;
	refused(&im, -EFBIG, "65537 bytes of notes");
	im = good;
	im.note_segment.p_offset = sizeof im - 8;
	refused(&im, -EBADMSG, "a note segment would end past its end");
	im = good;
	im.note_segment.p_offset = UINT64_MAX;
	refused(&im, -EBADMSG, "a note segment would end past its end");
}

/* Checks a segment that ends within a note's padding, as some linkers write it. */
static void test_note_padding(void **state)
{
	struct image im = good;
	struct note_facts f;
	im.build_id.head.n_descsz = 18;
	im.note_segment.p_filesz = sizeof im.build_id;
	im.note_segment.p_filesz -= 2;
	refused(&im, -ENOMSG, "no nri-rp note");
	im = good;
	im.note_segment.p_align =
		8; /* 12 + 4 + 20 rounds to 40: the next note is not where it would be */
	assert_true(parse(&im) < 0);
	im = good;
	im.note_segment.p_filesz += 6; /* the next one's header does not fit */
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	im.note_segment.p_filesz = AT(hash) - AT(build_id); /* zeroes behind it */
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_string_equal(f.note.name, "mine");
}

static void test_build_id_cut(void **state)
{
	struct image im = good;
	struct note_facts f;
	/* The build id's note takes the place of both. */
	im.build_id.head.n_descsz = 40;
	im.note_segment.p_filesz = 16 + 40;
	im.sections[0] = (Elf64_Shdr){.sh_type = SHT_NOTE,
				      .sh_offset = AT(note),
				      .sh_size = sizeof im.note,
				      .sh_addralign = 4};
	im.header.e_shoff = AT(sections);
	im.header.e_shnum = 2;
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_int_equal(f.build_id.size, NOTE_BUILD_ID_MAX);
}

static void test_sections(void **state)
{
	struct image im = good;
	struct note_facts f, g;
	im.note_segment.p_type = PT_NULL;
	im.sections[1] = (Elf64_Shdr){.sh_type = SHT_NOTE,
				      .sh_offset = AT(note),
				      .sh_size = sizeof im.note,
				      .sh_addralign = 4};
	im.header.e_shoff = AT(sections);
	im.header.e_shnum = 2;
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_string_equal(f.note.name, "mine");
	assert_int_equal(f.notes_hash,
			 NOTE_HASH_INIT); /* the image in memory has no such segment */
	assert_int_equal(parse_size(&good, sizeof good, &g), 0);
	assert_int_not_equal(g.notes_hash, NOTE_HASH_INIT);
	im.sections[1].sh_offset = sizeof im;
	refused(&im, -EBADMSG, "a note segment");
	im.header.e_shoff = sizeof im - 64;
	refused(&im, -EBADMSG, "section header table");
	im.header.e_shoff = UINT64_MAX;
	refused(&im, -EBADMSG, "section header table");
	im.header.e_shnum = NOTE_HEADERS_MAX + 1;
	refused(&im, -ENOMSG, "no nri-rp note");
}

static void test_several_notes(void **state)
{
	struct image im = good;
	struct note_facts f;
	im.note_segment.p_filesz = AT(hash) - AT(build_id);
	im.note_2 = im.note;
	assert_int_equal(parse_size(&im, sizeof im, &f), 0); /* a single note, listed twice */
	im.note_2 = make_note(RP_ABI_MAJOR, RP_ABI_MINOR, 0, "other");
	refused(&im, -EBADMSG, "two different nri-rp notes");
	im.note_2 = make_note(2, 7, 0, "mine");
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_int_equal(f.note.abi_major, RP_ABI_MAJOR);
	im.note = make_note(3, 7, 0, "mine");
	im.note_2 = make_note(RP_ABI_MAJOR, 0, 0, "mine");
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_int_equal(f.note.abi_major, RP_ABI_MAJOR);
	/* Another ABI major may have another layout: a name that is not text is not shown. */
	im.note_2 = im.note;
	memset(im.note.note.name, 0xff, RP_NAME_MAX);
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_int_equal(f.note.abi_major, 3);
	assert_string_equal(f.note.name, "");
	assert_int_equal(check(&f, 0), -EPROTONOSUPPORT);
	assert_string_equal(last.text, "module (/dir/x.so): built for ABI 3.7, this host has 1.3; "
				       "install a build for ABI 1");
}

static void test_dynamic(void **state)
{
	struct image im = good;
	im.dynamic_segment.p_type = PT_NULL;
	refused(&im, -ENOEXEC, "no dynamic section");
	im = good;
	im.dynamic_segment.p_vaddr = sizeof im;
	refused(&im, -EBADMSG, "the dynamic section is not in a loaded segment");
	im = good;
	im.dynamic_segment.p_vaddr = UINT64_MAX - 4;
	refused(&im, -EBADMSG, "the dynamic section is not in a loaded segment");
	im = good;
	im.load.p_filesz = AT(dynamic) + 8;
	refused(&im, -EBADMSG, "the dynamic section is not in a loaded segment");
	im = good;
	im.load.p_offset = sizeof im + 1;
	refused(&im, -EBADMSG, "is not in a loaded segment");
	im = good;
	im.load.p_offset = sizeof im - 64; /* lies within the segment, but not within the file */
	refused(&im, -EBADMSG, "the dynamic section is not in a loaded segment");
	im = good;
	im.load.p_filesz = UINT64_MAX;
	assert_int_equal(parse(&im), 0);
	im.load.p_vaddr = 16; /* reads shifted bytes: rubbish, but in bounds */
	assert_true(parse(&im) < 0);
}

static void test_dynamic_endless(void **state)
{
	size_t size = sizeof good + (NOTE_DYNAMIC_MAX + 1) * sizeof(Elf64_Dyn);
	_free_ struct image *im = malloc(size);
	struct note_facts f;
	memset(im, 0x11, size);
	*im = good;
	im->load.p_filesz = size;
	im->dynamic_segment.p_vaddr = sizeof good;
	assert_int_equal(note_parse(im, size, "x.so", &f, &last), -EFBIG);
	assert_non_null(strstr(last.text, "more than 1024 dynamic entries"));
}

static void test_symbols_damaged(void **state)
{
	struct image im = good;
	set_dynamic(&im, DT_SYMENT, 16);
	refused(&im, -EBADMSG, "unknown size");
	im = good;
	drop_dynamic(&im, DT_GNU_HASH);
	assert_int_equal(parse(&im), 0);
	im.hash[1] = N_SYMBOLS + 1000;
	refused(&im, -EBADMSG, "the dynamic symbols");
	im.hash[1] = NOTE_SYMBOLS_MAX + 1;
	refused(&im, -EFBIG, "more than 65536 dynamic symbols");
	set_dynamic(&im, DT_HASH, sizeof im);
	refused(&im, -EBADMSG, "the symbol hash table");
	drop_dynamic(&im, DT_HASH);
	refused(&im, -EBADMSG, "no symbol hash table");
	im = good;
	set_dynamic(&im, DT_SYMTAB, UINT64_MAX - 8);
	refused(&im, -EBADMSG, "the dynamic symbols");
	im = good;
	set_dynamic(&im, DT_STRTAB, sizeof im);
	refused(&im, -EBADMSG, "the name of a symbol");
}

static void test_gnu_hash_damaged(void **state)
{
	struct image im = good;
	set_dynamic(&im, DT_GNU_HASH, sizeof im);
	refused(&im, -EBADMSG, "the symbol hash table");
	for (unsigned i = 0; i < 3; i++) {
		im = good;
		im.gnu[i] = NOTE_SYMBOLS_MAX + 1;
		refused(&im, -EFBIG, "more than 65536 dynamic symbols");
	}
	im = good;
	im.gnu[0] = 60000;
	refused(&im, -EBADMSG, "a hash bucket");
	im = good;
	im.gnu_buckets[1] = 60000;
	refused(&im, -EBADMSG, "a hash chain");
	im = good;
	im.gnu_buckets[1] = UINT32_MAX;
	refused(&im, -EFBIG, "more than 65536 dynamic symbols");
	im = good;
	im.gnu_buckets[1] = 0; /* no symbol is hashed: those before the first are still counted */
	im.symbols[1] = im.symbols[2];
	assert_int_equal(parse(&im), 0);
}

/* Checks that a symbol that is not exported, is not data, or is too small is not accepted as the
 * module. */
static void test_symbol(void **state)
{
	static const Elf64_Sym bad[] = {
		{.st_name = 1,
		 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		 .st_shndx = 1,
		 .st_size = 999},
		{.st_name = 1,
		 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
		 .st_shndx = 1,
		 .st_size = 999},
		{.st_name = 1,
		 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		 .st_shndx = SHN_UNDEF,
		 .st_size = 999},
		{.st_name = 1,
		 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		 .st_shndx = 1,
		 .st_size = 8},
		{.st_name = 1,
		 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		 .st_other = STV_HIDDEN,
		 .st_shndx = 1,
		 .st_size = 999},
		{.st_name = 2,
		 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		 .st_shndx = 1,
		 .st_size = 999},
		{.st_name = 60,
		 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		 .st_shndx = 1,
		 .st_size = 999},
		{.st_name = UINT32_MAX,
		 .st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT),
		 .st_shndx = 1,
		 .st_size = 999},
	};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct image im = good;
		struct note_facts f;
		im.symbols[2] = bad[i];
		assert_int_equal(parse_size(&im, sizeof im, &f), 0);
		assert_false(f.has_symbol);
		assert_int_equal(check(&f, 0), -ENOEXEC);
		assert_string_equal(
			last.text,
			"module \"mine\" (/dir/x.so): does not export its symbol rp_module_1");
	}
	struct image im = good;
	set_dynamic(&im, DT_STRSZ, 4);
	struct note_facts f;
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_false(f.has_symbol);
}

static void test_facts(void **state)
{
	struct image im = good;
	struct note_facts f;
	im.stack.p_flags |= PF_X;
	set_dynamic(&im, DT_RUNPATH, 1);
	set_dynamic(&im, DT_FLAGS, DF_TEXTREL);
	set_dynamic(&im, DT_INIT_ARRAYSZ, 17);
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_true(f.exec_stack && f.run_path && f.text_relocations);
	assert_int_equal(f.n_constructors, 3);
	im = good;
	im.stack.p_type = PT_NULL;
	set_dynamic(&im, DT_RPATH, 1);
	set_dynamic(&im, DT_TEXTREL, 0);
	set_dynamic(&im, DT_INIT_ARRAYSZ, UINT64_MAX);
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_true(f.exec_stack && f.run_path && f.text_relocations);
	assert_int_equal(f.n_constructors, UINT32_MAX);
	im = good;
	drop_dynamic(&im, DT_INIT_ARRAYSZ);
	assert_int_equal(parse_size(&im, sizeof im, &f), 0);
	assert_int_equal(f.n_constructors, 0);
}

static void check_refuses(const struct note_facts *f, unsigned flags, int code, const char *text)
{
	int r = check(f, flags);
	if (r != code || !strstr(last.text, text))
		fail_msg("%d, \"%s\"; expected %d, \"%s\"", r, last.text, code, text);
}

static void test_check(void **state)
{
	struct note_facts f, base;
	assert_int_equal(parse_size(&good, sizeof good, &base), 0);
	f = base;
	f.note.abi_major = 2;
	check_refuses(
		&f, 0, -EPROTONOSUPPORT,
		"module \"mine\" (/dir/x.so): built for ABI 2.3, this host has 1.3; install a "
		"build for ABI 1");
	f = base;
	f.note.min_host_minor = RP_ABI_MINOR + 3;
	check_refuses(&f, 0, -EPROTONOSUPPORT, "needs a host of ABI 1.6, this host has 1.3");
	f = base;
	f.note.abi_minor = RP_ABI_MINOR + 3; /* newer, but content */
	assert_int_equal(check(&f, 0), 0);
	f = base;
	strcpy(f.note.name, "Mine");
	check_refuses(&f, 0, -EINVAL, "\"Mine\" is not a module's name");
	f = base;
	f.note.version[0] = '\0';
	check_refuses(&f, 0, -EINVAL, "no version");
	f = base;
	f.note.kinds = 0x100;
	check_refuses(&f, 0, -EINVAL, "of a kind unknown");
	f = base;
	f.n_constructors = 2;
	check_refuses(&f, 0, -EPERM, "has 1 constructors");
	assert_int_equal(check(&f, NOTE_INSTRUMENTED), 0);
	f = base;
	f.run_path = true;
	check_refuses(&f, 0, -EPERM, "RUNPATH");
	assert_int_equal(check(&f, NOTE_INSTRUMENTED), 0);
	f = base;
	f.text_relocations = true;
	check_refuses(&f, NOTE_INSTRUMENTED, -EPERM, "text relocations");
	f = base;
	f.exec_stack = true;
	check_refuses(&f, NOTE_INSTRUMENTED, -EPERM, "executable stack");
}

static void test_names(void **state)
{
	static const char *const fine[] = {"a", "0", "topology-aware", "a-",
					   "abcdefghijklmnopqrstuvwxyz01234"};
	static const char *const bad[] = {"",	      "-a",   "A",
					  "a.b",      "a/b",  "a b",
					  "\xc3\xa4", "../x", "abcdefghijklmnopqrstuvwxyz012345"};
	for (unsigned i = 0; i < sizeof fine / sizeof fine[0]; i++)
		assert_true(note_name_valid(fine[i]));
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(note_name_valid(bad[i]));
	struct build_id a = {2, {1, 2}}, b = {2, {1, 3}}, c = {1, {1}};
	assert_true(build_id_equal(&a, &a));
	assert_false(build_id_equal(&a, &b));
	assert_false(build_id_equal(&a, &c));
}

/* ---- reading that goes wrong ----------------------------------------------------------------- */

/* Result of the next pread: a negative errno, or 0 bytes; 1: pread reads normally. */
static int next_pread = 1;

ssize_t pread(int fd, void *buf, size_t size, off_t at)
{
	int what = next_pread;
	next_pread = 1;
	if (what == 1)
		return syscall(SYS_pread64, fd, buf, size, at);
	errno = -what;
	return what < 0 ? -1 : 0;
}

static void test_reading(void **state)
{
	struct note_facts f;
	char path[] = "/tmp/t_note-XXXXXX";
	_close_ int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(fd, &good, sizeof good), sizeof good);
	next_pread = -EINTR;
	assert_int_equal(note_read(fd, "x.so", &f, &last), 0);
	next_pread = -EIO;
	assert_int_equal(note_read(fd, "x.so", &f, &last), -EIO);
	assert_string_equal(last.text, "cannot read module file x.so: Input/output error");
	next_pread = 0; /* the file is truncated meanwhile */
	assert_int_equal(note_read(fd, "x.so", &f, &last), -EBADMSG);
	assert_non_null(strstr(last.text, "it was truncated while being read"));
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_path(const char *path, struct note_facts *f)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	assert_true(fd >= 0);
	return note_read(fd, path, f, &last);
}

static int read_module(const char *name, struct note_facts *f)
{
	char exe[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	assert_true(n > 0);
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	(void)snprintf(path, sizeof path, "%s/modules/%s.so", exe, name);
	return read_path(path, f);
}

static void test_compiled(void **state)
{
	struct note_facts f;
	assert_int_equal(read_module("good", &f), 0);
	assert_string_equal(f.note.name, "good");
	assert_int_equal(f.note.abi_major, RP_ABI_MAJOR);
	assert_int_equal(f.n_exports, 1);
	assert_int_equal(f.n_constructors, NOTE_COMPILER_CTORS);
	assert_int_equal(f.build_id.size, 20);
	assert_int_equal(check(&f, 0), 0);
	assert_int_equal(read_module("constructor", &f), 0);
	check_refuses(&f, 0, -EPERM, "module \"constructor\" (/dir/x.so): has 1 constructors");
	assert_int_equal(read_module("wrong-major", &f), 0);
	check_refuses(&f, 0, -EPROTONOSUPPORT, "built for ABI 2.0, this host has 1.3");
	assert_int_equal(read_module("newer", &f), 0);
	check_refuses(&f, 0, -EPROTONOSUPPORT, "needs a host of ABI 1.999");
	assert_int_equal(read_module("no-symbol", &f), 0);
	check_refuses(&f, 0, -ENOEXEC, "does not export");
	assert_int_equal(read_module("garbage", &f), -ENOEXEC);
}

static void test_files(void **state)
{
	struct note_facts f;
	assert_int_equal(read_path("/proc/self", &f), -ENOEXEC);
	assert_non_null(strstr(last.text, "not a regular file"));
	assert_true(read_path("/proc/self/exe", &f) < 0); /* a program */
	assert_int_equal(read_path("/dev/null", &f), -ENOEXEC);
	assert_int_equal(note_read(-1, "x.so", &f, &last), -EBADF);
	char path[] = "/tmp/t_note-XXXXXX";
	_close_ int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(fd, &good, sizeof good), sizeof good);
	assert_int_equal(note_read(fd, "x.so", &f, &last), 0);
	assert_string_equal(f.note.name, "mine");
}

static void test_unreadable(void **state)
{
	struct note_facts f;
	char path[] = "/tmp/t_note-XXXXXX";
	_close_ int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &good, sizeof good), sizeof good);
	_close_ int write_only = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(note_read(write_only, "x.so", &f, &last), -EBADF);
	assert_non_null(strstr(last.text, "cannot read module file x.so"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_good, setup),
		cmocka_unit_test_setup(test_truncated, setup),
		cmocka_unit_test_setup(test_ident, setup),
		cmocka_unit_test_setup(test_header, setup),
		cmocka_unit_test_setup(test_notes_missing, setup),
		cmocka_unit_test_setup(test_notes_damaged, setup),
		cmocka_unit_test_setup(test_note_padding, setup),
		cmocka_unit_test_setup(test_build_id_cut, setup),
		cmocka_unit_test_setup(test_sections, setup),
		cmocka_unit_test_setup(test_several_notes, setup),
		cmocka_unit_test_setup(test_dynamic, setup),
		cmocka_unit_test_setup(test_dynamic_endless, setup),
		cmocka_unit_test_setup(test_symbols_damaged, setup),
		cmocka_unit_test_setup(test_gnu_hash_damaged, setup),
		cmocka_unit_test_setup(test_symbol, setup),
		cmocka_unit_test_setup(test_facts, setup),
		cmocka_unit_test_setup(test_check, setup),
		cmocka_unit_test_setup(test_names, setup),
		cmocka_unit_test_setup(test_reading, setup),
		cmocka_unit_test_setup(test_compiled, setup),
		cmocka_unit_test_setup(test_files, setup),
		cmocka_unit_test_setup(test_unreadable, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
