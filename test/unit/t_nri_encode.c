/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the runtime: adjustments of a container that is created, and updates of other
 * containers. Each message is packed and parsed again as the runtime does. Linux and NRI use
 * different numbers for the same values. An allocation failure at any point is an error and never
 * yields half of a message.
 */
#include "test/unit/t_oom_arena.h"

#include "test/unit/t_oom.h"

#include <stdio.h>
#include <string.h>

#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/internal.h"
#include "core/nri-rpd/nri/abilities.h"
#include "core/nri-rpd/nri/encode.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ARENA_MAX (1u << 20)
#define TEXT_MAX 2048u

/* ---- messages as text ------------------------------------------------------------------------ */

struct text {
	char s[TEXT_MAX];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	t->n += (size_t)vsnprintf(t->s + t->n, sizeof t->s - t->n, fmt, ap);
	va_end(ap);
	assert_true(t->n < sizeof t->s);
}

static void say_resources(struct text *t, const Nri__LinuxResources *r)
{
	if (!r)
		return;
	const Nri__LinuxCPU *c = r->cpu;
	if (c && c->shares)
		say(t, "shares=%llu ", (unsigned long long)c->shares->value);
	if (c && c->quota)
		say(t, "quota=%lld ", (long long)c->quota->value);
	if (c && c->period)
		say(t, "period=%llu ", (unsigned long long)c->period->value);
	if (c && *c->cpus)
		say(t, "cpus=%s ", c->cpus);
	if (c && *c->mems)
		say(t, "mems=%s ", c->mems);
	if (r->memory && r->memory->limit)
		say(t, "limit=%lld ", (long long)r->memory->limit->value);
	if (r->memory && r->memory->swap)
		say(t, "swap:%lld ", (long long)r->memory->swap->value);
	for (size_t i = 0; i < r->n_hugepage_limits; i++)
		say(t, "huge:%s=%llu ", r->hugepage_limits[i]->page_size,
		    (unsigned long long)r->hugepage_limits[i]->limit);
	if (r->rdt_class)
		say(t, "rdt=%s ", r->rdt_class->value);
	if (r->blockio_class)
		say(t, "blockio=%s ", r->blockio_class->value);
	for (size_t i = 0; i < r->n_unified; i++)
		say(t, "unified:%s=%s ", r->unified[i]->key, r->unified[i]->value);
}

static void say_sched(struct text *t, const Nri__LinuxScheduler *s)
{
	if (!s)
		return;
	say(t, "sched:%d,%d,%d,%llu,%llu,%llu", s->policy, s->priority, s->nice,
	    (unsigned long long)s->runtime, (unsigned long long)s->deadline,
	    (unsigned long long)s->period);
	for (size_t i = 0; i < s->n_flags; i++)
		say(t, "%c%d", i ? '+' : ',', s->flags[i]);
	say(t, " ");
}

static void say_lnx(struct text *t, const Nri__LinuxContainerAdjustment *l)
{
	if (!l)
		return;
	say_resources(t, l->resources);
	say_sched(t, l->scheduler);
	if (l->io_priority)
		say(t, "io:%d,%d ", l->io_priority->class_, l->io_priority->priority);
	if (l->oom_score_adj)
		say(t, "oom:%lld ", (long long)l->oom_score_adj->value);
	if (l->memory_policy) {
		say(t, "mempolicy:%d,%s", l->memory_policy->mode, l->memory_policy->nodes);
		for (size_t i = 0; i < l->memory_policy->n_flags; i++)
			say(t, "%c%d", i ? '+' : ',', l->memory_policy->flags[i]);
		say(t, " ");
	}
}

static void say_mount(struct text *t, const Nri__Mount *m)
{
	say(t, "mount:%s,%s,%s", m->type, m->source, m->destination);
	for (size_t i = 0; i < m->n_options; i++)
		say(t, ",%s", m->options[i]);
	say(t, " ");
}

