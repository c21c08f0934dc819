/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/nri-rpctl/import.h"

/* Imports the data of koordinator's ConfigMap. Returns false if it is another ConfigMap. */
bool import_slo_data(struct import *im, rp_cfg data);
bool import_node_slo(struct import *im, rp_cfg root);
