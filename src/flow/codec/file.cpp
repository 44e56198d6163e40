// Encoded fields as a file of NumPy arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "flow/codec/layout.hpp"
#include "io/arrays/npz_file.hpp"
#include "io/text/input_memory.hpp"
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

/// The arrays of a file; each is read once, and must be what the file's header makes it.
class EncodedReader {
 public:
  explicit EncodedReader(const std::filesystem::path& path) : file_(path) {}

  const std::string& where() const { return file_.where(); }
  const Array& get(const std::string& key, const io::ArrayLimits& limits) {
    return arrays_.emplace_back(key, file_.read(key, limits).packed()).second;
  }
  template <class E>
  std::vector<E> list(const std::string& key, int64_t most) {
    const Array& array = get(key, {kStorageOf<E>, 1, {}, most});
    return {array.as<E>().begin(), array.as<E>().end()};
  }
  /// Of all arrays that were read, in the order of the file, which has no others.
  void check_sum() {
    const auto sum = list<uint8_t>("checksum", 16);
    io::NpzArrays ordered;
    for (const std::string& key : file_.names()) {
      const auto read =
          std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& a) { return a.first == key; });
      if (read == arrays_.end()) refuse(fmt::format("array '{}', which such a file does not have", key));
      ordered.push_back(*read);
    }
    if (sum != checksum_of(ordered)) refuse("a wrong checksum");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(what, where(), "an undamaged file of flow encode");
  }

 private:
  io::NpzFile file_;
  std::vector<std::pair<std::string, Array>> arrays_;
};

void take_header(EncodedReader& in, EncodedFields& e) {
  constexpr int64_t kLongestHeader = 1 << 16;
  constexpr int64_t kMost = int64_t{1} << 32;  // of points, frames and members, before they are checked
  const std::vector<uint8_t> text = in.list<uint8_t>("header", kLongestHeader);
  const io::JsonValue j = io::JsonValue::parse(std::string(text.begin(), text.end()), in.where());
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

void check_plan(const EncodedReader& in, const EncodedFields& e) {
  if (const std::string fault = plan_fault(e.plan); !fault.empty()) in.refuse(fault);
}

void check_values(const EncodedReader& in, const EncodedFields& e) {
  if (!e.max_error)
    if (const auto at = first_not_finite(e.latent))
      in.refuse(fmt::format("a latent that is not finite at {}", index_text(e.latent.shape(), *at)));
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
  io::write_npz(path, arrays, io::NpzCompression::stored, {.title = "encoded fields of a flow"});
  return int64_t(std::filesystem::file_size(path));
}

EncodedFields read_encoded(const std::filesystem::path& path) {
  EncodedReader in(path);
  EncodedFields e;
  take_header(in, e);
  check_header(in, e);
  const int64_t points = e.plan.options.grid.points();
  // A layout has a number and a weight for each mode of half the plane.
  const io::InputClaim layout(8.0 * double(points) / 2, "the codec's layout", in.where());
  if (e.plan.options.kind == CodecKind::classic)
    e.plan.anchors = in.list<int32_t>("anchors", points);
  else
    e.plan.scales = scales_of_table(e.plan.options, in.list<float>("scales", points));
  check_plan(in, e);
  const auto time = in.get("time", {Storage::f64, 1, {e.frames / e.members}});
  e.time.assign(time.as<double>().begin(), time.as<double>().end());
  if (e.max_error) {
    // No coder makes a number longer than 16 bytes.
    const double most = 16 * double(e.frames) * double(points) + double(1 << 20);
    const int64_t bytes = most < 0x1p62 ? int64_t(most) : int64_t{1} << 62;
    e.latent_code = in.list<uint8_t>("latent_code", bytes);
    e.residual_code = in.list<uint8_t>("residual_code", bytes);
    const auto exact = in.get("exact", {Storage::u8, 1, {e.frames}});
    e.exact.assign(exact.as<uint8_t>().begin(), exact.as<uint8_t>().end());
  } else {
    e.latent = in.get("latent", {Storage::f32, 2, {e.frames, codec_layout(e.plan).size}});
  }
  in.check_sum();
  check_values(in, e);
  return e;
}

}  // namespace lockstep::flow
