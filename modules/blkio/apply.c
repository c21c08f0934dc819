/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a class to the files of a cgroup: writes values that differ, resets values of other
 * devices, and reads written values back.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "modules/blkio/blkio.h"

struct want {
	uint32_t major, minor;
	uint32_t weight; /* weight to write; 0: the kernel's default weight */
	uint64_t rate[BLKIO_N_RATES]; /* BLKIO_NOT_SET: no limit */
	bool weighs;
	char name[64];
};

struct apply {
	const struct modhost *h;
	struct blkio_item *item;
	char dir[CTL_PATH_MAX];
	struct want *want;
	uint32_t n_want;
	uint32_t weight; /* default weight; 0: not set */
	const struct blkio_entry *entry; /* entry being expanded */
	uint32_t n_done, n_failed;
	char why[CTL_TEXT_MAX]; /* text of the first failure */
	char note[CTL_TEXT_MAX];
	bool out_of_memory;
};

/* ---- expansion of a class -------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void apply_note(struct apply *a, const char *fmt, ...)
{
	va_list ap;
	if (a->note[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(a->note, sizeof a->note, fmt, ap);
	va_end(ap);
}

static void want_device(void *arg, const struct blkio_device *d)
{
	struct apply *a = arg;
	uint32_t i = 0;
	while (i < a->n_want && (a->want[i].major != d->major || a->want[i].minor != d->minor))
		i++;
	if (i == a->n_want) {
		struct want *grown = reallocarray(a->want, a->n_want + 1, sizeof *a->want);
		if (!grown) {
			a->out_of_memory = true;
			return;
		}
		a->want = grown;
		grown[a->n_want++] =
			(struct want){.major = d->major, .minor = d->minor, .weighs = d->weighs};
		memcpy(grown[i].name, d->name, sizeof grown[i].name);
		for (unsigned r = 0; r < BLKIO_N_RATES; r++)
			grown[i].rate[r] = BLKIO_NOT_SET;
	}
	struct want *w = &a->want[i];
	if (a->entry->weight)
		w->weight = a->entry->weight;
	for (unsigned r = 0; r < BLKIO_N_RATES; r++)
		if (a->entry->rate[r] != BLKIO_NOT_SET)
			w->rate[r] = a->entry->rate[r] ? a->entry->rate[r] : BLKIO_NOT_SET;
	if (a->entry->weight && !d->weighs)
		apply_note(a, "the I/O scheduler of %s does not support weights", d->name);
}

static void apply_expand(struct apply *a, const struct blkio_devices *devices)
{
	const struct blkio_class *c = a->item->class;
	for (uint32_t i = 0; c && i < c->n; i++) {
		a->entry = &c->entries[i];
		if (!a->entry->n_devices && a->entry->weight)
			a->weight = a->entry->weight;
		for (uint32_t p = 0; p < a->entry->n_devices; p++)
			if (!blkio_match(a->h, devices, a->entry->devices[p], want_device, a))
				apply_note(a, "%s matches no disk", a->entry->devices[p]);
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static int32_t read_own(const struct apply *a, const char *file, char **ret)
{
	char path[CTL_PATH_MAX];
	int32_t r = ctl_format(path, sizeof path, "%s/%s", a->dir, file);
	return r < 0 ? r : ctl_read(a->h, path, ret);
}

__attribute__((format(printf, 3, 4))) static int32_t apply_do_put(struct apply *a, const char *file,
								  const char *fmt, ...)
{
	char path[CTL_PATH_MAX], text[160];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	int32_t r = ctl_format(path, sizeof path, "%s/%s", a->dir, file);
	if (!r)
		r = a->h->work->write_file(a->h->ctx, path, text);
	a->item->item.n_writes++;
	if (!r) {
		a->n_done++;
		return 0;
	}
	a->n_failed++;
	if (!a->why[0])
		(void)ctl_format(a->why, sizeof a->why, "%s: \"%s\": %s", file, text,
				 modhost_why(r));
	return r;
}

/* Parses the device at the start of a line, "8:16 …", and moves *line behind it. False: the line
 * has none. */
