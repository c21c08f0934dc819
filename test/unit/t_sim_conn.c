/* SPDX-License-Identifier: Apache-2.0 */
/* The judge: a plugin in this process does what plugins should not do, one thing a test. */
#include "t_sim_plugin.h"
#include "core/nri-rp-sim/check.h"
#include "core/nri-rp-sim/model.h"

/* ---- registration ---------------------------------------------------------------------------- */

static void good_plugin(void **state)
{
	struct plugin p = node("{}");
	start_active(&p);
	assert_string_equal(p.registered, "yes");
	assert_string_equal(p.calls, "Configure Synchronize ");
	assert_step(p.s, "{\"create\": {\"pod\": \"a\", \"containers\": [{\"name\": \"c\"}]}}");
	assert_step(p.s, "{\"update\": {\"container\": \"c\", \"cpu\": \"1/-\"}}");
	assert_step(p.s, "{\"delete\": \"a\"}");
	assert_string_equal(p.calls, "Configure Synchronize RunPodSandbox CreateContainer "
				     "PostCreateContainer StartContainer "
				     "PostStartContainer UpdateContainer PostUpdateContainer "
				     "StopContainer StopPodSandbox RemoveContainer "
				     "RemovePodSandbox ");
	assert_int_equal(json_array_size(p.s->problems), 0);
	end(&p);
}

static void only_what_it_subscribes_to(void **state)
{
	struct plugin p = node("{}");
	p.events = 1 << (NRI__EVENT__CREATE_CONTAINER - 1) | 1 << (NRI__EVENT__STOP_CONTAINER - 1);
	start_active(&p);
	assert_step(p.s, "{\"create\": {\"pod\": \"a\", \"containers\": [{\"name\": \"c\"}]}}");
	assert_step(p.s, "{\"delete\": \"a\"}");
	assert_string_equal(p.calls, "Configure Synchronize CreateContainer StopContainer ");
	end(&p);
}

static void state_changes_before_0_12(void **state)
{
	struct plugin p = node("{\"nri\": \"0.9\"}");
	start_active(&p);
	assert_step(p.s, "{\"create\": {\"pod\": \"a\", \"containers\": [{\"name\": \"c\"}]}}");
	assert_string_equal(p.calls, "Configure Synchronize StateChange CreateContainer "
				     "StateChange StateChange StateChange ");
	end(&p);
}

static void fallback_to_state_change(void **state)
{
	struct plugin p = node("{}");
	p.no_methods = true;
	start_active(&p);
	assert_step(p.s, "{\"create\": {\"pod\": \"a\", \"containers\": [{\"name\": \"c\"}]}}");
	assert_string_equal(p.calls, "Configure Synchronize RunPodSandbox StateChange "
				     "CreateContainer StateChange StateChange StateChange ");
	assert_true(sim_has_problem(p.s, "RunPodSandbox is not implemented"));
	end(&p);
}

static void wrong_registrations(void **state)
{
	static const struct {
		const char *name, *index, *problem;
	} table[] = {{"", "10", "no name"},
		     {"a b", "10", "not allowed"},
		     {"test", "1", "two digits"},
		     {"test", "100", "two digits"},
		     {"test", "x1", "two digits"}};
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct plugin p = node("{}");
		connect_plugin(&p);
		register_plugin(&p, table[i].name, table[i].index);
		expect_lost(&p, table[i].problem);
		end(&p);
	}
}

static void registered_twice(void **state)
{
	struct plugin p = node("{}");
	start_active(&p);
	register_plugin(&p, "test", "10");
	expect_lost(&p, "already registered");
	end(&p);
}

static void says_nothing(void **state)
{
	struct plugin p = node("{\"registrationTimeout\": \"50ms\"}");
	connect_plugin(&p);
	expect_lost(&p, "does not register");
	end(&p);
}

static void unknown_events(void **state)
{
	struct plugin p = node("{\"nri\": \"0.9\"}");
	p.events = 0x3fff;
	start_plugin(&p);
	expect_lost(&p, "invalid plugin events: 0x3800");
	end(&p);
}

static void garbled_configuration(void **state)
{
	struct plugin p = node("{}");
	p.garbage = true;
	start_plugin(&p);
	expect_lost(&p, "Configure: undecodable");
	end(&p);
}

