/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that does as a test says, at the other end of the simulated runtime's socket. */
#ifndef TEST_UNIT_T_SIM_PLUGIN_H
#define TEST_UNIT_T_SIM_PLUGIN_H

#include <stdlib.h>
#include <unistd.h>

#include "core/nri-rp-sim/apply.h"
#include "core/nri-rp-sim/conn.h"
#include "core/nri-rp-sim/daemon.h"
#include "core/nri-rp-sim/model.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"
#include "t_sim.h"

#define WAIT_MS 5000

struct plugin {
	struct sim *s;
	struct trunk *trunk;
	struct rpc_request *held;
	char calls[2000]; /* methods, each with a blank behind it */
	char registered[200]; /* result of the registration; "" until then */
	char updated[200]; /* … of an update of our own */
	bool lost;
	/* results of the plugin's answers; 0 and NULL: regular answers */
	int32_t events;
	bool no_echo, update_in_part, garbage, silent, no_methods;
	const char *error; /* to everything but Configure and Synchronize */
	void (*create)(struct plugin *p, struct rpc_request *req);
	void (*stop)(struct plugin *p, struct rpc_request *req);
	void (*resize)(struct plugin *p, struct rpc_request *req);
};

static char *writable(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* ---- messages -------------------------------------------------------------------------------- */

struct update {
	Nri__ContainerUpdate u;
	Nri__LinuxContainerUpdate l;
	Nri__LinuxResources r;
	Nri__LinuxCPU c;
};

static Nri__ContainerUpdate *make_update(struct update *x, const char *id, const char *cpus,
					 const char *mems)
{
	nri__container_update__init(&x->u);
	nri__linux_container_update__init(&x->l);
	nri__linux_resources__init(&x->r);
	nri__linux_cpu__init(&x->c);
	x->u.container_id = writable(id);
	x->u.lnx = &x->l;
	x->l.resources = &x->r;
	x->r.cpu = &x->c;
	x->c.cpus = writable(cpus);
	x->c.mems = writable(mems);
	return &x->u;
}

static const char *id_of(struct plugin *p, const char *name)
{
	const struct sim_ctr *c = model_find_ctr(p->s, name);
	assert_non_null(c);
	return c->id;
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static void on_synchronize(struct plugin *p, struct rpc_request *req)
{
	struct update x;
	Nri__ContainerUpdate *list[1];
	Nri__SynchronizeResponse out = NRI__SYNCHRONIZE_RESPONSE__INIT;
	Nri__SynchronizeRequest *m =
		nri__synchronize_request__unpack(NULL, req->payload_len, req->payload);
	assert_non_null(m);
	out.more = p->no_echo ? 0 : m->more;
	if (p->update_in_part) {
		list[0] = make_update(&x, "c", "1", "");
		out.update = list;
		out.n_update = 1;
	}
	nri__synchronize_request__free_unpacked(m, NULL);
	(void)rpc_reply(req, &out.base);
}

static void on_call(struct rpc_request *req, void *arg)
{
	struct plugin *p = arg;
	Nri__ConfigureResponse configured = NRI__CONFIGURE_RESPONSE__INIT;
	assert_true(strlen(p->calls) + strlen(req->method) + 2 < sizeof p->calls);
	strcat(p->calls, req->method);
	strcat(p->calls, " ");
	configured.events = p->events;
	if (p->silent) {
		p->held = req;
	} else if (p->garbage) {
		Nri__RegisterPluginRequest nonsense = NRI__REGISTER_PLUGIN_REQUEST__INIT;
		/* texts where there are numbers and messages */
		nonsense.plugin_name = nonsense.plugin_idx = writable("\xff\xff\xff\xff");
		(void)rpc_reply(req, &nonsense.base);
	} else if (str_eq(req->method, "Configure")) {
		(void)rpc_reply(req, &configured.base);
	} else if (str_eq(req->method, "Synchronize")) {
		on_synchronize(p, req);
	} else if (p->error) {
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "%s", p->error);
	} else if (p->no_methods && !str_eq(req->method, "StateChange") &&
		   !strstr(req->method, "CreateC")) {
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "method %s", req->method);
	} else if (p->create && str_eq(req->method, "CreateContainer")) {
		p->create(p, req);
	} else if (p->stop && str_eq(req->method, "StopContainer")) {
		p->stop(p, req);
	} else if (p->resize && str_eq(req->method, "UpdateContainer")) {
		p->resize(p, req);
	} else {
		(void)rpc_reply(req, NULL);
	}
}

