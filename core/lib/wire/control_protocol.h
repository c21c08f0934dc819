/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of both ends of the control socket. */
#pragma once

#define CTL_SERVICE "nri-rp.v1.Control"
#define CTL_DEFAULT_SOCKET "/run/nri-rp/control.sock"

/* bytes of a manifest, which is sent as text because the daemon may not see the client's files */
#define CTL_TEXT_MAX (256u << 10)
#define CTL_REQUEST_MAX (CTL_TEXT_MAX + (64u << 10)) /* largest size of a request, in bytes */
#define CTL_ARGS_MAX 16u
#define CTL_ARG_MAX 4096u /* largest size of one argument, in bytes */
#define CTL_PIECE_MAX (1u << 20) /* largest piece of a document in one answer, in bytes */
#define CTL_DOCUMENT_MAX (128u << 20) /* largest size of a document, in bytes */
#define CTL_CONFIRM_MAX_S 86400u
#define CTL_EVENTS_WAIT_MAX_MS 300000u

/* Flags of requests. */
#define CTL_FLAG_MEMORY 0x1u /* Status: with the uses of the daemon's memory */
#define CTL_FLAG_ORIGIN 0x2u /* ConfigShow: with the origin of each key */
#define CTL_FLAG_HISTORY 0x8u /* Explain: with the history of the container */
#define CTL_FLAG_YES 0x20u /* Undo: even if the files were refused */
#define CTL_FLAG_DRY_RUN 0x40u /* Undo: try only, change nothing */
#define CTL_FLAG_PUBLIC 0x10u /* omit texts of annotations, processes and cgroups */
#define CTL_FLAG_DEFAULTS 0x4u /* ConfigShow: with keys that are not set */

/* Exit statuses of nri-rpctl, sent with answers. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 2,
	CTL_NOT_RUNNING = 3,
	CTL_DEGRADED = 4,
	CTL_CONFIG = 78,
};
