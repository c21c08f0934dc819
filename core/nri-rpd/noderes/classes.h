/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of pods, by their labels and numbers. */
#ifndef NODERES_CLASSES_H
#define NODERES_CLASSES_H

#include <nri-rp/calculator.h>

/* "LS" … of label koordinator.sh/qosClass; RP_KOORD_NONE for NULL and for what is none of them. */
uint32_t class_qos(const char *text);
/* "koord-prod" or "prod" … of label koordinator.sh/priority-class, which counts if it is there;
 * else the pod's numeric priority. */
uint32_t class_prio(const char *text, int64_t priority);
/* What follows from the QoS where the priority says nothing. */
uint32_t class_prio_with_default(uint32_t prio, uint32_t qos);

#endif
