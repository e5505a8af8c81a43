#pragma once
// Where the program that runs now was started from. Thread: any.
#include <string>

#include "common/result.h"

namespace shoal {

// ERRORS: kIo.
Result<std::string> own_program();
// The path of `program` in the same folder. ERRORS: as own_program().
Result<std::string> beside_own_program(const std::string& program);

}  // namespace shoal
