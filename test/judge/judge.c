/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that believes nothing: it listens to all events and says which of the promises that NRI
 * makes to plugins a runtime has broken.
 *
 *   judge [-c] [-p CPUS] [-r NAME] [-e EVENTS] SOCKET
 *
 * Each event is a line on standard output, "METHOD ID NAME", and each promise that is broken one
 * that begins with BROKEN. -c: containers have cgroups before they are started. -p: every container
 * gets these CPUs, and later events have to show them.
 * -r: pods of that name are refused. -e: the mask of events, default all but the validator's. Ends
 * when the runtime closes the connection, with 1 when anything was broken.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/hash.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"

#define EVENTS_ALL 0x1fffu
#define ANSWER_MS 2u /* after which the next event may come, and not before */

enum stage { CREATING, CREATED, STARTING, RUNNING, STOPPED };

struct known {
	char *id, *pod; /* pod NULL: it is one */
	enum stage stage;
	unsigned n_ctrs; /* number of the pod's existing containers */
	bool adjusted; /* created with the requested adjustment */
	UT_hash_handle hh;
};

static struct judge {
	struct loop *loop;
	struct loop_timer *timer;
	struct known *known;
	struct rpc_request *waits; /* for its answer */
	const char *cpus, *refuse;
	uint32_t events;
	bool synchronized, cgroups;
	unsigned n_broken;
} judge;

static void broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void broken(const char *fmt, ...)
{
	va_list ap;
	judge.n_broken++;
	(void)fputs("BROKEN: ", stdout);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
}

/* ---- known pods and containers --------------------------------------------------------------- */

static struct known *find(const char *id)
{
	struct known *k;
	HASH_FIND_STR(judge.known, id, k);
	return k;
}

static struct known *add(const char *id, const char *pod, enum stage stage)
{
	struct known *k = calloc(1, sizeof *k), *of = pod ? find(pod) : NULL;
	if (!k)
		abort();
	k->id = strdup(id);
	k->pod = pod ? strdup(pod) : NULL;
	k->stage = stage;
	HASH_ADD_KEYPTR(hh, judge.known, k->id, strlen(k->id), k);
	if (of)
		of->n_ctrs++;
	return k;
}

