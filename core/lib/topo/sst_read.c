/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the Speed Select platform into the snapshot. Without device or permission, or on another
 * vendor's machine, there are no punits, and a sentence states the reason. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/topo/impl.h"
#include "core/lib/topo/sst_impl.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/sized.h"

#define SST_PUNITS_MAX 512u
#define SST_WHY_MAX 192u
#define BF_CORES_MAX 64u
#define NO_PUNIT UINT16_MAX

struct punit {
	struct rp_sst_punit info; /* without its sets, which are below */
	struct rp_idset cpus, bf;
	uint32_t cpu; /* the lowest one */
	uint64_t bf_cores;
	bool valid;
};

struct seat {
	uint16_t punit, core; /* punit: index, or NO_PUNIT */
	uint8_t clos; /* RP_CLOS_COUNT: unknown */
};

struct sst {
	struct punit *punits;
	uint32_t n_punits;
	struct seat *seats; /* punit and core of each CPU, by index in t->cpus */
	char why[SST_WHY_MAX];
};

struct sst *sst_free(struct sst *s)
{
	if (!s)
		return NULL;
	free(s->punits);
	free(s->seats);
	free(s);
	return NULL;
}

size_t sst_size(const struct topo *t)
{
	const struct sst *s = t->sst;
	return s ? sizeof *s + s->n_punits * sizeof *s->punits + t->n_cpus * sizeof *s->seats : 0;
}

/* ---- CPUs and punits ------------------------------------------------------------------------- */

static bool comes_after(const struct rp_sst_punit *a, const struct rp_sst_punit *b)
{
	return a->package_id > b->package_id ||
	       (a->package_id == b->package_id && a->punit_id > b->punit_id);
}

/* Finds or inserts a punit in ascending order. NULL: out of memory, or too many. */
static struct punit *punit_of(struct sst *s, uint32_t package, uint32_t id)
{
	const struct rp_sst_punit key = {.package_id = package, .punit_id = id};
	uint32_t i = s->n_punits;
	while (i && !comes_after(&key, &s->punits[i - 1].info))
		i--;
	if (i < s->n_punits && !comes_after(&s->punits[i].info, &key))
		return &s->punits[i];
	if (s->n_punits == SST_PUNITS_MAX)
		return NULL;
	struct punit *grown = realloc(s->punits, (s->n_punits + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	s->punits = grown;
	memmove(grown + i + 1, grown + i, (s->n_punits - i) * sizeof *grown);
	memset(grown + i, 0, sizeof *grown);
	grown[i].info = key;
	grown[i].cpu = RP_IDSET_NONE;
	s->n_punits++;
	return &grown[i];
}

static int locate_cpu(const struct sst_device *d, const struct topo *t, uint32_t cpu,
		      struct sst_place *ret)
{
	const struct topo_cpu *c = &t->cpus[topo_cpu_index(t, cpu)];
	/* With mailboxes a die corresponds to a punit of TPMI. */
	*ret = (struct sst_place){.package = c->package_id, .punit = c->die_id, .cpu = cpu};
	return sst_locate(d, ret);
}

static int find_punits(const struct sst_device *d, struct topo *t, struct sst *s)
{
	RP_IDS_EACH (cpu, t->sets[RP_CPUS_ONLINE]) {
		struct sst_place at;
		struct seat *seat = &s->seats[topo_cpu_index(t, cpu)];
		*seat = (struct seat){.punit = NO_PUNIT, .clos = RP_CLOS_COUNT};
		int r = locate_cpu(d, t, cpu, &at);
		if (r)
			return r;
		struct punit *p = punit_of(s, at.package, at.punit);
		if (!p)
			return s->n_punits == SST_PUNITS_MAX ? -E2BIG : -ENOMEM;
		if (p->cpu == RP_IDSET_NONE) {
			p->cpu = cpu;
			p->valid = d->ops->check(d, &at) == 0;
		}
		if (p->valid)
			rp_idset_add(&p->cpus, cpu);
		seat->core = (uint16_t)at.core;
	}
	return 0;
}

/* Removes punits that the driver does not report as valid. */
static void drop_invalid(struct topo *t, struct sst *s)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_punits; i++)
		if (s->punits[i].valid)
			s->punits[n++] = s->punits[i];
	s->n_punits = n;
	for (uint32_t i = 0; i < n; i++)
		RP_IDS_EACH (cpu, rp_ids_of(&s->punits[i].cpus))
			s->seats[topo_cpu_index(t, cpu)].punit = (uint16_t)i;
}

/* ---- features of a punit --------------------------------------------------------------------- */

