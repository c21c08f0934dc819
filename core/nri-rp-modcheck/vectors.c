/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/vectors.h"
#include "core/nri-rp-modcheck/vectors_decision.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/conf/documents.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/str.h"

#define FILE_MAX (4u << 20)
#define LOG_SILENT ((enum log_level)0)

/* ---- inputs ---------------------------------------------------------------------------------- */

static rp_cfg not_null(rp_cfg node)
{
	return node && conf_kind(node) != RP_NODE_NULL ? node : NULL;
}

rp_cfg vector_in(const struct vector *v, const char *key)
{
	rp_cfg own = conf_get(v->in, key);
	return not_null(own ? own : conf_get(v->defaults, key));
}

rp_cfg vector_sub(const struct vector *v, const char *of, const char *key)
{
	rp_cfg map = conf_get(v->in, of), own = conf_get(map, key);
	bool none = map && conf_kind(map) == RP_NODE_NULL;
	return not_null(own || none ? own : conf_get(conf_get(v->defaults, of), key));
}

int64_t vector_cpu(rp_cfg node, int64_t fallback)
{
	return node ? conf_value(node, RP_T_CPU, fallback) : fallback;
}

int64_t vector_bytes(rp_cfg node, int64_t fallback)
{
	return node ? conf_value(node, RP_T_BYTES, fallback) : fallback;
}

int64_t vector_int(rp_cfg node, int64_t fallback)
{
	return node ? conf_value(node, RP_T_INT, fallback) : fallback;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static const char *number_text(int64_t n, char *text, size_t size)
{
	if (n == RP_NOT_SET)
		return "nothing";
	(void)snprintf(text, size, "%lld", (long long)n);
	return text;
}

void vector_compare(struct vector *v, const char *what, int64_t expected, int64_t found)
{
	char a[32], b[32];
	if (expected != found)
		(void)buf_printf(v->why, "%s: expected %s, found %s\n", what,
				 number_text(expected, a, sizeof a),
				 number_text(found, b, sizeof b));
}

void vector_compare_bool(struct vector *v, const char *what, bool found)
{
	rp_cfg node = conf_get(v->out, what);
	if (!node || (conf_value(node, RP_T_BOOL, 0) != 0) != found)
		(void)buf_printf(v->why, "%s: expected %s, found %s\n", what,
				 conf_text(node, "nothing"), found ? "true" : "false");
}

void vector_compare_text(struct vector *v, const char *what, const char *expected,
			 const char *found)
{
	bool same = expected && found ? str_eq(expected, found) : expected == found;
	if (!same)
		(void)buf_printf(v->why, "%s: expected %s, found %s\n", what,
				 expected ? expected : "nothing", found ? found : "nothing");
}

/* ---- calculators ----------------------------------------------------------------------------- */

struct place {
	struct host_env env;
	struct fs_root root;
	struct loader *loader;
	struct instance *list[NR_CALCULATORS_MAX];
	unsigned n, n_calculators; /* calculators are the first n_calculators */
};

int vector_module(struct vector *v, const char *name, struct instance **ret, struct err *err)
{
	for (unsigned i = 0; i < v->n_list; i++)
		if (str_eq(instance_name(v->list[i]), name)) {
			*ret = v->list[i];
			return 0;
		}
	return err_set(err, -ENOENT, "no calculator %s in this folder", name);
}

int vector_configure(struct instance *i, rp_cfg section, struct err *err)
{
	struct rp_plan *plan;
	int r = instance_prepare(i, section, &plan, err);
	if (!r)
		instance_commit(i, plan);
	return r;
}

static int open_one(struct place *p, const char *name, uint32_t role, struct err *err)
{
	struct module *m;
	int r = loader_open(p->loader, name, &m, err);
	if (!r && p->n == NR_CALCULATORS_MAX)
		r = err_set(err, -E2BIG, "more than %u modules", NR_CALCULATORS_MAX);
	return r ? r : instance_new(&p->env, m, role, &p->list[p->n++], err);
}

static int open_calculator(struct place *p, const char *name, struct err *err)
{
	int r = open_one(p, name, RP_KIND_CALCULATOR, err);
	if (!r)
		r = vector_configure(p->list[p->n - 1], NULL, err);
	p->n_calculators = p->n;
	return r;
}

struct opening {
	struct place *place;
	struct err *err;
};

static int open_other(const struct loader_item *item, void *arg)
{
	struct opening *o = arg;
	if (!loader_usable(item) || !(item->facts->note.kinds & RP_KIND_CALCULATOR))
		return 0;
	for (unsigned i = 0; i < o->place->n; i++)
		if (str_eq(instance_name(o->place->list[i]), item->name))
			return 0;
	return open_calculator(o->place, item->name, o->err);
}

/* Opens a controller; only its decisions are called, which need no configuration. */
static int open_controller(const struct loader_item *item, void *arg)
{
	struct opening *o = arg;
	bool fits = loader_usable(item) && (item->facts->note.kinds & RP_KIND_CONTROLLER);
	return fits ? open_one(o->place, item->name, RP_KIND_CONTROLLER, o->err) : 0;
}

/* Opens all modules: first the calculators that others build on, then the rest by name. */
static int open_all(struct place *p, struct err *err)
{
	static const char *const first[] = {"cpu-normalization", "resource-amplification", "mid",
					    "batch"};
	char path[PATH_MAX];
	struct opening o = {p, err};
	int r = 0;
	for (unsigned i = 0; !r && i < sizeof first / sizeof *first; i++)
		if (!loader_find(p->loader, first[i], path, NULL))
			r = open_calculator(p, first[i], err);
	if (!r)
		r = loader_list(p->loader, open_other, &o);
	return r ? r : loader_list(p->loader, open_controller, &o);
}

static int place_open(struct place *p, const char *dir, struct err *err)
{
	int r = fs_root_open(&p->root, "/", err);
	if (r)
		return r;
	p->env.root = &p->root;
	p->env.trial = true;
	p->env.loop = loop_new();
	p->env.cache = cache_new(UINT64_C(1) << 30);
	if (!p->env.loop || !p->env.cache)
		return err_errno(err, -ENOMEM, "calculators");
	r = loader_new(&dir, 1, loader_default_flags(), NULL, &p->loader, err);
	return r ? r : open_all(p, err);
}

static void place_close(struct place *p)
{
	while (p->n)
		instance_free(p->list[--p->n]);
	p->loader = loader_free(p->loader);
	p->env.cache = p->env.cache ? cache_free(p->env.cache) : NULL;
	p->env.loop = p->env.loop ? loop_free(p->env.loop) : NULL;
	fs_root_close(&p->root);
}

/* ---- running --------------------------------------------------------------------------------- */

struct tally {
	unsigned passed, failed;
};

static const struct vector_kind *find_kind(const char *name)
{
	static const struct vector_kind *const tables[] = {vector_kinds_calculators,
							   vector_kinds_host};
	for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct vector_kind *k = tables[t]; k->name; k++)
			if (str_eq(k->name, name))
				return k;
	return NULL;
}

