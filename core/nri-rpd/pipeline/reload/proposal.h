/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of configurations before they are active, and what an attempt receives. */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/buf.h"

struct reload; /* reload.c */
struct reload_waiter {
	reload_done done;
	void *arg;
	struct reload_waiter *next;
};

/* ---- reload.c -------------------------------------------------------------------------------- */

/* Text of a configuration, read once: the attempt and the daemon parse the same bytes. */
struct config_text {
	struct conf_files files;
	int code; /* error if not all files could be read; `problems` holds the reason */
	struct conf_errors problems;
};

/* Subject of an attempt: a text, or a configuration that was parsed before. */
struct proposal {
	const struct config_text *text;
	struct conf *conf;
	/* no configuration is active yet, and this one becomes active after a success */
	bool first;
};
