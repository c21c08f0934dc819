/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's end of NRI (core/lib/nri-runtime) for scenarios. Requests block until they are
 * answered; the plugin's wishes are checked and applied to the model, and its mistakes are reported
 * as problems.
 */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "proto/nri.pb-c.h"

/* Starts the runtime: creates the NRI socket and listens on it. */
int conn_listen(struct sim *s, struct err *err);
/* Stops the runtime: closes its connections and removes the socket. */
void conn_close(struct sim *s);

bool conn_is_active(const struct sim *s);
/* Returns how many times a plugin has become active, for conn_wait_active. */
uint64_t conn_n_active(const struct sim *s);
/* Waits until that number exceeds `after`. */
int conn_wait_active(struct sim *s, uint64_t after, uint64_t timeout_ms, struct err *err);
/* Disconnects the plugin; `why` is published as an event. */
void conn_drop(struct sim *s, const char *why);

/* Chooses whether Configure is sent before (`first`) or after the answer to the next
 * registration. */
void conn_configure_first(struct sim *s, bool first);

struct conn_answer {
	struct sim *s;
	int error; /* the error of rpc_result; 0: answered; -ENOTCONN: no plugin */
	int32_t code;
	char *text; /* malloc'd, like the payload; may be NULL */
	uint8_t *payload;
	size_t payload_len;
	uint64_t took_us;
};
void conn_answer_fini(struct conn_answer *answer);
/*
 * Sends an event and waits for the answer. Does nothing if the plugin has not subscribed to it. The
 * message is made of pod and ctr; resources are those of an UpdateContainer. A plugin that exceeds
 * the timeout or disconnects is dropped: -ETIMEDOUT, -ECONNRESET …
 */
void conn_event(struct sim *s, Nri__Event event, const struct sim_pod *pod,
		const struct sim_ctr *ctr, const struct resources *resources,
		struct conn_answer *ret);
