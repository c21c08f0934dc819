/* SPDX-License-Identifier: Apache-2.0 */
#include "t_store.h"

#include "core/lib/util/crc32c.h"
#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/cache/hugepages.h"

struct bench {
	struct cache *cache;
	struct arena *arena;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof *b);
	b->cache = new_cache();
	b->arena = arena_new(4096, RECORD_ARENA_LIMIT);
	fill(b->cache, 12, 2);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	(void)cache_free(b->cache);
	arena_free(b->arena);
	free(b);
	return 0;
}

/* Returns the message alone, allocated with malloc, so that the sanitizer detects a read past
 * the end. */
static uint8_t *pack(const struct record *r, size_t *ret_len)
{
	size_t size = record_size(r);
	uint8_t *record = malloc(size), *message = malloc(size - RECORD_HEAD + 1);
	record_write(r, record);
	*ret_len = size - RECORD_HEAD;
	memcpy(message, record + RECORD_HEAD, *ret_len);
	free(record);
	return message;
}

static uint8_t *pack_message(const ProtobufCMessage *m, size_t *ret_len)
{
	struct record r = {.message = m};
	return pack(&r, ret_len);
}

static void crc_is_castagnoli(void **state)
{
	uint8_t zeros[32] = {0}, ones[32], rising[32], text[300];
	memset(ones, 0xff, sizeof ones);
	for (unsigned i = 0; i < sizeof rising; i++)
		rising[i] = (uint8_t)i;
	/* the test vectors of RFC 3720, appendix B.4 */
	assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa);
	assert_int_equal(crc32c(0, ones, 32), 0x62a8ab43);
	assert_int_equal(crc32c(0, rising, 32), 0x46dd794e);
	assert_int_equal(crc32c_portable(0, rising, 32), 0x46dd794e);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, "", 0), 0);
	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * 37 + 11);
	for (unsigned n = 0; n <= sizeof text; n++) {
		assert_int_equal(crc32c(0, text, n), crc32c_portable(0, text, n));
		assert_int_equal(crc32c(crc32c(0, text, n), text + n, sizeof text - n),
				 crc32c(0, text, sizeof text));
	}
}

static void heads(void **state)
{
	struct record r;
	struct record_view v;
	uint8_t bytes[64], room[64], *large = calloc(1, (size_t)RECORD_MAX + 1);
	record_of_blob(&r, RECORD_NOTE, "policy", "", "x", 1);
	r.number = UINT64_C(0x0102030405060708);
	size_t size = record_size(&r);
	record_write(&r, bytes);
	assert_int_equal(record_pack(&r, room, sizeof room), size);
	assert_memory_equal(room + sizeof room - size, bytes, size);
	assert_int_equal(record_pack(&r, room, size), size);
	assert_int_equal(record_pack(&r, room, size - 1), 0);
	assert_int_equal(record_open(bytes, size, &v), 0);
	assert_int_equal(v.kind, RECORD_NOTE);
	assert_true(v.number == r.number);
	assert_ptr_equal(v.message, bytes + RECORD_HEAD);
	assert_int_equal(v.len, size - RECORD_HEAD);
	for (size_t n = 0; n < RECORD_HEAD; n++)
		assert_int_equal(record_open(bytes, n, &v), -EINVAL);
	for (unsigned c = 0, good = 0; c < 256; c++) {
		bytes[0] = (uint8_t)c;
		good += record_open(bytes, size, &v) == 0;
		assert_true(c < 255 || good == 7);
	}
	large[0] = RECORD_BLOB;
	assert_int_equal(record_open(large, RECORD_MAX, &v), 0);
	assert_int_equal(record_open(large, (size_t)RECORD_MAX + 1, &v), -EINVAL);
	free(large);
	record_of_gone(&r, 7);
	assert_int_equal(record_size(&r), RECORD_HEAD);
	assert_int_equal(record_pack(&r, room, sizeof room), RECORD_HEAD);
	assert_int_equal(record_open(room + sizeof room - RECORD_HEAD, RECORD_HEAD, &v), 0);
	assert_true(v.kind == RECORD_GONE && v.number == 7);
}

