/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of a handful of interrupts and eight CPUs, with a worker that runs when it is told
 * to. */
#ifndef TEST_UNIT_T_IRQ_H
#define TEST_UNIT_T_IRQ_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modules/lib/private/irq.h"

#define N_CPUS 8u
#define ALL_CPUS 0xffu
#define N_IRQS 12u
#define FIRST_IRQ 20u
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct line {
	uint8_t on; /* CPUs */
	int refuses; /* -errno of a write; 0: takes it */
	uint8_t takes; /* mask applied to each write; 0: accepts all bits */
	bool unreadable, garbled;
	unsigned n_writes;
};

static struct kernel {
	struct line irq[N_IRQS];
	const char *table; /* NULL: made from the interrupts */
	int table_error;
	int32_t (*run)(void *arg);
	void (*done)(void *arg, int32_t result);
	void *arg;
	int submit_error;
	unsigned n_jobs, n_logged, n_errors;
	char logged[512];
} kernel;

static const char *const devices[N_IRQS] = {"eth0-rx-0", "eth0-rx-1", "eth0-tx-0", "nvme0q1",
					    "nvme0q2",	 "nvme0q3",   "ahci",	   "usb1",
					    "eth1",	 "mlx5-0",    "mlx5-1",	   "timer"};

static inline struct rp_ids ids_of(uint8_t bits, struct rp_idset *set)
{
	rp_idset_clear(set);
	for (uint32_t cpu = 0; cpu < N_CPUS; cpu++)
		if (bits >> cpu & 1)
			rp_idset_add(set, cpu);
	return rp_ids_of(set);
}

static inline uint8_t bits_of(const char *list)
{
	struct rp_idset set;
	uint8_t bits = 0;
	assert_int_equal(rp_idset_parse(&set, list, N_CPUS), 0);
	RP_IDS_EACH (cpu, rp_ids_of(&set))
		bits |= (uint8_t)(1u << cpu);
	return bits;
}

static inline const char *text_of(uint8_t bits, char *buf)
{
	struct rp_idset set;
	(void)rp_ids_format(ids_of(bits, &set), buf, RP_IDSET_TEXT_MAX);
	return buf;
}

static inline struct line *line_of(const char *path)
{
	unsigned number;
	char rest[32];
	if (sscanf(path, "/proc/irq/%u/%31s", &number, rest) != 2 ||
	    strcmp(rest, "smp_affinity_list") != 0 || number < FIRST_IRQ ||
	    number >= FIRST_IRQ + N_IRQS)
		return NULL;
	return &kernel.irq[number - FIRST_IRQ];
}

static inline int32_t give(char *buf, uint32_t cap, const char *text)
{
	(void)snprintf(buf, cap, "%s", text);
	return (int32_t)strlen(buf);
}

static inline int32_t give_table(char *buf, uint32_t cap)
{
	char text[4096];
	size_t n = 0;
	if (kernel.table_error)
		return kernel.table_error;
	if (kernel.table)
		return give(buf, cap, kernel.table);
	n += (size_t)sprintf(text + n, "     CPU0 CPU1 CPU2 CPU3 CPU4 CPU5 CPU6 CPU7\n");
	for (unsigned i = 0; i < N_IRQS; i++)
		n += (size_t)sprintf(text + n, " %u: 1 0 0 4 0 0 0 12 PCI-MSI %u-edge %s\n",
				     FIRST_IRQ + i, 1000 + i, devices[i]);
	(void)sprintf(text + n, "NMI: 0 0 0 0 0 0 0 0 Non-maskable interrupts\nERR: 0\n");
	return give(buf, cap, text);
}

static inline int32_t read_file(void *ctx, const char *path, char *buf, uint32_t cap)
{
	char text[RP_IDSET_TEXT_MAX];
	if (strcmp(path, "/proc/interrupts") == 0)
		return give_table(buf, cap);
	const struct line *line = line_of(path);
	assert_non_null(line);
	if (line->unreadable)
		return -ENOENT;
	return give(buf, cap, line->garbled ? "all of them" : text_of(line->on, text));
}

static inline int32_t write_file(void *ctx, const char *path, const char *text)
{
	struct line *line = line_of(path);
	assert_non_null(line);
	line->n_writes++;
	if (line->refuses)
		return line->refuses;
	uint8_t bits = bits_of(text);
	assert_true(bits);
	line->on = line->takes ? bits & line->takes : bits;
	return 0;
}

static inline int32_t submit(void *ctx, int32_t (*run)(void *arg),
			     void (*done)(void *arg, int32_t result), void *arg)
{
	if (kernel.submit_error)
		return kernel.submit_error;
	assert_null(kernel.run);
	kernel.run = run;
	kernel.done = done;
	kernel.arg = arg;
	kernel.n_jobs++;
	return 0;
}

/* Runs the submitted job, if there is any. */
static inline void work_off(void)
{
	int32_t (*run)(void *arg) = kernel.run;
	kernel.run = NULL;
	if (run)
		kernel.done(kernel.arg, run(kernel.arg));
}

static inline void keep_log(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	kernel.n_errors += level == RP_LOG_ERROR; /* out of memory */
	if (level == RP_LOG_ERROR)
		return;
	assert_int_equal(level, RP_LOG_WARNING);
	kernel.n_logged++;
	(void)snprintf(kernel.logged, sizeof kernel.logged, "%s", text);
}

static const struct rp_host_work work_service = {.size = sizeof work_service,
						 .submit = submit,
						 .read_file = read_file,
						 .write_file = write_file};
static const struct rp_host test_host = {.size = sizeof test_host, .log = keep_log};
static const struct modhost host = {.host = &test_host, .work = &work_service};

static inline int start_kernel(void **state)
{
	kernel = (struct kernel){.n_jobs = 0};
	for (unsigned i = 0; i < N_IRQS; i++)
		kernel.irq[i].on = ALL_CPUS;
	return 0;
}

#endif
