/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what the topology-aware policy reads of users and of the store: annotations and its
 * records of containers. The first byte says which. After each accepted input exclusive CPUs belong
 * to one container, and when the container is removed the state is the initial one.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"
#include "test/unit/fake_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts if a call fails that must succeed. */
#define MUST(f, call)                                                                              \
	do {                                                                                       \
		if (call) {                                                                        \
			(void)fprintf(stderr, "%s: %s\n", #call, fake_error(f));                   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#define TEXT_MAX 1024u
#define RUNS_A_HOST 200u /* containers and texts stay with the host */

extern const struct rp_module rp_module_1;

struct world {
	struct fake_host *f;
	rp_ctr owner, other; /* owner of two exclusive CPUs, container with shared CPUs */
	char *zones; /* with these two alone */
};

static rp_ctr new_container(struct fake_host *f, const char *name, int64_t mcpu,
			    const char *annotations)
{
	/* A pod is known by its name, and keeps what its first container said of it. */
	static unsigned n_pods;
	char pod[32];
	(void)snprintf(pod, sizeof pod, "pod%u", n_pods++);
	return fake_ctr(f, &(struct fake_ctr){.name = name,
					      .pod_name = pod,
					      .qos = RP_QOS_GUARANTEED,
					      .cpu_request = mcpu,
					      .mem_request = 1 << 20,
					      .mem_limit = 1 << 20,
					      .annotations = annotations,
					      .labels = "app=db",
					      .devices = "/dev/sda:b8:0"});
}

static struct world *world(void)
{
	static const struct fake_machine machine = {
		.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
	static struct world w;
	static uint32_t n_runs;
	if (w.f && ++n_runs % RUNS_A_HOST)
		return &w;
	fake_host_free(w.f);
	free(w.zones);
	w.f = fake_host_new(&machine);
	fake_device(w.f, "b8:0", "/sys/devices/sda", "4-7", "1");
	MUST(w.f, fake_policy_open(w.f, &rp_module_1));
	MUST(w.f, fake_configure(w.f, "{reservedResources: {cpu: 750m}, "
				      "schedulingClasses: [{name: s, "
				      "policy: batch}], control: {cpu: {classes: {c: {}}}}}"));
	w.owner = new_container(w.f, "owner", 2000, NULL);
	w.other = new_container(w.f, "other", 500, NULL);
	MUST(w.f, fake_allocate(w.f, w.owner));
	MUST(w.f, fake_allocate(w.f, w.other));
	w.zones = strdup(fake_zones(w.f));
	return &w;
}

static void check_disjoint(const struct world *w, rp_ctr c)
{
	const rp_ctr all[] = {w->owner, w->other, c};
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 3; k++)
			assert(i == k || !rp_ids_overlap(fake_exclusive_ids(w->f, all[i]),
							 fake_cpu_ids(w->f, all[k])));
}

/* ---- annotations ----------------------------------------------------------------------------- */

static const char *const keys[] = {
	"prefer-shared-cpus" TA_DOMAIN,
	"prefer-isolated-cpus" TA_DOMAIN,
	"require-isolated-cpus" TA_DOMAIN,
	"prefer-reserved-cpus" TA_DOMAIN,
	"prefer-cpu-priority" TA_DOMAIN,
	"hide-hyperthreads" TA_DOMAIN,
	"unlimited-burstable" TA_DOMAIN,
	"memory-type" TA_DOMAIN,
	"strict.topologyhints" TA_DOMAIN,
	"pick-resources-by-hints" TA_DOMAIN,
	"cold-start" TA_DOMAIN,
	"topologyhints" TA_DOMAIN,
	"allow.topologyhints" TA_DOMAIN,
	"deny.topologyhints" TA_DOMAIN,
	"test.topologyhints" TA_DOMAIN,
	"irq-affinity" TA_DOMAIN,
	"scheduling-class" TA_DOMAIN,
	"cpu-class" TA_DOMAIN,
	"resource-policy.nri.io/affinity",
	"resource-policy.nri.io/anti-affinity",
};
#define N_KEYS (sizeof keys / sizeof keys[0])

static void try_annotation(const uint8_t *data, size_t size)
{
	char annotations[TEXT_MAX + 128];
	struct world *w = world();
	if (size < 2)
		return;
	size_t n = size - 2 < TEXT_MAX ? size - 2 : TEXT_MAX;
	int len = snprintf(annotations, sizeof annotations, "%s=", keys[data[0] % N_KEYS]);
	memcpy(annotations + len, data + 2, n);
	annotations[(size_t)len + n] = '\0';
	rp_ctr c = new_container(w->f, "x", 250 * (1 + data[1] % 16), annotations);
	if (fake_allocate(w->f, c)) {
		assert(*fake_error(w->f));
	} else {
		check_disjoint(w, c);
		MUST(w->f, fake_release(w->f, c));
	}
	assert(strcmp(fake_zones(w->f), w->zones) == 0);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct record_bytes kept;
static rp_ctr kept_of;
static const struct rp_host_cache *real;

static int32_t get_kept(void *ctx, rp_ctr ctr, const void **ret, uint32_t *ret_size)
{
	if (ctr != kept_of)
		return real->get_private(ctx, ctr, ret, ret_size);
	if (!kept.size)
		return -RP_ENOENT;
	*ret = kept.data;
	*ret_size = kept.size;
	return 0;
}

/* Bytes as they are, or a good record with some of them changed: the rest is pairs of a place and a
 * value. */
static void make_record(struct rp_instance *inst, rp_ctr c, const uint8_t *data, size_t size)
{
	kept.size = 0;
	if (!size)
		return;
	if (data[0] % 2) {
		kept.size = (uint32_t)(size - 1 < sizeof kept.data ? size - 1 : sizeof kept.data);
		memcpy(kept.data, data + 1, kept.size);
		return;
	}
	const struct grant *g = ledger_find(inst, c);
	if (!g)
		abort();
	record_make(inst, g, &kept);
	for (size_t i = 1; i + 1 < size; i += 2)
		kept.data[data[i] % kept.size] = data[i + 1];
}

static void try_record(const uint8_t *data, size_t size)
{
	struct world *w = world();
	struct rp_instance *inst = fake_instance(w->f);
	struct rp_host_cache cover = *inst->h.cache;
	real = inst->h.cache;
	rp_ctr c = new_container(w->f, "x", 2000,
				 "topologyhints" TA_DOMAIN "=true;cold-start" TA_DOMAIN
				 "={duration: 1s};memory-type" TA_DOMAIN "=dram,pmem");
	MUST(w->f, fake_allocate(w->f, c));
	kept_of = c;
	make_record(inst, c, data, size);
	cover.get_private = get_kept;
	inst->h.cache = &cover;
	MUST(w->f, fake_sync(w->f));
	inst->h.cache = real;
	assert(*fake_cpus(w->f, c));
	check_disjoint(w, c);
	MUST(w->f, fake_release(w->f, c));
	MUST(w->f, fake_sync(w->f));
	check_disjoint(w, w->other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const uint8_t *data, size_t size) = {try_annotation,
									  try_record};
	if (size)
		tries[data[0] % 2](data + 1, size - 1);
	return 0;
}
