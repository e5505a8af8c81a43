// shoal-bench: every benchmark of shoal, one subcommand each; a table for people, --json lines for machines.
#include <CLI/CLI.hpp>

#include "bench/codec_bench.h"
#include "bench/hop_bench.h"
#include "bench/layout_bench.h"
#include "bench/line_bench.h"
#include "bench/log_bench.h"
#include "bench/logits.h"
#include "bench/loop_bench.h"
#include "bench/page_bench.h"
#include "bench/rebalance_bench.h"
#include "bench/routing_bench.h"
#include "bench/stage_bench.h"
#include "bench/tokenizer_bench.h"
#include "common/os/program_start.h"
#include "compression/codec.h"

namespace {

CLI::App* add_hop(CLI::App& app, shoal::HopBenchOptions& options) {
  CLI::App* command = app.add_subcommand(
      "hop", "A pipeline of processes beside one process at the same work; with --net over slow links");
  command->add_option("--repeats", options.repeats, "each; the median counts")
      ->check(CLI::Range(1, 99))
      ->capture_default_str();
  command->add_option("--steps", options.steps, "measured, each repeat")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--codec", options.codec, "of activations and gradients")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(shoal::kCodecNames), std::end(shoal::kCodecNames))))
      ->capture_default_str();
  command->add_option("--in-flight", options.in_flight, "microbatches under way")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      ->add_option("--net", options.net, "slow links: Mbit/s and milliseconds one way, as in 100mbit,20 (needs root)")
      ->type_name("RATE,DELAY_MS");
  command->add_option("--python", options.python, "whose torch is compared")->capture_default_str();
  command->add_option("--keep", options.keep, "keep run files, logs and events here")->type_name("DIR");
  command->add_flag("--profile", options.profile, "where the time went");
  command->add_flag("--json", options.json, "one JSON object on stdout");
  return command;
}

CLI::App* add_layout(CLI::App& app, shoal::LayoutBenchOptions& options) {
  CLI::App* command = app.add_subcommand(
      "layout",
      "Planned layouts of DT-FM's five cases, by its cost and by ours, beside drawn ones and the best of all");
  command->add_option("--links", options.links, "cases more: lines between regions, as CSV")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command->add_flag("--json", options.json, "one JSON object a line on stdout");
  return command;
}

CLI::App* add_line(CLI::App& app, shoal::LineBenchOptions& options) {
  CLI::App* command = app.add_subcommand("line", "What control pays while bulk fills a line (scripts/full-line)");
  CLI::App* ends = command->add_option_group("end", "which end this process is");
  ends->add_option("--serve", options.serve, "listen, and answer the end that dials")->type_name("HOST:PORT");
  ends->add_option("--to", options.to, "measure against the end that serves there; it printed this")
      ->type_name("PEER_ID@HOST:PORT");
  ends->require_option(1);
  command->add_option("--seconds", options.seconds, "measured while the line is full")
      ->check(CLI::Range(0.5, 600.0))
      ->capture_default_str();
  command->add_option("--idle", options.idle, "seconds measured before, with the line alone")
      ->check(CLI::Range(0.5, 600.0))
      ->capture_default_str();
  command->add_option("--frame-kib", options.frame_kib, "of one message")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_flag("--hold", options.hold, "stay until stdin ends, for others to look at the sockets");
  return command;
}

CLI::App* add_stage(CLI::App& app, shoal::StageBenchOptions& options) {
  CLI::App* command =
      app.add_subcommand("stage", "A training step of one process in fp32 and bf16, beside plain PyTorch");
  command->add_option("--shape", options.shapes, "repeat it for others")
      ->type_name("LAYERSxDIM")
      ->capture_default_str();
  command->add_option("--dtype", options.dtypes, "repeat it for others")
      ->check(CLI::IsMember(std::vector<std::string>{"fp32", "bf16"}))
      ->capture_default_str();
  command->add_option("--family", options.family)->check(CLI::IsMember({"gpt2", "llama"}))->capture_default_str();
  command->add_option("--device", options.device, "auto, cpu or cuda:N")->capture_default_str();
  command->add_option("--positions", options.positions, "of a sequence")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command->add_option("--threads", options.threads, "of the CPU")->check(CLI::Range(1, 1024))->capture_default_str();
  command->add_option("--steps", options.steps, "measured")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--python", options.python, "whose torch is compared")->capture_default_str();
  command->add_option("--recompute", options.recompute, "what of a forward waits for its backward")
      ->check(CLI::IsMember({"none", "block"}))
      ->capture_default_str();
  command->add_flag("--compiled", options.compiled, "compare with torch.compile too");
  command->add_flag("--json", options.json, "one JSON object a line on stdout");
  return command;
}

CLI::App* add_log(CLI::App& app, shoal::LogBenchOptions& options) {
  CLI::App* command = app.add_subcommand("log", "What the logs of a long run cost the process that resumes it");
  command->add_option("--microbatches", options.microbatches, "of the run")
      ->check(CLI::Range(1'000ull, 1'000'000'000ull))
      ->capture_default_str();
  command->add_option("--stages", options.stages, "parts the model is cut into")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--round", options.round, "microbatches of a stage that one round secures")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--session", options.session, "rounds of a stage after which one of its members is replaced")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--dir", options.folder, "for the logs, which stay there; else a temporary folder")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  command->add_flag("--json", options.json, "one JSON object on stdout");
  return command;
}

