/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a part of a container's pages. The kernel reports the node of each page and moves those on
 * other nodes than wanted. Pages that other processes share are not moved. */
#include <errno.h>
#include "modules/lib/private/room.h"
#include "modules/memory/memory.h"

#define CHUNK 1024u /* number of pages per system call */
#define HUGE_PAGE_BITS 21u
#define HUGE_PAGE (UINT64_C(1) << HUGE_PAGE_BITS)
#define STOPS_MAX 32u /* largest number of stops per chunk; the rest waits for the next pass */
#define PROCESSES_MAX 65536u

/* ---- processes ------------------------------------------------------------------------------- */

struct pids {
	uint32_t *list;
	uint32_t n, cap;
};

static int32_t add_pid(void *arg, uint32_t pid)
{
	struct pids *p = arg;
	if (p->n == PROCESSES_MAX)
		return -RP_E2BIG;
	if (!room_for(&p->list, &p->cap, p->n + 1, sizeof *p->list))
		return -RP_ENOMEM;
	p->list[p->n++] = pid;
	return 0;
}

static int pages_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* ---- mappings -------------------------------------------------------------------------------- */

bool memory_map_line(const char *line, uint64_t *ret_start, uint64_t *ret_end)
{
	static const char *const kernels[] = {"[vvar]", "[vdso]", "[vsyscall]"};
	uint64_t start, end;
	const char *p;
	if (line[0] == '0' && (line[1] == 'x' || line[1] == 'X'))
		return false;
	if (ctl_number(line, 16, &start, &p) || *p++ != '-' || ctl_number(p, 16, &end, &p) ||
	    *p++ != ' ' || end <= start || start % MEMORY_PAGE || end % MEMORY_PAGE)
		return false;
	/* mappings without access ("---p") have no pages; mappings of the kernel do not belong to
	 * the process */
	if (strncmp(p, "---", 3) == 0 || strlen(p) < 4)
		return false;
	size_t len = strcspn(p, "\n");
	for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++) {
		size_t n = strlen(kernels[i]);
		if (len >= n && strncmp(p + len - n, kernels[i], n) == 0)
			return false;
	}
	*ret_start = start;
	*ret_end = end;
	return true;
}

/* ---- pages ----------------------------------------------------------------------------------- */

struct mover {
	const struct modhost *h;
	struct memory_step *s;
	uint32_t pid;
	uint32_t n_looked;
	void *pages[CHUNK], *away[CHUNK];
	int32_t before[CHUNK], status[CHUNK], nodes[CHUNK];
};

/* Returns the target node for a page: the nodes in turn, one huge page each. The kernel moves a
 * huge page as a whole, and would move it again for each of its pages with another target. */
static int32_t node_for(const struct mover *m, const void *page)
{
	struct rp_ids nodes = rp_ids_of(&m->s->nodes);
	uint32_t n = rp_ids_count(nodes);
	uint32_t turn = n ? (uint32_t)(((uintptr_t)page >> HUGE_PAGE_BITS) % n) : 0;
	uint32_t node = rp_ids_first(nodes);
	while (turn--)
		node = rp_ids_next(nodes, node);
	return (int32_t)node;
}

static bool is_there(const struct mover *m, int32_t status)
{
	return status >= 0 && rp_ids_has(rp_ids_of(&m->s->nodes), (uint32_t)status);
}

static void count_result(struct mover *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		int32_t r = m->status[i];
		if (r == -EACCES) {
			m->s->n_shared++; /* mapped by other processes as well */
		} else if (!is_there(m, r) && r != -ENOENT) {
			m->s->n_left++;
			m->s->why = r < 0 ? r : -EBUSY;
		}
	}
}

/* Moves pages. The kernel stops at a page that it cannot move and reports nothing about the
 * following ones, which are tried again without it. */
static int64_t move_away(struct mover *m, uint32_t n)
{
	const struct rp_host_work *work = m->h->work;
	uint32_t at = 0;
	for (unsigned stops = 0; at < n && stops < STOPS_MAX; stops++) {
		int64_t r = work->move_pages(m->h->ctx, (int32_t)m->pid, n - at, m->away + at,
					     m->nodes + at, m->status + at);
		if (r <= 0)
			return r;
		r = work->move_pages(m->h->ctx, (int32_t)m->pid, n - at, m->away + at, NULL,
				     m->status + at);
		if (r < 0)
			return r;
		while (at < n && is_there(m, m->status[at]))
			at++;
		at++;
	}
	return 0;
}

/* Counts moved pages of the whole chunk. For one page of a huge page the kernel moves all of its
 * pages, also pages that were not requested yet. */
static int64_t count_moved(struct mover *m, uint32_t n)
{
	int64_t r =
		m->h->work->move_pages(m->h->ctx, (int32_t)m->pid, n, m->pages, NULL, m->status);
	for (uint32_t i = 0; r >= 0 && i < n; i++)
		m->s->n_moved += m->before[i] >= 0 && !is_there(m, m->before[i]) &&
				 is_there(m, m->status[i]);
	return r;
}

/* Counts the absent pages after the last present one of a chunk. */
static void count_empty(struct mover *m, uint32_t n)
{
	uint32_t last = n;
	while (last && (m->status[last - 1] == -ENOENT || m->status[last - 1] == -EFAULT))
		last--;
	m->s->n_empty = last ? n - last : m->s->n_empty + n;
}

/* Moves the pages of a chunk that are on other nodes, within the budget. Returns the number of
 * pages handled, or -errno. */
