/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines and environments for the static-pools policy: what a container asks for stays
 * within its bounds, and is a part of what it said. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "modules/static-pools/static-pools.h"

#define ARGS_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "ARG\nARG\n…", and the first ones are the environment as well. */
struct line {
	char *args[ARGS_MAX];
	uint32_t n;
};

static const char *arg(void *ctx, rp_ctr ctr, uint32_t index)
{
	const struct line *l = ctx;
	return index < l->n ? l->args[index] : NULL;
}

static const char *env(void *ctx, rp_ctr ctr, const char *name)
{
	const struct line *l = ctx;
	uint32_t index = name[0] == 'C' ? 0 : name[4] == 'P' ? 1 : name[4] == 'S' ? 2 : 3;
	return index < l->n && l->args[index][0] == '=' ? l->args[index] + 1 : NULL;
}

static int32_t extended(void *ctx, rp_ctr ctr, const char *resource, int64_t *ret_request,
			int64_t *ret_limit)
{
	return -RP_ENOENT;
}

static void no_log(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	assert(strlen(text) < MODHOST_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rp_host host = {.size = sizeof host, .log = no_log};
	static const struct rp_host_cache cache = {
		.size = sizeof cache, .arg = arg, .env = env, .extended = extended};
	struct line line = {.n = 0};
	struct modhost h = {.host = &host, .ctx = &line, .cache = &cache};
	struct ask a;
	char *text = calloc(1, size + 1), *rest = text;
	if (!text)
		return 0;
	memcpy(text, data, size);
	while (rest && line.n < ARGS_MAX)
		line.args[line.n++] = strsep(&rest, "\n");
	if (ask_of(&h, 1, &a) == 0) {
		assert(memchr(a.pool, '\0', sizeof a.pool) && a.socket >= SOCKET_ANY);
		for (uint32_t i = 0; i < a.n_args; i++)
			assert(strlen(a.args[i]) <= size);
	}
	ask_fini(&a);
	free(text);
	return 0;
}
