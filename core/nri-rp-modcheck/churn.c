/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/churn.h"

#include <stdio.h>
#include <string.h>

#include "core/lib/util/cleanup.h"

#define GIB (INT64_C(1) << 30)
#define DOMAIN ".resource-policy.nri.io/pod"

/* Returns the next random number (splitmix64). */
static uint64_t churn_next(struct churn *c)
{
	uint64_t z = (c->random += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t churn_random(struct churn *c, uint64_t below)
{
	return below ? churn_next(c) % below : 0;
}

void churn_init(struct churn *c, struct rig *r, uint64_t seed)
{
	*c = (struct churn){.rig = r, .random = seed};
	rp_idset_copy(&c->all, rig_online(r));
	rp_idset_copy(&c->online, rig_online(r));
}

int churn_begin(struct churn *c, struct rig *r, struct check *check, struct err *err)
{
	int bad = rig_open(r, check, NULL, err);
	bad = bad ? bad : rig_start(r, err);
	if (!bad)
		churn_init(c, r, check->seed);
	return bad;
}

/* ---- properties of containers ---------------------------------------------------------------- */

static const struct kv annotations[] = {
	{"prefer-isolated-cpus" DOMAIN, "true"}, {"prefer-isolated-cpus" DOMAIN, "maybe"},
	{"prefer-shared-cpus" DOMAIN, "true"},	 {"prefer-shared-cpus" DOMAIN, "false"},
	{"prefer-reserved-cpus" DOMAIN, "true"}, {"hide-hyperthreads" DOMAIN, "true"},
	{"memory-type" DOMAIN, "dram"},		 {"memory-type" DOMAIN, "everything"},
	{"topologyhints" DOMAIN, "false"},	 {"cpu.preserve" DOMAIN, "true"},
	{"memory.preserve" DOMAIN, "true"},	 {"pick-resources-by-hints" DOMAIN, "true"},
	{"scheduling-class" DOMAIN, "realtime"},
};

static void wish_guaranteed(struct churn *c, struct wish *w)
{
	uint64_t most = rp_ids_count(rp_ids_of(&c->all)) / 6 + 1;
	w->qos = RP_QOS_GUARANTEED;
	w->cpu_request = (int64_t)(1 + churn_random(c, most)) * 1000;
	if (churn_random(c, 4) == 0)
		w->cpu_request -= 250;
	w->cpu_limit = w->cpu_request;
	w->mem_request = w->mem_limit = (int64_t)(1 + churn_random(c, 8)) * GIB / 4;
}

static void wish_burstable(struct churn *c, struct wish *w)
{
	w->qos = RP_QOS_BURSTABLE;
	w->cpu_request = (int64_t)(1 + churn_random(c, 16)) * 125;
	if (churn_random(c, 2))
		w->cpu_limit = w->cpu_request * 2;
	w->mem_request = (int64_t)(1 + churn_random(c, 4)) * GIB / 8;
	if (churn_random(c, 2))
		w->mem_limit = w->mem_request * 2;
}

static void wish_size(struct churn *c, struct wish *w)
{
	w->cpu_request = w->cpu_limit = w->mem_request = w->mem_limit = 0;
	uint64_t dice = churn_random(c, 10);
	if (dice < 4) {
		wish_guaranteed(c, w);
		return;
	}
	w->qos = RP_QOS_BEST_EFFORT;
	if (dice < 8)
		wish_burstable(c, w);
}

static void wish_name(struct wish *w, const char *kind, unsigned n, uint64_t created_s)
{
	(void)snprintf(w->id, sizeof w->id, "%s%u", kind, n);
	(void)snprintf(w->pod, sizeof w->pod, "pod-%s%u", kind, n);
	(void)snprintf(w->ns, sizeof w->ns, "%s", "default");
	w->created_ns = created_s * UINT64_C(1000000000);
}

static void wish_huge(struct churn *c, struct wish *w)
{
	w->qos = RP_QOS_GUARANTEED;
	w->cpu_request = w->cpu_limit = 1000 * ((int64_t)rp_ids_count(rp_ids_of(&c->all)) + 1);
	w->mem_request = w->mem_limit = GIB / 4;
}

void churn_wish(struct churn *c, struct wish *ret)
{
	*ret = (struct wish){.n_annotations = 0};
	wish_name(ret, "c", c->seq, 1700000000 + c->seq);
	wish_size(c, ret);
	if (churn_random(c, 8) == 0)
		(void)snprintf(ret->ns, sizeof ret->ns, "kube-system");
	if (churn_random(c, 5) == 0)
		ret->annotations[ret->n_annotations++] =
			annotations[churn_random(c, sizeof annotations / sizeof *annotations)];
	const struct check *check = c->rig->check;
	for (unsigned i = 0; check->n_own && i < 2 && churn_random(c, 2) == 0; i++)
		ret->annotations[ret->n_annotations++] = check->own[churn_random(c, check->n_own)];
	if (c->huge && churn_random(c, c->huge) == 0)
		wish_huge(c, ret);
	c->seq++;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int op_add(struct churn *c, struct err *err)
{
	struct wish w;
	struct ctr *ctr;
	churn_wish(c, &w);
	rig_log(c->rig, "create %s/%s qos %u cpu %lld/%lld memory %lld/%lld %s %s", w.ns, w.id,
		w.qos, (long long)w.cpu_request, (long long)w.cpu_limit, (long long)w.mem_request,
		(long long)w.mem_limit, w.n_annotations ? w.annotations[0].key : "",
		w.n_annotations ? w.annotations[0].value : "");
	int r = rig_add(c->rig, &w, &ctr, err);
	if (r)
		return rig_settle(r);
	c->live[c->n_live++] = ctr;
	c->n_placed += ctr->cur.cpus != NULL;
	return c->placed ? c->placed(c, ctr, err) : 0;
}

static int remove_at(struct churn *c, unsigned i, struct err *err)
{
	struct ctr *ctr = c->live[i];
	memmove(&c->live[i], &c->live[i + 1], (c->n_live - i - 1) * sizeof *c->live);
	c->n_live--;
	rig_log(c->rig, "remove %s", ctr->full_name);
	return rig_remove(c->rig, ctr, err);
}

static int op_resize(struct churn *c, struct err *err)
{
	struct ctr *ctr = c->live[churn_random(c, c->n_live)];
	struct wish w = {.n_annotations = 0};
	if (ctr->pod->qos == RP_QOS_BEST_EFFORT)
		return 0;
	if (ctr->pod->qos == RP_QOS_GUARANTEED)
		wish_guaranteed(c, &w);
	else
		wish_burstable(c, &w);
	rig_log(c->rig, "resize %s to cpu %lld/%lld memory %lld/%lld", ctr->full_name,
		(long long)w.cpu_request, (long long)w.cpu_limit, (long long)w.mem_request,
		(long long)w.mem_limit);
	return rig_settle(rig_resize(c->rig, ctr, &w, err));
}

static int op_hotplug(struct churn *c, struct err *err)
{
	uint32_t n = rp_ids_count(rp_ids_of(&c->all)), nth = (uint32_t)churn_random(c, n);
	uint32_t cpu = rp_ids_first(rp_ids_of(&c->all));
	while (nth-- > 0)
		cpu = rp_ids_next(rp_ids_of(&c->all), cpu);
	if (cpu == rp_ids_first(rp_ids_of(&c->all)))
		return 0; /* CPU 0 cannot be offline on most machines */
	if (!rp_ids_has(rp_ids_of(&c->online), cpu))
		rp_idset_add(&c->online, cpu);
	else if (rp_ids_count(rp_ids_of(&c->online)) > n - n / 4)
		rp_idset_del(&c->online, cpu);
	else
		return 0;
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(rp_ids_of(&c->online), text, sizeof text);
	rig_log(c->rig, "online %s", text);
	return rig_set_online(c->rig, rp_ids_of(&c->online), err);
}

bool churn_all_well(const struct churn *c)
{
	for (unsigned i = 0; i < c->n_live; i++)
		if (c->live[i]->cur.degraded)
			return false;
	return !c->rig->lost_cpus;
}

/* Calls fn (restart, reload, reconnect) and checks that no container has moved. */
static int op_still(struct churn *c, int (*fn)(struct rig *r, struct err *err), const char *what,
		    struct err *err)
{
	_cleanup_(buf_fini) struct buf before = BUF_INIT, after = BUF_INIT;
	bool well = churn_all_well(c);
	rig_log(c->rig, "%s", what);
	rig_describe(c->rig, &before);
	int r = fn(c->rig, err);
	if (r)
		return err_prefix(err, "%s: ", what);
	rig_describe(c->rig, &after);
	return well ? text_same(&before, &after, err, "%s changes a valid placement", what) : 0;
}

static int op_event(struct churn *c, struct err *err)
{
	struct ctr *ctr = c->live[churn_random(c, c->n_live)];
	bool started = churn_random(c, 3) != 0;
	rig_log(c->rig, "event %s %s", started ? "started" : "rebalance", ctr->full_name);
	return rig_settle(
		rig_event(c->rig, started ? RP_EVENT_STARTED : RP_EVENT_REBALANCE, ctr, err));
}

static int op_rare(struct churn *c, struct err *err)
{
	uint64_t dice = churn_random(c, 8);
	if (dice < 2)
		return c->n_live ? op_event(c, err) : 0;
	if (c->still)
		return 0;
	if (dice < 5)
		return op_hotplug(c, err);
	if (dice < 6)
		return op_still(c, rig_reload, "a reload of the same configuration", err);
	return op_still(c, rig_sync, "sync()", err);
}

static int churn_op(struct churn *c, struct err *err)
{
	uint64_t dice = churn_random(c, 100);
	if (dice < 8)
		return op_rare(c, err);
	if (dice < 20 && c->n_live)
		return op_resize(c, err);
	/* fill and empty the machine in waves */
	bool fill = c->seq / 40 % 2 ? dice < 48 : dice < 72;
	if (c->n_live < CHURN_LIVE_MAX && (fill || !c->n_live))
		return op_add(c, err);
	return remove_at(c, (unsigned)churn_random(c, c->n_live), err);
}

int churn_run(struct churn *c, unsigned requests, struct err *err)
{
	for (unsigned i = 1; i <= requests; i++) {
		int r = churn_op(c, err);
		if (!r && c->restart_every && i % c->restart_every == 0)
			r = op_still(c, rig_restart, "a restart", err);
		if (r)
			return err_prefix(err, "request %u: ", i);
	}
	return 0;
}

int churn_empty(struct churn *c, struct err *err)
{
	rp_idset_copy(&c->online, rp_ids_of(&c->all));
	int r = c->still ? 0 : rig_set_online(c->rig, rp_ids_of(&c->all), err);
	while (!r && c->n_live)
		r = remove_at(c, c->n_live - 1, err);
	return r;
}

/* ---- the probe ------------------------------------------------------------------------------- */

static unsigned size_of(const struct iset *s)
{
	return s ? s->count : 0;
}

/* Writes amounts, not CPU numbers: a pool may have kept other CPUs than at first. */
static void put_amounts(const struct ctr *ctr, struct buf *out)
{
	(void)buf_printf(out, "%s: %u CPUs, %u exclusive, %s memory nodes, %s\n", ctr->name,
			 size_of(ctr->cur.cpus), size_of(ctr->cur.exclusive),
			 ctr->cur.mems ? "some" : "no",
			 ctr->cur.degraded ? ctr->cur.degraded->data : "well");
}

int churn_probe(struct rig *r, struct buf *out, struct err *err)
{
	static const struct wish wishes[] = {
		{.qos = RP_QOS_BURSTABLE, .cpu_request = 250, .mem_request = GIB / 4},
		{WISH_GUARANTEED(1000, GIB / 2)},
		{WISH_GUARANTEED(2000, GIB)},
		{.qos = RP_QOS_BEST_EFFORT},
		{WISH_GUARANTEED(750, GIB)},
	};
	struct ctr *placed[sizeof wishes / sizeof *wishes];
	unsigned n = 0;
	int bad = 0;
	for (unsigned i = 0; !bad && i < sizeof wishes / sizeof *wishes; i++) {
		struct wish w = wishes[i];
		wish_name(&w, "probe", i, 1800000000 + i);
		bad = rig_add(r, &w, &placed[n], err);
		n += !bad;
		if (bad == RIG_REFUSED)
			(void)buf_printf(out, "%s: refused\n", w.id);
		bad = rig_settle(bad);
	}
	for (unsigned i = 0; i < n; i++)
		put_amounts(placed[i], out);
	while (!bad && n)
		bad = rig_remove(r, placed[--n], err);
	return bad;
}

int churn_probe_fresh(struct check *check, struct buf *out, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = check};
	int bad = rig_open(&r, check, NULL, err);
	bad = bad ? bad : rig_start(&r, err);
	return bad ? bad : churn_probe(&r, out, err);
}