/* Sorts the buckets in ascending order, without empty ones, limited to the number of CPUs. */
static void sort_buckets(struct punit *p, const uint32_t cores[RP_SST_BUCKETS])
{
	uint32_t n_cpus = rp_ids_count(rp_ids_of(&p->cpus));
	p->info.n_buckets = 0;
	for (uint32_t i = 0; i < RP_SST_BUCKETS; i++) {
		uint32_t n = cores[i] < n_cpus ? cores[i] : n_cpus, at = p->info.n_buckets;
		if (!n)
			continue;
		for (; at && p->info.hp_cores[at - 1] > n; at--)
			p->info.hp_cores[at] = p->info.hp_cores[at - 1];
		p->info.hp_cores[at] = n;
		p->info.n_buckets++;
	}
}

static int read_punit(const struct sst_device *d, struct topo *t, struct sst *s, struct punit *p)
{
	struct sst_place at;
	struct sst_state state;
	uint32_t cores[RP_SST_BUCKETS] = {0};
	int r = locate_cpu(d, t, p->cpu, &at);
	if (!r)
		r = d->ops->state(d, &at, &state);
	if (r)
		return r;
	p->info.supported = state.supported;
	p->info.enabled = state.enabled & state.supported;
	p->info.priority = state.priority;
	if (p->info.supported & RP_SST_TF)
		r = d->ops->buckets(d, &at, state.level, cores);
	if (!r && (p->info.supported & RP_SST_BF))
		r = d->ops->bf_cores(d, &at, state.level, &p->bf_cores);
	for (uint32_t i = 0; !r && (p->info.supported & RP_SST_CP) && i < RP_CLOS_COUNT; i++)
		r = d->ops->get_clos(d, &at, i, &p->info.clos[i]);
	if (r)
		return r;
	sort_buckets(p, cores);
	RP_IDS_EACH (cpu, rp_ids_of(&p->cpus)) {
		uint32_t core = s->seats[topo_cpu_index(t, cpu)].core;
		if (core < BF_CORES_MAX && (p->bf_cores >> core & 1))
			rp_idset_add(&p->bf, cpu);
	}
	return 0;
}

/* Reads the classes of CPUs. Threads of a core have the same class, so one of them is read. */
static int read_classes(const struct sst_device *d, struct topo *t, struct sst *s,
			const struct punit *p)
{
	struct sst_place at = {.package = p->info.package_id, .punit = p->info.punit_id};
	RP_IDS_EACH (cpu, rp_ids_of(&p->cpus)) {
		uint16_t i = topo_cpu_index(t, cpu);
		struct rp_ids threads =
			t->levels[RP_LEVEL_CORE].units[t->cpus[i].unit[RP_LEVEL_CORE]].cpus;
		const struct seat *first = &s->seats[topo_cpu_index(t, rp_ids_first(threads))];
		uint32_t clos;
		if (rp_ids_first(threads) != cpu && first->punit == s->seats[i].punit) {
			s->seats[i].clos = first->clos;
			continue;
		}
		at.cpu = cpu;
		at.core = s->seats[i].core;
		int r = d->ops->get_assoc(d, &at, &clos);
		if (r)
			return r;
		s->seats[i].clos = (uint8_t)(clos < RP_CLOS_COUNT ? clos : RP_CLOS_COUNT);
	}
	return 0;
}

/* ---- the whole platform ---------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void give_up(struct sst *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(s->why, sizeof s->why, fmt, ap);
	va_end(ap);
	s->n_punits = 0;
}

static int read_device(const struct sst_device *d, struct topo *t, struct sst *s)
{
	int r = find_punits(d, t, s);
	if (r) {
		give_up(s, "/" ISST_PATH ": cannot find the CPUs: %s", strerror(-r));
		return r;
	}
	drop_invalid(t, s);
	for (uint32_t i = 0; i < s->n_punits; i++) {
		struct punit *p = &s->punits[i];
		r = read_punit(d, t, s, p);
		if (!r && (p->info.supported & RP_SST_CP))
			r = read_classes(d, t, s, p);
		if (r) {
			give_up(s, "/" ISST_PATH ": package %u, punit %u: %s", p->info.package_id,
				p->info.punit_id,
				r == -ENOTSUP ? "the firmware is too old" : strerror(-r));
			return r;
		}
	}
	if (!s->n_punits)
		give_up(s, "/" ISST_PATH " lists no CPU");
	return 0;
}

static void read_all(struct topo *t, struct sst *s)
{
	struct sst_device d;
	int r = sst_open(&t->root, &d);
	_close_ int fd = d.fd;
	if (r == -ENOENT)
		give_up(s, "missing /" ISST_PATH
			   ": the CPUs have no Speed Select, or its kernel driver is not loaded");
	else if (r == -EACCES || r == -EPERM)
		give_up(s, "/" ISST_PATH " may not be opened (DeviceAllow= in the service's unit)");
	else if (r == -ENOTSUP)
		give_up(s, "/" ISST_PATH " is not a supported Speed Select device");
	else if (r)
		give_up(s, "/" ISST_PATH ": %s", strerror(-r));
	else
		(void)read_device(&d, t, s);
	(void)fd;
}

static struct sst *sst_new(const struct topo *t)
{
	struct sst *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->seats = calloc(t->n_cpus, sizeof *s->seats);
	return s->seats ? s : sst_free(s);
}

static const struct sst *sst_of(struct topo *t)
{
	if (t->sst)
		return t->sst;
	struct sst *s = sst_new(t);
	if (!s)
		return NULL;
	t->sst = s;
	read_all(t, s);
	return s;
}

bool sst_is_read(const struct topo *t)
{
	return t->sst != NULL;
}

void sst_forget(struct topo *t)
{
	t->sst = sst_free(t->sst);
}

/* ---- platforms read by another process ------------------------------------------------------- */

