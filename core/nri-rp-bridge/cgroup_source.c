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
#define KNOW_MS 500u /* waiting time for a pod that the list does not have yet */
/* time that a pod missing from the list keeps its cgroup before it is treated as removed */
#define GONE_MS 300000u
#define EMPTY_MAX 2u /* consecutive checks without a process after which a container has ended */
#define SETTLED_MS 2000u /* time after which the runtime has finished writing a container's files */
/* delay before a cgroup that the runtime has not described is checked again */
#define UNKNOWN_MS 1000u
#define STOP_MS 2000u /* time limit for pending writes at the end */
#define PAUSE "pause"

/* ---- pods and containers --------------------------------------------------------------------- */

static bool cgroup_source_sit(struct seat *seat, const char *cgroup, const char *path,
			      const char *uid)
{
	seat->cgroup = strdup(cgroup);
	seat->path = strdup(path);
	seat->uid = strdup(uid);
	seat->since_ms = clock_ms();
	seat->seen = true;
	return seat->cgroup && seat->path && seat->uid;
}

static struct pod *add_pod(struct bypass *b, const char *id, const struct kubepods_entry *e)
{
	Nri__PodSandbox msg = NRI__POD_SANDBOX__INIT;
	struct pod *pod = model_pod(&b->model, id);
	if (pod)
		return pod;
	msg.id = (char *)(uintptr_t)id;
	pod = model_add_pod(&b->model, &msg, id);
	if (!pod)
		return NULL;
	if (!cgroup_source_sit(&pod->seat, e->pod, "", e->uid)) {
		model_remove_pod(&b->model, pod);
		pod_unref(pod);
		return NULL;
	}
	pod_unref(pod); /* the table has its own reference */
	return pod;
}

static int add_ctr(struct bypass *b, struct pod *pod, const struct kubepods_entry *e)
{
	Nri__Container msg = NRI__CONTAINER__INIT;
	msg.id = (char *)(uintptr_t)e->id;
	msg.state = NRI__CONTAINER_STATE__CONTAINER_CREATED;
	struct ctr *ctr = pod ? model_add_ctr(&b->model, pod, &msg, e->id) : NULL;
	if (!ctr)
		return -ENOMEM;
	bool ok = cgroup_source_sit(&ctr->seat, e->cgroup, e->path, "");
	if (!ok)
		model_remove_ctr(&b->model, ctr);
	ctr_unref(ctr);
	pod->seat.seen = true;
	return ok ? 0 : -ENOMEM;
}

static struct pod *pod_of_uid(const struct bypass *b, const char *uid)
{
	for (struct pod *pod = b->model.pods; pod; pod = pod->by_cri.next)
		if (str_eq(pod->seat.uid, uid))
			return pod;
	return NULL;
}

static bool is_listed(const struct bypass *b, const char *uid, const char *id)
{
	const Agent__FedPod *fed = podlist_find(b->pods, uid);
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

/* Adds a cgroup that the runtime has not described: the pod list may know it, or its process shows
 * what it is. */
static int add_unknown(struct bypass *b, const struct kubepods_entry *e)
{
	char path[64], name[32] = "";
	uint32_t pid = cgroup_process(&b->files, e->cgroup);
	(void)snprintf(path, sizeof path, "proc/%u/comm", pid);
	if (pid)
		(void)fs_read(&b->files.root, path, name, sizeof name);
	bool listed = is_listed(b, e->uid, e->id);
	if (!listed && (!*name || is_runtimes(name))) {
		kubepods_add_change(b->kubepods, e->pod);
		bypass_soon(b, UNKNOWN_MS); /* no container process yet */
		return 0;
	}
	struct pod *pod = pod_of_uid(b, e->uid);
	bool has_sandbox = pod && !str_eq(pod->id, e->uid);
	if (!listed && !has_sandbox && str_eq(name, PAUSE)) {
		pod = pod ? pod : add_pod(b, e->id, e);
		return pod ? 0 : -ENOMEM;
	}
	return add_ctr(b, pod ? pod : add_pod(b, e->uid, e), e);
}

static int add_new(struct bypass *b, const struct kubepods_entry *e)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct bundle bundle;
	int r = a ? bundle_read(&b->files.root, b->config.state, a, e->id, &bundle) : -ENOMEM;
	if (r == -ENOMEM)
		return r;
	if (r)
		return add_unknown(b, e);
	if (bundle.sandbox)
		return add_pod(b, e->id, e) ? 0 : -ENOMEM;
	struct pod *pod = add_pod(b, *bundle.sandbox_id ? bundle.sandbox_id : e->uid, e);
	if (pod && !str_eq(pod->seat.uid, e->uid))
		return add_unknown(b, e); /* the cgroup's path decides which pod owns it */
	return add_ctr(b, pod, e);
}

