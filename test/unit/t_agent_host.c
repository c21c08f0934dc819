/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of the agent's connection: who may connect and register, what is asked and what
 * is made of answers, and what the configuration does to all that. The agent is this file, at the
 * other end of the socket.
 */
#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"

#include <pwd.h>
#include <sys/socket.h>

#include "core/nri-rpd/agent/agent.h"
#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"
#include "proto/agent.pb-c.h"
#include "proto/podresources.pb-c.h"

#define CONNECTIONS 4u /* admitted at a time */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- both ends ------------------------------------------------------------------------------- */

struct daemon_side {
	struct world *w;
	struct agent *agent;
	struct conf_core core;
	char socket[96], user[32];
};

/* A peer connected to the daemon's socket. */
struct peer {
	struct daemon_side *d;
	struct trunk *trunk;
	int fd; /* socket of the connection, to close it without a message */
	unsigned n_closed, n_asked, n_answers;
	struct rpc_request *held; /* the last one that it was asked */
	char asked[512]; /* "METHOD NS/NAME " of each */
	int error;
	int32_t code;
	char text[256], version[64];
};

static int setup(void **state)
{
	struct daemon_side *d = calloc(1, sizeof *d);
	struct err err = ERR_INIT;
	assert_non_null(d);
	assert_int_equal(world_setup(state), 0);
	d->w = *state;
	log_set_level(LOG_ERROR - 1);
	tree_path(&d->w->tree, "agent.sock", d->socket, sizeof d->socket);
	(void)snprintf(d->user, sizeof d->user, "0");
	d->core.agent.pod_resource_api = true;
	d->core.agent.socket = d->socket;
	d->core.agent.user = d->user;
	d->core.agent.pod_source = "auto";
	assert_int_equal(agent_new(d->w->loop, d->w->p, &d->agent, &err), 0);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct daemon_side *d = *state;
	void *world = d->w;
	d->agent = agent_free(d->agent);
	assert_false(pipeline_devices_are_on(d->w->p));
	assert_int_not_equal(access(d->socket, F_OK), 0);
	free(d);
	return world_teardown(&world);
}

static void listen_there(struct daemon_side *d)
{
	struct err err = ERR_INIT;
	if (agent_configure(d->agent, &d->core, &err))
		fail_msg("%s", err.text);
}

static void reply(struct peer *p, const ProtobufCMessage *msg)
{
	struct rpc_request *req = p->held;
	assert_non_null(req);
	p->held = NULL;
	assert_int_equal(rpc_reply(req, msg), 0);
}

static void reply_error(struct peer *p, enum ttrpc_code code, const char *text)
{
	struct rpc_request *req = p->held;
	assert_non_null(req);
	p->held = NULL;
	assert_int_equal(rpc_reply_error(req, code, "%s", text), 0);
}

/* Drops the held request of the peer without an answer. */
static void drop_held(struct peer *p)
{
	if (p->held)
		(void)rpc_reply(p->held, NULL);
	p->held = NULL;
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct peer *p = arg;
	p->n_closed++;
	p->trunk = NULL;
	trunk_free(trunk);
	drop_held(p);
	(void)close(p->fd);
}

static void on_asked(struct rpc_request *req, void *arg)
{
	struct peer *p = arg;
	size_t used = strlen(p->asked);
	Agent__PodRequest *m = agent__pod_request__unpack(NULL, req->payload_len, req->payload);
	assert_non_null(m);
	assert_string_equal(req->service, AGENT_SERVICE);
	(void)snprintf(p->asked + used, sizeof p->asked - used, "%s %s/%s ", req->method,
		       m->namespace_, m->name);
	agent__pod_request__free_unpacked(m, NULL);
	p->n_asked++;
	p->held = req;
}

static void take(struct peer *p, struct daemon_side *d, int fd)
{
	const struct trunk_config config = {.closed = on_closed, .arg = p};
	struct err err = ERR_INIT;
	*p = (struct peer){.d = d};
	assert_true(fd >= 0);
	p->fd = dup(fd);
	assert_true(p->fd >= 0);
	assert_int_equal(trunk_new(d->w->loop, fd, &config, &p->trunk, &err), 0);
	rpc_serve(trunk_rpc(p->trunk, 0), on_asked, p);
}

