/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/pipeline/request/claims.h"

#include <stdarg.h>

#include <utlist.h>

#include "core/nri-rpd/host/service/work.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "claims"
#define NOTE_MAX 512u

__attribute__((format(printf, 3, 4))) static void claims_note(struct pipeline *p, struct ctr *ctr,
							      const char *fmt, ...)
{
	char line[NOTE_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	host_note(p->env.cache, ctr, line);
}

/* ---- containers that use a claim ------------------------------------------------------------- */

static int claims_add(const struct ctr *ctr, struct ctr *claim, struct ctr **ret, struct err *err)
{
	if (*ret && *ret != claim)
		return err_set(err, -EINVAL,
			       "container %s uses the claims %s and %s: use one claim of nri-rp in "
			       "each container",
			       ctr->full_name, (*ret)->pod->name, claim->pod->name);
	*ret = claim;
	return 0;
}

/* Finds the claim of a container. The kubelet reports it, or the runtime its CDI device; a pod can
 * request the device of another pod's claim in an annotation, so the claim has to name the pod.
 * Returns -EINVAL if there are several. */
static int claims_find(struct pipeline *p, struct ctr *ctr, struct ctr **ret, struct err *err)
{
	struct ctr *claim;
	uint32_t at = 0;
	int r = 0;
	*ret = NULL;
	while (!r && (claim = devices_claim(p, ctr, &at)))
		r = claims_add(ctr, claim, ret, err);
	for (uint32_t i = 0; !r && ctr->desc && i < ctr->desc->n_cdi; i++) {
		const char *name = ctr->desc->cdi[i];
		claim = claim_by_cdi(p->env.cache, name);
		if (!str_has_prefix(name, CLAIM_CDI))
			continue;
		if (claim && (claim == *ret || claim_is_for(claim, ctr->pod->uid))) {
			r = claims_add(ctr, claim, ret, err);
			continue;
		}
		const char *why =
			claim ? "the claim is not reserved for this pod" : "there is no such claim";
		claims_note(p, ctr, "CDI device %.200s has no effect: %s", name, why);
		log_warning("%s: CDI device %.200s has no effect: %s", ctr->full_name, name, why);
	}
	return r;
}

/* Returns a new reference to the union of a set of all parts of a claim; NULL: no part has the set,
 * or out of memory. `field`: offset of the set in a decision. */
static struct iset *claims_union(struct pipeline *p, const struct ctr *claim, size_t field)
{
	struct iset *one = NULL;
	struct rp_idset all;
	unsigned n = 0;
	rp_idset_clear(&all);
	for (const struct ctr *part = claim->pod->ctrs; part; part = part->pod_next) {
		const char *d = (const char *)txn_view(part) + field;
		struct iset *set = *(struct iset *const *)(const void *)d;
		if (!set)
			continue;
		one = set;
		n++;
		rp_idset_or(&all, rp_ids_of(&all), set->ids);
	}
	return n > 1 ? intern_get(cache_sets(p->env.cache), rp_ids_of(&all)) : intern_ref(one);
}

/* Returns the first part of a claim that has CPUs; NULL: none. */
static const struct ctr *claims_with_cpus(const struct ctr *claim)
{
	const struct ctr *part = claim->pod->ctrs;
	while (part && !txn_view(part)->exclusive)
		part = part->pod_next;
	return part;
}

static int claims_take_cpus(struct pipeline *p, struct ctr *ctr, struct ctr *claim,
			    struct decision *d, struct err *err)
{
	struct cache *c = p->env.cache;
	struct iset *cpus = claims_union(p, claim, offsetof(struct decision, cpus));
	struct iset *mems = claims_union(p, claim, offsetof(struct decision, mems));
	struct iset *exclusive = claims_union(p, claim, offsetof(struct decision, exclusive));
	txn_put_set(c, &d->mems, mems);
	txn_put_set(c, &d->exclusive, exclusive);
	if (!cpus || !exclusive) {
		intern_unref(cache_sets(c), cpus);
		return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
	}
	txn_put_set(c, &d->cpus, cpus);
	txn_put_blob(&d->private_data, NULL);
	txn_put_blob(&d->degraded, NULL);
	d->claimed = true;
	d->confined = false;
	d->policy = d->group = 0;
	claims_note(p, ctr, "CPUs %s of claim %s/%s, device %s", cpus->text, claim->pod->ns,
		    claim->pod->name, claims_with_cpus(claim)->device);
	return 0;
}

int claims_stage(struct pipeline *p, struct ctr *ctr, struct err *err)
{
	struct ctr *claim;
	int r = claims_find(p, ctr, &claim, err);
	if (r || !claim || !ctr_live(txn_view(claim)->state))
		return r;
	struct decision *d = txn_stage(p->txn, ctr);
	if (!d)
		return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
	claim_attach(ctr, claim);
	struct blob *class = claim_class(claim);
	if (class) {
		txn_put_blob(&d->rdt_class, blob_ref(class));
		claims_note(p, ctr, "RDT class of claim %s/%s", claim->pod->ns, claim->pod->name);
	}
	if (!claims_with_cpus(claim))
		return 0;
	r = claims_take_cpus(p, ctr, claim, d, err);
	return r ? r : 1;
}

int claims_follow(struct pipeline *p, struct err *err)
{
	for (const struct stage *s = txn_touched(p->txn); s; s = s->link) {
		struct ctr *ctr;
		if (!s->ctr->device || !s->next.exclusive || !s->ctr->cur.exclusive ||
		    (s->next.exclusive == s->ctr->cur.exclusive &&
		     s->next.mems == s->ctr->cur.mems))
			continue;
		struct ctr *claim = claim_first(s->ctr);
		for (ctr = claim->sharers; ctr; ctr = ctr->sharer_next) {
			if (!txn_view(ctr)->claimed || !ctr_live(txn_view(ctr)->state))
				continue;
			struct decision *d = txn_stage(p->txn, ctr);
			int r = d ? claims_take_cpus(p, ctr, claim, d, err)
				  : err_errno(err, -ENOMEM, "container %s", ctr->full_name);
			if (r)
				return r;
		}
	}
	return 0;
}

int claims_stage_listed(struct pipeline *p, struct err *err)
{
	struct ctr *ctr;
	int r = 0;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr)
		if (r >= 0 && ctr->desc && ctr_live(ctr->cur.state) && !ctr->cur.claimed)
			r = claims_stage(p, ctr, err);
	return r < 0 ? r : 0;
}

