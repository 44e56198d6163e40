// Names and options of what is done with saved series: codec, surrogate, pipeline.
#include <array>

#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

std::span<const Choice<CodecKind>> choices(CodecKind) {
  static constexpr auto kAll =
      std::to_array<Choice<CodecKind>>({{"classic", CodecKind::classic}, {"v2", CodecKind::v2}});
  return kAll;
}
std::span<const Choice<Decoder>> choices(Decoder) {
  static constexpr auto kAll =
      std::to_array<Choice<Decoder>>({{"mean", Decoder::mean}, {"stochastic", Decoder::stochastic}});
  return kAll;
}
std::span<const Choice<Anchors>> choices(Anchors) {
  static constexpr auto kAll =
      std::to_array<Choice<Anchors>>({{"published", Anchors::published}, {"used", Anchors::used}});
  return kAll;
}
std::span<const Choice<SurrogateMethod>> choices(SurrogateMethod) {
  static constexpr auto kAll = std::to_array<Choice<SurrogateMethod>>(
      {{"ridge", SurrogateMethod::ridge}, {"dmd", SurrogateMethod::dmd}});
  return kAll;
}
std::span<const Choice<RolloutMode>> choices(RolloutMode) {
  static constexpr auto kAll = std::to_array<Choice<RolloutMode>>(
      {{"steps", RolloutMode::steps}, {"doubling", RolloutMode::doubling}});
  return kAll;
}
std::span<const Choice<Place>> choices(Place) {
  static constexpr auto kAll =
      std::to_array<Choice<Place>>({{"device", Place::device}, {"mixed", Place::mixed}, {"cpu", Place::cpu}});
  return kAll;
}

namespace {

using Use = Option::Use;
constexpr auto kUnused = "it has no effect with {codec} ";

/// Rules of options that hold both a codec and a bound on its error.
template <class Options>
void add_bound(Schema<Options>& s) {
  s.option("max_error", &Options::max_error,
           "v2: largest difference at any point, 0: bit-identical; the quantisation steps follow from it")
      .at_least(0)
      .shown("E");
  s.useless(
      "max_error", [](const Options& o) { return o.codec.kind == CodecKind::classic; },
      std::string(kUnused) + "classic", "{codec} v2");
  s.conflict("max_error", "share");
  s.useless(
      "codec_seed", [](const Options& o) { return o.max_error.has_value(); },
      "a bounded error does not support the stochastic decoder", "no {max_error}");
}

void add_rollout(Schema<LearnRunOptions>& s) {
  s.option("rollout", &LearnRunOptions::rollout, "by single steps, or by blocks of doubling length");
}

}  // namespace

void describe(Schema<CodecOptions>& s) {
  s.of("flow::CodecOptions");
  s.option("codec", &CodecOptions::kind, "v2 or the published one").member("kind");
  s.option("share", &CodecOptions::share, "v2: share of the first frame's enstrophy in the coefficients")
      .flag("rank")
      .above(0)
      .at_most(1)
      .said("a share of {share}")
      .shown("SHARE");
  s.option("cut", &CodecOptions::cut, "v2: all coefficients with |k| up to this, instead of {share}")
      .at_least(1e-6)
      .off(0)
      .shown("K");
  s.option("low", &CodecOptions::low, "classic: low-pass wavenumber").at_least(0).shown("K");
  s.option("middle", &CodecOptions::middle, "classic: end of the middle band").above(0).shown("K");
  s.option("threshold", &CodecOptions::threshold, "threshold of the ternary mask")
      .above(0)
      .below(1)
      .shown("T");
  s.option("box_points", &CodecOptions::box, "classic: width of the box filter in points, odd")
      .member("box")
      .at_least(1)
      .at_most(32767)
      .shown("W");
  s.option("anchor_count", &CodecOptions::anchor_count, "classic: anchors")
      .at_least(0)
      .at_most(1 << 20)
      .shown("K");
  s.option("anchors", &CodecOptions::anchors,
           "classic: how the decoder treats its anchors; the published one does not use them");
  s.option("codec_seed", &CodecOptions::seed, "seed of the stochastic decoder").member("seed").shown("S");
  for (const char* name : {"share", "cut"})
    s.useless(
        name, [](const CodecOptions& o) { return o.kind == CodecKind::classic; },
        std::string(kUnused) + "classic", "{codec} v2");
  for (const char* name : {"low", "middle", "box_points", "anchor_count", "anchors"})
    s.useless(
        name, [](const CodecOptions& o) { return o.kind == CodecKind::v2; }, std::string(kUnused) + "v2",
        "{codec} classic");
  s.conflict("cut", "share");
}

