/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds, checks and loads modules.
 *
 * A file is trusted if it is a regular file, owned by root or by this process's user, and other
 * users may not write to it. Each directory from it up to "/" has to meet the same conditions. A
 * directory that others may write to is accepted if it is root's and sticky (/tmp): other users
 * cannot rename or remove files of root or of this user there. Directories are resolved first (/lib
 * may be a link); the file itself must not be a link.
 *
 * A name is loaded once in the life of the process. Opening it again returns the same module, even
 * if the file has changed since, because dlopen() would do so anyway. module_stale() detects a
 * changed file; a restart loads it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nri-rp/config.h>
#include <nri-rp/module.h>

#include "core/nri-rpd/host/note.h"
#include "core/lib/util/err.h"

struct crumb;
struct loader;

#define LOADER_PATHS_MAX 16u
#define LOADER_MODULES_MAX 64u /* largest number of modules loaded in one process */
#define LOADER_LIST_MAX 1024u /* largest number of files that loader_list inspects */
#define LOADER_TEXT_MAX 256u /* largest size of summary and licence, in bytes */
#define LOADER_KEYS_MAX 4096u /* largest number of rows of a schema */
#define LOADER_KEY_PATH_MAX 256u /* longest path of a schema key, in bytes */
#define LOADER_KEY_TEXT_MAX 2048u /* longest other text of a schema key, in bytes */

/* A loaded module. All members but `abi` and the origin of `schema` are in host memory. It lives as
 * long as its loader. */
struct module {
	char name[RP_NAME_MAX];
	char version[RP_VERSION_MAX];
	const char *summary, *licence; /* texts of the module's note; "": the note has none */
	const char *path; /* path of the file, absolute and resolved */
	uint32_t kinds;
	uint32_t abi_minor, min_host_minor;
	struct build_id build_id;
	/* the module's struct in its image; its size was checked to include at least service() */
	const struct rp_module *abi;
	struct module_private *priv;
};

#define LOADER_INSTRUMENTED 0x1u /* accept instrumented files: NOTE_INSTRUMENTED */

/* Creates a loader. Directories are copied and need not exist. The crumb (may be NULL) has to
 * outlive the loader. */
int loader_new(const char *const *paths, unsigned n_paths, unsigned flags, struct crumb *crumb,
	       struct loader **ret, struct err *err);
/* Frees the loader's memory. Images stay mapped in production builds and are closed in instrumented
 * ones, so that leaks show. All instances have to be freed before. Returns NULL; NULL is fine. */
struct loader *loader_free(struct loader *l);
/* Returns LOADER_INSTRUMENTED in instrumented builds, 0 in others. */
unsigned loader_default_flags(void);
/* Replaces the directories (a reload). Loaded modules stay. */
int loader_set_paths(struct loader *l, const char *const *paths, unsigned n_paths, struct err *err);

/* Writes the resolved path of NAME.so in the first directory that has it. -ENOENT: in no directory
 * (the error lists the available modules); -EPERM: found, but not trusted, and later directories
 * are not tried; -EINVAL: no valid module name. */
int loader_find(const struct loader *l, const char *name, char ret_path[PATH_MAX], struct err *err);

/*
 * Returns the module of that name, loaded now or earlier. Apart from code that dlopen() runs, none
 * of its functions has been called. Errors: those of loader_find, note_read and note_check;
 * -ECANCELED: quarantined; -ELIBBAD: the dynamic loader refused (missing symbols); -EBADMSG: note,
 * struct and file name do not agree; -ESTALE: the file changed while it was loaded; -EMFILE:
 * LOADER_MODULES_MAX.
 */
int loader_open(struct loader *l, const char *name, struct module **ret, struct err *err);
/* Unloads a module that was opened only for its table of keys and to which no pointer is left. A
 * search through all installed modules then leaves none of them loaded. */
void loader_drop(struct loader *l, struct module *m);
/* Returns the module if it is loaded; NULL: it is not. */
struct module *loader_get(const struct loader *l, const char *name);

/* Records in the crumb where the module's code is, so that a crash in it is blamed on the
 * module. */
void module_note_code(const struct module *m, struct crumb *crumb);

#define MODULE_FRESH 0
#define MODULE_CHANGED                                                                             \
	1 /* another build is on disk, or another file comes first in the search path */
#define MODULE_GONE 2 /* no file of that name is left */
/* Compares the loaded module with the file that a restart would load: MODULE_…. Reads the file, so
 * it must not be called while a request waits. */
int module_stale(const struct loader *l, const struct module *m);
/* Checks whether a new process could load the file that is on disk now. 0, or an error of
 * loader_open, as far as it can be detected without loading. */
int module_restart(const struct loader *l, const struct module *m, struct err *err);

/*
 * Returns the table of the module's keys, in host memory and in this host's layout (key_size ==
 * sizeof(struct rp_key)). The module is asked once; the table is stored with the module. No
 * instance is needed. *ret is NULL if the module has none. -EBADMSG: malformed or over a limit.
 */
int module_schema(const struct loader *l, struct module *m, const struct rp_schema **ret,
		  struct err *err);

/* A file of the search path, for `nri-rpctl modules`. Valid during the call. */
struct loader_item {
	const char *name, *path;
	/* contents of the module's note; NULL: the file is not readable */
	const struct note_facts *facts;
	const struct err *err; /* reason why the file cannot be loaded; NULL: it can be loaded */
	const struct module *module; /* module loaded from this path; NULL: none */
	bool quarantined;
	bool hidden; /* an earlier directory has a file of the same name */
};
static inline bool loader_usable(const struct loader_item *item)
{
	return !item->err && !item->hidden && item->facts;
}
/* Calls fn for every NAME.so, by directory in order, then by name in natural order. A non-zero
 * result of fn ends the iteration and is returned. */
int loader_list(const struct loader *l, int (*fn)(const struct loader_item *item, void *arg),
		void *arg);
