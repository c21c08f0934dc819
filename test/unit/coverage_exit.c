/* SPDX-License-Identifier: Apache-2.0 */
/* The same for programs: linked into those of a coverage build. */
#include "test/unit/coverage_exit.h"
