// fuzz-seeds DIR: writes the seeds of every target to DIR/TARGET/NUMBER, from which libFuzzer goes on.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

bool write_seeds(const std::filesystem::path& root, const Target& target) {
  const std::filesystem::path folder = root / target.name;
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const Bytes& seed : target.seeds()) {
    std::ofstream file(folder / std::to_string(number++), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
    if (!file.flush()) return false;
  }
  return true;
}

}  // namespace
}  // namespace shoal::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz-seeds DIR\n", stderr);
    return 64;
  }
#define SHOAL_FUZZ_WRITE(target) \
  if (!shoal::fuzz::write_seeds(argv[1], shoal::fuzz::target)) return 74;
  SHOAL_FUZZ_TARGETS(SHOAL_FUZZ_WRITE)
#undef SHOAL_FUZZ_WRITE
  return 0;
}
