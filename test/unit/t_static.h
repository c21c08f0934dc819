/* SPDX-License-Identifier: Apache-2.0 */
/* Shared fixture for the tests of the static policy: topologies, and a policy under test on a
 * fake host. No test file uses all of it. */
#ifndef TEST_UNIT_T_STATIC_H
#define TEST_UNIT_T_STATIC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
static const struct fake_machine n4c16_isol01 = {
	.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .isolated = "0-1"};
static const struct fake_machine server_2s = {
	.packages = 2, .nodes = 2, .cores = 16, .threads = 2, .siblings = true};
static const struct fake_machine laptop = {.cores = 4, .threads = 2, .e_cores = 8};
static const struct fake_machine epyc = {
	.cores = 64, .threads = 2, .siblings = true, .l3_cores = 8};

#define RESERVED_0 "{reservedResources: {cpu: \"cpuset:0\"}}"

static inline struct fake_host *start(const struct fake_machine *m, const char *config)
{
	struct fake_host *f = fake_host_new(m);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	if (config && fake_configure(f, config))
		fail_msg("%s: %s", config, fake_error(f));
	return f;
}

static inline rp_ctr add(struct fake_host *f, const char *name, uint32_t qos, int64_t cpu_request)
{
	return fake_ctr(f,
			&(struct fake_ctr){.name = name, .qos = qos, .cpu_request = cpu_request});
}

static inline rp_ctr create(struct fake_host *f, const char *name, uint32_t qos,
			    int64_t cpu_request)
{
	rp_ctr c = add(f, name, qos, cpu_request);
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

static inline rp_ctr guaranteed(struct fake_host *f, const char *name, int64_t cpus)
{
	return create(f, name, RP_QOS_GUARANTEED, cpus * 1000);
}

static inline rp_ctr best_effort(struct fake_host *f, const char *name)
{
	return create(f, name, RP_QOS_BEST_EFFORT, 0);
}

static inline void refused(struct fake_host *f, int64_t cpus, const char *error)
{
	rp_ctr c = add(f, "refused", RP_QOS_GUARANTEED, cpus * 1000);
	assert_int_equal(fake_allocate(f, c), -RP_ENOSPC);
	assert_string_equal(fake_error(f), error);
}

static inline int32_t resize(struct fake_host *f, rp_ctr c, int64_t mcpu)
{
	fake_request(f, c, mcpu, mcpu);
	return fake_update(f, c);
}

#define RESERVED_2 "reservedResources: {cpu: \"cpuset:2\"}"

#define OPTIONS(text) "{reservedResources: {cpu: 1}, cpuManagerPolicyOptions: {" text "}}"

#endif
