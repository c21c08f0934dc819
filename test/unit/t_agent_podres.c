/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests what nri-rp-agent requests from the kubelet, in which order, and what it caches: with Get,
 * with List where there is no Get, over connections that end. This file plays the kubelet at the
 * other end of a socket and answers what and when a test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/podres.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/sock.h"
#include "proto/podresources.pb-c.h"
#include "test/unit/h2_server.h"

#define GET "/v1.PodResourcesLister/Get"
#define LIST "/v1.PodResourcesLister/List"
#define FOREVER_MS 60000u
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- a kubelet ------------------------------------------------------------------------------- */

struct kubelet_side {
	struct loop *loop;
	struct loop_timer *timer, *tick;
	struct podres *podres;
	char dir[64], socket[96];
	int listen_fd, fd; /* -1: none */
	struct loop_io *listen_io, *io;
	struct h2_server h2;
	struct buf in;
	unsigned n_connections, n_calls; /* all so far */
	bool timed_out;
};

static void hang_up(struct kubelet_side *k)
{
	if (k->fd < 0)
		return;
	k->io = loop_io_free(k->io);
	(void)close(k->fd);
	k->fd = -1;
	h2_stop(&k->h2);
	buf_reset(&k->in);
}

static void send_all(struct kubelet_side *k)
{
	while (buf_len(&k->h2.out)) {
		ssize_t n = send(k->fd, buf_bytes(&k->h2.out), buf_len(&k->h2.out), MSG_NOSIGNAL);
		if (n <= 0)
			return; /* the agent has disconnected */
		buf_consume(&k->h2.out, (size_t)n);
	}
}

static void on_bytes(unsigned events, void *arg)
{
	struct kubelet_side *k = arg;
	uint8_t chunk[4096];
	ssize_t n = recv(k->fd, chunk, sizeof chunk, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		hang_up(k);
		return;
	}
	unsigned before = k->h2.n_streams;
	assert_int_equal(buf_add(&k->in, chunk, (size_t)n), 0);
	assert_int_equal(h2_feed_server(&k->h2, &k->in), 0);
	k->n_calls += k->h2.n_streams - before;
	send_all(k);
}

static void on_connect(unsigned events, void *arg)
{
	struct kubelet_side *k = arg;
	int fd = wire_accept(k->listen_fd);
	if (fd < 0)
		return;
	hang_up(k);
	k->fd = fd;
	k->n_connections++;
	assert_int_equal(h2_start(&k->h2), 0);
	assert_int_equal(h2_flush(&k->h2), 0);
	k->io = loop_io_new(k->loop, fd, LOOP_READ, on_bytes, k);
	assert_non_null(k->io);
	send_all(k);
}

static void open_socket(struct kubelet_side *k)
{
	struct err err = ERR_INIT;
	k->listen_fd = wire_listen_unix(k->socket, 0600, &err);
	assert_true(k->listen_fd >= 0);
	k->listen_io = loop_io_new(k->loop, k->listen_fd, LOOP_READ, on_connect, k);
	assert_non_null(k->listen_io);
}

static void close_socket(struct kubelet_side *k)
{
	if (k->listen_fd < 0)
		return;
	k->listen_io = loop_io_free(k->listen_io);
	(void)close(k->listen_fd);
	(void)unlink(k->socket);
	k->listen_fd = -1;
}

static void on_time_out(void *arg)
{
	struct kubelet_side *k = arg;
	k->timed_out = true;
	loop_stop(k->loop);
}

static void on_tick(void *arg)
{
	loop_stop(((struct kubelet_side *)arg)->loop);
}

static void until(struct kubelet_side *k, bool (*holds)(const struct kubelet_side *k, unsigned n),
		  unsigned n)
{
	k->timed_out = false;
	assert_int_equal(loop_timer_arm(k->timer, FOREVER_MS), 0);
	while (!holds(k, n) && !k->timed_out) {
		assert_int_equal(loop_timer_arm(k->tick, 2), 0);
		assert_int_equal(loop_run(k->loop), 0);
	}
	loop_timer_disarm(k->timer);
	if (k->timed_out)
		fail_msg("did not come to be (%u calls)", k->n_calls);
}

