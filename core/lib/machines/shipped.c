/* SPDX-License-Identifier: Apache-2.0 */
/* Embeds the files of conf/machines, so that the program works anywhere. */
#include <string.h>
#include <sys/stat.h>

#include "core/lib/machines/shipped.h"
#include "core/lib/util/str.h"

#define MACHINES(X)                                                                                \
	X(n4c16, "n4c16")                                                                          \
	X(n4c128, "n4c128")                                                                        \
	X(server_2s, "server-2s")                                                                  \
	X(laptop, "laptop")                                                                        \
	X(l3_domains, "l3-domains")                                                                \
	X(no_numa, "no-numa")                                                                      \
	X(hbm_cxl, "hbm-cxl")                                                                      \
	X(device_memory, "device-memory")                                                          \
	X(isolated, "isolated")                                                                    \
	X(c4096, "c4096")

#define EMBED(symbol, file)                                                                        \
	__asm__(".section .rodata\n"                                                               \
		"machine_" #symbol ":\n"                                                           \
		".incbin \"conf/machines/" file ".yaml\"\n"                                        \
		"machine_" #symbol "_end:\n"                                                       \
		".byte 0\n"                                                                        \
		".previous\n");                                                                    \
	extern const char machine_##symbol[] __attribute__((visibility("hidden")));                \
	extern const char machine_##symbol##_end[] __attribute__((visibility("hidden")));
MACHINES(EMBED)

#define ENTRY(symbol, file) {file, machine_##symbol, machine_##symbol##_end},
const struct shipped_machine shipped_machines[] = {MACHINES(ENTRY)};
const unsigned n_shipped_machines = sizeof shipped_machines / sizeof shipped_machines[0];

static int shipped_unknown(const char *name, struct err *err)
{
	const char *names[sizeof shipped_machines / sizeof shipped_machines[0]];
	for (unsigned i = 0; i < n_shipped_machines; i++)
		names[i] = shipped_machines[i].name;
	const char *close = str_closest(name, names, n_shipped_machines);
	return err_set(err, -ENOENT,
		       "unknown machine \"%s\"%s%s%s; nri-rp-sim machines lists the names", name,
		       close ? ", did you mean \"" : "", close ? close : "", close ? "\"?" : "");
}

static int first_document(struct doc *doc, json_t **ret, struct err *err)
{
	if (json_array_size(doc->documents) != 1)
		return err_set(err, -EINVAL, "%s: expected one machine", doc->name);
	*ret = json_incref(json_array_get(doc->documents, 0));
	return 0;
}

int machine_shipped(const char *name, json_t **ret, struct err *err)
{
	for (unsigned i = 0; i < n_shipped_machines; i++) {
		const struct shipped_machine *s = &shipped_machines[i];
		struct doc doc;
		if (!str_eq(s->name, name))
			continue;
		int r = doc_parse(name, s->text, (size_t)(s->end - s->text), &doc, err);
		if (r)
			return r;
		r = first_document(&doc, ret, err);
		doc_fini(&doc);
		return r;
	}
	return shipped_unknown(name, err);
}

int machine_describe(const json_t *which, json_t **ret, struct err *err)
{
	const char *name = json_string_value(which);
	struct stat st;
	struct doc doc;
	if (json_is_object(which)) {
		*ret = json_deep_copy(which);
		return *ret ? 0 : err_errno(err, -ENOMEM, "machine");
	}
	if (!name)
		return err_set(err, -EINVAL, "machine: expected a name, a file or a description");
	if (!strchr(name, '/') && !str_has_suffix(name, ".yaml"))
		return machine_shipped(name, ret, err);
	if (stat(name, &st) < 0)
		return err_errno(err, -errno, "machine %s", name);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	int r = doc_read(name, &doc, err);
	if (r)
		return r;
	r = first_document(&doc, ret, err);
	doc_fini(&doc);
	return r;
}
