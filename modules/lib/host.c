/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up of the host's services, and text functions with formats. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/host.h>

void modhost_one_line(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++)
		if (*p < ' ' || *p == 0x7f)
			*p = ' ';
}

/* Formats a text, cut at a limit but not within a UTF-8 character, and replaces line breaks: values
 * that people wrote may contain some. */
__attribute__((format(printf, 2, 0))) static void format_text(char *buf, const char *fmt,
							      va_list ap)
{
	int n = vsnprintf(buf, MODHOST_TEXT_MAX, fmt, ap);
	if (n < 0)
		buf[0] = '\0';
	modhost_one_line(buf);
	if (n < MODHOST_TEXT_MAX)
		return;
	size_t end = MODHOST_TEXT_MAX - 1;
	while (end && ((unsigned char)buf[end - 1] & 0xC0u) == 0x80u)
		end--;
	if (end && (unsigned char)buf[end - 1] >= 0xC0u)
		end--;
	buf[end] = '\0';
}

/* Formats the arguments of the calling function. */
#define FORMAT_TEXT(buf_, fmt_)                                                                    \
	do {                                                                                       \
		va_list ap;                                                                        \
		va_start(ap, fmt_);                                                                \
		format_text(buf_, fmt_, ap);                                                       \
		va_end(ap);                                                                        \
	} while (0)

#define FIND(member_, id_, last_)                                                                  \
	do {                                                                                       \
		h->member_ = host->service(host->ctx, id_);                                        \
		if (!RP_HAS(h->member_, last_))                                                    \
			h->member_ = NULL;                                                         \
	} while (0)

