/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Controllers, as the modules that are shipped, while memory ends: each allocation that one makes
 * while containers come, change and go fails once, alone or with some that follow. Nothing crashes,
 * and when memory is back the files are as if it had always been there.
 */
#include "test/unit/ctl_host.h"
#include "test/unit/t_oom_module.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RUNS_MAX 5000u
#define SPAN 4u

struct subject {
	const char *name, *config, *other;
	uint32_t field; /* field of the class */
	const char *classes[2];
	bool measures;
	void (*prepare)(struct ctl_host *t);
	const char *given[3][2]; /* files of each container's cgroup, and their content */
	const char *files[6]; /* files of the machine, or of the containers' cgroups */
};

struct world {
	struct ctl_host *t;
	rp_ctr c[2];
};

static void decide(struct world *w, const struct subject *s, unsigned first)
{
	for (unsigned i = 0; i < COUNT(w->c); i++)
		ctl_decide(w->t, w->c[i], s->field, s->classes[(i + first) % 2]);
}

static void tell(struct world *w)
{
	for (unsigned i = 0; i < COUNT(w->c); i++)
		(void)ctl_update(w->t, w->c[i], RP_CHANGED_CLASS);
	(void)ctl_work(w->t);
}

/* Runs the events of the subject, each refused for lack of memory until memory suffices. */
static void work(struct world *w, const struct subject *s)
{
	/* without a configuration no event is sent */
	for (unsigned i = 0; i <= SPAN && ctl_configure(w->t, s->config); i++)
		assert_true(i < SPAN && *fake_error(ctl_fake(w->t)));
	for (unsigned i = 0; i < COUNT(w->c); i++) {
		(void)ctl_pre_create(w->t, w->c[i]);
		(void)ctl_start(w->t, w->c[i]);
	}
	(void)ctl_work(w->t);
	decide(w, s, 1);
	tell(w);
	if (s->measures)
		ctl_measure(w->t);
	(void)ctl_work(w->t);
	(void)ctl_metrics(w->t);
	(void)ctl_configure(w->t, s->other);
	ctl_sync(w->t);
	(void)ctl_work(w->t);
	rp_ctr brief = ctl_ctr(w->t, &(struct fake_ctr){.name = "brief"}, "91");
	(void)ctl_start(w->t, brief);
	(void)ctl_work(w->t);
	(void)ctl_stop(w->t, brief);
	(void)ctl_work(w->t);
}

/* With memory at hand again, as after the next reload. */
static void put_right(struct world *w, const struct subject *s)
{
	if (ctl_configure(w->t, s->config))
		fail_msg("%s, allocation %u: with memory back: %s", s->name, mem.at,
			 fake_error(ctl_fake(w->t)));
	decide(w, s, 0);
	ctl_sync(w->t);
	(void)ctl_work(w->t);
	tell(w);
	ctl_mend(w->t);
}

static char *image_of(struct world *w, const struct subject *s)
{
	char *all = calloc(1, 1 << 16);
	for (unsigned i = 0; i < COUNT(s->files) && s->files[i]; i++) {
		char path[512];
		bool own = s->files[i][0] != '/';
		for (unsigned k = 0; k < (own ? COUNT(w->c) : 1); k++) {
			(void)snprintf(path, sizeof path, "%s%s%s",
				       own ? ctl_cgroup(w->t, w->c[k], "") : "", own ? "/" : "",
				       s->files[i]);
			char *lines = sorted_lines(ctl_get(w->t, path));
			(void)sprintf(all + strlen(all), "%s %u:\n%s", s->files[i], k, lines);
			free(lines);
		}
	}
	for (unsigned k = 0; k < COUNT(w->c); k++)
		(void)sprintf(all + strlen(all), "report %u: %.1s\n", k, ctl_report(w->t, w->c[k]));
	return all;
}