/* ---- allocation ------------------------------------------------------------------------------ */

/* Returns the instance to which the device of a part belongs; NULL: none. */
static struct instance *claims_owner(struct pipeline *p, const struct ctr *part)
{
	if (!claim_is_controlled(part))
		return p->policy && instance_has_devices(p->policy) ? p->policy : NULL;
	for (unsigned i = 0; i < p->controllers.n; i++)
		if (controller_runs(p->controllers.list[i]) &&
		    instance_owns_device(p->controllers.list[i]->instance, part->device))
			return p->controllers.list[i]->instance;
	return NULL;
}

static int claims_allocate_part(struct pipeline *p, struct ctr *part, struct err *err)
{
	struct instance *owner = claims_owner(p, part);
	if (!owner && claim_is_controlled(part))
		return err_set(err, -ENOENT,
			       "no controller has a device %s, and a claim of another "
			       "device needs a whole number of CPUs",
			       part->device);
	if (!owner)
		return err_set(err, -ENOTSUP, "policy %s has no devices for claims",
			       p->policy ? instance_name(p->policy) : "none");
	int r = instance_device_allocate(owner, part, err);
	const struct decision *d = txn_view(part);
	uint32_t n = d->exclusive ? d->exclusive->count : 0;
	if (r || (n * 1000 == d->needs.cpu_request && (n || !d->cpus)))
		return r;
	return err_set(err, -EBADMSG, "module %s allocated %u CPUs to claim %s/%s, not %lld",
		       instance_name(owner), n, part->pod->ns, part->pod->name,
		       (long long)(d->needs.cpu_request / 1000));
}

/* Refuses a claim with several RDT classes: a container has one. */
static int claims_check_class(const struct ctr *claim, struct err *err)
{
	const struct blob *class = claim_class(claim);
	for (const struct ctr *part = claim->pod->ctrs; part; part = part->pod_next) {
		const struct blob *other = txn_view(part)->rdt_class;
		if (other && !blob_equal(class, other))
			return err_set(err, -EINVAL,
				       "claim %s/%s: has the RDT classes %s and %s: request one",
				       claim->pod->ns, claim->pod->name, blob_text(class),
				       blob_text(other));
	}
	return 0;
}

