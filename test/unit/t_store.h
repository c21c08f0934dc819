/* SPDX-License-Identifier: Apache-2.0 */
/* Shared fixture for the tests of the store: a cache with every kind of content, and a
 * comparison of two caches. */
#ifndef TEST_UNIT_T_STORE_H
#define TEST_UNIT_T_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/nri-rpd/cache/internal.h"
#include "core/nri-rpd/store/store.h"
#include "core/nri-rpd/store/internal.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/store/restore.h"

#define BOOT "3f0c5d3e-7d0b-4b0e-9f43-000000000001"
#define UNUSED __attribute__((unused))

struct place {
	char dir[256]; /* place_fini removes the parent of this directory */
	char top[128];
};

UNUSED static void place_init(struct place *p)
{
	const char *tmp = getenv("TMPDIR");
	if (!tmp)
		tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	(void)snprintf(p->top, sizeof p->top, "%s/nri-rp-store-XXXXXX", tmp);
	assert_non_null(mkdtemp(p->top));
	(void)snprintf(p->dir, sizeof p->dir, "%s/state", p->top);
}

UNUSED static int remove_entry(const char *name, void *arg)
{
	return unlinkat(*(int *)arg, name, 0) < 0 && errno == EISDIR
		       ? unlinkat(*(int *)arg, name, AT_REMOVEDIR)
		       : 0;
}

UNUSED static void place_empty(const char *dir)
{
	struct fs_root root = {.path = (char *)dir};
	root.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root.fd < 0)
		return;
	(void)fs_list(&root, ".", remove_entry, &root.fd);
	(void)close(root.fd);
}

UNUSED static void place_fini(struct place *p)
{
	place_empty(p->dir);
	(void)rmdir(p->dir);
	place_empty(p->top);
	assert_int_equal(rmdir(p->top), 0);
}

UNUSED static const char *place_path(const struct place *p, const char *name, char buf[512])
{
	(void)snprintf(buf, 512, "%s/%s", p->dir, name);
	return buf;
}

UNUSED static bool place_has(const struct place *p, const char *name)
{
	char path[512];
	struct stat st;
	return lstat(place_path(p, name, path), &st) == 0;
}

UNUSED static struct store *open_with(const struct store_params *params, enum store_outcome want)
{
	struct store *s = NULL;
	struct store_opening opening;
	struct err err = ERR_INIT;
	if (store_open(params, &s, &opening, &err))
		fail_msg("store_open: %s", err.text);
	if (opening.outcome != want)
		fail_msg("outcome %d instead of %d: %s", opening.outcome, want, opening.why);
	assert_int_equal(opening.why[0] != '\0', want != STORE_FRESH);
	return s;
}

UNUSED static struct store *open_at(const struct place *p, enum store_outcome want)
{
	struct store_params params = {.dir = p->dir, .boot_id = BOOT};
	return open_with(&params, want);
}

UNUSED static struct store_counts restore(struct store *s, struct cache *c)
{
	struct store_counts counts;
	struct err err = ERR_INIT;
	if (store_restore(s, c, &counts, &err))
		fail_msg("store_restore: %s", err.text);
	return counts;
}

UNUSED static void commit(struct store *s)
{
	struct err err = ERR_INIT;
	if (store_commit(s, &err))
		fail_msg("store_commit: %s", err.text);
}

/* ---- a cache --------------------------------------------------------------------------------- */

UNUSED static struct cache *new_cache(void)
{
	struct cache *c = cache_new(UINT64_C(64) << 30);
	assert_non_null(c);
	return c;
}

