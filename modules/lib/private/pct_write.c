/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's part of priority core turbo: sets up the platform, removes the setup, and associates
 * CPUs. Values that are already right are not written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "modules/lib/private/cpuclass_impl.h"

static const struct rp_clos nothing = {.max_mhz = RP_SST_MHZ_MAX};

/* Returns why the driver refuses, with the remedy. */
static const char *pct_write_reason(int32_t r)
{
	return r == -EPERM ? "Operation not permitted: locked by the firmware, or the daemon lacks "
			     "CAP_SYS_ADMIN (nri-rp-balloons(7))"
			   : strerror(-r);
}

/* Counts a write and logs its failure. Returns the result. */
static int32_t pct_write_note(struct cpuclass_job *job, const struct pct_unit *u, const char *what,
			      int32_t r)
{
	char place[64];
	if (!r) {
		job->writes++;
		return 0;
	}
	job->failures++;
	(void)snprintf(place, sizeof place, "Speed Select, package %u, punit %u", u->at.package_id,
		       u->at.punit_id);
	cpuclass_complain(job, WHAT_PLATFORM, place, what, "failed", pct_write_reason(r));
	return r;
}

static int32_t pct_write_associate(struct cpuclass_job *job, const struct rp_sst_at *at,
				   uint32_t clos)
{
	const struct rp_host_speedselect *s = job->speedselect;
	uint32_t now;
	int32_t r = s->clos_now(job->ctx, at, &now);
	if (!r && now == clos)
		return 0;
	if (!r) {
		r = s->associate(job->ctx, at, clos);
		job->writes += !r;
	}
	if (!r)
		r = s->clos_now(job->ctx, at, &now);
	if (!r && now != clos)
		r = -EIO;
	return r;
}

int32_t pct_associate(struct cpuclass_job *job, const struct cpuclass_cpu *cpu)
{
	char place[48], clos[16];
	if (cpu->clos < 0)
		return 0;
	int32_t r = pct_write_associate(job, &cpu->at, (uint32_t)cpu->clos);
	if (!r)
		return 0;
	job->failures++;
	(void)snprintf(place, sizeof place, "Speed Select, CPU %u", cpu->cpu);
	(void)snprintf(clos, sizeof clos, "CLOS %d", cpu->clos);
	cpuclass_complain(job, WHAT_CLOS, place, "assigning it to", clos, pct_write_reason(r));
	return cpuclass_is_final(r) ? -EINVAL : -EBUSY;
}

/* ---- one punit ------------------------------------------------------------------------------- */

static uint32_t to_mhz(int64_t khz, uint32_t unset)
{
	int64_t mhz = khz / 1000 / RP_SST_MHZ_STEP * RP_SST_MHZ_STEP;
	if (khz <= 0)
		return unset;
	return mhz > RP_SST_MHZ_MAX ? RP_SST_MHZ_MAX : (uint32_t)mhz;
}

static struct rp_clos wanted_clos(const struct cpuclass_job *job, const struct pct_unit *u,
				  uint32_t clos)
{
	const struct cpuclass_cpu cpu = {.cpu = u->at.cpu, .turbo = true};
	struct rp_clos c = {
		.min_mhz = to_mhz(cpuclass_resolve(job, &cpu, job->setup->min_khz[clos]), 0),
		.max_mhz = to_mhz(cpuclass_resolve(job, &cpu, job->setup->max_khz[clos]),
				  RP_SST_MHZ_MAX),
	};
	if (c.min_mhz > c.max_mhz)
		c.min_mhz = c.max_mhz;
	return c;
}

static bool has_clos(const struct cpuclass_job *job, const struct pct_unit *u,
		     const struct rp_sst_punit *now, uint32_t i)
{
	if (!job->setup->used[i])
		return true;
	struct rp_clos c = wanted_clos(job, u, i);
	return now->clos[i].min_mhz == c.min_mhz && now->clos[i].max_mhz == c.max_mhz;
}

static uint32_t features_of(const struct pct_unit *u)
{
	return RP_SST_CP | (u->supported & RP_SST_TF);
}

static bool is_on(const struct pct_unit *u, const struct rp_sst_punit *now)
{
	uint32_t features = features_of(u);
	return (now->enabled & features) == features && now->priority == RP_SST_ORDERED;
}

static bool is_right(const struct cpuclass_job *job, const struct pct_unit *u,
		     const struct rp_sst_punit *now)
{
	bool right = is_on(u, now);
	for (uint32_t i = 0; right && i < RP_CLOS_COUNT; i++)
		right = has_clos(job, u, now, i);
	return right;
}

