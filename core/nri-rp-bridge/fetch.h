/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the kubelet's list of pods from one of its ports. */
#pragma once

#include "core/nri-rp-bridge/podlist.h"

struct fetch;

/* Receives the result of one GET of /pods. text: the cause of a failure, valid during the call;
 * NULL: `body` has the list. */
typedef void (*fetched)(const char *text, const char *body, size_t n, void *arg);
int fetch_new(const struct podlist_config *config, fetched done, void *arg, struct fetch **ret,
	      struct err *err);
struct fetch *fetch_free(struct fetch *f);
/* Returns true if the token is readable and the kubelet's certificate will be verified. Without
 * verification any listener at the port would get the token, so that mode must be requested
 * explicitly. */
bool fetch_may_be_secure(const struct fetch *f);
/* Starts a fetch. done is called once, not from inside fetch_begin. */
void fetch_begin(struct fetch *f, bool secure);
