/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of pods, from their labels and priorities. */
#pragma once

#include <nri-rp/calculator.h>

/* Returns the QoS of label koordinator.sh/qosClass ("LS" …); RP_KOORD_NONE for NULL and unknown
 * texts. */
uint32_t class_qos(const char *text);
/* Returns the class of label koordinator.sh/priority-class ("koord-prod" or "prod" …), which wins
 * if it is present; else the class of the pod's numeric priority. */
uint32_t class_prio(const char *text, int64_t priority);
/* Returns the class that follows from the QoS if the priority states none. */
uint32_t class_prio_with_default(uint32_t prio, uint32_t qos);