static void late_synchronisation(void **state)
{
	struct plugin p = node("{\"requestTimeout\": \"500ms\"}");
	p.silent = true;
	start_plugin(&p);
	expect_lost(&p, "Configure");
	end(&p);
}

static void split_synchronisation(void **state)
{
	static const char head[] = "{\"syncParts\": 1}";
	static const char pods[] = "{\"existing\": [{\"pod\": \"a\", \"containers\": [{\"name\": "
				   "\"c\"}, {\"name\": \"d\"}]}]}";
	struct plugin p = node(head);
	assert_step(p.s, pods);
	start_active(&p);
	assert_string_equal(p.calls, "Configure Synchronize Synchronize ");
	end(&p);
	p = node(head);
	assert_step(p.s, pods);
	p.no_echo = true;
	start_plugin(&p);
	expect_lost(&p, "does not handle split sync requests");
	end(&p);
	p = node(head);
	assert_step(p.s, pods);
	p.update_in_part = true;
	start_plugin(&p);
	expect_lost(&p, "does not handle split sync requests");
	end(&p);
}

static void wrong_calls(void **state)
{
	struct plugin p = node("{}");
	Nri__Empty none = NRI__EMPTY__INIT;
	start_active(&p);
	call(&p, "nri.pkg.api.v1alpha1.Runtime", "Reboot", &none.base, on_updated);
	assert_int_equal(sim_wait(p.s, is_updated, &p, WAIT_MS), 0);
	assert_true(sim_has_problem(p.s, "the method Reboot"));
	p.updated[0] = '\0';
	call(&p, "nri.Other", "UpdateContainers", &none.base, on_updated);
	assert_int_equal(sim_wait(p.s, is_updated, &p, WAIT_MS), 0);
	assert_true(sim_has_problem(p.s, "the service nri.Other"));
	end(&p);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Checks each field of two updates of a container that both plugins claim. */
static void fields_claimed_twice(void **state)
{
	struct sim *s = sim_made("{}");
	Nri__OptionalUInt64 number = NRI__OPTIONAL_UINT64__INIT;
	Nri__OptionalInt64 quota = NRI__OPTIONAL_INT64__INIT;
	Nri__LinuxMemory limit = NRI__LINUX_MEMORY__INIT;
	static const char *const fields[] = {"CPUs of",	     "memory nodes of", "CPU shares of",
					     "CPU quota of", "CPU period of",	"memory limit of"};
	limit.limit = &quota;
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
		struct update x, y;
		struct err err = ERR_INIT;
		const char *cpus = i == 0 ? "1" : "", *mems = i == 1 ? "1" : "";
		Nri__ContainerUpdate *list[] = {make_update(&x, "c", cpus, mems),
						make_update(&y, "c", cpus, mems)};
		x.c.shares = y.c.shares = i == 2 ? &number : NULL;
		x.c.quota = y.c.quota = i == 3 ? &quota : NULL;
		x.c.period = y.c.period = i == 4 ? &number : NULL;
		x.r.memory = y.r.memory = i == 5 ? &limit : NULL;
		assert_int_equal(check_claims(s, list, 2, &err), -EINVAL);
		assert_true(sim_has_problem(s, fields[i]));
		y.u.container_id = writable("d");
		assert_int_equal(check_claims(s, list, 2, &err), 0);
		assert_int_equal(json_array_size(s->problems), 0);
	}
	struct update x, y;
	Nri__ContainerUpdate *apart[] = {make_update(&x, "c", "1", ""),
					 make_update(&y, "c", "", "1")};
	assert_int_equal(check_claims(s, apart, 2, NULL), 0);
	assert_true(sim_has_problem(s, "two updates of container c"));
	sim_free(s);
}

