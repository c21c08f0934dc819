/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host whose files say what the fuzzer wants: each reading takes the next piece of the input, up
 * to a byte of 0xff; without more there is no such file. Changes fail as the input says, or do not.
 */
#ifndef FUZZ_FAKE_WORK_H
#define FUZZ_FAKE_WORK_H

#include <errno.h>
#include <string.h>

#include <nri-rp/lib/host.h>

struct fake_work {
	const uint8_t *at, *end;
	struct rp_host host;
	struct rp_host_work work;
	struct modhost h;
};

static int fake_byte(struct fake_work *f)
{
	return f->at < f->end ? *f->at++ : 0;
}

static int32_t fake_read(void *ctx, const char *path, char *buf, uint32_t cap)
{
	struct fake_work *f = ctx;
	if (f->at == f->end)
		return -ENOENT;
	const uint8_t *stop = memchr(f->at, 0xff, (size_t)(f->end - f->at));
	size_t n = (size_t)((stop ? stop : f->end) - f->at);
	if (n >= cap)
		return -EFBIG; /* the reader comes again with more room */
	memcpy(buf, f->at, n);
	buf[n] = '\0';
	f->at += n + (stop != NULL);
	return (int32_t)n;
}

static int32_t fake_write(void *ctx, const char *path, const char *text)
{
	return -(fake_byte(ctx) & 0x1f);
}

static int32_t fake_dir(void *ctx, const char *path)
{
	return -(fake_byte(ctx) & 0x1f);
}

static int32_t fake_find(void *ctx, const char *ref, const char *controller, char *buf,
			 uint32_t cap)
{
	return snprintf(buf, cap, "/cg") < (int)cap ? 0 : -RP_E2BIG;
}

static int32_t fake_list(void *ctx, const char *path,
			 int32_t (*each)(void *arg, const char *name, uint32_t kind), void *arg)
{
	static const char *const names[] = {"sda", "sdb", "nri-rp.gold", "mon_L3_00"};
	struct fake_work *f = ctx;
	int32_t r = 0;
	for (unsigned i = 0, bits = (unsigned)fake_byte(f); i < 4 && !r; i++)
		if (bits & 1u << i)
			r = each(arg, names[i], i < 2 ? RP_FILE_LINK : RP_FILE_DIR);
	return r;
}

static int32_t fake_link(void *ctx, const char *path, char *buf, uint32_t cap)
{
	return fake_read(ctx, path, buf, cap);
}

static int64_t fake_move(void *ctx, int32_t pid, uint64_t n, void **pages, const int32_t *nodes,
			 int32_t *status)
{
	for (uint64_t i = 0; i < n; i++)
		status[i] = nodes ? nodes[i] : 0;
	return -(fake_byte(ctx) & 1);
}

static void fake_log(void *ctx, uint32_t level, uint64_t object, const char *text)
{
}

static int32_t fake_fail(void *ctx, int32_t code, const char *text)
{
	return code;
}

static void fake_work_init(struct fake_work *f, const uint8_t *data, size_t size)
{
	*f = (struct fake_work){
		.at = data,
		.end = data + size,
		.work = {.size = sizeof f->work,
			 .read_file = fake_read,
			 .write_file = fake_write,
			 .cgroup_find = fake_find,
			 .list_dir = fake_list,
			 .make_dir = fake_dir,
			 .remove_dir = fake_dir,
			 .move_pages = fake_move,
			 .read_link = fake_link},
	};
	f->host = (struct rp_host){
		.size = sizeof f->host, .ctx = f, .log = fake_log, .fail = fake_fail};
	f->h = (struct modhost){.host = &f->host, .ctx = f, .work = &f->work};
}

#endif
