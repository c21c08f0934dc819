/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

#define CGROUP_MOUNT "sys/fs/cgroup"
#define EXPORT_AT "/.nri-resource-policy"
#define EXPORT_FILE "resources.sh"

/* ---- texts and paths ------------------------------------------------------------------------- */

static bool leads_out(const char *path)
{
	return strstr(path, "/../") || str_has_prefix(path, "../") || str_has_suffix(path, "/..");
}

static int full_path(const struct sim *s, const char *path, char *buf, struct err *err)
{
	path += strspn(path, "/");
	int n = snprintf(buf, PATH_MAX, "%s/%s", s->root, path);
	if (!*path || leads_out(path) || n < 0 || n >= PATH_MAX)
		return err_set(err, -EINVAL, "files: expected a path below the machine's root: %s",
			       path);
	return 0;
}

/* Writes a file in place, because a process that has the file open must see the new text. */
static int write_text(const char *path, const char *text, struct err *err)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	(void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
	int r = fs_mkdirs(dir, 0755, err);
	if (r)
		return r;
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	size_t len = strlen(text);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return err_errno(err, -errno, "cannot write %s", path);
	return 0;
}

static int put_one(const struct sim *s, const char *path, const json_t *value, struct err *err)
{
	char full[PATH_MAX], number[ARG_NUMBER_MAX];
	int r = full_path(s, path, full, err);
	if (r)
		return r;
	if (json_is_null(value))
		return unlink(full) == 0 || errno == ENOENT
			       ? 0
			       : err_errno(err, -errno, "cannot remove %s", full);
	const char *text = arg_scalar(value, number);
	return text ? write_text(full, text, err)
		    : err_set(err, -EINVAL, "files: %s: expected a text", path);
}

int files_put(struct sim *s, const json_t *map, struct err *err)
{
	const char *path;
	json_t *value;
	int r = 0;
	if (!json_is_object(map))
		return err_set(err, -EINVAL, "files: expected a map of paths to texts");
	json_object_foreach((json_t *)(uintptr_t)map, path, value)
	{
		if (!r)
			r = put_one(s, path, value, err);
	}
	return r;
}

static int link_one(const struct sim *s, const char *path, const json_t *value, struct err *err)
{
	char full[PATH_MAX], dir[PATH_MAX];
	const char *target = json_string_value(value);
	int r = full_path(s, path, full, err);
	if (!r && !target)
		r = err_set(err, -EINVAL, "links: %s: expected the link's target", path);
	if (r)
		return r;
	(void)snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(full, '/') - full), full);
	r = fs_mkdirs(dir, 0755, err);
	if (r)
		return r;
	(void)unlink(full);
	return symlink(target, full) ? err_errno(err, -errno, "cannot link %s", full) : 0;
}

int files_link(struct sim *s, const json_t *map, struct err *err)
{
	const char *path;
	json_t *value;
	int r = json_is_object(map)
			? 0
			: err_set(err, -EINVAL, "links: expected a map of paths to targets");
	json_object_foreach((json_t *)(uintptr_t)map, path, value)
	{
		if (!r)
			r = link_one(s, path, value, err);
	}
	return r;
}

int files_read(const struct sim *s, const char *path, char **ret)
{
	struct fs_root root;
	size_t len;
	int r = fs_root_open(&root, s->root, NULL);
	if (r)
		return r;
	r = fs_read_all(&root, path, FILES_TEXT_MAX, ret, &len);
	fs_root_close(&root);
	if (!r && len && (*ret)[len - 1] == '\n')
		(*ret)[len - 1] = '\0';
	return r;
}

/* ---- cgroups --------------------------------------------------------------------------------- */

/* Expands "a-b.slice" to "a.slice/a-b.slice". */
static void add_slices(struct buf *out, const char *slice, size_t len)
{
	size_t stem = len - strlen(".slice");
	for (size_t i = 1; i <= stem; i++)
		if (i == stem || slice[i] == '-')
			buf_printf(out, "%.*s.slice/", (int)i, slice);
}

/* Builds the path of a cgroup's file. With cgroup v1 the file's name begins with the controller,
 * which selects the hierarchy. */