static int32_t pct_write_look(struct cpuclass_job *job, const struct pct_unit *u,
			      struct rp_sst_punit *ret)
{
	*ret = (struct rp_sst_punit){.size = sizeof *ret};
	int32_t r = job->speedselect->punit_now(job->ctx, &u->at, ret);
	return r ? pct_write_note(job, u, "reading", r) : 0;
}

/* Removes the limits of all CLOSes and moves all CPUs to the first one. */
static int32_t pct_write_reset(struct cpuclass_job *job, const struct pct_unit *u)
{
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < RP_CLOS_COUNT; i++)
		r = job->speedselect->set_clos(job->ctx, &u->at, i, &nothing);
	for (uint32_t i = 0; !r && i < u->n; i++) {
		struct rp_sst_at at = u->at;
		at.cpu = job->setup->cpus[u->first + i];
		r = pct_write_associate(job, &at, 0);
	}
	return pct_write_note(job, u, "resetting SST-CP", r);
}

static int32_t switch_turbo(struct cpuclass_job *job, const struct pct_unit *u, bool on)
{
	if (!(u->supported & RP_SST_TF))
		return 0;
	return pct_write_note(job, u, on ? "enabling SST-TF" : "disabling SST-TF",
			      job->speedselect->set_tf(job->ctx, &u->at, on));
}

/* ---- all punits ------------------------------------------------------------------------------ */

static void pct_write_begin(struct cpuclass_job *job, struct pct_unit *u)
{
	struct rp_sst_punit now;
	u->result = pct_write_look(job, u, &now);
	u->right = !u->result && is_right(job, u, &now);
	if (u->result || u->right)
		return;
	u->result = pct_write_reset(job, u);
	if (!u->result)
		u->result = switch_turbo(job, u, true);
	if (!u->result)
		u->result = pct_write_note(job, u, "setting the priority type",
					   job->speedselect->set_cp(job->ctx, &u->at,
								    now.enabled & RP_SST_CP,
								    RP_SST_ORDERED));
}

static void pct_write_program(struct cpuclass_job *job, struct pct_unit *u, uint32_t clos)
{
	if (u->result || u->right)
		return;
	struct rp_clos c = wanted_clos(job, u, clos);
	u->result = pct_write_note(job, u, "programming a CLOS",
				   job->speedselect->set_clos(job->ctx, &u->at, clos, &c));
}

static void pct_write_enable(struct cpuclass_job *job, struct pct_unit *u)
{
	struct rp_sst_punit now;
	if (u->result || u->right)
		return;
	u->result = pct_write_note(job, u, "enabling SST-CP",
				   job->speedselect->set_cp(job->ctx, &u->at, 1, RP_SST_ORDERED));
	if (!u->result)
		u->result = pct_write_look(job, u, &now);
	if (u->result)
		return;
	if (!is_on(u, &now)) {
		u->result = pct_write_note(job, u, "enabling SST-TF and SST-CP", -EIO);
	} else if (!is_right(job, u, &now)) {
		job->differing++;
		cpuclass_complain(job, WHAT_PLATFORM, "Speed Select", "the frequencies of a CLOS",
				  "differ from the requested ones", "the hardware's limits");
	}
}

static void set_up(struct cpuclass_job *job)
{
	const struct pct_setup *s = job->setup;
	for (uint32_t i = 0; i < s->n; i++)
		pct_write_begin(job, &s->units[i]);
	for (uint32_t clos = 0; clos < RP_CLOS_COUNT; clos++)
		for (uint32_t i = 0; s->used[clos] && i < s->n; i++)
			pct_write_program(job, &s->units[i], clos);
	for (uint32_t i = 0; i < s->n; i++)
		pct_write_enable(job, &s->units[i]);
}

static void take_back(struct cpuclass_job *job)
{
	for (uint32_t i = 0; i < job->setup->n; i++) {
		struct pct_unit *u = &job->setup->units[i];
		u->result = pct_write_reset(job, u);
		int32_t r = switch_turbo(job, u, false);
		if (!r)
			r = pct_write_note(
				job, u, "disabling SST-CP",
				job->speedselect->set_cp(job->ctx, &u->at, 0, RP_SST_ORDERED));
		u->result = u->result ? u->result : r;
	}
}

void pct_run(struct cpuclass_job *job)
{
	if (!job->setup)
		return;
	if (job->setup->on)
		set_up(job);
	else
		take_back(job);
	for (uint32_t i = 0; i < job->setup->n; i++) {
		int32_t r = job->setup->units[i].result;
		job->setup_failed = job->setup_failed || r;
		job->setup_again = job->setup_again || (r && !cpuclass_is_final(r));
	}
}
