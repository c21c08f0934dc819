/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets, and the client that waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/util/str.h"
#include "core/lib/wire/client.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"

struct fixture {
	char folder[64], path[80];
	int fds[2]; /* ours, the peer's */
	struct ttrpc_client client;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	(void)snprintf(f->folder, sizeof f->folder, "/tmp/t_sock.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	(void)snprintf(f->path, sizeof f->path, "%s/s.sock", f->folder);
	assert_int_equal(
		0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, f->fds));
	ttrpc_client_init(&f->client, f->fds[0]);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	ttrpc_client_fini(&f->client);
	for (unsigned i = 0; i < 2; i++)
		if (f->fds[i] >= 0)
			(void)close(f->fds[i]);
	(void)unlink(f->path);
	assert_int_equal(0, rmdir(f->folder));
	free(f);
	return 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(0, stat(path, &st));
	return st.st_mode & 07777;
}

static void test_connect(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	assert_int_equal(-ENOENT, wire_connect_unix(f->path, &err));
	assert_non_null(strstr(err.text, f->path));
	int l = wire_listen_unix(f->path, 0600, NULL);
	assert_true(l >= 0);
	assert_int_equal(-EAGAIN, wire_accept(l));
	int c = wire_connect_unix(f->path, NULL);
	int s = wire_accept(l);
	assert_true(c >= 0 && s >= 0);
	struct ucred peer;
	assert_int_equal(0, wire_peer(s, &peer));
	assert_int_equal(getpid(), peer.pid);
	assert_int_equal(geteuid(), peer.uid);
	assert_int_equal(-EBADF, wire_peer(-1, &peer));
	assert_int_equal(1, write(c, "x", 1));
	char byte;
	assert_int_equal(1, read(s, &byte, 1));
	assert_int_equal(-1, read(s, &byte, 1));
	assert_int_equal(EAGAIN, errno);
	assert_true(fcntl(s, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(c, F_GETFD) & FD_CLOEXEC);
	(void)close(s);
	(void)close(c);
	(void)close(l);
	assert_int_equal(-ECONNREFUSED, wire_connect_unix(f->path, NULL));
}

static void test_listen_replaces_stale(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	int l = wire_listen_unix(f->path, 0600, &err);
	assert_true(l >= 0);
	assert_int_equal(-EADDRINUSE, wire_listen_unix(f->path, 0600, &err));
	assert_non_null(strstr(err.text, "already"));
	(void)close(l);
	l = wire_listen_unix(f->path, 0600, &err);
	assert_true(l >= 0);
	(void)close(l);
}

static void test_listen_spares_files(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	int fd = open(f->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(-EEXIST, wire_listen_unix(f->path, 0600, &err));
	assert_non_null(strstr(err.text, "not a socket"));
	assert_int_equal(0, access(f->path, F_OK));
}

static void test_mode(void **state)
{
	struct fixture *f = *state;
	static const mode_t modes[] = {0600, 0660, 0666};
	static const mode_t masks[] = {0, 022, 077, 0777};
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 4; k++) {
			mode_t old = umask(masks[k]);
			int l = wire_listen_unix(f->path, modes[i], NULL);
			(void)umask(old);
			assert_true(l >= 0);
			assert_int_equal(modes[i], mode_of(f->path));
			(void)close(l);
			assert_int_equal(0, unlink(f->path));
		}
}

static void test_bad_paths(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char path[200];
	memset(path, 'p', sizeof path);
	path[108] = '\0';
	assert_int_equal(-ENAMETOOLONG, wire_connect_unix(path, &err));
	assert_non_null(strstr(err.text, "at most 107 bytes"));
	assert_int_equal(-ENAMETOOLONG, wire_listen_unix(path, 0600, NULL));
	path[107] = '\0';
	assert_int_equal(-ENOENT, wire_connect_unix(path, NULL));
	assert_int_equal(-EINVAL, wire_connect_unix("", &err));
	(void)snprintf(path, sizeof path, "%s/none/s.sock", f->folder);
	assert_int_equal(-ENOENT, wire_listen_unix(path, 0600, &err));
	(void)snprintf(path, sizeof path, "/proc/version/s.sock");
	assert_int_equal(-ENOTDIR, wire_listen_unix(path, 0600, &err));
}

static void test_adopt(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	int fds[2];
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	assert_int_equal(0, wire_adopt(fds[0], &err));
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds));
	assert_int_equal(-EPROTOTYPE, wire_adopt(fds[0], &err));
	(void)close(fds[0]);
	(void)close(fds[1]);
	int fd = open(f->folder, O_RDONLY | O_CLOEXEC);
	assert_int_equal(-ENOTSOCK, wire_adopt(fd, &err));
	(void)close(fd);
	assert_int_equal(-EBADF, wire_adopt(fd, &err));
}

