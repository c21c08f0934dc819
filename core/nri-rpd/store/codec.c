/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding of records. Decoders check every length, set and number. */
#include "core/nri-rpd/store/codec.h"

#include "core/nri-rpd/cache/claim.h"

#include "core/lib/util/grants.h"
#include "core/lib/util/pack.h"
#include "core/lib/util/pb.h"
#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/feed.h"

/* Flags of containers that are stored; the others are derived from the rest of the records. */
#define FLAGS_STORED                                                                               \
	(RP_CTR_EXACT_NEEDS | RP_CTR_ESTIMATED_MEM | RP_CTR_PRESERVE_CPU | RP_CTR_PRESERVE_MEM |   \
	 RP_CTR_INIT | RP_CTR_POD_RESOURCES)

/* ---- encoding -------------------------------------------------------------------------------- */

/* Returns a text as a non-const pointer for message fields; encoders do not write to it. */
static char *codec_text(const char *s)
{
	return (char *)(s ? s : "");
}

static ProtobufCBinaryData bytes_of(const void *data, size_t len)
{
	return (ProtobufCBinaryData){len, (uint8_t *)data};
}

static ProtobufCBinaryData kvs_bytes(const struct kvs *s)
{
	return bytes_of(s->data, s->size);
}

static ProtobufCBinaryData blob_bytes(const struct blob *b)
{
	return b ? bytes_of(b->data, b->len) : bytes_of(NULL, 0);
}

static void put_amount(protobuf_c_boolean *has, int64_t *field, int64_t value)
{
	*has = value != RP_NOT_SET;
	*field = *has ? value : 0;
}

static char *set_text(const struct iset *set)
{
	return set ? (char *)set->text : NULL;
}

static RpStore__Values *values_message(RpStore__Values *m, const struct cpu_amounts *amounts,
				       const struct iset *cpus, const struct iset *mems)
{
	rp_store__values__init(m);
	put_amount(&m->has_shares, &m->shares, amounts->shares);
	put_amount(&m->has_quota, &m->quota, amounts->quota);
	put_amount(&m->has_period, &m->period, amounts->period);
	put_amount(&m->has_mem_limit, &m->mem_limit, amounts->mem_limit);
	m->cpus = set_text(cpus);
	m->mems = set_text(mems);
	return m;
}

static void put_need(protobuf_c_boolean *has, int64_t *field, int64_t value)
{
	*has = value != 0;
	*field = value;
}

static RpStore__Needs *needs_message(RpStore__Needs *m, const struct needs *n)
{
	rp_store__needs__init(m);
	put_need(&m->has_cpu_request, &m->cpu_request, n->cpu_request);
	put_need(&m->has_cpu_limit, &m->cpu_limit, n->cpu_limit);
	put_need(&m->has_mem_request, &m->mem_request, n->mem_request);
	put_need(&m->has_mem_limit, &m->mem_limit, n->mem_limit);
	return m;
}

static void set_head(struct record *r, enum record_kind kind, uint64_t number,
		     const ProtobufCMessage *message)
{
	r->kind = kind;
	r->number = number;
	r->message = message;
}

void record_of_pod(struct record *r, const struct pod *pod, const char *policy)
{
	RpStore__Pod *m = &r->u.pod;
	rp_store__pod__init(m);
	m->id = codec_text(pod->id);
#define ENCODE_TEXT(member, what, max) m->member = codec_text(pod->member);
	POD_TEXTS(ENCODE_TEXT)
	m->has_labels = pod->labels.n != 0;
	m->labels = kvs_bytes(&pod->labels);
	m->has_annotations = pod->annotations.n != 0;
	m->annotations = kvs_bytes(&pod->annotations);
	m->has_stopped = m->stopped = pod->stopped;
	m->policy = pod->private_data ? codec_text(policy) : NULL;
	m->has_private_data = pod->private_data != NULL;
	m->private_data = blob_bytes(pod->private_data);
	m->has_grants = pod->grants != NULL;
	m->grants = blob_bytes(pod->grants);
	set_head(r, RECORD_POD, pod->seq, &m->base);
}

/* Adds the huge pages of a claim. The runtime reports those of containers. */
static void add_huge(struct record *r, RpStore__Facts *m, const struct ctr *claim)
{
	m->huge = r->huge_list;
	for (uint32_t i = 0; claim->huge && i < claim->huge->n; i++) {
		rp_store__huge__init(&r->huge[i]);
		r->huge[i].page = claim->huge->of[i].page;
		r->huge[i].bytes = claim->huge->of[i].bytes;
		m->huge[m->n_huge++] = &r->huge[i];
	}
}

