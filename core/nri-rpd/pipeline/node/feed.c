/* SPDX-License-Identifier: Apache-2.0 */
/* Pod feed: applies messages of the agent and the configuration to the cache's feed. */
#include "core/nri-rpd/pipeline/node/feed.h"

#include <stdio.h>
#include <string.h>

#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/cache/hugepages.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/request/empty_pods.h"
#include "core/nri-rpd/pipeline/wait/admit.h"
#include "core/lib/util/log.h"

#define LOG_SOURCE "feed"

static struct feed *feed_of(const struct pipeline *p)
{
	return cache_feed(p->env.cache);
}

static void leave_out(struct pipeline *p, uint32_t n)
{
	if (!p->node.feed.left_out)
		log_warning("%u pods of the cluster are ignored: one has too many containers or "
			    "resources, or an invalid name or amount, or there are too many "
			    "(logged once)",
			    n);
	p->node.feed.left_out += n;
}

static void feed_do_complete(struct pipeline *p)
{
	feed_complete(feed_of(p));
	if (!p->node.feed.current)
		log_info("the agent sent %u pods", feed_n_pods(feed_of(p)));
	p->node.feed.current = true;
}

/* Counts the huge pages of containers that were created before the feed had their pod, as after a
 * restart of the daemon. */
static void feed_count_pages(struct pipeline *p, const struct fed_pod *fed)
{
	const struct pod *pod = cache_pod_by_uid(p->env.cache, fed->uid);
	for (struct ctr *ctr = pod ? pod->ctrs : NULL; ctr; ctr = ctr->pod_next) {
		const struct fed_ctr *of = fed_ctr(fed, ctr->name);
		if (of && hugepages_set_fed(ctr, fed, of))
			log_warning("%s: out of memory for its huge pages", ctr->full_name);
	}
}

/* Marks a pod whose own resources differ from those of the last message. The kubelet reports a
 * resize that it carries out to the runtime; the policy decides then. */
static void feed_note_resize(struct pipeline *p, const struct fed_pod *fed)
{
	const struct fed_pod *old = feed_find(feed_of(p), fed->uid);
	struct pod *pod = old && old->has_own && fed->has_own
				  ? cache_pod_by_uid(p->env.cache, fed->uid)
				  : NULL;
	if (pod && memcmp(&old->own, &fed->own, sizeof old->own) != 0)
		pod->resized = true;
}

void pipeline_feed_take(struct pipeline *p, const struct fed_message *m)
{
	uint32_t left_out = m->n_left_out;
	struct feed_counts *f = &p->node.feed;
	(void)snprintf(f->origin, sizeof f->origin, "%s", m->source);
	(void)snprintf(f->problem, sizeof f->problem, "%s", m->problem);
	if (m->begin)
		feed_begin(feed_of(p));
	for (uint32_t i = 0; i < m->n_gone; i++)
		feed_del(feed_of(p), m->gone[i]);
	for (uint32_t i = 0; i < m->n_pods; i++) {
		feed_note_resize(p, &m->pods[i]);
		left_out += feed_put(feed_of(p), &m->pods[i]) != 0;
	}
	if (left_out)
		leave_out(p, left_out);
	for (uint32_t i = 0; i < m->n_pods; i++)
		feed_count_pages(p, &m->pods[i]);
	if (m->complete)
		feed_do_complete(p);
	for (uint32_t i = 0; i < m->n_pods; i++)
		if (m->pods[i].ended)
			admit_settle(p, m->pods[i].uid);
	empty_pods_follow_feed(p, m);
	hold_told(p);
}

void pipeline_feed_lost(struct pipeline *p)
{
	p->node.feed.current = false;
	p->node.feed.origin[0] = p->node.feed.problem[0] = '\0';
	hold_told(p);
}

void feed_configured(struct pipeline *p)
{
	const struct conf_core *core = conf_core(p->conf);
	feed_use(feed_of(p), core->admit.source != CONF_REQUESTS_RUNTIME);
	if (feed_rename(feed_of(p), core->admit.names, core->admit.n_names))
		log_error("out of memory: admit.resourceNames is unchanged");
	if (!core->agent.pods)
		feed_clear(feed_of(p));
	hold_told(p);
}

void pipeline_feed_status(const struct pipeline *p, struct feed_status *ret)
{
	const struct conf_core *core = conf_core(p->conf);
	*ret = (struct feed_status){
		.on = core->agent.pods,
		.source = admit_by_feed(p) ? "feed" : "runtime",
		.n_pods = feed_n_pods(feed_of(p)),
		.counts = p->node.feed,
	};
}