static void say_device(struct text *t, const Nri__LinuxDevice *d)
{
	say(t, "device:%s,%s,%d,%d", d->path, d->type, (int)d->major, (int)d->minor);
	if (d->file_mode)
		say(t, ",mode=%o", d->file_mode->value);
	if (d->uid)
		say(t, ",uid=%u", d->uid->value);
	if (d->gid)
		say(t, ",gid=%u", d->gid->value);
	say(t, " ");
}

static void say_adjustment(struct text *t, const Nri__ContainerAdjustment *adj)
{
	uint8_t packed[4096];
	size_t n = nri__container_adjustment__pack(adj, packed);
	assert_true(n < sizeof packed);
	Nri__ContainerAdjustment *m = nri__container_adjustment__unpack(NULL, n, packed);
	assert_non_null(m);
	for (size_t i = 0; i < m->n_env; i++)
		say(t, "env:%s=%s ", m->env[i]->key, m->env[i]->value);
	for (size_t i = 0; i < m->n_args; i++)
		say(t, "arg:%s ", m->args[i]);
	for (size_t i = 0; i < m->n_annotations; i++)
		say(t, "note:%s=%s ", m->annotations[i]->key, m->annotations[i]->value);
	for (size_t i = 0; i < m->n_mounts; i++)
		say_mount(t, m->mounts[i]);
	for (size_t i = 0; i < m->n_cdi_devices; i++)
		say(t, "cdi:%s ", m->cdi_devices[i]->name);
	for (size_t i = 0; m->lnx && i < m->lnx->n_devices; i++)
		say_device(t, m->lnx->devices[i]);
	say_lnx(t, m->lnx);
	nri__container_adjustment__free_unpacked(m, NULL);
}

/* ---- adjustments ----------------------------------------------------------------------------- */

static struct iset cpus = {.text = "1-3"}, mems = {.text = "0"};

static struct blob *class_of(const char *name)
{
	static struct {
		struct blob blob;
		char room[32];
	} kept[4];
	static unsigned n;
	struct blob *b = &kept[n++ % COUNT(kept)].blob;
	b->len = (uint32_t)strlen(name);
	(void)memcpy(b->data, name, b->len + 1);
	return b;
}

static struct ctr ctr_with(const char *rdt, const char *blockio)
{
	struct ctr ctr = {.id = (char *)(uintptr_t) "c1"};
	ctr.cur = (struct decision){.shares = 1024,
				    .quota = -1,
				    .period = 100000,
				    .mem_limit = INT64_C(1) << 40,
				    .cpus = &cpus,
				    .mems = &mems,
				    .rdt_class = rdt ? class_of(rdt) : NULL,
				    .blockio_class = blockio ? class_of(blockio) : NULL};
	return ctr;
}

static void expect_adjustment(const struct reply *reply, const char *wanted)
{
	struct text t = {.n = 0};
	bool empty = false;
	struct arena *a = arena_new(4096, ARENA_MAX);
	assert_non_null(a);
	Nri__ContainerAdjustment *adj = encode_adjustment(a, reply, &empty);
	assert_non_null(adj);
	assert_int_equal(empty, !*wanted);
	say_adjustment(&t, adj);
	if (t.n && t.s[t.n - 1] == ' ')
		t.s[t.n - 1] = '\0';
	assert_string_equal(t.s, wanted);
	arena_free(a);
}

/* Checks that the message contains the decided values alone. */
static void test_resources(void **state)
{
	static const struct {
		uint32_t fields;
		const char *wanted;
	} cases[] = {
		{0, ""},
		{DIFF_CPUS, "cpus=1-3"},
		{DIFF_MEMS, "mems=0"},
		{DIFF_SHARES, "shares=1024"},
		{DIFF_QUOTA, "quota=-1"},
		{DIFF_PERIOD, "period=100000"},
		{DIFF_MEM_LIMIT, "limit=1099511627776"},
		{DIFF_CPUS | DIFF_MEMS | DIFF_MEM_LIMIT, "cpus=1-3 mems=0 limit=1099511627776"},
		{DIFF_SHARES | DIFF_QUOTA | DIFF_PERIOD, "shares=1024 quota=-1 period=100000"},
	};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct ctr ctr = ctr_with(NULL, NULL);
		const struct reply reply = {.created = &ctr, .created_fields = cases[i].fields};
		expect_adjustment(&reply, cases[i].wanted);
	}
}