static void pods(void **state)
{
	struct bench *b = *state;
	for (const struct pod *pod = cache_pods(b->cache); pod; pod = pod->hh.next) {
		struct record r;
		struct stored_pod p;
		size_t len;
		record_of_pod(&r, pod, cache_policy_name(b->cache, pod->policy));
		uint8_t *data = pack(&r, &len);
		arena_reset(b->arena);
		assert_int_equal(record_decode_pod(b->arena, data, len, &p, NULL), 0);
		assert_string_equal(p.desc.id, pod->id);
		assert_string_equal(p.desc.name, pod->name);
		assert_string_equal(p.desc.uid, pod->uid);
		assert_string_equal(p.desc.ns, pod->ns);
		assert_string_equal(p.desc.runtime_handler, pod->runtime_handler);
		assert_string_equal(p.desc.cgroup_parent, pod->cgroup_parent);
		assert_int_equal(p.stopped, pod->stopped);
		same_kvs(&p.labels, &pod->labels);
		same_kvs(&p.annotations, &pod->annotations);
		free(data);
	}
}

static void text_same(const char *text, const struct iset *set)
{
	assert_int_equal(text != NULL, set != NULL);
	if (set)
		assert_string_equal(text, set->text);
}

static void facts(void **state)
{
	struct bench *b = *state;
	for (const struct ctr *ctr = cache_ctrs(b->cache); ctr; ctr = ctr->next) {
		struct record r;
		struct stored_facts f;
		size_t len;
		record_of_facts(&r, ctr);
		uint8_t *data = pack(&r, &len);
		arena_reset(b->arena);
		assert_int_equal(record_decode_facts(b->arena, data, len, &f, NULL), 0);
		free(data);
		assert_string_equal(f.desc.id, ctr->id);
		assert_string_equal(f.desc.pod_id, ctr->pod->id);
		assert_string_equal(f.desc.name, ctr->name);
		assert_string_equal(f.desc.cgroups_path, ctr->cgroups_path);
		assert_true(f.desc.oom_score_adj == ctr->oom_score_adj);
		assert_true(f.desc.res.quota == ctr->requested.quota);
		assert_true(f.desc.res.mem_limit == ctr->requested.mem_limit);
		text_same(f.desc.res.cpus, ctr->requested.cpus);
		text_same(f.desc.res.mems, ctr->requested.mems);
		same_needs(&f.wanted, &ctr->wanted);
		same_kvs(&f.labels, &ctr->labels);
		same_kvs(&f.annotations, &ctr->annotations);
		assert_int_equal(f.flags, ctr->flags);
	}
}

/* The huge pages of a claim; a record without them is one of before. */
static void claims(void **state)
{
	struct bench *b = *state;
	struct claim_part part = {.device = "cpu-node-0",
				  .cpus = 1,
				  .huge = {2, {{1 << 21, 64 << 20}, {1 << 30, 1 << 30}}}};
	for (int i = 0; i < 2; i++, part.huge.n = 0) {
		const struct claim_desc desc = {.uid = i ? "b" : "a",
						.ns = "default",
						.name = "claim",
						.users = "",
						.parts = &part,
						.n_parts = 1};
		struct ctr *claim;
		struct record r;
		struct stored_facts f;
		size_t len;
		assert_int_equal(claim_put(b->cache, &desc, &claim, NULL), 0);
		record_of_facts(&r, claim);
		uint8_t *data = pack(&r, &len);
		arena_reset(b->arena);
		assert_int_equal(record_decode_facts(b->arena, data, len, &f, NULL), 0);
		free(data);
		assert_int_equal(f.desc.huge.n, part.huge.n);
		assert_true(hugepages_equal(claim, &f.desc.huge));
		assert_true(claim_has_parts(claim, &part, 1));
		part.huge.of[0].bytes++;
		assert_int_equal(claim_has_parts(claim, &part, 1), part.huge.n == 0);
	}
}

static void set_as(const struct stored_set *got, const struct iset *want)
{
	assert_int_equal(got->present, want != NULL);
	if (want)
		assert_true(rp_ids_equal(rp_ids_of(&got->ids), want->ids));
}

static void bytes_as(const struct stored_bytes *got, const struct blob *want)
{
	assert_int_equal(got->data != NULL, want != NULL);
	if (!want)
		return;
	assert_int_equal(got->len, want->len);
	assert_memory_equal(got->data, want->data, want->len);
}

