/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that fail under sockets, listeners and the client that waits: each of them in turn,
 * with each error that matters. What comes of it has a sentence that names the place, no descriptor
 * is left open, and no file stays behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/lib/util/log.h"
#include "core/lib/wire/client.h"
#include "core/lib/wire/listener.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define EVERY 0u

/* ---- calls that fail ------------------------------------------------------------------------- */

enum call {
	SOCKET,
	CONNECT,
	BIND,
	LISTEN,
	ACCEPT,
	FCHMOD,
	CHMOD,
	SEND,
	RECV,
	POLL,
	FCNTL,
	N_CALLS
};

static struct {
	bool armed;
	enum call call;
	unsigned at; /* which one, from 1; EVERY */
	int error;
	unsigned n, n_failed;
} fault;

static bool fails(enum call call)
{
	if (!fault.armed || fault.call != call)
		return false;
	fault.n++;
	if (fault.at != EVERY && fault.at != fault.n)
		return false;
	fault.n_failed++;
	errno = fault.error;
	return true;
}

static void arm(enum call call, unsigned at, int error)
{
	fault = (typeof(fault)){.armed = true, .call = call, .at = at, .error = error};
}

/* Returns the number of failed calls. */
static unsigned disarm(void)
{
	fault.armed = false;
	return fault.n_failed;
}

#define FOR_ALL __attribute__((visibility("default")))
#define CALL(name, number, ...) (int)(fails(name) ? -1 : syscall(number, __VA_ARGS__))

FOR_ALL int socket(int domain, int type, int protocol)
{
	return CALL(SOCKET, SYS_socket, domain, type, protocol);
}

FOR_ALL int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return CALL(CONNECT, SYS_connect, fd, addr, len);
}

FOR_ALL int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return CALL(BIND, SYS_bind, fd, addr, len);
}

FOR_ALL int listen(int fd, int n)
{
	return CALL(LISTEN, SYS_listen, fd, n);
}

FOR_ALL int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return CALL(ACCEPT, SYS_accept4, fd, addr, len, flags);
}

FOR_ALL int fchmod(int fd, mode_t mode)
{
	return CALL(FCHMOD, SYS_fchmod, fd, mode);
}

FOR_ALL int chmod(const char *path, mode_t mode)
{
	return CALL(CHMOD, SYS_chmod, path, mode);
}

FOR_ALL ssize_t send(int fd, const void *data, size_t n, int flags)
{
	return fails(SEND) ? -1 : syscall(SYS_sendto, fd, data, n, flags, NULL, 0);
}

FOR_ALL ssize_t recv(int fd, void *data, size_t n, int flags)
{
	return fails(RECV) ? -1 : syscall(SYS_recvfrom, fd, data, n, flags, NULL, NULL);
}

FOR_ALL int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return CALL(POLL, SYS_poll, fds, n, timeout);
}

/* ---- a folder -------------------------------------------------------------------------------- */

struct place {
	char dir[64], path[96];
	unsigned n_open; /* descriptors */
};

static unsigned count_open(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	assert_non_null(p);
	log_init("test");
	log_set_level(LOG_ERROR);
	(void)snprintf(p->dir, sizeof p->dir, "/tmp/nri-rp-wire.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->path, sizeof p->path, "%s/sock", p->dir);
	p->n_open = count_open();
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	assert_int_equal(count_open(), p->n_open);
	assert_int_equal(rmdir(p->dir), 0); /* no files are left in the directory */
	free(p);
	return 0;
}

static bool is_there(const struct place *p)
{
	return access(p->path, F_OK) == 0;
}

static void expect_told(const struct err *err, int code, const char *part)
{
	assert_int_equal(err->code, code);
	if (!strstr(err->text, part))
		fail_msg("'%s' does not tell '%s'", err->text, part);
	if (!strstr(err->text, strerror(-code)))
		fail_msg("'%s' does not tell '%s'", err->text, strerror(-code));
}

/* ---- sockets --------------------------------------------------------------------------------- */

static void test_connecting_fails(void **state)
{
	static const struct {
		enum call call;
		int error;
		bool names_path;
	} cases[] = {{SOCKET, EMFILE, false},  {SOCKET, ENFILE, false},
		     {SOCKET, ENOBUFS, false}, {CONNECT, EACCES, true},
		     {CONNECT, EAGAIN, true},  {CONNECT, EPERM, true},
		     {CONNECT, ENOMEM, true},  {CONNECT, ECONNREFUSED, true}};
	const struct place *p = *state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct err err = ERR_INIT;
		arm(cases[i].call, 1, cases[i].error);
		int fd = wire_connect_unix(p->path, &err);
		assert_int_equal(disarm(), 1);
		assert_int_equal(fd, -cases[i].error);
		expect_told(&err, -cases[i].error, cases[i].names_path ? p->path : "socket");
		assert_int_equal(count_open(), p->n_open);
	}
}

