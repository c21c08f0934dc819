/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations without a daemon: the same reader and the installed modules' tables. No policy
 * sees them here. */
#include <errno.h>
#include <stdio.h>

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/schemas.h"
#include "core/nri-rpctl/cli.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/nri-rpctl/jsonschema.h"

struct local {
	const struct cli *cli;
	struct loader *loader;
	struct schemas installed;
	struct conf_named_schema schemas[LOADER_MODULES_MAX];
	unsigned n_schemas;
};

/* ---- modules --------------------------------------------------------------------------------- */

static int open_loader(struct local *l, struct err *err)
{
	struct conf_strings dirs = {l->cli->module_dirs, l->cli->n_module_dirs};
	if (!dirs.n)
		dirs = conf_module_dirs;
	return loader_new(dirs.items, dirs.n, loader_default_flags(), NULL, &l->loader, err);
}

static void warn(const char *text)
{
	fprintf(stderr, "nri-rpctl: %s\n", text);
}

/* ---- check and show -------------------------------------------------------------------------- */

static int load(struct local *l, const char *path, struct conf **ret, struct conf_errors *errs)
{
	struct err err = ERR_INIT;
	conf_errors_init(errs);
	int r = open_loader(l, &err);
	if (r) {
		complain(l->cli, "%s", err_text(&err, r));
		return r;
	}
	l->installed = (struct schemas){l->loader, l->cli->n_module_dirs != 0, warn};
	const struct conf_schemas schemas = schemas_of(&l->installed);
	return conf_load(path, &schemas, ret, errs);
}

static void put_problems(json_t *doc, const struct conf_errors *errs)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < errs->n_items; i++)
		(void)json_array_append_new(list, json_string(errs->items[i].text));
	(void)json_object_set_new(doc, "problems", list);
}

static int print_doc(struct cli *cli, json_t *doc)
{
	char *text = json_dumps(doc, JSON_COMPACT);
	(void)buf_printf(&cli->out.buf, "%s\n", text ? text : "{}");
	int r = text ? 0 : -ENOMEM;
	free(text);
	return r;
}

static void print_problems(struct cli *cli, const struct conf_errors *errs)
{
	for (unsigned i = 0; i < errs->n_items; i++) {
		const struct conf_problem *p = &errs->items[i];
		out_styled(&cli->out, p->warning ? YELLOW : RED,
			   p->warning ? "warning: " : "error: ");
		out_wrap(&cli->out, p->text, p->warning ? 9 : 7, 4);
		out_put(&cli->out, "\n");
	}
	if (errs->n_errors + errs->n_warnings > errs->n_items)
		out_printf(&cli->out, "and %u more\n",
			   errs->n_errors + errs->n_warnings - errs->n_items);
}

static int status_of(int r)
{
	if (!r)
		return CTL_OK;
	return r == -EINVAL ? CTL_CONFIG : CTL_FAILED;
}

int local_check(struct cli *cli, const char *path)
{
	_free_ struct local *l = calloc(1, sizeof *l);
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct conf *conf = NULL;
	if (!l || !errs)
		return CTL_FAILED;
	l->cli = cli;
	path = path ? path : CONF_DEFAULT_PATH;
	int r = load(l, path, &conf, errs);
	if (cli->json) {
		json_t *doc = json_pack("{s:s, s:s, s:b}", "outcome", r ? "refused" : "accepted",
					"path", path, "local", 1);
		put_problems(doc, errs);
		(void)print_doc(cli, doc);
		json_decref(doc);
	} else {
		print_problems(cli, errs);
		if (!r)
			out_styled(&cli->out, GREEN, "Good");
		if (!r)
			out_printf(&cli->out,
				   ": %s; the policy itself was not asked, as nri-rpd is not "
				   "involved\n",
				   path);
	}
	conf_free(conf);
	loader_free(l->loader);
	return status_of(r);
}

int local_show(struct cli *cli, const char *path)
{
	_free_ struct local *l = calloc(1, sizeof *l);
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct conf *conf = NULL;
	struct buf text = BUF_INIT;
	if (!l || !errs)
		return CTL_FAILED;
	l->cli = cli;
	path = path ? path : CONF_DEFAULT_PATH;
	int r = load(l, path, &conf, errs);
	if (r) {
		print_problems(cli, errs);
	} else {
		r = conf_show(conf,
			      (cli->options & OPT_ORIGIN ? CONF_SHOW_ORIGIN : 0) |
				      (cli->options & OPT_DEFAULTS ? CONF_SHOW_DEFAULTS : 0),
			      &text);
		if (cli->json) {
			json_t *doc =
				json_pack("{s:s, s:s}", "path", path, "yaml", buf_text(&text));
			(void)print_doc(cli, doc);
			json_decref(doc);
		} else {
			out_lines(&cli->out, buf_text(&text));
		}
	}
	buf_fini(&text);
	conf_free(conf);
	loader_free(l->loader);
	return status_of(r);
}

