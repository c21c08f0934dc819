/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the file that a runtime writes about a container before it creates the cgroup. The file
 * names the container's pod, says whether the container is the pod's sandbox, and has the requested
 * resources. containerd and CRI-O keep the OCI specification in their state folder; Docker has a
 * file format of its own.
 */
#pragma once

#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/fs.h"
#include "proto/agent.pb-c.h"
#include "proto/cri.pb-c.h"

#define BUNDLE_MAX (4u << 20) /* largest file, in bytes */

/* The runtime whose annotation keys a file is read with. */
enum bundle_runtime { BUNDLE_CONTAINERD, BUNDLE_CRIO, BUNDLE_DOCKER };

/* Contents of a bundle file. Texts are "" if the file does not have them. */
struct bundle {
	bool sandbox;
	const char *sandbox_id, *name; /* the pod's sandbox, the container's name */
	const char *pod, *ns, *uid;
	Cri__Resources *resources; /* resources of the specification; NULL: the file has none */
	/* annotations of the specification, except annotations of the runtime itself */
	Agent__Pair **annotations;
	size_t n_annotations;
};

/* Reads the file of the container `id`. `state`: an additional state folder of containerd with one
 * folder for each container; NULL: only the well-known places. -ENOENT: no file was found;
 * -EBADMSG: the file cannot be parsed. */
int bundle_read(const struct fs_root *root, const char *state, struct arena *a, const char *id,
		struct bundle *ret);
/* Parses the text of a bundle file. -EBADMSG: not such a file; -ENOMEM. */
int bundle_parse(struct arena *a, enum bundle_runtime by, const char *text, size_t n,
		 struct bundle *ret);
