/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends of the control socket know. */
#ifndef CTL_PROTOCOL_H
#define CTL_PROTOCOL_H

#define CTL_SERVICE "nri-rp.v1.Control"
#define CTL_DEFAULT_SOCKET "/run/nri-rp/control.sock"

#define CTL_TEXT_MAX (256u << 10) /* bytes of a manifest; it lies where the daemon cannot see it */
#define CTL_REQUEST_MAX (CTL_TEXT_MAX + (64u << 10)) /* bytes of a request */
#define CTL_ARGS_MAX 16u
#define CTL_ARG_MAX 4096u /* bytes of one argument */
#define CTL_PIECE_MAX (1u << 20) /* bytes of a document in one answer */
#define CTL_DOCUMENT_MAX (128u << 20) /* bytes of a document */
#define CTL_CONFIRM_MAX_S 86400u
#define CTL_EVENTS_WAIT_MAX_MS 300000u

/* Flags of requests. */
#define CTL_FLAG_MEMORY 0x1u /* Status: what the daemon's memory is used for */
#define CTL_FLAG_ORIGIN 0x2u /* ConfigShow: where each key was set */
#define CTL_FLAG_HISTORY 0x8u /* Explain: what happened to it */
#define CTL_FLAG_YES 0x20u /* Undo: although the files were refused */
#define CTL_FLAG_PUBLIC 0x10u /* nothing of what annotations say, nor of processes and cgroups */
#define CTL_FLAG_DEFAULTS 0x4u /* ConfigShow: also keys that are not set */

/* Exit statuses of nri-rpctl, as answers carry them. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 2,
	CTL_NOT_RUNNING = 3,
	CTL_DEGRADED = 4,
	CTL_CONFIG = 78,
};

#endif
