/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/nri-rpctl/import.h"

bool import_kubelet(struct import *im, rp_cfg root);
bool import_weka(struct import *im, rp_cfg root);
/* Converts the configuration of the memory-policy plugin, or values of its chart. */
bool import_memory_policy(struct import *im, rp_cfg root);
bool import_cmk(struct import *im, rp_cfg root);

/* Writes the pools of the policy static-pools. */
void import_put_pools(struct import *im, rp_cfg pools);
