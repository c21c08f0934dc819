/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random mutations of what the daemon reads: a session of the runtime, a configuration, a store. Each has to end with an answer: no crash,
 * no hang, nothing lost, and a sentence where something is refused.
 *
 *   mutate [-s SEED] [-o DIR] [-k session|conf|store] N
 *
 * N of each kind, but of stores, each of which takes two processes, STORES_MAX at most; the input that ended it is in DIR/finding. The same seed gives the same mutations.
 */
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nri-rp/config.h>
#include <nri-rp/module.h>

#include "core/cache/store.h"
#include "core/conf/conf.h"
#include "core/util/fs.h"
#include "core/util/log.h"
#include "core/util/loop.h"
#include "core/util/str.h"
#include "test/mutate/record.h"

#define HANG_S 20
#define STORES_MAX 2000u

extern const struct rp_module rp_module_1;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	uint64_t random;
	const char *folder; /* for findings */
	char work[64];
	const uint8_t *input;
	size_t size;
	unsigned long n, refused, accepted;
} state;

#if defined(SANITIZED)
void __sanitizer_set_death_callback(void (*fn)(void));
#endif

static void keep_input(void)
{
	char path[512];
	(void)snprintf(path, sizeof path, "%s/finding", state.folder);
	FILE *f = fopen(path, "wb");
	if (f) {
		(void)fwrite(state.input, 1, state.size, f);
		(void)fclose(f);
	}
	fprintf(stderr, "mutate: number %lu, input in %s\n", state.n, path);
}

static void on_signal(int signo)
{
	fprintf(stderr, "mutate: %s\n", signo == SIGALRM ? "hangs" : "crashed");
	keep_input();
	_exit(3);
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "mutate: %s\n", what);
	keep_input();
	exit(3);
}

/* ---- mutations --------------------------------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t n)
{
	state.random ^= state.random << 13;
	state.random ^= state.random >> 7;
	state.random ^= state.random << 17;
	return n ? (state.random >> 11) % n : 0;
}

static const uint64_t odd_numbers[] = {
	0,	    1,		0x7f,	    0x80,	0xff,	   0x7fff,	     0xffff,
	0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63};

static void mutate_bytes(struct buf *b)
{
	size_t n = buf_len(b), at = draw(n), len = 1 + draw(16);
	uint8_t *p = (uint8_t *)(uintptr_t)buf_bytes(b), copy[16];
	uint64_t number = odd_numbers[draw(sizeof odd_numbers / sizeof *odd_numbers)];
	if (!n)
		return;
	if (len > n - at)
		len = n - at;
	switch (draw(6)) {
	case 0:
		p[at] ^= (uint8_t)(1u << draw(8));
		break;
	case 1:
		p[at] = (uint8_t)draw(256);
		break;
	case 2:
		memcpy(p + at, &number, len < 8 ? len : 8);
		break;
	case 3: /* taken out */
		memmove(p + at, p + at + len, n - at - len);
		b->end -= len;
		break;
	case 4: /* twice */
		memcpy(copy, p + at, len);
		if (buf_add(b, copy, len) == 0) {
			p = (uint8_t *)(uintptr_t)buf_bytes(b);
			memmove(p + at + len, p + at, n - at);
			memcpy(p + at, copy, len);
		}
		break;
	default: /* cut off */
		if (draw(4) == 0)
			b->end -= n - at;
		else
			p[at] = (uint8_t)(p[at] + 1);
	}
}

static void mutate_some(struct buf *b)
{
	for (uint64_t k = 1 + draw(4); k; k--)
		mutate_bytes(b);
}

static void mutate_messages(struct session *s)
{
	unsigned a = (unsigned)draw(s->n), b = (unsigned)draw(s->n);
	struct message swapped = s->messages[a];
	switch (draw(6)) {
	case 0: /* another order */
		s->messages[a] = s->messages[b];
		s->messages[b] = swapped;
		break;
	case 1: /* left out */
		buf_fini(&s->messages[a].payload);
		s->n--;
		memmove(&s->messages[a], &s->messages[a + 1], (s->n - a) * sizeof s->messages[0]);
		break;
	case 2: /* one method with another's message */
		s->messages[a].method = s->messages[b].method;
		s->messages[a].response = s->messages[b].response;
		s->messages[a].conn = s->messages[b].conn;
		break;
	case 3: /* a part of another one behind it */
		if (a != b && buf_len(&s->messages[b].payload))
			(void)buf_add(&s->messages[a].payload, buf_bytes(&s->messages[b].payload),
				      draw(buf_len(&s->messages[b].payload)) + 1);
		break;
	case 4:
		s->messages[a].stream = (uint32_t)odd_numbers[draw(10)];
		break;
	default:
		mutate_some(&s->messages[a].payload);
	}
}

/* ---- kinds ------------------------------------------------------------------------------------------------------------- */

