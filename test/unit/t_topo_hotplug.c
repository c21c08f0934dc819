/* SPDX-License-Identifier: Apache-2.0 */
/* topo: the watcher for CPUs and memory that come and go. Uevents come through a socket pair
 * in place of the kernel's. */
#include <errno.h>
#include <linux/netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/topo/hotplug.h"

#define EVENT(action, path, subsystem)                                                             \
	action "@" path "\0ACTION=" action "\0DEVPATH=" path "\0SUBSYSTEM=" subsystem "\0SEQNUM=1"
#define CPU_ONLINE EVENT("online", "/devices/system/cpu/cpu3", "cpu")

struct fixture {
	struct loop *loop;
	struct loop_timer *end;
	struct hotplug *h;
	struct loop_timer *again;
	int kernel; /* the kernel's end of the socket */
	unsigned n_told, n_sent, to_send;
};

static void on_change(void *arg)
{
	struct fixture *f = arg;
	f->n_told++;
	loop_stop(f->loop);
}

static void on_end(void *arg)
{
	struct fixture *f = arg;
	loop_stop(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct err err = ERR_INIT;
	int fds[2];
	assert_non_null(f);
	f->loop = loop_new();
	assert_non_null(f->loop);
	f->end = loop_timer_new(f->loop, on_end, f);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	f->kernel = fds[0];
	assert_int_equal(hotplug_new_on(f->loop, fds[1], on_change, f, &f->h, &err), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	assert_null(hotplug_free(f->h));
	loop_timer_free(f->end);
	loop_timer_free(f->again);
	loop_free(f->loop);
	(void)close(f->kernel);
	free(f);
	return 0;
}

static void send_event(const struct fixture *f, const char *msg, size_t len)
{
	assert_int_equal(send(f->kernel, msg, len, 0), (ssize_t)len);
}
#define SEND(f, msg) send_event((f), (msg), sizeof(msg))

/* Runs until told, or for some time. */
static void run(struct fixture *f, unsigned ms)
{
	assert_int_equal(loop_timer_arm(f->end, ms), 0);
	assert_int_equal(loop_run(f->loop), 0);
	loop_timer_disarm(f->end);
}

static void test_events(void **state)
{
	static const struct {
		const char *msg;
		size_t len;
		bool matters;
	} cases[] = {
#define CASE(text, matters) {text, sizeof(text), matters}
		CASE(CPU_ONLINE, true),
		CASE(EVENT("offline", "/devices/system/cpu/cpu3", "cpu"), true),
		CASE(EVENT("add", "/devices/system/cpu/cpu3", "cpu"), true),
		CASE(EVENT("remove", "/devices/system/node/node1", "node"), true),
		CASE(EVENT("online", "/devices/system/memory/memory7", "memory"), true),
		CASE(EVENT("change", "/devices/system/cpu/cpu3", "cpu"), false),
		CASE(EVENT("onlined", "/devices/system/cpu/cpu3", "cpu"), false),
		CASE(EVENT("add", "/devices/virtual/net/veth0", "net"), false),
		CASE(EVENT("add", "/devices/system/cpu/cpu3", "cpuid"), false),
		CASE("add@/devices/system/cpu/cpu3", false),
		CASE("ACTION=add", false),
		CASE("SUBSYSTEM=cpu", false),
		CASE("", false),
		{CPU_ONLINE, sizeof(CPU_ONLINE) - 1, false}, /* no NUL at its end */
		{CPU_ONLINE, 30, false},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(hotplug_event_matters(cases[i].msg, cases[i].len),
				 cases[i].matters);
}

static void test_tells(void **state)
{
	struct fixture *f = *state;
	SEND(f, CPU_ONLINE);
	run(f, 10000);
	assert_int_equal(f->n_told, 1);
	SEND(f, EVENT("offline", "/devices/system/memory/memory32", "memory"));
	run(f, 10000);
	assert_int_equal(f->n_told, 2);
}

static void test_burst_is_one(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 8; i++)
		SEND(f, CPU_ONLINE);
	run(f, 10000);
	assert_int_equal(f->n_told, 1);
	run(f, 2 * HOTPLUG_QUIET_MS);
	assert_int_equal(f->n_told, 1);
}

static void test_others_do_not_matter(void **state)
{
	struct fixture *f = *state;
	char big[9000] = "add@/devices/system/cpu/cpu3";
	SEND(f, EVENT("add", "/devices/virtual/net/veth0", "net"));
	SEND(f, EVENT("change", "/devices/system/cpu/cpu3", "cpu"));
	SEND(f, EVENT("change", "/devices/virtual/block/dm-0", "block"));
	SEND(f, "x");
	SEND(f, "offline@/devices/systen/cpu/cpu3");
	send_event(f, big, sizeof big);
	run(f, 2 * HOTPLUG_QUIET_MS);
	assert_int_equal(f->n_told, 0);
}

/* Messages of other senders do not wake the daemon: the socket filter in the kernel drops them,
 * which the sender cannot detect. */
static void test_filter(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *msg;
		bool passes;
	} cases[] = {
		{"add@/devices/system/cpu/cpu3", true},
		{"online@/devices/system/memory/memory1", true},
		{"remove@/devices/system/node/node0", true},
		{"offline@/devices/system/cpu/cpu3", true},
		{"add@/devices/virtual/net/eth0/queues/rx-0", false},
		{"add@/kernel/slab/x", false},
		{"bind@/devices/system/cpu/cpu3", false},
		{"", false},
		{"add@/devices/sys", false},
	};
	int fds[2];
	struct err err = ERR_INIT;
	struct hotplug *h = NULL;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(hotplug_new_on(f->loop, fds[1], on_change, f, &h, &err), 0);
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char buf[128];
		size_t n = strlen(cases[i].msg);
		(void)send(fds[0], cases[i].msg, n, 0);
		ssize_t got = recv(fds[1], buf, sizeof buf, MSG_DONTWAIT);
		if (cases[i].passes)
			assert_int_equal(got, (ssize_t)n);
		else
			assert_int_equal(got, -1);
	}
	hotplug_free(h);
	(void)close(fds[0]);
}