static int setup(void **state)
{
	struct kubelet_side *k = calloc(1, sizeof *k);
	struct err err = ERR_INIT;
	assert_non_null(k);
	log_init("test");
	log_set_level(LOG_ERROR);
	(void)snprintf(k->dir, sizeof k->dir, "/tmp/nri-rp-podres.XXXXXX");
	assert_non_null(mkdtemp(k->dir));
	(void)snprintf(k->socket, sizeof k->socket, "%s/kubelet.sock", k->dir);
	k->fd = k->listen_fd = -1;
	k->loop = loop_new();
	assert_non_null(k->loop);
	k->timer = loop_timer_new(k->loop, on_time_out, k);
	k->tick = loop_timer_new(k->loop, on_tick, k);
	open_socket(k);
	assert_int_equal(podres_new(k->loop, k->socket, &k->podres, &err), 0);
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct kubelet_side *k = *state;
	k->podres = podres_free(k->podres);
	hang_up(k);
	close_socket(k);
	buf_fini(&k->in);
	loop_timer_free(k->timer);
	loop_timer_free(k->tick);
	loop_free(k->loop);
	assert_int_equal(rmdir(k->dir), 0);
	free(k);
	return 0;
}

/* ---- requests to the kubelet ----------------------------------------------------------------- */

static bool was_called(const struct kubelet_side *k, unsigned n)
{
	return k->n_calls >= n;
}

/* The call that waits for an answer, and there is one only: its stream. */
static int32_t expect_call(struct kubelet_side *k, unsigned number, const char *method)
{
	until(k, was_called, number);
	assert_int_equal(k->n_calls, number);
	assert_string_equal(k->h2.path, method);
	assert_true(k->h2.n_streams > 0);
	k->h2.n_streams--;
	return k->h2.streams[0];
}

/* The request of Get is a message with two names. */
static void expect_request(struct kubelet_side *k, const char *ns, const char *name)
{
	assert_true(buf_len(&k->h2.body) > GRPC_PREFIX_SIZE);
	Podresources__GetRequest *m =
		podresources__get_request__unpack(NULL, buf_len(&k->h2.body) - GRPC_PREFIX_SIZE,
						  buf_bytes(&k->h2.body) + GRPC_PREFIX_SIZE);
	assert_non_null(m);
	assert_string_equal(m->pod_namespace, ns);
	assert_string_equal(m->pod_name, name);
	podresources__get_request__free_unpacked(m, NULL);
	buf_reset(&k->h2.body);
}

/* ---- answers of the kubelet ------------------------------------------------------------------ */

struct device {
	const char *ctr, *resource;
	int64_t nodes[4]; /* up to one that is negative */
};

struct pod_of {
	const char *name; /* in namespace "ns"; NULL: the end of a list */
	struct device devices[4]; /* up to one without a container */
};