static void keys_claimed_twice(void **state)
{
	struct sim *s = sim_made("{}");
	struct err err = ERR_INIT;
	Nri__LinuxDevice device[2] = {NRI__LINUX_DEVICE__INIT, NRI__LINUX_DEVICE__INIT};
	Nri__LinuxDevice *devices[] = {&device[0], &device[1]};
	Nri__HugepageLimit page[2] = {NRI__HUGEPAGE_LIMIT__INIT, NRI__HUGEPAGE_LIMIT__INIT};
	Nri__HugepageLimit *pages[] = {&page[0], &page[1]};
	Nri__LinuxResources r = NRI__LINUX_RESOURCES__INIT;
	Nri__LinuxContainerAdjustment l = NRI__LINUX_CONTAINER_ADJUSTMENT__INIT;
	Nri__ContainerAdjustment a = NRI__CONTAINER_ADJUSTMENT__INIT;
	a.lnx = &l;
	assert_int_equal(check_adjustment(s, &a, &err), 0);
	l.resources = &r;
	r.hugepage_limits = pages;
	r.n_hugepage_limits = 2;
	page[0].page_size = page[1].page_size = writable("2MB");
	assert_int_equal(check_adjustment(s, &a, &err), -EINVAL);
	assert_true(sim_has_problem(s, "hugepage limit \"2MB\""));
	page[1].page_size = writable("1GB");
	assert_int_equal(check_adjustment(s, &a, &err), 0);
	l.devices = devices;
	l.n_devices = 2;
	device[0].path = device[1].path = writable("/dev/x");
	assert_int_equal(check_adjustment(s, &a, &err), -EINVAL);
	assert_true(sim_has_problem(s, "device \"/dev/x\""));
	device[1].path = writable("-/dev/x"); /* removed and set again */
	assert_int_equal(check_adjustment(s, &a, &err), 0);
	sim_free(s);
}

/* ---- creations ------------------------------------------------------------------------------- */

static const char create_c[] =
	"{\"create\": {\"pod\": \"a\", \"containers\": [{\"name\": \"c\"}]}}";

static void answer_sets(struct plugin *p, struct rpc_request *req, const char *cpus,
			const char *mems)
{
	struct update x;
	Nri__ContainerAdjustment a = NRI__CONTAINER_ADJUSTMENT__INIT;
	Nri__LinuxContainerAdjustment l = NRI__LINUX_CONTAINER_ADJUSTMENT__INIT;
	Nri__CreateContainerResponse out = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	(void)make_update(&x, "", cpus, mems);
	l.resources = &x.r;
	a.lnx = &l;
	out.adjust = &a;
	(void)rpc_reply(req, &out.base);
}

static void give_cpus_that_are_not_there(struct plugin *p, struct rpc_request *req)
{
	answer_sets(p, req, "14-17", "");
}

static void give_memory_that_is_not_there(struct plugin *p, struct rpc_request *req)
{
	answer_sets(p, req, "1", "7");
}

static void give_no_list(struct plugin *p, struct rpc_request *req)
{
	answer_sets(p, req, "1-x", "");
}

static void give_text_that_is_not_utf8(struct plugin *p, struct rpc_request *req)
{
	answer_sets(p, req, "\xc3", "");
}

static void update_the_new_one(struct plugin *p, struct rpc_request *req)
{
	struct update x;
	Nri__CreateContainerResponse out = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(p, "c"), "1", "")};
	out.update = list;
	out.n_update = 1;
	(void)rpc_reply(req, &out.base);
}

static void update_twice(struct plugin *p, struct rpc_request *req)
{
	struct update x, y;
	Nri__CreateContainerResponse out = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(p, "o"), "1", ""),
					make_update(&y, id_of(p, "o"), "2", "")};
	out.update = list;
	out.n_update = 2;
	(void)rpc_reply(req, &out.base);
}

static void set_env_twice(struct plugin *p, struct rpc_request *req)
{
	Nri__KeyValue a = NRI__KEY_VALUE__INIT, b = NRI__KEY_VALUE__INIT;
	Nri__KeyValue *list[] = {&a, &b};
	Nri__ContainerAdjustment adjust = NRI__CONTAINER_ADJUSTMENT__INIT;
	Nri__CreateContainerResponse out = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	a.key = b.key = writable("K");
	adjust.env = list;
	adjust.n_env = 2;
	out.adjust = &adjust;
	(void)rpc_reply(req, &out.base);
}