static bool take_device(const char **line, uint32_t *major, uint32_t *minor)
{
	uint64_t a, b;
	const char *at = *line;
	if (ctl_number(at, 10, &a, &at) || *at != ':' || ctl_number(at + 1, 10, &b, &at) ||
	    a > UINT32_MAX || b > UINT32_MAX)
		return false;
	*major = (uint32_t)a;
	*minor = (uint32_t)b;
	*line = at + strspn(at, " ");
	return true;
}

/* Returns the rest of the line of a device; NULL: there is no such line. */
static const char *line_of(const char *text, uint32_t major, uint32_t minor)
{
	for (; text && *text; text += strcspn(text, "\n"), text += *text == '\n') {
		const char *at = text;
		uint32_t a, b;
		if (take_device(&at, &a, &b) && a == major && b == minor)
			return at;
	}
	return NULL;
}

/* Goes to the next line of a file that begins with a device. Returns false at the end. */
static bool next_device(const char **text, uint32_t *major, uint32_t *minor)
{
	while (**text) {
		const char *line = *text;
		*text += strcspn(*text, "\n");
		*text += **text == '\n';
		if (take_device(&line, major, minor))
			return true;
	}
	return false;
}

/* Returns the number in the line of a device, or the fallback. */
static uint64_t number_of(const char *text, const struct want *w, uint64_t fallback)
{
	const char *line = line_of(text, w->major, w->minor);
	if (line)
		(void)ctl_number(line, 10, &fallback, &line);
	return fallback;
}

static const struct want *apply_wanted(const struct apply *a, uint32_t major, uint32_t minor)
{
	for (uint32_t i = 0; i < a->n_want; i++)
		if (a->want[i].major == major && a->want[i].minor == minor)
			return &a->want[i];
	return NULL;
}

/* ---- cgroup v2 ------------------------------------------------------------------------------- */

static const char *const max_keys[] = {"rbps", "wbps", "riops", "wiops"};

static bool has_rates(const struct want *w)
{
	for (unsigned i = 0; i < BLKIO_N_RATES; i++)
		if (w->rate[i] != BLKIO_NOT_SET)
			return true;
	return false;
}

/* Parses rates such as "rbps=1024 wbps=max …"; without a line all are unset. */
static void parse_rates(const char *line, uint64_t rate[BLKIO_N_RATES])
{
	size_t end = line ? strcspn(line, "\n") : 0;
	for (unsigned i = 0; i < BLKIO_N_RATES; i++) {
		rate[i] = BLKIO_NOT_SET;
		const char *at = line ? strstr(line, max_keys[i]) : NULL;
		size_t n = strlen(max_keys[i]);
		if (at && at < line + end && at[n] == '=')
			(void)ctl_number(at + n + 1, 10, &rate[i], &(const char *){NULL});
	}
}

static bool has_line(const char *text, const struct want *w)
{
	uint64_t is[BLKIO_N_RATES];
	parse_rates(line_of(text, w->major, w->minor), is);
	return memcmp(is, w->rate, sizeof is) == 0;
}

static void put_max(struct apply *a, const struct want *w)
{
	char text[4][24];
	for (unsigned i = 0; i < BLKIO_N_RATES; i++)
		if (w->rate[i] == BLKIO_NOT_SET)
			(void)snprintf(text[i], sizeof text[i], "max");
		else
			(void)snprintf(text[i], sizeof text[i], "%llu",
				       (unsigned long long)w->rate[i]);
	(void)apply_do_put(a, "io.max", "%u:%u rbps=%s wbps=%s riops=%s wiops=%s", w->major,
			   w->minor, text[0], text[1], text[2], text[3]);
}

