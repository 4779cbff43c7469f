// The control groups of this process, which may limit its memory and its CPU time.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace lloyd {

/// Calls `look` with the folder of each group (v1 or v2) that may limit what `controller` is for,
/// such as "memory". A parent's limit applies too, so parents are among them. `root` is the folder
/// of proc and sys.
void for_each_group(const std::filesystem::path& root, std::string_view controller,
                    const std::function<void(const std::filesystem::path&, bool v2)>& look);

}  // namespace lloyd
