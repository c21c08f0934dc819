/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of pods with memory ending at each point: what is known of a pod is all that was told or
 * nothing, people get to know which, and nothing is lost.
 */
#include "test/unit/t_oom_arena.h"

#include "test/unit/t_oom.h"
#include "test/unit/t_world.h"

#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/lib/util/clock.h"

static const struct box web = {.name = "web", .alloc = "cpus 1", .state = RP_STATE_RUNNING};
static const uint32_t nodes[] = {0, 1};
static const struct device_desc told[] = {
	{.ctr = "c", .resource = "x.com/nic", .nodes = nodes, .n_nodes = 2},
	{.ctr = "c", .resource = "x.com/gpu", .nodes = nodes, .n_nodes = 1},
	{.ctr = "c", .resource = "x.com/disk", .nodes = nodes + 1, .n_nodes = 1}};
#define N_TOLD 3u

static int ask_pod(void *arg, rp_pod pod, const char *ns, const char *name)
{
	++*(unsigned *)arg;
	return 0;
}

static int ask_all(void *arg)
{
	return 0;
}

static void pod_ended(void *arg, const char *ns, const char *name)
{
}

/* Returns the number of the container's devices that a module sees. */
static uint32_t n_seen(struct world *w)
{
	struct rp_pod_resource_info r;
	const struct ctr *ctr = box_ctr(w, "web");
	uint32_t n = 0;
	while (w->p->env.pod_resource(ctr, n, &r, w->p->env.arg) == 0) {
		OOM_CHECK(strcmp(r.resource, told[n].resource) == 0);
		OOM_CHECK(rp_ids_count(r.nodes) == told[n].n_nodes);
		n++;
	}
	return n;
}

static int turn_on(struct world *w, unsigned *n_asked)
{
	const struct device_source source = {
		.ask_pod = ask_pod, .ask_all = ask_all, .pod_ended = pod_ended, .arg = n_asked};
	*n_asked = 0;
	return pipeline_devices_on(w->p, &source);
}

/* Checks that all devices are known, or none, which counts as failed. */
static int judge(struct world *w)
{
	struct devices_status s;
	uint32_t n = n_seen(w);
	pipeline_devices_status(w->p, &s);
	OOM_CHECK(n == (s.n_known ? N_TOLD : 0));
	OOM_CHECK(s.n_asked == 0);
	OOM_CHECK(!s.n_failed || strcmp(s.last_error, "out of memory") == 0);
	return s.n_known ? 0 : -ENOMEM;
}

/* Requests the devices of a single pod by name. */
static int tell_one(void *arg)
{
	struct world *w = arg;
	struct box_desc d;
	unsigned n_asked;
	int r = turn_on(w, &n_asked);
	if (r) {
		OOM_CHECK(r == -ENOMEM && !pipeline_devices_are_on(w->p));
		return r;
	}
	pipeline_devices_reachable(w->p, true, "");
	box_describe(&web, &d);
	uint64_t until = devices_wait(w->p, &d.pod, "c", clock_ns());
	/* a request that could not be sent is not waited for */
	OOM_CHECK((until != 0) == (n_asked == 1));
	pipeline_devices_tell(w->p, box_ctr(w, "web")->pod->handle, told, N_TOLD);
	r = judge(w);
	pipeline_devices_off(w->p);
	return r;
}

/* Sends a list that arrives before the pods and is saved for them. */
static int list_all(void *arg)
{
	struct world *w = arg;
	struct pod_devices_desc pods[] = {{"default", "web", told, N_TOLD},
					  {"default", "another", told, 1}};
	unsigned n_asked;
	int r = turn_on(w, &n_asked);
	if (r)
		return r;
	pipeline_devices_reachable(w->p, true, "");
	w->p->runtime.synchronized = false;
	OOM_CHECK(devices_wait_all(w->p, true, clock_ns()) != 0);
	pipeline_devices_listed(w->p, NULL, pods, 2);
	OOM_CHECK(devices_wait_all(w->p, false, clock_ns()) == 0);
	devices_synchronizing(w->p);
	w->p->runtime.synchronized = true;
	r = judge(w);
	pipeline_devices_off(w->p);
	return r;
}

static int setup(void **state)
{
	int r = world_setup(state);
	log_set_level(LOG_ERROR - 1);
	(void)boxes_sync(*state, &web, 1);
	return r;
}

static void test_an_answer(void **state)
{
	oom_each(tell_one, *state);
}

static void test_a_list(void **state)
{
	oom_each(list_all, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_answer, setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_a_list, setup, world_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