static void verify_max(struct apply *a)
{
	char *text;
	if (a->n_failed || read_own(a, "io.max", &text) < 0)
		return;
	for (uint32_t i = 0; i < a->n_want && !a->n_failed; i++)
		if (has_rates(&a->want[i]) && !has_line(text, &a->want[i])) {
			a->n_failed++;
			(void)ctl_format(a->why, sizeof a->why,
					 "io.max: the kernel did not apply the values for %s",
					 a->want[i].name);
		}
	free(text);
}

static void apply_max(struct apply *a)
{
	char *text = NULL;
	const struct want none = {
		.rate = {BLKIO_NOT_SET, BLKIO_NOT_SET, BLKIO_NOT_SET, BLKIO_NOT_SET}};
	int32_t r = read_own(a, "io.max", &text);
	bool any = false, wrote = false;
	for (uint32_t i = 0; i < a->n_want; i++)
		any = any || has_rates(&a->want[i]);
	if (r < 0) {
		if (any) {
			a->n_failed++;
			(void)ctl_format(a->why, sizeof a->why, "io.max: %s", modhost_why(r));
		}
		return;
	}
	struct want gone = none;
	for (const char *at = text; next_device(&at, &gone.major, &gone.minor);) {
		const struct want *w = apply_wanted(a, gone.major, gone.minor);
		if (!w || !has_rates(w))
			put_max(a, &gone);
	}
	for (uint32_t i = 0; i < a->n_want; i++)
		if (has_rates(&a->want[i]) && !has_line(text, &a->want[i])) {
			put_max(a, &a->want[i]);
			wrote = true;
		}
	free(text);
	if (wrote)
		verify_max(a);
}

/* ---- weights --------------------------------------------------------------------------------- */

struct weight_files {
	/* files for the default weight and for the weights of devices; equal on v2 */
	const char *file, *devices;
	bool v2;
	bool wide; /* weights range from 1 to 10000 */
	uint32_t initial; /* the kernel's initial value */
};

static uint32_t apply_scaled(const struct weight_files *f, uint32_t weight)
{
	if (!f->wide)
		return weight;
	return 1 + (weight - BLKIO_WEIGHT_MIN) * 9999 / (BLKIO_WEIGHT_MAX - BLKIO_WEIGHT_MIN);
}

/* Parses the default weight: "default 100", on v1 "100". Returns 0 if there is none. */
static uint32_t parse_default(const char *text)
{
	uint64_t v;
	const char *at = strstr(text, "default");
	at = at ? at + strlen("default") : text;
	at += strspn(at, " ");
	return ctl_number(at, 10, &v, &at) || *at == ':' || v > UINT32_MAX ? 0 : (uint32_t)v;
}

static void apply_default(struct apply *a, const struct weight_files *f, const char *text)
{
	uint32_t is = parse_default(text),
		 want = a->weight ? apply_scaled(f, a->weight) : f->initial;
	if (is == want || (!a->weight && !is))
		return;
	(void)apply_do_put(a, f->file, f->v2 ? "default %u" : "%u", want);
}

static void apply_device_weights(struct apply *a, const struct weight_files *f, const char *text)
{
	uint32_t major, minor;
	for (const char *at = text; next_device(&at, &major, &minor);) {
		const struct want *w = apply_wanted(a, major, minor);
		if (!w || !w->weight)
			(void)apply_do_put(a, f->devices, "%u:%u %s", major, minor,
					   f->v2 ? "default" : "0");
	}
	for (uint32_t i = 0; i < a->n_want; i++) {
		const struct want *w = &a->want[i];
		/* a disk whose scheduler has no weights was noted before */
		if (w->weight && (w->weighs || f->wide) &&
		    number_of(text, w, 0) != apply_scaled(f, w->weight))
			(void)apply_do_put(a, f->devices, "%u:%u %u", w->major, w->minor,
					   apply_scaled(f, w->weight));
	}
}

static bool wants_weights(const struct apply *a)
{
	for (uint32_t i = 0; i < a->n_want; i++)
		if (a->want[i].weight)
			return true;
	return a->weight != 0;
}

