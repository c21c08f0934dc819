/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB may crash or run in circles on a file that was damaged, which is why the daemon has a child of its own read it first. A process a
 * mutation, and five seconds for each circle, would allow of some hundred mutations a minute; so here one child reads file after file,
 * with a limit of CPU time, until one of them ends it. Whatever it finds usable is restored and written again by this process, and
 * one in FULL of all goes the whole way, through store_open.
 */
#include "test/mutate/mutate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/util/crc32c.h"
#include "core/cache/internal.h"
#include "core/cache/store.h"
#include "core/cache/store_internal.h"
#include "core/cache/txn.h"
#include "core/util/fs.h"

#define BOOT "11111111-2222-3333-4444-555555555555"
#define N_PODS 8u
#define N_OWNERS 6u /* of CPUs; the journal has one more, and one less */
#define RECORDS_MAX 64u
#define FULL 32u
#define FULL_DIED 256u /* of those that the child died of */
#define CIRCLE_US 100000 /* of CPU time; what is whole takes 100 */
#define MAP_SIZE ((size_t)1 << 20)

struct piece {
	MDB_val key; /* what was recorded */
	uint8_t key_bytes[1 + STORE_NAME_MAX];
	struct buf message;
};

static struct {
	struct buf file, journal;
	struct piece pieces[RECORDS_MAX];
	unsigned n;
	size_t journal_end; /* what is behind it was never written */
	char *dir, *path, *journal_path, *mutated, *mutated_journal, *again;
} stored;

/* What becomes of each piece in a file of records. */
static struct change_of {
	const struct piece *key, *message;
	struct buf changed; /* what is written */
	bool gone;
} changes[RECORDS_MAX];

static struct {
	pid_t pid;
	int to, from;
	struct probe_result *result; /* shared */
} reader;

/* ---- a store to begin with ----------------------------------------------------------------------------------------- */

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
	const struct pod_desc pod_desc = {pod_id,      pod_id, "uid",	    "default", "",
					  "/kubepods", labels, annotations, 2,	       1};
	const struct ctr_desc ctr_desc = {.id = ctr_id,
					  .pod_id = pod_id,
					  .name = "main",
					  .cgroups_path = "/kubepods/x",
					  .state = RP_STATE_RUNNING,
					  .oom_score_adj = 100,
					  .res = {1024, 100000, 100000, 1 << 20, "0-3", "0"},
					  .labels = labels,
					  .n_labels = i % 3};
	check(cache_put_pod(c, &pod_desc, &pod, &err) == 0, err.text);
	check(cache_put_ctr(c, &ctr_desc, &ctr, &err) == 0, err.text);
	if (i >= N_PODS - N_OWNERS)
		decide(c, ctr, i);
}

static void keep_piece(const void *key, size_t key_len, const void *message, size_t len)
{
	struct piece *p = &stored.pieces[stored.n++];
	check(stored.n < RECORDS_MAX && key_len <= sizeof p->key_bytes, "too much");
	memcpy(p->key_bytes, key, key_len);
	p->key = (MDB_val){key_len, p->key_bytes};
	p->message = (struct buf)BUF_INIT;
	check(buf_add(&p->message, message, len) == 0, "no memory");
}

/* That some of them have other sets now, which is in the file only until the next complete commit. */
static void keep_move(struct cache *c)
{
	struct rp_idset ids;
	struct record_key key;
	struct record r;
	uint64_t numbers[N_PODS];
	uint8_t message[256];
	uint32_t n = 0;
	for (const struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next)
		if (!ctr->cur.exclusive)
			numbers[n++] = ctr->seq;
	check(n > 0 && rp_idset_parse(&ids, "0-7", RP_CPUS_MAX) == 0, "nobody moves");
	struct iset *cpus = intern_get(cache_sets(c), rp_ids_of(&ids));
	check(cpus != NULL, "no memory");
	record_key_moved(&key, 1);
	record_of_moved(&r, cpus, NULL, numbers, n);
	size_t len = protobuf_c_message_get_packed_size(r.message);
	check(len <= sizeof message, "too much");
	(void)protobuf_c_message_pack(r.message, message);
	keep_piece(key.bytes, key.len, message, len);
	(void)intern_unref(cache_sets(c), cpus);
}

