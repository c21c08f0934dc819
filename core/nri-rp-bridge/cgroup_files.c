/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/cgroup_files.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define MOUNT "sys/fs/cgroup"
#define SHARES_MIN 2u
#define SHARES_MAX 262144u
#define WEIGHT_MAX 10000u
/* number of levels of cgroups below a container's cgroup that are narrowed with it */
#define DEPTH_MAX 8u
#define NO_LIMIT (INT64_C(1) << 62) /* smallest value of a cgroup v1 file that means "no limit" */
#define PAGE 4096

int cgroup_fs_open(struct cgroup_fs *c, const char *root, struct err *err)
{
	*c = (struct cgroup_fs){.root.fd = -1};
	int r = fs_root_open(&c->root, root, err);
	if (r)
		return r;
	c->unified = fs_exists(&c->root, MOUNT "/cgroup.controllers");
	if (c->unified || fs_exists(&c->root, MOUNT "/cpuset"))
		return 0;
	cgroup_fs_close(c);
	return err_set(err, -ENOENT, "%s/" MOUNT ": no cgroup hierarchy with cpuset", root);
}

void cgroup_fs_close(struct cgroup_fs *c)
{
	if (c->root.path)
		fs_root_close(&c->root);
}

bool cgroup_folder(const struct cgroup_fs *c, const char *controller, const char *cgroup,
		   char ret[CGROUP_PATH_MAX])
{
	int n = c->unified ? snprintf(ret, CGROUP_PATH_MAX, MOUNT "/%s", cgroup)
			   : snprintf(ret, CGROUP_PATH_MAX, MOUNT "/%s/%s", controller, cgroup);
	return n > 0 && n < (int)CGROUP_PATH_MAX;
}

/* Builds the path of a file. The file's name begins with its controller: "cpuset.cpus",
 * "memory.max". */
