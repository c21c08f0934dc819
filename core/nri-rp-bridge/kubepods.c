/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/kubepods.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "cgroups"
#define TOP "kubepods"
#define SLICE ".slice"
#define SCOPE ".scope"
#define ID_LEN (KUBEPODS_ID_SIZE - 1)
#define QUIET_MS 20u /* time within which changes are collected and handled together */
#define SEARCH_DEPTH 4u
#define SEARCH_MAX 2048u /* limit of folders in a search */
#define SYSTEM "system" /* name of the partition for system pods */
#define EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR)

/* A folder that inotify watches. */
enum watched_kind {
	WATCHED_ABOVE, /* folder in which the topmost cgroup may appear */
	WATCHED_CLASS, /* contains pods and QoS classes */
	WATCHED_POD /* folder of a pod, which contains containers */
};
struct watched {
	int wd;
	enum watched_kind kind;
	char *cgroup;
	UT_hash_handle hh;
};

struct kubepods {
	const struct cgroup_fs *c;
	char *under; /* argument of --cgroup-root; NULL: search everywhere */
	char top[CGROUP_PATH_MAX]; /* top cgroup of all pods; "": not found yet */
	int fd;
	struct loop_io *io;
	struct loop_timer *quiet;
	struct watched *watched;
	char *changes[KUBEPODS_CHANGES_MAX]; /* changed cgroups, the oldest first */
	unsigned n_changes;
	bool all; /* all folders have to be walked: there were too many changes, or unknown ones */
	uint64_t n_listed;
	void (*changed)(void *arg);
	void *arg;
	bool warned;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the part of a slice's name after "kubepods", such as "-burstable-podUID"; NULL: another
 * kind of name. */
static const char *slice_rest(const char *name, size_t *ret_len)
{
	if (!str_has_suffix(name, SLICE))
		return NULL;
	const char *at = str_has_prefix(name, TOP) ? name : strstr(name, "-" TOP);
	if (!at)
		return NULL;
	at += (at == name ? 0 : 1) + sizeof TOP - 1;
	*ret_len = strlen(at) - (sizeof SLICE - 1);
	return at;
}

bool kubepods_is_top(const char *name)
{
	size_t n;
	return str_eq(name, TOP) || (slice_rest(name, &n) && n == 0);
}

/* Returns the length of the leading "-system", "-burstable" or "-besteffort", or of "-system"
 * together with one of the other two. */
static size_t qos_len(const char *rest, size_t n)
{
	static const char *const classes[] = {"-" SYSTEM, "-burstable", "-besteffort"};
	size_t len = 0;
	for (unsigned i = 0; i < 3; i++) {
		size_t more = strlen(classes[i]);
		if (n - len < more || !str_has_prefix(rest + len, classes[i]))
			continue;
		len += more;
		if (i)
			break;
	}
	return len;
}

bool kubepods_is_qos(const char *name)
{
	size_t n;
	const char *rest = slice_rest(name, &n);
	if (!rest)
		return str_eq(name, "burstable") || str_eq(name, "besteffort") ||
		       str_eq(name, SYSTEM);
	return n && qos_len(rest, n) == n;
}

bool kubepods_pod_uid(const char *name, char ret[KUBEPODS_UID_SIZE])
{
	size_t n;
	const char *rest = slice_rest(name, &n), *uid = name;
	if (rest) {
		size_t qos = qos_len(rest, n);
		uid = rest + qos;
		n -= qos;
		if (n && *uid == '-') {
			uid++;
			n--;
		}
	} else {
		n = strlen(name);
	}
	if (n <= 3 || !str_has_prefix(uid, "pod") || n - 3 >= KUBEPODS_UID_SIZE)
		return false;
	for (size_t i = 3; i < n; i++) {
		char c = rest && uid[i] == '_' ? '-' : uid[i];
		if (!isalnum((unsigned char)c) && c != '-')
			return false;
		ret[i - 3] = c;
	}
	ret[n - 3] = '\0';
	return true;
}

bool kubepods_ctr_id(const char *name, char ret[KUBEPODS_ID_SIZE])
{
	size_t n = strlen(name);
	if (str_has_suffix(name, SCOPE))
		n -= sizeof SCOPE - 1;
	if (n < ID_LEN)
		return false;
	const char *id = name + n - ID_LEN;
	/* The cgroup of CRI-O's monitor of a container has the same id. */
	if (id > name && (id[-1] != '-' || strstr(name, "conmon")))
		return false;
	if (strspn(id, "0123456789abcdef") < ID_LEN)
		return false;
	memcpy(ret, id, ID_LEN);
	ret[ID_LEN] = '\0';
	return true;
}

/* Builds the path in the systemd notation "SLICE:PREFIX:ID"; the prefix of
 * "cri-containerd-ID.scope" is "cri-containerd". */
static int path_of_scope(const char *pod, const char *name, const char *id, char *buf, size_t size)
{
	const char *slice = strrchr(pod, '/');
	size_t prefix = strlen(name) - (sizeof SCOPE - 1) - ID_LEN;
	int n = snprintf(buf, size, "%s:%.*s:%s", slice ? slice + 1 : pod,
			 prefix ? (int)prefix - 1 : 0, name, id);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* ---- watching -------------------------------------------------------------------------------- */

static void on_quiet(void *arg)
{
	struct kubepods *k = arg;
	k->changed(k->arg);
}

void kubepods_add_change(struct kubepods *k, const char *cgroup)
{
	for (unsigned i = 0; i < k->n_changes; i++)
		if (str_eq(k->changes[i], cgroup))
			return;
	char *copy = k->n_changes < KUBEPODS_CHANGES_MAX ? strdup(cgroup) : NULL;
	if (copy)
		k->changes[k->n_changes++] = copy;
	else
		k->all = true;
}

static void kubepods_clear_changes(struct kubepods *k)
{
	while (k->n_changes)
		free(k->changes[--k->n_changes]);
	k->all = false;
}

bool kubepods_take_change(struct kubepods *k, char ret[CGROUP_PATH_MAX])
{
	if (!k->n_changes)
		return false;
	_free_ char *first = k->changes[0];
	memmove(k->changes, k->changes + 1, --k->n_changes * sizeof *k->changes);
	(void)snprintf(ret, CGROUP_PATH_MAX, "%s", first);
	return true;
}

DEFINE_GETTER_OF(kubepods_n_changes, unsigned, const struct kubepods *k, k->n_changes)
DEFINE_GETTER_OF(kubepods_all_changed, bool, const struct kubepods *k, k->all)
DEFINE_GETTER_OF(kubepods_n_listed, uint64_t, const struct kubepods *k, k->n_listed)

static bool kubepods_below(const char *cgroup, const char *name, char ret[CGROUP_PATH_MAX])
{
	int n = snprintf(ret, CGROUP_PATH_MAX, "%s%s%s", cgroup, *cgroup ? "/" : "", name);
	return n > 0 && n < (int)CGROUP_PATH_MAX;
}

static void watched_free(struct kubepods *k, struct watched *w)
{
	HASH_DEL(k->watched, w);
	free(w->cgroup);
	free(w);
}

/* Notes which folder has to be walked because of an event. Files and unrelated folders are
 * ignored. */
static void kubepods_note_event(struct kubepods *k, const struct inotify_event *e)
{
	char cgroup[CGROUP_PATH_MAX], id[KUBEPODS_ID_SIZE], uid[KUBEPODS_UID_SIZE];
	struct watched *w = NULL;
	if (e->mask & IN_Q_OVERFLOW)
		k->all = true;
	HASH_FIND_INT(k->watched, &e->wd, w);
	if (!w)
		return;
	if (e->mask & IN_IGNORED) {
		watched_free(k, w); /* the folder was removed */
		return;
	}
	if (!e->len)
		return;
	if (w->kind == WATCHED_ABOVE)
		k->all = k->all || !*k->top || kubepods_is_top(e->name);
	else if (w->kind == WATCHED_POD && kubepods_ctr_id(e->name, id))
		kubepods_add_change(k, w->cgroup);
	else if (w->kind == WATCHED_CLASS &&
		 (kubepods_is_qos(e->name) || kubepods_pod_uid(e->name, uid)) &&
		 kubepods_below(w->cgroup, e->name, cgroup))
		kubepods_add_change(k, cgroup);
}

static void on_events(unsigned events, void *arg)
{
	struct kubepods *k = arg;
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;
	while ((n = read(k->fd, buf, sizeof buf)) > 0) {
		for (const char *at = buf; at < buf + n;) {
			const struct inotify_event *e = (const void *)at;
			kubepods_note_event(k, e);
			at += sizeof *e + e->len;
		}
	}
	if ((k->all || k->n_changes) && !loop_timer_armed(k->quiet))
		(void)loop_timer_arm(k->quiet, QUIET_MS);
}

/* Records the kind and cgroup of a watched folder. Without memory for the record, any event in the
 * folder means that all folders have changed. */
static void watched_note(struct kubepods *k, int wd, enum watched_kind kind, const char *cgroup)
{
	struct watched *w = NULL;
	HASH_FIND_INT(k->watched, &wd, w);
	if (w && w->kind == kind && str_eq(w->cgroup, cgroup))
		return;
	if (w)
		watched_free(k, w);
	w = calloc(1, sizeof *w);
	char *copy = strdup(cgroup);
	if (w && copy) {
		*w = (struct watched){.wd = wd, .kind = kind, .cgroup = copy};
		HASH_ADD_INT(k->watched, wd, w);
		if (w->hh.tbl)
			return;
	}
	free(copy);
	free(w);
	(void)inotify_rm_watch(k->fd, wd); /* the next full walk watches it */
}

/* Watches a folder through its file descriptor, because the root may not be "/". A folder that is
 * watched already is unchanged. */
static void kubepods_watch(struct kubepods *k, const char *folder, enum watched_kind kind,
			   const char *cgroup)
{
	char path[64];
	_close_ int dir = fs_open(&k->c->root, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
	int wd = inotify_add_watch(k->fd, path, EVENTS);
	if (wd >= 0) {
		watched_note(k, wd, kind, cgroup);
		return;
	}
	if (errno != ENOENT && !k->warned) {
		k->warned = true;
		log_warning("%s cannot be watched: %s; containers are found by polling", folder,
			    strerror(errno));
	}
}

/* ---- walking --------------------------------------------------------------------------------- */

struct walk {
	struct kubepods *k;
	int (*fn)(const struct kubepods_entry *e, void *arg);
	void *arg;
	const char *cgroup, *uid; /* position of the walk */
	unsigned left;
};

static int on_ctr(const char *name, void *arg);

/* Calls fn for each entry of a cgroup's folder, which is watched first. A removed folder is treated
 * as empty. */
static int each_in(struct walk *w, const char *cgroup, int (*fn)(const char *name, void *arg))
{
	char folder[CGROUP_PATH_MAX];
	const char *around = w->cgroup;
	if (!cgroup_folder(w->k->c, "cpuset", cgroup, folder))
		return 0;
	kubepods_watch(w->k, folder, fn == on_ctr ? WATCHED_POD : WATCHED_CLASS, cgroup);
	w->k->n_listed++;
	w->cgroup = cgroup;
	int r = fs_list(&w->k->c->root, folder, fn, w);
	w->cgroup = around;
	return r == -ENOENT || r == -ENODEV || r == -ENOTDIR ? 0 : r;
}

static int on_ctr(const char *name, void *arg)
{
	struct walk *w = arg;
	char id[KUBEPODS_ID_SIZE], cgroup[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX];
	if (!kubepods_ctr_id(name, id) || !kubepods_below(w->cgroup, name, cgroup))
		return 0;
	if (!w->left--)
		return -E2BIG;
	if (!str_has_suffix(name, SCOPE) || w->k->under)
		(void)snprintf(path, sizeof path, "/%.*s", (int)sizeof path - 2, cgroup);
	else if (path_of_scope(w->cgroup, name, id, path, sizeof path))
		return 0;
	const struct kubepods_entry e = {w->uid, id, w->cgroup, cgroup, path};
	return w->fn(&e, w->arg);
}

static int on_pod(const char *name, void *arg)
{
	struct walk *w = arg;
	char uid[KUBEPODS_UID_SIZE], cgroup[CGROUP_PATH_MAX];
	if (!kubepods_below(w->cgroup, name, cgroup))
		return 0;
	if (kubepods_is_qos(name))
		return each_in(w, cgroup, on_pod);
	if (!kubepods_pod_uid(name, uid))
		return 0;
	w->uid = uid;
	return each_in(w, cgroup, on_ctr);
}

/* ---- search for the topmost cgroup ----------------------------------------------------------- */

struct search {
	struct kubepods *k;
	const char *cgroup;
	unsigned depth, *left;
	bool deeper; /* second pass: searches the folders below; the first compares the names */
};

static int kubepods_search(struct search *s);

/* Returns true if the cgroup was made by root or by the bridge's user. In a folder delegated to
 * another user, that user could make a folder of this name. */
static bool is_trusted(const struct kubepods *k, const char *cgroup)
{
	char folder[CGROUP_PATH_MAX];
	struct stat st;
	if (!cgroup_folder(k->c, "cpuset", cgroup, folder))
		return false;
	_close_ int dir = fs_open(&k->c->root, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 && fstat(dir, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid());
}

static int look_at(const char *name, void *arg)
{
	struct search *s = arg;
	char cgroup[CGROUP_PATH_MAX];
	if (!kubepods_below(s->cgroup, name, cgroup))
		return 0;
	if (!s->deeper && s->depth == 1 && kubepods_is_top(name) && is_trusted(s->k, cgroup)) {
		(void)snprintf(s->k->top, sizeof s->k->top, "%s", cgroup);
		return 1;
	}
	struct search in = {s->k, cgroup, s->depth - 1, s->left, false};
	/* A file or a removed folder does not end the search. */
	return s->deeper && in.depth && *s->left && kubepods_search(&in) == 1;
}

/* Searches all entries of a folder before the folders below them. Returns 1 if found. */
static int kubepods_search(struct search *s)
{
	char folder[CGROUP_PATH_MAX];
	if (!cgroup_folder(s->k->c, "cpuset", s->cgroup, folder))
		return 0;
	int r = fs_list(&s->k->c->root, folder, look_at, s);
	if (r)
		return r;
	--*s->left;
	s->deeper = true;
	return fs_list(&s->k->c->root, folder, look_at, s);
}

/* Finds the topmost cgroup nearest to the root. One found further down is replaced by one at the
 * first level. */
static void find_top(struct kubepods *k)
{
	char folder[CGROUP_PATH_MAX];
	const char *under = k->under ? k->under : "";
	unsigned levels = k->under ? 1 : SEARCH_DEPTH;
	if (*k->top && cgroup_folder(k->c, "cpuset", k->top, folder) &&
	    fs_exists(&k->c->root, folder))
		levels = !k->under && strchr(k->top, '/'); /* searches only the first level */
	else
		*k->top = '\0';
	if (!levels || !cgroup_folder(k->c, "cpuset", under, folder))
		return;
	kubepods_watch(k, folder, WATCHED_ABOVE, under);
	for (unsigned level = 1; level <= levels; level++) {
		unsigned left = SEARCH_MAX;
		struct search s = {k, under, level, &left, false};
		if (kubepods_search(&s) != 1)
			continue;
		log_info("the kubelet's cgroup is %s", k->top);
		return;
	}
}

DEFINE_GETTER_OF(kubepods_top, const char *, const struct kubepods *k, *k->top ? k->top : NULL)

int kubepods_walk(struct kubepods *k, int (*fn)(const struct kubepods_entry *e, void *arg),
		  void *arg)
{
	struct walk w = {.k = k, .fn = fn, .arg = arg, .cgroup = "", .left = KUBEPODS_CTRS_MAX};
	kubepods_clear_changes(k);
	find_top(k);
	return *k->top ? each_in(&w, k->top, on_pod) : 0;
}

int kubepods_walk_below(struct kubepods *k, const char *cgroup,
			int (*fn)(const struct kubepods_entry *e, void *arg), void *arg)
{
	struct walk w = {.k = k, .fn = fn, .arg = arg, .cgroup = "", .left = KUBEPODS_CTRS_MAX};
	char uid[KUBEPODS_UID_SIZE];
	const char *slash = strrchr(cgroup, '/'), *name = slash ? slash + 1 : cgroup;
	if (kubepods_is_qos(name))
		return each_in(&w, cgroup, on_pod);
	if (!kubepods_pod_uid(name, uid))
		return 0;
	w.uid = uid;
	return each_in(&w, cgroup, on_ctr);
}

/* ---- life ------------------------------------------------------------------------------------ */

int kubepods_new(struct loop *loop, const struct cgroup_fs *c, const char *under,
		 void (*changed)(void *arg), void *arg, struct kubepods **ret, struct err *err)
{
	struct kubepods *k = calloc(1, sizeof *k);
	if (!k)
		return err_errno(err, -ENOMEM, "cgroups");
	k->c = c;
	k->changed = changed;
	k->arg = arg;
	k->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (k->fd < 0) {
		int r = -errno;
		kubepods_free(k);
		return err_errno(err, r, "inotify");
	}
	k->under = under ? strdup(under + strspn(under, "/")) : NULL;
	k->quiet = loop_timer_new(loop, on_quiet, k);
	k->io = loop_io_new(loop, k->fd, LOOP_READ, on_events, k);
	if ((under && !k->under) || !k->quiet || !k->io) {
		kubepods_free(k);
		return err_errno(err, -ENOMEM, "cgroups");
	}
	*ret = k;
	return 0;
}

struct kubepods *kubepods_free(struct kubepods *k)
{
	if (!k)
		return NULL;
	if (k->io)
		loop_io_free(k->io);
	loop_timer_free(k->quiet);
	if (k->fd >= 0)
		(void)close(k->fd);
	struct watched *w, *next;
	HASH_ITER (hh, k->watched, w, next)
		watched_free(k, w);
	kubepods_clear_changes(k);
	free(k->under);
	free(k);
	return NULL;
}
