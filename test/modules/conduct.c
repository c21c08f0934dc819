/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that gives each container all online CPUs, and behaves badly in one point: CONDUCT_CASE
 * says which. For tests of nri-rp-modcheck, which has to notice.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/host.h>
#include <nri-rp/policy.h>
#include <nri-rp/topology.h>

#define NAME_OF(n) NAME_OF_(n)
#define NAME_OF_(n) "conduct-" #n
#define IS(n) (CONDUCT_CASE == (n))

/* The cases, by the rule that each breaks. */
#define SOUND 0
#define LEAKS_MEMORY 1
#define LEAKS_DESCRIPTOR 2
#define WRITES_TO_STDOUT 3
#define DECIDES_BY_COUNTER 4
#define REFUSES_RELEASE 5
#define MOVES_AT_SYNC 6
#define NEVER_RECOVERS 7
#define READS_BEYOND 8
#define TRUSTS_SERVICES 9
#define CALLS_FROM_THREAD 10
#define FORGETS_SIZE 11
#define KEEPS_DROPPED 12
#define BELIEVES_ANNOTATIONS 13
#define ANSWERS_TO_ALL 14
#define IGNORES_HOTPLUG 15
#define EXPLAINS_NOTHING 16
#define GIVES_NOTHING_BACK 17
#define ODD_CODE 18
#define LEAKS_CONFIGURATION 19
/* Policies with room for a few containers that also decide how unmanaged containers run. */
#define MANAGES_SOUNDLY 20
#define UNMANAGED_ODD_CODE 21
#define UNMANAGED_KEEPS_DROPPED 22
#define FORGETS_UNMANAGED 23
#define MANAGES (CONDUCT_CASE >= MANAGES_SOUNDLY)
#define ROOM 8u

struct rp_plan {
	int unused;
};

struct rp_instance {
	const struct rp_host *host;
	const struct rp_host_cache *cache;
	const struct rp_host_topology *topology;
	const struct rp_host_explain *explain;
	struct rp_plan *plan;
	unsigned n_allocated;
	unsigned n_unmanaged;
	int broken;
};

static unsigned process_wide;

static struct rp_ids online(struct rp_instance *inst)
{
	struct rp_ids ids = rp_ids_none();
	(void)inst->topology->set(inst->host->ctx,
				  IS(IGNORES_HOTPLUG) ? RP_CPUS_PRESENT : RP_CPUS_ONLINE, &ids);
	return ids;
}

static void *call_from_thread(void *arg)
{
	struct rp_instance *inst = arg;
	(void)inst->topology->generation(inst->host->ctx);
	return NULL;
}

static void misbehave(struct rp_instance *inst, rp_ctr ctr)
{
	if (IS(WRITES_TO_STDOUT) && write(STDOUT_FILENO, "placed\n", 7) < 0)
		inst->broken = 1;
	if (IS(CALLS_FROM_THREAD)) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, call_from_thread, inst) == 0)
			(void)pthread_join(thread, NULL);
	}
	if (IS(BELIEVES_ANNOTATIONS)) {
		const char *text = inst->cache->annotation(inst->host->ctx, ctr, "conduct", NULL);
		char small[256];
		if (text && strlen(text) > sizeof small)
			abort();
	}
}

/* Returns all online CPUs, or in bad cases all but one. */
static struct rp_ids choose(struct rp_instance *inst, struct rp_idset *set, unsigned avoid)
{
	rp_idset_copy(set, online(inst));
	uint32_t n = rp_ids_count(rp_ids_of(set)), cpu = rp_ids_first(rp_ids_of(set));
	for (unsigned i = avoid % (n ? n : 1); i > 0; i--)
		cpu = rp_ids_next(rp_ids_of(set), cpu);
	if (IS(DECIDES_BY_COUNTER) || IS(MOVES_AT_SYNC) || IS(KEEPS_DROPPED))
		rp_idset_del(set, cpu);
	return rp_ids_of(set);
}

static int32_t place(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, unsigned avoid)
{
	void *ctx = inst->host->ctx;
	struct rp_ctr_info info = {.size = IS(FORGETS_SIZE) ? 0 : sizeof info};
	struct rp_idset set;
	if (inst->broken)
		return inst->host->fail(ctx, -RP_EBUSY, "broken for good");
	int32_t r = inst->cache->get_ctr(ctx, ctr, &info);
	if (!r && (info.flags & RP_CTR_PRESERVE_CPU))
		return 0;
	if (!r)
		r = inst->cache->set_cpus(ctx, txn, ctr, choose(inst, &set, avoid));
	if (IS(NEVER_RECOVERS) && r)
		inst->broken = 1;
	if (!IS(EXPLAINS_NOTHING) && (inst->explain || IS(TRUSTS_SERVICES)))
		inst->explain->note(ctx, ctr, "all CPUs");
	return r;
}

/* Returns true if the container has a place, marked by private data. */
static int has_place(struct rp_instance *inst, rp_ctr ctr)
{
	const void *data;
	uint32_t size = 0;
	return inst->cache->get_private(inst->host->ctx, ctr, &data, &size) == 0 && size > 0;
}

static int is_full(struct rp_instance *inst, rp_ctr but)
{
	rp_ctr ctrs[256];
	unsigned n_placed = 0;
	uint32_t n = inst->cache->list(inst->host->ctx, RP_ORDER_SYNC, ctrs, 256);
	for (uint32_t i = 0; i < n && i < 256; i++)
		n_placed += ctrs[i] != but && has_place(inst, ctrs[i]);
	return n_placed >= ROOM;
}

