/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/arena.h"
#include "test/bench/bench.h"
#include "core/lib/util/clock.h"

#define SERVICE "nri.pkg.api.v1alpha1.Plugin"
#define N_LABELS 5u
#define N_ENV 16u
#define N_MOUNTS 6u

struct told {
	struct bench *b;
	unsigned i; /* container under creation */
	bool create;
};

/* ---- messages as a kubelet's containerd sends them: about 3 kB ---- */

#define NEW(a, type, prefix)                                                                       \
	__extension__({                                                                            \
		type *m_ = arena_zero(a, type);                                                    \
		prefix##__init(m_);                                                                \
		m_;                                                                                \
	})

/* cpus: whole CPUs of a container; 0: a share of a CPU */
static Nri__LinuxResources *resources_of(struct arena *a, unsigned cpus)
{
	Nri__LinuxResources *r = NEW(a, Nri__LinuxResources, nri__linux_resources);
	r->cpu = NEW(a, Nri__LinuxCPU, nri__linux_cpu);
	r->cpu->shares = NEW(a, Nri__OptionalUInt64, nri__optional_uint64);
	r->cpu->shares->value = cpus ? 1024 * cpus : 102;
	r->cpu->period = NEW(a, Nri__OptionalUInt64, nri__optional_uint64);
	r->cpu->period->value = 100000;
	if (cpus) {
		r->cpu->quota = NEW(a, Nri__OptionalInt64, nri__optional_int64);
		r->cpu->quota->value = 100000 * (int64_t)cpus;
	}
	r->memory = NEW(a, Nri__LinuxMemory, nri__linux_memory);
	r->memory->limit = NEW(a, Nri__OptionalInt64, nri__optional_int64);
	r->memory->limit->value = 64 << 20;
	return r;
}

/* Returns what the QoS class of the pod adds to the names of its cgroups. */
static const char *class_of(const struct bench *b)
{
	return b->whole ? "" : "burstable-";
}

static unsigned cpus_of(const struct bench *b)
{
	return b->named ? 1 : b->whole;
}

static Nri__PodSandbox *pod_of(struct arena *a, const struct bench *b, unsigned i)
{
	Nri__PodSandbox *p = NEW(a, Nri__PodSandbox, nri__pod_sandbox);
	p->id = arena_printf(a, "%064x", 0x10000000u + i);
	p->name = arena_printf(a, "web-%u-7d9f8b6c5d-x2x4z", i);
	p->uid = arena_printf(a, "%08x-0000-4000-8000-000000000000", i);
	p->namespace_ = arena_strdup(a, "default");
	p->n_labels = N_LABELS;
	p->labels = arena_array(a, N_LABELS, sizeof *p->labels);
	p->n_annotations = N_LABELS;
	p->annotations = arena_array(a, N_LABELS, sizeof *p->annotations);
	for (unsigned k = 0; k < N_LABELS; k++) {
		p->labels[k] = NEW(a, Nri__PodSandbox__LabelsEntry, nri__pod_sandbox__labels_entry);
		p->labels[k]->key = arena_printf(a, "app.kubernetes.io/label-%u", k);
		p->labels[k]->value = arena_printf(a, "value-%u-of-pod-%u", k, i);
		p->annotations[k] = NEW(a, Nri__PodSandbox__AnnotationsEntry,
					nri__pod_sandbox__annotations_entry);
		p->annotations[k]->key = arena_printf(a, "io.kubernetes.cri.sandbox-%u", k);
		p->annotations[k]->value = arena_printf(a, "annotation-%u-of-pod-%u", k, i);
	}
	p->lnx = NEW(a, Nri__LinuxPodSandbox, nri__linux_pod_sandbox);
	p->lnx->pod_resources = resources_of(a, cpus_of(b));
	p->lnx->cgroup_parent = arena_printf(a, "kubepods-%spod%08x.slice", class_of(b), i);
	return p;
}

