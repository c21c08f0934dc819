/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that does what it is told: the script of an annotation for each call about a container
 * ("t/do", "t/update", "t/release", "t/start", "t/sync"), and keys of its section for the calls
 * about none. A script is a run of `;`-separated statements:
 *
 *   cpus LIST, mems LIST, excl LIST          set_cpus …
 *   int FIELD VALUE, text FIELD VALUE        set_int, set_text, by number
 *   pair FIELD KEY VALUE, data KEY VALUE     set_pair, set_data
 *   mount SOURCE AT OPTIONS, device PATH TYPE MAJOR MINOR, cdi NAME
 *   private TEXT, degraded TEXT, note TEXT
 *   asked                                    the CPU shares that the runtime asked for
 *   warn TEXT                                to the log
 *   on NAME                                  what follows is about the container of that name
 *   arm COOKIE MS                            a timer
 *   work RESULT                              a job whose done() logs
 *   fail CODE TEXT, quiet CODE               ends the call with an error, with or without a word
 *   once PATH                                an error if the file is there; makes it
 *   late PATH                                an error if it is not there; makes it
 *   killed PATH                              SIGKILL for the process if it is not there; makes it
 *   usage NAME                               notes what was measured: cpu, throttled, memory,
 *                                            waits, traffic
 *   crash, hang, exit
 *   rob, replace                             closes, or replaces, all descriptors of the process
 *   deaf, stop                               hangs with all signals blocked; stops the process
 *   bomb                                     a thread that crashes a little later
 *
 * The script "t/pressure" of a container is for RP_EVENT_PRESSURE; the key "rebalance" of the
 * section for RP_EVENT_REBALANCE, the key "rolledBack" for rolled_back().
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/host.h>
#include <nri-rp/policy.h>

#define SCRIPT_MAX 2048

struct rp_plan {
	char sync[SCRIPT_MAX], timer[SCRIPT_MAX], topology[SCRIPT_MAX], rebalance[SCRIPT_MAX],
		rolled_back[SCRIPT_MAX];
	int64_t resync, load;
};

struct rp_instance {
	const struct rp_host *host;
	const struct rp_host_cache *cache;
	const struct rp_host_config *config;
	const struct rp_host_explain *explain;
	const struct rp_host_timer *timer;
	const struct rp_host_work *work;
	const struct rp_host_usage *usage;
	struct rp_plan plan;
	char state[64];
};

static int32_t job(void *arg)
{
	return (int32_t)(intptr_t)arg;
}

static void wait_for_ever(void)
{
	static volatile int for_ever = 1;
	while (for_ever)
		;
}

static void *bomb(void *arg)
{
	(void)usleep(50000);
	*(volatile int *)24 = 1;
	return NULL;
}

/* Runs statements that harm the process rather than the call. */
static void harm(const char *verb)
{
	pthread_t thread;
	sigset_t all;
	int null = strcmp(verb, "replace") == 0 ? open("/dev/null", O_RDWR) : -1;
	for (int fd = 3; fd < 256 && null >= 0; fd++)
		(void)dup2(null, fd);
	for (int fd = 0; fd < 1000 && strcmp(verb, "rob") == 0; fd++)
		(void)close(fd);
	if (strcmp(verb, "bomb") == 0)
		(void)pthread_create(&thread, NULL, bomb, NULL);
	if (strcmp(verb, "stop") == 0)
		(void)raise(SIGSTOP);
	if (strcmp(verb, "deaf") == 0) {
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
		wait_for_ever();
	}
}

static bool is_harm(const char *verb)
{
	static const char *const verbs[] = {"rob", "replace", "deaf", "stop", "bomb"};
	for (unsigned i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(verb, verbs[i]) == 0)
			return true;
	return false;
}

static rp_ctr named(struct rp_instance *inst, const char *name)
{
	rp_ctr all[256];
	uint32_t n = inst->cache->list(inst->host->ctx, RP_ORDER_CREATED, all, 256);
	for (uint32_t i = 0; i < n && i < 256; i++) {
		struct rp_ctr_info info = {.size = sizeof info};
		if (inst->cache->get_ctr(inst->host->ctx, all[i], &info) == 0 &&
		    strcmp(info.name, name) == 0)
			return all[i];
	}
	return 0;
}

