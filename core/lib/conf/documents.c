/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/conf/documents.h"

#include <stdlib.h>

#include "core/lib/conf/internal.h"
#include "core/lib/util/cleanup.h"

static int documents_do_parse(struct documents *d, const char *name, const char *text, size_t len,
			      struct conf_errors *errs, struct err *err)
{
	const struct conf_source source = {.name = name, .text = text, .len = len};
	struct conf_file *file = arena_zero(d->arena, struct conf_file);
	struct conf_docs docs = {.end = &docs.first};
	if (!file)
		return err_errno(err, -ENOMEM, "%s", name);
	file->name = arena_strdup(d->arena, name);
	conf_errors_init(errs);
	int r = file->name ? yaml_read(d->arena, &source, file, &docs, errs) : -ENOMEM;
	if (errs->n_errors)
		return conf_errors_to_err(errs, -EINVAL, err);
	unsigned n = 0;
	for (const struct conf_doc *doc = docs.first; doc; doc = doc->next)
		n++;
	d->roots = r ? NULL : arena_array(d->arena, n ? n : 1, sizeof *d->roots);
	if (!d->roots)
		return err_errno(err, r ? r : -ENOMEM, "%s", name);
	for (const struct conf_doc *doc = docs.first; doc; doc = doc->next)
		d->roots[d->n_roots++] = doc->root;
	return 0;
}

int documents_parse(const char *name, const char *text, size_t len, struct documents *ret,
		    struct err *err)
{
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct documents d = {.arena = arena_new(CONF_ARENA_BLOCK, CONF_ARENA_MAX)};
	int r = errs && d.arena ? documents_do_parse(&d, name, text, len, errs, err)
				: err_errno(err, -ENOMEM, "%s", name);
	if (r)
		documents_fini(&d);
	else
		*ret = d;
	return r;
}

void documents_fini(struct documents *d)
{
	d->arena = arena_free(d->arena);
	d->roots = NULL;
	d->n_roots = 0;
}
