/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/private/ctl_queue.h"
#include "test/unit/ctl_host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/fake_impl.h"

#define RESCTRL "/sys/fs/resctrl"
#define CONTAINERS_MAX 4096u
#define FILE_MAX 262144u

struct ctl_job {
	int32_t (*run)(void *arg);
	void (*done)(void *arg, int32_t result);
	void *arg;
};

struct ctl_host {
	struct fake_host *fake;
	struct rp_host host;
	char dir[64];
	bool v1, keyed;
	/* planned failures */
	char failed[PATH_MAX];
	const char *fail_part;
	int32_t fail_code;
	uint32_t fail_nth, n_changes;
	int32_t fail_nth_code;
	char fork_path[PATH_MAX];
	const char *fork_tids;
	uint32_t fork_at;
	uint32_t max_groups;
	struct fake_out changes, metrics;
	/* the module */
	const struct rp_module *module;
	struct rp_instance *inst;
	const struct rp_controller *controller;
	bool started;
	struct ctl_job jobs[CONTAINERS_MAX];
	uint32_t n_jobs;
	struct {
		rp_ctr ctr;
		char text[320];
	} reports[CONTAINERS_MAX];
	uint32_t n_reports;
	char answers[8][FILE_MAX];
	char figures[1024], told_figures[1024];
	struct ctl_page {
		uint32_t pid;
		uint64_t addr;
		int32_t node;
	} * pages;
	uint32_t n_pages;
	uint32_t pages_fail_pid;
	uint64_t pages_fail_addr;
	int32_t pages_fail_code;
	bool pages_huge;
	unsigned next_answer;
};

static struct ctl_host *current; /* the context of host functions is fake_host's */

/* ---- files ----------------------------------------------------------------------------------- */

static const char *real_path(const char *path, char buf[PATH_MAX])
{
	if (snprintf(buf, PATH_MAX, "%s%s%s", current->dir, *path == '/' ? "" : "/", path) >=
	    PATH_MAX)
		fake_die("a path is too long");
	return buf;
}

static void make_dirs(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
}

static void write_real(const char *path, const char *content, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0644);
	if (fd < 0 || write(fd, content, strlen(content)) != (ssize_t)strlen(content))
		fake_die("%s: %s", path, strerror(errno));
	(void)close(fd);
}

void ctl_put(struct ctl_host *t, const char *path, const char *content)
{
	char real[PATH_MAX];
	current = t;
	make_dirs((char *)(uintptr_t)real_path(path, real));
	write_real(real, content, O_TRUNC);
}

static void remove_tree(const char *path)
{
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		char below[PATH_MAX];
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (snprintf(below, sizeof below, "%s/%s", path, e->d_name) < PATH_MAX)
			remove_tree(below);
	}
	if (d)
		(void)closedir(d);
	(void)remove(path);
}

void ctl_remove(struct ctl_host *t, const char *path)
{
	char real[PATH_MAX];
	current = t;
	remove_tree(real_path(path, real));
}

void ctl_link(struct ctl_host *t, const char *path, const char *target)
{
	char real[PATH_MAX];
	current = t;
	make_dirs((char *)(uintptr_t)real_path(path, real));
	if (symlink(target, real) < 0)
		fake_die("%s: %s", real, strerror(errno));
}

bool ctl_there(struct ctl_host *t, const char *path)
{
	char real[PATH_MAX];
	current = t;
	return access(real_path(path, real), F_OK) == 0;
}

static int32_t read_real(const char *path, char *buf, uint32_t cap)
{
	char real[PATH_MAX];
	int fd = open(real_path(path, real), O_RDONLY);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, buf, cap);
	int32_t r = n < 0 ? -errno : n == (ssize_t)cap ? -EFBIG : (int32_t)n;
	(void)close(fd);
	if (r < 0)
		return r;
	if (r && buf[r - 1] == '\n')
		r--;
	buf[r] = '\0';
	return r;
}

const char *ctl_get(struct ctl_host *t, const char *path)
{
	char *text = t->answers[t->next_answer++ % 8];
	current = t;
	if (read_real(path, text, FILE_MAX) < 0)
		text[0] = '\0';
	return text;
}