UNUSED static struct pod *add_pod(struct cache *c, unsigned i)
{
	char id[80], name[80], uid[80];
	const struct kv labels[] = {{"app", "web"}, {"tier", "front"}, {"empty", ""}};
	const struct kv annotations[] = {{"memory.preserve.resource-policy.nri.io", "true"},
					 {"note", "some text, with \"quotes\""}};
	struct pod *pod = NULL;
	struct err err = ERR_INIT;
	(void)snprintf(id, sizeof id, "%064x", 0xa0000 + i);
	(void)snprintf(name, sizeof name, "pod-%u", i);
	(void)snprintf(uid, sizeof uid, "uid-%u", i);
	struct pod_desc d = {.id = id,
			     .name = name,
			     .uid = uid,
			     .ns = i % 2 ? "default" : "kube-system",
			     .runtime_handler = i % 3 ? "runc" : "",
			     .cgroup_parent = i % 2 ? "/kubepods/burstable/pod1" : "/kubepods/pod2",
			     .labels = labels,
			     .n_labels = i % 4,
			     .annotations = annotations,
			     .n_annotations = i % 3};
	if (cache_put_pod(c, &d, &pod, &err))
		fail_msg("%s", err.text);
	pod->stopped = i % 5 == 4;
	return pod;
}

UNUSED static void put_set(struct cache *c, struct iset **field, const char *list)
{
	struct rp_idset ids;
	assert_int_equal(rp_idset_parse(&ids, list, RP_CPUS_MAX), 0);
	txn_put_set(c, field, intern_get(cache_sets(c), rp_ids_of(&ids)));
}

/* Something for container number i, a little different for each variant. */
UNUSED static void decide(struct cache *c, struct ctr *ctr, unsigned i, unsigned variant)
{
	char list[64];
	struct txn *t = txn_begin(c);
	struct decision *d = txn_stage(t, ctr);
	(void)snprintf(list, sizeof list, "%u-%u,8000", i % 1000, i % 1000 + 3 + variant % 5);
	put_set(c, &d->cpus, list);
	(void)snprintf(list, sizeof list, "%u", i % 1000 + 1);
	put_set(c, &d->exclusive, i % 4 == 1 ? list : "");
	if (i % 3)
		put_set(c, &d->mems, variant % 2 ? "0,1023" : "0-1");
	d->shares = 2 + variant;
	d->quota = i % 2 ? -1 : 100000;
	d->period = i % 5 ? 100000 : RP_NOT_SET;
	d->mem_limit = i % 7 ? RP_NOT_SET : INT64_C(1) << 40;
	d->needs = (struct needs){1000 + i, 2000, 3 << 20, i % 2 ? 4 << 20 : 0};
	d->state = i % 5;
	d->policy = i % 6 ? cache_policy_number(c, i % 2 ? "balloons" : "topology-aware") : 0;
	txn_put_blob(&d->rdt_class, i % 2 ? blob_str("gold") : NULL);
	txn_put_blob(&d->blockio_class, i % 3 ? blob_str("") : NULL);
	txn_put_blob(&d->cpu_class, i % 4 ? blob_str("turbo") : NULL);
	txn_put_blob(&d->private_data, i % 2 ? blob_new("\0binary\xff", 8) : NULL);
	txn_put_blob(&d->degraded, i % 5 == 3 ? blob_str("not enough CPUs") : NULL);
	txn_put_blob(&d->data, i % 4 == 2 ? blob_str("SHARED_CPUS=\"0-3\"\n") : NULL);
	txn_commit(t);
	txn_end(t);
	if (i % 3)
		ctr_ack(c, ctr, ctr_diff(ctr));
}

UNUSED static struct ctr *add_ctr(struct cache *c, struct pod *pod, unsigned i)
{
	char id[80], name[80];
	const struct kv labels[] = {{"io.kubernetes.container.name", "main"}, {"a", "b"}};
	struct ctr *ctr = NULL;
	struct err err = ERR_INIT;
	(void)snprintf(id, sizeof id, "%064x", 0xc0000 + i);
	(void)snprintf(name, sizeof name, "main-%u", i);
	struct ctr_desc d = {.id = id,
			     .pod_id = pod->id,
			     .name = name,
			     .cgroups_path = i % 2 ? "kubepods.slice:cri-containerd:abc" : "",
			     .state = RP_STATE_CREATING,
			     .pid = i * 11,
			     .created_ns = i % 4 ? UINT64_C(1700000000123456789) + i : 0,
			     .oom_score_adj = i % 3 ? 900 - (int)i % 800 : RP_NOT_SET,
			     .res = {.amounts = {512, i % 2 ? 50000 : RP_NOT_SET, 100000, 1 << 30},
				     .cpus = i % 2 ? "0-7" : NULL,
				     .mems = i % 5 ? "0" : ""},
			     .labels = labels,
			     .n_labels = i % 3,
			     .annotations = labels,
			     .n_annotations = i % 2};
	if (cache_put_ctr(c, &d, &ctr, &err))
		fail_msg("%s", err.text);
	decide(c, ctr, i, 0);
	return ctr;
}