static int64_t move_chunk(struct mover *m, uint32_t n)
{
	const struct rp_host_work *work = m->h->work;
	uint32_t n_away = 0, dealt = 0;
	int64_t r = work->move_pages(m->h->ctx, (int32_t)m->pid, n, m->pages, NULL, m->status);
	if (r < 0)
		return r;
	count_empty(m, n);
	memcpy(m->before, m->status, n * sizeof *m->before);
	for (; dealt < n && m->s->n_moved + n_away < m->s->budget; dealt++) {
		int32_t node = m->before[dealt];
		if (node < 0 || is_there(m, node))
			continue;
		m->away[n_away] = m->pages[dealt];
		m->nodes[n_away++] = node_for(m, m->pages[dealt]);
	}
	if (!n_away)
		return dealt;
	r = move_away(m, n_away);
	if (r < 0)
		return r;
	count_result(m, n_away);
	r = count_moved(m, n);
	return r < 0 ? r : dealt;
}

static bool is_over(const struct mover *m)
{
	return m->s->n_moved >= m->s->budget || m->n_looked >= MEMORY_LOOK_MAX;
}

/* Fills a chunk from an address on. It does not end within a huge page, as the rest of that page
 * would be found moved by the next chunk. */
static uint32_t take_chunk(struct mover *m, uint64_t at, uint64_t end)
{
	uint64_t last = at + CHUNK * MEMORY_PAGE;
	last -= last % HUGE_PAGE; /* after `at`, as a chunk is two huge pages long */
	if (last > end)
		last = end;
	uint32_t n = 0;
	for (uint64_t p = at; p < last; p += MEMORY_PAGE)
		m->pages[n++] = (void *)(uintptr_t)p;
	return n;
}

/* Moves the pages of a mapping. Returns 0 at its end, 1 if the step is over, or -errno. s->addr is
 * the position reached. */
static int32_t move_mapping(struct mover *m, uint64_t start, uint64_t end)
{
	uint64_t at = m->s->addr > start ? m->s->addr : start;
	if (at == start)
		m->s->n_empty = 0;
	while (at < end) {
		if (is_over(m))
			return 1;
		if (m->s->n_empty >= MEMORY_EMPTY_MAX) {
			m->s->n_sparse++;
			m->s->addr = end;
			return 0;
		}
		uint32_t n = take_chunk(m, at, end);
		int64_t dealt = move_chunk(m, n);
		if (dealt < 0)
			return (int32_t)dealt;
		m->n_looked += n;
		at += (uint64_t)dealt * MEMORY_PAGE;
		m->s->addr = at;
	}
	return 0;
}

static int32_t move_process(struct mover *m)
{
	char path[64], *text;
	(void)ctl_format(path, sizeof path, "/proc/%u/maps", m->pid);
	int32_t r = ctl_read(m->h, path, &text);
	if (r < 0)
		return r;
	r = 0;
	for (const char *line = text; r == 0 && line && *line;) {
		uint64_t start, end;
		if (memory_map_line(line, &start, &end) && end > m->s->addr)
			r = move_mapping(m, start, end);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	free(text);
	return r;
}

/* ---- one step -------------------------------------------------------------------------------- */

/* Returns true if the container may use the target nodes. The kernel moves pages only to allowed
 * nodes, so the runtime must write them first. */
static bool may_use(const struct modhost *h, const struct memory_step *s)
{
	char dir[CTL_PATH_MAX], path[CTL_PATH_MAX], text[4096];
	struct rp_idset allowed;
	if (h->work->cgroup_find(h->ctx, s->item.ref, "cpuset", dir, sizeof dir) ||
	    ctl_format(path, sizeof path, "%s/cpuset.mems", dir) ||
	    h->work->read_file(h->ctx, path, text, sizeof text) < 0 ||
	    rp_idset_parse(&allowed, text, RP_NODES_MAX))
		return false;
	return rp_ids_equal(rp_ids_of(&allowed), rp_ids_of(&s->nodes));
}

static int32_t list_processes(const struct modhost *h, const struct memory_step *s,
			      struct pids *pids)
{
	char dir[CTL_PATH_MAX];
	int32_t r = h->work->cgroup_find(h->ctx, s->item.ref, "cpuset", dir, sizeof dir);
	if (!r)
		r = ctl_each_process(h, dir, add_pid, pids);
	if (!r && pids->n)
		qsort(pids->list, pids->n, sizeof *pids->list, pages_compare);
	return r;
}

static void move_all(struct mover *m, const struct pids *pids)
{
	struct memory_step *s = m->s;
	for (uint32_t i = 0; i < pids->n; i++) {
		if (pids->list[i] < s->pid)
			continue;
		if (pids->list[i] > s->pid)
			s->addr = 0;
		m->pid = s->pid = pids->list[i];
		int32_t r = move_process(m);
		if (r > 0) {
			s->outcome = MEMORY_MOVE_ON;
			return;
		}
		if (r < 0 && r != -ESRCH && r != -ENOENT)
			s->why = r; /* other processes may be accessible */
	}
	s->outcome = MEMORY_MOVE_DONE;
}

void memory_step_run(const struct modhost *h, struct memory_step *s)
{
	struct pids pids = {0};
	s->outcome = MEMORY_MOVE_TOO_EARLY;
	if (!may_use(h, s))
		return;
	s->outcome = MEMORY_MOVE_DONE;
	struct mover *m = calloc(1, sizeof *m);
	s->why = m ? list_processes(h, s, &pids) : -RP_ENOMEM;
	if (!s->why) {
		m->h = h;
		m->s = s;
		move_all(m, &pids);
	}
	free(pids.list);
	free(m);
}
