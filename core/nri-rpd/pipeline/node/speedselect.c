/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed Select data is read in forked children, because mailboxes are slow: during the attempt of a
 * configuration, whose modules then see the same values as in the daemon, and after a topology
 * change. The child's data is validated like a module's.
 */
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/topo/sst.h"
#include "core/lib/util/log.h"

#define LOG_SOURCE "machine"

/* ---- in the child, which frees nothing ------------------------------------------------------- */

static char *text_of(struct rp_ids ids)
{
	char *text = malloc(RP_IDSET_TEXT_MAX);
	if (text)
		(void)rp_ids_format(ids, text, RP_IDSET_TEXT_MAX);
	return text;
}

static Trial__Clos *clos_of(const struct rp_clos *c)
{
	Trial__Clos *to = malloc(sizeof *to);
	if (!to)
		return NULL;
	trial__clos__init(to);
	to->min_mhz = c->min_mhz;
	to->max_mhz = c->max_mhz;
	to->weight = c->weight;
	return to;
}

static Trial__Punit *punit_of(const struct rp_sst_punit *p)
{
	Trial__Punit *to = malloc(sizeof *to);
	if (!to)
		return NULL;
	trial__punit__init(to);
	to->package = p->package_id;
	to->punit = p->punit_id;
	to->supported = p->supported;
	to->enabled = p->enabled;
	to->priority = p->priority;
	to->cpus = text_of(p->cpus);
	to->bf_cpus = text_of(p->bf_cpus);
	to->hp_cores = calloc(RP_SST_BUCKETS, sizeof *to->hp_cores);
	to->clos = calloc(RP_CLOS_COUNT, sizeof *to->clos);
	if (!to->cpus || !to->bf_cpus || !to->hp_cores || !to->clos)
		return NULL;
	for (; to->n_hp_cores < p->n_buckets; to->n_hp_cores++)
		to->hp_cores[to->n_hp_cores] = p->hp_cores[to->n_hp_cores];
	for (; to->n_clos < RP_CLOS_COUNT; to->n_clos++)
		if (!(to->clos[to->n_clos] = clos_of(&p->clos[to->n_clos])))
			return NULL;
	return to;
}

Trial__SpeedSelect *speedselect_told(struct topo *t)
{
	struct rp_ids online = topo_ids(t, RP_CPUS_ONLINE);
	uint32_t n = sst_n_punits(t), n_cpus = rp_ids_empty(online) ? 0 : rp_ids_last(online) + 1;
	Trial__SpeedSelect *m = malloc(sizeof *m);
	if (!m)
		return NULL;
	trial__speed_select__init(m);
	m->generation = topo_generation(t);
	m->why = strdup(sst_why(t));
	m->punits = calloc(n + 1, sizeof *m->punits);
	m->clos.data = malloc(n_cpus + 1);
	m->clos.len = n_cpus;
	if (!m->why || !m->punits || !m->clos.data)
		return NULL;
	for (; m->n_punits < n; m->n_punits++) {
		struct rp_sst_punit p = {.size = sizeof p};
		if (sst_punit(t, (uint32_t)m->n_punits, &p) ||
		    !(m->punits[m->n_punits] = punit_of(&p)))
			return NULL;
	}
	for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
		uint32_t clos = sst_clos_of(t, cpu);
		m->clos.data[cpu] = (uint8_t)(clos < RP_CLOS_COUNT ? clos : RP_CLOS_COUNT);
	}
	return m;
}

/* ---- in the daemon --------------------------------------------------------------------------- */

/* Reads a power unit; the CPU sets of *ret are `cpus` and `bf`. */
static int take_punit(const Trial__Punit *m, struct rp_idset *cpus, struct rp_idset *bf,
		      struct rp_sst_punit *ret)
{
	if (m->n_hp_cores > RP_SST_BUCKETS || m->n_clos != RP_CLOS_COUNT ||
	    rp_idset_parse(cpus, m->cpus, RP_CPUS_MAX) ||
	    rp_idset_parse(bf, m->bf_cpus, RP_CPUS_MAX))
		return -EINVAL;
	*ret = (struct rp_sst_punit){
		.size = sizeof *ret,
		.package_id = m->package,
		.punit_id = m->punit,
		.supported = m->supported,
		.enabled = m->enabled,
		.priority = m->priority,
		.n_buckets = (uint32_t)m->n_hp_cores,
		.cpus = rp_ids_of(cpus),
		.bf_cpus = rp_ids_of(bf),
	};
	for (uint32_t i = 0; i < m->n_hp_cores; i++)
		ret->hp_cores[i] = m->hp_cores[i];
	for (uint32_t i = 0; i < RP_CLOS_COUNT; i++)
		ret->clos[i] = (struct rp_clos){.min_mhz = m->clos[i]->min_mhz,
						.max_mhz = m->clos[i]->max_mhz,
						.weight = m->clos[i]->weight};
	return 0;
}

