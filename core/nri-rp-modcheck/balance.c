/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rp-modcheck/balance.h"
#include "core/nri-rp-modcheck/watch.h"

#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"

/* Tolerance for the growth in half of the rounds: less is a table that grew. A leak of one block a
 * round exceeds it, because a block takes at least 32 bytes. */
#define HEAP_NOISE 12288u
/* growth of mapped memory that is ignored, in bytes: stacks, files of the C library */
#define MAPPED_NOISE 262144u

static unsigned count_entries(const char *path)
{
	unsigned n = 0;
	_closedir_ DIR *dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	return n;
}

static size_t address_space(void)
{
	unsigned long pages = 0;
	_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	if (!f || fscanf(f, "%lu", &pages) != 1)
		return 0;
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

struct balance balance_now(void)
{
	size_t space = address_space();
	struct mallinfo2 heap = mallinfo2();
	size_t of_heap = heap.arena + heap.hblkhd;
	return (struct balance){heap.uordblks, space > of_heap ? space - of_heap : 0,
				count_entries("/proc/self/fd"), count_entries("/proc/self/task")};
}

/* Returns true if both halves have grown. Tables grow in one of them only; a leak grows in both. */
static bool balance_grows(size_t first, size_t middle, size_t last, size_t noise)
{
	return middle > first + noise && last > middle + noise;
}

static int balance_do_compare(const struct balances *b, unsigned n, size_t heap_noise,
			      size_t mapped_noise, const char *what, struct err *err)
{
	struct balance first = b->at[0], middle = b->at[1], last = b->at[2];
	if (balance_grows(first.bytes, middle.bytes, last.bytes, heap_noise))
		return err_set(err, -ENOMEM, "%s: about %zu bytes leak each time", what,
			       (last.bytes - first.bytes) / n);
	/* sanitizers and valgrind map memory for themselves */
	bool exact = !(loader_default_flags() & LOADER_INSTRUMENTED) && watch_factor() == 1;
	if (exact && balance_grows(first.mapped, middle.mapped, last.mapped, mapped_noise))
		return err_set(err, -ENOMEM, "%s: about %zu mapped bytes leak each time (mmap)",
			       what, (last.mapped - first.mapped) / n);
	if (last.fds != first.fds)
		return err_set(err, -EMFILE, "%s: %d file descriptors leak", what,
			       (int)(last.fds - first.fds));
	if (last.threads != first.threads)
		return err_set(err, -EAGAIN, "%s: %d threads remain", what,
			       (int)(last.threads - first.threads));
	return 0;
}

int balance_compare(const struct balances *b, unsigned n, const char *what, struct err *err)
{
	return balance_do_compare(b, n, HEAP_NOISE, MAPPED_NOISE, what, err);
}

void balance_round(struct balances *b, unsigned i)
{
	if (i % 3 == 2)
		b->at[i / 3] = balance_now();
}

int balance_exact(const struct balances *b, const char *what, struct err *err)
{
	return balance_do_compare(b, BALANCE_ROUNDS * 2 / 3, 0, 0, what, err);
}