static int on_entry(const struct kubepods_entry *e, void *arg)
{
	struct bypass *b = arg;
	struct ctr *ctr = model_ctr_by_id(&b->model, e->id);
	struct pod *pod = ctr ? ctr->pod : model_pod(&b->model, e->id);
	if (podlist_gone_ms(b->pods, e->uid) > GONE_MS)
		return 0;
	if (ctr)
		ctr->seat.seen = true;
	if (pod)
		pod->seat.seen = true;
	return pod ? 0 : add_new(b, e);
}

/* Returns true if the cgroup is `scope` or below it; scope NULL: always. */
static bool is_within(const struct seat *seat, const char *scope)
{
	size_t n = scope ? strlen(scope) : 0;
	return !scope || (strncmp(seat->cgroup, scope, n) == 0 &&
			  (!seat->cgroup[n] || seat->cgroup[n] == '/'));
}

static void mark_unseen(struct bypass *b, const char *scope)
{
	for (struct pod *pod = b->model.pods; pod; pod = pod->by_cri.next)
		pod->seat.seen = pod->seat.seen && !is_within(&pod->seat, scope);
	for (struct ctr *ctr = b->model.ctrs; ctr; ctr = ctr->by_id.next)
		ctr->seat.seen = ctr->seat.seen && !is_within(&ctr->seat, scope);
}

static bool was_told(const struct seat *seat)
{
	return seat->told == TOLD_ASKED || seat->told == TOLD_TAKEN;
}

static void cgroup_source_stopped(struct bypass *b, struct ctr *ctr)
{
	bool before = ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED;
	ctr->state = NRI__CONTAINER_STATE__CONTAINER_STOPPED;
	if (!before && was_told(&ctr->seat))
		word_say(b, NRI__EVENT__STOP_CONTAINER, ctr->pod, ctr);
}

/* Removes pods and containers not found by the walk. Those outside of the walked folders are still
 * marked as seen. */
static void drop_unseen(struct bypass *b)
{
	struct ctr *ctr, *next_ctr;
	struct pod *pod, *next_pod;
	HASH_ITER (by_id, b->model.ctrs, ctr, next_ctr) {
		if (ctr->seat.seen)
			continue;
		cgroup_source_stopped(b, ctr);
		if (was_told(&ctr->seat))
			word_say(b, NRI__EVENT__REMOVE_CONTAINER, ctr->pod, ctr);
		model_remove_ctr(&b->model, ctr);
	}
	HASH_ITER (by_cri, b->model.pods, pod, next_pod) {
		if (pod->seat.seen)
			continue;
		if (was_told(&pod->seat)) {
			word_say(b, NRI__EVENT__STOP_POD_SANDBOX, pod, NULL);
			word_say(b, NRI__EVENT__REMOVE_POD_SANDBOX, pod, NULL);
		}
		model_remove_pod(&b->model, pod);
	}
}

static void mark_seen(struct bypass *b)
{
	for (struct pod *pod = b->model.pods; pod; pod = pod->by_cri.next)
		pod->seat.seen = true;
	for (struct ctr *ctr = b->model.ctrs; ctr; ctr = ctr->by_id.next)
		ctr->seat.seen = true;
}

