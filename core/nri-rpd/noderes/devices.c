/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/devices.h"

#include <stdlib.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"

#define LIST "devices"

static int take_amounts(rp_cfg map, struct nr_device *d, struct err *err)
{
	if (conf_count(map) > NR_DEVICE_AMOUNTS_MAX)
		return err_set(err, -EINVAL, "more than %u resources", NR_DEVICE_AMOUNTS_MAX);
	for (uint32_t i = 0; i < conf_count(map); i++) {
		int64_t units = conf_value(conf_item(map, i), RP_T_BYTES, -1);
		if (units < 0 || units > INT64_MAX / 1000)
			return err_set(err, -EINVAL, "%s: expected an amount", conf_key(map, i));
		d->amounts[d->n_amounts].resource = conf_key(map, i);
		d->amounts[d->n_amounts++].thousandths = 1000 * units;
	}
	return 0;
}

static int take_device(rp_cfg map, struct nr_device *d, struct err *err)
{
	rp_cfg health = conf_get(map, "health");
	*d = (struct nr_device){.device = {.size = sizeof d->device,
					   .healthy = conf_value(health, RP_T_BOOL, 1) != 0,
					   .type = conf_text(conf_get(map, "type"), ""),
					   .vendor = conf_text(conf_get(map, "vendor"), ""),
					   .model = conf_text(conf_get(map, "model"), ""),
					   .driver = conf_text(conf_get(map, "driver"), "")}};
	if (conf_kind(map) != RP_NODE_MAP || !*d->device.type)
		return err_set(err, -EINVAL, "expected a map with a type");
	if (health && conf_value(health, RP_T_BOOL, -1) < 0)
		return err_set(err, -EINVAL, "health: expected true or false");
	return take_amounts(conf_get(map, "resources"), d, err);
}

int nr_devices_parse(const char *text, struct nr_devices *ret, struct err *err)
{
	_cleanup_(buf_fini) struct buf all = BUF_INIT;
	struct nr_devices d = {0};
	rp_cfg root = NULL;
	(void)buf_printf(&all, "{\"" LIST "\": %s\n}", *text ? text : "[]");
	int r = all.failed ? err_errno(err, -ENOMEM, "devices")
			   : fragment_parse(buf_text(&all), &d.fragment, &root, err);
	if (r)
		return r;
	rp_cfg list = conf_get(root, LIST);
	if (conf_kind(list) != RP_NODE_LIST || conf_count(root) != 1)
		r = err_set(err, -EINVAL, "expected a list of devices");
	else if (conf_count(list) > NR_DEVICES_MAX)
		r = err_set(err, -EINVAL, "more than %u devices", NR_DEVICES_MAX);
	if (!r) {
		d.list = calloc(conf_count(list) + 1u, sizeof *d.list);
		r = d.list ? 0 : err_errno(err, -ENOMEM, "devices");
	}
	for (; !r && d.n < conf_count(list); d.n++) {
		r = take_device(conf_item(list, d.n), &d.list[d.n], err);
		if (r)
			(void)err_prefix(err, "device %u: ", d.n);
	}
	if (r) {
		nr_devices_fini(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void nr_devices_fini(struct nr_devices *d)
{
	free(d->list);
	fragment_free(d->fragment);
	*d = (struct nr_devices){0};
}
