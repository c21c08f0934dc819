/* SPDX-License-Identifier: Apache-2.0 */
/* The platform as classes see it, which CLOS a CPU belongs in, and room for CPUs of high priority. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/pct_impl.h"

#define NO_CORE UINT32_MAX
#define OPERATORS_TOOL "intel-speed-select"

struct punit {
	uint32_t package_id, punit_id, supported;
	uint32_t most, least; /* CPUs that can be high: at all, and at the highest frequency */
	bool eligible; /* high CPUs are of use here */
	struct rp_idset cpus; /* all of it */
	struct rp_idset allowed; /* those that may be touched */
};

struct package {
	uint32_t id;
	struct rp_idset allowed; /* of its eligible punits */
};

struct cpu {
	uint32_t core, package, punit; /* core: the lowest CPU of it that may be touched */
	int8_t now; /* CLOS it is in */
	int8_t wanted; /* CLOS by its class */
	int8_t core_wanted; /* by the classes of all threads; of the lowest CPU of a core */
};

struct pct {
	bool managed;
	int8_t clos[CPUCLASS_MAX]; /* by class */
	int8_t fallback; /* of CPUs in no class with a CLOS; PCT_NO_CLOS: they stay where they are */
	uint64_t high; /* classes */
	struct rp_idset allowed;
	struct punit *punits;
	struct package *packages;
	uint32_t n_punits, n_packages;
	struct cpu *cpus;
	uint32_t n_cpus;
};

/* ---- definitions ---------------------------------------------------------------------------------------------------- */

bool pct_is_managed(const struct cpuclass_defs *defs)
{
	for (uint32_t i = 0; i < defs->n; i++)
		if (defs->list[i].pct_high >= 0)
			return true;
	return false;
}