static void send_again(void *arg)
{
	struct fixture *f = arg;
	SEND(f, CPU_ONLINE);
	if (++f->n_sent < f->to_send)
		(void)loop_timer_arm(f->again, HOTPLUG_QUIET_MS / 4);
}

/* Checks that an endless series of events is reported while it continues. */
static void test_endless_burst(void **state)
{
	struct fixture *f = *state;
	f->to_send = 1000;
	f->again = loop_timer_new(f->loop, send_again, f);
	send_again(f);
	run(f, 20000);
	assert_int_equal(f->n_told, 1);
}

static void test_trigger(void **state)
{
	struct fixture *f = *state;
	hotplug_trigger(f->h);
	assert_int_equal(f->n_told, 0);
	run(f, 10000);
	assert_int_equal(f->n_told, 1);
}

static void test_not_the_real_root(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct fs_root root = {.fd = -1, .real = false};
	struct hotplug *h = NULL;
	assert_int_equal(hotplug_new(f->loop, &root, on_change, f, &h, &err), 0);
	hotplug_trigger(h);
	run(f, 10000);
	assert_int_equal(f->n_told, 1);
	hotplug_free(h);
	assert_null(hotplug_free(NULL));
}

/* Checks that a netlink message of another process is ignored. */
static void test_forged(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct hotplug *h = NULL;
	struct sockaddr_nl to = {.nl_family = AF_NETLINK};
	socklen_t len = sizeof to;
	int from = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_USERSOCK);
	assert_true(from >= 0 && fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(hotplug_new_on(f->loop, fd, on_change, f, &h, &err), 0);
	/* The first to see that the filter lets it through, the second for the watcher. */
	for (unsigned i = 0; i < 2; i++) {
		char buf[256];
		ssize_t n = sizeof(CPU_ONLINE);
		struct sockaddr *addr = (struct sockaddr *)&to;
		assert_int_equal(sendto(from, CPU_ONLINE, sizeof(CPU_ONLINE), 0, addr, len), n);
		if (i == 0)
			assert_int_equal(recv(fd, buf, sizeof buf, 0), n);
	}
	run(f, 2 * HOTPLUG_QUIET_MS);
	assert_int_equal(f->n_told, 0);
	hotplug_free(h);
	(void)close(from);
}

/* Checks the real socket, if the kernel allows it. */
static void test_real_root(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct fs_root root = {.fd = -1, .real = true};
	struct hotplug *h = NULL;
	if (hotplug_new(f->loop, &root, on_change, f, &h, &err)) {
		assert_non_null(strstr(err.text, "uevents"));
		return;
	}
	hotplug_free(h);
}

/* Checks a descriptor that cannot be watched. The watcher closes it. */
static void test_bad_socket(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct hotplug *h = NULL;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(hotplug_new_on(f->loop, fds[0], on_change, f, &h, &err), -ENOTSOCK);
	assert_null(h);
	assert_true(err.text[0]);
	assert_int_equal(close(fds[0]), -1);
	(void)close(fds[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		TEST(test_tells),
		TEST(test_burst_is_one),
		TEST(test_others_do_not_matter),
		TEST(test_filter),
		TEST(test_endless_burst),
		TEST(test_trigger),
		TEST(test_not_the_real_root),
		TEST(test_real_root),
		TEST(test_bad_socket),
		TEST(test_forged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
