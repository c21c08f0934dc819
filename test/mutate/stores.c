/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's log, damaged as bytes and in what its records say. Each goes the whole way: it is
 * opened and restored, what came of it is within the cache's limits and written again, and that
 * comes back the same.
 */
#include "test/mutate/mutate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/cache/internal.h"
#include "core/nri-rpd/store/store.h"
#include "core/nri-rpd/store/internal.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/lib/util/crc32c.h"
#include "core/lib/util/fs.h"
#include "core/nri-rpd/store/blobs.h"
#include "core/nri-rpd/store/restore.h"

#define BOOT "11111111-2222-3333-4444-555555555555"
#define N_PODS 8u
#define N_OWNERS 6u /* owners of CPUs; later one is added, one gives up its CPUs, one is removed */
#define RECORDS_MAX 4096u
#define FILE_MAX ((size_t)64 << 20)

static struct {
	struct buf file;
	char *dir, *path;
} stored;

/* ---- a store to begin with ------------------------------------------------------------------- */

static void new_store(struct store **ret, struct cache **ret_cache, struct store_opening *opening)
{
	const struct store_params params = {.dir = stored.dir, .boot_id = BOOT};
	struct err err = ERR_INIT;
	*ret_cache = cache_new(UINT64_C(1) << 30);
	int r = store_open(&params, ret, opening, &err);
	check(*ret_cache && r == 0, r ? err.text : "no memory");
}

static void restore(struct store *s, struct cache *cache, struct store_counts *ret)
{
	struct err err = ERR_INIT;
	check(store_restore(s, cache, ret, &err) == 0, "a damaged store is not left out");
}

static void put_set(struct cache *c, struct iset **field, const char *list)
{
	struct rp_idset ids;
	check(rp_idset_parse(&ids, list, RP_CPUS_MAX) == 0, "no set");
	txn_put_set(c, field, intern_get(cache_sets(c), rp_ids_of(&ids)));
}

static void decide(struct cache *c, struct ctr *ctr, unsigned i)
{
	char own[16];
	struct txn *t = txn_begin(c);
	struct decision *d = t ? txn_stage(t, ctr) : NULL;
	check(d != NULL, "no memory");
	(void)snprintf(own, sizeof own, "%u", 8 + i);
	put_set(c, &d->exclusive, own);
	put_set(c, &d->cpus, own);
	put_set(c, &d->mems, "0-1");
	d->shares = 1024;
	d->quota = -1;
	d->policy = cache_policy_number(c, "static");
	txn_put_blob(&d->rdt_class, blob_str("gold"));
	txn_put_blob(&d->cpu_class, i % 2 ? blob_str("turbo") : NULL);
	txn_put_blob(&d->private_data, blob_new("\0data", 5));
	txn_put_blob(&d->data, blob_str("SHARED_CPUS=\"0-3\"\n"));
	txn_commit(t);
	txn_end(t);
	ctr_ack(c, ctr, ctr_diff(ctr));
}

static void add_pod(struct cache *c, unsigned i)
{
	static const struct kv labels[] = {{"app", "web"}, {"empty", ""}};
	static const struct kv annotations[] = {
		{"prefer-isolated-cpus.resource-policy.nri.io", "true"}};
	char pod_id[16], ctr_id[16];
	struct pod *pod;
	struct ctr *ctr;
	struct err err = ERR_INIT;
	(void)snprintf(pod_id, sizeof pod_id, "pod%u", i);
	(void)snprintf(ctr_id, sizeof ctr_id, "ctr%u", i);
	const struct pod_desc pod_desc = {pod_id, pod_id,      "uid", "default", "",  "/kubepods",
					  labels, annotations, 2,     1,	 NULL};
	const struct ctr_desc ctr_desc = {
		.id = ctr_id,
		.pod_id = pod_id,
		.name = "main",
		.cgroups_path = "/kubepods/x",
		.state = RP_STATE_RUNNING,
		.oom_score_adj = 100,
		.res = {.amounts = {1024, 100000, 100000, 1 << 20}, .cpus = "0-3", .mems = "0"},
		.labels = labels,
		.n_labels = i % 3};
	check(cache_put_pod(c, &pod_desc, &pod, &err) == 0, err.text);
	check(cache_put_ctr(c, &ctr_desc, &ctr, &err) == 0, err.text);
	if (i >= N_PODS - N_OWNERS)
		decide(c, ctr, i);
}

static void give_shared(struct cache *c, struct ctr *ctr, const char *cpus)
{
	struct txn *t = txn_begin(c);
	struct decision *d = t ? txn_stage(t, ctr) : NULL;
	check(d != NULL, "no memory");
	txn_put_set(c, &d->exclusive, NULL);
	put_set(c, &d->cpus, cpus);
	txn_commit(t);
	txn_end(t);
}

