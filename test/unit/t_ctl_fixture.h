/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real pipeline on a made-up machine (two packages, two nodes, four cores of two threads each), a
 * control socket, and a client in a thread of its own while the loop runs.
 */
#ifndef T_CTL_FIXTURE_H
#define T_CTL_FIXTURE_H

#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>

#include "t_topo_tree.h"

#include <jansson.h>
#include <nri-rp/cache.h>

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpctl/cli.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/client.h"
#include "core/lib/wire/sock.h"
#include "proto/control.pb-c.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/control/server.h"
#include "core/nri-rpd/pipeline/request/sync.h"

#define FIXTURE_LIMIT_MS 30000u

struct fixture {
	struct tree tree;
	char dir[32];
	char socket[96], config[96], state[96], run[96];
	char modules[PATH_MAX];
	struct loop *loop;
	struct pipeline *pipeline;
	struct ctl *ctl;
	struct loop_timer *limit;
	unsigned n_pods;
};

static inline void fixture_tree(struct fixture *f)
{
	struct tree *t = &f->tree;
	tree_put(t, CPU "/online", "0-7\n");
	tree_put(t, CPU "/present", "0-8\n");
	tree_put(t, CPU "/possible", "0-8\n");
	for (unsigned c = 0; c < 8; c++) {
		char siblings[16];
		(void)snprintf(siblings, sizeof siblings, "%u-%u", c & ~1u, c | 1u);
		tree_put_cpu(t, c, "topology/physical_package_id", "%u", c / 4);
		tree_put_cpu(t, c, "topology/core_id", "%u", c / 2);
		tree_put_cpu(t, c, "topology/die_id", "0");
		tree_put_cpu(t, c, "topology/thread_siblings_list", "%s", siblings);
		tree_put_cpu(t, c, "topology/core_cpus_list", "%s", siblings);
	}
	tree_put(t, NODE "/online", "0-1\n");
	for (unsigned n = 0; n < 2; n++) {
		char path[96];
		(void)snprintf(path, sizeof path, NODE "/node%u/cpulist", n);
		tree_put(t, path, "%u-%u\n", 4 * n, 4 * n + 3);
		(void)snprintf(path, sizeof path, NODE "/node%u/meminfo", n);
		tree_put(t, path, "Node %u MemTotal: 1048576 kB\nNode %u MemFree: 1000 kB\n", n, n);
		(void)snprintf(path, sizeof path, NODE "/node%u/distance", n);
		tree_put(t, path, n ? "21 10\n" : "10 21\n");
	}
	tree_put(t, NODE "/has_memory", "0-1\n");
	tree_put(t, NODE "/has_normal_memory", "0-1\n");
	tree_put(t, "proc/meminfo", "MemTotal: 2097152 kB\n");
}

static inline void fixture_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline void fixture_time_out(void *arg)
{
	fail_msg("the loop did not end in time");
}

/* `modules`: below the build folder, "modules" or "test/modules". */
static inline void fixture_init(struct fixture *f, const char *modules)
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	assert_true(n > 0);
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	*strrchr(exe, '/') = '\0';
	*f = (struct fixture){.n_pods = 0};
	assert_true(snprintf(f->modules, sizeof f->modules, "%s/%s", exe, modules) > 0);
	strcpy(f->dir, "/tmp/t_ctl-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->tree.dir, sizeof f->tree.dir, "%s/root", f->dir);
	assert_int_equal(mkdir(f->tree.dir, 0755), 0);
	(void)snprintf(f->socket, sizeof f->socket, "%s/run/control.sock", f->dir);
	(void)snprintf(f->config, sizeof f->config, "%s/rp.conf", f->dir);
	(void)snprintf(f->state, sizeof f->state, "%s/state", f->dir);
	(void)snprintf(f->run, sizeof f->run, "%s/run", f->dir);
	fixture_tree(f);
	log_init("t_ctl");
	log_set_level(LOG_ERROR);
	f->loop = loop_new();
	assert_non_null(f->loop);
	f->limit = loop_timer_new(f->loop, fixture_time_out, f);
}

static inline void fixture_start(struct fixture *f, const char *config)
{
	struct err err = ERR_INIT;
	const char *const dirs[] = {f->modules};
	fixture_write(f->config, config);
	const struct pipeline_config pc = {.loop = f->loop,
					   .config_path = f->config,
					   .host_root = f->tree.dir,
					   .state_dir = f->state,
					   .run_dir = f->run,
					   .module_dirs = dirs,
					   .n_module_dirs = 1,
					   .fixed_log_level = true};
	if (pipeline_new(&pc, &f->pipeline, &err))
		fail_msg("%s", err.text);
	if (ctl_new(f->loop, f->pipeline, f->socket, &f->ctl, &err))
		fail_msg("%s", err.text);
}

/* As the front end does it. */
static inline void fixture_connect(struct fixture *f)
{
	struct runtime_state *rt = pipeline_runtime(f->pipeline);
	struct reply reply;
	rt->connected = true;
	rt->connects++;
	rt->request_timeout_ms = 2000;
	rt->connected_ns = clock_wall_ns();
	strcpy(rt->facts.name, "containerd");
	strcpy(rt->facts.version, "v2.0.0");
	strcpy(rt->nri_version, "0.11");
	request_begin(f->pipeline, REQ_SYNCHRONIZE);
	sync_begin(f->pipeline);
	sync_end(f->pipeline, &reply);
	rt->synchronized = true;
	reply_sent(f->pipeline, &reply, false);
}