void local_problems(const struct cli *cli, const char *text,
		    void (*fn)(const char *problem, void *arg), void *arg)
{
	_free_ struct local *l = calloc(1, sizeof *l);
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	const struct conf_source source = {.name = "rp.conf", .text = text, .len = strlen(text)};
	struct conf *conf = NULL;
	struct err err = ERR_INIT;
	if (!l || !errs)
		return;
	l->cli = cli;
	conf_errors_init(errs);
	if (open_loader(l, &err)) {
		fn(err.text, arg);
		return;
	}
	l->installed = (struct schemas){l->loader, true, warn};
	const struct conf_schemas schemas = schemas_of(&l->installed);
	(void)conf_parse(&source, 1, &schemas, &conf, errs);
	for (unsigned i = 0; i < errs->n_items; i++)
		fn(errs->items[i].text, arg);
	conf_free(conf);
	loader_free(l->loader);
}

/* ---- schema ---------------------------------------------------------------------------------- */

static int add_schema(const struct loader_item *item, void *arg)
{
	struct local *l = arg;
	const struct rp_schema *schema;
	if (!loader_usable(item) || l->n_schemas == LOADER_MODULES_MAX)
		return 0;
	if (schemas_find(&l->installed, item->name, &schema) != CONF_SCHEMA)
		return 0;
	const struct module *m = loader_get(l->loader, item->name);
	l->schemas[l->n_schemas++] = (struct conf_named_schema){m->name, schema};
	return 0;
}

static void print_help(struct cli *cli, const char *name, const struct rp_schema *schema)
{
	struct buf text = BUF_INIT;
	if (conf_schema_help(schema, CONF_TEXT, &text) == 0) {
		out_heading(&cli->out, name);
		out_lines(&cli->out, buf_text(&text));
		out_put(&cli->out, "\n");
	}
	buf_fini(&text);
}

/* Some keys for people. */
static bool print_keys(struct cli *cli, const struct local *l, const char *name)
{
	if (str_eq(name, "core")) {
		print_help(cli, name, conf_core_schema());
		return true;
	}
	for (unsigned i = 0; i < l->n_schemas; i++)
		if (str_eq(l->schemas[i].module, name)) {
			print_help(cli, name, l->schemas[i].schema);
			return true;
		}
	return false;
}

/* All installed ones; NULL: out of memory. */
static struct local *schemas_open(struct cli *cli)
{
	struct local *l = calloc(1, sizeof *l);
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct conf *conf = NULL;
	if (!l || !errs) {
		free(l);
		return NULL;
	}
	l->cli = cli;
	/* For its modules.path; whatever else is in it, or wrong with it, does not matter here. */
	if (load(l, cli->config ? cli->config : CONF_DEFAULT_PATH, &conf, errs) == 0)
		conf_free(conf);
	if (!l->loader) {
		free(l);
		return NULL;
	}
	(void)loader_list(l->loader, add_schema, l);
	return l;
}

static void schemas_close(struct local *l)
{
	loader_free(l->loader);
	free(l);
}

/* With names of modules, or `core`: their keys for people. Without: a JSON schema of everything. */
int cmd_config_schema(struct cli *cli)
{
	struct local *l = schemas_open(cli);
	int exit = CTL_OK, r;
	if (!l)
		return CTL_FAILED;
	if (!cli->n_args) {
		r = conf_json_schema(l->schemas, l->n_schemas, &cli->out.buf);
		(void)buf_add_str(&cli->out.buf, "\n");
		exit = r ? CTL_FAILED : CTL_OK;
	}
	for (unsigned a = 0; a < cli->n_args; a++)
		if (!print_keys(cli, l, cli->args[a])) {
			complain(cli, "no module %s with a table of keys is installed",
				 cli->args[a]);
			exit = CTL_FAILED;
		}
	schemas_close(l);
	return exit;
}

int cmd_config_crds(struct cli *cli)
{
	struct local *l = schemas_open(cli);
	if (!l)
		return CTL_FAILED;
	int r = conf_crds(l->schemas, l->n_schemas, &cli->out.buf);
	(void)buf_add_str(&cli->out.buf, "\n");
	schemas_close(l);
	return r ? CTL_FAILED : CTL_OK;
}
