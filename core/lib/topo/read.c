/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a snapshot from a root: the steps in order, and functions that all of them use. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/topo/impl.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/str.h"

#define ARENA_BLOCK 16384u
#define SCRATCH_BLOCK 65536u

/* ---- functions used by the steps ------------------------------------------------------------- */

int reader_no_memory(struct reader *r)
{
	return err_set(r->err, -ENOMEM,
		       "cannot store the topology: out of memory or over the limit of %u MiB",
		       TOPO_MEMORY_MAX >> 20);
}

void reader_note(struct reader *r, const char *fmt, ...)
{
	char text[512];
	struct topo *t = r->t;
	va_list ap;
	if (t->n_notes == TOPO_NOTES_MAX - 1) {
		r->n_more_notes++;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	const char *kept = arena_strdup(t->arena, text);
	if (kept)
		t->notes[t->n_notes++] = kept;
}

int reader_keep_set(struct reader *r, struct rp_ids v, struct rp_ids *ret)
{
	return set_pool_add(&r->pool, v, ret) ? reader_no_memory(r) : 0;
}

struct rp_idset *reader_new_set(struct reader *r)
{
	return arena_zero(r->scratch, struct rp_idset);
}

int topo_read_u32_at(int dirfd, const char *path, uint32_t *ret)
{
	int64_t v;
	int rc = fs_read_i64_at(dirfd, path, &v);
	if (rc)
		return rc;
	if (v < 0 || v > UINT32_MAX - 1)
		return -ERANGE;
	*ret = (uint32_t)v;
	return 0;
}

/* Parses the digits at *text as a number that does not exceed limit after a multiplication by
 * unit. */
static int parse_amount(const char **text, uint64_t unit, uint64_t limit, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0;
	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (v > limit / unit / 10)
			return -EINVAL;
		v = v * 10 + (uint64_t)(*p - '0');
	}
	*text = p;
	*ret = v;
	return v > limit / unit ? -EINVAL : 0;
}

int topo_parse_meminfo(const char *text, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);
	const char *p = text;
	while ((p = strstr(p, name))) {
		bool starts = p == text || p[-1] == ' ' || p[-1] == '\n';
		p += n;
		if (starts && *p == ':')
			break;
	}
	if (!p)
		return -ENOENT;
	p += 1 + strspn(p + 1, " \t");
	uint64_t kb;
	if (parse_amount(&p, 1024, INT64_MAX, &kb) || strncmp(p, " kB", 3) != 0)
		return -EINVAL;
	*ret = kb * 1024;
	return 0;
}

int topo_parse_size(const char *text, uint64_t *ret)
{
	static const struct {
		char suffix;
		unsigned shift;
	} units[] = {{'\0', 0}, {'K', 10}, {'M', 20}, {'G', 30}};
	uint64_t v;
	if (parse_amount(&text, 1, INT64_MAX, &v))
		return -EINVAL;
	for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (text[0] != units[i].suffix || (text[0] && text[1]))
			continue;
		if (v > (uint64_t)INT64_MAX >> units[i].shift)
			return -EINVAL;
		*ret = v << units[i].shift;
		return 0;
	}
	return -EINVAL;
}

/* ---- the sets of CPUs ------------------------------------------------------------------------ */

static int bad_list(struct reader *r, int rc, const char *path, uint32_t max)
{
	if (rc == -EINVAL)
		return err_set(r->err, rc, "%s/%s: not a list of numbers below %u", r->t->root.path,
			       path, max);
	return err_errno(r->err, rc, "cannot read %s/%s", r->t->root.path, path);
}

