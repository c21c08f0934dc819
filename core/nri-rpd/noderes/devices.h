/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the node from an inventory: a JSON list of maps with type, minor, uuid, health, numa,
 * resources, vendor, model, driver. */
#pragma once

#include "core/lib/conf/fragment.h"
#include "core/nri-rpd/host/noderes.h"
#include "core/lib/util/err.h"

#define NR_DEVICES_MAX 1024u
/* largest size of the inventory of devices, in bytes */
#define NR_INVENTORY_MAX (FRAGMENT_TEXT_MAX - 64u)

/* Devices; all zeros: none. Texts are owned by the fragment. */
struct nr_devices {
	struct nr_device *list;
	uint32_t n;
	struct fragment *fragment;
};

/* Parses an inventory; the empty text has no devices. -EINVAL with a message that names the
 * malformed device: *ret is unchanged. */
int nr_devices_parse(const char *text, struct nr_devices *ret, struct err *err);
void nr_devices_fini(struct nr_devices *d);