static void connect_to(struct peer *p, struct daemon_side *d)
{
	struct err err = ERR_INIT;
	take(p, d, wire_connect_unix(d->socket, &err));
}

static void leave(struct peer *p)
{
	if (!p->trunk)
		return;
	p->trunk = trunk_free(p->trunk);
	drop_held(p);
	(void)close(p->fd);
}

static void on_answer(const struct rpc_result *r, void *arg)
{
	struct peer *p = arg;
	p->n_answers++;
	p->error = r->error;
	p->code = r->code;
	(void)snprintf(p->text, sizeof p->text, "%s", r->text);
	if (r->error)
		return;
	Agent__RegisterResponse *m =
		agent__register_response__unpack(NULL, r->payload_len, r->payload);
	assert_non_null(m);
	(void)snprintf(p->version, sizeof p->version, "%s", m->version);
	agent__register_response__free_unpacked(m, NULL);
}

static bool is_answered(struct world *w, void *arg)
{
	return ((struct peer *)arg)->n_answers > 0;
}

static bool is_closed(struct world *w, void *arg)
{
	return ((struct peer *)arg)->n_closed > 0;
}

static bool is_asked(struct world *w, void *arg)
{
	return ((struct peer *)arg)->n_asked > 0;
}

/* Returns the result of a call to the daemon: 0, or the code of the refusal. */
static int32_t call(struct peer *p, const char *service, const char *method,
		    const ProtobufCMessage *msg)
{
	p->n_answers = 0;
	assert_int_equal(rpc_call(trunk_rpc(p->trunk, 0), service, method, msg, 0, on_answer, p),
			 0);
	world_until(p->d->w, is_answered, p);
	assert_true(p->error == 0 || p->error == -EREMOTEIO);
	return p->error ? p->code : 0;
}

/* Registers with `before` unknown features, followed by the required one if `known`. */
static int32_t register_with(struct peer *p, unsigned before, bool known)
{
	static char other[] = "other", feature[] = AGENT_FEATURE_POD_RESOURCES, version[] = "1.2";
	Agent__RegisterRequest m = AGENT__REGISTER_REQUEST__INIT;
	char *features[AGENT_FEATURES_MAX + 2];
	assert_true(before + 1 < COUNT(features));
	for (unsigned i = 0; i < before; i++)
		features[i] = other;
	features[before] = feature;
	m.version = version;
	m.features = features;
	m.n_features = before + (known ? 1 : 0);
	return call(p, AGENT_HOST_SERVICE, "Register", &m.base);
}

static struct devices_status status_of(struct daemon_side *d)
{
	struct devices_status s;
	pipeline_devices_status(d->w->p, &s);
	return s;
}

static void agent_comes(struct peer *p, struct daemon_side *d)
{
	listen_there(d);
	connect_to(p, d);
	assert_int_equal(register_with(p, 0, true), 0);
	assert_true(status_of(d).reachable);
}

/* ---- coming ---------------------------------------------------------------------------------- */

static void test_nothing_to_ask_for(void **state)
{
	struct daemon_side *d = *state;
	d->core.agent.pod_resource_api = false;
	listen_there(d);
	assert_int_not_equal(access(d->socket, F_OK), 0);
	assert_false(pipeline_devices_are_on(d->w->p));
}

