#pragma once
// Assertions that stay on in release builds. For bugs only: input from outside the process is answered with an Error.
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace shoal {

[[noreturn]] inline void check_failed(const char* file, int line, const char* expression, const std::string& operands) {
  std::fprintf(stderr, "shoal: internal error at %s:%d: %s%s%s\n", file, line, expression,
               operands.empty() ? "" : " with ", operands.c_str());
  std::fflush(stderr);
  std::abort();
}

template <class A, class B>
std::string check_operands(const A& a, const B& b) {
  std::ostringstream out;
  out << a << " and " << b;
  return out.str();
}

}  // namespace shoal

#define SHOAL_CHECK(condition)                                                   \
  do {                                                                           \
    if (!(condition)) ::shoal::check_failed(__FILE__, __LINE__, #condition, ""); \
  } while (false)

#define SHOAL_CHECK_OP_(a, op, b)                                                                                \
  do {                                                                                                           \
    const auto& shoal_a_ = (a);                                                                                  \
    const auto& shoal_b_ = (b);                                                                                  \
    if (!(shoal_a_ op shoal_b_))                                                                                 \
      ::shoal::check_failed(__FILE__, __LINE__, #a " " #op " " #b, ::shoal::check_operands(shoal_a_, shoal_b_)); \
  } while (false)

// The operands must be printable with operator<<.
#define SHOAL_CHECK_EQ(a, b) SHOAL_CHECK_OP_(a, ==, b)
#define SHOAL_CHECK_LE(a, b) SHOAL_CHECK_OP_(a, <=, b)
#define SHOAL_CHECK_LT(a, b) SHOAL_CHECK_OP_(a, <, b)
