/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupt steering by the policy's wishes: the lines of the table, the result for each
 * interrupt, refusals of the kernel, and the restoration. */
#include "test/unit/t_irq.h"
#include "test/unit/t_oom.h"

/* ---- the table ------------------------------------------------------------------------------- */

static void test_lines(void **state)
{
	static const struct {
		const char *line;
		uint32_t n_cpus;
		int32_t number; /* -1: none of ours */
		const char *description;
	} rows[] = {
		{" 24:  1  2   PCI-MSI 524288-edge   eth0-rx-0", 2, 24,
		 "PCI-MSI 524288-edge eth0-rx-0"},
		{"0: 5 IO-APIC 2-edge timer", 1, 0, "IO-APIC 2-edge timer"},
		{"65535: 0 x", 1, 65535, "x"},
		{"7: 0", 1, 7, ""},
		{"7: 0 0  ", 2, 7, ""},
		{"7:", 0, 7, ""},
		{"7: chip", 0, 7, "chip"},
		{"65536: 0 x", 1, -1, NULL},
		{"1000000: 0 x", 1, -1, NULL},
		{"NMI: 0 0 Non-maskable interrupts", 2, -1, NULL},
		{"ERR: 0", 2, -1, NULL},
		{"7 0 0 x", 2, -1, NULL},
		{"7: 0", 2, -1, NULL},
		{"7: 0 x", 2, -1, NULL},
		{"7: -1 x", 1, -1, NULL},
		{": 0 x", 1, -1, NULL},
		{"", 1, -1, NULL},
		{"   ", 1, -1, NULL},
	};
	char description[IRQ_TEXT_MAX];
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint32_t number = 99;
		int32_t r = irq_parse_line(rows[i].line, strlen(rows[i].line), rows[i].n_cpus,
					   &number, description);
		assert_int_equal(r, rows[i].number < 0 ? -RP_ENOENT : 0);
		if (r)
			continue;
		assert_int_equal(number, rows[i].number);
		assert_string_equal(description, rows[i].description);
	}
}

/* Checks that a description that is too long is cut after its last whole word. */
static void test_long_description(void **state)
{
	char line[600] = "5: 0", description[IRQ_TEXT_MAX];
	uint32_t number;
	for (unsigned i = 0; i < 60; i++)
		strcat(line, " word7890");
	assert_int_equal(irq_parse_line(line, strlen(line), 1, &number, description), 0);
	assert_int_equal((strlen(description) + 1) % 9, 0);
	assert_true(strlen(description) < IRQ_TEXT_MAX);
	assert_true(strlen(description) + 9 >= IRQ_TEXT_MAX);
	/* The parser does not read past the end of the line either. */
	assert_int_equal(irq_parse_line(line, 3, 1, &number, description), -RP_ENOENT);
}

static int32_t collect(void *arg, uint32_t number, const char *description)
{
	char *all = arg;
	(void)sprintf(all + strlen(all), "%u=%s;", number, description);
	return number == 77 ? 42 : 0;
}

static void test_each(void **state)
{
	char all[512] = "";
	kernel.table =
		"  CPU0 CPU1\n 1: 0 0 a b\nNMI: 0 0 c\n 2: 0 0\n 3: 0\n 77: 0 0 d\n 78: 0 0 e";
	assert_int_equal(irq_each(&host, collect, all), 42);
	assert_string_equal(all, "1=a b;2=;77=d;");
	kernel.table = "";
	all[0] = '\0';
	assert_int_equal(irq_each(&host, collect, all), 0);
	assert_string_equal(all, "");
	kernel.table_error = -EACCES;
	assert_int_equal(irq_each(&host, collect, all), -EACCES);
	kernel.table_error = -EFBIG; /* the table exceeds the limit, whatever room the caller has */
	assert_int_equal(irq_each(&host, collect, all), -RP_E2BIG);
	const struct modhost no_worker = {.host = &test_host};
	assert_int_equal(irq_each(&no_worker, collect, all), -RP_ENOTSUP);
}

/* ---- wishes ---------------------------------------------------------------------------------- */

