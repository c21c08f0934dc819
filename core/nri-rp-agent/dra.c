/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/dra.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/nri-rp-agent/claim_work.h"
#include "core/nri-rp-agent/slices.h"
#include "core/nri-rp-agent/unary.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "proto/dra.pb-c.h"

#define LOG_SOURCE "dra"
#define REGISTRATION "/pluginregistration.Registration/"
#define DRIVER_V1 "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
#define DRIVER_V1BETA1 "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"
#define REQUEST_MAX (256u << 10)
#define REQUEST_ARENA (1u << 20)
#define SOCKET_MODE 0600
#define FOLDER_MODE 0750
#define END_MS 500u

struct dra {
	struct dra_config config;
	struct slices *slices;
	struct claim_work *work;
	struct unary_service service;
	char *folder; /* folder of the driver's socket */
	char *socket, *registration; /* paths of the sockets */
	/* servers of the kubelet's calls; NULL: not running */
	struct grpc_server *driver, *registrar;
	struct loop_timer *end;
	bool enabled;
	bool known; /* the daemon has reported whether claims are enabled */
	bool registered; /* the registration was logged already */
};

/* ---- requests of the kubelet ----------------------------------------------------------------- */

static void dra_serve_info(const struct dra *d, struct unary *u)
{
	static char type[] = "DRAPlugin", name[] = DRA_DRIVER;
	static char v1[] = "v1.DRAPlugin", v1beta1[] = "v1beta1.DRAPlugin";
	char *versions[] = {v1, v1beta1};
	Dra__PluginInfo m = DRA__PLUGIN_INFO__INIT;
	m.type = type;
	m.name = name;
	m.endpoint = d->socket;
	m.supported_versions = versions;
	m.n_supported_versions = sizeof versions / sizeof *versions;
	unary_answer(u, &m.base);
}

static void dra_serve_status(struct dra *d, struct unary *u, const uint8_t *payload, size_t n)
{
	_arena_ struct arena *a = arena_new(4096, REQUEST_ARENA);
	Dra__RegistrationStatusResponse out = DRA__REGISTRATION_STATUS_RESPONSE__INIT;
	const Dra__RegistrationStatus *m = PB_UNPACK(a, dra__registration_status, n, payload);
	if (m && m->plugin_registered && !d->registered)
		log_notice("the kubelet has registered the driver %s", DRA_DRIVER);
	else if (m && !m->plugin_registered)
		log_error("the kubelet does not register the driver %s: %.300s", DRA_DRIVER,
			  m->error);
	d->registered = m && m->plugin_registered;
	unary_answer(u, &out.base);
}

static void dra_serve_claims(const struct dra *d, struct unary *u, bool prepare,
			     const uint8_t *payload, size_t n)
{
	_arena_ struct arena *a = arena_new(4096, REQUEST_ARENA);
	const Dra__ClaimsRequest *m = PB_UNPACK(a, dra__claims_request, n, payload);
	if (!m)
		unary_fail(u, GRPC_INVALID_ARGUMENT, "cannot decode the claims");
	else
		claim_work_serve(d->work, u, m, prepare);
}

/* Returns the name of a method of the driver's service in any of its versions; NULL: another
 * service. */
static const char *dra_method(const char *path)
{
	if (str_has_prefix(path, DRIVER_V1))
		return path + sizeof DRIVER_V1 - 1;
	return str_has_prefix(path, DRIVER_V1BETA1) ? path + sizeof DRIVER_V1BETA1 - 1 : NULL;
}

static void dra_serve(struct unary *u, const char *path, const uint8_t *payload, size_t n,
		      void *arg)
{
	struct dra *d = arg;
	const char *method = dra_method(path);
	if (str_eq(path, REGISTRATION "GetInfo"))
		dra_serve_info(d, u);
	else if (str_eq(path, REGISTRATION "NotifyRegistrationStatus"))
		dra_serve_status(d, u, payload, n);
	else if (method && str_eq(method, "NodePrepareResources"))
		dra_serve_claims(d, u, true, payload, n);
	else if (method && str_eq(method, "NodeUnprepareResources"))
		dra_serve_claims(d, u, false, payload, n);
	else
		unary_fail(u, GRPC_UNIMPLEMENTED, "this driver does not implement the method");
}

/* ---- sockets --------------------------------------------------------------------------------- */