static int claims_allocate(struct pipeline *p, void *arg, struct err *err)
{
	struct ctr *claim = arg;
	int r = 0;
	for (struct ctr *part = claim->pod->ctrs; part && !r; part = part->pod_next)
		r = claims_allocate_part(p, part, err);
	return r ? r : claims_check_class(claim, err);
}

static void claims_forget(struct pipeline *p, struct ctr *claim)
{
	struct pod *pod = claim->pod;
	while (claim->sharers) {
		struct ctr *ctr = claim->sharers;
		claim_attach(ctr, NULL);
		store_put_ctr(p->store, ctr);
	}
	while (pod->ctrs)
		request_forget_ctr(p, pod->ctrs);
	store_del_pod(p->store, pod);
	cache_del_pod(p->env.cache, pod);
	persist_now(p);
}

/* Accepts a claim that exists already: the kubelet repeats a request whose answer it lost. */
static int claims_repeat(struct pipeline *p, struct ctr *claim, const struct claim_desc *desc,
			 struct err *err)
{
	if (!str_eq(claim->pod->ns, desc->ns) || !str_eq(claim->pod->name, desc->name) ||
	    !claim_has_parts(claim, desc->parts, desc->n_parts))
		return err_set(err, -EINVAL,
			       "claim %s/%s is allocated already, from device %s with %lld CPUs: "
			       "delete its pods, or wait until it is unprepared",
			       claim->pod->ns, claim->pod->name, claim->device,
			       (long long)(claim->wanted.cpu_request / 1000));
	if (claim_set_users(claim, desc->users))
		return err_errno(err, -ENOMEM, "claim %s/%s", desc->ns, desc->name);
	store_put_ctr(p->store, claim);
	persist_now(p);
	return 0;
}

static int claims_new(struct pipeline *p, const struct claim_desc *desc, struct ctr **ret,
		      struct err *err)
{
	struct ctr *claim;
	int r = claim_put(p->env.cache, desc, &claim, err);
	if (r)
		return r;
	store_put_pod(p->store, claim->pod);
	r = decide(p, claims_allocate, claim, err);
	if (r) {
		claims_forget(p, claim);
		return r;
	}
	*ret = claim;
	for (struct ctr *part = claim->pod->ctrs; part; part = part->pod_next) {
		const char *cpus = part->cur.cpus ? part->cur.cpus->text : "none";
		log_info("claim %s/%s: CPUs %s of device %s", desc->ns, desc->name, cpus,
			 part->device);
		pipeline_event_of(p, EV_CREATED, part, part->trail.text,
				  "claim %s/%s: CPUs %s of device %s", desc->ns, desc->name, cpus,
				  part->device);
	}
	decide_tell_others(p, claim);
	decide_settle(p);
	return 0;
}

int pipeline_claim_prepare(struct pipeline *p, const struct claim_desc *desc,
			   const struct ctr **ret, struct err *err)
{
	struct ctr *claim = claim_by_uid(p->env.cache, desc->uid);
	if (!claim && !p->runtime.synchronized)
		return err_set(err, -EAGAIN, "no container runtime has listed its containers yet");
	int r = WATCHED(p, claim ? claims_repeat(p, claim, desc, err)
				 : claims_new(p, desc, &claim, err));
	*ret = claim;
	return r;
}

/* ---- release --------------------------------------------------------------------------------- */

static bool claims_is_user(const struct ctr *ctr)
{
	return ctr->cur.claimed && ctr_live(ctr->cur.state);
}

static bool claims_is_used(const struct ctr *claim)
{
	const struct ctr *ctr = claim->sharers;
	while (ctr && !claims_is_user(ctr))
		ctr = ctr->sharer_next;
	return ctr != NULL;
}

