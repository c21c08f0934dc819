/* SPDX-License-Identifier: Apache-2.0 */
/* The module's configuration: that of the user, or the required keys of its table with simple
 * values. */
#include "core/nri-rp-modcheck/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/conf/fragment.h"
#include "core/nri-rp-modcheck/check.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define NEST_MAX 8u

/* ---- configuration from the table ------------------------------------------------------------ */

/* Returns the part of a key's path below `parent`, or NULL if the key is not directly below it. */
static const char *leaf_of(const struct rp_key *key, const char *parent)
{
	size_t len = strlen(parent);
	const char *rest = key->path;
	if (len && (strncmp(rest, parent, len) != 0 || rest[len] != '.'))
		return NULL;
	rest += len ? len + 1 : 0;
	return strpbrk(rest, ".[*") ? NULL : rest;
}

static const struct rp_key *row_of(const struct rp_schema *schema, const char *path)
{
	for (uint32_t i = 0; i < schema->n_keys; i++)
		if (str_eq(schema->keys[i].path, path))
			return &schema->keys[i];
	return NULL;
}

static int64_t plain_int(const struct rp_key *key)
{
	if (!key->min && !key->max)
		return 1;
	if (key->min > 1)
		return key->min;
	return key->max < 1 ? key->max : 1;
}

/* A key to set in addition to the required ones. */
struct variant {
	const struct rp_schema *schema;
	const char *path, *value; /* key to set and its YAML value; NULL: no additional key */
};

/* Returns true if the path of the key to set leads through `path`, a key or a list element. */
static bool on_the_way(const struct variant *v, const char *path)
{
	size_t len = strlen(path);
	return v->path && strncmp(v->path, path, len) == 0 &&
	       (!v->path[len] || v->path[len] == '.' || v->path[len] == '[');
}

static void put_members(const struct variant *v, const char *parent, unsigned depth,
			struct buf *out);

static void put_list(const struct variant *v, const struct rp_key *key, unsigned depth,
		     struct buf *out);

static void put_value(const struct variant *v, const struct rp_key *key, unsigned depth,
		      struct buf *out)
{
	static const char *const plain[] = {
		[RP_T_BOOL] = "true",	 [RP_T_NUMBER] = "1",  [RP_T_STRING] = "x",
		[RP_T_CPU] = "1",	 [RP_T_BYTES] = "1Gi", [RP_T_DURATION] = "10s",
		[RP_T_AMOUNT] = "1",	 [RP_T_CPULIST] = "0", [RP_T_ANY] = "{}",
		[RP_T_FREQ] = "1000000",
	};
	if (v->path && str_eq(v->path, key->path)) {
		(void)buf_add_str(out, v->value);
		return;
	}
	switch (key->type) {
	case RP_T_INT:
		(void)buf_printf(out, "%lld", (long long)plain_int(key));
		return;
	case RP_T_ENUM:
		(void)buf_printf(out, "\"%.*s\"", (int)strcspn(key->choices, "|"), key->choices);
		return;
	case RP_T_MAP:
		put_members(v, key->path, depth, out);
		return;
	case RP_T_LIST:
		put_list(v, key, depth, out);
		return;
	default:
		(void)buf_add_str(out, key->type < sizeof plain / sizeof *plain && plain[key->type]
					       ? plain[key->type]
					       : "{}");
	}
}

static void put_list(const struct variant *v, const struct rp_key *key, unsigned depth,
		     struct buf *out)
{
	_free_ char *path = str_printf("%s[]", key->path);
	const struct rp_key *item = path ? row_of(v->schema, path) : NULL;
	(void)buf_add_str(out, "[");
	if (path && depth < NEST_MAX && ((key->flags & RP_KEY_NON_EMPTY) || on_the_way(v, path))) {
		if (item)
			put_value(v, item, depth + 1, out);
		else
			put_members(v, path, depth + 1, out);
	}
	(void)buf_add_str(out, "]");
}

static void put_members(const struct variant *v, const char *parent, unsigned depth,
			struct buf *out)
{
	const struct rp_schema *schema = v->schema;
	const char *between = "";
	(void)buf_add_str(out, "{");
	for (uint32_t i = 0; depth < NEST_MAX && i < schema->n_keys; i++) {
		const struct rp_key *key = &schema->keys[i];
		const char *leaf = leaf_of(key, parent);
		if (!leaf || (!(key->flags & RP_KEY_REQUIRED) && !on_the_way(v, key->path)))
			continue;
		(void)buf_printf(out, "%s%s: ", between, leaf);
		put_value(v, key, depth + 1, out);
		between = ", ";
	}
	(void)buf_add_str(out, "}");
}

/* Returns true for reservedResources: most policies cannot start without it, although their tables
 * do not require it. */
static bool is_reserve(const struct rp_schema *schema, const struct rp_key *key)
{
	return str_eq(key->path, "reservedResources") && key->type == RP_T_MAP &&
	       row_of(schema, "reservedResources.cpu");
}

static void put_required(const struct variant *v, struct buf *out)
{
	for (uint32_t i = 0; v->schema && i < v->schema->n_keys; i++) {
		const struct rp_key *key = &v->schema->keys[i];
		if (is_reserve(v->schema, key) && !on_the_way(v, key->path)) {
			(void)buf_add_str(out, "  reservedResources: {cpu: 1}\n");
		} else if (leaf_of(key, "") &&
			   ((key->flags & RP_KEY_REQUIRED) || on_the_way(v, key->path))) {
			(void)buf_printf(out, "  %s: ", key->path);
			put_value(v, key, 1, out);
			(void)buf_add_str(out, "\n");
		}
	}
}