void record_of_facts(struct record *r, const struct ctr *ctr)
{
	RpStore__Facts *m = &r->u.facts;
	rp_store__facts__init(m);
	m->id = codec_text(ctr->id);
	m->pod = codec_text(ctr->pod->id);
	m->name = codec_text(ctr->name);
	m->cgroups_path = codec_text(ctr->cgroups_path);
	m->has_labels = ctr->labels.n != 0;
	m->labels = kvs_bytes(&ctr->labels);
	m->has_annotations = ctr->annotations.n != 0;
	m->annotations = kvs_bytes(&ctr->annotations);
	put_amount(&m->has_oom_score_adj, &m->oom_score_adj, ctr->oom_score_adj);
	m->flags = ctr->flags & FLAGS_STORED;
	m->has_flags = m->flags != 0;
	m->requested = values_message(&r->values[0], &ctr->requested.amounts, ctr->requested.cpus,
				      ctr->requested.mems);
	m->wanted = needs_message(&r->needs, &ctr->wanted);
	m->has_pod_cpu_extra = ctr->pod_cpu_extra != 0;
	m->pod_cpu_extra = ctr->pod_cpu_extra;
	m->device = ctr->device;
	m->users = ctr->users;
	if (ctr->device)
		add_huge(r, m, ctr);
	m->claim = ctr->claim ? ctr->claim->id : NULL;
	set_head(r, RECORD_FACTS, ctr->seq, &m->base);
}

void record_of_decision(struct record *r, const struct ctr *ctr, const char *policy)
{
	const struct decision *d = &ctr->cur;
	RpStore__Decision *m = &r->u.decision;
	rp_store__decision__init(m);
	m->state = d->state;
	m->has_pid = ctr->pid != 0;
	m->pid = ctr->pid;
	m->has_created_ns = ctr->created_ns != 0;
	m->created_ns = ctr->created_ns;
	m->decided = values_message(&r->values[0], &d->amounts, d->cpus, d->mems);
	m->exclusive = set_text(d->exclusive);
	m->acked = values_message(&r->values[1], &ctr->acked.amounts, ctr->acked.cpus,
				  ctr->acked.mems);
	if (ctr_has_sent(ctr))
		m->sent = values_message(&r->values[2], &ctr->sent.amounts, ctr->sent.cpus,
					 ctr->sent.mems);
	m->has_group = d->group != 0;
	m->group = d->group;
	m->has_claimed = m->claimed = d->claimed;
	m->has_confined = m->confined = d->confined;
	m->needs = needs_message(&r->needs, &d->needs);
	m->policy = *policy ? codec_text(policy) : NULL;
#define ENCODE_BLOB(member, what, max)                                                             \
	m->has_##member = d->member != NULL;                                                       \
	m->member = blob_bytes(d->member);
	DECISION_BLOBS(ENCODE_BLOB)
	set_head(r, RECORD_DECISION, ctr->seq, &m->base);
}

void record_of_moved(struct record *r, const struct iset *cpus, const struct iset *mems, bool acked,
		     const uint64_t *numbers, uint32_t n)
{
	RpStore__Moved *m = &r->u.moved;
	rp_store__moved__init(m);
	m->cpus = set_text(cpus);
	m->mems = set_text(mems);
	m->has_acked = m->acked = acked;
	m->containers = (uint64_t *)(uintptr_t)numbers;
	m->n_containers = n;
	set_head(r, RECORD_MOVED, 0, &m->base);
}

void record_of_blob(struct record *r, enum record_kind kind, const char *name, const char *version,
		    const void *data, size_t len)
{
	RpStore__Blob *m = &r->u.blob;
	rp_store__blob__init(m);
	m->name = codec_text(name);
	m->version = version && *version ? codec_text(version) : NULL;
	m->has_data = data != NULL;
	m->data = bytes_of(data, len);
	set_head(r, kind, 0, &m->base);
}

void record_of_gone(struct record *r, uint64_t number)
{
	set_head(r, RECORD_GONE, number, NULL);
}

size_t record_size(const struct record *r)
{
	return RECORD_HEAD + (r->message ? protobuf_c_message_get_packed_size(r->message) : 0);
}

static void put_head(const struct record *r, uint8_t *out)
{
	out[0] = (uint8_t)r->kind;
	memcpy(out + 1, &r->number, sizeof r->number);
}

void record_write(const struct record *r, uint8_t *out)
{
	put_head(r, out);
	if (r->message)
		(void)protobuf_c_message_pack(r->message, out + RECORD_HEAD);
}

