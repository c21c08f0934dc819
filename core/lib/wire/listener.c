/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/wire/listener.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/sock.h"

#define LOG_SOURCE "wire"
#define FOLDER_MODE 0755
#define PAUSE_MS 1000u
#define ACCEPTS_MAX 16u /* largest number of connections accepted in one turn of the loop */

struct listener {
	char *path;
	int fd; /* listening socket; -1: not open yet */
	struct loop_io *io;
	struct loop_timer *pause; /* between attempts while descriptors are short */
	dev_t dev;
	bool inherited;
	ino_t ino; /* inode of the socket file, so that no other file is removed */
	void (*accepted)(int fd, void *arg);
	void *arg;
	/* set to true if the listener is freed within accepted(); NULL: not in that call */
	bool *freed;
};

static void listener_resume(void *arg)
{
	struct listener *l = arg;
	(void)loop_io_set(l->io, LOOP_READ);
}

static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS;
}

static void on_connection(unsigned events, void *arg)
{
	struct listener *l = arg;
	bool freed = false;
	l->freed = &freed;
	for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
		int fd = wire_accept(l->fd);
		if (is_shortage(fd)) {
			/* The connection stays in the queue and would wake up the loop at once. */
			(void)loop_io_set(l->io, 0);
			(void)loop_timer_arm(l->pause, PAUSE_MS);
		}
		if (fd >= 0 || is_shortage(fd))
			l->accepted(fd, l->arg);
		if (freed)
			return;
		if (fd < 0)
			break;
	}
	l->freed = NULL;
}

static int make_folder(const struct listener_config *c, struct err *err)
{
	_free_ char *copy = strdup(c->path);
	struct err insecure = ERR_INIT;
	int r = copy ? fs_mkdirs(dirname(copy), FOLDER_MODE, err)
		     : err_errno(err, -ENOMEM, "%s", c->path);
	if (!r && wire_check_folder(c->path, &insecure))
		log_warning("%s: %s", c->what, insecure.text);
	return r;
}

static int open_socket(struct listener *l, struct loop *loop, const struct listener_config *c,
		       struct err *err)
{
	struct stat st;
	int r = c->inherited > 0 ? wire_adopt(c->inherited, err) : make_folder(c, err);
	if (r)
		return r;
	if (c->inherited > 0) {
		l->fd = c->inherited;
		l->io = loop_io_new(loop, l->fd, LOOP_READ, on_connection, l);
		return l->io ? 0 : err_errno(err, -ENOMEM, "%s", c->path);
	}
	_close_ int fd = wire_listen_unix(c->path, c->mode, err);
	if (fd < 0)
		return fd;
	if (lstat(c->path, &st) < 0)
		return err_errno(err, -errno, "checking %s failed", c->path);
	l->fd = take_fd(&fd);
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	l->io = loop_io_new(loop, l->fd, LOOP_READ, on_connection, l);
	return l->io ? 0 : err_errno(err, -ENOMEM, "%s", c->path);
}

int listener_new(struct loop *loop, const struct listener_config *config, struct listener **ret,
		 struct err *err)
{
	struct listener *l = calloc(1, sizeof *l);
	if (!l)
		return err_errno(err, -ENOMEM, "%s %s", config->what, config->path);
	l->fd = -1;
	l->inherited = config->inherited > 0;
	l->accepted = config->accepted;
	l->arg = config->arg;
	l->path = strdup(config->path);
	l->pause = loop_timer_new(loop, listener_resume, l);
	int r = l->path && l->pause ? open_socket(l, loop, config, err)
				    : err_errno(err, -ENOMEM, "%s", config->path);
	if (r) {
		listener_free(l);
		return err_prefix(err, "%s: ", config->what);
	}
	*ret = l;
	return 0;
}

struct listener *listener_free(struct listener *l)
{
	struct stat st;
	if (!l)
		return NULL;
	if (l->freed)
		*l->freed = true;
	loop_io_free(l->io);
	loop_timer_free(l->pause);
	if (l->fd >= 0 && l->path) {
		(void)close(l->fd);
		if (!l->inherited && lstat(l->path, &st) == 0 && st.st_dev == l->dev &&
		    st.st_ino == l->ino)
			(void)unlink(l->path);
	}
	free(l->path);
	free(l);
	return NULL;
}