static void test_an_agent_registers(void **state)
{
	struct daemon_side *d = *state;
	struct peer p;
	struct stat st;
	listen_there(d);
	assert_int_equal(stat(d->socket, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(status_of(d).on);
	assert_false(status_of(d).reachable);
	connect_to(&p, d);
	assert_int_equal(register_with(&p, 0, true), 0);
	assert_string_equal(p.version, NRI_RP_VERSION);
	assert_true(status_of(d).reachable);
	assert_true(world_told(d->w, "nri-rp-agent 1.2 is connected"));
	leave(&p);
	world_until(d->w, world_is_told, (void *)(uintptr_t) "the agent disconnected");
	assert_false(status_of(d).reachable);
	assert_string_equal(status_of(d).why_not, "the agent disconnected");
}

/* Checks that a refused peer may register again on the same connection. */
static void test_what_is_no_registration(void **state)
{
	static const struct {
		unsigned before;
		bool known;
		int32_t code;
	} cases[] = {{0, false, TTRPC_FAILED_PRECONDITION},
		     {1, false, TTRPC_FAILED_PRECONDITION},
		     /* more features than the daemon reads */
		     {AGENT_FEATURES_MAX, true, TTRPC_FAILED_PRECONDITION},
		     {AGENT_FEATURES_MAX - 1, true, 0}};
	struct daemon_side *d = *state;
	Podresources__NUMANode number = PODRESOURCES__NUMANODE__INIT;
	struct peer p;
	number.id = 7; /* where a text belongs */
	listen_there(d);
	connect_to(&p, d);
	assert_int_equal(call(&p, AGENT_HOST_SERVICE, "Register", &number.base),
			 TTRPC_INVALID_ARGUMENT);
	assert_int_equal(call(&p, AGENT_HOST_SERVICE, "Unregister", NULL), TTRPC_UNIMPLEMENTED);
	assert_int_equal(call(&p, AGENT_SERVICE, "Register", NULL), TTRPC_UNIMPLEMENTED);
	assert_non_null(strstr(p.text, AGENT_SERVICE "/Register"));
	for (unsigned i = 0; i < COUNT(cases); i++) {
		assert_false(status_of(d).reachable);
		assert_int_equal(register_with(&p, cases[i].before, cases[i].known), cases[i].code);
	}
	assert_true(status_of(d).reachable);
	leave(&p);
}

static void test_one_agent_at_a_time(void **state)
{
	struct daemon_side *d = *state;
	struct peer first, second;
	agent_comes(&first, d);
	connect_to(&second, d);
	assert_int_equal(register_with(&second, 0, true), TTRPC_ALREADY_EXISTS);
	assert_int_equal(register_with(&first, 0, true), TTRPC_ALREADY_EXISTS); /* twice */
	assert_true(status_of(d).reachable);
	leave(&first);
	world_until(d->w, world_is_told, (void *)(uintptr_t) "the agent disconnected");
	assert_int_equal(register_with(&second, 0, true), 0);
	assert_true(status_of(d).reachable);
	leave(&second);
}

static void test_only_so_many_connect(void **state)
{
	struct daemon_side *d = *state;
	struct peer peers[CONNECTIONS], more;
	listen_there(d);
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		connect_to(&peers[i], d);
		assert_int_equal(register_with(&peers[i], 0, false), TTRPC_FAILED_PRECONDITION);
	}
	connect_to(&more, d);
	world_until(d->w, is_closed, &more);
	assert_int_equal(register_with(&peers[0], 0, true), 0); /* the others stay */
	leave(&peers[0]);
	world_until(d->w, world_is_told, (void *)(uintptr_t) "the agent disconnected");
	connect_to(&more, d);
	assert_int_equal(register_with(&more, 0, true), 0);
	leave(&more);
	for (unsigned i = 1; i < CONNECTIONS; i++)
		leave(&peers[i]);
}

/* ---- users ----------------------------------------------------------------------------------- */

/* A name of /etc/passwd that is not root's. */
static bool somebody(char name[32], uid_t *ret)
{
	const struct passwd *pw;
	FILE *f = fopen("/etc/passwd", "re");
	bool found = false;
	while (f && !found && (pw = fgetpwent(f)))
		if (pw->pw_uid && strlen(pw->pw_name) < 32) {
			(void)snprintf(name, 32, "%s", pw->pw_name);
			*ret = pw->pw_uid;
			found = true;
		}
	if (f)
		(void)fclose(f);
	return found;
}

/* Returns a connection as this user, as the kernel reports it to the daemon. */
static int connect_as(struct daemon_side *d, uid_t uid)
{
	struct err err = ERR_INIT;
	/* The modes would not let him; what is to be seen is that they are not all there is. */
	assert_int_equal(chmod(d->socket, 0666), 0);
	assert_int_equal(chmod(d->w->tree.dir, 0755), 0);
	assert_int_equal(seteuid(uid), 0);
	int fd = wire_connect_unix(d->socket, &err);
	assert_int_equal(seteuid(0), 0);
	return fd;
}

static void test_who_may_be_the_agent(void **state)
{
	struct daemon_side *d = *state;
	char name[32], number[16];
	uid_t uid = 0;
	if (geteuid() != 0 || !somebody(name, &uid))
		skip();
	(void)snprintf(number, sizeof number, "%u", uid);
	const struct {
		const char *user; /* agent.user */
		uid_t uid; /* user that connects */
		bool admitted;
	} cases[] = {
		{name, uid, true},
		{number, uid, true},
		{name, uid + 1, false},
		{"no-such-user-here", uid, false},
		{"0", uid, false},
		{"4294967295", uid, false},
		{"99999999999", uid, false},
		{"", uid, false},
		{"no-such-user-here", 0, true}, /* root may always */
	};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct peer p;
		(void)snprintf(d->user, sizeof d->user, "%s", cases[i].user);
		listen_there(d);
		take(&p, d, connect_as(d, cases[i].uid));
		if (cases[i].admitted)
			assert_int_equal(register_with(&p, 0, true), 0);
		else
			world_until(d->w, is_closed, &p);
		assert_int_equal(status_of(d).reachable, cases[i].admitted);
		leave(&p);
	}
}

