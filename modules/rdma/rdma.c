/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.so: the extended resource of RDMA devices, 100 units for each healthy device of the node's
 * inventory. */
#include <stdio.h>
#include <string.h>

#include <nri-rp/lib/calc.h>

#define PARTS 100 /* units of a device */

static const char *const names[] = {"koordinator.sh/rdma", NULL};
static const char *const no_names[] = {NULL};

static int32_t rdma_calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	struct rp_nr_device d = {.size = sizeof d};
	uint32_t n = 0, n_healthy = 0;
	char text[CALC_WHY_MAX];
	for (uint32_t i = 0; !h->noderes->device(h->ctx, i, &d); i++) {
		bool counts = strcmp(d.type, "rdma") == 0;
		n += counts;
		n_healthy += counts && d.healthy;
		d = (struct rp_nr_device){.size = sizeof d};
	}
	if (!n) {
		calc_reset(out, names, "the inventory has no such device");
		return 0;
	}
	(void)snprintf(text, sizeof text, "%d for each of %u healthy of %u devices", PARTS,
		       n_healthy, n);
	calc_give(out, names[0], (int64_t)n_healthy * PARTS, NULL, 0, text);
	return 0;
}

static const struct rp_calculator calculator = {
	CALC_LIFE,
	.resources = names,
	.annotations = no_names,
	.calculate = rdma_calculate,
};

static const struct calc_ops ops = {.plan = NULL};

CALC_MODULE("rdma", "1.0", ops, calculator, .summary = "RDMA devices of the inventory",
	    .licence = "Apache-2.0");