static void add_environment(struct arena *a, Nri__Container *c)
{
	c->n_env = N_ENV;
	c->env = arena_array(a, N_ENV, sizeof *c->env);
	for (unsigned k = 0; k < N_ENV; k++)
		c->env[k] = arena_printf(a, "KUBERNETES_SERVICE_%u=tcp://10.96.0.%u:443", k, k);
	c->n_mounts = N_MOUNTS;
	c->mounts = arena_array(a, N_MOUNTS, sizeof *c->mounts);
	for (unsigned k = 0; k < N_MOUNTS; k++) {
		c->mounts[k] = NEW(a, Nri__Mount, nri__mount);
		c->mounts[k]->destination = arena_printf(a, "/var/run/secrets/%u", k);
		c->mounts[k]->type = arena_strdup(a, "bind");
		c->mounts[k]->source = arena_printf(a, "/var/lib/kubelet/pods/x/volumes/%u", k);
	}
}

static Nri__Container *ctr_of(struct arena *a, const struct bench *b, unsigned i, bool exists)
{
	Nri__Container *c = NEW(a, Nri__Container, nri__container);
	c->id = arena_printf(a, "%064x", 0x20000000u + i);
	c->pod_sandbox_id = arena_printf(a, "%064x", 0x10000000u + i);
	c->name = arena_strdup(a, "app");
	c->state = exists ? NRI__CONTAINER_STATE__CONTAINER_RUNNING
			  : NRI__CONTAINER_STATE__CONTAINER_UNKNOWN;
	add_environment(a, c);
	c->lnx = NEW(a, Nri__LinuxContainer, nri__linux_container);
	c->lnx->resources = resources_of(a, cpus_of(b));
	c->lnx->oom_score_adj = NEW(a, Nri__OptionalInt, nri__optional_int);
	c->lnx->oom_score_adj->value = 990;
	c->lnx->cgroups_path = arena_printf(a, "kubepods-%spod%08x.slice:cri-containerd:%s",
					    class_of(b), i, c->id);
	return c;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void sample(struct bench *b, enum kind kind, uint64_t ns)
{
	struct samples *s = &b->samples[kind];
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 4096;
		s->ns = realloc(s->ns, s->cap * sizeof *s->ns);
		if (!s->ns)
			abort();
	}
	s->ns[s->n++] = (uint32_t)(ns > UINT32_MAX ? UINT32_MAX : ns);
}

static void remember(struct bench *b, unsigned i, const Nri__LinuxResources *r)
{
	if (i >= LIVE_MAX || !r || !r->cpu)
		return;
	if (*r->cpu->cpus)
		(void)snprintf(b->cpus[i], sizeof *b->cpus, "%s", r->cpu->cpus);
	if (*r->cpu->mems)
		(void)snprintf(b->mems[i], sizeof *b->mems, "%s", r->cpu->mems);
}

static void learn(struct bench *b, const Nri__ContainerUpdate *const *updates, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		const char *id = updates[k]->container_id;
		if (updates[k]->lnx)
			remember(b, (unsigned)strtoul(id + strlen(id) - 7, NULL, 16),
				 updates[k]->lnx->resources);
	}
	b->updates += (unsigned)n;
}

static void answered(const struct rpc_result *result, void *arg)
{
	struct told *t = arg;
	struct bench *b = t->b;
	uint64_t took = clock_ns() - b->t0_ns;
	b->t0_ns = took;
	b->done = true;
	if (result->error) {
		fprintf(stderr, "bench: %s\n", result->text);
		b->failed = true;
	} else if (t->create && result->payload_len) {
		Nri__CreateContainerResponse *m = nri__create_container_response__unpack(
			NULL, result->payload_len, result->payload);
		if (m && m->adjust && m->adjust->lnx)
			remember(b, t->i, m->adjust->lnx->resources);
		if (m)
			learn(b, (const Nri__ContainerUpdate *const *)m->update, m->n_update);
		if (m)
			nri__create_container_response__free_unpacked(m, NULL);
	}
	loop_stop(b->loop);
}

static int ask(struct bench *b, enum kind kind, const char *method, const ProtobufCMessage *msg,
	       struct told *t)
{
	b->done = false;
	b->t0_ns = clock_ns();
	if (rpc_call(b->plugin, SERVICE, method, msg, 60000, answered, t))
		return -1;
	while (!b->done && !b->failed)
		(void)loop_run(b->loop);
	if (kind < N_KINDS && !b->failed)
		sample(b, kind, b->t0_ns);
	return b->failed ? -1 : 0;
}

