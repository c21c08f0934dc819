/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the static-pools policy. static-pools.h gives the overview. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/adopt.h"
#include "modules/static-pools/static-pools.h"

/* ---- record saved with a container ----------------------------------------------------------- */

/* Head of a record. The name of the pool and the texts of the lists follow, NUL-terminated. */
struct head {
	uint32_t version, n_lists;
	uint32_t no_affinity, pad;
	int64_t n; /* requested lists; 0: the pool is not exclusive */
};
#define RECORD_VERSION 1u

struct record {
	struct head head;
	const char *pool, *lists; /* name; n_lists consecutive texts */
};

static bool read_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	struct bytes_left left = ctr_record_bytes(&inst->h, ctr);
	if (!bytes_take(&left, &ret->head, sizeof ret->head) || ret->head.version != RECORD_VERSION)
		return false;
	ret->pool = bytes_take_text(&left);
	ret->lists = (const char *)left.at;
	for (uint32_t i = 0; !left.failed && i < ret->head.n_lists; i++)
		(void)bytes_take_text(&left);
	return !left.failed && !bytes_n_left(&left);
}

/* Saves the record. Returns -RP_E2BIG if the lists do not fit. */
static int32_t write_record(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct ask *a,
			    struct list *const *lists, uint32_t n)
{
	char data[RP_PRIVATE_MAX];
	bool exclusive = plan_pool(inst->plan, a->pool)->exclusive;
	const struct head head = {RECORD_VERSION, n, a->no_affinity, 0, exclusive ? a->n : 0};
	struct bytes rec = BYTES_IN(data);
	(void)bytes_put(&rec, &head, sizeof head);
	bytes_put_text(&rec, a->pool);
	for (uint32_t i = 0; i < n; i++)
		bytes_put_text(&rec, lists[i]->text);
	if (rec.failed)
		return modhost_fail(&inst->h, -RP_E2BIG, "%u cpu lists are more than can be saved",
				    n);
	return ctr_set_record(&inst->h, txn, ctr, data, rec.size);
}

static struct list *find_list(const struct rp_plan *p, const struct pool *pool, const char *text)
{
	for (uint32_t i = 0; i < pool->n; i++)
		if (strcmp(p->lists[pool->first + i].text, text) == 0)
			return &p->lists[pool->first + i];
	return NULL;
}

/* Checks that the plan has the pool and the lists of a record. Returns 0, or -RP_EBUSY with a
 * message. */
static int32_t static_pools_verify(const struct modhost *h, const struct rp_plan *p,
				   const struct record *rec, const char *ctr)
{
	const struct pool *pool = plan_pool(p, rec->pool);
	if (!pool)
		return modhost_fail(h, -RP_EBUSY, "pool %s for container %s not found", rec->pool,
				    ctr);
	if (pool->exclusive != (rec->head.n > 0))
		return modhost_fail(h, -RP_EBUSY, "%s: container %s",
				    pool->exclusive
					    ? "no exclusive CPUs set to run in exclusive pool"
					    : "exclusive CPUs set to run in non-exclusive pool",
				    ctr);
	const char *text = rec->lists;
	for (uint32_t i = 0; i < rec->head.n_lists; i++, text += strlen(text) + 1)
		if (!find_list(p, pool, text))
			return modhost_fail(
				h, -RP_EBUSY,
				"container %s has the list %s, which is missing in pool %s", ctr,
				text, rec->pool);
	return 0;
}

static void count_list(struct list *list, int by)
{
	if (by > 0)
		list->users++;
	else if (list->users)
		list->users--;
}

/* Changes the number of users of each list that has one of the CPUs, for a container without a
 * record that keeps these CPUs. */
static void count_kept(struct rp_plan *p, struct rp_ids cpus, int by)
{
	for (uint32_t i = 0; i < p->n_lists; i++)
		if (rp_ids_overlap(cpus, rp_ids_of(&p->lists[i].cpus)))
			count_list(&p->lists[i], by);
}