static void test_check_folder(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	assert_int_equal(0, wire_check_folder(f->path, &err));
	assert_int_equal(0, chmod(f->folder, 0770));
	assert_int_equal(-EPERM, wire_check_folder(f->path, &err));
	assert_non_null(strstr(err.text, "0770"));
	assert_int_equal(0, chmod(f->folder, 0707));
	assert_int_equal(-EPERM, wire_check_folder(f->path, &err));
	assert_int_equal(0, chmod(f->folder, 0755));
	assert_int_equal(0, wire_check_folder(f->path, &err));
	assert_int_equal(-EPERM, wire_check_folder("/tmp/x.sock", &err));
	assert_int_equal(-ENOENT, wire_check_folder("/nowhere/at/all", &err));
	char path[5000];
	memset(path, 'p', sizeof path);
	path[sizeof path - 1] = '\0';
	assert_int_equal(-ENAMETOOLONG, wire_check_folder(path, &err));
	if (geteuid() == 0) {
		assert_int_equal(0, chown(f->folder, 12345, 0));
		assert_int_equal(-EPERM, wire_check_folder(f->path, &err));
		assert_non_null(strstr(err.text, "is owned by user 12345"));
	}
}

/* ---- client: the peer's answer is in the socket before the request ---- */

static void answer(struct fixture *f, uint32_t stream, uint8_t type, const char *bytes, size_t n)
{
	uint8_t m[TTRPC_HEADER_SIZE + 2000];
	assert_true(n <= 2000);
	ttrpc_header_encode(m, &(struct ttrpc_header){(uint32_t)n, stream, type, 0});
	if (n)
		memcpy(m + TTRPC_HEADER_SIZE, bytes, n);
	assert_int_equal(TTRPC_HEADER_SIZE + n, write(f->fds[1], m, TTRPC_HEADER_SIZE + n));
}

static int ask(struct fixture *f, unsigned timeout_ms, char *ret, size_t size, struct err *err)
{
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	const uint8_t *payload = NULL;
	size_t n = 0;
	int r = ttrpc_client_call(&f->client, "some.Service", "Get", &pod.base, timeout_ms,
				  &payload, &n, err);
	if (!r)
		(void)snprintf(ret, size, "%.*s", (int)n, n ? (const char *)payload : "");
	return r;
}

static void test_client(void **state)
{
	struct fixture *f = *state;
	char text[100];
	answer(f, 1, TTRPC_RESPONSE, "\x12\x03one", 5);
	assert_int_equal(0, ask(f, 0, text, sizeof text, NULL));
	assert_string_equal("one", text);
	/* Responses without a call are skipped, and so are parts of messages. */
	answer(f, 1, TTRPC_RESPONSE, "\x12\x03old", 5);
	answer(f, 3, TTRPC_DATA, "abc", 3);
	answer(f, 3, TTRPC_RESPONSE, "\x12\x03two", 5);
	answer(f, 5, TTRPC_RESPONSE, NULL, 0);
	assert_int_equal(0, ask(f, 1000, text, sizeof text, NULL));
	assert_string_equal("two", text);
	assert_int_equal(0, ask(f, 1000, text, sizeof text, NULL));
	assert_string_equal("", text);

	uint8_t sent[200];
	struct ttrpc_header h;
	struct ttrpc_request r;
	ssize_t n = read(f->fds[1], sent, sizeof sent);
	ttrpc_header_decode(sent, &h);
	assert_int_equal(1, h.stream);
	assert_int_equal(TTRPC_REQUEST, h.type);
	assert_int_equal(0, ttrpc_request_decode(sent + TTRPC_HEADER_SIZE, h.length, &r, NULL));
	assert_string_equal("some.Service", r.service);
	assert_string_equal("Get", r.method);
	assert_true(r.timeout_ns == 0);
	size_t second = TTRPC_HEADER_SIZE + h.length;
	ttrpc_header_decode(sent + second, &h);
	assert_int_equal(3, h.stream);
	assert_int_equal(
		0, ttrpc_request_decode(sent + second + TTRPC_HEADER_SIZE, h.length, &r, NULL));
	assert_true(r.timeout_ns == 1000000000);
	assert_int_equal(3 * TTRPC_HEADER_SIZE + 3 * h.length - 6, n);
}

static void test_client_error(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[100];
	answer(f, 1, TTRPC_RESPONSE, "\x0a\x08\x08\x05\x12\x04none", 10);
	answer(f, 3, TTRPC_RESPONSE, "\x0a\x02\x08\x07", 4);
	answer(f, 5, TTRPC_RESPONSE, "\xff", 1);
	assert_int_equal(-EREMOTEIO, ask(f, 0, text, sizeof text, &err));
	assert_string_equal("none", err.text);
	assert_int_equal(TTRPC_NOT_FOUND, f->client.code);
	assert_int_equal(-EREMOTEIO, ask(f, 0, text, sizeof text, &err));
	assert_int_equal(TTRPC_PERMISSION_DENIED, f->client.code);
	assert_int_equal(-EBADMSG, ask(f, 0, text, sizeof text, &err));
}

