/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads caches, which are most of the files: about twenty per core. Three rules reduce them. A
 * cache is read through the first CPU that has it. Caches private to a core have equal level, type
 * and size in all cores of one kind in a die, so they are copied from a *model*, the first such
 * core. The sharers of a first-level cache are copied from the model, too, if that core's is
 * private and no CPU is offline, because an offline sibling could make a shared cache look private.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/topo/impl.h"

#define ID_UNKNOWN UINT32_MAX

struct shape {
	uint64_t bytes;
	uint8_t level, type;
	bool known; /* the members above are valid, from a cache private to its core */
	bool no_id; /* the kernel has no ids for caches of this index */
};

struct model {
	struct model *next;
	uint32_t package_id, die_id;
	uint16_t capacity;
	uint8_t kind;
	uint32_t indices; /* a bit for each existing indexN */
	struct shape shapes[TOPO_CACHE_INDEX_MAX];
};

struct caches {
	struct reader *r;
	struct model *models;
	bool all_online;
	struct rp_idset seen[TOPO_CACHE_INDEX_MAX]; /* CPUs whose cache has been read, by index */
	struct rp_idset *taken[TOPO_CACHE_LEVEL_MAX + 1][RP_CACHE_UNIFIED + 1];
	struct topo_cache *list;
	uint32_t n, n_room;
};

/* ---- files of one cache ---------------------------------------------------------------------- */

static void index_path(char *buf, size_t size, uint32_t cpu, uint32_t index, const char *file)
{
	(void)snprintf(buf, size, "cpu%u/cache/index%u/%s", cpu, index, file);
}

