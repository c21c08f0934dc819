/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery from safe mode: alternates between the files and the last good configuration, each tried
 * with config_recover(). */
#include "core/nri-rpd/pipeline/reload/recover.h"

#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/reload/last_good.h"

#define LOG_SOURCE "config"

static void recover_arm(struct pipeline *p)
{
	(void)loop_timer_arm(p->reloads.recovery.timer, p->reloads.recovery.delay_ms);
}

void recover_later(struct pipeline *p)
{
	struct recovery *r = &p->reloads.recovery;
	if (!p->reloads.safe_mode_reason[0])
		return;
	r->delay_ms = r->delay_ms * 2 < RECOVER_LAST_MS ? r->delay_ms * 2 : RECOVER_LAST_MS;
	recover_arm(p);
}

/* Starts an attempt with the last good configuration. Returns false if there is none, or if the
 * attempt cannot start now. */
static bool recover_try_last_good(struct pipeline *p, struct err *err)
{
	struct kept kept = {0};
	if (kept_read(p->reloads.dir, &kept, err) && kept_read(p->reloads.run_dir, &kept, err))
		return false;
	if (kept_sum(&kept.files) == p->reloads.recovery.files_sum) {
		conf_files_fini(&kept.files);
		return false;
	}
	return config_recover(p, &kept.files, kept.wall_ns, err) == 0;
}

static bool recover_try_files(struct pipeline *p, struct err *err)
{
	struct config_text text;
	config_read(p->config_path, &p->reloads.pushed, &text);
	if (text.code || p->reloads.undo.undone || !p->reloads.recovery.files_sum ||
	    kept_sum(&text.files) != p->reloads.recovery.files_sum) {
		conf_files_fini(&text.files);
		return false;
	}
	return config_recover(p, &text.files, 0, err) == 0;
}

static void recover_try(void *arg)
{
	struct pipeline *p = arg;
	struct recovery *r = &p->reloads.recovery;
	struct err err = ERR_INIT;
	bool last_good = r->tries_last_good;
	if (!p->reloads.safe_mode_reason[0])
		return;
	/* Wait for the end of a running reload or topology change. */
	if (p->reloads.running || p->node.machine_change) {
		recover_arm(p);
		return;
	}
	r->tries_last_good = !last_good;
	if (last_good && recover_try_last_good(p, &err))
		return;
	if (!recover_try_files(p, &err))
		recover_later(p);
}

int recover_init(struct pipeline *p)
{
	p->reloads.recovery.timer = loop_timer_new(p->env.loop, recover_try, p);
	return p->reloads.recovery.timer ? 0 : -ENOMEM;
}

void recover_fini(struct pipeline *p)
{
	p->reloads.recovery.timer = loop_timer_free(p->reloads.recovery.timer);
}

void recover_begin(struct pipeline *p, const struct conf_files *files)
{
	if (!p->reloads.safe_mode_reason[0])
		return;
	p->reloads.recovery.files_sum = files ? kept_sum(files) : 0;
	p->reloads.recovery.delay_ms = RECOVER_FIRST_MS;
	recover_arm(p);
}

void recover_soon(struct pipeline *p)
{
	if (!p->reloads.safe_mode_reason[0])
		return;
	p->reloads.recovery.tries_last_good = false;
	p->reloads.recovery.delay_ms = RECOVER_FIRST_MS / 4;
	recover_arm(p);
}
