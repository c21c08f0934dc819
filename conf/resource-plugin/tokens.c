/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource plugin in C, to begin one's own with: it gives containers tokens, of which there are a
 * fixed number, and tells them which in the variable TOKENS.
 *
 *	tokens FOLDER RESOURCE COUNT STATE
 *
 * FOLDER is that of nri-rp-agent --plugin-dir, RESOURCE what pods ask for ("example.com/token"),
 * STATE a file that what was given is kept in.
 *
 * What a plugin has to do, in the order of this file:
 *   1. know what it has given, before it answers and after it was killed;
 *   2. answer Allocate, RemovePod and GetResourcesAllocation (and others if it says so in its
 *      options); a call that it knows already it answers as before;
 *   3. speak gRPC at a socket of its own in the folder;
 *   4. register at kubelet.sock there, and again whenever that socket is another one.
 *
 * Requests come one at a time over one connection, so one thread is enough.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "proto/resourceplugin.pb-c.h"

#define TOKENS_MAX 64
#define NAME_MAX_BYTES 256
#define TEXT_MAX 1024
#define REQUEST_MAX (1u << 20)
#define CONNECTIONS_MAX 8
#define STREAMS_MAX 16 /* calls in progress on one connection */
#define PREFIX 5 /* before a message: not compressed, and its length */
#define ENDPOINT "tokens.sock"
#define SERVICE "/resourceplugin.v1alpha1.ResourcePlugin/"

enum { OK = 0, INVALID_ARGUMENT = 3, RESOURCE_EXHAUSTED = 8, UNIMPLEMENTED = 12 };

/* ---- 1. tokens and their containers ---------------------------------------------------------- */

static struct token {
	char uid[NAME_MAX_BYTES], container[NAME_MAX_BYTES]; /* uid "": the token is free */
} tokens[TOKENS_MAX];
static unsigned n_tokens;
static const char *folder, *resource, *state;