static void decisions(void **state)
{
	struct bench *b = *state;
	struct stored_decision *d = malloc(sizeof *d);
	for (struct ctr *ctr = cache_ctrs(b->cache); ctr; ctr = ctr->next) {
		struct record r;
		size_t len;
		ctr->cur.group = ctr->cur.exclusive ? 7 : 0;
		/* every second container has an outstanding update */
		ctr->sent.shares = ctr->seq % 2 ? 512 : RP_NOT_SET;
		record_of_decision(&r, ctr, cache_policy_name(b->cache, ctr->cur.policy));
		uint8_t *data = pack(&r, &len);
		arena_reset(b->arena);
		assert_int_equal(record_decode_decision(b->arena, data, len, d, NULL), 0);
		free(data);
		assert_int_equal(d->state, ctr->cur.state);
		assert_int_equal(d->pid, ctr->pid);
		assert_true(d->created_ns == ctr->created_ns);
		assert_int_equal(d->group, ctr->cur.group);
		assert_true(d->decided.shares == ctr->cur.shares);
		assert_true(d->decided.quota == ctr->cur.quota);
		assert_true(d->decided.period == ctr->cur.period);
		assert_true(d->decided.mem_limit == ctr->cur.mem_limit);
		set_as(&d->decided.cpus, ctr->cur.cpus);
		set_as(&d->decided.mems, ctr->cur.mems);
		set_as(&d->exclusive, ctr->cur.exclusive);
		set_as(&d->acked.cpus, ctr->acked.cpus);
		set_as(&d->acked.mems, ctr->acked.mems);
		assert_true(d->acked.shares == ctr->acked.shares);
		assert_true(d->sent.shares == ctr->sent.shares);
		assert_true(d->sent.quota == ctr->sent.quota);
		same_needs(&d->needs, &ctr->cur.needs);
		bytes_as(&d->rdt_class, ctr->cur.rdt_class);
		bytes_as(&d->blockio_class, ctr->cur.blockio_class);
		bytes_as(&d->cpu_class, ctr->cur.cpu_class);
		bytes_as(&d->private_data, ctr->cur.private_data);
		bytes_as(&d->degraded, ctr->cur.degraded);
		bytes_as(&d->data, ctr->cur.data);
		assert_string_equal(d->policy, cache_policy_name(b->cache, ctr->cur.policy));
	}
	free(d);
}

static void blobs(void **state)
{
	struct bench *b = *state;
	struct record r;
	struct stored_blob s;
	size_t len;
	record_of_blob(&r, RECORD_BLOB, "static", "0.1", "\0\1", 2);
	uint8_t *data = pack(&r, &len);
	assert_int_equal(record_decode_blob(b->arena, data, len, &s, NULL), 0);
	assert_string_equal(s.name, "static");
	assert_string_equal(s.version, "0.1");
	assert_int_equal(s.len, 2);
	assert_memory_equal(s.data, "\0\1", 2);
	free(data);
	record_of_blob(&r, RECORD_BLOB, "x", "", NULL, 0);
	data = pack(&r, &len);
	assert_int_equal(record_decode_blob(b->arena, data, len, &s, NULL), 0);
	assert_string_equal(s.version, "");
	assert_null(s.data);
	free(data);
}

/* ---- invalid records ------------------------------------------------------------------------- */

static char *repeat(char c, size_t n)
{
	char *s = malloc(n + 1);
	memset(s, c, n);
	s[n] = '\0';
	return s;
}

static void refused(int r, const struct err *err, const char *why)
{
	assert_int_equal(r, -EINVAL);
	if (!strstr(err->text, why))
		fail_msg("\"%s\" does not mention \"%s\"", err->text, why);
}

static void try_pod(struct bench *b, RpStore__Pod *m, const char *why)
{
	struct stored_pod p;
	struct err err = ERR_INIT;
	size_t len;
	uint8_t *data = pack_message(&m->base, &len);
	arena_reset(b->arena);
	int r = record_decode_pod(b->arena, data, len, &p, &err);
	free(data);
	if (why)
		refused(r, &err, why);
	else
		assert_int_equal(r, 0);
}

