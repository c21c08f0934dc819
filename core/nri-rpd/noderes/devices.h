/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the node, as an inventory tells: a JSON list of maps with type, minor, uuid, health,
 * numa, resources, vendor, model, driver. */
#ifndef NODERES_DEVICES_H
#define NODERES_DEVICES_H

#include "core/lib/conf/fragment.h"
#include "core/nri-rpd/host/noderes.h"
#include "core/lib/util/err.h"

#define NR_DEVICES_MAX 1024u
#define NR_INVENTORY_MAX (FRAGMENT_TEXT_MAX - 64u) /* bytes */

/* All zeros: none. Texts are the fragment's. */
struct nr_devices {
	struct nr_device *list;
	uint32_t n;
	struct fragment *fragment;
};

/* The empty text has none. -EINVAL with a message that says which device is malformed: *ret is
 * untouched. */
int nr_devices_parse(const char *text, struct nr_devices *ret, struct err *err);
void nr_devices_fini(struct nr_devices *d);

#endif