/* ---- questions ------------------------------------------------------------------------------- */

static const struct box web = {.name = "web", .alloc = "cpus 1"};

static void run_pod(struct daemon_side *d, const struct box *b)
{
	struct box_desc desc;
	box_describe(b, &desc);
	request_begin(d->w->p, REQ_RUN_POD);
	assert_int_equal(request_run_pod(d->w->p, &desc.pod, &d->w->err), 0);
	reply_sent(d->w->p, NULL, false);
}

static void end_pod(struct daemon_side *d, const struct box *b)
{
	struct box_desc desc;
	box_describe(b, &desc);
	request_begin(d->w->p, REQ_STOP_POD);
	request_stop_pod(d->w->p, &desc.pod);
	reply_sent(d->w->p, NULL, false);
}

static void await_question(struct peer *p, const char *asked)
{
	world_until(p->d->w, is_asked, p);
	assert_string_equal(p->asked, asked);
	p->n_asked = 0;
	p->asked[0] = '\0';
}

static bool is_known(struct world *w, void *arg)
{
	return status_of(arg).n_known > 0;
}

static bool has_failed(struct world *w, void *arg)
{
	return status_of(arg).failed > 0;
}

/* A pod of which container c has x.com/nic at a node. */
struct answer_of {
	Agent__PodDevices pod;
	Agent__ContainerDevices ctr, *ctrs[1];
	Agent__Devices devices, *list[1];
	uint32_t nodes[1];
};

static void make_answer(struct answer_of *a, const char *name, uint32_t node)
{
	agent__pod_devices__init(&a->pod);
	agent__container_devices__init(&a->ctr);
	agent__devices__init(&a->devices);
	a->nodes[0] = node;
	a->devices.resource = (char *)(uintptr_t) "x.com/nic";
	a->devices.nodes = a->nodes;
	a->devices.n_nodes = 1;
	a->list[0] = &a->devices;
	a->ctr.name = (char *)(uintptr_t) "c";
	a->ctr.devices = a->list;
	a->ctr.n_devices = 1;
	a->ctrs[0] = &a->ctr;
	a->pod.namespace_ = (char *)(uintptr_t) "default";
	a->pod.name = (char *)(uintptr_t)name;
	a->pod.containers = a->ctrs;
	a->pod.n_containers = 1;
}

static const char *nic_of(struct daemon_side *d, const struct box *b)
{
	static char text[32];
	struct rp_pod_resource_info r;
	const struct ctr *ctr = box_ctr(d->w, b->name);
	assert_non_null(ctr);
	if (d->w->p->env.pod_resource(ctr, 0, &r, d->w->p->env.arg))
		return "none";
	assert_string_equal(r.resource, "x.com/nic");
	(void)rp_ids_format(r.nodes, text, sizeof text);
	return text;
}

