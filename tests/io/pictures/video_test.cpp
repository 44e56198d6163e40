// Films, read back by the libraries that wrote them.
#include "io/pictures/video.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "lockstep/error.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("lockstep_video_" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const char* name) const { return path_ / name; }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

struct Film {
  int width = 0, height = 0, frames = 0;
  double frames_per_second = 0;
  std::string codec;
  std::vector<double> light;  // mean of each frame's luma
};

Film read_back(const fs::path& path) {
  Film film;
  AVFormatContext* input = nullptr;
  EXPECT_EQ(avformat_open_input(&input, path.c_str(), nullptr, nullptr), 0);
  if (!input) return film;
  EXPECT_GE(avformat_find_stream_info(input, nullptr), 0);
  const AVStream* const stream = input->streams[0];
  const AVCodec* const codec = avcodec_find_decoder(stream->codecpar->codec_id);
  AVCodecContext* decoder = avcodec_alloc_context3(codec);
  avcodec_parameters_to_context(decoder, stream->codecpar);
  EXPECT_EQ(avcodec_open2(decoder, codec, nullptr), 0);
  film.width = decoder->width;
  film.height = decoder->height;
  film.codec = codec->name;
  film.frames_per_second = av_q2d(stream->avg_frame_rate);
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  const auto take = [&](const AVPacket* from) {
    avcodec_send_packet(decoder, from);
    while (avcodec_receive_frame(decoder, frame) == 0) {
      double sum = 0;
      for (int y = 0; y < frame->height; ++y)
        for (int x = 0; x < frame->width; ++x) sum += frame->data[0][y * frame->linesize[0] + x];
      film.light.push_back(sum / (frame->width * frame->height));
      ++film.frames;
    }
  };
  while (av_read_frame(input, packet) == 0) {
    take(packet);
    av_packet_unref(packet);
  }
  take(nullptr);
  av_frame_free(&frame);
  av_packet_free(&packet);
  avcodec_free_context(&decoder);
  avformat_close_input(&input);
  return film;
}

Image grey(int width, int height, int level) { return Image(width, height, 3, static_cast<uint8_t>(level)); }

TEST(Video, KeepsEveryFrame) {
  const Folder folder;
  VideoWriter video(folder / "day.mp4", 128, 96, 12);
  for (int k = 0; k < 20; ++k) video.add(grey(128, 96, 12 * k));
  EXPECT_FALSE(fs::exists(folder / "day.mp4")) << "it appears whole";
  video.commit();
  EXPECT_EQ(video.frames(), 20);
  EXPECT_EQ(folder.files(), 1u);
  const Film film = read_back(folder / "day.mp4");
  EXPECT_EQ(film.frames, 20);
  EXPECT_EQ(film.width, 128);
  EXPECT_EQ(film.height, 96);
  EXPECT_NEAR(film.frames_per_second, 12, 1e-9);
  if (video.encoder() == "libx264") { EXPECT_EQ(film.codec, "h264"); }
  // Luma of studio range: 16 for black to 235 for white.
  ASSERT_EQ(film.light.size(), 20u);
  for (int k = 0; k < 20; ++k) EXPECT_NEAR(film.light[size_t(k)], 16 + 219 * (12 * k / 255.0), 2.5) << k;
}

TEST(Video, TakesOddSizesAndFramesOfOthers) {
  const Folder folder;
  VideoWriter video(folder / "odd.mkv", 65, 33, 5);
  video.add(grey(65, 33, 100));
  video.add(grey(80, 40, 100));
  video.add(grey(10, 8, 100));
  video.commit();
  const Film film = read_back(folder / "odd.mkv");
  EXPECT_EQ(film.frames, 3);
  EXPECT_EQ(film.width, 66);
  EXPECT_EQ(film.height, 34);
  ASSERT_EQ(film.light.size(), 3u);
  EXPECT_NEAR(film.light[0], film.light[1], 1);
  EXPECT_GT(film.light[2], film.light[0] + 50) << "the rest is white";
}

TEST(Video, LeavesNothingUnfinished) {
  const Folder folder;
  std::ofstream(folder / "day.mp4") << "an earlier film";
  {
    VideoWriter video(folder / "day.mp4", 64, 64, 5);
    video.add(grey(64, 64, 10));
  }
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(fs::file_size(folder / "day.mp4"), 15u);
}

TEST(Video, RefusesWhatCannotBe) {
  const Folder folder;
  EXPECT_EQ(video_unavailable_reason(), "");
  EXPECT_THROW(VideoWriter(folder / "a.mp4", 0, 64, 5), InputError);
  EXPECT_THROW(VideoWriter(folder / "a.mp4", 64, 64, 0), InputError);
  EXPECT_THROW(VideoWriter(folder / "a.mp4", 64, 64, std::nan("")), InputError);
  EXPECT_THROW(VideoWriter(folder / "a.gif", 64, 64, 5), InputError);
  EXPECT_NO_THROW(VideoWriter(folder / "a.MP4", 64, 64, 5));
  VideoWriter video(folder / "a.mp4", 64, 64, 5);
  EXPECT_THROW(video.commit(), InputError) << "no frames";
  EXPECT_THROW(video.add(std::vector<uint8_t>(100)), InputError);
  EXPECT_THROW(video.add(Image(64, 64, 1)), InputError);
}

}  // namespace
}  // namespace lockstep::io
