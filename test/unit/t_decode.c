/* SPDX-License-Identifier: Apache-2.0 */
/* Packed pods and containers into descriptions: what protobuf-c packs comes out again, at every
 * depth, and nothing else ever does harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/nri/internal.h"
#include "core/lib/util/arena.h"
#include "core/nri-rpd/nri/decode.h"

#define N(array) (sizeof(array) / sizeof *(array))
#define DEVICES 40u

static struct arena *arena;

static int setup(void **state)
{
	arena = arena_new(4096, 1u << 20);
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = arena_free(arena);
	return 0;
}

static struct span packed(const void *msg)
{
	const ProtobufCMessage *m = msg;
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = arena_alloc(arena, n + 1);
	assert_non_null(bytes);
	assert_int_equal(protobuf_c_message_pack(m, bytes), n);
	return span_of(bytes, n);
}

static struct span bytes_of(const char *text, size_t n)
{
	return span_of((const uint8_t *)text, n);
}
#define BYTES(literal) bytes_of(literal, sizeof(literal) - 1)

/* ---- pods ------------------------------------------------------------------------------------ */

static struct span a_pod(void)
{
	Nri__PodSandbox__LabelsEntry label = NRI__POD_SANDBOX__LABELS_ENTRY__INIT;
	Nri__PodSandbox__LabelsEntry *labels[] = {&label};
	Nri__PodSandbox__AnnotationsEntry one = NRI__POD_SANDBOX__ANNOTATIONS_ENTRY__INIT,
					  two = NRI__POD_SANDBOX__ANNOTATIONS_ENTRY__INIT;
	Nri__PodSandbox__AnnotationsEntry *annotations[] = {&one, &two};
	Nri__LinuxPodSandbox lnx = NRI__LINUX_POD_SANDBOX__INIT;
	Nri__PodSandbox m = NRI__POD_SANDBOX__INIT;
	char *ips[] = {(char *)"10.0.0.1"};
	label.key = (char *)"app";
	label.value = (char *)"db";
	one.key = (char *)"a";
	one.value = (char *)"1";
	two.key = (char *)"b";
	lnx.cgroup_parent = (char *)"/kubepods/burstable/pod1";
	m.id = (char *)"id1";
	m.name = (char *)"p";
	m.uid = (char *)"u";
	m.namespace_ = (char *)"ns";
	m.runtime_handler = (char *)"runc";
	m.labels = labels;
	m.n_labels = 1;
	m.annotations = annotations;
	m.n_annotations = 2;
	m.lnx = &lnx;
	m.pid = 77;
	m.ips = ips;
	m.n_ips = 1;
	return packed(&m);
}

static void test_pod(void **state)
{
	struct pod_desc d;
	assert_int_equal(decode_pod(arena, a_pod(), DECODE_ALL, &d), 0);
	assert_string_equal(d.id, "id1");
	assert_string_equal(d.name, "p");
	assert_string_equal(d.uid, "u");
	assert_string_equal(d.ns, "ns");
	assert_string_equal(d.runtime_handler, "runc");
	assert_string_equal(d.cgroup_parent, "/kubepods/burstable/pod1");
	assert_int_equal(d.n_labels, 1);
	assert_string_equal(d.labels[0].key, "app");
	assert_string_equal(d.labels[0].value, "db");
	assert_int_equal(d.n_annotations, 2);
	assert_string_equal(d.annotations[0].value, "1");
	assert_string_equal(d.annotations[1].key, "b");
	assert_string_equal(d.annotations[1].value, "");
}

static void test_pod_name_only(void **state)
{
	struct pod_desc d;
	assert_int_equal(decode_pod(arena, a_pod(), DECODE_NAME, &d), 0);
	assert_string_equal(d.id, "id1");
	assert_string_equal(d.ns, "ns");
	assert_string_equal(d.cgroup_parent, "");
	assert_int_equal(d.n_labels + d.n_annotations, 0);
}

static void test_nothing(void **state)
{
	struct pod_desc pod;
	struct ctr_desc ctr;
	struct res_desc res;
	struct span none = {NULL, NULL};
	assert_int_equal(decode_pod(arena, none, DECODE_ALL, &pod), 0);
	assert_string_equal(pod.id, "");
	assert_string_equal(pod.cgroup_parent, "");
	assert_int_equal(decode_ctr(arena, arena, none, DECODE_ALL, &ctr), 0);
	assert_string_equal(ctr.id, "");
	assert_int_equal(ctr.state, RP_STATE_CREATING);
	assert_int_equal(ctr.oom_score_adj, RP_NOT_SET);
	assert_int_equal(ctr.n_env + ctr.n_mounts + ctr.n_devices, 0);
	assert_int_equal(decode_resources(arena, none, &res), 0);
	assert_int_equal(res.shares, RP_NOT_SET);
	assert_int_equal(res.mem_limit, RP_NOT_SET);
	assert_null(res.cpus);
}

