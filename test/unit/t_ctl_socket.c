/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the control socket itself: its path, refused clients, its end. */
#include <poll.h>

#include "core/nri-rpctl/call.c"
#include "core/lib/term/out.c"

#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "t_ctl_fixture.h"

#include "coverage_exit.h"

#define STATIC "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}}\n"
#define NONE "policy: none\n"

static struct fixture fx;

static int setup(void **state)
{
	fixture_init(&fx, "modules");
	return 0;
}

static int teardown(void **state)
{
	fixture_fini(&fx);
	return 0;
}

/* ---- the socket ------------------------------------------------------------------------------ */

static void test_set_socket(void **state)
{
	struct err err = ERR_INIT;
	struct stat st;
	char other[128], file[128], first[96];
	fixture_start(&fx, NONE);
	assert_int_equal(stat(fx.socket, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(ctl_set_socket(fx.ctl, fx.socket, &err), 0);
	(void)snprintf(file, sizeof file, "%s/file", fx.dir);
	fixture_write(file, "x");
	assert_int_equal(ctl_set_socket(fx.ctl, file, &err), -EEXIST);
	assert_int_equal(stat(fx.socket, &st), 0);
	json_decref(fixture_get(&fx, "Version", NULL, CTL_OK));
	(void)snprintf(other, sizeof other, "%s/file/sub/c.sock", fx.dir);
	assert_true(ctl_set_socket(fx.ctl, other, &err) < 0);
	(void)snprintf(other, sizeof other, "%s/new/folder/c.sock", fx.dir);
	assert_int_equal(ctl_set_socket(fx.ctl, other, &err), 0);
	assert_int_equal(stat(fx.socket, &st), -1);
	strcpy(first, fx.socket);
	strcpy(fx.socket, other);
	json_decref(fixture_get(&fx, "Version", NULL, CTL_OK));
	assert_int_equal(ctl_set_socket(fx.ctl, "", &err), 0);
	assert_int_equal(stat(other, &st), -1);
	assert_int_equal(ctl_set_socket(fx.ctl, first, &err), 0);
}

static void test_second_daemon(void **state)
{
	struct err err = ERR_INIT;
	struct ctl *second = NULL;
	struct stat st;
	fixture_start(&fx, NONE);
	assert_int_equal(ctl_new(fx.loop, fx.pipeline, fx.socket, &second, &err), -EADDRINUSE);
	assert_null(second);
	/* A socket that another process has created at the path meanwhile is not removed. */
	assert_int_equal(unlink(fx.socket), 0);
	int fd = wire_listen_unix(fx.socket, 0600, &err);
	assert_true(fd >= 0);
	fx.ctl = ctl_free(fx.ctl);
	assert_int_equal(stat(fx.socket, &st), 0);
	(void)close(fd);
}

static void as_nobody(struct asking *a)
{
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		struct err err = ERR_INIT;
		if (setuid(65534))
			_exit(9);
		int fd = wire_connect_unix(a->f->socket, &err);
		struct pollfd p = {.fd = fd, .events = POLLIN};
		(void)poll(&p, 1, 10000);
		_exit(fd >= 0 && recv(fd, &byte, 1, MSG_DONTWAIT) == 0 ? 0 : 1);
	}
	int status = -1;
	(void)waitpid(pid, &status, 0);
	a->result = status;
}

static void test_others_are_turned_away(void **state)
{
	struct asking a = {.f = &fx, .fn = as_nobody};
	fixture_start(&fx, NONE);
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(fx.socket, 0666), 0);
	assert_int_equal(chmod(fx.run, 0755), 0);
	assert_int_equal(chmod(fx.dir, 0755), 0);
	fixture_run(&a);
	assert_int_equal(a.result, 0);
}

static void stop_all(void *arg)
{
	struct fixture *f = arg;
	f->ctl = ctl_free(f->ctl);
}

static void test_end_with_waiting(void **state)
{
	struct asking a = {
		.f = &fx, .req = {.method = "Events", .wait_ms = 20000}, .err = ERR_INIT};
	fixture_start(&fx, NONE);
	a.req.after = pipeline_last_event(fx.pipeline);
	struct loop_timer *t = loop_timer_new(fx.loop, stop_all, &fx);
	(void)loop_timer_arm(t, 1000);
	fixture_run(&a);
	assert_int_equal(a.result, -EREMOTEIO);
	assert_string_equal(a.err.text, "nri-rpd is stopping");
	loop_timer_free(t);
}

static struct loop_timer *polling;

/* Stops the daemon as soon as the child of the trial exists. */
static void stop_within_trial(void *arg)
{
	siginfo_t info;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		stop_all(arg);
	else
		(void)loop_timer_arm(polling, 1);
}

/* The trial's end comes when the control socket is gone. */
/* Stops the loop when the reload has ended, although no client waits for it. */
static void stop_when_reloaded(void *arg)
{
	struct fixture *f = arg;
	if (strcmp(conf_core(pipeline_conf(f->pipeline))->policy, "static") == 0)
		loop_stop(f->loop);
	else
		(void)loop_timer_arm(polling, 10);
}

static void test_end_with_reload(void **state)
{
	struct asking a = {.f = &fx, .req = {.method = "Reload"}, .err = ERR_INIT};
	fixture_start(&fx, NONE);
	fixture_write(fx.config, STATIC);
	polling = loop_timer_new(fx.loop, stop_within_trial, &fx);
	(void)loop_timer_arm(polling, 1);
	fixture_run(&a);
	loop_timer_free(polling);
	/* As the clock has it; nearly always it is refused. */
	if (a.result) {
		assert_int_equal(a.result, -EREMOTEIO);
		assert_string_equal(a.err.text, "nri-rpd is stopping");
	}
	answer_fini(&a.answer);
	polling = loop_timer_new(fx.loop, stop_when_reloaded, &fx);
	(void)loop_timer_arm(polling, 10);
	assert_int_equal(loop_run(fx.loop), 0);
	loop_timer_free(polling);
}

/* A client that does not wait for its answer. */
static void ask_and_go(struct asking *a)
{
	const Control__Request m = CONTROL__REQUEST__INIT;
	uint8_t message[256];
	for (unsigned i = 0; i < 2; i++) {
		struct ttrpc_out out = {.service = CTL_SERVICE,
					.method = i ? "Reload" : "Events",
					.payload = &m.base};
		size_t n = ttrpc_request_size(&out);
		const struct ttrpc_header h = {(uint32_t)n, 1, TTRPC_REQUEST, 0};
		int fd = wire_connect_unix(a->f->socket, &a->err);
		ttrpc_header_encode(message, &h);
		ttrpc_request_encode(&out, message + TTRPC_HEADER_SIZE);
		if (write(fd, message, n + TTRPC_HEADER_SIZE) < 0)
			a->result = -errno;
		(void)usleep(5000);
		(void)close(fd);
	}
}

static void test_clients_that_go(void **state)
{
	struct asking a = {.f = &fx, .fn = ask_and_go};
	fixture_start(&fx, NONE);
	fixture_write(fx.config, STATIC);
	fixture_run(&a);
	assert_int_equal(a.result, 0);
	/* Behind the reload. */
	fixture_write(fx.config, NONE);
	json_decref(fixture_get(&fx, "Reload", NULL, CTL_OK));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_set_socket),
		TEST(test_second_daemon),
		TEST(test_others_are_turned_away),
		TEST(test_end_with_waiting),
		TEST(test_end_with_reload),
		TEST(test_clients_that_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