static void test_a_pod_is_asked_for(void **state)
{
	struct daemon_side *d = *state;
	struct answer_of a;
	struct peer p;
	agent_comes(&p, d);
	run_pod(d, &web);
	await_question(&p, "GetPod default/web ");
	make_answer(&a, "web", 1);
	reply(&p, &a.pod.base);
	world_until(d->w, is_known, d);
	box_run(d->w, &web);
	assert_string_equal(nic_of(d, &web), "1");
	end_pod(d, &web);
	await_question(&p, "ForgetPod default/web ");
	reply(&p, NULL);
	leave(&p);
}

static void test_what_is_no_answer(void **state)
{
	static const struct {
		enum ttrpc_code code; /* TTRPC_OK: an answer that makes no sense */
		const char *text, *told;
	} cases[] = {
		{TTRPC_NOT_FOUND, "the kubelet's Get: no such pod",
		 "the kubelet's Get: no such pod"},
		{TTRPC_DEADLINE_EXCEEDED, "the kubelet's Get: no reply in time",
		 "the kubelet's Get: no reply in time"},
		{TTRPC_OK, NULL, "the agent's reply is invalid"},
	};
	struct daemon_side *d = *state;
	struct peer p;
	agent_comes(&p, d);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct answer_of a;
		run_pod(d, &web);
		await_question(&p, "GetPod default/web ");
		make_answer(&a, "web", 1);
		a.ctr.name = (char *)(uintptr_t) ""; /* a container without a name */
		if (cases[i].code == TTRPC_OK)
			reply(&p, &a.pod.base);
		else
			reply_error(&p, cases[i].code, cases[i].text);
		world_until(d->w, has_failed, d);
		assert_string_equal(status_of(d).last_error, cases[i].told);
		assert_int_equal(status_of(d).n_failed, 1);
		assert_true(status_of(d).reachable); /* which is no reason to leave it */
		pipeline_devices_off(d->w->p); /* counts from nothing again */
		leave(&p);
		d->core.agent.pod_resource_api = false;
		listen_there(d);
		d->core.agent.pod_resource_api = true;
		agent_comes(&p, d);
	}
	leave(&p);
}

static void test_an_agent_that_does_not_answer(void **state)
{
	struct daemon_side *d = *state;
	struct peer p;
	agent_comes(&p, d);
	run_pod(d, &web);
	await_question(&p, "GetPod default/web ");
	world_until(d->w, has_failed, d);
	assert_string_equal(status_of(d).last_error, "the agent does not reply");
	assert_true(status_of(d).reachable);
	leave(&p);
}

static void test_an_agent_that_goes_instead_of_answering(void **state)
{
	struct daemon_side *d = *state;
	struct peer p;
	agent_comes(&p, d);
	run_pod(d, &web);
	await_question(&p, "GetPod default/web ");
	assert_int_equal(shutdown(p.fd, SHUT_RDWR), 0);
	world_until(d->w, has_failed, d);
	assert_string_equal(status_of(d).last_error, "the agent disconnected");
	box_run(d->w, &web);
	assert_non_null(strstr(box_ctr(d->w, "web")->trail.text,
			       "devices of its pod are unknown: the agent disconnected"));
	leave(&p);
}

static void test_all_pods_are_asked_for(void **state)
{
	struct daemon_side *d = *state;
	Agent__ListResponse out = AGENT__LIST_RESPONSE__INIT;
	struct answer_of a, b;
	Agent__PodDevices *pods[] = {&b.pod, &a.pod};
	struct peer p;
	(void)boxes_sync(d->w, NULL, 0);
	box_run(d->w, &web);
	agent_comes(&p, d);
	await_question(&p, "ListPods / ");
	make_answer(&a, "web", 0);
	make_answer(&b, "another", 1);
	out.pods = pods;
	out.n_pods = COUNT(pods);
	reply(&p, &out.base);
	world_until(d->w, is_known, d);
	assert_string_equal(nic_of(d, &web), "0");
	leave(&p);
}

