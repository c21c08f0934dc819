/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants of resource plugins in decisions and replies. The policy has precedence: CPUs, memory
 * nodes and limits that it has decided are unchanged, and a plugin's values apply where the policy
 * has decided nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <utlist.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/host/service/work.h"
#include "core/nri-rpd/pipeline/request/confine.h"
#include "core/nri-rpd/pipeline/wait/plugin_grants.h"

#define LOG_SOURCE "plugins"
#define ARENA_BLOCK (16u << 10)
#define ARENA_MAX (16u << 20)
#define NOTE_MAX 640u

struct granted {
	struct pipeline *p;
	struct ctr *ctr;
	struct decision *d;
	struct arena *arena; /* valid until the next container is staged */
	uint32_t had; /* bits of `granted` before this call */
	/* the container is being created: settings for creation apply, and conflicts are noted */
	bool comes;
};

static void plugin_grants_note(const struct granted *g, const Grants__Grant *from, const char *what,
			       const char *value, bool taken)
{
	char text[NOTE_MAX];
	if (!g->comes)
		return;
	(void)snprintf(text, sizeof text, "resource plugin %.200s: %s %.200s%s", from->resource,
		       what, value, taken ? "" : ", but the policy decided another value");
	host_note(g->p->env.cache, g->ctr, text);
	if (taken)
		return;
	g->p->wait.plugins.counts.left_alone++;
	if (log_allowed(&g->p->wait.plugins.failures, LOG_SOURCE))
		log_notice("%s: %s", g->ctr->full_name, text);
}

/* ---- grants that do not fit ------------------------------------------------------------------ */

/* Returns -EINVAL, with the reason and its cause, if `set` has members that are not `allowed`. */
static int grants_outside(const char *what, const char *text, const struct rp_idset *set,
			  struct rp_ids allowed, const char *why, struct err *err)
{
	struct rp_idset bad;
	char some[64];
	if (rp_ids_subset(rp_ids_of(set), allowed))
		return 0;
	rp_idset_andnot(&bad, rp_ids_of(set), allowed);
	(void)rp_ids_format(rp_ids_of(&bad), some, sizeof some);
	return err_set(err, -EINVAL, "%s %.100s, of which %s %s", what, text, some, why);
}

/* Returns true if the grant is for container `other`: it is `ctr`, or, if ctr is NULL, belongs to
 * the grant's pod. */
static bool grants_concern(const struct pod *pod, const struct ctr *ctr, const Grants__Grant *from,
			   const struct ctr *other)
{
	return ctr ? ctr == other : other->pod == pod && grant_is_for(from, other->name);
}

/* Returns -EINVAL if a CPU of the grant is an exclusive one of another container. */
static int grants_owned(const struct pipeline *p, const struct pod *pod, const struct ctr *ctr,
			const Grants__Grant *from, const struct rp_idset *cpus, struct err *err)
{
	const struct ctr *other;
	DL_FOREACH (cache_ctrs(p->env.cache), other) {
		const struct decision *d = txn_view(other);
		struct rp_idset both;
		char some[64];
		if (!ctr_live(d->state) || !d->exclusive || grants_concern(pod, ctr, from, other))
			continue;
		rp_idset_and(&both, rp_ids_of(cpus), d->exclusive->ids);
		if (rp_ids_empty(rp_ids_of(&both)))
			continue;
		(void)rp_ids_format(rp_ids_of(&both), some, sizeof some);
		return err_set(err, -EINVAL,
			       "CPUs %.100s, of which %s are exclusive CPUs of container %s",
			       from->cpus, some, other->full_name);
	}
	return 0;
}

int grant_check_fit(const struct pipeline *p, const struct pod *pod, const struct ctr *ctr,
		    const Grants__Grant *from, struct err *err)
{
	struct invariants inv = decide_invariants(p);
	struct rp_idset set;
	struct err why = ERR_INIT;
	int r = 0;
	if (*from->cpus && !rp_idset_parse(&set, from->cpus, RP_CPUS_MAX)) {
		r = grants_outside("CPUs", from->cpus, &set, inv.online, "are not online", &why);
		if (!r)
			r = grants_owned(p, pod, ctr, from, &set, &why);
	}
	if (!r && *from->mems && !rp_idset_parse(&set, from->mems, RP_NODES_MAX))
		r = grants_outside("memory nodes", from->mems, &set, inv.mem_nodes,
				   "have no memory", &why);
	return r ? err_set(err, r, "resource plugin %.200s grants %s%s %s", from->resource,
			   *from->container ? "container " : "the pod", from->container, why.text)
		 : 0;
}

/* Handles a grant that does not fit. Refuses a container that is being created; drops the grant of
 * a running container, so that no other container is affected. */
static int grants_dropped(const struct granted *g, const struct err *why, struct err *err)
{
	if (g->comes)
		return err_set(err, -EINVAL, "%s", why->text);
	host_note(g->p->env.cache, g->ctr, why->text);
	g->p->wait.plugins.counts.dropped++;
	if (log_allowed(&g->p->wait.plugins.failures, LOG_SOURCE))
		log_warning("%s: %s; ignored for this container", g->ctr->full_name, why->text);
	return 0;
}

