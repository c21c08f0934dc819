/* SPDX-License-Identifier: Apache-2.0 */
/* modules/lib: amounts of CPU and the wrappers around the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "modules/lib/private/amount.h"
#include "modules/lib/private/line.h"
#include "test/unit/fake_host.h"

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};

struct bench {
	struct fake_host *f;
	struct modhost h;
};

static void open_bench(struct bench *b)
{
	b->f = fake_host_new(&n4c16);
	assert_int_equal(modhost_init(&b->h, fake_rp_host(b->f), MODHOST_POLICY), 0);
	fake_file(b->f, "/sys/fs/cgroup/v2/cpuset.cpus", "2-5\n");
	fake_file(b->f, "/sys/fs/cgroup/inherits/cpuset.cpus", "\n");
	fake_file(b->f, "/sys/fs/cgroup/inherits/cpuset.cpus.effective", "0-7\n");
	fake_file(b->f, "/sys/fs/cgroup/cpuset/v1/cpuset.cpus", "8-9");
	fake_file(b->f, "/sys/fs/cgroup/broken/cpuset.cpus", "x");
	fake_file(b->f, "/sys/fs/cgroup/empty/cpuset.cpus", "");
	fake_file(b->f, "/sys/fs/cgroup/empty/cpuset.cpus.effective", "\n");
	fake_file(b->f, "/elsewhere/cpuset.cpus", "1");
}

/* ---- amounts --------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	enum amount_kind kind;
	uint32_t count;
	const char *picked; /* CPUs picked from 0-15 */
} good[] = {
	{"2", AMOUNT_QUANTITY, 2, "0-15"},
	{"750m", AMOUNT_QUANTITY, 1, "0-15"},
	{"1500m", AMOUNT_QUANTITY, 2, "0-15"},
	{"1.5", AMOUNT_QUANTITY, 2, "0-15"},
	{"0", AMOUNT_QUANTITY, 0, "0-15"},
	{"100000", AMOUNT_QUANTITY, RP_CPUS_MAX + 1, "0-15"},
	{"\"cpuset:0-3,8\"", AMOUNT_CPUS, 5, "0-3,8"},
	{"\"cpuset:7\"", AMOUNT_CPUS, 1, "7"},
	{"0-1", AMOUNT_CPUS, 2, "0-1"},
	{"\"3,5,20\"", AMOUNT_CPUS, 3, "3,5"},
	{"\"exclude-cpuset:1-14\"", AMOUNT_EXCEPT, 0, "0,15"},
	{"\"cgroup:v2\"", AMOUNT_CPUS, 4, "2-5"},
	{"\"cgroup:/v2\"", AMOUNT_CPUS, 4, "2-5"},
	{"/inherits", AMOUNT_CPUS, 8, "0-7"},
	{"/v1", AMOUNT_CPUS, 2, "8-9"},
	{"/elsewhere", AMOUNT_CPUS, 1, "1"},
	{"/sys/fs/cgroup/v2", AMOUNT_CPUS, 4, "2-5"},
};

static void test_good_amounts(void **state)
{
	struct bench b;
	open_bench(&b);
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct amount a;
		struct rp_idset online, picked;
		char text[256];
		if (amount_read(&b.h, fake_cfg(b.f, good[i].text), AMOUNT_TAKES_ANY, &a))
			fail_msg("%s: %s", good[i].text, fake_error(b.f));
		assert_int_equal(a.kind, good[i].kind);
		assert_int_equal(amount_count(&a), good[i].count);
		modhost_set(&b.h, RP_CPUS_ONLINE, &online);
		amount_pick(&a, rp_ids_of(&online), &picked);
		(void)rp_ids_format(rp_ids_of(&picked), text, sizeof text);
		assert_string_equal(text, good[i].picked);
	}
	fake_host_free(b.f);
}

static const struct {
	const char *text;
	int32_t code;
	const char *error;
} bad[] = {
	{"\"\"", -RP_EINVAL, "cpu: expected a quantity of CPUs"},
	{"-1", -RP_EINVAL, "cpu: expected a quantity of CPUs"},
	{"-0", -RP_EINVAL, "cpu: expected a quantity of CPUs"},
	{"\"-1,3\"", -RP_EINVAL, "cpu: expected a quantity of CPUs"},
	{"many", -RP_EINVAL, "cpu: expected a quantity of CPUs"},
	{"\"set:1-2\"", -RP_EINVAL, "cpu: expected a quantity of CPUs"},
	{"{a: 1}", -RP_EINVAL, "cpu: expected a quantity of CPUs"},
	{"\"cpuset:\"", -RP_EINVAL, "cpu: expected a list of CPUs as in 0-3,8, found \"\""},
	{"\"cpuset:9-1\"", -RP_EINVAL, "cpu: expected a list of CPUs as in 0-3,8, found \"9-1\""},
	{"\"cpuset:8192\"", -RP_EINVAL, "expected a list of CPUs"},
	{"\"exclude-cpuset:x\"", -RP_EINVAL, "expected a list of CPUs"},
	{"1-2-3", -RP_EINVAL, "expected a list of CPUs"},
	{"\"cgroup:nowhere\"", -RP_ENOENT, "no cgroup \"nowhere\" with a cpuset"},
	{"\"cgroup:elsewhere\"", -RP_ENOENT, "no cgroup \"elsewhere\""},
	{"/broken", -RP_EINVAL, "the cpuset of cgroup \"/broken\" is not a list of CPUs"},
	{"/empty", -RP_EINVAL, "the cpuset of cgroup \"/empty\" is empty"},
};