static void refused_creations(void **state)
{
	static const struct {
		void (*create)(struct plugin *p, struct rpc_request *req);
		const char *problem;
	} table[] = {
		{give_cpus_that_are_not_there, "CPUs 14-17: some are not online"},
		{give_memory_that_is_not_there, "memory nodes 7: some have no memory"},
		{give_no_list, "not a list"},
		{give_text_that_is_not_utf8, "not UTF-8"},
		{update_the_new_one, "that is being created"},
		{update_twice, "set twice"},
		{set_env_twice, "env \"K\" is set twice"},
	};
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct plugin p = node("{}");
		assert_step(p.s, "{\"existing\": [{\"pod\": \"old\", \"containers\": [{\"name\": "
				 "\"o\"}]}]}");
		start_active(&p);
		p.create = table[i].create;
		assert_true(sim_step(p.s, create_c, NULL) < 0);
		assert_true(sim_has_problem(p.s, table[i].problem));
		assert_null(model_find_ctr(p.s, "a/c"));
		assert_true(
			str_has_suffix(p.calls, "CreateContainer StopContainer RemoveContainer "));
		assert_true(conn_is_active(p.s));
		end(&p);
	}
}

static void errors_are_refusals(void **state)
{
	struct err err = ERR_INIT;
	struct plugin p = node("{\"runtime\": \"cri-o\"}");
	p.events = 1 << (NRI__EVENT__CREATE_CONTAINER - 1) | 1 << (NRI__EVENT__STOP_CONTAINER - 1);
	start_active(&p);
	p.error = "no room";
	assert_int_equal(sim_step(p.s, create_c, &err), -EPERM);
	assert_string_equal(err.text, "no room");
	assert_true(str_has_suffix(p.calls, "CreateContainer ")); /* CRI-O says no more */
	p.error = NULL;
	assert_step(p.s, create_c);
	p.error = "no";
	assert_step(p.s, "{\"exit\": \"c\"}");
	assert_true(sim_has_problem(p.s, "StopContainer of c fails"));
	end(&p);
}

static void refused_pod(void **state)
{
	struct plugin p = node("{}");
	start_active(&p);
	p.error = "not today";
	assert_int_equal(sim_step(p.s, create_c, NULL), -EPERM);
	assert_null(model_find_pod(p.s, "a"));
	assert_true(str_has_suffix(p.calls, "RunPodSandbox StopPodSandbox RemovePodSandbox "));
	end(&p);
}

static void garbled_answers(void **state)
{
	struct plugin p = node("{}");
	p.events = 1 << (NRI__EVENT__CREATE_CONTAINER - 1) | 1 << (NRI__EVENT__STOP_CONTAINER - 1) |
		   1 << (NRI__EVENT__UPDATE_CONTAINER - 1);
	start_active(&p);
	p.garbage = true;
	(void)sim_step(p.s, create_c, NULL);
	assert_true(sim_has_problem(p.s, "CreateContainer"));
	end(&p);
}

static void late_answer(void **state)
{
	struct plugin p = node("{\"requestTimeout\": \"500ms\"}");
	p.events = 1 << (NRI__EVENT__CREATE_CONTAINER - 1);
	start_active(&p);
	p.silent = true;
	assert_step(p.s, create_c); /* the runtime continues without the plugin */
	expect_lost(&p, "CreateContainer was not answered within 500 ms");
	assert_non_null(model_find_ctr(p.s, "c"));
	end(&p);
}

/* ---- everything an adjustment can have ------------------------------------------------------- */

