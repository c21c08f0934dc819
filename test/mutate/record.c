/* SPDX-License-Identifier: Apache-2.0 */
#include "test/mutate/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/mux.h"
#include "core/lib/wire/ttrpc.h"
#include "proto/nri.pb-c.h"

#define PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"
#define N_OBJECTS 4u

/* A pod with one container, Guaranteed with `cpus` CPUs, or BestEffort with 0. */
struct object {
	Nri__PodSandbox pod;
	Nri__LinuxPodSandbox lnx_pod;
	Nri__Container ctr;
	Nri__LinuxContainer lnx;
	Nri__LinuxResources res;
	Nri__LinuxCPU cpu;
	Nri__LinuxMemory memory;
	Nri__OptionalUInt64 shares, period;
	Nri__OptionalInt64 quota, limit;
	Nri__OptionalInt oom;
	Nri__PodSandbox__AnnotationsEntry note, *notes[1];
	Nri__Mount mount, *mounts[1];
	char *env[1];
	char pod_id[16], ctr_id[16], name[16];
};

static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

static void object_init(struct object *o, unsigned i, unsigned cpus)
{
	*o = (struct object){.pod = NRI__POD_SANDBOX__INIT,
			     .lnx_pod = NRI__LINUX_POD_SANDBOX__INIT,
			     .ctr = NRI__CONTAINER__INIT,
			     .lnx = NRI__LINUX_CONTAINER__INIT,
			     .res = NRI__LINUX_RESOURCES__INIT,
			     .cpu = NRI__LINUX_CPU__INIT,
			     .memory = NRI__LINUX_MEMORY__INIT,
			     .shares = NRI__OPTIONAL_UINT64__INIT,
			     .period = NRI__OPTIONAL_UINT64__INIT,
			     .quota = NRI__OPTIONAL_INT64__INIT,
			     .limit = NRI__OPTIONAL_INT64__INIT,
			     .oom = NRI__OPTIONAL_INT__INIT,
			     .note = NRI__POD_SANDBOX__ANNOTATIONS_ENTRY__INIT,
			     .mount = NRI__MOUNT__INIT};
	(void)snprintf(o->pod_id, sizeof o->pod_id, "pod%u", i);
	(void)snprintf(o->ctr_id, sizeof o->ctr_id, "ctr%u", i);
	(void)snprintf(o->name, sizeof o->name, "name%u", i);
	o->note.key = text("prefer-cpu-type.nri.io/container.main");
	o->note.value = text("{\"a\": [1, 2]}");
	o->notes[0] = &o->note;
	o->pod.id = o->pod_id;
	o->pod.name = o->name;
	o->pod.uid = text("11111111-2222-3333-4444-555555555555");
	o->pod.namespace_ = text(i % 2 ? "default" : "kube-system");
	o->pod.annotations = o->notes;
	o->pod.n_annotations = 1;
	o->pod.lnx = &o->lnx_pod;
	o->lnx_pod.cgroup_parent = text(cpus ? "/kubepods/pod1" : "/kubepods/besteffort/pod1");
	o->shares.value = cpus ? cpus * 1024 : 2;
	o->period.value = 100000;
	o->quota.value = cpus * 100000;
	o->limit.value = 64 << 20;
	o->oom.value = cpus ? -997 : 1000;
	o->cpu.shares = &o->shares;
	o->cpu.period = cpus ? &o->period : NULL;
	o->cpu.quota = cpus ? &o->quota : NULL;
	o->memory.limit = cpus ? &o->limit : NULL;
	o->res.cpu = &o->cpu;
	o->res.memory = &o->memory;
	o->lnx.resources = &o->res;
	o->lnx.oom_score_adj = &o->oom;
	o->lnx.cgroups_path = text("kubepods-pod1.slice:cri-containerd:abc");
	o->mount.source = o->mount.destination = text("/data");
	o->mounts[0] = &o->mount;
	o->env[0] = text("PATH=/bin");
	o->ctr.id = o->ctr_id;
	o->ctr.pod_sandbox_id = o->pod_id;
	o->ctr.name = text("main");
	o->ctr.lnx = &o->lnx;
	o->ctr.mounts = o->mounts;
	o->ctr.n_mounts = 1;
	o->ctr.env = o->env;
	o->ctr.n_env = 1;
	o->ctr.created_at = 1000 + i;
}

static void add(struct session *s, const char *method, const ProtobufCMessage *msg)
{
	if (s->n == MESSAGES_MAX)
		abort();
	struct message *m = &s->messages[s->n++];
	*m = (struct message){.conn = method ? MUX_CONN_PLUGIN : MUX_CONN_RUNTIME,
			      .stream = method ? 2 * s->n + 1 : 1,
			      .response = !method,
			      .method = method};
	size_t size = msg ? protobuf_c_message_get_packed_size(msg) : 0;
	uint8_t *room = size ? buf_reserve(&m->payload, size) : NULL;
	if (room)
		buf_commit(&m->payload, protobuf_c_message_pack(msg, room));
}

