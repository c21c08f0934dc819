/* SPDX-License-Identifier: Apache-2.0 */
/* Priority core turbo: the punits that classes use, and the CLOS of each CPU. pct_hints.c searches
 * punits with room, pct_write.c is the worker's part. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/pct_impl.h"

#define OPERATORS_TOOL "intel-speed-select"

/* ---- definitions ----------------------------------------------------------------------------- */

bool pct_is_managed(const struct cpuclass_defs *defs)
{
	for (uint32_t i = 0; i < defs->n; i++)
		if (defs->list[i].pct_high >= 0)
			return true;
	return false;
}

/* Returns true if classes use Speed Select. */
static bool pct_is_wanted(const struct cpuclass_defs *defs)
{
	for (uint32_t i = 0; i < defs->n; i++)
		if (defs->list[i].clos >= 0)
			return true;
	return pct_is_managed(defs);
}

const char *pct_missing(const struct modhost *h)
{
	const struct rp_host_speedselect *s = h->speedselect;
	if (!s)
		return "the host does not offer it";
	uint32_t n = s->n_punits(h->ctx);
	for (uint32_t i = 0; i < n; i++) {
		struct rp_sst_punit info = {.size = sizeof info};
		if (s->punit(h->ctx, i, &info) == 0 && (info.supported & RP_SST_CP))
			return NULL;
	}
	return n ? "the CPUs do not support classes of service (SST-CP)" : s->why(h->ctx);
}

static void warn_associated(const struct modhost *h)
{
	const struct rp_host_speedselect *s = h->speedselect;
	for (uint32_t i = 0; i < s->n_punits(h->ctx); i++) {
		struct rp_sst_punit info = {.size = sizeof info};
		if (s->punit(h->ctx, i, &info))
			continue;
		if (!(info.enabled & RP_SST_CP))
			modhost_log(h, RP_LOG_WARNING, 0,
				    "package %u, punit %u: SST-CP is off, so CPU classes with an "
				    "sstClosID have no effect there: " OPERATORS_TOOL
				    " core-power enable",
				    info.package_id, info.punit_id);
		else if (!(info.enabled & RP_SST_TF))
			modhost_log(h, RP_LOG_WARNING, 0,
				    "package %u, punit %u: SST-TF is off, so no CPU has high "
				    "priority there: " OPERATORS_TOOL " turbo-freq enable",
				    info.package_id, info.punit_id);
	}
}

void pct_warn(const struct modhost *h, const struct cpuclass_defs *defs)
{
	if (!pct_is_wanted(defs))
		return;
	const char *why = pct_missing(h);
	if (why)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "pctPriority and sstClosID have no effect without Speed Select: %s",
			    why);
	else if (!pct_is_managed(defs))
		warn_associated(h);
}

/* Returns the CLOS with the highest frequency among the programmed CLOS that classes use. */
static int32_t highest_clos(const struct modhost *h, const struct pct *p,
			    const struct cpuclass_defs *defs)
{
	const struct rp_host_speedselect *s = h->speedselect;
	uint32_t max[RP_CLOS_COUNT] = {0};
	bool used[RP_CLOS_COUNT] = {false}, programmed = false;
	int32_t best = PCT_NO_CLOS;
	for (uint32_t i = 0; i < defs->n; i++)
		if (p->clos[i] >= 0)
			used[p->clos[i]] = true;
	for (uint32_t i = 0; i < s->n_punits(h->ctx); i++) {
		struct rp_sst_punit info = {.size = sizeof info};
		if (s->punit(h->ctx, i, &info))
			continue;
		for (uint32_t k = 0; k < RP_CLOS_COUNT; k++) {
			const struct rp_clos *c = &info.clos[k];
			if (c->max_mhz > max[k])
				max[k] = c->max_mhz;
			programmed = programmed ||
				     (used[k] &&
				      (c->min_mhz || (c->max_mhz && c->max_mhz < RP_SST_MHZ_MAX)));
		}
	}
	for (int32_t k = 0; programmed && k < (int32_t)RP_CLOS_COUNT; k++)
		if (used[k] && max[k] && (best < 0 || max[k] > max[best]))
			best = k;
	return best;
}

static void read_classes(const struct modhost *h, struct pct *p, const struct cpuclass_defs *defs)
{
	bool low = false;
	p->managed = pct_is_managed(defs);
	for (uint32_t i = 0; i < defs->n; i++) {
		const struct cpuclass_def *d = &defs->list[i];
		p->clos[i] = (int8_t)(d->pct_high > 0	 ? PCT_CLOS_HIGH
				      : d->pct_high == 0 ? PCT_CLOS_LOW
							 : d->clos);
		low = low || d->pct_high == 0;
	}
	p->fallback = (int8_t)(!p->managed ? PCT_NO_CLOS : low ? PCT_CLOS_LOW : PCT_CLOS_HIGH);
	int32_t highest = p->managed ? PCT_CLOS_HIGH : highest_clos(h, p, defs);
	for (uint32_t i = 0; i < defs->n; i++)
		if (highest >= 0 && p->clos[i] == highest)
			p->high |= UINT64_C(1) << i;
}