static void forget(struct known *k)
{
	struct known *of = k->pod ? find(k->pod) : NULL;
	if (of)
		of->n_ctrs--;
	HASH_DEL(judge.known, k);
	free(k->id);
	free(k->pod);
	free(k);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void judge_resources(const char *method, const Nri__Container *c)
{
	const Nri__LinuxResources *r = c->lnx ? c->lnx->resources : NULL;
	if (judge.cpus && (!r || !r->cpu || !str_eq(r->cpu->cpus, judge.cpus)))
		broken("%s %s does not show the CPUs %s", method, c->id, judge.cpus);
}

static void judge_create(const Nri__PodSandbox *pod, const Nri__Container *c)
{
	if (find(c->id))
		broken("CreateContainer %s, which is there", c->id);
	else
		(void)add(c->id, pod->id, CREATING);
	if (c->state != NRI__CONTAINER_STATE__CONTAINER_UNKNOWN || c->pid)
		broken("CreateContainer %s has a state or a process", c->id);
}

/* Stages in which each event is allowed, and the stage after it. */
static const struct step {
	const char *method;
	unsigned before; /* bits of stages */
	enum stage then;
} steps[] = {
	{"PostCreateContainer", 1u << CREATING, CREATED},
	{"StartContainer", 1u << CREATED, STARTING},
	{"PostStartContainer", 1u << STARTING, RUNNING},
	{"UpdateContainer", 1u << CREATED | 1u << STARTING | 1u << RUNNING, RUNNING},
	{"PostUpdateContainer", 1u << CREATED | 1u << STARTING | 1u << RUNNING, RUNNING},
	{"StopContainer", 1u << CREATING | 1u << CREATED | 1u << STARTING | 1u << RUNNING, STOPPED},
	{"RemoveContainer", 1u << STOPPED, STOPPED},
};

static void judge_step(const struct step *step, const Nri__PodSandbox *pod, const Nri__Container *c)
{
	struct known *k = find(c->id);
	if (!k || !k->pod || !str_eq(k->pod, pod->id)) {
		broken("%s %s, which is no container of that pod", step->method, c->id);
		return;
	}
	if (!(step->before >> k->stage & 1u))
		broken("%s %s in the stage %d", step->method, c->id, k->stage);
	k->adjusted = k->adjusted || str_eq(step->method, "PostCreateContainer");
	if (k->adjusted)
		judge_resources(step->method, c);
	if (judge.cgroups && str_eq(step->method, "StartContainer") &&
	    !(c->lnx && *c->lnx->cgroups_path))
		broken("StartContainer %s without a cgroup", c->id);
	/* A resize changes nothing about whether it runs. */
	if (!strstr(step->method, "Update"))
		k->stage = step->then;
	if (str_eq(step->method, "RemoveContainer"))
		forget(k);
}

static void judge_ctr(const char *method, const Nri__PodSandbox *pod, const Nri__Container *c)
{
	const struct known *of = find(pod->id);
	if (!of || of->pod)
		broken("%s %s in a pod that there is not, %s", method, c->id, pod->id);
	if (!str_eq(c->pod_sandbox_id, pod->id))
		broken("%s %s says it is in another pod", method, c->id);
	if (str_eq(method, "CreateContainer"))
		judge_create(pod, c);
	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
		if (str_eq(method, steps[i].method))
			judge_step(&steps[i], pod, c);
}

static void judge_pod(const char *method, const Nri__PodSandbox *pod)
{
	struct known *k = find(pod->id);
	if (str_eq(method, "RunPodSandbox") && k)
		broken("RunPodSandbox %s, which is there", pod->id);
	else if (str_eq(method, "RunPodSandbox"))
		k = add(pod->id, NULL, RUNNING);
	else if (!k || k->pod)
		broken("%s %s, which is not there", method, pod->id);
	if (!k || k->pod)
		return;
	if (!*pod->name || !*pod->uid)
		broken("%s %s has no name or no uid", method, pod->id);
	if (str_eq(method, "StopPodSandbox"))
		k->stage = STOPPED;
	if (!str_eq(method, "RemovePodSandbox"))
		return;
	if (k->stage != STOPPED || k->n_ctrs)
		broken("RemovePodSandbox %s, which is not stopped or has %u containers", pod->id,
		       k->n_ctrs);
	forget(k);
}

static void judge_event(const char *method, const Nri__PodSandbox *pod, const Nri__Container *c)
{
	if (!judge.synchronized)
		broken("%s before Synchronize", method);
	if (!pod) {
		broken("%s without a pod", method);
		return;
	}
	printf("%s %s %s\n", method, c ? c->id : pod->id, c ? c->name : pod->name);
	if (c)
		judge_ctr(method, pod, c);
	else
		judge_pod(method, pod);
}

static void synchronize(const struct rpc_request *req, Nri__SynchronizeResponse *out)
{
	Nri__SynchronizeRequest *m =
		nri__synchronize_request__unpack(NULL, req->payload_len, req->payload);
	for (size_t i = 0; m && i < m->n_pods; i++)
		if (!find(m->pods[i]->id))
			(void)add(m->pods[i]->id, NULL, RUNNING);
	for (size_t i = 0; m && i < m->n_containers; i++) {
		const Nri__Container *c = m->containers[i];
		bool runs = c->state == NRI__CONTAINER_STATE__CONTAINER_RUNNING;
		if (find(c->id))
			broken("Synchronize has %s twice", c->id);
		else
			(void)add(c->id, c->pod_sandbox_id, runs ? RUNNING : CREATED);
	}
	if (!m || judge.synchronized)
		broken("Synchronize that is undecodable, or one too many");
	out->more = m && m->more;
	judge.synchronized = !out->more;
	printf("Synchronize %zu %zu\n", m ? m->n_pods : 0, m ? m->n_containers : 0);
	nri__synchronize_request__free_unpacked(m, NULL);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void adjust(struct rpc_request *req)
{
	Nri__CreateContainerResponse out = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	Nri__ContainerAdjustment adjustment = NRI__CONTAINER_ADJUSTMENT__INIT;
	Nri__LinuxContainerAdjustment lnx = NRI__LINUX_CONTAINER_ADJUSTMENT__INIT;
	Nri__LinuxResources resources = NRI__LINUX_RESOURCES__INIT;
	Nri__LinuxCPU cpu = NRI__LINUX_CPU__INIT;
	cpu.cpus = (char *)(uintptr_t)judge.cpus;
	resources.cpu = &cpu;
	lnx.resources = &resources;
	adjustment.lnx = &lnx;
	out.adjust = &adjustment;
	(void)rpc_reply(req, &out.base);
}

static void on_time(void *arg)
{
	struct rpc_request *req = judge.waits;
	const char *answer = req->user;
	judge.waits = NULL;
	if (str_eq(answer, "refuse"))
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "the judge refuses it");
	else if (str_eq(answer, "adjust"))
		adjust(req);
	else
		(void)rpc_reply(req, NULL);
}

/* Judges an event and returns the name of the answer. */
static const char *answer_of(const char *method, const Nri__PodSandbox *pod,
			     const Nri__Container *c)
{
	judge_event(method, pod, c);
	if (str_eq(method, "CreateContainer") && judge.cpus)
		return "adjust";
	if (!str_eq(method, "RunPodSandbox") || !judge.refuse || !pod ||
	    !str_eq(pod->name, judge.refuse))
		return "nothing";
	forget(find(pod->id));
	return "refuse";
}

/* Any of the requests about a pod or a container: fields 1 and 2 of all of them. */
static const char *read_event(const struct rpc_request *req)
{
	const char *answer = "nothing";
	Nri__CreateContainerRequest *m =
		nri__create_container_request__unpack(NULL, req->payload_len, req->payload);
	if (m)
		answer = answer_of(req->method, m->pod, m->container);
	else
		broken("%s is undecodable", req->method);
	nri__create_container_request__free_unpacked(m, NULL);
	return answer;
}

static const char *read_change(const struct rpc_request *req)
{
	static const char *const names[] = {
		"UNKNOWN",	    "RunPodSandbox",	   "StopPodSandbox", "RemovePodSandbox",
		"CreateContainer",  "PostCreateContainer", "StartContainer", "PostStartContainer",
		"UpdateContainer",  "PostUpdateContainer", "StopContainer",  "RemoveContainer",
		"UpdatePodSandbox", "PostUpdatePodSandbox"};
	const char *answer = "nothing";
	Nri__StateChangeEvent *m =
		nri__state_change_event__unpack(NULL, req->payload_len, req->payload);
	if (m && (unsigned)m->event < sizeof names / sizeof *names)
		answer = answer_of(names[m->event], m->pod, m->container);
	else
		broken("StateChange is undecodable");
	nri__state_change_event__free_unpacked(m, NULL);
	return answer;
}

static void handle(struct rpc_request *req, void *arg)
{
	if (judge.waits) {
		broken("%s while another question waits for its answer", req->method);
		(void)rpc_reply(req, NULL);
	} else if (str_eq(req->method, "Configure")) {
		Nri__ConfigureResponse out = NRI__CONFIGURE_RESPONSE__INIT;
		out.events = (int32_t)judge.events;
		(void)rpc_reply(req, &out.base);
	} else if (str_eq(req->method, "Synchronize")) {
		Nri__SynchronizeResponse out = NRI__SYNCHRONIZE_RESPONSE__INIT;
		synchronize(req, &out);
		(void)rpc_reply(req, &out.base);
	} else {
		bool change = str_eq(req->method, "StateChange");
		req->user = (char *)(uintptr_t)(change ? read_change(req) : read_event(req));
		judge.waits = req;
		(void)loop_timer_arm(judge.timer, ANSWER_MS);
	}
	(void)fflush(stdout);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	printf("closed: %s\n", err->text);
	loop_stop(judge.loop);
}

static int run(const char *path)
{
	char name[] = "judge", index[] = "90", version[] = "v0.12.2";
	struct err err = ERR_INIT;
	struct trunk *trunk = NULL;
	judge.loop = loop_new();
	judge.timer = judge.loop ? loop_timer_new(judge.loop, on_time, NULL) : NULL;
	const struct trunk_config config = {.mux = true, .closed = on_closed};
	int fd = judge.timer ? wire_connect_unix(path, &err) : -1;
	if (fd < 0 || trunk_new(judge.loop, fd, &config, &trunk, &err)) {
		fprintf(stderr, "judge: %s\n", err.text);
		return 2;
	}
	rpc_serve(trunk_rpc(trunk, MUX_CONN_PLUGIN), handle, NULL);
	Nri__RegisterPluginRequest out = NRI__REGISTER_PLUGIN_REQUEST__INIT;
	out.plugin_name = name;
	out.plugin_idx = index;
	out.nri_version = version;
	(void)rpc_call(trunk_rpc(trunk, MUX_CONN_RUNTIME), "nri.pkg.api.v1alpha1.Runtime",
		       "RegisterPlugin", &out.base, 5000, NULL, NULL);
	(void)loop_run(judge.loop);
	return judge.n_broken > 0;
}

int main(int argc, char **argv)
{
	int opt;
	judge.events = EVENTS_ALL;
	while ((opt = getopt(argc, argv, "cp:r:e:")) != -1) {
		if (opt == 'c')
			judge.cgroups = true;
		else if (opt == 'p')
			judge.cpus = optarg;
		else if (opt == 'r')
			judge.refuse = optarg;
		else if (opt == 'e')
			judge.events = (uint32_t)strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	return optind == argc - 1 ? run(argv[optind]) : 2;
}