/* ---- containers ------------------------------------------------------------------------------ */

static Nri__LinuxResources *some_resources(void)
{
	static Nri__OptionalUInt64 shares, period;
	static Nri__OptionalInt64 quota, limit;
	static Nri__LinuxCPU cpu;
	static Nri__LinuxMemory memory;
	static Nri__LinuxResources res;
	nri__optional_uint64__init(&shares);
	nri__optional_uint64__init(&period);
	nri__optional_int64__init(&quota);
	nri__optional_int64__init(&limit);
	nri__linux_cpu__init(&cpu);
	nri__linux_memory__init(&memory);
	nri__linux_resources__init(&res);
	shares.value = 512;
	period.value = 100000;
	quota.value = -1;
	limit.value = (int64_t)1 << 40;
	cpu.shares = &shares;
	cpu.period = &period;
	cpu.quota = &quota;
	cpu.cpus = (char *)"0-3";
	cpu.mems = (char *)"1";
	memory.limit = &limit;
	res.cpu = &cpu;
	res.memory = &memory;
	return &res;
}

static struct span a_ctr(void)
{
	Nri__Container__LabelsEntry label = NRI__CONTAINER__LABELS_ENTRY__INIT;
	Nri__Container__LabelsEntry *labels[] = {&label};
	Nri__Container__AnnotationsEntry note = NRI__CONTAINER__ANNOTATIONS_ENTRY__INIT;
	Nri__Container__AnnotationsEntry *annotations[] = {&note};
	Nri__Mount rw = NRI__MOUNT__INIT, ro = NRI__MOUNT__INIT, *mounts[] = {&rw, &ro};
	Nri__OptionalInt oom = NRI__OPTIONAL_INT__INIT;
	Nri__LinuxContainer lnx = NRI__LINUX_CONTAINER__INIT;
	Nri__Container m = NRI__CONTAINER__INIT;
	char *args[] = {(char *)"/bin/db"}, *env[] = {(char *)"A=1", (char *)"B="};
	char *rw_options[] = {(char *)"rbind", (char *)"rw"},
	     *ro_options[] = {(char *)"ro", (char *)"nosuid"};
	label.key = (char *)"l";
	note.key = (char *)"n";
	note.value = (char *)"v";
	rw.destination = (char *)"/data";
	rw.source = (char *)"/dev/sda";
	rw.type = (char *)"bind";
	rw.options = rw_options;
	rw.n_options = N(rw_options);
	ro.destination = (char *)"/etc";
	ro.options = ro_options;
	ro.n_options = N(ro_options);
	oom.value = -997;
	lnx.oom_score_adj = &oom;
	lnx.cgroups_path = (char *)"a:b:c";
	lnx.resources = some_resources();
	m.id = (char *)"c1";
	m.pod_sandbox_id = (char *)"id1";
	m.name = (char *)"db";
	m.state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	m.labels = labels;
	m.n_labels = 1;
	m.annotations = annotations;
	m.n_annotations = 1;
	m.args = args;
	m.n_args = 1;
	m.env = env;
	m.n_env = 2;
	static Nri__CDIDevice gpu = NRI__CDIDEVICE__INIT, nic = NRI__CDIDEVICE__INIT;
	static Nri__CDIDevice *cdi[] = {&gpu, &nic};
	gpu.name = (char *)"vendor.example/gpu=0";
	nic.name = (char *)"vendor.example/nic=all";
	m.cdi_devices = cdi;
	m.n_cdi_devices = 2;
	m.mounts = mounts;
	m.n_mounts = 2;
	m.lnx = &lnx;
	m.pid = 4711;
	m.created_at = INT64_C(1234567890123456789);
	m.status_reason = (char *)"x";
	return packed(&m);
}

static void check_name(const struct ctr_desc *d)
{
	assert_string_equal(d->id, "c1");
	assert_string_equal(d->pod_id, "id1");
	assert_string_equal(d->name, "db");
	assert_int_equal(d->state, RP_STATE_RUNNING);
	assert_int_equal(d->pid, 4711);
	assert_int_equal(d->created_ns, UINT64_C(1234567890123456789));
}