/* ---- sets and limits ------------------------------------------------------------------------- */

static int put_set(const struct granted *g, const Grants__Grant *from, const char *what,
		   const char *text, uint32_t max, struct iset **field, uint32_t bit)
{
	struct rp_idset set;
	if (!*text || rp_idset_parse(&set, text, max))
		return 0;
	struct iset *made = intern_get(cache_sets(g->p->env.cache), rp_ids_of(&set));
	if (!made)
		return -ENOMEM;
	bool taken = !*field || (g->had | g->d->granted) & bit || *field == made ||
		     (bit == DIFF_CPUS && g->d->confined);
	if (bit == DIFF_CPUS && g->ctr->flags & RP_CTR_PRESERVE_CPU)
		taken = false;
	plugin_grants_note(g, from, what, text, taken);
	if (!taken) {
		intern_unref(cache_sets(g->p->env.cache), made);
		return 0;
	}
	txn_put_set(g->p->env.cache, field, made);
	g->d->granted |= bit;
	if (bit == DIFF_CPUS)
		g->d->confined = false;
	return 0;
}

static int put_limit(const struct granted *g, const Grants__Grant *from)
{
	struct decision *d = g->d;
	char text[32];
	if (!from->memory_limit)
		return 0;
	(void)snprintf(text, sizeof text, "%lld", (long long)from->memory_limit);
	bool taken = d->mem_limit == RP_NOT_SET || (g->had | d->granted) & DIFF_MEM_LIMIT ||
		     d->mem_limit == from->memory_limit;
	plugin_grants_note(g, from, "memory limit", text, taken);
	if (!taken)
		return 0;
	d->mem_limit = from->memory_limit;
	d->granted |= DIFF_MEM_LIMIT;
	return 0;
}

static int put_sets(const struct granted *g, const Grants__Grant *from)
{
	struct decision *d = g->d;
	int r = put_set(g, from, "CPUs", from->cpus, RP_CPUS_MAX, &d->cpus, DIFF_CPUS);
	if (!r)
		r = put_set(g, from, "memory nodes", from->mems, RP_NODES_MAX, &d->mems, DIFF_MEMS);
	return r ? r : put_limit(g, from);
}

/* ---- settings for creation ------------------------------------------------------------------- */

/* Returns true if an earlier plugin sets the same variable. The plugin that registered first has
 * precedence. */
static bool is_taken(const Grants__Grants *all, const struct granted *g, const Grants__Grant *from,
		     const Grants__Pair *pair)
{
	for (size_t i = 0; i < all->n_grants && all->grants[i] != from; i++) {
		const Grants__Grant *other = all->grants[i];
		if (!grant_is_for(other, g->ctr->name))
			continue;
		for (size_t k = 0; k < other->n_env; k++) {
			if (!str_eq(other->env[k]->key, pair->key))
				continue;
			if (!str_eq(other->env[k]->value, pair->value) &&
			    log_allowed(&g->p->wait.plugins.failures, LOG_SOURCE))
				log_notice("%s: resource plugins %s and %s both set %s: using %s",
					   g->ctr->full_name, other->resource, from->resource,
					   pair->key, other->resource);
			return true;
		}
	}
	return false;
}

static int plugin_grants_put(const struct granted *g, const Grants__Grant *from, struct extra e,
			     struct err *err)
{
	struct err why = ERR_INIT;
	e.by = arena_printf(g->arena, "resource plugin %s", from->resource);
	int r = e.by ? extras_put(txn_extras(g->p->txn), &e, &why) : -ENOMEM;
	return r ? err_set(err, r, "container %s: %s", g->ctr->full_name, err_text(&why, r)) : 0;
}

static int put_pair(const struct granted *g, const Grants__Grant *from, uint32_t field,
		    const Grants__Pair *pair, struct err *err)
{
	return plugin_grants_put(
		g, from, (struct extra){.field = field, .key = pair->key, .text = pair->value},
		err);
}

static int put_mount(const struct granted *g, const Grants__Grant *from, const Grants__Mount *m,
		     struct err *err)
{
	const struct rp_mount mount = {.size = sizeof mount,
				       .read_only = m->read_only,
				       .source = m->host_path,
				       .destination = m->container_path,
				       .type = "bind",
				       .options = "rbind,rprivate"};
	return plugin_grants_put(
		g, from,
		(struct extra){.field = EXTRA_MOUNT, .key = m->container_path, .mount = &mount},
		err);
}

