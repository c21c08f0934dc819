/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the control socket: clients, requests and answers of any length. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "core/nri-rpd/control/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/listener.h"
#include "core/lib/wire/sock.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/events.h"
#include "core/nri-rpd/control/server.h"

#define LOG_SOURCE "control"
#define SOCKET_MODE 0600

/* ---- answers --------------------------------------------------------------------------------- */

static void send_piece(struct rpc_request *rpc, const uint8_t *data, size_t len, int exit,
		       uint64_t rest)
{
	Control__Response res = CONTROL__RESPONSE__INIT;
	res.json.data = (uint8_t *)(uintptr_t)data;
	res.json.len = len;
	res.exit = exit;
	res.rest = rest;
	(void)rpc_reply(rpc, &res.base);
}

/* Passes an answer to another part of the process, always in one piece. */
static void server_tell(const struct asker *asker, struct buf *out, int exit)
{
	if (out->failed || buf_len(out) > CTL_DOCUMENT_MAX) {
		document_error(out, out->failed ? "out of memory" : "the document is too long");
		exit = CTL_FAILED;
	}
	asker->fn(asker->arg, out, exit);
}

/* Returns an unused rest of the client, or else the oldest one, which the client has abandoned or
 * has too many others besides. */
static struct rest *server_oldest_rest(struct client *client)
{
	struct rest *oldest = &client->rests[0];
	for (unsigned i = 1; i < CTL_RESTS_MAX; i++)
		if (client->rests[i].id < oldest->id)
			oldest = &client->rests[i];
	return oldest;
}

static struct rest *server_find_rest(struct client *client, uint64_t id)
{
	for (unsigned i = 0; id && i < CTL_RESTS_MAX; i++)
		if (client->rests[i].id == id)
			return &client->rests[i];
	return NULL;
}