int speedselect_take(struct topo *t, const Trial__SpeedSelect *m)
{
	if (m->generation != topo_generation(t))
		return -ESTALE; /* the topology has changed since */
	struct rp_idset *sets = calloc(2 * m->n_punits + 1, sizeof *sets);
	struct rp_sst_punit *punits = calloc(m->n_punits + 1, sizeof *punits);
	int r = sets && punits ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < m->n_punits; i++)
		r = take_punit(m->punits[i], &sets[2 * i], &sets[2 * i + 1], &punits[i]);
	if (!r)
		r = sst_put(t, m->why, punits, (uint32_t)m->n_punits, m->clos.data,
			    (uint32_t)m->clos.len);
	free(sets);
	free(punits);
	return r;
}

void speedselect_took(struct pipeline *p, const Trial__Report *report)
{
	int r = report && report->speed_select ? speedselect_take(p->env.topo, report->speed_select)
					       : 0;
	if (r && r != -ESTALE)
		log_warning("the trial's readings of Speed Select are ignored: %s", strerror(-r));
}

/* ---- topology changes ------------------------------------------------------------------------ */

struct machine_change {
	struct pipeline *p;
	struct topo *now;
	struct topo_change change;
	void (*then)(struct pipeline *p, struct topo *now, const struct topo_change *change);
};

static int speedselect_look(struct pipeline *p, void *arg, struct buf *out, struct err *err)
{
	const struct machine_change *c = arg;
	(void)p;
	Trial__SpeedSelect *m = speedselect_told(c->now);
	uint8_t *room = m ? buf_reserve(out, trial__speed_select__get_packed_size(m)) : NULL;
	if (!room)
		return err_errno(err, -ENOMEM, "Speed Select");
	buf_commit(out, trial__speed_select__pack(m, room));
	return 0;
}

static void take_look(struct topo *now, const struct trial_result *res)
{
	Trial__SpeedSelect *m = res->outcome == TRIAL_DONE
					? trial__speed_select__unpack(NULL, res->size, res->data)
					: NULL;
	int r = m ? speedselect_take(now, m) : -EPROTO;
	if (r) {
		log_error("Speed Select is no longer usable: %s",
			  res->outcome == TRIAL_DONE ? strerror(-r) : res->err.text);
		(void)sst_put(now, "it could not be read after a hot-plug", NULL, 0, NULL, 0);
	}
	if (m)
		trial__speed_select__free_unpacked(m, NULL);
}

static void speedselect_looked(void *arg, const struct trial_result *res)
{
	struct machine_change *c = arg;
	struct pipeline *p = c->p;
	bool current = p->node.machine_change == c;
	if (current)
		p->node.machine_change = NULL;
	if (current && res) {
		take_look(c->now, res);
		c->then(p, c->now, &c->change);
	} else {
		topo_free(c->now);
	}
	free(c);
}

bool speedselect_first(struct pipeline *p, struct topo *now, const struct topo_change *change,
		       void (*then)(struct pipeline *p, struct topo *now,
				    const struct topo_change *change))
{
	struct err err = ERR_INIT;
	if (!sst_is_read(p->env.topo) || !sst_n_punits(p->env.topo))
		return false;
	struct machine_change *c = malloc(sizeof *c);
	int r = c ? 0 : err_errno(&err, -ENOMEM, "Speed Select");
	if (!r) {
		*c = (struct machine_change){p, now, *change, then};
		r = attempt_start(p,
				  &(struct attempt_spec){.what = "Speed Select was read",
							 .fn = speedselect_look,
							 .done = speedselect_looked,
							 .arg = c,
							 .topo = now},
				  &err);
	}
	if (!r) {
		p->node.machine_change = c;
		return true;
	}
	free(c);
	log_error("Speed Select cannot be read: %s", err.text);
	return false;
}

void speedselect_overtaken(struct pipeline *p)
{
	p->node.machine_change = NULL; /* speedselect_looked() frees the change */
}
