/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/cgroup_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-bridge/cgroup_source_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/sd.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"

#define LOG_SOURCE "bypass"
#define KNOW_MS 500u /* time to wait for a pod that the pod list does not have yet */
/* time that a pod missing from the list keeps its cgroup before it is treated as removed */
#define GONE_MS 300000u
/* number of consecutive checks without a process after which a container has ended */
#define EMPTY_MAX 2u
#define SETTLED_MS 2000u /* time after which the runtime has finished writing a container's files */
/* delay before a cgroup that the runtime has not described is checked again */
#define UNKNOWN_MS 1000u
#define STOP_MS 2000u /* time limit for pending writes at the end */
#define PAUSE "pause"

/* ---- pods and containers --------------------------------------------------------------------- */

static bool cgroup_source_found(struct cgroup_info *info, const char *cgroup, const char *path,
				const char *uid)
{
	info->cgroup = strdup(cgroup);
	info->path = strdup(path);
	info->uid = strdup(uid);
	info->since_ms = clock_ms();
	info->seen = true;
	return info->cgroup && info->path && info->uid;
}

static struct pod *add_pod(struct cgroup_source *s, const char *id, const struct kubepods_entry *e)
{
	Nri__PodSandbox msg = NRI__POD_SANDBOX__INIT;
	struct pod *pod = model_pod(&s->plugin.model, id);
	if (pod)
		return pod;
	msg.id = (char *)(uintptr_t)id;
	pod = model_add_pod(&s->plugin.model, &msg, id);
	if (!pod)
		return NULL;
	if (!cgroup_source_found(&pod->info, e->pod, "", e->uid)) {
		model_remove_pod(&s->plugin.model, pod);
		pod_unref(pod);
		return NULL;
	}
	pod_unref(pod); /* the table has its own reference */
	return pod;
}

static int add_ctr(struct cgroup_source *s, struct pod *pod, const struct kubepods_entry *e)
{
	Nri__Container msg = NRI__CONTAINER__INIT;
	msg.id = (char *)(uintptr_t)e->id;
	msg.state = NRI__CONTAINER_STATE__CONTAINER_CREATED;
	struct ctr *ctr = pod ? model_add_ctr(&s->plugin.model, pod, &msg, e->id) : NULL;
	if (!ctr)
		return -ENOMEM;
	bool ok = cgroup_source_found(&ctr->info, e->cgroup, e->path, "");
	if (!ok)
		model_remove_ctr(&s->plugin.model, ctr);
	ctr_unref(ctr);
	pod->info.seen = true;
	return ok ? 0 : -ENOMEM;
}

static struct pod *pod_of_uid(const struct cgroup_source *s, const char *uid)
{
	for (struct pod *pod = s->plugin.model.pods; pod; pod = pod->by_cri.next)
		if (str_eq(pod->info.uid, uid))
			return pod;
	return NULL;
}

static bool is_listed(const struct cgroup_source *s, const char *uid, const char *id)
{
	const Agent__FedPod *fed = podlist_find(s->pods, uid);
	for (size_t i = 0; fed && i < fed->n_containers; i++)
		if (str_eq(fed->containers[i]->id, id))
			return true;
	return false;
}

/* Returns true for the runtime's own process, which is in the cgroup while it creates the
 * container. */
static bool is_runtimes(const char *name)
{
	return str_has_prefix(name, "runc:") || str_has_prefix(name, "crun:") ||
	       str_eq(name, "runc") || str_eq(name, "crun");
}

/* Adds a cgroup that the runtime has not described. The pod list or the cgroup's process may
 * identify it. */
