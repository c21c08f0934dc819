/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the differences between two snapshots. */

#include "core/lib/topo/impl.h"

static bool diff_set(const struct topo *old, const struct topo *now, uint32_t which,
		     struct rp_idset *more, struct rp_idset *less)
{
	rp_idset_andnot(more, now->sets[which], old->sets[which]);
	rp_idset_andnot(less, old->sets[which], now->sets[which]);
	return !rp_ids_equal(old->sets[which], now->sets[which]);
}

/* Returns true if both CPUs share their units with the same CPUs. Numbers of units shift when CPUs
 * before them appear or disappear, so they are not compared. */
static bool same_units(const struct topo *old, const struct topo_cpu *a, const struct topo *now,
		       const struct topo_cpu *b, struct rp_ids both)
{
	for (uint32_t level = 0; level < RP_N_LEVELS; level++) {
		struct rp_idset x, y;
		bool none_a = a->unit[level] == TOPO_NO_UNIT,
		     none_b = b->unit[level] == TOPO_NO_UNIT;
		if (none_a != none_b)
			return false;
		if (none_a)
			continue;
		const struct topo_unit *u = &old->levels[level].units[a->unit[level]];
		const struct topo_unit *v = &now->levels[level].units[b->unit[level]];
		rp_idset_and(&x, u->cpus, both);
		rp_idset_and(&y, v->cpus, both);
		if (!rp_ids_equal(rp_ids_of(&x), rp_ids_of(&y)))
			return false;
	}
	return true;
}

static bool same_cpu(const struct topo *old, const struct topo_cpu *a, const struct topo *now,
		     const struct topo_cpu *b, struct rp_ids both)
{
	return a->package_id == b->package_id && a->die_id == b->die_id &&
	       a->cluster_id == b->cluster_id && a->core_id == b->core_id && a->kind == b->kind &&
	       a->capacity == b->capacity && old->nodes[a->node].id == now->nodes[b->node].id &&
	       same_units(old, a, now, b, both);
}

static bool cpus_moved(const struct topo *old, const struct topo *now)
{
	struct rp_idset both, x, y;
	rp_idset_and(&both, old->sets[RP_CPUS_ONLINE], now->sets[RP_CPUS_ONLINE]);
	static const uint32_t sets[] = {RP_CPUS_ISOLATED, RP_CPUS_NOHZ_FULL};
	for (unsigned i = 0; i < 2; i++) {
		rp_idset_and(&x, old->sets[sets[i]], rp_ids_of(&both));
		rp_idset_and(&y, now->sets[sets[i]], rp_ids_of(&both));
		if (!rp_ids_equal(rp_ids_of(&x), rp_ids_of(&y)))
			return true;
	}
	RP_IDS_EACH (cpu, rp_ids_of(&both)) {
		if (!same_cpu(old, &old->cpus[topo_cpu_index(old, cpu)], now,
			      &now->cpus[topo_cpu_index(now, cpu)], rp_ids_of(&both)))
			return true;
	}
	return false;
}

static bool same_memory(const struct topo_node *a, const struct topo_node *b)
{
	return a->memory == b->memory && a->type == b->type && a->normal == b->normal &&
	       a->has_memory == b->has_memory;
}

static void diff_nodes(const struct topo *old, const struct topo *now, struct topo_change *ret)
{
	rp_idset_clear(&ret->nodes_resized);
	ret->distances = false;
	for (uint32_t i = 0; i < old->n_nodes; i++) {
		uint16_t k = topo_node_index(now, old->nodes[i].id);
		if (k == TOPO_NO_INDEX)
			continue;
		if (!same_memory(&old->nodes[i], &now->nodes[k]))
			rp_idset_add(&ret->nodes_resized, old->nodes[i].id);
		for (uint32_t j = 0; j < old->n_nodes; j++) {
			uint16_t l = topo_node_index(now, old->nodes[j].id);
			if (l != TOPO_NO_INDEX &&
			    old->distances[(size_t)i * old->n_nodes + j] !=
				    now->distances[(size_t)k * now->n_nodes + l])
				ret->distances = true;
		}
	}
}

static bool same_caches(const struct topo *old, const struct topo *now)
{
	if (old->n_caches != now->n_caches)
		return false;
	for (uint32_t i = 0; i < old->n_caches; i++) {
		const struct topo_cache *a = &old->caches[i], *b = &now->caches[i];
		if (a->id != b->id || a->level != b->level || a->type != b->type ||
		    a->bytes != b->bytes || !rp_ids_equal(a->cpus, b->cpus))
			return false;
	}
	return true;
}

bool topo_diff(const struct topo *old, const struct topo *now, struct topo_change *ret)
{
	struct rp_idset more, less;
	bool any = diff_set(old, now, RP_CPUS_ONLINE, &ret->cpus_on, &ret->cpus_off);
	any |= diff_set(old, now, RP_NODES_ONLINE, &ret->nodes_on, &ret->nodes_off);
	ret->cpus_moved = cpus_moved(old, now);
	diff_nodes(old, now, ret);
	any |= ret->cpus_moved || ret->distances || !rp_ids_empty(rp_ids_of(&ret->nodes_resized));
	any |= diff_set(old, now, RP_CPUS_PRESENT, &more, &less);
	any |= diff_set(old, now, RP_CPUS_POSSIBLE, &more, &less);
	return any || old->memory != now->memory || !same_caches(old, now);
}
