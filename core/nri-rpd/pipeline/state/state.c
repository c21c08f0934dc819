/* SPDX-License-Identifier: Apache-2.0 */
/* State of previous runs: opens the store with retries, restores the cache, and reads a state
 * without a change for the check of a configuration. */
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/host/service/settings.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/state/state.h"
#include "core/nri-rpd/store/restore.h"

#define LOG_SOURCE "pipeline"

#define BOOT_ID "proc/sys/kernel/random/boot_id"
#define BOOT_ID_MAX 64
#define OPEN_TRIES 3u /* number of immediate attempts of a start to open the store */
#define OPEN_PAUSE_US 50000u
/* interval of later attempts, while containers are placed without a store */
#define OPEN_AGAIN_MS 2000u

static const char *const outcomes[] = {
	[STORE_FRESH] = "fresh",	[STORE_FOUND] = "restored",
	[STORE_RESET] = "reset",	[STORE_OTHER_BOOT] = "other boot",
	[STORE_NEWER] = "newer format", [STORE_DAMAGED] = "damaged",
	[STORE_UNSAFE] = "unsafe",	[STORE_PART] = "restored in part",
};

static int read_boot_id(char ret[BOOT_ID_MAX], struct err *err)
{
	struct fs_root real;
	int r = fs_root_open(&real, "/", err);
	if (r)
		return r;
	ssize_t n = fs_read(&real, BOOT_ID, ret, BOOT_ID_MAX);
	fs_root_close(&real);
	return n < 0 ? err_errno(err, (int)n, "/" BOOT_ID) : 0;
}

static int open_in(struct pipeline *p, const char *dir, bool read_only, bool late,
		   struct store_opening *ret, struct err *err)
{
	char boot_id[BOOT_ID_MAX];
	int r = read_boot_id(boot_id, err);
	if (r)
		return r;
	const struct store_params params = {.dir = dir,
					    .boot_id = boot_id,
					    .reset = late || p->cfg.reset_cache,
					    .at_once = late,
					    .read_only = read_only};
	return store_open(&params, &p->store, ret, err);
}

/* Returns true if the error may be temporary, as with a full disk or a disk that is still
 * read-only. A directory of another user is no such case. */
static bool may_pass(int r)
{
	return r && r != -EBUSY && r != -ENOMEM && r != -EPERM && r != -ENOTDIR;
}

/* Uses the run-time directory for the state, because the state directory or a link to it belongs to
 * another user. The state is lost at a reboot then. */
static void write_elsewhere(struct pipeline *p)
{
	if (str_eq(p->reloads.dir, p->state_dir))
		memcpy(p->reloads.dir, p->reloads.run_dir, sizeof p->reloads.dir);
	memcpy(p->state_dir, p->run_dir, sizeof p->state_dir);
}

int state_open(struct pipeline *p, struct err *err)
{
	struct store_opening opening;
	struct store_counts counts;
	struct err why = ERR_INIT;
	int r = open_in(p, p->state_dir, false, false, &opening, &why);
	for (unsigned n = 1; may_pass(r) && n < OPEN_TRIES; n++) {
		(void)usleep(OPEN_PAUSE_US);
		why = (struct err)ERR_INIT;
		r = open_in(p, p->state_dir, false, false, &opening, &why);
	}
	if (r == -EBUSY || r == -ENOMEM)
		return err_set(err, r, "%s", err_text(&why, r));
	if (r) {
		(void)snprintf(p->state.state_error, sizeof p->state.state_error, "%s",
			       err_text(&why, r));
		(void)snprintf(p->state.store_state, sizeof p->state.store_state, "unusable");
		log_error("%s; a restart will lose placements", p->state.state_error);
		p->state.may_come = may_pass(r);
		if (p->state.may_come)
			(void)loop_timer_arm(p->state.persist_timer, OPEN_AGAIN_MS);
		else
			write_elsewhere(p);
		return 0;
	}
	(void)snprintf(p->state.store_state, sizeof p->state.store_state, "%s",
		       outcomes[opening.outcome]);
	if (opening.why[0])
		log_notice("%s", opening.why);
	r = store_restore(p->store, p->env.cache, &counts, err);
	if (!r && counts.ctrs)
		log_info("restored %u pods and %u containers", counts.pods, counts.ctrs);
	if (!r)
		plugins_restore(p);
	return r;
}

