/* SPDX-License-Identifier: Apache-2.0 */
/* Dials the first socket or the fallback, and tries the first one while the fallback is in use. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/nri/fallback.h"
#include "core/nri-rpd/nri/internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/sock.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/nri/nri.h"
#include "core/nri-rpd/pipeline/pipeline.h"

#define LOG_SOURCE "nri"
#define LOOK_FIRST_MS 50u
#define LOOK_LAST_MS 30000u

static int fallback_do_dial(const char *socket, struct err *err)
{
	int r = wire_check_folder(socket, err);
	return r && r != -ENOENT ? r : wire_connect_unix(socket, err);
}

static void look_later(struct fallback *f)
{
	(void)loop_timer_arm(f->look, backoff_next_ms(&f->backoff, LOOK_FIRST_MS, LOOK_LAST_MS));
}

static void look_for_first(void *arg)
{
	struct nri *nri = arg;
	struct fallback *f = &nri->fallback;
	struct err err = ERR_INIT;
	f->way_back = fallback_do_dial(nri->socket, &err);
	if (f->way_back < 0) {
		f->way_back = -1;
		look_later(f);
		return;
	}
	log_notice("%s is available again: leaving the fallback %s", nri->socket, f->socket);
	nri_renew(nri);
}

static void set_in_use(struct nri *nri, bool in_use, const char *why)
{
	struct runtime_state *s = pipeline_runtime(nri->cfg.pipeline);
	nri->fallback.in_use = in_use;
	s->on_fallback = in_use;
	(void)snprintf(s->fallback_why, sizeof s->fallback_why, "%s", why);
}

static bool is_due(const struct fallback *f)
{
	return *f->socket && (!f->seen || clock_ms() - f->gone_ms >= f->after_ms);
}

static int dial_fallback(struct nri *nri, const char *why, struct err *err)
{
	struct fallback *f = &nri->fallback;
	struct err second = ERR_INIT;
	int fd = fallback_do_dial(f->socket, &second);
	if (fd < 0)
		return err_set(err, fd, "%s; fallback: %s", why, err_text(&second, fd));
	log_warning("connecting to the fallback %s: %s", f->socket, why);
	pipeline_event(nri->cfg.pipeline, EV_RUNTIME, "connecting to the fallback: %s", why);
	set_in_use(nri, true, why);
	look_later(f);
	return fd;
}

int fallback_dial(struct nri *nri, struct err *err)
{
	struct fallback *f = &nri->fallback;
	struct err first = ERR_INIT;
	char why[ERR_TEXT_MAX];
	loop_timer_disarm(f->look);
	int fd = f->way_back;
	f->way_back = -1;
	set_in_use(nri, false, "");
	if (fd < 0 && f->turned_away && is_due(f)) {
		(void)snprintf(why, sizeof why, "%s",
			       pipeline_runtime(nri->cfg.pipeline)->last_error);
		f->turned_away = false; /* by default the next attempt goes to the first socket */
		return dial_fallback(nri, why, err);
	}
	if (fd < 0)
		fd = fallback_do_dial(nri->socket, &first);
	if (fd >= 0)
		return fd;
	if (!is_due(f))
		return err_set(err, fd, "%s", err_text(&first, fd));
	(void)snprintf(why, sizeof why, "%s", err_text(&first, fd));
	return dial_fallback(nri, why, err);
}

void fallback_lost(struct nri *nri, bool connected, bool synchronized)
{
	struct fallback *f = &nri->fallback;
	loop_timer_disarm(f->look);
	if (!connected || f->in_use)
		return;
	f->turned_away = !synchronized;
	if (!synchronized)
		return;
	f->seen = true;
	f->gone_ms = clock_ms();
	backoff_reset(&f->backoff);
}

int fallback_set(struct nri *nri, const char *socket, uint64_t after_ms, bool *ret_renew)
{
	struct fallback *f = &nri->fallback;
	f->after_ms = after_ms;
	socket = socket ? socket : "";
	*ret_renew = f->in_use && !str_eq(f->socket, socket);
	if (str_eq(f->socket, socket))
		return 0;
	char *copy = strdup(socket);
	if (!copy)
		return -ENOMEM;
	free(f->socket);
	f->socket = copy;
	pipeline_runtime(nri->cfg.pipeline)->fallback = copy;
	return 0;
}

int fallback_init(struct nri *nri)
{
	struct fallback *f = &nri->fallback;
	f->way_back = -1;
	f->after_ms = nri->cfg.fallback_after_ms;
	f->socket = strdup(nri->cfg.fallback ? nri->cfg.fallback : "");
	f->look = loop_timer_new(nri->cfg.loop, look_for_first, nri);
	pipeline_runtime(nri->cfg.pipeline)->fallback = f->socket;
	return f->socket && f->look ? 0 : -ENOMEM;
}

void fallback_forget(struct nri *nri)
{
	struct fallback *f = &nri->fallback;
	if (f->way_back >= 0)
		(void)close(f->way_back);
	f->way_back = -1;
}

void fallback_fini(struct nri *nri)
{
	struct fallback *f = &nri->fallback;
	pipeline_runtime(nri->cfg.pipeline)->fallback = NULL;
	loop_timer_free(f->look);
	fallback_forget(nri);
	free(f->socket);
}