/* The rules of a wish, from which each commit makes a copy. */
struct wish {
	struct {
		enum irq_kind kind;
		const char *pattern;
		uint8_t cpus;
	} rules[8];
	unsigned n;
	uint8_t sink, isolate, allowed;
};

static struct wish *wish_init(struct wish *w, uint8_t sink, uint8_t isolate, uint8_t allowed)
{
	*w = (struct wish){.sink = sink, .isolate = isolate, .allowed = allowed};
	return w;
}

static void add_rule(struct wish *w, enum irq_kind kind, const char *pattern, uint8_t cpus)
{
	w->rules[w->n].kind = kind;
	w->rules[w->n].pattern = pattern;
	w->rules[w->n++].cpus = cpus;
}

static struct irq_rules *rules_of(const struct wish *w)
{
	struct rp_idset set;
	struct irq_rules *r = irq_rules_new(true, ids_of(w->allowed, &set));
	if (!r)
		return NULL;
	(void)ids_of(w->sink, &r->sink);
	(void)ids_of(w->isolate, &r->isolate);
	for (unsigned i = 0; i < w->n; i++) {
		const char *pattern = w->rules[i].pattern;
		irq_rules_add(r, w->rules[i].kind, &(struct texts){&pattern, 1},
			      ids_of(w->rules[i].cpus, &set));
	}
	return r;
}

static void commit(struct irq **q, const struct wish *w)
{
	irq_commit(q, &host, rules_of(w));
	work_off();
}

static void release(struct irq **q)
{
	irq_commit(q, &host, irq_rules_new(false, rp_ids_none()));
	work_off();
}

static const char *const eth0 = "*eth0*", *const nvme = "*nvme*", *const number_21 = "21",
			 *const devices_all = "*PCI-MSI*", *const nothing = "*nothing*";

static void test_claims(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	add_rule(wish_init(&w, 0, 0x0c, 0xf0), IRQ_CLAIM, eth0, 0x03);
	add_rule(&w, IRQ_CLAIM, number_21, 0x10);
	commit(&q, &w);
	assert_int_equal(kernel.irq[0].on, 0x03);
	assert_int_equal(kernel.irq[1].on, 0x13); /* both claims are about it */
	assert_int_equal(kernel.irq[2].on, 0x03);
	assert_int_equal(kernel.irq[3].on, 0xf3); /* off the isolated ones */
	struct irq_stats stats;
	irq_stats(q, &stats);
	assert_int_equal(stats.writes, N_IRQS);
	assert_int_equal(stats.failures, 0);
	release(&q);
	for (unsigned i = 0; i < N_IRQS; i++)
		assert_int_equal(kernel.irq[i].on, ALL_CPUS);
	irq_free(q);
}

static void test_masks(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	add_rule(wish_init(&w, 0, 0, 0xff), IRQ_CLAIM, eth0, 0x0f);
	add_rule(&w, IRQ_MASK, eth0, 0x03);
	add_rule(&w, IRQ_MASK, nvme, 0x81);
	add_rule(&w, IRQ_STRICT_MASK, number_21, 0x0c);
	commit(&q, &w);
	assert_int_equal(kernel.irq[0].on, 0x0f); /* claimed CPUs are not masked … */
	assert_int_equal(kernel.irq[1].on, 0x03); /* … but by a strict mask */
	assert_int_equal(kernel.irq[3].on, 0x7e);
	assert_int_equal(kernel.irq[6].on, 0xff);
	release(&q);
	irq_free(q);
}

static void test_sink(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	kernel.irq[5].on = 0x80;
	commit(&q, wish_init(&w, 0x80, 0x0f, 0x7f));
	for (unsigned i = 0; i < N_IRQS; i++)
		assert_int_equal(kernel.irq[i].on, 0x80);
	assert_int_equal(kernel.irq[5].n_writes, 0); /* the interrupt was on this CPU already */
	release(&q);
	assert_int_equal(kernel.irq[4].on, ALL_CPUS);
	assert_int_equal(kernel.irq[5].on, 0x80);
	assert_int_equal(kernel.irq[5].n_writes, 0);
	irq_free(q);
}