static void count_users(struct rp_plan *p, const struct record *rec, int by)
{
	const struct pool *pool = plan_pool(p, rec->pool);
	const char *text = rec->lists;
	for (uint32_t i = 0; pool && i < rec->head.n_lists; i++, text += strlen(text) + 1) {
		struct list *list = find_list(p, pool, text);
		if (list)
			count_list(list, by);
	}
}

static bool fits_plan(const struct rp_plan *p, const struct record *rec)
{
	const struct pool *pool = plan_pool(p, rec->pool);
	const char *text = rec->lists;
	bool fits = pool && pool->exclusive == (rec->head.n > 0);
	for (uint32_t i = 0; fits && i < rec->head.n_lists; i++, text += strlen(text) + 1)
		fits = find_list(p, pool, text) != NULL;
	return fits;
}

static bool is_kept(const struct rp_ctr_info *info)
{
	return info->flags & RP_CTR_DEGRADED && !(info->flags & RP_CTR_PRESERVE_CPU);
}

/* Counts the lists of a container's record. kept_too: also counts a container without a record
 * that keeps its CPUs. */
static void count_ctr(struct rp_instance *inst, const struct rp_ctr_info *info, bool kept_too,
		      int by)
{
	struct record rec;
	if (read_record(inst, info->ctr, &rec) && fits_plan(inst->plan, &rec))
		count_users(inst->plan, &rec, by);
	else if (kept_too && is_kept(info))
		count_kept(inst->plan, info->cpus, by);
}

/* ---- choice of lists ------------------------------------------------------------------------- */

static bool static_pools_fits(const struct list *list, const struct ask *a)
{
	return a->socket == SOCKET_ANY || list->socket == a->socket;
}

/* Returns true if a container that runs on the CPUs `had` runs on all CPUs of the list. */
static bool static_pools_runs_on(const struct list *list, struct rp_ids had)
{
	return !rp_ids_empty(had) && rp_ids_subset(rp_ids_of(&list->cpus), had);
}

/* Chooses free lists, first those on which the container runs. */
static uint32_t choose_exclusive(const struct rp_plan *p, const struct pool *pool,
				 const struct ask *a, struct rp_ids had, struct list **ret)
{
	uint32_t n = 0;
	for (int other = 0; other < 2; other++)
		for (uint32_t i = 0; i < pool->n && n < a->n; i++) {
			struct list *list = &p->lists[pool->first + i];
			if (!list->users && static_pools_fits(list, a) &&
			    static_pools_runs_on(list, had) == !other)
				ret[n++] = list;
		}
	return n;
}

/* Chooses a list on which the container runs, or the list with the fewest users. */
static uint32_t choose_shared(const struct rp_plan *p, const struct pool *pool, const struct ask *a,
			      struct rp_ids had, struct list **ret)
{
	struct list *best = NULL;
	bool best_own = false;
	for (uint32_t i = 0; i < pool->n; i++) {
		struct list *list = &p->lists[pool->first + i];
		bool own = static_pools_runs_on(list, had);
		bool better =
			!best || own > best_own || (own == best_own && list->users < best->users);
		if (!static_pools_fits(list, a) || !better)
			continue;
		best = list;
		best_own = own;
	}
	ret[0] = best;
	return best != NULL;
}

static uint32_t choose_lists(const struct rp_plan *p, const struct pool *pool, const struct ask *a,
			     struct rp_ids had, struct list **ret)
{
	return pool->exclusive ? choose_exclusive(p, pool, a, had, ret)
			       : choose_shared(p, pool, a, had, ret);
}

/* Returns the CPUs of a container that ran before this policy saw it. Empty for a container that is
 * being created, and for one that runs on all online CPUs. */
static void static_pools_had(const struct rp_instance *inst, const struct rp_ctr_info *info,
			     struct rp_idset *ret)
{
	struct rp_idset online;
	rp_idset_clear(ret);
	if (info->state == RP_STATE_CREATING)
		return;
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	if (!rp_ids_subset(rp_ids_of(&online), adopt_cpus(info)))
		rp_idset_copy(ret, adopt_cpus(info));
}