static void cgroup_source_walk(struct bypass *b)
{
	mark_unseen(b, NULL);
	int r = kubepods_walk(b->kubepods, on_entry, b);
	if (r && !b->truncated)
		log_error("not all containers are managed: %s",
			  r == -E2BIG ? "there are too many" : strerror(-r));
	b->truncated = r != 0;
	if (!r)
		drop_unseen(b);
	else
		mark_seen(b);
}

/* Walks the folders that have changed. */
static void walk_changes(struct bypass *b)
{
	char scope[CGROUP_PATH_MAX];
	/* The count is taken before, because a folder still without data is added again during the
	 * walk. */
	unsigned n = kubepods_n_changes(b->kubepods);
	while (n-- && kubepods_take_change(b->kubepods, scope)) {
		mark_unseen(b, scope);
		if (kubepods_walk_below(b->kubepods, scope, on_entry, b))
			mark_seen(b); /* out of memory: the next walk finds removed cgroups */
		drop_unseen(b);
	}
}

/* ---- notifications --------------------------------------------------------------------------- */

/* Returns true if the pod can be sent to the plugin. Annotations are sent once, so an unlisted pod
 * waits for the list, for a limited time. */
static bool is_ready(struct bypass *b, struct pod *pod, uint64_t since_ms)
{
	uint64_t now = clock_ms();
	pod->seat.known = podlist_find(b->pods, pod->seat.uid) != NULL;
	if (pod->seat.known || !podlist_may_know(b->pods) || now - since_ms >= KNOW_MS)
		return true;
	podlist_ask(b->pods);
	bypass_soon(b, since_ms + KNOW_MS - now);
	return false;
}

static int redescribe_pod(const struct bypass *b, struct arena *a, struct pod *pod)
{
	const Nri__PodSandbox *m = describe_pod(b, a, pod);
	return m ? packed_set(&pod->msg, &m->base) : -ENOMEM;
}

static int redescribe_ctr(struct bypass *b, struct arena *a, struct ctr *ctr, bool anew)
{
	const Nri__Container *m = describe_ctr(b, a, ctr, anew);
	return m ? packed_set(&ctr->msg, &m->base) : -ENOMEM;
}

static void tell_pod(struct bypass *b, struct pod *pod)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	if (!a || redescribe_pod(b, a, pod))
		return; /* out of memory: retried by the next walk */
	pod->seat.told = TOLD_ASKED;
	word_say(b, NRI__EVENT__RUN_POD_SANDBOX, pod, NULL);
}

static void tell_ctr(struct bypass *b, struct ctr *ctr)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	if (!a || redescribe_ctr(b, a, ctr, true))
		return;
	ctr->seat.told = TOLD_ASKED;
	word_say(b, NRI__EVENT__CREATE_CONTAINER, ctr->pod, ctr);
}

static void advance_once(struct bypass *b)
{
	struct pod *pod, *next_pod;
	struct ctr *ctr, *next_ctr;
	HASH_ITER (by_cri, b->model.pods, pod, next_pod) {
		if (pod->seat.told == TOLD_NOTHING && is_ready(b, pod, pod->seat.since_ms))
			tell_pod(b, pod);
	}
	HASH_ITER (by_id, b->model.ctrs, ctr, next_ctr) {
		if (ctr->seat.told == TOLD_NOTHING && ctr->pod->seat.told == TOLD_TAKEN)
			tell_ctr(b, ctr);
	}
}

void bypass_advance(struct bypass *b)
{
	b->again = true;
	if (b->advancing)
		return; /* called by an answer from inside the loop below */
	b->advancing = true;
	while (b->again && nri_runtime_is_active(b->nri)) {
		b->again = false;
		advance_once(b);
	}
	b->advancing = false;
	bypass_status(b);
}

/* ---- Synchronize ----------------------------------------------------------------------------- */

