/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads packages, dies, clusters and cores. Of the CPUs that share a core only the first is read,
 * and a package or die is read once: the list of its members covers the others. Older kernels lack
 * these lists; then each core is read.
 */
#include <stddef.h>
#include <stdio.h>

#include "core/lib/topo/impl.h"

struct shared_fact {
	const char *id_file;
	const char *list_files[2]; /* the later one for older kernels */
	size_t offset; /* offset of the id in struct topo_cpu */
	bool expected; /* a missing file is worth a note */
};

static const struct shared_fact package_fact = {"physical_package_id",
						{"package_cpus_list", "core_siblings_list"},
						offsetof(struct topo_cpu, package_id),
						true};
static const struct shared_fact die_fact = {
	"die_id", {"die_cpus_list", NULL}, offsetof(struct topo_cpu, die_id), false};

/* CPUs whose attributes are complete. */
struct progress {
	struct rp_idset in_core, has_package, has_die;
};

static uint32_t *fact_of(struct reader *r, uint32_t cpu, size_t offset)
{
	return (uint32_t *)(void *)((char *)&r->t->cpus[topo_cpu_index(r->t, cpu)] + offset);
}

/*
 * Reads a number below topology/. Kernels write -1 for "unknown": -1 and a missing file give the
 * default. Returns true if there was a number.
 */
static bool read_id(struct reader *r, uint32_t cpu, const char *file, bool expected,
		    uint32_t otherwise, uint32_t *ret)
{
	char path[64];
	int64_t v;
	(void)snprintf(path, sizeof path, "cpu%u/topology/%s", cpu, file);
	int rc = fs_read_i64_at(r->cpu_fd, path, &v);
	*ret = otherwise;
	if (rc == 0 && v >= 0 && v < UINT32_MAX) {
		*ret = (uint32_t)v;
		return true;
	}
	if (rc ? rc != -ENOENT || expected : v != -1)
		reader_note(r, CPU_DIR "/%s: %s, treated as %u", path,
			    rc == -ENOENT ? "missing" : "not an id", otherwise);
	return false;
}

/* Reads a list below topology/, which has to contain the CPU itself, and keeps its online CPUs.
 * Returns false if there is no such list. */
static bool read_members(struct reader *r, uint32_t cpu, const char *const files[2],
			 struct rp_idset *ret)
{
	for (unsigned i = 0; i < 2 && files[i]; i++) {
		char path[64];
		(void)snprintf(path, sizeof path, "cpu%u/topology/%s", cpu, files[i]);
		int rc = fs_read_ids_at(r->cpu_fd, path, RP_CPUS_MAX, ret);
		if (rc == -ENOENT)
			continue;
		if (rc == 0 && rp_ids_has(rp_ids_of(ret), cpu)) {
			rp_idset_and(ret, rp_ids_of(ret), r->online);
			return true;
		}
		reader_note(r, CPU_DIR "/%s: %s, ignored", path,
			    rc ? "not a list of CPUs" : "does not contain the CPU itself");
		return false;
	}
	return false;
}

/* Determines the package or die of a core and of the CPUs that share it. */
static void read_shared(struct reader *r, uint32_t cpu, const struct shared_fact *fact,
			struct rp_idset *known)
{
	struct rp_idset members;
	uint32_t id;
	if (rp_ids_has(rp_ids_of(known), cpu))
		return;
	(void)read_id(r, cpu, fact->id_file, fact->expected, 0, &id);
	if (read_members(r, cpu, fact->list_files, &members)) {
		rp_idset_andnot(&members, rp_ids_of(&members), rp_ids_of(known));
	} else {
		rp_idset_clear(&members);
		rp_idset_add(&members, cpu);
	}
	RP_IDS_EACH (c, rp_ids_of(&members)) {
		*fact_of(r, c, fact->offset) = id;
	}
	rp_idset_or(known, rp_ids_of(known), rp_ids_of(&members));
}

/* Puts a sibling where the core's first CPU is, even if other lists contradict. */
static void join_core(struct reader *r, uint32_t first, uint32_t cpu, struct progress *p)
{
	struct topo_cpu *head = &r->t->cpus[topo_cpu_index(r->t, first)];
	struct topo_cpu *c = &r->t->cpus[topo_cpu_index(r->t, cpu)];
	if ((rp_ids_has(rp_ids_of(&p->has_package), cpu) && c->package_id != head->package_id) ||
	    (rp_ids_has(rp_ids_of(&p->has_die), cpu) && c->die_id != head->die_id))
		reader_note(r,
			    "CPUs %u and %u share a core but not a die: treating CPU %u as on the "
			    "die of CPU %u",
			    first, cpu, cpu, first);
	c->package_id = head->package_id;
	c->die_id = head->die_id;
	c->cluster_id = head->cluster_id;
	c->core_id = head->core_id;
	c->unit[RP_LEVEL_CORE] = head->unit[RP_LEVEL_CORE];
	rp_idset_add(&p->has_package, cpu);
	rp_idset_add(&p->has_die, cpu);
	rp_idset_add(&p->in_core, cpu);
}

static void read_core(struct reader *r, uint32_t cpu, uint16_t number, struct progress *p)
{
	static const char *const lists[2] = {"core_cpus_list", "thread_siblings_list"};
	struct topo_cpu *head = &r->t->cpus[topo_cpu_index(r->t, cpu)];
	struct rp_idset siblings;
	if (!read_members(r, cpu, lists, &siblings)) {
		rp_idset_clear(&siblings);
		rp_idset_add(&siblings, cpu);
	}
	if (rp_ids_overlap(rp_ids_of(&siblings), rp_ids_of(&p->in_core))) {
		reader_note(r, CPU_DIR "/cpu%u: shares a core with CPUs that do not list CPU %u",
			    cpu, cpu);
		rp_idset_andnot(&siblings, rp_ids_of(&siblings), rp_ids_of(&p->in_core));
	}
	read_shared(r, cpu, &package_fact, &p->has_package);
	read_shared(r, cpu, &die_fact, &p->has_die);
	(void)read_id(r, cpu, "cluster_id", false, 0, &head->cluster_id);
	(void)read_id(r, cpu, "core_id", true, cpu, &head->core_id);
	head->unit[RP_LEVEL_CORE] = number;
	RP_IDS_EACH (c, rp_ids_of(&siblings)) {
		join_core(r, cpu, c, p);
	}
}

static int build_cores(struct reader *r)
{
	struct topo *t = r->t;
	uint64_t *keys = arena_array(r->scratch, t->n_cpus, sizeof *keys);
	uint32_t *ids = arena_array(r->scratch, t->n_cpus, sizeof *ids);
	if (!keys || !ids)
		return reader_no_memory(r);
	for (uint32_t i = 0; i < t->n_cpus; i++) {
		keys[i] = t->cpus[i].unit[RP_LEVEL_CORE];
		ids[i] = t->cpus[i].core_id;
	}
	return reader_level(r, RP_LEVEL_CORE, keys, ids);
}

int reader_cpus(struct reader *r)
{
	struct progress *p = arena_zero(r->scratch, struct progress);
	r->core_head = arena_array(r->scratch, r->t->n_cpus, sizeof *r->core_head);
	if (!p || !r->core_head)
		return reader_no_memory(r);
	for (uint16_t i = 0; i < r->t->n_cpus; i++) {
		if (rp_ids_has(rp_ids_of(&p->in_core), r->cpu_ids[i]))
			continue;
		r->core_head[r->n_cores] = i;
		read_core(r, r->cpu_ids[i], (uint16_t)r->n_cores++, p);
	}
	return build_cores(r);
}
