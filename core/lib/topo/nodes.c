/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory nodes: their numbers, CPUs, memory and distances. Node numbers may have gaps; the
 * kernel writes a distance for each online node in ascending order. memtype.c determines the kind
 * of memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/topo/memtype.h"
#include "core/lib/util/cleanup.h"

uint16_t topo_node_index(const struct topo *t, uint32_t node)
{
	uint32_t low = 0, high = t->n_nodes;
	while (low < high) {
		uint32_t mid = (low + high) / 2;
		if (t->nodes[mid].id == node)
			return (uint16_t)mid;
		if (t->nodes[mid].id < node)
			low = mid + 1;
		else
			high = mid;
	}
	return TOPO_NO_INDEX;
}

/* ---- node numbers ---------------------------------------------------------------------------- */

static int note_node(const char *name, void *arg)
{
	unsigned node;
	char rest;
	if (sscanf(name, "node%4u%c", &node, &rest) == 1 && node < RP_NODES_MAX)
		rp_idset_add(arg, node);
	return 0;
}

static int read_online(struct reader *r, struct rp_idset *ret)
{
	static const char path[] = NODE_DIR "/online";
	int rc = fs_read_ids(&r->t->root, path, RP_NODES_MAX, ret);
	if (rc == -ENOENT) {
		rp_idset_clear(ret);
		rc = fs_list(&r->t->root, NODE_DIR, note_node, ret);
		if (rc == -ENOENT)
			return 0;
	}
	if (rc == -EINVAL)
		return err_set(r->err, rc, "%s/%s: not a list of numbers below %u", r->t->root.path,
			       path, RP_NODES_MAX);
	return rc ? err_errno(r->err, rc, "cannot read %s/%s", r->t->root.path, path) : 0;
}

static int make_nodes(struct reader *r, struct rp_ids online)
{
	struct topo *t = r->t;
	t->n_nodes = rp_ids_count(online);
	t->nodes = arena_array(t->arena, t->n_nodes, sizeof *t->nodes);
	t->distances = arena_array(t->arena, (size_t)t->n_nodes * t->n_nodes, sizeof *t->distances);
	if (!t->nodes || !t->distances)
		return reader_no_memory(r);
	uint32_t i = 0;
	RP_IDS_EACH (node, online) {
		t->distances[i * t->n_nodes + i] = 10;
		t->nodes[i++].id = node;
	}
	return reader_keep_set(r, online, &t->sets[RP_NODES_ONLINE]);
}

/* ---- a single node --------------------------------------------------------------------------- */

static void node_path(char *buf, size_t size, const struct topo_node *n, const char *file)
{
	(void)snprintf(buf, size, "node%u/%s", n->id, file);
}

static int read_node_cpus(struct reader *r, int fd, uint16_t index, struct rp_idset *unplaced)
{
	struct topo *t = r->t;
	struct rp_idset cpus;
	char path[64];
	node_path(path, sizeof path, &t->nodes[index], "cpulist");
	int rc = fs_read_ids_at(fd, path, RP_CPUS_MAX, &cpus);
	if (rc) {
		reader_note(r, NODE_DIR "/%s: not a list of CPUs, treated as empty", path);
		return 0;
	}
	rp_idset_and(&cpus, rp_ids_of(&cpus), r->online);
	if (!rp_ids_subset(rp_ids_of(&cpus), rp_ids_of(unplaced))) {
		reader_note(r, NODE_DIR "/%s: contains CPUs of other nodes, which keep them", path);
		rp_idset_and(&cpus, rp_ids_of(&cpus), rp_ids_of(unplaced));
	}
	rp_idset_andnot(unplaced, rp_ids_of(unplaced), rp_ids_of(&cpus));
	RP_IDS_EACH (cpu, rp_ids_of(&cpus)) {
		t->cpus[topo_cpu_index(t, cpu)].node = index;
	}
	return reader_keep_set(r, rp_ids_of(&cpus), &t->nodes[index].cpus);
}