/* Pod and container, as most requests have them. */
static void add_about(struct session *s, const char *method, struct object *o)
{
	Nri__UpdateContainerRequest m = NRI__UPDATE_CONTAINER_REQUEST__INIT;
	m.pod = &o->pod;
	m.container = strstr(method, "Pod") ? NULL : &o->ctr;
	if (strcmp(method, "UpdateContainer") == 0)
		m.linux_resources = &o->res;
	add(s, method, &m.base);
}

static void add_list(struct session *s, struct object *o, unsigned n, bool more)
{
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	Nri__PodSandbox *pods[N_OBJECTS];
	Nri__Container *ctrs[N_OBJECTS];
	for (unsigned i = 0; i < n; i++) {
		pods[i] = &o[i].pod;
		ctrs[i] = &o[i].ctr;
	}
	m.pods = pods;
	m.containers = ctrs;
	m.n_pods = m.n_containers = n;
	m.more = more;
	add(s, "Synchronize", &m.base);
}

void session_record(struct session *s)
{
	static const char *const life[] = {"RunPodSandbox", "CreateContainer",
					   "PostCreateContainer", "StartContainer",
					   "PostStartContainer"};
	static const char *const end[] = {"StopContainer", "RemoveContainer", "StopPodSandbox",
					  "RemovePodSandbox"};
	struct object objects[N_OBJECTS];
	*s = (struct session){0};
	for (unsigned i = 0; i < N_OBJECTS; i++)
		object_init(&objects[i], i, i % 3);
	add(s, NULL, NULL); /* yes, you are registered */
	Nri__ConfigureRequest c = NRI__CONFIGURE_REQUEST__INIT;
	c.runtime_name = text("containerd");
	c.runtime_version = text("v2.1.0");
	c.request_timeout = 2000;
	add(s, "Configure", &c.base);
	objects[0].ctr.state = objects[1].ctr.state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	add_list(s, objects, 1, true);
	add_list(s, objects + 1, 1, false);
	for (unsigned i = 2; i < N_OBJECTS; i++)
		for (unsigned k = 0; k < sizeof life / sizeof *life; k++)
			add_about(s, life[k], &objects[i]);
	objects[2].shares.value = 3072;
	objects[2].quota.value = 300000;
	add_about(s, "UpdateContainer", &objects[2]);
	Nri__StateChangeEvent e = NRI__STATE_CHANGE_EVENT__INIT;
	e.event = NRI__EVENT__POST_UPDATE_CONTAINER;
	e.pod = &objects[2].pod;
	e.container = &objects[2].ctr;
	add(s, "StateChange", &e.base);
	add_list(s, objects, N_OBJECTS, false);
	for (unsigned k = 0; k < sizeof end / sizeof *end; k++)
		add_about(s, end[k], &objects[3]);
	e.event = NRI__EVENT__REMOVE_CONTAINER;
	add(s, "StateChange", &e.base);
	add(s, "Shutdown", NULL);
}

void session_fini(struct session *s)
{
	for (unsigned i = 0; i < s->n; i++)
		buf_fini(&s->messages[i].payload);
	s->n = 0;
}

void session_copy(struct session *to, const struct session *from)
{
	to->n = from->n;
	for (unsigned i = 0; i < from->n; i++) {
		to->messages[i] = from->messages[i];
		to->messages[i].payload = (struct buf)BUF_INIT;
		if (buf_len(&from->messages[i].payload))
			(void)buf_add(&to->messages[i].payload,
				      buf_bytes(&from->messages[i].payload),
				      buf_len(&from->messages[i].payload));
	}
}

/* The envelopes by hand: their payload is no message any more. */
static void put_field(struct buf *b, uint8_t tag, const void *data, size_t n)
{
	uint8_t head[8] = {tag};
	size_t used = 1;
	for (size_t left = n;; left >>= 7) {
		head[used++] = (uint8_t)(left > 0x7f ? (left & 0x7f) | 0x80 : left);
		if (left <= 0x7f)
			break;
	}
	(void)buf_add(b, head, used);
	(void)buf_add(b, data, n);
}

void session_encode(const struct session *s, struct buf *out)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct message *m = &s->messages[i];
		struct buf envelope = BUF_INIT;
		if (m->response) {
			put_field(&envelope, 0x12, buf_bytes(&m->payload), buf_len(&m->payload));
		} else {
			put_field(&envelope, 0x0a, PLUGIN_SERVICE, strlen(PLUGIN_SERVICE));
			put_field(&envelope, 0x12, m->method, strlen(m->method));
			put_field(&envelope, 0x1a, buf_bytes(&m->payload), buf_len(&m->payload));
		}
		size_t size = buf_len(&envelope), n = TTRPC_HEADER_SIZE + size;
		uint8_t *p = mux_begin(out, n, MUX_FIRST_FRAME_MAX);
		if (!p)
			abort();
		ttrpc_header_encode(
			p, &(struct ttrpc_header){(uint32_t)size, m->stream,
						  m->response ? TTRPC_RESPONSE : TTRPC_REQUEST, 0});
		memcpy(p + TTRPC_HEADER_SIZE, buf_bytes(&envelope), size);
		mux_end(out, m->conn, n, MUX_FIRST_FRAME_MAX);
		buf_fini(&envelope);
	}
}
