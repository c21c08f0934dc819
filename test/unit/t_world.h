/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole pipeline in a temporary folder: a made-up machine of 16 CPUs, a configuration, state and
 * run directories, and the policy `puppet`, whose containers carry the scripts of what it is to do
 * with them (test/modules/puppet.c).
 */
#ifndef T_WORLD_H
#define T_WORLD_H

#include <limits.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/log.h"
#include "test/unit/coverage_exit.h"
#include "test/unit/t_topo_tree.h"
#include "core/nri-rpd/pipeline/request/sync.h"

#define PUPPET "policy: puppet\n"

#ifdef SANITIZED
/* Trials are forks that a module may end in the middle of anything: what they hold then is not
 * lost, and looking for it takes long. */
static pid_t world_pid;

__attribute__((constructor)) static void world_note_pid(void)
{
	world_pid = getpid();
}

int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	return getpid() != world_pid;
}
#endif

struct world {
	struct tree tree;
	char conf[96], state[96], run[96];
	char module_dirs[2][PATH_MAX + 16];
	const char *dirs[2];
	struct loop *loop;
	struct loop_timer *timer;
	struct pipeline *p;
	struct err err;
	unsigned n_ready, n_configured, n_synchronized;
	bool timed_out;
	uint32_t hang_limit_ms;
};

static inline void world_ready(void *arg)
{
	((struct world *)arg)->n_ready++;
}

static inline void world_configured(const struct conf *conf, void *arg)
{
	assert_non_null(conf);
	((struct world *)arg)->n_configured++;
}

static inline void world_synchronized(void *arg)
{
	((struct world *)arg)->n_synchronized++;
}

static inline void world_time_out(void *arg)
{
	struct world *w = arg;
	w->timed_out = true;
	loop_stop(w->loop);
}