static void add_pod(struct buf *out, const struct pod_of *from)
{
	Podresources__PodResources pod = PODRESOURCES__POD_RESOURCES__INIT;
	Podresources__ContainerResources ctrs[4], *ctr_list[4];
	Podresources__ContainerDevices devices[4], *device_list[4];
	Podresources__TopologyInfo where[4];
	Podresources__NUMANode nodes[16], *node_list[16];
	uint8_t packed[1024], head[3] = {0x0a};
	unsigned n_nodes = 0;
	for (unsigned i = 0; i < 4 && from->devices[i].ctr; i++) {
		const struct device *d = &from->devices[i];
		podresources__topology_info__init(&where[i]);
		where[i].nodes = &node_list[n_nodes];
		for (unsigned j = 0; j < 4 && d->nodes[j] >= 0; j++, n_nodes++) {
			podresources__numanode__init(&nodes[n_nodes]);
			nodes[n_nodes].id = d->nodes[j];
			node_list[n_nodes] = &nodes[n_nodes];
			where[i].n_nodes++;
		}
		podresources__container_devices__init(&devices[i]);
		devices[i].resource_name = (char *)(uintptr_t)d->resource;
		devices[i].topology = where[i].n_nodes ? &where[i] : NULL;
		device_list[i] = &devices[i];
		if (i && strcmp(ctrs[pod.n_containers - 1].name, d->ctr) == 0) {
			ctrs[pod.n_containers - 1].n_devices++;
			continue;
		}
		Podresources__ContainerResources *c = &ctrs[pod.n_containers];
		podresources__container_resources__init(c);
		c->name = (char *)(uintptr_t)d->ctr;
		c->devices = &device_list[i];
		c->n_devices = 1;
		ctr_list[pod.n_containers++] = c;
	}
	pod.containers = ctr_list;
	pod.namespace_ = (char *)(uintptr_t) "ns";
	pod.name = (char *)(uintptr_t)from->name;
	size_t n = podresources__pod_resources__pack(&pod, packed);
	assert_true(n < sizeof packed);
	head[1] = (uint8_t)(0x80 | (n & 0x7f));
	head[2] = (uint8_t)(n >> 7);
	assert_int_equal(buf_add(out, head, sizeof head), 0);
	assert_int_equal(buf_add(out, packed, n), 0);
}

static void answer_bytes(struct kubelet_side *k, int32_t stream, const void *data, size_t n)
{
	const uint8_t *bytes = data;
	uint8_t framed[8192] = {0, 0, 0, (uint8_t)(n >> 8), (uint8_t)n};
	assert_true(n + GRPC_PREFIX_SIZE <= sizeof framed);
	for (size_t i = 0; i < n; i++)
		framed[GRPC_PREFIX_SIZE + i] = bytes[i];
	const struct h2_answer a = {.data = framed, .n_data = n + GRPC_PREFIX_SIZE, .status = "0"};
	assert_int_equal(h2_answer(&k->h2, stream, &a), 0);
	send_all(k);
}

static void answer_pods(struct kubelet_side *k, int32_t stream, const struct pod_of *pods)
{
	struct buf b = BUF_INIT;
	for (; pods->name; pods++)
		add_pod(&b, pods);
	answer_bytes(k, stream, buf_bytes(&b), buf_len(&b));
	buf_fini(&b);
}

static void answer_status(struct kubelet_side *k, int32_t stream, const char *status,
			  const char *message)
{
	const struct h2_answer a = {.status = status, .message = message, .only_trailers = true};
	assert_int_equal(h2_answer(&k->h2, stream, &a), 0);
	send_all(k);
}

/* ---- clients of the agent -------------------------------------------------------------------- */

struct asker {
	struct kubelet_side *k;
	unsigned n;
	int error;
	char text[512];
	char pods[512]; /* "NAME CTR RESOURCE@NODE,NODE …; NAME …" */
	const char *next; /* asked for from inside */
	struct asker *next_asker;
};

static void describe(const Agent__PodDevices *pod, char *to, size_t size)
{
	size_t used = strlen(to);
	assert_string_equal(pod->namespace_, "ns");
	used += (size_t)snprintf(to + used, size - used, "%s%s", used ? "; " : "", pod->name);
	for (size_t i = 0; i < pod->n_containers; i++) {
		const Agent__ContainerDevices *c = pod->containers[i];
		used += (size_t)snprintf(to + used, size - used, " %s", c->name);
		for (size_t k = 0; k < c->n_devices; k++) {
			used += (size_t)snprintf(to + used, size - used, " %s",
						 c->devices[k]->resource);
			for (size_t j = 0; j < c->devices[k]->n_nodes; j++)
				used += (size_t)snprintf(to + used, size - used, "%c%u",
							 j ? ',' : '@', c->devices[k]->nodes[j]);
		}
	}
	assert_true(used < size);
}

static void ask(struct asker *a, struct kubelet_side *k, const char *name);

static void note(struct asker *a, int error, const char *text)
{
	const char *next = a->next;
	a->n++;
	a->error = error;
	(void)snprintf(a->text, sizeof a->text, "%s", text);
	a->next = NULL;
	if (next)
		ask(a->next_asker, a->k, next);
}