size_t record_pack(const struct record *r, uint8_t *room, size_t size)
{
	size_t len = 0;
	if ((r->message && pack_backwards(r->message, room, size, &len)) ||
	    size - len < RECORD_HEAD)
		return 0;
	put_head(r, room + size - len - RECORD_HEAD);
	return RECORD_HEAD + len;
}

/* ---- decoding -------------------------------------------------------------------------------- */

int record_open(const void *record, size_t len, struct record_view *ret)
{
	const uint8_t *bytes = record;
	if (len < RECORD_HEAD || len > RECORD_MAX || !bytes[0] ||
	    !strchr((const char[]){RECORD_BLOB, RECORD_FACTS, RECORD_DECISION, RECORD_GONE,
				   RECORD_MOVED, RECORD_NOTE, RECORD_POD, 0},
		    bytes[0]))
		return -EINVAL;
	*ret = (struct record_view){
		.kind = bytes[0], .message = bytes + RECORD_HEAD, .len = len - RECORD_HEAD};
	memcpy(&ret->number, bytes + 1, sizeof ret->number);
	return 0;
}

/* Decoder of a message; keeps the first error. */
struct decoder {
	struct arena *arena;
	struct err *err;
	int error; /* 0: none */
};

static __attribute__((format(printf, 2, 3))) void codec_fail(struct decoder *c, const char *fmt,
							     ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (!c->error)
		c->error = err_vset(c->err, -EINVAL, fmt, ap);
	va_end(ap);
}

static void *codec_unpack(struct decoder *c, const ProtobufCMessageDescriptor *type,
			  const uint8_t *data, size_t len)
{
	ProtobufCAllocator alloc = pb_arena(c->arena);
	void *m = len <= RECORD_MAX ? protobuf_c_message_unpack(type, &alloc, len, data) : NULL;
	if (!m)
		codec_fail(c, "not a %s message", type->short_name);
	return m;
}

static void check_text(struct decoder *c, const char *what, const char *s, size_t max)
{
	if (strnlen(s, max + 1) > max)
		codec_fail(c, "%s is longer than %zu bytes", what, max);
}

static void check_id(struct decoder *c, const char *what, const char *s)
{
	if (!*s)
		codec_fail(c, "%s is empty", what);
	check_text(c, what, s, CACHE_ID_MAX);
}

/* Checks packed pairs ("key NUL value NUL …", keys ascending). The format is that of the cache, so
 * no conversion is needed. */
static struct kvs read_kvs(struct decoder *c, ProtobufCBinaryData b)
{
	char *p = (char *)b.data, *end = p + b.len, *last = NULL;
	struct kvs s = {.size = (uint32_t)b.len, .data = p};
	if (!b.len)
		return (struct kvs){0};
	if (b.len > KVS_TOTAL_MAX || end[-1]) {
		codec_fail(c, "%zu bytes of labels or annotations without a terminator", b.len);
		return (struct kvs){0};
	}
	while (p < end) {
		const char *value = kvs_after(p), *next = value < end ? kvs_after(value) : NULL;
		if (!next || (size_t)(next - p) > (size_t)2 * KVS_VALUE_MAX ||
		    (last && strcmp(last, p) >= 0)) {
			codec_fail(c, "unsorted labels or annotations");
			return (struct kvs){0};
		}
		s.n++;
		s.beginnings |= kvs_beginning(p);
		last = p;
		p = (char *)next;
	}
	return s;
}

static void read_set(struct decoder *c, struct stored_set *set, const char *list, uint32_t max,
		     const char *what)
{
	set->present = list != NULL;
	rp_idset_clear(&set->ids);
	if (list && rp_idset_parse(&set->ids, list, max))
		codec_fail(c, "%s \"%.64s\" is not a list of numbers below %u", what, list, max);
}

static int64_t codec_amount(protobuf_c_boolean has, int64_t value)
{
	return has ? value : RP_NOT_SET;
}

static void read_values(struct decoder *c, const RpStore__Values *m, struct stored_values *v)
{
	v->shares = codec_amount(m->has_shares, m->shares);
	v->quota = codec_amount(m->has_quota, m->quota);
	v->period = codec_amount(m->has_period, m->period);
	v->mem_limit = codec_amount(m->has_mem_limit, m->mem_limit);
	read_set(c, &v->cpus, m->cpus, RP_CPUS_MAX, "CPU set");
	read_set(c, &v->mems, m->mems, RP_NODES_MAX, "memory node set");
}

static int64_t read_need(struct decoder *c, int64_t value, const char *what)
{
	if (value < 0)
		codec_fail(c, "a %s of %lld", what, (long long)value);
	return value;
}

