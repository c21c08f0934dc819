/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of pods: waits for the pod feed, requests admission from the policy, and releases
 * grants of pods that have ended. */
#include "core/nri-rpd/pipeline/wait/admit.h"

#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "admit"

static bool policy_admits(const struct pipeline *p)
{
	return p->policy && instance_admits(p->policy);
}

static bool policy_follows_pods(const struct pipeline *p)
{
	return p->policy && instance_follows_pods(p->policy);
}

/* ---- waiting for the feed -------------------------------------------------------------------- */

/* Returns at most three quarters of the runtime's timeout; the rest is for the reply. */
uint64_t admit_limit_ms(const struct pipeline *p)
{
	uint64_t allowed = request_allowed_ms(p) * 3 / 4;
	uint64_t limit = conf_core(p->conf)->admit.timeout_ms;
	return limit < allowed ? limit : allowed;
}

/* Returns true if pods have to wait because of resource plugins: only the cluster knows which
 * resources a pod requests from them. Without a current feed there is no wait, because pods have to
 * start before the cluster itself runs. */
static bool plugins_wait(const struct pipeline *p)
{
	return plugins_any(p) &&
	       (p->node.feed.current || conf_core(p->conf)->admit.source == CONF_REQUESTS_FEED);
}

static uint64_t limit_ms(const struct pipeline *p)
{
	bool otherwise = conf_core(p->conf)->admit.source == CONF_REQUESTS_AUTO && !plugins_wait(p);
	uint64_t limit = admit_limit_ms(p);
	return otherwise && limit > ADMIT_AUTO_WAIT_MS ? ADMIT_AUTO_WAIT_MS : limit;
}

bool admit_by_feed(const struct pipeline *p)
{
	enum conf_request_source source = conf_core(p->conf)->admit.source;
	return source == CONF_REQUESTS_FEED ||
	       (source == CONF_REQUESTS_AUTO && p->node.feed.current);
}

/* Returns true if any pod would have to wait. */
static bool admit_waits(const struct pipeline *p)
{
	return plugins_wait(p) || (policy_admits(p) && admit_by_feed(p));
}

uint64_t admit_wait(struct pipeline *p, const struct pod_desc *desc, uint64_t received_ns,
		    bool first)
{
	if (!admit_waits(p) || feed_find(cache_feed(p->env.cache), desc->uid))
		return 0;
	uint64_t until = received_ns / 1000000u + limit_ms(p);
	p->wait.admit.waited += first;
	return clock_ms() < until ? until : 0;
}

/* Decides about a pod that the cluster has not reported in time. 0: admitted without the feed. */
static int take_without_feed(struct pipeline *p, const struct pod *pod, struct err *err)
{
	const struct conf_core *core = conf_core(p->conf);
	p->wait.admit.by_runtime++;
	if (!admit_waits(p))
		return 0;
	p->wait.admit.late++;
	if ((core->admit.source != CONF_REQUESTS_FEED && !plugins_wait(p)) ||
	    core->admit.on_timeout == CONF_ALLOW) {
		log_info("pod %s/%s is admitted with the runtime's sums: its requests from the "
			 "cluster did not arrive in time",
			 pod->ns, pod->name);
		return 0;
	}
	if (!p->node.feed.current)
		return err_set(err, -ETIMEDOUT,
			       "admission timed out: no agent sends this node's pods; see "
			       "systemctl status nri-rp-agent, and admit in rp.conf");
	return err_set(err, -ETIMEDOUT,
		       "admission timed out: pod not found among the cluster's pods of this node "
		       "(uid %.64s)",
		       pod->uid);
}

/* Returns -EINVAL if a container requests one resource under two names. */
static int asks_twice(const struct fed_pod *fed, struct err *err)
{
	for (uint32_t i = 0; i < fed->n_ctrs; i++)
		if (fed->ctrs[i].twice)
			return err_set(err, -EINVAL,
				       "container %s requests a resource twice, also as %s "
				       "(admit.resourceNames)",
				       fed->ctrs[i].name, fed->ctrs[i].twice);
	return 0;
}

DEFINE_GETTER(pipeline_admit_counts, const struct admit_counts *, &p->wait.admit)

/* ---- the policy's decision ------------------------------------------------------------------- */

DECISION_STEP(ask_to_admit, instance_admit_pod(p->policy, arg, err))

static int admit_refuse(struct pipeline *p, const struct pod *pod, const struct err *why,
			struct err *err)
{
	_free_ char *name = str_printf("%s/%s", pod->ns, pod->name);
	int r = err_set(err, why->code, "pod %s/%s: %s", pod->ns, pod->name, why->text);
	log_notice("refused: %s", err->text);
	pipeline_event(p, EV_REFUSED, "%s", err->text);
	conditions_refused(p, name ? name : pod->name, err->text);
	return r;
}

int admit_pod(struct pipeline *p, struct pod *pod, struct err *err)
{
	struct err why = ERR_INIT;
	const struct fed_pod *fed = pod_fed(p->env.cache, pod);
	p->wait.admit.by_feed += fed != NULL;
	if (fed ? asks_twice(fed, &why) : take_without_feed(p, pod, &why))
		return admit_refuse(p, pod, &why, err);
	if (!policy_admits(p))
		return 0;
	if (!decide_event(p, ask_to_admit, pod, &why))
		return 0;
	if (conf_core(p->conf)->on_policy_error == CONF_REJECT)
		return admit_refuse(p, pod, &why, err);
	log_warning("pod %s/%s: not admitted: %s", pod->ns, pod->name, why.text);
	return 0;
}

int admit_refused(struct pipeline *p, struct pod *pod, struct err *err)
{
	struct err why = *err;
	admit_end(p, pod);
	plugins_pod_gone(p, pod);
	return admit_refuse(p, pod, &why, err);
}

DECISION_STEP(tell_removed, instance_pod_removed(p->policy, arg, err))

void admit_end(struct pipeline *p, struct pod *pod)
{
	struct err err = ERR_INIT;
	if (!policy_follows_pods(p))
		return;
	if (decide(p, tell_removed, pod, &err))
		log_error("pod %s/%s: policy %s failed to remove it: %s", pod->ns, pod->name,
			  instance_name(p->policy), err.text);
	decide_settle(p);
}

/* ---- ended pods ------------------------------------------------------------------------------ */

/* Returns true if a pod has ended according to the cluster and runs nothing. The kubelet may keep
 * the sandbox of such a pod for days, so its grants are released before. */
static bool is_over(const struct pipeline *p, const struct pod *pod)
{
	const struct fed_pod *fed = feed_find(cache_feed(p->env.cache), pod->uid);
	if (!fed || !fed->ended)
		return false;
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
		if (ctr_live(ctr->cur.state))
			return false;
	return true;
}

static void admit_settle_sandbox(struct pipeline *p, struct pod *pod)
{
	if (pod->over || !is_over(p, pod))
		return;
	pod->over = true;
	log_info("pod %s/%s has ended: its grants are released", pod->ns, pod->name);
	admit_end(p, pod);
}

void admit_settle(struct pipeline *p, const char *uid)
{
	if (!p->runtime.synchronized || !policy_follows_pods(p) ||
	    !feed_n_ended(cache_feed(p->env.cache)))
		return;
	struct pod *pod = uid ? cache_pod_by_uid(p->env.cache, uid) : cache_pods(p->env.cache);
	watchdog_begin(p->watchdog);
	for (; pod; pod = uid ? pod->uid_next : pod->hh.next)
		admit_settle_sandbox(p, pod);
	watchdog_end(p->watchdog);
}
