/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.cache/1: the setters that work only while a container is created
 * (core/nri-rpd/cache/extras.h). */
#include <string.h>

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/str.h"

/* Returns the extras of the container that the transaction creates. NULL: `handle` is not that
 * container; *ret has the error. */
static struct extras *extras_of(const struct instance *i, rp_txn id, rp_ctr handle, int32_t *ret)
{
	struct txn *t = txn_of(i->env->cache, id);
	const struct ctr *ctr = cache_ctr_of(i->env->cache, handle);
	*ret = !t ? -RP_EINVAL : !ctr ? -RP_ESTALE : txn_created(t) != ctr ? -RP_ENOTSUP : 0;
	return *ret ? NULL : txn_extras(t);
}

int32_t creation_put(struct instance *i, rp_txn id, rp_ctr handle, struct extra e)
{
	int32_t r;
	struct extras *x = extras_of(i, id, handle, &r);
	e.by = instance_name(i);
	return x ? extras_put(x, &e, &i->failed) : r;
}

int32_t creation_set_pair(void *ctx, rp_txn id, rp_ctr handle, uint32_t field, const char *key,
			  const char *value)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	if (field < RP_F_ENV || field > RP_F_HUGEPAGES)
		return -RP_ENOTSUP;
	return creation_put(i, id, handle,
			    (struct extra){.field = field, .key = key, .text = value});
}

int32_t creation_set_args(void *ctx, rp_txn id, rp_ctr handle, const char *const *args, uint32_t n)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	size_t bytes = 0;
	int32_t r;
	struct extras *x = extras_of(i, id, handle, &r);
	if (!x)
		return r;
	if (!n || !*args[0])
		return -RP_EINVAL;
	if (n > RP_ARGS_MAX)
		return -RP_E2BIG;
	for (uint32_t k = 0; k < n; k++) {
		size_t len = strnlen(args[k], RP_ARGS_BYTES_MAX);
		bytes += len + 1;
		if (bytes > RP_ARGS_BYTES_MAX)
			return -RP_E2BIG;
		if (!utf8_valid(args[k], len))
			return -RP_EINVAL;
	}
	return extras_put_args(x, args, n, instance_name(i), &i->failed);
}

/* Checks the size prefix of a struct that the ABI has had in full since 1.3: a shorter one is an
 * error of the module. */
static int32_t creation_understood(const void *from, uint32_t size, uint32_t known)
{
	if (size < known)
		return -RP_EINVAL;
	return sized_is_understood(from, size, known) ? 0 : -RP_E2BIG;
}

int32_t creation_add_mount(void *ctx, rp_txn id, rp_ctr handle, const struct rp_mount *m)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	int32_t r = creation_understood(m, m->size, sizeof *m);
	return r ? r
		 : creation_put(
			   i, id, handle,
			   (struct extra){.field = EXTRA_MOUNT, .key = m->destination, .mount = m});
}

int32_t creation_add_device(void *ctx, rp_txn id, rp_ctr handle, const struct rp_device *d)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	int32_t r = creation_understood(d, d->size, sizeof *d);
	return r ? r
		 : creation_put(i, id, handle,
				(struct extra){.field = EXTRA_DEVICE, .key = d->path, .device = d});
}

int32_t creation_add_cdi(void *ctx, rp_txn id, rp_ctr handle, const char *name)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	return creation_put(i, id, handle,
			    (struct extra){.field = EXTRA_CDI, .key = name, .text = ""});
}
