/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huge pages by memory node. A container requests them by its limits of huge pages, as the runtime
 * reports them, else by its requests that the pod feed has: containerd drops the limits unless its
 * disable_hugetlb_controller is false. Huge pages are counted on the container's memory nodes: the
 * lowest node that has some left first. Claims request some, too; those of their containers are
 * then part of the claim's.
 *
 * The kernel tells how many pages of a node are free, but not which program uses the others. Pages
 * in use beyond those granted to containers belong to other programs. How many of the granted ones
 * are in use is not known, so the last known number of others' pages counts, within the limits
 * that the pages in use set.
 */
#pragma once

#include "core/lib/topo/topo.h"
#include "core/nri-rpd/cache/cache.h"

#define HUGE_RESOURCE "hugepages-" /* name of the resource, before the page size */
#define HUGE_SIZE_TEXT 24u /* bytes of a page size as text, with the NUL */

/* Pages of one size on one node, in bytes. */
struct huge_node {
	/* pages: all, used by other programs, granted to containers and claims, to claims */
	uint64_t total, others, granted, claimed;
};

/* Reads a page size as cgroups and Kubernetes name it: "2MB", "1Gi". 0: malformed. */
uint64_t hugepages_size(const char *text);
/* Writes a page size as Kubernetes does: "2Mi". Returns text. */
const char *hugepages_text(uint64_t page, char text[HUGE_SIZE_TEXT]);
/* Stores the requests of a container. -ENOMEM. */
int hugepages_set(struct ctr *ctr, const struct huge *huge);
/* Returns true if these are the requests of a container. */
bool hugepages_equal(const struct ctr *ctr, const struct huge *huge);
struct fed_pod;
struct fed_ctr;
/* Stores the requests that the pod feed has, if the runtime has reported none, or has reported
 * those of the pod for each container. -ENOMEM. */
int hugepages_set_fed(struct ctr *ctr, const struct fed_pod *pod, const struct fed_ctr *fed);
/* Counts the huge pages of a size on a node, leaving out the pages of container `but` (NULL: none).
 * -ENOENT: the node has no pages of this size. */
int hugepages_count(struct cache *c, const struct topo *t, uint32_t node, uint64_t page,
		    const struct ctr *but, struct huge_node *ret);
/*
 * Checks that these memory nodes have the huge pages that a container requests, or with ctr NULL
 * the containers of a pod together, as the cluster reports them. Returns 1: they have; 0: none are
 * requested; -ENOSPC: `why` has a sentence.
 */
int hugepages_check(struct cache *c, const struct topo *t, const struct pod *pod,
		    const struct ctr *ctr, struct rp_ids nodes, char *why, size_t size);