static void on_synchronized(const Nri__SynchronizeResponse *m, void *arg)
{
	struct bypass *b = arg;
	b->sync_arena = arena_free(b->sync_arena);
	if (m) {
		log_info("synchronised: %u pods, %u containers, %zu updates",
			 HASH_CNT(by_cri, b->model.pods), HASH_CNT(by_id, b->model.ctrs),
			 m->n_update);
		(void)want_all(b, m->update, m->n_update, true, NULL);
		(void)loop_timer_arm(b->reconcile, b->config.reconcile_ms);
		bypass_soon(b, 1); /* sends pods and containers that appeared meanwhile */
	}
	nri_runtime_unlock(b->nri);
}

/* Builds messages of their own, because the list may change before the last part has been sent. */
static int gather_pods(struct bypass *b, struct nri_existing *all)
{
	struct arena *a = b->sync_arena;
	all->pods = arena_array(a, HASH_CNT(by_cri, b->model.pods) + 1, sizeof *all->pods);
	for (struct pod *pod = all->pods ? b->model.pods : NULL; pod; pod = pod->by_cri.next) {
		Nri__PodSandbox *m = redescribe_pod(b, a, pod) ? NULL : pod_message(a, pod);
		if (!m)
			return -ENOMEM;
		pod->seat.told = TOLD_TAKEN;
		all->pods[all->n_pods++] = m;
	}
	return all->pods ? 0 : -ENOMEM;
}

static int gather_ctrs(struct bypass *b, struct nri_existing *all)
{
	struct arena *a = b->sync_arena;
	all->ctrs = arena_array(a, HASH_CNT(by_id, b->model.ctrs) + 1, sizeof *all->ctrs);
	for (struct ctr *ctr = all->ctrs ? b->model.ctrs : NULL; ctr; ctr = ctr->by_id.next) {
		ctr->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
		Nri__Container *m = redescribe_ctr(b, a, ctr, false) ? NULL : ctr_message(a, ctr);
		if (!m || want_as_told(ctr, m))
			return -ENOMEM;
		ctr->seat.told = TOLD_TAKEN;
		all->ctrs[all->n_ctrs++] = m;
	}
	return all->ctrs ? 0 : -ENOMEM;
}

static void synchronize_now(struct bypass *b)
{
	struct nri_existing all = {0};
	b->sync_ms = 0;
	b->sync_arena = arena_new(ARENA_BLOCK, 0);
	if (!b->sync_arena || gather_pods(b, &all) || gather_ctrs(b, &all)) {
		b->sync_arena = arena_free(b->sync_arena);
		nri_runtime_not_synchronized(b->nri, "out of memory");
		return;
	}
	nri_runtime_synchronize(b->nri, &all, on_synchronized, b);
}