static void test_bad_amounts(void **state)
{
	struct bench b;
	open_bench(&b);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct amount a = {.kind = AMOUNT_NONE, .mcpu = 77};
		char text[128];
		(void)snprintf(text, sizeof text, "{cpu: %s}", bad[i].text);
		rp_cfg node = b.h.config->get(b.h.ctx, fake_cfg(b.f, text), "cpu");
		assert_int_equal(amount_read(&b.h, node, AMOUNT_TAKES_ANY, &a), bad[i].code);
		if (!strstr(fake_error(b.f), bad[i].error))
			fail_msg("%s: %s", bad[i].text, fake_error(b.f));
		assert_int_equal(a.mcpu, 77);
	}
	fake_host_free(b.f);
}

static void test_amount_kinds(void **state)
{
	struct bench b;
	struct amount a;
	open_bench(&b);
	assert_int_equal(amount_read(&b.h, NULL, AMOUNT_TAKES_CPUS, &a), 0);
	assert_int_equal(a.kind, AMOUNT_NONE);
	assert_int_equal(amount_count(&a), 0);
	assert_int_equal(amount_read(&b.h, fake_cfg(b.f, "0-1"), AMOUNT_TAKES_QUANTITY, &a),
			 -RP_EINVAL);
	assert_string_equal(fake_error(b.f), "a set of CPUs cannot be used here");
	/* paths that are too long for any cgroup */
	char text[9000];
	memset(text, 'a', sizeof text);
	memcpy(text, "cgroup:", 7);
	text[sizeof text - 1] = '\0';
	assert_int_equal(amount_read(&b.h, fake_cfg(b.f, text), AMOUNT_TAKES_ANY, &a), -RP_ENOENT);
	text[4097] = '\0';
	assert_int_equal(amount_read(&b.h, fake_cfg(b.f, text), AMOUNT_TAKES_ANY, &a), -RP_ENOENT);
	fake_hide_service(b.f, RP_HOST_WORK_1);
	assert_int_equal(modhost_init(&b.h, fake_rp_host(b.f), MODHOST_POLICY), 0);
	assert_int_equal(amount_read(&b.h, fake_cfg(b.f, "/v2"), AMOUNT_TAKES_ANY, &a),
			 -RP_ENOTSUP);
	fake_host_free(b.f);
}

/* ---- the host -------------------------------------------------------------------------------- */

static void test_messages(void **state)
{
	struct bench b;
	open_bench(&b);
	rp_ctr c = fake_ctr(b.f, &(struct fake_ctr){.name = "c"});
	rp_cfg cfg = fake_cfg(b.f, "{a: {b: 1}}"), at = b.h.config->get(b.h.ctx, cfg, "a.b");
	assert_int_equal(modhost_fail(&b.h, -RP_EBUSY, "%s %d", "text", 7), -RP_EBUSY);
	assert_string_equal(fake_error(b.f), "text 7");
	assert_int_equal(modhost_fail_at(&b.h, at, -RP_EINVAL, "bad %c", 'x'), -RP_EINVAL);
	assert_string_equal(fake_error(b.f), "a.b: bad x");
	assert_int_equal(modhost_fail_at(&b.h, NULL, -RP_EINVAL, "nowhere"), -RP_EINVAL);
	assert_string_equal(fake_error(b.f), "nowhere");
	modhost_log(&b.h, RP_LOG_NOTICE, c, "%u%%", 5u);
	assert_string_equal(fake_log(b.f), "<5>5%\n");
	modhost_note(&b.h, c, "note %d", 1);
	modhost_decided_by(&b.h, c, at, "key %d", 2);
	modhost_decided_by(&b.h, c, NULL, "rule %d", 3);
	assert_string_equal(fake_trail(b.f, c), "note 1\n[a.b] key 2\nrule 3\n");
	modhost_note(&b.h, c, "%s", "a\nb\r\tc\177 é");
	assert_non_null(strstr(fake_trail(b.f, c), "\na b  c  é\n"));
	fake_host_free(b.f);
}

/* Checks that a long text is cut between characters. */
static void test_long_messages(void **state)
{
	struct bench b;
	char text[3 * MODHOST_TEXT_MAX];
	open_bench(&b);
	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof text; i += 3)
			memcpy(text + i, "…", 4);
		modhost_fail(&b.h, -RP_EINVAL, "%s", text);
		size_t n = strlen(fake_error(b.f));
		assert_true(n < MODHOST_TEXT_MAX && n >= MODHOST_TEXT_MAX - 4);
		assert_int_equal((n - shift) % 3, 0);
	}
	fake_host_free(b.f);
}

