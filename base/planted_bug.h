#pragma once

/// True only in tests/sim (tests/sim/planted), and there only for the one planted bug.
#ifndef MUSTER_PLANTED
#define MUSTER_PLANTED(bug) false
#endif