/* Opens the store while the daemon runs. The records in it are outdated: the runtime has listed its
 * containers since, and they were placed again. */
void state_open_late(struct pipeline *p)
{
	struct store_opening opening;
	struct store_counts counts;
	struct err err = ERR_INIT;
	if (!p->state.may_come)
		return;
	int r = open_in(p, p->state_dir, false, true, &opening, &err);
	if (!r)
		r = store_restore(p->store, p->env.cache, &counts, &err);
	if (r) {
		p->store = store_close(p->store);
		p->state.may_come = r != -EPERM && r != -ENOTDIR;
		(void)snprintf(p->state.state_error, sizeof p->state.state_error, "%s",
			       err_text(&err, r));
		if (p->state.may_come)
			(void)loop_timer_arm(p->state.persist_timer, OPEN_AGAIN_MS);
		return;
	}
	p->state.may_come = false;
	p->state.state_error[0] = '\0';
	(void)snprintf(p->state.store_state, sizeof p->state.store_state, "%s",
		       outcomes[opening.outcome]);
	log_notice("%s can now be used: placements are saved for a restart", p->state_dir);
	config_keep_policy(p);
	plugins_keep(p);
	events_open_late(p);
}

int state_open_settings(struct pipeline *p, struct err *err)
{
	char boot_id[BOOT_ID_MAX], path[CACHE_PATH_MAX];
	int r = read_boot_id(boot_id, err);
	if (r)
		return r;
	if (snprintf(path, sizeof path, "%s/settings", p->run_dir) >= (int)sizeof path)
		return err_set(err, -ENAMETOOLONG, "directory %s: the path is too long",
			       p->run_dir);
	_free_ char *origin = str_printf("%s %s", boot_id, p->root.path);
	if (!origin)
		return err_errno(err, -ENOMEM, "%s", path);
	struct err why = ERR_INIT;
	r = p->state.run_error[0] ? 0 : settings_open(&p->env, path, origin, &why);
	if (r == -ENOMEM)
		return err_set(err, r, "%s", why.text);
	if (r) {
		(void)snprintf(p->state.run_error, sizeof p->state.run_error, "%s", why.text);
		log_error(
			"%s; kernel settings of modules are not restored if the process is killed",
			p->state.run_error);
	}
	return 0;
}

/* Opens and restores a state read-only. -ENOENT without a text in err: there is none. */
static int state_do_look(struct pipeline *p, const char *dir, struct store_opening *opening,
			 struct err *err)
{
	struct store_counts counts;
	int r = open_in(p, dir, true, false, opening, err);
	if (!r)
		r = store_restore(p->store, p->env.cache, &counts, err);
	p->store = store_abandon(p->store);
	return r;
}

void state_look(struct pipeline *p, const char *dir, struct buf *report)
{
	struct store_opening opening = {.outcome = STORE_FRESH};
	struct err err = ERR_INIT;
	if (p->cfg.reset_cache)
		return;
	int r = state_do_look(p, dir, &opening, &err);
	if (r == -ENOENT && !err.code)
		return;
	if (r)
		(void)buf_printf(report,
				 "warning: ignoring the state in %s, as at a first start: %s\n",
				 dir, err_text(&err, r));
	else if (opening.outcome != STORE_FOUND && opening.outcome != STORE_FRESH)
		(void)buf_printf(report, "warning: a start would not use %sthe state in %s: %s\n",
				 opening.outcome == STORE_PART ? "all of " : "", dir, opening.why);
}
