#pragma once
// Scripts by which a shell completes the words of a command line: commands, options, the choices of an option, names of
// files and folders. A script holds all it says, so that completing starts no program.
#include <string>

#include "cli/option_table.h"

namespace shoal {

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

// REQUIRES: `shell` is one of kShells.
std::string completion_script(const CommandRow& program, const std::string& shell);

}  // namespace shoal