static void test_no_list(void **state)
{
	static const struct {
		enum ttrpc_code code;
		const char *told;
	} cases[] = {{TTRPC_UNAVAILABLE, "nobody listens"},
		     {TTRPC_OK, "the agent's reply is invalid"}};
	struct daemon_side *d = *state;
	Podresources__NUMANode number = PODRESOURCES__NUMANODE__INIT;
	number.id = 7;
	(void)boxes_sync(d->w, NULL, 0);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct peer p;
		d->core.agent.pod_resource_api = false;
		listen_there(d);
		d->core.agent.pod_resource_api = true;
		agent_comes(&p, d);
		await_question(&p, "ListPods / ");
		if (cases[i].code == TTRPC_OK)
			reply(&p, &number.base);
		else
			reply_error(&p, cases[i].code, cases[i].told);
		world_until(d->w, has_failed, d);
		assert_string_equal(status_of(d).last_error, cases[i].told);
		leave(&p);
	}
}

/* ---- the configuration changes --------------------------------------------------------------- */

static void test_the_same_again_changes_nothing(void **state)
{
	struct daemon_side *d = *state;
	struct peer p;
	agent_comes(&p, d);
	listen_there(d);
	assert_true(status_of(d).reachable);
	assert_int_equal(register_with(&p, 0, true), TTRPC_ALREADY_EXISTS);
	assert_int_equal(p.n_closed, 0);
	leave(&p);
}

static void test_another_place(void **state)
{
	struct daemon_side *d = *state;
	struct peer p;
	char old[96];
	agent_comes(&p, d);
	(void)snprintf(old, sizeof old, "%s", d->socket);
	tree_path(&d->w->tree, "other.sock", d->socket, sizeof d->socket);
	listen_there(d);
	world_until(d->w, is_closed, &p);
	assert_int_not_equal(access(old, F_OK), 0);
	assert_false(status_of(d).reachable);
	connect_to(&p, d);
	assert_int_equal(register_with(&p, 0, true), 0);
	leave(&p);
}

static void test_turned_off(void **state)
{
	struct daemon_side *d = *state;
	struct peer p;
	agent_comes(&p, d);
	run_pod(d, &web);
	await_question(&p, "GetPod default/web ");
	d->core.agent.pod_resource_api = false;
	listen_there(d);
	world_until(d->w, is_closed, &p);
	assert_false(pipeline_devices_are_on(d->w->p));
	assert_int_not_equal(access(d->socket, F_OK), 0);
	box_run(d->w, &web);
}

static void test_a_place_that_is_taken(void **state)
{
	struct daemon_side *d = *state;
	struct err err = ERR_INIT;
	char good[96];
	(void)snprintf(good, sizeof good, "%s", d->socket);
	tree_path(&d->w->tree, "rp.conf", d->socket, sizeof d->socket); /* a file */
	assert_int_equal(agent_configure(d->agent, &d->core, &err), -EEXIST);
	assert_non_null(strstr(err.text, d->socket));
	assert_int_equal(access(d->socket, F_OK), 0);
	/* status and trail say why there is no agent */
	assert_true(status_of(d).on);
	assert_non_null(strstr(status_of(d).why_not, d->socket));
	box_run(d->w, &web);
	assert_non_null(strstr(box_ctr(d->w, "web")->trail.text, "devices of its pod are unknown"));
	/* the next configuration is another try */
	(void)snprintf(d->socket, sizeof d->socket, "%s", good);
	listen_there(d);
	assert_int_equal(access(d->socket, F_OK), 0);
	d->core.agent.pod_resource_api = false;
	listen_there(d);
	assert_false(pipeline_devices_are_on(d->w->p));
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_nothing_to_ask_for),
		test(test_an_agent_registers),
		test(test_what_is_no_registration),
		test(test_one_agent_at_a_time),
		test(test_only_so_many_connect),
		test(test_who_may_be_the_agent),
		test(test_a_pod_is_asked_for),
		test(test_what_is_no_answer),
		test(test_an_agent_that_does_not_answer),
		test(test_an_agent_that_goes_instead_of_answering),
		test(test_all_pods_are_asked_for),
		test(test_no_list),
		test(test_the_same_again_changes_nothing),
		test(test_another_place),
		test(test_turned_off),
		test(test_a_place_that_is_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
