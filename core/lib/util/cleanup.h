/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup at the end of a scope: _free_ char *s = …; TAKE(s) hands the pointer over before that. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _free_ _cleanup_(cleanup_free)
#define _close_ _cleanup_(cleanup_close)
#define _fclose_ _cleanup_(cleanup_fclose)
#define _closedir_ _cleanup_(cleanup_closedir)

/* Returns the pointer and sets the variable to NULL. */
#define TAKE(p)                                                                                    \
	__extension__({                                                                            \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}
