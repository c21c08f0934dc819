/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the runtime's cgroups_path to a directory, and reads the cgroup of a process from /proc.
 */
#include "core/nri-rpd/host/cgroup.h"

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

static int dir_of_process(const struct fs_root *root, uint32_t pid, const char *controller,
			  char *buf, size_t size)
{
	char path[64];
	_free_ char *text = NULL;
	size_t len;
	(void)snprintf(path, sizeof path, "proc/%u/cgroup", pid);
	int r = fs_read_all(root, path, CGROUP_FILE_MAX, &text, &len);
	if (r)
		return r;
	bool unified = fs_exists(root, CGROUP_MOUNT "/cgroup.controllers");
	for (char *line, *rest = text; (line = strsep(&rest, "\n"));) {
		const char *dir = path_of_line(line, controller, unified);
		if (!dir)
			continue;
		if (*dir != '/' || !dir[1] || strstr(dir, "/../") || str_has_suffix(dir, "/.."))
			return -ENOENT;
		int n = unified || !*controller
				? snprintf(buf, size, CGROUP_MOUNT "%s", dir)
				: snprintf(buf, size, CGROUP_MOUNT "/%s%s", controller, dir);
		if (n < 0 || (size_t)n >= size)
			return -E2BIG;
		return fs_exists(root, buf) ? 0 : -ENOENT;
	}
	return -ENOENT;
}

int cgroup_find_dir(const struct fs_root *root, const char *cgroups_path, uint32_t pid,
		    const char *controller, char *buf, size_t size)
{
	int r = cgroup_dir_of(root, cgroups_path, controller, buf, size);
	if (r == 0 || r == -E2BIG || !pid)
		return r;
	return dir_of_process(root, pid, controller, buf, size) == 0 ? 0 : r;
}

int cgroup_dir_of(const struct fs_root *root, const char *cgroups_path, const char *controller,
		  char *buf, size_t size)
{
	char rel[CACHE_PATH_MAX];
	int r = cgroup_relative(cgroups_path, rel, sizeof rel);
	if (r)
		return r;
	bool unified = fs_exists(root, CGROUP_MOUNT "/cgroup.controllers");
	int n = unified || !*controller
			? snprintf(buf, size, CGROUP_MOUNT "/%s", rel)
			: snprintf(buf, size, CGROUP_MOUNT "/%s/%s", controller, rel);
	if (n < 0 || (size_t)n >= size)
		return -E2BIG;
	return fs_exists(root, buf) ? 0 : -ENOENT;
}