static int add_unknown(struct cgroup_source *s, const struct kubepods_entry *e)
{
	char path[64], name[32] = "";
	uint32_t pid = cgroup_process(&s->files, e->cgroup);
	(void)snprintf(path, sizeof path, "proc/%u/comm", pid);
	if (pid)
		(void)fs_read(&s->files.root, path, name, sizeof name);
	bool listed = is_listed(s, e->uid, e->id);
	if (!listed && (!*name || is_runtimes(name))) {
		kubepods_add_change(s->kubepods, e->pod);
		cgroup_source_soon(s, UNKNOWN_MS); /* no container process yet */
		return 0;
	}
	struct pod *pod = pod_of_uid(s, e->uid);
	bool has_sandbox = pod && !str_eq(pod->id, e->uid);
	if (!listed && !has_sandbox && str_eq(name, PAUSE)) {
		pod = pod ? pod : add_pod(s, e->id, e);
		return pod ? 0 : -ENOMEM;
	}
	return add_ctr(s, pod ? pod : add_pod(s, e->uid, e), e);
}

static int add_new(struct cgroup_source *s, const struct kubepods_entry *e)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct bundle bundle;
	int r = a ? bundle_read(&s->files.root, s->config.state, a, e->id, &bundle) : -ENOMEM;
	if (r == -ENOMEM)
		return r;
	if (r)
		return add_unknown(s, e);
	if (bundle.sandbox)
		return add_pod(s, e->id, e) ? 0 : -ENOMEM;
	struct pod *pod = add_pod(s, *bundle.sandbox_id ? bundle.sandbox_id : e->uid, e);
	if (pod && !str_eq(pod->info.uid, e->uid))
		return add_unknown(s, e); /* the cgroup's path decides which pod owns it */
	return add_ctr(s, pod, e);
}

static int on_entry(const struct kubepods_entry *e, void *arg)
{
	struct cgroup_source *s = arg;
	struct ctr *ctr = model_ctr_by_id(&s->plugin.model, e->id);
	struct pod *pod = ctr ? ctr->pod : model_pod(&s->plugin.model, e->id);
	if (podlist_gone_ms(s->pods, e->uid) > GONE_MS)
		return 0;
	if (ctr)
		ctr->info.seen = true;
	if (pod)
		pod->info.seen = true;
	return pod ? 0 : add_new(s, e);
}

/* Returns true if the cgroup is `scope` or below it; scope NULL: always. */
static bool is_within(const struct cgroup_info *info, const char *scope)
{
	size_t n = scope ? strlen(scope) : 0;
	return !scope || (strncmp(info->cgroup, scope, n) == 0 &&
			  (!info->cgroup[n] || info->cgroup[n] == '/'));
}

static void mark_unseen(struct cgroup_source *s, const char *scope)
{
	for (struct pod *pod = s->plugin.model.pods; pod; pod = pod->by_cri.next)
		pod->info.seen = pod->info.seen && !is_within(&pod->info, scope);
	for (struct ctr *ctr = s->plugin.model.ctrs; ctr; ctr = ctr->by_id.next)
		ctr->info.seen = ctr->info.seen && !is_within(&ctr->info, scope);
}

static bool was_told(const struct cgroup_info *info)
{
	return info->told == TOLD_ASKED || info->told == TOLD_TAKEN;
}

static void cgroup_source_stopped(struct cgroup_source *s, struct ctr *ctr)
{
	bool before = ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED;
	ctr->state = NRI__CONTAINER_STATE__CONTAINER_STOPPED;
	if (!before && was_told(&ctr->info))
		cgroup_tell(s, NRI__EVENT__STOP_CONTAINER, ctr->pod, ctr);
}

/* Removes pods and containers not found by the walk. Those outside of the walked folders are still
 * marked as seen. */
static void drop_unseen(struct cgroup_source *s)
{
	struct ctr *ctr, *next_ctr;
	struct pod *pod, *next_pod;
	HASH_ITER (by_id, s->plugin.model.ctrs, ctr, next_ctr) {
		if (ctr->info.seen)
			continue;
		cgroup_source_stopped(s, ctr);
		if (was_told(&ctr->info))
			cgroup_tell(s, NRI__EVENT__REMOVE_CONTAINER, ctr->pod, ctr);
		model_remove_ctr(&s->plugin.model, ctr);
	}
	HASH_ITER (by_cri, s->plugin.model.pods, pod, next_pod) {
		if (pod->info.seen)
			continue;
		if (was_told(&pod->info)) {
			cgroup_tell(s, NRI__EVENT__STOP_POD_SANDBOX, pod, NULL);
			cgroup_tell(s, NRI__EVENT__REMOVE_POD_SANDBOX, pod, NULL);
		}
		model_remove_pod(&s->plugin.model, pod);
	}
}