static void write_one(struct store *s, struct ctr *ctr)
{
	struct err err = ERR_INIT;
	store_put_ctr(s, ctr);
	check(store_commit(s, &err) == 0, err.text);
}

/* Appends records to a new log: two decisions, an owner that gives up its CPUs and gets another
 * set, a removed owner. */
static void write_more(struct store *s, struct cache *c)
{
	struct err err = ERR_INIT;
	struct ctr *owner = cache_ctr(c, "ctr0"), *sharer = cache_ctr(c, "ctr1"),
		   *gone = cache_ctr(c, "ctr7");
	check(owner && sharer && gone, "nobody decides");
	decide(c, owner, 0);
	write_one(s, owner);
	decide(c, sharer, 1);
	check(store_put_note(s, STORE_NOTE_POLICY, "balloons", 8) == 0, "no note");
	write_one(s, sharer);
	give_shared(c, sharer, "0-7");
	write_one(s, sharer);
	give_shared(c, sharer, "0-6");
	write_one(s, sharer);
	store_del_ctr(s, gone);
	cache_del_ctr(c, gone);
	check(store_commit(s, &err) == 0, err.text);
}

static void keep_file(void)
{
	struct err err = ERR_INIT;
	char *data;
	size_t len;
	check(fs_read_own(stored.path, FILE_MAX, &data, &len, &err) == 0, "no file");
	check(buf_add(&stored.file, data, len) == 0, "no memory");
	free(data);
}

void stores_record(void)
{
	struct store_opening opening;
	struct store_counts counts;
	struct store *s;
	struct cache *cache;
	struct err err = ERR_INIT;
	check(asprintf(&stored.dir, "%s/state", mutating.work) > 0 &&
		      asprintf(&stored.path, "%s/" STORE_FILE, stored.dir) > 0,
	      "no memory");
	new_store(&s, &cache, &opening);
	restore(s, cache, &counts);
	for (unsigned i = 0; i < N_PODS; i++)
		add_pod(cache, i);
	check(store_put_note(s, STORE_NOTE_POLICY, "static", 6) == 0, "no note");
	check(store_put_blob(s, "static", "1.0", "state", 5) == 0, "no blob");
	check(store_commit(s, &err) == 0, err.text);
	write_more(s, cache);
	store_close(s);
	cache_free(cache);
	keep_file();
}

void stores_fini(void)
{
	buf_fini(&stored.file);
	free(stored.dir);
	free(stored.path);
}

/* ---- invariants ------------------------------------------------------------------------------ */

/* Each is the owner of its CPUs, and has them: what else came of a record would be a lie about
 * others. */
static void check_cache(struct cache *c, const struct store_counts *n)
{
	unsigned pods = 0, ctrs = 0;
	for (const struct pod *pod = cache_pods(c); pod; pod = pod->hh.next, pods++)
		check(*pod->id && strlen(pod->id) <= CACHE_ID_MAX, "a pod without an id");
	for (const struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next, ctrs++) {
		check(cache_ctr(c, ctr->id) == ctr && ctr->pod, "a container that is not found");
		check(ctr->flags & RP_CTR_RESTORED, "a container that seems to be new");
		check(!ctr->cur.exclusive ||
			      (ctr->cur.cpus &&
			       rp_ids_subset(ctr->cur.exclusive->ids, ctr->cur.cpus->ids)),
		      "a container that owns what it does not have");
	}
	check(pods == n->pods && ctrs == n->ctrs, "what was restored is not there");
	check(n->ctrs <= RECORDS_MAX && n->pods <= RECORDS_MAX, "a damaged store grows");
}

static unsigned owners(struct cache *c)
{
	unsigned n = 0;
	for (const struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next)
		n += ctr->cur.exclusive != NULL;
	return n;
}

static bool usable(enum store_outcome outcome)
{
	return outcome == STORE_FOUND || outcome == STORE_PART;
}

static void check_recorded(struct cache *cache, const struct store_counts *n)
{
	check(mutating.n || (n->ctrs == N_PODS - 1 && n->pods == N_PODS && !n->bad &&
			     n->blobs == 2 && owners(cache) == N_OWNERS),
	      "what is as it was recorded is not restored");
}

