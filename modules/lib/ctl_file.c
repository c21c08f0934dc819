/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of kernel files, and walks over the threads of a cgroup and of the cgroups below it. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include <nri-rp/lib/ctl_file.h>

#define FIRST_PIECE 4096u
#define DEPTH_MAX 16u /* levels of cgroups below a container's own */

int32_t ctl_read(const struct modhost *h, const char *path, char **ret)
{
	char *buf = NULL;
	for (uint32_t cap = FIRST_PIECE; cap <= CTL_FILE_MAX; cap *= 4) {
		char *grown = realloc(buf, cap);
		if (!grown) {
			free(buf);
			return -RP_ENOMEM;
		}
		buf = grown;
		int32_t n = h->work->read_file(h->ctx, path, buf, cap);
		if (n == -EFBIG)
			continue;
		if (n < 0)
			free(buf);
		else
			*ret = buf;
		return n;
	}
	free(buf);
	return -RP_E2BIG;
}

int32_t ctl_number(const char *text, int base, uint64_t *ret, const char **ret_end)
{
	char *end;
	if (base == 16 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	char c = *text;
	int digit = (c >= '0' && c <= '9') ||
		    (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
	if (!digit)
		return -RP_EINVAL;
	errno = 0;
	unsigned long long v = strtoull(text, &end, base);
	if (errno)
		return -RP_EINVAL;
	if (!ret_end && *end && !(*end == '\n' && !end[1]))
		return -RP_EINVAL;
	if (ret_end)
		*ret_end = end;
	*ret = v;
	return 0;
}

int32_t ctl_read_u64(const struct modhost *h, const char *path, uint64_t *ret)
{
	char text[64];
	int32_t n = h->work->read_file(h->ctx, path, text, sizeof text);
	return n < 0 ? n : ctl_number(text, 10, ret, NULL);
}

int32_t ctl_format(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return n < 0 || (size_t)n >= size ? -RP_E2BIG : 0;
}

/* ---- cgroups --------------------------------------------------------------------------------- */

char *ctl_cgroup_ref(const struct modhost *h, rp_ctr ctr)
{
	char ref[RP_CGROUP_REF_MAX];
	return h->work->cgroup_ref(h->ctx, ctr, ref, sizeof ref) ? NULL : strdup(ref);
}

int ctl_is_v1(const struct modhost *h)
{
	char text[8];
	return h->work->read_file(h->ctx, "/sys/fs/cgroup/cgroup.controllers", text, sizeof text) ==
	       -ENOENT;
}

/* ---- threads --------------------------------------------------------------------------------- */

struct walk {
	const struct modhost *h;
	const char *const *files; /* two names; the first that exists is read */
	const char *dir;
	unsigned depth;
	int32_t (*each)(void *arg, uint32_t tid);
	void *arg;
};

static int32_t each_line(const struct walk *w, const char *text)
{
	while (*text) {
		uint64_t tid;
		if (ctl_number(text, 10, &tid, &text) || tid > INT32_MAX)
			return -RP_EINVAL;
		int32_t r = tid ? w->each(w->arg, (uint32_t)tid) : 0;
		if (r)
			return r;
		text += strspn(text, "\n ");
	}
	return 0;
}

static int32_t walk_dir(const struct walk *w);

static int32_t walk_child(void *arg, const char *name, uint32_t kind)
{
	const struct walk *above = arg;
	char dir[CTL_PATH_MAX];
	struct walk w = *above;
	if (kind != RP_FILE_DIR || ++w.depth > DEPTH_MAX)
		return 0;
	if (ctl_format(dir, sizeof dir, "%s/%s", above->dir, name))
		return -RP_E2BIG;
	w.dir = dir;
	int32_t r = walk_dir(&w);
	return r == -ENOENT || r == -ENODEV ? 0 : r; /* removed meanwhile */
}

static int32_t walk_dir(const struct walk *w)
{
	char path[CTL_PATH_MAX], *text = NULL;
	int32_t n = -ENOENT;
	for (unsigned i = 0; i < 2 && n == -ENOENT; i++) {
		if (ctl_format(path, sizeof path, "%s/%s", w->dir, w->files[i]))
			return -RP_E2BIG;
		n = ctl_read(w->h, path, &text);
	}
	/* The list of a threaded cgroup domain is unreadable: read the lists of its child
	 * cgroups. */
	if (n < 0 && n != -EOPNOTSUPP)
		return n;
	int32_t r = n < 0 ? 0 : each_line(w, text);
	free(text);
	if (r)
		return r;
	struct walk here = *w;
	return w->h->work->list_dir(w->h->ctx, w->dir, walk_child, &here);
}

int32_t ctl_each_thread(const struct modhost *h, const char *cgroup,
			int32_t (*each)(void *arg, uint32_t tid), void *arg)
{
	static const char *const files[] = {"cgroup.threads", "tasks"}; /* v2, v1 */
	struct walk w = {h, files, cgroup, 0, each, arg};
	return walk_dir(&w);
}

int32_t ctl_each_process(const struct modhost *h, const char *cgroup,
			 int32_t (*each)(void *arg, uint32_t pid), void *arg)
{
	static const char *const files[] = {"cgroup.procs", "cgroup.procs"};
	struct walk w = {h, files, cgroup, 0, each, arg};
	return walk_dir(&w);
}