static void adjust_everything(struct plugin *p, struct rpc_request *req)
{
	struct update x;
	Nri__KeyValue env = NRI__KEY_VALUE__INIT, gone = NRI__KEY_VALUE__INIT;
	Nri__KeyValue *envs[] = {&env, &gone};
	Nri__Mount mount = NRI__MOUNT__INIT;
	Nri__Mount *mounts[] = {&mount};
	Nri__ContainerAdjustment__AnnotationsEntry note =
		NRI__CONTAINER_ADJUSTMENT__ANNOTATIONS_ENTRY__INIT;
	Nri__ContainerAdjustment__AnnotationsEntry *notes[] = {&note};
	Nri__LinuxResources__UnifiedEntry unified = NRI__LINUX_RESOURCES__UNIFIED_ENTRY__INIT;
	Nri__LinuxResources__UnifiedEntry *unifieds[] = {&unified};
	Nri__OptionalString rdt = NRI__OPTIONAL_STRING__INIT, blockio = NRI__OPTIONAL_STRING__INIT;
	Nri__OptionalInt oom = NRI__OPTIONAL_INT__INIT;
	Nri__LinuxScheduler scheduler = NRI__LINUX_SCHEDULER__INIT;
	Nri__LinuxIOPriority io = NRI__LINUX_IOPRIORITY__INIT;
	Nri__LinuxMemoryPolicy memory = NRI__LINUX_MEMORY_POLICY__INIT;
	Nri__OptionalUInt64 swappiness = NRI__OPTIONAL_UINT64__INIT;
	Nri__LinuxMemory limits = NRI__LINUX_MEMORY__INIT;
	Nri__LinuxContainerAdjustment l = NRI__LINUX_CONTAINER_ADJUSTMENT__INIT;
	Nri__ContainerAdjustment a = NRI__CONTAINER_ADJUSTMENT__INIT;
	Nri__CreateContainerResponse out = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	(void)make_update(&x, "", "1-2", "0");
	env.key = writable("A");
	env.value = writable("1");
	gone.key = writable("-OLD");
	mount.destination = writable("/data");
	note.key = writable("note");
	note.value = writable("text");
	unified.key = writable("memory.high");
	unified.value = writable("max");
	rdt.value = writable("gold");
	blockio.value = writable("slow");
	oom.value = 500;
	scheduler.nice = 5;
	memory.nodes = writable("0");
	limits.swappiness = &swappiness;
	x.r.rdt_class = &rdt;
	x.r.blockio_class = &blockio;
	x.r.unified = unifieds;
	x.r.n_unified = 1;
	x.r.memory = &limits;
	l.resources = &x.r;
	l.oom_score_adj = &oom;
	l.scheduler = &scheduler;
	l.io_priority = &io;
	l.memory_policy = &memory;
	a.env = envs;
	a.n_env = 2;
	a.mounts = mounts;
	a.n_mounts = 1;
	a.annotations = notes;
	a.n_annotations = 1;
	a.lnx = &l;
	out.adjust = &a;
	(void)rpc_reply(req, &out.base);
}

static void adjustments_are_taken(void **state)
{
	static const char create[] = "{\"create\": {\"pod\": \"a\", \"containers\": [{\"name\": "
				     "\"c\", \"env\": {\"OLD\": \"x\"}}]}}";
	static const char expect[] = "{\"expect\": [\"cpus(c) == 1-2 and mems(c) == 0\", \"rdt(c) "
				     "== 'gold' and blockio(c) == 'slow'\", "
				     "\"env(c, 'A') == '1'\", \"annotation(c, 'note') == 'text'\", "
				     "\"unified(c, 'memory.high') == 'max'\", "
				     "\"oom_score_adj(c) == 500\", \"moves(c) == 0\"]}";
	struct plugin p = node("{}");
	start_active(&p);
	p.create = adjust_everything;
	assert_step(p.s, create);
	assert_step(p.s, expect);
	const struct sim_ctr *c = model_find_ctr(p.s, "c");
	assert_null(json_object_get(json_object_get(c->spec, "env"), "OLD"));
	assert_int_equal(json_array_size(json_object_get(c->spec, "mounts")), 1);
	assert_non_null(json_object_get(c->given, "scheduler"));
	assert_non_null(json_object_get(c->given, "ioPriority"));
	assert_non_null(json_object_get(c->given, "memoryPolicy"));
	assert_true(sim_has_problem(p.s, "a memory setting that runtimes ignore"));
	end(&p);
	p = node("{\"nri\": \"0.6\"}"); /* which has not heard of half of it */
	start_active(&p);
	p.create = adjust_everything;
	assert_step(p.s, create);
	c = model_find_ctr(p.s, "c");
	assert_null(json_object_get(c->given, "scheduler"));
	assert_null(json_object_get(c->given, "memoryPolicy"));
	assert_int_equal(c->oom_score_adj, 1000);
	end(&p);
}

/* ---- updates --------------------------------------------------------------------------------- */

static void updates_wait_for_the_lock(struct plugin *p, struct rpc_request *req)
{
	static struct update x;
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(p, "o"), "5", "")};
	ask_for_updates(p, list, 1);
	(void)rpc_reply(req, NULL);
}