static void test_controllable(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	add_rule(wish_init(&w, 0x01, 0, 0xff), IRQ_CONTROLLABLE, "31", 0);
	add_rule(&w, IRQ_CONTROLLABLE, "*nvme*", 0);
	commit(&q, &w);
	for (unsigned i = 0; i < N_IRQS; i++)
		assert_int_equal(kernel.irq[i].on, (i >= 3 && i <= 5) || i == 11 ? 0x01 : ALL_CPUS);
	/* An interrupt that may no longer be steered is restored; the others keep their
	 * affinity. */
	w.n = 1;
	commit(&q, &w);
	for (unsigned i = 0; i < N_IRQS; i++)
		assert_int_equal(kernel.irq[i].on, i == 11 ? 0x01 : ALL_CPUS);
	irq_free(q);
}

/* Checks that an equal wish submits no job. A first wish without rules does not either, and
 * neither does any wish without a worker. */
static void test_nothing_to_do(void **state)
{
	const struct modhost no_worker = {.host = &test_host};
	struct wish w, same;
	struct irq *q = NULL;
	irq_commit(&q, &no_worker, rules_of(wish_init(&w, 1, 0, 0xff)));
	assert_null(q);
	release(&q);
	assert_int_equal(kernel.n_jobs, 0);
	add_rule(wish_init(&w, 1, 0, 0xff), IRQ_CLAIM, nothing, 2);
	add_rule(&w, IRQ_STRICT_MASK, nvme, 4);
	add_rule(wish_init(&same, 1, 0, 0xff), IRQ_CLAIM, nothing, 2);
	add_rule(&same, IRQ_STRICT_MASK, nvme, 4);
	commit(&q, &w);
	commit(&q, &same);
	assert_int_equal(kernel.n_jobs, 1);
	same.rules[1].kind = IRQ_MASK;
	commit(&q, &same);
	same.rules[0].pattern = nvme;
	commit(&q, &same);
	same.n = 0;
	commit(&q, &same);
	same.sink = same.allowed;
	commit(&q, &same);
	assert_int_equal(kernel.n_jobs, 5);
	irq_free(q);
}

/* ---- a kernel with a will of its own --------------------------------------------------------- */

static void test_refusals(void **state)
{
	static const int final[] = {-EIO, -EPERM, -EACCES, -EROFS};
	struct wish w;
	struct irq_stats stats;
	struct irq *q = NULL;
	for (unsigned i = 0; i < COUNT(final); i++)
		kernel.irq[i].refuses = final[i];
	kernel.irq[4].refuses =
		-ENOSPC; /* no vector is left on these CPUs: another time, perhaps */
	kernel.irq[5].unreadable = true;
	kernel.irq[6].garbled = true;
	commit(&q, wish_init(&w, 0x01, 0, 0xff));
	commit(&q, wish_init(&w, 0x02, 0, 0xff));
	for (unsigned i = 0; i < N_IRQS; i++)
		assert_int_equal(kernel.irq[i].n_writes, i < 4 ? 1 : i == 5 || i == 6 ? 0 : 2);
	irq_stats(q, &stats);
	assert_int_equal(stats.failures, 6);
	assert_int_equal(stats.writes, 2 * (N_IRQS - 7));
	/* said once */
	assert_int_equal(kernel.n_logged, 1);
	assert_non_null(strstr(kernel.logged, "/proc/irq/20/smp_affinity_list: writing 0: "));
	kernel.irq[4].refuses = 0;
	commit(&q, wish_init(&w, 0x04, 0, 0xff));
	assert_int_equal(kernel.irq[4].on, 0x04);
	release(&q);
	assert_int_equal(kernel.irq[4].on, ALL_CPUS);
	irq_free(q);
}

/* Checks an interrupt for which the kernel stores a different affinity than the one written. */
static void test_read_back(void **state)
{
	struct wish w;
	struct irq_stats stats;
	struct irq *q = NULL;
	kernel.irq[2].takes = 0x01;
	commit(&q, wish_init(&w, 0x03, 0, 0xff));
	irq_stats(q, &stats);
	assert_int_equal(stats.failures, 1);
	assert_string_equal(kernel.logged, "/proc/irq/22/smp_affinity_list: the kernel changed the "
					   "value to 0 (further ones are not logged)");
	irq_free(q);
}

