// Encoded fields as a file of NumPy arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "flow/codec/layout.hpp"
#include "io/arrays/npy.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormatName = "lockstep.flow.codec";
constexpr int kFormatVersion = 1;
constexpr int64_t kMostFrames = int64_t(1) << 32;

Json header_of(const EncodedFields& e) {
  const CodecOptions& o = e.plan.options;
  Json j{{"format", kFormatName}, {"version", kFormatVersion}, {"codec", name(o.kind)}};
  j["n"] = {o.grid.ny, o.grid.nx};
  j["box"] = {o.grid.lx, o.grid.ly};
  j["frames"] = e.frames;
  j["members"] = e.members;
  j["threshold"] = o.threshold;
  j["seed"] = o.seed;
  if (o.kind == CodecKind::classic) {
    j["low"] = o.low;
    j["middle"] = o.middle;
    j["box_points"] = o.box;
    j["anchors"] = o.anchors == Anchors::used ? "used" : "published";
  } else {
    j["share"] = o.share;
    j["cut"] = o.cut;
  }
  if (e.max_error) {
    j["max_error"] = *e.max_error;
    j["mode_step"] = e.mode_step;
    j["point_step"] = e.point_step;
  }
  return j;
}

Array bytes_array(const std::vector<uint8_t>& bytes) { return Array::of(std::vector<uint8_t>(bytes)); }

/// Over names and bytes of all arrays but the checksum itself.
std::vector<uint8_t> checksum_of(const io::NpzArrays& arrays) {
  std::string text;
  for (const auto& [key, array] : arrays) {
    if (key == "checksum") continue;
    const Array packed = array.packed();
    const Hash128 hash = hash128(packed.raw());
    text += fmt::format("{} {} {} {}\n", key, name(array.storage()), to_string(array.shape()), to_hex(hash));
  }
  const Hash128 hash = hash128(std::string_view(text));
  std::vector<uint8_t> bytes;
  for (const uint64_t half : {hash.low, hash.high})
    for (int k = 0; k < 8; ++k) bytes.push_back(uint8_t(half >> (8 * k)));
  return bytes;
}

/// The arrays of a file, by name and type.
class EncodedReader {
 public:
  EncodedReader(const std::filesystem::path& path) : where_(path.string()), arrays_(io::read_npz(path)) {}

  const std::string& where() const { return where_; }
  const io::NpzArrays& arrays() const { return arrays_; }
  bool has(std::string_view key) const {
    return std::any_of(arrays_.begin(), arrays_.end(), [&](const auto& a) { return a.first == key; });
  }
  Array get(std::string_view key, Storage storage, int rank) const {
    const Array& array = io::find_array(arrays_, key, where_);
    if (array.storage() != storage || array.rank() != rank)
      refuse(fmt::format("{} is {} of {} axes", key, name(array.storage()), array.rank()));
    return array.packed();
  }
  template <class E>
  std::vector<E> list(std::string_view key, Storage storage) const {
    const Array array = get(key, storage, 1);
    return {array.as<E>().begin(), array.as<E>().end()};
  }
  std::string text(std::string_view key) const {
    const std::vector<uint8_t> bytes = list<uint8_t>(key, Storage::u8);
    return {bytes.begin(), bytes.end()};
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(what, where_, "a sound file of flow encode");
  }

 private:
  std::string where_;
  io::NpzArrays arrays_;
};

void take_header(const EncodedReader& in, EncodedFields& e) {
  constexpr int64_t kMost = int64_t{1} << 32;  // of points, frames and members, before they are checked
  const io::JsonValue j = io::JsonValue::parse(in.text("header"), in.where());
  if (j.at("format").text() != kFormatName) in.refuse("a file of another format");
  if (const int64_t version = j.at("version").integer(0, INT32_MAX); version != kFormatVersion)
    throw InputError(fmt::format("version {} of {}", version, kFormatName), in.where(),
                     fmt::format("version {}", kFormatVersion));
  const std::string& codec = j.at("codec").text();
  if (codec != "classic" && codec != "v2") in.refuse(fmt::format("codec '{}'", io::shown(codec)));
  CodecOptions& o = e.plan.options;
  o.kind = codec == "classic" ? CodecKind::classic : CodecKind::v2;
  const auto points = j.at("n").items(2), box = j.at("box").items(2);
  o.grid.ny = points[0].integer(0, kMost);
  o.grid.nx = points[1].integer(0, kMost);
  o.grid.lx = box[0].number();
  o.grid.ly = box[1].number();
  e.frames = j.at("frames").integer(0, kMost);
  e.members = j.at("members").integer(0, kMost);
  o.threshold = j.at("threshold").number();
  o.seed = j.at("seed").bits();
  if (o.kind == CodecKind::classic) {
    o.low = j.at("low").number();
    o.middle = j.at("middle").number();
    o.box = int(j.at("box_points").integer(0, INT32_MAX));
    o.anchors = j.at("anchors").text() == "used" ? Anchors::used : Anchors::published;
  } else {
    o.share = j.at("share").number();
    o.cut = j.at("cut").number();
  }
  if (const auto max_error = j.find("max_error")) {
    e.max_error = max_error->number();
    e.mode_step = j.at("mode_step").number();
    e.point_step = j.at("point_step").number();
  }
}