/* Checks that a class that a controller applies itself is not sent to the runtime. */
static void test_classes(void **state)
{
	static const struct {
		const char *rdt, *blockio;
		uint32_t taken;
		const char *wanted;
	} cases[] = {
		{"gold", NULL, 0, "rdt=gold"},
		{NULL, "fast", 0, "blockio=fast"},
		{"gold", "fast", 0, "rdt=gold blockio=fast"},
		{"", NULL, 0, "rdt="},
		{"gold", "fast", RP_TAKES_RDT_CLASS, "blockio=fast"},
		{"gold", "fast", RP_TAKES_BLOCKIO_CLASS, "rdt=gold"},
		{"gold", "fast", RP_TAKES_RDT_CLASS | RP_TAKES_BLOCKIO_CLASS, ""},
	};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct ctr ctr = ctr_with(cases[i].rdt, cases[i].blockio);
		const struct reply reply = {.created = &ctr, .taken = cases[i].taken};
		expect_adjustment(&reply, cases[i].wanted);
	}
}

#define NUM(f, n)                                                                                  \
	{                                                                                          \
		.field = (f), .number = (n)                                                        \
	}
#define TEXT(f, t)                                                                                 \
	{                                                                                          \
		.field = (f), .text = (t)                                                          \
	}
#define PAIR(f, k, t)                                                                              \
	{                                                                                          \
		.field = (f), .key = (k), .text = (t)                                              \
	}

/* Checks the numbers of scheduling policies: Linux counts from 0 (SCHED_OTHER), NRI from 1, and
 * NRI does not define 7 and above. */