static struct needs read_needs(struct decoder *c, const RpStore__Needs *m)
{
	return (struct needs){
		.cpu_request = read_need(c, m->cpu_request, "CPU request"),
		.cpu_limit = read_need(c, m->cpu_limit, "CPU limit"),
		.mem_request = read_need(c, m->mem_request, "memory request"),
		.mem_limit = read_need(c, m->mem_limit, "memory limit"),
	};
}

static struct stored_bytes read_bytes(struct decoder *c, protobuf_c_boolean has,
				      ProtobufCBinaryData b, size_t max, const char *what)
{
	if (!has)
		return (struct stored_bytes){NULL, 0};
	if (b.len > max)
		codec_fail(c, "%s is longer than %zu bytes", what, max);
	/* protobuf-c has no memory for empty bytes, but they are present */
	return (struct stored_bytes){b.len ? (const void *)b.data : "", (uint32_t)b.len};
}

int record_decode_pod(struct arena *a, const uint8_t *data, size_t len, struct stored_pod *ret,
		      struct err *err)
{
	struct decoder c = {a, err, 0};
	const RpStore__Pod *m = codec_unpack(&c, &rp_store__pod__descriptor, data, len);
	const Grants__Grants *grants;
	if (!m)
		return -EINVAL;
	struct stored_pod p = {.stopped = m->stopped, .policy = codec_text(m->policy)};
	p.desc.id = m->id;
#define DECODE_TEXT(member, what, max) p.desc.member = m->member;
	POD_TEXTS(DECODE_TEXT)
	check_id(&c, "pod id", m->id);
	check_text(&c, "pod name", m->name, CACHE_ID_MAX);
	check_text(&c, "pod uid", m->uid, CACHE_ID_MAX);
	check_text(&c, "namespace", m->ns, CACHE_ID_MAX);
	check_text(&c, "runtime handler", m->runtime_handler, CACHE_ID_MAX);
	check_text(&c, "cgroup parent", m->cgroup_parent, CACHE_PATH_MAX);
	p.labels = read_kvs(&c, m->labels);
	p.annotations = read_kvs(&c, m->annotations);
	p.private_data = read_bytes(&c, m->has_private_data, m->private_data, RP_PRIVATE_MAX,
				    "private data");
	p.grants = read_bytes(&c, m->has_grants, m->grants, GRANTS_BYTES_MAX, "grants");
	if (!c.error && m->has_grants)
		c.error = grants_unpack(a, m->grants.data, m->grants.len, &grants, err);
	check_text(&c, "policy", p.policy, STORE_NAME_MAX);
	if (!c.error)
		*ret = p;
	return c.error;
}

/* Reads the values requested by the runtime. The texts of the sets are checked and kept as they
 * are. */
static struct res_desc read_requested(struct decoder *c, const RpStore__Values *m)
{
	struct stored_values v;
	read_values(c, m, &v);
	return (struct res_desc){.amounts = v.amounts, .cpus = m->cpus, .mems = m->mems};
}

static void read_huge(struct decoder *c, const RpStore__Facts *m, struct huge *ret)
{
	for (size_t i = 0; i < m->n_huge; i++) {
		const RpStore__Huge *h = m->huge[i];
		if (i == HUGE_SIZES_MAX || !h->page || h->bytes > DERIVE_BYTES_MAX) {
			codec_fail(c, "the huge pages are invalid");
			return;
		}
		ret->of[ret->n++] = (struct huge_request){.page = h->page, .bytes = h->bytes};
	}
}

int record_decode_facts(struct arena *a, const uint8_t *data, size_t len, struct stored_facts *ret,
			struct err *err)
{
	struct decoder c = {a, err, 0};
	const RpStore__Facts *m = codec_unpack(&c, &rp_store__facts__descriptor, data, len);
	if (!m)
		return -EINVAL;
	struct stored_facts f = {.flags = m->flags & FLAGS_STORED,
				 .pod_cpu_extra = m->pod_cpu_extra,
				 .device = m->device,
				 .users = codec_text(m->users),
				 .claim = m->claim};
	struct ctr_desc *d = &f.desc;
	d->id = m->id;
	d->pod_id = m->pod;
	d->name = m->name;
	d->cgroups_path = m->cgroups_path;
	d->oom_score_adj = codec_amount(m->has_oom_score_adj, m->oom_score_adj);
	check_id(&c, "container id", d->id);
	check_id(&c, "pod id", d->pod_id);
	check_text(&c, "container name", d->name, CACHE_ID_MAX);
	check_text(&c, "cgroups path", d->cgroups_path, CACHE_PATH_MAX);
	f.labels = read_kvs(&c, m->labels);
	f.annotations = read_kvs(&c, m->annotations);
	d->res = read_requested(&c, m->requested);
	f.wanted = read_needs(&c, m->wanted);
	read_huge(&c, m, &d->huge);
	if (f.pod_cpu_extra < 0 || f.pod_cpu_extra > FEED_AMOUNT_MAX)
		codec_fail(&c, "the CPU request of its pod is invalid");
	check_text(&c, "device", codec_text(f.device), CACHE_ID_MAX);
	check_text(&c, "users of the claim", f.users, CLAIM_USERS_MAX);
	if (!c.error)
		*ret = f;
	return c.error;
}