static void test_client_timeout(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[100];
	answer(f, 1, TTRPC_RESPONSE, NULL, 0);
	assert_int_equal(0, ask(f, 1, text, sizeof text, &err));
	assert_int_equal(-ETIMEDOUT, ask(f, 1, text, sizeof text, &err));
	assert_string_equal("no reply in time", err.text);
	/* The request exceeds the socket's buffers and the peer does not read. */
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.name = malloc(TTRPC_MESSAGE_MAX);
	memset(pod.name, 'n', TTRPC_MESSAGE_MAX - 1);
	pod.name[TTRPC_MESSAGE_MAX - 1] = '\0';
	const uint8_t *payload;
	size_t n;
	assert_int_equal(-EMSGSIZE, ttrpc_client_call(&f->client, "some.Service", "Get", &pod.base,
						      1, &payload, &n, &err));
	pod.name[TTRPC_MESSAGE_MAX - 1000] = '\0';
	assert_int_equal(-ETIMEDOUT, ttrpc_client_call(&f->client, "some.Service", "Get", &pod.base,
						       1, &payload, &n, &err));
	free(pod.name);
}

static void test_client_lost(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[100];
	assert_int_equal(0, shutdown(f->fds[1], SHUT_WR));
	assert_int_equal(-ECONNRESET, ask(f, 0, text, sizeof text, &err));
	(void)close(f->fds[1]);
	f->fds[1] = -1;
	assert_int_equal(-ECONNRESET, ask(f, 0, text, sizeof text, &err));
	f->client.fd = -1;
	assert_int_equal(-EBADF, ask(f, 0, text, sizeof text, &err));
	f->client.fd = f->fds[0];
}

static void test_client_huge_answer(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[100];
	static const uint8_t head[] = {0, 0x40, 0, 1, 0, 0, 0, 1, 2, 0};
	assert_int_equal(sizeof head, write(f->fds[1], head, sizeof head));
	assert_int_equal(-EBADMSG, ask(f, 0, text, sizeof text, &err));
	assert_non_null(strstr(err.text, "4194305"));
}

/* ---- client and trunk ---- */

static void on_request(struct rpc_request *req, void *arg)
{
	if (str_eq(req->method, "Fail")) {
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "as you like it");
		return;
	}
	Nri__PodSandbox *pod = nri__pod_sandbox__unpack(NULL, req->payload_len, req->payload);
	(void)rpc_reply(req, pod ? &pod->base : NULL);
	if (pod)
		nri__pod_sandbox__free_unpacked(pod, NULL);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	loop_stop(arg);
}

static int serve_one(int fd)
{
	struct loop *loop = loop_new();
	struct trunk *trunk = NULL;
	if (!loop || trunk_new(loop, fd, &(struct trunk_config){.closed = on_closed, .arg = loop},
			       &trunk, NULL))
		return 1;
	rpc_serve(trunk_rpc(trunk, 0), on_request, NULL);
	int r = loop_run(loop);
	trunk_free(trunk);
	loop_free(loop);
	return r ? 1 : 0;
}

static void test_client_and_trunk(void **state)
{
	struct fixture *f = *state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		(void)close(f->fds[0]);
		_exit(serve_one(f->fds[1]));
	}
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	const uint8_t *payload = NULL;
	size_t n = 0;
	pod.name = malloc(4000001);
	memset(pod.name, 'n', 4000000);
	pod.name[4000000] = '\0';
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(0, ttrpc_client_call(&f->client, "s", "Echo", &pod.base, 20000,
						      &payload, &n, NULL));
		Nri__PodSandbox *back = nri__pod_sandbox__unpack(NULL, n, payload);
		assert_non_null(back);
		assert_string_equal(pod.name, back->name);
		nri__pod_sandbox__free_unpacked(back, NULL);
	}
	free(pod.name);
	struct err err = ERR_INIT;
	assert_int_equal(-EREMOTEIO, ttrpc_client_call(&f->client, "s", "Fail", NULL, 20000,
						       &payload, &n, &err));
	assert_string_equal("as you like it", err.text);
	(void)close(f->fds[1]);
	(void)close(f->fds[0]);
	f->fds[0] = f->fds[1] = -1;
	int status = -1;
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_int_equal(0, status);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_connect),
		TEST(test_listen_replaces_stale),
		TEST(test_listen_spares_files),
		TEST(test_mode),
		TEST(test_bad_paths),
		TEST(test_adopt),
		TEST(test_check_folder),
		TEST(test_client),
		TEST(test_client_error),
		TEST(test_client_timeout),
		TEST(test_client_lost),
		TEST(test_client_huge_answer),
		TEST(test_client_and_trunk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