void ctl_resctrl(struct ctl_host *t, bool cdp)
{
	static const char *const levels[] = {"L3", "L3CODE", "L3DATA"};
	char path[128];
	ctl_put(t, "/proc/mounts", "proc /proc proc rw 0 0\nresctrl " RESCTRL " resctrl rw 0 0\n");
	for (unsigned i = cdp; i < (cdp ? 3 : 1); i++) {
		(void)snprintf(path, sizeof path, RESCTRL "/info/%s/cbm_mask", levels[i]);
		ctl_put(t, path, "fffff\n");
		(void)snprintf(path, sizeof path, RESCTRL "/info/%s/min_cbm_bits", levels[i]);
		ctl_put(t, path, "1\n");
		(void)snprintf(path, sizeof path, RESCTRL "/info/%s/num_closids", levels[i]);
		ctl_put(t, path, cdp ? "8\n" : "16\n");
	}
	ctl_put(t, RESCTRL "/info/MB/min_bandwidth", "10\n");
	ctl_put(t, RESCTRL "/info/MB/num_closids", "16\n");
	ctl_put(t, RESCTRL "/info/L3_MON/num_rmids", "32\n");
	ctl_put(t, RESCTRL "/info/last_cmd_status", "ok\n");
	ctl_put(t, RESCTRL "/schemata",
		cdp ? "L3CODE:0=fffff;1=fffff\nL3DATA:0=fffff;1=fffff\nMB:0=100;1=100\n"
		    : "    L3:0=fffff;1=fffff\n    MB:0=100;1=100\n");
	ctl_put(t, RESCTRL "/tasks", "1\n10\n11\n");
	ctl_put(t, RESCTRL "/mon_groups/.keep", "");
	ctl_remove(t, RESCTRL "/mon_groups/.keep");
}

void ctl_cgroup_v1(struct ctl_host *t)
{
	t->v1 = true;
}

const char *ctl_cgroup(struct ctl_host *t, rp_ctr ctr, const char *controller)
{
	char *text = t->answers[t->next_answer++ % 8];
	struct rp_ctr_info info = {.size = sizeof info};
	const struct rp_host_cache *cache = t->host.service(t->host.ctx, RP_HOST_CACHE_1);
	if (cache->get_ctr(t->host.ctx, ctr, &info))
		fake_die("no such container");
	(void)snprintf(text, FILE_MAX, "/sys/fs/cgroup%s%s/%s", t->v1 ? "/" : "",
		       t->v1 ? controller : "", info.name);
	return text;
}

/* ---- failures -------------------------------------------------------------------------------- */

void ctl_fail(struct ctl_host *t, const char *path_part, int32_t code)
{
	t->fail_part = path_part;
	t->fail_code = code;
}

void ctl_fail_nth(struct ctl_host *t, uint32_t n, int32_t code)
{
	t->n_changes = 0;
	t->fail_nth = n;
	t->fail_nth_code = code;
	t->failed[0] = '\0';
}

const char *ctl_failed(const struct ctl_host *t)
{
	return t->failed;
}

uint32_t ctl_n_changes(const struct ctl_host *t)
{
	return t->n_changes;
}

const char *ctl_changes(const struct ctl_host *t)
{
	return fake_out_text(&t->changes);
}

void ctl_changes_clear(struct ctl_host *t)
{
	fake_out_clear(&t->changes);
}

void ctl_fork_at(struct ctl_host *t, const char *cgroup, uint32_t n, const char *tids)
{
	(void)snprintf(t->fork_path, sizeof t->fork_path, "%s", cgroup);
	t->fork_at = n;
	t->fork_tids = tids;
}

void ctl_limit_groups(struct ctl_host *t, uint32_t n)
{
	t->max_groups = n;
}

static int32_t change(const char *what, const char *path, const char *text)
{
	current->n_changes++;
	fake_print(&current->changes, "%s %s%s%s", what, path, *text ? " " : "", text);
	const char *printed = fake_out_text(&current->changes);
	if (printed[strlen(printed) - 1] != '\n')
		fake_print(&current->changes, "\n");
	if (current->fail_part && strstr(path, current->fail_part))
		return -current->fail_code;
	if (!current->fail_nth || current->n_changes != current->fail_nth)
		return 0;
	(void)snprintf(current->failed, sizeof current->failed, "%s %s", what, path);
	return -current->fail_nth_code;
}

/* ---- resctrl as the kernel has it ------------------------------------------------------------ */