static int32_t static_pools_choose(struct rp_instance *inst, const struct ask *a,
				   const struct pool *pool, struct rp_ids had, struct list **ret)
{
	const struct modhost *h = &inst->h;
	char socket[48] = "";
	if (a->socket != SOCKET_ANY)
		(void)snprintf(socket, sizeof socket, " with socket id %lld", (long long)a->socket);
	if (!pool)
		return modhost_fail(h, -RP_EINVAL, "non-existent pool \"%s\"", a->pool);
	if (pool->exclusive && a->n < 1)
		return modhost_fail(h, -RP_EINVAL,
				    "exclusive pool specified but the number of exclusive CPUs "
				    "requested is 0");
	uint32_t n = choose_lists(inst->plan, pool, a, had, ret);
	if (pool->exclusive ? n < a->n : !n)
		return modhost_fail(h, -RP_ENOSPC, "%s cpu lists in pool \"%s\"%s",
				    pool->exclusive ? "not enough free" : "no available", a->pool,
				    socket);
	return (int32_t)n;
}

/* ---- staging in the transaction -------------------------------------------------------------- */

static int32_t set_env(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *name,
		       const char *value)
{
	return inst->h.cache->set_pair(inst->h.ctx, txn, ctr, RP_F_ENV, name, value);
}

/* Writes the CPUs as a hexadecimal number with CPU 0 as the lowest bit. */
static void mask_text(struct rp_ids cpus, char *text)
{
	uint32_t last = rp_ids_last(cpus), digits = last == RP_IDSET_NONE ? 1 : last / 4 + 1;
	for (uint32_t i = 0; i < digits; i++) {
		unsigned digit = 0;
		for (uint32_t bit = 0; bit < 4; bit++)
			digit |= rp_ids_has(cpus, 4 * i + bit) ? 1u << bit : 0;
		text[digits - 1 - i] = "0123456789abcdef"[digit];
	}
	text[digits] = '\0';
}

static int32_t tell_pool(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *name,
			 const char *pool_name)
{
	const struct pool *pool = plan_pool(inst->plan, pool_name);
	if (!pool)
		return 0;
	char *text = plan_lists_text(inst->plan, pool);
	int32_t r = text ? set_env(inst, txn, ctr, name, text) : -RP_ENOMEM;
	free(text);
	return r;
}

/* Stages environment variables and arguments, which can be set only while a container is
 * created. */
static int32_t stage_new(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct ask *a,
			 struct list *const *lists, uint32_t n, struct rp_ids cpus)
{
	char *text = malloc((size_t)n * (LIST_TEXT_MAX + 1) + RP_CPUS_MAX / 4 + 2);
	size_t len = 0;
	if (!text)
		return modhost_no_memory(&inst->h);
	for (uint32_t i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "%s%s", i ? "," : "", lists[i]->text);
	int32_t r = set_env(inst, txn, ctr, "CMK_CPUS_ASSIGNED", text);
	mask_text(cpus, text);
	if (!r)
		r = set_env(inst, txn, ctr, "CMK_CPUS_ASSIGNED_MASK", text);
	free(text);
	if (!r)
		r = tell_pool(inst, txn, ctr, "CMK_CPUS_INFRA", "infra");
	if (!r)
		r = tell_pool(inst, txn, ctr, "CMK_CPUS_SHARED", "shared");
	if (!r && a->n_args)
		r = inst->h.cache->set_args(inst->h.ctx, txn, ctr, a->args, a->n_args);
	return r;
}