static void check_facts(const struct ctr_desc *d)
{
	check_name(d);
	assert_string_equal(d->cgroups_path, "a:b:c");
	assert_int_equal(d->oom_score_adj, -997);
	assert_int_equal(d->n_labels, 1);
	assert_string_equal(d->labels[0].key, "l");
	assert_string_equal(d->labels[0].value, "");
	assert_int_equal(d->n_annotations, 1);
	assert_string_equal(d->annotations[0].value, "v");
	assert_int_equal(d->res.shares, 512);
	assert_int_equal(d->res.period, 100000);
	assert_int_equal(d->res.quota, -1);
	assert_int_equal(d->res.mem_limit, INT64_C(1) << 40);
	assert_string_equal(d->res.cpus, "0-3");
	assert_string_equal(d->res.mems, "1");
}

static void decoded_amounts(int64_t amount, struct res_desc *ret)
{
	Nri__LinuxResources *res = some_resources();
	res->cpu->quota->value = res->memory->limit->value = amount;
	res->cpu->shares->value = res->cpu->period->value = (uint64_t)amount;
	assert_int_equal(decode_resources(arena, packed(res), ret), 0);
}

static void test_amounts_are_cut(void **state)
{
	struct res_desc res;
	decoded_amounts(INT64_MAX, &res);
	assert_int_equal(res.shares, DERIVE_CPU_MAX);
	assert_int_equal(res.quota, DERIVE_CPU_MAX);
	assert_int_equal(res.period, DERIVE_CPU_MAX);
	assert_int_equal(res.mem_limit, DERIVE_BYTES_MAX);
	decoded_amounts(-17, &res);
	assert_int_equal(res.quota, -1);
	assert_int_equal(res.mem_limit, -1);
	decoded_amounts(100000, &res);
	assert_int_equal(res.quota, 100000);
	/* even by the smallest period, and summed over all containers of a node */
	assert_int_equal(derive_quota_to_mcpu(DERIVE_CPU_MAX, 1), DERIVE_MCPU_MAX);
	assert_true(DERIVE_MCPU_MAX < INT64_MAX / 100000);
}

static void test_ctr(void **state)
{
	struct ctr_desc d;
	assert_int_equal(decode_ctr(arena, arena, a_ctr(), DECODE_ALL, &d), 0);
	check_facts(&d);
	assert_int_equal(d.n_args, 1);
	assert_string_equal(d.args[0], "/bin/db");
	assert_int_equal(d.n_env, 2);
	assert_string_equal(d.env[0], "A=1");
	assert_string_equal(d.env[1], "B=");
	assert_int_equal(d.n_cdi, 2);
	assert_string_equal(d.cdi[0], "vendor.example/gpu=0");
	assert_string_equal(d.cdi[1], "vendor.example/nic=all");
	assert_int_equal(d.n_mounts, 2);
	assert_string_equal(d.mounts[0].source, "/dev/sda");
	assert_string_equal(d.mounts[0].destination, "/data");
	assert_string_equal(d.mounts[0].type, "bind");
	assert_int_equal(d.mounts[0].read_only, 0);
	assert_int_equal(d.mounts[0].size, sizeof(struct rp_mount_info));
	assert_string_equal(d.mounts[1].source, "");
	assert_int_equal(d.mounts[1].read_only, 1);
}

static void test_ctr_less(void **state)
{
	struct ctr_desc d;
	assert_int_equal(decode_ctr(arena, arena, a_ctr(), DECODE_FACTS, &d), 0);
	check_facts(&d);
	assert_int_equal(d.n_env + d.n_mounts + d.n_devices, 0);
	assert_int_equal(decode_ctr(arena, arena, a_ctr(), DECODE_NAME, &d), 0);
	check_name(&d);
	assert_string_equal(d.cgroups_path, "");
	assert_int_equal(d.oom_score_adj, RP_NOT_SET);
	assert_int_equal(d.n_labels + d.n_annotations + d.n_env + d.n_mounts, 0);
	assert_int_equal(d.res.shares, RP_NOT_SET);
}