static inline void world_configure(struct world *w, const char *text)
{
	FILE *f = fopen(w->conf, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline struct pipeline_config world_config(struct world *w)
{
	return (struct pipeline_config){
		.loop = w->loop,
		.config_path = w->conf,
		.host_root = w->tree.dir,
		.state_dir = w->state,
		.run_dir = w->run,
		.module_dirs = w->dirs,
		.n_module_dirs = 2,
		.fixed_log_level = true,
		.hang_limit_ms = w->hang_limit_ms,
		.updates_ready = world_ready,
		.configured = world_configured,
		.synchronized = world_synchronized,
		.arg = w,
	};
}

static inline struct world *world_bare(void)
{
	struct world *w = calloc(1, sizeof *w);
	char build[PATH_MAX];
	assert_non_null(w);
	tree_init(&w->tree);
	tree_machine(&w->tree, &(struct machine){2, 1, 2, 2, 2, 0, 0});
	tree_path(&w->tree, "rp.conf", w->conf, sizeof w->conf);
	tree_path(&w->tree, "state", w->state, sizeof w->state);
	tree_path(&w->tree, "run", w->run, sizeof w->run);
	ssize_t n = readlink("/proc/self/exe", build, sizeof build - 1);
	assert_true(n > 0);
	build[n] = '\0';
	*strrchr(build, '/') = '\0';
	(void)snprintf(w->module_dirs[0], sizeof w->module_dirs[0], "%s/modules", build);
	*strrchr(build, '/') = '\0';
	(void)snprintf(w->module_dirs[1], sizeof w->module_dirs[1], "%s/modules", build);
	w->dirs[0] = w->module_dirs[0];
	w->dirs[1] = w->module_dirs[1];
	w->loop = loop_new();
	assert_non_null(w->loop);
	w->timer = loop_timer_new(w->loop, world_time_out, w);
	assert_non_null(w->timer);
	return w;
}

/* Starts the pipeline. Returns the result of pipeline_new, with its text in w->err. */
static inline int world_start(struct world *w)
{
	const struct pipeline_config config = world_config(w);
	w->err = (struct err)ERR_INIT;
	return pipeline_new(&config, &w->p, &w->err);
}

static inline void world_must_start(struct world *w)
{
	int r = world_start(w);
	if (r)
		fail_msg("%s", err_text(&w->err, r));
}

static inline void world_stop(struct world *w)
{
	w->p = pipeline_free(w->p);
}

static inline struct world *world_new(const char *conf)
{
	struct world *w = world_bare();
	world_configure(w, conf);
	world_must_start(w);
	return w;
}

static inline void world_free(struct world *w)
{
	world_stop(w);
	loop_timer_free(w->timer);
	loop_free(w->loop);
	tree_fini(&w->tree);
	free(w);
}

static inline void world_check_again(void *arg)
{
	loop_stop(((struct world *)arg)->loop);
}

/* Runs the loop until the condition holds. Fails after 150 s: a trial that hangs may take 60 s on a
 * loaded machine. */
static inline void world_until(struct world *w, bool (*holds)(struct world *w, void *arg),
			       void *arg)
{
	struct loop_timer *tick = loop_timer_new(w->loop, world_check_again, w);
	assert_non_null(tick);
	w->timed_out = false;
	assert_int_equal(loop_timer_arm(w->timer, 150000), 0);
	while (!holds(w, arg) && !w->timed_out) {
		assert_int_equal(loop_timer_arm(tick, 5), 0);
		assert_int_equal(loop_run(w->loop), 0);
	}
	loop_timer_disarm(w->timer);
	loop_timer_free(tick);
	if (w->timed_out)
		fail_msg("did not come to be");
}

/* Returns true if an event contains the text. */
static inline bool world_told(struct world *w, const char *part)
{
	const struct event *e = NULL;
	uint64_t seq = 0;
	while ((e = pipeline_event_after(w->p, seq))) {
		if (strstr(e->text, part))
			return true;
		seq = e->seq;
	}
	return false;
}

static inline bool world_is_told(struct world *w, void *part)
{
	return world_told(w, part);
}

/* ---- calls of modules in this process; trials run in other processes ------------------------- */

#define CALLS_MAX 8192

struct calls {
	char text[CALLS_MAX]; /* "NAME CALL ENV; …" */
};

static inline const char *trace_of(struct world *w, struct calls *ret)
{
	char all[CALLS_MAX] = "", *saved = NULL, pid[16];
	size_t len = 0;
	tree_path(&w->tree, "trace", ret->text, sizeof ret->text);
	FILE *f = fopen(ret->text, "re");
	size_t n = f ? fread(all, 1, sizeof all - 1, f) : 0;
	if (f)
		(void)fclose(f);
	all[n] = '\0';
	ret->text[0] = '\0';
	(void)snprintf(pid, sizeof pid, "%d ", (int)getpid());
	for (char *line = strtok_r(all, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved))
		if (strncmp(line, pid, strlen(pid)) == 0)
			len += (size_t)snprintf(ret->text + len, sizeof ret->text - len, "%s; ",
						line + strlen(pid));
	return ret->text;
}

static inline void forget_trace(struct world *w)
{
	char path[PATH_MAX];
	tree_path(&w->tree, "trace", path, sizeof path);
	(void)unlink(path);
}

#define CONF_MAX (2 * PATH_MAX)

/* Replaces each $ by the test's folder. */
static inline const char *in_folder(struct world *w, const char *text, char ret[CONF_MAX])
{
	size_t len = 0;
	for (; *text && len < CONF_MAX - PATH_MAX; text++)
		if (*text == '$')
			len += (size_t)snprintf(ret + len, CONF_MAX - len, "%s", w->tree.dir);
		else
			ret[len++] = *text;
	ret[len] = '\0';
	return ret;
}

/* ---- containers ------------------------------------------------------------------------------ */

/* A container in its own pod: pod default/NAME with id p-NAME, container "c" with id c-NAME (or
 * `id`). */
struct box {
	const char *name, *id, *pod_id;
	const char *alloc, *update, *release, *start, *sync; /* scripts */
	uint32_t state;
	struct res_desc res; /* zeroes are absent */
	uint64_t created_ns;
	const char *cgroups_path, *extra_key, *extra_value;
};

struct box_desc {
	struct pod_desc pod;
	struct ctr_desc ctr;
	struct kv notes[8];
	char pod_id[64], ctr_id[64];
};

static inline int64_t number_or_absent(int64_t n)
{
	return n ? n : RP_NOT_SET;
}

static inline void box_describe(const struct box *b, struct box_desc *d)
{
	const struct kv notes[] = {{"t/do", b->alloc},	      {"t/update", b->update},
				   {"t/release", b->release}, {"t/start", b->start},
				   {"t/sync", b->sync},	      {b->extra_key, b->extra_value}};
	uint32_t n = 0;
	for (unsigned i = 0; i < sizeof notes / sizeof *notes; i++)
		if (notes[i].key && notes[i].value)
			d->notes[n++] = notes[i];
	(void)snprintf(d->pod_id, sizeof d->pod_id, "%s%s", b->pod_id ? "" : "p-",
		       b->pod_id ? b->pod_id : b->name);
	(void)snprintf(d->ctr_id, sizeof d->ctr_id, "%s%s", b->id ? "" : "c-",
		       b->id ? b->id : b->name);
	d->pod = (struct pod_desc){.id = d->pod_id,
				   .name = b->name,
				   .uid = d->pod_id,
				   .ns = "default",
				   .runtime_handler = "",
				   .cgroup_parent = "",
				   .annotations = d->notes,
				   .n_annotations = n};
	d->ctr = (struct ctr_desc){
		.id = d->ctr_id,
		.pod_id = d->pod_id,
		.name = "c",
		.cgroups_path = b->cgroups_path ? b->cgroups_path : "",
		.state = b->state,
		.created_ns = b->created_ns,
		.oom_score_adj = RP_NOT_SET,
		.res = {.amounts = {number_or_absent(b->res.shares), number_or_absent(b->res.quota),
				    number_or_absent(b->res.period),
				    number_or_absent(b->res.mem_limit)},
			.cpus = b->res.cpus,
			.mems = b->res.mems},
	};
}

/* Makes a CreateContainer request up to its reply. The caller calls reply_sent. */
static inline int box_begin(struct world *w, const struct box *b, struct reply *ret)
{
	struct box_desc d;
	w->err = (struct err)ERR_INIT;
	box_describe(b, &d);
	request_begin(w->p, REQ_CREATE);
	return request_create(w->p, &d.pod, &d.ctr, ret, &w->err);
}

static inline int box_create(struct world *w, const struct box *b)
{
	struct reply reply;
	int r = box_begin(w, b, &reply);
	reply_sent(w->p, r ? NULL : &reply, r != 0);
	return r;
}

static inline void box_start(struct world *w, const struct box *b)
{
	struct box_desc d;
	box_describe(b, &d);
	request_begin(w->p, REQ_START);
	request_start(w->p, &d.pod, &d.ctr);
	reply_sent(w->p, NULL, false);
}

static inline struct ctr *box_ctr(struct world *w, const char *name)
{
	char full[128];
	(void)snprintf(full, sizeof full, "default/%s/c", name);
	return cache_ctr_by_name(pipeline_cache(w->p), full);
}

static inline const char *box_cpus(struct world *w, const char *name)
{
	const struct ctr *ctr = box_ctr(w, name);
	return ctr ? ctr->cur.cpus ? ctr->cur.cpus->text : "-" : "?";
}

static inline const char *box_acked(struct world *w, const char *name)
{
	const struct ctr *ctr = box_ctr(w, name);
	return ctr ? ctr->acked.cpus ? ctr->acked.cpus->text : "-" : "?";
}

/* Creates and starts a container. */
static inline void box_run(struct world *w, const struct box *b)
{
	if (box_create(w, b))
		fail_msg("%s", w->err.text);
	box_start(w, b);
	assert_int_equal(box_ctr(w, b->name)->cur.state, RP_STATE_RUNNING);
}

static inline void boxes_begin_sync(struct world *w, const struct box *boxes, unsigned n)
{
	struct box_desc d;
	request_begin(w->p, REQ_SYNCHRONIZE);
	sync_begin(w->p);
	for (unsigned i = 0; i < n; i++) {
		box_describe(&boxes[i], &d);
		sync_pod(w->p, &d.pod);
	}
	for (unsigned i = 0; i < n; i++) {
		box_describe(&boxes[i], &d);
		sync_ctr(w->p, &d.ctr, NULL);
	}
}

/* Synchronizes exactly these containers. Returns the number of updates in the reply. */
static inline unsigned boxes_sync(struct world *w, const struct box *boxes, unsigned n)
{
	struct reply reply;
	boxes_begin_sync(w, boxes, n);
	sync_end(w->p, &reply);
	unsigned updates = reply.n_updates;
	reply_sent(w->p, &reply, false);
	return updates;
}

static inline int world_setup(void **state)
{
	log_init("test");
	log_set_level(LOG_ERROR);
	*state = world_new(PUPPET);
	return 0;
}

static inline int world_teardown(void **state)
{
	world_free(*state);
	return 0;
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

static inline int bare_setup(void **state)
{
	log_init("test");
	log_set_level(LOG_ERROR);
	*state = world_bare();
	return 0;
}

#define bare_test(f) cmocka_unit_test_setup_teardown(f, bare_setup, world_teardown)

#endif