int bench_ask(struct bench *b, enum kind kind, const char *method, const ProtobufCMessage *msg)
{
	struct told t = {b, 0, false};
	return ask(b, kind, method, msg, &t);
}

int bench_configure(struct bench *b)
{
	char name[] = "containerd", version[] = "v2.3.0", nri[] = "v0.12.2";
	Nri__ConfigureRequest m = NRI__CONFIGURE_REQUEST__INIT;
	m.runtime_name = name;
	m.runtime_version = version;
	m.nri_version = nri;
	m.request_timeout = 60000;
	return bench_ask(b, N_KINDS, "Configure", &m.base);
}

int bench_synchronize(struct bench *b, unsigned n)
{
	struct arena *a = arena_new(1 << 20, (size_t)1 << 30);
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	m.pods = arena_array(a, n + 1, sizeof *m.pods);
	m.containers = arena_array(a, n + 1, sizeof *m.containers);
	for (unsigned i = 0; i < n; i++) {
		m.pods[m.n_pods++] = pod_of(a, b, i);
		m.containers[m.n_containers++] = ctr_of(a, b, i, true);
		m.containers[i]->lnx->resources->cpu->cpus = b->cpus[i];
		m.containers[i]->lnx->resources->cpu->mems = b->mems[i];
	}
	int r = bench_ask(b, N_KINDS, "Synchronize", &m.base);
	arena_free(a);
	return r;
}

/* Makes the pod's annotation request these CPUs, even if other containers have them. */
static void name_cpus(struct arena *a, Nri__PodSandbox *pod, const char *cpus)
{
	if (!cpus)
		return;
	pod->annotations[0]->key = arena_strdup(a, "weka.io/cores-ids");
	pod->annotations[0]->value = arena_strdup(a, cpus);
}

int bench_create(struct bench *b, unsigned i, const char *names)
{
	struct arena *a = arena_new(16384, 1 << 20);
	struct told t = {b, i, true};
	Nri__RunPodSandboxRequest run = NRI__RUN_POD_SANDBOX_REQUEST__INIT;
	Nri__CreateContainerRequest create = NRI__CREATE_CONTAINER_REQUEST__INIT;
	Nri__StartContainerRequest start = NRI__START_CONTAINER_REQUEST__INIT;
	run.pod = create.pod = start.pod = pod_of(a, b, i);
	create.container = start.container = ctr_of(a, b, i, false);
	name_cpus(a, run.pod, names);
	int r = bench_ask(b, RUN_POD, "RunPodSandbox", &run.base);
	if (!r)
		r = ask(b, CREATE, "CreateContainer", &create.base, &t);
	create.container->state = NRI__CONTAINER_STATE__CONTAINER_CREATED;
	if (!r)
		r = bench_ask(b, START, "StartContainer", &start.base);
	arena_free(a);
	return r;
}

int bench_delete(struct bench *b, unsigned i)
{
	struct arena *a = arena_new(16384, 1 << 20);
	Nri__StopContainerRequest stop = NRI__STOP_CONTAINER_REQUEST__INIT;
	Nri__RemoveContainerRequest remove = NRI__REMOVE_CONTAINER_REQUEST__INIT;
	Nri__StopPodSandboxRequest stop_pod = NRI__STOP_POD_SANDBOX_REQUEST__INIT;
	Nri__RemovePodSandboxRequest remove_pod = NRI__REMOVE_POD_SANDBOX_REQUEST__INIT;
	stop.pod = remove.pod = stop_pod.pod = remove_pod.pod = pod_of(a, b, i);
	stop.container = remove.container = ctr_of(a, b, i, true);
	int r = bench_ask(b, STOP, "StopContainer", &stop.base);
	if (!r)
		r = bench_ask(b, STOP_POD, "StopPodSandbox", &stop_pod.base);
	if (!r)
		r = bench_ask(b, REMOVE, "RemoveContainer", &remove.base);
	if (!r)
		r = bench_ask(b, REMOVE_POD, "RemovePodSandbox", &remove_pod.base);
	b->cpus[i][0] = b->mems[i][0] = '\0';
	arena_free(a);
	return r;
}
