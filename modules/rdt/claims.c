/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of Dynamic Resource Allocation: a device "rdt-CLASS" for each class with allowClaims. The
 * class is staged for the claim, and the host gives it to the containers that use the claim. */
#include <stdlib.h>
#include <string.h>

#include "modules/rdt/rdt.h"

#define DEVICE_PREFIX "rdt-"
#define DEVICE_NAME_MAX 63u
#define DEVICE_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"

bool rdt_claims_good_name(const char *class)
{
	size_t n = strlen(class);
	return n && n + sizeof DEVICE_PREFIX - 1 <= DEVICE_NAME_MAX &&
	       class[strspn(class, DEVICE_CHARS)] == '\0' && class[n - 1] != '-';
}

/* Returns the number of ways of the first cache in the schemata of a class; 0: none. */
static uint32_t claims_count_ways(const struct rdt_class *k)
{
	const char *at = k->schemata ? strchr(k->schemata, 'L') : NULL;
	at = at ? strchr(at, '=') : NULL;
	return at ? (uint32_t)__builtin_popcountll(strtoull(at + 1, NULL, 16)) : 0;
}

int32_t rdt_claims_devices(const struct rdt_config *c, const struct rp_devices_sink *sink)
{
	char name[sizeof DEVICE_PREFIX + RDT_NAME_MAX];
	for (uint32_t i = 0; i < c->n_classes; i++) {
		const struct rdt_class *k = &c->classes[i];
		if (!k->max_claims)
			continue;
		(void)snprintf(name, sizeof name, DEVICE_PREFIX "%s", k->name);
		sink->device(sink->ctx, name);
		sink->capacity(sink->ctx, "instances", k->max_claims);
		modhost_limits(sink, 1, 1);
		sink->text(sink->ctx, "class", k->name);
		uint32_t ways = claims_count_ways(k);
		if (ways)
			sink->number(sink->ctx, "ways", ways);
	}
	return 0;
}

struct claims_walk {
	const struct modhost *h;
	const struct rdt_config *c;
	const char *class; /* class whose claims are counted */
	int64_t n;
	int32_t result; /* error of the check */
};

/* Returns the class of a claim; NULL: the object is no claim, or has no class. */
static const char *claims_class_of(const struct modhost *h, rp_ctr ctr, struct rp_ctr_info *ret)
{
	*ret = (struct rp_ctr_info){.size = sizeof *ret};
	if (h->cache->get_ctr(h->ctx, ctr, ret) || !(ret->flags & RP_CTR_CLAIM))
		return NULL;
	return h->cache->get_text(h->ctx, ctr, RP_F_RDT_CLASS);
}

static void claims_count(void *arg, rp_ctr ctr)
{
	struct claims_walk *w = arg;
	struct rp_ctr_info info;
	const char *class = claims_class_of(w->h, ctr, &info);
	w->n += class && strcmp(class, w->class) == 0;
}

int32_t rdt_claims_allocate(const struct modhost *h, const struct rdt_config *c, rp_txn txn,
			    rp_ctr claim, const char *device)
{
	const size_t n = sizeof DEVICE_PREFIX - 1;
	const struct rdt_class *k = strncmp(device, DEVICE_PREFIX, n) == 0 && device[n]
					    ? rdt_config_class(c, device + n)
					    : NULL;
	if (!k || !k->max_claims)
		return modhost_fail(h, -RP_ENOENT, "this node has no device %s", device);
	struct claims_walk w = {.h = h, .class = k->name};
	if (ctl_each_container(h, claims_count, &w))
		return modhost_no_memory(h);
	if (w.n >= k->max_claims)
		return modhost_fail(h, -RP_ENOSPC,
				    "RDT class %s has %lld claims, as many as its maxClaims "
				    "allows: raise maxClaims or delete a claim of the class",
				    k->name, (long long)w.n);
	return h->cache->set_text(h->ctx, txn, claim, RP_F_RDT_CLASS, k->name);
}

static void claims_check(void *arg, rp_ctr ctr)
{
	struct claims_walk *w = arg;
	struct rp_ctr_info info;
	const char *class = claims_class_of(w->h, ctr, &info);
	const struct rdt_class *k = class && *class ? rdt_config_class(w->c, class) : NULL;
	if (class && *class && (!k || !k->max_claims) && !w->result)
		w->result = modhost_fail(w->h, -RP_EINVAL,
					 "claim %s/%s would lose its RDT class %s, which does not "
					 "exist or does not allow claims: delete the pods that use "
					 "the claim first",
					 info.pod_namespace, info.pod_name, class);
}

int32_t rdt_claims_check(const struct modhost *h, const struct rdt_config *c)
{
	struct claims_walk w = {.h = h, .c = c};
	return ctl_each_container(h, claims_check, &w) ? modhost_no_memory(h) : w.result;
}
