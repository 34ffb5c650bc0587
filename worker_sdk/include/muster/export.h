#pragma once

/// Marks what the shared library exports; everything else in it is hidden.
#define MUSTER_EXPORT [[gnu::visibility("default")]]