static void read_node_memory(struct reader *r, int fd, struct topo_node *n, struct rp_ids listed)
{
	char path[64], text[TOPO_FILE_MAX];
	node_path(path, sizeof path, n, "meminfo");
	ssize_t len = fs_read_at(fd, path, text, sizeof text);
	if (len >= 0 && topo_parse_meminfo(text, "MemTotal", &n->memory) == 0) {
		n->has_memory = n->memory > 0;
		return;
	}
	n->has_memory = rp_ids_has(listed, n->id);
	reader_note(r, NODE_DIR "/%s: %s, the size of its memory is unknown", path,
		    len == -ENOENT ? "missing" : "has no valid MemTotal");
}

int topo_node_used(const struct topo *t, uint32_t node, uint64_t *ret)
{
	static const char *const files[] = {"Active(file)", "Inactive(file)"};
	char path[64], text[TOPO_FILE_MAX];
	uint64_t used, part;
	(void)snprintf(path, sizeof path, NODE_DIR "/node%u/meminfo", node);
	ssize_t len = fs_read(&t->root, path, text, sizeof text);
	int r = len < 0 ? (int)len : topo_parse_meminfo(text, "MemUsed", &used);
	if (r)
		return r;
	for (unsigned i = 0; i < 2; i++)
		if (topo_parse_meminfo(text, files[i], &part) == 0 && part <= used)
			used -= part;
	*ret = used;
	return 0;
}

static void read_distances(struct reader *r, int fd, uint32_t index)
{
	struct topo *t = r->t;
	uint16_t *row = t->distances + (size_t)index * t->n_nodes;
	char path[64], text[TOPO_FILE_MAX];
	node_path(path, sizeof path, &t->nodes[index], "distance");
	ssize_t len = fs_read_at(fd, path, text, sizeof text);
	uint32_t n = 0;
	const char *p = len < 0 ? "" : text;
	for (p += strspn(p, " "); *p; p += strspn(p, " ")) {
		char *end;
		long v = strtol(p, &end, 10);
		if (end == p || v < 0 || v > TOPO_DISTANCE_MAX || n == t->n_nodes)
			break;
		row[n++] = (uint16_t)v;
		p = end;
	}
	if (n == t->n_nodes && !*p)
		return;
	reader_note(r, NODE_DIR "/%s: %s, its distances are unknown", path,
		    len == -ENOENT ? "missing" : "not one number for each online node");
	memset(row, 0, t->n_nodes * sizeof *row);
	row[index] = 10;
}

/* Makes distances symmetric: the mean of both directions, or the only known one. */
static void level_distances(struct topo *t)
{
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		for (uint32_t j = i + 1; j < t->n_nodes; j++) {
			uint16_t *a = &t->distances[(size_t)i * t->n_nodes + j];
			uint16_t *b = &t->distances[(size_t)j * t->n_nodes + i];
			uint32_t sum = (uint32_t)*a + *b;
			*a = *b = (uint16_t)(*a && *b ? sum / 2 : sum);
		}
	}
}

/* ---- unusual nodes --------------------------------------------------------------------------- */

#define OFFLINE_MAX 8u /* further possible nodes are numbers that the kernel reserves for hotplug */

/* Notes nodes that are offline. A node without CPUs whose memory is offline is only listed as
 * possible. */
static void note_offline(struct reader *r, struct rp_ids online)
{
	static const char *const lists[] = {"has_cpu", "has_memory", "has_normal_memory",
					    "possible"};
	struct rp_idset found, listed;
	char text[256];
	rp_idset_clear(&found);
	(void)fs_list(&r->t->root, NODE_DIR, note_node, &found);
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		char path[96];
		(void)snprintf(path, sizeof path, NODE_DIR "/%s", lists[i]);
		if (fs_read_ids(&r->t->root, path, RP_NODES_MAX, &listed) == 0 &&
		    rp_ids_count(rp_ids_of(&listed)) <= rp_ids_count(online) + OFFLINE_MAX)
			rp_idset_or(&found, rp_ids_of(&found), rp_ids_of(&listed));
	}
	rp_idset_andnot(&found, rp_ids_of(&found), online);
	if (rp_ids_empty(rp_ids_of(&found)))
		return;
	(void)rp_ids_format(rp_ids_of(&found), text, sizeof text);
	reader_note(r, "memory nodes %s are offline; their memory is not used", text);
}