/* Checks that an affinity that could not be restored is tried again at the next removal of
 * rules. */
static void test_restore_again(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	commit(&q, wish_init(&w, 0x01, 0, 0xff));
	kernel.irq[1].refuses = -EINVAL;
	release(&q);
	assert_int_equal(kernel.irq[0].on, ALL_CPUS);
	assert_int_equal(kernel.irq[1].on, 0x01);
	kernel.irq[1].refuses = 0;
	commit(&q, &w);
	release(&q);
	assert_int_equal(kernel.irq[1].on, ALL_CPUS);
	irq_free(q);
}

/* ---- wishes for other CPUs than before ------------------------------------------------------- */

/* Checks that an affinity that this module wrote does not hold an interrupt on CPUs that are no
 * longer allowed. */
static void test_other_allowed(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	kernel.irq[3].on = 0x0f;
	commit(&q, wish_init(&w, 0, 0, 0x0f));
	assert_int_equal(kernel.irq[0].on, 0x0f);
	assert_int_equal(kernel.irq[3].n_writes, 0);
	commit(&q, wish_init(&w, 0, 0x10, 0xf0));
	assert_int_equal(kernel.irq[0].on, 0xef);
	assert_int_equal(kernel.irq[3].n_writes, 0); /* found on none of these */
	commit(&q, wish_init(&w, 0x40, 0, 0xf0));
	assert_int_equal(kernel.irq[0].on, 0x40);
	assert_int_equal(kernel.irq[3].on, 0x40);
	commit(&q, wish_init(&w, 0, 0, 0xf0));
	assert_int_equal(kernel.irq[0].on, 0xf0);
	assert_int_equal(kernel.irq[3].on, 0x0f); /* back to where it was found */
	/* An administrator moves the interrupt: the new affinity becomes the one to restore. */
	kernel.irq[3].on = 0x07;
	commit(&q, wish_init(&w, 0x40, 0, 0xf0));
	assert_int_equal(kernel.irq[3].on, 0x40);
	release(&q);
	assert_int_equal(kernel.irq[0].on, ALL_CPUS);
	assert_int_equal(kernel.irq[3].on, 0x07);
	irq_free(q);
}

/* Checks that an interrupt whose mask leaves no CPU is restored, as if its first wish had been
 * this one. */
static void test_no_place(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	add_rule(wish_init(&w, 0, 0, 0x0f), IRQ_STRICT_MASK, nvme, 0x03);
	commit(&q, &w);
	assert_int_equal(kernel.irq[3].on, 0x0c);
	add_rule(wish_init(&w, 0, 0, 0x0f), IRQ_STRICT_MASK, nvme, 0x0f);
	commit(&q, &w);
	assert_int_equal(kernel.irq[3].on, ALL_CPUS);
	assert_int_equal(kernel.irq[0].on, 0x0f);
	irq_free(q);
}

/* Checks that an affinity that another process wrote counts, whether or not the interrupt was
 * recorded before. */
static void test_moved_by_others(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	commit(&q, wish_init(&w, 0, 0, 0x0f));
	assert_int_equal(kernel.irq[0].on, 0x0f);
	kernel.irq[0].on = 0xc0; /* away from the allowed ones */
	kernel.irq[1].on = 0xc8;
	commit(&q, wish_init(&w, 0, 0, 0x1f));
	assert_int_equal(kernel.irq[0].on, 0xc0);
	assert_int_equal(kernel.irq[1].on, 0x1f);
	assert_int_equal(kernel.irq[2].on, 0x1f);
	commit(&q, wish_init(&w, 0, 0, 0x7f));
	assert_int_equal(kernel.irq[0].on, 0x7f); /* the interrupt is on an allowed CPU */
	/* to where it is to be: then it is ours as before */
	kernel.irq[0].on = 0x30;
	commit(&q, wish_init(&w, 0x30, 0, 0x7f));
	assert_int_equal(kernel.irq[0].on, 0x30);
	commit(&q, wish_init(&w, 0, 0, 0x0f));
	assert_int_equal(kernel.irq[0].on, 0x0f);
	release(&q);
	assert_int_equal(kernel.irq[0].on, ALL_CPUS);
	irq_free(q);
}

