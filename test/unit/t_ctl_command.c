/* SPDX-License-Identifier: Apache-2.0 */
/* Reading requests, and parts of documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/observe/kubelet.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/str.h"

#include "t_topo_tree.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/document.h"

static struct arena *arena;

static int setup(void **state)
{
	arena = arena_new(4096, 0);
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = arena_free(arena);
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void test_commands(void **state)
{
	assert_string_equal(command_find("Explain")->method, "Explain");
	assert_null(command_find("explain"));
	assert_null(command_find(""));
}

static const Control__Request *decode(const char *method, char **args, size_t n_args,
				      struct err *err)
{
	Control__Request m = CONTROL__REQUEST__INIT;
	static uint8_t bytes[CTL_REQUEST_MAX];
	m.args = args;
	m.n_args = n_args;
	m.after = 7;
	m.flags = 3;
	assert_in_range(control__request__get_packed_size(&m), 0, sizeof bytes);
	size_t n = control__request__pack(&m, bytes);
	return command_decode(arena, bytes, n, command_find(method), err);
}

static void test_decode(void **state)
{
	struct err err = ERR_INIT;
	char one[] = "default/web/c0", two[] = "b", *args[] = {one, two};
	const Control__Request *req = decode("Explain", args, 1, &err);
	assert_non_null(req);
	assert_string_equal(req->args[0], "default/web/c0");
	assert_int_equal(req->after, 7);
	assert_int_equal(req->flags, 3);
	assert_null(decode("Explain", args, 2, &err));
	assert_string_equal(err.text, "Explain takes 1 to 1 arguments, not 2");
	assert_null(decode("Explain", NULL, 0, &err));
	assert_non_null(decode("LogDebug", args, 2, &err));
}

static void test_decode_limits(void **state)
{
	struct err err = ERR_INIT;
	char text[CTL_ARG_MAX + 2];
	char *args[CTL_ARGS_MAX + 1] = {text};
	memset(text, 'x', sizeof text - 1);
	text[CTL_ARG_MAX + 1] = '\0';
	assert_null(decode("Explain", args, 1, &err));
	assert_string_equal(err.text, "argument 1 has 4097 bytes, at most 4096 are accepted");
	text[CTL_ARG_MAX] = '\0';
	assert_non_null(decode("Explain", args, 1, &err));
	strcpy(text, "a\xc3");
	assert_null(decode("Explain", args, 1, &err));
	assert_string_equal(err.text, "argument 1 is not UTF-8");
	strcpy(text, "a");
	for (unsigned i = 0; i <= CTL_ARGS_MAX; i++)
		args[i] = text;
	assert_non_null(decode("LogDebug", args, CTL_ARGS_MAX, &err));
	assert_null(decode("LogDebug", args, CTL_ARGS_MAX + 1, &err));
}

static void test_decode_garbage(void **state)
{
	static const uint8_t garbage[] = {0x0a, 0x7f, 0x01};
	struct err err = ERR_INIT;
	assert_null(command_decode(arena, garbage, sizeof garbage, command_find("Explain"), &err));
	assert_int_equal(err.code, -EBADMSG);
	assert_null(
		command_decode(arena, garbage, CTL_REQUEST_MAX + 1, command_find("Explain"), &err));
	assert_int_equal(err.code, -EMSGSIZE);
	/* An empty message is a request without arguments. */
	assert_non_null(command_decode(arena, NULL, 0, command_find("Status"), &err));
}

/* Checks a request that needs more memory than its size suggests. */
static void test_decode_memory(void **state)
{
	struct err err = ERR_INIT;
	static uint8_t many[CTL_REQUEST_MAX];
	for (size_t i = 0; i + 1 < sizeof many; i += 2)
		many[i] = 0x0a;
	struct arena *small = arena_new(4096, 8u * CTL_REQUEST_MAX);
	assert_null(command_decode(small, many, sizeof many, command_find("LogDebug"), &err));
	assert_true(arena_held(small) <= 8u * CTL_REQUEST_MAX);
	arena_free(small);
}

/* ---- documents ------------------------------------------------------------------------------- */