static int parse_type(const char *text, uint8_t *ret)
{
	static const char *const names[] = {
		[RP_CACHE_DATA] = "Data",
		[RP_CACHE_INSTRUCTION] = "Instruction",
		[RP_CACHE_UNIFIED] = "Unified",
	};
	for (uint8_t i = RP_CACHE_DATA; i <= RP_CACHE_UNIFIED; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Reads level, type and size. A missing size is unknown, 0. */
static int read_shape(struct caches *s, uint32_t cpu, uint32_t index, struct shape *ret)
{
	char path[80], text[64];
	uint32_t level;
	index_path(path, sizeof path, cpu, index, "level");
	int rc = topo_read_u32_at(s->r->cpu_fd, path, &level);
	if (!rc && (level == 0 || level > TOPO_CACHE_LEVEL_MAX))
		rc = -ERANGE;
	if (!rc) {
		index_path(path, sizeof path, cpu, index, "type");
		ssize_t n = fs_read_at(s->r->cpu_fd, path, text, sizeof text);
		rc = n < 0 ? (int)n : parse_type(text, &ret->type);
	}
	if (rc) {
		reader_note(s->r, CPU_DIR "/%s: invalid content, ignoring the cache", path);
		return rc;
	}
	ret->level = (uint8_t)level;
	ret->bytes = 0;
	index_path(path, sizeof path, cpu, index, "size");
	ssize_t n = fs_read_at(s->r->cpu_fd, path, text, sizeof text);
	if (n < 0 || topo_parse_size(text, &ret->bytes))
		reader_note(s->r, CPU_DIR "/%s: not a size, treated as unknown", path);
	return 0;
}

static int read_sharers(struct caches *s, uint32_t cpu, uint32_t index, struct rp_idset *ret)
{
	char path[80];
	index_path(path, sizeof path, cpu, index, "shared_cpu_list");
	int rc = fs_read_ids_at(s->r->cpu_fd, path, RP_CPUS_MAX, ret);
	if (rc || !rp_ids_has(rp_ids_of(ret), cpu)) {
		reader_note(s->r, CPU_DIR "/%s: %s, ignoring the cache", path,
			    rc ? "not a list of CPUs" : "does not contain the CPU itself");
		return rc ? rc : -EINVAL;
	}
	rp_idset_and(ret, rp_ids_of(ret), s->r->online);
	return 0;
}

/* Reads the kernel's id of a cache; ID_UNKNOWN if there is none (some guests, some ARM
 * machines). */
static uint32_t read_cache_id(struct caches *s, uint32_t cpu, uint32_t index, struct shape *shape)
{
	char path[80];
	uint32_t id;
	if (shape->no_id)
		return ID_UNKNOWN;
	index_path(path, sizeof path, cpu, index, "id");
	int rc = topo_read_u32_at(s->r->cpu_fd, path, &id);
	if (rc == -ENOENT)
		shape->no_id = true;
	else if (rc)
		reader_note(s->r, CPU_DIR "/%s: not an id, ignored", path);
	return rc ? ID_UNKNOWN : id;
}

/* ---- models ---------------------------------------------------------------------------------- */

struct listing {
	uint32_t indices;
};

static int note_index(const char *name, void *arg)
{
	struct listing *l = arg;
	unsigned index;
	char rest;
	if (sscanf(name, "index%2u%c", &index, &rest) == 1 && index < TOPO_CACHE_INDEX_MAX)
		l->indices |= 1u << index;
	return 0;
}

static struct model *model_of(struct caches *s, uint32_t cpu)
{
	struct topo *t = s->r->t;
	const struct topo_cpu *c = &t->cpus[topo_cpu_index(t, cpu)];
	struct model *m = s->models;
	for (; m; m = m->next)
		if (m->package_id == c->package_id && m->die_id == c->die_id &&
		    m->kind == c->kind && m->capacity == c->capacity)
			return m;
	m = arena_zero(s->r->scratch, struct model);
	if (!m)
		return NULL;
	m->package_id = c->package_id;
	m->die_id = c->die_id;
	m->kind = c->kind;
	m->capacity = c->capacity;
	m->next = s->models;
	s->models = m;
	char path[80];
	struct listing l = {0};
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cache", cpu);
	int rc = fs_list(&t->root, path, note_index, &l);
	if (rc && rc != -ENOENT)
		reader_note(s->r, "%s: cannot be listed, ignoring its caches", path);
	m->indices = l.indices;
	return m;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Returns the CPUs that already have a cache of this level and type: a CPU cannot have two of
 * them. */
static struct rp_idset *taken_by(struct caches *s, const struct topo_cache *c)
{
	struct rp_idset **set = &s->taken[c->level][c->type];
	if (!*set)
		*set = reader_new_set(s->r);
	return *set;
}

static int add_cache(struct caches *s, struct topo_cache c, uint32_t cpu, struct rp_idset *sharers)
{
	struct rp_idset *taken = taken_by(s, &c);
	if (!taken)
		return reader_no_memory(s->r);
	if (rp_ids_overlap(rp_ids_of(sharers), rp_ids_of(taken))) {
		rp_idset_andnot(sharers, rp_ids_of(sharers), rp_ids_of(taken));
		reader_note(s->r,
			    CPU_DIR
			    "/cpu%u: shares a level %u cache with CPUs that list another cache",
			    cpu, c.level);
		if (rp_ids_empty(rp_ids_of(sharers)))
			return 0;
	}
	rp_idset_or(taken, rp_ids_of(taken), rp_ids_of(sharers));
	if (c.id == ID_UNKNOWN)
		c.id = rp_ids_first(rp_ids_of(sharers));
	if (s->n == s->n_room) {
		uint32_t room = s->n_room ? s->n_room * 2 : 64;
		struct topo_cache *list = arena_array(s->r->scratch, room, sizeof *list);
		if (!list)
			return reader_no_memory(s->r);
		if (s->n)
			memcpy(list, s->list, s->n * sizeof *list);
		s->list = list;
		s->n_room = room;
	}
	int rc = reader_keep_set(s->r, rp_ids_of(sharers), &c.cpus);
	if (!rc)
		s->list[s->n++] = c;
	return rc;
}

/* Reads the cache `index` of a CPU that is not a member of any such cache yet. */
static int read_cache(struct caches *s, uint32_t cpu, uint32_t index, struct model *m,
		      struct rp_ids core)
{
	struct shape *model = &m->shapes[index], shape = *model;
	struct rp_idset sharers;
	if (s->all_online && model->known && model->level == 1)
		rp_idset_copy(&sharers, core);
	else if (read_sharers(s, cpu, index, &sharers))
		return 0;
	bool is_private = rp_ids_equal(rp_ids_of(&sharers), core);
	if (!is_private || !model->known) {
		if (read_shape(s, cpu, index, &shape))
			return 0;
		shape.known = is_private;
		if (is_private)
			*model = shape;
	}
	/* Record the CPUs after these files were read: if a file of the first CPU is faulty, the
	 * next CPU is tried. */
	rp_idset_or(&s->seen[index], rp_ids_of(&s->seen[index]), rp_ids_of(&sharers));
	struct topo_cache c = {
		.bytes = shape.bytes,
		.level = shape.level,
		.type = shape.type,
		.id = read_cache_id(s, cpu, index, model),
	};
	return add_cache(s, c, cpu, &sharers);
}

static int read_cpu_caches(struct caches *s, uint32_t cpu, struct rp_ids core)
{
	uint32_t missing = 0;
	struct model *m = model_of(s, cpu);
	if (!m)
		return reader_no_memory(s->r);
	for (uint32_t i = 0; i < TOPO_CACHE_INDEX_MAX; i++)
		if (m->indices & 1u << i && !rp_ids_has(rp_ids_of(&s->seen[i]), cpu))
			missing |= 1u << i;
	for (uint32_t i = 0; missing >> i; i++) {
		int rc = missing >> i & 1 ? read_cache(s, cpu, i, m, core) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

static int by_level_type_cpu(const void *pa, const void *pb)
{
	const struct topo_cache *a = pa, *b = pb;
	if (a->level != b->level)
		return a->level < b->level ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	uint32_t first_a = rp_ids_first(a->cpus), first_b = rp_ids_first(b->cpus);
	return first_a < first_b ? -1 : first_a > first_b;
}

int reader_caches(struct reader *r)
{
	struct topo *t = r->t;
	struct caches *s = arena_zero(r->scratch, struct caches);
	if (!s)
		return reader_no_memory(r);
	s->r = r;
	s->all_online = rp_ids_equal(r->online, t->sets[RP_CPUS_PRESENT]);
	for (uint32_t i = 0; i < t->n_cpus; i++) {
		struct rp_ids core =
			t->levels[RP_LEVEL_CORE].units[t->cpus[i].unit[RP_LEVEL_CORE]].cpus;
		int rc = read_cpu_caches(s, r->cpu_ids[i], core);
		if (rc)
			return rc;
	}
	if (!s->n)
		return 0;
	qsort(s->list, s->n, sizeof *s->list, by_level_type_cpu);
	t->caches = arena_memdup(t->arena, s->list, s->n * sizeof *s->list);
	if (!t->caches)
		return reader_no_memory(r);
	t->n_caches = s->n;
	return 0;
}
