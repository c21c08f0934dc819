/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on configurations: reload, confirm, undo, plan, try, check and show. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_reload(struct call *call);
enum call_result run_confirm(struct call *call);
enum call_result run_undo(struct call *call);
enum call_result run_plan(struct call *call);
enum call_result run_try(struct call *call);
enum call_result run_config_check(struct call *call);
enum call_result run_config_show(struct call *call);
