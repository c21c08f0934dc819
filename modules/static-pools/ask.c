/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the request of a container: environment variables, `cmk isolate` in the command line, and
 * the extended resource. ask_of() is the entry point.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/static-pools/static-pools.h"

void ask_fini(struct ask *a)
{
	free(a->args);
	free(a->words);
}

/* Returns 0, or -RP_EINVAL if the text is not a whole number. */
static int parse_integer(const char *text, int64_t *ret)
{
	char *end;
	long long n = strtoll(text, &end, 10);
	if (!*text || *end)
		return -RP_EINVAL;
	*ret = n;
	return 0;
}

static void take_pool(struct ask *a, const char *name)
{
	/* A longer name cannot be the name of a pool and is replaced by "?". */
	(void)snprintf(a->pool, sizeof a->pool, "%s", strlen(name) < sizeof a->pool ? name : "?");
}

static void take_socket(const struct modhost *h, rp_ctr ctr, struct ask *a, const char *text)
{
	int64_t n;
	if (parse_integer(text, &n))
		modhost_log(h, RP_LOG_WARNING, ctr,
			    "socket \"%.32s\" is not a number and is ignored", text);
	else
		a->socket = n < 0 ? SOCKET_ANY : n;
}

/* ---- cmk isolate ----------------------------------------------------------------------------- */

static bool is_isolate(const char *const *words, uint32_t n)
{
	const char *base = n > 2 ? strrchr(words[0], '/') : NULL;
	return n > 2 && strcmp(base ? base + 1 : words[0], "cmk") == 0 &&
	       strcmp(words[1], "isolate") == 0;
}

/* Returns the value of an option, from its word or the next one, or NULL if the word is another
 * option. */
static const char *value_of(const char *const *words, uint32_t n, uint32_t *at, const char *option)
{
	size_t len = strlen(option);
	const char *word = words[*at];
	if (!word || strncmp(word, option, len) != 0)
		return NULL;
	if (word[len] == '=')
		return word + len + 1;
	return !word[len] && *at + 1 < n ? words[++*at] : NULL;
}

/* Reads the options of `cmk isolate` into *a. Returns the index of the first word after the
 * options, or 0 if this is no `cmk isolate` with a pool and a command. */
static uint32_t parse_isolate(const struct modhost *h, rp_ctr ctr, const char *const *words,
			      uint32_t n, struct ask *a)
{
	const char *pool = NULL, *socket = NULL, *value;
	bool no_affinity = false;
	uint32_t at;
	if (!is_isolate(words, n))
		return 0;
	for (at = 2; at < n && words[at][0] == '-'; at++) {
		if (strcmp(words[at], "--") == 0) {
			at++;
			break;
		}
		if (strcmp(words[at], "--no-affinity") == 0)
			no_affinity = true;
		else if ((value = value_of(words, n, &at, "--pool")))
			pool = value;
		else if ((value = value_of(words, n, &at, "--socket-id")))
			socket = value;
		else
			(void)value_of(words, n, &at, "--conf-dir");
	}
	if (!pool || at >= n)
		return 0;
	take_pool(a, pool);
	if (socket)
		take_socket(h, ctr, a, socket);
	a->no_affinity = no_affinity;
	return at;
}

static uint32_t ask_split(char *text, const char **words)
{
	uint32_t n = 0;
	char *saved = NULL;
	for (char *w = strtok_r(text, " \t\n\r\v\f", &saved); w;
	     w = strtok_r(NULL, " \t\n\r\v\f", &saved))
		words[n++] = w;
	return n;
}

/* Finds `cmk isolate` as the whole command line, or inside one argument: sh -c "cmk isolate …". */
static int32_t read_args(const struct modhost *h, rp_ctr ctr, struct ask *a)
{
	uint32_t n = 0, at = 0;
	size_t longest = 0;
	while (h->cache->arg(h->ctx, ctr, n)) {
		size_t len = strlen(h->cache->arg(h->ctx, ctr, n++));
		longest = len > longest ? len : longest;
	}
	a->args = calloc(n + longest / 2 + 2, sizeof *a->args);
	a->words = malloc(longest + 1);
	if (!a->args || !a->words)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < n; i++)
		a->args[i] = h->cache->arg(h->ctx, ctr, i);
	at = parse_isolate(h, ctr, a->args, n, a);
	a->n_args = n;
	for (uint32_t i = 0; !at && i < n; i++) {
		const char *arg = h->cache->arg(h->ctx, ctr, i);
		memcpy(a->words, arg, strlen(arg) + 1);
		a->n_args = ask_split(a->words, a->args);
		at = parse_isolate(h, ctr, a->args, a->n_args, a);
	}
	a->n_args = at ? a->n_args - at : 0;
	memmove(a->args, a->args + at, a->n_args * sizeof *a->args);
	return 0;
}

/* ---- whole request --------------------------------------------------------------------------- */

static void read_number(const struct modhost *h, rp_ctr ctr, struct ask *a)
{
	const char *text = h->cache->env(h->ctx, ctr, "CMK_NUM_CORES");
	int64_t limit, n = 0;
	bool told = h->cache->extended(h->ctx, ctr, CORES_RESOURCE, &a->n, &limit) == 0;
	bool said = text && parse_integer(text, &n) == 0;
	if (!told)
		a->n = said ? n : 0;
	else if (said && n != a->n)
		modhost_log(h, RP_LOG_WARNING, ctr,
			    "CMK_NUM_CORES is %lld, but " CORES_RESOURCE " is %lld, which is used",
			    (long long)n, (long long)a->n);
}

int32_t ask_of(const struct modhost *h, rp_ctr ctr, struct ask *ret)
{
	*ret = (struct ask){.pool = "shared", .socket = SOCKET_ANY};
	read_number(h, ctr, ret);
	int32_t r = read_args(h, ctr, ret);
	const char *pool = h->cache->env(h->ctx, ctr, "STP_POOL");
	const char *socket = h->cache->env(h->ctx, ctr, "STP_SOCKET_ID");
	if (pool)
		take_pool(ret, pool);
	if (socket)
		take_socket(h, ctr, ret, socket);
	if (h->cache->env(h->ctx, ctr, "STP_NO_AFFINITY"))
		ret->no_affinity = true;
	if (strcmp(ret->pool, "infra") == 0)
		ret->socket = SOCKET_ANY;
	return r;
}
