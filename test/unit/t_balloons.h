/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the tests of the balloons policy: machines, and a policy under test on a fake host.
 * Each test uses a part of them. */
#ifndef TEST_UNIT_T_BALLOONS_H
#define TEST_UNIT_T_BALLOONS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};

#define BALLOON "balloon.balloons.resource-policy.nri.io="

static inline struct fake_host *start(const struct fake_machine *m, const char *config)
{
	struct fake_host *f = fake_host_new(m);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	if (config && fake_configure(f, config))
		fail_msg("%s: %s", config, fake_error(f));
	return f;
}

/* Adds a Burstable container of a type, in a separate pod. */
static inline rp_ctr add(struct fake_host *f, const char *name, const char *type, int64_t mcpu)
{
	char annotations[200] = "";
	if (type)
		(void)snprintf(annotations, sizeof annotations, BALLOON "%s", type);
	return fake_ctr(f, &(struct fake_ctr){.name = name,
					      .qos = mcpu ? RP_QOS_BURSTABLE : RP_QOS_BEST_EFFORT,
					      .cpu_request = mcpu,
					      .annotations = annotations});
}

static inline rp_ctr create(struct fake_host *f, const char *name, const char *type, int64_t mcpu)
{
	rp_ctr c = add(f, name, type, mcpu);
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

static inline void refuse(struct fake_host *f, const char *name, const char *type, int64_t mcpu,
			  const char *why)
{
	assert_true(fake_allocate(f, add(f, name, type, mcpu)) < 0);
	if (!strstr(fake_error(f), why))
		fail_msg("%s: \"%s\" is not about \"%s\"", name, fake_error(f), why);
}

static inline void expect(struct fake_host *f, rp_ctr c, const char *cpus)
{
	assert_string_equal(fake_cpus(f, c), cpus);
}

#endif