static void test_states(void **state)
{
	static const struct {
		uint64_t nri;
		uint32_t rp;
	} cases[] = {
		{0, RP_STATE_CREATING},
		{NRI__CONTAINER_STATE__CONTAINER_CREATED, RP_STATE_CREATED},
		{NRI__CONTAINER_STATE__CONTAINER_PAUSED, RP_STATE_PAUSED},
		{NRI__CONTAINER_STATE__CONTAINER_RUNNING, RP_STATE_RUNNING},
		{NRI__CONTAINER_STATE__CONTAINER_STOPPED, RP_STATE_EXITED},
		{99, RP_STATE_CREATING},
		{UINT64_MAX, RP_STATE_CREATING},
	};
	for (size_t i = 0; i < N(cases); i++)
		assert_int_equal(decode_state(cases[i].nri), cases[i].rp);
}

/* ---- devices --------------------------------------------------------------------------------- */

struct rule_case {
	const char *type, *access;
	int64_t major, minor; /* -1: any */
	bool allow;
};

/* Returns true if these rules allow writing to the device c 10:20. */
static bool writable(const struct rule_case *cases, size_t n)
{
	Nri__LinuxDeviceCgroup rule[4], *rules[4];
	Nri__OptionalInt64 major[4], minor[4];
	Nri__LinuxDevice dev = NRI__LINUX_DEVICE__INIT, *devices[] = {&dev};
	Nri__LinuxResources res = NRI__LINUX_RESOURCES__INIT;
	Nri__LinuxContainer lnx = NRI__LINUX_CONTAINER__INIT;
	Nri__Container m = NRI__CONTAINER__INIT;
	struct ctr_desc d;
	for (size_t i = 0; i < n; i++) {
		nri__linux_device_cgroup__init(rules[i] = &rule[i]);
		nri__optional_int64__init(&major[i]);
		nri__optional_int64__init(&minor[i]);
		rule[i].type = (char *)cases[i].type;
		rule[i].access = (char *)cases[i].access;
		rule[i].allow = cases[i].allow;
		major[i].value = cases[i].major;
		minor[i].value = cases[i].minor;
		rule[i].major = cases[i].major < 0 ? NULL : &major[i];
		rule[i].minor = cases[i].minor < 0 ? NULL : &minor[i];
	}
	dev.path = (char *)"/dev/x";
	dev.type = (char *)"c";
	dev.major = 10;
	dev.minor = 20;
	res.devices = rules;
	res.n_devices = n;
	lnx.devices = devices;
	lnx.n_devices = 1;
	lnx.resources = n ? &res : NULL;
	m.lnx = &lnx;
	assert_int_equal(decode_ctr(arena, arena, packed(&m), DECODE_ALL, &d), 0);
	assert_int_equal(d.n_devices, 1);
	assert_string_equal(d.devices[0].path, "/dev/x");
	assert_string_equal(d.devices[0].type, "c");
	assert_int_equal(d.devices[0].major, 10);
	assert_int_equal(d.devices[0].minor, 20);
	return d.devices[0].writable != 0;
}

static void test_device_rules(void **state)
{
	static const struct rule_case none = {"a", "rwm", -1, -1, false},
				      all = {"", "rwm", -1, -1, true},
				      mine = {"c", "rw", 10, 20, true},
				      read = {"c", "rm", 10, -1, true},
				      block = {"b", "rwm", 10, 20, true},
				      other = {"c", "rwm", 10, 21, true},
				      elsewhere = {"c", "rwm", 11, -1, true};
	assert_true(writable(NULL, 0));
	assert_false(writable(&none, 1));
	assert_true(writable((struct rule_case[]){none, mine}, 2));
	assert_false(writable((struct rule_case[]){mine, none}, 2));
	assert_false(writable((struct rule_case[]){none, read}, 2));
	assert_false(writable((struct rule_case[]){none, block, other, elsewhere}, 4));
	assert_true(writable((struct rule_case[]){none, all}, 2));
}

/* Returns a container with more rules and devices than any initial capacity. */
static struct span many_devices(void)
{
	static Nri__LinuxDevice dev[DEVICES], *devices[DEVICES];
	static Nri__LinuxDeviceCgroup rule[DEVICES], *rules[DEVICES];
	Nri__LinuxResources res = NRI__LINUX_RESOURCES__INIT;
	Nri__LinuxContainer lnx = NRI__LINUX_CONTAINER__INIT;
	Nri__Container m = NRI__CONTAINER__INIT;
	for (size_t i = 0; i < DEVICES; i++) {
		nri__linux_device__init(devices[i] = &dev[i]);
		dev[i].type = (char *)(i % 2 ? "c" : "b");
		dev[i].minor = (int64_t)i;
		nri__linux_device_cgroup__init(rules[i] = &rule[i]);
		rule[i].type = (char *)"b";
		rule[i].access = (char *)"r";
		rule[i].allow = true;
	}
	lnx.devices = devices;
	lnx.n_devices = DEVICES;
	lnx.resources = &res;
	res.devices = rules;
	res.n_devices = DEVICES;
	m.lnx = &lnx;
	return packed(&m);
}