static int32_t stage_cpus(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct pool *pool,
			  const struct rp_idset *cpus, bool alone)
{
	const struct modhost *h = &inst->h;
	struct rp_idset online;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	rp_idset_and(&online, rp_ids_of(cpus), rp_ids_of(&online));
	if (rp_ids_empty(rp_ids_of(&online)))
		return modhost_fail(h, -RP_ENOSPC,
				    "none of the CPUs in pool \"%s\" that are free is online",
				    pool->name);
	bool own = pool->exclusive && alone;
	const struct ctr_stage s = {.cpus = rp_ids_of(&online),
				    .own = own ? rp_ids_of(&online) : rp_ids_none()};
	int32_t r = ctr_stage(h, txn, ctr, &s);
	return r ? r
		 : ctr_set_data_cpus(h, txn, ctr,
				     pool->exclusive ? "EXCLUSIVE_CPUS" : "SHARED_CPUS",
				     rp_ids_of(&online));
}

static int32_t static_pools_give(struct rp_instance *inst, rp_txn txn,
				 const struct rp_ctr_info *info, const struct ask *a,
				 struct list **lists, uint32_t n)
{
	const struct pool *pool = plan_pool(inst->plan, a->pool);
	struct rp_idset cpus;
	bool alone = true;
	rp_idset_clear(&cpus);
	for (uint32_t i = 0; i < n; i++) {
		lists[i]->users++;
		alone = alone && lists[i]->alone;
		rp_idset_or(&cpus, rp_ids_of(&cpus), rp_ids_of(&lists[i]->cpus));
	}
	int32_t r = a->no_affinity ? 0 : stage_cpus(inst, txn, info->ctr, pool, &cpus, alone);
	if (!r && info->state == RP_STATE_CREATING)
		r = stage_new(inst, txn, info->ctr, a, lists, n, rp_ids_of(&cpus));
	if (!r)
		r = inst->h.cache->set_degraded(inst->h.ctx, txn, info->ctr, NULL);
	if (r)
		return r;
	inst->placed++;
	modhost_note(&inst->h, info->ctr, "%u list%s of pool %s%s", n, n == 1 ? "" : "s",
		     pool->name, a->no_affinity ? "; it pins itself" : "");
	return write_record(inst, txn, info->ctr, a, lists, n);
}

static int32_t place_asked(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			   const struct ask *a)
{
	const struct pool *pool = plan_pool(inst->plan, a->pool);
	struct list **lists = calloc((pool ? pool->n : 0) + 1u, sizeof(struct list *));
	if (!lists)
		return modhost_no_memory(&inst->h);
	struct rp_idset had;
	static_pools_had(inst, info, &had);
	int32_t r = static_pools_choose(inst, a, pool, rp_ids_of(&had), lists);
	if (r > 0)
		r = static_pools_give(inst, txn, info, a, lists, (uint32_t)r);
	else
		inst->refused++;
	free(lists);
	return r;
}

/* Returns true if a container without a record runs on the CPUs of lists that it can get. */
static bool static_pools_has(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct ask a;
	struct rp_idset had;
	static_pools_had(inst, info, &had);
	bool good = !ask_of(&inst->h, info->ctr, &a);
	const struct pool *pool = good ? plan_pool(inst->plan, a.pool) : NULL;
	struct list **lists = calloc((pool ? pool->n : 0) + 1u, sizeof(struct list *));
	uint32_t n = pool && lists ? choose_lists(inst->plan, pool, &a, rp_ids_of(&had), lists) : 0;
	good = n && (!pool->exclusive || n == a.n);
	for (uint32_t i = 0; i < n; i++)
		good = good && static_pools_runs_on(lists[i], rp_ids_of(&had));
	free(lists);
	ask_fini(&a);
	return good;
}

static int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct ask a;
	int32_t r = ask_of(&inst->h, info->ctr, &a);
	if (!r)
		r = place_asked(inst, txn, info, &a);
	ask_fini(&a);
	return r;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	count_ctr(inst, info, true, -1); /* a repeated request, after a lost reply */
	return place_new(inst, txn, info);
}