static int32_t set_ids(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *verb,
		       const char *list)
{
	struct rp_idset set;
	void *ctx = inst->host->ctx;
	if (rp_idset_parse(&set, list, RP_CPUS_MAX))
		return inst->host->fail(ctx, -RP_EINVAL, "puppet: no list");
	if (*verb == 'c')
		return inst->cache->set_cpus(ctx, txn, ctr, rp_ids_of(&set));
	if (*verb == 'm')
		return inst->cache->set_mems(ctx, txn, ctr, rp_ids_of(&set));
	return inst->cache->set_exclusive(ctx, txn, ctr, rp_ids_of(&set));
}

static int32_t note_usage(struct rp_instance *inst, rp_ctr ctr)
{
	struct rp_usage u = {.size = sizeof u};
	char text[256];
	int32_t r = inst->usage->get(inst->host->ctx, ctr, &u);
	if (r)
		return inst->host->fail(inst->host->ctx, r, "puppet: not measured");
	snprintf(text, sizeof text,
		 "lacks %u, cpu %lld, throttled %lld, memory %lld, waits %lld %lld %lld, io %lld "
		 "%lld, llc "
		 "%lld, traffic %lld",
		 u.pressure, (long long)u.cpu, (long long)u.throttled, (long long)u.memory,
		 (long long)u.cpu_wait, (long long)u.memory_wait, (long long)u.io_wait,
		 (long long)u.io_read, (long long)u.io_written, (long long)u.llc,
		 (long long)u.traffic);
	inst->explain->note(inst->host->ctx, ctr, text);
	return 0;
}

static int32_t dangerous(struct rp_instance *inst, const char *verb, char *rest)
{
	char *text = NULL;
	long code = strtol(rest, &text, 10);
	bool kills = strcmp(verb, "killed") == 0;
	if (kills || strcmp(verb, "once") == 0 || strcmp(verb, "late") == 0) {
		FILE *f = fopen(rest, "wx");
		if (f)
			fclose(f);
		if (kills)
			return f ? raise(SIGKILL) : 0;
		if (!f == (*verb == 'o'))
			return inst->host->fail(inst->host->ctx, -RP_EBUSY,
						f ? "not yet" : "not twice");
		return 0;
	}
	if (is_harm(verb)) {
		harm(verb);
		return 0;
	}
	if (strcmp(verb, "crash") == 0)
		*(volatile int *)16 = 1;
	if (strcmp(verb, "hang") == 0)
		wait_for_ever();
	if (strcmp(verb, "exit") == 0)
		exit(3);
	if (strcmp(verb, "quiet") == 0)
		return (int32_t)-code;
	if (strcmp(verb, "fail") == 0)
		return inst->host->fail(inst->host->ctx, (int32_t)-code,
					*text == ' ' ? text + 1 : text);
	return inst->host->fail(inst->host->ctx, -RP_EINVAL, "puppet: no such statement");
}

/* Runs statements on mounts and devices. */
static int32_t equip(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *verb, char *rest)
{
	const struct rp_host_cache *c = inst->cache;
	void *ctx = inst->host->ctx;
	char a[64], b[64], options[64];
	long long major, minor;
	if (strcmp(verb, "cdi") == 0)
		return c->add_cdi(ctx, txn, ctr, rest);
	if (strcmp(verb, "mount") == 0 && sscanf(rest, "%63s %63s %63s", a, b, options) == 3)
		return c->add_mount(ctx, txn, ctr,
				    &(struct rp_mount){.size = sizeof(struct rp_mount),
						       .source = a,
						       .destination = b,
						       .type = "bind",
						       .options = options});
	if (strcmp(verb, "device") == 0 &&
	    sscanf(rest, "%63s %63s %lld %lld", a, b, &major, &minor) == 4)
		return c->add_device(ctx, txn, ctr,
				     &(struct rp_device){.size = sizeof(struct rp_device),
							 .path = a,
							 .type = b,
							 .major = major,
							 .minor = minor,
							 .uid = RP_OWNER_NOT_SET,
							 .gid = RP_OWNER_NOT_SET});
	return dangerous(inst, verb, rest);
}