static void fail(const char *what)
{
	fprintf(stderr, "tokens: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Whole or not at all, whenever it is interrupted. */
static void keep(void)
{
	char path[TEXT_MAX];
	snprintf(path, sizeof path, "%s.new", state);
	FILE *f = fopen(path, "w");
	if (!f)
		fail(path);
	for (unsigned i = 0; i < n_tokens; i++)
		if (*tokens[i].uid)
			fprintf(f, "%u %s %s\n", i, tokens[i].uid, tokens[i].container);
	if (fclose(f) || rename(path, state))
		fail(path);
}

static void recall(void)
{
	struct token t;
	unsigned i;
	FILE *f = fopen(state, "r");
	if (!f && errno != ENOENT)
		fail(state);
	while (f && fscanf(f, "%u %255s %255s", &i, t.uid, t.container) == 3)
		if (i < n_tokens)
			tokens[i] = t;
	if (f)
		fclose(f);
}

static bool has(const struct token *t, const char *uid, const char *container)
{
	return strcmp(t->uid, uid) == 0 && strcmp(t->container, container) == 0;
}

static unsigned count(const char *uid, const char *container)
{
	unsigned n = 0;
	for (unsigned i = 0; i < n_tokens; i++)
		n += has(&tokens[i], uid, container);
	return n;
}

/* The lowest ones that are free. False: there are not as many. */
static bool take(const char *uid, const char *container, double wanted)
{
	unsigned left = wanted > TOKENS_MAX ? TOKENS_MAX + 1 : (unsigned)wanted;
	if (left > count("", ""))
		return false;
	for (unsigned i = 0; i < n_tokens && left; i++) {
		if (*tokens[i].uid)
			continue;
		snprintf(tokens[i].uid, NAME_MAX_BYTES, "%s", uid);
		snprintf(tokens[i].container, NAME_MAX_BYTES, "%s", container);
		left--;
	}
	return true;
}

/* ---- 2. calls -------------------------------------------------------------------------------- */

struct answer {
	int status;
	char text[TEXT_MAX]; /* why not; plain letters, as gRPC wants others encoded */
	uint8_t *data; /* a message behind its prefix; malloc() */
	size_t n, sent;
};

static void refuse(struct answer *a, int status, const char *text)
{
	a->status = status;
	snprintf(a->text, sizeof a->text, "%s", text);
}

static void put(struct answer *a, const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	a->data = malloc(PREFIX + n);
	if (!a->data)
		fail("an answer");
	a->n = PREFIX + n;
	a->data[0] = 0;
	for (int i = 0; i < 4; i++)
		a->data[1 + i] = (uint8_t)(n >> (24 - 8 * i));
	protobuf_c_message_pack(m, a->data + PREFIX);
}

/* A container's tokens, as both answers below report them. */
struct given {
	Resourceplugin__TextEntry env, *envs[1];
	Resourceplugin__ResourceAllocationInfo info;
	Resourceplugin__AllocationEntry entry, *entries[1];
	Resourceplugin__ResourceAllocation all;
	char names[TOKENS_MAX * 4];
};

static void describe(struct given *g, const char *uid, const char *container)
{
	size_t n = 0;
	resourceplugin__text_entry__init(&g->env);
	resourceplugin__resource_allocation_info__init(&g->info);
	resourceplugin__allocation_entry__init(&g->entry);
	resourceplugin__resource_allocation__init(&g->all);
	g->names[0] = '\0';
	for (unsigned i = 0; i < n_tokens; i++)
		if (has(&tokens[i], uid, container))
			n += (size_t)snprintf(g->names + n, sizeof g->names - n, "%s%u",
					      n ? "," : "", i);
	g->env.key = "TOKENS";
	g->env.value = g->names;
	g->envs[0] = &g->env;
	g->info.is_scalar_resource = true;
	g->info.allocated_quantity = count(uid, container);
	g->info.envs = g->envs;
	g->info.n_envs = 1;
	g->entry.key = (char *)resource;
	g->entry.value = &g->info;
	g->entries[0] = &g->entry;
	g->all.resource_allocation = g->entries;
	g->all.n_resource_allocation = 1;
}

static bool good_name(const char *name)
{
	return *name && strlen(name) < NAME_MAX_BYTES && !strpbrk(name, " \t\n");
}

static void allocate(const uint8_t *data, size_t n, struct answer *a)
{
	Resourceplugin__ResourceRequest *m =
		resourceplugin__resource_request__unpack(NULL, n, data);
	Resourceplugin__ResourceAllocationResponse out =
		RESOURCEPLUGIN__RESOURCE_ALLOCATION_RESPONSE__INIT;
	struct given g;
	double wanted = 0;
	for (size_t i = 0; m && i < m->n_resource_requests; i++)
		if (strcmp(m->resource_requests[i]->key, resource) == 0)
			wanted = m->resource_requests[i]->value;
	if (!m || !good_name(m->pod_uid) || !good_name(m->container_name) || !(wanted >= 1)) {
		refuse(a, INVALID_ARGUMENT, "who wants how many?");
	} else if (!count(m->pod_uid, m->container_name) &&
		   !take(m->pod_uid, m->container_name, wanted)) {
		char text[TEXT_MAX];
		snprintf(text, sizeof text, "%u tokens are left, %g are wanted", count("", ""),
			 wanted);
		refuse(a, RESOURCE_EXHAUSTED, text);
	} else {
		keep();
		describe(&g, m->pod_uid, m->container_name);
		out.pod_uid = m->pod_uid;
		out.container_name = m->container_name;
		out.resource_name = (char *)resource;
		out.allocation_result = &g.all;
		put(a, &out.base);
	}
	if (m)
		resourceplugin__resource_request__free_unpacked(m, NULL);
}

static void remove_pod(const uint8_t *data, size_t n, struct answer *a)
{
	Resourceplugin__RemovePodRequest *m =
		resourceplugin__remove_pod_request__unpack(NULL, n, data);
	Resourceplugin__Empty out = RESOURCEPLUGIN__EMPTY__INIT;
	for (unsigned i = 0; m && i < n_tokens; i++)
		if (strcmp(tokens[i].uid, m->pod_uid) == 0)
			tokens[i] = (struct token){0};
	keep();
	put(a, &out.base);
	if (m)
		resourceplugin__remove_pod_request__free_unpacked(m, NULL);
}

/* Returns true if no earlier token belongs to the same pod, or to the same container if requested.
 * */
static bool is_first(unsigned i, bool container)
{
	for (unsigned k = 0; k < i; k++)
		if (container ? has(&tokens[k], tokens[i].uid, tokens[i].container)
			      : strcmp(tokens[k].uid, tokens[i].uid) == 0)
			return false;
	return *tokens[i].uid;
}

/* A pod an entry, and in it a container an entry. */
static void list(struct answer *a)
{
	static struct given given[TOKENS_MAX];
	static Resourceplugin__ContainerEntry ctr[TOKENS_MAX], *ctrs[TOKENS_MAX];
	static Resourceplugin__ContainerResources of_pod[TOKENS_MAX];
	static Resourceplugin__PodEntry pod[TOKENS_MAX], *pods[TOKENS_MAX];
	Resourceplugin__GetResourcesAllocationResponse out =
		RESOURCEPLUGIN__GET_RESOURCES_ALLOCATION_RESPONSE__INIT;
	size_t n_ctrs = 0;
	out.pod_resources = pods;
	for (unsigned i = 0; i < n_tokens; i++) {
		if (!is_first(i, false))
			continue;
		resourceplugin__pod_entry__init(&pod[i]);
		resourceplugin__container_resources__init(&of_pod[i]);
		pod[i].key = tokens[i].uid;
		pod[i].value = &of_pod[i];
		of_pod[i].container_resources = &ctrs[n_ctrs];
		pods[out.n_pod_resources++] = &pod[i];
		for (unsigned k = i; k < n_tokens; k++) {
			if (strcmp(tokens[k].uid, tokens[i].uid) != 0 || !is_first(k, true))
				continue;
			describe(&given[k], tokens[k].uid, tokens[k].container);
			resourceplugin__container_entry__init(&ctr[k]);
			ctr[k].key = tokens[k].container;
			ctr[k].value = &given[k].all;
			ctrs[n_ctrs++] = &ctr[k];
			of_pod[i].n_container_resources++;
		}
	}
	put(a, &out.base);
}

static void answer(const char *path, const uint8_t *data, size_t n, struct answer *a)
{
	const char *method = strncmp(path, SERVICE, strlen(SERVICE)) ? "" : path + strlen(SERVICE);
	if (n < PREFIX || data[0] ||
	    n - PREFIX != ((size_t)data[1] << 24 | (size_t)data[2] << 16 | data[3] << 8 | data[4]))
		refuse(a, INVALID_ARGUMENT, "one message, not compressed, was expected");
	else if (strcmp(method, "Allocate") == 0)
		allocate(data + PREFIX, n - PREFIX, a);
	else if (strcmp(method, "RemovePod") == 0)
		remove_pod(data + PREFIX, n - PREFIX, a);
	else if (strcmp(method, "GetResourcesAllocation") == 0)
		list(a);
	else
		refuse(a, UNIMPLEMENTED, "there is no such method");
}

/* ---- 3. gRPC, as a server -------------------------------------------------------------------- */

#define HEADER(name_, value_)                                                                      \
	(nghttp2_nv)                                                                               \
	{                                                                                          \
		(uint8_t *)(name_), (uint8_t *)(value_), strlen(name_), strlen(value_),            \
			NGHTTP2_NV_FLAG_NONE                                                       \
	}

/* A call. */
struct stream {
	bool used;
	char path[128];
	uint8_t *in;
	size_t n;
	struct answer answer;
};

struct connection {
	int fd; /* -1: none */
	nghttp2_session *session;
	struct stream streams[STREAMS_MAX];
};

static void stream_end(struct stream *st)
{
	free(st->in);
	free(st->answer.data);
	*st = (struct stream){0};
}

static int on_begin(nghttp2_session *s, const nghttp2_frame *frame, void *arg)
{
	struct connection *c = arg;
	for (int i = 0; i < STREAMS_MAX; i++) {
		if (c->streams[i].used)
			continue;
		c->streams[i].used = true;
		return nghttp2_session_set_stream_user_data(s, frame->hd.stream_id, &c->streams[i]);
	}
	return NGHTTP2_ERR_CALLBACK_FAILURE; /* the settings allow no more */
}

static int on_header(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name, size_t n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	(void)flags, (void)arg;
	struct stream *st = nghttp2_session_get_stream_user_data(s, frame->hd.stream_id);
	if (st && n == 5 && memcmp(name, ":path", 5) == 0)
		snprintf(st->path, sizeof st->path, "%.*s", (int)value_n, (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
		   void *arg)
{
	(void)flags, (void)arg;
	struct stream *st = nghttp2_session_get_stream_user_data(s, id);
	uint8_t *in = st && st->n + n <= REQUEST_MAX ? realloc(st->in, st->n + n + 1) : NULL;
	if (!in)
		return nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	memcpy(in + st->n, data, n);
	st->in = in;
	st->n += n;
	return 0;
}

/* The message, and after it the status as a trailer. */
static ssize_t on_read(nghttp2_session *s, int32_t id, uint8_t *to, size_t most, uint32_t *flags,
		       nghttp2_data_source *source, void *arg)
{
	(void)arg;
	struct answer *a = source->ptr;
	size_t n = a->n - a->sent < most ? a->n - a->sent : most;
	nghttp2_nv trailer = HEADER("grpc-status", "0");
	memcpy(to, a->data + a->sent, n);
	a->sent += n;
	if (a->sent == a->n) {
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(s, id, &trailer, 1))
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)n;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *frame, void *arg)
{
	(void)arg;
	int32_t id = frame->hd.stream_id;
	struct stream *st = id ? nghttp2_session_get_stream_user_data(s, id) : NULL;
	if (!st || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
	    (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
		return 0;
	struct answer *a = &st->answer;
	answer(st->path, st->in, st->n, a);
	char status[8];
	snprintf(status, sizeof status, "%d", a->status);
	nghttp2_nv head[] = {HEADER(":status", "200"), HEADER("content-type", "application/grpc"),
			     HEADER("grpc-status", status), HEADER("grpc-message", a->text)};
	nghttp2_data_provider body = {{.ptr = a}, on_read};
	return a->status ? nghttp2_submit_response(s, id, head, 4, NULL)
			 : nghttp2_submit_response(s, id, head, 2, &body);
}

static int on_close(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	(void)code, (void)arg;
	struct stream *st = nghttp2_session_get_stream_user_data(s, id);
	if (st)
		stream_end(st);
	return 0;
}

static bool flush(const struct connection *c)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(c->session, &data)) > 0)
		for (ssize_t sent = 0, r; sent < n; sent += r)
			if ((r = send(c->fd, data + sent, (size_t)(n - sent), MSG_NOSIGNAL)) <= 0)
				return false;
	return n == 0;
}

static void hang_up(struct connection *c)
{
	nghttp2_session_del(c->session);
	close(c->fd);
	for (int i = 0; i < STREAMS_MAX; i++)
		stream_end(&c->streams[i]);
	*c = (struct connection){.fd = -1};
}

static void begin(struct connection *c, int fd, bool server, const nghttp2_session_callbacks *cb,
		  void *arg)
{
	nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
					     {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, REQUEST_MAX}};
	*c = (struct connection){.fd = fd};
	if (server ? nghttp2_session_server_new(&c->session, cb, arg)
		   : nghttp2_session_client_new(&c->session, cb, arg))
		fail("a session");
	nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, server ? 2 : 0);
}