/* Messages of a kind that come twice are one. */
static void test_many_devices(void **state)
{
	struct ctr_desc d;
	struct span once = many_devices();
	size_t n = span_len(&once);
	uint8_t *twice = arena_alloc(arena, 2 * n);
	memcpy(twice, once.p, n);
	memcpy(twice + n, once.p, n);
	assert_int_equal(decode_ctr(arena, arena, span_of(twice, 2 * n), DECODE_ALL, &d), 0);
	assert_int_equal(d.n_devices, 2 * DEVICES);
	for (size_t i = 0; i < 2 * DEVICES; i++) {
		assert_int_equal(d.devices[i].minor, i % DEVICES);
		assert_int_equal(d.devices[i].writable, i % 2);
	}
}

/* ---- messages that no runtime should send ---------------------------------------------------- */

static void test_last_one_counts(void **state)
{
	struct pod_desc d;
	struct res_desc res;
	assert_int_equal(decode_pod(arena,
				    BYTES("\x0a\x01"
					  "a\x0a\x01"
					  "b"),
				    DECODE_ALL, &d),
			 0);
	assert_string_equal(d.id, "b");
	/* two messages cpu: shares of one, period of the other; wrapped zero is zero */
	assert_int_equal(
		decode_resources(arena, BYTES("\x12\x04\x0a\x02\x08\x05\x12\x02\x1a\x00"), &res),
		0);
	assert_int_equal(res.shares, 5);
	assert_int_equal(res.period, 0);
	/* more shares than a signed number holds */
	assert_int_equal(
		decode_resources(arena,
				 BYTES("\x12\x0d\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff"
				       "\x01"),
				 &res),
		0);
	assert_int_equal(res.shares, RP_NOT_SET);
}

/* Checks that unknown fields of later releases are skipped in every message. */
static void test_unknown_fields(void **state)
{
	static const char *const bytes[] = {
		"\x5a\x06\x1a\x04\x12\x02\x78\x01", /* unknown field of the CPUs */
		"\x5a\x06\x1a\x04\x0a\x02\x78\x01", /* unknown field of the memory */
		/* unknown fields of a device and of the resources */
		"\x5a\x08\x12\x02\x78\x01\x1a\x02\x78\x01",
		"\x5a\x08\x12\x00\x1a\x04\x3a\x02\x78\x01", /* unknown field of a device rule */
		"\x4a\x02\x78\x01", /* unknown field of a mount */
		"\x2a\x02\x78\x01", /* unknown field of a label */
		"\x5a\x02\x78\x01", /* unknown field of the Linux part */
		"\x7a\x00",
	};
	struct ctr_desc ctr;
	struct pod_desc pod;
	for (size_t i = 0; i < N(bytes); i++) {
		struct span one = bytes_of(bytes[i], 2 + (size_t)bytes[i][1]);
		assert_int_equal(decode_ctr(arena, arena, one, DECODE_ALL, &ctr), 0);
	}
	assert_int_equal(decode_pod(arena, BYTES("\xf8\x01\x01\x42\x02\x78\x01"), DECODE_ALL, &pod),
			 0);
}

