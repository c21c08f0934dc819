/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.topology/1 and nri-rp.host.config/1: thin layers over the snapshot and the
 * configuration tree. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/lib/conf/fragment.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/str.h"

static struct topo *topo_of(void *ctx)
{
	return instance_of(ctx)->env->topo;
}

SERVICE_CALL(uint64_t, RP_HOST_TOPOLOGY_1, 0, t_generation, (void *ctx),
	     topo_generation(topo_of(ctx)))
SERVICE_CALL(int32_t, RP_HOST_TOPOLOGY_1, -RP_EPERM, t_set,
	     (void *ctx, uint32_t which, struct rp_ids *ret), topo_set(topo_of(ctx), which, ret))
SERVICE_CALL(int32_t, RP_HOST_TOPOLOGY_1, -RP_EPERM, t_cpu,
	     (void *ctx, uint32_t cpu, struct rp_cpu_info *out), topo_cpu(topo_of(ctx), cpu, out))
SERVICE_CALL(uint32_t, RP_HOST_TOPOLOGY_1, 0, t_n_units, (void *ctx, uint32_t level),
	     topo_n_units(topo_of(ctx), level))
SERVICE_CALL(int32_t, RP_HOST_TOPOLOGY_1, -RP_EPERM, t_unit,
	     (void *ctx, uint32_t level, uint32_t index, struct rp_unit_info *out),
	     topo_unit(topo_of(ctx), level, index, out))
SERVICE_CALL(int32_t, RP_HOST_TOPOLOGY_1, -RP_EPERM, t_node,
	     (void *ctx, uint32_t node, struct rp_node_info *out),
	     topo_node(topo_of(ctx), node, out))
SERVICE_CALL(uint32_t, RP_HOST_TOPOLOGY_1, 0, t_distance, (void *ctx, uint32_t from, uint32_t to),
	     topo_distance(topo_of(ctx), from, to))
SERVICE_CALL(uint32_t, RP_HOST_TOPOLOGY_1, 0, t_n_caches, (void *ctx), topo_n_caches(topo_of(ctx)))
SERVICE_CALL(int32_t, RP_HOST_TOPOLOGY_1, -RP_EPERM, t_cache,
	     (void *ctx, uint32_t index, struct rp_cache_info *out),
	     topo_cache(topo_of(ctx), index, out))
SERVICE_CALL(int32_t, RP_HOST_TOPOLOGY_1, -RP_EPERM, t_device,
	     (void *ctx, const char *path, struct rp_idset *ret_cpus, struct rp_idset *ret_nodes),
	     topo_device_near(topo_of(ctx), path, ret_cpus, ret_nodes))
SERVICE_CALL(uint64_t, RP_HOST_TOPOLOGY_1, 0, t_memory, (void *ctx), topo_memory(topo_of(ctx)))
#define DEVICE_NUMBER_MAX 32u

/* Reads the file's status from the kernel's cache, without a query to a network file system: a
 * hanging server must not hang the daemon. */
static int stat_quick(const struct fs_root *root, const char *path, struct statx *ret)
{
	char real[PATH_MAX];
	const int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
	if (root->real)
		return statx(AT_FDCWD, path, flags, STATX_TYPE, ret) ? -errno : 0;
	int r = fs_realpath(root, path, real, sizeof real);
	if (r)
		return r;
	return statx(root->fd, real[0] ? real : ".", flags, STATX_TYPE, ret) ? -errno : 0;
}

/* Writes the device number of a path in the form "block/8:0". */
static int number_of_path(const struct fs_root *root, const char *path, char *ret, size_t size)
{
	struct statx st;
	int r = stat_quick(root, path, &st);
	if (r)
		return r;
	bool chr = S_ISCHR(st.stx_mode), node = chr || S_ISBLK(st.stx_mode);
	unsigned major = node ? st.stx_rdev_major : st.stx_dev_major;
	unsigned minor = node ? st.stx_rdev_minor : st.stx_dev_minor;
	if (!major)
		return -ENOENT;
	(void)snprintf(ret, size, "%s/%u:%u", chr ? "char" : "block", major, minor);
	return 0;
}

static int number_of_text(const char *text, char *ret, size_t size)
{
	unsigned major, minor;
	char rest;
	if ((text[0] != 'b' && text[0] != 'c') || text[1] < '0' || text[1] > '9' ||
	    sscanf(text + 1, "%7u:%7u%c", &major, &minor, &rest) != 2)
		return -EINVAL;
	(void)snprintf(ret, size, "%s/%u:%u", text[0] == 'c' ? "char" : "block", major, minor);
	return 0;
}

/* Stores the directory of a device. The kernel's link to it needs no resolving step by step. */
static int resolve_device(const struct fs_root *root, const char *link, char *ret, size_t size)
{
	char to[PATH_MAX];
	ssize_t n = root->real ? readlinkat(root->fd, link, to, sizeof to - 1) : -1;
	to[n > 0 ? n : 0] = '\0';
	if (!str_has_prefix(to, "../../devices/"))
		return fs_realpath(root, link, ret, size);
	return snprintf(ret, size, "sys/%s", to + strlen("../../")) < (int)size ? 0 : -ENAMETOOLONG;
}