static void on_pod(const struct podres_pod *r, void *arg)
{
	struct asker *a = arg;
	assert_int_equal(r->error == 0, r->pod != NULL);
	if (r->pod)
		describe(r->pod, a->pods, sizeof a->pods);
	note(a, r->error, r->text);
}

static void on_list(const struct podres_list *r, void *arg)
{
	struct asker *a = arg;
	assert_true(!r->error || !r->list.n_pods);
	for (size_t i = 0; i < r->list.n_pods; i++)
		describe(r->list.pods[i], a->pods, sizeof a->pods);
	note(a, r->error, r->text);
}

static void ask(struct asker *a, struct kubelet_side *k, const char *name)
{
	const char *next = a->next;
	struct asker *next_asker = a->next_asker;
	*a = (struct asker){.k = k, .next = next, .next_asker = next_asker};
	if (name)
		podres_get(k->podres, "ns", name, on_pod, a);
	else
		podres_list(k->podres, on_list, a);
}

static const struct asker *awaited;

static bool is_answered(const struct kubelet_side *k, unsigned n)
{
	return awaited->n >= n;
}

static void await(struct asker *a)
{
	awaited = a;
	until(a->k, is_answered, 1);
	assert_int_equal(a->n, 1);
}

static void expect_pods(struct asker *a, const char *pods)
{
	await(a);
	if (a->error)
		fail_msg("%s", a->text);
	assert_string_equal(a->pods, pods);
}

static void expect_error(struct asker *a, int error, const char *part)
{
	await(a);
	assert_int_equal(a->error, error);
	if (!strstr(a->text, part))
		fail_msg("'%s' does not tell '%s'", a->text, part);
}

static const struct pod_of web[] = {{"web", {{"app", "x.com/nic", {1, -1}}}}, {0}},
			   both[] = {{"web", {{"app", "x.com/nic", {1, -1}}}},
				     {"db", {{"sql", "x.com/disk", {0, 2, -1}}}},
				     {"bare", {{0}}},
				     {0}};

/* A kubelet that has no Get; what is remembered then is what a first list has said. */
static void without_get(struct kubelet_side *k, const struct pod_of *pods)
{
	struct asker a = {0};
	ask(&a, k, "web");
	answer_status(k, expect_call(k, 1, GET), "12", "unknown method");
	answer_pods(k, expect_call(k, 2, LIST), pods);
	await(&a);
}

/* ---- Get ------------------------------------------------------------------------------------- */

static void test_get(void **state)
{
	static const struct {
		struct pod_of pods[2];
		const char *wanted;
	} cases[] = {
		{{{"web", {{"app", "x.com/nic", {1, -1}}}}}, "web app x.com/nic@1"},
		/* nodes of one resource are joined, resources are sorted, containers keep their
		 * order */
		{{{"web",
		   {{"b", "x.com/nic", {3, -1}},
		    {"b", "x.com/gpu", {0, -1}},
		    {"b", "x.com/nic", {1, 3, -1}},
		    {"a", "x.com/nic", {2, -1}}}}},
		 "web b x.com/gpu@0 x.com/nic@1,3 a x.com/nic@2"},
		/* devices without a node are left out, and so are containers without other devices
		 * */
		{{{"web", {{"a", "x.com/nic", {-1}}, {"b", "x.com/nic", {0, -1}}}}},
		 "web b x.com/nic@0"},
		{{{"web", {{"a", "x.com/nic", {-1}}}}}, "web"},
		{{{"web", {{0}}}}, "web"},
		/* a node that no machine has */
		{{{"web", {{"a", "x.com/nic", {1024, 1023, -1}}}}}, "web a x.com/nic@1023"},
	};
	struct kubelet_side *k = *state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct asker a = {0};
		ask(&a, k, "web");
		int32_t stream = expect_call(k, i + 1, GET);
		expect_request(k, "ns", "web");
		answer_pods(k, stream, cases[i].pods);
		expect_pods(&a, cases[i].wanted);
	}
	assert_int_equal(k->n_connections, 1);
}

