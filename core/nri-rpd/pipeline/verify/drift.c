/* SPDX-License-Identifier: Apache-2.0 */
/* Drift: inotify watches on cgroups, and the search for the program that changed them. */
#include "core/nri-rpd/pipeline/verify/drift.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/observe/kubelet.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/verify/amounts.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "drift"
#define EVENTS_AT_ONCE 4096u /* size of the buffer for file events, in bytes */

struct watch {
	int wd;
	rp_ctr ctr;
	UT_hash_handle hh;
};

/* ---- culprits -------------------------------------------------------------------------------- */

static const struct {
	const char *text, *hint;
} culprits[N_CULPRITS] = {
	[CULPRIT_UNKNOWN] = {"an unknown program: none of the usual ones is running",
			     "find the writer with auditctl -w /sys/fs/cgroup -p w, or bpftrace"},
	[CULPRIT_KUBELET] = {"the kubelet's static CPU manager",
			     "kubelet: cpuManagerPolicy: none, remove "
			     "/var/lib/kubelet/cpu_manager_state"},
	[CULPRIT_RUNC] = {"runc before 1.1.6, whose systemd driver reverses the bytes of a set",
			  "update runc to 1.1.6 or later"},
	[CULPRIT_SYSTEMD] = {"systemd, which applies a unit's values again (daemon-reload)",
			     "use runc 1.1.6 or later, which also updates systemd; check what "
			     "reloads systemd often"},
	[CULPRIT_TUNED] = {"tuned, which is running",
			   "tuned: cgroup_ps_blacklist in the profile's [scheduler], or its "
			   "isolated cores"},
	[CULPRIT_CGRULES] = {"cgrulesengd, which is running",
			     "systemctl disable --now cgred, or an exception in cgrules.conf"},
	[CULPRIT_RESET] =
		{"a program that set all CPUs, like a restarted kubelet or a container tool",
		 "check whether the container was changed manually (docker, nerdctl, crictl "
		 "update)"},
};

const char *culprit_text(enum culprit c)
{
	return culprits[c].text;
}

const char *culprit_hint(enum culprit c)
{
	return culprits[c].hint;
}

bool drift_swap_bytes(struct rp_ids set, struct rp_idset *ret)
{
	uint32_t last = rp_ids_last(set), n_bytes = last / 8 + 1;
	if (last == RP_IDSET_NONE || n_bytes < 2)
		return false;
	rp_idset_clear(ret);
	RP_IDS_EACH (id, set)
		rp_idset_add(ret, (n_bytes - 1 - id / 8) * 8 + id % 8);
	return true;
}

struct running {
	const struct fs_root *root;
	struct drift_traces *traces;
};

static int look_at_process(const char *pid, void *arg)
{
	static const struct {
		const char *comm;
		enum culprit culprit;
	} known[] = {{"tuned", CULPRIT_TUNED}, {"cgrulesengd", CULPRIT_CGRULES}};
	const struct running *r = arg;
	char path[64], comm[32];
	if (*pid < '0' || *pid > '9' || strlen(pid) > 10)
		return 0;
	(void)snprintf(path, sizeof path, "proc/%s/comm", pid);
	if (fs_read(r->root, path, comm, sizeof comm) < 0)
		return 0;
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (str_eq(comm, known[i].comm))
			r->traces->running = known[i].culprit;
	return r->traces->running != CULPRIT_UNKNOWN;
}

static void look_for_traces(const struct fs_root *root, struct drift_traces *t)
{
	struct running running = {root, t};
	struct kubelet_state kubelet;
	if (t->known)
		return;
	*t = (struct drift_traces){.known = true};
	t->kubelet =
		kubelet_read_state(root, KUBELET_CPU, &kubelet) && str_eq(kubelet.policy, "static");
	if (!t->kubelet)
		(void)fs_list(root, "proc", look_at_process, &running);
}

enum culprit drift_blame(const struct fs_root *root, struct drift_traces *traces,
			 const char *cgroups_path, struct rp_ids expected, struct rp_ids found,
			 bool is_all)
{
	struct rp_idset swapped;
	bool systemd = *cgroups_path != '/';
	if (systemd && drift_swap_bytes(expected, &swapped) &&
	    rp_ids_equal(rp_ids_of(&swapped), found))
		return CULPRIT_RUNC;
	look_for_traces(root, traces);
	if (traces->kubelet)
		return CULPRIT_KUBELET;
	if (traces->running != CULPRIT_UNKNOWN)
		return traces->running;
	if (systemd && (is_all || rp_ids_empty(found)))
		return CULPRIT_SYSTEMD;
	return is_all || rp_ids_empty(found) ? CULPRIT_RESET : CULPRIT_UNKNOWN;
}