static void unsolicited(void **state)
{
	struct plugin p = node("{}");
	assert_step(p.s,
		    "{\"existing\": [{\"pod\": \"old\", \"containers\": [{\"name\": \"o\"}]}]}");
	start_active(&p);
	p.create = updates_wait_for_the_lock;
	assert_step(p.s, create_c);
	assert_int_equal(sim_wait(p.s, is_updated, &p, WAIT_MS), 0);
	assert_string_equal(p.updated, "yes");
	assert_step(p.s,
		    "{\"expect\": [\"cpus(o) == 5\", \"unsolicited == 1\", \"moves(o) == 1\"]}");
	struct update x, y;
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(&p, "o"), "5", ""),
					make_update(&y, "nobody", "3", "")};
	ask_for_updates(&p, list, 2);
	assert_int_equal(sim_wait(p.s, is_updated, &p, WAIT_MS), 0);
	assert_string_equal(p.updated, "yes");
	assert_int_equal(p.s->n_needless, 1);
	assert_int_equal(json_array_size(p.s->problems), 0);
	end(&p);
}

static void failing_updates(void **state)
{
	struct update x;
	struct plugin p = node("{}");
	assert_step(p.s,
		    "{\"existing\": [{\"pod\": \"old\", \"containers\": [{\"name\": \"o\"}]}]}");
	start_active(&p);
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(&p, "o"), "99", "")};
	ask_for_updates(&p, list, 1);
	assert_int_equal(sim_wait(p.s, is_updated, &p, WAIT_MS), 0);
	assert_string_equal(p.updated, "NRI update of some containers failed");
	assert_true(sim_has_problem(p.s, "not online"));
	assert_step(p.s, "{\"fail-updates\": [\"o\"]}");
	x.c.cpus = writable("1");
	ask_for_updates(&p, list, 1);
	assert_int_equal(sim_wait(p.s, is_updated, &p, WAIT_MS), 0);
	assert_string_equal(p.updated, "NRI update of some containers failed");
	x.u.ignore_failure = true;
	ask_for_updates(&p, list, 1);
	assert_int_equal(sim_wait(p.s, is_updated, &p, WAIT_MS), 0);
	assert_string_equal(p.updated, "yes");
	assert_step(p.s, "{\"expect\": \"cpus(o) == online\"}");
	end(&p);
}

static void change_a_class(struct plugin *p, struct rpc_request *req)
{
	struct update x;
	Nri__OptionalString rdt = NRI__OPTIONAL_STRING__INIT;
	Nri__StopContainerResponse out = NRI__STOP_CONTAINER_RESPONSE__INIT;
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(p, "o"), "2", "")};
	rdt.value = writable("gold");
	x.r.rdt_class = &rdt;
	out.update = list;
	out.n_update = 1;
	(void)rpc_reply(req, &out.base);
}

static void updates_in_stops(void **state)
{
	struct plugin p = node("{}");
	assert_step(p.s,
		    "{\"existing\": [{\"pod\": \"old\", \"containers\": [{\"name\": \"o\"}]}]}");
	start_active(&p);
	assert_step(p.s, create_c);
	p.stop = change_a_class;
	assert_step(p.s, "{\"exit\": \"c\"}");
	assert_step(p.s, "{\"expect\": \"cpus(o) == 2\"}");
	assert_true(sim_has_problem(p.s, "runtimes ignore classes in updates"));
	end(&p);
}

static void resize_both(struct plugin *p, struct rpc_request *req)
{
	struct update x, y;
	Nri__OptionalUInt64 shares = NRI__OPTIONAL_UINT64__INIT;
	Nri__UpdateContainerResponse out = NRI__UPDATE_CONTAINER_RESPONSE__INIT;
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(p, "o"), "3", "1"),
					make_update(&y, id_of(p, "c"), "4", "")};
	shares.value = 77;
	y.c.shares = &shares;
	out.update = list;
	out.n_update = 2;
	(void)rpc_reply(req, &out.base);
}

static void resize_to_nowhere(struct plugin *p, struct rpc_request *req)
{
	struct update x;
	Nri__UpdateContainerResponse out = NRI__UPDATE_CONTAINER_RESPONSE__INIT;
	Nri__ContainerUpdate *list[] = {make_update(&x, id_of(p, "c"), "77", "")};
	out.update = list;
	out.n_update = 1;
	(void)rpc_reply(req, &out.base);
}

