/* SPDX-License-Identifier: Apache-2.0 */
/* What is tried before it comes into force: the text of a configuration, and what has been made of
 * it. */
#ifndef PIPELINE_CONFIG_PROPOSAL_H
#define PIPELINE_CONFIG_PROPOSAL_H

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/buf.h"

struct reload; /* config.c */
struct reload_waiter {
	reload_done done;
	void *arg;
	struct reload_waiter *next;
};

/* ---- config.c ---- */

/* What the files of a configuration say, read once: who tries it and who puts it in force parse the
 * same bytes. */
struct config_text {
	struct conf_files files;
	int code; /* not all can be read, and problems has the reason */
	struct conf_errors problems;
};

/* What an attempt is about: a text, or what has been made of one already. */
struct proposal {
	const struct config_text *text;
	struct conf *conf;
	bool first; /* nothing is in force yet, and this comes into force when it is good */
};

#endif