static void test_get_fails(void **state)
{
	static const struct {
		const char *status, *message;
		const char *part;
	} cases[] = {
		{"5", "pod web not found", "the kubelet's Get: "},
		{"2", "no idea", "no idea"},
		{"8", "too many requests", "too many requests"},
		{"14", "Get method is not what is disabled", "not what is disabled"},
	};
	struct kubelet_side *k = *state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct asker a = {0};
		ask(&a, k, "web");
		answer_status(k, expect_call(k, i + 1, GET), cases[i].status, cases[i].message);
		expect_error(&a, -EREMOTEIO, cases[i].part);
	}
}

static void test_get_is_answered_with_nonsense(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *part;
	} cases[] = {
		{"", 0, "a reply without a pod"},
		{"\x12\x01x", 3, "a reply without a pod"}, /* another field */
		{"\x0a\x7f", 2, "cannot be decoded"}, /* longer than it is */
		{"\x0a\x02\x0a\x7f", 4, "a pod that cannot be decoded"},
		{"\x0a\x00", 2, "a pod without a name"},
		{"\x0a\x03\x0a\x01w", 5, "a pod without a name or namespace"},
	};
	struct kubelet_side *k = *state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct asker a = {0};
		ask(&a, k, "web");
		answer_bytes(k, expect_call(k, i + 1, GET), cases[i].bytes, cases[i].n);
		expect_error(&a, -EBADMSG, cases[i].part);
		assert_int_equal(strncmp(a.text, "the kubelet's Get: ", 19), 0);
	}
	assert_int_equal(k->n_connections, 1); /* no new connection */
}

static void test_names_have_a_limit(void **state)
{
	struct kubelet_side *k = *state;
	char name[AGENT_NAME_MAX + 1];
	struct asker a = {0};
	memset(name, 'n', AGENT_NAME_MAX);
	name[AGENT_NAME_MAX] = '\0';
	ask(&a, k, name);
	assert_int_equal(a.n, 1);
	expect_error(&a, -EINVAL, "too long");
	assert_int_equal(k->n_connections, 0);
	name[AGENT_NAME_MAX - 1] = '\0';
	ask(&a, k, name);
	int32_t stream = expect_call(k, 1, GET);
	expect_request(k, "ns", name);
	answer_status(k, stream, "5", "no");
	expect_error(&a, -EREMOTEIO, "no");
}

static void test_no_answer_in_time(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0}, b = {0};
	ask(&a, k, "web");
	(void)expect_call(k, 1, GET);
	expect_error(&a, -ETIMEDOUT, "the kubelet's Get: ");
	ask(&b, k, "web"); /* the connection is as good as before */
	answer_pods(k, expect_call(k, 2, GET), web);
	expect_pods(&b, "web app x.com/nic@1");
	assert_int_equal(k->n_connections, 1);
}

static void test_one_asks_from_inside_of_an_answer(void **state)
{
	struct kubelet_side *k = *state;
	struct asker b = {0}, a = {.next = "db", .next_asker = &b};
	ask(&a, k, "web");
	answer_pods(k, expect_call(k, 1, GET), web);
	expect_pods(&a, "web app x.com/nic@1");
	buf_reset(&k->h2.body);
	int32_t stream = expect_call(k, 2, GET);
	answer_pods(k, stream, &both[1]);
	expect_pods(&b, "db sql x.com/disk@0,2");
}

/* ---- connections ----------------------------------------------------------------------------- */

static void test_nobody_is_there(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0}, b = {0};
	close_socket(k);
	ask(&a, k, "web");
	assert_int_equal(a.n, 1); /* at once */
	expect_error(&a, -ENOENT, k->socket);
	ask(&b, k, NULL);
	expect_error(&b, -ENOENT, k->socket);
	open_socket(k);
	ask(&a, k, "web");
	answer_pods(k, expect_call(k, 1, GET), web);
	expect_pods(&a, "web app x.com/nic@1");
}