static inline void fixture_fini(struct fixture *f)
{
	f->ctl = ctl_free(f->ctl);
	f->pipeline = pipeline_free(f->pipeline);
	loop_timer_free(f->limit);
	f->loop = loop_free(f->loop);
	(void)nftw(f->dir, tree_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* A pod NAME with one container c0, guaranteed with `mcpu` of CPU; 0: best effort. Returns
 * request_create's result. */
static inline int fixture_create(struct fixture *f, const char *name, int64_t mcpu,
				 const struct kv *annotations, uint32_t n_annotations)
{
	char pod_id[64], ctr_id[64];
	struct err err = ERR_INIT;
	struct reply reply;
	(void)snprintf(pod_id, sizeof pod_id, "pod%u", f->n_pods);
	(void)snprintf(ctr_id, sizeof ctr_id, "%04x%s", f->n_pods++, "cafe");
	const struct pod_desc pod = {.id = pod_id,
				     .name = name,
				     .uid = pod_id,
				     .ns = "default",
				     .runtime_handler = "",
				     .cgroup_parent =
					     mcpu ? "/kubepods/podx" : "/kubepods/besteffort/podx",
				     .annotations = annotations,
				     .n_annotations = n_annotations};
	struct ctr_desc ctr = {.id = ctr_id,
			       .pod_id = pod_id,
			       .name = "c0",
			       .cgroups_path = "/kubepods/podx/ctr",
			       .state = RP_STATE_CREATING,
			       .oom_score_adj = mcpu ? -997 : 1000,
			       .res = {.amounts = CPU_AMOUNTS_NONE}};
	if (mcpu)
		ctr.res = (struct res_desc){
			.amounts = {mcpu * 1024 / 1000, mcpu * 100, 100000, 64 << 20}};
	else
		ctr.res.shares = 2;
	request_begin(f->pipeline, REQ_RUN_POD);
	assert_int_equal(request_run_pod(f->pipeline, &pod, &err), 0);
	reply_sent(f->pipeline, NULL, false);
	request_begin(f->pipeline, REQ_CREATE);
	int r = request_create(f->pipeline, &pod, &ctr, &reply, &err);
	reply_sent(f->pipeline, r ? NULL : &reply, r != 0);
	if (r)
		return r;
	request_begin(f->pipeline, REQ_START);
	ctr.state = RP_STATE_RUNNING;
	request_start(f->pipeline, &pod, &ctr);
	reply_sent(f->pipeline, NULL, false);
	return 0;
}

static inline void fixture_stop(struct fixture *f, const char *name)
{
	struct err err = ERR_INIT;
	struct reply reply;
	const struct ctr *ctr = cache_ctr_find(pipeline_cache(f->pipeline), name, &err);
	assert_non_null(ctr);
	const struct pod_desc pod = {
		.id = ctr->pod->id, .name = ctr->pod->name, .ns = ctr->pod->ns};
	const struct ctr_desc desc = {.id = ctr->id,
				      .pod_id = ctr->pod->id,
				      .name = ctr->name,
				      .res = {.amounts = CPU_AMOUNTS_NONE}};
	request_begin(f->pipeline, REQ_STOP);
	request_stop(f->pipeline, &pod, &desc, &reply);
	reply_sent(f->pipeline, &reply, false);
}

/* ---- the client ------------------------------------------------------------------------------ */

struct asking {
	struct fixture *f;
	struct question req;
	void (*fn)(struct asking *a); /* instead of one request */
	void *arg;
	struct answer answer;
	int result;
	struct err err;
};

static inline void asking_over(void *arg)
{
	loop_stop(((struct asking *)arg)->f->loop);
}

static inline void *asking_thread(void *arg)
{
	struct asking *a = arg;
	struct link *l;
	if (a->fn) {
		a->fn(a);
	} else {
		a->result = link_open(a->f->socket, &l, &a->err);
		if (!a->result) {
			a->result = link_call(l, &a->req, &a->answer, &a->err);
			link_close(l);
		}
	}
	(void)loop_post(a->f->loop, asking_over, a);
	return NULL;
}

/* Runs the loop until the thread is through. */
static inline void fixture_run(struct asking *a)
{
	pthread_t thread;
	(void)loop_timer_arm(a->f->limit, FIXTURE_LIMIT_MS);
	assert_int_equal(pthread_create(&thread, NULL, asking_thread, a), 0);
	assert_int_equal(loop_run(a->f->loop), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	loop_timer_disarm(a->f->limit);
}

/* The document, to be released with json_decref. */
static inline json_t *fixture_ask(struct fixture *f, const struct question *req, int *ret_exit)
{
	struct asking a = {.f = f, .req = *req, .err = ERR_INIT};
	fixture_run(&a);
	if (a.result)
		fail_msg("%s: %s", req->method, a.err.text);
	json_t *doc = json_incref(a.answer.doc);
	*ret_exit = a.answer.exit;
	answer_fini(&a.answer);
	return doc;
}

static inline json_t *fixture_get(struct fixture *f, const char *method, const char *arg, int exit)
{
	const char *const args[] = {arg};
	const struct question req = {.method = method, .args = args, .n_args = arg != NULL};
	int found;
	json_t *doc = fixture_ask(f, &req, &found);
	if (found != exit) {
		char *text = json_dumps(doc, JSON_INDENT(1));
		fail_msg("%s: exit %d instead of %d: %s", method, found, exit, text);
	}
	return doc;
}

#endif
