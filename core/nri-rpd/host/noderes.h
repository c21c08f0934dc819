/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a pass of calculators: the data behind nri-rp.host.noderes/1. The component that runs
 * the pass fills it; no data is copied. */
#pragma once

#include <stdbool.h>

#include <nri-rp/calculator.h>

#include "core/nri-rpd/cache/cache.h"

#define NR_DEVICE_AMOUNTS_MAX 8u

struct nr_device {
	struct rp_nr_device device;
	struct {
		const char *resource;
		int64_t thousandths;
	} amounts[NR_DEVICE_AMOUNTS_MAX];
	unsigned n_amounts;
};

struct nr_input {
	int64_t strategy[RP_NR_FIELDS];
	struct rp_nr_node node;
	const struct kv *labels, *annotations;
	unsigned n_labels, n_annotations;
	struct rp_nr_measured measured;
	const struct rp_nr_pod *pods;
	const struct rp_nr_app *apps;
	const struct rp_nr_zone *zones;
	const struct nr_device *devices;
	const struct rp_nr_aggregated *aggregated;
	uint32_t n_pods, n_apps, n_zones, n_devices, n_aggregated;
	struct rp_nr_cpu cpu;
	bool cpu_known;
};
