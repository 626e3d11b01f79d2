// sites.h: numbers for places in the user's program.
#pragma once

#include <string>
#include <string_view>

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

/// The number of the innermost Python line outside this package; 0 if there is none. GIL held. The same place
/// always has the same number; code objects seen once are kept alive, so a number never changes its meaning.
SiteId current_site() noexcept;

/// "file:line" of a site, empty for 0. Any thread, no GIL.
std::string describe_site(SiteId site);

/// Frames of files under `directory` (this package) are passed over by `current_site`.
void set_package_directory(std::string directory);

/// Makes the lock usable in a forked child.
void reset_sites_after_fork() noexcept;

}  // namespace thalweg::python
