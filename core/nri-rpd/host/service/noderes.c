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

static const char *noderes_called(void *ctx, const char *key, struct site_name *buf)
{
	return site_name(instance_prefixes(instance_of(ctx)), key, buf);
}

static int64_t strategy(void *ctx, uint32_t field)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, RP_NOT_SET);
	const struct nr_input *in = input_of(ctx);
	return in && field < RP_NR_FIELDS ? in->strategy[field] : RP_NOT_SET;
}

static int32_t noderes_give(void *out, const void *full, size_t size)
{
	sized_fill(out, full, (uint32_t)size);
	return 0;
}

static int32_t node(void *ctx, struct rp_nr_node *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in ? noderes_give(out, &in->node, sizeof in->node) : -RP_ENOENT;
}

static const char *text_of(const struct kv *list, unsigned n, const char *key)
{
	for (unsigned i = 0; i < n; i++)
		if (str_eq(list[i].key, key))
			return list[i].value;
	return NULL;
}

static const char *label(void *ctx, const char *key)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, NULL);
	const struct nr_input *in = input_of(ctx);
	struct site_name name;
	return in ? text_of(in->labels, in->n_labels, noderes_called(ctx, key, &name)) : NULL;
}

static const char *annotation(void *ctx, const char *key)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, NULL);
	const struct nr_input *in = input_of(ctx);
	struct site_name name;
	return in ? text_of(in->annotations, in->n_annotations, noderes_called(ctx, key, &name))
		  : NULL;
}

static int32_t measured(void *ctx, struct rp_nr_measured *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in ? noderes_give(out, &in->measured, sizeof in->measured) : -RP_ENOENT;
}

static int32_t pod(void *ctx, uint32_t i, struct rp_nr_pod *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in && i < in->n_pods ? noderes_give(out, &in->pods[i], sizeof in->pods[i])
				    : -RP_ENOENT;
}

static int32_t app(void *ctx, uint32_t i, struct rp_nr_app *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in && i < in->n_apps ? noderes_give(out, &in->apps[i], sizeof in->apps[i])
				    : -RP_ENOENT;
}

static int32_t zone(void *ctx, uint32_t i, struct rp_nr_zone *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in && i < in->n_zones ? noderes_give(out, &in->zones[i], sizeof in->zones[i])
				     : -RP_ENOENT;
}

static int32_t cpu(void *ctx, struct rp_nr_cpu *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in && in->cpu_known ? noderes_give(out, &in->cpu, sizeof in->cpu) : -RP_ENOENT;
}

static int32_t device(void *ctx, uint32_t i, struct rp_nr_device *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in && i < in->n_devices
		       ? noderes_give(out, &in->devices[i].device, sizeof in->devices[i].device)
		       : -RP_ENOENT;
}

static int32_t device_amount(void *ctx, uint32_t i, const char *resource, int64_t *ret)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	if (!in || i >= in->n_devices)
		return -RP_ENOENT;
	struct site_name name;
	const struct nr_device *d = &in->devices[i];
	resource = noderes_called(ctx, resource, &name);
	for (unsigned k = 0; k < d->n_amounts; k++)
		if (str_eq(d->amounts[k].resource, resource)) {
			*ret = d->amounts[k].thousandths;
			return 0;
		}
	return -RP_ENOENT;
}

static int32_t aggregated(void *ctx, uint32_t i, struct rp_nr_aggregated *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODERES_1, -RP_EPERM);
	const struct nr_input *in = input_of(ctx);
	return in && i < in->n_aggregated
		       ? noderes_give(out, &in->aggregated[i], sizeof in->aggregated[i])
		       : -RP_ENOENT;
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
