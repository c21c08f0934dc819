/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/pipeline/reload/watch_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/nri-rpd/pipeline/reload/reload.h"

#define LOG_SOURCE "config"
#define SETTLE_MS 500u
#define CHANGES (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE)

static uint64_t watch_files_sum(const struct pipeline *p)
{
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct conf_files files = {NULL, 0};
	uint64_t sum = 0;
	if (errs) {
		conf_errors_init(errs);
		(void)conf_read_files(p->config_path, &files, errs);
		sum = kept_sum(&files);
	}
	conf_files_fini(&files);
	return sum;
}

static void watch_files_settled(void *arg)
{
	struct pipeline *p = arg;
	const uint64_t sum = watch_files_sum(p);
	if (sum == p->reloads.watch_files.sum)
		return;
	p->reloads.watch_files.sum = sum;
	log_notice("%s has changed: reloading", p->config_path);
	pipeline_reload(p, NULL, NULL);
}

static void watch_files_changed(unsigned events, void *arg)
{
	struct pipeline *p = arg;
	char room[4096];
	while (read(p->reloads.watch_files.fd, room, sizeof room) > 0)
		;
	(void)loop_timer_arm(p->reloads.watch_files.settle, SETTLE_MS);
}

static void watch_files_close(struct watch_files *w)
{
	w->io = loop_io_free(w->io);
	if (w->fd >= 0)
		(void)close(w->fd);
	w->fd = -1;
	loop_timer_disarm(w->settle);
}

static void watch_files_open(struct pipeline *p)
{
	struct watch_files *w = &p->reloads.watch_files;
	char dir[CACHE_PATH_MAX];
	_free_ char *drop_ins = str_printf("%s.d", p->config_path);
	fs_parent(p->config_path, dir, sizeof dir);
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	int wd = w->fd < 0 ? -1 : inotify_add_watch(w->fd, dir, CHANGES | IN_ONLYDIR);
	if (wd >= 0 && drop_ins)
		(void)inotify_add_watch(w->fd, drop_ins, CHANGES | IN_ONLYDIR);
	if (wd >= 0)
		w->io = loop_io_new(p->env.loop, w->fd, LOOP_READ, watch_files_changed, p);
	if (w->io) {
		w->sum = watch_files_sum(p);
		return;
	}
	log_warning("%s is not watched: %s; changes need nri-rpctl reload", dir, strerror(errno));
	watch_files_close(w);
}

void watch_files_configured(struct pipeline *p)
{
	const enum conf_watch wanted = conf_core(p->conf)->watch_files;
	const bool in_pod = getenv("KUBERNETES_SERVICE_HOST") != NULL;
	const bool on = wanted == CONF_WATCH_AUTO ? in_pod : wanted == CONF_WATCH_ON;
	if (on && p->reloads.watch_files.fd < 0)
		watch_files_open(p);
	else if (!on && p->reloads.watch_files.fd >= 0)
		watch_files_close(&p->reloads.watch_files);
}

int watch_files_init(struct pipeline *p)
{
	p->reloads.watch_files.fd = -1;
	p->reloads.watch_files.settle = loop_timer_new(p->env.loop, watch_files_settled, p);
	return p->reloads.watch_files.settle ? 0 : -ENOMEM;
}

void watch_files_fini(struct pipeline *p)
{
	if (!p->reloads.watch_files.settle)
		return;
	watch_files_close(&p->reloads.watch_files);
	p->reloads.watch_files.settle = loop_timer_free(p->reloads.watch_files.settle);
}
