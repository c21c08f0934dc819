/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/grants.h"

#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

bool grant_name(const char *name)
{
	size_t len = strnlen(name, GRANT_NAME_MAX);
	if (!len || len >= GRANT_NAME_MAX)
		return false;
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return true;
}

static bool good_text(const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	return len < max && utf8_valid(text, len);
}

static bool good_path(const char *path)
{
	return *path == '/' && good_text(path, GRANT_PATH_MAX) && !strstr(path, "/../") &&
	       !str_has_suffix(path, "/..");
}

static int check_set(const char *what, const char *text, uint32_t max, struct err *err)
{
	struct rp_idset set;
	if (!*text)
		return 0;
	if (strnlen(text, GRANT_PATH_MAX) == GRANT_PATH_MAX || rp_idset_parse(&set, text, max) ||
	    rp_ids_empty(rp_ids_of(&set)))
		return err_set(err, -EINVAL, "\"%.64s\" is not a list of %s", text, what);
	return 0;
}

static int check_pairs(const char *what, Grants__Pair *const *pairs, size_t n, struct err *err)
{
	if (n > GRANT_ITEMS_MAX)
		return err_set(err, -EINVAL, "%zu %ss, at most %u are accepted", n, what,
			       GRANT_ITEMS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!grant_name(pairs[i]->key) || strchr(pairs[i]->key, '='))
			return err_set(err, -EINVAL, "\"%.64s\" is not a name of an %s",
				       pairs[i]->key, what);
		if (!good_text(pairs[i]->value, GRANT_VALUE_MAX))
			return err_set(err, -EINVAL,
				       "%s %.64s has a value that is not a text or too long", what,
				       pairs[i]->key);
	}
	return 0;
}

static int check_mounts(const Grants__Grant *g, struct err *err)
{
	if (g->n_mounts > GRANT_ITEMS_MAX)
		return err_set(err, -EINVAL, "%zu mounts, at most %u are accepted", g->n_mounts,
			       GRANT_ITEMS_MAX);
	for (size_t i = 0; i < g->n_mounts; i++)
		if (!good_path(g->mounts[i]->container_path) || !good_path(g->mounts[i]->host_path))
			return err_set(
				err, -EINVAL,
				"a mount of \"%.64s\" at \"%.64s\": both must be absolute paths",
				g->mounts[i]->host_path, g->mounts[i]->container_path);
	return 0;
}

/* Returns true for permissions that include reading and writing. Devices are always passed on
 * readable and writable, so a grant of fewer permissions is refused. */
static bool good_permissions(const char *p)
{
	return strnlen(p, 4) < 4 && !p[strspn(p, "rwm")] && strchr(p, 'r') && strchr(p, 'w');
}

static int check_devices(const Grants__Grant *g, struct err *err)
{
	if (g->n_devices > GRANT_ITEMS_MAX)
		return err_set(err, -EINVAL, "%zu devices, at most %u are accepted", g->n_devices,
			       GRANT_ITEMS_MAX);
	for (size_t i = 0; i < g->n_devices; i++) {
		const Grants__Device *d = g->devices[i];
		if (!good_path(d->container_path) || !good_path(d->host_path) ||
		    !str_has_prefix(d->host_path, "/dev/"))
			return err_set(err, -EINVAL,
				       "a device \"%.64s\" at \"%.64s\": expected a path below "
				       "/dev, and an absolute one",
				       d->host_path, d->container_path);
		if (!good_permissions(d->permissions))
			return err_set(err, -EINVAL,
				       "device %.64s with the permissions \"%.8s\": only rw and "
				       "rwm are accepted",
				       d->host_path, d->permissions);
	}
	return 0;
}

static int check_cdi(const Grants__Grant *g, struct err *err)
{
	if (g->n_cdi > GRANT_ITEMS_MAX)
		return err_set(err, -EINVAL, "%zu CDI names, at most %u are accepted", g->n_cdi,
			       GRANT_ITEMS_MAX);
	for (size_t i = 0; i < g->n_cdi; i++) {
		const char *slash = strchr(g->cdi[i], '/'), *equal = strchr(g->cdi[i], '=');
		if (!grant_name(g->cdi[i]) || !slash || !equal || slash > equal || !equal[1])
			return err_set(err, -EINVAL,
				       "\"%.64s\" is not a CDI name: expected one like "
				       "vendor.example/gpu=0",
				       g->cdi[i]);
	}
	return 0;
}

int grant_check(const Grants__Grant *g, struct err *err)
{
	if ((*g->container && !grant_name(g->container)) || !grant_name(g->resource) ||
	    (*g->part && !grant_name(g->part)))
		return err_set(err, -EINVAL, "a container or resource without a valid name");
	if (g->memory_limit < 0)
		return err_set(err, -EINVAL, "a memory limit of %lld bytes",
			       (long long)g->memory_limit);
	if (!good_text(g->hints, GRANT_HINTS_MAX))
		return err_set(err, -EINVAL, "a text about hints that is not a valid text");
	int r = check_set("CPUs", g->cpus, RP_CPUS_MAX, err);
	if (!r)
		r = check_set("memory nodes", g->mems, RP_NODES_MAX, err);
	if (!r)
		r = check_pairs("environment variable", g->env, g->n_env, err);
	if (!r)
		r = check_pairs("annotation", g->annotations, g->n_annotations, err);
	if (!r)
		r = check_mounts(g, err);
	if (!r)
		r = check_devices(g, err);
	return r ? r : check_cdi(g, err);
}

int grants_unpack(struct arena *a, const void *data, size_t len, const Grants__Grants **ret,
		  struct err *err)
{
	if (len > GRANTS_BYTES_MAX)
		return err_set(err, -E2BIG, "%zu bytes of grants, at most %u are accepted", len,
			       GRANTS_BYTES_MAX);
	const Grants__Grants *m = PB_UNPACK(a, grants__grants, len, data);
	if (!m)
		return err_set(err, -EBADMSG, "grants that cannot be decoded");
	if (m->n_grants > GRANTS_MAX)
		return err_set(err, -E2BIG, "%zu grants, at most %u are accepted", m->n_grants,
			       GRANTS_MAX);
	for (size_t i = 0; i < m->n_grants; i++) {
		int r = grant_check(m->grants[i], err);
		if (r)
			return r;
	}
	*ret = m;
	return 0;
}