static void pod_limits(void **state)
{
	struct bench *b = *state;
	RpStore__Pod m = RP_STORE__POD__INIT;
	_free_ char *long_id = repeat('x', CACHE_ID_MAX + 1),
		    *path = repeat('/', CACHE_PATH_MAX + 1);
	char *fine = (char *)"fine";
	m.id = m.name = m.uid = m.ns = m.runtime_handler = m.cgroup_parent = fine;
	try_pod(b, &m, NULL);
	char **fields[] = {&m.id, &m.name, &m.uid, &m.ns, &m.runtime_handler};
	for (unsigned i = 0; i < 5; i++) {
		*fields[i] = long_id;
		try_pod(b, &m, "longer than");
		*fields[i] = fine;
	}
	m.id = (char *)"";
	try_pod(b, &m, "pod id is empty");
	m.id = fine;
	m.cgroup_parent = path;
	try_pod(b, &m, "cgroup parent");
	m.cgroup_parent = fine;
	try_pod(b, &m, NULL);
}

static void pairs(void **state)
{
	struct bench *b = *state;
	RpStore__Pod m = RP_STORE__POD__INIT;
	static const struct {
		const char *text;
		size_t len;
		bool good;
	} cases[] = {
		{"a\0001\0", 4, true},		{"a\0\0", 3, true},
		{"a\0001\0b\0\0", 7, true},	{"\0\0", 2, true},
		{"a\0001", 3, false},		{"a\0", 2, false},
		{"a\0001\0b\0", 6, false},	{"b\0001\0a\0002\0", 8, false},
		{"a\0001\0a\0002\0", 8, false}, {"a", 1, false},
	};
	m.id = m.name = m.uid = m.ns = m.runtime_handler = m.cgroup_parent = (char *)"x";
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		ProtobufCBinaryData data = {cases[i].len, (uint8_t *)cases[i].text};
		m.has_labels = true;
		m.labels = data;
		try_pod(b, &m, cases[i].good ? NULL : "labels or annotations");
		m.has_labels = false;
		m.has_annotations = true;
		m.annotations = data;
		try_pod(b, &m, cases[i].good ? NULL : "labels or annotations");
		m.has_annotations = false;
	}
	_free_ char *large = calloc(1, KVS_TOTAL_MAX + 1);
	m.has_labels = true;
	m.labels = (ProtobufCBinaryData){KVS_TOTAL_MAX + 1, (uint8_t *)large};
	try_pod(b, &m, "labels or annotations");
	memset(large, 'k', 2 * KVS_VALUE_MAX + 2);
	large[10] = '\0';
	m.labels.len = 2 * KVS_VALUE_MAX + 3;
	try_pod(b, &m, "labels or annotations");
}

static void try_facts(struct bench *b, RpStore__Facts *m, const char *why)
{
	struct stored_facts f;
	struct err err = ERR_INIT;
	size_t len;
	uint8_t *data = pack_message(&m->base, &len);
	arena_reset(b->arena);
	int r = record_decode_facts(b->arena, data, len, &f, &err);
	free(data);
	if (why)
		refused(r, &err, why);
	else
		assert_int_equal(r, 0);
}

static void facts_limits(void **state)
{
	struct bench *b = *state;
	RpStore__Facts m = RP_STORE__FACTS__INIT;
	RpStore__Values requested = RP_STORE__VALUES__INIT;
	RpStore__Needs wanted = RP_STORE__NEEDS__INIT;
	_free_ char *long_id = repeat('x', CACHE_ID_MAX + 1),
		    *path = repeat('/', CACHE_PATH_MAX + 1);
	char *fine = (char *)"fine";
	m.id = m.pod = m.name = m.cgroups_path = fine;
	m.requested = &requested;
	m.wanted = &wanted;
	try_facts(b, &m, NULL);
	char **fields[] = {&m.id, &m.pod, &m.name};
	for (unsigned i = 0; i < 3; i++) {
		*fields[i] = long_id;
		try_facts(b, &m, "longer than");
		*fields[i] = (char *)"";
		if (i < 2)
			try_facts(b, &m, "is empty");
		*fields[i] = fine;
	}
	m.cgroups_path = path;
	try_facts(b, &m, "cgroups path");
	m.cgroups_path = fine;
	requested.cpus = (char *)"0-8192";
	try_facts(b, &m, "CPU set");
	requested.cpus = (char *)"8191";
	requested.mems = (char *)"1024";
	try_facts(b, &m, "memory node set");
	requested.mems = (char *)"zero";
	try_facts(b, &m, "memory node set");
	requested.mems = (char *)"";
	m.has_labels = true;
	m.labels = (ProtobufCBinaryData){1, (uint8_t *)fine};
	try_facts(b, &m, "labels");
	m.has_labels = false;
	m.has_annotations = true;
	m.annotations = (ProtobufCBinaryData){1, (uint8_t *)fine};
	try_facts(b, &m, "annotations");
	m.has_annotations = false;
	int64_t *needs[] = {&wanted.cpu_request, &wanted.cpu_limit, &wanted.mem_request,
			    &wanted.mem_limit};
	wanted.has_cpu_request = wanted.has_cpu_limit = true;
	wanted.has_mem_request = wanted.has_mem_limit = true;
	for (unsigned i = 0; i < 4; i++) {
		*needs[i] = -1;
		try_facts(b, &m, "of -1");
		*needs[i] = 0;
	}
	/* Requests of a runtime are stored, even if they make no sense. */
	requested.has_shares = requested.has_quota = true;
	requested.shares = requested.quota = -7;
	m.has_flags = true;
	m.flags = UINT32_MAX;
	try_facts(b, &m, NULL);
}