/* Checks that the restored records, written again, restore the same. */
static void check_again(const struct store_counts *was)
{
	struct store_opening opening;
	struct store_counts again = {0};
	struct store *s;
	struct cache *cache;
	new_store(&s, &cache, &opening);
	check(opening.outcome == STORE_FOUND, "what is written cannot be read");
	restore(s, cache, &again);
	check_cache(cache, &again);
	check(!again.bad, "what was restored and written again is damaged");
	check(was->pods == again.pods && was->ctrs == again.ctrs && was->blobs == again.blobs,
	      "what was restored and written again is not the same");
	store_close(s);
	cache_free(cache);
}

static void try_log(const struct buf *bytes)
{
	struct store_opening opening;
	struct store_counts counts = {0};
	struct store *s;
	struct cache *cache;
	struct err err = ERR_INIT;
	mutating.input = buf_bytes(bytes);
	mutating.size = buf_len(bytes);
	check(fs_replace(stored.path, mutating.input, mutating.size, 0600, false, &err) == 0,
	      err.text);
	new_store(&s, &cache, &opening);
	check(opening.outcome != STORE_FRESH && opening.why[0],
	      "a store is set aside without a reason");
	check(mutating.n || opening.outcome == STORE_FOUND,
	      "what is as it was recorded is not usable");
	restore(s, cache, &counts);
	check_cache(cache, &counts);
	check_recorded(cache, &counts);
	check(usable(opening.outcome) || (!counts.pods && !counts.ctrs && !counts.blobs),
	      "something comes of what is not used");
	check(store_commit(s, &err) == 0, err.text);
	store_close(s);
	cache_free(cache);
	check_again(&counts);
	if (usable(opening.outcome))
		mutating.accepted++;
	else
		mutating.refused++;
}

/* ---- damage to the file ---------------------------------------------------------------------- */

void try_store(void)
{
	struct buf bytes = BUF_INIT;
	(void)buf_add(&bytes, buf_bytes(&stored.file), buf_len(&stored.file));
	for (uint64_t k = mutating.n ? 1 + draw(8) : 0; k; k--)
		mutate_some(&bytes);
	try_log(&bytes);
	buf_fini(&bytes);
}

/* ---- records that say something else --------------------------------------------------------- */

#define MAGIC 8u /* bytes at the beginning of the file */
/* Head of a batch: the size of the records, their checksum, and a checksum of both and of the
 * position. */
#define HEAD 12u

static uint32_t number_at(const uint8_t *at)
{
	uint32_t n;
	memcpy(&n, at, sizeof n);
	return n;
}

static void add_batch(struct buf *to, const struct buf *records)
{
	uint64_t place = buf_len(to);
	uint32_t head[3] = {(uint32_t)buf_len(records)};
	head[1] = crc32c(0, buf_bytes(records), head[0]);
	head[2] = crc32c(crc32c(0, &place, sizeof place), head, 8);
	(void)buf_add(to, head, sizeof head);
	(void)buf_add(to, buf_bytes(records), head[0]);
}

static void add_record(struct buf *to, const uint8_t *record, uint32_t len)
{
	struct buf changed = BUF_INIT;
	(void)buf_add(&changed, record, len);
	for (uint64_t k = mutating.n && !draw(6) ? draw(3) : 0; k; k--)
		mutate_some(&changed);
	uint32_t n = (uint32_t)buf_len(&changed);
	(void)buf_add(to, &n, sizeof n);
	(void)buf_add(to, buf_bytes(&changed), n);
	buf_fini(&changed);
}

/* Copies the records, some of them changed, omitted or duplicated. */
static void change_records(struct buf *to, const uint8_t *from, uint32_t size)
{
	for (uint32_t at = 0; at + 4 <= size; at += 4 + number_at(from + at))
		for (uint64_t k = mutating.n && !draw(12) ? draw(3) : 1; k; k--)
			add_record(to, from + at + 4, number_at(from + at));
	if (mutating.n && !draw(16)) /* damage the form of the records */
		mutate_some(to);
}

/* With the right sums again: what comes of a program with an error. */
void try_records(void)
{
	struct buf bytes = BUF_INIT;
	const uint8_t *from = buf_bytes(&stored.file);
	(void)buf_add(&bytes, from, MAGIC);
	for (size_t at = MAGIC; at + HEAD <= buf_len(&stored.file);
	     at += HEAD + number_at(from + at)) {
		struct buf records = BUF_INIT;
		if (at == MAGIC && draw(16)) /* the head of it all, which is rarely another one */
			(void)buf_add(&records, from + at + HEAD, number_at(from + at));
		else
			change_records(&records, from + at + HEAD, number_at(from + at));
		add_batch(&bytes, &records);
		buf_fini(&records);
	}
	try_log(&bytes);
	buf_fini(&bytes);
}