/* Adds a device node. Containers get devices by number, which is read from the file below /dev. */
static int put_device(const struct granted *g, const Grants__Grant *from, const Grants__Device *d,
		      struct err *err)
{
	struct stat st;
	_close_ int fd = fs_open(&g->p->root, d->host_path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, fd < 0 ? fd : -errno,
				 "container %s: resource plugin %s grants %s", g->ctr->full_name,
				 from->resource, d->host_path);
	const char *type = S_ISCHR(st.st_mode) ? "c" : S_ISBLK(st.st_mode) ? "b" : NULL;
	if (!type)
		return err_set(err, -ENODEV,
			       "container %s: resource plugin %s grants %s, which is not a device",
			       g->ctr->full_name, from->resource, d->host_path);
	const struct rp_device device = {.size = sizeof device,
					 .path = d->container_path,
					 .type = type,
					 .major = major(st.st_rdev),
					 .minor = minor(st.st_rdev),
					 .uid = RP_OWNER_NOT_SET,
					 .gid = RP_OWNER_NOT_SET};
	return plugin_grants_put(
		g, from,
		(struct extra){.field = EXTRA_DEVICE, .key = d->container_path, .device = &device},
		err);
}

static int put_extras(const struct granted *g, const Grants__Grants *all, const Grants__Grant *from,
		      struct err *err)
{
	int r = 0;
	for (size_t i = 0; !r && i < from->n_env; i++)
		if (!is_taken(all, g, from, from->env[i]))
			r = put_pair(g, from, RP_F_ENV, from->env[i], err);
	for (size_t i = 0; !r && i < from->n_annotations; i++)
		r = put_pair(g, from, RP_F_ANNOTATION, from->annotations[i], err);
	for (size_t i = 0; !r && i < from->n_mounts; i++)
		r = put_mount(g, from, from->mounts[i], err);
	for (size_t i = 0; !r && i < from->n_devices; i++)
		r = put_device(g, from, from->devices[i], err);
	for (size_t i = 0; !r && i < from->n_cdi; i++)
		r = plugin_grants_put(g, from,
				      (struct extra){.field = EXTRA_CDI, .key = from->cdi[i]}, err);
	return r;
}

static int stage_one(const struct granted *g, const Grants__Grants *all, const Grants__Grant *from,
		     struct err *err)
{
	struct err why = ERR_INIT;
	if (grant_check_fit(g->p, g->ctr->pod, g->ctr, from, &why))
		return grants_dropped(g, &why, err);
	int r = put_sets(g, from);
	if (r)
		return err_errno(err, r, "container %s", g->ctr->full_name);
	return g->comes ? put_extras(g, all, from, err) : 0;
}

/* Reverts values that no plugin grants any more: the container is treated as unpinned, and memory
 * nodes and limit become the requested ones. */
static void take_back(const struct granted *g)
{
	struct pipeline *p = g->p;
	struct decision *d = g->d;
	const struct values *asked = &g->ctr->requested;
	struct rp_ids nodes = decide_invariants(p).mem_nodes;
	uint32_t gone = g->had & ~d->granted;
	if (gone & DIFF_CPUS) {
		d->confined = true;
		confine_unknown(p);
	}
	if (gone & DIFF_MEMS)
		txn_put_set(p->env.cache, &d->mems,
			    asked->mems && asked->mems->count &&
					    rp_ids_subset(asked->mems->ids, nodes)
				    ? intern_ref(asked->mems)
				    : intern_get(cache_sets(p->env.cache), nodes));
	if (gone & DIFF_MEM_LIMIT)
		d->mem_limit = asked->mem_limit > 0 ? asked->mem_limit : RP_NOT_SET;
}

static int plugin_grants_stage(struct granted *g, struct err *err)
{
	struct arena **a = &g->p->wait.plugins.staged;
	g->d = txn_stage(g->p->txn, g->ctr);
	if (!g->d)
		return err_errno(err, -ENOMEM, "container %s", g->ctr->full_name);
	if (*a)
		arena_reset(*a);
	else
		*a = arena_new(ARENA_BLOCK, ARENA_MAX);
	g->arena = *a;
	g->had = g->d->granted;
	g->d->granted = 0;
	const Grants__Grants *m = *a ? plugins_grants(g->ctr->pod, *a) : NULL;
	int r = m ? 0 : err_errno(err, -ENOMEM, "container %s", g->ctr->full_name);
	for (size_t i = 0; !r && i < m->n_grants; i++) {
		const Grants__Grant *from = m->grants[i];
		if (!grant_is_for(from, g->ctr->name) ||
		    (!*from->container && g->ctr->flags & RP_CTR_INIT))
			continue;
		if (g->comes && *from->hints) {
			char text[NOTE_MAX];
			(void)snprintf(text, sizeof text, "resource plugin %.200s: %.300s",
				       from->resource, from->hints);
			host_note(g->p->env.cache, g->ctr, text);
		}
		r = stage_one(g, m, from, err);
	}
	if (!r)
		take_back(g);
	return r;
}

int granted_stage(struct pipeline *p, struct ctr *ctr, bool comes, struct err *err)
{
	struct granted g = {.p = p, .ctr = ctr, .comes = comes};
	return ctr->pod->grants ? plugin_grants_stage(&g, err) : 0;
}

int granted_stage_all(struct pipeline *p, void *arg, struct err *err)
{
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		struct granted g = {.p = p, .ctr = ctr};
		if (!(ctr->pod->grants || ctr->cur.granted) || !ctr_live(ctr->cur.state))
			continue;
		int r = plugin_grants_stage(&g, err);
		if (r)
			return r;
	}
	return 0;
}
