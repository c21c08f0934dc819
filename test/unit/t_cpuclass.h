/* SPDX-License-Identifier: Apache-2.0 */
/* The host of CPU classes: online CPUs, a worker that runs on request, a timer, and logged
 * messages. Each test defines the content of the files by read_file() and write_file(). */
#ifndef TEST_UNIT_T_CPUCLASS_H
#define TEST_UNIT_T_CPUCLASS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rpd/host/service/services.h"
#include "modules/lib/private/cpuclass.h"

#define JOBS_MAX 8u
#define COOKIE 7u

static struct around {
	struct {
		int32_t (*run)(void *arg);
		void (*done)(void *arg, int32_t result);
		void *arg;
	} jobs[JOBS_MAX];
	unsigned n_jobs, n_warnings;
	char warning[512];
	uint64_t armed_ms; /* the timer; 0: not */
	struct rp_idset online;
} around;

static int32_t read_file(void *ctx, const char *path, char *buf, uint32_t cap);
static int32_t write_file(void *ctx, const char *path, const char *text);

static int32_t submit(void *ctx, int32_t (*run)(void *arg), void (*done)(void *arg, int32_t result),
		      void *arg)
{
	assert_true(around.n_jobs < JOBS_MAX);
	around.jobs[around.n_jobs].run = run;
	around.jobs[around.n_jobs].done = done;
	around.jobs[around.n_jobs++].arg = arg;
	return 0;
}

static void work_off(void)
{
	for (unsigned i = 0; i < around.n_jobs; i++)
		around.jobs[i].done(around.jobs[i].arg, around.jobs[i].run(around.jobs[i].arg));
	around.n_jobs = 0;
}

static int32_t arm(void *ctx, uint64_t cookie, uint64_t delay_ms)
{
	assert_int_equal(cookie, COOKIE);
	around.armed_ms = delay_ms;
	return 0;
}

static int32_t get_set(void *ctx, uint32_t which, struct rp_ids *ret)
{
	*ret = rp_ids_of(&around.online);
	return 0;
}

static int32_t get_cpu(void *ctx, uint32_t cpu, struct rp_cpu_info *ret)
{
	return 0;
}

static void keep_log(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	around.n_warnings += level == RP_LOG_WARNING;
	(void)snprintf(around.warning, sizeof around.warning, "%s", text);
}

static const struct rp_host_work work = {
	.size = sizeof work, .submit = submit, .read_file = read_file, .write_file = write_file};
static const struct rp_host_timer timer = {.size = sizeof timer, .arm = arm};
static const struct rp_host_topology topology = {
	.size = sizeof topology, .set = get_set, .cpu = get_cpu};
static const struct rp_host logs = {.size = sizeof logs, .log = keep_log};

/* The classes of a module, which is the instance, on this host. */
static struct cpuclass *classes_of(struct instance *instance)
{
	const struct modhost h = {.host = &logs,
				  .ctx = instance,
				  .topology = &topology,
				  .timer = &timer,
				  .work = &work,
				  .settings = &host_settings_service};
	struct cpuclass *c = cpuclass_new(&h);
	assert_non_null(c);
	cpuclass_retry(c, COOKIE, NULL, NULL);
	return c;
}

#endif
