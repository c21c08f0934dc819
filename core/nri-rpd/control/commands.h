/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_COMMANDS_H
#define CONTROL_COMMANDS_H

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/control/internal.h"

/* Calls fn exactly once, here or later, with errors too ({"error": TEXT}), but not after
 * ctl_forget() or ctl_free(). */
void ctl_ask(struct ctl *ctl, const struct ctl_question *question, ctl_answer_fn fn, void *arg);
const struct command *command_find(const char *method);

/* What is in the bytes, out of the arena; NULL and a sentence when it is no request or breaks a
 * limit. */
Control__Request *command_decode(struct arena *arena, const uint8_t *data, size_t len,
				 const struct command *command, struct err *err);
void command_serve(struct client *client, struct rpc_request *rpc);

/* Drops what was written: the document is {"error": TEXT}. */
enum call_result call_fail(struct call *call, int exit, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void document_error(struct buf *out, const char *text);

#endif