CLI::App* add_page(CLI::App& app, shoal::PageBenchOptions& options) {
  CLI::App* command = app.add_subcommand("page", "What the page of a run costs its launching process");
  command->add_option("--peers", options.peers, "of the run")->check(CLI::Range(4, 4096))->capture_default_str();
  command->add_option("--rate", options.microbatches_per_s, "microbatches a second")
      ->check(CLI::Range(0.1, 10000.0))
      ->capture_default_str();
  command->add_option("--hours", options.hours, "of the run, for its memory")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  command->add_option("--viewers", options.viewers, "that read along")->check(CLI::Range(0, 8))->capture_default_str();
  command->add_option("--replayed", options.replayed, "events of a file that is replayed")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  command->add_flag("--json", options.json, "one JSON object on stdout");
  return command;
}
CLI::App* add_logits(CLI::App& app, shoal::LogitsOptions& options) {
  CLI::App* command =
      app.add_subcommand("logits", "The logits behind each token of a sequence, for comparisons with transformers");
  command->add_option("folder", options.folder, "a model as transformers, --save or export wrote it")
      ->type_name("DIR")
      ->required();
  command->add_option("--tokens", options.tokens, "ids of 32 bits, little-endian")->type_name("FILE")->required();
  command->add_option("--out", options.out, "F32, (tokens, vocabulary)")->type_name("FILE")->required();
  return command;
}

CLI::App* add_loop(CLI::App& app, shoal::LoopBenchOptions& options) {
  CLI::App* command = app.add_subcommand("loop", "For how long a large state holds the loops of a run's processes");
  command->add_option("--state", options.state_mib, "MiB of one array; a peer holds about eleven")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_flag("--json", options.json, "one JSON object a line on stdout");
  return command;
}

CLI::App* add_rebalance(CLI::App& app, shoal::RebalanceOptions& options) {
  CLI::App* command = app.add_subcommand(
      "rebalance", "What a swarm that comes and goes makes of its peers: nobody moves, SWARM's rule, shoal's");
  command->add_option("traces", options.traces, "MS,add|remove,NODE or DATE, TIME, LIVE a line")
      ->type_name("FILE")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--stages", options.world.stages, "parts the model is cut into")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--start", options.world.start_s, "seconds from a join to the first microbatch")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--away", options.world.away_s, "seconds that a mover serves nobody")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--spread", options.world.spread, "sigma of the log of peers' speeds; 0: all alike")
      ->check(CLI::Range(0.0, 3.0))
      ->capture_default_str();
  command->add_option("--seeds", options.seeds, "their mean counts")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", options.json, "one JSON object a line on stdout");
  return command;
}