static void try_decision(struct bench *b, RpStore__Decision *m, const char *why)
{
	struct stored_decision d;
	struct err err = ERR_INIT;
	size_t len;
	uint8_t *data = pack_message(&m->base, &len);
	arena_reset(b->arena);
	int r = record_decode_decision(b->arena, data, len, &d, &err);
	free(data);
	if (why)
		refused(r, &err, why);
	else
		assert_int_equal(r, 0);
}

static void decided_limits(struct bench *b, RpStore__Decision *m, RpStore__Values *v)
{
	v->has_shares = v->has_quota = v->has_period = v->has_mem_limit = true;
	struct {
		int64_t *field, least;
	} fields[] = {{&v->shares, 0}, {&v->quota, -1}, {&v->period, 0}, {&v->mem_limit, -1}};
	for (unsigned i = 0; i < 4; i++) {
		*fields[i].field = fields[i].least - 1;
		try_decision(b, m, "negative");
		*fields[i].field = fields[i].least;
		try_decision(b, m, NULL);
	}
	/* INT64_MIN is how the cache says "not set" */
	v->shares = INT64_MIN;
	try_decision(b, m, NULL);
	v->shares = 0;
}

static void decision_limits(void **state)
{
	struct bench *b = *state;
	RpStore__Decision m = RP_STORE__DECISION__INIT;
	RpStore__Values decided = RP_STORE__VALUES__INIT, acked = RP_STORE__VALUES__INIT;
	RpStore__Needs needs = RP_STORE__NEEDS__INIT;
	_free_ char *long_name = repeat('x', STORE_NAME_MAX + 1);
	_free_ char *large = repeat('x', DECISION_TEXT_MAX + 1);
	m.decided = &decided;
	m.acked = &acked;
	m.needs = &needs;
	try_decision(b, &m, NULL);
	m.state = RP_STATE_EXITED + 1;
	try_decision(b, &m, "state");
	m.state = RP_STATE_EXITED;
	decided_limits(b, &m, &decided);
	acked.has_shares = true;
	acked.shares = -5; /* the runtime's */
	decided.cpus = (char *)"0-3";
	m.exclusive = (char *)"3";
	try_decision(b, &m, NULL);
	m.exclusive = (char *)"3-4";
	try_decision(b, &m, "exclusive");
	m.exclusive = (char *)"q";
	try_decision(b, &m, "exclusive");
	m.exclusive = NULL;
	m.has_group = true;
	m.group = RP_GROUP_MAX + 1;
	try_decision(b, &m, "group");
	m.has_group = false;
	decided.cpus = (char *)"3-";
	try_decision(b, &m, "CPU set");
	decided.cpus = NULL;
	acked.mems = (char *)"0,,1";
	try_decision(b, &m, "memory node set");
	acked.mems = NULL;
	needs.has_mem_limit = true;
	needs.mem_limit = INT64_MIN;
	try_decision(b, &m, "memory limit");
	needs.mem_limit = INT64_MAX;
	m.policy = long_name;
	try_decision(b, &m, "policy");
	m.policy = NULL;
	struct {
		protobuf_c_boolean *has;
		ProtobufCBinaryData *field;
		size_t max;
	} fields[] = {
		{&m.has_rdt_class, &m.rdt_class, DECISION_TEXT_MAX},
		{&m.has_blockio_class, &m.blockio_class, DECISION_TEXT_MAX},
		{&m.has_cpu_class, &m.cpu_class, DECISION_TEXT_MAX},
		{&m.has_private_data, &m.private_data, RP_PRIVATE_MAX},
		{&m.has_degraded, &m.degraded, DECISION_TEXT_MAX},
		{&m.has_data, &m.data, DECISION_TEXT_MAX},
	};
	for (unsigned i = 0; i < 6; i++) {
		*fields[i].has = true;
		*fields[i].field = (ProtobufCBinaryData){fields[i].max + 1, (uint8_t *)large};
		try_decision(b, &m, "longer than");
		fields[i].field->len = fields[i].max;
		try_decision(b, &m, NULL);
		*fields[i].has = false;
	}
}

