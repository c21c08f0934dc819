/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the control socket, and labels of metrics: whatever the bytes are, what comes out
 * keeps its limits. The first byte chooses the command.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/metrics/expo.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const methods[] = {"Status",	    "Explain", "Plan", "LogDebug", "LogLevel",
				      "Containers", "Events",  "More", "nothing"};

static void check_request(const Control__Request *req, const struct command *command)
{
	if (req->n_args < command->min_args || req->n_args > command->max_args)
		abort();
	for (size_t i = 0; i < req->n_args; i++) {
		size_t len = strlen(req->args[i]);
		if (len > CTL_ARG_MAX || !utf8_valid(req->args[i], len))
			abort();
		(void)matches(req->args[i], "default/web/c0");
	}
}

static void fuzz_command(const uint8_t *data, size_t size)
{
	const struct command *command =
		command_find(methods[data[0] % (sizeof methods / sizeof methods[0])]);
	struct err err = ERR_INIT;
	if (!command)
		return;
	_arena_ struct arena *arena = arena_new(4096, 8u * CTL_REQUEST_MAX);
	const Control__Request *req =
		arena ? command_decode(arena, data + 1, size - 1, command, &err) : NULL;
	if (req)
		check_request(req, command);
	else if (arena && !err.text[0])
		abort(); /* every refusal has its sentence */
}

/* Checks that valid labels can be written without harm to the lines around them. */
static void fuzz_labels(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	if (expo_labels_valid(text) && strchr(text, '\n'))
		abort();
	(void)expo_name_valid(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	fuzz_command(data, size);
	fuzz_labels(data, size);
	return 0;
}
