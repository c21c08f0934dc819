/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes requests, runs their commands and answers with the commands' documents. */
#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "core/nri-rpd/control/internal.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/config.h"
#include "core/nri-rpd/control/doctor.h"
#include "core/nri-rpd/control/events.h"
#include "core/nri-rpd/control/lists.h"
#include "core/nri-rpd/control/machine.h"
#include "core/nri-rpd/control/modules.h"
#include "core/nri-rpd/control/node.h"
#include "core/nri-rpd/control/rebalance.h"
#include "core/nri-rpd/control/server.h"
#include "core/nri-rpd/control/status.h"

#define LOG_SOURCE "control"
#define ARENA_BLOCK 4096u
#define ARENA_MAX                                                                                  \
	(8u * CTL_REQUEST_MAX) /* an empty argument has 2 bytes in a request, 8 in memory */

static const struct command commands[] = {
	{"Status", 0, 0, run_status},
	{"Pods", 0, 1, run_pods},
	{"Claims", 0, 0, run_claims},
	{"Containers", 0, 1, run_containers},
	{"Explain", 1, 1, run_explain},
	{"Zones", 0, 0, run_zones},
	{"Node", 0, 0, run_node},
	{"Topology", 0, 0, run_topology},
	{"Events", 0, 0, run_events},
	{"Reload", 0, 1, run_reload},
	{"Confirm", 0, 0, run_confirm},
	{"Undo", 0, 0, run_undo},
	{"Plan", 1, 1, run_plan},
	{"Try", 1, 1, run_try},
	{"Rebalance", 0, 1, run_rebalance},
	{"ConfigCheck", 0, 1, run_config_check},
	{"ConfigShow", 0, 0, run_config_show},
	{"Modules", 0, 0, run_modules},
	{"ModulesClear", 1, 1, run_modules_clear},
	{"LogLevel", 0, 1, run_log_level},
	{"LogDebug", 0, CTL_ARGS_MAX, run_log_debug},
	{"Doctor", 0, 0, run_doctor},
	{"Version", 0, 0, run_version},
	{"More", 0, 0, NULL},
};

const struct command *command_find(const char *method)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (str_eq(commands[i].method, method))
			return &commands[i];
	return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int command_check_args(const Control__Request *req, const struct command *command,
			      struct err *err)
{
	if (req->n_args < command->min_args || req->n_args > command->max_args)
		return err_set(err, -EINVAL, "%s takes %u to %u arguments, not %zu",
			       command->method, command->min_args, command->max_args, req->n_args);
	for (size_t i = 0; i < req->n_args; i++) {
		size_t len = strlen(req->args[i]);
		if (len > CTL_ARG_MAX)
			return err_set(err, -EINVAL,
				       "argument %zu has %zu bytes, at most %u are accepted", i + 1,
				       len, CTL_ARG_MAX);
		if (!utf8_valid(req->args[i], len))
			return err_set(err, -EINVAL, "argument %zu is not UTF-8", i + 1);
	}
	if (strlen(req->text) > CTL_TEXT_MAX)
		return err_set(err, -EINVAL, "a text of %zu bytes, at most %u are accepted",
			       strlen(req->text), CTL_TEXT_MAX);
	return 0;
}

Control__Request *command_decode(struct arena *arena, const uint8_t *data, size_t len,
				 const struct command *command, struct err *err)
{
	if (len > CTL_REQUEST_MAX) {
		(void)err_set(err, -EMSGSIZE, "a request of %zu bytes, at most %u are accepted",
			      len, CTL_REQUEST_MAX);
		return NULL;
	}
	Control__Request *req = PB_UNPACK(arena, control__request, len, data);
	if (!req)
		(void)err_set(err, -EBADMSG, "the request cannot be decoded");
	return req && command_check_args(req, command, err) == 0 ? req : NULL;
}

/* ---- answers --------------------------------------------------------------------------------- */

void document_error(struct buf *out, const char *text)
{
	struct json j;
	buf_reset(out);
	json_init(&j, out);
	json_obj(&j);
	json_kstr(&j, "error", text);
	json_end_obj(&j);
}

enum call_result call_fail(struct call *call, int exit, const char *fmt, ...)
{
	struct err e = ERR_INIT;
	va_list ap;
	va_start(ap, fmt);
	(void)err_vset(&e, -EINVAL, fmt, ap);
	va_end(ap);
	document_error(&call->out, e.text);
	call->exit = exit;
	return CALL_DONE;
}

/* Runs the command and answers, unless a job has taken over the request. */
static void command_run(struct ctl *ctl, const struct command *command, const Control__Request *req,
			const struct asker *asker)
{
	struct call call = {
		.ctl = ctl, .p = ctl->pipeline, .asker = *asker, .req = req, .out = BUF_INIT};
	json_init(&call.j, &call.out);
	if (command->run(&call) == CALL_DONE)
		server_answer(&call.asker, &call.out, call.exit);
	buf_fini(&call.out);
}

/* Removes const from a text: the strings of a protobuf-c request are not const, though they are
 * only read. */
static char *commands_borrowed(const char *s)
{
	return (char *)(uintptr_t)(s ? s : "");
}

void ctl_ask(struct ctl *ctl, const struct ctl_question *q, ctl_answer_fn fn, void *arg)
{
	const struct command *command = command_find(q->method);
	const struct asker asker = {.fn = fn, .arg = arg};
	struct err err = ERR_INIT;
	char *args[] = {commands_borrowed(q->argument)};
	Control__Request req = CONTROL__REQUEST__INIT;
	req.args = args;
	req.n_args = q->argument != NULL;
	req.text = commands_borrowed(q->text);
	req.flags = q->flags;
	req.after = q->after;
	req.wait_ms = q->wait_ms;
	assert(command && command->run);
	if (command_check_args(&req, command, &err) == 0) {
		command_run(ctl, command, &req, &asker);
		return;
	}
	struct buf out = BUF_INIT;
	document_error(&out, err.text);
	server_answer(&asker, &out, CTL_USAGE);
	buf_fini(&out);
}

void command_serve(struct client *client, struct rpc_request *rpc)
{
	struct err err = ERR_INIT;
	const struct command *command = command_find(rpc->method);
	if (!str_eq(rpc->service, CTL_SERVICE) || !command) {
		(void)rpc_reply_error(rpc, TTRPC_UNIMPLEMENTED, "unknown command: %s/%s",
				      rpc->service, rpc->method);
		return;
	}
	_arena_ struct arena *arena = arena_new(ARENA_BLOCK, ARENA_MAX);
	if (!arena) {
		(void)rpc_reply_error(rpc, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	const Control__Request *req =
		command_decode(arena, rpc->payload, rpc->payload_len, command, &err);
	if (!req) {
		(void)rpc_reply_error(rpc, TTRPC_INVALID_ARGUMENT, "%s", err.text);
		return;
	}
	log_debug("%s %s", command->method, req->n_args ? req->args[0] : "");
	const struct asker asker = {.client = client, .rpc = rpc};
	if (command->run)
		command_run(client->ctl, command, req, &asker);
	else
		server_more(client, rpc, req->rest);
}
