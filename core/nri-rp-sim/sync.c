/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronize: all pods and containers in one message; in parts when there is too much for one, or when the scenario wants it. Only
 * the answer to the last part carries updates, the others say that there is more to come.
 */
#include <stdlib.h>

#include "core/nri-rp-sim/apply.h"
#include "core/nri-rp-sim/conn_internal.h"

#define FEW 8u /* objects: a message of so few is sent however large it is */
#define ENVELOPE 1024u /* what goes around a message, at most */

void sync_abandon(struct conn *c)
{
	loop_timer_disarm(c->sync_timer);
	c->sync_arena = arena_free(c->sync_arena);
	c->n_pods = c->n_ctrs = 0;
}

void sync_late(void *arg)
{
	struct conn *c = arg;
	sim_problem(c->s, "Synchronize was not answered within %llu ms",
		    (unsigned long long)c->s->request_timeout_ms);
	conn_drop(c->s, "it was late");
}

static int collect(struct conn *c)
{
	const struct sim *s = c->s;
	struct arena *a = c->sync_arena = arena_new(256 << 10, 0);
	size_t n_pods = 0, n_ctrs = 0;
	for (const struct sim_pod *p = s->pods; p; p = p->next)
		n_pods++;
	for (const struct sim_ctr *t = s->ctrs; t; t = t->next)
		n_ctrs++;
	c->pods = a ? arena_array(a, n_pods + 1, sizeof(void *)) : NULL;
	c->ctrs = a ? arena_array(a, n_ctrs + 1, sizeof(void *)) : NULL;
	if (!c->pods || !c->ctrs)
		return -ENOMEM;
	c->n_pods = c->n_ctrs = c->next_pod = c->next_ctr = 0;
	for (const struct sim_pod *p = s->pods; p; p = p->next) {
		if (p->stopped && s->runtime == RUNTIME_CRIO)
			continue;
		c->pods[c->n_pods] = message_pod(s, a, p);
		if (!c->pods[c->n_pods++])
			return -ENOMEM;
	}
	for (const struct sim_ctr *t = s->ctrs; t; t = t->next) {
		if (t->state != CTR_CREATED && t->state != CTR_RUNNING)
			continue;
		c->ctrs[c->n_ctrs] = message_ctr(s, a, t);
		if (!c->ctrs[c->n_ctrs++])
			return -ENOMEM;
	}
	return 0;
}

static void fill_part(const struct conn *c, Nri__SynchronizeRequest *m)
{
	size_t pods = c->n_pods - c->next_pod, ctrs = c->n_ctrs - c->next_ctr;
	m->pods = c->pods + c->next_pod;
	m->n_pods = pods < c->pods_a_part ? pods : c->pods_a_part;
	m->containers = c->ctrs + c->next_ctr;
	m->n_containers = ctrs < c->ctrs_a_part ? ctrs : c->ctrs_a_part;
	m->more = m->n_pods < pods || m->n_containers < ctrs;
}

/* Fewer objects a message until it fits, as NRI does since 0.7. */
static void shrink(struct conn *c, Nri__SynchronizeRequest *m)
{
	const size_t max = TTRPC_MESSAGE_MAX - ENVELOPE;
	size_t size;
	while ((size = protobuf_c_message_get_packed_size(&m->base)) > max) {
		if (m->n_pods + m->n_containers <= FEW)
			return;
		double factor = (double)max / (double)size;
		factor = factor > 0.9 ? 0.9 : factor;
		c->pods_a_part = (size_t)((double)m->n_pods * factor);
		c->ctrs_a_part = (size_t)((double)m->n_containers * factor);
		if (c->pods_a_part + c->ctrs_a_part < FEW)
			c->pods_a_part = c->ctrs_a_part = FEW / 2;
		fill_part(c, m);
	}
}

static void send_part(struct conn *c);

static void become_active(struct conn *c, const Nri__SynchronizeResponse *m)
{
	struct sim *s = c->s;
	struct err err = ERR_INIT;
	json_t *details = json_object();
	int r = check_message(s, &m->base, "the answer to Synchronize");
	if (!r)
		r = check_claims(s, m->update, m->n_update, &err);
	unsigned failed = r ? 1 : apply_updates(s, m->update, m->n_update, "synchronize");
	if (failed && s->runtime == RUNTIME_CRIO) {
		json_decref(details);
		conn_drop(s, "updates of the synchronisation have failed");
		return;
	}
	put_text(details, "plugin", c->name);
	put_int(details, "pods", (int64_t)c->n_pods);
	put_int(details, "containers", (int64_t)c->n_ctrs);
	put_int(details, "updates", (int64_t)m->n_update);
	sync_abandon(c);
	c->state = CONN_ACTIVE;
	c->n_active++;
	s->n_synchronizations++;
	sim_event(s, "synchronized", details);
	conn_carry_out_waiting(c);
}

static void part_answered(const struct rpc_result *result, void *arg)
{
	struct conn *c = arg;
	if (result->error == -ECANCELED || c->state != CONN_CONFIGURED)
		return;
	Nri__SynchronizeResponse *m = result->error
					      ? NULL
					      : nri__synchronize_response__unpack(
							NULL, result->payload_len, result->payload);
	if (!m || (c->more && (!m->more || m->n_update)) || (!c->more && m->more)) {
		sim_problem(c->s, "Synchronize: %s",
			    result->error ? result->text
			    : !m	  ? "undecodable answer"
					  : "the plugin does not handle split sync requests");
		conn_drop(c->s, "Synchronize has failed");
	} else if (c->more) {
		send_part(c);
	} else {
		become_active(c, m);
	}
	nri__synchronize_response__free_unpacked(m, NULL);
}

static void send_part(struct conn *c)
{
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	fill_part(c, &m);
	if (release_has_timeouts(c->s->release))
		shrink(c, &m);
	c->next_pod += m.n_pods;
	c->next_ctr += m.n_containers;
	c->more = m.more;
	if (rpc_call(c->rpc, CONN_PLUGIN_SERVICE, "Synchronize", &m.base, 0, part_answered, c))
		conn_drop(c->s, "Synchronize could not be sent");
}

void sync_begin(struct conn *c)
{
	unsigned parts = release_has_timeouts(c->s->release) ? c->s->sync_parts : 0;
	if (collect(c) || loop_timer_arm(c->sync_timer, c->s->request_timeout_ms)) {
		conn_drop(c->s, "out of memory");
		return;
	}
	c->pods_a_part = c->ctrs_a_part = parts ? parts : SIZE_MAX;
	send_part(c);
}