static void test_extras(void **state)
{
	static const struct rp_mount bind = {sizeof bind, 1,	  "/srv",
					     "/mnt",	  "bind", "rbind,rslave"},
				     tmp = {sizeof tmp, 0, "tmpfs", "/tmp", "tmpfs", ""};
	static const struct rp_device bare = {.path = "/dev/x",
					      .type = "c",
					      .major = 195,
					      .minor = 255,
					      .uid = RP_OWNER_NOT_SET,
					      .gid = RP_OWNER_NOT_SET},
				      owned = {.path = "/dev/y",
					       .type = "b",
					       .mode = 0640,
					       .uid = 0,
					       .gid = 44};
	static const struct {
		struct extra extras[4];
		const char *wanted;
	} cases[] = {
		{{NUM(RP_F_SCHED_POLICY, 0)}, "sched:1,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, 1)}, "sched:2,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, 2)}, "sched:3,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, 3)}, "sched:4,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, 5)}, "sched:6,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, 6)}, "sched:7,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, 7)}, "sched:0,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, -1)}, "sched:0,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_POLICY, 1), NUM(RP_F_SCHED_PRIORITY, 99)}, "sched:2,99,0,0,0,0"},
		{{NUM(RP_F_NICE, -20)}, "sched:0,0,-20,0,0,0"},
		{{NUM(RP_F_SCHED_RUNTIME, 1000000), NUM(RP_F_SCHED_DEADLINE, 2000000),
		  NUM(RP_F_SCHED_PERIOD, INT64_MAX), NUM(RP_F_SCHED_POLICY, 6)},
		 "sched:7,0,0,1000000,2000000,9223372036854775807"},
		/* SCHED_FLAG_RESET_ON_FORK is 0x01, …_UTIL_CLAMP_MAX 0x40; the bits are numbered */
		{{NUM(RP_F_SCHED_FLAGS, 0x01)}, "sched:0,0,0,0,0,0,0"},
		{{NUM(RP_F_SCHED_FLAGS, 0x42)}, "sched:0,0,0,0,0,0,1+6"},
		{{NUM(RP_F_SCHED_FLAGS, 0x7f)}, "sched:0,0,0,0,0,0,0+1+2+3+4+5+6"},
		{{NUM(RP_F_SCHED_FLAGS, 0x80)}, "sched:0,0,0,0,0,0"},
		/* Linux and NRI use the same numbers here. */
		{{NUM(RP_F_IO_CLASS, 1), NUM(RP_F_IO_PRIORITY, 7)}, "io:1,7"},
		{{NUM(RP_F_IO_CLASS, 3)}, "io:3,0"},
		{{NUM(RP_F_OOM_SCORE_ADJ, -1000)}, "oom:-1000"},
		{{NUM(RP_F_OOM_SCORE_ADJ, 0)}, "oom:0"},
		{{NUM(RP_F_MEMPOLICY_MODE, 2), TEXT(RP_F_MEMPOLICY_NODES, "0-1")},
		 "mempolicy:2,0-1"},
		{{NUM(RP_F_MEMPOLICY_MODE, 3), TEXT(RP_F_MEMPOLICY_NODES, "2"),
		  TEXT(RP_F_MEMPOLICY_FLAGS, "static,numa-balancing")},
		 "mempolicy:3,2,0+2"},
		{{TEXT(RP_F_MEMPOLICY_FLAGS, "relative")}, "mempolicy:0,,1"},
		{{PAIR(RP_F_ENV, "A", "1"), PAIR(RP_F_ENV, "B", "")}, "env:A=1 env:B="},
		{{PAIR(RP_F_ANNOTATION, "x.io/y", "z")}, "note:x.io/y=z"},
		{{PAIR(RP_F_UNIFIED, "memory.high", "5"), PAIR(RP_F_UNIFIED, "io.weight", "max")},
		 "unified:memory.high=5 unified:io.weight=max"},
		{{{.field = EXTRA_MOUNT, .key = "/mnt", .mount = &bind},
		  {.field = EXTRA_MOUNT, .key = "/tmp", .mount = &tmp}},
		 "mount:bind,/srv,/mnt,rbind,rslave,ro mount:tmpfs,tmpfs,/tmp,rw"},
		{{{.field = EXTRA_DEVICE, .key = "/dev/x", .device = &bare},
		  {.field = EXTRA_DEVICE, .key = "/dev/y", .device = &owned}},
		 "device:/dev/x,c,195,255 device:/dev/y,b,0,0,mode=640,uid=0,gid=44"},
		{{PAIR(RP_F_HUGEPAGES, "2MB", "4194304"), PAIR(RP_F_HUGEPAGES, "1GB", "0"),
		  NUM(RP_F_SWAP, -1)},
		 "swap:-1 huge:2MB=4194304 huge:1GB=0"},
		{{{.field = EXTRA_CDI, .key = "x.org/gpu=0", .text = ""}}, "cdi:x.org/gpu=0"},
	};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct ctr ctr = ctr_with(NULL, NULL);
		struct extras x = {.list = (struct extra *)(uintptr_t)cases[i].extras};
		const struct reply reply = {.created = &ctr, .extras = &x};
		while (x.n < 4 && x.list[x.n].field)
			x.n++;
		expect_adjustment(&reply, cases[i].wanted);
	}
}

static void test_args(void **state)
{
	static const char *args[] = {"/bin/db", "--threads", ""};
	struct ctr ctr = ctr_with(NULL, NULL);
	const struct extras x = {.args = args, .n_args = 3};
	struct reply reply = {.created = &ctr, .extras = &x};
	expect_adjustment(&reply, "arg:/bin/db arg:--threads arg:");
}

static void test_data_folder(void **state)
{
	struct ctr ctr = ctr_with(NULL, NULL);
	struct reply reply = {.created = &ctr, .data_dir = true};
	(void)snprintf(reply.data_path, sizeof reply.data_path, "/run/nri-rp/data/c1");
	expect_adjustment(&reply, "mount:bind,/run/nri-rp/data/c1,/.nri-resource-policy,bind,"
				  "rslave,ro");
}

