/* SPDX-License-Identifier: Apache-2.0 */
/* Checks configurations without a running daemon by the program nri-rpd, and shows them with the
 * daemon's reader and the tables of the installed modules. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/schemas.h"
#include "core/nri-rpctl/cli.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
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

static void local_warn(const char *text)
{
	fprintf(stderr, "nri-rpctl: %s\n", text);
}

/* ---- check by nri-rpd ------------------------------------------------------------------------ */

#define CHECK_ARGS_MAX 64u

/* Finds nri-rpd: in the folder of this program, or where packages install it. */
static bool find_daemon(char *ret, size_t size)
{
	static const char *const dirs[] = {NULL, "/usr/sbin", "/usr/bin"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
		const char *dir = dirs[i];
		char own[PATH_MAX];
		if (!dir) {
			fs_parent(self, own, sizeof own);
			dir = own;
		}
		int len = snprintf(ret, size, "%s/nri-rpd", dir);
		if (len > 0 && (size_t)len < size && access(ret, X_OK) == 0)
			return true;
	}
	return false;
}

/* Returns true if there are modules. Without any, every policy would be refused. */
static bool has_modules(const struct cli *cli)
{
	for (unsigned i = 0; i < conf_module_dirs.n; i++)
		if (access(conf_module_dirs.items[i], R_OK) == 0)
			return true;
	return cli->n_module_dirs != 0;
}

/* Stores a text in a memory file that a child can open until this process ends. */
static int local_text_file(const char *text, char *ret, size_t size)
{
	int fd = memfd_create("rp.conf", 0);
	size_t len = strlen(text);
	if (fd < 0 || fchmod(fd, 0600) || write(fd, text, len) != (ssize_t)len)
		return -1;
	(void)snprintf(ret, size, "/proc/self/fd/%d", fd);
	return 0;
}

/* Appends the lines with the name of the file in place of its path. */
static void add_named(struct buf *out, const char *text, const char *path, const char *name)
{
	for (const char *at; (at = strstr(text, path)); text = at + strlen(path)) {
		(void)buf_add(out, text, (size_t)(at - text));
		(void)buf_add_str(out, name);
	}
	(void)buf_add_str(out, text);
}

/* Runs nri-rpd --check-config on a file. Returns its exit status with its output, or -1 if the
 * program does not exist. */
static int local_run_check(const struct cli *cli, const char *path, const char *name,
			   struct buf *ret)
{
	char program[PATH_MAX];
	const char *argv[CHECK_ARGS_MAX] = {program, "--check-config", "--config", path};
	unsigned n = 4;
	struct buf said = BUF_INIT;
	if (!find_daemon(program, sizeof program))
		return -1;
	for (unsigned i = 0; i < cli->n_module_dirs && n + 5 < CHECK_ARGS_MAX; i++) {
		argv[n++] = "--module-dir";
		argv[n++] = cli->module_dirs[i];
	}
	if (cli->host_root) {
		argv[n++] = "--host-root";
		argv[n++] = cli->host_root;
	}
	int status = run_program(argv, &said);
	add_named(ret, buf_text(&said), path, name);
	buf_fini(&said);
	return status;
}

/* ---- check and show -------------------------------------------------------------------------- */

static int local_load(struct local *l, const char *path, struct conf **ret,
		      struct conf_errors *errs)
{
	struct err err = ERR_INIT;
	conf_errors_init(errs);
	int r = open_loader(l, &err);
	if (r) {
		complain(l->cli, "%s", err_text(&err, r));
		return r;
	}
	l->installed = (struct schemas){l->loader, l->cli->n_module_dirs != 0, local_warn};
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
		show_problem(&cli->out, p->text, p->warning ? 9 : 7, 4);
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

/* Checks a file only against the modules' tables, without nri-rpd. */
static int local_check_tables(struct cli *cli, const char *path)
{
	_free_ struct local *l = calloc(1, sizeof *l);
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct conf *conf = NULL;
	if (!l || !errs)
		return CTL_FAILED;
	l->cli = cli;
	int r = local_load(l, path, &conf, errs);
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
				   ": %s; syntax only: the policy's own checks were not run, "
				   "because no nri-rpd with modules was found\n",
				   path);
	}
	conf_free(conf);
	loader_free(l->loader);
	return status_of(r);
}