static bool in_resctrl(const char *path)
{
	return strncmp(path, RESCTRL "/", sizeof RESCTRL) == 0 &&
	       strncmp(path, RESCTRL "/info", sizeof RESCTRL "/info" - 1) != 0;
}

static void drop_line(const char *file, const char *line)
{
	char *text = fake_alloc(FILE_MAX), *out = fake_alloc(FILE_MAX);
	size_t len = 0;
	FILE *f = fopen(file, "r");
	if (f) {
		while (fgets(text, FILE_MAX, f))
			if (strcmp(text, line) != 0)
				len += (size_t)snprintf(out + len, FILE_MAX - len, "%s", text);
		(void)fclose(f);
		write_real(file, out, O_TRUNC);
	}
	free(text);
	free(out);
}

/* Takes a task out of all groups (of monitoring ones, too) below a folder. */
static void leave_groups(const char *dir, const char *tid)
{
	char path[PATH_MAX];
	DIR *d = opendir(dir);
	if (snprintf(path, sizeof path, "%s/tasks", dir) < PATH_MAX)
		drop_line(path, tid);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.' && e->d_type == DT_DIR && strcmp(e->d_name, "info") != 0 &&
		    snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < PATH_MAX)
			leave_groups(path, tid);
	if (d)
		(void)closedir(d);
}

static int32_t write_task(const char *path, const char *tid)
{
	char real[PATH_MAX], root[PATH_MAX];
	if (strcmp(tid, "666\n") == 0)
		return -ESRCH;
	if (!strstr(path, "/mon_groups/"))
		leave_groups(real_path(RESCTRL, root), tid);
	write_real(real_path(path, real), tid, O_APPEND);
	return 0;
}

static uint32_t n_groups(const char *dir)
{
	uint32_t n = 0;
	DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_type == DT_DIR && strcmp(e->d_name, "info") != 0 &&
		     strncmp(e->d_name, "mon_", 4) != 0 && e->d_name[0] != '.';
	if (d)
		(void)closedir(d);
	return n;
}

static int32_t make_group(const char *path, const char *real)
{
	char file[PATH_MAX], root[PATH_MAX];
	bool monitoring = strstr(path, "/mon_groups/") != NULL;
	if (access(real, F_OK) == 0)
		return -EEXIST;
	if (!monitoring && current->max_groups &&
	    n_groups(real_path(RESCTRL, root)) >= current->max_groups)
		return -ENOSPC;
	if (mkdir(real, 0755) < 0)
		return -errno;
	if (snprintf(file, sizeof file, "%s/tasks", path) < PATH_MAX)
		ctl_put(current, file, "");
	if (snprintf(file, sizeof file, "%s/mon_data/mon_L3_00/llc_occupancy", path) < PATH_MAX)
		ctl_put(current, file, "4096\n");
	if (snprintf(file, sizeof file, "%s/mon_data/mon_L3_00/mbm_total_bytes", path) < PATH_MAX)
		ctl_put(current, file, "Unavailable\n");
	if (monitoring)
		return 0;
	if (snprintf(file, sizeof file, "%s/schemata", path) < PATH_MAX)
		ctl_put(current, file, ctl_get(current, RESCTRL "/schemata"));
	if (snprintf(file, sizeof file, "%s/mon_groups", real) < PATH_MAX)
		(void)mkdir(file, 0755);
	return 0;
}

/* ---- work service ---------------------------------------------------------------------------- */

static int32_t work_submit(void *ctx, int32_t (*run)(void *arg),
			   void (*done)(void *arg, int32_t result), void *arg)
{
	if (current->n_jobs == CONTAINERS_MAX)
		return -RP_ENOMEM;
	current->jobs[current->n_jobs++] = (struct ctl_job){run, done, arg};
	return 0;
}

static int32_t work_read(void *ctx, const char *path, char *buf, uint32_t cap)
{
	if (current->fork_tids && strcmp(path, current->fork_path) == 0 &&
	    --current->fork_at == 0) {
		char real[PATH_MAX];
		write_real(real_path(path, real), current->fork_tids, O_APPEND);
		current->fork_tids = NULL;
	}
	return read_real(path, buf, cap);
}

void ctl_keyed(struct ctl_host *t)
{
	t->keyed = true;
}

