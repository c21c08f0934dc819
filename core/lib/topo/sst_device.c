/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the Speed Select device, and changes the hardware through it for modules. */
#include <errno.h>
#include <fcntl.h>

#include "core/lib/topo/sst_impl.h"
#include "core/lib/util/cleanup.h"

/* largest package number, because the interface transfers it in one byte */
#define TPMI_PACKAGE_MAX 255u
#define TPMI_PUNIT_MAX 31u

int sst_command(const struct sst_device *d, unsigned long command, void *arg)
{
	int r;
	do {
		r = ioctl(d->fd, command, arg);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int sst_open(const struct fs_root *root, struct sst_device *ret)
{
	*ret = (struct sst_device){.fd = fs_open(root, ISST_PATH, O_RDWR)};
	if (ret->fd < 0)
		return ret->fd;
	int r = sst_command(ret, ISST_PLATFORM, &ret->platform);
	if (r == -ENOTTY || r == -EINVAL)
		return -ENOTSUP;
	if (r)
		return r;
	if (ret->platform.api >= ISST_API_TPMI)
		ret->ops = &sst_tpmi_ops;
	else if (ret->platform.mbox)
		ret->ops = &sst_mbox_ops;
	return ret->ops ? 0 : -ENOTSUP;
}

int sst_locate(const struct sst_device *d, struct sst_place *at)
{
	struct isst_phys_id id = {.n = 1, .cpu = at->cpu};
	if (at->package > TPMI_PACKAGE_MAX || at->punit > TPMI_PUNIT_MAX)
		return -EINVAL;
	int r = sst_command(d, ISST_PHYS_ID, &id);
	if (!r)
		d->ops->locate(id.physical, at);
	return r;
}

/* Opens the device for one command. The caller closes it, also after an error. */
static int sst_device_reach(const struct fs_root *root, const struct rp_sst_at *at,
			    struct sst_device *d, struct sst_place *place)
{
	*place = (struct sst_place){
		.package = at->package_id, .punit = at->punit_id, .cpu = at->cpu};
	int r = sst_open(root, d);
	if (r == -ENOENT || r == -ENODEV || r == -ENXIO)
		return -ENOTSUP;
	return r ? r : sst_locate(d, place);
}

static int sst_device_leave(struct sst_device *d, int r)
{
	if (d->fd >= 0)
		(void)close(d->fd);
	return r;
}

int sst_punit_now(const struct fs_root *root, const struct rp_sst_at *at, struct rp_sst_punit *out)
{
	struct sst_device d;
	struct sst_place place;
	struct sst_state s;
	int r = sst_device_reach(root, at, &d, &place);
	if (!r)
		r = d.ops->state(&d, &place, &s);
	if (r)
		return sst_device_leave(&d, r);
	*out = (struct rp_sst_punit){
		.size = sizeof *out,
		.package_id = at->package_id,
		.punit_id = at->punit_id,
		.supported = s.supported,
		.enabled = s.enabled,
		.priority = s.priority,
		.cpus = rp_ids_none(),
		.bf_cpus = rp_ids_none(),
	};
	for (uint32_t i = 0; !r && (s.supported & RP_SST_CP) && i < RP_CLOS_COUNT; i++)
		r = d.ops->get_clos(&d, &place, i, &out->clos[i]);
	return sst_device_leave(&d, r);
}

int sst_clos_now(const struct fs_root *root, const struct rp_sst_at *at, uint32_t *ret)
{
	struct sst_device d;
	struct sst_place place;
	int r = sst_device_reach(root, at, &d, &place);
	if (!r)
		r = d.ops->get_assoc(&d, &place, ret);
	if (!r && *ret >= RP_CLOS_COUNT)
		r = -EIO;
	return sst_device_leave(&d, r);
}

int sst_set_cp(const struct fs_root *root, const struct rp_sst_at *at, bool on, uint32_t priority)
{
	struct sst_device d;
	struct sst_place place;
	if (priority > RP_SST_ORDERED)
		return -EINVAL;
	int r = sst_device_reach(root, at, &d, &place);
	return sst_device_leave(&d, r ? r : d.ops->set_cp(&d, &place, on, priority));
}

int sst_set_tf(const struct fs_root *root, const struct rp_sst_at *at, bool on)
{
	struct sst_device d;
	struct sst_place place;
	int r = sst_device_reach(root, at, &d, &place);
	return sst_device_leave(&d, r ? r : d.ops->set_tf(&d, &place, on));
}

int sst_set_clos(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos,
		 const struct rp_clos *value)
{
	struct sst_device d;
	struct sst_place place;
	if (clos >= RP_CLOS_COUNT || value->min_mhz > value->max_mhz ||
	    value->max_mhz > RP_SST_MHZ_MAX || value->weight > RP_SST_WEIGHT_MAX)
		return -EINVAL;
	int r = sst_device_reach(root, at, &d, &place);
	return sst_device_leave(&d, r ? r : d.ops->set_clos(&d, &place, clos, value));
}

int sst_associate(const struct fs_root *root, const struct rp_sst_at *at, uint32_t clos)
{
	struct sst_device d;
	struct sst_place place;
	if (clos >= RP_CLOS_COUNT)
		return -EINVAL;
	int r = sst_device_reach(root, at, &d, &place);
	return sst_device_leave(&d, r ? r : d.ops->set_assoc(&d, &place, clos));
}