/* False: the connection has ended. */
static bool receive(const struct connection *c)
{
	uint8_t buf[16384];
	ssize_t n = recv(c->fd, buf, sizeof buf, 0);
	return n > 0 && nghttp2_session_mem_recv(c->session, buf, (size_t)n) == n && flush(c);
}

static struct sockaddr_un address(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", folder, name) >=
	    (int)sizeof a.sun_path) {
		errno = ENAMETOOLONG;
		fail(folder);
	}
	return a;
}

static int listen_at(const char *name)
{
	struct sockaddr_un a = address(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unlink(a.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, CONNECTIONS_MAX))
		fail(a.sun_path);
	return fd;
}

/* ---- 4. registration ------------------------------------------------------------------------- */

struct registration {
	struct answer request;
	int status; /* -1: not answered */
	bool over;
};

static int on_status(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name, size_t n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	(void)s, (void)frame, (void)flags, (void)value_n;
	struct registration *r = arg;
	if (n == 11 && memcmp(name, "grpc-status", 11) == 0)
		r->status = atoi((const char *)value);
	return 0;
}

static int on_over(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	(void)s, (void)id, (void)code;
	((struct registration *)arg)->over = true;
	return 0;
}

static ssize_t on_read_request(nghttp2_session *s, int32_t id, uint8_t *to, size_t most,
			       uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	(void)s, (void)id, (void)source;
	const struct answer *a = &((struct registration *)arg)->request;
	if (a->n > most)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	memcpy(to, a->data, a->n);
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)a->n;
}

