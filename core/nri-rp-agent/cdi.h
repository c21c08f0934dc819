/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the Container Device Interface, one for each claim: the runtime recognizes the claim's
 * device by it, and reports the device to nri-rpd. The file also remembers the claim's name for the
 * next run of the agent.
 */
#pragma once

#include "core/lib/util/err.h"

#define CDI_VENDOR "nri-rp.nri.io"
#define CDI_CLASS "claim"
#define CDI_KIND CDI_VENDOR "/" CDI_CLASS
#define CDI_DEFAULT_DIR "/var/run/cdi"

/* Writes the file of a claim. */
int cdi_write(const char *dir, const char *uid, const char *ns, const char *name, const char *cpus,
	      struct err *err);
/* Removes it; a missing file is no error. */
int cdi_remove(const char *dir, const char *uid, struct err *err);
/* Calls fn for the claim of each file. Files without a claim's name are skipped. */
void cdi_each(const char *dir,
	      void (*fn)(const char *uid, const char *ns, const char *name, void *arg), void *arg);
