/* SPDX-License-Identifier: Apache-2.0 */
/* Shared fixture for the tests of policies with Speed Select. */
#ifndef TEST_UNIT_T_PUNITS_H
#define TEST_UNIT_T_PUNITS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fake_host.h"

#define ALL (RP_SST_CP | RP_SST_TF)

extern const struct rp_module rp_module_1;

/* Starts the policy on a topology with these punits; n 0: without any. */
static inline struct fake_host *begin_on(const struct fake_machine *m,
					 const struct fake_punit *punits, uint32_t n,
					 const char *config)
{
	struct fake_host *f = fake_host_new(m);
	if (n)
		fake_speedselect(f, punits, n);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	if (fake_configure(f, config))
		fail_msg("%s", fake_error(f));
	return f;
}

static inline void within(struct rp_ids has, uint32_t n, const char *cpus, int line)
{
	char text[RP_IDSET_TEXT_MAX];
	struct rp_idset set;
	assert_int_equal(rp_idset_parse(&set, cpus, RP_CPUS_MAX), 0);
	(void)rp_ids_format(has, text, sizeof text);
	if (rp_ids_count(has) != n || !rp_ids_subset(has, rp_ids_of(&set)))
		fail_msg("line %d: %s is not %u CPUs out of %s", line, text, n, cpus);
}

struct told {
	char text[512];
};

static inline void tell_own(void *ctx, const char *pattern)
{
	struct told *t = ctx;
	size_t len = strlen(t->text);
	(void)snprintf(t->text + len, sizeof t->text - len, "own %s\n", pattern);
}

static inline void tell_resource(void *ctx, const char *name, int64_t amount)
{
	struct told *t = ctx;
	size_t len = strlen(t->text);
	(void)snprintf(t->text + len, sizeof t->text - len, "%s %lld\n", name, (long long)amount);
}

/* Returns the extended resources, a line each; valid until the next call. */
static inline const char *extended(struct fake_host *f)
{
	static struct told told;
	const struct rp_extended_sink sink = {
		.size = sizeof sink, .ctx = &told, .own = tell_own, .resource = tell_resource};
	const struct rp_extended *x = fake_module_service(f, RP_EXTENDED_1);
	told.text[0] = '\0';
	assert_int_equal(x->extended(fake_instance(f), &sink), 0);
	return told.text;
}

#endif
