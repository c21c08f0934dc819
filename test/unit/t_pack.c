/* SPDX-License-Identifier: Apache-2.0 */
/* Messages packed from behind: by hand what the encoding is, and otherwise that the bytes are those
 * of protobuf-c. */
#include "core/lib/util/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/nri.pb-c.h"
#include "proto/store.pb-c.h"

/* Returns the text without const, as protobuf-c has no const in its structs. */
static char *text_of(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* Checks that packing succeeds into a buffer of the exact size, and fails into a buffer one byte
 * smaller. */
static void assert_same(const ProtobufCMessage *m)
{
	size_t size = protobuf_c_message_get_packed_size(m), len;
	uint8_t *expected = malloc(size + 1), *room = malloc(size + 1);
	protobuf_c_message_pack(m, expected);
	assert_int_equal(pack_backwards(m, room, size, &len), 0);
	assert_int_equal(len, size);
	assert_memory_equal(room, expected, size);
	if (size)
		assert_int_equal(pack_backwards(m, room, size - 1, &len), -ENOBUFS);
	free(room);
	free(expected);
}

/* Checks every byte against the description of the encoding: tag = number << 3 | wire type, a
 * length in front of text and messages. */
static void bytes_are_as_described(void **state)
{
	static const uint8_t expected[] = {
		0x08, 0x02, /* state = 2 */
		0x1a, 0x07, 0x08, 0x80, 0x10,
		0x2a, 0x02, '0',  '1', /* decided: shares 1024 zigzag, cpus */
		0x2a, 0x02, 0x10, 0x01, /* acked: quota -1 zigzag */
		0x32, 0x03, 0x08, 0xac, 0x02, /* needs: cpu_request 300 */
		0x52, 0x00, /* cpu_class, present and empty */
	};
	RpStore__Decision d = RP_STORE__DECISION__INIT;
	RpStore__Values decided = RP_STORE__VALUES__INIT, acked = RP_STORE__VALUES__INIT;
	RpStore__Needs needs = RP_STORE__NEEDS__INIT;
	uint8_t room[100];
	size_t len;
	d.state = 2;
	d.decided = &decided;
	d.acked = &acked;
	d.needs = &needs;
	d.has_cpu_class = true;
	decided.has_shares = true;
	decided.shares = 1024;
	decided.cpus = text_of("01");
	acked.has_quota = true;
	acked.quota = -1;
	needs.has_cpu_request = true;
	needs.cpu_request = 300;
	assert_int_equal(pack_backwards(&d.base, room, sizeof room, &len), 0);
	assert_int_equal(len, sizeof expected);
	assert_memory_equal(room + sizeof room - len, expected, sizeof expected);
	assert_same(&d.base);
}

static void lengths_of_several_bytes(void **state)
{
	char text[70000];
	RpStore__Values v = RP_STORE__VALUES__INIT;
	v.cpus = text;
	for (size_t n = 0; n < sizeof text; n = n < 130 ? n + 1 : n * 5) {
		memset(text, 'x', n);
		text[n] = '\0';
		assert_same(&v.base);
	}
}

static void numbers_of_all_sizes(void **state)
{
	static const int64_t values[] = {0,	    1,	       -1,	  63,	    64,
					 -64,	    -65,       127,	  128,	    INT32_MAX,
					 INT32_MIN, 1LL << 35, INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		RpStore__Values v = RP_STORE__VALUES__INIT; /* sint64 */
		RpStore__Decision d = RP_STORE__DECISION__INIT; /* uint64, uint32 */
		RpStore__Needs n = RP_STORE__NEEDS__INIT; /* int64 */
		Nri__LinuxIOPriority io =
			NRI__LINUX_IOPRIORITY__INIT; /* int32 and an enumeration of proto3 */
		v.has_quota = n.has_mem_limit = d.has_created_ns = d.has_pid = true;
		v.quota = n.mem_limit = values[i];
		d.created_ns = (uint64_t)values[i];
		d.pid = (uint32_t)values[i];
		d.decided = d.acked = &v;
		d.needs = &n;
		io.priority = (int32_t)values[i];
		io.class_ = NRI__IOPRIO_CLASS__IOPRIO_CLASS_BE;
		assert_same(&d.base);
		assert_same(&io.base);
	}
}

/* Lists: of messages, of texts, and of numbers in one run. */
static void a_creation_with_everything(void **state)
{
	Nri__CreateContainerResponse r = NRI__CREATE_CONTAINER_RESPONSE__INIT;
	Nri__ContainerAdjustment adj = NRI__CONTAINER_ADJUSTMENT__INIT;
	Nri__LinuxContainerAdjustment lnx = NRI__LINUX_CONTAINER_ADJUSTMENT__INIT;
	Nri__LinuxScheduler sched = NRI__LINUX_SCHEDULER__INIT;
	Nri__LinuxSchedulerFlag flags[] = {0, 3, 6};
	Nri__Mount mount = NRI__MOUNT__INIT;
	char *options[] = {text_of("bind"), text_of(""), text_of("ro")};
	Nri__Mount *mounts[] = {&mount};
	Nri__KeyValue kv = NRI__KEY_VALUE__INIT, none = NRI__KEY_VALUE__INIT;
	Nri__KeyValue *env[] = {&kv, &none};
	Nri__ContainerUpdate updates[300], *list[300];
	char ids[300][8];
	sched.policy = NRI__LINUX_SCHEDULER_POLICY__SCHED_FIFO;
	sched.nice = -20;
	sched.runtime = UINT64_MAX;
	sched.flags = flags;
	sched.n_flags = 3;
	mount.destination = text_of("/data");
	mount.options = options;
	mount.n_options = 3;
	kv.key = text_of("K");
	kv.value = text_of("");
	lnx.scheduler = &sched;
	adj.lnx = &lnx;
	adj.mounts = mounts;
	adj.n_mounts = 1;
	adj.env = env;
	adj.n_env = 2;
	r.adjust = &adj;
	for (unsigned i = 0; i < 300; i++) {
		nri__container_update__init(&updates[i]);
		ids[i][0] = (char)('a' + i % 26);
		memset(ids[i] + 1, '0', i % 6);
		ids[i][1 + i % 6] = '\0';
		updates[i].container_id = ids[i];
		updates[i].ignore_failure = i % 3 == 0;
		list[i] = &updates[i];
	}
	r.update = list;
	for (r.n_update = 0; r.n_update <= 300; r.n_update += 60)
		assert_same(&r.base);
}

static void nothing_at_all(void **state)
{
	Nri__Empty empty = NRI__EMPTY__INIT;
	size_t len = 7;
	assert_int_equal(pack_backwards(&empty.base, NULL, 0, &len), 0);
	assert_int_equal(len, 0);
	assert_same(&empty.base);
}

static void what_is_not_known_is_left_to_others(void **state)
{
	uint8_t data[] = {1, 2}, room[64];
	ProtobufCMessageUnknownField unknown = {99, PROTOBUF_C_WIRE_TYPE_VARINT, 1, data};
	RpStore__Needs n = RP_STORE__NEEDS__INIT;
	size_t len = 7;
	n.base.n_unknown_fields = 1;
	n.base.unknown_fields = &unknown;
	assert_int_equal(pack_backwards(&n.base, room, sizeof room, &len), -ENOTSUP);
	assert_int_equal(len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_as_described),
		cmocka_unit_test(lengths_of_several_bytes),
		cmocka_unit_test(numbers_of_all_sizes),
		cmocka_unit_test(a_creation_with_everything),
		cmocka_unit_test(nothing_at_all),
		cmocka_unit_test(what_is_not_known_is_left_to_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
