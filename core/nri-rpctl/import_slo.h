/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRI_RPCTL_IMPORT_SLO_H
#define NRI_RPCTL_IMPORT_SLO_H

#include "core/nri-rpctl/import.h"

/* Imports the data of koordinator's ConfigMap. Returns false if it is another ConfigMap. */
bool import_slo_data(struct import *im, rp_cfg data);
bool import_node_slo(struct import *im, rp_cfg root);

#endif