UNUSED static void fill(struct cache *c, unsigned n_pods, unsigned ctrs_each)
{
	for (unsigned i = 0; i < n_pods; i++) {
		struct pod *pod = add_pod(c, i);
		for (unsigned k = 0; k < ctrs_each; k++)
			(void)add_ctr(c, pod, i * ctrs_each + k);
	}
}

/* ---- comparison ------------------------------------------------------------------------------ */

UNUSED static void same_kvs(const struct kvs *a, const struct kvs *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->size, b->size);
	if (a->size)
		assert_memory_equal(a->data, b->data, a->size);
}

UNUSED static void same_set(const struct iset *a, const struct iset *b)
{
	assert_int_equal(a != NULL, b != NULL);
	if (a)
		assert_string_equal(a->text, b->text);
}

UNUSED static void same_blob(const struct blob *a, const struct blob *b)
{
	assert_int_equal(a != NULL, b != NULL);
	if (!a)
		return;
	assert_int_equal(a->len, b->len);
	assert_memory_equal(a->data, b->data, a->len + 1);
}

UNUSED static void same_values(const struct values *a, const struct values *b)
{
	assert_true(a->shares == b->shares);
	assert_true(a->quota == b->quota);
	assert_true(a->period == b->period);
	assert_true(a->mem_limit == b->mem_limit);
	same_set(a->cpus, b->cpus);
	same_set(a->mems, b->mems);
}

UNUSED static void same_needs(const struct needs *a, const struct needs *b)
{
	assert_true(a->cpu_request == b->cpu_request);
	assert_true(a->cpu_limit == b->cpu_limit);
	assert_true(a->mem_request == b->mem_request);
	assert_true(a->mem_limit == b->mem_limit);
}

UNUSED static void same_decision(const struct cache *ca, const struct decision *a,
				 const struct cache *cb, const struct decision *b)
{
	same_set(a->cpus, b->cpus);
	same_set(a->mems, b->mems);
	same_set(a->exclusive, b->exclusive);
	assert_int_equal(a->group, b->group);
	assert_true(a->shares == b->shares);
	assert_true(a->quota == b->quota);
	assert_true(a->period == b->period);
	assert_true(a->mem_limit == b->mem_limit);
	same_blob(a->rdt_class, b->rdt_class);
	same_blob(a->blockio_class, b->blockio_class);
	same_blob(a->cpu_class, b->cpu_class);
	same_blob(a->private_data, b->private_data);
	same_blob(a->degraded, b->degraded);
	same_blob(a->data, b->data);
	same_needs(&a->needs, &b->needs);
	assert_int_equal(a->state, b->state);
	assert_string_equal(cache_policy_name(ca, a->policy), cache_policy_name(cb, b->policy));
}

UNUSED static void same_pod(const struct pod *a, const struct pod *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->uid, b->uid);
	assert_string_equal(a->ns, b->ns);
	assert_string_equal(a->runtime_handler, b->runtime_handler);
	assert_string_equal(a->cgroup_parent, b->cgroup_parent);
	assert_int_equal(a->qos, b->qos);
	assert_int_equal(a->stopped, b->stopped);
	same_kvs(&a->labels, &b->labels);
	same_kvs(&a->annotations, &b->annotations);
}