/* True: the agent has taken it, and comes to our socket. */
static bool register_now(const nghttp2_session_callbacks *cb)
{
	Resourceplugin__RegisterRequest m = RESOURCEPLUGIN__REGISTER_REQUEST__INIT;
	Resourceplugin__Options options = RESOURCEPLUGIN__OPTIONS__INIT; /* no options */
	struct registration r = {.status = -1};
	struct sockaddr_un a = address("kubelet.sock");
	struct connection c;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) {
		close(fd);
		return false;
	}
	m.version = "v1alpha1";
	m.endpoint = ENDPOINT;
	m.resource_name = (char *)resource;
	m.options = &options;
	put(&r.request, &m.base);
	begin(&c, fd, false, cb, &r);
	nghttp2_nv head[] = {HEADER(":method", "POST"),
			     HEADER(":scheme", "http"),
			     HEADER(":path", "/resourceplugin.v1alpha1.Registration/Register"),
			     HEADER(":authority", "localhost"),
			     HEADER("content-type", "application/grpc"),
			     HEADER("te", "trailers")};
	nghttp2_data_provider body = {{.ptr = NULL}, on_read_request};
	bool well = nghttp2_submit_request(c.session, NULL, head, 6, &body, NULL) > 0 && flush(&c);
	while (well && !r.over)
		well = receive(&c);
	hang_up(&c);
	free(r.request.data);
	if (r.status)
		fprintf(stderr, "tokens: the agent does not take %s (status %d)\n", resource,
			r.status);
	return r.status == 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static nghttp2_session_callbacks *callbacks(bool server)
{
	nghttp2_session_callbacks *cb;
	if (nghttp2_session_callbacks_new(&cb))
		fail("callbacks");
	nghttp2_session_callbacks_set_on_header_callback(cb, server ? on_header : on_status);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, server ? on_close : on_over);
	if (!server)
		return cb;
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	return cb;
}