static int cgroup_path(const struct sim_ctr *c, const char *file, char *buf, struct err *err)
{
	const char *path = c->cgroups_path, *slash = strchr(file, '/');
	const char *prefix = strchr(path, ':'), *id = prefix ? strchr(prefix + 1, ':') : NULL;
	struct buf out = BUF_INIT;
	buf_printf(&out, CGROUP_MOUNT "/%.*s", slash ? (int)(slash - file) + 1 : 0, file);
	if (id) {
		add_slices(&out, path, (size_t)(prefix - path));
		buf_printf(&out, "%.*s-%s.scope/", (int)(id - prefix - 1), prefix + 1, id + 1);
	} else {
		buf_printf(&out, "%s/", path + strspn(path, "/"));
	}
	buf_add_str(&out, slash ? slash + 1 : file);
	bool fits = !out.failed && buf_len(&out) < PATH_MAX;
	if (fits)
		(void)snprintf(buf, PATH_MAX, "%s", buf_text(&out));
	buf_fini(&out);
	return fits ? 0 : err_set(err, -EINVAL, "cgroup of %s: its path is too long", c->name);
}

/* Replaces "{pid}" in a text by the container's process. */
static json_t *with_pid(const struct sim_ctr *c, const json_t *value)
{
	const char *text = json_string_value(value), *at = text ? strstr(text, "{pid}") : NULL;
	if (!at)
		return json_incref((json_t *)(uintptr_t)value);
	return json_sprintf("%.*s%" PRIu32 "%s", (int)(at - text), text, c->pid,
			    at + strlen("{pid}"));
}

int files_put_cgroup(struct sim *s, const struct sim_ctr *c, const json_t *map, struct err *err)
{
	char path[PATH_MAX];
	const char *file;
	json_t *value;
	int r = 0;
	if (!json_is_object(map))
		return err_set(err, -EINVAL, "expected a map of the files of a cgroup");
	json_object_foreach((json_t *)(uintptr_t)map, file, value)
	{
		_json_ json_t *text = with_pid(c, value);
		if (!r)
			r = cgroup_path(c, file, path, err);
		if (!r)
			r = put_one(s, path, text, err);
	}
	return r;
}

int files_setup(struct sim *s, const json_t *head, struct err *err)
{
	const json_t *files, *links, *cgroup;
	struct args *a = ARGS(head, err);
	(void)arg_map(a, "files", &files);
	(void)arg_map(a, "links", &links);
	int r = arg_map(a, "cgroupFiles", &cgroup);
	if (!r && files)
		r = files_put(s, files, err);
	if (!r && links)
		r = files_link(s, links, err);
	if (!r && cgroup)
		s->cgroup_files = json_deep_copy(cgroup);
	return r;
}

int files_make_cgroup(struct sim *s, const struct sim_ctr *c, struct err *err)
{
	return s->cgroup_files ? files_put_cgroup(s, c, s->cgroup_files, err) : 0;
}

void files_remove_cgroup(struct sim *s, const struct sim_ctr *c)
{
	char path[PATH_MAX], full[PATH_MAX];
	const char *file;
	json_t *value;
	json_object_foreach(s->cgroup_files, file, value)
	{
		if (cgroup_path(c, file, path, NULL) || full_path(s, path, full, NULL))
			continue;
		(void)unlink(full);
		*strrchr(full, '/') = '\0';
		(void)rmdir(full);
	}
}

int files_read_cgroup(const struct sim *s, const struct sim_ctr *c, const char *file, char **ret)
{
	char path[PATH_MAX];
	int r = cgroup_path(c, file, path, NULL);
	return r ? r : files_read(s, path, ret);
}

/* ---- exported placement ---------------------------------------------------------------------- */

static const char *export_source(const struct sim_ctr *c)
{
	json_t *mount;
	size_t i;
	json_array_foreach(json_object_get(c->given, "mounts"), i, mount)
	{
		const char *at = json_string_value(json_object_get(mount, "destination"));
		if (at && str_eq(at, EXPORT_AT))
			return json_string_value(json_object_get(mount, "source"));
	}
	return NULL;
}

/* Finds a value in lines KEY="value". */
static void value_of(const char *text, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) != 0 || strncmp(line + len, "=\"", 2) != 0)
			continue;
		const char *value = line + len + 2;
		(void)snprintf(buf, size, "%.*s", (int)strcspn(value, "\"\n"), value);
	}
}

void files_exported(const struct sim_ctr *c, const char *key, char *buf, size_t size)
{
	const char *source = export_source(c);
	struct fs_root root;
	_free_ char *text = NULL;
	size_t len;
	*buf = '\0';
	if (!source || fs_root_open(&root, source, NULL))
		return;
	if (!fs_read_all(&root, EXPORT_FILE, FILES_TEXT_MAX, &text, &len))
		value_of(text, key, buf, size);
	fs_root_close(&root);
}
