/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed Select with a driver that answers anything. The input is what commands bring back, one
 * after the other: a byte that says whether and with what a command fails, then the bytes of the
 * answer. The first byte of all says of which kind the platform is; 0x80: the rest is what another
 * process has to tell of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/topo/isst.h"
#include "core/lib/topo/sst.h"
#include "test/fuzz/check.h"

#define N_CPUS 24u
#define TOLD 0x80u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *left;
static size_t n_left;
static uint8_t kind;

static size_t size_of(unsigned long command)
{
	static const size_t sizes[] = {
		sizeof(struct isst_platform),
		sizeof(struct isst_phys_id),
		sizeof(struct isst_io),
		sizeof(struct isst_mbox),
		0,
		sizeof(struct isst_instances),
		sizeof(struct isst_core_power),
		sizeof(struct isst_clos_param),
		sizeof(struct isst_clos_assoc),
		sizeof(struct isst_levels),
		0,
		sizeof(struct isst_feature),
		0,
		0,
		0,
		sizeof(struct isst_cpu_mask),
		sizeof(struct isst_tf_info),
	};
	unsigned long n = command >> _IOC_NRSHIFT & _IOC_NRMASK;
	check(n < sizeof sizes / sizeof sizes[0] && sizes[n]);
	return sizes[n];
}

static uint8_t next_byte(void)
{
	if (!n_left)
		return 0;
	n_left--;
	return *left++;
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long command, ...)
{
	va_list ap;
	va_start(ap, command);
	uint8_t *arg = va_arg(ap, void *);
	va_end(ap);
	if ((command >> _IOC_TYPESHIFT & _IOC_TYPEMASK) != ISST_MAGIC)
		return (int)syscall(SYS_ioctl, fd, command, arg);
	if (command == ISST_PLATFORM) {
		const struct isst_platform p = {
			.api = kind & 3, .mbox = kind >> 2 & 1, .mmio = kind >> 3 & 1};
		memcpy(arg, &p, sizeof p);
		return 0;
	}
	uint8_t fails = next_byte();
	if (fails > 250) {
		errno = fails;
		return -1;
	}
	for (size_t i = 0, n = size_of(command); i < n; i++)
		arg[i] = next_byte();
	return 0;
}

static struct fs_root root;
static char dir[] = "/tmp/fuzz_sst.XXXXXX";

static void put(const char *path, const char *text)
{
	int fd = openat(root.fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static void remove_tree(void)
{
	static const char *const files[] = {ISST_PATH, "sys/devices/system/cpu/online"};
	static const char *const dirs[] = {"dev", "sys/devices/system/cpu", "sys/devices/system",
					   "sys/devices", "sys"};
	for (unsigned i = 0; i < 2; i++)
		(void)unlinkat(root.fd, files[i], 0);
	for (unsigned i = 0; i < 5; i++)
		(void)unlinkat(root.fd, dirs[i], AT_REMOVEDIR);
	(void)rmdir(dir);
	fs_root_close(&root);
}

static void make_tree(void)
{
	static const char *const dirs[] = {"dev", "sys", "sys/devices", "sys/devices/system",
					   "sys/devices/system/cpu"};
	struct err err = ERR_INIT;
	check(mkdtemp(dir) && fs_root_open(&root, dir, &err) == 0);
	for (unsigned i = 0; i < 5; i++)
		check(mkdirat(root.fd, dirs[i], 0755) == 0);
	put(ISST_PATH, "");
	put("sys/devices/system/cpu/online", "0-23\n");
	check(atexit(remove_tree) == 0);
}

/* Checks that reported punits are within the machine and its limits. */
static void check_punits(struct topo *t)
{
	struct rp_idset seen;
	uint32_t n = sst_n_punits(t);
	rp_idset_clear(&seen);
	check(!n == (*sst_why(t) != '\0'));
	for (uint32_t i = 0; i < n; i++) {
		struct rp_sst_punit p = {.size = sizeof p};
		check(sst_punit(t, i, &p) == 0);
		check(rp_ids_count(p.cpus) && rp_ids_last(p.cpus) < N_CPUS);
		check(!rp_ids_overlap(rp_ids_of(&seen), p.cpus));
		rp_idset_or(&seen, rp_ids_of(&seen), p.cpus);
		check(rp_ids_subset(p.bf_cpus, p.cpus));
		check((p.enabled & ~p.supported) == 0 && p.priority <= RP_SST_ORDERED);
		check(p.n_buckets <= RP_SST_BUCKETS);
		for (uint32_t k = 0; k < p.n_buckets; k++) {
			check(p.hp_cores[k] && p.hp_cores[k] <= rp_ids_count(p.cpus));
			check(!k || p.hp_cores[k - 1] <= p.hp_cores[k]);
		}
	}
	for (uint32_t cpu = 0; cpu <= N_CPUS; cpu++) {
		uint32_t clos = sst_clos_of(t, cpu);
		check(clos < RP_CLOS_COUNT || clos == RP_CLOS_UNKNOWN);
	}
}

static void drive(void)
{
	const struct rp_sst_at at = {.package_id = next_byte(), .punit_id = next_byte() % 40};
	const struct rp_clos value = {.min_mhz = 100, .max_mhz = 200};
	struct rp_sst_punit p;
	uint32_t clos;
	if (sst_clos_now(&root, &at, &clos) == 0)
		check(clos < RP_CLOS_COUNT);
	(void)sst_punit_now(&root, &at, &p);
	(void)sst_set_cp(&root, &at, true, RP_SST_ORDERED);
	(void)sst_set_tf(&root, &at, true);
	(void)sst_set_clos(&root, &at, 3, &value);
	(void)sst_associate(&root, &at, 3);
}

static void be_told(struct topo *t)
{
	Trial__SpeedSelect *m = trial__speed_select__unpack(NULL, n_left, left);
	if (!m)
		return;
	m->generation = topo_generation(t);
	if (speedselect_take(t, m) == 0)
		check_punits(t);
	else
		check(!sst_is_read(t));
	trial__speed_select__free_unpacked(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;
	struct topo *t;
	struct err err = ERR_INIT;
	if (!made)
		make_tree();
	made = true;
	left = data;
	n_left = size;
	kind = next_byte();
	check(topo_read(&root, &t, &err) == 0);
	if (kind & TOLD) {
		be_told(t);
		topo_free(t);
		return 0;
	}
	check_punits(t);
	topo_free(t);
	drive();
	return 0;
}