static void mark_seen(struct cgroup_source *s)
{
	for (struct pod *pod = s->plugin.model.pods; pod; pod = pod->by_cri.next)
		pod->info.seen = true;
	for (struct ctr *ctr = s->plugin.model.ctrs; ctr; ctr = ctr->by_id.next)
		ctr->info.seen = true;
}

static void cgroup_source_walk(struct cgroup_source *s)
{
	mark_unseen(s, NULL);
	int r = kubepods_walk(s->kubepods, on_entry, s);
	if (r && !s->truncated)
		log_error("not all containers are managed: %s",
			  r == -E2BIG ? "there are too many" : strerror(-r));
	s->truncated = r != 0;
	if (!r)
		drop_unseen(s);
	else
		mark_seen(s);
}

/* Walks the folders that have changed. */
static void walk_changes(struct cgroup_source *s)
{
	char scope[CGROUP_PATH_MAX];
	/* The count is taken before, because a folder still without data is added again during the
	 * walk. */
	unsigned n = kubepods_n_changes(s->kubepods);
	while (n-- && kubepods_take_change(s->kubepods, scope)) {
		mark_unseen(s, scope);
		if (kubepods_walk_below(s->kubepods, scope, on_entry, s))
			mark_seen(s); /* out of memory: the next walk finds removed cgroups */
		drop_unseen(s);
	}
}

/* ---- notifications --------------------------------------------------------------------------- */

/* Returns true if the pod can be sent to the plugin. Annotations are sent once, so an unlisted pod
 * waits for the list, for a limited time. */
static bool is_ready(struct cgroup_source *s, struct pod *pod, uint64_t since_ms)
{
	uint64_t now = clock_ms();
	pod->info.known = podlist_find(s->pods, pod->info.uid) != NULL;
	if (pod->info.known || !podlist_may_know(s->pods) || now - since_ms >= KNOW_MS)
		return true;
	podlist_ask(s->pods);
	cgroup_source_soon(s, since_ms + KNOW_MS - now);
	return false;
}

static int redescribe_pod(const struct cgroup_source *s, struct arena *a, struct pod *pod)
{
	const Nri__PodSandbox *m = describe_pod(s, a, pod);
	return m ? packed_set(&pod->msg, &m->base) : -ENOMEM;
}

static int redescribe_ctr(struct cgroup_source *s, struct arena *a, struct ctr *ctr, bool fresh)
{
	const Nri__Container *m = describe_ctr(s, a, ctr, fresh);
	return m ? packed_set(&ctr->msg, &m->base) : -ENOMEM;
}

static void tell_pod(struct cgroup_source *s, struct pod *pod)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	if (!a || redescribe_pod(s, a, pod))
		return; /* out of memory: retried by the next walk */
	pod->info.told = TOLD_ASKED;
	cgroup_tell(s, NRI__EVENT__RUN_POD_SANDBOX, pod, NULL);
}

static void tell_ctr(struct cgroup_source *s, struct ctr *ctr)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	if (!a || redescribe_ctr(s, a, ctr, true))
		return;
	ctr->info.told = TOLD_ASKED;
	cgroup_tell(s, NRI__EVENT__CREATE_CONTAINER, ctr->pod, ctr);
}

static void advance_once(struct cgroup_source *s)
{
	struct pod *pod, *next_pod;
	struct ctr *ctr, *next_ctr;
	HASH_ITER (by_cri, s->plugin.model.pods, pod, next_pod) {
		if (pod->info.told == TOLD_NOTHING && is_ready(s, pod, pod->info.since_ms))
			tell_pod(s, pod);
	}
	HASH_ITER (by_id, s->plugin.model.ctrs, ctr, next_ctr) {
		if (ctr->info.told == TOLD_NOTHING && ctr->pod->info.told == TOLD_TAKEN)
			tell_ctr(s, ctr);
	}
}

