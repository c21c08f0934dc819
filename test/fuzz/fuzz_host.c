/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what the host reads of earlier and of other processes: the breadcrumb file, paths of
 * cgroups and /proc/PID/cgroup, the kubelet's state, addresses to listen on. The first byte says
 * which. Breadcrumbs are edits of a valid file: position (two bytes), length, bytes.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The layout of its file is its own. */
#include "core/nri-rpd/host/breadcrumb.c"

#include "core/nri-rpd/host/cgroup.h"
#include "core/nri-rpd/pipeline/observe/kubelet.h"
#include "core/lib/util/address.h"
#include "core/lib/util/fs.h"

#define TEXT_MAX 4096u
#define PID 7u
#define BOOT "11111111-2222-3333-4444-555555555555"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	char dir[64], crumb[96];
	struct fs_root root;
} world;

static void need(bool true_thing)
{
	if (!true_thing)
		abort();
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void __attribute__((destructor)) remove_all(void)
{
	if (world.dir[0])
		(void)nftw(world.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const void *data, size_t size)
{
	char name[256];
	struct err err = ERR_INIT;
	(void)snprintf(name, sizeof name, "%s/%s", world.dir, path);
	need(fs_replace(name, data, size, 0600, false, &err) == 0);
}

static void make_world(void)
{
	static const char *const dirs[] = {
		"proc", "proc/7", "var",	   "var/lib",	      "var/lib/kubelet",
		"sys",	"sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/a", "sys/fs/cgroup/a/b"};
	char name[256];
	struct err err = ERR_INIT;
	if (world.dir[0])
		return;
	(void)snprintf(world.dir, sizeof world.dir, "%s/fuzz-host.XXXXXX",
		       access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	need(mkdtemp(world.dir) != NULL);
	for (unsigned i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		(void)snprintf(name, sizeof name, "%s/%s", world.dir, dirs[i]);
		need(mkdir(name, 0700) == 0);
	}
	put("sys/fs/cgroup/cgroup.controllers", "cpu\n", 4);
	(void)snprintf(world.crumb, sizeof world.crumb, "%s/crumb", world.dir);
	need(fs_root_open(&world.root, world.dir, &err) == 0);
}

/* ---- breadcrumbs ----------------------------------------------------------------------------- */

static void edit(uint8_t *bytes, size_t n, const uint8_t *data, size_t size)
{
	while (size >= 4) {
		size_t at = (size_t)data[0] << 8 | data[1], len = data[2];
		data += 3;
		size -= 3;
		len = len < size ? len : size;
		for (size_t i = 0; i < len && at + i < n; i++)
			bytes[at + i] = data[i];
		data += len;
		size -= len;
	}
}

static void is_text(const char *text, size_t max)
{
	need(strnlen(text, max) < max);
	for (; *text; text++)
		need(*text >= 0x20 && *text <= 0x7e);
}

static void look_at(const struct crumb *c)
{
	const struct crumb_death *d, *last = crumb_last(c);
	unsigned n = 0;
	if (crumb_message(c))
		is_text(crumb_message(c), CRUMB_MESSAGE_MAX);
	if (last) {
		is_text(last->module, sizeof last->module);
		is_text(last->object, sizeof last->object);
		need(last->module[0] && crumb_message(c));
	}
	for (; (d = crumb_history(c, n)); n++) {
		need(strnlen(d->module, RP_NAME_MAX) < RP_NAME_MAX);
		need(strnlen(d->object, CRUMB_OBJECT_MAX) < CRUMB_OBJECT_MAX);
		need(crumb_deaths(c, d->module) <= CRUMB_HISTORY_MAX);
		(void)crumb_quarantined(c, d->module);
		need(*crumb_call_name(d->call) && *crumb_cause_text(d->cause));
	}
	need(n <= CRUMB_HISTORY_MAX);
}

/* Checks that a file with any content can be opened, and that the file left behind is valid. */
static void try_crumb(const uint8_t *data, size_t size)
{
	static struct crumb_file f;
	const struct crumb_now now = {BOOT, 1000, 60000};
	struct build_id build = {.size = 4};
	struct crumb *c;
	struct err err = ERR_INIT;
	f = (struct crumb_file){.version = CRUMB_VERSION, .size = sizeof f, .boot_id = BOOT};
	memcpy(f.magic, CRUMB_MAGIC, sizeof f.magic);
	bool sealed = size && data[0] % 4;
	edit((uint8_t *)&f, sizeof f, data + (size != 0), size - (size != 0));
	if (sealed)
		f.checksum = note_hash(NOTE_HASH_INIT, &f.records, sizeof f.records);
	put("crumb", &f, sizeof f);
	need(crumb_open_at(world.crumb, &now, &c, &err) == 0);
	look_at(c);
	crumb_seen(c, "balloons", &build);
	(void)crumb_clear(c, sealed ? "static" : NULL);
	need(!crumb_quarantined(c, "static"));
	(void)crumb_close(c);
	need(crumb_open_at(world.crumb, &now, &c, &err) == 0);
	need(!crumb_message(c) && !crumb_last(c));
	look_at(c);
	(void)crumb_close(c);
}

/* ---- cgroups --------------------------------------------------------------------------------- */

static void stays_below(const char *path)
{
	size_t n = strlen(path);
	need(strncmp(path, "sys/fs/cgroup", 13) == 0 && !strstr(path, "/../"));
	need(n < 3 || strcmp(path + n - 3, "/..") != 0);
}

static void try_cgroup(const char *text)
{
	static const char *const controllers[] = {"", "cpuset"};
	char buf[CACHE_PATH_MAX], small[16];
	int r = cgroup_relative(text, buf, sizeof buf);
	need(r == 0 || r == -EINVAL || r == -E2BIG);
	if (!r)
		need(!strstr(buf, "/../") && strncmp(buf, "../", 3) != 0 && strcmp(buf, "..") != 0);
	(void)cgroup_relative(text, small, sizeof small);
	for (unsigned i = 0; i < 2; i++) {
		if (cgroup_dir_of(&world.root, text, controllers[i], buf, sizeof buf) == 0)
			stays_below(buf);
		put("proc/7/cgroup", text, strlen(text));
		if (cgroup_find_dir(&world.root, "/not/there", PID, controllers[i], buf,
				    sizeof buf) == 0)
			stays_below(buf);
	}
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void try_kubelet(const uint8_t *data, size_t size)
{
	struct kubelet_state state = {0};
	put("var/lib/kubelet/cpu_manager_state", data, size);
	put("proc/7/comm", "kubelet\n", 8);
	put("proc/7/cmdline", data, size);
	if (kubelet_read_state(&world.root, KUBELET_CPU, &state))
		need(strnlen(state.policy, sizeof state.policy) < sizeof state.policy &&
		     strnlen(state.path, sizeof state.path) < sizeof state.path);
}

static void try_address(const char *text)
{
	struct address a;
	struct err err = ERR_INIT;
	int r = address_parse(text, &a, &err);
	need(r <= 0 && (r == 0) == !*err.text);
	if (!r && a.path)
		need(*a.path == '/');
	else if (!r)
		need(strnlen(a.host, sizeof a.host) < sizeof a.host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1];
	if (!size || size > TEXT_MAX)
		return 0;
	make_world();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		try_crumb(data + 1, size - 1);
		break;
	case 1:
		try_cgroup(text);
		break;
	case 2:
		try_kubelet(data + 1, size - 1);
		break;
	case 3:
		try_address(text);
		break;
	}
	return 0;
}
