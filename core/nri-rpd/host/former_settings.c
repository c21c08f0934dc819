/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the previous contents of files as records of a log (util/reclog.h). */
#include "core/nri-rpd/host/former_settings.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/host.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

#define KIND "found"
#define FORMAT 1u

/* ---- records: path, NUL; then value and NUL, or nothing if restored ---- --------------------- */

static bool is_line(const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s; s++)
		if (*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* Returns true for files of cgroups that modules set and that must be restored after a crash. */
static bool is_cgroup_file(const char *path)
{
	static const char *const names[] = {"/cpuset.cpus", "/cpuset.cpus.exclusive",
					    "/cpuset.cpus.partition", "/cpu.idle", "/cpu.weight"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (str_has_suffix(path, names[i]))
			return str_has_prefix(path, FOUND_CGROUPS);
	return false;
}

bool found_storable(const char *path, const char *value)
{
	size_t len = strlen(path);
	return (str_has_prefix(path, "/sys/devices/system/") ||
		str_has_prefix(path, "/sys/devices/virtual/workqueue/") ||
		str_has_prefix(path, "/proc/irq/") || is_cgroup_file(path)) &&
	       len < RP_SETTING_PATH_MAX && path[len - 1] != '/' && !strstr(path, "//") &&
	       !strstr(path, "/.") && is_line(path) && strlen(value) < RP_SETTING_MAX &&
	       is_line(value);
}

struct reading {
	found_each each;
	void *arg;
	struct err *err;
};

static int read_record(void *arg, const void *record, size_t len)
{
	const struct reading *r = arg;
	const char *path = record, *nul = memchr(path, 0, len);
	const char *value = nul ? nul + 1 : NULL, *end = path + len;
	bool put_back = value == end;
	if (!nul || (!put_back && memchr(value, 0, (size_t)(end - value)) != end - 1) ||
	    !found_storable(path, put_back ? "" : value))
		return err_set(r->err, -EBADMSG, "a record has an unknown format");
	return r->each(r->arg, path, put_back ? NULL : value);
}

static struct reclog_head head_of(const char *origin)
{
	return (struct reclog_head){KIND, FORMAT, origin, NRI_RP_VERSION};
}

int found_parse(const void *data, size_t size, const char *origin, found_each each, void *arg,
		struct err *err)
{
	const struct reclog_head head = head_of(origin);
	struct reading r = {each, arg, err};
	return reclog_parse(data, size, &head, read_record, &r, err);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void read_file(const char *path, const char *origin, found_each each, void *arg,
		      struct err *why)
{
	struct err err = ERR_INIT;
	_free_ char *data = NULL;
	size_t size;
	int r = fs_read_own(path, FOUND_FILE_MAX, &data, &size, why);
	if (r)
		return;
	r = found_parse(data, size, origin, each, arg, &err);
	if (r && r != -ESTALE)
		(void)err_set(why, r, "%s: %s", path, err_text(&err, r));
}

int found_open(const char *path, const char *origin, found_each each, void *arg, struct found **ret,
	       struct err *why)
{
	struct found *f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	f->origin = strdup(origin);
	f->head = head_of(f->origin);
	if (!f->origin || strlen(origin) >= RECLOG_ORIGIN_MAX ||
	    reclog_init(&f->log, path, &f->head, FOUND_FILE_MAX)) {
		free(f->origin);
		free(f);
		return -ENOMEM;
	}
	read_file(path, origin, each, arg, why);
	*ret = f;
	return 0;
}

struct found *found_close(struct found *f)
{
	if (!f)
		return NULL;
	reclog_fini(&f->log);
	free(f->origin);
	free(f);
	return NULL;
}

int found_put(struct found *f, const char *path, const char *value)
{
	char record[RP_SETTING_PATH_MAX + RP_SETTING_MAX];
	size_t path_len = strlen(path) + 1, value_len = value ? strlen(value) + 1 : 0;
	if (path_len + value_len > sizeof record)
		return -E2BIG;
	memcpy(record, path, path_len);
	if (value)
		memcpy(record + path_len, value, value_len);
	return reclog_put(&f->log, record, path_len + value_len);
}