/* ---- updates --------------------------------------------------------------------------------- */

static void say_update(struct text *t, const Nri__ContainerUpdate *u)
{
	uint8_t packed[1024];
	size_t n = nri__container_update__pack(u, packed);
	assert_true(n < sizeof packed);
	Nri__ContainerUpdate *m = nri__container_update__unpack(NULL, n, packed);
	assert_non_null(m);
	say(t, "%s%s: ", m->container_id, m->ignore_failure ? "" : "!");
	say_resources(t, m->lnx->resources);
	nri__container_update__free_unpacked(m, NULL);
}

/* Checks that a reply ignores failures of its updates; failures of a batch are reported. */
static void test_updates(void **state)
{
	struct ctr one = ctr_with("gold", NULL), two = ctr_with(NULL, NULL);
	const struct update list[] = {
		{.ctr = &one, .fields = DIFF_CPUS, .values = ctr_decided(&one)},
		{.ctr = &two, .fields = DIFF_MEMS | DIFF_QUOTA, .values = ctr_decided(&two)}};
	const struct update sent[] = {{.ctr = &one,
				       .fields = DIFF_CPUS | DIFF_MEM_LIMIT,
				       .values = {.mem_limit = 4096, .cpus = &cpus}}};
	struct arena *a = arena_new(4096, ARENA_MAX);
	struct text t = {.n = 0}, batch = {.n = 0};
	two.id = (char *)(uintptr_t) "c2";
	Nri__ContainerUpdate **updates = encode_updates(a, list, 2, true);
	assert_non_null(updates);
	say_update(&t, updates[0]);
	say_update(&t, updates[1]);
	assert_string_equal(t.s, "c1: cpus=1-3 c2: quota=-1 mems=0 ");
	updates = encode_updates(a, sent, 1, false);
	assert_non_null(updates);
	say_update(&batch, updates[0]);
	assert_string_equal(batch.s, "c1!: cpus=1-3 limit=4096 ");
	assert_non_null(encode_updates(a, NULL, 0, true));
	arena_free(a);
}

/* ---- runtime capabilities -------------------------------------------------------------------- */

