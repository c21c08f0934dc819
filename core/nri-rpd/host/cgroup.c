/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the runtime's cgroups_path to a directory, and reads the cgroup of a process from /proc.
 */
#include "core/nri-rpd/host/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define CGROUP_MOUNT "sys/fs/cgroup"
#define CGROUP_FILE_MAX 65536u

/* Expands a slice's name to its path: "a-b-c.slice" → "a.slice/a-b.slice/a-b-c.slice" */
static int expand_slice(const char *slice, size_t len, char *buf, size_t size)
{
	static const char suffix[] = ".slice";
	size_t used = 0, stem = len - (sizeof suffix - 1);
	if (len < sizeof suffix || strncmp(slice + stem, suffix, sizeof suffix - 1) != 0)
		return -EINVAL;
	for (size_t i = 1; i <= stem; i++) {
		if (i < stem && slice[i] != '-')
			continue;
		int n = snprintf(buf + used, size - used, "%s%.*s%s", used ? "/" : "", (int)i,
				 slice, suffix);
		if (n < 0 || (size_t)n >= size - used)
			return -E2BIG;
		used += (size_t)n;
	}
	return (int)used;
}

int cgroup_relative(const char *path, char *buf, size_t size)
{
	if (strstr(path, "/../") || str_has_suffix(path, "/.."))
		return -EINVAL;
	if (*path == '/') {
		int n = snprintf(buf, size, "%s", path + 1);
		return n < 0 || (size_t)n >= size ? -E2BIG : 0;
	}
	const char *prefix = strchr(path, ':'), *name = prefix ? strchr(prefix + 1, ':') : NULL;
	if (!name || strchr(path, '/'))
		return -EINVAL;
	int used = expand_slice(path, (size_t)(prefix - path), buf, size);
	if (used < 0)
		return used;
	int n = snprintf(buf + used, size - (size_t)used, "/%.*s-%s.scope",
			 (int)(name - prefix - 1), prefix + 1, name + 1);
	return n < 0 || (size_t)n >= size - (size_t)used ? -E2BIG : 0;
}

/* Returns the path in a line "ID:CONTROLLERS:PATH" of /proc/PID/cgroup; NULL: the line describes
 * another hierarchy. */
static char *path_of_line(char *line, const char *controller, bool unified)
{
	char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
	if (!path)
		return NULL;
	*path++ = '\0';
	list++;
	if (unified || !*controller)
		return *list ? NULL : path;
	for (char *item, *rest = list; (item = strsep(&rest, ","));)
		if (str_eq(item, controller))
			return path;
	return NULL;
}

bool cgroup_unified(const struct fs_root *root)
{
	return fs_exists(root, CGROUP_MOUNT "/cgroup.controllers");
}

/* Writes the directory below the root of a cgroup's path, which begins with a slash. */
static int put_dir(bool unified, const char *controller, const char *path, char *buf, size_t size)
{
	int n = unified || !*controller
			? snprintf(buf, size, CGROUP_MOUNT "%s", path)
			: snprintf(buf, size, CGROUP_MOUNT "/%s%s", controller, path);
	return n < 0 || (size_t)n >= size ? -E2BIG : 0;
}

/* Writes the directory of the cgroup of a process. -ENOENT: it has none of its own. */
static int dir_of_process(const struct fs_root *root, bool unified, uint32_t pid,
			  const char *controller, char *buf, size_t size)
{
	char path[64];
	_free_ char *text = NULL;
	size_t len;
	(void)snprintf(path, sizeof path, "proc/%u/cgroup", pid);
	int r = fs_read_all(root, path, CGROUP_FILE_MAX, &text, &len);
	if (r)
		return r;
	for (char *line, *rest = text; (line = strsep(&rest, "\n"));) {
		const char *dir = path_of_line(line, controller, unified);
		if (!dir)
			continue;
		if (*dir != '/' || !dir[1] || strstr(dir, "/../") || str_has_suffix(dir, "/.."))
			return -ENOENT;
		return put_dir(unified, controller, dir, buf, size);
	}
	return -ENOENT;
}

/* Writes the directory that the runtime's path names, whether it exists or not. */
static int dir_of_path(bool unified, const char *cgroups_path, const char *controller, char *buf,
		       size_t size)
{
	char path[CACHE_PATH_MAX] = "/";
	int r = cgroup_relative(cgroups_path, path + 1, sizeof path - 1);
	return r ? r : put_dir(unified, controller, path, buf, size);
}

/* Returns r, or -ENOENT if the directory that was written does not exist. */
static int cgroup_existing(const struct fs_root *root, int r, const char *dir)
{
	return r || fs_exists(root, dir) ? r : -ENOENT;
}

int cgroup_dir_of(const struct fs_root *root, const char *cgroups_path, const char *controller,
		  char *buf, size_t size)
{
	int r = dir_of_path(cgroup_unified(root), cgroups_path, controller, buf, size);
	return cgroup_existing(root, r, buf);
}

int cgroup_find_dir(const struct fs_root *root, const char *cgroups_path, uint32_t pid,
		    const char *controller, char *buf, size_t size)
{
	int r = cgroup_dir_of(root, cgroups_path, controller, buf, size);
	if (r == 0 || r == -E2BIG || !pid)
		return r;
	int of_process = dir_of_process(root, cgroup_unified(root), pid, controller, buf, size);
	return cgroup_existing(root, of_process, buf) ? r : 0;
}

int cgroup_open(const struct fs_root *root, bool unified, const char *cgroups_path, uint32_t pid,
		const char *controller)
{
	char dir[CACHE_PATH_MAX + 64];
	int r = dir_of_path(unified, cgroups_path, controller, dir, sizeof dir);
	if (!r)
		r = fs_open(root, dir, O_PATH | O_DIRECTORY);
	if (r >= 0 || r == -E2BIG || !pid ||
	    dir_of_process(root, unified, pid, controller, dir, sizeof dir))
		return r;
	int fd = fs_open(root, dir, O_PATH | O_DIRECTORY);
	return fd < 0 ? r : fd;
}
