// `lockstep flow encode` and `decode`.
#include "flow_codec.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "lockstep/flow/codec.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct EncodeArguments {
  std::string in, out, codec = "v2", anchors = "published";
  std::optional<double> max_error, rank, cut, low, middle;
  double threshold = 0.35;
  int64_t box = 11, anchor_count = 128, seed = 0;
};
struct DecodeArguments {
  std::string in, out, decoder = "mean", original;
};

std::string codec_summary(const flow::CodecRunResult& r) {
  std::string text = fmt::format(
      "{} frames of {} x {}, codec {}, {} numbers a frame: {} bytes, {:.4g} bits a point, {:.4g} times "
      "smaller\n",
      r.frames, r.plan.options.grid.ny, r.plan.options.grid.nx, flow::name(r.plan.options.kind),
      r.latent_size, r.bytes, r.bits_per_point, r.ratio);
  if (r.errors)
    text += fmt::format(
        "relative L2 {:.4g}, largest error {:.4g}, PSNR {:.4g} dB, spectra within {:.4g} decades\n",
        r.errors->relative_l2, r.errors->max_error, r.errors->psnr, r.errors->spectrum_error);
  return text + fmt::format("{}\n", r.file.string());
}

/// Options of the other codec are refused, not passed over.
void check_encode(const CLI::App& app, const EncodeArguments& a) {
  const std::string why = "nothing uses it with --codec " + a.codec;
  if (a.codec == "classic")
    refuse_given(app, {"--max-error", "--rank", "--cut"}, why, "--codec v2");
  else
    refuse_given(app, {"--low", "--middle", "--box-points", "--anchor-count", "--anchors"}, why,
                 "--codec classic");
  refuse_both(app, "--max-error", "--rank");
  refuse_both(app, "--cut", "--rank");
  if (a.max_error)
    refuse_given(app, {"--seed"}, "a bounded error knows no stochastic decoder", "no --max-error");
}

flow::EncodeRunOptions encode_options(const EncodeArguments& a) {
  flow::EncodeRunOptions o;
  o.input = a.in;
  o.output = a.out;
  o.codec.kind = a.codec == "classic" ? flow::CodecKind::classic : flow::CodecKind::v2;
  o.codec.anchors = a.anchors == "used" ? flow::Anchors::used : flow::Anchors::published;
  if (a.rank) o.codec.share = *a.rank;
  if (a.cut) o.codec.cut = *a.cut;
  if (a.low) o.codec.low = *a.low;
  if (a.middle) o.codec.middle = *a.middle;
  o.codec.threshold = a.threshold;
  o.codec.box = int(a.box);
  o.codec.anchor_count = a.anchor_count;
  o.codec.seed = uint64_t(a.seed);
  o.max_error = a.max_error;
  return o;
}

int run_encode(const CommonOptions& common, const EncodeArguments& arguments) {
  const flow::EncodeRunOptions options = encode_options(arguments);
  Session session(common);
  const flow::CodecRunResult result = flow::encode_run(session.context(), options);
  session.finish(nlohmann::ordered_json::parse(flow::to_json(result)), codec_summary(result));
  return 0;
}

int run_decode(const CommonOptions& common, const DecodeArguments& a) {
  flow::DecodeRunOptions options{a.in, a.out};
  options.decoder = a.decoder == "stochastic" ? flow::Decoder::stochastic : flow::Decoder::mean;
  options.original = a.original;
  Session session(common);
  const flow::CodecRunResult result = flow::decode_run(session.context(), options);
  session.finish(nlohmann::ordered_json::parse(flow::to_json(result)), codec_summary(result));
  return 0;
}

}  // namespace

void add_flow_codec(CommandList& commands, Command& flow) {
  Command& encode =
      add_command(commands, *flow.app, "encode", "fields of a run as short latents or small files");
  auto e = std::make_shared<EncodeArguments>();
  CLI::App& app = *encode.app;
  add_positional(app, "in", e->in, "run.nc or run.npz of flow run, or fields (.npy, .mat)", true);
  add_output_file(app, "--out", e->out, "the encoded file, .npz", "Z.npz");
  require(app, "--out");
  add_choice(app, "--codec", e->codec, "v2 (default) or the published one", {"classic", "v2"});
  add_number(app, "--max-error", e->max_error,
             "v2: no point differs by more than this, 0: not by a bit; the steps follow from it", "E");
  add_number(app, "--rank", e->rank,
             "v2: share of the first frame's enstrophy that the coefficients hold (default 0.99)", "SHARE");
  add_number(app, "--cut", e->cut, "v2: all coefficients with |k| up to this, instead of --rank", "K");
  add_number(app, "--low", e->low, "classic: low-pass wavenumber (default 8)", "K");
  add_number(app, "--middle", e->middle, "classic: end of the middle band (default 12)", "K");
  add_number(app, "--threshold", e->threshold, "of the ternary mask (default 0.35)", "T");
  add_integer(app, "--box-points", e->box, "classic: width of the box filter in points, odd (default 11)",
              "W", 1, 32767);
  add_integer(app, "--anchor-count", e->anchor_count, "classic: anchors (default 128)", "K", 0, 1 << 20);
  add_choice(app, "--anchors", e->anchors,
             "classic: what the decoder does with its anchors; the published one leaves them unused",
             {"published", "used"});
  add_integer(app, "--seed", e->seed, "of the stochastic decoder", "S", 0, INT64_MAX);
  add_common(encode, "lockstep flow encode out/run.nc --max-error 1e-3 --out z.npz");
  encode.run = [&encode, e] {
    check_encode(*encode.app, *e);
    return run_encode(encode.common, *e);
  };

  Command& decode =
      add_command(commands, *flow.app, "decode", "encoded fields, or latents of a rollout, as fields");
  auto d = std::make_shared<DecodeArguments>();
  add_positional(*decode.app, "in", d->in, "file of flow encode", true);
  add_output_file(*decode.app, "--out", d->out, "the fields, .nc or .npz", "FIELDS.nc");
  require(*decode.app, "--out");
  add_choice(*decode.app, "--decoder", d->decoder,
             "mean (default): least error; stochastic: with random modes of the bands that latents leave out",
             {"mean", "stochastic"});
  add_file(*decode.app, "--original", d->original, "the run that was encoded, to tell the errors");
  add_common(decode, "lockstep flow decode z.npz --decoder mean --out fields.nc");
  decode.run = [&decode, d] { return run_decode(decode.common, *d); };
}

}  // namespace lockstep::cli