static void test_abilities(void **state)
{
	static const struct {
		const char *name, *version, *nri;
		uint32_t flags;
	} cases[] = {
		{"containerd", "v1.7.25", "", 3},
		{"containerd", "v1.7.26", "", 3 | RP_RUNTIME_CAN_CDI},
		{"containerd", "v2.0.0", "", 3 | RP_RUNTIME_CAN_CDI},
		{"containerd", "v2.1.4", "", 3 | RP_RUNTIME_CAN_CDI},
		{"containerd", "v2.2.0", "", 3 | RP_RUNTIME_CAN_CDI | RP_RUNTIME_CAN_ARGS},
		{"containerd", "2.2.1+debian", "", 3 | 8 | 16 | 32 | RP_RUNTIME_CAN_RDT},
		{"containerd", "v2.3.0", "v0.12.2", 3 | 8 | 16 | 32 | 128 | RP_RUNTIME_CAN_RDT},
		{"containerd", "unknown", "", 3},
		{"cri-o", "1.35.0", "", 3 | 8 | 16 | 32 | RP_RUNTIME_CAN_RDT},
		{"cri-o", "1.31.4", "", 3},
		{"cri-o", "1.32.0", "", 3 | RP_RUNTIME_CAN_CDI},
		{"another", "9.9.9", "", 3},
		{"nri-rp-bridge/cri", "1.0", "v0.12.2", 3 | RP_RUNTIME_CAN_SWAP},
		{"nri-rp-bridge/cgroups", "1.0", "v0.12.2", RP_RUNTIME_CREATION_IS_LATE},
	};
	for (unsigned i = 0; i < COUNT(cases); i++)
		if (runtime_flags(cases[i].name, cases[i].version, cases[i].nri) != cases[i].flags)
			fail_msg("%s %s", cases[i].name, cases[i].version);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const struct rp_device a_device = {.path = "/dev/x", .type = "c", .mode = 0600};
static struct extra of_each[] = {PAIR(RP_F_ENV, "A", "1"),
				 PAIR(RP_F_ENV, "B", "2"),
				 PAIR(RP_F_ANNOTATION, "x.io/y", "z"),
				 PAIR(RP_F_UNIFIED, "memory.high", "5"),
				 NUM(RP_F_IO_CLASS, 1),
				 NUM(RP_F_OOM_SCORE_ADJ, 5),
				 NUM(RP_F_SCHED_POLICY, 1),
				 NUM(RP_F_SCHED_FLAGS, 3),
				 NUM(RP_F_MEMPOLICY_MODE, 2),
				 TEXT(RP_F_MEMPOLICY_FLAGS, "static"),
				 {.field = EXTRA_DEVICE, .device = &a_device},
				 {.field = EXTRA_CDI, .key = "x.org/gpu=0"}};
static const struct extras all_extras = {.list = of_each, .n = COUNT(of_each)};

static int adjust(void *arg)
{
	struct arena *a = arena_new(4096, ARENA_MAX);
	bool empty;
	const Nri__ContainerAdjustment *adj = a ? encode_adjustment(a, arg, &empty) : NULL;
	OOM_CHECK(!adj || (adj->n_env == 2 && adj->n_annotations == 1 && adj->n_mounts == 1));
	OOM_CHECK(!adj || (adj->n_cdi_devices == 1 && adj->lnx->devices[0]->gid));
	OOM_CHECK(!adj ||
		  (adj->lnx->scheduler->n_flags == 2 && adj->lnx->memory_policy->n_flags == 1));
	OOM_CHECK(!adj || (adj->lnx->resources->cpu && adj->lnx->resources->memory->limit));
	OOM_CHECK(!adj || (adj->lnx->resources->rdt_class && adj->lnx->resources->blockio_class));
	arena_free(a);
	return adj ? 0 : -ENOMEM;
}

static int classes_alone(void *arg)
{
	struct arena *a = arena_new(4096, ARENA_MAX);
	bool empty;
	const Nri__ContainerAdjustment *adj = a ? encode_adjustment(a, arg, &empty) : NULL;
	OOM_CHECK(!adj || adj->lnx->resources->rdt_class);
	arena_free(a);
	return adj ? 0 : -ENOMEM;
}

static int update_two(void *arg)
{
	struct arena *a = arena_new(4096, ARENA_MAX);
	Nri__ContainerUpdate **list = a ? encode_updates(a, arg, 2, true) : NULL;
	OOM_CHECK(!list ||
		  (list[0]->lnx->resources->cpu->quota && list[1]->lnx->resources->memory));
	arena_free(a);
	return list ? 0 : -ENOMEM;
}

static void test_memory_may_end_anywhere(void **state)
{
	struct ctr ctr = ctr_with("gold", "fast");
	struct update list[] = {
		{.ctr = &ctr, .fields = 0x3f, .values = ctr_decided(&ctr)},
		{.ctr = &ctr, .fields = DIFF_MEM_LIMIT, .values = ctr_decided(&ctr)}};
	struct reply all = {.created = &ctr,
			    .created_fields = 0x3f,
			    .extras = &all_extras,
			    .data_dir = true},
		     classes = {.created = &ctr};
	(void)snprintf(all.data_path, sizeof all.data_path, "/run/nri-rp/data/c1");
	oom_each(adjust, &all);
	oom_each(classes_alone, &classes);
	oom_each(update_two, list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resources),   cmocka_unit_test(test_classes),
		cmocka_unit_test(test_extras),	    cmocka_unit_test(test_args),
		cmocka_unit_test(test_data_folder), cmocka_unit_test(test_updates),
		cmocka_unit_test(test_abilities),   cmocka_unit_test(test_memory_may_end_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