void describe(Schema<EncodeRunOptions>& s) {
  s.of("flow::EncodeRunOptions");
  s.option("fields", &EncodeRunOptions::input, "run.nc or run.npz of flow run, or fields (.npy, .mat)")
      .member("input")
      .flag("in")
      .file(Use::input)
      .positional()
      .required();
  s.option("out", &EncodeRunOptions::output, "the encoded file, .npz")
      .member("output")
      .file(Use::output_file, {".npz"})
      .required()
      .shown("Z.npz")
      .effect(Effect::display);
  s.include(&EncodeRunOptions::codec);
  s.change("codec_seed").flag("seed");
  add_bound(s);
}

void describe(Schema<DecodeRunOptions>& s) {
  s.of("flow::DecodeRunOptions");
  s.option("encoded", &DecodeRunOptions::input, "file of flow encode")
      .member("input")
      .flag("in")
      .file(Use::input)
      .positional()
      .required();
  s.option("out", &DecodeRunOptions::output, "the fields, .nc or .npz")
      .member("output")
      .file(Use::output_file, {".nc", ".npz"})
      .required()
      .shown("FIELDS.nc")
      .effect(Effect::display);
  s.option("decoder", &DecodeRunOptions::decoder,
           "mean: least error; stochastic: with random modes of the bands that latents leave out");
  s.option("original", &DecodeRunOptions::original, "the run that was encoded, to report the errors")
      .file(Use::input)
      .shown("FILE")
      .effect(Effect::display);
}

void describe(Schema<SurrogateOptions>& s) {
  s.of("flow::SurrogateOptions");
  s.option("method", &SurrogateOptions::method,
           "ridge: regression with {ridge}; dmd: least squares on singular vectors");
  s.option("train_share", &SurrogateOptions::train_share,
           "share of the frames to learn from, the first ones; the others are held out")
      .above(0)
      .below(1)
      .shown("S");
  s.option("delays", &SurrogateOptions::delays, "frames in a state").at_least(1).at_most(64);
  s.option("vectors", &SurrogateOptions::rank, "singular vectors to keep")
      .member("rank")
      .at_least(1)
      .at_most(kMaxState)
      .off(0)
      .or_else("by {vector_share}")
      .shown("R");
  s.option("vector_share", &SurrogateOptions::share,
           "share of the sum of squares in the singular vectors; 1: all above rounding")
      .member("share")
      .above(0)
      .at_most(1)
      .shown("S");
  s.option("ridge", &SurrogateOptions::lambda, "weight of the regression's penalty")
      .member("lambda")
      .flag("lambda")
      .at_least(0)
      .shown("L");
  s.useless(
      "ridge", [](const SurrogateOptions& o) { return o.method != SurrogateMethod::ridge && o.lambda != 0; },
      "it has no effect with {method} dmd", "{method} ridge");
  s.conflict("vectors", "vector_share");
}

void describe(Schema<LearnRunOptions>& s) {
  s.of("flow::LearnRunOptions");
  s.option("latents", &LearnRunOptions::input, "file of flow encode")
      .member("input")
      .flag("in")
      .file(Use::input)
      .positional()
      .required();
  s.option("out", &LearnRunOptions::output, "the model, .npz")
      .member("output")
      .file(Use::output_file, {".npz"})
      .required()
      .shown("MODEL.npz")
      .effect(Effect::display);
  s.include(&LearnRunOptions::surrogate);
  add_rollout(s);
}

