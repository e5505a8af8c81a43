// shoal-bench: every benchmark of shoal, one subcommand each; a table for people, --json lines for machines.
#include <CLI/CLI.hpp>

#include "bench/codec_bench.h"

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of shoal: a table for people, --json for one object a line", "shoal-bench");
  app.require_subcommand(1);
  app.set_version_flag("--version", SHOAL_VERSION);

  bool json = false;
  CLI::App* codec = app.add_subcommand("codec", "Cost and distortion of the codecs beside memory bandwidth");
  codec->add_flag("--json", json, "One JSON object a line on stdout");

  CLI11_PARSE(app, argc, argv);
  if (codec->parsed()) return shoal::run_codec_bench(json);
  return 0;
}
