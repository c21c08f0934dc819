/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's half of a connection, as bytes, for the whole daemon behind it: multiplexer, ttrpc,
 * NRI front end, pipeline, the policy `static`, cache and store. Whatever comes, it ends with a
 * closed connection, and an empty list of containers empties everything.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/nri/nri.h"
#include "core/lib/util/log.h"
#include "test/fuzz/fake_loader.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/sync.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define INPUT_MAX (128u << 10)
#define SOCKET_BUFFER (1 << 20)
#define N_CPUS 16u
#define CONFIG "policy: static\nstatic: {reservedResources: {cpu: 1}}\n"

static struct {
	char dir[64];
	struct loop *loop;
	struct pipeline *pipeline;
	struct nri *nri;
	unsigned n;
} world;

static void check(int ok)
{
	if (!ok)
		abort();
}

static void put(const char *path, const char *text)
{
	char full[256];
	(void)snprintf(full, sizeof full, "%s/%s", world.dir, path);
	for (char *p = full + strlen(world.dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
	FILE *f = fopen(full, "w");
	check(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void put_cpu(unsigned cpu, const char *file, unsigned value)
{
	char path[128], text[16];
	(void)snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/topology/%s", cpu, file);
	(void)snprintf(text, sizeof text, "%u\n", value);
	put(path, text);
}

/* Two packages, a node each, without hyper-threads. */
static void make_machine(void)
{
	put("sys/devices/system/cpu/online", "0-15\n");
	put("sys/devices/system/cpu/possible", "0-15\n");
	put("sys/devices/system/cpu/present", "0-15\n");
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		put_cpu(cpu, "physical_package_id", cpu / 8);
		put_cpu(cpu, "die_id", 0);
		put_cpu(cpu, "core_id", cpu % 8);
	}
	put("sys/devices/system/node/online", "0-1\n");
	put("sys/devices/system/node/has_memory", "0-1\n");
	put("sys/devices/system/node/node0/cpulist", "0-7\n");
	put("sys/devices/system/node/node0/distance", "10 20\n");
	put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1048576 kB\n");
	put("sys/devices/system/node/node1/cpulist", "8-15\n");
	put("sys/devices/system/node/node1/distance", "20 10\n");
	put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1048576 kB\n");
	put("proc/meminfo", "MemTotal: 2097152 kB\n");
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void end_world(void)
{
	world.pipeline = pipeline_free(world.pipeline);
	world.loop = loop_free(world.loop);
	(void)nftw(world.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void updates_ready(void *arg)
{
	nri_updates_ready(world.nri);
}

static void make_world(void)
{
	char conf[128], state[128], run[128];
	struct err err = ERR_INIT;
	log_init("fuzz");
	log_set_level(LOG_ERROR - 1);
	(void)snprintf(world.dir, sizeof world.dir, "%s/fuzz_session.XXXXXX",
		       access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	check(mkdtemp(world.dir) != NULL);
	make_machine();
	put("rp.conf", CONFIG);
	(void)snprintf(conf, sizeof conf, "%s/rp.conf", world.dir);
	(void)snprintf(state, sizeof state, "%s/state", world.dir);
	(void)snprintf(run, sizeof run, "%s/run", world.dir);
	world.loop = loop_new();
	const struct pipeline_config config = {.loop = world.loop,
					       .config_path = conf,
					       .host_root = world.dir,
					       .state_dir = state,
					       .run_dir = run,
					       .fixed_log_level = true,
					       .hang_limit_ms = 20000,
					       .updates_ready = updates_ready};
	if (pipeline_new(&config, &world.pipeline, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	check(atexit(end_world) == 0);
}

static void orphaned(void *arg)
{
	loop_stop(world.loop);
}

static void stop(void *arg)
{
	loop_stop(world.loop);
}

static void forget_all(void)
{
	struct reply reply;
	uint32_t n;
	request_begin(world.pipeline, REQ_SYNCHRONIZE);
	sync_begin(world.pipeline);
	sync_end(world.pipeline, &reply);
	reply_sent(world.pipeline, &reply, false);
	pipeline_runtime(world.pipeline)->synchronized = false;
	check(updates_next(world.pipeline, &n) == NULL);
	check(updates_waiting(world.pipeline) == 0);
	check(cache_n_ctrs(pipeline_cache(world.pipeline)) == 0);
	check(cache_n_pods(pipeline_cache(world.pipeline)) == 0);
	check(cache_running_txn(pipeline_cache(world.pipeline)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fds[2], room = SOCKET_BUFFER;
	struct err err = ERR_INIT;
	if (!world.loop)
		make_world();
	if (size > INPUT_MAX)
		return 0;
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	(void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	check(write(fds[0], data, size) == (ssize_t)size);
	check(shutdown(fds[0], SHUT_WR) == 0);
	const struct nri_config config = {.loop = world.loop,
					  .pipeline = world.pipeline,
					  .socket = "",
					  .name = "fuzzed",
					  .index = 1,
					  .inherited_fd = fds[1],
					  .orphaned = orphaned};
	check(nri_new(&config, &world.nri, &err) == 0);
	if (pipeline_runtime(world.pipeline)->connected)
		check(loop_run(world.loop) == 0);
	/* deferred calls run while the front end exists */
	check(loop_defer(world.loop, stop, NULL) == 0);
	check(loop_run(world.loop) == 0);
	world.nri = nri_free(world.nri);
	(void)close(fds[0]);
	forget_all();
	return 0;
}
