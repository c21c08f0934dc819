/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/interrupts and the affinities in /proc/irq, as a kernel of any make may have them: the
 * table, a zero byte, what each file says. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/irq.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct kernel {
	const char *table, *affinity;
	uint32_t n_writes;
};

static int32_t give(char *buf, uint32_t cap, const char *text)
{
	size_t n = strnlen(text, cap - 1);
	memcpy(buf, text, n);
	buf[n] = '\0';
	return (int32_t)n;
}

static int32_t read_file(void *ctx, const char *path, char *buf, uint32_t cap)
{
	const struct kernel *k = ctx;
	return give(buf, cap, strcmp(path, "/proc/interrupts") == 0 ? k->table : k->affinity);
}

/* Checks that each written text is a list of CPUs. */
static int32_t write_file(void *ctx, const char *path, const char *text)
{
	struct kernel *k = ctx;
	struct rp_idset set;
	assert(strncmp(path, "/proc/irq/", 10) == 0);
	assert(rp_idset_parse(&set, text, RP_CPUS_MAX) == 0);
	k->n_writes++;
	return k->n_writes % 7 == 0 ? -EIO : 0;
}

static int32_t submit(void *ctx, int32_t (*run)(void *arg), void (*done)(void *arg, int32_t result),
		      void *arg)
{
	done(arg, run(arg));
	return 0;
}

static void keep_quiet(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	assert(*text);
}

static int32_t look(void *arg, uint32_t number, const char *description)
{
	uint32_t *n = arg;
	assert(number < 65536 && strlen(description) < IRQ_TEXT_MAX);
	++*n;
	return 0;
}

static struct irq_rules *rules_for(uint32_t first, uint32_t last)
{
	struct rp_idset allowed;
	rp_idset_clear(&allowed);
	rp_idset_add_range(&allowed, first, last);
	struct irq_rules *r = irq_rules_new(true, rp_ids_of(&allowed));
	assert(r);
	rp_idset_add_range(&r->isolate, 1, 2);
	return r;
}

static void move_all(const struct modhost *h)
{
	const char *pattern = "*e*";
	struct irq *q = NULL;
	struct irq_rules *r = rules_for(0, 7);
	irq_rules_add(r, IRQ_CLAIM, &(struct texts){&pattern, 1}, rp_ids_of(&r->isolate));
	irq_commit(&q, h, r);
	irq_commit(&q, h, rules_for(8, 9));
	irq_commit(&q, h, irq_rules_new(false, rp_ids_none()));
	irq_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rp_host_work work = {.size = sizeof work,
						 .submit = submit,
						 .read_file = read_file,
						 .write_file = write_file};
	static const struct rp_host host = {.size = sizeof host, .log = keep_quiet};
	char *table = malloc(size + 1);
	memcpy(table, data, size);
	table[size] = '\0';
	size_t n = strlen(table);
	struct kernel k = {table, n < size ? table + n + 1 : "0-7\n", 0};
	const struct modhost h = {.host = &host, .ctx = &k, .work = &work};
	uint32_t n_lines = 0;
	assert(irq_each(&h, look, &n_lines) == 0);
	move_all(&h);
	assert(k.n_writes <= 4 * n_lines);
	free(table);
	return 0;
}
