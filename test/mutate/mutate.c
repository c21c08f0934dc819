/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random mutations of what the daemon reads: a session of the runtime, a configuration, a store's
 * log, its records. Each has to end with an answer: no crash, no hang, nothing lost, and a sentence
 * where something is refused.
 *
 *   mutate [-s SEED] [-o DIR] [-k session|conf|store|records] N
 *
 * N of each kind; the input that ended it is in DIR/finding. The same seed gives the same
 * mutations.
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

#include "core/lib/conf/conf.h"
#include "core/lib/util/log.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/str.h"
#include "test/mutate/mutate.h"
#include "test/mutate/record.h"
#include "core/lib/util/clock.h"

#define HANG_S 20

extern const struct rp_module rp_module_1;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct mutating mutating;

#if defined(SANITIZED)
void __sanitizer_set_death_callback(void (*fn)(void));
#endif

static void keep_input(void)
{
	char path[512];
	if (!mutating.input) {
		fprintf(stderr, "mutate: number %lu, its file is in %s\n", mutating.n,
			mutating.work);
		return;
	}
	(void)snprintf(path, sizeof path, "%s/finding", mutating.folder);
	FILE *f = fopen(path, "wb");
	if (f) {
		(void)fwrite(mutating.input, 1, mutating.size, f);
		(void)fclose(f);
	}
	fprintf(stderr, "mutate: number %lu, input in %s\n", mutating.n, path);
}

static void on_signal(int signo)
{
	fprintf(stderr, "mutate: %s\n", signo == SIGALRM ? "hangs" : "crashed");
	keep_input();
	_exit(3);
}

void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "mutate: %s\n", what);
	keep_input();
	exit(3);
}

/* ---- mutations ------------------------------------------------------------------------------- */

uint64_t draw(uint64_t n)
{
	mutating.random ^= mutating.random << 13;
	mutating.random ^= mutating.random >> 7;
	mutating.random ^= mutating.random << 17;
	return n ? (mutating.random >> 11) % n : 0;
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

void mutate_some(struct buf *b)
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
	case 2: /* method of another message */
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

/* ---- kinds ----------------------------------------------------------------------------------- */

static void try_session(const struct session *from)
{
	static struct session s;
	struct buf bytes = BUF_INIT;
	session_copy(&s, from);
	bool raw = draw(4) == 0;
	for (uint64_t k = 1 + draw(5); k && !raw && s.n; k--)
		mutate_messages(&s);
	session_encode(&s, &bytes);
	if (raw)
		mutate_some(&bytes);
	mutating.input = buf_bytes(&bytes);
	mutating.size = buf_len(&bytes);
	(void)LLVMFuzzerTestOneInput(mutating.input, mutating.size);
	session_fini(&s);
	buf_fini(&bytes);
}

static enum conf_found find_schema(void *ctx, const char *module, const struct rp_schema **ret)
{
	*ret = NULL;
	if (strcmp(module, rp_module_1.name) != 0)
		return CONF_NO_MODULE;
	*ret = rp_module_1.service(NULL, RP_SCHEMA_1);
	return CONF_SCHEMA;
}

static const char *find_kind(void *ctx, const char *kind)
{
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
	"strict: false\n"
	"---\n"
	"apiVersion: config.nri/v1alpha1\n"
	"kind: StaticPolicy\n"
	"spec: {reservedResources: {cpu: \"2\"}}\n";

static void try_conf(bool as_recorded)
{
	const struct conf_schemas schemas = {NULL, NULL, find_schema, find_kind, NULL};
	struct buf text = BUF_INIT;
	struct conf *conf = NULL;
	static struct conf_errors errs;
	struct err err = ERR_INIT;
	(void)buf_add_str(&text, conf_text_recorded);
	if (!as_recorded)
		mutate_some(&text);
	mutating.input = buf_bytes(&text);
	mutating.size = buf_len(&text);
	const struct conf_source source = {
		.name = "rp.conf", .text = (const char *)mutating.input, .len = mutating.size};
	conf_errors_init(&errs);
	int r = conf_parse(&source, 1, &schemas, &conf, &errs);
	if (r) {
		(void)conf_errors_to_err(&errs, r, &err);
		check(!as_recorded, err.text);
		check(strstr(err.text, "rp.conf") != NULL,
		      "a configuration is refused without a place");
		check(utf8_valid(err.text, strlen(err.text)), "the reason is no text");
		mutating.refused++;
	} else {
		struct buf shown = BUF_INIT;
		check(conf_core(conf)->policy != NULL, "a configuration without a policy");
		check(conf_show(conf, 0, &shown) == 0, "a configuration cannot be shown");
		buf_fini(&shown);
		mutating.accepted++;
	}
	conf_free(conf);
	buf_fini(&text);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static struct session recorded;
static unsigned long n_tried;

static void next_session(void)
{
	try_session(&recorded);
	mutating.accepted++;
}

static void next_conf(void)
{
	try_conf(mutating.n == 0);
}

static const struct kind {
	const char *name;
	void (*try)(void);
} kinds[] = {{"session", next_session},
	     {"conf", next_conf},
	     {"store", try_store},
	     {"records", try_records}};

static void run(const struct kind *kind, unsigned long n)
{
	uint64_t began = clock_ms();
	mutating.refused = mutating.accepted = 0;
	for (mutating.n = 0; mutating.n < n; mutating.n++) {
		(void)alarm(HANG_S);
		mutating.input = NULL;
		kind->try();
	}
	(void)alarm(0);
	n_tried += n;
	printf("%s: %lu mutations in %.1f s, %lu accepted, %lu refused\n", kind->name, n,
	       (double)(clock_ms() - began) / 1000, mutating.accepted, mutating.refused);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	int opt;
	mutating.random = 1;
	mutating.folder = ".";
	while ((opt = getopt(argc, argv, "s:o:k:")) != -1) {
		if (opt == 's')
			mutating.random = strtoull(optarg, NULL, 10) | 1;
		else if (opt == 'o')
			mutating.folder = optarg;
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
	(void)snprintf(mutating.work, sizeof mutating.work, "%s/mutate.XXXXXX",
		       access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(mutating.work))
		return 1;
	session_record(&recorded);
	stores_record();
	unsigned long n = strtoul(argv[optind], NULL, 10);
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!only || strcmp(only, kinds[i].name) == 0)
			run(&kinds[i], n);
	session_fini(&recorded);
	stores_fini();
	(void)nftw(mutating.work, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return n_tried || !n ? 0 : 2;
}