/* ---- watches --------------------------------------------------------------------------------- */

int drift_watch(int fd, int dir)
{
	static struct log_limit limit = LOG_LIMIT(1, 3600000);
	char path[32];
	if (fd < 0)
		return 0;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
	int wd = inotify_add_watch(fd, path, IN_MODIFY | IN_ONLYDIR);
	if (wd < 0 && log_allowed(&limit, LOG_SOURCE))
		log_warning("not all containers are watched: %s%s", strerror(errno),
			    errno == ENOSPC ? "; see sysctl fs.inotify.max_user_watches" : "");
	return wd < 0 ? 0 : wd;
}

static struct watch *find_watch(const struct pipeline *p, int wd)
{
	struct watch *w;
	HASH_FIND_INT(p->verify.drift.watches, &wd, w);
	return w;
}

static void on_event(struct pipeline *p, const struct inotify_event *e)
{
	if (e->mask & IN_Q_OVERFLOW) {
		verify_all(p);
		return;
	}
	bool sets = e->len && (str_eq(e->name, "cpuset.cpus") || str_eq(e->name, "cpuset.mems"));
	bool amounts = e->len && !sets && amounts_file(e->name);
	if (!sets && !amounts)
		return;
	const struct watch *w = find_watch(p, e->wd);
	struct ctr *ctr = w ? cache_ctr_of(p->env.cache, w->ctr) : NULL;
	if (ctr && (sets || verify_has_amounts(p, ctr)))
		verify_later(p, ctr);
	p->verify.drift.missed |= !w;
}

static void on_events(unsigned events, void *arg)
{
	struct pipeline *p = arg;
	_Alignas(struct inotify_event) char buf[EVENTS_AT_ONCE];
	ssize_t n = read(p->verify.drift.fd, buf, sizeof buf);
	for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
		const struct inotify_event *e = (const void *)(buf + at);
		on_event(p, e);
		at += (ssize_t)(sizeof *e + e->len);
	}
}

void drift_watched(struct pipeline *p, struct ctr *ctr, unsigned dir, int wd)
{
	if (!wd || ctr->drift.watches[dir] == wd)
		return;
	struct watch *w = HASH_FIND_OR_ADD(p->verify.drift.watches, wd, wd);
	if (!w)
		return;
	w->ctr = ctr->handle;
	ctr->drift.watches[dir] = wd;
}

static void drop_watch(struct pipeline *p, struct watch *w)
{
	(void)inotify_rm_watch(p->verify.drift.fd, w->wd);
	HASH_DEL(p->verify.drift.watches, w);
	free(w);
}

void drift_forget(struct pipeline *p, struct ctr *ctr)
{
	for (unsigned i = 0; i < N_DRIFT_DIRS; i++) {
		int wd = ctr->drift.watches[i];
		struct watch *w = wd ? find_watch(p, wd) : NULL;
		ctr->drift.watches[i] = 0;
		if (w && w->ctr == ctr->handle)
			drop_watch(p, w);
	}
}

void drift_sweep(struct pipeline *p)
{
	struct watch *w, *next;
	HASH_ITER (hh, p->verify.drift.watches, w, next)
		if (!cache_ctr_of(p->env.cache, w->ctr))
			drop_watch(p, w);
}

/* ---- start, end and statistics --------------------------------------------------------------- */

int drift_init(struct pipeline *p)
{
	p->verify.drift.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (p->verify.drift.fd < 0) {
		log_warning("changes of containers' CPUs by other programs will not be noticed: %s",
			    strerror(errno));
		return 0;
	}
	p->verify.drift.io = loop_io_new(p->env.loop, p->verify.drift.fd, LOOP_READ, on_events, p);
	return p->verify.drift.io ? 0 : -ENOMEM;
}

void drift_fini(struct pipeline *p)
{
	struct watch *w, *next;
	HASH_ITER (hh, p->verify.drift.watches, w, next) {
		HASH_DEL(p->verify.drift.watches, w);
		free(w);
	}
	p->verify.drift.io = loop_io_free(p->verify.drift.io);
	if (p->verify.drift.fd >= 0)
		(void)close(p->verify.drift.fd);
	p->verify.drift.fd = -1;
}

void drift_note(struct pipeline *p, const struct ctr *ctr, enum culprit culprit)
{
	struct drift_stats *s = &p->verify.drift.stats;
	s->found++;
	s->by[culprit]++;
	(void)snprintf(s->last[culprit], sizeof s->last[culprit], "%s", ctr->full_name);
}

void pipeline_drift(const struct pipeline *p, struct drift_stats *ret)
{
	*ret = p->verify.drift.stats;
	ret->watching = p->verify.drift.fd >= 0;
	ret->n_watched = HASH_COUNT(p->verify.drift.watches);
}