static int32_t statement(struct rp_instance *inst, rp_txn txn, rp_ctr *ctr, const char *verb,
			 char *rest)
{
	const struct rp_host_cache *c = inst->cache;
	void *ctx = inst->host->ctx;
	char key[64] = "";
	char *end = NULL;
	uint32_t field = (uint32_t)strtoul(rest, &end, 10);
	const char *value = *end == ' ' ? end + 1 : end;
	int n = 0;
	if (strcmp(verb, "cpus") == 0 || strcmp(verb, "mems") == 0 || strcmp(verb, "excl") == 0)
		return set_ids(inst, txn, *ctr, verb, rest);
	if (strcmp(verb, "int") == 0)
		return c->set_int(ctx, txn, *ctr, field, strtoll(value, NULL, 10));
	if (strcmp(verb, "text") == 0)
		return c->set_text(ctx, txn, *ctr, field, value);
	if (strcmp(verb, "private") == 0)
		return c->set_private(ctx, txn, *ctr, rest, (uint32_t)strlen(rest));
	if (strcmp(verb, "degraded") == 0)
		return c->set_degraded(ctx, txn, *ctr, *rest ? rest : NULL);
	if (strcmp(verb, "wait") == 0)
		return c->may_wait(ctx, txn, field, (uint32_t)strtoul(value, NULL, 10));
	if (strcmp(verb, "arm") == 0)
		return inst->timer->arm(ctx, field, strtoull(value, NULL, 10));
	if (strcmp(verb, "work") == 0)
		return inst->work->submit(ctx, job, NULL, (void *)(intptr_t)field);
	if (strcmp(verb, "usage") == 0)
		return note_usage(inst, *ctr);
	if (strcmp(verb, "on") == 0) {
		*ctr = named(inst, rest);
		return 0;
	}
	if (strcmp(verb, "asked") == 0) {
		struct rp_ctr_info info = {.size = sizeof info};
		int32_t r = inst->cache->get_ctr(ctx, *ctr, &info);
		return r ? r : inst->cache->set_int(ctx, txn, *ctr, RP_F_SHARES, info.asked_shares);
	}
	if (strcmp(verb, "note") == 0) {
		inst->explain->note(ctx, *ctr, rest);
		return 0;
	}
	if (strcmp(verb, "warn") == 0) {
		inst->host->log(ctx, RP_LOG_WARNING, *ctr, rest);
		return 0;
	}
	if (strcmp(verb, "pair") == 0 && sscanf(value, "%63s %n", key, &n) == 1)
		return c->set_pair(ctx, txn, *ctr, field, key, value + n);
	if (strcmp(verb, "data") == 0 && sscanf(rest, "%63s %n", key, &n) == 1)
		return c->set_data(ctx, txn, *ctr, key, rest + n);
	return equip(inst, txn, *ctr, verb, rest);
}

static int32_t run(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *script)
{
	char text[SCRIPT_MAX], *saved = NULL;
	int32_t r = 0;
	if (!script)
		return 0;
	snprintf(text, sizeof text, "%s", script);
	for (char *s = strtok_r(text, ";", &saved); s && r >= 0; s = strtok_r(NULL, ";", &saved)) {
		s += strspn(s, " ");
		size_t len = strcspn(s, " ");
		char *rest = s + len + (s[len] == ' ');
		s[len] = '\0';
		if (*s)
			r = statement(inst, txn, &ctr, s, rest);
	}
	return r < 0 ? r : 0;
}

static int32_t run_key(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *key)
{
	return run(inst, txn, ctr, inst->cache->annotation(inst->host->ctx, ctr, key, NULL));
}

static void take(struct rp_instance *inst, rp_cfg cfg, const char *key, char ret[SCRIPT_MAX])
{
	void *ctx = inst->host->ctx;
	snprintf(ret, SCRIPT_MAX, "%s",
		 inst->config->text(ctx, inst->config->get(ctx, cfg, key), ""));
}

static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	const struct rp_host_config *c = inst->config;
	void *ctx = inst->host->ctx;
	rp_cfg script = c->get(ctx, cfg, "prepare");
	const char *text = c->text(ctx, script, "");
	if (strcmp(text, "fail_at") == 0)
		return c->fail_at(ctx, script, -RP_EINVAL, "does not please");
	int32_t r = run(inst, 0, 0, text);
	struct rp_plan *plan = r ? NULL : calloc(1, sizeof *plan);
	if (!plan)
		return r ? r : -RP_ENOMEM;
	take(inst, cfg, "sync", plan->sync);
	take(inst, cfg, "timer", plan->timer);
	take(inst, cfg, "topology", plan->topology);
	take(inst, cfg, "rebalance", plan->rebalance);
	take(inst, cfg, "rolledBack", plan->rolled_back);
	plan->resync = c->value(ctx, c->get(ctx, cfg, "resync"), RP_T_INT, 0);
	*ret_plan = plan;
	return 0;
}

static void commit(struct rp_instance *inst, struct rp_plan *plan)
{
	inst->plan = *plan;
	free(plan);
}

