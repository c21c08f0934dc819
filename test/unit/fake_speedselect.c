/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.speedselect/1 of the fake host: punits in memory, and a log of what was written. */
#include <string.h>

#include "test/unit/fake_impl.h"

struct fake_sst_punit {
	struct fake_punit d;
	struct rp_idset cpus, bf;
	struct rp_clos clos[RP_CLOS_COUNT];
};

struct fake_sst {
	struct fake_sst_punit *punits;
	uint32_t n;
	uint32_t clos[RP_CPUS_MAX], before[RP_CPUS_MAX]; /* now; as the getters show it */
	struct fake_out log;
	const char *fails;
	int32_t code;
	uint32_t manages;
};

static struct fake_sst *sst(void *ctx)
{
	struct fake_host *f = ctx;
	if (!f->sst)
		f->sst = fake_alloc(sizeof *f->sst);
	return f->sst;
}

void fake_sst_fini(struct fake_host *f)
{
	if (!f->sst)
		return;
	free(f->sst->punits);
	fake_out_fini(&f->sst->log);
	free(f->sst);
	f->sst = NULL;
}

void fake_speedselect(struct fake_host *f, const struct fake_punit *list, uint32_t n)
{
	struct fake_sst *s = sst(f);
	s->punits = fake_alloc(n * sizeof *s->punits);
	s->n = n;
	for (uint32_t i = 0; i < n; i++) {
		struct fake_sst_punit *p = &s->punits[i];
		p->d = list[i];
		fake_parse_set(&p->cpus, list[i].cpus);
		fake_parse_set(&p->bf, list[i].bf);
		for (uint32_t k = 0; k < RP_CLOS_COUNT; k++)
			p->clos[k] = (struct rp_clos){.max_mhz = RP_SST_MHZ_MAX,
						      .weight = list[i].weights[k]};
	}
}

void fake_sst_program(struct fake_host *f, uint32_t clos, uint32_t min_mhz, uint32_t max_mhz)
{
	for (uint32_t i = 0; i < sst(f)->n; i++)
		sst(f)->punits[i].clos[clos] =
			(struct rp_clos){.min_mhz = min_mhz, .max_mhz = max_mhz};
}

void fake_sst_put(struct fake_host *f, const char *cpus, uint32_t clos)
{
	struct rp_idset set;
	fake_parse_set(&set, cpus);
	RP_IDS_EACH (cpu, rp_ids_of(&set))
		sst(f)->clos[cpu] = sst(f)->before[cpu] = clos;
}

const char *fake_sst_in(struct fake_host *f, uint32_t clos)
{
	struct rp_idset set;
	rp_idset_clear(&set);
	for (uint32_t i = 0; i < sst(f)->n; i++)
		RP_IDS_EACH (cpu, rp_ids_of(&sst(f)->punits[i].cpus))
			if (sst(f)->clos[cpu] == clos)
				rp_idset_add(&set, cpu);
	return fake_answer(f, rp_ids_of(&set));
}

void fake_sst_fail(struct fake_host *f, const char *what, int32_t code)
{
	sst(f)->fails = what;
	sst(f)->code = code;
}

const char *fake_sst_log(struct fake_host *f)
{
	return fake_out_text(&sst(f)->log);
}

void fake_sst_log_clear(struct fake_host *f)
{
	fake_out_clear(&sst(f)->log);
}

uint32_t fake_sst_manages(struct fake_host *f)
{
	return sst(f)->manages;
}

/* ---- the service ----------------------------------------------------------------------------- */

static uint32_t n_punits(void *ctx)
{
	return sst(ctx)->n;
}

static const char *why(void *ctx)
{
	return sst(ctx)->n ? "" : "this one has none";
}

static void describe(const struct fake_sst_punit *p, struct rp_sst_punit *out)
{
	out->package_id = p->d.package;
	out->punit_id = p->d.punit;
	out->supported = p->d.supported;
	out->enabled = p->d.enabled;
	out->priority = p->d.priority;
	memcpy(out->clos, p->clos, sizeof out->clos);
}

static int32_t punit(void *ctx, uint32_t index, struct rp_sst_punit *out)
{
	if (index >= sst(ctx)->n)
		return -RP_ENOENT;
	const struct fake_sst_punit *p = &sst(ctx)->punits[index];
	describe(p, out);
	out->n_buckets = 0;
	while (out->n_buckets < RP_SST_BUCKETS && p->d.buckets[out->n_buckets])
		out->n_buckets++;
	memcpy(out->hp_cores, p->d.buckets, sizeof out->hp_cores);
	out->cpus = rp_ids_of(&p->cpus);
	out->bf_cpus = rp_ids_of(&p->bf);
	return 0;
}