/* Checks that a difference between the written and the effective affinity is not treated as
 * another process's choice. */
static void test_kernel_is_nobody_else(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	kernel.irq[2].takes = 0x31;
	commit(&q, wish_init(&w, 0, 0, 0x0f));
	assert_int_equal(kernel.irq[2].on, 0x01);
	commit(&q, wish_init(&w, 0, 0, 0xf0));
	assert_int_equal(kernel.irq[2].on, 0x30);
	irq_free(q);
}

static void test_no_table(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	kernel.table_error = -EIO;
	commit(&q, wish_init(&w, 0x01, 0, 0xff));
	assert_int_equal(kernel.n_logged, 1);
	assert_non_null(strstr(kernel.logged, "/proc/interrupts: "));
	assert_int_equal(kernel.irq[0].on, ALL_CPUS);
	irq_free(q);
}

/* Checks that a job that the host refused is submitted again by the next wish, even an equal
 * one. */
static void test_no_job(void **state)
{
	struct wish w;
	struct irq *q = NULL;
	kernel.submit_error = -EBUSY;
	commit(&q, wish_init(&w, 0x01, 0, 0xff));
	assert_int_equal(kernel.irq[0].on, ALL_CPUS);
	kernel.submit_error = 0;
	commit(&q, &w);
	assert_int_equal(kernel.irq[0].on, 0x01);
	irq_free(q);
}

/* ---- memory that ends ------------------------------------------------------------------------ */

/* Checks that an interrupt whose affinity cannot be recorded is not moved. In the end all have
 * their old affinity. */
static int move_and_restore(void *arg)
{
	struct wish w;
	struct irq *q = NULL;
	unsigned n_moved = 0;
	add_rule(wish_init(&w, 0x80, 0, 0xff), IRQ_CLAIM, eth0, 0x03);
	add_rule(&w, IRQ_MASK, nvme, 0x0f);
	add_rule(&w, IRQ_CONTROLLABLE, devices_all, 0);
	commit(&q, &w);
	for (unsigned i = 0; i < N_IRQS; i++)
		n_moved += kernel.irq[i].on != ALL_CPUS;
	if (oom.for_good)
		oom.at = 0; /* memory is back for the way back */
	release(&q);
	release(&q); /* restores that could not be submitted are submitted again */
	for (unsigned i = 0; i < N_IRQS; i++)
		OOM_CHECK(kernel.irq[i].on == ALL_CPUS);
	irq_free(q);
	return n_moved == N_IRQS ? 0 : -ENOMEM;
}

static void test_no_memory(void **state)
{
	oom_each(move_and_restore, NULL);
}

/* Checks that rules without memory for the first one count as changed. */
static void test_no_memory_for_rules(void **state)
{
	struct irq *q = NULL;
	struct irq_rules *r = irq_rules_new(false, rp_ids_none());
	r->failed = true;
	irq_commit(&q, &host, r);
	assert_int_equal(kernel.n_errors, 1);
	irq_free(q);
}

/* ---- against a model ------------------------------------------------------------------------- */

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static const char *const patterns[] = {"*eth*", "*eth0*", "*nvme*",   "*mlx5*",
				       "21",	"31",	  "*nothing*"};

static bool about(const char *pattern, unsigned i)
{
	char digits[8];
	(void)snprintf(digits, sizeof digits, "%u", FIRST_IRQ + i);
	char part[16];
	(void)snprintf(part, sizeof part, "%.*s", (int)strcspn(pattern + 1, "*"), pattern + 1);
	return strcmp(pattern, digits) == 0 || (*pattern == '*' && strstr(devices[i], part));
}

