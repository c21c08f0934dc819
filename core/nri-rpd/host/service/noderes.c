/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.noderes/1: the inputs of the running pass. */
#include "core/nri-rpd/host/noderes.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/str.h"

static const struct nr_input *input_of(void *ctx)
{
	return instance_of(ctx)->env->noderes;
}

static int64_t strategy(void *ctx, uint32_t field)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, RP_NOT_SET);
	const struct nr_input *in = input_of(ctx);
	return in && field < RP_NR_FIELDS ? in->strategy[field] : RP_NOT_SET;
}

/* Defines a function that copies a part of the inputs; -RP_ENOENT: the part is missing. */
#define NODERES_GIVE(name, params, known, part)                                                    \
	static int32_t name params                                                                 \
	{                                                                                          \
		MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);                                      \
		const struct nr_input *in = input_of(ctx);                                         \
		if (!in || !(known))                                                               \
			return -RP_ENOENT;                                                         \
		sized_fill(out, &(part), sizeof(part));                                            \
		return 0;                                                                          \
	}
NODERES_GIVE(node, (void *ctx, struct rp_nr_node *out), true, in->node)
NODERES_GIVE(measured, (void *ctx, struct rp_nr_measured *out), true, in->measured)
NODERES_GIVE(pod, (void *ctx, uint32_t i, struct rp_nr_pod *out), i < in->n_pods, in->pods[i])
NODERES_GIVE(app, (void *ctx, uint32_t i, struct rp_nr_app *out), i < in->n_apps, in->apps[i])
NODERES_GIVE(zone, (void *ctx, uint32_t i, struct rp_nr_zone *out), i < in->n_zones, in->zones[i])
NODERES_GIVE(cpu, (void *ctx, struct rp_nr_cpu *out), in->cpu_known, in->cpu)
NODERES_GIVE(device, (void *ctx, uint32_t i, struct rp_nr_device *out), i < in->n_devices,
	     in->devices[i].device)
NODERES_GIVE(aggregated, (void *ctx, uint32_t i, struct rp_nr_aggregated *out),
	     i < in->n_aggregated, in->aggregated[i])

SERVICE_CALL(const char *, RP_HOST_NODERES_1, NULL, label, (void *ctx, const char *key),
	     input_of(ctx) ? kv_text(input_of(ctx)->labels, input_of(ctx)->n_labels,
				     SERVICE_NAME(ctx, key))
			   : NULL)
SERVICE_CALL(const char *, RP_HOST_NODERES_1, NULL, annotation, (void *ctx, const char *key),
	     input_of(ctx) ? kv_text(input_of(ctx)->annotations, input_of(ctx)->n_annotations,
				     SERVICE_NAME(ctx, key))
			   : NULL)

static int32_t device_amount(void *ctx, uint32_t i, const char *resource, int64_t *ret)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	if (!in || i >= in->n_devices)
		return -RP_ENOENT;
	struct site_name name;
	const struct nr_device *d = &in->devices[i];
	resource = service_name(ctx, resource, &name);
	for (unsigned k = 0; k < d->n_amounts; k++)
		if (str_eq(d->amounts[k].resource, resource)) {
			*ret = d->amounts[k].thousandths;
			return 0;
		}
	return -RP_ENOENT;
}

const struct rp_host_noderes host_noderes_service = {
	.size = sizeof host_noderes_service,
	.strategy = strategy,
	.node = node,
	.label = label,
	.annotation = annotation,
	.measured = measured,
	.pod = pod,
	.app = app,
	.zone = zone,
	.cpu = cpu,
	.device = device,
	.device_amount = device_amount,
	.aggregated = aggregated,
};
