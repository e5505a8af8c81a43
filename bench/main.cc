// shoal-bench: every benchmark of shoal, one subcommand each; a table for people, --json lines for machines.
#include <cstdio>
#include <functional>
#include <memory>

#include "bench/codec_bench.h"
#include "bench/hop_bench.h"
#include "bench/layout_bench.h"
#include "bench/line_bench.h"
#include "bench/log_bench.h"
#include "bench/logits.h"
#include "bench/loop_bench.h"
#include "bench/page_bench.h"
#include "bench/rebalance_bench.h"
#include "bench/relay_bench.h"
#include "bench/routing_bench.h"
#include "bench/stage_bench.h"
#include "bench/tokenizer_bench.h"
#include "common/os/program_start.h"
#include "common/program/options.h"
#include "compression/codec.h"

namespace shoal {
namespace {

// What the command that was named does; its options live here.
struct Chosen {
  std::function<Status()> run;

  template <class Options>
  Options& when(Command& command, Status (*bench)(const Options&)) {
    auto options = std::make_shared<Options>();
    command.when_named([this, bench, options] { run = [bench, options] { return bench(*options); }; });
    return *options;
  }
};

void add_codec(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("codec", "Cost and distortion of the codecs beside memory bandwidth");
  CodecBenchOptions& options = chosen.when(command, run_codec_bench);
  command.add_flag("--json", options.json, "one JSON object a line on stdout");
}

void add_hop(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand(
      "hop", "A pipeline of processes beside one process at the same work; with --net over slow links");
  HopBenchOptions& options = chosen.when(command, run_hop_bench);
  command.add_option("--repeats", options.repeats, "each; the median counts").in(1, 99).show_default();
  command.add_option("--steps", options.steps, "measured, each repeat").in(1, 1000).show_default();
  command.add_option("--codec", options.codec, "of activations and gradients")
      .one_of({std::begin(kCodecNames), std::end(kCodecNames)})
      .show_default();
  command.add_option("--in-flight", options.in_flight, "microbatches under way").in(1, 256).show_default();
  command.add_option("--net", options.net, "slow links: Mbit/s and milliseconds one way, as in 100mbit,20 (needs root)")
      .type_name("RATE,DELAY_MS");
  command.add_option("--python", options.python, "whose torch is compared").show_default();
  command.add_option("--keep", options.keep, "keep run files, logs and events here").type_name("DIR");
  command.add_flag("--profile", options.profile, "where the time went");
  command.add_flag("--json", options.json, "one JSON object on stdout");
}

void add_layout(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand(
      "layout",
      "Planned layouts of DT-FM's five cases, by its cost and by ours, beside drawn ones and the best of all");
  LayoutBenchOptions& options = chosen.when(command, run_layout_bench);
  command.add_option("--links", options.links, "cases more: lines between regions, as CSV").type_name("FILE");
  command.add_flag("--json", options.json, "one JSON object a line on stdout");
}

void add_relay(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("relay", "What a relay carries of its rate, how evenly, and what that costs");
  RelayBenchOptions& options = chosen.when(command, run_relay_bench);
  command.add_option("--pairs", options.pairs, "that push all the time").in(1, 32).show_default();
  command.add_option("--rate", options.rate, "of the relay").type_name("RATE").show_default();
  command.add_option("--seconds", options.seconds, "measured, three times").in(0.5, 600.0).show_default();
  command.add_flag("--json", options.json, "one JSON object on stdout");
}

void add_line(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("line", "What control pays while bulk fills a line (scripts/full-line)");
  LineBenchOptions& options = chosen.when(command, run_line_bench);
  Option serve = command.add_option("--serve", options.serve, "be the end that listens, and answer the other")
                     .type_name("HOST:PORT");
  command.add_option("--to", options.to, "be the end that dials and measures; the other printed this")
      .type_name("PEER_ID@HOST:PORT")
      .excludes(serve);
  command.add_option("--seconds", options.seconds, "measured while the line is full").in(0.5, 600.0).show_default();
  command.add_option("--idle", options.idle, "seconds measured before, with the line alone")
      .in(0.5, 600.0)
      .show_default();
  command.add_option("--frame-kib", options.frame_kib, "of one message").in(1, 1 << 20).show_default();
  command.add_flag("--hold", options.hold, "stay until stdin ends, for others to look at the sockets");
}

void add_stage(Command& app, Chosen& chosen) {
  Command command =
      app.add_subcommand("stage", "A training step of one process in fp32 and bf16, beside plain PyTorch");
  StageBenchOptions& options = chosen.when(command, run_stage_bench);
  command.add_option("--shape", options.shapes, "repeat it for others").type_name("LAYERSxDIM").show_default();
  command.add_option("--dtype", options.dtypes, "repeat it for others").one_of({"fp32", "bf16"}).show_default();
  command.add_option("--family", options.family, "of the model").one_of({"gpt2", "llama"}).show_default();
  command.add_option("--device", options.device, "auto, cpu or cuda:N").show_default();
  command.add_option("--positions", options.positions, "of a sequence").in(1, 1 << 16).show_default();
  command.add_option("--threads", options.threads, "of the CPU").in(1, 1024).show_default();
  command.add_option("--steps", options.steps, "measured").in(1, 1000).show_default();
  command.add_option("--python", options.python, "whose torch is compared").show_default();
  command.add_option("--recompute", options.recompute, "what of a forward waits for its backward")
      .one_of({"none", "block"})
      .show_default();
  command.add_flag("--compiled", options.compiled, "compare with torch.compile too");
  command.add_flag("--json", options.json, "one JSON object a line on stdout");
}

void add_log(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("log", "What the logs of a long run cost the process that resumes it");
  LogBenchOptions& options = chosen.when(command, run_log_bench);
  command.add_option("--microbatches", options.microbatches, "of the run").in(1'000, 1'000'000'000).show_default();
  command.add_option("--stages", options.stages, "parts the model is cut into").in(1, 256).show_default();
  command.add_option("--round", options.round, "microbatches of a stage that one round secures")
      .in(1, 1024)
      .show_default();
  command.add_option("--session", options.session, "rounds of a stage after which one of its members is replaced")
      .in(1, 1'000'000'000)
      .show_default();
  command.add_option("--dir", options.folder, "for the logs, which stay there; else a temporary folder")
      .type_name("DIR");
  command.add_flag("--json", options.json, "one JSON object on stdout");
}

void add_page(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("page", "What the page of a run costs its launching process");
  PageBenchOptions& options = chosen.when(command, run_page_bench);
  command.add_option("--peers", options.peers, "of the run").in(4, 4096).show_default();
  command.add_option("--rate", options.microbatches_per_s, "microbatches a second").in(0.1, 10000.0).show_default();
  command.add_option("--hours", options.hours, "of the run, for its memory").in(0.1, 1000.0).show_default();
  command.add_option("--viewers", options.viewers, "that read along").in(0, 8).show_default();
  command.add_option("--replayed", options.replayed, "events of a file that is replayed")
      .in(1, 100'000'000)
      .show_default();
  command.add_flag("--json", options.json, "one JSON object on stdout");
}

void add_logits(Command& app, Chosen& chosen) {
  Command command =
      app.add_subcommand("logits", "The logits behind each token of a sequence, for comparisons with transformers");
  LogitsOptions& options = chosen.when(command, run_logits);
  command.add_option("folder", options.folder, "a model as transformers, --save or export wrote it")
      .type_name("DIR")
      .required();
  command.add_option("--tokens", options.tokens, "ids of 32 bits, little-endian").type_name("FILE").required();
  command.add_option("--out", options.out, "F32, (tokens, vocabulary)").type_name("FILE").required();
}

void add_loop(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("loop", "For how long a large state holds the loops of a run's processes");
  LoopBenchOptions& options = chosen.when(command, run_loop_bench);
  command.add_option("--state", options.state_mib, "MiB of one array; a peer holds about eleven")
      .in(1, 4096)
      .show_default();
  command.add_flag("--json", options.json, "one JSON object a line on stdout");
}

void add_rebalance(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand(
      "rebalance", "What a swarm that comes and goes makes of its peers: nobody moves, SWARM's rule, shoal's");
  RebalanceOptions& options = chosen.when(command, run_rebalance_bench);
  command.add_option("traces", options.traces, "MS,add|remove,NODE or DATE, TIME, LIVE a line")
      .type_name("FILE")
      .required();
  command.add_option("--stages", options.world.stages, "parts the model is cut into").in(1, 256).show_default();
  command.add_option("--start", options.world.start_s, "seconds from a join to the first microbatch")
      .in(0.0, 1e9)
      .show_default();
  command.add_option("--away", options.world.away_s, "seconds that a mover serves nobody").in(0.0, 1e9).show_default();
  command.add_option("--spread", options.world.spread, "sigma of the log of peers' speeds; 0: all alike")
      .in(0.0, 3.0)
      .show_default();
  command.add_option("--seeds", options.seeds, "their mean counts").in(1, 1000).show_default();
  command.add_flag("--json", options.json, "one JSON object a line on stdout");
}

void add_routing(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("routing", "Policies that choose peers, each in each world, in virtual time");
  RoutingOptions& options = chosen.when(command, run_routing_bench);
  command.add_option("--world", options.worlds, "by name; all without").type_name("NAME");
  command.add_option("--policy", options.policies, "by name; all without").type_name("NAME");
  command.add_option("--lines", options.lines, "worlds more: delays and rates between regions, as CSV")
      .type_name("FILE");
  command.add_option("--trace", options.traces, "worlds more: machines that come and go, as CSV").type_name("FILE");
  command.add_option("--seed", options.seed, "the same one gives the same table").show_default();
  command.add_flag("--json", options.json, "one JSON object a line on stdout");
}

void add_tokenizer(Command& app, Chosen& chosen) {
  Command command = app.add_subcommand("tokenizer", "A text made ids; with SHOAL_PYTHON beside the package tokenizers");
  TokenizerBenchOptions& options = chosen.when(command, run_tokenizer_bench);
  command.add_option("--tokenizer", options.tokenizer, "tokenizer.json").required().type_name("FILE");
  command.add_option("--text", options.text, "what is encoded").required().type_name("FILE");
  command.add_option("--document-bytes", options.document_bytes, "a document ends with the line that reaches them")
      .in(1, 1 << 30)
      .show_default();
  command.add_option("--ids", options.ids, "write the ids there, 32 bits each").type_name("FILE");
  command.add_option("--threads", options.threads, "that share the documents").in(1, 1024).show_default();
  command.add_flag("--json", options.json, "one JSON object on stdout");
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  using namespace shoal;
  hold_standard_descriptors();
  start_anew_with("OMP_WAIT_POLICY", "passive", argv);  // as shoal does
  CommandLine line("Benchmarks of shoal: a table for people, --json for one object a line", "shoal-bench",
                   "shoal-bench " SHOAL_VERSION);
  Command top = line.top();
  top.require_subcommand();
  Chosen chosen;
  for (const auto add : {add_codec, add_hop, add_layout, add_line, add_stage, add_log, add_page, add_logits, add_loop,
                         add_rebalance, add_relay, add_routing, add_tokenizer})
    add(top, chosen);
  if (const auto over = line.parse_or_say(argc, argv)) return *over;
  const Status done = chosen.run();
  if (!done.ok()) std::fprintf(stderr, "shoal-bench: %s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