/* Changes nothing: the lists of a container do not depend on its CPU request. */
static int32_t resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	return 0;
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record rec;
	count_ctr(inst, info, true, -1);
	if (!read_record(inst, info->ctr, &rec) && !is_kept(info))
		return 0;
	return ctr_forget(&inst->h, txn, info->ctr);
}

static int32_t count_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	count_ctr(inst, info, *(const bool *)w->arg, 1);
	return 0;
}

/* Counts the users of all lists again. kept_too: also counts containers without a record, once
 * these have been synchronized. */
static int32_t static_pools_recount(struct rp_instance *inst, bool kept_too)
{
	for (uint32_t i = 0; i < inst->plan->n_lists; i++)
		inst->plan->lists[i].users = 0;
	return life_walk(inst, 0, (struct life_walk){.each = count_one, .arg = &kept_too});
}

static int32_t rolled_back(struct rp_instance *inst)
{
	return static_pools_recount(inst, inst->synced) ? RP_RESYNC : 0;
}

/* Removes the CPUs of lists of exclusive pools from *cpus. used: only of lists with users. */
static void take_out_exclusive(const struct rp_plan *p, bool used, struct rp_idset *cpus)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		for (uint32_t k = 0; p->pools[i].exclusive && k < p->pools[i].n; k++) {
			const struct list *list = &p->lists[p->pools[i].first + k];
			if (!used || list->users)
				rp_idset_andnot(cpus, rp_ids_of(cpus), rp_ids_of(&list->cpus));
		}
}

/* Stores the CPUs for a container without lists: the online CPUs outside exclusive pools, else the
 * CPUs of lists without users, else all online CPUs. */
static void cpus_for_rest(const struct rp_instance *inst, struct rp_idset *ret)
{
	struct rp_idset online;
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	*ret = online;
	take_out_exclusive(inst->plan, false, ret);
	if (!rp_ids_empty(rp_ids_of(ret)))
		return;
	*ret = online;
	take_out_exclusive(inst->plan, true, ret);
	if (rp_ids_empty(rp_ids_of(ret)))
		*ret = online;
}

/* Stages a running container that cannot be placed. The container keeps its CPUs, except those
 * of exclusive lists with users. The lists that contain these CPUs count it as a user, so no
 * other container gets them. A container that was not confined moves off the exclusive lists. */
static int32_t static_pools_keep(struct rp_instance *inst, rp_txn txn,
				 const struct rp_ctr_info *info, const char *why)
{
	struct rp_idset online, cpus;
	struct rp_ids had = adopt_cpus(info);
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	rp_idset_and(&cpus, had, rp_ids_of(&online));
	if (rp_ids_equal(rp_ids_of(&cpus), rp_ids_of(&online)))
		rp_idset_clear(&cpus);
	take_out_exclusive(inst->plan, true, &cpus);
	if (rp_ids_empty(rp_ids_of(&cpus)))
		cpus_for_rest(inst, &cpus);
	count_kept(inst->plan, rp_ids_of(&cpus), 1);
	const struct ctr_stage s = {
		.cpus = rp_ids_of(&cpus), .own = rp_ids_none(), .degraded = why};
	return ctr_stage(&inst->h, txn, info->ctr, &s);
}

/* Stages the online CPUs of the container's lists again, after CPUs may have gone offline or
 * online. A container whose CPUs are all offline gets the CPUs for containers without lists. */
static int32_t static_pools_settle(struct rp_instance *inst, rp_txn txn,
				   const struct rp_ctr_info *info, const struct record *rec)
{
	const struct rp_plan *p = inst->plan;
	const struct pool *pool = plan_pool(p, rec->pool);
	const char *text = rec->lists;
	struct rp_idset cpus;
	bool alone = true;
	rp_idset_clear(&cpus);
	for (uint32_t i = 0; i < rec->head.n_lists; i++, text += strlen(text) + 1) {
		const struct list *list = find_list(p, pool, text);
		if (!list)
			continue;
		alone = alone && list->alone;
		rp_idset_or(&cpus, rp_ids_of(&cpus), rp_ids_of(&list->cpus));
	}
	int32_t r =
		rec->head.no_affinity ? 0 : stage_cpus(inst, txn, info->ctr, pool, &cpus, alone);
	if (r != -RP_ENOSPC)
		return r;
	cpus_for_rest(inst, &cpus);
	const struct ctr_stage s = {.cpus = rp_ids_of(&cpus),
				    .own = rp_ids_none(),
				    .degraded = "none of the CPUs of its lists is online"};
	return ctr_stage(&inst->h, txn, info->ctr, &s);
}

