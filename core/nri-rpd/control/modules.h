/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that show modules, log levels and the version. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_modules(struct call *call);
enum call_result run_modules_clear(struct call *call);
enum call_result run_log_level(struct call *call);
enum call_result run_log_debug(struct call *call);
enum call_result run_version(struct call *call);