static void dra_close(struct dra *d)
{
	/* the kubelet forgets the driver when its registration socket disappears */
	d->registrar = grpc_server_free(d->registrar);
	d->driver = grpc_server_free(d->driver);
	d->registered = false;
}

static void dra_open(struct dra *d)
{
	struct err err = ERR_INIT;
	int r = fs_mkdirs(d->folder, FOLDER_MODE, &err);
	if (!r)
		r = unary_listen(&d->service, d->socket, SOCKET_MODE, &d->driver, &err);
	if (!r)
		r = unary_listen(&d->service, d->registration, SOCKET_MODE, &d->registrar, &err);
	if (r) {
		log_error("claims cannot be served: %s; mount the kubelet's folder %s",
			  err_text(&err, r), d->config.kubelet_root);
		dra_close(d);
		kube_set_problem(d->config.kube, "dra", err_text(&err, r));
		return;
	}
	kube_set_problem(d->config.kube, "dra", NULL);
	log_info("driver %s of claims registers at %s", DRA_DRIVER, d->registration);
}

/* Ends the driver after its last claim, if claims are not enabled any more. */
static void dra_end(void *arg)
{
	struct dra *d = arg;
	if (d->enabled || !d->driver)
		return;
	log_info("driver %s of claims is switched off", DRA_DRIVER);
	dra_close(d);
	(void)rmdir(d->folder);
}

static void dra_idle(void *arg)
{
	const struct dra *d = arg;
	(void)loop_timer_arm(d->end, END_MS); /* the last answer has to be sent */
}

/* ---- state of the daemon --------------------------------------------------------------------- */

static void dra_disable(struct dra *d)
{
	/* the folder shows that an earlier run of the agent was a driver */
	bool before = d->enabled || (!d->known && access(d->folder, F_OK) == 0);
	d->enabled = false;
	if (!before)
		return;
	slices_withdraw(d->slices);
	if (!d->driver)
		dra_open(d);
	claim_work_reconcile(d->work);
}

int dra_take(struct dra *d, const Agent__PublishedRequest *m)
{
	int r = 0;
	if (m->dra) {
		bool first = !d->enabled;
		d->enabled = true;
		if (!d->driver)
			dra_open(d);
		if (first)
			claim_work_reconcile(d->work);
		r = slices_take(d->slices, m);
	} else {
		dra_disable(d);
	}
	d->known = true;
	return r;
}

void dra_check_claim(struct dra *d, const Agent__Claim *m, struct rpc_request *req)
{
	claim_work_check(d->work, m, req);
}

void dra_daemon_connected(struct dra *d)
{
	if (d->enabled)
		claim_work_reconcile(d->work);
}

void dra_node_seen(struct dra *d, const json_t *node)
{
	slices_node_seen(d->slices, node);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct dra *dra_new(const struct dra_config *config)
{
	struct dra *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->config = *config;
	d->service = (struct unary_service){.loop = kube_loop(config->kube),
					    .message_max = REQUEST_MAX,
					    .handle = dra_serve,
					    .arg = d};
	const struct claim_work_config work = {.link = config->link,
					       .kube = config->kube,
					       .driver = DRA_DRIVER,
					       .pool = config->node,
					       .cdi_dir = config->cdi_dir,
					       .idle = dra_idle,
					       .arg = d};
	d->folder = str_printf("%s/plugins/" DRA_DRIVER, config->kubelet_root);
	d->socket = str_printf("%s/plugins/" DRA_DRIVER "/dra.sock", config->kubelet_root);
	d->registration =
		str_printf("%s/plugins_registry/" DRA_DRIVER "-reg.sock", config->kubelet_root);
	d->slices = slices_new(config->kube, config->node, DRA_DRIVER);
	d->work = claim_work_new(&work);
	d->end = loop_timer_new(kube_loop(config->kube), dra_end, d);
	return d->folder && d->socket && d->registration && d->slices && d->work && d->end
		       ? d
		       : dra_free(d);
}

struct dra *dra_free(struct dra *d)
{
	if (!d)
		return NULL;
	dra_close(d);
	loop_timer_free(d->end);
	claim_work_free(d->work);
	slices_free(d->slices);
	free(d->folder);
	free(d->socket);
	free(d->registration);
	free(d);
	return NULL;
}
