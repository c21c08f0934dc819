/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime has written of a container before it made the cgroup: which pod it is of, whether
 * it is that pod's sandbox, what it was asked for. containerd and CRI-O have the OCI specification
 * in a folder of their state, Docker a file of its own.
 */
#ifndef NRI_RP_BRIDGE_BUNDLE_H
#define NRI_RP_BRIDGE_BUNDLE_H

#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/fs.h"
#include "proto/agent.pb-c.h"
#include "proto/cri.pb-c.h"

#define BUNDLE_MAX (4u << 20) /* bytes of a file */

/* Whose keys a file is read by. */
enum bundle_runtime { BUNDLE_CONTAINERD, BUNDLE_CRIO, BUNDLE_DOCKER };

/* Texts are "" where nothing is said. */
struct bundle {
	bool sandbox;
	const char *sandbox_id, *name; /* of the container */
	const char *pod, *ns, *uid;
	Cri__Resources *resources; /* NULL: not told */
	Agent__Pair **annotations; /* of the specification, but for the runtime's own */
	size_t n_annotations;
};

/* `state`: a folder of containerd's with one folder a container, besides those that are known;
 * NULL: none. -ENOENT: there is nothing; -EBADMSG: it is no such file. */
int bundle_read(const struct fs_root *root, const char *state, struct arena *a, const char *id,
		struct bundle *ret);
/* -EBADMSG; -ENOMEM. */
int bundle_parse(struct arena *a, enum bundle_runtime by, const char *text, size_t n,
		 struct bundle *ret);

#endif
