/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed pods, containers and resources, as the daemon decodes them. What protobuf-c takes as well
 * says the same there; what is decoded at one depth is at all that are less. The first byte chooses
 * what it is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/nri/internal.h"
#include "core/lib/util/pb.h"
#include "core/nri-rpd/nri/decode.h"

#define ARENA_MAX (8u << 20)

static void check(int ok)
{
	if (!ok)
		abort();
}

static void check_pod(struct arena *a, struct span s)
{
	struct pod_desc all, name;
	ProtobufCAllocator alloc = pb_arena(a);
	int r = decode_pod(a, s, DECODE_ALL, &all);
	const Nri__PodSandbox *m = nri__pod_sandbox__unpack(&alloc, span_len(&s), s.p);
	if (r)
		return;
	r = decode_pod(a, s, DECODE_NAME, &name);
	check(r == -ENOMEM || (r == 0 && strcmp(all.id, name.id) == 0));
	if (m)
		check(strcmp(m->id, all.id) == 0 && m->n_labels == all.n_labels &&
		      m->n_annotations == all.n_annotations);
}

static void check_ctr(struct arena *a, struct span s)
{
	struct ctr_desc all, facts, name;
	ProtobufCAllocator alloc = pb_arena(a);
	int r = decode_ctr(a, a, s, DECODE_ALL, &all);
	const Nri__Container *m = nri__container__unpack(&alloc, span_len(&s), s.p);
	if (r)
		return;
	r = decode_ctr(a, a, s, DECODE_FACTS, &facts);
	check(r == -ENOMEM || (r == 0 && facts.res.shares == all.res.shares));
	r = decode_ctr(a, a, s, DECODE_NAME, &name);
	check(r == -ENOMEM || (r == 0 && strcmp(all.id, name.id) == 0));
	if (m)
		check(strcmp(m->id, all.id) == 0 && m->pid == all.pid && m->n_env == all.n_env &&
		      m->n_mounts == all.n_mounts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct res_desc res;
	if (!size)
		return 0;
	struct arena *a = arena_new(64u << 10, ARENA_MAX);
	struct span s = span_of(data + 1, size - 1);
	check(a != NULL);
	if (data[0] % 3 == 0)
		check_pod(a, s);
	else if (data[0] % 3 == 1)
		check_ctr(a, s);
	else
		(void)decode_resources(a, s, &res);
	check(arena_held(a) <= ARENA_MAX);
	arena_free(a);
	return 0;
}
