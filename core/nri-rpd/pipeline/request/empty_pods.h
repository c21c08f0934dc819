/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of pods whose end the runtime has not reported. */
#pragma once

#include <stdbool.h>

struct pipeline;
struct pod;
struct fed_message;

/* Returns true if a listed pod runs nothing, and either has a later sandbox or is unknown to a
 * cluster whose pods are all known. */
bool empty_pods_is_gone(struct pipeline *p, const struct pod *pod);
/* Removes earlier sandboxes of a pod when its new sandbox was created: with their containers if the
 * pod has the same name, as users of crictl may give several pods one UID. */
void empty_pods_remove_earlier(struct pipeline *p, const struct pod *pod);
/* Removes pods that run nothing and that a message of the pod feed reports as gone. The cache's
 * feed has the message already. Called outside of requests. */
void empty_pods_follow_feed(struct pipeline *p, const struct fed_message *m);