static void test_the_kubelet_restarts(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0}, b = {0};
	ask(&a, k, "web");
	(void)expect_call(k, 1, GET);
	hang_up(k);
	expect_error(&a, -ECONNRESET, "kubelet.sock closed the connection");
	ask(&b, k, "web");
	answer_pods(k, expect_call(k, 2, GET), web);
	expect_pods(&b, "web app x.com/nic@1");
	assert_int_equal(k->n_connections, 2);
}

static void test_who_asks_when_the_connection_ends_gets_another(void **state)
{
	struct kubelet_side *k = *state;
	struct asker b = {0}, a = {.next = "web", .next_asker = &b};
	ask(&a, k, "web");
	(void)expect_call(k, 1, GET);
	hang_up(k);
	expect_error(&a, -ECONNRESET, "closed");
	answer_pods(k, expect_call(k, 2, GET), web);
	expect_pods(&b, "web app x.com/nic@1");
	assert_int_equal(k->n_connections, 2);
}

static void test_what_is_no_http(void **state)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n and more than a frame";
	struct kubelet_side *k = *state;
	struct asker a = {0};
	ask(&a, k, "web");
	(void)expect_call(k, 1, GET);
	assert_int_equal(send(k->fd, text, sizeof text, MSG_NOSIGNAL), sizeof text);
	await(&a);
	assert_true(a.error == -EBADMSG || a.error == -EPROTO || a.error == -ECONNRESET);
	assert_true(a.text[0] != '\0');
	ask(&a, k, "web");
	answer_pods(k, expect_call(k, 2, GET), web);
	expect_pods(&a, "web app x.com/nic@1");
	assert_int_equal(k->n_connections, 2);
}

static void test_a_kubelet_that_wants_no_more(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0}, b = {0};
	ask(&a, k, "web");
	int32_t stream = expect_call(k, 1, GET);
	/* the pending call will be answered, new calls are refused */
	assert_int_equal(nghttp2_submit_goaway(k->h2.session, 0, stream, NGHTTP2_NO_ERROR, NULL, 0),
			 0);
	assert_int_equal(h2_flush(&k->h2), 0);
	answer_pods(k, stream, web);
	expect_pods(&a, "web app x.com/nic@1");
	ask(&b, k, "web");
	answer_pods(k, expect_call(k, 2, GET), web);
	expect_pods(&b, "web app x.com/nic@1");
	assert_int_equal(k->n_connections, 2);
}

static void test_the_end_while_somebody_waits(void **state)
{
	struct kubelet_side *k = *state;
	struct asker get = {0}, first = {0}, second = {0};
	without_get(k, web);
	ask(&first, k, NULL);
	(void)expect_call(k, 3, LIST);
	ask(&second, k, NULL); /* waits for the next list */
	ask(&get, k, "not-known");
	k->podres = podres_free(k->podres);
	expect_error(&first, -ECANCELED, "");
	expect_error(&second, -ECANCELED, "the agent is stopping");
	expect_error(&get, -ECANCELED, "the agent is stopping");
}

/* ---- List ------------------------------------------------------------------------------------ */

static void test_a_list(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0};
	ask(&a, k, NULL);
	answer_pods(k, expect_call(k, 1, LIST), both);
	/* pods without devices are left out */
	expect_pods(&a, "web app x.com/nic@1; db sql x.com/disk@0,2");
	ask(&a, k, NULL); /* each request for all pods sends a new List */
	answer_pods(k, expect_call(k, 2, LIST), &both[1]);
	expect_pods(&a, "db sql x.com/disk@0,2");
	ask(&a, k, NULL);
	answer_bytes(k, expect_call(k, 3, LIST), "", 0);
	expect_pods(&a, "");
}