bool pct_is_wanted(const struct cpuclass_defs *defs)
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
	return n ? "the CPUs have no classes of service (SST-CP)" : s->why(h->ctx);
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
				    "package %u, punit %u: SST-CP is off, so that CPU classes with "
				    "an sstClosID change nothing there: " OPERATORS_TOOL
				    " core-power enable",
				    info.package_id, info.punit_id);
		else if (!(info.enabled & RP_SST_TF))
			modhost_log(h, RP_LOG_WARNING, 0,
				    "package %u, punit %u: SST-TF is off, so that no CPU is of "
				    "high priority there: " OPERATORS_TOOL " turbo-freq enable",
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

/* The CLOS that may go highest, of those that classes use and somebody has programmed. */
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

/* ---- the platform --------------------------------------------------------------------------------------------------- */

static void read_room(struct punit *u, const struct rp_sst_punit *info)
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

static void add_to_package(struct pct *p, const struct punit *u)
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
		struct punit *u = &p->punits[p->n_punits];
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

/* The lowest CPU of its core that may be touched. */
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
		p->cpus[i] = (struct cpu){NO_CORE, 0, 0, PCT_NO_CLOS, PCT_NO_CLOS, PCT_NO_CLOS};
	for (uint32_t i = 0; i < p->n_punits; i++) {
		RP_IDS_EACH (cpu, rp_ids_of(&p->punits[i].allowed)) {
			uint32_t now = h->speedselect->clos_of(h->ctx, cpu);
			p->cpus[cpu] = (struct cpu){
				.core = core_of(h, p, cpu),
				.package = p->punits[i].package_id,
				.punit = p->punits[i].punit_id,
				.now = (int8_t)(now < RP_CLOS_COUNT ? (int32_t)now : PCT_NO_CLOS),
				.wanted = p->fallback,
			};
			if (p->managed)
				p->cpus[cpu].now = p->fallback;
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

/* ---- CPUs in classes ------------------------------------------------------------------------------------------------ */

bool pct_manages(const struct pct *p)
{
	return p && p->managed;
}

static int8_t clos_of(const struct pct *p, uint32_t class)
{
	return class < CPUCLASS_MAX ? p->clos[class] : PCT_NO_CLOS;
}

void pct_use(struct pct *p, uint32_t class, uint32_t cpu)
{
	if (!p || cpu >= p->n_cpus || p->cpus[cpu].core == NO_CORE)
		return;
	int8_t clos = class == CPUCLASS_NONE ? PCT_NO_CLOS : clos_of(p, class);
	if (clos == PCT_NO_CLOS)
		clos = p->fallback;
	if (clos != PCT_NO_CLOS)
		p->cpus[cpu].now = p->cpus[cpu].wanted = clos;
}

void pct_adopt(struct pct *p, const struct pct *former)
{
	if (!p || !former || p->managed || former->managed)
		return;
	for (uint32_t i = 0; i < p->n_cpus && i < former->n_cpus; i++)
		if (former->cpus[i].wanted != PCT_NO_CLOS)
			p->cpus[i].now = former->cpus[i].now;
}

/* Of threads that disagree the smaller number decides: what is high stays high beside an idle thread. */
void pct_count(struct pct *p)
{
	for (uint32_t i = 0; p && i < p->n_cpus; i++)
		p->cpus[i].core_wanted = PCT_NO_CLOS;
	for (uint32_t i = 0; p && i < p->n_cpus; i++) {
		const struct cpu *c = &p->cpus[i];
		struct cpu *head = c->core == NO_CORE ? NULL : &p->cpus[c->core];
		if (head && c->wanted != PCT_NO_CLOS &&
		    (head->core_wanted == PCT_NO_CLOS || c->wanted < head->core_wanted))
			head->core_wanted = c->wanted;
	}
}

int32_t pct_clos(const struct pct *p, uint32_t cpu)
{
	if (!p || cpu >= p->n_cpus || p->cpus[cpu].core == NO_CORE ||
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
		const struct punit *u = &p->punits[i];
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

/* ---- hints ---------------------------------------------------------------------------------------------------------- */

bool pct_is_high(const struct pct *p, uint32_t class)
{
	return p && class < CPUCLASS_MAX && (p->high >> class & 1);
}

bool pct_has_high(const struct pct *p)
{
	return p && p->high;
}

struct room {
	uint32_t index, room, free;
};

static struct room room_of(const struct punit *u, struct rp_ids free, struct rp_ids high)
{
	uint32_t used = rp_ids_count_and(high, rp_ids_of(&u->cpus));
	return (struct room){0, u->most > used ? u->most - used : 0,
			     rp_ids_count_and(free, rp_ids_of(&u->allowed))};
}

/* More room first, then more free CPUs; the order in which they come stays otherwise. */
static void insert(struct pct_hints *hints, struct room *sorted, struct room new)
{
	uint32_t at = hints->n_reserve++;
	for (; at; at--) {
		const struct room *r = &sorted[at - 1];
		if (r->room > new.room || (r->room == new.room && r->free >= new.free))
			break;
		sorted[at] = sorted[at - 1];
	}
	sorted[at] = new;
}

static void reserve_punits(const struct pct *p, uint32_t n, struct rp_ids free, struct rp_ids high,
			   struct pct_hints *ret, struct room *sorted)
{
	for (uint32_t i = 0; i < p->n_punits; i++) {
		struct room r = room_of(&p->punits[i], free, high);
		r.index = i;
		if (p->punits[i].eligible && r.room >= n && r.free >= n)
			insert(ret, sorted, r);
	}
}

static void reserve_packages(const struct pct *p, uint32_t n, struct rp_ids free,
			     struct rp_ids high, struct pct_hints *ret, struct room *sorted)
{
	for (uint32_t i = 0; i < p->n_packages; i++) {
		struct room all = {.index = i};
		uint32_t fit = 0;
		for (uint32_t k = 0; k < p->n_punits; k++) {
			if (p->punits[k].package_id != p->packages[i].id || !p->punits[k].eligible)
				continue;
			struct room r = room_of(&p->punits[k], free, high);
			all.room += r.room;
			all.free += r.free;
			fit += r.room < r.free ? r.room : r.free;
		}
		if (fit >= n)
			insert(ret, sorted, all);
	}
}

static void avoid_high(const struct pct *p, struct rp_ids high, struct pct_hints *ret)
{
	rp_idset_clear(&ret->avoid);
	for (uint32_t i = 0; i < p->n_punits; i++) {
		const struct punit *u = &p->punits[i];
		if (rp_ids_overlap(high, rp_ids_of(&u->cpus)))
			rp_idset_or(&ret->avoid, rp_ids_of(&ret->avoid), rp_ids_of(&u->allowed));
	}
	ret->has_avoid = !rp_ids_empty(rp_ids_of(&ret->avoid));
}

void pct_hint(const struct pct *p, uint32_t class, uint32_t n, struct rp_ids free,
	      struct rp_ids high, struct pct_hints *ret)
{
	struct room sorted[PCT_PUNITS_MAX];
	ret->has_clos = ret->has_avoid = ret->packages = false;
	ret->n_reserve = 0;
	if (!p || !n)
		return;
	int8_t clos = class == CPUCLASS_NONE ? PCT_NO_CLOS : clos_of(p, class);
	if (clos != PCT_NO_CLOS) {
		rp_idset_clear(&ret->clos);
		RP_IDS_EACH (cpu, free)
			if (cpu < p->n_cpus && p->cpus[cpu].now == clos)
				rp_idset_add(&ret->clos, cpu);
		ret->has_clos = rp_ids_count(rp_ids_of(&ret->clos)) >= n;
	}
	if (!pct_is_high(p, class)) {
		if (p->high)
			avoid_high(p, high, ret);
		return;
	}
	reserve_punits(p, n, free, high, ret, sorted);
	if (!ret->n_reserve) {
		ret->packages = true;
		reserve_packages(p, n, free, high, ret, sorted);
	}
	for (uint32_t i = 0; i < ret->n_reserve; i++)
		ret->reserve[i] = (uint16_t)sorted[i].index;
}

static bool narrow(struct rp_idset *from, const struct rp_idset *to, uint32_t n)
{
	if (rp_ids_count(rp_ids_of(to)) < n)
		return false;
	rp_idset_copy(from, rp_ids_of(to));
	return true;
}

bool pct_prefer(const struct pct *p, const struct pct_hints *hints, uint32_t n,
		struct rp_idset *from)
{
	struct rp_idset better;
	bool done = false;
	if (hints->has_clos) {
		rp_idset_and(&better, rp_ids_of(from), rp_ids_of(&hints->clos));
		done = narrow(from, &better, n);
	}
	for (uint32_t i = 0; i < hints->n_reserve; i++) {
		const struct rp_idset *set = hints->packages
						     ? &p->packages[hints->reserve[i]].allowed
						     : &p->punits[hints->reserve[i]].allowed;
		rp_idset_and(&better, rp_ids_of(from), rp_ids_of(set));
		if (narrow(from, &better, n))
			return true;
	}
	return done;
}

bool pct_avoid(const struct pct_hints *hints, uint32_t n, struct rp_idset *from)
{
	struct rp_idset better;
	if (!hints->has_avoid)
		return false;
	rp_idset_andnot(&better, rp_ids_of(from), rp_ids_of(&hints->avoid));
	return narrow(from, &better, n);
}

uint32_t pct_misses(const struct pct *p, uint32_t class, struct rp_ids high, struct rp_ids cpus)
{
	uint32_t n = 0;
	for (uint32_t i = 0; p && i < p->n_punits; i++) {
		const struct punit *u = &p->punits[i];
		uint32_t here = rp_ids_count_and(cpus, rp_ids_of(&u->cpus));
		uint32_t room = room_of(u, rp_ids_none(), high).room;
		if (!pct_is_high(p, class))
			n += rp_ids_overlap(high, rp_ids_of(&u->cpus)) ? here : 0;
		else if (!u->eligible || here > room)
			n += u->eligible ? here - room : here;
	}
	return n;
}

/* ---- the extended resource ------------------------------------------------------------------------------------------ */

int64_t pct_capacity(const struct pct *p, uint32_t class, struct rp_ids held)
{
	struct rp_idset left;
	int64_t n = 0;
	if (!pct_is_high(p, class)) {
		rp_idset_andnot(&left, rp_ids_of(&p->allowed), held);
		return rp_ids_count(rp_ids_of(&left));
	}
	for (uint32_t i = 0; i < p->n_punits; i++) {
		const struct punit *u = &p->punits[i];
		rp_idset_andnot(&left, rp_ids_of(&u->allowed), held);
		uint32_t free = rp_ids_count(rp_ids_of(&left));
		if (u->eligible)
			n += free < u->least ? free : u->least;
	}
	return n;
}
