/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/cdi.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

#define FILE_PREFIX CDI_VENDOR "-" CDI_CLASS "_"
#define FILE_SUFFIX ".json"
#define FILE_MODE 0644
#define DIR_MODE 0755
#define FILE_MAX (64u << 10)
#define ENV_NAME "NRI_RP_CLAIM="
#define ENV_CPUS "NRI_RP_CLAIM_CPUS="

static char *cdi_path(const char *dir, const char *uid)
{
	return strchr(uid, '/') ? NULL : str_printf("%s/" FILE_PREFIX "%s" FILE_SUFFIX, dir, uid);
}

int cdi_write(const char *dir, const char *uid, const char *ns, const char *name, const char *cpus,
	      struct err *err)
{
	_free_ char *path = cdi_path(dir, uid);
	_free_ char *claim = str_printf(ENV_NAME "%s/%s", ns, name);
	_free_ char *set = str_printf(ENV_CPUS "%s", cpus);
	if (!path || !claim || !set)
		return err_errno(err, -ENOMEM, "CDI file of claim %s/%s", ns, name);
	json_t *spec =
		json_pack("{s:s, s:s, s:[{s:s, s:{s:[s, s]}}]}", "cdiVersion", "0.5.0", "kind",
			  CDI_KIND, "devices", "name", uid, "containerEdits", "env", claim, set);
	_free_ char *text = spec ? json_dumps(spec, JSON_INDENT(2)) : NULL;
	json_decref(spec);
	if (!text)
		return err_errno(err, -ENOMEM, "CDI file of claim %s/%s", ns, name);
	int r = fs_mkdirs(dir, DIR_MODE, err);
	return r ? r : fs_replace(path, text, strlen(text), FILE_MODE, false, err);
}

int cdi_remove(const char *dir, const char *uid, struct err *err)
{
	_free_ char *path = cdi_path(dir, uid);
	if (path && unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, -errno, "CDI file %s", path);
	return 0;
}

/* Returns the value of a variable of the file's device; NULL: none. */
static const char *cdi_env(const json_t *spec, const char *prefix)
{
	const json_t *device = json_array_get(json_object_get(spec, "devices"), 0), *item;
	const json_t *env = json_object_get(json_object_get(device, "containerEdits"), "env");
	size_t i;
	json_array_foreach(env, i, item)
	{
		const char *text = json_string_value(item);
		if (text && str_has_prefix(text, prefix))
			return text + strlen(prefix);
	}
	return NULL;
}

static void cdi_read(const char *path, const char *uid,
		     void (*fn)(const char *uid, const char *ns, const char *name, void *arg),
		     void *arg)
{
	char *data = NULL;
	size_t len;
	if (fs_read_own(path, FILE_MAX, &data, &len, NULL))
		return;
	json_t *spec = json_loadb(data, len, 0, NULL);
	const char *claim = cdi_env(spec, ENV_NAME), *slash = claim ? strchr(claim, '/') : NULL;
	_free_ char *ns = slash ? strndup(claim, (size_t)(slash - claim)) : NULL;
	if (ns)
		fn(uid, ns, slash + 1, arg);
	json_decref(spec);
	free(data);
}

void cdi_each(const char *dir,
	      void (*fn)(const char *uid, const char *ns, const char *name, void *arg), void *arg)
{
	_closedir_ DIR *d = opendir(dir);
	const size_t n_prefix = sizeof FILE_PREFIX - 1, n_suffix = sizeof FILE_SUFFIX - 1;
	for (const struct dirent *e; d && (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		if (n <= n_prefix + n_suffix || !str_has_prefix(e->d_name, FILE_PREFIX) ||
		    !str_eq(e->d_name + n - n_suffix, FILE_SUFFIX))
			continue;
		_free_ char *uid = strndup(e->d_name + n_prefix, n - n_prefix - n_suffix);
		_free_ char *path = str_printf("%s/%s", dir, e->d_name);
		if (uid && path)
			cdi_read(path, uid, fn, arg);
	}
}
