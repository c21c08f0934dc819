/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files as sources, and sources as a configuration. */
#include "core/lib/conf/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/str.h"

/* ---- files ----------------------------------------------------------------------------------- */

void conf_files_fini(struct conf_files *files)
{
	for (unsigned i = 0; i < files->n_sources; i++) {
		free((char *)files->sources[i].name);
		free((char *)files->sources[i].text);
	}
	free(files->sources);
	*files = (struct conf_files){NULL, 0};
}

static int file_problem(struct conf_errors *errs, const char *path, int code, const char *what)
{
	struct conf_file file = {.name = path};
	errno = -code;
	(void)problem_at(errs, &file, 0, 0, "%s: %m", what);
	return code;
}

/* Reads at most one byte more than is allowed; the parser reports the excess. */
static int read_fd(int fd, char **ret, size_t *ret_len)
{
	_free_ char *text = malloc(CONF_FILE_MAX + 1);
	size_t len = 0;
	if (!text)
		return -ENOMEM;
	while (len < CONF_FILE_MAX + 1) {
		ssize_t n = read(fd, text + len, CONF_FILE_MAX + 1 - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	*ret = TAKE(text);
	*ret_len = len;
	return 0;
}

static int add_file(struct conf_files *files, const char *path, struct conf_errors *errs)
{
	/* O_NONBLOCK does not wait for a FIFO, which is refused below. */
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return file_problem(errs, path, -errno, "cannot be opened");
	struct stat st;
	int rc = fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;
	if (rc < 0)
		return file_problem(errs, path, rc, "cannot be read");
	struct conf_file file = {.name = path};
	if (!S_ISREG(st.st_mode))
		return problem_at(errs, &file, 0, 0, "not a regular file");
	file.number = files->n_sources;
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		warning_at(errs, &file, "%s may write it and so control this root daemon: chmod %s",
			   st.st_mode & S_IWOTH ? "any user" : "its group", "go-w");
	_free_ char *text = NULL;
	size_t len = 0;
	rc = read_fd(fd, &text, &len);
	if (rc < 0)
		return file_problem(errs, path, rc, "cannot be read");
	char *name = strdup(path);
	if (!name)
		return file_problem(errs, path, -ENOMEM, "cannot be read");
	files->sources[files->n_sources++] =
		(struct conf_source){.name = name, .text = TAKE(text), .len = len};
	return 0;
}

static int is_drop_in(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && str_has_suffix(entry->d_name, ".conf");
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_drop_in(struct conf_files *files, const char *dir, const char *name,
		       struct conf_errors *errs)
{
	_free_ char *path = str_printf("%s/%s", dir, name);
	return path ? add_file(files, path, errs)
		    : file_problem(errs, dir, -ENOMEM, "the directory cannot be read");
}

/* Adds the drop-ins. Each unreadable one is reported; returns the code of the first. */
static int add_drop_ins(struct conf_files *files, const char *dir, struct conf_errors *errs)
{
	struct dirent **names;
	int n = scandir(dir, &names, is_drop_in, by_bytes);
	if (n < 0)
		return errno == ENOENT
			       ? 0
			       : file_problem(errs, dir, -errno, "the directory cannot be read");
	int rc = 0;
	struct conf_file file = {.name = dir};
	bool too_many = n >= (int)CONF_FILES_MAX;
	if (too_many)
		rc = problem_at(errs, &file, 0, 0, "more than %u files", CONF_FILES_MAX - 1);
	for (int i = 0; i < n; i++) {
		int r = too_many ? 0 : add_drop_in(files, dir, names[i]->d_name, errs);
		rc = rc ? rc : r;
		free(names[i]);
	}
	free(names);
	return rc;
}

int conf_read_files(const char *path, struct conf_files *ret, struct conf_errors *errs)
{
	_free_ char *dir = str_printf("%s.d", path);
	*ret = (struct conf_files){calloc(CONF_SOURCES_MAX, sizeof *ret->sources), 0};
	if (!dir || !ret->sources)
		return file_problem(errs, path, -ENOMEM, "cannot be read");
	int rc = add_file(ret, path, errs);
	int r = add_drop_ins(ret, dir, errs);
	return rc ? rc : r;
}

int conf_files_append(struct conf_files *files, const struct conf_source *sources, unsigned n)
{
	size_t all = (size_t)files->n_sources + n;
	struct conf_source *list = realloc(files->sources, (all + 1) * sizeof *list);
	if (!list)
		return -ENOMEM;
	files->sources = list;
	for (unsigned i = 0; i < n; i++) {
		char *name = strdup(sources[i].name), *text = malloc(sources[i].len + 1);
		if (!name || !text) {
			free(name);
			free(text);
			return -ENOMEM;
		}
		if (sources[i].len)
			memcpy(text, sources[i].text, sources[i].len);
		text[sources[i].len] = '\0';
		struct conf_source *to = &list[files->n_sources++];
		*to = sources[i];
		to->name = name;
		to->text = text;
	}
	return 0;
}

/* ---- modules --------------------------------------------------------------------------------- */

bool module_name_valid(const char *name)
{
	size_t len = strlen(name);
	return len && len < RP_NAME_MAX && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

const struct conf_module *known_module(const struct conf *conf, const char *name)
{
	const struct conf_module *m = conf->modules;
	while (m && !str_eq(m->name, name))
		m = m->next;
	return m;
}

static int find_schema(struct conf_loader *l, struct conf_module *m)
{
	const struct rp_schema *schema = NULL;
	const struct conf_schemas *s = l->schemas;
	m->found = s && s->find ? s->find(s->ctx, m->name, &schema) : CONF_NO_SCHEMA;
	if (m->found != CONF_SCHEMA)
		return 0;
	struct err err = ERR_INIT;
	struct schema_tree *tree = NULL;
	int rc = schema_build(l->arena, schema, &tree, &err);
	if (rc == -EINVAL)
		(void)problem_at(l->errs, NULL, 0, 0, "module %s: %s", m->name, err.text);
	m->schema = tree;
	return rc == -ENOMEM ? rc : 0;
}

const struct conf_module *loader_module(struct conf_loader *l, const char *name)
{
	const struct conf_module *known = known_module(l->conf, name);
	if (known)
		return known;
	struct conf_module *m = arena_zero(l->arena, struct conf_module);
	if (m)
		m->name = arena_strdup(l->arena, name);
	if (!m || !m->name || find_schema(l, m) < 0)
		return NULL;
	struct conf_module **end = &l->conf->modules;
	while (*end)
		end = &(*end)->next;
	*end = m;
	return m;
}

const struct schema_tree *conf_schema_of(const struct conf *conf, const char *module)
{
	const struct conf_module *m = known_module(conf, module);
	return m ? m->schema : NULL;
}

/* ---- parsing --------------------------------------------------------------------------------- */

static int read_sources(struct conf_loader *l, const struct conf_source *sources,
			unsigned n_sources, struct conf_docs *docs)
{
	size_t total = 0;
	int result = 0;
	for (unsigned i = 0; i < n_sources; i++) {
		struct conf_file *file = arena_zero(l->arena, struct conf_file);
		if (file)
			file->name = arena_strdup(l->arena, sources[i].name);
		if (!file || !file->name)
			return -ENOMEM;
		file->number = i;
		file->object = sources[i].object;
		total += sources[i].len;
		if (total > CONF_TOTAL_MAX)
			return problem_at(l->errs, file, 0, 0,
					  "more than %u bytes of configuration including this file",
					  CONF_TOTAL_MAX);
		int rc = yaml_read(l->arena, &sources[i], file, docs, l->errs);
		if (rc == -ENOMEM)
			return rc;
		if (rc < 0)
			result = rc;
	}
	return result;
}

/* Passes the directories of modules to the source of tables, before the first look-up. */
static int begin_modules(const struct conf_loader *l, const struct conf_docs *docs)
{
	if (!l->schemas || !l->schemas->begin)
		return 0;
	const struct rp_cfg_node *root = NULL;
	for (const struct conf_doc *doc = docs->first; doc; doc = doc->next)
		if (!doc->pushed && node_is(conf_get(doc->root, "modules.path"), RP_NODE_LIST))
			root = doc->root;
	struct conf_strings path;
	int rc = core_module_path(l->arena, root, &path);
	if (rc == 0)
		l->schemas->begin(l->schemas->ctx, path.items, path.n);
	return rc;
}

static int load_load(struct conf_loader *l, const struct conf_source *sources, unsigned n_sources)
{
	struct conf_docs docs = {.first = NULL, .end = &docs.first};
	struct conf *conf = l->conf;
	struct schema_tree *core = NULL;
	int rc = schema_build(l->arena, conf_core_schema(), &core, NULL);
	conf->schema = core;
	conf->root = node_new(l->arena, RP_NODE_MAP, NULL);
	if (rc < 0 || !conf->root)
		return -ENOMEM;
	rc = read_sources(l, sources, n_sources, &docs);
	if (rc == 0)
		rc = begin_modules(l, &docs);
	if (rc == 0)
		rc = rewrite_merge(l, &docs);
	if (rc < 0)
		return rc;
	check_all(l);
	rc = core_fill(l);
	return rc < 0 ? rc : check_used(l);
}

int conf_parse_within(size_t arena_limit, const struct conf_source *sources, unsigned n_sources,
		      const struct conf_schemas *schemas, struct conf **ret,
		      struct conf_errors *errs)
{
	_arena_ struct arena *arena = arena_new(CONF_ARENA_BLOCK, arena_limit);
	struct conf *conf = arena ? arena_zero(arena, struct conf) : NULL;
	unsigned before = errs->n_errors;
	struct conf_loader l = {.conf = conf, .arena = arena, .schemas = schemas, .errs = errs};
	int rc = -ENOMEM;
	if (conf) {
		conf->arena = arena;
		rc = load_load(&l, sources, n_sources);
	}
	if (rc == -ENOMEM)
		(void)problem_at(errs, NULL, 0, 0, "out of memory for the configuration");
	if (rc == 0 && errs->n_errors > before)
		rc = -EINVAL;
	conf_errors_sort(errs);
	if (rc < 0)
		return rc;
	*ret = conf;
	arena = NULL;
	return 0;
}

int conf_parse(const struct conf_source *sources, unsigned n_sources,
	       const struct conf_schemas *schemas, struct conf **ret, struct conf_errors *errs)
{
	return conf_parse_within(CONF_ARENA_MAX, sources, n_sources, schemas, ret, errs);
}

int conf_parse_files(const struct conf_files *files, int code, const struct conf_schemas *schemas,
		     struct conf **ret, struct conf_errors *errs)
{
	struct conf *conf = NULL;
	int rc = files->n_sources || !code
			 ? conf_parse(files->sources, files->n_sources, schemas, &conf, errs)
			 : code;
	if (code || rc) {
		conf_free(conf);
		return code ? code : rc;
	}
	*ret = conf;
	return 0;
}

int conf_load(const char *path, const struct conf_schemas *schemas, struct conf **ret,
	      struct conf_errors *errs)
{
	struct conf_files files;
	int code = conf_read_files(path, &files, errs);
	int rc = conf_parse_files(&files, code, schemas, ret, errs);
	conf_files_fini(&files);
	return rc;
}

struct conf *conf_free(struct conf *conf)
{
	if (conf)
		(void)arena_free(conf->arena);
	return NULL;
}

DEFINE_GETTER_OF(conf_core, const struct conf_core *, const struct conf *conf, &conf->core)
DEFINE_GETTER_OF(conf_root, rp_cfg, const struct conf *conf, conf->root)

rp_cfg conf_section(const struct conf *conf, const char *module)
{
	return node_set(conf->root, module);
}
