/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.node/1: the Node data that modules receive, and the labels and resources that
 * modules request for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rpd/host/service/node.h"

/* Two modules of one host. */
struct place {
	struct host_env env;
	struct instance one, other;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	assert_non_null(p);
	p->one.env = p->other.env = &p->env;
	p->one.thread = p->other.thread = pthread_self();
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	instance_drop_wishes(&p->one);
	instance_drop_wishes(&p->other);
	assert_null(p->env.wishes);
	free(p);
	return 0;
}

#define N host_node_service
static unsigned count_wishes(const struct place *p)
{
	unsigned n = 0;
	for (const struct node_wish *w = p->env.wishes; w; w = w->next)
		n++;
	return n;
}

static void test_node(void **state)
{
	struct place *p = *state;
	static const struct kv labels[] = {{"zone", "a"}};
	static const struct node_taint taints[] = {{"t", "v", "NoExecute"}};
	static const struct node_amount amounts[] = {{"cpu", 4000}};
	static const struct node_object node = {.name = "n1",
						.labels = labels,
						.n_labels = 1,
						.taints = taints,
						.n_taints = 1,
						.capacity = amounts,
						.n_capacity = 1};
	struct rp_node_taint taint = {.size = sizeof taint};
	int64_t amount;
	assert_null(N.name(&p->one));
	assert_null(N.label(&p->one, "zone"));
	assert_int_equal(N.taint(&p->one, 0, &taint), -RP_ENOENT);
	p->env.node = &node;
	assert_string_equal(N.name(&p->one), "n1");
	assert_string_equal(N.label(&p->one, "zone"), "a");
	assert_null(N.annotation(&p->one, "zone"));
	assert_int_equal(N.taint(&p->one, 0, &taint), 0);
	assert_string_equal(taint.effect, "NoExecute");
	assert_int_equal(N.taint(&p->one, 1, &taint), -RP_ENOENT);
	assert_int_equal(N.capacity(&p->one, "cpu", &amount), 0);
	assert_int_equal(amount, 4000);
	assert_int_equal(N.allocatable(&p->one, "cpu", &amount), -RP_ENOENT);
}

static void test_wishes(void **state)
{
	struct place *p = *state;
	assert_int_equal(N.set_label(&p->one, "x.io/l", "v"), 0);
	assert_int_equal(N.set_label(&p->other, "x.io/l", "w"), 0);
	assert_int_equal(N.set_taint(&p->one, "t", "NoSchedule", ""), 0);
	assert_int_equal(N.set_taint(&p->one, "t", "NoExecute", "x"), 0);
	assert_int_equal(N.set_resource(&p->one, "x.io/r", 3), 0);
	assert_int_equal(N.set_annotation(&p->one, "a", "{\"any\": [\"text\"]}"), 0);
	assert_int_equal(count_wishes(p), 6);
	/* the first one counts, until it is withdrawn */
	const struct node_wish *mine = p->env.wishes, *other = mine->next;
	assert_false(node_wish_waits(p->env.wishes, mine));
	assert_true(node_wish_waits(p->env.wishes, other));
	assert_int_equal(N.set_label(&p->one, "x.io/l", "v2"), 0);
	assert_string_equal(mine->value, "v2");
	assert_int_equal(N.set_label(&p->one, "x.io/l", NULL), 0);
	assert_false(node_wish_waits(p->env.wishes, other));
	/* There is no wish to withdraw. */
	assert_int_equal(N.set_label(&p->one, "x.io/l", NULL), 0);
	assert_int_equal(N.set_resource(&p->one, "x.io/none", RP_NOT_SET), 0);
	assert_int_equal(N.set_resource(&p->one, "x.io/r", RP_NOT_SET), 0);
	assert_int_equal(count_wishes(p), 4);
	/* The wishes end with the instance. */
	instance_drop_wishes(&p->one);
	assert_int_equal(count_wishes(p), 1);
	assert_ptr_equal(p->env.wishes, other);
}

static void test_no_wishes(void **state)
{
	struct place *p = *state;
	static const char *const keys[] = {"",	 "a/",	   "/a",  "a/b/c",   "-a",
					   "a-", "A.io/a", "a b", "nri-rp/x"};
	char text[RP_NODE_ANNOTATION_MAX + 2], key[16];
	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
		assert_int_equal(N.set_label(&p->one, keys[i], "v"), -RP_EINVAL);
	assert_int_equal(N.set_label(&p->one, "a", "b c"), -RP_EINVAL);
	assert_int_equal(N.set_taint(&p->one, "a", "Never", ""), -RP_EINVAL);
	assert_int_equal(N.set_resource(&p->one, "cpu", 1), -RP_EINVAL);
	assert_int_equal(N.set_resource(&p->one, "x.io/r", -1), -RP_EINVAL);
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(N.set_annotation(&p->one, "a", text), -RP_E2BIG);
	assert_int_equal(N.set_annotation(&p->one, "a", "\xff"), -RP_EINVAL);
	text[RP_NODE_LABEL_MAX + 1] = '\0';
	assert_int_equal(N.set_label(&p->one, "a", text), -RP_EINVAL);
	assert_int_equal(count_wishes(p), 0);
	for (unsigned i = 0; i < RP_NODE_WISHES_MAX; i++) {
		(void)snprintf(key, sizeof key, "k%u", i);
		assert_int_equal(N.set_label(&p->one, key, ""), 0);
	}
	assert_int_equal(N.set_label(&p->one, "more", ""), -RP_E2BIG);
	assert_int_equal(N.set_label(&p->one, "k7", "new"), 0);
	assert_int_equal(N.set_label(&p->other, "more", ""), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(node),
		T(wishes),
		T(no_wishes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