/* Releases the parts of controllers, and takes the RDT class from running containers. */
static void claims_release_controlled(struct pipeline *p, struct ctr *claim)
{
	bool class = claim_class(claim) != NULL;
	for (struct ctr *part = claim->pod->ctrs; part; part = part->pod_next) {
		struct instance *owner = claim_is_controlled(part) ? claims_owner(p, part) : NULL;
		struct err err = ERR_INIT;
		int r = owner ? instance_release(owner, part, &err) : 0;
		if (r)
			log_error("claim %s/%s: device %s: %s", part->pod->ns, part->pod->name,
				  part->device, err_text(&err, r));
	}
	for (struct ctr *ctr = claim->sharers; class && ctr; ctr = ctr->sharer_next) {
		struct decision *d = ctr_live(ctr->cur.state) ? txn_stage(p->txn, ctr) : NULL;
		if (!d)
			continue;
		txn_put_blob(&d->rdt_class, NULL);
		txn_put_blob(&d->degraded, blob_str("its claim was released while it runs"));
	}
}

/* Releases all parts of a claim without CPUs that containers use. */
static int claims_release(struct pipeline *p, void *arg, struct err *err)
{
	struct ctr *claim = arg;
	int r = 0;
	claims_release_controlled(p, claim);
	for (struct ctr *part = claim->pod->ctrs; part && !r; part = part->pod_next)
		r = decide_stage_release(p, part, err);
	return r;
}

/* Ends a claim that containers still use. The policy then places all containers, these among
 * them. */
static int claims_revoke(struct pipeline *p, void *arg, struct err *err)
{
	struct ctr *claim = arg, *ctr;
	struct decision *d;
	claims_release_controlled(p, claim);
	for (struct ctr *part = claim->pod->ctrs; part; part = part->pod_next) {
		d = txn_stage(p->txn, part);
		if (!d)
			return err_errno(err, -ENOMEM, "claim %s", claim->pod->name);
		d->state = RP_STATE_EXITED;
		txn_put_set(p->env.cache, &d->exclusive, NULL);
	}
	for (ctr = claim->sharers; ctr; ctr = ctr->sharer_next) {
		d = claims_is_user(ctr) ? txn_stage(p->txn, ctr) : NULL;
		if (!d)
			continue;
		d->claimed = false;
		txn_put_set(p->env.cache, &d->exclusive, NULL);
		claims_note(p, ctr, "claim %s/%s was released while the container runs",
			    claim->pod->ns, claim->pod->name);
	}
	int r = p->policy ? instance_sync(p->policy, err) : 0;
	for (ctr = claim->sharers; ctr && !r; ctr = ctr->sharer_next) {
		if (!claims_is_user(ctr))
			continue;
		txn_put_blob(&txn_stage(p->txn, ctr)->degraded,
			     blob_str("its claim was released while it runs"));
	}
	return r;
}

void pipeline_claim_release(struct pipeline *p, const char *uid)
{
	struct ctr *claim = claim_by_uid(p->env.cache, uid);
	struct err err = ERR_INIT;
	if (!claim)
		return;
	watchdog_begin(p->watchdog);
	if (claims_is_used(claim)) {
		log_warning("claim %s/%s is released while containers use it", claim->pod->ns,
			    claim->pod->name);
		if (decide(p, claims_revoke, claim, &err))
			log_error("claim %s/%s: its containers cannot be placed: %s",
				  claim->pod->ns, claim->pod->name, err.text);
	} else if (decide(p, claims_release, claim, &err)) {
		for (struct ctr *part = claim->pod->ctrs; part; part = part->pod_next)
			decide_release(p, part);
	}
	if (ctr_live(claim->cur.state)) {
		watchdog_end(p->watchdog);
		return;
	}
	decide_tell_others(p, claim);
	decide_settle(p);
	pipeline_event(p, EV_RELEASED, "claim %s/%s", claim->pod->ns, claim->pod->name);
	claims_forget(p, claim);
	watchdog_end(p->watchdog);
}

/* ---- devices --------------------------------------------------------------------------------- */

int pipeline_devices(struct pipeline *p, const struct rp_devices_sink *sink, struct err *err)
{
	int r = 0;
	watchdog_begin(p->watchdog);
	if (p->policy && instance_has_devices(p->policy))
		r = instance_devices(p->policy, sink, err);
	for (unsigned i = 0; i < p->controllers.n && !r; i++)
		if (controller_runs(p->controllers.list[i]) &&
		    instance_has_devices(p->controllers.list[i]->instance))
			r = instance_devices(p->controllers.list[i]->instance, sink, err);
	watchdog_end(p->watchdog);
	return r;
}