/* Registers again after the agent has restarted, which replaces its socket and removes ours. */
static void look(int *listener, ino_t *known, const nghttp2_session_callbacks *cb)
{
	struct sockaddr_un theirs = address("kubelet.sock"), ours = address(ENDPOINT);
	struct stat st;
	if (stat(theirs.sun_path, &st) || (st.st_ino == *known && access(ours.sun_path, F_OK) == 0))
		return;
	ino_t now = st.st_ino;
	if (*listener >= 0)
		close(*listener);
	*listener = listen_at(ENDPOINT);
	*known = register_now(cb) ? now : 0;
}

int main(int argc, char **argv)
{
	struct connection all[CONNECTIONS_MAX];
	int listener = -1;
	ino_t known = 0;
	if (argc != 5 || atoi(argv[3]) < 1 || atoi(argv[3]) > TOKENS_MAX) {
		fprintf(stderr, "usage: tokens FOLDER RESOURCE COUNT STATE (at most %d)\n",
			TOKENS_MAX);
		return 2;
	}
	folder = argv[1];
	resource = argv[2];
	n_tokens = (unsigned)atoi(argv[3]);
	state = argv[4];
	recall();
	const nghttp2_session_callbacks *server = callbacks(true), *client = callbacks(false);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		all[i].fd = -1;
	for (;;) {
		struct pollfd polled[CONNECTIONS_MAX + 1];
		look(&listener, &known, client);
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			polled[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
		polled[CONNECTIONS_MAX] = (struct pollfd){.fd = listener, .events = POLLIN};
		if (poll(polled, CONNECTIONS_MAX + 1, 200) < 0 && errno != EINTR)
			fail("poll");
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			if (polled[i].revents && !receive(&all[i]))
				hang_up(&all[i]);
		int fd = polled[CONNECTIONS_MAX].revents ? accept(listener, NULL, NULL) : -1;
		for (int i = 0; i < CONNECTIONS_MAX && fd >= 0; i++) {
			if (all[i].fd >= 0)
				continue;
			begin(&all[i], fd, true, server, &all[i]);
			if (!flush(&all[i]))
				hang_up(&all[i]);
			fd = -1;
		}
		if (fd >= 0)
			close(fd); /* more than are served */
	}
}