static void on_registered(const struct rpc_result *result, void *arg)
{
	struct plugin *p = arg;
	(void)snprintf(p->registered, sizeof p->registered, "%s",
		       result->error ? result->text : "yes");
	sim_wake(p->s);
}

static void on_updated(const struct rpc_result *result, void *arg)
{
	struct plugin *p = arg;
	(void)snprintf(p->updated, sizeof p->updated, "%s", result->error ? result->text : "yes");
	sim_wake(p->s);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct plugin *p = arg;
	p->lost = true;
	sim_wake(p->s);
}

static void connect_plugin(struct plugin *p)
{
	struct err err = ERR_INIT;
	const struct trunk_config config = {.mux = true, .closed = on_closed, .arg = p};
	int fd = wire_connect_unix(p->s->socket, &err);
	if (fd < 0 || trunk_new(p->s->loop, fd, &config, &p->trunk, &err))
		fail_msg("%s", err.text);
	rpc_serve(trunk_rpc(p->trunk, MUX_CONN_PLUGIN), on_call, p);
}

static void call(struct plugin *p, const char *service, const char *method,
		 const ProtobufCMessage *m, rpc_done done)
{
	assert_int_equal(
		rpc_call(trunk_rpc(p->trunk, MUX_CONN_RUNTIME), service, method, m, 0, done, p), 0);
}

static void register_plugin(struct plugin *p, const char *name, const char *index)
{
	Nri__RegisterPluginRequest m = NRI__REGISTER_PLUGIN_REQUEST__INIT;
	m.plugin_name = writable(name);
	m.plugin_idx = writable(index);
	call(p, "nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin", &m.base, on_registered);
}

static void ask_for_updates(struct plugin *p, Nri__ContainerUpdate **list, size_t n)
{
	Nri__UpdateContainersRequest m = NRI__UPDATE_CONTAINERS_REQUEST__INIT;
	m.update = list;
	m.n_update = n;
	p->updated[0] = '\0';
	call(p, "nri.pkg.api.v1alpha1.Runtime", "UpdateContainers", &m.base, on_updated);
}

static bool is_lost(struct sim *s, void *arg)
{
	return ((const struct plugin *)arg)->lost;
}

static bool is_updated(struct sim *s, void *arg)
{
	return ((const struct plugin *)arg)->updated[0];
}

/* Creates a node with a runtime that listens and has no connections. */
static struct plugin node(const char *head)
{
	struct plugin p = {.s = sim_made(head)};
	struct err err = ERR_INIT;
	if (conn_listen(p.s, &err))
		fail_msg("%s", err.text);
	return p;
}

static void start_plugin(struct plugin *p)
{
	connect_plugin(p);
	register_plugin(p, "test", "10");
}

static void start_active(struct plugin *p)
{
	struct err err = ERR_INIT;
	start_plugin(p);
	if (conn_wait_active(p->s, 0, WAIT_MS, &err))
		fail_msg("%s", err.text);
}

static void expect_lost(struct plugin *p, const char *problem)
{
	assert_int_equal(sim_wait(p->s, is_lost, p, WAIT_MS), 0);
	assert_true(sim_has_problem(p->s, problem));
	assert_false(conn_is_active(p->s));
}

static void end(struct plugin *p)
{
	if (p->held)
		(void)rpc_reply(p->held, NULL);
	trunk_free(p->trunk);
	sim_free(p->s);
}

#endif