/* Writes weights to the first existing kind of files; on v2 to each kind. */
static void apply_weights(struct apply *a, bool v2)
{
	static const struct weight_files kinds[] = {
		{"io.bfq.weight", "io.bfq.weight", true, false, 100},
		{"io.weight", "io.weight", true, true, 100},
		{"blkio.bfq.weight", "blkio.bfq.weight_device", false, false, 100},
		{"blkio.weight", "blkio.weight_device", false, false, 500},
	};
	bool any = false;
	for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0] && (v2 || !any); i++) {
		const struct weight_files *f = &kinds[i];
		char *text, *devices;
		if (f->v2 != v2 || read_own(a, f->file, &text) < 0)
			continue;
		any = true;
		apply_default(a, f, text);
		if (v2) {
			apply_device_weights(a, f, text);
		} else if (read_own(a, f->devices, &devices) >= 0) {
			apply_device_weights(a, f, devices);
			free(devices);
		}
		free(text);
	}
	if (any || !wants_weights(a))
		return;
	a->n_failed++;
	if (!a->why[0])
		(void)ctl_format(a->why, sizeof a->why,
				 "the kernel does not support weights of block I/O");
}

/* ---- cgroup v1 ------------------------------------------------------------------------------- */

static void apply_throttle(struct apply *a, enum blkio_rate rate)
{
	static const char *const files[] = {
		"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device",
		"blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"};
	char *own = NULL;
	int32_t r = read_own(a, files[rate], &own);
	const char *text = r < 0 ? "" : own;
	uint32_t major, minor;
	for (const char *at = text; next_device(&at, &major, &minor);) {
		const struct want *w = apply_wanted(a, major, minor);
		if (!w || w->rate[rate] == BLKIO_NOT_SET)
			(void)apply_do_put(a, files[rate], "%u:%u 0", major, minor);
	}
	for (uint32_t i = 0; i < a->n_want; i++) {
		const struct want *w = &a->want[i];
		if (w->rate[rate] != BLKIO_NOT_SET &&
		    number_of(text, w, BLKIO_NOT_SET) != w->rate[rate])
			(void)apply_do_put(a, files[rate], "%u:%u %llu", w->major, w->minor,
					   (unsigned long long)w->rate[rate]);
	}
	if (r >= 0)
		free(own);
}

/* ---- entry point ----------------------------------------------------------------------------- */

static void look_for_devices(struct blkio_worker *w, struct apply *a)
{
	struct blkio_devices now;
	int32_t r = blkio_devices_read(w->h, &now);
	if (r) {
		apply_note(a, "/sys/block: %s", modhost_why(r));
		now = (struct blkio_devices){0};
	}
	a->item->new_devices = !blkio_devices_equal(&now, &w->last);
	blkio_devices_fini(&w->last);
	w->last = now;
	apply_expand(a, &w->last);
}

static void apply_judge(const struct apply *a)
{
	struct ctl_item *item = &a->item->item;
	item->final = a->item->unknown[0] && !a->n_failed;
	if (a->out_of_memory)
		ctl_say(item, RP_APPLY_FAILED, "out of memory");
	else if (a->n_failed)
		ctl_say(item, a->n_done ? RP_APPLY_PARTIAL : RP_APPLY_FAILED, "%s", a->why);
	else if (a->item->unknown[0])
		ctl_say(item, RP_APPLY_FAILED, "unknown block I/O class %s", a->item->unknown);
	else
		ctl_say(item, RP_APPLY_DONE, "%s", a->note);
}

void blkio_apply(struct blkio_worker *w, struct blkio_item *item)
{
	struct apply a = {.h = w->h, .item = item};
	bool v2 = !ctl_is_v1(w->h);
	look_for_devices(w, &a);
	if (!ctl_find_cgroup(w->h, &item->item, v2 ? "" : "blkio", a.dir, sizeof a.dir)) {
		if (v2)
			apply_max(&a);
		for (unsigned i = 0; !v2 && i < BLKIO_N_RATES; i++)
			apply_throttle(&a, i);
		apply_weights(&a, v2);
		apply_judge(&a);
	}
	free(a.want);
}