/* ---- punits and packages --------------------------------------------------------------------- */

static void read_room(struct pct_punit *u, const struct rp_sst_punit *info)
{
	for (uint32_t i = 0; i < info->n_buckets; i++) {
		uint32_t n = info->hp_cores[i];
		if (n > u->most)
			u->most = n;
		if (n && (!u->least || n < u->least))
			u->least = n;
	}
	if (!u->most)
		u->most = rp_ids_count(info->bf_cpus);
}

static void add_to_package(struct pct *p, const struct pct_punit *u)
{
	uint32_t i = 0;
	while (i < p->n_packages && p->packages[i].id != u->package_id)
		i++;
	if (i == p->n_packages) {
		p->packages[p->n_packages++].id = u->package_id;
		rp_idset_clear(&p->packages[i].allowed);
	}
	struct rp_idset *set = &p->packages[i].allowed;
	if (u->eligible)
		rp_idset_or(set, rp_ids_of(set), rp_ids_of(&u->allowed));
}

static void read_punits(const struct modhost *h, struct pct *p, uint32_t n)
{
	const struct rp_host_speedselect *s = h->speedselect;
	for (uint32_t i = 0; i < n; i++) {
		struct rp_sst_punit info = {.size = sizeof info};
		struct pct_punit *u = &p->punits[p->n_punits];
		if (s->punit(h->ctx, i, &info) || !(info.supported & RP_SST_CP))
			continue;
		u->package_id = info.package_id;
		u->punit_id = info.punit_id;
		u->supported = info.supported;
		u->eligible = p->managed || (info.enabled & RP_SST_TF);
		rp_idset_copy(&u->cpus, info.cpus);
		rp_idset_and(&u->allowed, info.cpus, rp_ids_of(&p->allowed));
		read_room(u, &info);
		add_to_package(p, u);
		p->n_punits++;
	}
}

/* Returns the lowest CPU of the core that may be changed. */
static uint32_t core_of(const struct modhost *h, const struct pct *p, uint32_t cpu)
{
	struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
	struct rp_unit_info core = {.size = sizeof core};
	struct rp_idset threads;
	if (h->topology->cpu(h->ctx, cpu, &info) ||
	    h->topology->unit(h->ctx, RP_LEVEL_CORE, info.unit[RP_LEVEL_CORE], &core))
		return cpu;
	rp_idset_and(&threads, core.cpus, rp_ids_of(&p->allowed));
	uint32_t first = rp_ids_first(rp_ids_of(&threads));
	return first == RP_IDSET_NONE ? cpu : first;
}

static void read_cpus(const struct modhost *h, struct pct *p)
{
	for (uint32_t i = 0; i < p->n_cpus; i++)
		p->cpus[i] = (struct pct_cpu){PCT_NO_CORE, 0,		0,	    PCT_NO_CLOS,
					      PCT_NO_CLOS, PCT_NO_CLOS, PCT_NO_CLOS};
	for (uint32_t i = 0; i < p->n_punits; i++) {
		RP_IDS_EACH (cpu, rp_ids_of(&p->punits[i].allowed)) {
			uint32_t clos = h->speedselect->clos_of(h->ctx, cpu);
			int8_t seen = (int8_t)(clos < RP_CLOS_COUNT ? (int32_t)clos : PCT_NO_CLOS);
			p->cpus[cpu] = (struct pct_cpu){
				.core = core_of(h, p, cpu),
				.package = p->punits[i].package_id,
				.punit = p->punits[i].punit_id,
				.seen = seen,
				.now = p->managed ? p->fallback : seen,
				.wanted = p->fallback,
			};
		}
	}
}

int32_t pct_new(const struct modhost *h, const struct cpuclass_defs *defs, struct rp_ids allowed,
		struct pct **ret)
{
	*ret = NULL;
	if (!pct_is_wanted(defs) || pct_missing(h))
		return 0;
	uint32_t n = h->speedselect->n_punits(h->ctx);
	n = n < PCT_PUNITS_MAX ? n : PCT_PUNITS_MAX;
	struct pct *p = calloc(1, sizeof *p);
	if (!p)
		return -RP_ENOMEM;
	rp_idset_copy(&p->allowed, allowed);
	p->n_cpus = rp_ids_empty(allowed) ? 0 : rp_ids_last(allowed) + 1;
	p->punits = calloc(n, sizeof *p->punits);
	p->packages = calloc(n, sizeof *p->packages);
	p->cpus = calloc(p->n_cpus + 1u, sizeof *p->cpus);
	if (!p->punits || !p->packages || !p->cpus) {
		pct_free(p);
		return -RP_ENOMEM;
	}
	read_classes(h, p, defs);
	read_punits(h, p, n);
	read_cpus(h, p);
	*ret = p;
	return 0;
}