/* Pass 0 handles containers with a record, so that pass 1 leaves no other container on their
 * CPUs. */
static int32_t sync_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w)
{
	struct record rec;
	char why[MODHOST_TEXT_MAX] = "";
	bool ours = read_record(inst, info->ctr, &rec);
	if (!ours && !w->pass)
		return 0;
	inst->h.why = why;
	if (!ours && w->pass == 1 && !static_pools_has(inst, info)) {
		inst->h.why = NULL;
		return 0;
	}
	int32_t r = ours ? static_pools_verify(&inst->h, inst->plan, &rec, info->id)
			 : place_new(inst, txn, info);
	if (!r && ours)
		r = static_pools_settle(inst, txn, info, &rec);
	else if (r && r != -RP_ENOMEM)
		r = static_pools_keep(inst, txn, info, why);
	inst->h.why = NULL;
	return r ? r : 1;
}

/* Moves a refused container that runs anyway off the exclusive lists that have users. */
static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	return static_pools_keep(inst, txn, info, "it was refused but runs");
}

/* Sets the node label, taint and extended resource for schedulers. A failure is only logged,
 * because containers can be placed without them. */
static void mark_node(const struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	int64_t n = 0;
	if (!h->node)
		return;
	for (uint32_t i = 0; i < p->n_pools; i++)
		n += p->pools[i].exclusive ? p->pools[i].n : 0;
	int32_t r = h->node->set_label(h->ctx, CMK_LABEL, p->label ? "true" : NULL);
	if (!r)
		r = h->node->set_taint(h->ctx, CMK_TAINT, "NoSchedule", p->taint ? "true" : NULL);
	if (!r)
		r = h->node->set_resource(h->ctx, CORES_RESOURCE, n ? n : RP_NOT_SET);
	if (r)
		modhost_log(h, RP_LOG_WARNING, 0, "the node's label and taint cannot be set: %d",
			    r);
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	mark_node(inst);
	int32_t r = static_pools_recount(inst, false);
	return r ? r : life_walk(inst, txn, (struct life_walk){.each = sync_one, .n_passes = 3});
}

static int32_t check_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct record rec;
	return read_record(inst, info->ctr, &rec)
		       ? static_pools_verify(&inst->h, w->arg, &rec, info->id)
		       : 0;
}

static int32_t fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		    struct rp_plan *p)
{
	int32_t r = plan_read(&inst->h, section, p);
	return r || !inst->plan
		       ? r
		       : life_walk(inst, 0, (struct life_walk){.each = check_one, .arg = p});
}

/* Keeps the plan: offline CPUs are left out when CPUs are staged. */
static int32_t look(struct rp_instance *inst, struct rp_plan **ret)
{
	*ret = inst->plan;
	return 0;
}

static const struct life_ops ops = {
	.plan_size = sizeof(struct rp_plan),
	.fill = fill,
	.plan_fini = plan_fini,
	.look = look,
	.sync = sync_all,
	.place = place,
	.resize = resize,
	.release = release,
	.unmanaged = unmanaged,
	.rolled_back = rolled_back,
	.schema = &pools_schema,
	.report_zones = static_pools_zones,
	.report_metrics = static_pools_metrics,
};

/* The policy sets process arguments, which need this minor version. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
LIFE_MODULE("static-pools", "1.0", ops, .summary = "pools of configured CPU lists, as in CMK",
	    .licence = "Apache-2.0");
