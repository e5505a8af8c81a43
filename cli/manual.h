#pragma once
// Pages of the manual (man 1), one for each command, made of the parser's own options.
#include <string>

#include "cli/option_table.h"

namespace shoal {

// "shoal-data-prepare", the name of a command's page.
std::string page_name(const CommandRow& command);
// The page in the man macros of roff. `version`: "shoal 0.1.0 (protocol 13)". `command` stands somewhere in `program`.
std::string manual_page(const CommandRow& program, const CommandRow& command, const std::string& version);

}  // namespace shoal
