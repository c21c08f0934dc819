/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the daemon over its control socket. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/service.h"
#include "core/lib/wire/client.h"
#include "core/lib/wire/sock.h"
#include "proto/control.pb-c.h"

struct link {
	int fd;
	struct ttrpc_client client;
};

void complain(const struct cli *cli, const char *fmt, ...)
{
	struct err err = ERR_INIT;
	va_list ap;
	va_start(ap, fmt);
	(void)err_vset(&err, -EINVAL, fmt, ap);
	va_end(ap);
	if (!cli->json) {
		fprintf(stderr, "nri-rpctl: %s\n", err.text);
		return;
	}
	json_t *doc = json_pack("{s:s}", "error", err.text);
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	(void)puts(text ? text : "{\"error\":\"unknown error\"}");
	free(text);
	json_decref(doc);
}

int link_open(const char *socket, struct link **ret, struct err *err)
{
	struct link *l = malloc(sizeof *l);
	if (!l)
		return err_errno(err, -ENOMEM, "connecting");
	l->fd = wire_connect_unix(socket, err);
	if (l->fd < 0) {
		int r = l->fd;
		free(l);
		return r;
	}
	ttrpc_client_init(&l->client, l->fd);
	*ret = l;
	return 0;
}

struct link *link_close(struct link *l)
{
	if (!l)
		return NULL;
	ttrpc_client_fini(&l->client);
	(void)close(l->fd);
	free(l);
	return NULL;
}

void answer_fini(struct answer *a)
{
	json_decref(a->doc);
	buf_fini(&a->text);
	*a = (struct answer){.text = BUF_INIT};
}

/* Makes one call and appends its part of the document. *ret_rest: position of the next part. */
static int call_once(struct link *l, const char *method, const Control__Request *req,
		     unsigned timeout_ms, struct answer *a, bool first, uint64_t *ret_rest,
		     struct err *err)
{
	const uint8_t *data;
	size_t len;
	int r = ttrpc_client_call(&l->client, CTL_SERVICE, method, &req->base, timeout_ms, &data,
				  &len, err);
	if (r)
		return r;
	Control__Response *res = control__response__unpack(NULL, len, data);
	if (!res)
		return err_set(err, -EBADMSG, "the daemon's reply cannot be decoded");
	r = buf_add(&a->text, res->json.data, res->json.len);
	if (first)
		a->exit = res->exit;
	*ret_rest = res->rest;
	control__response__free_unpacked(res, NULL);
	if (r || buf_len(&a->text) > CTL_DOCUMENT_MAX)
		return err_set(err, -ENOMEM, "out of memory for the daemon's reply");
	return 0;
}

int link_call(struct link *l, const struct question *req, struct answer *ret, struct err *err)
{
	Control__Request m = CONTROL__REQUEST__INIT, more = CONTROL__REQUEST__INIT;
	struct answer a = {.text = BUF_INIT};
	unsigned timeout_ms = req->timeout_ms ? req->timeout_ms : WAIT_MS;
	uint64_t rest = 0;
	json_error_t why;
	m.args = (char **)(uintptr_t)req->args;
	m.n_args = req->n_args;
	m.after = req->after;
	m.wait_ms = req->wait_ms;
	m.flags = req->flags;
	if (req->text)
		m.text = (char *)(uintptr_t)req->text;
	int r = call_once(l, req->method, &m, timeout_ms, &a, true, &rest, err);
	while (!r && rest) {
		more.rest = rest;
		r = call_once(l, "More", &more, WAIT_MS, &a, false, &rest, err);
	}
	if (!r) {
		a.doc = json_loadb((const char *)buf_bytes(&a.text), buf_len(&a.text), 0, &why);
		if (!a.doc)
			r = err_set(err, -EBADMSG, "the daemon's reply is not JSON: %s", why.text);
	}
	if (r) {
		answer_fini(&a);
		return r;
	}
	*ret = a;
	return 0;
}

int tell_no_link(const struct cli *cli, int r, const struct err *err)
{
	if (r == -ENOENT || r == -ECONNREFUSED) {
		char command[512];
		complain(cli,
			 "nri-rpd is not running: no process listens on %s\nTry `%s` or `nri-rpctl "
			 "doctor`.",
			 cli->socket,
			 service_text("systemctl status nri-rpd", command, sizeof command));
		return CTL_NOT_RUNNING;
	}
	complain(cli, "%s%s", err_text(err, r),
		 r == -EACCES || r == -EPERM ? "; run it as root" : "");
	return CTL_FAILED;
}

int call_daemon(const struct cli *cli, const struct question *req, struct answer *ret,
		struct err *err)
{
	struct link *l = NULL;
	int r = link_open(cli->socket, &l, err);
	if (!r)
		r = link_call(l, req, ret, err);
	link_close(l);
	return r;
}

int ask(struct cli *cli, const struct question *req, struct answer *ret)
{
	struct err err = ERR_INIT;
	struct link *l = NULL;
	int r = link_open(cli->socket, &l, &err);
	if (r)
		return tell_no_link(cli, r, &err);
	r = link_call(l, req, ret, &err);
	link_close(l);
	if (r) {
		complain(cli, "%s", err_text(&err, r));
		return CTL_FAILED;
	}
	if (cli->json) {
		(void)buf_add(&cli->out.buf, buf_bytes(&ret->text), buf_len(&ret->text));
		(void)buf_add_str(&cli->out.buf, "\n");
		int exit = ret->exit;
		answer_fini(ret);
		return exit;
	}
	const char *error = json_string_value(json_object_get(ret->doc, "error"));
	if (error && json_object_size(ret->doc) == 1) {
		char *clean = text_clean(&cli->out.term, error);
		fprintf(stderr, "nri-rpctl: %s\n", clean ? clean : "out of memory");
		free(clean);
		int exit = ret->exit ? ret->exit : CTL_FAILED;
		answer_fini(ret);
		return exit;
	}
	return -1;
}
