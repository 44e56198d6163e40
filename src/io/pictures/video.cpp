#include "io/pictures/video.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/dynamic_library.hpp"
#include "core/files/endings.hpp"
#include "io/pictures/video_module.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr const char* kFilmLibraries =
    "FFmpeg (Debian 12: apt install libavcodec59 libavformat59 libswscale6)";
constexpr const char* kFilmHeaders =
    "a build with FFmpeg's headers (Debian: apt install libavcodec-dev libavformat-dev libswscale-dev)";
constexpr int kMessageRoom = 512, kLargestFrame = 8192;

}  // namespace

struct VideoWriter::Module {
  DynamicLibrary library;
  decltype(&lockstep_video_version) version = nullptr;
  decltype(&lockstep_video_open) open = nullptr;
  decltype(&lockstep_video_add) add = nullptr;
  decltype(&lockstep_video_finish) finish = nullptr;
  decltype(&lockstep_video_close) close = nullptr;
  std::string reason, remedy;  // why it cannot be used

  /// Looked for again each time: installing the libraries helps at once. Stays loaded while a film uses it.
  static std::shared_ptr<const Module> load() {
    auto made = std::make_shared<Module>();
    LibrarySearch search;
    search.names = {"lockstep_video.so"};
    made->library = search.load(&made->reason);
    if (!made->library) {
      const bool absent = made->reason.find("lockstep_video.so: cannot open") != std::string::npos;
      made->remedy = absent ? kFilmHeaders : kFilmLibraries;
      return made;
    }
    made->version = made->library.function<decltype(lockstep_video_version)>("lockstep_video_version");
    made->open = made->library.function<decltype(lockstep_video_open)>("lockstep_video_open");
    made->add = made->library.function<decltype(lockstep_video_add)>("lockstep_video_add");
    made->finish = made->library.function<decltype(lockstep_video_finish)>("lockstep_video_finish");
    made->close = made->library.function<decltype(lockstep_video_close)>("lockstep_video_close");
    const bool whole = made->version && made->open && made->add && made->finish && made->close;
    if (!whole || made->version() != kLockstepVideoVersion) {
      made->reason = made->library.path() + " is of another version";
      made->remedy = "that of this program";
      made->open = nullptr;
    }
    return made;
  }
};

std::string video_unavailable_reason() {
  const auto module = VideoWriter::Module::load();
  return module->open ? std::string() : fmt::format("{}; films need {}", module->reason, module->remedy);
}

void check_video_name(const std::filesystem::path& path) {
  // FFmpeg's other muxers write several files, or send them.
  static const std::vector<std::string> kEndings = {".mp4", ".mkv", ".mov", ".avi"};
  if (const std::string ending = other_ending(path, kEndings); !ending.empty())
    throw InputError(fmt::format("a film in {}", ending), path.string(),
                     "a name in .mp4, .mkv, .mov or .avi");
}

VideoWriter::VideoWriter(std::filesystem::path path, int width, int height, double frames_per_second)
    : path_(std::move(path)), width_(width), height_(height) {
  const std::string where = path_.target().string();
  check_video_name(where);
  if (width < 2 || height < 2 || width > kLargestFrame || height > kLargestFrame)
    throw InputError(fmt::format("a film of {} x {} pixels", width, height), where,
                     fmt::format("2 to {} along each side", kLargestFrame));
  if (!(frames_per_second > 0 && frames_per_second <= 1000))
    throw InputError(fmt::format("{} frames a second", frames_per_second), where, "above 0, at most 1000");
  module_ = Module::load();
  if (!module_->open)
    throw UnsupportedError(fmt::format("no film can be made ({})", module_->reason), where, module_->remedy);
  encoder_.resize(kMessageRoom);
  message_.resize(kMessageRoom);
  check(module_->open(path_.temporary().c_str(), path_.target().c_str(), width, height, frames_per_second,
                      &film_, encoder_.data(), message_.data(), kMessageRoom));
  encoder_.resize(encoder_.find('\0'));
}

VideoWriter::~VideoWriter() {
  if (film_) module_->close(film_);
}

void VideoWriter::check(int status) const {
  if (status != 0)
    throw InputError(message_.c_str(), path_.target().string(),
                     "a place that can be written and FFmpeg's encoder");
}

void VideoWriter::add(std::span<const uint8_t> rgb) {
  const size_t wanted = 3 * static_cast<size_t>(width_) * static_cast<size_t>(height_);
  if (rgb.size() != wanted || !film_)
    throw InputError(fmt::format("a frame of {} bytes", rgb.size()), path_.target().string(),
                     film_ ? fmt::format("{} bytes", wanted) : "a film that is not finished");
  check(module_->add(film_, rgb.data(), message_.data(), kMessageRoom));
  ++frames_;
}

void VideoWriter::add(const Image& picture) {
  if (picture.channels != 3)
    throw InputError(fmt::format("a frame of {} channels", picture.channels), path_.target().string(), "3");
  if (picture.width == width_ && picture.height == height_) return add(std::span(picture.pixels));
  std::vector<uint8_t> frame(3 * static_cast<size_t>(width_) * static_cast<size_t>(height_), 255);
  const size_t row = 3 * static_cast<size_t>(std::min(picture.width, width_));
  for (int y = 0; y < std::min(picture.height, height_); ++y)
    std::copy_n(&picture.pixels[3 * static_cast<size_t>(y) * static_cast<size_t>(picture.width)], row,
                &frame[3 * static_cast<size_t>(y) * static_cast<size_t>(width_)]);
  add(std::span<const uint8_t>(frame));
}

void VideoWriter::commit() {
  if (frames_ == 0 || !film_)
    throw InputError("no frames", path_.target().string(),
                     film_ ? "at least one" : "a film that is not finished");
  check(module_->finish(film_, message_.data(), kMessageRoom));
  module_->close(std::exchange(film_, nullptr));
  path_.commit();
}

}  // namespace lockstep::io