static void keep_pieces(void)
{
	struct store_reader r;
	MDB_val key, value;
	check(store_reader_open(&r, stored.path) == 0, "no file");
	while (store_reader_next(&r, &key, &value) == 0)
		keep_piece(key.mv_data, key.mv_size, (const uint8_t *)value.mv_data + RECORD_SUM,
			   value.mv_size - RECORD_SUM);
	store_reader_close(&r);
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

/*
 * What came after the last complete commit: two decide, one of them gives up what it owned, gets another set, and somebody who owned CPUs
 * goes.
 */
static size_t write_journal(struct store *s, struct cache *c)
{
	struct err err = ERR_INIT;
	struct ctr *owner = cache_ctr(c, "ctr0"), *sharer = cache_ctr(c, "ctr1"),
		   *gone = cache_ctr(c, "ctr7");
	check(owner && sharer && gone, "nobody decides");
	decide(c, owner, 0);
	store_put_ctr_now(s, owner);
	check(store_commit_urgent(s, &err) == 0, err.text);
	decide(c, sharer, 1);
	store_put_ctr_now(s, sharer);
	check(store_put_note(s, STORE_NOTE_POLICY, "balloons", 8) == 0, "no note");
	check(store_commit_urgent(s, &err) == 0, err.text);
	give_shared(c, sharer, "0-7");
	store_put_ctr_now(s, sharer);
	check(store_commit_urgent(s, &err) == 0, err.text);
	give_shared(c, sharer, "0-6");
	store_put_ctr_now(s, sharer);
	check(store_commit_urgent(s, &err) == 0, err.text);
	check(s->moved.next > s->moved.first, "nobody moves");
	size_t before = s->journal.end;
	store_del_ctr(s, gone);
	check(store_commit_urgent(s, &err) == 0, err.text);
	check(s->journal.end > before, "nobody goes");
	return s->journal.end;
}

static void keep_file(const char *name, struct buf *ret)
{
	struct err err = ERR_INIT;
	struct fs_root root;
	char *data;
	size_t len;
	check(fs_root_open(&root, stored.dir, &err) == 0, err.text);
	check(fs_read_all(&root, name, 64 << 20, &data, &len) == 0, "no file");
	fs_root_close(&root);
	check(buf_add(ret, data, len) == 0, "no memory");
	free(data);
}

/* The used pages are in front, the rest is room. */
static void cut_room(struct buf *file)
{
	const uint8_t *data = buf_bytes(file);
	size_t len = buf_len(file);
	while (len > 4096 && !memcmp(data + len - 4096, data + len - 4095, 4095) && !data[len - 1])
		len -= 4096;
	file->end -= buf_len(file) - len;
}

void stores_record(void)
{
	struct store_opening opening;
	struct store_counts counts;
	struct store *s;
	struct cache *cache;
	struct err err = ERR_INIT;
	check(asprintf(&stored.dir, "%s/state", mutating.work) > 0 &&
		      asprintf(&stored.path, "%s/" STORE_FILE, stored.dir) > 0 &&
		      asprintf(&stored.journal_path, "%s" STORE_JOURNAL, stored.path) > 0 &&
		      asprintf(&stored.mutated, "%s/mutated", mutating.work) > 0 &&
		      asprintf(&stored.mutated_journal, "%s" STORE_JOURNAL, stored.mutated) > 0 &&
		      asprintf(&stored.again, "%s/again", mutating.work) > 0,
	      "no memory");
	new_store(&s, &cache, &opening);
	restore(s, cache, &counts);
	for (unsigned i = 0; i < N_PODS; i++)
		add_pod(cache, i);
	check(store_put_note(s, STORE_NOTE_POLICY, "static", 6) == 0, "no note");
	check(store_put_blob(s, "static", "1.0", "state", 5) == 0, "no blob");
	check(store_commit(s, &err) == 0, err.text);
	keep_move(cache);
	stored.journal_end = write_journal(s, cache);
	store_close(s);
	cache_free(cache);
	keep_file(STORE_FILE, &stored.file);
	cut_room(&stored.file);
	keep_file(STORE_FILE STORE_JOURNAL, &stored.journal);
	keep_pieces();
	reader.result = mmap(NULL, sizeof *reader.result, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(reader.result != MAP_FAILED, "no memory");
}

/* ---- the child that reads ------------------------------------------------------------------------------------------ */

static void read_on(int from, int to)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGVTALRM};
	const struct itimerval limit = {{0, 0}, {0, CIRCLE_US}}, none = {{0, 0}, {0, 0}};
	char byte;
	for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++)
		(void)signal(fatal[i], SIG_DFL);
	/* LMDB's assertions print before they abort */
	int null = open("/dev/null", O_WRONLY);
	if (null >= 0)
		(void)dup2(null, STDERR_FILENO);
	while (read(from, &byte, 1) == 1) {
		(void)setitimer(ITIMER_VIRTUAL, &limit, NULL);
		store_check_file(stored.mutated, BOOT, reader.result);
		(void)setitimer(ITIMER_VIRTUAL, &none, NULL);
		if (write(to, &byte, 1) != 1)
			_exit(0);
	}
	_exit(0);
}