static void leave_stale(const struct place *p)
{
	struct err err = ERR_INIT;
	int fd = wire_listen_unix(p->path, 0600, &err);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_true(is_there(p));
}

static void test_listening_fails(void **state)
{
	static const struct {
		enum call call;
		int error;
		bool names_path;
	} cases[] = {
		{SOCKET, EMFILE, false}, {FCHMOD, EPERM, true},	     {BIND, EADDRINUSE, true},
		{BIND, EROFS, true},	 {BIND, ENOSPC, true},	     {CHMOD, EPERM, true},
		{CHMOD, EIO, true},	 {LISTEN, EADDRINUSE, true}, {LISTEN, EOPNOTSUPP, true}};
	const struct place *p = *state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct err err = ERR_INIT;
		arm(cases[i].call, 1, cases[i].error);
		int fd = wire_listen_unix(p->path, 0600, &err);
		assert_int_equal(disarm(), 1);
		assert_int_equal(fd, -cases[i].error);
		expect_told(&err, -cases[i].error, cases[i].names_path ? p->path : "socket");
		assert_false(is_there(p));
		assert_int_equal(count_open(), p->n_open);
	}
}

/* Checks that a socket is left if it cannot be determined whether it has a listener. */
static void test_what_may_be_in_use_stays(void **state)
{
	static const struct {
		enum call call;
		int error, result;
	} cases[] = {{SOCKET, EMFILE, -EMFILE},
		     {CONNECT, EACCES, -EACCES},
		     {CONNECT, EPROTOTYPE, -EPROTOTYPE},
		     /* the queue of the listener is full, so there is a listener */
		     {CONNECT, EAGAIN, -EADDRINUSE}};
	const struct place *p = *state;
	leave_stale(p);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct err err = ERR_INIT;
		arm(cases[i].call, 1, cases[i].error);
		assert_int_equal(wire_listen_unix(p->path, 0600, &err), cases[i].result);
		assert_int_equal(disarm(), 1);
		assert_true(err.text[0] != '\0');
		assert_true(is_there(p));
		assert_int_equal(count_open(), p->n_open);
	}
	assert_int_equal(unlink(p->path), 0);
}

static void test_accepting_fails(void **state)
{
	static const int errors[] = {EAGAIN, EMFILE, ENFILE, ENOMEM, ENOBUFS, ECONNABORTED, EINTR};
	const struct place *p = *state;
	struct err err = ERR_INIT;
	int fd = wire_listen_unix(p->path, 0600, &err);
	assert_true(fd >= 0);
	assert_int_equal(wire_accept(fd), -EAGAIN); /* no connection is pending */
	for (unsigned i = 0; i < COUNT(errors); i++) {
		arm(ACCEPT, 1, errors[i]);
		assert_int_equal(wire_accept(fd), -errors[i]);
		assert_int_equal(disarm(), 1);
	}
	(void)close(fd);
	assert_int_equal(unlink(p->path), 0);
}

static void test_what_is_no_socket(void **state)
{
	struct err err = ERR_INIT;
	struct ucred peer = {.pid = 4711};
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(wire_adopt(ends[0], &err), -ENOTSOCK);
	assert_non_null(strstr(err.text, "inherited file descriptor"));
	assert_int_equal(wire_peer(ends[0], &peer), -ENOTSOCK);
	assert_int_equal(peer.pid, 4711); /* untouched */
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(wire_adopt(ends[0], &err), -EBADF);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(wire_adopt(fd, &err), -EPROTOTYPE);
	assert_non_null(strstr(err.text, "not a stream"));
	(void)close(fd);
}

/* ---- listeners ------------------------------------------------------------------------------- */

struct listening {
	struct loop *loop;
	struct listener *listener;
	struct loop_timer *end;
	unsigned n_accepted, n_errors;
	int last_error;
	unsigned stop_at; /* accepted or failed */
	bool free_it;
	bool timed_out;
};

static void on_end(void *arg)
{
	struct listening *l = arg;
	l->timed_out = true;
	loop_stop(l->loop);
}

static void on_accepted(int fd, void *arg)
{
	struct listening *l = arg;
	if (fd >= 0) {
		l->n_accepted++;
		(void)close(fd);
	} else {
		l->n_errors++;
		l->last_error = fd;
	}
	if (l->free_it)
		l->listener = listener_free(l->listener);
	if (l->n_accepted + l->n_errors >= l->stop_at)
		loop_stop(l->loop);
}