static void forget(struct rp_instance *inst, struct rp_plan *plan)
{
	free(plan);
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	rp_ctr all[256];
	void *ctx = inst->host->ctx;
	uint32_t n = inst->cache->list(ctx, RP_ORDER_SYNC, all, 256);
	int32_t r = 0;
	for (uint32_t i = 0; i < n && i < 256 && !r; i++) {
		const char *script = inst->cache->annotation(ctx, all[i], "t/sync", NULL);
		r = run(inst, txn, all[i],
			script ? script : inst->cache->annotation(ctx, all[i], "t/do", NULL));
	}
	return r ? r : run(inst, txn, 0, inst->plan.sync);
}

static int32_t allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return run_key(inst, txn, ctr, "t/do");
}

static int32_t update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return run_key(inst, txn, ctr, "t/update");
}

static int32_t release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return run_key(inst, txn, ctr, "t/release");
}

static int32_t say_runtime(struct rp_instance *inst)
{
	void *ctx = inst->host->ctx;
	const struct rp_host_runtime *r = inst->host->service(ctx, RP_HOST_RUNTIME_1);
	char text[160];
	snprintf(text, sizeof text, "the runtime is %s %s, flags %u", r->name(ctx), r->version(ctx),
		 r->flags(ctx));
	inst->host->log(ctx, RP_LOG_NOTICE, 0, text);
	return 0;
}

static int32_t event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (ev->type == RP_EVENT_STARTED)
		return run_key(inst, txn, ev->object, "t/start");
	if (ev->type == RP_EVENT_RUNTIME)
		return say_runtime(inst);
	if (ev->type == RP_EVENT_TOPOLOGY)
		return run(inst, txn, 0, inst->plan.topology);
	if (ev->type == RP_EVENT_PRESSURE)
		return run_key(inst, txn, ev->object, "t/pressure");
	if (ev->type == RP_EVENT_REBALANCE && *inst->plan.rebalance)
		return run(inst, txn, 0, inst->plan.rebalance);
	return run(inst, txn, 0, inst->plan.timer);
}

static int32_t rolled_back(struct rp_instance *inst)
{
	(void)run(inst, 0, 0, inst->plan.rolled_back);
	return inst->plan.resync ? RP_RESYNC : 0;
}

static int32_t save(struct rp_instance *inst, const void **ret, uint32_t *ret_size)
{
	*ret = inst->state;
	*ret_size =
		(uint32_t)snprintf(inst->state, sizeof inst->state, "state of %s", inst->plan.sync);
	if (*ret_size >= sizeof inst->state)
		*ret_size = sizeof inst->state - 1;
	return 0;
}

static int32_t load(struct rp_instance *inst, const void *data, uint32_t size)
{
	inst->host->log(inst->host->ctx, RP_LOG_NOTICE, 0, "loaded");
	return size >= 8 && memcmp(data, "state of", 8) == 0 ? 0 : -RP_EINVAL;
}

static int32_t create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return -RP_ENOMEM;
	inst->host = host;
	inst->cache = host->service(host->ctx, RP_HOST_CACHE_1);
	inst->config = host->service(host->ctx, RP_HOST_CONFIG_1);
	inst->explain = host->service(host->ctx, RP_HOST_EXPLAIN_1);
	inst->timer = host->service(host->ctx, RP_HOST_TIMER_1);
	inst->work = host->service(host->ctx, RP_HOST_WORK_1);
	inst->usage = host->service(host->ctx, RP_HOST_USAGE_1);
	*ret_inst = inst;
	return 0;
}

static void destroy(struct rp_instance *inst)
{
	free(inst);
}

static const struct rp_policy policy = {
	.size = sizeof policy,
	.prepare = prepare,
	.commit = commit,
	.abort = forget,
	.sync = sync_all,
	.allocate = allocate,
	.update = update,
	.release = release,
	.event = event,
	.rolled_back = rolled_back,
};
static const struct rp_state state = {.size = sizeof state, .save = save, .load = load};

static const void *service(struct rp_instance *inst, const char *id)
{
	if (!inst)
		return NULL;
	if (strcmp(id, RP_POLICY_1) == 0)
		return &policy;
	return strcmp(id, RP_STATE_1) == 0 ? &state : NULL;
}

/* The puppet is built under two names, for switches between two policies. */
#ifndef PUPPET_NAME
#define PUPPET_NAME "puppet"
#endif
RP_MODULE_DEFINE(PUPPET_NAME, "1.0", RP_KIND_POLICY, .summary = "Does what it is told",
		 .create = create, .destroy = destroy, .service = service);
