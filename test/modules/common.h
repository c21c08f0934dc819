/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that does nothing, for modules that differ from a good one in a single point. A file
 * defines TEST_ALLOCATE, a statement list that sees `inst`, `txn` and `ctr`, before it includes
 * this one, and ends with its module's definition.
 */
#ifndef TEST_MODULES_COMMON_H
#define TEST_MODULES_COMMON_H

#include <stdlib.h>

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/policy.h>

#ifndef TEST_ALLOCATE
#define TEST_ALLOCATE
#endif
#ifndef TEST_SCHEMA
#define TEST_SCHEMA NULL
#endif

struct rp_instance {
	const struct rp_host *host;
	const struct rp_host_cache *cache;
};

struct rp_plan {
	int unused;
};

static struct rp_plan test_plan;

static int32_t test_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	*ret_plan = &test_plan;
	return 0;
}

static void test_commit(struct rp_instance *inst, struct rp_plan *plan)
{
}

static int32_t test_sync(struct rp_instance *inst, rp_txn txn)
{
	return 0;
}

static int32_t test_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	TEST_ALLOCATE;
	return 0;
}

static int32_t test_nothing(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return 0;
}

#ifndef TEST_POLICY_SIZE
#define TEST_POLICY_SIZE sizeof(struct rp_policy)
#endif

static const struct rp_policy test_policy = {
	.size = TEST_POLICY_SIZE,
	.prepare = test_prepare,
	.commit = test_commit,
	.abort = test_commit,
	.sync = test_sync,
	.allocate = test_allocate,
	.update = test_nothing,
	.release = test_nothing,
};

static inline int32_t test_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return -RP_ENOMEM;
	inst->host = host;
	inst->cache = host->service(host->ctx, RP_HOST_CACHE_1);
	*ret_inst = inst;
	return 0;
}

static inline void test_destroy(struct rp_instance *inst)
{
	free(inst);
}

static inline int test_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static inline const void *test_service(struct rp_instance *inst, const char *id)
{
	if (test_same(id, RP_SCHEMA_1))
		return TEST_SCHEMA;
	return inst && test_same(id, RP_POLICY_1) ? &test_policy : NULL;
}

#define TEST_FUNCTIONS .create = test_create, .destroy = test_destroy, .service = test_service

/* For modules whose note or struct RP_MODULE_DEFINE would not make. */
#define TEST_NOTE(major_, minor_, min_host_, kinds_, name_)                                        \
	__attribute__((section(".note.nri-rp"), used,                                              \
		       aligned(4))) static const struct rp_elf_note test_note = {                  \
		sizeof RP_NOTE_OWNER,                                                              \
		sizeof(struct rp_note),                                                            \
		RP_NOTE_TYPE,                                                                      \
		RP_NOTE_OWNER,                                                                     \
		{major_, minor_, min_host_, kinds_, name_, "1.0"}}
#define TEST_EXPORT __attribute__((visibility("default")))

#endif