static struct listener_config config_of(struct listening *l, const struct place *p)
{
	return (struct listener_config){.what = "tested socket",
					.path = p->path,
					.mode = 0600,
					.accepted = on_accepted,
					.arg = l};
}

static void begin(struct listening *l, const struct place *p)
{
	const struct listener_config config = config_of(l, p);
	struct err err = ERR_INIT;
	*l = (struct listening){.loop = loop_new()};
	assert_non_null(l->loop);
	l->end = loop_timer_new(l->loop, on_end, l);
	assert_int_equal(listener_new(l->loop, &config, &l->listener, &err), 0);
}

static void finish(struct listening *l)
{
	listener_free(l->listener);
	loop_timer_free(l->end);
	loop_free(l->loop);
}

/* Runs the loop until this many connections have been accepted or refused, for at most a minute. */
static void run_until(struct listening *l, unsigned n)
{
	l->stop_at = n;
	assert_int_equal(loop_timer_arm(l->end, 60000), 0);
	assert_int_equal(loop_run(l->loop), 0);
	loop_timer_disarm(l->end);
	assert_false(l->timed_out);
}

static int knock(const struct place *p)
{
	struct err err = ERR_INIT;
	int fd = wire_connect_unix(p->path, &err);
	assert_true(fd >= 0);
	return fd;
}

static void test_a_listener_that_cannot_be(void **state)
{
	static const struct {
		enum call call;
		int error;
	} cases[] = {{SOCKET, EMFILE},
		     {FCHMOD, EPERM},
		     {BIND, EROFS},
		     {CHMOD, EIO},
		     {LISTEN, EADDRINUSE}};
	const struct place *p = *state;
	struct listening l = {.loop = loop_new()};
	const struct listener_config config = config_of(&l, p);
	unsigned n_open = count_open();
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct listener *made = NULL;
		struct err err = ERR_INIT;
		arm(cases[i].call, 1, cases[i].error);
		assert_int_equal(listener_new(l.loop, &config, &made, &err), -cases[i].error);
		assert_int_equal(disarm(), 1);
		assert_null(made);
		assert_int_equal(strncmp(err.text, "tested socket: ", 15), 0);
		expect_told(&err, -cases[i].error, "socket");
		assert_false(is_there(p));
		assert_int_equal(count_open(), n_open);
	}
	loop_free(l.loop);
}

/* Checks that a shortage of descriptors is logged once. When descriptors are free again, the
 * waiting connections are accepted. */
static void test_descriptors_are_short(void **state)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS};
	const struct place *p = *state;
	for (unsigned i = 0; i < COUNT(errors); i++) {
		struct listening l;
		begin(&l, p);
		int fd = knock(p);
		arm(ACCEPT, 1, errors[i]);
		run_until(&l, 1);
		assert_int_equal(l.n_errors, 1);
		assert_int_equal(l.last_error, -errors[i]);
		run_until(&l, 2);
		assert_int_equal(disarm(), 1);
		assert_int_equal(l.n_errors, 1);
		assert_int_equal(l.n_accepted, 1);
		(void)close(fd);
		finish(&l);
	}
}

/* Checks that a connection whose client has left is ignored. */
static void test_connections_that_are_gone(void **state)
{
	static const int errors[] = {ECONNABORTED, EINTR, EPROTO};
	const struct place *p = *state;
	for (unsigned i = 0; i < COUNT(errors); i++) {
		struct listening l;
		begin(&l, p);
		int fd = knock(p);
		arm(ACCEPT, 1, errors[i]);
		run_until(&l, 1);
		assert_int_equal(disarm(), 1);
		assert_int_equal(l.n_errors, 0);
		assert_int_equal(l.n_accepted, 1);
		(void)close(fd);
		finish(&l);
	}
}

static void test_a_listener_that_goes_within_its_callback(void **state)
{
	const struct place *p = *state;
	struct listening l;
	begin(&l, p);
	int fds[] = {knock(p), knock(p), knock(p)};
	l.free_it = true;
	run_until(&l, 1);
	assert_int_equal(l.n_accepted, 1);
	assert_null(l.listener);
	assert_false(is_there(p));
	for (unsigned i = 0; i < COUNT(fds); i++)
		(void)close(fds[i]);
	finish(&l);
}

static void test_the_next_ones_socket_stays(void **state)
{
	const struct place *p = *state;
	struct listening l;
	struct err err = ERR_INIT;
	begin(&l, p);
	assert_int_equal(unlink(p->path), 0);
	int fd = wire_listen_unix(p->path, 0600, &err);
	assert_true(fd >= 0);
	finish(&l);
	assert_true(is_there(p));
	(void)close(fd);
	assert_int_equal(unlink(p->path), 0);
}

