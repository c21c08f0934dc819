/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas whose blocks hold one thing each, so that every piece asks for memory and t_oom.h can
 * refuse it: in blocks as they are most pieces find room. To be included in the test's one source
 * file, before anything of core.
 */
#ifndef TEST_OOM_ARENA_H
#define TEST_OOM_ARENA_H

#define arena_new arena_new_sized
#include "core/lib/util/arena.c"
#undef arena_new

struct arena *arena_new(size_t block_size, size_t limit);

struct arena *arena_new(size_t block_size, size_t limit)
{
	return arena_new_sized(0, limit);
}

#endif