static void test_a_list_that_fails(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0}, b = {0};
	without_get(k, both);
	ask(&a, k, NULL);
	answer_status(k, expect_call(k, 3, LIST), "13", "internal");
	expect_error(&a, -EREMOTEIO, "the kubelet's List: ");
	ask(&a, k, NULL);
	answer_bytes(k, expect_call(k, 4, LIST), "\x0a\x7f", 2);
	expect_error(&a, -EBADMSG, "the kubelet's List: a reply that cannot be decoded");
	/* half of a list is none: nothing of it, nor of the one before, is believed */
	ask(&b, k, "db");
	answer_pods(k, expect_call(k, 5, LIST), both);
	expect_pods(&b, "db sql x.com/disk@0,2");
}

static void test_those_who_come_meanwhile_get_the_next_list(void **state)
{
	struct kubelet_side *k = *state;
	struct asker first = {0}, second = {0}, third = {0};
	ask(&first, k, NULL);
	int32_t stream = expect_call(k, 1, LIST);
	ask(&second, k, NULL);
	ask(&third, k, NULL);
	answer_pods(k, stream, web);
	expect_pods(&first, "web app x.com/nic@1");
	stream = expect_call(k, 2, LIST); /* both requests share a call */
	assert_int_equal(second.n + third.n, 0);
	answer_pods(k, stream, both);
	expect_pods(&second, "web app x.com/nic@1; db sql x.com/disk@0,2");
	expect_pods(&third, "web app x.com/nic@1; db sql x.com/disk@0,2");
	assert_int_equal(k->n_calls, 2);
}

static void test_only_so_many_wait(void **state)
{
	static struct asker many[PODRES_WAITING_MAX], one_more;
	struct kubelet_side *k = *state;
	struct asker first = {0};
	ask(&first, k, NULL);
	int32_t stream = expect_call(k, 1, LIST);
	for (unsigned i = 0; i < PODRES_WAITING_MAX; i++)
		ask(&many[i], k, NULL);
	ask(&one_more, k, NULL);
	assert_int_equal(one_more.n, 1);
	expect_error(&one_more, -ENOBUFS, "too many requests wait for the kubelet's list of pods");
	answer_pods(k, stream, web);
	answer_pods(k, expect_call(k, 2, LIST), web);
	for (unsigned i = 0; i < PODRES_WAITING_MAX; i++)
		expect_pods(&many[i], "web app x.com/nic@1");
	assert_int_equal(k->n_calls, 2);
}

/* ---- a kubelet without Get ------------------------------------------------------------------- */

static void lists_take_the_place(struct kubelet_side *k, const char *status, const char *message)
{
	struct asker a = {0};
	ask(&a, k, "web");
	answer_status(k, expect_call(k, 1, GET), status, message);
	answer_pods(k, expect_call(k, 2, LIST), both);
	expect_pods(&a, "web app x.com/nic@1");
	ask(&a, k, "new"); /* Get is not tried again */
	answer_pods(k, expect_call(k, 3, LIST), web);
	expect_error(&a, -EREMOTEIO, "the kubelet does not list pod ns/new");
}

static void test_lists_take_the_place_of_a_get_that_is_not_known(void **state)
{
	lists_take_the_place(*state, "12", "unknown method Get for service v1.PodResourcesLister");
}

static void test_lists_take_the_place_of_a_get_that_is_disabled(void **state)
{
	lists_take_the_place(*state, "2", "PodResources API Get method disabled");
}

/* A list of which a part is forgotten would say of the others that they have no devices. */
static void test_a_list_that_cannot_be_remembered(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0};
	char name[32];
	without_get(k, web);
	for (unsigned i = 1; i < PODRES_KNOWN_MAX; i++) {
		(void)snprintf(name, sizeof name, "ended-%u", i);
		podres_forget(k->podres, "ns", name);
	}
	ask(&a, k, NULL);
	answer_pods(k, expect_call(k, 3, LIST), both);
	expect_error(&a, -ENOMEM, "the kubelet's List: ");
	assert_true(strlen(a.text) > strlen("the kubelet's List: "));
	ask(&a, k, "db"); /* no pod of the failed list is cached */
	answer_pods(k, expect_call(k, 4, LIST), both);
	expect_pods(&a, "db sql x.com/disk@0,2");
}

