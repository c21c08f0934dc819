/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the store, whole. A message that is taken has to be within the cache's limits.
 */
#include <assert.h>

#include "core/nri-rpd/store/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_kvs(const struct kvs *s)
{
	uint32_t n = 0, size = 0;
	KVS_EACH(k, v, s)
	{
		size += (uint32_t)(strlen(k) + strlen(v) + 2);
		n++;
		assert(kvs_get(s, k) == v);
	}
	assert(n == s->n && size == s->size && size <= KVS_TOTAL_MAX);
}

static void check_set(const struct stored_set *s, uint32_t max)
{
	uint32_t last = rp_ids_last(rp_ids_of(&s->ids));
	assert(last == RP_IDSET_NONE || last < max);
	assert(s->present || last == RP_IDSET_NONE);
}

static void check_values(const struct stored_values *v)
{
	check_set(&v->cpus, RP_CPUS_MAX);
	check_set(&v->mems, RP_NODES_MAX);
}

static void try_pod(struct arena *a, const uint8_t *data, size_t size)
{
	struct stored_pod p;
	if (record_decode_pod(a, data, size, &p, NULL))
		return;
	assert(*p.desc.id && strlen(p.desc.id) <= CACHE_ID_MAX);
	assert(strlen(p.desc.cgroup_parent) <= CACHE_PATH_MAX);
	check_kvs(&p.labels);
	check_kvs(&p.annotations);
}

static void try_facts(struct arena *a, const uint8_t *data, size_t size)
{
	struct stored_facts f;
	if (record_decode_facts(a, data, size, &f, NULL))
		return;
	assert(*f.desc.id && strlen(f.desc.id) <= CACHE_ID_MAX);
	assert(*f.desc.pod_id && strlen(f.desc.pod_id) <= CACHE_ID_MAX);
	assert(f.wanted.cpu_request >= 0 && f.wanted.mem_limit >= 0);
	check_kvs(&f.labels);
	check_kvs(&f.annotations);
}

static void try_decision(struct arena *a, const uint8_t *data, size_t size)
{
	static struct stored_decision d;
	if (record_decode_decision(a, data, size, &d, NULL))
		return;
	assert(d.state <= RP_STATE_EXITED && strlen(d.policy) <= STORE_NAME_MAX);
	assert(!d.private_data.data || d.private_data.len <= RP_PRIVATE_MAX);
	check_values(&d.decided);
	check_values(&d.acked);
	assert(rp_ids_subset(rp_ids_of(&d.exclusive.ids), rp_ids_of(&d.decided.cpus.ids)));
}

static void try_moved(struct arena *a, const uint8_t *data, size_t size)
{
	struct stored_moved m;
	uint64_t sum = 0;
	if (record_decode_moved(a, data, size, &m, NULL))
		return;
	check_set(&m.cpus, RP_CPUS_MAX);
	check_set(&m.mems, RP_NODES_MAX);
	assert(m.n <= CACHE_CTRS_MAX);
	for (uint32_t i = 0; i < m.n; i++)
		sum += m.numbers[i];
	assert(m.n || !sum);
}

static void try_blob(struct arena *a, const uint8_t *data, size_t size)
{
	struct stored_blob b;
	if (record_decode_blob(a, data, size, &b, NULL))
		return;
	assert(b.len <= size && (b.data || !b.len));
	assert(*b.name && strlen(b.name) <= STORE_NAME_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_view v;
	if (record_open(data, size, &v))
		return 0;
	assert(v.message + v.len == data + size);
	struct arena *a = arena_new(4096, RECORD_ARENA_LIMIT);
	if (v.kind == RECORD_POD)
		try_pod(a, v.message, v.len);
	else if (v.kind == RECORD_FACTS)
		try_facts(a, v.message, v.len);
	else if (v.kind == RECORD_DECISION)
		try_decision(a, v.message, v.len);
	else if (v.kind == RECORD_MOVED)
		try_moved(a, v.message, v.len);
	else
		try_blob(a, v.message, v.len);
	arena_free(a);
	return 0;
}