/* The files in the end; mem.failed: whether there were so many allocations. */
static char *run(const struct rp_module *module, const struct subject *s, unsigned at,
		 unsigned span)
{
	struct world w = {.t = ctl_host_new()};
	if (s->prepare)
		s->prepare(w.t);
	w.c[0] = ctl_ctr(w.t, &(struct fake_ctr){.name = "c"}, "21,22");
	w.c[1] = ctl_ctr(w.t, &(struct fake_ctr){.name = "d"}, "31");
	for (unsigned k = 0; k < COUNT(w.c); k++)
		for (unsigned i = 0; i < COUNT(s->given) && s->given[i][0]; i++) {
			char path[512];
			(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(w.t, w.c[k], ""),
				       s->given[i][0]);
			ctl_put(w.t, path, s->given[i][1]);
		}
	decide(&w, s, 0);
	mem_arm(at, span);
	int32_t r = ctl_open(w.t, module);
	if (!r)
		work(&w, s);
	mem.armed = false;
	if (r)
		assert_int_equal(ctl_open(w.t, module), 0);
	put_right(&w, s);
	char *image = image_of(&w, s);
	ctl_host_free(w.t);
	return image;
}

static void run_all(const struct subject *s)
{
#ifdef SANITIZED
	(void)run;
	(void)mem_load;
	(void)mem_arm;
	skip();
#else
	const struct rp_module *module = mem_load(s->name);
	char *fresh = run(module, s, 0, 1);
	assert_non_null(strstr(fresh, "report 0: 1\nreport 1: 1\n")); /* all is applied */
	for (unsigned span = 1; span <= SPAN; span += SPAN - 1) {
		unsigned at = 0;
		do {
			char *image = run(module, s, ++at, span);
			if (strcmp(image, fresh) != 0)
				fail_msg("%s, allocation %u:\n%s\nnot\n%s", s->name, at, image,
					 fresh);
			free(image);
		} while (mem.failed && at < RUNS_MAX);
		assert_in_range(at, 10, RUNS_MAX - 1);
	}
	free(fresh);
#endif
}

#define R "/sys/fs/resctrl/"
#define PARTITION "partitions: {p: {l3Allocation: 100%, classes: {gold: {l3Allocation: "

static void with_resctrl(struct ctl_host *t)
{
	ctl_resctrl(t, false);
}

static void test_rdt(void **state)
{
	static const struct subject s = {
		.name = "rdt",
		.config = "{monitoring: containers, " PARTITION
			  "80%}, bronze: {l3Allocation: 20%}}}}}",
		.other = "{" PARTITION "20%}, bronze: {l3Allocation: 80%}}}}}",
		.field = RP_F_RDT_CLASS,
		.classes = {"gold", "bronze"},
		.measures = true,
		.prepare = with_resctrl,
		.files = {R "nri-rp.gold/schemata", R "nri-rp.gold/tasks",
			  R "nri-rp.bronze/schemata", R "nri-rp.bronze/tasks"}};
	run_all(&s);
}

static void with_disks(struct ctl_host *t)
{
	static const char *const files[][2] = {
		{"/sys/fs/cgroup/cgroup.controllers", "cpu io memory\n"},
		{"/sys/block/sda/dev", "8:0\n"},
		{"/sys/block/sda/queue/scheduler", "none [bfq]\n"},
		{"/sys/block/sdb/dev", "8:16\n"},
		{"/sys/block/sdb/queue/scheduler", "[none]\n"}};
	ctl_keyed(t);
	for (unsigned i = 0; i < COUNT(files); i++)
		ctl_put(t, files[i][0], files[i][1]);
}

static void test_blkio(void **state)
{
	static const struct subject s = {
		.name = "blkio",
		.config = "{classes: {rich: [{weight: 900}, {devices: [/dev/sda, /dev/sdb], "
			  "throttleReadBps: 9M, weight: 800}], poor: [{weight: 20}, {devices: "
			  "[/dev/sdb], throttleWriteIOPS: 50}]}}",
		.other = "{classes: {rich: [{weight: 500}], poor: [{weight: 50}, {devices: "
			 "[/dev/sda], throttleReadBps: 1M}], more: [{weight: 100}]}}",
		.field = RP_F_BLOCKIO_CLASS,
		.classes = {"rich", "poor"},
		.prepare = with_disks,
		.given = {{"io.max", ""},
			  {"io.weight", "default 100\n"},
			  {"io.bfq.weight", "default 100\n"}},
		.files = {"io.max", "io.weight", "io.bfq.weight"}};
	run_all(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rdt),
		cmocka_unit_test(test_blkio),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
