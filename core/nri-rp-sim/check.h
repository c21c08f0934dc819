/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the answers of a plugin. */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "proto/nri.pb-c.h"

/* Checks that all texts of a message are UTF-8, which Go requires, and that it has no fields
 * unknown to the release, which Go drops. */
int check_message(struct sim *s, const ProtobufCMessage *m, const char *what);
/* Checks that nothing is set twice, by two entries of a map or two updates of one container.
 * -EINVAL with NRI's error text. */
int check_adjustment(struct sim *s, const Nri__ContainerAdjustment *m, struct err *err);
int check_claims(struct sim *s, Nri__ContainerUpdate *const *list, size_t n, struct err *err);
/* Checks CPUs and memory nodes as the kernel does: CPUs must be online, nodes must have memory. ""
 * is valid. */
int check_sets(const struct sim *s, const char *cpus, const char *mems, struct err *err);
/* Reports fields that runtimes ignore in an update. */
void check_ignored(struct sim *s, const Nri__LinuxResources *m, bool update, const char *whose);
