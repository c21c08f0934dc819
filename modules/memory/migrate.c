/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Migration of containers' pages: one container at a time and one step at a time. After each step a
 * timer waits as long as the configured rate requires for the moved bytes. Status shows the
 * progress.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "modules/memory/memory.h"

#define FIRST_MS 3000u /* time for the runtime to receive and write the nodes */
#define STEP_MS 10u /* shortest delay between two steps; see IDLE_SHIFT_MAX */
/* Largest number of doublings of STEP_MS, up to 640 ms, while steps find only absent pages. Other
 * modules use the worker too. */
#define IDLE_SHIFT_MAX 6u
#define EARLY_TRIES_MAX 20u
/* largest number of passes over a container: busy pages may be movable later */
#define PASSES_MAX 3u
#define AGAIN_MS 1000u

struct migration {
	rp_ctr ctr;
	uint64_t serial;
	struct rp_idset nodes;
	uint32_t pid;
	uint64_t addr, n_empty;
	uint64_t n_moved, n_shared, n_left;
	uint32_t n_sparse, n_idle; /* n_idle: steps in a row without a page */
	int32_t why;
	uint32_t n_early, n_passes;
	uint64_t due_ms;
	struct migration *next;
};

struct memory_migrations {
	const struct modhost *h;
	struct rp_instance *inst;
	uint32_t kind;
	struct migration *list; /* migrations; the first one is active */
	/* a step of the first migration is running, unless the migration was dropped since */
	bool under_way;
	uint64_t last_serial;
	uint64_t n_moved, n_left, n_done;
};

struct memory_migrations *memory_migrations_new(struct rp_instance *inst, const struct modhost *h,
						uint32_t kind)
{
	struct memory_migrations *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->h = h;
	m->inst = inst;
	m->kind = kind;
	return m;
}

void memory_migrations_free(struct memory_migrations *m)
{
	while (m && m->list) {
		struct migration *next = m->list->next;
		free(m->list);
		m->list = next;
	}
	free(m);
}

static uint64_t now_ms(const struct memory_migrations *m)
{
	return m->h->timer ? m->h->timer->now_ms(m->h->ctx) : 0;
}

static void migrate_arm(const struct memory_migrations *m)
{
	uint64_t now = now_ms(m);
	if (!m->h->timer || !m->list || m->under_way)
		return;
	uint64_t delay = m->list->due_ms > now ? m->list->due_ms - now : 1;
	(void)m->h->timer->arm(m->h->ctx, MEMORY_MOVE_COOKIE, delay);
}

static void migrate_drop(struct memory_migrations *m, rp_ctr ctr)
{
	for (struct migration **at = &m->list; *at; at = &(*at)->next) {
		struct migration *gone = *at;
		if (gone->ctr != ctr)
			continue;
		*at = gone->next;
		free(gone);
		return;
	}
}

void memory_migrate_forget(struct memory_migrations *m, rp_ctr ctr)
{
	migrate_drop(m, ctr);
	migrate_arm(m);
}

