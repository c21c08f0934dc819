/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the command line of nri-rpd and its notifications to systemd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <getopt.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/nri-rpd/options.h"
#include "core/lib/util/sd.h"
#include "core/lib/util/loop.h"

static enum options_result parse(struct options *o, const char *line)
{
	static char text[2048];
	char *argv[64] = {(char *)"nri-rpd"}, *saved = NULL;
	int argc = 1;
	(void)snprintf(text, sizeof text, "%s", line);
	for (char *word = strtok_r(text, " ", &saved); word; word = strtok_r(NULL, " ", &saved))
		argv[argc++] = word;
	optind = 0; /* glibc: start over */
	return options_parse(argc, argv, o);
}

static void test_defaults(void **state)
{
	struct options o;
	assert_int_equal(parse(&o, ""), OPTIONS_RUN);
	assert_string_equal(o.config, "/etc/nri-rp/rp.conf");
	assert_string_equal(o.host_root, "/");
	assert_null(o.state_dir);
	assert_null(o.log_level);
	assert_int_equal(o.n_module_dirs, 0);
	assert_false(o.check_config || o.reset_cache);
}

static void test_all(void **state)
{
	struct options o;
	assert_int_equal(parse(&o, "--config /c --host-root /h --state-dir /s --nri-socket /n "
				   "--control-socket /t "
				   "--module-dir /m1 --module-dir=/m2 --check-config --reset-cache "
				   "--log-level debug"),
			 OPTIONS_RUN);
	assert_string_equal(o.config, "/c");
	assert_string_equal(o.host_root, "/h");
	assert_string_equal(o.state_dir, "/s");
	assert_string_equal(o.nri_socket, "/n");
	assert_string_equal(o.control_socket, "/t");
	assert_int_equal(o.n_module_dirs, 2);
	assert_string_equal(o.module_dirs[1], "/m2");
	assert_string_equal(o.log_level, "debug");
	assert_true(o.check_config && o.reset_cache);
}

static void test_done(void **state)
{
	struct options o;
	assert_int_equal(parse(&o, "--help"), OPTIONS_DONE);
	assert_int_equal(parse(&o, "--version"), OPTIONS_DONE);
}

static void test_wrong(void **state)
{
	static const char *const lines[] = {"--unheard-of",	"--config", "stray",
					    "--log-level loud", "-x",	    "--check-config=yes"};
	struct options o;
	char many[1024] = "";
	for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_int_equal(parse(&o, lines[i]), OPTIONS_WRONG);
	for (unsigned i = 0; i <= MODULE_DIRS_MAX; i++)
		(void)strcat(many, "--module-dir /m ");
	assert_int_equal(parse(&o, many), OPTIONS_WRONG);
}

/* ---- systemd --------------------------------------------------------------------------------- */

static int manager_fd;
static char path[64];

static void expect(const char *text)
{
	char got[600];
	ssize_t n = recv(manager_fd, got, sizeof got - 1, MSG_DONTWAIT);
	assert_true(n >= 0);
	got[n] = '\0';
	if (!strstr(got, text))
		fail_msg("'%s' does not tell '%s'", got, text);
}

static int listen_as_manager(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)snprintf(path, sizeof path, "/tmp/t_daemon.%d", (int)getpid());
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager_fd, (const struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
	return 0;
}

static int hang_up(void **state)
{
	(void)close(manager_fd);
	(void)unlink(path);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	return 0;
}

static void test_notify(void **state)
{
	struct loop *loop = loop_new();
	struct sd *sd = sd_new(loop);
	sd_status(sd, "waiting for godot");
	expect("STATUS=waiting for godot");
	sd_status(sd, "waiting for godot"); /* told already */
	sd_ready(sd, "running");
	expect("READY=1\nSTATUS=running");
	sd_reloading(sd);
	expect("RELOADING=1\nMONOTONIC_USEC=");
	sd_stopping(sd);
	expect("STOPPING=1");
	sd = sd_free(sd);
	loop_free(loop);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void test_watchdog(void **state)
{
	struct loop *loop = loop_new();
	char pid[16];
	(void)snprintf(pid, sizeof pid, "%d", (int)getpid());
	assert_int_equal(setenv("WATCHDOG_USEC", "20000", 1), 0);
	assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
	struct sd *sd = sd_new(loop);
	expect("WATCHDOG=1");
	struct loop_timer *t = loop_timer_new(loop, stop, loop);
	assert_int_equal(loop_timer_arm(t, 100), 0);
	assert_int_equal(loop_run(loop), 0);
	expect("WATCHDOG=1");
	sd_free(sd);
	/* meant for another process, or nonsense */
	while (recv(manager_fd, pid, sizeof pid, MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setenv("WATCHDOG_PID", "1", 1), 0);
	sd_free(sd_new(loop));
	assert_int_equal(unsetenv("WATCHDOG_PID"), 0);
	assert_int_equal(setenv("WATCHDOG_USEC", "soon", 1), 0);
	sd_free(sd_new(loop));
	assert_int_equal(recv(manager_fd, pid, sizeof pid, MSG_DONTWAIT), -1);
	loop_timer_free(t);
	loop_free(loop);
}

static void test_no_manager(void **state)
{
	static const char *const places[] = {"", "relative", "@", "/nowhere/at/all"};
	struct loop *loop = loop_new();
	char longest[200];
	memset(longest, 'x', sizeof longest);
	longest[0] = '/';
	longest[sizeof longest - 1] = '\0';
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(setenv("NOTIFY_SOCKET", i < 4 ? places[i] : longest, 1), 0);
		struct sd *sd = sd_new(loop);
		sd_ready(sd, "nobody listens");
		sd_free(sd);
	}
	assert_int_equal(setenv("NOTIFY_SOCKET", "@abstract-t-daemon", 1), 0);
	sd_free(sd_new(loop));
	assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
	struct sd *sd = sd_new(loop);
	sd_status(sd, "nobody listens");
	sd_free(sd);
	assert_null(sd_free(NULL));
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_done),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test_setup_teardown(test_notify, listen_as_manager, hang_up),
		cmocka_unit_test_setup_teardown(test_watchdog, listen_as_manager, hang_up),
		cmocka_unit_test(test_no_manager),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
