/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.settings/1: what is to be put back when several modules have set a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/host/services.h"

static const struct rp_host_settings *const s = &host_settings_service;

struct place {
	struct host_env env;
	struct instance one, other, third;
};

static void begin(struct place *p)
{
	*p = (struct place){0};
	p->one.env = p->other.env = p->third.env = &p->env;
}

static void end(struct place *p)
{
	instance_drop_settings(&p->one);
	instance_drop_settings(&p->other);
	instance_drop_settings(&p->third);
	assert_null(p->env.settings);
}

static void rests(struct instance *i, const char *path, const char *value)
{
	char buf[RP_SETTING_MAX] = "untouched";
	int32_t r = s->without(i, path, buf, sizeof buf);
	assert_int_equal(r, value ? (int32_t)strlen(value) : -RP_ENOENT);
	assert_string_equal(buf, value ? value : "untouched");
}

static void test_alone(void **state)
{
	struct place p;
	(void)state;
	begin(&p);
	rests(&p.one, "/a", NULL);
	s->drop(&p.one, "/a");
	assert_int_equal(s->keep(&p.one, "/a", "2", "1"), 0);
	/* What it finds later is its own. */
	assert_int_equal(s->keep(&p.one, "/a", "3", "2"), 0);
	assert_int_equal(s->keep(&p.one, "/b", "", ""), 0);
	rests(&p.one, "/a", "1");
	rests(&p.one, "/b", "");
	rests(&p.other, "/a", NULL);
	s->drop(&p.other, "/a");
	rests(&p.one, "/a", "1");
	s->drop(&p.one, "/a");
	rests(&p.one, "/a", NULL);
	assert_int_equal(s->keep(&p.one, "/a", "2", "7"), 0);
	rests(&p.one, "/a", "7");
	end(&p);
}

/* The last word counts of those that are left; what was found is what the first one found. */
static void test_together(void **state)
{
	struct place p;
	(void)state;
	begin(&p);
	assert_int_equal(s->keep(&p.one, "/a", "2", "1"), 0);
	assert_int_equal(s->keep(&p.other, "/a", "3", "2"), 0);
	assert_int_equal(s->keep(&p.third, "/a", "4", "3"), 0);
	rests(&p.one, "/a", "4");
	rests(&p.other, "/a", "4");
	rests(&p.third, "/a", "3");
	assert_int_equal(s->keep(&p.one, "/a", "5", "4"), 0);
	rests(&p.third, "/a", "5");
	rests(&p.one, "/a", "4");
	s->drop(&p.third, "/a");
	rests(&p.one, "/a", "3");
	instance_drop_settings(&p.other);
	rests(&p.one, "/a", "1");
	rests(&p.other, "/a", NULL);
	end(&p);
}

static void test_bounds(void **state)
{
	struct place p;
	char full[RP_SETTING_MAX + 1], small[3];
	(void)state;
	begin(&p);
	memset(full, 'x', RP_SETTING_MAX);
	full[RP_SETTING_MAX] = '\0';
	assert_int_equal(s->keep(&p.one, "/a", full, "1"), -RP_E2BIG);
	assert_int_equal(s->keep(&p.one, "/a", "1", full), -RP_E2BIG);
	assert_null(p.env.settings);
	assert_int_equal(s->keep(&p.one, "/a", full + 1, full + 1), 0);
	rests(&p.one, "/a", full + 1);
	assert_int_equal(s->without(&p.one, "/a", small, sizeof small), -RP_E2BIG);
	assert_int_equal(s->keep(&p.one, "/b", "1", "12"), 0);
	assert_int_equal(s->without(&p.one, "/b", small, sizeof small), 2);
	assert_string_equal(small, "12");
	end(&p);
}

/* A trial changes nothing, and does not wait for a thread that is not in its process. */
static void test_trial(void **state)
{
	struct place p;
	char buf[RP_SETTING_MAX];
	(void)state;
	begin(&p);
	assert_int_equal(s->keep(&p.one, "/a", "2", "1"), 0);
	p.env.trial = true;
	assert_int_equal(s->keep(&p.one, "/a", "3", "2"), -RP_ENOTSUP);
	assert_int_equal(s->without(&p.one, "/a", buf, sizeof buf), -RP_ENOTSUP);
	s->drop(&p.one, "/a");
	instance_drop_settings(&p.one);
	p.env.trial = false;
	rests(&p.one, "/a", "1");
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_trial),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