void describe(Schema<RolloutRunOptions>& s) {
  s.of("flow::RolloutRunOptions");
  s.option("model", &RolloutRunOptions::input, "file of flow learn")
      .member("input")
      .flag("in")
      .file(Use::input)
      .positional()
      .required();
  s.option("steps", &RolloutRunOptions::steps, "frames to predict").at_least(1).at_most(1 << 24).required();
  s.option("out", &RolloutRunOptions::output, "the latents, .npz, for flow decode")
      .member("output")
      .file(Use::output_file, {".npz"})
      .required()
      .shown("Z.npz")
      .effect(Effect::display);
  s.option("rollout", &RolloutRunOptions::rollout, "by single steps, or by blocks of doubling length");
}

void describe(Schema<PipelineOptions>& s) {
  s.of("flow::PipelineOptions");
  // One flow, at a fixed step, and nothing of it on the host.
  s.include(&PipelineOptions::run, {"members", "cfl", "time", "save_every", "history_every", "checkpoint",
                                    "format", "watch", "memory"});
  s.change("precision").flag("precision");
  s.option("stride", &PipelineOptions::stride, "steps between frames").at_least(1).at_most(1e9).shown("S");
  s.include(&PipelineOptions::codec);
  add_bound(s);
  s.option("decoder", &PipelineOptions::decoder, "mean: least error; stochastic: with random small scales");
  s.include(&PipelineOptions::surrogate);
  s.option("rollout", &PipelineOptions::rollout, "by single steps, or by blocks of doubling length");
  s.option("place", &PipelineOptions::place,
           "where the stages run; mixed: the simulation on the CPU, the rest on the device");
  s.option("overlap", &PipelineOptions::overlap,
           "whether stages run concurrently where their data allow it; off: times of stages do not overlap; "
           "auto: on CUDA",
           {{"auto", std::nullopt}, {"on", true}, {"off", false}})
      .effect(Effect::speed);
  s.useless(
      "codec_seed", [](const PipelineOptions& o) { return o.decoder != Decoder::stochastic; },
      "nothing is random", "{decoder} stochastic");
  s.useless(
      "decoder", [](const PipelineOptions& o) { return o.max_error && o.decoder != Decoder::mean; },
      "a bounded error does not support the stochastic decoder", "no {max_error}");
}

void describe(Schema<PipelineSweep>& s) {
  s.of("flow::PipelineSweep");
  s.include_base<PipelineOptions>();
  s.option("sizes", &PipelineSweep::sizes, "points along each axis, several with commas, instead of {ny}")
      .at_least(4)
      .at_most(65536)
      .shown("N,N");
  s.option("strides", &PipelineSweep::strides,
           "steps between frames, several with commas, instead of {stride}")
      .at_least(1)
      .at_most(1e9)
      .shown("S,S");
  s.option("precisions", &PipelineSweep::precisions, "f32,f64: both, instead of {precision}", precisions())
      .shown("P,P");
  s.option("places", &PipelineSweep::places, "several with commas, instead of {place}").shown("PLACE,PLACE");
  s.option("log_metrics", &PipelineSweep::log_metrics,
           "a folder for a JSON of this run, by its time, and a summary of all")
      .file(Use::output_folder)
      .shown("DIR")
      .effect(Effect::display);
  s.conflict("ny", "sizes");
  s.conflict("stride", "strides");
  s.conflict("precision", "precisions");
  s.conflict("place", "places");
}

std::vector<NamedSchema> schemas() {
  return {{"flow.simulation", &schema_of<SolverOptions>()}, {"flow.run", &schema_of<RunOptions>()},
          {"flow.encode", &schema_of<EncodeRunOptions>()},  {"flow.decode", &schema_of<DecodeRunOptions>()},
          {"flow.learn", &schema_of<LearnRunOptions>()},    {"flow.rollout", &schema_of<RolloutRunOptions>()},
          {"flow.pipeline", &schema_of<PipelineSweep>()}};
}

}  // namespace lockstep::flow