int32_t memory_migrate(struct memory_migrations *m, const struct rp_plan *c, rp_ctr ctr)
{
	const struct modhost *h = m->h;
	struct rp_ctr_info info = {.size = sizeof info};
	if (!c->enable || !c->migrate || h->cache->get_ctr(h->ctx, ctr, &info))
		return 0;
	migrate_drop(m, ctr); /* new target nodes: start from the beginning */
	if (rp_ids_empty(info.mems) || info.state != RP_STATE_RUNNING)
		return 0;
	struct migration *new = calloc(1, sizeof *new), **end = &m->list;
	if (!new)
		return modhost_no_memory(h);
	new->ctr = ctr;
	new->serial = ++m->last_serial;
	rp_idset_copy(&new->nodes, info.mems);
	new->due_ms = now_ms(m) + FIRST_MS;
	while (*end)
		end = &(*end)->next;
	*end = new;
	h->work->report(h->ctx, ctr, RP_APPLY_PENDING, "its pages are about to be moved");
	migrate_arm(m);
	return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct memory_step *step_of(struct memory_migrations *m, const struct migration *at)
{
	struct memory_step *s = ctl_life_item(m->inst, at->ctr, m->kind, sizeof *s);
	if (!s)
		return NULL;
	s->item.ctr = 0;
	s->serial = at->serial;
	rp_idset_copy(&s->nodes, rp_ids_of(&at->nodes));
	s->pid = at->pid;
	s->addr = at->addr;
	s->n_empty = at->n_empty;
	s->budget = MEMORY_MOVE_MAX;
	return s;
}

void memory_migrate_timer(struct memory_migrations *m, const struct rp_plan *c)
{
	struct migration *at = m->list;
	if (!at || m->under_way)
		return;
	if (at->due_ms > now_ms(m)) {
		migrate_arm(m);
		return;
	}
	struct memory_step *s = c->enable && c->migrate ? step_of(m, at) : NULL;
	if (!s) {
		memory_migrate_forget(m, at->ctr);
		return;
	}
	/* Limit a step to the pages of a quarter of a second. */
	uint64_t budget = c->migrate_rate / MEMORY_PAGE / 4;
	if (budget < s->budget)
		s->budget = (uint32_t)budget;
	m->under_way = true;
	ctl_life_add(m->inst, &s->item);
}

/* ---- results --------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static void migrate_say(const struct memory_migrations *m,
							      const struct migration *at,
							      uint32_t result, const char *fmt, ...)
{
	char nodes[64], text[CTL_TEXT_MAX], all[CTL_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)ctl_format(all, sizeof all, "pages to memory nodes %s: %s",
			 modhost_set_text(rp_ids_of(&at->nodes), nodes, sizeof nodes), text);
	m->h->work->report(m->h->ctx, at->ctr, result, all);
}

static unsigned migrate_mib(uint64_t pages)
{
	return (unsigned)(pages * MEMORY_PAGE >> 20);
}

/* Returns the remedy for an error. A process without permission to trace others cannot move their
 * pages. */
static const char *migrate_remedy(int32_t why)
{
	return why == -EACCES || why == -EPERM
		       ? " (the shipped service needs page-migration.conf, see nri-rpd(8))"
		       : "";
}

static void migrate_finish(struct memory_migrations *m, const struct migration *at)
{
	if (!at->n_left && !at->why && at->n_sparse)
		migrate_say(m, at, RP_APPLY_PARTIAL,
			    "%u MiB moved, skipped %u mappings with very few pages",
			    migrate_mib(at->n_moved), at->n_sparse);
	else if (!at->n_left && !at->why)
		migrate_say(m, at, RP_APPLY_DONE, "%u MiB moved, %u MiB shared with others stay",
			    migrate_mib(at->n_moved), migrate_mib(at->n_shared));
	else
		migrate_say(m, at, at->n_moved ? RP_APPLY_PARTIAL : RP_APPLY_FAILED,
			    "%u MiB moved, %llu pages could not be moved: %s%s",
			    migrate_mib(at->n_moved), (unsigned long long)at->n_left,
			    modhost_why(at->why), migrate_remedy(at->why));
	m->n_done++;
	m->n_left += at->n_left;
	migrate_drop(m, at->ctr);
}

/* Moves the first migration to the end of the list. */
static void migrate_rotate(struct memory_migrations *m)
{
	struct migration *first = m->list, **end = &m->list;
	if (!first->next)
		return;
	m->list = first->next;
	first->next = NULL;
	while (*end)
		end = &(*end)->next;
	*end = first;
}

static void migrate_take(struct memory_migrations *m, const struct rp_plan *c, struct migration *at,
			 const struct memory_step *s)
{
	at->pid = s->pid;
	at->addr = s->addr;
	at->n_empty = s->n_empty;
	at->n_sparse += s->n_sparse;
	at->n_idle = s->n_moved ? 0 : at->n_idle + 1;
	at->n_moved += s->n_moved;
	at->n_shared += s->n_shared;
	at->n_left += s->n_left;
	at->why = s->why ? s->why : at->why;
	m->n_moved += s->n_moved;
	at->due_ms = now_ms(m) + s->n_moved * MEMORY_PAGE * 1000 / c->migrate_rate +
		     (STEP_MS << (at->n_idle < IDLE_SHIFT_MAX ? at->n_idle : IDLE_SHIFT_MAX));
	if (s->outcome == MEMORY_MOVE_DONE && at->n_left && ++at->n_passes < PASSES_MAX) {
		at->n_left = at->n_shared = at->addr = 0;
		at->n_sparse = at->n_idle = 0;
		at->pid = 0;
		at->why = 0;
		at->due_ms += AGAIN_MS;
	} else if (s->outcome == MEMORY_MOVE_DONE) {
		migrate_finish(m, at);
	} else if (s->outcome == MEMORY_MOVE_ON) {
		migrate_say(m, at, RP_APPLY_PENDING, "%u MiB moved so far",
			    migrate_mib(at->n_moved));
		/* All pages of this step are absent, so the next step serves another container. */
		if (!s->n_moved)
			migrate_rotate(m);
	} else if (++at->n_early < EARLY_TRIES_MAX) {
		at->due_ms = now_ms(m) + FIRST_MS;
		migrate_rotate(m);
	} else {
		migrate_say(m, at, RP_APPLY_FAILED,
			    "the runtime has not assigned these nodes to it");
		migrate_drop(m, at->ctr);
	}
}

void memory_migrate_done(struct memory_migrations *m, const struct rp_plan *c,
			 const struct memory_step *s, bool ran)
{
	m->under_way = false;
	/* The container may have restarted its migration meanwhile, or have ended. */
	if (ran && m->list && m->list->serial == s->serial)
		migrate_take(m, c, m->list, s);
	migrate_arm(m);
}

void memory_migrate_collect(const struct memory_migrations *m, const struct rp_metric_sink *sink)
{
	uint32_t n = 0;
	for (const struct migration *at = m->list; at; at = at->next)
		n++;
	sink->gauge(sink->ctx, "migrations", "Containers whose pages are being moved.", "", n);
	sink->counter(sink->ctx, "migrations_done_total", "Containers whose pages have been moved.",
		      "", (double)m->n_done);
	sink->counter(sink->ctx, "moved_bytes_total", "Pages moved to other nodes.", "",
		      (double)(m->n_moved * MEMORY_PAGE));
	sink->counter(sink->ctx, "left_bytes_total", "Pages that could not be moved.", "",
		      (double)(m->n_left * MEMORY_PAGE));
}
