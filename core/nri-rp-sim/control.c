/* SPDX-License-Identifier: Apache-2.0 */
/* Client of nri-rpd's control socket. It runs on the loop, because nri-rpd may request updates in
 * the meantime. */
#include "core/nri-rp-sim/control.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/lib/util/buf.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"
#include "proto/control.pb-c.h"

#define SERVICE "nri-rp.v1.Control"
#define ARGS_MAX 16u

struct exchange {
	struct sim *s;
	struct trunk *trunk;
	struct buf document;
	bool done;
	int error;
	int exit;
	uint64_t rest;
	struct err err;
};

static void control_answered(const struct rpc_result *result, void *arg)
{
	struct exchange *x = arg;
	x->done = true;
	sim_wake(x->s);
	if (result->error) {
		x->error = err_set(&x->err, result->error, "%s", result->text);
		return;
	}
	Control__Response *m =
		control__response__unpack(NULL, result->payload_len, result->payload);
	if (!m) {
		x->error = err_set(&x->err, -EBADMSG, "nri-rpd's reply cannot be decoded");
		return;
	}
	if (m->json.len)
		(void)buf_add(&x->document, m->json.data, m->json.len);
	x->exit = m->exit;
	x->rest = m->rest;
	control__response__free_unpacked(m, NULL);
}

static void closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct exchange *x = arg;
	if (!x->done)
		x->error = err_set(&x->err, err->code, "%s", err->text);
	x->done = true;
	sim_wake(x->s);
}

static bool is_done(struct sim *s, void *arg)
{
	return ((const struct exchange *)arg)->done;
}

static int ask_once(struct exchange *x, const char *method, const Control__Request *req,
		    uint64_t timeout_ms)
{
	x->done = false;
	int r = rpc_call(trunk_rpc(x->trunk, 0), SERVICE, method, &req->base, timeout_ms,
			 control_answered, x);
	if (r)
		return err_errno(&x->err, r, "request to nri-rpd");
	(void)sim_wait(x->s, is_done, x, UINT64_MAX);
	return x->error;
}

static int ask_all(struct exchange *x, const char *method, const json_t *args, uint64_t timeout_ms)
{
	Control__Request req = CONTROL__REQUEST__INIT;
	char *texts[ARGS_MAX];
	if (json_array_size(args) > ARGS_MAX)
		return err_set(&x->err, -E2BIG, "%s: too many arguments", method);
	req.args = texts;
	for (size_t i = 0; i < json_array_size(args); i++) {
		const char *text = json_string_value(json_array_get(args, i));
		texts[req.n_args++] = (char *)(uintptr_t)(text ? text : "");
	}
	int r = ask_once(x, method, &req, timeout_ms);
	int exit_status = x->exit;
	while (!r && x->rest) {
		Control__Request more = CONTROL__REQUEST__INIT;
		more.rest = x->rest;
		r = ask_once(x, "More", &more, timeout_ms);
	}
	x->exit = exit_status;
	return r;
}

int control_ask(struct sim *s, const char *method, const json_t *args, uint64_t timeout_ms,
		json_t **ret, int *ret_exit, struct err *err)
{
	struct exchange x = {.s = s, .document = BUF_INIT, .err = ERR_INIT};
	const struct trunk_config config = {.closed = closed, .arg = &x};
	int fd = wire_connect_unix(s->control, err);
	if (fd < 0)
		return fd;
	int r = trunk_new(s->loop, fd, &config, &x.trunk, err);
	if (r)
		return r;
	r = ask_all(&x, method, args, timeout_ms);
	trunk_free(x.trunk);
	json_error_t why;
	if (r)
		r = err_set(err, r, "%s: %s", method, err_text(&x.err, r));
	else if (!(*ret = json_loads(buf_text(&x.document), 0, &why)))
		r = err_set(err, -EBADMSG, "%s: the document is not JSON: %s", method, why.text);
	else
		*ret_exit = x.exit;
	buf_fini(&x.document);
	return r;
}