struct pct *pct_free(struct pct *p)
{
	if (!p)
		return NULL;
	free(p->punits);
	free(p->packages);
	free(p->cpus);
	free(p);
	return NULL;
}

/* ---- CPUs in classes ------------------------------------------------------------------------- */

bool pct_manages(const struct pct *p)
{
	return p && p->managed;
}

void pct_use(struct pct *p, uint32_t class, uint32_t cpu)
{
	if (!p || cpu >= p->n_cpus || p->cpus[cpu].core == PCT_NO_CORE)
		return;
	int8_t clos = pct_clos_of_class(p, class);
	if (clos == PCT_NO_CLOS)
		clos = p->fallback;
	/* Without a CLOS the CPU is unchanged and does not influence the other threads of its
	 * core. */
	p->cpus[cpu].wanted = clos;
	if (clos != PCT_NO_CLOS)
		p->cpus[cpu].now = clos;
}

void pct_adopt(struct pct *p, const struct pct *former)
{
	if (!p || !former || p->managed || former->managed)
		return;
	for (uint32_t i = 0; i < p->n_cpus && i < former->n_cpus; i++)
		if (former->cpus[i].now != PCT_NO_CLOS && former->cpus[i].seen == p->cpus[i].seen)
			p->cpus[i].now = former->cpus[i].now;
}

/* Determines the CLOS of each core. If its threads differ, the smaller number wins, so that a high
 * thread stays high beside an idle one. */
void pct_count(struct pct *p)
{
	for (uint32_t i = 0; p && i < p->n_cpus; i++)
		p->cpus[i].core_wanted = PCT_NO_CLOS;
	for (uint32_t i = 0; p && i < p->n_cpus; i++) {
		const struct pct_cpu *c = &p->cpus[i];
		struct pct_cpu *head = c->core == PCT_NO_CORE ? NULL : &p->cpus[c->core];
		if (head && c->wanted != PCT_NO_CLOS &&
		    (head->core_wanted == PCT_NO_CLOS || c->wanted < head->core_wanted))
			head->core_wanted = c->wanted;
	}
}

int32_t pct_clos(const struct pct *p, uint32_t cpu)
{
	if (!p || cpu >= p->n_cpus || p->cpus[cpu].core == PCT_NO_CORE ||
	    p->cpus[cpu].wanted == PCT_NO_CLOS)
		return PCT_NO_CLOS;
	return p->cpus[p->cpus[cpu].core].core_wanted;
}

struct rp_sst_at pct_at(const struct pct *p, uint32_t cpu)
{
	if (!p || cpu >= p->n_cpus)
		return (struct rp_sst_at){.cpu = cpu};
	return (struct rp_sst_at){p->cpus[cpu].package, p->cpus[cpu].punit, cpu};
}

struct pct_setup *pct_setup_new(const struct pct *p, const struct cpuclass_defs *defs, bool on)
{
	uint32_t n_cpus = 0;
	for (uint32_t i = 0; i < p->n_punits; i++)
		n_cpus += rp_ids_count(rp_ids_of(&p->punits[i].cpus));
	struct pct_setup *s =
		calloc(1, sizeof *s + p->n_punits * sizeof *s->units + n_cpus * sizeof *s->cpus);
	if (!s)
		return NULL;
	s->on = on;
	s->units = (struct pct_unit *)(s + 1);
	s->cpus = (uint32_t *)(s->units + p->n_punits);
	n_cpus = 0;
	for (uint32_t i = 0; i < p->n_punits; i++) {
		const struct pct_punit *u = &p->punits[i];
		struct pct_unit *to = &s->units[s->n++];
		*to = (struct pct_unit){
			.at = {u->package_id, u->punit_id, rp_ids_first(rp_ids_of(&u->cpus))},
			.supported = u->supported,
			.first = n_cpus,
		};
		RP_IDS_EACH (cpu, rp_ids_of(&u->cpus))
			s->cpus[n_cpus++] = cpu;
		to->n = n_cpus - to->first;
	}
	for (uint32_t i = 0; i < defs->n; i++) {
		const struct cpuclass_def *d = &defs->list[i];
		if (d->pct_high < 0)
			continue;
		int8_t clos = p->clos[i];
		s->used[clos] = true;
		s->min_khz[clos] = d->pct_min_khz ? d->pct_min_khz : d->min_khz;
		s->max_khz[clos] = d->pct_max_khz ? d->pct_max_khz : d->max_khz;
	}
	return s;
}
