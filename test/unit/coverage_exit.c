/* SPDX-License-Identifier: Apache-2.0 */
/* Applies coverage_exit.h to programs: linked into the programs of a coverage build. */
#include "test/unit/coverage_exit.h"