static uint32_t clos_of(void *ctx, uint32_t cpu)
{
	return sst(ctx)->n && cpu < RP_CPUS_MAX ? sst(ctx)->before[cpu] : RP_CLOS_UNKNOWN;
}

static int32_t manage(void *ctx, uint32_t on)
{
	if (!on && !sst(ctx)->manages)
		return -RP_EBUSY;
	sst(ctx)->manages = on;
	return 0;
}

static struct fake_sst_punit *find(void *ctx, const struct rp_sst_at *at)
{
	for (uint32_t i = 0; i < sst(ctx)->n; i++)
		if (sst(ctx)->punits[i].d.package == at->package_id &&
		    sst(ctx)->punits[i].d.punit == at->punit_id &&
		    rp_ids_has(rp_ids_of(&sst(ctx)->punits[i].cpus), at->cpu))
			return &sst(ctx)->punits[i];
	fake_die("no punit %u of package %u with CPU %u", at->punit_id, at->package_id, at->cpu);
}

static int32_t refuse(void *ctx, const char *what)
{
	const struct fake_sst *s = sst(ctx);
	return s->fails && strcmp(s->fails, what) == 0 ? -s->code : 0;
}

static int32_t punit_now(void *ctx, const struct rp_sst_at *at, struct rp_sst_punit *out)
{
	describe(find(ctx, at), out);
	return refuse(ctx, "look");
}

static int32_t clos_now(void *ctx, const struct rp_sst_at *at, uint32_t *ret)
{
	(void)find(ctx, at);
	*ret = sst(ctx)->clos[at->cpu];
	return refuse(ctx, "look");
}

static int32_t set_cp(void *ctx, const struct rp_sst_at *at, uint32_t on, uint32_t priority)
{
	struct fake_sst_punit *p = find(ctx, at);
	int32_t r = refuse(ctx, "cp");
	if (r)
		return r;
	fake_print(&sst(ctx)->log, "%u/%u cp %u %s; ", p->d.package, p->d.punit, on,
		   priority == RP_SST_ORDERED ? "ordered" : "proportional");
	p->d.enabled = on ? p->d.enabled | RP_SST_CP : p->d.enabled & ~RP_SST_CP;
	p->d.priority = priority;
	return 0;
}

static int32_t set_tf(void *ctx, const struct rp_sst_at *at, uint32_t on)
{
	struct fake_sst_punit *p = find(ctx, at);
	int32_t r = refuse(ctx, "tf");
	if (r)
		return r;
	fake_print(&sst(ctx)->log, "%u/%u tf %u; ", p->d.package, p->d.punit, on);
	p->d.enabled = on ? p->d.enabled | RP_SST_TF : p->d.enabled & ~RP_SST_TF;
	return 0;
}

static int32_t set_clos(void *ctx, const struct rp_sst_at *at, uint32_t clos,
			const struct rp_clos *value)
{
	struct fake_sst_punit *p = find(ctx, at);
	int32_t r = refuse(ctx, "clos");
	if (r)
		return r;
	fake_print(&sst(ctx)->log, "%u/%u clos %u %u-%u; ", p->d.package, p->d.punit, clos,
		   value->min_mhz, value->max_mhz);
	p->clos[clos] = *value;
	return 0;
}

static int32_t associate(void *ctx, const struct rp_sst_at *at, uint32_t clos)
{
	(void)find(ctx, at);
	int32_t r = refuse(ctx, "assoc");
	if (r)
		return r;
	fake_print(&sst(ctx)->log, "cpu %u %u; ", at->cpu, clos);
	sst(ctx)->clos[at->cpu] = clos;
	return 0;
}

const struct rp_host_speedselect fake_speedselect_service = {
	.size = sizeof fake_speedselect_service,
	.n_punits = n_punits,
	.why = why,
	.punit = punit,
	.clos_of = clos_of,
	.manage = manage,
	.punit_now = punit_now,
	.clos_now = clos_now,
	.set_cp = set_cp,
	.set_tf = set_tf,
	.set_clos = set_clos,
	.associate = associate,
};
