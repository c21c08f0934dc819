/* SPDX-License-Identifier: Apache-2.0 */
/* Shared fixture for the tests of topology-aware: its module on a topology, and containers that
 * it places or refuses. */
#ifndef TEST_UNIT_T_TA_H
#define TEST_UNIT_T_TA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fake_host.h"

#define UNUSED __attribute__((unused))

extern const struct rp_module rp_module_1;

/* Two sockets of two nodes of two cores of two threads: node n has CPUs 4n … 4n+3, and 2 GiB. */
UNUSED static const struct fake_machine small = {
	.packages = 2, .nodes = 2, .cores = 2, .threads = 2};

/* The policy on a host that was made for it. */
UNUSED static struct fake_host *start_on(struct fake_host *f, const char *config)
{
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	if (fake_configure(f, config))
		fail_msg("configuration refused: %s", fake_error(f));
	return f;
}

UNUSED static struct fake_host *start(const struct fake_machine *m, const char *config)
{
	return start_on(fake_host_new(m), config);
}

UNUSED static rp_ctr add(struct fake_host *f, const struct fake_ctr *desc)
{
	rp_ctr c = fake_ctr(f, desc);
	if (fake_allocate(f, c))
		fail_msg("%s (%s) refused: %s", desc->name ? desc->name : "",
			 desc->annotations ? desc->annotations : "", fake_error(f));
	return c;
}

UNUSED static rp_ctr guaranteed(struct fake_host *f, const char *name, int64_t mcpu,
				const char *annotations)
{
	return add(f, &(struct fake_ctr){.name = name,
					 .qos = RP_QOS_GUARANTEED,
					 .cpu_request = mcpu,
					 .mem_request = 1 << 20,
					 .mem_limit = 1 << 20,
					 .annotations = annotations});
}

/* Checks that the container is refused and that the pools are unchanged. */
UNUSED static void assert_refused(struct fake_host *f, const struct fake_ctr *desc, const char *why)
{
	uint32_t n = fake_n_ctrs(f);
	char *zones = strdup(fake_zones(f));
	rp_ctr c = fake_ctr(f, desc);
	if (!fake_allocate(f, c))
		fail_msg("%s is taken", desc->annotations ? desc->annotations : desc->name);
	if (!strstr(fake_error(f), why))
		fail_msg("\"%s\" is not in \"%s\"", why, fake_error(f));
	assert_int_equal(fake_n_ctrs(f), n);
	assert_string_equal(fake_zones(f), zones);
	free(zones);
}

#endif