static void try_synchronize(struct bypass *b)
{
	for (struct pod *pod = b->model.pods; pod; pod = pod->by_cri.next)
		if (!is_ready(b, pod, b->sync_ms))
			return;
	synchronize_now(b);
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* Walks the cgroups. all: all folders; false: the changed ones. */
static void cgroup_source_look(struct bypass *b, bool all)
{
	uint64_t before = kubepods_n_listed(b->kubepods);
	if (!b->sync_ms && !nri_runtime_is_active(b->nri))
		return;
	if (all || b->truncated || kubepods_all_changed(b->kubepods))
		cgroup_source_walk(b);
	else
		walk_changes(b);
	log_debug("%llu folders were looked into",
		  (unsigned long long)(kubepods_n_listed(b->kubepods) - before));
	if (b->sync_ms)
		try_synchronize(b);
	else
		bypass_advance(b);
}

static bool has_settled(const struct ctr *ctr)
{
	return clock_ms() - ctr->seat.since_ms > SETTLED_MS;
}

static void on_soon(void *arg)
{
	struct bypass *b = arg;
	struct ctr *ctr, *next;
	cgroup_source_look(b, false);
	HASH_ITER (by_id, b->model.ctrs, ctr, next) {
		if (!has_settled(ctr) && ctr->seat.told == TOLD_TAKEN)
			write_again(b, ctr, false);
	}
}

void bypass_soon(struct bypass *b, uint64_t ms)
{
	uint64_t due = clock_ms() + ms;
	if (loop_timer_armed(b->soon) && b->soon_ms <= due)
		return;
	b->soon_ms = due;
	(void)loop_timer_arm(b->soon, ms ? ms : 1);
}

/* Detects a container whose processes have ended before the runtime removes its cgroup. */
static void look_for_end(struct bypass *b, struct ctr *ctr)
{
	ctr->seat.empty = cgroup_is_empty(&b->files, ctr->seat.cgroup) ? ctr->seat.empty + 1 : 0;
	if (ctr->seat.empty >= EMPTY_MAX)
		cgroup_source_stopped(b, ctr);
}

/* Returns true if the list now has a pod that was sent to the plugin without its data. The plugin
 * must then be synchronized again. */
static bool has_learned(struct bypass *b)
{
	bool learned = false;
	for (struct pod *pod = b->model.pods; pod; pod = pod->by_cri.next)
		if (pod->seat.told == TOLD_TAKEN && !pod->seat.known &&
		    podlist_find(b->pods, pod->seat.uid))
			learned = true;
	return learned;
}

static void on_reconcile(void *arg)
{
	struct bypass *b = arg;
	struct ctr *ctr, *next_ctr;
	struct pod *pod, *next_pod;
	(void)loop_timer_arm(b->reconcile, b->config.reconcile_ms);
	HASH_ITER (by_id, b->model.ctrs, ctr, next_ctr) {
		look_for_end(b, ctr);
		if (ctr->seat.told == TOLD_TAKEN &&
		    ctr->state != NRI__CONTAINER_STATE__CONTAINER_STOPPED)
			write_again(b, ctr, has_settled(ctr));
		else if (ctr->seat.told == TOLD_REFUSED)
			ctr->seat.told = TOLD_NOTHING;
	}
	HASH_ITER (by_cri, b->model.pods, pod, next_pod) {
		if (pod->seat.told == TOLD_REFUSED)
			pod->seat.told = TOLD_NOTHING;
	}
	cgroup_source_look(b, true);
	if (nri_runtime_is_active(b->nri))
		resize_all(b); /* repeats refused resizes */
	if (has_learned(b))
		nri_runtime_drop(b->nri, "pods are known better now: everything is told anew");
}

static void on_changed(void *arg)
{
	cgroup_source_look(arg, false);
}

static void on_listed(void *arg)
{
	struct bypass *b = arg;
	cgroup_source_look(b, false);
	if (nri_runtime_is_active(b->nri))
		resize_all(b);
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static void on_synchronize(void *arg)
{
	struct bypass *b = arg;
	b->sync_ms = clock_ms();
	cgroup_source_look(b, true);
}

static void on_update(const Nri__UpdateContainersRequest *m, void *arg)
{
	struct bypass *b = arg;
	if (m->n_evict)
		log_warning("the plugin evicts containers, which is not done here");
	struct write_run *run = write_run_new(b);
	if (!run) {
		nri_runtime_updated(b->nri, true);
		return;
	}
	run->failed += want_all(b, m->update, m->n_update, false, run);
	write_run_end(run);
}

static void on_came(const char *plugin, void *arg)
{
	log_notice("the plugin %s is connected: containers are placed", plugin);
	bypass_status(arg);
}

/* Resets the states after the plugin has disconnected. What it wanted stays recorded: the next
 * plugin is sent the files' values, and may send no update where it agrees with them. */
static void forget_told(struct bypass *b)
{
	for (struct ctr *ctr = b->model.ctrs; ctr; ctr = ctr->by_id.next) {
		ctr->seat.told = TOLD_NOTHING;
		ctr->seat.warned = ctr->seat.failing = ctr->seat.refused_before = false;
		ctr->seat.resize_refused = false;
	}
	for (struct pod *pod = b->model.pods; pod; pod = pod->by_cri.next) {
		pod->seat.told = TOLD_NOTHING;
		pod->seat.refused_before = false;
	}
}

static void on_gone(bool was_active, const char *why, void *arg)
{
	struct bypass *b = arg;
	log_notice("%s: %s", why,
		   was_active ? "no plugin is connected any more, cgroups are left as they are"
			      : "a plugin was let go before it was asked anything");
	b->sync_ms = 0;
	loop_timer_disarm(b->soon);
	loop_timer_disarm(b->reconcile);
	words_free(b);
	forget_told(b);
	bypass_status(b);
}

static void on_problem(const char *what, void *arg)
{
	(void)arg;
	log_warning("the plugin: %s", what);
}

void bypass_status(struct bypass *b)
{
	if (!b->config.status || !b->nri)
		return; /* during start or stop */
	char text[SD_STATUS_MAX];
	const char *top = kubepods_top(b->kubepods);
	unsigned n = 0, unmanaged = 0;
	for (const struct ctr *ctr = b->model.ctrs; ctr; ctr = ctr->by_id.next) {
		n++;
		unmanaged += ctr->seat.refused_before || ctr->pod->seat.refused_before;
	}
	if (!nri_runtime_is_active(b->nri))
		(void)snprintf(text, sizeof text, "waiting for nri-rpd at %.300s",
			       b->config.socket);
	else
		(void)snprintf(text, sizeof text,
			       "%.100s, pods by %.200s: %u containers, %u not managed; %llu files "
			       "written again, %llu writes failed",
			       top ? top : "no cgroup of a kubelet", podlist_state(b->pods), n,
			       unmanaged, (unsigned long long)b->drifted,
			       (unsigned long long)b->failed);
	b->config.status(text, b->config.arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int start_nri(struct bypass *b, struct err *err)
{
	const struct nri_release *release;
	int r = release_find(PLAYED_NRI, &release, err);
	return r ? r
		 : nri_runtime_new(
			   &(struct nri_runtime_config){.loop = b->config.loop,
							.socket = b->config.socket,
							.name = "nri-rp-bridge/cgroups",
							.version = NRI_RP_VERSION,
							.registration_timeout_ms = REGISTRATION_MS,
							.request_timeout_ms = QUESTION_MS,
							.synchronize = on_synchronize,
							.update = on_update,
							.came = on_came,
							.gone = on_gone,
							.problem = on_problem,
							.release = release,
							.arg = b},
			   &b->nri, err);
}

int bypass_new(const struct bypass_config *config, struct bypass **ret, struct err *err)
{
	struct bypass *b = calloc(1, sizeof *b);
	if (!b)
		return err_errno(err, -ENOMEM, "bypass");
	b->config = *config;
	b->config.pods.changed = on_listed;
	b->config.pods.arg = b;
	b->files.root.fd = -1;
	b->soon = loop_timer_new(config->loop, on_soon, b);
	b->reconcile = loop_timer_new(config->loop, on_reconcile, b);
	b->writer = worker_new(config->loop, "cgroups");
	int r = b->soon && b->reconcile && b->writer ? cgroup_fs_open(&b->files, config->root, err)
						     : err_errno(err, -ENOMEM, "bypass");
	b->files.migrate = config->migrate;
	if (!r)
		r = kubepods_new(config->loop, &b->files, config->cgroup_root, on_changed, b,
				 &b->kubepods, err);
	if (!r)
		r = podlist_new(&b->config.pods, &b->pods, err);
	if (!r)
		r = start_nri(b, err);
	if (r) {
		bypass_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

struct bypass *bypass_free(struct bypass *b)
{
	if (!b)
		return NULL;
	b->config.status = NULL;
	if (b->writer && worker_free_within(b->writer, STOP_MS))
		return NULL; /* a write hangs in the kernel; its memory must stay valid */
	b->nri = nri_runtime_free(b->nri);
	words_free(b);
	model_clear(&b->model);
	podlist_free(b->pods);
	kubepods_free(b->kubepods);
	loop_timer_free(b->soon);
	loop_timer_free(b->reconcile);
	cgroup_fs_close(&b->files);
	free(b);
	return NULL;
}