static const RpStore__Values values_none = RP_STORE__VALUES__INIT;

static void check_decision(struct decoder *c, const struct stored_decision *d)
{
	const struct stored_values *v = &d->decided;
	if (d->state > RP_STATE_EXITED)
		codec_fail(c, "a state of %u", d->state);
	if (d->group > RP_GROUP_MAX)
		codec_fail(c, "group %u", d->group);
	if (!rp_ids_subset(rp_ids_of(&d->exclusive.ids), rp_ids_of(&v->cpus.ids)))
		codec_fail(c, "exclusive CPUs that are not among its CPUs");
	if ((v->shares != RP_NOT_SET && v->shares < 0) ||
	    (v->quota != RP_NOT_SET && v->quota < -1) ||
	    (v->period != RP_NOT_SET && v->period < 0) ||
	    (v->mem_limit != RP_NOT_SET && v->mem_limit < -1))
		codec_fail(c, "a decided value is negative");
	check_text(c, "policy", d->policy, STORE_NAME_MAX);
}

int record_decode_decision(struct arena *a, const uint8_t *data, size_t len,
			   struct stored_decision *ret, struct err *err)
{
	struct decoder c = {a, err, 0};
	const RpStore__Decision *m = codec_unpack(&c, &rp_store__decision__descriptor, data, len);
	if (!m)
		return -EINVAL;
	ret->state = m->state;
	ret->pid = m->pid;
	ret->created_ns = m->created_ns;
	ret->group = m->group;
	ret->claimed = m->claimed;
	ret->confined = m->confined;
	ret->policy = codec_text(m->policy);
	read_values(&c, m->decided, &ret->decided);
	read_values(&c, m->acked, &ret->acked);
	read_values(&c, m->sent ? m->sent : &values_none, &ret->sent);
	read_set(&c, &ret->exclusive, m->exclusive, RP_CPUS_MAX, "exclusive set");
	ret->needs = read_needs(&c, m->needs);
#define READ_BLOB(member, what, max)                                                               \
	ret->member = read_bytes(&c, m->has_##member, m->member, max, what);
	DECISION_BLOBS(READ_BLOB)
	check_decision(&c, ret);
	return c.error;
}

int record_decode_moved(struct arena *a, const uint8_t *data, size_t len, struct stored_moved *ret,
			struct err *err)
{
	struct decoder c = {a, err, 0};
	const RpStore__Moved *m = codec_unpack(&c, &rp_store__moved__descriptor, data, len);
	if (!m)
		return -EINVAL;
	if (m->n_containers > CACHE_CTRS_MAX)
		codec_fail(&c, "%zu containers, more than %u", m->n_containers, CACHE_CTRS_MAX);
	read_set(&c, &ret->cpus, m->cpus, RP_CPUS_MAX, "CPU set");
	read_set(&c, &ret->mems, m->mems, RP_NODES_MAX, "memory node set");
	ret->acked = m->acked;
	ret->numbers = m->containers;
	ret->n = (uint32_t)m->n_containers;
	return c.error;
}

int record_decode_blob(struct arena *a, const uint8_t *data, size_t len, struct stored_blob *ret,
		       struct err *err)
{
	struct decoder c = {a, err, 0};
	const RpStore__Blob *m = codec_unpack(&c, &rp_store__blob__descriptor, data, len);
	if (!m)
		return -EINVAL;
	if (m->data.len > STORE_BLOB_MAX)
		codec_fail(&c, "a blob of %zu bytes", m->data.len);
	if (!*m->name)
		codec_fail(&c, "a blob without a name");
	check_text(&c, "name", m->name, STORE_NAME_MAX);
	check_text(&c, "version", codec_text(m->version), STORE_NAME_MAX);
	if (c.error)
		return c.error;
	*ret = (struct stored_blob){m->name, codec_text(m->version), NULL, m->data.len};
	if (m->has_data)
		ret->data = m->data.len ? (const void *)m->data.data : "";
	return 0;
}