/* Returns true for a value that removes the device's line. */
static bool is_none(const char *value)
{
	return strcmp(value, "0") == 0 || strcmp(value, "default") == 0 ||
	       strcmp(value, "rbps=max wbps=max riops=max wiops=max") == 0;
}

/* Writes "8:16 VALUE" or "default VALUE" in place of that line; other text replaces the file. */
static void write_line(const char *path, const char *text)
{
	char *was = fake_alloc(FILE_MAX), *out = fake_alloc(FILE_MAX), real[PATH_MAX];
	size_t key = strcspn(text, " "), len = 0;
	if (text[key] && read_real(path, was, FILE_MAX) >= 0)
		for (char *line = strtok(was, "\n"); line; line = strtok(NULL, "\n"))
			if (strncmp(line, text, key + 1) != 0)
				len += (size_t)snprintf(out + len, FILE_MAX - len, "%s\n", line);
	if (!text[key] || !is_none(text + key + 1))
		(void)snprintf(out + len, FILE_MAX - len, "%s\n", text);
	write_real(real_path(path, real), out, O_TRUNC);
	free(was);
	free(out);
}

static int32_t work_write(void *ctx, const char *path, const char *text)
{
	char real[PATH_MAX];
	int32_t r = change("write", path, text);
	if (r)
		return r;
	if (access(real_path(path, real), F_OK) < 0)
		return -errno;
	size_t len = strlen(path);
	if (in_resctrl(path) && len > 6 && strcmp(path + len - 6, "/tasks") == 0)
		return write_task(path, text);
	if (current->keyed && (strstr(path, "/io.") || strstr(path, "/blkio.")))
		write_line(path, text);
	else
		write_real(real, text, O_TRUNC);
	return 0;
}

static void work_report(void *ctx, rp_ctr ctr, uint32_t result, const char *text)
{
	uint32_t i = 0;
	while (i < current->n_reports && current->reports[i].ctr != ctr)
		i++;
	if (i == CONTAINERS_MAX)
		fake_die("too many reports");
	if (i == current->n_reports)
		current->n_reports++;
	current->reports[i].ctr = ctr;
	(void)snprintf(current->reports[i].text, sizeof current->reports[i].text, "%u%s%s", result,
		       *text ? " " : "", text);
}

static int32_t work_cgroup_ref(void *ctx, rp_ctr ctr, char *buf, uint32_t cap)
{
	struct rp_ctr_info info = {.size = sizeof info};
	const struct rp_host_cache *cache = current->host.service(ctx, RP_HOST_CACHE_1);
	if (cache->get_ctr(ctx, ctr, &info))
		return -RP_ESTALE;
	int n = snprintf(buf, cap, "%llu %s", (unsigned long long)ctr, info.name);
	return (uint32_t)n < cap ? 0 : -RP_E2BIG;
}

static int32_t work_cgroup_find(void *ctx, const char *ref, const char *controller, char *buf,
				uint32_t cap)
{
	const char *name = strchr(ref, ' ') + 1;
	char real[PATH_MAX];
	(void)snprintf(buf, cap, "/sys/fs/cgroup%s%s/%s", current->v1 && *controller ? "/" : "",
		       current->v1 ? controller : "", name);
	return access(real_path(buf, real), F_OK) < 0 ? -RP_ENOENT : 0;
}

static int32_t work_cgroup_dir(void *ctx, rp_ctr ctr, const char *controller, char *buf,
			       uint32_t cap)
{
	char ref[RP_CGROUP_REF_MAX];
	int32_t r = work_cgroup_ref(ctx, ctr, ref, sizeof ref);
	return r ? r : work_cgroup_find(ctx, ref, controller, buf, cap);
}