CLI::App* add_routing(CLI::App& app, shoal::RoutingOptions& options) {
  CLI::App* command = app.add_subcommand("routing", "Policies that choose peers, each in each world, in virtual time");
  command->add_option("--world", options.worlds, "by name; all without")->type_name("NAME");
  command->add_option("--policy", options.policies, "by name; all without")->type_name("NAME");
  command->add_option("--lines", options.lines, "worlds more: delays and rates between regions, as CSV")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command->add_option("--trace", options.traces, "worlds more: machines that come and go, as CSV")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command->add_option("--seed", options.seed, "the same one gives the same table")->capture_default_str();
  command->add_flag("--json", options.json, "one JSON object a line on stdout");
  return command;
}

CLI::App* add_tokenizer(CLI::App& app, shoal::TokenizerBenchOptions& options) {
  CLI::App* command =
      app.add_subcommand("tokenizer", "A text made ids; with SHOAL_PYTHON beside the package tokenizers");
  command->add_option("--tokenizer", options.tokenizer, "tokenizer.json")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command->add_option("--text", options.text, "what is encoded")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command->add_option("--document-bytes", options.document_bytes, "a document ends with the line that reaches them")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30))
      ->capture_default_str();
  command->add_option("--ids", options.ids, "write the ids there, 32 bits each")->type_name("FILE");
  command->add_option("--threads", options.threads, "that share the documents")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--json", options.json, "one JSON object on stdout");
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  shoal::hold_standard_descriptors();
  shoal::start_anew_with("OMP_WAIT_POLICY", "passive", argv);  // as shoal does
  CLI::App app("Benchmarks of shoal: a table for people, --json for one object a line", "shoal-bench");
  app.require_subcommand(1);
  app.set_version_flag("--version", "shoal-bench " SHOAL_VERSION);

  bool json = false;
  CLI::App* codec = app.add_subcommand("codec", "Cost and distortion of the codecs beside memory bandwidth");
  codec->add_flag("--json", json, "One JSON object a line on stdout");

  shoal::HopBenchOptions hop_options;
  CLI::App* hop = add_hop(app, hop_options);

  shoal::LoopBenchOptions loop_options;
  CLI::App* loop = add_loop(app, loop_options);

  shoal::LayoutBenchOptions layout_options;
  CLI::App* layout = add_layout(app, layout_options);

  shoal::LineBenchOptions line_options;
  CLI::App* line = add_line(app, line_options);

  shoal::LogBenchOptions log_options;
  CLI::App* log = add_log(app, log_options);

  shoal::LogitsOptions logits_options;
  CLI::App* logits = add_logits(app, logits_options);

  shoal::PageBenchOptions page_options;
  CLI::App* page = add_page(app, page_options);

  shoal::RebalanceOptions rebalance_options;
  CLI::App* rebalance = add_rebalance(app, rebalance_options);

  shoal::StageBenchOptions stage_options;
  CLI::App* stage = add_stage(app, stage_options);

  shoal::RoutingOptions routing_options;
  CLI::App* routing = add_routing(app, routing_options);

  shoal::TokenizerBenchOptions tokenizer_options;
  CLI::App* tokenizer = add_tokenizer(app, tokenizer_options);

  CLI11_PARSE(app, argc, argv);
  if (codec->parsed()) return shoal::run_codec_bench(json);
  if (layout->parsed()) return shoal::run_layout_bench(layout_options);
  if (line->parsed()) return shoal::run_line_bench(line_options);
  if (log->parsed()) return shoal::run_log_bench(log_options);
  if (logits->parsed()) return shoal::run_logits(logits_options);
  if (loop->parsed()) return shoal::run_loop_bench(loop_options);
  if (page->parsed()) return shoal::run_page_bench(page_options);
  if (rebalance->parsed()) return shoal::run_rebalance_bench(rebalance_options);
  if (routing->parsed()) return shoal::run_routing_bench(routing_options);
  if (stage->parsed()) return shoal::run_stage_bench(stage_options);
  if (tokenizer->parsed()) return shoal::run_tokenizer_bench(tokenizer_options);
  if (hop->parsed()) return shoal::run_hop_bench(hop_options);
  return 0;
}
