/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding, checking and loading modules.
 *
 * A file is trusted when it is a regular file, owned by root or by this process's user, and nobody
 * else may write to it; and when the same holds for each directory from it up to "/". A directory
 * that others may write to is accepted if it is root's and sticky (/tmp): there, nobody can rename
 * or remove what belongs to root or to us. Directories are resolved first (/lib may be a link), the
 * file itself must not be a link.
 *
 * A name is loaded once in the life of the process: asking again gives the same module, even if the
 * file has changed since, because dlopen would do so behind our back. module_stale() tells; a
 * restart takes the new file.
 */
#ifndef HOST_LOADER_H
#define HOST_LOADER_H

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
#define LOADER_MODULES_MAX 64u /* loaded in one process */
#define LOADER_LIST_MAX 1024u /* files looked at by loader_list */
#define LOADER_TEXT_MAX 256u /* summary, licence */
#define LOADER_KEYS_MAX 4096u /* rows of a schema */
#define LOADER_KEY_PATH_MAX 256u /* bytes of a row's path … */
#define LOADER_KEY_TEXT_MAX 2048u /* … and of its other texts */

/* A loaded module. Everything but `abi` and `schema`'s origin is host memory. Lives as long as its
 * loader. */
struct module {
	char name[RP_NAME_MAX];
	char version[RP_VERSION_MAX];
	const char *summary, *licence; /* "" when it has none */
	const char *path; /* absolute, resolved */
	uint32_t kinds;
	uint32_t abi_minor, min_host_minor;
	struct build_id build_id;
	const struct rp_module *abi; /* the module's own; covers service() at least */
	struct module_private *priv;
};

#define LOADER_INSTRUMENTED 0x1u /* accept instrumented files: NOTE_INSTRUMENTED */

/* Directories are copied. The crumb (may be NULL) has to outlive the loader. No directory has to
 * exist. */
int loader_new(const char *const *paths, unsigned n_paths, unsigned flags, struct crumb *crumb,
	       struct loader **ret, struct err *err);
/* Frees what the host holds; images stay mapped in production builds and are dlclosed in
 * instrumented ones, so that leaks show. No instance may be left. Returns NULL; NULL is fine. */
struct loader *loader_free(struct loader *l);
/* LOADER_INSTRUMENTED in builds that are, 0 in others. */
unsigned loader_default_flags(void);
/* Other directories, from now on (a reload). What is loaded stays. */
int loader_set_paths(struct loader *l, const char *const *paths, unsigned n_paths, struct err *err);

/* The resolved path of NAME.so in the first directory that has it. -ENOENT: nowhere (names what
 * there is); -EPERM: found, but not trusted: later directories are not tried; -EINVAL: no module
 * name. */
int loader_find(const struct loader *l, const char *name, char ret_path[PATH_MAX], struct err *err);

/*
 * The module of that name, loaded now or before. Nothing of it has been called but what dlopen
 * runs. Errors: those of loader_find, note_read and note_check; -ECANCELED: quarantined; -ELIBBAD:
 * the dynamic loader refused (missing symbols); -EBADMSG: note, struct and file name do not agree;
 * -ESTALE: the file changed while it was loaded; -EMFILE: LOADER_MODULES_MAX.
 */
int loader_open(struct loader *l, const char *name, struct module **ret, struct err *err);
/* Gives back one that nothing but its table of keys was asked of, and that nobody has a pointer to:
 * looking through all that is installed leaves none of it behind. */
void loader_drop(struct loader *l, struct module *m);
/* Loaded already? NULL: no. */
struct module *loader_get(const struct loader *l, const char *name);

/* Tells the crumb where the module's code is, so that a crash in it is blamed on the module. */
void module_note_code(const struct module *m, struct crumb *crumb);

#define MODULE_FRESH 0
#define MODULE_CHANGED                                                                             \
	1 /* another build is on disk, or another file comes first in the search path */
#define MODULE_GONE 2 /* no file of that name is left */
/* What a restart would find, compared with what is loaded. Reads the file: not for the request
 * path. */
int module_stale(const struct loader *l, const struct module *m);
/* Could a new process load what is on disk now? 0, or an error of loader_open, as far as it shows
 * without loading. */
int module_restart(const struct loader *l, const struct module *m, struct err *err);

/*
 * The table of the module's keys, in host memory and in this host's layout (key_size ==
 * sizeof(struct rp_key)); asked for once, kept with the module. Needs no instance. *ret is NULL
 * when the module has none. -EBADMSG: malformed or over a limit.
 */
int module_schema(const struct loader *l, struct module *m, const struct rp_schema **ret,
		  struct err *err);

/* One file of the search path, for `nri-rpctl modules`. Valid during the call. */
struct loader_item {
	const char *name, *path;
	const struct note_facts *facts; /* NULL: nothing could be read */
	const struct err *err; /* why it cannot be loaded; NULL: it can */
	const struct module *module; /* it is loaded, from this path */
	bool quarantined;
	bool hidden; /* an earlier directory has the same name */
};
static inline bool loader_usable(const struct loader_item *item)
{
	return !item->err && !item->hidden && item->facts;
}
/* Every NAME.so of the directories in order, within one by name in natural order. A non-zero result
 * of fn ends it and is returned. */
int loader_list(const struct loader *l, int (*fn)(const struct loader_item *item, void *arg),
		void *arg);

#endif