void server_answer(const struct asker *asker, struct buf *out, int exit)
{
	struct client *client = asker->client;
	struct rpc_request *rpc = asker->rpc;
	size_t len = buf_len(out);
	if (asker->fn)
		server_tell(asker, out, exit);
	if (!rpc)
		return;
	if (out->failed) {
		(void)rpc_reply_error(rpc, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	if (len > CTL_DOCUMENT_MAX) {
		(void)rpc_reply_error(rpc, TTRPC_RESOURCE_EXHAUSTED,
				      "the document has %zu bytes, at most %u are sent", len,
				      CTL_DOCUMENT_MAX);
		return;
	}
	if (len <= CTL_PIECE_MAX || !client) {
		send_piece(rpc, buf_bytes(out), len < CTL_PIECE_MAX ? len : CTL_PIECE_MAX, exit, 0);
		return;
	}
	struct rest *rest = server_oldest_rest(client);
	buf_fini(&rest->data);
	rest->data = *out;
	*out = (struct buf)BUF_INIT;
	rest->id = ++client->ctl->last_rest;
	send_piece(rpc, buf_bytes(&rest->data), CTL_PIECE_MAX, exit, rest->id);
	buf_consume(&rest->data, CTL_PIECE_MAX);
}

void server_more(struct client *client, struct rpc_request *rpc, uint64_t id)
{
	struct rest *rest = server_find_rest(client, id);
	if (!rest) {
		(void)rpc_reply_error(rpc, TTRPC_NOT_FOUND, "the document has no further part");
		return;
	}
	size_t left = buf_len(&rest->data), n = left < CTL_PIECE_MAX ? left : CTL_PIECE_MAX;
	if (n == left)
		rest->id = 0;
	send_piece(rpc, buf_bytes(&rest->data), n, 0, rest->id);
	buf_consume(&rest->data, n);
	if (!rest->id)
		buf_fini(&rest->data);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

struct job *job_new(struct call *call, struct job **list)
{
	struct ctl *ctl = call->ctl;
	struct job *job = ctl->n_jobs < CTL_JOBS_MAX ? calloc(1, sizeof *job) : NULL;
	if (!job)
		return NULL;
	*job = (struct job){.ctl = ctl, .asker = call->asker};
	DL_APPEND(*list, job);
	ctl->n_jobs++;
	return job;
}

/* Removes a job from the server after its request was answered; a later outcome of the job is
 * ignored. */
static void job_detach(struct job *job, struct job **list)
{
	assert(job->ctl && job->ctl->n_jobs);
	DL_DELETE(*list, job);
	job->ctl->n_jobs--;
	job->ctl->n_plans -= job->plan;
	job->ctl = NULL;
	job->timer = loop_timer_free(job->timer);
}

void job_end(struct job *job, struct buf *out, int exit)
{
	if (job->ctl) {
		if (out)
			server_answer(&job->asker, out, exit);
		else if (job->asker.rpc)
			(void)rpc_reply_error(job->asker.rpc, TTRPC_UNAVAILABLE,
					      "nri-rpd is stopping");
		job_detach(job, job->timer ? &job->ctl->waits : &job->ctl->jobs);
	}
	free(job);
}

void job_drop(struct job *job, struct job **list)
{
	job_detach(job, list);
	free(job);
}

static void abandon_jobs(struct ctl *ctl)
{
	while (ctl->waits)
		job_end(ctl->waits, NULL, 0);
	/* The pipeline still has these jobs and calls them at their end. */
	while (ctl->jobs) {
		struct job *job = ctl->jobs;
		if (job->asker.rpc)
			(void)rpc_reply_error(job->asker.rpc, TTRPC_UNAVAILABLE,
					      "nri-rpd is stopping");
		job_detach(job, &ctl->jobs);
	}
}

static void forget_client(struct job *list, const struct client *client)
{
	struct job *job;
	DL_FOREACH (list, job)
		if (job->asker.client == client)
			job->asker.client = NULL;
}

void ctl_forget(struct ctl *ctl, const void *arg)
{
	struct job *job, *next;
	DL_FOREACH (ctl->jobs, job)
		if (job->asker.fn && job->asker.arg == arg)
			job->asker = (struct asker){0};
	DL_FOREACH_SAFE(ctl->waits, job, next)
	if (job->asker.fn && job->asker.arg == arg)
		job_end(job, NULL, 0);
}

/* ---- clients --------------------------------------------------------------------------------- */

/* Ends the event jobs of a client that has disconnected, so that their places are free before the
 * wait has passed. */
static void end_waits(struct ctl *ctl, const struct client *client)
{
	struct job *job, *next;
	DL_FOREACH_SAFE(ctl->waits, job, next)
	if (job->asker.client == client)
		job_end(job, NULL, 0);
}

static void client_free(struct client *client)
{
	assert(client->ctl->n_clients);
	struct ctl *ctl = client->ctl;
	forget_client(ctl->jobs, client);
	end_waits(ctl, client);
	DL_DELETE(ctl->clients, client);
	ctl->n_clients--;
	trunk_free(client->trunk);
	for (unsigned i = 0; i < CTL_RESTS_MAX; i++)
		buf_fini(&client->rests[i].data);
	free(client);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	if (err->code != -ECONNRESET)
		log_info("disconnected a client: %s", err->text);
	client_free(arg);
}

static void on_request(struct rpc_request *rpc, void *arg)
{
	command_serve(arg, rpc);
}

static int client_new(struct ctl *ctl, int fd, struct err *err)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client) {
		(void)close(fd);
		return err_errno(err, -ENOMEM, "refused a client");
	}
	client->ctl = ctl;
	const struct trunk_config config = {
		.recv_max = CTL_REQUEST_MAX, .closed = on_closed, .arg = client};
	int r = trunk_new(ctl->loop, fd, &config, &client->trunk, err);
	if (r) {
		free(client);
		return r;
	}
	rpc_serve(trunk_rpc(client->trunk, 0), on_request, client);
	DL_APPEND(ctl->clients, client);
	ctl->n_clients++;
	return 0;
}

static int server_admit(const struct ctl *ctl, int fd, struct err *err)
{
	struct ucred peer;
	int r = wire_peer(fd, &peer);
	if (r)
		return err_errno(err, r, "refused a client: its user cannot be determined");
	if (peer.uid != 0 && peer.uid != geteuid())
		return err_set(err, -EPERM, "refused a client: process %d of user %u", peer.pid,
			       peer.uid);
	if (ctl->n_clients >= CTL_CLIENTS_MAX)
		return err_set(err, -EBUSY, "refused a client: %u are connected", ctl->n_clients);
	return 0;
}

static void on_connection(int fd, void *arg)
{
	struct ctl *ctl = arg;
	struct err err = ERR_INIT;
	if (fd < 0)
		(void)err_errno(&err, fd, "accepting a client failed, retrying");
	else if (server_admit(ctl, fd, &err))
		(void)close(fd);
	else
		(void)client_new(ctl, fd, &err);
	if (err.code && log_allowed(&ctl->turned_away, LOG_SOURCE))
		log_warning("%s", err.text);
}

/* ---- the socket ------------------------------------------------------------------------------ */

int ctl_set_socket(struct ctl *ctl, const char *socket, struct err *err)
{
	struct listener *listener = NULL;
	if (str_eq(ctl->path, socket))
		return 0;
	_free_ char *path = strdup(socket);
	if (!path)
		return err_errno(err, -ENOMEM, "control socket %s", socket);
	const struct listener_config config = {.what = "control socket",
					       .path = path,
					       .mode = SOCKET_MODE,
					       .accepted = on_connection,
					       .arg = ctl};
	int r = *socket ? listener_new(ctl->loop, &config, &listener, err) : 0;
	if (r)
		return r;
	listener_free(ctl->listener);
	ctl->listener = listener;
	free(ctl->path);
	ctl->path = TAKE(path);
	if (*socket)
		log_info("listening on %s", socket);
	return 0;
}

int ctl_new(struct loop *loop, struct pipeline *pipeline, const char *socket, struct ctl **ret,
	    struct err *err)
{
	struct ctl *ctl = calloc(1, sizeof *ctl);
	if (!ctl)
		return err_errno(err, -ENOMEM, "control socket");
	ctl->loop = loop;
	ctl->pipeline = pipeline;
	ctl->turned_away = (struct log_limit)LOG_LIMIT(5, 10000);
	ctl->path = strdup("");
	int r = ctl->path ? events_init(ctl) : -ENOMEM;
	if (r)
		(void)err_errno(err, r, "control socket");
	else
		r = ctl_set_socket(ctl, socket, err);
	if (r) {
		ctl_free(ctl);
		return r;
	}
	*ret = ctl;
	return 0;
}

struct ctl *ctl_free(struct ctl *ctl)
{
	if (!ctl)
		return NULL;
	events_fini(ctl);
	ctl->listener = listener_free(ctl->listener);
	abandon_jobs(ctl);
	while (ctl->clients)
		client_free(ctl->clients);
	free(ctl->path);
	free(ctl);
	return NULL;
}
