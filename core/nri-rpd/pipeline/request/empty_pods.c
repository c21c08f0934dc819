/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods whose end the runtime has not reported: a runtime that was killed does not report the
 * sandboxes that it removes later. The pod feed, the runtime's list and new sandboxes of the same
 * pods reveal them. The kubelet creates a sandbox only after the containers of the pod's last one
 * have ended. A pod that is removed too early is adopted again when its next container is created.
 */
#include "core/nri-rpd/pipeline/request/empty_pods.h"

#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/pipeline/internal.h"

#define LOG_SOURCE "pods"

static bool empty_pods_is_empty(const struct pod *pod)
{
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
		if (ctr_live(ctr->cur.state))
			return false;
	return pod->uid && *pod->uid;
}

/* Returns true if the same pod has another sandbox, which runs something or appeared later. */
static bool empty_pods_is_replaced(struct pipeline *p, const struct pod *pod)
{
	const struct pod *other = cache_pod_by_uid(p->env.cache, pod->uid);
	for (; other; other = other->uid_next)
		if (other != pod && (other->seq > pod->seq || !empty_pods_is_empty(other)))
			return true;
	return false;
}

static bool empty_pods_is_unknown(const struct pipeline *p, const struct pod *pod)
{
	return p->node.feed.current && !feed_find(cache_feed(p->env.cache), pod->uid);
}

bool empty_pods_is_gone(struct pipeline *p, const struct pod *pod)
{
	return empty_pods_is_empty(pod) &&
	       (empty_pods_is_replaced(p, pod) || empty_pods_is_unknown(p, pod));
}

static void empty_pods_remove(struct pipeline *p, const struct pod *pod, const char *why)
{
	const struct pod_desc desc = {.id = pod->id};
	log_info("removed pod %s/%s, which %s: %s", pod->ns, pod->name,
		 empty_pods_is_empty(pod) ? "has no containers" : "has ended unreported", why);
	request_remove_pod(p, &desc);
}

void empty_pods_remove_earlier(struct pipeline *p, const struct pod *pod)
{
	for (struct pod *other = cache_pod_by_uid(p->env.cache, pod->uid), *next; other;
	     other = next) {
		next = other->uid_next;
		bool same = str_eq(other->ns, pod->ns) && str_eq(other->name, pod->name);
		if (other != pod && other->uid && *other->uid &&
		    (same || empty_pods_is_empty(other)))
			empty_pods_remove(p, other, "it has a new sandbox");
	}
}

static bool empty_pods_is_named(const struct fed_message *m, const struct pod *pod)
{
	for (uint32_t i = 0; i < m->n_gone; i++)
		if (str_eq(m->gone[i], pod->uid))
			return true;
	return false;
}

void empty_pods_follow_feed(struct pipeline *p, const struct fed_message *m)
{
	if (!p->runtime.synchronized || (!m->n_gone && !m->complete))
		return;
	watchdog_begin(p->watchdog);
	for (struct pod *pod = cache_pods(p->env.cache), *next; pod; pod = next) {
		next = pod->hh.next;
		/* a complete list may be older than a pod that has been created since the last
		 * Synchronize */
		bool listed = m->complete && pod->sync_mark == p->requests.sync_mark;
		if (empty_pods_is_empty(pod) && empty_pods_is_unknown(p, pod) &&
		    (listed || empty_pods_is_named(m, pod)))
			empty_pods_remove(p, pod, "the cluster has no such pod on this node");
	}
	watchdog_end(p->watchdog);
}