static void test_services(void **state)
{
	static const struct {
		uint32_t bit;
		const char *id;
	} services[] = {
		{MODHOST_TOPOLOGY, RP_HOST_TOPOLOGY_1}, {MODHOST_CACHE, RP_HOST_CACHE_1},
		{MODHOST_CONFIG, RP_HOST_CONFIG_1},	{MODHOST_EXPLAIN, RP_HOST_EXPLAIN_1},
		{MODHOST_TIMER, RP_HOST_TIMER_1},	{MODHOST_WORK, RP_HOST_WORK_1},
	};
	struct bench b;
	open_bench(&b);
	for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
		fake_hide_service(b.f, services[i].id);
		assert_int_equal(modhost_init(&b.h, fake_rp_host(b.f), 0x3f & ~services[i].bit), 0);
		assert_int_equal(modhost_init(&b.h, fake_rp_host(b.f), services[i].bit),
				 -RP_ENOTSUP);
		assert_non_null(strstr(fake_error(b.f), services[i].id));
		/* without config there is no place to name */
		assert_int_equal(modhost_fail_at(&b.h, fake_cfg(b.f, "{}"), -RP_EINVAL, "x"),
				 -RP_EINVAL);
	}
	fake_host_free(b.f);
}

static const void *short_service(void *ctx, const char *id)
{
	static const uint32_t size = 8;
	return &size;
}

static int32_t ignore_fail(void *ctx, int32_t code, const char *text)
{
	return code;
}

/* Checks that a host whose structs end before the members of minor 0 is refused, without a read
 * past the end. */
static void test_short_services(void **state)
{
	struct modhost h;
	const struct rp_host host = {
		.size = sizeof host, .service = short_service, .fail = ignore_fail};
	assert_int_equal(modhost_init(&h, &host, MODHOST_TOPOLOGY), -RP_ENOTSUP);
	assert_null(h.topology);
	assert_null(h.cache);
	assert_null(h.config);
	assert_null(h.explain);
	assert_null(h.timer);
	assert_null(h.work);
	modhost_note(&h, 1, "nobody hears this");
	modhost_decided_by(&h, 1, NULL, "nor this");
}

static void test_booleans(void **state)
{
	static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
	static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
	static const char *const neither[] = {"", "yes", "tRUE", "on", "2", " true"};
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		int v = -1;
		assert_int_equal(modhost_parse_bool(yes[i], &v), 0);
		assert_int_equal(v, 1);
		assert_int_equal(modhost_parse_bool(no[i], &v), 0);
		assert_int_equal(v, 0);
		v = -1;
		assert_int_equal(modhost_parse_bool(neither[i], &v), -RP_EINVAL);
		assert_int_equal(v, -1);
	}
}

static void test_set_text(void **state)
{
	struct rp_idset set;
	char buf[64];
	assert_int_equal(rp_idset_parse(&set, "0,2,4,6,8,10,12,14", RP_CPUS_MAX), 0);
	assert_string_equal(modhost_set_text(rp_ids_of(&set), buf, sizeof buf),
			    "0,2,4,6,8,10,12,14");
	assert_string_equal(modhost_set_text(rp_ids_of(&set), buf, 12), "0,2,4,6,…");
	assert_string_equal(modhost_set_text(rp_ids_of(&set), buf, 3), "0");
}

static void test_service(void **state)
{
	static const int one = 1, two = 2;
	static const struct modhost_service list[] = {{"a/1", &one}, {"a/2", &two}, {NULL, NULL}};
	assert_ptr_equal(modhost_service(list, "a/1"), &one);
	assert_ptr_equal(modhost_service(list, "a/2"), &two);
	assert_null(modhost_service(list, "a/3"));
	assert_null(modhost_service(list, ""));
	assert_null(modhost_service(list + 2, "a/1"));
}

/* ---- lines put together by hand -------------------------------------------------------------- */

static void test_line(void **state)
{
	struct line l = {0};
	line_say(&l, "a ");
	line_number(&l, 0);
	line_say(&l, " ");
	line_number(&l, -1200);
	line_say(&l, " ");
	line_number(&l, INT64_MIN);
	line_printf(&l, " %s", "b");
	assert_string_equal(l.text, "a 0 -1200 -9223372036854775808 b");
}

static void test_line_is_cut(void **state)
{
	struct line l = {0};
	for (unsigned i = 0; i < LINE_MAX_BYTES; i++)
		line_say(&l, "ab");
	line_number(&l, 5);
	assert_int_equal(strlen(l.text), LINE_MAX_BYTES - 1);
	assert_int_equal(l.text[LINE_MAX_BYTES - 2], 'a');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),	       cmocka_unit_test(test_line_is_cut),
		cmocka_unit_test(test_good_amounts),   cmocka_unit_test(test_bad_amounts),
		cmocka_unit_test(test_amount_kinds),   cmocka_unit_test(test_messages),
		cmocka_unit_test(test_long_messages),  cmocka_unit_test(test_services),
		cmocka_unit_test(test_short_services), cmocka_unit_test(test_booleans),
		cmocka_unit_test(test_service),	       cmocka_unit_test(test_set_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
