/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instead of host/loader.c: the one module that is linked into the program, instrumented like
 * all the rest. To be included in the program's one source file.
 */
#ifndef FUZZ_FAKE_LOADER_H
#define FUZZ_FAKE_LOADER_H

#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/loader.h"

extern const struct rp_module rp_module_1;

struct loader {
	struct module module;
};

int loader_new(const char *const *paths, unsigned n_paths, unsigned flags, struct crumb *crumb,
	       struct loader **ret, struct err *err)
{
	struct loader *l = calloc(1, sizeof *l);
	if (!l)
		return err_errno(err, -ENOMEM, "loader");
	strncpy(l->module.name, rp_module_1.name, sizeof l->module.name - 1);
	strncpy(l->module.version, rp_module_1.version, sizeof l->module.version - 1);
	l->module.summary = l->module.licence = l->module.path = "";
	l->module.kinds = rp_module_1.kinds;
	l->module.abi = &rp_module_1;
	*ret = l;
	return 0;
}

struct loader *loader_free(struct loader *l)
{
	free(l);
	return NULL;
}

unsigned loader_default_flags(void)
{
	return 0;
}

int loader_set_paths(struct loader *l, const char *const *paths, unsigned n_paths, struct err *err)
{
	return 0;
}

int loader_open(struct loader *l, const char *name, struct module **ret, struct err *err)
{
	if (strcmp(name, l->module.name) != 0)
		return err_set(err, -ENOENT, "there is no module %s", name);
	*ret = &l->module;
	return 0;
}

void loader_drop(struct loader *l, struct module *m)
{
}

struct module *loader_get(const struct loader *l, const char *name)
{
	return strcmp(name, l->module.name) == 0 ? (struct module *)(uintptr_t)&l->module : NULL;
}

int loader_list(const struct loader *l, int (*fn)(const struct loader_item *item, void *arg),
		void *arg)
{
	return 0;
}

int module_stale(const struct loader *l, const struct module *m)
{
	return MODULE_FRESH;
}

int module_restart(const struct loader *l, const struct module *m, struct err *err)
{
	return 0;
}

int module_schema(const struct loader *l, struct module *m, const struct rp_schema **ret,
		  struct err *err)
{
	*ret = m->abi->service(NULL, RP_SCHEMA_1);
	return 0;
}

void module_note_code(const struct module *m, struct crumb *crumb)
{
}

#endif
