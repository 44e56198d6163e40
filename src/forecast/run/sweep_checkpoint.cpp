#include "forecast/run/sweep_checkpoint.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "io/arrays/npz_file.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr int kWriteShare = 20;  // of the time at most one part in so many writes the file
constexpr int64_t kMostFits = int64_t{1} << 28;

}  // namespace

KeptEnds::KeptEnds(std::filesystem::path file, const record::Identity& identity)
    : file_(std::move(file)), identity_(identity) {
  if (!file_.empty() && std::filesystem::exists(file_)) read();
}

void KeptEnds::read() {
  constexpr int64_t kLongestIdentity = 1 << 24;
  const io::NpzFile file(file_);
  const std::string& where = file.where();
  const Array json = file.read("identity", {Storage::u8, 1, {-1}, kLongestIdentity}).packed();
  const auto text = json.as<uint8_t>();
  record::require_same(
      record::Identity::from_json(io::parse_json(std::string(text.begin(), text.end()), where), where),
      identity_, where);
  const Array fits = file.read("fits", {Storage::i64, 2, {-1, 3}, 3 * kMostFits}).packed();
  const Array ends = file.read("ends", {Storage::f64, 2, {fits.size(0), 2}}).packed();
  const auto numbers = fits.as<int64_t>();
  const auto values = ends.as<double>();
  for (size_t k = 0; k < size_t(fits.size(0)); ++k)
    ends_[{numbers[3 * k], numbers[3 * k + 1], numbers[3 * k + 2]}] = {values[2 * k], values[2 * k + 1]};
}

void KeptEnds::add(const SweepFit& fit, const ExpectedEnd& end) {
  ends_[fit] = end;
  ++computed_;
  if (!file_.empty() && Clock::now() - written_ >= pause_) write();
}

void KeptEnds::end_block() {
  if (file_.empty()) ends_.clear();
}

void KeptEnds::finish() {
  if (!file_.empty()) write();
}

/// In the order of the fits: the file does not depend on the order in which they came.
void KeptEnds::write() {
  const Clock::time_point begin = Clock::now();
  std::vector<int64_t> fits;
  std::vector<double> ends;
  for (const auto& [fit, end] : ends_) {
    fits.insert(fits.end(), {fit.sweep, fit.run, fit.rows});
    ends.insert(ends.end(), {end.mean, end.low});
  }
  const std::string json = identity_.to_json();
  io::write_npz(file_, {{"identity", Array::of(std::vector<uint8_t>(json.begin(), json.end()))},
                        {"fits", Array::of(std::move(fits), {int64_t(ends_.size()), 3})},
                        {"ends", Array::of(std::move(ends), {int64_t(ends_.size()), 2})}});
  written_ = Clock::now();
  pause_ = (kWriteShare - 1) * (written_ - begin);
}

}  // namespace lockstep::forecast