static void try_session(const struct session *recorded)
{
	static struct session s;
	struct buf bytes = BUF_INIT;
	session_copy(&s, recorded);
	bool raw = draw(4) == 0;
	for (uint64_t k = 1 + draw(5); k && !raw && s.n; k--)
		mutate_messages(&s);
	session_encode(&s, &bytes);
	if (raw)
		mutate_some(&bytes);
	state.input = buf_bytes(&bytes);
	state.size = buf_len(&bytes);
	(void)LLVMFuzzerTestOneInput(state.input, state.size);
	session_fini(&s);
	buf_fini(&bytes);
}

static enum conf_found find_schema(void *ctx, const char *module, const struct rp_schema **ret)
{
	(void)ctx;
	*ret = NULL;
	if (strcmp(module, rp_module_1.name) != 0)
		return CONF_NO_MODULE;
	*ret = rp_module_1.service(NULL, RP_SCHEMA_1);
	return CONF_SCHEMA;
}

static const char *find_kind(void *ctx, const char *kind)
{
	(void)ctx;
	return strcmp(kind, "StaticPolicy") == 0 ? "static" : NULL;
}

static const char conf_text_recorded[] =
	"# a comment\n"
	"policy: static\n"
	"controllers: {rdt: optional, cpu: relaxed}\n"
	"modules: {path: [/usr/lib/nri-rp/modules]}\n"
	"runtime: {frontend: nri, socket: /var/run/nri/nri.sock, name: nri-rp, index: 90}\n"
	"cache: {dir: /var/lib/nri-rp}\n"
	"control: {socket: /run/nri-rp/control.sock}\n"
	"metrics: {listen: \"127.0.0.1:8891\"}\n"
	"log: {level: info, debug: [policy, 'cache,nri:off']}\n"
	"instrumentation: {httpEndpoint: ':8891', reportPeriod: 1m30s}\n"
	"static: &here\n"
	"  reservedResources: {cpu: 750m}\n"
	"  availableResources:\n"
	"    cpu: cpuset:0-63\n"
	"  cpuManagerPolicyOptions: {full-pcpus-only: true}\n"
	"copied: *here\n"
	"---\n"
	"apiVersion: config.nri/v1alpha1\n"
	"kind: StaticPolicy\n"
	"spec: {reservedResources: {cpu: \"2\"}}\n";

static void try_conf(bool as_recorded)
{
	const struct conf_schemas schemas = {NULL, NULL, find_schema, find_kind};
	struct buf text = BUF_INIT;
	struct conf *conf = NULL;
	static struct conf_errors errs;
	struct err err = ERR_INIT;
	(void)buf_add_str(&text, conf_text_recorded);
	if (!as_recorded)
		mutate_some(&text);
	state.input = buf_bytes(&text);
	state.size = buf_len(&text);
	const struct conf_source source = {
		.name = "rp.conf", .text = (const char *)state.input, .len = state.size};
	conf_errors_init(&errs);
	int r = conf_parse(&source, 1, &schemas, &conf, &errs);
	if (r) {
		(void)conf_errors_to_err(&errs, r, &err);
		check(!as_recorded, err.text);
		check(strstr(err.text, "rp.conf") != NULL,
		      "a configuration is refused without a place");
		check(utf8_valid(err.text, strlen(err.text)), "the reason is no text");
		state.refused++;
	} else {
		struct buf shown = BUF_INIT;
		check(conf_core(conf)->policy != NULL, "a configuration without a policy");
		check(conf_show(conf, 0, &shown) == 0, "a configuration cannot be shown");
		buf_fini(&shown);
		state.accepted++;
	}
	conf_free(conf);
	buf_fini(&text);
}

static void store_params_of(struct store_params *ret)
{
	*ret = (struct store_params){.dir = state.work,
				     .boot_id = "11111111-2222-3333-4444-555555555555"};
}

