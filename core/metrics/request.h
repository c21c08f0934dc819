/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one HTTP/1.x request without a body: what a scraper or a kubelet sends. */
#ifndef METRICS_REQUEST_H
#define METRICS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_PATH_MAX 256u /* bytes of a path, query not counted */

struct http_request {
	bool head; /* HEAD, else GET */
	char path[HTTP_PATH_MAX]; /* without the query */
};

#define HTTP_INCOMPLETE 0
#define HTTP_OK 200
/*
 * HTTP_INCOMPLETE: more is needed; HTTP_OK with *ret; or the status to refuse it with: 400, 405, 413 (it has a body), 414, 431
 * (longer than max), 505.
 */
int http_parse(const char *data, size_t len, size_t max, struct http_request *ret);
const char *http_reason(int status); /* "Not Found" */

#endif