static int path_of(const struct cgroup_fs *c, const char *cgroup, const char *file,
		   char ret[CGROUP_PATH_MAX])
{
	char controller[32], folder[CGROUP_PATH_MAX];
	(void)snprintf(controller, sizeof controller, "%.*s", (int)strcspn(file, "."), file);
	if (!cgroup_folder(c, controller, cgroup, folder))
		return -ENAMETOOLONG;
	int n = snprintf(ret, CGROUP_PATH_MAX, "%s/%s", folder, file);
	return n > 0 && n < (int)CGROUP_PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int read_file(const struct cgroup_fs *c, const char *cgroup, const char *file, char *ret,
		     size_t size)
{
	char path[CGROUP_PATH_MAX];
	int r = path_of(c, cgroup, file, path);
	ssize_t n = r ? r : fs_read(&c->root, path, ret, size);
	return n < 0 ? (int)n : 0;
}

/* ---- weight and shares ----------------------------------------------------------------------- */

uint64_t cgroup_weight(enum cgroup_curve curve, uint64_t shares)
{
	if (shares <= SHARES_MIN)
		return 1;
	if (shares >= SHARES_MAX)
		return WEIGHT_MAX;
	if (curve == CURVE_LINEAR)
		return 1 + (shares - SHARES_MIN) * (WEIGHT_MAX - 1) / (SHARES_MAX - SHARES_MIN);
	/* The curve passes through 2 → 1, 1024 → 100 and 262144 → 10000. */
	double l = log2((double)shares);
	return (uint64_t)ceil(pow(10, (l * l + 125 * l) / 612.0 - 7.0 / 34.0));
}

uint64_t cgroup_shares(enum cgroup_curve curve, uint64_t weight)
{
	uint64_t low = SHARES_MIN, high = SHARES_MAX;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (cgroup_weight(curve, middle) < weight)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t read_number(const struct cgroup_fs *c, const char *cgroup, const char *file)
{
	char text[64];
	int64_t v;
	return read_file(c, cgroup, file, text, sizeof text) || str_to_i64(text, &v) ? 0 : v;
}

/* Reads cpu.max: "max 100000", "50000 100000". */
static void read_cpu_max(const struct cgroup_fs *c, const char *cgroup, Cri__Resources *ret)
{
	char text[64], *period;
	if (read_file(c, cgroup, "cpu.max", text, sizeof text))
		return;
	period = strchr(text, ' ');
	if (period)
		*period++ = '\0';
	if (period && str_to_i64(period, &ret->cpu_period))
		ret->cpu_period = 0;
	if (str_eq(text, "max"))
		ret->cpu_quota = -1;
	else if (str_to_i64(text, &ret->cpu_quota))
		ret->cpu_quota = 0;
}

static void read_cpu(const struct cgroup_fs *c, const char *cgroup, Cri__Resources *ret)
{
	if (!c->unified) {
		ret->cpu_shares = read_number(c, cgroup, "cpu.shares");
		ret->cpu_quota = read_number(c, cgroup, "cpu.cfs_quota_us");
		ret->cpu_period = read_number(c, cgroup, "cpu.cfs_period_us");
		return;
	}
	int64_t weight = read_number(c, cgroup, "cpu.weight");
	if (weight > 0 && weight <= (int64_t)WEIGHT_MAX)
		ret->cpu_shares = (int64_t)cgroup_shares(c->curve, (uint64_t)weight);
	read_cpu_max(c, cgroup, ret);
}

static int read_ids(const struct cgroup_fs *c, const char *cgroup, const char *file, uint32_t max,
		    struct rp_idset *ret)
{
	char path[CGROUP_PATH_MAX];
	int r = path_of(c, cgroup, file, path);
	return r ? r : fs_read_ids(&c->root, path, max, ret);
}

static uint32_t ids_max(const char *file)
{
	return str_eq(file, "cpuset.cpus") ? RP_CPUS_MAX : RP_NODES_MAX;
}

/* Writes the parent cgroup to `ret`. Returns false for a cgroup at the top of the hierarchy. */
static bool parent_of(const char *cgroup, char ret[CGROUP_PATH_MAX])
{
	const char *slash = strrchr(cgroup, '/');
	if (!slash)
		return false;
	(void)snprintf(ret, CGROUP_PATH_MAX, "%.*s", (int)(slash - cgroup), cgroup);
	return true;
}

/* Returns the set in a file; "" if it is empty or, with cgroup v1, equals the parent's. */
static char *read_set(const struct cgroup_fs *c, struct arena *a, const char *cgroup,
		      const char *file)
{
	char parent[CGROUP_PATH_MAX], text[RP_IDSET_TEXT_MAX];
	struct rp_idset own, around;
	if (read_ids(c, cgroup, file, ids_max(file), &own) || rp_ids_empty(rp_ids_of(&own)))
		return arena_strdup(a, "");
	if (!c->unified && parent_of(cgroup, parent) &&
	    read_ids(c, parent, file, ids_max(file), &around) == 0 &&
	    rp_ids_equal(rp_ids_of(&own), rp_ids_of(&around)))
		return arena_strdup(a, "");
	(void)rp_ids_format(rp_ids_of(&own), text, sizeof text);
	return arena_strdup(a, text);
}

static int64_t read_memory(const struct cgroup_fs *c, const char *cgroup)
{
	int64_t v = read_number(c, cgroup, c->unified ? "memory.max" : "memory.limit_in_bytes");
	return v >= NO_LIMIT ? 0 : v;
}

int cgroup_read(const struct cgroup_fs *c, struct arena *a, const char *cgroup, Cri__Resources *ret)
{
	char folder[CGROUP_PATH_MAX];
	cri__resources__init(ret);
	if (!cgroup_folder(c, "cpuset", cgroup, folder) || !fs_exists(&c->root, folder))
		return -ENOENT;
	read_cpu(c, cgroup, ret);
	ret->memory_limit = read_memory(c, cgroup);
	ret->cpuset_cpus = read_set(c, a, cgroup, "cpuset.cpus");
	ret->cpuset_mems = read_set(c, a, cgroup, "cpuset.mems");
	return ret->cpuset_cpus && ret->cpuset_mems ? 0 : -ENOMEM;
}

bool cgroup_has_shares(struct cgroup_fs *c, const char *cgroup, int64_t shares)
{
	if (shares <= 0)
		return false;
	if (!c->unified)
		return read_number(c, cgroup, "cpu.shares") == shares;
	uint64_t weight = (uint64_t)read_number(c, cgroup, "cpu.weight");
	uint64_t linear = cgroup_weight(CURVE_LINEAR, (uint64_t)shares);
	uint64_t quadratic = cgroup_weight(CURVE_QUADRATIC, (uint64_t)shares);
	if (linear != quadratic && (weight == linear || weight == quadratic))
		c->curve = weight == linear ? CURVE_LINEAR : CURVE_QUADRATIC;
	return weight == linear || weight == quadratic;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Reads the beginning of a file. Returns its length or -errno. */
static ssize_t read_general(const struct cgroup_fs *c, const char *cgroup, const char *file,
			    char *buf, size_t size)
{
	char folder[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX + 32];
	if (!cgroup_folder(c, "cpuset", cgroup, folder))
		return -ENAMETOOLONG;
	(void)snprintf(path, sizeof path, "%s/%s", folder, file);
	_close_ int fd = fs_open(&c->root, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? fd : read(fd, buf, size - 1);
	buf[n < 0 ? 0 : n] = '\0';
	return fd >= 0 && n < 0 ? -errno : n;
}

uint32_t cgroup_process(const struct cgroup_fs *c, const char *cgroup)
{
	char text[64];
	uint64_t pid;
	(void)read_general(c, cgroup, "cgroup.procs", text, sizeof text);
	text[strcspn(text, "\n")] = '\0';
	return str_to_u64(text, &pid) || pid > INT32_MAX ? 0 : (uint32_t)pid;
}

static int is_populated(const char *name, void *arg)
{
	const void *const *in = arg;
	const struct cgroup_fs *c = in[0];
	char cgroup[CGROUP_PATH_MAX];
	int n = snprintf(cgroup, sizeof cgroup, "%s/%s", (const char *)in[1], name);
	char text[8];
	/* Entries that are files have no cgroup.procs either, so the read fails for them. */
	return n > 0 && n < (int)sizeof cgroup &&
	       read_general(c, cgroup, "cgroup.procs", text, sizeof text) >= 0;
}

bool cgroup_is_empty(const struct cgroup_fs *c, const char *cgroup)
{
	char text[256], folder[CGROUP_PATH_MAX];
	if (c->unified)
		return read_general(c, cgroup, "cgroup.events", text, sizeof text) > 0 &&
		       strstr(text, "populated 0");
	const void *in[] = {c, cgroup};
	/* A child cgroup is treated as populated without reading its processes: the process that
	 * has created it is assumed to be alive. */
	return read_general(c, cgroup, "cgroup.procs", text, sizeof text) == 0 &&
	       cgroup_folder(c, "cpuset", cgroup, folder) &&
	       fs_list(&c->root, folder, is_populated, in) == 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct change {
	const char *path, *before;
	struct change *next;
};

/* A cgroup being written, and the changes so far. */
struct writing {
	const struct cgroup_fs *c;
	struct arena *a;
	const char *cgroup;
	struct change *changes; /* changes of files, the latest first */
	unsigned written;
	struct err *err;
};

static void write_back(const struct writing *w)
{
	for (const struct change *change = w->changes; change; change = change->next)
		(void)fs_write(&w->c->root, change->path, *change->before ? change->before : "\n");
}

/* Returns true if a file with the content `before` already has the value `text`, in any
 * notation. */
static bool cgroup_files_says(const char *file, const char *before, const char *text)
{
	struct rp_idset one, other;
	int64_t is, wanted;
	if (str_eq(before, text))
		return true;
	if (str_has_prefix(file, "cpuset.cpus") || str_eq(file, "cpuset.mems"))
		return rp_idset_parse(&one, before, ids_max(file)) == 0 &&
		       rp_idset_parse(&other, text, ids_max(file)) == 0 &&
		       rp_ids_equal(rp_ids_of(&one), rp_ids_of(&other));
	/* The kernel rounds memory limits down to pages. */
	return str_has_prefix(file, "memory.") && str_to_i64(before, &is) == 0 &&
	       str_to_i64(text, &wanted) == 0 && wanted >= 0 && is == wanted / PAGE * PAGE;
}

static int put_at(struct writing *w, const char *cgroup, const char *file, const char *text)
{
	char path[CGROUP_PATH_MAX], before[RP_IDSET_TEXT_MAX];
	int r = path_of(w->c, cgroup, file, path);
	ssize_t n = r ? r : fs_read(&w->c->root, path, before, sizeof before);
	if (n < 0)
		return err_errno(w->err, (int)n, "%s/%s", cgroup, file);
	if (cgroup_files_says(file, before, text))
		return 0;
	struct change *change = arena_zero(w->a, struct change);
	if (change)
		*change = (struct change){arena_strdup(w->a, path), arena_strdup(w->a, before),
					  w->changes};
	if (!change || !change->path || !change->before)
		return err_errno(w->err, -ENOMEM, "%s/%s", cgroup, file);
	r = fs_write(&w->c->root, path, text);
	if (r)
		return err_errno(w->err, r, "%s/%s: writing \"%s\"", cgroup, file, text);
	w->changes = change;
	w->written++;
	return 0;
}

static int cgroup_files_put(struct writing *w, const char *file, const char *text)
{
	return put_at(w, w->cgroup, file, text);
}

static int put_number(struct writing *w, const char *file, int64_t v)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%" PRId64, v);
	return cgroup_files_put(w, file, text);
}

/* ---- CPUs and memory nodes ------------------------------------------------------------------- */

/* Calls fn for each ancestor of w's cgroup, from `top` downwards. */
static int each_around(struct writing *w, const char *top,
		       int (*fn)(struct writing *w, const char *cgroup, const void *arg),
		       const void *arg)
{
	char cgroup[CGROUP_PATH_MAX];
	size_t n = strlen(top);
	for (;;) {
		(void)snprintf(cgroup, sizeof cgroup, "%.*s", (int)n, w->cgroup);
		if (!w->cgroup[n])
			return 0;
		int r = fn(w, cgroup, arg);
		if (r)
			return r;
		n += 1 + strcspn(w->cgroup + n + 1, "/");
	}
}

struct wanted_set {
	const char *file;
	struct rp_ids ids;
};

/* Adds the wanted ids to a cgroup: a child cannot have more than its parent. With cgroup v2 an
 * empty set means the parent's set. */
static int cgroup_files_widen(struct writing *w, const char *cgroup, const void *arg)
{
	const struct wanted_set *wanted = arg;
	char text[RP_IDSET_TEXT_MAX];
	struct rp_idset has, both;
	if (read_ids(w->c, cgroup, wanted->file, ids_max(wanted->file), &has) ||
	    rp_ids_empty(rp_ids_of(&has)) || rp_ids_subset(wanted->ids, rp_ids_of(&has)))
		return 0;
	rp_idset_or(&both, rp_ids_of(&has), wanted->ids);
	(void)rp_ids_format(rp_ids_of(&both), text, sizeof text);
	return put_at(w, cgroup, wanted->file, text);
}

/* A walk over the cgroups below one, with cgroup v1. */
struct walk {
	struct writing *w;
	const struct wanted_set *wanted;
	const char *cgroup;
	unsigned depth;
};

static int cgroup_files_below(struct writing *w, const char *cgroup,
			      const struct wanted_set *wanted, unsigned depth,
			      int (*fn)(const char *name, void *arg))
{
	char folder[CGROUP_PATH_MAX];
	struct walk walk = {w, wanted, cgroup, depth};
	if (w->c->unified || !depth || !cgroup_folder(w->c, "cpuset", cgroup, folder))
		return 0;
	return fs_list(&w->c->root, folder, fn, &walk);
}

/* Widens cgroups below the container to the union of the old and the new set, because a child can
 * only be moved to ids that its parent already has. Works from the container downwards. */
static int make_way(const char *name, void *arg)
{
	const struct walk *n = arg;
	char cgroup[CGROUP_PATH_MAX];
	struct rp_idset has;
	int len = snprintf(cgroup, sizeof cgroup, "%s/%s", n->cgroup, name);
	if (len < 0 || len >= (int)sizeof cgroup ||
	    read_ids(n->w->c, cgroup, n->wanted->file, ids_max(n->wanted->file), &has) ||
	    rp_ids_subset(rp_ids_of(&has), n->wanted->ids))
		/* an entry that is a file, a removed cgroup, or one that needs no change */
		return 0;
	int r = cgroup_files_widen(n->w, n->cgroup, n->wanted);
	return r ? r : cgroup_files_below(n->w, cgroup, n->wanted, n->depth - 1, make_way);
}

/* Narrows the cgroups below a container first: the kernel refuses to narrow a parent while a child
 * has more. */
static int cgroup_files_narrow(const char *name, void *arg)
{
	const struct walk *n = arg;
	char cgroup[CGROUP_PATH_MAX], text[RP_IDSET_TEXT_MAX];
	struct rp_idset has, both;
	int len = snprintf(cgroup, sizeof cgroup, "%s/%s", n->cgroup, name);
	if (len < 0 || len >= (int)sizeof cgroup ||
	    read_ids(n->w->c, cgroup, n->wanted->file, ids_max(n->wanted->file), &has))
		return 0; /* an entry that is a file, or a removed cgroup */
	int r = cgroup_files_below(n->w, cgroup, n->wanted, n->depth - 1, cgroup_files_narrow);
	if (r || rp_ids_subset(rp_ids_of(&has), n->wanted->ids))
		return r;
	rp_idset_and(&both, rp_ids_of(&has), n->wanted->ids);
	(void)rp_ids_format(rp_ids_empty(rp_ids_of(&both)) ? n->wanted->ids : rp_ids_of(&both),
			    text, sizeof text);
	return put_at(n->w, cgroup, n->wanted->file, text);
}

/* Enables the cpuset controller for the children of a cgroup (v2), which creates their files. */
static int hand_down(struct writing *w, const char *cgroup, const void *arg)
{
	char path[CGROUP_PATH_MAX];
	int r = path_of(w->c, cgroup, "cgroup.subtree_control", path);
	r = r ? r : fs_write(&w->c->root, path, "+cpuset");
	return r ? err_errno(w->err, r, "%s: enabling cpuset for children", cgroup) : 0;
}

static int make_cpuset(struct writing *w, const char *top)
{
	char path[CGROUP_PATH_MAX];
	if (!w->c->unified || path_of(w->c, w->cgroup, "cpuset.cpus", path) ||
	    fs_exists(&w->c->root, path))
		return 0;
	return each_around(w, top, hand_down, NULL);
}

/* Compares the effective set with the written one (v2): the kernel accepts a set that it cannot
 * grant, and uses another one. */
static int check_effective(const struct writing *w, const struct wanted_set *wanted)
{
	char file[64], text[RP_IDSET_TEXT_MAX];
	struct rp_idset effective;
	(void)snprintf(file, sizeof file, "%s.effective", wanted->file);
	if (!w->c->unified || read_ids(w->c, w->cgroup, file, ids_max(wanted->file), &effective) ||
	    rp_ids_subset(rp_ids_of(&effective), wanted->ids))
		return 0;
	(void)rp_ids_format(rp_ids_of(&effective), text, sizeof text);
	return err_set(w->err, -ERANGE, "%s: the kernel changed the written value to %.80s",
		       w->cgroup, text);
}

static int put_set(struct writing *w, const char *top, const char *file, const char *text)
{
	struct rp_idset set;
	if (!text || !*text)
		return 0;
	if (rp_idset_parse(&set, text, ids_max(file)) || rp_ids_empty(rp_ids_of(&set)))
		return err_set(w->err, -EINVAL, "%s: \"%.80s\" is not a list", file, text);
	const struct wanted_set wanted = {file, rp_ids_of(&set)};
	int r = make_cpuset(w, top);
	r = r ? r : each_around(w, top, cgroup_files_widen, &wanted);
	r = r ? r : cgroup_files_below(w, w->cgroup, &wanted, DEPTH_MAX, make_way);
	r = r ? r : cgroup_files_below(w, w->cgroup, &wanted, DEPTH_MAX, cgroup_files_narrow);
	r = r ? r : cgroup_files_put(w, file, text);
	return r ? r : check_effective(w, &wanted);
}

/* ---- all resources --------------------------------------------------------------------------- */

static int put_cpu_max(struct writing *w, const Cri__Resources *r)
{
	Cri__Resources has = CRI__RESOURCES__INIT;
	char text[64] = "max";
	read_cpu_max(w->c, w->cgroup, &has);
	int64_t period = r->cpu_period > 0 ? r->cpu_period : has.cpu_period;
	int64_t quota = r->cpu_quota ? r->cpu_quota : has.cpu_quota;
	if (quota > 0)
		(void)snprintf(text, sizeof text, "%" PRId64, quota);
	if (period > 0)
		(void)snprintf(text + strlen(text), sizeof text - strlen(text), " %" PRId64,
			       period);
	return cgroup_files_put(w, "cpu.max", text);
}

/* Writes CPU quota and period. The kernel refuses values that exceed the parent's, even for a
 * moment, so the one that reduces CPU time is written first. */
static int put_cfs(struct writing *w, const Cri__Resources *r)
{
	int64_t quota = r->cpu_quota > 0 ? r->cpu_quota : -1;
	bool shrinks = r->cpu_period > 0 && r->cpu_quota > 0 &&
		       r->cpu_period < read_number(w->c, w->cgroup, "cpu.cfs_period_us");
	int e = shrinks ? put_number(w, "cpu.cfs_quota_us", quota) : 0;
	if (!e && r->cpu_period > 0)
		e = put_number(w, "cpu.cfs_period_us", r->cpu_period);
	return !e && r->cpu_quota ? put_number(w, "cpu.cfs_quota_us", quota) : e;
}

static int put_cpu(struct writing *w, const Cri__Resources *r)
{
	int e = 0;
	if (w->c->unified) {
		if (r->cpu_shares > 0)
			e = put_number(
				w, "cpu.weight",
				(int64_t)cgroup_weight(w->c->curve, (uint64_t)r->cpu_shares));
		return !e && (r->cpu_quota || r->cpu_period > 0) ? put_cpu_max(w, r) : e;
	}
	if (r->cpu_shares > 0)
		e = put_number(w, "cpu.shares", r->cpu_shares);
	return e ? e : put_cfs(w, r);
}

static int put_memory(struct writing *w, const Cri__Resources *r)
{
	const char *file = w->c->unified ? "memory.max" : "memory.limit_in_bytes";
	if (!r->memory_limit)
		return 0;
	if (r->memory_limit < 0)
		return cgroup_files_put(w, file, w->c->unified ? "max" : "-1");
	return put_number(w, file, r->memory_limit);
}

/* Returns true if the name is a plain file name of a controller, such as "memory.high", without a
 * path. */
static bool is_file_name(const char *name)
{
	const char *c = name;
	while (islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_' || *c == '.')
		c++;
	return !*c && islower((unsigned char)*name) && strchr(name, '.') && c - name < 64 &&
	       !str_has_prefix(name, "cgroup.");
}

static int put_unified(struct writing *w, const Cri__Resources *r)
{
	int e = 0;
	for (size_t i = 0; i < r->n_unified && !e; i++) {
		const char *file = r->unified[i]->key;
		if (!w->c->unified || !is_file_name(file))
			e = err_set(w->err, -EINVAL, "%.64s: not a file of a cgroup", file);
		else
			e = cgroup_files_put(w, file, r->unified[i]->value);
	}
	return e;
}

int cgroup_write(const struct cgroup_fs *c, struct arena *a, const char *top, const char *cgroup,
		 const Cri__Resources *wanted, unsigned *ret_written, struct err *err)
{
	char folder[CGROUP_PATH_MAX];
	struct writing w = {.c = c, .a = a, .cgroup = cgroup, .err = err};
	int r = put_set(&w, top, "cpuset.cpus", wanted->cpuset_cpus);
	if (!r && !c->unified && c->migrate && wanted->cpuset_mems && *wanted->cpuset_mems)
		r = cgroup_files_put(&w, "cpuset.memory_migrate", "1");
	r = r ? r : put_set(&w, top, "cpuset.mems", wanted->cpuset_mems);
	r = r ? r : put_cpu(&w, wanted);
	r = r ? r : put_memory(&w, wanted);
	r = r ? r : put_unified(&w, wanted);
	if (ret_written)
		*ret_written = r ? 0 : w.written;
	if (!r)
		return 0;
	if (!cgroup_folder(c, "cpuset", cgroup, folder) || !fs_exists(&c->root, folder)) {
		if (err)
			*err = (struct err)ERR_INIT;
		return -ENOENT;
	}
	write_back(&w);
	return r;
}