static int32_t t_device_path(void *ctx, const char *what, char *buf, uint32_t cap)
{
	MAIN_ONLY(ctx, RP_HOST_TOPOLOGY_1, -RP_EPERM);
	const struct fs_root *root = instance_of(ctx)->env->root;
	char number[DEVICE_NUMBER_MAX], link[DEVICE_NUMBER_MAX + sizeof "sys/dev/"], real[PATH_MAX];
	/* where no number has a device, the path of each mount need not be resolved */
	if (what[0] == '/' && !topo_has_devices(topo_of(ctx)))
		return -RP_ENOENT;
	int r = what[0] == '/' ? number_of_path(root, what, number, sizeof number)
			       : number_of_text(what, number, sizeof number);
	if (r)
		return r == -EINVAL ? -RP_EINVAL : -RP_ENOENT;
	(void)snprintf(link, sizeof link, "sys/dev/%s", number);
	if (resolve_device(root, link, real, sizeof real) || !str_has_prefix(real, "sys/devices/"))
		return -RP_ENOENT;
	int n = snprintf(buf, cap, "/%s", real);
	return n < 0 || (uint32_t)n >= cap ? -RP_E2BIG : n;
}

SERVICE_CALL(int32_t, RP_HOST_TOPOLOGY_1, -RP_EPERM, t_simulated, (void *ctx),
	     !fs_has_sysfs(instance_of(ctx)->env->root))
const struct rp_host_topology host_topology_service = {
	.size = sizeof host_topology_service,
	.generation = t_generation,
	.set = t_set,
	.cpu = t_cpu,
	.n_units = t_n_units,
	.unit = t_unit,
	.node = t_node,
	.distance = t_distance,
	.n_caches = t_n_caches,
	.cache = t_cache,
	.device = t_device,
	.memory = t_memory,
	.device_path = t_device_path,
	.simulated = t_simulated,
};

SERVICE_CALL(uint32_t, RP_HOST_CONFIG_1, 0, c_kind, (void *ctx, rp_cfg node), conf_kind(node))
SERVICE_CALL(rp_cfg, RP_HOST_CONFIG_1, NULL, c_get, (void *ctx, rp_cfg node, const char *path),
	     conf_get(node, path))
SERVICE_CALL(uint32_t, RP_HOST_CONFIG_1, 0, c_count, (void *ctx, rp_cfg node), conf_count(node))
SERVICE_CALL(rp_cfg, RP_HOST_CONFIG_1, NULL, c_item, (void *ctx, rp_cfg node, uint32_t i),
	     conf_item(node, i))
SERVICE_CALL(const char *, RP_HOST_CONFIG_1, NULL, c_key, (void *ctx, rp_cfg node, uint32_t i),
	     conf_key(node, i))
SERVICE_CALL(const char *, RP_HOST_CONFIG_1, fallback, c_text,
	     (void *ctx, rp_cfg node, const char *fallback), conf_text(node, fallback))
SERVICE_CALL(int64_t, RP_HOST_CONFIG_1, fallback, c_value,
	     (void *ctx, rp_cfg node, uint32_t type, int64_t fallback),
	     conf_value(node, type, fallback))
SERVICE_CALL(double, RP_HOST_CONFIG_1, fallback, c_number,
	     (void *ctx, rp_cfg node, double fallback), conf_number(node, fallback))
static int32_t c_fail_at(void *ctx, rp_cfg node, int32_t code, const char *text)
{
	MAIN_ONLY(ctx, RP_HOST_CONFIG_1, code);
	struct instance *i = instance_of(ctx);
	char place[CONF_PLACE_MAX];
	(void)err_set(&i->failed, code, "%s: %s",
		      node ? conf_place(node, place, sizeof place) : i->module->name, text);
	str_one_line(i->failed.text);
	return code;
}

static const char *c_where(void *ctx, rp_cfg node)
{
	MAIN_ONLY(ctx, RP_HOST_CONFIG_1, "");
	struct instance *i = instance_of(ctx);
	return conf_where(node, i->where, sizeof i->where);
}

void instance_drop_fragments(struct instance *i)
{
	while (i->fragments) {
		struct fragment *f = i->fragments;
		i->fragments = f->next;
		fragment_free(f);
	}
}

static rp_cfg c_parse(void *ctx, const char *what, const char *text, int32_t *ret_code)
{
	MAIN_ONLY(ctx, RP_HOST_CONFIG_1, NULL);
	struct instance *i = instance_of(ctx);
	struct fragment *f;
	rp_cfg root = NULL;
	struct err err = ERR_INIT;
	int r = fragment_parse(text, &f, &root, &err);
	if (ret_code)
		*ret_code = r;
	if (r) {
		(void)err_set(&i->failed, r, "%s: %s", what, err.text);
		return NULL;
	}
	fragment_rename(root, instance_prefixes(i));
	f->next = i->fragments;
	i->fragments = f;
	return root;
}

const struct rp_host_config host_config_service = {
	.size = sizeof host_config_service,
	.kind = c_kind,
	.get = c_get,
	.count = c_count,
	.item = c_item,
	.key = c_key,
	.text = c_text,
	.value = c_value,
	.number = c_number,
	.fail_at = c_fail_at,
	.where = c_where,
	.parse = c_parse,
};