void check_header(const EncodedReader& in, const EncodedFields& e) {
  check_codec(e.plan.options);
  if (e.frames < 1 || e.members < 1 || e.frames > kMostFrames || e.members > e.frames ||
      e.frames % e.members != 0)
    in.refuse(fmt::format("{} frames of {} members", e.frames, e.members));
  if (e.plan.options.kind == CodecKind::v2 && e.plan.options.cut == 0) in.refuse("no cut");
  if (!e.max_error) return;
  if (e.plan.options.kind != CodecKind::v2 || !(*e.max_error >= 0) || !std::isfinite(*e.max_error) ||
      !(e.mode_step > 0) || !std::isfinite(e.mode_step) || !(e.point_step >= 0) ||
      !std::isfinite(e.point_step))
    in.refuse(fmt::format("steps of {} and {}", e.mode_step, e.point_step));
}

void check_lists(const EncodedReader& in, const EncodedFields& e) {
  if (const std::string fault = plan_fault(e.plan); !fault.empty()) in.refuse(fault);
  const CodecLayout layout = codec_layout(e.plan);
  if (int64_t(e.time.size()) != e.frames / e.members) in.refuse(fmt::format("{} times", e.time.size()));
  if (!e.max_error && e.latent.shape() != Sizes{e.frames, layout.size})
    in.refuse(fmt::format("latents of shape {}", to_string(e.latent.shape())));
  if (!e.max_error)
    if (const auto at = first_not_finite(e.latent))
      in.refuse(fmt::format("a latent that is not finite at {}", index_text(e.latent.shape(), *at)));
  if (e.max_error && int64_t(e.exact.size()) != e.frames)
    in.refuse(fmt::format("{} kinds of residual for {} frames", e.exact.size(), e.frames));
  for (const uint8_t kind : e.exact)
    if (kind > 1) in.refuse(fmt::format("a residual of kind {}", kind));
}

}  // namespace

int64_t write_encoded(const std::filesystem::path& path, const EncodedFields& e) {
  if (path.extension() != ".npz")
    throw InputError(fmt::format("'{}'", path.string()), "flow encode", "a name in .npz");
  const std::string header = header_of(e).dump();
  io::NpzArrays arrays;
  arrays.emplace_back("header", bytes_array({header.begin(), header.end()}));
  arrays.emplace_back("time", Array::of(std::vector<double>(e.time)));
  if (e.plan.options.kind == CodecKind::classic)
    arrays.emplace_back("anchors", Array::of(std::vector<int32_t>(e.plan.anchors)));
  else
    arrays.emplace_back("scales", Array::of(ring_table(e.plan)));
  if (e.max_error) {
    arrays.emplace_back("latent_code", bytes_array(e.latent_code));
    arrays.emplace_back("residual_code", bytes_array(e.residual_code));
    arrays.emplace_back("exact", bytes_array(e.exact));
  } else {
    arrays.emplace_back("latent", e.latent);
  }
  arrays.emplace_back("checksum", bytes_array(checksum_of(arrays)));
  io::write_npz(path, arrays);
  return int64_t(std::filesystem::file_size(path));
}

EncodedFields read_encoded(const std::filesystem::path& path) {
  const EncodedReader in(path);
  EncodedFields e;
  take_header(in, e);
  if (in.list<uint8_t>("checksum", Storage::u8) != checksum_of(in.arrays()))
    in.refuse("a checksum that does not fit");
  check_header(in, e);
  e.time = in.list<double>("time", Storage::f64);
  if (e.plan.options.kind == CodecKind::classic)
    e.plan.anchors = in.list<int32_t>("anchors", Storage::i32);
  else
    e.plan.scales = scales_of_table(e.plan.options, in.list<float>("scales", Storage::f32));
  if (e.max_error) {
    e.latent_code = in.list<uint8_t>("latent_code", Storage::u8);
    e.residual_code = in.list<uint8_t>("residual_code", Storage::u8);
    e.exact = in.list<uint8_t>("exact", Storage::u8);
  } else {
    e.latent = in.get("latent", Storage::f32, 2);
  }
  check_lists(in, e);
  return e;
}

}  // namespace lockstep::flow