static void resizes(void **state)
{
	static const char resize[] =
		"{\"update\": {\"container\": \"c\", \"cpu\": \"1/2\", \"memory\": \"1Mi\"}}";
	struct plugin p = node("{}");
	struct err err = ERR_INIT;
	assert_step(p.s,
		    "{\"existing\": [{\"pod\": \"old\", \"containers\": [{\"name\": \"o\"}]}]}");
	start_active(&p);
	assert_step(p.s, create_c);
	p.resize = resize_both;
	assert_step(p.s, resize);
	assert_step(p.s, "{\"expect\": [\"cpus(o) == 3 and mems(o) == 1\", \"cpus(c) == 4 and "
			 "shares(c) == 77\", "
			 "\"quota(c) == 200000 and memory_limit(c) == 1048576\"]}");
	p.resize = resize_to_nowhere;
	assert_true(sim_step(p.s, resize, &err) < 0);
	assert_true(sim_has_problem(p.s, "CPUs 77"));
	assert_step(p.s, "{\"expect\": \"cpus(c) == 4\"}");
	p.error = "stays small";
	assert_int_equal(sim_step(p.s, "{\"update\": {\"container\": \"c\", \"cpu\": 8}}", &err),
			 -EPERM);
	assert_step(p.s, "{\"expect\": \"quota(c) == 200000\"}");
	end(&p);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void plugin_goes(void **state)
{
	struct plugin p = node("{}");
	struct err err = ERR_INIT;
	start_active(&p);
	p.trunk = trunk_free(p.trunk);
	assert_step(p.s, create_c);
	assert_false(conn_is_active(p.s));
	assert_int_equal(conn_wait_active(p.s, 0, 50, &err), -ETIMEDOUT);
	p.lost = false;
	p.calls[0] = '\0';
	start_plugin(&p); /* the next one is as welcome */
	assert_int_equal(conn_wait_active(p.s, 1, WAIT_MS, &err), 0);
	end(&p);
}

static void runtime_goes(void **state)
{
	struct plugin p = node("{}");
	struct err err = ERR_INIT;
	start_active(&p);
	assert_step(p.s, "{\"runtime-stop\": null}");
	assert_int_equal(sim_wait(p.s, is_lost, &p, WAIT_MS), 0);
	assert_int_not_equal(access(p.s->socket, F_OK), 0);
	assert_int_equal(conn_n_active(p.s), 1);
	p.trunk = trunk_free(p.trunk);
	assert_int_equal(conn_listen(p.s, &err), 0);
	start_plugin(&p);
	assert_int_equal(conn_wait_active(p.s, 1, WAIT_MS, &err), 0);
	end(&p);
}

static void no_daemon(void **state)
{
	struct sim *s = sim_made("{}");
	struct err err = ERR_INIT;
	char text[64];
	assert_int_equal(daemon_signal(s, 1, &err), -ESRCH);
	assert_int_equal(sim_step(s, "{\"reload\": null}", &err), -ESRCH);
	assert_true(sim_step(s, "{\"control\": {}}", &err) < 0);
	assert_string_equal(daemon_status_text(daemon_last_status(s), text, sizeof text),
			    "never started");
	_free_ char *tail = daemon_log_tail(s, 3);
	assert_string_equal(tail, "");
	assert_int_equal(sim_step(s, "{\"log\": \"x\"}", &err), -ETIMEDOUT);
	sim_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_plugin),
		cmocka_unit_test(only_what_it_subscribes_to),
		cmocka_unit_test(state_changes_before_0_12),
		cmocka_unit_test(fallback_to_state_change),
		cmocka_unit_test(wrong_registrations),
		cmocka_unit_test(registered_twice),
		cmocka_unit_test(says_nothing),
		cmocka_unit_test(unknown_events),
		cmocka_unit_test(garbled_configuration),
		cmocka_unit_test(late_synchronisation),
		cmocka_unit_test(split_synchronisation),
		cmocka_unit_test(wrong_calls),
		cmocka_unit_test(fields_claimed_twice),
		cmocka_unit_test(keys_claimed_twice),
		cmocka_unit_test(refused_creations),
		cmocka_unit_test(errors_are_refusals),
		cmocka_unit_test(refused_pod),
		cmocka_unit_test(garbled_answers),
		cmocka_unit_test(late_answer),
		cmocka_unit_test(adjustments_are_taken),
		cmocka_unit_test(unsolicited),
		cmocka_unit_test(failing_updates),
		cmocka_unit_test(updates_in_stops),
		cmocka_unit_test(resizes),
		cmocka_unit_test(plugin_goes),
		cmocka_unit_test(runtime_goes),
		cmocka_unit_test(no_daemon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
