/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of writes to the store. A reply to the runtime has to survive kill -9, so a transaction
 * that decided about a live container is written, with all pending changes, before the reply is
 * sent. There is no sync, because the page cache survives the process. Other changes, which the
 * runtime would report again at the next Synchronize, are written a little later in one go.
 */
#include <malloc.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/pipeline/state/state.h"
#include "core/nri-rpd/store/blobs.h"

#define LOG_SOURCE "store"

#define QUIET_MS 250u /* time without a change after which changes are saved */
#define QUIET_RECORDS 1000u /* records since the last release; fewer free little memory */

struct state_name {
	char text[RP_NAME_MAX + sizeof "/controller"];
};

/* Returns the name of an instance's state. Roles of one module have separate states. buf: memory
 * for a name that is put together. */
static const char *state_name(const struct instance *i, struct state_name *buf)
{
	uint32_t role = instance_role(i), kinds = instance_module(i)->kinds;
	if (role == (kinds & -kinds))
		return instance_name(i);
	(void)snprintf(buf->text, sizeof buf->text, "%s/%s", instance_name(i), kind_name(role));
	return buf->text;
}

void persist_load(struct pipeline *p, struct instance *i)
{
	struct err err = ERR_INIT;
	struct state_name name;
	const char *version;
	size_t len;
	const void *state =
		p->store ? store_blob(p->store, state_name(i, &name), &version, &len) : NULL;
	if (state && instance_load(i, state, (uint32_t)len, &err))
		log_warning("module %s does not accept its saved state: %s; starting without it",
			    instance_name(i), err.text);
}

static int save_state(struct instance *i, void *arg)
{
	struct pipeline *p = arg;
	struct err err = ERR_INIT;
	struct state_name name;
	const void *data;
	uint32_t size;
	int r = instance_save(i, &data, &size, &err);
	if (!r && data)
		r = store_put_blob(p->store, state_name(i, &name), instance_module(i)->version,
				   data, size);
	if (r)
		log_warning("the state of module %s is not saved: %s", instance_name(i),
			    err.code ? err.text : "no memory");
	return 0;
}

void persist_now(struct pipeline *p)
{
	static struct log_limit limit = LOG_LIMIT(3, 60000);
	struct err err = ERR_INIT;
	if (p->env.trial)
		return;
	(void)pipeline_each_instance(p, save_state, p);
	if (!store_pending(p->store))
		return;
	if (store_commit(p->store, &err) == 0)
		return;
	p->stats.store_errors++;
	if (log_allowed(&limit, LOG_SOURCE))
		log_warning("the state could not be written: %s; a restart may lose the latest "
			    "placements",
			    err.text);
	(void)loop_timer_arm(p->state.persist_timer, 5000);
}

/* Shortens the store's log. Not done while a reply waits, because it rewrites everything. An error
 * only leaves the log long. */
static void persist_tidy(struct pipeline *p)
{
	struct err err = ERR_INIT;
	if (!p->env.trial && store_tidy(p->store, &err))
		log_info("the store could not be rewritten: %s", err.text);
}

void persist_timer(void *arg)
{
	struct pipeline *p = arg;
	watchdog_begin(p->watchdog);
	state_open_late(p);
	persist_now(p);
	events_log(p);
	persist_tidy(p);
	if (!store_pending(p->store))
		(void)loop_timer_arm(p->state.quiet_timer, QUIET_MS);
	watchdog_end(p->watchdog);
}

/* Returns memory that busy times have left free to the system. */
void persist_quiet(void *arg)
{
	struct pipeline *p = arg;
	struct store_stats stats;
	store_stats(p->store, &stats);
	if (stats.records - p->state.quiet_records < QUIET_RECORDS)
		return;
	p->state.quiet_records = stats.records;
	(void)malloc_trim(0);
}

void persist_later(struct pipeline *p)
{
	if (pipeline_records(p) && !loop_timer_armed(p->state.persist_timer))
		(void)loop_timer_arm(p->state.persist_timer, PERSIST_DELAY_MS);
}

void persist_txn(struct pipeline *p)
{
	bool live = false;
	if (p->env.trial)
		return;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		if (!s->ctr->store.missing && s->ctr->store.facts)
			continue;
		live = live || ctr_live(s->ctr->cur.state);
		store_put_ctr(p->store, s->ctr);
	}
	for (const struct pod_stage *s = txn_pods(p->txn); s; s = s->link) {
		/* The policy drops its data of a stopped pod when the pod is removed. If that
		 * record is lost, the next Synchronize drops the data again. */
		live = live || (!s->pod->store.facts && !s->pod->stopped);
		store_put_pod(p->store, s->pod);
	}
	if (live)
		persist_now(p);
	if (store_pending(p->store))
		persist_later(p);
}
