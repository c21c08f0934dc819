/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of requests, since all of them go into the container's specification. */
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/cache/extras.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/cache/extras_check.h"

#define TEXT_MAX 4096u
#define CDI_NAME_MAX 256u
#define DEVICE_MAJOR_MAX 4095
#define DEVICE_MINOR_MAX 1048575

static int extras_check_malformed(const struct extra *e, const char *why, struct err *err)
{
	return err_set(err, -EINVAL, "%s \"%.*s\": %s", extra_name(e->field),
		       (int)utf8_cut(e->key, CDI_NAME_MAX), e->key, why);
}

bool extra_text(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);
	return len <= max && utf8_valid(text, len);
}

static bool extras_check_plain(const char *text, size_t max)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return extra_text(text, max);
}

/* Returns the reason why a path is not allowed; NULL: it is. Paths are absolute, in their only
 * normal form, so that requests can be compared by path, and not below the data directory, which
 * the daemon mounts. */
static const char *bad_place(const char *path)
{
	size_t ours = sizeof RP_DATA_DIR - 1;
	if (*path != '/' || !path[1] || !extras_check_plain(path, CACHE_PATH_MAX))
		return "expected an absolute path";
	if (strstr(path, "/../") || str_has_suffix(path, "/.."))
		return "expected a path without \"..\"";
	if (strstr(path, "//") || strstr(path, "/./") || str_has_suffix(path, "/.") ||
	    str_has_suffix(path, "/"))
		return "expected a path without \"//\", \"/./\" and a \"/\" at its end";
	if (strncmp(path, RP_DATA_DIR, ours) == 0 && (!path[ours] || path[ours] == '/'))
		return "this path is reserved for the daemon";
	return NULL;
}

static bool has_option(const char *options, const char *option)
{
	size_t len = strlen(option);
	for (const char *at = options; *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, option, len) == 0 && (!at[len] || at[len] == ','))
			return true;
	return false;
}

static unsigned n_options(const char *options)
{
	unsigned n = 1;
	for (const char *c = options; *c; c++)
		n += *c == ',';
	return n;
}

static const char *bad_mount(const struct rp_mount *m)
{
	bool bind = str_eq(m->type, "bind");
	const char *why = bad_place(m->destination);
	if (why)
		return why;
	if (!*m->type || !extras_check_plain(m->type, CACHE_ID_MAX))
		return "expected a type like \"bind\"";
	if (!*m->source || !extras_check_plain(m->source, CACHE_PATH_MAX) ||
	    (bind && *m->source != '/'))
		return "expected a source; for a bind mount, an absolute path";
	if (!extras_check_plain(m->options, TEXT_MAX) ||
	    n_options(m->options) > RP_MOUNT_OPTIONS_MAX)
		return "too many options, or not text";
	if (has_option(m->options, "ro") || has_option(m->options, "rw"))
		return "set read_only instead of the options ro and rw";
	if (bind && !has_option(m->options, "bind") && !has_option(m->options, "rbind"))
		return "the options of a bind mount need bind or rbind";
	return m->read_only > 1 ? "read_only is 0 or 1" : NULL;
}

static const char *bad_device(const struct rp_device *d)
{
	const char *why = bad_place(d->path);
	if (why)
		return why;
	if (!*d->type || d->type[1] || !strchr("cbup", *d->type))
		return "expected type c, b, u or p";
	if (d->major < 0 || d->major > DEVICE_MAJOR_MAX || d->minor < 0 ||
	    d->minor > DEVICE_MINOR_MAX)
		return "invalid device numbers";
	return d->mode > 0777 ? "expected permission bits" : NULL;
}

static bool char_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t run_of(const char *text, const char *also)
{
	size_t n = 0;
	while (char_alnum(text[n]) || (text[n] && strchr(also, text[n])))
		n++;
	return n;
}

/* Checks a CDI name: VENDOR/CLASS=NAME, where each part begins and ends with a letter or digit. */
static const char *bad_cdi(const char *name)
{
	static const struct {
		const char *also;
		char end;
	} parts[] = {{"-_.", '/'}, {"-_", '='}, {"-_.:", '\0'}};
	const char *at = name;
	for (unsigned i = 0; i < 3; i++) {
		size_t n = run_of(at, parts[i].also);
		if (!n || at[n] != parts[i].end || !char_alnum(at[0]) || !char_alnum(at[n - 1]))
			return "expected VENDOR/CLASS=NAME";
		at += n + 1;
	}
	return strlen(name) > CDI_NAME_MAX ? "too long" : NULL;
}

/* Checks a page size: a power of two and its unit, as cgroups name it. */
static const char *bad_hugepages(const struct extra *e)
{
	char *unit;
	int64_t bytes;
	unsigned long size = char_alnum(*e->key) ? strtoul(e->key, &unit, 10) : 0;
	if (!size || (size & (size - 1)) || !*unit || !strchr("KMG", *unit) ||
	    !str_eq(unit + 1, "B"))
		return "expected a page size like \"2MB\"";
	return str_to_i64(e->text, &bytes) || bytes < 0 ? "expected bytes in decimal digits" : NULL;
}

int extra_check(const struct extra *e, struct err *err)
{
	const char *why = NULL;
	if (e->mount)
		why = bad_mount(e->mount);
	else if (e->device)
		why = bad_device(e->device);
	else if (e->field == EXTRA_CDI)
		why = bad_cdi(e->key);
	else if (e->field == RP_F_HUGEPAGES)
		why = bad_hugepages(e);
	else if (e->key && (!*e->key || !extra_text(e->key, TEXT_MAX) ||
			    !extra_text(e->text, RP_ANNOTATION_MAX)))
		why = "empty, too long, or not text";
	else if (!e->key && e->text && !extra_text(e->text, TEXT_MAX))
		return err_set(err, -EINVAL, "%s: too long, or not text", extra_name(e->field));
	return why ? extras_check_malformed(e, why, err) : 0;
}