int32_t modhost_init(struct modhost *h, const struct rp_host *host, uint32_t need)
{
	*h = (struct modhost){.host = host, .ctx = host->ctx};
	/* Each service must have the last member of the minor that introduced it; a shorter struct
	 * is treated as absent. */
	FIND(topology, RP_HOST_TOPOLOGY_1, memory);
	FIND(cache, RP_HOST_CACHE_1, set_data);
	FIND(config, RP_HOST_CONFIG_1, where);
	FIND(explain, RP_HOST_EXPLAIN_1, decided_by);
	FIND(timer, RP_HOST_TIMER_1, now_ms);
	FIND(work, RP_HOST_WORK_1, cgroup_dir);
	FIND(speedselect, RP_HOST_SPEEDSELECT_1, associate);
	FIND(settings, RP_HOST_SETTINGS_1, drop);
	FIND(noderes, RP_HOST_NODERES_1, device_amount);
	FIND(node, RP_HOST_NODE_1, set_resource);
	FIND(evict, RP_HOST_EVICT_1, state);
	FIND(hints, RP_HOST_HINTS_1, choose);
	FIND(usage, RP_HOST_USAGE_1, get);
	FIND(runtime, RP_HOST_RUNTIME_1, flags);
	const struct {
		uint32_t bit;
		const void *service;
		const char *id;
	} wanted[] = {
		{MODHOST_TOPOLOGY, h->topology, RP_HOST_TOPOLOGY_1},
		{MODHOST_CACHE, h->cache, RP_HOST_CACHE_1},
		{MODHOST_CONFIG, h->config, RP_HOST_CONFIG_1},
		{MODHOST_EXPLAIN, h->explain, RP_HOST_EXPLAIN_1},
		{MODHOST_TIMER, h->timer, RP_HOST_TIMER_1},
		{MODHOST_WORK, h->work, RP_HOST_WORK_1},
		{MODHOST_NODERES, h->noderes, RP_HOST_NODERES_1},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if ((need & wanted[i].bit) && !wanted[i].service)
			return modhost_fail(h, -RP_ENOTSUP, "the host has no usable service %s",
					    wanted[i].id);
	return 0;
}

static int32_t fail_with(const struct modhost *h, rp_cfg node, int32_t code, const char *text)
{
	if (h->why)
		memcpy(h->why, text, strlen(text) + 1);
	if (!node || !h->config)
		return h->host->fail(h->ctx, code, text);
	return h->config->fail_at(h->ctx, node, code, text);
}

int32_t modhost_instance(const struct rp_host *host, size_t size, uint32_t need,
			 struct rp_instance **ret)
{
	void *inst = calloc(1, size);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = modhost_init(inst, host, need);
	if (r)
		free(inst);
	else
		*ret = inst;
	return r;
}

bool modhost_usage(const struct modhost *h, rp_ctr ctr, struct rp_usage *ret)
{
	*ret = (struct rp_usage){.size = sizeof *ret};
	return h->usage && h->usage->get(h->ctx, ctr, ret) == 0;
}

int32_t modhost_fail(const struct modhost *h, int32_t code, const char *fmt, ...)
{
	char text[MODHOST_TEXT_MAX];
	FORMAT_TEXT(text, fmt);
	return fail_with(h, NULL, code, text);
}

const char *modhost_why(int32_t code)
{
	const char *why = strerrordesc_np(-code);
	return why ? why : "unknown error";
}

int32_t modhost_no_memory(const struct modhost *h)
{
	return modhost_fail(h, -RP_ENOMEM, "out of memory");
}

void modhost_limits(const struct rp_devices_sink *sink, int64_t min, int64_t max)
{
	if (RP_HAS(sink, limits))
		sink->limits(sink->ctx, min, max);
}

int32_t modhost_fail_at(const struct modhost *h, rp_cfg node, int32_t code, const char *fmt, ...)
{
	char text[MODHOST_TEXT_MAX];
	FORMAT_TEXT(text, fmt);
	return fail_with(h, node, code, text);
}

int32_t modhost_refuse(const struct modhost *h, rp_cfg node, const char *fmt, ...)
{
	char text[MODHOST_TEXT_MAX];
	FORMAT_TEXT(text, fmt);
	return fail_with(h, node, -RP_EINVAL, text);
}

void modhost_log(const struct modhost *h, uint32_t level, uint64_t object, const char *fmt, ...)
{
	char text[MODHOST_TEXT_MAX];
	FORMAT_TEXT(text, fmt);
	h->host->log(h->ctx, level, object, text);
}

void modhost_note_line(const struct modhost *h, rp_ctr ctr, const char *line)
{
	if (h->explain)
		h->explain->note(h->ctx, ctr, line);
}

void modhost_note(const struct modhost *h, rp_ctr ctr, const char *fmt, ...)
{
	if (!h->explain)
		return;
	char text[MODHOST_TEXT_MAX];
	FORMAT_TEXT(text, fmt);
	h->explain->note(h->ctx, ctr, text);
}

void modhost_decided_line(const struct modhost *h, rp_ctr ctr, rp_cfg node, const char *line)
{
	if (!h->explain)
		return;
	if (node)
		h->explain->decided_by(h->ctx, ctr, node, line);
	else
		h->explain->note(h->ctx, ctr, line);
}

void modhost_decided_by(const struct modhost *h, rp_ctr ctr, rp_cfg node, const char *fmt, ...)
{
	if (!h->explain)
		return;
	char text[MODHOST_TEXT_MAX];
	FORMAT_TEXT(text, fmt);
	modhost_decided_line(h, ctr, node, text);
}

void modhost_set(const struct modhost *h, uint32_t which, struct rp_idset *ret)
{
	struct rp_ids ids;
	rp_idset_clear(ret);
	if (h->topology->set(h->ctx, which, &ids) == 0)
		rp_idset_copy(ret, ids);
}

int32_t modhost_parse_bool(const char *text, int *ret)
{
	static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
	static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		if (strcmp(text, yes[i]) != 0 && strcmp(text, no[i]) != 0)
			continue;
		*ret = strcmp(text, yes[i]) == 0;
		return 0;
	}
	return -RP_EINVAL;
}

const char *modhost_set_text(struct rp_ids ids, char *buf, uint32_t size)
{
	static const char more[] = "…";
	if (rp_ids_format(ids, buf, size) < size || size < sizeof more)
		return buf;
	/* rp_ids_format() cuts at whole items, but leaves no room for the mark. */
	size_t end = strlen(buf);
	if (end > size - sizeof more)
		end = size - sizeof more;
	memcpy(buf + end, more, sizeof more);
	return buf;
}

const void *modhost_service(const struct modhost_service *list, const char *id)
{
	while (list->id && strcmp(list->id, id) != 0)
		list++;
	return list->service;
}