static int32_t work_list(void *ctx, const char *path,
			 int32_t (*each)(void *arg, const char *name, uint32_t kind), void *arg)
{
	char real[PATH_MAX];
	struct dirent **list;
	int32_t r = 0;
	int n = scandir(real_path(path, real), &list, NULL, versionsort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		if (!r && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			r = each(arg, name,
				 list[i]->d_type == DT_DIR   ? RP_FILE_DIR
				 : list[i]->d_type == DT_LNK ? RP_FILE_LINK
							     : RP_FILE_OTHER);
		free(list[i]);
	}
	free(list);
	return r;
}

static int32_t work_mkdir(void *ctx, const char *path)
{
	char real[PATH_MAX];
	int32_t r = change("mkdir", path, "");
	if (r)
		return r;
	real_path(path, real);
	if (in_resctrl(path))
		return make_group(path, real);
	return mkdir(real, 0755) < 0 ? -errno : 0;
}

static int32_t work_rmdir(void *ctx, const char *path)
{
	char real[PATH_MAX], tasks[PATH_MAX];
	int32_t r = change("rmdir", path, "");
	if (r)
		return r;
	if (!in_resctrl(path))
		return rmdir(real_path(path, real)) < 0 ? -errno : 0;
	if (access(real_path(path, real), F_OK) < 0)
		return -errno;
	if (snprintf(tasks, sizeof tasks, "%s/tasks", path) < PATH_MAX &&
	    !strstr(path, "/mon_groups/")) {
		char root[PATH_MAX];
		write_real(real_path(RESCTRL "/tasks", root), ctl_get(current, tasks), O_APPEND);
	}
	remove_tree(real);
	return 0;
}

static struct ctl_page *find_page(uint32_t pid, uint64_t addr)
{
	for (uint32_t i = 0; i < current->n_pages; i++)
		if (current->pages[i].pid == pid && current->pages[i].addr == addr)
			return &current->pages[i];
	return NULL;
}

static int64_t work_move_pages(void *ctx, int32_t pid, uint64_t n, void **pages,
			       const int32_t *nodes, int32_t *status)
{
	bool fails = current->pages_fail_pid == (uint32_t)pid;
	if (fails && !current->pages_fail_addr)
		return -current->pages_fail_code;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t addr = (uint64_t)(uintptr_t)pages[i];
		struct ctl_page *p = find_page((uint32_t)pid, addr);
		if (p && nodes && fails && addr == current->pages_fail_addr) {
			status[i] = -current->pages_fail_code;
			continue;
		}
		for (uint32_t j = 0; p && nodes && j < current->n_pages; j++)
			if (&current->pages[j] == p ||
			    (current->pages_huge && current->pages[j].pid == p->pid &&
			     current->pages[j].addr >> 21 == addr >> 21))
				current->pages[j].node = nodes[i];
		status[i] = p ? p->node : -ENOENT;
	}
	return 0;
}

static int32_t work_read_link(void *ctx, const char *path, char *buf, uint32_t cap)
{
	char real[PATH_MAX];
	ssize_t n = readlink(real_path(path, real), buf, cap);
	if (n < 0)
		return -errno;
	if ((uint32_t)n >= cap)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return (int32_t)n;
}

static void work_figure(void *ctx, rp_ctr ctr, uint32_t figure, uint64_t value)
{
	size_t len = strlen(current->figures);
	(void)snprintf(current->figures + len, sizeof current->figures - len, "%llu %u %llu\n",
		       (unsigned long long)ctr, figure, (unsigned long long)value);
}

static const struct rp_host_work work_service = {
	.size = sizeof(struct rp_host_work),
	.submit = work_submit,
	.read_file = work_read,
	.write_file = work_write,
	.report = work_report,
	.cgroup_dir = work_cgroup_dir,
	.cgroup_ref = work_cgroup_ref,
	.cgroup_find = work_cgroup_find,
	.list_dir = work_list,
	.make_dir = work_mkdir,
	.remove_dir = work_rmdir,
	.move_pages = work_move_pages,
	.read_link = work_read_link,
	.figure = work_figure,
};

