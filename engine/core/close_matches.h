// close_matches.h: which of the known names a misspelt one probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace thalweg {

/// "; did you mean 'add' or 'all'?" for the up to three candidates nearest to `name` in edits, nearest first;
/// empty if none is near (about one edit in three letters).
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace thalweg
