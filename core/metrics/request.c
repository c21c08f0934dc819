/* SPDX-License-Identifier: Apache-2.0 */
#include "core/metrics/request.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* A piece of the request. */
struct span {
	const char *s;
	size_t n;
};

static bool span_is(struct span a, const char *text)
{
	return a.n == strlen(text) && memcmp(a.s, text, a.n) == 0;
}

static bool span_is_name(struct span a, const char *name)
{
	return a.n == strlen(name) && strncasecmp(a.s, name, a.n) == 0;
}

/* What ends a header: an empty line. Bare newlines are taken for line ends, as everybody does. */
static size_t header_length(const char *data, size_t len)
{
	for (const char *p = data; (p = memchr(p, '\n', len - (size_t)(p - data)));) {
		size_t at = (size_t)(++p - data);
		if (at < len && *p == '\n')
			return at + 1;
		if (at + 1 < len && p[0] == '\r' && p[1] == '\n')
			return at + 2;
	}
	return 0;
}

/* The next line without its end. */
static struct span take_line(struct span *rest)
{
	const char *end = memchr(rest->s, '\n', rest->n);
	struct span line = {rest->s, end ? (size_t)(end - rest->s) : rest->n};
	size_t used = line.n + (end != NULL);
	rest->s += used;
	rest->n -= used;
	if (line.n && line.s[line.n - 1] == '\r')
		line.n--;
	return line;
}

/* Up to a blank, which is dropped. */
static struct span take_word(struct span *line)
{
	const char *end = memchr(line->s, ' ', line->n);
	struct span word = {line->s, end ? (size_t)(end - line->s) : line->n};
	size_t used = word.n + (end != NULL);
	line->s += used;
	line->n -= used;
	return word;
}

static bool is_token(struct span a)
{
	static const char others[] = "!#$%&'*+-.^_`|~";
	for (size_t i = 0; i < a.n; i++) {
		char c = a.s[i];
		bool plain =
			(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!plain && (!c || !strchr(others, c)))
			return false;
	}
	return a.n > 0;
}

static int take_path(struct span target, struct http_request *ret)
{
	const char *query = memchr(target.s, '?', target.n);
	size_t n = query ? (size_t)(query - target.s) : target.n;
	for (size_t i = 0; i < target.n; i++)
		if (target.s[i] <= ' ' || target.s[i] == 0x7f)
			return 400;
	if (!n || target.s[0] != '/')
		return 400;
	if (n >= HTTP_PATH_MAX)
		return 414;
	memcpy(ret->path, target.s, n);
	ret->path[n] = '\0';
	return HTTP_OK;
}

static int take_request_line(struct span line, struct http_request *ret)
{
	struct span method = take_word(&line), target = take_word(&line), version = line;
	if (!is_token(method) || !target.n || version.n != 8 || memcmp(version.s, "HTTP/", 5) != 0)
		return 400;
	if (!span_is(version, "HTTP/1.1") && !span_is(version, "HTTP/1.0"))
		return 505;
	ret->head = span_is(method, "HEAD");
	if (!ret->head && !span_is(method, "GET"))
		return 405;
	return take_path(target, ret);
}

static struct span trim(struct span a)
{
	while (a.n && (*a.s == ' ' || *a.s == '\t')) {
		a.s++;
		a.n--;
	}
	while (a.n && (a.s[a.n - 1] == ' ' || a.s[a.n - 1] == '\t'))
		a.n--;
	return a;
}

static int check_field(struct span line)
{
	const char *colon = memchr(line.s, ':', line.n);
	if (!colon)
		return 400;
	struct span name = {line.s, (size_t)(colon - line.s)};
	if (!is_token(name))
		return 400;
	struct span value = trim((struct span){colon + 1, line.n - name.n - 1});
	if (memchr(value.s, '\0', value.n))
		return 400;
	if (span_is_name(name, "Transfer-Encoding"))
		return 413;
	if (span_is_name(name, "Content-Length") && !span_is(value, "0"))
		return 413;
	return HTTP_OK;
}

int http_parse(const char *data, size_t len, size_t max, struct http_request *ret)
{
	struct http_request req;
	size_t n = header_length(data, len < max ? len : max);
	if (!n)
		return len < max ? HTTP_INCOMPLETE : 431;
	struct span rest = {data, n};
	int status = take_request_line(take_line(&rest), &req);
	while (status == HTTP_OK && rest.n) {
		struct span line = take_line(&rest);
		if (!line.n)
			break;
		status = check_field(line);
	}
	if (status == HTTP_OK)
		*ret = req;
	return status;
}

const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},
		{400, "Bad Request"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{505, "HTTP Version Not Supported"},
	};
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}