void cgroup_source_advance(struct cgroup_source *s)
{
	s->again = true;
	if (s->advancing)
		return; /* called by an answer from inside the loop below */
	s->advancing = true;
	while (s->again && nri_runtime_is_active(s->plugin.nri)) {
		s->again = false;
		advance_once(s);
	}
	s->advancing = false;
	cgroup_source_status(s);
}

/* ---- Synchronize ----------------------------------------------------------------------------- */

static void on_synchronized(const Nri__SynchronizeResponse *m, void *arg)
{
	struct cgroup_source *s = arg;
	s->sync_arena = arena_free(s->sync_arena);
	if (m) {
		log_info("synchronised: %u pods, %u containers, %zu updates",
			 HASH_CNT(by_cri, s->plugin.model.pods),
			 HASH_CNT(by_id, s->plugin.model.ctrs), m->n_update);
		(void)want_all(s, m->update, m->n_update, true, NULL);
		(void)loop_timer_arm(s->reconcile, s->config.reconcile_ms);
		/* a walk sends pods and containers that appeared during the synchronization */
		cgroup_source_soon(s, 1);
	}
	nri_runtime_unlock(s->plugin.nri);
}

/* Builds messages of their own, because the list may change before the last part has been sent. */
static int gather_pods(struct cgroup_source *s, struct nri_existing *all)
{
	struct arena *a = s->sync_arena;
	all->pods = arena_array(a, HASH_CNT(by_cri, s->plugin.model.pods) + 1, sizeof *all->pods);
	for (struct pod *pod = all->pods ? s->plugin.model.pods : NULL; pod;
	     pod = pod->by_cri.next) {
		Nri__PodSandbox *m = redescribe_pod(s, a, pod) ? NULL : pod_message(a, pod);
		if (!m)
			return -ENOMEM;
		pod->info.told = TOLD_TAKEN;
		all->pods[all->n_pods++] = m;
	}
	return all->pods ? 0 : -ENOMEM;
}

static int gather_ctrs(struct cgroup_source *s, struct nri_existing *all)
{
	struct arena *a = s->sync_arena;
	all->ctrs = arena_array(a, HASH_CNT(by_id, s->plugin.model.ctrs) + 1, sizeof *all->ctrs);
	for (struct ctr *ctr = all->ctrs ? s->plugin.model.ctrs : NULL; ctr;
	     ctr = ctr->by_id.next) {
		ctr->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
		Nri__Container *m = redescribe_ctr(s, a, ctr, false) ? NULL : ctr_message(a, ctr);
		if (!m || want_as_told(ctr, m))
			return -ENOMEM;
		ctr->info.told = TOLD_TAKEN;
		all->ctrs[all->n_ctrs++] = m;
	}
	return all->ctrs ? 0 : -ENOMEM;
}

static void synchronize_now(struct cgroup_source *s)
{
	struct nri_existing all = {0};
	s->sync_ms = 0;
	s->sync_arena = arena_new(ARENA_BLOCK, 0);
	if (!s->sync_arena || gather_pods(s, &all) || gather_ctrs(s, &all)) {
		s->sync_arena = arena_free(s->sync_arena);
		nri_runtime_not_synchronized(s->plugin.nri, "out of memory");
		return;
	}
	nri_runtime_synchronize(s->plugin.nri, &all, on_synchronized, s);
}