static struct instance *find_decider(struct place *p, const char *kind)
{
	for (unsigned i = 0; i < p->n; i++)
		if (instance_decides(p->list[i], kind))
			return p->list[i];
	return NULL;
}

/* Runs one case. kind NULL: the module's own decision of the name `called`. */
static void run_case(struct place *p, const char *called, const struct vector_kind *kind,
		     rp_cfg defaults, rp_cfg one, struct tally *t)
{
	_cleanup_(buf_fini) struct buf why = BUF_INIT;
	struct err err = ERR_INIT;
	const char *name = conf_text(conf_get(one, "name"), "?");
	struct vector v = {.defaults = defaults,
			   .in = conf_get(one, "in"),
			   .out = conf_get(one, "out"),
			   .list = p->list,
			   .n_list = p->n_calculators,
			   .env = &p->env,
			   .why = &why};
	int r = !v.out ? err_set(&err, -EINVAL, "the case has no out")
		: kind ? kind->run(&v, &err)
		       : vector_decide(&v, find_decider(p, called), called, &err);
	bool good = !r && !buf_len(&why);
	t->passed += good;
	t->failed += !good;
	printf("%s %u - %s: %s\n", good ? "ok" : "not ok", t->passed + t->failed, called, name);
	if (r)
		printf("# %s\n", err_text(&err, r));
	for (const char *line = buf_text(&why); *line; line = strchr(line, '\n') + 1)
		printf("# %.*s\n", (int)strcspn(line, "\n"), line);
}

static void run_document(struct place *p, rp_cfg root, struct tally *t)
{
	const char *name = conf_text(conf_get(root, "kind"), "");
	const struct vector_kind *kind = find_kind(name);
	rp_cfg cases = conf_get(root, "cases");
	if (!kind && !find_decider(p, name)) {
		t->failed++;
		printf("not ok %u - unknown kind \"%s\"\n", t->passed + t->failed, name);
		return;
	}
	for (uint32_t i = 0; i < conf_count(cases); i++)
		run_case(p, name, kind, conf_get(root, "defaults"), conf_item(cases, i), t);
}

static int read_documents(const char *file, struct documents *ret, struct err *err)
{
	_free_ char *text = NULL;
	size_t len;
	struct fs_root root;
	int r = fs_root_open(&root, "/", err);
	char path[PATH_MAX];
	if (r)
		return r;
	if (!realpath(file, path))
		r = err_errno(err, -errno, "%s", file);
	else if ((r = fs_read_all(&root, path, FILE_MAX, &text, &len)))
		r = err_errno(err, r, "%s", file);
	fs_root_close(&root);
	return r ? r : documents_parse(file, text, len, ret, err);
}

int vectors_run(const char *file, const char *dir)
{
	struct place p = {0};
	struct documents documents = {0};
	struct tally t = {0};
	struct err err = ERR_INIT;
	log_set_level(LOG_SILENT);
	int r = read_documents(file, &documents, &err);
	if (!r)
		r = place_open(&p, dir, &err);
	for (unsigned i = 0; !r && i < documents.n_roots; i++)
		run_document(&p, documents.roots[i], &t);
	if (r)
		(void)fprintf(stderr, "nri-rp-modcheck: %s\n", err_text(&err, r));
	else
		printf("1..%u\n# %u passed, %u failed\n", t.passed + t.failed, t.passed, t.failed);
	place_close(&p);
	documents_fini(&documents);
	return r || t.failed || !t.passed ? 1 : 0;
}
