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

Trial__SpeedSelect *speedselect_told(struct topo *t)
{
	struct rp_ids online = topo_ids(t, RP_CPUS_ONLINE);
	uint32_t n = sst_n_punits(t), n_cpus = rp_ids_empty(online) ? 0 : rp_ids_last(online) + 1;
	struct speedselect_unit *units = calloc(n + 1, sizeof *units);
	Trial__SpeedSelect *m = malloc(sizeof *m);
	if (!m || !units)
		return NULL;
	trial__speed_select__init(m);
	m->generation = topo_generation(t);
	m->why = strdup(sst_why(t));
	m->units = (ProtobufCBinaryData){n * sizeof *units, (uint8_t *)units};
	m->clos = (ProtobufCBinaryData){n_cpus, malloc(n_cpus + 1)};
	if (!m->why || !m->clos.data)
		return NULL;
	for (struct speedselect_unit *u = units; u < units + n; u++) {
		u->punit.size = sizeof u->punit;
		if (sst_punit(t, (uint32_t)(u - units), &u->punit))
			return NULL;
		rp_idset_copy(&u->cpus, u->punit.cpus);
		rp_idset_copy(&u->bf_cpus, u->punit.bf_cpus);
	}
	for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
		uint32_t clos = sst_clos_of(t, cpu);
		m->clos.data[cpu] = (uint8_t)(clos < RP_CLOS_COUNT ? clos : RP_CLOS_COUNT);
	}
	return m;
}

/* ---- in the daemon --------------------------------------------------------------------------- */

int speedselect_take(struct topo *t, const Trial__SpeedSelect *m)
{
	uint32_t n = (uint32_t)(m->units.len / sizeof(struct speedselect_unit));
	if (m->generation != topo_generation(t))
		return -ESTALE; /* the topology has changed since */
	struct speedselect_unit *units = calloc(n + 1, sizeof *units);
	struct rp_sst_punit *punits = calloc(n + 1, sizeof *punits);
	int r = !units || !punits ? -ENOMEM : m->units.len % sizeof *units ? -EINVAL : 0;
	for (uint32_t i = 0; !r && i < n; i++) {
		struct speedselect_unit *u = &units[i];
		memcpy(u, m->units.data + i * sizeof *u, sizeof *u);
		punits[i] = u->punit;
		punits[i].cpus = rp_ids_of(&u->cpus);
		punits[i].bf_cpus = rp_ids_of(&u->bf_cpus);
		if (u->cpus.nw > RP_IDSET_WORDS || u->bf_cpus.nw > RP_IDSET_WORDS)
			r = -EINVAL;
	}
	if (!r)
		r = sst_put(t, m->why, punits, n, m->clos.data, (uint32_t)m->clos.len);
	free(units);
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
