/* SPDX-License-Identifier: Apache-2.0 */
/* Loads modules for their key tables. Those loaded only for a search are unloaded. */
#include "core/nri-rpd/host/schemas.h"

#include <errno.h>

#include "core/lib/util/str.h"

static void schemas_begin(void *ctx, const char *const *path, unsigned n_path)
{
	struct schemas *s = ctx;
	struct err err = ERR_INIT;
	if (s->fixed || !n_path || !loader_set_paths(s->loader, path, n_path, &err))
		return;
	struct err told = ERR_INIT;
	(void)err_set(&told, -EINVAL, "modules.path: %s", err.text);
	s->warn(told.text);
}

enum conf_found schemas_find(struct schemas *s, const char *module, const struct rp_schema **ret)
{
	struct err err = ERR_INIT, told = ERR_INIT;
	struct module *m;
	*ret = NULL;
	int r = loader_open(s->loader, module, &m, &err);
	if (r == -ENOENT || r == -EINVAL)
		return CONF_NO_MODULE;
	if (!r && !module_schema(s->loader, m, ret, &err))
		return *ret ? CONF_SCHEMA : CONF_NO_SCHEMA;
	(void)err_set(&told, -EINVAL, "%s; its section is not checked", err.text);
	s->warn(told.text);
	return CONF_NO_SCHEMA;
}

static enum conf_found schemas_do_find(void *ctx, const char *module, const struct rp_schema **ret)
{
	return schemas_find(ctx, module, ret);
}

struct kind_search {
	struct schemas *s;
	const char *kind, *found;
};

static int match_kind(const struct loader_item *item, void *arg)
{
	struct kind_search *k = arg;
	struct loader *l = k->s->loader;
	const struct rp_schema *schema;
	if (!loader_usable(item) || !(item->facts->note.kinds & RP_KIND_POLICY))
		return 0;
	bool had = loader_get(l, item->name) != NULL;
	bool found = schemas_find(k->s, item->name, &schema) == CONF_SCHEMA && schema->cr_kind &&
		     str_eq(schema->cr_kind, k->kind);
	struct module *m = loader_get(l, item->name);
	if (m && found)
		k->found = m->name;
	else if (m && !had)
		loader_drop(l, m);
	return k->found != NULL;
}

static const char *of_kind(void *ctx, const char *kind)
{
	struct kind_search k = {ctx, kind, NULL};
	(void)loader_list(k.s->loader, match_kind, &k);
	return k.found;
}

struct listing {
	void (*fn)(const char *module, void *arg);
	void *arg;
};

static int list_item(const struct loader_item *item, void *arg)
{
	const struct listing *l = arg;
	if (loader_usable(item))
		l->fn(item->name, l->arg);
	return 0;
}

static void schemas_each(void *ctx, void (*fn)(const char *module, void *arg), void *arg)
{
	const struct schemas *s = ctx;
	(void)loader_list(s->loader, list_item, &(struct listing){fn, arg});
}

struct conf_schemas schemas_of(struct schemas *s)
{
	return (struct conf_schemas){s, schemas_begin, schemas_do_find, of_kind, schemas_each};
}