UNUSED static void same_ctr(const struct cache *ca, const struct ctr *a, const struct cache *cb,
			    const struct ctr *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->full_name, b->full_name);
	assert_string_equal(a->cgroups_path, b->cgroups_path);
	assert_string_equal(a->pod->id, b->pod->id);
	assert_int_equal(a->flags & ~RP_CTR_RESTORED, b->flags & ~RP_CTR_RESTORED);
	assert_int_equal(a->pid, b->pid);
	assert_true(a->oom_score_adj == b->oom_score_adj);
	assert_true(a->created_ns == b->created_ns);
	same_needs(&a->wanted, &b->wanted);
	same_values(&a->requested, &b->requested);
	same_values(&a->acked, &b->acked);
	same_decision(ca, &a->cur, cb, &b->cur);
	same_kvs(&a->labels, &b->labels);
	same_kvs(&a->annotations, &b->annotations);
}

/* Compares the objects, their order, and the CPU counts derived from them. */
UNUSED static void same_cache(struct cache *a, struct cache *b)
{
	const struct pod *pa = cache_pods(a), *pb = cache_pods(b);
	const struct ctr *ka = cache_ctrs(a), *kb = cache_ctrs(b);
	assert_int_equal(cache_n_pods(a), cache_n_pods(b));
	assert_int_equal(cache_n_ctrs(a), cache_n_ctrs(b));
	for (; pa; pa = pa->hh.next, pb = pb->hh.next)
		same_pod(pa, pb);
	for (; ka; ka = ka->next, kb = kb->next)
		same_ctr(a, ka, b, kb);
	for (unsigned cpu = 0; cpu < RP_CPUS_MAX; cpu++) {
		assert_int_equal(a->cpu_sets[cpu], b->cpu_sets[cpu]);
		assert_int_equal(a->cpu_owner[cpu] != 0, b->cpu_owner[cpu] != 0);
	}
}

/* Opens the store of the place again and compares its content with `want`. */
UNUSED static void expect_restored(const struct place *p, struct cache *want)
{
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *c = new_cache();
	struct store_counts n = restore(s, c);
	assert_int_equal(n.bad, 0);
	assert_int_equal(n.pods, cache_n_pods(want));
	assert_int_equal(n.ctrs, cache_n_ctrs(want));
	assert_int_equal(n.decisions, cache_n_ctrs(want));
	same_cache(want, c);
	(void)store_close(s);
	(void)cache_free(c);
}

/* ---- a store at work ------------------------------------------------------------------------- */

UNUSED static int place_setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	place_init(p);
	*state = p;
	return 0;
}

UNUSED static int place_teardown(void **state)
{
	place_fini(*state);
	free(*state);
	return 0;
}

struct running {
	struct store *store;
	struct cache *cache;
};

UNUSED static struct running run(const struct place *p, unsigned n_pods)
{
	struct running r = {open_at(p, STORE_FRESH), new_cache()};
	(void)restore(r.store, r.cache);
	fill(r.cache, n_pods, 2);
	commit(r.store);
	assert_false(store_pending(r.store));
	return r;
}

/* Closes the store and compares the log with the cache, as it is at this moment. */
UNUSED static void stop(struct running *r, const struct place *p)
{
	(void)store_close(r->store);
	expect_restored(p, r->cache);
	(void)cache_free(r->cache);
}

UNUSED static uint64_t n_records(const struct running *r)
{
	struct store_stats stats;
	store_stats(r->store, &stats);
	return stats.records;
}

UNUSED static void write_file(const struct place *p, const char *name, const char *text,
			      mode_t mode)
{
	char path[512];
	FILE *f = fopen(place_path(p, name, path), "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* A store with a few containers, closed again. */
UNUSED static struct cache *make_store(const struct place *p, unsigned n_pods)
{
	struct store *s = open_at(p, STORE_FRESH);
	struct cache *c = new_cache();
	struct store_counts n = restore(s, c);
	assert_int_equal(n.ctrs, 0);
	fill(c, n_pods, 2);
	commit(s);
	(void)store_close(s);
	return c;
}

UNUSED static unsigned count_bad(const struct place *p)
{
	unsigned n = 0;
	DIR *d = opendir(p->dir);
	for (struct dirent *e; d && (e = readdir(d));)
		n += !strncmp(e->d_name, "store.bad.", 10);
	(void)closedir(d);
	return n;
}

#endif