static void other_limits(void **state)
{
	struct bench *b = *state;
	RpStore__Blob blob = RP_STORE__BLOB__INIT;
	_free_ char *long_name = repeat('x', 300), *large = repeat('x', STORE_BLOB_MAX + 1);
	struct stored_blob sb;
	struct err err = ERR_INIT;
	size_t len;
	char *names[] = {(char *)"", long_name};
	for (unsigned i = 0; i < 2; i++) {
		blob.name = names[i];
		uint8_t *data = pack_message(&blob.base, &len);
		refused(record_decode_blob(b->arena, data, len, &sb, &err), &err, "name");
		free(data);
	}
	blob.name = (char *)"x";
	blob.version = long_name;
	uint8_t *data = pack_message(&blob.base, &len);
	refused(record_decode_blob(b->arena, data, len, &sb, &err), &err, "version");
	free(data);
	blob.version = NULL;
	blob.has_data = true;
	blob.data = (ProtobufCBinaryData){STORE_BLOB_MAX + 1, (uint8_t *)large};
	data = pack_message(&blob.base, &len);
	refused(record_decode_blob(b->arena, data, len, &sb, &err), &err, "blob");
	free(data);
}

/* Checks that every prefix and every changed byte yields an answer. */
static void mangled(void **state)
{
	struct bench *b = *state;
	struct stored_decision *d = malloc(sizeof *d);
	struct stored_facts f;
	struct stored_pod p;
	struct stored_blob s;
	struct record r;
	size_t len;
	record_of_facts(&r, cache_ctrs(b->cache)->next);
	for (unsigned what = 0; what < 2; what++) {
		uint8_t *data = pack(&r, &len);
		for (size_t n = 0; n < len; n++) {
			uint8_t *cut = malloc(n ? n : 1);
			memcpy(cut, data, n);
			arena_reset(b->arena);
			int res = what ? record_decode_decision(b->arena, cut, n, d, NULL)
				       : record_decode_facts(b->arena, cut, n, &f, NULL);
			assert_true(res == 0 || res == -EINVAL);
			free(cut);
			for (unsigned x = 1; x < 256; x = x * 2 + 1) {
				data[n] ^= (uint8_t)x;
				arena_reset(b->arena);
				(void)record_decode_facts(b->arena, data, len, &f, NULL);
				(void)record_decode_decision(b->arena, data, len, d, NULL);
				(void)record_decode_pod(b->arena, data, len, &p, NULL);
				(void)record_decode_blob(b->arena, data, len, &s, NULL);
				data[n] ^= (uint8_t)x;
			}
		}
		free(data);
		record_of_decision(&r, cache_ctrs(b->cache)->next, "balloons");
	}
	free(d);
}

/* Checks that the arena limits messages for which protobuf-c needs far more memory than their
 * two bytes. */
static void swollen(void **state)
{
	size_t len = 1 << 20;
	uint8_t *data = malloc(len);
	struct arena *small = arena_new(4096, 1 << 20);
	struct stored_blob s;
	struct err err = ERR_INIT;
	for (size_t i = 0; i < len; i += 2) {
		data[i] = 0x78; /* field 15, a varint */
		data[i + 1] = 1;
	}
	refused(record_decode_blob(small, data, len, &s, &err), &err, "not a Blob message");
	arena_free(small);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_is_castagnoli),
		cmocka_unit_test(heads),
		cmocka_unit_test(pods),
		cmocka_unit_test(facts),
		cmocka_unit_test(claims),
		cmocka_unit_test(decisions),
		cmocka_unit_test(blobs),
		cmocka_unit_test(pod_limits),
		cmocka_unit_test(pairs),
		cmocka_unit_test(facts_limits),
		cmocka_unit_test(decision_limits),
		cmocka_unit_test(other_limits),
		cmocka_unit_test(mangled),
		cmocka_unit_test(swollen),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