static const void *host_service(void *ctx, const char *id)
{
	if (strcmp(id, RP_HOST_WORK_1) == 0)
		return &work_service;
	return fake_rp_host(ctx)->service(ctx, id);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct ctl_host *ctl_host_new(void)
{
	struct ctl_host *t = fake_alloc(sizeof *t);
	t->fake = fake_host_new(
		&(struct fake_machine){.packages = 2, .nodes = 1, .cores = 4, .threads = 2});
	t->host = *fake_rp_host(t->fake);
	t->host.service = host_service;
	/* thousands of small files */
	(void)snprintf(t->dir, sizeof t->dir, "%s/nri-rp-ctl-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(t->dir))
		fake_die("%s: %s", t->dir, strerror(errno));
	current = t;
	return t;
}

struct ctl_host *ctl_host_free(struct ctl_host *t)
{
	if (!t)
		return NULL;
	ctl_close(t);
	remove_tree(t->dir);
	fake_host_free(t->fake);
	fake_out_fini(&t->changes);
	fake_out_fini(&t->metrics);
	free(t->pages);
	free(t);
	return NULL;
}

struct fake_host *ctl_fake(struct ctl_host *t)
{
	return t->fake;
}

const struct rp_host *ctl_rp_host(struct ctl_host *t)
{
	return &t->host;
}

int32_t ctl_open(struct ctl_host *t, const struct rp_module *module)
{
	current = t;
	ctl_close(t);
	t->module = module;
	t->fake->module = module;
	int32_t r = module->create(&t->host, &t->inst);
	t->controller = r ? NULL : module->service(t->inst, RP_CONTROLLER_1);
	return r;
}

void ctl_close(struct ctl_host *t)
{
	current = t;
	if (!t->controller)
		return;
	t->controller->stop(t->inst);
	(void)ctl_work(t);
	t->module->destroy(t->inst);
	t->controller = NULL;
	t->fake->module = NULL;
	t->started = false;
}

struct rp_instance *ctl_instance(struct ctl_host *t)
{
	return t->inst;
}

int32_t ctl_configure(struct ctl_host *t, const char *text)
{
	struct rp_plan *plan = NULL;
	current = t;
	fake_out_clear(&t->fake->error);
	int32_t r = t->controller->prepare(t->inst, fake_cfg(t->fake, text), &plan);
	if (r)
		return r;
	t->controller->commit(t->inst, plan);
	if (!t->started)
		r = t->controller->start(t->inst);
	t->started = r == 0;
	return r;
}

rp_ctr ctl_ctr(struct ctl_host *t, const struct fake_ctr *desc, const char *tids)
{
	static const char *const controllers[] = {"cpuset", "memory", "blkio", "cpu"};
	struct fake_ctr d = *desc;
	char path[PATH_MAX], text[4096];
	size_t len = 0;
	if (!d.state)
		d.state = RP_STATE_RUNNING;
	rp_ctr ctr = fake_ctr(t->fake, &d);
	for (const char *at = tids; *at && len < sizeof text - 2; at++)
		text[len++] = *at == ',' ? '\n' : *at;
	if (len)
		text[len++] = '\n';
	text[len] = '\0';
	for (unsigned i = 0; i < (t->v1 ? 4 : 1); i++) {
		(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(t, ctr, controllers[i]),
			       t->v1 ? "tasks" : "cgroup.threads");
		ctl_put(t, path, text);
	}
	return ctr;
}

int32_t ctl_pre_create(struct ctl_host *t, rp_ctr ctr)
{
	current = t;
	if (!t->controller->pre_create)
		return 0;
	fake_begin(t->fake);
	int32_t r = t->controller->pre_create(t->inst, t->fake->txn, ctr);
	(void)fake_end(t->fake, r == 0);
	return r;
}

int32_t ctl_start(struct ctl_host *t, rp_ctr ctr)
{
	current = t;
	return t->controller->post_start ? t->controller->post_start(t->inst, ctr) : 0;
}

int32_t ctl_update(struct ctl_host *t, rp_ctr ctr, uint32_t changed)
{
	current = t;
	return t->controller->post_update ? t->controller->post_update(t->inst, ctr, changed) : 0;
}

int32_t ctl_stop(struct ctl_host *t, rp_ctr ctr)
{
	current = t;
	int32_t r = t->controller->post_stop ? t->controller->post_stop(t->inst, ctr) : 0;
	fake_forget(t->fake, ctr);
	return r;
}

void ctl_sync(struct ctl_host *t)
{
	current = t;
	if (t->controller->sync)
		t->controller->sync(t->inst);
}

void ctl_timer(struct ctl_host *t, uint64_t cookie)
{
	current = t;
	t->controller->timer(t->inst, cookie);
}

void ctl_mend(struct ctl_host *t)
{
	uint64_t now = UINT64_C(1) << 32; /* later than any test has come to */
	int64_t delay;
	ctl_fail_nth(t, 0, 0);
	ctl_fail(t, NULL, 0);
	(void)ctl_work(t);
	while ((delay = fake_timer(t->fake, CTL_AGAIN_COOKIE)) >= 0) {
		fake_set_now(t->fake, now += (uint64_t)delay);
		ctl_timer(t, CTL_AGAIN_COOKIE);
		(void)ctl_work(t);
	}
}

void ctl_decide(struct ctl_host *t, rp_ctr ctr, uint32_t field, const char *value)
{
	fake_begin(t->fake);
	if (fake_cache_service.set_text(t->fake, t->fake->txn, ctr, field, value))
		fake_die("no class can be set");
	if (fake_end(t->fake, true))
		fake_die("%s", fake_error(t->fake));
}

void ctl_decide_int(struct ctl_host *t, rp_ctr ctr, uint32_t field, int64_t value)
{
	fake_begin(t->fake);
	if (fake_cache_service.set_int(t->fake, t->fake->txn, ctr, field, value))
		fake_die("no such field");
	if (fake_end(t->fake, true))
		fake_die("%s", fake_error(t->fake));
}

uint32_t ctl_work(struct ctl_host *t)
{
	uint32_t n = 0;
	current = t;
	for (; n < t->n_jobs; n++) {
		struct ctl_job job = t->jobs[n];
		int32_t r = job.run(job.arg);
		if (job.done)
			job.done(job.arg, r);
	}
	t->n_jobs = 0;
	return n;
}

int32_t ctl_restart(struct ctl_host *t, const char *config)
{
	const struct rp_state *state = t->module->service(t->inst, RP_STATE_1);
	const void *data = NULL;
	uint32_t size = 0;
	void *copy = NULL;
	if (state && state->save(t->inst, &data, &size) == 0 && size)
		copy = memcpy(fake_alloc(size), data, size);
	ctl_close(t);
	int32_t r = ctl_open(t, t->module);
	if (!r && copy)
		r = state->load(t->inst, copy, size);
	free(copy);
	return r ? r : ctl_configure(t, config);
}

const char *ctl_report(struct ctl_host *t, rp_ctr ctr)
{
	for (uint32_t i = 0; i < t->n_reports; i++)
		if (t->reports[i].ctr == ctr)
			return t->reports[i].text;
	return "";
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void put_metric(void *ctx, const char *name, const char *help, const char *labels,
		       double value)
{
	fake_print(&((struct ctl_host *)ctx)->metrics, "%s{%s} %g\n", name, labels, value);
}

const char *ctl_metrics(struct ctl_host *t)
{
	const struct rp_metrics *m = t->module->service(t->inst, RP_METRICS_1);
	const struct rp_metric_sink sink = {sizeof sink, 0, t, put_metric, put_metric};
	current = t;
	fake_out_clear(&t->metrics);
	if (m)
		(void)m->collect(t->inst, &sink);
	return fake_out_text(&t->metrics);
}

void ctl_measure(struct ctl_host *t)
{
	t->controller->measure(t->inst);
}

const char *ctl_figures(struct ctl_host *t)
{
	memcpy(t->told_figures, t->figures, sizeof t->told_figures);
	t->figures[0] = '\0';
	return t->told_figures;
}

void ctl_pages(struct ctl_host *t, uint32_t pid, uint64_t addr, uint32_t n, int32_t node)
{
	t->pages = fake_grow(t->pages, t->n_pages + n, sizeof *t->pages);
	for (uint32_t i = 0; i < n; i++)
		t->pages[t->n_pages++] = (struct ctl_page){pid, addr + i * UINT64_C(4096), node};
}

void ctl_pages_put(struct ctl_host *t, uint32_t pid, uint64_t addr, int32_t node)
{
	struct ctl_page *p = t == current ? find_page(pid, addr) : NULL;
	if (!p)
		fake_die("process %u has no page at %llx", pid, (unsigned long long)addr);
	p->node = node;
}

uint32_t ctl_pages_on(const struct ctl_host *t, uint32_t pid, int32_t node)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < t->n_pages; i++)
		n += t->pages[i].pid == pid && t->pages[i].node == node;
	return n;
}

void ctl_pages_fail(struct ctl_host *t, uint32_t pid, uint64_t addr, int32_t code)
{
	t->pages_fail_pid = pid;
	t->pages_fail_addr = addr;
	t->pages_fail_code = code;
}

void ctl_pages_huge(struct ctl_host *t)
{
	t->pages_huge = true;
}