static bool is_of(const struct topo *t, const struct rp_sst_punit *p)
{
	const uint32_t all = RP_SST_CP | RP_SST_TF | RP_SST_BF;
	if ((p->supported & ~all) || (p->enabled & ~p->supported) || p->priority > RP_SST_ORDERED ||
	    p->n_buckets > RP_SST_BUCKETS || rp_ids_empty(p->cpus) ||
	    !rp_ids_subset(p->cpus, t->sets[RP_CPUS_ONLINE]) || !rp_ids_subset(p->bf_cpus, p->cpus))
		return false;
	for (uint32_t i = 0; i < p->n_buckets; i++)
		if (!p->hp_cores[i] || p->hp_cores[i] > rp_ids_count(p->cpus) ||
		    (i && p->hp_cores[i] < p->hp_cores[i - 1]))
			return false;
	return true;
}

static int put_punit(struct topo *t, struct sst *s, const struct rp_sst_punit *info,
		     const uint8_t *clos, uint32_t n_clos)
{
	uint32_t n = s->n_punits;
	struct punit *p = &s->punits[n];
	if (!is_of(t, info))
		return -EINVAL;
	p->info = *info;
	p->cpu = rp_ids_first(info->cpus);
	p->valid = true;
	rp_idset_copy(&p->cpus, info->cpus);
	rp_idset_copy(&p->bf, info->bf_cpus);
	RP_IDS_EACH (cpu, info->cpus) {
		struct seat *seat = &s->seats[topo_cpu_index(t, cpu)];
		if (seat->punit != NO_PUNIT || cpu >= n_clos || clos[cpu] > RP_CLOS_COUNT)
			return -EINVAL;
		*seat = (struct seat){.punit = (uint16_t)n, .clos = clos[cpu]};
	}
	s->n_punits++;
	return 0;
}

int sst_put(struct topo *t, const char *why, const struct rp_sst_punit *punits, uint32_t n,
	    const uint8_t *clos, uint32_t n_clos)
{
	if (n > SST_PUNITS_MAX || !n == !*why)
		return -EINVAL;
	struct sst *s = sst_new(t);
	if (!s)
		return -ENOMEM;
	s->punits = calloc(n + 1, sizeof *s->punits);
	int r = s->punits ? 0 : -ENOMEM;
	(void)snprintf(s->why, sizeof s->why, "%s", why);
	for (uint32_t i = 0; i < t->n_cpus; i++)
		s->seats[i] = (struct seat){.punit = NO_PUNIT, .clos = RP_CLOS_COUNT};
	for (uint32_t i = 0; !r && i < n; i++) {
		if (i && !comes_after(&punits[i], &punits[i - 1]))
			r = -EINVAL;
		r = r ? r : put_punit(t, s, &punits[i], clos, n_clos);
	}
	if (r) {
		sst_free(s);
		return r;
	}
	sst_free(t->sst);
	t->sst = s;
	return 0;
}

/* ---- getters --------------------------------------------------------------------------------- */

uint32_t sst_n_punits(struct topo *t)
{
	const struct sst *s = sst_of(t);
	return s ? s->n_punits : 0;
}

const char *sst_why(struct topo *t)
{
	const struct sst *s = sst_of(t);
	return s ? s->why : "out of memory";
}

int sst_punit(struct topo *t, uint32_t index, struct rp_sst_punit *out)
{
	const struct sst *s = sst_of(t);
	if (!s || index >= s->n_punits)
		return -ENOENT;
	const struct punit *p = &s->punits[index];
	struct rp_sst_punit info = p->info;
	info.cpus = rp_ids_of(&p->cpus);
	info.bf_cpus = rp_ids_of(&p->bf);
	sized_fill(out, &info, sizeof info);
	return 0;
}

uint32_t sst_clos_of(struct topo *t, uint32_t cpu)
{
	uint16_t i = topo_cpu_index(t, cpu);
	if (!sst_n_punits(t) || i == TOPO_NO_INDEX || t->sst->seats[i].punit == NO_PUNIT ||
	    t->sst->seats[i].clos >= RP_CLOS_COUNT)
		return RP_CLOS_UNKNOWN;
	return t->sst->seats[i].clos;
}
