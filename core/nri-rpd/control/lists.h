/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that list pods and containers and explain one container. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_pods(struct call *call);
enum call_result run_containers(struct call *call);
enum call_result run_claims(struct call *call);
enum call_result run_explain(struct call *call);