static void test_what_a_list_said_answers_those_who_come(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0};
	without_get(k, both);
	ask(&a, k, "db");
	assert_int_equal(a.n, 1); /* from inside */
	expect_pods(&a, "db sql x.com/disk@0,2");
	ask(&a, k, "bare");
	expect_pods(&a, "bare");
	assert_int_equal(k->n_calls, 2);
	ask(&a, k, "new");
	answer_pods(k, expect_call(k, 3, LIST), both);
	expect_error(&a, -EREMOTEIO, "the kubelet does not list pod ns/new");
}

static void test_who_is_listed_no_more_is_asked_for_anew(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0};
	without_get(k, both);
	ask(&a, k, NULL);
	answer_pods(k, expect_call(k, 3, LIST), web);
	expect_pods(&a, "web app x.com/nic@1");
	ask(&a, k, "db");
	answer_pods(k, expect_call(k, 4, LIST), both);
	expect_pods(&a, "db sql x.com/disk@0,2");
}

/* A pod that ended is listed for a while, and another of its name may come. */
static void test_what_is_said_of_a_pod_that_ended(void **state)
{
	static const struct pod_of again[] = {{"web", {{"app", "x.com/nic", {3, -1}}}}, {0}};
	struct kubelet_side *k = *state;
	struct asker a = {0};
	without_get(k, both);
	podres_forget(k->podres, "ns", "web");
	podres_forget(k->podres, "ns", "never-there");
	ask(&a, k, NULL);
	answer_pods(k, expect_call(k, 3, LIST), both);
	expect_pods(&a, "db sql x.com/disk@0,2");
	ask(&a, k, "web"); /* the new one */
	answer_pods(k, expect_call(k, 4, LIST), again);
	expect_pods(&a, "web app x.com/nic@3");
	ask(&a, k, "web");
	assert_int_equal(a.n, 1);
	expect_pods(&a, "web app x.com/nic@3");
	ask(&a, k, NULL);
	answer_pods(k, expect_call(k, 5, LIST), again);
	expect_pods(&a, "web app x.com/nic@3");
}

static void test_another_kubelet_is_asked_with_get_again(void **state)
{
	struct kubelet_side *k = *state;
	struct asker a = {0}, b = {0};
	without_get(k, web);
	ask(&a, k, NULL);
	(void)expect_call(k, 3, LIST);
	hang_up(k);
	expect_error(&a, -ECONNRESET, "the kubelet's List: ");
	ask(&b, k, "other"); /* by List, as the previous connection had no Get */
	until(k, was_called, 4);
	assert_string_equal(k->h2.path, LIST);
	answer_pods(k, expect_call(k, 4, LIST), web);
	expect_error(&b, -EREMOTEIO, "does not list");
	ask(&b, k, "web");
	answer_pods(k, expect_call(k, 5, GET), web);
	expect_pods(&b, "web app x.com/nic@1");
	assert_int_equal(k->n_connections, 2);
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_get),
		test(test_get_fails),
		test(test_get_is_answered_with_nonsense),
		test(test_names_have_a_limit),
		test(test_no_answer_in_time),
		test(test_one_asks_from_inside_of_an_answer),
		test(test_nobody_is_there),
		test(test_the_kubelet_restarts),
		test(test_who_asks_when_the_connection_ends_gets_another),
		test(test_what_is_no_http),
		test(test_a_kubelet_that_wants_no_more),
		test(test_the_end_while_somebody_waits),
		test(test_a_list),
		test(test_a_list_that_fails),
		test(test_those_who_come_meanwhile_get_the_next_list),
		test(test_only_so_many_wait),
		test(test_lists_take_the_place_of_a_get_that_is_not_known),
		test(test_lists_take_the_place_of_a_get_that_is_disabled),
		test(test_a_list_that_cannot_be_remembered),
		test(test_what_a_list_said_answers_those_who_come),
		test(test_who_is_listed_no_more_is_asked_for_anew),
		test(test_what_is_said_of_a_pod_that_ended),
		test(test_another_kubelet_is_asked_with_get_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
