/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.so: extended resources and labels of the healthy graphics processors of the node's
 * inventory. */
#include <stdio.h>
#include <string.h>

#include <nri-rp/lib/calc.h>
#include <nri-rp/lib/section.h>

#define GPU "koordinator.sh/gpu"
#define CORE "koordinator.sh/gpu-core"
#define MEMORY "koordinator.sh/gpu-memory"
#define MEMORY_RATIO "koordinator.sh/gpu-memory-ratio"
#define SHARED "koordinator.sh/gpu.shared"
#define SHARES 100 /* shares of a device */
#define THOUSANDTHS 1000

struct rp_plan {
	bool shared;
};

static const char *const names[] = {GPU, CORE, MEMORY, MEMORY_RATIO, SHARED, NULL};
static const char *const no_names[] = {NULL};
static const char *const summed[] = {CORE, MEMORY, MEMORY_RATIO};
#define N_SUMMED (sizeof summed / sizeof *summed)

struct sums {
	int64_t of[N_SUMMED], gpu; /* units; RP_NOT_SET: no device has the resource */
	uint32_t n, n_healthy;
	struct rp_nr_device first; /* first healthy device */
};

static void gpu_add(int64_t *to, int64_t amount)
{
	*to = calc_known(*to) + amount;
}

static void add_device(const struct modhost *h, uint32_t index, const struct rp_nr_device *d,
		       struct sums *s)
{
	bool counts = !*d->vendor || strcasecmp(d->vendor, "nvidia") == 0;
	for (uint32_t k = 0; k < N_SUMMED; k++) {
		int64_t amount;
		if (h->noderes->device_amount(h->ctx, index, summed[k], &amount))
			continue;
		amount = d->healthy ? amount / THOUSANDTHS : 0;
		gpu_add(&s->of[k], amount);
		if (k == 0 && counts)
			gpu_add(&s->gpu, amount);
	}
	if (d->healthy && !s->n_healthy++)
		s->first = *d;
	s->n++;
}

static void gpu_give(const struct rp_nr_sink *out, const char *name, int64_t units,
		     const struct sums *s)
{
	char text[CALC_WHY_MAX];
	(void)snprintf(text, sizeof text, "%lld = sum over %u healthy of %u devices",
		       (long long)units, s->n_healthy, s->n);
	if (units != RP_NOT_SET)
		calc_give(out, name, units, NULL, 0, text);
}

static void give_labels(const struct rp_nr_sink *out, const struct rp_nr_device *d)
{
	const struct {
		const char *key, *value;
	} labels[] = {{"node.koordinator.sh/gpu-vendor", d->vendor},
		      {"node.koordinator.sh/gpu-model", d->model},
		      {"node.koordinator.sh/gpu-driver-version", d->driver}};
	for (uint32_t i = 0; i < sizeof labels / sizeof *labels; i++)
		if (labels[i].value && *labels[i].value)
			out->label(out->ctx, labels[i].key, labels[i].value);
}

static int32_t gpu_calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	struct rp_nr_device d = {.size = sizeof d};
	struct sums s = {.of = {RP_NOT_SET, RP_NOT_SET, RP_NOT_SET}, .gpu = RP_NOT_SET};
	for (uint32_t i = 0; !h->noderes->device(h->ctx, i, &d); i++) {
		if (strcmp(d.type, "gpu") == 0)
			add_device(h, i, &d, &s);
		d = (struct rp_nr_device){.size = sizeof d};
	}
	calc_reset(out, names, "the inventory has no such resource");
	if (!s.n)
		return 0;
	gpu_give(out, GPU, s.gpu, &s);
	for (uint32_t k = 0; k < N_SUMMED; k++)
		gpu_give(out, summed[k], s.of[k], &s);
	if (inst->plan && inst->plan->shared)
		gpu_give(out, SHARED, (int64_t)s.n_healthy * SHARES, &s);
	if (s.n_healthy)
		give_labels(out, &s.first);
	return 0;
}

static int32_t plan_read(const struct modhost *h, rp_cfg section, struct rp_plan *p)
{
	p->shared = section_bool(h, section, "shared", false);
	return 0;
}

static const struct rp_key keys[] = {
	SECTION_BOOL("shared", "false", "Also publish gpu.shared: 100 for each healthy device."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const struct rp_calculator calculator = {
	CALC_LIFE,
	.resources = names,
	.annotations = no_names,
	.calculate = gpu_calculate,
};

static const struct calc_ops ops = {
	.plan_size = sizeof(struct rp_plan), .read = plan_read, .schema = &schema};

CALC_MODULE("gpu", "1.0", ops, calculator,
	    .summary = "sums over the graphics processors of the inventory",
	    .licence = "Apache-2.0");