/* ---- configuration from a file --------------------------------------------------------------- */

static int read_text(const char *path, char **ret, struct err *err)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_free_ char *text = malloc(CONF_FILE_MAX + 1);
	size_t len = 0;
	if (fd < 0 || !text)
		return err_errno(err, fd < 0 ? -errno : -ENOMEM, "%s", path);
	while (len <= CHECK_CONFIG_MAX) {
		ssize_t n = read(fd, text + len, CHECK_CONFIG_MAX + 1 - len);
		if (n < 0)
			return err_errno(err, -errno, "%s", path);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (len > CHECK_CONFIG_MAX)
		return err_set(err, -EFBIG, "%s: more than %u bytes", path, CHECK_CONFIG_MAX);
	text[len] = '\0';
	*ret = TAKE(text);
	return 0;
}

/* Returns true if the text is a whole rp.conf: it has the module's name as a top-level key. Other
 * texts are treated as the section alone. */
static bool is_whole(const struct check *c, const char *text)
{
	struct fragment *f = NULL;
	rp_cfg root = NULL;
	if (fragment_parse(text, &f, &root, NULL) || !root)
		return false;
	bool whole = false;
	for (uint32_t i = 0; i < conf_count(root); i++)
		whole = whole || str_eq(conf_key(root, i), c->o->name);
	fragment_free(f);
	return whole;
}

static int put_file(const struct check *c, const char *more, struct buf *out, struct err *err)
{
	_free_ char *text = NULL;
	int r = read_text(c->o->config, &text, err);
	if (r || !text)
		return r;
	if (is_whole(c, text)) {
		buf_reset(out);
		return *more ? err_set(err, -ENOTSUP, "%s is a complete rp.conf", c->o->config)
			     : buf_add_str(out, text);
	}
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "\n");
		(void)buf_printf(out, "  %.*s\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
	return out->failed;
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum conf_found find_schema(void *ctx, const char *module, const struct rp_schema **ret)
{
	const struct check *c = ctx;
	if (!str_eq(module, c->o->name))
		return CONF_NO_MODULE;
	if (!c->schema)
		return CONF_NO_SCHEMA;
	*ret = c->schema;
	return CONF_SCHEMA;
}

static void put_head(const struct check *c, struct buf *out)
{
	const char *name = c->o->name;
	(void)buf_printf(out,
			 c->module->kinds & RP_KIND_POLICY ? "policy: %s\n%s:\n"
							   : "controllers: [%s]\n%s:\n",
			 name, name);
}

static int config_do_parse(const struct check *c, struct buf *text, const char *name,
			   struct conf **ret, struct err *err)
{
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	if (!errs || text->failed)
		return err_errno(err, -ENOMEM, "configuration");
	conf_errors_init(errs);
	const struct conf_schemas schemas = {.ctx = (void *)(uintptr_t)c, .find = find_schema};
	const struct conf_source source = {
		.name = name, .text = buf_text(text), .len = buf_len(text)};
	int r = conf_parse(&source, 1, &schemas, ret, errs);
	return r ? conf_errors_to_err(errs, r, err) : 0;
}

int config_load_with(const struct check *c, const char *more, struct conf **ret, struct err *err)
{
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	const struct variant plain = {.schema = c->schema};
	int r = 0;
	put_head(c, &text);
	if (c->o->config)
		r = put_file(c, more, &text, err);
	else
		put_required(&plain, &text);
	(void)buf_add_str(&text, more);
	return r ? r : config_do_parse(c, &text, c->o->config ? c->o->config : "rp.conf", ret, err);
}

int config_load(const struct check *c, struct conf **ret, struct err *err)
{
	return config_load_with(c, "", ret, err);
}

int config_load_variant(const struct check *c, const char *path, const char *value,
			struct conf **ret, struct err *err)
{
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	const struct variant v = {c->schema, path, value};
	put_head(c, &text);
	put_required(&v, &text);
	return config_do_parse(c, &text, "rp.conf", ret, err);
}

/* ---- annotations ----------------------------------------------------------------------------- */

static unsigned take_values(rp_cfg map, struct kv *ret)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < conf_count(map); i++) {
		rp_cfg value = conf_item(map, i);
		bool list = conf_kind(value) == RP_NODE_LIST;
		for (uint32_t k = 0; k < (list ? conf_count(value) : 1) && n < CHECK_OWN_MAX; k++)
			ret[n++] = (struct kv){conf_key(map, i),
					       conf_text(list ? conf_item(value, k) : value, "")};
	}
	return n;
}

int config_annotations(const char *path, struct kv **ret, unsigned *ret_n,
		       struct fragment **ret_text, struct err *err)
{
	_free_ char *text = NULL;
	_free_ struct kv *pairs = calloc(CHECK_OWN_MAX, sizeof *pairs);
	rp_cfg map = NULL;
	int r = pairs ? read_text(path, &text, err) : err_errno(err, -ENOMEM, "annotations");
	if (r)
		return r;
	r = fragment_parse(text, ret_text, &map, err);
	if (r)
		return err_prefix(err, "%s: ", path);
	*ret_n = map ? take_values(map, pairs) : 0;
	*ret = TAKE(pairs);
	return 0;
}