/* Reads the online CPUs, or returns -errno: without them there is no snapshot. */
static int read_online(struct reader *r, struct rp_idset *ret)
{
	static const char *const files[] = {"online", "present"};
	for (unsigned i = 0; i < 2; i++) {
		int rc = fs_read_ids_at(r->cpu_fd, files[i], RP_CPUS_MAX, ret);
		if (rc == -ENOENT)
			continue;
		char path[64];
		(void)snprintf(path, sizeof path, CPU_DIR "/%s", files[i]);
		if (rc)
			return bad_list(r, rc, path, RP_CPUS_MAX);
		if (rp_ids_empty(rp_ids_of(ret)))
			return err_set(r->err, -EINVAL, "%s/%s: lists no CPU", r->t->root.path,
				       path);
		if (i)
			reader_note(r, CPU_DIR
				    "/online is missing: treating all present CPUs as online");
		return 0;
	}
	return err_set(r->err, -ENOENT,
		       "%s/" CPU_DIR ": neither online nor present exists: is sysfs mounted there?",
		       r->t->root.path);
}

/* Reads a list that may be missing; invalid contents are only noted. */
static void read_optional(struct reader *r, const char *file, struct rp_idset *ret)
{
	int rc = fs_read_ids_at(r->cpu_fd, file, RP_CPUS_MAX, ret);
	if (!rc)
		return;
	rp_idset_clear(ret);
	char text[RP_CPUS_MAX / 8];
	/* Kernels print a mask that they never allocated in this way, padded with blanks. */
	if (rc == -EINVAL && fs_read_at(r->cpu_fd, file, text, sizeof text) >= 0 &&
	    strcmp(text + strspn(text, " "), "(null)") == 0)
		return;
	if (rc != -ENOENT)
		reader_note(r, CPU_DIR "/%s: not a list of CPUs, treated as empty", file);
}

static int read_keep(struct reader *r, uint32_t which, const struct rp_idset *set)
{
	return reader_keep_set(r, rp_ids_of(set), &r->t->sets[which]);
}

static int index_cpus(struct reader *r)
{
	struct topo *t = r->t;
	t->n_cpus = rp_ids_count(r->online);
	t->n_cpu_index = rp_ids_last(r->online) + 1;
	t->cpus = arena_array(t->arena, t->n_cpus, sizeof *t->cpus);
	t->cpu_index = arena_array(t->arena, t->n_cpu_index, sizeof *t->cpu_index);
	r->cpu_ids = arena_array(r->scratch, t->n_cpus, sizeof *r->cpu_ids);
	if (!t->cpus || !t->cpu_index || !r->cpu_ids)
		return reader_no_memory(r);
	memset(t->cpu_index, 0xff, t->n_cpu_index * sizeof *t->cpu_index);
	uint16_t i = 0;
	RP_IDS_EACH (cpu, r->online) {
		memset(t->cpus[i].unit, 0xff, sizeof t->cpus[i].unit);
		t->cpus[i].node = TOPO_NO_INDEX;
		t->cpus[i].epp = RP_EPP_UNKNOWN;
		r->cpu_ids[i] = cpu;
		t->cpu_index[cpu] = i++;
	}
	return 0;
}

/* Reads one part of the topology; called in this order. Returns 0 or -errno with err filled. */
static int reader_cpu_sets(struct reader *r)
{
	struct rp_idset online, set, possible;
	int rc = read_online(r, &online);
	if (rc)
		return rc;
	if (set_pool_init(&r->pool, r->t->arena, r->scratch, online.nw - 1))
		return reader_no_memory(r);
	rc = read_keep(r, RP_CPUS_ONLINE, &online);
	if (rc)
		return rc;
	r->online = r->t->sets[RP_CPUS_ONLINE];
	read_optional(r, "present", &set);
	rp_idset_or(&set, rp_ids_of(&set), r->online);
	read_optional(r, "possible", &possible);
	rp_idset_or(&possible, rp_ids_of(&possible), rp_ids_of(&set));
	rc = read_keep(r, RP_CPUS_PRESENT, &set);
	if (!rc)
		rc = read_keep(r, RP_CPUS_POSSIBLE, &possible);
	static const struct {
		uint32_t which;
		const char *file;
	} online_only[] = {{RP_CPUS_ISOLATED, "isolated"}, {RP_CPUS_NOHZ_FULL, "nohz_full"}};
	for (unsigned i = 0; !rc && i < 2; i++) {
		read_optional(r, online_only[i].file, &set);
		rp_idset_and(&set, rp_ids_of(&set), r->online);
		rc = read_keep(r, online_only[i].which, &set);
	}
	return rc ? rc : index_cpus(r);
}

