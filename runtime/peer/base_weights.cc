#include "runtime/peer/base_weights.h"

#include <cstring>

#include "stages/adapters.h"

namespace shoal {
namespace {

// Floats of the base in this executor; those that only stand for a model have arrays of one size.
std::uint64_t base_floats(StageExecutor& executor) {
  const std::uint64_t floats = executor.arena().size();
  return floats == parameter_count(executor.spec()) ? parameter_count(base_of(executor.spec())) : floats;
}

}  // namespace

BaseWeights::BaseWeights(Options options, Environment environment)
    : options_(std::move(options)),
      env_(std::move(environment)),
      aside_([this](auto job, auto done) { env_.host.run_aside(std::move(job), std::move(done)); }),
      fetcher_(std::make_unique<StateFetcher>(FetcherOptions{.sizes = image_sizes(base_floats(*env_.executor))},
                                              env_.host, env_.loop, options_.spec.stage)) {}

void BaseWeights::begin() {
  auto kept = std::make_shared<Kept>();
  kept->source = options_.folder.find(options_.digest);
  if (!kept->source) return fetch();
  env_.host.on_waiting("reading the base that is kept here");
  aside_([kept, spec = base_of(options_.spec)] { kept->state = measure_first_state(spec, *kept->source); },
         env_.session.guard([this, kept] {
           if (!kept->state.ok() || kept->state->digest != options_.digest) {
             env_.on_notice("the base that is kept here is damaged, and is fetched anew");
             return fetch();
           }
           give(*kept);
           load([spec = options_.spec, source = kept->source](std::span<float> into) {
             return source->read(spec, 0, into);
           });
         }));
}

void BaseWeights::fetch() {
  fetching_ = true;
  env_.host.on_waiting("fetching the base of the adapters");
  fetcher_->fetch(Version(0), options_.digest, donors_);
}

void BaseWeights::set_donors(std::vector<PeerId> donors) {
  donors_ = std::move(donors);
  if (fetching_) fetcher_->fetch(Version(0), options_.digest, donors_);
}

void BaseWeights::on_fetched(Bytes image) {
  fetching_ = false;
  load([image](std::span<float> into) -> Status {
    if (image.size() != kStateHeaderBytes + into.size_bytes())
      return make_error(ErrorCode::kMalformed, "the base that came is not of this stage");
    std::memcpy(into.data(), image.data() + kStateHeaderBytes, into.size_bytes());
    return {};
  });
  keep(std::move(image));
}

void BaseWeights::load(Fill fill) {
  auto filled = std::make_shared<Status>();
  env_.device.run(
      WorkKind::kLoad,
      [executor = env_.executor, fill = std::move(fill), filled] {
        Arena& arena = executor->arena();
        *filled = fill(arena.span(ArenaRole::kBase));
        if (filled->ok()) arena.push(ArenaRole::kBase);
      },
      env_.session.guard([this, filled] {
        if (!filled->ok()) return env_.on_failed("the base could not be loaded: " + filled->error().message);
        loaded_ = true;
        env_.on_loaded();
      }));
}

void BaseWeights::keep(Bytes image) {
  auto kept = std::make_shared<Kept>();
  aside_(
      [kept, image = std::move(image), spec = base_of(options_.spec), digest = options_.digest,
       folder = options_.folder] {
        if (const Status written = folder.keep(digest, image); !written.ok()) {
          kept->state = written.error();
        } else if (kept->source = folder.find(digest); kept->source) {
          kept->state = measure_first_state(spec, *kept->source);
        } else {
          kept->state = make_error(ErrorCode::kMissing, "it was removed at once");
        }
      },
      env_.session.guard([this, kept] {
        if (kept->state.ok()) return give(*kept);
        env_.on_notice("the base is not kept, and will be fetched again: " + kept->state.error().message);
      }));
}

void BaseWeights::give(const Kept& kept) {
  kept_ = {.source = kept.source, .parts = {{base_of(options_.spec), *kept.state}}};
  given_ =
      std::make_unique<FirstWeights>(FirstWeights::Environment{.first = kept_, .run_aside = aside_, .send = env_.send});
}

void BaseWeights::on_query(const PeerId& from, const StateQuery& query) {
  if (given_) given_->on_query(from, query);
}

void BaseWeights::on_chunk_query(const PeerId& from, const ChunkQuery& query) {
  if (given_) given_->on_chunk_query(from, query);
}

}  // namespace shoal