/* Returns true if the kernel's command line has the option numa=fake. */
static bool is_emulated(const struct topo *t)
{
	_free_ char *line = NULL;
	size_t len;
	if (fs_read_all(&t->root, "proc/cmdline", TOPO_FILE_MAX, &line, &len))
		return false;
	for (const char *at = line; (at = strstr(at, "numa=fake=")); at++)
		if (at == line || at[-1] == ' ')
			return true;
	return false;
}

static void note_emulation(struct reader *r)
{
	if (is_emulated(r->t))
		reader_note(r, "the kernel emulates memory nodes (numa=fake on its command line): "
			       "each is a part of a real node, and each CPU is in one of them");
}

/* ---- derived attributes ---------------------------------------------------------------------- */

/* Adds CPUs that are in no node to the first node. */
static int place_rest(struct reader *r, struct rp_ids unplaced)
{
	struct topo *t = r->t;
	struct rp_idset cpus;
	if (rp_ids_empty(unplaced))
		return 0;
	reader_note(r, NODE_DIR ": CPU %u and %u more are in no node, treated as in node %u",
		    rp_ids_first(unplaced), rp_ids_count(unplaced) - 1, t->nodes[0].id);
	RP_IDS_EACH (cpu, unplaced) {
		t->cpus[topo_cpu_index(t, cpu)].node = 0;
	}
	rp_idset_or(&cpus, t->nodes[0].cpus, unplaced);
	return reader_keep_set(r, rp_ids_of(&cpus), &t->nodes[0].cpus);
}

static uint32_t closest_with_cpus(const struct topo *t, uint32_t index)
{
	uint32_t best = TOPO_NO_INDEX, best_distance = UINT32_MAX;
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		uint32_t d = t->distances[(size_t)index * t->n_nodes + i];
		if (rp_ids_empty(t->nodes[i].cpus))
			continue;
		if (best == TOPO_NO_INDEX || (d && d < best_distance)) {
			best = i;
			best_distance = d ? d : UINT32_MAX;
		}
	}
	return best;
}

static void place_nodes(struct topo *t)
{
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct topo_node *n = &t->nodes[i];
		uint32_t near = rp_ids_empty(n->cpus) ? closest_with_cpus(t, i) : i;
		uint32_t cpu = rp_ids_first(t->nodes[near].cpus);
		n->package_id = t->cpus[topo_cpu_index(t, cpu)].package_id;
		n->die_id = t->cpus[topo_cpu_index(t, cpu)].die_id;
	}
}

static int keep_memory_sets(struct reader *r)
{
	struct topo *t = r->t;
	struct rp_idset memory, normal;
	rp_idset_clear(&memory);
	rp_idset_clear(&normal);
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		if (t->nodes[i].has_memory)
			rp_idset_add(&memory, t->nodes[i].id);
		if (t->nodes[i].normal)
			rp_idset_add(&normal, t->nodes[i].id);
	}
	int rc = reader_keep_set(r, rp_ids_of(&memory), &t->sets[RP_NODES_MEMORY]);
	return rc ? rc : reader_keep_set(r, rp_ids_of(&normal), &t->sets[RP_NODES_NORMAL]);
}

static void read_total(struct reader *r)
{
	struct topo *t = r->t;
	char text[TOPO_FILE_MAX];
	if (fs_read(&t->root, "proc/meminfo", text, sizeof text) >= 0 &&
	    topo_parse_meminfo(text, "MemTotal", &t->memory) == 0)
		return;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		t->memory += t->nodes[i].memory;
	reader_note(r, "proc/meminfo: has no MemTotal, using the sum of the nodes");
}

/* Reads a list of nodes that may be missing; 0: it was read. */
static int read_node_list(struct reader *r, int fd, const char *file, struct rp_idset *ret)
{
	int rc = fs_read_ids_at(fd, file, RP_NODES_MAX, ret);
	if (rc) {
		rp_idset_clear(ret);
		if (rc != -ENOENT)
			reader_note(r, NODE_DIR "/%s: not a list of nodes, ignored", file);
	}
	return rc;
}