/* ---- the client that waits ------------------------------------------------------------------- */

struct pair {
	struct ttrpc_client client;
	int peer;
};

static void open_pair(struct pair *p)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	ttrpc_client_init(&p->client, fds[0]);
	p->peer = fds[1];
}

static void close_pair(struct pair *p)
{
	(void)close(p->client.fd);
	ttrpc_client_fini(&p->client);
	(void)close(p->peer);
}

static int ask(struct pair *p, struct err *err)
{
	const uint8_t *payload;
	size_t n;
	return ttrpc_client_call(&p->client, "test.Service", "Method", NULL, 20, &payload, &n, err);
}

static void test_a_call_fails(void **state)
{
	static const struct {
		enum call call;
		int error, result;
		const char *told;
	} cases[] = {
		{SEND, EPIPE, -ECONNRESET, "writing"},	    {SEND, ENOBUFS, -ENOBUFS, "writing"},
		{RECV, ECONNRESET, -ECONNRESET, "reading"}, {RECV, EIO, -EIO, "reading"},
		{POLL, ENOMEM, -ENOMEM, "waiting"},	    {POLL, EINVAL, -EINVAL, "waiting"}};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct err err = ERR_INIT;
		struct pair p;
		open_pair(&p);
		arm(cases[i].call, 1, cases[i].error);
		assert_int_equal(ask(&p, &err), cases[i].result);
		assert_int_equal(disarm(), 1);
		if (!strstr(err.text, cases[i].told))
			fail_msg("'%s' does not tell '%s'", err.text, cases[i].told);
		close_pair(&p);
	}
}

/* Checks that an interrupted system call is repeated, and the only limit is the timeout. */
static void test_a_call_is_interrupted(void **state)
{
	static const struct {
		enum call call;
		int error;
	} cases[] = {{SEND, EINTR}, {SEND, EAGAIN}, {RECV, EINTR}, {POLL, EINTR}};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct err err = ERR_INIT;
		struct pair p;
		char sent[64];
		open_pair(&p);
		arm(cases[i].call, 1, cases[i].error);
		assert_int_equal(ask(&p, &err), -ETIMEDOUT);
		assert_int_equal(disarm(), 1);
		assert_true(recv(p.peer, sent, sizeof sent, 0) > 10); /* all was sent */
		close_pair(&p);
	}
}

/* ---- trunks ---------------------------------------------------------------------------------- */

struct ended {
	struct loop *loop;
	struct err err;
	unsigned n_closed, n_calls;
	int call_error;
};

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct ended *e = arg;
	e->n_closed++;
	e->err = *err;
	loop_stop(e->loop);
}

static void on_answer(const struct rpc_result *r, void *arg)
{
	struct ended *e = arg;
	e->n_calls++;
	e->call_error = r->error;
}

/* Checks that a broken connection is reported once, after its pending calls. */
static void test_a_trunk_breaks(void **state)
{
	static const struct {
		enum call call;
		int error;
	} cases[] = {{SEND, EPIPE}, {SEND, ENOBUFS}, {RECV, ECONNRESET}, {RECV, EIO}};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct ended e = {.loop = loop_new(), .err = ERR_INIT};
		const struct trunk_config config = {.closed = on_closed, .arg = &e};
		struct trunk *trunk;
		struct err err = ERR_INIT;
		int fds[2];
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
		assert_int_equal(trunk_new(e.loop, fds[0], &config, &trunk, &err), 0);
		arm(cases[i].call, EVERY, cases[i].error);
		assert_int_equal(rpc_call(trunk_rpc(trunk, 0), "test.Service", "Method", NULL, 0,
					  on_answer, &e),
				 0);
		assert_int_equal(write(fds[1], "x", 1), 1); /* something to read, too */
		assert_int_equal(loop_run(e.loop), 0);
		assert_true(disarm() >= 1);
		assert_int_equal(e.n_closed, 1);
		assert_int_equal(e.n_calls, 1);
		assert_int_equal(e.call_error, -ECONNRESET);
		assert_true(e.err.text[0] != '\0');
		assert_false(trunk_connected(trunk));
		trunk_free(trunk);
		(void)close(fds[1]);
		loop_free(e.loop);
	}
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_connecting_fails),
		test(test_listening_fails),
		test(test_what_may_be_in_use_stays),
		test(test_accepting_fails),
		test(test_what_is_no_socket),
		test(test_a_listener_that_cannot_be),
		test(test_descriptors_are_short),
		test(test_connections_that_are_gone),
		test(test_a_listener_that_goes_within_its_callback),
		test(test_the_next_ones_socket_stays),
		test(test_a_call_fails),
		test(test_a_call_is_interrupted),
		test(test_a_trunk_breaks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
