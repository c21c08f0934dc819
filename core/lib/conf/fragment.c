/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/conf/fragment.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/conf/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define FRAGMENT_BLOCK 4096u

/* Reports the first problem without the name of the file at its beginning. */
static int fragment_refuse(struct err *err, int code, const struct conf_errors *errs)
{
	if (!errs->n_items)
		return err_errno(err, code, "cannot be read");
	const struct conf_problem *p = &errs->items[0];
	const char *text = strstr(p->text, ": ");
	return err_set(err, code, "line %u, column %u: %s", p->line, p->column,
		       text ? text + 2 : p->text);
}

static int fragment_do_parse(struct fragment *f, const struct conf_source *source, rp_cfg *ret_root,
			     struct err *err)
{
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct conf_file *file = arena_zero(f->arena, struct conf_file);
	if (!errs || !file)
		return err_errno(err, -ENOMEM, "cannot be read");
	conf_errors_init(errs);
	file->name = source->name;
	struct conf_docs docs = {0};
	docs.end = &docs.first;
	int r = yaml_read(f->arena, source, file, &docs, errs);
	if (!r && errs->n_errors)
		r = -EINVAL;
	if (r)
		return fragment_refuse(err, r, errs);
	if (docs.first && docs.first->next)
		return err_set(err, -EINVAL, "more than one document");
	*ret_root = docs.first ? docs.first->root : NULL;
	return 0;
}

int fragment_parse(const char *text, struct fragment **ret, rp_cfg *ret_root, struct err *err)
{
	const struct conf_source source = {
		.name = "annotation", .text = text, .len = strnlen(text, FRAGMENT_TEXT_MAX + 1)};
	if (source.len > FRAGMENT_TEXT_MAX)
		return err_set(err, -E2BIG, "more than %u bytes", FRAGMENT_TEXT_MAX);
	struct fragment *f = calloc(1, sizeof *f);
	if (f)
		f->arena = arena_new(FRAGMENT_BLOCK, FRAGMENT_MEMORY_MAX);
	int r = f && f->arena ? fragment_do_parse(f, &source, ret_root, err)
			      : err_errno(err, -ENOMEM, "cannot be read");
	if (r) {
		fragment_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

static void rename_member(struct conf_member *m, const struct prefixes *p)
{
	struct site_name name;
	for (unsigned i = 0; m->key && i < PREFIX_RESOURCES; i++) {
		if (str_eq(m->key, site_name(p, prefix_resources[i], &name))) {
			node_rename(m, prefix_resources[i]);
			return;
		}
		if (str_eq(m->key, prefix_resources[i]))
			node_rename(m, "");
	}
}

void fragment_rename(rp_cfg root, const struct prefixes *p)
{
	bool list = root && (root->kind == RP_NODE_MAP || root->kind == RP_NODE_LIST);
	for (uint32_t i = 0; list && p && p->any && i < root->n; i++) {
		rename_member(&root->members[i], p);
		fragment_rename(root->members[i].node, p);
	}
}

struct fragment *fragment_free(struct fragment *f)
{
	if (!f)
		return NULL;
	arena_free(f->arena);
	free(f);
	return NULL;
}