/* Returns true if CPU `cpu` may serve interrupt i, according to the documented rules. */
static bool may_serve(const struct wish *w, unsigned i, unsigned cpu, uint8_t found)
{
	uint8_t bit = (uint8_t)(1u << cpu), claimed = 0;
	bool masked = false;
	for (unsigned k = 0; k < w->n; k++)
		if (w->rules[k].kind == IRQ_CLAIM && about(w->rules[k].pattern, i))
			claimed |= w->rules[k].cpus;
	for (unsigned k = 0; k < w->n; k++) {
		if (w->rules[k].kind == IRQ_CLAIM || !about(w->rules[k].pattern, i))
			continue;
		masked = true;
		if ((w->rules[k].cpus & bit) &&
		    (w->rules[k].kind == IRQ_STRICT_MASK || !(claimed & bit)))
			return false;
	}
	if (masked)
		return (w->allowed & bit) && (!claimed || (claimed & bit));
	if (claimed)
		return claimed & bit;
	if (w->sink)
		return w->sink & bit;
	if (!(found & w->allowed))
		return found & bit;
	return w->isolate ? ((found | w->allowed) & bit) && !(w->isolate & bit) : w->allowed & bit;
}

/* Returns the affinity that follows from the wish, independent of earlier wishes. */
static uint8_t expected(const struct wish *w, unsigned i, uint8_t found)
{
	uint8_t to = 0;
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		to |= (uint8_t)(may_serve(w, i, cpu, found) << cpu);
	return to ? to : found;
}

static uint8_t some_cpus(uint64_t *seed)
{
	return (uint8_t)(next_random(seed) & next_random(seed));
}

static void random_wish(struct wish *w, uint64_t *seed)
{
	uint8_t sink = next_random(seed) % 3 ? 0 : some_cpus(seed);
	uint8_t isolate = next_random(seed) % 2 ? 0 : some_cpus(seed);
	wish_init(w, sink, isolate, (uint8_t)(next_random(seed) | some_cpus(seed)));
	for (uint32_t n = next_random(seed) % 4; n; n--)
		add_rule(w, IRQ_CLAIM, patterns[next_random(seed) % COUNT(patterns)],
			 some_cpus(seed));
	for (uint32_t n = next_random(seed) % 4; n; n--)
		add_rule(w, next_random(seed) % 2 ? IRQ_STRICT_MASK : IRQ_MASK,
			 patterns[next_random(seed) % COUNT(patterns)], some_cpus(seed));
}

static void run_model(uint64_t seed)
{
	uint8_t first[N_IRQS];
	struct irq *q = NULL;
	for (unsigned i = 0; i < N_IRQS; i++)
		first[i] = kernel.irq[i].on = (uint8_t)(some_cpus(&seed) | 1u << i % 8);
	for (unsigned step = 0; step < 40; step++) {
		struct wish w;
		random_wish(&w, &seed);
		commit(&q, &w);
		for (unsigned i = 0; i < N_IRQS; i++) {
			uint8_t on = expected(&w, i, first[i]);
			if (kernel.irq[i].on != on)
				fail_msg("step %u: interrupt %u is on %x, not on %x", step,
					 FIRST_IRQ + i, kernel.irq[i].on, on);
		}
	}
	release(&q);
	for (unsigned i = 0; i < N_IRQS; i++)
		assert_int_equal(kernel.irq[i].on, first[i]);
	irq_free(q);
}

static void test_model(void **state)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		(void)start_kernel(state);
		run_model(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, start_kernel)
		TEST(test_lines),
		TEST(test_long_description),
		TEST(test_each),
		TEST(test_claims),
		TEST(test_masks),
		TEST(test_sink),
		TEST(test_controllable),
		TEST(test_nothing_to_do),
		TEST(test_refusals),
		TEST(test_read_back),
		TEST(test_restore_again),
		TEST(test_no_table),
		TEST(test_no_memory),
		TEST(test_no_memory_for_rules),
		TEST(test_no_job),
		TEST(test_other_allowed),
		TEST(test_no_place),
		TEST(test_moved_by_others),
		TEST(test_kernel_is_nobody_else),
		TEST(test_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