static void try_synchronize(struct cgroup_source *s)
{
	for (struct pod *pod = s->plugin.model.pods; pod; pod = pod->by_cri.next)
		if (!is_ready(s, pod, s->sync_ms))
			return;
	synchronize_now(s);
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* Walks the cgroups. all: all folders; false: the changed ones. */
static void cgroup_source_look(struct cgroup_source *s, bool all)
{
	uint64_t before = kubepods_n_listed(s->kubepods);
	if (!s->sync_ms && !nri_runtime_is_active(s->plugin.nri))
		return;
	if (all || s->truncated || kubepods_all_changed(s->kubepods))
		cgroup_source_walk(s);
	else
		walk_changes(s);
	log_debug("inspected %llu folders",
		  (unsigned long long)(kubepods_n_listed(s->kubepods) - before));
	if (s->sync_ms)
		try_synchronize(s);
	else
		cgroup_source_advance(s);
}

static bool has_settled(const struct ctr *ctr)
{
	return clock_ms() - ctr->info.since_ms > SETTLED_MS;
}

static void on_soon(void *arg)
{
	struct cgroup_source *s = arg;
	struct ctr *ctr, *next;
	cgroup_source_look(s, false);
	HASH_ITER (by_id, s->plugin.model.ctrs, ctr, next) {
		if (!has_settled(ctr) && ctr->info.told == TOLD_TAKEN)
			write_again(s, ctr, false);
	}
}

void cgroup_source_soon(struct cgroup_source *s, uint64_t ms)
{
	uint64_t due = clock_ms() + ms;
	if (loop_timer_armed(s->soon) && s->soon_ms <= due)
		return;
	s->soon_ms = due;
	(void)loop_timer_arm(s->soon, ms ? ms : 1);
}

/* Detects a container whose processes have ended before the runtime removes its cgroup. */
static void look_for_end(struct cgroup_source *s, struct ctr *ctr)
{
	ctr->info.empty = cgroup_is_empty(&s->files, ctr->info.cgroup) ? ctr->info.empty + 1 : 0;
	if (ctr->info.empty >= EMPTY_MAX)
		cgroup_source_stopped(s, ctr);
}

/* Returns true if the list now has a pod that was sent to the plugin without its data. The plugin
 * must then be synchronized again. */
static bool has_learned(struct cgroup_source *s)
{
	bool learned = false;
	for (struct pod *pod = s->plugin.model.pods; pod; pod = pod->by_cri.next)
		if (pod->info.told == TOLD_TAKEN && !pod->info.known &&
		    podlist_find(s->pods, pod->info.uid))
			learned = true;
	return learned;
}

static void on_reconcile(void *arg)
{
	struct cgroup_source *s = arg;
	struct ctr *ctr, *next_ctr;
	struct pod *pod, *next_pod;
	(void)loop_timer_arm(s->reconcile, s->config.reconcile_ms);
	HASH_ITER (by_id, s->plugin.model.ctrs, ctr, next_ctr) {
		look_for_end(s, ctr);
		if (ctr->info.told == TOLD_TAKEN &&
		    ctr->state != NRI__CONTAINER_STATE__CONTAINER_STOPPED)
			write_again(s, ctr, has_settled(ctr));
		else if (ctr->info.told == TOLD_REFUSED)
			ctr->info.told = TOLD_NOTHING;
	}
	HASH_ITER (by_cri, s->plugin.model.pods, pod, next_pod) {
		if (pod->info.told == TOLD_REFUSED)
			pod->info.told = TOLD_NOTHING;
	}
	cgroup_source_look(s, true);
	if (nri_runtime_is_active(s->plugin.nri))
		resize_all(s); /* repeats refused resizes */
	if (has_learned(s))
		nri_runtime_drop(s->plugin.nri,
				 "more is known about pods now: synchronizing again");
}

static void on_changed(void *arg)
{
	cgroup_source_look(arg, false);
}

static void on_listed(void *arg)
{
	struct cgroup_source *s = arg;
	cgroup_source_look(s, false);
	if (nri_runtime_is_active(s->plugin.nri))
		resize_all(s);
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static void on_synchronize(void *arg)
{
	struct cgroup_source *s = arg;
	s->sync_ms = clock_ms();
	cgroup_source_look(s, true);
}

static void on_update(const Nri__UpdateContainersRequest *m, void *arg)
{
	struct cgroup_source *s = arg;
	struct write_run *run = write_run_new(s);
	if (!run) {
		nri_runtime_updated(s->plugin.nri, true);
		return;
	}
	run->failed += want_all(s, m->update, m->n_update, false, run);
	write_run_end(run);
}

static void on_came(const char *plugin, void *arg)
{
	log_notice("the plugin %s is connected: containers are placed", plugin);
	cgroup_source_status(arg);
}

/* Resets the states after the plugin has disconnected. What it wanted stays recorded: the next
 * plugin is sent the files' values, and may send no update where it agrees with them. */
static void forget_told(struct cgroup_source *s)
{
	for (struct ctr *ctr = s->plugin.model.ctrs; ctr; ctr = ctr->by_id.next) {
		ctr->info.told = TOLD_NOTHING;
		ctr->info.warned = ctr->info.failing = ctr->info.refused_before = false;
		ctr->info.resize_refused = false;
	}
	for (struct pod *pod = s->plugin.model.pods; pod; pod = pod->by_cri.next) {
		pod->info.told = TOLD_NOTHING;
		pod->info.refused_before = false;
	}
}

static void on_gone(void *arg)
{
	struct cgroup_source *s = arg;
	s->sync_ms = 0;
	loop_timer_disarm(s->soon);
	loop_timer_disarm(s->reconcile);
	notices_free(&s->plugin);
	forget_told(s);
	cgroup_source_status(s);
}

void cgroup_source_status(struct cgroup_source *s)
{
	if (!s->config.status || !s->plugin.nri)
		return; /* no walk during start or stop */
	char text[SD_STATUS_MAX];
	const char *top = kubepods_top(s->kubepods);
	unsigned n = 0, unmanaged = 0;
	for (const struct ctr *ctr = s->plugin.model.ctrs; ctr; ctr = ctr->by_id.next) {
		n++;
		unmanaged += ctr->info.refused_before || ctr->pod->info.refused_before;
	}
	if (!nri_runtime_is_active(s->plugin.nri))
		(void)snprintf(text, sizeof text, "waiting for nri-rpd at %.300s",
			       s->config.socket);
	else
		(void)snprintf(text, sizeof text,
			       "%.100s, pods by %.200s: %u containers, %u not managed; %llu files "
			       "repaired, %llu writes failed",
			       top ? top : "no cgroup of the kubelet", podlist_state(s->pods), n,
			       unmanaged, (unsigned long long)s->drifted,
			       (unsigned long long)s->failed);
	s->config.status(text, s->config.arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

int cgroup_source_new(const struct cgroup_source_config *config, struct cgroup_source **ret,
		      struct err *err)
{
	struct cgroup_source *s = calloc(1, sizeof *s);
	if (!s)
		return err_errno(err, -ENOMEM, "source cgroups");
	s->config = *config;
	s->config.pods.changed = on_listed;
	s->config.pods.arg = s;
	s->files.root.fd = -1;
	s->soon = loop_timer_new(config->loop, on_soon, s);
	s->reconcile = loop_timer_new(config->loop, on_reconcile, s);
	s->writer = worker_new(config->loop, "cgroups");
	int r = s->soon && s->reconcile && s->writer ? cgroup_fs_open(&s->files, config->root, err)
						     : err_errno(err, -ENOMEM, "source cgroups");
	s->files.migrate = config->migrate;
	if (!r)
		r = kubepods_new(config->loop, &s->files, config->cgroup_root, on_changed, s,
				 &s->kubepods, err);
	if (!r)
		r = podlist_new(&s->config.pods, &s->pods, err);
	if (!r)
		r = plugin_open(&s->plugin,
				&(struct plugin_config){.loop = config->loop,
							.socket = config->socket,
							.name = "nri-rp-bridge/cgroups",
							.without = "cgroups are left as they are",
							.synchronize = on_synchronize,
							.update = on_update,
							.came = on_came,
							.gone = on_gone,
							.heard = cgroup_heard},
				err);
	if (r) {
		cgroup_source_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct cgroup_source *cgroup_source_free(struct cgroup_source *s)
{
	if (!s)
		return NULL;
	s->config.status = NULL;
	if (s->writer && worker_free_within(s->writer, STOP_MS))
		return NULL; /* a write hangs in the kernel; its memory must stay valid */
	plugin_close(&s->plugin);
	podlist_free(s->pods);
	kubepods_free(s->kubepods);
	loop_timer_free(s->soon);
	loop_timer_free(s->reconcile);
	cgroup_fs_close(&s->files);
	free(s);
	return NULL;
}