static void test_wrong_types(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} pods[] = {{"\x08\x01", 2}, {"\x28\x01", 2},	      {"\x2a\x02\x08\x01", 4},
		    {"\x40\x01", 2}, {"\x42\x02\x18\x01", 4}, {"\x32\x02\x10\x01", 4}},
	  ctrs[] = {{"\x08\x01", 2},
		    {"\x22\x00", 2},
		    {"\x62\x00", 2},
		    {"\x72\x00", 2},
		    {"\x40\x01", 2},
		    {"\x48\x01", 2},
		    {"\x58\x01", 2},
		    {"\x5a\x02\x10\x01", 4},
		    {"\x5a\x04\x12\x02\x08\x01", 6},
		    {"\x5a\x04\x12\x02\x1a\x00", 6},
		    {"\x5a\x04\x12\x02\x22\x00", 6},
		    {"\x5a\x02\x18\x01", 4},
		    {"\x5a\x02\x20\x01", 4},
		    {"\x5a\x02\x28\x01", 4},
		    {"\x5a\x04\x1a\x02\x08\x01", 6},
		    {"\x5a\x06\x1a\x04\x0a\x02\x08\x01", 8},
		    {"\x5a\x06\x1a\x04\x12\x02\x08\x01", 8},
		    {"\x5a\x08\x12\x00\x1a\x04\x3a\x02\x0a\x00", 10},
		    {"\x5a\x06\x12\x00\x1a\x02\x38\x01", 8},
		    {"\x4a\x02\x08\x01", 4},
		    {"\x4a\x02\x20\x01", 4},
		    {"\x5a\x06\x1a\x04\x12\x02\x30\x01", 8}};
	struct pod_desc pod;
	struct ctr_desc ctr;
	for (size_t i = 0; i < N(pods); i++) {
		struct span s = bytes_of(pods[i].bytes, pods[i].n);
		if (decode_pod(arena, s, DECODE_ALL, &pod) != -EBADMSG)
			fail_msg("pod %zu is taken", i);
	}
	for (size_t i = 0; i < N(ctrs); i++) {
		struct span s = bytes_of(ctrs[i].bytes, ctrs[i].n);
		if (decode_ctr(arena, arena, s, DECODE_ALL, &ctr) != -EBADMSG)
			fail_msg("container %zu is taken", i);
	}
}

/* Checks that a message cut at any point is refused, and that any changed byte does no harm. */
static void test_damage(void **state)
{
	struct span whole = a_ctr();
	size_t n = span_len(&whole);
	struct pod_desc pod;
	struct ctr_desc ctr;
	unsigned refused = 0;
	for (size_t len = 0; len < n; len++) {
		/* allocated with the exact size, so that the sanitizer detects a read past the
		 * end */
		uint8_t *cut = malloc(len + 1);
		struct arena *a = arena_new(4096, 1u << 16);
		memcpy(cut, whole.p, len);
		int r = decode_ctr(a, a, span_of(cut, len), DECODE_ALL, &ctr);
		assert_true(r == 0 || r == -EBADMSG);
		refused += r != 0;
		(void)decode_pod(a, span_of(cut, len), DECODE_ALL, &pod);
		arena_free(a);
		free(cut);
	}
	assert_true(refused > n / 2);
	for (size_t at = 0; at < n; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			struct arena *a = arena_new(4096, 1u << 16);
			uint8_t *bytes = malloc(n);
			memcpy(bytes, whole.p, n);
			bytes[at] ^= (uint8_t)(1u << bit);
			(void)decode_ctr(a, a, span_of(bytes, n), DECODE_ALL, &ctr);
			(void)decode_pod(a, span_of(bytes, n), DECODE_FACTS, &pod);
			free(bytes);
			arena_free(a);
		}
	}
}

/* Checks that an arena that is too small at any point causes an error. */
static void test_no_memory(void **state)
{
	struct span ctr_bytes = a_ctr(), pod_bytes = a_pod();
	struct ctr_desc ctr;
	struct pod_desc pod;
	struct res_desc res;
	unsigned failed = 0;
	int r = -ENOMEM;
	for (size_t limit = 4; r; limit += 4) {
		struct arena *a = arena_new(16, limit);
		r = decode_ctr(a, a, ctr_bytes, DECODE_ALL, &ctr);
		assert_true(r == 0 || r == -ENOMEM);
		failed += r != 0;
		(void)decode_pod(a, pod_bytes, DECODE_ALL, &pod);
		(void)decode_resources(a,
				       BYTES("\x12\x03\x32\x01"
					     "1"),
				       &res);
		arena_free(a);
	}
	assert_true(failed > 10);
	struct span devices = many_devices();
	r = -ENOMEM;
	for (size_t limit = 16; r; limit += 16) {
		struct arena *a = arena_new(16, limit);
		r = decode_ctr(a, a, devices, DECODE_ALL, &ctr);
		assert_true(r == 0 || r == -ENOMEM);
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_pod),
		TEST(test_pod_name_only),
		TEST(test_nothing),
		TEST(test_ctr),
		TEST(test_amounts_are_cut),
		TEST(test_ctr_less),
		TEST(test_states),
		TEST(test_device_rules),
		TEST(test_many_devices),
		TEST(test_last_one_counts),
		TEST(test_unknown_fields),
		TEST(test_wrong_types),
		TEST(test_damage),
		TEST(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