static int32_t find_place(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	if (is_full(inst, ctr))
		return inst->host->fail(inst->host->ctx, -RP_ENOSPC, "no room");
	int32_t r = inst->cache->set_private(inst->host->ctx, txn, ctr, "x", 1);
	if (!r)
		r = inst->cache->set_degraded(inst->host->ctx, txn, ctr, NULL);
	return r ? r : place(inst, txn, ctr, 0);
}

static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	void *ctx = inst->host->ctx;
	struct rp_idset set;
	inst->n_unmanaged++;
	if (IS(UNMANAGED_ODD_CODE))
		return inst->host->fail(ctx, -1, "not permitted");
	struct rp_ctr_info info = {.size = sizeof info};
	int32_t r = inst->cache->get_ctr(ctx, ctr, &info);
	if (r || !IS(UNMANAGED_KEEPS_DROPPED) || (info.flags & RP_CTR_PRESERVE_CPU))
		return r;
	rp_idset_copy(&set, online(inst));
	uint32_t cpu = rp_ids_first(rp_ids_of(&set));
	if (inst->n_unmanaged % 2)
		cpu = rp_ids_next(rp_ids_of(&set), cpu);
	rp_idset_del(&set, cpu);
	return inst->cache->set_cpus(ctx, txn, ctr, rp_ids_of(&set));
}

static int32_t allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	misbehave(inst, ctr);
	inst->n_allocated++;
	if (IS(GIVES_NOTHING_BACK) && inst->n_allocated > 50)
		return inst->host->fail(inst->host->ctx, -RP_ENOSPC, "all has been given away");
	if (IS(ODD_CODE))
		return inst->host->fail(inst->host->ctx, -1, "not permitted");
	if (MANAGES)
		return find_place(inst, txn, ctr);
	return place(inst, txn, ctr, IS(DECIDES_BY_COUNTER) ? process_wide++ : inst->n_allocated);
}

static int32_t update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return 0;
}

static int32_t release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	if (IS(REFUSES_RELEASE))
		return inst->host->fail(inst->host->ctx, -RP_EBUSY, "it is mine");
	return 0;
}

/* Keeps the CPUs of a container if they are online; places other containers. */
static int32_t sync_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info = {.size = sizeof info};
	int32_t r = inst->cache->get_ctr(inst->host->ctx, ctr, &info);
	if (r)
		return r;
	if (MANAGES && !IS(FORGETS_UNMANAGED) && !has_place(inst, ctr) && !is_full(inst, ctr))
		return find_place(inst, txn, ctr);
	if (!IS(MOVES_AT_SYNC) && !rp_ids_empty(info.cpus) &&
	    rp_ids_subset(info.cpus, online(inst)))
		return 0;
	return place(inst, txn, ctr, IS(MOVES_AT_SYNC) ? process_wide++ : 0);
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	rp_ctr ctrs[256];
	uint32_t n = inst->cache->list(inst->host->ctx, RP_ORDER_SYNC, ctrs, 256);
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < n; i++)
		r = sync_one(inst, txn, ctrs[i]);
	return r;
}

static int32_t event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	return ev->type == RP_EVENT_TOPOLOGY ? sync_all(inst, txn) : 0;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	if (!IS(KEEPS_DROPPED) && inst->n_allocated)
		inst->n_allocated--;
	return 0;
}

static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	*ret_plan = calloc(1, sizeof **ret_plan);
	if (!*ret_plan)
		return -RP_ENOMEM;
	return 0;
}

static void drop(struct rp_instance *inst, struct rp_plan *plan)
{
	if (!IS(LEAKS_CONFIGURATION))
		free(plan);
}

static void commit(struct rp_instance *inst, struct rp_plan *plan)
{
	free(inst->plan);
	inst->plan = plan;
}

static const struct rp_policy policy = {
	.size = sizeof policy,
	.prepare = prepare,
	.commit = commit,
	.abort = drop,
	.sync = sync_all,
	.allocate = allocate,
	.update = update,
	.release = release,
	.event = event,
	.rolled_back = rolled_back,
	.unmanaged = MANAGES ? unmanaged : NULL,
};

static int32_t create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	inst->host = host;
	inst->cache = host->service(host->ctx, RP_HOST_CACHE_1);
	inst->topology = host->service(host->ctx, RP_HOST_TOPOLOGY_1);
	inst->explain = host->service(host->ctx, RP_HOST_EXPLAIN_1);
	if (!inst->cache || !inst->topology) {
		free(inst);
		return host->fail(host->ctx, -RP_ENOTSUP, "the host lacks services");
	}
	if (IS(LEAKS_MEMORY) && !malloc(100))
		inst->broken = 1;
	if (IS(LEAKS_DESCRIPTOR) && open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
		inst->broken = 1;
	if (IS(READS_BEYOND) && host->size > sizeof *host) {
		int (*unheard_of)(void);
		memcpy(&unheard_of, host + 1, sizeof unheard_of);
		inst->broken = unheard_of();
	}
	*ret_inst = inst;
	return 0;
}

static void destroy(struct rp_instance *inst)
{
	free(inst->plan);
	free(inst);
}

static const void *service(struct rp_instance *inst, const char *id)
{
	if (IS(ANSWERS_TO_ALL) && strncmp(id, "nri-rp.policy/", 14) == 0)
		return &policy;
	return inst && strcmp(id, RP_POLICY_1) == 0 ? &policy : NULL;
}

RP_MODULE_DEFINE(NAME_OF(CONDUCT_CASE), "1.0", RP_KIND_POLICY, .summary = "A test",
		 .licence = "Apache-2.0", .create = create, .destroy = destroy, .service = service);