/* A store with some pods and containers, as bytes. */
static void record_store(struct buf *ret)
{
	struct store_params params;
	struct store_opening opening;
	struct store_counts counts;
	struct store *s = NULL;
	struct err err = ERR_INIT;
	struct fs_root root;
	char *data;
	size_t len;
	store_params_of(&params);
	struct cache *cache = cache_new(UINT64_C(1) << 30);
	check(cache && store_open(&params, &s, &opening, &err) == 0, "no store");
	check(store_restore(s, cache, &counts, &err) == 0, "no store");
	for (unsigned i = 0; i < 8; i++) {
		char pod_id[16], ctr_id[16];
		struct pod *pod;
		struct ctr *ctr;
		(void)snprintf(pod_id, sizeof pod_id, "pod%u", i);
		(void)snprintf(ctr_id, sizeof ctr_id, "ctr%u", i);
		const struct pod_desc pod_desc = {pod_id,      pod_id, "uid", "default", "",
						  "/kubepods", NULL,   NULL,  0,	 0};
		const struct ctr_desc ctr_desc = {
			.id = ctr_id,
			.pod_id = pod_id,
			.name = "main",
			.cgroups_path = "/kubepods/x",
			.state = 2,
			.oom_score_adj = 100,
			.res = {1024, 100000, 100000, 1 << 20, "0-3", "0"}};
		check(cache_put_pod(cache, &pod_desc, &pod, &err) == 0, err.text);
		check(cache_put_ctr(cache, &ctr_desc, &ctr, &err) == 0, err.text);
		store_put_pod(s, pod);
		store_put_ctr(s, ctr);
	}
	check(store_put_note(s, STORE_NOTE_POLICY, "static", 6) == 0, "no note");
	check(store_put_blob(s, "static", "1.0", "state", 5) == 0, "no blob");
	check(store_commit(s, &err) == 0, err.text);
	store_close(s);
	cache_free(cache);
	check(fs_root_open(&root, state.work, &err) == 0, err.text);
	check(fs_read_all(&root, "store.mdb", 64 << 20, &data, &len) == 0, "no file");
	fs_root_close(&root);
	/* the used pages are in front, the rest is room */
	while (len > 4096 && !memcmp(data + len - 4096, data + len - 4095, 4095) && !data[len - 1])
		len -= 4096;
	check(buf_add(ret, data, len) == 0, "no memory");
	free(data);
}

static void try_store(const struct buf *recorded)
{
	struct store_params params;
	struct store_opening opening;
	struct store_counts counts = {0};
	struct store *s = NULL;
	struct err err = ERR_INIT;
	struct buf bytes = BUF_INIT;
	char path[128];
	(void)buf_add(&bytes, buf_bytes(recorded), buf_len(recorded));
	for (uint64_t k = draw(8); k; k--)
		mutate_some(&bytes);
	mutate_some(&bytes);
	state.input = buf_bytes(&bytes);
	state.size = buf_len(&bytes);
	(void)snprintf(path, sizeof path, "%s/store.mdb", state.work);
	check(fs_replace(path, state.input, state.size, 0600, false, &err) == 0, err.text);
	store_params_of(&params);
	struct cache *cache = cache_new(UINT64_C(1) << 30);
	check(cache && store_open(&params, &s, &opening, &err) == 0,
	      "a damaged store stops the start");
	if (opening.outcome == STORE_FOUND)
		state.accepted++;
	else
		state.refused++;
	check(opening.outcome == STORE_FRESH || opening.why[0],
	      "a store is set aside without a reason");
	check(store_restore(s, cache, &counts, &err) == 0, "a damaged store is not left out");
	check(counts.ctrs <= 64 && counts.pods <= 64, "a damaged store grows");
	check(store_commit(s, &err) == 0, err.text);
	store_close(s);
	cache_free(cache);
	buf_fini(&bytes);
}

/* ---- all of it --------------------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void run(const char *kind, unsigned long n, const struct session *session,
		const struct buf *store)
{
	uint64_t began = clock_ms();
	state.refused = state.accepted = 0;
	for (state.n = 0; state.n < n; state.n++) {
		(void)alarm(HANG_S);
		if (*kind == 's' && kind[1] == 'e')
			try_session(session);
		else if (*kind == 'c')
			try_conf(state.n == 0);
		else
			try_store(store);
	}
	(void)alarm(0);
	printf("%s: %lu mutations in %.1f s, %lu accepted, %lu refused\n", kind, n,
	       (double)(clock_ms() - began) / 1000,
	       *kind == 's' && kind[1] == 'e' ? n : state.accepted, state.refused);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"session", "conf", "store"};
	const char *only = NULL;
	struct session session;
	struct buf store = BUF_INIT;
	int opt;
	state.random = 1;
	state.folder = ".";
	while ((opt = getopt(argc, argv, "s:o:k:")) != -1) {
		if (opt == 's')
			state.random = strtoull(optarg, NULL, 10) | 1;
		else if (opt == 'o')
			state.folder = optarg;
		else if (opt == 'k')
			only = optarg;
		else
			return 2;
	}
	if (optind != argc - 1)
		return 2;
	log_init("mutate");
	log_set_level(LOG_ERROR - 1);
	(void)signal(SIGALRM, on_signal);
#if defined(SANITIZED)
	__sanitizer_set_death_callback(keep_input);
#else
	(void)signal(SIGSEGV, on_signal);
	(void)signal(SIGABRT, on_signal);
#endif
	(void)snprintf(state.work, sizeof state.work, "%s/mutate.XXXXXX",
		       access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(state.work))
		return 1;
	session_record(&session);
	record_store(&store);
	unsigned long n = strtoul(argv[optind], NULL, 10);
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!only || strcmp(only, kinds[i]) == 0)
			run(kinds[i], i == 2 && n > STORES_MAX ? STORES_MAX : n, &session, &store);
	session_fini(&session);
	buf_fini(&store);
	(void)nftw(state.work, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