/* ---- the whole snapshot ---------------------------------------------------------------------- */

/* Duplicates the handle of the root, because the caller's may be closed while the snapshot
 * exists. */
static int keep_root(struct topo *t, const struct fs_root *root, struct err *err)
{
	t->root = *root;
	t->root.path = NULL;
	t->root.fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
	if (t->root.fd < 0)
		return err_errno(err, -errno, "cannot open %s", root->path);
	/* "/" would double the slash in messages. */
	t->root.path = strdup(strcmp(root->path, "/") == 0 ? "" : root->path);
	return t->root.path ? 0 : err_errno(err, -ENOMEM, "cannot read the topology");
}

static int read_all(struct reader *r)
{
	static int (*const steps[])(struct reader *) = {
		reader_cpu_sets, reader_cpus,  reader_kinds,
		reader_caches,	 reader_nodes, reader_units,
	};
	r->cpu_fd = fs_open_dir(&r->t->root, CPU_DIR);
	if (r->cpu_fd < 0)
		return err_errno(r->err, r->cpu_fd, "cannot open %s/" CPU_DIR, r->t->root.path);
	int rc = 0;
	for (unsigned i = 0; !rc && i < sizeof steps / sizeof steps[0]; i++)
		rc = steps[i](r);
	(void)close(r->cpu_fd);
	if (r->n_more_notes) {
		r->t->notes[r->t->n_notes] = arena_printf(
			r->t->arena, "%u more irregularities are not listed", r->n_more_notes);
		r->t->n_notes += r->t->notes[r->t->n_notes] != NULL;
	}
	return rc;
}

bool topo_set_device_nodes(struct topo *t, const char *setting)
{
	if (str_eq(setting, "auto"))
		setting = "";
	if (str_eq(t->device_nodes, setting))
		return false;
	(void)snprintf(t->device_nodes, sizeof t->device_nodes, "%s", setting);
	return true;
}

DEFINE_GETTER_OF(topo_has_devices, bool, const struct topo *t, t->has_devices)
DEFINE_GETTER_OF(topo_hides_memory, bool, const struct topo *t, t->hides_memory)

/* Reads a snapshot. old: the previous one, whose settings apply, or NULL. */
static int read_after(const struct topo *old, const struct fs_root *root, size_t memory_max,
		      uint64_t generation, struct topo **ret, struct err *err)
{
	_topo_ struct topo *t = calloc(1, sizeof *t);
	_arena_ struct arena *scratch = arena_new(SCRATCH_BLOCK, memory_max);
	if (!t)
		return err_errno(err, -ENOMEM, "cannot read the topology");
	t->root.fd = -1;
	t->generation = generation;
	if (old)
		memcpy(t->device_nodes, old->device_nodes, sizeof t->device_nodes);
	t->arena = arena_new(ARENA_BLOCK, memory_max);
	if (!t->arena || !scratch)
		return err_errno(err, -ENOMEM, "cannot read the topology");
	int rc = keep_root(t, root, err);
	if (rc)
		return rc;
	t->has_devices = fs_exists(&t->root, "sys/dev");
	struct reader r = {.t = t, .scratch = scratch, .err = err};
	rc = read_all(&r);
	if (rc)
		return rc;
	*ret = TAKE(t);
	return 0;
}

int topo_read_within(const struct fs_root *root, size_t memory_max, uint64_t generation,
		     struct topo **ret, struct err *err)
{
	return read_after(NULL, root, memory_max, generation, ret, err);
}

int topo_read(const struct fs_root *root, struct topo **ret, struct err *err)
{
	return topo_read_within(root, TOPO_MEMORY_MAX, 1, ret, err);
}

int topo_reread(const struct topo *old, struct topo **ret, struct err *err)
{
	return read_after(old, &old->root, TOPO_MEMORY_MAX, old->generation + 1, ret, err);
}
