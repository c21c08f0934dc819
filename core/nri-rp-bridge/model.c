/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/lib/util/pb.h"

#define ID_BYTES 32u
#define ARENA_BLOCK (16u << 10)

int model_new_id(char ret[MODEL_ID_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[ID_BYTES];
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return -errno;
	for (unsigned i = 0; i < ID_BYTES; i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[2 * ID_BYTES] = '\0';
	return 0;
}

/* ---- packed messages ------------------------------------------------------------------------- */

int packed_set(struct packed *p, const ProtobufCMessage *msg)
{
	size_t n = protobuf_c_message_get_packed_size(msg);
	uint8_t *data = malloc(n + 1);
	if (!data)
		return -ENOMEM;
	protobuf_c_message_pack(msg, data);
	free(p->data);
	*p = (struct packed){data, n};
	return 0;
}

void packed_fini(struct packed *p)
{
	free(p->data);
	*p = (struct packed){0};
}

Nri__PodSandbox *pod_message(struct arena *a, const struct pod *pod)
{
	return PB_UNPACK(a, nri__pod_sandbox, pod->msg.n, pod->msg.data);
}

Nri__Container *ctr_message(struct arena *a, const struct ctr *ctr)
{
	Nri__Container *m = PB_UNPACK(a, nri__container, ctr->msg.n, ctr->msg.data);
	if (m)
		m->state = ctr->state;
	return m;
}

void ctr_set_place(struct ctr *ctr, const char *cgroups_path, uint32_t pid)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, 0);
	Nri__Container *m = a ? ctr_message(a, ctr) : NULL;
	if (!m || !m->lnx)
		return;
	m->lnx->cgroups_path = (char *)(uintptr_t)cgroups_path;
	m->pid = pid;
	(void)packed_set(&ctr->msg, &m->base);
}

void pod_set_resources(struct pod *pod, Nri__LinuxResources *overhead,
		       Nri__LinuxResources *resources)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, 0);
	Nri__PodSandbox *m = a ? pod_message(a, pod) : NULL;
	if (!m || !m->lnx)
		return;
	if (overhead)
		m->lnx->pod_overhead = overhead;
	if (resources)
		m->lnx->pod_resources = resources;
	(void)packed_set(&pod->msg, &m->base);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void cgroup_info_fini(struct cgroup_info *info)
{
	free(info->cgroup);
	free(info->path);
	free(info->uid);
	free(info->name);
}

struct pod *pod_ref(struct pod *pod)
{
	pod->refs++;
	return pod;
}

struct pod *pod_unref(struct pod *pod)
{
	if (!pod || --pod->refs)
		return NULL;
	packed_fini(&pod->msg);
	cgroup_info_fini(&pod->info);
	free(pod->id);
	free(pod->cri_id);
	free(pod);
	return NULL;
}

struct ctr *ctr_ref(struct ctr *ctr)
{
	ctr->refs++;
	return ctr;
}

struct ctr *ctr_unref(struct ctr *ctr)
{
	if (!ctr || --ctr->refs)
		return NULL;
	pod_unref(ctr->pod);
	packed_fini(&ctr->msg);
	cgroup_info_fini(&ctr->info);
	packed_fini(&ctr->pending);
	free(ctr->id);
	free(ctr->cri_id);
	free(ctr);
	return NULL;
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct pod *model_pod(const struct model *m, const char *cri_id)
{
	struct pod *pod;
	HASH_FIND(by_cri, m->pods, cri_id, strlen(cri_id), pod);
	return pod;
}

struct ctr *model_ctr(const struct model *m, const char *cri_id)
{
	struct ctr *ctr;
	HASH_FIND(by_cri, m->ctrs_by_cri, cri_id, strlen(cri_id), ctr);
	return ctr;
}

struct ctr *model_ctr_by_id(const struct model *m, const char *id)
{
	struct ctr *ctr;
	HASH_FIND(by_id, m->ctrs, id, strlen(id), ctr);
	return ctr;
}

int model_name_pod(struct model *m, struct pod *pod, const char *cri_id)
{
	if (pod->cri_id || model_pod(m, cri_id))
		return -EEXIST;
	pod->cri_id = strdup(cri_id);
	if (!pod->cri_id)
		return -ENOMEM;
	HASH_ADD_KEYPTR(by_cri, m->pods, pod->cri_id, strlen(pod->cri_id), pod);
	if (!pod->by_cri.tbl) {
		free(pod->cri_id);
		pod->cri_id = NULL;
		return -ENOMEM;
	}
	pod->gone = false;
	pod_ref(pod);
	return 0;
}

int model_name_ctr(struct model *m, struct ctr *ctr, const char *cri_id)
{
	if (ctr->cri_id || ctr->gone || model_ctr(m, cri_id))
		return -EEXIST;
	ctr->cri_id = strdup(cri_id);
	if (!ctr->cri_id)
		return -ENOMEM;
	HASH_ADD_KEYPTR(by_cri, m->ctrs_by_cri, ctr->cri_id, strlen(ctr->cri_id), ctr);
	if (ctr->by_cri.tbl)
		return 0;
	free(ctr->cri_id);
	ctr->cri_id = NULL;
	return -ENOMEM;
}

struct pod *model_add_pod(struct model *m, const Nri__PodSandbox *msg, const char *cri_id)
{
	struct pod *pod = calloc(1, sizeof *pod);
	if (!pod)
		return NULL;
	pod->refs = 1;
	pod->gone = true;
	pod->id = strdup(msg->id);
	if (!pod->id || packed_set(&pod->msg, &msg->base) ||
	    (cri_id && model_name_pod(m, pod, cri_id)))
		return pod_unref(pod);
	return pod;
}

struct ctr *model_add_ctr(struct model *m, struct pod *pod, const Nri__Container *msg,
			  const char *cri_id)
{
	struct ctr *ctr = calloc(1, sizeof *ctr);
	if (!ctr)
		return NULL;
	ctr->refs = 1;
	ctr->gone = true;
	ctr->pod = pod_ref(pod);
	ctr->state = msg->state;
	ctr->id = strdup(msg->id);
	if (!ctr->id || packed_set(&ctr->msg, &msg->base) || model_ctr_by_id(m, msg->id))
		return ctr_unref(ctr);
	HASH_ADD_KEYPTR(by_id, m->ctrs, ctr->id, strlen(ctr->id), ctr);
	if (!ctr->by_id.tbl)
		return ctr_unref(ctr);
	ctr->gone = false;
	ctr_ref(ctr);
	if (cri_id && model_name_ctr(m, ctr, cri_id)) {
		model_remove_ctr(m, ctr);
		return ctr_unref(ctr);
	}
	return ctr;
}

void model_remove_pod(struct model *m, struct pod *pod)
{
	if (pod->gone)
		return;
	HASH_DELETE(by_cri, m->pods, pod);
	pod->gone = true;
	pod_unref(pod);
}

void model_remove_ctr(struct model *m, struct ctr *ctr)
{
	if (ctr->gone)
		return;
	HASH_DELETE(by_id, m->ctrs, ctr);
	if (ctr->cri_id)
		HASH_DELETE(by_cri, m->ctrs_by_cri, ctr);
	ctr->gone = true;
	ctr_unref(ctr);
}

void model_clear(struct model *m)
{
	struct pod *pod, *next_pod;
	struct ctr *ctr, *next_ctr;
	HASH_ITER (by_id, m->ctrs, ctr, next_ctr) {
		model_remove_ctr(m, ctr);
	}
	HASH_ITER (by_cri, m->pods, pod, next_pod) {
		model_remove_pod(m, pod);
	}
}
