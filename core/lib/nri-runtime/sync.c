/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/nri-runtime/sync.h"

#include "core/lib/wire/nri_protocol.h"

#include <stdlib.h>

/* largest part of a list, in bytes: a message minus its other contents */
#define PART_MAX (TTRPC_MESSAGE_MAX - 1024u)
#define OBJECT_OVERHEAD 8u /* tag and length of one object in its list */

struct nri_sync {
	struct nri_sync_config config;
	size_t next_pod, next_ctr;
	bool more; /* true if parts follow the current one */
};

/* Returns the number of objects that fit, at least one if the message is empty; *room is the
 * remaining space. */
static size_t sync_fitting(const struct nri_sync_config *c, ProtobufCMessage *const *list, size_t n,
			   size_t *room, bool empty)
{
	if (c->whole)
		return n;
	if (c->all.part && n > c->all.part)
		n = c->all.part;
	size_t taken = 0;
	for (; taken < n; taken++) {
		size_t size = protobuf_c_message_get_packed_size(list[taken]) + OBJECT_OVERHEAD;
		if (size > *room && !(empty && !taken))
			break;
		*room = size < *room ? *room - size : 0;
	}
	return taken;
}

static void fill_part(const struct nri_sync *s, Nri__SynchronizeRequest *m)
{
	const struct nri_sync_config *c = &s->config;
	const struct nri_existing *all = &c->all;
	size_t room = PART_MAX;
	m->pods = all->pods + s->next_pod;
	m->n_pods = sync_fitting(c, (ProtobufCMessage *const *)m->pods, all->n_pods - s->next_pod,
				 &room, true);
	m->containers = all->ctrs + s->next_ctr;
	if (c->whole || all->part || s->next_pod + m->n_pods == all->n_pods)
		m->n_containers = sync_fitting(c, (ProtobufCMessage *const *)m->containers,
					       all->n_ctrs - s->next_ctr, &room, !m->n_pods);
	m->more = s->next_pod + m->n_pods < all->n_pods ||
		  s->next_ctr + m->n_containers < all->n_ctrs;
}

static void on_part(const struct rpc_result *result, void *arg)
{
	struct nri_sync *s = arg;
	const char *why = result->error ? result->text : NULL;
	Nri__SynchronizeResponse *m =
		why ? NULL
		    : nri__synchronize_response__unpack(NULL, result->payload_len, result->payload);
	if (!why && !m)
		why = "undecodable reply";
	else if (!why && (s->more != (m->more != 0) || (s->more && m->n_update)))
		why = "the plugin does not handle split sync requests";
	bool more = s->more;
	if (!why && more && nri_sync_begin(s))
		why = "Synchronize could not be sent";
	if (why || !more)
		s->config.done(why ? NULL : m, why, s->config.arg);
	nri__synchronize_response__free_unpacked(m, NULL);
}

int nri_sync_begin(struct nri_sync *s)
{
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	fill_part(s, &m);
	s->next_pod += m.n_pods;
	s->next_ctr += m.n_containers;
	s->more = m.more;
	return rpc_call(s->config.rpc, NRI_PLUGIN_SERVICE, "Synchronize", &m.base,
			s->config.timeout_ms, on_part, s);
}

struct nri_sync *nri_sync_new(const struct nri_sync_config *config)
{
	struct nri_sync *s = calloc(1, sizeof *s);
	if (s)
		s->config = *config;
	return s;
}

struct nri_sync *nri_sync_free(struct nri_sync *s)
{
	free(s);
	return NULL;
}