static void start_reader(void)
{
	int to[2], from[2];
	check(pipe(to) == 0 && pipe(from) == 0, "no pipe");
	reader.pid = fork();
	check(reader.pid >= 0, "no child");
	if (reader.pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		read_on(to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	reader.to = to[1];
	reader.from = from[0];
}

static int stop_reader(void)
{
	int status = 0;
	if (!reader.pid)
		return 0;
	(void)close(reader.to);
	(void)close(reader.from);
	while (waitpid(reader.pid, &status, 0) < 0 && errno == EINTR)
		;
	reader.pid = 0;
	return status;
}

/* The signal that it ended in, or 0: what it found is in reader.result. */
static int read_mutated(void)
{
	char byte = 0;
	if (!reader.pid)
		start_reader();
	check(write(reader.to, &byte, 1) == 1, "nobody reads");
	if (read(reader.from, &byte, 1) == 1)
		return 0;
	int status = stop_reader();
	check(WIFSIGNALED(status), "reading a damaged store ends in an error of ours");
	return WTERMSIG(status);
}

void stores_fini(void)
{
	(void)stop_reader();
	for (unsigned i = 0; i < stored.n; i++) {
		buf_fini(&stored.pieces[i].message);
		buf_fini(&changes[i].changed);
	}
	buf_fini(&stored.file);
	buf_fini(&stored.journal);
	free(stored.dir);
	free(stored.path);
	free(stored.journal_path);
	free(stored.mutated);
	free(stored.mutated_journal);
	free(stored.again);
}

/* ---- what has to hold ---------------------------------------------------------------------------------------------- */

/* Each is the owner of its CPUs, and has them: what else came of a record would be a lie about others. */
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

/* A blob without data is none. */
static void same_counts(const struct store_counts *a, uint32_t n_kept, const struct store_counts *b)
{
	check(!b->bad, "what was restored and written again is damaged");
	check(a->pods == b->pods && a->ctrs == b->ctrs && n_kept == b->blobs,
	      "what was restored and written again is not the same");
}

static unsigned owners(struct cache *c)
{
	unsigned n = 0;
	for (const struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next)
		n += ctr->cur.exclusive != NULL;
	return n;
}

/* The file at stored.path was found usable: it is restored, written again, and that is restored as well. */
static void go_on(struct store *s, struct cache *cache)
{
	struct store_counts counts = {0}, again = {0};
	struct store_opening opening;
	struct probe_result now;
	struct err err = ERR_INIT;
	unsigned n_ctrs = N_PODS - (s->found_journal ? 1 : 0);
	restore(s, cache, &counts);
	check_cache(cache, &counts);
	check(mutating.n || (counts.ctrs == n_ctrs && counts.pods == N_PODS && !counts.bad &&
			     counts.blobs == 2 && owners(cache) == N_OWNERS),
	      "what is as it was recorded is not restored");
	uint32_t n_kept = s->n_kept;
	check(n_kept <= counts.blobs, "more is kept than was restored");
	check(store_commit(s, &err) == 0, err.text);
	store_close(s);
	cache_free(cache);
	store_check_file(stored.path, BOOT, &now);
	check(now.outcome == STORE_FOUND && !now.n_bad, "what is written cannot be read");
	check(rename(stored.path, stored.again) == 0, "no file");
	new_store(&s, &cache, &opening);
	check(link(stored.again, stored.path) == 0, "no link");
	s->found = true;
	restore(s, cache, &again);
	check_cache(cache, &again);
	same_counts(&counts, n_kept, &again);
	store_close(s);
	cache_free(cache);
	(void)unlink(stored.path);
}

static void link_mutated(void)
{
	(void)unlink(stored.journal_path);
	check(link(stored.mutated, stored.path) == 0, "no link");
	check(link(stored.mutated_journal, stored.journal_path) == 0 || errno == ENOENT, "no link");
}

/* As the daemon does it at its start. */
static void whole_way(bool compare, bool usable)
{
	struct store_opening opening;
	struct store_counts counts = {0};
	struct store *s;
	struct cache *cache;
	struct err err = ERR_INIT;
	link_mutated();
	new_store(&s, &cache, &opening);
	check(opening.outcome != STORE_FRESH && opening.why[0],
	      "a store is set aside without a reason");
	check(!compare || (opening.outcome == STORE_FOUND) == usable, "it is read in another way");
	restore(s, cache, &counts);
	check_cache(cache, &counts);
	check(store_commit(s, &err) == 0, err.text);
	store_close(s);
	cache_free(cache);
	(void)unlink(stored.path);
}

/* Without the daemon's own child, as the reader has been through it. */
static void short_way(uint64_t journal)
{
	struct store_opening opening;
	struct store *s;
	struct cache *cache;
	new_store(&s, &cache, &opening);
	link_mutated();
	s->found = true;
	s->found_journal = journal;
	go_on(s, cache);
}

/* ---- damage to the file -------------------------------------------------------------------------------------------- */

void try_store(void)
{
	struct buf bytes = BUF_INIT;
	struct err err = ERR_INIT;
	(void)buf_add(&bytes, buf_bytes(&stored.file), buf_len(&stored.file));
	for (uint64_t k = mutating.n ? 1 + draw(8) : 0; k; k--)
		mutate_some(&bytes);
	mutating.input = buf_bytes(&bytes);
	mutating.size = buf_len(&bytes);
	(void)unlink(stored.path);
	check(fs_replace(stored.mutated, mutating.input, mutating.size, 0600, false, &err) == 0,
	      err.text);
	int signo = read_mutated();
	bool usable = !signo && reader.result->outcome == STORE_FOUND;
	check(signo || reader.result->why[0], "a store is refused without a reason");
	check(mutating.n || usable, "what is as it was recorded is not usable");
	/* that of which the last commit was torn is read twice, with another result */
	if (signo ? signo != SIGVTALRM && draw(FULL_DIED) == 0 : mutating.n % FULL == 1)
		whole_way(signo || !reader.result->torn, usable);
	else if (usable)
		short_way(0);
	if (usable)
		mutating.accepted++;
	else
		mutating.refused++;
	buf_fini(&bytes);
}

/* ---- records that say something else ------------------------------------------------------------------------------- */

static void change_record(void)
{
	struct change_of *c = &changes[draw(stored.n)];
	uint64_t what = draw(8);
	if (what == 0)
		c->gone = true;
	else if (what == 1) /* under another one's key */
		c->key = &stored.pieces[draw(stored.n)];
	else if (what == 2)
		c->message = &stored.pieces[draw(stored.n)];
	buf_reset(&c->changed);
	(void)buf_add(&c->changed, buf_bytes(&c->message->message), buf_len(&c->message->message));
	for (uint64_t k = draw(4); k; k--)
		mutate_some(&c->changed);
}

static void put_record(MDB_txn *txn, MDB_dbi dbi, const struct change_of *c)
{
	MDB_val key = {c->key->key.mv_size, (void *)(uintptr_t)c->key->key_bytes};
	size_t len = buf_len(&c->changed);
	MDB_val value = {len + RECORD_SUM, NULL};
	uint32_t sum = crc32c(crc32c(0, key.mv_data, key.mv_size), buf_bytes(&c->changed), len);
	check(mdb_put(txn, dbi, &key, &value, MDB_RESERVE) == 0, "no record");
	for (unsigned i = 0; i < RECORD_SUM; i++)
		((uint8_t *)value.mv_data)[i] = (uint8_t)(sum >> (8 * i));
	if (len)
		memcpy((uint8_t *)value.mv_data + RECORD_SUM, buf_bytes(&c->changed), len);
}

/* The number of this commit, most of the time. */
static void put_meta(MDB_txn *txn, struct change_of *meta, bool changed)
{
	struct record r;
	uint8_t bytes[512];
	if (changed)
		return;
	record_of_meta(&r, BOOT, mdb_txn_id(txn), 0);
	size_t len = protobuf_c_message_pack(r.message, bytes);
	buf_reset(&meta->changed);
	(void)buf_add(&meta->changed, bytes, len);
}

static void write_file(struct change_of *meta, bool meta_changed)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	(void)unlink(stored.mutated);
	check(mdb_env_create(&env) == 0 && mdb_env_set_mapsize(env, MAP_SIZE) == 0 &&
		      mdb_env_open(env, stored.mutated, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC,
				   0600) == 0 &&
		      mdb_txn_begin(env, NULL, 0, &txn) == 0 &&
		      mdb_dbi_open(txn, NULL, 0, &dbi) == 0,
	      "no file");
	put_meta(txn, meta, meta_changed);
	for (unsigned i = 0; i < stored.n; i++)
		if (!changes[i].gone)
			put_record(txn, dbi, &changes[i]);
	check(mdb_txn_commit(txn) == 0, "no file");
	mdb_env_close(env);
}

void try_records(void)
{
	struct change_of *meta = NULL;
	struct probe_result found;
	for (unsigned i = 0; i < stored.n; i++) {
		const struct piece *p = &stored.pieces[i];
		struct change_of *c = &changes[i];
		c->key = c->message = p;
		c->gone = false;
		buf_reset(&c->changed);
		(void)buf_add(&c->changed, buf_bytes(&p->message), buf_len(&p->message));
		if (p->key_bytes[0] == RECORD_META)
			meta = c;
	}
	for (uint64_t k = mutating.n ? 1 + draw(8) : 0; k; k--)
		change_record();
	write_file(meta, mutating.n && draw(16) == 0);
	store_check_file(stored.mutated, BOOT, &found);
	check(found.why[0] != '\0', "a store is refused without a reason");
	check(mutating.n || found.outcome == STORE_FOUND,
	      "what is as it was recorded is not usable");
	if (mutating.n % FULL == 1) {
		(void)unlink(stored.path);
		whole_way(!found.torn, found.outcome == STORE_FOUND);
	} else if (found.outcome == STORE_FOUND) {
		(void)unlink(stored.path);
		short_way(0);
	}
	if (found.outcome == STORE_FOUND)
		mutating.accepted++;
	else
		mutating.refused++;
}

/* ---- the journal, of a file that is whole -------------------------------------------------------------------------- */

/* Of each batch in the journal, which begins with its checksum, its length and its number. */
#define HEAD 16u

/* Of each entry, which begins with the lengths of its value and its key. */
#define ENTRY 8u

static uint32_t number_at(const uint8_t *at)
{
	uint32_t n;
	memcpy(&n, at, sizeof n);
	return n;
}

/* The entry with another message, and the right sum of that. */
static void change_message(struct buf *to, const uint8_t *entry, uint32_t key_len,
			   uint32_t value_len)
{
	struct buf message = BUF_INIT;
	const uint8_t *key = entry + ENTRY;
	(void)buf_add(&message, key + key_len + RECORD_SUM, value_len - RECORD_SUM);
	mutate_some(&message);
	size_t len = buf_len(&message);
	uint32_t head[2] = {(uint32_t)len + RECORD_SUM, key_len};
	uint32_t sum = crc32c(crc32c(0, key, key_len), buf_bytes(&message), len);
	(void)buf_add(to, head, sizeof head);
	(void)buf_add(to, key, key_len);
	for (unsigned i = 0; i < RECORD_SUM; i++)
		(void)buf_add(to, &(uint8_t){(uint8_t)(sum >> (8 * i))}, 1);
	(void)buf_add(to, buf_bytes(&message), len);
	buf_fini(&message);
}

static void change_entries(struct buf *to, const uint8_t *from, uint32_t len)
{
	for (uint32_t at = 0; at + ENTRY <= len;) {
		const uint8_t *entry = from + at;
		uint32_t value_len = number_at(entry), key_len = number_at(entry + 4);
		if (value_len > RECORD_SUM && draw(2))
			change_message(to, entry, key_len, value_len);
		else
			(void)buf_add(to, entry, ENTRY + key_len + value_len);
		at += ENTRY + key_len + value_len;
	}
	if (draw(4) == 0) /* what is wrong is in the entries' own form */
		mutate_some(to);
}

/* Batches whose records were changed, with the right heads again; some are left out or there twice. */
static void change_batches(struct buf *to)
{
	const uint8_t *from = buf_bytes(&stored.journal);
	for (size_t at = 0; at + HEAD <= stored.journal_end;
	     at += HEAD + number_at(from + at + 4)) {
		struct buf batch = BUF_INIT, entries = BUF_INIT;
		change_entries(&entries, from + at + HEAD, number_at(from + at + 4));
		uint32_t len = (uint32_t)buf_len(&entries);
		(void)buf_add(&batch, from + at, HEAD);
		(void)buf_add(&batch, buf_bytes(&entries), len);
		uint8_t *head = (uint8_t *)(uintptr_t)buf_bytes(&batch);
		memcpy(head + 4, &len, 4);
		uint32_t sum = crc32c(0, head + 4, HEAD - 4 + len);
		memcpy(head, &sum, 4);
		for (uint64_t k = draw(8) ? 1 : draw(3); k; k--)
			(void)buf_add(to, buf_bytes(&batch), buf_len(&batch));
		buf_fini(&batch);
		buf_fini(&entries);
	}
}

void try_journal(void)
{
	struct buf bytes = BUF_INIT;
	struct probe_result found;
	struct err err = ERR_INIT;
	if (mutating.n && draw(2)) {
		change_batches(&bytes);
	} else {
		(void)buf_add(&bytes, buf_bytes(&stored.journal), stored.journal_end);
		for (uint64_t k = mutating.n ? 1 + draw(8) : 0; k; k--)
			mutate_some(&bytes);
	}
	mutating.input = buf_bytes(&bytes);
	mutating.size = buf_len(&bytes);
	(void)unlink(stored.path);
	if (mutating.n == 0)
		check(fs_replace(stored.mutated, buf_bytes(&stored.file), buf_len(&stored.file),
				 0600, false, &err) == 0,
		      err.text);
	check(fs_replace(stored.mutated_journal, mutating.input, mutating.size, 0600, false,
			 &err) == 0,
	      err.text);
	store_check_file(stored.mutated, BOOT, &found);
	check(found.why[0] != '\0', "a store is refused without a reason");
	check(mutating.n || found.outcome == STORE_FOUND,
	      "what is as it was recorded is not usable");
	if (mutating.n % FULL == 1)
		whole_way(!found.torn, found.outcome == STORE_FOUND);
	else if (found.outcome == STORE_FOUND)
		short_way(found.journal);
	if (found.outcome == STORE_FOUND)
		mutating.accepted++;
	else
		mutating.refused++;
	buf_fini(&bytes);
}