/* Returns the message of a line of the daemon's log, "TIME nri-rpd LEVEL: SOURCE: TEXT", or a line
 * in another format unchanged. NULL: not a problem. */
static const char *line_problem(const char *line, bool *ret_warning)
{
	static const char mark[] = "Z nri-rpd ";
	const char *level = strstr(line, mark), *text;
	*ret_warning = str_has_prefix(line, CONF_WARNING);
	if (!level || *line < '0' || *line > '9')
		return line + (*ret_warning ? strlen(CONF_WARNING) : 0);
	level += strlen(mark);
	*ret_warning = str_has_prefix(level, CONF_WARNING);
	if (!*ret_warning && !str_has_prefix(level, "error: "))
		return NULL;
	text = strchr(strchr(level, ' ') + 1, ' ');
	return text ? text + 1 : NULL;
}

/* Prints the result of nri-rpd --check-config, whose output is `text`. */
static void print_verdict(struct cli *cli, const char *path, char *text, bool good)
{
	json_t *list = json_array();
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		bool warning;
		const char *problem = line_problem(line, &warning);
		if (!problem || (good && str_has_suffix(line, ": good")))
			continue;
		(void)json_array_append_new(
			list, json_sprintf("%s%s", warning ? CONF_WARNING : "", problem));
		if (cli->json)
			continue;
		out_styled(&cli->out, warning ? YELLOW : RED, warning ? "warning: " : "error: ");
		show_problem(&cli->out, problem, warning ? 9 : 7, 4);
	}
	if (cli->json) {
		json_t *doc =
			json_pack("{s:s, s:s, s:b, s:O}", "outcome", good ? "accepted" : "refused",
				  "path", path, "local", 1, "problems", list);
		(void)print_doc(cli, doc);
		json_decref(doc);
	} else if (good) {
		out_styled(&cli->out, GREEN, "Good");
		out_printf(&cli->out, ": %s\n", path);
	}
	json_decref(list);
}

int local_check(struct cli *cli, const char *path)
{
	char own[PATH_MAX];
	_free_ char *text = NULL;
	const char *name = path && str_eq(path, "-") ? "standard input" : path;
	path = path ? path : CONF_DEFAULT_PATH;
	name = name ? name : path;
	if (str_eq(path, "-")) {
		text = cli_read_text(cli, path);
		if (!text || local_text_file(text, own, sizeof own))
			return CTL_FAILED;
		path = own;
	}
	struct buf out = BUF_INIT;
	int status = has_modules(cli) ? local_run_check(cli, path, name, &out) : -1;
	if (status < 0) {
		buf_fini(&out);
		return local_check_tables(cli, path);
	}
	_free_ char *lines = strdup(buf_text(&out));
	buf_fini(&out);
	if (lines)
		print_verdict(cli, name, lines, !status);
	return status == 0 ? CTL_OK : status == CTL_CONFIG ? CTL_CONFIG : CTL_FAILED;
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
	int r = local_load(l, path, &conf, errs);
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
	l->installed = (struct schemas){l->loader, true, local_warn};
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

/* Prints the keys of a module, or of the core, for people. */
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

/* Opens the tables of all installed modules; NULL: out of memory. */
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
	/* Only modules.path of the configuration is used here; errors in it do not matter. */
	if (local_load(l, cli->config ? cli->config : CONF_DEFAULT_PATH, &conf, errs) == 0)
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

/* Shows keys of the named modules, or of `core`, for people. Without arguments, prints a JSON
 * schema of all keys. */
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
			complain(cli, "no module %s with configuration keys is installed",
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