static void test_parts(void **state)
{
	struct buf out = BUF_INIT;
	struct json j;
	struct rp_idset set;
	json_init(&j, &out);
	rp_idset_clear(&set);
	rp_idset_add_range(&set, 2, 4);
	json_obj(&j);
	put_time(&j, "never", 0);
	put_time(&j, "then", UINT64_C(1767225600123456789));
	put_set(&j, "set", NULL);
	put_ids(&j, "ids", rp_ids_of(&set));
	put_amount(&j, "unset", RP_NOT_SET);
	put_amount(&j, "set", -1);
	put_text(&j, "no", "");
	put_text(&j, "yes", "x");
	json_end_obj(&j);
	assert_string_equal(buf_text(&out), "{\"never\":null,\"then\":\"2026-01-01T00:00:00.123Z\","
					    "\"set\":null,\"ids\":\"2-4\","
					    "\"unset\":null,\"set\":-1,\"no\":null,\"yes\":\"x\"}");
	document_error(&out, "so \"bad\"");
	assert_string_equal(buf_text(&out), "{\"error\":\"so \\\"bad\\\"\"}");
	buf_fini(&out);
}

static void test_names(void **state)
{
	assert_string_equal(derive_qos_name(RP_QOS_GUARANTEED), "Guaranteed");
	assert_string_equal(derive_qos_name(RP_QOS_BEST_EFFORT), "BestEffort");
	assert_string_equal(derive_qos_name(99), "unknown");
	assert_string_equal(state_name(RP_STATE_EXITED), "exited");
	assert_string_equal(state_name(99), "unknown");
}

static void test_matches(void **state)
{
	assert_true(matches(NULL, "a/b/c"));
	assert_true(matches("", "a/b/c"));
	assert_true(matches("b/c", "a/b/c"));
	assert_false(matches("x", "a/b/c"));
	assert_true(matches("a/*", "a/b/c"));
	assert_false(matches("b/*", "a/b/c"));
	assert_true(matches("*[cd]", "a/b/c"));
}

/* ---- the kubelet's files --------------------------------------------------------------------- */

static void test_kubelet(void **state)
{
	struct tree t = {.dir = "/tmp/t_ctl_command-XXXXXX"};
	struct err err = ERR_INIT;
	static const char file[] = "var/lib/kubelet/cpu_manager_state";
	static const char args[] = "/usr/bin/kubelet\0--config=x\0--root-dir\0/srv/kubelet\0--v=2";
	struct kubelet_state k;
	assert_non_null(mkdtemp(t.dir));
	assert_int_equal(fs_root_open(&t.root, t.dir, &err), 0);
	assert_false(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	tree_put(&t, file, "{\"policyName\":\"static\",\"checksum\":1}");
	assert_true(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	assert_string_equal(k.policy, "static");
	assert_string_equal(k.path, "/var/lib/kubelet/cpu_manager_state");
	assert_false(kubelet_read_state(&t.root, KUBELET_MEMORY, &k));
	tree_put(&t, file, "{\"policyName\":7}");
	assert_false(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	tree_put(&t, file, "not JSON");
	assert_false(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	tree_put(&t, file,
		 "{\"policyName\":\"a name that is far too long for the name of any policy of the "
		 "kubelet's\"}");
	assert_true(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	assert_int_equal(strlen(k.policy), sizeof k.policy - 1);
	/* the state file of a running kubelet has precedence */
	tree_put(&t, "proc/12/comm", "kubelet\n");
	tree_put_bytes(&t, "proc/12/cmdline", args, sizeof args);
	tree_put(&t, "proc/13/comm", "sh\n");
	tree_put(&t, "srv/kubelet/cpu_manager_state", "{\"policyName\":\"none\"}");
	assert_true(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	assert_string_equal(k.path, "/srv/kubelet/cpu_manager_state");
	tree_put(&t, "proc/12/comm", "k3s\n");
	tree_put(&t, "proc/12/cmdline", "k3s agent --kubelet-arg=root-dir=/srv/kubelet");
	assert_true(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	assert_string_equal(k.path, "/srv/kubelet/cpu_manager_state");
	tree_put_bytes(&t, "proc/12/cmdline", "", 0);
	assert_true(kubelet_read_state(&t.root, KUBELET_CPU, &k));
	assert_string_equal(k.path, "/var/lib/kubelet/cpu_manager_state");
	fs_root_close(&t.root);
	assert_int_equal(nftw(t.dir, tree_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_commands),	   TEST(test_decode),	     TEST(test_decode_limits),
		TEST(test_decode_garbage), TEST(test_decode_memory), TEST(test_parts),
		TEST(test_names),	   TEST(test_matches),	     TEST(test_kubelet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