static int read_nodes(struct reader *r)
{
	struct topo *t = r->t;
	_close_ int fd = fs_open_dir(&t->root, NODE_DIR);
	if (fd < 0)
		return err_errno(r->err, fd, "cannot open %s/" NODE_DIR, t->root.path);
	struct rp_idset unplaced, memory, normal;
	rp_idset_copy(&unplaced, r->online);
	(void)read_node_list(r, fd, "has_memory", &memory);
	bool tells_normal = read_node_list(r, fd, "has_normal_memory", &normal) == 0;
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct topo_node *n = &t->nodes[i];
		int rc = read_node_cpus(r, fd, (uint16_t)i, &unplaced);
		if (rc)
			return rc;
		read_node_memory(r, fd, n, rp_ids_of(&memory));
		read_distances(r, fd, i);
		n->normal =
			n->has_memory && (!tells_normal || rp_ids_has(rp_ids_of(&normal), n->id));
	}
	level_distances(t);
	return place_rest(r, rp_ids_of(&unplaced));
}

/* Makes node 0 of the whole machine, for a kernel without NUMA. */
static int make_one_node(struct reader *r)
{
	struct topo *t = r->t;
	struct topo_node *n = &t->nodes[0];
	n->cpus = r->online;
	n->memory = t->memory;
	n->has_memory = n->normal = true;
	for (uint32_t i = 0; i < t->n_cpus; i++)
		t->cpus[i].node = 0;
	return 0;
}

int reader_nodes(struct reader *r)
{
	struct rp_idset online;
	int rc = read_online(r, &online);
	if (rc)
		return rc;
	bool numa = !rp_ids_empty(rp_ids_of(&online));
	if (!numa)
		rp_idset_add(&online, 0);
	rc = make_nodes(r, rp_ids_of(&online));
	if (rc)
		return rc;
	if (numa) {
		note_emulation(r);
		note_offline(r, rp_ids_of(&online));
		rc = read_nodes(r);
		read_total(r);
	} else {
		read_total(r);
		rc = make_one_node(r);
	}
	if (rc)
		return rc;
	place_nodes(r->t);
	reader_hide_device_memory(r);
	rc = reader_memory_types(r);
	return rc ? rc : keep_memory_sets(r);
}

/* ---- huge pages ------------------------------------------------------------------------------ */

#define HUGE_DIR "sys/kernel/mm/hugepages"
#define HUGE_NAME "hugepages-%" PRIu64 "kB"

int topo_hugepages(const struct topo *t, uint32_t node, uint64_t page, uint64_t *ret_total,
		   uint64_t *ret_free)
{
	static const char *const files[] = {"nr_hugepages", "free_hugepages"};
	int64_t n[2];
	for (unsigned i = 0; i < 2; i++) {
		char path[128];
		(void)snprintf(path, sizeof path, NODE_DIR "/node%u/hugepages/" HUGE_NAME "/%s",
			       node, page >> 10, files[i]);
		int r = fs_read_i64(&t->root, path, &n[i]);
		if (r == -ENOENT && t->n_nodes == 1) { /* a kernel without NUMA */
			(void)snprintf(path, sizeof path, HUGE_DIR "/" HUGE_NAME "/%s", page >> 10,
				       files[i]);
			r = fs_read_i64(&t->root, path, &n[i]);
		}
		if (r || n[i] < 0 || __builtin_mul_overflow(n[i], (int64_t)page, &n[i]))
			return -ENOENT;
	}
	*ret_total = (uint64_t)n[0];
	*ret_free = (uint64_t)n[1];
	return 0;
}

struct huge_sizes {
	uint64_t above, least; /* above: size to exceed; least: the smallest larger size, 0: none */
};

static int note_size(const char *name, void *arg)
{
	struct huge_sizes *s = arg;
	uint64_t kib;
	char rest;
	if (sscanf(name, "hugepages-%15" SCNu64 "kB%c", &kib, &rest) == 1 && kib << 10 > s->above &&
	    (!s->least || kib << 10 < s->least))
		s->least = kib << 10;
	return 0;
}

uint64_t topo_hugepage_size(const struct topo *t, uint32_t index)
{
	struct huge_sizes s = {0};
	char path[64];
	(void)snprintf(path, sizeof path, NODE_DIR "/node%u/hugepages",
		       t->n_nodes ? t->nodes[0].id : 0);
	for (uint32_t i = 0; i <= index; i++) {
		s.above = s.least;
		s.least = 0;
		if (fs_list(&t->root, path, note_size, &s) == -ENOENT)
			(void)fs_list(&t->root, HUGE_DIR, note_size, &s);
		if (!s.least)
			return 0;
	}
	return s.least;
}
