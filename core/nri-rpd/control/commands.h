/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds, decodes and runs the commands of the control socket, for clients and for other parts of
 * the process.
 */
#pragma once

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/control/internal.h"

/* Runs a command for another part of this process. Calls fn exactly once, at once or later, also
 * for errors ({"error": TEXT}), but not after ctl_forget() or ctl_free(). */
void ctl_ask(struct ctl *ctl, const struct ctl_question *question, ctl_answer_fn fn, void *arg);
const struct command *command_find(const char *method);

/* Decodes a request into the arena. NULL: the bytes are no request or exceed a limit; err has the
 * reason. */
Control__Request *command_decode(struct arena *arena, const uint8_t *data, size_t len,
				 const struct command *command, struct err *err);
void command_serve(struct client *client, struct rpc_request *rpc);

/* Replaces the document of the call by {"error": TEXT}. */
enum call_result call_fail(struct call *call, int exit, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void document_error(struct buf *out, const char *text);
