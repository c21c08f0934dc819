/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes a kubelet's request and a plugin's answer to it. Two bytes are the length of the kubelet's
 * message, the rest is the plugin's answer. The edited request can be packed and read again, and an
 * edit removes only the annotations that the answer names.
 */
#include <stdint.h>
#include <string.h>

#include "core/nri-rp-bridge/cri_edit.h"
#include "core/nri-rp-bridge/cri_info.h"
#include "core/lib/util/pb.h"
#include "test/fuzz/check.h"

#define ARENA_MAX (64u << 20)

static void check_packs(const ProtobufCMessage *m)
{
	uint8_t buffer[64];
	ProtobufCBufferSimple out = PROTOBUF_C_BUFFER_SIMPLE_INIT(buffer);
	size_t n = protobuf_c_message_get_packed_size(m);
	check(protobuf_c_message_pack_to_buffer(m, &out.base) == n && out.len == n);
	ProtobufCMessage *again = protobuf_c_message_unpack(m->descriptor, NULL, n, out.data);
	check(again != NULL);
	protobuf_c_message_free_unpacked(again, NULL);
	PROTOBUF_C_BUFFER_SIMPLE_CLEAR(&out);
}

static void edit_create(struct arena *a, Cri__CreateContainerRequest *m, const uint8_t *answer,
			size_t n)
{
	ProtobufCAllocator alloc = pb_arena(a);
	struct cri_missing missing = {0};
	const Nri__CreateContainerResponse *r =
		nri__create_container_response__unpack(&alloc, n, answer);
	Nri__Container *ctr = cri_container(a, "id", "pod", m->config);
	check(ctr != NULL);
	check_packs(&ctr->base);
	if (r && r->adjust)
		check(cri_adjust(a, m->config, r->adjust, &missing) == 0);
	check(cri_annotate_container(a, m->config, CRI_ID_ANNOTATION, "id") == 0);
	check(missing.n <= CRI_MISSING_MAX);
	check_packs(&m->base);
}

static void read_lists(struct arena *a, const uint8_t *data, size_t n)
{
	ProtobufCAllocator alloc = pb_arena(a);
	const Cri__PodList *pods = cri__pod_list__unpack(&alloc, n, data);
	for (size_t i = 0; pods && i < pods->n_items; i++)
		check_packs(&cri_listed_pod(a, pods->items[i], "")->base);
	const Cri__ContainerList *ctrs = cri__container_list__unpack(&alloc, n, data);
	for (size_t i = 0; ctrs && i < ctrs->n_containers; i++)
		check_packs(&cri_listed_container(a, "pod", ctrs->containers[i], NULL)->base);
	Cri__RunPodSandboxRequest *run = cri__run_pod_sandbox_request__unpack(&alloc, n, data);
	if (run && run->config) {
		check_packs(&cri_pod(a, "id", run->config, run->runtime_handler)->base);
		check(cri_annotate_pod(a, run->config, CRI_ID_ANNOTATION, "id") == 0);
		check_packs(&run->base);
	}
	Cri__UpdateRequest *update = cri__update_request__unpack(&alloc, n, data);
	if (update && update->lnx) {
		struct cri_missing missing = {0};
		Nri__LinuxResources *resources = cri_resources(a, update->lnx);
		check(resources && cri_set_resources(a, update->lnx, resources, &missing) == 0);
		check_packs(&update->base);
	}
}

/* The JSON of a status. */
static void read_info(struct arena *a, const uint8_t *data, size_t n)
{
	const char *text = arena_strndup(a, (const char *)data, n);
	check(text && cri_info_parent(a, text) != NULL);
	struct cri_about about;
	check(cri_info_container(a, text, &about) == 0);
	if (about.resources)
		check_packs(&about.resources->base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	_arena_ struct arena *a = arena_new(64 << 10, ARENA_MAX);
	ProtobufCAllocator alloc = pb_arena(a);
	size_t n = (size_t)data[0] << 8 | data[1], rest = size - 2;
	if (n > rest)
		n = rest;
	Cri__CreateContainerRequest *m = cri__create_container_request__unpack(&alloc, n, data + 2);
	if (m && m->config)
		edit_create(a, m, data + 2 + n, rest - n);
	read_lists(a, data + 2, n);
	read_info(a, data + 2, n);
	return 0;
}
