/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the inventory of devices. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/noderes/devices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct nr_device *d)
{
	assert(*d->device.type && d->device.vendor && d->device.model && d->device.driver);
	assert(d->device.healthy <= 1 && d->n_amounts <= NR_DEVICE_AMOUNTS_MAX);
	for (unsigned i = 0; i < d->n_amounts; i++)
		assert(d->amounts[i].resource && d->amounts[i].thousandths >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct nr_devices devices = {0};
	struct err err = ERR_INIT;
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	int r = nr_devices_parse(text, &devices, &err);
	assert(!r || (err.text[0] && !devices.n && !devices.list));
	assert(devices.n <= NR_DEVICES_MAX);
	for (uint32_t i = 0; i < devices.n; i++)
		look_at(&devices.list[i]);
	nr_devices_fini(&devices);
	free(text);
	return 0;
}
